# SPDX-License-Identifier: MIT
"""Containers in FULL: the host's ports behind IPv6 headers, which take CAP_NET_RAW, as Docker's containers have it; and two that work
together to call each other."""
import threading
import time

import pytest

from lib import base
from test_containers import HOST6, OURS, WILD, alone, contained, net  # noqa: F401

SINK6, MEET = 24733, 24740


@pytest.fixture
def listener(net):
    def listen(kind, **kw):
        return net.world.outside.call("listen", keep="hidden", family=6, addr=WILD[6], kind=kind, **kw)["port"]

    yield listen
    net.world.outside.call("close", keep="hidden")


@pytest.mark.parametrize("options", [False, True], ids=["plain", "options"])
@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_the_packet_layer_by_itself(net, contained, alone, listener, kind, options):
    """Without the hooks of connect() and sendmsg(): it does not rely on them."""
    port, box = listener(kind), contained("FULL")
    words = dict(addr=HOST6, port=port, data="hidden", udp=kind == "dgram", options=options)
    assert alone().payload("hidden", "call", **words)[1]["got"], "the control: who is in no sandbox reaches it"
    assert "got" not in box.payload("hidden", "call", **words)[1]
    with net.daemon.without("connect6", "sendmsg6", place=f"c{box.info['cgroup_id']}"):
        got = box.payload("hidden", "call", **words)[1]
    assert "got" not in got, got


@OURS
@pytest.mark.parametrize("options", [False, True], ids=["plain", "options"])
def test_a_socket_from_before_the_adoption(net, contained, listener, options):
    listener("dgram", port=SINK6, role="sink")
    mark = base.token()
    came = lambda since: len(net.world.outside.call("records", keep="hidden", since=since, mark=mark)["records"])
    box = contained("FULL", before=lambda agent: agent.payload("hidden", "goes_on", addr=HOST6, port=SINK6, mark=mark, options=options))
    assert came(0), "the control: before it was adopted"
    time.sleep(0.3)
    since = time.time_ns()
    time.sleep(0.5)
    assert not came(since), box.events()


@pytest.mark.parametrize("sandboxes", [False, True], ids=["control", "sandboxes"])
def test_two_that_call_each_other_at_once(net, contained, alone, sandboxes):
    one, two = (contained("FULL"), contained("FULL")) if sandboxes else (alone(), alone())
    got = {}

    def call(near, far):
        got[near] = near.payload("hidden", "meet", timeout=30, near=near.addr[4], far=far.addr[4], port=MEET)[1]["got"]

    threads = [threading.Thread(target=call, args=a) for a in ((one, two), (two, one))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert any(got.values()) == (not sandboxes), got
