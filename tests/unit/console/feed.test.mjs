// SPDX-License-Identifier: MIT
import test from "node:test";
import assert from "node:assert/strict";
import { Feed } from "../../../user/console/page/feed.js";
import { Rows } from "../../../user/console/page/rows.js";
import { curlOf, ruleFrom } from "../../../user/console/page/words.js";
import { stairs } from "../../../user/console/page/timeline.js";

const event = (seq, more = {}) => ({ seq, time: new Date(1.7e12 + seq).toISOString(), kind: "allow", reason: "rule_allows", url: `http://a.test/${seq}`, method: "GET", ...more });

// A daemon whose history is an array, and whose streams are what the test makes of them.
function world(history, streams) {
  const seen = [], gaps = [], states = [];
  const api = {
    lines: (x) => x,
    async text(path) {
      const q = new URLSearchParams(path.split("?")[1]);
      const limit = Number(q.get("limit"));
      return q.has("after") ? history.filter((e) => e.seq > Number(q.get("after"))).slice(0, limit) : history.slice(-limit);
    },
    async stream(path, signal, take) {
      const next = streams.shift();
      if (!next) { feed.stop(); return; }
      await next(take, signal);
    },
  };
  const feed = new Feed({ api, wait: async () => {}, take: (events, where) => (where === "old" ? seen.unshift(...events) : seen.push(...events)), gap: (a, b) => gaps.push([a, b]), state: (s) => states.push(s) });
  return { feed, seen, gaps, states, numbers: () => seen.map((e) => e.seq) };
}
const range = (a, b) => Array.from({ length: b - a + 1 }, (_, i) => a + i);

test("each event comes once and in order, over a broken stream", async () => {
  const history = range(1, 10).map((n) => event(n));
  const w = world(history, [
    async (take) => { take([]); take([event(10), event(11)]); history.push(event(11), event(12), event(13)); throw new Error("broken"); },
    async (take) => { take([event(12), event(13), event(14)]); history.push(event(14)); },
  ]);
  await w.feed.run();
  assert.deepEqual(w.numbers(), range(1, 14));
  assert.deepEqual(w.gaps, []);
  assert.ok(w.states.includes("lost"));
});

test("a long absence is made up for page by page", async () => {
  const history = range(1, 5).map((n) => event(n));
  const w = world(history, [async () => { history.push(...range(6, 5000).map((n) => event(n))); throw new Error("away"); }, async () => {}]);
  await w.feed.run();
  assert.deepEqual(w.numbers(), range(1, 5000));
});

test("what the stream skipped is fetched", async () => {
  const history = range(1, 3).map((n) => event(n));
  const w = world(history, [
    async (take, signal) => { take([event(4)]); history.push(...range(4, 9).map((n) => event(n))); take([{ reason: "lost", message: "5 events were skipped" }]); assert.ok(signal.aborted); },
    async (take) => { take([event(10)]); },
  ]);
  await w.feed.run();
  assert.deepEqual(w.numbers(), range(1, 10));
  assert.deepEqual(w.gaps, []);
});

test("what is not to be had is a gap", async () => {
  const history = [event(1), event(2), event(7)];
  const w = world(history, [async (take) => { take([event(9)]); }]);
  await w.feed.run();
  assert.deepEqual(w.numbers(), [1, 2, 7, 9]);
  assert.deepEqual(w.gaps, [[3, 6], [8, 8]]);
});

test("older pages", async () => {
  const w = world(range(1, 2500).map((n) => event(n)), []);
  await w.feed.first();
  assert.equal(w.seen[0].seq, 1501);
  assert.equal(await w.feed.older(), true);
  assert.equal(await w.feed.older(), false);
  assert.deepEqual(w.numbers(), range(1, 2500));
});

test("who is logged out does not try again", async () => {
  const w = world([], [async () => { throw Object.assign(new Error("out"), { status: 401 }); }]);
  await w.feed.run();
  assert.equal(w.states.at(-1), "out");
});

test("repeats are counted, and come up again", () => {
  const rows = new Rows();
  const same = (seq) => event(seq, { url: "http://same.test/", sent: 5 });
  assert.deepEqual(rows.add([same(1), event(2), same(3)]).fresh.map((r) => r.seq), [2, 1], "in the order of the rows");
  assert.deepEqual(rows.all.map((r) => [r.seq, r.count]), [[2, 1], [1, 2]]);
  assert.equal(rows.all[1].sent, 10);
  const { fresh, moved } = rows.add([same(4), event(5)]);
  assert.deepEqual([fresh.length, moved.length], [1, 1]);
  assert.equal(rows.counts.requests, 5);
  rows.add([event(6, { kind: "change", reason: "raised", level: "SECRET" }), event(7, { kind: "change", reason: "raised", level: "SECRET" })]);
  assert.equal(rows.all.length, 5, "rises never");
});

test("rows are bounded", () => {
  const rows = new Rows(1000);
  for (let i = 0; i < 50; i++) rows.add(range(i * 100 + 1, i * 100 + 100).map((n) => event(n)));
  assert.ok(rows.all.length <= 1100);
  assert.equal(rows.all.at(-1).seq, 5000);
  assert.equal(rows.counts.requests, 5000);
});

test("curl: nothing that a sandbox chose is a word of its own", () => {
  const line = curlOf({ method: "PO'ST", url: "http://x/'; rm -rf / #", request_headers: "x-a: it's\ncontent-length: 4\n", request_body: "a'b" });
  assert.equal(line, `curl -g -X 'PO'\\''ST' -H 'x-a: it'\\''s' --data-raw 'a'\\''b' 'http://x/'\\''; rm -rf / #'`);
  // Neither a file of whoever pastes it, nor several requests.
  assert.equal(curlOf({ method: "GET", url: "http://x/{a,b}[1-9]", request_headers: "@/etc/passwd: x\n@x\nfine: yes\n", request_body: "@/etc/passwd" }), "curl -g -H 'fine: yes' --data-raw '@/etc/passwd' 'http://x/{a,b}[1-9]'");
  assert.equal(curlOf({ method: "POST", url: "http://x/", request_base64: "AAH/" }), "echo 'AAH/' | base64 -d | curl -g -X 'POST' --data-binary @- 'http://x/'");
});

test("a rule is as narrow as what was seen", () => {
  const { yaml, test: line } = ruleFrom({ method: "POST", url: "https://api.x.test:8443/v1/a?b=c", level: "INTERNAL" });
  assert.equal(yaml, '  - allow: api.x.test:8443\n    methods: [POST]\n    paths: ["/v1/a"]\n');
  assert.equal(line, "at INTERNAL\nPOST https://api.x.test:8443/v1/a?b=c -> allow\n");
  assert.equal(ruleFrom({ address: "198.51.100.1", port: 5432 }).yaml, "  - allow: 198.51.100.1:5432\n");
  for (const path of ["/**", "/a/*/b", "/%2A%2a"]) {
    const made = ruleFrom({ method: "GET", url: "https://x.test" + path });
    assert.ok(!made.yaml && /star/.test(made.problem), path);
  }
  for (const wide of [{ lookup: "*.com" }, { lookup: "**" }, { lookup: "a.test #" }, { method: "*", url: "https://x.test/" }, { method: "GET#", url: "https://x.test/" }]) {
    const made = ruleFrom(wide);
    assert.ok(!made.yaml && made.problem, JSON.stringify(wide));
  }
  assert.match(ruleFrom({ method: "GET", url: "https://[2001:db8::1]/" }).yaml, /allow: "\[2001:db8::1\]"/);
  assert.match(ruleFrom({ method: "VERSION-CONTROL", url: "https://a_b.x-y.test/" }).yaml, /allow: a_b.x-y.test/);
});

test("the staircase only rises", () => {
  const session = { session: "a/b", created: "2026-01-01T00:00:00Z", level: "SECRET" };
  const at = (s, reason, level) => ({ seq: s, time: `2026-01-01T00:00:${String(s).padStart(2, "0")}Z`, reason, level, kind: "change" });
  assert.deepEqual(stairs(session, [at(0, "session_created", "PUBLIC"), at(5, "raised", "CONFIDENTIAL"), at(6, "raised", "CONFIDENTIAL"), at(9, "raised", "SECRET")]).map((s) => s.level), ["PUBLIC", "CONFIDENTIAL", "SECRET"]);
  assert.deepEqual(stairs(session, []).map((s) => s.level), ["SECRET"]);
});
