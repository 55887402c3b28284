# SPDX-License-Identifier: MIT
"""A process that does on the network what it is told: one JSON request a line on stdin, one answer on stdout.

The same program runs in the far world, on the host outside of any sandbox (the control) and inside
sandboxes, so that "the same thing, with and without the gate" is literally the same code.
Standard library only: it must start as any user, in any sandbox.
"""
import collections
import errno
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6, "unix": socket.AF_UNIX}
KIND = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET, "raw": socket.SOCK_RAW}

held = {}  # handle -> Held
many = {}  # handle -> sockets
ops = {}


class Held:
    """A socket that outlives the request that made it, with what its thread saw."""

    def __init__(self, sock):
        self.sock = sock
        self.records = collections.deque(maxlen=20000)
        self.total = 0
        self.error = None
        self.error_ns = None
        self.done = threading.Event()
        self.thread = None
        self.stop = False

    def run(self, target, *args):
        def body():
            try:
                target(self, *args)
            except OSError as e:
                self.error, self.error_ns = name_of(e), time.time_ns()
            finally:
                self.done.set()

        self.thread = threading.Thread(target=body, daemon=True)
        self.thread.start()

    def note(self, peer, data):
        self.total += len(data)
        self.records.append((time.time_ns(), str(peer), bytes(data[:200])))


def name_of(e):
    if isinstance(e, (socket.timeout, TimeoutError)) and e.errno is None:
        return "TIMEOUT"
    return errno.errorcode.get(e.errno, str(e))


def op(f):
    ops[f.__name__] = f
    return f


def resolve(family, addr, port):
    """An address for connect(); fe80::1%dev carries its scope."""
    if family == "unix":
        return addr.replace("@", "\0", 1) if addr.startswith("@") else addr
    if family == 6:
        host, _, dev = addr.partition("%")
        return (host, port, 0, socket.if_nametoindex(dev) if dev else 0)
    return (addr, port)


def data_of(text):
    return text.encode("latin-1") if text is not None else b""


@op
def hello():
    with open("/proc/self/cgroup") as f:
        cgroup = [l.strip().split("::", 1)[1] for l in f if l.startswith("0::")]
    return {"pid": os.getpid(), "uid": os.getuid(), "cgroup": cgroup[0] if cgroup else None}


# -- clients -------------------------------------------------------------------

@op
def dial(family, addr, port=0, kind="stream", data=None, recv=0, timeout=30, keep=None, bind=None, protocol=0):
    """connect(), then perhaps send and receive. For datagrams this is the connected form."""
    s = socket.socket(FAMILY[family], KIND[kind], protocol)
    try:
        s.settimeout(timeout)
        if bind is not None:
            s.bind(tuple(bind) if isinstance(bind, list) else resolve("unix", bind, 0))
        s.connect(resolve(family, addr, port))
        out = {"local": list(s.getsockname()[:2]) if family != "unix" else None}
        if data is not None:
            s.send(data_of(data))
        if recv:
            out["data"] = s.recv(recv).decode("latin-1")
        if keep:
            held[keep] = Held(s)
            s = None
        return out
    finally:
        if s is not None:
            s.close()


@op
def sendto(family, addr, port=0, data="x", recv=0, timeout=30, count=1, bind=None, keep=None):
    """The unconnected datagram form."""
    s = socket.socket(FAMILY[family], socket.SOCK_DGRAM)
    try:
        s.settimeout(timeout)
        if bind is not None:
            s.bind(tuple(bind) if isinstance(bind, list) else resolve("unix", bind, 0))
        for _ in range(count):
            s.sendto(data_of(data), resolve(family, addr, port))
        out = {}
        if recv:
            got, peer = s.recvfrom(recv)
            out = {"data": got.decode("latin-1"), "len": len(got), "peer": str(peer)}
        if keep:
            held[keep] = Held(s)
            s = None
        return out
    finally:
        if s is not None:
            s.close()


@op
def hold(keep, family, kind="stream", protocol=0):
    held[keep] = Held(socket.socket(FAMILY[family], KIND[kind], protocol))
    return {}


@op
def hold_cookie(keep, family=4):
    """A stream socket, and the number that the kernel knows it by."""
    s = socket.socket(FAMILY[family])
    held[keep] = Held(s)
    return {"cookie": struct.unpack("Q", s.getsockopt(socket.SOL_SOCKET, 57, 8))[0]}


@op
def hold_many(keep, count):
    """As many UDP sockets as it gets, each at a port."""
    error = None
    sockets = []
    for _ in range(count):
        try:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("127.0.0.1", 0))
            sockets.append(s)
        except OSError as e:
            error = name_of(e)
            break
    many[keep] = sockets
    return {"count": len(sockets), "error": error}


@op
def drop_many(keep):
    for s in many.pop(keep):
        s.close()
    return {}


@op
def leave_many(count):
    """A child that opens many and is killed."""
    pid = os.fork()
    if pid == 0:
        kept = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
        for s in kept:
            s.bind(("127.0.0.1", 0))
        os.kill(os.getpid(), signal.SIGKILL)
    return {"code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}


@op
def send(keep, data, addr=None, family=4, port=0):
    s = held[keep].sock
    if addr is not None:
        return {"n": s.sendto(data_of(data), resolve(family, addr, port))}
    return {"n": s.send(data_of(data))}


@op
def recv(keep, size=65536, timeout=30):
    s = held[keep].sock
    s.settimeout(timeout)
    data = s.recv(size)
    return {"data": data.decode("latin-1"), "len": len(data)}


@op
def connect(keep, family, addr, port=0, timeout=30):
    s = held[keep].sock
    s.settimeout(timeout)
    s.connect(resolve(family, addr, port))
    return {}


@op
def close(keep):
    h = held.pop(keep, None)
    if h:
        h.stop = True
        try:
            h.sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that is blocked in accept() or recv()
        except OSError:
            pass
        h.sock.close()
    return {}


@op
def mailbox(keep, path):
    """A unix socket for somebody to pass a descriptor to: mail() takes it in, under a name."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    held[keep] = Held(s)
    return {}


@op
def mail(keep, as_, timeout=30):
    held[keep].sock.settimeout(timeout)
    _, fds, _, _ = socket.recv_fds(held[keep].sock, 1, 1)
    held[as_] = Held(socket.socket(fileno=fds[0]))
    return {}


@op
def post(keep, path):
    """Passes a descriptor on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(path)
        socket.send_fds(s, [b"x"], [held[keep].sock.fileno()])
    return {}


# -- things that go on in the background ----------------------------------------

@op
def stream(keep, size=65536, mark="", limit_s=120, pause=0):
    """Sends as fast as it goes, or with pauses, until an error, close() or limit_s."""
    def body(h):
        h.sock.settimeout(None)
        chunk = (data_of(mark) + b"s" * size)[:size]
        end = time.monotonic() + limit_s
        while not h.stop and time.monotonic() < end:
            h.total += h.sock.send(chunk)
            if pause:
                time.sleep(pause)

    held[keep].run(body)
    return {}


@op
def block_recv(keep):
    """A thread that blocks in recv() with no timeout, as a reader of a dead connection would."""
    def body(h):
        h.sock.settimeout(None)
        while True:
            data = h.sock.recv(65536)
            h.total += len(data)
            if not data:
                h.error = "EOF"
                return

    held[keep].run(body)
    return {}


@op
def wait(keep, timeout=60):
    """Waits for a background thread to end. 'ended': False is a hang."""
    h = held[keep]
    ended = h.done.wait(timeout)
    return {"ended": ended, "error": h.error, "error_ns": h.error_ns, "total": h.total}


@op
def hammer(keep, family, addr, port, pause=0.002, limit_s=30, kind="stream", mark="h"):
    """Connects (or sends) again and again; records[] stays empty, the outcomes are counted by name."""
    h = Held(None)
    h.outcomes = collections.Counter()
    held[keep] = h

    def body(h):
        end = time.monotonic() + limit_s
        while not h.stop and time.monotonic() < end:
            s = socket.socket(FAMILY[family], KIND[kind])
            s.settimeout(1)
            try:
                s.connect(resolve(family, addr, port))
                s.send(data_of(mark))
                h.outcomes["ok"] += 1
            except OSError as e:
                h.outcomes[name_of(e)] += 1
            finally:
                s.close()
            time.sleep(pause)

    h.run(body)
    return {}


@op
def hammer_stop(keep):
    h = held.pop(keep)
    h.stop = True
    h.done.wait(60)
    return {"outcomes": dict(h.outcomes)}


@op
def hammer_state(keep):
    return {"outcomes": dict(held[keep].outcomes)}


@op
def flood(family, addr, port, count, kind="stream", limit_s=60):
    """count connects in a row, as fast as they are refused."""
    outcomes = collections.Counter()
    end = time.monotonic() + limit_s
    to = resolve(family, addr, port)
    for _ in range(count):
        if time.monotonic() > end:
            break
        s = socket.socket(FAMILY[family], KIND[kind])
        try:
            s.settimeout(1)
            s.connect(to)
            outcomes["ok"] += 1
        except OSError as e:
            outcomes[name_of(e)] += 1
        finally:
            s.close()
    return {"outcomes": dict(outcomes)}


@op
def storm(keep, family, addr, port, children=5000, pause=0.003, mark="storm", limit_s=120):
    """Short children one after the other, each with one connect: a thread starts them until storm_end, which counts them."""
    h = Held(None)
    h.outcomes = collections.Counter()
    held[keep] = h

    def child():
        try:
            s = socket.socket(FAMILY[family])
            s.settimeout(60)
            s.connect(resolve(family, addr, port))
            s.send(data_of(mark))
            os._exit(0)
        except OSError as e:
            os._exit((e.errno or 110) & 0xFF or 255)

    def body(h):
        end = time.monotonic() + limit_s
        live = []
        for _ in range(children):
            if h.stop or time.monotonic() > end:
                break
            pid = os.fork()
            if pid == 0:
                child()
            live.append(pid)
            time.sleep(pause)
            h.total += 1
        for pid in live:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            h.outcomes["ok" if code == 0 else errno.errorcode.get(code, str(code))] += 1

    h.run(body)
    return {}


@op
def storm_end(keep, timeout=180):
    h = held[keep]
    h.stop = True
    ended = h.done.wait(timeout)
    return {"ended": ended, "started": h.total, "outcomes": dict(h.outcomes)}


# -- servers ---------------------------------------------------------------------

def serve_stream(h, role):
    """role: echo, sink (reads, counts), hold (never answers), source (writes until told to stop)."""
    def one(conn, peer):
        try:
            if role == "source":
                while not h.stop:
                    conn.send(b"d" * 1024)
                    time.sleep(0.01)
                return
            while data := conn.recv(1 << 20):  # it outlives its listener
                if role == "sink":
                    h.total += len(data)
                    continue
                h.note(peer, data)
                if role == "echo":
                    conn.sendall(data)
        except OSError:
            pass
        finally:
            conn.close()

    while not h.stop:
        conn, peer = h.sock.accept()
        h.records.append((time.time_ns(), str(peer), b"<connect>"))
        threading.Thread(target=one, args=(conn, peer), daemon=True).start()


def serve_dgram(h, role):
    while not h.stop:
        data, peer = h.sock.recvfrom(65536)
        h.note(peer, data)
        if role == "echo" and peer:
            try:
                h.sock.sendto(data, peer)
            except OSError:
                pass


@op
def listen(keep, family, addr, port=0, kind="stream", role="echo", v6only=True, protocol=0, fastopen=False, device=None,
           scope=None):
    """device: it is bound to that one. scope: an address of a device that is not there, so that bind() fails, and leaves
    the socket bound to the device."""
    s = socket.socket(FAMILY[family], KIND[kind], protocol)
    try:
        if device:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        if scope:
            try:
                s.bind(resolve(family, scope, 0))
            except OSError:
                pass
        if family != "unix":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == 6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1 if v6only else 0)
        s.bind(resolve(family, addr, port))
        if kind == "dgram":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        if kind != "dgram":
            if fastopen:
                s.setsockopt(socket.IPPROTO_TCP, 23, 64)  # TCP_FASTOPEN
            s.listen(256)
        if family == "unix" and not addr.startswith("@"):
            os.chmod(addr, 0o777)
    except OSError:
        s.close()
        raise
    held[keep] = h = Held(s)
    h.run(serve_dgram if kind == "dgram" else serve_stream, role)
    name = s.getsockname()
    return {"port": name[1] if family != "unix" else 0, "addr": name[0] if family != "unix" else None}


@op
def listen_unbound(keep, family):
    """listen() without bind(): the kernel chooses the port."""
    s = socket.socket(FAMILY[family])
    held[keep] = Held(s)
    s.listen()
    return {"port": s.getsockname()[1]}


@op
def bound(keep, family, addr, port=0):
    """A stream socket that has a port and does not listen."""
    s = socket.socket(FAMILY[family])
    held[keep] = Held(s)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(resolve(family, addr, port))
    return {"port": s.getsockname()[1]}


@op
def name(keep):
    return {"port": held[keep].sock.getsockname()[1]}


@op
def listen_many(specs):
    for spec in specs:
        listen(**spec)
    return {}


@op
def records(keep=None, since=0, mark=None):
    """What servers of this agent received; mark: only data with these bytes in it."""
    want = data_of(mark) if mark is not None else None
    out = []
    for name, h in list(held.items()):
        if keep is not None and name != keep:
            continue
        for t, peer, data in list(h.records):
            if t >= since and (want is None or want in data):
                out.append({"on": name, "t": t, "peer": peer, "data": data.decode("latin-1")})
    return {"records": out}


@op
def total(keep):
    return {"total": held[keep].total}


# -- the capture -------------------------------------------------------------------

class Capture:
    """Every frame on one device, from an AF_PACKET ring: arrival time by the kernel, first bytes, nothing filtered."""

    FRAME, FRAMES, BLOCK = 512, 1 << 16, 1 << 16
    SNAP = 320

    def __init__(self, dev):
        import mmap
        SOL_PACKET, PACKET_RX_RING, PACKET_VERSION = 263, 5, 10
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s.setsockopt(SOL_PACKET, PACKET_VERSION, 1)  # TPACKET_V2
        blocks = self.FRAME * self.FRAMES // self.BLOCK
        s.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", self.BLOCK, blocks, self.FRAME, self.FRAMES))
        self.ring = mmap.mmap(s.fileno(), self.FRAME * self.FRAMES)
        self.sock, self.at, self.lock = s, 0, threading.Lock()
        self.frames = collections.deque(maxlen=400000)
        s.bind((dev, 3))  # ETH_P_ALL
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        while True:
            poll.poll(1000)
            self.drain()
            time.sleep(0.002)

    def drain(self):
        """Two reads of the ring may race only through the lock; a slot goes back to the kernel when it was copied."""
        with self.lock:
            ring, unpack = self.ring, struct.unpack_from
            while True:
                base = (self.at % self.FRAMES) * self.FRAME
                status, length, snap, mac, net, sec, nsec = unpack("IIIHHII", ring, base)
                if not status & 1:
                    return
                snap = min(snap, self.SNAP)
                pkttype = ring[base + 32 + 10]  # tpacket2_hdr, then sockaddr_ll.sll_pkttype
                self.frames.append((sec * 10**9 + nsec, length, pkttype, ring[base + mac : base + mac + snap]))
                struct.pack_into("I", ring, base, 0)
                self.at += 1

    def drops(self):
        return struct.unpack("II", self.sock.getsockopt(263, 6, 8))[1]  # PACKET_STATISTICS: since the last call


capture = None


def parse(frame, length):
    """The words of a frame that the tests look at. Never raises: an odd frame is a frame, too."""
    out = {"len": length, "ethertype": "%04x" % int.from_bytes(frame[12:14], "big")}
    try:
        if out["ethertype"] == "0800":
            ihl = (frame[14] & 15) * 4
            out.update(proto=frame[23], src=socket.inet_ntoa(frame[26:30]), dst=socket.inet_ntoa(frame[30:34]))
            frag = int.from_bytes(frame[20:22], "big")
            out["frag"] = bool(frag & 0x3FFF)
            l4, size = 14 + ihl, int.from_bytes(frame[16:18], "big") - ihl
            if frag & 0x1FFF:
                return out
        elif out["ethertype"] == "86dd":
            out.update(proto=frame[20], src=socket.inet_ntop(socket.AF_INET6, frame[22:38]),
                       dst=socket.inet_ntop(socket.AF_INET6, frame[38:54]))
            l4, size = 54, int.from_bytes(frame[18:20], "big")
            if out["proto"] == 0:  # hop by hop, as in MLD
                out["proto"] = frame[54]
                l4 += 8 + frame[55] * 8
        else:
            return out
        size = size or length - l4  # a GSO frame may carry 0 here
        if out["proto"] in (6, 17, 136):
            out["sport"], out["dport"] = struct.unpack_from("!HH", frame, l4)
            if out["proto"] == 6:
                off, flags = frame[l4 + 12], frame[l4 + 13]
                out["flags"] = flags
                out["payload"] = size - (off >> 4) * 4
            else:
                out["payload"] = size - 8
        elif out["proto"] in (1, 58):
            out["type"] = frame[l4]
    except (IndexError, struct.error):
        out["short"] = True
    return out


def is_noise(p):
    """What a kernel says by itself: neighbour discovery, multicast group reports, a bare RST to a stray segment."""
    if p["ethertype"] == "0806" or p.get("proto") == 2:
        return True
    if p.get("proto") == 58 and p.get("type") in (130, 131, 132, 133, 134, 135, 136, 143):
        return True
    return p.get("proto") == 6 and p.get("flags", 0) & 4 and p.get("payload") == 0


@op
def capture_start(dev):
    global capture
    capture = Capture(dev)
    return {}


@op
def sniff(keep, dev):
    """Frames of another device, as records of a held socket."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind((dev, 3))
    held[keep] = h = Held(s)

    def body(h):
        while not h.stop:
            h.note(dev, s.recv(2048))

    h.run(body)
    return {}


@op
def frames(since=0, until=None, mark=None, noise=False, outgoing=False, limit=50):
    """Frames that arrived after `since` (CLOCK_REALTIME ns). A frame with the mark in it is never noise."""
    capture.drain()
    want = data_of(mark) if mark else None
    out, count, marked = [], 0, 0
    for t, length, pkttype, raw in list(capture.frames):
        if t <= since or (until and t > until) or (pkttype == 4) != outgoing:
            continue
        has = bool(want and want in raw)
        p = parse(raw, length)
        if not has and not noise and is_noise(p):
            continue
        count += 1
        marked += has
        if len(out) < limit:
            out.append(dict(p, t=t, mark=has, head=raw[:96].hex()))
    return {"count": count, "marked": marked, "frames": out, "drops": capture.drops()}


# -- the rest -----------------------------------------------------------------------

@op
def payload(module, function, args=None, timeout=20):
    """Runs payload/<module>.py's function in a child, so that a filter that kills takes the child only."""
    r, w = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        signal.alarm(int(timeout))
        try:
            answer = getattr(importlib.import_module(module), function)(**(args or {}))
        except OSError as e:
            answer = {"error": name_of(e)}
        except Exception as e:  # an attack that breaks is a result that the test must see
            answer = {"exception": repr(e)}
        os.write(w, json.dumps(answer).encode())
        os._exit(0)
    os.close(w)
    got = b""
    while chunk := os.read(r, 65536):
        got += chunk
    os.close(r)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"status": status, "answer": json.loads(got) if got else None}


@op
def execute(argv, timeout=180, stdin=None):
    # never this process's own stdin: the requests come in there
    where = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, **where)
    return {"code": p.returncode, "out": p.stdout, "err": p.stderr}


@op
def spawn_sleeper(seconds=60):
    p = subprocess.Popen(["sleep", str(seconds)], stdin=subprocess.DEVNULL)
    return {"pid": p.pid}


@op
def raw_request(path, text, timeout=30):
    """Bytes to a unix stream socket, and what comes back (base64)."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    try:
        s.connect(path)
        s.sendall(data_of(text))
        return {"data": s.recv(65536).decode("latin-1")}
    finally:
        s.close()


@op
def write_file(path, data):
    with open(path, "w") as f:
        f.write(data)
    return {}


@op
def chdir(path):
    os.chdir(path)
    return {}


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [here, os.path.join(here, "payload")]
    out = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        if not line.strip():
            break  # it is told to end: what leads here may keep the pipe open
        request = json.loads(line)
        try:
            answer = ops[request["op"]](**request["args"])
            answer["ok"] = True
        except OSError as e:
            answer = {"ok": False, "error": name_of(e)}
        except Exception as e:
            answer = {"ok": False, "exception": repr(e)}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
