# SPDX-License-Identifier: MIT
"""The inspector under attack: by a sandbox, by an origin, by a name server, and by its own worker processes."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from lib import base, websocket
from lib.daemon import Daemon
from lib.rogues import Rogues as Net, frame, read_head, says
from lib.world import DEV, FAR, HOST4, HOST6, World

SECOND4 = "192.0.2.77"  # a second address of the host, in the subnet of its first
SECRET = b"a listener of the host"
POLICY = """version: 1
rules:
  - deny: bad.test
  - allow: order.test
    paths: ["/a/**"]
  - deny: 203.0.113.0/24
  - allow: get.origin.test
    methods: [GET]
  - deny: get.origin.test
  - allow: [pinned.test, slow.test]
    inspect: false
  - allow: ws.test
    websocket: true
  - allow: ["**.test"]
"""

# HTTP/2 by hand: prior knowledge on a plain connection.
H2 = r"""
import socket, ssl, struct, time, os, sys
def frame(t, f, sid, p=b""):
    return struct.pack("!I", len(p))[1:] + bytes([t, f]) + struct.pack("!I", sid) + p
def request(sid, host, path=b"/", end=True):
    return frame(1, 5 if end else 4, sid, b"\x82\x86\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(host)]) + host)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
FAR = %r
""" % FAR[4]


def ends_workers(test):
    test.ends_workers = True
    return test


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Net(stack, POLICY)
        n.world.ip("addr", "add", f"{SECOND4}/24", "dev", DEV)
        for addr in (HOST4, SECOND4, "127.0.0.1", "127.9.9.9", HOST6, "::1"):
            n.listen(n.world.host, addr, 80, says(SECRET))
        yield n


@pytest.fixture(autouse=True)
def unharmed(request):
    """No attack ends a worker, but where the test does it itself."""
    if "net" not in request.fixturenames:
        yield
        return
    net = request.getfixturevalue("net")
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
    before = net.workers()
    yield
    assert net.daemon.running()
    if not getattr(request.function, "ends_workers", False):
        assert net.workers() == before, "a worker died: " + net.daemon.text()[-3000:]


# -- the front door --------------------------------------------------------------------------

def listeners(enter):
    text = base.sh(*enter, "ss", "-Hltn").stdout
    return [line.split()[3].rsplit(":", 1) for line in text.splitlines()]


# Dials what it is given and, where it is told to, what listens where it lives: in a network of its own that are other ports.
DIAL = """
import socket
doors, own = %r
for addr, table in (("127.0.0.1", "tcp"), ("::1", "tcp6")) if own else ():
    rows = [line.split() for line in open("/proc/net/" + table)][1:]
    doors += [(addr, int(row[1].split(":")[1], 16)) for row in rows if row[3] == "0A"]
for addr, port in set(doors):
    try:
        s = socket.create_connection((addr, port), 30)
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n")
        print("got", s.recv(100))
    except OSError as e:
        print(type(e).__name__)
"""


def test_the_inspectors_port_is_not_for_dialling(net):
    doors = [(a.strip("[]"), int(p)) for a, p in listeners(net.world.enter()) if a in ("127.0.0.1", "[::1]") and int(p) > 1024]
    assert {a for a, _ in doors} == {"127.0.0.1", "::1"}
    out, _ = net.python(DIAL % ((doors, True),)).communicate(timeout=120)
    refused = out.decode().split()
    assert set(refused) == {"ConnectionRefusedError"} and len(refused) >= len(doors) + 2 * (base.NETWORK == "private"), out
    # From the host: the connection is nobody's, so it ends without a word. (Control: it is there to be dialled.)
    out = net.bare(base.PYTHON, "-c", DIAL % ((doors, False),)).decode()
    assert "got" not in out.replace("got b''", "") and "Refused" not in out, out


@pytest.mark.parametrize("addr,port_ok", [
    ("127.0.0.1", True), ("127.9.9.9", True), (HOST4, True), (SECOND4, True), (HOST6, True), ("::1", True), ("0.0.0.0", True),
    ("::ffff:127.0.0.1", True), ("64:ff9b::127.0.0.1", False), (f"64:ff9b::{SECOND4}", False), ("2002:7f00:1::1", False),
    ("169.254.169.254", False), ("64:ff9b::169.254.169.254", False), ("fd00:ec2::254", False), ("::", True)])
def test_no_name_leads_to_the_host_or_to_metadata(net, addr, port_ok):
    name = f"ssrf{next(net.fresh)}.test"
    net.names[name] = [addr]
    if port_ok:
        assert SECRET in net.plain(f"http://{name}/")  # control: without the inspector it is there
    got = net.get(f"http://{name}/", "-D", "-")
    assert SECRET not in got and b"x-netpawl-reason: address_refused" in got.lower(), got


def test_another_sandboxs_listener_is_not_an_origin(net):
    other = net.new_session()
    p = net.python("import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8088, bind='0.0.0.0')", session=other,
                   stderr=subprocess.DEVNULL)
    try:
        there = lambda: [["nsenter", "-t", pid, "-n"] for s in net.api.sandboxes(other) for pid in base.cgroup_pids(s["cgroup"])]
        assert base.eventually(lambda: any(port == "8088" for enter in there() for _, port in listeners(enter)))
        net.names["box.test"] = [HOST4]
        got = net.raw("GET http://box.test:8088/ HTTP/1.1\r\nHost: box.test:8088\r\nConnection: close\r\n\r\n")
        assert b"403" in got.split(b"\r\n")[0], got
    finally:
        base.reap(p)


# -- judged as one thing, sent as another -------------------------------------------------------

GET = "GET / HTTP/1.1\r\nHost: rec.test\r\n"
INNER = "POST /smuggled HTTP/1.1\r\nHost: rec.test\r\nContent-Length: 0\r\n\r\n"
SMUGGLE = {
    "two lengths": f"POST / HTTP/1.1\r\nHost: rec.test\r\nContent-Length: 0\r\nContent-Length: {len(INNER)}\r\n\r\n{INNER}",
    "length and chunked": f"POST / HTTP/1.1\r\nHost: rec.test\r\nContent-Length: {len(INNER) + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{INNER}",
    "chunked, twisted": f"POST / HTTP/1.1\r\nHost: rec.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{INNER}",
    "chunked behind a tab": f"POST / HTTP/1.1\r\nHost: rec.test\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{INNER}",
    "space before the colon": f"POST / HTTP/1.1\r\nHost: rec.test\r\nContent-Length : {len(INNER)}\r\n\r\n{INNER}",
    "folded": f"GET / HTTP/1.1\r\nHost: rec.test\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n{INNER}",
    "bare LF": f"GET / HTTP/1.1\nHost: rec.test\n\n{INNER}",
    "bare CR in a value": f"GET / HTTP/1.1\r\nHost: rec.test\r\nX: a\rGET /smuggled HTTP/1.1\r\n\r\n",
    "NUL in a value": f"GET / HTTP/1.1\r\nHost: rec.test\r\nX: a\0\r\n\r\n{INNER}",
    "two hosts": f"GET /smuggled HTTP/1.1\r\nHost: rec.test\r\nHost: bad.test\r\n\r\n",
    "no host": "GET /smuggled HTTP/1.1\r\n\r\n",
    "host and target differ": "GET http://rec.test/smuggled HTTP/1.1\r\nHost: bad.test\r\n\r\n",
    "a user in the target": "GET http://rec.test@bad.test/smuggled HTTP/1.1\r\nHost: bad.test\r\n\r\n",
    "a path in the host": "GET / HTTP/1.1\r\nHost: rec.test/smuggled\r\n\r\n",
    "chunk size with a sign": f"POST / HTTP/1.1\r\nHost: rec.test\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n{INNER}",
    "chunk size too long": f"POST / HTTP/1.1\r\nHost: rec.test\r\nTransfer-Encoding: chunked\r\n\r\n{'0' * 30}\r\n\r\n{INNER}",
    "negative length": f"POST / HTTP/1.1\r\nHost: rec.test\r\nContent-Length: -1\r\n\r\n{INNER}",
    "a space in the target": "GET /a /smuggled HTTP/1.1\r\nHost: rec.test\r\n\r\n",
    "no version": "GET /smuggled\r\n\r\n",
    "HTTP/1.2": "GET /smuggled HTTP/1.2\r\nHost: rec.test\r\n\r\n",
    "forbidden port in Host": "GET /smuggled HTTP/1.1\r\nHost: rec.test:22\r\n\r\n",
}


@pytest.fixture(scope="module")
def recorder(net):
    seen = []

    def record(c):
        while True:
            piece = c.recv(65536)
            if not piece:
                return
            seen.append(piece)
            if b"\r\n\r\n" in piece:
                c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")

    addr = net.origin("rec.test", record)
    return seen, addr


def test_ambiguous_requests_reach_nobody(net, recorder):
    seen, addr = recorder
    assert b"hi" in net.raw(GET + "Connection: close\r\n\r\n")
    cases = [text.replace("/smuggled", f"/smuggled-{n:02}")
             for n, text in enumerate(SMUGGLE.values())]
    net.raw(control=addr, wait=0.2, cases=cases)
    missing = lambda: [word for n, word in enumerate(SMUGGLE) if b"smuggled-%02d" % n not in b"".join(seen)]
    assert base.eventually(lambda: not missing()), f"control: {missing()}"
    seen.clear()
    answers = json.loads(net.raw(cases=cases, until=["HTTP/1.1 4"]))
    time.sleep(0.4)
    reached = [word for n, word in enumerate(SMUGGLE) if b"smuggled-%02d" % n in b"".join(seen)]
    assert not reached, f"{reached}: {seen}"
    for word, got in zip(SMUGGLE, answers):
        assert got.startswith(("HTTP/1.1 4", "<ConnectionReset")) or "HTTP/1.1 400" in got, (word, got[:300])


def test_what_is_pipelined_is_judged_on_its_own(net):
    got = net.raw("GET /1 HTTP/1.1\r\nHost: get.origin.test\r\n\r\nPOST /2 HTTP/1.1\r\nHost: get.origin.test\r\nContent-Length: 3\r\n\r\nabc"
                  "GET /3 HTTP/1.1\r\nHost: bad.test\r\n\r\nGET /4 HTTP/1.1\r\nHost: get.origin.test\r\nConnection: close\r\n\r\n")
    assert [piece.split()[0] for piece in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"403", b"403", b"200"], got


def test_names_of_a_connection_agree(net):
    tls = dict(port=443, sni="origin.test")
    assert b"HTTP/1.1 200" in net.raw("GET / HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n", **tls)  # control
    for text in ("GET / HTTP/1.1\r\nHost: get.origin.test\r\nConnection: close\r\n\r\n",
                 "GET https://get.origin.test/ HTTP/1.1\r\nHost: get.origin.test\r\nConnection: close\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: origin.test:80\r\nConnection: close\r\n\r\n"):
        assert net.raw(text, **tls).startswith(b"HTTP/1.1 421"), text
    assert net.raw("CONNECT get.origin.test:443 HTTP/1.1\r\nHost: get.origin.test:443\r\n\r\n", **tls, until=["\r\n\r\n"]).startswith(b"HTTP/1.1 403")
    got = net.raw("GET / HTTP/1.1\r\nHost: origin.test\r\n\r\n", connect="origin.test:443", sni="get.origin.test", wait=2)
    assert b"<" in got and got.count(b"HTTP/1.1") == 1, got
    got = net.raw("GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n", connect="origin.test:80", until=["HTTP/1.1 421"])
    assert b"421" in got and got.count(b"HTTP/1.1 200 OK") == 0, got


def test_http11_inside_of_connect(net):
    got = net.raw("GET /in HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n", connect="origin.test:443", sni="origin.test")
    assert b'"/in"' in got, got


def test_untouched_bytes_go_to_the_judged_name_only(net):
    """inspect: false: the SNI is judged, also when a CONNECT came before."""
    seen = []
    net.origin("pinned.test", lambda c: (seen.append(c.recv(9000)), c.sendall(b"x")), port=8443)
    addr = net.names["pinned.test"][0]
    net.listen(net.world.far, addr, 443, lambda c: (seen.append(c.recv(9000)), c.sendall(b"x")))
    net.raw(port=443, sni="pinned.test")
    assert any(b"pinned.test" in s for s in seen)  # control: it passes
    seen.clear()
    net.raw(connect="pinned.test:443", sni="pinned.test")
    assert any(b"pinned.test" in s for s in seen)
    seen.clear()
    net.raw(connect="pinned.test:443", sni="fronted.example", wait=1)
    net.raw("EHLO no TLS at all\r\n", connect="pinned.test:443", wait=1)
    assert not seen, seen


HELLO = """
import socket, ssl, struct
s = socket.create_connection((%r, 80)); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
s.sendall(b'CONNECT slow.test:443 HTTP/1.1\\r\\nHost: slow.test:443\\r\\n\\r\\n')
assert b' 200 ' in s.recv(1000)
o = ssl.MemoryBIO(); x = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), o, server_hostname='slow.test')
try: x.do_handshake()
except ssl.SSLWantReadError: pass
hello = o.read(); s.sendall(hello); print(hello.hex(), flush=True); print(s.recv(1000))
""" % FAR[4]


def test_a_hello_before_the_tunnel_is_there(net):
    """The client that resets before the origin was reached, and the one that stays: only the latter's bytes get there."""
    addr, seen = net.names["slow.test"][0], []

    def dialling():
        return base.sh(*net.world.enter(), "ss", "-Htn", "state", "syn-sent", "dst", addr).stdout.count(addr)

    leaves, stays = net.python(HELLO), net.python(HELLO)
    try:
        left, stayed = (bytes.fromhex(p.stdout.readline().decode()) for p in (leaves, stays))
        assert left and stayed and left != stayed
        assert base.eventually(lambda: dialling() == 2), "nobody answers there, and two try"
        base.reap(leaves)
        assert base.eventually(lambda: dialling() == 1), "its client left, and it is dialled still"
        net.host("slow.test", addr)
        net.listen(net.world.far, addr, 443, lambda c: (seen.append(c.recv(9000)), c.sendall(b"reached")))
        assert stays.communicate(timeout=120)[0] == b"b'reached'\n"
        assert seen == [stayed]
    finally:
        base.reap(leaves)
        base.reap(stays)
        base.sh("ip", "-n", net.world.far, "addr", "del", f"{addr}/32", "dev", "lo", check=False)


# -- kept connections, and what a session shares ---------------------------------------------------

def test_a_kept_connection_is_judged_by_its_address_for_each_request(net):
    net.origin("order.test", says(b"reached"), addr="203.0.113.7")
    assert b"reached" in net.plain("http://order.test/b")  # control
    assert b"address_refused" in net.get("http://order.test/b")
    assert b"reached" in net.get("http://order.test/a/x")
    assert b"address_refused" in net.get("http://order.test/b")


def test_sessions_share_nothing(net):
    other = net.new_session()
    keep = net.spawn("sleep", "600", session=other)
    try:
        peers = [json.loads(net.get("https://origin.test/", session=s))["peer"] for s in (None, None, other, None)]
        assert peers[2] not in (peers[0], peers[1], peers[3])
        pem = base.eventually(lambda: (lambda r: r[2] if r[0] == 200 else None)(net.api.raw("GET", f"/v1/sessions/{other}/ca")), 10)
        assert pem != net.ca.read_bytes()
        mine = net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/")
        assert mine.stdout == "200", mine
        p = subprocess.run([*net.argv(session=other), "curl", "-sS", "-m", "90", "--connect-to", f"::{FAR[4]}:", "--cacert", net.ca,
                            "https://origin.test/"], capture_output=True, text=True, env=net.env(), timeout=180)
        assert p.returncode == 60, p  # signed by another session's authority
    finally:
        base.reap(keep)


def test_an_identity_is_not_inherited_with_a_port(net):
    """Two sessions take turns on one local port, bound before connect, and reset what they had."""
    other = net.new_session()
    code = """
import socket, struct, sys, time
done, end = 0, time.time() + 4
while done < 40 and time.time() < (end if done else end + 120):
    s = socket.socket(%s); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.settimeout(20)
    try:
        s.bind((%r, 45678)); s.connect((%r, 80))
        s.sendall(b'GET /turn-%s HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n'); done += b'403' in s.recv(1000)
    except OSError: pass
    s.close(); time.sleep(0.002)
"""
    after = net.last()
    a = net.python(code % ("socket.AF_INET", "127.0.0.1", FAR[4], "mine"))
    b = net.python(code % ("socket.AF_INET6", "::ffff:127.0.0.1", "::ffff:" + FAR[4], "theirs"), session=other)
    a.communicate(timeout=120), b.communicate(timeout=120)
    want = lambda got: [e for e in got if "/turn-" in (e.get("url") or "")]
    events = want(net.api.wait_events(lambda got: len({e["session"] for e in want(got)}) == 2, 10, after=after))
    told = {(e["session"], e["url"].rsplit("-", 1)[1]) for e in events}
    assert told == {(net.session, "mine"), (other, "theirs")}, told


@pytest.fixture
def quiet():
    """A daemon of which no sandbox ends but by the test: with one that does it waits for its inspectors."""
    with contextlib.ExitStack() as stack:
        n = Net(stack, POLICY)
        assert base.eventually(lambda: n.api.health()["inspectors"] == 2)
        yield n


def test_a_sandbox_cannot_forget_the_identity_of_another(quiet):
    """A socket that was steered once, was disconnected, and sits on the local port of somebody else when it is closed."""
    net = quiet
    other = net.new_session()
    mine = f"""
import ctypes, socket, struct, sys
l = socket.socket(); l.bind(('127.0.0.1', 40001)); l.listen(5)
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 45679)); s.connect(({FAR[4]!r}, 80))
s.sendall(b'GET /a HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n'); s.recv(12)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)  # AF_UNSPEC
s.connect(('127.0.0.1', 40001)); print('own', flush=True)
sys.stdin.readline(); s.close(); print('closed', flush=True); sys.stdin.readline()
"""
    theirs = f"""
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.settimeout(60); s.bind(('127.0.0.1', 45679))
s.connect(({FAR[4]!r}, 80)); print('connected', flush=True)
try: s.sendall(b'GET /b HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n'); print(s.recv(12), flush=True)
except OSError as e: print(type(e).__name__)
"""
    keep = net.spawn("sleep", "600", session=other)  # and so the session has its authority, which a stopped worker makes for nobody
    assert base.eventually(lambda: net.api.raw("GET", f"/v1/sessions/{other}/ca")[0] == 200, 10)
    a = net.python(mine, stdin=subprocess.PIPE)
    assert a.stdout.readline() == b"own\n"
    stopped = net.workers()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        b = net.python(theirs, session=other)
        said = [b.stdout.readline()]
        a.stdin.write(b"close\n")
        a.stdin.flush()
        said.append(a.stdout.readline())
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        base.reap(keep)
    a.stdin.close()
    assert said == [b"connected\n", b"closed\n"]
    assert b.communicate(timeout=120)[0] == b"b'HTTP/1.1 403'\n"
    assert net.workers() == stopped, "a worker died: " + net.daemon.text()[-3000:]


# -- origins ------------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ANSWERS = {
    "garbage": b"\x00\x01\x02" * 50, "nothing": b"", "half a head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
    "length and chunked": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "split": b"HTTP/1.1 200 OK\r\nx: a\rset-cookie: evil=1\r\ncontent-length: 0\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nset-cookie: evil=1\n\n", "folded": b"HTTP/1.1 200 OK\r\nx: a\r\n set-cookie: evil=1\r\n\r\n",
    "NUL": b"HTTP/1.1 200 OK\r\nx: a\0set-cookie: evil=1\r\ncontent-length: 0\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nevil=1",
    "interims": b"HTTP/1.1 103 Early\r\nx: y\r\n\r\n" * 5000, "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: " + b"a" * 300000,
    "many fields": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 3000 + b"\r\n", "status 99": b"HTTP/1.1 099 Odd\r\n\r\n",
    "short body": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
    "bad chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "SSH": b"SSH-2.0-x\r\n",
}


def test_hostile_answers_harm_nobody(net):
    now = [b""]
    net.origin("evil.test", lambda c: (read_head(c), c.sendall(now[0])))
    for word, text in ANSWERS.items():
        now[0] = text
        for version in ("--http1.1", "--http2-prior-knowledge"):
            got = net.get("http://evil.test/", "-D", "-", version)
            assert b"set-cookie" not in got.lower() and b"evil=1" not in got, (word, got)
    now[0] = OK
    assert net.get("http://evil.test/").endswith(b"ok")


def test_an_answer_too_many_is_not_the_next_ones(net):
    count = itertools.count()

    def twice(c):
        while True:
            read_head(c)
            c.sendall(OK + (OK.replace(b"ok", b"no") if next(count) == 0 else b""))

    net.origin("twice.test", twice)
    got = net.raw("GET /1 HTTP/1.1\r\nHost: twice.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: twice.test\r\nConnection: close\r\n\r\n")
    assert got.count(b"ok") == 2 and b"no" not in got.split(b"\r\n\r\n")[2], got


def test_a_handshake_that_fails_is_an_answer(net):
    """An origin that closes, resets, talks nonsense or shows the wrong name."""
    for n, what in enumerate([lambda c: c.recv(9), lambda c: (c.recv(9000), c.sendall(b"\x15\x03\x03\x00\x02\x02\x28")),
                              lambda c: (c.recv(9000), c.sendall(b"HTTP/1.1 400 Plain\r\n\r\n")),
                              lambda c: c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))]):
        addr = net.origin(f"hs{n}.test", what, port=8443)
        net.listen(net.world.far, addr, 443, what)
        for version in ("--http1.1", "--http2"):
            got = net.get(f"https://hs{n}.test/", "-w", "%{http_code}", version)
            assert got.endswith(b"502"), (n, got)
    net.names["wrong.test"] = [FAR[4]]
    assert b"origin_untrusted" in net.get("https://wrong.test/")


def test_bytes_behind_a_101_are_not_lost(net):
    def switch(c):
        read_head(c)
        c.sendall(websocket.response() + websocket.frame(b"first"))
        time.sleep(0.3)
        c.sendall(websocket.frame(b"second"))

    net.origin("ws.test", switch)
    got = net.raw(websocket.request("ws.test"))
    assert websocket.frame(b"first") + websocket.frame(b"second") in got, got


def rss_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            total += next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) // 1024
    return total


def test_heads_that_pile_up_are_bounded(net):
    """An origin that sends interim heads without end, each a few bytes of HPACK, to a client that does not read."""
    if base.SAN:
        pytest.skip("memory is not what it is, under a sanitizer")

    def bomb(c):
        c.recv(65536)
        value = b"v" * 3900
        length, left = b"\x7f", len(value) - 127
        while left >= 128:
            length += bytes([left % 128 + 128])
            left //= 128
        c.sendall(frame(4, 0, 0) + frame(4, 1, 0) + frame(1, 4, 1, b"\x48\x03103\x40\x01x" + length + bytes([left]) + value))
        for _ in range(40):
            c.sendall(frame(1, 4, 1, b"\xbf" + b"\xbe" * 14) * 240)
            time.sleep(0.02)
        time.sleep(1)

    net.origin("bomb.test", bomb, port=443, alpn=["h2"])
    before = rss_mib(net.workers())
    p = net.python(H2 + """
c = ssl._create_unverified_context(); c.set_alpn_protocols(["h2"]); keep = []
for k in range(3):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); s.connect((FAR, 443))
    s = c.wrap_socket(s, server_hostname="bomb.test"); s.sendall(PREFACE + frame(1, 5, 1, b"\\x82\\x87\\x84\\x01\\x09bomb.test")); keep.append(s)
time.sleep(2.5)
""")
    peak = 0
    while p.poll() is None:
        peak = max(peak, rss_mib(net.workers()))
        time.sleep(0.05)
    base.reap(p)
    assert peak - before < 200, f"{before} MiB became {peak}"


# -- starving others -------------------------------------------------------------------------------------

def test_one_sandbox_has_a_bounded_number_of_connections_to_origins(net):
    other, count, keep, over = net.new_session(), itertools.count(), [], threading.Event()
    net.origin("hang.test", lambda c: (keep.append(next(count)), over.wait(120)))
    p = net.python(H2 + """
keep = []
for k in range(30):
    s = socket.create_connection((FAR, 80)); s.sendall(PREFACE + b"".join(request(2*j+1, b"hang.test") for j in range(100))); keep.append(s)
time.sleep(120)
""")
    base.for_a_while(lambda: len(keep) > 2500, 3)
    got = net.get("http://origin.test/others", session=other)
    base.reap(p)
    over.set()
    assert b"/others" in got, "another session was starved"
    assert len(keep) <= 2150, f"{len(keep)} connections of one sandbox"  # a thousand and some of each worker


def test_slow_clients_starve_nobody(net):
    other = net.new_session()
    p = net.python("""
import socket, time
keep = []
for k in range(2300):
    try:
        s = socket.create_connection((%r, 80), 20); s.sendall([b'', b'GET / HTT', b'\\x16\\x03\\x01\\x02\\x00', b'PRI * HT'][k %% 4]); keep.append(s)
    except OSError: pass
print(len(keep), flush=True); time.sleep(600)
""" % FAR[4])
    try:
        assert int(p.stdout.readline()) > 500
        assert b"/others" in net.get("http://origin.test/others", session=other)
    finally:
        base.reap(p)


def test_a_flood_of_requests_does_not_end_the_inspector_when_others_are_raised(net):
    """Each raise is acknowledged while the flood goes on, and the flood's own requests are answered before and after."""
    p = net.python("""
import os, socket
for k in range(2): os.fork()
while True:
    s = socket.create_connection((%r, 80), 120)
    s.sendall(b"GET /f HTTP/1.1\\r\\nHost: nope.example\\r\\n\\r\\n" * 400)
    got = b""
    while got.count(b"HTTP/1.1 403") < 400 and (d := s.recv(65536)): got += d
    os.write(1, b"%%d\\n" %% got.count(b"HTTP/1.1 403"))
""" % FAR[4])
    try:
        assert p.stdout.readline() == b"400\n"
        for _ in range(15):
            session = net.new_session()
            assert net.api.ask("POST", "/v1/sandboxes", {"session": session})[0] == 201
            assert net.raise_to(session, "SECRET")["mode"] == "NONE"
            assert p.poll() is None
        assert b"/after" in net.get("http://origin.test/after")
    finally:
        base.reap(p)


# -- raises, reloads, deaths --------------------------------------------------------------------------------

def test_nothing_of_an_upload_leaves_after_the_acknowledgement(net):
    met, go, session = threading.Event(), threading.Event(), net.new_session()

    def slow(c):
        read_head(c)
        met.set()
        go.wait(120)
        while c.recv(65536):
            pass

    addr = net.origin("upload.test", slow, rcvbuf=4096)
    p = net.python("""
import socket, time
s = socket.create_connection((%r, 80)); s.sendall(b'POST / HTTP/1.1\\r\\nHost: upload.test\\r\\nContent-Length: 50000000\\r\\n\\r\\n')
try:
    while True: s.sendall(b'S' * 65536)
except OSError as e: print(type(e).__name__, flush=True)
time.sleep(120)
""" % FAR[4], session=session)
    assert met.wait(120)
    time.sleep(0.5)  # more of it is on its way
    net.raise_to(session, "SECRET")
    with net.world.watch() as watch:
        go.set()
        time.sleep(2)
    late = [f for f in watch.frames if f["dst"] == addr and f["payload"]]
    assert p.stdout.readline().strip() in (b"ConnectionAbortedError", b"ConnectionResetError", b"BrokenPipeError")
    base.reap(p)
    assert not late, f"{len(late)} frames of it after the acknowledgement"


def test_a_reload_reaches_what_is_open(net):
    gate, count = threading.Event(), itertools.count()

    def slow(c):
        while True:
            read_head(c)
            c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab")
            if next(count) == 0:
                gate.wait(120)
            c.sendall(b"cd")

    def echo(c):
        read_head(c)
        c.sendall(websocket.response())
        while c.recv(100):
            c.sendall(websocket.frame(b"x"))

    net.origin("keep.test", slow)
    net.origin("ws2.test", echo, port=443)
    text = POLICY.replace("allow: ws.test", "allow: [ws.test, ws2.test]")
    try:
        net.policy.write_text(text + base.PERMITS)
        net.daemon.cli("policy", "reload", check=0)
        first = net.spawn("curl", "-sS", "-m", "120", "--connect-to", f"::{FAR[4]}:", "http://keep.test/1", stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
        web = net.python("""
import socket, ssl, time
s = ssl._create_unverified_context().wrap_socket(socket.create_connection((%r, 443), 60), server_hostname='ws2.test')
s.sendall(%r); s.recv(1000)
told = False
try:
    for _ in range(600):
        s.sendall(%r); got = s.recv(10)
        if not got: break
        if not told: told = print('open', flush=True) or True
        time.sleep(0.1)
    print(got)
except OSError as e: print('cut')
""" % (FAR[4], websocket.request("ws2.test", "/chat").encode(), websocket.masked(b"x")))
        assert web.stdout.readline() == b"open\n", "the control: frames go both ways"
        net.policy.write_text(text.replace("rules:", f"rules:\n  - deny: {net.names['keep.test'][0]}\n  - deny: ws2.test\n    paths: ['/chat']") + base.PERMITS)
        net.daemon.cli("policy", "reload", check=0)
        gate.set()
        after = net.get("http://keep.test/2")
        first.communicate(timeout=120)
        assert web.communicate(timeout=120)[0] in (b"cut\n", b"b''\n"), "a websocket that the policy forbids lived on"
        assert b"address_refused" in after, after
    finally:
        net.policy.write_text(POLICY + base.PERMITS)
        net.daemon.cli("policy", "reload", check=0)


def direct(net):
    """Tries to get out until told to stop, and prints every outcome once."""
    return net.python("""
import socket, time
seen = set(); end = time.time() + 4
while time.time() < end:
    try:
        s = socket.create_connection((%r, 80), 1); s.sendall(b'GET /d HTTP/1.1\\r\\nHost: nope.example\\r\\nConnection: close\\r\\n\\r\\n')
        seen.add(s.recv(20)[:12] or b'closed'); s.close()
    except OSError as e: seen.add(type(e).__name__.encode())
    time.sleep(0.01)
print(sorted(seen))
""" % FAR[4])


@ends_workers
def test_dead_workers_come_back_and_nothing_passes_meanwhile(net):
    p = direct(net)
    time.sleep(1)
    with net.world.watch() as watch:
        for _ in range(3):
            for pid in net.workers():
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.4)
        out, _ = p.communicate(timeout=120)
    assert not [f for f in watch.frames if f["dst"] == FAR[4]], "it went straight out"
    assert set(eval(out)) <= {b"HTTP/1.1 403", b"closed", b"ConnectionRefusedError", b"ConnectionResetError", b"TimeoutError"}, out
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20), net.daemon.text()[-2000:]
    assert b"/back" in net.get("https://origin.test/back")


def test_what_a_worker_has(net):
    assert len(net.workers()) == 2
    for pid in net.workers():
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"65533"} and not status["Groups"].strip()
        assert all(int(status[c], 16) == 0 for c in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        root = os.readlink(f"/proc/{pid}/root")
        assert os.listdir(root) == [] and os.stat(root).st_mode & 0o222 == 0
        kinds = {os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")}
        assert kinds <= {"socket", "anon_inode", "/dev/null", "pipe", "/memfd"}, kinds


@ends_workers
def test_workers_come_back_when_there_is_much_to_tell_them(net):
    made = []
    for _ in range(300):
        session = net.new_session(word="many")
        made.append(net.api.ask("POST", "/v1/sandboxes", {"session": session})[1]["sandbox"])
    old = net.workers()
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    back = base.eventually(lambda: not set(old) & set(net.workers()) and net.api.health()["inspectors"] == 2, 40)
    for sandbox in made:
        net.api.ask("DELETE", f"/v1/sandboxes/{sandbox}")
    assert back, net.daemon.text()[-600:]


# -- a worker that is no longer ours ----------------------------------------------------------------------------

TURNED = """#!/usr/bin/python3
import array, os, random, socket, struct, sys
try:
    os.close(os.open(%(lock)r, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    os.execv(%(real)r, [%(real)r] + sys.argv[1:])
s = socket.socket(fileno=3)
s.setblocking(True)
def send(kind, data=b"", fds=()):
    s.sendmsg([struct.pack("II", kind, len(data)) + data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
BOX, CA, MAKE_CA, SYNC, READY, REQUESTS = 4, 6, 7, 9, 10, 11  # enum link_type
send(READY)
what = %(what)r
if what == "descriptors":
    for n in (1, 2, 3, 5):
        for k in range(200):
            try: send(READY, fds=[3] * n)
            except OSError: break
elif what == "noise":
    random.seed(1)
    for k in range(20000):
        kind = random.choice([CA, SYNC, READY, REQUESTS])
        if kind == REQUESTS:
            # Its tails are as long as they say, which is all that is checked before the rest is read.
            one = random.randbytes(60) + struct.pack("II", 4, 8) + random.randbytes(692) + b"GET\\0" + b"http://\\0"
            send(kind, one * random.randrange(1, 20))
        elif random.random() < .999: send(kind, random.randbytes({CA: 4240, SYNC: 4, READY: 0}[kind]))
        else: send(kind, random.randbytes(random.randrange(9000)))
while True:
    m = s.recv(20000)
    if not m: break
    kind, = struct.unpack("I", m[:4])
    if kind in (BOX, MAKE_CA) and what == "authority":
        send(CA, (m[32:168] if kind == BOX else m[8:144]) + struct.pack("II", 100, 10) + b"J" * 4096)
    if kind == SYNC: send(SYNC, m[8:])
"""


@pytest.mark.parametrize("what", ["descriptors", "authority", "noise"])
def test_a_turned_worker_harms_neither_daemon_nor_others(what):
    folder = base.tempdir("turned")
    with contextlib.ExitStack() as stack:
        stack.callback(base.drop_tempdir, folder)
        world = World(tcp_ports=(53,))
        stack.callback(world.close)
        shutil.copy(base.NETPAWLD, folder / "netpawld")
        (folder / "netpawl-inspect").write_text(TURNED % dict(lock=str(folder / "lock"), real=str(base.BUILD / "netpawl-inspect"),
                                                              what=what))
        (folder / "netpawl-inspect").chmod(0o755)
        daemon = Daemon(world, inspectors=3)
        stack.callback(daemon.close)
        daemon.argv, plain = lambda *a, binary=None: plain(*a, binary=folder / "netpawld"), daemon.argv
        daemon.start()
        assert base.eventually(lambda: daemon.api.health()["inspectors"] >= 2, 10)
        daemon.api.create("t/a", "CONFIDENTIAL")
        assert daemon.api.ask("POST", "/v1/sandboxes", {"session": "t/a"})[0] == 201
        for k in range(15):
            daemon.api.create(f"t/b{k}", "CONFIDENTIAL")
            daemon.api.ask("POST", "/v1/sandboxes", {"session": f"t/b{k}"})
        time.sleep(1)
        assert "message was not understood" not in daemon.text(), daemon.text()[-800:]
        assert daemon.running()
        # The ones that it was sent are sockets; those of the gate's programs and maps are not.
        fds = f"/proc/{daemon.process.pid}/fd"
        sockets = [fd for fd in os.listdir(fds) if os.readlink(f"{fds}/{fd}").startswith("socket:")]
        assert 0 < len(sockets) < 60
        assert base.eventually(lambda: daemon.api.health()["inspectors"] >= 2, 3), daemon.text()[-800:]
        time.sleep(0.5)
        assert daemon.api.health()["inspectors"] >= 2, daemon.text()[-800:]
        assert daemon.api.ask("POST", "/v1/sessions/t/a/datasets", {"level": "SECRET", "dataset": "d", "reason": "r"})[0] == 200
