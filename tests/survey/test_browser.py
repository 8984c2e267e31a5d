"""The page in Chromium: from an answer to the report that is sent, by people, keyboards and screen readers."""

import contextlib
import json
import sqlite3
import time

import numpy as np
import pytest

from skldp.protocols import CategoryProtocol, ValueProtocol
from skldp.protocols._survey_page import page_text, survey_of
from tests.survey.browser import Receiver, chromium, needs_browser
from tests.survey.collecting import publish, running
from tests.survey.node import PROTOCOLS, SCRIPTED
from tests.survey.test_client import vectors

selenium = pytest.importorskip("selenium", reason="tests of the page need selenium")
pytestmark = needs_browser
HEIGHT = ValueProtocol(epsilon=1.0, bounds=(120, 220))
ASKED = [("How tall are you?", "cm")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def receiver():
    opened = Receiver()
    yield opened
    opened.close()


@pytest.fixture
def visit(browser, receiver):
    """Return a function that opens the page of a protocol as somebody who has never been there."""
    receiver.posts.clear()
    receiver.status = 200

    def visit(protocol=HEIGHT, questions=None, submit="/reports", title=None, keep=False):
        receiver.pages["/"] = page_text(protocol, title, questions, submit).encode()
        browser.get(receiver.address)
        if not keep:
            browser.execute_script("localStorage.clear()")
            browser.refresh()
        return browser

    yield visit
    assert [entry for entry in browser.get_log("browser") if "Content Security" in entry["message"]] == []


def at(browser, name):
    return browser.find_element("id", name)


def text_of(browser, name):
    return at(browser, name).text


def wait(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def answer(browser, *texts):
    for place, text in enumerate(texts):
        at(browser, f"q{place}").clear()
        at(browser, f"q{place}").send_keys(text)
    at(browser, "draw").click()


def payload(browser):
    return json.loads(at(browser, "sent").get_attribute("value"))


def stored(browser):
    return browser.execute_script("return {...localStorage}")


def test_an_answer_becomes_one_report_that_is_shown_sent_and_remembered(visit, receiver):
    browser = visit(questions=ASKED)
    assert "at most 73.2 % sure" in browser.find_element("tag name", "main").text
    at(browser, "q0").send_keys("173")
    assert text_of(browser, "q0n") == "Counts as 173 cm."
    at(browser, "draw").click()
    sent = payload(browser)
    assert sorted(sent) == ["protocol", "report", "submission"] and sent["protocol"] == HEIGHT.id
    assert HEIGHT.check([sent["report"]]).all() and len(bytes.fromhex(sent["submission"])) == 16
    shown = text_of(browser, "became")
    assert shown.startswith(f"Your answer 173 cm becomes the number {sent['report'][0]}.\nAny other answer could have")
    assert receiver.posts == [] and not at(browser, "form").is_displayed()
    assert browser.switch_to.active_element.get_attribute("id") == "heading"
    at(browser, "send").click()
    wait(lambda: "was sent" in text_of(browser, "status"))
    (path, headers, body), = receiver.posts
    assert path == "/reports" and json.loads(body) == sent and "Cookie" not in headers and "Referer" not in headers
    (key, kept), = stored(browser).items()
    assert key == f"skldp:{HEIGHT.id}:{survey_of(HEIGHT, ASKED)['asked']}"
    assert json.loads(kept) == {"submission": sent["submission"], "report": sent["report"], "sent": True}
    browser.refresh()
    assert payload(browser) == sent and "not drawn again" in text_of(browser, "status")
    assert "173 cm" not in text_of(browser, "became") and not at(browser, "form").is_displayed()
    assert not at(browser, "send").is_displayed() and len(receiver.posts) == 1


def test_the_page_works_from_a_file_and_offline(browser, tmp_path):
    HEIGHT.to_html(tmp_path / "survey.html", "Heights", ASKED)
    browser.get((tmp_path / "survey.html").as_uri())
    browser.execute_script("localStorage.clear()")
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    try:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **offline})
        browser.refresh()
        answer(browser, "180.5")
        assert HEIGHT.check([payload(browser)["report"]]).all() and not at(browser, "send").is_displayed()
        at(browser, "copy").click()
        wait(lambda: text_of(browser, "status") != "")
        assert "copied" in text_of(browser, "status") or "selected" in text_of(browser, "status")
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    finally:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **offline})


NO_NUMBERS = {
    "": "Please answer", "tall": "digits 0 to 9", "1e3": "digits 0 to 9", "0x10": "digits 0 to 9",
    "1,234": "without a comma", "1.2.3": "digits 0 to 9", "--5": "digits 0 to 9", "9" * 41: "digits 0 to 9",
    "Infinity": "digits 0 to 9", "1 000": "digits 0 to 9", ".": "digits 0 to 9", "\u0661\u0662": "digits 0 to 9",
}


def test_what_is_no_number_is_explained_and_nothing_is_drawn(visit):
    browser = visit()
    found = browser.execute_script("""
        const at = (id) => document.getElementById(id), field = at("q0");
        return arguments[0].map((typed) => {
          field.value = typed;
          at("draw").click();
          return [at("q0n").textContent, field.getAttribute("aria-invalid"), document.activeElement === field,
                  at("error").textContent, localStorage.length, at("result").hidden];
        });
    """, list(NO_NUMBERS))
    for (typed, problem), (note, *rest) in zip(NO_NUMBERS.items(), found, strict=True):
        assert problem in note, typed
        assert rest == ["true", True, "Please look at the marked answers. Nothing was drawn or sent.", 0, True]


def test_numbers_may_be_written_in_several_ways_and_are_clipped_visibly(visit):
    browser = visit(ValueProtocol(bounds=(-5, 5)), [("Where?", "m")])
    for typed, counted in {" 2.5 ": "2.5 m.", "2,5": "2.5 m.", "\u22123": "-3 m.", "+4": "4 m.", "1,2345": "1.2345 m.",
                           "\uff12\uff0e5": "2.5 m.", "7": "5 m, the end of the range.",
                           "-99": "-5 m, the end of the range."}.items():
        at(browser, "q0").clear()
        at(browser, "q0").send_keys(typed)
        assert text_of(browser, "q0n") == f"Counts as {counted}"


def test_an_answer_outside_the_range_is_drawn_only_if_it_is_confirmed(visit):
    browser = visit(questions=ASKED)
    for typed in ("1730", "17.3"):
        answer(browser, typed)
        assert "press the button again" in text_of(browser, "error") and stored(browser) == {}
    at(browser, "draw").click()
    assert text_of(browser, "became").startswith("Your answer 120 cm becomes") and text_of(browser, "error") == ""
    browser = visit(questions=ASKED)
    for typed in ("1730", "173"):
        answer(browser, typed)
    assert text_of(browser, "became").startswith("Your answer 173 cm becomes")


def test_options_are_radio_buttons_or_a_list(visit):
    few = PROTOCOLS["randomised response"]
    browser = visit(few, "Which pet?")
    at(browser, "draw").click()
    assert "choose an answer" in text_of(browser, "q0n") and stored(browser) == {}
    browser.find_elements("css selector", "input[type=radio]")[2].click()
    at(browser, "draw").click()
    (code,) = payload(browser)["report"]
    became = f"Your answer \u201cfish\u201d becomes \u201c{few.categories[code]}\u201d."
    assert text_of(browser, "became").startswith(became)

    many = CategoryProtocol(categories=tuple(range(9)), mechanism="oue")
    browser = visit(many)
    at(browser, "q0").send_keys("7")
    at(browser, "draw").click()
    report = payload(browser)["report"]
    names = ", ".join(f"\u201c{code}\u201d" for code in np.flatnonzero(report)) or "empty"
    assert many.check([report]).all() and names in text_of(browser, "became")
    browser = visit(PROTOCOLS["subset of many"])
    at(browser, "q0").send_keys("7")
    at(browser, "draw").click()
    assert f" and {sum(payload(browser)['report']) - 10} others." in text_of(browser, "became")


def test_several_questions_share_the_budget_as_the_protocol_says(visit):
    browser = visit(PROTOCOLS["sampled"], [("Mon?", "h"), ("Tue?", "h"), ("Wed?", "h")])
    answer(browser, "7", "8", "9")
    report, shown = payload(browser)["report"], text_of(browser, "became")
    place = report[0]
    assert PROTOCOLS["sampled"].check([report]).all() and "Your other answers are not used." in shown
    assert f"Your answer {7 + place} h to question {place + 1} becomes the number {report[place + 1]}." in shown

    browser = visit(PROTOCOLS["split"])
    answer(browser, "7", "8", "9")
    report, shown = payload(browser)["report"], text_of(browser, "became")
    assert all(f"Your answer {7 + place} to question {place + 1} becomes the number {value}." in shown
               for place, value in enumerate(report))

    rows = PROTOCOLS["subset of rows"]
    browser = visit(rows, ["Letter?", "Number?"])
    for entry in browser.find_elements("css selector", "input[value='0']"):
        entry.click()
    at(browser, "draw").click()
    assert rows.check([payload(browser)["report"]]).all()
    assert "Your answer \u201ca\u201d, \u201c1\u201d becomes the list" in text_of(browser, "became")


def test_a_report_that_could_not_be_sent_is_sent_again_unchanged(visit, receiver):
    browser = visit(submit=f"{receiver.address}/reports")
    answer(browser, "150")
    receiver.status = 500
    at(browser, "send").click()
    wait(lambda: "refused the report (code 500)" in text_of(browser, "status"))
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/reports"]})
    at(browser, "send").click()
    wait(lambda: "could not be sent" in text_of(browser, "status"))
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    receiver.status = 200
    browser.refresh()  # unsent, so it can still be sent
    at(browser, "send").click()
    wait(lambda: "was sent" in text_of(browser, "status"))
    assert len({body for _, _, body in receiver.posts}) == 1 and len(receiver.posts) == 2


def test_another_tab_shows_the_report_and_draws_no_second_one(visit, receiver):
    browser = visit()
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(receiver.address)
    at(browser, "q0").send_keys("200")
    second = browser.current_window_handle
    browser.switch_to.window(first)
    answer(browser, "150")
    sent = payload(browser)
    browser.switch_to.window(second)
    wait(lambda: at(browser, "result").is_displayed())
    assert payload(browser) == sent and not at(browser, "form").is_displayed()
    browser.close()
    browser.switch_to.window(first)


def test_another_survey_with_the_same_protocol_has_a_report_of_its_own(visit):
    browser = visit(questions="How tall are you?")
    answer(browser, "150")
    first = payload(browser)
    browser = visit(questions="How tall is your mother?", keep=True)
    answer(browser, "220")
    assert payload(browser)["submission"] != first["submission"]
    assert payload(visit(questions="How tall are you?", title="Corrected title", keep=True)) == first


def test_a_damaged_memory_does_not_lead_to_a_second_draw(visit):
    browser, key = visit(), f"skldp:{HEIGHT.id}:{survey_of(HEIGHT)['asked']}"
    for damage in ("{", "7", "null", '{"submission": "a", "report": [1, 2]}', '{"report": [0.5]}', ""):
        browser.execute_script("localStorage.setItem(arguments[0], arguments[1])", key, damage)
        browser.refresh()
        assert "cannot be read. No second answer" in text_of(browser, "error"), damage
        assert not at(browser, "form").is_displayed() and not at(browser, "result").is_displayed()


def test_a_browser_without_memory_says_so(visit):
    browser = visit()
    forget = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'SecurityError'); } })"
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": forget})
    try:
        browser.refresh()
        answer(browser, "150")
        assert "cannot remember" in text_of(browser, "status") and HEIGHT.check([payload(browser)["report"]]).all()
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_a_browser_that_cannot_draw_the_noise_says_so_and_asks_nothing(visit):
    browser = visit()
    old = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.BigUint64Array"})
    try:
        for disabled in (False, True):
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": disabled})
            browser.refresh()
            assert "needs JavaScript and a current browser" in text_of(browser, "error")
            assert not at(browser, "form").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", old)
    browser.refresh()
    assert text_of(browser, "error") == "" and at(browser, "form").is_displayed()


def test_neither_spell_checkers_nor_translators_get_an_answer(visit):
    browser = visit(questions=ASKED)
    field = at(browser, "q0")
    assert field.get_attribute("spellcheck") == "false" and field.get_attribute("name") == ""
    assert at(browser, "form").get_attribute("autocomplete") == "off"
    for name in ("q0n", "became"):
        assert at(browser, name).get_property("translate") is False


def test_the_answer_is_gone_when_somebody_goes_back(visit):
    browser = visit(questions=ASKED)
    answer(browser, "173")
    assert "173 cm" in text_of(browser, "became")
    browser.get("about:blank")
    browser.back()
    wait(lambda: at(browser, "result").is_displayed())
    assert "173 cm" not in browser.find_element("tag name", "main").get_attribute("innerHTML")
    assert browser.find_elements("css selector", "input, select") == [], "no answer is left in a hidden form"


def test_the_policy_stops_foreign_scripts_and_connections(visit, receiver, browser):
    visit(submit=None)
    blocked = browser.execute_async_script("""
        const [address, done] = arguments, found = [];
        document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
        const script = document.createElement("script");
        try { script.textContent = "window.foreign = 1"; document.body.append(script); } catch {}
        const image = document.createElement("img");
        image.src = address;
        fetch(address).catch(() => {}).then(() => setTimeout(() => done([found, window.foreign ?? null]), 50));
    """, receiver.address)
    assert {"connect-src", "img-src"} <= set(blocked[0]) and blocked[1] is None
    browser.get_log("browser")  # these violations were expected


def test_the_form_works_with_the_keyboard_alone(visit, browser):
    from selenium.webdriver import ActionChains, Keys

    visit(PROTOCOLS["randomised response"], "Which pet?")
    ActionChains(browser).send_keys(Keys.TAB, Keys.TAB, Keys.SPACE, Keys.ARROW_DOWN, Keys.ENTER).perform()
    assert "Your answer \u201cdog\u201d becomes" in text_of(browser, "became")
    ActionChains(browser).send_keys(Keys.TAB, Keys.TAB, Keys.ENTER).perform()
    wait(lambda: "was sent" in text_of(browser, "status"))


def test_screen_readers_get_names_roles_and_messages(visit):
    browser = visit(questions=ASKED)
    field = at(browser, "q0")
    assert (field.aria_role, field.accessible_name) == ("textbox", "How tall are you?")
    assert field.get_attribute("aria-describedby") == "q0n"
    assert browser.find_element("tag name", "html").get_attribute("lang") == "en"
    assert at(browser, "error").aria_role == "alert" and at(browser, "status").get_attribute("role") == "status"
    assert at(browser, "draw").accessible_name == "Add noise to my answer"
    answer(browser, "150")
    assert at(browser, "sent").accessible_name == "This is all that is sent:"
    browser = visit(PROTOCOLS["randomised response"], "Which pet?")
    group = browser.find_element("tag name", "fieldset")
    assert group.accessible_name == "Which pet?" and group.aria_role in ("group", "radiogroup")
    names = [entry.accessible_name for entry in browser.find_elements("css selector", "input")]
    assert names == ["cat", "dog", "fish", "newt", "owl"]


# Ratio of luminances, as in the web content accessibility guidelines, of every visible element with text of its own.
CONTRAST = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number);
const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4), weights = [0.2126, 0.7152, 0.0722];
const light = (color) => weights.reduce((sum, weight, place) => sum + weight * linear(parse(color)[place] / 255), 0);
function behind(element) {
  const color = getComputedStyle(element).backgroundColor;
  return parse(color)[3] !== 0 ? color : element.parentElement ? behind(element.parentElement) : "rgb(255, 255, 255)";
}
const has = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && has(e)).map((element) => {
  const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((one, other) => other - one);
  return [(a + 0.05) / (b + 0.05), element.id || element.tagName];
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_a_narrow_screen_needs_no_sideways_scrolling(visit, scheme):
    long = [("How tall are you, " + "w" * 60 + "?", "centimetres")]
    browser = visit(questions=long, title="A rather long title " * 4)
    preferred = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", preferred)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 320, "height": 640, "deviceScaleFactor": 1,
                                                                   "mobile": True})
    try:
        for texts in ([""], ["150"]):
            answer(browser, *texts)
            ratios = browser.execute_script(CONTRAST)
            assert len(ratios) > 10 and min(ratios)[0] >= 4.5, min(ratios)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 320
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_report_reaches_the_database_of_the_example_collector(browser, tmp_path):
    pytest.importorskip("uvicorn", reason="the collector needs starlette and uvicorn")
    publish(tmp_path)
    with running(tmp_path) as (_, port):
        browser.get(f"http://127.0.0.1:{port}/")
        answer(browser, "7.5")
        sent = payload(browser)
        at(browser, "send").click()
        wait(lambda: "was sent" in text_of(browser, "status"))
    with contextlib.closing(sqlite3.connect(tmp_path / "reports.sqlite")) as database:
        (submission, line), = database.execute("SELECT * FROM reports")
    assert submission == sent["submission"] and json.loads(line) == sent


def test_chromium_draws_what_python_draws_from_the_same_words(visit):
    browser = visit()
    for name in ("square wave", "square wave, fine grid", "sampled", "randomised response", "subset of many",
                 "unary encoding, large budget"):
        cases, expected = vectors(PROTOCOLS[name], n_rounds=2)
        found = browser.execute_script(SCRIPTED + """
            const read = skldp.read(JSON.stringify(arguments[0]));
            return arguments[1].map(({ answers, words, octets }) => {
              const source = scripted(words, octets), report = skldp.privatize(read, answers, source);
              return [report, source.n_words, source.n_bytes];
            });
        """, survey_of(PROTOCOLS[name]), cases)
        assert found == expected, name


def test_a_report_takes_at_most_five_milliseconds(visit):
    browser = visit()
    for name in PROTOCOLS:
        survey = survey_of(PROTOCOLS[name])
        answers = ["3.25" if "bounds" in question else 0 for question in survey["questions"]]
        milliseconds = browser.execute_script("""
            const read = skldp.read(JSON.stringify(arguments[0])), times = [];
            for (let i = 0; i < 20; i++) {
              const start = performance.now();
              skldp.privatize(read, arguments[1]);
              times.push(performance.now() - start);
            }
            return times.sort((one, other) => one - other)[10];
        """, survey, answers)
        assert milliseconds <= 5, name
