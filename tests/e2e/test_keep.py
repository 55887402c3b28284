# SPDX-License-Identifier: MIT
"""netpawl run --keep: a sandbox that stays for the next run of its session; what ends it, and what becomes of its rests."""
import concurrent.futures
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import time

import pytest

from lib import base
from lib.box import new_session

HYBRID = "pids" not in (base.cgroup_mount() / "cgroup.controllers").read_text().split()
OWN = 1  # processes of a kept sandbox in which nothing runs: process 1


@pytest.fixture
def session():
    return new_session("keep")


def keep(daemon, session, *words, check=0, **kw):
    """netpawl run --keep [OPTIONS] -- COMMAND; without options the words are the command."""
    words = list(words) if "--" in words else ["--", *words]
    return daemon.cli("run", "--keep", "--session", session, *words, check=check, **kw)


def sh(daemon, session, script, *options, **kw):
    return keep(daemon, session, *options, "--", "sh", "-c", script, **kw).stdout


def kept(daemon, session):
    boxes = [b for b in daemon.api.sandboxes() if b["session"] == session and b["kept"]]
    assert len(boxes) <= 1, boxes
    return boxes[0] if boxes else None


def pids(box):
    return base.cgroup_pids(box["cgroup"])


def start(daemon, session, *words, **kw):
    """One that is not waited for."""
    return base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--keep", "--session", session, *words],
                      env=base.env(NETPAWL_SOCKET=str(daemon.socket)), **kw)


def has_open(pid, path):
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass  # closed meanwhile
    return str(path) in names


def first_process(box):
    """The number of its process 1, outside."""
    for pid in pids(box):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        numbers = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")][0]
        if numbers[-1] == "1" and len(numbers) > 1:
            return pid
    raise AssertionError("there is no process 1")


# -- it stays ------------------------------------------------------------------------------

def test_files_and_processes_stay(daemon, session):
    sh(daemon, session, "echo one > /tmp/file; sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > /tmp/pid")
    box = kept(daemon, session)
    assert box and base.eventually(lambda: len(pids(box)) == OWN + 1)
    assert sh(daemon, session, "cat /tmp/file; kill -0 $(cat /tmp/pid) && echo alive") == "one\nalive\n"
    assert kept(daemon, session)["sandbox"] == box["sandbox"]
    sh(daemon, session, "kill $(cat /tmp/pid)")
    assert base.eventually(lambda: len(pids(box)) == OWN)
    assert daemon.cli("run", "--session", session, "--", "ls", "/tmp", check=0).stdout == "", "without --keep: another one"


def test_each_session_has_its_own(daemon):
    one, two = new_session("keep"), new_session("keep")
    sh(daemon, one, "echo secret > /tmp/file")
    assert sh(daemon, two, "cat /tmp/file 2>/dev/null || echo none") == "none\n"
    assert kept(daemon, one)["sandbox"] != kept(daemon, two)["sandbox"]


def test_the_command_has_what_it_would_have(daemon, session):
    """Its words, environment, directory, user, umask and streams are the run's, not the first one's."""
    look = "pwd; id -u; umask; echo $HOME $USER $NETPAWL_SESSION $WORD; ls -A /proc/self/fd | wc -l; cat; echo err >&2"
    for i, way in enumerate(("--keep", "--keep", None)):
        words = [*([way] if way else []), "--env", "WORD", "--session", session, *(["--chdir", "/usr"] if i else []), "--", "sh", "-c", look]
        p = daemon.cli("run", *words, input=f"in{i}\n", env={"WORD": f"w{i}"}, check=0)
        where, uid, mask, names, files, text = p.stdout.splitlines()
        assert (where, mask, text, p.stderr) == ("/usr" if i else "/workspace", "0022", f"in{i}", "err\n")
        assert names == f"/workspace sandbox {session} w{i}" and files == "4" and int(uid) >= 2100000000
    assert keep(daemon, session, "printf", "%s|", "a b", "", "$x", "--keep").stdout == "a b||$x|--keep|"


@pytest.mark.parametrize("script,code", [("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137), ("true", 0)])
def test_exit_codes(daemon, session, script, code):
    assert keep(daemon, session, "sh", "-c", script, check=code).returncode == code


def test_what_cannot_be_started(daemon, session):
    assert "not found" in keep(daemon, session, "no-such-command", check=127).stderr
    keep(daemon, session, "/etc/passwd", check=126)
    assert "nowhere" in keep(daemon, session, "--chdir", "/nowhere", "--", "true", check=125).stderr
    assert keep(daemon, session, "echo", "x").stdout == "x\n"


def test_usage(daemon, session):
    for words in (["--", "true"], ["--session", session, "--class", "none", "--", "true"],
                  ["--session", session, "--isolation", "none", "--", "true"]):
        assert "--keep" in daemon.cli("run", "--keep", *words, check=2).stderr
    assert not kept(daemon, session)


def test_json(daemon, session):
    script = "echo out; echo err >&2; sleep 1000 & exit 3"
    got = json.loads(keep(daemon, session, "--json", "--", "sh", "-c", script, check=3).stdout)  # the sleeper holds its output
    assert (got["exit_code"], got["stdout"], got["stderr"], got["killed_by"]) == (3, "out\n", "err\n", None)
    assert got["sandbox"] == kept(daemon, session)["sandbox"] and got["requests"] == 0
    got = json.loads(keep(daemon, session, "--json", "--output-limit", "5", "--", "sh", "-c", "echo 123456789").stdout)
    assert got["stdout"] == "12345" and got["stdout_truncated"]


def test_a_large_output_is_whole(daemon, session):
    got = json.loads(keep(daemon, session, "--json", "--", "sh", "-c", "head -c 700000 /dev/zero | tr '\\0' x").stdout)
    assert got["stdout"] == "x" * 700000


def test_a_large_environment(daemon, session):
    words = {f"WORD{i}": "x" * 100000 for i in range(8)}
    assert keep(daemon, session, "--env-all", "--", "sh", "-c", "env | grep -c ^WORD", env=words).stdout == "8\n"


def test_many_at_once(daemon, session):
    """The first ones race to make it; there is one."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda i: sh(daemon, session, f"echo {i} >> /tmp/all; echo {i}"), range(24)))
    assert got == [f"{i}\n" for i in range(24)]
    assert sorted(map(int, sh(daemon, session, "cat /tmp/all").split())) == list(range(24))
    made = [e for e in daemon.api.events(session=session) if e["reason"] == "sandbox_made"]
    assert len(made) == 1, made


def test_the_first_ones_run_side_by_side(daemon, session):
    """All of them find that nobody has made it; who comes second does not wait until the first one's command is over."""
    box = daemon.api.ok("POST", "/v1/sandboxes", {"session": session, "keep": True})
    note = daemon.run_dir / "kept" / box["sandbox"] / "made"
    both = "echo >> /workspace/n; while [ $(wc -l < /workspace/n) -lt 3 ]; do sleep 0.05; done"
    ours = os.open(note, os.O_RDONLY)
    fcntl.flock(ours, fcntl.LOCK_SH)  # as one of them
    runs = [start(daemon, session, "--", "sh", "-c", both, stderr=subprocess.PIPE) for _ in range(3)]
    try:
        assert base.eventually(lambda: all(has_open(p.pid, note) for p in runs))
        time.sleep(0.5)  # each of them has found that, and wants to make it
        os.close(ours)
        ours = -1
        assert [(p.wait(120), p.stderr.read()) for p in runs] == [(0, b"")] * 3
    finally:
        if ours >= 0:
            os.close(ours)
        for p in runs:
            base.reap(p, signal.SIGKILL)
    assert kept(daemon, session)["sandbox"] == box["sandbox"]


def test_ignored_signals_are_the_callers(daemon, session):
    """Who makes the sandbox may be started with some ignored, as in the background of a script; a later one is not."""
    for made in (signal.SIGINT, signal.SIGHUP, None):
        p = start(daemon, session, "--", "grep", "SigIgn", "/proc/self/status", stdout=subprocess.PIPE,
                  preexec_fn=(lambda: signal.signal(made, signal.SIG_IGN)) if made else None)
        try:
            word = int(p.communicate(timeout=120)[0].split()[1], 16)
        finally:
            base.reap(p)
        assert [s for s in (signal.SIGINT, signal.SIGHUP) if word & 1 << s - 1] == ([made] if made else [])


def test_the_level_holds(daemon, api, session):
    from lib.world import FAR
    reach = ["--", base.PYTHON, "-I", "-c", f"import socket; socket.create_connection(('{FAR[4]}', 9000), 2)"]
    keep(daemon, session, *reach)
    api.raise_(session, "SECRET") if hasattr(api, "raise_") else api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
    box = kept(daemon, session)
    assert "refused" in keep(daemon, session, *reach, check=1).stderr
    assert kept(daemon, session)["sandbox"] == box["sandbox"] and kept(daemon, session)["mode"] == "NONE"


def test_signals_reach_the_command(daemon, session):
    for signo, code in ((signal.SIGTERM, 143), (signal.SIGINT, 5)):
        p = start(daemon, session, "--", "sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done",
                  stdout=subprocess.PIPE)
        try:
            assert p.stdout.readline() == b"ready\n"
            p.send_signal(signo)
            assert p.wait(120) == code
        finally:
            base.reap(p)
    assert base.eventually(lambda: len(pids(kept(daemon, session))) == OWN)  # a sleep that was not signalled ends by itself


class Terminal:
    """netpawl in the foreground of a terminal of its own."""

    def __init__(self, daemon, session, *words, then=None):
        argv = [*daemon.world.enter(), str(base.NETPAWL), "run", "--keep", "--session", session, "--env", "PS1", "--", *words]
        if then:  # from a shell, which goes on with this
            argv = ["sh", "-c", f'"$@"; {then}', "sh", *argv]
        self.pid, self.master = pty.fork()
        if not self.pid:
            try:
                os.execvpe(argv[0], argv, base.env(NETPAWL_SOCKET=str(daemon.socket), TERM="dumb", PS1="> "))
            finally:
                os._exit(99)
        self.got = ""

    def expect(self, text, timeout=90):
        end = time.monotonic() + timeout
        while text not in self.got and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.got += os.read(self.master, 4096).decode(errors="replace")
                except OSError:
                    break
        assert text in self.got, self.got
        self.got = self.got.split(text, 1)[1]

    def type(self, text):
        os.write(self.master, text.encode())

    def close(self):
        """Its exit code."""
        code = None

        def ended():
            nonlocal code
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else None
            return pid

        if not base.eventually(ended, 10):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        return code


def test_terminal(daemon, session):
    """One of its own, with job control, and ours as it was afterwards."""
    sh(daemon, session, "true")
    t = Terminal(daemon, session, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo all; echo 5 > /dev/tty; stty size; "
                 "echo by-na''me > /dev/stdout; read n < /dev/stdin; echo read-$n > /proc/self/fd/2; "
                 "read x; echo got-$x; trap 'echo int; exit 4' INT; echo wait; while :; do sleep 0.1; done")
    try:
        for text in ("all", "5", "0 0", "by-name"):
            t.expect(text)
        t.type("name\n")
        t.expect("read-name")
        t.type("word\n")
        t.expect("got-word")
        t.expect("wait")
        t.type("\x03")
        t.expect("int")
    finally:
        assert t.close() == 4
    t = Terminal(daemon, session, "bash", "--norc", "-i")
    try:
        t.expect("> ")
        assert "job control" not in t.got
        t.type("sh -c 'echo run''ning; exec sleep 1000'\n")
        t.expect("running")
        t.type("\x1a")
        t.expect("Stopped")
        t.type("kill -9 %1; while jobs %1 >/dev/null 2>&1; do sleep 0.05; done; echo do''ne\n")
        t.expect("done")
        t.type("exit 3\n")
    finally:
        assert t.close() == 3


def test_a_terminal_is_not_left_behind(daemon, session):
    """Who stays in the sandbox reads nothing that is typed later. The control reads it while the command runs."""
    code = ("import os, time\nprint('typed', repr(input()), flush=True)\nif os.fork(): os._exit(0)\n"
            "open('/tmp/in', 'w').close()\ntry: text = os.read(0, 100)\nexcept OSError as e: text = e.strerror\nopen('/tmp/got', 'w').write(str(text))")
    keep(daemon, session, "true")
    t = Terminal(daemon, session, base.PYTHON, "-I", "-c", "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + code,
                 then="echo over; read x; echo shell $x")
    try:
        t.type("one\n")
        t.expect("typed 'one'")
        t.expect("over")
        t.type("secret\n")
        t.expect("shell secret")
    finally:
        assert t.close() == 0
    assert base.eventually(lambda: sh(daemon, session, "cat /tmp/got 2>/dev/null; true"))
    assert "secret" not in sh(daemon, session, "cat /tmp/got")


def test_netpawl_dies_in_the_middle(daemon, session):
    """The command goes with it, and its group; the sandbox, and what is elsewhere in it, stays."""
    sh(daemon, session, "setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
    box = kept(daemon, session)
    p = start(daemon, session, "--", "sh", "-c", "sleep 1000 & echo ready; sleep 1000", stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"ready\n" and base.eventually(lambda: len(pids(box)) == OWN + 4)
        # nsenter has become netpawl
        p.send_signal(signal.SIGKILL)
        assert base.eventually(lambda: len(pids(box)) == OWN + 1)
    finally:
        base.reap(p)
    assert sh(daemon, session, "echo more") == "more\n" and kept(daemon, session)["sandbox"] == box["sandbox"]


def test_time_kills_the_run_and_nothing_else(daemon, session):
    """Whatever it started, wherever that went; what others run there, and have left there, goes on."""
    sh(daemon, session, "echo x > /tmp/x; setsid sleep 1001 </dev/null >/dev/null 2>&1 &")
    before = kept(daemon, session)
    sibling = subprocess.Popen([*daemon.world.enter(), str(base.NETPAWL), "run", "--keep", "--session", session, "--", "sh", "-c",
                                "echo up; read x; echo $x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert sibling.stdout.readline() == "up\n"
        escape = "setsid sh -c 'setsid sleep 1002 & exec sleep 1003' </dev/null >/dev/null 2>&1 & sleep 1004"
        told = keep(daemon, session, "--timeout", "1s", "--", "sh", "-c", escape, check=124).stderr
        assert "time was over" in told and "the sandbox was killed" not in told
        left = sh(daemon, session, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "sleep 1001" in left and not any(f"sleep 100{i}" in left for i in (2, 3, 4)), left
        assert sibling.communicate("still here\n", timeout=120)[0] == "still here\n" and sibling.returncode == 0
    finally:
        base.reap(sibling)
    assert sh(daemon, session, "ls /tmp") == "x\n" and kept(daemon, session)["sandbox"] == before["sandbox"]
    # groups of runs that left nothing are gone; that of the sleeper stays, with it
    sh(daemon, session, "true")
    assert base.eventually(lambda: len(list((daemon.slice / before["sandbox"]).glob("run-*"))) == 1)


def test_one_too_many_is_refused(daemon, session):
    """And the others do not notice."""
    sh(daemon, session, "true")
    env = base.env(NETPAWL_SOCKET=str(daemon.socket))
    words = [*daemon.world.enter(), str(base.NETPAWL), "run", "--keep", "--session", session, "--", "sh", "-c", "echo up; read x; echo $x"]
    runs = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) for _ in range(64)]
    try:
        assert [p.stdout.readline() for p in runs] == ["up\n"] * 64
        for _ in range(8):  # the order may come before or after the refusal
            p = keep(daemon, session, "true", check=125)
            assert "as many commands run in the kept sandbox as may" in p.stderr, p.stderr
        assert runs[0].communicate("a\n", timeout=120)[0] == "a\n"
        assert base.eventually(lambda: daemon.cli("run", "--keep", "--session", session, "--", "true").returncode == 0)
        assert [p.communicate("b\n", timeout=120)[0] for p in runs[1:]] == ["b\n"] * 63
    finally:
        for p in runs:
            base.reap(p)


# -- it must fit ----------------------------------------------------------------------------

def test_options_must_fit(daemon, session):
    sh(daemon, session, "true", "--memory", "64MiB", "--pids", "50")
    box = kept(daemon, session)
    for words in ([], ["--memory", "64MiB"], ["--pids", "50"], ["--timeout", "1m"], ["--output-limit", "1k"]):
        assert sh(daemon, session, "echo ok", *words) == "ok\n"
    for words, what in ((["--memory", "1GiB"], "--memory was 67108864"), (["--cpus", "1"], "no --cpus"),
                        (["--user", "root"], "--user was left out"), (["--bind", "/tmp:/data"], "--bind was left out")):
        said = keep(daemon, session, *words, "--", "echo", "ran", check=125)
        assert what in said.stderr and f"netpawl remove {box['sandbox']}" in said.stderr and said.stdout == ""
    assert kept(daemon, session)["sandbox"] == box["sandbox"]
    daemon.cli("remove", box["sandbox"], check=0)
    assert not kept(daemon, session) and not pids(box)
    assert sh(daemon, session, "id -u", "--user", "root", "--bind", "/tmp:/data:ro") == "0\n"
    assert "--user was root" in keep(daemon, session, "true", check=125).stderr
    assert "--bind was /tmp:/data:ro" in keep(daemon, session, "--user", "root", "--", "true", check=125).stderr


def test_limits_hold(daemon, session):
    """For all runs together, and they are there for a later one that does not ask for them."""
    sh(daemon, session, "for i in 1 2 3 4 5; do sleep 1000 </dev/null >/dev/null 2>&1 & done", "--pids", "12")
    p = keep(daemon, session, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 </dev/null >/dev/null 2>&1 & done", check=None)
    assert "fork" in p.stderr.lower() or "resource" in p.stderr.lower(), p.stderr


def test_no_process_is_left_for_a_run(daemon, session):
    """Whatever fills it, netpawl says so and goes on; and it is not taken for dead."""
    sh(daemon, session, "true", "--pids", "8")
    box = kept(daemon, session)
    p = start(daemon, session, "--", base.PYTHON, "-c", "import os, time\ntry:\n  while os.fork(): pass\nexcept OSError: print('full', flush=True)\n"
              "time.sleep(1000)", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert p.stdout.readline() == b"full\n"
        assert "process" in keep(daemon, session, "true", check=125).stderr
        assert kept(daemon, session)["sandbox"] == box["sandbox"]
    finally:
        base.reap(p, signal.SIGKILL)
    daemon.cli("remove", box["sandbox"], check=0)


def test_a_policy_that_is_stricter_now(make_daemon, session):
    d = make_daemon().start()
    sh(d, session, "true", "--bind", "/tmp:/data")
    d.policy.write_text("version: 1\nsandbox:\n  memory: 64MiB\n  binds: [/tmp]\n")
    d.cli("policy", "reload", check=0)
    assert "no --memory" in keep(d, session, "--bind", "/tmp:/data", "--", "true", check=125).stderr
    d.policy.write_text("version: 1\n")
    d.cli("policy", "reload", check=0)
    assert "permit" in keep(d, session, "--bind", "/tmp:/data", "--", "true", check=125).stderr


# -- it ends ----------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["process 1", "cgroup", "all but the launcher"])
def test_killed_from_outside(daemon, session, how):
    """The next run finds out, whether or not the daemon has swept it, and does not bother anybody."""
    for _ in range(3):
        sh(daemon, session, "echo x > /tmp/x")
        box = kept(daemon, session)
        if how == "process 1":
            os.kill(first_process(box), signal.SIGKILL)
        elif how == "cgroup":
            pathlib.Path(box["cgroup"], "cgroup.kill").write_text("1")
        else:
            for pid in pids(box):
                os.kill(pid, signal.SIGKILL)
        p = keep(daemon, session, "sh", "-c", "ls /tmp; echo ran")
        assert p.stdout == "ran\n" and p.stderr == "" and kept(daemon, session)["sandbox"] != box["sandbox"]
        assert base.eventually(lambda: not os.path.exists(box["cgroup"]))


def test_killed_in_the_middle_of_a_run(daemon, session):
    p = start(daemon, session, "--", "sh", "-c", "echo ready; sleep 1000", stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"ready\n"
        os.kill(first_process(kept(daemon, session)), signal.SIGKILL)
        assert p.wait(120) == 137
    finally:
        base.reap(p)
    assert sh(daemon, session, "echo ran") == "ran\n"


def test_stopped_process_1(daemon, session):
    """It does not answer: netpawl does not wait for ever, and makes another one."""
    sh(daemon, session, "true")
    box = kept(daemon, session)
    os.kill(first_process(box), signal.SIGSTOP)
    assert sh(daemon, session, "echo ran") == "ran\n"
    assert kept(daemon, session)["sandbox"] != box["sandbox"] and not os.path.exists(box["cgroup"])


def test_stopped_process_1_with_a_run_in_progress(daemon, session):
    """What others run there is not killed for a process 1 that may only be slow."""
    p = start(daemon, session, "--", "sh", "-c", "echo ready; read x; exit $x", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"ready\n"
        box = kept(daemon, session)
        first = first_process(box)
        os.kill(first, signal.SIGSTOP)
        assert "does not answer" in keep(daemon, session, "true", check=125).stderr
        os.kill(first, signal.SIGCONT)
        p.stdin.write(b"7\n")
        p.stdin.close()
        assert p.wait(120) == 7
    finally:
        base.reap(p)
    assert sh(daemon, session, "echo ran") == "ran\n" and kept(daemon, session)["sandbox"] == box["sandbox"]


def test_end_of_the_session(daemon, session):
    sh(daemon, session, "sleep 1000 </dev/null >/dev/null 2>&1 &")
    box = kept(daemon, session)
    daemon.cli("end", session, check=0)
    assert not pids(box) and not (daemon.run_dir / "kept" / box["sandbox"]).exists()
    assert sh(daemon, session, "echo ran") == "ran\n"


def idle_policy(folder, idle):
    path = folder / "idle.yaml"
    path.write_text(f"version: 1\n{base.PERMITS}  idle: {idle}\n")
    return path


def shorten(d, folder):
    """From here on: what comes before may take its time."""
    idle_policy(folder, "2s")
    d.cli("policy", "reload", check=0)


def removed(d, session):
    return [e["reason"] for e in d.api.events(session=session) if e["reason"] in ("sandbox_idle", "sandbox_removed")]


def test_idle_ones_are_removed(make_daemon):
    folder = base.tempdir("idle")
    try:
        d = make_daemon(policy=idle_policy(folder, "1h")).start()
        one, two = new_session("idle"), new_session("idle")
        p = start(d, two, "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert p.stdout.readline() == b"ready\n"
            sh(d, one, "sleep 1000 </dev/null >/dev/null 2>&1 &")  # lives, but nobody uses it
            box, busy = kept(d, one), kept(d, two)
            shorten(d, folder)
            assert d.api.ok("GET", "/v1/launch")["sandbox"]["idle"] == "2s"
            assert base.eventually(lambda: not kept(d, one), 15)
            assert not pids(box) and not os.path.exists(box["cgroup"])
            assert base.eventually(lambda: removed(d, one) == ["sandbox_idle", "sandbox_removed"])
            time.sleep(3)  # it would be long over
            assert kept(d, two)["sandbox"] == busy["sandbox"], "a run in progress is no idleness"
            assert kept(d, two)["active"] > busy["active"]
        finally:
            p.stdin.close()
            base.reap(p)
        assert base.eventually(lambda: not kept(d, two), 15)
        assert not list((d.run_dir / "kept").iterdir())
    finally:
        base.drop_tempdir(folder)


SERVER = "setsid python3 -m http.server 24321 --bind 127.0.0.1 </dev/null >/dev/null 2>&1 & " \
         "while ! python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 24321))' 2>/dev/null; do sleep 0.05; done"


@pytest.mark.parametrize("level", ["PUBLIC", "CONFIDENTIAL"])
def test_callers_are_no_use(make_daemon, level):
    """A process of the host knocks at a listener of the sandbox, is refused, and does not keep it alive."""
    folder = base.tempdir("idle")
    try:
        policy = idle_policy(folder, "1h")
        text = policy.read_text().replace(base.PERMITS, base.permits("shared"))  # where a process of the host can knock at all
        policy.write_text(text if "network:" in text else text + "  network: shared\n")
        d = make_daemon(policy=policy).start()
        s = new_session("idle")
        sh(d, s, SERVER, "--level", level)
        knock = [*d.world.enter(), "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/24321"]

        def gone():
            assert subprocess.run(["timeout", "0.3", *knock], stderr=subprocess.DEVNULL).returncode != 0
            return not kept(d, s)

        assert not gone()
        assert d.api.wait_events(len, session=s, reason="inbound")
        shorten(d, folder)
        assert base.eventually(gone, 15)
        assert base.eventually(lambda: removed(d, s) == ["sandbox_idle", "sandbox_removed"]), removed(d, s)
    finally:
        base.drop_tempdir(folder)


def test_one_that_cannot_be_cleaned_up(make_daemon):
    """Something is in the way of one: it is tried again, and the others do not wait for it."""
    folder = base.tempdir("idle")
    d = make_daemon(policy=idle_policy(folder, "1h"))
    mount = None
    try:
        d.start()
        sessions = [new_session("idle") for _ in range(4)]
        for s in sessions:
            sh(d, s, "true")
        stuck = kept(d, sessions[0])
        mount = d.run_dir / "kept" / stuck["sandbox"]
        base.sh("mount", "-t", "tmpfs", "none", mount)
        shorten(d, folder)
        assert base.eventually(lambda: not any(kept(d, s) for s in sessions), 20)
        assert base.eventually(lambda: [p.name for p in (d.run_dir / "kept").iterdir()] == [stuck["sandbox"]])
        assert not os.path.exists(stuck["cgroup"])
        assert sh(d, sessions[0], "echo ran") == "ran\n"
        base.sh("umount", mount)
        assert base.eventually(lambda: not mount.exists())
        mount = None
    finally:
        if mount:
            subprocess.run(["umount", "-l", str(mount)])
        base.drop_tempdir(folder)


# -- it outlives the daemon, and no rests do ------------------------------------------------------

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_restart(make_daemon, session, how):
    d = make_daemon().start()
    sh(d, session, "echo x > /tmp/x")
    box = kept(d, session)
    d.restart(how)
    assert kept(d, session)["sandbox"] == box["sandbox"]
    assert sh(d, session, "cat /tmp/x") == "x\n"


def test_rests_of_a_crash(make_daemon):
    """Killed without a daemon to see it, and what nobody ever owned: gone after the next start."""
    d = make_daemon().start()
    names = {way: new_session("rest") for way in ("emptied", "removed", "kept")}
    for s in names.values():
        sh(d, s, "true", "--pids", "20")
    boxes = {way: kept(d, s) for way, s in names.items()}
    p = base.popen([*d.world.enter(), base.NETPAWL, "run", "--session", names["kept"], "--pids", "20", "--", "sh", "-c", "echo x; sleep 1000"],
                   env=base.env(NETPAWL_SOCKET=str(d.socket)), stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"x\n"
    api_only = d.api.ok("POST", "/v1/sandboxes", {"session": new_session("rest"), "keep": True})  # its launcher died
    d.kill()
    pathlib.Path(boxes["emptied"]["cgroup"], "cgroup.kill").write_text("1")
    base.cgroup_destroy(pathlib.Path(boxes["removed"]["cgroup"]))
    folder = d.run_dir / "kept"
    for name in ("a.b.00000000", "a.c.00000000"):
        (folder / name).mkdir(mode=0o700)
    (folder / "a.b.00000000" / "made").write_text("user=root\n")
    stray = d.slice / "stray"
    stray.mkdir()
    base.reap(p, signal.SIGKILL)  # and its sandbox with it: the limits' groups are for the daemon
    groups = [g for g in base.v1_groups() if d.cgroup in g.name]
    for name in ("nobody,here", "nobody,here,new"):
        (d.run_dir / "names" / name).write_text("1 a.example\n")
    notices = d.run_dir / "notices" / "nobody" / "here"
    notices.mkdir(parents=True)
    (notices / "notices.ndjson").write_text("")
    d.start()
    assert not HYBRID or len(groups) > 1, "the control"
    assert not list((d.run_dir / "names").glob("nobody*")) and not notices.parent.exists()
    left = {boxes["kept"]["sandbox"]}
    assert base.eventually(lambda: {b["sandbox"] for b in d.api.sandboxes()} == left, 15)
    assert base.eventually(lambda: {p.name for p in folder.iterdir()} == left)
    assert not stray.exists() and not os.path.exists(api_only["cgroup"]) and not os.path.exists(boxes["emptied"]["cgroup"])
    assert base.eventually(lambda: {p.name.rsplit(".", 1)[1] for p in base.v1_groups() if d.cgroup in p.name}
                           <= {boxes["kept"]["sandbox"].rsplit(".", 1)[1]}, 30)
    assert sh(d, names["kept"], "echo ran", "--pids", "20") == "ran\n"


# -- by the API --------------------------------------------------------------------------------

def test_launch(daemon, api, session):
    def launch(*command, **options):
        return api.ok("POST", "/v1/runs", {"session": session, "command": list(command), "launch": {"keep": True, **options}})["run"]

    def ended(ident):
        return base.eventually(lambda: (row := api.ok("GET", f"/v1/runs/{ident}"))["state"] not in ("pending", "running") and row, 30)

    one = ended(launch("sh", "-c", "echo x > /tmp/x"))
    two = ended(launch("sh", "-c", "exit $(wc -l < /tmp/x)"))
    assert (one["state"], one["result"]["exit_code"], two["result"]["exit_code"]) == ("completed", 0, 1)
    assert one["sandbox"] == two["sandbox"] == kept(daemon, session)["sandbox"]
    refused = api.ask("POST", "/v1/runs", {"session": session, "class": "none", "command": ["true"], "launch": {"keep": True}})
    assert refused[0] == 400 and "class" in refused[1]["detail"]
    assert api.ask("POST", "/v1/runs", {"session": session, "command": ["true"], "launch": {"keep": "yes"}})[0] == 400


def test_a_launcher_that_dies(daemon, api, session):
    """Its run is over, though the sandbox is there."""
    ident = api.ok("POST", "/v1/runs", {"session": session, "command": ["sleep", "1000"], "launch": {"keep": True}})["run"]
    assert base.eventually(lambda: api.ok("GET", f"/v1/runs/{ident}")["state"] == "running", 15)
    box = base.eventually(lambda: (b := kept(daemon, session)) and len(pids(b)) > OWN and b)
    found = [p for p in filter(str.isdigit, os.listdir("/proc")) if f"/netpawl-run\0{daemon.socket}\0{ident}\0" in base.command_line(p)]
    assert len(found) == 1
    os.kill(int(found[0]), signal.SIGKILL)
    assert base.eventually(lambda: len(pids(box)) == OWN)
    assert base.eventually(lambda: api.ok("GET", f"/v1/runs/{ident}")["state"] == "failed", 30)


# -- trust ---------------------------------------------------------------------------------------

def test_a_new_authority(make_daemon, session):
    """After a restart of the daemon: an idle one is made anew, of another one the user is told."""
    d = make_daemon(inspectors=1).start()
    ca = "cat $SSL_CERT_FILE | sha256sum"
    assert base.eventually(lambda: d.api.health()["inspectors"] == 1, 15)
    sh(d, session, "true")
    box, before = kept(d, session), sh(d, session, ca)
    assert sh(d, session, ca) == before and kept(d, session)["sandbox"] == box["sandbox"]
    d.restart()
    assert base.eventually(lambda: d.api.health()["inspectors"] == 1, 15)
    assert base.eventually(lambda: d.api.ask("GET", f"/v1/sessions/{session}/ca")[0] == 200, 15)
    p = keep(d, session, "sh", "-c", ca)
    assert p.stdout != before and p.stderr == "" and kept(d, session)["sandbox"] != box["sandbox"]
    sh(d, session, "sleep 1000 </dev/null >/dev/null 2>&1 &")
    box = kept(d, session)
    d.restart()
    assert base.eventually(lambda: d.api.ask("GET", f"/v1/sessions/{session}/ca")[0] == 200, 15)
    p = keep(d, session, "echo", "ran")
    assert p.stdout == "ran\n" and f"netpawl remove {box['sandbox']}" in p.stderr and kept(d, session)["sandbox"] == box["sandbox"]
