# SPDX-License-Identifier: MIT
"""What a sandbox did is its own session's on record, also when another session has its cgroup by then."""
import contextlib
import json

import pytest

from lib import base, bpf
from lib.box import Adopted, attach_pid, new_session
from lib.inspected import Inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: origin.test
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY)


def get(box, path, keep, **kw):
    head = f"GET {path} HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n"
    return box.call("dial", family=4, addr=FAR[4], port=80, keep=keep, data=head, **kw)


@pytest.mark.parametrize("whose", ["another", "the same"])
def test_what_the_first_did_is_the_firsts(net, whose):
    """Refusals of the gate; a request that is over; and one that is open when the cgroup is adopted again. The same session: another sandbox
    of it, for which that is as true."""
    box, mark = Adopted(net.daemon, "PROXIED", wired=False), base.token()
    first, was = box.session, box.id
    told = lambda session: [e for e in net.api.events(session=session) if mark in json.dumps(e)]
    try:
        for _ in range(4):
            assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert box.refusals()
        get(box, f"/hold/{mark}", "c")
        get(box, f"/before/{mark}", "d", recv=4096)
        assert base.eventually(lambda: told(first), 10)
        box.call("close", keep="c")
        box.call("close", keep="d")
        pids = base.cgroup_pids(box.cgroup)
        for pid in pids:
            attach_pid(base.cgroup_mount(), pid)
        net.api.remove(box.id)
        for pid in pids:
            attach_pid(box.cgroup, pid)
        if whose == "another":
            box.session = new_session("second")
            net.api.create(box.session, "CONFIDENTIAL")
        box.info = net.api.adopt(box.session, box.cgroup)
        box.id = box.info["sandbox"]
        now = net.api.ok("GET", f"/v1/sandboxes/{box.id}")
        assert (now["requests"], now["refused"], now["sent"]) == (0, 0, 0)
        assert base.eventually(lambda: len(told(first)) == 2, 10), told(first)
        assert {e["sandbox"] for e in told(first)} == {was}
        assert bpf.lookup(net.daemon, "np_sandboxes", int(box.info["cgroup_id"]))["session"] == box.session
        if whose == "another":
            assert not told(box.session)
            assert mark not in json.dumps(net.api.ok("GET", f"/v1/sessions/{box.session}/why"))
        # Control: what it does itself is its own.
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        get(box, f"/after/{mark}", "e", recv=4096)
        assert base.eventually(lambda: [e for e in told(box.session) if e["sandbox"] == box.id], 10)
        now = net.api.ok("GET", f"/v1/sandboxes/{box.id}")
        assert (now["requests"], now["refused"]) == (1, 1)
    finally:
        box.close()
