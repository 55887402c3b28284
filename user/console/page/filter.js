// SPDX-License-Identifier: MIT
// The filter's language, as docs/filters.md has it and user/vocab/event_filter.c reads it: the same text selects the same events there and
// here, to which tests/e2e/test_filters.py holds both. host:github.com verdict:refused -llm session:alice/*
// Pure: no page and no clock.

const MOST = { text: 1024, words: 32, values: 16 };
const VERDICTS = ["allowed", "refused", "change", "error"];
const KINDS = ["request", "connection", "dns", "socket", "change", "rise"];
const NUMBERS = ["status", "port", "sent", "received", "ms"];
const ANYWHERE = ["host", "url", "session", "program", "reason", "address"];
const STAGES = ["dns_us", "connect_us", "tls_us", "wait_us", "receive_us"];

const lower = (text) => String(text).replace(/[A-Z]+/g, (c) => c.toLowerCase()); // of ASCII alone

// The host of a URL, of "host:port" or of "[address]:port".
function urlHost(url) {
  const rest = url.includes("://") ? url.slice(url.indexOf("://") + 3) : url;
  return rest.startsWith("[") && rest.includes("]") ? rest.slice(1, rest.indexOf("]")) : /^[^:/?#]*/.exec(rest)[0];
}

export function kindOf(event) {
  if (event.kind !== "allow" && event.kind !== "refuse") return event.reason === "raised" ? "rise" : "change";
  if (event.hook) return "socket";
  if (event.lookup) return "dns";
  return event.method && event.method !== "CONNECT" ? "request" : "connection";
}

// What an event says to a filter, by key: texts of lower case, "" where it says nothing. Asked for one by one: a table has many rows.
const member = (name) => (event) => lower(event[name] ?? "");
const whole = (name) => (event) => (Number.isInteger(event[name]) ? String(event[name]) : "");
const FACTS = {
  ...Object.fromEntries(["url", "method", "reason", "session", "sandbox", "level", "mode", "rule", "list", "address"].map((name) => [name, member(name)])),
  ...Object.fromEntries(["status", "port", "question", "sent", "received"].map((name) => [name, whole(name)])),
  program: member("comm"),
  host: (event) => lower(event.url !== undefined ? urlHost(event.url) : event.lookup ?? event.address ?? ""),
  verdict: (event) => ({ allow: "allowed", refuse: "refused" })[event.kind] ?? event.kind ?? "",
  kind: kindOf,
  ms(event) {
    const times = STAGES.map((name) => event[name]).filter(Number.isInteger);
    return times.length ? (times.reduce((a, b) => a + b, 0) / 1000).toFixed(3) : "";
  },
};

// Whole texts only, unless there is a star.
export function glob(want) {
  if (!want.includes("*")) return (have) => have === want;
  const parts = want.split("*"), first = parts[0], last = parts[parts.length - 1];
  return (have) => {
    if (have.length < first.length + last.length || !have.startsWith(first) || !have.endsWith(last)) return false;
    let at = first.length;
    for (const part of parts.slice(1, -1)) {
      const found = have.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= have.length - last.length;
  };
}

// 404, 1.5 or 10k, in thousandths; null: no number.
function number(text) {
  const m = /^(\d{1,12})(?:\.(\d{1,3}))?([kmg]?)$/.exec(text);
  return m && (Number(m[1]) * 1000 + Number((m[2] ?? "").padEnd(3, "0"))) * { "": 1, k: 1e3, m: 1e6, g: 1e9 }[m[3]];
}

function numeric(key, value) {
  const m = /^(>=|<=|>|<)?(.*)$/.exec(value), want = number(m[2]);
  if (key === "status" && /^\dxx$/.test(value)) return (have) => have.length === 3 && have[0] === value[0];
  if (value.includes("*")) return glob(value);
  const holds = { ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b }[m[1]] ?? ((a, b) => a === b);
  return want === null ? null : (have) => { const n = number(have); return n !== null && holds(n, want); };
}

// A test of events for one value of a key; null: it can never hold.
function test(key, value) {
  const match = glob(value), fact = FACTS[key], holds = (of) => (event) => of(fact(event));
  if (NUMBERS.includes(key)) {
    const of = numeric(key, value);
    return of && holds(of);
  }
  if (key === "verdict" && !value.includes("*") && !VERDICTS.includes(value)) return null;
  if (key === "kind") return value.includes("*") || KINDS.includes(value) ? holds((kind) => match(kind) || (kind === "rise" && match("change"))) : null;
  // A name is meant with all that is below it.
  if (key === "host") return holds((host) => match(host) || (host.length > value.length && host[host.length - value.length - 1] === "." && match(host.slice(-value.length))));
  if ((key === "url" || key === "rule") && !value.includes("*")) return holds((text) => text.includes(value));
  if (key === "list") return holds((list) => match(list.startsWith("@") && !value.startsWith("@") ? list.slice(1) : list));
  if (key) return holds(match);
  if (value === "llm") return (event) => event.list === "@llm"; // the mark of what goes to models
  return (event) => ANYWHERE.some((name) => FACTS[name](event).includes(value));
}

const WRONG = { verdict: "a verdict is allowed, refused, change or error", kind: "a kind is request, connection, dns, socket, change or rise" };
const NUMBER = "a number is 403, >=400, <10k or 4*, and a status 4xx, too";

// Words of a text: [{not, key, values: [text]}]. Throws an Error with the place.
export function words(text) {
  let at = 0;
  const out = [], fail = (where, what) => { throw new Error(`character ${where + 1}: ${what}`); };
  const blank = (c) => c === " " || c === "\t";
  if (new TextEncoder().encode(text).length > MOST.text) fail(MOST.text, "the filter is too long");

  function value(key, n) {
    const start = at, quoted = text[at] === '"';
    let got = "";
    if (n === MOST.values) fail(start, "too many values");
    if (quoted) at++;
    for (; at < text.length && (quoted ? text[at] !== '"' : !blank(text[at]) && (!key || text[at] !== ",")); at++) {
      if (text[at] < " " || text[at] === "\x7f") fail(at, "a control character");
      got += text[at];
    }
    if (quoted && text[at] !== '"') fail(start, "the quote is not closed");
    if (quoted) at++;
    if (!got) fail(start, "a value is missing");
    return lower(got);
  }

  for (;;) {
    while (blank(text[at])) at++;
    if (at >= text.length) return out;
    const start = at, not = text[at] === "-", values = [];
    if (out.length === MOST.words) fail(start, "too many words");
    if (not) at++;
    const m = /^([A-Za-z_]+):(?!\/\/)/.exec(text.slice(at)), key = m ? m[1].toLowerCase() : "";
    if (m && !Object.hasOwn(FACTS, key)) fail(at, `there is no key "${m[1].slice(0, 32)}"`);
    at += m?.[0].length ?? 0;
    do values.push(value(key, values.length)); while (text[at] === "," && ++at);
    if (at < text.length && !blank(text[at])) fail(at, "a blank is missing");
    for (const one of values) if (!test(key, one)) fail(start, WRONG[key] ?? NUMBER);
    out.push({ not, key, values });
  }
}

// A function of a row; throws an Error whose message is for people.
export function parseFilter(text) {
  const terms = words(text).map(({ not, key, values }) => {
    const some = values.map((one) => test(key, one));
    return (event) => some.some((t) => t(event)) !== not;
  });
  return (row) => row.type === "gap" || terms.every((t) => t(row.event));
}

// Takes a term out of a filter, or puts it in.
export function toggleTerm(text, word) {
  const words = text.split(/\s+/).filter((w) => w);
  return (words.includes(word) ? words.filter((w) => w !== word) : [...words, word]).join(" ");
}
