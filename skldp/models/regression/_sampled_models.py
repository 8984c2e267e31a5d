"""Models of regressions in which each client reports some of its features."""

import copy

from skldp.models.regression._base import highest_point
from skldp.models.regression._linear import LinearModel, Lines
from skldp.models.regression._logistic_moments import LogisticMomentModel, PlugInModel

_N_PILOTS = 2  # searches for the pilot estimate, each with the covariance at the last one


class SampledModel:
    """Model with a likelihood of sampled moments for each protocol."""

    likelihoods: list

    def with_aggregate(self, aggregate):
        """Return the model of other reports under the same protocols, with the same coordinates and correlations."""
        model = copy.copy(self)
        parts = [part for part in aggregate.parts.items() if part[1].n_reports]
        model.likelihoods = [likelihood.with_tally(*part) for likelihood, part in zip(self.likelihoods, parts)]
        return model


class SampledLinearModel(SampledModel, LinearModel):
    r"""Linear regression from reports of some features of each client.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.SampledMomentProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    The model is :class:`LinearModel`. The likelihood is a normal one of the mean of each entry over the clients who
    fill it (``SampledMomentLikelihood``). The variances are exact at every parameter; the correlations, which are small
    if a client has few of the features, are those at a pilot estimate, the mode of the posterior.

    *Calibration*, in simulations from the prior with four features, of which clients report two
    (``tests/statistical/test_sampled_calibration.py``): 90 % intervals cover 90 % at epsilon 4 and 20 with 5,000
    reports or more, and 89 % without noise. There variances of x are too small on average, by .1 posterior standard
    deviations with 5,000 reports and by .4 with 500. With more than 2,000 entries, those of 61 features, the
    correlations are neglected. Intervals are then right for uncorrelated columns, and up to three times too wide for
    columns with correlations of 0.8.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import SampledLinearModel
    >>> from skldp.protocols import SampledMomentProtocol
    >>> protocol = SampledMomentProtocol(epsilon=1.0, n_features=3)
    >>> model = SampledLinearModel(protocol.aggregate(protocol.privatize(np.zeros((100, 3)), np.zeros(100))))
    >>> value, gradient = model.gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 17))
    """

    def __init__(self, aggregate, prior="auto"):
        super().__init__(aggregate, prior)
        self.pilot = super().initial()
        for _ in range(_N_PILOTS):
            self._fix(self.pilot)
            self.pilot = highest_point(self, self.pilot)
        self._fix(self.pilot)

    def initial(self):
        """Return the pilot estimate."""
        return self.pilot

    def _fix(self, theta):
        """Fix the covariance of the reports at given parameters."""
        lines = Lines(self.coordinates.expand(theta[None]))
        mean, joint = self._moments(lines)
        for part in self.likelihoods:
            weights = part.weights
            part.fix(None if mean is None else mean[0] * weights, joint[0] * weights[:, None] * weights)


class SampledLogisticModel(SampledModel, PlugInModel):
    r"""Logistic regression from reports of some features of each client.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.SampledLabelMomentProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    The model is :class:`LogisticMomentModel`, with the likelihood and the approximations of
    :class:`SampledLinearModel`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import SampledLogisticModel
    >>> from skldp.protocols import SampledLabelMomentProtocol
    >>> protocol = SampledLabelMomentProtocol(epsilon=1.0, n_features=3)
    >>> model = SampledLogisticModel(protocol.aggregate(protocol.privatize(np.zeros((100, 3)), np.zeros(100))))
    >>> model.log_density(np.full((5, model.n_params), 0.1)).shape
    (5,)
    """

    def __init__(self, aggregate, prior="auto"):
        model = LogisticMomentModel(aggregate, prior)
        super().__init__(model, model.initial(), _N_PILOTS)
        self.reported = model.reported
