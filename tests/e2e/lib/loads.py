# SPDX-License-Identifier: MIT
"""Many requests at once from a sandbox (load.py runs in it), and what the daemon says of them."""
import json
import subprocess

from lib import base
from lib.box import new_session

LOAD = base.TESTS / "e2e/lib/load.py"


class Load:
    """Requests at once from one sandbox, of a session of its own."""

    def __init__(self, net, url="http://origin.test/load", threads=8, count=0, **more):
        self.net, self.session = net, new_session("load")
        net.api.create(self.session, "CONFIDENTIAL")
        task = json.dumps(dict(url=url, threads=threads, count=count, **more))
        self.process = net.spawn(base.PYTHON, LOAD, task, session=self.session, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "begun\n", self.process.communicate(timeout=180)[1]
        self.sandbox = net.api.sandboxes(self.session)[0]["sandbox"]

    def seen(self):
        """What the client saw, when it is over."""
        return json.loads(self.process.stdout.readline())

    def counts(self):
        return self.net.api.ok("GET", f"/v1/sandboxes/{self.sandbox}?settled=1")

    def events(self):
        """Requests, and how many were only counted, by reason."""
        every, counted, after = [], {}, 0
        while page := self.net.api.events(session=self.session, after=after, limit=1000):
            every, after = every + page, page[-1]["seq"]
        for e in every:
            if e.get("suppressed"):
                reason = e["reason"] if not e.get("url") else "suppressed"
                counted[reason] = counted.get(reason, 0) + e["suppressed"]
        return [e for e in every if e.get("url")], counted

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        base.reap(self.process)
