#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What credentials cost a request: the look for placeholders in a head of ten fields, and the value in one's place; and how fast texts are
searched for values (searching.c), which scrubbing.py measures in a whole inspector.

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


def build(name):
    """NAME.c with the objects that it measures, as they were built for the inspector."""
    objects = [base.BUILD / "obj" / folder / f"{source.stem}.o" for folder in ("base", "vocab", "wire", "policy", "secrets")
               for source in sorted((base.ROOT / "user" / folder).glob("*.c"))]
    archive = BENCH / f"{name}.a"
    archive.unlink(missing_ok=True)
    base.sh("ar", "qcs", archive, *(o for o in objects if o.exists()))
    base.sh("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-iquote", base.ROOT / "include", "-iquote",
            base.ROOT / "user", "-o", BENCH / name, SOURCES / f"{name}.c", archive, "-lyaml", "-lidn2", "-lnettle", timeout=60)
    return json.loads(base.sh(BENCH / name, timeout=120).stdout)


def run():
    BENCH.mkdir(parents=True, exist_ok=True)
    sizes = build("credentials")
    show("Credentials, CPU of a request's head, one core", ["credentials", "look ns", "replace ns"],
         [[f"{s['credentials']:,}", s["look_ns"], s["replace_ns"]] for s in sizes],
         ["look: no placeholder is there; replace: one is, in Authorization. A policy without credentials does neither."])
    speeds = build("searching")
    texts = list(dict.fromkeys(s["text"] for s in speeds))
    sets = list(dict.fromkeys((s["credentials"], s["values"]) for s in speeds))
    show("Texts searched for the values of credentials, MB/s of CPU, one core", ["credentials", *texts],
         [[f"{n:,}{values}"] + [next(s["mb_s"] for s in speeds if (s["text"], s["credentials"], s["values"]) == (text, n, values)) for text in texts]
          for n, values in sets], ["Pieces of 16 KiB; nine forms of each value, escapes undone."])
    (BENCH / "credentials.json").write_text(json.dumps({"heads": sizes, "searches": speeds}, indent=1) + "\n")


if __name__ == "__main__":
    run()
