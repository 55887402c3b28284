# SPDX-License-Identifier: MIT
"""What a restart of the daemon takes, with few and with many sandboxes: until it is ready, until a name is answered inside a
sandbox, and how many inspectors died of it; and what health and the list take. The peer is the daemon itself, with one
sandbox, in the same run.

    NETPAWL_BUILD=build tests/bench/restart.py [--quick]     this part alone
"""
import contextlib
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.crowd import Crowd  # noqa: E402
from table import show  # noqa: E402

FULL = {"at": {1: 5, 500: 3, 4000: 1, 10000: 1}, "seconds": 400}  # sandboxes: rounds
QUICK = {"at": {1: 3, 200: 2}, "seconds": 60}
GROW_SECONDS = 90  # what making them may take
POLICY = "version: 1\nrules:\n  - allow: name.test\n"

# Asks for one name for ever, and says when it was answered: whoever waits 5 s for a lost query measures his own patience.
ASKS = r"""
import socket, struct, sys, time
query = struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\x04name\x04test\0" + struct.pack("!HH", 1, 1)
while True:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.03)
    try:
        s.sendto(query, ("198.51.100.10", 53))
        s.recv(512)
        print(time.monotonic(), flush=True)
    except OSError:
        pass
    s.close()
    time.sleep(0.005)
"""


def restart(daemon, asks, how):
    """Milliseconds from the start of the process: ready, and a name answered; and how many inspectors ended."""
    getattr(daemon, how)()
    began = time.monotonic()
    daemon.start()
    ready = time.monotonic()
    answered = base.eventually(lambda: next((t for t in asks() if t > began), None), 60, 0.005)
    time.sleep(3)  # deaths come late
    deaths = [line for line in daemon.text().splitlines() if "inspector" in line and " ended: " in line]
    assert answered, daemon.text()[-2000:]
    return {"ready": (ready - began) * 1e3, "name": (answered - began) * 1e3, "deaths": len(deaths)}


def call_ms(api, path, rounds=20):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        api.ok("GET", path)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def once(net, policy, n):
    """One daemon, with so many sandboxes: nobody has entered them, for that many processes would be a load of their own. The
    next daemon waits some seconds for somebody, and then ends them: so there is one restart."""
    from lib.daemon import Daemon
    with contextlib.ExitStack() as stack:
        daemon = Daemon(net, policy=policy, inspectors=2, in_memory=True, more=["--resolvers", "127.0.0.1"])
        stack.callback(daemon.close)
        daemon.start()
        daemon.api.timeout = 120
        daemon.api.create("bench/asks", "CONFIDENTIAL")
        cgroup = daemon.api.make("bench/asks")["cgroup"]
        said = daemon.dir / "said"
        with open(said, "w") as f:
            client = subprocess.Popen([*net.enter(), "sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec {base.PYTHON} -c '{ASKS}'"],
                                      stdin=subprocess.DEVNULL, stdout=f)
        stack.callback(client.wait)
        stack.callback(client.kill)
        asks = lambda: map(float, said.read_text().split("\n")[:-1])
        assert base.eventually(lambda: any(True for _ in asks()), 20), daemon.text()
        crowd = Crowd(daemon, "bench", alive=False)
        crowd.grow(n - 1, seconds=GROW_SECONDS)
        calls = {"health": call_ms(daemon.api, "/v1/health"), "list": call_ms(daemon.api, "/v1/sandboxes", 5)}
        daemon.log.write_text("")
        return {"sandboxes": crowd.made + 1, **restart(daemon, asks, "kill"), **calls}


def measure(net, policy, size):
    rows, out = [], {}
    for n, rounds in size["at"].items():
        got = [once(net, policy, n) for _ in range(rounds)]
        row = {f"{word}_ms": statistics.median(g[word] for g in got) for word in ("ready", "name", "health", "list")}
        row["deaths"], row["rounds"] = sum(g["deaths"] for g in got), rounds
        n = min(g["sandboxes"] for g in got)  # on a slow machine there are fewer
        out[n] = row
        first = out[next(iter(out))]
        more = [(row[f"{word}_ms"] - first[f"{word}_ms"]) * 1000 / (n - 1) if n > 1 else None for word in ("ready", "list")]
        rows.append([f"{n:,}", row["ready_ms"], row["name_ms"], row["health_ms"], row["list_ms"], *more, row["deaths"]])
    show("Restart after kill -9, ms from the start of the process; calls before it, ms",
         ["sandboxes", "ready", "a name", "health", "list", "ready, us each", "list, us each", "inspectors that died"], rows,
         ["each sandbox is of a CONFIDENTIAL session of its own; medians of " +
          ", ".join(f"{r} with {n:,}" for n, r in size["at"].items()) + "; deaths are those of all rounds.",
          "the goal is 300 ms until ready, and until a name is answered, and columns of us each that do not grow."])
    return out


def run(quick):
    from nets import in_a_net
    in_a_net("restart", POLICY, lambda net, policy: measure(net, policy, QUICK if quick else FULL))


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
