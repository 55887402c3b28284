# SPDX-License-Identifier: MIT
"""A world with origins, and a daemon whose inspector trusts their root."""
import contextlib
import os
import subprocess
import time

from lib import base
from lib.box import new_session
from lib.daemon import Daemon
from lib.origins import Origins
from lib.world import World

POLICY = """version: 1
rules:
  - deny: bad.origin.test
  - allow: head-only.test
    methods: HEAD
  - allow: get-only.origin.test
    methods: [GET, HEAD]
  - allow: paths.origin.test
    paths: ["/open/**"]
  - deny: [get-only.origin.test, paths.origin.test]
  - allow: small.origin.test
    max_body: 1000
  - allow: captured.origin.test
    capture: 64
  - allow: ws.origin.test
    websocket: true
  - allow: pinned.origin.test
    inspect: false
  - allow: 198.51.100.10
  - allow: [origin.test, "**.origin.test", other.test, loop.test, meta.test, host.test, dead.test, nx.test]
"""


class Inspected:
    """One daemon with an inspector, one PROXIED session, and commands that run in its sandboxes."""

    USER = []  # options of netpawl run that say who the commands run as
    DAEMON_ENV = {}  # variables of the daemon, beside those of the test

    def __init__(self, stack, policy=POLICY, inspectors=2, more=(), in_memory=False, network=base.NETWORK,
                 bridged=bool(base.ADOPTED)):
        self.world = World(tcp_ports=(53, 8080, 9000), bridged=bridged)
        stack.callback(self.world.close)
        self.origins = Origins(self.world)
        stack.callback(self.origins.close)
        self.policy = self.origins.dir / "policy.yaml"
        self.policy.write_text(policy + base.permits(network))
        self.daemon = Daemon(self.world, policy=self.policy, inspectors=inspectors, in_memory=in_memory,
                             more=["--resolvers", self.origins.resolvers, "--roots", self.origins.authority.pem, *more])
        stack.callback(self.daemon.close)
        self.daemon.start(**self.DAEMON_ENV)
        self.api = self.daemon.api
        assert base.eventually(lambda: self.api.health()["inspectors"] == inspectors), self.daemon.text()[-2000:]
        self.session = new_session("inspected")
        self.api.create(self.session, "CONFIDENTIAL")
        # a sandbox that stays keeps the session's authority
        self.keeper = self.spawn("sleep", "infinity")
        stack.callback(base.reap, self.keeper)
        assert base.eventually(lambda: self.api.sandboxes(self.session))
        self.ca = self.world.dir / "session-ca.pem"
        assert base.eventually(self.fetch_ca)

    def fetch_ca(self):
        status, _, pem = self.api.raw("GET", f"/v1/sessions/{self.session}/ca")
        if status != 200:
            return False
        self.ca.write_bytes(pem)
        self.ca.chmod(0o644)
        return True

    def argv(self, *cmd, session=None):
        """--env-all: what a test puts into the environment (a proxy) is meant for its command."""
        return [*self.world.enter(), str(base.NETPAWL), "run", "--env-all", *base.shown(), *self.USER, "--session",
                session or self.session, "--", *map(str, cmd)]

    def env(self, **more):
        """Nothing about certificates: netpawl run sees to that."""
        return base.env(NETPAWL_SOCKET=str(self.daemon.socket), **more)

    def spawn(self, *cmd, session=None, **kw):
        return base.popen(self.argv(*cmd, session=session), env=base.env(NETPAWL_SOCKET=str(self.daemon.socket)),
                          **{"stdin": subprocess.DEVNULL, **kw})

    def run(self, *cmd, timeout=180, input=None, env=None):
        """A command in a sandbox of the session: (exit code, stdout, stderr)."""
        return subprocess.run(self.argv(*cmd), capture_output=True, text=True, timeout=timeout, input=input,
                              env=self.env(**(env or {})))

    def curl(self, *words, timeout=180):
        return self.run("curl", "-sS", "-m", "90", *words, timeout=timeout)

    def binary(self):
        """A file that is no text, where a sandbox can read it."""
        path = self.world.dir / "binary"
        path.write_bytes(bytes(range(256)))
        path.chmod(0o644)
        return path

    def control(self, *cmd, timeout=180):
        """The same on the host, in no sandbox: without the gate."""
        return subprocess.run([*self.world.enter(), *map(str, cmd)], capture_output=True, text=True, timeout=timeout,
                              env={**self.env(), "SSL_CERT_FILE": str(self.origins.authority.pem),
                                   "CURL_CA_BUNDLE": str(self.origins.authority.pem)})

    def workers(self):
        return self.daemon.workers()

    def events(self, want=lambda e: True, after=0, count=1, timeout=10):
        """Of requests, when there are so many."""
        pick = lambda got: [e for e in got if e.get("url") and want(e)]
        return pick(self.api.wait_events(lambda got: len(pick(got)) >= count, timeout, session=self.session, after=after))

    def last(self):
        got = self.api.events()
        return got[-1]["seq"] if got else 0


@contextlib.contextmanager
def inspected(**kw):
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, **kw)


@contextlib.contextmanager
def unharmed(make, *args, **kw):
    """make(stack, ...), a net with a daemon, for a module: in the end the daemon and its inspectors are those of the start."""
    with contextlib.ExitStack() as stack:
        net = make(stack, *args, **kw)
        workers = net.daemon.workers()
        yield net
        assert net.daemon.running(), "the daemon died on the way: " + net.daemon.text()[-3000:]
        assert net.daemon.workers() == workers, "an inspector died on the way: " + net.daemon.text()[-3000:]
