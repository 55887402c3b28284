# SPDX-License-Identifier: MIT
"""A network of its own beside the shared one, without and with a way out: starting a command, a request through the inspector, a
connection and a stream past it in FULL, the kernel's memory, the daemon's descriptors; and what two sandboxes that share the host's
network pass to each other without a packet.

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

FULL = {"rounds": 60, "requests": 600, "boxes": 20, "seconds": 2}
QUICK = {"rounds": 20, "requests": 200, "boxes": 10, "seconds": 1}
FORWARDS = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
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

# Connections to an echo, then a stream to a sink, in FULL.
PLAIN = """import socket, sys, time
times = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    s = socket.create_connection((sys.argv[1], 9000))
    times.append(time.perf_counter() - began)
    s.close()
times.sort()
s, data, sent = socket.create_connection((sys.argv[1], 9101)), bytes(1 << 18), 0
began = time.perf_counter()
while time.perf_counter() - began < float(sys.argv[3]):
    s.sendall(data)
    sent += len(data)
print(times[len(times) // 2] * 1e6, sent * 8 / (time.perf_counter() - began) / 1e6)
"""

# One that tells and one that reads, of two sessions: bits a second by abstract names in /proc/net/unix, and by which names are taken.
TELL = """import socket, sys, time
held, began = [], time.perf_counter()
for i in range(int(sys.argv[1])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(f"\\0{sys.argv[2]}.{i:04d}" + ("." + "x" * 60 if sys.argv[3] == "read" else ""))
    held.append(s)
print(time.perf_counter() - began, flush=True)
sys.stdin.read()
"""
HEAR = """import socket, sys, time
count, mark, bits, began = int(sys.argv[1]), sys.argv[2], 0, time.perf_counter()
if sys.argv[3] == "read":
    with open("/proc/net/unix") as f:
        bits = 8 * sum(len(line.split("@", 1)[1]) - len(mark) - 6 for line in f if f" @{mark}." in line)
else:
    for i in range(2 * count):  # half of them are taken: a bit for each
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            try:
                s.bind(f"\\0{mark}.{i:04d}")
            except OSError:
                bits += 2
print(bits, time.perf_counter() - began)
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


def memory(net, mode, count):
    """KiB of the kernel's and descriptors of the daemon's for each sandbox that stays; the shared ones beside it tell what one costs in
    any case."""
    descriptors = lambda: len(os.listdir(f"/proc/{net.daemon.process.pid}/fd"))
    before, held = kernel_kib(), descriptors()
    boxes = [Box(net.daemon, mode) for _ in range(count)]
    try:
        return (kernel_kib() - before) / count, (descriptors() - held) / count
    finally:
        for box in boxes:
            box.close()


def full(net, size):
    """(us of a connect, Mbit/s)"""
    argv = [*net.world.enter(), str(base.NETPAWL), "run", "--session", "bench/plain", "--level", "PUBLIC", "--", "python3", "-c", PLAIN, FAR[4],
            str(size["requests"] // 3), str(size["seconds"])]
    out = subprocess.run(argv, check=True, env=net.env(), stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return [float(w) for w in out.split()]


def channel(net, how, count=500):
    """Bits a second, told and heard, from a sandbox in NONE to one of another session in FULL; 0: nothing comes through."""
    mark = base.token()
    run = lambda session, level, code: [*net.world.enter(), str(base.NETPAWL), "run", "--session", session, "--level", level, "--", "python3",
                                        "-c", code, str(count), mark, how]
    told = subprocess.Popen(run("bench/tells", "SECRET", TELL), env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        telling = float(told.stdout.readline())
        out = subprocess.run(run("bench/hears", "PUBLIC", HEAR), check=True, env=net.env(), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True).stdout.split()
        return int(out[0]) / (telling + float(out[1]))
    finally:
        told.stdin.close()
        told.wait(30)


def run(quick):
    from nets import BENCH
    size, out = QUICK if quick else FULL, {}
    with contextlib.ExitStack() as stack:
        nets = {network: Inspected(stack, network=network) for network in ("shared", "private", "nat")}
        nets["nat"].world.sysctl(nets["nat"].world.host, FORWARDS)
        # In private, FULL is shared; in nat, PROXIED and NONE are private.
        starts = {(network, level): [] for network, levels in
                  (("shared", ("PUBLIC", "CONFIDENTIAL", "SECRET")), ("private", ("CONFIDENTIAL", "SECRET")), ("nat", ("PUBLIC",)))
                  for level in levels}
        for _ in range(size["rounds"]):
            for (network, level), times in starts.items():
                times.append(start_ms(nets[network], level))
        asked, plain = {network: [] for network in ("shared", "private")}, {network: [] for network in ("shared", "nat")}
        for _ in range(3):
            for network in asked:
                words = nets[network].run("python3", "-c", ASK, FAR[4], size["requests"] // 3).stdout.split()
                asked[network].append([float(w) for w in words])
            for network in plain:
                plain[network].append(full(nets[network], size))
        for network, mode in (("shared", "PROXIED"), ("private", "PROXIED")):
            kib, descriptors = memory(nets[network], mode, size["boxes"])
            out[network] = {"start_proxied_ms": statistics.median(starts[network, "CONFIDENTIAL"]),
                            "start_none_ms": statistics.median(starts[network, "SECRET"]),
                            "connect_us": statistics.median(a[0] for a in asked[network]),
                            "request_us": statistics.median(a[1] for a in asked[network]),
                            "kernel_kib": kib, "descriptors": descriptors}
        ways = {}
        for network in plain:
            kib, descriptors = memory(nets[network], "FULL", size["boxes"])
            ways[network] = {"start_full_ms": statistics.median(starts[network, "PUBLIC"]),
                             "connect_us": statistics.median(a[0] for a in plain[network]),
                             "mbit_s": statistics.median(a[1] for a in plain[network]), "kernel_kib": kib, "descriptors": descriptors}
        channels = {how: {network: channel(net, how) for network, net in nets.items()} for how in ("read", "bind")}
    rows = [[what, out["shared"][what], out["private"][what], out["private"][what] / (out["shared"][what] or 1)] for what in out["shared"]]
    show("A network of its own", ["", "shared", "private", "ratio"], rows,
         [f"{size['rounds']} starts of true and {size['requests']} requests each, in turns; medians.",
          f"kernel_kib: slabs, per-CPU areas and stacks; descriptors: the daemon's; for each of {size['boxes']} sandboxes."])
    rows = [[what, ways["shared"][what], ways["nat"][what], ways["nat"][what] / (ways["shared"][what] or 1)] for what in ways["shared"]]
    show("FULL, with a way out of its own", ["", "shared", "nat", "ratio"], rows, ["Connections past the inspector, and one stream."])
    show("NONE tells FULL, kbit/s", ["", "shared", "private", "nat"],
         [[how, *(channels[how][network] / 1e3 for network in ("shared", "private", "nat"))] for how in channels],
         ["read: abstract names in /proc/net/unix; bind: which names are taken."])
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "network.json").write_text(json.dumps({**out, "ways": ways, "channels": channels}, indent=1) + "\n")


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
