"""Forest plot of the coefficients of a pipeline in raw units."""

from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from skldp._validation._parameters import check_fraction
from skldp.plot._support import axes_or_new, legend_above
from skldp.transformers._raw_effects import raw_effects


class CoefficientDisplay:
    """Posterior means and intervals of coefficients in raw units, one line each.

    Parameters
    ----------
    terms : list of str
        Names of the coefficients.
    mean, low, high : ndarray of shape (n_terms,)
        Posterior means and ends of the intervals.
    level : float, default=0.95
        Posterior probability inside the intervals.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    intervals_ : artist
        Points and intervals.
    reference_ : artist or None
        Marks of other values of the coefficients.

    See Also
    --------
    CoefficientDisplay.from_estimator : Draw the coefficients of a fitted pipeline.
    PublicColumns.raw_coefficients : The same as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import CoefficientDisplay, LDPBayesLinearRegression, PublicColumns
    >>> X = np.random.default_rng(0).uniform(20, 60, size=(5000, 1))
    >>> regression = LDPBayesLinearRegression(epsilon=4.0, bounds_y=(0, 100), inference="laplace", random_state=0)
    >>> model = make_pipeline(PublicColumns(schema={"age": (20, 60)}), regression).fit(X, X[:, 0])
    >>> display = CoefficientDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age']
    """

    def __init__(self, terms, mean, low, high, *, level=0.95):
        self.terms = terms
        self.mean = mean
        self.low = low
        self.high = high
        self.level = level

    @classmethod
    def from_estimator(cls, estimator: Pipeline, *, intercept: bool = False, level: float = 0.95, reference: Any = None,
                       ax: Any = None, **kwargs: Any) -> Self:
        """Draw the coefficients of a fitted pipeline of ``PublicColumns`` and a regression.

        Parameters
        ----------
        estimator : Pipeline
            The fitted pipeline.
        intercept : bool, default=False
            Whether to draw the intercept too, which often has another size.
        level : float, default=0.95
            Posterior probability inside the intervals.
        reference : dict or None, default=None
            Other values of some coefficients by name, such as those without privacy, which are marked.
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to ``errorbar``.

        Returns
        -------
        CoefficientDisplay
        """
        found = raw_effects(estimator, check_fraction(level, "level"))
        pairs = [term if isinstance(term, tuple) else (term,) for term in found["term"]]
        kept = [place for place, pair in enumerate(pairs) if intercept or pair[-1] != "intercept"]
        mean, low, high = (found[name][kept] for name in ("estimate", "lower", "upper"))
        terms = [": ".join(map(str, pairs[place])) for place in kept]
        return cls(terms, mean, low, high, level=level).plot(ax=ax, reference=reference, **kwargs)

    def plot(self, ax: Any = None, *, reference: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        reference : dict or None, default=None
            Other values of some coefficients by name, which are marked.
        **kwargs
            Passed on to ``errorbar``.

        Returns
        -------
        self
        """
        height = 1.2 + 0.35 * len(self.terms)
        self.ax_, self.figure_ = axes_or_new(ax, figsize=(5.0, height))
        places = np.arange(len(self.terms))[::-1]  # the first term on top
        self.ax_.axvline(0.0, color="0.7", linewidth=1, zorder=0)
        options = {"fmt": "o", "capsize": 3, "label": f"posterior mean and {self.level:.0%} interval", **kwargs}
        self.intervals_ = self.ax_.errorbar(self.mean, places, xerr=[self.mean - self.low, self.high - self.mean],
                                            **options)
        self.reference_ = None
        if reference is not None:
            marked = [(reference[term], place) for term, place in zip(self.terms, places) if term in reference]
            x, y = zip(*marked) if marked else ((), ())
            self.reference_ = self.ax_.scatter(x, y, marker="D", color="C3", s=18, zorder=3, label="without privacy")
        self.ax_.set_yticks(places, self.terms)
        self.ax_.locator_params(axis="x", nbins=5)  # large numbers would overlap
        self.ax_.set(xlabel="coefficient, in units of the response", ylim=(-0.6, len(self.terms) - 0.4))
        legend_above(self.ax_)
        return self
