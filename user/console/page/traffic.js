// SPDX-License-Identifier: MIT
// Live traffic: requests, connections, refusals of sockets and queries, rises, as they happen.
import { clean, h, kept, toast } from "./dom.js";
import { parseFilter, toggleTerm } from "./filter.js";
import { moveToEnd } from "./rows.js";
import { Table } from "./table.js";
import { bytes, clock, duration, plural } from "./words.js";
import { detail } from "./detail.js";
import { download, harOf } from "./har.js";

const QUICK = [["refused", "verdict:refused"], ["allowed", "verdict:allowed"], ["requests", "kind:request"], ["DNS", "kind:dns"],
  ["sockets", "kind:socket"], ["rises", "kind:rise"]];
const COLUMNS = ["time", "session", "program", "what", "status", "verdict", "reason", "time taken", "bytes", "rule"];
const NUMBERS = new Set(["status", "time taken", "bytes"]);

function cells(element) {
  if (element.cells) return element.cells;
  const make = (cls) => h("span", { role: "gridcell", class: cls });
  const c = { time: make("mono"), session: make(""), program: make("soft"), what: make("what"), status: make("n"), verdict: make(""), reason: make("soft"),
    us: make("n"), bytes: make("n"), rule: make("mono soft"), count: h("span", { class: "chip" }), llm: h("span", { class: "chip info" }, "LLM"), method: h("b"),
    url: document.createTextNode(""), chip: h("span", { class: "chip" }) };
  c.what.append(c.count, c.llm, c.method, c.url);
  c.verdict.append(c.chip);
  element.append(c.time, c.session, c.program, c.what, c.status, c.verdict, c.reason, c.us, c.bytes, c.rule);
  return (element.cells = c);
}

const CUT = 600; // characters of a cell: more than fit, and a URL of 64 KB costs no more than others

// What has changed, and what it was about.
function changeText({ event, method, what }) {
  return !event.message || event.message === what ? String(what) : `${event.message}: ${method ? method + " " : ""}${what}`;
}

function draw(element, row) {
  const c = cells(element);
  element.className = `row type-${row.type}` + (element.classList.contains("chosen") ? " chosen" : "");
  c.time.textContent = row.time ? clock(row.time) : "";
  c.session.textContent = clean(row.session);
  c.program.textContent = clean(row.program);
  c.count.hidden = row.count < 2;
  c.count.textContent = row.type === "gap" ? "" : "×" + row.count;
  if (row.type === "gap") c.count.hidden = true;
  c.llm.hidden = !row.llm;
  c.method.textContent = clean(row.type === "dns" ? "query" : row.type === "rise" ? "raised to" : row.type === "change" ? "" : row.method);
  c.url.data = row.type === "gap" ? `${row.count.toLocaleString()} events are missing here (${row.first} to ${row.last}): ${clean(row.what)}` : clean((row.type === "change" ? changeText(row) : String(row.what)).slice(0, CUT));
  c.status.textContent = row.status ?? "";
  c.chip.textContent = row.type === "gap" ? "gap" : row.type === "rise" ? "rise" : row.verdict;
  c.chip.className = "chip " + (row.type === "rise" ? "rise" : row.type === "gap" ? "warn" : row.verdict);
  c.reason.textContent = clean(row.reason);
  c.us.textContent = duration(row.us);
  c.bytes.textContent = row.sent === null && row.received === null ? "" : bytes((row.sent ?? 0) + (row.received ?? 0));
  c.rule.textContent = clean(row.rule.split("/").pop());
}

export function traffic(app, box) {
  let match = () => true, visible = [], paused = false, shown = null, waiting = 0;
  const input = h("input", { type: "search", id: "filter", placeholder: "host:github.com verdict:refused -llm session:alice/*", "aria-label": "Filter", spellcheck: "false", autocomplete: "off" });
  input.value = kept.get("filter", "");
  const problem = h("div", { class: "problem", role: "alert", hidden: true });
  const side = h("aside", { class: "detail", "aria-label": "Detail", hidden: true });
  const rowsBox = h("div", { class: "rows", id: "rows" });
  const counters = h("div", { class: "counters", id: "counters", "aria-live": "off" });
  const empty = h("p", { class: "empty", hidden: true });
  const pauseButton = h("button", { type: "button", id: "pause", "aria-pressed": "false", title: "Space" }, "Pause");
  const llm = h("button", { type: "button", class: "pill", id: "llm" }, "LLM calls");
  const quick = QUICK.map(([name, term]) => h("button", { type: "button", data: { term }, onclick: () => { input.value = toggleTerm(input.value, term); refilter(); } }, name));
  const older = h("button", { type: "button", class: "pill", id: "older", onclick: async () => {
    older.disabled = true;
    older.disabled = !(await app.feed.older().catch(() => true));
  } }, "Load older");

  const har = h("button", { type: "button", class: "pill", id: "har", title: "What the filter shows, as an HTTP archive", onclick: async () => {
    har.disabled = true;
    try {
      const { blob, entries } = await harOf({ first: app.feed.oldest, last: app.feed.last, match, version: app.info.version, progress: (part) => { har.textContent = `HAR ${Math.round(part * 100)} %`; } });
      download(blob, `netpawl-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.har`);
      toast(`${plural(entries, "request")} in the archive`);
    } catch (e) { toast(e.message, true); }
    har.textContent = "HAR";
    har.disabled = false;
  } }, "HAR");

  const table = new Table(rowsBox, { height: 30, draw, label: "Events, the newest first", pick: (row) => row.type !== "gap" && show(row) });

  function show(row) {
    shown = row;
    side.hidden = false;
    detail(app, side, row, { close: () => { side.hidden = true; shown = null; rowsBox.focus(); }, filter: (term) => { input.value = toggleTerm(input.value, term); refilter(); } });
  }

  function numbers() {
    const c = app.rows.counts, one = (n, word, id) => h("span", null, h("b", { id: "count-" + id }, n), " " + word);
    counters.replaceChildren(one(c.requests.toLocaleString(), "requests", "requests"), one(c.allowed.toLocaleString(), "allowed", "allowed"), one(c.refused.toLocaleString(), "refused", "refused"),
      one(app.questions?.pending.length ?? 0, "pending", "pending"), one(bytes(c.sent) || "0 B", "out", "sent"), one(visible.length.toLocaleString(), "rows shown", "shown"));
    pauseButton.textContent = paused ? `Go on${waiting ? ` (${waiting.toLocaleString()} new)` : ""}` : "Pause";
    empty.hidden = visible.length > 0;
    empty.textContent = app.rows.all.length ? "Nothing matches the filter." : "No events yet. What sandboxes do shows up here as it happens.";
  }

  function refilter() {
    try {
      match = parseFilter(input.value);
      problem.hidden = true;
    } catch (e) {
      problem.hidden = false;
      problem.textContent = clean(e.message);
      return;
    }
    kept.set("filter", input.value);
    for (const button of quick) button.setAttribute("aria-pressed", input.value.split(/\s+/).includes(button.dataset.term));
    llm.setAttribute("aria-pressed", !input.value.split(/\s+/).includes("-llm"));
    visible = app.rows.all.filter(match);
    table.set(visible);
    numbers();
  }

  let due = null;
  function changed(what) {
    if (paused) {
      waiting += what.fresh?.length ?? 0;
    } else if (what.all || app.rows.all.length < visible.length) {
      visible = app.rows.all.filter(match);
      table.set(visible);
    } else {
      for (const row of what.moved ?? []) moveToEnd(visible, row);
      const more = (what.fresh ?? []).filter(match);
      visible.push(...more);
      if (visible.length > app.rows.max * 1.1) visible = app.rows.all.filter(match);
      table.set(visible, more.length);
    }
    due ??= setTimeout(() => { due = null; numbers(); }, 200);
  }

  function pause() {
    paused = !paused;
    pauseButton.setAttribute("aria-pressed", paused);
    if (!paused) {
      waiting = 0;
      visible = app.rows.all.filter(match);
      table.set(visible);
    } else {
      visible = visible.slice();
    }
    numbers();
  }

  const keys = (e) => {
    if (e.target.closest("input, textarea, select, dialog, button") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { e.preventDefault(); input.focus(); input.select(); }
    else if (e.key === " " ) { e.preventDefault(); pause(); }
    else if (e.key === "Escape" && shown) { side.hidden = true; shown = null; }
  };
  input.addEventListener("input", refilter);
  pauseButton.addEventListener("click", pause);
  llm.addEventListener("click", () => { input.value = toggleTerm(input.value, "-llm"); refilter(); });
  document.addEventListener("keydown", keys);
  app.listeners.add(changed);
  box.append(
    h("div", { class: "bar" }, input, h("div", { class: "quick", role: "group", "aria-label": "Quick filters" }, quick, llm), pauseButton, older, har, problem),
    counters,
    h("div", { class: "split" }, h("div", { class: "left" },
      h("div", { class: "head", "aria-hidden": "true" }, COLUMNS.map((name) => h("span", { class: NUMBERS.has(name) ? "n" : "" }, name))), empty, rowsBox), side));
  refilter();
  return { leave() { app.listeners.delete(changed); document.removeEventListener("keydown", keys); clearTimeout(due); } };
}
