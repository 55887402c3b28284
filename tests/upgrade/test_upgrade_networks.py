# SPDX-License-Identifier: MIT
"""From this build to one of the next ABI version (next_build.py) with sandboxes in network namespaces of their own: containers, private ones
and those with a way out. Their homes are carried over, the inspectors listen in there anew, devices are guarded at every moment, and nothing
leaves that one of the two builds would have held back."""
import contextlib
import json
import os
import pathlib
import time

import pytest

from lib import base, kernels
from lib.box import Adopted, Box
from lib.inspected import Inspected
from lib.world import DEV, FAR, SINK

NEXT = pathlib.Path(os.environ.get("NETPAWL_NEXT_BUILD", base.ROOT / "build/next/build")).resolve()
if not (NEXT / "netpawld").exists():
    pytest.skip("there is no build of the next version: make test-upgrade makes it", allow_module_level=True)

POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
FORWARDS = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
PORTS = {"container_none": 7001, "container_proxied": 7002, "private_none": 7003, "private_proxied": 7004, "nat_none": 7005}
CONTROL = 7099


class Scene(Inspected):
    def __init__(self, stack):
        super().__init__(stack, policy=POLICY, bridged=True, in_memory=True, network="nat")
        self.world.sysctl(self.world.host, FORWARDS)
        make = {"container_full": lambda: Adopted(self.daemon, "FULL", wired=True), "container_none": lambda: Adopted(self.daemon, "NONE", wired=True),
                "container_proxied": lambda: Adopted(self.daemon, "PROXIED", wired=True), "private_none": lambda: Box(self.daemon, "NONE"),
                "private_proxied": lambda: Box(self.daemon, "PROXIED"), "nat_full": lambda: Box(self.daemon, "FULL"),
                "nat_none": lambda: Box(self.daemon, "FULL")}
        self.made = {}
        for name, one in make.items():
            self.made[name] = one()
            stack.callback(self.made[name].close)
        self.api.escalate(self.made["nat_none"].session, "SECRET")
        self.version = self.pins()[0]

    def pins(self):
        return sorted(p.name for p in self.daemon.pin_dir.iterdir())

    def homes(self, version):
        out = base.sh(*self.world.enter(), "bpftool", "-j", "map", "dump", "pinned", self.daemon.pin_dir / version / "maps/np_homes").stdout
        return {row["formatted"]["key"]: row["formatted"]["value"] for row in json.loads(out)}

    def devices(self, version):
        return {p.name for p in (self.daemon.pin_dir / version / "devices").iterdir() if p.name.startswith("n") or p.name.endswith("-in")}

    def filters(self):
        """Of a kernel without links on devices: (where, device, priority) of each that is our program. The priority tells the version."""
        found = []
        for name in (n for n in self.made if n.startswith("container_")):
            ns = ["nsenter", f"--net=/run/netns/{self.made[name].wired.name}"]
            for device in ("lo", DEV):
                lines = base.sh(*ns, "tc", "filter", "show", "dev", device, "egress").stdout.splitlines()
                found += [(name, device, int(line.split(" pref ")[1].split()[0])) for line in lines if "np_device" in line]
        return sorted(found)

    def ask(self, name, local):
        return self.made[name].payload("channels", "ask", addr=FAR[4], port=80, local=local, host="origin.test", paths=["/open/x", "/closed"])

    def upgrade(self, how):
        getattr(self.daemon, how)()
        before = base.NETPAWLD
        base.NETPAWLD = NEXT / "netpawld"
        try:
            self.daemon.start()
        finally:
            base.NETPAWLD = before
        assert base.eventually(lambda: self.api.health()["inspectors"] == 2, 60), self.daemon.text()[-2000:]


@pytest.mark.parametrize("how, by", [("stop", "links"), ("kill", "links"), ("kill", "filters")])
def test_networks_of_their_own(tmp_path, monkeypatch, how, by):
    """by: what holds the gate's program on devices; filters do without a pin, so that the new build has to go there to remove the old one's."""
    if by == "filters":
        monkeypatch.setenv("LD_PRELOAD", kernels.library(tmp_path, kernels.NO_TCX))
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        made, mark = scene.made, base.token()
        for i, name in enumerate(("container_proxied", "private_proxied")):
            assert scene.ask(name, 20001 + i) == (0, {"statuses": [200, 403]})
        homes, devices = scene.homes(scene.version), scene.devices(scene.version)
        filters = scene.filters()
        assert len(homes) >= len(made) and bool(devices) == (by == "links") and len(filters) == (6 if by == "filters" else 0), filters
        since = time.time_ns()
        for name, port in PORTS.items():
            for kind in ("stream", "dgram"):
                made[name].call("hammer", keep=kind, family=4, addr=FAR[4], port=port, kind=kind, pause=0.001, limit_s=300)
        for name in ("container_full", "nat_full"):
            made[name].call("dial", family=4, addr=FAR[4], port=SINK, keep="transfer")
            made[name].call("stream", keep="transfer", mark=mark, size=1000, pause=0.005, limit_s=300)
        scene.upgrade(how)
        # carried over, and what is of the older build is gone
        now, = scene.pins()
        assert now != scene.version
        assert scene.homes(now) == homes and scene.devices(now) == devices
        assert scene.filters() == [(name, device, priority + 1) for name, device, priority in filters], "none of the older build is left"
        kinds = {s["sandbox"]: s["network"] for s in scene.api.sandboxes()}
        for name, box in made.items():
            assert kinds[box.id] == {"container": "container", "private": "private", "nat": "nat"}[name.split("_")[0]], name
        # it works
        for i, name in enumerate(("container_proxied", "private_proxied")):
            assert base.eventually(lambda: scene.ask(name, 20011 + i) == (0, {"statuses": [200, 403]}), 20), name
        for name in ("container_full", "nat_full"):
            total = lambda: made[name].call("wait", keep="transfer", timeout=0)
            first = total()
            assert not first["ended"] and base.eventually(lambda: total()["total"] > first["total"], 10), (name, first)
            assert scene.api.escalate(made[name].session, "SECRET")["cut"] >= 1
            assert made[name].call("wait", keep="transfer")["ended"]
            assert made[name].try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert made["container_none"].payload("leave", "leave", how="user")[1]["socket"] == "EPERM", "it is bound to its namespace"
        # nothing left, at any moment
        scene.world.outside.call("sendto", family=4, addr=FAR[4], port=CONTROL, data="x")
        ports = {*PORTS.values(), CONTROL}
        seen = lambda: [f for f in scene.world.frames(since, limit=400000)["frames"] if f.get("dport") in ports]
        assert base.eventually(lambda: any(f["dport"] == CONTROL for f in seen()), 10), "the control did not arrive"
        assert [f for f in seen() if f["dport"] != CONTROL] == []
        for name in PORTS:
            for kind in ("stream", "dgram"):
                outcomes = made[name].call("hammer_stop", keep=kind)["outcomes"]
                assert set(outcomes) <= {"ECONNREFUSED", "EPERM"} and sum(outcomes.values()) > 20, (name, kind, outcomes)
