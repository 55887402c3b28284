#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What followers of events cost the daemon: CPU time of an event with none and with five, and so of a thousand events a second.

    NETPAWL_BUILD=build tests/bench/followers.py [--quick]

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/followers.json.
"""
import contextlib
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from alone import alone  # noqa: E402
from lib import base  # noqa: E402
from lib.inspected import Inspected  # noqa: E402
from lib.loads import Load  # noqa: E402

from nets import BENCH  # noqa: E402
from origin import cpu_ns  # noqa: E402
from table import show  # noqa: E402

FULL = {"rounds": 4, "seconds": 90}
QUICK = {"rounds": 2, "seconds": 45}
FOLLOWERS, REQUESTS = (0, 1, 5), 2000  # of each of two threads; below the burst that is told one by one


def lines(path):
    with open(path, "rb") as f:
        return sum(1 for _ in f)


def turn(net, folder, followers):
    """(CPU microseconds of the daemon for an event, events): with so many who have each of them at the end."""
    files = [folder / f"{i}" for i in range(followers)]
    with contextlib.ExitStack() as stack:
        for file in files:
            out = stack.enter_context(open(file, "wb"))
            stack.callback(base.reap, subprocess.Popen([str(base.NETPAWL), "--socket", str(net.daemon.socket), "events", "--follow", "--json"],
                                                       stdout=out))
        health = net.api.health()

        def begun():  # whoever has an event of these
            net.api.create(f"bench/followers-{net.api.health()['events']}")
            return all(lines(f) for f in files)

        if not base.eventually(begun, 20):
            raise RuntimeError("a follower does not begin")
        events, cpu, seen = net.api.health()["events"], cpu_ns([health["pid"]]), [lines(f) for f in files]
        with Load(net, url="http://origin.test/followed", threads=2, count=REQUESTS, body=10, stay=True) as load:
            load.seen()
            load.counts()
            came = net.api.health()["events"] - events
            if not base.eventually(lambda: all(lines(f) - s >= came for f, s in zip(files, seen)), 20):
                raise RuntimeError("a follower has not got every event")
            return (cpu_ns([health["pid"]]) - cpu) / came / 1000, came


def measure(sizes):
    found = {n: [] for n in FOLLOWERS}
    with contextlib.ExitStack() as stack:
        folder = base.tempdir("followers")
        stack.callback(base.drop_tempdir, folder)
        net = Inspected(stack)
        for _ in range(sizes["rounds"]):
            for n in FOLLOWERS:
                found[n].append(turn(net, folder, n)[0])
    return found


def run(quick):
    found = measure(QUICK if quick else FULL)
    rows = [[n, min(us), max(us), min(us) / 10] for n, us in found.items()]
    show("Followers of events: CPU of netpawld, with what it does for the event itself", ["followers", "us an event", "at most", "% of a core at 1,000/s"], rows, [])
    BENCH.mkdir(parents=True, exist_ok=True)
    out = {"quick": quick, "load": os.getloadavg()[0], "us_per_event": found}
    (BENCH / "followers.json").write_text(json.dumps(out, indent=1) + "\n")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
