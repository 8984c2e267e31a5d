// Form of a survey: asks, draws one report, keeps it under the id of the protocol and its questions, and sends or
// copies it. The answers are neither kept nor sent, and neither spell checkers nor translators get them.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const survey = skldp.read(at("survey").textContent), { questions, protocol } = survey;
  const key = `skldp:${survey.id}:${survey.asked}`, sampled = protocol.kind === "SampledValueProtocol";
  let answer = null; // { submission, report, sent } once the noise is drawn
  let broken = false; // whether an earlier answer is stored and cannot be read
  let accepted = ""; // answers outside the range that the person has confirmed

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  const named = (text, unit) => (unit ? `${text} ${unit}` : text);
  const quoted = (text) => `\u201c${text}\u201d`;

  // ---- Memory: at most one report for each protocol and its questions

  const isAnswer = (found) => typeof found?.submission === "string" && Array.isArray(found.report) &&
    found.report.length === survey.width && found.report.every(Number.isSafeInteger);

  function recall() {
    try {
      const text = localStorage.getItem(key), found = text === null ? null : JSON.parse(text);
      broken = text !== null && !isAnswer(found);
      if (isAnswer(found)) answer = found;
    } catch (error) {
      broken = error instanceof SyntaxError; // any other error: this browser keeps no memory
    }
  }

  function remember() {
    try {
      localStorage.setItem(key, JSON.stringify(answer));
      return localStorage.getItem(key) !== null;
    } catch {
      return false;
    }
  }

  // ---- Questions. A field has read(), shown(), check(final), which returns what to correct, and outside().

  // Wide digits and the minus sign of typographers are accepted, and a comma as the decimal sign.
  const plain = (text) => text.normalize("NFKC").trim().replace("\u2212", "-");
  const number = (text) => plain(text).replace(/^\+/, "").replace(/^([^.,]*),([^.,]*)$/, "$1.$2");

  function problem(text) {
    if (plain(text) === "") return "Please answer this question.";
    if (/^[^.,]*,\d{3}$/.test(plain(text))) return "Please write this without a comma, which could mean two things.";
    if (text.length <= 40 && /^-?(\d+\.?\d*|\.\d+)$/.test(number(text))) return "";
    return "Please write a number with the digits 0 to 9, such as 12.5.";
  }

  // Number() only compares, for what the person sees; the report is drawn from the text.
  function counted(text, [low, high]) {
    const value = Number(number(text));
    return value < Number(low) ? low : value > Number(high) ? high : number(text);
  }

  const asked = (id, { text }) => make("label", { className: "question", htmlFor: id, textContent: text });

  function numberField(question, place) {
    const id = `q${place}`, { bounds, unit } = question, inputMode = /^-/.test(bounds[0]) ? "text" : "decimal";
    const input = make("input", { type: "text", id, inputMode, maxLength: 60, spellcheck: false, required: true });
    const note = make("p", { id: `${id}n`, translate: false });
    const shown = () => named(counted(input.value, bounds), unit);
    const outside = () => (counted(input.value, bounds) === number(input.value) ? null : input);

    function check(final) {
      const wrong = problem(input.value), marked = Boolean(wrong) && final;
      note.className = marked ? "note bad" : "note";
      input.setAttribute("aria-invalid", String(marked));
      note.textContent = marked ? wrong : wrong ? `A number from ${bounds[0]} to ${named(bounds[1], unit)}.`
        : `Counts as ${shown()}${outside() ? ", the end of the range" : ""}.`;
      return wrong ? input : null;
    }

    input.setAttribute("aria-describedby", note.id);
    input.addEventListener("input", () => check(false));
    const box = make("div", { className: "unit" }, input, make("span", { textContent: unit }));
    at("questions").append(make("div", { className: "field" }, asked(id, question), box, note));
    check(false);
    return { read: () => number(input.value), shown, check, outside };
  }

  // Up to eight options are radio buttons, more are a list.
  function optionField(question, place) {
    const id = `q${place}`, { options } = question, few = options.length <= 8;
    const note = make("p", { id: `${id}n`, className: "note bad" });
    const entries = options.map((text, option) => few
      ? make("input", { type: "radio", name: id, value: String(option), required: true })
      : make("option", { value: String(option), textContent: text }));
    const first = make("option", { value: "", textContent: "Choose an answer" });
    const select = few ? null : make("select", { id, required: true }, first, ...entries);
    const chosen = () => (few ? entries.find((entry) => entry.checked)?.value : select.value) ?? "";

    function check(final) {
      note.textContent = final && chosen() === "" ? "Please choose an answer." : "";
      return chosen() === "" ? select ?? entries[0] : null;
    }

    const labelled = (entry, option) => make("label", { className: "option" }, entry, options[option]);
    const group = few
      ? make("fieldset", {}, make("legend", { textContent: question.text }), ...entries.map(labelled), note)
      : make("div", { className: "field" }, asked(id, question), select, note);
    (select ?? group).setAttribute("aria-describedby", note.id);
    at("questions").append(group);
    const read = () => Number(chosen());
    return { read, shown: () => quoted(options[read()]), check, outside: () => null };
  }

  // ---- What becomes of an answer: pairs of a text and the number of the question, or null for all of them

  function outcome(report) {
    if (sampled) return [[`the number ${report[report[0] + 1]}`, report[0]]];
    if (protocol.kind === "ValueProtocol") return report.map((value, place) => [`the number ${value}`, place]);
    const option = (number, place) => questions[place].options[number];
    const text = (code) => quoted(survey.records[code].map(option).join(", "));
    if (protocol.mechanism === "rr") return [[text(report[0]), null]];
    const members = report.flatMap((bit, code) => (bit ? [text(code)] : []));
    if (members.length === 0) return [["the empty list", null]];
    const n = members.length > 12 ? 10 : members.length;
    const others = n < members.length ? ` and ${members.length - n} others` : "";
    return [[`the list ${members.slice(0, n).join(", ")}${others}`, null]];
  }

  function sentence([became, place], shown) {
    const which = place === null || questions.length === 1 ? "" : ` to question ${place + 1}`;
    if (!shown) return `The report of your answer${which} is ${became}.`;
    return `Your answer ${place === null ? shown.join(", ") : shown[place]}${which} becomes ${became}.`;
  }

  function explain(shown) {
    const found = outcome(answer.report), lines = found.map((one) => sentence(one, shown));
    if (sampled) lines.push("A coin chose this question. Your other answers are not used.");
    lines.push("Any other answer could have produced it.");
    const { bounds } = questions[0], units = new Set(found.map(([, place]) => questions[place ?? 0].unit));
    if (bounds) {
      const [low, high] = bounds.map((bound) => named(bound, units.size === 1 ? [...units][0] : ""));
      lines.push(`On this scale 0 stands for ${low} and ${protocol.n_levels} for ${high}; noise can go beyond both.`);
    }
    const paragraph = (text, place) => make("p", { textContent: text, className: place ? "" : "became" });
    at("became").replaceChildren(...lines.map(paragraph));
  }

  // ---- Steps

  const payload = () => JSON.stringify({ protocol: survey.id, submission: answer.submission, report: answer.report });

  function show(shown, status) {
    explain(shown);
    at("form").hidden = true;
    at("questions").replaceChildren(); // no answer stays in a hidden form
    at("error").textContent = "";
    at("result").hidden = false;
    at("sent").value = payload();
    at("send").hidden = !survey.submit || answer.sent === true;
    at("status").textContent = status;
    at("result").scrollIntoView();
    at("heading").focus({ preventScroll: true });
  }

  const again = () => "You have answered this survey on this device" +
    `${answer.sent ? ", and the report was sent" : ""}. It is not drawn again.`;

  function fail() {
    at("form").hidden = true;
    at("error").textContent = "An answer to this survey is stored in this browser, but it cannot be read. " +
      "No second answer is drawn.";
  }

  // A slip of the finger, such as 1730 for 173, cannot be corrected once the noise is drawn.
  function confirmed() {
    const outside = fields.map((field) => field.outside()).filter(Boolean);
    const values = outside.map((input) => input.value).join();
    if (!outside.length || values === accepted) return true;
    accepted = values;
    at("error").textContent = "An answer is outside the range, and counts as the end of it. " +
      "Change it, or press the button again.";
    outside[0].focus();
    return false;
  }

  function draw(event) {
    event.preventDefault();
    recall(); // another tab may have answered in the meantime
    if (broken) return fail();
    if (answer) return show(null, again());
    const wrong = fields.map((field) => field.check(true)).filter(Boolean);
    at("error").textContent = wrong.length ? "Please look at the marked answers. Nothing was drawn or sent." : "";
    if (wrong.length) return wrong[0].focus();
    if (!confirmed()) return;
    const shown = fields.map((field) => field.shown()), answers = fields.map((field) => field.read());
    const submission = skldp.system.bytes(16).map((octet) => octet.toString(16).padStart(2, "0")).join("");
    answer = { submission, report: skldp.privatize(survey, answers), sent: false };
    show(shown, remember() ? "" : "This browser cannot remember that you have answered. Please do not answer again.");
  }

  async function post() {
    const stop = new AbortController(), timer = setTimeout(() => stop.abort(), 20000);
    try {
      // text/plain needs no permission of the receiver beforehand, also if this page was opened from a file.
      return await fetch(survey.submit, {
        method: "POST", body: payload(), headers: { "Content-Type": "text/plain" }, credentials: "omit",
        referrerPolicy: "no-referrer", keepalive: true, signal: stop.signal,
      });
    } catch {
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  async function send() {
    at("send").disabled = true;
    at("status").textContent = "Sending the report \u2026";
    const response = await post();
    at("send").disabled = false;
    if (response?.ok) {
      answer.sent = true;
      remember();
      at("send").hidden = true;
    }
    at("status").textContent = response?.ok ? "The report was sent. Thank you."
      : `The ${response ? `receiver refused the report (code ${response.status})` : "report could not be sent"}. ` +
        "You can try again: the same report is sent, and it counts once.";
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(at("sent").value);
      at("status").textContent = "The report was copied.";
    } catch {
      at("sent").focus();
      at("sent").select();
      at("status").textContent = "The report is selected. Copy it with the keyboard or the menu.";
    }
  }

  skldp.system.words(1); // fails in a browser that is too old, before anything is asked
  at("error").textContent = "";
  const fields = questions.map((question, place) => (question.bounds ? numberField : optionField)(question, place));
  if (fields.length > 1) at("draw").textContent = "Add noise to my answers";
  at("form").addEventListener("submit", draw);
  at("send").addEventListener("click", send);
  at("copy").addEventListener("click", copy);
  addEventListener("storage", (event) => event.key === key && !answer && (recall(), answer && show(null, again())));
  addEventListener("pagehide", () => answer && explain(null)); // nobody who goes back sees the answer
  recall();
  if (broken) fail();
  else if (answer) show(null, again());
  else at("form").hidden = false;
})();
