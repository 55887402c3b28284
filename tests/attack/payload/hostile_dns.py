# SPDX-License-Identifier: MIT
"""What a hostile program does to the DNS gate and to the inspector behind it."""
import contextlib
import errno
import resource
import select
import socket
import struct
import time


def _query(name=b"", edns=True):
    labels = b"".join(bytes([len(l)]) + l for l in name.split(b".") if l)
    opt = b"\0\0\x29\x10\0" + bytes(6) if edns else b""
    message = struct.pack("!6H", 7, 0x100, 1, 0, 0, 1 if edns else 0) + labels + b"\0\0\1\0\1" + opt
    return struct.pack("!H", len(message)) + message


def deaf(addr, sockets, each, hold=0.0):
    """Asks over TCP, many questions a connection, and never reads an answer. Returns the bytes that were taken."""
    chunk = _query(b"a.nobody.example") * 400
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, sockets + 64), hard))
    sent, open_ = {}, []
    for _ in range(sockets):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.settimeout(60)
        s.connect((addr, 53))
        s.setblocking(False)
        sent[s] = 0
        open_.append(s)
    end, broken = time.monotonic() + 30, 0
    while time.monotonic() < end:
        todo = [s for s in open_ if sent[s] < each]
        if not todo:
            break
        _, ready, _ = select.select([], todo, [], 1) if sockets < 900 else ([], todo, [])
        if not ready:
            break
        for s in ready:
            with contextlib.suppress(BlockingIOError):
                try:
                    at = sent[s] % len(chunk)
                    sent[s] += s.send(chunk[at:])
                except (BrokenPipeError, ConnectionResetError):
                    broken += 1
                    sent[s] = each
                    open_.remove(s)
    time.sleep(hold)
    return {"sent": sum(sent.values()), "broken": broken}


def knock(addrs, port=443, hold=2.0):
    """Connections that nobody has taken yet."""
    kept = []
    for addr in addrs:
        s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
        s.settimeout(60)
        try:
            s.connect((addr, port))
        except OSError as e:
            return {"error": errno.errorcode[e.errno] if e.errno else str(e)}
        kept.append(s)
    time.sleep(hold)
    return {"open": len(kept)}


def resolve(name, server="198.51.100.53"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    s.sendto(_query(name.encode(), edns=False)[2:], (server, 53))
    answer = s.recv(4096)
    return socket.inet_ntoa(answer[-4:]) if answer[3] & 15 == 0 else None


def say(name, port, text, wait=60.0):
    """Connects to what the name stands for, says it, and waits for an answer."""
    s = socket.socket()
    s.settimeout(wait)
    s.connect((resolve(name), port))
    s.sendall(text.encode())
    return {"got": s.recv(100).decode()}


def lease(path, hold=20.0, write=False):
    """A lease on a file that this user owns: who opens it for writing (write: at all) waits until we let go, or for
    lease-break-time."""
    import fcntl
    import os
    import signal
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(os.path.expandvars(path), os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK if write else fcntl.F_RDLCK)
    time.sleep(hold)
    return {"held": fcntl.fcntl(fd, fcntl.F_GETLEASE)}


def flood(addr, sockets, seconds):
    """Asks over TCP, as much as goes, and reads all answers."""
    chunk = _query(b"a.nobody.example") * 1400
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, sockets + 64), hard))
    poll, open_, at = select.epoll(), {}, {}
    for _ in range(sockets):
        s = socket.socket()
        s.settimeout(60)
        s.connect((addr, 53))
        s.setblocking(False)
        open_[s.fileno()] = s
        at[s.fileno()] = 0
        poll.register(s, select.EPOLLIN | select.EPOLLOUT)
    end, sent, got, broken = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end and open_:
        for fd, events in poll.poll(0.5):
            s = open_.get(fd)
            try:
                if events & select.EPOLLOUT:
                    n = s.send(chunk[at[fd]:])
                    at[fd] = (at[fd] + n) % len(chunk)
                    sent += n
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    data = s.recv(1 << 20)
                    got += len(data)
                    if not data:
                        raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                broken += 1
                poll.unregister(fd)
                open_.pop(fd).close()
    return {"sent": sent, "got": got, "broken": broken}


def pour(name, port, kib, hold=0.0):
    """Sends so much, and leaves it open until the end."""
    s = socket.socket()
    s.settimeout(60)
    s.connect((resolve(name), port))
    s.sendall(bytes(1024) * kib)
    time.sleep(hold)
    return {"sent": kib}


def slip(device):
    """Ways to get a datagram, or a first segment, to a synthetic address out to a device. What each call said."""
    import ctypes
    out = {}
    info4 = [(socket.IPPROTO_IP, 8, struct.pack("=I4s4s", socket.if_nametoindex(device), socket.inet_aton("192.0.2.2"), bytes(4)))]
    info6 = [(socket.IPPROTO_IPV6, 50, socket.inet_pton(socket.AF_INET6, "2001:db8:1::2") + struct.pack("=I", socket.if_nametoindex(device)))]
    index = socket.if_nametoindex(device)

    def attempt(name, f):
        try:
            out[name] = repr(f())
        except OSError as e:
            out[name] = errno.errorcode.get(e.errno, str(e))

    def udp(family, to, bind=None, device_=False, connect=True, control=None, flags=0, port=9):
        s = socket.socket(family, socket.SOCK_DGRAM)
        if device_:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
        if bind:
            s.bind(bind)
        address = (to, port) if family == socket.AF_INET else (to, port, 0, index)
        if connect:
            s.connect(address)
            return s.sendmsg([b"leak" * 10], control or [], flags) and s.send(b"leak" * 800)
        return s.sendmsg([b"leak" * 10], control or [], flags, address)

    for family, addrs, info in ((socket.AF_INET, ["198.18.0.5", "198.19.255.255", "198.18.0.0"], info4),
                                (socket.AF_INET6, ["fd6e:6574:7061:776c::5", "::ffff:198.18.0.5", "64:ff9b::c612:5", "2002:c612:5::1"], info6)):
        for a in addrs:
            for port in (9, 53, 443, 9000):
                for connect in (True, False):
                    for dev in (False, True):
                        for control in (None, info):
                            attempt(f"udp {a} {port} {connect} {dev} {bool(control)}",
                                    lambda: udp(family, a, device_=dev, connect=connect, control=control, port=port))
            attempt(f"fastopen {a}", lambda: _fastopen(family, a, index))
            attempt(f"sport {a}", lambda: udp(family, a, bind=("0.0.0.0" if family == socket.AF_INET else "::", 53)))
    return out


def _fastopen(family, to, index):
    s = socket.socket(family)
    s.settimeout(2)
    return s.sendto(b"leak" * 10, socket.MSG_FASTOPEN, (to, 443) if family == socket.AF_INET else (to, 443, 0, index))


def forms(name, hosts):
    """{form: first line of the answer}; after a CONNECT that is granted, what a hello without SNI and a request get."""
    out, addr = {}, resolve(name)
    for host in hosts:
        for form in (f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n", f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
                     f"GET http://{host}/ HTTP/1.1\r\nHost: {name}\r\n\r\n", f"CONNECT {host}{'' if host.endswith('9300') else ':443'} HTTP/1.1\r\n\r\n",
                     f"CONNECT {host}{'' if host.endswith('9300') else ':80'} HTTP/1.1\r\n\r\n"):
            s = socket.socket()
            s.settimeout(60)
            try:
                s.connect((addr, 80))
                s.sendall(form.encode())
                answer = s.recv(4096).decode("latin-1")
                if form.startswith("CONNECT") and " 200 " in answer:
                    s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    inner = s.recv(4096).decode("latin-1")
                    answer = "tunnel " + inner[:60] if inner.startswith("HTTP/1.1 2") else answer
                out[form] = answer.split("\r\n")[0]
            except OSError as e:
                out[form] = str(e)
            s.close()
    return out


def fill(addr, count, suffix):
    """Looks up so many names over TCP; how many got an address."""
    s = socket.socket()
    s.settimeout(60)
    s.connect((addr, 53))
    good, at = 0, 0
    while at < count:
        n = min(100, count - at)
        s.sendall(b"".join(_query(b"n%d." % (at + i) + suffix.encode(), edns=False) for i in range(n)))
        data = b""
        for _ in range(n):
            while len(data) < 2 or len(data) < 2 + struct.unpack("!H", data[:2])[0]:
                data += s.recv(65536)
            size = 2 + struct.unpack("!H", data[:2])[0]
            good += data[5] & 15 == 0
            data = data[size:]
        at += n
    return {"good": good}
