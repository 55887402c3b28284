# SPDX-License-Identifier: MIT
"""The little internet itself, with no gate in sight: what the other tests call "reached" really is reached here."""
import time

import pytest

from lib import base
from lib.world import DEV, FAR, FAR_OTHER, GATE_LINK, HOST4, HOST6, META_ALL, TCP_PORTS, UDP_PORTS


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("family", [4, 6])
def test_far_servers_answer(world, family, user):
    near = world.near(user)
    for port in TCP_PORTS:
        mark = base.token()
        assert near.call("dial", family=family, addr=FAR[family], port=port, data=mark, recv=100)["data"] == mark
    for port in UDP_PORTS:
        mark = base.token()
        got = near.call("sendto", family=family, addr=FAR[family], port=port, data=mark, recv=100)
        assert got["data"] == mark
        assert world.records(0, mark)


@pytest.mark.parametrize("family,addr", META_ALL + [(4, FAR_OTHER), (6, f"{GATE_LINK}%{DEV}")])
def test_special_addresses_are_reachable_without_a_gate(world, family, addr):
    assert world.outside.try_("dial", family=family, addr=addr, port=80) == "ok"


def test_capture_sees_every_frame_and_calls_it_by_its_time(world):
    mark = base.token()
    before = time.time_ns()
    _, answer = world.outside.payload("egress", "packet", family=4, addr=FAR[4], port=9000, mark=mark)
    assert answer["done"] == ["sent"] * 3
    assert base.eventually(lambda: world.frames(before, mark)["marked"] == 3)
    got = world.frames(before, mark)
    assert {f["ethertype"] for f in got["frames"] if f["mark"]} == {"88b5", "0800"}
    assert before < got["frames"][0]["t"] < time.time_ns()
    assert world.frames(time.time_ns(), mark)["marked"] == 0


def test_capture_keeps_up_with_a_stream(world):
    """The proof of silence after an escalation rests on this: nothing is dropped at full rate."""
    def dropped():
        start = time.time_ns()
        world.world.call("frames", since=start)
        for keep, family in (("s4", 4), ("s6", 6)):
            world.outside.call("dial", family=family, addr=FAR[family], port=9101, keep=keep)
            world.outside.call("stream", keep=keep)
        assert base.eventually(lambda: time.time_ns() > start + 6e8 and world.frames(start, limit=1)["count"] > 100)
        world.world.call("frames", since=start)  # from here on
        time.sleep(0.3)
        for keep in ("s4", "s6"):
            world.outside.call("close", keep=keep)
        got = world.frames(start)
        world.settle()
        return got["drops"]

    # where others want the CPUs, too, it may fall behind, and says so: see NoJudgement in test_escalation.py
    assert any(dropped() == 0 for _ in range(10))


def test_silence_is_silence(world):
    """Nobody talks: no frame but the kernel's own noise. Otherwise 'nothing left' could never be judged."""
    with world.watch() as watch:
        time.sleep(0.5)
    assert watch.nothing()


def test_far_side_reaches_the_host(world):
    for family, addr in ((4, HOST4), (6, HOST6)):
        port = world.outside.call("listen", keep=f"in{family}", family=family, addr=addr)["port"]
        assert world.world.try_("dial", family=family, addr=addr, port=port) == "ok"
        world.outside.call("close", keep=f"in{family}")


def test_no_way_out_of_the_world(world):
    """Addresses that WORLD does not own have no route beyond it."""
    answer = base.sh("ip", "-n", world.far, "route", "get", "8.8.8.8", check=False)
    assert answer.returncode != 0
    answer = base.sh("ip", "-n", world.far, "-6", "route", "get", "2606:4700::1111", check=False)
    assert answer.returncode != 0 or "unreachable" in answer.stdout
