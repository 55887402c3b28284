# SPDX-License-Identifier: MIT
"""The control API as a stranger would treat it: every wrong request has a clear answer, and the daemon is none the worse."""
import json
import os
import socket
import stat
import subprocess
import threading
import time

import pytest

from lib import base
from lib.api import Connection
from lib.box import new_session
from lib.daemon import Daemon


@pytest.fixture(autouse=True)
def healthy(daemon):
    yield
    assert daemon.running()
    assert daemon.api.health()["status"] == "ok"


def raw(daemon, data, timeout=5, half=False):
    """Bytes on a connection; everything that comes back until the daemon closes or the time is over."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    got = b""
    try:
        s.connect(str(daemon.socket))
        try:
            s.sendall(data)
        except BrokenPipeError:
            pass  # it has heard enough; what it said is still there to be read
        if half:
            s.shutdown(socket.SHUT_WR)
        while chunk := s.recv(65536):
            got += chunk
    except OSError:
        pass
    finally:
        s.close()
    return got


def test_health(api, daemon):
    got = api.health()
    assert got["status"] == "ok" and got["pid"] == daemon.process.pid
    assert isinstance(got["sessions"], int) and isinstance(got["sandboxes"], int) and got["version"]


def test_socket_mode(daemon):
    mode = os.stat(daemon.socket).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660


def test_ordinary_users_do_not_get_in(world, daemon):
    text = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    got = world.outside_user.answer("raw_request", dict(path=str(daemon.socket), text=text), 120)
    assert not got["ok"] and got["error"] == "EACCES", got


def test_curl_is_a_client(world, daemon):
    out = base.sh("curl", "-sS", "--unix-socket", daemon.socket, "http://localhost/v1/health").stdout
    assert json.loads(out)["status"] == "ok"
    session = new_session("curl")
    out = base.sh("curl", "-sS", "--unix-socket", daemon.socket, "-d", '{"level":"SECRET","dataset":"x"}',
                  f"http://localhost/v1/sessions/{session}/datasets").stdout
    assert json.loads(out)["mode"] == "NONE"


def test_keep_alive(daemon):
    c = Connection(daemon.socket, 5)
    for _ in range(5):
        c.request("GET", "/v1/health")
        r = c.getresponse()
        assert r.status == 200 and json.loads(r.read())["status"] == "ok"
    c.close()


BAD_BODIES = [
    (b"", ("bad_json", "bad_field")), (b"{", ("bad_json",)), (b"nonsense", ("bad_json",)), (b"[]", ("bad_json", "bad_field")),
    (b'"text"', ("bad_json", "bad_field")), (b"null", ("bad_json", "bad_field")), (b"{}", ("bad_field",)),
    (b'{"session":"a/b"} trailing', ("bad_json",)), (b'{"session":"a/b"}{}', ("bad_json",)),
    (b'{"session":"a/b","session":"c/d"}', ("bad_json", "bad_field")),
    (b'{"session":"a/b","colour":"red"}', ("unknown_field",)), (b'{"session":5}', ("bad_field",)),
    (b'{"session":null}', ("bad_field",)), (b'{"session":["a/b"]}', ("bad_field",)),
    (b'{"session":{"session":{"session":{"session":{"session":{}}}}}}', ("bad_json", "bad_field")),
    (b'{"session":"a/b\\u0000c"}', ("bad_json", "bad_field", "bad_name")), (b'{"session":"a/b\0"}', ("bad_json",)),
    (b"\xff\xfe", ("bad_json",)), (b'{"session":"\xff/b"}', ("bad_json",)), (b"[" * 5000, ("bad_json",)),
    (b'{"session":"a/b","level":7}', ("bad_field", "bad_level")),
]


@pytest.mark.parametrize("body,errors", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_bad_bodies(api, body, errors):
    for path in ("/v1/sessions", "/v1/sandboxes"):
        if path == "/v1/sandboxes" and b"level" in body:
            errors = errors + ("unknown_field",)
        status, answer = api.ask("POST", path, body)
        assert status == 400 and answer["error"] in errors, (path, answer)
        assert answer["message"] and set(answer) <= {"error", "message", "detail"}


def test_errors_name_the_field(api):
    _, answer = api.ask("POST", "/v1/sessions", b'{"session":"a/b","colour":"red"}')
    assert "colour" in answer["detail"]
    _, answer = api.ask("POST", "/v1/sessions", b'{"session":5}')
    assert "session" in answer["detail"]


def test_oversized_body(api, daemon):
    for size in (64 * 1024 + 1, 1 << 20):
        body = b'{"session":"' + b"a" * size + b'"}'
        got = raw(daemon, b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert b" 413 " in got.split(b"\r\n")[0] and b"too_large" in got, got[:300]


def test_lying_lengths(daemon):
    """Announced and not sent, announced enormous, negative, twice."""
    for head in (b"Content-Length: 99999999999", b"Content-Length: -1", b"Content-Length: 5\r\nContent-Length: 7",
                 b"Content-Length: x", b"Transfer-Encoding: chunked\r\nContent-Length: 3"):
        got = raw(daemon, b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n{}", timeout=1, half=True)
        assert b" 200 " not in got[:20] and b" 201 " not in got[:20], (head, got[:100])


def test_chunked_body(daemon):
    session = new_session("chunk").encode()
    body = b'{"session":"%s"}' % session
    text = b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    text += b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    assert b" 201 " in raw(daemon, text)[:20]
    big = b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    got = raw(daemon, big + (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 4 + b"0\r\n\r\n", timeout=1)
    assert b" 413 " in got[:20] or b" 400 " in got[:20], got[:200]


@pytest.mark.parametrize("text", [b"\0\0\0\0", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
                                  b"GET " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n",
                                  b"GET /v1/health HTTP/1.1\r\n" + b"X: " + b"y" * 70000 + b"\r\n\r\n",
                                  b"GET /v1/health HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n"])
def test_not_http(daemon, text):
    got = raw(daemon, text, timeout=1, half=True)
    assert b" 200 " not in got[:20]


@pytest.mark.parametrize("method,path,status,error", [
    ("GET", "/", 404, "no_such_path"), ("GET", "/v2/health", 404, "no_such_path"), ("GET", "/v1", 404, "no_such_path"),
    ("GET", "/v1/health/x", 404, "no_such_path"), ("POST", "/v1/health", 405, "bad_method"),
    ("PUT", "/v1/sessions", 405, "bad_method"), ("DELETE", "/v1/sessions", 405, "bad_method"),
    ("PATCH", "/v1/sandboxes", 405, "bad_method"), ("GET", "/v1/sessions/a/b/datasets", 405, "bad_method"),
    ("GET", "/v1/sessions/a", 404, None), ("GET", "/v1/health?x=1", 400, "bad_request"),
    ("GET", "/v1/sessions?ended=maybe", 400, None), ("GET", "/v1/events?limit=-1", 400, None),
    ("GET", "/v1/events?limit=x", 400, None), ("GET", "/v1/events?colour=red", 400, "bad_request"),
    ("GET", "/v1/events?after=x", 400, None), ("GET", "/v1/events?reason=nonsense", 400, None),
    ("GET", "/v1/events?session=nonsense", 400, None)])
def test_wrong_places(api, method, path, status, error):
    got, headers, text = api.raw(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else None)
    answer = json.loads(text)
    assert got == status, (got, answer)
    assert error is None or answer["error"] == error
    assert answer["message"]
    if status == 405:
        assert headers["Allow"]


def test_slow_clients(daemon, api):
    """Fifty that connect and say half a request: the others are served at once, and the slow ones are dropped."""
    slow = []
    try:
        for i in range(50):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(daemon.socket))
            s.send([b"", b"GET /v1/hea", b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"][i % 3])
            slow.append(s)
        for _ in range(20):
            assert api.health()["status"] == "ok"
        session = new_session("slow")
        assert api.escalate(session, "SECRET")["mode"] == "NONE"
        closed = 0
        end = time.monotonic() + 40
        for s in slow:
            s.settimeout(max(0.1, end - time.monotonic()))
            try:
                while s.recv(4096):
                    pass
                closed += 1
            except ConnectionError:
                closed += 1
            except OSError:
                pass
        assert closed == len(slow), "a silent client is dropped in the end"
    finally:
        for s in slow:
            s.close()


def test_dripping_client(daemon, api):
    """One byte at a time holds up nobody."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(daemon.socket))
    text = b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for b in text:
        s.send(bytes([b]))
        time.sleep(0.002)
    s.settimeout(5)
    assert b" 200 " in s.recv(4096)
    s.close()


def test_more_clients_than_there_are_places(daemon, api):
    """At the bound new clients wait or are turned away; when the crowd goes the daemon serves again."""
    crowd = []
    try:
        for _ in range(400):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(0.5)
            try:
                s.connect(str(daemon.socket))
            except OSError:
                s.close()
                break
            crowd.append(s)
        assert len(crowd) > 100
    finally:
        for s in crowd:
            s.close()

    def serves():
        try:
            return api.health()["status"] == "ok"
        except OSError:
            return False
    assert base.eventually(serves, 10)


def test_clients_that_vanish(daemon, api):
    """A request whose answer nobody reads."""
    for i in range(50):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(daemon.socket))
        s.send(b"GET /v1/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n" if i % 2 else
               b"GET /v1/sessions HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        s.close()
    assert base.eventually(lambda: api.health()["status"] == "ok")


def test_follower_that_does_not_read(daemon, api):
    """It misses events; the daemon does not wait for it."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(daemon.socket))
    s.send(b"GET /v1/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    try:
        for i in range(300):
            api.escalate(f"tester/follow{i % 3}", "SECRET", dataset="x" * 100 + str(i), reason="r" * 500)
        assert api.health()["status"] == "ok"
    finally:
        s.close()


def test_too_many_followers(daemon, api):
    feeds = []
    try:
        for _ in range(70):  # one user has 64
            feeds.append(api.follow())
        statuses = [f.status for f in feeds]
        assert 200 in statuses and 429 in statuses, statuses
        assert set(statuses) == {200, 429}
    finally:
        for f in feeds:
            f.close()
    assert base.eventually(lambda: _status(api) == 200, 10), "places are given back"


def _status(api):
    f = api.follow()
    try:
        return f.status
    finally:
        f.close()


def test_many_at_once(api):
    """Eight threads, two hundred requests each kind: every answer is whole and its own."""
    errors = []

    def one(n):
        try:
            for i in range(25):
                name = f"tester/many-{n}-{i}"
                assert api.create(name)["session"] == name
                assert api.escalate(name, "CONFIDENTIAL")["session"] == name
                assert api.show(name)["level"] == "CONFIDENTIAL"
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors, errors[:3]


def test_datasets_are_bounded(api):
    name = new_session("many")
    last = None
    c = Connection(api.path, 20)
    for i in range(1030):
        c.request("POST", f"/v1/sessions/{name}/datasets", json.dumps({"level": "PUBLIC", "dataset": f"d{i}"}))
        r = c.getresponse()
        last = r.status, json.loads(r.read())
        if r.status != 200:
            break
    c.close()
    assert last[0] == 429 and last[1]["error"] == "too_many", last
    assert len(api.show(name)["datasets"]) == 1024
    # the bound is on the list, not on the ratchet
    assert api.escalate(name, "SECRET")["mode"] == "NONE"


def test_usage_errors_of_the_daemon(world):
    for words in (["--nonsense"], ["stray"], ["--cgroup", "../up"], ["--cgroup", ""]):
        p = subprocess.run([*world.enter(), str(base.NETPAWLD), *words], capture_output=True, text=True, timeout=180)
        assert p.returncode == 2 and p.stderr, (words, p)
    assert base.sh(base.NETPAWLD, "--help").stdout.startswith("Usage")
    assert base.sh(base.NETPAWLD, "--version").stdout.startswith("netpawld")


def test_health_is_json_whatever_the_cgroup_is_called(world):
    """A name that the administrator chose is escaped, not printed between quotes."""
    d = Daemon(world)
    d.cgroup += 'x"y\\z\u00e9'
    try:
        d.start()
        assert d.api.health()["cgroup"] == str(d.slice)
    finally:
        d.close()
