# SPDX-License-Identifier: MIT
"""netpawl run --keep: a sandbox that stays for the next run of its session; what ends it, and what becomes of its rests."""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from lib import base
from lib.box import new_session

OWN = 2  # processes of a kept sandbox in which nothing runs: bubblewrap, and process 1


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
    assert box and len(pids(box)) == OWN + 1
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
        words = [*([way] if way else []), "--session", session, *(["--chdir", "/usr"] if i else []), "--", "sh", "-c", look]
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
    assert sh(daemon, session, "env | grep -c ^WORD", env=words) == "8\n"


def test_many_at_once(daemon, session):
    """The first ones race to make it; there is one."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda i: sh(daemon, session, f"echo {i} >> /tmp/all; echo {i}"), range(24)))
    assert got == [f"{i}\n" for i in range(24)]
    assert sorted(map(int, sh(daemon, session, "cat /tmp/all").split())) == list(range(24))
    made = [e for e in daemon.api.events(session=session) if e["reason"] == "sandbox_made"]
    assert len(made) == 1, made


def test_the_level_holds(daemon, api, session):
    from lib.world import FAR
    reach = ["--", base.PYTHON, "-I", "-c", f"import socket; socket.create_connection(('{FAR[4]}', 9000), 2)"]
    keep(daemon, session, *reach)
    api.raise_(session, "SECRET") if hasattr(api, "raise_") else api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
    box = kept(daemon, session)
    assert "refused" in keep(daemon, session, *reach, check=1).stderr
    assert kept(daemon, session)["sandbox"] == box["sandbox"] and kept(daemon, session)["mode"] == "NONE"
