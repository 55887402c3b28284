# SPDX-License-Identifier: MIT
"""No sandbox reads the metrics of the host, in no mode and by no name of the host; and none that listens where an OTLP receiver
should be is told the events of others. The controls are the same from outside of a sandbox."""
import os
import signal

import pytest

from lib import base
from lib.box import Box, new_session
from lib.fixtures import daemon_with
from lib.world import HOST4, HOST6

MODES = ["FULL", "PROXIED", "NONE"]
WAYS = [(4, "127.0.0.1"), (4, "127.1.2.3"), (4, "0.0.0.0"), (4, HOST4), (6, "::ffff:127.0.0.1"), (6, "::ffff:" + HOST4), (6, "::1"), (6, HOST6)]
REQUEST = "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:9464\r\n\r\n"


@pytest.fixture(scope="module")
def daemon(world):
    with daemon_with(world, 'metrics: {listen: "127.0.0.1:9464"}\nevents: {otlp: "http://127.0.0.1:4318"}\n') as d:
        assert base.eventually(lambda: all(e["ready"] for e in d.api.health()["exports"]), 30)
        yield d


def test_the_control_gets_the_metrics(world, daemon):
    assert world.outside.try_("dial", family=4, addr="127.0.0.1", port=9464, data=REQUEST, recv=200, timeout=5) == "ok"
    assert world.outside.try_("dial", family=6, addr="::ffff:127.0.0.1", port=9464, data=REQUEST, recv=200, timeout=5) == "ok"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family, addr", WAYS)
def test_a_sandbox_does_not(pool, mode, family, addr):
    assert pool(mode).agent.try_("dial", family=family, addr=addr, port=9464, data=REQUEST, recv=200, timeout=5) != "ok"


def impatient(daemon):
    """Another exporter: it has not waited for anybody yet."""
    for line in base.sh("ps", "-eo", "pid=,args=").stdout.splitlines():
        pid, _, args = line.strip().partition(" ")
        if "netpawl-export" in args and f"{daemon.run_dir}/empty otlp" in args:
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("mode", MODES)
def test_a_sandbox_in_the_receivers_place_is_told_nothing(world, daemon, mode):
    """It listens where the policy sends events to; the exporter dials it again and again meanwhile."""
    failures = lambda: next(e["failures"] for e in daemon.api.health()["exports"] if e["export"] == "otlp")
    with Box(daemon, mode=mode) as box:
        box.call("listen", keep="l", family=4, addr="0.0.0.0", port=4318, kind="stream")
        impatient(daemon)
        before = failures()
        daemon.api.create(new_session())
        assert base.eventually(lambda: failures() > before, 20)
        assert box.call("records", keep="l")["records"] == []
        box.call("close", keep="l")


def test_the_control_is_told(world, daemon):
    world.outside.call("listen", keep="otlp", family=4, addr="127.0.0.1", port=4318, kind="stream")
    try:
        impatient(daemon)
        daemon.api.create(new_session())
        assert base.eventually(lambda: [r for r in world.outside.call("records", keep="otlp")["records"] if "POST /v1/logs" in r["data"]], 20)
    finally:
        world.outside.call("close", keep="otlp")
