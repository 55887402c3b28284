# SPDX-License-Identifier: MIT
"""Many sessions with a sandbox each, and a process in each: sandboxes that are empty end."""
import pathlib
import subprocess


class Crowd:
    def __init__(self, daemon, word="crowd"):
        self.daemon, self.word, self.processes = daemon, word, []

    def grow(self, want, level="CONFIDENTIAL"):
        while len(self.processes) < want:
            session = f"{self.word}/s{len(self.processes)}"
            self.daemon.api.create(session, level)
            cgroup = pathlib.Path(self.daemon.api.make(session)["cgroup"])
            p = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
            self.processes.append(p)
            (cgroup / "cgroup.procs").write_text(str(p.pid))

    def close(self):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()
