"""How much of the reports the likelihood of a histogram uses."""

import math
from dataclasses import dataclass

from skldp.exceptions import InvalidParameterError


@dataclass(frozen=True)
class LikelihoodChoice:
    """Sizes up to which the reports themselves are kept and evaluated, and not only their counts.

    Parameters
    ----------
    kept_bits : float
        Bits of reports up to which an aggregate keeps the distinct rows; 0 for never.
    evaluated_entries : float
        Entries of the matrix of distinct rows up to which the likelihood evaluates it; 0 for never.
    """

    kept_bits: float
    evaluated_entries: float

    def keeps(self, n_bits):
        """Whether an aggregate keeps the rows of reports of so many bits in all."""
        return self.kept_bits > 0 and n_bits <= self.kept_bits

    def evaluates(self, n_entries):
        """Whether the likelihood evaluates a matrix of distinct rows with so many entries."""
        return self.evaluated_entries > 0 and n_entries <= self.evaluated_entries

    @property
    def needs_rows(self):
        """Whether counts alone are an error."""
        return math.isinf(self.evaluated_entries)


CHOICES = {
    "auto": LikelihoodChoice(kept_bits=50e6, evaluated_entries=2e6),
    "exact": LikelihoodChoice(kept_bits=math.inf, evaluated_entries=math.inf),
    "counts": LikelihoodChoice(kept_bits=0, evaluated_entries=0),
}


def check_likelihood(likelihood):
    """Return what "auto", "exact" or "counts" means.

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
