# SPDX-License-Identifier: MIT
"""netpawl, the command: words, exit codes, streams and signals, as a person or a script meets them."""
import json
import os
import pty
import signal
import subprocess
import time
from unittest.mock import ANY

import pytest

from lib import base
from lib.box import new_session
from lib.world import FAR

SUBCOMMANDS = ["run", "escalate", "sessions", "show", "attach", "end", "events", "why", "notices", "policy", "status", "doctor",
               "path", "cp", "env", "remove", "runs", "approve", "reject", "forward"]


def start(daemon, *words, **kw):
    return base.popen([*daemon.world.enter(), base.NETPAWL, *words],
                      env=base.env(NETPAWL_SOCKET=str(daemon.socket)), **kw)


# -- help and usage ------------------------------------------------------------------

def test_help(daemon):
    p = daemon.cli("--help", check=0)
    for word in SUBCOMMANDS:
        assert word in p.stdout
    assert daemon.cli("--version", check=0).stdout.startswith("netpawl ")


@pytest.mark.parametrize("sub", SUBCOMMANDS)
def test_help_of_each(daemon, sub):
    p = daemon.cli(sub, "--help", check=0)
    assert p.stdout.startswith(f"Usage: netpawl {sub}") and f"netpawl {sub}" in p.stdout.split("\nExample")[1]
    assert ("--json " in p.stdout) == (sub not in NO_JSON) and "\nExit codes: " in p.stdout and "2 wrong usage" in p.stdout


NO_JSON = {"ask": "netpawl questions --follow --json", "top": "netpawl events --follow --json", "console": "docs/api.md",
           "completion": "a shell reads", "docker": "the engine prints", "podman": "the engine prints"}


@pytest.mark.parametrize("sub", NO_JSON)
@pytest.mark.parametrize("first", [True, False])
def test_what_has_no_json_says_so(daemon, sub, first):
    words = {"completion": ["bash"], "docker": ["--session", "a/b", "run"], "podman": ["--session", "a/b", "run"]}.get(sub, [])
    p = daemon.cli(*(["--json", sub] if first else [sub, "--json"]), *words, check=2)
    assert "it has no --json" in p.stderr and NO_JSON[sub] in p.stderr and not p.stdout


def test_all_others_that_only_look_print_json(daemon, api, tmp_path):
    """Each command that changes nothing; those that do something are tried where they are tested."""
    api.create("json/all", "INTERNAL")
    policy = tmp_path / "p.yaml"
    policy.write_text("version: 1\nrules:\n  - allow: a.example\n")
    (tmp_path / "p.case").write_text("at INTERNAL\nGET https://a.example/ -> allow\n")
    for words in (["sessions"], ["show", "json/all"], ["runs"], ["questions"], ["credentials"], ["events"],
                  ["har"], ["why", "json/all"], ["notices", "json/all"], ["status"], ["debug"], ["doctor"], ["policy", "check", str(policy)],
                  ["policy", "test", str(policy), str(tmp_path / "p.case")], ["policy", "explain", str(policy), "--url", "https://a.example/"], ["policy", "show"],
                  ["policy", "lists"], ["policy", "schema"]):
        p = daemon.cli(*words, "--json")
        assert p.stdout.strip(), (words, p.stderr)
        for one in p.stdout.splitlines() if words == ["events"] else [p.stdout]:
            assert isinstance(json.loads(one), (dict, list)), words


@pytest.mark.parametrize("words", [[], ["nonsense"], ["--nonsense"], ["run"], ["run", "--"], ["run", "--nonsense", "--", "true"],
                                   ["escalate"], ["escalate", "a/b"], ["escalate", "a/b", "SECRET", "more"], ["show"],
                                   ["show", "a/b", "c/d"], ["end"], ["attach", "a/b"], ["attach", "--cgroup", "/x"],
                                   ["events", "--limit", "x"], ["why"], ["why", "a/b", "c/d"], ["why", "a/b", "--last", "x"], ["notices"],
                                   ["notices", "a/b", "--all", "--reader", "x"], ["status", "stray"], ["sessions", "stray"],
                                   ["run", "--session"], ["run", "--class", "foo", "--", "true"], ["run", "--level", "FOO", "--", "true"],
                                   ["run", "--session", "foo", "--", "true"], ["run", "--user", "12x", "--", "true"],
                                   ["run", "--memory", "much", "--", "true"], ["run", "--isolation", "some", "--", "true"],
                                   ["run", "--bind", "x", "--", "true"], ["escalate", "a/b", "FOO"], ["escalate", "foo", "SECRET"],
                                   ["why", "a/b", "--last", "0"], ["why", "a/b", "--last", "51"], ["why", "foo"], ["show", "foo"],
                                   ["show", "a/b/c"], ["end", "foo"], ["attach", "foo", "--cgroup", "/"], ["notices", "foo"],
                                   ["env", "foo", "--dir", "/tmp"], ["env", "a/b", "--dir", "x"], ["env", "a/b"], ["path", "foo", "/x"],
                                   ["path", "a/b", "x"], ["forward", "foo", "80"], ["forward", "a/b", "0"], ["forward", "a/b", "http"],
                                   ["run", "--", ""], ["attach", "a/b", "--pid", "abc"], ["attach", "a/b", "--pid", "-1"],
                                   ["attach", "a/b", "--pid", "0"], ["attach", "a/b", "--pid", "1x"], ["attach", "a/b", "--pid", ""],
                                   ["runs", "foo"], ["runs", "--state", "odd"], ["approve", "x"], ["reject", "7"], ["remove"],
                                   ["cp", "x", "y"], ["cp", "a/b:x", "c/d:y"], ["events", "--session", "foo"],
                                   ["events", "--reason", "odd"], ["events", "--limit", "1001"], ["policy"], ["policy", "odd"],
                                   ["policy", "check"], ["policy", "explain", "x.yaml"], ["policy", "test", "x.yaml"], ["policy", "show", "x"],
                                   ["doctor", "stray"], ["--socket", "", "status"], ["status", "--socket="], ["policy", "check", ""],
                                   ["policy", "test", ""], ["policy", "lists", ""], ["policy", "suggest", ""], ["policy", "save", ""],
                                   ["policy", "explain", "", "--url", "http://x.test/"]], ids=" ".join)
def test_wrong_usage_is_2(daemon, words):
    p = daemon.cli(*words)
    assert p.returncode == 2, p
    assert p.stderr.strip() and not p.stdout


@pytest.mark.parametrize("words", [["status"], ["sessions"], ["show", "a/b"], ["escalate", "a/b", "SECRET"], ["end", "a/b"],
                                   ["events"], ["why", "a/b"], ["notices", "a/b"], ["notices", "a/b", "--follow"], ["attach", "a/b", "--cgroup", str(base.cgroup_mount())]])
def test_no_daemon_is_3(daemon, words):
    p = daemon.cli("--socket", "/nonexistent/control.sock", *words)
    assert p.returncode == 3 and "no_daemon" in p.stderr and "start it" in p.stderr, p


def test_run_without_a_daemon_is_125(daemon):
    p = daemon.cli("--socket", "/nonexistent/control.sock", "run", "--", "true")
    assert p.returncode == 125 and p.stderr.count("no_daemon") == 1, p


def test_socket_option_wins_and_goes_anywhere(daemon):
    env = {"NETPAWL_SOCKET": "/nonexistent"}
    e = base.env(**env)
    for words in (["--socket", daemon.socket, "status"], ["status", "--socket", daemon.socket], [f"--socket={daemon.socket}", "status"]):
        p = subprocess.run([*daemon.world.enter(), str(base.NETPAWL), *map(str, words)], capture_output=True, text=True,
                           env=e, timeout=180)
        assert p.returncode == 0, p


# -- the subcommands ------------------------------------------------------------------

def test_status(daemon):
    assert str(daemon.process.pid) in daemon.cli("status", check=0).stdout
    assert json.loads(daemon.cli("status", "--json", check=0).stdout)["status"] == "ok"
    assert json.loads(daemon.cli("--json", "status", check=0).stdout)["status"] == "ok"


def test_escalate_show_sessions_end(daemon, api):
    name = new_session("cli")
    daemon.cli("escalate", name, "CONFIDENTIAL", check=1)
    p = daemon.cli("escalate", name, "CONFIDENTIAL", "--create", "--dataset", "a b.csv", "--reason", "some reason", check=0)
    assert "made, and raised to CONFIDENTIAL, mode PROXIED" in p.stdout
    p = daemon.cli("escalate", name, "SECRET", "--json", check=0)
    answer = json.loads(p.stdout)
    assert (answer["session"], answer["level"], answer["mode"], answer["raised"]) == (name, "SECRET", "NONE", True)
    p = daemon.cli("escalate", name, "PUBLIC", check=0)
    assert "SECRET" in p.stdout and "NONE" in p.stdout
    p = daemon.cli("show", name, check=0)
    for word in (name, "SECRET", "NONE", "a b.csv", "some reason"):
        assert word in p.stdout
    shown = json.loads(daemon.cli("show", name, "--json", check=0).stdout)
    assert shown["datasets"][0]["name"] == "a b.csv"
    assert name in daemon.cli("sessions", check=0).stdout
    listed = json.loads(daemon.cli("sessions", "--json", check=0).stdout)["sessions"]
    assert name in [s["session"] for s in listed]
    daemon.cli("end", name, check=0)
    assert name not in daemon.cli("sessions", check=0).stdout
    assert name in daemon.cli("sessions", "--all", check=0).stdout


def test_a_slip_of_the_pen_makes_no_session(daemon, api):
    name = new_session("typo")
    api.create(name)
    for words in (["escalate", name + "x", "SECRET"], ["escalate", name + "x", "SECRET", "--existing"], ["show", name + "x"],
                  ["end", name + "x"], ["forget", name + "x"], ["why", name + "x"], ["debug", name + "x"], ["runs", name + "x"],
                  ["har", "--session", name + "x"], ["events", "--session", name + "x"], ["env", name + "x", "--dir", "/nowhere"]):
        p = daemon.cli(*words, check=1)
        assert p.stderr == f"netpawl: {name}x: there is no session of that name (no_such_session)\nnetpawl: did you mean {name}?\n"
    assert api.ask("GET", f"/v1/sessions/{name}x")[0] == 404
    p = daemon.cli("escalate", "nobody/like-this", "SECRET", check=1)
    assert "did you mean" not in p.stderr
    p = daemon.cli("escalate", name, "SECRET", "--create", check=0)  # it is there: raised, and not made
    assert f"{name}: raised to SECRET" in p.stdout
    daemon.cli("escalate", name, "SECRET", "--create", "--existing", check=2)


@pytest.mark.parametrize("words,meant", [(["evnts"], "events"), (["polciy"], "policy"), (["policy", "chek"], "check"), (["explain"], "policy explain"), (["runs", "--sesion", "a/b"], "--session"),
                                         (["run", "--memroy=1GiB", "--", "true"], "--memory"), (["--jsn", "status"], "--json"), (["xyzzy"], None), (["runs", "--xyzzy"], None)])
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(daemon, words, meant):
    p = daemon.cli(*words, check=2)
    assert f"'{words[-1] if len(words) < 3 else words[1]}'" in p.stderr or meant == "--json", p.stderr
    assert (f"did you mean {meant}?" in p.stderr) if meant else "did you mean" not in p.stderr


def test_runs_of_a_session(daemon, api):
    mine, other = new_session("runs"), new_session("runs")
    for name in (mine, other):
        api.ok("POST", "/v1/runs", {"session": name, "class": "write", "command": ["true"], "options": {}})
    for words in ([mine], ["--session", mine]):
        assert {r["session"] for r in json.loads(daemon.cli("runs", "--json", *words, check=0).stdout)["runs"]} == {mine}
    idle = new_session("runs")
    daemon.cli("runs", idle, check=1)
    api.create(idle)
    assert daemon.cli("runs", idle, check=0).stdout == "no runs\n"
    assert json.loads(daemon.cli("har", "--session", idle, check=0).stdout)["log"]["entries"] == []
    daemon.cli("runs", mine, "--session", mine, check=2)
    daemon.cli("runs", "--session", "nonsense", check=2)
    for name in (mine, other):
        daemon.cli("end", name, check=0)


def test_the_api_makes_a_session_unless_told_otherwise(api):
    name = new_session("typo")
    status, answer = api.ask("POST", f"/v1/sessions/{name}/datasets", {"level": "SECRET", "create": False})
    assert (status, answer["error"]) == (404, "no_such_session")
    assert api.ask("GET", f"/v1/sessions/{name}")[0] == 404
    answer = api.escalate(name, "SECRET")
    assert answer["created"] and answer["raised"]
    status, answer = api.ask("POST", f"/v1/sessions/{name}/datasets", {"level": "SECRET", "create": False})
    assert status == 200 and not answer["created"] and not answer["raised"]


def test_refusals_of_the_daemon_are_1(daemon):
    p = daemon.cli("show", "no/body", check=1)
    assert "no/body" in p.stderr and "(no_such_session)" in p.stderr and p.stderr.startswith("netpawl: ")
    p = daemon.cli("escalate", "a/..", "SECRET", check=1)
    assert "(bad_name)" in p.stderr
    p = daemon.cli("attach", "a/b", "--cgroup", "/etc", check=1)
    assert "bad_cgroup" in p.stderr
    p = daemon.cli("end", "no/body", "--json", check=1)
    assert "no_such_session" in p.stderr + p.stdout


def test_attach(world, daemon, api):
    folder = base.cgroup_make("cli")
    agent = world.agent(world.host, cgroup=folder)
    name = new_session("attach")
    try:
        api.create(name, "SECRET")
        p = daemon.cli("attach", name, "--cgroup", folder, "--json", check=0)
        assert json.loads(p.stdout)["mode"] == "NONE"
        assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert str(folder) in daemon.cli("show", name, check=0).stdout
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        api.end(name)
        base.cgroup_destroy(folder)


def test_events(daemon, api):
    name = new_session("events")
    for i in range(5):
        api.escalate(name, "PUBLIC", dataset=f"d{i}")
    p = daemon.cli("events", "--session", name, check=0)
    assert len(p.stdout.splitlines()) >= 5
    p = daemon.cli("events", "--session", name, "--limit", "2", "--json", check=0)
    assert len([json.loads(l) for l in p.stdout.splitlines()]) == 2
    p = daemon.cli("events", "--session", name, "--reason", "session_created", "--json", check=0)
    assert [json.loads(l)["reason"] for l in p.stdout.splitlines()] == ["session_created"]


def test_events_say_where_and_by_whom(daemon, api):
    """Text has what --json has: address, port, sandbox. A session that is not there is no empty list."""
    name = new_session("events")
    daemon.cli("run", "--session", name, "--level", "SECRET", "--", base.PYTHON, "-c",
               f"import socket\nsocket.socket().connect_ex(('{FAR[4]}', 9000))", check=0)
    assert api.wait_events(len, session=name, reason="mode_none")
    [event] = [json.loads(l) for l in daemon.cli("events", "--session", name, "--reason", "mode_none", "--json", check=0).stdout.splitlines()]
    [line] = daemon.cli("events", "--session", name, "--reason", "mode_none", check=0).stdout.splitlines()
    assert f" tcp {FAR[4]}:9000 " in line and f" sandbox={event['sandbox']} " in line
    p = daemon.cli("events", "--session", "no/such", check=1)
    assert "no/such" in p.stderr and "(no_such_session)" in p.stderr
    assert daemon.cli("events", "--session", name, "--reason", "lost", check=0).stdout == ""


def test_show_counts(daemon, api):
    name = new_session("counts")
    p = start(daemon, "run", "--session", name, "--level", "SECRET", "--", base.PYTHON, "-c",
              f"import socket\nfor i in range(3): socket.socket().connect_ex(('{FAR[4]}', 9000))\nprint('ready', flush=True)\ninput()",
              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"ready\n"
        heading, row = daemon.cli("show", name, check=0).stdout.splitlines()[-2:]
        assert heading.split()[:6] == ["SANDBOX", "MODE", "KIND", "CPU", "MEMORY", "REQUESTS"] and "SENT" in heading
        assert row[heading.index("REFUSED"):].split()[0] == "3" and row[heading.index("REQUESTS"):].split()[0] == "0"
    finally:
        p.stdin.close()
        base.reap(p)


@pytest.mark.parametrize("option", ["--data-dir", "--state-dir", "--run-dir", "--pin-dir"])
def test_the_daemons_directories_are_absolute(option):
    p = base.sh(base.NETPAWLD, option, "data/here", check=False)
    assert p.returncode != 0 and option in p.stderr and "absolute path" in p.stderr and "'data/here'" in p.stderr


# -- run: what comes out ---------------------------------------------------------------

@pytest.mark.parametrize("script,code", [("exit 0", 0), ("exit 7", 7), ("exit 125", 125), ("exit 255", 255),
                                         ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_exit_codes(daemon, script, code):
    assert daemon.cli("run", "--", "sh", "-c", script).returncode == code


def test_not_found_and_not_executable(daemon):
    p = daemon.cli("run", "--", "no-such-program-here")
    assert p.returncode == 127 and "no-such-program-here" in p.stderr
    p = daemon.cli("run", "--", "/etc/passwd")
    assert p.returncode == 126 and "/etc/passwd" in p.stderr
    assert daemon.cli("run", "--", "/tmp").returncode == 126


def test_netpawls_own_failures_are_125(daemon):
    assert daemon.cli("run", "--session", "../x", "--", "true").returncode == 125
    assert daemon.cli("run", "--user", "no-such-user", "--", "true").returncode == 125
    p = daemon.cli("run", "--user", "1234567", "--", "true")
    assert p.returncode == 125 and "--user 1234567:1234567" in p.stderr and "no user of this host has that number" in p.stderr
    assert daemon.cli("run", "--user", "1234567:1234567", "--", "id", "-u", check=0).stdout == "1234567\n"


def test_streams(daemon):
    data = os.urandom(300000)
    p = start(daemon, "run", "--", "sh", "-c", "cat; echo error >&2", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
              stderr=subprocess.PIPE)
    out, err = p.communicate(data, timeout=120)
    base.reap(p)
    assert out == data and err == b"error\n" and p.returncode == 0


def test_streams_through_sockets(daemon):
    """stdin and stdout are sockets, as under many supervisors: bytes are carried, all of them, both ways."""
    import socket
    import threading
    a, b = socket.socketpair()
    data = os.urandom(300000)
    p = start(daemon, "run", "--", "cat", stdin=b, stdout=b, stderr=subprocess.PIPE)
    b.close()

    def feed():
        a.sendall(data)
        a.shutdown(socket.SHUT_WR)

    t = threading.Thread(target=feed)
    t.start()
    got = b""
    a.settimeout(120)
    while chunk := a.recv(65536):
        got += chunk
    t.join(120)
    a.close()
    assert p.wait(120) == 0
    base.reap(p)
    assert got == data


REOPEN = "for f in /dev/stdout /proc/self/fd/1 /dev/fd/1; do echo $f > $f; done; echo e > /dev/stderr; echo f > /proc/self/fd/2"
REOPENED = b"/dev/stdout\n/proc/self/fd/1\n/dev/fd/1\n"


@pytest.mark.parametrize("options", [[], ["--keep"], ["--user", "root"], ["--user", "nobody"], ["--output-limit", "1MiB"],
                                     ["--isolation", "none"]], ids=lambda o: o[-1] if o else "plain")
def test_streams_by_name(daemon, options):
    """A program may open its output by its name, /dev/stdout, whoever made the caller's pipe."""
    p = start(daemon, "run", "--session", new_session("names"), *options, "--", "sh", "-c", REOPEN, stdin=subprocess.DEVNULL,
              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=120)
    base.reap(p)
    assert (p.returncode, out) == (0, REOPENED) and err.endswith(b"e\nf\n"), (out, err)


def test_streams_by_name_as_json_and_to_a_file(daemon):
    got = json.loads(daemon.cli("run", "--json", "--", "sh", "-c", REOPEN, check=0).stdout)
    assert (got["stdout"].encode(), got["stderr"]) == (REOPENED, "e\nf\n")
    folder = base.tempdir("streams")
    try:
        file = folder / "out"
        file.touch(0o600)
        before = file.stat()
        with file.open("ab") as to:
            p = start(daemon, "run", "--", "sh", "-c", REOPEN, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.PIPE)
            assert p.communicate(timeout=120)[1] == b"e\nf\n"
        base.reap(p)
        after = file.stat()
        assert p.returncode == 0 and file.read_bytes() == REOPENED
        assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    finally:
        base.drop_tempdir(folder)


def test_the_callers_pipe_stays_his(daemon):
    """And what it was: netpawl gives away pipes of its own only."""
    r, w = os.pipe()
    p = start(daemon, "run", "--", "sh", "-c", "echo x > /dev/stdout", stdin=subprocess.DEVNULL, stdout=w)
    try:
        assert p.wait(120) == 0 and os.read(r, 100) == b"x\n"
        st = os.fstat(w)
        assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (0, 0, 0o600)
    finally:
        base.reap(p)
        os.close(r)
        os.close(w)


def test_a_reader_that_waits_keeps_netpawl_from_nothing(daemon, api):
    """The pipe is full and nobody reads: the time is over all the same. What was carried is whole."""
    session = new_session("slow")
    p = start(daemon, "run", "--session", session, "--timeout", "1s", "--", "sh", "-c", "echo begin; exec yes", stdin=subprocess.DEVNULL,
              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert p.stdout.read(6) == b"begin\n"
        assert base.eventually(lambda: not api.sandboxes(session), 20)
        out, err = p.communicate(timeout=120)
        assert p.returncode == 124 and b"the time was over" in err
        assert out.startswith(b"y\ny\n") and out.replace(b"y\n", b"") in (b"", b"y")
    finally:
        base.reap(p)


def test_a_reader_that_goes_ends_the_command(daemon):
    p = start(daemon, "run", "--", "yes", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert p.stdout.read(4) == b"y\ny\n"
        p.stdout.close()
        assert p.wait(120) == 128 + signal.SIGPIPE
    finally:
        base.reap(p)


def test_interactive_input(daemon):
    p = start(daemon, "run", "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for word in (b"one\n", b"two\n"):
            p.stdin.write(word)
            p.stdin.flush()
            assert p.stdout.readline() == word
        p.stdin.close()
        assert p.wait(120) == 0
    finally:
        base.reap(p)


def test_terminal(daemon):
    """A terminal is passed on: the command sees one, and its output arrives."""
    master, slave = pty.openpty()
    p = start(daemon, "run", "--", "sh", "-c", "test -t 0 && test -t 1 && echo is-a-tty", stdin=slave, stdout=slave,
              stderr=slave)
    os.close(slave)
    try:
        got = b""
        end = time.monotonic() + 120
        while b"is-a-tty" not in got and time.monotonic() < end:
            try:
                got += os.read(master, 1000)
            except OSError:
                break
        assert b"is-a-tty" in got
        assert p.wait(120) == 0
    finally:
        os.close(master)
        base.reap(p)


def test_closed_standard_streams(daemon):
    """Started with 0, 1 and 2 closed, as some daemons start things: no descriptor of ours takes their place."""
    p = subprocess.run(["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *daemon.world.enter(), str(base.NETPAWL), "run", "--",
                        "true"], env=base.env(NETPAWL_SOCKET=str(daemon.socket)), timeout=180)
    assert p.returncode in (0, 125)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_signals_are_passed_on(daemon, sig):
    p = start(daemon, "run", "--", "sh", "-c", f"trap 'echo got; exit 9' {sig.name[3:]}; echo up; while :; do sleep 0.1; done",
              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert p.stdout.readline() == b"up\n"
        p.send_signal(sig)
        assert p.stdout.readline() == b"got\n"
        assert p.wait(120) == 9
    finally:
        base.reap(p)


def test_signal_that_kills_the_command(daemon):
    p = start(daemon, "run", "--", "sh", "-c", "echo up; exec sleep 600", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"up\n"
        p.send_signal(signal.SIGTERM)
        assert p.wait(120) == 143
    finally:
        base.reap(p)


# -- run: what is inside -----------------------------------------------------------------

def test_user_and_environment(daemon):
    p = daemon.cli("run", "--user", "nobody", "--", "sh", "-c", "id -u; id -g; id -G; pwd", check=0)
    uid, gid, groups, _ = p.stdout.splitlines()
    assert uid == "65534" and gid == "65534" and "0" not in groups.split()
    p = daemon.cli("run", "--user", "root", "--env", "WORD", "--", "sh", "-c", "id -u; echo $WORD", env={"WORD": "through"}, check=0)
    assert p.stdout.split() == ["0", "through"]


def test_a_plain_environment(daemon):
    """What is not named stays with the caller."""
    have = {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "WORD": "stays", "TMPDIR": "/nowhere", "XDG_RUNTIME_DIR": "/nowhere"}

    def names(*options):
        text = daemon.cli("run", *options, "--", "env", "-0", env=have, check=0).stdout
        return dict(word.split("=", 1) for word in text.split("\0") if word)
    plain = names()
    ours = {name for name in plain if name not in ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "LOGNAME")}
    assert {"PATH", "HOME", "LANG", "TERM", "TZ", "USER", "LOGNAME", "NETPAWL_SESSION", "NETPAWL_NOTICES"} <= set(plain)
    assert all("NETPAWL" in name or "/run/netpawl" in plain[name] or name in ("PWD", "SHLVL", "_") for name in ours), plain
    assert names("--env", "WORD=x=y", "--env", "EMPTY=", "--env", "HOME=/tmp") == {**plain, "WORD": "x=y", "EMPTY": "", "HOME": "/tmp",
                                                                                   "NETPAWL_SESSION": ANY}
    whole = names("--env-all")
    assert whole["WORD"] == "stays" and whole["LC_ALL"] and "TMPDIR" not in whole and "NETPAWL_SOCKET" not in whole
    assert names("--env", "TMPDIR")["TMPDIR"] == "/nowhere", "who names it means it"


def test_an_environment_from_a_file(daemon, tmp_path):
    file = tmp_path / "agent.env"
    file.write_text("# a comment\nA=1\n\nB=two words\n")
    assert daemon.cli("run", "--env-file", file, "--env", "A=2", "--", "sh", "-c", "echo $A $B", check=0).stdout == "2 two words\n"
    file.write_bytes(b"A=1\nmore\0B=#\0")
    assert daemon.cli("run", "--env-file", file, "--", "sh", "-c", 'echo "$A" "$B"', check=0).stdout == "1\nmore #\n"
    file.write_text("")
    daemon.cli("run", "--env-file", file, "--", "true", check=0)


@pytest.mark.parametrize("words,told", [
    (["--env", "NO_SUCH_WORD"], "'NO_SUCH_WORD': the caller has no such variable"),
    (["--env", "A B=x"], "--env 'A B': there is a blank in the name"), (["--env", "=x"], "--env '': it is written NAME or NAME=VALUE"),
    (["--env", ""], "--env '': it is written"), (["--env", "NETPAWL_SESSION=other/one"], "netpawl's own"), (["--env-file", "/nonexistent"], "/nonexistent"),
    (["--env-file", "/etc/os-release", "--env-file", "/etc/hostname"], "NAME=VALUE"),
    ([w for i in range(300) for w in ("--env", f"A{i}=1")], "--env")])
def test_an_environment_that_is_wrong(daemon, words, told):
    p = daemon.cli("run", *words, "--", "true", check=2)
    assert told in p.stderr and "Traceback" not in p.stderr


def test_a_secret_that_is_wrong_is_not_repeated(daemon):
    assert "hunter2" not in daemon.cli("run", "--env", "NETPAWL_X=hunter2", "--", "true", check=2).stderr


def test_working_directory(daemon):
    p = subprocess.run([*daemon.world.enter(), str(base.NETPAWL), "run", "--", "pwd"], cwd="/usr/share", text=True,
                       capture_output=True, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), timeout=180)
    assert p.stdout == "/usr/share\n"


def test_named_session_stays_and_unnamed_one_ends(daemon, api):
    name = new_session("named")
    daemon.cli("run", "--session", name, "--level", "CONFIDENTIAL", "--", "true", check=0)
    assert api.show(name)["ended"] is None and api.show(name)["level"] == "CONFIDENTIAL"
    session = daemon.cli("run", "--", "sh", "-c", "echo $NETPAWL_SESSION", check=0).stdout.strip()
    assert session.startswith("tester/temporary-")
    api.wait_events(lambda g: any(e["reason"] == "session_ended" for e in g), session=session)
    assert all(s["ended"] for s in api.sessions(ended=True) if s["session"] == session), "it is forgotten within a second"


def test_sandbox_is_gone_after_the_run(daemon, api):
    name = new_session("gone")
    daemon.cli("run", "--session", name, "--", "true", check=0)
    assert base.eventually(lambda: not api.sandboxes(name), 10)
    assert base.eventually(lambda: not list(daemon.slice.glob("*gone*")), 10)


def test_level_raises_the_session_and_never_lowers(daemon, api):
    name = new_session("level")
    daemon.cli("run", "--session", name, "--level", "SECRET", "--", "true", check=0)
    p = daemon.cli("run", "--session", name, "--level", "PUBLIC", "--", base.PYTHON, "-c",
                   f"import socket\nsocket.create_connection(('{FAR[4]}', 9000), 2)")
    assert p.returncode == 1 and "ConnectionRefusedError" in p.stderr
    assert api.show(name)["level"] == "SECRET"


def test_command_with_options_of_its_own(daemon):
    p = daemon.cli("run", "--", "echo", "--json", "--help", "-x", check=0)
    assert p.stdout == "--json --help -x\n"


TRUNCATE = """
import fcntl, os
for fd in (1, 2):
    for attempt in (lambda: os.ftruncate(fd, 0), lambda: os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC),
                    lambda: fcntl.fcntl(fd, fcntl.F_SETFL, 0), lambda: os.lseek(fd, 0, 0)):
        try:
            attempt()
        except OSError:
            pass
os.write(1, b"out")
os.write(2, b"err")
"""


@pytest.mark.parametrize("isolation", ["full", "none"])
def test_a_log_that_is_appended_to_is_not_truncated(daemon, isolation):
    """netpawl run >> log: O_APPEND is a flag of the descriptor, which who holds it may clear."""
    folder = base.tempdir("log")
    try:
        def logged(argv):
            (folder / "out").write_text("before\n")
            (folder / "err").write_text("before\n")
            with open(folder / "out", "a") as out, open(folder / "err", "a") as err:
                assert subprocess.run(argv, stdout=out, stderr=err, timeout=180, stdin=subprocess.DEVNULL,
                                      env=base.env(NETPAWL_SOCKET=str(daemon.socket))).returncode == 0
            return (folder / "out").read_text(), (folder / "err").read_text()

        command = [base.PYTHON, "-I", "-c", TRUNCATE]
        assert logged(command) == ("out", "err"), "the control"
        run = [*daemon.world.enter(), str(base.NETPAWL), "run", "--user", "root", "--isolation", isolation, "--"]
        out, err = logged(run + command)
        assert (out, err[:7], err[-3:]) == ("before\nout", "before\n", "err")
    finally:
        base.drop_tempdir(folder)


def test_new_files_appear_on_the_host(daemon):
    """What is bound is the host's own."""
    folder = base.tempdir("files")
    try:
        folder.chmod(0o777)
        daemon.cli("run", "--user", "root", *base.shown(), "--", "sh", "-c", f"echo made > {folder}/made", check=0)
        assert (folder / "made").read_text() == "made\n"
    finally:
        base.drop_tempdir(folder)


def test_common_programs_work_inside(daemon):
    """Nothing that an agent does every day is in the way of the filter: compilers, pipes, threads, temp files, git."""
    folder = base.tempdir("work")
    folder.chmod(0o777)
    try:
        script = f"""set -e; cd {folder}
echo 'int main(void) {{ return 0; }}' > a.c; gcc -o a a.c; ./a
{base.PYTHON} -c 'import threading, subprocess, tempfile, multiprocessing as m
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
subprocess.run(["true"], check=True); tempfile.mkstemp(dir="{folder}")
p = m.Pool(2); print(sum(p.map(abs, [-1, -2]))); p.close(); p.join()
import socket; print(socket.getaddrinfo("localhost", 80)[0][4][0])'
ls /proc/self/fd > /dev/null; sleep 0.01; date > /dev/null; df / > /dev/null; ps > /dev/null || true"""
        for user in ("root", "nobody"):
            p = daemon.cli("run", *base.shown(), "--user", user, "--level", "SECRET", "--", "sh", "-c", script)
            assert p.returncode == 0 and "thread" in p.stdout and "3" in p.stdout, p
            for f in folder.iterdir():
                f.unlink()
    finally:
        base.drop_tempdir(folder)


def test_run_from_a_foreign_network_namespace(world, daemon):
    """A sandbox whose packets never pass the daemon's devices cannot be kept: it is refused, not faked."""
    p = subprocess.run([*world.enter(world.far), str(base.NETPAWL), "run", "--level", "SECRET", "--", "true"], text=True,
                       capture_output=True, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), timeout=180)
    assert p.returncode == 125 and "foreign_netns" in p.stderr, p


def test_an_ordinary_user_cannot_run(world, daemon):
    p = subprocess.run([*world.enter(), "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--",
                        str(base.NETPAWL), "run", "--", "true"], text=True, capture_output=True,
                       env=base.env(NETPAWL_SOCKET=str(daemon.socket)), timeout=180)
    assert p.returncode in (125,) and p.stderr, p


def test_texts_reach_the_terminal_as_text(daemon, api):
    """Dataset names are somebody else's words: letters of any script are, what turns a terminal around is not."""
    name = new_session("esc")
    for bad in ("\x1b[31m", "a\u202eb", "a\nb"):
        p = daemon.cli("escalate", name, "SECRET", "--dataset", bad, check=1)
        assert "\x1b" not in p.stderr and "\u202e" not in p.stderr
    api.escalate(name, "SECRET", dataset="caf\u00e9 \u6587")
    assert "caf\u00e9 \u6587" in daemon.cli("show", name, check=0).stdout
