# SPDX-License-Identifier: MIT
"""The policy file: what it can say today, and what it must not be able to say."""
import pytest

from lib import base
from lib.box import Box, new_session
from lib.daemon import NotReady
from lib.world import FAR


@pytest.fixture
def write():
    folder = base.tempdir("policy")
    path = folder / "policy.yaml"

    def f(text):
        path.write_text(text + base.PERMITS)
        return path
    yield f
    base.drop_tempdir(folder)


def reach(box, transport, port, seconds=30):
    if transport == "stream":
        return box.try_("dial", family=4, addr="127.0.0.1", port=port, data="x", recv=1, timeout=seconds)
    return box.try_("sendto", family=4, addr="127.0.0.1", port=port, data="x", recv=1, timeout=seconds)


def test_host_loopback(world, make_daemon, write):
    """A listed port of the host is open in FULL and PROXIED, and closed in NONE; the neighbour port is closed."""
    d = make_daemon(policy=write("version: 1\nhost_loopback: [23001]\n")).start()
    for port in (23001, 23002):
        for transport in ("stream", "dgram"):
            world.outside.call("listen", keep=f"{port}{transport}", family=4, addr="127.0.0.1", port=port, kind=transport)
    made = {mode: Box(d, mode) for mode in ("FULL", "PROXIED", "NONE")}
    try:
        for mode, box in made.items():
            for transport in ("stream", "dgram"):
                assert (reach(box, transport, 23001, 1 if mode == "NONE" else 30) == "ok") == (mode != "NONE"), (mode, transport)
                assert reach(box, transport, 23002, 1) != "ok", (mode, transport)
        # an open connection to it lives through FULL -> PROXIED and not through -> NONE
        box = made["FULL"]
        box.call("dial", family=4, addr="127.0.0.1", port=23001, keep="c", data="x", recv=1)
        d.api.escalate(box.session, "CONFIDENTIAL")
        box.call("send", keep="c", data="y")
        assert box.call("recv", keep="c")["data"] == "y"
        assert d.api.escalate(box.session, "SECRET")["cut"] >= 1
        assert box.try_("send", keep="c", data="z") != "ok"
    finally:
        for box in made.values():
            box.close()
        for port in (23001, 23002):
            for transport in ("stream", "dgram"):
                world.outside.call("close", keep=f"{port}{transport}")


def test_listed_port_of_another_sandbox_stays_closed(world, make_daemon, write):
    """The exception is for the host's services; a sandbox that sits on the port is not one."""
    d = make_daemon(policy=write("version: 1\nhost_loopback: [23003]\n")).start()
    server, client = Box(d, "FULL"), Box(d, "FULL")
    try:
        server.call("listen", keep="l", family=4, addr="127.0.0.1", port=23003)
        assert reach(client, "stream", 23003) == "ECONNREFUSED"
        assert reach(server, "stream", 23003) == "ok"
    finally:
        server.close()
        client.close()


def test_levels_can_be_stricter(make_daemon, write):
    d = make_daemon(policy=write("version: 1\nlevels:\n  PUBLIC: full\n  INTERNAL: proxied\n  CONFIDENTIAL: none\n  SECRET: none\n")).start()
    name = new_session()
    assert d.api.create(name, "INTERNAL")["mode"] == "PROXIED"
    assert d.api.escalate(name, "CONFIDENTIAL")["mode"] == "NONE"


def test_a_looser_policy_loosens_nobody(make_daemon, write):
    """The mode of a session only ever tightens, whatever a later policy says of its level."""
    path = write("version: 1\nlevels:\n  INTERNAL: none\n  CONFIDENTIAL: none\n  SECRET: none\n")
    d = make_daemon(policy=path).start()
    box = Box(d, level="INTERNAL")
    name = box.session
    try:
        assert box.info["mode"] == "NONE"
        d.stop()
        write("version: 1\n")
        d.start()
        assert d.api.show(name)["mode"] == "NONE"
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert d.api.make(name)["mode"] == "NONE"
    finally:
        box.close()


def test_a_stricter_policy_tightens_at_the_start(make_daemon, write):
    d = make_daemon(policy=write("version: 1\n")).start()
    box = Box(d, level="INTERNAL")
    try:
        assert box.try_("dial", family=4, addr=FAR[4], port=9000, keep="c") == "ok"
        d.stop()
        write("version: 1\nlevels:\n  INTERNAL: none\n  CONFIDENTIAL: none\n  SECRET: none\n")
        d.start()
        assert d.api.show(box.session)["mode"] == "NONE"
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert box.try_("send", keep="c", data="x") != "ok"
    finally:
        box.close()


BAD = ["", "nonsense", "version: 2\n", "version: 1\nlevel: {}\n", "version: 1\nlevels: {PUBLIC: open}\n",
       "version: 1\nlevels: {TOP: none}\n", "version: 1\nhost_loopback: 5\n", "version: 1\nhost_loopback: [0]\n",
       "version: 1\nhost_loopback: [65536]\n", "version: 1\nhost_loopback: [x]\n", "version: 1\nversion: 1\n",
       "version: 1\nhost_loopback: [1, 2\n", "version: 1\n---\nversion: 1\n", "a: &a [*a]\n",
       "version: 1\nlevels: {SECRET: full}\n", "\t", "version: 1\nhost_loopback: [" + ",".join(map(str, range(1, 400))) + "]\n"]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_is_not_understood_does_not_start(make_daemon, write, text):
    d = make_daemon(policy=write(text))
    with pytest.raises(NotReady) as e:
        d.start()
    assert e.value.code in (1, 2) and "policy" in e.value.text, e.value.text


def test_missing_file(make_daemon):
    d = make_daemon(policy="/nonexistent/policy.yaml")
    with pytest.raises(NotReady) as e:
        d.start()
    assert "/nonexistent/policy.yaml" in e.value.text


def test_shipped_policies_start(make_daemon):
    for path in sorted((base.ROOT / "policies").glob("*.yaml")):
        d = make_daemon(policy=path).start()
        assert d.api.health()["status"] == "ok"
        assert d.stop() == 0
