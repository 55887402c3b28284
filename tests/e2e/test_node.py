# SPDX-License-Identifier: MIT
"""What a node's service manager and its operator rely on: readiness, installation, devices that come and go."""
import json
import os
import pathlib
import socket
import subprocess

import pytest

from lib import base
from lib.world import FAR

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_is_told(make_daemon, tmp_path, abstract):
    name = "@np-test-" + base.token() if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.bind("\0" + name[1:] if abstract else name)
        d = make_daemon().start(NOTIFY_SOCKET=name)
        # abstract names belong to a network namespace, and the daemon lives in its own
        if not abstract:
            assert s.recv(100) == b"READY=1"
            d.stop()
            assert s.recv(100) == b"STOPPING=1"
        else:
            assert d.api.health()["status"] == "ok", "a manager that cannot be told stops nothing"
            assert base.eventually(lambda: "NOTIFY_SOCKET" in d.text())



def test_a_device_that_appears_later_carries_the_gate(world, daemon):
    """The count of devices that carry np_device follows the devices that there are."""
    before = daemon.api.health()["devices"]
    base.sh("ip", "-n", world.host, "link", "add", "nplater", "type", "veth", "peer", "name", "nplater1")
    try:
        assert base.eventually(lambda: daemon.api.health()["devices"] == before + 2, 10), "not attached"
        pins = {p.name for p in (daemon.pins / "devices").iterdir()}
        index = json.loads(base.sh("ip", "-j", "-n", world.host, "link", "show", "nplater").stdout)[0]["ifindex"]
        assert f"if{index}" in pins
    finally:
        base.sh("ip", "-n", world.host, "link", "del", "nplater")
    assert base.eventually(lambda: not (daemon.pins / "devices" / f"if{index}").exists(), 10), "its pin is left"
    assert base.eventually(lambda: daemon.api.health()["devices"] == before, 10), "still counted"


def test_an_address_that_appears_later_is_the_hosts(world, daemon, boxes):
    """Any address of the host is loopback: refused with the right errno as soon as it is there."""
    near, box = world.near(), boxes("FULL")
    base.sh("ip", "-n", world.host, "addr", "add", "192.0.2.77/32", "dev", "lo")
    try:
        port = near.call("listen", keep="later", family=4, addr="192.0.2.77")["port"]
        assert near.try_("dial", family=4, addr="192.0.2.77", port=port) == "ok", "control: the host reaches it"
        assert base.eventually(lambda: box.try_("dial", family=4, addr="192.0.2.77", port=port) == "ECONNREFUSED", 10)
    finally:
        near.try_("close", keep="later")
        base.sh("ip", "-n", world.host, "addr", "del", "192.0.2.77/32", "dev", "lo")
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"


def test_install(tmp_path):
    """make install puts a program that runs where PREFIX and DESTDIR say."""
    build = os.path.relpath(base.NETPAWLD.parent, ROOT)
    base.sh("make", "-s", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/np", f"BUILD={build}", timeout=120)
    root = tmp_path / "opt" / "np"
    for program in ("sbin/netpawld", "bin/netpawl"):
        got = subprocess.run([root / program, "--version"], capture_output=True, text=True, timeout=180)
        assert got.returncode == 0 and got.stdout.startswith("netpawl"), got
    assert (root / "share/netpawl/policies/default.yaml").exists()
    assert "/opt/np/sbin/netpawld" in (root / "lib/systemd/system/netpawld.service").read_text()
