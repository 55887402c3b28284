# SPDX-License-Identifier: MIT
"""Engines that leave cgroups to systemd: containers are scopes, and a parent is a slice, whose name says where it is in the tree."""
import contextlib

import pytest

import engines
from engines import dial
from lib import base
from lib.origins import Origins
from lib.world import World
from systemd import Systemd, SystemdDaemon

POLICY = """version: 1
rules:
  - allow: origin.test
"""
NO_PIDS = ["--pids-limit", "0"]  # its controller is not to be had on a hybrid host


class Podman(engines.Podman):
    def command(self):
        words = super().command()
        words[words.index("--cgroup-manager=cgroupfs")] = "--cgroup-manager=systemd"
        return words


class Docker(engines.Docker):
    def more(self):
        return ["--exec-opt", "native.cgroupdriver=systemd"]


class Net:
    def __init__(self, stack):
        self.hosts = World(tcp_ports=(53, 8080, 9000), bridged=True)
        stack.callback(self.hosts.close)
        origins = Origins(self.hosts)
        stack.callback(origins.close)
        policy = origins.dir / "policy.yaml"
        policy.write_text(POLICY)
        self.world = Systemd(self.hosts)
        stack.callback(self.world.close)
        self.daemon = SystemdDaemon(self.world, policy=policy, inspectors=1, more=["--resolvers", origins.resolvers, "--roots", origins.authority.pem])
        self.world.start(self.daemon.pin_home)
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api = self.daemon.api
        assert base.eventually(lambda: self.api.health()["inspectors"] == 1, 30), self.daemon.text()[-2000:]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture(scope="module", params=[Podman, Docker], ids=["podman", "docker"])
def engine(net, request):
    with contextlib.closing(request.param(net)) as engine:
        yield engine


def test_systemd_finds_the_parent(net, sessions):
    """By its name alone: dashes are levels of the tree."""
    name = sessions("FULL")
    slice_ = net.daemon.cli("parent", "--systemd", name, check=0).stdout.strip()
    p = base.sh(*net.world.enter(), "systemd-run", "--scope", "--quiet", f"--slice={slice_}", "sh", "-c", "grep ^0 /proc/self/cgroup")
    assert p.stdout.startswith(f"0::/netpawl.slice/{slice_}/run-"), p
    parent, = [s for s in net.api.sandboxes(name) if s["parent"]]
    assert parent["cgroup"].endswith(f"/netpawl.slice/{slice_}")


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_a_container_is_born_in_it(net, engine, sessions, mode):
    name = sessions(mode)
    run = lambda *words, network="host": engine.netpawl("run", "--rm", "--network", network, *NO_PIDS, *engine.image(), *words, session=name, check=False)
    assert engine.call("run", "--rm", "--network", "host", *NO_PIDS, *engine.image(), *dial()).stdout.strip() == "b'x'", "the control"
    for _ in range(2):  # systemd takes a slice away that nobody is in
        p = run(*dial())
        assert (p.stdout.strip() == "b'x'") == (mode == "FULL") and (mode == "FULL" or "ConnectionRefusedError" in p.stderr), p
    if mode == "PROXIED":
        p = run("curl", "-sS", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/x", network="none")
        assert p.stdout == "200", p


def test_a_parent_that_systemd_takes_away(net, engine, sessions):
    """It stays while nobody is in it. When the slice is stopped it goes, and then there is no network in one of that name, until the
    parent is asked for again."""
    name = sessions("FULL")
    parent = lambda: net.daemon.cli("parent", "--systemd", name, check=0).stdout.strip()
    more = ["--cgroups", "no-conmon"] if engine.name == "podman" else []
    run = lambda: engine.call("run", "--rm", "--network", "host", "--cgroup-parent", slice_, *more, *NO_PIDS, *engine.image(), *dial(), check=False)
    slice_ = parent()
    for _ in range(2):
        assert run().stdout.strip() == "b'x'"
    base.sh(*net.world.enter(), "systemctl", "stop", slice_)
    assert base.eventually(lambda: not net.api.sandboxes(name), 20), "its sandbox is gone"
    p = run()
    assert p.returncode and not p.stdout, p
    assert parent() == slice_ and run().stdout.strip() == "b'x'"


def test_adopted_while_it_runs(net, engine, sessions):
    name, container = sessions("FULL"), base.unique("c")
    engine.started.append(container)
    engine.call("run", "-d", "--name", container, "--network", "host", *NO_PIDS, *engine.image(), "sleep", "3600")
    ask = lambda: engine.call("exec", container, *dial(), check=False)
    pid = engine.call("inspect", "--format", "{{.State.Pid}}", container).stdout.strip()
    net.daemon.cli("attach", name, "--pid", pid, check=0)
    box, = net.api.sandboxes(name)
    place = {"podman": "/sys/fs/cgroup/machine.slice/libpod-", "docker": "/sys/fs/cgroup/system.slice/docker-"}[engine.name]
    assert box["cgroup"].startswith(place) and box["container"]["engine"] == engine.name, box
    assert ask().stdout.strip() == "b'x'", "the control"
    assert net.api.escalate(name, "SECRET")["mode"] == "NONE"
    p = ask()
    assert "ConnectionRefusedError" in p.stderr, p
    engine.remove(container)
    assert base.eventually(lambda: not net.api.sandboxes(name), 20)
