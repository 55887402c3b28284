# SPDX-License-Identifier: MIT
"""Ways over this host that a look at the address does not show: sockets that are bound to a device, and sockets that are
made while a packet is on its way. Between one sandbox and another, and from a sandbox to the host, in every mode."""
import contextlib
import itertools

import pytest

from lib import base
from lib.box import Launched
from lib.fixtures import daemon_with
from lib.world import DEV, HOST4, HOST6

MODES = ["FULL", "PROXIED", "NONE"]
HOST = {4: HOST4, 6: HOST6}
WILD = {4: "0.0.0.0", 6: "::"}
LISTED = 24190  # host_loopback: in the policy
PORTS = itertools.count(24200)
AWAY = f"fe80::dead%{DEV}"  # nobody's


@pytest.fixture(scope="module")
def daemon(world):
    with daemon_with(world, f"host_loopback: [{LISTED}]\n") as d:
        yield d


def other(pool, mode):
    """Of another session than pool(mode)."""
    return pool(mode, session=f"tester/other-{mode}")


@contextlib.contextmanager
def listening(agent, **kw):
    port = agent.call("listen", keep="hidden", **kw)["port"]
    try:
        yield port
    finally:
        agent.call("close", keep="hidden")


def reach(agent, kind, family, addr, port, mark, answers=False):
    """'ok' when there is an answer (answers: there is to be one), or the errno of each form."""
    what = dict(family=family, addr=addr, port=port, data=mark, recv=100, timeout=30 if answers else 0.15)
    if kind == "stream":
        return agent.try_("dial", **what)
    first = agent.try_("sendto", **what)
    return first if first == "ok" else agent.try_("dial", kind="dgram", **what)


def seen(agent, mark):
    return agent.call("records", keep="hidden", mark=mark)["records"]


# -- bound to a device ------------------------------------------------------------------------

@pytest.mark.parametrize("kind,family", itertools.product(["stream", "dgram"], [4, 6]))
def test_a_listener_of_the_host_that_is_bound_to_a_device(world, pool, kind, family):
    mark = base.token()
    with listening(world.outside, family=family, addr=HOST[family], kind=kind, device=DEV) as port:
        assert reach(world.outside_user, kind, family, HOST[family], port, "control", True) == "ok"
        before = len(seen(world.outside, "<connect>"))
        for mode in MODES:
            for addr in (HOST[family], *(["::ffff:" + HOST4] if family == 4 else [])):
                got = reach(pool(mode).agent, kind, 6 if ":" in addr else 4, addr, port, mark)
                assert got == "ECONNREFUSED" or kind == "dgram" and got == "EPERM", (mode, addr, got)
        assert seen(world.outside, mark) == []
        assert len(seen(world.outside, "<connect>")) == before
    none = pool("NONE")
    assert none.refusals("mode_none" if none.apart else "host_loopback")


@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_one_that_the_policy_lists_is_reached(world, pool, kind):
    with listening(world.outside, family=4, addr=HOST4, kind=kind, device=DEV, port=LISTED):
        for mode, expected in (("FULL", True), ("PROXIED", True), ("NONE", False)):
            assert (reach(pool(mode).agent, kind, 4, HOST4, LISTED, "x", expected) == "ok") == expected, mode


@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_a_failed_bind_leaves_no_device(world, pool, kind):
    """bind() to a link-local address that is not there fails, and binds the socket to the device all the same."""
    target, mark = other(pool, "FULL"), base.token()
    with listening(world.outside, family=6, addr=HOST6, kind=kind, scope=AWAY) as port:
        assert reach(world.outside_user, kind, 6, HOST6, port, "control", True) == "ok"
    with listening(target, family=6, addr=target.addr[6], kind=kind, scope=AWAY) as port:
        for mode in MODES:
            assert reach(pool(mode).agent, kind, 6, target.at[6], port, mark) != "ok", mode
        assert seen(target, mark) == []
        assert reach(target.agent, kind, 6, target.addr[6], port, "own", True) == "ok", "a sandbox reaches itself"
    assert target.refusals("metadata")[-1]["hook"] == "bind"


def test_the_receivers_gate_alone(world, make_daemon):
    """Without all that looks at the sender's side, a receiver in FULL is connected to the port of a sender that no look-up
    finds."""
    d = make_daemon().start()
    with Launched(d, "FULL") as target, Launched(d, "NONE") as none, Launched(d, "FULL") as full:
        with d.without("connect4", "connect6", "sendmsg4", "sendmsg6", "bind4", "bind6", "egress"):
            for sender, receiver in ((world.outside, world.outside_user), (none, target), (full, target)):
                if sender is none and none.apart:
                    continue  # no packet of its is ever in the receiver's network
                mark, control = base.token(), sender is world.outside
                port = receiver.call("listen", keep="r", family=6, addr=HOST6, kind="dgram", role="hold", scope=AWAY)["port"]
                # the last one's thread may hold the port for a moment
                assert base.eventually(lambda: sender.try_("listen", keep="s", family=6, addr=HOST6, kind="dgram", role="hold",
                                                           port=24191, scope=AWAY) == "ok")
                connected = lambda: receiver.try_("connect", keep="r", family=6, addr=HOST6, port=24191) == "ok"
                assert base.eventually(connected), "the kernel takes a program away a little after its link"
                sender.call("send", keep="s", data=mark, family=6, addr=HOST6, port=port)
                got = base.for_a_while(lambda: receiver.call("records", keep="r", mark=mark)["records"], 60 if control else 0.2)
                assert bool(got) == control
                receiver.call("close", keep="r")
                sender.call("close", keep="s")
        assert target.refusals("inbound")[-1]["hook"] == "ingress"


def test_the_senders_gate_alone(world, make_daemon):
    """Without all that looks at calls, and at the receiver's side: what a sandbox in FULL sends over loopback is judged by who gets it."""
    d = make_daemon().start()
    with Launched(d, "FULL") as target, Launched(d, "FULL") as sender:
        with d.without("connect4", "connect6", "sendmsg4", "sendmsg6", "ingress"), \
                listening(world.outside, family=4, addr="127.0.0.1", kind="dgram") as port:
            probe = lambda: sender.try_("sendto", family=4, addr="127.0.0.1", port=port) == "EPERM"
            assert base.eventually(probe), "the kernel takes a program away a little after its link; then np_egress refuses"
            ways = itertools.product(("stream", "dgram"), ((4, "127.0.0.1"), (6, "::1")))
            for receiver, (kind, (family, addr)) in itertools.product((world.outside, target, sender), ways):
                mark, own, where = base.token(), receiver is sender, {"family": family, "addr": addr}
                where["port"] = receiver.call("listen", keep="r", kind=kind, **where)["port"]
                got = reach(sender, kind, mark=mark, answers=own, **where)
                assert (got == "ok") == own and bool(receiver.call("records", keep="r")["records"]) == own, (kind, addr)
                receiver.call("close", keep="r")
        assert sender.refusals("host_loopback")[-1]["hook"] == "egress"


# -- made while a packet is on its way -----------------------------------------------------------

class Queue:
    """lo with a queue that nothing leaves until release(): what waits there has passed the sender's gate."""

    def __init__(self, world):
        self.world = world

    def tc(self, *words):
        return base.sh(*self.world.enter(), "tc", "qdisc", *words)

    def __enter__(self):
        self.tc("add", "dev", "lo", "root", "tbf", "rate", "8bit", "burst", "1600", "limit", "1000000")
        for _ in range(2):  # the first takes what may pass at once
            self.world.outside.call("sendto", family=4, addr="127.0.0.1", port=9, data="f" * 1400)
        return self

    def release(self):
        self.tc("change", "dev", "lo", "root", "tbf", "rate", "10gbit", "burst", "10000000", "limit", "10000000")
        self.world.outside.call("sendto", family=4, addr="127.0.0.1", port=9, data="go")  # the queue looks at its rate now

    def __exit__(self, *exc):
        self.tc("del", "dev", "lo", "root")


def datagram(world, sender, receiver, connects, data):
    """The sender's socket is gone when the receiver's is made."""
    with Queue(world) as queue:
        sender.try_("sendto", family=4, addr="127.0.0.1", port=24192, data=data, bind=["127.0.0.1", 24193])
        receiver.call("listen", keep="r", family=4, addr="127.0.0.1", kind="dgram", role="sink", port=24192)
        if connects:
            receiver.call("connect", keep="r", family=4, addr="127.0.0.1", port=24193)
        queue.release()
        world.outside.call("sendto", family=4, addr="127.0.0.1", port=24192, data="after", bind=["127.0.0.1", 24193])
        own = sender is receiver or sender is world.outside
        got = base.for_a_while(lambda: receiver.call("records", keep="r", mark=data)["records"], 60 if own else 0.2)
        receiver.call("close", keep="r")
    return bool(got)


@pytest.mark.parametrize("connects", [False, True])
def test_a_datagram_for_who_comes_later(world, pool, connects):
    target = other(pool, "FULL")
    assert datagram(world, world.outside, world.outside_user, connects, base.token()), "the control gets through"
    for mode in MODES:
        sender = pool(mode)
        assert not datagram(world, sender, target, connects, base.token()), mode
        assert not datagram(world, sender, world.outside_user, connects, base.token()), f"{mode} to the host"


def opened(world, caller, called, listens, data):
    """A SYN waits; meanwhile a listener is made, or somebody who calls back (a simultaneous open)."""
    near, far = next(PORTS), next(PORTS)  # closed ones keep theirs for a while
    with Queue(world) as queue:
        caller.call("bound", keep="c", family=4, addr="127.0.0.1", port=near)
        caller.try_("connect", keep="c", family=4, addr="127.0.0.1", port=far, timeout=0.05)
        if listens:
            called.call("listen", keep="o", family=4, addr="127.0.0.1", port=far, role="sink")
        else:
            called.call("bound", keep="o", family=4, addr="127.0.0.1", port=far)
            called.try_("connect", keep="o", family=4, addr="127.0.0.1", port=near, timeout=0.05)
        queue.release()
        sent = base.for_a_while(lambda: caller.try_("send", keep="c", data=data) == "ok", 60 if caller is world.outside else 0.3)
        for agent, keep in ((caller, "c"), (called, "o")):
            agent.call("close", keep=keep)
    return bool(sent)


@pytest.mark.parametrize("listens", [True, False], ids=["listener", "simultaneous"])
def test_a_connection_to_who_comes_later(world, pool, listens):
    assert opened(world, world.outside, world.outside_user, listens, "control")
    for mode in MODES:
        assert not opened(world, pool(mode), world.outside_user, listens, "x"), f"{mode} to the host"
        assert not opened(world, pool(mode), other(pool, "FULL"), listens, "x"), f"{mode} to FULL"


# -- what must go on --------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
def test_nobody_is_there(pool, mode):
    """As where there is no gate: TCP is refused, a datagram is lost; a connected socket hears of it."""
    box = pool(mode)
    for family, addr in ((4, "127.0.0.1"), (6, "::1"), *box.addr.items()):
        assert box.try_("dial", family=family, addr=addr, port=1) == "ECONNREFUSED"
        assert box.try_("dial", family=family, addr=addr, port=1, kind="dgram") == "ok", "connect() sends nothing"
        assert box.try_("dial", family=family, addr=addr, port=1, kind="dgram", data="x") in ("ECONNREFUSED", "EPERM")
        assert box.try_("sendto", family=family, addr=addr, port=1) == ("ok" if addr.startswith("127.0.0.") or addr == "::1" else "ECONNREFUSED")


# -- all of them --------------------------------------------------------------------------------------

ADDRESSES = [(4, a) for a in ("127.0.0.1", "127.1.2.3", "0.0.0.0", HOST4, "192.0.2.255", "127.255.255.255", "255.255.255.255",
                              "224.0.0.1")]
ADDRESSES += [(6, a) for a in ("::1", "::", HOST6, "::ffff:127.0.0.1", "::ffff:" + HOST4, "ff02::1%lo", f"ff02::1%{DEV}", "ff01::1%lo")]
HOWS = ["stream", "fastopen", "sendto", "connected"]


class Target:
    """Listeners of every kind in one place."""

    def __init__(self, agent, name):
        self.agent, self.name, self.ports = agent, name, {}
        for family, kind in itertools.product((4, 6), ("stream", "dgram")):
            keep = f"{name}{family}{kind}"
            self.ports[family, kind] = agent.call("listen", keep=keep, family=family, addr=WILD[family], kind=kind, role="hold",
                                                  fastopen=kind == "stream")["port"]

    def tries(self, addresses, mark):
        for n, (how, (family, addr)) in enumerate(itertools.product(HOWS, addresses)):
            kind = "stream" if how in ("stream", "fastopen") else "dgram"
            yield [how, family, addr, self.ports[4 if "." in addr else 6, kind], f"{mark}:{how}:{addr};"]

    def close(self):
        for family, kind in self.ports:
            self.agent.call("close", keep=f"{self.name}{family}{kind}")


def test_every_way_from_everyone_to_everyone(world, pool):
    """Three senders, four receivers, 16 addresses, four ways to send. Between different parties nothing arrives; what the
    host sends to itself arrives in each of the ways, by each address that leads here."""
    link = [a for a in base.sh("ip", "-n", world.host, "-6", "-o", "addr", "show", "dev", DEV, "scope", "link").stdout.split()
            if a.startswith("fe80")][0].split("/")[0]
    addresses = ADDRESSES + [(6, f"{link}%{DEV}")]
    targets = {"host": Target(world.outside, "host")}
    targets |= {mode: Target(other(pool, mode).agent, "to" + mode) for mode in MODES}
    try:
        mark = base.token()
        world.outside_user.payload("local", "attempts", tries=list(targets["host"].tries(addresses, mark)), timeout=60)
        sure = {f"{how}:{addr};" for how, addr in itertools.product(
            HOWS, ("127.0.0.1", HOST4, "::1", HOST6, "::ffff:127.0.0.1", f"{link}%{DEV}"))} | {"sendto:127.255.255.255;"}
        arrived = lambda: {r["data"].split(":", 1)[1] for r in world.outside.call("records", mark=mark)["records"]}
        assert base.eventually(lambda: sure <= arrived()), sure - arrived()
        before = {name: sum(r["data"] == "<connect>" for r in t.agent.call("records")["records"]) for name, t in targets.items()}
        for mode in MODES:
            tries = [t for target in targets.values() for t in target.tries(addresses, mode + mark)]
            assert pool(mode).payload("local", "attempts", tries=tries, timeout=100) == (0, {"tried": len(tries)})
        for name, target in targets.items():
            for mode in MODES:
                assert target.agent.call("records", mark=mode + mark)["records"] == [], (mode, name)
            assert sum(r["data"] == "<connect>" for r in target.agent.call("records")["records"]) == before[name], name
    finally:
        for target in targets.values():
            target.close()
