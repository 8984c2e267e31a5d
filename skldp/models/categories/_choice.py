"""Choice between the exact likelihood of a histogram and that of its counts."""

import math
from dataclasses import dataclass

from skldp.exceptions import InvalidParameterError


@dataclass(frozen=True)
class LikelihoodChoice:
    """Limits below which single reports are kept and evaluated, and not only their counts.

    Parameters
    ----------
    kept_bits : float
        Largest total size of the reports, in bits, for which an aggregate keeps the distinct rows; 0 for never.
    evaluated_entries : float
        Largest number of entries of the matrix of distinct rows that the likelihood evaluates; 0 for never.
    """

    kept_bits: float
    evaluated_entries: float

    def keeps(self, n_bits):
        """Whether an aggregate keeps the rows of reports with a total of ``n_bits`` bits."""
        return self.kept_bits > 0 and n_bits <= self.kept_bits

    def evaluates(self, n_entries):
        """Whether the likelihood evaluates a matrix of distinct rows with ``n_entries`` entries."""
        return self.evaluated_entries > 0 and n_entries <= self.evaluated_entries

    @property
    def needs_rows(self):
        """Whether an aggregate with counts alone is an error."""
        return math.isinf(self.evaluated_entries)


CHOICES = {
    "auto": LikelihoodChoice(kept_bits=50e6, evaluated_entries=2e6),
    "exact": LikelihoodChoice(kept_bits=math.inf, evaluated_entries=math.inf),
    "counts": LikelihoodChoice(kept_bits=0, evaluated_entries=0),
}


def check_likelihood(likelihood):
    """Return the limits for "auto", "exact" or "counts".

    Parameters
    ----------
    likelihood : str
        Name of the choice.

    Returns
    -------
    LikelihoodChoice

    Examples
    --------
    >>> check_likelihood("exact").needs_rows
    True
    """
    if not isinstance(likelihood, str) or likelihood not in CHOICES:
        raise InvalidParameterError(f'likelihood must be "auto", "exact" or "counts", got {likelihood!r}.')
    return CHOICES[likelihood]
