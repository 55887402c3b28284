# SPDX-License-Identifier: MIT
"""What real origins and clients send and the inspector must take: and what looks like it and is refused."""
import contextlib
import json

import pytest

from lib import base, websocket
from lib.rogues import Rogues, read_head

POLICY = """version: 1
rules:
  - allow: ws.test
    websocket: true
  - allow: ["**.test"]
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Rogues(stack, POLICY)
        workers = n.workers()
        yield n
        assert n.daemon.running() and n.workers() == workers, "a worker died: " + n.daemon.text()[-3000:]


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
    addr = net.host("ws.test")
    net.origins.start(base.PYTHON, "-c", WEBSOCKETS_SERVER, addr)
    after = net.last()
    for compression in ("", "deflate"):
        got = net.run(base.PYTHON, "-c", WEBSOCKETS, "ws://ws.test/real", compression)
        assert (got.returncode, got.stdout) == (0, "1000\n"), got
    for event in net.events(lambda e: e["url"].endswith("/real"), after, count=2):
        assert (event["status"], event["reason"]) == (101, "rule_allows") and event["sent"] > 1000, event
