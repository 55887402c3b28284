# SPDX-License-Identifier: MIT
"""How fast the network goes away, beside what a user would do instead."""
import statistics

from nets import Skip
from table import show, summary

APPLIED_GOAL_US, TOTAL_GOAL = 20, 1.5  # the second: of one fdatasync

OURS = {"box 1": "netpawl, a sandbox with an open connection", "box 10": "netpawl, a sandbox with 10",
        "box 1000": "netpawl, a sandbox with 1,000", "bare": "netpawl, no sandbox"}
# What one fdatasync takes in the place of each: what opens a thousand connections leaves caches in which nothing is that a disk needs.
THEN = {"box 1": "append 1", "box 10": "append 10", "box 1000": "append 1000", "bare": "fdatasync"}
PEERS = {"fdatasync": "one fdatasync of a 4 KiB append (the floor)", "nftlib": "libnftables in process, add rule",
         "nftcli": "nft command, add rule", "bwrap": "kill, restart under bwrap --unshare-net"}
FLOOR = {"nothing": "netpawl, a request for what is not there"}  # what an answer takes of anybody who is asked by a socket
APPENDS = {way: f"the same append, with {way.split()[1]} just opened" for way in THEN.values() if way != "fdatasync"}
CLIENT = {*OURS, *FLOOR, *APPENDS}  # the others are asked of the peers
ALL = (*OURS, *FLOOR, *PEERS, *APPENDS)
FEW = (*OURS, *FLOOR, "fdatasync", *APPENDS)
MANY = 15  # rounds of what has many connections


def collect(client, peers, rounds, ways, skips):
    """Samples of every way, taken in turns: {way: [[wall us, cpu us, ...]...]}. What has many connections comes last: the kernel is
    busy with what is left of them for a while."""
    samples = {way: [] for way in ways}

    def take(way, keep):
        try:
            got = (client if way in CLIENT else peers).ask(way)
        except Skip as e:
            skips.append(str(e))
            del samples[way]
            return
        if keep:
            samples[way].append([got[0] / 1000, got[1] / 1000, *got[2:]])

    for i in range(-3, rounds):
        for way in [way for way in samples if "1000" not in way]:
            take(way, i >= 0)
    for i in range(-1, min(rounds, MANY)):
        for way in [way for way in samples if "1000" in way]:
            take(way, i >= 0)
    return samples


def condense(samples):
    out = {}
    for way, rows in samples.items():
        out[way] = dict(summary([row[0] for row in rows]), cpu_us=statistics.median(row[1] for row in rows))
        if way in OURS:
            out[way]["applied_us"] = summary([row[2] for row in rows])
            out[way]["cut"] = sum(row[3] for row in rows)
    return out


def report(result, title, skips):
    floor, base = result["fdatasync"]["p50"], result["box 1"]["p50"]
    then = {way: result[THEN[way]]["p50"] for way in OURS if way in result}
    rows = []
    for way, text in {**OURS, **FLOOR, **PEERS, **APPENDS}.items():
        r = result.get(way)
        if not r:
            continue
        applied = r.get("applied_us", {})
        rows.append([text, applied.get("p50"), applied.get("p99"), r["p50"], r["p99"], r["cpu_us"],
                     f"{r['p50'] / floor:.2f}", f"{r['p50'] / then[way]:.2f}" if way in then else "-", f"{r['p50'] / base:.2f}"])
    applied, rounds = result["box 1"]["applied_us"]["p50"], result["box 1"]["n"]
    verdict = "met" if applied <= APPLIED_GOAL_US else "MISSED"
    over = [way for way in then if result[way]["p50"] > TOTAL_GOAL * then[way]]
    least = floor + result["nothing"]["p50"]
    notes = ["applied: request read until the kernel is tightened; total: request sent until the durable answer.",
             f"goal: applied p50 <= {APPLIED_GOAL_US} us: {applied:g} us, {verdict}; "
             f"{result['box 1']['cut']} connections were cut in {rounds} rounds.",
             f"goal: total p50 <= {TOTAL_GOAL} times what one fdatasync takes then: " + (f"MISSED by {', '.join(over)}" if over else "met"),
             f"one fdatasync and a request for what is not there are {least:.0f} us; over that are "
             + ", ".join(f"{way} {result[way]['p50'] - least:.0f}" for way in OURS if way in result) + " us.",
             *[f"skipped: {text}" for text in skips]]
    show(f"Escalation PUBLIC to SECRET over the API, {title}, {rounds} rounds in turns, us",
         ["", "applied p50", "p99", "total p50", "p99", "CPU", "total / fdatasync", "/ one then", "vs netpawl"], rows, notes)


def run(client, peers, title, rounds, ways=ALL):
    skips = []
    result = condense(collect(client, peers, rounds, ways, skips))
    result["skipped"] = skips
    report(result, title, skips)
    return result
