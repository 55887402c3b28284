#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What requests that wait for a person cost another sandbox: its requests with 1,000 held in some beside it, and with none.

    NETPAWL_BUILD=build tests/bench/held.py [--quick]     this part alone
"""
import contextlib
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.asked import Asked  # noqa: E402
from alone import alone  # noqa: E402
from nets import BENCH, CLIENT  # noqa: E402
from table import show, summary  # noqa: E402

PER_SANDBOX = 250  # of those that are held: half of what one may have
FULL = {"requests": 3000, "rounds": 3, "held": 1000, "seconds": 180}
QUICK = {"requests": 500, "rounds": 1, "held": 1000, "seconds": 60}
POLICY = """version: 1
levels: {PUBLIC: proxied, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 10m, timeout: 15m}
rules:
  - allow: open.origin.test
  - ask: "**.origin.test"
"""
# Sixteen hosts, so that there are as many questions, until the input ends.
HOLD = """
import socket, sys
held = []
for i in range(int(sys.argv[1])):
    host = f"held{i % 16}.origin.test"
    s = socket.create_connection((host, 80), 60)
    s.sendall(f"GET /{i} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    held.append(s)
print("held", flush=True)
sys.stdin.read()
"""


def fetch(net, session, count):
    done = subprocess.run(net.argv(base.PYTHON, "-c", CLIENT, "/", str(count), "open.origin.test", session=session), capture_output=True, text=True,
                          timeout=300, env=net.env(), stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)["open.origin.test"]


def waiting(net, sessions):
    return sum(q["waiting"] for session in sessions for q in net.questions(session))


@contextlib.contextmanager
def holding(net, count):
    """count requests are held, of as many sandboxes as that takes, each of a session of its own."""
    sessions = [net.fresh() for _ in range(count // PER_SANDBOX)]
    with contextlib.ExitStack() as stack:
        holders = []
        for session in sessions:
            holders.append(base.popen(net.argv(base.PYTHON, "-c", HOLD, str(PER_SANDBOX), session=session), env=net.env(),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            stack.callback(base.reap, holders[-1])
            stack.callback(net.api.end, session)
        if any(p.stdout.readline() != "held\n" for p in holders) or not base.eventually(lambda: waiting(net, sessions) == count, 60):
            raise RuntimeError(f"{waiting(net, sessions)} of {count} are held")
        yield
        if waiting(net, sessions) != count:
            raise RuntimeError("they did not wait as long as was measured")


def measure(sizes):
    found = {"none": [], "held": []}
    with contextlib.ExitStack() as stack:
        net = Asked(stack, policy=POLICY)
        other = net.fresh()
        for _ in range(sizes["rounds"]):  # in turns: the machine's own pace is in both
            found["none"] += fetch(net, other, sizes["requests"])
            with holding(net, sizes["held"]):
                found["held"] += fetch(net, other, sizes["requests"])
    return {name: summary(took) for name, took in found.items()}


def run(quick):
    sizes = QUICK if quick else FULL
    found = measure(sizes)
    none, held = found["none"], found["held"]
    show(f"Another sandbox beside {sizes['held']:,} requests that wait for a person: microseconds of its requests", ["", *(by := ("p10", "p50", "p99"))],
         [["nothing held", *(none[p] for p in by)], [f"{sizes['held']:,} held", *(held[p] for p in by)], ["ratio", *(held[p] / none[p] for p in by)]])
    BENCH.mkdir(parents=True, exist_ok=True)
    out = {"quick": quick, "load": os.getloadavg()[0], "requests": found}
    (BENCH / "held.json").write_text(json.dumps(out, indent=1) + "\n")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
