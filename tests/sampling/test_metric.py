"""Variances as a metric: the same numbers as the diagonal matrix."""

import numpy as np

from skldp.models import Model
from skldp.sampling import sample
from skldp.sampling._metric import inverse_of, pulled_back, root_of, scaled, square_of
from skldp.sampling._nearest_normal import learned_normal

VARIANCES = np.array([0.25, 1.0, 9.0])


def test_variances_do_what_the_diagonal_matrix_does():
    rows = np.random.default_rng(0).standard_normal((4, 3))
    root, matrix = root_of(VARIANCES), root_of(np.diag(VARIANCES))
    np.testing.assert_allclose(scaled(rows, root), scaled(rows, matrix))
    np.testing.assert_allclose(pulled_back(rows, root), pulled_back(rows, matrix))
    np.testing.assert_allclose(scaled(rows, inverse_of(root)), scaled(rows, inverse_of(matrix)))
    np.testing.assert_allclose(np.diag(square_of(root)), square_of(matrix))


def test_learned_variances_of_a_normal_distribution():
    draws = 2.0 + np.random.default_rng(0).standard_normal((500, 3)) * np.sqrt(VARIANCES)
    centre, variances = learned_normal(draws, -(draws - 2.0) / VARIANCES, np.ones(3))
    np.testing.assert_allclose(variances, VARIANCES, rtol=0.02)
    np.testing.assert_allclose(centre, 2.0, atol=0.02)


class Independent(Model):
    """Normal distributions, and one that is skewed."""

    n_params = 3
    nearly_standard_normal = nearly_independent = True

    def initial(self):
        return np.zeros(3)

    def log_density(self, theta):
        return self.gradient(theta)[0]

    def gradient(self, theta):
        z = theta / np.sqrt(VARIANCES)
        value = -0.5 * np.sum(z[:, 1:] ** 2, axis=1) + 2 * z[:, 0] - np.exp(z[:, 0])
        slope = -z
        slope[:, 0] = 2 - np.exp(z[:, 0])
        return value, slope / np.sqrt(VARIANCES)

    def constrain(self, theta):
        return {"theta": theta}


def test_sampling_with_variances():
    posterior = sample(Independent(), seed=0)
    assert posterior.problem is None and posterior.warm_starts[0].covariance.shape == (3,)
    # log of a Gamma variable of shape 2: digamma(2) and trigamma(2)
    expected = np.array([0.4228 * 0.5, 0, 0])
    assert (np.abs(posterior.mean()["theta"] - expected) < 0.15 * np.sqrt(VARIANCES)).all()
    np.testing.assert_allclose(posterior.std()["theta"], [np.sqrt(0.6449) * 0.5, 1, 3], rtol=0.1)
