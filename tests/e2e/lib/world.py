# SPDX-License-Identifier: MIT
"""Two network namespaces that are the whole internet of a test.

HOST is where the daemon and the sandboxes live. WORLD is everything else: it owns the far addresses,
runs the servers and captures on its end of the veth pair. No route leads anywhere else.
"""
import hashlib
import json
import os
import queue
import shutil
import subprocess
import threading
import time

from lib import base

HOST4, HOST6 = "192.0.2.2", "2001:db8:1::2"
GATE4, GATE6 = "192.0.2.1", "2001:db8:1::1"
FAR = {4: "198.51.100.10", 6: "2001:db8:2::10"}
FAR_OTHER = "203.0.113.7"
META = {4: "169.254.169.254", 6: "fd00:ec2::254"}
META_ALL = [(4, "169.254.169.254"), (4, "100.100.100.200"), (4, "168.63.129.16"), (6, "fd00:ec2::254")]
GATE_LINK = "fe80::1"  # link-local address of WORLD
DEV, FAR_DEV = "npv0", "npv1"
PORT = "npvp"  # of the bridge that DEV is in a bridged world
MAC_HOST, MAC_FAR = "02:00:00:00:02:02", "02:00:00:00:02:01"

TCP_PORTS = (53, 80, 443, 8080, 9000)  # echo
UDP_PORTS = (53, 443, 8080, 9000)
SINK, HOLD, SOURCE, MPTCP, FASTOPEN = 9101, 9102, 9103, 9104, 9105


class Refused(Exception):
    """An operation of an agent that ended with an errno: .error is its name."""

    def __init__(self, op, error):
        super().__init__(f"{op}: {error}")
        self.error = error


class Agent:
    """The near end of an agent.py process: call() raises Refused with the errno's name, try_() returns it."""

    def __init__(self, argv, log, **kw):
        self.log = open(log, "ab")
        self.gone = lambda: False  # has it ended? For one whose client, our process, stays when it has
        self.process = base.popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, **kw)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def answer(self, op, args, timeout):
        try:
            self.process.stdin.write(json.dumps({"op": op, "args": args}).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise RuntimeError(f"the agent is gone: {self.tail()}") from None
        try:
            line = self.answers.get(timeout=timeout)
        except queue.Empty:
            raise RuntimeError(f"{op} {args}: no answer in {timeout} s") from None
        if line is None:
            raise RuntimeError(f"the agent ended at {op}: {self.tail()}")
        return json.loads(line)

    def call(self, op, _timeout=240, **args):
        answer = self.answer(op, args, _timeout)
        if answer["ok"]:
            return answer
        if "error" in answer:
            raise Refused(f"{op} {args}", answer["error"])
        raise RuntimeError(f"{op} {args}: {answer['exception']}")

    def try_(self, op, _timeout=240, **args):
        """'ok', or the name of the errno."""
        try:
            self.call(op, _timeout, **args)
        except Refused as e:
            return e.error
        return "ok"

    def payload(self, module, function, timeout=20, **args):
        """(exit status of the child, its answer)"""
        timeout *= base.PATIENCE
        got = self.call("payload", timeout + 60, module=module, function=function, args=args, timeout=timeout)
        return got["status"], got["answer"]

    def tail(self):
        with open(self.log.name, "rb") as f:
            return f.read()[-2000:].decode(errors="replace")

    def close(self):
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.close()
        except (OSError, ValueError):  # it is gone, or was told before
            pass
        base.for_a_while(lambda: self.process.poll() is not None or self.gone(), 20)
        code = base.reap(self.process)
        self.log.close()
        return code


class World:
    def __init__(self, tcp_ports=TCP_PORTS, bridged=bool(base.ADOPTED)):
        """tcp_ports: where the far side echoes; a test that has servers of its own on 80 and 443 leaves them out.
        bridged: the host's device is a bridge, as container engines make one, for containers to be on."""
        self.tcp_ports, self.bridged = tcp_ports, bridged
        self.wires = 0
        self.dir = base.tempdir("world")
        self.host, self.far = base.unique("h"), base.unique("w")
        shutil.copy(base.TESTS / "e2e/lib/agent.py", self.dir)
        shutil.copytree(base.TESTS / "attack/payload", self.dir / "payload",
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.agents, self.engines = [], []
        try:
            self._namespaces()
            self._programs()
            self.world = self.agent(self.far)
            self.world.call("capture_start", dev=FAR_DEV)
            self._servers()
            self.outside = self.agent(self.host)
            self.outside_user = self.agent(self.host, user="nobody")
        except BaseException:
            self.close()
            raise

    # -- making it --

    def _namespaces(self):
        for ns in (self.host, self.far):
            base.sh("ip", "netns", "add", ns)
        for ns in (self.host, self.far):
            self.sysctl(ns, {
                "net.ipv6.conf.all.disable_ipv6": 0, "net.ipv6.conf.default.disable_ipv6": 0,
                "net.ipv6.conf.lo.disable_ipv6": 0, "net.ipv6.conf.default.accept_dad": 0,
                "net.ipv6.conf.default.router_solicitations": 0, "net.ipv6.conf.default.accept_ra": 0,
                "net.ipv4.conf.default.rp_filter": 0, "net.ipv4.conf.all.rp_filter": 0,
                # data in the SYN without a cookie, at both ends: MSG_FASTOPEN really is one packet
                "net.ipv4.tcp_fastopen": 0x207,
            })
        self.sysctl(self.host, {"net.ipv4.ping_group_range": "0 2147483647"})
        # the far end answers pings to its own broadcast address, and strays get no ICMP errors back
        if self.bridged:
            self._ip(self.host, f"link add {DEV} type bridge forward_delay 0 mcast_snooping 0",
                     f"link add {PORT} type veth peer name {FAR_DEV} netns {self.far}", f"link set {PORT} master {DEV} up")
        else:
            self._ip(self.host, f"link add {DEV} type veth peer name {FAR_DEV} netns {self.far}")
        self._ip(self.host, "link set lo up", f"link set {DEV} address {MAC_HOST} up",
                 f"addr add {HOST4}/24 brd + dev {DEV}", f"addr add {HOST6}/64 dev {DEV} nodad")
        self._ip(self.far, "link set lo up", f"link set {FAR_DEV} address {MAC_FAR} up",
                 f"addr add {GATE4}/24 brd + dev {FAR_DEV}", f"addr add {GATE6}/64 dev {FAR_DEV} nodad",
                 f"addr add {GATE_LINK}/64 dev {FAR_DEV} nodad",
                 f"neigh replace {HOST4} lladdr {MAC_HOST} nud permanent dev {FAR_DEV}",
                 f"neigh replace {HOST6} lladdr {MAC_HOST} nud permanent dev {FAR_DEV}",
                 *[f"addr add {a}/32 dev lo" for a in (FAR[4], FAR_OTHER)],
                 *[f"addr add {a}/{32 if f == 4 else 128} dev lo{' nodad' if f == 6 else ''}" for f, a in META_ALL],
                 f"addr add {FAR[6]}/128 dev lo nodad")
        self._ip(self.host, f"neigh replace {GATE4} lladdr {MAC_FAR} nud permanent dev {DEV}",
                 f"neigh replace {GATE6} lladdr {MAC_FAR} nud permanent dev {DEV}",
                 f"neigh replace {GATE_LINK} lladdr {MAC_FAR} nud permanent dev {DEV}",
                 f"route add default via {GATE4}", f"route add default via inet6 {GATE6} dev {DEV}")

    def wire(self, ns):
        """Gives a namespace, by the file that names it, a device on the bridge: as a container engine does. Its addresses."""
        self.wires += 1
        name, own = f"{PORT}{self.wires}", {4: f"192.0.2.{9 + self.wires}", 6: f"2001:db8:1::{9 + self.wires:x}"}
        self._ip(self.host, f"link add {name} type veth peer name {name}c", f"link set {name} master {DEV} up")
        with open(ns) as f:
            base.sh("ip", "-n", self.host, "link", "set", f"{name}c", "netns", f"/proc/{os.getpid()}/fd/{f.fileno()}")
            lines = {4: ["link set lo up", f"link set {name}c name {DEV}", f"link set {DEV} up", f"addr add {own[4]}/24 brd + dev {DEV}",
                         f"neigh replace {GATE4} lladdr {MAC_FAR} nud permanent dev {DEV}", f"route replace default via {GATE4}"],
                     6: [f"addr add {own[6]}/64 dev {DEV} nodad", f"neigh replace {GATE6} lladdr {MAC_FAR} nud permanent dev {DEV}",
                         f"route add default via inet6 {GATE6} dev {DEV}"]}
            for family in (4, 6):
                p = subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{f.fileno()}", "ip", "-batch", "-"],
                                   input="\n".join(lines[family]) + "\n", capture_output=True, text=True, timeout=20)
                if p.returncode and "IPv6 is disabled" not in p.stderr:  # some engines do that
                    raise RuntimeError(f"ip: {p.stderr}")
        self.await_port(name)
        return own

    def await_port(self, name):
        """Until the bridge takes frames from this device: the kernel notices in its own time that the other end is up."""
        state = lambda: json.loads(self.ip("-j", "-d", "link", "show", name).stdout)[0]["linkinfo"]["info_slave_data"]["state"]
        if not base.eventually(lambda: state() == "forwarding", 10):
            raise RuntimeError(f"the bridge's port {name} is {state()}")

    def _ip(self, ns, *lines):
        p = subprocess.run(["ip", "-n", ns, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True,
                           text=True, timeout=120)
        if p.returncode:
            raise RuntimeError(f"ip -n {ns}: {p.stderr}")

    def ip(self, *words):
        """An ip command in HOST."""
        return base.sh("ip", "-n", self.host, *words)

    def sysctl(self, ns, settings):
        words = [f"{k}={v}" for k, v in settings.items()]
        base.sh("nsenter", f"--net=/run/netns/{ns}", "sysctl", "-qw", *words)

    def _programs(self):
        """The payloads that Python cannot do: compiled once, for the worlds of all files that run side by side, too."""
        made = base.BUILD / "tests" / "payload"
        made.mkdir(parents=True, exist_ok=True)
        for source in sorted((self.dir / "payload").glob("*.c")):
            program = made / f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
            if not program.exists():
                unfinished = made / base.unique(source.stem)
                base.sh("gcc", "-O1", "-Wall", "-o", unfinished, source)
                os.replace(unfinished, program)
            shutil.copy(program, source.with_suffix(""))

    def _servers(self):
        specs = []
        for port in self.tcp_ports:
            specs.append(dict(keep=f"tcp{port}", family=6, addr="::", port=port, v6only=False))
        for port, role in ((SINK, "sink"), (HOLD, "hold"), (SOURCE, "source")):
            specs.append(dict(keep=role, family=6, addr="::", port=port, v6only=False, role=role))
        specs.append(dict(keep="mptcp", family=6, addr="::", port=MPTCP, v6only=False, protocol=262))
        specs.append(dict(keep="fastopen", family=6, addr="::", port=FASTOPEN, v6only=False, fastopen=True))
        # one UDP socket an address: a wildcard one would answer from another address than was asked
        addrs = [(4, GATE4), (4, FAR[4]), (4, FAR_OTHER), (6, GATE6), (6, FAR[6]), *META_ALL]
        for family, addr in addrs:
            for port in UDP_PORTS:
                specs.append(dict(keep=f"udp{addr}:{port}", family=family, addr=addr, port=port, kind="dgram"))
            specs.append(dict(keep=f"udpsink{addr}", family=family, addr=addr, port=SINK, kind="dgram", role="sink"))
        self.world.call("listen_many", specs=specs)

    # -- using it --

    def enter(self, ns=None):
        """The start of a command line that runs in HOST. (`ip netns exec` would hide the cgroup mount.)"""
        return ["nsenter", f"--net=/run/netns/{ns or self.host}"]

    def agent_argv(self):
        return [base.PYTHON, "-I", str(self.dir / "agent.py")]

    def agent(self, ns, user=None, cgroup=None):
        argv = self.enter(ns)
        if user:
            argv += ["setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups", "--"]
        if cgroup:
            argv = ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *argv]
        agent = Agent(argv + self.agent_argv(), self.dir / "agents.log", env=base.env())
        self.agents.append(agent)
        agent.call("hello")
        return agent

    def engine(self, kind):
        """The one of that kind on this host, started at its first use."""
        if not [e for e in self.engines if type(e) is kind]:
            self.engines.append(kind(self))
        return next(e for e in self.engines if type(e) is kind)

    def drop(self, agent):
        if agent in self.agents:
            self.agents.remove(agent)
        agent.close()

    def near(self, user="root"):
        """The control: an agent on the host, in no sandbox."""
        return self.outside if user == "root" else self.outside_user

    def frames(self, since, mark=None, **kw):
        return self.world.call("frames", since=since, mark=mark, **kw)

    def records(self, since, mark=None, **kw):
        return self.world.call("records", since=since, mark=mark, **kw)["records"]

    def settle(self, quiet=0.25, timeout=5):
        """Waits until nobody talks any more: closed streams still drain."""
        base.eventually(lambda: (time.sleep(quiet), self.frames(time.time_ns() - int(quiet * 1e9))["count"] == 0)[1], timeout)

    def watch(self, mark=None):
        return Watch(self, mark)

    def close(self):
        for agent in list(self.agents):
            self.drop(agent)
        for engine in self.engines:
            engine.close()
        for ns in (self.host, self.far):
            if os.path.exists(f"/run/netns/{ns}"):
                base.sh("ip", "netns", "del", ns, check=False)
        base.drop_tempdir(self.dir)


class Watch:
    """What reached the far side between two moments: judged there, by frames on its own device."""

    SETTLE = 0.06  # a frame crosses a veth in microseconds; this is for a retry by a timer

    def __init__(self, world, mark):
        self.world, self.mark = world, mark

    def __enter__(self):
        self.since = time.time_ns()
        return self

    def __exit__(self, *exc):
        time.sleep(self.SETTLE)
        self.look()

    def look(self):
        got = self.world.frames(self.since, self.mark)
        self.count, self.marked, self.frames = got["count"], got["marked"], got["frames"]
        self.records = self.world.records(self.since, self.mark)
        return self

    def nothing(self):
        assert self.count == 0, f"{self.count} frames reached the far side: {self.frames[:5]}"
        # A connection is recorded when it is accepted: of one from before that may be late, and a new one has frames.
        records = [r for r in self.records if r["data"] != "<connect>"]
        assert not records, f"the far side received {records[:5]}"
        return True

    def something(self):
        assert base.eventually(lambda: self.look().count), "the control did not get a frame to the far side: this test proves nothing"
        return True

    def carried(self):
        """Did the mark get there? Waited for: for controls."""
        return base.eventually(lambda: self.look().marked)
