#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a decider adds to a request: one that answers at once, by a command and by a socket, beside the same client where a rule allows.

    NETPAWL_BUILD=build tests/bench/decisions.py [--quick]     this part alone
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.inspected import Inspected  # noqa: E402
from alone import alone  # noqa: E402
from nets import BENCH, CLIENT  # noqa: E402
from table import show, summary  # noqa: E402

FULL = {"requests": 2000, "seconds": 60}
QUICK = {"requests": 300, "seconds": 30}
WAYS = {"allow": "open.origin.test", "decider by command": "command.origin.test", "decider by socket": "socket.origin.test"}
PROGRAM = pathlib.Path(base.__file__).with_name("decider_program.py")


def policy(program, socket):
    run = f"{base.PYTHON}, {program}, /dev/null"
    return f"""version: 1
deciders:
  command: {{command: [{run}]}}
  socket: {{socket: {socket}}}
rules:
  - decide: {WAYS["decider by command"]}
    by: command
  - decide: {WAYS["decider by socket"]}
    by: socket
  - allow: "**.origin.test"
"""


def measure(sizes):
    with contextlib.ExitStack() as stack:
        folder = base.tempdir("decisions")
        stack.callback(base.drop_tempdir, folder)
        program, socket = folder / "decider.py", folder / "sock"
        shutil.copy(PROGRAM, program)
        server = subprocess.Popen([base.PYTHON, str(program), "/dev/null", str(socket)], stdout=subprocess.PIPE, text=True)
        stack.callback(base.reap, server)
        server.stdout.readline()
        net = Inspected(stack, policy=policy(program, socket))
        if not base.eventually(lambda: all(d["ready"] for d in net.api.health()["deciders"]), 20):
            raise RuntimeError(net.daemon.text())
        done = net.run(base.PYTHON, "-c", CLIENT, "/allow", str(sizes["requests"]), *WAYS.values(), timeout=sizes["seconds"] * 3)
        if done.returncode:
            raise RuntimeError(done.stderr)
        took = json.loads(done.stdout)
        return {way: summary(took[host]) for way, host in WAYS.items()}, net.api.health()["deciders"]


def run(quick):
    found, deciders = measure(QUICK if quick else FULL)
    plain = found["allow"]
    show("A decider that answers at once: microseconds of a request, HTTP/1.1, connection open", ["", "p10", "p50", "p99", "added p10", "added p50"],
         [[way, f["p10"], f["p50"], f["p99"], f["p10"] - plain["p10"], f["p50"] - plain["p50"]] for way, f in found.items()],
         [f"{d['decider']}: {d['mean_us']} us in the mean from netpawld to the decider and back" for d in deciders])
    BENCH.mkdir(parents=True, exist_ok=True)
    out = {"quick": quick, "load": os.getloadavg()[0], "requests": found, "deciders": deciders}
    (BENCH / "decisions.json").write_text(json.dumps(out, indent=1) + "\n")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
