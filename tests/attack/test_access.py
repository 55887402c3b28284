# SPDX-License-Identifier: MIT
"""Who may call: roles by the peer's user and group, every route times every role, and what somebody with a role tries beyond it.
The control of each attack is the operator, or the owner, for whom the same call works."""
import contextlib
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import time

import pytest
import yaml

from lib import base
from lib.box import new_session
from lib.daemon import Daemon

OPERATIONS = yaml.safe_load((base.ROOT / "docs/openapi.yaml").read_text())["paths"]
ROUTES = {(method.upper(), re.sub(r"{\w+}", "*", path)): set(op["x-roles"]) for path, item in OPERATIONS.items() for method, op in item.items()}
# user, group, other groups. Numbers that nobody on the host has
PEOPLE = {"root": (0, 0, []), "operator": (61001, 61001, [61000]), "platform": (61002, 61002, []), "approver": (61003, 61003, [61033]),
          "reader": (61004, 61004, []), "nobody": (61005, 61005, []), "inbox": (61006, 61006, [61066]), "root in the inbox": (0, 0, [])}
POLICY = """version: 1
access:
  operator: group:61000
  platform:
    - {callers: user:61002, sessions: ["alice/*", "team-*/ci"]}
  approver: [group:61033, "user:no-such-user-of-this-host"]
  reader: [user:61004]
approval: {group: "61066"}
sandbox:
  binds: [%s]
"""
CALLS = """
import http.client, json, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.settimeout(120); self.sock.connect(sys.argv[1])
out = []
for method, path, body in json.load(sys.stdin):
    c = C("np")
    try:
        c.request(method, path, None if body is None else body if isinstance(body, str) else json.dumps(body))
        r = c.getresponse(); text = r.read().decode()
        try: out.append([r.status, json.loads(text)])
        except ValueError: out.append([r.status, text])
    except OSError as e:
        out.append([0, str(e)])
    finally: c.close()
print(json.dumps(out))
"""


FEEDS = """
import http.client, json, socket, sys
connections, out = [], []
for _ in range(int(sys.argv[3])):
    c = http.client.HTTPConnection("np")
    c.sock = socket.socket(socket.AF_UNIX); c.sock.settimeout(60); c.sock.connect(sys.argv[1])
    c.request("GET", sys.argv[2])
    out.append(c.getresponse().status)
    connections.append(c)
print(json.dumps(out), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def daemon(world):
    d = Daemon(world)
    d.shared = d.dir / "shared"
    d.shared.mkdir()
    (d.shared / "data").write_text("shared\n")
    d.policy.write_text(POLICY % d.shared)
    try:
        d.start()
        for path in (d.dir, d.run_dir):
            os.chmod(path, 0o755)
        for parent in d.dir.parents:
            assert os.stat(parent).st_mode & 0o001, f"{parent}: nobody but root gets to the socket"
        yield d
        assert d.running() and d.stop() == 0, d.text()[-3000:]
    finally:
        d.close()


def words(daemon, person, argv):
    uid, gid, groups = PEOPLE[person]
    more = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    return [*daemon.world.enter(), "setpriv", "--reuid", str(uid), "--regid", str(gid), *more, *map(str, argv)]


def socket_of(daemon, person):
    """Those who have the group of approve.sock, and root, may be in the inbox, which is there and nowhere else."""
    return daemon.run_dir / "approve.sock" if "inbox" in person else daemon.socket


def calls(daemon, person, *todo):
    p = subprocess.run(words(daemon, person, [base.PYTHON, "-I", "-c", CALLS, socket_of(daemon, person)]), input=json.dumps(todo), capture_output=True,
                       text=True, timeout=600)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def call(daemon, person, method, path, body=None):
    return calls(daemon, person, [method, path, body])[0]


def name(user="alice"):
    return f"{user}/{new_session('x').split('/')[1]}"


@pytest.fixture
def things(daemon):
    """A session of alice's and one of bob's, each with a kept sandbox in which a run waits for input, and one that waits for approval."""
    got = {}
    for user in ("alice", "bob"):
        session = name(user)
        run = daemon.api.ok("POST", "/v1/runs", {"session": session, "command": ["sh", "-c", "echo secret-of-$0; read x", user],
                                                 "launch": {"keep": True, "input": True, "env": [f"KEY=hidden-of-{user}"]}})["run"]
        assert base.eventually(lambda: daemon.api.sandboxes(session) and "secret" in str(daemon.api.ask("GET", f"/v1/runs/{run}/output")[1]))
        waits = daemon.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["true"], "launch": {}})["run"]
        got[user] = {"session": session, "run": run, "waits": waits, "sandbox": daemon.api.sandboxes(session)[0]["sandbox"]}
    yield got
    for thing in got.values():
        daemon.api.ask("DELETE", f"/v1/sessions/{thing['session']}")
    for thing in got.values():  # whoever reports how it ended would try for hours if there were no daemon any more
        base.eventually(lambda: daemon.api.ask("GET", f"/v1/runs/{thing['run']}")[1].get("state") != "running")


def sample(route, thing):
    """A request that means something, about that thing."""
    method, path = route
    if "/sessions/*/*" in path:
        path = path.replace("*/*", thing["session"])
    elif "/sandboxes/*" in path:
        path = path.replace("*", thing["sandbox"])
    elif "/runs/*" in path:
        path = path.replace("*", str(thing["waits"] if path.endswith(("approve", "reject")) else thing["run"]))
    else:
        path = path.replace("*", "1")
    body = {"/v1/sessions": {"session": thing["session"]}, "/v1/sessions/*/*/datasets": {"level": "PUBLIC"},
            "/v1/sessions/*/*/notices/ack": {"reader": "a", "upto": 0}, "/v1/sandboxes": {"session": thing["session"]},
            "/v1/forwards": {"session": thing["session"], "port": 80}, "/v1/runs": {"session": thing["session"], "command": ["true"], "launch": {}},
            "/v1/runs/*/reject": {"reason": "a test"}, "/v1/runs/*/input": {"data": ""},
            "/v1/runs/*/end": {"state": "failed", "result": {}}}.get(route[1], {})
    query = f"?session={thing['session']}" if route == ("GET", "/v1/events") else ""
    return [method, path + query, body if method in ("POST", "PUT") else None]


LAST = [("POST", "/v1/runs/*/cancel"), ("DELETE", "/v1/sandboxes/*"), ("DELETE", "/v1/sessions/*/*")]  # so that the others find something
ORDER = [r for r in ROUTES if r not in LAST] + LAST


@pytest.mark.parametrize("person", PEOPLE)
def test_every_route_and_every_role(daemon, things, person):
    """What the document says is what the daemon does, on alice's; and bob's are not there for alice's platform."""
    role = {"root": "operator", "root in the inbox": "inbox"}.get(person, person)
    if role != "operator":  # an operator's would end them; that he may is seen in alice's
        for route, (status, answer) in zip(ORDER, calls(daemon, person, *[sample(r, things["bob"]) for r in ORDER])):
            allowed = role in ROUTES[route] and (role != "platform" or route in (("GET", "/v1/health"), ("GET", "/v1/sessions"),
                                                                                 ("GET", "/v1/sandboxes"), ("GET", "/v1/runs"),
                                                                                 ("GET", "/v1/questions")))
            answered = status not in (403, 404) or answer["error"] == "no_such_question" and role != "platform"  # there is none of that id
            assert answered == allowed, (person, route, status, answer)
            assert role in ("reader", "approver", "inbox") or "bob" not in json.dumps(answer).replace(f"session {things['bob']['session']}", "") \
                or status in (403, 404), (route, answer)
            assert "secret-of-bob" not in json.dumps(answer) and "hidden-of-bob" not in json.dumps(answer) or role in ("approver", "inbox"), (route, answer)
    for route, (status, answer) in zip(ORDER, calls(daemon, person, *[sample(r, things["alice"]) for r in ORDER])):
        refused = status == 403 and answer["error"] == "no_role"
        assert refused == (role not in ROUTES[route]), (person, route, status, answer)


def test_lists_are_of_ones_own(daemon, things):
    for path, member in (("/v1/sessions?ended=1", "sessions"), ("/v1/sandboxes", "sandboxes"), ("/v1/runs", "runs")):
        got = {person: json.dumps(call(daemon, person, "GET", path)[1][member]) for person in ("platform", "reader", "root")}
        assert things["alice"]["session"] in got["platform"] and "bob/" not in got["platform"], got
        assert things["bob"]["session"] in got["reader"] and things["bob"]["session"] in got["root"]


TRICKS = ["/v1/sessions/{bob}", "/v1/sessions/alice/../{bob}", "/v1/sessions/alice%2f..%2f{bob}", "/v1/sessions/alice/x/../../{bob}",
          "/v1/sessions/%2e%2e/{bob}", "/v1/sessions//{bob}", "/v1/sessions/alice/x%00/{bob}", "/v1/sessions/{bob}/", "/v1/sessions/{bob}?session=alice/x",
          "/v1/sessions/alice*/x", "/v1/events", "/v1/events?session=", "/v1/events?session={bob}", "/v1/events?session=*/*", "/v1/events?session=alice/*",
          "/v1/events?session=alice/x&session={bob}", "/v1/events?session=alice/x/../{bob}", "/v1/events?reason=level_raised", "/v1/events?follow=1",
          "/v1/sessions/{bob}/ca", "/v1/sessions/{bob}/why", "/v1/sessions/{bob}/notices", "/v1/sandboxes/{box}", "/v1/sandboxes/{box}?ended=1",
          "/v1/runs/{run}", "/v1/runs/{run}?wait=1", "/v1/runs/{run}/output", "/v1/runs/{run}/output?follow=1", "/v1/runs/0{run}", "/v1/runs/+{run}",
          "/v1/runs/%20{run}", "/v1/debug", "/v1/launch", "/v1/policy"]


def test_a_record_that_others_have_filled(make_daemon, tmp_path):
    """All but 500 sessions that there can be, and nearly all are others': a platform finds its own and hears of no other, it gets no new
    one, and the operators get theirs."""
    d = make_daemon()
    d.policy.write_text(POLICY % tmp_path)
    d.start()
    mine = ["alice/a", "team-z/ci"]  # before and behind the others
    for session in mine:
        d.api.create(session)
    assert d.stop() == 0
    db = sqlite3.connect(d.state_dir / "sessions.db")
    db.executescript("""PRAGMA synchronous = OFF; BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999498)
        INSERT INTO sessions (name, level, mode, generation, created_us, used_us)
        SELECT 'bob/' || printf('%06d', i), 0, 1, 1, i, i FROM n; COMMIT""")
    db.close()
    d.start()
    for path in (d.dir, d.run_dir):
        os.chmod(path, 0o755)
    ask = lambda person, query: call(d, person, "GET", f"/v1/sessions?{query}")
    seen = lambda answer: [s["session"] for s in answer[1]["sessions"]]
    for query in ("limit=1", "limit=10000", "ended=1&limit=1"):
        first, second, last = (ask("platform", f"{query}&after={after}") for after in ("a/a", *mine))
        assert seen(first) == mine[:1] and first[1]["truncated"] and first[1]["next"] == mine[0], first
        assert seen(second) == mine[1:] and "next" not in second[1], second
        assert last == [200, {"sessions": []}]
        assert "bob" not in str((first, second, last))
    shown = subprocess.run(words(d, "platform", [base.NETPAWL, "sessions", "--json", "--socket", d.socket]), capture_output=True, text=True, timeout=600)
    assert [s["session"] for s in json.loads(shown.stdout)["sessions"]] == mine, shown
    for person in ("operator", "reader"):  # the control
        assert seen(ask(person, "limit=2&after=a/a")) == ["alice/a", "bob/000001"]
    status, answer = call(d, "platform", "POST", "/v1/sessions", {"session": "alice/new"})
    assert (status, answer["error"]) == (429, "too_many")
    status, answer = call(d, "platform", "POST", "/v1/sessions/alice/new/datasets", {"level": "SECRET"})
    assert (status, answer["error"]) == (429, "too_many")
    assert call(d, "platform", "POST", "/v1/sessions/alice/a/datasets", {"level": "SECRET"})[1]["mode"] == "NONE"
    for person in ("root", "operator"):
        assert call(d, person, "POST", "/v1/sessions", {"session": f"bob/{person}"})[0] == 201
    assert d.stop() == 0


def test_ways_around_a_name(daemon, things):
    bob = things["bob"]
    paths = [t.format(bob=bob["session"], box=bob["sandbox"], run=bob["run"]) for t in TRICKS]
    for path, (status, answer) in zip(paths, calls(daemon, "platform", *[["GET", path, None] for path in paths])):
        assert status in (400, 403, 404), (path, status, answer)
        assert "secret-of" not in json.dumps(answer)
    assert "secret-of-bob" in str(call(daemon, "root", "GET", f"/v1/runs/{bob['run']}/output")), "the control"
    assert "secret-of-alice" in str(call(daemon, "platform", "GET", f"/v1/runs/{things['alice']['run']}/output")), "the control"


def test_ways_around_a_body(daemon, things):
    """Two sessions, none, other types, and what only some readers of JSON take for one."""
    bob, mine = things["bob"]["session"], things["alice"]["session"]
    launch = '"command":["true"],"launch":{}'
    bodies = [f'{{"session":"{mine}","session":"{bob}",{launch}}}', f'{{"session":"{bob}","session":"{mine}",{launch}}}', f"{{{launch}}}",
              f'{{"session":["{mine}"],{launch}}}', f'{{"session":"{mine}\\u0000","x":"{bob}",{launch}}}', f'{{"session":"{bob}",{launch}}}',
              f'{{"session":"{mine}/../{bob}",{launch}}}', f'{{"session":"alice",{launch}}}', f'{{"session":"Alice/x",{launch}}}'.replace("Alice", "bob"),
              f'{{"session":"{mine}",{launch}}}{{"session":"{bob}",{launch}}}', f'{{"session":null,{launch}}}', "[]", "", "null"]
    for body, (status, answer) in zip(bodies, calls(daemon, "platform", *[["POST", "/v1/runs", body] for body in bodies])):
        assert status in (400, 403), (body, status, answer)
    assert call(daemon, "platform", "POST", "/v1/runs", f'{{"session":"{mine}",{launch}}}')[0] == 201, "the control"


@pytest.mark.parametrize("options,ok", [({"launch": {"user": "root"}}, 0), ({"launch": {"isolation": "none"}}, 0), ({"options": {}}, 0), ({}, 0),
                                        ({"options": {"isolation": "none"}}, 0), ({"launch": {"env_all": True}}, 0), ({"launch": {"level": "PUBLIC"}}, 0),
                                        ({"launch": {"cwd": "/"}}, 0), ({"launch": {}, "options": {"user": "root"}}, 0), ({"launch": {}}, 1)])
def test_a_platform_has_the_launchers_options_and_no_other(daemon, options, ok):
    status, answer = call(daemon, "platform", "POST", "/v1/runs", {"session": name(), "command": ["true"], **options})
    assert (status == 201) == bool(ok), answer
    assert ok or status in (400, 403)


def test_binds_are_the_policys(daemon):
    """Not /etc/shadow, nor a link that leads there, nor a way out of what is permitted. The control: what is permitted."""
    os.symlink("/etc/shadow", daemon.shared / "link")
    os.symlink("/etc", daemon.shared / "up")
    os.chmod(daemon.shared, 0o755)
    for source, good in ((daemon.shared, True), (f"{daemon.shared}/data", True), ("/etc/shadow", False), (f"{daemon.shared}/link", False),
                         (f"{daemon.shared}/up/shadow", False), (f"{daemon.shared}/../../../../../../etc/shadow", False), ("/", False), (daemon.state_dir, False)):
        run = call(daemon, "platform", "POST", "/v1/runs", {"session": name(), "command": ["sh", "-c", "cat /mnt/data /mnt 2>/dev/null; id -u"],
                                                            "launch": {"bind": [f"{source}:/mnt:ro"]}})[1]["run"]
        row = base.eventually(lambda: (r := daemon.api.ok("GET", f"/v1/runs/{run}"))["state"] not in ("pending", "running") and r, 20)
        text = str(call(daemon, "platform", "GET", f"/v1/runs/{run}/output")[1])
        assert (row["state"] == "completed" and "shared" in text) == good, (source, row, text)
        assert "root:" not in text
        assert not good or re.search(r"21\d{8}", text), "as a user of the session's own"


@pytest.mark.parametrize("keep", [{}, {"keep": True}], ids=["plain", "kept"])
def test_a_refused_bind_does_not_tell_which_files_there_are(daemon, keep):
    """Neither by a name, nor by a link that somebody made where they may write. The control: of what is permitted it is told."""
    os.chmod(daemon.shared, 0o755)

    def told(source):
        run = call(daemon, "platform", "POST", "/v1/runs", {"session": name(), "command": ["true"], "launch": {"bind": [f"{source}:/mnt:ro"], **keep}})[1]["run"]
        row = base.eventually(lambda: (r := call(daemon, "platform", "GET", f"/v1/runs/{run}")[1])["state"] not in ("pending", "running") and r, 20)
        said = call(daemon, "platform", "GET", f"/v1/runs/{run}/output?follow=1")[1]
        lines = said.split("\n") if isinstance(said, str) else [json.dumps(said)]
        why = row["state"], row["reason"], (row["result"] or {}).get("problem"), "".join(json.loads(line)["data"] for line in lines if line)
        return json.dumps(why).replace(str(source), "SOURCE")

    def link(to):
        path = daemon.shared / f"link-{len(list(daemon.shared.iterdir()))}"
        path.symlink_to(to)
        return path

    up = daemon.shared / "/".join([".."] * len(daemon.shared.parts))
    for there, missing in (("/etc/shadow", "/etc/no-such-file"), ("/etc/ssl/certs", "/etc/no-such/certs"), (link("/etc/shadow"), link("/etc/no-such-file")),
                           (link("/etc") / "shadow", link("/etc") / "no-such-file"), (up / "etc/shadow", up / "etc/no-such-file"),
                           ("/etc/passwd/x", "/etc/no-such-file/x")):
        words = told(there)
        assert "does not permit SOURCE" in words and words == told(missing), (words, told(missing))
    assert told(daemon.shared / "data").startswith('["completed"')
    assert "No such file" in told(daemon.shared / "no-such-file")


def test_levels_only_rise(daemon):
    session = name()
    assert call(daemon, "platform", "POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})[1]["mode"] == "NONE"
    got = calls(daemon, "platform", ["POST", f"/v1/sessions/{session}/datasets", {"level": "PUBLIC"}], ["DELETE", f"/v1/sessions/{session}", None],
                ["POST", "/v1/sessions", {"session": session, "level": "PUBLIC"}])
    assert got[0][1]["level"] == "SECRET" and got[0][1]["raised"] is False and got[2][1]["level"] == "SECRET" and got[2][1]["mode"] == "NONE"


def test_who_asks_does_not_approve(daemon, things):
    waits = things["alice"]["waits"]
    for person in ("platform", "reader", "nobody"):
        assert call(daemon, person, "POST", f"/v1/runs/{waits}/approve", {})[1]["error"] == "no_role"
    assert call(daemon, "approver", "POST", f"/v1/runs/{waits}/approve", {})[0] == 200
    assert "61003" in daemon.api.ok("GET", f"/v1/runs/{waits}")["decided_by"]


def test_a_reader_sees_names_of_variables_and_no_values(daemon, things):
    run = things["alice"]["run"]
    got = {person: call(daemon, person, "GET", f"/v1/runs/{run}")[1]["options"]["env"] for person in ("reader", "approver", "platform", "root")}
    assert got == {"reader": ["KEY"], **{person: ["KEY=hidden-of-alice"] for person in ("approver", "platform", "root")}}
    assert "hidden" not in json.dumps(call(daemon, "reader", "GET", "/v1/runs"))


def test_nobody_learns_nothing(daemon):
    assert call(daemon, "nobody", "GET", "/v1/health")[1]["error"] == "no_role"
    assert call(daemon, "nobody", "GET", "/no/such/path")[1]["error"] == "no_role", "not even which paths there are"


def test_a_sandbox_is_never_anything(daemon):
    """A process with the platform's user that was put into a sandbox is refused as before; outside it is not."""
    box = daemon.api.ok("POST", "/v1/sandboxes", {"session": name(), "workspace": "none"})
    code = f"import os; open({str(box['cgroup'])!r} + '/cgroup.procs', 'w').write('0'); os.setgroups([]); os.setresgid(61002, 61002, 61002); os.setresuid(61002, 61002, 61002)\n"
    for inside in (True, False):
        text = (code if inside else code.split(";", 2)[0] + "; import sys;" + code.split(";", 2)[2]) + CALLS
        p = subprocess.run([*daemon.world.enter(), base.PYTHON, "-I", "-c", text, str(daemon.socket)], input=json.dumps([["GET", "/v1/health", None]]),
                           capture_output=True, text=True, timeout=180)
        assert ("from_sandbox" in p.stdout or "Connection refused" in p.stdout) == inside, (p.stdout, p.stderr)  # by the daemon, or by the gate
        assert inside or '"ok"' in p.stdout or "status" in p.stdout, p
    daemon.api.ask("DELETE", f"/v1/sandboxes/{box['sandbox']}")


def test_the_socket_follows_the_policy(make_daemon, tmp_path):
    """Its group and mode; a reload takes a role away, and ends what was opened with it."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\n")
    d = make_daemon(policy=policy)
    d.start()
    for path in (d.dir, d.run_dir):
        os.chmod(path, 0o755)
    look = lambda: (oct(os.stat(d.socket).st_mode & 0o777), os.stat(d.socket).st_gid)
    assert look() == ("0o660", 0)
    assert call(d, "operator", "GET", "/v1/health")[0] == 0, "connect() is refused"
    policy.write_text("version: 1\naccess: {operator: 'group:61000'}\n")
    d.cli("policy", "reload", check=0)
    assert look() == ("0o660", 61000) and call(d, "operator", "GET", "/v1/health")[0] == 200 and call(d, "reader", "GET", "/v1/health")[0] == 0
    policy.write_text("version: 1\naccess: {operator: 'group:61000', reader: 'user:61004'}\n")
    d.cli("policy", "reload", check=0)
    assert look() == ("0o666", 0) and call(d, "reader", "GET", "/v1/health")[0] == 200 and call(d, "nobody", "GET", "/v1/health")[1]["error"] == "no_role"
    follow = subprocess.Popen(words(d, "reader", [base.NETPAWL, "--socket", d.socket, "events", "--follow"]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert base.eventually(lambda: call(d, "root", "GET", "/v1/health")[1]["events"] is not None)
        time.sleep(0.3)
        assert follow.poll() is None
        policy.write_text("version: 1\n")
        d.cli("policy", "reload", check=0)
        assert follow.wait(120) != 0
    finally:
        base.reap(follow)
    assert look() == ("0o660", 0) and call(d, "reader", "GET", "/v1/health")[0] == 0


@pytest.mark.parametrize("section,told", [
    ("operator: root", "user:NAME"), ("operator: 'user:'", "user:NAME"), ("reader: 'user:a b'", "user:NAME"), ("owner: 'user:a'", "unknown key"),
    ("platform: {callers: 'user:a', sessions: 'a/*'}", "list"), ("platform: [{callers: 'user:a'}]", "both"), ("platform: [{sessions: 'a/*'}]", "both"),
    ("platform: [{callers: 'user:a', sessions: 'alice'}]", "is no session"), ("platform: [{callers: 'user:a', sessions: '**/x'}]", "is no session"),
    ("platform: ['user:a']", "mapping"), ("reader: []", "reader"), ("reader: {a: b}", "reader")])
def test_a_section_that_is_wrong(tmp_path, section, told):
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\naccess:\n  {section}\n")
    p = base.sh(base.NETPAWL, "policy", "check", path, check=False)
    assert p.returncode == 1 and told in p.stdout + p.stderr, p


# -- netpawl run of a platform, by the daemon's launcher ---------------------------------------------------

def run(daemon, person, *argv, check=None, env=None, **kw):
    p = subprocess.run(words(daemon, person, [base.NETPAWL, "run", *argv]), capture_output=True, timeout=180,
                       env=base.env(NETPAWL_SOCKET=str(daemon.socket), **{"USER": "alice", **(env or {})}), **kw)
    assert check is None or p.returncode == check, p
    return p


def test_netpawl_run_works_for_a_platform(daemon):
    """Streams, bytes that are no text, the exit code, variables, limits, kept sandboxes, --json, sessions without a name."""
    session = name()
    p = run(daemon, "platform", "--session", session, "--", "sh", "-c", "cat; echo err >&2; exit 3", input=bytes(range(256)) * 2000, check=3)
    assert p.stdout == bytes(range(256)) * 2000 and p.stderr == b"err\n"
    p = run(daemon, "platform", "--session", session, "--env", "A", "--env", "B=2", "--", "sh", "-c", "echo $A $B $SECRET; id -u", env={"A": "1", "SECRET": "s"}, input=b"")
    assert p.stdout.split()[:2] == [b"1", b"2"] and int(p.stdout.split()[2]) >= 2100000000
    run(daemon, "platform", "--keep", "--session", session, "--", "sh", "-c", "echo x > /tmp/x", input=b"", check=0)
    assert run(daemon, "platform", "--keep", "--session", session, "--", "cat", "/tmp/x", input=b"").stdout == b"x\n"
    assert run(daemon, "platform", "--timeout", "1s", "--session", session, "--", "sleep", "60", input=b"", check=124)
    got = json.loads(run(daemon, "platform", "--json", "--session", session, "--", "sh", "-c", "echo out; exit 4", input=b"", check=4).stdout)
    assert got["stdout"] == "out\n" and got["exit_code"] == 4
    got = json.loads(run(daemon, "platform", "--json", "--", "true", input=b"", check=0).stdout)
    assert got["session"].startswith("alice/run-")  # none that is forgotten
    for options in (["--class", "read_only"], ["--purpose", "a test"], ["--level", "INTERNAL"]):
        got = json.loads(run(daemon, "platform", "--json", *options, "--", "echo", "through", input=b"", check=0).stdout)
        assert got["stdout"] == "through\n" and got["session"].startswith("alice/run-")
        assert daemon.api.ok("GET", f"/v1/sessions/{got['session']}")["ended"], "it goes with its run"
        p = run(daemon, "platform", *options, "--", "echo", "through", input=b"", env={"USER": "bob"}, check=125)
        assert p.stdout == b"" and b"no_role" in p.stderr and b"--session" in p.stderr, "a name that is not the platform's"
    assert run(daemon, "platform", "--session", session, "--", "no-such-command", input=b"", check=127)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_netpawl_run_says_that_it_waits(daemon, decision):
    """And why it was not run, once: the launcher's words come through, and are not said again."""
    session = name()
    p = subprocess.Popen(words(daemon, "platform", [base.NETPAWL, "run", "--class", "write", "--session", session, "--", "echo", "through"]),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        told = p.stderr.readline()
        ident = daemon.api.ok("GET", f"/v1/runs?session={session}")["runs"][0]["run"]
        assert f"run {ident} waits for approval" in told
        daemon.api.ok("POST", f"/v1/runs/{ident}/{decision}", {"reason": "so it is"})
        out, err = p.communicate(timeout=120)
        assert (p.returncode, out, err.count("so it is")) == ((0, "through\n", 0) if decision == "approve" else (125, "", 1)), err
    finally:
        base.reap(p)


@pytest.mark.parametrize("person,options", [("platform", ["--session", "bob/x"]), ("platform", ["--user", "root"]), ("platform", ["--isolation", "none"]),
                                            ("platform", ["--bind", "/etc/shadow:/mnt:ro"]), ("platform", ["--env-all"]), ("reader", []), ("approver", []),
                                            ("nobody", [])])
def test_netpawl_run_is_no_way_to_more(daemon, person, options):
    options = options if "--session" in options else ["--session", name(), *options]
    p = run(daemon, person, *options, "--", "sh", "-c", "cat /mnt; echo through", input=b"", check=125)
    assert b"through" not in p.stdout and p.stderr


def test_a_terminal_and_an_end(daemon):
    """A terminal of its own, with its characters; a signal ends the run, and nothing is left."""
    session, argv = name(), None
    pid, master = pty.fork()
    if not pid:
        argv = words(daemon, "platform", [base.NETPAWL, "run", "--session", session, "--", "sh", "-c",
                                          "stty size; trap 'echo int; exit 5' INT; echo up; while :; do sleep 0.1; done"])
        os.execvpe(argv[0], argv, base.env(NETPAWL_SOCKET=str(daemon.socket), TERM="dumb"))
    got, end = "", time.monotonic() + 180
    try:
        while "int" not in got and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    got += os.read(master, 4096).decode(errors="replace")
                except OSError:
                    break
            if "up" in got and "sent" not in locals():
                sent = os.write(master, b"\x03")
        assert "int" in got, got
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    finally:
        os.close(master)
    p = subprocess.Popen(words(daemon, "platform", [base.NETPAWL, "run", "--session", session, "--", "sh", "-c", "echo up; sleep 1000"]),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert p.stdout.readline() == b"up\n"
        os.kill(p.pid, 9)  # setpriv became netpawl
        assert base.eventually(lambda: not daemon.api.sandboxes(session), 20)
    finally:
        base.reap(p)


# -- temporary sessions, whose level goes with them -----------------------------------------------

def test_temporary_is_no_way_to_lower_a_session(daemon):
    """A platform asks for it under a name of its own, or under one that is reserved for it; an operator under anybody's."""
    plain, squatted = name(), name()
    reserved = name().replace("/", "/temporary-")
    for session in (squatted, reserved):
        for path in ("/v1/sessions", "/v1/sandboxes"):
            status, answer = call(daemon, "platform", "POST", path, {"session": session, "temporary": True})
            assert (status, answer["error"]) == (403, "no_role"), answer
    for path in ("/v1/sessions", "/v1/sandboxes"):
        status, answer = daemon.api.ask("POST", path, {"session": squatted, "temporary": True})
        assert (status, answer["error"]) == (400, "bad_name"), answer
    for path, body in (("/v1/sessions", {"session": reserved}), (f"/v1/sessions/{reserved}/datasets", {"level": "SECRET"}),
                       ("/v1/runs", {"session": reserved, "command": ["true"], "launch": {}}),
                       ("/v1/sandboxes", {"session": reserved})):
        for person in ("platform", "root") if path != "/v1/sandboxes" else ("root",):
            status, answer = call(daemon, person, "POST", path, body)
            assert (status, answer["error"]) == (400, "bad_name"), (person, path, answer)
    assert not {squatted, reserved} & {s["session"] for s in daemon.api.sessions(ended=True)}
    # what it may make, it cannot lower: the raise stands when it comes back
    for session in (plain, squatted):
        assert call(daemon, "platform", "POST", "/v1/sessions", {"session": session})[0] == 201
        assert daemon.api.escalate(session, "SECRET", "customers.csv")["level"] == "SECRET"
        assert call(daemon, "platform", "DELETE", f"/v1/sessions/{session}")[0] == 200
        daemon.api.ok("POST", f"/v1/sessions/{session}/forget", {})
        assert call(daemon, "platform", "POST", "/v1/sessions", {"session": session})[1]["level"] == "SECRET"
    # the control: the operator has a temporary one, which takes its level along, and the platform does not get its name
    assert daemon.api.ask("POST", "/v1/sessions", {"session": reserved, "temporary": True})[0] == 201
    assert call(daemon, "platform", "POST", f"/v1/sessions/{reserved}/datasets", {"level": "SECRET"})[1]["mode"] == "NONE"
    assert call(daemon, "platform", "DELETE", f"/v1/sessions/{reserved}")[0] == 200
    assert base.eventually(lambda: daemon.api.ask("GET", f"/v1/sessions/{reserved}")[0] == 404)
    assert call(daemon, "platform", "POST", "/v1/sessions", {"session": reserved})[1]["error"] == "bad_name"


def test_nothing_is_kept_in_a_temporary_session(daemon):
    """Each run that entered a kept sandbox there took a user, and gave none back."""
    session, other = name().replace("/", "/temporary-"), name()
    daemon.api.ok("POST", "/v1/sessions", {"session": session, "temporary": True})

    def state(of, launch):
        status, run = call(daemon, "platform", "POST", "/v1/runs", {"session": of, "command": ["true"], "launch": launch})
        assert status == 201, run
        over = lambda: daemon.api.ok("GET", f"/v1/runs/{run['run']}")["state"] in ("completed", "failed", "rejected")
        assert base.eventually(over, timeout=20)
        return daemon.api.ok("GET", f"/v1/runs/{run['run']}")["state"], str(call(daemon, "platform", "GET", f"/v1/runs/{run['run']}/output")[1])

    got = state(session, {"keep": True})
    assert got[0] != "completed" and "is temporary" in got[1], got
    status, answer = daemon.api.ask("POST", "/v1/sandboxes", {"session": session, "keep": True})
    assert (status, answer["error"]) == (400, "bad_field") and not daemon.api.sandboxes(session)
    assert state(session, {})[0] == "completed" and state(other, {"keep": True})[0] == "completed"  # the controls
    daemon.api.end(other)
    daemon.api.ask("DELETE", f"/v1/sessions/{session}")


# -- approve.sock, and four eyes -------------------------------------------------------------------------

def test_the_inbox_is_for_its_group_alone(daemon):
    inbox = daemon.run_dir / "approve.sock"
    assert (os.stat(inbox).st_mode & 0o777, os.stat(inbox).st_gid) == (0o660, 61066)
    todo = json.dumps([["GET", "/v1/questions", None]])
    for person, status in (("inbox", 200), ("root", 200), ("operator", 0), ("approver", 0), ("nobody", 0)):
        got = subprocess.run(words(daemon, person, [base.PYTHON, "-I", "-c", CALLS, inbox]), input=todo, capture_output=True, text=True, timeout=60)
        assert json.loads(got.stdout)[0][0] == status, (person, got)
    assert call(daemon, "nobody", "GET", "/v1/questions")[0] in (0, 403)
    uid, gid, groups = PEOPLE["inbox"]
    got = subprocess.run([*daemon.world.enter(), "setpriv", "--reuid", str(uid), "--regid", str(gid), "--groups", "61066", base.PYTHON, "-I", "-c",
                          CALLS, daemon.socket], input=todo, capture_output=True, text=True, timeout=60)
    assert json.loads(got.stdout)[0][0] in (0, 403), "the group opens that one, and not the control socket"


@pytest.mark.parametrize("which", ["control.sock", "approve.sock"])
def test_a_sandbox_answers_on_neither_socket(daemon, which):
    """Not even as root: its mode is FULL, so that nothing but who it is keeps it out. The control is the same call from outside."""
    session, path = name(), daemon.run_dir / which
    todo = json.dumps([["POST", "/v1/questions/1/answer", {"answer": "always"}], ["GET", "/v1/questions", None]])
    cgroup = base.cgroup_make("inbox")
    argv = [base.PYTHON, "-I", "-c", CALLS, str(path)]
    try:
        outside = subprocess.run([*daemon.world.enter(), *argv], input=todo, capture_output=True, text=True, timeout=60)
        assert [s for s, _ in json.loads(outside.stdout)] == [404, 200], outside
        daemon.api.ok("POST", "/v1/sandboxes", {"session": session, "cgroup": str(cgroup)})
        inside = subprocess.run([*daemon.world.enter(), "sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup), *argv], input=todo,
                                capture_output=True, text=True, timeout=60)
        assert all(status in (0, 403) for status, _ in json.loads(inside.stdout)), inside
        base.eventually(lambda: not base.cgroup_pids(cgroup), 3)
    finally:
        daemon.api.ask("DELETE", f"/v1/sessions/{session}")
        base.cgroup_destroy(cgroup)


FOLLOWS = """
import http.client, json, socket, sys
c = http.client.HTTPConnection("np"); c.sock = socket.socket(socket.AF_UNIX); c.sock.settimeout(180); c.sock.connect(sys.argv[1])
c.request("GET", sys.argv[2])
r = c.getresponse()
print(r.status, flush=True)
for line in filter(None, map(bytes.strip, r)):  # an empty one says that it is there
    print(line.decode(), flush=True)
"""


@pytest.mark.parametrize("person", ["root", "operator", "platform", "approver", "reader", "inbox", "nobody"])
def test_streams_of_questions_are_of_what_one_may_see(daemon, person):
    """?follow=1 and ?wait=1, by who they are for: a platform has its own sessions' and no line of another's; who approves or reads has all.
    One of alice's that comes last ends each look: what was to be seen before it, was."""
    own, other = name("alice"), name("bob")

    def waits(session):
        return "run-%d" % daemon.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["true"], "launch": {}})["run"]

    def decided(ident):
        daemon.api.ok("POST", f"/v1/questions/{ident}/answer", {"answer": "deny", "reason": "a test"})

    def follow(query):
        return base.popen(words(daemon, person, [base.PYTHON, "-I", "-c", FOLLOWS, socket_of(daemon, person), f"/v1/questions?{query}"]),
                          stdout=subprocess.PIPE, text=True)

    def until(stream, ident, state):
        got = []
        for line in stream.stdout:
            got.append(json.loads(line))
            if (got[-1]["id"], got[-1]["state"]) == (ident, state):
                break
        return {e["id"] for e in got}

    before = [waits(other), waits(own)]
    streams = []
    try:
        streams = [follow("follow=1"), follow(f"follow=1&session={other}"), follow(f"state=pending&wait=1&session={other}"), follow("state=pending&wait=1")]
        status = [s.stdout.readline().strip() for s in streams[:2]]
        if person == "nobody":
            assert all(s in ("", "403") for s in status) and streams[3].stdout.readline().strip() in ("", "403")
            return
        sees = {own, other} if person != "platform" else {own}
        assert status[0] == "200"
        made = [waits(other), waits(own)]
        seen = until(streams[0], made[1], "pending")
        decided(made[0])
        decided(made[1])
        seen |= until(streams[0], made[1], "denied")
        mine = {before[1], made[1]}
        assert mine <= seen and ({before[0], made[0]} & seen == ({before[0], made[0]} if other in sees else set())), seen
        listed = json.loads((streams[3].stdout.readline(), streams[3].stdout.readline())[1])["questions"]
        assert any(q["session"] == own for q in listed) and any(q["session"] == other for q in listed) == (other in sees)
        if other in sees:
            assert before[0] in until(streams[1], before[0], "pending")
            assert [streams[2].stdout.readline().strip(), json.loads(streams[2].stdout.readline())["questions"][-1]["session"]] == ["200", other]
        else:  # it is refused, or waits for what never comes
            assert status[1] == "403" or not select.select([streams[1].stdout], [], [], 0)[0], status
            assert not select.select([streams[2].stdout], [], [], 0)[0] or streams[2].stdout.readline().strip() == "403"
    finally:
        for stream in streams:
            base.reap(stream)
        for session in (own, other):
            daemon.api.ask("DELETE", f"/v1/sessions/{session}")


@pytest.mark.parametrize("by", ["runs", "questions"])
def test_four_eyes(daemon, by):
    """Who started a run, or its session, does not decide on it, by whichever of the two names; the control is the same before the policy
    says so, and another person."""
    policy = daemon.policy.read_text()

    def waits(person):
        return call(daemon, person, "POST", "/v1/runs", {"session": name(), "class": "write", "command": ["true"], "launch": {}})[1]["run"]

    def decide(person, run):
        if by == "runs":
            return call(daemon, person, "POST", f"/v1/runs/{run}/reject", {"reason": "a test"})
        status, answer = call(daemon, person, "POST", f"/v1/questions/run-{run}/answer", {"answer": "once", "reason": "a test"})
        state = daemon.api.ok("GET", f"/v1/questions/run-{run}")["state"]
        assert state == ("allowed" if status == 200 else "pending"), (status, state)
        if status == 200:
            daemon.api.ask("POST", f"/v1/runs/{run}/cancel", {})  # fine if it is over
        return status, answer

    assert decide("operator", waits("operator"))[0] == 200
    daemon.policy.write_text(policy.replace('approval: {', 'approval: {four_eyes: true, '))
    daemon.api.ok("POST", "/v1/policy/reload", {})
    try:
        for starter in ("operator", "root"):
            run = waits(starter)
            status, answer = decide(starter, run)
            assert status == 403 and "four_eyes" in answer["detail"], answer
            assert decide("inbox", run)[0] == 200
        session = name()
        assert call(daemon, "operator", "POST", "/v1/sessions", {"session": session})[0] in (200, 201)
        run = call(daemon, "platform", "POST", "/v1/runs", {"session": session, "class": "write", "command": ["true"], "launch": {}})[1]["run"]
        assert decide("operator", run)[0] == 403, "nor does who made the session"
        assert decide("root", run)[0] == 200
    finally:
        daemon.policy.write_text(policy)
        daemon.api.ok("POST", "/v1/policy/reload", {})


@pytest.fixture
def four_eyes(daemon):
    policy = daemon.policy.read_text()
    daemon.policy.write_text(policy.replace('approval: {', 'approval: {four_eyes: true, '))
    daemon.api.ok("POST", "/v1/policy/reload", {})
    yield
    daemon.policy.write_text(policy)
    daemon.api.ok("POST", "/v1/policy/reload", {})


ASKS_AND_GIVES_UP = """
import http.client, json, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.settimeout(120); self.sock.connect(sys.argv[1])
def call(method, path, body):
    c = C("np"); c.request(method, path, json.dumps(body)); r = c.getresponse()
    return r.status, json.loads(r.read())
run = call("POST", "/v1/runs", {"session": sys.argv[2], "class": "write", "command": ["true"]})[1]["run"]
print(json.dumps([run, call("POST", f"/v1/runs/{run}/reject", {"reason": "whoever asked for it went away"})]))
"""


@pytest.mark.usefixtures("four_eyes")
def test_what_is_no_decision_needs_no_other_eyes(daemon):
    """Four eyes are for decisions. Who cancels his run, a launcher that is gone, and the process that asked and gives up end a run that
    waits, with the reason that is true; the control is that the same person does not decide."""
    session = name()

    def waits():
        status, answer = call(daemon, "platform", "POST", "/v1/runs", {"session": session, "class": "write", "command": ["true"], "launch": {}})
        assert status == 201, answer
        return answer["run"]

    def shown(run):
        row = daemon.api.ok("GET", f"/v1/runs/{run}")
        return row["state"], row.get("reason")

    run = waits()
    status, answer = call(daemon, "platform", "POST", f"/v1/runs/{run}/cancel", {"reason": "a mistake"})
    assert status == 200 and shown(run) == ("rejected", "cancelled: a mistake"), answer
    run = waits()
    os.kill(base.eventually(lambda: daemon.launcher_of(run)), signal.SIGKILL)
    assert base.eventually(lambda: shown(run)[0] == "rejected"), shown(run)
    assert shown(run)[1] == "it could not be started"
    got = subprocess.run(words(daemon, "operator", [base.PYTHON, "-I", "-c", ASKS_AND_GIVES_UP, daemon.socket, name()]), capture_output=True,
                         text=True, timeout=120)
    run, (status, answer) = json.loads(got.stdout)
    assert status == 200 and shown(run) == ("rejected", "whoever asked for it went away"), answer
    run = call(daemon, "operator", "POST", "/v1/runs", {"session": name(), "class": "write", "command": ["true"]})[1]["run"]
    assert call(daemon, "operator", "POST", f"/v1/runs/{run}/reject", {"reason": "a test"})[0] == 403
    assert shown(run)[0] == "pending"


@pytest.mark.usefixtures("four_eyes")
@pytest.mark.parametrize("how", [{"keep": True}, {"purpose": "a test"}], ids=["keep", "purpose"])
def test_root_has_not_started_what_its_launcher_starts_for_others(daemon, how):
    """The launcher is root, and makes kept sandboxes, and sessions, for whoever asked for the run: that one is noted, and root answers."""
    session = name()

    def waits():
        return call(daemon, "platform", "POST", "/v1/runs", {"session": session, "class": "write", "command": ["true"], "launch": {}})[1]["run"]

    run = call(daemon, "platform", "POST", "/v1/runs", {"session": session, "command": ["true"], "launch": how})[1]["run"]
    assert base.eventually(lambda: daemon.api.ok("GET", f"/v1/runs/{run}")["state"] == "completed"), daemon.api.ok("GET", f"/v1/runs/{run}")
    status, answer = call(daemon, "root", "POST", f"/v1/runs/{waits()}/reject", {"reason": "a test"})
    assert status == 200, answer
    daemon.api.ok("POST", "/v1/sandboxes", {"session": session, "keep": True})  # by root, for itself
    assert call(daemon, "root", "POST", f"/v1/runs/{waits()}/reject", {"reason": "a test"})[0] == 403
    daemon.api.ask("DELETE", f"/v1/sessions/{session}")


@contextlib.contextmanager
def feeds(daemon, person, path, count):
    """Feeds of that person, open until the end; (those that they got, the other answers)."""
    p = subprocess.Popen(words(daemon, person, [base.PYTHON, "-I", "-c", FEEDS, socket_of(daemon, person), path, count]), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    try:
        got = json.loads(p.stdout.readline())
        yield got.count(200), sorted(set(got) - {200})
    finally:
        base.reap(p)


def test_operators_can_follow_whoever_else_does(daemon, things):
    """Two users ask for all feeds that there are, 64 each."""
    mine = things["alice"]["session"]
    with feeds(daemon, "platform", f"/v1/events?follow=1&session={mine}", 64) as one, feeds(daemon, "reader", "/v1/events?follow=1", 64) as two:
        assert one == (64, []), one
        assert two == (32, [429]), two
        for person in ("root", "operator"):
            with feeds(daemon, person, "/v1/events?follow=1", 16) as got:
                assert got == (16, []), (person, got)
    with feeds(daemon, "reader", "/v1/events?follow=1", 64) as two:
        assert two == (64, []), "a bound of its own"


def test_an_attached_run_is_its_readers_alone(daemon):
    """It ends with the reader that it was started for. Another one, who may see it, neither takes its output away nor ends it by leaving;
    the control is that reader, whose end is the run's."""
    session = name()
    status, answer = call(daemon, "platform", "POST", "/v1/runs", {"session": session, "command": ["sh", "-c", "read x; echo $x; sleep 1000"],
                                                                   "launch": {"attach": True}})
    assert status == 201, answer
    run = answer["run"]
    state = lambda: daemon.api.ok("GET", f"/v1/runs/{run}")["state"]

    def follow(person):
        return base.popen(words(daemon, person, [base.PYTHON, "-I", "-c", FOLLOWS, socket_of(daemon, person), f"/v1/runs/{run}/output?follow=1"]),
                          stdout=subprocess.PIPE, text=True)

    streams = [follow("operator")]  # before its reader, and beside it
    try:
        assert base.eventually(lambda: state() == "running")
        assert streams[0].stdout.readline().strip() == "403"
        streams.append(follow("platform"))
        assert streams[1].stdout.readline().strip() == "200"
        for person, wanted in (("root", "403"), ("platform", "429")):
            streams.append(follow(person))
            assert streams[-1].stdout.readline().strip() == wanted
            base.reap(streams[-1])
        assert not base.for_a_while(lambda: state() != "running", 2), "somebody else has left"
        assert call(daemon, "platform", "POST", f"/v1/runs/{run}/input", {"data": "all of it\n"})[0] == 200
        assert "base64" in streams[1].stdout.readline()
        streams[1].kill()
        assert base.eventually(lambda: state() == "failed", 30)
    finally:
        for stream in streams:
            base.reap(stream)
        daemon.api.ask("DELETE", f"/v1/sessions/{session}")
