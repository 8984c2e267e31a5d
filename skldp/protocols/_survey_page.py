"""Pages for browsers: a form that draws the report of one person on the person's own device."""

import base64
import hashlib
import html
import json
import math
import re
from importlib.resources import files
from urllib.parse import urlsplit

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._randomized_response import RandomizedResponse
from skldp.mechanisms._square_wave import SquareWave
from skldp.mechanisms._subset_selection import SubsetSelection
from skldp.mechanisms._unary_encoding import UnaryEncoding
from skldp.protocols._atomic_files import write_atomically
from skldp.protocols._description import describe, digest
from skldp.protocols._survey_words import details, guarantee, number_text, promise

MAX_QUESTIONS = 50
MAX_OPTIONS = 1000  # of one question, and of their combinations: a longer list is no form
_MAX_TEXT = 2000
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_PATH = re.compile(r"[!#-;=?-Z\[\]_a-z~%]*")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def write_page(protocol, path, title, questions, submit):
    """Write the page of a protocol to a file, which is replaced atomically."""
    page = page_text(protocol, title, questions, submit)
    write_atomically(path, lambda stream: stream.write(page.encode()))


def page_text(protocol, title, questions, submit):
    """Return the page of a protocol as text; raise an error if no page can draw its reports."""
    survey = survey_of(protocol, questions, submit)
    title = _check_text("Private survey" if title is None else title, "The title")
    parts = {
        "title": html.escape(title),
        "promise": html.escape(promise(submit)),
        "leaves": "This is all that is sent:" if submit is not None else "This is the report, for you to pass on:",
        "guarantee": _items(guarantee(protocol, submit)),
        "details": _items(details(protocol)),
        # No part of the JSON can end the script element that contains it.
        "survey": json.dumps(survey, separators=(",", ":")).replace("<", "\\u003c"),
        "client": _data("client.js"),
        "form": _data("form.js"),
    }
    page = _fill(_data("page.html"), parts)
    return _fill(page, {"policy": _policy(page, submit)}, count=1)


def survey_of(protocol, questions=None, submit=None):
    """Return what a page must know: the protocol, its questions, and the whole numbers of its mechanism."""
    describe_questions = _ASKED.get(type(protocol).__name__, _refuse)
    if math.isinf(protocol.epsilon):
        raise InvalidParameterError("This protocol has epsilon=inf, which is no privacy at all: it is a simulation "
                                    "and not for people. Use a finite epsilon.")
    asked, integers = describe_questions(protocol), _integers(protocol.randomizer)
    texts = _check_questions(questions, protocol.n_features)
    _check_submit(submit)
    entries = [{"text": text, "unit": unit, **question}
               for (text, unit), question in zip(texts, asked["questions"], strict=True)]
    return {"protocol": _without_labels(describe(protocol)), "id": digest(protocol), "asked": _digest_of(texts),
            "width": protocol.width, "integers": integers, **asked, "questions": entries, "submit": submit}


def _digest_of(texts):
    """Digest of the questions: two surveys may have the same protocol, and a browser must not mix up their reports."""
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=8).hexdigest()


def _refuse(protocol):
    """Raise the error of a protocol without a page."""
    raise InvalidParameterError(
        f"There is no page for {type(protocol).__name__}. A page draws its noise in whole numbers, which it can do for "
        "values and categories: ValueProtocol, SampledValueProtocol and CategoryProtocol. The noise of vectors is "
        "computed in floating point, whose errors are bounded for NumPy but not for a browser. Use "
        "skldp.protocols.Client for this protocol."
    )


def _integers(randomizer):
    """Return the whole numbers that decide a report, as texts: JavaScript reads numbers in JSON as floats."""
    integers = _INTEGERS.get(type(randomizer))
    if integers is None:
        raise InvalidParameterError(
            f"There is no page for the mechanism {type(randomizer).__name__}. Pages draw square waves, subsets, unary "
            "encodings and randomised responses, in whole numbers; Laplace and Gaussian noise is computed in floating "
            'point, whose errors are bounded for NumPy but not for a browser. Use mechanism="square_wave" for values, '
            'mechanism="subset" for categories, or skldp.protocols.Client.'
        )
    return {name: list(map(str, value)) if isinstance(value, tuple) else str(value)
            for name, value in integers(randomizer).items()}


def _square_wave(mechanism):
    lower, upper = mechanism.bounds
    return {"threshold": mechanism._threshold, "half_window": mechanism.half_window,
            "lower": lower.as_integer_ratio(), "upper": upper.as_integer_ratio(),
            "width": (upper - lower).as_integer_ratio()}


def _bits(mechanism):
    return {"threshold": mechanism._threshold}


def _subset(mechanism):
    return {"threshold": mechanism._threshold, "subset_size": mechanism.subset_size}


# By exact class, as for protocols below: a subclass may draw its reports in another way.
_INTEGERS: dict = {SquareWave: _square_wave, RandomizedResponse: _bits, UnaryEncoding: _bits,
                   SubsetSelection: _subset}


def _ask_values(protocol):
    bounds = [number_text(bound) for bound in protocol.bounds]
    return {"questions": [{"bounds": bounds}] * protocol.n_features}


def _ask_category(protocol):
    rows = [row if protocol.n_features > 1 else (row,) for row in protocol.categories]
    if not 2 <= len(rows) <= MAX_OPTIONS:
        raise InvalidParameterError(f"A page offers 2 to {MAX_OPTIONS} categories, and this protocol has {len(rows)}. "
                                    "Use fewer categories, or skldp.protocols.Client.")
    options = [list(dict.fromkeys(column)) for column in zip(*rows)]
    texts = [[_label(value) for value in column] for column in options]
    if any(len(set(column)) < len(column) for column in texts):
        raise InvalidParameterError("Two categories of this protocol look the same on a page, such as 1 and '1'. "
                                    "Rename one of them.")
    places = [{value: place for place, value in enumerate(column)} for column in options]
    records = {"records": [[place[value] for place, value in zip(places, row)] for row in rows]}
    return {"questions": [{"options": column} for column in texts], **(records if protocol.n_features > 1 else {})}


_ASKED = {"ValueProtocol": _ask_values, "SampledValueProtocol": _ask_values, "CategoryProtocol": _ask_category}


def _without_labels(description):
    """Return a description without its categories, which the page has as options."""
    return {name: value for name, value in description.items() if name != "categories"}


def _label(value):
    return _check_text(number_text(value) if isinstance(value, float) else str(value), "A category")


def _check_questions(questions, n_questions):
    """Return one pair of a question and a unit for each column."""
    if n_questions > MAX_QUESTIONS:
        raise InvalidParameterError(f"A page asks at most {MAX_QUESTIONS} questions, and this protocol has "
                                    f"{n_questions}. Use fewer columns, or skldp.protocols.Client.")
    if questions is None:
        questions = ["Your answer"] if n_questions == 1 else [f"Answer {i + 1}" for i in range(n_questions)]
    questions = [questions] if isinstance(questions, str) else questions
    if not isinstance(questions, (list, tuple)) or len(questions) != n_questions:
        raise InvalidParameterError(f"questions must be a list with one entry for each of the {n_questions} columns of "
                                    f'the protocol, got {questions!r}. An entry is a text, or a pair ("How tall are '
                                    'you?", "cm") of a text and a unit.')
    return [_check_question(question) for question in questions]


def _check_question(question):
    text, unit = question if isinstance(question, (list, tuple)) and len(question) == 2 else (question, "")
    return _check_text(text, "A question"), _check_text(unit, "A unit", fewest=0)


def _check_text(text, what, fewest=1):
    if not isinstance(text, str) or not fewest <= len(text.strip()) <= _MAX_TEXT:
        raise InvalidParameterError(f"{what} of a page must be a text of {fewest} to {_MAX_TEXT} characters, got "
                                    f"{str(text)[:50]!r}.")
    return text


def _check_submit(submit):
    """Raise an error unless the address is safe: HTTPS, this machine, or a path on the host of the page."""
    if submit is None or _is_own_path(submit):
        return
    if not isinstance(submit, str) or not _is_safe(submit):
        raise InvalidParameterError(f"submit must be an https address, such as 'https://example.org/reports', an http "
                                    f"address of this machine, or a path such as '/reports', got {submit!r}. Without "
                                    "it, the page offers to copy the report.")


def _is_own_path(submit):
    return isinstance(submit, str) and re.fullmatch(r"/(?!/)" + _PATH.pattern, submit) is not None


def _is_safe(submit):
    try:
        parts = urlsplit(submit)
        encrypted = parts.scheme == "https" or parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        return False
    return encrypted and _HOST.fullmatch(parts.netloc) is not None and _PATH.fullmatch(submit[8:]) is not None


def _policy(page, submit):
    """Return a policy that allows the page's own scripts and styles, and connections to its receiver only."""
    target = "'none'" if submit is None else "'self'"
    if submit is not None and not _is_own_path(submit):
        parts = urlsplit(submit)
        target = f"{parts.scheme}://{parts.netloc}"
    scripts, styles = (" ".join(map(_hash, pattern.findall(page))) for pattern in (_SCRIPT, _STYLE))
    return (f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src {target}; base-uri 'none'; "
            "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")


def _hash(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _fill(template, parts, count=0):
    """Replace the places of a template in one pass, so that no part is searched for places."""
    return _PLACE.sub(lambda place: parts.get(place[1], place[0]), template, count=count)


def _items(sentences):
    return "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)


def _data(name):
    return (files("skldp.survey") / name).read_text(encoding="utf-8")
