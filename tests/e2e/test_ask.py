# SPDX-License-Identifier: MIT
"""netpawl ask: a person at a terminal, a real daemon, requests that are held. A terminal of 80x24 that is emulated as far as ask uses one."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from lib import base
from lib.asked import Asked

POLICY = """version: 1
levels:
  PUBLIC: FULL
  INTERNAL: PROXIED
  CONFIDENTIAL: PROXIED
  SECRET: NONE
approval: {hold: 2m, timeout: 15m}
rules:
  - allow: open.origin.test
  - ask: ["**.origin.test", origin.test]
"""


class Terminal:
    """`netpawl ask` on a pty."""

    def __init__(self, net, *words, rows=24, columns=80, user=()):
        self.main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(side)
        self.side, self.rows, self.columns, self.raw = side, rows, columns, b""
        self.p = subprocess.Popen([*net.world.enter(), *user, str(base.NETPAWL), "ask", *words], stdin=side, stdout=side, stderr=side,
                                  env=net.env(TERM="xterm"), start_new_session=True)

    def read(self, seconds=0.1):
        while select.select([self.main], [], [], seconds)[0]:
            try:
                got = os.read(self.main, 65536)
            except OSError:
                return
            if not got:
                return
            self.raw += got
            seconds = 0

    def screen(self):
        """What the last drawing left there."""
        self.read()
        if b"\x1b[2J" not in self.raw:
            return ""
        text = self.raw.rpartition(b"\x1b[H\x1b[2J")[2].decode()
        assert not re.search(r"[^\x07\r\n -~\x1b]", text), repr(text)
        text = re.sub(r"\x1b\[(7m|m|\?1049l)|\x07|\x1b[\[?0-9]*$", "", text)  # the last one may be on its way
        assert "\x1b" not in text, repr(text)
        rows = text.split("\r\n")
        assert len(rows) <= self.rows and all(len(r) <= self.columns for r in rows), rows
        return text

    def until(self, *words, without=(), seconds=30):
        end = time.monotonic() + seconds * 3
        while time.monotonic() < end:
            text = self.screen()
            flat = " ".join(text.split())  # a row may end between two words
            if all(" ".join(w.split()) in flat for w in words) and not any(w in text for w in without):
                return text
        raise AssertionError(f"{words} is not on the screen: {self.screen()!r}")

    def press(self, keys):
        os.write(self.main, keys.encode())

    def choose(self, key):
        """The key of an answer, until it is taken: of a question that has just come by itself it is not at once."""
        end = time.monotonic() + 30
        while "Enter sends it" not in self.screen() and time.monotonic() < end:
            self.press(key)
            self.read(0.3)

    def restored(self):
        return termios.tcgetattr(self.side) == self.before

    def ends(self, code=0):
        end = time.monotonic() + 60
        while self.p.poll() is None and time.monotonic() < end:
            self.read()
        assert self.p.poll() == code, (self.p.poll(), self.raw[-500:])
        self.read()
        assert self.restored() and self.raw.rstrip().endswith(b"\x1b[?1049l"), self.raw[-200:]

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        for fd in (self.main, self.side):
            os.close(fd)


class Net(Asked):
    def get(self, session, *words):
        return self.spawn("curl", "-sS", "-m", "110", "-w", "\n%{http_code}", *words, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)

    def asked(self, session, count=1):
        assert base.eventually(lambda: len(self.questions(session)) >= count, 20), self.daemon.text()[-2000:]
        return self.questions(session)

    @contextlib.contextmanager
    def terminal(self, *words, **kw):
        t = Terminal(self, *words, **kw)
        try:
            yield t
        finally:
            t.close()


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack, policy=POLICY)


def status(p):
    out, err = p.communicate(timeout=150)
    return int(out.rpartition("\n")[2] or 0), out


def test_a_person_answers_by_a_key(net):
    session = net.fresh()
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"dataset": "plan.csv", "level": "INTERNAL"})
    with net.terminal(session) as t:
        t.until("nothing waits", "q ends")
        p = net.get(session, "https://key.origin.test/a", "-X", "PUT")
        text = t.until("PUT https://key.origin.test/a", "left to answer", "d deny, o once, h host, m domain, a always")
        assert b"\a" in t.raw and session in text and "the session holds plan.csv" in text and "    ! " in text
        t.until("1 waits, the first for")
        t.press("m")  # .test is in no list
        t.until("no domain")
        t.press("h")
        still = t.until("host ", "reason, if any:", "Enter sends it")
        clock = next(row for row in still.splitlines() if "left to answer" in row)
        time.sleep(2.2)  # it would have counted twice
        t.press("be")
        t.press("c\x7fcause")
        assert clock in t.until("because").splitlines()
        assert net.questions(session)[0]["state"] == "pending", "nothing was sent yet"
        t.press("\r")
        t.until(": host", "nothing waits")
        assert status(p)[0] == 200
        record = net.questions(session, "allowed")[0]
        assert (record["answer"], record["reason"]) == ("host", "because")
        p = net.get(session, "https://second.origin.test/")
        t.until("https://second.origin.test/")
        t.press("d\r")
        t.until(": deny", "nothing waits")
        assert status(p)[0] == 403
        t.press("q")
        t.ends()


def test_a_run_is_approved_and_one_is_rejected(net):
    session = net.fresh()
    with net.terminal(session) as t:
        run = net.write_run(session, "true", "\x1b]0;owned\x07\u202e")
        text = t.until(f"run-{run}  pending", "a approve, d reject")
        assert "owned" in text
        t.press("h")
        t.press("a\r")
        t.until(f"run-{run}: once")
        assert base.eventually(lambda: net.api.ok("GET", f"/v1/runs/{run}")["state"] == "completed", 60)
        run = net.write_run(session, "false")
        t.until(f"run-{run}  pending")
        t.press("dnot today\r")
        t.until(f"run-{run}: deny")
        assert net.api.ok("GET", f"/v1/runs/{run}")["reason"] == "not today"
        t.press("\x03")
        t.ends()


def test_two_at_once_see_one_truth(net):
    session = net.fresh()
    with net.terminal(session) as one, net.terminal(session) as two:
        p = net.get(session, "https://both.origin.test/")
        one.until("both.origin.test")
        two.until("both.origin.test")
        two.press("hmine")  # an answer in progress is not taken away
        two.until("reason, if any: mine")
        one.press("d\r")
        one.until(": deny", "nothing waits")
        assert status(p)[0] == 403
        two.until("reason, if any: mine", "both.origin.test")
        two.press("\r")
        two.until("TOO LATE", "was answered deny by uid 0", "nothing waits")
        p = net.get(session, "https://looked.origin.test/")
        one.until("looked.origin.test")
        two.until("looked.origin.test")
        one.press("o\r")
        two.until("was answered once by uid 0", "nothing waits")  # who only looks is told at once
        assert status(p)[0] == 200
        assert [q["answer"] for q in net.questions(session, "allowed")] == ["once"]


def test_a_key_for_what_has_just_gone_is_no_answer_to_what_came(net):
    """Somebody else answers the question that is shown, in the moment that the key for it is pressed: another stands there then."""
    session = net.fresh()
    first = net.get(session, "https://harmless.origin.test/")
    harmless = net.asked(session)[0]["id"]
    with net.terminal(session) as t:
        t.until("https://harmless.origin.test/")
        second = net.get(session, "https://evil.origin.test/")
        evil = [q["id"] for q in net.asked(session, 2) if q["host"] == "evil.origin.test"][0]
        t.until("1 more waits")
        net.api.ok("POST", f"/v1/questions/{harmless}/answer", {"answer": "deny"})
        t.until("https://evil.origin.test/", seconds=10)
        t.press("o\r")
        t.until("the key was not taken")
        assert net.api.ok("GET", f"/v1/questions/{evil}")["state"] == "pending"
        t.choose("o")  # the control: who has had time to read it is heard
        t.press("\r")
        assert status(second)[0] == 200 and status(first)[0] == 403


def test_what_has_changed_is_shown_anew(net):
    session = net.fresh()
    with net.terminal(session) as t:
        p = net.get(session, "https://anew.origin.test/")
        t.until("anew.origin.test", "level INTERNAL")
        t.press("h")
        t.until("reason, if any:")
        before = net.policy.read_text()
        net.policy.write_text(before + "# another\n")
        net.api.ok("POST", "/v1/policy/reload", {})
        t.press("\r")
        t.until("NOT SENT", "anew.origin.test", "d deny")
        assert net.questions(session)[0]["state"] == "pending"
        t.press("h\r")
        t.until(": host")
        assert status(p)[0] == 200
        p = net.get(session, "https://risen.origin.test/")
        t.until("risen.origin.test")
        t.press("h")
        t.until("reason, if any:")
        net.api.escalate(session, "CONFIDENTIAL")
        t.press("\r")
        t.until("TOO LATE", "void")
        t.until("risen.origin.test", "level CONFIDENTIAL")  # it was asked anew
        t.press("d\r")
        t.until(": deny")
        assert status(p)[0] == 403


def test_hostile_words_are_harmless_and_fit(net):
    """The path is as long as a question shows, and full of what a terminal would act upon; the warnings stay on the screen."""
    session = net.fresh()
    url = "https://hostile.origin.test/" + "%1b%5b2J%0d%0aanswered%20always" + "x" * 1900
    with net.terminal(session) as t, net.terminal(session, rows=12, columns=40) as small:
        p = net.get(session, url, "-X", "POST", "-d", "x" * 100)
        text = t.until("hostile.origin.test", "    ! ", "left to answer", "d deny", " ...")
        assert len(text.split("\r\n")) <= 24
        small.until("left to answer", "d deny")
        t.press("d\r")
        t.until(": deny")
        assert status(p)[0] == 403


def test_others_wait_in_line_and_sessions_take_turns(net):
    busy, quiet = net.fresh(), net.fresh()
    runs = [net.write_run(busy, "true", str(i)) for i in range(5)]
    with net.terminal() as t:
        t.until("4 more wait", f"run-{runs[0]}  pending")
        last = net.write_run(quiet, "true")
        t.until("5 more wait")
        t.press("d\r")
        t.until(f"run-{last}  pending  {quiet}", "4 more wait")  # before the other four
        t.press("n")
        t.until(f"pending  {busy}")
        net.api.end(busy)
        t.until(f"run-{last}  pending  {quiet}", without=["more wait"])
        t.choose("d")
        t.press("\r")
        t.until("nothing waits")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(net, how):
    with net.terminal() as t:
        t.until("nothing waits")
        assert not t.restored()
        pid = int(subprocess.run(["pgrep", "-P", str(t.p.pid), "-x", "netpawl"], capture_output=True, text=True).stdout.split()[0]) \
            if "netpawl" not in open(f"/proc/{t.p.pid}/comm").read() else t.p.pid
        os.kill(pid, how)
        t.ends(128 + how)


def test_the_daemon_goes_away_and_comes_back(net):
    session = net.fresh()
    with net.terminal(session) as t:
        run = net.write_run(session, "sleep", "1")
        t.until(f"run-{run}  pending")
        net.daemon.stop()
        t.until("NO DAEMON", "trying again")
        net.daemon.start()
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
        t.until("is over: void", "nothing waits", without=["NO DAEMON"])  # nobody is there to start it any more
        p = net.get(session, "https://again.origin.test/")
        t.until("again.origin.test", without=["NO DAEMON"])
        t.press("o\r")
        t.until(": once")
        assert status(p)[0] == 200
        t.press("q")
        t.ends()


def test_without_a_terminal_it_says_what_to_use(net):
    got = net.daemon.cli("ask")
    assert got.returncode == 2 and "netpawl questions --follow" in got.stderr and not got.stdout


def test_who_has_no_role_is_told_before_the_screen_is_taken(net):
    for parent in (net.daemon.dir, net.daemon.run_dir):
        os.chmod(parent, 0o755)
    with net.terminal(user=["setpriv", "--reuid", "65534", "--clear-groups"]) as t:
        assert t.p.wait(60) in (1, 3)
        t.read()
        assert b"\x1b" not in t.raw and t.raw, t.raw


def test_approve_sock_is_enough(net):
    session = net.fresh()
    with net.terminal("--socket", str(net.daemon.run_dir / "approve.sock"), session) as t:
        p, run = net.get(session, "https://inbox.origin.test/"), net.write_run(session, "true")
        for _ in range(2):
            text = t.until("left to answer")
            t.press("d\r")
            t.until(": deny")
        t.until("nothing waits")
        assert status(p)[0] == 403 and net.api.ok("GET", f"/v1/runs/{run}")["state"] == "rejected"
