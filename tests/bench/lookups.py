#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the DNS gate costs, beside dnsmasq that answers by itself, asked by the same client in turns.

    NETPAWL_BUILD=build tests/bench/lookups.py [--quick]

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/dns.json.

A sandbox may ask NP_QUERY_BURST at once and NP_QUERY_RATE a second after that, so each turn is a burst below that, and
then there is a pause.
"""
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from alone import alone  # noqa: E402
from lib import base  # noqa: E402
from lib.daemon import Daemon  # noqa: E402

from nets import BENCH, SOURCES, Net, Program, install  # noqa: E402
from origin import cpu_ns, rss_kib, tree  # noqa: E402
from table import show  # noqa: E402

FULL = {"rounds": 15, "names": 10000, "quiet": 7, "seconds": 90}
QUICK = {"rounds": 4, "names": 10000, "quiet": 3, "seconds": 45}
BURST, WINDOW, KNOWN, ALONE = 800, 32, 100, 300
SERVER = "198.51.100.53"  # whom the sandboxes name; nobody is there
RATE = 2000  # NP_QUERY_RATE
POLICY = 'version: 1\nrules:\n  - allow: "*.bench.test"\n' + base.PERMITS
DNSMASQ = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=", "--user=root",
           "--port=53", "--listen-address=127.0.0.1", "--bind-interfaces", "--address=/bench.test/192.0.2.77",
           "--address=/flood.test/", "--local-ttl=30"]


class Peer:
    """One client for measuring, one that floods, and the processes that serve them."""

    def __init__(self, stack, client, flooder, pids):
        self.client, self.flooder, self.pids = client, flooder, pids
        stack.callback(client.close)
        stack.callback(flooder.close)

    def ask(self, count, window, first=1, names=KNOWN):
        before = cpu_ns(self.pids())
        answered, lost, ns, p50, p99 = self.client.ask(f"ask {count} {window} {first} {names}")
        if not answered:
            raise RuntimeError(f"none of {count} queries was answered")
        return {"rate": answered / ns * 1e9, "p50": p50 / 1000, "p99": p99 / 1000, "lost": lost,
                "cpu_us": (cpu_ns(self.pids()) - before) / answered / 1000}

    def flooded(self, f, ms):
        """What f() answers while the other client floods, and how much that sent and was refused. Where many want the CPUs it takes
        longer: then the flood does, too."""
        for ms in (ms, 4 * ms, 16 * ms):
            counts = []
            thread = threading.Thread(target=lambda: counts.extend(self.flooder.ask(f"flood {ms}")))
            thread.start()
            time.sleep(0.1)
            got = f()
            alive = thread.is_alive()
            thread.join()
            if alive:
                return got, counts
        raise RuntimeError("the flood ended before the measurement")


class Scene:
    def __init__(self, stack):
        self.stack, self.net, self.dir = stack, Net("dns"), base.tempdir("dns")
        stack.callback(self.net.close)
        stack.callback(base.drop_tempdir, self.dir)
        (self.dir / "policy.yaml").write_text(POLICY)
        self.daemon = Daemon(self.net, policy=self.dir / "policy.yaml", inspectors=1, more=["--resolvers", "127.0.0.1:1"])
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api = self.daemon.api
        base.eventually(lambda: self.api.health()["inspectors"] == 1, 10)
        dnsmasq = base.popen([*self.net.enter(), *DNSMASQ], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(base.reap, dnsmasq)
        if not base.eventually(lambda: ":53 " in base.sh(*self.net.enter(), "ss", "-Hlun").stdout, 5):
            raise RuntimeError("dnsmasq does not start")
        plain = lambda: Program(*self.net.enter(), BENCH / "queries", "127.0.0.1")
        self.peers = {"netpawl": Peer(stack, self.sandbox("bench/quiet"), self.sandbox("bench/flood"), self.pids),
                      "dnsmasq": Peer(stack, plain(), plain(), lambda: [dnsmasq.pid])}

    def sandbox(self, session):
        self.api.create(session, "CONFIDENTIAL")
        return Program(*self.net.enter(), base.NETPAWL, "run", *base.shown(), "--socket", self.daemon.socket, "--session", session, "--",
                       BENCH / "queries", SERVER)

    def pids(self):
        """The daemon, which gives names their addresses, and the worker."""
        return tree(self.api.health()["pid"])


def in_turns(scene, size):
    samples = {word: {"load": [], "alone": []} for word in scene.peers}
    for peer in scene.peers.values():
        peer.ask(KNOWN, 1)  # names that are known from here on
    for _ in range(size["rounds"]):
        for word in random.sample(list(scene.peers), len(scene.peers)):
            samples[word]["load"].append(scene.peers[word].ask(BURST, WINDOW))
            time.sleep(BURST / RATE)
            samples[word]["alone"].append(scene.peers[word].ask(ALONE, 1))
            time.sleep(ALONE / RATE)
    return samples


def new_names(scene, size):
    """Names that nobody has asked for: rates, and KiB for 10,000 of them, in the daemon and in one worker."""
    before, rows, made = rss_kib(scene.pids()), [], 0
    while made < size["names"]:
        with contextlib.ExitStack() as stack:
            session = f"bench/names{made}"
            peer = Peer(stack, scene.sandbox(session), scene.sandbox(session), scene.pids)
            for first in range(1, 5000, BURST):
                count = min(BURST, 5001 - first, size["names"] - made)
                rows.append(peer.ask(count, WINDOW, first, count))
                made += count - rows[-1]["lost"]
                time.sleep(count / RATE)
            scene.stack.enter_context(stack.pop_all())  # its names stay
    return rows, (rss_kib(scene.pids()) - before) * 10000 / made


def quiet(scene, size):
    """One who asks now and then, alone and while another sandbox floods. (dnsmasq, which bounds nobody, answers hardly
    anything then.)"""
    peer, rows = scene.peers["netpawl"], []
    for _ in range(size["quiet"]):
        alone = peer.ask(ALONE, 1)
        flooded, (sent, refused) = peer.flooded(lambda: peer.ask(ALONE, 1), 1500)
        rows.append({"alone": alone, "flooded": flooded, "sent": sent, "refused": refused})
        time.sleep(0.5)
    return rows


def median(rows, what):
    return statistics.median(row[what] for row in rows)


def report(samples, fresh, kib, floods):
    peers = list(samples)
    line = lambda text, kind, what: [text, *[median(samples[w][kind], what) for w in peers]]
    flood = lambda text, f: [text, float(statistics.median(f(r) for r in floods)), None]
    ratio = median(samples["netpawl"]["load"], "rate") / median(samples["dnsmasq"]["load"], "rate")
    rows = [line(f"{WINDOW} at a time: queries/s", "load", "rate"), line("  p50, us", "load", "p50"), line("  p99, us", "load", "p99"),
            line("  CPU us/query", "load", "cpu_us"), line("one at a time: p50, us", "alone", "p50"),
            line("  p99, us", "alone", "p99"),
            ["names that are new: queries/s", median(fresh, "rate"), None], ["  p99, us", median(fresh, "p99"), None],
            ["KiB for 10,000 names", float(kib), None],
            flood("while another floods: p50 / p50 alone", lambda r: r["flooded"]["p50"] / r["alone"]["p50"]),
            flood("  p99 / p99 alone", lambda r: r["flooded"]["p99"] / r["alone"]["p99"]),
            flood("  queries of the flood, thousands", lambda r: (r["sent"] + r["refused"]) / 1000),
            flood("  of which came through", lambda r: r["sent"] / 1000)]
    lost = sum(r["lost"] for w in peers for kind in samples[w].values() for r in kind) + sum(r["lost"] for r in fresh)
    notes = [f"queries/s of netpawl / of dnsmasq: {ratio:.2f}; {lost} queries were lost."]
    show("DNS: medians of bursts in turns; one worker each", ["", *peers], rows, notes)
    return ratio


def run(quick):
    missing = install(["dnsmasq-base"])
    if missing:
        print("bench: dnsmasq-base cannot be installed: the DNS gate is not measured")
        return None
    BENCH.mkdir(parents=True, exist_ok=True)
    base.sh("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-o", BENCH / "queries", SOURCES / "queries.c",
            timeout=60)
    started, size = time.monotonic(), QUICK if quick else FULL
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        samples = in_turns(scene, size)
        floods = quiet(scene, size)
        fresh, kib = new_names(scene, size)
    ratio = report(samples, fresh, kib, floods)
    out = {"quick": quick, "load": os.getloadavg()[0], "seconds": time.monotonic() - started, "ratio": ratio,
           "kib_per_10000_names": kib, "samples": samples, "new": fresh, "flood": floods}
    (BENCH / "dns.json").write_text(json.dumps(out, indent=1) + "\n")
    print(f"{out['seconds']:.0f} s; {BENCH / 'dns.json'}")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
