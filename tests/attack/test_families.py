# SPDX-License-Identifier: MIT
"""Families and system calls that no inet hook sees. `netpawl run` closes them; an adopted cgroup cannot be closed
this way (doctor says so), so these are about `run`."""
import socket

import pytest

from lib import base
from lib.world import FAR

# AF_NETLINK stays: the resolver of the C library asks it which addresses there are. Its writes are tested below.
HARMLESS = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
USERS = pytest.mark.parametrize("user", ["root", "nobody"])
MODES = pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])


@MODES
@USERS
def test_no_other_family_opens(world, pool, mode, user):
    _, outside = world.outside.payload("families", "opened")
    opened = {int(f) for f in outside["opened"]}
    assert socket.AF_PACKET in opened and len(opened - HARMLESS) >= 2, f"the control opens more: {opened}"
    status, inside = pool(mode, user).payload("families", "opened")
    assert status == 0
    assert {int(f) for f in inside["opened"]} <= HARMLESS


@USERS
def test_no_pairs_of_other_families(pool, user):
    status, inside = pool("NONE", user).payload("families", "pairs")
    assert status == 0 and inside["opened"] == []


def test_vsock_is_refused(world, pool):
    """Named for itself: a host's hypervisor listens there."""
    for user in ("root", "nobody"):
        assert pool("NONE", user).call("execute", argv=[
            base.PYTHON, "-c", "import socket;socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)"])["code"] != 0


@USERS
@pytest.mark.parametrize("abi", ["i386", "x32"])
def test_other_system_call_tables(world, pool, abi, user):
    """A control needs the table; where the kernel has none there is no such door."""
    _, control = world.outside.payload("families", "compat", abi=abi)
    if control["code"] == 3:
        pytest.skip(f"this kernel has no {abi} system calls")
    assert control["code"] == 0, control
    status, inside = pool("NONE", user).payload("families", "compat", abi=abi)
    assert inside["code"] != 0, inside


@USERS
def test_uring_opens_no_packet_socket(world, pool, user):
    _, control = world.outside.payload("families", "uring", what="packet")
    if control["code"] == 3:
        pytest.skip("this kernel has no io_uring")
    assert control["code"] == 0, control
    status, inside = pool("NONE", user).payload("families", "uring", what="packet")
    assert inside["code"] != 0, inside


@pytest.mark.parametrize("kind", ["run", "adopted"])
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_uring_connects_nowhere(world, daemon, pool, adopted, mode, kind):
    mark = base.token()
    words = [str(world.dir / "payload" / "uring"), "connect", FAR[4], "9000", mark]
    with world.watch(mark) as control:
        code = world.outside.call("execute", argv=words)["code"]
    if code == 3:
        pytest.skip("this kernel has no io_uring")
    assert code == 0 and control.carried()
    box = pool(mode) if kind == "run" else adopted(mode)
    with world.watch(mark) as watch:
        assert box.call("execute", argv=words)["code"] != 0
    assert watch.nothing()


@USERS
def test_network_is_not_the_sandboxs_to_configure(world, pool, user):
    _, control = world.outside.payload("families", "netlink_writes")
    assert "ok" in control.values(), control
    for link in base.sh("ip", "-n", world.host, "-o", "link").stdout.splitlines():
        if ": npx" in link:
            world.ip("link", "del", link.split(": ")[1].split("@")[0])
    world.ip("addr", "del", "127.9.9.9/32", "dev", "lo")
    base.sh("ip", "-n", world.host, "route", "del", "unreachable", "198.18.0.1", check=False)
    base.sh("ip", "-n", world.host, "route", "del", "blackhole", "198.18.0.1", check=False)
    status, inside = pool("NONE", user).payload("families", "netlink_writes")
    assert "ok" not in inside.values(), inside
