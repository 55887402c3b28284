# SPDX-License-Identifier: MIT
"""Multicast and broadcast would reach listeners of the host past the private loopback, in FULL as well."""
import pytest

from lib import base
from lib.world import DEV

MODES = pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
TARGETS = [(4, "127.255.255.255", None), (4, "192.0.2.255", None), (4, "255.255.255.255", None), (4, "224.0.0.1", "lo"),
           (4, "224.0.0.1", DEV), (6, "ff02::1", DEV)]


def reaches_the_host(world, agent, family, addr, dev, seconds=0.5):
    """Sends from agent; whether a wildcard listener of the host got it."""
    mark, keep = base.token(), "many" + base.token()
    near = world.near()
    port = near.call("listen", keep=keep, family=family, addr="0.0.0.0" if family == 4 else "::", kind="dgram",
                     role="sink")["port"]
    try:
        _, answer = agent.payload("many", "send", family=family, addr=addr, port=port, mark=mark, dev=dev)
        got = base.for_a_while(lambda: near.call("records", keep=keep, mark=mark)["records"], seconds)
        return bool(got), answer
    finally:
        near.call("close", keep=keep)


@pytest.mark.parametrize("family,addr,dev", TARGETS)
@MODES
def test_no_listener_of_the_host_hears_a_sandbox(world, pool, mode, family, addr, dev):
    heard, answer = reaches_the_host(world, pool(mode), family, addr, dev)
    assert not heard and "error" in answer, answer


@pytest.mark.parametrize("family,addr,dev", TARGETS)
def test_control_the_host_hears_itself(world, family, addr, dev):
    heard, answer = reaches_the_host(world, world.near(), family, addr, dev, 0.5 if addr == "255.255.255.255" else 60)
    if addr == "255.255.255.255":
        assert "sent" in answer, answer  # it leaves; whether it also comes back is the routing table's business
    else:
        assert heard, answer


@pytest.mark.parametrize("name", ["reuseport_cbpf", "max_pacing_rate", "txtime"])
@MODES
def test_options_that_would_get_around_the_gate(pool, mode, name):
    _, answer = pool(mode).payload("many", "option", name=name)
    assert answer == {"error": "EPERM"}
    _, answer = pool(mode).payload("many", "option", name="keepalive")
    assert answer == {"ok": True}


@pytest.mark.parametrize("name", ["reuseport_cbpf", "max_pacing_rate", "txtime"])
def test_control_options_work_outside(world, name):
    _, answer = world.near().payload("many", "option", name=name)
    assert answer == {"ok": True}
