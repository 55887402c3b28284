# SPDX-License-Identifier: MIT
"""One daemon, and sessions of INTERNAL whose requests a person is asked about."""
import contextlib

from lib import base
from lib.box import new_session
from lib.inspected import Inspected

# Requests to argv[1] hosts, over eight connections: how often each reason was the answer.
FLOOD = """import concurrent.futures, http.client, json, sys
def some(begin):
    c, seen = http.client.HTTPConnection("198.51.100.10", 80, timeout=100), {}
    for i in range(begin, int(sys.argv[1]), 8):
        c.putrequest("GET", "/", skip_host=True)
        c.putheader("Host", f"h{i}.flood.test")
        c.endheaders()
        r = c.getresponse()
        r.read()
        reason = r.getheader("x-netpawl-reason")
        seen[reason] = seen.get(reason, 0) + 1
    return seen
all_ = {}
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for seen in pool.map(some, range(8)):
        for k, n in seen.items():
            all_[k] = all_.get(k, 0) + n
print(json.dumps(all_))
"""


class Asked(Inspected):
    def fresh(self, level="INTERNAL"):
        session = new_session("asked")
        self.api.create(session, level)
        return session

    def questions(self, session=None, state="pending"):
        return self.api.ok("GET", f"/v1/questions?state={state}" + (f"&session={session}" if session else ""))["questions"]

    def answer(self, question, answer, **more):
        return self.api.ok("POST", f"/v1/questions/{question['question']}/answer", {"answer": answer, **more})

    def write_run(self, session, *command):
        """One that waits for a person, too."""
        return self.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": list(command) or ["true"], "launch": {}})["run"]

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
