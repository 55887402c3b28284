// SPDX-License-Identifier: MIT
// The node: what this kernel can promise, what the daemon and the gate have counted.
import { call, text } from "./api.js";
import { fill, h } from "./dom.js";
import { columns, hbars } from "./chart.js";
import { moment } from "./words.js";

const REFRESH_MS = 5000;

// Prometheus text -> [{name, labels, value}]. Pure.
export function metrics(body) {
  const out = [];
  for (const line of body.split("\n")) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)/.exec(line);
    if (!m || line.startsWith("#")) continue;
    const labels = {};
    for (const [, key, value] of (m[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
    out.push({ name: m[1], labels, value: Number(m[3]) });
  }
  return out;
}

export function node(app, box) {
  const page = h("div", { class: "scroll", id: "node-page" });
  let timer, gone = false, measures = true; // a daemon without /v1/metrics is not asked again
  box.append(page);

  const number = (value, name) => h("div", { class: "card" }, h("b", null, value), h("span", null, name));

  function charts() {
    const rates = app.rates.slice(-60), minutes = rates.map((r) => r.minute * 60000);
    const median = (list) => (list.length ? [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] / 1000 : 0);
    return [
      h("div", { class: "card" }, h("b", null, "Requests a minute"), columns(minutes, [["allowed", "var(--good)", rates.map((r) => r.allowed)], ["refused", "var(--bad)", rates.map((r) => r.refused)]])),
      h("div", { class: "card" }, h("b", null, "Wait for the origin, median ms"), columns(minutes, [["wait", "var(--info)", rates.map((r) => median(r.us))]])),
      h("div", { class: "card" }, h("b", null, "Rises a minute"), columns(minutes, [["rises", "var(--rise)", rates.map((r) => r.rises)]]))];
  }

  function programs(list) {
    const runs = new Map();
    for (const m of list) {
      const name = m.labels.program;
      if (!name || !/program/.test(m.name)) continue;
      const row = runs.get(name) ?? {};
      row[/run(s|_count)/.test(m.name) ? "runs" : /ns|seconds/.test(m.name) ? "time" : m.name] = m.value;
      runs.set(name, row);
    }
    if (!runs.size) return null;
    return h("div", { class: "card" }, h("b", null, "Programs of the gate"), h("table", null, h("tbody", null, [...runs].map(([name, row]) => h("tr", null, h("td", { class: "mono" }, name), Object.entries(row).map(([k, v]) => h("td", { class: "n" }, `${Number(v.toPrecision(4)).toLocaleString()} ${k}`)))))));
  }

  async function load() {
    try {
      const [health, policy, measured] = await Promise.all([call("GET", "/v1/health"), call("GET", "/v1/policy").catch(() => null), measures ? text("/v1/metrics").then(metrics).catch(() => { measures = false; return []; }) : []]);
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
          programs(measured),
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

