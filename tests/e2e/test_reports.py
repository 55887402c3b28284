# SPDX-License-Identifier: MIT
"""What inspectors report: every request is one event with the rung of its verdict, and none is lost in silence, whoever
ends. Counts outlive daemons and inspectors."""
import os
import signal

import pytest

from lib import base
from lib.box import new_session
from lib.inspected import inspected
from lib.loads import Load

COUNTS = ("requests", "refused", "sent", "received")


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        yield i
        assert i.daemon.running()


def workers(net):
    return net.daemon.workers()


def test_an_event_has_the_rung_of_its_verdict(net):
    """A raise under load: what was decided before it says so, however late its report comes."""
    with Load(net) as load:
        before = net.api.show(load.session)
        after = net.api.escalate(load.session, "SECRET")
        answered = load.seen()["answered"]
        assert (before["mode"], after["mode"]) == ("PROXIED", "NONE")
        got, _ = load.events()
    rungs = {(e["kind"], e["mode"], e["level"], e["generation"]) for e in got}
    assert {r for r in rungs if r[0] == "allow"} == {("allow", "PROXIED", "CONFIDENTIAL", before["generation"])}, rungs
    assert all(r[1:] in {("PROXIED", "CONFIDENTIAL", before["generation"]), ("NONE", "SECRET", after["generation"])}
               for r in rungs), rungs
    assert len([e for e in got if e.get("status") == 200]) >= answered["200"] > 0


def check_all_told(load, seen, kept=True):
    """Every answer that a client had is an event, and every request that was judged is one or is in a number."""
    counts = load.counts()  # when all that has ended is told of
    got, counted = load.events()
    told = len([e for e in got if e.get("status") == 200])
    assert seen["answered"]["200"] <= told <= seen["answered"]["200"] + seen["broken"], (seen, told)
    if kept:
        assert counts["requests"] == len(got) + sum(counted.values()), (len(got), counted)
    return counted


def test_a_worker_that_is_killed_leaves_its_reports(net):
    with Load(net, stay=True) as load:
        for pid in workers(net):
            os.kill(pid, signal.SIGKILL)
        seen = load.seen()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)
        counted = check_all_told(load, seen)
        assert set(counted) <= {"requests_lost"} and sum(counted.values()) <= 8


def test_requests_that_were_open_are_one_event_with_a_number(net):
    """The origin has them, and no inspector is left to say what became of them."""
    with inspected_hold(net) as (session, sandbox):
        for pid in workers(net):
            os.kill(pid, signal.SIGKILL)
        lost = net.api.wait_events(lambda got: got, 10, session=session, reason="requests_lost")
        assert [(e["sandbox"], e["suppressed"]) for e in lost] == [(sandbox, 1)]
        [line] = net.daemon.cli("events", "--session", session, "--reason", "requests_lost", check=0).stdout.splitlines()
        assert "1 request's event was lost" in line and "more)" not in line and f"sandbox={sandbox}" in line
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)


class inspected_hold:
    """A request that its origin does not answer."""

    def __init__(self, net, *words):
        self.net, self.session, self.mark, self.words = net, new_session("hold"), base.token(), " ".join(words)

    def __enter__(self):
        net = self.net
        net.api.create(self.session, "CONFIDENTIAL")
        self.process = net.spawn("sh", "-c", f"curl -s {self.words} http://origin.test/hold/{self.mark}; sleep 600", session=self.session)
        assert base.eventually(lambda: [s for s in net.api.sandboxes(self.session) if s["requests"]], 10)
        return self.session, net.api.sandboxes(self.session)[0]["sandbox"]

    def __exit__(self, *exc):
        base.reap(self.process)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_daemon_that_ends_loses_nothing(net, how):
    with Load(net, stay=True) as load:
        net.daemon.restart(how)
        seen = load.seen()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)
        counted = check_all_told(load, seen)
        # Who stops finishes what is open; who is killed knows how many there were.
        assert counted == {} if how == "stop" else set(counted) <= {"requests_lost"}, counted
        before = load.counts()
        net.daemon.restart(how)
        after = load.counts()
        assert [after[k] for k in COUNTS] == [before[k] for k in COUNTS] and before["requests"] > 0
        assert "counts_partial" not in after


@pytest.mark.parametrize("words", [[], ["--http2-prior-knowledge"]], ids=["HTTP/1.1", "HTTP/2"])
def test_a_request_that_the_end_of_the_daemon_ended(net, words):
    """Nobody went away but the daemon, and its event says so."""
    with inspected_hold(net, *words) as (session, sandbox):
        net.daemon.restart("stop")
        [e] = [e for e in net.api.wait_events(lambda got: any("url" in e for e in got), 10, session=session) if "url" in e]
        assert (e["reason"], e["sandbox"], e["mode"]) == ("ended_by_stop", sandbox, "PROXIED"), e
        assert e["text"].startswith("allowed until then by ") and "/hold/" in e["url"], e
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)


@pytest.mark.parametrize("how", ["lost", "of another version"])
def test_counts_that_are_not_whole_say_so(net, how):
    with Load(net, count=5, stay=True) as load:
        load.seen()
        assert "counts_partial" not in load.counts()
        net.daemon.stop()
        if how == "lost":
            base.sh("rm", "-r", net.daemon.run_dir / "ledgers")
        else:
            for i in range(2):
                with open(net.daemon.run_dir / f"ledgers/{i}", "r+b") as f:
                    f.write(bytes([1, 0, 0, 0]))  # LEDGER_VERSION
        net.daemon.start()
        assert load.counts()["counts_partial"] is True
