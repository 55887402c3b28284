# SPDX-License-Identifier: MIT
"""A sandbox with an agent in it: by `netpawl run`, or an adopted cgroup."""
import os
import secrets

from lib import base
from lib.world import Agent

LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}


def new_session(word="s"):
    return f"tester/{word}-{secrets.token_hex(4)}"


class Box:
    """`netpawl run` with an agent as its command."""

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
        self.id = self.info["sandbox"]
        self.cgroup = base.pathlib.Path(self.info["cgroup"])
        daemon.boxes.append(self)

    def __getattr__(self, name):
        if name in ("call", "try_", "payload"):
            return getattr(self.agent, name)
        raise AttributeError(name)

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


class Adopted(Box):
    """A cgroup that the test made, with an agent in it, attached to a session."""

    def __init__(self, daemon, mode="FULL", user=None, session=None, level=None, below=None, before=None):
        self.daemon, self.world, self.user = daemon, daemon.world, user
        self.session = session or new_session("adopt")
        self.cgroup = base.cgroup_make("adopt")
        where, self.agent = self.cgroup, None
        try:
            if below:
                where = self.cgroup / below
                where.mkdir(parents=True)
            self.agent = self.world.agent(self.world.host, user=None if user == "root" else user, cgroup=where)
            if before:
                before(self.agent)
            daemon.api.create(self.session, level or LEVEL[mode])
            self.info = daemon.api.adopt(self.session, self.cgroup)
        except BaseException:
            if self.agent:
                self.world.drop(self.agent)
            base.cgroup_destroy(self.cgroup)
            raise
        self.id = self.info["sandbox"]
        daemon.boxes.append(self)

    def close(self):
        self.forget()
        self.world.drop(self.agent)
        base.eventually(lambda: not base.cgroup_pids(self.cgroup), 3)
        status, _ = self.daemon.api.ask("DELETE", f"/v1/sandboxes/{self.id}") if self.daemon.running() else (0, None)
        base.cgroup_destroy(self.cgroup)
        return status


def attach_pid(path, pid):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(pid))
