# SPDX-License-Identifier: MIT
"""From the last build of an older ABI version to this one, with sandboxes that run, talk and try all the time: nothing is lost
that can be kept, and at no moment does a packet leave that one of the two would have held back. ABI 4 is the oldest that can be taken
over from; with the newest one before this, sandboxes that may have a network namespace of their own have one.

`make test-upgrade` builds the older ones from the history of the repository."""
import contextlib
import ctypes
import json
import os
import re
import struct
import subprocess
import time

import pytest

from lib import base, bpf
from lib.box import Adopted, Box, new_session
from lib.daemon import Daemon, NotReady
from lib.origins import Origins
from lib.world import FAR, FAR_OTHER, SINK, World

NOW = re.search(r"NP_ABI_VERSION (\d+)", (base.ROOT / "include/sandbox.h").read_text())[1]
# Version: the map that has its sandboxes.
MAPS = {4: "np_boxes", 7: "np_sandboxes"}
OLD = {n: base.ROOT / f"build/abi{n}/build" for n in MAPS}
if not all((folder / "netpawld").exists() for folder in OLD.values()):
    pytest.skip("there is no build of an older version: they are made from the repository's history", allow_module_level=True)

# Denied in every mode: also FULL has somewhere that it may not go.
POLICY = f"""version: 1
full:
  - deny: {FAR_OTHER}
rules:
  - deny: bad.origin.test
  - allow: [origin.test, "**.origin.test"]
"""
# Ports on which nobody answers and to which only one of the sandboxes ever sends.
PORTS = {"none": 7001, "none_adopted": 7002, "proxied": 7003, "read_only": 7004, "full": 7005, "proxied_adopted": 7006}
CONTROL = 7099
RANK = {"FULL": 1, "PROXIED": 2, "NONE": 3}
STEPS = ["upgrade_loaded", "upgrade_copying", "upgrade_copied", "upgrade_slice", "upgrade_adopted", "upgrade_ready",
         "upgrade_detaching", "upgrade_detached", "upgrade_unpinned"]


@contextlib.contextmanager
def of_build(folder):
    """Programs of that build are started meanwhile."""
    before = base.NETPAWLD, base.NETPAWL
    base.NETPAWLD, base.NETPAWL = folder / "netpawld", folder / "netpawl"
    try:
        yield
    finally:
        base.NETPAWLD, base.NETPAWL = before


class Scene:
    """A daemon of the older build, its sandboxes, and what they do."""

    def __init__(self, stack, version):
        self.version, self.old = version, OLD[version]
        self.own = version >= 6  # network namespaces: sandboxes have one, where they may
        self.world = World(tcp_ports=(53, 8080, 9000))
        stack.callback(self.world.close)
        self.origins = Origins(self.world)
        stack.callback(self.origins.close)
        policy = self.origins.dir / "policy.yaml"
        policy.write_text(POLICY + base.permits("private" if self.own else None))
        self.daemon = Daemon(self.world, policy=policy, inspectors=1,
                             more=["--resolvers", self.origins.resolvers, "--roots", self.origins.authority.pem])
        stack.callback(self.daemon.close)
        self.api = self.daemon.api
        with of_build(self.old):
            self.daemon.start()
            base.eventually(lambda: self.api.health()["inspectors"] == 1, 10)
            self.made = {
                "full": Box(self.daemon, "FULL"),
                "none": Box(self.daemon, "NONE"),
                "proxied": Box(self.daemon, "PROXIED"),
                "read_only": Box(self.daemon, "FULL", more=["--class", "read_only"]),
                "full_adopted": Adopted(self.daemon, "FULL"),
                "none_adopted": Adopted(self.daemon, "NONE"),
                "proxied_adopted": Adopted(self.daemon, "PROXIED"),
            }
            self.kept = new_session("kept")
            self.keep("echo one > /tmp/file; sleep 600 </dev/null >/dev/null 2>&1 & echo $! > /tmp/pid")
        # raised on its way, so that generations are not all alike
        self.api.escalate(self.made["none"].session, "SECRET", dataset="d")
        self.name = self.resolve()
        self.before = self.state()
        self.old_pins = self.daemon.pin_dir / f"v{version}"
        self.old_map = self.old_pins / "maps" / MAPS[version]
        assert self.old_map.exists()
        netns = {name: os.stat(f"/proc/{min(box.pids())}/ns/net").st_ino for name, box in self.made.items()}
        assert {name for name in netns if netns[name] != netns["full"]} == ({"none", "proxied", "read_only"} if self.own else set())

    def keep(self, script):
        return self.daemon.cli("run", "--keep", "--session", self.kept, "--level", "CONFIDENTIAL", "--", "sh", "-c", script,
                               check=0).stdout

    def resolve(self):
        got = self.made["proxied"].call("execute", argv=["getent", "ahostsv4", "origin.test"])
        return got["out"].split()[0] if got["out"] else None

    def request(self, box="proxied", *words, host="origin.test"):
        """The status of a request; 000 when there is no answer."""
        got = self.made[box].call("execute", argv=["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", *words,
                                                   f"http://{host}/"])
        return got["out"]

    def state(self):
        """What must not change, or only rise."""
        return ({s["session"]: s for s in self.api.sessions()},
                {s["sandbox"]: s for s in self.api.sandboxes()})

    def act(self):
        """From now on all of them try what they must not do, and FULL sends."""
        self.since = time.time_ns()
        for name, port in PORTS.items():
            addr = FAR_OTHER if name == "full" else FAR[4]
            for kind in ("stream", "dgram"):
                self.made[name].call("hammer", keep=kind, family=4, addr=addr, port=port, pause=0.001, kind=kind, limit_s=120)
        for name in ("full", "full_adopted"):
            self.made[name].call("dial", family=4, addr=FAR[4], port=9000, keep="echo", data="one", recv=10)
        self.made["full"].call("dial", family=4, addr=FAR[4], port=SINK, keep="transfer")
        self.made["full"].call("stream", keep="transfer", size=1000, pause=0.005, limit_s=120)
        self.loop = base.popen([*self.world.enter(), self.old / "netpawl", "run", *base.shown(), "--session",
                                self.made["proxied"].session, "--", "sh", "-c",
                                "while :; do "
                                "curl -s -m 5 -o /dev/null -w 'good %{http_code}\\n' http://origin.test/; "
                                f"curl -s -m 5 -o /dev/null -w 'bad %{{http_code}}\\n' --resolve bad.origin.test:80:{FAR[4]} "
                                "http://bad.origin.test/; done"],
                               env=base.env(NETPAWL_SOCKET=str(self.daemon.socket)), stdin=subprocess.DEVNULL,
                               stdout=open(self.daemon.dir / "loop", "wb"))
        assert base.eventually(lambda: self.answers().count("good 200") >= 2 and "bad 403" in self.answers(), 30), self.answers()

    def answers(self):
        return (self.daemon.dir / "loop").read_text().splitlines()

    def transfer_goes_on(self):
        total = lambda: self.made["full"].call("wait", keep="transfer", timeout=0)
        first = total()
        assert base.eventually(lambda: total()["total"] > first["total"], 10), first
        assert not first["ended"], first

    def echoes(self):
        for name in ("full", "full_adopted"):
            self.made[name].call("send", keep="echo", data="more")
            assert self.made[name].call("recv", keep="echo")["data"] == "more", name

    def nothing_left(self):
        """The far side got nothing of what must not leave; and would have seen it."""
        self.made["full_adopted"].try_("sendto", family=4, addr=FAR[4], port=CONTROL)
        ports = {*PORTS.values(), CONTROL}
        seen = lambda: [f for f in self.world.frames(self.since, limit=400000)["frames"] if f.get("dport") in ports]
        assert base.eventually(lambda: any(f["dport"] == CONTROL for f in seen()), 5), "the control did not arrive"
        assert [f for f in seen() if f["dport"] != CONTROL] == []

    def settle(self):
        """Ends what act() began and looks at what came of it."""
        self.nothing_left()
        base.reap(self.loop)
        for name in PORTS:
            for kind in ("stream", "dgram"):
                outcomes = self.made[name].call("hammer_stop", keep=kind)["outcomes"]
                assert set(outcomes) <= {"ECONNREFUSED", "EPERM"} and sum(outcomes.values()) > 50, (name, kind, outcomes)
        assert set(self.answers()) <= {"good 200", "good 000", "bad 403", "bad 000"}, set(self.answers())


@pytest.fixture(params=sorted(MAPS), ids="from{}".format)
def scene(request):
    with contextlib.ExitStack() as stack:
        yield Scene(stack, request.param)


def dump(daemon, version, name):
    out = base.sh(*daemon.world.enter(), "bpftool", "-j", "map", "dump", "pinned", daemon.pin_dir / version / "maps" / name).stdout
    return {row["formatted"]["key"]: row["formatted"]["value"] for row in json.loads(out)}


def attached(cgroup):
    """Names of the programs on a cgroup, with repetitions."""
    return sorted(p["name"] for p in json.loads(base.sh("bpftool", "-j", "cgroup", "show", cgroup).stdout or "[]"))


def check_carried_over(scene):
    """After the upgrade: the same sandboxes and sessions, not lower; the old gate is gone and ours is there, once."""
    d, made = scene.daemon, scene.made
    sessions, sandboxes = scene.state()
    for name, was in scene.before[0].items():
        now = sessions[name]
        assert now["level"] == was["level"] and now["mode"] == was["mode"] and now["generation"] >= was["generation"]
    assert set(sandboxes) >= set(scene.before[1])
    for ident, was in scene.before[1].items():
        now = sandboxes[ident]
        assert all(now.get(k) == was.get(k) for k in ("session", "mode", "cgroup", "cgroup_id", "adopted", "kept", "class")), (now, was)
        assert now["counts_partial"], "what the older gate has counted is not ours to tell"
    assert not scene.old_pins.exists()
    assert [p.name for p in d.pin_dir.iterdir()] == [f"v{NOW}"]
    rungs = {key: value["rung"] for key, value in dump(d, f"v{NOW}", "np_sandboxes").items()}
    for name, box in made.items():
        rung = rungs[int(box.info["cgroup_id"])]
        assert rung["flags"] == (1 if name == "read_only" else 0), name
        assert rung["generation"] >= scene.before[1][box.id]["generation"], name
    for cgroup in (d.slice, d.inspector_cgroup, made["none_adopted"].cgroup, made["full_adopted"].cgroup):
        names = attached(cgroup)
        assert names and len(names) == len(set(names)), f"{cgroup}: {names}"
    [event] = d.api.events(reason="upgraded")
    assert f"from ABI version {scene.version}" in event["text"] and "not carried over" in event["text"] and "cut" in event, event


def check_works(scene):
    d, made = scene.daemon, scene.made
    scene.echoes()
    scene.transfer_goes_on()
    after = len(scene.answers())
    assert base.eventually(lambda: "good 200" in scene.answers()[after:] and "bad 403" in scene.answers()[after:], 30)
    assert scene.request() == "200", "by the new inspector"
    fresh = d.cli("run", *base.shown(), "--session", made["proxied"].session, "--", "curl", "-sS", "-m", "10", "-o", "/dev/null",
                  "-w", "%{http_code}", "https://origin.test/")
    assert fresh.stdout == "200", fresh  # programs that run already know the CA of before: after every restart of a daemon
    assert scene.resolve() == scene.name, "a synthetic name is the same"
    assert scene.request("proxied", "--resolve", f"origin.test:80:{scene.name}") == "200", "and stands without a new look-up"
    assert scene.request("proxied", "--resolve", f"bad.origin.test:80:{FAR[4]}", host="bad.origin.test") == "403"
    assert scene.request("read_only", "-d", "x") == "403", "it reads, and no more"
    assert scene.keep("cat /tmp/file; kill -0 $(cat /tmp/pid) && echo alive") == "one\nalive\n"
    # it governs them
    assert d.api.escalate(made["full_adopted"].session, "SECRET")["cut"] >= 1
    assert made["full_adopted"].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert made["full_adopted"].try_("send", keep="echo", data="x") != "ok"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_upgrade_under_traffic(scene, how):
    scene.act()
    getattr(scene.daemon, how)()
    scene.daemon.start()
    check_carried_over(scene)
    check_works_then_settle(scene)


def check_works_then_settle(scene):
    scene.nothing_left()
    check_works(scene)
    # full_adopted is NONE by now: its control would not arrive
    scene.made["full_adopted"] = scene.made["full"]
    scene.settle()


def start_until(daemon, point):
    """The test build, which dies at this point."""
    p = base.popen(daemon.argv(binary=base.NETPAWLD_FAIL), env=base.env(NETPAWL_FAILPOINT=point), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=open(daemon.log, "ab"))
    try:
        assert p.wait(60) == -9, f"{point}: {daemon.text()[-2000:]}"
    finally:
        base.reap(p)


def test_killed_at_every_step(scene):
    """Each start gets one step further than the one before, and is killed there; the last one finishes."""
    scene.act()
    scene.daemon.kill()
    for point in STEPS:
        start_until(scene.daemon, point)
        scene.echoes()
        scene.transfer_goes_on()
        scene.nothing_left()
        for name in ("none", "none_adopted", "proxied", "proxied_adopted", "read_only"):
            assert scene.made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED", (point, name)
    scene.daemon.start()
    assert not scene.old_pins.exists()
    check_works_then_settle(scene)


def raise_abi4(daemon, cgroup_id, mode, generation, level, depth=1):
    """np_raise of the older gate: struct np_raise of ABI 4."""
    fd = bpf.obj_get(daemon.pin_dir / "v4/progs/np_raise")
    try:
        ctx = ctypes.create_string_buffer(struct.pack("IIQIII136sIII", 4, mode, cgroup_id, generation, depth, level, b"", 0, 0, 0))
        attr = struct.pack("IIIIQQIIIIQQIIII", fd, 0, 0, 0, 0, 0, 0, 0, 176, 0, ctypes.addressof(ctx), 0, 0, 0, 0, 0)
        assert struct.unpack_from("i", bpf.call(bpf.PROG_TEST_RUN, attr)[1], 4)[0] == 0
    finally:
        os.close(fd)


@pytest.mark.parametrize("scene", [4], indirect=True)
def test_what_only_the_older_kernel_side_knows_stands(scene):
    """The old daemon died between the raise and the record: the record is behind, and follows. A flag likewise."""
    d, made = scene.daemon, scene.made
    made["full"].call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="one", recv=10)
    d.kill()
    raise_abi4(d, int(made["full"].info["cgroup_id"]), 2, 9, 2)
    raise_abi4(d, int(made["full_adopted"].info["cgroup_id"]), 2, 1, 4)
    d.start()
    now = d.api.show(made["full"].session)
    assert (now["level"], now["mode"]) == ("CONFIDENTIAL", "PROXIED") and now["generation"] >= 9
    assert d.api.sandbox(made["full"].id)["mode"] == "PROXIED"
    assert d.api.events(session=made["full"].session, reason="reconciled")
    assert dump(d, f"v{NOW}", "np_sandboxes")[int(made["full_adopted"].info["cgroup_id"])]["rung"]["flags"] == 1
    with scene.world.watch() as watch:
        for name in ("full", "full_adopted"):
            assert made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED", name
        assert made["full"].try_("send", keep="c", data="x") != "ok", "it is cut"
    assert watch.nothing()


def test_an_adopted_cgroup_that_no_record_knows_stays_closed(scene):
    """The store is lost with the old daemon: what only its pins know is followed all the same, and closed."""
    made = scene.made
    scene.daemon.kill()
    for path in scene.daemon.state_dir.glob("sessions.db*"):
        path.unlink()
    scene.daemon.start()
    assert not scene.old_pins.exists()
    with scene.world.watch() as watch:
        for name in ("full", "full_adopted", "none_adopted", "proxied_adopted"):
            assert made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED", name
            assert made[name].try_("sendto", family=4, addr=FAR[4], port=9000) != "ok", name
    assert watch.nothing()


def test_an_older_gate_that_cannot_be_read_goes_on(scene):
    """Attached, but without its map: nobody can tell how strict each sandbox is. The new one does not start, and its pins do
    not keep the older one from starting."""
    scene.daemon.kill()
    scene.old_map.unlink()
    with pytest.raises(NotReady) as e:
        scene.daemon.start()
    assert e.value.code == 1 and "goes on enforcing" in e.value.text, e.value.text
    assert [p.name for p in scene.daemon.pin_dir.iterdir()] == [scene.old_pins.name]
    assert scene.made["full"].try_("dial", family=4, addr=FAR[4], port=9000) == "ok"
    for name in ("none", "none_adopted", "proxied"):
        assert scene.made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_the_older_build_does_not_come_back(scene):
    """A downgrade: its words are its own; what counts is that the newer gate stays as it is."""
    scene.daemon.restart("stop")
    scene.daemon.stop()
    with of_build(scene.old), pytest.raises(NotReady) as e:
        scene.daemon.start()
    assert e.value.code == 1 and "version" in e.value.text
    for name in ("none", "none_adopted", "proxied"):
        assert scene.made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    scene.daemon.start()
    assert scene.request() == "200"


def test_uninstall_takes_an_older_gate_away(scene):
    d, adopted = scene.daemon, scene.made["none_adopted"]
    d.kill()
    refused = d.uninstall(check=False)
    assert refused.returncode == 1 and "--force" in refused.stderr, "an adopted process would get its network back"
    assert adopted.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
    assert d.uninstall("--force").returncode == 0
    assert not d.pin_dir.exists() or not list(d.pin_dir.iterdir())
    assert adopted.try_("dial", family=4, addr=FAR[4], port=9000) == "ok", "the gate is off"
