"""First-order bound on the change of a posterior by forged reports."""

import numpy as np

from skldp.protocols._aggregate import Aggregate
from skldp.protocols._tallies import PairTally, RowTally, Tally


def influence(models_of, aggregate, draws):
    r"""Return, by model and parameter, the largest change of a posterior mean by one additional report.

    ``models_of`` maps an aggregate to its models, and ``draws`` has the unconstrained parameters of each.

    Notes
    -----
    A report r multiplies the posterior by :math:`e^{\ell_r(\theta)}`, so to first order it changes the mean of g by
    :math:`\mathrm{Cov}(g, \ell_r)` under the posterior. A model with ``report_log_likelihoods`` computes
    :math:`\ell_r` itself. Otherwise the log-likelihood is a function of the number n and the sums s of the reports, and
    :math:`\ell_r = \partial_n\ell + \partial_s\ell\cdot s(r)`. The covariance is then linear in s(r), and the protocol
    has the largest value of a linear function over all valid reports.
    """
    # Rows and pairs are dropped: their information beyond the sums is small, so a forged report changes it little.
    parts = {protocol: tally.only_sums() if isinstance(tally, (PairTally, RowTally)) else tally
             for protocol, tally in aggregate.parts.items()}
    # Coordinates may depend on the reports, and the draws are in those of the posterior.
    originals = models_of(aggregate)
    models = models_of(Aggregate(parts, aggregate.n_rejected, aggregate.batches))
    models = [model.in_coordinates_of(original) for model, original in zip(models, originals)]
    largest: list[dict] = [{} for _ in models]
    for protocol in parts:
        effects_by = _effects_by_sums if models[0].report_log_likelihoods is None else _effects_by_report
        effects, extremes = effects_by(models_of, models, parts, protocol, draws)
        for found, model, theta, effect in zip(largest, models, draws, effects):
            for name, values in model.constrain(theta).items():
                found[name] = np.maximum(found.get(name, 0.0), _largest(values, effect, extremes))
    return largest


def _effects_by_report(models_of, models, parts, protocol, draws):
    """Return log-likelihoods of single reports for each model, and a function to their extreme covariances."""
    effects = [model.report_log_likelihoods(protocol, theta) for model, theta in zip(models, draws)]
    return effects, lambda covariances: (covariances.min(axis=1), covariances.max(axis=1))


def _effects_by_sums(models_of, models, parts, protocol, draws):
    """Return derivatives of the log-density for each model, and a function to the extreme covariances of a report.

    The derivatives are differences of one: by one additional report, and along each direction of the sums.
    """
    tally = parts[protocol]
    changed = [Tally(tally.n_reports + 1, tally.sums)]
    changed += [Tally(tally.n_reports, tally.sums + direction) for direction in protocol.directions()]
    before = [model.log_density(theta) for model, theta in zip(models, draws)]
    after = [[model.in_coordinates_of(original).log_density(theta) for model, original, theta
              in zip(models_of(Aggregate({**parts, protocol: one})), models, draws)] for one in changed]
    effects = [np.array([values[place] for values in after]) - before[place] for place in range(len(draws))]

    def extremes(covariances):
        """Return the smallest and largest effect of one report, for every parameter."""
        low, high = protocol.extreme_effects(covariances[:, 1:])
        return covariances[:, 0] + low, covariances[:, 0] + high

    return effects, extremes


def _largest(values, effects, extremes):
    """Return the largest absolute covariance of every element with the log-likelihood of a report."""
    values = np.asarray(values, dtype=float)
    flat = values.reshape(len(values), -1)
    # A draw with zero density under one of the models has an infinite effect, which is not a small change.
    possible = np.isfinite(effects).all(axis=0)
    flat, effects = flat[possible], effects[:, possible]
    covariances = (flat - flat.mean(axis=0)).T @ effects.T / len(flat)
    low, high = extremes(covariances)
    return np.maximum(np.abs(low), np.abs(high)).reshape(values.shape[1:])
