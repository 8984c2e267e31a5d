"""Log-density of the mean and covariance of a vector, given aggregated reports without responses."""

from skldp.models.regression._base import Units, VectorModel
from skldp.models.regression._moment_likelihoods import MomentLikelihood
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._vector import VectorCoordinates

# There are no coefficients. Scales, which are secondary in a regression, have a wider prior: with its prior, intervals
# of small variances covered the truth in 0 to 30 % of fits to few reports, and with this one in 90 to 100 %.
_DEFAULTS = DefaultScales(explained=1.0, coef=1.0, intercept=1.0, learned_scales=(0.5, 0.6))


class CovarianceModel(VectorModel):
    r"""Mean and covariance of a normal vector x, in the part of :class:`LinearModel` that has no response.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.CovarianceProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the scales, correlations and means of x. Those of coefficients and residuals are not used.
    mean_name : str, default="location"
        Name of the mean among the parameters.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, in units where x has norm 1. Without a constant in the reports m = 0, and
    :math:`\Sigma` are the second moments.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import CovarianceModel
    >>> from skldp.protocols import CovarianceProtocol
    >>> protocol = CovarianceProtocol(epsilon=1.0, n_features=2)
    >>> model = CovarianceModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)))))
    >>> value, gradient = model.gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 7))
    """

    def __init__(self, aggregate, prior="auto", mean_name="location"):
        self.mean_name, protocol = mean_name, aggregate.protocol
        likelihoods = [MomentLikelihood(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
        d, units = protocol.n_features, Units(protocol.data_norm)
        priors = priors_in_public_units(check_regression_prior(prior), _DEFAULTS, d, units.x)
        self.reported = ReportedMoments.pooled([part.reported() for part in likelihoods], d, 0)
        super().__init__(likelihoods, VectorCoordinates(priors, protocol.has_intercept, d, self.reported), units)

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        return self.coordinates.start(self.reported.covariance)

    def constrain(self, theta):
        """Return the natural parameters by name, in the units of the data."""
        point = self.coordinates.expand(theta)
        params = {} if point.x_mean is None else {self.mean_name: self.units.x * point.x_mean}
        return {**params, "covariance": self.units.x**2 * point.covariance}

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        value, by_mean, by_covariance = self._likelihood(point.x_mean, point.covariance, with_gradient)
        return point.log_prior() + value, point.gradient(by_covariance, by_mean) if with_gradient else None
