// SPDX-License-Identifier: MIT
import test from "node:test";
import assert from "node:assert/strict";
import { listsOf, marks, repeats, summary } from "../../../user/console/page/settings.js";

test("what changes, in words", () => {
  const one = (before, after) => ({ before, after });
  assert.deepEqual(summary([one("allow", "deny"), one("allow", "deny"), one("ask", "allow")]), ["2 that passed would be refused", "1 that was asked about would pass"]);
  assert.deepEqual(summary([]), []);
});

test("repeats are one with a count", () => {
  const a = { before: "allow", after: "deny", method: "GET", url: "https://a.test/", session: "u/s", rule: "p.yaml:1" }, b = { ...a, method: "POST" };
  assert.deepEqual(repeats([a, b, { ...a }]), [[a, 2], [b, 1]]);
});

test("errors are stronger than warnings, and of this file alone", () => {
  const at = marks({ errors: [{ file: "/etc/p.yaml", line: 3 }, { file: "/etc/other.yaml", line: 9 }], warnings: [{ file: "p.yaml", line: 3 }, { file: "p.yaml", line: 5 }] }, "p.yaml");
  assert.deepEqual([...at].sort((a, b) => a[0] - b[0]), [[3, "bad"], [5, "warn"]]);
});

test("lists of the files, and the one that comes with netpawl", () => {
  const text = 'version: 1\nlists:  # ours\n  one: [a.example]\n  # a remark\n  two:\n    hosts: [b.example]\n    quiet: true\nrules:\n  - allow: "@llm"\n';
  assert.deepEqual(listsOf({ files: [{ text }, { text: "version: 1\n" }] }), ["llm", "one", "two"]);
  assert.deepEqual(listsOf({ files: [{ text: "version: 1\nrules: []\n" }] }), []);
});
