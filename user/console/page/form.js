// SPDX-License-Identifier: MIT
// A policy file as a form, for those who do not write YAML. It changes the same text that the editor shows, one value at a time.
import { fill, h, toast } from "./dom.js";
import * as edit from "./yaml_edit.js";

const SOURCES = [["llm", "LLM providers", "the list @llm, which comes with netpawl"], ["project", "From the project", "rules that netpawl policy suggest has written"], ["hand", "Added by hand", ""], ["list", "Lists", "of the policy's own"], ["granted", "Granted", "answers \"always\""]];
const UNKNOWN = [["deny", "Refuse", "What no rule names is refused."], ["ask", "Ask a person", "The request waits for an answer."], ["allow", "Let pass", "This defeats the purpose: whatever the agent finds or is told to reach, it reaches. Only what a rule denies is held back."]];
const TIMES = [["approval", "timeout", "How long people have for an answer", "10m"], ["approval", "hold", "How long the client waits for it", "12s"]];
const LIMITS = [["sandbox", "memory", "Memory of a run", "no limit; 2G"], ["sandbox", "cpus", "CPUs of a run", "no limit; 1.5"], ["sandbox", "timeout", "Time of a run", "no limit; 30m"], ["sandbox", "pids", "Processes of a run", "no limit; 500"]];

// now: {text, outline, first, name, files, read, change(text), go(file)}
export function form(box, now) {
  const { text, outline } = now, top = box.scrollTop;
  if (!outline) {
    fill(box, h("p", { class: "empty" }, now.read ? "…" : "This file cannot be shown as a form: it has errors, or is very long. See its text."));
    return;
  }
  // A change is by the places of this text: until the reader has seen what came of it, there is no other.
  const act = (fn) => {
    let changed;
    try { changed = fn(); } catch (e) { toast(e.message, true); return form(box, now); }
    if (changed === text) return;
    box.dataset.focus = document.activeElement?.id ?? "";
    for (const control of box.querySelectorAll("input, select, button")) control.disabled = true;
    now.change(changed);
  };

  const field = ([section, key, name, hint]) => {
    const was = edit.value(outline, section, key) ?? "";
    const input = h("input", { type: "text", id: `form-${section}-${key}`, value: was, placeholder: hint, maxlength: 40, onchange: () => act(() => (input.value.trim() ? edit.set(text, outline, section, key, input.value.trim()) : edit.unset(text, outline, section, key))) });
    return h("label", { class: "field" }, h("span", null, name), input);
  };

  const entry = (e) => h("label", { class: "entry" }, h("input", { type: "checkbox", checked: true, "data-host": e.host, onchange: () => act(() => edit.drop(text, outline, e)) }), " ", h("span", { class: "mono" }, e.host), e.conditions ? h("span", { class: "soft" }, ` with ${e.conditions} condition${e.conditions === 1 ? "" : "s"}, line ${e.rule.line}`) : h("span", { class: "soft" }, ` line ${e.rule.line}`));

  function reach() {
    const all = edit.allowed(text, outline), host = h("input", { type: "text", id: "form-host", placeholder: "host.example, *.example, host:8443", "aria-label": "A host to allow", maxlength: 300 });
    const add = () => { if (host.value.trim()) act(() => edit.allow(text, outline, host.value.trim())); };
    host.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); add(); } });
    return h("section", { class: "card" }, h("h2", null, "What may be reached"), SOURCES.map(([source, name, about]) => {
      const own = all.filter((e) => e.source === source);
      if (source === "llm" && !own.length) return [h("h3", null, name), h("label", { class: "entry" }, h("input", { type: "checkbox", id: "form-llm", onchange: () => act(() => edit.allow(text, outline, "@llm")) }), " ", h("span", { class: "mono" }, "@llm"), h("span", { class: "soft" }, " " + about))];
      if (!own.length && source !== "hand") return null;
      return [h("h3", null, name, about ? h("span", { class: "soft" }, " · " + about) : null), own.map(entry), source === "hand" ? h("div", { class: "more" }, host, h("button", { type: "button", id: "form-add", onclick: add }, "Allow")) : null];
    }), h("p", { class: "soft" }, "The first rule that matches decides. A rule from here stands in front of the first that asks, or else at the end: what is denied further up stays denied, what is denied further down is not."));
  }

  function unknown() {
    const by = edit.find(outline, "default")?.value;
    if (by?.map) return h("section", { class: "card" }, h("h2", null, "Hosts that no rule names"), by.map.filter((_, i) => i % 2 === 0).map((level, i) => {
      const choose = h("select", { id: "form-default-" + level.text, onchange: () => act(() => edit.set(text, outline, "default", level.text, choose.value)) }, UNKNOWN.map(([word, name]) => h("option", { value: word }, name)));
      choose.value = by.map[2 * i + 1].text ?? "deny";
      return h("label", { class: "field" }, h("span", null, level.text), choose);
    }), h("p", { class: "soft" }, UNKNOWN[2][2]));
    const is = by?.text ?? "deny";
    return h("section", { class: "card" }, h("h2", null, "Hosts that no rule names"), UNKNOWN.map(([word, name, about]) => h("label", { class: "entry" }, h("input", { type: "radio", name: "form-default", value: word, checked: is === word, onchange: () => act(() => edit.set(text, outline, "default", null, word)) }), " ", h("b", null, name), " ", h("span", { class: word === "allow" ? "warning" : "soft", id: word === "allow" ? "form-warning" : null }, about))),
      is === "allow" ? h("ul", { class: "warnings" }, h("li", null, UNKNOWN[2][2])) : null);
  }

  fill(box, h("p", { class: "soft" }, `The form writes the text of ${now.name}: comments, and what it does not show, stay as they are.`), reach(),
    now.first ? [unknown(), h("section", { class: "card" }, h("h2", null, "Answers"), TIMES.map(field)), h("section", { class: "card" }, h("h2", null, "Limits"), LIMITS.map(field))] : h("p", { class: "soft" }, "Times, limits and the default are in the policy's first file."),
    now.files.length > 1 ? h("p", { class: "soft" }, "Other files: ", now.files.filter((f) => f !== now.name).map((f) => h("button", { type: "button", class: "pill", onclick: () => now.go(f) }, f))) : null);
  box.scrollTop = top;
  if (box.dataset.focus) document.getElementById(box.dataset.focus)?.focus();
  delete box.dataset.focus;
}
