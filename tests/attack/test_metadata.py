# SPDX-License-Identifier: MIT
"""Cloud metadata and link-local addresses: refused in every mode, in every spelling."""
import pytest

from lib import base
from lib.box import Adopted, Box
from lib.world import DEV, GATE_LINK, META_ALL

SPELLINGS = META_ALL + [
    (6, "::ffff:169.254.169.254"), (6, "::ffff:100.100.100.200"), (6, f"{GATE_LINK}%{DEV}"),
    (6, "64:ff9b::169.254.169.254"),  # NAT64
    (6, "2002:a9fe:a9fe::1"),  # 6to4
]
ROUTED_ONLY = {"64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"}  # nobody answers there; the frame is the proof


@pytest.mark.parametrize("family,addr", SPELLINGS)
def test_control(world, family, addr):
    with world.watch() as watch:
        got = world.outside.try_("dial", family=family, addr=addr, port=80, timeout=0.3 if addr in ROUTED_ONLY else 30)
        world.outside.try_("sendto", family=family, addr=addr, port=9000, data="x")
    assert watch.something()
    assert got == "ok" or addr in ROUTED_ONLY


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
@pytest.mark.parametrize("family,addr", SPELLINGS)
def test_metadata_is_out_of_reach(world, pool, family, addr, mode, kind):
    box = pool(mode, kind=kind)
    if box.apart and not box.wired:
        addr = addr.replace(DEV, "lo")  # it has no other device
    with world.watch() as watch:
        tcp = box.try_("dial", family=family, addr=addr, port=80)
        udp = box.try_("sendto", family=family, addr=addr, port=9000, data="x")
        connected = box.try_("dial", family=family, addr=addr, port=9000, kind="dgram", data="x")
    assert watch.nothing()
    assert tcp == "ECONNREFUSED" and "ok" not in (udp, connected)


@pytest.mark.parametrize("family,addr", META_ALL)
def test_the_reason_is_metadata(daemon, boxes, family, addr):
    box = boxes("FULL")
    assert box.try_("dial", family=family, addr=addr, port=80) == "ECONNREFUSED"
    event = box.refusals("metadata")[0]
    assert (event["address"], event["port"], event["hook"], event["mode"]) == (addr, 80, "connect", "FULL")
