# SPDX-License-Identifier: MIT
"""Cross-session channels: from each kind of sandbox, in each mode, to each other kind. Nobody is reached, by whatever address; and
nothing is seen of another but by those who share the host's network namespace, which SECURITY.md says. The controls: each is reached
by itself, and those who share do see each other."""
import contextlib
import time

import pytest

from lib import base
from lib.box import Adopted, Launched
from lib.world import HOST4, HOST6
from test_nat import FORWARDS
from test_own_network import Net, say_names, say_ports

# kind: network in the policy, mode that it starts in, mode that it is raised to
KINDS = {f"{network}-{mode}": (network, mode, mode) for network, modes in
         (("shared", ("FULL", "PROXIED", "NONE")), ("private", ("PROXIED", "NONE")), ("nat", ("FULL",)), ("adopted", ("FULL", "PROXIED", "NONE")))
         for mode in modes}
KINDS |= {f"nat-{mode}": ("nat", "FULL", mode) for mode in ("PROXIED", "NONE")}
LEVEL = {"PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}
TEXT = "what-nobody-else-is-to-know"


def addresses(box):
    text = base.sh("nsenter", "-t", box.pids()[0], "-n", "ip", "-o", "addr", "show", "scope", "global").stdout
    return [line.split()[3].split("/")[0] for line in text.splitlines() if line.split()[1] != "lo"]


class Kinds(Net):
    def __init__(self, stack):
        super().__init__(stack, "shared", bridged=True)
        self.world.sysctl(self.world.host, FORWARDS)
        for name, (network, mode, raised) in KINDS.items():
            if network == "adopted":
                self.boxes[name] = Adopted(self.daemon, mode, wired=True)
            else:
                self.turn(network)
                self.boxes[name] = Launched(self.daemon, mode)
                assert self.boxes[name].info["network"] == network, name
            stack.callback(self.boxes[name].close)
            if raised != mode:
                assert self.api.escalate(self.boxes[name].session, LEVEL[raised])["mode"] == raised
        # One address twice in different namespaces is one's own, too: the host's is tried by all.
        self.addrs = {name: addresses(box) for name, box in self.boxes.items()}
        self.everywhere = sorted({"127.0.0.1", "127.0.0.2", "::1", HOST4, HOST6, *sum(self.addrs.values(), [])})

    def turn(self, network):
        text = self.policy.read_text()
        head, _, _ = text.rpartition("  network: ")
        if not text.endswith(f"network: {network}\n"):
            self.policy.write_text(f"{head}  network: {network}\n")
            self.api.ok("POST", "/v1/policy/reload")


@pytest.fixture(scope="module")
def kinds():
    with contextlib.ExitStack() as stack:
        yield Kinds(stack)


@pytest.mark.parametrize("sender", KINDS)
def test_nobody_else_meets_it(kinds, sender):
    box, mark, first = kinds.boxes[sender], base.token(), kinds.port()
    stream, dgram = first + 90, first + 91
    say_names(box, mark, TEXT)
    say_ports(box, first, "secret")
    for family, any_ in ((4, "0.0.0.0"), (6, "::")):
        for kind, port in (("stream", stream), ("dgram", dgram)):
            box.call("listen", keep=f"{mark}{kind}{family}", family=family, addr=any_, port=port, kind=kind)
    box.call("listen", keep=f"{mark}name", family="unix", addr=f"@call-{mark}", kind="dgram")
    args = dict(mark=mark, first=first, length=6, stream=stream, dgram=dgram)
    got = box.payload("channels", "meet", addrs=kinds.everywhere, **args)[1]
    # The control, itself: seen, taken, and reached by loopback and its own addresses.
    assert got["names"] == TEXT and got["ports"] == "secret" and got["tcp"] and got["taken"] == ["tcp", "udp", "name"], got
    own = {"127.0.0.1", "::1", *kinds.addrs[sender]}
    assert own - {HOST4, HOST6} <= set(got["answers"]) and "name" in got["answers"], (own, got)
    time.sleep(0.1)
    since = time.time_ns()
    for name, other in kinds.boxes.items():
        if name == sender:
            continue
        shares = KINDS[name][0] == KINDS[sender][0] == "shared"
        status, got = other.payload("channels", "meet", addrs=kinds.everywhere, **args)
        assert status == 0, (name, got)
        assert got["answers"] == [], (name, got)
        assert got["names"] == (TEXT if shares else "") and got["tcp"] == shares, (name, got)
        assert got["ports"] == ("secret" if shares else "\0" * 6), (name, got)
        assert got["taken"] == (["tcp", "udp", "name"] if shares else []), (name, got)
    records = [r for r in box.call("records", since=since, mark=mark)["records"]]
    assert not records, records


@pytest.mark.parametrize("reader", [name for name in KINDS if not name.startswith("shared")])
def test_the_host_is_not_met_from_its_own_network(kinds, reader):
    """Its ports, names and connections are as closed; the control is a sandbox that shares them, and sees them."""
    mark, first = base.token(), kinds.port()
    stream, dgram = first + 90, first + 91
    outside = kinds.world.outside
    say_names(outside, mark, TEXT)
    for family, any_ in ((4, "0.0.0.0"), (6, "::")):
        for kind, port in (("stream", stream), ("dgram", dgram)):
            outside.call("listen", keep=f"{mark}{kind}{family}", family=family, addr=any_, port=port, kind=kind)
    args = dict(mark=mark, first=first, length=6, stream=stream, dgram=dgram, addrs=kinds.everywhere)
    since = time.time_ns()
    for name, heard in ((reader, False), ("shared-NONE", True)):
        status, got = kinds.boxes[name].payload("channels", "meet", **args)
        assert status == 0 and got["answers"] == [], (name, got)
        assert got["names"] == (TEXT if heard else "") and got["tcp"] == heard, (name, got)
    assert not outside.call("records", since=since, mark=mark)["records"]
    # The control: in no sandbox, the same look meets the host by each of its addresses.
    stranger = kinds.world.agent(kinds.world.host)
    try:
        status, got = stranger.payload("channels", "meet", **args)
        assert status == 0 and {"127.0.0.1", "::1", HOST4, HOST6} <= set(got["answers"]) and got["names"] == TEXT, got
        assert base.eventually(lambda: outside.call("records", since=since, mark=mark)["records"], 5)
    finally:
        kinds.world.drop(stranger)
