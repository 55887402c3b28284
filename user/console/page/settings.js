// SPDX-License-Identifier: MIT
// The live policy: its files and its grants.
import { call } from "./api.js";
import { fill, h } from "./dom.js";
import { moment } from "./words.js";

export function settings(app, box) {
  const page = h("div", { class: "editor" });
  box.append(page);
  Promise.all([call("GET", "/v1/policy"), call("GET", "/v1/policy/source")]).then(([policy, source]) => {
    const code = h("div", { class: "scroll" });
    const show = (file) => fill(code, h("pre", { class: "source", style: { "max-height": "none" } }, file.text.split("\n").map((line, i) => h("div", null, h("span", null, i + 1), h("span", null, line || " ")))));
    fill(page, h("div", { class: "files" }, h("h3", null, "Files"), source.files.map((f) => h("button", { type: "button", onclick: () => show(f) }, f.name)), h("h3", null, "Live"), h("p", { class: "soft" }, `${policy.rules} rules, since ${moment(policy.loaded)}, by ${policy.who}`)), code);
    show(source.files.find((f) => f.name === source.first) ?? source.files[0]);
  }).catch((e) => fill(page, h("p", { class: "empty" }, e.message)));
  return {};
}
