# SPDX-License-Identifier: MIT
"""timeouts of a rule: who is silent for longer is refused by name, and who may be silent goes on."""
import concurrent.futures
import contextlib
import json
import threading

import pytest

from lib import base
from lib.rogues import Rogues, read_head
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: [idle.test, half.test, slow-reader.test]
    timeouts: {idle: 1s}
  - allow: first.test
    timeouts: {idle: 1h, first_byte: 1s}
  - allow: patient.test
    timeouts: {idle: 1s, first_byte: 1h}
  - allow: gone.test
    timeouts: {connect: 1s}
  - allow: "**.test"
"""
LINES = {"idle.test": 3, "half.test": 3, "first.test": 5, "gone.test": 9}
PART = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\npart"
BIG = 4 << 20

# Takes 100 kB a second from a connection that holds little, for much longer than the rule's idle.
SLOW_READER = f"""
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
s.connect(("{FAR[4]}", 80))
s.sendall(b"GET / HTTP/1.1\\r\\nHost: slow-reader.test\\r\\n\\r\\n")
got = 0
while got < 500000:
    piece = s.recv(5000)
    assert piece, got
    got += len(piece)
    time.sleep(0.05)
print("all of it")
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Rogues(stack, POLICY, inspectors=1)
        n.ended, n.asked = threading.Event(), {}
        stack.callback(n.ended.set)
        yield n
        assert n.daemon.running(), n.daemon.text()[-3000:]


def silent(net, name, first=b""):
    """An origin that hears a request, says first and then nothing until the end."""
    asked = net.asked[name] = threading.Event()

    def handler(c):
        read_head(c)
        c.sendall(first)
        asked.set()
        net.ended.wait(600)
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate")

    net.origin(name, handler)


def test_silence_is_refused_as_the_rule_says(net):
    for name in ("idle.test", "first.test", "patient.test", "default.test"):
        silent(net, name)
    silent(net, "half.test", PART)
    net.names["gone.test"] = ["198.51.100.250"]
    base.sh("ip", "-n", net.world.far, "route", "add", "blackhole", "198.51.100.250/32")
    after = net.last()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        try:
            # these may wait, and do so for longer than the others
            patient = [pool.submit(net.get, f"http://{name}/") for name in ("patient.test", "default.test")]
            assert all(net.asked[name].wait(120) for name in ("patient.test", "default.test"))
            refused = {name: pool.submit(net.get, f"http://{name}/", "-w", "\n%{http_code}") for name in LINES}
            got = {name: f.result() for name, f in refused.items()}
            assert not any(f.done() for f in patient)
        finally:
            net.ended.set()
        assert [f.result() for f in patient] == [b"late", b"late"]
    assert got.pop("half.test").startswith(b"part")
    for name, word in (("idle.test", "idle"), ("first.test", "first_byte"), ("gone.test", "connect")):
        body, status = got[name].decode().rsplit("\n", 1)
        body = json.loads(body)
        assert status == "504" and body["reason"] == "timed_out" and f"nothing for 1 s ({word})" in body["message"], body
        assert body["rule"].endswith(f":{LINES[name]}"), body
    events = {e["url"].split("/")[2]: e for e in net.events(lambda e: e["reason"] == "timed_out", after, count=4)}
    assert set(events) == set(LINES), events
    for name, event in events.items():
        assert event["rule"].endswith(f":{LINES[name]}") and event["text"].startswith("nothing for 1 s ("), event
        assert event["status"] == (200 if name == "half.test" else 504), event


def test_a_slow_reader_is_not_silent(net):
    def handler(c):
        read_head(c)
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % BIG + bytes(BIG))

    net.origin("slow-reader.test", handler)
    p = net.run(base.PYTHON, "-c", SLOW_READER)
    assert p.stdout == "all of it\n", p
