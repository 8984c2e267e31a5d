"""R-hat and effective sample sizes of many quantities at once."""

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata


def convergence_statistics(columns, n_superchains):
    r"""Return nested R-hat, split R-hat and bulk effective sample size of each column.

    The shape of ``columns`` is (n_chains, n_draws, n_columns); consecutive chains form a superchain.

    Notes
    -----
    Every chain is split in two halves, and draws are replaced by normal scores of their ranks. For groups of n draws,
    with B the variance of the means of the groups and W the mean of their variances,
    :math:`\hat R = \sqrt{(n - 1)/n + B/W}`. In split R-hat the groups are the halves of the chains, in nested R-hat
    [2]_ the halves of the superchains. Each is the larger of two: of the draws, and of their distances from the median.

    If m of the n draws of a group are effective, :math:`\hat R` is about :math:`\sqrt{1 + 1/m - 1/n}`. So split R-hat
    falls to 1.01 only if each chain is long, nested R-hat if each superchain has many draws. Chains that are started
    together in few superchains show whether the starting positions are forgotten without being long themselves.

    Split R-hat and the effective sample size equal those of ArviZ, which computes one column at a time and is slow for
    the many entries of a covariance matrix.

    References
    ----------
    .. [1] A. Vehtari et al., "Rank-normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16,
       2021.
    .. [2] C. C. Margossian et al., "Nested R-hat: assessing the convergence of Markov chain Monte Carlo when running
       many short chains", Bayesian Analysis 20, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._chain_statistics import convergence_statistics
    >>> draws = np.random.default_rng(0).standard_normal((40, 50, 2)).cumsum(axis=1)  # not stationary
    >>> nested, split, ess = convergence_statistics(draws, n_superchains=4)
    >>> bool((nested > 1.05).all() and (split > nested).all() and (ess < 100).all())
    True
    """
    halves = _halves(columns)
    scores = _normal_scores(halves)
    folded = _normal_scores(np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True)))
    groups = len(halves), 2 * n_superchains, -1
    nested = np.maximum(_rhat(scores.reshape(groups)), _rhat(folded.reshape(groups)))
    return nested, np.maximum(_rhat(scores), _rhat(folded)), _ess(scores)


def smaller_tail_ess(columns, probability=0.05):
    """Return the smaller of the effective sample sizes of a lower and an upper quantile, for each column."""
    quantiles = np.quantile(columns, [probability, 1 - probability], axis=(0, 1))
    return np.min([_ess(_halves((columns <= quantile).astype(float))) for quantile in quantiles], axis=0)


def _halves(columns):
    """Return the halves of all chains, shape (n_columns, 2 n_chains, n_draws // 2), without an odd middle draw."""
    half = columns.shape[1] // 2
    return np.ascontiguousarray(np.concatenate([columns[:, :half], columns[:, -half:]]).transpose(2, 0, 1))


def _normal_scores(halves):
    flat = halves.reshape(len(halves), -1)
    ranks = rankdata(flat, axis=1)
    return ndtri((ranks - 0.375) / (flat.shape[1] + 0.25)).reshape(halves.shape)


def _rhat(groups):
    """Return R-hat of groups of draws, shape (n_columns, n_groups, n_draws)."""
    n_draws = groups.shape[2]
    between = groups.mean(axis=2).var(axis=1, ddof=1)
    within = groups.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt((n_draws - 1) / n_draws + between / within)


def _ess(halves):
    """Return the effective sample size by Geyer's initial monotone sequence of pairs of autocorrelations."""
    _, n_chains, n_draws = halves.shape
    covariance = _mean_autocovariance(halves)
    within = covariance[:, :1] * n_draws / (n_draws - 1)
    total = covariance[:, :1] + halves.mean(axis=2).var(axis=1, ddof=1)[:, None]
    correlation = 1 - (within - covariance) / total
    correlation[:, 0] = 1.0
    last = max((n_draws - 3) // 2, 0)
    evens = correlation[:, :2 * last + 1:2]
    pairs = evens + correlation[:, 1:2 * last + 2:2]
    # The first pair that is not positive ends the sum, keeping its first term if that is positive.
    end = np.where((pairs <= 0).any(axis=1), np.argmax(pairs <= 0, axis=1), last)
    rows = np.arange(len(pairs))
    rest = np.where((pairs[rows, end] >= 0) | (evens[rows, end] > 0), evens[rows, end], 0.0)
    sums = np.cumsum(np.minimum.accumulate(pairs, axis=1), axis=1)
    time = 2 * np.where(end > 0, sums[rows, end - 1], 0.0) + rest - 1
    size = n_chains * n_draws
    ess = size / np.maximum(time, 1 / np.log10(size))
    return np.where(np.ptp(halves, axis=(1, 2)) < np.finfo(float).resolution, size, ess)


def _mean_autocovariance(halves):
    """Return the autocovariance at every lag, averaged over chains, shape (n_columns, n_draws)."""
    n_draws = halves.shape[2]
    width = next_fast_len(2 * n_draws, real=True)
    spectrum = rfft(halves - halves.mean(axis=2, keepdims=True), n=width, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    return irfft(power, n=width, axis=1)[:, :n_draws] / n_draws
