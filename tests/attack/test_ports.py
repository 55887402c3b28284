# SPDX-License-Identifier: MIT
"""The host's ports are everybody's: a sandbox, whatever its mode, holds a bounded number of sockets, and the host and
other sandboxes go on."""
import pytest

from lib import base, bpf
from lib.box import Adopted, Box

PER_SANDBOX, SURE = 2048, 64  # user/vocab/limits.h


@pytest.fixture(params=[Box, Adopted], ids=["run", "adopted"])
def kind(request):
    return request.param


def counted(box):
    """What the kernel counts for this sandbox."""
    entry = bpf.lookup(box.daemon, "np_sandboxes", box.cgroup.stat().st_ino)
    return entry["sockets"]


def test_one_sandbox_does_not_take_all_ports(world, pool, boxes, kind):
    """As nobody, in NONE: it gets its share and then EMFILE, with a reason; the host binds, others send."""
    box, other = boxes("NONE", kind=kind, user="nobody"), pool("NONE", user="nobody")
    before = counted(box)
    for protocol, how in (("udp", "bind"), ("udp", "send"), ("tcp", "bind"), ("tcp", "nothing")):
        status, got = box.payload("ports", "take", kind=protocol, count=4000, how=how, timeout=60)
        assert status == 0 and got["ended"] == "EMFILE", got
        assert PER_SANDBOX - 16 <= got["taken"] <= PER_SANDBOX
        # A file that somebody looks at as it is closed, by /proc/PID/fd, is released by the one who looks.
        assert base.eventually(lambda: counted(box) == before), "what was closed is given back"
    assert box.refusals("too_many_sockets")[-1]["hook"] == "socket"
    assert other.try_("sendto", family=4, addr="127.0.0.1", port=9, data="x") in ("ok", "ECONNREFUSED")


def test_control_without_the_gate_there_is_no_bound(world):
    status, got = world.outside_user.payload("ports", "take", kind="udp", count=4000, timeout=60)
    assert status == 0 and got == {"taken": 4000, "ended": None}


def test_an_honest_program_does_not_feel_it(boxes):
    """A server with 500 connections, and clients to them; and three times as many sockets, one after the other, as may be
    open at once."""
    box = boxes("FULL")
    before = counted(box)
    assert box.payload("ports", "connected", count=500, timeout=60) == (0, {"pairs": 500})
    assert box.payload("ports", "rounds", count=3 * PER_SANDBOX, timeout=90) == (0, {"done": 3 * PER_SANDBOX})
    assert base.eventually(lambda: counted(box) == before)


def test_a_few_are_sure_when_all_together_have_their_share(world, make_daemon):
    """On a host with few ephemeral ports: three quarters of them are for all sandboxes together, but each has some."""
    old = world.outside.call("execute", argv=["sysctl", "-n", "net.ipv4.ip_local_port_range"])["out"].split()
    world.sysctl(world.host, {"net.ipv4.ip_local_port_range": "40000 40999"})
    try:
        d = make_daemon().start()
        with Box(d, "NONE") as greedy, Box(d, "NONE") as late:
            held = [greedy.call("hold_many", keep="g", count=1000), late.call("hold_many", keep="l", count=1000)]
            assert 700 <= held[0]["count"] <= 750 and held[0]["error"] == "EMFILE", held
            assert held[1]["error"] == "EMFILE"
            assert SURE - 8 <= held[1]["count"] <= SURE
            # A new daemon takes the counts over: nothing is given twice, and nothing is lost.
            was = counted(greedy), counted(late)
            d.kill()
            d.start()
            assert (counted(greedy), counted(late)) == was
            assert greedy.call("hold_many", keep="more", count=10)["count"] == 0
            greedy.call("drop_many", keep="g")
            assert late.call("hold_many", keep="m", count=100)["count"] == 100
            late.call("drop_many", keep="m")
            late.call("drop_many", keep="l")
        assert base.eventually(lambda: bpf.lookup(d, "np_share", 0)["sockets"] == 0, 10), bpf.dump(d, "np_share")
    finally:
        world.sysctl(world.host, {"net.ipv4.ip_local_port_range": " ".join(old)})


def test_sockets_that_outlive_their_process(world, boxes):
    """Killed with all it has open: the count goes down to what is left."""
    box = boxes("NONE")
    before = counted(box)
    assert box.call("leave_many", count=200)["code"] == -9
    assert base.eventually(lambda: counted(box) == before, 10)


def test_the_table_of_ports_forgets(world, boxes, daemon):
    """Sockets come and go; what is left in the kernel's tables are those that are open, and one more."""
    box = boxes("FULL")
    assert box.payload("ports", "rounds", count=600, timeout=60) == (0, {"done": 600})
    left = [e for e in bpf.dump(daemon, "np_holds") if e["value"]["cgroup_id"] == box.cgroup.stat().st_ino]
    assert len(left) <= 20, left
