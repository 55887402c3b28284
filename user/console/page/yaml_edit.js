// SPDX-License-Identifier: MIT
// Changes of single values in the text of a policy file. What is not touched keeps its comments and its form: the places come from the
// reader of policies itself (user/console/outline.h), and a place that does not hold what the reader has read there is left alone.
// Pure: texts and outlines in, a text out. Throws an Error whose message is for people.

const refuse = (what) => { throw new Error(`${what}: the form cannot change that; write it in the text`); };

// The offset of a place. The reader counts characters, strings count UTF-16.
function offset(text, line, column) {
  let at = 0;
  for (let n = 1; n < line; n++) {
    at = text.indexOf("\n", at) + 1;
    if (!at) refuse(`line ${line}`);
  }
  for (let n = 1; n < column; n++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

const start = (text, node) => offset(text, node.line, node.column);
const lineStart = (text, at) => text.lastIndexOf("\n", at - 1) + 1;
const lineEnd = (text, at) => { const end = text.indexOf("\n", at); return end < 0 ? text.length : end + 1; };
const isFlow = (text, node) => "{[".includes(text[start(text, node)]);

// A scalar as it is written: [from, to). In flow: between braces or brackets.
function extent(text, node, flow) {
  const from = start(text, node), quote = text[from];
  let to = from, value;
  if (quote === '"' || quote === "'") {
    for (to = from + 1; to < text.length && text[to] !== quote; to++) {
      if (quote === '"' && text[to] === "\\") to++;
      else if (quote === "'" && text[to] === "'" && text[to + 1] === "'") to++;
    }
    to++;
    value = quote === "'" ? text.slice(from + 1, to - 1).replaceAll("''", "'") : text.slice(from + 1, to - 1);
  } else {
    while (to < text.length && text[to] !== "\n" && !(text[to] === "#" && /\s/.test(text[to - 1])) && !(text[to] === ":" && /\s|$/.test(text[to + 1] ?? "")) && !(flow && ",]}".includes(text[to]))) to++;
    while (to > from && /\s/.test(text[to - 1])) to--;
    value = text.slice(from, to);
  }
  if (value !== node.text) refuse(`line ${node.line}`);
  return [from, to];
}

// As it has to be written, to be read as this text in either style.
export function scalar(value) {
  if (/^[A-Za-z0-9./][A-Za-z0-9._/-]*$/.test(value) && !/^(?:~|null|true|false|yes|no|on|off)$/i.test(value)) return value;
  if (/["\\\p{Cc}]/u.test(value)) throw new Error(`${JSON.stringify(value)} cannot be written`);
  return `"${value}"`;
}

export function find(map, key) {
  const pairs = map?.map ?? [];
  for (let i = 0; i < pairs.length; i += 2) if (pairs[i].text === key) return { key: pairs[i], value: pairs[i + 1], first: i === 0, only: pairs.length === 2, pairs, i };
  return null;
}

// The text of a key of a section, or of the file (key null); undefined: it is not there, or no scalar.
export function value(outline, section, key) {
  const at = find(outline, section)?.value;
  return (key === null ? at : find(at, key)?.value)?.text;
}

const splice = (text, from, to, put) => text.slice(0, from) + put + text.slice(to);

function insert(text, map, key, word) {
  const at = start(text, map);
  if (isFlow(text, map)) return splice(text, at + 1, at + 1, `${key}: ${word}${map.map.length ? ", " : ""}`);
  const line = lineStart(text, at);
  return splice(text, line, line, `${text.slice(line, at)}${key}: ${word}\n`);
}

const ended = (text) => (text === "" || text.endsWith("\n") ? text : text + "\n");

// section: key: value, or with key null the value of the section itself.
export function set(text, outline, section, key, to) {
  const word = scalar(to), found = find(outline ?? refuse("what cannot be read"), section);
  if (!found) return ended(text) + (key === null ? `${section}: ${word}\n` : `${section}:\n  ${key}: ${word}\n`);
  if (key === null) {
    if (found.value.text === undefined) refuse(section);
    return splice(text, ...extent(text, found.value, false), word);
  }
  if (found.value.map === undefined) refuse(section);
  const pair = find(found.value, key);
  if (!pair) return insert(text, found.value, key, word);
  if (pair.value.text === undefined) refuse(key);
  return splice(text, ...extent(text, pair.value, isFlow(text, found.value)), word);
}

// Takes the lines of [from, to) away, if there is nothing else on them but a remark.
function dropLines(text, from, to) {
  const begin = lineStart(text, from), end = lineEnd(text, Math.max(from, to - 1));
  if (text.slice(begin, from).trim() || !/^[ \t]*(?:#.*)?$/.test(text.slice(to, end).trimEnd())) refuse("these lines");
  return splice(text, begin, end, "");
}

// One of several, apart by commas.
function dropOfFlow(text, from, to) {
  const after = /^\s*,[ \t]*/.exec(text.slice(to)), before = /,\s*$/.exec(text.slice(0, from));
  if (after) return splice(text, from, to + after[0].length, "");
  return before ? splice(text, before.index, to, "") : splice(text, from, to, "");
}

export function unset(text, outline, section, key) {
  const found = find(outline ?? refuse("what cannot be read"), section), pair = found && find(found.value, key);
  if (!pair) return text;
  if (pair.value.text === undefined) refuse(key);
  const flow = isFlow(text, found.value), from = start(text, pair.key), to = extent(text, pair.value, flow)[1];
  if (flow) return dropOfFlow(text, from, to);
  return pair.only ? dropLines(text, start(text, found.key), to) : dropLines(text, from, to);
}

// -- rules ---------------------------------------------------------------------------

// The entries of a list, or the one that is there without a list.
const entries = (node) => (node?.list ?? (node?.text !== undefined ? [node] : []));

// What allow rules and grants of a file name: [{rule, index, host, node, source, conditions}]. source: "llm", "list", "project", "hand" or "granted".
export function allowed(text, outline) {
  const lines = text.split("\n"), out = [];
  const add = (section, granted) => (find(outline, section)?.value.list ?? []).forEach((rule, index) => {
    const hosts = find(rule, "allow")?.value;
    const conditions = (rule.map ?? []).length / 2 - 1;
    // netpawl policy suggest says above a rule where it has it from: "# .npmrc:1"
    const project = /^\s*#\s*\S+:\d+\s*$/.test(lines[rule.line - 2] ?? "");
    for (const node of entries(hosts)) {
      const source = granted ? "granted" : node.text === "@llm" ? "llm" : node.text?.startsWith("@") ? "list" : project ? "project" : "hand";
      out.push({ section, rule, index, host: node.text, node, source, conditions, several: hosts.list?.length > 1 });
    }
  });
  add("rules", false);
  add("grants", true);
  return out;
}

// An entry of allowed(): it goes, and its rule with it if it was the only one there.
export function drop(text, outline, entry) {
  const list = find(outline, entry.section).value, hosts = find(entry.rule, "allow").value;
  if (entry.several) {
    const flow = isFlow(text, hosts), [from, to] = extent(text, entry.node, flow);
    if (flow) return dropOfFlow(text, from, to);
    return dropLines(text, lineStart(text, from) + /^\s*/.exec(text.slice(lineStart(text, from)))[0].length, to);
  }
  if (isFlow(text, list) || list.list.length === 1) refuse(entry.section); // a section that says nothing is an error
  // From its dash to the next one, or to what follows the list; a remark above it stays, but for the one of netpawl policy suggest.
  const dash = text.lastIndexOf("-", start(text, entry.rule)), next = list.list[entry.index + 1];
  let from = lineStart(text, dash), to;
  if (text.slice(from, dash).trim()) refuse("this rule");
  if (next) {
    to = lineStart(text, start(text, next));
    to = aboveRemarks(text, to, from);
  } else {
    to = lineEnd(text, lastOffset(text, entry.rule));
  }
  if (entry.source === "project" || entry.source === "granted") {
    const above = lineStart(text, from - 1);
    if (/^\s*#/.test(text.slice(above, from))) from = above;
  }
  return splice(text, from, to, "");
}

// Where the remarks and empty lines in front of a line begin.
function aboveRemarks(text, at, least) {
  while (at > least) {
    const above = lineStart(text, at - 1);
    if (above < least || !/^\s*(?:#.*)?$/.test(text.slice(above, at - 1))) break;
    at = above;
  }
  return at;
}

function lastOffset(text, node) {
  const below = node.list ?? node.map;
  return below?.length ? lastOffset(text, below[below.length - 1]) : start(text, node);
}

// A rule of its own: in front of the first that asks, so that it is looked at; behind what is denied before.
export function allow(text, outline, host) {
  const found = find(outline ?? refuse("what cannot be read"), "rules"), word = scalar(host);
  if (!found) return `${ended(text)}rules:\n  - allow: ${word}\n`;
  const list = found.value.list;
  if (!list || isFlow(text, found.value)) {
    if (list?.length || !list) refuse("rules");
    const at = start(text, found.value), end = text.indexOf("]", at) + 1;
    return splice(text, at, end, `\n  - allow: ${word}`);
  }
  const asks = list.find((rule) => find(rule, "ask") || find(rule, "decide")), model = asks ?? list[list.length - 1];
  const dash = text.lastIndexOf("-", start(text, model)), indent = text.slice(lineStart(text, dash), dash);
  if (indent.trim()) refuse("rules");
  const line = `${indent}- allow: ${word}\n`;
  if (asks) {
    const at = aboveRemarks(text, lineStart(text, dash), 0);
    return splice(text, at, at, line);
  }
  const end = lineEnd(text, lastOffset(text, model));
  return splice(ended(text), text.endsWith("\n") || end < text.length ? end : end + 1, text.endsWith("\n") || end < text.length ? end : end + 1, line);
}
