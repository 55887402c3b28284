# SPDX-License-Identifier: MIT
"""The daemon goes and comes back, and containers and private sandboxes go on working all the time: nothing of theirs leaves that should not, who is
led to the inspector is so again, and what could not be put up at a start is put up later, or said."""
import contextlib
import json
import os
import time

import pytest

from lib import base, bpf, kernels
from lib.box import Adopted, Box
from lib.inspected import Inspected
from lib.world import DEV, FAR, SINK

POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
PORTS = {"NONE": 7001, "PROXIED": 7002}
CONTROL = 7099


class Net(Inspected):
    def __init__(self, stack, **kw):
        super().__init__(stack, policy=POLICY, bridged=True, in_memory=True, **kw)
        self.stack = stack

    def made(self, kind, mode, **kw):
        box = kind(self.daemon, mode, **kw)
        self.stack.callback(box.close)
        return box

    def container(self, mode):
        return self.made(Adopted, mode, wired=True)


def ask(box, local, path="/open/x"):
    return box.payload("channels", "ask", addr=FAR[4], port=80, local=local, host="origin.test", paths=[path])


def works(box, local):
    return ask(box, local) == (0, {"statuses": [200]}) and ask(box, local + 1, "/closed") == (0, {"statuses": [403]})


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_no_open_moment(how):
    """Containers hammer at the gate through three ends and starts, past the inspector and through it."""
    with contextlib.ExitStack() as stack:
        net, mark = Net(stack), base.token()
        boxes = {mode: net.container(mode) for mode in PORTS}
        full = net.container("FULL")
        assert works(boxes["PROXIED"], 20001)
        since = time.time_ns()
        for mode, box in boxes.items():
            for kind in ("stream", "dgram"):
                box.call("hammer", keep=kind, family=4, addr=FAR[4], port=PORTS[mode], kind=kind, pause=0.001, limit_s=300)
        boxes["PROXIED"].call("hammer", keep="asks", family=4, addr=FAR[4], port=80, pause=0.001, limit_s=300)
        full.call("dial", family=4, addr=FAR[4], port=SINK, keep="transfer")
        full.call("stream", keep="transfer", mark=mark, size=1000, pause=0.005, limit_s=300)
        total = lambda: full.call("wait", keep="transfer", timeout=0)
        for i in range(3):
            net.daemon.restart(how)
            assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)
            assert works(boxes["PROXIED"], 20010 + 2 * i), "somebody listens in there anew"
            before = total()
            assert not before["ended"] and base.eventually(lambda: total()["total"] > before["total"], 10)
        assert net.api.escalate(full.session, "SECRET")["cut"] >= 1
        assert full.call("wait", keep="transfer")["ended"]
        # nothing left by its own device, at any moment: not to a closed port, nor to 80, which is the inspector's to dial
        net.world.outside.call("sendto", family=4, addr=FAR[4], port=CONTROL, data="x")
        seen = lambda: net.world.frames(since, limit=400000)["frames"]
        assert base.eventually(lambda: any(f.get("dport") == CONTROL for f in seen()), 10), "the control did not arrive"
        own = {box.addr[4] for box in boxes.values()}
        assert [f for f in seen() if f.get("src") in own or f.get("dport") in PORTS.values()] == []
        for mode, box in boxes.items():
            for kind in ("stream", "dgram"):
                outcomes = box.call("hammer_stop", keep=kind)["outcomes"]
                assert set(outcomes) <= {"ECONNREFUSED", "EPERM"} and sum(outcomes.values()) > 20, (mode, kind, outcomes)
        asks = boxes["PROXIED"].call("hammer_stop", keep="asks")["outcomes"]
        assert asks["ok"] > 20 and asks["ECONNREFUSED"], "led to the inspector, or refused while there was none"


def test_a_network_that_could_not_be_taken_over(tmp_path, monkeypatch):
    """At a start nobody can listen in there: what the inspector must see is refused, the health says so, and it is tried again."""
    with contextlib.ExitStack() as stack:
        net = Net(stack, network="private")
        boxes = [net.container("PROXIED"), net.made(Box, "PROXIED")]
        assert [b.info["network"] for b in boxes] == ["container", "private"]
        for i, box in enumerate(boxes):
            assert works(box, 20001 + 2 * i), "the control"
        flag, host = tmp_path / "flag", os.stat(f"/run/netns/{net.world.host}").st_ino
        flag.touch()
        monkeypatch.setenv("LD_PRELOAD", kernels.library(tmp_path, kernels.NO_LISTENERS % {"flag": flag, "host": host}))
        net.daemon.restart("kill")
        monkeypatch.delenv("LD_PRELOAD")
        assert base.eventually(lambda: net.api.health()["inspectors"] == 2, 20)
        assert base.eventually(lambda: any("3 networks of sandboxes' own" in s for s in net.api.health().get("degraded", [])), 10)  # and the keeper's
        since = time.time_ns()
        for i, box in enumerate(boxes):
            assert ask(box, 20011 + i) == (0, {"error": "ECONNREFUSED"})
        assert [f for f in net.world.frames(since, limit=1000)["frames"] if f.get("dport") == 80] == []
        flag.unlink()
        for i, box in enumerate(boxes):
            assert base.eventually(lambda: works(box, 20021 + 2 * i), 20)
        assert base.eventually(lambda: net.api.health()["status"] == "ok", 10), net.api.health()


def filters(box):
    """Lines of tc that name our program, on every device of its network namespace, which outlives its processes."""
    ns = ["nsenter", f"--net=/run/netns/{box.wired.name}"]
    devices = [line.split(": ")[1].split("@")[0] for line in base.sh(*ns, "ip", "-o", "link").stdout.splitlines()]
    return [line for d in devices for way in ("egress", "ingress")
            for line in base.sh(*ns, "tc", "filter", "show", "dev", d, way, check=False).stdout.splitlines() if "np_device" in line]


def test_a_kernel_without_links_on_devices(tmp_path, monkeypatch):
    """clsact holds the program there: on devices that come later, too, and nothing of it is left when the sandbox, or the gate, goes."""
    monkeypatch.setenv("LD_PRELOAD", kernels.library(tmp_path, kernels.NO_TCX))
    with contextlib.ExitStack() as stack:
        net = Net(stack)
        one, other = net.container("NONE"), net.container("NONE")
        assert [len(filters(b)) for b in (one, other)] == [2, 2], "on loopback and on its device"
        assert not list((net.daemon.pins / "devices").iterdir()), "no link holds it"
        base.sh("ip", "-n", one.wired.name, "link", "add", "late0", "type", "veth", "peer", "name", "late1")
        assert base.eventually(lambda: len(filters(one)) == 4, 10)
        net.daemon.restart("kill")
        assert [len(filters(b)) for b in (one, other)] == [4, 2]
        assert one.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        net.world.drop(one.agent)
        base.cgroup_destroy(one.top)
        assert base.eventually(lambda: not filters(one), 20), filters(one)
        net.daemon.stop()
        assert filters(other), "the gate stays"
        net.daemon.uninstall("--force")
        assert not filters(other)


def test_lists_that_change_while_they_are_read(tmp_path, monkeypatch):
    """A device or an address that such a list lacks is there all the same: it keeps its program, and is this host's."""
    flag = tmp_path / "flag"
    monkeypatch.setenv("LD_PRELOAD", kernels.library(tmp_path, kernels.RESTLESS % {"flag": flag, "device": DEV}))
    with contextlib.ExitStack() as stack:
        net = Net(stack)
        pins = lambda: {p.name for p in (net.daemon.pins / "devices").iterdir()}
        addresses = lambda: {json.dumps(e["key"]) for e in bpf.dump(net.daemon, "np_host_addrs")}
        link = lambda *words: base.sh(*net.world.enter(), "ip", "link", *words)
        had, had_addresses = pins(), addresses()
        flag.touch()
        link("add", "late0", "type", "veth", "peer", "name", "late1")
        assert base.eventually(lambda: len(pins() - had) == 2, 10), "a look has been since"
        assert had <= pins() and had_addresses <= addresses()
        flag.unlink()
        link("del", "late0")
        assert base.eventually(lambda: pins() == had, 10), "what is gone is forgotten by a look that saw all"
        assert had_addresses <= addresses()
