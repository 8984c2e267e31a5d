"""Coefficients of a pipeline in the units of its raw columns."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skldp.exceptions import InvalidParameterError


def raw_effects(pipeline, level):
    """Return terms of a fitted pipeline with their posterior means, standard deviations and intervals, as columns.

    The last step is a regression with a posterior, and the step before it has a schema. With several lines (classes
    or responses) a term is a pair of the line's name and the term.
    """
    regression, columns = _steps(pipeline)
    draws = regression.posterior_.draws
    lines = draws["coef"].reshape(-1, *np.atleast_2d(regression.coef_).shape)
    terms, changes, reference = _linear_map(columns.schema_)
    scale = columns.data_norm_ / columns.schema_.radius
    effects = scale * lines @ changes.T
    if "intercept" in draws:
        start = draws["intercept"].reshape(lines.shape[:2]) + scale * lines @ reference
        terms, effects = ["intercept", *terms], np.concatenate([start[..., None], effects], axis=-1)
    terms = _named(terms, regression, lines.shape[1])
    return _table(terms, effects.reshape(len(lines), -1), level, is_classifier(regression))


def _named(terms, regression, n_lines):
    """Return names of all terms: as they are for one line, otherwise pairs with a class or the response's number."""
    if n_lines == 1:
        return terms
    names = regression.classes_ if is_classifier(regression) else range(n_lines)
    return [(name, term) for name in names for term in terms]


def _steps(pipeline):
    """Return the regression and the transformer of a fitted pipeline."""
    steps = [step for _, step in getattr(pipeline, "steps", [])]
    if len(steps) < 2 or not hasattr(steps[-2], "raw_coefficients") or not hasattr(steps[-1], "sample_posterior"):
        raise InvalidParameterError("raw_coefficients needs a fitted Pipeline whose last two steps are PublicColumns "
                                    "and a Bayesian regression, such as LDPBayesLinearRegression.")
    check_is_fitted(steps[-1], "posterior_")
    if "coef" not in steps[-1].posterior_.draws:
        raise InvalidParameterError(f"{type(steps[-1]).__name__} has no coefficients. Use a regression of skldp.")
    return steps[-1], steps[-2]


def _linear_map(schema):
    """Return names of effects, the changes of the code that they are, and the code of the reference."""
    names: list[str] = []
    changes, reference = [], np.zeros(schema.width)
    for column, place in zip(schema.columns, schema.slices):
        labels, change = column.effects()
        wide = np.zeros((len(labels), schema.width))
        wide[:, place] = change
        names += labels
        changes.append(wide)
        reference[place] = column.reference()
    return names, np.concatenate(changes), reference


def _table(terms, effects, level, odds):
    """Return posterior means, standard deviations and intervals of effects by name; odds ratios if asked for."""
    tail = (1 - level) / 2
    lower, upper = np.quantile(effects, [tail, 1 - tail], axis=0)
    table = {"term": terms, "estimate": effects.mean(axis=0), "std": effects.std(axis=0), "lower": lower,
             "upper": upper}
    if odds:
        table.update(odds_ratio=np.exp(np.median(effects, axis=0)), odds_lower=np.exp(lower), odds_upper=np.exp(upper))
    return table
