#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Many containers on one node: what the next adoption, an escalation of all of them and a restart of the daemon take, and what the
daemon and its inspectors hold for each. No engine: a network namespace with a device on a bridge, a cgroup and a process are all that
a container is to the gate.

    NETPAWL_BUILD=build tests/bench/many.py [--quick]

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/many.json.
"""
import contextlib
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from alone import alone  # noqa: E402
from lib import base  # noqa: E402
from lib.daemon import Daemon  # noqa: E402

from nets import in_a_net  # noqa: E402
from origin import cpu_ns, tree  # noqa: E402
from restart import ASKS, POLICY  # noqa: E402
from table import show  # noqa: E402

FULL = {"at": (1, 50, 200), "seconds": 240}
QUICK = {"at": (1, 50), "seconds": 60}
BRIDGE = "npbr0"
SESSION = "bench/many"
LAST = 8  # adoptions that a median is of: the last ones, when all others are there


class Containers:
    """Each in a cgroup and a network namespace of its own, with a device on one bridge of the host's namespace."""

    def __init__(self, daemon):
        self.daemon, self.net, self.made = daemon, daemon.world, []
        self.net._ip(self.net.host, f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up", f"addr add 10.9.0.1/16 dev {BRIDGE}")

    def add(self):
        n, cgroup = len(self.made) + 1, base.cgroup_make("many")
        process = base.popen(["unshare", "--net", "sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; echo; exec sleep infinity"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.made.append((cgroup, process))
        process.stdout.readline()
        self.net._ip(self.net.host, f"link add npm{n} type veth peer name eth0 netns {process.pid}", f"link set npm{n} master {BRIDGE} up")
        base.sh(*self.enter(process), "ip", "-batch", "-", input="\n".join(
            ("link set lo up", f"addr add 10.9.{n >> 8}.{n & 255}/16 dev eth0", "link set eth0 up", "route add default via 10.9.0.1")))
        return cgroup

    @staticmethod
    def enter(process):
        return ["nsenter", f"--net=/proc/{process.pid}/ns/net"]

    def close(self):
        for _, process in self.made:
            base.reap(process)
        for cgroup, _ in self.made:
            base.cgroup_destroy(cgroup)
        base.sh("ip", "-n", self.net.host, "link", "del", BRIDGE, check=False)


class Asking:
    """A program in a container that asks for a name, on and on."""

    def __init__(self, daemon, container):
        cgroup, process = container
        self.said = daemon.dir / base.unique("said")
        with open(self.said, "w") as f:
            self.client = subprocess.Popen([*Containers.enter(process), "sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec {base.PYTHON} -c '{ASKS}'"],
                                           stdin=subprocess.DEVNULL, stdout=f)

    def answered(self, since):
        """Milliseconds until one was answered."""
        times = lambda: map(float, self.said.read_text().split("\n")[:-1])
        got = base.eventually(lambda: next((t for t in times() if t > since), None), 60, 0.002)
        if not got:
            raise RuntimeError("no name is answered in a container")
        return (got - since) * 1e3

    def close(self):
        self.client.kill()
        self.client.wait()


def held(pid):
    """(descriptors, KiB of its own)"""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        own = sum(int(line.split()[1]) for line in f if line.startswith("Private_"))
    return len(os.listdir(f"/proc/{pid}/fd")), own


def holds(daemon):
    """The daemon's, and the first inspector's."""
    pid = daemon.api.health()["pid"]
    worker = next(p for p in tree(pid) if p != pid and "netpawl-inspect" in open(f"/proc/{p}/comm").read())
    return held(pid), held(worker)


def idle_percent(daemon):
    """Of a core, while nothing happens: it looks whether all is in its place."""
    pids = tree(daemon.api.health()["pid"])
    time.sleep(2)  # what comes late is over
    before = cpu_ns(pids)
    time.sleep(4)
    return (cpu_ns(pids) - before) / 4e7


def timed(fn, *args):
    began = time.perf_counter()
    fn(*args)
    return (time.perf_counter() - began) * 1e3


def once(net, policy, count):
    with contextlib.ExitStack() as stack:
        daemon = Daemon(net, policy=policy, inspectors=2, in_memory=True, more=["--resolvers", "127.0.0.1"])
        stack.callback(daemon.close)
        daemon.start()
        daemon.api.timeout = 120
        daemon.api.create(SESSION, "PUBLIC")
        crowd = stack.enter_context(contextlib.closing(Containers(daemon)))
        before, took, cpu = holds(daemon), [], []
        for _ in range(count):
            cgroup, pids = crowd.add(), tree(daemon.api.health()["pid"])
            spent = cpu_ns(pids)
            took.append(timed(daemon.api.adopt, SESSION, cgroup))
            cpu.append((cpu_ns(pids) - spent) / 1e6)
        idle = idle_percent(daemon)
        raised = timed(daemon.api.escalate, SESSION, "CONFIDENTIAL")
        after = holds(daemon)
        asks = [stack.enter_context(contextlib.closing(Asking(daemon, crowd.made[i]))) for i in (0, -1)]
        for each in asks:
            each.answered(0)
        daemon.kill()
        began = time.monotonic()
        daemon.start()
        ready = (time.monotonic() - began) * 1e3
        names = max(each.answered(began) for each in asks)
        raised_again = timed(daemon.api.escalate, SESSION, "SECRET")
        each = [[(a - b) / count for a, b in zip(after[i], before[i])] for i in (0, 1)]
        return {"idle_percent": idle, "adopt_ms": statistics.median(took[-LAST:]), "adopt_cpu_ms": statistics.median(cpu[-LAST:]), "first_ms": took[0], "all_ms": took,
                "raise_ms": raised, "ready_ms": ready, "name_ms": names, "raise_after_ms": raised_again,
                "daemon_fds": each[0][0], "daemon_kib": each[0][1], "inspector_fds": each[1][0], "inspector_kib": each[1][1]}


def measure(net, policy, counts):
    out = {n: once(net, policy, n) for n in counts}
    columns = ("adopt_ms", "adopt_cpu_ms", "raise_ms", "ready_ms", "name_ms", "raise_after_ms", "idle_percent")
    show("Many containers of one session: ms", ["containers", "adopt one", "CPU of that", "raise all", "restart: ready", "a name", "then raise all", "idle, %"],
         [[f"{n}", *(row[c] for c in columns)] for n, row in out.items()],
         [f"adopt: the call, median of the last {LAST}. raise: to PROXIED, and after the restart (kill -9) to NONE. a name: answered in the first and in the "
          "last container, from the start of the process. idle: of a core, daemon and inspectors."])
    show("What each of them takes", ["containers", "daemon: descriptors", "KiB", "an inspector: descriptors", "KiB"],
         [[f"{n}", *(row[c] for c in ("daemon_fds", "daemon_kib", "inspector_fds", "inspector_kib"))] for n, row in out.items()],
         ["memory of their own, in PROXIED; what the first one takes is mostly what any raise takes."])
    return out


def run(quick):
    in_a_net("many", POLICY, lambda net, policy: measure(net, policy, (QUICK if quick else FULL)["at"]))


if __name__ == "__main__":
    alone(__doc__, run)
