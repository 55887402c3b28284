# SPDX-License-Identifier: MIT
"""One sandbox at its bounds takes nothing from another: bounds of user/vocab/limits.h, with one worker for both."""
import contextlib
import json
import re
import subprocess

import pytest

from lib import base
from lib.box import new_session
from lib.inspected import inspected
from lib.world import FAR

PROBES = base.TESTS / "e2e/lib/probes"
KEPT, FRESH = 100, 30
SLOW = 40  # readers that do not read
FLOOD, AHEAD = 8, 20


def limit(name):
    text = (base.ROOT / "user/vocab/limits.h").read_text()
    value = re.search(rf"#define {name}\s+(.*?)\s*/\*", text)[1]
    return eval(value.replace("u", ""))  # a number, or one shifted


CONNS, BACKLOG = limit("NP_CONNS_PER_SANDBOX"), limit("NP_BACKLOG_HIGH")
STREAMS = limit("NP_H2_STREAMS")


@pytest.fixture(scope="module")
def net():
    with inspected(inspectors=1) as i:
        yield i
        assert i.daemon.running() and i.api.health()["inspectors"] == 1, i.daemon.text()[-2000:]


class Greedy:
    """A sandbox of a session of its own, with a client that takes all it can get."""

    def __init__(self, net):
        self.session = new_session("greedy")
        net.api.create(self.session, "CONFIDENTIAL")
        self.process = base.popen(net.argv(base.PYTHON, PROBES / "greedy.py", FAR[4], session=self.session), text=True,
                                  env=net.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def greedy(net):
    g = Greedy(net)
    try:
        yield g
    finally:
        base.reap(g.process)


class Quiet:
    """A client in the sandbox of another session."""

    def __init__(self, net, host="origin.test", right=200, kept=KEPT, fresh=FRESH, ahead=1):
        self.process = base.popen(net.argv(base.PYTHON, PROBES / "quiet.py", FAR[4], host, right, kept, fresh, ahead),
                                  text=True, env=net.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def line(self):
        return self.process.stdout.readline().strip()

    def wrong(self):
        """What went wrong, when all is done."""
        lines = [self.line() for _ in range(3)]
        base.reap(self.process)
        assert lines[:2] == ["begin", "kept"], lines
        return json.loads(lines[2])


def worker_kib(net):
    slice = net.daemon.slice
    pid, = base.cgroup_pids(slice.with_name(slice.name + "-inspector"))
    return int(re.search(r"VmRSS:\s*(\d+)", open(f"/proc/{pid}/status").read())[1])


def test_connections_readers_and_handshakes(net):
    assert Quiet(net).wrong() == []  # alone
    before = worker_kib(net)
    with greedy(net) as g:
        g.ask("bounds", SLOW, 500, 200, CONNS)  # of each: together beyond the bound
        reached = lambda s: s["open"] >= CONNS and s.get("ended", 0) > 50
        state = base.eventually(lambda: (s := g.ask("count")) and reached(s) and s, 40, 0.2)
        assert state, g.ask("count")
        after = net.last()
        assert Quiet(net).wrong() == []
        later = g.ask("count")
        assert later["ended"] > state["ended"], "it was at its bound all the while"
        # what it was refused it was refused for this, and nothing else
        assert set(later["reasons"]) <= {"too_many_requests"}, later
        grown = worker_kib(net) - before
    # of the quiet one nothing was refused, and all is told
    events = net.events(after=after, count=KEPT + FRESH)
    assert len(events) == KEPT + FRESH and {e["reason"] for e in events} == {"rule_allows"}
    # and of the other one what became of its connections is told
    full = lambda got: [e for e in got if e.get("text") == "too many connections"]
    told = net.api.wait_events(full, session=g.session)
    assert {e["reason"] for e in full(told)} == {"too_many_requests"}, told[-3:]
    # two-sided connections that wait, and readers that do not read: queues on both sides, and a socket's worth between
    assert base.SAN or grown < CONNS * 48 + SLOW * 3 * BACKLOG // 1024, f"{grown} KiB"


# A turn of HTTP/1.1 is a request or two; one of HTTP/2 is eight or a few more.
@pytest.mark.parametrize("kind,batch,turns", [("flood", 4000, 16), ("flood2", STREAMS, 24)])
def test_a_flood_of_requests(net, kind, batch, turns):
    """Measured in work, not in time: while the quiet one makes its requests, a few at a time, so that it is seldom the
    one that is waited for, each connection of the flood gets so many answered and no more, however many it has sent."""
    with greedy(net) as g:
        g.ask(kind, FLOOD, batch)
        assert base.eventually(lambda: g.ask("count").get("answers", 0) > FLOOD * batch, 20)
        # answered by the inspector itself, as the flood is
        quiet = Quiet(net, "bad.origin.test", 403, kept=10 * KEPT, fresh=0, ahead=AHEAD)
        assert quiet.line() == "begin"
        before = g.ask("count")["answers"]
        assert quiet.line() == "kept"
        answers = g.ask("count")["answers"] - before
        assert json.loads(quiet.line()) == []
        base.reap(quiet.process)
        assert answers, "it went on all the while"
        got = answers / FLOOD / (10 * KEPT)
        assert got < turns, f"{got:.1f} answers for each connection of the flood, while the quiet one got one"
        assert Quiet(net).wrong() == []  # what has to go to the origin and back does, too
