# SPDX-License-Identifier: MIT
"""A container's cgroup that outlives its sandbox and is adopted again, by another session: the gate is in its network all the time."""
import contextlib

import pytest

from lib import base
from lib.box import Adopted, attach_pid, new_session
from lib.world import DEV, FAR
from test_containers import Net, ask, homes, pins


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture(params=["another", "the same"])
def again(net, request):
    """Emptied, removed, populated again, and attached to another session, or (the control) to the same."""
    box = Adopted(net.daemon, "FULL", wired=True)
    try:
        there, pids = homes(net, box), base.cgroup_pids(box.cgroup)
        assert pins(net, box)
        for pid in pids:
            attach_pid(base.cgroup_mount(), pid)
        net.api.remove(box.id)
        for pid in pids:
            attach_pid(box.cgroup, pid)
        if request.param == "another":
            box.session = new_session("second")
            net.api.create(box.session)
        box.info = net.api.adopt(box.session, box.cgroup)
        box.id = box.info["sandbox"]
        assert box.info["network"] == "container" and homes(net, box) == there
        yield box
    finally:
        box.close()


def test_its_devices_stay_guarded(net, again):
    """AF_PACKET in NONE, which np_device alone sees."""
    net.api.escalate(again.session, "SECRET")
    mark = base.token()
    with net.world.watch(mark) as watch:
        status, got = again.payload("egress", "packet", family=4, addr=FAR[4], port=9000, mark=mark, dev=DEV)
    assert status == 0 and set(got["done"]) == {"ENOBUFS"} and not watch.marked, got


def test_who_leaves_its_namespace_gets_no_socket(again):
    status, left = again.payload("leave", "leave", how="unshare")
    assert left["socket"] == "EPERM"


def test_no_broadcast_leaves(net, again):
    mark = base.token()
    with net.world.watch(mark) as watch:
        again.payload("egress", "broadcast", family=4, addr=FAR[4], port=9000, mark=mark)
    assert not watch.marked


def test_its_connections_are_cut_and_its_requests_pass(net, again):
    again.call("dial", family=4, addr=FAR[4], port=9000, data="x", keep="c")
    again.call("block_recv", keep="c")
    net.api.escalate(again.session, "CONFIDENTIAL")
    assert again.call("wait", keep="c", timeout=5)["ended"]
    assert ask(again, 20040, "/open/x") == (0, {"statuses": [200]})
