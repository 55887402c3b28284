// SPDX-License-Identifier: MIT
// The filter's language, as docs/filters.md has it: words that must be there, key:value, a minus in front of what must not be there, quotes
// around blanks, a comma between alternatives, * for anything. host:github.com verdict:refused -llm session:alice/*
// Pure: no page and no clock.

const TEXT = (get) => (value) => {
  const match = glob(value);
  return (row) => match(get(row));
};

// Contained in it; with a star all of it.
const PART = (get) => (value) => {
  const match = value.includes("*") ? glob(value) : (text) => String(text).toLowerCase().includes(value.toLowerCase());
  return (row) => match(get(row));
};

const NUMBER = (get) => (value) => {
  const m = /^(>=|<=|>|<)?(\d+(?:\.\d+)?)([kMG]?)$/.exec(value) ?? /^()(\d)xx()$/.exec(value);
  if (!m) throw new Error(`'${value}' is no number: 404, 4xx, >=400`);
  if (/xx$/.test(value)) return (row) => Math.floor(get(row) / 100) === Number(m[2]);
  const n = Number(m[2]) * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[m[3]];
  const tests = { ">=": (x) => x >= n, "<=": (x) => x <= n, ">": (x) => x > n, "<": (x) => x < n, "": (x) => x === n };
  return (row) => {
    const have = get(row);
    return have !== null && have !== undefined && tests[m[1] ?? ""](have);
  };
};

export const KEYS = {
  host: (value) => {
    const match = glob(value);
    // A name is meant with all that is below it.
    return (row) => match(row.host) || (!value.includes("*") && row.host.endsWith("." + value.toLowerCase()));
  },
  url: PART((row) => row.event.url ?? ""),
  session: TEXT((row) => row.session),
  verdict: TEXT((row) => row.verdict),
  reason: TEXT((row) => row.reason),
  method: TEXT((row) => row.method),
  kind: (value) => {
    const match = glob(value);
    return (row) => match(row.type) || (row.type === "rise" && match("change")); // a rise is a change
  },
  address: TEXT((row) => row.event.address ?? ""),
  question: TEXT((row) => row.event.question ?? ""),
  list: (value) => TEXT((row) => (row.event.list ?? "").replace(/^@/, ""))(value.replace(/^@/, "")),
  rule: PART((row) => row.rule),
  program: TEXT((row) => row.program),
  level: TEXT((row) => row.event.level ?? ""),
  mode: TEXT((row) => row.event.mode ?? ""),
  sandbox: TEXT((row) => row.event.sandbox ?? ""),
  port: NUMBER((row) => row.event.port ?? null),
  status: NUMBER((row) => row.status),
  sent: NUMBER((row) => row.sent),
  received: NUMBER((row) => row.received),
  ms: NUMBER((row) => (row.us === null ? null : row.us / 1000)),
};

// Whole texts only, unless there is a star. Case does not matter.
export function glob(pattern) {
  const want = pattern.toLowerCase();
  if (!want.includes("*")) return (text) => String(text).toLowerCase() === want;
  const parts = want.split("*");
  return (text) => {
    const have = String(text).toLowerCase();
    const first = parts[0], last = parts[parts.length - 1];
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

// [{text, at}] of blanks apart, quotes taken away.
export function tokens(text) {
  const out = [];
  let i = 0;
  while (i < text.length) {
    if (/\s/.test(text[i])) { i++; continue; }
    const at = i;
    let word = "", quote = false;
    for (; i < text.length && (quote || !/\s/.test(text[i])); i++) {
      if (text[i] === '"') quote = !quote;
      else word += text[i];
    }
    if (quote) throw new Error(`the quote at ${at + 1} has no end`);
    out.push({ text: word, at });
  }
  return out;
}

const haystack = (row) => (row.hay ??= [row.what, row.session, row.program, row.reason, row.method, row.verdict, row.rule].join("\u0001").toLowerCase());

function term(token) {
  const not = token.text.startsWith("-") && token.text.length > 1;
  const word = not ? token.text.slice(1) : token.text;
  const colon = word.indexOf(":");
  const key = colon > 0 ? word.slice(0, colon).toLowerCase() : "";
  let test;
  if (word.toLowerCase() === "llm") {
    test = (row) => row.llm;
  } else if (key && KEYS[key]) {
    const value = word.slice(colon + 1);
    if (!value) throw new Error(`${key}: at ${token.at + 1} has no value`);
    const some = value.split(",").filter((v) => v).map((v) => KEYS[key](v));
    test = (row) => some.some((t) => t(row));
  } else if (key && /^[a-z]+$/.test(key) && !word.includes("//")) {
    throw new Error(`there is no '${key}:' (${Object.keys(KEYS).join(", ")})`);
  } else {
    const want = word.toLowerCase();
    test = (row) => haystack(row).includes(want);
  }
  return not ? (row) => !test(row) : test;
}

// A function of a row; throws an Error whose message is for people.
export function parseFilter(text) {
  const terms = tokens(text).map(term);
  return (row) => row.type === "gap" || terms.every((t) => t(row));
}

// Takes a term out of a filter, or puts it in.
export function toggleTerm(text, word) {
  const words = text.split(/\s+/).filter((w) => w);
  return (words.includes(word) ? words.filter((w) => w !== word) : [...words, word]).join(" ");
}
