"""A socket with an address that is not the host's: whoever answers it (the DNS gate, a service of the host, netpawl forward)
would carry a sandbox's bytes to there. And callers of a sandbox: they crowd out none of its own refusals."""
import json
import time

import pytest

from lib import base
from lib.world import FAR

BIND = r"""
import errno, json, socket, sys
far, out = json.loads(sys.argv[1]), {}
def name(call):
    try:
        call()
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]
for fam, family in (("4", socket.AF_INET), ("6", socket.AF_INET6)):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        out[f"option {fam} {kind.name}"] = name(lambda: s.setsockopt(0 if fam == "4" else 41, 15 if fam == "4" else 78, 1))
        out[f"bind {fam} {kind.name}"] = name(lambda: s.bind((far[fam], 0)))
        out[f"own {fam} {kind.name}"] = name(lambda: socket.socket(family, kind).bind(("127.0.0.1" if fam == "4" else "::1", 0)))
print(json.dumps(out))
"""

# The source of a single datagram (IPV6_PKTINFO), where the host's settings let a program choose any.
QUERY = r"""
import socket, struct, sys
mark, far = sys.argv[1], sys.argv[2]
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
q = struct.pack(">6H", 0x1234, 0x100, 1, 0, 0, 0) + bytes([len(mark)]) + mark.encode() + b"\x07example\x00" + struct.pack(">2H", 28, 1)
info = socket.inet_pton(socket.AF_INET6, far) + struct.pack("I", 0)
for cmsg in ([(41, 50, info)], []):
    try:
        s.sendmsg([q], cmsg, 0, (far, 53))
        s.settimeout(2)
        print("answer" if s.recv(512) else "empty")
    except OSError as e:
        print(type(e).__name__, e.errno)
"""


def execute(agent, program, *words):
    got = agent.call("execute", argv=[base.PYTHON, "-c", program, *words])
    assert got["code"] == 0, got["err"]
    return got["out"]


@pytest.fixture
def any_address(world):
    """Settings of the host by which every program may bind to any address."""
    names = ("net.ipv4.ip_nonlocal_bind", "net.ipv6.ip_nonlocal_bind")
    for name in names:
        base.sh(*world.enter(), "sysctl", "-qw", f"{name}=1")
    yield
    for name in names:
        base.sh(*world.enter(), "sysctl", "-qw", f"{name}=0")


FAR_JSON = json.dumps({"4": FAR[4], "6": FAR[6]})


def test_the_control_gets_one(world):
    assert set(json.loads(execute(world.outside, BIND, FAR_JSON)).values()) == {"ok"}


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_no_socket_has_a_foreign_address(boxes, mode):
    got = json.loads(execute(boxes(mode), BIND, FAR_JSON))
    assert {k: v for k, v in got.items() if not k.startswith("own")} == {
        f"{what} {fam} {kind}": error for what, error in (("option", "EPERM"), ("bind", "EADDRNOTAVAIL"))
        for fam in "46" for kind in ("SOCK_STREAM", "SOCK_DGRAM")}
    assert {v for k, v in got.items() if k.startswith("own")} == {"ok"}


def test_nor_where_the_host_allows_it(world, boxes, any_address):
    box = boxes("FULL")
    got = json.loads(execute(box, BIND, FAR_JSON))
    assert {v for k, v in got.items() if k.startswith("bind")} == {"EADDRNOTAVAIL"}
    assert base.eventually(lambda: [e for e in box.events() if e["reason"] == "foreign_source"], 5)


def test_no_answer_of_the_dns_gate_leaves(world, make_daemon, any_address):
    daemon = make_daemon(inspectors=1)
    daemon.start()
    mark, since = base.token(), time.time_ns()
    p = daemon.cli("run", "--level", "CONFIDENTIAL", "--", base.PYTHON, "-c", QUERY, mark, FAR[6])
    lines = p.stdout.split("\n")
    assert lines[1] == "answer", (p.stdout, p.stderr)  # with its own address it has one
    assert lines[0] != "answer"
    assert world.frames(since, mark)["marked"] == 0
    # what is sent is seen: the same bytes from the host, in no sandbox
    execute(world.outside, QUERY, mark, FAR[6])
    assert base.eventually(lambda: world.frames(since, mark)["marked"] > 0, 5)


FLOOD = r"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(3000):
    try:
        s.sendto(b"x", ("127.0.0.1", int(sys.argv[1])))
    except OSError:
        pass
"""


def test_callers_crowd_out_no_refusal(world, boxes, api):
    box = boxes("PROXIED")
    port = box.call("listen", keep="u", family=4, addr="127.0.0.1", kind="dgram")["port"]
    alone = box.apart and not box.wired  # in a network that nobody else is in
    if not alone:
        execute(world.agent(box.wired.name) if box.wired else world.outside_user, FLOOD, str(port))
    for far_port in (7777, 7778):
        box.try_("dial", family=4, addr="203.0.113.7", port=far_port, timeout=1)
    own = base.eventually(lambda: [e for e in box.events() if e.get("port") in (7777, 7778)][1:], 5)
    assert own, "the sandbox's own refusals have no event"
    assert alone or [e for e in box.events() if e["reason"] == "inbound"], "nobody called"
    assert api.ask("GET", f"/v1/sandboxes/{box.id}")[1]["refused"] == 2
