"""Plot of scores against the privacy budget."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skldp.exceptions import InvalidParameterError
from skldp.plot._support import axes_or_new, columns, legend_above, numbers, quoted

_MARKERS = "osv^DPX"
_LINES = ("-", "--", ":")


class PrivacyUtilityDisplay:
    """Scores of one or more methods against the budget epsilon, with error bars.

    The legend is placed above the axes; use ``figure_.suptitle`` for a title.

    Parameters
    ----------
    epsilon : array-like of shape (n,)
        Budgets; the score of an infinite budget is drawn as a horizontal line.
    score : array-like of shape (n,)
        Scores.
    error : array-like of shape (n,) or None, default=None
        Standard errors of the scores; NaN for none.
    method : array-like of shape (n,) or None, default=None
        Method that each score belongs to; one method by default.
    reference : float, dict of str to float, or None, default=None
        Scores without privacy, or of a trivial prediction, drawn as horizontal lines; by name if a dict.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    errorbar_ : list of error bars
        One for each method.
    reference_ : list of lines
        The horizontal lines.

    See Also
    --------
    PrivacyUtilityDisplay.from_results : Draw a table of scores.
    PrivacyUtilityDisplay.from_estimator : Draw a grid search over epsilon.

    Examples
    --------
    >>> from skldp import PrivacyUtilityDisplay
    >>> results = {"epsilon": [0.5, 0.5, 1.0, 1.0, 2.0, 2.0], "score": [0.60, 0.64, 0.71, 0.73, 0.78, 0.78]}
    >>> display = PrivacyUtilityDisplay.from_results(results, reference=0.8, score_name="accuracy")
    >>> display.score.round(2), display.error.round(2)
    (array([0.62, 0.72, 0.78]), array([0.02, 0.01, 0.  ]))
    """

    def __init__(self, epsilon, score, *, error=None, method=None, reference=None):
        self.epsilon = epsilon
        self.score = score
        self.error = error
        self.method = method
        self.reference = reference

    @classmethod
    def from_results(cls, results: Any, *, methods: Any = None, reference: float | dict[str, float] | None = None,
                     score_name: str = "score", negate_score: bool = False, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a table of scores.

        Parameters
        ----------
        results : DataFrame, dict of columns, or list of dicts
            Table with the columns ``epsilon`` and ``score``, and optionally ``method`` and ``error`` (a standard
            error). Without errors, rows of the same method and epsilon are repeats: their mean is drawn, with its
            standard error.
        methods : dict of str to str, list of str, or None, default=None
            Methods to draw, in this order; a dict also maps them to the names shown.
        reference : float, dict of str to float, or None, default=None
            Scores to draw as horizontal lines.
        score_name : str, default="score"
            Label of the vertical axis.
        negate_score : bool, default=False
            Whether to draw minus the scores, for errors that were negated to be scores.
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to the error bars.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        table = columns(results, ["epsilon", "score"], optional=["method", "error"])
        method = table.get("method", np.full(len(table["epsilon"]), "")).astype(str)
        epsilon, score = numbers(table, "epsilon"), numbers(table, "score")
        error = numbers(table, "error") if "error" in table else None
        rows = _average_repeats(epsilon, score, error, method)
        rows = rows if methods is None else _select_methods(rows, methods)
        method, epsilon, score, error = (np.array(column) for column in zip(*rows))
        display = cls(epsilon, score, error=error, method=method, reference=reference)
        return display.plot(ax=ax, score_name=score_name, negate_score=negate_score, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, param: str | None = None,
                       reference: float | dict[str, float] | None = None, score_name: str = "score",
                       negate_score: bool = False, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a fitted search over epsilon, such as a ``GridSearchCV``.

        Parameters
        ----------
        estimator : fitted search
            Any object with scikit-learn's ``cv_results_``. Each combination of the other parameters is a method.
        param : str or None, default=None
            Name of the parameter that is epsilon; by default the one named so, also inside a pipeline.
        reference, score_name, negate_score, ax, **kwargs
            As in :meth:`from_results`.

        Returns
        -------
        PrivacyUtilityDisplay
            Error bars are standard errors over the folds. Folds share training rows, so these are only approximate.
        """
        check_is_fitted(estimator, "cv_results_")
        found = estimator.cv_results_
        param = param or _epsilon_parameter(found["params"])
        splits = sorted(key for key in found if key.startswith("split") and key.endswith("_test_score"))
        if not splits:
            raise InvalidParameterError("The search has several scores. Search with one, or use from_results.")
        rows = [{"method": _method_name(params, param), "epsilon": params[param], "score": found[split][i]}
                for i, params in enumerate(found["params"]) for split in splits]
        return cls.from_results(rows, reference=reference, score_name=score_name, negate_score=negate_score, ax=ax,
                                **kwargs)

    def plot(self, ax: Any = None, *, score_name: str = "score", negate_score: bool = False, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        score_name : str, default="score"
            Label of the vertical axis.
        negate_score : bool, default=False
            Whether to draw minus the scores, for errors that were negated to be scores.
        **kwargs
            Passed on to the error bars.

        Returns
        -------
        self
        """
        epsilon, score, error, method = self._rows()
        sign = -1.0 if negate_score else 1.0
        self.ax_, self.figure_ = axes_or_new(ax)
        self.errorbar_: list = []
        self.reference_: list = []
        for number, name in enumerate(dict.fromkeys(method)):
            here = np.flatnonzero((method == name) & np.isfinite(epsilon))
            here = here[np.argsort(epsilon[here])]
            style = {"marker": _MARKERS[number % len(_MARKERS)], "markersize": 4, "linewidth": 1.2, "capsize": 2,
                     "color": f"C{number % 10}", "linestyle": _LINES[number // 10 % 3], "label": name or None, **kwargs}
            self.errorbar_.append(self.ax_.errorbar(epsilon[here], sign * score[here], error[here], **style))
            for height in score[(method == name) & np.isinf(epsilon)]:
                self._plot_reference(f"{name}, no privacy" if name else "no privacy", sign * height, style["color"])
        references = self.reference if isinstance(self.reference, dict) else {"no privacy": self.reference}
        for number, (name, height) in enumerate(references.items() if self.reference is not None else ()):
            self._plot_reference(name, sign * height, "0.4", linestyle=("--", "-.", ":")[number % 3])
        self._finish(np.unique(epsilon[np.isfinite(epsilon)]), score_name)
        return self

    def _plot_reference(self, name, height, color, linestyle="--"):
        self.reference_.append(self.ax_.axhline(height, color=color, linestyle=linestyle, linewidth=1.0, label=name,
                                                zorder=1))

    def _finish(self, budgets, score_name):
        ax = self.ax_
        ax.set(xscale="log", xlabel=r"$\epsilon$ of each client", ylabel=score_name)
        shown = _labelled_budgets(budgets)
        ax.set_xticks(shown, [f"{budget:.3g}" for budget in shown])
        ax.minorticks_off()
        ax.grid(color="0.92", linewidth=0.7)
        ax.set_axisbelow(True)
        legend_above(ax, last=self.reference_)

    def _rows(self):
        epsilon, score = np.asarray(self.epsilon, dtype=float), np.asarray(self.score, dtype=float)
        if not (epsilon > 0).all() or not np.isfinite(epsilon).any():
            raise InvalidParameterError("Budgets must be positive, and at least one of them finite: check epsilon.")
        error = np.full(epsilon.shape, np.nan) if self.error is None else np.asarray(self.error, dtype=float)
        method = np.full(epsilon.shape, "") if self.method is None else np.asarray(self.method)
        return epsilon, score, error, method


def _labelled_budgets(budgets):
    """Budgets to label on the axis, at least a sixth of its length apart so that labels do not overlap."""
    gap = 0.999 * np.log(budgets[-1] / budgets[0]) / 6
    shown = [budgets[0]]
    for budget in budgets[1:]:
        if np.log(budget / shown[-1]) >= gap:
            shown.append(budget)
    return shown


def _average_repeats(epsilon, score, error, method):
    """Return rows (method, epsilon, score, error), with repeats replaced by their mean."""
    rows = []
    for name, budget in dict.fromkeys(zip(method.tolist(), epsilon.tolist())):
        here = np.flatnonzero((method == name) & (epsilon == budget))
        if error is not None and len(here) > 1:
            raise InvalidParameterError(
                f"There are {len(here)} rows of the method {name!r} at epsilon {budget:g}, each with an error. "
                f"Leave the column 'error' out if they are repeats."
            )
        row_error = error[here[0]] if error is not None else _standard_error(score[here])
        rows.append((name, budget, score[here].mean(), row_error))
    return rows


def _standard_error(scores):
    return scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan


def _select_methods(rows, methods):
    """Return the rows of the requested methods, in that order and under the names given."""
    names = methods if isinstance(methods, dict) else {name: name for name in methods}
    known = dict.fromkeys(row[0] for row in rows)
    for name in names:
        if name not in known:
            raise InvalidParameterError(f"The results have no method {name!r}. Choose from {quoted(known)}.")
    return [(title, *row[1:]) for name, title in names.items() for row in rows if row[0] == name]


def _epsilon_parameter(params):
    found = sorted({name for row in params for name in row if name.split("__")[-1] == "epsilon"})
    if len(found) != 1:
        raise InvalidParameterError(
            f"The search must be over one epsilon; it has {quoted(found) or 'none'}. Name the parameter with param=."
        )
    return found[0]


def _method_name(params, param):
    return ", ".join(f"{name.split('__')[-1]}={value}" for name, value in params.items() if name != param)
