// SPDX-License-Identifier: MIT
// What may stand at a place of a policy file, from the JSON Schema of policies. Pure.

// A schema with all that it is put together of.
function parts(node) {
  if (!node || typeof node !== "object") return [];
  return [node, ...["allOf", "anyOf", "oneOf"].flatMap((how) => (node[how] ?? []).flatMap(parts))];
}

const below = (nodes, key) => nodes.flatMap((n) => (n.properties?.[key] ? parts(n.properties[key])
  : [...Object.values(n.patternProperties ?? {}), n.additionalProperties].flatMap(parts)));
const items = (nodes) => nodes.flatMap((n) => parts(n.items));
const step = (nodes, word) => (word === "-" ? items(nodes) : below(nodes, word));

function keysOf(nodes) {
  const out = new Map();
  for (const n of nodes) for (const [key, one] of Object.entries(n.properties ?? {})) if (!out.has(key)) out.set(key, parts(one).find((p) => p.description)?.description ?? "");
  return [...out].map(([word, about]) => ({ word, about }));
}

const wordsOf = (nodes) => [...new Set(nodes.flatMap((n) => n.enum ?? []).map(String))].map((word) => ({ word, about: "" }));

const KEY = /^(\s*(?:-\s+)*)([\w.-]+|"[^"]*"):(?=\s|$)/;

// Where a line stands: how far its first word is in, and the dashes in front of it.
function layout(line) {
  const dashes = /^(\s*)((?:-\s+)*)/.exec(line);
  return { indent: dashes[1].length, inner: dashes[0].length, dashes: (dashes[2].match(/-/g) ?? []).length };
}

// The keys (and "-" for entries of lists) that lead to a line which is so far in.
function pathTo(lines, at, indent, dashes) {
  const path = Array(dashes).fill("-");
  let far = indent, entry = dashes > 0; // entry: the key of a list whose dashes are so far in is looked for
  for (let i = at - 1; i >= 0 && (far > 0 || entry); i--) {
    if (!lines[i].trim() || /^\s*#/.test(lines[i])) continue;
    const is = layout(lines[i]), key = KEY.exec(lines[i])?.[2].replaceAll('"', "");
    // The first key of an entry is behind its dash; a list may stand as far in as its key.
    const first = !entry && is.dashes > 0 && is.inner === far;
    const parent = key !== undefined && (entry ? (is.dashes ? is.indent < far && is.inner <= far : is.inner <= far) : is.inner < far);
    if (!first && !parent) continue;
    if (parent) path.unshift(key);
    path.unshift(...Array(is.dashes).fill("-"));
    far = is.dashes ? is.indent : is.inner;
    entry = is.dashes > 0;
  }
  return path;
}

// What is open on the line before the cursor: the key of the innermost brace or bracket, and what was begun in it.
function inFlow(before) {
  const open = [];
  let quote = null, word = "", key = null;
  for (const c of before) {
    if (quote) { if (c === quote) quote = null; else word += c; continue; }
    if (c === '"' || c === "'") quote = c;
    else if (c === "{" || c === "[") { open.push({ brace: c, key }); key = null; word = ""; }
    else if (c === "}" || c === "]") { open.pop(); key = null; word = ""; }
    else if (c === ",") { key = null; word = ""; }
    else if (c === ":") { key = word.trim(); word = ""; }
    else word += c;
  }
  return { open, key, word: word.trimStart(), quoted: quote !== null };
}

// {from, words: [{word, about, kind}]} for a cursor; kind is "key" or "value".
export function completions(schema, text, cursor) {
  const lines = text.slice(0, cursor).split("\n"), line = lines[lines.length - 1], none = { from: cursor, words: [] };
  if (/(^|\s)#/.test(line)) return none;
  const is = layout(line), head = KEY.exec(line), flow = inFlow(line.slice(is.inner));
  if (flow.quoted) return none;
  let path = pathTo(lines, lines.length - 1, is.indent, is.dashes), word, values = false;
  if (flow.open.length) {
    for (const { brace, key } of flow.open) {
      if (key) path.push(key);
      if (brace === "[") path.push("-");
    }
    word = flow.word;
    if (flow.key !== null) path.push(flow.key);
    values = flow.key !== null || flow.open[flow.open.length - 1].brace === "[";
  } else if (head) {
    path.push(head[2]);
    word = line.slice(head[0].length).trimStart();
    values = true;
  } else {
    word = line.slice(is.inner);
    if (path[path.length - 1] === "-") values = null; // an entry may be either
  }
  if (!/^[\w@-]*$/.test(word)) return none;
  const nodes = path.reduce(step, parts(schema));
  const found = [...(values !== true ? keysOf(nodes).map((w) => ({ ...w, kind: "key" })) : []), ...(values !== false ? wordsOf(values === true && !flow.open.length ? [...nodes, ...items(nodes)] : nodes).map((w) => ({ ...w, kind: "value" })) : [])];
  const taken = values ? new Set() : siblings(lines, text.slice(cursor).split("\n").slice(1), is, flow, line);
  return { from: cursor - word.length, words: found.filter((w) => w.word !== word && w.word.toLowerCase().startsWith(word.toLowerCase()) && !taken.has(w.word)) };
}

// Keys that are there already, beside the one that is being written.
function siblings(above, under, is, flow, line) {
  const out = new Set();
  if (flow.open.length) {
    for (const m of line.slice(line.lastIndexOf("{")).matchAll(/([\w.-]+):/g)) out.add(m[1]);
    return out;
  }
  const look = (list, stopAtDash) => {
    for (const one of list) {
      const l = layout(one), key = KEY.exec(one)?.[2];
      if (!one.trim() || l.inner > is.inner) continue;
      if (l.inner < is.inner) return;
      if (!stopAtDash && l.dashes) return;
      if (key) out.add(key);
      if (l.dashes) return;
    }
  };
  if (!is.dashes) look(above.slice(0, -1).reverse(), true);
  look(under, false);
  return out;
}
