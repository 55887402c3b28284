# SPDX-License-Identifier: MIT
"""A world with a rogue name server in it, and with the far ends of real DNS tunnels."""
import contextlib
import json
import subprocess

from lib import base
from lib.box import Box
from lib.daemon import Daemon
from lib.origins import Authority
from lib.world import World

ROGUE, IODINE, DNS2TCP = "198.51.100.53", "198.51.100.54", "198.51.100.55"
TUNNEL = "10.99.0.1"  # the far end of iodine's
TUNNEL_PORT, RESOURCE_PORT = 9200, 9201
PASSWORD = "secret"
ALLOWED = "allowed.example"  # whose hosts sandboxes may reach
ZONES = ["evil.example", ALLOWED]  # whoever runs the rogue server owns both
POLICY = f"""version: 1
rules:
  - allow: {ALLOWED}
    dns: [MX, SRV, TXT]
  - allow: "**.{ALLOWED}"
"""


class Tunnels:
    """stack: what is to be closed goes there."""

    def __init__(self, stack, more=""):
        """more: sections of the policy"""
        self.stack, self.boxes = stack, {}
        self.world = World(tcp_ports=(8080, 9000))
        stack.callback(self.world.close)
        self.dir = base.tempdir("tunnels")
        stack.callback(base.drop_tempdir, self.dir)
        for addr in (ROGUE, IODINE, DNS2TCP):
            base.sh("ip", "-n", self.world.far, "addr", "add", addr + "/32", "dev", "lo")
        self.authority = Authority(self.dir)
        cert, key = self.authority.leaf("evil.example", names="DNS:*.evil.example,DNS:*.allowed.example,IP:" + ROGUE)
        self.log = self.dir / "received"
        self.log.touch()
        self.far(base.PYTHON, base.TESTS / "e2e/lib/rogue_server.py", ROGUE, cert, key, self.log, ready=b"ready")
        policy = self.dir / "policy.yaml"
        policy.write_text(POLICY + more + base.PERMITS)
        self.daemon = Daemon(self.world, policy=policy, inspectors=1,
                             more=["--resolvers", ROGUE, "--roots", self.authority.pem])
        stack.callback(self.daemon.close)
        self.daemon.start()
        assert base.eventually(lambda: self.daemon.api.health()["inspectors"] == 1)
        self.resolv = self.dir / "resolv.conf"
        self.resolv.write_text(f"nameserver {ROGUE}\noptions timeout:1 attempts:1\n")

    def far(self, *argv, ready=None):
        """A server in the far namespace, until the end or reap()."""
        p = base.popen([*self.world.enter(self.world.far), *map(str, argv)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE if ready else subprocess.DEVNULL, stderr=open(self.dir / "log", "ab"),
                       env=base.env())
        self.stack.callback(base.reap, p)
        if ready:
            line = p.stdout.readline()
            assert ready in line, (self.dir / "log").read_text()
        return p

    # -- sandboxes --

    def box(self, mode, kind=Box):
        """One for each mode, and kind: Adopted for tools that want devices and mounts, which `netpawl run` does not give."""
        if (mode, kind) not in self.boxes:
            self.boxes[mode, kind] = kind(self.daemon, mode)
            self.stack.callback(self.boxes[mode, kind].close)
        return self.boxes[mode, kind]

    def start_in(self, box, *argv, log):
        """A command in an adopted cgroup and where that lives, with all that the host's root may: the caller reaps it."""
        join = ["sh", "-c", f'echo $$ > {box.cgroup}/cgroup.procs && exec "$@"', "sh"]
        return base.popen([*join, *box.enter(), *map(str, argv)], stdin=subprocess.DEVNULL, stdout=open(log, "wb"),
                          stderr=subprocess.STDOUT, env=base.env())

    def resolving(self, *argv):
        """A command line whose resolver is the rogue server."""
        return ["unshare", "--mount", "sh", "-c", f'mount --bind {self.resolv} /etc/resolv.conf && exec "$@"', "sh",
                *map(str, argv)]

    # -- the rogue server --

    def mark(self):
        return self.log.stat().st_size

    def received(self, since):
        with open(self.log) as f:
            f.seek(since)
            return [json.loads(line) for line in f]

    def carried(self, since, zone):
        """The bytes that came in labels under a zone (see payload/lookups.py), in hexadecimal."""
        pieces = {}
        for record in self.received(since):
            name = record.get("name") or ""
            if name.endswith("." + zone):
                piece, number = name[: -len(zone) - 1].split(".")
                pieces[int(number)] = piece
        return "".join(pieces[i] for i in sorted(pieces))

    # -- the far ends of tunnels --

    @contextlib.contextmanager
    def iodined(self, zone):
        """What arrives at TUNNEL_PORT is in the world's records."""
        p = self.far("iodined", "-f", "-c", "-P", PASSWORD, "-l", IODINE, TUNNEL + "/24", zone)
        try:
            far = lambda: base.sh("ip", "-n", self.world.far, "addr", "show").stdout
            assert base.eventually(lambda: TUNNEL in far(), 10), (self.dir / "log").read_text()
            with self.listening("tunnel", addr=TUNNEL, port=TUNNEL_PORT, kind="dgram"):
                yield
        finally:
            base.reap(p)

    @contextlib.contextmanager
    def dns2tcpd(self, zone):
        """What arrives at its resource "echo" comes back, and is in the world's records."""
        conf = self.dir / "dns2tcpd.conf"
        conf.write_text(f"listen = {DNS2TCP}\nport = 53\nuser = nobody\nchroot = /tmp\ndomain = {zone}\n"
                        f"resources = echo:127.0.0.1:{RESOURCE_PORT}\n")
        with self.listening("resource", addr="127.0.0.1", port=RESOURCE_PORT):
            p = self.far("dns2tcpd", "-F", "-d", "1", "-f", conf)
            try:
                assert base.eventually(lambda: f"for domain {zone}" in (self.dir / "log").read_text(), 10)
                yield
            finally:
                base.reap(p)

    @contextlib.contextmanager
    def listening(self, keep, **spec):
        self.world.world.call("listen", keep=keep, family=4, **spec)
        try:
            yield
        finally:
            self.world.world.call("close", keep=keep)
