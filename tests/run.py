#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs test programs and files of tests side by side, each in a process of its own: they wait more than they work.

    NETPAWL_BUILD=build tests/run.py [--jobs N] [WORDS FOR PYTEST...] -- PROGRAM, FILE OR FOLDER...

Prints a line for each, and all of what one that fails has to say; on a terminal also how far it is. Ends with 1 when one did. How long each took is kept
in the build folder: the longest go first the next time, so that none is left to run alone at the end.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from counter import Counter

MINUTES = 60  # a bound against hangs
TIMES = pathlib.Path(os.environ.get("NETPAWL_BUILD", "build")) / "tests" / "times.json"


def files(places):
    for place in map(pathlib.Path, places):
        yield from sorted(place.glob("test_*.py")) if place.is_dir() else [place]


def command(words, path):
    if path.suffix == ".py":
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(path)]
    return [str(path.resolve())]  # a program of cmocka


def counted(path, out):
    """How many tests passed, failed, ...: by the last line of pytest, or by cmocka's."""
    if path.suffix == ".py":
        found = re.findall(r"(\d+) (passed|failed|skipped|errors?|xpassed|xfailed|deselected)\b", out.rstrip().rpartition("\n")[2])
    else:
        found = [(n, what.lower()) for what, n in re.findall(r"^\[  (PASSED|FAILED)  \] (\d+) test", out, re.M)]
    counts = {}
    for n, what in found:
        counts[what] = counts.get(what, 0) + int(n)
    return counts


def run(words, path, counter):
    start = time.monotonic()
    p = subprocess.Popen(command(words, path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                         text=True, errors="replace")
    bound = threading.Timer(60 * MINUTES, p.kill)
    bound.start()
    out = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)  # not p.wait(): this one tells what it and its children used
    code = p.returncode = os.waitstatus_to_exitcode(status)
    bound.cancel()
    took, counts = time.monotonic() - start, counted(path, out)
    if took >= 60 * MINUTES:
        out += f"\n{path}: not done after {MINUTES} minutes"
    code = 0 if code == 5 and path.suffix == ".py" else code  # every test of it was deselected
    with counter.lock:
        if code:
            counter.line(out)
        text = ", ".join(f"{n} {what}" for what, n in counts.items())
        counter.line(f"  {'FAIL' if code else 'ok':4}  {path}: {text} in {took:.0f} s, {used.ru_utime + used.ru_stime:.0f} of CPU")
        counter.done(code)
    return code, counts, took


def known_times():
    try:
        return {str(k): float(v) for k, v in json.loads(TIMES.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}  # none yet, or of no use


def main():
    cut = sys.argv.index("--")
    words, places = sys.argv[1:cut], sys.argv[cut + 1:]
    jobs = 7 * (os.cpu_count() or 1) // 2
    if words[:1] == ["--jobs"]:
        jobs, words = int(words[1]), words[2:]
    times = known_times()
    # Before the first run the size of a file has to do.
    guess = lambda f: times.get(str(f), f.stat().st_size / 500 if f.suffix == ".py" else 1)
    queue = sorted(files(places), key=guess, reverse=True)
    start = time.monotonic()
    with Counter(len(queue), "files") as counter, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda f: run(words, f, counter), queue))
    total = {}
    for _, counts, _ in results:
        for what, n in counts.items():
            total[what] = total.get(what, 0) + n
    print(", ".join(f"{n} {what}" for what, n in total.items()) + f" in {time.monotonic() - start:.0f} s")
    # what words select takes less than all of a file
    times.update({str(f): round(took, 1) for f, (_, _, took) in zip(queue, results) if not words or f.suffix != ".py"})
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    TIMES.write_text(json.dumps(times, indent=0))
    sys.exit(any(code for code, _, _ in results) or not total.get("passed"))


main()
