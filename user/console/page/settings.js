// SPDX-License-Identifier: MIT
// The live policy: its files, as text or as a form, what a change of one would mean before anybody is judged by it, and how it is saved.
import { call } from "./api.js";
import { completer } from "./completer.js";
import { confirmed, copy, fill, h, kept, toast } from "./dom.js";
import { form } from "./form.js";
import { moment, plural } from "./words.js";

const CALM_MS = 400; // after the last key, the text is looked at

// Lines of the text that a problem is at: Map line -> "bad" or "warn". Pure.
export function marks(found, name) {
  const out = new Map();
  const own = (p) => p.file === name || p.file.endsWith("/" + name);
  for (const p of found.warnings ?? []) if (own(p)) out.set(p.line, "warn");
  for (const p of found.errors ?? []) if (own(p)) out.set(p.line, "bad");
  return out;
}

// "12 that passed would be refused". Pure.
export function summary(changes) {
  const counts = new Map();
  for (const c of changes) {
    const key = `${c.before} ${c.after}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const was = { allow: "passed", deny: "was refused", ask: "was asked about", decide: "was decided" }, were = { ...was, deny: "were refused", ask: "were asked about", decide: "were decided" };
  const will = { allow: "would pass", deny: "would be refused", ask: "would be asked about", decide: "would be decided" };
  return [...counts].map(([key, n]) => {
    const [before, after] = key.split(" ");
    return `${n} that ${(n === 1 ? was : were)[before]} ${will[after]}`;
  });
}

// Those that are the same, once, with how often: [[change, count]]. Pure.
export function repeats(changes) {
  const out = new Map();
  for (const c of changes) {
    const key = JSON.stringify([c.before, c.after, c.method, c.url, c.session, c.rule]), is = out.get(key);
    if (is) is[1]++;
    else out.set(key, [c, 1]);
  }
  return [...out.values()];
}

export function settings(app, box) {
  const page = h("div", { class: "editor" });
  let source, policy, file, found, timer, asked = 0, gone = false, view = kept.get("policy.view", "text");
  const texts = new Map(); // of files that were changed here
  const area = h("textarea", { id: "policy-text", spellcheck: "false", autocomplete: "off", "aria-label": "Text of the file", wrap: "off" });
  const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  const code = h("div", { class: "code" }, gutter, area), fields = h("div", { class: "form", id: "policy-form" });
  const files = h("div", { class: "files" });
  const side = h("div", { class: "side", id: "policy-side" });
  const cases = h("textarea", { id: "policy-cases", rows: 5, spellcheck: "false", "aria-label": "Cases", placeholder: "at CONFIDENTIAL\nGET https://api.github.com/ -> allow", style: { width: "100%", "font-family": "var(--mono)", "font-size": "12.5px" } });
  const findings = h("div", { id: "policy-findings", role: "status" });
  box.append(page);
  completer(area, code);

  function lines(now) {
    const at = marks(now ?? {}, file.name), n = area.value.split("\n").length;
    fill(gutter, Array.from({ length: n }, (_, i) => h("div", { class: at.get(i + 1) ?? "" }, i + 1)));
    gutter.scrollTop = area.scrollTop;
  }

  function show(name) {
    file = source.files.find((f) => f.name === name) ?? source.files[0];
    area.value = texts.get(file.name) ?? file.text;
    found = null;
    drawFiles();
    drawView();
    lines();
    look(0);
  }

  // Somebody wrote, or the form did.
  function change(text, wait) {
    const before = texts.has(file.name);
    if (area.value !== text) area.value = text;
    if (text === file.text) texts.delete(file.name);
    else texts.set(file.name, text);
    if (before !== texts.has(file.name)) drawFiles();
    lines();
    look(wait);
  }

  function drawFiles() {
    const choose = (word, name) => h("button", { type: "button", class: "pill", id: "view-" + word, "aria-pressed": view === word ? "true" : "false", onclick: () => { view = word; kept.set("policy.view", word); drawFiles(); drawView(); } }, name);
    fill(files, h("div", { class: "views" }, choose("text", "Text"), choose("form", "Form")), h("h3", null, "Files"),
      source.files.map((f) => h("button", { type: "button", "aria-pressed": f === file ? "true" : "false", onclick: () => show(f.name) }, f.name, texts.has(f.name) ? " (changed here)" : "")),
      h("h3", null, "Live"), h("dl", null, [["rules", policy.rules], ["default", policy.default], ["since", moment(policy.loaded)], ["by", policy.who], ["hash", policy.hash.slice(0, 12)]].map(([k, v]) => [h("dt", null, k), h("dd", null, v)])),
      h("h3", null, "Lists"), listsOf(source).length ? listsOf(source).map((name) => h("p", { class: "mono" }, "@" + name)) : h("p", { class: "soft" }, "None."),
      h("h3", null, "Grants"), policy.grants.length ? policy.grants.map((g) => h("p", { class: "mono" }, g.text)) : h("p", { class: "soft" }, "None."));
  }

  function drawView() {
    code.hidden = view !== "text";
    fields.hidden = view !== "form";
    if (view === "form") form(fields, { text: area.value, outline: found?.outline, first: file.name === source.first, name: file.name, files: source.files.map((f) => f.name), read: !found, change: (to) => change(to, 0), go: show });
  }

  function go(line) {
    const all = area.value.split("\n"), begin = all.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    if (view !== "text") { view = "text"; drawFiles(); drawView(); }
    area.focus();
    area.setSelectionRange(begin, begin + (all[line - 1]?.length ?? 0));
    area.scrollTop = Math.max(0, (line - 5) * 20);
  }

  async function save() {
    const text = area.value, changes = found?.changes ?? [];
    if (!(await confirmed(`Save ${file.name}?`, [`It is written and live at once. Of ${plural(found?.compared ?? 0, "request")} in the last 1,000 events: ${changes.length ? summary(changes).join(", ") : "nothing changes"}.`], "Save and reload"))) return;
    try {
      const done = await call("PUT", "/v1/policy/file", { file: file.name, old: file.sha256, text });
      texts.delete(file.name);
      toast(`${file.name} is live: ${plural(done.rules, "rule")}, ${plural(done.cut, "connection")} cut, ${plural(done.raised, "session")} raised`);
      await load(file.name);
    } catch (e) {
      if (gone) return;
      if (e.error === "file_changed") fill(conflict, h("p", { class: "problem-line bad" }, e.message), h("button", { type: "button", id: "policy-again", onclick: () => load(file.name) }, "Fetch what is live; keep my text"));
      else toast(e.message, true);
    }
  }

  const conflict = h("div", { id: "policy-conflict", role: "alert" });
  function draw() {
    lines(found);
    if (view === "form") drawView();
    const line = (p, cls) => h("button", { type: "button", class: "problem-line " + cls, onclick: () => go(p.line) }, `line ${p.line}: ${p.message}`);
    const changes = found.changes ?? [], changed = texts.has(file.name);
    fill(findings,
      h("p", null, h("span", { class: "chip " + (found.ok ? "good" : "bad") }, found.ok ? "it can be used" : plural(found.errors.length, "error")), " ", found.ok ? plural(found.rules, "rule") : ""),
      changed ? h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => { texts.delete(file.name); show(file.name); } }, "Undo"), h("button", { type: "button", onclick: () => copy(area.value) }, "Copy"),
        app.info.read_only ? null : h("button", { type: "button", class: "primary", id: "policy-save", disabled: !found.ok, onclick: save }, "Save…")) : null,
      found.errors.map((p) => line(p, "bad")), found.warnings.map((p) => line(p, "warn")),
      found.failed?.length ? [h("h3", null, "Cases that do not hold"), found.failed.map((c) => h("div", { class: "effect" }, `line ${c.line}: `, c.message ?? [c.text, h("div", null, `expected ${c.expected}, got ${c.actual}`)]))] : found.failed && cases.value.trim() ? h("p", null, h("span", { class: "chip good" }, "all cases hold")) : null,
      found.ok && found.compared !== undefined ? [h("h3", null, "What changes for the history"), h("p", { id: "policy-diff" }, changes.length ? summary(changes).join(", ") : changed ? "Nothing." : "Change the text to see.", h("span", { class: "soft" }, ` (${plural(found.compared, "request")} of the last 1,000 events)`)),
        repeats(changes).slice(0, 100).map(([c, n]) => h("div", { class: "effect" }, h("span", { class: "chip " + (c.after === "allow" ? "allowed" : c.after === "deny" ? "refused" : "pending") }, c.after), " ", n > 1 ? [h("span", { class: "chip" }, "×" + n), " "] : null, c.method, " ", h("span", { class: "mono" }, c.url.slice(0, 300)), h("div", { class: "soft" }, `${c.session}, was ${c.before}; ${c.reason} ${c.rule.split("/").pop()}`)))] : null);
  }

  function look(wait = CALM_MS) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const number = ++asked;
      try {
        const now = await call("POST", "/console/policy", { name: file.name, text: area.value, cases: cases.value.trim() ? cases.value : undefined, history: true, outline: true });
        if (gone || number !== asked) return;
        found = now;
        draw();
      } catch (e) {
        if (gone || number !== asked) return;
        found = null; // of another text
        drawView();
        fill(findings, h("p", { class: "soft" }, e.message));
      }
    }, wait);
  }

  area.addEventListener("input", () => change(area.value));
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; }, { passive: true });
  cases.addEventListener("input", () => look());

  async function load(name) {
    const [p, s] = await Promise.all([call("GET", "/v1/policy"), call("GET", "/v1/policy/source")]);
    if (gone) return;
    [policy, source] = [p, s];
    fill(conflict);
    fill(page, files, code, fields, side);
    fill(side, h("h3", null, "Check"), conflict, findings, h("h3", null, "Cases"), cases);
    show(name ?? source.first);
  }
  load().catch((e) => { if (!gone) fill(page, h("p", { class: "empty" }, e.message)); });
  return { leave() { gone = true; clearTimeout(timer); }, show() {} };
}

// Names of the lists that the files define, and of the one that comes with netpawl.
export function listsOf(source) {
  const out = new Set();
  for (const f of source.files) {
    const at = /^lists:[ \t]*(?:#.*)?\n((?:[ \t]+.*\n|[ \t]*(?:#.*)?\n)*)/m.exec(f.text + "\n");
    const indent = at && /^([ \t]+)[\w-]+:/m.exec(at[1])?.[1];
    for (const m of at && indent ? at[1].matchAll(new RegExp(`^${indent}([\\w-]+):`, "gm")) : []) out.add(m[1]);
    if (f.text.includes("@llm")) out.add("llm");
  }
  return [...out].sort();
}
