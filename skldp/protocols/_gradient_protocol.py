"""Protocol for the gradient of each client's loss at a public model."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._door import as_column, as_float_table
from skldp._validation._limits import MAX_ENTRIES, MAX_FEATURES
from skldp._validation._parameters import check_choice, check_integer, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import BALL_RADIUS, encode_ball
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._sphere import Sphere
from skldp.privacy._spending import spend
from skldp.privacy._words import RandomState, word_source
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._base import Protocol, joined, warn_seeded
from skldp.protocols._description import describe, is_id_of
from skldp.protocols._gradient_losses import LOSSES
from skldp.protocols._gradient_model import GradientModel
from skldp.protocols._possible_sums import column_sums, too_many_reports, within_box
from skldp.protocols._tallies import Tally
from skldp.protocols._vector_reports import MECHANISMS, possible_vector_sums

_LARGEST_PREDICTION = 1e150  # predictions of a hostile model are clipped to this, so that no product overflows


@dataclass(frozen=True, kw_only=True)
class GradientProtocol(Protocol):
    r"""Each client sends the noisy gradient of its own loss at the model that it received.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client, which takes part once.
    delta : float, default=1e-5
        Failure probability of a client; used by Gaussian noise, 0 for the sphere.
    data_norm : float, default=1.0
        Public radius R; records are clipped to the ball :math:`\|x\|_2 \le R`.
    loss : {"logistic", "softmax", "squared"}, default="logistic"
        Loss of a client; "softmax" is that of two or more labels.
    classes : tuple, default=(-1, 1)
        The public labels: two of the logistic loss, the negative one first, or K of the softmax.
    bounds_y : tuple of float, default=(-1, 1)
        Public interval of the response of the squared loss; responses are clipped to it.
    mechanism : {"gaussian", "sphere"}, default="gaussian"
        How the gradient is randomised: Gaussian noise for the sensitivity ``2 * clip_norm``, or the sphere, which is
        pure epsilon.
    clip_norm : float, default=1.0
        Public norm C to which gradients are clipped. The noise is proportional to it.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    n_features : int, default=1
        Length of x.

    Notes
    -----
    *Coordinates.* With :math:`u = x/R`, :math:`\tilde u = (u, 1)` (:math:`\tilde u = u` without intercept) and the
    parameters :math:`\theta`, the losses are :math:`\log(1 + e^{-t\theta\cdot\tilde u})` with the label
    :math:`t = \pm 1`, and :math:`\frac12(\theta\cdot\tilde u - t)^2` with :math:`t = (y - c)/h`, c the midpoint and h
    half the width of ``bounds_y``. Without intercept c = 0 and h is the larger absolute bound, so that the model goes
    through the origin on both scales. All are public constants. The softmax of K labels has a matrix of parameters
    :math:`\theta`, one row for each of K - 1 orthonormal contrasts H of the labels, in the order of its rows, and the
    loss :math:`-\log p_k` of label k with :math:`p = \mathrm{softmax}(H\theta\tilde u)`.

    *Report.* The gradient, :math:`-t\,\sigma(-t\theta\cdot\tilde u)\tilde u`, :math:`H^T(p - e_k)\tilde u^T` or
    :math:`(\theta\cdot\tilde u - t)\tilde u`, is clipped to norm C, rounded to integers of norm at most :math:`2^{16}`
    (checked in integers) and randomised. Any two clipped gradients are at most 2C apart for any model, by the triangle
    inequality, so each report is private against a server that chooses its models freely. Before clipping, the norm is
    at most :math:`\|\tilde u\|` for the logistic loss and below :math:`\sqrt2\|\tilde u\|` for the softmax, because
    :math:`\|p - e_k\|^2 \le 2(1 - p_k)^2`; at the first model it is :math:`\sqrt{1 - 1/K}\|\tilde u\|`. Contrasts do
    not change this norm, and save the noise of an entry that is always zero.

    *Records outside the domain.* No value raises: a missing feature becomes 0, a missing response becomes the midpoint
    of its bounds, and an unknown label has the gradient 0, which carries no information.

    References
    ----------
    J. Duchi, M. Jordan, M. Wainwright (2018). Minimax optimal procedures for locally private estimation. JASA.

    Examples
    --------
    >>> from skldp.protocols import GradientProtocol, Protocol
    >>> protocol = GradientProtocol(epsilon=1.0, mechanism="sphere", n_features=3)
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.1, -0.5, 0.3], 1)  # at the first model
    >>> report.shape, protocol.check(report)
    ((1, 5), array([ True]))
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    data_norm: float = 1.0
    loss: str = "logistic"
    classes: tuple | None = (-1, 1)
    bounds_y: tuple | None = (-1.0, 1.0)
    mechanism: str = "gaussian"
    clip_norm: float = 1.0
    fit_intercept: bool = True
    n_features: int = 1

    def __post_init__(self):
        classes, bounds_y = check_choice(self.loss, "loss", LOSSES).check_domain(self.classes, self.bounds_y)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "bounds_y", bounds_y)
        object.__setattr__(self, "data_norm", check_positive(self.data_norm, "data_norm"))
        object.__setattr__(self, "clip_norm", check_positive(self.clip_norm, "clip_norm"))
        object.__setattr__(self, "fit_intercept", bool(self.fit_intercept))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        if self.dimension > MAX_ENTRIES:
            raise InvalidParameterError(f"n_features={self.n_features} and these classes mean a gradient of "
                                        f"{self.dimension} entries, and a report may have {MAX_ENTRIES}. Send fewer "
                                        "features, or merge classes.")
        randomizer = self.randomizer  # an impossible budget raises here, not on the first client
        object.__setattr__(self, "epsilon", randomizer.epsilon)
        object.__setattr__(self, "delta", randomizer.delta)

    @cached_property
    def id(self) -> str:
        """Digest of the description; cached, because every model contains it."""
        return super().id

    @property
    def dimension(self) -> int:
        """Number of entries of a gradient."""
        return math.prod(self._shape)

    @property
    def _shape(self) -> tuple:
        """Shape of the parameters: a row of coefficients, with the constant last, for each entry of a prediction."""
        return (*LOSSES[self.loss].shape(self), self.n_features + self.fit_intercept)

    @cached_property
    def randomizer(self) -> Gaussian | Sphere:
        """Mechanism that randomises a gradient."""
        construct = check_choice(self.mechanism, "mechanism", MECHANISMS)
        return construct(epsilon=self.epsilon, delta=self.delta, norm=self.clip_norm, n_features=self.dimension)

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.randomizer.width

    @property
    def smoothness(self) -> float:
        r"""Largest curvature of any client's loss: :math:`\|\tilde u\|^2` times 1/4 (logistic), 1/2 (softmax) or 1."""
        return (1 + self.fit_intercept) * LOSSES[self.loss].curvature

    @cached_property
    def report_variance(self) -> float:
        r"""Largest mean square :math:`C^2 + m\tau^2` of a decoded report of m entries with noise variance tau^2."""
        return self.clip_norm**2 + self.dimension * self.randomizer.noise_variance

    @property
    def response_scale(self) -> tuple[float, float]:
        """Public midpoint c and scale h of the response; 0 and 1 for labels."""
        if self.bounds_y is None:
            return 0.0, 1.0
        lower, upper = self.bounds_y
        if not self.fit_intercept:
            return 0.0, max(abs(lower), abs(upper))
        return lower + (upper - lower) / 2, (upper - lower) / 2

    @property
    def labels(self) -> tuple | None:
        """The public labels; None for the squared loss."""
        return self.classes

    def _features_of(self, width):
        return self.n_features + (width - self.width) // math.prod(self._shape[:-1])

    def start(self) -> GradientModel:
        """Return the model of the first round, with all parameters zero.

        Returns
        -------
        GradientModel
        """
        return GradientModel(self.id, 0, (0.0,) * self.dimension)

    def natural(self, theta: ArrayLike) -> tuple[np.ndarray, float | np.ndarray]:
        """Return coefficients and intercept on the scale of the records, from parameters in scaled coordinates.

        Parameters
        ----------
        theta : array-like of shape (dimension,)
            Parameters.

        Returns
        -------
        coef : ndarray of shape (n_features,), or (n_classes, n_features) for the softmax
        intercept : float, or ndarray of shape (n_classes,) for the softmax
        """
        scores = LOSSES[self.loss].scores(np.asarray(theta, dtype=np.float64).reshape(self._shape))
        centre, scale = self.response_scale
        intercept = centre + scale * scores[..., -1] if self.fit_intercept else np.zeros(scores.shape[:-1])
        coef = scores[..., :self.n_features] * (scale / self.data_norm)
        return coef, intercept if intercept.ndim else float(intercept)

    def gradient(self, X: ArrayLike, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Gradients of the clients' losses before clipping and noise. They are private data.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Records.
        y : array-like of shape (n,)
            Labels or responses.
        theta : array-like of shape (dimension,)
            Parameters.

        Returns
        -------
        ndarray of shape (n, dimension)
        """
        X, target = self._plain(X, y)
        codes = encode_ball(X, self.data_norm)
        return self._gradient(codes, target, np.asarray(theta, dtype=np.float64))

    def mean_gradient(self, aggregate: Aggregate) -> np.ndarray:
        """Unbiased estimate of the mean clipped gradient, from the sums of reports.

        Parameters
        ----------
        aggregate : Aggregate
            What :meth:`aggregate` returned, with at least one report.

        Returns
        -------
        ndarray of shape (dimension,)
        """
        tally = aggregate.parts[self]
        return self.randomizer.decode(tally.sums[None, :] / tally.n_reports)[0]

    def privatize(self, X: ArrayLike, y: ArrayLike | None = None, random_state: RandomState = None,
                  model: GradientModel | None = None) -> np.ndarray:
        """Randomise the gradients of records, on the client. Asking a client again spends its budget again.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n_features,)
            Records, one row each, or a single one.
        y : array-like of shape (n,), or scalar
            Labels or responses. No value of X or y raises or warns.
        random_state : None or a seed
            ``None`` is the operating system's entropy. Anything else is for simulations, protects nobody, and warns.
        model : GradientModel or None
            The model that the server sent; ``None`` is the first model.

        Returns
        -------
        ndarray of int, shape (n, width)
            Reports, ready to be sent.
        """
        warn_seeded(random_state)
        return self._randomize(X, y, random_state, model)

    def _randomize(self, X, y, random_state, model=None):
        X, y = self._plain(X, y)
        return joined(self._draw(X, y, random_state, model))

    def _plain(self, X, y):
        X = as_float_table(X, self.n_features)
        if y is None:
            raise InvalidParameterError("y must be given: a gradient needs a label or response. A missing one is NaN.")
        return X, LOSSES[self.loss].targets(self, as_column(y, len(X)))

    def _draw(self, X, y, random_state, model=None):
        theta, number = self._parameters(model)
        spend(self.epsilon, self.delta, X)
        codes, target = encode_ball(X, self.data_norm), y
        if random_state is not None:
            # The model and its round are part of the key, so that no two rounds share noise, for any records.
            random_state = word_source(random_state, repr(self), f"round {number}", theta, codes, target)
        yield self.randomizer.randomize(self._gradient(codes, target, theta), random_state)

    def _parameters(self, model):
        model = self.start() if model is None else model
        # The cached id is compared first; servers of earlier versions send ids of 64 bits.
        own = model.protocol_id == self.id or is_id_of(model.protocol_id, describe(self))
        if not own or len(model.theta) != self.dimension:
            raise InvalidParameterError("This model belongs to another protocol. Ask the server for the right one.")
        return np.array(model.theta), model.round

    def _gradient(self, codes, target, theta):
        theta = theta.reshape(self._shape)
        u = np.ones((len(codes), self._shape[-1]))
        np.divide(codes, BALL_RADIUS, out=u[:, :self.n_features])
        with np.errstate(all="ignore"):
            prediction = np.clip(u @ theta.T, -_LARGEST_PREDICTION, _LARGEST_PREDICTION)
            slope = LOSSES[self.loss].slope(target, prediction)
            products = slope[..., None] * np.expand_dims(u, tuple(range(1, slope.ndim)))
        return products.reshape(len(u), self.dimension)

    def _valid_rows(self, reports):
        return self.randomizer.valid(reports)

    def _possible(self, tally):
        if tally.sums.shape != (self.width,) or tally.sums.dtype != np.int64:
            return False
        return possible_vector_sums(tally.sums, tally.n_reports, self.randomizer)

    def _tally(self, reports):
        sums = column_sums(reports)
        if not within_box(sums, 2**63 - 1):
            raise too_many_reports()
        return Tally(len(reports), sums.astype(np.int64))
