# SPDX-License-Identifier: MIT
"""netpawl debug: what the daemon and its inspectors hold, for whoever looks for a fault."""
import hashlib
import json
import os
import re
import signal
import ssl
import subprocess
import threading

import pytest

from lib import base
from lib.inspected import POLICY, unharmed, Inspected

RECORDS = "  - allow: slow.records.test\n    dns: TXT\n"

# Connections in many states, each kept as it is until the end of input.
HOLDER = r"""
import socket, ssl, struct, sys, threading, time
def connect(host, port):
    return socket.create_connection((host, port), 60)
def tls(host, trust=True):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = trust, ssl.CERT_REQUIRED if trust else ssl.CERT_NONE
    return context.wrap_socket(connect(host, 443), server_hostname=host)
REQUEST = "GET {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer s3cret\r\n\r\n"
def send(s, host, path):
    s.sendall(REQUEST.format(path, host).encode())
    return s
def ask():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    name = b"".join(bytes([len(l)]) + l for l in b"slow.records.test".split(b".")) + b"\0"
    while True:
        s.sendto(struct.pack("!6H", 7, 256, 1, 0, 0, 0) + name + struct.pack("!HH", 16, 1), ("192.0.2.53", 53))
        time.sleep(0.2)
kept = [connect("origin.test", 80)]                                          # new: it says nothing
kept.append(send(connect("origin.test", 80), "origin.test", "/hold/s3cret?q=s3cret"))  # waits for its response
kept.append(send(tls("h.origin.test"), "h.origin.test", "/hold"))
kept.append(send(connect("idle.origin.test", 80), "idle.origin.test", "/a"))
kept[-1].recv(100)                                                           # its origin's connection is kept
kept.append(tls("pinned.origin.test", False))                                # a tunnel, to a root of its own
threading.Thread(target=ask, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def net():
    with unharmed(Inspected, policy=POLICY.replace("rules:\n", "rules:\n" + RECORDS)) as i:
        yield i


class Holder:
    def __init__(self, net, script=HOLDER):
        self.p = base.popen(net.argv("python3", "-c", script), env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.p.stdout.readline()
        assert line == b"ready\n", line

    def close(self):
        self.p.stdin.close()
        self.p.wait(120)


@pytest.fixture
def holder(net):
    h = Holder(net)
    assert base.eventually(lambda: settled(debug(net))), debug(net)
    yield h
    h.close()
    # What is next in this file begins with a worker that holds nothing of it.
    assert base.eventually(lambda: not any(entries(debug(net), kind) for kind in ("connections", "exchanges", "queries")))


def debug(net, session=True, **query):
    query = {**({"session": net.session} if session else {}), **query}
    text = "&".join(f"{k}={v}" for k, v in query.items())
    return net.api.ok("GET", "/v1/debug" + ("?" + text if text else ""))


def entries(answer, kind):
    return [e for i in answer["inspectors"] for e in i.get(kind, [])]


def settled(answer):
    """The holder's client side is ready before the inspector is done with its own."""
    exchanges = [e["state"] for e in entries(answer, "exchanges")]
    return exchanges == ["waiting"] * 2 and "idle" in {e["state"] for e in entries(answer, "origins") if e["host"] == "idle.origin.test"}


def test_connections_and_their_states(net, holder):
    # A query that waits is there most of the time.
    answer = base.eventually(lambda: (lambda a: a if entries(a, "queries") and settled(a) else None)(debug(net)))
    clients = sorted((e["host"], e["port"], e["state"], e["tls"]) for e in entries(answer, "connections"))
    assert clients == [("h.origin.test", 443, "http/1.1", True), ("idle.origin.test", 80, "http/1.1", False),
                       ("origin.test", 80, "http/1.1", False), ("origin.test", 80, "new", False),
                       ("pinned.origin.test", 443, "tunnel", False)], clients
    assert sorted((e["host"], e["state"]) for e in entries(answer, "exchanges")) == [("h.origin.test", "waiting"), ("origin.test", "waiting")]
    origins = sorted((e["host"], e["state"]) for e in entries(answer, "origins"))
    assert origins == [("h.origin.test", "busy"), ("idle.origin.test", "idle"), ("origin.test", "busy")], origins
    query = entries(answer, "queries")[0]
    assert (query["name"], query["type"], query["state"]) == ("slow.records.test", 16, "waits for records"), query
    for inspector in answer["inspectors"]:
        assert inspector["answered"] and inspector["ready"] and inspector["left_out"] == 0
        assert inspector["policy"] == answer["policy"]["hash"]
        assert sum(inspector["connections_by_state"].values()) == inspector["counts"]["connections"] == len(inspector["connections"])
        assert inspector["memory"]["connections"] >= inspector["counts"]["connections"]
    assert {e["session"] for kind in ("connections", "exchanges", "origins", "queries", "sandboxes") for e in entries(answer, kind)} == {net.session}


def test_it_holds_no_secrets(net, holder):
    answer = json.dumps(debug(net))
    assert "origin.test" in answer and "s3cret" not in answer and "/hold" not in answer and "PRIVATE" not in answer
    text = net.daemon.cli("debug", net.session, check=0).stdout
    assert "origin.test:80" in text and "s3cret" not in text


def test_what_the_daemon_holds_of_a_session(net, holder):
    answer = debug(net)
    assert answer["session"]["session"] == net.session and answer["session"]["rung"]["mode"] == "PROXIED"
    assert answer["session"]["names"] >= 3 and answer["session"]["names_kept"]
    der = ssl.PEM_cert_to_DER_cert(net.ca.read_text())
    assert answer["session"]["ca_sha256"].replace(":", "").lower() == hashlib.sha256(der).hexdigest()
    boxes = {s["sandbox"] for s in net.api.sandboxes(net.session)}
    assert {s["sandbox"] for s in answer["sandboxes"]} == boxes and len(boxes) == 2
    for sandbox in answer["sandboxes"]:
        rungs = [sandbox["service"], sandbox["kernel"], sandbox["supervisor"], *[i["rung"] for i in sandbox["inspectors"]]]
        assert len(rungs) == 5 and all(r == rungs[0] and r["mode"] == "PROXIED" for r in rungs), sandbox
        assert sandbox["agree"] is True
    assert answer["disagree"] == 0 and answer["policy"]["epoch"] > 0


def test_all_sessions_and_no_such_session(net):
    other = net.api.create("tester/elsewhere", "CONFIDENTIAL")
    assert other
    everything = debug(net, session=False)
    assert net.session in {s["session"] for s in everything["sandboxes"]} and "session" not in everything
    assert debug(net, session=False, after=0)["inspectors"]
    assert net.api.ask("GET", "/v1/debug?session=no/such")[0] == 404
    assert net.api.ask("GET", "/v1/debug?after=-1")[0] == 400
    assert net.daemon.cli("debug", "no/such").returncode == 1 and net.daemon.cli("debug", "--after", "x").returncode == 2


def which(connection):
    return {k: v for k, v in connection.items() if k not in ("held", "unsent", "exchanges")}


def test_pages(net, holder):
    """What does not fit is counted, and is on the next page: every entry is on one of them."""
    whole = debug(net)
    for inspector in whole["inspectors"]:
        total = inspector["shown"]
        rest = debug(net, after=2)
        (again,) = [i for i in rest["inspectors"] if i["pid"] == inspector["pid"]]
        assert again["after"] == 2 and again["shown"] <= max(0, sum(again["counts"][k] for k in ("sandboxes", "connections", "exchanges", "origins", "queries")) - 2)
        assert again["counts"]["connections"] == inspector["counts"]["connections"] and total >= 2
        # The first two entries are sandboxes. What a connection holds may be given back between the two looks.
        assert not again["sandboxes"] and [which(c) for c in again["connections"]] == [which(c) for c in inspector["connections"]]
    assert rest["disagree"] == 0, "a sandbox on another page is no disagreement"


MANY = r"""
import socket, sys
kept = [socket.create_connection(("origin.test", 80), 20) for _ in range(400)]
print("ready", flush=True)
sys.stdin.read()
"""


def test_more_connections_than_a_page_has(net):
    h = Holder(net, MANY)
    try:
        full = base.eventually(lambda: (lambda a: a if sum(i["counts"]["connections"] for i in a["inspectors"]) == 400 else None)(debug(net)))
        assert full, debug(net)
        for inspector in full["inspectors"]:
            assert inspector["shown"] + inspector["left_out"] == sum(inspector["counts"][k] for k in ("sandboxes", "connections", "exchanges", "origins", "queries"))
        big = max(full["inspectors"], key=lambda i: i["left_out"])
        assert big["left_out"] > 0 and big["connections_by_state"]["new"] == big["counts"]["connections"] > len(big["connections"])
        seen, after = 0, 0
        for _ in range(20):
            (page,) = [i for i in debug(net, after=after)["inspectors"] if i["pid"] == big["pid"]]
            seen, after = seen + len(page["connections"]), after + page["shown"]
            if not page["left_out"]:
                break
        assert seen == big["counts"]["connections"]
        text = lambda: net.daemon.cli("debug", net.session, check=0).stdout

        def told():  # a connection to an origin, kept from before, may go between two looks
            (now,) = [i for i in debug(net)["inspectors"] if i["pid"] == big["pid"]]
            return now["left_out"] and re.search(rf"{now['left_out']} more entries: --after {now['shown']}", text())

        assert base.eventually(told), text()[-500:]
    finally:
        h.close()
    assert base.eventually(lambda: not entries(debug(net), "connections"))


def test_an_inspector_that_does_not_answer_blocks_nobody(net):
    pids = {i["pid"] for i in debug(net)["inspectors"]}
    stopped = min(pids)
    os.kill(stopped, signal.SIGSTOP)
    try:
        got, answered = {}, 0
        for _ in range(20):  # within a second, which a busy machine may take for itself
            asker = threading.Thread(target=lambda: got.update(debug(net)))
            asker.start()
            while asker.is_alive():  # the daemon goes on with everything else
                assert net.api.health()["status"] == "ok"
                answered += asker.is_alive()
            asker.join()
            if answered and sum(i["answered"] for i in got["inspectors"]) == len(pids) - 1:
                break
        assert answered
        assert {i["pid"]: i["answered"] for i in got["inspectors"]} == {pid: pid != stopped for pid in pids}
        assert got["disagree"] == 0, "who says nothing does not disagree"
        text = net.daemon.cli("debug", check=0).stdout
        assert f"inspector {stopped}: did not answer" in text
    finally:
        os.kill(stopped, signal.SIGCONT)
    # It answers again, and what it says late is of no question that is still open.
    assert base.eventually(lambda: all(i["answered"] for i in debug(net)["inspectors"]), 10)


def test_many_ask_at_once_and_each_gets_its_own_session(net):
    net.api.create("tester/quiet", "CONFIDENTIAL")
    got, n = [], 8

    def ask(i):
        name = net.session if i % 2 else "tester/quiet"
        # an inspector has a second to answer, which a busy machine may take for itself
        answer = base.eventually(lambda: (a := net.api.ok("GET", f"/v1/debug?session={name}")) and all(i["answered"] for i in a["inspectors"]) and a)
        got.append((name, answer["session"]["session"], {s["session"] for s in entries(answer, "sandboxes")}, [x["answered"] for x in answer["inspectors"]]))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(n)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(got) == n
    for name, session, sandboxes, answered in got:
        assert session == name and sandboxes == ({net.session} if name == net.session else set()) and all(answered), got


def test_during_raises_nobody_disagrees(net):
    """Whatever is raised meanwhile: what an inspector shows is compared with what it had been sent when it was asked."""
    sessions = [f"tester/raised-{i}" for i in range(6)]
    holders = []
    for name in sessions:
        net.api.create(name, "CONFIDENTIAL")
        holders.append(net.spawn("sleep", "600", session=name))
    try:
        assert base.eventually(lambda: all(net.api.sandboxes(name) for name in sessions))
        over = threading.Event()

        def raise_all():
            for name in sessions:
                net.api.ok("POST", f"/v1/sessions/{name}/datasets", {"level": "SECRET"})
            over.set()

        raiser = threading.Thread(target=raise_all)
        raiser.start()
        last = None
        while not over.is_set() or last is None:
            last = debug(net, session=False)
            assert last["disagree"] == 0, [s for s in last["sandboxes"] if not s["agree"]]
        raiser.join()
        last = base.eventually(lambda: (a := debug(net, session=False)) and all(i["answered"] for i in a["inspectors"]) and a)
        assert {s["kernel"]["mode"] for s in last["sandboxes"] if s["session"] in sessions} == {"NONE"} and last["disagree"] == 0
        assert {e["rung"]["mode"] for e in entries(last, "sandboxes") if e["session"] in sessions} == {"NONE"}
    finally:
        for h in holders:
            base.reap(h)
