# SPDX-License-Identifier: MIT
"""The disk: full, small, gone bad. What was acknowledged is on it; what could not be written is never acknowledged."""
import os

import pytest

from lib import base
from lib.api import Failure
from lib.box import Box, new_session
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
    from lib.daemon import NotReady
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
    from lib.daemon import NotReady
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
