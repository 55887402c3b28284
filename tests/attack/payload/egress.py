# SPDX-License-Identifier: MIT
"""Ways out. Every function tries one, with a mark in what it sends, and tells how far the calls went.

The answers are for people who read a failure; the judge is the capture on the far side.
"""
import ctypes
import errno
import os
import socket
import struct
import time

DEV = "npv0"
INET = {4: socket.AF_INET, 6: socket.AF_INET6}
libc = ctypes.CDLL(None, use_errno=True)


def err(e):
    return errno.errorcode.get(e.errno, str(e))


def steps(*calls):
    """Runs the calls in order; stops at the first error and names it. Each call is bounded by a socket timeout."""
    done = 0
    for call in calls:
        try:
            call()
        except OSError as e:
            return {"done": done, "error": err(e)}
        done += 1
    return {"done": done, "error": None}


def to(family, addr, port):
    host, _, dev = addr.partition("%")
    return (host, port) if family == 4 else (host, port, 0, socket.if_nametoindex(dev) if dev else 0)


def make(family, kind, protocol=0):
    s = socket.socket(INET[family], kind, protocol)
    s.settimeout(2)
    return s


# -- TCP ----------------------------------------------------------------------------

def tcp_connect(family, addr, port, mark):
    s = make(family, socket.SOCK_STREAM)
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()))


def tcp_mapped(family, addr, port, mark):
    s = make(6, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return steps(lambda: s.connect(("::ffff:" + addr, port)), lambda: s.send(mark.encode()))


def tcp_nonblocking(family, addr, port, mark):
    s = make(family, socket.SOCK_STREAM)
    s.setblocking(False)
    first = s.connect_ex(to(family, addr, port))
    time.sleep(0.2)
    try:
        s.send(mark.encode())
    except OSError as e:
        return {"done": 0, "first": errno.errorcode.get(first, first), "error": err(e)}
    return {"done": 1, "error": None}


def tcp_bound(family, addr, port, mark):
    """Source address and device chosen by the program."""
    s = make(family, socket.SOCK_STREAM)
    src = "192.0.2.2" if family == 4 else "2001:db8:1::2"
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEV.encode())
    except OSError:
        pass  # an ordinary user may not on older kernels; the connect is still tried
    try:
        s.bind(to(family, src, 0))
    except OSError:
        pass
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()))


def tcp_reconnect(family, addr, port, mark):
    """A socket that was let through to its own listener, then undone with AF_UNSPEC and pointed outside."""
    lo = "127.0.0.1" if family == 4 else "::1"
    l = make(family, socket.SOCK_STREAM)
    l.bind(to(family, lo, 0))
    l.listen(1)
    s = make(family, socket.SOCK_STREAM)
    s.connect(to(family, lo, l.getsockname()[1]))
    unspec = struct.pack("H14x", 0)
    libc.connect(s.fileno(), unspec, len(unspec))
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()))


def tcp_fastopen(family, addr, port, mark):
    s = make(family, socket.SOCK_STREAM)
    return steps(lambda: s.sendto(mark.encode(), 0x20000000, to(family, addr, port)))  # MSG_FASTOPEN


def tcp_fastopen_connect(family, addr, port, mark):
    s = make(family, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT: connect() sends nothing, the first send() does
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()))


def tcp_fastopen_mapped(family, addr, port, mark):
    s = make(6, socket.SOCK_STREAM)
    return steps(lambda: s.sendto(mark.encode(), 0x20000000, ("::ffff:" + addr, port)))


def mptcp(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_STREAM, 262)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()))


def mptcp_fastopen(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_STREAM, 262)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.sendto(mark.encode(), 0x20000000, to(family, addr, port)))


def tcp_thread(family, addr, port, mark):
    """From a process that forked twice and has a session of its own."""
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            answer = tcp_connect(family, addr, port, mark)
            os.write(w, repr(answer["error"]).encode())
        os._exit(0)
    os.wait()
    os.close(w)
    return {"error": os.read(r, 100).decode()}


# -- UDP ----------------------------------------------------------------------------

def udp_connected(family, addr, port, mark):
    s = make(family, socket.SOCK_DGRAM)
    return steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode()), lambda: s.send(mark.encode()))


def udp_unconnected(family, addr, port, mark):
    s = make(family, socket.SOCK_DGRAM)
    return steps(lambda: s.sendto(mark.encode(), to(family, addr, port)))


def udp_mapped(family, addr, port, mark):
    s = make(6, socket.SOCK_DGRAM)
    return steps(lambda: s.sendto(mark.encode(), ("::ffff:" + addr, port)))


def udp_mapped_connected(family, addr, port, mark):
    s = make(6, socket.SOCK_DGRAM)
    return steps(lambda: s.connect(("::ffff:" + addr, port)), lambda: s.send(mark.encode()))


def udp_connected_elsewhere(family, addr, port, mark):
    """Connected to itself, then sendto() an address: a connected socket with another destination."""
    own = "192.0.2.2" if family == 4 else "2001:db8:1::2"  # loopback by a name that may be a source address outside
    s = make(family, socket.SOCK_DGRAM)
    s.bind(to(family, own, 0))
    t = make(family, socket.SOCK_DGRAM)
    t.connect(to(family, own, s.getsockname()[1]))
    return steps(lambda: t.sendto(mark.encode(), to(family, addr, port)))


def udp_pktinfo(family, addr, port, mark):
    """Device and source address by a control message."""
    s = make(family, socket.SOCK_DGRAM)
    index = socket.if_nametoindex(DEV)
    if family == 4:
        cmsg = (socket.IPPROTO_IP, 8, struct.pack("I4s4s", index, socket.inet_aton("192.0.2.2"), bytes(4)))
    else:
        cmsg = (socket.IPPROTO_IPV6, 50, socket.inet_pton(socket.AF_INET6, "2001:db8:1::2") + struct.pack("I", index))
    return steps(lambda: s.sendmsg([mark.encode()], [cmsg], 0, to(family, addr, port)))


def udp_corked(family, addr, port, mark):
    s = make(family, socket.SOCK_DGRAM)
    dest = to(family, addr, port)
    return steps(lambda: s.sendto(mark.encode(), 0x8000, dest), lambda: s.sendto(b"end", dest))  # MSG_MORE


def udp_gso(family, addr, port, mark):
    s = make(family, socket.SOCK_DGRAM)
    s.setsockopt(17, 103, 512)  # UDP_SEGMENT
    return steps(lambda: s.sendto((mark.encode() + b"g" * 512)[:512] * 4, to(family, addr, port)))


def udp_empty(family, addr, port, mark):
    """No payload: the address and the moment are the message."""
    s = make(family, socket.SOCK_DGRAM)
    return steps(lambda: s.sendto(b"", to(family, addr, port)))


def udp_large(family, addr, port, mark):
    """Leaves in fragments."""
    s = make(family, socket.SOCK_DGRAM)
    return steps(lambda: s.sendto(mark.encode() + b"f" * 50000, to(family, addr, port)))


def udp_sendmmsg(family, addr, port, mark):
    class iovec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]

    class mmsghdr(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(iovec)),
                    ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("len", ctypes.c_uint)]

    s = make(family, socket.SOCK_DGRAM)
    if family == 4:
        name = struct.pack("!2sH4s8x", struct.pack("H", socket.AF_INET), port, socket.inet_aton(addr))
    else:
        name = struct.pack("!2sHI16sI", struct.pack("H", socket.AF_INET6), port, 0,
                           socket.inet_pton(socket.AF_INET6, addr), 0)
    iov = iovec(mark.encode(), len(mark))
    hdr = (mmsghdr * 2)(*[mmsghdr(name, len(name), ctypes.pointer(iov), 1, None, 0, 0, 0) for _ in range(2)])
    n = libc.sendmmsg(s.fileno(), hdr, 2, 0)
    return {"done": n, "error": errno.errorcode.get(ctypes.get_errno()) if n < 0 else None}


def udp_options(family, addr, port, mark):
    """IP options (v4), a hop-by-hop header (v6)."""
    s = make(family, socket.SOCK_DGRAM)
    if family == 4:
        # timestamp option, empty
        set_ = lambda: s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([68, 8, 5, 0, 0, 0, 0, 0]))
    else:
        set_ = lambda: s.setsockopt(socket.IPPROTO_IPV6, 54, bytes([0, 0, 1, 4, 0, 0, 0, 0]))  # IPV6_HOPOPTS, PadN
    return steps(set_, lambda: s.sendto(mark.encode(), to(family, addr, port)))


# -- not TCP, not UDP ---------------------------------------------------------------

def icmp_echo(family, mark):
    kind = 8 if family == 4 else 128
    body = struct.pack("!BBHHH", kind, 0, 0, 0x4E50, 1) + mark.encode()
    if family == 4:
        total = sum(struct.unpack(f"!{(len(body) + 1) // 2}H", body + b"\0" * (len(body) % 2)))
        total = (total >> 16) + (total & 0xFFFF)
        total += total >> 16
        body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
    return body


def ping(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_DGRAM, 1 if family == 4 else 58)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.sendto(icmp_echo(family, mark), to(family, addr, 0)))


def raw_icmp(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_RAW, 1 if family == 4 else 58)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.sendto(icmp_echo(family, mark), to(family, addr, 0)))


def raw_proto(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_RAW, 253)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.sendto(mark.encode(), to(family, addr, 0)))


def raw_hdrincl(family, addr, port, mark):
    """The whole header by hand, with a source address that is not ours; a UDP datagram inside."""
    udp = struct.pack("!HHHH", 40000, port, 8 + len(mark), 0) + mark.encode()
    try:
        s = make(family, socket.SOCK_RAW, 255)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    if family == 4:
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("192.0.2.77"),
                           socket.inet_aton(addr))
    else:
        head = struct.pack("!IHBB16s16s", 0x60000000, len(udp), 17, 64,
                           socket.inet_pton(socket.AF_INET6, "2001:db8:1::77"), socket.inet_pton(socket.AF_INET6, addr))
    return steps(lambda: s.sendto(head + udp, to(family, addr, 0)))


def udplite(family, addr, port, mark):
    try:
        s = make(family, socket.SOCK_DGRAM, 136)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.sendto(mark.encode(), to(family, addr, port)))


def sctp(family, addr, port, mark):
    out = []
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            s = make(family, kind, 132)
        except OSError as e:
            out.append(err(e))
            continue
        out.append(steps(lambda: s.connect(to(family, addr, port)), lambda: s.send(mark.encode())))
    return {"done": out, "error": None}


def dccp(family, addr, port, mark):
    try:
        s = make(family, 6, 33)
    except OSError as e:
        return {"done": 0, "error": err(e)}
    return steps(lambda: s.connect(to(family, addr, port)))


def protocols(family, addr, port, mark):
    """Every protocol number with every kind of socket; TCP and UDP by their own names are not in it."""
    opened, sent = [], []
    for protocol in [*range(256), 262, 263]:
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
            if (kind == socket.SOCK_STREAM and protocol in (0, 6)) or (kind == socket.SOCK_DGRAM and protocol in (0, 17)):
                continue
            try:
                s = socket.socket(INET[family], kind, protocol)
            except OSError:
                continue
            opened.append([int(kind), protocol])
            try:
                s.settimeout(0.2)
                s.sendto(mark.encode() + bytes(8), to(family, addr, 0 if kind == socket.SOCK_RAW else port))
                sent.append([int(kind), protocol])
            except (OSError, OverflowError):
                pass
            s.close()
    return {"opened": opened, "sent": sent}


def packet(family, addr, port, mark, dev=DEV):
    """AF_PACKET: a frame of an experimental type, and an IP packet that the stack never sees."""
    done = []
    payload = mark.encode() + bytes(40)
    mac = bytes.fromhex("020000000201"), bytes.fromhex("020000000202")
    for kind, ethertype in ((socket.SOCK_RAW, 0x88B5), (socket.SOCK_DGRAM, 0x88B5), (socket.SOCK_RAW, 0x0800)):
        try:
            s = socket.socket(socket.AF_PACKET, kind, 0)
            s.bind((dev, ethertype))
            head = mac[0] + mac[1] + struct.pack("!H", ethertype) if kind == socket.SOCK_RAW else b""
            s.sendto(head + payload, (dev, ethertype, 0, 0, mac[0]))
            done.append("sent")
        except OSError as e:
            done.append(err(e))
    return {"done": done, "error": None}


# -- many at once -------------------------------------------------------------------

def multicast(family, addr, port, mark):
    s = make(family, socket.SOCK_DGRAM)
    index = socket.if_nametoindex(DEV)
    if family == 4:
        set_ = lambda: s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", bytes(4), bytes(4), index))
        return steps(set_, lambda: s.sendto(mark.encode(), ("239.1.2.3", port)))
    return steps(lambda: s.sendto(mark.encode(), ("ff02::1234", port, 0, index)))


def broadcast(family, addr, port, mark):
    s = make(4, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    out = [steps(lambda d=d: s.sendto(mark.encode(), (d, port))) for d in ("192.0.2.255", "255.255.255.255")]
    return {"done": out, "error": None}


def multicast_join(family, addr, port, mark):
    """Joining a group sends a report with the group's address in it: 28 bits (v4) or 112 bits (v6) of the program's
    choice. The group is made from the mark."""
    s = make(family, socket.SOCK_DGRAM)
    index = socket.if_nametoindex(DEV)
    tail = mark.encode()[-3:] if family == 4 else mark.encode()[-12:]
    if family == 4:
        group = bytes([239]) + tail
        join = lambda: s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4si", group, bytes(4), index))
    else:
        group = bytes([0xFF, 0x05, 0, 0]) + tail
        join = lambda: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + struct.pack("I", index))
    out = steps(join)
    time.sleep(1.3)  # the report is sent by a timer within a second
    return out


def source_route(family, addr, port, mark):
    """Loose source routing to a third address, by way of a destination that might be allowed."""
    s = make(4, socket.SOCK_DGRAM)
    route = bytes([131, 7, 4]) + socket.inet_aton(addr) + b"\0"
    return steps(lambda: s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, route),
                 lambda: s.sendto(mark.encode(), ("192.0.2.1", port)))
