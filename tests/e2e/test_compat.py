# SPDX-License-Identifier: MIT
"""What real origins and clients send and the inspector must take: and what looks like it and is refused."""
import contextlib
import itertools
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from lib import base, inspected, websocket
from lib.rogues import Rogues, frame, read_head, says
from lib.world import FAR, HOST4

BY_ADDRESS = "198.51.100.90"
POLICY = """version: 1
rules:
  - allow: 198.51.100.90
  - allow: [ws.test, real.test]
    websocket: true
  - allow: get.test
    methods: GET
  - deny: get.test
  - allow: ["**.test"]
"""


@pytest.fixture(scope="module")
def net():
    with inspected.unharmed(Rogues, POLICY) as n:
        yield n


# -- websockets -----------------------------------------------------------------------------------------

ANSWERS = {
    "/no-accept": b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "/other-key": websocket.response("AQIDBAUGBwgJCgsMDQ4PEA=="),
    "/protocol": websocket.response(sec_websocket_protocol="other"),
    "/extension": websocket.response(sec_websocket_extensions="permessage-deflate"),
    "/upgrade": websocket.response().replace(b"upgrade: websocket", b"upgrade: foo"),
}
FRAMES = {  # of the origin, right behind its 101: None is in order
    "/plain": (websocket.frame(b"hello"), None), "/masked": (websocket.masked(b"hello"), "is masked"),
    "/opcode": (websocket.frame(b"hello", 0x83), "opcode"), "/reserved": (websocket.frame(b"hello", 0xC1), "reserved bit"),
    "/order": (websocket.frame(b"hello", 0x80), "did not begin"), "/long-ping": (websocket.frame(b"x" * 126, 0x89), "125"),
    "/long-form": (websocket.frame(b"hello", length=b"\x7e\0\5"), "more bytes"), "/close": (websocket.frame(b"\3\xed", 0x88), "code"),
    "/http": (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "reserved bit"),
    "/parts": (websocket.frame(b"hel", 0x01) + websocket.frame(b"", 0x89) + websocket.frame(b"lo", 0x80), None),
}


@pytest.fixture(scope="module")
def switch(net):
    """Switches to whatever is asked for, whatever the request looks like; then notes what comes."""
    heard = []

    def handler(c):
        head, _, piece = read_head(c).partition(b"\r\n\r\n")
        path = head.split()[1].decode()
        heard.append(head)
        extra = FRAMES.get(path, (b"", None))[0]
        asked = [line.split(b": ")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"upgrade: ")]
        c.sendall(ANSWERS.get(path) or websocket.response().replace(b"upgrade: websocket", b"upgrade: " + (asked or [b"none"])[0]) + extra)
        while piece := piece or c.recv(65536):
            heard.append(piece)
            c.sendall(websocket.frame(b"got it"))
            piece = b""

    return net.origin("ws.test", handler), heard


def ask(net, *cases, wait=2, control=None, until=()):
    """Each on a connection of its own: what came back, until one of these was in it or it ended."""
    return json.loads(net.raw(cases=cases, wait=wait, control=control, until=until))


def told(net, reason, after, count):
    return net.events(lambda e: e["reason"] == reason, after, count=count)


BAD_REQUESTS = {
    "foo": dict(Upgrade="foo"), "TLS": dict(Upgrade="TLS/1.0"), "a version": dict(Upgrade="websocket/2"), "POST": dict(method="POST"),
    "a body": dict(Content_Length="1", body="x"), "chunked": dict(Transfer_Encoding="chunked", body="1\r\nx\r\n0\r\n\r\n"),
    "no key": dict(Sec_WebSocket_Key=None), "a short key": dict(Sec_WebSocket_Key="eA=="), "no base64": dict(Sec_WebSocket_Key="!" * 24),
    "version 8": dict(Sec_WebSocket_Version="8"), "no version": dict(Sec_WebSocket_Version=None),
}


def test_only_websockets_are_switched_to(net, switch):
    addr, heard = switch
    cases = [websocket.request("ws.test", f"/asked/{n}", **fields) for n, fields in enumerate(BAD_REQUESTS.values())]
    after = net.last()
    for word, got in zip(BAD_REQUESTS, ask(net, *cases, until=["}\n"])):
        assert got.startswith("HTTP/1.1 400 ") and '"bad_websocket"' in got and " 101 " not in got, (word, got)
    assert not [h for h in heard if b"/asked/" in h], "the origin saw one"
    assert len(told(net, "bad_websocket", after, len(cases))) == len(cases)
    # the control: without the inspector each of them is switched
    for word, got in zip(BAD_REQUESTS, ask(net, *cases, control=addr, until=[" 101 "])):
        assert got.startswith("HTTP/1.1 101 "), (word, got)
    # what does not name upgrade in connection, or speaks HTTP/1.0, asks for nothing, and the origin does not hear of it
    for case in (websocket.request("ws.test", "/unasked", Connection="close"), websocket.request("ws.test", "/unasked", version="HTTP/1.0")):
        ask(net, case, until=[" 502 ", " 101 "])
    assert len([h for h in heard if b"/unasked" in h and b"pgrade" not in h]) == 2, heard


def test_the_answer_is_checked(net, switch):
    after = net.last()
    for path, got in zip(ANSWERS, ask(net, *[websocket.request("ws.test", path) for path in ANSWERS], until=["}\n"])):
        assert got.startswith("HTTP/1.1 502 ") and " 101 " not in got, (path, got)
    assert {e["url"].rsplit("/", 1)[1] for e in told(net, "websocket_broken", after, 4)} == {"no-accept", "other-key", "protocol", "extension"}
    offer = dict(Sec_WebSocket_Protocol="this, other", Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits")
    for path in ("/protocol", "/extension"):
        [got] = ask(net, websocket.request("ws.test", path, **offer), until=["\r\n\r\n"])
        assert got.startswith("HTTP/1.1 101 "), (path, got)


def test_frames_of_the_origin_are_checked(net, switch):
    after = net.last()
    for path, got in zip(FRAMES, ask(net, *[websocket.request("ws.test", path) for path in FRAMES], until=["lo"])):
        data, problem = FRAMES[path]
        assert ("hello" in got or "lo" in got) == (problem is None), (path, got)
        assert ("ConnectionResetError" in got) == (problem is not None), (path, got)
    wrong = {path: problem for path, (_, problem) in FRAMES.items() if problem}
    events = {e["url"].rsplit("/", 1)[1]: e for e in told(net, "websocket_broken", after, len(wrong))}
    for path, problem in wrong.items():
        assert problem in events[path[1:]]["text"] and events[path[1:]]["status"] == 101, events[path[1:]]


CLIENT_FRAMES = {
    "masked": (websocket.masked(b"secret"), None), "unmasked": (websocket.frame(b"secret"), "not masked"),
    "opcode": (websocket.masked(b"secret", 0x8B), "opcode"), "HTTP": (b"GET /secret HTTP/1.1\r\nHost: ws.test\r\n\r\n", "reserved bit"),
    "SSH": (b"SSH-2.0-secret\r\n", "reserved bit"), "behind close": (websocket.masked(b"\3\xe8", 0x88) + websocket.masked(b"secret"), "close"),
    "fragmented ping": (websocket.masked(b"secret", 0x09), "fragmented"),
}


def test_frames_of_the_client_are_checked(net, switch):
    addr, heard = switch
    secret = lambda: len([h for h in heard if b"secret" in h or websocket.masked(b"secret")[6:] in h])
    for word, (data, problem) in CLIENT_FRAMES.items():
        after, before = net.last(), secret()
        [got] = ask(net, websocket.request("ws.test", "/client/" + word.replace(" ", "-"), body=data.decode("latin-1")), until=["got it"])
        assert ("got it" in got) == (problem is None) and ("ConnectionResetError" in got) == (problem is not None), (word, got)
        assert secret() - before == (problem is None), (word, heard[-3:])
        if problem:
            [event] = told(net, "websocket_broken", after, 1)
            assert problem in event["text"], event
        # the control: without the inspector the origin gets all of them
        ask(net, websocket.request("ws.test", "/", body=data.decode("latin-1")), control=addr, until=["got it"])
        assert secret() - before == 1 + (problem is None), (word, heard[-3:])


WEBSOCKETS = """
import asyncio, sys, websockets
async def main(url, compression):
    async with websockets.connect(url, compression=compression, subprotocols=["one", "two"], max_size=None) as ws:
        assert ws.subprotocol == "two" and ("Deflate" in str(ws.extensions)) == bool(compression), (ws.subprotocol, ws.extensions)
        for size in (0, 1, 125, 126, 65535, 65536, 300000):
            await ws.send("x" * size)
            assert await ws.recv() == "x" * size
            await ws.send([b"y" * size, b"z"])
            assert await ws.recv() == b"y" * size + b"z"
        await (await ws.ping())
    print(ws.close_code)
asyncio.run(main(sys.argv[1], sys.argv[2] or None))
"""
WEBSOCKETS_SERVER = """
import asyncio, sys, websockets
async def echo(ws):
    async for message in ws:
        await ws.send(message if len(message) % 2 else [message[:9], message[9:]])
async def main():
    async with websockets.serve(echo, sys.argv[1], 80, subprotocols=["two"], max_size=None):
        print("ready", flush=True)
        await asyncio.Future()
asyncio.run(main())
"""


def test_real_websockets_pass(net):
    """Python's client and server, with compression and without: text, fragments, lengths of each form, ping and close."""
    addr = net.host("real.test")
    net.origins.start(base.PYTHON, "-c", WEBSOCKETS_SERVER, addr)
    after = net.last()
    for compression in ("", "deflate"):
        got = net.run(base.PYTHON, "-c", WEBSOCKETS, "ws://real.test/real", compression)
        assert (got.returncode, got.stdout) == (0, "1000\n"), got
    for event in net.events(lambda e: e["url"].endswith("/real"), after, count=2):
        assert (event["status"], event["reason"]) == (101, "rule_allows") and event["sent"] > 1000, event


# -- HTTP/1.1 as origins and clients have it --------------------------------------------------------------

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
LEGAL = {  # what an origin answers: status and body that a client gets
    "extensions": (CHUNKED + b"5;a=b;c=d\r\nhello\r\n3 ; e = \"f;\\\"\"\r\n, y\r\n2;x\r\nou\r\n0;last\r\n\r\n", "200 hello, you"),
    "cookie-trailer": (CHUNKED + b"5\r\nhello\r\n0\r\nset-cookie: a=b\r\ncontent-length: 9\r\nx-sum: 1\r\n\r\n", "200 hello"),
    "204-chunked": (b"HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "204 "),
}
ILLEGAL = {
    "bare LF in an extension": CHUNKED + b"5;a\nhello\r\n0\r\n\r\n", "bare CR in an extension": CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "no extension": CHUNKED + b"5;=\r\nhello\r\n0\r\n\r\n", "endless extensions": CHUNKED + b"1;" + b"x" * 20000 + b"\r\nh\r\n0\r\n\r\n",
    "short": b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
}
VERSIONS = pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])


@pytest.fixture(scope="module")
def answers(net):
    """Answers what the path names."""
    def handler(c):
        while True:
            word = read_head(c).split()[1].decode()[1:].replace("%20", " ")
            c.sendall(LEGAL[word][0] if word in LEGAL else ILLEGAL[word])
            if word in ILLEGAL:
                return

    return net.origin("answers.test", handler)


@VERSIONS
def test_legal_answers_pass(net, answers, version):
    got = net.get("http://answers.test/extensions", "-D", "-", version)
    assert b"hello, you" in got and b"a=b" not in got, got
    for word, (_, want) in LEGAL.items():
        got = net.get(f"http://answers.test/{word}", "-D", "-", "-w", "\n%{http_code}", version).lower()
        status, body = want.split(" ", 1)
        assert got.endswith(f"{body}\n{status}".encode()) or b"x-sum: 1" in got, (word, got)
        assert b"set-cookie" not in got and b"content-length: 9" not in got, got


@VERSIONS
def test_a_broken_answer_is_no_success(net, answers, version):
    """The client sees that it is broken, and the event says so: not 200 and nothing else."""
    for word in ILLEGAL:
        after = net.last()
        url = f"http://answers.test/{word.replace(' ', '%20')}"
        got = net.run("curl", "-sS", "-m", "90", version, "--connect-to", f"::{FAR[4]}:", url)
        assert got.returncode in (18, 52, 56, 92), (word, got)
        [event] = net.events(lambda e: e["url"] == url, after)  # of another one an event may come late
        assert (event["kind"], event["reason"], event["status"]) == ("refuse", "response_broken", 200) and event["text"], event


def post(host, *chunks, end="0\r\n\r\n"):
    return f"POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + "".join(chunks) + end


def test_extensions_of_a_client_are_dropped(net):
    heard = []

    def handler(c):
        got = read_head(c)
        while not got.endswith(b"0\r\n\r\n"):
            got += c.recv(65536)
        heard.append(got)
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    net.origin("upload.test", handler)
    good = [post("upload.test", "5;a=b;c=d\r\nhello\r\n"), post("upload.test", "5 ; chunk-signature = \"x\"\r\nhello\r\n", end="0;last\r\n\r\n")]
    bad = [post("upload.test", "5;a\nhello\r\n"), post("upload.test", "5;a\rb\r\nhello\r\n"), post("upload.test", "5;\r\nhello\r\n"),
           post("upload.test", "5;a=\"\r\n\"\r\nhello\r\n"), post("upload.test", "1;" + "x" * 20000 + "\r\nh\r\n"),
           post("upload.test", "5\r\nhello\r\n", end="0\r\nCookie: a=b\r\n\r\n")]
    for got in ask(net, *good):
        assert got.startswith("HTTP/1.1 200 "), got
    assert len(heard) == 2 and all(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n" in h and b";" not in h for h in heard), heard
    for got in ask(net, *bad):
        assert " 200 " not in got, got
    assert len(heard) == 2, heard


def test_methods_are_the_policys_business(net):
    """QUERY, and whatever method a server has; but in capital letters, for there are servers that take post for POST."""
    seen = []
    net.origin("methods.test", lambda c: (seen.append(read_head(c).split()[0]), c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")))
    for version in ("--http1.1", "--http2-prior-knowledge"):
        for method in ("QUERY", "PURGE", "VERSION-CONTROL"):
            assert net.get("http://methods.test/", "-X", method, version) == b"ok", method
            assert seen.pop() == method.encode()
        for method in ("post", "Query", "GE.T"):
            assert net.get("http://methods.test/", "-X", method, version) != b"ok", method
        assert not seen, seen
    net.origin("get.test", says(b"ok"))
    assert net.get("http://get.test/") == b"ok"
    assert b"rule_denies" in net.get("http://get.test/", "-X", "QUERY")


# -- TLS ----------------------------------------------------------------------------------------------------

BIG_HELLO = """
import socket, ssl, sys
c = ssl.create_default_context()
c.set_alpn_protocols([f"{n:0250}" for n in range(int(sys.argv[1]))] + ["http/1.1"])
s = c.wrap_socket(socket.create_connection(("secure.test", 443), 60), server_hostname="secure.test")
s.sendall(b"GET / HTTP/1.1\\r\\nHost: secure.test\\r\\nConnection: close\\r\\n\\r\\n")
got = b""
while d := s.recv(9999):
    got += d
print(got[-2:].decode())
"""


def test_a_large_client_hello(net):
    """55 kB, as nginx takes; what is larger than the bound is refused."""
    net.origin("secure.test", says(b"ok"), port=443)
    for many, want in ((0, "ok\n"), (60, "ok\n"), (219, "ok\n"), (261, "")):
        got = net.run(base.PYTHON, "-c", BIG_HELLO, str(many))
        assert got.stdout == want, (many, got)


def test_an_address_as_server_name(net):
    """Where a rule allows the address, and it is the one that was dialled."""
    addr = net.host("by-address.test", BY_ADDRESS)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*net.origins.authority.leaf("address", names=f"IP:{addr}"))
    net.listen(net.world.far, addr, 443, says(b"by address"), tls)
    request = f"GET / HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n"
    say = lambda to, sni: net.run("openssl", "s_client", "-quiet", "-connect", f"{to}:443", "-servername", sni, input=request).stdout
    assert say(addr, addr).endswith("by address")
    assert say(addr, "198.51.100.99") == ""  # not the one that was dialled
    assert say(FAR[4], FAR[4]) == ""  # no rule allows it


def test_a_body_that_ends_with_the_connection(net):
    """TLS without close_notify: curl and Python take it, so does the inspector, and says so; a body of a known length stays broken."""
    until_close, too_short = b"HTTP/1.1 200 OK\r\n\r\nhello", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello"
    net.origin("rude.test", lambda c: c.sendall(too_short if b"/short" in read_head(c) else until_close), port=443)
    after = net.last()
    for version in ("--http1.1", "--http2"):
        assert net.get("https://rude.test/", version, "-w", "%{http_code}%{exitcode}") == b"hello2000"
    for event in net.events(lambda e: "rude.test" in e["url"], after, count=2):
        assert (event["reason"], event["status"], event["received"]) == ("rule_allows", 200, 5) and "truncated-possible" in event["text"], event
    after = net.last()
    assert not net.get("https://rude.test/short", "-w", "%{exitcode}").endswith(b"hello0")
    [event] = net.events(lambda e: "rude.test" in e["url"], after)
    assert event["reason"] == "response_broken", event


# -- requests that go again -----------------------------------------------------------------------------------

RST_STREAM, GOAWAY, HTTP_1_1_REQUIRED, REFUSED, CANCEL, INTERNAL = 3, 7, 13, 7, 8, 2


class H2Origin:
    """HTTP/2 by hand: turns requests away as the path says, on its first connections, and answers on later ones."""

    def __init__(self, net, name, turn_away, times=1):
        self.turn_away, self.times, self.connections, self.bodies = turn_away, times, [], []
        net.origin(name, self.handle, port=443, alpn=["h2", "http/1.1"])

    def handle(self, c):
        self.connections.append(c.selected_alpn_protocol())
        if c.selected_alpn_protocol() != "h2":
            return says(b"over HTTP/1.1")(c)
        away = len(self.connections) <= self.times
        stream = c.makefile("rb")
        stream.read(24)
        c.sendall(frame(4, 0, 0))
        body = b""
        while len(head := stream.read(9)) == 9:
            payload = stream.read(int.from_bytes(head[:3], "big"))
            kind, flags, sid = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == 0:
                body += payload
            if kind not in (0, 1) or not flags & 1:
                continue
            if away:
                c.sendall(self.turn_away(sid))
                continue
            self.bodies.append(body)
            c.sendall(frame(1, 4, sid, b"\x88") + frame(0, 1, sid, b"over HTTP/2"))
            body = b""


def reset(code):
    return lambda sid: frame(RST_STREAM, 0, sid, struct.pack("!I", code))


def goaway(code):
    return lambda sid: frame(GOAWAY, 0, 0, struct.pack("!II", 0, code))


@pytest.mark.parametrize("name,turn_away,want", [
    ("refused", reset(REFUSED), b"over HTTP/2"), ("goaway", goaway(0), b"over HTTP/2"),
    ("wants-h1", reset(HTTP_1_1_REQUIRED), b"over HTTP/1.1"), ("goaway-h1", goaway(HTTP_1_1_REQUIRED), b"over HTTP/1.1")])
def test_what_an_origin_turned_away_goes_again(net, name, turn_away, want):
    origin = H2Origin(net, f"{name}.test", turn_away)
    body = "x" * 5000
    for words in ([], ["-d", body]):
        origin.connections.clear()
        assert net.get(f"https://{name}.test/", *words) == want, (words, origin.connections)
        assert origin.connections == ["h2", want.decode().replace("over HTTP/1.1", "http/1.1").replace("over HTTP/2", "h2")], words
        net.daemon.cli("policy", "reload", check=0)  # no connection is kept for the next one
    assert want == b"over HTTP/1.1" or origin.bodies == [b"", body.encode()]


@pytest.mark.parametrize("name,turn_away,times,most", [("never", reset(REFUSED), 99, 4), ("done", reset(INTERNAL), 1, 1), ("cancelled", reset(CANCEL), 1, 1)])
def test_what_may_not_go_again_does_not(net, name, turn_away, times, most):
    """Refused without end, and what an origin may have done something with."""
    origin = H2Origin(net, f"{name}.test", turn_away, times)
    assert b"origin_unreachable" in net.get(f"https://{name}.test/", "-d", "x")
    assert len(origin.connections) == most, origin.connections


KEPT = r"""
import socket, sys
host = sys.argv[3]
s = socket.create_connection((host, 80), 120)
def ask(method, body):
    s.sendall(f"{method} / HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
def answer():
    got = b""
    while b"\r\n\r\n" not in got or not got.endswith((b"ok", b"}\n")):
        d = s.recv(9999)
        if not d:
            break
        got += d
    print(got.split()[1].decode() if got else "closed", flush=True)
ask("GET", ""); answer()
sys.stdin.readline()
ask(sys.argv[1], sys.argv[2])
print("sent", flush=True)
answer()
"""


class Kept:
    """An origin that answers the first request of a connection, and does with the connection what it is told then."""

    names = (f"kept{n}.test" for n in itertools.count())

    def __init__(self, net, then):
        self.go, self.requests, self.then, self.first, self.name = threading.Event(), [], then, None, next(self.names)
        net.origin(self.name, self.handle)

    def client(self, net, method):
        argv = net.argv(base.PYTHON, "-c", KEPT, method, "x" * 3000 if method != "GET" else "", self.name)
        return base.popen(argv, env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def handle(self, c):
        mine = self.first is None
        self.first = self.first or c
        while True:
            head = read_head(c)
            self.requests.append(head.split()[0].decode())
            c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            if mine:
                self.go.wait(120)
                return self.then(c)


@pytest.fixture(scope="module")
def single():
    with contextlib.ExitStack() as stack:
        yield Rogues(stack, POLICY, inspectors=1)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_kept_connection_that_was_closed_is_not_used(single, method):
    """Its FIN is there when the next request is read, and not read yet."""
    origin = Kept(single, lambda c: c.close())
    p = origin.client(single, method)
    try:
        assert p.stdout.readline() == b"200\n"
        [worker] = single.workers()
        os.kill(worker, signal.SIGSTOP)
        try:
            p.stdin.write(b"\n")
            p.stdin.flush()
            assert p.stdout.readline() == b"sent\n"
            origin.go.set()
            assert base.eventually(lambda: origin.first.fileno() < 0)
        finally:
            os.kill(worker, signal.SIGCONT)
        assert p.stdout.readline() == b"200\n"
        assert origin.requests == ["GET", method]
    finally:
        base.reap(p)


@pytest.mark.parametrize("method,status,read", [("GET", b"200\n", 2), ("PUT", b"200\n", 2), ("POST", b"502\n", 1)])
def test_what_was_taken_and_lost_goes_again_where_that_is_safe(single, method, status, read):
    """The origin's kernel has the request, and the origin is gone: only what can be done twice is sent twice."""
    def take_and_reset(c):
        c.recv(1, socket.MSG_PEEK)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    origin = Kept(single, take_and_reset)
    p = origin.client(single, method)
    try:
        assert p.stdout.readline() == b"200\n"
        origin.go.set()
        p.stdin.write(b"\n")
        p.stdin.flush()
        assert (p.stdout.readline(), p.stdout.readline()) == (b"sent\n", status)
        assert len(origin.requests) == read, origin.requests
    finally:
        base.reap(p)


def test_a_post_that_crossed_the_end_of_its_connection_goes_again(single):
    """The origin closed, its FIN is late, and not a byte of the request was acknowledged."""
    origin = Kept(single, lambda c: c.close())
    p = origin.client(single, "POST")
    blackhole = ["ip", "-n", single.world.far, "route", "{}", "blackhole", f"{HOST4}/32"]
    way = lambda word: base.sh(*[w.format(word) for w in blackhole])
    try:
        assert p.stdout.readline() == b"200\n"
        way("add")
        try:
            origin.go.set()
            assert base.eventually(lambda: origin.first.fileno() < 0)
            p.stdin.write(b"\n")
            p.stdin.flush()
            assert p.stdout.readline() == b"sent\n"
            time.sleep(0.3)  # the request is on its way, and no answer comes back
        finally:
            way("del")
        assert p.stdout.readline() == b"200\n"
        assert origin.requests == ["GET", "POST"]
    finally:
        base.reap(p)
