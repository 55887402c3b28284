# SPDX-License-Identifier: MIT
"""Loopback is private: a sandbox reaches what it opened itself, and neither the host nor another sandbox,
by whatever name of this host it calls."""
import itertools

import pytest

from lib import base
from lib.box import Adopted, Box
from lib.world import HOST4, HOST6

NAMES = [(4, "127.0.0.1"), (4, "127.1.2.3"), (4, HOST4), (4, "0.0.0.0"), (6, "::1"), (6, HOST6), (6, "::")]
MAPPED = [(6, "::ffff:127.0.0.1"), (6, "::ffff:" + HOST4)]


def names(box):
    """Its own, where it lives."""
    return [(family, box.addr[family] if addr in (HOST4, HOST6) else addr) for family, addr in NAMES]


MODES = ["FULL", "PROXIED", "NONE"]
WILD = {4: "0.0.0.0", 6: "::"}


def reach(agent, transport, family, addr, port, mark, timeout=30):
    """Both datagram forms count; the answer is 'ok' when any of them got an echo."""
    if transport == "stream":
        return agent.try_("dial", family=family, addr=addr, port=port, data=mark, recv=100, timeout=max(timeout, 1))
    first = agent.try_("sendto", family=family, addr=addr, port=port, data=mark, recv=100, timeout=timeout)
    if first == "ok":
        return first
    return agent.try_("dial", family=family, addr=addr, port=port, data=mark, recv=100, timeout=timeout, kind="dgram")


class Target:
    """Listeners in one place: one a family and transport, on the wildcard address. Their ports are none that the kernel gives away: where
    they are another namespace's, a datagram from such a port to itself would come back."""

    NUMBERS = itertools.count(24600)

    def __init__(self, agent, name):
        self.agent, self.name, self.ports = agent, name, {}
        for family in (4, 6):
            for transport in ("stream", "dgram"):
                keep = f"{name}{family}{transport}"
                self.ports[family, transport] = agent.call("listen", keep=keep, family=family, addr=WILD[family],
                                                           kind=transport, port=next(self.NUMBERS))["port"]

    def seen(self, mark):
        return self.agent.call("records", mark=mark)["records"]

    def connects(self, family):
        return len(self.agent.call("records", keep=f"{self.name}{family}stream")["records"])

    def close(self):
        for (family, transport) in self.ports:
            self.agent.call("close", keep=f"{self.name}{family}{transport}")


@pytest.fixture(scope="module")
def host_target(world):
    t = Target(world.outside, "host")
    yield t
    t.close()


@pytest.fixture(scope="module")
def box_targets(daemon, pool):
    """Another sandbox's listeners, for each mode of that sandbox."""
    return {mode: Target(pool(mode, who="target").agent, "other") for mode in MODES}


@pytest.fixture(scope="module")
def pool(daemon):
    from lib.fixtures import BoxPool

    class Named(BoxPool):
        def __call__(self, mode, user="root", kind=Box, who="attacker"):
            key = (mode, user, kind, who)
            if key not in self.boxes:
                self.boxes[key] = kind(self.daemon, mode, user=user)
            return self.boxes[key]

    p = Named(daemon)
    yield p
    p.close()


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("family,addr", NAMES)
def test_control_host_reaches_itself(world, host_target, family, addr, transport):
    mark = base.token()
    assert reach(world.outside, transport, family, addr, host_target.ports[family, transport], mark) == "ok"
    assert host_target.seen(mark)


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", MODES)
def test_host_listeners_are_closed(world, pool, host_target, mode, user, kind):
    box = pool(mode, user, kind)
    before = host_target.connects(4), host_target.connects(6)
    for transport in ("stream", "dgram"):
        for family, addr in NAMES:
            mark = base.token()
            got = reach(box.agent, transport, family, addr, host_target.ports[family, transport], mark, 0.15)
            assert got != "ok" and host_target.seen(mark) == [], (transport, addr)
            if transport == "stream":
                assert got == "ECONNREFUSED", (addr, got)
        for family, addr in MAPPED:
            mark = base.token()
            got = reach(box.agent, transport, family, addr, host_target.ports[4, transport], mark, 0.15)
            assert got != "ok" and host_target.seen(mark) == [], (transport, addr)
    assert (host_target.connects(4), host_target.connects(6)) == before


@pytest.mark.parametrize("other", MODES)
@pytest.mark.parametrize("mode", MODES)
def test_other_sandboxes_listeners_are_closed(pool, box_targets, mode, other):
    box, target = pool(mode), box_targets[other]
    before = target.connects(4), target.connects(6)
    for transport in ("stream", "dgram"):
        for family, addr in NAMES:
            mark = base.token()
            got = reach(box.agent, transport, family, addr, target.ports[family, transport], mark, 0.15)
            assert got != "ok" and target.seen(mark) == [], (transport, addr)
    assert (target.connects(4), target.connects(6)) == before


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", MODES)
def test_own_listeners_are_open(pool, mode, user, kind):
    """By every name, wildcard listeners and bound ones: a sandbox is a place to work in."""
    box = pool(mode, user, kind)
    target = Target(box.agent, "own")
    try:
        for transport in ("stream", "dgram"):
            for family, addr in names(box):
                assert reach(box.agent, transport, family, addr, target.ports[family, transport], "x") == "ok", \
                    (transport, addr)
    finally:
        target.close()
    for transport in ("stream", "dgram"):
        for family, addr in names(box):
            if addr in ("0.0.0.0", "::"):
                continue
            port = box.call("listen", keep="bound", family=family, addr=addr, kind=transport)["port"]
            assert reach(box.agent, transport, family, addr, port, "x") == "ok", (transport, addr)
            box.call("close", keep="bound")


@pytest.mark.parametrize("mode", MODES)
def test_dual_stack_listener(pool, mode):
    box = pool(mode)
    for transport in ("stream", "dgram"):
        port = box.call("listen", keep="dual", family=6, addr="::", kind=transport, v6only=False)["port"]
        for family, addr in ((4, "127.0.0.1"), (6, "::1"), (6, "::ffff:127.0.0.1")):
            assert reach(box.agent, transport, family, addr, port, "x") == "ok", (transport, addr)
        box.call("close", keep="dual")


@pytest.mark.parametrize("mode", MODES)
def test_nobody_there_is_refused_like_everywhere(pool, mode):
    box = pool(mode)
    for family, addr in ((4, "127.0.0.1"), (6, "::1"), (4, box.addr[4])):
        assert box.try_("dial", family=family, addr=addr, port=1) == "ECONNREFUSED"


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("mode", MODES)
def test_a_port_of_the_host_cannot_be_shared(world, pool, mode, transport):
    """SO_REUSEPORT on a port where the host listens would take the host's callers."""
    kind = "SOCK_STREAM" if transport == "stream" else "SOCK_DGRAM"
    code = ("import socket,sys\n"
            f"s = socket.socket(socket.AF_INET, socket.{kind})\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
            "s.bind(('127.0.0.1', int(sys.argv[1])))\n"
            f"{'s.listen()' if transport == 'stream' else ''}\n"
            "print(s.getsockname()[1], flush=True)\n"
            "sys.stdin.read()\n")
    import subprocess
    host = base.popen([*world.enter(), base.PYTHON, "-c", code, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        port = host.stdout.readline().decode().strip()
        assert world.outside.call("execute", argv=[base.PYTHON, "-c", code, port])["code"] == 0, "the control shares it"
        box = pool(mode)
        got = box.call("execute", argv=[base.PYTHON, "-c", code, port])
        if box.apart:
            assert got["code"] == 0, "ports of its own, which nobody of the host calls"
        else:
            assert got["code"] != 0 and "in use" in got["err"], got
    finally:
        host.stdin.close()
        base.reap(host)


@pytest.mark.parametrize("family, addr", [(4, "127.0.0.1"), (6, "::1")])
@pytest.mark.parametrize("mode", MODES)
def test_who_has_the_port_after_the_sandbox(world, pool, mode, family, addr):
    """What the gate remembers of who was there is no way to who is there now: not for the socket that was there, nor for a new one.
    A caller is refused and does not wait."""
    box = pool(mode)
    if box.apart:
        return  # the host's ports are none of its own
    for transport in ("stream", "dgram"):
        where = {"family": family, "addr": addr}
        where["port"] = box.call("listen", keep="own", kind=transport, **where)["port"]
        assert reach(box.agent, transport, mark="x", **where) == "ok"
        box.call("hold", keep="sender", family=family, kind="dgram")
        for _ in range(3 if transport == "dgram" else 0):
            box.call("send", keep="sender", data="x", **where)
        box.call("close", keep="own")
        mark = base.token()
        assert base.eventually(lambda: world.outside.try_("listen", keep="later", kind=transport, **where) == "ok")
        try:
            if transport == "dgram":
                assert box.try_("send", keep="sender", data=mark, **where) != "ok"
                assert box.try_("sendto", data=mark, **where) == "ECONNREFUSED"
            else:
                assert box.try_("dial", data=mark, **where) == "ECONNREFUSED"
            assert world.outside.call("records", keep="later")["records"] == []
        finally:
            world.outside.call("close", keep="later")
            box.call("close", keep="sender")
        assert base.eventually(lambda: box.try_("listen", keep="own", kind=transport, **where) == "ok")
        assert reach(box.agent, transport, mark="x", **where) == "ok", "it is the sandbox's again"
        box.call("close", keep="own")


@pytest.mark.parametrize("transport", ["stream", "dgram"])
def test_dns_on_the_hosts_loopback_works_in_full_only(world, pool, transport):
    """The resolver on 127.0.0.1:53 is the one port of the host that FULL may use by default."""
    world.outside.call("listen", keep="dns", family=4, addr="127.0.0.1", port=53, kind=transport)
    try:
        full = pool("FULL")
        assert full.apart or reach(full.agent, transport, 4, "127.0.0.1", 53, "query") == "ok"
        for mode in ("PROXIED", "NONE"):
            mark = base.token()
            assert reach(pool(mode).agent, transport, 4, "127.0.0.1", 53, mark, 0.3) != "ok"
            assert world.outside.call("records", keep="dns", mark=mark)["records"] == []
    finally:
        world.outside.call("close", keep="dns")


def test_address_that_appears_later_is_the_hosts_too(world, pool, host_target):
    """An address added after the daemon started is not the outside."""
    world.ip("addr", "add", "192.0.2.50/32", "dev", "npv0")
    try:
        for transport in ("stream", "dgram"):
            mark = base.token()
            assert reach(world.outside, transport, 4, "192.0.2.50", host_target.ports[4, transport], mark) == "ok"
            for mode in MODES:
                mark = base.token()
                got = reach(pool(mode).agent, transport, 4, "192.0.2.50", host_target.ports[4, transport], mark, 0.2)
                assert got != "ok" and host_target.seen(mark) == []
    finally:
        world.ip("addr", "del", "192.0.2.50/32", "dev", "npv0")
