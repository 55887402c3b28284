# SPDX-License-Identifier: MIT
"""The disk: full, small, gone bad. What was acknowledged is on it; what could not be written is never acknowledged."""
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import time

import pytest

from lib import base
from lib.api import Failure
from lib.box import Box, new_session
from lib.daemon import NotReady
from lib.world import FAR


class Disk:
    """A small tmpfs that can be filled up and emptied."""

    def __init__(self, megabytes=8):
        self.dir = base.tempdir("disk")
        base.sh("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", self.dir)
        self.ballast = self.dir / "ballast"

    def fill(self):
        fd = os.open(self.ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (1 << 16, 4096, 512, 64, 1):
                try:
                    while os.write(fd, b"\0" * size) == size:
                        pass
                except OSError:
                    continue
        finally:
            os.close(fd)

    def free(self):
        self.ballast.unlink()

    def close(self):
        base.sh("umount", "-l", self.dir, check=False)
        base.drop_tempdir(self.dir)


@pytest.fixture
def disk():
    d = Disk()
    yield d
    d.close()


@pytest.fixture
def small(disk, make_daemon):
    state = disk.dir / "state"
    state.mkdir()
    return make_daemon(state_dir=state).start()


def can(box):
    return box.try_("dial", family=4, addr=FAR[4], port=9000)


def full_escalation(disk, daemon, session, **kw):
    """An escalation on a full disk: (status, answer). SQLite may have room in pages it has already: fill and ask
    until it says no, with another record each time. Between commits its log is emptied into the rest of the file, as far as that
    has room: who asks slowly asks often."""
    for i in range(900):
        disk.fill()
        status, answer = daemon.api.ask("POST", f"/v1/sessions/{session}/datasets",
                                        {"level": "SECRET", "dataset": f"d{i}", "reason": "r" * 500})
        if status != 200:
            return status, answer
    raise AssertionError("the disk never was full")


def test_full_disk(world, disk, small):
    box = Box(small, "FULL")
    try:
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
        disk.fill()
        status, answer = full_escalation(disk, small, box.session)
        assert (status, answer["error"]) == (507, "not_recorded"), answer
        # tightened and cut all the same
        with world.watch() as watch:
            assert can(box) == "ECONNREFUSED"
            assert box.try_("send", keep="c", data="x") != "ok"
        assert watch.nothing()
        assert small.api.health()["status"] in ("ok", "degraded")
        # reading goes on; a new sandbox of the session is not looser than the kernel was told to be
        small.api.show(box.session)
        # asked again while still full: still no acknowledgement, unless it was recorded
        status, answer = small.api.ask("POST", f"/v1/sessions/{box.session}/datasets",
                                       {"level": "SECRET", "dataset": "again", "reason": "r" * 500})
        assert status in (200, 507)
        disk.free()
        answer = small.api.escalate(box.session, "SECRET", dataset="again")
        assert (answer["level"], answer["mode"]) == ("SECRET", "NONE")
        small.restart("kill")
        assert small.api.show(box.session)["level"] == "SECRET"
        assert can(box) == "ECONNREFUSED"
    finally:
        box.close()


def test_first_raise_on_a_full_disk_stands_after_a_crash(world, disk, small):
    """Not acknowledged, not recorded, daemon killed: the kernel keeps it, and the record follows at the restart."""
    box = Box(small, "FULL")
    try:
        disk.fill()
        status, answer = small.api.ask("POST", f"/v1/sessions/{box.session}/datasets",
                                       {"level": "SECRET", "dataset": "d", "reason": "r" * 500})
        assert status in (200, 507)
        assert can(box) == "ECONNREFUSED"
        small.kill()
        assert can(box) == "ECONNREFUSED"
        disk.free()
        small.start()
        assert small.api.show(box.session)["mode"] == "NONE"
        assert can(box) == "ECONNREFUSED"
    finally:
        box.close()


def test_new_sandbox_while_not_recorded(disk, small):
    """Between a raise that could not be recorded and the retry, a new sandbox of the session is as tight as the others."""
    box = Box(small, "FULL")
    try:
        status, answer = full_escalation(disk, small, box.session)
        assert status == 507
        status, answer = small.api.ask("POST", "/v1/sandboxes", {"session": box.session})
        assert status != 201 or answer["mode"] == "NONE", answer
    finally:
        box.close()


def test_events_on_a_full_disk(disk, small):
    """The journal cannot take them: that is counted, enforcement goes on, and later events are written again."""
    box = Box(small, "NONE")
    try:
        disk.fill()
        for _ in range(100):
            assert can(box) == "ECONNREFUSED"
        assert base.eventually(lambda: small.api.health().get("journal_errors", 0) > 0, 5), small.api.health()
        disk.free()
        marker = new_session("after")
        assert base.eventually(lambda: small.api.ask("POST", "/v1/sessions", {"session": marker})[0] in (200, 201), 5)

        def written():
            return any(marker in p.read_text() for p in small.state_dir.rglob("events*.ndjson"))
        assert base.eventually(written, 5)
        for path in small.state_dir.rglob("events*.ndjson"):
            import json
            for line in path.read_text().splitlines():
                json.loads(line)  # no torn line in the middle
    finally:
        box.close()


def test_start_on_a_full_disk(disk, small):
    """It comes up, or it says why and the gate stays as it was."""
    box = Box(small, "NONE")
    try:
        small.kill()
        disk.fill()
        try:
            small.start()
        except NotReady as e:
            assert e.text.strip()
        assert can(box) == "ECONNREFUSED"
        if small.running():
            small.stop()
        disk.free()
        small.start()
        assert small.api.show(box.session)["level"] == "SECRET"
        assert can(box) == "ECONNREFUSED"
    finally:
        box.close()


def test_record_files_are_private(small):
    small.api.escalate(new_session(), "SECRET")
    for path in small.state_dir.rglob("*"):
        if path.is_file():
            private = 0o077 if ".db" in path.name and "event" not in path.name else 0o027
            assert os.stat(path).st_mode & private == 0, path


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_was_acknowledged_is_there(make_daemon, how):
    """Fifty acknowledgements, an end in the middle of nothing, fifty records."""
    d = make_daemon().start()
    names = [new_session(f"ack{i}") for i in range(50)]
    for i, name in enumerate(names):
        assert d.api.escalate(name, ["INTERNAL", "CONFIDENTIAL", "SECRET"][i % 3], dataset=f"d{i}")["raised"]
    d.restart(how)
    for i, name in enumerate(names):
        shown = d.api.show(name)
        assert shown["level"] == ["INTERNAL", "CONFIDENTIAL", "SECRET"][i % 3]
        assert [s["name"] for s in shown["datasets"]] == [f"d{i}"]


def test_an_older_copy_of_the_database(make_daemon):
    """Put back, with the log of raises where it was: what was raised since is raised again, and told."""
    d = make_daemon().start()
    kept, raised = new_session("kept"), new_session("raised")
    for name in (kept, raised):
        d.api.create(name, "INTERNAL")
    d.stop()
    store = d.state_dir / "sessions.db"
    copy = store.read_bytes()
    d.start()
    d.api.create(new_session("other"), "PUBLIC")
    answer = d.api.escalate(raised, "SECRET", dataset="d", reason="since")
    d.stop()
    store.write_bytes(copy)
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    d.start()
    shown = d.api.show(raised)
    assert (shown["level"], shown["mode"], shown["generation"]) == ("SECRET", "NONE", answer["generation"])
    assert [(s["name"], s["reason"]) for s in shown["datasets"]] == [("d", "since")]
    assert d.api.show(kept)["level"] == "INTERNAL"
    assert [e["session"] for e in d.api.events(reason="reconciled")] == [raised]


def test_events_count_on_after_a_restart(make_daemon):
    d = make_daemon().start()
    name = new_session()
    d.api.create(name)
    last = max(e["seq"] for e in d.api.events())
    d.restart("kill")
    d.api.escalate(name, "SECRET")
    later = [e for e in d.api.events(session=name) if e["reason"] == "raised"]
    assert later and later[0]["seq"] > last
    d.stop()
    d.start()
    assert [e for e in d.api.events(session=name) if e["reason"] == "raised"], "history outlives a clean end"


def test_damaged_record_is_not_believed(make_daemon):
    """Garbage where the database was: the daemon does not start with an empty one, for that would forget SECRET."""
    d = make_daemon().start()
    name = new_session()
    d.api.escalate(name, "SECRET")
    box = Box(d, session=name, mode="FULL")
    d.stop()
    stores = [p for p in d.state_dir.rglob("*.db") if "event" not in p.name]
    assert stores
    kept = {}
    for path in d.state_dir.rglob("*.db*"):
        if "event" not in path.name:
            kept[path] = path.read_bytes()
            path.write_bytes(b"garbage " * 1000)
    try:
        with pytest.raises(NotReady) as e:
            d.start()
        assert e.value.text.strip()
        assert can(box) == "ECONNREFUSED"
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
        d.start()
        assert d.api.show(name)["level"] == "SECRET"
        box.close()


# -- the log in front of the database ---------------------------------------------------------------


def names(daemon, session):
    return sorted(each["name"] for each in daemon.api.show(session)["datasets"])


def told(daemon, session):
    return [each["dataset"] for each in daemon.api.ok("GET", f"/v1/sessions/{session}/notices")["notices"]]


def used(daemon, word):
    """A session, and a database whose log has room: the first writes of a daemon go the long way."""
    session = new_session(word)
    daemon.api.create(session, "PUBLIC")
    daemon.api.create(new_session("other"), "PUBLIC")
    daemon.api.escalate(new_session("more"), "INTERNAL")
    time.sleep(1.2)  # a sweep
    return session


def released(daemon, session):
    """Ended, forgotten with its level, and made again."""
    daemon.api.end(session)
    daemon.api.ok("POST", f"/v1/sessions/{session}/forget", {"level_too": True})
    daemon.api.create(session, "PUBLIC")


def test_a_log_that_cannot_be_opened(make_daemon):
    """It is named: the database is all right."""
    daemon = make_daemon()
    log = daemon.state_dir / "sessions.db-raises"
    log.mkdir()
    with pytest.raises(NotReady) as e:
        daemon.start()
    assert f"{log}: Is a directory" in e.value.text
    log.rmdir()
    daemon.start()


def test_what_was_forgotten_does_not_come_back(make_daemon):
    daemon = make_daemon().start()
    session = used(daemon, "released")
    daemon.api.escalate(session, "SECRET", dataset="old")
    released(daemon, session)
    time.sleep(1.2)
    daemon.restart("stop")
    shown = daemon.api.show(session)
    assert (shown["level"], shown["datasets"]) == ("PUBLIC", [])


def test_a_raise_of_a_session_that_was_made_again(make_daemon):
    """Its generations began anew: lower ones than those of its namesake, whose entries the log still has."""
    daemon = make_daemon().start(failpoint="before_catch_up")
    session = used(daemon, "again")
    for level in ("INTERNAL", "CONFIDENTIAL"):
        daemon.api.escalate(session, level, dataset="old")
    released(daemon, session)
    time.sleep(1.2)
    daemon.arm("before_catch_up")
    answer = daemon.api.escalate(session, "SECRET", dataset="new")
    assert answer["generation"] == 2 and daemon.wait_death() == -9, "the fail point did not strike"
    daemon.start()
    shown = daemon.api.show(session)
    assert (shown["level"], shown["mode"], shown["generation"]) == ("SECRET", "NONE", 2)
    assert names(daemon, session) == ["new"]


def test_a_raise_behind_one_that_could_not_be_recorded(make_daemon):
    """Both have one generation. The first is not on record, nor told of, before it is asked for again; it holds all the same."""
    daemon = make_daemon().start(failpoint="before_catch_up")
    session = used(daemon, "behind")
    with contextlib.closing(sqlite3.connect(daemon.state_dir / "sessions.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        status, answer = daemon.api.ask("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET", "dataset": "one"})
        db.execute("ROLLBACK")
        assert status == 507, answer
        time.sleep(1.2)  # a sweep
        assert names(daemon, session) == [] and told(daemon, session) == []
        assert daemon.api.show(session)["mode"] == "NONE"
        daemon.arm("before_catch_up")
        assert daemon.api.escalate(session, "SECRET", dataset="two")["generation"] == 2
        assert daemon.wait_death() == -9, "the fail point did not strike"
    daemon.start()
    assert names(daemon, session) == ["two"]
    assert told(daemon, session) == ["two"]


# -- a disk that loses writes ------------------------------------------------------------------------


class Thin:
    """An ext4 on a device that is promised more room than there is, as thin pools are: what it has no room for it loses, and says so once."""

    MEGABYTES = 24

    def __init__(self, stack):
        self.stack = stack
        self.home = base.tempdir("thin")
        stack.callback(base.drop_tempdir, self.home)
        base.sh("mount", "-t", "tmpfs", "-o", f"size={self.MEGABYTES + 8}m", "tmpfs", self.home)
        stack.callback(lambda: base.sh("umount", "-l", self.home, check=False))
        self.image, self.ballast = self.home / "image", self.home / "ballast"
        base.sh("dd", "if=/dev/zero", f"of={self.image}", "bs=1M", f"count={self.MEGABYTES}")
        base.sh("mkfs.ext4", "-q", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0", self.image)
        base.sh("fallocate", "-l", f"{self.MEGABYTES}M", self.image)  # mkfs leaves holes
        self.dir = self.mounted(self.image, "a")

    def mounted(self, image, word):
        at = self.home / word
        at.mkdir()
        device = base.sh("losetup", "-f", "--show", image).stdout.strip()
        self.stack.callback(lambda: base.sh("losetup", "-d", device, check=False))
        base.sh("mount", "-o", "errors=continue", device, at)
        self.stack.callback(lambda: base.sh("umount", "-l", at, check=False))
        return at

    def lose(self, path):
        """Writes to the places of a file from the last that is not all zeros on fail from now on: a loop device tells of those alone whose
        first block fails."""
        base.sh("sync", "-f", path)
        extents = re.findall(r"^\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*(\d+):", base.sh("filefrag", "-v", "-b4096", path).stdout, re.M)
        blocks = [b for first, last in extents for b in range(int(first), int(last) + 1)]
        image = self.image.read_bytes()
        used = max(i for i, b in enumerate(blocks) if image[b * 4096 : (b + 1) * 4096].strip(b"\0"))
        assert used + 1 < len(blocks), "nothing of it is free"
        for b in blocks[used:]:
            base.sh("fallocate", "-p", "-o", b * 4096, "-l", 4096, self.image)
        fd = os.open(self.ballast, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(fd, bytes(4096))
        os.close(fd)

    def well(self):
        self.ballast.unlink()

    def power_failure(self):
        """What the device has right now, mounted again elsewhere."""
        copy = self.stack.enter_context(tempfile.NamedTemporaryFile(prefix=f"{base.PREFIX}-image-", dir="/var/tmp"))
        shutil.copy(self.image, copy.name)
        return self.mounted(copy.name, "b")


def fails(fd):
    try:
        os.fdatasync(fd)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("loses", [True, False], ids=["loses", "control"])
def test_a_write_that_is_lost(make_daemon, loses):
    """A commit that waits for no disk is lost on its way, and the disk is well again. A later one that is acknowledged is there after a power
    failure, behind it in the database's log."""
    with contextlib.ExitStack() as stack:
        thin = Thin(stack)
        state = thin.dir / "state"
        state.mkdir()
        daemon = make_daemon(state_dir=state).start()
        victim, wal = used(daemon, "victim"), os.open(state / "sessions.db-wal", os.O_RDONLY)
        stack.callback(os.close, wal)
        if loses:
            thin.lose(state / "sessions.db-wal")
        daemon.api.escalate(victim, "SECRET", dataset="lost")  # which the log in front of it has
        if loses:
            assert base.eventually(lambda: fails(wal), 5)  # the kernel has tried, and gives up
            thin.well()
        time.sleep(2.2)  # sweeps, which bring it to the disk
        later = new_session("later")
        daemon.api.create(later, "SECRET")
        copy = thin.power_failure()
        base.reap(daemon.process, signal.SIGKILL)
        again = make_daemon(state_dir=copy / "state").start()
        stack.callback(again.stop)
        assert again.api.show(later)["level"] == "SECRET"
        assert again.api.show(victim)["level"] == "SECRET" and names(again, victim) == ["lost"]
