// SPDX-License-Identifier: MIT
import test from "node:test";
import assert from "node:assert/strict";
import { glob, parseFilter, toggleTerm, words } from "../../../user/console/page/filter.js";

// Which events a filter selects, and what it says of slips: tests/e2e/test_filters.py, beside the others that have this language.

test("a gap is always shown", () => assert.ok(parseFilter("host:nothing")({ type: "gap" })));
test("terms go in and out", () => {
  assert.equal(toggleTerm("a b", "-llm"), "a b -llm");
  assert.equal(toggleTerm("a -llm b", "-llm"), "a b");
});
test("words, as they are read", () => assert.deepEqual(words(' a  -Host:"C d",e'), [{ not: false, key: "", values: ["a"] }, { not: true, key: "host", values: ["c d", "e"] }]));
test("globs do not take for ever", () => {
  const begin = Date.now();
  assert.equal(glob("*a".repeat(50) + "b")("a".repeat(50000)), false);
  assert.ok(Date.now() - begin < 5000);
});
test("globs match whole texts", () => {
  assert.ok(glob("a*c*e")("abcde"));
  assert.ok(!glob("a*a")("a"));
  assert.ok(!glob("ab")("abc"));
  assert.ok(!glob("a.c")("abc"));
});
