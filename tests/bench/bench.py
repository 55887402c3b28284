#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Benchmarks of the gate, the policy and the inspector: ratios to peers that are measured in the same run, in turns.

    NETPAWL_BUILD=build tests/bench/bench.py [--quick] [--only PART,...]      (make bench, make bench QUICK=1)

Needs root. Everything happens in network namespaces, cgroups and a bpf file system of its own, which are gone at
the end. Writes BUILD/bench/gate.json, policy.json, credentials.json, run.json, restart.json, inspect.json, dns.json, decisions.json, held.json, scrubbing.json, containers.json and many.json. raise.py, run.py, restart.py,
inspection.py, lookups.py, credentials.py, decisions.py, held.py, scrubbing.py, containers.py and many.py do their part alone.
"""
import argparse
import contextlib
import json
import os
import platform
import resource
import signal
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.api import Api  # noqa: E402
from lib.daemon import Daemon  # noqa: E402

import containers  # noqa: E402
import cost  # noqa: E402
import decisions  # noqa: E402
import escalation  # noqa: E402
import followers  # noqa: E402
import held  # noqa: E402
import inspection  # noqa: E402
import lookups  # noqa: E402
import many  # noqa: E402
import credentials  # noqa: E402
import policy  # noqa: E402
import restart  # noqa: E402
import run as starting  # noqa: E402
import scale  # noqa: E402
import scrubbing  # noqa: E402
from nets import BENCH, FAR, Net, Program, build, install  # noqa: E402

PEER_PORT, KEEPER_PORT = 1999, 1998
FULL = {"boxes": (1, 100, 10000), "escalations": 250, "batches": 4, "rounds": 30, "turns": 12, "starts": 150,
        "seconds": 480}
QUICK = {"boxes": (1, 100), "escalations": 40, "batches": 2, "rounds": 8, "turns": 3, "starts": 30, "seconds": 120}
CROWD, ELSEWHERE = 10000, 100000  # closed connections; open sockets of others
PARTS = (starting, restart, inspection, lookups, decisions, held, scrubbing, followers, containers, many)  # each with QUICK and FULL, which have the seconds that it may take
SLOW = 3  # times what a part takes on idle cores, and it is stopped
REGISTER_SECONDS, REGISTER_STEP = 60, 500  # what registering may take; beyond it there are fewer sandboxes


class Bench:
    """The places where things run. Opened in order, closed in reverse, on failure too."""

    def __init__(self, stack, with_nft):
        self.nets = {}
        for word in ("plain", "gate", "empty", "nft"):
            if word != "nft" or with_nft:
                self.nets[word] = Net(word)
                stack.callback(self.nets[word].close)
        self.daemon = Daemon(self.nets["gate"], in_memory=True, inspectors=2, more=["--resolvers", "127.0.0.1"])
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.pid = self.daemon.api.health()["pid"]
        self.api = Api(self.daemon.socket, timeout=120)
        self.have, self.registering = 0, 0
        stack.callback(self.end_sessions)
        self.places = self.make_places(stack, with_nft)
        net, cgroup = self.places.places["empty"]
        self.empty = Program(*net.enter(), BENCH / "empty", cgroup)
        stack.callback(self.empty.close)
        far = Program(*self.nets["gate"].enter(self.nets["gate"].far), BENCH / "loop", "-", "serve", PEER_PORT)
        stack.callback(far.close)
        self.client = Program(*self.nets["gate"].enter(), BENCH / "client", self.daemon.socket, FAR[4], PEER_PORT,
                              self.pid, self.daemon.state_dir / "floor")
        stack.callback(self.client.close)
        self.peers = self.make_peers(stack)

    def cgroup(self, stack, word):
        path = base.cgroup_make(word)
        stack.callback(base.cgroup_destroy, path)
        return path

    def make_places(self, stack, with_nft):
        self.daemon.api.create("bench/full", "PUBLIC")
        self.daemon.api.create("bench/start", "PUBLIC")
        box = self.daemon.api.make("bench/full")
        self.have = 1
        # A sandbox ends with its last process: this one stays.
        keeper = Program(*self.nets["gate"].enter(), BENCH / "loop", box["cgroup"], "serve", KEEPER_PORT)
        stack.callback(keeper.close)
        outside, gate = self.cgroup(stack, "outside"), self.nets["gate"]
        places = {"plain": (self.nets["plain"], self.cgroup(stack, "plain")), "full": (gate, box["cgroup"]),
                  "again": (self.nets["plain"], self.cgroup(stack, "again")), "outside": (gate, outside),
                  "empty": (self.nets["empty"], self.cgroup(stack, "empty"))}
        if with_nft:
            places["nft"] = (self.nets["nft"], self.cgroup(stack, "nft"))
            self.nft_rule(self.nets["nft"], self.cgroup(stack, "nftother"))
        return cost.Places(places)

    @staticmethod
    def nft_path(cgroup):
        """nft takes names below /sys/fs/cgroup, wherever the v2 mount is."""
        return os.path.relpath(cgroup, "/sys/fs/cgroup")

    def nft_rule(self, net, cgroup):
        """What a user would have who took the network from another cgroup with nft."""
        rules = ("add table inet npbench; add chain inet npbench out { type filter hook output priority 0; }; "
                 f"add rule inet npbench out socket cgroupv2 level 1 \"{self.nft_path(cgroup)}\" counter drop")
        base.sh(*net.enter(), "nft", rules)

    def make_peers(self, stack):
        cgroup = self.cgroup(stack, "peer")
        net = self.nets.get("nft", self.nets["plain"])
        program = Program(*net.enter(), BENCH / "peers", self.daemon.state_dir / "floor", cgroup,
                          self.nft_path(cgroup), 1)
        stack.callback(program.close)
        return program

    def end_sessions(self):
        for session in scale.sessions_of(self.have):
            with contextlib.suppress(Exception):
                self.api.end(session)

    def crowd(self, count):
        """Leaves connections of a process outside behind, as any busy host has them."""
        workers = self.places.workers(["outside"])
        try:
            workers["outside"].run("connect", count)
        finally:
            cost.close_all(workers)

    def elsewhere(self, stack, count):
        """Processes outside with this many open sockets, two for each connection."""
        net, cgroup = self.places.places["outside"]
        share = resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 100
        for number, done in enumerate(range(0, count // 2, share)):
            holder = Program(*net.enter(), BENCH / "loop", cgroup, "hold", f"127.0.1.{number + 1}", min(share, count // 2 - done))
            stack.callback(holder.close)

    def closed(self):
        """How many connections there are in TIME_WAIT, in the daemon's namespace."""
        words = base.sh(*self.nets["gate"].enter(), "cat", "/proc/net/sockstat").stdout.split()
        return int(words[words.index("tw") + 1])

    def register(self, want):
        """Registers sandboxes until there are `want`, or fewer when that would take too long."""
        while self.have < want and self.registering < REGISTER_SECONDS:
            n = min(REGISTER_STEP, want - self.have)
            self.registering += scale.register(self.client, self.have, self.have + n)
            self.have += n
        if self.have < want:
            print(f"\n  {REGISTER_SECONDS} s were enough for {self.have:,} sandboxes, not for {want:,}.")
        alive = self.api.health()["sandboxes"]
        if alive < self.have:
            raise RuntimeError(f"{self.have} sandboxes were registered, only {alive} are there")


def measure_escalations(bench, rounds, ways):
    """What an acknowledgement takes: on a quiet host, and on one with many sockets of others."""
    few = rounds // 4
    out = {"quiet": escalation.run(bench.client, bench.peers, "a quiet host", rounds, ways)}
    bench.crowd(CROWD)
    title = f"{bench.closed():,} connections in TIME_WAIT"
    out["crowded"] = escalation.run(bench.client, bench.peers, title, few, escalation.FEW)
    with contextlib.ExitStack() as stack:
        bench.elsewhere(stack, ELSEWHERE)
        title = f"{bench.closed():,} connections in TIME_WAIT and {ELSEWHERE:,} open sockets outside"
        out["elsewhere"] = escalation.run(bench.client, bench.peers, title, few, escalation.FEW)
    return out


def measure(bench, size, out):
    few = size["escalations"] // 4
    out["escalation"] = measure_escalations(bench, size["escalations"], escalation.ALL)
    out["start"] = scale.start(bench.client, bench.peers, size["starts"])
    floor = out["empty_program_ns"] = cost.empty_cost(bench.places, bench.empty, size["turns"])
    prints, programs = {}, {}
    for want in size["boxes"]:
        bench.register(want)
        prints[bench.have] = scale.footprint(bench.pid)
        result = cost.ratios(bench.places, size["batches"], size["rounds"])
        cost.report_ratios(result, bench.have, size["batches"] * size["rounds"])
        programs[bench.have] = cost.program_costs(bench.places, bench.pid, size["turns"])
        out.setdefault("full", {})[str(bench.have)] = result
    cost.report_programs(programs, floor)
    out["programs"] = {str(n): c for n, c in programs.items()}
    out["memory"] = {"at": {str(n): p for n, p in prints.items()},
                     "per_sandbox": scale.report_memory(prints, bench.registering)}
    out["registered_per_second"] = (bench.have - 1) / bench.registering
    if bench.have > 1:
        title = f"{bench.have:,} sandboxes, {bench.closed():,} connections in TIME_WAIT"
        out["escalation"][str(bench.have)] = escalation.run(bench.client, bench.peers, title, few, escalation.FEW)


class TooLong(Exception):
    """Of one part."""


class Stopped(BaseException):
    """Of all of them."""


def gate(quick, with_nft):
    """The part that is in this file: what a raise takes, and what FULL costs."""
    started = time.monotonic()
    out = {"kernel": platform.release(), "cpus": os.cpu_count(), "quick": quick, "load": os.getloadavg()[0]}
    with contextlib.ExitStack() as stack:
        measure(Bench(stack, with_nft), QUICK if quick else FULL, out)
    out["seconds"] = time.monotonic() - started
    (BENCH / "gate.json").write_text(json.dumps(out, indent=1) + "\n")


def parts_of(quick, with_nft):
    """{name: (what it does, seconds that it may take)}, in order."""
    parts = {"policy": (policy.run, 120), "credentials": (credentials.run, 120),
             "gate": (lambda: gate(quick, with_nft), (QUICK if quick else FULL)["seconds"])}
    for part in PARTS:
        parts[part.__name__] = (lambda part=part: part.run(quick), (part.QUICK if quick else part.FULL)["seconds"])
    return parts


def part_run(run, seconds):
    """Why it failed, or None. A part that fails is no reason not to measure the others."""
    signal.alarm(SLOW * seconds)
    try:
        run()
    except (Exception, SystemExit) as e:
        traceback.print_exc()
        return f"{type(e).__name__}: {e}".splitlines()[0]
    finally:
        signal.alarm(0)
    left = base.leftovers()
    return f"left behind: {left}" if left else None


def too_long(*_):
    raise TooLong("it took too long")


def stopped(*_):
    raise Stopped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="less of everything: some minutes")
    parser.add_argument("--only", metavar="PART,...", help="only these parts")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGALRM, too_long)
    if os.geteuid() != 0:
        sys.exit("bench: needs root")
    missing = install(["nftables", "libnftables-dev", "bubblewrap"])
    with_nft = not {"nftables", "libnftables-dev"} & set(missing)
    for name in missing:
        print(f"bench: {name} cannot be installed: its lines are left out")
    build(with_nft)
    parts = parts_of(args.quick, with_nft)
    wanted = args.only.split(",") if args.only else list(parts)
    if set(wanted) - set(parts):
        sys.exit(f"bench: parts are {', '.join(parts)}")
    started, took, failed = time.monotonic(), {}, {}
    print(f"netpawl on Linux {platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for n, name in enumerate(wanted, 1):
        print(f"-- part {n} of {len(wanted)}: {name}, {time.monotonic() - started:.0f} s so far", flush=True)
        began = time.monotonic()
        why = part_run(*parts[name])
        took[name] = time.monotonic() - began
        if why:
            failed[name] = why
    print("seconds: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in took.items()) + f"; {sum(took.values()):.0f} in all")
    if failed:
        sys.exit("bench: " + "; ".join(f"{name} failed: {why}" for name, why in failed.items()))


if __name__ == "__main__":
    try:
        main()
    except Stopped:
        sys.exit("bench: stopped by SIGTERM")
