# SPDX-License-Identifier: MIT
"""A long life in miniature: thousands of requests of all kinds, sessions and sandboxes that come and go, and then daemon
and inspector have the memory, the descriptors and the map entries that they had before. NETPAWL_SOAK: how many rounds
are counted; `make soak` takes many."""
import json
import os
import re
import subprocess

import pytest

from lib import base
from lib.box import new_session
from lib.inspected import inspected
from lib.world import FAR

ROUNDS = int(os.environ.get("NETPAWL_SOAK", "10"))
WARM = 4  # rounds before anything is counted: caches fill, the allocator finds its size
REQUESTS, H2, SANDBOXES = 1024, 200, 3  # of one round
# What a process may have grown: once, for the allocator is no accountant, and for each request: less than the smallest
# thing that could be forgotten.
GROWTH, GROWTH_EACH = 1 << 20, 32


@pytest.fixture(scope="module")
def net():
    with inspected(inspectors=1) as i:
        yield i
        assert i.daemon.running(), i.daemon.text()[-2000:]


def in_session(net, session, *cmd):
    """A command in a sandbox of that session, which is gone afterwards."""
    p = subprocess.run(net.argv(*cmd, session=session), capture_output=True, text=True, timeout=600,
                       env={**net.env(), "SSL_CERT_FILE": str(net.ca), "CURL_CA_BUNDLE": str(net.ca)})
    if p.returncode:  # who ended it? Whatever the inspector ends or cannot read has an event
        events = [e for e in net.api.events(session=session) if e.get("reason") not in ("rule_allows", "rule_denies", "not_in_policy")]
        raise AssertionError((p.returncode, p.stderr[-2000:], events[-20:]))
    return p.stdout


def one_round(net):
    """A session's life. How many requests it made."""
    net.session = new_session("soak")
    net.api.create(net.session, "CONFIDENTIAL")
    keeper = net.spawn("sleep", "infinity")  # as long as there is a sandbox the session keeps its CA
    try:
        assert base.eventually(net.fetch_ca, 10)
        said = json.loads(in_session(net, net.session, base.PYTHON, base.TESTS / "e2e/lib/probes/soak.py", FAR[4], REQUESTS))
        assert said["wrong"] == [], said["wrong"][:5]
        codes = in_session(net, net.session, "curl", "-sS", "--http2", "-Z", "--parallel-max", "20", "--connect-to",
                           f"::{FAR[4]}:", "-o", "/dev/null", "-w", "%{http_code} %{http_version}\n",
                           f"https://{{origin,bad.origin}}.test/[1-{H2 // 2}]")
        assert sorted(set(codes.splitlines())) == ["200 2", "403 2"] and len(codes.splitlines()) == H2, codes[:500]
        for _ in range(SANDBOXES):
            in_session(net, net.session, "true")
    finally:
        base.reap(keeper)
    assert base.eventually(lambda: not net.api.sandboxes(net.session), 10)
    net.api.end(net.session)
    return REQUESTS + H2


def entries(net):
    """How many entries each hash map of the gate has."""
    out = {}
    for path in sorted((net.daemon.pins / "maps").iterdir()):
        shown = json.loads(base.sh(*net.world.enter(), "bpftool", "-j", "map", "show", "pinned", path).stdout)
        if "hash" in shown["type"] and not shown["type"].startswith("percpu"):
            dump = json.loads(base.sh(*net.world.enter(), "bpftool", "-j", "map", "dump", "pinned", path).stdout)
            out[path.name] = len(dump)
    return out


class State:
    """What a process has, and what the kernel has for it."""

    def __init__(self, net):
        slice = net.daemon.slice
        worker, = base.cgroup_pids(slice.with_name(slice.name + "-inspector"))
        self.pids = {"inspector": worker, "daemon": net.daemon.process.pid}
        self.kib = {word: self.rss(pid) for word, pid in self.pids.items()}
        self.fds = {word: len(os.listdir(f"/proc/{pid}/fd")) for word, pid in self.pids.items()}
        self.entries = entries(net)

    @staticmethod
    def rss(pid):
        """Memory of its own: what of its files is in memory is not."""
        with open(f"/proc/{pid}/status") as f:
            return int(re.search(r"RssAnon:\s*(\d+)", f.read())[1])

    def __repr__(self):
        return f"{self.kib} KiB, {self.fds} descriptors, {self.entries}"


def test_nothing_grows(net):
    for _ in range(WARM):
        one_round(net)
    before, requests = State(net), 0
    for _ in range(ROUNDS):
        requests += one_round(net)
    fewer = lambda: all(n <= before.fds[word] for word, n in State(net).fds.items())
    assert base.eventually(fewer, 10), (before, State(net))
    after = State(net)
    assert after.pids == before.pids, "the very same processes"
    # What the gate forgets a moment later is none of it.
    less = lambda: all(n <= before.entries[name] for name, n in entries(net).items())
    assert base.eventually(less), (before.entries, entries(net))
    for word, kib in after.kib.items():
        grown = kib - before.kib[word]
        most = (GROWTH + GROWTH_EACH * requests) // 1024
        assert base.SAN or grown < most, f"{word}: {grown} KiB, not {most}, for {requests} requests: {before} {after}"
