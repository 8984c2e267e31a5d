"""Tests of random_state: fresh entropy, or one stream for each seed, protocol and data."""

import os

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.privacy import SeededWords, SystemWords, word_source


def first(random_state, *context):
    return word_source(random_state, *context).words(4).tolist()


def test_none_is_fresh_every_time():
    assert first(None, "a") != first(None, "a")
    assert isinstance(word_source(None), SystemWords)


def test_an_int_depends_on_seed_protocol_and_data():
    x = np.arange(3.0)
    base = first(0, "laplace(epsilon=1)", x)
    assert first(0, "laplace(epsilon=1)", x.copy()) == base
    assert first(np.int64(0), "laplace(epsilon=1)", x) == base
    others = [first(1, "laplace(epsilon=1)", x), first(0, "laplace(epsilon=2)", x)]
    others += [first(0, "laplace(epsilon=1)", other) for other in (x + 1, x[:, None], x.astype(np.float32))]
    assert base not in others
    assert len({tuple(other) for other in others}) == len(others)


def test_adjacent_items_are_separated():
    assert first(0, "ab", "c") != first(0, "a", "bc")


def test_a_generator_contributes_one_draw_and_the_data_matter():
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    assert first(one, "x") == first(two, "x")
    assert first(one, "x") == first(two, "x"), "both have moved on by one draw"
    assert first(np.random.default_rng(5), "x") != first(np.random.default_rng(5), "y")
    assert first(np.random.RandomState(5), "x") == first(np.random.RandomState(5), "x")


def test_a_source_is_returned_unchanged():
    source = SeededWords(b"k")
    assert word_source(source, "anything") is source


def test_numpys_global_state_is_not_changed():
    before = np.random.get_state()[1].tolist()
    first(0, "x")
    assert np.random.get_state()[1].tolist() == before


def test_bytes_and_words_are_uniform():
    for source in (SystemWords(), SeededWords(b"uniform")):
        counts = np.bincount(source.bytes(2**18), minlength=256)
        assert counts.sum() == 2**18
        chi_square = ((counts - 1024) ** 2 / 1024).sum()
        assert 120 < chi_square < 430  # 255 degrees of freedom; probability below 1e-9 on each side


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_do_not_share_noise():
    source = SystemWords()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.words(2).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) != source.words(2).tobytes()
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("random_state", ["seed", 1.5, True, [1]])
def test_bad_random_state_raises(random_state):
    with pytest.raises(InvalidParameterError, match="random_state must be"):
        word_source(random_state)
