"""How estimators and transformers show their budget, as text and in notebooks."""

import html
import math
from typing import Any

_STYLE = "display: inline-block; margin-bottom: 4px; padding: 2px 8px; border-radius: 4px; font-size: 13px; "
# Colours of their own, so that both lines can be read on a light and on a dark page.
_PRIVATE = _STYLE + "background: #e3f1e5; color: #14421b"
_NO_PRIVACY = _STYLE + "background: #b3261e; color: #ffffff; font-weight: bold"


class ShowsBudget:
    """Mixin of estimators and transformers that shows epsilon, and says so if it gives no privacy.

    The text ends in a comment if epsilon is infinite. The HTML begins with a line of the budget and, once fitted, the
    number of reports.
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parent: Any = super()
        return parent.__repr__(N_CHAR_MAX) + ("  # no privacy" if _is_infinite(self) else "")

    def _html_repr(self):
        """Return scikit-learn's HTML with a line above it."""
        parent: Any = super()
        style = _NO_PRIVACY if _is_infinite(self) else _PRIVATE
        return f'<div style="{style}">{html.escape(budget_line(self))}</div>{parent._html_repr()}'


def budget_line(estimator):
    """Return epsilon and, once fitted, delta and the number of reports, in words.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from skldp.privacy._display import budget_line
    >>> budget_line(SimpleNamespace(epsilon=1.0))
    'epsilon 1'
    >>> budget_line(SimpleNamespace(epsilon=1.0, epsilon_=1.0, delta_=1e-5, n_reports_=20_000))
    'epsilon 1, delta 1e-05, 20,000 reports'
    >>> budget_line(SimpleNamespace(epsilon=float("inf")))
    'no privacy: epsilon is infinite'
    """
    fitted = vars(estimator)
    epsilon = fitted.get("epsilon_", estimator.epsilon)
    words = ["no privacy: epsilon is infinite" if _is_infinite(estimator) else f"epsilon {_number(epsilon)}"]
    if "delta_" in fitted:
        words.append(f"delta {_number(fitted['delta_'])}")
    n_reports = fitted.get("n_reports_", fitted.get("n_messages_"))
    return ", ".join(words if n_reports is None else [*words, f"{n_reports:,} reports"])


def _is_infinite(estimator):
    """Whether the budget, as it is set or was used in a fit, is infinite."""
    budgets = (estimator.epsilon, vars(estimator).get("epsilon_"))
    return any(isinstance(epsilon, float) and math.isinf(epsilon) for epsilon in budgets)


def _number(value):
    """Return a number as short text; a wrong parameter, which is refused only in ``fit``, as it is."""
    return f"{value:g}" if isinstance(value, (int, float)) else repr(value)
