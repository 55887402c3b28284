# SPDX-License-Identifier: MIT
"""netpawl run beside bubblewrap alone and a plain fork and exec; and what many of them leave behind.

    NETPAWL_BUILD=build tests/bench/run.py [--quick]     this part alone
"""
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from lib import base  # noqa: E402
from table import show  # noqa: E402

FULL = {"rounds": 100, "row": 200, "crowds": 10, "callers": (1, 2, 4, 8), "rate_s": 3, "seconds": 150}
QUICK = {"rounds": 20, "row": 40, "crowds": 3, "callers": (1, 4), "rate_s": 1, "seconds": 60}
CROWD = 50
PLAIN, BWRAP = "netpawl run -- true", "bwrap --unshare-all true"
KEPT, CALL = "netpawl run --keep -- true", "one API call, then true"
SYSTEM = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
          "/lib64", "--proc", "/proc", "--dev", "/dev"]


def left_behind(daemon):
    """Names of what there should be none of."""
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if "oldroot" in line]
    boxes = json.loads(base.sh("bpftool", "-j", "map", "dump", "pinned", daemon.pins / "maps/np_sandboxes").stdout)
    return {"cgroups": len([p for p in daemon.slice.iterdir() if p.is_dir()]), "mounts": len(mounts), "map entries": len(boxes),
            "processes": len(base.cgroup_pids(daemon.slice)), "sandboxes": daemon.api.health()["sandboxes"]}


def at_once(argv, **kw):
    """Seconds until the last of many that were started together has ended."""
    began = time.perf_counter()
    crowd = [subprocess.Popen(argv, **kw) for _ in range(CROWD)]
    codes = [p.wait() for p in crowd]
    if any(codes):
        raise RuntimeError(f"{argv}: {codes}")
    return time.perf_counter() - began


def crowds(net, ways, rounds, **kw):
    """Milliseconds of each way, in turns."""
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way, argv in ways.items():
            times[way].append(at_once([*net.enter(), *argv], **kw) * 1e3)
    return {way: statistics.median(t) for way, t in times.items()}


def rate(argv, callers, seconds, **kw):
    """How many a second, of so many callers who each start the next when the last has ended."""
    began = time.monotonic()

    def call(_):
        n = 0
        while time.monotonic() - began < seconds:
            subprocess.run(argv, check=True, **kw)
            n += 1
        return n

    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        done = sum(pool.map(call, range(callers)))
    return done / (time.monotonic() - began)


def rates(net, ways, size, **kw):
    """{way: [a second, for each number of callers]}"""
    out = {way: [] for way in ways}
    for callers in size["callers"]:
        for way, argv in ways.items():
            out[way].append(rate([*net.enter(), *argv], callers, size["rate_s"], **kw))
    show("Commands a second, by the number of callers", ["", *map(str, size["callers"])], [[way, *r] for way, r in out.items()],
         [f"each for {size['rate_s']} s, in turns."])
    return out


def measure(daemon, net, size):
    env = base.env(NETPAWL_SOCKET=str(daemon.socket))
    daemon.api.create("bench/run", "PUBLIC")
    netpawl = [str(base.NETPAWL), "run", "--session", "bench/run"]
    ways = {  # all of them from within the daemon's network namespace, and in turns
        PLAIN: [*netpawl, "--", "true"],
        "the same with --memory, --pids and --cpus": [*netpawl, "--memory", "1GiB", "--pids", "100", "--cpus", "2", "--", "true"],
        KEPT: [str(base.NETPAWL), "run", "--keep", "--session", "bench/kept", "--", "true"],
        CALL: ["sh", "-c", f"{base.NETPAWL} show bench/run --json && exec true"],
        "one API call alone (netpawl show)": [str(base.NETPAWL), "show", "bench/run", "--json"],
        "netpawl run --isolation none -- true": [*netpawl, "--isolation", "none", "--", "true"],
        BWRAP: ["bwrap", "--unshare-all", *SYSTEM, "true"],
        "fork and exec of true": ["true"],
    }
    quiet = {"stderr": subprocess.DEVNULL}
    times = {way: [] for way in ways}
    for _ in range(size["rounds"]):
        for way, argv in ways.items():
            began = time.perf_counter()
            subprocess.run([*net.enter(), *argv], check=True, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **quiet)
            times[way].append((time.perf_counter() - began) * 1e3)
    median = {way: statistics.median(t) for way, t in times.items()}
    bwrap, spawn = median[BWRAP], median["fork and exec of true"]
    rows = [[way, m, min(times[way]), m / bwrap, m / spawn] for way, m in median.items()]
    crowd = crowds(net, {way: ways[way] for way in (PLAIN, BWRAP)}, size["crowds"], env=env, stdin=subprocess.DEVNULL, **quiet)
    rows += [[f"{CROWD} at once: {way}", m, None, m / crowd[BWRAP], None] for way, m in crowd.items()]
    anonymous = [str(base.NETPAWL), "run", "--", "true"]
    by_rate = rates(net, {"netpawl run -- true, anonymous": anonymous, **{way: ways[way] for way in (PLAIN, KEPT, BWRAP)}}, size, env=env,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **quiet)
    for box in daemon.api.sandboxes():
        daemon.api.remove(box["sandbox"])  # the kept one
    began = time.perf_counter()
    for _ in range(size["row"]):
        subprocess.run([*net.enter(), *anonymous], check=True, env=env, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    base.eventually(lambda: not any(left_behind(daemon).values()), 10)
    left = left_behind(daemon)
    show("Starting a command, ms", ["", "median", "least", "to bwrap", "to fork and exec"], rows,
         [f"each line starts nsenter as well; {size['rounds']} rounds, in turns.",
          f"--keep is {median[KEPT] / median[CALL]:.2f} times one API call and then true, which a shell starts.",
          f"{size['row']} sandboxes in a row in {seconds:.1f} s left behind: "
          + ", ".join(f"{n} {what}" for what, n in left.items()) + "."])
    if any(left.values()):
        raise RuntimeError(f"sandboxes left something behind: {left}")
    return {"median_ms": median, "least_ms": {w: min(t) for w, t in times.items()}, "to_bwrap": median[PLAIN] / bwrap,
            "crowd": {"count": CROWD, "median_ms": crowd, "to_bwrap": crowd[PLAIN] / crowd[BWRAP]},
            "kept_to_call": median[KEPT] / median[CALL], "callers": size["callers"], "a_second": by_rate,
            "row": {"sandboxes": size["row"], "seconds": seconds, "left": left}}


def run(quick):
    import contextlib

    from lib.daemon import Daemon
    from nets import BENCH, Net
    with contextlib.ExitStack() as stack:
        net = Net("run")
        stack.callback(net.close)
        daemon = Daemon(net, in_memory=True)  # as /run is
        stack.callback(daemon.close)
        daemon.start()
        out = measure(daemon, net, QUICK if quick else FULL)
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "run.json").write_text(json.dumps(out, indent=1) + "\n")
    print(BENCH / "run.json")


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
