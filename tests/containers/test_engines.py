# SPDX-License-Identifier: MIT
"""Containers of real engines, adopted from outside while they run. tests/attack/test_containers.py has the gate's side of it, with
more ways around; here is what an engine adds: how its cgroups are named, what its containers hold open, its own resolver, and
what becomes of a sandbox when the engine pauses, stops, restarts or removes a container. The control is the same container before it
is adopted."""
import contextlib
import os
import time

import pytest

from lib import base, bpf
from lib.box import new_session
from lib.engines import Contained, Docker, Podman
from lib.inspected import Inspected
from lib.world import FAR, HOST4, SINK

ENGINES = {"podman": Podman, "docker": Docker}
POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
NONE = ("--network", "none")  # but for the device that we give it


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY, bridged=True, in_memory=True)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, net):
    e = ENGINES[request.param](net.world)
    yield e
    e.close()


@pytest.fixture
def contained(net, engine):
    with contextlib.ExitStack() as stack:
        def make(mode="FULL", options=NONE, **kw):
            box = Contained(net.daemon, mode, engine=engine, options=options, **kw)
            stack.callback(box.close)
            return box

        yield make


def reach(agent, addr, port, kind="stream"):
    return agent.try_("dial", family=4, addr=addr, port=port, kind=kind, data="x", recv=10, timeout=2)


def ask(box, local, path):
    return box.payload("channels", "ask", addr=FAR[4], port=80, local=local, host="origin.test", paths=[path])


def gone(net, box):
    """Nothing is left of it: neither the sandbox, nor in the gate."""
    cgroup = int(box.info["cgroup_id"])
    left = lambda: [s for s in net.api.sandboxes(box.session)] + [m for m in ("np_homes", "np_sandboxes")
                                                                  for e in bpf.dump(net.daemon, m) if e["key"] == cgroup]
    assert base.eventually(lambda: not left(), 20), left()
    homes = {e["value"]["netns"] for e in bpf.dump(net.daemon, "np_homes")}
    assert {e["key"] for e in bpf.dump(net.daemon, "np_namespaces")} == homes
    pins = {p.name.split("-")[0][1:] for p in (net.daemon.pins / "devices").iterdir() if p.name.startswith("n")}
    assert pins == {str(h) for h in homes}
    return True


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_three_modes(net, engine, contained, mode):
    before = []
    box = contained(mode, before=lambda agent: before.append(reach(agent, FAR[4], 9000)))
    assert before == ["ok"], "the control"
    assert box.info["network"] == "container"
    assert box.info["container"] == {"id": engine.inspect(box.name, ".Id"), "engine": engine.name}
    for kind in ("stream", "dgram"):
        assert reach(box.agent, FAR[4], 9000, kind) == ("ok" if mode == "FULL" else "ECONNREFUSED")
    if mode == "PROXIED":
        since = time.time_ns()
        assert ask(box, 20001, "/open/x") == (0, {"statuses": [200]})
        assert ask(box, 20001, "/closed") == (0, {"statuses": [403]})
        status, got = box.payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
        assert status == 0 and all(a.startswith("198.1") for a in got["addrs"]), got
        assert {f["src"] for f in net.world.frames(since, limit=1000)["frames"] if f.get("dport") == 80} == {HOST4}
    if mode == "NONE":
        assert ask(box, 20001, "/open/x") == (0, {"error": "ECONNREFUSED"})


@pytest.mark.parametrize("level", ["CONFIDENTIAL", "SECRET"])
def test_a_raise_with_traffic_running(net, contained, level):
    box, mark = contained("FULL"), base.token()
    for keep, kind in (("tcp", "stream"), ("udp", "dgram")):
        box.call("dial", family=4, addr=FAR[4], port=SINK, kind=kind, keep=keep)
        box.call("stream", keep=keep, mark=mark, size=1000, limit_s=60, pause=0.001)
    since = time.time_ns()
    assert base.eventually(lambda: net.world.frames(since, mark)["marked"] > 20, 10), "the control"
    assert net.api.escalate(box.session, level)["cut"] >= 2
    acknowledged = time.time_ns()
    assert all(box.call("wait", keep=keep)["ended"] for keep in ("tcp", "udp"))
    assert [f for f in net.world.frames(acknowledged, mark, limit=1000)["frames"] if f.get("src") == box.addr[4]] == []
    assert (ask(box, 20002, "/open/x")[1] == {"statuses": [200]}) == (level == "CONFIDENTIAL")


def test_exec_is_inside(net, engine, contained):
    """What the engine starts there later, too."""
    box = contained("NONE")
    code = f"import socket; s = socket.socket(); print(s.connect_ex(('{FAR[4]}', 9000)))"
    assert engine("exec", box.name, base.PYTHON, "-c", code) == "111"


def test_a_privileged_one_gets_no_socket_elsewhere(net, contained):
    before = []
    leave = lambda agent: agent.payload("leave", "leave", how="unshare")[1]
    box = contained("FULL", options=(*NONE, "--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined"), before=lambda agent: before.append(leave(agent)))
    assert before[0]["socket"] == "ok", f"the control: {before}"
    assert leave(box)["socket"] == "EPERM" and box.refusals("left_netns")


def test_loopback_is_its_own(net, engine, contained):
    """Two that share a network namespace, as those of a pod do."""
    one = contained("FULL")
    port = one.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]
    before = []
    two = contained("FULL", options=("--network", f"container:{one.name}"), wired=False,
                    before=lambda agent: before.append(agent.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]))
    assert reach(two.agent, "127.0.0.1", before[0]) == "ok"
    for addr in ("127.0.0.1", one.addr[4]):
        assert reach(one.agent, addr, port) == "ok"
        assert reach(two.agent, addr, port) == reach(one.agent, addr, before[0]) == "ECONNREFUSED"
    net.api.escalate(two.session, "SECRET")
    assert reach(two.agent, FAR[4], 9000) == "ECONNREFUSED" and reach(one.agent, FAR[4], 9000) == "ok"


def test_show_says_whose_it_is(net, engine, contained):
    box = contained("FULL")
    env = {k: v for k, v in engine.env.items() if k.startswith(("CONTAINERS_", "DOCKER_"))}
    text = net.daemon.cli("show", box.session, env=env, check=0).stdout
    assert box.name in text and engine.name in text and box.info["container"]["id"] in text
    if engine.name == "docker":  # Podman's has a root directory and no image
        assert "np-test" in text
    # by the beginning of its id, by a process, and what is not there
    for words in (("--container", box.info["container"]["id"][:12]), ("--pid", box.pid)):
        assert box.id in net.daemon.cli("attach", box.session, *words, env=env, check=0).stdout, "the same once more"
        p = net.daemon.cli("attach", new_session("other"), *words, env=env)
        assert p.returncode == 1 and "already" in p.stderr and str(box.cgroup) in p.stderr, p
    assert "no running container" in net.daemon.cli("attach", box.session, "--container", "np-nobody", env=env, check=1).stderr


@pytest.mark.parametrize("options, named", [(("--cap-add", "NET_RAW"), True), (("--cap-drop", "NET_RAW"), False)], ids=["has", "has not"])
def test_show_warns_of_what_goes_past_the_gate(net, engine, contained, options, named):
    box = contained("FULL", options=(*NONE, *options))
    env = {k: v for k, v in engine.env.items() if k.startswith(("CONTAINERS_", "DOCKER_"))}
    text = net.daemon.cli("show", box.session, env=env, check=0).stdout
    assert ("CAP_NET_RAW" in text) == named, text


def test_doctor_says_what_the_engine_lacks(net, engine, contained):
    env = {k: v for k, v in engine.env.items() if k.startswith(("CONTAINERS_", "DOCKER_"))}
    box = contained("FULL", options=(*NONE, "--cap-add", "NET_RAW"))
    line = lambda text, word: next((l for l in text.splitlines() if l.startswith(word)), "")
    text = net.daemon.cli("doctor", env=env).stdout
    assert "cgroupfs" in line(text, engine.name), text
    assert line(text, "OCI hook") and "CAP_NET_RAW" in line(text, box.info["container"]["id"]), text
    if engine.name == "docker":
        text = net.daemon.cli("doctor", env=dict(env, DOCKER_HOST="unix:///nowhere/docker.sock")).stdout
        assert "does not answer" in line(text, "docker"), text


# -- its life ---------------------------------------------------------------------------------------------

def test_paused(net, engine, contained):
    """It is raised while it cannot run, and finds its connection cut when it can."""
    box = contained("FULL")
    box.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
    engine("pause", box.name)
    try:
        assert net.api.escalate(box.session, "SECRET")["cut"] == 1
    finally:
        engine("unpause", box.name)
    assert box.try_("recv", keep="c") in ("ECONNABORTED", "ECONNRESET")
    assert reach(box.agent, FAR[4], 9000) == "ECONNREFUSED"


@pytest.mark.parametrize("how", [("stop", "-t", "1"), ("kill",), ("rm", "-f")], ids=lambda h: h[0])
def test_ended(net, engine, contained, how):
    box = contained("PROXIED")
    assert ask(box, 20003, "/open/x") == (0, {"statuses": [200]})
    engine(*how, box.name)
    if engine.name == "podman" and how == ("kill",):  # it keeps the empty cgroup: so does the sandbox stay, with nobody in it
        assert base.eventually(lambda: not box.pids(), 10) and net.api.sandbox(box.id)["mode"] == "PROXIED"
        engine("rm", "-f", box.name)
    assert gone(net, box)


def again(net, engine, box):
    """The sandbox that it is after it was started again: its cgroup is another one, its session and mode are not."""
    fresh = lambda: [s for s in net.api.sandboxes(box.session) if s["cgroup_id"] != box.info["cgroup_id"] and s["network"] == "container"]
    assert base.eventually(fresh, 30), (net.api.sandboxes(box.session), net.daemon.text()[-2000:])
    info, = fresh()
    assert info["container"]["id"] == box.info["container"]["id"]
    return info


def connects(engine, name):
    """What a connection of its own meets: 0, or the error."""
    code = f"import socket; s = socket.socket(); s.settimeout(5); print(s.connect_ex(('{FAR[4]}', 9000)))"
    return engine("exec", name, base.PYTHON, "-c", code)


@pytest.mark.parametrize("how", [("restart", "-t", "1"), ("stop", "start"), ("kill", "start")], ids=lambda h: "-".join(h[:2]))
def test_started_again(net, engine, contained, how):
    """The container is a sandbox of the same session again, without anybody's help."""
    box = contained("FULL")
    net.api.escalate(box.session, "SECRET")
    for words in ([how] if how[0] == "restart" else [(word, *("-t", "1") * (word == "stop")) for word in how]):
        engine(*words, box.name)
    info = again(net, engine, box)
    assert info["mode"] == "NONE"
    base.sh("nsenter", "-t", engine.inspect(box.name, ".State.Pid"), "-n", "ip", "link", "set", "lo", "up")
    net.world.wire(f"/proc/{engine.inspect(box.name, '.State.Pid')}/ns/net")
    assert connects(engine, box.name) == "111"
    assert net.api.wait_events(len, session=box.session, reason="container_restarted")
    stranger = base.unique("c")
    argv = engine.run_argv(stranger, "-d", *NONE, cmd=["sleep", "300"])
    base.sh(*argv, env=engine.env, timeout=60)
    try:
        net.world.wire(f"/proc/{engine.inspect(stranger, '.State.Pid')}/ns/net")
        assert connects(engine, stranger) == "0", "the control: one that was never attached"
    finally:
        engine("rm", "-f", stranger)


def test_the_engine_is_restarted(net, engine, contained):
    """Its containers end with it, and come back with it: as what they were."""
    if engine.name != "docker":
        pytest.skip("podman has no daemon")
    box = contained("PROXIED", options=(*NONE, "--restart", "always"))
    assert ask(box, 20008, "/open/x") == (0, {"statuses": [200]})
    engine.restart()
    again(net, engine, box)
    net.world.wire(f"/proc/{engine.inspect(box.name, '.State.Pid')}/ns/net")
    assert connects(engine, box.name) == "111"


def test_a_namespace_that_outlives_its_container(net, engine, contained):
    """Somebody else holds it: nothing of ours stays there."""
    box = contained("PROXIED")
    held = os.open(f"/proc/{box.pid}/ns/net", os.O_RDONLY)
    try:
        there = lambda: base.sh("nsenter", f"--net=/proc/{os.getpid()}/fd/{held}", "ss", "-Hltun").stdout
        assert there()
        engine("rm", "-f", box.name)
        assert gone(net, box)
        assert base.eventually(lambda: not there(), 10), there()
        links = base.sh("nsenter", f"--net=/proc/{os.getpid()}/fd/{held}", "bpftool", "net", "list").stdout
        assert "np_device" not in links
    finally:
        os.close(held)


def test_the_daemon_is_killed(net, engine, contained):
    """The gate stays; the next daemon listens in there anew."""
    full, proxied, none = contained("FULL"), contained("PROXIED"), contained("NONE")
    assert ask(proxied, 20004, "/open/x") == (0, {"statuses": [200]})
    net.daemon.kill()
    try:
        assert ask(proxied, 20005, "/open/x") == (0, {"error": "ECONNREFUSED"})
        assert reach(none.agent, FAR[4], 9000) == "ECONNREFUSED" and reach(full.agent, FAR[4], 9000) == "ok"
        engine("rm", "-f", none.name)  # while nobody looks
    finally:
        net.daemon.start()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 10)
    assert ask(proxied, 20006, "/open/x") == (0, {"statuses": [200]})
    full.call("dial", family=4, addr=FAR[4], port=SINK, keep="c")
    assert net.api.escalate(full.session, "SECRET")["cut"] == 1
    assert reach(full.agent, FAR[4], 9000) == "ECONNREFUSED"
    assert gone(net, none)


def test_the_engines_own_network(net, engine, contained):
    """A bridge of the engine's: its resolver answers in FULL, and in PROXIED the gate does, whichever server the container names."""
    if engine.name != "docker":
        pytest.skip("podman's bridge needs a CNI or netavark set-up of its own")
    name = base.unique("n")
    engine("network", "create", name)
    try:
        before = []
        lookup = lambda agent: agent.try_("sendto", family=4, addr="127.0.0.11", port=53, recv=500, timeout=5,
                                          data="\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06npself\x00\x00\x01\x00\x01")
        box = contained("FULL", options=("--network", name, "--network-alias", "npself"), wired=False, before=lambda agent: before.append(lookup(agent)))
        assert before == ["ok"], "the control"
        assert lookup(box.agent) == "ok"
        net.api.escalate(box.session, "CONFIDENTIAL")
        status, got = box.payload("channels", "resolve", name="origin.test", family="AF_INET", flags=[])
        assert status == 0 and all(a.startswith("198.1") for a in got["addrs"]), got
        assert ask(box, 20007, "/open/x") == (0, {"statuses": [200]})
        box.close()
    finally:
        engine("network", "rm", name, check=False)
