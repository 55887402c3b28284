# SPDX-License-Identifier: MIT
"""The daemon dies; the gate does not. Every way to end and to come back, and none of them passes through an open moment."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from lib import base
from lib.box import LEVEL, Adopted, Box, attach_pid, new_session
from lib.daemon import Daemon, NotReady
from lib.world import FAR

ABI = int(re.search(r"NP_ABI_VERSION (\d+)", (base.ROOT / "include" / "sandbox.h").read_text())[1])

KINDS = pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
RANK = {"FULL": 1, "PROXIED": 2, "NONE": 3}


@pytest.fixture(scope="module")
def daemon(world):
    """Here the module's daemon is stopped, killed and started again; it is up at the end of every test."""
    with contextlib.closing(Daemon(world)) as d:
        yield d.start()


@pytest.fixture(autouse=True)
def up(daemon):
    if not daemon.running():
        daemon.start()
    yield
    if not daemon.running():
        daemon.start()


def kernel_mode(daemon, box_id_of_cgroup):
    """The mode's number in np_sandboxes, for a cgroup id."""
    out = base.sh(*daemon.world.enter(), "bpftool", "-j", "map", "dump", "pinned", daemon.pins / "maps/np_sandboxes").stdout
    for row in json.loads(out):
        row = row.get("formatted", row)
        if str(row["key"]) == str(box_id_of_cgroup):
            mode = row["value"]["rung"]["mode"]
            return mode if isinstance(mode, int) else {"NP_FULL": 1, "NP_PROXIED": 2, "NP_NONE": 3}[mode]
    return None


def can(box, family=4):
    return box.try_("dial", family=family, addr=FAR[family], port=9000, data="x", recv=1)


@KINDS
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_enforcement_without_a_daemon(world, daemon, boxes, how, kind):
    made = {mode: boxes(mode, kind=kind) for mode in RANK}
    made["FULL"].call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="one", recv=10)
    code = getattr(daemon, how)()
    if how == "stop":
        assert code == 0
    with world.watch() as watch:
        for mode in ("PROXIED", "NONE"):
            for family in (4, 6):
                assert can(made[mode], family) == "ECONNREFUSED"
                assert made[mode].try_("sendto", family=family, addr=FAR[family], port=53) != "ok"
    assert watch.nothing()
    assert can(made["FULL"]) == "ok"
    daemon.start()
    for mode, box in made.items():
        assert daemon.api.sandbox(box.id)["mode"] == mode
        assert can(box) == ("ok" if mode == "FULL" else "ECONNREFUSED")
    made["FULL"].call("send", keep="c", data="two")
    assert made["FULL"].call("recv", keep="c")["data"] == "two", "a connection lives through a restart"
    assert daemon.api.escalate(made["FULL"].session, "SECRET")["cut"] >= 1
    assert can(made["FULL"]) == "ECONNREFUSED", "and the new daemon governs it"


@contextlib.contextmanager
def left_behind(daemon):
    """A process in the inspector's cgroup that outlived its daemon. Stopped, so that it does nothing about it by itself."""
    daemon.kill()
    p = base.popen(["sleep", "600"])
    try:
        (daemon.inspector_cgroup / "cgroup.procs").write_text(str(p.pid))
        p.send_signal(signal.SIGSTOP)
        yield p
    finally:
        base.reap(p, signal.SIGKILL)


def test_what_a_dead_daemon_left_to_inspect_is_ended(daemon):
    """It might have connections of sandboxes, and no daemon would tell it of a raise."""
    with left_behind(daemon) as p:
        daemon.start()
        assert p.poll() == -signal.SIGKILL and p.pid not in base.cgroup_pids(daemon.inspector_cgroup)


def test_what_a_daemon_froze_that_died_at_that(daemon):
    daemon.kill()
    (daemon.inspector_cgroup / "cgroup.freeze").write_text("1")
    daemon.start()
    assert (daemon.inspector_cgroup / "cgroup.freeze").read_text() == "0\n"


# Whoever it traces stays, when it is killed, until it lets go.
HOLDS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, TRACEEXIT = 0x4206, 0x40
if libc.ptrace(SEIZE, int(sys.argv[1]), None, TRACEEXIT): sys.exit(os.strerror(ctypes.get_errno()))
print("holds", flush=True)
sys.stdin.read()
"""


def test_what_cannot_be_ended_keeps_the_daemon_from_starting(daemon, boxes):
    box = boxes("PROXIED")
    with left_behind(daemon) as p:
        tracer = base.popen([base.PYTHON, "-c", HOLDS, str(p.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert tracer.stdout.readline() == "holds\n"
            with pytest.raises(NotReady) as e:
                daemon.start()
            assert "cannot end the processes that an earlier daemon left in the inspector's cgroup: Device or resource busy" in e.value.text
            assert p.poll() is None and can(box) == "ECONNREFUSED"
            with pytest.raises(ConnectionRefusedError):
                daemon.api.health()
        finally:
            base.reap(tracer, signal.SIGKILL)
        daemon.start()
        assert p.poll() == -signal.SIGKILL


@KINDS
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_no_open_moment(world, daemon, boxes, how, kind):
    """Sandboxes in NONE and PROXIED hammer at the gate through three ends and starts."""
    made = [boxes("NONE", kind=kind), boxes("PROXIED", kind=kind)]
    full = boxes("FULL", kind=kind)
    full.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="one", recv=10)
    since = time.time_ns()
    for box in made:
        box.call("hammer", keep="tcp", family=4, addr=FAR[4], port=80, pause=0.0005)
        box.call("hammer", keep="udp", family=6, addr=FAR[6], port=9000, pause=0.0005, kind="dgram")
    for i in range(3):
        daemon.restart(how)
        full.call("send", keep="c", data="more")
        assert full.call("recv", keep="c")["data"] == "more"
    for box in made:
        for keep in ("tcp", "udp"):
            outcomes = box.call("hammer_stop", keep=keep)["outcomes"]
            assert set(outcomes) <= {"ECONNREFUSED", "EPERM"} and sum(outcomes.values()) > 50, outcomes
    full.call("close", keep="c")
    world.world.call("frames", since=since)
    left = [f for f in world.frames(since, limit=100000)["frames"] if f.get("dport") == 80 or
            (f.get("proto") == 17)]
    assert left == []


def test_new_sandboxes_after_a_restart(daemon, boxes):
    first = boxes("NONE")
    daemon.restart("kill")
    second = boxes("FULL", session=first.session)
    assert second.info["mode"] == "NONE"
    assert can(second) == "ECONNREFUSED"


def test_took_over_is_told(daemon, boxes):
    boxes("FULL")
    daemon.restart("kill")
    assert any(e["reason"] == "took_over" for e in daemon.api.events(reason="took_over"))


def test_sandbox_that_ended_while_the_daemon_was_away(daemon, boxes):
    box = boxes("NONE")
    daemon.kill()
    box.close()
    assert base.eventually(lambda: not box.pids())
    daemon.start()
    assert base.eventually(lambda: not daemon.api.sandboxes(box.session), 10), "an empty sandbox is swept"
    assert daemon.api.show(box.session)["level"] == "SECRET"


def test_run_goes_on_without_a_daemon(world, daemon):
    """The command's exit code comes through although the daemon was killed under it."""
    import subprocess
    p = subprocess.Popen([*world.enter(), str(base.NETPAWL), "run", "--level", "SECRET", "--", "sh", "-c",
                          "echo up; read x; exit 7"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert p.stdout.readline() == b"up\n"
        daemon.kill()
        p.stdin.write(b"go\n")
        p.stdin.close()
        assert p.wait(120) == 7
    finally:
        if p.poll() is None:
            p.kill()
            p.wait(60)
        p.stdout.close()
        p.stderr.close()
        if not daemon.running():
            daemon.start()


# -- SIGKILL at every step of an escalation ------------------------------------------------

FAILPOINTS = ["after_raise", "after_cut", "before_record", "after_record"]


@KINDS
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
@pytest.mark.parametrize("point", FAILPOINTS)
def test_killed_in_an_escalation(world, make_daemon, boxes, point, mode, kind):
    """Tighter than recorded, never looser: at each moment and after the restart. Cut and record are done at the same
    time: the fail point of one of them holds the other."""
    daemon = make_daemon().start(failpoint=point)
    box = boxes("FULL", kind=kind, on=daemon)
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
    cgroup_id = box.info["cgroup_id"]
    before = daemon.api.show(box.session)
    daemon.arm(point)
    with pytest.raises(Exception):
        daemon.api.escalate(box.session, LEVEL[mode], dataset="d")
    assert daemon.wait_death() == -9, "the fail point did not strike"
    # the kernel was tightened first, so at every one of these points it is tight
    assert kernel_mode(daemon, cgroup_id) == RANK[mode]
    with world.watch() as watch:
        assert can(box) == "ECONNREFUSED" and can(box, 6) == "ECONNREFUSED"
        if point == "after_cut":
            assert box.try_("send", keep="c", data="x") != "ok", "it was cut"
        else:
            box.try_("send", keep="c", data="x")
    assert watch.nothing()
    daemon.start()
    after = daemon.api.show(box.session)
    assert RANK[after["mode"]] >= RANK[mode] >= RANK[before["mode"]], "the record follows the kernel"
    assert daemon.api.sandbox(box.id)["mode"] == after["mode"]
    assert kernel_mode(daemon, cgroup_id) >= RANK[mode]
    with world.watch() as watch:
        assert can(box) == "ECONNREFUSED"
        assert box.try_("send", keep="c", data="x") != "ok", "what was open is cut by now"
    assert watch.nothing()
    if point == "after_record":
        assert [d["name"] for d in after["datasets"]] == ["d"]
        assert any("log in front of the record" in e["text"] for e in daemon.api.events(session=box.session, reason="reconciled"))
    # a retry is acknowledged, and from here on it is as if nothing had happened
    answer = daemon.api.escalate(box.session, LEVEL[mode], dataset="d")
    assert answer["mode"] == mode and answer["generation"] >= after["generation"]
    assert [d["name"] for d in daemon.api.show(box.session)["datasets"]] == ["d"]
    daemon.restart("kill")
    assert RANK[daemon.api.show(box.session)["mode"]] >= RANK[mode]


def test_killed_right_behind_the_acknowledgement(make_daemon, boxes):
    """The answer has left, and the database did not follow yet: the log in front of it has the raise, with its dataset and its notice. Of a
    session without a sandbox there is no other place that could have it."""
    daemon = make_daemon().start(failpoint="before_catch_up")
    box, bare = boxes("FULL", on=daemon), new_session("bare")
    daemon.api.create(bare, "PUBLIC")
    for session in (bare, box.session):
        daemon.api.create(new_session("other"), "PUBLIC")  # the first that a daemon writes lays out room for what follows
        daemon.arm("before_catch_up")
        answer = daemon.api.escalate(session, "SECRET", dataset="d", reason="ticket 4711")
        assert answer["raised"] and answer["mode"] == "NONE"
        assert daemon.wait_death() == -9, "the fail point did not strike"
        daemon.start(failpoint="before_catch_up")
        shown = daemon.api.show(session)
        assert (shown["level"], shown["mode"], shown["generation"]) == ("SECRET", "NONE", answer["generation"])
        assert [(d["name"], d["reason"]) for d in shown["datasets"]] == [("d", "ticket 4711")]
        notice, = daemon.api.ok("GET", f"/v1/sessions/{session}/notices")["notices"]
        assert notice["dataset"] == "d" and notice["mode"] == "NONE"
        assert len(daemon.api.events(session=session, reason="raised")) == 1
        assert any("log in front of the record" in e["text"] for e in daemon.api.events(session=session, reason="reconciled"))
    daemon.restart("kill")
    assert not [e for e in daemon.api.events(session=bare, reason="reconciled")][1:], "it is told once"


def test_what_was_to_be_cut_is_cut_by_another_build(world, make_daemon, boxes):
    """Killed when it had recorded and not cut. The next one takes the gate's programs for those of another build, and puts its own
    in their place: what the kernel has noted for it is there all the same."""
    daemon = make_daemon().start(failpoint="after_record")
    box = boxes("FULL", on=daemon)
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
    daemon.arm("after_record")
    with pytest.raises(Exception):
        daemon.api.escalate(box.session, "SECRET", dataset="d")
    assert daemon.wait_death() == -9, "the fail point did not strike"
    (daemon.pins / "scratch/np_cut").unlink()
    daemon.start()
    assert daemon.api.show(box.session)["mode"] == "NONE"
    assert box.try_("send", keep="c", data="x") != "ok", "what was open is cut by now"


def test_killed_in_an_adoption(world, make_daemon):
    """When the programs are attached, and what was open before has not been looked for. The next daemon takes the gate as it is, and
    looks for it all the same: a cgroup that no record has is NONE, and what it had open is cut when it is adopted after all."""
    daemon = make_daemon().start(failpoint="adopt_attached")
    session, cgroup = new_session("killed"), base.cgroup_make("killed")
    agent = world.agent(world.host, cgroup=cgroup)
    try:
        agent.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
        daemon.api.create(session, "PUBLIC")
        daemon.arm("adopt_attached")
        with pytest.raises(Exception):
            daemon.api.adopt(session, cgroup)
        assert daemon.wait_death() == -9, "the fail point did not strike"
        assert not os.path.lexists(daemon.pins / "noted")
        daemon.start()
        assert kernel_mode(daemon, os.stat(cgroup).st_ino) == RANK["NONE"]
        daemon.api.adopt(session, cgroup)
        assert agent.try_("send", keep="c", data="x") == "ECONNABORTED"
        assert os.path.lexists(daemon.pins / "noted")
    finally:
        world.drop(agent)
        base.cgroup_destroy(cgroup)


def test_what_is_opened_without_a_daemon_is_cut(world, daemon, boxes):
    """The next one of the same build does not look through the host's sockets: the gate has noted them meanwhile."""
    box = boxes("FULL")
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="before", data="x", recv=1)
    assert base.eventually(lambda: os.path.lexists(daemon.pins / "noted"))
    daemon.kill()
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="meanwhile", data="x", recv=1)
    daemon.start()
    assert daemon.api.escalate(box.session, "SECRET")["cut"] == 2
    assert all(box.try_("send", keep=name, data="x") != "ok" for name in ("before", "meanwhile"))


@pytest.mark.parametrize("point", FAILPOINTS)
def test_killed_while_creating_at_a_level(make_daemon, point):
    """POST /v1/sessions with a higher level is an escalation as well: whatever was acknowledged stands."""
    daemon = make_daemon().start()
    name = new_session("create")
    daemon.api.create(name, "CONFIDENTIAL")
    daemon.stop()
    daemon.start(failpoint=point)
    daemon.arm(point)
    try:
        daemon.api.create(name, "SECRET")
    except Exception:
        daemon.wait_death()
        daemon.start()
    assert daemon.api.show(name)["level"] in ("CONFIDENTIAL", "SECRET")
    assert daemon.api.escalate(name, "SECRET")["mode"] == "NONE"


# -- others ------------------------------------------------------------------------------------

def test_second_daemon_on_the_same_directories(world, daemon, boxes):
    box = boxes("NONE")
    second = Daemon(world)
    try:
        for share in (("run_dir", "state_dir", "pin_dir", "cgroup"), ("run_dir",), ("state_dir",), ("pin_dir", "cgroup")):
            own = {name: getattr(second, name) for name in ("run_dir", "state_dir", "pin_dir", "cgroup")}
            for name in share:
                setattr(second, name, getattr(daemon, name))
            try:
                with pytest.raises(NotReady) as e:
                    second.start()
                assert e.value.code == 1 and e.value.text.strip(), share
                assert any(w in e.value.text for w in ("another", "already", "in use", "running")), e.value.text
            finally:
                if second.running():
                    second.stop()
                for name, value in own.items():
                    setattr(second, name, value)
            assert daemon.running() and daemon.api.health()["pid"] == daemon.process.pid
            assert can(box) == "ECONNREFUSED"
    finally:
        second.close()
    assert daemon.api.escalate(box.session, "SECRET")["mode"] == "NONE"


def test_uninstall_while_it_runs_is_refused(daemon, boxes):
    box = boxes("NONE")
    p = daemon.uninstall(check=False)
    assert p.returncode == 1 and p.stderr
    assert daemon.api.health()["status"] == "ok" and can(box) == "ECONNREFUSED"


@pytest.mark.parametrize("name,words", [(f"v{ABI + 1}", "newer netpawld"), ("v3", "too old to take over from"),
                                        ("v5x", "does not know"), ("stranger", "does not know")])
def test_pins_of_a_version_that_cannot_be_taken_over_from(world, daemon, boxes, name, words):
    """It is said what to do, and the gate goes on."""
    box = boxes("NONE")
    daemon.stop()
    (daemon.pin_dir / name).mkdir()
    try:
        with pytest.raises(NotReady) as e:
            daemon.start()
        assert e.value.code == 1 and words in e.value.text and f"/{name} " in e.value.text, e.value.text
        assert ("--uninstall" in e.value.text) == (words != "does not know")
        refused = daemon.uninstall(check=False)
        assert refused.returncode == 1 and words in refused.stderr, "nor is it taken away"
        assert box.pids() and can(box) == "ECONNREFUSED"
    finally:
        (daemon.pin_dir / name).rmdir()
    daemon.start()
    assert daemon.api.sandbox(box.id)["mode"] == "NONE"


def test_an_older_gate_of_which_nothing_is_left(daemon, boxes):
    """As after a kill in the last step of an upgrade: only directories."""
    box = boxes("NONE")
    daemon.stop()
    old = daemon.pin_dir / "v4"
    for folder in (old, old / "maps", old / "links"):
        folder.mkdir()
    daemon.start()
    assert not old.exists() and can(box) == "ECONNREFUSED"
    assert "from ABI version 4, 0 sandboxes" in daemon.api.events(reason="upgraded")[-1]["text"]


def test_two_daemons_side_by_side(world, daemon, make_daemon):
    other = make_daemon().start()
    mine, theirs = Box(daemon, "NONE"), Box(other, "FULL")
    try:
        assert can(mine) == "ECONNREFUSED" and can(theirs) == "ok"
        assert [b["sandbox"] for b in other.api.sandboxes()] == [theirs.id]
        same = mine.session
        other.api.create(same, "PUBLIC")
        assert other.api.show(same)["level"] == "PUBLIC" and daemon.api.show(same)["level"] == "SECRET"
        # loopback between sandboxes of different daemons is closed as well
        port = theirs.call("listen", keep="l", family=4, addr="127.0.0.1")["port"]
        box = Box(daemon, "FULL")
        assert box.try_("dial", family=4, addr="127.0.0.1", port=port) == "ECONNREFUSED"
        box.close()
        # the control socket of one is not open to sandboxes of the other
        text = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
        got = theirs.agent.answer("raw_request", dict(path=str(daemon.socket), text=text), 120)
        assert not got["ok"] or "from_sandbox" in got["data"], got
        other.api.escalate(theirs.session, "SECRET")
        assert can(theirs) == "ECONNREFUSED"
        theirs.close()
        assert other.stop() == 0
        other.uninstall()
        assert can(mine) == "ECONNREFUSED", "the uninstall of one is not the other's"
    finally:
        mine.close()
        theirs.close()


def test_two_daemons_on_one_slice(daemon, make_daemon, boxes):
    """Neither would know what the other's programs are; and who removes one by its own directories does not take along the other's
    sandboxes."""
    box, other = boxes("NONE"), make_daemon()
    slice_, other.cgroup = other.cgroup, daemon.cgroup
    with pytest.raises(NotReady) as e:
        other.start()
    assert "another netpawld is using it" in e.value.text and str(daemon.slice) in e.value.text
    refused = other.uninstall(check=False)
    assert refused.returncode == 1 and str(daemon.slice) in refused.stderr
    assert can(box) == "ECONNREFUSED" and daemon.api.health()["status"] == "ok"
    assert box.call("hello"), "it lives"
    other.cgroup = slice_
    other.start()


LOCKS = """
import fcntl, os, sys
held = []
for top in sys.argv[1:]:
    for folder, _, files in os.walk(top):
        for path in (folder, *(os.path.join(folder, f) for f in files)):
            for flags in (os.O_RDONLY, os.O_WRONLY):
                try:
                    fd = os.open(path, flags | os.O_NONBLOCK)
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                held.append(fd)
                print(path)
                break
print(flush=True)
sys.stdin.read()
"""


def test_locks_of_a_stranger(make_daemon):
    """Whatever a user without rights can open and lock keeps no daemon from starting, and nobody from the uninstall."""
    d = make_daemon().start()
    for place in (d.dir, d.pin_home, d.slice):
        place.chmod(0o755)  # as /run and /sys/fs are, and a slice that was there before the daemon
    d.kill()
    stranger = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", LOCKS,
                                 d.slice, d.run_dir, d.state_dir, d.pin_mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        locked = list(iter(stranger.stdout.readline, "\n"))
        assert f"{d.slice}\n" in locked and f"{d.run_dir}\n" in locked, "the stranger got nowhere"
        d.start()
        d.kill()
        assert d.uninstall().returncode == 0 and not d.slice.exists()
    finally:
        stranger.communicate()


def test_uninstall_without_a_lock(make_daemon):
    """Where it cannot be told whether a daemon runs nothing is taken away."""
    d = make_daemon().start()
    box = Box(d, "NONE")
    d.kill()
    right, d.pin_dir = d.pin_dir, d.policy  # no directory
    try:
        refused = d.uninstall(check=False)
        assert refused.returncode == 1 and str(d.policy) in refused.stderr
        assert box.call("hello"), "it lives"
    finally:
        d.pin_dir = right
        d.start()
        box.close()


def test_uninstall_leaves_nothing(world, make_daemon):
    d = make_daemon().start()
    box = Box(d, "NONE")
    outer = base.cgroup_make("left")
    agent = world.agent(world.host, cgroup=outer)
    session = new_session("left")
    d.api.create(session, "SECRET")
    d.api.adopt(session, outer)
    assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    programs = _programs(d)
    assert len(programs) > 5 and programs <= _loaded()
    d.kill()
    try:
        refused = d.uninstall(check=False)
        assert refused.returncode == 1 and "--force" in refused.stderr, "an adopted process would get its network back"
        assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert d.uninstall("--force").returncode == 0
        assert not d.pin_dir.exists() or not [f for _, _, files in os.walk(d.pin_dir) for f in files]
        assert not d.slice.exists()
        assert base.eventually(lambda: not programs & _loaded(), 10), "programs are still loaded"
        assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ok", "the gate is off"
        assert base.sh("bpftool", "cgroup", "show", outer).stdout.strip() == ""
        assert d.uninstall().returncode == 0, "twice is fine"
        # the record stays: a new daemon knows the session
        d.start()
        assert d.api.show(session)["level"] == "SECRET"
    finally:
        box.close()
        world.drop(agent)
        d.stop()
        base.cgroup_destroy(outer)


def _programs(d):
    """Ids of the programs that a daemon has pinned."""
    ids = set()
    for path in (d.pins / "progs").rglob("*"):
        p = base.sh("bpftool", "-j", "prog", "show", "pinned", path, check=False)
        if p.returncode == 0:
            ids.add(json.loads(p.stdout)["id"])
    return ids


def _loaded():
    return {p["id"] for p in json.loads(base.sh("bpftool", "-j", "prog", "show").stdout)}


def test_session_survives_a_reboot(make_daemon):
    """Stop, lose everything that a reboot loses (run dir, pins, cgroups), start: SECRET is SECRET."""
    d = make_daemon().start()
    session, other = new_session("reboot"), new_session("reboot")
    d.api.escalate(session, "SECRET", dataset="d", reason="why")
    d.api.escalate(other, "CONFIDENTIAL")
    old = Box(d, session=session, mode="FULL")
    d.kill()
    old.close()
    base.cgroup_destroy(d.slice)
    base.sh("umount", "-l", d.pin_mount)
    base.sh("mount", "-t", "bpf", "bpf", d.pin_mount)
    for f in d.run_dir.iterdir():
        shutil.rmtree(f) if f.is_dir() else f.unlink()
    d.start()
    shown = d.api.show(session)
    assert (shown["level"], shown["mode"]) == ("SECRET", "NONE")
    assert shown["datasets"][0]["reason"] == "why"
    assert d.api.sandboxes() == []
    assert d.api.show(other)["mode"] == "PROXIED"
    box = Box(d, session=session, mode="FULL")
    assert box.info["mode"] == "NONE" and can(box) == "ECONNREFUSED"
    # what it was told before is there again
    told = box.call("execute", argv=["sh", "-c", 'cat "$NETPAWL_NOTICES"'])["out"]
    assert '"dataset":"d"' in told and len(told.splitlines()) == 1
    box.close()


def test_stray_cgroup_survives_a_restart_closed(world, daemon, boxes):
    """A nested cgroup of a sandbox, seen by a new daemon, is still the sandbox."""
    box = boxes("NONE")
    nested = box.cgroup / "nested"
    nested.mkdir()
    for pid in box.pids():
        attach_pid(nested, pid)
    daemon.restart("kill")
    assert can(box) == "ECONNREFUSED"
    assert [b["sandbox"] for b in daemon.api.sandboxes(box.session)] == [box.id]


def test_pins_of_another_version_are_not_touched(make_daemon):
    d = make_daemon()
    (d.pin_dir / "v999" / "maps").mkdir(parents=True)
    with pytest.raises(NotReady) as e:
        d.start()
    assert "v999" in e.value.text or "version" in e.value.text
    assert (d.pin_dir / "v999" / "maps").exists()


def test_a_removed_adopted_cgroup_keeps_its_mode(world, daemon, boxes):
    """What was NONE once does not get the network back by a removal, as long as the cgroup exists, with or without a
    restart; and the next daemon takes it for a sandbox again. Once the cgroup is gone, so is all of it."""
    box = boxes("NONE", kind=Adopted)
    control = boxes("FULL", kind=Adopted)
    path = lambda: daemon.api.ask("GET", f"/v1/sandboxes/{box.id}")
    world.drop(box.agent)
    assert base.eventually(lambda: daemon.api.ask("DELETE", f"/v1/sandboxes/{box.id}")[0] == 200)
    assert path()[0] == 404
    box.agent = world.agent(world.host, cgroup=box.cgroup)
    assert box.try_("dial", family=4, addr=FAR[4], port=9000, timeout=0.5) != "ok"
    daemon.restart("kill")
    assert path()[0] == 200 and path()[1]["mode"] == "NONE"
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert control.try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
    world.drop(box.agent)
    base.cgroup_destroy(box.cgroup)
    assert base.eventually(lambda: path()[0] == 404)
    box.cgroup.mkdir()
    box.agent = world.agent(world.host, cgroup=box.cgroup)
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ok", "another cgroup of that name is nobody's"
