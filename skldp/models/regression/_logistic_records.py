"""Log-density of a logistic regression, given noisy records with randomised labels."""

from functools import cached_property

import numpy as np

from skldp._validation._parameters import check_choice
from skldp.models.regression._base import Approximation, RegressionModel, Units
from skldp.models.regression._covariance import matvec
from skldp.models.regression._label_records import LINKS, LabelRecordLikelihood, Predictor
from skldp.models.regression._logistic_coordinates import logistic_coordinates
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._sigmoid import tanh_means

__all__ = ["LogisticRecordModel"]


class LogisticRecordModel(RegressionModel):
    r"""Logistic regression from noisy records and labels: coefficients and intercept, with mean and covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.LabelRecordProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.
    fit_intercept : bool, default=True
        Whether there is an intercept, and a mean of x.
    link : {"quadrature", "chebyshev"}, default="quadrature"
        How the probability of a label is averaged over the record given its noisy report: by quadrature, or by the
        paper's polynomial.

    Notes
    -----
    A report is :math:`z = x + N(0, s^2I)` and a label that is true with probability :math:`(1 + q)/2`. With
    :math:`x \sim N(m, \Sigma)`, :math:`C = \Sigma + s^2I`, :math:`b = C^{-1}\Sigma\theta`,

    .. math:: \theta^Tx\,|\,z \sim N(\theta^Tm + b^T(z - m), v), \quad v = \theta^T\Sigma\theta - b^T\Sigma\theta,

    so :math:`P(y|z) = \frac12(1 + qy\bar f)`, :math:`\bar f = E\tanh(u/2)`, :math:`u \sim N(a + b^Tz, v)`. For each
    walker :math:`\bar f` is a function of one variable. "quadrature" tabulates it at 201 points and interpolates by
    cubics (error below 1e-6). "chebyshev" is the paper's second-order polynomial on [-3, 3], which is a straight line,
    clipped to [-1, 1].

    An evaluation costs O(Nd). Trajectories use the gradient of an approximation: the marginal of z is exact, and the
    log-likelihood of the labels is expanded to second order in :math:`\varphi = c(v)(a, b)` at a pilot estimate, where
    c(v) is the derivative of :math:`\bar f` at zero divided by that of :math:`\tanh(u/2)`. The accept step evaluates
    the exact density.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import LogisticRecordModel
    >>> from skldp.protocols import LabelRecordProtocol
    >>> protocol = LabelRecordProtocol(epsilon=1.0, n_features=2)
    >>> model = LogisticRecordModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100))))
    >>> model.log_density(np.full((5, model.n_params), 0.1)).shape
    (5,)
    """

    def __init__(self, aggregate, prior="auto", *, fit_intercept=True, link="quadrature"):
        link, protocol = check_choice(link, "link", LINKS), aggregate.protocol
        likelihoods = [LabelRecordLikelihood(part, tally, link) for part, tally in aggregate.parts.items()
                       if tally.n_reports]
        self.reported = ReportedMoments.pooled([part.reported(fit_intercept) for part in likelihoods],
                                               protocol.n_features)
        super().__init__(likelihoods, logistic_coordinates(protocol, fit_intercept, prior, self.reported),
                         Units(protocol.data_norm))

    @cached_property
    def approximation(self):
        """The same model with the log-likelihood of the labels expanded at a pilot estimate."""
        start = self.coordinates.start(self.reported.covariance[:-1, :-1])
        return _ExpandedModel(self, start, n_rounds=4)

    def surrogate(self, theta):
        """Return the gradient with the log-likelihood of the labels expanded at the pilot estimate."""
        return self.approximation.gradient(theta)[1]

    def initial(self):
        """Return the pilot estimate."""
        return self.approximation.initial()

    def report_log_likelihoods(self, protocol, theta):
        """Return the log-likelihood of each extreme report of a protocol, shape (n_reports, n_walkers)."""
        mechanism, point = protocol.randomizer, self.coordinates.expand(theta)
        predictor = Predictor(max(mechanism.noise_variance, LEAST_NOISE), point)
        log_determinant = np.linalg.slogdet(predictor.precision)[1]
        values = []
        for *record, label in mechanism.decode(protocol.extreme_reports()):
            deviation = record - predictor.x_mean
            mean = tanh_means(predictor.offset + predictor.weights @ record, predictor.variance)[0]
            values.append(0.5 * (log_determinant - np.vecdot(deviation, matvec(predictor.precision, deviation)))
                          + np.log1p(np.maximum(mechanism.contrast * label * mean, -1 + 1e-12)))
        return np.array(values)

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        value = point.log_prior()
        for part in self.likelihoods:
            value = value + part.marginal(point, False)[0] + part.labels(Predictor(part.noise, point))
        return value, None


class _ExpandedModel(Approximation):
    """A LogisticRecordModel with the log-likelihood of the labels expanded to second order at a pilot estimate."""

    def _approximate_at(self, theta):
        point = self.coordinates.expand(theta[None])
        self.centres = [Predictor(part.noise, point).shrunk()[0] for part in self.likelihoods]
        self.expansions = [part.expansion(centre) for part, centre in zip(self.likelihoods, self.centres)]

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        value, zeros = point.log_prior(), np.zeros_like(point.coef)
        sums = [zeros, np.zeros_like(point.covariance), zeros, zeros[:, 0]]
        for part, centre, (gradient, information) in zip(self.likelihoods, self.centres, self.expansions):
            marginal, by_mean, by_covariance = part.marginal(point, True)
            predictor = Predictor(part.noise, point)
            step = predictor.shrunk() - centre
            change = step @ information
            value = value + marginal + step @ gradient - 0.5 * np.vecdot(step, change)
            by_labels = predictor.pull_back(gradient - change)
            by_marginal = (0.0, by_covariance, 0.0 if by_mean is None else by_mean, 0.0)
            sums = [total + one + two for total, one, two in zip(sums, by_labels, by_marginal)]
        return value, point.gradient(*sums)
