# SPDX-License-Identifier: MIT
"""A network of its own beside the shared one: starting a command, a request through the inspector, and the kernel's memory.

    NETPAWL_BUILD=build tests/bench/network.py [--quick]
"""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.box import Box  # noqa: E402
from lib.inspected import Inspected  # noqa: E402
from lib.world import FAR  # noqa: E402
from table import show  # noqa: E402

FULL = {"rounds": 60, "requests": 600, "boxes": 20}
QUICK = {"rounds": 20, "requests": 200, "boxes": 10}
ASK = """import socket, sys, time
times = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    s = socket.create_connection((sys.argv[1], 80))
    connected = time.perf_counter()
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: close\\r\\n\\r\\n")
    while s.recv(65536):
        pass
    s.close()
    times.append((connected - began, time.perf_counter() - began))
times.sort()
print(times[len(times) // 2][0] * 1e6, sorted(t[1] for t in times)[len(times) // 2] * 1e6)
"""


def kernel_kib():
    """What the kernel has allocated for itself: slabs, and per-CPU areas, of which namespaces take most."""
    with open("/proc/meminfo") as f:
        lines = dict(line.split(":") for line in f)
    return sum(int(lines[key].split()[0]) for key in ("Slab", "Percpu", "KernelStack"))


def start_ms(net, level):
    began = time.perf_counter()
    subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--session", f"bench/{level.lower()}", "--level", level, "--", "true"],
                   check=True, env=net.env(), stdin=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def memory_kib(net, count):
    """For each sandbox that stays; the shared ones beside it tell what a sandbox costs in any case."""
    before = kernel_kib()
    boxes = [Box(net.daemon, "PROXIED") for _ in range(count)]
    try:
        return (kernel_kib() - before) / count
    finally:
        for box in boxes:
            box.close()


def run(quick):
    from nets import BENCH
    size, out = QUICK if quick else FULL, {}
    with contextlib.ExitStack() as stack:
        nets = {network: Inspected(stack, network=network) for network in ("shared", "private")}
        starts = {(network, level): [] for network in nets for level in ("CONFIDENTIAL", "SECRET")}
        for _ in range(size["rounds"]):
            for (network, level), times in starts.items():
                times.append(start_ms(nets[network], level))
        asked = {network: [] for network in nets}
        for _ in range(3):
            for network, net in nets.items():
                words = net.run("python3", "-c", ASK, FAR[4], size["requests"] // 3).stdout.split()
                asked[network].append([float(w) for w in words])
        for network, net in nets.items():
            out[network] = {"start_proxied_ms": statistics.median(starts[network, "CONFIDENTIAL"]),
                            "start_none_ms": statistics.median(starts[network, "SECRET"]),
                            "connect_us": statistics.median(a[0] for a in asked[network]),
                            "request_us": statistics.median(a[1] for a in asked[network]),
                            "kernel_kib": memory_kib(net, size["boxes"])}
    rows = [[what, out["shared"][what], out["private"][what], out["private"][what] / out["shared"][what]] for what in out["shared"]]
    show("A network of its own", ["", "shared", "private", "ratio"], rows,
         [f"{size['rounds']} starts of true and {size['requests']} requests each, in turns; medians.",
          f"kernel_kib: slabs, per-CPU areas and stacks for each of {size['boxes']} sandboxes."])
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "network.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
