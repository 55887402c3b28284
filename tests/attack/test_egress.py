# SPDX-License-Identifier: MIT
"""Every way to send something, from a sandbox that may not. The far side's capture is the judge; the control
is the same code on the host, outside of any sandbox, and must get through."""
import pytest

from lib import base
from lib.box import Adopted, Box
from lib.world import FAR, FASTOPEN, MPTCP

ANYONE = ["tcp_connect", "tcp_nonblocking", "tcp_bound", "tcp_reconnect", "tcp_thread",
          "udp_connected", "udp_unconnected", "udp_connected_elsewhere", "udp_pktinfo", "udp_corked", "udp_gso",
          "udp_empty", "udp_large", "udp_sendmmsg", "udplite", "ping", "multicast", "multicast_join"]
ANYONE_4 = ["tcp_mapped", "udp_mapped", "udp_mapped_connected", "udp_options", "broadcast"]
ROOT = ["raw_icmp", "raw_proto", "raw_hdrincl", "protocols"]
ROOT_4 = ["packet", "source_route"]
ROOT_6 = ["udp_options"]
PORTS = {"tcp_fastopen": FASTOPEN, "tcp_fastopen_connect": FASTOPEN, "tcp_fastopen_mapped": FASTOPEN,
         "mptcp": MPTCP, "mptcp_fastopen": MPTCP}

CASES = [(f, name) for f in (4, 6) for name in ANYONE + ["tcp_fastopen", "tcp_fastopen_connect", "mptcp",
                                                       "mptcp_fastopen"] + ROOT]
CASES += [(4, name) for name in ANYONE_4 + ["tcp_fastopen_mapped"] + ROOT_4] + [(6, name) for name in ROOT_6]
# What a kernel may lack altogether: then there is nothing to control, and nothing may leave all the same.
OPTIONAL = {"sctp", "dccp"}
CASES += [(f, name) for f in (4, 6) for name in sorted(OPTIONAL)]

_controls = {}


def reached(name, family, answer, watch):
    """Did the control get through, as seen from the far side?"""
    if name == "multicast_join":
        return any(f.get("proto") in (2, 58) for f in watch.reports)
    return watch.something() if name == "udp_empty" else watch.carried()


class Reports:
    """Group membership reports count as noise elsewhere, since a kernel sends them by itself; here they are the leak."""

    def __init__(self, world, mark, family):
        tail = (bytes([239]) + mark.encode()[-3:]) if family == 4 else (bytes([0xFF, 5, 0, 0]) + mark.encode()[-12:])
        self.world, self.group = world, tail.hex()

    def since(self, t):
        got = self.world.frames(t, noise=True, limit=1000)["frames"]
        return [f for f in got if self.group in f["head"]]


def attack(world, agent, name, family, mark):
    reports = Reports(world, mark, family)
    with world.watch(mark) as watch:
        status, answer = agent.payload("egress", name, family=family, addr=FAR[family], port=PORTS.get(name, 9000),
                                       mark=mark)
    watch.reports = reports.since(watch.since) if name == "multicast_join" else []
    return status, answer, watch


def check_control(world, name, family, user):
    needs_root = name in ROOT or name in ROOT_4 or (family == 6 and name in ROOT_6)
    key = (name, family, "root" if needs_root else user)
    if key not in _controls:
        status, answer, watch = attack(world, world.near(key[2]), name, family, base.token())
        _controls[key] = name in OPTIONAL or reached(name, family, answer, watch), answer, watch.frames[:3]
        world.settle(quiet=0.1)  # the end of the control's own connection, or an answer to it, is not the sandbox's
    assert _controls[key][0], f"the control failed: {_controls[key]}"


# An adopted cgroup has no launcher: who its user is makes no difference to the gate.
@pytest.mark.parametrize("kind,user", [(Box, "root"), (Box, "nobody"), (Adopted, "root")],
                         ids=["run-root", "run-nobody", "adopted-root"])
@pytest.mark.parametrize("mode", ["NONE", "PROXIED"])
@pytest.mark.parametrize("family,name", CASES, ids=[f"{n}-v{f}" for f, n in CASES])
def test_nothing_leaves(world, pool, family, name, mode, user, kind):
    check_control(world, name, family, user)
    box = pool(mode, user, kind)
    status, answer, watch = attack(world, box.agent, name, family, base.token())
    assert not answer or "exception" not in answer, answer
    assert watch.nothing()
    assert not watch.reports, f"a membership report left with bytes of the program's choice: {watch.reports[:2]}"
    if name in ("tcp_connect", "tcp_mapped", "tcp_bound"):
        assert answer == {"done": 0, "error": "ECONNREFUSED"}, answer
    if name in ("protocols",) and kind is Box:
        assert answer["opened"] == [], f"only TCP and UDP may be opened: {answer['opened'][:20]}"


@pytest.mark.parametrize("mode", ["NONE", "PROXIED"])
def test_errors_come_at_once(world, pool, mode):
    """A refused call has an errno; nothing hangs until a timeout."""
    box = pool(mode)
    for family in (4, 6):
        assert box.try_("dial", family=family, addr=FAR[family], port=9000, timeout=30) == "ECONNREFUSED"
        assert box.try_("sendto", family=family, addr=FAR[family], port=9000) in ("ECONNREFUSED", "EPERM")
        assert box.try_("dial", family=family, addr=FAR[family], port=9000, kind="dgram") in ("ECONNREFUSED", "EPERM")
