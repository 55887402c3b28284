// SPDX-License-Identifier: MIT
// The node: what this kernel can promise, what the daemon and the gate have counted.
import { call } from "./api.js";
import { fill, h } from "./dom.js";
import { columns, hbars } from "./chart.js";
import { ago, bytes, duration, moment } from "./words.js";

const REFRESH_MS = 5000;

export function node(app, box) {
  const page = h("div", { class: "scroll", id: "node-page" });
  let timer, gone = false;
  box.append(page);

  const number = (value, name) => h("div", { class: "card" }, h("b", null, value), h("span", null, name));

  function charts() {
    const rates = app.rates.slice(-60), minutes = rates.map((r) => r.minute * 60000);
    const median = (list) => (list.length ? [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] / 1000 : 0);
    return [
      h("div", { class: "card" }, h("b", null, "Requests a minute"), columns(minutes, [["allowed", "var(--good)", rates.map((r) => r.allowed)], ["refused", "var(--bad)", rates.map((r) => r.refused)]])),
      h("div", { class: "card" }, h("b", null, "Wait for the origin, median ms"), columns(minutes, [["wait", "var(--info)", rates.map((r) => median(r.us))]])),
      h("div", { class: "card" }, h("b", null, "Wait for an answer, median s"), columns(minutes, [["wait", "var(--warn)", rates.map((r) => median(r.waits) / 1000)]])),
      h("div", { class: "card" }, h("b", null, "Rises a minute"), columns(minutes, [["rises", "var(--rise)", rates.map((r) => r.rises)]]))];
  }

  const rows = (id, heads, list) => h("table", { id }, h("thead", null, h("tr", null, heads.map(([name, cls]) => h("th", { class: cls }, name)))), h("tbody", null, list.map((cells) => h("tr", null, cells.map((cell, i) => h("td", { class: heads[i][1] ?? "" }, cell))))));
  const N = "n";

  // What the daemon reads when it is asked: maps and programs of the gate, processes, disk.
  function machine(now) {
    if (!now) return null;
    const ran = now.programs.filter((p) => p.runs);
    return [
      h("div", { class: "card" }, h("b", null, "Processes"), rows("workers", [["program"], ["pid", N], ["CPU", N], ["memory", N]], now.processes.map((p) => [p.program, p.pid, duration(p.cpu_us) || "0", bytes(p.memory)]))),
      h("div", { class: "card" }, h("b", null, "Disk and record"), rows("disks", [["directory"], ["free", N], ["of", N]], now.disks.map((d) => [h("span", { class: "mono" }, d.path), bytes(d.free), bytes(d.bytes)])),
        h("dl", null, [["journal", bytes(now.record.journal_bytes)], ["history", bytes(now.record.history_bytes)], ["files", now.record.files], ["netpawld", now.version], ["console", app.info.version], ["kernel", `${now.kernel}, ${now.machine}`]].map(([k, v]) => [h("dt", null, k), h("dd", null, v)]))),
      h("div", { class: "card" }, h("b", null, "Maps of the gate"), rows("maps", [["map", "mono"], ["entries", N], ["at most", N]], now.maps.map((m) => [m.map, m.more ? `more than ${m.entries.toLocaleString()}` : m.entries.toLocaleString(), m.most.toLocaleString()]))),
      h("div", { class: "card" }, h("b", null, "Programs of the gate"), ran.length ? rows("programs", [["program", "mono"], ["runs", N], ["ns a run", N]], ran.map((p) => [p.program, p.runs.toLocaleString(), p.ns_per_run.toLocaleString()]))
        : [h("p", { class: "soft" }, "The kernel counts their runs while kernel.bpf_stats_enabled is 1."), h("p", { class: "mono", id: "programs" }, now.programs.map((p) => p.program).join(" "))])];
  }

  // By name, never their values.
  function credentials(list) {
    if (!list?.length) return null;
    return h("div", { class: "card" }, h("b", null, "Credentials"), rows("credentials", [["name"], ["state"], ["for"], ["uses", N], ["tokens", N], ["last used"]], list.map((c) => [c.name, h("span", { class: "chip " + ({ ready: "good", missing: "bad" }[c.state] ?? "warn"), title: c.problem ?? "" }, c.state), c.for.map((f) => f.replace(/(:443)?\/tcp$/, "")).join(", ") || "rules that name it", c.uses, c.captures ? c.tokens : "-", c.used ? ago(c.used) : "not yet"])));
  }

  async function load() {
    try {
      const [health, policy, now, secrets] = await Promise.all([call("GET", "/v1/health"), ...["/v1/policy", "/v1/node", "/v1/credentials"].map((path) => call("GET", path).catch(() => null))]);
      if (gone) return;
      const top = page.scrollTop;
      const both = {};
      for (const part of [health.refused, health.requests_refused]) for (const [k, v] of Object.entries(part ?? {})) both[k] = (both[k] ?? 0) + v;
      const missing = health.features.filter((f) => !f.present).length;
      fill(page,
        h("div", { class: "title" }, h("h2", null, "Node"), h("span", { class: "chip " + (health.status === "ok" ? "good" : "bad") }, health.status), h("span", { class: "soft" }, `netpawld ${health.version}, pid ${health.pid}`)),
        h("div", { class: "numbers", style: { margin: "12px 0" } }, number(health.sessions, "sessions"), number(health.sandboxes, "sandboxes"), number(health.inspectors, "inspectors ready"), number(health.events.toLocaleString(), "events since the start"), number(health.devices, "devices with the gate"), number(health.cut_late, "connections cut late"), number(health.journal_errors + health.history_errors, "errors of the record")),
        h("div", { class: "grid" }, charts(),
          h("div", { class: "card" }, h("b", null, "Refusals by reason"), hbars(Object.entries(both).sort((a, b) => b[1] - a[1]).slice(0, 14), "var(--bad)")),
          h("div", { class: "card" }, h("b", null, "Policy"), h("dl", null, policy ? [["file", policy.file ?? "the default"], ["hash", policy.hash.slice(0, 16)], ["rules", policy.rules], ["grants", policy.grants.length], ["live since", moment(policy.loaded)], ["by", policy.who], ["warnings", policy.warnings.length]].map(([k, v]) => [h("dt", null, k), h("dd", null, v)]) : null)),
          h("div", { class: "card" }, h("b", null, "Directories"), h("dl", null, ["run_dir", "state_dir", "data_dir", "pins", "cgroup"].filter((k) => health[k]).map((k) => [h("dt", null, k), h("dd", { class: "mono" }, health[k])]))),
          health.deciders?.length ? h("div", { class: "card" }, h("b", null, "Deciders"), h("table", null, h("tbody", null, health.deciders.map((d) => h("tr", null, h("td", null, d.name ?? d.decider), h("td", null, d.state), h("td", { class: "soft" }, Object.entries(d).filter(([, v]) => typeof v === "number").map(([k, v]) => `${k} ${v}`).join(", "))))))) : null,
          health.helper_errors?.length ? h("div", { class: "card" }, h("b", null, "Errors of BPF helpers"), h("pre", null, JSON.stringify(health.helper_errors, null, 1))) : null,
          machine(now), credentials(secrets?.credentials),
          h("div", { class: "card wide" }, h("div", { class: "title" }, h("b", null, "What this kernel can promise"), missing ? h("span", { class: "chip warn" }, `${missing} missing`) : h("span", { class: "chip good" }, "complete")),
            h("table", { id: "doctor" }, h("tbody", null, health.features.map((f) => h("tr", null, h("td", null, h("span", { class: "chip " + (f.present ? "good" : "warn") }, f.present ? "yes" : "no")), h("td", null, h("b", null, f.feature)), h("td", { class: "soft" }, f.means))))))));
      page.scrollTop = top;
    } catch (e) {
      if (!gone) fill(page, h("p", { class: "empty" }, e.message));
    }
    if (!gone) timer = setTimeout(load, REFRESH_MS);
  }
  load();
  return { leave() { gone = true; clearTimeout(timer); } };
}

