#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the inspector costs, beside other TLS-terminating proxies in front of the same origin, in turns.

    NETPAWL_BUILD=build tests/bench/inspection.py [--quick]

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/inspect.json. (Not inspect.py: that is a module
of Python's library.)
"""
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from alone import alone  # noqa: E402
from lib import base  # noqa: E402

from nets import BENCH, SOURCES, Net, install  # noqa: E402
from origin import LARGE, LARGE_BYTES, NAME, PLACE, SMALL, Scene, cpu_ns, rss_kib  # noqa: E402
from table import show  # noqa: E402

FULL = {"rounds": 7, "load_ms": 600, "fresh_ms": 500, "latency_ms": 400, "idle": 500, "streams": 6000, "seconds": 300}
QUICK = {"rounds": 2, "load_ms": 400, "fresh_ms": 300, "latency_ms": 300, "idle": 200, "streams": 3000, "seconds": 100}
CONNECTIONS, PARALLEL, STREAMS, FEW = 32, 4, 32, 8
SLOW = ("squid", "mitmproxy")  # measured in every second round
NEIGHBOUR, GREEDY = "bench/neighbour", base.TESTS / "e2e/lib/probes/greedy.py"
FLOODS = {"neighbour": [], "neighbour of a flood that leaves the CPU to others": ["chrt", "--idle", "0"]}
PACKAGES = ["nginx-light", "nghttp2-client", "libssl-dev", "openssl"]


class Measure:
    """Rounds of one kind of load: {peer: [{what: number}, ...]}"""

    def __init__(self, scene, size):
        self.scene, self.size, self.samples, self.failed = scene, size, {}, []

    def around(self, peer, f):
        """What f() answers, and the CPU of the proxy and of the daemon behind it meanwhile, ns."""
        pids, extra = peer.pids(), peer.extra_pids()
        before, before_extra = cpu_ns(pids), cpu_ns(extra)
        got = f()
        time.sleep(0.005)
        return got, cpu_ns(pids) - before, cpu_ns(extra) - before_extra

    def note(self, kind, peer, **values):
        self.samples.setdefault(kind, {}).setdefault(peer.word, []).append(values)

    def check(self, kind, peer, got):
        if got[1] or not got[0]:
            self.failed.append(f"{kind} {peer.word}: {got[1]} of {got[0] + got[1]} failed")
        return bool(got[0])

    def keep(self, peer):
        client = peer.client(self.scene.net, "keep")
        client.ask(f"open {CONNECTIONS} {SMALL}")
        client.ask("load 50")
        got, cpu, extra = self.around(peer, lambda: client.ask(f"load {self.size['load_ms']}"))
        client.ask("close")
        if self.check("keep", peer, got):
            self.note("keep", peer, rate=got[0] / got[2] * 1e9, cpu_us=cpu / got[0] / 1000,
                      daemon_us=extra / got[0] / 1000)

    def latency(self, peer):
        client = peer.client(self.scene.net, "keep")
        client.ask(f"open 1 {SMALL}")
        got, cpu, _ = self.around(peer, lambda: client.ask(f"load {self.size['latency_ms']}"))
        client.ask("close")
        if self.check("latency", peer, got):
            self.note("latency", peer, p50=got[4] / 1000, p99=got[5] / 1000, cpu_us=cpu / got[0] / 1000)

    def neighbour(self, kind, words):
        """The same one connection, alone and beside another session's sandbox that floods the same worker. nginx, which the
        flood does not go through, shows what that costs because the machine is busy. words: before the command that floods; with a
        priority that leaves the CPU to everybody else, what is left is what the worker makes of it."""
        peer, ms = self.scene.peers["netpawl"], self.size["latency_ms"]
        api, alone, beside = peer.daemon.api, {}, {}
        clients = {p: p.client(self.scene.net, "keep") for p in self.scene.peers.values() if p.word in ("netpawl", "nginx")}
        for each, client in clients.items():
            client.ask(f"open 1 {SMALL}")
            alone[each] = client.ask(f"load {ms}")
        if not any(s["session"] == NEIGHBOUR for s in api.sessions()):
            api.create(NEIGHBOUR, "CONFIDENTIAL")
        greedy = base.popen([*self.scene.net.enter(), *peer.enter(NEIGHBOUR), *words, base.PYTHON, GREEDY, PLACE[NAME]],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=base.env())
        try:
            for line in ("flood 8 32\n", "count\n"):
                greedy.stdin.write(line)
                greedy.stdin.flush()
                greedy.stdout.readline()
            time.sleep(0.3)
            for each, client in clients.items():
                beside[each] = client.ask(f"load {ms}")
        finally:
            base.reap(greedy)
        for each, client in clients.items():
            client.ask("close")
            a, b = alone[each], beside[each]
            if self.check(kind, each, a) and self.check(kind, each, b):
                self.note(kind, each, p50=b[4] / a[4], p99=b[5] / a[5], p99_us=b[5] / 1000)

    def fresh(self, peer, kind, way, path, resume=0):
        client = peer.client(self.scene.net, way)
        client.ask(f"fresh 30 {PARALLEL} {resume} {path}")
        got, cpu, extra = self.around(
            peer, lambda: client.ask(f"fresh {self.size['fresh_ms']} {PARALLEL} {resume} {path}"))
        if self.check(kind, peer, got):
            self.note(kind, peer, rate=got[0] / got[2] * 1e9, cpu_ms=cpu / got[0] / 1e6, daemon_ms=extra / got[0] / 1e6,
                      resumed=got[4] / got[0])

    def bulk(self, peer, way="keep", kind="bulk"):
        client = peer.client(self.scene.net, way)
        got, cpu, _ = self.around(peer, lambda: client.ask(f"bulk {LARGE}"))
        if self.check(kind, peer, [got[0] == LARGE_BYTES, got[1]]):
            self.note(kind, peer, mbs=got[0] / got[2] * 1000, cpu_s_gb=cpu / got[0])

    def h2(self, peer, way):
        address, port, name = peer.ways[way]
        load = lambda n: base.sh(*self.scene.net.enter(), *peer.enter(), "h2load", "-t", "1", "-c", "4", "-m", STREAMS, "-n", n,
                                 f"--connect-to={address}:{port}", f"https://{name}{SMALL}", check=False, timeout=60)
        load(8 * STREAMS)  # what is open to the origin from the last round is not the same for everybody: each has its own time-out
        p, cpu, extra = self.around(peer, lambda: load(self.size["streams"]))
        done = re.search(r"(\d+) succeeded, (\d+) failed", p.stdout)
        rate = re.search(r"finished in ([\d.]+)(s|ms|us), ([\d.]+) req/s", p.stdout)
        got = [int(done[1]), int(done[2])] if done else [0, 1]
        if self.check(way, peer, got) and rate:
            self.note(way, peer, rate=float(rate[3]), cpu_us=cpu / got[0] / 1000, daemon_us=extra / got[0] / 1000)

    def memory(self, peer):
        """KiB for each connection, on a proxy that has just started: idle ones of clients, opened a few at a time, so that
        their upstreams are pooled where the proxy does that; then ones whose request waits at the origin, so that each
        has an upstream of its own."""
        client, n = peer.client(self.scene.net, "keep"), self.size["idle"]
        client.ask(f"open {FEW} {SMALL}")
        values, pids = {}, peer.pids()
        for kind, commands in {"idle": [f"open {FEW} {SMALL}"] * (n // FEW), "waiting": [f"hold {n} /hold"]}.items():
            before, opened = rss_kib(pids), 0
            for command in commands:
                got = client.ask(command)
                opened += got[0] if self.check(f"memory {kind}", peer, got) else 0
            time.sleep(0.7)
            values[kind] = (rss_kib(pids) - before) / (opened or 1)
        client.ask("close")
        self.note("memory", peer, **values)

    def round(self, number):
        every = list(self.scene.peers.values())
        peers = [p for p in every if number % 2 == 0 or p.word not in SLOW]
        h1 = [p for p in peers if "keep" in p.ways]
        turn = lambda group: random.sample(group, len(group))
        for peer in turn(h1):
            self.keep(peer)
        for kind, way, path, resume in (("pooled", "keep", SMALL, 0), ("pooled, client resumes", "keep", SMALL, 1),
                                        ("upstream resumes", "resumed", "/once", 0), ("full", "full", SMALL, 0)):
            for peer in turn([p for p in h1 if way in p.ways]):
                self.fresh(peer, kind, way, path, resume)
        for peer in turn(h1):
            self.latency(peer)
        for kind, words in FLOODS.items():
            self.neighbour(kind, words)
        for peer in turn(h1):
            self.bulk(peer)
        self.bulk(self.scene.peers["netpawl"], "raw", "raw")
        for way in ("h2", "h2 to h1"):
            for peer in turn([p for p in peers if way in p.ways]):
                self.h2(peer, way)

    def run(self):
        for peer in self.scene.peers.values():
            if peer.pids() and "keep" in peer.ways:
                self.memory(peer)  # first: later the allocator has room to spare
        for number in range(self.size["rounds"]):
            self.round(number)

    def result(self):
        """Medians: {kind: {peer: {what: number}}}"""
        return {kind: {word: {what: statistics.median(row[what] for row in rows if what in row)
                              for what in rows[0]} for word, rows in peers.items()}
                for kind, peers in self.samples.items()}


def report(result, titles, notes):
    peers = [word for word in titles if word in result.get("keep", {}) or word in result.get("h2", {})]

    def line(text, kind, what, way=None):
        of = result.get(kind, {})
        cells = []
        for word in peers:
            value = of.get(word, {}).get(what)
            if value is not None and way:
                value = way(value, of)
            cells.append(value if value is None or isinstance(value, str) else float(value))
        return [text, *cells]

    def ratio(what):
        return lambda value, of: value / of["direct"][what] if "direct" in of else None

    def mine(what):  # the proxy's: there is none in the direct way
        return lambda value, of: None if value == 0 else value

    added = lambda what: lambda value, of: value - of["direct"][what]
    rows = [line("32 kept connections, 1 KiB: rate vs direct", "keep", "rate", ratio("rate")),
            line("  CPU us/request", "keep", "cpu_us", mine("cpu_us")),
            line("  and of the daemon", "keep", "daemon_us", mine("daemon_us")),
            line("one kept connection: added p50, us", "latency", "p50", added("p50")),
            line("  added p99, us", "latency", "p99", added("p99")),
            line("  CPU us/request", "latency", "cpu_us", mine("cpu_us"))]
    for kind, text in {"pooled": "new connection a request: rate vs direct",
                       "pooled, client resumes": "the same, client resumes: rate vs direct",
                       "upstream resumes": "upstream new, resumed: rate vs direct",
                       "full": "full double handshake: rate vs direct"}.items():
        rows.append(line(text, kind, "rate", ratio("rate")))
        rows.append(line("  CPU ms/connection", kind, "cpu_ms", mine("cpu_ms")))
    rows += [line("100 MiB: MB/s vs direct", "bulk", "mbs", ratio("mbs")),
             line("  CPU s/GB", "bulk", "cpu_s_gb", mine("cpu_s_gb")),
             line("HTTP/2 to HTTP/2: rate vs direct", "h2", "rate", ratio("rate")),
             line("  CPU us/request", "h2", "cpu_us", mine("cpu_us")),
             line("HTTP/2 to HTTP/1.1: CPU us/request", "h2 to h1", "cpu_us", mine("cpu_us")),
             line("KiB for an idle connection of a client", "memory", "idle"),
             line("KiB for one that waits, both sides open", "memory", "waiting")]
    raw, bulk = result.get("raw", {}).get("netpawl"), result.get("bulk", {})
    if raw and "direct" in bulk:
        notes = [f"netpawl, `inspect: false`: {raw['mbs'] / bulk['direct']['mbs']:.2f} of direct, "
                 f"{raw['cpu_s_gb']:.2f} CPU s/GB.", *notes]
    for kind in reversed(FLOODS):
        beside = result.get(kind, {})
        if "netpawl" not in beside:
            continue
        times = {word: f"p50 {of['p50']:.1f} times, p99 {of['p99']:.1f} times ({of['p99_us']:.0f} us)"
                 for word, of in beside.items()}
        notes = [f"{kind}: netpawl, one kept connection: {times['netpawl']} what it is alone; nginx, which is not flooded, on the "
                 f"same busy machine: {times.get('nginx')}.", *notes]
    show("HTTPS through a proxy: TLS 1.3, P-256; medians of rounds in turns; one worker each",
         ["", *[titles[word] for word in peers]], rows, notes)


def goals(result):
    """CPU of netpawl beside nginx's: below 1 is cheaper."""
    lines = []
    for kind, what, text in (("keep", "cpu_us", "request"), ("pooled", "cpu_ms", "connection, pooled upstream"),
                             ("upstream resumes", "cpu_ms", "connection, resumed upstream"),
                             ("full", "cpu_ms", "connection, full"), ("bulk", "cpu_s_gb", "byte"),
                             ("h2 to h1", "cpu_us", "HTTP/2 request")):
        of = result.get(kind, {})
        if "nginx" in of and "netpawl" in of:
            lines.append(f"{text} {of['netpawl'][what] / of['nginx'][what]:.2f}")
    of = result.get("h2", {})
    if "nghttpx" in of and "netpawl" in of:
        lines.append(f"(of nghttpx's) HTTP/2 request {of['netpawl']['cpu_us'] / of['nghttpx']['cpu_us']:.2f}")
    return "CPU of netpawl's inspector / of nginx's: " + "; ".join(lines)


def build():
    BENCH.mkdir(parents=True, exist_ok=True)
    base.sh("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-o", BENCH / "https",
            SOURCES / "https.c", "-lssl", "-lcrypto", timeout=60)


def run(quick):
    missing = install(PACKAGES)
    if missing:
        print(f"bench: {', '.join(missing)} cannot be installed: the inspector is not measured")
        return None
    build()
    started = time.monotonic()
    size = QUICK if quick else FULL
    with contextlib.ExitStack() as stack:
        net = Net("inspect")
        stack.callback(net.close)
        scene = Scene(stack, net)
        measure = Measure(scene, size)
        measure.run()
        titles = {word: peer.title for word, peer in scene.peers.items()}
        result = measure.result()
        notes = [goals(result), "nginx and netpawl verify the origin; nobody but netpawl's daemon logs.",
                 *[f"skipped: {text}" for text in scene.skipped], *[f"failed: {text}" for text in measure.failed[:10]]]
    report(result, titles, notes)
    out = {"quick": quick, "load": os.getloadavg()[0], "seconds": time.monotonic() - started, "medians": result,
           "samples": measure.samples, "skipped": scene.skipped, "failed": measure.failed}
    (BENCH / "inspect.json").write_text(json.dumps(out, indent=1) + "\n")
    print(f"{out['seconds']:.0f} s; {BENCH / 'inspect.json'}")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
