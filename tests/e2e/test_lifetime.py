# SPDX-License-Identifier: MIT
"""How long sessions, their levels and their workspaces last."""
import contextlib
import json
import pathlib
import sqlite3
import subprocess
import tarfile

import pytest
from lib import base
from lib.box import new_session
from lib.store import old_store
from lib.world import FAR

CLI_USER = "alice@example.org"


def names(api, ended=True):
    return {s["session"] for s in api.sessions(ended=ended)}


def policy_of(daemon, text):
    daemon.policy.write_text("version: 1\n" + base.PERMITS + text)
    return daemon


def fill(daemon, n, ended=True, level=0):
    """n sessions straight into the record of a daemon that does not run."""
    db = sqlite3.connect(daemon.state_dir / "sessions.db")
    db.executescript(f"""PRAGMA synchronous = OFF; BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n})
        INSERT INTO sessions (name, level, mode, generation, created_us, used_us, ended_us)
        SELECT 'filled/' || printf('%06d', i), {level}, {1 + level}, 1, i, i, {'i' if ended else 'NULL'} FROM n; COMMIT""")
    db.close()


# -- anonymous runs ---------------------------------------------------------------------

@pytest.mark.parametrize("more", [[], ["--level", "SECRET"], ["--class", "read_only"], ["--isolation", "none"]])
def test_an_anonymous_run_leaves_no_session(daemon, api, more):
    before, remembered = names(api), api.health()["levels_remembered"]
    p = daemon.cli("run", *more, "--json", "--", "true", check=0)
    session = json.loads(p.stdout)["session"]
    assert base.eventually(lambda: session not in names(api)), "the session is still there"
    assert names(api) == before and api.health()["levels_remembered"] == remembered
    assert api.ask("GET", f"/v1/sessions/{session}")[0] == 404
    # the control: a run with a name leaves one
    name = new_session("named")
    daemon.cli("run", "--session", name, "--", "true", check=0)
    assert name in names(api)


def test_an_anonymous_run_whose_cli_is_killed(make_daemon):
    d = make_daemon().start()
    p = base.popen([*d.world.enter(), str(base.NETPAWL), "run", "--", "sleep", "300"], env=base.env(NETPAWL_SOCKET=str(d.socket)),
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        session = base.eventually(lambda: next(iter(names(d.api)), None))
        assert base.eventually(lambda: any(base.cgroup_pids(pathlib.Path(s["cgroup"])) for s in d.api.sandboxes(session))), "nothing runs"
        assert d.api.show(session)["session"] == session
    finally:
        p.kill()
        p.wait()
    assert base.eventually(lambda: not d.api.sandboxes(session), timeout=30), "the sandbox is still there"
    d.stop()
    db = sqlite3.connect(d.state_dir / "sessions.db")
    db.execute("UPDATE sessions SET used_us = 1")  # a minute ago
    db.commit()
    db.close()
    d.start()
    assert base.eventually(lambda: not names(d.api)), "the session is still there"


def test_a_temporary_session_has_no_workspace(api):
    name = new_session("temp").replace("/", "/temporary-")
    made = api.ok("POST", "/v1/sandboxes", {"session": name, "temporary": True})
    assert made["workspace"] is None
    again = api.ok("POST", "/v1/sandboxes", {"session": name})
    assert again["workspace"] is None and again["uid"] != made["uid"]
    other = new_session("temp")
    api.create(other)
    status, answer = api.ask("POST", "/v1/sandboxes", {"session": other, "temporary": True})
    assert (status, answer["error"]) == (400, "bad_name")
    for body in ({"keep": True}, {"cgroup": "/sys/fs/cgroup/x"}):
        status, answer = api.ask("POST", "/v1/sandboxes", {"session": name, "temporary": True, **body})
        assert (status, answer["error"]) == (400, "bad_field")
    api.end(name)


# -- a full node --------------------------------------------------------------------------

def test_a_node_with_more_sessions_than_it_keeps_goes_on(make_daemon):
    """150,000 ended ones, SECRET: new ones are made, the list has all of them, and the record shrinks to what is kept."""
    d = make_daemon().start()
    d.stop()
    fill(d, 150_000, level=2)
    policy_of(d, "sessions: {count: 149900}\n").start()
    assert d.api.health()["sessions_ended"] > 149_000
    name = new_session()
    d.api.escalate(name, "CONFIDENTIAL")
    assert d.cli("run", "--session", name, "--", "true", check=0).returncode == 0
    assert d.cli("run", "--", "true", check=0).returncode == 0
    assert base.eventually(lambda: d.api.health()["sessions_ended"] <= 149_900), "the record did not shrink"
    assert d.api.health()["levels_remembered"] >= 100
    # the oldest went, and comes back as high as it was
    assert d.api.ask("GET", "/v1/sessions/filled/000001")[0] == 404
    assert d.api.create("filled/000001")["level"] == "CONFIDENTIAL"
    listed = json.loads(d.cli("sessions", "--all", "--json", check=0, timeout=300).stdout)["sessions"]
    assert len(listed) > 149_000 and len({s["session"] for s in listed}) == len(listed)
    assert [s["session"] for s in listed] == sorted(s["session"] for s in listed)
    assert d.cli("sessions", "--all", check=0, timeout=300).stdout.count("\n") == len(listed) + 1
    shown = {s["session"] for s in json.loads(d.cli("sessions", "--json", check=0).stdout)["sessions"]}
    assert shown == {name, "filled/000001"}


def test_pages(api):
    mine = sorted(f"pages/{i:03d}" for i in range(7))
    for name in mine:
        api.create(name)
    api.end(mine[2])
    page = api.ok("GET", "/v1/sessions?ended=1&after=pages/000&limit=3")
    assert [s["session"] for s in page["sessions"]] == mine[1:4] and page["next"] == mine[3] and page["truncated"]
    page = api.ok("GET", f"/v1/sessions?after={mine[0]}&limit=3")
    assert [s["session"] for s in page["sessions"]] == [mine[1], *mine[3:5]]
    page = api.ok("GET", "/v1/sessions?ended=1&after=zzz/zzz")
    assert page == {"sessions": []}
    for bad in ("limit=0", "limit=10001", "limit=x", "after=x", "after=../x"):
        assert api.ask("GET", f"/v1/sessions?{bad}")[0] == 400


# -- forget -----------------------------------------------------------------------------------

def test_forget(daemon, api):
    name = new_session("forget")
    daemon.cli("run", "--session", name, "--", "sh", "-c", "echo private > file", check=0)
    api.escalate(name, "SECRET", "d.csv")
    workspace = pathlib.Path(api.show(name)["workspace"])
    assert (workspace / "file").exists()
    p = daemon.cli("forget", name, check=1)
    assert "(session_open)" in p.stderr
    daemon.cli("end", name, check=0)
    p = daemon.cli("forget", name, check=0)
    assert "remembered is its level, SECRET (mode NONE)" in p.stdout
    assert not workspace.exists() and name not in names(api)
    for verb in ("show", "forget", "why"):
        p = daemon.cli(verb, name, check=1)
        assert "it starts at SECRET" in p.stderr and "(no_such_session)" in p.stderr
    events = api.wait_events(len, session=name, reason="session_forgotten")
    assert "SECRET is remembered" in events[-1]["text"]
    # it comes back, without its files and data, and not an inch lower
    p = daemon.cli("run", "--session", name, "--json", "--", "sh", "-c", "ls; cat file", check=1)
    answer = json.loads(p.stdout)
    assert "private" not in answer["stdout"]
    shown = api.show(name)
    assert (shown["level"], shown["mode"], shown["datasets"]) == ("SECRET", "NONE", [])
    assert "it began at this level" in (text := daemon.cli("why", name, check=0).stdout) and "raised" not in text
    daemon.cli("end", name, check=0)
    # with its level: only by that word
    p = daemon.cli("forget", name, "--level-too", check=0)
    assert "no level is remembered" in p.stdout
    assert api.create(name)["level"] == "PUBLIC"
    daemon.cli("forget", "no/body", check=1)


def test_what_was_forgotten_survives_a_restart(make_daemon):
    d = make_daemon().start()
    d.api.escalate("a/b", "SECRET", "d.csv")
    d.api.end("a/b")
    assert d.api.ok("POST", "/v1/sessions/a/b/forget") == {"session": "a/b", "forgotten": True,
                                                           "remembered": {"level": "SECRET", "mode": "NONE"}}
    d.restart("kill")
    assert d.api.make("a/b")["mode"] == "NONE"


# -- workspaces ---------------------------------------------------------------------------------

@pytest.mark.parametrize("at_end", ["keep", "archive", "remove"])
def test_what_becomes_of_a_workspace(make_daemon, at_end):
    d = make_daemon()
    policy_of(d, f"workspaces: {{at_end: {at_end}}}\n").start()
    session = f"{CLI_USER}/work"
    d.cli("run", "--session", session, "--", "sh", "-c", "mkdir -p a/b; echo result > a/b/file; ln -s /etc/passwd link", check=0)
    workspace = pathlib.Path(d.api.show(session)["workspace"])
    d.api.end(session)
    data = pathlib.Path(d.api.health()["data_dir"])
    if at_end == "keep":
        assert (workspace / "a/b/file").read_text() == "result\n"
        return
    assert not workspace.exists()
    # whoever comes back at once finds an empty one
    p = d.cli("run", "--session", session, "--", "sh", "-c", "ls -A | wc -l", check=0)
    assert p.stdout.strip() == "0"
    d.api.wait_events(lambda got: any("removed" in e["text"] for e in got), session=session, reason="workspace_ended", timeout=30)
    assert list((data / ".ended").iterdir()) == []
    archives = list((data / ".archives").iterdir())
    if at_end == "remove":
        assert archives == []
        return
    with tarfile.open(archives[0]) as tar:
        assert tar.extractfile("./a/b/file").read() == b"result\n" and tar.getmember("./link").issym()
    assert archives[0].stat().st_mode & 0o777 == 0o600 and "alice@example.org,work" in archives[0].name


@pytest.fixture
def deaf(world):
    """A peer that takes connections and never reads; its port."""
    p = subprocess.Popen([*world.enter(world.far), base.PYTHON, "-c", f"import socket, time; s = socket.create_server(('{FAR[4]}', 0)); "
                          "print(s.getsockname()[1], flush=True); time.sleep(600)"], stdout=subprocess.PIPE, text=True)
    try:
        yield int(p.stdout.readline())
    finally:
        base.reap(p)


def test_a_session_that_comes_back_while_a_sandbox_lingers(make_daemon, deaf):
    """What its command left unsent may still arrive: the sandbox stays for that, its files do not."""
    d = make_daemon()
    policy_of(d, "workspaces: {at_end: remove}\n").start()
    session = f"{CLI_USER}/lingers"
    unsent = f"""import socket
s = socket.create_connection(("{FAR[4]}", {deaf}), 10)
s.setblocking(False)
try:
    while s.send(bytes(65536)): pass
except BlockingIOError:
    open("/workspace/old", "w").write("of before")
"""

    def lingering():
        with contextlib.closing(sqlite3.connect(d.state_dir / "sessions.db")) as db:
            return db.execute("SELECT count(*) FROM sandboxes").fetchone()[0]

    d.cli("run", "--session", session, "--", base.PYTHON, "-c", unsent, check=0)
    assert (pathlib.Path(d.api.show(session)["workspace"]) / "old").exists()
    d.api.end(session)
    assert lingering() == 1, "else this shows nothing"
    p = d.cli("run", "--session", session, "--", "sh", "-c", "ls -A; echo new > new", check=0)
    assert p.stdout == "" and lingering() >= 1
    workspace = pathlib.Path(d.api.show(session)["workspace"])
    d.api.wait_events(lambda got: any("removed" in e["text"] for e in got), session=session, reason="workspace_ended", timeout=30)
    assert [path.name for path in workspace.iterdir()] == ["new"], "and that stays"


# -- names and upgrades -------------------------------------------------------------------------------

def test_an_e_mail_address_is_a_user(daemon, api):
    """Wherever a name becomes a path, a cgroup, a URL or a certificate."""
    name = f"{CLI_USER}/mail"
    p = daemon.cli("run", "--session", name, "--json", "--", "sh", "-c", "pwd; echo x > f", check=0)
    assert json.loads(p.stdout)["session"] == name
    sandbox = api.make(name)
    assert sandbox["sandbox"].startswith("alice@example.org.mail.") and pathlib.Path(sandbox["cgroup"]).is_dir()
    assert api.sandbox(sandbox["sandbox"])["session"] == name
    answer = json.loads(daemon.cli("escalate", name, "CONFIDENTIAL", "--json", check=0).stdout)
    assert answer["session"] == name
    for words in (["show", name], ["why", name], ["notices", name], ["events", "--session", name], ["path", name, "/workspace/f"]):
        daemon.cli(*words, check=0)
    copy = daemon.dir / "copy"
    daemon.cli("cp", f"{name}:f", copy, check=0)
    assert copy.read_text() == "x\n"
    plus = "a.b+c@mail.example.org/x"
    api.create(plus)
    assert plus in names(api) and api.ok("GET", "/v1/sessions?after=a.b%2Bc%40mail.example.org/w&limit=1")["sessions"]
    daemon.cli("end", plus, check=0)
    daemon.cli("forget", plus, check=0)
    daemon.cli("end", name, check=0)


def test_the_store_of_the_version_before(make_daemon):
    d = make_daemon()
    old_store(d)
    d.start()
    assert d.api.show("alice/open")["level"] == "CONFIDENTIAL"
    assert d.api.show("alice/ended")["datasets"][0]["name"] == "customers.csv"
    assert d.api.ok("GET", "/v1/runs/1")["state"] == "completed"
    d.cli("forget", "alice/ended", check=0)
    assert d.api.create("alice/ended")["level"] == "SECRET"
    assert d.api.ok("GET", "/v1/runs/1")["session"] == "alice/ended"  # it outlives its session
