# SPDX-License-Identifier: MIT
"""A full map means refuse."""
import errno
import os

import pytest

from lib import base
from lib.bpf import Ratchet
from lib.box import Box, new_session
from lib.world import FAR


@pytest.fixture
def full(make_daemon):
    """A daemon whose np_sandboxes has no room left: filled by its own raise program with ids of no cgroup."""
    d = make_daemon().start()
    early = Box(d, "FULL")
    raise_ = Ratchet(d)
    r = 0
    try:
        for i in range(1, 65536 + 10):
            r = raise_((0xF00D << 48) + i, 1, 2)
            if r:
                break
    finally:
        raise_.close()
    assert r in (-errno.E2BIG, -errno.ENOSPC, -errno.ENOMEM), f"the map is not full: {r}"
    yield d, early
    early.close()


def test_full_map(world, full):
    d, early = full
    # who is in already is governed as before
    assert early.try_("dial", family=4, addr=FAR[4], port=9000, keep="c") == "ok"
    # nobody else gets in: no sandbox that is not one
    status, answer = d.api.ask("POST", "/v1/sandboxes", {"session": new_session("full")})
    assert status in (429, 500, 507) and answer["error"] in ("too_many", "not_applied"), answer
    p = d.cli("run", "--level", "SECRET", "--", "true")
    assert p.returncode == 125 and p.stderr
    folder = base.cgroup_make("full")
    agent = world.agent(world.host, cgroup=folder)
    try:
        status, answer = d.api.ask("POST", "/v1/sandboxes", {"session": new_session("full"), "cgroup": str(folder)})
        assert status in (429, 500, 507), answer
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        base.cgroup_destroy(folder)
    # what was made on the way is gone again, or at least closed
    for path in d.slice.iterdir():
        if path.is_dir() and path != early.cgroup:
            assert not base.cgroup_pids(path)
    # a raise needs no new entry
    answer = d.api.escalate(early.session, "SECRET")
    assert answer["mode"] == "NONE" and answer["cut"] == 1
    assert early.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    # and a restart finds its way
    d.restart("kill")
    assert d.api.show(early.session)["mode"] == "NONE"
    assert early.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_sandboxes_of_one_session_are_bounded(make_daemon):
    d = make_daemon().start()
    name = new_session("bound")
    status, answer = 201, None
    for _ in range(1100):
        status, answer = d.api.ask("POST", "/v1/sandboxes", {"session": name})
        if status != 201:
            break
    assert (status, answer["error"]) == (429, "too_many"), answer
    assert len(d.api.sandboxes(name)) == 1024
    assert d.api.escalate(name, "SECRET")["mode"] == "NONE", "the bound is no way around the ratchet"
    d.api.end(name)
    assert base.eventually(lambda: not [p for p in d.slice.iterdir() if p.is_dir()], 10)


def test_a_deep_cgroup_is_refused_not_missed(world, make_daemon):
    """The walk in the kernel is bounded by depth: deeper than that cannot be adopted, and a process that goes deeper
    below a sandbox is still in it."""
    d = make_daemon().start()
    top = base.cgroup_make("deep")
    deep = top
    try:
        for i in range(40):
            deep = deep / "d"
            deep.mkdir()
        status, answer = d.api.ask("POST", "/v1/sandboxes", {"session": new_session(), "cgroup": str(deep)})
        assert status == 409 and answer["error"] == "bad_cgroup", answer
        name = new_session("deep")
        d.api.create(name, "SECRET")
        agent = world.agent(world.host, cgroup=deep)
        try:
            d.api.adopt(name, top)
            assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        finally:
            world.drop(agent)
            base.eventually(lambda: not base.cgroup_pids(top), 3)
        d.api.end(name)
    finally:
        base.cgroup_destroy(top)
    assert not os.path.exists(top)
