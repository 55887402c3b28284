# SPDX-License-Identifier: MIT
"""Address rules of the policy, held by the kernel, and the live reload of a policy."""
import contextlib
import json
import os
import signal
import threading

import pytest

from lib import base
from lib.api import Failure
from lib.box import Adopted, Box
from lib.daemon import Daemon
from lib.world import FAR, FAR_OTHER, HOST4, META

KINDS = pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
PROXIED = "levels: {PUBLIC: proxied, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}\n"


class Policy:
    """A policy file that a test rewrites."""

    def __init__(self):
        self.folder = base.tempdir("policy")
        self.path = self.folder / "policy.yaml"

    def write(self, *rules, head="", full=(), version="version: 1\n"):
        text = version + head
        if rules:
            text += "rules:\n" + "".join(f"  - {r}\n" for r in rules)
        if full:
            text += "full:\n" + "".join(f"  - {r}\n" for r in full)
        text += base.PERMITS
        new = self.path.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self.path)
        return self.path

    def line(self, words):
        return next(n for n, l in enumerate(self.path.read_text().splitlines(), 1) if words in l)


@pytest.fixture(scope="module")
def policy():
    p = Policy()
    yield p
    base.drop_tempdir(p.folder)


@pytest.fixture(scope="module")
def shared(world, policy):
    with contextlib.closing(Daemon(world, policy=policy.write())) as d:
        yield d.start()


@pytest.fixture
def under(shared):
    """The module's daemon under a policy: for tests that are about its rules, not about a reload or the daemon's end."""
    def take(path):
        assert path == shared.policy
        reload(shared)
        return shared

    return take


def reach(box, addr, port, kind="stream"):
    """Does a word go there and come back?"""
    family = 6 if ":" in addr else 4
    mark = base.token()
    if kind == "sendto":
        return box.try_("sendto", family=family, addr=addr, port=port, data=mark, recv=100)
    return box.try_("dial", family=family, addr=addr, port=port, kind=kind, data=mark, recv=100)


def reload(d):
    return d.api.ok("POST", "/v1/policy/reload", {})


WAYS = [("stream", "tcp"), ("dgram", "udp"), ("sendto", "udp")]


@KINDS
@pytest.mark.parametrize("family", [4, 6])
def test_an_allowed_address_and_port_is_open(world, under, policy, kind, family):
    net = {4: "198.51.100.0/24", 6: "[2001:db8:2::/48]"}[family]
    d = under(policy.write(f'allow: "{net}:9000/tcp"', f'allow: "{net}:8080/udp"'))
    box = kind(d, "PROXIED")
    try:
        for way, protocol in WAYS:
            for port in (8080, 9000):
                want = "ok" if (protocol, port) in (("tcp", 9000), ("udp", 8080)) else "ECONNREFUSED"
                assert reach(box, FAR[family], port, way) == want, (way, port)
        with world.watch() as watch:
            assert reach(box, FAR_OTHER, 9000) == "ECONNREFUSED"
        assert not [f for f in watch.frames if f["dst"] == FAR_OTHER]
        d.api.escalate(box.session, "SECRET")
        assert reach(box, FAR[family], 9000) == "ECONNREFUSED"
    finally:
        box.close()


def test_first_match_decides_and_is_named(under, policy):
    d = under(policy.write(
        "deny: 198.51.100.10:9000", "allow: 198.51.100.0/24:8000-9100/tcp", "ask: 203.0.113.7:9000/tcp",
        "decide: 203.0.113.7:8080/tcp\n    by: guard", "deny: 0.0.0.0/0",
        head="deciders: {guard: {command: [/bin/true]}}\n"))
    box = Box(d, "PROXIED")
    try:
        assert reach(box, FAR[4], 8080) == "ok"
        for addr, port, reason, words in ((FAR[4], 9000, "rule_denies", "deny: 198"),
                                          (FAR_OTHER, 9000, "needs_approval", "ask:"),
                                          (FAR_OTHER, 8080, "needs_decider", "decide:"),
                                          (FAR_OTHER, 9102, "rule_denies", "deny: 0.0")):
            after = box.events()[-1]["seq"]
            assert reach(box, addr, port) == "ECONNREFUSED"
            event = box.refusals(after=after)[0]
            assert event["reason"] == reason, event
            assert event["rule"] == f"{policy.path}:{policy.line(words)}", event
    finally:
        box.close()


def test_inspected_ports_and_dns_stay_with_those_who_look(under, policy):
    """A rule for every port opens neither what the inspector must see nor a way for DNS; inspect: false does."""
    d = under(policy.write("allow: 198.51.100.10:443/tcp\n    inspect: false",
                           "allow: 198.51.100.0/24:*/tcp", "allow: 198.51.100.0/24:*/udp"))
    box = Box(d, "PROXIED")
    try:
        assert reach(box, FAR[4], 9000) == "ok"
        assert reach(box, FAR[4], 443) == "ok"
        assert reach(box, FAR[4], 443, "dgram") == "ok"
        for port, way, reason in ((80, "stream", "no_inspector"), (53, "stream", "no_dns_gate"), (53, "dgram", "no_dns_gate"),
                                  (53, "sendto", "no_dns_gate")):
            after = box.events()[-1]["seq"]
            assert reach(box, FAR[4], port, way) == "ECONNREFUSED"
            assert box.refusals(after=after)[0]["reason"] == reason
    finally:
        box.close()


def test_inspect_ports_are_the_policys(under, policy):
    d = under(policy.write("allow: 198.51.100.10:80/tcp", head="inspect_ports: [8080]\n"))
    box = Box(d, "PROXIED")
    try:
        assert reach(box, FAR[4], 80) == "ok"
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
        assert box.refusals()[0]["reason"] == "no_inspector"
    finally:
        box.close()


def test_large_datagrams_pass_whole(under, policy):
    d = under(policy.write("allow: 198.51.100.10:9000/udp"))
    box = Box(d, "PROXIED")
    try:
        data = "f" * 20000
        assert box.call("sendto", family=4, addr=FAR[4], port=9000, data=data, recv=65536)["len"] == len(data)
        assert box.try_("sendto", family=4, addr=FAR[4], port=8080, data=data, recv=65536) == "ECONNREFUSED"
    finally:
        box.close()


def test_an_allowed_host_may_answer_and_not_call(world, under, policy):
    """A rule that lets the sandbox go there does not let them come here: that is for inbound: to say."""
    d = under(policy.write("allow: 198.51.100.0/24:*/tcp", "allow: 192.0.2.1:*/tcp"))
    box, open_box = Box(d, "PROXIED"), Box(d, "FULL")
    try:
        for b, port, want in ((open_box, 23110, "ECONNREFUSED"), (box, 23111, "ECONNREFUSED")):
            b.call("listen", keep="l", family=4, addr="0.0.0.0", port=port)
            assert world.world.try_("dial", family=4, addr="192.0.2.2", port=port) == want
        assert reach(box, "192.0.2.1", 9000) == "ok"
    finally:
        box.close()
        open_box.close()


@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_metadata_opens_only_to_who_names_it(world, under, policy, mode):
    d = under(policy.write("allow: 0.0.0.0/0:*/tcp", full=["allow: 0.0.0.0/0"]))
    box = Box(d, mode)
    try:
        assert reach(box, FAR[4], 9000) == "ok"
        with world.watch() as watch:
            for port in (80, 9000):
                assert reach(box, META[4], port) == "ECONNREFUSED"
        assert not [f for f in watch.frames if f["dst"] == META[4]]  # the connection before may still say good bye
        policy.write("allow: 169.254.169.254:9000/tcp", full=["allow: 169.254.169.254:9000/tcp"])
        reload(d)
        assert reach(box, META[4], 9000) == "ok"
        assert reach(box, META[4], 8080) == "ECONNREFUSED"
        assert reach(box, "100.100.100.200", 9000) == "ECONNREFUSED"
    finally:
        box.close()


def test_full_refuses_what_its_list_denies(world, under, policy):
    d = under(policy.write(full=["allow: 198.51.100.10:9000/tcp", "deny: 198.51.100.0/24",
                                 'deny: "[2001:db8:2::/48]:9000/udp"']))
    box = Box(d, "FULL")
    try:
        assert reach(box, FAR[4], 9000) == "ok"
        assert reach(box, FAR_OTHER, 8080) == "ok"
        assert reach(box, FAR[6], 9000) == "ok"
        for addr, port, way in ((FAR[4], 8080, "stream"), (FAR[4], 9000, "dgram"), (FAR[4], 9000, "sendto"),
                                (FAR[6], 9000, "sendto"), ("::ffff:" + FAR[4], 8080, "stream")):
            assert reach(box, addr, port, way) == "ECONNREFUSED", (addr, port, way)
        mark = base.token()
        with world.watch(mark) as watch:
            box.payload("egress", "ping", family=4, addr=FAR[4], port=0, mark=mark)
        assert not watch.marked
        with world.watch(mark) as watch:
            box.payload("egress", "ping", family=4, addr=FAR_OTHER, port=0, mark=mark)
        assert watch.carried()
        assert {e["reason"] for e in box.refusals()} == {"rule_denies"}
    finally:
        box.close()


def test_levels_have_rules_of_their_own(under, policy):
    """A raise that does not change the mode changes the rules, and cuts what they no longer allow."""
    d = under(policy.write("allow: 198.51.100.10:9000/tcp", "allow: 198.51.100.10:8080/tcp\n    for: [PUBLIC]",
                           head=PROXIED))
    box = Box(d, level="PUBLIC")
    try:
        for port in (8080, 9000):
            box.call("dial", family=4, addr=FAR[4], port=port, keep=f"c{port}", data="x", recv=1)
        answer = d.api.escalate(box.session, "CONFIDENTIAL")
        assert (answer["mode"], answer["raised"], answer["cut"]) == ("PROXIED", True, 1)
        box.call("send", keep="c9000", data="y")
        assert box.try_("send", keep="c8080", data="y") != "ok"
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
        assert reach(box, FAR[4], 9000) == "ok"
        d.kill()
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
        assert reach(box, FAR[4], 9000) == "ok"
        d.start()
        assert d.api.show(box.session)["level"] == "CONFIDENTIAL"
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
    finally:
        box.close()


# -- reload ------------------------------------------------------------------------


def by_api(d):
    return reload(d)


def by_cli(d):
    return json.loads(d.cli("policy", "reload", "--json", check=0).stdout)


def by_signal(d):
    seq = d.api.events()[-1]["seq"]
    os.kill(d.process.pid, signal.SIGHUP)
    loaded = lambda got: [e for e in got if e["reason"] == "policy_loaded"]
    event = loaded(d.api.wait_events(loaded, after=seq))[0]
    return {"hash": event["policy"], "cut": event["cut"]}


@pytest.mark.parametrize("how", [by_api, by_cli, by_signal])
@KINDS
def test_reload_takes_effect_at_once(world, make_daemon, policy, how, kind):
    d = make_daemon(policy=policy.write("allow: 198.51.100.0/24:9000/tcp", "allow: 198.51.100.0/24:8080/tcp",
                                        "allow: 198.51.100.0/24:9000/udp")).start()
    box, full, none = kind(d, "PROXIED"), Box(d, "FULL"), Box(d, "NONE")
    before = d.api.ok("GET", "/v1/policy")
    try:
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="stays", data="x", recv=1)
        box.call("dial", family=4, addr=FAR[4], port=8080, keep="goes", data="x", recv=1)
        box.call("sendto", family=4, addr=FAR[4], port=9000, keep="udp", data="x", recv=1)
        full.call("dial", family=4, addr=FAR[4], port=8080, keep="c", data="x", recv=1)
        policy.write("allow: 198.51.100.0/24:9000/tcp", "allow: 198.51.100.0/24:9000/udp", "allow: 203.0.113.7:8080/tcp")
        done = how(d)
        assert done["cut"] == 1
        now = d.api.ok("GET", "/v1/policy")
        assert now["hash"] == done["hash"] != before["hash"] and now["rules"] == 3
        assert reach(box, FAR_OTHER, 8080) == "ok"
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
        assert box.try_("send", keep="goes", data="y") != "ok"
        for b, keep in ((box, "stays"), (full, "c")):
            b.call("send", keep=keep, data="y")
            assert b.call("recv", keep=keep)["data"] == "y"
        assert box.try_("send", keep="udp", data="y", addr=FAR[4], port=9000) == "ok"
        assert reach(none, FAR_OTHER, 8080) == "ECONNREFUSED"
        event = d.api.events(reason="policy_loaded")[-1]
        assert event["policy"] == now["hash"] and event["cut"] == 1
        assert event["who"] == ("SIGHUP" if how is by_signal else event["who"]) and event["who"] != "daemon"
    finally:
        for b in (box, full, none):
            b.close()


BROKEN = ["version: 1\nrules: [", "version: 2\n", "version: 1\nrulez: []\n", "version: 1\nrules: [{allow: 10.0.0.1/8}]\n", ""]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_policy_changes_nothing(make_daemon, policy, text):
    d = make_daemon(policy=policy.write("allow: 198.51.100.0/24:9000/tcp")).start()
    box = Box(d, "PROXIED")
    try:
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
        before = d.api.ok("GET", "/v1/policy")
        policy.path.write_text(text)
        with pytest.raises(Failure) as e:
            reload(d)
        assert e.value.status == 422 and e.value.error == "bad_policy"
        assert e.value.body["detail"].startswith(f"{policy.path}:"), e.value.body
        os.kill(d.process.pid, signal.SIGHUP)
        refused = lambda got: [e for e in got if e["reason"] == "policy_refused" and e["who"] == "SIGHUP"]
        assert str(policy.path) in refused(d.api.wait_events(refused))[0]["text"]
        assert d.api.ok("GET", "/v1/policy") == before
        box.call("send", keep="c", data="y")
        assert box.call("recv", keep="c")["data"] == "y"
        assert reach(box, FAR[4], 9000) == "ok"
        assert d.cli("policy", "reload").returncode == 1
    finally:
        box.close()


def test_a_missing_file_changes_nothing(make_daemon, policy):
    d = make_daemon(policy=policy.write("allow: 198.51.100.0/24:9000/tcp")).start()
    box = Box(d, "PROXIED")
    try:
        policy.path.unlink()
        with pytest.raises(Failure) as e:
            reload(d)
        assert e.value.error == "bad_policy" and str(policy.path) in e.value.body["detail"]
        assert reach(box, FAR[4], 9000) == "ok"
    finally:
        box.close()


def test_without_a_file_there_is_nothing_to_reload(make_daemon):
    daemon = make_daemon(policy=False).start()
    with pytest.raises(Failure) as e:
        reload(daemon)
    assert "--policy" in e.value.body["detail"]
    shown = daemon.api.ok("GET", "/v1/policy")
    assert shown["file"] is None and shown["rules"] == 0 and shown["default"] == "deny"


def test_a_reload_only_tightens_sessions(make_daemon, policy):
    """A level that means less now leaves its sessions as they are; one that means more raises them."""
    d = make_daemon(policy=policy.write(head="levels: {CONFIDENTIAL: proxied}\n")).start()
    loose, tight = Box(d, level="INTERNAL"), Box(d, level="CONFIDENTIAL")
    quiet = "tester/without-a-sandbox"
    d.api.create(quiet, "INTERNAL")
    try:
        loose.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
        policy.write(head="levels: {PUBLIC: full, INTERNAL: none, CONFIDENTIAL: none, SECRET: none}\n")
        done = reload(d)
        assert done["raised"] == 2 and done["cut"] == 1
        for box in (loose, tight):
            assert d.api.show(box.session)["mode"] == "NONE"
            assert reach(box, FAR[4], 9000) == "ECONNREFUSED"
        assert loose.try_("send", keep="c", data="y") != "ok"
        assert d.api.show(quiet)["mode"] == "NONE"
        policy.write(head="levels: {PUBLIC: full, INTERNAL: full, CONFIDENTIAL: full, SECRET: full}\n")
        assert reload(d)["raised"] == 0
        for box in (loose, tight):
            assert d.api.show(box.session)["mode"] == "NONE"
            assert reach(box, FAR[4], 9000) == "ECONNREFUSED"
        fresh = Box(d, level="CONFIDENTIAL")
        assert fresh.info["mode"] == "FULL"
        fresh.close()
    finally:
        loose.close()
        tight.close()


@pytest.mark.parametrize("mode", ["FULL", "PROXIED"])
def test_host_loopback_follows_a_reload(world, make_daemon, policy, mode):
    d = make_daemon(policy=policy.write(head="host_loopback: [23120]\n")).start()
    world.outside.call("listen", keep="l23120", family=4, addr="127.0.0.1", port=23120)
    box = Box(d, mode)
    try:
        box.call("dial", family=4, addr="127.0.0.1", port=23120, keep="c", data="x", recv=1)
        own = box.call("listen", keep="own", family=4, addr="127.0.0.1")["port"]
        box.call("dial", family=4, addr="127.0.0.1", port=own, keep="o", data="x", recv=1)
        policy.write()
        assert reload(d)["cut"] == 1
        assert box.try_("send", keep="c", data="y") != "ok"
        assert reach(box, "127.0.0.1", 23120) == "ECONNREFUSED"
        box.call("send", keep="o", data="y")
        assert box.call("recv", keep="o")["data"] == "y", "what is its own stays"
    finally:
        box.close()
        world.outside.call("close", keep="l23120")


def test_inbound_follows_a_reload(world, make_daemon, policy):
    """A port that callers may no longer reach: what is open through it is cut, also when its listener is gone by then."""
    d = make_daemon(policy=policy.write(head="inbound: [24182, 24183, 24184]\n")).start()
    box = Box(d, "FULL")
    try:
        for port in (24182, 24183, 24184):
            box.call("listen", keep=f"l{port}", family=4, addr="0.0.0.0", port=port)
            world.world.call("dial", family=4, addr=HOST4, port=port, keep=f"c{port}", data="x", recv=1)
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="out", data="x", recv=1)
        box.call("close", keep="l24184")
        policy.write(head="inbound: [24183]\n")
        assert reload(d)["cut"] == 2
        assert world.world.try_("recv", keep="c24182") == world.world.try_("recv", keep="c24184") == "ECONNRESET"
        for agent, keep in ((world.world, "c24183"), (box, "out")):
            agent.call("send", keep=keep, data="y")
            assert agent.call("recv", keep=keep)["data"] == "y"
    finally:
        box.close()
        for port in (24182, 24183, 24184):
            world.world.call("close", keep=f"c{port}")


def test_rules_outlive_the_daemon_and_its_successor_replaces_them(make_daemon, policy):
    d = make_daemon(policy=policy.write("allow: 198.51.100.0/24:9000/tcp")).start()
    box = Box(d, "PROXIED")
    try:
        box.call("dial", family=4, addr=FAR[4], port=9000, keep="c", data="x", recv=1)
        d.kill()
        box.call("send", keep="c", data="y")
        assert box.call("recv", keep="c")["data"] == "y"
        assert reach(box, FAR[4], 9000) == "ok"
        assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
        policy.write("allow: 198.51.100.0/24:8080/tcp")
        d.start()
        assert box.try_("send", keep="c", data="z") != "ok"
        assert reach(box, FAR[4], 9000) == "ECONNREFUSED"
        assert reach(box, FAR[4], 8080) == "ok"
    finally:
        box.close()


def test_reloads_never_show_half_a_policy(make_daemon, policy):
    """Two policies that both allow one port and deny another, swapped many times under load: the allowed one never
    fails, the denied one never passes."""
    one = ["allow: 198.51.100.0/24:9000/tcp", "deny: 0.0.0.0/0"]
    two = ["deny: 198.51.100.10:8080", "allow: 198.51.100.10:*/tcp"]
    d = make_daemon(policy=policy.write(*one)).start()
    box = Box(d, "PROXIED")
    stop, errors, swaps = threading.Event(), [], [0]

    def swap():
        try:
            while not stop.is_set():
                policy.write(*(two if swaps[0] % 2 == 0 else one))
                reload(d)
                swaps[0] += 1
        except Exception as e:  # noqa: BLE001
            errors.append(e)
        finally:
            stop.set()

    thread = threading.Thread(target=swap)
    thread.start()
    tried = 0
    try:
        while not stop.is_set() and (tried < 20 or swaps[0] < 60):
            assert reach(box, FAR[4], 9000) == "ok"
            assert reach(box, FAR[4], 8080) == "ECONNREFUSED"
            tried += 1
    finally:
        stop.set()
        thread.join(180)
        box.close()
    assert not errors and tried >= 20, (errors, tried)
