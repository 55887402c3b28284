# SPDX-License-Identifier: MIT
"""netpawl attach --container and --pid: how a container is found. Engines themselves are in tests/containers; here cgroups are named as
theirs are."""
import contextlib
import json
import secrets

import pytest

from lib import base
from lib.box import attach_pid, new_session
from lib.world import FAR

SHAPES = {"docker": ("docker/{}", "docker"), "docker-systemd": ("docker-{}.scope", "docker"), "podman": ("libpod_parent/libpod-{}", "podman"),
          "podman-systemd": ("libpod-{}.scope/container", "podman"), "containerd": ("kubepods.slice/cri-containerd-{}.scope/init", "containerd"),
          "kubernetes": ("kubepods/burstable/pod1/{}", None), "cri-o": ("crio-{}.scope", "cri-o"),
          "nested": ("docker/" + "f" * 64 + "/docker/{}", "docker")}


@pytest.fixture
def contained(world):
    """make(shape) -> (id, cgroup of the container, agent in it or below it)"""
    with contextlib.ExitStack() as stack:
        def make(shape, id=None):
            top, id = base.cgroup_make("shape"), id or secrets.token_hex(32)
            stack.callback(base.cgroup_destroy, top)
            leaf = top / SHAPES[shape][0].format(id)
            leaf.mkdir(parents=True)
            agent = world.agent(world.host, cgroup=leaf)
            stack.callback(world.drop, agent)
            own = next(p for p in (leaf, *leaf.parents) if id in p.name)
            return id, own, agent

        yield make


def adopted(daemon, session):
    info, = daemon.api.sandboxes(session)
    return info


@pytest.mark.parametrize("shape", SHAPES)
def test_found_by_a_process_and_by_its_id(daemon, contained, shape):
    for by_pid in (True, False):
        id, cgroup, agent = contained(shape)
        session = new_session("found")
        words = ("--pid", agent.process.pid) if by_pid else ("--container", id if shape == "docker" else id[:12])
        daemon.cli("attach", session, *words, check=0)
        info = adopted(daemon, session)
        assert info["cgroup"] == str(cgroup) and info["container"]["id"] == id
        assert info["container"].get("engine") == SHAPES[shape][1]
        daemon.api.escalate(session, "SECRET")
        assert agent.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    text = daemon.cli("show", session, check=0).stdout
    assert id in text and (SHAPES[shape][1] or "-") in text


def test_who_is_in_no_container(world, daemon):
    folder = base.cgroup_make("plain")
    agent = world.agent(world.host, cgroup=folder)
    try:
        session = new_session("plain")
        daemon.cli("attach", session, "--pid", agent.process.pid, check=0)
        info = adopted(daemon, session)
        assert info["cgroup"] == str(folder) and "container" not in info and info["network"] == "shared"
    finally:
        world.drop(agent)
        base.cgroup_destroy(folder)


def test_what_is_not_found(daemon, contained):
    session, start = new_session("lost"), secrets.token_hex(8)
    for words, said in ((("--container", "abcdef012345"), "no running container"), (("--container", "no-such-name"), "no running container"),
                        (("--container", "--help"), ""), (("--pid", "0"), "not a process number"), (("--pid", "x"), "not a process number"),
                        (("--pid", 4194305), "no such process"), (("--cgroup", "/nowhere"), "No such file")):
        p = daemon.cli("attach", session, *words)
        assert p.returncode in (1, 2) and said in p.stderr, (words, p)
    for words in ((), ("--pid", 1, "--cgroup", "/x"), ("--container", "a", "--pid", 1)):
        p = daemon.cli("attach", session, *words, check=2)
        assert "one of --container, --pid and --cgroup" in p.stderr
    for _ in range(2):
        contained("docker", start + secrets.token_hex(24))
    assert "several containers" in daemon.cli("attach", session, "--container", start, check=1).stderr
    assert daemon.api.sandboxes(session) == []


def test_doctor_says_what_one_has(daemon, contained):
    id, _, _ = contained("docker")
    line, = [l for l in daemon.cli("doctor").stdout.splitlines() if id in l and "CAP_NET_RAW" in l]
    assert "docker" in line and "--cap-drop NET_RAW" in line
    json.loads(daemon.cli("doctor", "--json").stdout)


@pytest.mark.parametrize("has", [True, False])
def test_what_leads_past_the_gate_is_said(daemon, has):
    """CAP_NET_RAW and others of a container; the control is one without."""
    top, id, session = base.cgroup_make("caps"), secrets.token_hex(32), new_session("caps")
    cgroup = top / f"libpod-{id}"
    cgroup.mkdir()
    less = [] if has else ["setpriv", "--bounding-set=-net_raw,-net_admin,-sys_admin,-bpf"]
    p = base.popen([*daemon.world.enter(), "sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *less, "sleep", "300"])
    try:
        assert base.eventually(lambda: b"sleep" in open(f"/proc/{p.pid}/cmdline", "rb").read().split(b"\0")[0])
        attach = lambda: daemon.cli("attach", session, "--container", id, check=0).stderr
        said = attach()
        assert ("CAP_NET_RAW" in said) is has and ("CAP_NET_ADMIN" in said) is has, said
        assert attach() == said, "and again"
    finally:
        base.reap(p)
        base.eventually(lambda: not base.cgroup_pids(cgroup))
        for sandbox in daemon.api.sandboxes(session):
            daemon.api.remove(sandbox["sandbox"])
        base.cgroup_destroy(top)
