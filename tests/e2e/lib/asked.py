# SPDX-License-Identifier: MIT
"""One daemon, and sessions of INTERNAL whose requests a person is asked about."""
import contextlib

from lib import base
from lib.box import new_session
from lib.inspected import Inspected


class Asked(Inspected):
    def fresh(self, level="INTERNAL"):
        session = new_session("asked")
        self.api.create(session, level)
        return session

    def questions(self, session=None, state="pending"):
        return self.api.ok("GET", f"/v1/questions?state={state}" + (f"&session={session}" if session else ""))["questions"]

    def answer(self, question, answer, **more):
        return self.api.ok("POST", f"/v1/questions/{question['question']}/answer", {"answer": answer, **more})

    @contextlib.contextmanager
    def risen_by_adoption(self, session, higher):
        """With a cgroup that the kernel knows at the level, and the generation, of a higher session."""
        cgroup = base.cgroup_make("adopted")
        try:
            self.api.adopt(higher, str(cgroup))
            self.api.escalate(higher, "CONFIDENTIAL")
            self.api.end(higher)
            self.api.adopt(session, str(cgroup))
            assert self.api.show(session)["level"] == "CONFIDENTIAL"
            yield
        finally:
            base.cgroup_destroy(cgroup)
