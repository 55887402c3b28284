# SPDX-License-Identifier: MIT
"""Leaving the cgroup, or finding somebody outside of it: the gate judges by cgroup, so this is the way around it."""
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

from lib import base
from lib.box import attach_pid, new_session
from lib.world import FAR

USERS = pytest.mark.parametrize("user", ["root", "nobody"])


def outside_leaves(world, module_function, **args):
    """The control: the same payload in a cgroup of the test's own, outside of any sandbox, gets out and through."""
    folder = base.cgroup_make("control")
    agent = world.agent(world.host, cgroup=folder)
    mark = base.token()
    try:
        with world.watch(mark) as watch:
            _, answer = agent.payload("escape", module_function, addr=FAR[4], port=9000, mark=mark, **args)
        return answer, watch
    finally:
        world.drop(agent)
        base.cgroup_destroy(folder)


def in_sandbox(world, box, function, **args):
    mark = base.token()
    with world.watch(mark) as watch:
        status, answer = box.payload("escape", function, addr=FAR[4], port=9000, mark=mark, **args)
    assert answer is not None and "exception" not in answer, (status, answer)
    assert watch.nothing()
    return answer


def home(box, pids=None):
    """Every process of the sandbox is where it was put."""
    for pid in pids or box.pids():
        where = [l for l in open(f"/proc/{pid}/cgroup") if l.startswith("0::")][0].strip()[3:]
        assert (str(base.cgroup_mount()) + where).startswith(str(box.cgroup)), where


@USERS
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_moving_by_the_cgroup_file_system(world, pool, boxes, mode, user):
    mount, own = str(base.cgroup_mount()), base.unique("own")
    answer, watch = outside_leaves(world, "move", mount=mount, others=[], own=own)
    base.cgroup_destroy(base.cgroup_mount() / own)
    assert answer["after"] != answer["before"] and watch.carried(), "the control moves and gets through"
    full = boxes("FULL")
    box = pool(mode, user)
    pids = box.pids()
    answer = in_sandbox(world, box, "move", mount=mount, others=[str(full.cgroup), f"/proc/1/root{mount}"], own=own)
    assert not (base.cgroup_mount() / own).exists()
    assert answer["after"] == answer["before"] and answer["reach"] == "ECONNREFUSED"
    assert "ok" not in answer["tried"].values(), answer["tried"]
    home(box, pids)


@USERS
def test_moving_by_mounts_of_its_own(world, pool, user):
    scratch = base.tempdir("mnt")
    scratch.chmod(0o777)
    try:
        answer, watch = outside_leaves(world, "mounts", scratch=str(scratch))
        assert answer["tried"]["mount"].startswith("ok") and watch.carried()
        box = pool("NONE", user)
        answer = in_sandbox(world, box, "mounts", scratch=str(scratch))
        assert answer["after"] == answer["before"]
        for name, got in answer["tried"].items():
            what, where, reach = got.split("|")
            assert what != "ok" and reach == "ECONNREFUSED", (name, got)
    finally:
        base.drop_tempdir(scratch)


@USERS
def test_born_elsewhere(world, pool, user):
    mount = str(base.cgroup_mount())
    answer, watch = outside_leaves(world, "clone_into", mount=mount)
    assert answer["clone"] == "ok" and watch.carried()
    answer = in_sandbox(world, pool("NONE", user), "clone_into", mount=mount)
    assert answer["clone"] != "ok"


@USERS
def test_no_deputies(world, pool, user):
    """A process of the host with an open connection: its memory, its registers, its descriptors are out of reach."""
    deputy = world.agent(world.host)
    try:
        deputy.call("dial", family=4, addr=FAR[4], port=9000, keep="c")
        pid = deputy.process.pid
        fd = max(int(n) for n in os.listdir(f"/proc/{pid}/fd") if "socket:" in _link(pid, n))
        with open(f"/proc/{pid}/maps") as f:
            address = [int(line.split("-")[0], 16) for line in f if " rw-p " in line][0]
        args = dict(pid=pid, fd=fd, address=address)
        _, answer = world.outside.payload("escape", "deputies", **args)
        assert set(answer.values()) == {"ok"}, f"the control: {answer}"
        _, answer = pool("NONE", user).payload("escape", "deputies", **args)
        assert "ok" not in answer.values(), answer
        assert deputy.call("hello")
    finally:
        world.drop(deputy)


def _link(pid, name):
    try:
        return os.readlink(f"/proc/{pid}/fd/{name}")
    except OSError:
        return ""


@USERS
@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_no_other_network_namespace(world, pool, mode, user):
    path = f"/run/netns/{world.far}"
    mark = base.token()
    _, answer = world.outside.payload("escape", "netns", path=path, addr=FAR[4], port=9000, mark=mark)
    assert answer["setns"] == "ok" and answer["reach"] == "ok"
    assert base.eventually(lambda: world.records(0, mark))
    mark = base.token()
    _, answer = pool(mode, user).payload("escape", "netns", path=path, addr=FAR[4], port=9000, mark=mark)
    assert answer["setns"] != "ok" and answer["reach"] != "ok"
    assert world.records(0, mark) == []


@USERS
def test_the_gate_itself_is_out_of_reach(world, daemon, pool, user):
    _, control = world.outside.payload("escape", "bpf_calls", pins=str(daemon.pins / "nothing" / "v1"))
    assert control["create"] == "ok", control
    count = sum(len(files) for _, _, files in os.walk(daemon.pins))
    assert count > 10
    _, answer = pool("NONE", user).payload("escape", "bpf_calls", pins=str(daemon.pins))
    assert "ok" not in answer.values(), answer
    assert sum(len(files) for _, _, files in os.walk(daemon.pins)) == count
    assert daemon.api.health()["status"] == "ok"


@USERS
def test_no_device_of_its_own(world, pool, user):
    """HOST forwards here, as a container host does: a packet written to a tun device would be sent on."""
    world.sysctl(world.host, {"net.ipv4.ip_forward": 1})
    try:
        mark = base.token()
        with world.watch(mark) as control:
            _, answer = world.outside.payload("escape", "tun", addr=FAR[4], port=9000, mark=mark)
        if "open" in answer:
            pytest.skip("this machine has no /dev/net/tun")
        assert control.carried(), answer
        mark = base.token()
        with world.watch(mark) as watch:
            _, answer = pool("NONE", user).payload("escape", "tun", addr=FAR[4], port=9000, mark=mark)
        assert watch.marked == 0, answer
        assert answer.get("write") != "ok"
    finally:
        world.sysctl(world.host, {"net.ipv4.ip_forward": 0})


def test_set_user_id_programs_do_not_help(world, pool):
    program = world.dir / "suid_leave"
    shutil.copy(world.dir / "payload/suid_leave", program)
    os.chown(program, 0, 0)
    os.chmod(program, 0o4755)
    assert os.stat(program).st_mode & stat.S_ISUID
    mount = str(base.cgroup_mount())
    folder = base.cgroup_make("suid")
    agent = world.agent(world.host, user="nobody", cgroup=folder)
    mark = base.token()
    try:
        _, answer = agent.payload("escape", "setuid", program=str(program), mount=mount, addr=FAR[4], port=9000, mark=mark)
        assert answer["out"].startswith("moved 1"), f"the control: {answer}"
        assert base.eventually(lambda: world.records(0, mark))
    finally:
        world.drop(agent)
        base.cgroup_destroy(folder)
    box = pool("NONE", "nobody")
    pids = box.pids()
    mark = base.token()
    with world.watch(mark) as watch:
        _, answer = box.payload("escape", "setuid", program=str(program), mount=mount, addr=FAR[4], port=9000, mark=mark)
    assert watch.nothing()
    assert "moved 1" not in answer["out"], answer
    home(box, pids)


# -- nested cgroups, and cgroups that are nobody's --------------------------------------

@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_nested_cgroup_of_an_adopted_one(world, adopted, mode):
    box = adopted(mode, below="a/b")
    mark = base.token()
    with world.watch(mark) as watch:
        got = box.try_("dial", family=4, addr=FAR[4], port=9000, data=mark, recv=20)
    assert got == ("ok" if mode == "FULL" else "ECONNREFUSED")
    assert watch.carried() if mode == "FULL" else not watch.marked


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_nested_cgroup_made_later(world, boxes, mode):
    box = boxes(mode)
    nested = box.cgroup / "nested" / "deeper"
    nested.mkdir(parents=True)
    for pid in box.pids():
        attach_pid(nested, pid)
    assert base.cgroup_pids(nested)
    mark = base.token()
    with world.watch(mark) as watch:
        got = box.try_("dial", family=4, addr=FAR[4], port=9000, data=mark, recv=20)
    assert got == ("ok" if mode == "FULL" else "ECONNREFUSED")
    assert watch.carried() if mode == "FULL" else not watch.marked


def test_nested_cgroup_escalates_with_its_sandbox(world, api, adopted):
    box = adopted("FULL", below="a")
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="c")
    assert api.escalate(box.session, "SECRET")["cut"] >= 1
    assert box.try_("send", keep="c", data="x") != "ok"
    with world.watch() as watch:
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert watch.nothing()


def test_unregistered_cgroup_of_the_slice_is_closed(world, daemon):
    """Below netpawl's own slice, but no sandbox: NONE."""
    folder = daemon.slice / "stray"
    folder.mkdir()
    agent = world.agent(world.host, cgroup=folder)
    try:
        mark = base.token()
        with world.watch(mark) as watch:
            assert agent.try_("dial", family=4, addr=FAR[4], port=9000, data=mark) != "ok"
            assert agent.try_("sendto", family=6, addr=FAR[6], port=9000, data=mark) != "ok"
        assert watch.nothing()
        found = daemon.api.wait_events(lambda got: got, reason="unregistered")
        assert found and found[0]["kind"] == "refuse"
    finally:
        world.drop(agent)
        base.cgroup_destroy(folder)


# -- the control socket ------------------------------------------------------------------

@USERS
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_control_socket_from_inside(daemon, pool, mode, user):
    box = pool(mode, user)
    text = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    control = daemon.world.outside.call("raw_request", path=str(daemon.socket), text=text)
    assert " 200 " in control["data"]
    answer = box.agent.answer("raw_request", dict(path=str(daemon.socket), text=text), 120)
    assert not answer["ok"] or ("403" in answer["data"] and "from_sandbox" in answer["data"])


@pytest.mark.parametrize("words", [["status"], ["sessions"], ["escalate", "tester/x", "PUBLIC"]])
def test_cli_from_inside(daemon, pool, words):
    got = pool("FULL").call("execute", argv=["env", f"NETPAWL_SOCKET={daemon.socket}", "ASAN_OPTIONS=detect_leaks=0",
                                             str(base.NETPAWL), *words])
    assert got["code"] in (1, 3), got


def test_control_connection_from_before(world, daemon):
    """Connected while it was outside, asking when it is inside: the peer is judged at each request."""
    agent = world.agent(world.host)
    session = new_session("early")
    text = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    try:
        agent.call("dial", family="unix", addr=str(daemon.socket), keep="api", data=text, recv=65536)
        daemon.api.create(session, "SECRET")
        attach_pid(daemon.api.make(session)["cgroup"], agent.process.pid)
        if agent.try_("send", keep="api", data=text) == "ok":
            assert "from_sandbox" in agent.call("recv", keep="api")["data"]
    finally:
        world.drop(agent)
        daemon.api.ask("DELETE", f"/v1/sessions/{session}")


def test_a_held_connection_is_not_adopted(world, daemon):
    """A unix socket whose other end is outside would go on serving the adopted process: no adoption."""
    folder = base.cgroup_make("held")
    agent = world.agent(world.host)
    session = new_session("held")
    try:
        agent.call("dial", family="unix", addr=str(daemon.socket), keep="api")
        attach_pid(folder, agent.process.pid)
        daemon.api.create(session, "SECRET")
        status, answer = daemon.api.ask("POST", "/v1/sandboxes", {"session": session, "cgroup": str(folder)})
        assert (status, answer["error"]) == (409, "held_sockets"), answer
    finally:
        world.drop(agent)
        base.eventually(lambda: not base.cgroup_pids(folder), 3)
        daemon.api.ask("DELETE", f"/v1/sessions/{session}")
        base.cgroup_destroy(folder)


# -- time ---------------------------------------------------------------------------------

def test_children_of_a_finished_run_do_not_live_on(world, daemon):
    """A process that the command leaves behind is in the sandbox, and ends with it."""
    session = new_session("orphan")
    mark = base.token()
    p = daemon.cli("run", "--session", session, "--level", "PUBLIC", "--", "sh", "-c",
                   f"setsid sh -c 'sleep 30; : {mark}' >/dev/null 2>&1 < /dev/null & exit 3")
    assert p.returncode == 3

    def gone():
        return not [c for c in _cmdlines() if mark in c]
    assert base.eventually(gone, 10)


def _cmdlines():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                yield f.read()
        except OSError:
            pass


def test_killing_the_launcher_does_not_free_the_command(world, daemon):
    """SIGKILL to `netpawl run` itself: what it started dies or stays in its sandbox."""
    session = new_session("launcher")
    p = subprocess.Popen([*world.enter(), str(base.NETPAWL), "run", "--session", session, "--level", "SECRET", "--",
                          "sleep", "30"], env=base.env(NETPAWL_SOCKET=str(daemon.socket)), stdin=subprocess.DEVNULL)
    try:
        box = base.eventually(lambda: [b for b in daemon.api.sandboxes(session) if base.cgroup_pids(b["cgroup"])])[0]
        pids = base.cgroup_pids(box["cgroup"])
        os.kill(p.pid, signal.SIGKILL)
        p.wait(120)
        time.sleep(0.2)

        def confined(pid):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                return True
            return state in "ZX" or pid in base.cgroup_pids(box["cgroup"])

        # One that is dying is in no cgroup any more, and no zombie yet.
        assert base.eventually(lambda: all(map(confined, pids)), 10)
    finally:
        if p.poll() is None:
            p.kill()
        p.wait(120)
        daemon.api.end(session)
