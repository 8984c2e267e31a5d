"""Reports of some features of each client: the options of their protocols, and what does not go with them."""

from skldp.estimators._mechanisms import Moments, check_mechanism
from skldp.exceptions import InvalidParameterError

_KINDS = {"auto", "axis"}


def sampled_options(estimator, n_responses=1):
    """Return the fields of a protocol of moments of ``features_per_client`` features."""
    mechanism = check_mechanism(estimator.mechanism)
    if not isinstance(mechanism, Moments) or mechanism.kind not in _KINDS:
        raise InvalidParameterError(f"features_per_client={estimator.features_per_client!r} needs reports of axes, got "
                                    f'mechanism={estimator.mechanism!r}. Use mechanism="axis" or "auto".')
    options = mechanism._options(estimator.fit_intercept, n_responses)
    return {**options, "mechanism": "axis", "features_per_client": estimator.features_per_client}


def changeable(estimator):
    """Return the aggregate of a fit with a function to models of changed ones, which have the correlations of the fit.

    A search for them would take longer, and change the models by less than forged reports do.
    """
    model = estimator._models(estimator.aggregate_)[0]
    return [(lambda changed: [model.with_aggregate(changed)], estimator.aggregate_)]
