# SPDX-License-Identifier: MIT
"""What everything stands on is taken away under a running daemon. It is put back, or the daemon says so: and no raise is answered
as if it were enforced, and recorded, when it is not."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from lib import base
from lib.box import Adopted, Box, new_session
from lib.daemon import Daemon
from lib.inspected import Inspected
from lib.world import FAR


@pytest.fixture
def daemon(world):
    d = Daemon(world)
    try:
        d.start()
        yield d
    finally:
        subprocess.run(["umount", "-l", str(d.state_dir)], capture_output=True)
        d.close()


@pytest.fixture(params=[Box, Adopted], ids=["run", "adopted"])
def box(request, daemon):
    b = request.param(daemon, "FULL")
    try:
        assert can(b) == "ok"
        yield b
    finally:
        b.close()


def can(box):
    return box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1)


def remove_links(d):
    shutil.rmtree(d.pins / "links")


def remove_devices(d):
    shutil.rmtree(d.pins / "devices")


def remove_maps(d):
    shutil.rmtree(d.pins / "maps")


def remove_programs(d):
    shutil.rmtree(d.pins / "progs")


def remove_all_pins(d):
    shutil.rmtree(d.pins)


def detach_links(d):
    for path in (d.pins / "links").glob("*/*"):
        base.sh(*d.world.enter(), "bpftool", "link", "detach", "pinned", path, check=False)  # those of the LSM cannot


def detach_devices(d):
    for path in (d.pins / "devices").glob("*"):
        base.sh(*d.world.enter(), "bpftool", "link", "detach", "pinned", path)


HARMS = [remove_links, remove_devices, remove_maps, remove_programs, remove_all_pins, detach_links, detach_devices]


def pins(d):
    return sorted(str(p.relative_to(d.pins)) for f in ("links", "devices", "maps", "progs", "scratch") for p in (d.pins / f).rglob("*"))


@pytest.mark.parametrize("harm", HARMS)
def test_a_raise_is_enforced_at_once(daemon, box, harm):
    """Before the daemon had a second to look."""
    harm(daemon)
    status, answer = daemon.api.ask("POST", f"/v1/sessions/{box.session}/datasets", {"dataset": "d", "level": "SECRET"})
    assert (status, answer.get("mode")) == (200, "NONE"), answer
    assert can(box) == "ECONNREFUSED"
    assert box.try_("sendto", family=4, addr=FAR[4], port=9000) != "ok"


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_gone_is_put_back(daemon, box, harm):
    before = pins(daemon)
    daemon.api.escalate(box.session, "SECRET")
    harm(daemon)
    mended = daemon.api.wait_events(lambda got: any(e["reason"] == "mended" for e in got), 10)
    assert any(e["reason"] == "mended" for e in mended)
    assert base.eventually(lambda: pins(daemon) == before, 10), set(before) ^ set(pins(daemon))
    assert base.eventually(lambda: "was gone, and is there again" in daemon.text(), 10)
    assert base.eventually(lambda: daemon.api.health()["status"] == "ok"), daemon.api.health()
    # A link that is put back later than others leaves it to the packets' programs: those drop, and nobody says so.
    seen = set()
    assert base.eventually(lambda: seen.add(can(box)) or "ECONNREFUSED" in seen, 30) and seen <= {"ECONNREFUSED", "TIMEOUT"}, seen
    # and all of it is there for the next daemon
    daemon.restart("kill")
    assert can(box) == "ECONNREFUSED"
    assert daemon.api.sandbox(box.id)["mode"] == "NONE"


def degraded(daemon, word):
    def look():
        health = daemon.api.health()
        return health["status"] == "degraded" and any(word in line for line in health["degraded"]) and health
    assert base.eventually(look, 10), daemon.api.health()
    assert base.eventually(lambda: "degraded: " in daemon.text(), 10)


def raises(daemon, box, level="SECRET"):
    return daemon.api.ask("POST", f"/v1/sessions/{box.session}/datasets", {"dataset": "d", "level": level})


def test_pins_that_cannot_be_put_back(daemon, box):
    """The bpf file system is gone: the programs are held, but the gate would end with the daemon."""
    base.sh("umount", "-l", daemon.pin_mount)
    degraded(daemon, "the gate")
    status, answer = raises(daemon, box)
    assert (status, answer["error"]) == (507, "not_whole"), answer
    assert can(box) == "ECONNREFUSED", "it is tightened all the same"
    assert "degraded" in daemon.cli("status").stdout
    status, answer = daemon.api.ask("POST", "/v1/sandboxes", {"session": new_session("new"), "clean": True})
    assert (status, answer["error"]) == (507, "not_whole"), answer
    shutil.rmtree(daemon.pin_mount / "netpawl", ignore_errors=True)
    base.sh("mount", "-t", "bpf", "bpf", daemon.pin_mount)
    assert base.eventually(lambda: daemon.api.health()["status"] == "ok", 10), daemon.api.health()
    status, answer = raises(daemon, box)
    assert (status, answer.get("mode")) == (200, "NONE"), answer
    daemon.restart("kill")
    assert can(box) == "ECONNREFUSED"


def test_no_inspector_gets_ready(make_daemon, tmp_path):
    """They end as soon as they are started. Ordinary starts and restarts are no news."""
    d = make_daemon(inspectors=2)
    shutil.copy(base.NETPAWLD, tmp_path / "netpawld")
    inspector, argv = tmp_path / "netpawl-inspect", d.argv
    d.argv = lambda *more, binary=None: argv(*more, binary=tmp_path / "netpawld")

    def put(make):
        make(tmp_path / "new")
        (tmp_path / "new").chmod(0o755)
        (tmp_path / "new").rename(inspector)

    put(lambda path: path.write_text("#!/bin/sh\nexit 1\n"))
    d.start()
    degraded(d, "no inspector is ready")
    assert "no inspector is ready" in d.cli("status", check=0).stdout
    put(lambda path: shutil.copy(base.BUILD / "netpawl-inspect", path))
    assert base.eventually(lambda: d.api.health()["status"] == "ok", 10), d.api.health()
    assert base.eventually(lambda: d.api.health()["inspectors"] == 2, 10)
    told = [line for line in d.text().splitlines() if "no inspector is ready" in line]
    assert len(told) == 2 and "no longer degraded: " in told[1], "told once, and once that it is over"
    before = d.workers()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert base.eventually(lambda: not {*before} & {*d.workers()} and d.api.health()["inspectors"] == 2, 10)
    d.restart()
    assert base.eventually(lambda: d.api.health()["inspectors"] == 2, 10)
    assert d.text().count("no inspector is ready") == 2


def test_state_directory_removed(daemon, box):
    shutil.rmtree(daemon.state_dir)
    status, answer = raises(daemon, box)
    assert (status, answer["error"]) == (507, "not_recorded"), answer
    assert can(box) == "ECONNREFUSED"
    degraded(daemon, "the state directory")
    degraded(daemon, "the record of sessions")
    assert raises(daemon, box)[0] == 507


def test_store_is_no_database(daemon, box):
    path = daemon.state_dir / "sessions.db"
    path.rename(path.with_suffix(".old"))
    path.write_text("nothing of the kind")
    assert raises(daemon, box)[0] == 507
    degraded(daemon, "the record of sessions")
    assert can(box) == "ECONNREFUSED"


def test_run_directory_removed(daemon):
    """Nobody finds the socket any more: the log says why, and a new start is all it needs."""
    shutil.rmtree(daemon.run_dir)
    assert base.eventually(lambda: "degraded: the run directory" in daemon.text(), 10)
    daemon.restart("stop")
    assert daemon.api.health()["status"] == "ok"
    assert any(e["reason"] == "degraded" for e in daemon.api.events())


def tmpfs_state(world, size):
    state = base.tempdir("state")
    base.sh("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", state)
    return state


@pytest.mark.parametrize("harm", ["full", "read-only"])
def test_disk(world, harm):
    state = tmpfs_state(world, "16m")
    d = Daemon(world, state_dir=state)
    try:
        d.start()
        assert d.api.health()["status"] == "ok"
        if harm == "full":
            with open(state / "filler", "wb") as f:
                try:
                    while True:
                        f.write(bytes(1 << 16))
                        f.flush()
                except OSError:
                    pass
        else:
            base.sh("mount", "-o", "remount,ro", state, check=False)
            if os.access(state / "lock", os.W_OK) and "ro," not in pathlib.Path("/proc/mounts").read_text().split(str(state))[1][:40]:
                base.sh("mount", "--bind", state, state)
                base.sh("mount", "-o", "remount,bind,ro", state)
        degraded(d, "is full" if harm == "full" else "is read-only")
        if harm == "full":
            (state / "filler").unlink()
            assert base.eventually(lambda: d.api.health()["status"] == "ok", 10), d.api.health()
            assert any(e["reason"] == "mended" for e in d.api.events())
    finally:
        d.close()
        for _ in range(2):
            subprocess.run(["umount", "-l", str(state)], capture_output=True)
        base.drop_tempdir(state)


def test_inspectors_cgroup_removed():
    """They are ended and their cgroup is removed: it is made again, and names and requests go through."""
    with contextlib.ExitStack() as stack:
        net = Inspected(stack, in_memory=True)
        before = net.daemon.inspector_cgroup.stat().st_ino

        def remove():
            for pid in net.daemon.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            with contextlib.suppress(OSError):
                net.daemon.inspector_cgroup.rmdir()
            try:
                return net.daemon.inspector_cgroup.stat().st_ino != before
            except FileNotFoundError:
                return True
        assert base.eventually(remove, 20, 0.001)
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20), net.daemon.text()[-2000:]
        assert net.daemon.inspector_cgroup.stat().st_ino != before
        assert base.eventually(lambda: net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/x").stdout == "200", 20)


def test_a_slice_that_was_made_again(daemon):
    """By whoever makes directories: no program is on it, and nobody is let in there."""
    session = new_session("bare")
    daemon.api.create(session, "PUBLIC")
    daemon.slice.rmdir()
    daemon.slice.mkdir()
    status, answer = daemon.api.ask("POST", "/v1/sandboxes", {"session": session, "clean": True})
    assert (status, answer["error"]) == (507, "not_whole"), answer
    assert not [p for p in daemon.slice.iterdir() if p.is_dir()]
    degraded(daemon, "the slice")
    daemon.restart("kill")
    assert daemon.api.health()["status"] == "ok"
    assert daemon.api.ask("POST", "/v1/sandboxes", {"session": session, "clean": True})[0] == 201
