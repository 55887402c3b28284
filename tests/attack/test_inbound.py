# SPDX-License-Identifier: MIT
"""Callers from outside: in PROXIED and NONE nobody but the sandbox itself reaches its listeners."""
import pytest

from lib import base
from lib.box import Adopted, Box
from lib.world import HOST4, HOST6

WILD = {4: "0.0.0.0", 6: "::"}
HOST = {4: HOST4, 6: HOST6}
LOOP = {4: "127.0.0.1", 6: "::1"}


@pytest.fixture(params=[Box, Adopted], ids=["run", "adopted"])
def kind(request):
    return request.param


def call(agent, kind, family, addr, port, mark):
    if kind == "stream":
        return agent.try_("dial", family=family, addr=addr, port=port, data=mark, recv=100, timeout=0.4)
    return agent.try_("sendto", family=family, addr=addr, port=port, data=mark, recv=100, timeout=0.4)


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_listener_from_outside(world, pool, kind, mode, family, transport):
    box = pool(mode, kind=kind)
    mark = base.token()
    port = box.call("listen", keep="l", family=family, addr=WILD[family], kind=transport)["port"]
    try:
        from_world = call(world.world, transport, family, HOST[family], port, mark)
        from_host = call(world.outside, transport, family, LOOP[family], port, mark)
        from_host_addr = call(world.outside, transport, family, HOST[family], port, mark)
        own = call(box.agent, transport, family, LOOP[family], port, "own")
        own_addr = call(box.agent, transport, family, HOST[family], port, "own")
        seen = box.call("records", keep="l", mark=mark)["records"]
        every = box.call("records", keep="l")["records"]
    finally:
        box.call("close", keep="l")
    assert own == own_addr == "ok", "its own listener is reachable in every mode"
    if mode == "FULL":
        assert len(seen) == 3 and from_world == "ok"
        # A datagram back to a socket of the host is a call to the host as any other, and loopback is private.
        assert from_host == from_host_addr == ("ok" if transport == "stream" else "TIMEOUT")
    else:
        assert "ok" not in (from_world, from_host, from_host_addr)
        assert seen == []
        if transport == "stream":
            assert sum(r["data"] == "<connect>" for r in every) == 2, "only the two own connections were accepted"


@pytest.mark.parametrize("transport", ["stream", "dgram"])
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_listener_on_the_hosts_address(world, pool, kind, mode, transport):
    """Bound to 192.0.2.2 itself, not to a wildcard."""
    box = pool(mode, kind=kind)
    mark = base.token()
    try:
        port = box.call("listen", keep="l2", family=4, addr=HOST4, kind=transport)["port"]
        assert call(world.world, transport, 4, HOST4, port, mark) != "ok"
        assert call(world.outside, transport, 4, HOST4, port, mark) != "ok"
        assert box.call("records", keep="l2", mark=mark)["records"] == []
    finally:
        box.call("close", keep="l2")


@pytest.mark.parametrize("level,mode", [("CONFIDENTIAL", "PROXIED"), ("SECRET", "NONE")])
@pytest.mark.parametrize("transport", ["stream", "dgram"])
def test_listener_from_before_the_escalation(world, api, boxes, kind, level, mode, transport):
    """Open to the world in FULL; closed to it after; open to the sandbox all the time."""
    box = boxes("FULL", kind=kind)
    mark = base.token()
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0", kind=transport)["port"]
    assert call(world.world, transport, 4, HOST4, port, "before") == "ok"
    api.escalate(box.session, level)
    assert call(world.world, transport, 4, HOST4, port, mark) != "ok"
    assert call(world.outside, transport, 4, "127.0.0.1", port, mark) != "ok"
    assert box.call("records", keep="l", mark=mark)["records"] == []


@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_accepted_connection_from_before_is_cut(world, api, boxes, kind, mode):
    """The world called in FULL; after the escalation the accepted socket carries nothing, either way."""
    box = boxes("FULL", kind=kind)
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]
    world.world.call("dial", family=4, addr=HOST4, port=port, data="hello", recv=5, keep="caller")
    try:
        cut = api.escalate(box.session, {"PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}[mode])["cut"]
        assert cut >= 1
        mark = base.token()
        world.world.try_("send", keep="caller", data=mark)
        assert box.call("records", keep="l", mark=mark)["records"] == []
    finally:
        world.world.call("close", keep="caller")
