# SPDX-License-Identifier: MIT
"""One daemon, and sessions whose requests a decider is asked about: by a command, or at a socket."""
import json
import pathlib
import shutil
import subprocess

from lib import base
from lib.asked import Asked

PROGRAM = pathlib.Path(__file__).with_name("decider_program.py")


class Decided(Asked):
    def __init__(self, stack, rules, by="command", timeout="60s", head="", network=False, **kw):
        self.decider_dir = base.tempdir("decider")
        stack.callback(base.drop_tempdir, self.decider_dir)
        self.decider_dir.chmod(0o777)  # a decider has a user of its own
        self.frames_file = self.decider_dir / "frames"
        self.program = self.decider_dir / "decider.py"
        shutil.copy(PROGRAM, self.program)
        self.program.chmod(0o644)
        self.decider_socket = self.decider_dir / "sock"
        self.server = None
        stack.callback(self.stop_server)
        if by == "command":
            self.by = f"{{command: [{base.PYTHON}, {self.program}, {self.frames_file}], timeout: {timeout}, network: {str(network).lower()}}}"
        else:
            self.by = f"{{socket: {self.decider_socket}, timeout: {timeout}}}"
            self.start_server()
        self.text = f"version: 1\nlevels: {{PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}}\n{head}deciders:\n  guard: {self.by}\n{rules}"
        super().__init__(stack, policy=self.text, **kw)
        assert base.eventually(lambda: self.decider()["ready"], 20), self.daemon.text()[-2000:]

    def start_server(self):
        self.decider_socket.unlink(missing_ok=True)
        self.server = subprocess.Popen([base.PYTHON, str(self.program), str(self.frames_file), str(self.decider_socket)],
                                       stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == "listening\n"

    def stop_server(self):
        if self.server:
            base.reap(self.server)
            self.server.stdout.close()
            self.server = None

    def decider(self, name="guard"):
        return next(d for d in self.api.health()["deciders"] if d["decider"] == name)

    def frames(self, **is_):
        """What the decider got, and is so."""
        if not self.frames_file.exists():
            return []
        got = [json.loads(line) for line in self.frames_file.read_text().splitlines() if line.endswith("}")]
        return [f for f in got if all(f.get(k) == v for k, v in is_.items())]

    def wait_frames(self, count=1, **is_):
        assert base.eventually(lambda: len(self.frames(**is_)) >= count, 15), (is_, self.frames())
        return self.frames(**is_)

    def get(self, session, *words, seconds=100):
        return self.spawn("curl", "-sS", "-m", str(seconds), "-w", "\n%{http_code}", *words, session=session,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fetch(self, session, *words):
        return done(self.get(session, *words))

    def settled(self):
        """When there is a channel, and nothing waits."""
        assert base.eventually(lambda: self.decider()["ready"] and not self.decider()["waiting"], 20), self.daemon.text()[-2000:]


def done(p, timeout=120):
    """(body, status) of a curl; the body of a refusal is read."""
    out, err = p.communicate(timeout=timeout)
    body, _, code = out.rpartition("\n")
    if body.startswith("{"):
        body = json.loads(body)
    return body or err, int(code or 0)
