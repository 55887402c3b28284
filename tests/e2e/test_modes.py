# SPDX-License-Identifier: MIT
"""What the three modes let through, and with which words they refuse."""
import pytest

from lib import base
from lib.box import Adopted, Box
from lib.world import FAR, FAR_OTHER

KINDS = pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
USERS = pytest.mark.parametrize("user", ["root", "nobody"])


@pytest.mark.smoke
@KINDS
@USERS
@pytest.mark.parametrize("family", [4, 6])
def test_full_is_open(world, pool, family, user, kind):
    box = pool("FULL", user, kind)
    for port in (53, 80, 443, 8080, 9000):
        mark = base.token()
        assert box.call("dial", family=family, addr=FAR[family], port=port, data=mark, recv=100)["data"] == mark
    for port in (53, 443, 9000):
        mark = base.token()
        assert box.call("sendto", family=family, addr=FAR[family], port=port, data=mark, recv=100)["data"] == mark
        got = box.call("dial", family=family, addr=FAR[family], port=port, data=mark, recv=100, kind="dgram")
        assert got["data"] == mark


def test_full_mapped_and_ping(world, pool):
    box = pool("FULL")
    assert box.try_("dial", family=6, addr="::ffff:" + FAR[4], port=80) == "ok"
    assert box.try_("sendto", family=6, addr="::ffff:" + FAR[4], port=9000, data="x", recv=1) == "ok"
    for family in (4, 6):
        mark = base.token()
        with world.watch(mark) as watch:
            box.payload("egress", "ping", family=family, addr=FAR[family], port=0, mark=mark)
        assert watch.carried()


@pytest.mark.parametrize("family", [4, 6])
def test_full_passes_fragments(world, pool, family):
    """A datagram larger than a frame goes and comes back whole."""
    data = "f" * 20000
    got = pool("FULL").call("sendto", family=family, addr=FAR[family], port=9000, data=data, recv=65536)
    assert got["len"] == len(data)


def test_full_has_no_raw_sockets(pool):
    """TCP, UDP and ping, and nothing else, in FULL too: raw sockets read others' traffic."""
    _, answer = pool("FULL").payload("egress", "raw_proto", family=4, addr=FAR[4], port=0, mark="x")
    assert answer["error"] in ("EPERM", "EACCES", "EPROTONOSUPPORT")


@pytest.mark.smoke
@pytest.mark.parametrize("port,transport,reason", [
    (80, "stream", "no_inspector"), (443, "stream", "no_inspector"), (53, "stream", "no_dns_gate"),
    (53, "dgram", "no_dns_gate"), (8080, "stream", "not_in_policy"), (443, "dgram", "not_in_policy"),
    (9000, "dgram", "not_in_policy")])
@pytest.mark.parametrize("family", [4, 6])
def test_proxied_says_why(world, boxes, family, port, transport, reason):
    box = boxes("PROXIED")
    with world.watch() as watch:
        assert box.try_("dial", family=family, addr=FAR[family], port=port, kind=transport, data="x") == "ECONNREFUSED"
    assert watch.nothing()
    event = box.refusals()[0]
    assert (event["reason"], event["mode"], event["port"], event["address"]) == (reason, "PROXIED", port, FAR[family])


@pytest.mark.smoke
@pytest.mark.parametrize("family", [4, 6])
def test_none_says_why(boxes, family):
    box = boxes("NONE")
    assert box.try_("dial", family=family, addr=FAR[family], port=80) == "ECONNREFUSED"
    assert box.refusals()[0]["reason"] == "mode_none"


@KINDS
@pytest.mark.parametrize("level,mode", [("PUBLIC", "FULL"), ("INTERNAL", "FULL"), ("CONFIDENTIAL", "PROXIED"),
                                        ("SECRET", "NONE")])
def test_levels_are_modes(api, boxes, level, mode, kind):
    box = boxes(kind=kind, level=level)
    assert box.info["mode"] == mode and box.info["session"] == box.session and box.info["adopted"] == isinstance(box, Adopted)
    assert api.show(box.session)["mode"] == mode
    assert (box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok") == (mode == "FULL")


def test_thirty_sandboxes_at_once(world, api, daemon):
    """Different modes side by side, then each a step up: nobody is touched by a neighbour's raise."""
    modes = ["FULL", "PROXIED", "NONE"]
    made = []
    try:
        for i in range(30):
            made.append(Box(daemon, modes[i % 3]))
        assert len(api.sandboxes()) >= 30
        for i, box in enumerate(made):
            want = "ok" if i % 3 == 0 else "ECONNREFUSED"
            assert box.try_("dial", family=4 + 2 * (i % 2), addr=FAR[4 + 2 * (i % 2)], port=9000) == want
        # every second FULL one goes to NONE
        for box in made[0::6]:
            assert api.escalate(box.session, "SECRET")["mode"] == "NONE"
        for i, box in enumerate(made):
            open_ = i % 3 == 0 and i % 6 != 0
            assert (box.try_("dial", family=4, addr=FAR_OTHER, port=9000) == "ok") == open_
    finally:
        for box in made:
            box.close()


def test_two_sandboxes_of_one_session(api, boxes):
    """A session's level is all its sandboxes' level, and a later sandbox starts at it."""
    first = boxes("FULL")
    second = boxes(session=first.session, mode="FULL")
    assert first.id != second.id and len(api.sandboxes(first.session)) == 2
    api.escalate(first.session, "SECRET")
    third = boxes(session=first.session, mode="FULL")
    for box in (first, second, third):
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert third.info["mode"] == "NONE"


def test_sandboxes_of_one_session_are_strangers_on_loopback(boxes):
    """The same sandbox, not the same session, is what makes a listener one's own."""
    first = boxes("FULL")
    second = boxes(session=first.session)
    port = first.call("listen", keep="l", family=4, addr="127.0.0.1")["port"]
    assert second.try_("dial", family=4, addr="127.0.0.1", port=port) == "ECONNREFUSED"


def test_adopting_a_running_program_cuts_it(world, api, adopted):
    """What it held open from before the adoption is governed by the mode, or the adoption says that it cannot be."""
    def before(agent):
        agent.call("dial", family=4, addr=FAR[4], port=9000, keep="old", data="x", recv=1)

    from lib.api import Failure
    try:
        box = adopted("NONE", before=before)
    except Failure as e:
        assert e.error == "held_sockets" and e.status == 409
        return
    assert box.info.get("cut", 1) >= 1  # netpawl attach does not tell
    mark = base.token()
    with world.watch(mark) as watch:
        assert box.try_("send", keep="old", data=mark) != "ok"
    assert watch.marked == 0


def test_adopting_in_full_and_escalating_later_cuts_old_sockets(world, api, adopted):
    """A socket keeps the cgroup it was made in. Made before the process was put into the adopted cgroup it is
    nobody's: either it is cut at the adoption, or the adoption is refused. It must not live on in NONE."""
    from lib.api import Failure
    from lib.box import attach_pid, new_session
    folder = base.cgroup_make("late")
    agent = world.agent(world.host)
    session = new_session("late")
    try:
        agent.call("dial", family=4, addr=FAR[4], port=9000, keep="old", data="x", recv=1)
        attach_pid(folder, agent.process.pid)
        api.create(session, "PUBLIC")
        try:
            api.adopt(session, folder)
        except Failure as e:
            assert e.error == "held_sockets"
            return
        api.escalate(session, "SECRET")
        mark = base.token()
        with world.watch(mark) as watch:
            agent.try_("send", keep="old", data=mark)
        assert watch.marked == 0
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        api.ask("DELETE", f"/v1/sessions/{session}")
        base.cgroup_destroy(folder)


@pytest.mark.skipif(bool(base.ADOPTED), reason="a device of the host's: test_containers.py has a container's")
def test_device_that_appears_later_is_gated(world, daemon, pool):
    """A second way to the world, made after the daemon started. A frame by AF_PACKET, from an adopted cgroup where
    no system call filter helps, meets nothing but the hook on the device."""
    world.ip("link", "add", "npv8", "type", "veth", "peer", "name", "npv9", "netns", world.far)
    try:
        world.ip("link", "set", "npv8", "up")
        world.ip("addr", "add", "192.0.2.129/30", "dev", "npv8")
        base.sh("ip", "-n", world.far, "addr", "add", "192.0.2.130/30", "dev", "npv9")
        base.sh("ip", "-n", world.far, "link", "set", "npv9", "up")
        world.world.call("sniff", keep="npv9", dev="npv9")
        assert world.outside.try_("dial", family=4, addr="192.0.2.130", port=9000) == "ok"
        assert pool("FULL").try_("dial", family=4, addr="192.0.2.130", port=9000) == "ok"
        assert pool("NONE").try_("dial", family=4, addr="192.0.2.130", port=9000) == "ECONNREFUSED"

        def frames(agent, seconds=0.1):
            mark = base.token()
            agent.payload("egress", "packet", family=4, addr="", port=0, mark=mark, dev="npv8")
            came = lambda: len(world.world.call("records", keep="npv9", mark=mark)["records"])
            base.for_a_while(lambda: came() >= 3, seconds)
            return came()

        assert frames(world.outside, 60) == 3, "the control"
        assert base.eventually(lambda: frames(pool("NONE", kind=Adopted).agent) == 0)
        assert frames(pool("NONE", kind=Adopted).agent) == 0
    finally:
        world.world.call("close", keep="npv9")
        world.ip("link", "del", "npv8")
