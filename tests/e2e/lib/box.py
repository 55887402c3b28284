# SPDX-License-Identifier: MIT
"""A sandbox with an agent in it: by `netpawl run`, an adopted cgroup, or an adopted container of an engine."""
import os
import secrets

from lib import base
from lib.world import Agent, HOST4, HOST6

SETTINGS = {"net.ipv6.conf.default.accept_dad": 0, "net.ipv6.conf.default.router_solicitations": 0, "net.ipv4.tcp_fastopen": 0x207,
            "net.ipv4.ping_group_range": "0 2147483647",
            "net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0}  # of a network namespace that a test attacks from, or scans
LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}


def new_session(word="s"):
    return f"tester/{word}-{secrets.token_hex(4)}"


class Box:
    """`netpawl run` with an agent as its command; where NETPAWL_TEST_ADOPTED names a kind of container, one of that kind, adopted."""

    wired, addr = None, {4: HOST4, 6: HOST6}  # where it lives, and an address of its own there, beside 127.0.0.1
    at = {4: HOST4, 6: HOST6}  # where others call it
    apart = False  # it lives in another network namespace than the host

    def __new__(cls, *_, more=(), **__):
        if cls is Box and base.ADOPTED and not more:
            cls = Adopted
        if cls is Adopted and base.ADOPTED in ("podman", "docker"):
            from lib.engines import Contained as cls
        return object.__new__(cls)

    def __init__(self, daemon, mode="FULL", user=None, session=None, level=None, more=()):
        """more: further options of netpawl run"""
        self.daemon, self.world, self.user = daemon, daemon.world, user
        self.session = session or new_session("run")
        words = [str(base.NETPAWL), "run", "--session", self.session, "--level", level or LEVEL[mode]]
        words += ["--user", user or "root", *base.shown(), *more]
        argv = [*self.world.enter(), *words, "--", *self.world.agent_argv()]
        before = {s["sandbox"] for s in daemon.api.sandboxes(self.session)}
        self.agent = Agent(argv, daemon.dir / "boxes.log", env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
        try:
            self.hello = self.agent.call("hello")
            new = [s for s in daemon.api.sandboxes(self.session) if s["sandbox"] not in before]
            assert len(new) == 1, f"one run, one sandbox: {new}"
            self.info = new[0]
        except BaseException:
            self.agent.close()
            raise
        if self.info.get("network") == "private":  # older builds, whose gate is taken over, do not say
            self.addr, self.apart = {4: "127.0.0.2", 6: "::1"}, True
        self.id = self.info["sandbox"]
        self.cgroup = base.pathlib.Path(self.info["cgroup"])
        daemon.boxes.append(self)

    def __getattr__(self, name):
        if name in ("call", "try_", "payload"):
            return getattr(self.agent, name)
        raise AttributeError(name)

    def enter(self):
        if self.apart and not self.wired:
            return ["nsenter", "-t", str(self.pids()[0]), "-n"]
        return self.world.enter(self.wired.name if self.wired else None)

    def pids(self):
        """Processes of the sandbox, by the numbers of the host."""
        return base.cgroup_pids(self.cgroup)

    def events(self, **params):
        return self.daemon.api.events(session=self.session, **params)

    def refusals(self, reason=None, timeout=10, **params):
        """Refusal events of this session, waited for: there is at least one, or the list is empty."""
        pick = lambda got: [e for e in got if e["kind"] == "refuse"]
        if reason:
            params["reason"] = reason  # there may be more of others than one answer has
        return pick(self.daemon.api.wait_events(pick, timeout, session=self.session, **params))

    def close(self):
        self.forget()
        return self.agent.close()

    def forget(self):
        if self in self.daemon.boxes:
            self.daemon.boxes.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Launched(Box):
    """By `netpawl run`, whatever the suites are about: for tests of what that does beside the gate."""


class Wired:
    """A network namespace with a device on the bridge of a world. cgroup: who makes it is in there, as container runtimes are."""

    def __init__(self, world, cgroup=None):
        self.name = base.unique("c")
        base.sh("sh", "-c", f'echo $$ > {cgroup or base.cgroup_mount()}/cgroup.procs && exec ip netns add {self.name}')
        world.sysctl(self.name, SETTINGS)
        self.addr = world.wire(f"/run/netns/{self.name}")

    def close(self):
        base.sh("ip", "netns", "del", self.name, check=False)


class Adopted(Box):
    """A cgroup that the test made, with an agent in it, attached to a session. wired: in a network namespace of its own, or (a
    Wired) in that one; the default is the host's, unless NETPAWL_TEST_ADOPTED says otherwise."""

    def __init__(self, daemon, mode="FULL", user=None, session=None, level=None, below=None, before=None, above=None,
                 wired=base.ADOPTED == "container"):
        self.daemon, self.world, self.user = daemon, daemon.world, user
        self.session = session or new_session("adopt")
        self.top = self.cgroup = base.cgroup_make("adopt")
        if above:
            self.cgroup = self.top / above
            self.cgroup.mkdir()
        self.wired = Wired(self.world, self.cgroup) if wired is True else wired
        self.drops = [self.wired.close] if wired is True else []
        if self.wired:
            self.addr, self.at, self.apart = self.wired.addr, self.wired.addr, True
        where, self.agent = self.cgroup, None
        try:
            if below:
                where = self.cgroup / below
                where.mkdir(parents=True)
            ns = self.wired.name if self.wired else self.world.host
            self.agent = self.world.agent(ns, user=None if user == "root" else user, cgroup=where)
            self.hello = self.agent.call("hello")
            if before:
                before(self.agent)
            daemon.api.create(self.session, level or LEVEL[mode])
            self.info = daemon.api.adopt(self.session, self.cgroup)
        except BaseException:
            if self.agent:
                self.world.drop(self.agent)
            base.cgroup_destroy(self.top)
            for drop in self.drops:
                drop()
            raise
        self.id = self.info["sandbox"]
        daemon.boxes.append(self)

    def close(self):
        self.forget()
        self.world.drop(self.agent)
        base.eventually(lambda: not base.cgroup_pids(self.cgroup), 3)
        status, _ = self.daemon.api.ask("DELETE", f"/v1/sandboxes/{self.id}") if self.daemon.running() else (0, None)
        base.cgroup_destroy(self.top)
        for drop in self.drops:
            drop()
        return status


def attach_pid(path, pid):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(pid))
