# SPDX-License-Identifier: MIT
"""Bytes that a sandbox handed over before a raise and that nobody had sent when it was acknowledged: in the send queue of
a socket of the inspector, in a tunnel that is over, in a worker that is killed, with a resolver that does not answer, in
connections that outlived their sandbox.

The far end is an origin with a small receive buffer that starts to read only after the acknowledgement. All that the
sandbox sends is one mark over and over, so every frame with payload of it shows in the capture; frames carry the time at
which they arrived, and the acknowledgement is there before the test looks at the clock. Each test has a control, in which
nothing is raised and everything arrives."""
import contextlib
import os
import select
import signal
import socket
import struct
import threading
import time

import pytest

from lib import base
from lib.api import Connection
from lib.box import Adopted, Box
from lib.daemon import Daemon
from lib.world import FAR, GATE4, World

DNS, TUNNEL, DIRECT = 5301, 7000, 7001
POLICY = """version: 1
levels: {INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
rules:
  - allow: [late.test, "**.wild.test", "tunnel.test:7000"]
    for: INTERNAL
  - allow: ws.test
    for: INTERNAL
    websocket: true
  - allow: [none.txt.test, level.txt.test, policy.txt.test, control.txt.test]
    for: INTERNAL
    dns: TXT
  - allow: "%s:7001"
    for: INTERNAL
  - allow: elsewhere.test
""" % FAR[4]


class Resolver(threading.Thread):
    """Knows some names, says nothing of others, and remembers what it was asked."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.sock = base.setns_call(world.far, lambda: self.bound(GATE4))
        self.asked, self.over = [], False
        self.start()

    @staticmethod
    def bound(addr):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((addr, DNS))
        s.settimeout(0.2)
        return s

    def run(self):
        while not self.over:
            try:
                query, peer = self.sock.recvfrom(4096)
            except OSError:
                continue
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1 : at + 1 + query[at]].decode())
                at += 1 + query[at]
            name, (kind, _) = ".".join(labels).lower(), struct.unpack_from("!HH", query, at + 1)
            self.asked.append((name, kind))
            if name.endswith("wild.test") or kind == 16:
                continue
            answer = b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", 60, 4) + socket.inet_aton(FAR[4]) if kind == 1 else b""
            self.sock.sendto(query[:2] + b"\x81\x80\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
                             + query[12 : at + 5] + answer, peer)

    def count(self, name, kind):
        return self.asked.count((name, kind))

    def close(self):
        self.over = True
        self.join()
        self.sock.close()


class Net:
    def __init__(self, stack, inspectors=1):
        self.inspectors = inspectors
        self.world = World(tcp_ports=(53, 8080, 9000))
        stack.callback(self.world.close)
        self.resolver = Resolver(self.world)
        stack.callback(self.resolver.close)
        self.policy = self.world.dir / "policy.yaml"
        self.text = POLICY + base.PERMITS
        self.policy.write_text(self.text)
        self.daemon = Daemon(self.world, policy=self.policy, inspectors=inspectors, more=["--resolvers", f"{GATE4}:{DNS}"])
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api = self.daemon.api
        self.ready()

    def ready(self):
        assert base.eventually(lambda: self.api.health()["inspectors"] == self.inspectors, 20)

    def worker(self):
        pids = self.daemon.workers()
        assert len(pids) == 1, pids
        return pids[0]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture(scope="module")
def net2():
    """With a second inspector: while one starts, the other keeps the gate steering."""
    with contextlib.ExitStack() as stack:
        yield Net(stack, inspectors=2)


class Late:
    """An origin that reads when it is told to."""

    def __init__(self, net, port):
        self.net, self.got, self.conn = net, b"", None
        self.listener = base.setns_call(net.world.far, lambda: self.listening(port))

    @staticmethod
    def listening(port):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.bind((FAR[4], port))
        s.listen(8)
        s.settimeout(120)
        return s

    def accept(self):
        self.conn, _ = self.listener.accept()
        self.conn.settimeout(60)
        return self.conn

    def has(self):
        """Something is there to be read: what was handed over has begun to arrive."""
        assert select.select([self.conn], [], [], 60)[0]

    def head(self):
        """The head of a request, and not a byte more."""
        while b"\r\n\r\n" not in self.got:
            self.got += self.conn.recv(1)
        return self.got.decode()

    def read(self, until=None):
        """All that comes, to the end or the reset, or as soon as that many bytes are there."""
        with contextlib.suppress(ConnectionResetError, TimeoutError):
            while until is None or len(self.got) < until:
                data = self.conn.recv(65536)
                if not data:
                    break
                self.got += data
        return self.got

    def close(self):
        for s in (self.conn, self.listener):
            if s:
                s.close()


@pytest.fixture
def late(net):
    made = []

    def make(port=80):
        made.append(Late(net, port))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


@pytest.fixture
def boxes(net):
    made = []

    def make(level="INTERNAL", kind=Box, session=None):
        made.append(kind(net.daemon, level=level, session=session))
        return made[-1]

    yield make
    for box in made:
        box.close()


def marks(size):
    mark = base.token()
    return mark, (mark * (size // len(mark) + 1))[:size]


def send_all(box, data, keep="c"):
    while data:
        data = data[box.call("send", keep=keep, data=data[:32768])["n"]:]


def raised(net, box, level="SECRET"):
    """The moment after the acknowledgement."""
    net.api.escalate(box.session, level)
    return time.time_ns()


def nothing_after(net, origin, mark, moment, whole):
    """The origin reads now: of the mark it gets what it had got when the raise was acknowledged, and no more."""
    had = select.select([origin.conn], [], [], 0)[0]
    got = origin.read()
    frames = net.world.frames(moment, mark)
    assert frames["drops"] == 0, "the capture lost frames: no judgement"
    late = sum(f["payload"] for f in frames["frames"] if f["mark"])
    assert frames["marked"] == 0, f"{frames['marked']} frames, at least {late} bytes, came after the acknowledgement"
    assert had and len(got) < whole, "all of it had arrived before: this test proves nothing"


def post(size, host="late.test", close=True):
    return (f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n"
            f"{'Connection: close' + chr(13) + chr(10) if close else ''}\r\n")


EARLY = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\nok"
BODY = 60000


def unread(net, box):
    """Bytes on their way from programs to inspectors, by the loopback of the daemon's network or of the sandbox's own."""
    rows = []
    for pid in (net.daemon.process.pid, box.pids()[0]):
        with open(f"/proc/{pid}/net/tcp") as f:
            rows += [line.split() for line in f]
    return sum(int(queue, 16) for row in rows if row[2].startswith("0100007F:") for queue in row[4].split(":"))


def answered_early(box, origin, close):
    """A request of which the origin has read the head, answered in full; the client has the answer."""
    mark, body = marks(BODY)
    box.call("dial", family=4, addr=FAR[4], port=80, keep="c")
    send_all(box, post(len(body)) + body)
    origin.accept()
    head = origin.head()
    # Whoever is answered before the inspector has read all of its request need not send the rest any more.
    assert base.eventually(lambda: not unread(origin.net, box), 60), unread(origin.net, box)
    origin.conn.sendall(EARLY.format("Connection: close\r\n" if close else "").encode())
    got = ""
    while not got.endswith("ok"):
        got += box.call("recv", keep="c", timeout=60)["data"]
    origin.has()
    return mark, len(head) + len(body)


TIGHTENED = ["none", "level", "policy"]


def tighten(net, box, how):
    """Something that forbids late.test; returns the moment after its acknowledgement."""
    if how == "policy":
        net.policy.write_text(net.text.replace("[late.test, ", "[").replace("allow: ws.test", "allow: other.test")
                              .replace('"tunnel.test:7000"', '"tunnel.test:7007"').replace("policy.txt.test", "other.test"))
        net.api.ok("POST", "/v1/policy/reload")
        return time.time_ns()
    return raised(net, box, "SECRET" if how == "none" else "CONFIDENTIAL")


@pytest.fixture
def policy_again(net):
    yield
    if net.policy.read_text() != net.text:
        net.policy.write_text(net.text)
        net.api.ok("POST", "/v1/policy/reload")


@pytest.mark.parametrize("close", [True, False], ids=["close", "keep-alive"])
@pytest.mark.parametrize("how", TIGHTENED)
def test_request_that_was_answered_before_it_was_read(net, boxes, late, policy_again, how, close):
    """The exchange is over, and its connection closed or kept for the next one: its body still waits in the socket."""
    box, origin = boxes(), late()
    mark, whole = answered_early(box, origin, close)
    nothing_after(net, origin, mark, tighten(net, box, how), whole)


@pytest.mark.parametrize("close", [True, False], ids=["close", "keep-alive"])
def test_control_request_that_was_answered_before_it_was_read(boxes, late, close):
    box, origin = boxes(), late()
    _, whole = answered_early(box, origin, close)
    assert len(origin.read(whole)) == whole


TUNNELLED = """
import fcntl, socket, struct, sys, time
s = socket.create_connection(("tunnel.test", 7000), timeout=120)
s.sendall(sys.argv[1].encode() * int(sys.argv[2]))
s.shutdown(socket.SHUT_WR)
while s.recv(4096): pass
"""


def finished_tunnel(box, origin):
    """TCP by name, by a program that has ended: both ends said all, and the origin has read nothing."""
    mark = base.token()
    count = 12000 // len(mark)
    done = []
    thread = threading.Thread(target=lambda: done.append(box.call(
        "execute", argv=[base.PYTHON, "-c", TUNNELLED, mark, str(count)])))
    thread.start()
    origin.accept()
    origin.conn.sendall(b"bye")
    origin.conn.shutdown(socket.SHUT_WR)
    thread.join()
    assert done and done[0]["code"] == 0, done
    origin.has()
    return mark, len(mark) * count


@pytest.mark.parametrize("how", TIGHTENED)
def test_tunnel_that_both_ends_have_finished(net, boxes, late, policy_again, how):
    box, origin = boxes(), late(TUNNEL)
    mark, whole = finished_tunnel(box, origin)
    nothing_after(net, origin, mark, tighten(net, box, how), whole)


def test_control_tunnel_that_both_ends_have_finished(boxes, late):
    box, origin = boxes(), late(TUNNEL)
    _, whole = finished_tunnel(box, origin)
    assert len(origin.read()) == whole


def end(net, box, session=False):
    """A sandbox is over, and so is its session, if that is said; a cgroup that is not ours has to be removed from it."""
    if isinstance(box, Adopted):
        net.world.drop(box.agent)
        assert base.eventually(lambda: not base.cgroup_pids(box.cgroup), 5)
        if session:
            net.api.end(box.session)
        else:  # an engine may take the cgroup away by itself, and the sandbox is gone with it
            assert net.api.ask("DELETE", f"/v1/sandboxes/{box.id}")[0] in (200, 204, 404)
    else:
        box.agent.close()
    assert base.eventually(lambda: not net.api.sandboxes(box.session), 10)


def test_tunnel_that_outlives_its_sandbox(net, boxes, late):
    box, origin = boxes(), late(TUNNEL)
    mark, whole = finished_tunnel(box, origin)
    end(net, box)
    nothing_after(net, origin, mark, raised(net, box), whole)


def test_control_tunnel_that_outlives_its_sandbox(net, boxes, late):
    """A sandbox is over, and what it handed to the inspector arrives all the same."""
    box, origin = boxes(), late(TUNNEL)
    _, whole = finished_tunnel(box, origin)
    end(net, box)
    assert len(origin.read()) == whole


@pytest.mark.parametrize("close", [True, False], ids=["close", "keep-alive"])
def test_control_request_that_outlives_its_sandbox(net, boxes, late, close):
    box, origin = boxes(), late()
    _, whole = answered_early(box, origin, close)
    end(net, box)
    assert len(origin.read(whole)) == whole


KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def frame(opcode, payload, masked):
    head = bytes([0x80 | opcode])
    size = len(payload)
    flag = 0x80 if masked else 0
    head += bytes([flag | size]) if size < 126 else bytes([flag | 126]) + struct.pack("!H", size)
    return head + (b"\0\0\0\0" if masked else b"") + payload  # a mask of zeros, so that the mark shows on the wire


def finished_websocket(box, origin):
    mark, text = marks(12000)
    upgrade = (f"GET / HTTP/1.1\r\nHost: ws.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n")
    box.call("dial", family=4, addr=FAR[4], port=80, keep="c", data=upgrade)
    origin.accept()
    head = origin.head()
    origin.conn.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n".encode())
    assert "101" in box.call("recv", keep="c", timeout=60)["data"]
    message = frame(2, text.encode(), True) + frame(8, struct.pack("!H", 1000), True)
    send_all(box, message.decode("latin-1"))
    origin.conn.sendall(frame(8, struct.pack("!H", 1000), False))
    origin.conn.shutdown(socket.SHUT_WR)
    while box.call("recv", keep="c", timeout=60)["len"]:
        pass
    box.call("close", keep="c")
    origin.has()
    return mark, len(head) + len(message)


def test_websocket_that_both_ends_have_finished(net, boxes, late):
    box, origin = boxes(), late()
    mark, whole = finished_websocket(box, origin)
    nothing_after(net, origin, mark, raised(net, box), whole)


def test_control_websocket_that_both_ends_have_finished(boxes, late):
    box, origin = boxes(), late()
    _, whole = finished_websocket(box, origin)
    assert len(origin.read(whole)) == whole


def ask_for(net, box, name):
    """The inspector looks the name up, for a request of the sandbox: until the resolver has been asked once."""
    box.call("dial", family=4, addr=FAR[4], port=80, keep=name, data=f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n")
    assert base.eventually(lambda: net.resolver.count(name, 1) and net.resolver.count(name, 28), 10)


def ask_records(net, box, name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = os.urandom(2) + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\x10\0\1"
    box.call("sendto", family=4, addr=FAR[4], port=53, data=query.decode("latin-1"), keep="dns")
    assert base.eventually(lambda: net.resolver.count(name, 16), 10)


def third_query(net, name):
    """c-ares asks three times, over four seconds."""
    assert base.eventually(lambda: net.resolver.count(name, 1) >= 3, 10)


@pytest.mark.parametrize("how", ["none", "level"])
def test_name_that_is_being_resolved(net, boxes, how):
    """The resolver does not answer, so it is asked again, but not for the one who was raised. The control at once:
    another session's name, asked for at the same time, is."""
    box, other = boxes(), boxes()
    mark, else_mark = base.token(), base.token()
    ask_for(net, box, f"{mark}.wild.test")
    ask_for(net, other, f"{else_mark}.wild.test")
    moment = tighten(net, box, how)
    third_query(net, f"{else_mark}.wild.test")
    assert net.world.frames(moment, mark)["marked"] == 0
    assert net.world.frames(moment, else_mark)["marked"] > 0


@pytest.mark.parametrize("how", TIGHTENED)
def test_records_that_are_being_looked_up(net, boxes, policy_again, how):
    box, other = boxes(), boxes()
    else_mark = base.token()
    ask_records(net, box, f"{how}.txt.test")
    ask_for(net, other, f"{else_mark}.wild.test")
    moment = tighten(net, box, how)
    third_query(net, f"{else_mark}.wild.test")
    assert net.world.frames(moment, f"{how}\x03txt\x04test")["marked"] == 0


def test_control_records_that_are_being_looked_up(net, boxes):
    box = boxes()
    ask_records(net, box, "control.txt.test")
    assert base.eventually(lambda: net.resolver.count("control.txt.test", 16) >= 3, 10)


def unanswered(box, origin):
    mark, body = marks(BODY)
    box.call("dial", family=4, addr=FAR[4], port=80, keep="c")
    send_all(box, post(len(body)) + body)
    origin.accept()
    head = origin.head()
    origin.has()
    return mark, len(head) + len(body)


def test_worker_that_does_not_answer(net, boxes, late):
    """It is killed, and the kernel closes its sockets: what waits in them does not leave."""
    box, origin = boxes(), late()
    mark, whole = unanswered(box, origin)
    worker = net.worker()
    os.kill(worker, signal.SIGSTOP)
    moment = raised(net, box)
    assert not os.path.exists(f"/proc/{worker}"), "it was to be killed"
    nothing_after(net, origin, mark, moment, whole)
    net.ready()


def test_control_worker_that_does_not_answer(net, boxes, late):
    box, origin = boxes(), late()
    _, whole = unanswered(box, origin)
    worker = net.worker()
    os.kill(worker, signal.SIGSTOP)
    os.kill(worker, signal.SIGCONT)
    assert len(origin.read(whole)) == whole


def beside(net, gone, there):
    """A sandbox ends, another of its session is left."""
    gone.agent.close()
    assert base.eventually(lambda: [b["sandbox"] for b in net.api.sandboxes(gone.session)] == [there.id], 10)


def left_to_the_session(net, boxes, late):
    """What a sandbox that is gone handed over waits in a connection of its session, which has one more sandbox, NONE by its class."""
    box, origin = boxes(), late()
    other = Box(net.daemon, level="INTERNAL", session=box.session, more=["--class", "none"])
    mark, whole = answered_early(box, origin, False)
    beside(net, box, other)
    return other, origin, mark, whole


@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_request_that_outlives_its_sandbox_beside_one_with_no_network(net, boxes, late, level):
    """The mode of what is left of the session does not change, its level does. The inspector does not answer."""
    box, origin, mark, whole = left_to_the_session(net, boxes, late)
    with box:
        os.kill(net.worker(), signal.SIGSTOP)
        nothing_after(net, origin, mark, raised(net, box, level), whole)
        net.ready()


def test_control_request_that_outlives_its_sandbox_beside_one_with_no_network(net, boxes, late):
    box, origin, _, whole = left_to_the_session(net, boxes, late)
    with box:
        assert len(origin.read(whole)) == whole


def left_by_a_reader(net, boxes, late):
    """The same of a run that may only read, which is inspected, in a session that is not."""
    full, origin = boxes("PUBLIC"), late()
    box = Box(net.daemon, level="PUBLIC", session=full.session, more=["--class", "read_only"])
    mark, text = marks(30000)
    head = f"GET / HTTP/1.1\r\nHost: elsewhere.test\r\nX-Mark: {text}\r\n\r\n"
    box.call("dial", family=4, addr=FAR[4], port=80, keep="c")
    send_all(box, head)
    origin.accept()
    origin.has()
    origin.conn.sendall(EARLY.format("").encode())
    assert "200" in box.call("recv", keep="c", timeout=60)["data"]
    beside(net, box, full)
    return full, origin, mark, len(head)


def test_request_that_outlives_its_session(net, boxes, late):
    """No sandbox of it is left, and the inspector has not got to that."""
    box, origin, mark, whole = left_by_a_reader(net, boxes, late)
    os.kill(net.worker(), signal.SIGSTOP)
    end(net, box)
    nothing_after(net, origin, mark, raised(net, box), whole)
    net.ready()


def test_control_request_that_outlives_its_session(net, boxes, late):
    _, origin, _, whole = left_by_a_reader(net, boxes, late)
    assert len(origin.read(whole - 100)) >= whole - 100  # the inspector writes the head anew


def starting(net):
    """Both inspectors: one that is there, and one that was started just now, stopped before the daemon has heard from it."""
    for _ in range(10):
        there, killed = net.daemon.workers()
        os.kill(killed, signal.SIGKILL)
        new = base.eventually(lambda: [p for p in net.daemon.workers() if p not in (there, killed)], 20, 0.001)
        os.kill(new[0], signal.SIGSTOP)
        if net.api.health()["inspectors"] == 1:  # the daemon has answered, so it has told it all that it has to know
            return there, new[0]
        os.kill(new[0], signal.SIGCONT)
        net.ready()
    raise AssertionError("it is never seen in time")


@contextlib.contextmanager
def begun_unheard(net, box, origin, method, path, body=None):
    """An inspector begins to take connections, and takes one of the sandbox, while the daemon has yet to read that it has begun; what
    the daemon is asked meanwhile comes before that. Gives its pid, a mark and the number of bytes; then it is stopped, and the daemon goes on."""
    there, new = starting(net)
    asked = Connection(net.daemon.socket, net.api.timeout)
    asked.request("GET", "/v1/health")
    asked.getresponse().read()
    os.kill(net.daemon.process.pid, signal.SIGSTOP)
    try:
        asked.request(method, path, body)
        os.kill(there, signal.SIGSTOP)
        os.kill(new, signal.SIGCONT)
        mark, whole = unanswered(box, origin)
        os.kill(new, signal.SIGSTOP)
    finally:
        os.kill(there, signal.SIGCONT)
        os.kill(net.daemon.process.pid, signal.SIGCONT)
    try:
        answer = asked.getresponse()
        answer.read()
        assert answer.status == 200
        yield new, mark, whole
    finally:
        asked.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(new, signal.SIGCONT)
        net.ready()


def test_worker_that_has_just_begun(net2):
    """It takes connections, and the daemon has not read that yet: it is waited for like the others."""
    with Box(net2.daemon, level="INTERNAL") as box, contextlib.closing(Late(net2, 80)) as origin:
        with begun_unheard(net2, box, origin, "POST", f"/v1/sessions/{box.session}/datasets", '{"level": "SECRET"}') as (new, mark, whole):
            moment = time.time_ns()
            assert not os.path.exists(f"/proc/{new}"), "it was to be killed"
            nothing_after(net2, origin, mark, moment, whole)


def test_control_worker_that_has_just_begun(net2):
    with Box(net2.daemon, level="INTERNAL") as box, contextlib.closing(Late(net2, 80)) as origin:
        with begun_unheard(net2, box, origin, "GET", "/v1/health") as (new, _, whole):
            os.kill(new, signal.SIGCONT)
            assert len(origin.read(whole)) == whole


def over(net, box, origin, session=False):
    """A sandbox in FULL, or with a rule for the address, that sent more than the origin takes, ended, and was removed."""
    mark, data = marks(12000)
    box.call("dial", family=4, addr=FAR[4], port=DIRECT, keep="c")
    send_all(box, data)
    origin.accept()
    origin.has()
    box.call("close", keep="c")
    end(net, box, session)
    return mark, len(data)


KINDS = pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])


@pytest.mark.parametrize("level", ["PUBLIC", "INTERNAL"])
@KINDS
def test_connection_that_outlives_its_sandbox(net, boxes, late, kind, level):
    """Nobody holds the socket any more, and the sandbox is removed; its session is raised."""
    box, origin = boxes(level, kind), late(DIRECT)
    mark, whole = over(net, box, origin)
    nothing_after(net, origin, mark, raised(net, box), whole)


def test_connection_that_outlives_its_session(net, boxes, late):
    box, origin = boxes("PUBLIC", Adopted), late(DIRECT)
    mark, whole = over(net, box, origin, session=True)
    nothing_after(net, origin, mark, raised(net, box), whole)


@pytest.mark.parametrize("level", ["PUBLIC", "INTERNAL"])
@KINDS
def test_control_connection_that_outlives_its_sandbox(net, boxes, late, kind, level):
    """Without a raise what a sandbox sent before it ended arrives, and then the gate forgets it."""
    box, origin = boxes(level, kind), late(DIRECT)
    _, whole = over(net, box, origin)
    assert len(origin.read()) == whole
    events = net.api.events(session=box.session)
    assert [e["reason"] for e in events].count("sandbox_removed") == 1
