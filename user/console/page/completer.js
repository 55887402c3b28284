// SPDX-License-Identifier: MIT
// Words that may come next, under the cursor of a text area. Arrows choose, Tab or Enter takes, Escape closes, Ctrl+Space opens.
import { call } from "./api.js";
import { completions } from "./complete.js";
import { fill, h } from "./dom.js";

const LINE = 20, SHOWN = 12;
let schema; // the same for all policies

export function completer(area, box) {
  const list = h("ul", { class: "complete", id: "policy-complete", role: "listbox", "aria-label": "What may stand here", hidden: true });
  const ruler = h("span", { class: "ruler", "aria-hidden": "true" }, "0".repeat(50));
  let offer = null, chosen = 0;
  box.append(list, ruler);

  function close() {
    offer = null;
    list.hidden = true;
  }

  function draw() {
    const first = Math.max(0, Math.min(chosen - SHOWN + 1, offer.words.length - SHOWN));
    fill(list, offer.words.slice(first, first + SHOWN).map((w, i) => h("li", { role: "option", "aria-selected": first + i === chosen ? "true" : "false", onmousedown: (e) => { e.preventDefault(); take(first + i); } }, h("b", null, w.word), h("small", null, w.about))));
    const before = area.value.slice(0, offer.from), row = before.split("\n").length, column = offer.from - before.lastIndexOf("\n") - 1;
    list.style.top = `${10 + row * LINE - area.scrollTop}px`;
    list.style.left = `${Math.max(0, Math.min(area.offsetLeft + 12 + (column * ruler.getBoundingClientRect().width) / 50 - area.scrollLeft, box.clientWidth - 260))}px`;
    list.hidden = false;
  }

  async function look(always) {
    schema ??= await call("GET", "/console/schema").catch(() => null);
    const at = area.selectionStart, now = schema && at === area.selectionEnd ? completions(schema, area.value, at) : null;
    if (!now?.words.length || (!always && now.from === at)) return close();
    offer = { ...now, to: at };
    chosen = 0;
    draw();
  }

  function take(i) {
    const { word, kind } = offer.words[i];
    area.setRangeText(kind === "key" ? word + ": " : word, offer.from, offer.to, "end");
    close();
    area.dispatchEvent(new InputEvent("input", { inputType: "insertReplacementText" }));
  }

  area.addEventListener("input", (e) => { if (e.inputType === "insertReplacementText") return; look(false); });
  area.addEventListener("blur", close);
  area.addEventListener("scroll", close, { passive: true });
  area.addEventListener("click", close);
  area.addEventListener("keydown", (e) => {
    if (e.key === " " && e.ctrlKey) { e.preventDefault(); look(true); return; }
    if (!offer) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") chosen = (chosen + (e.key === "ArrowDown" ? 1 : offer.words.length - 1)) % offer.words.length;
    else if (e.key === "Tab" || e.key === "Enter") { e.preventDefault(); return take(chosen); }
    else if (e.key === "Escape") { e.preventDefault(); return close(); }
    else return;
    e.preventDefault();
    draw();
  });
}
