# SPDX-License-Identifier: MIT
"""Rules that ask a person: what is held, how it is answered, and what ends it."""
import contextlib
import json
import os
import subprocess
import sys
import threading

import pytest

from lib import base
from lib.api import Failure
from lib.asked import Asked

LEVELS = "levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}\n"
RULES = """rules:
  - deny: bad.origin.test
  - deny: never.origin.test
    paths: ["/secret/**"]
  - allow: open.origin.test
  - ask: pinned.origin.test
    inspect: false
  - ask: tcp.origin.test:9000
  - ask: write.origin.test
    methods: POST
  - allow: write.origin.test
  - ask: header.origin.test
    headers: [x-purpose]
  - deny: header.origin.test
  - ask: ["**.origin.test", origin.test]
"""
HELD = "approval: {hold: 2m, timeout: 15m}\n"


def policy(head=HELD, rules=RULES):
    return "version: 1\n" + LEVELS + head + rules


class Net(Asked):
    def get(self, session, *words, seconds=110, **kw):
        return self.spawn("curl", "-sS", "-m", str(seconds), "-w", "\n%{http_code}", *words, session=session,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)

    def asked(self, session, count=1, waiting=None):
        """When so many wait for a person, and (waiting) as many clients for the first of them."""
        def look():
            got = self.questions(session)
            return got if len(got) >= count and (waiting is None or got[0]["waiting"] == waiting) else None

        got = base.eventually(look, 10)
        assert got, self.questions(session, "void") or self.daemon.text()[-2000:]
        return got

    def rewrite(self, text):
        new = self.policy.with_suffix(".new")
        new.write_text(text + base.PERMITS)
        os.replace(new, self.policy)
        return self.api.ok("POST", "/v1/policy/reload", {})


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack, policy=policy())


def done(p, timeout=180):
    """(body, status) of a curl."""
    out, err = p.communicate(timeout=timeout)
    body, _, code = out.rpartition("\n")
    return body, int(code or 0), err


VERSIONS = pytest.mark.parametrize("version", ["--http1.1", "--http2"])


@VERSIONS
def test_a_request_waits_and_goes_on_when_it_is_allowed(net, version):
    session = net.fresh()
    p = net.get(session, version, "https://host.origin.test/a?b=c", "-d", "hello")
    q = net.asked(session, waiting=1)[0]
    assert (q["session"], q["host"], q["port"], q["method"], q["kind"]) == (session, "host.origin.test", 443, "POST", "write")
    assert q["url"] == "https://host.origin.test/a?b=c" and q["body"] == 5 and q["level"] == "INTERNAL"
    assert q["rule"].endswith("/policy.yaml:18") and q["state"] == "pending" and not q["answer"]
    assert p.poll() is None
    debug = net.api.ok("GET", f"/v1/debug?session={session}")
    assert debug["questions"] == [{"question": q["question"], "session": session, "state": "pending", "answer": None, "waiting": 1}]
    assert [e["state"] for i in debug["inspectors"] for e in i["exchanges"]] == ["held"]
    net.answer(q, "once", reason="for the test")
    body, code, err = done(p)
    assert code == 200 and json.loads(body)["text"] == "hello", (body, err)
    after = net.api.ok("GET", f"/v1/questions/{q['question']}")
    assert (after["state"], after["answer"], after["reason"]) == ("allowed", "once", "for the test") and after["over"]
    # once is once: the next is asked about anew
    p = net.get(session, version, "https://host.origin.test/a?b=c", "-d", "hello")
    again = net.asked(session, waiting=1)[0]
    assert again["question"] > q["question"] and again["before"] == {"allowed": 1, "denied": 0}
    net.answer(again, "deny", reason="not twice")
    body, code, err = done(p)
    refusal = json.loads(body)
    assert code == 403 and refusal["reason"] == "answer_denies" and refusal["question"] == again["question"]
    assert "not twice" in refusal["message"]


@VERSIONS
def test_it_shows_who_asks_and_what(net, version):
    """The process as the host counts it, headers without secrets; of the body nothing, for the rule does not capture."""
    session = net.fresh()
    p = net.get(session, version, "https://shown.origin.test/a", "-d", "hello", "-H", "X-Word: w", "-H", "Authorization: Bearer s3cret",
                "-H", "Cookie: s=s3cret", "-H", "X-Api-Key: s3cret", "-H", "X-Long: " + "v" * 500)
    q = net.asked(session, waiting=1)[0]
    assert q["comm"] == "curl" and q["program"].endswith("/curl") and os.path.basename(os.readlink(f"/proc/{q['pid']}/exe")) == "curl"
    headers = dict(q["headers"])
    assert headers["x-word"] == "w" and headers["x-long"] == "v" * 124 + "..."
    assert [headers[k] for k in ("authorization", "cookie", "x-api-key")] == ["(redacted)"] * 3 and "s3cret" not in json.dumps(q)
    assert q["body_start"] is None and q["body"] == 5
    told = net.daemon.cli("questions", session).stdout
    assert f"by curl, pid {q['pid']} (" in told and "x-word: w" in told and "s3cret" not in told, told
    net.answer(q, "deny")
    assert done(p)[1] == 403
    assert net.api.wait_events(lambda got: any(e.get("url") and e.get("pid") == q["pid"] and e["reason"] == "answer_denies" for e in got),
                               session=session)


CAPTURES = policy(rules="rules:\n  - ask: ['**.origin.test']\n    capture: 4096\n")


@VERSIONS
def test_a_rule_that_captures_shows_how_the_body_begins(net, version):
    net.rewrite(CAPTURES)
    try:
        session = net.fresh()
        body = "line one\n\x1b[31m" + "x" * 500
        p = net.get(session, version, "https://shown.origin.test/a", "--data-binary", body)
        q = net.asked(session, waiting=1)[0]
        assert q["body_start"] == ("line one ?[31m" + "x" * 500)[:256] and q["body"] == len(body)
        net.answer(q, "host")
        got, code, err = done(p)
        assert code == 200 and json.loads(got)["text"] == body[:200] and json.loads(got)["body"] == len(body), (got, err)
        # a client that waits to be told to go on, and one that sends a few bytes and no more: it is asked all the same
        p = net.get(session, version, "https://other.origin.test/a", "-H", "Expect: 100-continue", "-d", "short")
        q = net.asked(session, waiting=1)[0]
        assert q["body_start"] == "short"
        net.answer(q, "once")
        assert done(p)[1] == 200
        slow = net.spawn("sh", "-c", "(printf begin; sleep 300) | curl -sS -m 110 -T - https://slow.origin.test/a", session=session,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        q = net.asked(session, waiting=1)[0]
        assert q["body_start"] == "begin" and q["body"] is None
        net.answer(q, "deny")
        slow.kill()
        slow.wait()
        # random bytes, as a person would call them
        p = net.get(session, version, "https://noise.origin.test/a", "--data-binary", f"@{net.binary()}")
        q = net.asked(session, waiting=1)[0]
        assert any("compressed, encrypted or encoded" in w for w in q["warnings"]), q
        net.answer(q, "deny")
        assert done(p)[1] == 403
    finally:
        net.rewrite(policy())


def test_an_answer_for_the_host_covers_its_kind_and_nothing_else(net):
    session = net.fresh()
    p = net.get(session, "https://kind.origin.test/1")
    q = net.asked(session)[0]
    assert q["kind"] == "read"
    net.answer(q, "host")
    assert done(p)[1] == 200
    assert done(net.get(session, "--http2", "https://kind.origin.test/2"))[1] == 200, "it holds for the next"
    assert not net.questions(session)
    p, other = net.get(session, "https://kind.origin.test/3", "-d", "x"), net.get(session, "https://another.origin.test/")
    writes = net.asked(session, 2)
    assert {(w["host"], w["kind"]) for w in writes} == {("kind.origin.test", "write"), ("another.origin.test", "read")}
    stranger = net.fresh()
    alien = net.get(stranger, "https://kind.origin.test/1")
    net.answer(net.asked(stranger)[0], "deny")
    assert done(alien)[1] == 403, "an answer is its session's"
    for w in writes:
        net.answer(w, "deny")
    assert done(p)[1] == 403 and done(other)[1] == 403
    reasons = {e["reason"] for e in net.api.events(session=session) if e.get("url")}
    assert {"approved", "answer_denies", "question_asked", "question_answered"} <= reasons, reasons


@VERSIONS
def test_a_body_writes_whatever_the_method(net, version):
    """What a person has allowed to be read from is not written to by a GET: its body, of a known length or not, leaves all the same."""
    session = net.fresh()
    p = net.get(session, version, "https://body.origin.test/")
    net.answer(net.asked(session)[0], "host")
    assert done(p)[1] == 200
    for more in (["-d", "secret"], ["-H", "Transfer-Encoding: chunked", "-d", "secret"], ["-T", str(net.binary())]):
        p = net.get(session, version, "-X", "GET", *more, "https://body.origin.test/")
        q = net.asked(session)[0]
        assert (q["kind"], q["method"]) == ("write", "GET"), q
        net.api.ok("DELETE", f"/v1/sessions/{session}")
        assert done(p)[1] != 200
        session = net.fresh()
        p = net.get(session, version, "https://body.origin.test/")
        net.answer(net.asked(session)[0], "host")
        assert done(p)[1] == 200


def test_explain_knows_questions_and_answers(net):
    """What would be asked, of whom, what was answered, and whether to try again; and nobody is asked by that."""
    session = net.fresh()

    def explain(*words):
        plain = net.daemon.cli("policy", "explain", "--live", session, *words, check=0).stdout
        got = json.loads(net.daemon.cli("--json", "policy", "explain", "--live", session, *words, check=0).stdout)
        assert got["asks"] is None or f"  now     {got['asks']['now']}\n" in plain, plain
        return got["asks"]

    url = "https://explained.origin.test/a"
    got = explain("--url", url)
    assert got["whom"].startswith("a person: root") and got["about"] == "reading from explained.origin.test:443, in TLS"
    assert got["timeout_ms"] == 120000 and "neither a question nor an answer" in got["now"] and got["question"] is None
    assert not net.questions(session) and explain("--url", "https://open.origin.test/") is None
    p = net.get(session, url)
    q = net.asked(session)[0]
    got = explain("--url", url)
    assert got["question"]["question"] == q["question"] and got["now"] == f"question {q['question']} waits for a person: it joins that"
    net.answer(q, "host")
    assert done(p)[1] == 200
    assert explain("--url", "https://explained.origin.test/other")["now"].startswith(f"question {q['question']} was answered host by uid 0 ")
    for other in (["--method", "POST", "--url", url], ["--url", url, "--body", "5"], ["--url", "http://explained.origin.test/a"]):
        assert explain(*other)["question"] is None, other
    # denied; once; of a connection
    p = net.get(session, url, "-d", "x")
    q = net.asked(session)[0]
    net.answer(q, "deny")
    assert done(p)[1] == 403
    got = explain("--method", "POST", "--url", url)
    assert "will not help" in got["now"] and got["question"]["state"] == "denied"
    assert net.api.ok("POST", f"/v1/sessions/{session}/explain", {"method": "POST", "url": url})["retry"] is False
    p = net.get(session, "https://once.origin.test/x")
    q = net.asked(session, waiting=1)[0]
    p.kill()
    p.communicate()
    assert base.eventually(lambda: net.questions(session)[0]["waiting"] == 0, 10)
    net.answer(q, "once")
    assert f"question {q['question']} was answered once" in explain("--url", "https://once.origin.test/x")["now"]
    assert explain("--url", "https://once.origin.test/y")["question"] is None
    assert explain("--connect", "tcp.origin.test:9000")["about"] == "a connection to tcp.origin.test:9000"
    # by what it was answered is over with a rise
    net.api.escalate(session, "CONFIDENTIAL")
    assert explain("--url", url)["question"] is None


def test_a_deny_is_never_overridden(net):
    session = net.fresh()
    p = net.get(session, "https://never.origin.test/a")
    net.answer(net.asked(session)[0], "host")
    assert done(p)[1] == 200
    body, code, _ = done(net.get(session, "https://never.origin.test/secret/a"))
    assert code == 403 and json.loads(body)["reason"] == "rule_denies"
    body, code, _ = done(net.get(session, "--http1.1", "http://bad.origin.test/"))
    assert not net.questions(session) and code != 200


def test_all_that_wait_for_the_same_share_one_question(net):
    session = net.fresh()
    ps = [net.get(session, f"https://shared.origin.test/{i}") for i in range(3)]
    q = net.asked(session, waiting=3)
    assert len(q) == 1
    net.answer(q[0], "host", **{"for": "1h"})
    assert [done(p)[1] for p in ps] == [200] * 3
    assert net.api.ok("GET", f"/v1/questions/{q[0]['question']}")["until"]


def test_once_is_for_one_of_them(net):
    session = net.fresh()
    ps = [net.get(session, f"https://single.origin.test/{i}") for i in range(2)]
    q = net.asked(session, waiting=2)[0]
    net.answer(q, "once")
    left = net.asked(session, waiting=1)[0]
    assert left["question"] > q["question"]
    net.answer(left, "deny")
    assert sorted(done(p)[1] for p in ps) == [200, 403]


def test_a_stream_waits_and_its_connection_goes_on(net):
    session = net.fresh()
    p = net.get(session, "--http2", "-Z", "https://write.origin.test/asked", "-d", "x", "-o", "/dev/null",
                "--next", "-sS", "--http2", "-w", "%{http_code} free %{num_connects}\n", "https://write.origin.test/free",
                "-o", "/dev/null")
    q = net.asked(session, waiting=1)[0]
    assert base.eventually(lambda: net.events(lambda e: e["url"].endswith("/free"), count=0) or any(
        e.get("url", "").endswith("/free") and e["reason"] == "rule_allows" for e in net.api.events(session=session)), 10)
    assert p.poll() is None
    net.answer(q, "once")
    out, err = p.communicate(timeout=180)
    assert "200 free" in out and out.count("200") == 2, (out, err)


# -- the client's time, and the question's --------------------------------------------------------------

@pytest.fixture
def short(net):
    net.rewrite(policy("approval: {hold: 400ms, timeout: 5m}\n"))
    yield net
    net.rewrite(policy())


@VERSIONS
def test_who_is_refused_after_a_while_tries_again_and_meets_the_answer(short, version):
    net, session = short, short.fresh()
    body, code, _ = done(net.get(session, version, "-D", "-", "https://later.origin.test/"))
    q = net.asked(session, waiting=0)[0]
    refusal = json.loads(body[body.index("{"):])
    assert code == 403 and refusal["reason"] == "needs_approval" and refusal["question"] == q["question"]
    assert "retry-after: 10" in body.lower() and refusal["retry_after"] == 10
    again = done(net.get(session, version, "https://later.origin.test/"))
    assert json.loads(again[0])["question"] == q["question"], "it attaches to the question"
    net.answer(q, "once")
    assert done(net.get(session, version, "https://later.origin.test/"))[1] == 200, "its answer is honoured"
    body, code, _ = done(net.get(session, version, "https://later.origin.test/"))
    assert code == 403 and json.loads(body)["question"] > q["question"], "once"
    told = net.daemon.cli("why", session).stdout
    assert "needs_approval" in told or "a person" in told, told


def test_why_tells_what_was_asked_and_whether_to_try_again(net):
    session = net.fresh()
    ps = {host: net.get(session, f"https://{host}.origin.test/") for host in ("waits", "no", "yes")}
    asked = {q["host"].split(".")[0]: q for q in net.asked(session, 3)}
    net.answer(asked["no"], "deny", reason="use the mirror")
    net.answer(asked["yes"], "host")
    assert done(ps["no"])[1] == 403 and done(ps["yes"])[1] == 200
    why = net.api.ok("GET", f"/v1/sessions/{session}/why")
    told = {q["question"]: (q["state"], q["retry"]) for q in why["questions"]}
    assert told == {asked["waits"]["question"]: ("pending", True), asked["no"]["question"]: ("denied", False),
                    asked["yes"]["question"]: ("allowed", True)}
    said = net.daemon.cli("why", session).stdout
    assert f"Question {asked['waits']['question']} (GET https://waits.origin.test/) waits for a person; trying again joins it, until " in said, said
    assert "was denied; trying again will not help: use the mirror." in said and "was allowed: try again." in said
    net.api.escalate(session, "CONFIDENTIAL")
    anew = net.asked(session)[0]
    said = net.daemon.cli("why", session).stdout
    assert "is void, for the level or the policy is another by now" in said and "the answer holds no more; trying again asks anew" in said
    net.answer(anew, "deny")
    assert done(ps["waits"])[1] == 403


def test_a_client_that_hangs_up_leaves_the_question(net):
    session = net.fresh()
    p = net.get(session, "https://hangs.origin.test/")
    q = net.asked(session, waiting=1)[0]
    p.terminate()
    assert done(p)[1] == 0
    assert net.asked(session, waiting=0)[0]["question"] == q["question"]
    net.answer(q, "once")
    assert done(net.get(session, "https://hangs.origin.test/"))[1] == 200


def test_what_nobody_answers_expires(net):
    session = net.fresh()
    net.rewrite(policy("approval: {hold: 2m, timeout: 1s}\n"))
    try:
        body, code, _ = done(net.get(session, "https://expires.origin.test/"))
        assert code == 403 and "nobody answered in time" in json.loads(body)["message"]
        q = net.questions(session, "expired")[0]
        with pytest.raises(Failure) as e:
            net.answer(q, "host")
        assert e.value.status == 409 and e.value.body["error"] == "question_over"
    finally:
        net.rewrite(policy())


OPEN = """import socket
s = socket.create_connection(('tcp.origin.test', 9000), 110)
s.settimeout(None)
s.sendall(b'word')
assert s.recv(9)
print('open', flush=True)
try:
    print(s.recv(9))
except OSError as e:
    print(e)
"""


def opened(net, session):
    """(a connection that stays open, a request whose response does not come), each under an answer for the host."""
    tcp = net.spawn(base.PYTHON, "-c", OPEN, session=session, stdout=subprocess.PIPE, text=True)
    http = net.get(session, "https://open-end.origin.test/hold")
    for q in net.asked(session, 2):
        net.answer(q, "host", **({"for": "8s"} if session.endswith("brief") else {}))
    assert tcp.stdout.readline() == "open\n"
    return tcp, http


def test_the_end_of_an_answer_cuts_what_it_opened(net):
    session = net.fresh() + "-brief"
    net.api.create(session, "INTERNAL")
    tcp, http = opened(net, session)
    body, code, _ = done(http)
    assert code == 403 and json.loads(body)["reason"] == "ended_by_expiry"
    assert "reset" in tcp.communicate(timeout=120)[0]
    p = net.get(session, "https://open-end.origin.test/")
    net.answer(net.asked(session)[0], "deny")
    assert done(p)[1] == 403, "it is asked about anew"


# -- what changes meanwhile ------------------------------------------------------------------------------

def test_a_rise_voids_an_answer_and_cuts_what_it_opened(net):
    session = net.fresh()
    tcp, http = opened(net, session)
    before = net.questions(session, "allowed")
    assert net.api.escalate(session, "CONFIDENTIAL")["cut"] >= 2
    body, code, _ = done(http)
    assert code == 403 and json.loads(body)["reason"] == "ended_by_raise"
    assert "reset" in tcp.communicate(timeout=120)[0]
    assert all(q["over"] for q in net.questions(session, "allowed"))
    p = net.get(session, "https://open-end.origin.test/")
    anew = net.asked(session)[0]
    assert anew["question"] > before[0]["question"] and anew["level"] == "CONFIDENTIAL"
    net.answer(anew, "once")
    assert done(p)[1] == 200


def test_a_rise_while_it_is_held_asks_anew(net):
    session = net.fresh()
    p = net.get(session, "https://held.origin.test/")
    q = net.asked(session, waiting=1)[0]
    net.api.escalate(session, "CONFIDENTIAL")
    anew = net.asked(session, waiting=1)[0]
    assert anew["question"] > q["question"] and net.questions(session, "void")[0]["question"] == q["question"]
    with pytest.raises(Failure) as e:
        net.answer(q, "host")
    assert e.value.body["error"] == "question_over"
    net.answer(anew, "once")
    assert done(p)[1] == 200


def test_a_rise_to_none_ends_what_is_held(net):
    session = net.fresh()
    p = net.get(session, "https://none.origin.test/")
    net.asked(session, waiting=1)
    net.api.escalate(session, "SECRET")
    body, code, err = done(p)
    assert code in (0, 403) and not net.questions(session)


@pytest.mark.parametrize("action, status", [("allow", 200), ("deny", 403)])
def test_a_reload_that_does_not_ask_any_more(net, action, status):
    session = net.fresh()
    p = net.get(session, "https://reload.origin.test/")
    q = net.asked(session, waiting=1)[0]
    net.rewrite(policy(rules=RULES.replace("rules:\n", f"rules:\n  - {action}: reload.origin.test\n")))
    try:
        assert done(p)[1] == status
        assert net.questions(session, "void")[0]["question"] == q["question"]
    finally:
        net.rewrite(policy())


def test_an_answer_to_what_was_shown_before_a_reload_is_refused(net):
    session = net.fresh()
    p = net.get(session, "https://shown.origin.test/")
    q = net.asked(session, waiting=1)[0]
    net.rewrite(policy() + "# another\n")
    try:
        with pytest.raises(Failure) as e:
            net.answer(q, "host", policy=q["policy"], generation=q["generation"])
        assert e.value.status == 409 and e.value.body["error"] == "question_changed"
        same = net.asked(session, waiting=1)[0]
        assert same["question"] == q["question"] and same["policy"] != q["policy"], "it waits on"
        net.answer(same, "once", policy=same["policy"], generation=same["generation"])
        assert done(p)[1] == 200
    finally:
        net.rewrite(policy())


def test_a_reload_that_still_asks_because_of_a_header(net):
    session = net.fresh()
    assert done(net.get(session, "https://header.origin.test/"))[1] == 403
    p = net.get(session, "-H", "X-Purpose: billing", "https://header.origin.test/")
    q = net.asked(session, waiting=1)[0]
    net.rewrite(policy() + "# another\n")
    try:
        same = net.asked(session, waiting=1)[0]
        assert same["question"] == q["question"] and same["policy"] != q["policy"], "it waits on"
        net.answer(same, "host")
        assert done(p)[1] == 200
        net.rewrite(policy())
        assert done(net.get(session, "-H", "x-purpose: x", "https://header.origin.test/again"))[1] == 200, "the answer holds"
    finally:
        net.rewrite(policy())


def test_the_end_of_a_session_ends_its_questions(net):
    session = net.fresh()
    p = net.get(session, "https://ends.origin.test/")
    net.asked(session)
    net.api.end(session)
    done(p)
    assert not net.questions(session) and net.questions(session, "void")


def test_a_rule_on_another_line_keeps_its_questions_and_answers(net):
    session = net.fresh()
    held, other = net.get(session, "https://moved.origin.test/"), net.get(session, "https://stays.origin.test/")
    q = next(q for q in net.asked(session, 2) if q["host"] == "stays.origin.test")
    net.answer(q, "host")
    assert done(other)[1] == 200
    net.rewrite("# a line more\n\n" + policy())
    try:
        assert done(net.get(session, "https://stays.origin.test/"))[1] == 200, "the answer holds"
        same = net.asked(session, waiting=1)[0]
        assert same["host"] == "moved.origin.test" and not net.questions(session, "void")
        net.answer(same, "once")
        assert done(held)[1] == 200
    finally:
        net.rewrite(policy())


def test_two_rules_on_one_line_share_no_answer(net):
    session = net.fresh()
    net.rewrite(policy(rules="rules: [{ask: line.origin.test, paths: ['/a']}, {ask: line.origin.test}]\n"))
    try:
        p = net.get(session, "https://line.origin.test/a")
        net.answer(net.asked(session, waiting=1)[0], "host")
        assert done(p)[1] == 200
        p = net.get(session, "https://line.origin.test/b")
        net.answer(net.asked(session, waiting=1)[0], "deny")
        assert done(p)[1] == 403
        assert done(net.get(session, "https://line.origin.test/a"))[1] == 200
    finally:
        net.rewrite(policy())


def test_an_answer_is_taken_back_and_what_it_opened_is_cut(net):
    session = net.fresh()
    tcp, http = opened(net, session)
    for q in net.questions(session, "allowed"):
        got = net.daemon.cli("answer", q["question"], "--revoke", "--reason", "enough", check=0)
        assert "taken back by uid 0 pid " in got.stdout
    body, code, _ = done(http)
    assert code == 403 and json.loads(body)["reason"] == "ended_by_expiry"
    assert "reset" in tcp.communicate(timeout=120)[0]
    with pytest.raises(Failure) as e:
        net.api.ok("POST", f"/v1/questions/{q['question']}/revoke", {})
    assert e.value.body["error"] == "question_over"
    p = net.get(session, "https://open-end.origin.test/")
    net.answer(net.asked(session)[0], "deny")
    assert done(p)[1] == 403, "it is asked about anew"
    assert any(e["reason"] == "question_ended" and "taken back: enough" in e["text"] for e in net.api.events(session=session))


# -- connections of which nothing is seen ----------------------------------------------------------------

TALK = "import socket; s = socket.create_connection(('tcp.origin.test', 9000), 110); s.sendall(b'word'); print(s.recv(9))"


def test_tcp_by_name_waits_before_the_dial(net):
    session = net.fresh()
    talk = lambda: net.spawn(base.PYTHON, "-c", TALK, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p = talk()
    q = net.asked(session, waiting=1)[0]
    assert (q["kind"], q["port"], q["url"], q["method"]) == ("connect", 9000, "tcp.origin.test:9000", None)
    net.answer(q, "host")
    assert "word" in p.communicate(timeout=180)[0]
    assert "word" in talk().communicate(timeout=180)[0], "the answer holds"
    other = net.fresh()
    p = net.spawn(base.PYTHON, "-c", TALK, session=other, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    net.answer(net.asked(other, waiting=1)[0], "deny")
    out, err = p.communicate(timeout=180)
    assert "word" not in out and "reset" in err.lower(), err


def test_tls_that_passes_unseen_waits_before_the_dial(net):
    session = net.fresh()
    p = net.get(session, "-k", "https://pinned.origin.test/")
    q = net.asked(session, waiting=1)[0]
    assert q["kind"] == "connect" and q["host"] == "pinned.origin.test"
    net.answer(q, "once")
    assert done(p)[1] == 200


# -- people ----------------------------------------------------------------------------------------------

def test_of_two_who_answer_at_once_one_is_heard(net):
    session = net.fresh()
    for i in range(5):
        p = net.get(session, f"https://race{i}.origin.test/")
        q, said = net.asked(session)[0], []

        def say(answer):
            said.append((answer, *net.api.ask("POST", f"/v1/questions/{q['question']}/answer", {"answer": answer})))

        both = [threading.Thread(target=say, args=(a,)) for a in ("deny", "host")]
        [t.start() for t in both]
        [t.join() for t in both]
        assert sorted(s[1] for s in said) == [200, 409], said
        heard = next(s for s in said if s[1] == 200)[0]
        assert done(p)[1] == {"deny": 403, "host": 200}[heard]
        assert net.api.ok("GET", f"/v1/questions/{q['question']}")["answer"] == heard


def test_why_tells_when_the_level_rose_within_the_mode(net):
    session = net.fresh()
    began = net.api.ok("GET", f"/v1/sessions/{session}/why")["text"]
    assert "at level INTERNAL, network mode PROXIED, since " in began and "it began at this level" in began
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"dataset": "later.csv", "level": "CONFIDENTIAL"})
    told = net.api.ok("GET", f"/v1/sessions/{session}/why")["text"]
    assert "at level CONFIDENTIAL, network mode PROXIED, in that mode since " in told
    assert ", then at level INTERNAL: it began at this level." in told


def test_the_command_line_lists_and_answers(net):
    session = net.fresh()
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"dataset": "plan.csv", "level": "INTERNAL"})
    follow = base.popen([*net.world.enter(), str(base.NETPAWL), "questions", "--follow", session],
                        env=base.env(NETPAWL_SOCKET=str(net.daemon.socket)), stdout=subprocess.PIPE, text=True)
    try:
        p = net.get(session, "https://cli.origin.test/%1b%5b2Jx", "-X", "PUT")
        q = net.asked(session)[0]
        assert f"{q['question']}  pending  {session}  PUT https://cli.origin.test/" in follow.stdout.readline()
    finally:
        base.reap(follow)
    listed = net.daemon.cli("questions", session, check=0).stdout
    assert "cli.origin.test" in listed and "\x1b" not in listed and "the session holds plan.csv" in listed
    got = net.daemon.cli("answer", q["question"], "always")
    assert got.returncode == 1 and "approval: grants:" in got.stderr, got
    got = net.daemon.cli("answer", q["question"], "domain")
    assert got.returncode == 1 and "no domain" in got.stderr, got  # .test is in no list
    got = net.daemon.cli("answer", q["question"], "once", "--for", "5m", "--reason", "why not", check=0)
    assert "answered once by uid 0" in got.stdout
    assert done(p)[1] == 200
    used = net.daemon.cli("questions", "--state", "all", session, check=0).stdout
    assert ": why not\n" in used and "holds until" not in used
    assert net.daemon.cli("answer", q["question"], "deny").returncode == 1
    assert json.loads(net.daemon.cli("questions", "--json", "--state", "allowed", session, check=0).stdout)["questions"]
    assert net.daemon.cli("questions", "--state", "nonsense").returncode == 2


def test_remember_once_grants_nothing_for_longer(net):
    session = net.fresh()
    net.rewrite(policy("approval: {hold: 2m, remember: once}\n"))
    try:
        p = net.get(session, "https://strict.origin.test/")
        q = net.asked(session)[0]
        with pytest.raises(Failure) as e:
            net.answer(q, "host")
        assert e.value.status == 400 and "remember: once" in e.value.body["detail"]
        net.answer(q, "once")
        assert done(p)[1] == 200
    finally:
        net.rewrite(policy())


# -- the daemon's end -------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["kill", "stop"])
def test_questions_outlive_the_daemon_and_nothing_passes_meanwhile(net, how):
    session = net.fresh()
    p = net.get(session, "https://outlives.origin.test/", seconds=10)
    q = net.asked(session, waiting=1)[0]
    granted = net.get(session, "https://granted.origin.test/")
    net.answer(next(g for g in net.asked(session, 2) if g["host"] == "granted.origin.test"), "host")
    assert done(granted)[1] == 200
    net.daemon.restart(how)
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
    assert done(p)[1] in (0, 403)
    back = net.asked(session, waiting=0)[0]
    assert (back["question"], back["url"]) == (q["question"], q["url"])
    assert done(net.get(session, "https://granted.origin.test/"))[1] == 200, "what was granted holds"
    net.answer(back, "once")
    assert done(net.get(session, "https://outlives.origin.test/"))[1] == 200


def test_the_python_client_lists_and_answers(net):
    sys.path.insert(0, str(base.TESTS.parent / "clients/python"))
    import netpawl

    session, client = net.fresh(), netpawl.Client(str(net.daemon.socket))
    p = net.get(session, "https://python.origin.test/")
    net.asked(session)
    for q in client.questions(session):
        assert q["host"] == "python.origin.test" and q.answer("host", reason="a test", for_="1h")["state"] == "allowed"
    assert done(p)[1] == 200 and not list(client.questions(session))
