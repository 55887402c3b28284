# SPDX-License-Identifier: MIT
"""An adopted cgroup that lives on when its sandbox was removed: what its session had handed over meets a later raise."""
import contextlib
import time

import pytest

from lib import base
from lib.box import Adopted, attach_pid, new_session
from lib.world import FAR
from test_after_ack import BODY, DIRECT, Late, Net, marks, nothing_after, post, raised, send_all, unread


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


def removed(net, box):
    """Its processes move away, and DELETE. They come back by what this returns."""
    pids = base.cgroup_pids(box.cgroup)
    for pid in pids:
        attach_pid(base.cgroup_mount(), pid)
    net.api.remove(box.id)

    def let_in():
        for pid in pids:
            attach_pid(box.cgroup, pid)
    return let_in


@pytest.mark.parametrize("then", ["at once", "when somebody was let in", "after a minute"])
def test_a_raise_after_the_removal(net, then):
    """A request that an inspector has taken. At once is the control: the gate still holds what is left."""
    origin, box = Late(net, 80), Adopted(net.daemon, level="INTERNAL", wired=False)
    try:
        mark, body = marks(BODY)
        box.call("dial", family=4, addr=FAR[4], port=80, keep="c")
        send_all(box, post(len(body)) + body)
        origin.accept()
        head = origin.head()
        assert base.eventually(lambda: not unread(net, box), 60)
        origin.has()
        box.call("close", keep="c")
        let_in = removed(net, box)
        if then == "when somebody was let in":
            let_in()
            time.sleep(4)  # sweeps, which release it
        elif then == "after a minute":
            time.sleep(66)
        nothing_after(net, origin, mark, raised(net, box), len(head) + len(body))
    finally:
        box.close()
        origin.close()
