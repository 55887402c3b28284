// SPDX-License-Identifier: MIT
// Small drawings of numbers.
import { h, svg } from "./dom.js";
import { clock } from "./words.js";

// Columns over time, stacked. series: [name, colour, values]
export function columns(times, series) {
  const W = 400, H = 120, LEFT = 34, BOTTOM = 16, n = Math.max(times.length, 20);
  const sums = times.map((_, i) => series.reduce((sum, s) => sum + s[2][i], 0)), most = Math.max(1, ...sums);
  const out = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": series.map((s) => `${s[0]}: ${s[2].reduce((a, b) => a + b, 0)}`).join(", "), preserveAspectRatio: "none" });
  const step = (W - LEFT) / n, y = (v) => (H - BOTTOM) * (1 - v / most) + 4 * (v / most);
  out.append(svg("line", { x1: LEFT, x2: W, y1: H - BOTTOM, y2: H - BOTTOM, stroke: "var(--line)" }), svg("text", { x: LEFT - 5, y: 12, "text-anchor": "end" }, most >= 10 ? Math.round(most).toLocaleString() : most.toFixed(most < 1.01 ? 0 : 1)), svg("text", { x: LEFT - 5, y: H - BOTTOM, "text-anchor": "end" }, "0"));
  times.forEach((time, i) => {
    let base = 0;
    for (const [name, colour, values] of series) {
      if (values[i] > 0) {
        const top = y(base + values[i]), at = W - (times.length - i) * step;
        out.append(svg("rect", { x: at + 0.5, y: top, width: Math.max(1, step - 1.5), height: Math.max(1, y(base) - top), fill: colour, rx: 1 }, svg("title", null, `${clock(time).slice(0, 5)} ${name} ${Math.round(values[i] * 10) / 10}`)));
      }
      base += values[i];
    }
  });
  if (times.length) out.append(svg("text", { x: W, y: H - 3, "text-anchor": "end" }, clock(times[times.length - 1]).slice(0, 5)));
  return out;
}

export function hbars(pairs, colour) {
  const most = Math.max(1, ...pairs.map((p) => p[1]));
  return h("div", null, pairs.length ? pairs.map(([name, value]) => h("div", { class: "hbar" }, h("span", null, name), h("span", { class: "track" }, h("i", { style: { width: (value / most) * 100 + "%", background: colour } })), h("span", { class: "n" }, value.toLocaleString()))) : h("p", { class: "soft" }, "None so far."));
}
