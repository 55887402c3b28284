# SPDX-License-Identifier: MIT
"""Kept sandboxes: what runs in one tries to get at its process 1, at the socket that netpawl orders commands by, and at
netpawl through both."""
import os
import pathlib
import socket
import struct
import subprocess
import threading

import pytest

from lib import base
from lib.box import new_session

USERS = pytest.mark.parametrize("user", [None, "root"])


@pytest.fixture
def session():
    return new_session("kept")


def options(user):
    return ["--user", user] if user else []


def keep(daemon, session, user, *command, check=0, **kw):
    return daemon.cli("run", "--keep", "--session", session, *options(user), "--", *command, check=check, **kw)


def python(daemon, session, user, code, **kw):
    return keep(daemon, session, user, base.PYTHON, "-I", "-c", code, **kw)


def start(daemon, session, user, code):
    return base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--keep", "--session", session, *options(user), "--", base.PYTHON,
                       "-I", "-c", code], env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kept(daemon, session):
    return next((b for b in daemon.api.sandboxes() if b["session"] == session and b["kept"]), None)


@USERS
def test_process_1_gives_nothing(daemon, session, user):
    """Neither its files nor its memory, and it does not die from the inside. The control: a process of ours."""
    code = """
import os, signal, time
def tries(pid):
    got = []
    for name in ("fd/0", "fd/4", "mem", "environ", "root/etc", "maps"):
        try:
            path = f"/proc/{pid}/{name}"
            got.append(bool(os.listdir(path) if name == "root/etc" else os.readlink(path) if "/" in name else open(path, "rb").read(1)))
        except OSError:
            got.append(False)
    return got
print(tries(1))
for s in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGINT):
    try: os.kill(1, s)
    except OSError: pass
child = os.fork()
if not child: time.sleep(1000)
print(sum(tries(child)) >= 3)
os.kill(child, 9)
"""
    for _ in range(2):
        assert python(daemon, session, user, code).stdout == "[False, False, False, False, False, False]\nTrue\n"
    assert keep(daemon, session, user, "echo", "alive").stdout == "alive\n"


@USERS
def test_the_socket_is_out_of_reach(world, daemon, session, user):
    """By its path with the host's files in sight, by its inode's name in /proc/net/unix. The control connects outside."""
    words = ["--keep", "--session", session, *options(user), *base.shown()]
    daemon.cli("run", *words, "--", "true", check=0)
    path = daemon.run_dir / "kept" / kept(daemon, session)["sandbox"] / "socket"
    code = """
import os, socket, sys
path = sys.argv[1]
print(os.path.exists(path))
for name in (path, "/proc/1/root" + path, "/tmp/link", "../../../../../.." + path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if name == "/tmp/link" and not os.path.lexists(name): os.symlink(path, name)
    except OSError: pass
    try: s.connect(name); print("connected")
    except OSError: print("no")
"""
    got = daemon.cli("run", *words, "--", base.PYTHON, "-I", "-c", code, path, check=0).stdout
    assert got == "False\n" + "no\n" * 4
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here = os.open(path.parent, os.O_RDONLY)
    try:
        s.connect(f"/proc/self/fd/{here}/socket")
        s.close()
    finally:
        os.close(here)
    assert daemon.cli("run", *words, "--", "echo", "alive", check=0).stdout == "alive\n"
    pathlib.Path("/tmp/link").unlink(missing_ok=True)


GRAB = """
import os, time
seen, end = set(), time.monotonic() + 8
while time.monotonic() < end and not os.path.exists("/workspace/stop"):
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) in (1, os.getpid()):
            continue
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                seen.add(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0])
        except OSError:
            pass
print(sorted(seen))
"""


@USERS
def test_no_connection_in_a_child(daemon, session, user):
    """A process that looks into each newcomer finds the streams of commands, and never a connection of process 1."""
    keep(daemon, session, user, "true")
    p = start(daemon, session, user, GRAB)
    try:
        for _ in range(60):
            keep(daemon, session, user, "true")
        keep(daemon, session, user, "sh", "-c", "sleep 1; touch /workspace/stop")
        out, err = p.communicate(timeout=120)
    finally:
        base.reap(p)
    assert b"socket" not in out and b"pipe" in out, (out, err)  # the pipes are the control: they are the commands'


WRITE = """
import errno, os, time
end = time.monotonic() + 20
while time.monotonic() < end:
    for pid in os.listdir("/proc"):
        try:
            path = f"/proc/{pid}/exe"
            if pid.isdigit() and not os.readlink(path).startswith("/usr"):
                fd = os.open(path, os.O_RDONLY)
                # its mode, for the program is busy as long as it runs, and that alone must not be what protects it
                for what in (lambda: os.fchmod(fd, 0o755), lambda: os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)):
                    try:
                        what()
                        print("written")
                    except OSError as e:
                        print(errno.errorcode[e.errno])
                raise SystemExit
        except OSError:
            pass
print("none")
"""


def test_the_program_of_process_1(daemon, session):
    """A script whose interpreter is /proc/self/exe runs the program of whoever starts it: netpawl-init, a file of the host
    that root owns. It is open for a moment to those who watch, and it must not be written, running or not."""
    python(daemon, session, "root", "import os; f = open('/workspace/x', 'w'); f.write('#!/proc/self/exe\\n'); os.fchmod(f.fileno(), 0o755)")
    before = (base.BUILD / "netpawl-init").read_bytes()
    p = start(daemon, session, "root", WRITE)
    try:
        for _ in range(300):
            if p.poll() is not None:
                break
            keep(daemon, session, "root", "/workspace/x", check=None)
        out, err = p.communicate(timeout=120)
    finally:
        base.reap(p)
    assert out.split()[0] == b"EROFS" and b"written" not in out, (out, err)
    assert (base.BUILD / "netpawl-init").read_bytes() == before


# -- a process 1 that was taken over --------------------------------------------------------

REPORT = struct.Struct("=Iiii400s")
LIES = {
    "nothing": [],
    "short": [b"x"],
    "long": [b"x" * 100000],
    "strange kind": [REPORT.pack(99, 0, 0, 0, b"")],
    "strange codes": [REPORT.pack(3, -5, 0, 0, b""), REPORT.pack(3, 70000, 0, 0, b""), REPORT.pack(3, 0, 4000, 0, b"")],
    "no end of text": [REPORT.pack(2, 125, 0, 99999, b"\x1b[31mx" * 100)],
    "flood": [REPORT.pack(99, 0, 0, 0, b"")] * 20000,
}


@pytest.mark.parametrize("lie,then", [*((lie, "closes") for lie in LIES), ("nothing", "stays"), ("flood", "stays")])
def test_a_process_1_that_lies(daemon, session, lie, then):
    """What netpawl hears from there is not believed: it makes another sandbox, and never hangs."""
    keep(daemon, session, None, "true")
    box = kept(daemon, session)
    path = daemon.run_dir / "kept" / box["sandbox"] / "socket"
    path.unlink()
    s, done = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), threading.Event()
    here = os.open(path.parent, os.O_RDONLY)
    s.bind(f"/proc/self/fd/{here}/socket")
    os.close(here)
    s.listen(8)

    def serve():
        c, _ = s.accept()
        try:
            for message in LIES[lie]:
                c.send(message)
        except OSError:
            pass
        if then == "stays":
            done.wait(60)
        c.close()

    t = threading.Thread(target=serve, daemon=True)
    t.start()
    try:
        # it was given the command's streams, and holds them: so they are none of ours
        p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--keep", "--session", session, "--", "touch", "/workspace/ran"],
                       env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        assert p.wait(60) == 0 and kept(daemon, session)["sandbox"] != box["sandbox"]
        base.reap(p)
        assert (daemon.state_dir / "data" / session / "ran").exists()
    finally:
        done.set()
        s.close()
        t.join(120)
    assert not os.path.exists(box["cgroup"])


def test_a_forged_end(daemon, session):
    """A sandbox that has its process 1 may say that a command has ended: the run is over then, and that is all."""
    keep(daemon, session, None, "true")
    box = kept(daemon, session)
    path = daemon.run_dir / "kept" / box["sandbox"] / "socket"
    path.unlink()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here = os.open(path.parent, os.O_RDONLY)
    s.bind(f"/proc/self/fd/{here}/socket")
    os.close(here)
    s.listen(8)

    def serve():
        c, _ = s.accept()
        c.recv(4096)
        c.send(REPORT.pack(1, 0, 0, 0, b""))
        c.send(REPORT.pack(2, 125, 0, 0, b"\x1b[31m" + b"y" * 395))
        c.close()

    t = threading.Thread(target=serve, daemon=True)
    t.start()
    try:
        got = keep(daemon, session, None, "true", check=125)
        assert "\x1b" not in got.stderr and "yyy" in got.stderr
    finally:
        s.close()
        t.join(120)
    daemon.cli("remove", box["sandbox"], check=0)
    assert base.eventually(lambda: not os.path.exists(box["cgroup"]))


def test_nothing_of_the_caller_stays(daemon, session):
    """A process that a command leaves behind holds what the command had: it must not be able to change a file that the
    caller has the output in, nor read from his terminal. The control is a file that the sandbox may write."""
    folder = base.tempdir("streams")
    folder.chmod(0o777)
    try:
        out, control = folder / "out", folder / "control"
        later = ("import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nwhile not os.path.exists('/workspace/go'): time.sleep(0.05)\n"
                 "for fd in (1, 2):\n  try: os.write(fd, b'later'); os.ftruncate(fd, 0)\n  except OSError: pass\n"
                 "open('/data/control', 'w').write('x')")
        words = ["--keep", "--session", session, "--bind", f"{folder}:/data"]
        with open(out, "w") as f:
            p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", *words, "--", base.PYTHON, "-I", "-c", "print('first', flush=True)\n" + later],
                           env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdin=subprocess.DEVNULL, stdout=f, stderr=f)
            assert p.wait(120) == 0
            base.reap(p)
        assert out.read_text() == "first\n"
        daemon.cli("run", *words, "--", "touch", "/workspace/go", check=0)
        assert base.eventually(control.exists)
        assert out.read_text() == "first\n"
    finally:
        base.drop_tempdir(folder)


SPOIL = """
import os, time
def spoil(fd):
    try: os.fchmod(fd, 0o707)
    except OSError: pass
    try: os.write(os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_NONBLOCK), b"evil")
    except OSError: pass
    try: os.lseek(fd, 1, 0)
    except OSError: pass
print(os.read(0, 4), flush=True)
if os.fork(): os._exit(0)
os.setsid()
while not os.path.exists("/workspace/go"): time.sleep(0.02)
own = os.open("/workspace/own", os.O_RDONLY | os.O_CREAT, 0o600)
spoil(0), spoil(own)
os.rename("/workspace/own", "/workspace/done")
"""


@USERS
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_input_can_only_be_read(daemon, session, user, kind):
    """What a command leaves behind cannot write the caller's input by its name in /proc, nor move the caller about in it. The
    control is a file of the sandbox's own."""
    words = [*daemon.world.enter(), base.NETPAWL, "run", "--keep", "--session", session, *options(user), "--", base.PYTHON, "-I", "-c", SPOIL]
    folder, workspace = base.tempdir("input"), daemon.state_dir / "data" / session
    (folder / "in").write_text("onetwo")
    (folder / "in").chmod(0o666)
    ours, end = (os.open(folder / "in", os.O_RDONLY), -1) if kind == "file" else os.pipe()
    try:
        if kind == "pipe":
            os.write(end, b"onetwo")
        p = base.popen(words, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdin=ours, stdout=subprocess.PIPE)
        assert p.communicate(timeout=120)[0] == b"b'onet'\n"
        base.reap(p)
        (workspace / "go").touch()
        assert base.eventually((workspace / "done").exists) and (workspace / "done").read_bytes() == b"evil"
        if kind == "pipe":
            os.write(end, b"|")
        assert os.read(ours, 100) in ((b"wo",) if kind == "file" else (b"wo|", b"|"))  # netpawl may have taken more of a pipe
        assert (folder / "in").read_text() == "onetwo" and (folder / "in").stat().st_mode & 0o777 == 0o666
    finally:
        os.close(ours)
        if kind == "pipe":
            os.close(end)
        base.drop_tempdir(folder)


def test_a_note_that_was_not_finished(daemon, session):
    """Who made the sandbox died in the middle of writing down what it was made with: nobody is put into it."""
    assert keep(daemon, session, "root", "id", "-u").stdout == "0\n"
    box = kept(daemon, session)
    note = daemon.run_dir / "kept" / box["sandbox"] / "made"
    whole = note.read_text()
    for text in ("", whole[:whole.index("user=")], whole[:-3]):
        note.write_text(text)
        assert keep(daemon, session, None, "id", "-u").stdout != "0\n"
        assert kept(daemon, session)["sandbox"] != box["sandbox"] and not os.path.exists(box["cgroup"])
        daemon.cli("remove", kept(daemon, session)["sandbox"], check=0)
        keep(daemon, session, "root", "true")
        box = kept(daemon, session)
        note = daemon.run_dir / "kept" / box["sandbox"] / "made"


@USERS
def test_limits_of_process_1(daemon, session, user):
    """Whoever has its user could take away what it needs to start commands. The control: a process of ours."""
    code = """
import os, resource, time
child = os.fork()
if not child: time.sleep(1000)
for pid in (child, 1):
    for what in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
        try:
            resource.prlimit(pid, what, (8, 8))
            print("set")
        except OSError:
            print("no")
os.kill(child, 9)
"""
    assert python(daemon, session, user, code).stdout == "set\n" * 3 + "no\n" * 3
    box = kept(daemon, session)
    assert keep(daemon, session, user, "echo", "alive").stdout == "alive\n" and kept(daemon, session)["sandbox"] == box["sandbox"]


# -- runs beside each other ------------------------------------------------------------------------

WILD = """
import os, time
print("up", flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:  # each child leaves its session and forks on; the parents go on as well
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open("/workspace/alive", "a").write(".")
            time.sleep(0.01)
    except OSError:
        time.sleep(0.001)
"""


def group_pids(daemon, box):
    """Processes of the sandbox that are in no run's group: process 1, and what escaped."""
    return (daemon.slice / box["sandbox"] / "cgroup.threads").read_text().split()


def test_what_forks_wildly_dies_at_its_time(daemon, session):
    """The group dies as a whole. The sibling, which has the same user, goes on."""
    sibling = base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--keep", "--pids", "150", "--session", session, "--", "sh", "-c", "echo up; read x; echo $x"],
                         env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert sibling.stdout.readline() == b"up\n"
        box = kept(daemon, session)
        got = daemon.cli("run", "--keep", "--session", session, "--timeout", "2s", "--", base.PYTHON, "-I", "-c", WILD, check=124, timeout=60)
        assert got.stdout == "up\n"
        assert len(group_pids(daemon, box)) == 1, "nothing of it is elsewhere"
        size = keep(daemon, session, None, "sh", "-c", "wc -c < /workspace/alive").stdout
        assert int(size) > 0, "the control: it did fork"
        count = keep(daemon, session, None, "sh", "-c", "ls -d /proc/[0-9]* | wc -l").stdout
        assert int(count) < 12, count
        assert sibling.communicate(b"here\n", timeout=120)[0] == b"here\n"
    finally:
        base.reap(sibling)


def test_runs_of_a_session_may_signal_each_other(daemon, session):
    """They are one user's, in one sandbox, and share all there is: this is no boundary, and not meant to be one. Process 1 is."""
    victim = start(daemon, session, None, "import os, time; open('/workspace/pid', 'w').write(str(os.getpid())); time.sleep(600)")
    try:
        assert base.eventually(lambda: keep(daemon, session, None, "sh", "-c", "cat /workspace/pid 2>/dev/null; true").stdout)
        keep(daemon, session, None, "sh", "-c", "kill -TERM $(cat /workspace/pid); kill -9 1; kill -9 -1 2>/dev/null & sleep 0.1; true", check=None)
        victim.communicate(timeout=120)
        assert victim.returncode in (143, 137)
        assert keep(daemon, session, None, "echo", "x").stdout == "x\n"
    finally:
        base.reap(victim)


def test_held_output_does_not_keep_a_run_from_its_end(daemon, session):
    """A process of an earlier run holds on to the output of a later one, by ptrace's way in: the file of its descriptor."""
    hold = start(daemon, session, None, """
import glob, os, time
held = []
print("up", flush=True)
for i in range(400):
    for name in glob.glob("/proc/[0-9]*/fd/1"):
        try: held.append(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
        except OSError: pass
    time.sleep(0.05)
    if i == 399 or os.path.exists("/workspace/enough"):
        break
open("/workspace/held", "w").write(str(len(held)))
time.sleep(60)
""")
    try:
        assert hold.stdout.readline() == b"up\n"
        assert daemon.cli("run", "--keep", "--session", session, "--timeout", "2s", "--", "sh", "-c", "echo out; sleep 100", check=124).stdout == "out\n"
        keep(daemon, session, None, "touch", "/workspace/enough")
        assert base.eventually(lambda: keep(daemon, session, None, "sh", "-c", "cat /workspace/held 2>/dev/null; true").stdout)
        assert int(keep(daemon, session, None, "cat", "/workspace/held").stdout) > 0, "the control: it did get hold of some"
    finally:
        base.reap(hold)
