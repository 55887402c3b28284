// SPDX-License-Identifier: MIT
// Questions, and runs that wait: a dialog on top of everything, and the list.
import { call, stream } from "./api.js";
import { $, fill, h, kept, toast } from "./dom.js";
import { ago, bytes, left, moment, plural } from "./words.js";

const CALM_MS = 700; // after the dialog came up: what is typed elsewhere answers nothing
const POLL_MS = { events: 10000, alone: 2000 };

const ANSWERS = [
  ["deny", "d", "Deny", () => "Refuses what waits and what comes. The agent reads your reason."],
  ["once", "o", "Once", () => "The request that is shown goes on, or the next that is the same in all that is shown."],
  ["host", "h", "Host", (q) => `This session to ${q.host}:${q.port}, ${{ read: "reading", write: "writing", connect: "connections" }[q.kind] ?? q.kind}, until it rises.`],
  ["domain", "m", "Domain", (q) => (q.domain ? `As Host, for all of ${q.domain}.` : "There is no domain that is one owner's.")],
  ["always", "a", "Always", (q) => `As Host, for all sessions of ${q.session.split("/")[0]}, for good: written into the policy's grants.`],
];

export function outcome(q) {
  if (q.answer) return `answered "${q.answer}" by ${q.answered_by ?? "somebody"}` + (q.reason ? `: ${q.reason}` : "");
  return { expired: "nobody answered in time", void: "it was voided: the session rose or ended, or the policy changed", allowed: "allowed", denied: "denied" }[q.state] ?? q.state;
}

const isRun = (item) => item.kind === "run";
const keyOf = (item) => String(item.id ?? item.question);
const nameOf = (item) => (isRun(item) ? `Run ${item.run}` : `Question ${item.question}`);

export class Questions {
  constructor(app) {
    this.app = app;
    this.pending = []; // questions, and runs of class write, in the order of the inbox
    this.seen = new Set();
    this.later = new Set(); // put off by this person
    this.listeners = new Set();
    this.stopped = false;
    this.following = new AbortController();
  }

  stop() {
    this.stopped = true;
    this.following.abort();
    clearTimeout(this.timer);
    this.close();
  }

  // Events tell of changes. Where there are none to see, the inbox itself is followed.
  async run() {
    if (this.stopped) return;
    await this.refresh();
    if (!this.app.feed) await stream("/v1/questions?follow=1", this.following.signal, (items) => { if (items.length) this.refresh(); }).catch(() => {});
    if (!this.stopped) this.timer = setTimeout(() => this.run(), this.app.feed ? POLL_MS.events : POLL_MS.alone);
  }

  // One at a time; a change that comes meanwhile is looked at afterwards.
  async refresh() {
    if (this.busy) { this.again = true; return this.busy; }
    this.busy = this.look().catch(() => {}).finally(() => { this.busy = null; });
    await this.busy;
    if (this.again) { this.again = false; await this.refresh(); }
  }

  async look() {
    const { questions } = await call("GET", "/v1/questions?state=pending");
    this.pending = questions.reverse(); // as they are to be answered: sessions take turns
    const fresh = this.pending.filter((item) => !this.seen.has(keyOf(item)));
    for (const item of fresh) this.seen.add(keyOf(item));
    $("#bell-count").hidden = !this.pending.length;
    $("#bell-count").textContent = this.pending.length;
    $("#bell").setAttribute("aria-label", plural(this.pending.length, "question") + " waiting");
    if (fresh.length) this.announce(fresh[0]);
    for (const listener of this.listeners) listener();
    await this.settle();
  }

  // What is shown may have been answered by somebody else.
  async settle() {
    const current = this.shown;
    if (current) {
      const still = this.pending.find((item) => keyOf(item) === keyOf(current));
      if (still) {
        this.shown = still;
        return this.details?.(still);
      }
      await this.ended(current);
    }
    const next = this.pending.find((item) => !this.later.has(keyOf(item)));
    if (next && !this.app.info.read_only) this.show(next);
  }

  async ended(item) {
    this.close();
    if (this.mine === keyOf(item)) { this.mine = null; return; }
    try {
      toast(`${nameOf(item)}: ${outcome(await call("GET", "/v1/questions/" + keyOf(item)))}`);
    } catch { /* it is gone */ }
  }

  announce(item) {
    if (kept.get("sound", true)) sound();
    if (kept.get("notify", false) && "Notification" in window && Notification.permission === "granted" && document.hidden) {
      const note = new Notification("netpawl: a question waits", { body: `${item.session}: ${item.method ?? item.command?.join(" ") ?? "connect to"} ${item.host ?? ""}`, tag: keyOf(item) });
      note.onclick = () => { window.focus(); note.close(); };
    }
  }

  open() {
    this.later.clear();
    if (this.pending.length && !this.app.info.read_only) this.show(this.pending[0]);
    else location.hash = "#questions";
  }

  close() {
    clearInterval(this.ticking);
    this.details = null;
    this.shown = null;
    const dialog = this.dialog;
    this.dialog = null;
    if (dialog) { dialog.close(); dialog.remove(); }
  }

  show(item) {
    if (this.dialog) this.close();
    this.shown = item;
    const dialog = (this.dialog = h("dialog", { class: "ask", id: "ask", "aria-labelledby": "asks" }));
    const since = Date.now();
    dialog.addEventListener("cancel", (e) => { e.preventDefault(); this.putOff(); });
    dialog.addEventListener("keydown", (e) => {
      if (e.target.closest("input") || e.ctrlKey || e.metaKey || e.altKey || Date.now() - since < CALM_MS) return;
      const button = dialog.querySelector(`[data-key="${CSS.escape(e.key)}"]`);
      if (button && !button.disabled) { e.preventDefault(); button.click(); }
    });
    this.draw(item);
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("#asks").focus();
    setTimeout(() => { for (const b of dialog.querySelectorAll("[data-wait]")) b.disabled = b.dataset.wait === "never"; }, CALM_MS);
    this.ticking = setInterval(() => this.tick(), 1000);
    this.tick();
  }

  putOff() {
    if (this.shown) this.later.add(keyOf(this.shown));
    this.close();
    const next = this.pending.find((item) => !this.later.has(keyOf(item)));
    if (next) this.show(next);
  }

  draw(item) {
    const asks = !isRun(item);
    const reason = h("input", { type: "text", id: "ask-reason", placeholder: "A reason, for the record and the agent", maxlength: 500, "aria-label": "Reason" });
    const period = h("select", { id: "ask-for", "aria-label": "For how long" }, [["", "until it rises"], ["10m", "10 minutes"], ["1h", "an hour"], ["8h", "8 hours"]].map(([value, text]) => h("option", { value }, text)));
    const others = this.pending.length - 1;
    const bars = h("div");
    this.bars = bars;
    fill(this.dialog,
      h("div", { class: "strip" }, h("span", null, nameOf(item)), h("span", { id: "ask-others" }, others > 0 ? plural(others, "more", "more") + " waiting" : "")),
      h("div", { class: "body" },
        h("h2", { class: "asks", id: "asks", tabindex: -1 }, "Agent ", h("span", null, item.session), programOf(item), asks ? (item.method ? ` wants to ${item.method}` : " wants to connect to") : " wants to run",
          h("span", { class: "mono", id: "ask-what" }, asks ? item.url : item.command.join(" "))),
        bars,
        (item.warnings?.length ?? 0) > 0 && h("ul", { class: "warnings", "aria-label": "Warnings" }, item.warnings.map((w) => h("li", null, typeof w === "string" ? w : w.text ?? w.message))),
        h("div", { id: "ask-facts" }, asks ? questionFacts(item) : runFacts(item)),
        h("div", { class: "more" }, reason, asks && period),
        h("div", { class: "answers", role: "group", "aria-label": "Answers" }, asks
          ? ANSWERS.map(([answer, key, name, means]) => {
            const never = (answer === "domain" && !item.domain) || (answer === "always" && item.decider);
            return h("button", { type: "button", disabled: true, class: answer === "deny" ? "deny" : "", data: { key, answer, wait: never ? "never" : "calm" }, onclick: () => this.answer(item, answer, reason.value, period.value) },
              h("b", null, name, h("span", { class: "soft" }, "  " + key)), h("small", null, means(item)));
          })
          : [["deny", "d", "Reject", "It never starts. The reason is on record."], ["once", "y", "Approve", "It starts, as it stands above."]].map(([answer, key, name, means]) =>
            h("button", { type: "button", disabled: true, class: answer === "deny" ? "deny" : "", data: { key, answer, wait: "calm" }, onclick: () => this.answer(item, answer, reason.value, "") }, h("b", null, name, h("span", { class: "soft" }, "  " + key)), h("small", null, means)))),
        h("div", { class: "buttons" }, h("button", { type: "button", data: { key: "n" }, onclick: () => this.putOff() }, "Later", h("span", { class: "soft" }, "  n")))));
    this.details = (now) => {
      const box = this.dialog?.querySelector("#ask-facts");
      if (box) fill(box, asks ? questionFacts(now) : runFacts(now));
      const more = this.dialog?.querySelector("#ask-others");
      if (more) more.textContent = this.pending.length > 1 ? plural(this.pending.length - 1, "more", "more") + " waiting" : "";
    };
  }

  tick() {
    const item = this.shown;
    if (!item || !this.bars) return;
    const begin = new Date(item.created).getTime(), now = Date.now(), lines = [];
    const line = (name, id, end) => {
      const part = Math.max(0, Math.min(1, (end - now) / (end - begin)));
      lines.push(h("span", null, name), h("span", { class: "track", id, role: "progressbar", "aria-label": name, "aria-valuenow": Math.round(part * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { class: part < 0.2 ? "low" : "", style: { width: part * 100 + "%" } })), h("span", null, end > now ? left(end - now) : "over"));
    };
    const held = item.held_until ?? item.hold_until;
    if (held) line("the client waits", "count-hold", new Date(held).getTime());
    if (item.expires) line("you have", "count-timeout", new Date(item.expires).getTime());
    fill(this.bars, h("div", { class: "count" }, lines));
    if (item.expires && new Date(item.expires) < now) this.refresh();
  }

  async answer(item, answer, reason, period) {
    const body = { answer };
    if (!isRun(item)) Object.assign(body, { policy: item.policy, generation: item.generation });
    if (reason) body.reason = reason;
    if (period && answer !== "once" && answer !== "always") body.for = period;
    await this.send(item, `/v1/questions/${keyOf(item)}/answer`, body, `${nameOf(item)}: ${answer}`);
  }

  async send(item, path, body, done) {
    this.mine = keyOf(item);
    try {
      await call("POST", path, body);
      toast(done);
    } catch (e) {
      this.mine = null;
      if (e.error === "question_over" || e.error === "run_over") {
        const now = await call("GET", "/v1/questions/" + keyOf(item)).catch(() => null);
        toast(`Too late: ${now ? outcome(now) : e.message}`, true);
        this.mine = keyOf(item);
      } else if (e.error === "question_changed") {
        toast("The session or the policy has changed since this was shown. Look again.", true);
        await this.refresh();
        const now = this.pending.find((p) => keyOf(p) === keyOf(item));
        if (now) this.show(now);
        return;
      } else {
        toast(e.message, true);
        return;
      }
    }
    this.close();
    await this.refresh();
  }
}

function programOf(item) {
  return item.comm ? ` (${item.comm})` : "";
}

// Pairs of name and value, without secrets.
function headersOf(item) {
  return item.headers?.length ? h("pre", { class: "headers" }, item.headers.map(([name, value]) => `${name}: ${value}`).join("\n")) : null;
}

function pairs(list) {
  return h("dl", null, list.filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false).map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
}

function questionFacts(q) {
  return pairs([
    ["the session holds", [h("span", { class: "chip " + q.level }, q.level), " ", q.datasets?.length ? q.datasets.join(", ") : "no dataset"]],
    ["headers", headersOf(q)],
    ["body", q.body === null || q.body === undefined ? (q.method && q.kind === "write" ? "of a length that is not known" : null) : q.body > 0 ? bytes(q.body) : null],
    ["it begins with", q.body_start ? h("pre", null, q.body_start) : null],
    ["program", q.program ? `${q.program}, pid ${q.pid}` : null],
    ["this host before", q.before?.allowed || q.before?.denied ? `${q.before.allowed} allowed, ${q.before.denied} denied` : null],
    ["waiting now", q.waiting ? plural(q.waiting, "client") : "nobody: a retry joins, or meets the answer"],
    ["rule", q.rule], ["sandbox", q.sandbox], ["asked", moment(q.created)],
  ]);
}

function runFacts(r) {
  const options = Object.entries(r.options ?? {}).map(([k, v]) => `${k}: ${Array.isArray(v) ? v.join(" ") : v}`).join("\n");
  return pairs([["the session holds", [h("span", { class: "chip " + r.level }, r.level), " ", r.datasets?.length ? r.datasets.join(", ") : "no dataset"]], ["class", "write"], ["options", options ? h("pre", null, options) : null], ["asked by", r.asked_by], ["asked", moment(r.created)]]);
}

// Two notes of our own making: no file, so the page needs no permission to load one.
let audio;
function sound() {
  document.documentElement.dataset.sounds = Number(document.documentElement.dataset.sounds ?? 0) + 1;
  try {
    audio ??= new AudioContext();
    [660, 880].forEach((hz, i) => {
      const tone = audio.createOscillator(), gain = audio.createGain(), at = audio.currentTime + i * 0.16;
      tone.frequency.value = hz;
      gain.gain.setValueAtTime(0.0001, at);
      gain.gain.exponentialRampToValueAtTime(0.2, at + 0.02);
      gain.gain.exponentialRampToValueAtTime(0.0001, at + 0.15);
      tone.connect(gain).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.16);
    });
  } catch { /* no sound here */ }
}

// -- the panel ----------------------------------------------------------------------

export function questionsPanel(app, box) {
  const waiting = h("div"), past = h("div");
  box.append(h("div", { class: "scroll" }, h("h2", null, "Waiting for an answer"), waiting, h("h3", null, "Answered and over"), past));

  const line = (item, right) => h("div", { class: "qrow" },
    h("span", { class: "chip " + (item.state === "pending" ? "pending" : item.state === "allowed" ? "allowed" : item.state === "denied" || item.state === "rejected" ? "refused" : "") }, item.state),
    h("div", null, h("div", { class: "mono" }, isRun(item) ? item.command.join(" ") : `${item.method ?? "connect to"} ${item.url}`),
      h("div", { class: "soft" }, item.session, " · ", item.level, " · ", ago(item.created), item.state === "pending" ? "" : " · " + outcome(item))),
    right);

  function draw() {
    fill(waiting, app.questions.pending.length ? app.questions.pending.map((item) => line(item, app.info.read_only ? null : h("button", { type: "button", class: "primary", onclick: () => app.questions.show(item) }, "Answer"))) : h("p", { class: "empty" }, "Nobody waits."));
    call("GET", "/v1/questions").then(({ questions }) => fill(past, questions.filter((q) => q.state !== "pending").slice(0, 200).map((q) => line(q,
      q.answer && q.answer !== "deny" && !q.over && !q.revoked_by && !app.info.read_only ? h("button", { type: "button", onclick: () => revoke(q) }, "Take back") : q.revoked_by ? h("span", { class: "soft" }, "taken back") : null)))).catch((e) => fill(past, h("p", { class: "soft" }, e.message)));
  }

  async function revoke(q) {
    try {
      await call("POST", `/v1/questions/${q.question}/revoke`, {});
      toast("Taken back: what it opened is cut");
    } catch (e) { toast(e.message, true); }
    draw();
  }

  app.questions.listeners.add(draw);
  draw();
  return { leave() { app.questions.listeners.delete(draw); }, show() { draw(); } };
}
