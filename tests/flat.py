"""Estimators from one flat list of options, for parametrised tests."""

from skldp import MCMC, Moments, Records, RegressionPrior

_PARTS = {
    "prior": (RegressionPrior, ("coef", "coef_scale", "covariance_scale", "mean_scale", "sigma_scale", "lkj_eta")),
    "inference": (MCMC, ("n_walkers", "n_warmup", "n_draws")),
    "records": (Records, ("budget_split", "link")),
    "moments": (Moments, ("y_weight", "intercept_weight")),
}


def build(kind, **options):
    """Return an estimator; options of its prior, its chains and its mechanism are keywords like its own."""
    parts = {}
    for part, (make, names) in _PARTS.items():
        taken = {name: options.pop(name) for name in names if name in options}
        if taken:
            parts[part] = make, taken
    if "prior" in parts:
        make, taken = parts["prior"]
        options["prior"] = make(**taken)
    if "inference" in parts:
        make, taken = parts["inference"]
        assert options.get("inference", "mcmc") == "mcmc", "only MCMC has walkers and steps"
        options["inference"] = make(**taken)
    if "records" in parts:
        make, taken = parts["records"]
        assert options["mechanism"] == "records"
        options["mechanism"] = make(**taken)
    if "moments" in parts:
        make, taken = parts["moments"]
        options["mechanism"] = make(kind=options.get("mechanism", "auto"), **taken)
    return kind(**options)
