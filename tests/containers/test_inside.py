# SPDX-License-Identifier: MIT
"""Attacks from inside containers of real engines that the suites of tests/attack, which run in them with NETPAWL_TEST_ADOPTED, do not
have: those that need a container of a certain kind, two of them, or what an engine does to one. The control is the same container
before it is adopted, or one that nobody adopts."""
import contextlib
import os
import time

import pytest

from lib import base
from lib.engines import Contained, Docker, Podman, suite_options
from lib.inspected import Inspected
from lib.world import FAR, SINK

MODES = ["FULL", "PROXIED", "NONE"]
LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}
POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
# As good as root: it may go where it likes, and sees the names of the namespaces there are.
PRIVILEGED = ("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "-v", "/run/netns:/run/netns")


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY, bridged=True, in_memory=True)


@pytest.fixture(scope="module", params=[Podman, Docker], ids=["podman", "docker"])
def engine(request, net):
    return net.world.engine(request.param)


@pytest.fixture
def contained(net, engine):
    with contextlib.ExitStack() as stack:
        def make(mode="FULL", options=(), network="none", **kw):
            box = Contained(net.daemon, mode, engine=engine, options=[*suite_options(engine), "--network", network, *options], **kw)
            stack.callback(box.close)
            return box

        yield make


@pytest.fixture
def scratch():
    path = base.tempdir("scratch")
    yield path
    base.drop_tempdir(path)


def reach(agent, addr=FAR[4], port=9000, kind="stream", **kw):
    return agent.try_("dial", family=4, addr=addr, port=port, kind=kind, data="x", recv=10, timeout=5, **kw)


# -- leaving ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["unshare", "user", "host"])
def test_who_leaves_the_namespace_gets_no_socket(net, contained, how, mode):
    """A privileged one is adopted, and could remove the gate (SECURITY.md); what it has in another network is refused all the same."""
    args = dict(how="/run/netns/" + net.world.host, addr=FAR[4], port=9000) if how == "host" else dict(how=how)
    before = []
    box = contained(mode, PRIVILEGED, before=lambda agent: before.append(agent.payload("leave", "leave", **args)[1]))
    assert before[0]["socket"] == "ok" and before[0].get("connect", "ok") == "ok", f"the control: {before}"
    status, got = box.payload("leave", "leave", **args)
    assert status == 0 and got["socket"] == "EPERM", got
    assert box.refusals("left_netns")


LEFT = "import ctypes, sys; ctypes.CDLL(None).unshare(0x40000000); print('left', flush=True); sys.stdin.read()"


def test_one_that_has_left_already_is_not_adopted(net, engine, contained):
    box = contained(options=PRIVILEGED, adopt=False)
    stays = base.popen(engine.argv("exec", "-i", box.name, base.PYTHON, "-c", LEFT), env=engine.env, stdin=-1, stdout=-1)
    try:
        assert stays.stdout.readline() == b"left\n"
        p = box.adopt("SECRET", check=1)
        assert "foreign_netns" in p.stderr or "network namespace" in p.stderr, p
        assert reach(box.agent) == "ok", "it is as it was"
    finally:
        base.reap(stays)
        for pid in base.cgroup_pids(base.cgroup_mount() / place(box)):
            if "unshare(0x40000000)" in base.command_line(pid):
                os.kill(pid, 9)  # the engine's client is gone, and it is not
    assert base.eventually(lambda: box.adopt("SECRET", check=None).returncode == 0, 10), "the control: with it gone the rest is adopted"
    assert reach(box.agent) == "ECONNREFUSED"


def place(box):
    """Of its cgroup, below the mount."""
    with open(f"/proc/{box.pid}/cgroup") as f:
        return next(line.strip().split("::")[1].lstrip("/") for line in f if line.startswith("0::"))


# -- what two of them hand each other ------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_a_descriptor_does_not_pass_from_one_to_the_other(contained, scratch, mode):
    """By a unix socket in a directory that both have."""
    full, other = contained("FULL"), contained(mode)
    for keep, box in (("own", full), ("foreign", other)):
        box.call("mailbox", keep=keep, path=str(scratch / keep))
    full.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
    full.call("post", keep="c", path=str(scratch / "own"))
    full.call("mail", keep="own", as_="again")  # the control: to itself it may
    assert full.try_("post", keep="c", path=str(scratch / "foreign")) == "ECONNREFUSED"
    assert other.try_("mail", keep="foreign", as_="c", timeout=0.3) == "TIMEOUT"


def test_one_that_was_handed_a_descriptor_before_is_not_adopted(net, contained, scratch):
    """The socket is of the other's cgroup: the gate would never see it as this one's."""
    giver, taker = contained(adopt=False), contained(adopt=False)
    taker.call("mailbox", keep="in", path=str(scratch / "in"))
    giver.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
    giver.call("post", keep="c", path=str(scratch / "in"))
    taker.call("mail", keep="in", as_="c")
    mark, since = base.token(), time.time_ns()
    taker.call("send", keep="c", data=mark)
    assert base.eventually(lambda: net.world.frames(since, mark)["marked"], 5), "the control: it leads out"
    p = taker.adopt("SECRET", check=1)
    assert "held_sockets" in p.stderr or "made outside" in p.stderr, p
    taker.call("close", keep="c")
    taker.adopt("SECRET")
    assert reach(taker.agent) == "ECONNREFUSED"


@pytest.mark.parametrize("whose", ["host", "container"])
def test_one_that_is_connected_to_another_by_a_unix_socket_is_not_adopted(net, contained, scratch, whose):
    box, path = contained(adopt=False), str(scratch / "s")
    server = net.world.outside if whose == "host" else contained(adopt=False).agent
    server.call("listen", keep="s", family="unix", addr=path)
    try:
        box.call("dial", family="unix", addr=path, keep="c", data="x", recv=1)
        p = box.adopt("SECRET", check=1)
        assert "held_sockets" in p.stderr or "outside" in p.stderr, p
        box.call("close", keep="c")
        box.adopt("SECRET")
        assert box.try_("dial", family="unix", addr=path) == "ECONNREFUSED"
    finally:
        server.call("close", keep="s")


# -- two of one pod --------------------------------------------------------------------------------------------

MARK = """
import errno, socket, sys
addr, port, marks = sys.argv[1], int(sys.argv[2]), range(2, 40, 2)
query = bytes.fromhex("00070100000100000000000006") + b"origin" + b"\\x04test\\x00\\x00\\x01\\x00\\x01"
out = set()
for mark in marks:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, 36, mark)  # SO_MARK: CAP_NET_RAW is enough
        s.bind(("127.0.0.1", int(sys.argv[3])))
        s.sendto(query, (addr, port))
        s.settimeout(0.1)
        out.add("answered" if s.recv(512) else "")
    except TimeoutError:
        out.add("silence")
    except OSError as e:
        out.add(errno.errorcode[e.errno])
    s.close()
print(*sorted(out))
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_mark_makes_nobody_somebody_else(net, contained, mode):
    """The DNS gate knows a query by its port and the mark that the gate gives it. A sibling of the pod that sets marks by itself, from
    the port that the other asked from, reaches that gate's socket in no mode."""
    victim = contained("PROXIED")
    sibling = contained(mode, network=victim.wired.network, wired=victim.wired)
    ask = lambda: victim.call("dial", family=4, kind="dgram", addr="192.0.2.53", port=53, bind=["127.0.0.1", 20053], recv=512,
                              data="\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6origin\\4test\\0\\0\\1\\0\\1".encode().decode("unicode_escape"))
    assert ask()["data"], "the control: the gate answers who asks"
    rows = base.sh(*victim.enter(), "ss", "-Hlun").stdout.split("\n")
    port = next(int(r.split()[3].rsplit(":", 1)[1]) for r in rows if r.split()[3].startswith("127.0.0.1:"))
    got = sibling.call("execute", argv=[base.PYTHON, "-c", MARK, "127.0.0.1", str(port), "20053"])
    assert got["code"] == 0 and "answered" not in got["out"] and "silence" not in got["out"], got
    assert not [e for e in sibling.events() if e.get("kind") == "allow"]
    assert ask()["data"]


# -- what the engine starts in it ----------------------------------------------------------------------------

EXEC = """
import socket, sys, time
s, end = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30), time.monotonic() + 60
print("open", flush=True)
while time.monotonic() < end:
    s.sendall(sys.argv[3].encode())
    time.sleep(0.001)
"""


@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_what_is_started_in_it_later_is_cut_with_it(net, engine, contained, level):
    """Docker and Podman put it into the container's cgroup, or into one below."""
    box, mark, since = contained("FULL"), base.token(), time.time_ns()
    p = base.popen(engine.argv("exec", box.name, base.PYTHON, "-c", EXEC, FAR[4], SINK, mark), env=engine.env, stdout=-1, stderr=-1)
    try:
        assert p.stdout.readline() == b"open\n"
        assert any(mark in base.command_line(pid) for pid in base.cgroup_pids(box.cgroup))
        assert base.eventually(lambda: net.world.frames(since, mark)["marked"] > 20, 10), "the control"
        assert net.api.escalate(box.session, level)["cut"] >= 1
        acknowledged = time.time_ns()
        assert p.wait(60) != 0 and b"onnection" in p.stderr.read()
        assert net.world.frames(acknowledged, mark)["marked"] == 0
    finally:
        base.reap(p)


# -- from its first instruction --------------------------------------------------------------------------------

FIRST = """
import socket, sys
for i in range(200):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        s = socket.socket(socket.AF_INET, kind)
        s.settimeout(0.2)
        try:
            s.connect((sys.argv[1], int(sys.argv[2])))
            s.send(sys.argv[3].encode())
        except OSError:
            pass
"""


@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_nothing_gets_out_between_birth_and_adoption(net, engine, mode):
    """With --cgroup-parent: it tries from its first instruction on, on the host's own network, where nothing has to be set up before."""
    session = f"tester/born-{base.token()}"
    net.api.create(session, LEVEL[mode])
    parent = net.daemon.cli("parent", session, check=0).stdout.strip()
    for words in ([], ["--cgroup-parent", parent] + ["--cgroups", "no-conmon"] * (engine.name == "podman")):
        name, mark, since = base.unique("c"), base.token(), time.time_ns()
        argv = engine.run_argv(name, "--rm", "--network", "host", *words, cmd=[base.PYTHON, "-c", FIRST, FAR[4], SINK, mark])
        base.sh(*argv, env=engine.env, timeout=300)
        got = base.eventually(lambda: net.world.frames(since, mark)["marked"], 0.1 if words else 10)
        assert bool(got) == (not words), ("the control" if not words else "it got out", got)
    assert net.api.sandboxes(session)
    net.api.end(session)
