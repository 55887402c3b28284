# SPDX-License-Identifier: MIT
"""What a registered sandbox takes, and how fast one is made and removed."""
import statistics

from nets import Skip, bpf_ids, bpftool
from table import show, summary

PER_SESSION = 1000  # below NP_SANDBOXES_PER_SESSION


def register(client, have, want):
    """Registers sandboxes until there are `want`; seconds that took."""
    seconds = 0
    while have < want:
        n = min(PER_SESSION - have % PER_SESSION, want - have)
        seconds += client.ask(f"boxes bench/many-{have // PER_SESSION} {n}")[0] / 1e9
        have += n
    return seconds


def sessions_of(have):
    return [f"bench/many-{i}" for i in range((have + PER_SESSION - 1) // PER_SESSION)]


def footprint(pid):
    """Bytes: of the daemon, of each of its maps, and of the whole kernel."""
    with open(f"/proc/{pid}/status") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) * 1024
    ids = bpf_ids(pid, "map_id")
    maps = {m["name"]: m["bytes_memlock"] for m in bpftool("map", "show") if m["id"] in ids}
    with open("/proc/meminfo") as f:
        kernel = sum(int(line.split()[1]) for line in f if line.split(":")[0] in ("Slab", "Percpu")) * 1024
    return {"rss": rss, "maps": maps, "kernel": kernel}


def report_memory(prints, seconds):
    """prints: {sandboxes registered: footprint()}"""
    counts = sorted(prints)
    rows = [[f"{n:,}", prints[n]["rss"] / 1024, prints[n]["maps"].get("np_sandboxes", 0) / 1024,
             sum(prints[n]["maps"].values()) / 1024, prints[n]["kernel"] / 1024] for n in counts]
    per = {}
    if len(counts) > 1:
        first, last = prints[counts[0]], prints[counts[-1]]
        more = counts[-1] - counts[0]
        per = {"rss": (last["rss"] - first["rss"]) / more,
               "np_sandboxes": (last["maps"].get("np_sandboxes", 0) - first["maps"].get("np_sandboxes", 0)) / more,
               "maps": (sum(last["maps"].values()) - sum(first["maps"].values())) / more,
               "kernel": (last["kernel"] - first["kernel"]) / more}
        rows.append(["bytes per sandbox", *[float(round(per[k])) for k in ("rss", "np_sandboxes", "maps", "kernel")]])
    show("Memory, KiB (last line: bytes per sandbox)",
         ["sandboxes", "daemon RSS", "np_sandboxes", "all maps", "kernel slab+percpu"], rows,
         [f"{counts[-1] - 1:,} sandboxes were registered in {seconds:.1f} s, one after another.",
          "the last column is the whole machine's: the cgroups themselves, and whatever else went on."])
    return per


def start(client, peers, rounds):
    """POST + DELETE of a sandbox, beside other ways to start one."""
    ways = {"start": ("netpawl: POST and DELETE /v1/sandboxes", client),
            "health": ("netpawl: GET /v1/health (a request without work)", client),
            "fdatasync": ("one fdatasync of a 4 KiB append", peers),
            "cgroup": ("mkdir and rmdir of a cgroup", peers), "spawn": ("fork and exec of a small program", peers),
            "bwrapall": ("the same under bwrap --unshare-all", peers)}
    samples = {way: [] for way in ways}
    for i in range(-2, rounds):
        for way in list(samples):
            try:
                got = ways[way][1].ask(way)
            except Skip:
                del samples[way]
                continue
            if i >= 0:
                samples[way].append((got[0] / 1000, got[1] / 1000))
    out = {way: dict(summary([s[0] for s in got]), cpu_us=statistics.median(s[1] for s in got))
           for way, got in samples.items()}
    base = out["start"]["p50"]
    show("Start and end of a sandbox, us",
         ["", "p50", "p99", "per second", "CPU", "vs netpawl"],
         [[ways[way][0], r["p50"], r["p99"], 1e6 / r["p50"], r["cpu_us"], f"{r['p50'] / base:.2f}"]
          for way, r in out.items()], ["CPU of a netpawl line is the daemon's."])
    return out
