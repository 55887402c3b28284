# SPDX-License-Identifier: MIT
"""Sockets that a list of a sandbox's sockets could miss, held by processes that stay when the payload is over; and processes
that open and close them as fast as they can. All of them end after some minutes at the latest."""
import array
import os
import random
import resource
import signal
import socket
import struct
import threading
import time


def apart(work):
    """Runs work(say) in a process that stays; returns what it says first."""
    r, w = os.pipe()
    if os.fork() == 0:
        os.closerange(3, w)  # whoever waits for the payload's end waits for its pipe
        os.closerange(w + 1, 256)
        os.setsid()
        signal.alarm(900)
        try:
            work(lambda text: os.write(w, text.encode()))
        except OSError as e:
            os.write(w, repr(e).encode())
        finally:
            os._exit(0)
    os.close(w)
    said = os.read(r, 4096).decode()
    os.close(r)
    return {"said": said}


def tcp(addr, port, family=socket.AF_INET):
    s = socket.socket(family)
    s.settimeout(60)
    s.connect((addr, port))
    s.settimeout(None)
    return s


def in_flight(addr, port):
    """In a message that nobody has received, and in one within it."""
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    s, t = tcp(addr, port), tcp(addr, port)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
    c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [t.fileno()]))])
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [c.fileno(), d.fileno()]))])
    for x in (s, t, c, d):
        x.close()
    return [a, b]


def of_a_child(addr, port):
    """Made here, held by another process alone."""
    s = tcp(addr, port)
    if os.fork() == 0:
        signal.alarm(900)
        signal.pause()
        os._exit(0)
    s.close()
    return []


def orphan(addr, port):
    """Closed with bytes that the far end does not take."""
    s = tcp(addr, port)
    s.setblocking(False)
    for _ in range(200):
        try:
            s.send(b"o" * 65536)
        except BlockingIOError:
            break
    s.close()
    return []


def lingers(addr, port):
    """close() that waits for them."""
    s = tcp(addr, port)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 100))
    s.setblocking(False)
    for _ in range(200):
        try:
            s.send(b"l" * 65536)
        except BlockingIOError:
            break
    s.setblocking(True)
    threading.Thread(target=s.close, daemon=True).start()
    return []


def again(addr, port):
    """The same socket, connected for the second time."""
    s = tcp(addr, port)
    import ctypes
    ctypes.CDLL(None).connect(s.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)
    s.connect((addr, port))
    return [s]


def many(addr, port, count=150):
    """More than the list had room for at first; others were closed in between."""
    kept = []
    for i in range(2 * count):
        s = tcp(addr, port)
        if i % 2:
            kept.append(s)
        else:
            s.close()
    return kept


def udp(addr, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.connect((addr, port))
    t = socket.socket(family, socket.SOCK_DGRAM)
    t.sendto(b"x", (addr, port))
    return [s, t]


def hold_all(far4, far6, sink, hold):
    def work(say):
        kept = [tcp(far4, sink), tcp(far6, sink, socket.AF_INET6), tcp("::ffff:" + far4, sink, socket.AF_INET6)]
        for each in (in_flight, of_a_child, again, many):
            kept += each(far4, sink)
        for each in (orphan, lingers):
            kept += each(far4, hold)
        kept += udp(far4, sink) + udp(far6, sink, socket.AF_INET6)
        time.sleep(0.1)
        # 3, in flight 2, of a child 1, again 1, many 150, orphan 1, lingering 1; connected UDP 2
        say("161")
        signal.pause()
    return apart(work)


def of_old(far4, far6, sink, hold):
    """Six that are connected, and two that will be on a signal."""
    def work(say):
        kept = [tcp(far4, sink), tcp(far6, sink, socket.AF_INET6), tcp("::ffff:" + far4, sink, socket.AF_INET6)]
        kept += orphan(far4, hold) + udp(far4, sink) + udp(far6, sink, socket.AF_INET6)
        fresh = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        signal.signal(signal.SIGUSR1, lambda *_: [s.connect((far4, sink)) for s in fresh])
        say(str(os.getpid()))
        while True:
            time.sleep(1)
    return apart(work)


def not_accepted(port, count):
    """A listener that callers from beyond the host may reach, and that never accepts."""
    def work(say):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", port))
        s.listen(count + 10)
        say("listens")
        signal.pause()
    return apart(work)


def churn(far4, sink, processes=4):
    def storm(seed):
        rng, kept = random.Random(seed), []
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        near.setblocking(False)
        while True:
            try:
                s = socket.socket(socket.AF_INET, rng.choice((socket.SOCK_STREAM, socket.SOCK_DGRAM)))
                s.settimeout(1)
                s.connect((far4, sink))
                if rng.random() < 0.3:
                    s.setblocking(False)
                    s.send(b"c" * rng.choice((10, 1000000)))
                if rng.random() < 0.3:
                    near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
                if rng.random() < 0.5:
                    kept.append(s)
                    if len(kept) > 40:
                        kept.pop(rng.randrange(40)).close()
                else:
                    s.close()
            except OSError:
                pass

    def work(say):
        for seed in range(processes):
            if os.fork() == 0:
                signal.alarm(600)
                storm(seed)
        time.sleep(0.5)
        say("churns")
        signal.pause()
    return apart(work)


def full_queues(far4, hold, count):
    """Connections whose far end takes nothing more, each with bytes that wait for it."""
    def work(say):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        held = [tcp(far4, hold) for _ in range(count)]
        for s in held:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
            s.setblocking(False)
            try:
                while s.send(b"q" * 16384):
                    pass
            except BlockingIOError:
                pass
        say(str(len(held)))
        while True:  # whatever there is room for goes in at once
            for s in held:
                try:
                    s.send(b"q" * 16384)
                except OSError:
                    pass
            time.sleep(0.01)
    return apart(work)


def twins(far4, sink, near, port, count, same, local):
    """Connected UDP sockets, thirty with one and the same pair of addresses; and with local, two that stay on the host."""
    def work(say):
        held = []
        if local:
            pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
            for s in pair:
                s.bind(("127.0.0.1", 0))
            for s, other in (pair, pair[::-1]):
                s.connect(other.getsockname())
        for i in range(count):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind((near, port + i // 30 if same else 0))
            s.connect((far4, sink))
            held.append(s)
        say(str(len(held)))
        signal.pause()

    return apart(work)


def datagrams(far4, sink, port, peer):
    """Sends all the time, more than the device takes. port: that the socket is bound to, or 0; peer: that it is connected to, or none: what it
    sends is for somebody else all the same."""
    def work(say):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if port:
            s.bind(("0.0.0.0", port))
        if peer:
            s.connect(tuple(peer))
        s.settimeout(0.1)
        s.sendto(b"d" * 1000, (far4, sink))
        say("sends")
        while True:
            try:
                s.sendto(b"d" * 1000, (far4, sink))
            except OSError:
                time.sleep(0.001)
    return apart(work)
