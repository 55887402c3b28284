# SPDX-License-Identifier: MIT
"""An operator with bpftool and nothing else: he can read the gate, and he cannot lower it."""
import json
import os

import pytest

from lib import base
from lib.bpf import Ratchet, verified
from lib.box import Box, attach_pid
from lib.world import FAR


def bpftool(daemon, *words, check=True):
    return base.sh(*daemon.world.enter(), "bpftool", *words, check=check)


def key_of(box):
    return ["%02x" % b for b in int(box.info["cgroup_id"]).to_bytes(8, "little")]


def value_of(daemon, box):
    out = json.loads(bpftool(daemon, "-j", "map", "lookup", "pinned", daemon.pins / "maps/np_sandboxes", "key", "hex", *key_of(box)).stdout)
    return [int(b, 16) for b in out["value"]]


@pytest.mark.parametrize("mode", ["PROXIED", "NONE"])
def test_a_mode_cannot_be_lowered(world, daemon, boxes, mode):
    box = boxes(mode)
    path = daemon.pins / "maps/np_sandboxes"
    value = value_of(daemon, box)
    assert value[0] == {"PROXIED": 2, "NONE": 3}[mode]
    lower = ["%02x" % b for b in [1, *value[1:]]]
    p = bpftool(daemon, "map", "update", "pinned", path, "key", "hex", *key_of(box), "value", "hex", *lower, check=False)
    assert p.returncode != 0 and "not permitted" in (p.stderr + p.stdout).lower(), p
    p = bpftool(daemon, "map", "delete", "pinned", path, "key", "hex", *key_of(box), check=False)
    assert p.returncode != 0 and "not permitted" in (p.stderr + p.stdout).lower(), p
    assert value_of(daemon, box)[0] == value[0]
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_a_sandbox_cannot_be_forged(daemon, boxes):
    """Neither can a new entry be written: a cgroup of one's choice at FULL."""
    box = boxes("NONE")
    value = ["%02x" % b for b in value_of(daemon, box)]
    p = bpftool(daemon, "map", "update", "pinned", daemon.pins / "maps/np_sandboxes", "key", "hex", *["01"] * 8, "value",
                "hex", *value, check=False)
    assert p.returncode != 0 and "not permitted" in (p.stderr + p.stdout).lower()


def test_depths_are_frozen_too(daemon):
    path = daemon.pins / "maps/np_depths"
    p = bpftool(daemon, "map", "update", "pinned", path, "key", "hex", *["00"] * 4, "value", "hex", *["00"] * 8, check=False)
    assert p.returncode != 0 and "not permitted" in (p.stderr + p.stdout).lower()
    assert bpftool(daemon, "map", "show", "pinned", path).returncode == 0


def test_the_raise_program_cannot_lower(world, daemon, boxes):
    """Its only writer, run by hand with a lower mode, keeps the maximum of each member."""
    box = boxes("NONE")
    depth = len(box.cgroup.relative_to(base.cgroup_mount()).parts)
    ratchet = Ratchet(daemon)
    try:
        assert ratchet(int(box.info["cgroup_id"]), 1, depth, session=b"evil/evil", generation=999) == 0
    finally:
        ratchet.close()
    mode, level, flags, pad = value_of(daemon, box)[:4]
    assert (mode, level, flags, pad) == (3, 3, 0, 0)
    assert value_of(daemon, box)[4:8] == [999 & 255, 999 >> 8, 0, 0]  # it did run
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_retiring_a_living_sandbox(daemon, boxes):
    """np_retire, run by hand on a cgroup that lives, frees nobody: gone from the map is NONE at best."""
    import struct
    retire = [p for p in (daemon.pins / "progs").rglob("*") if "retire" in p.name]
    if not retire:
        return  # not pinned: not there to be run
    box = boxes("NONE")
    folder = base.tempdir("ctx")
    try:
        (folder / "ctx").write_bytes(struct.pack("IIQ", 1, 0, int(box.info["cgroup_id"])))
        bpftool(daemon, "prog", "run", "pinned", retire[0], "ctx_in", folder / "ctx", check=False)
    finally:
        base.drop_tempdir(folder)
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_retiring_a_living_adopted_sandbox(daemon, adopted):
    import struct
    retire = [p for p in (daemon.pins / "progs").rglob("*") if "retire" in p.name]
    if not retire:
        return
    box = adopted("NONE")
    folder = base.tempdir("ctx")
    try:
        (folder / "ctx").write_bytes(struct.pack("IIQ", 1, 0, int(box.info["cgroup_id"])))
        bpftool(daemon, "prog", "run", "pinned", retire[0], "ctx_in", folder / "ctx", check=False)
    finally:
        base.drop_tempdir(folder)
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_dump_reads_like_words(daemon, boxes):
    box = boxes("PROXIED")
    text = bpftool(daemon, "map", "dump", "pinned", daemon.pins / "maps/np_sandboxes").stdout
    assert "NP_PROXIED" in text and box.session in text and '"mode"' in text and '"refused"' in text


def test_tree_shows_the_programs(daemon):
    text = bpftool(daemon, "cgroup", "tree", daemon.slice).stdout
    for name in ("np_connect4", "np_connect6", "np_sendmsg4", "np_sendmsg6", "np_create", "np_bind4"):
        assert name in text, text
    for line in text.splitlines():
        assert all(len(w) <= 15 for w in line.split() if w.startswith("np_"))


def test_tree_shows_an_adopted_cgroup(daemon, adopted):
    box = adopted("NONE")
    assert "np_connect4" in bpftool(daemon, "cgroup", "show", box.cgroup).stdout
    box.close()
    assert not box.cgroup.exists()


def test_devices_have_their_gate(world, daemon):
    """bpftool of Debian 12 has no name for tcx: the pins have. One link for each device of the namespace."""
    names = [str(p.relative_to(daemon.pins)) for p in daemon.pins.rglob("*")]
    devices = [line.split(": ")[1].split("@")[0] for line in base.sh("ip", "-n", world.host, "-o", "link").stdout.splitlines()]
    assert "npv0" in devices and "lo" in devices
    indexes = {d: line.split(":")[0] for d, line in zip(devices, base.sh("ip", "-n", world.host, "-o", "link").stdout.splitlines())}
    for device in devices:
        assert [n for n in names if device in n or n.rsplit("/", 1)[-1].endswith(indexes[device])], (device, names)


def test_pins_are_where_they_should_be(daemon):
    for name in ("np_sandboxes", "np_events", "np_counts", "np_errors"):
        assert bpftool(daemon, "map", "show", "pinned", daemon.pins / "maps" / name).returncode == 0
    assert any((daemon.pins / "links").rglob("*")) and any((daemon.pins / "progs").rglob("*"))


def test_removing_pins_by_hand_frees_nobody(world, make_daemon):
    """rm -r on the pins of the maps: the programs hold what they use. (The links are what attaches: an operator who
    removes those as root has uninstalled the gate, and doctor or the next start must not call it healthy.)"""
    d = make_daemon().start()
    box = Box(d, "NONE")
    try:
        for path in (d.pins / "maps").iterdir():
            path.unlink()
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert d.api.escalate(box.session, "SECRET")["mode"] == "NONE"
    finally:
        box.close()


@pytest.mark.parametrize("kind", ["made", "adopted"])
def test_a_nested_cgroup_cannot_be_raised_to_full(world, daemon, boxes, adopted, kind):
    """np_raise, run by hand for a cgroup below a sandbox in NONE: an entry of its own must not take it out."""
    box = boxes("NONE") if kind == "made" else adopted("NONE")
    nested = box.cgroup / "nested"
    nested.mkdir()
    for pid in box.pids():
        attach_pid(nested, pid)
    ratchet = Ratchet(daemon)
    try:
        depth = len(nested.relative_to(base.cgroup_mount()).parts)
        ratchet(os.stat(nested).st_ino, 1, depth)
    finally:
        ratchet.close()
    with world.watch() as watch:
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert box.try_("sendto", family=6, addr=FAR[6], port=9000) != "ok"
    assert watch.nothing()


def test_the_raise_program_takes_the_maximum(daemon, boxes):
    """FULL, NONE, then FULL again is NONE; what is no mode is refused."""
    box = boxes("FULL")
    depth = len(box.cgroup.relative_to(base.cgroup_mount()).parts)
    ratchet = Ratchet(daemon)
    try:
        for mode in (1, 3, 1, 2):
            assert ratchet(int(box.info["cgroup_id"]), mode, depth) == 0
        for mode in (0, 4, 255):
            assert ratchet(int(box.info["cgroup_id"]), mode, depth) < 0
    finally:
        ratchet.close()
    assert value_of(daemon, box)[0] == 3
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"


def test_the_verifier_has_room(daemon):
    """A kernel walks a million instructions of a program and then refuses it, and another kernel walks more of the same
    program. What is far from that also loads fast, and loading is most of what a daemon's first start costs."""
    boxes = json.loads(bpftool(daemon, "-j", "map", "show", "pinned", daemon.pins / "maps/np_sandboxes").stdout)["id"]
    ours = [p["id"] for p in json.loads(bpftool(daemon, "-j", "prog", "show").stdout) if boxes in p.get("map_ids", [])]
    walked = dict(map(verified, ours))
    assert {"np_egress", "np_ingress", "np_connect4", "np_device"} <= set(walked), "these use that map"
    assert max(walked.values()) < 25_000, walked
    assert sum(walked.values()) < 200_000, walked
    assert min(walked.values()) > 0, "the number is there"
