#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What credentials cost a request: the look for placeholders in a head of ten fields, and the value in one's place.

    NETPAWL_BUILD=build tests/bench/credentials.py

Part of bench.py; by itself it does this part alone. Writes BUILD/bench/credentials.json.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402

from nets import BENCH, SOURCES  # noqa: E402
from table import show  # noqa: E402


def build():
    """credentials.c with the objects that it measures, as they were built for the inspector."""
    objects = [base.BUILD / "obj" / folder / f"{source.stem}.o" for folder in ("base", "vocab", "wire", "policy", "secrets")
               for source in sorted((base.ROOT / "user" / folder).glob("*.c"))]
    archive = BENCH / "credentials.a"
    archive.unlink(missing_ok=True)
    base.sh("ar", "qcs", archive, *(o for o in objects if o.exists()))
    base.sh("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-iquote", base.ROOT / "include", "-iquote",
            base.ROOT / "user", "-o", BENCH / "credentials", SOURCES / "credentials.c", archive, "-lyaml", "-lidn2", "-lnettle", timeout=60)


def run():
    BENCH.mkdir(parents=True, exist_ok=True)
    build()
    sizes = json.loads(base.sh(BENCH / "credentials", timeout=120).stdout)
    show("Credentials, CPU of a request's head, one core", ["credentials", "look ns", "replace ns"],
         [[f"{s['credentials']:,}", s["look_ns"], s["replace_ns"]] for s in sizes],
         ["look: no placeholder is there; replace: one is, in Authorization. A policy without credentials does neither."])
    (BENCH / "credentials.json").write_text(json.dumps(sizes, indent=1) + "\n")


if __name__ == "__main__":
    run()
