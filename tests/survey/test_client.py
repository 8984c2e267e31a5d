"""The JavaScript client draws what Python's mechanisms draw from the same words, and its broken copies do not."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import chi2

from skldp.exceptions import InvalidParameterError, SeededNoiseWarning
from skldp.privacy import audit_epsilon
from skldp.protocols import CategoryProtocol, ValueProtocol
from skldp.protocols._category_protocol import MECHANISMS
from skldp.protocols._survey_page import survey_of
from tests.mechanisms.registry import Scripted
from tests.survey.node import CLIENT, LEVELS, PROTOCOLS, VECTORS, draw_many, needs_node, run_node

pytestmark = needs_node
WORD = 2**64
EDGE_TEXTS = ["0", "-0", "+7", "12.", ".5", "1" * 40, "-" + "9" * 39, "0." + "0" * 36 + "1", "219.99999999999999999"]


def answers_of(protocol, rng, n_answers):
    """Records for Python, and the same as answers of a page: random ones, and the extremes."""
    if isinstance(protocol, CategoryProtocol):
        survey = survey_of(protocol)
        records = survey.get("records", [[code] for code in range(protocol.n_categories)])
        codes = [*range(min(len(records), 5)), len(records) - 1, *rng.integers(len(records), size=n_answers)]
        return [protocol.categories[code] for code in codes], [records[code] for code in codes]
    lower, upper = protocol.bounds
    values = [lower, upper, lower - 1, upper + 1e9, (lower + upper) / 2, *rng.uniform(lower, upper, n_answers)]
    texts = [f"{value:.{digits}f}" for value, digits in zip(values, itertools.cycle((0, 1, 3, 17)))]
    rows = [rng.permutation(texts)[:protocol.n_features].tolist() for _ in texts]
    rows[0], rows[1] = [texts[0]] * protocol.n_features, [texts[1]] * protocol.n_features
    return [[float(text) for text in row] for row in rows], rows


def words_of(protocol, rng):
    """Words and bytes for one report: random ones, the extremes, and those next to the threshold."""
    threshold = protocol.randomizer._threshold
    edges = [0, 1, WORD - 1, WORD // 2, *(max(threshold + step, 0) % WORD for step in (-1, 0, 1))]
    rest = threshold % 2**56
    edges += [(rest + step) % 2**56 << 8 for step in (-1, 0, 1)]
    # Neighbours of the threshold that a double cannot tell from it.
    edges += [(threshold + step) % WORD for step in (-300, 300)]
    leading = threshold >> 56
    n_words = 3 + 2 * protocol.n_features + protocol.width
    words = mixed(edges, rng.integers(WORD, size=n_words, dtype=np.uint64), rng)
    return words, mixed([leading, 0, 255], rng.integers(256, size=protocol.width + 1), rng)


def mixed(edges, numbers, rng):
    """Numbers, more than half of which are replaced by edges."""
    places = rng.integers(len(edges) * 9 // 5 + 1, size=len(numbers)).tolist()
    return [edges[place] if place < len(edges) else number for place, number in zip(places, numbers.tolist())]


def vectors(protocol, n_rounds=8, seed=0):
    """Cases for the client, and the reports and numbers of words that Python's mechanism has for them."""
    rng, cases, expected = np.random.default_rng(seed), [], []
    for _ in range(n_rounds):
        for record, answers in zip(*answers_of(protocol, rng, 5)):
            words, octets = words_of(protocol, rng)
            source = Scripted(words, octets)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeededNoiseWarning)
                report = protocol.privatize([record], random_state=source)
            cases.append({"answers": answers, "words": list(map(str, words)), "octets": octets})
            used = len(words) - len(source._words), len(octets) - len(source._bytes)
            expected.append([report[0].tolist(), *used])
    return cases, expected


@pytest.fixture(scope="module")
def drawn():
    """Reports of the client and of Python from the same words, by protocol; Node starts once."""
    made = {name: vectors(protocol) for name, protocol in PROTOCOLS.items()}
    found = run_node(VECTORS, [{"survey": survey_of(PROTOCOLS[name]), "cases": cases}
                               for name, (cases, _) in made.items()])
    return {name: (reports, made[name][1]) for name, reports in zip(made, found)}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_reports_agree_with_python_for_given_words(name, drawn):
    found, expected = drawn[name]
    assert found == expected
    assert len({tuple(report) for report, *_ in found}) > 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_of_categories_is_compared_or_has_no_page(mechanism):
    if mechanism in {protocol.mechanism for protocol in PROTOCOLS.values()}:
        return
    with pytest.raises(InvalidParameterError, match="There is no page for the mechanism"):
        survey_of(CategoryProtocol(categories=tuple(range(7)), mechanism=mechanism))


def test_the_number_of_words_does_not_depend_on_the_answer():
    rng, given = np.random.default_rng(1), []
    for protocol in PROTOCOLS.values():
        words, octets = words_of(protocol, rng)
        answers = answers_of(protocol, rng, 10)[1]
        if isinstance(protocol, CategoryProtocol) and protocol.n_features > 1:
            answers = [*answers, [2, 0]]  # no category
        cases = [{"answers": answer, "words": list(map(str, words)), "octets": octets} for answer in answers]
        given.append({"survey": survey_of(protocol), "cases": cases})
    for reports in run_node(VECTORS, given):
        assert len({tuple(used) for _, *used in reports}) == 1


def test_a_combination_that_is_no_category_is_replaced_by_a_random_one():
    protocol = PROTOCOLS["subset of rows"]
    cases = [{"answers": [2, 0], "words": [str(word), "0", "0", "0", "0"], "octets": []} for word in (0, WORD - 1)]
    found, = run_node(VECTORS, [{"survey": survey_of(protocol), "cases": cases}])
    assert found[0][0][0] == 1 and found[1][0][3] == 1, "the first word chooses the category; the second is near"


def grids():
    """Protocols with grids on which rounding is difficult."""
    for bounds, n_levels in [((120, 220), 1024), ((0, 1), 1024), ((0, 20), 20), ((0.1, 0.7), 7), ((-5, 5), 1000),
                             ((1e-290, 3e-290), 10), ((-1e300, 1e300), 1024), ((1e15, 1e15 + 8), 64),
                             ((0, 1 / 3), 2**24), ((-0.3, 0.1), 3)]:
        yield ValueProtocol(epsilon=1.0, bounds=bounds, n_levels=n_levels)


def decimal_texts(protocol, rng, n_texts):
    """Decimal numbers of at most 40 characters: random ones, ties between two levels, and neighbours of these."""
    lower, upper = protocol.bounds
    yield from EDGE_TEXTS
    for value in rng.uniform(lower, upper, n_texts):
        yield f"{value:.{rng.integers(0, 18)}f}"
    for level in rng.integers(protocol.n_levels, size=n_texts):
        tie = lower + (level + 0.5) * (upper - lower) / protocol.n_levels
        for value in (np.nextafter(tie, -np.inf), tie, np.nextafter(tie, np.inf)):
            yield f"{value:.20f}"


def level_cases():
    """Decimal numbers on all grids for the client, and the levels that Python has for them."""
    rng = np.random.default_rng(0)
    for protocol in grids():
        texts = list(decimal_texts(protocol, rng, 150))
        yield ({"survey": survey_of(protocol), "texts": texts},
               protocol.randomizer.encode([float(text) for text in texts]).tolist())


def test_decimal_numbers_are_rounded_to_the_grid_as_python_rounds_them():
    cases, expected = zip(*level_cases())
    assert run_node(LEVELS, cases) == list(expected)
    assert sum(map(len, expected)) > 5_000


# ---- Broken copies of the client, each of which a comparison above must detect
MUTANTS = {
    "threshold rounded to a double": (
        "words[place] < threshold", "words[place] < BigInt(Number(threshold))", "square wave"),
    "comparison of floats": ("words[place] < threshold", "Number(words[place]) < Number(threshold)", "square wave"),
    "threshold too large by one": ("word < threshold ? 0", "word <= threshold ? 0", "randomised response"),
    "Math.random for a word": (
        "below(position, window)", "below(BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n, window)", "square wave"),
    "position from a float": (
        "(word * n) >> 64n", "BigInt(Math.floor(Number(word) / 2 ** 64 * Number(n)))", "square wave, fine grid"),
    "number of words that depends on the answer": (
        "return code < 0 ? other : code", "return code === 0 ? known(1, n, source) : code", "subset"),
    "no skipped round": ("if (!near || round > 0)", "if (true)", "subset"),
    "own bit without noise": ("source.bytes(1)[0] % 2", "(source.bytes(1), 1)", "unary encoding"),
    "ties without further bits": (">> 8n < rest", ">> 8n < 0n", "unary encoding"),
    "another answer than the coin chose": (
        "values(survey, [answers[column]], source)", "values(survey, [answers[0]], source)", "sampled"),
}


def replaced(old, new):
    assert CLIENT.count(old) == 1
    return CLIENT.replace(old, new)


def test_broken_clients_are_detected_by_given_words():
    made = [(vectors(PROTOCOLS[name]), {"client": replaced(old, new), "survey": survey_of(PROTOCOLS[name])})
            for old, new, name in MUTANTS.values()]
    found = run_node(VECTORS, [{**given, "cases": cases} for (cases, _), given in made])
    missed = [name for name, reports, ((_, expected), _) in zip(MUTANTS, found, made) if reports == expected]
    assert len(found) == len(MUTANTS) and missed == []


WRONG_ROUNDINGS = {
    "decimal not rounded": ("const typed = nearestDouble(fraction(decimal));", "const typed = fraction(decimal);"),
    "quotient not rounded": ("const share = nearestDouble(over(", "const share = (over("),
    "half up": ("|| (twice === b && floor % 2n === 1n)", "|| twice === b"),
    "float": ("const rounded = halfToEven(a, b);", "const rounded = BigInt(Math.round(Number(a) / Number(b)));"),
}


def test_wrong_roundings_are_detected():
    cases, expected = zip(*level_cases())
    found = run_node(LEVELS, [{**case, "client": replaced(*change)}
                              for change in WRONG_ROUNDINGS.values() for case in cases])
    n_grids = len(cases)
    for place, name in enumerate(WRONG_ROUNDINGS):
        assert found[place * n_grids:(place + 1) * n_grids] != list(expected), name


SYSTEM = """
const calls = [], fills = { BigUint64Array: 0n, Uint8Array: 1 };
const getRandomValues = (array) => { calls.push(array.length); return array.fill(fills[array.constructor.name]); };
Object.defineProperty(globalThis, "crypto", { value: { getRandomValues } });
Math.random = () => { throw new Error("Math.random"); };
Date.now = () => { throw new Error("Date.now"); };
print(input.surveys.map((survey) => {
  const answers = survey.questions.map((question) => (question.bounds ? "3" : 0));
  calls.length = 0;
  skldp.privatize(skldp.read(JSON.stringify(survey)), answers);
  return calls.reduce((one, other) => one + other, 0);
}));
"""


def test_all_randomness_comes_from_the_cryptographic_generator():
    surveys = [survey_of(protocol) for protocol in PROTOCOLS.values()]
    assert all(run_node(SYSTEM, {"surveys": surveys}))
    with pytest.raises(AssertionError, match="Math.random"):
        run_node(SYSTEM, {"surveys": surveys}, replaced("const near = source.words(1)[0] < threshold",
                                                        "const near = BigInt(Math.random() * 2 ** 64) < threshold"))


# ---- Distribution of the reports
AUDITED = {
    "square wave": (ValueProtocol(epsilon=1.0, bounds=(0, 10), n_levels=20), ["0"], ["10"]),
    "randomised response": (PROTOCOLS["randomised response"], [0], [1]),
    "subset": (PROTOCOLS["subset"], [0], [4]),
    "unary encoding": (PROTOCOLS["unary encoding"], [0], [1]),
}


QUIET = "word < threshold ? 0", "word < threshold + (1n << 61n) ? 0"


def p_value(protocol, answers, n_reports, client=CLIENT):
    """p-value of the chi-squared test that reports have the probabilities of Python's mechanism."""
    rows, counts = draw_many(protocol, answers, n_reports, client)
    drawn, record = protocol.randomizer, [float(answers[0])] * len(rows)
    expected = n_reports * np.exp(drawn.log_prob(rows if protocol.width > 1 else rows[:, 0], record))
    assert expected.sum() > n_reports * (1 - 1e-9), "every report that has a probability was drawn"
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(rows) - 1)


def epsilon_bound(protocol, answers, other, n_reports, client=CLIENT):
    """Lower bound on the epsilon of the client, by Clopper-Pearson limits."""
    rng, drawn = np.random.default_rng(0), protocol.randomizer
    pools = {}
    for given in (answers, other):
        rows, counts = draw_many(protocol, given, n_reports, client)
        reports = rng.permutation(np.repeat(rows, counts, axis=0))
        pools[float(given[0])] = reports if protocol.width > 1 else reports[:, 0]

    class FromNode:
        randomize = staticmethod(lambda records: pools[float(records[0])])
        log_prob = staticmethod(drawn.log_prob)

    return audit_epsilon(FromNode(), float(answers[0]), float(other[0]), n_reports=n_reports).epsilon_lower


@pytest.mark.parametrize("name", AUDITED)
def test_reports_have_the_right_distribution(name):
    protocol, answers, _ = AUDITED[name]
    assert p_value(protocol, answers, 30_000) > 1e-6


def test_too_little_noise_is_detected():
    protocol, answers, _ = AUDITED["randomised response"]
    assert p_value(protocol, answers, 30_000, replaced(*QUIET)) < 1e-6
