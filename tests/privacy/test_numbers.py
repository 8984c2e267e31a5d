"""Check the numbers of the privacy guarantee against their formulas, also at the ends of their domains."""

import inspect
import math

import mpmath
import numpy as np
import pytest

from skldp import privacy
from skldp.privacy import (
    SeededWords,
    SystemWords,
    audit_epsilon,
    epsilon_between,
    gaussian_noise,
    gaussian_slack,
    hockey_stick,
    integer_noise,
    laplace_noise,
    laplace_slack,
    noise_pmf,
    paper_moment_bound,
    shuffled_epsilon,
    weighted_moment_sensitivity,
)
from tests.mechanisms.registry import Scripted


def test_defaults():
    found = {}
    for name in privacy.__all__:
        if inspect.isfunction(function := getattr(privacy, name)):
            for key, parameter in inspect.signature(function).parameters.items():
                if parameter.default is not parameter.empty:
                    found[f"{name} {key}"] = parameter.default
    weights = {"y_weight": 1.0, "intercept_weight": 0.0}
    expected = {
        "audit_epsilon n_reports": 100_000, "audit_epsilon delta": 0.0, "audit_epsilon confidence": 1 - 1e-6,
        "audit_epsilon statistic": None, "epsilon_between delta": 0.0, "near_threshold slack": 0,
        "moment_radius recentre": True, "labelled_moment_radius recentre": True,
        "score_radius intercept_weight": 0.0,
        **{f"gaussian_{name} sensitivity": 1.0 for name in ("delta", "sigma")},
        **{f"{name} {key}": value for name in ("moment_sensitivity", "moment_radius", "labelled_moment_radius")
           for key, value in weights.items()},
        **{f"{name} {key}_weight": 1.0 for name in ("paper_moment_bound", "weighted_moment_sensitivity")
           for key in ("cross", "square")},
    }
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0, 65536.0])
@pytest.mark.parametrize("epsilon", [0.1, 20.0])
def test_laplace_slack(scale, epsilon):
    with mpmath.workdps(40):
        s, depth = mpmath.mpf(scale), 40 + mpmath.mpf(epsilon)
        displaced = 2 * s * (1 + depth * 3 / 2) * (1 + 1 / s) / mpmath.mpf(2) ** 52
        grain = 2 * mpmath.exp(depth) / (mpmath.mpf(2) ** 127 * (1 - mpmath.exp(-1 / s)))
        assert laplace_slack(scale, epsilon) == pytest.approx(float(2 * (displaced + grain)), rel=1e-12, abs=0)


@pytest.mark.parametrize("scale", [10.0, 100.0, 2.0**18, 2.0**40])
def test_gaussian_slack(scale):
    with mpmath.workdps(40):
        s = mpmath.mpf(scale)
        steep = mpmath.exp(11 / s)
        displaced = 2 * s * 11 * steep / mpmath.mpf(2) ** 50
        grain = 2 * s * steep / (mpmath.mpf(2) ** 127 * 2 * mpmath.npdf(10))
        assert gaussian_slack(scale) == pytest.approx(float(2 * (displaced + grain)), rel=1e-12, abs=0)
        assert grain / displaced > 1e-9, "both terms count"


@pytest.mark.parametrize("sign, factor", [(0, 1), (2**63, -1)])
def test_noise_of_extreme_words(sign, factor):
    """All zero bits are u = 2^-128, all one bits nearly u = 1, and the lowest bits of both words matter."""
    scale = 1e12
    zero, one = np.array([0], dtype=np.uint64), np.array([1], dtype=np.uint64)
    signed = np.array([sign], dtype=np.uint64)
    for low, u in ((zero, mpmath.mpf(2) ** -128), (one, mpmath.mpf(3) * mpmath.mpf(2) ** -128)):
        expected = factor * float(-mpmath.log(u)) * scale
        assert laplace_noise(signed, low, scale)[0] == pytest.approx(expected, rel=1e-14)
    assert laplace_noise(signed | one, zero, scale)[0] == pytest.approx(factor * 63 * math.log(2) * scale, rel=1e-13)
    # Quantiles of 2^-129 and of 2^-64 in the lower tail, from arbitrary precision.
    with mpmath.workdps(60):
        for high, low, share, guess in ((signed, zero, mpmath.mpf(2) ** -129, -13.1),
                                        (signed | one, zero, mpmath.mpf(2) ** -64, -9.08)):
            root = mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(x)) - mpmath.log(share), guess)
            assert gaussian_noise(high, low, scale)[0] == pytest.approx(float(-factor * root * scale), rel=1e-13)
    top = np.array([sign + 2**63 - 1], dtype=np.uint64)
    for law in (laplace_noise, gaussian_noise):
        assert law(top, np.array([2**64 - 1], dtype=np.uint64), 1.0)[0] == 0


def test_each_value_uses_two_words_in_order():
    """The first half of a chunk's words are the high words; the next chunk uses new words."""
    words = SeededWords(b"order").words(4 * 2 + 2)
    source = Scripted(words[:8].tolist())
    found = integer_noise(laplace_noise, 1e6, (2, 2), source)
    assert found.tolist() == laplace_noise(words[:4], words[4:8], 1e6).reshape(2, 2).tolist()
    n, chunk = 2**15 + 3, 2**15
    stream = SeededWords(b"chunks").words(2 * n)
    first, last = stream[:2 * chunk].reshape(2, -1), stream[2 * chunk:].reshape(2, -1)
    expected = np.concatenate([laplace_noise(*first, 10.0), laplace_noise(*last, 10.0)])
    assert (integer_noise(laplace_noise, 10.0, (n,), SeededWords(b"chunks")) == expected).all()


def test_words_and_bytes_are_as_many_as_asked_for():
    for source in (SystemWords(), SeededWords(b"sizes")):
        for n in (0, 1, 7, 8, 9, 17):
            assert source.words(n).shape == source.bytes(n).shape == (n,)
    words = SeededWords(b"bytes").words(2)
    assert SeededWords(b"bytes").bytes(11).tolist() == list(words.astype("<u8").tobytes()[:11])
    source = SeededWords(b"bytes")
    source.bytes(9)
    assert source.words(1)[0] == SeededWords(b"bytes").words(3)[2], "what is left of the last word is dropped"


def test_probabilities_of_small_laplace_noise():
    """Every output of both signs, against the closed form."""
    scale, outputs = 0.7, np.arange(-20, 21)
    pmf = noise_pmf(lambda high, low: laplace_noise(high, low, scale), outputs)
    size = np.abs(outputs)
    expected = np.where(size == 0, -math.expm1(-0.5 / scale),
                        0.5 * np.exp(-(size - 0.5) / scale) * -math.expm1(-1 / scale))
    np.testing.assert_allclose(pmf, expected, rtol=1e-12)
    assert math.fsum(pmf) == pytest.approx(1, abs=1e-12)


def test_noise_that_is_always_the_same_has_probability_one():
    """All 2^127 uniform numbers give 0, including the number 0."""
    assert noise_pmf(lambda high, low: np.zeros(high.shape, dtype=np.int64), [0, 1]).tolist() == [1.0, 0.0]


def test_indistinguishable_and_barely_distinguishable_outputs():
    half = [0.5, 0.5]
    assert epsilon_between(half, half) == 0.0 and hockey_stick(half, half, 0.0) == 0.0
    assert epsilon_between([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]) == 0.0, "outputs that never happen tell nothing"
    assert epsilon_between([0.6, 0.4], [0.5, 0.5], delta=0.1) == pytest.approx(0.0, abs=1e-12)
    assert epsilon_between([0.6, 0.4], [0.5, 0.5], delta=0.05) == pytest.approx(math.log(1.125))
    assert epsilon_between([0.5, 0.5], [0.9, 0.1], delta=0.0) == pytest.approx(math.log(5))


def test_paper_moment_bound():
    norm, y_bound, c1, c2 = 2.0, 3.0, 1.5, 0.5
    square = c1**2 * 81 / 2 + 2 * 16 + 2 * c1 * 9 * 4 + c2 * 81
    assert paper_moment_bound(norm, y_bound, c1, c2) == pytest.approx(math.sqrt(square), rel=1e-12)
    assert paper_moment_bound(1.0, 1.0) == pytest.approx(math.sqrt(5.5), rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_weighted_moment_sensitivity_on_a_grid_of_its_formula(seed):
    """The maximum of F(q) over a fine grid of q, for weights of all sizes."""
    norm, y_bound, c1, c2 = np.exp(np.random.default_rng(seed).uniform(-1.5, 1.5, size=4))
    q, square = np.linspace(0, y_bound, 20_001), norm**2
    s = np.minimum(square, c1 * y_bound * q / 2)
    gap = (2 * square**2 - 2 * s**2 + c1 * square * (y_bound**2 + q**2) + 2 * c1 * y_bound * q * s
           + c2 * (y_bound**2 - q**2) ** 2)
    found = weighted_moment_sensitivity(norm, y_bound, c1, c2) ** 2
    assert gap.max() * (1 - 1e-12) <= found <= gap.max() * (1 + 1e-7)


def test_shuffling_at_the_edge_of_its_domain():
    """The theorem needs n >= 16 e^epsilon log(2 / delta); the result is at most the local epsilon."""
    least = math.ceil(16 * math.exp(1.0) * math.log(2e6))
    assert shuffled_epsilon(1.0, least, 1e-6) <= 1.0
    with pytest.raises(ValueError, match="domain"):
        shuffled_epsilon(1.0, least - 1, 1e-6)
    for epsilon, n, delta in ((0.3, 3000, 1e-5), (2.0, 10**5, 1e-7)):
        e = math.exp(epsilon)
        inside = (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n)
        assert shuffled_epsilon(epsilon, n, delta) == pytest.approx(math.log(1 + inside), rel=1e-12)
    assert shuffled_epsilon(0.001, 350, 1e-9) == 0.001, "where the theorem gives more, the local guarantee holds"


def test_an_audit_that_finds_nothing():
    result = audit_epsilon(lambda x: np.zeros(len(x)), 0, 1, n_reports=101, confidence=0.99)
    assert (result.epsilon_lower, result.above, result.counts) == (0.0, True, (0, 0))
    assert math.isnan(result.threshold)
    assert (result.n_reports, result.confidence) == (51, 0.99), "51 of 101 reports are counted"


@pytest.mark.parametrize("x, x_prime", [(0.0, 1.0), (1.0, 0.0)])
def test_an_audit_of_the_record_itself(x, x_prime):
    """Every report of one record and none of the other: a Clopper-Pearson bound in closed form."""
    result = audit_epsilon(lambda x: x, x, x_prime, n_reports=1000, confidence=0.99)
    # All 500 and none of 500, each limit at a quarter of the error probability.
    lower = 0.0025 ** (1 / 500)
    assert result.epsilon_lower == pytest.approx(math.log(lower / (1 - lower)), rel=1e-9)
    assert result.counts == (500, 0) and result.n_reports == 500
    taken_off = audit_epsilon(lambda x: x, x, x_prime, n_reports=1000, confidence=0.99, delta=0.25)
    assert taken_off.epsilon_lower == pytest.approx(math.log((lower - 0.25) / (1 - lower)), rel=1e-9)


def test_an_audit_counts_other_reports_than_it_selects_the_event_with():
    """The first half of the reports leaks and the second does not: the bound must be 0."""

    def leaky(x):
        return np.where(np.arange(len(x)) < len(x) // 2, x, 0.5)

    assert audit_epsilon(leaky, 0.0, 1.0, n_reports=1000).epsilon_lower == 0.0


def test_an_audit_takes_one_column_and_refuses_two():
    result = audit_epsilon(lambda x: np.asarray(x)[:, None], 0.0, 1.0, n_reports=200)
    assert result.epsilon_lower > 1
    with pytest.raises(ValueError, match="one number for each report"):
        audit_epsilon(lambda x: np.column_stack([x, x]), 0.0, 1.0, n_reports=200)
    for delta in (0.0, 0.999):
        audit_epsilon(lambda x: x, 0.0, 1.0, n_reports=100, delta=delta)
    with pytest.raises(ValueError, match="n_reports"):
        audit_epsilon(lambda x: x, 0.0, 1.0, n_reports=99)
    with pytest.raises(ValueError, match="delta"):
        audit_epsilon(lambda x: x, 0.0, 1.0, delta=-0.1)


def test_the_rarest_noise_has_the_probability_of_one_word():
    """Only the uniform number zero gives noise 1: one of 2^127, for either sign."""
    pmf = noise_pmf(lambda high, low: ((high == 0) & (low == 0)).astype(np.int64), [1, -1, 0])
    assert pmf[0] == pmf[1] == 2.0**-128 and pmf[2] == 1.0
