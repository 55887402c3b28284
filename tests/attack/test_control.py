# SPDX-License-Identifier: MIT
"""The control API under load: whoever holds connections, and however many, an escalation gets its answer and is applied
while they are held."""
import contextlib
import os
import subprocess

import pytest

from lib import base
from lib.box import Adopted, attach_pid, new_session
from lib.world import FAR

COUNT = 450
STYLES = ["silent", "half", "body", "asks", "pipelines"]


@contextlib.contextmanager
def crowd(world, daemon, style, processes=1, url="/v1/events?limit=1000", before=None, user=0):
    """A crowd that is connected; yields its process and how many connections it got. before: called with its pid when
    the sockets are made and nothing is connected."""
    code = (base.TESTS / "attack/payload/crowd.py").read_text()
    p = base.popen([*world.enter(), "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", base.PYTHON, "-c", code,
                    str(daemon.socket), style, str(COUNT), str(processes), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"made\n"
        if before:
            before(p.pid)
        p.stdin.write(b"\n")
        p.stdin.flush()
        yield p, int(p.stdout.readline())
    finally:
        with contextlib.suppress(OSError):
            p.stdin.close()
        p.stdout.close()
        base.reap(p)


@pytest.fixture(scope="module")
def busy(daemon):
    """Something to ask for that takes its time."""
    box = Adopted(daemon, "FULL")
    for _ in range(300):
        box.try_("dial", family=4, addr="169.254.169.254", port=80)
    yield box
    box.close()


def escalates(daemon, adopted):
    box = adopted("FULL")
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
    answer = daemon.api.escalate(box.session, "SECRET")
    assert answer["mode"] == "NONE" and answer["raised"], answer
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


@pytest.mark.parametrize("processes", [1, 225], ids=["one process", "many processes"])
@pytest.mark.parametrize("style", STYLES)
def test_an_escalation_in_a_crowd_of_operators(world, daemon, busy, adopted, style, processes):
    with crowd(world, daemon, style, processes) as (p, up):
        escalates(daemon, adopted)
        assert p.poll() is None
        assert up == COUNT, "newcomers are not kept waiting"
        with contextlib.closing(daemon.api.follow()) as events:  # and one more who stays
            escalates(daemon, adopted)
            assert events.until(lambda e: e.get("reason") == "raised")


def test_an_escalation_beside_those_who_wait(world, daemon, adopted):
    """`wait=1`: each of them asked, and is to be answered when something changes."""
    session = new_session("waits")
    daemon.api.create(session, "PUBLIC")
    run = daemon.api.ok("POST", "/v1/runs", {"session": session, "command": ["true"], "class": "write"})["run"]
    with crowd(world, daemon, "asks", url=f"/v1/runs/{run}?wait=1") as (p, up):
        escalates(daemon, adopted)
        assert p.poll() is None and up == COUNT


def test_an_escalation_beside_slow_followers(world, daemon, adopted):
    with crowd(world, daemon, "asks", url="/v1/events?follow=1&after=0") as (p, up):
        escalates(daemon, adopted)
        assert p.poll() is None and up == COUNT


def test_other_users_do_not_take_what_is_roots(world, daemon, adopted):
    """A user with a role, with as many processes as it likes: neither does it keep root out nor does anything of root's end
    for it."""
    nobody, before = 65534, daemon.policy.read_text()
    daemon.policy.write_text(before + "access: {reader: 'group:65534'}\n")
    try:
        daemon.cli("policy", "reload", check=0)
        assert os.stat(daemon.socket).st_gid == nobody
        with contextlib.closing(daemon.api.follow()) as events, crowd(world, daemon, "half", 225, user=nobody) as (p, up):
            assert up == COUNT
            escalates(daemon, adopted)
            assert p.poll() is None
            assert events.until(lambda e: e.get("reason") == "raised")
    finally:
        daemon.policy.write_text(before)
        daemon.cli("policy", "reload", check=0)


def test_a_sandbox_holds_no_place(world, daemon, adopted):
    """Sockets that were made outside go past the gate; the process that connects them is inside."""
    box = adopted("FULL", user="root")
    session = box.session
    with crowd(world, daemon, "half", before=lambda pid: attach_pid(box.cgroup, pid)) as (p, up):
        assert up == COUNT
        assert daemon.api.escalate(session, "SECRET")["raised"]
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert p.poll() is None
        p.stdin.write(b"\n")
        p.stdin.flush()
        assert int(p.stdout.readline()) == COUNT, "each of them was refused, and none is held"
