# SPDX-License-Identifier: MIT
"""Runs that the API starts, with nothing but the API: their output as it comes, their bounds, their approvals."""
import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from lib import base
from lib.api import Connection
from lib.box import new_session
from lib.deceived import StandIn
from lib.world import FAR

REACH = f"import socket; socket.create_connection(('{FAR[4]}', 9000), 60); print('through')"


@pytest.fixture
def session(api):
    name = new_session("launch")
    api.create(name)
    return name


def launch(api, session, *command, cls=None, **options):
    body = {"session": session, "command": list(command), "launch": options}
    return api.ok("POST", "/v1/runs", {**body, **({"class": cls} if cls else {})})["run"]


def output(api, ident, follow=1):
    """(stdout, stderr, other lines), to the end when it is followed."""
    c = Connection(api.path, 300)
    try:
        c.request("GET", f"/v1/runs/{ident}/output?follow={follow}")
        r = c.getresponse()
        assert r.status == 200, r.read()
        lines = [json.loads(line) for line in r.read().splitlines() if line]
    finally:
        c.close()
    join = lambda name: "".join(line["data"] for line in lines if line.get("stream") == name)
    return join("stdout"), join("stderr"), [line for line in lines if "stream" not in line]


def ended(api, ident):
    return base.eventually(lambda: (row := api.ok("GET", f"/v1/runs/{ident}"))["state"] not in ("pending", "running") and row, 30)


def test_launch(api, session):
    ident = launch(api, session, "sh", "-c", "echo out; echo err >&2; pwd; cat; exit 3")
    assert output(api, ident) == ("out\n/workspace\n", "err\n", [])
    row = ended(api, ident)
    assert row["state"] == "completed" and row["result"]["exit_code"] == 3 and row["class"] is None
    assert row["command"][:2] == ["sh", "-c"] and row["started"] <= row["ended"]
    assert output(api, ident, follow=0)[0] == "out\n/workspace\n"  # it is kept
    assert base.eventually(lambda: not api.sandboxes(session))


@pytest.mark.parametrize("name,text", [("memory", "lots"), ("memory", "1kB"), ("disk", "-1"), ("cpus", "0"), ("cpus", "0.009"), ("pids", "1.5"),
                                       ("timeout", "soon"), ("output_limit", "0")])
def test_a_limit_that_is_none_is_told_at_once(api, session, name, text):
    status, answer = api.ask("POST", "/v1/runs", {"session": session, "command": ["true"], "launch": {name: text}})
    assert (status, answer["error"]) == (400, "bad_field") and name in answer["detail"], answer


def test_a_launched_run_is_counted(api, session):
    api.escalate(session, "SECRET")
    ident = launch(api, session, base.PYTHON, "-c", "import socket\nfor i in range(3):\n"
                   "  try: socket.create_connection(('198.51.100.10', 9000), 2)\n  except OSError: pass")
    result = ended(api, ident)["result"]
    assert result["refused"] >= 3 and (result["requests"], result["sent"]) == (0, 0), result


def test_output_comes_while_it_runs(api, session):
    ident = launch(api, session, "sh", "-c", "echo first; while ! test -e /workspace/go; do sleep 0.1; done; echo second")
    c = Connection(api.path, 300)
    try:
        c.request("GET", f"/v1/runs/{ident}/output?follow=1")
        r = c.getresponse()
        assert json.loads(r.readline()) == {"stream": "stdout", "data": "first\n"}
        assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "running"
        other = launch(api, session, "touch", "/workspace/go")
        assert json.loads(r.readline()) == {"stream": "stdout", "data": "second\n"}
        assert r.readline() == b""
    finally:
        c.close()
    assert ended(api, ident)["result"]["exit_code"] == 0 and ended(api, other)["state"] == "completed"


def test_limits(api, session):
    ident = launch(api, session, "sleep", "1000", timeout="1s")
    assert "time was over" in output(api, ident)[1]
    assert ended(api, ident)["result"]["timed_out"] is True
    ident = launch(api, session, "sh", "-c", "yes | head -c 30000000")
    out, _, other = output(api, ident)
    assert 0 < len(out) <= 1 << 20 and ended(api, ident)["state"] == "completed"
    ident = launch(api, session, "sh", "-c", "yes | head -c 30000000", output_limit="20MiB")
    out, _, other = output(api, ident)
    assert 0 < len(out) <= 2 << 20 and other == [{"truncated": True}]
    ident = launch(api, session, "true", chdir="/no/such")
    assert "/no/such" in output(api, ident)[1]
    row = ended(api, ident)
    assert row["state"] == "failed" and "/no/such" in row["result"]["problem"], row


def test_output_that_is_no_text(api, session):
    ident = launch(api, session, "python3", "-c", "import sys, time\nw = sys.stdout.buffer\n"
                   "for b in (b'a\\xff\\x00\"\\\\', b'\\xe2\\x82', b'\\xac|', b'\\xe2\\x82'):\n"
                   "    w.write(b); w.flush(); time.sleep(0.2)")
    assert output(api, ident)[0] == "a\ufffd\0\"\\\u20ac|\ufffd\ufffd"


def test_classes(api, session):
    assert output(api, launch(api, session, "python3", "-c", REACH))[0] == "through\n"
    ident = launch(api, session, "python3", "-c", REACH, cls="none")
    out, err, _ = output(api, ident)
    assert out == "" and "refused" in err and api.show(session)["mode"] == "FULL"


def test_write_waits(api, session):
    ident = launch(api, session, "sh", "-c", "touch /workspace/ran; echo ran", cls="write")
    other = launch(api, session, "sh", "-c", "touch /workspace/other", cls="write")
    got = []
    reader = threading.Thread(target=lambda: got.append(output(api, ident)))
    reader.start()
    assert output(api, launch(api, session, "ls", "/workspace"))[0] == ""  # neither has begun
    assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "pending"
    api.ok("POST", f"/v1/runs/{ident}/approve")
    reader.join(180)
    assert got and got[0][0] == "ran\n"
    api.ok("POST", f"/v1/runs/{other}/reject", {"reason": "no"})
    assert "rejected" in output(api, other)[1]
    assert output(api, launch(api, session, "ls", "/workspace"))[0] == "ran\n"


def test_command_words_are_words(api, session):
    ident = launch(api, session, "printf", "%s\n", "--json", "--session", "-x", "$HOME", "a b")
    assert output(api, ident)[0] == "--json\n--session\n-x\n$HOME\na b\n"
    ident = launch(api, session, "--isolation", "none")  # no option of ours
    assert ended(api, ident)["state"] in ("failed", "completed") and "only the network" not in output(api, ident)[1]
    ident = launch(api, session, "true", chdir="--isolation=none")
    assert "only the network" not in output(api, ident)[1]


def test_the_launcher_runs_what_is_on_record(daemon, api, session):
    """An approval of one command cannot be spent on another."""
    ident = api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["echo", "approved"]})["run"]
    api.ok("POST", f"/v1/runs/{ident}/approve")
    assert daemon.launcher(ident, "--", "echo", "other").returncode == 2
    got = daemon.launcher(ident, check=0)
    assert got.stdout == "approved\n"
    assert daemon.launcher(ident).returncode == 125  # once
    for wrong in ("x", "0", "-1", "1/../2", ""):
        assert daemon.launcher(wrong).returncode == 2, wrong


def test_the_operators_tool_has_no_option_for_the_daemon(daemon, session):
    got = daemon.cli("run", "--session", session, "--record", 1)
    assert got.returncode == 2 and "unknown option '--record'" in got.stderr


def test_no_output_of_others(api, session):
    ident = api.ok("POST", "/v1/runs", {"session": session, "command": ["true"]})["run"]  # on record only
    for wrong in (ident, 0, 10**12, "x"):
        assert api.ask("GET", f"/v1/runs/{wrong}/output")[0] == 404
    assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "pending"


def test_readers_that_go_away(api, session):
    ident = launch(api, session, "sleep", "3")
    for _ in range(40):  # more than NP_FOLLOWERS_MAX, but never at once
        c = Connection(api.path, 10)
        c.request("GET", f"/v1/runs/{ident}/output?follow=1")
        try:
            c.getresponse()
        except http.client.HTTPException:
            pass
        c.close()
        base.eventually(lambda: api.health(), 5)
    assert ended(api, ident)["state"] == "completed"


def test_an_approval_of_a_launch_is_for_what_is_launched(make_daemon):
    """Whoever has the API, and is quicker than the launcher, cannot run something else with it, nor tell its end."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    ident = launch(d.api, name, "sh", "-c", "echo ran; while ! test -e /workspace/go; do sleep 0.1; done", cls="write")
    pid = base.eventually(lambda: d.launcher_of(ident), 10)
    os.kill(pid, signal.SIGSTOP)
    try:
        d.api.ok("POST", f"/v1/runs/{ident}/approve")
        status, answer = d.api.ask("POST", "/v1/sandboxes", {"session": name, "run": str(ident)})
        assert status == 403 and answer["error"] == "not_the_launcher", answer
        assert not d.api.sandboxes(name) and d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "pending"
        assert d.launcher(ident).returncode == 125
    finally:
        os.kill(pid, signal.SIGCONT)
    assert base.eventually(lambda: d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "running")
    status, answer = d.api.ask("POST", f"/v1/runs/{ident}/end", {"state": "completed", "result": {"exit_code": 0}})
    assert status == 403 and d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "running"
    output(d.api, launch(d.api, name, "touch", "/workspace/go"))
    assert output(d.api, ident)[0] == "ran\n" and ended(d.api, ident)["state"] == "completed"
    # the control: one that is only on record is started and ended by who likes to
    ident = d.api.ok("POST", "/v1/runs", {"session": name, "class": "write", "command": ["true"]})["run"]
    d.api.ok("POST", f"/v1/runs/{ident}/approve")
    box = d.api.ok("POST", "/v1/sandboxes", {"session": name, "run": str(ident)})
    d.api.ok("POST", f"/v1/runs/{ident}/end", {"state": "completed", "result": {}})
    d.api.remove(box["sandbox"])


def test_who_approves_sees_how_it_is_launched(daemon, api, session):
    ident = launch(api, session, "./publish.sh", cls="write", chdir="/tmp", memory="1GiB")
    row = api.ok("GET", f"/v1/runs/{ident}")
    assert row["options"] == {"chdir": "/tmp", "memory": "1GiB", "output_limit": "1MiB"} and row["launched"] is True
    assert '"chdir":"/tmp"' in daemon.cli("runs", session, check=0).stdout
    assert '"chdir":"/tmp"' in daemon.cli("reject", ident, "--reason", "no", check=0).stdout
    status, answer = api.ask("POST", "/v1/runs", {"session": session, "command": ["x"], "launch": {"chdir": "/" + "x" * 9000}})
    assert status == 413, answer


def test_restart(make_daemon):
    """What waited to be launched is rejected: whoever was to start it is gone."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    waits = launch(d.api, name, "sh", "-c", "touch /workspace/ran", cls="write")
    approved = launch(d.api, name, "sh", "-c", "touch /workspace/ran", cls="write")
    pids = [base.eventually(lambda i=i: d.launcher_of(i), 10) for i in (waits, approved)]
    os.kill(pids[1], signal.SIGSTOP)
    d.api.ok("POST", f"/v1/runs/{approved}/approve")
    d.restart("kill")
    with contextlib.suppress(ProcessLookupError):  # the kernel ends stopped processes that nobody is left for
        os.kill(pids[1], signal.SIGCONT)
    for ident in (waits, approved):
        row = d.api.ok("GET", f"/v1/runs/{ident}")
        assert row["state"] == "rejected" and row["started"] is None, row
        assert d.api.ask("POST", f"/v1/runs/{ident}/approve")[0] == 409
        assert output(d.api, ident, follow=0)[0] == ""
    assert base.eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert output(d.api, launch(d.api, name, "ls", "/workspace"))[0] == ""


def test_a_run_outlives_the_daemon(make_daemon):
    """And so does its output; the command is not ended by it."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    words = "echo early; while ! test -e /workspace/go; do sleep 0.1; done; echo late && echo wrote > /workspace/wrote; exit 5"
    ident = launch(d.api, name, "sh", "-c", words)
    assert base.eventually(lambda: output(d.api, ident, follow=0)[0] == "early\n")
    d.restart("kill")
    assert d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "running"
    output(d.api, launch(d.api, name, "touch", "/workspace/go"))
    row = ended(d.api, ident)
    assert row["state"] == "completed" and row["result"]["exit_code"] == 5 and row["launched"] is True, row
    assert output(d.api, launch(d.api, name, "cat", "/workspace/wrote"))[0] == "wrote\n"
    assert output(d.api, ident)[0] == "early\nlate\n"


def launchers(d):
    return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
            if base.command_line(pid).split("\0")[:2] == [str(base.NETPAWL_RUN), str(d.socket)]]


def test_a_launcher_ends_when_nobody_can_come_back_to_hear_it(make_daemon):
    """It tries for long to report how its run ended; not when the daemon's directory is gone, where the next one would listen."""
    d = make_daemon()
    d.start()
    ident = launch(d.api, new_session("launch"), "sh", "-c", "echo early; sleep 600")
    assert base.eventually(lambda: output(d.api, ident, follow=0)[0] == "early\n")
    launcher, = launchers(d)
    d.kill()
    base.cgroup_destroy(d.slice)
    assert not base.for_a_while(lambda: not launchers(d), 12), "it gave up although the directory is there"
    (away := d.run_dir.with_name("away")).mkdir()
    d.run_dir.rename(away / "run")
    assert base.eventually(lambda: launcher not in launchers(d)), "it goes on"
    (away / "run").rename(d.run_dir)


def test_stop_with_readers(make_daemon):
    """Neither a reader of output nor one who waits keeps the daemon from its end."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    ident = launch(d.api, name, "true", cls="write")
    readers = []
    for path in ("output?follow=1", "?wait=1", "?wait=1"):
        c = Connection(d.api.path, 20)
        c.request("GET", f"/v1/runs/{ident}" + ("" if path[0] == "?" else "/") + path)
        readers.append(c)
    d.api.health()
    assert d.stop() == 0
    for c in readers:
        c.close()
    d.start()
    assert d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "rejected"


def test_variables_of_a_launch(api, session):
    """They are added to the plain environment, and on record; a name alone has no caller to take it from."""
    ident = launch(api, session, "sh", "-c", "echo $A; echo $HOME", env=["A=b c", "EMPTY="])
    assert output(api, ident) == ("b c\n/workspace\n", "", [])
    assert api.ok("GET", f"/v1/runs/{ident}")["options"]["env"] == ["A=b c", "EMPTY="]
    for env, told in ((["A"], "NAME=VALUE"), (["=b"], "NAME=VALUE"), (["A=b", "A B=x"], 'word 2 of "env": there is a blank in the name'), ("A=b", "array"), ([1], "array"), (["NETPAWL_SOCKET=/x"], "netpawl's own")):
        status, answer = api.ask("POST", "/v1/runs", {"session": session, "command": ["true"], "launch": {"env": env}})
        assert status == 400 and told in answer["detail"], answer


# -- input, terminals, readers, the end ---------------------------------------------------------------

def send(api, ident, **body):
    return api.ask("POST", f"/v1/runs/{ident}/input", body)


def test_input(api, session):
    """As text and as bytes, in pieces, more than a pipe holds, to its end."""
    ident = launch(api, session, "sh", "-c", "dd bs=1 count=6 status=none; echo; wc -c; echo end", input=True)
    assert send(api, ident, data="héllo") == (200, {"run": ident, "taken": 6})
    size, block = 0, base64.b64encode(b"\0\xff" * 10000).decode()
    for _ in range(40):
        assert base.eventually(lambda: send(api, ident, base64=block)[0] == 200)  # 429 until it was read
        size += 20000
    assert send(api, ident, end=True)[0] == 200
    assert output(api, ident)[0] == f"héllo\n{size}\nend\n"
    assert ended(api, ident)["result"]["exit_code"] == 0
    assert send(api, ident, data="x")[1]["error"] == "run_over"


def test_input_that_is_not_read_is_refused(api, session):
    ident = launch(api, session, "sh", "-c", "sleep 60", input=True)
    got = [send(api, ident, data="x" * 60000) for _ in range(9)]  # a pipe's 64 KiB, and 256 KiB before it; the launcher has some
    assert (429, "too_many") in [(status, answer.get("error")) for status, answer in got], got
    api.ok("POST", f"/v1/runs/{ident}/cancel", {})


@pytest.mark.parametrize("body,error", [({"base64": "&"}, "bad_field"), ({"columns": 80}, "bad_field"), ({"columns": 80, "rows": 24}, "bad_field"),
                                        ({"columns": 99999, "rows": 1}, "bad_field"), ({"what": 1}, "unknown_field")])
def test_input_that_is_wrong(api, session, body, error):
    ident = launch(api, session, "cat", input=True)
    assert send(api, ident, **body)[1]["error"] == error
    send(api, ident, end=True)
    assert ended(api, ident)["state"] == "completed"


def test_who_asked_for_no_input_has_none(api, session):
    ident = launch(api, session, "sh", "-c", "cat; echo over; sleep 60")
    assert send(api, ident, data="x")[1]["error"] == "run_over"
    assert api.ask("POST", "/v1/runs/99999/input", {"data": "x"})[1]["error"] == "no_such_run"
    api.ok("POST", f"/v1/runs/{ident}/cancel", {})


@pytest.mark.parametrize("keep", [{}, {"keep": True}])
def test_a_terminal(api, session, keep):
    """It has its size, a shell's job control, and the characters that a terminal makes signals of."""
    ident = launch(api, session, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo tty; stty size; trap 'echo int; stty size; exit 4' INT; echo up; read x; echo got-$x; "
                   "while :; do sleep 0.1; done", terminal="100x30", **keep)
    text = lambda: output(api, ident, 0)[0]
    assert base.eventually(lambda: "up\r\n" in text()), text()
    assert text().startswith("tty") and "30 100" in text()
    assert send(api, ident, data="word\n")[0] == 200
    assert base.eventually(lambda: "got-word" in text())
    assert send(api, ident, columns=80, rows=24)[0] == 200
    assert send(api, ident, data="\x03")[0] == 200
    assert base.eventually(lambda: "int\r\n" in text()), text()
    assert ended(api, ident)["result"]["exit_code"] == 4
    assert keep or "24 80" in output(api, ident)[0]
    assert api.ask("POST", "/v1/runs", {"session": session, "command": ["true"], "launch": {"terminal": "80"}})[1]["error"] == "bad_field"


def attached(api, ident):
    """The bytes of a run that is attached, as they come."""
    c = Connection(api.path, 300)
    c.request("GET", f"/v1/runs/{ident}/output?follow=1")
    r = c.getresponse()
    assert r.status == 200, r.read()
    return c, r


def attached_lines(api, ident):
    c, r = attached(api, ident)
    try:
        return [json.loads(line) for line in r.read().splitlines()]
    finally:
        c.close()


def test_who_attaches_gets_every_byte(api, session):
    """More than the daemon keeps, and no text; the command waits for its reader."""
    ident = launch(api, session, "sh", "-c", "head -c 9000000 /dev/zero | tr '\\0' '\\377'; cat; echo done >&2", attach=True)
    assert send(api, ident, data="in", end=True)[0] == 200
    assert not base.for_a_while(lambda: api.ok("GET", f"/v1/runs/{ident}")["state"] == "completed", 2), "nobody reads"
    lines = attached_lines(api, ident)
    join = lambda name: b"".join(base64.b64decode(line["base64"]) for line in lines if line["stream"] == name)
    assert join("stdout") == b"\377" * 9000000 + b"in" and join("stderr") == b"done\n"
    assert ended(api, ident)["state"] == "completed"


@pytest.mark.parametrize("how", [{}, {"keep": True}, {"output_limit": "280KiB"}], ids=["made", "kept", "limited"])
def test_a_slow_reader_makes_no_run_fail(api, session, how):
    """It has ended as soon as its command has, whenever somebody reads what it wrote; of that, nothing is lost."""
    size = 300 * 1024  # more than the daemon and its pipe take unread, and less than what is in front of them beside
    ident = launch(api, session, "sh", "-c", f"head -c {size} /dev/zero; exit 0", attach=True, **how)
    row = ended(api, ident)
    assert row and row["state"] == "completed" and row["result"]["exit_code"] == 0, row
    assert row["result"]["stdout_truncated"] == ("output_limit" in how)
    text = b"".join(base64.b64decode(line["base64"]) for line in attached_lines(api, ident) if line["stream"] == "stdout")
    assert text == bytes(280 * 1024 if "output_limit" in how else size)
    assert api.ok("GET", f"/v1/runs/{ident}") == row, "nobody says otherwise later"


@pytest.mark.parametrize("keep", [{}, {"keep": True}])
def test_what_is_attached_ends_with_its_reader(daemon, api, session, keep):
    ident = launch(api, session, "sh", "-c", "echo up; while :; do date >> /workspace/x; sleep 0.05; done", attach=True, **keep)
    c, r = attached(api, ident)
    assert b"base64" in r.readline()
    c.sock.shutdown(socket.SHUT_RDWR)
    c.close()
    r.close()
    row = ended(api, ident)
    assert row["state"] == "failed"
    size = lambda: daemon.cli("run", "--session", session, "--", "sh", "-c", "wc -c < /workspace/x; sleep 0.3; wc -c < /workspace/x", check=0).stdout.split()
    assert base.eventually(lambda: len(set(size())) == 1)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_netpawl_run_says_that_output_was_lost(words):
    """A daemon that has no room says so in the middle of the output."""
    here = base64.b64encode(b"the first of it\n").decode()
    result = {"exit_code": 0, "timed_out": False, "stdout_truncated": False, "stderr_truncated": False}
    answers = {"/v1/runs": {"run": 7}, "/v1/runs/7": {"run": 7, "state": "completed", "result": result},
               "/v1/runs/7/input": {"run": 7, "taken": 0}}
    got = []
    for lost in ((), ({"truncated": True},)):
        answers["/v1/runs/7/output"] = ({"stream": "stdout", "base64": here}, *lost)
        with StandIn(lambda path, query: answers.get(path, {})) as s:
            s.dir.chmod(0o755)
            s.socket.chmod(0o666)
            got.append(subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--", str(base.NETPAWL), "run", "--socket",
                                       str(s.socket), "--session", "a/b", *words, "--", "true"], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=60, env=base.env()))
    whole, half = got
    assert whole.returncode == half.returncode == 0 and "lost" not in whole.stderr, got
    assert half.stderr == whole.stderr + "netpawl: run: netpawld had no room for more output: the rest of it is lost\n"
    if words:
        cut = [(row["stdout"], row["stdout_truncated"], row["stderr_truncated"]) for row in (json.loads(p.stdout) for p in got)]
        assert cut == [("the first of it\n", False, False), ("the first of it\n", True, True)]
    else:
        assert whole.stdout == half.stdout == "the first of it\n"


def test_a_cancelled_netpawl_run_says_by_whom(daemon, api, session):
    p = subprocess.Popen([*daemon.world.enter(), str(base.NETPAWL), "run", "--class", "none", "--session", session, "--", "sh", "-c",
                          "echo up; sleep 1000"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert p.stdout.readline() == "up\n"
        ident = api.ok("GET", f"/v1/runs?session={session}")["runs"][0]["run"]
        api.ok("POST", f"/v1/runs/{ident}/cancel", {"reason": "enough"})
        err = p.communicate(timeout=120)[1]
        assert "cancelled by uid 0" in err and "enough" in err and "run_over" not in err, err
        assert p.returncode == 137 == api.ok("GET", f"/v1/runs/{ident}")["result"]["exit_code"]
    finally:
        base.reap(p)


def test_cancel(daemon, api, session):
    ident = launch(api, session, "sh", "-c", "setsid sh -c 'while :; do date >> /workspace/x; sleep 0.05; done' & echo up; sleep 1000")
    assert base.eventually(lambda: output(api, ident, 0)[0] == "up\n")
    row = api.ok("POST", f"/v1/runs/{ident}/cancel", {"reason": "the user went home"})
    assert row["state"] == "failed" and "cancelled by uid" in row["result"]["problem"] and "went home" in row["result"]["problem"]
    assert (row["result"]["exit_code"], row["result"]["killed_by"]) == (137, "cancel")
    assert base.eventually(lambda: not api.sandboxes(session))
    assert output(api, ident)[0] == "up\n"  # it ends
    assert api.ask("POST", f"/v1/runs/{ident}/cancel", {})[1]["error"] == "run_over"
    assert api.ask("POST", "/v1/runs/99999/cancel", {})[1]["error"] == "no_such_run"
    assert api.ok("GET", f"/v1/runs/{ident}") == row, "nobody says otherwise later"
    waits = launch(api, session, "true", cls="write")
    assert "cancelled" in daemon.cli("cancel", waits, "--reason", "late", check=0).stdout
    never = api.ok("GET", f"/v1/runs/{waits}")
    assert (never["state"], never["reason"], never["result"]) == ("rejected", "cancelled: late", None)
    assert daemon.cli("cancel", "x", check=2) and "run_over" in daemon.cli("cancel", ident, check=1).stderr


def test_a_refused_plan_is_on_record(api, session):
    """A run that had a sandbox failed; in a kept one it did not start."""
    row = ended(api, launch(api, session, "true", bind=["/etc/shadow:/data:ro"]))
    assert row["state"] == "failed" and row["result"]["exit_code"] == 125 and "does not permit /etc/shadow" in row["result"]["problem"], row
    row = ended(api, launch(api, session, "true", bind=["/etc/shadow:/data:ro"], keep=True))
    assert row["state"] == "rejected" and "does not permit /etc/shadow" in row["reason"], row


@pytest.mark.parametrize("keep", [False, True])
def test_a_workspace_that_cannot_be_had_is_the_reason(daemon, api, session, keep):
    """The sandbox is refused, before or after the run has started: the record says why, at once."""
    user, own = session.split("/")
    workspace = Path(api.ok("GET", "/v1/launch")["data_dir"]) / user
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / own).write_text("in its place")
    try:
        row = ended(api, launch(api, session, "true", **({"keep": True} if keep else {})))
        why = row["reason"] if keep else row["result"]["problem"]
        assert row["state"] == ("rejected" if keep else "failed") and "something else is in its place" in why, row
        assert keep or row["result"]["exit_code"] == 125
        assert base.eventually(lambda: not api.sandboxes(session))
        got = subprocess.run([*daemon.world.enter(), str(base.NETPAWL), "run", "--class", "none", *(["--keep"] if keep else []), "--session", session,
                              "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                             env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
        assert got.returncode in (2, 125) and "run_over" not in got.stderr, got
        assert not api.ok("GET", f"/v1/runs?session={session}&state=pending")["runs"]
    finally:
        (workspace / own).unlink()


@pytest.mark.parametrize("n", range(3))
def test_cancel_in_a_kept_sandbox(daemon, api, session, n):
    """What forks wildly and leaves its session dies whole, at any time of its life; its sibling does not notice."""
    sibling = launch(api, session, "sh", "-c", "echo up; read x; echo $x", keep=True, input=True, pids="150")
    assert base.eventually(lambda: output(api, sibling, 0)[0] == "up\n")
    wild = "import os, time\nfor i in range(10**6):\n try:\n  if os.fork() == 0:\n   os.setsid()\n   time.sleep(0.002)\n except OSError: time.sleep(0.001)"
    ident = launch(api, session, base.PYTHON, "-I", "-c", wild, keep=True)
    assert base.eventually(lambda: api.ok("GET", f"/v1/runs/{ident}")["state"] == "running")
    if n:  # else as early as can be
        assert base.eventually(lambda: len([p for g in base.cgroups_below(daemon.slice, f"run-{ident}-") for p in (g / "cgroup.threads").read_text().split()]) > 5 * n)
    row = api.ok("POST", f"/v1/runs/{ident}/cancel", {})
    assert row["state"] == "failed" and row["result"]["exit_code"] == 137
    assert base.eventually(lambda: not base.cgroups_below(daemon.slice, f"run-{ident}-"))
    box = api.sandboxes(session)[0]["sandbox"]
    left = lambda: (daemon.slice / box / "cgroup.threads").read_text().split()
    assert base.eventually(lambda: len(left()) == 1), "process 1: nothing got out of its group"
    assert send(api, sibling, data="here\n")[0] == 200
    assert output(api, sibling)[0] == "up\nhere\n" and ended(api, sibling)["result"]["exit_code"] == 0
