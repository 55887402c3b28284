# SPDX-License-Identifier: MIT
"""Runs with a class: the stricter of class and mode holds, and what writes was approved."""
import concurrent.futures
import contextlib
import datetime
import json
import pwd
import signal
import sqlite3
import subprocess

import pytest

from lib import base
from lib.api import Failure
from lib.box import new_session
from lib.inspected import inspected
from lib.world import FAR

POLICY = """version: 1
approval: {timeout: 10m}
host_loopback: [7070]
rules:
  - allow: ws.origin.test
    websocket: true
  - allow: pinned.origin.test
    inspect: false
  - allow: [198.51.100.10, "198.51.100.10:9000"]
  - allow: [origin.test, "**.origin.test"]
"""
LISTED = POLICY + base.PERMITS + '  read_only: ["198.51.100.0/24:9000/tcp", 203.0.113.0/24]\n'
CONNECT = f"import socket; socket.create_connection(('{FAR[4]}', 9000), 60).close(); print('through')"


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY, inspectors=1) as i:
        yield i
        assert i.daemon.running()


@pytest.fixture
def session(net):
    name = new_session("runs")
    net.api.create(name)
    return name


def argv(net, session, *words):
    """words: options of netpawl run, "--" and a command."""
    return [*net.world.enter(), str(base.NETPAWL), "run", *base.shown(), "--session", session, *map(str, words)]


def run(net, session, *words, timeout=300):
    return subprocess.run(argv(net, session, *words), capture_output=True, text=True, timeout=timeout, env=net.env(),
                          stdin=subprocess.DEVNULL)


def curl(net, session, options, *words):
    got = run(net, session, *options, "--", "curl", "-sS", "-m", "90", "--connect-to", f"::{FAR[4]}:", "-w",
              "\n%{http_code}", *words)
    return got.stdout.rpartition("\n")[2], got


@pytest.fixture
def waiting(net):
    """start(session, *command) -> (process, run) of a `netpawl run --class write` that waits."""
    started = []

    def start(session, *command, options=(), state="pending"):
        p = base.popen(argv(net, session, *options, "--class", "write", "--", *command), env=net.env(),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(p)
        rows = base.eventually(lambda: net.api.ok("GET", f"/v1/runs?session={session}&state={state}")["runs"])
        return p, rows[0]["run"]

    yield start
    for p in started:
        if p.poll() is None:
            base.reap(p)


def ask(net, session, cls="write", command=("true",)):
    return net.api.ok("POST", "/v1/runs", {"session": session, "class": cls, "command": list(command)})["run"]


def start(net, session, ident):
    return net.api.ask("POST", "/v1/sandboxes", {"session": session, "run": str(ident)})


def show(net, ident):
    return net.api.ok("GET", f"/v1/runs/{ident}")


# -- none -------------------------------------------------------------------------------------------------------------

def test_none_although_the_session_is_full(net, session):
    control = run(net, session, "--", "python3", "-c", CONNECT)
    assert control.stdout == "through\n", control
    got = run(net, session, "--json", "--class", "none", "--", "python3", "-c", CONNECT)
    result = json.loads(got.stdout)
    assert result["exit_code"] != 0 and "through" not in result["stdout"] and "refused" in result["stderr"], result
    assert result["refused"] > 0
    kept = show(net, result["run"])
    assert kept["state"] == "completed" and kept["result"]["exit_code"] == result["exit_code"]
    assert "stdout" not in kept["result"] and kept["command"] == ["python3", "-c", CONNECT]
    # nor did the session tighten
    assert net.api.show(session)["mode"] == "FULL"
    assert run(net, session, "--", "python3", "-c", CONNECT).stdout == "through\n"


def test_none_by_http_too(net, session):
    net.api.escalate(session, "CONFIDENTIAL")
    assert curl(net, session, [], "https://origin.test/")[0] == "200"
    assert curl(net, session, ["--class", "none"], "https://origin.test/")[0] == "000"


# -- read_only --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_read_only_reads(net, session, scheme, version):
    url = f"{scheme}://origin.test/a"
    code, got = curl(net, session, ["--class", "read_only"], version, url)
    assert code == "200" and json.loads(got.stdout.splitlines()[0])["method"] == "GET", got
    code, got = curl(net, session, ["--class", "read_only"], version, "-D", "-", "-d", "hello", url)
    assert code == "403" and "x-netpawl-reason: read_only" in got.stdout.lower(), got
    # the control: the same, inspected, without the class
    net.api.escalate(session, "CONFIDENTIAL")
    assert curl(net, session, [], version, "-d", "hello", url)[0] == "200"


def test_read_only_methods(net, session):
    url = "https://origin.test/a"
    for method, want in (("HEAD", "200"), ("OPTIONS", "200"), ("PUT", "403"), ("DELETE", "403"), ("PATCH", "403"),
                         ("get", "000"), ("PROPFIND", "403")):  # get is no GET, and a broken request in HTTP/2
        words = ["-I"] if method == "HEAD" else ["-X", method]
        code, got = curl(net, session, ["--class", "read_only"], *words, url)
        assert code == want, (method, got)
    for name in ("X-HTTP-Method-Override", "X_HTTP_Method_Override", "x-http_method"):  # many servers know one name for all
        code, got = curl(net, session, ["--class", "read_only"], "-H", f"{name}: DELETE", url)
        assert code == "403", got
    net.api.escalate(session, "CONFIDENTIAL")
    for words in (["-X", "DELETE"], ["-H", "X-HTTP-Method-Override: DELETE"], ["-H", "X_HTTP_Method_Override: DELETE"]):
        assert curl(net, session, [], *words, url)[0] == "200"


def test_read_only_has_no_way_around_the_inspector(net, session):
    net.api.escalate(session, "CONFIDENTIAL")
    read = ["--class", "read_only"]
    upgrade = ["--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13", "-H",
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "https://ws.origin.test/ws"]
    assert curl(net, session, [], "-m", "5", *upgrade)[0] != "403"
    assert curl(net, session, read, "-m", "5", *upgrade)[0] == "403"
    # not even where a rule says inspect: false; there the client sees our certificate instead of the origin's
    assert curl(net, session, [], "-k", "-d", "x", "https://pinned.origin.test/")[0] == "200"
    assert curl(net, session, read, "-k", "-d", "x", "https://pinned.origin.test/")[0] == "403"
    assert curl(net, session, read, "-k", "https://pinned.origin.test/")[0] == "200"
    # addresses that a rule allows
    assert run(net, session, "--", "python3", "-c", CONNECT).stdout == "through\n"
    after = net.last()
    got = run(net, session, *read, "--", "python3", "-c", CONNECT)
    assert got.returncode != 0 and "through" not in got.stdout, got
    events = net.api.wait_events(lambda es: any(e["reason"] == "read_only" for e in es), session=session, after=after)
    assert any(e["reason"] == "read_only" and e["port"] == 9000 for e in events), events
    # tunnels by name
    tunnel = f"""import socket
s = socket.create_connection(('{FAR[4]}', 80), 60)
s.sendall(b'CONNECT {FAR[4]}:9000 HTTP/1.1\\r\\nHost: {FAR[4]}:9000\\r\\n\\r\\n')
print(s.recv(100).split()[1].decode())"""
    assert run(net, session, "--", "python3", "-c", tunnel).stdout == "200\n"
    assert run(net, session, *read, "--", "python3", "-c", tunnel).stdout == "403\n"


WAYS = {
    "kept": """
c = http.client.HTTPSConnection('origin.test', timeout=60)
c.request('GET', '/a'); r = c.getresponse(); r.read(); assert r.status == 200
c.request('POST', '/a', b'x'); print(c.getresponse().status)""",
    "pipelined": """
s = socket.create_connection(('origin.test', 80), 60)
s.sendall(b'GET /a HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n'
          b'POST /a HTTP/1.1\\r\\nHost: origin.test\\r\\nContent-Length: 1\\r\\nConnection: close\\r\\n\\r\\nx')
got = b''
while (b := s.recv(4096)): got += b
print(got.split(b'HTTP/1.1 ')[2][:3].decode())""",
    "body_of_a_get": """
s = socket.create_connection(('origin.test', 80), 60)
inner = b'POST /a HTTP/1.1\\r\\nHost: origin.test\\r\\nContent-Length: 1\\r\\nConnection: close\\r\\n\\r\\nx'
s.sendall(b'GET /a HTTP/1.1\\r\\nHost: origin.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n' + inner)
got = b''
while (b := s.recv(4096)): got += b
print(got.split(b'HTTP/1.1 ')[2][:3].decode())""",
    "absolute": """
c = http.client.HTTPConnection('origin.test', timeout=60)
c.request('POST', 'http://origin.test/a', b'x'); print(c.getresponse().status)""",
    "connect": """
c = http.client.HTTPSConnection('origin.test', 80, timeout=60)
c.set_tunnel('origin.test', 443); c.request('POST', '/a', b'x'); print(c.getresponse().status)""",
    "connect_plain": """
c = http.client.HTTPConnection('origin.test', 80, timeout=60)
c.set_tunnel('origin.test', 80); c.request('DELETE', '/a'); print(c.getresponse().status)""",
    "tcp_by_name": """
s = socket.create_connection(('tcp.origin.test', 9000), 10); s.sendall(b'x'); s.settimeout(2)
try: print(200 if s.recv(10) is not None and s.getpeername() else 0)
except TimeoutError: print(200)""",
    "udp": f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('{FAR[4]}', 9001)); print(200)""",
}


@pytest.fixture(scope="module")
def ways(net):
    text = POLICY.replace("rules:", 'rules:\n  - allow: ["tcp.origin.test:9000", "198.51.100.10:9001/udp"]')
    with policy(net, text + base.PERMITS):
        yield


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write(net, session, ways, way):
    net.api.escalate(session, "CONFIDENTIAL")
    code = "import http.client, socket\n" + WAYS[way]
    control = run(net, session, "--", "python3", "-c", code)
    assert control.stdout == "200\n", control
    got = run(net, session, "--class", "read_only", "--", "python3", "-c", code)
    assert got.stdout == "403\n" if way in ("kept", "pipelined", "body_of_a_get", "absolute", "connect", "connect_plain") \
        else got.returncode != 0 and "200" not in got.stdout, got


@contextlib.contextmanager
def policy(net, text):
    """The daemon has this one, until the end."""
    before = net.daemon.policy.read_text()
    net.daemon.policy.write_text(text)
    try:
        net.daemon.cli("policy", "reload", check=0)
        yield
    finally:
        net.daemon.policy.write_text(before)
        net.daemon.cli("policy", "reload", check=0)


def test_read_only_reaches_listed_addresses(net, session):
    net.api.escalate(session, "CONFIDENTIAL")
    read = ["--class", "read_only", "--", "python3", "-c"]
    tunnel = f"""import socket
s = socket.create_connection(('{FAR[4]}', 80), 60)
s.sendall(b'CONNECT {FAR[4]}:9000 HTTP/1.1\\r\\nHost: {FAR[4]}:9000\\r\\n\\r\\n')
print(s.recv(100).split()[1].decode())"""
    assert "through" not in run(net, session, *read, CONNECT).stdout  # not listed yet
    with policy(net, LISTED):
        got = run(net, session, *read, CONNECT)
        assert got.stdout == "through\n", got
        assert run(net, session, *read, tunnel).stdout == "200\n"
        # requests are judged as ever: the list is for what goes past the inspector
        assert curl(net, session, read[:2], "-d", "x", "https://origin.test/")[0] == "403"
        assert curl(net, session, read[:2], "https://origin.test/")[0] == "200"
        # and class none is none
        assert "through" not in run(net, session, "--class", "none", *read[2:], CONNECT).stdout
        listed = net.daemon.cli("policy", "show", check=0).stdout
        assert "FOR RUNS THAT MAY ONLY READ" in listed and "198.51.100.0/24:9000/tcp" in listed
    assert "through" not in run(net, session, *read, CONNECT).stdout


def test_the_list_opens_nothing_by_itself(net, session):
    """No rule allows it, or the session is at NONE: listed or not."""
    closed = LISTED.replace('[198.51.100.10, "198.51.100.10:9000"]', "198.51.100.10")
    assert closed != LISTED
    words = ["--class", "read_only", "--", "python3", "-c", CONNECT]
    with policy(net, LISTED):
        assert run(net, session, *words).stdout == "through\n"
    with policy(net, closed):
        assert "through" not in run(net, session, *words).stdout
    with policy(net, LISTED.replace("rules:", "rules:\n  - deny: 198.51.100.10:9000")):
        assert "through" not in run(net, session, *words).stdout
    with policy(net, LISTED):
        net.api.escalate(session, "SECRET")
        assert "through" not in run(net, session, *words).stdout


def test_a_list_that_shrinks_cuts(net, session):
    net.api.escalate(session, "CONFIDENTIAL")
    hold = f"""import socket
s = socket.create_connection(('{FAR[4]}', 9000), 60)
print('open', flush=True)
try:
    print('end', s.recv(1))
except OSError as e:
    print('cut', e)"""
    with policy(net, LISTED):
        p = base.popen(argv(net, session, "--class", "read_only", "--", "python3", "-c", hold), env=net.env(),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert p.stdout.readline() == "open\n"
            net.daemon.policy.write_text(POLICY + base.PERMITS)
            net.daemon.cli("policy", "reload", check=0)
            out, _ = p.communicate(timeout=120)
            assert "cut" in out or "end" in out, out
        finally:
            if p.poll() is None:
                base.reap(p)


def test_read_only_and_the_hosts_own_ports(net, session):
    net.api.escalate(session, "CONFIDENTIAL")
    server = base.popen([*net.world.enter(), "python3", "-m", "http.server", "--bind", "127.0.0.1", "7070"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    probe = "import socket; socket.create_connection(('127.0.0.1', 7070), 5); print('through')"
    try:
        assert base.eventually(lambda: run(net, session, "--", "python3", "-c", probe).stdout == "through\n"), "the control"
        got = run(net, session, "--class", "read_only", "--", "python3", "-c", probe)
        assert "through" not in got.stdout, got
    finally:
        base.reap(server)


def test_class_survives_a_restart(net, session):
    """A sandbox of class read_only stays one, and says nothing of its session."""
    p = base.popen(argv(net, session, "--class", "read_only", "--", "sleep", "1000"), env=net.env(),
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        box = base.eventually(lambda: net.api.sandboxes(session), 10)[0]
        assert box["mode"] == "PROXIED"
        net.daemon.restart("kill")
        assert base.eventually(lambda: net.api.health()["inspectors"] == 1)
        assert net.api.sandbox(box["sandbox"])["mode"] == "PROXIED"
        assert net.api.show(session)["mode"] == "FULL"
        assert show(net, net.api.ok("GET", f"/v1/runs?session={session}")["runs"][0]["run"])["state"] == "running"
    finally:
        base.reap(p, signal.SIGTERM)
    assert base.eventually(lambda: net.api.ok("GET", f"/v1/runs?session={session}")["runs"][0]["state"] == "completed")


# -- write ------------------------------------------------------------------------------------------------------------

def test_write_waits_for_its_approval(net, session, waiting):
    p, ident = waiting(session, "python3", "-c", CONNECT)
    assert show(net, ident)["approved"] is None and not net.api.sandboxes(session)
    listed = net.daemon.cli("runs", session, check=0).stdout
    assert str(ident) in listed and "pending" in listed and "socket" in listed
    assert "approved" in net.daemon.cli("approve", ident, check=0).stdout
    out, err = p.communicate(timeout=120)
    assert out == "through\n" and p.returncode == 0 and f"run {ident} waits" in err, err
    kept = show(net, ident)
    assert kept["state"] == "completed" and kept["approved"] is True and kept["decided_by"].startswith("uid 0")
    assert kept["created"] <= kept["decided"] <= kept["started"] <= kept["ended"]


def test_reject(net, session, waiting):
    p, ident = waiting(session, "echo", "ran")
    assert net.daemon.cli("reject", ident).returncode == 2  # why?
    net.daemon.cli("reject", ident, "--reason", "not today", check=0)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 125 and "ran" not in out and "not today" in err
    kept = show(net, ident)
    assert kept["state"] == "rejected" and kept["reason"] == "not today" and kept["started"] is None
    got = net.daemon.cli("approve", ident)
    assert got.returncode == 1 and "run_over" in got.stderr
    assert start(net, session, ident)[0] == 409


def test_nobody_decides(net, session, waiting):
    with policy(net, POLICY.replace("10m", "3s") + base.PERMITS):
        p, ident = waiting(session, "echo", "ran", state="rejected")
        out, err = p.communicate(timeout=240)
    assert p.returncode == 125 and "ran" not in out and "nobody decided in time" in err
    assert show(net, ident)["state"] == "rejected" and show(net, ident)["decided_by"] == "daemon"


def test_whoever_asked_goes_away(net, session, waiting):
    p, ident = waiting(session, "echo", "ran")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=120)
    assert show(net, ident)["state"] == "rejected"
    assert net.daemon.cli("approve", ident).returncode == 1


def test_no_start_without_approval(net, session):
    ident, other = ask(net, session), ask(net, session)
    status, answer = start(net, session, ident)
    assert status == 403 and answer["error"] == "not_approved" and not net.api.sandboxes(session)
    # by telling an end, or another's approval, or another session's name
    status, answer = net.api.ask("POST", f"/v1/runs/{ident}/end", {"state": "completed", "result": {}})
    assert status in (403, 409) and show(net, ident)["state"] == "pending"
    net.api.ok("POST", f"/v1/runs/{other}/approve")
    assert start(net, session, ident)[0] == 403
    assert start(net, new_session("thief"), other)[0] == 404
    for wrong in ("0", "-1", "x", f"{ident} ", f"0x{ident:x}", "99999999999999999999"):
        assert start(net, session, wrong)[0] == 404, wrong
    # the control: the approved one, once
    status, box = start(net, session, other)
    assert status == 201 and show(net, other)["state"] == "running" and show(net, other)["sandbox"] == box["sandbox"]
    assert start(net, session, other)[0] == 409
    net.api.remove(box["sandbox"])
    assert start(net, session, other)[0] == 409
    net.api.ok("POST", f"/v1/runs/{other}/end", {"state": "completed", "result": {"exit_code": 0}})
    assert start(net, session, other)[0] == 409


@pytest.mark.parametrize("body", [
    {"class": "write", "command": ["x"]}, {"session": "a/b", "class": "write"},
    {"session": "a/b", "class": "", "command": ["x"]}, {"session": "a/b", "class": "all", "command": ["x"]},
    {"session": "a/b", "class": "write", "command": []}, {"session": "a/b", "class": "write", "command": "x"},
    {"session": "a/b", "class": "write", "command": [1]}, {"session": "a/b", "class": "write", "command": ["", "x"]}, {"session": "a/b", "class": "write", "command": {"a": "b"}},
    {"session": "a/b", "class": "write", "command": ["x"], "state": "running"},
    {"session": "a/b", "class": "write", "command": ["x"], "approved": "yes"},
    {"session": "a/b", "class": "write", "command": ["x" * 20000]},
    {"session": "a/b", "command": ["x"], "launch": []}, {"session": "a/b", "command": ["x"], "launch": {"user": "root"}},
    {"session": "a/b", "command": ["x"], "launch": {"memory": 5}}])
def test_bad_asks(net, body):
    status, answer = net.api.ask("POST", "/v1/runs", body)
    assert status in (400, 413) and answer["detail"], answer


@pytest.mark.parametrize("command,detail", [
    ([], '"command" has no word'), ("ls", '"command" must be an array, not a string'), (["ls", 1], 'word 2 of "command" is no text'),
    ([""], '"command" names no program: its first word is empty')])
def test_what_is_wrong_with_a_command(net, command, detail):
    status, answer = net.api.ask("POST", "/v1/runs", {"session": "a/b", "command": command, "launch": {}})
    assert (status, answer["error"], answer["detail"]) == (400, "bad_field", detail)


def test_races_of_decisions(net, session):
    """Of many who decide at once, one does; and what runs is what was approved."""
    idents = [ask(net, session) for _ in range(8)]

    def decide(k):
        ident, way = idents[k % 8], k // 8 % 3
        if way == 2:
            return ident, "start", start(net, session, ident)[0]
        verb, body = ("approve", {}) if way == 0 else ("reject", {"reason": "no"})
        return ident, verb, net.api.ask("POST", f"/v1/runs/{ident}/{verb}", body)[0]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(decide, range(96)))
    for ident in idents:
        done = [verb for i, verb, status in got if i == ident and status in (200, 201)]
        row = show(net, ident)
        assert sum(v in ("approve", "reject") for v in done) == 1, (done, row)
        assert done.count("start") <= 1
        if "reject" in done:
            assert "start" not in done and row["state"] == "rejected" and row["started"] is None
        else:
            assert row["approved"] is True and row["decided"] <= (row["started"] or row["decided"])
    for box in net.api.sandboxes(session):
        net.api.remove(box["sandbox"])


def test_restart_starts_nothing(net, session, waiting):
    p, ident = waiting(session, "echo", "ran")
    approved = ask(net, session)
    net.api.ok("POST", f"/v1/runs/{approved}/approve", {"reason": "fine"})
    net.daemon.restart("kill")
    assert base.eventually(lambda: net.api.health()["inspectors"] == 1)
    assert show(net, ident)["state"] == "pending" and not net.api.sandboxes(session)
    assert start(net, session, ident)[0] == 403
    assert show(net, approved)["approved"] is True and show(net, approved)["started"] is None
    net.api.ok("POST", f"/v1/runs/{ident}/approve")  # whoever waits has waited through it
    out, err = p.communicate(timeout=120)
    assert out == "ran\n", err


def test_the_file_itself(net, session):
    """Root with sqlite3 and no idea of us."""
    ident = ask(net, session)
    db = sqlite3.connect(net.daemon.state_dir / "sessions.db", timeout=5)
    try:
        for sql in (f"UPDATE runs SET state = 'running' WHERE id = {ident}",
                    f"UPDATE runs SET class = 'none' WHERE id = {ident}",
                    "INSERT INTO runs (session, class, command, state, who, created_us, expires_us)"
                    f" VALUES ('{session}', 'write', '[]', 'running', '', 1, 2)"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(sql)
            db.rollback()
    finally:
        db.close()
    assert start(net, session, ident)[0] == 403


def test_an_old_approval_meets_no_new_run(net, session):
    """Ids can be made to come again by who writes to the file. What was approved under one of them is not on record then."""
    old = ask(net, session)
    net.api.ok("POST", f"/v1/runs/{old}/approve")
    assert start(net, session, old)[0] == 201
    net.api.ok("POST", f"/v1/runs/{old}/end", {"state": "completed", "result": {}})
    for box in net.api.sandboxes(session):
        net.api.remove(box["sandbox"])
    columns = "session, class, command, state, who, created_us, expires_us, options"
    db = sqlite3.connect(net.daemon.state_dir / "sessions.db", timeout=5, isolation_level=None)  # foreign keys are off
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"DELETE FROM runs WHERE id = {old}")
        assert db.execute(f"SELECT approved FROM approvals WHERE run = {old}").fetchone() == (1,)
        db.execute(f"UPDATE sqlite_sequence SET seq = {old - 1} WHERE name = 'runs'")
        values = f"'{session}', 'write', '[\"other\"]', 'pending', '', 1, {1 << 60}, '{{}}'"
        for way in ("INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE", "INSERT OR FAIL"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(f"{way} INTO runs ({columns}) VALUES ({values})")
    finally:
        db.execute("ROLLBACK")
        db.close()


def test_what_was_asked_for_stays(net, session):
    ident = ask(net, session)
    net.api.ok("POST", f"/v1/runs/{ident}/approve")
    db = sqlite3.connect(net.daemon.state_dir / "sessions.db", timeout=5, isolation_level=None)
    try:
        for change in ("command = '[\"other\"]'", "options = '{\"user\":\"root\"}'", "session = 'other/session'", "class = ''",
                       "launched = 1 - launched", "id = id + 1000", "who = 'me'", "expires_us = expires_us + 1",
                       "expires_us = 9223372036854775807"):
            for way in ("UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"):
                with pytest.raises(sqlite3.IntegrityError):
                    db.execute(f"{way} runs SET {change} WHERE id = {ident}")
    finally:
        db.close()
    net.api.ok("GET", f"/v1/runs/{ident}")


def test_an_approval_is_good_for_a_minute(net, session):
    """However long there was to decide."""
    with policy(net, POLICY.replace("10m", "12h") + base.PERMITS):
        ident = ask(net, session)
        when = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        row = show(net, ident)
        assert when(row["expires"]) - when(row["created"]) > datetime.timedelta(hours=11)
        row = net.api.ok("POST", f"/v1/runs/{ident}/approve")
        assert when(row["expires"]) - when(row["decided"]) == datetime.timedelta(minutes=1), row
        net.api.ok("POST", f"/v1/runs/{ask(net, session)}/reject", {"reason": "no"})


def test_who_approves_sees_the_options(net, session, waiting):
    p, ident = waiting(session, "true", options=["--isolation", "none", "--user", "nobody", "--memory", "1GiB"])
    row = show(net, ident)
    assert row["options"].pop("bind", None) and row["options"].pop("cwd")
    assert row["options"] == {"isolation": "none", "user": "nobody", "memory": "1GiB"} and row["launched"] is False
    listed = net.daemon.cli("runs", session, check=0).stdout
    assert '"isolation":"none"' in listed and '"user":"nobody"' in listed
    # who takes it from the record has those options and no others
    for words in (["--user", "root"], ["--bind", "/etc:/x"], ["--isolation", "full"], ["--memory", "2GiB"], ["--best-effort"],
                  ["--chdir", "/"], ["--level", "SECRET"]):
        assert net.daemon.launcher(ident, *words).returncode == 2, words
    net.api.ok("POST", f"/v1/runs/{ident}/reject", {"reason": "no"})
    p.communicate(timeout=120)
    recorded = net.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["id", "-u"],
                                               "options": {"user": "nobody"}})["run"]
    net.api.ok("POST", f"/v1/runs/{recorded}/approve")
    got = net.daemon.launcher(recorded, check=0)
    assert got.stdout == f"{pwd.getpwnam('nobody').pw_uid}\n"


@pytest.mark.parametrize("options", [{"x": "y"}, {"user": 1}, {"bind": "/a:/b"}, {"bind": [1]}, {"best_effort": "yes"},
                                     {"user": "x" * 9000}, [], {"record": "1"}, {"class": "none"}, {"session": "a/b"}])
def test_bad_options(net, session, options):
    status, answer = net.api.ask("POST", "/v1/runs", {"session": session, "command": ["x"], "options": options})
    assert status in (400, 413) and answer["detail"], answer


def test_bad_results(net, session):
    ident = ask(net, session, "none")
    box = start(net, session, ident)[1]
    for body in ({"state": "completed"}, {"state": "completed", "result": []}, {"state": "pending", "result": {}},
                 {"state": "completed", "result": {"x": "y" * 9000}}, {"state": "running", "result": {}}):
        assert net.api.ask("POST", f"/v1/runs/{ident}/end", body)[0] in (400, 413), body
    net.api.ok("POST", f"/v1/runs/{ident}/end", {"state": "completed", "result": {}})
    assert net.api.ask("POST", f"/v1/runs/{ident}/end", {"state": "failed", "result": {}})[0] == 409
    net.api.remove(box["sandbox"])


def test_a_result_with_the_former_names(net, session):
    """What a launcher of an older version puts on record, and what is there from before, is shown with the names of today."""
    ident = ask(net, session, "none")
    box = start(net, session, ident)[1]
    former = {"exit_code": 0, "denied": 3, "bytes_out": 5, "bytes_in": 7, "requests": 2}
    net.api.ok("POST", f"/v1/runs/{ident}/end", {"state": "completed", "result": former})
    today = {"exit_code": 0, "refused": 3, "sent": 5, "received": 7, "requests": 2}
    assert show(net, ident)["result"] == today
    net.api.remove(box["sandbox"])


def test_an_ended_session_runs_nothing(net, session):
    ident = ask(net, session)
    net.api.ok("POST", f"/v1/runs/{ident}/approve")
    net.api.end(session)
    assert show(net, ident)["state"] == "rejected"
    assert start(net, session, ident)[0] == 409 and net.api.show(session)["ended"]


def test_long_poll(net, session):
    ident = ask(net, session)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(net.api.ok, "GET", f"/v1/runs/{ident}?wait=1") for _ in range(2)]
        assert not concurrent.futures.wait(waits, 2.5).done  # over two ticks of the server
        net.api.ok("POST", f"/v1/runs/{ident}/reject", {"reason": "no"})
        assert [w.result(120)["state"] for w in waits] == ["rejected"] * 2
    assert net.api.ok("GET", f"/v1/runs/{ident}?wait=1")["state"] == "rejected"  # nothing will change: at once
    with pytest.raises(Failure):
        net.api.ok("GET", f"/v1/runs/{ident}?wait=2")


def test_events_tell(net, session):
    after = net.last()
    ident = ask(net, session, command=["echo", "hi"])
    net.api.ok("POST", f"/v1/runs/{ident}/reject", {"reason": "frozen"})
    got = net.api.wait_events(lambda es: any(e["reason"] == "run_rejected" for e in es), session=session, after=after)
    told = [e for e in got if e["reason"].startswith("run_")]
    assert [e["reason"] for e in told] == ["run_asked", "run_rejected"]
    assert "frozen" in told[1]["text"] and '["echo","hi"]' in told[0]["text"] and told[1]["who"].startswith("uid 0")


def test_words_of_every_kind(net, session):
    """What a hostile asker wrote does not mislead who reads it: neither the terminal nor the journal."""
    for shift in range(4):
        word = "x" * shift + "\u20ac" * 300 + "\x1b[2J\u202e\n"
        ident = ask(net, session, command=["echo", word])
        assert show(net, ident)["command"] == ["echo", word]
        listed = net.daemon.cli("runs", session, check=0).stdout
        assert "\x1b" not in listed and "\u202e" not in listed
        assert len([line for line in listed.splitlines() if line.startswith(f"{ident} ")]) == 1
        told = net.daemon.cli("reject", ident, "--reason", "no", check=0).stdout
        assert told.count("\n") == 1 and "\x1b" not in told
    status, _, text = net.api.raw("GET", f"/v1/events?session={session}")
    assert status == 200 and json.loads(text.decode("utf-8", "strict").splitlines()[-1])


def test_many_words(net, session):
    """As many as fit are kept to the last; one more byte is refused, not cut."""
    room = 16384 - len('["echo",""]')
    ident = ask(net, session, command=["echo", "x" * room])
    assert show(net, ident)["command"] == ["echo", "x" * room]
    net.api.ok("POST", f"/v1/runs/{ident}/reject", {"reason": "no"})
    for command in (["echo", "x" * (room + 1)], ["echo", "\u20ac" * (room // 3 + 1)], ["\n" * 9000]):
        status, answer = net.api.ask("POST", "/v1/runs", {"session": session, "class": "write", "command": command})
        assert status == 413, answer
    for word in ("a\0b", "\ud800"):
        assert net.api.ask("POST", "/v1/runs", {"session": session, "class": "write", "command": [word]})[0] == 400


def test_an_agent_is_told_what_would_help(net, session):
    """Not the policy, and not the session's level: the class of the run."""
    got = curl(net, session, ["--class", "read_only"], "-d", "x", "https://origin.test/")[1]
    answer = json.loads(got.stdout.splitlines()[0])
    assert answer["reason"] == "read_only" and "class write" in answer["hint"] and "policy" not in answer["hint"], answer
    run(net, session, "--class", "none", "--", "python3", "-c", CONNECT)
    told = base.eventually(lambda: (w := net.api.ok("GET", f"/v1/sessions/{session}/why"))["refused"] and
                           [r for r in w["refused"] if r["reason"] == "mode_none"], 10)
    assert "class none" in told[0]["hint"] and "session stays closed" not in told[0]["hint"], told
    net.api.escalate(session, "SECRET")
    told = net.api.ok("GET", f"/v1/sessions/{session}/why")["refused"]
    told = [r for r in told if r["reason"] in ("mode_none", "read_only")]
    assert told and all("session stays closed" in r["hint"] for r in told), told
