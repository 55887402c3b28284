// SPDX-License-Identifier: MIT
// A table of any length: only the rows that can be seen are elements. The newest is on top, and what is being read stays where it is.
import { h } from "./dom.js";

const SPARE = 8; // rows above and below what is seen

export class Table {
  // draw(element, row): fills a row's element, which is used again for others. pick(row): somebody chose it.
  constructor(box, { height, draw, pick, label }) {
    Object.assign(this, { box, height, draw, pick });
    this.rows = []; // oldest first
    this.chosen = null;
    this.space = h("div", { class: "space" });
    this.pool = [];
    box.append(this.space);
    box.tabIndex = 0;
    box.setAttribute("role", "grid");
    box.setAttribute("aria-label", label);
    box.addEventListener("scroll", () => this.later(), { passive: true });
    box.addEventListener("keydown", (e) => this.key(e));
    box.addEventListener("click", (e) => {
      const element = e.target.closest("[data-at]");
      if (element) this.choose(Number(element.dataset.at));
    });
    new ResizeObserver(() => this.later()).observe(box);
  }

  // How tall a row is, where the style says otherwise (a phone).
  get size() {
    return this.box.clientWidth < 700 ? this.height * 1.7 : this.height;
  }

  later() {
    this.due ??= requestAnimationFrame(() => { this.due = null; this.render(); });
  }

  // added: rows that came on top, if only that happened.
  set(rows, added = 0) {
    this.rows = rows;
    if (added && this.box.scrollTop > this.size) this.box.scrollTop += added * this.size;
    this.later();
  }

  render() {
    const size = this.size, n = this.rows.length;
    this.space.style.height = n * size + "px";
    this.box.setAttribute("aria-rowcount", n);
    const first = Math.max(0, Math.floor(this.box.scrollTop / size) - SPARE);
    const count = Math.max(0, Math.min(n - first, Math.ceil(this.box.clientHeight / size) + 2 * SPARE));
    while (this.pool.length < count) {
      const element = h("div", { role: "row", class: "row" });
      this.space.append(element);
      this.pool.push(element);
    }
    this.pool.forEach((element, i) => {
      element.hidden = i >= count;
      if (element.hidden) return;
      const at = first + i, row = this.rows[n - 1 - at];
      element.style.transform = `translateY(${at * size}px)`;
      element.style.height = size + "px";
      element.dataset.at = at;
      element.setAttribute("aria-rowindex", at + 1);
      element.classList.toggle("chosen", row === this.chosen);
      element.setAttribute("aria-selected", row === this.chosen);
      this.draw(element, row);
    });
  }

  choose(at) {
    const row = this.rows[this.rows.length - 1 - at];
    if (!row) return;
    this.chosen = row;
    this.later();
    this.pick(row);
  }

  key(e) {
    const n = this.rows.length, page = Math.max(1, Math.floor(this.box.clientHeight / this.size) - 1);
    const found = this.chosen ? this.rows.lastIndexOf(this.chosen) : -1;
    const now = found < 0 ? -1 : n - 1 - found;
    const to = { ArrowDown: now + 1, j: now + 1, ArrowUp: now - 1, k: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: n - 1 }[e.key];
    if (to === undefined || !n || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    const at = Math.max(0, Math.min(n - 1, to)), size = this.size;
    if (at * size < this.box.scrollTop) this.box.scrollTop = at * size;
    else if ((at + 1) * size > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = (at + 1) * size - this.box.clientHeight;
    this.choose(at);
  }
}
