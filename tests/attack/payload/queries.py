# SPDX-License-Identifier: MIT
"""DNS queries in every way that a program can send them."""
import ctypes
import errno
import select
import socket
import struct
import threading

IP_PKTINFO, IPV6_PKTINFO = 8, 50


def query(number=7, name=b"www.example", size=0):
    labels = b"".join(bytes([len(l)]) + l for l in name.split(b"."))
    return (struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1").ljust(size, b"\0")


def _socket(family, bind=None, timeout=30):
    s = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(timeout)
    if bind:
        s.bind(tuple(bind))
    return s


def _answer(s, peer=None):
    data, sender = s.recvfrom(4096)
    number, flags = struct.unpack("!2H", data[:4])
    return {"from": list(sender[:2]), "peer": peer, "number": number, "rcode": flags & 15, "response": bool(flags & 0x8000),
            "local": list(s.getsockname()[:2])}


class _Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("parts", ctypes.POINTER(_Part)), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_long), ("done", ctypes.c_uint)]


def _sendmmsg(s, packets, to=None):
    """As glibc's resolver sends A and AAAA."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = None
    if to and s.family == socket.AF_INET:
        name = struct.pack("=H", 2) + struct.pack("!H", to[1]) + socket.inet_pton(socket.AF_INET, to[0]) + bytes(8)
    elif to:
        name = struct.pack("=H", 10) + struct.pack("!HI", to[1], 0) + socket.inet_pton(socket.AF_INET6, to[0]) + bytes(4)
    room = ctypes.create_string_buffer(name, len(name)) if name else None
    messages = (_Message * len(packets))()
    parts = [_Part(p, len(p)) for p in packets]
    for m, part in zip(messages, parts):
        m.name, m.namelen = (ctypes.addressof(room), len(name)) if name else (None, 0)
        m.parts, m.count = ctypes.pointer(part), 1
    n = libc.sendmmsg(s.fileno(), messages, len(packets), 0)
    if n < 0:
        raise OSError(ctypes.get_errno(), errno.errorcode[ctypes.get_errno()])
    return n


def ask(how, family, addr, port=53, bind=None, seconds=30, device=None):
    """Two queries on one socket, and the answers to both."""
    s = _socket(family, bind, seconds)
    if device:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    to, peer = (addr, port), None
    packets = [query(7), query(8)]
    if how.startswith("connect"):
        s.connect(to)
        peer = list(s.getpeername()[:2])
    if how in ("connect", "connect_sendmsg"):
        for p in packets:
            s.send(p) if how == "connect" else s.sendmsg([p])
    elif how == "connect_sendto":
        for p in packets:
            s.sendto(p, to)
    elif how == "sendto":
        for p in packets:
            s.sendto(p, to)
    elif how == "sendmsg":
        for p in packets:
            s.sendmsg([p], [], 0, to)
    elif how.endswith("sendmmsg"):
        assert _sendmmsg(s, packets, None if peer else to) == 2
    answers = [_answer(s, peer) for _ in packets]
    assert sorted(a["number"] for a in answers) == [7, 8], answers
    assert answers[0]["from"] == answers[1]["from"], answers
    return answers[0]


def both_families(addr4, addr6):
    """An IPv4 and an IPv6 server, asked on one socket."""
    s = _socket(6)
    s.sendto(query(1), ("::ffff:" + addr4, 53))
    s.sendto(query(2), (addr6, 53))
    got = [_answer(s), _answer(s)]
    return {str(a["number"]): a["from"] for a in got}


def stream(family, addr, port=53):
    s = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET)
    s.settimeout(30)
    s.connect((addr, port))
    peer = list(s.getpeername()[:2])
    q = query()
    s.sendall(struct.pack("!H", len(q)) + q)
    try:
        got = s.recv(100)
    except OSError as e:
        got = errno.errorcode.get(e.errno, "TIMEOUT").encode()
    return {"peer": peer, "got": got.decode("latin-1")}


def from_source(bind, source, to, dev=0, wait=30):
    """A datagram from an address of one's choice: IP_PKTINFO."""
    s = _socket(6 if ":" in to[0] else 4, bind, wait)
    if ":" in to[0]:
        info = (socket.IPPROTO_IPV6, IPV6_PKTINFO, socket.inet_pton(socket.AF_INET6, source) + struct.pack("=I", dev))
    else:
        info = (socket.IPPROTO_IP, IP_PKTINFO, struct.pack("=I", dev) + socket.inet_aton(source) + bytes(4))
    s.sendmsg([query(9)], [info], 0, tuple(to))
    try:
        return _answer(s)
    except TimeoutError:
        return {"from": None}


def flood(addr, count, size=0, segment=0):
    """Queries until one is refused; how many went, and why not the next."""
    s = _socket(4)
    if segment:
        s.setsockopt(socket.IPPROTO_UDP, 103, segment)  # UDP_SEGMENT
    for n in range(count):
        try:
            s.sendto(query(n & 0xFFFF, size=size), (addr, 53))
        except OSError as e:
            return {"sent": n, "error": errno.errorcode[e.errno]}
    return {"sent": count, "error": None}


def in_a_row(addr, count):
    """Queries one after the other, each waiting for its answer; how many had one."""
    s, got = _socket(4), 0
    for n in range(count):
        try:
            s.sendto(query(n), (addr, 53))
            got += bool(select.select([s], [], [], 30)[0]) and _answer(s)["number"] == n
        except OSError:
            pass
    return {"answered": got}


def crowd(addr, sockets, threads=4):
    """Several threads that send on one new socket at once; how many queries had an answer, and what went wrong."""
    answered, errors = 0, []
    for _ in range(sockets):
        s, start = _socket(4), threading.Barrier(threads)

        def one(n, s=s, start=start):
            start.wait()
            try:
                s.sendto(query(n), (addr, 53))
            except OSError as e:
                errors.append(errno.errorcode[e.errno])

        crew = [threading.Thread(target=one, args=(n,)) for n in range(threads)]
        for t in crew:
            t.start()
        for t in crew:
            t.join()
        try:
            answered += len({_answer(s)["number"] for _ in crew})
        except TimeoutError:
            errors.append("TIMEOUT")
        s.close()
    return {"answered": answered, "errors": errors}


def deliver(family, addr, port, connected, data="x"):
    """One datagram to an address and port of one's choice. Raises what send() says; an error that comes back is one, too."""
    s = _socket(family, timeout=0.3)
    if connected:
        s.connect((addr, port))
        s.send(data.encode())
    else:
        s.sendto(data.encode(), (addr, port))
    return {}
