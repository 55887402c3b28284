// SPDX-License-Identifier: MIT
// Elements, made of data. Text is always a text node: nothing that a stranger wrote is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

// Controls, and what hides or turns text around, are shown as what they are: a mark.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function clean(value) {
  return String(value ?? "").replace(ODD, "\ufffd");
}

function make(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : clean(value));
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(clean(c)))));
  return element;
}

export function h(tag, props, ...children) {
  return make(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return make(document.createElementNS(SVG, tag), props, children);
}

export function fill(element, ...children) {
  element.replaceChildren();
  return make(element, null, children);
}

export const $ = (selector) => document.querySelector(selector);

let toastTimer;
export function toast(text, bad = false) {
  const box = $("#toast");
  box.textContent = clean(text);
  box.className = bad ? "toast bad" : "toast";
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.hidden = true; }, bad ? 8000 : 4000);
}

// Asks before something that cannot be taken back. Resolves to true or false.
export function confirmed(title, lines, button) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": "confirm-title" },
      h("h2", { id: "confirm-title" }, title),
      lines.map((line) => (line instanceof Node ? line : h("p", null, line))),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close("") }, "Cancel"),
        h("button", { type: "button", class: "danger", id: "confirm-yes", onclick: () => dialog.close("yes") }, button)));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser does not let the page copy", true);
  }
}

// What a person chose, kept in this browser.
export const kept = {
  get(name, otherwise) {
    try { return JSON.parse(localStorage.getItem("netpawl." + name)) ?? otherwise; } catch { return otherwise; }
  },
  set(name, value) {
    try { localStorage.setItem("netpawl." + name, JSON.stringify(value)); } catch { /* a private window: not kept */ }
  },
};
