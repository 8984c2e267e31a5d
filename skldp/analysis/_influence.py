"""How far could forged reports pull a posterior? To the first order in their number."""

import numpy as np

from skldp.protocols._aggregate import Aggregate
from skldp.protocols._tallies import PairTally, RowTally, Tally


def influence(models_of, aggregate, draws):
    r"""Largest change of every posterior mean that one more report can make.

    Parameters
    ----------
    models_of : callable
        From an aggregate to its models.
    aggregate : Aggregate
        The reports behind the posterior.
    draws : list of ndarray of shape (n_draws, n_params)
        Draws of the unconstrained parameters, for each model.

    Returns
    -------
    list of dict of str to ndarray
        For each model, by parameter.

    Notes
    -----
    A report r multiplies the posterior by :math:`e^{\ell_r(\theta)}`, so to the first order it moves the mean of g by
    :math:`\mathrm{Cov}(g, \ell_r)` under the posterior. A model that knows the log-likelihood of single reports is
    asked for it. Where the log-likelihood is one of the number n and of the sums s of the reports,
    :math:`\ell_r = \partial_n\ell + \partial_s\ell\cdot s(r)`: the covariance is linear in s(r), and the protocol
    knows the largest value of a linear function over the reports that pass its checks.
    """
    # Rows and pairs are left out: a forged report moves what they add to the sums, which is a small part.
    parts = {protocol: tally.only_sums() if isinstance(tally, (PairTally, RowTally)) else tally
             for protocol, tally in aggregate.parts.items()}
    models = models_of(Aggregate(parts, aggregate.n_rejected, aggregate.batches))
    largest: list[dict] = [{} for _ in models]
    for protocol in parts:
        kind = _of_sums if models[0].report_log_likelihoods is None else _of_single_reports
        effects, reach = kind(models_of, models, parts, protocol, draws)
        for found, model, theta, effect in zip(largest, models, draws, effects):
            for name, values in model.constrain(theta).items():
                found[name] = np.maximum(found.get(name, 0.0), _largest(values, effect, reach))
    return largest


def _of_single_reports(models_of, models, parts, protocol, draws):
    """Log-likelihoods of single reports for each model, and the reach of covariances with them."""
    effects = [model.report_log_likelihoods(protocol, theta) for model, theta in zip(models, draws)]
    return effects, lambda covariances: (covariances.min(axis=1), covariances.max(axis=1))


def _of_sums(models_of, models, parts, protocol, draws):
    """Changes of the log-density by one more report and along each probe, and the reach of covariances with them."""
    tally = parts[protocol]
    changed = [Tally(tally.n_reports + 1, tally.sums)]
    changed += [Tally(tally.n_reports, tally.sums + probe) for probe in protocol.directions()]
    before = [model.log_density(theta) for model, theta in zip(models, draws)]
    after = [[model.log_density(theta) for model, theta in zip(models_of(Aggregate({**parts, protocol: one})), draws)]
             for one in changed]
    effects = [np.array([values[place] for values in after]) - before[place] for place in range(len(draws))]

    def reach(covariances):
        """Least and largest effect of one report, for every parameter."""
        low, high = protocol.extreme_effects(covariances[:, 1:])
        return covariances[:, 0] + low, covariances[:, 0] + high

    return effects, reach


def _largest(values, effects, reach):
    """Largest size of the covariance of every element with the log-likelihood of a report."""
    values = np.asarray(values, dtype=float)
    flat = values.reshape(len(values), -1)
    # A draw that one of the densities finds impossible says nothing about small changes.
    possible = np.isfinite(effects).all(axis=0)
    flat, effects = flat[possible], effects[:, possible]
    covariances = (flat - flat.mean(axis=0)).T @ effects.T / len(flat)
    low, high = reach(covariances)
    return np.maximum(np.abs(low), np.abs(high)).reshape(values.shape[1:])
