# SPDX-License-Identifier: MIT
"""Calls to a socket of one's own that wait in the kernel, while their name is made to lead to the host's socket."""
import errno
import os
import socket
import threading
import time

UNIX, DGRAM = socket.AF_UNIX, socket.SOCK_DGRAM
CALLS = {"42", "44"}  # connect, sendto


def word(call):
    try:
        call()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    return "ok"


class Waiting(threading.Thread):
    """Makes one call. `waited`: the kernel was seen to hold it."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.result, self.waited = call, None, False
        self.start()
        path = f"/proc/self/task/{self.native_id}/"
        for _ in range(500):
            if not self.is_alive():
                return
            try:
                stat, doing = open(path + "stat").read(), open(path + "syscall").read()
            except OSError:
                return
            if stat.rpartition(")")[2].split()[0] == "S" and doing.split()[0] in CALLS:
                self.waited = True
                return
            time.sleep(0.01)

    def run(self):
        self.result = word(self.call)

    def answer(self):
        self.join(5)
        return {"talk": self.result, "waited": self.waited}


class Name:
    """A name in a directory of our own, until that becomes a link to the host's directory."""

    def __init__(self, target, scratch):
        self.target, self.folder = target, os.path.join(scratch, f"h{os.getpid()}")
        self.path = os.path.join(self.folder, os.path.basename(target))

    def __enter__(self):
        os.mkdir(self.folder)
        return self

    def repoint(self):
        os.rename(self.folder, self.folder + ".old")
        os.symlink(os.path.dirname(self.target), self.folder)

    def __exit__(self, *_):
        os.unlink(self.folder)
        os.unlink(os.path.join(self.folder + ".old", os.path.basename(self.path)))
        os.rmdir(self.folder + ".old")


def fill(send):
    """Sends until the kernel takes no more without waiting."""
    for n in range(1000):
        try:
            send()
        except BlockingIOError:
            return n
    raise OSError(errno.EIO, "it never fills up")


def backlog(target, scratch, kind, mark):
    """connect() waits for room in the backlog of our own listener."""
    with Name(target, scratch) as name, socket.socket(UNIX, kind) as own, socket.socket(UNIX, kind) as late:
        own.bind(name.path)
        own.listen(0)
        first = socket.socket(UNIX, kind)
        first.connect(name.path)

        def call():
            late.connect(name.path)
            late.send(mark.encode())
        waiting = Waiting(call)
        name.repoint()
        own.accept()
        return waiting.answer()


def buffer(target, scratch, kind, mark):
    """sendto() waits for room in the sender's buffer before it looks for the receiver."""
    with Name(target, scratch) as name, socket.socket(UNIX, DGRAM) as own, socket.socket(UNIX, DGRAM) as late:
        sink = socket.socket(UNIX, DGRAM)
        sink.bind("\0held%d" % os.getpid())
        own.bind(name.path)
        late.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
        late.setblocking(False)
        count = fill(lambda: late.sendto(b"x" * 1000, sink.getsockname()))
        late.setblocking(True)
        waiting = Waiting(lambda: late.sendto(mark.encode(), name.path))
        name.repoint()
        for _ in range(count):
            sink.recv(2000)
        return waiting.answer()


def queue(target, scratch, kind, mark):
    """sendto() waits for room in the receiver's queue, and looks for another receiver when that one is closed."""
    with Name(target, scratch) as name, socket.socket(UNIX, DGRAM) as late:
        own = socket.socket(UNIX, DGRAM)
        own.bind(name.path)
        late.setblocking(False)
        fill(lambda: late.sendto(b"x", name.path))
        late.setblocking(True)
        waiting = Waiting(lambda: late.sendto(mark.encode(), name.path))
        name.repoint()
        own.close()
        return waiting.answer()


def own_use(scratch):
    """What a program meets at sockets of its own that are full, and when there is room again."""
    out = {}

    path = os.path.join(scratch, f"f{os.getpid()}")
    own = socket.socket(UNIX)
    own.bind(path)
    own.listen(0)
    clients = [socket.socket(UNIX) for _ in range(4)]
    out["first"] = word(lambda: clients[0].connect(path))
    clients[1].setblocking(False)
    out["full, not blocking"] = word(lambda: clients[1].connect(path))
    out["accepted"] = word(own.accept)
    out["room again"] = word(lambda: clients[2].connect(path))
    own.close()
    os.unlink(path)
    own = socket.socket(UNIX, DGRAM)
    own.bind(path)
    late = socket.socket(UNIX, DGRAM)
    late.connect(path)
    late.setblocking(False)
    fill(lambda: late.send(b"x"))
    late.setblocking(True)
    waiting = Waiting(lambda: late.send(b"last"))
    own.recv(10)
    out["a connected one waits"] = waiting.answer()
    os.unlink(path)
    return out
