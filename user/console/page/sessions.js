// SPDX-License-Identifier: MIT
// Sessions: where each stands on the ladder, what raised it, and what it did at each step.
import { call, lines, text } from "./api.js";
import { confirmed, fill, h, toast } from "./dom.js";
import { detail } from "./detail.js";
import { LANES, stairs, timeline } from "./timeline.js";
import { ago, bytes, duration, LEVELS, moment, plural } from "./words.js";

const pathOf = (session) => "/v1/sessions/" + session.split("/").map(encodeURIComponent).join("/");
const USAGE_MS = 5000;
const MODES = { FULL: "reaches the network", PROXIED: "what the policy allows", NONE: "nothing but itself" };

export function sessions(app, box, chosen) {
  let all = [], runs = [], find = "", span = 0, timer = null, gone = false;
  const search = h("input", { type: "search", placeholder: "Find a session", "aria-label": "Find a session" });
  const items = h("div", { id: "session-list" }), used = h("div", { id: "sandboxes" });
  const page = h("div", { class: "scroll", id: "session-page" });
  const side = h("aside", { class: "detail", "aria-label": "Detail", hidden: true });
  box.append(h("div", { class: "split" }, h("div", { class: "list" }, h("div", { class: "find" }, search), items), page, side));
  search.addEventListener("input", () => { find = search.value.toLowerCase(); list(); });

  function list() {
    const shown = all.filter((s) => s.session.toLowerCase().includes(find)).slice(0, 500);
    fill(items, shown.length ? shown.map((s) => h("a", { href: "#sessions/" + s.session, "aria-current": s.session === chosen ? "true" : null },
      h("div", { class: "name" }, s.session), h("div", { class: "under" }, h("span", { class: "chip " + s.level }, s.level), h("span", null, s.ended ? "ended" : s.mode), s.datasets ? h("span", null, plural(s.datasets, "dataset")) : null))) : h("p", { class: "empty" }, "No session."));
  }

  async function load() {
    try {
      all = (await call("GET", "/v1/sessions?ended=1&limit=1000")).sessions;
      if (gone) return;
      chosen ||= all.find((s) => s.datasets)?.session ?? all[0]?.session ?? "";
      list();
      await show();
    } catch (e) { if (!gone) fill(page, h("p", { class: "empty" }, e.message)); }
  }

  async function show() {
    if (!chosen) return fill(page, h("p", { class: "empty" }, "There is no session yet: netpawl run --session alice/demo -- COMMAND makes one."));
    const name = chosen;
    const [session, events, notices, { runs: own }] = await Promise.all([
      call("GET", pathOf(name)), text(`/v1/events?limit=1000&session=${encodeURIComponent(name)}`).then(lines),
      call("GET", pathOf(name) + "/notices?after=0").catch(() => ({ notices: [] })),
      call("GET", `/v1/runs?session=${encodeURIComponent(name)}`).catch(() => ({ runs: [] }))]);
    if (gone || name !== chosen) return;
    runs = own;
    draw(session, events.filter((e) => typeof e.seq === "number"), notices.notices ?? []);
  }

  function ladder(session, events) {
    const steps = stairs(session, events), here = LEVELS.indexOf(session.level);
    return h("div", { class: "ladder", role: "list", "aria-label": "The ladder" }, LEVELS.map((level, i) => {
      const step = steps.find((s) => s.level === level), e = step?.event;
      return h("div", { role: "listitem", class: "step" + (i === here ? " here" : i < here ? " past" : ""), "aria-current": i === here ? "step" : null },
        h("b", null, level), i === here ? h("div", null, `${session.mode}: ${MODES[session.mode] ?? ""}`) : null,
        e ? [h("div", null, e.dataset ?? "", e.text ? ` (${e.text})` : ""), h("div", null, moment(e.time)), h("div", null, e.who ?? "")] : step ? h("div", null, "since " + moment(step.time)) : null);
    }));
  }

  function actions(session) {
    if (app.info.read_only) return null;
    const higher = LEVELS.slice(LEVELS.indexOf(session.level) + 1);
    return h("div", { class: "right" }, higher.length && !session.ended ? h("button", { type: "button", id: "raise", onclick: () => raise(session, higher) }, "Raise…") : null,
      session.ended ? null : h("button", { type: "button", id: "end-session", onclick: () => end(session) }, "End…"));
  }

  async function raise(session, higher) {
    const level = h("select", { id: "raise-level", "aria-label": "Level" }, higher.map((l) => h("option", { value: l }, l)));
    const dataset = h("input", { type: "text", placeholder: "dataset (may be empty)", "aria-label": "Dataset", maxlength: 128, id: "raise-dataset" });
    const why = h("input", { type: "text", placeholder: "why", "aria-label": "Reason", maxlength: 500, id: "raise-reason" });
    if (!(await confirmed(`Raise ${session.session}?`, ["Levels only rise. This cannot be undone: connections that the new mode forbids are cut at once, and stay forbidden.", h("div", { class: "more" }, level, dataset, why)], "Raise it for good"))) return;
    const body = { level: level.value, create: false };
    if (dataset.value) body.dataset = dataset.value;
    if (why.value) body.reason = why.value;
    await act("POST", pathOf(session.session) + "/datasets", body, (a) => `${a.level}, ${a.mode}: ${plural(a.cut, "connection")} cut`);
  }

  async function end(session) {
    if (await confirmed(`End ${session.session}?`, ["Everything that runs in its sandboxes is killed. The level is kept for the day it is opened again."], "End it"))
      await act("DELETE", pathOf(session.session), undefined, () => "Ended");
  }

  async function remove(sandbox) {
    if (await confirmed("Remove the sandbox?", [sandbox, "Everything that runs in it is killed."], "Remove it"))
      await act("DELETE", "/v1/sandboxes/" + encodeURIComponent(sandbox), undefined, () => "Removed");
  }

  async function act(method, path, body, done) {
    try { toast(done(await call(method, path, body))); } catch (e) { toast(e.message, true); }
    await load();
  }

  function sandboxTable(session) {
    if (!session.sandboxes.length) return h("p", { class: "soft" }, "None.");
    return h("table", null, h("thead", null, h("tr", null, ["sandbox", "mode", "age", "active"].map((t) => h("th", null, t)), ["CPU", "memory", "processes", "runs", "requests", "queries", "refused", "sent", "received"].map((t) => h("th", { class: "n" }, t)), h("th"))),
      h("tbody", null, session.sandboxes.map((s) => h("tr", null, h("td", { class: "mono" }, s.sandbox, s.adopted ? " (adopted)" : s.kept ? " (kept)" : ""), h("td", null, s.mode), h("td", null, ago(s.created)), h("td", null, s.active ? ago(s.active) : ""),
        h("td", { class: "n" }, s.usage ? duration(s.usage.cpu_us) || "0" : ""), h("td", { class: "n" }, s.usage?.memory ? bytes(s.usage.memory) : ""), h("td", { class: "n" }, s.usage?.processes ?? ""), h("td", { class: "n" }, runs.filter((r) => r.sandbox === s.sandbox).length || ""),
        h("td", { class: "n" }, s.requests), h("td", { class: "n" }, s.queries), h("td", { class: "n" }, s.refused), h("td", { class: "n" }, bytes(s.sent)), h("td", { class: "n" }, bytes(s.received)),
        h("td", { class: "n" }, app.info.read_only ? null : h("button", { type: "button", class: "pill", "aria-label": "Remove " + s.sandbox, onclick: () => remove(s.sandbox) }, "Remove"))))));
  }

  function draw(session, events, notices) {
    const spans = [[0, "all"], [86400000, "a day"], [3600000, "an hour"], [600000, "10 minutes"]];
    const top = page.scrollTop;
    fill(page, h("div", { class: "title" }, h("h2", null, session.session), h("span", { class: "chip " + session.level }, session.level), h("span", { class: "chip" }, session.mode), session.ended ? h("span", { class: "chip warn" }, "ended") : null, actions(session)),
      ladder(session, events),
      h("div", { class: "card" }, h("div", { class: "title" }, h("b", null, "Time line"), h("div", { class: "right quick" }, spans.map(([ms, name]) => h("button", { type: "button", class: "pill", "aria-pressed": span === ms ? "true" : "false", onclick: () => { span = ms; draw(session, events, notices); } }, name)))),
        h("div", { class: "wide-line" }, timeline(session, events, { span, pick: (row) => { side.hidden = false; detail(app, side, row, { close: () => { side.hidden = true; }, filter: () => { location.hash = "#traffic"; } }); } })),
        h("div", { class: "legend" }, h("span", null, h("i", { style: { background: "var(--rise)" } }), "level"), LANES.map(([, name, colour]) => h("span", null, h("i", { style: { background: colour } }), name)), events.length >= 1000 ? h("span", null, "the newest 1,000 events") : null)),
      h("div", { class: "grid", style: { "margin-top": "14px" } },
        h("div", { class: "card wide" }, h("b", null, "Sandboxes"), fill(used, sandboxTable(session))),
        h("div", { class: "card wide" }, h("b", null, "Runs"), runs.length ? h("table", { id: "runs" }, h("tbody", null, runs.slice(0, 20).map((r) => h("tr", null, h("td", { class: "n" }, r.run), h("td", null, h("span", { class: "chip " + ({ completed: "good", failed: "bad", rejected: "bad", pending: "pending" }[r.state] ?? "") }, r.state)), h("td", { class: "mono" }, r.command.join(" ").slice(0, 300)), h("td", { class: "soft" }, r.class ?? ""), h("td", { class: "soft" }, r.started ? ago(r.started) : ago(r.created)), h("td", { class: "mono soft" }, r.sandbox ?? ""))))) : h("p", { class: "soft" }, "None.")),
        h("div", { class: "card" }, h("b", null, "Datasets"), session.datasets.length ? h("table", null, h("tbody", null, session.datasets.map((d) => h("tr", null, h("td", null, d.name), h("td", null, h("span", { class: "chip " + d.level }, d.level)), h("td", { class: "soft" }, moment(d.added), d.reason ? " · " + d.reason : ""))))) : h("p", { class: "soft" }, "None has come in.")),
        h("div", { class: "card" }, h("b", null, "Notices, as the agent reads them"), notices.length ? notices.slice(-5).reverse().map((n) => h("div", null, h("p", { class: "soft" }, moment(n.time)), h("pre", null, n.text))) : h("p", { class: "soft" }, "None."))));
    page.scrollTop = top;
  }

  // What concerns the session that is shown, and no more often than a person reads.
  function changed(what) {
    if (!what.events?.some((e) => e.session === chosen || e.reason === "session_created" || e.reason === "raised") || timer) return;
    timer = setTimeout(() => { timer = null; if (!document.querySelector("dialog.confirm")) load(); }, 1500);
  }
  // What sandboxes use changes without an event. Nothing else is drawn anew: somebody may be reading it.
  const ticking = setInterval(async () => {
    const name = chosen, now = name && !document.hidden && !used.contains(document.activeElement) ? await call("GET", pathOf(name)).catch(() => null) : null;
    if (now && !gone && name === chosen && used.isConnected) fill(used, sandboxTable(now));
  }, USAGE_MS);
  app.listeners.add(changed);
  load();
  return { leave() { gone = true; clearTimeout(timer); clearInterval(ticking); app.listeners.delete(changed); }, show(name) { chosen = name || chosen; side.hidden = true; list(); show().catch((e) => toast(e.message, true)); } };
}
