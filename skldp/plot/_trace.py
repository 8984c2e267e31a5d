"""Trace plots of the chains of a posterior."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skldp.exceptions import InvalidParameterError
from skldp.plot._support import fitted, pyplot
from skldp.sampling._elements import distinct_positions, element_name, find, labels_of

_MOST_ROWS = 4  # more panels are arranged in two columns


class TraceDisplay:
    """Traces of the chains, with R-hat and the effective sample size in the titles.

    Converged chains overlap and look like noise. Chains in different places have a large R-hat, and slowly mixing
    chains a small effective sample size; then raise ``n_draws`` or ``n_warmup``.

    Parameters
    ----------
    draws : dict of str to ndarray of shape (n_chains, n_draws)
        Draws by the name of the element, as stored (after thinning).
    rhat, ess : dict of str to float
        Split R-hat and bulk effective sample size by the same names; NaN where there is none.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        One for each element.
    figure_ : matplotlib Figure
    lines_ : dict of str to list of lines
        One line for each chain, by the name of the element.

    See Also
    --------
    TraceDisplay.from_estimator : Draw the chains of a fitted estimator.
    PosteriorDisplay : The densities of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPPoisson, TraceDisplay
    >>> X = np.random.default_rng(0).poisson(3.0, size=(2000, 1))
    >>> model = LDPPoisson(epsilon=2.0, random_state=0).fit(X)
    >>> display = TraceDisplay.from_estimator(model)
    >>> display.ax_[0].get_title()
    'rate: R-hat 1.00..., ESS ...'
    """

    def __init__(self, draws, *, rhat, ess):
        self.draws = draws
        self.rhat = rhat
        self.ess = ess

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, names: str | Sequence[str] | None = None, *, ax: Any = None,
                       **kwargs: Any) -> Self:
        """Draw the chains of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted Bayesian estimator, or a pipeline that ends in one.
        names : str, list of str or None, default=None
            Parameters, or elements as a summary names them, such as ``"coef[age]"`` or ``"coef[0]"``, in the order in
            which they are drawn. A parameter means all its elements. ``None`` draws one element of each parameter, the
            one with the largest R-hat.
        ax : list of matplotlib Axes or None, default=None
            Where to draw, one for each element; a new figure by default.
        **kwargs
            Passed on to the lines.

        Returns
        -------
        TraceDisplay
        """
        posterior = fitted(estimator).posterior_
        if names is None:
            chosen = [_worst(posterior, name) for name in posterior.draws]
        else:
            chosen = [(parameter, position) for name in ([names] if isinstance(names, str) else names)
                      for parameter, positions in [find(posterior, name)] for position in positions]
        elements = {element_name(name, labels_of(posterior, name)[position]): (name, position)
                    for name, position in chosen}
        display = cls({label: posterior.draws[name][(..., *position)] for label, (name, position) in elements.items()},
                      rhat={label: float(posterior.rhat[name][at]) for label, (name, at) in elements.items()},
                      ess={label: float(posterior.ess[name][at]) for label, (name, at) in elements.items()})
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : list of matplotlib Axes or None, default=None
            Where to draw, one for each element; a new figure by default.
        **kwargs
            Passed on to the lines.

        Returns
        -------
        self
        """
        self.ax_ = self._panels(ax)
        self.figure_ = self.ax_[0].figure
        self.lines_ = {}
        style = {"linewidth": 0.6, "alpha": 0.6, **kwargs}
        for panel, (label, chains) in zip(self.ax_, self.draws.items()):
            self.lines_[label] = panel.plot(chains.T, **style)
            panel.set_title(self._title(label), fontsize="medium")
            panel.margins(x=0)
        bottom = self.ax_[-1:] if ax is not None or len(self.ax_) <= _MOST_ROWS else self.ax_[-2:]
        for panel in bottom:
            panel.set_xlabel("stored draw of each chain")
            panel.tick_params(labelbottom=True)
        return self

    def _title(self, label):
        rhat, ess = self.rhat[label], self.ess[label]
        return f"{label}: R-hat {rhat:.3f}, ESS {ess:.0f}" if np.isfinite([rhat, ess]).all() else label

    def _panels(self, ax):
        n_panels = len(self.draws)
        if ax is not None:
            panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(panels) != n_panels:
                raise InvalidParameterError(f"ax must hold {n_panels} axes, one for each element; got {len(panels)}.")
            return panels
        n_columns = 1 if n_panels <= _MOST_ROWS else 2
        n_rows = -(-n_panels // n_columns)
        figure, panels = pyplot().subplots(n_rows, n_columns, squeeze=False, sharex=True, layout="constrained",
                                           figsize=(3.2 + 3.2 * n_columns, 1.0 + 1.3 * n_rows))
        for unused in panels.ravel()[n_panels:]:
            figure.delaxes(unused)
        return panels.ravel()[:n_panels]


def _worst(posterior, name):
    """Return the parameter and the position of its element with the largest R-hat."""
    positions = distinct_positions(posterior.draws[name])
    rhat = [float(posterior.rhat[name][position]) for position in positions]
    return name, positions[int(np.argmax(np.nan_to_num(rhat, nan=0.0)))]
