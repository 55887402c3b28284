# SPDX-License-Identifier: MIT
"""DNS of a PROXIED sandbox is led to the DNS gate, whatever server it names; nobody gets there in another way."""
import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import threading

import pytest

from lib import base, inspected
from lib.box import Adopted, Box, Launched
from lib.inspected import Inspected
from lib.world import DEV, FAR, HOST4, HOST6

SERVER4, SERVER6 = "198.51.100.53", "2001:db8:2::53"  # the world's own name server
REAL = "203.0.113.99"  # what it answers
QUERY = "\x00\x07\x01\x00\x00\x01" + "\x00" * 6 + "\x03www\x00\x00\x01\x00\x01"
NXDOMAIN = 3  # what the gate says to names that no rule could allow
SYNTHETIC = {4: "198.18.0.5", 6: "fd6e:6574:7061:776c::5"}
POLICY = """version: 1
host_loopback: [53]
rules:
  - allow: 198.51.100.0/24
  - allow: "198.51.100.10:8080/udp"
  - allow: ["198.18.0.0/15:9000/tcp", "198.18.0.0/15:9000/udp"]
"""


class Net(Inspected):
    def __init__(self, stack, policy=POLICY):
        super().__init__(stack, policy=policy)
        self.asked, self.sockets = [], []
        stack.callback(lambda: [s.close() for s in self.sockets])
        for addr in (SERVER4, SERVER6):
            bits = ["128", "nodad"] if ":" in addr else ["32"]
            base.sh("ip", "-n", self.world.far, "addr", "add", f"{addr}/{bits[0]}", "dev", "lo", *bits[1:])
            self.serve(self.world.far, addr)
        self.boxes = {}
        stack.callback(lambda: [b.close() for b in self.boxes.values()])

    def serve(self, ns, addr):
        """A name server that answers every query with one address."""
        def make():
            s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((addr, 53))
            return s

        def run(s):
            with contextlib.suppress(OSError):
                while True:
                    q, peer = s.recvfrom(2048)
                    self.asked.append((addr, q))
                    end = q.index(b"\0", 12) + 5
                    s.sendto(q[:2] + struct.pack("!5H", 0x8180, 1, 1, 0, 0) + q[12:end] + b"\xc0\x0c" +
                             struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(REAL), peer)

        s = base.setns_call(ns, make)
        self.sockets.append(s)
        threading.Thread(target=run, args=(s,), daemon=True).start()
        return s

    def box(self, mode, word=""):
        """A sandbox that tests share."""
        if (mode, word) not in self.boxes:
            self.boxes[mode, word] = Box(self.daemon, mode)
        return self.boxes[mode, word]

    def dig(self, box, *words, seconds=60):
        return box.call("execute", argv=["dig", "+tries=1", f"+timeout={seconds}", *words])["out"]

    def gate_ports(self, box):
        """{4: port, 6: port} of the DNS gate's UDP sockets where this sandbox lives."""
        inode = set()
        for pid in self.workers():
            inode |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (os.listdir(f"/proc/{pid}/fd") if box.apart else (6, 7))}
        out = {}
        for line in base.sh(*box.enter(), "ss", "-Hlune").stdout.splitlines():
            words = line.split()
            addr, port = words[3].rsplit(":", 1)
            if any(f"socket:[{w[4:]}]" in inode for w in words if w.startswith("ino:")):
                out[6 if "[" in addr else 4] = int(port)
        return out


@pytest.fixture(scope="module")
def net():
    with inspected.unharmed(Net) as n:
        yield n


@pytest.fixture
def own():
    """A net that the test may harm."""
    with contextlib.ExitStack() as stack:
        yield Net(stack)


def beside(net, box):
    """Somebody in the network where the sandbox lives, and in no sandbox."""
    return net.world.agent(box.wired.name) if box.wired else net.world.outside


def ask(box, how, family, addr, **kw):
    status, got = box.payload("queries", "ask", how=how, family=family, addr=addr, **kw)
    assert status == 0, got
    return got


HOWS = ["connect", "connect_sendmsg", "connect_sendto", "connect_sendmmsg", "sendto", "sendmsg", "sendmmsg"]
SERVERS = [(4, SERVER4), (4, "198.51.100.200"), (4, "127.0.0.53"), (4, "127.0.0.1"), (4, HOST4), (4, "169.254.169.253"), (4, "198.18.0.5"),
           (6, SERVER6), (6, "::1"), (6, HOST6), (6, "fd00:ec2::253"), (6, "::ffff:" + SERVER4), (6, "::ffff:127.0.0.53")]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["run", "adopted"])
def test_every_server_in_every_way(net, how, kind):
    """The answer is the gate's, it seems to come from whom was asked, and nobody else was."""
    box = net.box("PROXIED") if kind == "run" else Adopted(net.daemon, "PROXIED")
    before = len(net.asked)
    try:
        with net.world.watch() as watch:
            for family, addr in SERVERS:
                got = ask(box, how, family, addr)
                assert got.get("rcode") == NXDOMAIN and got["response"], (addr, got)
                assert got["from"] == [addr, 53], (addr, got)
                if how.startswith("connect"):
                    assert got["peer"] == [addr, 53], (addr, got)
        watch.nothing()
        assert len(net.asked) == before
    finally:
        if kind == "adopted":
            box.close()


@pytest.mark.parametrize("how", HOWS)
def test_bound_sockets(net, how):
    """An address of the host, or a port, that the program chose: the answer comes back to it."""
    box = net.box("PROXIED")
    own4, own6 = box.addr[4], box.addr[6]
    for family, addr, local in ((4, SERVER4, own4), (4, SERVER4, "127.0.0.9"), (4, "127.0.0.53", own4), (6, SERVER6, own6),
                                (6, SERVER6, "::1"), (6, "::ffff:" + SERVER4, "::ffff:" + own4), (6, "::ffff:" + SERVER4, "::"), (4, SERVER4, "")):
        got = ask(box, how, family, addr, bind=[local, 0])
        assert got.get("rcode") == NXDOMAIN and got["from"] == [addr, 53], (addr, local, got)
        if local not in ("", "::"):
            assert got["local"][0] == local


def test_servers_of_both_families_on_one_socket(net):
    status, got = net.box("PROXIED").payload("queries", "both_families", addr4=SERVER4, addr6=SERVER6)
    assert (status, got) == (0, {"1": ["::ffff:" + SERVER4, 53], "2": [SERVER6, 53]})


def test_threads_share_a_socket(net):
    """They all sign in one entry, and make the socket's storage, at the same moment: none of them goes without."""
    got = net.box("PROXIED", "crowd").payload("queries", "crowd", addr=SERVER4, sockets=200)[1]
    assert got == {"answered": 800, "errors": []}, (got, net.daemon.api.events(reason="internal"))


def test_dig(net):
    box = net.box("PROXIED")
    for words in ((f"@{SERVER4}",), (f"@{SERVER6}",), ("@127.0.0.53",), (f"@{SERVER4}", "-b", box.addr[4]), (f"@{SERVER4}", "+noedns")):
        out = net.dig(box, *words, "www.example")
        assert "status: NXDOMAIN" in out and f"SERVER: {words[0][1:]}#53" in out, out
    assert "no servers could be reached" in net.dig(box, "@198.51.100.10", "-p", "5353", "www.example", seconds=3)


def test_full_is_untouched_and_none_has_nothing(net):
    before = len(net.asked)
    box = net.box("FULL")
    for server in (SERVER4, SERVER6):
        assert REAL in net.dig(box, f"@{server}", "www.example")
    for how in HOWS:
        for family, addr in ((4, SERVER4), (6, SERVER6), (6, "::ffff:" + SERVER4)):
            got = ask(box, how, family, addr)
            assert got.get("rcode") == 0 and got["from"] == [addr, 53], (how, addr, got)
    assert len(net.asked) == before + 2 + 2 * 3 * len(HOWS)
    box = net.box("NONE")
    with net.world.watch() as watch:
        for how in HOWS:
            for family, addr in ((4, SERVER4), (6, SERVER6), (6, "::ffff:" + SERVER4)):
                assert ask(box, how, family, addr) == {"error": "ECONNREFUSED"}
        assert "no servers could be reached" in net.dig(box, f"@{SERVER4}", "www.example", seconds=3)
    watch.nothing()
    assert box.refusals("mode_none")


def test_without_a_gate_it_is_refused(make_daemon):
    d = make_daemon().start()
    with Box(d, "PROXIED") as box, d.world.watch() as watch:
        for how in HOWS:
            for family, addr in ((4, FAR[4]), (4, "127.0.0.53"), (6, FAR[6]), (6, "::ffff:" + FAR[4])):
                assert ask(box, how, family, addr) == {"error": "ECONNREFUSED"}, (how, addr)
        assert box.payload("queries", "stream", family=4, addr=FAR[4])[1] == {"error": "ECONNREFUSED"}
        assert {e["reason"] for e in box.refusals()} == {"no_dns_gate"}
    watch.nothing()


def test_a_name_server_of_the_sandbox_itself(net):
    box = Box(net.daemon, "PROXIED")
    # nobody in a sandbox has the capability for port 53
    base.sh(*box.enter(), "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=53")
    try:
        box.call("listen", keep="mine", family=4, addr="127.0.0.1", port=53, kind="dgram")
        box.call("listen", keep="mine6", family=6, addr="::1", port=53, kind="dgram")
        for how in HOWS:
            for family, addr in ((4, "127.0.0.1"), (6, "::1"), (6, "::ffff:127.0.0.1")):
                got = ask(box, how, family, addr)
                assert not got["response"] and got["from"] == [addr, 53], got  # an echo
            assert ask(box, how, 4, "127.0.0.2")["rcode"] == NXDOMAIN  # the gate's
        # it is nobody else's: another sandbox meets the gate at the same address
        assert ask(net.box("PROXIED"), "sendto", 4, "127.0.0.1")["rcode"] == NXDOMAIN
    finally:
        box.close()


def test_the_hosts_own_resolver_is_no_way_around(net):
    """Not even when the policy lists port 53 of the host. FULL may use it."""
    seen = net.serve(net.world.host, "127.0.0.1")
    try:
        before, full = len(net.asked), net.box("FULL")
        if not full.apart:
            assert REAL in net.dig(full, "@127.0.0.1", "www.example")
        else:  # the host's loopback is another one
            assert REAL in net.world.outside.call("execute", argv=["dig", "+tries=1", "@127.0.0.1", "www.example"])["out"]
        assert len(net.asked) == before + 1
        for how in HOWS:
            assert ask(net.box("PROXIED"), how, 4, "127.0.0.1")["rcode"] == NXDOMAIN
        assert len(net.asked) == before + 1
    finally:
        seen.close()


# -- TCP and synthetic addresses -----------------------------------------------------------

@pytest.mark.parametrize("family,addr", [(4, SERVER4), (4, "127.0.0.53"), (6, SERVER6), (6, "::ffff:" + SERVER4), (6, "::1")])
def test_tcp_is_led_to_the_inspector(net, family, addr):
    with net.world.watch() as watch:
        status, got = net.box("PROXIED").payload("queries", "stream", family=family, addr=addr)
    assert status == 0 and got.get("peer") == [addr, 53], got
    watch.nothing()


@pytest.mark.parametrize("family", [4, 6])
def test_synthetic_addresses(net, family):
    """TCP at any port is led to the inspector, also where a rule allows the range; UDP is refused, at connect() or when
    something is sent."""
    box, addr = net.box("PROXIED"), SYNTHETIC[family]
    with net.world.watch() as watch:
        for port in (22, 443, 5432, 9000):
            status, got = box.payload("queries", "stream", family=family, addr=addr, port=port)
            # no name stands behind it: reset, perhaps before the program has asked for its peer
            assert status == 0 and (got == {"error": "ECONNRESET"} or got.get("peer") == [addr, port]), got
        for port in (123, 443, 9000):
            for connected in (False, True):
                got = box.payload("queries", "deliver", family=family, addr=addr, port=port, connected=connected)
                assert got == (0, {"error": "EPERM" if connected else "ECONNREFUSED"})
    watch.nothing()
    assert box.refusals("not_in_policy") and box.refusals("name_forgotten")
    with net.world.watch() as watch:  # the control: FULL goes out
        net.box("FULL").payload("queries", "deliver", family=family, addr=addr, port=9000, connected=False)
    watch.something()


def test_encrypted_dns_and_quic_are_refused(net):
    """A rule for a range without a port is for the inspected ports alone."""
    box = net.box("PROXIED")
    with net.world.watch() as watch:
        for port, kind in ((853, "stream"), (853, "dgram"), (443, "dgram")):
            assert box.try_("dial", family=4, addr=FAR[4], port=port, kind=kind, data="x") == "ECONNREFUSED"
    watch.nothing()
    assert box.try_("dial", family=4, addr=FAR[4], port=8080, kind="dgram", data="x", recv=10) == "ok"  # the control


# -- attacks -----------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_the_gates_port_is_not_for_dialling(net, mode):
    box = net.box(mode)
    ports = net.gate_ports(box)
    assert set(ports) == {4, 6}
    control = beside(net, box)
    for family, addr in ((4, "127.0.0.1"), (4, "0.0.0.0"), (6, "::1"), (6, "::ffff:127.0.0.1")):
        port = ports[4 if "." in addr else 6]
        for connected in (False, True):
            what = dict(family=family, addr=addr, port=port, connected=connected)
            assert box.payload("queries", "deliver", **what) == (0, {"error": "ECONNREFUSED"}), what
            assert control.payload("queries", "deliver", **what) == (0, {}), what
    # nobody's query has no answer
    assert control.payload("queries", "ask", how="sendto", family=4, addr="127.0.0.1", port=ports[4], seconds=0.5)[1]["error"] == "TIMEOUT"
    assert box.refusals("host_loopback")


@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_the_packet_layer_alone_keeps_them_out(own, mode):
    """With the socket layer taken away."""
    box = Launched(own.daemon, mode)
    try:
        before = len(own.asked)
        with own.daemon.without("connect4", "connect6", "sendmsg4", "sendmsg6"):
            for family, addr in ((4, "127.0.0.1"), (6, "::1"), (6, "::ffff:127.0.0.1")):
                port = own.gate_ports(box)[4 if "." in addr else 6]
                for connected in (False, True):
                    got = box.payload("queries", "deliver", family=family, addr=addr, port=port, connected=connected)
                    assert got == (0, {"error": "EPERM"}), (addr, connected)
            got = ask(box, "sendto", 4, SERVER4)  # the control: what the layer above does not lead anywhere
        assert {e["hook"] for e in box.refusals("host_loopback")} == {"egress"}
        assert got == ({"error": "EPERM"} if mode == "PROXIED" else got) and (len(own.asked) > before) == (mode == "FULL")
    finally:
        box.close()


def test_a_query_does_not_leave_by_a_device(own):
    """SO_BINDTODEVICE takes even what is led to loopback to a device, and hides a socket from the gate's look-up. It is refused in
    every mode, also where a rule allows everything."""
    own.policy.write_text('version: 1\nrules: [{allow: ["0.0.0.0/0:*/udp", "[::/0]:*/udp"]}]\n' + base.PERMITS)
    own.daemon.cli("policy", "reload", check=0)
    box, full = Box(own.daemon, "PROXIED"), Box(own.daemon, "FULL")
    try:
        for how in HOWS:
            for family, addr in ((4, SERVER4), (6, SERVER6), (6, "::ffff:" + SERVER4)):
                with own.world.watch() as watch:
                    got = [ask(b, how, family, addr, device=DEV, seconds=0.2) for b in (box, full)]
                assert got == [{"error": "EPERM"}] * 2, got
                watch.nothing()
                assert ask(own.world.outside, how, family, addr, device=DEV).get("rcode") == 0  # the control
                assert ask(full, how, family, addr).get("rcode") == 0  # and without it
        assert box.refusals("socket_option") and full.refusals("socket_option")
    finally:
        box.close()
        full.close()


def taken(pid, fd):
    """A copy of another process's socket: what it could do with it, we can."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    got = libc.syscall(438, pidfd, fd, 0)  # pidfd_getfd
    os.close(pidfd)
    assert got >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=got)


@pytest.mark.parametrize("family", [4, 6])
def test_a_turned_worker_does_nothing_else_with_the_gates_socket(net, family):
    addr = {4: "127.0.0.1", 6: "::1"}[family]
    host = net.world.outside.call("listen", keep="host", family=family, addr=addr, kind="dgram")["port"]
    ports = {mode: net.box(mode).call("listen", keep="turned", family=family, addr=addr, kind="dgram", role="sink")["port"]
             for mode in ("FULL", "PROXIED", "NONE")}
    s = taken(net.workers()[0], {4: 6, 6: 7}[family])
    try:
        for to in ((addr, host), (FAR[family], 9000), (SERVER4 if family == 4 else SERVER6, 53), (addr, ports["FULL"]),
                   (addr, ports["NONE"]), (addr, 9), (addr, ports["PROXIED"])):  # that one is no answer to whom it names
            for way in (s.connect, lambda to: s.sendto(b"x", to)):
                with pytest.raises(ConnectionRefusedError):
                    way(to)
        for mode in ports:
            assert net.box(mode).call("records", keep="turned")["records"] == []
        assert net.world.outside.call("records", keep="host")["records"] == []
        free = base.setns_call(net.world.host, lambda: socket.socket(s.family, socket.SOCK_DGRAM))
        free.sendto(b"control", (addr, host))  # a socket of the host gets there
        assert base.eventually(lambda: net.world.outside.call("records", keep="host", mark="control")["records"])
        free.close()
    finally:
        s.close()
        net.world.outside.call("close", keep="host")
        for mode in ports:
            net.box(mode).call("close", keep="turned")
    assert ask(net.box("PROXIED"), "sendto", 4, SERVER4)["rcode"] == NXDOMAIN  # the gate lives on


def entry(net, v6, port, box):
    """The cgroup id of an entry of np_dns_origins, for the port where this sandbox lives."""
    cookie = base.setns_call(box.wired.name if box.wired else net.world.host, lambda: base.netns_cookie())
    salt = (cookie * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 48  # NP_DNS_ORIGIN_INDEX
    key = ((v6 << 16) | (port ^ salt)).to_bytes(4, "little")
    out = base.sh("bpftool", "-j", "map", "lookup", "pinned", net.daemon.pins / "maps/np_dns_origins", "key", "hex", *["%02x" % b for b in key]).stdout
    raw = bytes(int(b, 16) for b in json.loads(out)["value"])
    return struct.unpack_from("<Q", raw, 8)[0]


def test_two_sandboxes_are_not_taken_for_each_other(net):
    a, port = Box(net.daemon, "PROXIED"), 20053
    b = Box(net.daemon, "PROXIED", **(dict(wired=a.wired) if a.wired else {}))
    spoof = lambda who, bind, source, to, **how: who.payload("queries", "from_source", bind=[bind, port], source=source, to=to, **how)
    try:
        a.call("sendto", family=4, addr=SERVER4, port=53, data=QUERY, recv=100, bind=["127.0.0.1", port], keep="mine")
        assert entry(net, 0, port, a) == int(a.info["cgroup_id"])
        # B has the same port at another address: the entry is its own now, and its answer comes to it.
        assert spoof(b, "127.0.0.2", "127.0.0.2", [SERVER4, 53])[1].get("number") == 9
        assert entry(net, 0, port, a) == int(b.info["cgroup_id"])
        # B says that it is A: the answer would go to A.
        assert spoof(b, "127.0.0.2", "127.0.0.1", [SERVER4, 53]) == (0, {"error": "EPERM"})
        assert b.refusals("host_loopback")[-1]["hook"] == "egress"
        # B cannot have A's very place.
        assert spoof(b, "127.0.0.1", "127.0.0.1", [SERVER4, 53]) == (0, {"error": "EADDRINUSE"})
        # A goes on, and has had no answer but its own.
        a.call("send", keep="mine", data=QUERY, addr=SERVER4, port=53)
        assert a.call("recv", keep="mine")["data"][:2] == QUERY[:2]
        assert a.try_("recv", keep="mine", timeout=0.3) == "TIMEOUT"
        assert entry(net, 0, port, a) == int(a.info["cgroup_id"])
    finally:
        a.close()
        b.close()
    # The control: without a gate in between the answer does go to the one whose address was used.
    host = net.world.outside
    host.call("listen", keep="victim", family=4, addr="127.0.0.1", port=port, kind="dgram", role="sink")
    server = host.call("listen", keep="server", family=4, addr="127.0.0.1", kind="dgram")["port"]
    try:
        assert spoof(host, "127.0.0.2", "127.0.0.1", ["127.0.0.1", server], wait=0.5) == (0, {"from": None})
        assert base.eventually(lambda: len(host.call("records", keep="victim")["records"]) == 1)
    finally:
        host.call("close", keep="victim")
        host.call("close", keep="server")


def test_np_asks_cannot_be_written(net):
    path = net.daemon.pins / "maps/np_dns_origins"
    p = base.sh("bpftool", "map", "update", "pinned", path, "key", "hex", *["00"] * 4, "value", "hex", *["01"] * 48, check=False)
    assert p.returncode != 0 and "not permitted" in (p.stderr + p.stdout).lower(), p
    for pid in net.workers():
        with open(f"/proc/{pid}/maps") as f:
            assert [l.split()[1] for l in f if "bpf-map" in l] == ["r--s"]


@pytest.mark.parametrize("what", [dict(size=4000), dict(size=1400, segment=20), dict()], ids=["large", "segmented", "plain"])
def test_one_sandbox_has_its_share(net, what):
    box, other = Box(net.daemon, "PROXIED"), net.box("PROXIED")
    try:
        status, got = box.payload("queries", "flood", addr=SERVER4, count=200000, **what)
        assert status == 0 and got["error"] == "EPERM", got
        if what:
            assert got["sent"] < 1000  # the burst, had each cost what a plain one costs
        assert other.payload("queries", "in_a_row", addr=SERVER4, count=50)[1] == {"answered": 50}
        assert box.refusals("too_many_queries")[0]["hook"] == "egress"
        assert base.eventually(lambda: ask(box, "sendto", 4, SERVER4).get("rcode") == NXDOMAIN, 5)  # it gets it back
    finally:
        box.close()


# -- changes on the way -----------------------------------------------------------------------

def hold(box, keep, family, addr):
    box.call("hold", keep=keep, family=family, kind="dgram")
    box.call("connect", keep=keep, family=family, addr=addr, port=53)


def says(box, keep, seconds=30, **to):
    """What becomes of a query on a held socket."""
    got = box.try_("send", keep=keep, data=QUERY, **to)
    return box.try_("recv", keep=keep, timeout=seconds) if got == "ok" else got


@pytest.mark.parametrize("family,addr", [(4, SERVER4), (6, SERVER6), (6, "::ffff:" + SERVER4)])
def test_escalation_leaves_nothing_usable(net, family, addr):
    box = Box(net.daemon, "FULL")
    try:
        hold(box, "old", family, addr)
        assert says(box, "old") == "ok"
        net.api.escalate(box.session, "CONFIDENTIAL")
        before = len(net.asked)
        with net.world.watch() as watch:
            assert says(box, "old", 1) != "ok" and says(box, "old", 1) != "ok"
            hold(box, "new", family, addr)
            assert says(box, "new") == "ok"
            box.call("hold", keep="loose", family=family, kind="dgram")
            assert says(box, "loose", addr=addr, family=family, port=53) == "ok"
            box.call("sendto", family=family, addr=addr, port=53, data=QUERY, recv=100, bind=["", 0], keep="bound")
            # a reload of the policy is no reason to lose a socket
            net.daemon.cli("policy", "reload", check=0)
            assert says(box, "new") == "ok"
            net.api.escalate(box.session, "SECRET")
            for keep in ("old", "new", "loose", "bound"):
                assert says(box, keep, 1) != "ok" and says(box, keep, 1) != "ok", keep
                assert says(box, keep, addr=addr, family=family, port=53) == "ECONNREFUSED", keep
        watch.nothing()
        assert len(net.asked) == before
    finally:
        box.close()


def test_daemon_restart(own):
    """The gate refuses while there is nobody, and leads to the next one. Who takes the port meanwhile gets nothing."""
    box = Adopted(own.daemon, "PROXIED")
    try:
        for keep, family, addr in (("four", 4, SERVER4), ("six", 6, SERVER6), ("mapped", 6, "::ffff:" + SERVER4)):
            hold(box, keep, family, addr)
            assert says(box, keep) == "ok"
        ports, thief = own.gate_ports(box), beside(own, box)
        own.daemon.kill()
        assert base.eventually(lambda: not own.workers())
        assert ask(box, "sendto", 4, SERVER4) == {"error": "ECONNREFUSED"}
        assert ask(box, "connect", 6, SERVER6) == {"error": "ECONNREFUSED"}
        for family, addr in ((4, "127.0.0.1"), (6, "::1")):
            thief.call("listen", keep=f"thief{family}", family=family, addr=addr, port=ports[family], kind="dgram")
            got = thief.try_("dial", family=family, addr=addr, port=ports[family], kind="dgram", data="control", recv=10)
            assert got == "ok"
        for keep in ("four", "six", "mapped"):
            assert says(box, keep, 1) != "ok"
        for how in HOWS:
            assert ask(box, how, 4, SERVER4) == {"error": "ECONNREFUSED"}
        for family in (4, 6):
            records = thief.call("records", keep=f"thief{family}")["records"]
            assert [r["data"] for r in records] == ["control"], records
            thief.call("close", keep=f"thief{family}")
        own.daemon.start()
        assert base.eventually(lambda: ask(box, "sendto", 4, SERVER4).get("rcode") == NXDOMAIN, 10)
        for how in HOWS:
            assert ask(box, how, 6, SERVER6).get("rcode") == NXDOMAIN
    finally:
        box.close()


def test_dead_workers_come_back_and_nothing_passes_meanwhile(own):
    box = Box(own.daemon, "PROXIED")
    try:
        before = len(own.asked)
        with own.world.watch() as watch:
            for _ in range(3):
                for pid in own.workers():
                    os.kill(pid, signal.SIGKILL)
                got = [ask(box, "sendto", 4, SERVER4, seconds=0.3) for _ in range(5)]
                assert all(g.get("error") in ("ECONNREFUSED", "TIMEOUT") or g.get("rcode") == NXDOMAIN for g in got), got
            assert base.eventually(lambda: ask(box, "connect", 4, SERVER4, seconds=1).get("rcode") == NXDOMAIN, 15)
        watch.nothing()
        assert len(own.asked) == before
    finally:
        box.close()


def test_one_worker_is_enough(own):
    box = Box(own.daemon, "PROXIED")
    try:
        os.kill(own.workers()[0], signal.SIGSTOP)
        answered = box.payload("queries", "in_a_row", addr=SERVER4, count=20)[1]["answered"]
        assert answered == 20
    finally:
        box.close()
