# SPDX-License-Identifier: MIT
"""Adoption: what a process opened elsewhere keeps the cgroup it was made in, so the gate would never see it."""
import array
import contextlib
import socket
import subprocess

import pytest

from lib import base
from lib.box import attach_pid, new_session
from lib.world import FAR

HELD = {
    "unbound tcp": ("hold", dict(family=4)),
    "unbound udp6": ("hold", dict(family=6, kind="dgram")),
    "connected tcp": ("dial", dict(family=4, addr=FAR[4], port=9000)),
    "connected udp": ("dial", dict(family=4, addr=FAR[4], port=9000, kind="dgram")),
    "listener": ("listen", dict(family=4, addr="127.0.0.1")),
}
LOOKS = 300


@contextlib.contextmanager
def moved(world):
    """An agent that lived outside and is moved into a cgroup that is about to be adopted."""
    folder, agent = base.cgroup_make("moved"), world.agent(world.host)
    try:
        yield folder, agent
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        base.cgroup_destroy(folder)


def adopt(daemon, session, folder):
    return daemon.api.ask("POST", "/v1/sandboxes", {"session": session, "cgroup": str(folder)})


@contextlib.contextmanager
def running(world, name, code, *words, **kw):
    """A cgroup, and a Python program that says "up" before it is put there; it ends with its standard input."""
    folder = base.cgroup_make(name)
    p = base.popen([*world.enter(), base.PYTHON, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kw)
    try:
        assert p.stdout.readline() == b"up\n"
        attach_pid(folder, p.pid)
        yield folder
    finally:
        p.stdin.close()
        base.reap(p)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        base.cgroup_destroy(folder)


@pytest.mark.parametrize("what", HELD)
def test_a_socket_from_outside_is_a_reason_to_refuse(world, daemon, what):
    op, args = HELD[what]
    session = new_session("moved")
    with moved(world) as (folder, agent):
        agent.call(op, keep="h", **args)
        attach_pid(folder, agent.process.pid)
        daemon.api.create(session, "SECRET")
        status, answer = adopt(daemon, session, folder)
        assert (status, answer["error"]) == (409, "held_sockets"), answer
        assert str(agent.process.pid) in answer["detail"], "it names the process"
        # control: without the socket the same cgroup is adopted, and closed
        agent.call("close", keep="h")
        status, answer = adopt(daemon, session, folder)
        assert status == 201, answer
        assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_a_thread_with_descriptors_of_its_own(world, daemon):
    """unshare(CLONE_FILES): /proc/PID/fd does not show what that thread holds."""
    code = ("import ctypes, socket, sys, threading\n"
            "ready = threading.Event()\n"
            "def body():\n"
            "    assert ctypes.CDLL(None).unshare(0x400) == 0\n"
            "    s = socket.socket(); ready.set(); threading.Event().wait(60)\n"
            "threading.Thread(target=body, daemon=True).start(); ready.wait()\n"
            "print('up', flush=True); sys.stdin.read()\n")
    with running(world, "thread", code) as folder:
        status, answer = adopt(daemon, new_session("thread"), folder)
        assert (status, answer["error"]) == (409, "held_sockets"), answer


def test_a_threaded_cgroup(world, daemon):
    """It does not tell whose threads are in it, and others of the same processes, with the same descriptors, may be elsewhere."""
    with moved(world) as (folder, agent):
        attach_pid(folder, agent.process.pid)
        part = folder / "part"
        part.mkdir()
        try:
            (part / "cgroup.type").write_text("threaded")
            (part / "cgroup.threads").write_text(str(agent.process.pid))
            status, answer = adopt(daemon, new_session("threaded"), part)
            assert (status, answer["error"]) == (500, "failed"), answer
            # control: what is above it tells of all of them
            status, answer = adopt(daemon, new_session("threaded"), folder)
            assert status == 201, answer
        finally:
            (folder / "cgroup.threads").write_text(str(agent.process.pid))
            part.rmdir()


class Holder:
    """A process that holds something (payload/held.py or ring.c), in a cgroup that is about to be adopted."""

    def __init__(self, world, stack, what, cgroup=None):
        """cgroup: one that somebody else removes"""
        self.world, self.what, self.ours = world, what, cgroup is None
        self.cgroup, self.dir = cgroup or base.cgroup_make("held"), base.tempdir("held")
        stack.callback(self.close)
        self.listeners = {}
        for kind, number in (("stream", socket.SOCK_STREAM), ("dgram", socket.SOCK_DGRAM)):
            self.listeners[kind] = s = socket.socket(socket.AF_UNIX, number)
            stack.callback(s.close)
            s.bind(str(self.dir / kind))
            s.settimeout(60)
        self.listeners["stream"].listen()
        ring = what in ("registered", "sqpoll")
        argv = [str(world.dir / "payload/ring")] if ring else [base.PYTHON, "-I", str(world.dir / "payload/held.py")]
        # standard input is a socket, as it is where a service manager or a launcher wants to be heard
        self.near, far = socket.socketpair()
        self.near.settimeout(120)
        self.process = base.popen([*world.enter(), *argv, what, FAR[4], "9000", *([] if ring else [str(self.dir)])],
                                  stdin=far, stdout=subprocess.PIPE)
        far.close()
        word = self.process.stdout.readline().split()
        if ring and not word:
            pytest.skip("this kernel has no io_uring")
        assert word[0] == b"made", word
        self.pid = int(word[1])
        attach_pid(self.cgroup, self.pid)
        assert self.say("") == b"moved\n"
        if what == "not accepted":
            self.knock()

    def say(self, line):
        self.near.sendall(line.encode() + b"\n")
        return self.process.stdout.readline()

    def knock(self):
        """A connection of an outsider that brings a socket."""
        tcp = base.setns_call(self.world.host, lambda: socket.create_connection((FAR[4], 9000), timeout=60))
        self.knocking = socket.socket(socket.AF_UNIX)
        self.knocking.connect(str(self.dir / "inside"))
        self.knocking.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [tcp.fileno()]))])
        tcp.close()

    def through(self):
        """Sends by what it holds. Did it arrive?"""
        mark = base.token()
        assert self.say(mark) == b"sent %d\n" % len(mark), "what it holds is of no use"
        if self.what == "stream":
            with self.listeners["stream"].accept()[0] as s:
                return s.recv(100) == mark.encode()
        if self.what == "dgram":
            return self.listeners["dgram"].recv(100) == mark.encode()
        return bool(base.eventually(lambda: self.world.records(0, mark), 5))

    def close(self):
        self.near.close()
        if self.ours:
            base.cgroup_destroy(self.cgroup)
        base.reap(self.process)
        base.drop_tempdir(self.dir)


UNSEEN = ["stream", "dgram", "in flight", "in flight twice", "not accepted", "registered", "sqpoll"]


@pytest.mark.parametrize("what", UNSEEN)
def test_what_no_descriptor_shows(world, daemon, what):
    """It would be adopted, and send in NONE. The control: what is held leads out, as long as nobody adopts the cgroup."""
    session = new_session("unseen")
    daemon.api.create(session, "SECRET")
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, what)
        status, answer = adopt(daemon, session, holder.cgroup)
        arrived = holder.through()
        assert status == 409, f"adopted in NONE, and what it sent then {'arrived' if arrived else 'did not arrive'}"
        assert arrived, "the control"
        assert answer["error"] == "held_sockets" and str(holder.pid) in answer["detail"], answer
        assert daemon.api.sandboxes(session) == []


INHERITS_RING = """
import ctypes, os, sys
ring = ctypes.CDLL(None, use_errno=True).syscall(425, 4, ctypes.create_string_buffer(120))  # io_uring_setup
os.write(1, b"made %d\\n" % (ring >= 0 or -ctypes.get_errno()))
os.set_inheritable(ring, True)
os.execv(sys.executable, [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"])
"""


def test_uring_that_was_inherited(world, daemon):
    """By a program that has not used it: only its table of descriptors shows it."""
    folder = base.cgroup_make("ring")
    p = base.popen([*world.enter(), base.PYTHON, "-c", INHERITS_RING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if int(p.stdout.readline().split()[1]) < 0:
            pytest.skip("this kernel has no io_uring")
        assert p.stdout.readline() == b"up\n"
        attach_pid(folder, p.pid)
        status, answer = adopt(daemon, new_session("ring"), folder)
        assert (status, answer["error"]) == (409, "held_sockets") and "is an io_uring" in answer["detail"], answer
    finally:
        p.stdin.close()
        base.reap(p)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        base.cgroup_destroy(folder)


MOVES = """
import os, random, sys, threading
at = int(sys.argv[1])
os.dup2(0, 4000)
print("up", flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    to = random.randrange(100, 4000)
    if to != at:
        os.dup2(at, to)
        os.close(at)
        at = to
"""


def test_a_socket_that_never_stays_where_it_is(world, daemon):
    """In one descriptor after the other, while the look goes through them."""
    session = new_session("moves")
    with socket.socket() as s, running(world, "moves", MOVES, str(s.fileno()), pass_fds=[s.fileno()]) as folder:
        for _ in range(60):
            status, answer = adopt(daemon, session, folder)
            assert (status, answer["error"]) == (409, "held_sockets"), answer


def test_a_table_that_is_too_large_to_look_at(world, make_daemon):
    """Whoever has had a descriptor with a high number: what else is in the table could hide behind it."""
    code = "import os, sys; os.close(os.dup2(0, 9000)); print('up', flush=True); sys.stdin.read()"
    with running(world, "room", code) as folder:
        d = make_daemon().start(failpoint="none", NETPAWL_OPEN_FILES_MAX="8192")
        session = new_session("room")
        status, answer = adopt(d, session, folder)
        assert (status, answer["error"]) == (409, "held_sockets") and "than can be looked at" in answer["detail"], answer
        d.stop()
        d.start()
        assert adopt(d, session, folder)[0] == 201, "the control: the bound as it is"


def test_a_socket_with_numbers_of_its_own_choice(world, daemon):
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, "repair")
        status, answer = adopt(daemon, new_session("repair"), holder.cgroup)
        assert (status, answer["error"]) == (409, "held_sockets") and "TCP_REPAIR" in answer["detail"], answer


def test_what_programs_have_is_no_reason(world, daemon):
    """Unix sockets that were made inside, with unread bytes, bound, listening and connected; a socket as standard input."""
    session = new_session("innocent")
    daemon.api.create(session, "SECRET")
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, "innocent")
        status, answer = adopt(daemon, session, holder.cgroup)
        assert status == 201, answer


REBINDS = """
import errno, select, socket, sys
print("up", flush=True)
times = refused = 0
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                s.listen()
            except OSError as e:
                assert e.errno == errno.EADDRINUSE, e
                refused += 1
        times += 1
print(times, refused)
"""


def test_a_look_holds_no_port(world, daemon):
    """A program that closes its listener and binds the port again has it at once, whoever looks at what it holds. The looks are
    those at a cgroup that is refused for another process of it, which comes later; without that one it is adopted."""
    session = new_session("rebinds")
    daemon.api.create(session, "PUBLIC")
    with moved(world) as (folder, agent):
        rebinds = base.popen([*world.enter(), base.PYTHON, "-c", REBINDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            attach_pid(folder, rebinds.pid)
            assert rebinds.stdout.readline() == b"up\n"
            late = world.agent(world.host)
            late.call("hold", keep="h", family=4)
            attach_pid(folder, late.process.pid)
            assert {adopt(daemon, session, folder)[1].get("error") for _ in range(LOOKS)} == {"held_sockets"}
            world.drop(late)
            attach_pid(folder, agent.process.pid)
            status, answer = adopt(daemon, session, folder)
            assert status == 201, answer
        finally:
            rebinds.stdin.close()
            said = rebinds.stdout.read()
            base.reap(rebinds)
    times, refused = map(int, said.split())
    assert times >= LOOKS and not refused, (times, refused)


def made(daemon, session):
    """A sandbox that a platform asks for, to put processes there by itself."""
    status, sandbox = daemon.api.ask("POST", "/v1/sandboxes", {"session": session})
    assert status == 201, sandbox
    return sandbox


@pytest.mark.parametrize("what", ["stream", "in flight", "registered"])
def test_what_a_placed_process_brings_along_ends_with_the_raise(world, daemon, what):
    """In a made sandbox nobody asks before: it is looked at when the sandbox is tightened."""
    session = new_session("placed")
    daemon.api.create(session, "PUBLIC")
    sandbox = made(daemon, session)
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, what, base.pathlib.Path(sandbox["cgroup"]))
        daemon.api.escalate(session, "SECRET")
        alive = holder.pid in base.cgroup_pids(holder.cgroup)
        assert not alive, f"it lives on in NONE, and what it sent {'arrived' if holder.through() else 'did not arrive'}"
        assert daemon.api.sandboxes(session) == []
        event, = daemon.api.wait_events(lambda got: got, 10, session=session, reason="placed_sockets")
        assert str(holder.pid) in event["text"], event


def test_what_a_placed_process_brings_along_into_none(world, daemon):
    """And when it has had time to close what it inherited."""
    session = new_session("placed")
    daemon.api.create(session, "SECRET")
    sandbox = made(daemon, session)
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, "in flight", base.pathlib.Path(sandbox["cgroup"]))
        assert base.eventually(lambda: daemon.api.sandboxes(session) == [], 15)
        assert holder.pid not in base.cgroup_pids(holder.cgroup)


def test_a_placed_process_that_brings_nothing(world, daemon):
    """The control: it lives on, and is closed."""
    session = new_session("placed")
    daemon.api.create(session, "PUBLIC")
    sandbox = made(daemon, session)
    with contextlib.ExitStack() as stack:
        holder = Holder(world, stack, "innocent", base.pathlib.Path(sandbox["cgroup"]))
        daemon.api.escalate(session, "SECRET")
        assert holder.pid in base.cgroup_pids(holder.cgroup)
        assert daemon.api.events(session=session, reason="placed_sockets") == []


def test_sandboxes_do_not_nest(world, daemon):
    """An entry lives as long as its cgroup, so a removed sandbox still counts above and below."""
    outer = base.cgroup_make("outer")
    inner = outer / "inner"
    inner.mkdir()
    agent = world.agent(world.host, cgroup=inner)
    first, second = new_session("outer"), new_session("inner")
    try:
        pid = agent.process.pid
        attach_pid(base.cgroup_mount(), pid)
        status, made = adopt(daemon, first, outer)
        assert status == 201, made
        daemon.api.remove(made["sandbox"])
        attach_pid(inner, pid)
        daemon.api.create(second, "SECRET")
        status, answer = adopt(daemon, second, inner)
        assert (status, answer["error"]) == (409, "bad_cgroup"), answer
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(inner), 3)
        inner.rmdir()
        base.cgroup_destroy(outer)


def test_a_connection_in_other_hands(world, daemon):
    """The process that connected is gone and its number may be anyone's: nobody can say where the peer is."""
    code = ("import os, socket, sys\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    s.connect(sys.argv[1]); os._exit(0)\n"
            "os.waitpid(pid, 0)\n"
            "s.sendall(b'GET /v1/sandboxes HTTP/1.0\\r\\n\\r\\n')\n"
            "data = b''\n"
            "while chunk := s.recv(65536):\n"
            "    data += chunk\n"
            "print(data.decode())\n")
    got = base.sh(*world.enter(), base.PYTHON, "-c", code, str(daemon.socket)).stdout
    assert "403" in got and "from_sandbox" in got, got
    # control: the same request by a process that is alive
    got = base.sh(*world.enter(), base.PYTHON, "-c", code.replace("pid = os.fork()", "s.connect(sys.argv[1]); pid = os.fork()")
                  .replace("    s.connect(sys.argv[1]); os._exit(0)", "    os._exit(0)"), str(daemon.socket)).stdout
    assert "200" in got and "sandboxes" in got, got


def test_root_cannot_rewrite_the_host_or_the_record(daemon):
    """What root may write, the host would run or believe."""
    state = daemon.state_dir
    assert (state / "sessions.db").exists()
    got = daemon.cli("run", "--user", "root", *base.shown(), "--", "sh", "-c", f"ls {state}; touch /etc/np-test-{base.token()} 2>&1; "
                                              f"touch /usr/local/sbin/np-test-x 2>&1; echo end")
    assert "sessions.db" not in got.stdout and got.stdout.count("Read-only file system") == 2 and "end" in got.stdout, got


@pytest.mark.parametrize("transport", ["stream", "seqpacket"])
def test_a_connection_to_the_host_from_inside(world, daemon, transport):
    """It was made in the cgroup, and so was the server's end of it, by the client's connect(): the server is outside all
    the same. A connection to a server of the cgroup's own is no reason to refuse."""
    folder = base.cgroup_make("early")
    inside = [world.agent(world.host, cgroup=folder) for _ in range(2)]
    session = new_session("early")
    try:
        outer, own = (f"@np-test-{word}-{base.token()}" for word in ("outer", "own"))
        world.outside.call("listen", keep=outer, family="unix", addr=outer, kind=transport)
        inside[0].call("listen", keep="own", family="unix", addr=own, kind=transport)
        inside[1].call("dial", family="unix", addr=outer, kind=transport, keep="outer", data="x", recv=1)
        inside[1].call("dial", family="unix", addr=own, kind=transport, keep="own", data="x", recv=1)
        daemon.api.create(session, "SECRET")
        status, answer = adopt(daemon, session, folder)
        assert (status, answer["error"]) == (409, "held_sockets"), answer
        assert str(inside[1].process.pid) in answer["detail"]
        inside[1].call("close", keep="outer")
        status, answer = adopt(daemon, session, folder)
        assert status == 201, answer
    finally:
        world.outside.call("close", keep=outer)
        for agent in inside:
            world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        daemon.api.ask("DELETE", f"/v1/sessions/{session}")
        base.cgroup_destroy(folder)


def test_netpawls_own_cgroups_are_not_adopted(world, make_daemon):
    """Not the inspector's, whether or not one runs, and not the one that the daemon is in: nor what is below or above them."""
    home = base.cgroup_make("home")
    d = make_daemon()
    d.cgroup = f"{home.name}/{d.cgroup}"  # below it, so that there is something above
    session = new_session("own")
    own = base.cgroup_make("netpawld")
    inspector = d.slice.with_name(d.slice.name + "-inspector")
    try:
        d.start()
        d.api.create(session, "PUBLIC")
        (inspector / "below").mkdir()
        (own / "below").mkdir()
        # control: as long as the daemon is elsewhere it is a cgroup like any other
        status, answer = adopt(d, session, own)
        assert status == 201, answer
        assert d.api.ask("DELETE", f"/v1/sandboxes/{answer['sandbox']}")[0] in (200, 204)
        attach_pid(own / "below", d.process.pid)
        for folder in (inspector, inspector / "below", home, own, own / "below"):
            status, answer = adopt(d, session, folder)
            assert (status, answer.get("error")) == (409, "bad_cgroup"), (folder, answer)
        assert d.api.sandboxes(session) == []
        attach_pid(base.cgroup_mount(), d.process.pid)
        assert d.stop() == 0
    finally:
        d.close()
        for folder in (inspector, own, home):
            base.cgroup_destroy(folder)
