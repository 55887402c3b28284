# SPDX-License-Identifier: MIT
"""netpawl forward: an operator's way to a listener of a sandbox, in every mode but NONE, held by the kernel."""
import os
import signal
import subprocess
import threading
import time

import pytest

from lib import base, bpf
from lib.box import Adopted, Box
from lib.forwards import Forward, call


@pytest.fixture
def forward(daemon):
    made = []

    def make(session, port, *more):
        made.append(Forward(daemon, session, port, *more))
        return made[-1]

    yield make
    for f in made:
        f.end(signal.SIGKILL)


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_a_listener_is_reached(world, daemon, boxes, forward, mode, kind):
    box = boxes(mode, kind=kind)
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    assert call(world, port, timeout=0.4) != "ok", "not by accident"
    f = forward(box.session, port)
    assert f.info["sandbox"] == box.id and (f.local != port) == (box.info["network"] == "shared")
    for i in range(3):
        assert call(world, f.local, f"hello {i}") == "ok"
    assert len(box.call("records", keep="web", mark="hello")["records"]) == 3
    assert daemon.api.ask("GET", f"/v1/sessions/{box.session}")[1]["forwards"][0]["port"] == port
    shown = base.sh(base.NETPAWL, "show", box.session, env=base.env(NETPAWL_SOCKET=str(daemon.socket))).stdout
    assert "FORWARD TO" in shown and str(port) in shown
    assert f.end() == 0
    reasons = [e["reason"] for e in box.events()]
    assert "forward_opened" in reasons and "forward_ended" in reasons
    assert daemon.api.ask("GET", f"/v1/sessions/{box.session}")[1]["forwards"] == []
    assert bpf.dump(daemon, "np_forwards") == []


def test_much_passes_both_ways(world, daemon, boxes, forward):
    """More than any buffer, unchanged, with a half that ends before the other."""
    box = boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    f = forward(box.session, port)
    code = ("import socket,sys,threading,hashlib,os\n"
            "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "data = os.urandom(1 << 22)\n"
            "def send():\n    s.sendall(data)\n    s.shutdown(socket.SHUT_WR)\n"
            "threading.Thread(target=send).start()\n"
            "got = b''\n"
            "while block := s.recv(65536):\n    got += block\n"
            "print(got == data, len(got))\n")
    got = world.outside.call("execute", argv=[base.PYTHON, "-c", code, str(f.local)])
    assert got["out"].strip() == f"True {1 << 22}", got


def test_which_sandbox(daemon, boxes, forward):
    """The one that listens; of several, one has to be named; and none is none."""
    first = boxes("FULL")
    second = boxes("FULL", session=first.session)
    code, said = forward(first.session, 24999).failed()
    assert code == 1 and "no sandbox of" in said and "no_forward" in said
    code, said = forward("no/such", 24999).failed()
    assert code == 1 and "no_such_session" in said
    port = first.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    assert forward(first.session, port).info["sandbox"] == first.id
    second.call("listen", keep="web", family=4, addr="127.0.0.2", port=port)
    code, said = forward(first.session, port).failed()
    assert code == 1 and first.id in said and second.id in said
    assert forward(first.session, port, "--sandbox", second.id).info["sandbox"] == second.id
    code, said = forward(first.session, port, "--sandbox", "nobody.there.00000000").failed()
    assert code == 1 and "no_such_sandbox" in said


def test_none_is_not_forwarded_to(daemon, boxes, forward):
    box = boxes("NONE")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    for more in ((), ("--sandbox", box.id)):
        code, said = forward(box.session, port, *more).failed()
        assert code == 1 and "NONE" in said


@pytest.mark.parametrize("what", ["runs", "stopped", "killed"])
def test_a_raise_to_none_ends_it(world, daemon, api, boxes, forward, what):
    """A server that writes for ever. After the acknowledgement nothing that it writes comes out, whatever becomes of
    netpawl forward; and of what was written before no more than its buffers hold."""
    box = boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1", role="source")["port"]
    f = forward(box.session, port)
    seen, total = threading.Event(), [(0, 0)]
    code = ("import socket,sys,time\n"
            "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "n = 0\n"
            "try:\n"
            "    while block := s.recv(65536):\n"
            "        n += len(block)\n"
            "        print(n, time.time_ns(), flush=True)\n"
            "except OSError:\n    pass\n"
            "print('end', flush=True)\n")
    reader = base.popen([*world.enter(), base.PYTHON, "-c", code, str(f.local)], stdout=subprocess.PIPE, text=True)

    def read():
        for line in reader.stdout:
            if line.strip() != "end":
                total.append(tuple(map(int, line.split())))
                seen.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        assert seen.wait(120), "bytes come through"
        if what != "runs":
            os.kill(f.process.pid, signal.SIGSTOP)
        if what == "killed":
            os.kill(f.process.pid, signal.SIGKILL)
            f.process.wait(60)
        cut = api.escalate(box.session, "SECRET")
        assert cut["mode"] == "NONE"
        acknowledged = time.time_ns()
        if what == "stopped":
            os.kill(f.process.pid, signal.SIGCONT)
        assert base.eventually(lambda: reader.poll() is not None, 10), "its reader is told of the end"
        thread.join(60)
        before = [n for n, when in total if when <= acknowledged][-1]
        assert total[-1][0] - before <= 4 * 16384 + 65536, "NP_FORWARD_BUFFER, twice, and what the reader itself had"
        assert call(world, f.local, timeout=1) != "ok", "no new connection"
        if what != "killed":
            assert base.eventually(lambda: f.process.poll() == 1, 20), "and it ends, with a word"
    finally:
        base.reap(reader, signal.SIGKILL)


def test_the_kernel_holds_it_alone(world, daemon, api, boxes):
    """A socket that was let in by the API, in the hands of somebody who does not care: the mode is enough."""
    box = boxes("PROXIED", kind=Adopted)  # it shares the network of who calls
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    s = world.outside.call("hold_cookie", keep="fwd")
    status, made = api.ask("POST", "/v1/forwards", {"session": box.session, "port": port})
    assert status == 201
    assert api.ask("POST", f"/v1/forwards/{made['forward']}", {"cookie": s["cookie"]})[0] == 200
    world.outside.call("connect", keep="fwd", family=4, addr="127.0.0.1", port=port)
    world.outside.call("send", keep="fwd", data="one")
    assert world.outside.call("recv", keep="fwd")["data"] == "one"
    api.escalate(box.session, "SECRET")
    assert world.outside.try_("send", keep="fwd", data="two") != "ok", "the socket itself is cut"
    assert box.call("records", keep="web", mark="two")["records"] == []
    world.outside.call("close", keep="fwd")
    assert api.ask("POST", f"/v1/forwards/{made['forward']}", {"cookie": s["cookie"] + 1})[0] == 409


def test_a_cookie_is_for_one_sandbox(world, daemon, api, boxes):
    """Let into one, not into the other; and an unknown one into none."""
    box, other = boxes("FULL"), boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    elsewhere = other.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    cookie = world.outside.call("hold_cookie", keep="fwd")["cookie"]
    _, made = api.ask("POST", "/v1/forwards", {"session": box.session, "port": port})
    api.ask("POST", f"/v1/forwards/{made['forward']}", {"cookie": cookie})
    assert world.outside.try_("connect", keep="fwd", family=4, addr="127.0.0.1", port=elsewhere, timeout=0.5) != "ok"
    world.outside.call("close", keep="fwd")
    assert api.ask("DELETE", f"/v1/forwards/{made['forward']}")[0] == 200
    assert api.ask("DELETE", f"/v1/forwards/{made['forward']}")[0] == 409


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_no_sandbox_reaches_the_local_port(world, daemon, boxes, forward, mode):
    """Not the one that is forwarded to, and no other: host loopback is private. The host itself is the control."""
    box = boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    f = forward(box.session, port)
    attacker, mark = boxes(mode), base.token()
    for a in (attacker, box):
        assert a.try_("dial", family=4, addr="127.0.0.1", port=f.local, data=mark, recv=10, timeout=1) == "ECONNREFUSED"
    assert box.call("records", keep="web", mark=mark)["records"] == []
    assert call(world, f.local, mark) == "ok"


@pytest.mark.parametrize("body", [{}, {"session": "a/b"}, {"session": "a/b", "port": 0}, {"session": "a/b", "port": 65536},
                                  {"session": "a/b", "port": "80"}, {"session": "a/b", "port": 80, "more": 1},
                                  {"session": "nobody", "port": 80}])
def test_bad_requests(api, body):
    status, answer = api.ask("POST", "/v1/forwards", body)
    assert status == 400 and answer["error"] in ("bad_field", "unknown_field", "bad_name"), answer


def test_a_taken_local_port(world, daemon, boxes, forward):
    box = boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    code, said = forward(box.session, port, port).failed()
    assert code == 1 and "cannot listen" in said


@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_a_reload_spares_it(world, make_daemon, mode):
    """A reload counts what it cuts of all sandboxes, those that have ended and left something included: so this daemon has no other."""
    d = make_daemon().start()
    with Box(d, mode) as box:
        f = Forward(d, box.session, box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"])
        try:
            world.outside.call("dial", family=4, addr="127.0.0.1", port=f.local, keep="f", data="x", recv=1)
            assert d.api.ok("POST", "/v1/policy/reload", {})["cut"] == 0
            world.outside.call("send", keep="f", data="y")
            assert world.outside.call("recv", keep="f")["data"] == "y"
            world.outside.call("close", keep="f")
        finally:
            f.end(signal.SIGKILL)


def test_a_new_daemon_forgets_forwards(world, make_daemon):
    """Fail closed: what a dead daemon let in, the next one does not know."""
    d = make_daemon().start()
    with Box(d, "FULL") as box:
        port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
        f = Forward(d, box.session, port)
        try:
            assert call(world, f.local) == "ok"
            d.kill()
            d.start()
            assert bpf.dump(d, "np_forwards") == []
            assert call(world, f.local, timeout=1) != "ok"
        finally:
            f.end(signal.SIGKILL)


@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
@pytest.mark.parametrize("family,addr,called", [(6, "::1", "::1"), (4, "127.0.0.2", "127.0.0.2"), (4, "0.0.0.0", "127.0.0.1"),
                                                (6, "::", None)])
def test_a_listener_is_called_at_its_own_address(world, daemon, boxes, forward, mode, family, addr, called):
    box = boxes(mode)
    port = box.call("listen", keep="web", family=family, addr=addr)["port"]
    assert world.outside.try_("dial", family=family, addr=called or "::1", port=port, data="x", timeout=0.4) != "ok"
    free = world.outside.call("listen", keep="free", family=4, addr="127.0.0.1")["port"]
    world.outside.call("close", keep="free")
    f = forward(box.session, port, free)  # and not `port` of 127.0.0.1, where the sandbox listens later
    assert f.info["address"] == (called or f.info["address"])
    assert call(world, f.local) == "ok"
    assert len(box.call("records", keep="web", mark="hello")["records"]) == 1
    if family == 6 and called:  # a server that comes back in the other family is found again
        box.call("close", keep="web")
        box.call("listen", keep="web4", family=4, addr="127.0.0.1", port=port)
        assert call(world, f.local, "again") == "ok"
        assert len(box.call("records", keep="web4", mark="again")["records"]) == 1


def test_who_is_not_there(daemon, boxes, forward):
    code, said = forward("nobody/there", 24999).failed()
    assert code == 1 and "no_such_session" in said and "listens" not in said, said
    box = boxes("FULL")
    daemon.api.ask("DELETE", f"/v1/sandboxes/{box.id}")
    assert base.eventually(lambda: "has no sandbox" in forward(box.session, 24999).failed()[1])


@pytest.mark.parametrize("what,cause", [("raised", "raised to NONE"), ("removed", "ended, or was removed"),
                                        ("deleted", "it was ended by"), ("unknown", "started anew")])
def test_an_end_has_a_cause(daemon, api, boxes, forward, what, cause):
    box = boxes("FULL")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    number = forward(box.session, port).info["forward"]
    assert api.ask("POST", f"/v1/forwards/{number}", {})[0] == 200
    if what == "raised":
        assert daemon.cli("escalate", box.session, "SECRET").returncode == 0
    elif what == "removed":
        assert api.ask("DELETE", f"/v1/sandboxes/{box.id}")[0] == 200
    elif what == "deleted":
        assert api.ask("DELETE", f"/v1/forwards/{number}")[0] == 200
    else:
        number = 1  # of a daemon before this one: numbers do not come again
    for _ in range(2):
        status, answer = api.ask("POST", f"/v1/forwards/{number}", {})
        assert status != 200 and cause in answer["detail"], answer
    if what != "unknown":
        ended = [e for e in box.events() if e["reason"] == "forward_ended"]
        assert ended and cause in ended[-1]["text"]
