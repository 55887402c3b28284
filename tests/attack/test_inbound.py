# SPDX-License-Identifier: MIT
"""Callers from outside. Nobody but the sandbox itself reaches its listeners, in any mode, unless the policy names the port
(inbound:); and nobody beyond the host can tell whether there is a listener."""
import time
import concurrent.futures

import pytest

from lib import base
from lib.box import Adopted, Box
from lib.fixtures import daemon_with
from lib.world import FAR, GATE4, GATE6, HOST4, HOST6

OPEN = {"stream": 24180, "dgram": 24181}  # inbound: in the policy
WILD = {4: "0.0.0.0", 6: "::"}
HOST = {4: HOST4, 6: HOST6}
LOOP = {4: "127.0.0.1", 6: "::1"}
CONTAINERS = "TIMEOUT"  # callers of containers, which have an address of their own, meet silence, and a reset where nobody listens: SECURITY.md


@pytest.fixture(scope="module")
def daemon(world):
    """With inbound ports, and a host that does not bound the rate of its ICMP errors: a scan must not meet that."""
    world.sysctl(world.host, {"net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0})
    with daemon_with(world, f"inbound: [{OPEN['stream']}, {OPEN['dgram']}]\n") as d:
        yield d


@pytest.fixture(params=[Box, Adopted], ids=["run", "adopted"])
def kind(request):
    return request.param


def call(agent, kind, family, addr, port, mark, answers=True):
    """answers: somebody is to be there"""
    how = dict(family=family, addr=addr, port=port, data=mark, recv=100, timeout=30 if answers else 0.4)
    return agent.try_("dial" if kind == "stream" else "sendto", **how)


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_listener_from_outside(world, pool, kind, mode, family, transport):
    box = pool(mode, kind=kind)
    mark = base.token()
    port = box.call("listen", keep="l", family=family, addr=WILD[family], kind=transport)["port"]
    try:
        from_world = call(world.world, transport, family, box.at[family], port, mark, False)
        from_host = call(world.outside, transport, family, LOOP[family], port, mark, False)
        from_host_addr = call(world.outside, transport, family, box.at[family], port, mark, False)
        own = call(box.agent, transport, family, LOOP[family], port, "own")
        own_addr = call(box.agent, transport, family, box.addr[family], port, "own")
        seen = box.call("records", keep="l", mark=mark)["records"]
        every = box.call("records", keep="l")["records"]
    finally:
        box.call("close", keep="l")
    assert own == own_addr == "ok", "its own listener is reachable in every mode"
    assert "ok" not in (from_world, from_host, from_host_addr)
    assert seen == []
    if transport == "stream":
        assert from_world == (CONTAINERS if box.wired else "ECONNREFUSED"), "as where nobody listens"
        assert sum(r["data"] == "<connect>" for r in every) == 2, "only the two own connections were accepted"


@pytest.mark.parametrize("transport", ["stream", "dgram"])
def test_control_without_a_sandbox_everybody_calls(world, transport):
    """The same listener, in no sandbox: the calls above are calls."""
    port = world.outside.call("listen", keep="l", family=4, addr="0.0.0.0", kind=transport)["port"]
    try:
        assert call(world.world, transport, 4, HOST4, port, "hello") == "ok"
        assert call(world.outside, transport, 4, "127.0.0.1", port, "hello") == "ok"
    finally:
        world.outside.call("close", keep="l")


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_inbound_port(world, pool, kind, mode, family, transport):
    """A port that the policy names: callers from beyond the host, in FULL. The host's own are not meant."""
    box, mark = pool(mode, kind=kind), base.token()
    box.call("listen", keep="in", family=family, addr=WILD[family], kind=transport, port=OPEN[transport])
    try:
        got = call(world.world, transport, family, box.at[family], OPEN[transport], mark, mode == "FULL")
        here = call(world.outside, transport, family, LOOP[family], OPEN[transport], "here", False)
        seen = box.call("records", keep="in", mark=mark)["records"]
    finally:
        box.call("close", keep="in")
    assert here != "ok"
    assert (got == "ok") == (mode == "FULL") and len(seen) == (mode == "FULL")


@pytest.mark.parametrize("family", [4, 6])
def test_answers_to_an_unconnected_socket(world, pool, family):
    """UDP without connect(): an answer comes from where the socket sent to, and from nowhere else."""
    box, mark = pool("FULL"), base.token()
    assert box.try_("sendto", family=family, addr=FAR[family], port=9000, data="ask", recv=10) == "ok"
    port = box.call("listen", keep="u", family=family, addr=WILD[family], kind="dgram")["port"]
    try:
        box.call("send", keep="u", data="ask", family=family, addr=FAR[family], port=9000)
        assert base.eventually(lambda: box.call("records", keep="u", mark="ask")["records"]), "the far side's echo"
        world.world.call("sendto", family=family, addr=box.at[family], port=port, data=mark)
        world.world.try_("sendto", family=family, addr=box.at[family], port=port, data="b" + mark,
                         bind=[FAR[family], 9001])
        box.call("send", keep="u", data="again", family=family, addr=FAR[family], port=9000)
        assert base.eventually(lambda: box.call("records", keep="u", mark="again")["records"])
        assert box.call("records", keep="u", mark=mark)["records"] == []
    finally:
        box.call("close", keep="u")


# -- what a scan tells --------------------------------------------------------------------

TCP = ["syn", "ack", "fin", "null", "xmas", "syn+data"]
SRC = {4: GATE4, 6: GATE6}


def scan(world, family, port, kinds, at=HOST, wait=5):
    """wait: for the first answer to each kind; where there is to be none, every one takes that long"""
    status, got = world.world.payload("scan", "scan", family=family, src=SRC[family], dst=at[family], ports=[port],
                                      kinds=kinds, wait=wait, timeout=40)
    assert status == 0 and str(port) in got, got
    return got[str(port)]


def taken(agent, how, family, keep="scanned", own=HOST):
    """Takes a port in one of the ways there are; which one?"""
    if how == "bound":
        return agent.call("listen", keep=keep, family=family, addr=own[family])["port"]
    if how == "udp bound":
        return agent.call("listen", keep=keep, family=family, addr=own[family], kind="dgram")["port"]
    if how == "dual":
        return agent.call("listen", keep=keep, family=6, addr="::", v6only=False)["port"]
    if how == "udp dual":
        return agent.call("listen", keep=keep, family=6, addr="::", v6only=False, kind="dgram")["port"]
    if how == "no bind":
        return agent.call("listen_unbound", keep=keep, family=family)["port"]
    if how == "udp sent":  # a client's socket, at a port that the kernel chose
        agent.call("hold", keep=keep, family=family, kind="dgram")
        agent.try_("send", keep=keep, data="x", family=family, addr=LOOP[family], port=1)
        return agent.call("name", keep=keep)["port"]
    kind = "dgram" if how.startswith("udp") else "stream"
    return agent.call("listen", keep=keep, family=family, addr=WILD[family], kind=kind)["port"]


def scan_closed(world, family, port, kinds, at):
    """A port that nobody has. How many ICMP errors a namespace sends in a second is bounded: one that was held back comes later."""
    kind = "udp" if "udp" in kinds else "syn"
    for _ in range(4):
        got = scan(world, family, port, kinds, at)
        if got[kind]:
            return got
        time.sleep(1)
    raise AssertionError(f"a closed port does not answer: {kind}")


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_a_scan_tells_nothing(world, pool, kind, mode, family):
    """The same port with a listener and without: the same answers, field by field."""
    box = pool(mode, kind=kind)
    for how in ("wild", "bound", "dual", "no bind", "udp", "udp bound", "udp dual", "udp sent"):
        kinds = ["udp"] if how.startswith("udp") else TCP
        port = taken(box.agent, how, family, own=box.addr)
        try:
            with_listener = scan(world, family, port, kinds, box.at, 1 if box.wired else 5)
        finally:
            box.call("close", keep="scanned")
        without = scan_closed(world, family, port, kinds[:1] if box.wired else kinds, box.at)
        if box.wired:
            assert not any(with_listener.values()), f"{how}: nothing but {CONTAINERS}"
        else:
            assert with_listener == without, how
        assert box.call("hello")


@pytest.mark.parametrize("family", [4, 6])
def test_control_a_scan_tells_of_the_hosts_listeners(world, daemon, family):
    for how, kind in (("wild", "syn"), ("udp", "udp")):
        port = taken(world.outside, how, family)
        try:
            with_listener = scan(world, family, port, [kind])
        finally:
            world.outside.call("close", keep="scanned")
        assert with_listener != scan(world, family, port, [kind])


def test_a_listener_that_comes_and_goes(world, pool):
    """As fast as it can, at one port: not one of 5,000 SYNs meets anything but the RST of a closed port."""
    box, port = pool("NONE", user="nobody"), 24190

    def storm():
        status, got = world.world.payload("scan", "storm", family=4, src=GATE4, dst=box.at[4], dport=port, count=5000,
                                          timeout=30)
        assert status == 0
        return got

    assert storm() == {"answered": 5000, "flags": [0x14]}, "nobody is there, and nothing is lost on the way"
    with concurrent.futures.ThreadPoolExecutor() as threads:
        churn = threads.submit(box.payload, "scan", "churn", port=port, seconds=3)
        got = storm()
        said = churn.result()[1]
        assert said.get("times", 0) > 100, said
    assert got["flags"] == [0x14] and (got["answered"] == 5000 or box.wired)


def test_listeners_from_before_the_adoption(world, boxes):
    """Sockets that the gate has not seen being bound: the first caller meets silence, the next one what all meet."""
    ports = {}

    def before(agent):
        ports["tcp"] = taken(agent, "wild", 4, "early")
        ports["udp"] = taken(agent, "udp", 4, "early udp")

    box = boxes("NONE", kind=Adopted, before=before)
    for which, probe, keep in (("tcp", "syn", "early"), ("udp", "udp", "early udp")):
        silent = box.wired and box.call("name", keep=keep)["port"]  # a cut takes ports that the kernel chose from UDP sockets
        scan(world, 4, ports[which], [probe], box.at, 1)
        second = scan(world, 4, ports[which], [probe], box.at, 1 if silent else 5)
        box.call("close", keep=keep)
        closed = scan(world, 4, ports[which], [probe], box.at)
        assert closed[probe] and second == ({probe: []} if silent else closed)


def test_the_hosts_own_listener_beside_a_sandboxs(world, pool):
    """The same port at another address: what hides the sandbox's does not hide the host's."""
    box = pool("FULL")
    for transport in ("stream", "dgram"):
        port = box.call("listen", keep="mine", family=4, addr="127.0.0.1", kind=transport)["port"]
        world.outside.call("listen", keep="theirs", family=4, addr=HOST4, port=port, kind=transport)
        try:
            assert call(world.world, transport, 4, HOST4, port, "hello") == "ok"
        finally:
            world.outside.call("close", keep="theirs")
            box.call("close", keep="mine")
    # Bound, with SO_REUSEADDR, and not listening: the host may take the port, and has its callers.
    got = box.call("bound", keep="lurking", family=4, addr="0.0.0.0")
    world.outside.call("listen", keep="theirs", family=4, addr=HOST4, port=got["port"])
    try:  # within a second, in which it could be about to listen
        assert base.eventually(lambda: call(world.world, "stream", 4, HOST4, got["port"], "hello", False) == "ok", 10)
    finally:
        world.outside.call("close", keep="theirs")
        box.call("close", keep="lurking")


@pytest.mark.parametrize("which", ["host first", "sandbox first"])
def test_a_udp_port_is_not_shared_with_the_host(world, pool, which):
    """By SO_REUSEADDR two UDP sockets may have one port, whoever they belong to; not with a sandbox's."""
    box = pool("NONE")
    first, second = (world.outside, box.agent) if which == "host first" else (box.agent, world.outside)
    control = world.outside.call("listen", keep="a", family=4, addr=HOST4, kind="dgram")["port"]
    world.outside.call("listen", keep="b", family=4, addr="0.0.0.0", kind="dgram", port=control)
    for keep in "ab":
        world.outside.call("close", keep=keep)
    at = {True: HOST4, False: "0.0.0.0"}
    port = first.call("listen", keep="a", family=4, addr=at[which == "host first"], kind="dgram")["port"]
    try:
        assert second.try_("listen", keep="b", family=4, addr=at[which != "host first"], kind="dgram", port=port) == ("ok" if box.apart else "EADDRINUSE")
    finally:
        first.call("close", keep="a")
        second.try_("close", keep="b")


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_listener_on_the_hosts_address(world, pool, kind, mode, transport):
    """Bound to 192.0.2.2 itself, or to what it has in its place, not to a wildcard."""
    box = pool(mode, kind=kind)
    mark = base.token()
    try:
        port = box.call("listen", keep="l2", family=4, addr=box.addr[4], kind=transport)["port"]
        assert call(world.world, transport, 4, box.at[4], port, mark, answers=False) != "ok"
        assert call(world.outside, transport, 4, box.at[4], port, mark, answers=False) != "ok"
        assert box.call("records", keep="l2", mark=mark)["records"] == []
    finally:
        box.call("close", keep="l2")


@pytest.mark.parametrize("level,mode", [("CONFIDENTIAL", "PROXIED"), ("SECRET", "NONE")])
@pytest.mark.parametrize("transport", ["stream", "dgram"])
def test_listener_from_before_the_escalation(world, api, boxes, kind, level, mode, transport):
    """Open to the world in FULL, by the policy; closed to it after; open to the sandbox all the time."""
    box = boxes("FULL", kind=kind)
    mark = base.token()
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0", kind=transport, port=OPEN[transport])["port"]
    assert call(world.world, transport, 4, box.at[4], port, "before") == "ok"
    api.escalate(box.session, level)
    assert call(world.world, transport, 4, box.at[4], port, mark, answers=False) != "ok"
    assert call(world.outside, transport, 4, "127.0.0.1", port, mark, answers=False) != "ok"
    assert box.call("records", keep="l", mark=mark)["records"] == []


@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_accepted_connection_from_before_is_cut(world, api, boxes, kind, mode):
    """The world called in FULL; after the escalation the accepted socket carries nothing, either way."""
    box = boxes("FULL", kind=kind)
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0", port=OPEN["stream"])["port"]
    world.world.call("dial", family=4, addr=box.at[4], port=port, data="hello", recv=5, keep="caller")
    try:
        cut = api.escalate(box.session, {"PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}[mode])["cut"]
        assert cut >= 1
        mark = base.token()
        world.world.try_("send", keep="caller", data=mark)
        assert box.call("records", keep="l", mark=mark)["records"] == []
    finally:
        world.world.call("close", keep="caller")
