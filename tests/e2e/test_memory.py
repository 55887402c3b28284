# SPDX-License-Identifier: MIT
"""What an inspector holds for a sandbox is bounded in bytes, and given back."""
import contextlib
import json
import subprocess
import threading

import pytest

from lib import base
from lib.rogues import Rogues, read_head, says
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: ["**.test"]
"""
MB = 1 << 20

# Opens connections with HTTP/2 streams that it does not read until it is told to: a window of nothing. Then it reads them all.
UNREAD = r"""
import json, socket, struct, sys
to, host, size, conns, streams = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload
def text(s):
    return bytes([len(s)]) + s.encode()
held = []
for i in range(conns):
    s = socket.create_connection((to, 80), 60)
    out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack("!HI", 4, 0))
    for k in range(streams):
        out += frame(1, 5, 2 * k + 1, b"\x82\x86" + b"\x01" + text(host) + b"\x04" + text(f"/{size}"))
    s.sendall(out)
    held.append(s)
print("open", flush=True)
if not sys.stdin.readline():
    sys.exit()
bodies, broken = [], 0
for s in held:
    big = struct.pack("!I", (1 << 30))
    s.sendall(frame(8, 0, 0, big) + b"".join(frame(8, 0, 2 * k + 1, big) for k in range(streams)))
    got, left, data = {}, streams, b""
    while left:
        piece = s.recv(1 << 18)
        if not piece:
            break
        data += piece
        while len(data) >= 9 and len(data) >= 9 + (n := int.from_bytes(data[:3], "big")):
            kind, flags, stream = data[3], data[4], int.from_bytes(data[5:9], "big")
            if kind == 0:
                got[stream] = got.get(stream, 0) + n
            if kind == 3:
                broken += 1
            left -= kind == 3 or (kind in (0, 1) and flags & 1)
            data = data[9 + n:]
    bodies += got.values()
print(json.dumps({"whole": bodies.count(size), "bodies": len(bodies), "broken": broken}), flush=True)
"""


def answer(c):
    """As many bytes as the path says."""
    while True:
        size = int(read_head(c).split()[1][1:])
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for at in range(0, size, 65536):
            c.sendall(bytes(min(65536, size - at)))


silence, waiting = threading.Event(), []


def hold(c):
    read_head(c)
    waiting.append(c)
    silence.wait(600)
    c.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        net = Rogues(stack, POLICY, inspectors=1)
        net.origin("large.test", answer)
        net.origin("small.test", says(b"small"))
        net.origin("hold.test", hold)
        stack.callback(silence.set)
        yield net


def resident(net):
    pid, = net.workers()
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096


class Unread:
    def __init__(self, net, size, conns, streams, session=None, host="large.test"):
        self.process = base.popen(net.argv(base.PYTHON, "-c", UNREAD, FAR[4], host, size, conns, streams, session=session),
                                  env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"open\n"

    def read(self):
        self.process.stdin.write(b"read\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(180)


def settled(net):
    """What it holds when that does not change any more."""
    last = [0, 0]

    def still():
        last[:] = last[1], resident(net)
        return abs(last[1] - last[0]) < MB // 4

    base.eventually(still, 20, 0.7)  # one that never rests is measured as it is
    return last[1]


def test_unread_responses(net):
    """540 of a megabyte each, in three sandboxes: before there was a bound, the first one of them took 310 MB, and 260 of
    them were still held when it was gone."""
    sessions = [net.new_session() for _ in range(3)]
    assert net.get("http://small.test/") == b"small"
    before, hogs = settled(net), []
    for n, session in enumerate(sessions, 1):
        hogs.append(Unread(net, MB, 6, 90, session))
        grown = settled(net) - before
        assert base.SAN or grown < n * 64 * MB, f"{grown / MB:.0f} MB"
        assert net.get("http://small.test/") == b"small", "another sandbox does not feel it"
        assert net.get("http://small.test/", session=session) == b"small", "nor do requests that are read"
    for hog in hogs:
        hog.close()
    assert base.SAN or base.eventually(lambda: resident(net) - before < 24 * MB, 20), f"{(resident(net) - before) / MB:.0f} MB"


def test_what_was_held_back_goes_on(net):
    """Beyond what is easy to hold, streams wait with little; when they are read, every one of them arrives whole."""
    hog = Unread(net, 300_000, 4, 50)
    settled(net)
    assert hog.read() == {"whole": 200, "bodies": 200, "broken": 0}
    hog.close()


def test_unread_responses_that_are_complete(net):
    """An origin that has said all has no part in it any more; what waits for the client is held all the same, and counted."""
    before, session = settled(net), net.new_session()
    hogs = [Unread(net, 60_000, 30, 100, session) for _ in range(2)]
    grown = settled(net) - before
    assert base.SAN or grown < 2 * 64 * MB, f"{grown / MB:.0f} MB"
    over = lambda got: [e for e in got if e["reason"] in ("too_many_requests", "too_much_unread")]
    assert over(net.api.wait_events(over, session=session))
    for hog in hogs:
        hog.close()
    assert net.get("http://small.test/", session=session) == b"small", "when they are gone there is room"


def test_many_open_requests(net):
    """As many as an ordinary load generator has, 20 connections with 50 streams, are fine; thousands are not."""
    session = net.new_session()
    after = net.last()
    hogs = [Unread(net, 0, 20, 50, session, "hold.test")]
    assert base.eventually(lambda: len(waiting) == 1000), len(waiting)
    assert net.get("http://small.test/", session=session) == b"small"
    hogs.append(Unread(net, 0, 18, 100, session, "hold.test"))
    refused = lambda got: [e for e in got if e["reason"] == "too_many_requests"]
    assert refused(net.api.wait_events(refused, session=session, after=after))
    assert net.get("http://small.test/", session=net.new_session()) == b"small"
    for hog in hogs:
        hog.close()
