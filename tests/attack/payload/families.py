# SPDX-License-Identifier: MIT
"""Address families that no inet hook ever sees."""
import errno
import os
import socket
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM, socket.SOCK_SEQPACKET, 6, 10)


def opened(limit=64):
    """Which families can be opened at all, in some kind, with protocol 0 or with one that fits."""
    out = {}
    for family in range(limit):
        if family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
            continue
        for kind in KINDS:
            for protocol in (0, 1, 3, 0x0300, 16):
                try:
                    socket.socket(family, kind, protocol).close()
                    out.setdefault(family, []).append(kind)
                except OSError as e:
                    if e.errno == errno.EMFILE:
                        raise
    return {"opened": {str(f): sorted(set(map(int, k))) for f, k in out.items()}}


def pairs(limit=64):
    out = []
    for family in range(limit):
        if family == socket.AF_UNIX:
            continue
        for kind in KINDS:
            try:
                a, b = socket.socketpair(family, kind)
                a.close()
                b.close()
                out.append(family)
            except OSError:
                pass
    return {"opened": sorted(set(out))}


def program(name, *words):
    """One of the C programs: its exit code says what happened (see there)."""
    p = subprocess.run([os.path.join(HERE, name), *words], capture_output=True, text=True, timeout=15)
    return {"code": p.returncode, "out": p.stdout.strip(), "err": p.stderr.strip()}


def uring(what):
    return program("uring", what)


def compat(abi):
    return program("compat", abi)


def netlink_writes():
    """What an administrator of the network could do to it: every one of them would undo a gate."""
    import struct
    out = {}
    NLM = 0x1 | 0x4 | 0x200 | 0x400  # REQUEST ACK EXCL CREATE

    def ask(name, kind, body):
        try:
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            s.settimeout(2)
            s.sendto(struct.pack("IHHII", 16 + len(body), kind, NLM, 1, 0) + body, (0, 0))
            answer = s.recv(4096)
            code = struct.unpack_from("i", answer, 16)[0]
            out[name] = "ok" if code == 0 else errno.errorcode.get(-code, code)
        except OSError as e:
            out[name] = errno.errorcode.get(e.errno, str(e))

    def attr(kind, data):
        n = 4 + len(data)
        return struct.pack("HH", n, kind) + data + bytes(-n % 4)

    name = b"npx%d\0" % (os.getpid() % 10000)
    ask("link", 16, struct.pack("BxHiII", 0, 0, 0, 0, 0) + attr(3, name) + attr(18, attr(1, b"dummy\0")))
    ask("address", 20, struct.pack("BBBBI", 2, 32, 0, 0, 1) + attr(2, socket.inet_aton("127.9.9.9")))
    ask("route", 24, struct.pack("BBBBBBBBI", 2, 32, 0, 0, 254, 4, 0, 6, 0) + attr(1, socket.inet_aton("198.18.0.1")))
    return out
