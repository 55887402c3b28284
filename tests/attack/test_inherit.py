# SPDX-License-Identifier: MIT
"""What was opened outside and handed to `netpawl run`: sockets keep the cgroup of their maker, so they must not
come along at all."""
import json
import os
import socket
import subprocess

import pytest

from lib import base
from lib.box import LEVEL, new_session
from lib.world import DEV, FAR, HOST4


def connected(world, family=4):
    inet = socket.AF_INET if family == 4 else socket.AF_INET6
    def make():
        s = socket.socket(inet)
        s.settimeout(5)
        s.connect((FAR[family], 9000))
        return s
    return base.setns_call(world.host, make)


def tcp4(world):
    return connected(world, 4)


def tcp6(world):
    return connected(world, 6)


def udp(world):
    def make():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((FAR[4], 9000))
        return s
    return base.setns_call(world.host, make)


def unconnected(world):
    return base.setns_call(world.host, lambda: socket.socket())


def listener(world):
    def make():
        s = socket.socket()
        s.bind((HOST4, 0))
        s.listen()
        return s
    return base.setns_call(world.host, make)


def packet(world):
    def make():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s.bind((DEV, 0))
        return s
    return base.setns_call(world.host, make)


def netns(world):
    return open(f"/run/netns/{world.far}")


class Folder:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def fileno(self):
        return self.fd

    def close(self):
        os.close(self.fd)


def cgroupfs(world):
    return Folder(base.cgroup_mount())


THINGS = [tcp4, tcp6, udp, unconnected, listener, packet, netns, cgroupfs]


def run(daemon, words, mode, user, **kw):
    argv = [*daemon.world.enter(), str(base.NETPAWL), "run", "--session", new_session("inherit"), "--level", LEVEL[mode]]
    argv += ["--user", user, *base.shown()]
    return subprocess.run([*argv, "--", *words], timeout=180, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), **kw)


def fds_argv(world, mark):
    return [base.PYTHON, "-I", str(world.dir / "payload/fds.py"), mark]


def answer_of(p):
    lines = [l for l in p.stderr.decode().splitlines() if l.startswith("{")]
    assert lines, f"the payload did not run: {p.returncode}: {p.stderr.decode()[-500:]}"
    return json.loads(lines[-1])


def at_fd_5(thing):
    """Runs in the child, after fork: puts it where a shell's 5<> would."""
    os.dup2(thing.fileno(), 5, inheritable=True)


@pytest.mark.parametrize("thing", THINGS, ids=lambda f: f.__name__)
def test_control_inherited_things_are_useful(world, thing):
    """Without the sandbox each of them reaches the far side."""
    mark = base.token()
    t = thing(world)
    try:
        with world.watch(mark) as watch:
            p = subprocess.run([*world.enter(), *fds_argv(world, mark)], stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=180, pass_fds=[5], preexec_fn=lambda: at_fd_5(t), env=base.env())
        found = {f["fd"]: f for f in answer_of(p)["fds"]}
        assert 5 in found, found
        assert base.eventually(lambda: watch.look().marked or watch.records)
    finally:
        t.close()


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
@pytest.mark.parametrize("thing", THINGS, ids=lambda f: f.__name__)
def test_fd_5_does_not_come_along(world, daemon, thing, mode, user):
    mark = base.token()
    t = thing(world)
    try:
        with world.watch(mark) as watch:
            p = run(daemon, fds_argv(world, mark), mode, user, stdin=subprocess.DEVNULL, capture_output=True,
                    pass_fds=[5], preexec_fn=lambda: at_fd_5(t))
        answer = answer_of(p)
        assert [f for f in answer["fds"] if f["fd"] > 2] == []
        assert answer["after"] == "ECONNREFUSED"
        assert watch.marked == 0 and not watch.records
    finally:
        t.close()


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("family", [4, 6])
def test_socket_as_stdin_is_for_reading(world, daemon, family, user):
    """A socket can be written to as well as read. Inside, standard input must be neither a socket nor a way out."""
    mark = base.token()
    s = connected(world, family)
    try:
        s.send(b"input\n")
        with world.watch(mark) as watch:
            p = run(daemon, fds_argv(world, mark), "NONE", user, stdin=s, capture_output=True)
        answer = answer_of(p)
        assert not [f for f in answer["fds"] if f.get("kind") == "socket"]
        assert watch.marked == 0 and not watch.records
        # and it is an input still
        s.send(b"input\n")
        p = run(daemon, ["head", "-n1"], "NONE", user, stdin=s, capture_output=True)
        assert p.stdout == b"input\n"
    finally:
        s.close()


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_socket_as_stdout_is_no_socket_inside(world, daemon, user):
    """What a command prints goes where its caller sends it: that is the caller's doing. But the command holds no
    socket that it could connect, read from or send on by itself."""
    s = connected(world)
    mark = base.token()
    try:
        p = run(daemon, fds_argv(world, mark), "NONE", user, stdin=subprocess.DEVNULL, stdout=s, stderr=subprocess.PIPE)
        answer = answer_of(p)
        assert not [f for f in answer["fds"] if f.get("kind") == "socket"]
        assert answer["after"] == "ECONNREFUSED"
        assert world.records(0, mark) == []
    finally:
        s.close()


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_file_as_stdin_is_for_reading(world, daemon, tmp_path, user):
    """A file that is open for reading can be opened for writing by its name in /proc, by its owner and whomever its mode lets.
    The control does so outside."""
    write = "import os; os.read(0, 1); os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'evil')"
    path = tmp_path / "in"
    path.write_text("input")
    path.chmod(0o666)
    with open(path, "rb", buffering=0) as f:
        p = run(daemon, [base.PYTHON, "-I", "-c", write], "FULL", user, stdin=f, capture_output=True)
        assert p.returncode == 1 and b"Read-only" in p.stderr
        assert path.read_text() == "input" and f.read() == b"nput"  # the caller goes on where the command stopped
    with open(path, "rb") as f:
        subprocess.run([base.PYTHON, "-I", "-c", write], stdin=f, check=True)
    assert path.read_text() == "evilt"


def test_cgroup_file_as_stdout_moves_nobody(world, daemon, tmp_path):
    """cgroup.procs of the root as standard output: `echo 0` would be an escape."""
    mark = base.token()
    with open(base.cgroup_mount() / "cgroup.procs", "w") as f, world.watch(mark) as watch:
        p = run(daemon, ["sh", "-c", f"echo 0; exec {' '.join(fds_argv(world, mark))}"], "NONE", "root",
                stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE)
    assert watch.marked == 0 and not watch.records
    if p.returncode != 125:
        assert answer_of(p)["after"] == "ECONNREFUSED"


def test_many_descriptors_are_all_closed(world, daemon):
    keep = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
    try:
        p = run(daemon, fds_argv(world, "x"), "NONE", "root", stdin=subprocess.DEVNULL, capture_output=True,
                close_fds=False, preexec_fn=lambda: [os.set_inheritable(fd, True) for fd in keep])
        assert [f for f in answer_of(p)["fds"] if f["fd"] > 2] == []
    finally:
        for fd in keep:
            os.close(fd)
