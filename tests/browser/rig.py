# SPDX-License-Identifier: MIT
"""A daemon with questions, refusals and rises, and consoles on it: the world of the browser tests. By itself (rig.py) it prints a link
and stays until its input ends."""
import contextlib
import pathlib
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = True

from lib import base  # noqa: E402
from lib.asked import Asked  # noqa: E402
from lib.console import Console  # noqa: E402

POLICY = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 20s, timeout: 15m, grants: grants.yaml, group: root}
lists:
  llm: [llm.origin.test]
rules:
  - deny: bad.origin.test
  - allow: "@llm"
    capture: 2000
  - allow: [open.origin.test, files.origin.test]
    capture: 2000
  - allow: get-only.origin.test
    methods: [GET, HEAD]
  - deny: get-only.origin.test
  - ask: ["**.origin.test", origin.test]
"""


class Rig(Asked):
    def __init__(self, stack, policy=POLICY):
        super().__init__(stack, policy=policy)
        self.stack = stack

    def console(self, *options, **kw):
        return self.stack.enter_context(Console(self.daemon, *options, **kw))

    def curl(self, session, *words, seconds=100):
        return self.spawn("curl", "-sS", "-m", str(seconds), *words, session=session, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)

    def traffic(self, session, rounds=3):
        """Some of each kind; returns when it is over."""
        script = "; ".join(
            f"curl -sS -m 2 -o /dev/null {words} || true" for _ in range(rounds) for words in (
                "https://open.origin.test/repos/a/b?page=2", "https://llm.origin.test/v1/messages -d '{\"model\":\"m\"}'",
                "https://bad.origin.test/", "https://get-only.origin.test/upload -d secret", "http://files.origin.test/list",
                "https://nowhere.test/", "telnet://198.51.100.10:7", "http://169.254.169.254/latest/meta-data/"))
        self.spawn("sh", "-c", script, session=session, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(120)



def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made goes with it
    with contextlib.ExitStack() as stack:
        rig = Rig(stack)
        session = rig.fresh()
        rig.api.create("alice/research", "PUBLIC")
        rig.traffic("alice/research", 1)
        rig.api.ok("POST", "/v1/sessions/alice/research/datasets", {"level": "CONFIDENTIAL", "dataset": "customers.csv", "reason": "ticket 4711"})
        rig.traffic("alice/research")
        rig.traffic(session)
        rig.api.ok("POST", "/v1/sessions/alice/research/datasets", {"level": "SECRET", "dataset": "keys.pem"})
        rig.traffic("alice/research", 1)
        rig.curl(session, "https://api.origin.test/v1/data", "-d", "hello world", seconds=600)
        rig.curl(session, "https://other.origin.test/x", seconds=600)
        console = rig.console(*sys.argv[1:])
        print("SOCKET", rig.daemon.socket, "NETNS", " ".join(map(str, rig.world.enter())), flush=True)
        print("LINK", console.link, flush=True)
        for line in sys.stdin:
            words = line.split()
            if words[:1] == ["link"]:
                print("LINK", console.another(), flush=True)
            elif words[:1] == ["traffic"]:
                threading.Thread(target=rig.traffic, args=(session, int(words[1])), daemon=True).start()
            elif words[:1] == ["ask"]:
                rig.curl(session, words[1], *words[2:], seconds=600)


if __name__ == "__main__":
    main()
