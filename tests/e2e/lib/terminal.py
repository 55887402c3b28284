# SPDX-License-Identifier: MIT
"""A shell in a tmux of its own, in which a command of netpawl's runs that draws."""
import contextlib
import os
import re
import shlex
import shutil
import subprocess

from lib import base


class Terminal:
    """words: of the command line, behind netpawl."""

    def __init__(self, words, term="screen", size=(80, 24), env=()):
        self.dir = base.tempdir("tmux")
        self.socket = self.dir / "socket"
        command = shlex.join([str(base.NETPAWL), *words])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(size[0]), "-y", str(size[1]),
                  f"env TERM={term} {' '.join(env)} PS1='$ ' sh")
        self.type(command + "; echo left with $?", "Enter")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", str(self.socket), *words], capture_output=True, text=True, timeout=30, check=True,
                              env={**os.environ, "TERM": "screen", "LC_ALL": "C.UTF-8"}).stdout

    def type(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p", "-t", "t")

    def shows(self, *wanted, but=(), seconds=8):
        """Waits for a screen with all of these (regular expressions) and none of those."""
        look = lambda: all(re.search(w, t := self.text()) for w in wanted) and not any(re.search(b, t) for b in but)
        assert base.eventually(look, seconds), f"no {wanted} without {but} in:\n{self.text()}"
        return self.text()

    def pid(self):
        shell = int(self.tmux("list-panes", "-t", "t", "-F", "#{pane_pid}"))
        pids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(shell)], capture_output=True, text=True).stdout.split()
        return int(pids[0])

    def close(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
        shutil.rmtree(self.dir, ignore_errors=True)

    __enter__ = lambda self: self
    __exit__ = lambda self, *exc: self.close()
