# SPDX-License-Identifier: MIT
"""Fixtures and hooks of tests/e2e and tests/attack; each folder's conftest.py imports them."""
import contextlib
import os
import signal

import pytest

from lib import base
from lib.box import Adopted, Box
from lib.daemon import Daemon
from lib.world import World


# A run in the background has them ignored, and what it starts would inherit that.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def world():
    w = World()
    yield w
    w.close()


@contextlib.contextmanager
def daemon_whole(d):
    """From its start to a clean end, and up in between."""
    with contextlib.closing(d):
        d.start()
        yield d
        assert d.running(), f"the daemon died on the way: {d.text()[-3000:]}"
        assert d.stop() == 0, f"SIGTERM is a clean end: {d.text()[-3000:]}"


@pytest.fixture(scope="module")
def daemon(world):
    """One daemon a module: for tests that do not harm it."""
    with daemon_whole(Daemon(world)) as d:
        yield d


@contextlib.contextmanager
def daemon_with(world, head):
    """For a module that wants a daemon with more in its policy."""
    d = Daemon(world)
    d.policy.write_text("version: 1\n" + head + base.PERMITS)
    with daemon_whole(d):
        yield d


@pytest.fixture
def api(daemon):
    return daemon.api


@pytest.fixture
def make_daemon(world):
    """Daemons that one test owns."""
    made = []

    def make(**kw):
        d = Daemon(world, **kw)
        made.append(d)
        return d

    yield make
    for d in made:
        d.close()


@pytest.fixture
def boxes(daemon):
    """make(mode, ...) -> Box; all are closed when the test ends."""
    made = []

    def make(mode="FULL", kind=Box, on=None, **kw):
        b = kind(on or daemon, mode, **kw)
        made.append(b)
        return b

    yield make
    for b in reversed(made):
        b.close()


@pytest.fixture
def adopted(boxes):
    return lambda mode="FULL", **kw: boxes(mode, kind=Adopted, **kw)


class BoxPool:
    """Sandboxes that several tests of a module share, by mode and user: an attack leaves nothing behind in them."""

    def __init__(self, daemon):
        self.daemon, self.boxes = daemon, {}

    def __call__(self, mode, user="root", kind=Box, **kw):
        key = (mode, user, kind, tuple(sorted(kw.items())))
        box = self.boxes.get(key)
        if box is None or box.agent.process.poll() is not None:
            box = self.boxes[key] = kind(self.daemon, mode, user=user, **kw)
        return box

    def close(self):
        for box in self.boxes.values():
            box.close()


@pytest.fixture(scope="module")
def pool(daemon):
    p = BoxPool(daemon)
    yield p
    p.close()


# -- the run as a whole --------------------------------------------------------------

_skips = []


def _timeout(signum, frame):
    raise TimeoutError("a test took longer than any test may: a hang")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A bound for every test, fixtures included."""
    old = signal.signal(signal.SIGALRM, _timeout)
    signal.alarm(int(os.environ.get("NETPAWL_TEST_TIMEOUT", "1200")))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skips.append((report.nodeid, reason))


def _expected(nodeid, reason):
    with open(base.TESTS / "e2e/expected_skips.txt") as f:
        for line in f:
            part, _, words = line.strip().partition(": ")
            if part and not part.startswith("#") and part in nodeid and words in reason:
                return True
    return False


def _complain(session, text):
    session.config.get_terminal_writer().line("\nERROR: " + text, red=True)
    session.exitstatus = 1


@pytest.hookimpl(trylast=True)  # after the fixtures' end, which is there with -x
def pytest_sessionfinish(session, exitstatus):
    unexpected = [s for s in dict.fromkeys(_skips) if not _expected(*s)]
    if unexpected and os.environ.get("CI") == "true":
        _complain(session, f"skips that are not in expected_skips.txt: {unexpected}")
    left = base.leftovers()
    if left:
        _complain(session, "left behind: " + "; ".join(left))
        base.sweep()
