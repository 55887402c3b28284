# SPDX-License-Identifier: MIT
"""sandbox: network: private. A sandbox that starts in PROXIED or NONE has a network namespace of its own: what others do on this
host it neither sees nor meets, its way out is the inspector, and nobody is taken for somebody else because two of them have the
same address and port. The control is the same with network: shared."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from lib import base
from lib.box import Box, new_session
from lib.forwards import Forward, call
from lib.inspected import Inspected
from lib.world import FAR

POLICY = """version: 1
levels:
  INTERNAL: proxied
rules:
  - allow: origin.test
    for: [PUBLIC, INTERNAL]
  - allow: origin.test
    paths: ["/open/**"]
"""
TEXT = "what-nobody-else-is-to-know"


class Net(Inspected):
    """Sandboxes of every mode, each of a session of its own."""

    def __init__(self, stack, network, **kw):
        super().__init__(stack, policy=POLICY, network=network, **kw)
        self.boxes, self.stack, self.number = {}, stack, 20000

    def box(self, name, **args):
        if name not in self.boxes:
            self.boxes[name] = Box(self.daemon, **(args or dict(mode=name)))
            self.stack.callback(self.boxes[name].close)
        return self.boxes[name]

    def port(self):
        self.number += 100
        return self.number


@pytest.fixture(scope="module")
def private():
    with contextlib.ExitStack() as stack:
        yield Net(stack, "private")


@pytest.fixture(scope="module")
def shared():
    with contextlib.ExitStack() as stack:
        yield Net(stack, "shared")


def test_who_has_one(private, shared):
    inodes = {}
    for mode, network in (("PROXIED", "private"), ("NONE", "private"), ("FULL", "shared")):
        assert private.box(mode).info["network"] == network
        inodes[mode] = private.box(mode).payload("channels", "seen")[1]
        assert shared.box(mode).info["network"] == "shared"
    assert len({s["inode"] for s in inodes.values()}) == 3
    for mode in ("PROXIED", "NONE"):
        assert inodes[mode]["devices"] == ["lo"] and not inodes[mode]["routes"], inodes[mode]
    assert len(inodes["FULL"]["devices"]) > 1


def test_unless_the_policy_says_otherwise(make_daemon):
    d = make_daemon()
    d.policy.write_text("version: 1\n" + base.permits(""))
    d.start()
    for mode, network in (("PROXIED", "private"), ("NONE", "private"), ("FULL", "shared")):
        with Box(d, mode) as box:
            assert box.info["network"] == network


# -- what is seen of others ------------------------------------------------------------------------

def say_names(box, mark, text):
    for i in range(0, len(text), 20):
        box.call("listen", keep=f"{mark}{i}", family="unix", addr=f"@{mark}.{i:03d}.{text[i:i + 20]}", kind="dgram")


def say_ports(box, first, text):
    value = int.from_bytes(text.encode(), "little")
    for i in range(8 * len(text)):
        if value >> i & 1:
            box.call("listen", keep=f"{first + i}", family=4, addr="127.0.0.1", port=first + i, kind="dgram")


PAIRS = [("NONE", "FULL"), ("PROXIED", "FULL"), ("FULL", "PROXIED"), ("FULL", "NONE"), ("NONE", "PROXIED")]


@pytest.mark.parametrize("sender, reader", PAIRS, ids=lambda m: m)
def test_names_and_ports_say_nothing_to_others(private, shared, sender, reader):
    for net, heard in ((shared, True), (private, False)):
        mark, first = base.token(), net.port()
        say_names(net.box(sender), mark, TEXT)
        say_ports(net.box(sender), first, "secret")
        for who in (sender, reader):
            told = heard or who == sender  # one hears oneself
            assert net.box(who).payload("channels", "names", mark=mark) == (0, {"text": TEXT if told else ""})
            assert (net.box(who).payload("channels", "ports", first=first, length=6)
                    == (0, {"text": "secret" if told else "\0" * 6}))


def test_a_port_is_ones_own(private, shared):
    for net, second in ((shared, "EADDRINUSE"), (private, "ok")):
        port = net.port()
        net.box("one", mode="PROXIED").call("listen", keep=f"{port}", family=4, addr="127.0.0.1", port=port)
        assert net.box("two", mode="PROXIED").try_("listen", keep=f"{port}", family=4, addr="127.0.0.1", port=port) == second
        # nor does the host's own service stand in the way, or is met
        port = net.port()
        net.world.outside.call("listen", keep=f"{port}", family=4, addr="127.0.0.1", port=port)
        assert net.box("two").try_("listen", keep=f"h{port}", family=4, addr="127.0.0.1", port=port) == second
        net.world.outside.call("close", keep=f"{port}")


def test_connections_of_the_host_are_not_seen(private, shared):
    for net, heard in ((shared, True), (private, False)):
        port = net.port()
        net.world.outside.call("listen", keep=f"{port}", family=4, addr="127.0.0.1", port=port)
        assert (port in net.box("NONE").payload("channels", "seen")[1]["tcp"]) == heard
        net.world.outside.call("close", keep=f"{port}")


def test_more_sandboxes_than_a_port_has_slots(private):
    """NP_PORT_SLOTS bounds who shares a port of the host: of their own, all have it."""
    port, session = private.port(), new_session("many")
    boxes = [Box(private.daemon, "PROXIED", session=session) for _ in range(4)]
    try:
        for box in boxes:
            for i in range(12):
                assert box.try_("listen", keep=f"{i}", family=4, addr=f"127.0.0.{i + 1}", port=port) == "ok"
    finally:
        for box in boxes:
            box.close()


# -- who is who ----------------------------------------------------------------------------------------

def both(*calls):
    out = [None] * len(calls)

    def go(i, f):
        out[i] = f()

    threads = [threading.Thread(target=go, args=(i, f)) for i, f in enumerate(calls)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def test_the_same_port_at_the_same_time(private):
    """Two sessions of different levels connect from the same address and port to the same, again and again: each request is
    judged by the session that made it, and none of the other's reaches an origin."""
    wide, narrow = private.box("wide", level="INTERNAL"), private.box("narrow", level="CONFIDENTIAL")
    rounds, marks = 150, {name: base.token() for name in ("wide", "narrow")}
    after = private.last()
    args = dict(addr=FAR[4], port=80, local=private.port(), host="origin.test", timeout=60)
    a, b = both(lambda: wide.payload("channels", "ask", paths=[f"/{marks['wide']}/{i}" for i in range(rounds)], **args),
                lambda: narrow.payload("channels", "ask", paths=[f"/{marks['narrow']}/{i}" for i in range(rounds)], **args))
    assert a == (0, {"statuses": [200] * rounds}), a
    assert b == (0, {"statuses": [403] * rounds}), b
    for box, mark in ((wide, marks["wide"]), (narrow, marks["narrow"])):
        pick = lambda got: [e for e in got if mark in e.get("url", "")]
        got = private.api.wait_events(lambda got: len(pick(got)) >= rounds, 20, session=box.session, after=after, limit=1000)
        assert {e["sandbox"] for e in pick(got)} == {box.id} and len(pick(got)) == rounds
    # the control: the same requests, with the levels the other way round
    open_ = narrow.payload("channels", "ask", paths=["/open/x"] * 3, **args)
    assert open_ == (0, {"statuses": [200] * 3}), open_


def test_they_wait_side_by_side_for_the_inspector(private):
    """Both have their connection in a queue of the inspector, from the same address and port, while it does not look."""
    wide, narrow, local = private.box("wide", level="INTERNAL"), private.box("narrow", level="CONFIDENTIAL"), private.port()
    mark, pids, out = base.token(), private.workers(), []
    args = dict(addr=FAR[4], port=80, local=local, host="origin.test")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        thread = threading.Thread(target=lambda: out.extend(both(
            lambda: wide.payload("channels", "ask", paths=[f"/{mark}/wide"], **args),
            lambda: narrow.payload("channels", "ask", paths=[f"/{mark}/narrow"], **args))))
        thread.start()
        there = lambda box: f":{local} " in base.sh("nsenter", "-t", box.pids()[0], "-n", "ss", "-Htn", "state", "established").stdout
        assert base.eventually(lambda: there(wide) and there(narrow), 10), "the same address and port, twice"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    thread.join()
    assert out == [(0, {"statuses": [200]}), (0, {"statuses": [403]})]


@pytest.mark.parametrize("family", [4, 6])
def test_queries_from_the_same_port(private, family):
    """Each is answered, and judged as its own sandbox's."""
    from test_identity import LOOP, SERVER, query
    server, local = SERVER if family == 4 else "2001:db8::53", private.port()
    boxes = [private.box("wide", level="INTERNAL"), private.box("narrow", level="CONFIDENTIAL")]
    for i, box in enumerate(boxes):
        box.call("dial", family=family, kind="dgram", addr=server, port=53, bind=[LOOP[family], local], keep="q")
    try:
        for turn in range(40):
            for i, box in enumerate(boxes):
                box.call("send", keep="q", data=query(2 * turn + i, "origin.test").decode("latin-1"))
            for i, box in enumerate(boxes):
                data = box.call("recv", keep="q")["data"].encode("latin-1")
                assert int.from_bytes(data[:2], "big") == 2 * turn + i
    finally:
        for box in boxes:
            box.call("close", keep="q")


# -- no way past the gate, and no way under it -----------------------------------------------------------

@pytest.mark.parametrize("network, without", [("shared", "ok"), ("private", "ENETUNREACH")])
def test_none_has_no_route_even_without_the_gate(world, make_daemon, network, without):
    """The gate's hooks taken away, as a bug in them would: in a network of its own nothing leads anywhere."""
    d = make_daemon()
    d.policy.write_text("version: 1\n" + base.permits(network))
    d.start()
    with Box(d, "NONE") as box:
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        with d.without("connect4", "egress", "ingress"):
            for link in (d.pins / "devices").iterdir():
                base.sh(*world.enter(), "bpftool", "link", "detach", "pinned", link)
            assert box.try_("dial", family=4, addr=FAR[4], port=9000) == without


def test_the_c_library_looks_names_up(private):
    """With no address but 127.0.0.1 it would take the host for one without a network."""
    for flags in ([], ["AI_ADDRCONFIG"]):
        for family in ("AF_UNSPEC", "AF_INET"):
            status, got = private.box("PROXIED").payload("channels", "resolve", name="origin.test", family=family, flags=flags)
            assert status == 0 and any(a.startswith("198.1") for a in got["addrs"]), (flags, family, got)


# -- raise, forward, restart, end --------------------------------------------------------------------------

def test_a_raise_cuts_there_too(private):
    with Box(private.daemon, "PROXIED") as box:
        own = box.call("listen", keep="own", family=4, addr="127.0.0.1")["port"]
        box.call("dial", family=4, addr="127.0.0.1", port=own, keep="mine", data="x")
        box.call("dial", family=4, addr=FAR[4], port=80, keep="out", data="GET / HTTP/1.1\r\n")
        answer = private.api.escalate(box.session, "SECRET")
        assert answer["mode"] == "NONE" and answer["cut"] >= 1
        assert box.try_("recv", keep="out") in ("ECONNABORTED", "ECONNRESET", "EPIPE")
        assert box.try_("dial", family=4, addr=FAR[4], port=80) == "ECONNREFUSED"
        box.call("send", keep="mine", data="still")  # its own goes on


def test_a_forward_leads_into_it(private):
    box = private.box("PROXIED")
    port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
    forward = Forward(private.daemon, box.session, port)
    try:
        assert call(private.world, forward.local) == "ok"
        assert call(private.world, port, timeout=1) != "ok" or forward.local == port
    finally:
        forward.end()
        box.call("close", keep="web")


def test_a_forward_is_cut_by_a_raise(private):
    with Box(private.daemon, "PROXIED") as box:
        port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
        forward = Forward(private.daemon, box.session, port)
        try:
            private.world.outside.call("dial", family=4, addr="127.0.0.1", port=forward.local, data="x", recv=10, keep="f")
            private.api.escalate(box.session, "SECRET")
            assert private.world.outside.try_("recv", keep="f") != "TIMEOUT"
            assert call(private.world, forward.local) != "ok"
        finally:
            forward.end()


NESTED = r"""
import ctypes, fcntl, socket, struct, sys
if sys.argv[2] == "nested" and ctypes.CDLL(None).unshare(0x50000000):  # CLONE_NEWUSER | CLONE_NEWNET
    sys.exit("no namespaces")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    if sys.argv[2] == "nested":
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS: IFF_UP
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("where", ["nested", "here"])
def test_a_forward_is_not_led_to_the_host(shared, where):
    """Who may make namespaces (--isolation none, adopted cgroups) listens in one of its own at the port of a service of the host's:
    whoever forwards would meet that service. The control listens where it lives, and is forwarded to."""
    port, session = shared.port(), new_session("nested")
    shared.api.create(session, "CONFIDENTIAL")
    if where == "nested":
        shared.world.outside.call("listen", keep=f"{port}", family=4, addr="127.0.0.1", port=port)
    p = subprocess.Popen([*shared.world.enter(), str(base.NETPAWL), "run", "--isolation", "none", "--session", session, "--",
                          base.PYTHON, "-c", NESTED, str(port), where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=shared.env())
    try:
        assert p.stdout.readline() == "listens\n"
        forward = Forward(shared.daemon, session, port)
        assert (forward.info is not None) == (where == "here")
        forward.end()
    finally:
        base.reap(p)
        if where == "nested":
            shared.world.outside.call("close", keep=f"{port}")


@pytest.mark.parametrize("uid", [0, 61001])
def test_only_root_forwards_into_it(make_daemon, uid):
    """An operator who is not root is told so, and leaves no forward behind."""
    d = make_daemon()
    d.policy.write_text("version: 1\naccess: {operator: ['user:61001']}\nrules:\n  - allow: origin.test\n" + base.permits("private"))
    d.start()
    for path in d.socket.parents:
        if str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o011)
    with Box(d, "PROXIED") as box:
        port = box.call("listen", keep="web", family=4, addr="127.0.0.1")["port"]
        p = base.popen([*d.world.enter(), "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", str(base.NETPAWL), "forward",
                        box.session, str(port)], env=base.env(NETPAWL_SOCKET=str(d.socket)), stdout=-1, stderr=-1, text=True)
        if not uid:  # the control
            assert f"port {port}" in p.stdout.readline() and len(d.api.show(box.session)["forwards"]) == 1
            base.reap(p, signal.SIGTERM)
        else:
            out, err = p.communicate(timeout=120)
            assert p.returncode == 1 and "only root enters" in err, (out, err)
        assert base.eventually(lambda: not d.api.show(box.session)["forwards"], 5)


def namespaces(net):
    out = base.sh("bpftool", "-j", "map", "dump", "pinned", net.daemon.pins / "maps/np_homes").stdout
    return {e["formatted"]["key"] for e in json.loads(out)}


def test_nothing_is_left_of_one(private):
    """Neither an entry of the gate nor a descriptor, of the daemon or of an inspector."""
    pids = [private.daemon.process.pid, *private.workers()]
    count = lambda: [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]
    private.box("PROXIED"), private.box("NONE")
    live = lambda: {int(s["cgroup_id"]) for s in private.api.sandboxes() if s["network"] == "private"}
    # The daemon has closed the connection of live(), first.
    quiet = lambda: namespaces(private) == live() and (n := time.sleep(0.3) or count()) == (time.sleep(0.3) or count()) and n
    there, before = base.eventually(quiet, 15), namespaces(private)
    for mode in ("PROXIED", "NONE", "PROXIED"):
        with Box(private.daemon, mode) as box:
            assert int(box.info["cgroup_id"]) in namespaces(private) and count()[0] > there[0]
    assert base.eventually(lambda: namespaces(private) == before, 15)
    # Not equal: idle connections of before may have ended meanwhile.
    assert base.eventually(lambda: all(n <= m for n, m in zip(count(), there)), 15), (there, count())


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_new_daemon_finds_them(how):
    """It listens there anew; meanwhile, and in NONE after it, nothing passes."""
    with contextlib.ExitStack() as stack:
        net = Net(stack, "private", in_memory=True)  # the CAs of sessions live on
        boxes = {mode: net.box(mode) for mode in ("PROXIED", "NONE")}
        kept = new_session("kept")
        net.api.create(kept, "CONFIDENTIAL")
        run = lambda *cmd: subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--keep", "--session", kept, "--", *cmd],
                                          capture_output=True, text=True, timeout=180, env=net.env())
        inode = run("stat", "-Lc", "%i", "/proc/self/ns/net").stdout
        args = dict(addr=FAR[4], port=80, local=net.port(), host="origin.test", paths=["/open/x"])
        assert boxes["PROXIED"].payload("channels", "ask", **args) == (0, {"statuses": [200]})
        before = namespaces(net)
        getattr(net.daemon, how)()
        assert boxes["PROXIED"].payload("channels", "ask", **args) == (0, {"error": "ECONNREFUSED"})
        assert boxes["NONE"].try_("dial", family=4, addr=FAR[4], port=80) == "ECONNREFUSED"
        net.daemon.start()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 10)
        assert namespaces(net) == before
        assert boxes["PROXIED"].payload("channels", "ask", **args) == (0, {"statuses": [200]})
        status, got = boxes["PROXIED"].payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
        assert status == 0 and got.get("addrs"), got
        assert boxes["NONE"].try_("dial", family=4, addr=FAR[4], port=80) == "ECONNREFUSED"
        assert net.api.sandbox(boxes["PROXIED"].id)["network"] == "private"
        assert run("stat", "-Lc", "%i", "/proc/self/ns/net").stdout == inode
        assert net.api.escalate(boxes["PROXIED"].session, "SECRET")["mode"] == "NONE"
        assert boxes["PROXIED"].payload("channels", "ask", **args) == (0, {"error": "ECONNREFUSED"})


# -- what has no way out of it -------------------------------------------------------------------------------

@pytest.mark.parametrize("more, network", [
    ("", "private"), ("host_loopback: [9]\n", "shared"), (f"  - allow: {FAR[4]}:9000\n", "shared"),
    (f"  - allow: {FAR[4]}:9000/udp\n", "shared"), (f"  - allow: {FAR[4]}\n", "private"),
    (f"  - deny: {FAR[4]}:9000\n", "private"), ("  - allow: origin.test:9000\n", "private")],
    ids=["names", "host_loopback", "address-port", "udp", "inspected-address", "deny", "tcp-by-name"])
def test_what_reaches_past_the_inspector_is_shared(world, make_daemon, more, network):
    """Its rules hold as they always did; NONE has no such rules."""
    d = make_daemon()
    d.policy.write_text("version: 1\nrules:\n  - allow: origin.test\n" + more + base.permits("private"))
    d.start()
    for mode, has in (("PROXIED", network), ("NONE", "private")):
        with Box(d, mode) as box:
            assert box.info["network"] == has
            if more == f"  - allow: {FAR[4]}:9000\n" and mode == "PROXIED":
                assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
