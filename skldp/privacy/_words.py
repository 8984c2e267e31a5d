"""Sources of random 64-bit words: the operating system, or a seeded stream for simulations."""

import hashlib
import os
from numbers import Integral
from typing import TypeAlias, cast

import numpy as np

from skldp.exceptions import InvalidParameterError

__all__ = ["SeededWords", "SystemWords", "word_source"]

RandomState: TypeAlias = int | np.integer | np.random.Generator | np.random.RandomState | None


class SystemWords:
    """Random words from the operating system's cryptographic generator.

    It keeps no state in user space, so the parent and child of a fork never share noise.

    Examples
    --------
    >>> from skldp.privacy import SystemWords
    >>> SystemWords().words(3).dtype
    dtype('uint64')
    """

    def words(self, n_words: int) -> np.ndarray:
        """Return ``n_words`` independent uniform uint64 words."""
        return np.frombuffer(os.urandom(8 * n_words), dtype=np.uint64)

    def bytes(self, n_bytes: int) -> np.ndarray:
        """Return ``n_bytes`` independent uniform bytes."""
        return np.frombuffer(os.urandom(n_bytes), dtype=np.uint8)


class SeededWords:
    """Reproducible stream of words for simulations. It gives no privacy.

    Parameters
    ----------
    key : bytes
        Seed of the stream.

    Examples
    --------
    >>> from skldp.privacy import SeededWords
    >>> bool((SeededWords(b"a").words(4) == SeededWords(b"a").words(4)).all())
    True
    """

    def __init__(self, key: bytes):
        digest = hashlib.blake2b(key, digest_size=32).digest()
        self._bits = np.random.PCG64DXSM(int.from_bytes(digest, "little"))

    def words(self, n_words: int) -> np.ndarray:
        """Return the next ``n_words`` uint64 words of the stream."""
        return self._bits.random_raw(n_words)

    def bytes(self, n_bytes: int) -> np.ndarray:
        """Return the next ``n_bytes`` bytes of the stream; unused bytes of its last word are dropped."""
        return self.words(-(-n_bytes // 8)).astype("<u8", copy=False).view(np.uint8)[:n_bytes]


def word_source(random_state: RandomState | SystemWords | SeededWords,
                *context: str | np.ndarray) -> SystemWords | SeededWords:
    """Return a source of words for a ``random_state`` and the data it will randomise.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator, numpy.random.RandomState or a source
        ``None`` uses fresh entropy of the operating system at every call. An int is for simulations: one stream keyed
        by the seed **and the context**. A generator contributes one draw to that key. A source is returned unchanged.
    context : str or ndarray
        The mechanism's description and the values. Other data or another budget with the same seed gives independent
        noise, so the noise does not cancel in the difference of two seeded releases.

    Returns
    -------
    SystemWords or SeededWords

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.privacy import word_source
    >>> one, other = (word_source(0, "laplace", np.array([x])).words(1)[0] for x in (0.0, 1.0))
    >>> bool(one == other)
    False
    """
    if random_state is None:
        return SystemWords()
    if hasattr(random_state, "words") and hasattr(random_state, "bytes") and not hasattr(random_state, "normal"):
        return cast("SystemWords | SeededWords", random_state)
    key = hashlib.blake2b()
    for item in (str(_seed(random_state)), *context):
        if isinstance(item, np.ndarray):
            _absorb(key, f"array {item.dtype.str}{item.shape}".encode())
            _absorb(key, item.tobytes())
        else:
            _absorb(key, f"text {item}".encode())
    return SeededWords(key.digest())


def _absorb(key, data):
    # Each item is preceded by its length, so that different sequences of items never give the same bytes.
    key.update(len(data).to_bytes(8, "little"))
    key.update(data)


def _seed(random_state):
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.uint64))
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, Integral):
        raise InvalidParameterError(
            f"random_state must be None, an int, or a NumPy Generator or RandomState, got {random_state!r}."
        )
    return int(random_state)
