"""Protocols of several columns of values: a client reports all of them, or one with the whole budget."""

import dataclasses
import math

from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_choice, check_integer
from skldp.protocols._sampled_values import SampledValueProtocol
from skldp.protocols._value_schemes import SCHEMES
from skldp.protocols._values import ValueProtocol


def value_protocol(columns, n_features, **options):
    r"""Return the protocol for a number of columns.

    Parameters
    ----------
    columns : {"auto", "split", "sample"}
        Whether clients split their budget over all columns, or report one column with the whole budget.
    n_features : int or None
        Number k of columns; ``None`` is 1. One column needs no choice.
    **options
        Fields of :class:`ValueProtocol`.

    Returns
    -------
    ValueProtocol or SampledValueProtocol

    Notes
    -----
    "auto" samples if :math:`\epsilon < s\sqrt k`, with s = 5.5 for the square wave and no limit for Laplace and
    Gaussian noise.

    Examples
    --------
    >>> [type(value_protocol("auto", 2, epsilon=epsilon)).__name__ for epsilon in (1.0, 10.0)]
    ['SampledValueProtocol', 'ValueProtocol']
    """
    samples = check_choice(columns, "columns", _SAMPLES)
    n_features = 1 if n_features is None else check_integer(n_features, "n_features", 1, MAX_FEATURES)
    if n_features > 1:
        protocol = SampledValueProtocol(n_features=n_features, **options)
        if samples(protocol):
            return protocol
    return ValueProtocol(n_features=n_features, **options)


def protocol_of_width(protocol_for, width):
    """Return the protocol whose reports have a given width, from a function of the number of columns.

    Reports have k integers, or k + 1 if one column is sampled. Sampling is preferred from some k on, so that at most
    one number of columns has a given width.
    """
    sampled = protocol_for(max(width - 1, 1))
    return sampled if sampled.width == width else protocol_for(width)


def like(protocol, found):
    """Return a protocol of values as one of the kind of another, split or sampled."""
    if type(found) is type(protocol) or not isinstance(found, ValueProtocol):
        return protocol
    return type(found)(**{field.name: getattr(protocol, field.name) for field in dataclasses.fields(protocol)})


def _sampling_needs_fewer(protocol):
    """Whether sampling needs fewer people than splitting; without noise it never does."""
    return protocol.epsilon < SCHEMES[protocol.mechanism].sampled_up_to * math.sqrt(protocol.n_features)


_SAMPLES = {"auto": _sampling_needs_fewer, "split": lambda protocol: False, "sample": lambda protocol: True}
