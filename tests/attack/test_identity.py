# SPDX-License-Identifier: MIT
"""Whose connection is it? A client that is gone leaves its bytes in the inspector's queue, and its port to others: what it
sent must not become the request of whoever has the port when the inspector looks."""
import contextlib
import json
import os
import signal
import struct
import threading

import pytest

from lib import base, inspected
from lib.box import Adopted, Box, new_session
from lib.inspected import Inspected
from lib.world import FAR, Refused

POLICY = """version: 1
levels:
  INTERNAL: proxied
rules:
  - allow: origin.test
    for: [PUBLIC, INTERNAL]
  - allow: origin.test
    methods: GET
    paths: ["/open/**"]
"""
LOOP = {4: "127.0.0.1", 6: "::1"}
SERVER = "192.0.2.53"  # no name server: the gate answers for all of them


class Net(Inspected):
    """Senders whose level, or class, forbids what they send; and one that may."""

    def __init__(self, stack):
        super().__init__(stack, policy=POLICY)
        session = new_session("reader")
        self.boxes = {}
        for name, args in {"victim": dict(level="INTERNAL"), "level": dict(level="CONFIDENTIAL"),
                           "class": dict(level="INTERNAL", session=session, more=["--class", "read_only"])}.items():
            if base.ADOPTED and name == "level":  # those of one pod fight for its ports
                args["wired"] = self.boxes["victim"].wired
            self.boxes[name] = Box(self.daemon, **args)
            stack.callback(self.boxes[name].close)
        self.local = 20000

    def port(self):
        """One that no connection of an earlier test still has."""
        self.local += 1
        return self.local

    def connections(self, name, *words):
        """What ss says where this sandbox is."""
        return base.sh("nsenter", "-t", self.boxes[name].pids()[0], "-n", "ss", *words).stdout

    @contextlib.contextmanager
    def stopped(self):
        """What happens meanwhile waits in the inspector's queues."""
        pids = self.workers()
        assert len(pids) == 2
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            for pid in pids:
                assert base.eventually(lambda: " T" in open(f"/proc/{pid}/stat").read(), 5)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def seen(self, mark):
        """Requests with this in their path that an origin got."""
        return [l for l in (self.origins.dir / "log").read_text().splitlines() if mark in l]

    def told(self, name, mark):
        return [e for e in self.boxes[name].events() if mark in e.get("url", "")]


@pytest.fixture(scope="module")
def net():
    with inspected.unharmed(Net) as n:
        yield n


@pytest.fixture(autouse=True)
def unharmed(net):
    before = net.workers()
    yield
    assert net.workers() == before, "a worker died: " + net.daemon.text()[-3000:]


def flows(net):
    """(connections on their way by the sandboxes' counters, and by the table)"""
    dump = lambda name: json.loads(base.sh("bpftool", "-j", "map", "dump", "pinned", net.daemon.pins / "maps" / name).stdout)
    return sum(e["formatted"]["value"]["flows"] for e in dump("np_sandboxes")), len(dump("np_flows"))


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("sender", ["level", "class"])
def test_what_a_dead_client_sent_is_not_its_successors(net, sender, family):
    """Whoever connects from the port of a client that has sent and reset is not taken for it."""
    forged, honest, local = base.token(), base.token(), net.port()
    victim, attacker = net.boxes["victim"], net.boxes[sender]
    with net.stopped():
        status, answer = attacker.payload("identity", "forge", family=family, addr=FAR[family], port=80, local=local,
                                          paths=[f"/{forged}"])
        assert (status, answer) == (0, {"sent": 1})
        victim.call("dial", family=family, addr=FAR[family], port=80, bind=[LOOP[family], local], keep="v",
                    data=f"GET /{honest} HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n")
    try:
        got = victim.call("recv", keep="v", timeout=60)["data"]
    except Refused as e:
        got = e.error
    finally:
        victim.call("close", keep="v")
    assert not net.seen(forged), "a request that its sender may not make has reached the origin"
    assert "200 OK" in got, got
    # what the dead client sent is recorded as what it is, of whom it is, and went nowhere
    gone = attacker.refusals("client_gone")
    assert gone and gone[-1]["port"] == 80 and gone[-1]["address"] == FAR[family], gone
    assert net.seen(honest) and not net.seen(forged)
    assert base.eventually(lambda: net.told("victim", honest), 10) and not net.told("victim", forged)


@pytest.mark.parametrize("sender", ["level", "class"])
def test_a_storm_of_dead_clients(net, sender):
    """The same without stopping anybody: two sandboxes that fight for a port."""
    local, forged, honest = net.port(), base.token(), base.token()
    args = dict(family=4, addr=FAR[4], port=80, local=local)
    got = {}

    def attack():
        got["attacker"] = net.boxes[sender].payload("identity", "forge", 40, paths=[f"/{forged}"] * 150, **args)

    thread = threading.Thread(target=attack)
    thread.start()
    status, answer = net.boxes["victim"].payload("identity", "ask", 40, paths=[f"/{honest}/{i}" for i in range(60)], **args)
    thread.join()
    assert (status, got["attacker"]) == (0, (0, {"sent": 150}))
    assert not net.told("victim", forged) and not net.seen(forged), "requests that their sender may not make"
    assert answer["got"] == ["HTTP/1.1 200 OK"] * 60, "the victim lost connections"
    assert {l.split('"')[1].split()[0] for l in net.seen(honest)} == {"GET"}
    assert base.eventually(lambda: flows(net) == (0, 0), 10), flows(net)


def test_control_the_same_request_from_who_may_send_it(net):
    """At a level that allows it the same POST gets through, from the same kind of port, to an inspector that was busy."""
    mark, local, got = base.token(), net.port(), []
    args = dict(family=4, addr=FAR[4], port=80, local=local, paths=[f"/{mark}"])
    with net.stopped():
        thread = threading.Thread(target=lambda: got.append(net.boxes["victim"].payload("identity", "ask", size=18000, **args)))
        thread.start()
        assert base.eventually(lambda: f":{local} " in net.connections("victim", "-Htn"), 10)
    thread.join()
    assert got == [(0, {"got": ["HTTP/1.1 200 OK"]})]
    assert "POST" in net.seen(mark)[0]
    # and who may not gets a refusal that it can read
    for sender in ("level", "class"):
        assert net.boxes[sender].payload("identity", "ask", size=18000, **args) == (0, {"got": ["HTTP/1.1 403 Forbidden"]})
    assert len(net.seen(mark)) == 1


def test_a_client_that_has_said_all_is_still_there(net):
    """shutdown(SHUT_WR) is no reset: its request is answered, whenever the inspector looks."""
    mark, local, got = base.token(), net.port(), []
    args = dict(family=4, addr=FAR[4], port=80, local=local, paths=[f"/{mark}"], half=True)
    with net.stopped():
        thread = threading.Thread(target=lambda: got.append(net.boxes["victim"].payload("identity", "ask", **args)))
        thread.start()
        assert base.eventually(lambda: "CLOSE-WAIT" in net.connections("victim", "-Htna", f"dport = :{local}"), 10)
    thread.join()
    assert got == [(0, {"got": ["HTTP/1.1 200 OK"]})]


def query(number, name):
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) + b"\0\0\1\0\1"


@pytest.mark.parametrize("family", [4, 6])
def test_an_answer_is_for_who_asked(net, family):
    """A query whose socket is gone when it is answered; its port belongs to a socket of another session by then."""
    server = SERVER if family == 4 else "2001:db8::53"
    local, mark = net.port(), "a" + base.token() + ".test"
    attacker, victim = net.boxes["level"], net.boxes["victim"]
    with net.stopped():
        attacker.call("dial", family=family, kind="dgram", addr=server, port=53, bind=[LOOP[family], local],
                      data=query(7, mark).decode("latin-1"))
        victim.call("dial", family=family, kind="dgram", addr=server, port=53, bind=[LOOP[family], local], keep="v")
    try:
        asked = lambda: [e for e in attacker.events() if mark in json.dumps(e)]
        assert base.eventually(asked, 10), "its query was judged, and answered"
        victim.call("send", keep="v", data=query(9, "origin.test").decode("latin-1"))
        first = victim.call("recv", keep="v")["data"].encode("latin-1")
        assert struct.unpack("!H", first[:2])[0] == 9, "an answer to somebody else's query"
    finally:
        victim.call("close", keep="v")


def test_nobody_chooses_sequence_numbers(net):
    """An adopted sandbox of root has CAP_NET_ADMIN, and with it TCP_REPAIR."""
    box = Adopted(net.daemon, "PROXIED", user="root")
    try:
        assert net.world.outside.payload("identity", "repair") == (0, {"repair": 1}), "the control, outside"
        assert box.payload("identity", "repair") == (0, {"error": "EPERM"})
        assert box.refusals("socket_option")
    finally:
        box.close()
