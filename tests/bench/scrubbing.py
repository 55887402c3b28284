#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs to search responses for secrets: CPU of the inspectors for the same download without a credential, with one whose echo may
pass, and with one that is scrubbed; and for small requests, where values are also searched for on their way out.

    NETPAWL_BUILD=build tests/bench/scrubbing.py [--quick]     this part alone
"""
import contextlib
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from lib.inspected import Inspected  # noqa: E402
from alone import alone  # noqa: E402
from nets import BENCH  # noqa: E402
from table import show  # noqa: E402

FULL = {"bytes": 256 << 20, "downloads": 3, "requests": 3000, "seconds": 240}
QUICK = {"bytes": 64 << 20, "downloads": 3, "requests": 600, "seconds": 60}
WAYS = {"no credential": "none.origin.test", "echo: pass": "pass.origin.test", "echo: scrub": "scrub.origin.test"}
# One connection, small requests one after the other.
CLIENT = """
import http.client, ssl, sys
c = http.client.HTTPSConnection(sys.argv[2], timeout=60)
for i in range(int(sys.argv[1])):
    c.request("GET", "/status/204", headers={"accept": "application/json", "user-agent": "bench"})
    c.getresponse().read()
"""


def policy(folder, more):
    """Of each way a credential, and as many beside it as there are to be."""
    text = "version: 1\ncredentials:\n"
    for name, host, echo in [("passed", "pass", "pass"), ("scrubbed", "scrub", "scrub")] + [(f"more{i}", f"more{i}", "scrub") for i in range(more)]:
        path = folder / name
        path.write_text(f"ghp_{os.urandom(18).hex()}\n")
        path.chmod(0o600)
        text += f"  {name}: {{source: {{file: {path}}}, for: {host}.origin.test, inject: always, echo: {echo}, placeholder: {{env: {name.upper()}, like: \"ghp_{{36}}\"}}}}\n"
    return text + "rules:\n  - allow: \"**.origin.test\"\n"


def cpu(net):
    """Seconds that the inspectors have used."""
    return sum(int(open(f"/proc/{pid}/schedstat").read().split()[0]) for pid in net.workers()) / 1e9


def took(net, *command):
    before = cpu(net)
    done = net.run(*command)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return cpu(net) - before


def measure(sizes, more):
    with contextlib.ExitStack() as stack:
        folder = base.tempdir("scrubbing")
        stack.callback(base.drop_tempdir, folder)
        net = Inspected(stack, policy=policy(folder, more))
        found = {way: {"download_s": [], "requests_s": []} for way in WAYS}
        for _ in range(sizes["downloads"]):
            for way, host in WAYS.items():
                found[way]["download_s"].append(took(net, "curl", "-sS", "-o", "/dev/null", f"https://{host}/bytes/{sizes['bytes']}"))
                found[way]["requests_s"].append(took(net, base.PYTHON, "-c", CLIENT, str(sizes["requests"]), host))
        return found


def run(quick):
    sizes = QUICK if quick else FULL
    out = {"quick": quick, "load": os.getloadavg()[0], "credentials": {}}
    for more in (0, 98):
        found = measure(sizes, more)
        least = {way: {k: min(v) for k, v in f.items()} for way, f in found.items()}
        plain = least["no credential"]
        rows = []
        for way, f in least.items():
            added = f["download_s"] - plain["download_s"]
            rows.append([way, sizes["bytes"] / 1e6 / f["download_s"], sizes["bytes"] / 1e6 / added if added > 0 else float("inf"),
                         1e6 * f["requests_s"] / sizes["requests"], 1e6 * (f["requests_s"] - plain["requests_s"]) / sizes["requests"]])
        show(f"Responses searched for {more + 2} credentials, by CPU of the inspectors (least of {sizes['downloads']})",
             ["", "MB/s a core", "search alone, MB/s", "us a request", "added us"], rows, [])
        out["credentials"][more + 2] = found
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "scrubbing.json").write_text(json.dumps(out, indent=1) + "\n")
    return out


if __name__ == "__main__":
    alone(__doc__, run)
