# SPDX-License-Identifier: MIT
"""What a decision of the policy costs, and how little of that is due to the number of rules."""
import json

from lib import base

from nets import BENCH, SOURCES
from table import show


def build():
    """decide.c with the folders it measures, as they were built for the daemon; the linker takes what it needs."""
    objects = [base.BUILD / "obj" / folder / f"{source.stem}.o" for folder in ("base", "vocab", "wire", "policy")
               for source in sorted((base.ROOT / "user" / folder).glob("*.c"))]
    archive = BENCH / "decide.a"
    archive.unlink(missing_ok=True)
    base.sh("ar", "qcs", archive, *(o for o in objects if o.exists()))
    base.sh("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-iquote", base.ROOT / "include",
            "-iquote", base.ROOT / "user", "-o", BENCH / "decide", SOURCES / "decide.c", archive, "-lyaml", "-lidn2",
            "-lnettle", timeout=60)


def run():
    BENCH.mkdir(parents=True, exist_ok=True)
    build()
    sizes = json.loads(base.sh(BENCH / "decide", timeout=120).stdout)
    few = sizes[0]
    rows = [[f"{s['rules']:,}", s["load_ms"], s["ns_per_decision"], s["ns_per_decision"] / few["ns_per_decision"],
             s["cold_ns"], s["cold_ns"] / few["cold_ns"], s["baseline_ns"], s["ns_per_decision"] / s["baseline_ns"]]
            for s in sizes]
    show("Decisions by host rules, one core",
         ["rules", "load ms", "ns", "to the first", "cold ns", "to the first", "plain table ns", "to the plain table"], rows,
         ["cold: 4 MiB of other memory were written since the decision before it; the clock's own 20 to 50 ns are in it.",
          "the plain table: FNV-1a and open addressing over the same names; it knows no wildcards, ports or methods."])
    (BENCH / "policy.json").write_text(json.dumps(sizes, indent=1) + "\n")
