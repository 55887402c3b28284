# SPDX-License-Identifier: MIT
"""A client that takes all it can get. Argument: the address to dial. One command a line, one JSON answer a line:

    bounds SLOW HOLD HELLO SILENT   connections of each kind, from now on; whatever ends is begun anew
    flood N BATCH                   N connections that send so many requests at once, and again when all are answered
    flood2 N BATCH                  the same in HTTP/2; a worker takes 100 of one connection at a time
    count                           what came of it so far
    quit
"""
import collections
import json
import resource
import select
import socket
import struct
import sys
import threading

ADDRESS = sys.argv[1]
BAD = b"GET / HTTP/1.1\r\nHost: nowhere.example\r\n\r\n"  # no policy allows it: the inspector answers by itself
FIRST = {
    "slow": b"GET /bytes/8000000 HTTP/1.1\r\nHost: origin.test\r\n\r\n",  # and is never read
    "hold": b"GET /hold HTTP/1.1\r\nHost: origin.test\r\n\r\n",  # is not answered for long
    "hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # the first half of a ClientHello
    "silent": b"",
}
count = collections.Counter()
reasons = collections.Counter()


def dial(small=False):
    s = socket.socket()
    if small:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20)
    s.connect((ADDRESS, 80))
    return s


class Taker(threading.Thread):
    """Keeps connections of these kinds open, as many of each as are wanted."""

    def __init__(self, wanted):
        super().__init__(daemon=True)
        self.wanted, self.open = wanted, collections.Counter()
        self.sockets, self.poll = {}, select.poll()

    def begin(self, kind):
        try:
            s = dial(kind == "slow")
            s.sendall(FIRST[kind])
        except OSError as e:
            count[type(e).__name__] += 1
            return False
        s.setblocking(False)
        self.sockets[s.fileno()] = s, kind
        self.poll.register(s, select.POLLHUP | select.POLLERR if kind == "slow" else select.POLLIN)
        self.open[kind] += 1
        return True

    def look(self, fd):
        s, kind = self.sockets[fd]
        try:
            data = s.recv(65536)
        except OSError as e:
            count[type(e).__name__] += 1
            data = b""
        if data:
            for line in data.split(b"\r\n"):
                if line.startswith(b"x-netpawl-reason: "):
                    reasons[line.split()[1].decode()] += 1
            return
        count["ended"] += 1
        self.poll.unregister(s)
        s.close()
        del self.sockets[fd]
        self.open[kind] -= 1

    def run(self):
        while True:
            tries = 20  # at a time: what is there is looked at between
            for kind, n in self.wanted.items():
                while self.open[kind] < n and tries and self.begin(kind):
                    tries -= 1
            for fd, _ in self.poll.poll(20):
                self.look(fd)


def flood(batch):
    s, got = dial(), b""
    while True:
        s.sendall(BAD * batch)
        left = batch
        while left > 0:
            got += s.recv(262144)
            parts = got.split(b"HTTP/1.1 403")
            left -= len(parts) - 1
            count["answers"] += len(parts) - 1
            got = parts[-1][-12:]


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!IBI", len(payload) << 8 | kind, flags, stream)[:9] + payload


def flood2(batch):
    head = b"\x82\x86\x84\x01\x0fnowhere.example"  # GET http / of that authority, each by its static index
    s, got, stream = dial(), b"", 1
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(4, 1, 0) + frame(8, 0, 0, b"\x7f\0\0\0"))
    while True:
        s.sendall(b"".join(frame(1, 5, stream + 2 * i, head) for i in range(batch)))
        stream, left = stream + 2 * batch, batch
        while left > 0:
            got += s.recv(262144)
            while len(got) >= 9 and len(got) >= 9 + (size := int.from_bytes(got[:3], "big")):
                over = got[3] == 0 and got[4] & 1
                left -= over or got[3] == 3  # the end of a body, or a reset
                count["answers"] += over
                got = got[9 + size:]


FLOODS = {"flood": flood, "flood2": flood2}


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    taker = None
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "bounds":
            taker = Taker(dict(zip(FIRST, map(int, numbers))))
            taker.start()
        elif word in FLOODS:
            for _ in range(int(numbers[0])):
                threading.Thread(target=FLOODS[word], args=(int(numbers[1]),), daemon=True).start()
        elif word == "quit":
            return
        print(json.dumps({**count, "reasons": dict(reasons), "open": len(taker.sockets) if taker else 0}), flush=True)


main()
