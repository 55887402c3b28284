# SPDX-License-Identifier: MIT
"""The upstream proxy reaches everything, and so it is nothing that a sandbox may speak to: it is the inspector's alone. And
what goes by it is cut like all else."""
import contextlib
import socket
import struct
import time

import pytest

from lib import base
from lib.proxies import OTHER_PORT, PORT, Proxied
from lib.rogues import read_head, says
from lib.world import FAR_OTHER

MARK = b"the mark of a sandbox"
# The widest rules that there are: every name at every port, and even the proxy's own address, at the ports that are inspected.
POLICY = f"""version: 1
levels: {{INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}}
inspect_ports: [80, 443, {OTHER_PORT}]
upstream_proxy:
  - {{url: direct, hosts: [straight.test, alias.test]}}
  - {{url: "http://{FAR_OTHER}:{OTHER_PORT}", hosts: by-address.test}}
  - url: http://proxy.test:{PORT}
rules:
  - allow: "forbidden-later.test:7000"
    for: INTERNAL
  - deny: ["forbidden.test:*", "forbidden-later.test:*"]
  - allow: ["**:*", "{FAR_OTHER}:{OTHER_PORT}"]
"""

# In a sandbox or not: says it to there, and prints what came back.
SPEAK = r"""
import socket, sys
try:
    s = socket.create_connection((%r, %d), 30)
    s.sendall(b"CONNECT forbidden.test:80 HTTP/1.1\r\nHost: forbidden.test:80\r\n\r\n")
    got = s.recv(4096)
    if b" 200 " in got:
        s.sendall(b"GET / HTTP/1.1\r\nHost: forbidden.test\r\n\r\n")
        got = s.recv(4096)
    print(got)
except OSError as e:
    print(type(e).__name__)
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Proxied(stack, POLICY)
        n.origin("forbidden.test", says(b"the forbidden"), 80)
        n.names.update({"straight.test": [FAR_OTHER], "alias.test": [FAR_OTHER]})
        n.behind["inside.test"] = FAR_OTHER
        workers = n.daemon.workers()
        yield n
        assert n.daemon.running() and n.daemon.workers() == workers, n.daemon.text()[-3000:]


@pytest.mark.parametrize("host,port", [
    (FAR_OTHER, PORT),         # past the inspector: no rule allows the address
    (FAR_OTHER, OTHER_PORT),   # by the inspector: a rule allows the address
    ("proxy.test", PORT),      # by its name: a rule allows every name at every port
    ("alias.test", OTHER_PORT)  # by another name that leads to its address, directly
])
def test_a_sandbox_does_not_speak_to_the_proxy(net, host, port):
    code = SPEAK % (host, port)
    # Control: nothing but the gate is in the way. The name is resolved by no server of the host's.
    out = net.bare(base.PYTHON, "-c", SPEAK % (FAR_OTHER, port))
    assert b"the forbidden" in out, out
    before = len(net.seen)
    out, _ = net.python(code).communicate(timeout=180)
    assert b"the forbidden" not in out, out
    assert [s for s in net.seen[before:] if s[1] == "forbidden.test:80"] == []


def test_the_name_is_judged_before_the_proxy_is_asked(net):
    before = len(net.seen)
    assert b"rule_denies" in net.raw("GET http://forbidden.test/ HTTP/1.1\r\nHost: forbidden.test\r\nConnection: close\r\n\r\n")
    assert len(net.seen) == before
    # Control: the proxy leads there, and a rule is all that is in the way.
    net.behind["allowed.test"] = net.behind["forbidden.test"]
    assert b"the forbidden" in net.raw("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("raised", [True, False])
def test_a_raise_cuts_what_goes_by_the_proxy(net, raised):
    """A tunnel through a proxy that reads nothing: what waits is not sent after the acknowledgement."""
    stuck, go = [], []

    def handler(c):
        stuck.append(c)
        while not go:
            time.sleep(0.01)
        while c.recv(65536):
            pass

    name = f"far{int(raised)}.test"
    net.origin(name, handler, 7000, rcvbuf=4096)
    session = net.new_session("INTERNAL")
    p = net.python("import socket, sys\ns = socket.create_connection((%r, 7000), 60)\ns.settimeout(2)\nprint('open', flush=True)\n"
                   "try:\n  while True: s.sendall(%r * 3000)\nexcept OSError as e: print(type(e).__name__, flush=True)\n"
                   "sys.stdin.read()" % (name, MARK), session=session)
    assert p.stdout.readline() == b"open\n" and base.eventually(lambda: stuck, 10)
    assert p.stdout.readline() in (b"TimeoutError\n", b"timeout\n")  # everything on the way is full
    (authority,) = {s[1] for s in net.connects(f"{name}:7000")}
    tunnel = net.tunnels[-1]
    if raised:
        net.raise_to(session, "SECRET")
    since = time.time_ns()
    go.append(1)
    look = lambda: net.world.frames(since, MARK.decode())
    if raised:
        time.sleep(0.5)
        assert not look()["marked"], look()["frames"][:3]
        assert net.events(lambda e: name in e["url"] and e["reason"] == "ended_by_raise") if session == net.session else True
    else:
        assert base.eventually(lambda: look()["marked"]), "the control got nothing through: this test proves nothing"
    base.reap(p)
