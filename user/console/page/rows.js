// SPDX-License-Identifier: MIT
// The rows of the live table: events, repeats counted, bounded. Pure.
import { describe, sameKey } from "./words.js";

export const ROWS_MAX = 100000;
const NEAR = 400; // rows back that a repeat is looked for
const CLOSE_MS = 60000;

// It is near the end already.
export function moveToEnd(rows, row) {
  const at = rows.lastIndexOf(row);
  if (at < 0) return;
  rows.splice(at, 1);
  rows.push(row);
}

export class Rows {
  constructor(max = ROWS_MAX) {
    this.max = max;
    this.all = []; // oldest first
    this.latest = new Map(); // key -> row
    this.coalesce = true;
    this.counts = { requests: 0, allowed: 0, refused: 0, sent: 0 };
    this.dropped = 0;
    this.made = 0; // rows ever: a row's place is its number
  }

  count(row) {
    if (row.type === "request" || row.type === "connection") this.counts.requests++;
    if (row.verdict === "allowed") this.counts.allowed++;
    if (row.verdict === "refused") this.counts.refused++;
    this.counts.sent += row.sent ?? 0;
  }

  // Rows that were added, and those that got a higher count: these are the newest now, and so at the end.
  add(events) {
    const fresh = [], moved = new Set();
    for (const event of events) {
      const row = describe(event);
      this.count(row);
      const key = this.coalesce ? sameKey(row) : null;
      const same = key === null ? undefined : this.latest.get(key);
      if (same && this.made - same.number < NEAR && new Date(row.time) - new Date(same.time) < CLOSE_MS) {
        same.count++;
        same.number = this.made++;
        same.time = row.time;
        same.event = event;
        same.sent = same.sent === null && row.sent === null ? null : (same.sent ?? 0) + (row.sent ?? 0);
        same.received = same.received === null && row.received === null ? null : (same.received ?? 0) + (row.received ?? 0);
        moveToEnd(this.all, same);
        if (fresh.includes(same)) moveToEnd(fresh, same);
        else moved.add(same);
        continue;
      }
      this.put(row, key);
      fresh.push(row);
    }
    this.trim();
    return { fresh, moved: [...moved] };
  }

  put(row, key) {
    row.number = this.made++;
    if (key !== null) this.latest.set(key, row);
    this.all.push(row);
  }

  gap(first, last, why) {
    const row = { type: "gap", verdict: "gap", first, last, what: why, count: last - first + 1, time: null, session: "", program: "",
      method: "", reason: "", rule: "", host: "", status: null, sent: null, received: null, us: null, llm: false, event: {}, seq: first };
    this.put(row, null);
    return row;
  }

  // Older ones, in front; they are counted, and not looked for repeats with what is there.
  addOld(events) {
    const rows = [];
    const latest = new Map();
    for (const event of events) {
      const row = describe(event);
      this.count(row);
      const key = this.coalesce ? sameKey(row) : null, same = key === null ? undefined : latest.get(key);
      if (same) { same.count++; same.time = row.time; continue; }
      if (key !== null) latest.set(key, row);
      row.number = -1 - rows.length;
      rows.push(row);
    }
    this.all = rows.concat(this.all);
    this.trim();
  }

  trim() {
    if (this.all.length <= this.max * 1.1) return;
    const gone = this.all.length - this.max;
    this.all.splice(0, gone);
    this.dropped += gone;
    for (const [key, row] of this.latest) if (this.made - row.number > NEAR) this.latest.delete(key);
  }

  clear() {
    this.all = [];
    this.latest.clear();
    this.counts = { requests: 0, allowed: 0, refused: 0, sent: 0 };
  }
}
