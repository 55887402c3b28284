# SPDX-License-Identifier: MIT
"""Answers at the moment when something else ends the question: whoever is first, nothing passes that no answer let pass, and once is once."""
import concurrent.futures
import contextlib
import datetime
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from lib import base
from lib.api import Failure
from lib.asked import FLOOD, Asked

POLICY = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: %s, timeout: %s}
rules:
  - allow: open.origin.test
  - ask: ["**.origin.test", "**.flood.test"]
"""
ROUNDS = (-40, -10, 0, 5, 25)  # milliseconds from that moment


class Net(Asked):
    def get(self, session, url, version="--http2"):
        return self.spawn("curl", "-sS", version, "-m", "100", "-w", "\n%{http_code}", url, session=session, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)

    def asked(self, session):
        got = base.eventually(lambda: self.questions(session), 30)
        assert got, self.daemon.text()[-2000:]
        return got[0]

    def use(self, hold, timeout):
        self.policy.write_text(POLICY % (hold, timeout) + base.PERMITS)
        self.api.ok("POST", "/v1/policy/reload", {})

    def approved(self, session):
        return [e for e in self.api.events(session=session) if e["reason"] == "approved" and e.get("status") == 200]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Net(stack, policy=POLICY % ("2m", "15m"))
        yield n
        assert n.daemon.running() and n.api.health()["inspectors"] == 2


def done(p):
    out, err = p.communicate(timeout=180)
    body, _, code = out.rpartition("\n")
    return int(code or 0), json.loads(body) if body.startswith("{") else body or err


def until(question, ms):
    """When it is so many milliseconds since it was made."""
    made = datetime.datetime.fromisoformat(question["created"].replace("Z", "+00:00")).timestamp()
    time.sleep(max(0, made + ms / 1000 - time.time()))


def test_an_answer_when_the_client_is_about_to_be_sent_away(net):
    """It goes on, or its retry does: never both, and never neither."""
    net.use("400ms", "5m")
    for offset in ROUNDS:
        session = net.fresh()
        p = net.get(session, "https://hold.origin.test/")
        q = net.asked(session)
        until(q, 400 + offset)
        net.answer(q, "once")
        first, body = done(p)
        second, _ = done(net.get(session, "https://hold.origin.test/"))
        assert (first, second) in ((200, 403), (403, 200)), (offset, first, second, body)
        assert first == 200 or body["reason"] == "needs_approval"
        assert len(base.eventually(lambda: net.approved(session), 10)) == 1
        assert base.eventually(lambda: net.api.ok("GET", f"/v1/questions/{q['question']}")["over"], 10)


def test_an_answer_that_crosses_the_clients_end_is_not_spent_on_it(net):
    """The daemon stands still, so that the answer and the news that nobody waits any more are there at once, in either order."""
    net.use("400ms", "5m")
    for version in ("--http1.1", "--http2") * 3:
        session = net.fresh()
        p = net.get(session, "https://crosses.origin.test/", version)
        q = net.asked(session)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            os.kill(net.daemon.process.pid, signal.SIGSTOP)
            try:
                answered = pool.submit(net.answer, q, "once")
                code, body = done(p)
            finally:
                os.kill(net.daemon.process.pid, signal.SIGCONT)
            assert answered.result(60)["state"] == "allowed"
        assert code == 403 and body["reason"] == "needs_approval", body
        assert done(net.get(session, "https://crosses.origin.test/", version))[0] == 200
        assert done(net.get(session, "https://crosses.origin.test/", version))[0] == 403, "once is once"


def test_an_answer_when_its_time_is_over(net):
    """It is heard and holds, or is too late (409), and then nothing has passed."""
    net.use("1500ms", "1500ms")
    for offset in ROUNDS:
        session = net.fresh()
        p = net.get(session, "https://late.origin.test/")
        q = net.asked(session)
        until(q, 1500 + offset)
        status, _ = net.api.ask("POST", f"/v1/questions/{q['question']}/answer", {"answer": "host"})
        code, body = done(p)
        now = net.api.ok("GET", f"/v1/questions/{q['question']}")
        if status == 200:
            assert now["state"] == "allowed" and done(net.get(session, "https://late.origin.test/"))[0] == 200, (offset, body)
        else:
            assert status == 409 and now["answer"] is None and code == 403 and body["reason"] == "needs_approval", (offset, status, body)
            assert base.eventually(lambda: net.api.ok("GET", f"/v1/questions/{q['question']}")["state"] == "expired", 10)
            assert not net.approved(session)


def test_an_answer_when_the_session_rises(net):
    """Whichever is first: what was answered before the rise holds for nothing after it."""
    net.use("2m", "15m")
    for _ in ROUNDS:
        session = net.fresh()
        p = net.get(session, "https://rises.origin.test/")
        q = net.asked(session)
        start = threading.Barrier(2)

        def answer():
            start.wait()
            return net.api.ask("POST", f"/v1/questions/{q['question']}/answer", {"answer": "host"})[0]

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            heard = pool.submit(answer)
            start.wait()
            net.api.escalate(session, "CONFIDENTIAL")
            status = heard.result()
        assert status in (200, 409)
        after = net.get(session, "https://rises.origin.test/")
        anew = net.asked(session)
        assert anew["question"] > q["question"] and anew["level"] == "CONFIDENTIAL", "it is asked about anew"
        assert after.poll() is None
        net.answer(anew, "deny")
        assert done(after)[0] == 403
        assert done(p)[0] in ((200, 0, 403) if status == 200 else (403, 0))


@pytest.mark.parametrize("delay", [0, 0.002, 0.02])
def test_an_answer_when_the_daemon_is_killed(net, delay):
    """What was acknowledged is on record; what is not leaves the question open, and nothing has passed."""
    net.use("2m", "15m")
    session = net.fresh()
    p = net.get(session, "https://killed.origin.test/")
    q = net.asked(session)

    def answer():
        time.sleep(delay)
        try:
            return net.api.ask("POST", f"/v1/questions/{q['question']}/answer", {"answer": "once"})[0]
        except OSError:
            return None
        except Failure:
            return None
        except Exception as e:  # a connection that was cut in the middle of an answer
            return None if type(e).__module__.startswith("http") else 1 / 0

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        heard = pool.submit(answer)
        net.daemon.restart("kill")
        status = heard.result()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 30)
    code, _ = done(p)
    now = net.api.ok("GET", f"/v1/questions/{q['question']}")
    assert code in (200, 403, 0), "a clean end"
    if status == 200 or code == 200:
        assert now["state"] == "allowed", (status, code, now)
    if now["state"] == "pending":  # nobody was heard: it is there to be answered
        assert code != 200
        net.answer(now, "once")
        assert done(net.get(session, "https://killed.origin.test/"))[0] == 200
    else:
        second, _ = done(net.get(session, "https://killed.origin.test/")) if now["over"] is None else (None, None)
        assert second in (None, 200)
    assert not [q for q in net.questions(session) if q["answer"]]


def test_ten_thousand_hosts_of_one_sandbox_are_thirty_two_questions(net):
    """All of them are answered; another session's question is seen and answered meanwhile."""
    net.use("500ms", "15m")
    flooder, other = net.fresh(), net.fresh()
    flood = net.spawn(base.PYTHON, "-c", FLOOD, "10000", session=flooder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert base.eventually(lambda: len(net.questions(flooder)) == 32, 60)
    p = net.get(other, "https://heard.origin.test/")
    net.answer(net.asked(other), "host")
    assert done(p)[0] in (200, 403) and done(net.get(other, "https://heard.origin.test/"))[0] == 200
    out, err = flood.communicate(timeout=300)
    seen = json.loads(out)
    assert set(seen) == {"needs_approval", "too_many_questions"} and sum(seen.values()) == 10000, (seen, err)
    assert len(net.questions(flooder)) == 32
    assert done(net.get(flooder, "https://open.origin.test/"))[0] == 200, "the control"
    net.api.end(flooder)
    assert not net.questions(flooder)
