# SPDX-License-Identifier: MIT
"""netpawl forward: an operator's way to a listener of a sandbox."""
import json
import signal
import subprocess

from lib import base
from lib.world import Refused


class Forward:
    """A netpawl forward in the host's namespace."""

    def __init__(self, daemon, session, port, *more):
        self.argv = [*daemon.world.enter(), str(base.NETPAWL), "forward", session, str(port), *map(str, more), "--json"]
        self.process = base.popen(self.argv, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.info = json.loads(line) if line.startswith('{"forward"') else None

    @property
    def local(self):
        return self.info["local"]

    def failed(self):
        """It did not come to listening: the exit code, and what it said."""
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out + err

    def end(self, signo=signal.SIGTERM):
        code = base.reap(self.process, signo, timeout=60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def call(world, port, data="hello", timeout=30):
    """ok: something came back; a connection that is accepted and closed is none."""
    try:
        got = world.outside.call("dial", family=4, addr="127.0.0.1", port=port, data=data, recv=100, timeout=timeout)
    except Refused as e:
        return e.error
    return "ok" if got["data"] else "EOF"


def leads_into(net, box):
    """One leads to what listens in this sandbox."""
    port = box.call("listen", keep="forwarded", family=4, addr="127.0.0.1")["port"]
    forward = Forward(net.daemon, box.session, port)
    try:
        return call(net.world, forward.local) == "ok"
    finally:
        forward.end()
        box.call("close", keep="forwarded")
