// Client of skldp surveys: turns the answers of one person into a private report, on the person's own device.
//
// It draws reports as skldp's Python mechanisms do, from the same random words in the same order; the tests compare
// the two for given words. All words come from crypto.getRandomValues. Their number does not depend on the answers.
// Answers, words and thresholds are whole numbers (BigInt) throughout; ordinary numbers only count and index.
"use strict";

const skldp = (() => {
  // ---- Random words --------------------------------------------------------------------------------------------

  const system = {
    words: (n) => Array.from(crypto.getRandomValues(new BigUint64Array(n))),
    bytes: (n) => Array.from(crypto.getRandomValues(new Uint8Array(n))),
  };

  // A whole number 0 .. n - 1 from a word of 64 bits. Thresholds allow for its deviation from uniform, n / 2^64.
  const below = (word, n) => (word * n) >> 64n;

  // ---- From a decimal number to a point of the public grid -------------------------------------------------------
  // Fractions are pairs of BigInt with a positive denominator. Python computes the grid point in double precision, so
  // each step is rounded to the nearest double, here in whole numbers.

  function fraction(decimal) {
    const [, sign, whole, part = ""] = /^([+-]?)(\d*)\.?(\d*)$/.exec(decimal);
    const digits = BigInt(whole + part || "0");
    return [sign === "-" ? -digits : digits, 10n ** BigInt(part.length)];
  }

  const less = ([a, b], [c, d]) => a * d < c * b;
  const minus = ([a, b], [c, d]) => [a * d - c * b, b * d];
  const over = ([a, b], [c, d]) => [a * d, b * c];
  const bits = (n) => BigInt(n.toString(2).length);

  function halfToEven(a, b) {
    const floor = a / b, twice = 2n * (a % b);
    return twice > b || (twice === b && floor % 2n === 1n) ? floor + 1n : floor;
  }

  function nearestDouble([a, b]) {
    const size = a < 0n ? -a : a;
    if (size === 0n) return [0n, 1n];
    const scaled = (power) => (power < 0n ? [size << -power, b] : [size, b << power]);
    let power = bits(size) - bits(b) - 53n; // leaves 53 or 54 bits before the point
    const [top, bottom] = scaled(power);
    if (top >= bottom << 53n) power += 1n;
    if (power < -1074n) power = -1074n; // subnormal numbers have fewer bits
    const rounded = halfToEven(...scaled(power)) * (a < 0n ? -1n : 1n);
    return power < 0n ? [rounded, 1n << -power] : [rounded << power, 1n];
  }

  // The level 0 .. n of a decimal number, clipped to the bounds: encode_interval of skldp.
  function level(decimal, { lower, upper, width }, n) {
    const typed = nearestDouble(fraction(decimal));
    const clipped = less(typed, lower) ? lower : less(upper, typed) ? upper : typed;
    const share = nearestDouble(over(nearestDouble(minus(clipped, lower)), width));
    const [a, b] = nearestDouble([share[0] * n, share[1]]);
    const rounded = halfToEven(a, b);
    return rounded < n ? rounded : n;
  }

  // ---- Mechanisms ----------------------------------------------------------------------------------------------

  function squareWave(levels, { threshold, half_window: half }, n, source) {
    const words = source.words(2 * levels.length), window = 2n * half + 1n;
    return levels.map((code, place) => {
      const position = words[levels.length + place], near = below(position, window) + code;
      const outside = below(position, n), far = outside + (outside >= code ? window : 0n);
      return Number((words[place] < threshold ? near : far) - half);
    });
  }

  // A category that is not on the list is replaced by a random one. The word is drawn in any case.
  function known(code, n, source) {
    const other = Number(below(source.words(1)[0], BigInt(n)));
    return code < 0 ? other : code;
  }

  function randomizedResponse(code, { threshold }, n, source) {
    code = known(code, n, source);
    const [word, other] = source.words(2), step = 1 + Number(below(other, BigInt(n - 1)));
    return [(code + (word < threshold ? 0 : step)) % n];
  }

  // Floyd's algorithm on places 0 .. n - 2. A subset that contains the own category needs one member fewer, and skips
  // the first round; its word is drawn all the same. Place n - 1 then takes what was drawn at the own place.
  function subsetSelection(code, { threshold, subset_size: size }, n, source) {
    code = known(code, n, source);
    const near = source.words(1)[0] < threshold, row = new Array(n).fill(0), first = n - 1 - Number(size);
    source.words(Number(size)).forEach((word, round) => {
      const member = Number(below(word, BigInt(first + round + 1)));
      if (!near || round > 0) row[row[member] ? first + round : member] = 1;
    });
    row[n - 1] = row[code];
    row[code] = near ? 1 : 0;
    return row;
  }

  // One byte decides a bit, unless it equals the first byte of the threshold; then 56 further bits do.
  function unaryEncoding(code, { threshold }, n, source) {
    code = known(code, n, source);
    const octets = source.bytes(n).map(BigInt), leading = threshold >> 56n, rest = threshold % (1n << 56n);
    const words = source.words(octets.filter((octet) => octet === leading).length);
    const row = octets.map((octet) => Number(octet === leading ? words.shift() >> 8n < rest : octet < leading));
    row[code] = source.bytes(1)[0] % 2;
    return row;
  }

  const CATEGORIES = { rr: randomizedResponse, subset: subsetSelection, oue: unaryEncoding };

  // ---- Protocols -----------------------------------------------------------------------------------------------

  function values(survey, answers, source) {
    const n = BigInt(survey.protocol.n_levels);
    return squareWave(answers.map((text) => level(text, survey.integers, n)), survey.integers, n, source);
  }

  // The coin is tossed before an answer is read. It chooses the one that is reported, with the whole budget.
  function sampledValue(survey, answers, source) {
    const column = Number(below(source.words(1)[0], BigInt(answers.length)));
    const row = new Array(answers.length + 1).fill(0);
    row[0] = column;
    row[column + 1] = values(survey, [answers[column]], source)[0];
    return row;
  }

  function category(survey, answers, source) {
    const same = (record) => record.every((option, place) => option === answers[place]);
    const code = survey.records.findIndex(same);
    return CATEGORIES[survey.protocol.mechanism](code, survey.integers, survey.records.length, source);
  }

  const PROTOCOLS = { ValueProtocol: values, SampledValueProtocol: sampledValue, CategoryProtocol: category };

  // Whole numbers are written as text, and fractions as pairs of texts.
  const exact = (value) => (Array.isArray(value) ? value.map(BigInt) : BigInt(value));

  function read(text) {
    const survey = JSON.parse(text), entries = Object.entries(survey.integers);
    survey.integers = Object.fromEntries(entries.map(([name, value]) => [name, exact(value)]));
    survey.records ??= survey.questions[0].options?.map((_, option) => [option]);
    return survey;
  }

  // The report: an array of whole numbers. An answer is a decimal number as text, or the number of an option.
  const privatize = (survey, answers, source = system) => PROTOCOLS[survey.protocol.kind](survey, answers, source);

  return { read, privatize, level, system };
})();

if (typeof module === "object") module.exports = skldp;
