// SPDX-License-Identifier: MIT
// Events as they come: in order, each once, and with a row where some are missing. Survives the daemon and the console.
import { lines, stream, text } from "./api.js";

const PAGE = 1000; // that the API gives at once

export class Feed {
  // take(events, where): a batch in order of their numbers, "new" or "old"; gap(first, last, why): these are not to be had; state(word)
  constructor({ take, gap, state, wait = (ms) => new Promise((r) => setTimeout(r, ms)), api = { lines, stream, text } }) {
    Object.assign(this, { take, gap, state, wait, api });
    this.last = 0; // the newest that was handed on
    this.oldest = 0;
    this.ended = new AbortController();
  }

  stop() { this.ended.abort(); }

  // In order, each once. A line without a number tells of a loss.
  accept(events) {
    const fresh = [];
    let missed = false;
    for (const event of events) {
      if (event.reason === "lost" || event.reason === "not_kept") {
        missed = true;
        this.why = event.message ?? event.reason;
        continue;
      }
      if (typeof event.seq !== "number" || event.seq <= this.last) continue;
      if (this.last && event.seq > this.last + 1) missed = this.hole(fresh, event.seq, missed);
      this.last = event.seq;
      fresh.push(event);
    }
    if (fresh.length) this.take(fresh, "new");
    return missed;
  }

  // Numbers are given once and in order, so a step of more than one is a hole.
  hole(fresh, next, said) {
    if (fresh.length) this.take(fresh.splice(0), "new");
    this.gap(this.last + 1, next - 1, this.why ?? "not kept, or not for you to see");
    this.why = null;
    return said;
  }

  async first() {
    const got = this.api.lines(await this.api.text(`/v1/events?limit=${PAGE}`)).filter((e) => typeof e.seq === "number");
    this.oldest = got.length ? got[0].seq : 0;
    this.last = Math.max(0, this.oldest - 1);
    this.accept(got);
  }

  // A page of what was before; true while there is more.
  async older() {
    if (this.oldest <= 1) return false;
    const from = Math.max(0, this.oldest - 1 - PAGE);
    const got = this.api.lines(await this.api.text(`/v1/events?after=${from}&limit=${PAGE}`))
      .filter((e) => typeof e.seq === "number" && e.seq < this.oldest);
    this.oldest = from + 1;
    if (got.length) this.take(got, "old");
    return from > 0;
  }

  // Up to now, page by page: a follower that was away for long gets the newest of them only.
  async catchUp() {
    for (;;) {
      const got = this.api.lines(await this.api.text(`/v1/events?after=${this.last}&limit=${PAGE}`));
      const before = this.last;
      this.accept(got);
      if (this.last === before || got.length < PAGE) return;
    }
  }

  async run() {
    let pause = 250, begun = false;
    while (!this.ended.signal.aborted) {
      try {
        this.state("connecting");
        if (!begun) await this.first();
        else await this.catchUp();
        begun = true;
        const again = new AbortController();
        const signal = AbortSignal.any([this.ended.signal, again.signal]);
        await this.api.stream(`/v1/events?follow=1&after=${this.last}&limit=${PAGE}`, signal, (events) => {
          this.state("live");
          pause = 250;
          if (this.accept(events)) again.abort(); // what the stream skipped is in the history
        }).catch((e) => { if (!again.signal.aborted) throw e; });
      } catch (e) {
        if (this.ended.signal.aborted) return;
        if (e.status === 401) { this.state("out"); return; }
        if (e.status === 403) { this.state("forbidden"); return; }
        this.state("lost", e.message);
      }
      await this.wait(pause);
      pause = Math.min(pause * 2, 5000);
    }
  }
}

