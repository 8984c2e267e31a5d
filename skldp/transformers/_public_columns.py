"""Transformer of raw columns with a public schema, which learns nothing from the data."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp._validation._parameters import check_fraction, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.protocols._description import parse
from skldp.protocols._schema import NumberColumn, Schema, column_from
from skldp.transformers._perturbers import private_table, refuse_complex
from skldp.transformers._raw_effects import raw_effects

_TYPICAL_QUANTILE = 0.95  # of the norms of a public sample


class PublicColumns(TransformerMixin, BaseEstimator):
    r"""Map raw columns, numbers and categories, to vectors in a ball, by a public schema.

    It learns nothing from the data, so it costs no privacy. No value raises: numbers are clipped to their bounds, and
    unknown categories and missing values have a public code.

    Parameters
    ----------
    data_norm : float, default=1.0
        Radius of the ball that every transformed row lies in; the ``data_norm`` of the estimator that follows.
    schema : dict, path of a JSON file, or None, default=None
        The public columns by name. The value is one of

        - ``(lower, upper)``, or ``(lower, upper, transform)`` with "log", "log1p" or "sqrt": a number;
        - a list of categories, the reference first; ``None`` among them is the category of missing values;
        - ``"bool"``;
        - a dict with ``bounds`` and perhaps ``transform``, ``centre``, ``scale`` (on the transformed scale) and
          ``missing`` (the value that replaces a missing one), or with ``categories`` and perhaps ``length``. Two
          categories that are numbers must be given in this way, because two numbers are bounds.

        Other columns of a table are left out. With ``None`` every column is a number between -1 and 1.
    typical : float, table or None, default=None
        Public knowledge of how long records usually are. The corner of the box of all bounds is far from most records,
        so that most of the ball would be empty. A number t in (0, 1] says that few records are longer than the share t
        of the longest possible one; a table with the columns of the schema is a **public** sample, whose 95 % quantile
        of lengths is used. Longer records are shortened to ``data_norm``. With ``None`` none is shortened.

    Attributes
    ----------
    schema_ : Schema
        The columns and their codes.
    data_norm_ : float
        Largest norm of a transformed row.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    BoundedScaler : For numbers that all have the same kind of bounds.
    CoefficientDisplay : Forest plot of the coefficients in raw units.

    Notes
    -----
    A number is encoded as :math:`(f(x) - c)/s`, by default in [-1, 1]. A category is a vertex of a regular simplex of
    radius r = 0.35, which separates K categories by :math:`r\sqrt{2K/(K-1)}`; indicators of the same length separate
    them by :math:`r\sqrt2`, or by r from a reference without an indicator, so that comparisons have up to four times
    the noise variance. The radius is about the usual length of the code of a number; if few columns are categories and
    their comparison matters most, ``{"categories": [...], "length": 1}`` gives them more of the ball. The codes of all
    columns, side by side, are divided by their largest (or typical) length.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import LDPBayesLinearRegression, PublicColumns
    >>> schema = {"carat": (0.2, 2.5, "log"), "depth": (55, 68), "cut": ["Fair", "Good", "Ideal"], "owner": "bool"}
    >>> columns = PublicColumns(schema=schema)
    >>> columns.fit_transform([[0.2, 68, "Ideal", True], [None, 61.5, "unknown", None]]).round(2)
    array([[-0.67,  0.67,  0.  ,  0.23,  0.23],
           [ 0.  ,  0.  ,  0.  ,  0.  ,  0.  ]])
    >>> columns.get_feature_names_out()
    array(['carat', 'depth', 'cut_0', 'cut_1', 'owner'], dtype=object)
    >>> model = make_pipeline(columns, LDPBayesLinearRegression(bounds_y=(300, 20_000)))
    """

    def __init__(self, *, data_norm: float = 1.0, schema: Any = None, typical: Any = None) -> None:
        self.data_norm = data_norm
        self.schema = schema
        self.typical = typical

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the schema against the names of the columns; nothing is learned from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns)
            Only its shape and column names are used.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        self
        """
        refuse_complex(X)
        n_columns = private_table(self, X, reset=True).shape[1]
        self.schema_ = self._schema(n_columns)
        self._places = self._columns_of(X, n_columns)
        self.data_norm_ = check_positive(self.data_norm, "data_norm")
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map records into the ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns)
            Records, with the columns that ``fit`` has seen.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        table = private_table(self, X, reset=False)
        return self.data_norm_ * self.schema_.encode(table[:, self._places])

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the transformed columns.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array(self.schema_.terms, dtype=object)

    def protocol(self, estimator: Any) -> Any:
        """Return the protocol of a regression whose clients have raw records.

        Parameters
        ----------
        estimator : LDPBayesLinearRegression, LDPBayesLogisticRegression or Pipeline
            The regression, or a pipeline of this transformer and it.

        Returns
        -------
        Protocol
            It contains the schema. A client that reads its JSON reports a raw record, such as a dict by names, and
            needs no scikit-learn.

        Examples
        --------
        >>> from skldp import LDPBayesLinearRegression, PublicColumns
        >>> from skldp.protocols import Client
        >>> columns = PublicColumns(schema={"carat": (0.2, 2.5), "cut": ["Fair", "Good", "Ideal"]})
        >>> text = columns.protocol(LDPBayesLinearRegression(bounds_y=(300, 20_000))).to_json()
        >>> Client(text).report({"carat": 0.7, "cut": "Ideal", "price": 2400}).shape
        (1, 15)
        """
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        schema = self._schema(None)
        protocol = estimator.protocol(schema.width)
        if protocol.data_norm != check_positive(self.data_norm, "data_norm"):
            raise InvalidParameterError(f"data_norm is {self.data_norm!r} here and {protocol.data_norm!r} in the "
                                        "estimator. Give both the same.")
        return protocol.with_schema(schema)

    def to_json(self) -> str:
        """Return the schema as JSON text, which a file for ``schema`` may contain.

        Returns
        -------
        str
        """
        schema = self._schema(None)
        entries: dict[str, Any] = {}
        for column in schema.columns:
            if isinstance(column, NumberColumn):
                entries[column.name] = {"bounds": column.bounds, "transform": column.transform,
                                        "centre": column.centre, "scale": column.scale, "missing": column.missing}
            else:
                entries[column.name] = {"categories": column.levels, "length": column.length}
        return json.dumps(entries)

    def raw_coefficients(self, pipeline: Pipeline, level: float = 0.95) -> Any:
        """Return the coefficients of a fitted pipeline in raw units, with intervals.

        Parameters
        ----------
        pipeline : Pipeline
            A fitted pipeline of this transformer and a regression.
        level : float, default=0.95
            Posterior probability inside the intervals.

        Returns
        -------
        DataFrame
            A row for each term, with posterior mean, standard deviation and interval: the change of the response per
            unit of a number (of its logarithm, if that is its transform), and of every category against the reference.
            The intercept is the response where all numbers (or transformed numbers) are 0, in the reference categories.
            A logistic regression has odds ratios as well. With three or more classes, or several responses, the rows
            are pairs of a class (or the response's number) and a term; the terms of a class are about its odds against
            the geometric mean of all classes. Without pandas a dict of arrays.

        Notes
        -----
        The terms are linear in the coefficients, so their posterior is exact: draw by draw. Records that ``typical``
        shortens are shortened on the device, and the model is about the shortened ones.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from skldp import LDPBayesLinearRegression, PublicColumns
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(20, 60, size=100_000)
        >>> columns = PublicColumns(schema={"age": (20, 60)})
        >>> regression = LDPBayesLinearRegression(epsilon=4.0, bounds_y=(0, 100), inference="laplace", random_state=0)
        >>> model = make_pipeline(columns, regression).fit(age[:, None], 10 + 1.5 * age)
        >>> table = columns.raw_coefficients(model)
        >>> bool(abs(table.loc["age", "estimate"] - 1.5) < 0.1)
        True
        """
        found = raw_effects(pipeline, check_fraction(level, "level"))
        try:
            from pandas import DataFrame, MultiIndex
        except ImportError:
            return found
        terms = found.pop("term")
        return DataFrame(found, index=MultiIndex.from_tuples(terms) if isinstance(terms[0], tuple) else terms)

    def _schema(self, n_columns):
        """Return the checked schema; without one, numbers in [-1, 1] for each of ``n_columns``."""
        entries = self._entries(n_columns)
        schema = Schema([column_from(name, given) for name, given in entries.items()])
        return schema if self.typical is None else Schema(schema.columns, self._typical_radius(schema))

    def _entries(self, n_columns):
        """Return the schema as a mapping: given, from a file, or the default for a number of columns."""
        schema = self.schema
        if isinstance(schema, Mapping):
            return schema
        if isinstance(schema, (str, os.PathLike)):
            return parse(Path(schema).read_text(encoding="utf-8"), "a schema file")
        if schema is not None:
            raise InvalidParameterError(f"schema must be a dict of the public columns, or the path of a JSON file, got "
                                        f"{type(schema).__name__}.")
        if n_columns is None:
            raise InvalidParameterError("schema must be given: it is public and describes the columns of a record.")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(n_columns)])
        return dict.fromkeys(names, (-1, 1))

    def _columns_of(self, X, n_columns):
        """Return the places of the columns of the schema among those of X."""
        names = self.schema_.names
        if hasattr(self, "feature_names_in_"):
            known = {name: place for place, name in enumerate(self.feature_names_in_.tolist())}
            absent = [name for name in names if name not in known]
            if absent:
                raise ValueError(f"X has no columns {absent}, which are in the schema. Rename its columns.")
            return [known[name] for name in names]
        if n_columns != len(names):
            raise ValueError(f"X has {n_columns} columns without names, and the schema has {len(names)}. Pass the "
                             "columns of the schema in its order, or a table with names.")
        return list(range(n_columns))

    def _typical_radius(self, schema):
        """Return the length of codes that becomes the norm of the ball."""
        if isinstance(self.typical, (int, float)):
            share = check_positive(self.typical, "typical")
            if share > 1:
                raise InvalidParameterError(f"typical must be a share of the largest norm, in (0, 1], got {share!r}.")
            return share * schema.largest
        sample = PublicColumns(schema=self.schema).fit(self.typical)
        lengths = np.linalg.norm(sample.transform(self.typical), axis=1)
        return max(float(np.quantile(lengths, _TYPICAL_QUANTILE)), 1e-3) * schema.largest

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
