// SPDX-License-Identifier: MIT
// One row in full: why, by which lines of the policy, what was sent, how long it took, and what to do about it.
import { call } from "./api.js";
import { copy, fill, h } from "./dom.js";
import { bytes, curlOf, duration, headerLines, moment, ruleFrom, timings } from "./words.js";

let source = null; // of the live policy, with its hash

export async function policySource(hash) {
  if (!source || (hash && source.hash !== hash)) source = await call("GET", "/v1/policy/source");
  return source;
}

// "/etc/netpawl/policy.yaml:14" -> the file of the source, and the line.
export function placeIn(policy, rule) {
  const m = /^(.*):(\d+)$/.exec(rule ?? "");
  if (!m || !policy) return null;
  const file = policy.files.find((f) => m[1] === f.name || m[1].endsWith("/" + f.name) || f.name.endsWith("/" + m[1]));
  return file ? { file, line: Number(m[2]) } : null;
}

export function sourceLines(place) {
  const lines = place.file.text.split("\n");
  let end = place.line; // a rule ends where the next one begins
  while (end < lines.length && end - place.line < 12 && !/^\s*-\s|^\S/.test(lines[end])) end++;
  return h("pre", { class: "source" }, lines.slice(Math.max(0, place.line - 2), end).map((line, i) => {
    const number = Math.max(0, place.line - 2) + i + 1;
    return h("div", { class: number >= place.line && number <= end ? "hit" : "" }, h("span", null, number), h("span", null, line || " "));
  }));
}

function facts(pairs) {
  return h("dl", null, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function bars(event) {
  const parts = timings(event), total = parts.reduce((sum, [, us]) => sum + us, 0) || 1;
  let before = 0;
  return h("div", { class: "timings" }, parts.map(([name, us]) => {
    const bar = h("i", { style: { left: (before / total) * 100 + "%", width: (us / total) * 100 + "%" } });
    before += us;
    return [h("span", null, name), h("span", { class: "track" }, bar), h("span", { class: "n" }, duration(us))];
  }));
}

function captured(title, head, body) {
  if (!head && !body) return null;
  return [h("h3", null, title), head && h("pre", null, headerLines(head).join("\n") || head), body && h("pre", null, body)];
}

export function detail(app, box, row, { close, filter }) {
  const e = row.event, host = row.host;
  const rule = h("div");
  const made = h("div");
  fill(box,
    h("button", { type: "button", class: "icon close", "aria-label": "Close the detail", onclick: close }, "×"),
    h("p", null, h("span", { class: "chip " + (row.type === "rise" ? "rise" : row.verdict) }, row.type === "rise" ? "rise" : row.verdict), " ", h("span", { class: "soft" }, row.type), row.llm && [" ", h("span", { class: "chip info" }, "LLM")],
      row.count > 1 && [" ", h("span", { class: "chip" }, `×${row.count} since ${moment(row.first)}`)]),
    h("div", { class: "url" }, row.method && h("b", null, row.method + " "), row.what || e.message),
    h("h3", null, "Why"),
    h("p", null, e.message ?? ""),
    facts([["reason", row.reason], ["rule", row.rule], ["text", e.text], ["status", row.status]]),
    rule,
    timings(e).length > 0 && [h("h3", null, "Time"), bars(e)],
    captured("Request", e.request_headers, e.request_body), captured("Response", e.response_headers, e.response_body),
    h("h3", null, "Where"),
    facts([["session", e.session && h("a", { href: "#sessions/" + e.session }, e.session)], ["sandbox", e.sandbox], ["level", e.level], ["mode", e.mode], ["generation", e.generation],
      ["program", e.comm], ["pid", e.pid], ["address", e.address], ["port", e.port], ["protocol", e.protocol], ["hook", e.hook], ["proxy", e.proxy], ["list", e.list], ["dataset", e.dataset], ["by", e.who],
      ["sent", bytes(e.sent)], ["received", bytes(e.received)], ["cut", e.cut], ["time", moment(row.time)], ["number", e.seq]]),
    h("div", { class: "buttons" },
      host && h("button", { type: "button", onclick: () => filter("host:" + host) }, "Only this host"),
      e.session && h("button", { type: "button", onclick: () => filter("session:" + e.session) }, "Only this session"),
      e.method && e.url && h("button", { type: "button", id: "as-curl", onclick: () => copy(curlOf(e)) }, "Copy as curl"),
      (e.url || e.address || e.lookup) && h("button", { type: "button", id: "make-rule", onclick: () => ruleShow(made, e) }, "Make a rule of this"),
      h("button", { type: "button", onclick: () => copy(JSON.stringify(e, null, 1)) }, "Copy JSON")),
    made);
  if (row.rule)
    policySource(e.policy).then((policy) => {
      const place = placeIn(policy, row.rule);
      if (place) fill(rule, e.policy && e.policy !== policy.hash ? h("p", { class: "soft" }, "The policy has changed since; this is what stands there now.") : null, sourceLines(place));
    }).catch(() => {});
  else if (e.session && row.verdict === "refused")
    call("GET", `/v1/sessions/${e.session.split("/").map(encodeURIComponent).join("/")}/why?last=50`).then((why) => {
      const near = why.refused?.find((r) => r.near_miss && (r.where ?? r.url ?? r.text ?? "").includes(host));
      if (near) fill(rule, h("p", null, h("b", null, "Nearly: "), typeof near.near_miss === "string" ? near.near_miss : JSON.stringify(near.near_miss)));
    }).catch(() => {});
}

function ruleShow(box, event) {
  const { yaml, test, problem } = ruleFrom(event);
  if (problem) return fill(box, h("p", { id: "rule-problem", class: "problem-line warn" }, problem));
  fill(box, h("h3", null, "A rule that allows it"), h("p", { class: "soft" }, "As narrow as what was seen. Put it above the first rule that denies it, and the case beside the policy."),
    h("pre", { id: "rule-yaml" }, yaml), h("button", { type: "button", onclick: () => copy(yaml) }, "Copy the rule"),
    h("h3", null, "Its case"), h("pre", { id: "rule-case" }, test), h("button", { type: "button", onclick: () => copy(test) }, "Copy the case"));
  box.scrollIntoView({ block: "nearest" });
}

