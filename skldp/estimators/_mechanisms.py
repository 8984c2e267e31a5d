"""What a client of a regression sends: moments of its record, or the noisy record itself."""

import math

from sklearn.base import BaseEstimator

from skldp._validation._parameters import check_choice, check_fraction, check_positive, is_auto
from skldp.exceptions import InvalidParameterError
from skldp.models.regression._label_records import LINKS

_KINDS = {"auto": ("sphere", "axis"), "sphere": ("sphere",), "axis": ("axis",), "gaussian": ("gaussian",)}
SCORE_CONSTANT = 0.3  # weight of the constant in score and curvature
_VECTORS = {"auto": "sphere", "axis": "sphere"}  # of a score and a curvature, which are no products of a record


class Moments(BaseEstimator):
    r"""Mechanism of a regression: clients send noisy second moments of their record and response.

    Parameters
    ----------
    kind : {"auto", "sphere", "axis", "gaussian"}, default="auto"
        How the moments are randomised. The sphere and the axis have pure epsilon, and need at least three times fewer
        clients for the same posterior than Gaussian noise. From epsilon 1.5 or 2 on the axis needs fewest, and its
        report has d + 3 integers. "auto" is one of these two, by :func:`skldp.protocols.moment_mechanism`; several
        rounds, and responses other than numbers and two labels, have the sphere.
    y_weight : "auto" or float, default="auto"
        Weight of each response in a report, relative to a record of length 1. A larger weight means less noise on the
        moments with the response and more on all others. "auto" is :math:`1/\sqrt k` for k responses.
    intercept_weight : "auto" or float, default="auto"
        Weight of the constant, likewise. "auto" is :math:`\sqrt{1/2}` for the linear and 0.3 for the logistic
        regression, 1/2 for a covariance, and :func:`skldp.protocols.axis_constant` for axes. Ignored without an
        intercept or mean.

    See Also
    --------
    Records : Clients send the noisy record itself.

    Examples
    --------
    >>> from skldp import LDPBayesLinearRegression, Moments
    >>> LDPBayesLinearRegression(mechanism=Moments(y_weight=0.5)).protocol(n_features=2).y_weight
    0.5
    """

    def __init__(self, *, kind: str = "auto", y_weight: float | str = "auto",
                 intercept_weight: float | str = "auto") -> None:
        self.kind = kind
        self.y_weight = y_weight
        self.intercept_weight = intercept_weight

    def _chosen(self):
        """Return the fields of a protocol that are not left at "auto"."""
        fields = {"mechanism": self.kind, "y_weight": self.y_weight, "intercept_weight": self.intercept_weight}
        return {name for name, value in fields.items() if not is_auto(value)}

    def _kinds(self):
        """Return the mechanisms that a protocol may have."""
        return check_choice(self.kind, "kind", _KINDS)

    def _options(self, fit_intercept, n_responses=1):
        """Return the fields of a protocol of moments."""
        self._kinds()
        return {"mechanism": self.kind,
                "y_weight": _weight(self.y_weight, "y_weight", 1 / math.sqrt(n_responses)),
                "intercept_weight": self._constant("auto") if fit_intercept else 0.0}

    def _score_options(self, fit_intercept):
        """Return the fields of a protocol of score and curvature, which are no products of a record."""
        self._kinds()
        return {"mechanism": vector_mechanism(self.kind),
                "intercept_weight": self._constant(SCORE_CONSTANT) if fit_intercept else 0.0}

    def _constant(self, default):
        return _weight(self.intercept_weight, "intercept_weight", default)


class Records(BaseEstimator):
    """Mechanism of a regression: clients send their record with Gaussian noise, and a label by randomised response.

    Parameters
    ----------
    budget_split : float, default=0.5
        Share of epsilon that the label gets. A numeric response is part of the noisy vector and needs no share.
    link : {"quadrature", "chebyshev"}, default="quadrature"
        How the model averages the probability of a label over the record given its noisy report: by quadrature, or by
        the paper's polynomial.

    See Also
    --------
    Moments : Clients send second moments, which needs fewer clients.

    Examples
    --------
    >>> from skldp import LDPBayesLogisticRegression, Records
    >>> model = LDPBayesLogisticRegression(classes=["no", "yes"], mechanism=Records(budget_split=0.3))
    >>> model.protocol(n_features=2).budget_split
    0.3
    """

    def __init__(self, *, budget_split: float = 0.5, link: str = "quadrature") -> None:
        self.budget_split = budget_split
        self.link = link

    def _chosen(self):
        """Return the fields of a protocol in which cohorts might differ: none."""
        return set()

    def _validated(self):
        """Check the parameters and return self."""
        check_fraction(self.budget_split, "budget_split")
        check_choice(self.link, "link", LINKS)
        return self


_MECHANISMS = {
    "auto": Moments(),
    "sphere": Moments(kind="sphere"),
    "axis": Moments(kind="axis"),
    "gaussian": Moments(kind="gaussian"),
    "records": Records(),
}


def check_mechanism(mechanism):
    """Return the mechanism object for a name, or the object itself."""
    if isinstance(mechanism, Moments):
        return mechanism
    if isinstance(mechanism, Records):
        return mechanism._validated()
    if not isinstance(mechanism, str) or mechanism not in _MECHANISMS:
        words = ", ".join(f'"{word}"' for word in _MECHANISMS)
        raise InvalidParameterError(f"mechanism must be one of {words}, or an object Moments(...) or Records(...), got "
                                    f"{mechanism!r}.")
    return _MECHANISMS[mechanism]


def sends_records(mechanism):
    """Whether clients send noisy records; a word that is not known does not raise."""
    return isinstance(_MECHANISMS.get(mechanism) if isinstance(mechanism, str) else mechanism, Records)


def vector_mechanism(mechanism):
    """Return the name of the mechanism that randomises score and curvature in a collection with this one."""
    return _VECTORS.get(mechanism, mechanism)


def _weight(value, name, default):
    return default if is_auto(value) else check_positive(value, name)
