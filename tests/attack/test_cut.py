# SPDX-License-Identifier: MIT
"""A cut finds the sockets of a sandbox by a list of them, and not by a pass over all of the host's. Judged by the kernel's own
tables: when the acknowledgement is there, no socket of the sandbox leads off the host any more, whoever holds it; of more than a
few the last are ended right after it, and send nothing meanwhile. The pass that comes later, off the path, finds nothing
either (`cut_late`); and it does find what a list lacks, when we take it away."""
import contextlib
import ctypes
import os
import socket
import struct
import time

import pytest

from lib import base, bpf
from lib.box import Adopted, Box, Launched
from lib.fixtures import daemon_with
from lib.world import DEV, FAR, GATE4, HOST4, SINK

CALLED, DEAF = 24190, 9190  # inbound: in the policy; a far end that takes no byte
ROUNDS = int(os.environ.get("NETPAWL_CUT_ROUNDS", 2))  # of what has to be seen more than once to be believed
KINDS = pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
PLACES = dict(far4=FAR[4], far6=FAR[6], sink=SINK, hold=DEAF)


def listening(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.bind((FAR[4], port))
    s.listen(4096)
    return s


@pytest.fixture(scope="module", autouse=True)
def deaf(world):
    """Its kernel accepts, and it does not."""
    with base.setns_call(world.far, lambda: listening(DEAF)) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(world):
    with daemon_with(world, f"inbound: [{CALLED}]\n") as d:
        yield d


def open_sockets(box):
    """Those of the sandbox that lead off the host, by the kernel's tables: TIME_WAIT is nobody's any more."""
    inode = box.cgroup.stat().st_ino
    text = base.sh(*box.enter(), "ss", "-H", "-t", "-u", "-a", "-n", "--cgroup").stdout
    rows = []
    for line in text.splitlines():
        words = line.split()
        owner = next((w.split(":", 1)[1] for w in words if w.startswith("cgroup:")), None)
        if owner and (owner == f"unreachable:{inode:x}" or str(box.cgroup).endswith(owner)) and owner != "/":
            rows.append((words[1], words[5].rsplit(":", 1)[0].strip("[]").removeprefix("::ffff:")))
    return [row for row in rows if row[0] not in ("LISTEN", "TIME-WAIT") and row[1] in (*FAR.values(), GATE4)]


def all_ended(box):
    """The last of many are ended behind the acknowledgement."""
    return base.eventually(lambda: open_sockets(box) == [])


def end(box):
    """With what its payloads left running."""
    with contextlib.suppress(FileNotFoundError):
        (box.cgroup / "cgroup.kill").write_text("1")
    box.close()


@pytest.fixture
def boxes(daemon):
    made = []

    def make(mode="FULL", kind=Box):
        made.append(kind(daemon, mode))
        return made[-1]

    yield make
    for box in made:
        if box in daemon.boxes:
            end(box)


def late(daemon):
    return daemon.api.health()["cut_late"]


def nothing_late(daemon, before):
    """Two passes over the host's tables, or what would be two."""
    time.sleep(2.2)
    assert late(daemon) == before


def hold_all(box):
    said = box.payload("cuts", "hold_all", **PLACES)[1]["said"]
    assert said.isdigit(), said
    return int(said)


@KINDS
@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_sockets_that_a_list_could_miss(daemon, boxes, kind, level):
    box, before = boxes("FULL", kind=kind), late(daemon)
    want = hold_all(box)
    assert len(open_sockets(box)) >= want, "the control: before the raise the kernel has all of them"
    answer = daemon.api.escalate(box.session, level)
    assert all_ended(box)
    assert answer["cut"] >= want
    nothing_late(daemon, before)


def test_sockets_from_before_an_adoption(daemon, boxes):
    """They are older than the list."""
    said, before = [], late(daemon)
    box = Adopted(daemon, before=lambda agent: said.append(agent.payload("cuts", "of_old", **PLACES)[1]["said"]))
    try:
        assert len(open_sockets(box)) == 6
        box.call("execute", argv=["kill", "-USR1", said[0]])  # a number of its own, perhaps
        assert base.eventually(lambda: len(open_sockets(box)) == 8)
        assert daemon.api.escalate(box.session, "SECRET")["cut"] >= 8
        assert open_sockets(box) == []
    finally:
        end(box)
    nothing_late(daemon, before)


@KINDS
def test_connections_that_nobody_has_accepted(world, daemon, boxes, kind):
    box, before = boxes("FULL", kind=kind), late(daemon)
    assert box.payload("cuts", "not_accepted", port=CALLED, count=20)[1]["said"] == "listens"
    for i in range(20):
        world.world.call("dial", family=4, addr=box.addr[4], port=CALLED, keep=f"caller{i}")
    try:
        assert base.eventually(lambda: len(open_sockets(box)) == 20), "the control"
        answer = daemon.api.escalate(box.session, "SECRET")
        assert open_sockets(box) == [] and answer["cut"] == 20
    finally:
        for i in range(20):
            world.world.call("close", keep=f"caller{i}")
    nothing_late(daemon, before)


@KINDS
def test_under_churn(daemon, boxes, kind):
    """Sockets come and go while they are cut. What connect() had let pass at the very moment of the raise may appear behind
    our back: it is not worth a second look of ours, but it ends within the next pass."""
    before = late(daemon)
    for _ in range(4):
        box = boxes("FULL", kind=kind)
        assert box.payload("cuts", "churn", far4=FAR[4], sink=SINK)[1]["said"] == "churns"
        assert base.eventually(lambda: len(open_sockets(box)) > 20), "the control"
        assert daemon.api.escalate(box.session, "SECRET")["cut"] > 10
        assert all_ended(box)
        end(box)
    nothing_late(daemon, before)


def test_sockets_that_are_made_at_once(daemon, boxes):
    """Several processes look for a slot in the same blocks at the same time: none of their sockets is missing, and none is there twice."""
    for _ in range(2 * ROUNDS):
        box = boxes("FULL")
        assert box.payload("cuts", "churn", far4=FAR[4], sink=SINK)[1]["said"] == "churns"
        assert base.eventually(lambda: len(open_sockets(box)) > 20), "the control"
        (box.cgroup / "cgroup.freeze").write_text("1")
        assert base.eventually(lambda: "frozen 1" in (box.cgroup / "cgroup.events").read_text())
        have, noted = cookies(box), sockets_of(daemon, box)
        assert len(have) > 20 and have <= set(noted)
        assert len(noted) == len(set(noted))
        assert all(slot["cookie"] != 2**64 - 1 for block in blocks_of(daemon, box) for slot in block["value"]["slots"])
        end(box)


def cookies(box):
    """Of the sandbox's sockets to the far end, by the kernel's tables."""
    text = base.sh(*box.enter(), "ss", "-H", "-t", "-u", "-n", "-e", "--cgroup", "dst", FAR[4]).stdout
    mine = [line for line in text.splitlines() if any(w.startswith("cgroup:") and str(box.cgroup).endswith(w[7:]) for w in line.split())]
    return {int(w[3:], 16) for line in mine for w in line.split() if w.startswith("sk:")}


def drained(deaf):
    """The far end reads what its kernel has, whereupon that tells every sender that there is room: bytes that came."""
    deaf.setblocking(False)
    total = 0
    with contextlib.ExitStack() as stack, contextlib.suppress(BlockingIOError):
        while True:
            s = stack.enter_context(deaf.accept()[0])
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while data := s.recv(65536):
                    total += len(data)
    return total


def with_full_queues(world, box, count):
    assert box.payload("cuts", "full_queues", far4=FAR[4], hold=DEAF, count=count)[1]["said"] == str(count)
    assert len(open_sockets(box)) == count
    world.world.call("frames", since=time.time_ns())  # forget what the capture counted before


@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_a_thousand_with_full_queues(world, daemon, boxes, deaf, level):
    """All that they hold is ready to leave when the far end reads on, which it does as soon as the acknowledgement is there: so
    it would, while most of the sockets are not ended yet."""
    before = late(daemon)
    for _ in range(ROUNDS):
        box = boxes("FULL")
        with_full_queues(world, box, 1000)
        answer, acknowledged = daemon.api.escalate(box.session, level), time.time_ns()
        assert drained(deaf), "there was something to read on from"
        assert answer["cut"] == 1000
        assert all_ended(box)
        time.sleep(0.3)
        got = world.frames(acknowledged)
        assert (got["count"], got["drops"]) == (0, 0), got["frames"][:3]
        end(box)
    nothing_late(daemon, before)


def test_control_a_thousand_with_full_queues(world, boxes, deaf):
    box = boxes("FULL")
    with_full_queues(world, box, 1000)
    moment = time.time_ns()
    drained(deaf)
    assert base.eventually(lambda: world.frames(moment, limit=1)["count"] > 100), "they go on when they are read"


@KINDS
def test_killed_behind_the_acknowledgement(world, make_daemon, deaf, kind):
    """Most of the sockets were not ended then. They send nothing, and the next daemon ends them."""
    daemon = make_daemon().start(failpoint="before_tail")
    box = kind(daemon)
    try:
        with_full_queues(world, box, 300)
        daemon.arm("before_tail")
        answer, acknowledged = daemon.api.escalate(box.session, "SECRET"), time.time_ns()
        assert answer["cut"] == 300
        assert daemon.wait_death() == -9, "the fail point did not strike"
        assert len(open_sockets(box)) > 100, "the control: they are there"
        drained(deaf)
        time.sleep(0.5)
        assert len(open_sockets(box)) > 100
        daemon.start()
        assert all_ended(box)
        got = world.frames(acknowledged)
        assert (got["count"], got["drops"]) == (0, 0), got["frames"][:3]
    finally:
        end(box)


def test_stopped_behind_the_acknowledgement(world, make_daemon, deaf):
    """A daemon that is told to stop ends them first."""
    daemon = make_daemon().start()
    box = Box(daemon)
    try:
        with_full_queues(world, box, 1000)
        assert daemon.api.escalate(box.session, "SECRET")["cut"] == 1000
        daemon.stop()
        assert open_sockets(box) == []
        drained(deaf)
    finally:
        daemon.start()
        end(box)


@contextlib.contextmanager
def slow_device(world):
    """Some milliseconds of frames wait in its queue, past every hook: fewer than an acknowledgement waits for."""
    tc = lambda *words: base.sh(*world.enter(), "tc", "qdisc", *words)
    tc("add", "dev", DEV, "root", "tbf", "rate", "20mbit", "burst", "2000", "limit", "12000")
    try:
        yield
    finally:
        tc("del", "dev", DEV, "root")


@pytest.mark.parametrize("port,peer", [(0, None), (24188, None), (24189, [HOST4, 24189])], ids=["client", "server", "to_itself"])
def test_datagrams_in_the_queue_of_a_device(world, daemon, boxes, port, peer):
    """The acknowledgement waits for them, whatever the socket is otherwise: one that stays, for it is a server's, or one whose peer may stay."""
    sent = lambda since: world.frames(since, limit=1)["count"]
    with slow_device(world):
        for _ in range(2 * ROUNDS):
            box = boxes("FULL", kind=Launched)
            assert box.payload("cuts", "datagrams", far4=FAR[4], sink=SINK, port=port, peer=peer)[1]["said"] == "sends"
            time.sleep(0.1)
            moment = time.time_ns()
            assert base.eventually(lambda: sent(moment) > 20), "the control: it sends as long as it may"
            daemon.api.escalate(box.session, "SECRET")
            acknowledged = time.time_ns()
            time.sleep(0.05)
            assert sent(acknowledged) == 0
            end(box)


def blocks_of(daemon, box):
    return [e for e in bpf.dump(daemon, "np_sockets") if e["key"]["cgroup_id"] == int(box.info["cgroup_id"])]


def sockets_of(daemon, box):
    """Cookies of all that are in its list, or were."""
    return [slot["cookie"] for block in blocks_of(daemon, box) for slot in block["value"]["slots"] if slot["cookie"]]


def forget(daemon, box):
    for key in [block["key"] for block in blocks_of(daemon, box)]:
        raw = key["cgroup_id"].to_bytes(8, "little") + key["block"].to_bytes(4, "little") + bytes(4)
        base.sh("/usr/sbin/bpftool", "map", "delete", "pinned", daemon.pins / "maps/np_sockets", "key", *map(str, raw))


def test_what_a_list_lacks_is_found_later(daemon, boxes):
    """The control of `cut_late`, and of the tests above: without the list nothing is cut at once. (The list of an adopted one is made
    by a look at the tables, at the latest before its first cut.)"""
    box, before = boxes("FULL", kind=Launched), late(daemon)
    box.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
    assert sockets_of(daemon, box)
    forget(daemon, box)
    assert daemon.api.escalate(box.session, "SECRET")["cut"] == 0
    assert base.eventually(lambda: late(daemon) == before + 1, 10)
    assert open_sockets(box) == []
    assert box.try_("recv", keep="c") == "ECONNABORTED"


def test_a_list_without_room(daemon, boxes):
    """NP_SLOTS_LOST: a cut looks at the host's tables again, before it acknowledges."""
    box, before = boxes("FULL"), late(daemon)
    with filled(daemon):
        box.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
        assert [v for v in bpf.dump(daemon, "np_sandboxes") if v["key"] == int(box.info["cgroup_id"])][0]["value"]["slots"] >> 31
    assert daemon.api.escalate(box.session, "SECRET")["cut"] == 1
    assert open_sockets(box) == []
    nothing_late(daemon, before)


@contextlib.contextmanager
def filled(daemon):
    """No room in np_sockets for anybody: entries of a sandbox that is not there."""
    room, size = 65536, 16 * 24
    fd = bpf.obj_get(daemon.pins / "maps/np_sockets")
    keys = ctypes.create_string_buffer(b"".join(b"\xff" * 8 + struct.pack("Q", i) for i in range(room)))
    values = ctypes.create_string_buffer(size * room)

    def batch(command, count):
        """How many were done."""
        attr = ctypes.create_string_buffer(struct.pack("QQQQIIQQ", 0, 0, ctypes.addressof(keys), ctypes.addressof(values), count, fd, 0, 0))
        ctypes.CDLL(None).syscall(bpf.NR_BPF, command, attr, len(attr.raw) - 1)
        return struct.unpack_from("I", attr.raw, 32)[0]

    made = batch(26, room)  # BPF_MAP_UPDATE_BATCH
    try:
        assert made > room - 2000
        yield
    finally:
        batch(27, made)  # BPF_MAP_DELETE_BATCH
        os.close(fd)


def test_the_list_outlives_its_sandbox_by_nothing(daemon, boxes):
    box = boxes("FULL")
    for i in range(20):
        box.call("dial", family=4, addr=FAR[4], port=SINK, keep=f"c{i}")
    assert len(sockets_of(daemon, box)) >= 20
    ident = int(box.info["cgroup_id"])
    box.close()
    assert base.eventually(lambda: not [e for e in bpf.dump(daemon, "np_sandboxes") if e["key"] == ident], 10)
    assert base.eventually(lambda: blocks_of(daemon, box) == [])


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_after_a_restart(make_daemon, how):
    """Sockets from before it, and from while nobody was there."""
    daemon = make_daemon()
    daemon.start()
    made, adopted = Box(daemon), Adopted(daemon)
    try:
        wants = {box: hold_all(box) for box in (made, adopted)}
        getattr(daemon, how)()
        for box in wants:
            box.call("dial", family=4, addr=FAR[4], port=SINK, keep="between")
        daemon.start()
        for box, want in wants.items():
            box.call("dial", family=4, addr=FAR[4], port=SINK, keep="later")
            assert daemon.api.escalate(box.session, "SECRET")["cut"] >= want + 2
            assert all_ended(box)
        nothing_late(daemon, 0)
    finally:
        end(made)
        end(adopted)


@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
@pytest.mark.parametrize("same,local", [(False, False), (True, False), (True, True)], ids=["control", "twins", "local"])
def test_sockets_with_the_same_addresses(daemon, boxes, same, local, level):
    """Destroyed by its addresses, one of them is found and the others are not."""
    box, before = boxes(), late(daemon)
    _, got = box.payload("cuts", "twins", far4=FAR[4], sink=SINK, near=box.addr[4], port=34567, count=300, same=same,
                         local=local)
    assert got["said"] == "300", got
    assert daemon.api.escalate(box.session, level)["cut"] >= 300
    assert all_ended(box)
    nothing_late(daemon, before)


def test_what_was_opened_while_programs_were_gone(daemon, boxes):
    """A raise that puts them back cuts afterwards."""
    box, before = boxes(kind=Launched), late(daemon)
    for hook in ("create", "sockops"):
        base.sh(*daemon.world.enter(), "bpftool", "link", "detach", "pinned", daemon.pins / "links/slice" / f"np_{hook}")
    for i in range(5):
        box.call("dial", family=4, addr=FAR[4], port=SINK, keep=f"c{i}")
    assert daemon.api.escalate(box.session, "SECRET")["cut"] == 5
    assert open_sockets(box) == []
    nothing_late(daemon, before)
