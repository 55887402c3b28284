# SPDX-License-Identifier: MIT
"""netpawl parent: a cgroup for containers to be born in. Here a test makes the cgroups that an engine would make in it, and puts
plain processes there; tests/containers has engines."""
import contextlib
import os
import signal

import pytest

from lib import base
from lib.box import new_session
from lib.world import Agent, FAR

PORT = 9000
LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}


class Parent:
    """A session's, and cgroups below it that go with the test."""

    def __init__(self, daemon, mode="FULL", session=None):
        self.daemon, self.world = daemon, daemon.world
        self.session = session or new_session("parent")
        daemon.api.create(self.session, LEVEL[mode])
        self.name = daemon.cli("parent", self.session, check=0).stdout.strip()
        self.path = base.cgroup_mount() / self.name.lstrip("/")
        self.agents = []

    def kinds(self, kind):
        return [s for s in self.daemon.api.sandboxes(self.session) if s[kind]]

    def child(self, name):
        """As an engine makes it."""
        (self.path / name).mkdir(parents=True)
        return self.path / name

    def container(self, cgroup):
        """The sandbox of a cgroup, when there is one."""
        of = lambda: [s for s in self.kinds("born") if s["cgroup"] == str(cgroup)]
        got = base.eventually(of)
        assert got, f"{cgroup} became no sandbox: {self.daemon.api.sandboxes(self.session)}"
        return got[0]

    def agent(self, cgroup):
        """In the host's network namespace before it is in the cgroup: the first other one that it is seen in is its own."""
        argv = [*self.world.enter(), "sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *self.world.agent_argv()]
        self.agents.append(Agent(argv, self.world.dir / "agents.log", env=base.env()))
        self.agents[-1].call("hello")
        return self.agents[-1]

    def close(self):
        for agent in self.agents:
            agent.close()
        if self.daemon.running():
            self.daemon.api.end(self.session)
        base.cgroup_destroy(self.path)


@pytest.fixture
def parents(daemon):
    with contextlib.ExitStack() as stack:
        yield lambda *a, on=daemon, **kw: stack.enter_context(contextlib.closing(Parent(on, *a, **kw)))


def reaches(agent):
    return agent.try_("dial", family=4, addr=FAR[4], port=PORT, data="x", recv=1)


def test_it_is_one_and_stays(parents, daemon):
    p = parents("NONE")
    assert p.path.is_dir() and p.path.parent == daemon.slice
    for _ in range(3):
        assert daemon.cli("parent", p.session, check=0).stdout.strip() == p.name
    info, = p.kinds("parent")
    assert info["mode"] == "NONE" and not info["born"] and not info["adopted"]
    assert daemon.cli("parent", "--json", p.session, check=0).stdout.count(info["sandbox"]) == 1
    assert "parent" in daemon.cli("show", p.session, check=0).stdout


@pytest.mark.parametrize("mode, got", [("FULL", "ok"), ("PROXIED", "ECONNREFUSED"), ("NONE", "ECONNREFUSED")])
def test_what_is_born_there_is_a_sandbox(parents, mode, got):
    p = parents(mode)
    cgroup = p.child("c0ffee")
    info = p.container(cgroup)
    assert info["mode"] == mode and info["sandbox"] != p.kinds("parent")[0]["sandbox"]
    assert reaches(p.agent(cgroup)) == got
    (cgroup / "below").mkdir()
    assert reaches(p.agent(cgroup / "below")) == got, "nested cgroups belong to it"
    assert reaches(p.world.near()) == "ok", "the control: outside of it"


def test_from_the_first_instruction(parents, daemon):
    """Nobody has made it a sandbox yet: the daemon does not even run."""
    full, none = parents("FULL"), parents("NONE")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        for p, got in ((none, "ECONNREFUSED"), (full, "ok")):
            with p.world.watch() as seen:
                assert reaches(p.agent(p.child("early"))) == got
            assert seen.nothing() if got != "ok" else seen.something()
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert none.container(none.path / "early")["mode"] == "NONE"
    assert full.container(full.path / "early")["mode"] == "FULL"


def test_a_raise_cuts_what_they_hold(parents, daemon):
    p = parents("FULL")
    first, second = (p.agent(p.child(name)) for name in ("one", "two"))
    for name in ("one", "two"):
        p.container(p.path / name)
    for agent in (first, second):
        agent.call("dial", keep="c", family=4, addr=FAR[4], port=PORT, data="x", recv=1)
    answer = daemon.api.escalate(p.session, "SECRET")
    assert answer["mode"] == "NONE" and answer["cut"] >= 2
    for agent in (first, second):
        assert agent.try_("send", keep="c", data="after") != "ok"
        assert reaches(agent) == "ECONNREFUSED"
    third = p.agent(p.child("three"))
    assert reaches(third) == "ECONNREFUSED", "what is born later has the session's mode"


def test_what_was_open_before_it_was_a_sandbox_is_cut(parents, daemon):
    """A connection that belongs to the parent, for its container was no sandbox yet."""
    p = parents("FULL")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        agent = p.agent(p.child("early"))
        agent.call("dial", keep="c", family=4, addr=FAR[4], port=PORT, data="x", recv=1)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    p.container(p.path / "early")
    assert agent.call("send", keep="c", data="still") and daemon.api.escalate(p.session, "SECRET")["cut"] >= 1
    assert agent.try_("send", keep="c", data="after") != "ok"


def test_a_container_that_ends_goes_and_the_parent_stays(parents):
    p = parents("FULL")
    cgroup = p.child("short")
    p.container(cgroup)
    p.agent(cgroup).close()
    p.agents.clear()
    base.eventually(lambda: not p.kinds("born"))
    assert not p.kinds("born") and len(p.kinds("parent")) == 1 and p.path.is_dir()
    p.container(p.child("short"))  # started again


def test_without_a_parent_there_is_no_network(parents, daemon):
    """An engine starts a container again whose parent is gone: below the slice, in no sandbox."""
    p = parents("FULL")
    daemon.api.remove(p.kinds("parent")[0]["sandbox"])
    base.eventually(lambda: not p.path.exists())
    agent = p.agent(p.child("again"))
    assert reaches(agent) == "EPROTONOSUPPORT", "not even a socket"
    assert daemon.cli("parent", p.session, check=0).stdout.strip() == p.name
    p.container(p.path / "again")
    assert reaches(agent) == "ok"


def test_removing_the_parent_ends_its_containers(parents, daemon):
    p = parents("FULL")
    cgroup = p.child("one")
    p.container(cgroup)
    agent = p.agent(cgroup)
    daemon.api.remove(p.kinds("parent")[0]["sandbox"])
    base.eventually(lambda: agent.process.poll() is not None)
    assert agent.process.poll() is not None
    base.eventually(lambda: not daemon.api.sandboxes(p.session))
    assert not daemon.api.sandboxes(p.session)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_finds_them_again(make_daemon, parents, how):
    d = make_daemon()
    d.start()
    p = parents("NONE", on=d)
    cgroup = p.child("one")
    before = p.container(cgroup)
    agent = p.agent(cgroup)
    getattr(d, how)()
    late = p.agent(p.child("two"))
    assert reaches(agent) == reaches(late) == "ECONNREFUSED"
    d.start()
    assert p.container(cgroup)["sandbox"] == before["sandbox"]
    assert p.container(p.path / "two")["mode"] == "NONE"
    assert [s["cgroup"] for s in p.kinds("parent")] == [str(p.path)]
    assert d.cli("parent", p.session, check=0).stdout.strip() == p.name
    p.container(p.child("three"))  # it is watched


def test_names_that_look_alike(parents):
    sessions = ["a-b/c-" + base.token(), "a_b/c_" + base.token()]
    sessions += [sessions[0].replace("-", "_"), "u.v+w@x.example/" + base.token()]
    paths = [parents(session=s).path for s in sessions]
    assert len(set(paths)) == len(sessions)
    for path in paths:
        stem = path.name.removeprefix("netpawl-")
        assert stem != path.name and not set("-@+") & set(stem)


def test_what_is_no_parent(daemon, api):
    session = new_session("bad")
    for more in ({"cgroup": "/x"}, {"keep": True}, {"workspace": "none"}, {"clean": True}, {"temporary": True}):
        status, answer = api.ask("POST", "/v1/sandboxes", {"session": session, "parent": True, **more})
        assert (status, answer["error"]) == (400, "bad_field"), answer
    status, answer = api.ask("POST", "/v1/sandboxes", {"session": session, "systemd": True})
    assert (status, answer["error"]) == (400, "bad_field")
    # the test's slice is not where systemd would look
    assert "netpawl.slice" in daemon.cli("parent", "--systemd", session, check=1).stderr
    assert daemon.cli("parent", "nobody").returncode == 2
    api.end(session)


def test_a_wrapper_refuses_what_leads_out(daemon):
    for words in (["run", "--privileged", "image"], ["run", "--cgroup-parent=/", "image"], ["ps"], []):
        for engine in ("docker", "podman"):
            p = daemon.cli(engine, "--session", "a/b", *words)
            assert p.returncode == 2 and p.stderr, words
    assert daemon.cli("docker", "run", "image").returncode == 2  # no session


def test_a_wrapper_adds_its_words(daemon, tmp_path):
    """An engine that says what it was told."""
    session = new_session("wrap")
    engine = tmp_path / "docker"
    engine.write_text('#!/bin/sh\nif [ "$3" = info ]; then echo cgroupfs; else printf "%s\\n" "$@"; fi\n')
    engine.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    p = daemon.cli("docker", "--session", session, "--level", "SECRET", "--", "-H", "x", "run", "--rm", "IMAGE", "ls", "-l",
                   env=env, check=0)
    words = p.stdout.splitlines()
    assert words[:3] == ["-H", "x", "run"] and words[-4:] == ["--rm", "IMAGE", "ls", "-l"]
    assert words[words.index("--cgroup-parent") + 1] == daemon.cli("parent", session, check=0).stdout.strip()
    assert daemon.api.show(session)["level"] == "SECRET"
    engine.write_text("#!/bin/sh\nexit 1\n")
    assert daemon.cli("docker", "--session", session, "--", "-H", "x", "run", "IMAGE", env=env).returncode == 1
    daemon.api.end(session)
