#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A container of Podman's that netpawl has adopted, beside the same one without netpawl, and beside the way of a sidecar: nginx in the
container's network namespace, to which nft redirects what goes to port 443, and which ends TLS and verifies the origin as netpawl does.

    NETPAWL_BUILD=build tests/bench/containers.py [--quick]

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/containers.json.
"""
import contextlib
import json
import os
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from alone import alone  # noqa: E402
from lib import base  # noqa: E402
from lib.engines import Podman  # noqa: E402

import inspection  # noqa: E402
from nets import BENCH, FAR, LOOPBACK, Net, Program, build, install  # noqa: E402
from origin import NAME, NGINX, PLACE, PROXY, SMALL, TLS, Netpawl, Scene, cpu_ns, tree  # noqa: E402
from table import ratio, show, spread  # noqa: E402

FULL = {"starts": 12, "rounds": 12, "connects": 300, "load_ms": 500, "fresh_ms": 500, "seconds": 300}
QUICK = {"starts": 3, "rounds": 3, "connects": 100, "load_ms": 200, "fresh_ms": 200, "seconds": 120}
PACKAGES = ["podman", "runc", "nginx-light", "nftables", "libssl-dev"]
PLAIN, OURS, SIDECAR = "without netpawl", "netpawl", "sidecar"
ECHO_PORT, SIDECAR_PORT = 1990, 15001
# The sidecar's own traffic, by its user, is let out.
RULES = ("add table ip side; add chain ip side out { type nat hook output priority -100; }; add rule ip side out meta skuid www-data return; "
         f"add rule ip side out tcp dport 443 redirect to :{SIDECAR_PORT}")


class Yard(Scene):
    """The origin and netpawl; containers stand in for the other peers."""

    def make_peers(self, slow_peers):
        self.netpawl = Netpawl(self.stack, self.net, self.dir, self.authority.pem)
        self.net.dir = self.dir
        self.engine, self.count = Podman(self.net), 0
        self.stack.callback(self.engine.close)
        self.netpawl.api.create("bench/full", "PUBLIC")


class Container:
    """With a device of its own to the far end."""

    def __init__(self, yard, kind):
        self.yard, self.kind, self.name, self.side = yard, kind, base.unique("c"), None
        yard.count += 1
        net, n = yard.net, yard.count
        base.sh(*yard.engine.run_argv(self.name, "-d", "--network", "none", cmd=["sleep", "1000"]), env=yard.engine.env, timeout=120)
        self.pid = int(yard.engine.inspect(self.name, ".State.Pid"))
        self.ns, self.device = f"/proc/{self.pid}/ns/net", f"npc{n}"
        base.sh("ip", "-n", net.far, "link", "add", self.device, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
        net._ip(net.far, f"addr add 10.9.{n}.1/24 dev {self.device}", f"link set {self.device} up")
        base.sh("nsenter", f"--net={self.ns}", "sh", "-c", f"ip link set lo up; ip addr add 10.9.{n}.2/24 dev eth0; ip link set eth0 up; "
                f"ip route add default via 10.9.{n}.1; sysctl -qw net.ipv4.tcp_tw_reuse=1 net.ipv4.ip_local_port_range='10000 65000'")
        with open(f"/proc/{self.pid}/cgroup") as f:
            self.cgroup = base.cgroup_mount() / next(line.split("::/")[1].strip() for line in f if line.startswith("0::"))

    def attach(self, session):
        """(ms of netpawl attach, ms of CPU of the daemon and its inspectors)"""
        pids = [*self.yard.netpawl.extra_pids(), *self.yard.netpawl.pids()]
        before, began = cpu_ns(pids), time.perf_counter()
        self.yard.netpawl.daemon.cli("attach", session, "--pid", self.pid, check=0)
        took = time.perf_counter() - began
        time.sleep(0.02)
        return took * 1e3, (cpu_ns(pids) - before) / 1e6

    def sidecar(self):
        """The same of a sidecar, until it listens."""
        yard, began = self.yard, time.perf_counter()
        self.word = f"side{self.device}"
        conf, root = yard.dir / f"{self.word}.conf", yard.authority.pem
        servers = PROXY.split("  server {{ listen {host}:{h2}")[0].format(root=root, name=NAME, plain=PLACE[NAME], host="127.0.0.1", keep=SIDECAR_PORT)
        conf.write_text(NGINX.replace("user root;", "user www-data;").format(
            dir=yard.dir, word=self.word, servers=servers, tls=TLS.format(cert=yard.cert, key=yard.key)))
        self.side = base.popen(["nsenter", f"--net={self.ns}", "nginx", "-e", str(yard.dir / f"{self.word}.log"), "-c", str(conf)])
        base.sh("nsenter", f"--net={self.ns}", "nft", RULES)
        listens = lambda: base.sh("nsenter", f"--net={self.ns}", "ss", "-Hltn", f"sport = :{SIDECAR_PORT}").stdout
        if not base.eventually(listens, 10, 0.002):
            raise RuntimeError((yard.dir / f"{self.word}.log").read_text()[-800:])
        took = time.perf_counter() - began
        return took * 1e3, cpu_ns(tree(self.side.pid)) / 1e6

    def proxy_pids(self):
        if self.kind == OURS:
            return [*self.yard.netpawl.pids(), *self.yard.netpawl.extra_pids()]
        return tree(self.side.pid) if self.side else []

    def inside(self, *argv):
        """A program of the host's, as one that the container has: in its cgroup and network namespace."""
        return Program("sh", "-c", f'echo $$ > {self.cgroup}/cgroup.procs && exec nsenter --net={self.ns} "$@"', "sh", *argv)

    def https(self):
        return self.inside(BENCH / "https", PLACE[NAME], 443, NAME, self.yard.netpawl.ca)

    def close(self):
        if self.side:
            base.reap(self.side)
        self.yard.engine("rm", "-f", "-t", "0", self.name, check=False)
        base.sh("ip", "-n", self.yard.net.far, "link", "del", self.device, check=False)


def ready(container):
    if container.kind == OURS:
        return container.attach(container.yard.netpawl.session)
    return container.sidecar() if container.kind == SIDECAR else (None, None)


def starts(yard, rounds):
    """Of new containers: until they are confined, and their first request after that."""
    out = {kind: {"ready_ms": [], "ready_cpu_ms": [], "first_ms": []} for kind in (PLAIN, OURS, SIDECAR)}
    for _ in range(rounds):
        for kind in random.sample(list(out), len(out)):
            with contextlib.closing(Container(yard, kind)) as container:
                took, cpu = ready(container)
                with contextlib.closing(container.https()) as client:
                    done, failed, wall, *_ = client.ask(f"open 1 {SMALL}")
                    if failed or done != 1:
                        raise RuntimeError(f"{kind}: the first request failed")
                out[kind]["first_ms"].append(wall / 1e6)
                if took is not None:
                    out[kind]["ready_ms"].append(took)
                    out[kind]["ready_cpu_ms"].append(cpu)
    return out


def connects(containers, rounds, count):
    """connect+close past any proxy: FULL, and a port that the sidecar's rule does not name. {kind: [(us, us of the client's CPU)]}"""
    loops = {kind: c.inside(BENCH / "loop", c.cgroup, "work", LOOPBACK[4], FAR[4], ECHO_PORT) for kind, c in containers.items()}
    out = {kind: [] for kind in loops}
    try:
        for i in range(-1, rounds):
            for kind in random.sample(list(loops), len(loops)):
                wall, cpu = loops[kind].ask(f"far_connect {count}")
                if i >= 0:
                    out[kind].append((wall / count / 1e3, cpu / count / 1e3))
    finally:
        for loop in loops.values():
            loop.close()
    return out


def requests(containers, rounds, command):
    """Requests, each with CPU of the client and of what is between: {kind: [(us, us of CPU of both)]}"""
    clients = {kind: c.https() for kind, c in containers.items()}
    out = {kind: [] for kind in clients}
    try:
        for client in clients.values() if command.startswith("load") else ():
            client.ask(f"open 1 {SMALL}")
        for i in range(-1, rounds):
            for kind in random.sample(list(clients), len(clients)):
                pids = containers[kind].proxy_pids()
                before = cpu_ns(pids)
                done, failed, wall, cpu, *_ = clients[kind].ask(command)
                time.sleep(0.005)
                cpu += cpu_ns(pids) - before
                if failed or not done:
                    raise RuntimeError(f"{kind}: {failed} requests failed")
                if i >= 0:
                    out[kind].append((wall / done / 1e3, cpu / done / 1e3))
    finally:
        for client in clients.values():
            client.close()
    return out


def row(title, samples, which):
    """One line of the table: medians, and ratios round by round."""
    values = {kind: [s[which] for s in each] for kind, each in samples.items()}
    median = {kind: statistics.median(v) for kind, v in values.items()}
    return [title, median[PLAIN], median[OURS], median[SIDECAR], spread(ratio(values[OURS], values[PLAIN])), spread(ratio(values[OURS], values[SIDECAR]))]


def measure(yard, size):
    out = {"starts": starts(yard, size["starts"])}
    with contextlib.ExitStack() as stack:
        echo = Program(*yard.net.enter(yard.net.far), BENCH / "loop", "-", "serve", ECHO_PORT)
        stack.callback(echo.close)
        make = lambda kind: stack.enter_context(contextlib.closing(Container(yard, kind)))
        plain, proxied, full, side = make(PLAIN), make(OURS), make(OURS), make(SIDECAR)
        ready(proxied)
        ready(side)
        full.attach("bench/full")
        out["connect"] = connects({PLAIN: plain, OURS: full, SIDECAR: side}, size["rounds"], size["connects"])
        by_request = {PLAIN: plain, OURS: proxied, SIDECAR: side}
        out["keep"] = requests(by_request, size["rounds"], f"load {size['load_ms']}")
        out["fresh"] = requests(by_request, size["rounds"], f"fresh {size['fresh_ms']} 1 0 {SMALL}")
    return out


def report(out, size):
    middle = lambda kind, what: statistics.median(out["starts"][kind][what]) if out["starts"][kind][what] else None
    show("A container is confined, ms", ["", PLAIN, OURS, SIDECAR],
         [[title, *(middle(kind, what) for kind in (PLAIN, OURS, SIDECAR))] for title, what in
          (("until it is", "ready_ms"), ("CPU of that", "ready_cpu_ms"), ("its first request", "first_ms"))],
         [f"{size['starts']} new containers each, in turns. netpawl: the command `netpawl attach` and all that it waits for; CPU: the daemon's and the inspector's.",
          "sidecar: nginx in the container's namespace, until it listens, and a rule of nft."])
    rows = [row(f"{title}, {what}", out[key], which) for key, title in
            (("connect", "connect+close in FULL"), ("keep", "request in PROXIED"), ("fresh", "the same, a new connection each"))
            for which, what in enumerate(("us", "us of CPU"))]
    show("What it costs in there", ["", PLAIN, OURS, SIDECAR, "to without", "to sidecar"], rows,
         [f"{size['rounds']} rounds in turns. Requests: HTTPS, 1 KiB, one at a time; CPU: of the client, and of proxy and daemon. In brackets: quartiles."])


def run(quick):
    size = QUICK if quick else FULL
    missing = install(PACKAGES)
    if missing:
        print(f"bench: containers are left out: {', '.join(missing)} cannot be installed")
        return
    build(False)
    inspection.build()
    with contextlib.ExitStack() as stack:
        net = Net("containers")
        stack.callback(net.close)
        out = measure(Yard(stack, net, slow_peers=False), size)
    report(out, size)
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "containers.json").write_text(json.dumps(out, indent=1) + "\n")
    print(BENCH / "containers.json")


if __name__ == "__main__":
    alone(__doc__, run)
