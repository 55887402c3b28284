// SPDX-License-Identifier: MIT
// How things are written for people. Pure.
import { kindOf } from "./filter.js";

export const LEVELS = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"];

export function bytes(n) {
  if (n === undefined || n === null) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export function duration(us) {
  if (us === undefined || us === null) return "";
  if (us < 1000) return us + " µs";
  if (us < 1e6) return (us < 1e4 ? (us / 1000).toFixed(1) : Math.round(us / 1000)) + " ms";
  if (us < 6e7) return (us / 1e6).toFixed(1) + " s";
  return Math.round(us / 6e7) + " min";
}

export function clock(time) {
  const t = new Date(time);
  return isNaN(t) ? "" : t.toLocaleTimeString([], { hour12: false }) + "." + String(t.getMilliseconds()).padStart(3, "0");
}

export function moment(time) {
  const t = new Date(time);
  return isNaN(t) ? "" : t.toLocaleString([], { hour12: false });
}

export function ago(time, now = Date.now()) {
  const s = Math.max(0, Math.round((now - new Date(time)) / 1000));
  if (isNaN(s)) return "";
  if (s < 60) return s + " s ago";
  if (s < 3600) return Math.round(s / 60) + " min ago";
  return s < 172800 ? Math.round(s / 3600) + " h ago" : Math.round(s / 86400) + " days ago";
}

export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return s < 100 ? s + " s" : Math.floor(s / 60) + " min " + (s % 60) + " s";
}

export function plural(n, word, words = word + "s") {
  return n.toLocaleString() + " " + (n === 1 ? word : words);
}

export function hostOf(url) {
  const m = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url ?? "");
  if (!m) return "";
  return m[1].replace(/^[^@]*@/, "").replace(/:\d*$/, "").toLowerCase();
}

const TIMES = ["dns_us", "connect_us", "tls_us", "wait_us", "receive_us"];
export const TIME_NAMES = { dns_us: "name", connect_us: "connect", tls_us: "TLS", wait_us: "wait", receive_us: "receive" };

export function timings(event) {
  return TIMES.filter((name) => typeof event[name] === "number").map((name) => [TIME_NAMES[name], event[name]]);
}

// What an event is, in the words of the table and of the filter.
export function describe(event) {
  const row = {
    seq: event.seq, time: event.time, event, count: 1, first: event.time,
    session: event.session ?? "", program: event.comm ?? "", method: event.method ?? "", status: event.status ?? null,
    reason: event.reason ?? "", rule: event.rule ?? "", llm: event.list === "@llm",
    sent: event.sent ?? null, received: event.received ?? null,
    us: null, host: hostOf(event.url), what: event.url ?? "", type: "change", verdict: "change",
  };
  const times = timings(event);
  if (times.length) row.us = times.reduce((sum, t) => sum + t[1], 0);
  row.type = kindOf(event);
  if (row.type === "rise") row.what = `${event.level} ${event.mode}` + (event.dataset ? `  ${event.dataset}` : "");
  else if (row.type === "change") row.what = event.url ?? event.text ?? event.dataset ?? event.message ?? "";
  else if (event.lookup) row.what = row.host = event.lookup;
  else if (!event.url && event.address) {
    row.host = event.address;
    row.what = (event.address.includes(":") ? `[${event.address}]` : event.address) + (event.port ? ":" + event.port : "");
  } else if (!event.url) row.what = event.message ?? "";
  row.verdict = { allow: "allowed", refuse: "refused", error: "error" }[event.kind] ?? "change";
  return row;
}

// Rows with one key are one row with a count: alike in all that a filter asks for, but for sandbox, bytes and times, which are the newest one's.
export function sameKey(row) {
  if (row.verdict === "change" || row.type === "gap") return null;
  const e = row.event;
  return [row.session, row.verdict, row.reason, row.method, row.what, row.status, row.rule, row.program, e.level, e.question].join("\u0001");
}

const quoted = (text) => "'" + String(text).replace(/'/g, "'\\''") + "'";

// For a shell, and so that curl takes nothing of it for more than it is: no file behind an @, no pattern in the URL.
export function curlOf(event) {
  const words = ["curl", "-g"];
  if (event.method && event.method !== "GET") words.push("-X", quoted(event.method));
  for (const line of headerLines(event.request_headers)) {
    if (!/^(host|content-length|connection|transfer-encoding):/i.test(line)) words.push("-H", quoted(line));
  }
  if (event.request_base64) words.push("--data-binary", "@-");
  else if (event.request_body) words.push("--data-raw", quoted(event.request_body));
  words.push(quoted(event.url));
  return (event.request_base64 ? `echo ${quoted(event.request_base64)} | base64 -d | ` : "") + words.join(" ");
}

export function headerLines(captured) {
  return String(captured ?? "").split(/\r?\n/).filter((line) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:/.test(line));
}

// A rule that would allow what was refused, as narrow as the event lets it be; and the case that tests it.
export function ruleFrom(event) {
  const url = event.url ?? "";
  const host = (hostOf(url) || event.address || event.lookup || "").replace(/^\[(.*)\]$/, "$1");
  const port = /^[a-z]+:\/\/[^/?#]*:(\d+)(?=[/?#]|$)/i.exec(url)?.[1] ?? event.port;
  const standard = !port || port == 443 || port == 80;
  const target = host.includes(":") ? `"[${host}]${standard && event.method ? "" : ":" + port}"` : host + (standard && (event.method || event.lookup) ? "" : ":" + port);
  // Names and methods are what the sandbox wrote, too: one with a star, or that YAML reads in a way of its own, makes no rule.
  if (!/^[\w.:-]+$/.test(host)) return { problem: "No rule says this host and no other: its name has characters that no host's has." };
  if (event.method && !/^[A-Za-z][A-Za-z-]*$/.test(event.method)) return { problem: "No rule is made of a method of this name." };
  const lines = [`  - allow: ${target}`];
  let attempt = `connect ${host}:${port ?? 443}`;
  if (event.method) {
    const path = /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(url)?.[1] || "/";
    // Whoever asks for /** is not to get a rule for everything.
    if (/\*|%2a/i.test(path)) return { problem: "No rule says this path and no other: it has a star in it, which stands for anything in rules." };
    lines.push(`    methods: [${event.method}]`, `    paths: [${JSON.stringify(path)}]`);
    attempt = `${event.method} ${url}`;
  }
  return { yaml: lines.join("\n") + "\n", test: `at ${event.level ?? "CONFIDENTIAL"}\n${attempt} -> allow\n` };
}
