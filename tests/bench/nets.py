# SPDX-License-Identifier: MIT
"""Pairs of network namespaces, and the timed programs that run in them."""
import contextlib
import json
import os
import queue
import subprocess
import threading

from lib import base

DEV, FAR_DEV = "npv0", "npv1"
HOST = {4: "192.0.2.2", 6: "2001:db8:1::2"}
GATE = {4: "192.0.2.1", 6: "2001:db8:1::1"}
FAR = {4: "198.51.100.10", 6: "2001:db8:2::10"}
LOOPBACK = {4: "127.0.0.1", 6: "::1"}
BENCH = base.BUILD / "bench"
SOURCES = base.TESTS / "bench"
# argv: a path, how many requests, hosts. HTTP/1.1 in turns, each host on a connection that stays open: microseconds of each, by host.
CLIENT = """
import http.client, json, sys, time
ways = {h: http.client.HTTPConnection(h, timeout=60) for h in sys.argv[3:]}
took = {h: [] for h in ways}
for i in range(int(sys.argv[2]) + 50):
    for h, c in ways.items():
        began = time.perf_counter_ns()
        c.request("GET", sys.argv[1])
        r = c.getresponse()
        r.read()
        if r.status != 200:
            sys.exit(f"{h}: {r.status}")
        if i >= 50:
            took[h].append((time.perf_counter_ns() - began) / 1000)
print(json.dumps(took))
"""


def build(with_nft):
    """The C programs, into build/bench/."""
    BENCH.mkdir(parents=True, exist_ok=True)
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra"]
    libraries = {"loop": ["-lpthread"], "client": [], "peers": ["-DWITH_NFT", "-lnftables"] if with_nft else [],
                 "empty": ["-lbpf"]}
    for name, more in libraries.items():
        base.sh("gcc", *flags, "-o", BENCH / name, SOURCES / f"{name}.c", *more, timeout=60)


def install(packages):
    """Installs what is missing; the names of those that cannot be had."""
    def missing():
        p = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Abbrev}\n", *packages],
                           capture_output=True, text=True)
        have = {line.split()[0] for line in p.stdout.splitlines() if line.endswith("ii ")}
        return [name for name in packages if name not in have]

    if missing():
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing()],
                       capture_output=True, env=env, timeout=120)
    return missing()


class Net:
    """A host namespace, and a far one behind a veth pair. No route leads anywhere else."""

    def __init__(self, word):
        self.host, self.far = base.unique(word), base.unique(word + "w")
        for ns in (self.host, self.far):
            base.sh("ip", "netns", "add", ns)
        for ns in (self.host, self.far):
            base.sh("nsenter", f"--net=/run/netns/{ns}", "sysctl", "-qw", "net.ipv4.ip_local_port_range=10000 65000",
                    "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.lo.disable_ipv6=0",
                    "net.ipv6.conf.default.accept_dad=0")
        self._ip(self.host, f"link add {DEV} type veth peer name {FAR_DEV} netns {self.far}")
        self._ip(self.host, "link set lo up", f"link set {DEV} up", f"addr add {HOST[4]}/24 dev {DEV}",
                 f"addr add {HOST[6]}/64 dev {DEV} nodad")
        self._ip(self.far, "link set lo up", f"link set {FAR_DEV} up", f"addr add {GATE[4]}/24 dev {FAR_DEV}",
                 f"addr add {GATE[6]}/64 dev {FAR_DEV} nodad", f"addr add {FAR[4]}/32 dev lo",
                 f"addr add {FAR[6]}/128 dev lo nodad")
        self._ip(self.host, f"route add default via {GATE[4]}", f"route add default via inet6 {GATE[6]} dev {DEV}")

    def _ip(self, ns, *lines):
        p = subprocess.run(["ip", "-n", ns, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True,
                           text=True, timeout=20)
        if p.returncode:
            raise RuntimeError(f"ip -n {ns}: {p.stderr}")

    def enter(self, ns=None):
        return ["nsenter", f"--net=/run/netns/{ns or self.host}"]

    def close(self):
        for ns in (self.host, self.far):
            base.sh("ip", "netns", "del", ns, check=False)


def in_a_net(name, text, measure):
    """measure(net, policy) in a net of its own, with a file of the policy's text; what it returns is kept as NAME.json."""
    with contextlib.ExitStack() as stack:
        net = Net(name)
        stack.callback(net.close)
        policy = base.tempdir(name) / "policy.yaml"
        stack.callback(base.drop_tempdir, policy.parent)
        policy.write_text(text)
        out = measure(net, policy)
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / f"{name}.json").write_text(json.dumps(out, indent=1) + "\n")
    print(BENCH / f"{name}.json")


class Skip(Exception):
    """The program says that its machine cannot do this."""


class Program:
    """A program that answers one line for each line. It ends with its stdin, even when we are killed."""

    def __init__(self, *argv):
        self.argv = [str(a) for a in argv]
        self.process = base.popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=base.env())
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        if self._line(20) != "ready":
            raise RuntimeError(f"{' '.join(self.argv)}: not ready")

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(b"")

    def _line(self, timeout):
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            raise RuntimeError(f"{' '.join(self.argv)}: no answer in {timeout} s") from None
        if not line:
            raise RuntimeError(f"{' '.join(self.argv)}: ended with {self.process.wait(5)}")
        return line.decode().strip()

    def ask(self, command, timeout=120):
        """The numbers of the answer."""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        line = self._line(timeout)
        if line.startswith("skip "):
            raise Skip(line[5:])
        return [int(word) for word in line.split()]

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            pass
        base.reap(self.process)


class Worker:
    """loop.c in a cgroup, with a far end of its own."""

    def __init__(self, net, cgroup, port, family=4):
        self.server = Program(*net.enter(net.far), BENCH / "loop", "-", "serve", port)
        try:
            self.loop = Program(*net.enter(), BENCH / "loop", cgroup, "work", LOOPBACK[family], FAR[family], port)
        except BaseException:
            self.server.close()
            raise

    def run(self, operation, count):
        """(wall, CPU) in us per operation."""
        wall, cpu = self.loop.ask(f"{operation} {count}", timeout=30)
        return wall / count / 1000, cpu / count / 1000

    def close(self):
        self.loop.close()
        self.server.close()


# -- the kernel's books -------------------------------------------------------------------------

def bpftool(*words):
    return json.loads(base.sh("bpftool", "-j", *words, timeout=60).stdout)


def bpf_ids(pid, key):
    """{prog_id or map_id: its fdinfo file} of every BPF object that a process has open."""
    ids = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        path = f"/proc/{pid}/fdinfo/{name}"
        try:
            with open(path) as f:
                text = f.read()
        except OSError:
            continue
        words = dict(line.split()[:2] for line in text.splitlines() if len(line.split()) > 1)
        # a link's file names its program too, without its counters
        if key + ":" in words and ("link_type:" not in words):
            ids[int(words[key + ":"])] = path
    return ids
