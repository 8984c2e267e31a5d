"""Log-likelihoods of single reports, from which the influence of forged reports is computed."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from skldp.models import LogisticRecordModel
from skldp.protocols import LabelRecordProtocol
from tests.models.regression.test_logistic import points


def integrated(protocol, reports, coef, intercept, mean, covariance):
    """Log-likelihoods of decoded reports in the units of the data, by integrals over the record on a grid."""
    d, unit, noise = protocol.n_features, protocol.data_norm, protocol.randomizer.noise_variance
    keep = expit(protocol.budget_split * protocol.epsilon)
    nodes, step = np.linspace(-18, 18, 361 if d == 1 else 121, retstep=True)
    white = np.array(list(itertools.product(nodes, repeat=d)))
    x = mean + white @ np.linalg.cholesky(covariance).T
    positive = expit(x @ coef + intercept)
    log_labels = {sign: np.log(keep * share + (1 - keep) * (1 - share))
                  for sign, share in ((1, positive), (-1, 1 - positive))}
    log_weights = d * np.log(step / np.sqrt(2 * np.pi)) - 0.5 * (white**2).sum(axis=1)
    log_noise = [-0.5 * ((report[:-1] - x / unit) ** 2).sum(axis=1) / noise for report in reports]
    return [logsumexp(log_weights + terms + log_labels[report[-1]]) - 0.5 * d * np.log(2 * np.pi * noise)
            for report, terms in zip(reports, log_noise)]


@pytest.mark.parametrize("d, epsilon, split", [(1, 1.0, 0.5), (1, 8.0, 0.2), (2, 4.0, 0.5)])
@pytest.mark.parametrize("data_norm", [1.0, 3.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_likelihood_of_a_noisy_record_is_an_integral_over_the_record(d, epsilon, split, data_norm, intercept):
    protocol = LabelRecordProtocol(n_features=d, epsilon=epsilon, budget_split=split, data_norm=data_norm)
    model = LogisticRecordModel(protocol.aggregate([]), fit_intercept=intercept)
    theta = points(model, 2)
    reports, places = np.unique(protocol.extreme_reports(), axis=0, return_index=True)
    decoded = protocol.randomizer.decode(reports)
    assert set(decoded[:, -1]) == {-1, 1} and np.abs(decoded[:, :-1]).max() > 10
    params = model.constrain(theta)
    for walker in range(len(theta)):
        mean, constant = (params["x_mean"][walker], params["intercept"][walker]) if intercept else (np.zeros(d), 0.0)
        expected = integrated(protocol, decoded, params["coef"][walker], constant, mean, params["covariance"][walker])
        # The library omits the constants of the normal density and of the label.
        found = model.report_log_likelihoods(protocol, theta)[places, walker] - 0.5 * d * np.log(2 * np.pi) - np.log(2)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-6)
