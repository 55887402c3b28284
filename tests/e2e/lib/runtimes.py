# SPDX-License-Identifier: MIT
"""What a container runtime calls: a daemon whose policy says what becomes of containers that name no session."""
from lib import base
from lib.inspected import Inspected

POLICY = """version: 1
containers: {unknown: %s}
rules:
  - allow: origin.test
"""


class Net(Inspected):
    def __init__(self, stack):
        super().__init__(stack, policy=POLICY % "ignore", bridged=True)

    def unknown(self, what):
        self.policy.write_text(POLICY % what + base.permits())
        assert self.daemon.cli("policy", "reload").returncode == 0

    def sandbox_of(self, cgroup):
        got = [s for s in self.api.sandboxes() if s["cgroup"] == str(cgroup)]
        return got[0] if got else None
