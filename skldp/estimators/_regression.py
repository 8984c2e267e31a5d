"""Base class of the regressions from private reports."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from skldp._validation._door import without_mask
from skldp.analysis._regression_checks import coefficient_information, warn_about_fit, warn_about_rows
from skldp.estimators._moment_estimator import BaseMomentEstimator


class BaseLDPRegression(BaseMomentEstimator):
    """An estimator of a response from a vector of bounded norm."""

    def _check(self, X, y):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = check_array(without_mask(X), dtype=np.float64, estimator=self)
        y, labels = self._check_response(without_mask(y))
        check_consistent_length(X, y)
        return X, y, labels

    def _check_response(self, y):
        """Return responses as an array, and the labels found in them (None for numbers)."""
        y = column_or_1d(y, warn=True)
        return check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self), None

    @staticmethod
    def _informed(model, posterior):
        """Return the posterior with the bits that each coefficient has gained."""
        return replace(posterior, information={"coef": coefficient_information(model.prior_coef_std, posterior)})

    def _warn(self):
        warn_about_fit(self.aggregate_, self.posterior_, self.information_["coef"].ravel(),
                       getattr(self, "feature_names_in_", None), stacklevel=3, n_reports=self.n_reports_)

    def _rows(self, X, stacklevel):
        """Return the rows of a prediction as an array, and warn of rows that are too long."""
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        warn_about_rows(rows, self.protocol_.data_norm, stacklevel=stacklevel + 1)
        return rows


@dataclass(frozen=True)
class Line:
    """A linear prediction of a new response, and the variance that it leaves to the uncertainty of the parameters."""

    coef: np.ndarray
    intercept: float
    left: float


def draws_by_line(draws):
    """Return the draws of each line of several responses or labels, as if there was no other."""
    if draws["coef"].ndim == 3:
        return [draws]
    return [{name: values[:, :, place] if name in ("coef", "intercept", "sigma") else values
             for name, values in draws.items()} for place in range(draws["coef"].shape[2])]


def predictive_line(draws):
    r"""Return the best linear prediction of :math:`\alpha + \theta^Tx` for a new x.

    Notes
    -----
    It is the regression on x in the posterior predictive distribution, whose moments are posterior means of moments.
    With :math:`\mu = \alpha + \theta^Tm`,

    .. math:: \mathrm{Cov}(x) = E\Sigma + \mathrm{Cov}(m), \qquad
              \mathrm{Cov}(x, \alpha + \theta^Tx) = E\Sigma\theta + \mathrm{Cov}(m, \mu).

    Draws with a larger :math:`\Sigma` count more than in the posterior mean of :math:`\theta`, because there a wrong
    line costs more.
    """
    coef, covariance = (values.reshape(-1, *values.shape[2:]) for values in (draws["coef"], draws["covariance"]))
    products = (covariance @ coef[:, :, None])[:, :, 0]
    second, cross, variance = covariance.mean(axis=0), products.mean(axis=0), np.vecdot(coef, products).mean()
    if "x_mean" not in draws:
        line = np.linalg.solve(second, cross)
        return Line(line, 0.0, float(variance - line @ cross))
    x_mean = draws["x_mean"].reshape(coef.shape)
    centre = draws["intercept"].ravel() + np.vecdot(coef, x_mean)
    deviation = x_mean - x_mean.mean(axis=0)
    second = second + deviation.T @ deviation / len(deviation)
    cross = cross + deviation.T @ centre / len(deviation)
    line = np.linalg.solve(second, cross)
    return Line(line, float(centre.mean() - line @ x_mean.mean(axis=0)), float(variance + centre.var() - line @ cross))
