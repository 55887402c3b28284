// SPDX-License-Identifier: MIT
// A session on one line of time: its level as a staircase, and under it what it did and what was refused.
import { svg } from "./dom.js";
import { clock, describe, LEVELS, moment } from "./words.js";

const W = 1000, LEFT = 104, RIGHT = 14, STAIR = 110, LANE = 22, TOP = 14;
export const LANES = [["allowed", "allowed", "var(--good)"], ["refused", "requests refused", "var(--bad)"], ["dns", "queries refused", "var(--warn)"], ["socket", "sockets refused", "var(--info)"]];

export function laneOf(row) {
  if (row.verdict === "allowed") return row.type === "change" ? null : "allowed";
  if (row.verdict !== "refused") return null;
  return row.type === "dns" ? "dns" : row.type === "socket" ? "socket" : "refused";
}

// Times and levels of the staircase, from the events and what the session says of itself. Pure.
export function stairs(session, events) {
  const rises = events.filter((e) => e.reason === "raised").map((e) => ({ time: Date.parse(e.time), level: e.level, event: e }));
  const made = events.find((e) => e.reason === "session_created");
  const first = events.find((e) => e.level);
  const start = made ? made.level : rises.length && first && Date.parse(first.time) < rises[0].time ? first.level : rises.length ? "PUBLIC" : session.level;
  const steps = [{ time: Math.min(Date.parse(session.created), ...events.slice(0, 1).map((e) => Date.parse(e.time))), level: start }];
  for (const rise of rises) if (LEVELS.indexOf(rise.level) > LEVELS.indexOf(steps[steps.length - 1].level)) steps.push(rise);
  if (LEVELS.indexOf(session.level) > LEVELS.indexOf(steps[steps.length - 1].level)) steps.push({ time: Date.parse(session.created), level: session.level });
  return steps;
}

export function timeline(session, events, { span, pick }) {
  const now = Date.now();
  const steps = stairs(session, events);
  const from = span ? Math.max(now - span, steps[0].time) : steps[0].time, to = Math.max(now, from + 1000);
  const x = (t) => LEFT + (Math.max(0, Math.min(1, (t - from) / (to - from)))) * (W - LEFT - RIGHT);
  const y = (level) => TOP + STAIR - (LEVELS.indexOf(level) / 3) * STAIR;
  const height = TOP + STAIR + 16 + LANES.length * LANE + 22;
  const out = svg("svg", { class: "timeline", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": `Level and requests of ${session.session} over time` });

  for (const level of LEVELS) out.append(svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(level), y2: y(level), stroke: "var(--line)" }), svg("text", { x: LEFT - 8, y: y(level) + 4, "text-anchor": "end" }, level));
  let path = `M ${x(from)} ${y(steps.filter((s) => s.time <= from).pop()?.level ?? steps[0].level)}`;
  for (const step of steps.filter((s) => s.time > from)) path += ` H ${x(step.time)} V ${y(step.level)}`;
  path += ` H ${x(to)}`;
  out.append(svg("path", { d: `${path} V ${TOP + STAIR} H ${x(from)} Z`, fill: "var(--rise-bg)", opacity: 0.7 }), svg("path", { d: path, fill: "none", stroke: "var(--rise)", "stroke-width": 2.5 }));
  const risen = steps.filter((s) => s.event && s.time >= from);
  for (const [i, step] of risen.entries()) {
    const label = step.event.dataset ?? step.event.text ?? "raised", at = x(step.time), end = at > W * 0.7 || (at > LEFT + 160 && risen[i + 1] && x(risen[i + 1].time) - at < 160);
    out.append(svg("line", { x1: at, x2: at, y1: y(step.level), y2: height - 20, stroke: "var(--rise)", "stroke-dasharray": "2 3" }),
      svg("circle", { cx: at, cy: y(step.level), r: 4.5, fill: "var(--rise)", class: "rise-mark" }, svg("title", null, `${step.level}: ${label}, ${moment(step.time)}, by ${step.event.who ?? "?"}`)),
      svg("text", { x: at + (end ? -8 : 8), y: y(step.level) - 5, "text-anchor": end ? "end" : "start" }, label.length > 34 ? label.slice(0, 33) + "…" : label));
  }
  LANES.forEach(([lane, name, colour], i) => {
    const top = TOP + STAIR + 16 + i * LANE;
    out.append(svg("text", { x: LEFT - 8, y: top + 14, "text-anchor": "end" }, name), svg("line", { x1: LEFT, x2: W - RIGHT, y1: top + LANE - 1, y2: top + LANE - 1, stroke: "var(--line)", opacity: 0.6 }));
    // Marks that would be at the same place are one, which is taller.
    const bins = new Map();
    for (const event of events) {
      const t = Date.parse(event.time), row = describe(event);
      if (t < from || laneOf(row) !== lane) continue;
      const bin = Math.round(x(t) / 4) * 4;
      if (!bins.has(bin)) bins.set(bin, []);
      bins.get(bin).push(row);
    }
    for (const [at, rows] of bins) {
      const tall = Math.min(LANE - 4, 7 + 3 * Math.log2(rows.length));
      out.append(svg("rect", { x: at - 1.5, y: top + LANE - 2 - tall, width: 3, height: tall, rx: 1, fill: colour, class: "mark mark-" + lane, style: { cursor: "pointer" }, onclick: () => pick(rows[rows.length - 1]) },
        svg("title", null, rows.slice(0, 8).map((r) => `${clock(r.time)}  ${r.method} ${r.what.slice(0, 120)}  ${r.reason}`).join("\n") + (rows.length > 8 ? `\nand ${rows.length - 8} more` : ""))));
    }
  });
  for (let i = 0; i <= 4; i++) {
    const t = from + ((to - from) * i) / 4;
    out.append(svg("text", { x: x(t), y: height - 5, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle" }, to - from > 86400000 ? moment(t) : clock(t).slice(0, 8)));
  }
  return out;
}
