# SPDX-License-Identifier: MIT
"""Containers: adopted cgroups in a network namespace of their own, with a device of their own that leads out past the host's IP
stack, over a bridge. No engine here (tests/containers has them): a namespace, a veth pair and a cgroup are all that one is to the
gate. What a control is: the same agent in the same place, before its cgroup is adopted."""
import contextlib
import json
import os
import socket
import time

import pytest

from lib import base, bpf
from lib.box import Adopted, Wired, new_session
from lib.forwards import leads_into
from lib.inspected import Inspected
from lib.world import DEV, FAR, GATE4, GATE6, HOST4, HOST6, PORT, SINK
from test_identity import SERVER, query

LISTED, CALLED = 24500, 24501  # host_loopback, inbound: in the policy
POLICY = f"""version: 1
host_loopback: [{LISTED}]
inbound: [{CALLED}]
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
WILD = {4: "0.0.0.0", 6: "::"}
# What the test does to a cgroup or a namespace itself, or with the privileges of the host's root, it cannot do with a container of an engine:
# tests/containers/test_inside.py and test_engines.py have that.
OURS = pytest.mark.skipif(base.ADOPTED in ("podman", "docker"), reason="an engine makes its containers by itself")


class Net(Inspected):
    def __init__(self, stack, **kw):
        super().__init__(stack, policy=POLICY, bridged=True, **kw)
        self.boxes, self.stack = {}, stack

    def box(self, mode, **kw):
        """One that several tests use."""
        if mode not in self.boxes:
            self.boxes[mode] = Adopted(self.daemon, mode, wired=True)
            self.stack.callback(self.boxes[mode].close)
        return self.boxes[mode]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture
def contained(net):
    """make(mode, wired=..., before=...) -> Adopted, in a namespace of its own unless wired says in which."""
    with contextlib.ExitStack() as stack:
        def make(mode="FULL", wired=True, **kw):
            box = Adopted(net.daemon, mode, wired=wired, **kw)
            stack.callback(box.close)
            return box

        yield make


@pytest.fixture
def alone(net):
    """make(wired) -> an agent there, in no sandbox."""
    with contextlib.ExitStack() as stack:
        def make(wired=None):
            if not wired:
                wired = Wired(net.world)
                stack.callback(wired.close)
            agent = net.world.agent(wired.name)
            stack.callback(net.world.drop, agent)
            agent.wired, agent.addr = wired, wired.addr
            return agent

        yield make


def reach(agent, family, addr, port, kind="stream", timeout=30):
    return agent.try_("dial", family=family, addr=addr, port=port, kind=kind, data="x", recv=10, timeout=timeout)


# -- what has left its device ----------------------------------------------------------------------

class Queue:
    """Of a container's own device: it holds back what has passed every hook there, until it is let go."""

    def __init__(self, net, box, stranger, via):
        """stranger: in the same namespace, and in no sandbox"""
        self.net, self.box, self.stranger, self.mark = net, box, stranger, base.token()
        base.sh("ip", "-n", box.wired.name, "route", "replace", "default", "via", via)
        assert reach(box.agent, 4, FAR[4], 9000, "dgram") == "ok", "the control, and everybody's neighbours are known"
        self.tc("add", "8bit", "1600", "1000000")  # as much as three of these frames, and no more
        for _ in range(20):
            box.call("sendto", family=4, addr=FAR[4], port=9000, data=self.mark.ljust(400), keep="udp")
        # Where they arrive they may have waited for a CPU, too: what left before a raise must not be taken for what leaves after it.
        net.world.settle()
        assert self.came(0) <= 3

    def tc(self, what, rate, burst, limit):
        base.sh("tc", "-n", self.box.wired.name, "qdisc", what, "dev", DEV, "root", "tbf", "rate", rate, "burst", burst, "limit", limit)

    def let_go(self):
        self.tc("change", "10gbit", "10000000", "10000000")
        self.stranger.call("sendto", family=4, addr=FAR[4], port=9000, data="next", keep="udp")  # what comes next is what moves it

    def came(self, since):
        """Not with the kernel's ICMP errors, which wait in the queue as well and quote what came back from the far end."""
        frames = self.net.world.frames(since, self.mark, limit=1000)["frames"]
        return sum(f["mark"] and f["proto"] == 17 for f in frames)


@OURS
@pytest.mark.parametrize("via", [GATE4, HOST4], ids=["bridged", "routed"])
def test_what_waits_between_its_device_and_the_host(net, contained, alone, via):
    """In the queue of its device, or for a CPU that takes it from there: it is judged again where the host receives it, also where the host
    routes, and from there on does not know whose it is."""
    net.world.sysctl(net.world.host, {"net.ipv4.ip_forward": 1})
    try:
        raised, other = (Queue(net, box, alone(box.wired), via) for box in (contained(), contained()))
        net.api.escalate(raised.box.session, "SECRET")
        moment = time.time_ns()
        raised.let_go()
        other.let_go()
        assert base.eventually(lambda: other.came(moment)), "the control: of one that was not raised it leaves"
        assert not base.for_a_while(lambda: raised.came(moment), 0.3)
    finally:
        net.world.sysctl(net.world.host, {"net.ipv4.ip_forward": 0})


@OURS
def test_the_hosts_end_of_a_device_that_comes_later(net, contained):
    box, near, far = contained(), f"{PORT}l", f"{PORT}lc"
    net.world.ip("link", "add", near, "type", "veth", "peer", "name", far)
    try:
        index = json.loads(net.world.ip("-j", "link", "show", near).stdout)[0]["ifindex"]
        pins = net.daemon.pins / "devices"
        assert base.eventually((pins / f"if{index}").exists) and not (pins / f"if{index}-in").exists(), "the control: it leads to nobody"
        net.world.ip("link", "set", far, "netns", box.wired.name)
        assert base.eventually((pins / f"if{index}-in").exists)
    finally:
        net.world.ip("link", "del", near)


# -- three modes ----------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_its_own_device_leads_where_the_mode_says(contained, mode):
    before = []
    ways = [(f, k) for f in (4, 6) for k in ("stream", "dgram")]
    box = contained(mode, before=lambda agent: before.extend(reach(agent, f, FAR[f], 9000, k) for f, k in ways))
    assert before == ["ok"] * 4, "the control"
    assert box.info["network"] == "container"
    for family, kind in ways:
        got = reach(box.agent, family, FAR[family], 9000, kind)
        assert (got == "ok") == (mode == "FULL"), (family, kind, got)
        assert got in ("ok", "ECONNREFUSED")


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_neighbours_are_the_kernels(net, contained, mode):
    """Its sockets for that are of the cgroup that the namespace was made in, the container's: what it says by them is its own, and the
    container is found by others in every mode. What a raw socket of the container's says in the same words is not: it gets none, and
    without the hook that sees to that what it says does not leave."""
    def speaks(agent, comes):
        mark, since = base.token(), time.time_ns()
        solicits = bytes([135] + [0] * 7) + socket.inet_pton(socket.AF_INET6, GATE6) + bytes([253, 4]) + mark.encode().ljust(30, b"\0")
        if agent.try_("hold", keep="raw", family=6, kind="raw", protocol=socket.IPPROTO_ICMPV6) != "ok":
            return "EPERM"
        agent.try_("send", keep="raw", data=solicits.decode("latin-1"), addr=GATE6, family=6)
        agent.call("close", keep="raw")
        return bool(base.for_a_while(lambda: net.world.frames(since, mark, noise=True)["marked"], 30 if comes else 0.3))

    before = []  # a device that has just come may lose its first frames
    box = contained(mode, before=lambda agent: before.append(base.eventually(lambda: speaks(agent, False) is True, 30)))
    assert before == [True], "the control"
    assert speaks(box.agent, False) == "EPERM"
    with net.daemon.without("create", place=f"c{box.info['cgroup_id']}"):
        assert base.eventually(lambda: speaks(box.agent, mode == "FULL") == (mode == "FULL"), 5)
    base.sh("ip", "-n", net.world.far, "-6", "neigh", "flush", "to", box.addr[6])
    net.world.world.try_("sendto", family=6, addr=box.addr[6], port=9)
    known = lambda: "lladdr" in base.sh("ip", "-n", net.world.far, "-6", "neigh", "show", "to", box.addr[6]).stdout
    assert base.eventually(known, 5)
    assert (box.try_("dial", family=6, addr=FAR[6], port=9000) == "ok") == (mode == "FULL")
    assert {e.get("address") for e in box.events() if e["kind"] == "refuse"} <= {GATE6, FAR[6], None}


def ask(box, port, path, **kw):
    return box.payload("channels", "ask", addr=FAR[4], port=80, local=port, host="origin.test", paths=[path], **kw)


def test_requests_are_judged_and_go_out_from_the_host(net):
    """80 is steered to the listener in the container's own namespace, the inspector dials from the host's."""
    box, mark, since, after = net.box("PROXIED"), base.token(), time.time_ns(), net.last()
    assert ask(box, 20001, f"/open/{mark}") == (0, {"statuses": [200]})
    assert ask(box, 20001, f"/closed/{mark}") == (0, {"statuses": [403]})
    out = [f for f in net.world.frames(since, limit=1000)["frames"] if f.get("dport") in (80, 443)]
    assert out and {f["src"] for f in out} == {HOST4}
    events = lambda got: [e for e in got if mark in e.get("url", "")]
    got = events(net.api.wait_events(lambda got: len(events(got)) >= 2, 10, session=box.session, after=after))
    assert {e["sandbox"] for e in got} == {box.id} and len(got) == 2
    # the control: in FULL the same leads straight there, from its own address
    full, since = net.box("FULL"), time.time_ns()
    assert full.try_("dial", family=4, addr=FAR[4], port=80) == "ok"
    assert full.addr[4] in {f.get("src") for f in net.world.frames(since, limit=1000)["frames"]}


def test_answers_come_to_who_asked(net):
    """UDP without connect()."""
    box = net.box("FULL")
    assert box.try_("sendto", family=4, addr=FAR[4], port=9000, data="ask", recv=10) == "ok", "an answer to who asked"
    box.call("listen", keep="u", family=4, addr="0.0.0.0", kind="dgram", port=24999)
    net.world.world.call("sendto", family=4, addr=box.addr[4], port=24999, data="unasked")
    box.call("send", keep="u", data="mine", family=4, addr=FAR[4], port=9000)
    assert base.eventually(lambda: box.call("records", keep="u", mark="mine")["records"], 5)
    assert box.call("records", keep="u", mark="unasked")["records"] == []
    box.call("close", keep="u")


def test_names_by_the_gate(net):
    """Queries go to the DNS gate's socket in the container's namespace, whichever server they name; in FULL to that server."""
    box, full, since = net.box("PROXIED"), net.box("FULL"), time.time_ns()
    status, got = box.payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
    assert status == 0 and all(a.startswith("198.1") for a in got["addrs"]), got
    assert box.payload("channels", "resolve", name="elsewhere.test", family="AF_INET", flags=[])[1].keys() != {"addrs"}
    box.call("dial", family=4, kind="dgram", addr=SERVER, port=53, keep="q", data=query(7, "origin.test").decode("latin-1"))
    answer = box.call("recv", keep="q")["data"].encode("latin-1")
    assert answer[:2] == b"\0\7" and answer[2] & 0x80
    box.call("close", keep="q")
    assert not [f for f in net.world.frames(since, limit=1000)["frames"] if f.get("src") == box.addr[4]]
    since = time.time_ns()
    full.try_("sendto", family=4, addr=FAR[4], port=53, data=query(8, "origin.test").decode("latin-1"))
    assert base.eventually(lambda: [f for f in net.world.frames(since, limit=1000)["frames"] if f.get("dport") == 53], 5), "the control"


# -- a raise, with traffic running ------------------------------------------------------------------

@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_a_raise_cuts_at_once(net, contained, level):
    box, mark = contained("FULL"), base.token()
    for keep, kind in (("tcp", "stream"), ("udp", "dgram")):
        box.call("dial", family=4, addr=FAR[4], port=SINK, kind=kind, keep=keep)
        box.call("stream", keep=keep, mark=mark, size=1000, limit_s=60, pause=0.001)
    box.call("hammer", keep="h", family=4, addr=FAR[4], port=9000, limit_s=60)
    since = time.time_ns()
    assert base.eventually(lambda: net.world.frames(since, mark)["marked"] > 20, 10), "the control"
    answer = net.api.escalate(box.session, level)
    acknowledged = time.time_ns()
    assert answer["cut"] >= 2
    for keep in ("tcp", "udp"):
        ended = box.call("wait", keep=keep)
        assert ended["ended"], f"{keep} hangs"
    time.sleep(0.3)
    late = [f for f in net.world.frames(acknowledged, mark, limit=1000)["frames"] if f.get("src") == box.addr[4]]
    assert late == []
    box.call("hammer_stop", keep="h")
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert net.api.health()["cut_late"] == 0
    if level == "CONFIDENTIAL":
        assert ask(box, 20002, "/open/x") == (0, {"statuses": [200]}), "and the inspector is there already"


# -- who is where: the pod, the host, other containers ----------------------------------------------------

@pytest.mark.parametrize("mode", ["FULL", "NONE"])
def test_containers_of_one_pod_are_two_sandboxes(net, contained, alone, mode):
    one = contained(mode)
    port = one.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]
    # the control: two that nobody has adopted, in the same place
    a, b = alone(one.wired), alone(one.wired)
    free = a.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]
    assert reach(b, 4, "127.0.0.1", free) == "ok"
    two = contained(mode, wired=one.wired)
    for addr in ("127.0.0.1", one.addr[4]):
        assert reach(one.agent, 4, addr, port) == "ok"
        assert reach(two.agent, 4, addr, port) == "ECONNREFUSED"
        assert reach(two.agent, 4, addr, free) == "ECONNREFUSED", "nor one who is in no sandbox"
        assert reach(a, 4, addr, port, timeout=1) != "ok"
    assert len({json.dumps(h) for h in homes(net, one, two)}) == 1


def test_containers_of_one_pod_are_told_apart(net, contained):
    """Steered to the same listener, each is judged as who it is; the first one to go takes nothing from the other."""
    one = contained("PROXIED")
    two = contained("PROXIED", wired=one.wired)
    for i, box in enumerate((one, two)):
        mark, after = base.token(), net.last()
        assert ask(box, 20010 + i, f"/open/{mark}") == (0, {"statuses": [200]})
        events = lambda got: [e for e in got if mark in e.get("url", "")]
        got = events(net.api.wait_events(lambda got: events(got), 10, session=box.session, after=after))
        assert [e["sandbox"] for e in got] == [box.id]
    net.api.escalate(two.session, "SECRET")
    assert ask(two, 20012, "/open/x")[1] == {"error": "ECONNREFUSED"}
    two.close()
    assert ask(one, 20013, "/open/x") == (0, {"statuses": [200]})


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_the_host_is_not_reached_over_the_bridge(net, contained, mode):
    """By its addresses on the bridge, which to a container lie beyond its own device; but for host_loopback:."""
    port = {f: net.world.outside.call("listen", keep=f"b{f}", family=f, addr=WILD[f])["port"] for f in (4, 6)}
    net.world.outside.call("listen", keep="listed", family=4, addr="0.0.0.0", port=LISTED)
    before, host = [], {4: HOST4, 6: HOST6}
    try:
        box = contained(mode, before=lambda agent: before.extend(reach(agent, f, host[f], port[f]) for f in (4, 6)))
        assert before == ["ok", "ok"], "the control"
        for family in (4, 6):
            for kind in ("stream", "dgram"):
                assert reach(box.agent, family, host[family], port[family], kind) == "ECONNREFUSED"
        assert (reach(box.agent, 4, HOST4, LISTED) == "ok") == (mode != "NONE")
        assert {e["reason"] for e in box.refusals()} <= {"host_loopback", "mode_none"}
    finally:
        for keep in ("b4", "b6", "listed"):
            net.world.outside.call("close", keep=keep)


@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_nobody_calls_it(net, contained, alone, kind):
    """Other containers, adopted or not, the host and who is beyond it; but for inbound: in FULL. Nobody answers them at all."""
    box, other, stranger, target = contained("FULL"), net.box("FULL"), alone(), alone()
    port = target.call("listen", keep="l", family=4, addr="0.0.0.0", kind=kind)["port"]
    callers = [other.agent, stranger, net.world.outside, net.world.world]
    assert [reach(c, 4, target.addr[4], port, kind) for c in callers] == ["ok"] * 4, "the control"
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0", kind=kind)["port"]
    box.call("listen", keep="in", family=4, addr="0.0.0.0", kind=kind, port=CALLED)
    for caller in callers:
        assert reach(caller, 4, box.addr[4], port, kind, 0.5) == "TIMEOUT"
        if kind == "stream" or caller is not net.world.outside:  # a datagram to a port of the host's is none for it
            assert reach(caller, 4, box.addr[4], CALLED, kind) == "ok"
    assert [r["data"] for r in box.call("records", keep="l")["records"]] == []
    net.api.escalate(box.session, "CONFIDENTIAL")
    for caller in callers:
        assert reach(caller, 4, box.addr[4], CALLED, kind, 0.5) == "TIMEOUT"


def test_unix_sockets_of_the_host(net, contained):
    path, before = str(net.world.dir / base.token()), []
    net.world.outside.call("listen", keep="unix", family="unix", addr=path)
    try:
        box = contained("FULL", before=lambda agent: before.append(agent.try_("dial", family="unix", addr=path)))
        assert before == ["ok"], "the control"
        assert box.try_("dial", family="unix", addr=path) == "ECONNREFUSED"
        box.call("listen", keep="own", family="unix", addr="@" + base.token())
    finally:
        net.world.outside.call("close", keep="unix")


def listeners(net, box):
    cookie, = homes(net, box)
    entry = next(e for e in bpf.dump(net.daemon, "np_namespaces") if e["key"] == cookie["netns"])
    return entry["value"]


def homes(net, *boxes):
    ids = [int(box.info["cgroup_id"]) for box in boxes]
    return [e["value"] for i in ids for e in bpf.dump(net.daemon, "np_homes") if e["key"] == i]


def test_listeners_are_for_whom_the_gate_leads_there(net, contained, alone):
    """In no other namespace is one; and whoever is in the same one without being a sandbox has no flow, and gets nothing."""
    box = contained("PROXIED")
    port = listeners(net, box)["tcp"][0]["port"]
    assert port
    stranger, elsewhere = alone(box.wired), net.box("FULL")
    asked = "GET http://origin.test/open/x HTTP/1.1\r\nHost: origin.test\r\n\r\n"
    got = stranger.answer("dial", dict(family=4, addr="127.0.0.1", port=port, data=asked, recv=100), 120)
    assert not got.get("data"), got
    assert elsewhere.try_("dial", family=4, addr="127.0.0.1", port=port) == "ECONNREFUSED"
    assert net.world.outside.try_("dial", family=4, addr=box.addr[4], port=port) == "ECONNREFUSED"
    assert ask(box, 20020, "/open/x") == (0, {"statuses": [200]}), "the control"


# -- leaving, and other ways around -------------------------------------------------------------------------

@OURS
@pytest.mark.parametrize("how, mode", [("unshare", "FULL"), ("user", "FULL"), ("host", "FULL"), ("other", "FULL"),
                                       ("host", "PROXIED"), ("other", "NONE")])
def test_who_leaves_the_namespace_gets_no_socket(net, contained, alone, how, mode):
    """Nobody listens for it there, looks for its sockets or guards the devices. One that may enter any namespace is root."""
    other = alone()
    path = {"host": f"/run/netns/{net.world.host}", "other": f"/run/netns/{other.wired.name}"}.get(how, how)
    args = dict(how=path, **({} if path == how else dict(addr=FAR[4], port=9000)))
    before = []
    # as deep as sandboxes of netpawl run are, where others are not
    box = contained(mode, above="engine" if how == "host" else None, before=lambda agent: before.append(agent.payload("leave", "leave", **args)))
    assert before[0][1]["socket"] == "ok" and before[0][1].get("connect", "ok") == "ok", f"the control: {before}"
    status, got = box.payload("leave", "leave", **args)
    assert status == 0 and got["socket"] == "EPERM", got
    assert got["at"] == before[0][1]["at"] or path == how
    assert box.refusals("left_netns")


def test_who_has_left_already_is_not_adopted(net, alone):
    """A process, or a socket, in another namespace than the others."""
    folder, agent, other = base.cgroup_make("left"), alone(), alone()
    session = new_session("left")
    adopt = lambda: net.api.ask("POST", "/v1/sandboxes", {"session": session, "cgroup": str(folder)})
    try:
        for a in (agent, other):
            (folder / "cgroup.procs").write_text(str(a.process.pid))
        status, answer = adopt()
        assert (status, answer["error"]) == (409, "foreign_netns"), answer
        (base.cgroup_mount() / "cgroup.procs").write_text(str(other.process.pid))
        code = ("import ctypes, os, socket, sys\n"
                f"home = os.open('/proc/self/ns/net', os.O_RDONLY)\nctypes.CDLL(None).setns(os.open('/run/netns/{net.world.host}', 0), 0x40000000)\n"
                "s = socket.socket()\nctypes.CDLL(None).setns(home, 0x40000000)\nprint('has', flush=True)\nsys.stdin.read()\n")
        p = base.popen(["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh", *net.world.enter(agent.wired.name),
                        base.PYTHON, "-c", code], stdin=-1, stdout=-1)
        try:
            assert p.stdout.readline() == b"has\n"
            status, answer = adopt()
            assert (status, answer["error"]) == (409, "held_sockets") and "another network namespace" in answer["detail"], answer
        finally:
            base.reap(p)
        status, answer = adopt()
        assert status == 201 and answer["network"] == "container", answer
    finally:
        (base.cgroup_mount() / "cgroup.procs").write_text(str(agent.process.pid))
        base.cgroup_destroy(folder)


@pytest.mark.parametrize("late", [False, True], ids=["from the start", "later"])
def test_frames_past_the_ip_stack(net, contained, late):
    """AF_PACKET: np_device is on the container's devices, and on one that comes later."""
    box, dev = contained("FULL"), DEV
    if late:
        dev, name = "late0", f"{PORT}x"
        net.world.ip("link", "add", name, "type", "veth", "peer", "name", dev, "netns", box.wired.name)
        net.world.ip("link", "set", name, "master", DEV, "up")
        base.sh("ip", "-n", box.wired.name, "link", "set", dev, "up")
        net.world.await_port(name)
    pinned = lambda: len(pins(net, box))
    assert base.eventually(lambda: pinned() == (3 if late else 2), 10), pins(net, box)
    for through in (True, False):  # the first is the control: in FULL it may speak what it likes
        if not through:
            net.api.escalate(box.session, "SECRET")
        mark = base.token()
        with net.world.watch(mark) as watch:
            status, got = box.payload("egress", "packet", family=4, addr=FAR[4], port=9000, mark=mark, dev=dev)
        assert status == 0 and set(got["done"]) == {"sent" if through else "ENOBUFS"}, got
        assert watch.carried() if through else not watch.marked


def pins(net, box):
    cookie, = homes(net, box)
    return sorted(p.name for p in (net.daemon.pins / "devices").iterdir() if p.name.startswith(f"n{cookie['netns']}-"))


# -- from its adoption to its end -----------------------------------------------------------------------------

def test_a_forward_leads_into_it(net):
    assert leads_into(net, net.box("PROXIED"))


def test_bpftool_says_which(net, contained):
    box = contained("FULL")
    home, = homes(net, box)
    assert home["bound"] == 1
    addrs = [e["key"] for e in bpf.dump(net.daemon, "np_host_addrs") if e["key"]["netns"] == home["netns"]]
    assert len(addrs) >= 4, "loopback's and its own, of both families"
    assert pins(net, box) == sorted(f"n{home['netns']}-if{i}" for i in indexes(box))


def indexes(box):
    out = base.sh(*box.enter(), "ip", "-o", "link").stdout
    return [int(line.split(":")[0]) for line in out.splitlines()]


@OURS
def test_nothing_is_left_of_one(net, contained):
    """Neither an entry of the gate nor a pin, nor a descriptor, of the daemon or of an inspector; nor a program on its device."""
    pids = [net.daemon.process.pid, *net.workers()]
    count = lambda: [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]
    quiet = lambda: (n := time.sleep(0.3) or count()) == (time.sleep(0.3) or count()) and n
    maps = lambda: {m: len(bpf.dump(net.daemon, m)) for m in ("np_namespaces", "np_homes", "np_host_addrs", "np_peers")}
    net.box("PROXIED"), net.box("FULL")
    live = lambda: len([s for s in net.api.sandboxes() if s["network"] == "container"])
    assert base.eventually(lambda: maps()["np_homes"] == live()), "those of earlier tests are gone"
    there, before = base.eventually(quiet, 15), maps()
    devices = len(list((net.daemon.pins / "devices").iterdir()))
    box = contained("FULL")
    assert box.try_("sendto", family=4, addr=FAR[4], port=9000, data="x", recv=10) == "ok"
    assert maps()["np_homes"] == before["np_homes"] + 1 and count()[0] > there[0]
    assert len(pins(net, box)) == 2
    net.api.escalate(box.session, "CONFIDENTIAL")
    assert ask(box, 20030, "/open/x") == (0, {"statuses": [200]})
    cgroup = box.cgroup
    box.close()
    assert not cgroup.exists()
    assert base.eventually(lambda: maps() == before, 15), (before, maps())
    # Not equal: idle connections of before may have ended meanwhile.
    assert base.eventually(lambda: all(n <= m for n, m in zip(count(), there)), 15), (there, count())
    # the host's own pins come and go with the bridge's ports
    assert base.eventually(lambda: len(list((net.daemon.pins / "devices").iterdir())) <= devices, 10)


@OURS
def test_a_new_daemon_finds_them():
    """It listens there anew; meanwhile the gate holds, FULL is FULL, and in NONE nothing passes. A device that came meanwhile is
    guarded then, and one that left the namespace is refused as before."""
    with contextlib.ExitStack() as stack:
        net = Net(stack, in_memory=True)
        boxes = {mode: net.box(mode) for mode in ("FULL", "PROXIED", "NONE")}
        two = Adopted(net.daemon, "PROXIED", wired=boxes["PROXIED"].wired)
        stack.callback(two.close)
        assert ask(boxes["PROXIED"], 20040, "/open/x") == (0, {"statuses": [200]})
        before = {box.id: homes(net, box) for box in (*boxes.values(), two)}
        net.daemon.kill()
        assert ask(boxes["PROXIED"], 20041, "/open/x") == (0, {"error": "ECONNREFUSED"})
        assert boxes["NONE"].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert reach(boxes["FULL"].agent, 4, FAR[4], 9000) == "ok"
        assert boxes["FULL"].payload("leave", "leave", how="user")[1]["socket"] == "EPERM"
        net.daemon.start()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 10)
        assert {box.id: homes(net, box) for box in (*boxes.values(), two)} == before
        for box in (boxes["PROXIED"], two):
            assert ask(box, 20042, "/open/x") == (0, {"statuses": [200]})
            assert net.api.sandbox(box.id)["network"] == "container"
        status, got = boxes["PROXIED"].payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
        assert status == 0 and got.get("addrs"), got
        assert boxes["NONE"].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        boxes["FULL"].call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
        assert net.api.escalate(boxes["FULL"].session, "SECRET")["cut"] == 1
        assert boxes["FULL"].try_("recv", keep="c") in ("ECONNABORTED", "ECONNRESET")
        assert len(pins(net, boxes["FULL"])) == 2


# -- started again ------------------------------------------------------------------------------------------

class Restarted:
    """A cgroup that is named as an engine names one, with an agent in it. again() is what an engine does at a restart: the cgroup goes, a
    new one of the same name comes, and a process in it, in a network namespace."""

    def __init__(self, net, stack, mode="FULL"):
        self.net, self.name = net, f"docker-{os.urandom(32).hex()}.scope"
        self.box = Adopted(net.daemon, mode, wired=True, above=self.name)
        self.session, self.wired, self.path = self.box.session, self.box.wired, self.box.cgroup
        stack.callback(self.close)
        self.agent = None

    def stop(self):
        self.net.world.drop(self.agent or self.box.agent)
        assert base.eventually(lambda: not base.cgroup_pids(self.path), 5)
        self.path.rmdir()

    def start(self):
        self.path.mkdir()
        self.agent = self.net.world.agent(self.wired.name)
        (self.path / "cgroup.procs").write_text(str(self.agent.process.pid))
        return self.agent

    def sandboxes(self):
        return [s for s in self.net.api.sandboxes(self.session) if s["cgroup"] == str(self.path)]

    def again(self):
        """What it is then, when the gate knows where it lives."""
        number = os.stat(self.path).st_ino
        pick = lambda: [s for s in self.sandboxes() if int(s["cgroup_id"]) == number and s["network"] == "container"]
        assert base.eventually(pick, 20), self.net.daemon.text()[-2000:]
        return pick()[0]

    def close(self):
        if self.agent:
            self.net.world.drop(self.agent)
        self.box.close()


@pytest.fixture
def restarted(net):
    with contextlib.ExitStack() as stack:
        yield lambda mode="FULL": Restarted(net, stack, mode)


@OURS
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_one_that_is_started_again_is_a_sandbox_again(net, restarted, alone, mode):
    """By the daemon itself, whoever started it: the same session, the mode of before, its own namespace."""
    c = restarted(mode)
    stranger = alone(c.wired)
    before, after = c.box.id, net.last()
    c.stop()
    assert base.eventually(lambda: not c.sandboxes(), 10)
    agent, info = c.start(), c.again()
    assert info["sandbox"] != before and info["mode"] == mode and info["adopted"]
    got = reach(agent, 4, FAR[4], 9000)
    assert got == ("ok" if mode == "FULL" else "ECONNREFUSED")
    assert reach(stranger, 4, FAR[4], 9000) == "ok", "the control"
    if mode == "PROXIED":
        status, got = agent.payload("channels", "ask", addr=FAR[4], port=80, local=20050, host="origin.test", paths=["/open/x"])
        assert (status, got) == (0, {"statuses": [200]})
    event, = net.api.events(session=c.session, reason="container_restarted", after=after)
    assert event["sandbox"] == info["sandbox"]
    # and once more, higher than before
    net.api.escalate(c.session, "SECRET")
    c.stop()
    agent = c.start()
    assert c.again()["mode"] == "NONE"
    assert reach(agent, 4, FAR[4], 9000) == "ECONNREFUSED"


@OURS
def test_one_that_comes_back_with_what_the_gate_cannot_govern(net, restarted):
    """It is confined all the same, and somebody is told; when it lets go, it is whole."""
    c = restarted("NONE")
    c.stop()
    assert base.eventually(lambda: not c.sandboxes(), 10)
    with contextlib.ExitStack() as stack:
        agent = net.world.agent(c.wired.name)
        stack.callback(net.world.drop, agent)
        agent.call("dial", family=4, addr=FAR[4], port=9000, kind="dgram", keep="held")
        c.path.mkdir()
        (c.path / "cgroup.procs").write_text(str(agent.process.pid))
        c.agent = agent
        assert base.eventually(lambda: reach(agent, 4, FAR[4], 9000) == "ECONNREFUSED", 15), "confined before it is looked at"
        pick = lambda got: [e for e in got if e["reason"] in ("container_outside", "placed_sockets")]
        told = pick(net.api.wait_events(pick, 30, session=c.session))
        assert told and "made outside the cgroup" in told[0]["text"], told


@OURS
def test_an_operator_takes_it_back(net, restarted):
    """Removed by hand, or its session ended: what comes at the same place is nobody's."""
    c = restarted("FULL")
    c.stop()
    assert base.eventually(lambda: not c.sandboxes(), 10)
    net.api.end(c.session)
    agent = c.start()
    time.sleep(1.5)  # longer than the sweep
    assert not c.sandboxes() and reach(agent, 4, FAR[4], 9000) == "ok"


@OURS
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_one_that_is_started_again_while_nobody_looks(how):
    """The next daemon awaits what stopped before, and finds what was started meanwhile."""
    with contextlib.ExitStack() as stack:
        net = Net(stack, in_memory=True)
        early, late = Restarted(net, stack, "NONE"), Restarted(net, stack, "PROXIED")
        early.stop()
        assert base.eventually(lambda: not early.sandboxes(), 10)
        getattr(net.daemon, how)()
        late.stop()
        agents = [late.start()]
        assert reach(agents[0], 4, FAR[4], 9000) == "ok", "the control: without a daemon, and without a hook, it is outside"
        net.daemon.start()
        agents.append(early.start())
        for c, agent in zip((late, early), agents):
            c.again()
            assert reach(agent, 4, FAR[4], 9000) == "ECONNREFUSED"
