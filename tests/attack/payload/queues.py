# SPDX-License-Identifier: MIT
"""What waits in the queue of a device when its socket has given up its port or is closed, and pages in it that are still ours to write to."""
import ctypes
import mmap
import os
import socket
import struct
import time

from cuts import apart, tcp

LIBC = ctypes.CDLL(None, use_errno=True)
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000


def disconnect(s):
    LIBC.connect(s.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)


def silent(text):
    """It was said; nobody listens any more."""


def attempt(call, *args):
    try:
        call(*args)
    except OSError:
        pass  # its queue is full


def datagrams(far4, sink, mark, closes):
    """Fills the queue again and again, and closes the socket, or takes its port away, after each time."""
    def work(say):
        data, end, s = mark.encode().ljust(1000, b"d"), time.monotonic() + 60, None
        while time.monotonic() < end:
            try:
                s = s or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            except OSError:
                return
            s.setblocking(False)
            for _ in range(16):
                attempt(s.sendto, data, (far4, sink))
            if closes:
                s.close()
                s = None
            else:
                disconnect(s)
            say("sends")
            say = silent
            time.sleep(0.003)
    return apart(work)


def streams(far4, sink, mark, closes):
    """Hands bytes to the device, and closes (with a reset), or disconnects: then the socket stays open, in CLOSE."""
    def work(say):
        data = mark.encode().ljust(1000, b"t") * 10
        held = [tcp(far4, sink) for _ in range(250)]
        for s in held:
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            attempt(s.send, data)
            if closes:
                s.close()
            else:
                disconnect(s)
            say("sends")
            say = silent
            time.sleep(0.0035)
        time.sleep(30)
    return apart(work)


def shared(how, path, far, port, old, new, count=60, size=65536):
    """Hands over memory that is not copied, full of one word, until there is a file PATH.go; then it writes another word into it."""
    def connect():
        if how == "datagrams":
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.connect((far, port))
        else:
            s = tcp(far, port)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if how == "zerocopy":
            s.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        s.setblocking(False)
        return s

    def work(say):
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(fd, size)
        memory = mmap.mmap(-1 if how == "zerocopy" else fd, size)
        fill = lambda word: memory.__setitem__(slice(None), word.encode().ljust(64, b".") * (size // 64))
        fill(old)
        held = [connect() for _ in range(count)]
        say("ready")
        end = time.monotonic() + 60
        while time.monotonic() < end and not os.path.exists(path + ".go"):
            for s in held:
                if how == "zerocopy":
                    attempt(s.send, memoryview(memory)[:16384], MSG_ZEROCOPY)
                else:
                    attempt(os.sendfile, s.fileno(), fd, 0, 1280 if how == "datagrams" else size)
            time.sleep(0.001)
        fill(new)
        time.sleep(20)
    return apart(work)
