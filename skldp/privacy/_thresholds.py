r"""Integer thresholds for mechanisms with two levels of probability.

A level is chosen by comparing a uniform 64-bit word with a threshold. The thresholds are computed from
:math:`e^\epsilon` in rational arithmetic and rounded towards more privacy, so that the integers that are compared
satisfy epsilon without any rounding error.
"""

import decimal
from fractions import Fraction

from skldp.exceptions import InvalidParameterError

__all__ = ["exp_lower", "flip_threshold", "near_threshold"]

WORD = 2**64


def exp_lower(epsilon: float) -> Fraction:
    r"""Rational lower bound of :math:`e^\epsilon` with a relative error of at most :math:`10^{-50}`.

    Parameters
    ----------
    epsilon : float
        Its binary value is used, without decimal rounding.

    Returns
    -------
    fractions.Fraction

    Examples
    --------
    >>> from skldp.privacy import exp_lower
    >>> round(float(exp_lower(1.0)), 6)
    2.718282
    """
    with decimal.localcontext() as context:
        context.prec = 60
        return Fraction(decimal.Decimal(epsilon).exp()) * (1 - Fraction(1, 10**55))


def flip_threshold(epsilon: float) -> int:
    r"""Threshold below which a bit is flipped: :math:`\lceil 2^{64}/(1 + e^\epsilon)\rceil`.

    Parameters
    ----------
    epsilon : float
        Budget of the bit.

    Returns
    -------
    int
        Rounded up, so the bit is flipped at least as often as epsilon requires.

    Examples
    --------
    >>> from skldp.privacy import flip_threshold
    >>> flip_threshold(1.0) / 2**64
    0.268941...
    """
    return -(-WORD // (1 + exp_lower(epsilon)))


def near_threshold(epsilon: float, near: int, far: int, slack: Fraction | int = 0) -> int:
    r"""Threshold below which a two-level mechanism reports from its near set.

    Parameters
    ----------
    epsilon : float
        Budget of the report.
    near, far : int
        Numbers of values in the near set and in the far set; only their ratio matters.
    slack : Fraction, default=0
        The probability of each value within its set is (1 - slack) to (1 + slack) times uniform.

    Returns
    -------
    int
        The largest T for which no value of the near set is more than :math:`e^\epsilon` times as likely as
        one of the far set: with :math:`a = e^\epsilon\,\frac{near}{far}\,\frac{1-slack}{1+slack}`,
        :math:`T = \lfloor 2^{64}a/(1+a)\rfloor`.

    Examples
    --------
    >>> from skldp.privacy import near_threshold
    >>> near_threshold(1.0, 1, 1) / 2**64
    0.731058...
    """
    if 8 * slack > epsilon:
        raise InvalidParameterError(
            f"epsilon={epsilon!r} is too small for this many categories or levels: 64-bit words are not precise "
            f"enough. Raise epsilon or use fewer."
        )
    odds = exp_lower(epsilon) * Fraction(near, far) * (1 - slack) / (1 + slack)
    return int(WORD * odds / (1 + odds))
