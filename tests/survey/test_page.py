"""The page of a protocol as text: what it contains, and what is refused."""

import base64
import hashlib
import html
import json
import math
import re

import pytest

from skldp import LDPBayesLogisticRegression, LDPDensity, LDPGaussian, LDPHistogram, LDPPoisson
from skldp.exceptions import InvalidParameterError
from skldp.protocols import CategoryProtocol, Protocol, SampledValueProtocol, ValueProtocol, _base, _description
from skldp.protocols._survey_page import page_text
from skldp.protocols._survey_words import _percent, _ratio
from tests.protocols.registry import CASES, NOISY
from tests.survey.node import PROTOCOLS

VALUES = ValueProtocol(epsilon=1.0, bounds=(120, 220))


def page(protocol=VALUES, title=None, questions=None, submit=None):
    return page_text(protocol, title, questions, submit)


def survey_in(text):
    return json.loads(re.search(r'<script type="application/json" id="survey">(.*?)</script>', text).group(1))


def policy_in(text):
    content = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', text).group(1)
    return {rule.split()[0]: rule.split()[1:] for rule in html.unescape(content).split("; ")}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_page_is_small_and_names_its_protocol(name, tmp_path):
    protocol = PROTOCOLS[name]
    protocol.to_html(tmp_path / "survey.html")
    text = (tmp_path / "survey.html").read_text(encoding="utf-8")
    assert len(text.encode()) <= 30_000
    survey = survey_in(text)
    assert survey["id"] == protocol.id and survey["width"] == protocol.width
    assert int(survey["integers"]["threshold"]) == protocol.randomizer._threshold
    published = Protocol.from_json(protocol.to_json())
    assert survey["protocol"]["epsilon"] == published.epsilon
    assert re.findall(r"\{\{\w+\}\}", text) == []


def test_nothing_is_loaded_from_elsewhere():
    text = page(submit="https://example.org/reports")
    assert re.findall(r"https?://[^\s\"']+", text) == ["https://example.org;", "https://example.org/reports"]
    assert not re.search(r"\b(src|href|action|srcset|@import|url)\s*[=(]", text)
    forbidden = r"innerHTML|outerHTML|document\.write|eval\(|new Function|Math\.random|on(click|load|error)="
    assert not re.search(forbidden, text)


@pytest.mark.parametrize("submit, allowed", [
    (None, "'none'"), ("/reports", "'self'"), ("https://example.org/a?b=c", "https://example.org"),
    ("http://127.0.0.1:8000/reports", "http://127.0.0.1:8000"), ("http://localhost/r", "http://localhost"),
    ("http://[::1]:80/r", "http://[::1]:80"), ("https://example.org:8443", "https://example.org:8443"),
])
def test_the_policy_allows_the_own_scripts_and_the_receiver_only(submit, allowed):
    text = page(submit=submit)
    policy = policy_in(text)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["connect-src"] == [allowed] and survey_in(text)["submit"] == submit
    for kind, pattern in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        digests = [hashlib.sha256(part.encode()).digest() for part in re.findall(pattern, text, re.DOTALL)]
        assert policy[kind] == [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests] != []


@pytest.mark.parametrize("submit", [
    "", "reports", "//example.org/r", "http://example.org/r", "ftp://example.org", "javascript:alert(1)", 7,
    "https://", "https://user:word@example.org/", "https://example.org; script-src *", "https://exa mple.org",
    "https://example.org/\"><script>", "https://exam\nple.org/", "https://example.org:99999999/", "https://[::1",
    "/a b", "/a\"b", "/\nb", "data:text/plain,x", "http://localhost.example.org/", "http://127.0.0.1@example.org/",
])
def test_an_unsafe_address_is_refused(submit):
    with pytest.raises(InvalidParameterError, match="submit must be an https address"):
        page(submit=submit)


def test_texts_of_the_publisher_cannot_become_markup():
    evil = '</script><script>alert(1)</script><!-- "\'& {{policy}} {{client}}'
    protocol = CategoryProtocol(categories=(evil, "b", "c\u2028"))
    text = page(protocol, title=evil, questions=[(evil, evil)])
    assert text.count("<script") == 3 and "alert(1)</script>" not in text
    survey = survey_in(text)
    assert survey["questions"] == [{"text": evil, "unit": evil, "options": [evil, "b", "c\u2028"]}]
    assert text.count(html.escape(evil)) == 2, "title and heading"
    assert policy_in(text) == {**policy_in(page(protocol)), "connect-src": ["'none'"]}


@pytest.mark.parametrize("questions", [7, [], ["a", "b"], "", [""], [("a", "b", "c")], [("a", 7)], [None],
                                       ("How?", "cm"), ["x" * 2001], {"a": "b"}])
def test_questions_of_another_number_or_type_are_refused(questions):
    with pytest.raises(InvalidParameterError, match="questions must be a list|of a page must be a text"):
        page(questions=questions)


def test_questions_have_defaults():
    texts = [[question["text"] for question in survey_in(page(protocol))["questions"]]
             for protocol in (VALUES, SampledValueProtocol(n_features=2))]
    assert texts == [["Your answer"], ["Answer 1", "Answer 2"]]
    assert survey_in(page(questions="How tall?"))["questions"][0]["text"] == "How tall?"


def test_a_title_that_is_no_text_is_refused():
    for title in ("", 7, "x" * 2001):
        with pytest.raises(InvalidParameterError, match="title of a page"):
            page(title=title)


@pytest.mark.parametrize("name", [name for name in NOISY
                                  if not issubclass(CASES[name].kind, (ValueProtocol, CategoryProtocol))])
def test_protocols_of_vectors_are_refused(name, tmp_path):
    with pytest.raises(InvalidParameterError, match="There is no page for .*Protocol"):
        CASES[name].protocol.to_html(tmp_path / "survey.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_in_floating_point_is_refused(mechanism):
    with pytest.raises(InvalidParameterError, match='Use mechanism="square_wave"'):
        page(ValueProtocol(mechanism=mechanism, delta=1e-5))


@pytest.mark.parametrize("protocol", [ValueProtocol(epsilon=math.inf), CategoryProtocol(epsilon=math.inf)])
def test_a_protocol_without_privacy_is_refused(protocol):
    with pytest.raises(InvalidParameterError, match="no privacy at all"):
        page(protocol)


def test_a_subclass_that_may_draw_in_another_way_is_refused(monkeypatch):
    monkeypatch.setattr(_description, "KINDS", {})  # so that no other test finds the class
    monkeypatch.setattr(_base, "KINDS", {})

    class Other(CategoryProtocol):
        pass

    with pytest.raises(InvalidParameterError, match="There is no page for Other"):
        page(Other())


@pytest.mark.parametrize("protocol, message", [
    (CategoryProtocol(categories=tuple(range(1001))), "2 to 1000 categories"),
    (CategoryProtocol(categories=("one",)), "2 to 1000 categories"),
    (CategoryProtocol(categories=("1", 1)), "look the same"),
    (CategoryProtocol(categories=("", "a")), "of a page must be a text"),
    (ValueProtocol(n_features=51, epsilon=20.0), "at most 50 questions"),
])
def test_what_does_not_fit_on_a_page_is_refused(protocol, message):
    with pytest.raises(InvalidParameterError, match=message):
        page(protocol)


def test_the_options_of_rows_are_those_of_their_columns():
    survey = survey_in(page(PROTOCOLS["subset of rows"]))
    assert [question["options"] for question in survey["questions"]] == [["a", "b", "c"], ["1", "2"]]
    assert survey["records"] == [[0, 0], [0, 1], [1, 0], [2, 1]]


@pytest.mark.parametrize("estimator, options", [
    (LDPGaussian(bounds=(0, 24)), {"n_features": 2}), (LDPDensity(bounds=(0, 24)), {}), (LDPPoisson(), {}),
    (LDPHistogram(categories=["a", "b", "c"]), {}),
])
def test_default_protocols_of_estimators_have_a_page(estimator, options):
    protocol = estimator.protocol(**options)
    assert survey_in(page(protocol))["id"] == protocol.id


def test_regressions_refuse_in_a_sentence():
    with pytest.raises(InvalidParameterError, match="Use skldp.protocols.Client"):
        page(LDPBayesLogisticRegression(classes=[0, 1]).protocol(2))


# ---- The guarantee in words


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 1.0, 2.0, 4.0, 6.9, 8.0, 15.0, 20.0])
def test_the_numbers_of_the_guarantee_are_rounded_up(epsilon):
    ratio, percent = float(_ratio(epsilon).replace(",", "")), float(_percent(epsilon))
    assert math.exp(epsilon) <= ratio <= math.exp(epsilon) * 1.01 + 0.01
    exact = 100 / (1 + math.exp(-epsilon))
    assert exact <= percent < 100 and percent - exact <= min(0.1, 0.6 * (100 - exact))


def test_the_page_says_what_several_questions_share():
    split, sampled = (kind(n_features=2, epsilon=2.0) for kind in (ValueProtocol, SampledValueProtocol))
    assert "each gets a share of the budget (epsilon = 1)" in page(split)
    assert "A coin chooses one of your 2 answers" in page(sampled) and "88.1 % sure" in page(sampled)
    assert "the page treats them as one" in page(PROTOCOLS["subset of rows"])
    shown = re.sub(r"<script.*?</script>", "", page(), flags=re.DOTALL)
    assert "share of the budget" not in shown and "coin" not in shown


def test_the_page_does_not_play_down_a_large_budget():
    assert "One report says little about you" in page() and "noise of this survey is weak" not in page()
    large = page(VALUES.with_epsilon(8.0))
    assert "may say much about you" in large and "says little" not in large and "2,981 times" in large


def test_the_page_says_who_gets_the_report():
    assert "This page sends nothing" in page() and "your network address" not in page()
    assert "your network address" in page(submit="/reports")
