// SPDX-License-Identifier: MIT
import test from "node:test";
import assert from "node:assert/strict";
import { glob, parseFilter, toggleTerm, tokens } from "../../../user/console/page/filter.js";
import { describe } from "../../../user/console/page/words.js";

const events = {
  github: { seq: 1, time: "2026-01-01T00:00:00Z", kind: "allow", reason: "rule_allows", session: "alice/demo", method: "GET", url: "https://api.github.com/repos/a/b", status: 200, sent: 10, received: 2000, rule: "/etc/policy.yaml:14", wait_us: 5000 },
  llm: { seq: 2, time: "2026-01-01T00:00:01Z", kind: "allow", reason: "rule_allows", session: "alice/demo", method: "POST", url: "https://api.anthropic.com/v1/messages", status: 429, list: "@llm", sent: 5000 },
  refused: { seq: 3, time: "2026-01-01T00:00:02Z", kind: "refuse", reason: "not_in_policy", session: "bob/x", method: "GET", url: "https://evil.example/?q=hello world", status: 403 },
  dns: { seq: 4, time: "2026-01-01T00:00:03Z", kind: "refuse", reason: "not_in_policy", session: "bob/x", lookup: "nowhere.test", port: 53 },
  raw: { seq: 5, time: "2026-01-01T00:00:04Z", kind: "refuse", reason: "protocol", session: "bob/y", hook: "sock_create", address: "198.51.100.10", port: 7, comm: "python3" },
  rise: { seq: 6, time: "2026-01-01T00:00:05Z", kind: "change", reason: "raised", session: "bob/y", level: "SECRET", mode: "NONE", dataset: "keys.pem" },
};
const rows = Object.fromEntries(Object.entries(events).map(([name, event]) => [name, describe(event)]));
const found = (text) => Object.keys(rows).filter((name) => parseFilter(text)(rows[name])).join(" ");

for (const [text, want] of [
  ["", "github llm refused dns raw rise"],
  ["   ", "github llm refused dns raw rise"],
  ["host:github.com", "github"],
  ["host:api.github.com", "github"],
  ["host:ithub.com", ""],
  ["HOST:API.GITHUB.COM", "github"],
  ["host:*.com", "github llm"],
  ["host:198.51.100.10", "raw"],
  ["verdict:refused", "refused dns raw"],
  ["-verdict:refused", "github llm rise"],
  ["-llm", "github refused dns raw rise"],
  ["llm", "llm"],
  ["session:alice/*", "github llm"],
  ["session:alice", ""],
  ["session:alice/*,bob/y", "github llm raw rise"],
  ["kind:dns", "dns"],
  ["kind:socket,rise", "raw rise"],
  ["kind:change", "rise"],
  ["list:llm", "llm"],
  ["list:@llm", "llm"],
  ["url:repos", "github"],
  ["url:repos*", ""],
  ["address:198.51.100.10", "raw"],
  ["status:200", "github"],
  ["status:4xx", "llm refused"],
  ["status:>=400", "llm refused"],
  ["status:<400", "github"],
  ["sent:>1k", "llm"],
  ["port:53", "dns"],
  ["ms:>4", "github"],
  ["program:python*", "raw"],
  ["rule:policy.yaml:14", "github"],
  ["reason:not_in_policy verdict:refused", "refused dns"],
  ["github", "github"],
  ["GITHUB -status:200", ""],
  ['"hello world"', "refused"],
  ['-"hello world" session:bob/x', "dns"],
  ["https://evil.example/", "refused"],
  ["host:github.com verdict:refused -llm session:alice/*", ""],
  ["level:secret", "rise"],
]) test(`filter ${text || "(empty)"}`, () => assert.equal(found(text), want));

for (const [text, want] of [
  ["hots:github.com", /there is no 'hots:'/],
  ["host:", /has no value/],
  ['"open', /quote at 1 has no end/],
  ["status:many", /no number/],
]) test(`filter ${text} is an error`, () => assert.throws(() => parseFilter(text), want));

test("a gap is always shown", () => assert.ok(parseFilter("host:nothing")({ type: "gap" })));
test("terms go in and out", () => {
  assert.equal(toggleTerm("a b", "-llm"), "a b -llm");
  assert.equal(toggleTerm("a -llm b", "-llm"), "a b");
});
test("tokens have their places", () => assert.deepEqual(tokens(' a  b:"c d"'), [{ text: "a", at: 1 }, { text: "b:c d", at: 4 }]));
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
