# SPDX-License-Identifier: MIT
"""The queue of a device, past every hook: what an acknowledgement waits for there, and that what waits longer is what was judged."""
import contextlib
import select
import threading
import time

import pytest

from lib import base
from lib.box import Box, Launched
from lib.fixtures import daemon_with
from lib.world import DEV, FAR, SINK
from test_after_ack import TUNNEL, Net
from test_cut import listening

ROUNDS = 3


@pytest.fixture(scope="module")
def daemon(world):
    with daemon_with(world, "") as d:
        yield d


@contextlib.contextmanager
def queue(world, rate, burst, limit):
    tc = lambda *words: base.sh(*world.enter(), "tc", "qdisc", *words)
    tc("add", "dev", DEV, "root", "tbf", "rate", rate, "burst", burst, "limit", limit)
    try:
        yield
    finally:
        tc("del", "dev", DEV, "root")


def carried(world, word, since):
    return sum(bool(f["mark"]) for f in world.frames(since, word, limit=2000)["frames"])


@pytest.mark.parametrize("closes", [False, True], ids=["left", "closed"])
@pytest.mark.parametrize("kind", ["datagrams", "streams"])
def test_a_socket_that_leads_nowhere_any_more(world, daemon, boxes, kind, closes):
    """Its frames are waited for, as those of others are: some 6 ms of them fit into the queue."""
    late = []
    with queue(world, "20mbit", "2000", "16000"):
        for _ in range(ROUNDS):
            mark, box = base.token(), boxes("FULL", kind=Launched)
            assert box.payload("queues", kind, far4=FAR[4], sink=SINK, mark=mark, closes=closes)[1]["said"] == "sends"
            time.sleep(0.1)
            moment = time.time_ns()
            assert base.eventually(lambda: carried(world, mark, moment) > 5), "the control: it sends as long as it may"
            daemon.api.escalate(box.session, "SECRET")
            acknowledged = time.time_ns()
            time.sleep(0.05)
            late.append(carried(world, mark, acknowledged))
            box.close()
    assert sum(late) == 0, late


def written_after(world, api, box, **kw):
    """A queue that a sandbox fills outlasts what an acknowledgement waits. Frames that leave then, and have what was written after it."""
    old, new, path = base.token(), base.token(), f"/tmp/{base.token()}"
    with queue(world, "100mbit", "200000", "60000000"):
        start = time.time_ns()
        assert box.payload("queues", "shared", timeout=60, path=path, old=old, new=new, **kw)[1]["said"] == "ready"
        assert base.eventually(lambda: carried(world, old, start) > 20), "the control: it sends as long as it may"
        time.sleep(0.5)
        api.escalate(box.session, "SECRET")
        acknowledged = time.time_ns()
        box.call("write_file", path=f"{path}.go", data="x")  # only now does it learn what must not leave
        time.sleep(1.5)
        return carried(world, new, acknowledged)


@pytest.mark.parametrize("how", ["sendfile", "zerocopy", "datagrams"])
def test_pages_of_a_program(world, daemon, boxes, how):
    assert written_after(world, daemon.api, boxes("FULL", kind=Launched), how=how, far=FAR[4], port=SINK) == 0


class Reader(threading.Thread):
    """Behind tunnels: takes all that comes."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.listener, self.over, self.conns = base.setns_call(world.far, lambda: listening(TUNNEL)), False, []
        self.start()

    def run(self):
        while not self.over:
            for s in select.select([self.listener, *self.conns], [], [], 0.2)[0]:
                if s is self.listener:
                    self.conns.append(s.accept()[0])
                    continue
                try:
                    more = s.recv(1 << 18)
                except OSError:
                    more = b""
                if not more:
                    self.conns.remove(s)
                    s.close()

    def close(self):
        self.over = True
        self.join()
        for s in (self.listener, *self.conns):
            s.close()


def test_pages_of_a_program_through_tunnels():
    """The inspector does not move them on as they are."""
    with contextlib.ExitStack() as stack:
        net = Net(stack)
        stack.callback(Reader(net.world).close)
        box = Box(net.daemon, level="INTERNAL")
        stack.callback(box.close)
        assert written_after(net.world, net.api, box, how="sendfile", far="tunnel.test", port=TUNNEL) == 0
