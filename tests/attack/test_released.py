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


@pytest.mark.parametrize("then", ["at once", "when somebody was let in"])
def test_a_raise_after_the_removal(net, then):
    """A request that an inspector has taken. At once is the control: the gate still holds what is left. It is released when somebody was let
    in, or after a minute, which tests/unit/session/test_sandbox.c does not have to wait for."""
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
        nothing_after(net, origin, mark, raised(net, box), len(head) + len(body))
    finally:
        box.close()
        origin.close()


@pytest.mark.parametrize("then, what", [("the cgroup is empty", "closed"), ("another session adopts it", "closed"),
                                        ("another session adopts it later", "closed"), ("another session adopts it", "held"),
                                        ("another session adopts it later", "held")])
def test_a_raise_when_the_cgroup_is_anothers(net, then, what):
    """FULL: bytes in the kernel's queues, of a socket that was closed, or that a process holds which lives on. The empty cgroup is the control;
    later: it was released before."""
    origin, box = Late(net, DIRECT), Adopted(net.daemon, "FULL", wired=False)
    first = box.session
    try:
        mark, body = marks(200000)
        box.call("dial", family=4, addr=FAR[4], port=DIRECT, keep="c")
        send_all(box, body[:30000])
        origin.accept()
        origin.has()
        if what == "closed":
            box.call("close", keep="c")
        let_in = removed(net, box)
        if then != "the cgroup is empty":
            let_in()
            if then.endswith("later"):
                time.sleep(4)
            box.session = new_session("second")
            net.api.create(box.session)
            box.id = net.api.adopt(box.session, box.cgroup)["sandbox"]
        net.api.escalate(first, "SECRET")
        nothing_after(net, origin, mark, time.time_ns(), 30000)
        if then != "the cgroup is empty":  # which goes on, in its own session
            box.call("dial", family=4, addr=FAR[4], port=DIRECT, data="hello", keep="d")
            with contextlib.closing(origin.accept()) as conn:
                assert conn.recv(5) == b"hello"
    finally:
        box.close()
        origin.close()
