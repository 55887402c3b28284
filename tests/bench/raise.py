#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How soon an escalation is acknowledged, beside one fdatasync of the same disk: the part of bench.py, by itself.

    NETPAWL_BUILD=build tests/bench/raise.py [--quick]

NETPAWL_TEST_DIR is where the record is. The file system matters: with a journal an append waits for that, too, and a commit of
the record, which overwrites what is laid out for it, does not.
"""
import contextlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import bench  # noqa: E402
import escalation  # noqa: E402
from alone import alone  # noqa: E402
from nets import build  # noqa: E402


def run(quick):
    build(with_nft=False)
    with contextlib.ExitStack() as stack:
        size = bench.QUICK if quick else bench.FULL
        bench.measure_escalations(bench.Bench(stack, with_nft=False), size["escalations"], escalation.FEW)


if __name__ == "__main__":
    alone(__doc__, run)
