# SPDX-License-Identifier: MIT
"""Threads of a container: each may be in another network namespace, and the first, which /proc shows for all, may have ended or left."""
import contextlib
import subprocess
import time

import pytest

from lib import base
from lib.box import Wired, new_session
from lib.world import DEV, FAR, SINK
from test_containers import Net

# Told step by step: what a line on standard input makes it do, it does and says. It sends by a connection and by a packet socket.
PROGRAM = """
import ctypes, errno, os, socket, sys, threading
libc, SYS_exit = ctypes.CDLL(None, use_errno=True), {'x86_64': 60}.get(os.uname().machine, 93)
how, far, port, dev, mark, host = sys.argv[1:]
held = []

def go(flags):
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), 'unshare')

def attempt(f):
    try:
        f()
        return 'ok'
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))

def opens():
    held.append(socket.create_connection((far, int(port)), 60))
    held.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    held[1].bind((dev, 0x88b5))

def sends():
    frame = bytes.fromhex('ffffffffffff020000000909') + b'\\x88\\xb5' + mark.encode() + bytes(60)
    return [attempt(lambda: held[0].send(mark.encode())), attempt(lambda: held[1].send(frame))]

def serve():
    while word := os.read(0, 1):
        if word == b'o':
            print(attempt(opens), flush=True)
        elif word == b's':
            print(*sends(), flush=True)
        elif word == b'l':  # all of it leaves, but for what it holds
            print(attempt(lambda: go(0x50000000) if how == 'all leave' else None), flush=True)
        elif word == b't':
            left.set()
            gone.wait()
            print('ok', flush=True)
    os._exit(0)

left, gone = threading.Event(), threading.Event()
if how == 'all leave' or how == 'stays':
    print('here', flush=True)
    serve()
thread = threading.Thread(target=serve)
if how == 'thread leaves':  # into the host's, and stays there
    def away():
        libc.setns(os.open(host, os.O_RDONLY), 0x40000000)
        print('here', flush=True)
        threading.Event().wait()
    threading.Thread(target=away).start()
    serve()
thread.start()
print('here', flush=True)
if how == 'first ends':
    libc.syscall(SYS_exit, 0)
left.wait()
go(0x40000000)
gone.set()
thread.join()
"""


class Program:
    """In a cgroup of its own, in a network namespace that it is wired to."""

    def __init__(self, net, stack, how):
        self.net, self.mark, self.session = net, base.token(), new_session("thread")
        wired, self.folder = Wired(net.world), base.cgroup_make("thread")
        stack.callback(wired.close)
        stack.callback(base.cgroup_destroy, self.folder)
        self.process = base.popen(
            ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *net.world.enter(wired.name), base.PYTHON, "-c",
             PROGRAM, how, FAR[4], str(SINK), DEV, self.mark, f"/run/netns/{net.world.host}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.callback(base.reap, self.process)
        assert self.process.stdout.readline() == b"here\n"

    def does(self, word):
        self.process.stdin.write(word.encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().split()

    def sends(self):
        """What it is told, and how much of it reached the far side."""
        with self.net.world.watch(self.mark) as watch:
            told = self.does("s")
        return told, watch.marked

    def control(self):
        since = time.time_ns()
        assert self.does("s") == ["ok", "ok"]
        assert base.eventually(lambda: self.net.world.frames(since, self.mark)["marked"] >= 2, 30), "the control"

    def adopt(self):
        self.net.api.create(self.session, "PUBLIC")
        return self.net.api.ask("POST", "/v1/sandboxes", {"session": self.session, "cgroup": str(self.folder)})

    def pins(self):
        return sorted(p.name for p in (self.net.daemon.pins / "devices").iterdir() if p.name.startswith("n"))


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture
def stack():
    with contextlib.ExitStack() as made:
        yield made


@pytest.mark.parametrize("how", ["thread leaves", "first leaves", "stays"])
def test_a_thread_elsewhere_is_not_adopted(net, stack, how):
    program = Program(net, stack, how)
    if how == "first leaves":
        assert program.does("t") == ["ok"]
    status, answer = program.adopt()
    if how == "stays":
        assert status == 201 and answer["network"] == "container", "the control"
    else:
        assert (status, answer["error"]) == (409, "foreign_netns"), answer


def test_the_first_thread_has_ended(net, stack):
    """Where it lives, the others tell."""
    program = Program(net, stack, "first ends")
    stat = lambda: open(f"/proc/{program.process.pid}/stat").read().rsplit(")", 1)[1].split()[0]
    assert base.eventually(lambda: stat() == "Z"), stat()
    status, answer = program.adopt()
    assert status == 201 and answer["network"] == "container", answer
    assert program.does("o") == ["ok"]
    program.control()
    assert net.api.escalate(program.session, "SECRET")["cut"] == 1
    assert program.sends() == (["ECONNABORTED", "ENOBUFS"], 0)


@pytest.mark.parametrize("how", ["stays", "first leaves", "all leave"])
def test_a_new_daemon_and_who_has_left(stack, how):
    """By a user namespace, or as root: its devices are guarded as before, and nothing of what it holds leads out."""
    net = Net(stack, in_memory=True)
    program = Program(net, stack, how)
    status, answer = program.adopt()
    assert status == 201 and answer["network"] == "container", answer
    assert program.does("o") == ["ok"]
    assert program.does("t" if how == "first leaves" else "l") == ["ok"]
    program.control()
    before = program.pins()
    net.daemon.kill()
    net.daemon.start()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 10)
    assert program.pins() == before and len(before) == 2
    cut = net.api.escalate(program.session, "SECRET")["cut"]
    told, reached = program.sends()
    assert told[1] == "ENOBUFS" and reached == 0
    if how != "all leave":  # there nobody is left by whom its namespace could be found: the connection is mute, and stays open
        assert cut == 1 and told[0] == "ECONNABORTED"
