# SPDX-License-Identifier: MIT
"""What FULL costs a program: ratios to no gate at all, and ns per run of each program of the gate."""
import random
import statistics

from lib.bpf import Stats
from nets import Worker, bpf_ids, bpftool
from table import percentile, ratio, show, spread

RATIO_GOAL, NS_GOAL = 1.02, 150

# operation: (times in one turn, what it is)
OPERATIONS = {
    "connect": (60, "TCP connect+close, loopback"),
    "udp": (640, "UDP sendto, loopback"),
    "rtt": (200, "TCP round trip, loopback"),
    "rtt2": (100, "TCP round trip, loopback, two CPUs"),
    "far_connect": (60, "TCP connect+close, veth"),
    "far_udp": (640, "UDP sendto, veth"),
    "far_rtt": (200, "TCP round trip, veth"),
    "unix": (200, "unix connect+close, abstract name"),
    "unix_path": (200, "unix connect+close, path"),
}
ONLY_COUNTED = {"bind": (200, "UDP bind+close")}
GOVERNED = ("connect", "udp", "rtt", "rtt2", "far_connect", "far_udp", "far_rtt")  # what the goal is about

CONDITIONS = {
    "again": "no gate, again",
    "full": "FULL sandbox",
    "outside": "outside, same host",
    "nft": "one nft cgroup rule",
    "empty": "empty programs",
}


class Places:
    """Where workers run: {condition: (net, cgroup)}; "plain" is the peer of all the others."""

    def __init__(self, places):
        self.places = places
        self.port = 2000

    def workers(self, names=None, family=4):
        made = {}
        try:
            for name in names or self.places:
                net, cgroup = self.places[name]
                self.port += 1
                made[name] = Worker(net, cgroup, self.port, family)
        except BaseException:
            close_all(made)
            raise
        return made


def close_all(workers):
    for worker in workers.values():
        worker.close()


def ratios(places, batches, rounds):
    """Turns in a new order each round; new processes each batch, for where a process happens to lie in memory
    is worth a per cent or two."""
    wall = {op: {name: [] for name in places.places} for op in OPERATIONS}
    cpu = {op: {name: [] for name in places.places} for op in OPERATIONS}
    for _ in range(batches):
        workers = places.workers()
        try:
            for i in range(-1, rounds):
                for op, (count, _) in OPERATIONS.items():
                    for name in random.sample(list(workers), len(workers)):
                        w, c = workers[name].run(op, count)
                        if i >= 0:
                            wall[op][name].append(w)
                            cpu[op][name].append(c)
        finally:
            close_all(workers)
    out = {}
    for op in OPERATIONS:
        plain = wall[op]["plain"], cpu[op]["plain"]
        out[op] = {"plain_us": statistics.median(plain[0]), "plain_cpu_us": statistics.median(plain[1])}
        for name in CONDITIONS:
            if name in places.places:
                out[op][name] = {
                    "us": statistics.median(wall[op][name]), "wall": ratio(wall[op][name], plain[0]),
                    "cpu_us": statistics.median(cpu[op][name]), "cpu": ratio(cpu[op][name], plain[1]),
                    "best": percentile(wall[op][name], 10) / percentile(plain[0], 10)}
    return out


def report_ratios(result, boxes, rounds):
    names = [name for name in CONDITIONS if name in result["connect"]]
    rows = []
    for op, (_, text) in OPERATIONS.items():
        r = result[op]
        added = [1000 * (r["full"]["us"] - r["plain_us"]), 1000 * (r["full"]["cpu_us"] - r["plain_cpu_us"])]
        rows.append([text, r["plain_us"], round(added[0]), *[spread(r[name]["wall"]) for name in names]])
        rows.append(["  CPU", r["plain_cpu_us"], round(added[1]), *[spread(r[name]["cpu"]) for name in names]])
    over = [op for op in GOVERNED if result[op]["full"]["cpu"]["ratio"] > RATIO_GOAL]
    show(f"Cost of FULL, {boxes:,} sandboxes registered, {rounds} rounds in turns: ratio to no gate "
         "(quartiles of the rounds)",
         ["", "no gate, us", "FULL adds, ns", *[CONDITIONS[name] for name in names]], rows,
         [f"goal: FULL sandbox <= {RATIO_GOAL}: " + (f"MISSED by CPU in {', '.join(over)}" if over else "met by CPU"),
          "no gate, again: the noise, a second worker under the same condition as the first. empty programs: the least",
          "that a gate of BPF programs can cost, programs that only say yes on the same hooks."])


# -- ns per run ------------------------------------------------------------------------------------

class Counters:
    """(ns, runs) of each program that the daemon holds."""

    def __init__(self, pid):
        ids = bpf_ids(pid, "prog_id")
        names = {p["id"]: p["name"] for p in bpftool("prog", "show")}
        self.files = {names[i]: path for i, path in ids.items()}

    def read(self):
        out = {}
        for name, path in self.files.items():
            with open(path) as f:
                words = dict(line.split()[:2] for line in f)
            out[name] = int(words["run_time_ns:"]), int(words["run_cnt:"])
        return out


def turn_costs(worker, counters, op, count):
    """{program: (ns per run, runs per operation)} of one turn."""
    before = counters.read()
    worker.run(op, count)
    after = counters.read()
    done = count + count // 8 + 1  # the warm-up runs too
    deltas = {prog: (after[prog][0] - before[prog][0], after[prog][1] - before[prog][1]) for prog in after}
    return {prog: (ns / runs, runs / done) for prog, (ns, runs) in deltas.items() if runs >= done / 10}


def program_costs(places, pid, turns):
    """{operation: {program: (ns per run, runs per operation)}}, sandbox and outside, IPv4 and IPv6."""
    counters = Counters(pid)
    out = {}
    for family, name in ((4, "full"), (6, "full"), (4, "outside")):
        workers = places.workers([name], family)
        try:
            with Stats():
                for op, (count, _) in {**OPERATIONS, **ONLY_COUNTED}.items():
                    if op == "rtt2" or (op.startswith("unix") and family == 6):
                        continue
                    turn = [turn_costs(workers[name], counters, op, count) for _ in range(turns + 1)][1:]
                    label = op + ("6" if family == 6 else "") + (" outside" if name == "outside" else "")
                    out[label] = {prog: {"ns": statistics.median(t[prog][0] for t in turn if prog in t),
                                         "per_op": statistics.median(t[prog][1] for t in turn if prog in t)}
                                  for prog in set().union(*turn)}
        finally:
            close_all(workers)
    return out


def empty_cost(places, empty, turns):
    """What the kernel's own statistics say of such programs: the clock reads are in every figure."""
    workers = places.workers(["empty"])
    seen = [empty.ask("")]
    try:
        with Stats():
            for _ in range(turns):
                workers["empty"].run("udp", OPERATIONS["udp"][0])
                seen.append(empty.ask(""))
    finally:
        close_all(workers)
    return statistics.median((b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(seen, seen[1:]))


def worst(costs):
    """{program: (worst ns, its operation, mean ns over the operations)}"""
    out = {}
    for op, programs in costs.items():
        for prog, c in programs.items():
            seen = out.setdefault(prog, {"ns": 0, "op": "", "all": []})
            seen["all"].append(c["ns"])
            if c["ns"] > seen["ns"]:
                seen["ns"], seen["op"] = c["ns"], op
    return out


def report_programs(by_boxes, floor):
    """by_boxes: {sandboxes registered: program_costs()}"""
    counts = sorted(by_boxes)
    worsts = {n: worst(by_boxes[n]) for n in counts}
    last = worsts[counts[-1]]
    rows = []
    for prog in sorted(last, key=lambda p: -last[p]["ns"]):
        cells = [worsts[n].get(prog) for n in counts]
        top = max(c["ns"] for c in cells if c)
        rows.append([prog, *[c and round(statistics.mean(c["all"])) for c in cells],
                     *[c and round(c["ns"]) for c in cells], last[prog]["op"], round(last[prog]["ns"] - floor),
                     "met" if top <= NS_GOAL else "MISSED"])
    show(f"ns per run of each program, by the kernel's statistics (goal {NS_GOAL} ns or less)",
         ["", *[f"mean@{n:,}" for n in counts], *[f"worst@{n:,}" for n in counts], "worst at", "less floor", "goal"],
         rows, [f"floor: an empty program counts {floor:.0f} ns, the price of reading the clock twice."])
    rows = []
    for op, programs in by_boxes[counts[-1]].items():
        total = sum(c["ns"] * c["per_op"] for c in programs.values())
        parts = ", ".join(f"{prog[3:]} {c['per_op']:.0f}x{c['ns']:.0f}" if c["per_op"] >= .95 else
                          f"{prog[3:]} {c['per_op']:.1f}x{c['ns']:.0f}"
                          for prog, c in sorted(programs.items(), key=lambda x: -x[1]["ns"] * x[1]["per_op"]))
        rows.append([op, round(total), parts or "none"])
    show(f"Where it goes: ns of the gate per operation, {counts[-1]:,} sandboxes registered",
         ["", "ns per op", "runs x ns"], rows)
