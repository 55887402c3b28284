#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the files of tests side by side, each in a pytest of its own: they wait more than they work.

    NETPAWL_BUILD=build tests/run.py [--jobs N] [WORDS FOR PYTEST...] -- FILE OR FOLDER...

Prints a line for each file, and all of what a file that fails has to say. Ends with 1 when one did.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

MINUTES = 30  # a bound against hangs


def files(places):
    for place in map(pathlib.Path, places):
        yield from sorted(place.glob("test_*.py")) if place.is_dir() else [place]


def run(words, path, say):
    start = time.monotonic()
    try:
        p = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(path)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60 * MINUTES)
        code, out = p.returncode, p.stdout
    except subprocess.TimeoutExpired as e:
        code, out = 1, f"{e.output or ''}\n{path}: not done after {MINUTES} minutes"
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|errors?|xpassed|xfailed|deselected)\b",
                                                     out.rstrip().rpartition("\n")[2])}
    code = 0 if code == 5 else code  # every test of it was deselected
    with say:
        if code:
            print(out)
        words = ", ".join(f"{n} {what}" for what, n in counts.items())
        print(f"  {'FAIL' if code else 'ok':4}  {path}: {words} in {time.monotonic() - start:.0f} s", flush=True)
    return code, counts


def main():
    cut = sys.argv.index("--")
    words, places = sys.argv[1:cut], sys.argv[cut + 1:]
    jobs = (os.cpu_count() or 1) + 1
    if words[:1] == ["--jobs"]:
        jobs, words = int(words[1]), words[2:]
    # The longest first, as far as their size tells, so that none is left to run alone at the end.
    queue = sorted(files(places), key=lambda f: -f.stat().st_size)
    say, start = threading.Lock(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda f: run(words, f, say), queue))
    total = {}
    for _, counts in results:
        for what, n in counts.items():
            total[what] = total.get(what, 0) + n
    print(", ".join(f"{n} {what}" for what, n in total.items()) + f" in {time.monotonic() - start:.0f} s")
    sys.exit(any(code for code, _ in results) or not total.get("passed"))


main()
