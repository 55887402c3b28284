# SPDX-License-Identifier: MIT
"""What inspectors report: every request is one event with the rung of its verdict, and none is lost in silence."""
import json
import subprocess

import pytest

from lib import base
from lib.box import new_session
from lib.inspected import inspected

LOAD = base.TESTS / "e2e/lib/load.py"


class Load:
    """Requests at once from one sandbox of a session of its own, or of the one given."""

    def __init__(self, net, session=None, url="http://origin.test/load", threads=8, count=0, **more):
        self.net, self.session = net, session or new_session("load")
        if not session:
            net.api.create(self.session, "CONFIDENTIAL")
        task = json.dumps(dict(url=url, threads=threads, count=count, **more))
        self.process = net.spawn(base.PYTHON, LOAD, task, session=self.session, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "begun\n", self.process.communicate(timeout=30)[1]

    def end(self):
        """What the client saw."""
        try:
            out, err = self.process.communicate(timeout=60)
        finally:
            base.reap(self.process)
        assert out, err
        return json.loads(out)


def requests_of(events):
    return [e for e in events if e.get("url")]


def all_events(api, session):
    """Every page of them."""
    every, after = [], 0
    while page := api.events(session=session, after=after, limit=1000):
        every += page
        after = page[-1]["seq"]
    return every


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        yield i
        assert i.daemon.running()


def test_an_event_has_the_rung_of_its_verdict(net):
    """A raise under load: what was decided before it says so, however late its report comes."""
    load = Load(net)
    before = net.api.show(load.session)
    after = net.api.escalate(load.session, "SECRET")
    load.end()
    assert (before["mode"], after["mode"]) == ("PROXIED", "NONE")
    got = requests_of(all_events(net.api, load.session))
    assert len(got) >= 8
    rungs = {(e["kind"], e["mode"], e["level"], e["generation"]) for e in got}
    assert {r for r in rungs if r[0] == "allow"} == {("allow", "PROXIED", "CONFIDENTIAL", before["generation"])}, rungs
    assert all(r[1:] in {("PROXIED", "CONFIDENTIAL", before["generation"]), ("NONE", "SECRET", after["generation"])}
               for r in rungs), rungs
