# SPDX-License-Identifier: MIT
"""One part of the benchmarks by itself."""
import argparse
import os
import sys

from lib import base


def alone(doc, run):
    """run(quick), with what every part has: its option, its need, and nothing left behind."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about a minute")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: needs root")
    run(args.quick)
    left = base.leftovers()
    if left:
        sys.exit(f"bench: left behind: {left}")
