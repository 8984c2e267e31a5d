"""Clients needed, the paper's mechanism against ours, computed from the mechanisms as implemented.

For values, the Fisher information that one report carries about the mean and the standard deviation of normal
records; for categories, the Fisher information about the frequencies at the uniform distribution; for vectors, the
variance of a decoded report. Then the noise that the exact sensitivity saves, and the gain from recentring moments
before the sphere.

Run with ``python benchmarks/table_mechanisms.py`` (seconds).
"""

import itertools

import numpy as np
from _timing import print_header, print_table
from scipy.special import ndtr

from skldp.mechanisms import Gaussian, Laplace, Sphere, SquareWave, SubsetSelection, UnaryEncoding
from skldp.privacy import (
    ball_sensitivity,
    gaussian_sigma,
    labelled_moment_radius,
    moment_radius,
    moment_sensitivity,
    paper_moment_bound,
    weighted_moment_sensitivity,
)

EPSILONS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)


def cell_masses(mechanism, mean, sd):
    """Probability of every grid point of a clipped, rounded normal record."""
    edges = (np.arange(mechanism.n_levels) + 0.5) / mechanism.n_levels
    lower, upper = mechanism.bounds
    cdf = ndtr((lower + edges * (upper - lower) - mean) / sd)
    return np.diff(cdf, prepend=0.0, append=1.0)


def value_information(mechanism, sd):
    """Fisher information about mean and standard deviation in one report."""
    lower, upper = mechanism.bounds
    grid = lower + np.arange(mechanism.n_levels + 1) * (upper - lower) / mechanism.n_levels
    low, high = mechanism.clamp
    reports = np.unique(np.linspace(low, high, min(high - low + 1, 20_001)).astype(int))
    width = np.gradient(reports.astype(float))  # Laplace reports are thinned: the density is smooth over a step
    kernel = np.exp(mechanism.log_prob(reports[:, None], grid[None, :]))

    def probability(mean, spread):
        return kernel @ cell_masses(mechanism, mean, spread)

    step = 1e-3 * sd
    p = probability(0.0, sd)
    d_mean = (probability(step, sd) - probability(-step, sd)) / (2 * step)
    d_sd = (probability(0.0, sd + step) - probability(0.0, sd - step)) / (2 * step)
    return np.array([(width * d**2 / p).sum() for d in (d_mean, d_sd)])


def values():
    """Square wave against Laplace."""
    rows = []
    for epsilon in EPSILONS:
        cells = []
        for share in (0.05, 0.1, 0.2, 0.25):
            laplace = Laplace(epsilon=epsilon, bounds=(-0.5, 0.5), n_levels=1024)
            ratio = value_information(SquareWave(epsilon=epsilon, bounds=(-0.5, 0.5)), share)
            cells += list(ratio / value_information(laplace, share))
        rows.append([f"{epsilon:g}", *cells])
    shares = itertools.product(("5 %", "10 %", "20 %", "25 %"), ("mean", "sd"))
    print("Values: clients needed, Laplace : square wave, by the records' sd as a share of the range")
    print_table(["epsilon", *(f"{share} {what}" for share, what in shares)], rows)


def category_information(mechanism):
    """Fisher information about one contrast of the frequencies, at the uniform distribution, by the full likelihood."""
    d, epsilon = mechanism.n_categories, mechanism.epsilon
    odds = np.expm1(epsilon)
    # A report with s ones has probability proportional to 1 + odds * (share of its ones): information about any
    # contrast is E[(odds (z_1 - z_2) / (1 + odds z.theta))^2] / 2, and depends on the number of ones alone.
    ones = np.arange(d + 1)
    probability = number_of_ones(mechanism)
    pairs = 2 * ones * (d - ones) / (d * (d - 1))
    return (probability * pairs * (odds / (1 + odds * ones / d)) ** 2).sum() / 2


def number_of_ones(mechanism):
    """Distribution of the number of ones of a report."""
    d = mechanism.n_categories
    probability = np.zeros(d + 1)
    if isinstance(mechanism, SubsetSelection):
        probability[mechanism.subset_size] = 1.0
        return probability
    probability[0] = 1.0
    for p in [mechanism.p] + [mechanism.q] * (d - 1):
        probability[1:] = (1 - p) * probability[1:] + p * probability[:-1]
        probability[0] *= 1 - p
    return probability


def categories():
    """Subset selection against unary encoding."""
    sizes = (2, 3, 4, 16, 64)
    rows = []
    for epsilon in EPSILONS:
        pairs = [(SubsetSelection(epsilon=epsilon, n_categories=d), UnaryEncoding(epsilon=epsilon, n_categories=d))
                 for d in sizes]
        rows.append([f"{epsilon:g}", *(category_information(s) / category_information(u) for s, u in pairs)])
    print("Categories: clients needed, unary encoding : subset selection, full likelihood, uniform frequencies")
    print_table(["epsilon", *(f"d={d}" for d in sizes)], rows)


def vectors():
    """Sphere against the Gaussian mechanism, for vectors of a ball and for moment reports."""
    rows = []
    for epsilon in EPSILONS:
        gradients = [Gaussian(epsilon=epsilon, n_features=d).noise_variance
                     / Sphere(epsilon=epsilon, n_features=d).noise_variance for d in (2, 10, 50)]
        rows.append([f"{epsilon:g}", *gradients, *(moment_ratio(epsilon, d) for d in (2, 10, 20))])
    print("Vectors: clients needed, Gaussian (delta=1e-5) : sphere; vectors of the unit ball, then moment reports of d "
          "features\n(R=1, R_y=1, intercept weight^2 1/2, y weight^2 1/2; Gaussian with the exact sensitivity)")
    print_table(["epsilon", "ball d=2", "ball d=10", "ball d=50", "moments d=2", "moments d=10", "moments d=20"], rows)


def moment_ratio(epsilon, d):
    """Noise variance of Gaussian over sphere for moment reports."""
    y_weight = kappa = np.sqrt(0.5)
    n_entries = (d + 2) * (d + 3) // 2 - 1
    sigma = gaussian_sigma(epsilon, 1e-5, moment_sensitivity(1.0, 1.0, y_weight, kappa))
    radius = moment_radius(1.0, 1.0, d, y_weight, kappa)
    return sigma**2 / Sphere(epsilon=epsilon, norm=radius, n_features=n_entries).noise_variance


def sensitivities():
    """What the exact sensitivity saves, and what recentring gains."""
    rows = [[f"R=1, R_y={bound:g}", (paper_moment_bound(1, bound) / weighted_moment_sensitivity(1, bound)) ** 2]
            for bound in (0.5, 1.0, 2.0, 4.0)]
    print("Noise variance of the paper's bound over the exact sensitivity, equal weights")
    print_table(["domain", "ratio"], rows)
    weight = np.sqrt(0.5)
    rows = []
    for d in (1, 2, 5, 10, 20):
        linear = [moment_radius(1, 1, d, weight, kappa, True) ** 2 / moment_radius(1, 1, d, weight, kappa, False) ** 2
                  for kappa in (0.0, weight)]
        labels = [labelled_moment_radius(1, d, weight, kappa, True) ** 2
                  / labelled_moment_radius(1, d, weight, kappa, False) ** 2 for kappa in (0.0, weight)]
        rows.append([str(d), *linear, *labels])
    print("Noise variance with recentring over without it, y weight^2 1/2")
    print_table(["d", "linear", "with intercept", "labels", "with intercept"], rows)
    print(f"(A ball of radius 1 has sensitivity {ball_sensitivity(1.0):g}.)")


if __name__ == "__main__":
    print_header("Clients needed")
    values()
    categories()
    vectors()
    sensitivities()
