# SPDX-License-Identifier: MIT
"""Rules that a program decides about: what it is asked, what its answers do, and what happens when there is none."""
import base64
import contextlib
import json
import os
import subprocess

import pytest

from lib import base
from lib.decided import Decided, done

RULES = """rules:
  - deny: bad.origin.test
  - allow: open.origin.test
  - decide: [tcp.origin.test:9000, body.origin.test:9000]
    by: guard
  - decide: ["**.origin.test", origin.test]
    by: guard
"""
HELD = "approval: {hold: 2m, timeout: 15m}\n"


@pytest.fixture(scope="module", params=["command", "socket"])
def net(request):
    with contextlib.ExitStack() as stack:
        n = Decided(stack, RULES, by=request.param, head=HELD)
        yield n
        assert n.daemon.running() and n.api.health()["inspectors"] == 2


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_it_is_asked_and_its_answer_counts(net, version):
    session = net.fresh()
    body, code = net.fetch(session, version, "https://a.origin.test/allow?", "-d", "hello", "-H", "X-Word: w", "-H", "Authorization: Bearer s3")
    assert code == 200 and body["text"] == "hello", body
    frame = net.wait_frames(session=session)[0]
    assert (frame["type"], frame["host"], frame["port"], frame["kind"], frame["method"]) == ("decide", "a.origin.test", 443, "write", "POST")
    assert frame["url"] == "https://a.origin.test/allow?" and frame["body"] == 5 and frame["level"] == "INTERNAL" and frame["mode"] == "PROXIED"
    assert frame["rule"].endswith("/policy.yaml:11") and frame["sandbox"]
    assert frame["comm"] == "curl" and frame["program"].endswith("/curl") and frame["pid"] > 1
    assert ["x-word", "w"] in frame["headers"] and ["authorization", "(redacted)"] in frame["headers"]
    assert "s3" not in net.frames_file.read_text()
    body, code = net.fetch(session, version, "https://a.origin.test/deny?reason=not+this")
    assert code == 403 and body["reason"] == "decider_denies" and body["decider"] == "guard" and "not this" in body["message"]
    assert "retry_after" not in body and "Trying again will not help" in body["hint"]
    reasons = lambda got: {e["reason"] for e in got if e.get("url")}
    told = net.api.wait_events(lambda got: {"decider_allows", "decider_denies"} <= reasons(got), session=session)
    assert {"decider_allows", "decider_denies"} <= reasons(told), told
    why = net.api.ok("GET", f"/v1/sessions/{session}/why")
    assert "decider_denies" in str(why) and "a program decides when they are tried" in why["text"]


def test_rules_above_it_are_not_its_to_change(net):
    session = net.fresh()
    body, code = net.fetch(session, "https://bad.origin.test/allow")
    assert code != 200 and "decider" not in str(body)
    assert net.fetch(session, "https://open.origin.test/deny")[1] == 200
    assert not net.frames(session=session)


def test_a_connection_that_nobody_sees_into_is_decided_about_before_the_dial(net):
    session = net.fresh()
    talk = "import socket; s = socket.create_connection(('tcp.origin.test', 9000), 100); s.sendall(b'word'); s.settimeout(100); print(s.recv(9))"
    p = net.spawn(base.PYTHON, "-c", talk, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = p.communicate(timeout=180)
    assert out.strip(), err
    frame = net.wait_frames(session=session)[0]
    assert (frame["method"], frame["url"], frame["kind"], frame["headers"]) == (None, "tcp.origin.test:9000", "write", [])
    p = net.spawn(base.PYTHON, "-c", talk.replace("tcp.", "body."), session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = p.communicate(timeout=180)
    assert out.strip() and shown(net, session) == [(b"", False)], (out, err)


def test_many_are_asked_at_once_and_answered_in_any_order(net):
    session = net.fresh()
    held = [net.get(session, f"https://h{i}.origin.test/hang") for i in range(8)]
    net.wait_frames(8, session=session)
    assert net.decider()["waiting"] == 8 and all(p.poll() is None for p in held)
    assert net.fetch(session, "https://b.origin.test/allow")[1] == 200, "it does not stand in a line"
    assert net.fetch(session, "https://b.origin.test/release")[1] == 200
    assert [done(p)[1] for p in held] == [200] * 8


def test_a_client_that_hangs_up_takes_it_back(net):
    session = net.fresh()
    p = net.get(session, "https://c.origin.test/hang")
    net.wait_frames(session=session)
    base.reap(p)
    assert base.eventually(lambda: net.decider()["waiting"] == 0, 15)
    id_ = net.frames(session=session)[0]["id"]
    net.wait_frames(type="withdrawn", id=id_)
    assert net.fetch(session, "https://c.origin.test/release")[1] == 200, "an answer that comes late is no surprise"
    net.settled()


def shown(net, session):
    """What the decider was shown of the bodies of a session, in turn: (bytes, are they all)."""
    ids = [f["id"] for f in net.frames(session=session)]
    return [(base64.b64decode(f["base64"]), f["whole"]) for f in net.frames(type="body") if f["id"] in ids]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_it_may_see_how_a_body_begins(net, version):
    session, long = net.fresh(), "0123456789abcdef" * 4096
    body, code = net.fetch(session, version, "https://o.origin.test/body", "-d", "hello")
    assert code == 200 and body["text"] == "hello", body
    assert shown(net, session) == [(b"hello", True)]
    body, code = net.fetch(session, version, "https://o.origin.test/body?max=7", "-d", "my secret")
    assert code == 200, "it did not see so far"
    assert shown(net, session)[1] == (b"my secr", False)
    body, code = net.fetch(session, version, "https://o.origin.test/body", "-d", "my secret")
    assert code == 403 and body["reason"] == "decider_denies" and "a secret" in body["message"]
    big = net.decider_dir / "big"
    big.write_text(long)
    body, code = net.fetch(session, version, "https://o.origin.test/body", "--data-binary", f"@{big}")
    assert code == 200 and body["body"] == len(long) and body["text"] == long[:200], "all of it goes on, and once"
    assert shown(net, session)[3] == (long[:4096].encode(), False)
    words = ["-H", "Transfer-Encoding: chunked"] if version == "--http1.1" else []
    body, code = net.fetch(session, version, "https://o.origin.test/body", *words, "-H", "Content-Length:", "-d", "of unknown length")
    assert code == 200 and shown(net, session)[4] == (b"of unknown length", True), shown(net, session)[4]
    assert net.fetch(session, version, "https://o.origin.test/body")[1] == 200
    assert shown(net, session)[5] == (b"", True), "there is none"
    words = ["-H", "Expect: 100-continue", "--expect100-timeout", "60", "-d", "told to go on"]
    body, code = net.fetch(session, version, "https://o.origin.test/body", *words)
    assert code == 200 and body["text"] == "told to go on" and shown(net, session)[6] == (b"told to go on", True)
    net.settled()


def test_a_body_that_comes_slowly_is_shown_as_far_as_it_came(net):
    session = net.fresh()
    talk = """import socket, sys
s = socket.create_connection(("p.origin.test", 80), 100)
s.sendall(b"POST /body HTTP/1.1\\r\\nhost: p.origin.test\\r\\ncontent-length: 20\\r\\n\\r\\nthe first")
sys.stdin.readline()
s.sendall(b" and the s")
sys.stdin.readline()
s.sendall(b"\\n")
print(s.recv(12))
"""
    p = base.popen(net.argv(base.PYTHON, "-c", talk, session=session), env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE, text=True)
    assert base.eventually(lambda: shown(net, session), 30), p.poll()
    assert shown(net, session) == [(b"the first", False)]
    out, err = p.communicate("\n\n", timeout=180)
    assert "HTTP/1.1 200" in out, (out, err)


def test_it_need_not_wait_for_what_it_asked_for(net):
    session = net.fresh()
    p = net.get(session, "https://q.origin.test/body-unseen", "-d", "hello")
    body, code = done(p)
    assert code == 403 and "unseen" in body["message"]
    net.settled()


def test_it_hands_a_question_on_to_a_person(net):
    session = net.fresh()
    p = net.get(session, "https://d.origin.test/ask")
    q = base.eventually(lambda: net.questions(session), 15)[0]
    assert q["host"] == "d.origin.test" and q["rule"].endswith("/policy.yaml:11")
    got = net.daemon.cli("answer", q["question"], "always")
    assert got.returncode == 1 and "a decider has a person asked" in got.stderr, got
    net.answer(q, "host")
    assert done(p)[1] == 200
    assert net.fetch(session, "https://d.origin.test/ask")[1] == 200, "a person has answered for what it hands over"
    assert not net.questions(session)
    body, code = net.fetch(session, "https://d.origin.test/deny")
    assert code == 403 and body["reason"] == "decider_denies", "and for nothing else: what it denies stays denied"
    body, code = net.fetch(session, "https://e.origin.test/deny")
    assert code == 403 and body["reason"] == "decider_denies"


def test_it_raises_and_the_request_is_refused(net):
    session = net.fresh()
    body, code = net.fetch(session, "https://f.origin.test/raise?level=CONFIDENTIAL&reason=looks+like+customers")
    assert code in (403, 0) and code != 200, body
    row = net.api.ok("GET", f"/v1/sessions/{session}")
    assert row["level"] == "CONFIDENTIAL"
    raised = net.api.events(session=session, reason="raised")
    assert any(e.get("who") == "decider guard" and "customers" in str(e) for e in raised), raised
    # it cannot lower
    net.fetch(session, "https://f.origin.test/raise?level=PUBLIC")
    assert net.api.ok("GET", f"/v1/sessions/{session}")["level"] == "CONFIDENTIAL"


def test_answers_are_remembered_as_it_says(net):
    session = net.fresh()
    assert net.fetch(session, "https://g.origin.test/allow?remember=host")[1] == 200
    assert net.fetch(session, "https://g.origin.test/deny")[1] == 200, "it is not asked"
    assert net.fetch(session, "https://g.origin.test/deny", "-d", "x")[1] == 403, "writing is another thing"
    assert net.fetch(session, "https://h.origin.test/deny?remember=host&ttl=600")[1] == 403
    body, code = net.fetch(session, "https://h.origin.test/allow")
    assert code == 403 and body["reason"] == "decider_denies"
    assert net.fetch(net.fresh(), "https://h.origin.test/allow")[1] == 200, "it is for the session"
    assert net.fetch(session, "https://i.origin.test/deny?remember=session")[1] == 403
    assert net.fetch(session, "https://j.origin.test/allow")[1] == 403
    assert net.fetch(session, "https://g.origin.test/deny")[1] == 200, "of two, the one for the host"
    # and who explains knows it
    explain = lambda url, *more: json.loads(net.daemon.cli("--json", "policy", "explain", "--live", session, "--url", url, *more, check=0).stdout)["asks"]
    got = explain("https://g.origin.test/x")
    assert got["decider"] == "guard" and got["timeout_ms"] == 60000 and got["remembered"]["answer"] == "allow", got
    assert got["remembered"]["for"] == "host" and 0 < got["remembered"]["seconds"] <= 300 and "it goes on" in got["now"]
    got = explain("https://h.origin.test/x")
    assert got["remembered"]["answer"] == "deny" and "it is refused" in got["now"]
    assert explain("https://z.origin.test/x")["remembered"]["for"] == "session"
    # a raise empties it
    net.api.escalate(session, "CONFIDENTIAL")
    assert net.fetch(session, "https://j.origin.test/allow")[1] == 200
    assert explain("https://h.origin.test/x")["now"] == "the decider is asked"
    assert net.fetch(session, "https://g.origin.test/deny")[1] == 403


def test_a_raise_while_it_thinks_asks_anew(net):
    session = net.fresh()
    p = net.get(session, "https://k.origin.test/hang")
    net.wait_frames(session=session, level="INTERNAL")
    net.api.escalate(session, "CONFIDENTIAL")
    net.wait_frames(session=session, level="CONFIDENTIAL")
    assert net.fetch(session, "https://k.origin.test/release")[1] == 200
    assert done(p)[1] == 200
    p = net.get(session, "https://k.origin.test/hang")
    net.wait_frames(2, session=session, level="CONFIDENTIAL", url="https://k.origin.test/hang")
    net.api.escalate(session, "SECRET")
    assert done(p)[1] != 200
    net.fetch(net.fresh(), "https://k.origin.test/release")
    net.settled()


def test_it_is_told_what_the_session_holds_and_is_for(net):
    session = net.fresh("PUBLIC")
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "INTERNAL", "dataset": "wiki", "reason": "ticket 4711"})
    got = net.api.ok("PUT", f"/v1/sessions/{session}/context", {"purpose": "fix the build", "context": {"messages": ["a\nb", "\u202e"]}})
    assert got == {"session": session, "purpose": "fix the build", "context": {"messages": ["a\nb", "\u202e"]}}
    assert net.api.ok("PUT", f"/v1/sessions/{session}/context", {"purpose": "fix it"})["context"], "what is left out stays"
    net.daemon.kill()
    net.daemon.start()
    net.settled()
    assert net.fetch(session, "https://n.origin.test/allow")[1] == 200
    frame = net.wait_frames(session=session)[-1]
    assert frame["datasets"] == [{"dataset": "wiki", "level": "INTERNAL", "reason": "ticket 4711"}] and frame["datasets_in_all"] == 1
    assert frame["raised"] == {"level": "INTERNAL", "dataset": "wiki", "reason": "ticket 4711"}
    assert frame["purpose"] == "fix it" and frame["context"] == {"messages": ["a\nb", "\u202e"]}
    assert frame["sent_to_host"] == 0 and frame["recent"] == []

    def told():
        net.fetch(session, "https://n.origin.test/allow", "-d", "12345")
        last = net.frames(session=session)[-1]
        return last if last["sent_to_host"] else None

    frame = base.eventually(told, 30)  # reports come when they come
    assert frame and frame["sent_to_host"] % 5 == 0, net.frames(session=session)[-1]
    assert {"method": "POST", "url": "https://n.origin.test/allow", "reason": "decider_allows", "status": 200} in frame["recent"]
    assert len(frame["recent"]) <= 8
    bare = net.fresh()
    net.fetch(bare, "https://n.origin.test/allow")
    frame = net.wait_frames(session=bare)[-1]
    assert frame["purpose"] is None and frame["context"] is None and frame["datasets"] == []
    path = f"/v1/sessions/{bare}/context"
    for body in ({"purpose": "x" * 1025}, {"purpose": "a\x1bb"}, {"context": {"a": "x" * 17000}}, {"context": "text"}, {"other": 1}):
        assert net.api.ask("PUT", path, body)[0] == 400, body
    assert net.api.ask("PUT", "/v1/sessions/nobody/none/context", {"purpose": "x"})[0] == 404
    argv = [*net.world.enter(), str(base.NETPAWL), "run", "--session", bare, "--purpose", "look around", "--", "true"]
    assert subprocess.run(argv, env=net.env(), capture_output=True, timeout=60).returncode == 0
    assert net.api.ok("GET", path)["purpose"] == "look around"


def test_health_counts(net):
    before = net.decider()
    session = net.fresh()
    net.fetch(session, "https://l.origin.test/allow")
    net.fetch(session, "https://l.origin.test/deny")
    after = net.decider()
    assert after["allowed"] == before["allowed"] + 1 and after["denied"] == before["denied"] + 1
    shown = net.daemon.cli("status", check=0).stdout
    assert "decider.guard" in shown and f"ready: {after['allowed']} allowed" in shown, shown
    assert after["mean_us"] > 0 and after["max_us"] >= after["mean_us"] and after["ready"] and not after["paused"]


def test_a_reload_starts_and_ends_deciders(net):
    session = net.fresh()
    assert net.fetch(session, "https://m.origin.test/allow?remember=host")[1] == 200
    starts = net.decider()["starts"]

    def reload(text):
        new = net.policy.with_suffix(".new")
        new.write_text(text + base.PERMITS)
        os.replace(new, net.policy)
        net.api.ok("POST", "/v1/policy/reload", {})

    p = net.get(session, "https://m2.origin.test/hang")
    net.wait_frames(session=session, url="https://m2.origin.test/hang")
    reload(net.text + "# another\n")
    net.wait_frames(2, session=session, url="https://m2.origin.test/hang")
    assert net.decider()["starts"] == starts, "it is the same"
    assert net.fetch(session, "https://m.origin.test/deny")[1] == 403, "what was remembered is not"
    assert net.fetch(session, "https://m.origin.test/release")[1] == 200
    assert done(p)[1] == 200
    reload("version: 1\nrules: []\n")
    assert net.api.health()["deciders"] == []
    reload(net.text)
    net.settled()
    assert net.fetch(session, "https://m.origin.test/allow")[1] == 200
