"""Protocols with records of clients, for the tests of the common contract."""

import math
import re
import warnings
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from skldp.exceptions import SeededNoiseWarning
from skldp.protocols import (
    CategoryProtocol,
    CountRoundProtocol,
    CovarianceProtocol,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    PairProtocol,
    RecordProtocol,
    RoundProtocol,
    SampledLabelMomentProtocol,
    SampledMomentProtocol,
    SampledValueProtocol,
    ValueProtocol,
)

N_RECORDS = 60
LETTERS = tuple("abcdefghijk")
ROWS = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
# Another value for each field; a protocol with it belongs to another collection.
OTHER_VALUES = {
    "bounds": (-7.0, 8.0), "n_levels": 33, "data_norm": 3.0, "bounds_y": (-7.0, 8.0),
    "y_weight": 0.3, "intercept_weight": 0.3, "budget_split": 0.3, "clip_norm": 3.0, "n_features": 4,
    "curvature_weight": 0.7, "features_per_client": 5,
}
BUDGET = {"epsilon", "delta"}
ROUNDS = (RoundProtocol, CountRoundProtocol)


@dataclass(eq=False)
class Case:
    """A protocol, records of its clients, and the options of its aggregates."""

    kind: type
    options: dict
    keep_rows: bool = False

    @cached_property
    def protocol(self):
        return self.kind(**self.options)

    @cached_property
    def X(self):
        """Records inside the public domain, read-only."""
        rng, protocol = np.random.default_rng(0), self.protocol
        if self.kind is CategoryProtocol:
            rows = np.array(protocol.categories, dtype=object).reshape(len(protocol.categories), -1)
            return read_only(rows[rng.integers(len(rows), size=N_RECORDS)])
        if self.kind is PairProtocol:
            columns = [np.array(part, dtype=object)[rng.integers(len(part), size=N_RECORDS)]
                       for part in protocol.categories]
            return read_only(np.stack(columns, axis=1))
        bounds = protocol.bounds if issubclass(self.kind, ValueProtocol) else (-1.0, 1.0)
        return read_only(rng.uniform(*bounds, size=(N_RECORDS, protocol.n_features)))

    @cached_property
    def y(self):
        """Responses inside the public domain, for the protocols that have them."""
        rng, protocol = np.random.default_rng(1), self.protocol
        if issubclass(self.kind, (ValueProtocol, CategoryProtocol, PairProtocol, CovarianceProtocol)):
            return None
        if getattr(protocol, "classes", None) is not None:
            return read_only(np.array(protocol.classes)[rng.integers(len(protocol.classes), size=N_RECORDS)])
        if self.kind is CountRoundProtocol:
            return read_only(rng.integers(protocol.bounds_y[1] + 1, size=N_RECORDS))
        bounds = np.transpose(protocol.bounds_y)
        return read_only(rng.uniform(*bounds, size=(N_RECORDS, *bounds.shape[1:])))

    @cached_property
    def reports(self):
        """Reports of the records, from a fixed seed."""
        return read_only(simulate(self.protocol, self.X, self.y))

    @property
    def report_dtype(self):
        """Integer dtype of the reports."""
        has_own = issubclass(self.kind, (ValueProtocol, PairProtocol))
        return self.protocol.report_dtype if has_own else self.protocol.randomizer.report_dtype

    def aggregate(self, reports, on_invalid="raise"):
        options = {"keep_rows": True} if self.keep_rows else {}
        return self.protocol.aggregate(reports, on_invalid, **options)

    def responses(self, y):
        """Return ``y``, in each column if there are several responses, or None for a protocol without responses."""
        if self.y is None or self.y.ndim == 1:
            return None if self.y is None else y
        column = np.empty(np.size(y), dtype=object)
        column[:] = np.atleast_1d(y)
        return np.tile(column[:, None], self.y.shape[1])

    @cached_property
    def others(self):
        """Protocols of other collections that differ in one field, by that field."""
        comparable = {one.name for one in fields(self.kind)} - BUDGET - set(self.protocol._automatic)
        comparable -= self.protocol._of_cohort
        return self._differing(comparable)

    @cached_property
    def cohorts(self):
        """Protocols that differ in one field that belongs to a cohort, by that field."""
        return self._differing(set(self.protocol._of_cohort))

    def _differing(self, comparable):
        if self.kind is CategoryProtocol:
            comparable.discard("n_features")  # which cannot change without the categories
        if self.kind in ROUNDS:
            comparable.discard("n_features")  # which cannot change without the model
            if not self.protocol.has_intercept:
                comparable.discard("centre")  # which is zero
        if self.kind is RoundProtocol and len(self.protocol.classes) > 2:
            comparable.discard("link")  # some links are for two labels
        comparable -= {name for name in comparable if isinstance(getattr(self.protocol, name), str)
                       and len(choices(self.kind, name)) == 1}
        made = {name: self.kind(**{**self.options, name: self._other_value(name)}) for name in sorted(comparable)}
        # Some protocols ignore some fields: the squared loss ignores the labels.
        return {name: other for name, other in made.items() if getattr(other, name) != getattr(self.protocol, name)}

    def _other_value(self, name):
        value = getattr(self.protocol, name)
        if isinstance(value, bool):
            return not value
        if isinstance(value, str):
            return max(choices(self.kind, name) - {value})
        if name == "schema":
            return (3.0, tuple((f"x{j}", "number", (-1.0, 1.0)) for j in range(self.protocol.n_features)))
        if name in ("theta", "centre", "transform"):
            value = value or {"theta": (0.0,) * self.protocol.lines.size,
                              "centre": (0.0,) * self.protocol.n_features,
                              "transform": tuple(np.eye(self.protocol.n_features).ravel())}[name]
            return (*value[:-1], value[-1] + 0.25)
        if name == "classes":
            return tuple("other" + letter for letter in LETTERS[:len(value or "ab")])
        if self.kind is CountRoundProtocol and name == "bounds_y":
            return 0, 8
        return value[::-1] if name == "categories" else OTHER_VALUES[name]


CASES = {
    "square wave": Case(ValueProtocol, {"bounds": (-2, 3)}),
    "square wave of counts": Case(ValueProtocol, {"epsilon": 0.2, "bounds": (0, 20), "n_levels": 20}),
    "square wave of three columns": Case(ValueProtocol, {"epsilon": 3.0, "n_features": 3, "window": 0.1}),
    "laplace": Case(ValueProtocol, {"bounds": (-2, 3), "mechanism": "laplace"}),
    "laplace of two columns": Case(ValueProtocol, {"epsilon": 0.5, "mechanism": "laplace", "n_levels": 20,
                                                   "n_features": 2}),
    "gaussian": Case(ValueProtocol, {"delta": 1e-5, "mechanism": "gaussian"}),
    "gaussian of two columns": Case(ValueProtocol, {"delta": 1e-6, "bounds": (1e307, 3e307), "mechanism": "gaussian",
                                                    "n_features": 2}),
    "one square wave of three": Case(SampledValueProtocol, {"epsilon": 2.0, "bounds": (-2, 3), "n_features": 3}),
    "one square wave of 300": Case(SampledValueProtocol, {"bounds": (0, 9), "n_levels": 9, "n_features": 300}),
    "one laplace of two": Case(SampledValueProtocol, {"mechanism": "laplace"}),
    "one gaussian of five": Case(SampledValueProtocol, {"delta": 1e-6, "mechanism": "gaussian", "n_features": 5}),
    "subset": Case(CategoryProtocol, {"categories": LETTERS}),
    "subset of a chosen size": Case(CategoryProtocol, {"categories": LETTERS, "subset_size": 5}),
    "subset, rows kept": Case(CategoryProtocol, {"categories": LETTERS}, keep_rows=True),
    "subset of many": Case(CategoryProtocol, {"categories": tuple(range(40)), "epsilon": 2.0}),
    "unary encoding": Case(CategoryProtocol, {"categories": (0.5, 1.5, 2.5), "mechanism": "oue"}),
    "unary encoding, rows kept": Case(CategoryProtocol, {"categories": tuple(range(9)), "mechanism": "oue"},
                                      keep_rows=True),
    "block": Case(CategoryProtocol, {"categories": LETTERS, "mechanism": "block"}),
    "block of rows": Case(CategoryProtocol, {"categories": ROWS, "n_features": 2, "mechanism": "block",
                                             "design": (7, 3)}),
    "block of many": Case(CategoryProtocol, {"categories": tuple(range(1500)), "epsilon": 2.0, "mechanism": "block"}),
    "two attributes": Case(PairProtocol, {"categories": (LETTERS, (1, 2, 3))}),
    "four attributes": Case(PairProtocol, {"epsilon": 2.0, "categories": (("a", "b"), (1, 2, 3), (False, True),
                                                                          LETTERS)}),
    "randomised response": Case(CategoryProtocol, {"categories": ("no", "yes", "?"), "mechanism": "rr"}),
    "subset of rows": Case(CategoryProtocol, {"categories": ROWS, "n_features": 2}),
    "randomised response of rows": Case(CategoryProtocol, {"categories": ROWS, "n_features": 2, "mechanism": "rr"}),
    "sphere moments": Case(MomentProtocol, {"n_features": 2, "bounds_y": (0, 10), "data_norm": 0.5}),
    "sphere moments of three responses": Case(MomentProtocol, {"n_features": 2, "y_weight": 0.5,
                                                               "bounds_y": ((0, 10), (-1, 1), (5, 6))}),
    "gaussian moments of two responses": Case(MomentProtocol, {"mechanism": "gaussian", "intercept_weight": 0.0,
                                                               "bounds_y": ((0, 10), (-2, 1))}),
    "axis moments": Case(MomentProtocol, {"n_features": 2, "bounds_y": (0, 10), "mechanism": "axis", "epsilon": 3.0}),
    "axis moments without constant": Case(MomentProtocol, {"n_features": 3, "intercept_weight": 0.0, "y_weight": 0.9,
                                                           "mechanism": "axis", "data_norm": 0.5}),
    "axis moments of three responses": Case(MomentProtocol, {"n_features": 2, "y_weight": 0.5, "mechanism": "axis",
                                                             "bounds_y": ((0, 10), (-1, 1), (5, 6))}),
    "axis label moments": Case(LabelMomentProtocol, {"n_features": 2, "mechanism": "axis", "classes": ("no", "yes")}),
    "axis label moments without constant": Case(LabelMomentProtocol, {"n_features": 1, "mechanism": "axis",
                                                                      "intercept_weight": 0.0, "epsilon": 8.0}),
    "moments of two features of four": Case(SampledMomentProtocol, {"n_features": 4, "bounds_y": (0, 10),
                                                                    "epsilon": 3.0, "data_norm": 2.0}),
    "moments of three features of three": Case(SampledMomentProtocol, {"n_features": 3, "features_per_client": 3,
                                                                       "intercept_weight": 0.0, "y_weight": 0.9}),
    "moments of two features and two responses": Case(SampledMomentProtocol, {"n_features": 3,
                                                                              "bounds_y": ((0, 10), (-1, 1))}),
    "label moments of three features of five": Case(SampledLabelMomentProtocol, {
        "n_features": 5, "features_per_client": 3, "classes": ("no", "yes")}),
    "label moments of two features without constant": Case(SampledLabelMomentProtocol, {
        "n_features": 3, "intercept_weight": 0.0, "epsilon": 8.0}),
    "sphere moments without constant": Case(MomentProtocol, {"n_features": 3, "intercept_weight": 0.0,
                                                             "y_weight": 0.9}),
    "gaussian moments": Case(MomentProtocol, {"n_features": 2, "mechanism": "gaussian", "epsilon": 3.0}),
    "gaussian moments without constant": Case(MomentProtocol, {"mechanism": "gaussian", "intercept_weight": 0.0}),
    "sphere label moments": Case(LabelMomentProtocol, {"n_features": 2, "data_norm": 2.0}),
    "sphere label moments without constant": Case(LabelMomentProtocol, {"n_features": 3, "intercept_weight": 0.0,
                                                                        "y_weight": 0.9}),
    "gaussian label moments": Case(LabelMomentProtocol, {"n_features": 2, "classes": ("no", "yes"),
                                                         "mechanism": "gaussian", "epsilon": 3.0}),
    "gaussian label moments without constant": Case(LabelMomentProtocol, {"mechanism": "gaussian",
                                                                          "intercept_weight": 0.0}),
    "sphere covariance": Case(CovarianceProtocol, {"n_features": 3, "data_norm": 2.0}),
    "sphere covariance without constant": Case(CovarianceProtocol, {"n_features": 2, "intercept_weight": 0.0}),
    "axis covariance": Case(CovarianceProtocol, {"n_features": 2, "mechanism": "axis", "epsilon": 3.0}),
    "gaussian covariance": Case(CovarianceProtocol, {"n_features": 2, "mechanism": "gaussian", "epsilon": 3.0}),
    "gaussian covariance without constant": Case(CovarianceProtocol, {"mechanism": "gaussian", "delta": 1e-6,
                                                                      "intercept_weight": 0.0}),
    "records": Case(RecordProtocol, {"n_features": 2, "bounds_y": (0, 10), "epsilon": 0.5}),
    "records without centring": Case(RecordProtocol, {"n_features": 3, "bounds_y": (-1, 4), "centred": False,
                                                      "delta": 1e-9}),
    "labelled records": Case(LabelRecordProtocol, {"n_features": 2, "classes": (False, True), "epsilon": 0.5}),
    "labelled records, small label budget": Case(LabelRecordProtocol, {"n_features": 3, "budget_split": 0.1}),
    "logistic gradients": Case(GradientProtocol, {"n_features": 3}),
    "logistic gradients on the sphere": Case(GradientProtocol, {"n_features": 2, "classes": ("no", "yes"),
                                                                "mechanism": "sphere", "data_norm": 2.0}),
    "softmax gradients": Case(GradientProtocol, {"n_features": 3, "loss": "softmax", "classes": LETTERS[:3]}),
    "softmax gradients on the sphere": Case(GradientProtocol, {"loss": "softmax", "classes": (1, 2, 4, 8),
                                                               "mechanism": "sphere", "fit_intercept": False}),
    "squared gradients": Case(GradientProtocol, {"n_features": 3, "loss": "squared", "bounds_y": (0, 10)}),
    "squared gradients on the sphere": Case(GradientProtocol, {"loss": "squared", "mechanism": "sphere",
                                                               "fit_intercept": False, "clip_norm": 0.5}),
    "score and curvature": Case(RoundProtocol, {"n_features": 2, "theta": (-0.4, 2.0, 0.5), "centre": (0.1, -0.2),
                                                "transform": (1.5, 0.3, 0.0, 0.8), "intercept_weight": 0.5}),
    "score and curvature without constant": Case(RoundProtocol, {
        "n_features": 3, "theta": (0.0, 2.0, 0.5, -1.0), "centre": (0.0,) * 3, "classes": ("no", "yes"),
        "transform": (1.0, 0.0, 0.0, 0.2, 2.0, 0.0, -0.1, 0.4, 0.7), "data_norm": 2.0, "intercept_weight": 0.0}),
    "score and curvature of one feature": Case(RoundProtocol, {"theta": (0.3, -4.0), "epsilon": 0.2,
                                                               "transform": (3.0,), "intercept_weight": 1.0}),
    "score alone": Case(RoundProtocol, {"n_features": 2, "theta": (-0.4, 2.0, 0.5), "centre": (0.1, -0.2),
                                        "transform": (1.5, 0.3, 0.0, 0.8), "curvature_weight": 0.0}),
    "score of counts alone": Case(CountRoundProtocol, {"n_features": 2, "theta": (0.0, 1.0, -2.0),
                                                       "curvature_weight": 0.0, "intercept_weight": 0.0}),
    "score and curvature at zero": Case(RoundProtocol, {"n_features": 3}),
    "score and curvature of three labels": Case(RoundProtocol, {
        "n_features": 2, "classes": LETTERS[:3], "theta": (-0.4, 2.0, 0.5, 1.0, -3.0, 0.2), "centre": (0.1, -0.2),
        "transform": (1.5, 0.3, 0.0, 0.8), "intercept_weight": 0.5}),
    "score and curvature of five labels at zero": Case(RoundProtocol, {"classes": (1, 2, 3, 5, 8), "data_norm": 2.0,
                                                                       "intercept_weight": 0.0}),
    "gaussian score and curvature of four labels": Case(RoundProtocol, {
        "classes": (0.5, 1.5, 2.5, 4.5), "theta": (0.0, 2.0, 0.0, -1.0, 0.0, 3.0), "mechanism": "gaussian",
        "epsilon": 3.0, "intercept_weight": 0.0}),
    "counts at zero": Case(CountRoundProtocol, {"n_features": 2}),
    "counts": Case(CountRoundProtocol, {"n_features": 2, "bounds_y": (0, 5), "theta": (0.4, 1.0, -2.0),
                                        "centre": (0.1, -0.2), "transform": (1.5, 0.3, 0.0, 0.8), "data_norm": 2.0}),
    "gaussian counts of one feature": Case(CountRoundProtocol, {"bounds_y": (0, 1), "mechanism": "gaussian",
                                                                "theta": (0.0, -1.0), "intercept_weight": 0.0,
                                                                "epsilon": 3.0}),
    "gaussian score and curvature": Case(RoundProtocol, {"theta": (0.3, -4.0), "mechanism": "gaussian", "epsilon": 3.0,
                                                         "centre": (0.1,), "intercept_weight": 0.5}),
}
NOISY = list(CASES)
# The same without noise, one for each kind and mechanism. These are simulations, which clients refuse.
CASES |= {f"{name} without noise": Case(CASES[name].kind, {**CASES[name].options, "epsilon": math.inf},
                                        CASES[name].keep_rows)
          for name in ("square wave", "laplace of two columns", "gaussian", "subset", "unary encoding, rows kept",
                       "randomised response of rows", "sphere moments", "gaussian moments", "sphere label moments",
                       "gaussian label moments without constant", "records", "labelled records", "logistic gradients",
                       "softmax gradients on the sphere", "squared gradients on the sphere", "one square wave of three",
                       "sphere covariance", "axis covariance", "gaussian covariance without constant",
                       "one laplace of two", "one gaussian of five", "block of many", "two attributes",
                       "score and curvature", "gaussian score and curvature", "score and curvature of three labels",
                       "counts", "gaussian counts of one feature", "axis moments", "axis label moments",
                       "moments of two features of four", "label moments of three features of five")}
PLAIN = [name for name in CASES if name not in NOISY]
COINS = (SampledValueProtocol, PairProtocol, SampledMomentProtocol, SampledLabelMomentProtocol)
WITHOUT_COIN = [name for name in PLAIN if CASES[name].kind not in COINS]


def read_only(array):
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


def simulate(protocol, X, y=None, seed=0):
    """Reports from a fixed seed, without the warning about seeded noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return protocol.privatize(X, y, random_state=seed)


def choices(kind, name):
    """Allowed values of an option, from the error message for an unknown one."""
    try:
        kind(**{name: "nonsense"})
    except ValueError as error:
        return set(re.findall(r'"(\w+)"', str(error)))
    raise AssertionError(f"{kind.__name__} takes any {name}")


def strange_rows(width):
    """Rows that are not reports, by what is wrong with them."""
    return {"3.5": [3.5] * width, "huge": [10**30] * width, "beyond int64": [2**63] * width,
            "text": ["secret"] * width, "NaN": [math.nan] * width, "infinite": [math.inf] * width,
            "shorter": [1] * (width - 1), "longer": [1] * (width + 1), "none": None, "nested": [[1, 2]] * width,
            "one text": "text", "masked": np.ma.array([1] * width, mask=True),
            "unsigned": np.full(width, 2**64 - 1, dtype=np.uint64), "out of range": [2**62] * width}
