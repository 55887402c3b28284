// SPDX-License-Identifier: MIT
import test from "node:test";
import assert from "node:assert/strict";
import { marks, summary } from "../../../user/console/page/settings.js";

test("what changes, in words", () => {
  const one = (before, after) => ({ before, after });
  assert.deepEqual(summary([one("allow", "deny"), one("allow", "deny"), one("ask", "allow")]), ["2 that passed would be refused", "1 that was asked about would pass"]);
  assert.deepEqual(summary([]), []);
});

test("errors are stronger than warnings, and of this file alone", () => {
  const at = marks({ errors: [{ file: "/etc/p.yaml", line: 3 }, { file: "/etc/other.yaml", line: 9 }], warnings: [{ file: "p.yaml", line: 3 }, { file: "p.yaml", line: 5 }] }, "p.yaml");
  assert.deepEqual([...at].sort((a, b) => a[0] - b[0]), [[3, "bad"], [5, "warn"]]);
});
