# SPDX-License-Identifier: MIT
"""Many sessions with a sandbox each."""
import pathlib
import subprocess
import time


class Crowd:
    def __init__(self, daemon, word="crowd", alive=True):
        """alive: with a process in each. Sandboxes that are empty end, but those that were never entered wait to be: for as
        long as the daemon lives that made them."""
        self.daemon, self.word, self.alive, self.made, self.processes = daemon, word, alive, 0, []

    def grow(self, want, level="CONFIDENTIAL", seconds=None):
        """seconds: when they are over there are fewer."""
        began = time.monotonic()
        while self.made < want and (seconds is None or time.monotonic() - began < seconds):
            session = f"{self.word}/s{self.made}"
            self.daemon.api.create(session, level)
            cgroup = pathlib.Path(self.daemon.api.make(session)["cgroup"])
            self.made += 1
            if self.alive:
                p = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
                self.processes.append(p)
                (cgroup / "cgroup.procs").write_text(str(p.pid))

    def close(self):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()
