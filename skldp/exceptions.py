"""The library's own warnings and errors."""

__all__ = [
    "InvalidParameterError",
    "InvalidReportError",
    "PrivacyLeakWarning",
    "SeededNoiseWarning",
]


class PrivacyLeakWarning(UserWarning):
    """Something that should be public was read off the private data.

    The privacy guarantee covers the reports only. A category list or a set of
    class labels learned from the records is published without any noise.
    """


class SeededNoiseWarning(UserWarning):
    """The noise of a report was drawn from a seed, so it protects nobody.

    Anyone who knows the seed can subtract the noise. Seeds are for
    simulations; a client leaves ``random_state`` at ``None``.
    """


class InvalidParameterError(ValueError, TypeError):
    """A public parameter is outside its domain or of the wrong type."""


class InvalidReportError(ValueError):
    """A report that no honest client could have sent under the protocol."""
