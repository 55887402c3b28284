# SPDX-License-Identifier: MIT
"""Every refusal and every change is one event, with the same words everywhere; a flood is counted, never lost."""
import concurrent.futures
import json
import re
import subprocess
import threading

import pytest

from lib import base
from lib.api import Failure
from lib.box import new_session
from lib.world import FAR, GATE4, HOST4, META


def box_counters(daemon, box):
    """refused and suppressed of a sandbox, as the kernel holds them."""
    out = base.sh(*daemon.world.enter(), "bpftool", "-j", "map", "dump", "pinned", daemon.pins / "maps/np_sandboxes").stdout
    for row in json.loads(out):
        formatted = row.get("formatted", row)
        if str(formatted["key"]) == box.info["cgroup_id"]:
            return formatted["value"]["meter"]
    raise AssertionError("the kernel does not hold the sandbox")


def refusals(box, timeout=10, n=1, **params):
    pick = lambda got: [e for e in got if e["kind"] == "refuse"]
    return pick(box.daemon.api.wait_events(lambda got: len(pick(got)) >= n, timeout, session=box.session, **params))


CASES = [
    ("NONE", "dial", dict(family=4, addr=FAR[4], port=443), "mode_none", "connect", 6),
    ("NONE", "dial", dict(family=6, addr=FAR[6], port=443), "mode_none", "connect", 6),
    ("NONE", "dial", dict(family=4, addr=FAR[4], port=9000, kind="dgram"), "mode_none", "connect", 17),
    ("NONE", "sendto", dict(family=4, addr=FAR[4], port=9000), "mode_none", "sendmsg", 17),
    ("NONE", "sendto", dict(family=6, addr=FAR[6], port=9000), "mode_none", "sendmsg", 17),
    ("PROXIED", "dial", dict(family=4, addr=FAR[4], port=80), "no_inspector", "connect", 6),
    ("PROXIED", "sendto", dict(family=6, addr=FAR[6], port=53), "no_dns_gate", "sendmsg", 17),
    ("PROXIED", "dial", dict(family=6, addr=FAR[6], port=22), "not_in_policy", "connect", 6),
    ("FULL", "dial", dict(family=4, addr=META[4], port=80), "metadata", "connect", 6),
    ("FULL", "dial", dict(family=6, addr=META[6], port=80), "metadata", "connect", 6),
]


@pytest.mark.parametrize("mode,op,args,reason,hook,protocol", CASES)
def test_a_refusal_is_one_event(daemon, boxes, mode, op, args, reason, hook, protocol):
    box = boxes(mode)
    before = box_counters(daemon, box)["refused"]
    assert box.try_(op, **args) != "ok"
    got = refusals(box)
    assert len(got) == 1, got
    e = got[0]
    assert (e["reason"], e["hook"], e["mode"]) == (reason, hook, mode)
    assert (e["session"], e["sandbox"]) == (box.session, box.id)
    assert (e["address"], e["port"]) == (args["addr"], args["port"])
    assert e["comm"].startswith("python3") and e["pid"] in box.pids()
    assert e["uid"] == (box.daemon.state_dir / "data" / box.session).stat().st_uid, "who root of a sandbox is on the host"
    assert str(protocol) == str(e["protocol"]) or e["protocol"] == {6: "tcp", 17: "udp"}[protocol]
    assert e["message"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", e["time"]) and e["seq"] > 0
    assert box_counters(daemon, box)["refused"] == before + 1


def test_uid_and_program_are_told(boxes):
    box = boxes("NONE", user="nobody")
    box.call("execute", argv=["sh", "-c", "cp /bin/bash /tmp/np-exfil-$$ && cd /tmp && "
                              f"./np-exfil-$$ -c 'echo > /dev/tcp/{FAR[4]}/80'; rm -f /tmp/np-exfil-$$"])
    e = refusals(box)[0]
    assert e["uid"] == 65534 and e["comm"].startswith("np-exfil")


def test_host_loopback_and_protocol(world, boxes):
    box = boxes("FULL")
    port = world.outside.call("listen", keep="ev", family=4, addr=HOST4)["port"]
    try:
        assert box.try_("dial", family=4, addr=HOST4, port=port) == "ECONNREFUSED"
    finally:
        world.outside.call("close", keep="ev")
    assert refusals(box)[0]["reason"] == "host_loopback"
    box.payload("egress", "udplite", family=4, addr=FAR[4], port=9000, mark="x")
    e = refusals(box, n=2)[-1]
    assert (e["reason"], e["hook"]) == ("protocol", "socket")


def test_inbound_is_told(world, boxes):
    box = boxes("NONE")
    if box.apart and not box.wired:
        pytest.skip("in a network of its own there is nobody who could call")
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0")["port"]
    world.outside.try_("dial", family=4, addr=HOST4, port=port, timeout=0.2)
    e = refusals(box)[0]
    assert (e["reason"], e["hook"]) == ("inbound", "ingress")
    assert (e["address"], e["listener_port"]) == (HOST4, port)
    world.outside.try_("dial", family=4, addr=HOST4, port=port, timeout=0.2)
    refusals(box, n=2)
    [r] = (answer := box.daemon.api.ok("GET", f"/v1/sessions/{box.session}/why"))["refused"]
    assert (r["what"], r["where"], r["listener_port"]) == ("incoming TCP", f"port {port} from {HOST4}", port), r
    assert r["count"] >= 2 and "netpawl forward" in r["hint"], r
    assert f"incoming TCP to port {port} from {HOST4}, " in answer["text"]


@pytest.mark.parametrize("kind,call,meets", [("stream", "dial", "ECONNREFUSED"), ("dgram", "sendto", "ok")])
@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_callers_from_beyond_the_host_are_told_once(world, boxes, mode, kind, call, meets):
    """The caller meets a closed port; the operator has one event for many calls, and the sandbox's counts stay its own."""
    box = boxes(mode)
    port = box.call("listen", keep="l", family=4, addr="0.0.0.0", kind=kind)["port"]
    for _ in range(20):  # what a datagram meets, its sender is not told
        assert world.world.try_(call, family=4, addr=HOST4, port=port, data="x") == meets
    told = ["sk_lookup"] if not box.apart else []  # in a network of its own it was not called: the host's port is another
    if told:
        e = refusals(box)[0]
        assert (e["reason"], e["hook"], e["listener_port"]) == ("inbound", "sk_lookup", port), e
        assert e["address"] == GATE4 and "pid" not in e
    # behind it, an attempt of the sandbox itself: it is told, and no more of the callers
    box.try_("dial", family=4, addr=META[4], port=80)
    got = refusals(box, n=len(told) + 1)
    assert [e["hook"] for e in got] == [*told, "connect"], got
    assert box.daemon.api.sandbox(box.id)["refused"] == 1


def test_port_taken_is_told(world, boxes):
    box = boxes("FULL")
    port = world.outside.call("listen", keep="pt", family=4, addr="127.0.0.1")["port"]
    try:
        assert box.try_("listen", keep="l", family=4, addr="127.0.0.1", port=port) == "EADDRINUSE"
    finally:
        world.outside.call("close", keep="pt")
    e = refusals(box)[0]
    assert (e["reason"], e["hook"], e["port"]) == ("port_taken", "bind", port)


def test_changes_are_events(api, boxes):
    box = boxes("FULL")
    box.call("dial", family=4, addr=FAR[4], port=9000, keep="c")
    answer = api.escalate(box.session, "SECRET", dataset="d.csv", reason="because")
    box.close()
    api.end(box.session)
    got = api.wait_events(lambda g: any(e["reason"] == "session_ended" for e in g), session=box.session)
    by = {e["reason"]: e for e in got}
    assert {"session_created", "sandbox_made", "raised", "cut", "sandbox_removed", "session_ended"} <= set(by)
    raised = by["raised"]
    assert (raised["kind"], raised["level"], raised["mode"], raised["dataset"], raised["text"]) == \
        ("change", "SECRET", "NONE", "d.csv", "because")
    assert raised["generation"] == answer["generation"] and "applied_us" in raised and "uid 0" in raised["who"]
    assert by["cut"]["cut"] == 1
    assert [e["seq"] for e in got] == sorted(e["seq"] for e in got)


def test_what_stands_is_an_event(api):
    name = new_session()
    api.escalate(name, "SECRET")
    api.escalate(name, "PUBLIC")
    got = api.wait_events(lambda g: any(e["reason"] == "stands" for e in g), session=name)
    assert [e for e in got if e["reason"] == "stands"]


def test_daemon_ready_is_an_event(api, daemon):
    assert any(e["reason"] == "daemon_ready" for e in api.events(reason="daemon_ready"))


def test_queries(api):
    a, b = new_session("qa"), new_session("qb")
    for i in range(5):
        api.escalate(a, "PUBLIC", dataset=f"a{i}")
        api.escalate(b, "PUBLIC", dataset=f"b{i}")
    got = api.events(session=a)
    assert got and all(e["session"] == a for e in got)
    newest = api.events(session=a, limit=2)
    assert [e["seq"] for e in newest] == [e["seq"] for e in got][-2:]
    later = api.events(session=a, after=got[2]["seq"])
    assert [e["seq"] for e in later] == [e["seq"] for e in got][3:]
    only = api.events(session=a, reason="session_created")
    assert len(only) == 1
    assert len(api.events(limit=1)) == 1


def test_follow(api, boxes):
    box = boxes("NONE")
    feed = api.follow(session=box.session)
    other = api.follow()
    try:
        assert feed.status == 200
        assert feed.next(0.3) is None, "no history unless asked for"
        box.try_("dial", family=4, addr=FAR[4], port=80)
        e = feed.until(lambda e: e["reason"] == "mode_none")
        assert e and e["session"] == box.session
        name = new_session("follow")
        api.create(name)
        assert other.until(lambda e: e.get("session") == name and e["reason"] == "session_created")
        assert feed.next(0.3) is None, "another session's events are not for this feed"
        again = api.follow(session=box.session, limit=10)
        assert again.until(lambda e: e["seq"] <= e["seq"] and e["reason"] == "mode_none"), "history first, when asked for"
        again.close()
    finally:
        feed.close()
        other.close()


def test_flood_is_counted_and_does_not_drown_a_neighbour(daemon, api, boxes):
    """Twenty thousand refusals in one sandbox, or more; one in another, in the middle of it."""
    loud, quiet = boxes("NONE"), boxes("NONE")
    total, enough = [0], threading.Event()

    def flood():
        while total[0] < 20000 or not enough.is_set():
            assert loud.call("flood", family=4, addr=FAR[4], port=80, count=1000)["outcomes"] == {"ECONNREFUSED": 1000}
            total[0] += 1000

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        flooding = pool.submit(flood)
        try:
            assert base.eventually(lambda: box_counters(daemon, loud)["refused"] >= 5000)
            assert quiet.try_("dial", family=6, addr=FAR[6], port=443) == "ECONNREFUSED"
            assert not flooding.done()
        finally:
            enough.set()
        flooding.result()
    assert len(refusals(quiet)) == 1, "the neighbour's one refusal is told"

    meter = box_counters(daemon, loud)
    assert meter["refused"] == total[0] and 0 < meter["suppressed"] < total[0]

    def told():
        every, after = [], 0
        while page := [e for e in api.events(session=loud.session, after=after, limit=1000) if e["seq"] > after]:
            every += page
            after = page[-1]["seq"]
            if len(page) < 1000:
                break
        sent = sum(e["kind"] == "refuse" for e in every)
        counted = sum(e.get("suppressed", 0) for e in every)
        return sent, counted

    assert base.eventually(lambda: sum(told()) == total[0]), f"{told()}: events, and counted ones, of {total[0]}"
    sent, counted = told()
    assert sent < total[0] // 2, "it is limited"
    assert counted == meter["suppressed"]


def test_journal_on_disk(daemon, api, boxes):
    """The same events, one JSON object a line, in a file that needs no tool."""
    box = boxes("NONE")
    box.try_("dial", family=4, addr=FAR[4], port=80)
    e = refusals(box)[0]

    def line():
        for path in daemon.state_dir.rglob("events*.ndjson"):
            for text in path.read_text().splitlines():
                if json.loads(text)["seq"] == e["seq"]:
                    return json.loads(text)
    got = base.eventually(line)
    assert got == e


def test_hostile_text_stays_in_its_line(daemon, api, boxes):
    """Program names and unix names are the sandbox's own words: no line break, no control character comes through."""
    box = boxes("NONE")
    code = ("import socket,ctypes\n"
            "ctypes.CDLL(None).prctl(15, b'a\"\\n\\x1b[31m\\xff}', 0, 0, 0)\n"
            f"s=socket.socket()\ntry: s.connect(('{FAR[4]}', 80))\nexcept OSError: pass\n"
            "s=socket.socket(socket.AF_UNIX)\n"
            "try: s.connect('\\0evil\\n\\x1b\"name')\nexcept OSError: pass\n")
    box.call("execute", argv=[base.PYTHON, "-c", code])
    refusals(box, n=2)
    status, headers, text = api.raw("GET", f"/v1/events?session={box.session}&limit=1000")
    for line in text.splitlines():
        json.loads(line)
        assert not any(b < 0x20 or b == 0x7f for b in line), line
    p = daemon.cli("events", "--session", box.session, check=0)
    assert "\x1b" not in p.stdout


def test_cli_follows(world, daemon, api, boxes):
    box = boxes("NONE")
    p = subprocess.Popen([*world.enter(), str(base.NETPAWL), "events", "--follow", "--json", "--session", box.session],
                         stdout=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(daemon.socket)), text=True,
                         stdin=subprocess.DEVNULL)
    lines = []
    reader = threading.Thread(target=lambda: [lines.append(l) for l in p.stdout], daemon=True)
    reader.start()
    try:
        def seen():
            box.try_("dial", family=4, addr=FAR[4], port=443)
            return any(json.loads(l)["reason"] == "mode_none" for l in list(lines))
        assert base.eventually(seen, 10, 0.2)
    finally:
        p.terminate()
        p.wait(60)
        p.stdout.close()


def test_the_next_two(api):
    session = new_session()
    for _ in range(6):
        api.escalate(session, "PUBLIC")
    seqs = [e["seq"] for e in api.events(session=session)]
    assert [e["seq"] for e in api.events(session=session, after=seqs[1], limit=2)] == seqs[2:4]


def test_since(daemon, api):
    """From a time on: the oldest first, as a page; the CLI goes through all pages."""
    session = new_session()
    for _ in range(3):
        api.escalate(session, "PUBLIC")
    old = api.events(session=session)
    for _ in range(1500):
        api.escalate(session, "PUBLIC")
    every = []
    while page := api.events(session=session, after=every[-1]["seq"] if every else 0, limit=1000):
        every += page
    start = every[len(old)]
    got = api.events(session=session, since=start["time"], limit=5)
    assert [e["seq"] for e in got] == [e["seq"] for e in every[len(old):len(old) + 5]]
    assert api.events(since="2099-01-01T00:00:00Z") == []
    assert api.events(session=session, since="1999-01-01T00:00:00Z", limit=1)[0]["seq"] == every[0]["seq"]
    lines = [json.loads(line) for line in daemon.cli("events", "--session", session, "--since", start["time"], "--json", check=0).stdout.splitlines()]
    assert [e["seq"] for e in lines] == [e["seq"] for e in every[len(old):]]
    for days in ("1d", "99999d"):  # the latter is before all that a clock can say
        assert len(daemon.cli("events", "--session", session, "--since", days, check=0).stdout.splitlines()) == len(every)
    assert len(daemon.cli("events", "--session", session, "--since", "1h", "--limit", "2", check=0).stdout.splitlines()) == 2
    for day, all_of in (("1999-01-01", every), ("2099-01-01", [])):
        assert len(daemon.cli("events", "--session", session, "--since", day, "--json", check=0).stdout.splitlines()) == len(all_of)
    for bad in ("yesterday", "10", "2026-13-01T00:00:00Z", "2026-02-30", "1y"):
        daemon.cli("events", "--since", bad, check=2)
    for bad in ("10m", "2026-01", "2026-01-01T00:00:00", "2026-02-30", "x"):
        with pytest.raises(Failure):
            api.events(since=bad)


def test_all_of_them_page_by_page(api):
    """Whoever asks behind the last event that he has, again and again, gets every one once, in order; also a follower."""
    session = new_session("pages")
    api.ask("POST", "/v1/sessions", {"session": session})
    for i in range(12):
        api.ask("POST", f"/v1/sessions/{session}/datasets", {"dataset": f"d{i}", "level": "INTERNAL"})
    want = [e["seq"] for e in api.events(session=session)]
    assert len(want) >= 12
    for limit in (1, 5, len(want), 1000):
        got, last = [], 0
        while page := api.events(session=session, after=last, limit=limit):
            assert len(page) <= limit
            got += [e["seq"] for e in page]
            last = got[-1]
        assert got == want, limit
    assert [e["seq"] for e in api.events(session=session, limit=5)] == want[-5:], "without after: the newest"
    stands = [e["seq"] for e in api.events(session=session, reason="stands")]
    assert [e["seq"] for e in api.events(session=session, reason="stands", after=stands[0], limit=2)] == stands[1:3]
