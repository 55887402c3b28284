# SPDX-License-Identifier: MIT
"""sandbox: network: nat. A sandbox that starts in FULL has a network namespace of its own with a way out, which the host forwards and
masquerades: it gets out as a shared one does, is raised as one, and meets neither the host nor another sandbox by it."""
import contextlib
import json
import subprocess
import time

import pytest

from lib import base, kernels
from lib.box import Box, new_session
from lib.daemon import Daemon
from lib.forwards import leads_into
from lib.world import FAR, HOST4, HOST6
from test_own_network import Net, namespaces

FORWARDS = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
MOST = 8192  # NP_NAT_CONNECTIONS


class Nat(Net):
    def __init__(self, stack, **kw):
        super().__init__(stack, kw.pop("network", "nat"), **kw)
        self.world.sysctl(self.world.host, FORWARDS)

    def devices(self):
        return [d["ifname"] for d in json.loads(self.world.ip("-j", "link").stdout) if d["ifname"].startswith("npnat")]

    def nft(self, *words):
        return subprocess.run([*self.world.enter(), "nft", *words], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def nat():
    with contextlib.ExitStack() as stack:
        yield Nat(stack)


def own(box, family):
    """Its address beside loopback's."""
    got = json.loads(base.sh("nsenter", "-t", box.pids()[0], "-n", "ip", "-j", "addr", "show", "dev", "eth0").stdout)
    return next(a["local"] for a in got[0]["addr_info"] if a["family"] == ("inet" if family == 4 else "inet6"))


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_it_gets_out(nat, family, kind):
    """By the host's address: nobody outside sees its own."""
    box = nat.box("FULL")
    assert box.info["network"] == "nat"
    with nat.world.watch() as seen:
        assert box.try_("dial", family=family, kind=kind, addr=FAR[family], port=9000, data="hello", recv=5) == "ok"

    assert seen.something() and {f["src"] for f in seen.frames if "src" in f} <= {HOST4, HOST6}


def test_it_is_its_own(nat):
    """A port of the host's and of another sandbox is free there; of the host's devices it sees none but its end of the pair."""
    one, two, port = nat.box("FULL"), nat.box("two", mode="FULL"), nat.port()
    nat.world.outside.call("listen", keep=f"{port}", family=4, addr="0.0.0.0", port=port)
    for box in (one, two):
        assert box.try_("listen", keep=f"{port}", family=4, addr="0.0.0.0", port=port) == "ok"
        assert box.payload("channels", "seen")[1]["devices"] == ["lo", "eth0"]
        assert box.try_("dial", family=4, addr="127.0.0.1", port=port) == "ok"
        assert box.try_("dial", family=4, addr=own(box, 4), port=port) == "ok"
    assert own(one, 4) != own(two, 4) and own(one, 6) != own(two, 6)
    nat.world.outside.call("close", keep=f"{port}")


def test_the_host_and_other_sandboxes_are_closed(nat):
    """By every address that either has; with the host's rules flushed, too."""
    one, two, port = nat.box("FULL"), nat.box("two", mode="FULL"), nat.port()
    nat.world.outside.call("listen", keep=f"a{port}", family=4, addr="0.0.0.0", port=port)
    nat.world.outside.call("listen", keep=f"b{port}", family=6, addr="::", port=port)
    for kind in ("stream", "dgram"):
        two.call("listen", keep=f"t{kind}", family=4, addr="0.0.0.0", port=port + 1, kind=kind)
        two.call("listen", keep=f"u{kind}", family=6, addr="::", port=port + 1, kind=kind)
    since = time.time_ns()
    attempts = [(4, HOST4, port), (6, HOST6, port), (4, own(two, 4), port + 1), (6, own(two, 6), port + 1)]
    for flushed in (False, True):
        if flushed:
            assert nat.nft("flush", "ruleset").returncode == 0
        for family, addr, to in attempts:
            assert one.try_("dial", family=family, addr=addr, port=to, timeout=1) == "ECONNREFUSED", (addr, flushed)
            assert one.try_("dial", family=family, kind="dgram", addr=addr, port=to, data="x", recv=1, timeout=0.2) != "ok"
    # the host calls in vain, too
    assert nat.world.outside.try_("dial", family=4, addr=own(two, 4), port=port + 1, timeout=0.3) != "ok"
    assert not [r for r in two.call("records", since=since)["records"]]
    for keep in (f"a{port}", f"b{port}"):
        nat.world.outside.call("close", keep=keep)
    # the next one puts the rules back
    with Box(nat.daemon, "FULL") as box:
        assert box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ok"
    assert one.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ok"


def sources(net, watch):
    return {f["src"] for f in net.world.frames(watch.since, limit=400000)["frames"] if f.get("dport") == 9000}


@pytest.mark.parametrize("words", ["flush ruleset", "delete table inet netpawl", "flush chain inet netpawl leaving",
                                   "flush chain inet netpawl leaves_as_host"])
def test_rules_that_somebody_flushes_are_put_back(nat, words):
    """Within a second, and nothing leaves with an address of its own meanwhile."""
    box, after = nat.box("FULL"), nat.last()
    whole = nat.nft("-t", "list", "table", "inet", "netpawl").stdout
    assert whole.count("comment") == 11
    with nat.world.watch() as seen:
        box.call("hammer", keep="h", family=4, addr=FAR[4], port=9000, kind="dgram", pause=0.001, limit_s=60)
        try:
            assert nat.nft(*words.split()).returncode == 0
            assert base.eventually(lambda: nat.nft("-t", "list", "table", "inet", "netpawl").stdout == whole, 10)
            assert nat.api.wait_events(len, after=after, reason="mended")
        finally:
            box.call("hammer_stop", keep="h")
    assert sources(nat, seen) <= {HOST4}
    assert box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ok"
    assert nat.api.health()["status"] == "ok"


def test_without_the_rules_nothing_leaves():
    """While there is no daemon to put them back. The control: without np_device, which drops it, a packet has the sandbox's address."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        box = net.box("FULL")
        send = lambda: [box.try_("sendto", family=4, addr=FAR[4], port=9000, data=base.token()) for _ in range(5)]
        with net.world.watch() as seen:
            send()
        assert sources(net, seen) == {HOST4}
        net.daemon.kill()
        assert net.nft("flush", "ruleset").returncode == 0
        with net.world.watch() as seen:
            send()
        assert sources(net, seen) == set()
        uplink = json.loads(net.world.ip("-j", "link", "show", "npv0").stdout)[0]["ifindex"]
        base.sh(*net.world.enter(), "bpftool", "link", "detach", "pinned", net.daemon.pins / "devices" / f"if{uplink}")
        with net.world.watch() as seen:
            send()
        assert sources(net, seen) == {own(box, 4)}, "the control"


def test_nobody_from_outside_calls_it(nat):
    """Not even who routes to its address: the far side does, as a neighbour of the host would."""
    box, port = nat.box("FULL"), nat.port()
    box.call("listen", keep="web", family=4, addr="0.0.0.0", port=port)
    base.sh("ip", "-n", nat.world.far, "route", "replace", own(box, 4), "via", HOST4)
    since = time.time_ns()
    for addr in (own(box, 4), HOST4):
        assert nat.world.world.try_("dial", family=4, addr=addr, port=port, timeout=0.5) in ("TIMEOUT", "ETIMEDOUT", "ECONNREFUSED")
    assert not box.call("records", keep="web", since=since)["records"]
    box.call("close", keep="web")


def test_a_source_of_its_own_choice(nat):
    """An address that is not its own is refused at the bind."""
    box = nat.box("FULL")
    for addr in (HOST4, FAR[4], "100.127.255.254"):
        assert box.try_("dial", family=4, addr=FAR[4], port=9000, bind=[addr, 0]) in ("EPERM", "EADDRNOTAVAIL", "EACCES")


FLOOD = r"""
import socket, sys, threading
mark, tcp, udp = sys.argv[1].encode(), (sys.argv[2], int(sys.argv[3])), (sys.argv[2], int(sys.argv[4]))
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
def stream():
    s = socket.create_connection(tcp)
    try:
        while True:
            s.sendall(mark * 64)
    except OSError:
        pass
def datagrams():
    s = socket.socket(family, socket.SOCK_DGRAM)
    for _ in range(10 ** 7):
        try:
            s.sendto(mark, udp)
        except OSError:
            pass
for target in (stream, datagrams, datagrams):
    threading.Thread(target=target, daemon=True).start()
print("going", flush=True)
threading.Event().wait(120)
"""


@pytest.mark.parametrize("level, mode", [("SECRET", "NONE"), ("INTERNAL", "PROXIED")])
@pytest.mark.parametrize("family", [4, 6])
def test_a_raise_with_traffic_running(nat, family, level, mode):
    """Not a byte reaches the far side after the acknowledgement, whatever the host's table of connections still says; what PROXIED
    lets through goes by the inspector."""
    session, mark, world = new_session("flood"), base.token(), nat.world
    nat.api.create(session, "PUBLIC")
    p = nat.spawn(base.PYTHON, "-c", FLOOD, mark, FAR[family], 9101, 9000, session=session, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "going\n"
        since = time.time_ns()
        assert base.eventually(lambda: world.frames(since, mark)["marked"] > 20, 20), "the control"
        assert nat.api.sandboxes(session)[0]["network"] == "nat"
        answer = nat.api.escalate(session, level)
        moment = time.time_ns()
        assert answer["mode"] == mode and answer["cut"] >= 1
        time.sleep(0.5)
        # not the kernel's "nobody is there any more" to what the far side still echoes, which quotes that
        late = [f for f in world.frames(moment, mark, limit=1000)["frames"] if f["mark"] and f.get("proto") not in (1, 58)]
        assert not late
    finally:
        base.reap(p)


def test_raised_it_is_led_to_the_inspector(nat):
    """The listeners are in there before anybody is."""
    with Box(nat.daemon, "FULL") as box:
        args = dict(addr=FAR[4], port=80, local=nat.port(), host="origin.test")
        assert nat.api.escalate(box.session, "CONFIDENTIAL")["mode"] == "PROXIED"
        ask = lambda *paths: box.payload("channels", "ask", paths=list(paths), **args)
        assert ask("/open/x", "/else") == (0, {"statuses": [200, 403]})
        status, got = box.payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
        assert status == 0 and any(a.startswith("198.1") for a in got["addrs"]), got
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert nat.api.escalate(box.session, "SECRET")["mode"] == "NONE"
        assert ask("/open/x") == (0, {"error": "ECONNREFUSED"})


def test_what_waits_is_judged_again(nat):
    """Without the hooks of the cgroup, as a bug in them would: the devices' programs refuse, in there and where the host takes it.
    The control has neither, and gets out."""
    with Box(nat.daemon, "FULL") as box:
        index = next(iter(nat.devices()[-1:]))
        nat.api.escalate(box.session, "SECRET")
        dial = lambda: box.try_("dial", family=4, addr=FAR[4], port=9000, timeout=1)
        links = {e.name: e for e in (nat.daemon.pins / "devices").iterdir()}
        inside = [e for name, e in links.items() if name.startswith("n")]
        number = json.loads(nat.world.ip("-j", "link", "show", index).stdout)[0]["ifindex"]
        ways_in = [e for name, e in links.items() if name == f"if{number}-in"]
        assert inside and len(ways_in) == 1
        with nat.daemon.without("connect4", "egress", "ingress"):
            assert dial() != "ok"
            for link in inside:
                base.sh(*nat.world.enter(), "bpftool", "link", "detach", "pinned", link)
            assert dial() != "ok", "the way in"
            base.sh(*nat.world.enter(), "bpftool", "link", "detach", "pinned", ways_in[0])
            assert dial() == "ok", "the control"


def test_a_forward_leads_into_it(nat):
    assert leads_into(nat, nat.box("FULL"))


def test_nothing_is_left_of_one(nat):
    nat.box("FULL")
    there, before = nat.devices(), namespaces(nat)
    routes = lambda: nat.world.ip("route").stdout + nat.world.ip("-6", "route").stdout + nat.world.ip("neigh").stdout
    box = Box(nat.daemon, "FULL")
    new = set(nat.devices()) - set(there)
    assert len(new) == 1 and next(iter(new)) in routes()
    box.close()
    assert base.eventually(lambda: set(nat.devices()) == set(there) and namespaces(nat) == before, 15)
    assert next(iter(new)) not in routes()
    assert base.eventually(lambda: len([e for e in (nat.daemon.pins / "devices").iterdir() if e.name.endswith("-in")]) == len(there), 5)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_new_daemon_keeps_it(how):
    """It goes on while there is none, and afterwards; what ended meanwhile is removed, and with the last the host's rules are."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, in_memory=True)
        box, ended = net.box("FULL"), Box(net.daemon, "FULL")
        dial = lambda: box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1)
        out = box.call("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1, keep="out")
        assert dial() == "ok" and len(net.devices()) == 2 and out
        getattr(net.daemon, how)()
        ended.close()
        assert dial() == "ok" and net.nft("list", "table", "inet", "netpawl").returncode == 0
        net.daemon.start()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)
        assert base.eventually(lambda: len(net.devices()) == 1, 10)
        assert net.api.sandbox(box.id)["network"] == "nat" and dial() == "ok"
        box.call("send", keep="out", data="y")
        with Box(net.daemon, "FULL") as another:
            assert own(another, 4) != own(box, 4)
        assert net.api.escalate(box.session, "SECRET")["mode"] == "NONE"
        assert dial() == "ECONNREFUSED"
        net.boxes.clear()
        box.close()
        assert base.eventually(lambda: not net.devices(), 10)
        net.daemon.stop()
        assert net.nft("list", "tables").stdout == ""


def test_uninstall_leaves_nothing():
    """Of sandboxes that outlived a daemon, too."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        net.box("FULL")
        net.daemon.kill()
        assert len(net.devices()) == 1 and "netpawl" in net.nft("list", "tables").stdout
        net.daemon.uninstall()
        assert not net.devices() and net.nft("list", "tables").stdout == ""


@pytest.mark.parametrize("forwards6", [0, 1])
def test_neither_end_makes_up_an_address(forwards6):
    """A link-local one would be the host's, where it is met. Most hosts that forward do not forward IPv6."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        net.world.sysctl(net.world.host, {"net.ipv6.conf.all.forwarding": forwards6})
        box = net.box("FULL")
        assert box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ok"
        assert (box.try_("dial", family=6, addr=FAR[6], port=9000, data="x", recv=1, timeout=2) == "ok") == bool(forwards6)
        near = ["ip", "-n", net.world.host, "-6", "-o", "addr", "show", "dev"]
        assert "fe80" in base.sh(*near, "npv0").stdout, "the control: another device here has one"
        assert base.sh(*near, *net.devices()).stdout == ""
        inside = base.sh("nsenter", "-t", box.pids()[0], "-n", "ip", "-6", "-o", "addr", "show", "dev", "eth0").stdout
        assert "fe80" not in inside and len(inside.splitlines()) == forwards6


def test_the_rules_stay_while_another_daemon_needs_them():
    """Two of one host: the first began before the other's sandbox did, and stops."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        other = Daemon(net.world, policy=net.policy, inspectors=1, more=net.daemon.more)
        stack.callback(other.close)
        other.start()
        box = Box(other, "FULL")
        stack.callback(box.close)
        dial = lambda: box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1)
        assert box.info["network"] == "nat" and dial() == "ok"
        net.daemon.stop()
        assert dial() == "ok"


def test_a_kernel_without_netfilter(tmp_path, monkeypatch):
    """The daemon starts there, and says what it lacks to who wants a way out."""
    monkeypatch.setenv("LD_PRELOAD", kernels.library(tmp_path, kernels.NO_NETFILTER))
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        p = subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--session", new_session("no"), "--", "true"],
                           capture_output=True, text=True, timeout=60, env=net.env())
        assert p.returncode == 125 and "a network of its own" in p.stderr, p.stderr
        assert base.eventually(lambda: "no netfilter" in net.daemon.log.read_text()) and net.api.health()["status"]


def test_a_policy_that_takes_it_back(nat):
    """Those that live keep theirs, and the rules with them; the next are shared."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        box = net.box("FULL")
        net.policy.write_text(net.policy.read_text().replace("network: nat", "network: shared"))
        net.api.ok("POST", "/v1/policy/reload")
        with Box(net.daemon, "FULL") as other:
            assert other.info["network"] == "shared"
        assert box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ok"
        net.boxes.clear()
        box.close()
        assert base.eventually(lambda: net.nft("list", "tables").stdout == "", 10)


def test_a_host_that_does_not_forward():
    """Nothing is started, and says why; doctor says it before. Nobody turns it on but the operator."""
    with contextlib.ExitStack() as stack:
        net = Nat(stack, inspectors=1)
        net.world.sysctl(net.world.host, {"net.ipv4.ip_forward": 0})
        net.api.ok("POST", "/v1/policy/reload")
        p = subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--session", new_session("no"), "--", "true"],
                           capture_output=True, text=True, timeout=60, env=net.env())
        assert p.returncode == 125 and "net.ipv4.ip_forward" in p.stderr, p.stderr
        doctor = subprocess.run([*net.world.enter(), str(base.NETPAWL), "doctor"], capture_output=True, text=True, timeout=60, env=net.env())
        assert "net.ipv4.ip_forward" in doctor.stdout
        assert not net.devices()
        # a firewall of the host's that drops what is forwarded
        net.world.sysctl(net.world.host, FORWARDS)
        assert net.nft("add table ip mine; add chain ip mine FORWARD { type filter hook forward priority 0; policy drop; }").returncode == 0
        net.api.ok("POST", "/v1/policy/reload")
        doctor = subprocess.run([*net.world.enter(), str(base.NETPAWL), "doctor"], capture_output=True, text=True, timeout=60, env=net.env())
        assert "ip mine FORWARD" in doctor.stdout
        assert net.box("FULL").try_("dial", family=4, addr=FAR[4], port=9000, timeout=1) != "ok"
        net.nft("add rule ip mine FORWARD iifname npnat* accept; add rule ip mine FORWARD oifname npnat* accept")
        assert net.box("FULL").try_("dial", family=4, addr=FAR[4], port=9000) == "ok", "the control"


@pytest.mark.parametrize("more, full, proxied", [
    ("", "nat", "private"), (f"  - allow: {FAR[4]}:9000\n", "nat", "nat"), ("host_loopback: [9]\n", "shared", "shared")],
    ids=["names", "address-port", "host_loopback"])
def test_who_has_a_way_out(world, make_daemon, more, full, proxied):
    """Rules that reach past the inspector lead out by it; ports of the host's loopback are reached from nowhere else."""
    world.sysctl(world.host, FORWARDS)
    d = make_daemon()
    d.policy.write_text("version: 1\nrules:\n  - allow: origin.test\n" + more + base.permits("nat"))
    d.start()
    for mode, has in (("FULL", full), ("PROXIED", proxied), ("NONE", "private")):
        with Box(d, mode) as box:
            assert box.info["network"] == has
            if mode == "PROXIED" and has == "nat":
                assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
                assert box.try_("dial", family=4, addr=FAR[4], port=8080) == "ECONNREFUSED"


def test_its_share_of_the_hosts_connections(nat):
    """The host has one table of connections for all. A sandbox that has its share there makes no more of them; others do."""
    nat.world.sysctl(nat.world.host, {"net.netfilter.nf_conntrack_udp_timeout": 600})  # none is forgotten while the others are made
    full, other, port = Box(nat.daemon, "FULL"), nat.box("FULL"), nat.port()
    with contextlib.closing(full):
        since = time.time_ns()
        for first in range(20000, 20000 + MOST, 1024):  # no more at once than queues take
            assert full.payload("flows", "flows", addr=FAR[4], port=port, first=first, count=1024)[0] == 0
        came = lambda: sum(f.get("dport") == port for f in nat.world.frames(since, limit=20000)["frames"])
        assert base.eventually(lambda: came() == MOST, 20), "the control: so many pass"
        assert full.payload("flows", "flows", addr=FAR[4], port=port, first=40000, count=100)[0] == 0
        assert other.payload("flows", "flows", addr=FAR[4], port=port, first=40000, count=1)[0] == 0
        assert base.eventually(lambda: came() > MOST, 20), "another's passes"
        assert came() == MOST + 1


class Crowded(Daemon):
    """To it, the host's table of connections has as many entries as a file says: the real bound is that of all namespaces."""

    def argv(self, *more, **kw):
        self.max = self.dir / "nf_conntrack_max"
        argv, entered = super().argv(*more, **kw), self.world.enter()
        assert argv[: len(entered)] == entered
        mount = 'mount --bind "$0" /proc/sys/net/netfilter/nf_conntrack_max && exec "$@"'
        return [*entered, "unshare", "-m", "sh", "-c", mount, str(self.max), *argv[len(entered):]]


def test_the_hosts_table_of_connections_is_nearly_full(world):
    """Sandboxes with a way out open no more of them, of whatever share; what is open goes on, and the host has the rest. With room
    again they open some again."""
    world.sysctl(world.host, FORWARDS)
    base.sh(*world.enter(), "nft", "add table inet np-test; add chain inet np-test c { type filter hook input priority 0; }; "
                                   "add rule inet np-test c ct state new accept")  # the host tracks its own connections, too
    world.sysctl(world.host, {"net.netfilter.nf_conntrack_udp_timeout": 600})
    daemon, opens = Crowded(world), lambda agent: agent.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1, timeout=2)
    daemon.policy.write_text("version: 1\n" + base.permits("nat"))
    (daemon.dir / "nf_conntrack_max").write_text("100000\n")
    told = lambda kind: [e for e in daemon.api.events(reason=kind) if "nf_conntrack_max" in e["text"]]
    with contextlib.closing(daemon), contextlib.ExitStack() as stack:
        daemon.start()
        box, other = (stack.enter_context(Box(daemon, "FULL")) for _ in range(2))
        assert box.info["network"] == "nat"
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="open")
        assert box.payload("flows", "flows", addr=FAR[4], port=9000, first=20000, count=900)[0] == 0
        assert not told("degraded") and opens(other) == "ok", "the control"
        daemon.max.write_text("1000\n")
        assert base.eventually(lambda: told("degraded"), 20)
        assert opens(other) == opens(box) == "TIMEOUT" and opens(world.outside) == "ok"
        assert box.call("send", keep="open", data="on")["n"] == 2 and box.call("recv", keep="open", timeout=20)["data"] == "on"
        assert not told("mended")
        daemon.max.write_text("100000\n")
        assert base.eventually(lambda: told("mended"), 20) and opens(other) == opens(box) == "ok"
    base.sh(*world.enter(), "nft", "delete table inet np-test")
