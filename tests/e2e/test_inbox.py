# SPDX-License-Identifier: MIT
"""All that waits for a person, in one list: requests that a rule asks about, and runs of class write."""
import contextlib
import json
import socket
import subprocess
import sys

import pytest

from lib import base
from lib.asked import Asked

LEVELS = """levels:
  PUBLIC: FULL
  INTERNAL: PROXIED
  CONFIDENTIAL: PROXIED
  SECRET: NONE
"""
POLICY = "version: 1\n" + LEVELS + """approval: {hold: 2m, timeout: 15m}
rules:
  - allow: open.origin.test
  - ask: ["**.origin.test", origin.test]
"""
QUICK = POLICY.replace("timeout: 15m", "timeout: 4s").replace("hold: 2m", "hold: 2s")
FLOOD = """import http.client, sys, threading
def get(i):
    c = http.client.HTTPConnection("198.51.100.10", 80, timeout=100)
    c.putrequest("GET", "/", skip_host=True)
    c.putheader("Host", f"h{i}.origin.test")
    c.endheaders()
    c.getresponse().read()
all = [threading.Thread(target=get, args=(i,), daemon=True) for i in range(int(sys.argv[1]))]
[t.start() for t in all]
[t.join() for t in all]
"""


class Net(Asked):
    def get(self, session, *words):
        return self.spawn("curl", "-sS", "-m", "110", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)

    def one(self, session, **is_):
        def look():
            return next((q for q in self.questions(session) if all(q.get(k) == v for k, v in is_.items())), None)

        got = base.eventually(look, 20)
        assert got, (self.questions(session), self.daemon.text()[-2000:])
        return got

    @contextlib.contextmanager
    def follow(self, **params):
        feed = self.api.inbox(**params)
        try:
            assert feed.status == 200
            yield feed
        finally:
            feed.close()


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack, policy=POLICY)


@pytest.fixture(scope="module")
def quick():
    with contextlib.ExitStack() as stack:
        yield Net(stack, policy=QUICK)


def status(p):
    return int(p.communicate(timeout=150)[0] or 0)


def test_runs_and_requests_are_one_list(net):
    session = net.fresh()
    p = net.get(session, "https://list.origin.test/")
    try:
        q = net.one(session, host="list.origin.test")
        run = net.write_run(session, "sh", "-c", "exit 0")
        both = {r["id"]: r for r in net.questions(session)}
        assert set(both) == {str(q["question"]), f"run-{run}"}
        asked = both[f"run-{run}"]
        assert (asked["kind"], asked["run"], asked["question"], asked["state"], asked["command"]) == ("run", run, None, "pending", ["sh", "-c", "exit 0"])
        assert asked["level"] == "INTERNAL" and asked["asked_by"].startswith("uid 0 ") and asked["answer"] is None
        assert net.api.ok("GET", f"/v1/questions/run-{run}")["id"] == f"run-{run}"
        text = net.daemon.cli("questions", session, check=0).stdout
        assert f'run-{run}  pending  {session}  run ["sh","-c","exit 0"]' in text and "list.origin.test" in text
        answer = f"/v1/questions/run-{run}/answer"
        assert net.api.ask("POST", answer, {"answer": "host"})[1]["error"] == "bad_field"
        assert net.api.ask("POST", answer, {"answer": "once", "for": "5m"})[1]["error"] == "bad_field"
        assert net.api.ask("POST", answer, {"answer": "once", "policy": "0" * 64})[1]["error"] == "question_changed"
        assert net.api.ask("POST", answer, {"answer": "once", "generation": 77})[1]["error"] == "question_changed"
        got = net.api.ok("POST", answer, {"answer": "once", "policy": asked["policy"], "generation": asked["generation"], "reason": "go"})
        assert (got["state"], got["answer"], got["reason"]) == ("allowed", "once", "go") and got["answered_by"].startswith("uid 0 ")
        assert net.api.ok("GET", f"/v1/runs/{run}")["approved"] is True, "the same thing as approve"
        assert net.api.ask("POST", answer, {"answer": "deny"})[:2] == (409, net.api.ask("POST", f"/v1/runs/{run}/reject", {"reason": "x"})[1] |
                                                                  {"detail": f"run {run}"})
        assert base.eventually(lambda: net.api.ok("GET", f"/v1/runs/{run}")["state"] == "completed", 60)
    finally:
        for each in net.questions(session):
            net.api.ok("POST", f"/v1/questions/{each['id']}/answer", {"answer": "deny"})
        assert status(p) == 403


def test_the_words_of_runs_mean_the_same(net):
    session = net.fresh()
    rejected, denied = net.write_run(session), net.write_run(session)
    net.daemon.cli("reject", rejected, "--reason", "not now", check=0)
    net.daemon.cli("answer", f"run-{denied}", "deny", "--reason", "nor ever", check=0)
    states = {q["id"]: (q["state"], q["answer"], q["reason"]) for q in net.questions(session, "denied")}
    assert states == {f"run-{rejected}": ("denied", "deny", "not now"), f"run-{denied}": ("denied", "deny", "nor ever")}
    assert net.api.ok("GET", f"/v1/runs/{denied}")["state"] == "rejected"
    for bad in ("run-", "run-x", "run-99999", "run-1-1", "x"):
        assert net.api.ask("GET", f"/v1/questions/{bad}")[0] == 404
        assert net.api.ask("POST", f"/v1/questions/{bad}/answer", {"answer": "once"})[0] == 404
    assert net.api.ask("POST", f"/v1/questions/run-{denied}/revoke", {})[1]["error"] == "bad_field"
    other = net.api.ok("POST", "/v1/runs", {"session": session, "command": ["true"], "launch": {}})["run"]
    assert net.api.ask("GET", f"/v1/questions/run-{other}")[0] == 404, "nobody is asked about it"


def test_a_follower_is_told_what_waits_and_each_change(net):
    session = net.fresh()
    p = net.get(session, "https://before.origin.test/")
    q = net.one(session, host="before.origin.test")
    with net.follow(session=session) as feed:
        first = feed.next()
        assert (first["id"], first["state"]) == (q["id"], "pending") and first["waiting"] == 1
        run = net.write_run(session)
        asked = feed.until(lambda e: e["id"] == f"run-{run}")
        assert asked["state"] == "pending"
        net.api.ok("POST", f"/v1/questions/{q['id']}/answer", {"answer": "host"})
        assert feed.until(lambda e: e["id"] == q["id"])["state"] == "allowed"
        assert status(p) == 200
        net.api.ok("POST", f"/v1/runs/{run}/reject", {"reason": "a test"})
        assert feed.until(lambda e: e["id"] == f"run-{run}")["state"] == "denied"
        p = net.get(session, "https://risen.origin.test/")
        q = feed.until(lambda e: e.get("host") == "risen.origin.test")
        net.api.escalate(session, "SECRET")
        assert feed.until(lambda e: e["id"] == q["id"])["state"] == "void"
        status(p)


def test_a_follower_hears_of_what_expires(quick):
    session = quick.fresh()
    with quick.follow(session=session) as feed, quick.follow(session=session, state="expired") as late:
        p = quick.get(session, "https://expires.origin.test/")
        run = quick.write_run(session)
        states = {}
        while sum(map(len, states.values())) < 4:
            e = feed.next(30)
            states.setdefault(e["id"], []).append(e["state"])
        assert f"run-{run}" in states and list(states.values()) == [["pending", "expired"]] * 2, states
        assert {late.next(30)["id"] for _ in range(2)} == set(states)
        assert status(p) == 403


def test_follow_is_asked_for_rightly(net):
    for query in ("follow=2", "follow=1&wait=1", "follow=1&after=3", "follow=1&state=none", "follow=1&session=x"):
        assert net.api.ask("GET", f"/v1/questions?{query}")[0] == 400, query
    status_, headers, _ = net.api.raw("HEAD", "/v1/questions?follow=1")
    assert status_ == 200


def test_wait_wakes_for_a_run(net):
    session = net.fresh()
    p = base.popen([*net.world.enter(), base.PYTHON, "-I", "-c", """import http.client, json, socket, sys
c = http.client.HTTPConnection("np"); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])
c.request("GET", "/v1/questions?state=pending&wait=1&session=" + sys.argv[2])
print("asked", flush=True)
print(c.getresponse().read().decode())""", str(net.daemon.socket), session], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "asked\n"
        run = net.write_run(session)
        assert [q["id"] for q in json.loads(p.stdout.readline())["questions"]] == [f"run-{run}"]
    finally:
        base.reap(p)
    net.api.ok("POST", f"/v1/runs/{run}/reject", {"reason": "a test"})


def test_a_flood_of_one_session_hides_nobodys_question(net):
    """It fills its share; who comes later is second in line, in the list and for a follower."""
    flooder, other = net.fresh(), net.fresh()
    flood = net.spawn(base.PYTHON, "-c", FLOOD, "40", session=flooder)
    p = None
    try:
        assert base.eventually(lambda: len(net.questions(flooder)) == 32, 60)
        p = net.get(other, "https://quiet.origin.test/")
        mine = net.one(other)
        run = net.write_run(other)
        turns = [q["session"] for q in reversed(net.questions())]
        assert turns[:2] == [flooder, other] and turns[2:4] in ([flooder, other], [other, flooder]) and len(turns) == 34
        with net.follow() as feed:
            got = [feed.next() for _ in range(34)]
            assert [e["session"] for e in got] == turns
        net.api.ok("POST", f"/v1/questions/{mine['id']}/answer", {"answer": "once"})
        assert status(p) == 200
        net.api.ok("POST", f"/v1/runs/{run}/reject", {"reason": "a test"})
    finally:
        net.api.end(flooder)
        base.reap(flood)
        if p:
            base.reap(p)


def test_a_follower_that_does_not_read_holds_nobody_up(net):
    """It costs its own buffer; and when it reads it is told what is true by then."""
    session = net.fresh()
    deaf = socket.socket(socket.AF_UNIX)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.settimeout(60)
    deaf.connect(str(net.daemon.socket))
    deaf.sendall(f"GET /v1/questions?follow=1&session={session} HTTP/1.0\r\n\r\n".encode())
    try:
        for i in range(60):  # 20 KiB each: more than sockets and feeds take
            run = net.write_run(session, "true", f"{i:04}" + "x" * 15000)
            net.api.ok("POST", f"/v1/runs/{run}/reject", {"reason": "a test"})
        last = net.write_run(session, "true", "the last")
        assert net.api.health()["status"] == "ok"
        with net.follow(session=session) as feed:
            assert feed.next()["id"] == f"run-{last}", "who reads is told at once"
        got = b""
        while f'"id":"run-{last}"'.encode() not in got.replace(b'": "', b'":"'):
            piece = deaf.recv(65536)
            assert piece, got[-500:]
            got = got[-100000:] + piece
    finally:
        deaf.close()
    net.api.ok("POST", f"/v1/runs/{last}/reject", {"reason": "a test"})


def test_followers_are_bounded(net):
    feeds = []
    try:
        for _ in range(64):
            feeds.append(net.api.inbox())
            assert feeds[-1].status == 200
        more = net.api.inbox()
        feeds.append(more)
        assert more.status == 429 or more.status == 503, more.status
    finally:
        for feed in feeds:
            feed.close()
    assert base.eventually(lambda: net.api.inbox().status == 200, 30)


def test_the_python_client_follows_and_answers(net):
    sys.path.insert(0, str(base.TESTS.parent / "clients/python"))
    import netpawl

    session, client = net.fresh(), netpawl.Client(str(net.daemon.socket))
    p, run = net.get(session, "https://python.origin.test/"), net.write_run(session)
    answered = {}
    for q in client.inbox(session):
        if q["state"] == "pending":
            q.answer("deny" if q["kind"] == "run" else "host", reason="a test")
        else:
            answered[q["id"]] = q["state"]
        if len(answered) == 2:
            break
    assert sorted(answered.values()) == ["allowed", "denied"] and answered[f"run-{run}"] == "denied" and status(p) == 200
    assert not list(client.questions(session))


def test_the_command_line_follows(net):
    session = net.fresh()
    follow = base.popen([*net.world.enter(), str(base.NETPAWL), "questions", "--follow", session], env=net.env(), stdout=subprocess.PIPE, text=True)
    try:
        run = net.write_run(session, "echo", "\x1b[2J\u202egnp.exe")
        line = follow.stdout.readline()
        assert line.startswith(f"run-{run}  pending  {session}  run [") and "\x1b" not in line and "\u202e" not in line
        net.daemon.cli("answer", f"run-{run}", "deny", "--reason", "no", check=0)
        while f"run-{run}  denied" not in (line := follow.stdout.readline()):
            assert line
    finally:
        base.reap(follow)
