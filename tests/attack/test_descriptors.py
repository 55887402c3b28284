# SPDX-License-Identifier: MIT
"""A sandbox's own network takes six of the daemon's descriptors. However many a platform makes, what others need is left: every
control connection, a raise, sandboxes that share the host's network."""
import contextlib
import os
import resource
import socket

import pytest

from lib import base
from lib.box import Box, new_session
from lib.world import FAR
from test_launch import launch, output
from test_own_network import Net

RESERVE = 512  # NP_DESCRIPTORS_RESERVE
ROOM = 60      # descriptors beyond it


def make(net, session):
    return net.api.ask("POST", "/v1/sandboxes", {"session": session, "enters_network": True, "clean": True})


@pytest.fixture
def soft():
    """netpawld is started with what systemd and shells give."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    yield 1024
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("network", ["private", "shared"])
def test_others_have_descriptors_left(network):
    with contextlib.ExitStack() as stack:
        net = Net(stack, network)
        victim = stack.enter_context(Box(net.daemon, "PROXIED"))
        victim.call("dial", family=4, addr=FAR[4], port=80, keep="out", data="GET / HTTP/1.1\r\n")
        hog, pid = new_session("hog"), net.daemon.process.pid
        net.api.create(hog, "CONFIDENTIAL")
        here = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (here + RESERVE + ROOM,) * 2)
        answers = [make(net, hog) for _ in range(ROOM)]
        made = [status for status, _ in answers].count(201)
        if network == "shared":  # the control: it is the networks that take them
            assert made == ROOM
        else:
            assert 0 < made <= ROOM // 6 and answers[-1][1]["error"] == "not_applied", answers[-1]
            assert "Too many open files" in answers[-1][1]["detail"]
            assert len(net.api.sandboxes(hog)) == made  # those that were refused are gone
        for _ in range(100):  # of one process: it may have more
            stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(net.daemon.socket))
        with Box(net.daemon, "FULL") as other:
            assert other.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
        assert net.api.escalate(victim.session, "SECRET")["cut"] >= 1
        assert victim.try_("dial", family=4, addr=FAR[4], port=80) == "ECONNREFUSED"


def test_the_daemon_takes_what_it_may_have(soft):
    """And gives nothing of it on: commands that it launches have what it was started with."""
    with contextlib.ExitStack() as stack:
        net = Net(stack, "private")
        limit = lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE)
        own, hard = limit(net.daemon.process.pid)
        assert own == min(hard, 32768) > soft
        session = new_session("launched")
        net.api.create(session, "CONFIDENTIAL")
        assert output(net.api, launch(net.api, session, "sh", "-c", "ulimit -Sn; ulimit -Hn"))[0].split() == [str(soft), str(hard)]
        assert limit(net.daemon.process.pid) == (own, hard)
        made = [make(net, session)[0] for _ in range(150)]  # 900 of them
        assert made == [201] * 150
