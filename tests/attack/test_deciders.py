# SPDX-License-Identifier: MIT
"""Deciders that lie, hang, flood or die, and sandboxes that would like to be their own. The control is a decider that keeps to the
protocol: in each test a request that it allows gets through, by the same channel or by the next."""
import base64
import contextlib
import json
import os
import socket
import subprocess

import pytest

from lib import base
from lib.decided import Decided, done
from lib.world import FAR

RULES = """rules:
  - deny: bad.origin.test
  - decide: "**.origin.test"
    by: guard
"""


@pytest.fixture(scope="module", params=["command", "socket"])
def net(request):
    with contextlib.ExitStack() as stack:
        n = Decided(stack, RULES, by=request.param)
        yield n
        assert n.daemon.running() and n.api.health()["inspectors"] == 2


SOCKET = pytest.mark.parametrize("net", ["socket"], indirect=True)
COMMAND = pytest.mark.parametrize("net", ["command"], indirect=True)


def refused(p):
    body, code = done(p)
    assert code == 403, (code, body)
    assert body["reason"] == "needs_decider" and body["decider"] == "guard" and body["retry_after"], body
    return body


SURPRISES = ["wrong", "unknown", "null", "garbage", "bytes", "duplicate", "huge", "long", "half", "die", "hello",
             "body-twice", "body-other", "body-large", "body-none", "body-reason"]


@pytest.mark.parametrize("what", SURPRISES)
def test_a_surprise_ends_the_channel_and_refuses_all_that_wait_on_it(net, what):
    session = net.fresh()
    net.settled()
    starts = net.decider()["starts"]
    held = net.get(session, "https://held.origin.test/hang")
    net.wait_frames(session=session)
    bad = net.get(session, f"https://bad-one.origin.test/{what}")
    refused(bad)
    assert "not answered" in refused(held)["message"]
    assert base.eventually(lambda: net.decider()["starts"] > starts and net.decider()["ready"], 20), net.daemon.text()[-2000:]
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200, "the control: the next channel"
    allowed = [e for e in net.api.events(session=session, reason="decider_allows") if "held" in e["url"] and "hang" in e["url"]]
    assert not allowed


@pytest.mark.parametrize("what", ["twice", "flood", "other", "body-after", "body-then-twice", "body-twice-at-once"])
def test_what_it_says_twice_ends_the_channel(net, what):
    session = net.fresh()
    net.settled()
    starts = net.decider()["starts"]
    if what == "other":  # a client that went, whose answer comes once: no surprise. Then once more.
        p = net.get(session, "https://first.origin.test/hang")
        net.wait_frames(session=session)
        base.reap(p)
        assert base.eventually(lambda: net.decider()["waiting"] == 0, 15)
        assert net.fetch(session, "https://second.origin.test/other")[1] == 200
        assert net.decider()["starts"] == starts
        net.get(session, "https://third.origin.test/other").communicate(timeout=180)
    else:
        net.get(session, f"https://twice.origin.test/{what}").communicate(timeout=180)
    assert base.eventually(lambda: net.decider()["starts"] > starts and net.decider()["ready"], 20), net.daemon.text()[-2000:]
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200


def test_its_words_cannot_turn_a_terminal_around(net):
    session = net.fresh()
    p = net.get(session, "-H", "Accept: text/plain", "https://words.origin.test/words")
    out, _ = p.communicate(timeout=180)
    assert out.endswith("\n403") and "evil" in out
    body, code = net.fetch(session, "https://words.origin.test/words")
    assert code == 403 and body["reason"] == "decider_denies" and len(body["message"]) < 768
    told = json.dumps(net.api.events(session=session), ensure_ascii=False) + net.daemon.text()
    for text in (out.rpartition("\n")[0].replace("\n", ""), body["message"], told):
        assert not [c for c in text if c in "\x1b\u202e\u200b\r\x9b"], text
    assert "www" in body["message"] and "..." in body["message"]
    assert net.fetch(session, "https://words.origin.test/allow")[1] == 200


@SOCKET
def test_a_sandbox_cannot_speak_to_it(net):
    session = net.fresh()
    talk = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1]); print('in')"
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(net.decider_socket))  # the control: outside of sandboxes
    for level in ("PUBLIC", "INTERNAL"):
        p = net.spawn(base.PYTHON, "-c", talk, str(net.decider_socket), session=net.fresh(level), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = p.communicate(timeout=180)
        assert "in" not in out and "Error" in err, (out, err)
    net.settled()
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200


@SOCKET
def test_a_sandbox_cannot_be_it(net):
    """It listens where the policy says that a decider does: then nobody decides."""
    session = net.fresh()
    net.stop_server()
    refused(net.get(session, "https://held.origin.test/allow"))
    net.decider_socket.unlink()
    argv = [base.PYTHON, str(net.program), str(net.frames_file), str(net.decider_socket)]
    inside = net.spawn(*argv, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert inside.stdout.readline() == "listening\n"
        assert base.eventually(lambda: "served by a process in a sandbox" in net.daemon.text(), 20)
        assert not net.decider()["ready"]
        refused(net.get(session, "https://held.origin.test/allow"))
    finally:
        base.reap(inside)
        inside.stdout.close()
        inside.stderr.close()
    net.start_server()  # the control: the same program, outside
    net.settled()
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200


def processes(net):
    """Those of the command, by the host's numbers."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if str(net.program).encode() in f.read():
                    found.append(int(pid))
    return found


@COMMAND
def test_a_command_has_a_user_of_its_own_and_no_network(net):
    pid, = base.eventually(lambda: len(found := processes(net)) == 1 and found)
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65532"] * 4 and status["Groups"].strip() == "" and status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == 0
    assert os.stat(f"/proc/{pid}/ns/net").st_ino != os.stat(f"/proc/{net.daemon.process.pid}/ns/net").st_ino
    assert sorted(os.listdir(f"/proc/{pid}/fd"))[:3] == ["0", "1", "2"]
    assert "decider?[31m starts" in net.daemon.text(), "its stderr is in the log, harmless"


@pytest.mark.parametrize("network", [True, False])
def test_its_own_traffic_is_not_led_to_itself(network):
    """It has a network if the rule says so, and what it sends there is its own: no inspector sees it, and nobody asks it about itself."""
    with contextlib.ExitStack() as stack:
        n = Decided(stack, RULES, network=network)
        session = n.fresh()
        body, code = n.fetch(session, f"https://x.origin.test/fetches?at={FAR[4]}")
        assert code == 403 and body["reason"] == "decider_denies"
        if network:
            assert "HTTP/1.1 200" in body["message"], body
        else:
            assert "HTTP/1.1" not in body["message"] and "unreachable" in body["message"], body
        assert len(n.frames(type="decide")) == 1, n.frames()
        assert not [e for e in n.api.events() if "itself.origin.test" in str(e.get("url"))]
        # the control: from the sandbox the same asks it
        assert n.fetch(session, "http://itself.origin.test/allow")[1] == 200 and len(n.frames(type="decide")) == 2


SPY = """#!/usr/bin/python3 -I
import ctypes, json, os, sys
target, out, got = int(open(sys.argv[1]).read()), sys.argv[2], {}
def tries(name, what):
    try:
        got[name] = what()
    except OSError as e:
        got[name] = type(e).__name__
def attach():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, target, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, target, None, None)
    return "attached"
got["uid"] = os.getuid()
got["sees"] = sorted(int(n) for n in os.listdir("/proc") if n.isdigit())
tries("environ", lambda: open(f"/proc/{target}/environ").read())
tries("memory", lambda: open(f"/proc/{target}/mem", "rb").close() or "open")
tries("kill", lambda: os.kill(target, 0) or "there")
if got["kill"] != "there":  # else it would stand still
    tries("ptrace", attach)
open(out + ".new", "w").write(json.dumps(got))
os.rename(out + ".new", out)
"""


def test_commands_of_one_user_see_nothing_of_each_other(tmp_path_factory):
    """Deciders, what is notified and sources of credentials run as one user. None reads, traces or ends another."""
    with contextlib.ExitStack() as stack:
        place = base.tempdir("spy")
        stack.callback(base.drop_tempdir, place)
        place.chmod(0o777)
        spy, target = place / "spy", place / "target"
        spy.write_text(SPY)
        spy.chmod(0o755)
        n = Decided(stack, RULES.replace("rules:\n", "rules:\n  - ask: asks.origin.test\n"),
                    head=f"approval: {{hold: 100ms, notify: {{command: [{spy}, {target}, {place}/got], network: true}}}}\n")
        pid, = base.eventually(lambda: len(found := processes(n)) == 1 and found)
        target.write_text(str(pid))
        session = n.fresh()
        assert n.fetch(session, "https://asks.origin.test/")[1] == 403
        assert base.eventually((place / "got").exists, 60), n.daemon.text()[-2000:]
        got = json.loads((place / "got").read_text())
        assert got["uid"] == 65532 and got["sees"] == [1], got
        assert (got["environ"], got["memory"], got["kill"], got["ptrace"]) == ("FileNotFoundError", "FileNotFoundError", "ProcessLookupError",
                                                                               "ProcessLookupError"), got
        # the control: the same user in the host's namespaces
        subprocess.run(["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", str(spy), str(target), str(place / "control")],
                       check=True, timeout=60)
        control = json.loads((place / "control").read_text())
        assert pid in control["sees"] and "PATH=" in control["environ"] and control["kill"] == "there", control
        assert n.fetch(session, "https://a.origin.test/allow")[1] == 200


def test_the_daemon_is_killed_while_it_thinks(net):
    session = net.fresh()
    p = net.get(session, "https://held.origin.test/hang")
    net.wait_frames(session=session)
    net.daemon.kill()
    body, code = done(p)
    assert code != 200, "nothing passes unanswered"
    if not net.server:
        assert base.eventually(lambda: not processes(net), 10), "it dies with the daemon"
    net.daemon.start()
    net.settled()
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200


def test_its_reader_is_killed_and_another_comes(net):
    session = net.fresh()
    p = net.get(session, "https://held.origin.test/hang")
    net.wait_frames(session=session)
    beside = base.cgroup_pids(net.daemon.inspector_cgroup)
    readers = [pid for pid in beside if b"netpawl-decide" in open(f"/proc/{pid}/cmdline", "rb").read()]
    assert len(readers) == 1
    os.kill(readers[0], 9)
    refused(p)
    net.settled()
    assert net.fetch(session, "https://held.origin.test/allow")[1] == 200


@pytest.fixture(scope="module")
def hasty():
    with contextlib.ExitStack() as stack:
        yield Decided(stack, RULES, by="socket", timeout="2s")


def test_late_answers_change_nothing_and_failures_are_not_remembered(hasty):
    session = hasty.fresh()
    body = refused(hasty.get(session, "https://late.origin.test/hang"))
    assert "in time" in body["message"]
    starts = hasty.decider()["starts"]
    got = base.eventually(lambda: hasty.fetch(session, "https://late.origin.test/release")[1] == 200, 30)
    assert got, "asked again, though it had failed; the late answer is dropped"
    assert hasty.decider()["starts"] == starts and hasty.decider()["late"] >= 1


def test_a_body_that_it_needs_gives_it_no_more_time(hasty):
    session = hasty.fresh()
    assert base.eventually(lambda: not hasty.decider()["paused"] and hasty.fetch(session, "https://b.origin.test/body", "-d", "control")[1] == 200, 60)
    late = hasty.decider()["late"]
    assert "in time" in refused(hasty.get(session, "https://b.origin.test/body-hang", "-d", "hello"))["message"]
    assert hasty.decider()["late"] == late + 1
    assert base.eventually(lambda: hasty.fetch(session, "https://b.origin.test/release")[1] == 200, 60), "the late answer is dropped"
    assert not [e for e in hasty.api.events(session=session, reason="decider_allows") if "body-hang" in e["url"]]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_nothing_of_a_body_that_it_sees_has_left(net, version):
    session = net.fresh()
    net.settled()
    big = net.decider_dir / "big"
    big.write_bytes(b"0123456789abcdef" * 65536)
    p = net.get(session, version, "https://seen.origin.test/body-hang", "--data-binary", f"@{big}")
    id_ = net.wait_frames(session=session)[0]["id"]
    frame = net.wait_frames(type="body", id=id_)[0]
    assert base64.b64decode(frame["base64"]) == b"0123456789abcdef" * 4 and not frame["whole"]
    net.api.escalate(session, "CONFIDENTIAL")  # it is asked about anew, and may be shown once more
    net.wait_frames(session=session, level="CONFIDENTIAL")
    again = net.frames(session=session, level="CONFIDENTIAL")[0]["id"]
    net.wait_frames(type="body", id=again)
    net.api.escalate(session, "SECRET")
    body, code = done(p)
    assert code != 200
    told = net.api.wait_events(lambda got: [e for e in got if "body-hang" in (e.get("url") or "")], session=session)
    assert not [e for e in told if "body-hang" in (e.get("url") or "") and (e.get("status") == 200 or e.get("sent"))], told
    net.fetch(net.fresh(), "https://seen.origin.test/release")
    net.settled()


def test_one_that_fails_again_and_again_is_left_alone_for_a_while(hasty):
    session = hasty.fresh()
    held = [hasty.get(session, f"https://h{i}.origin.test/hang") for i in range(5)]
    for p in held:
        refused(p)
    if hasty.decider()["paused"]:  # ten seconds, on a machine that may be slower than that
        asked = len(hasty.frames())
        body, code = hasty.fetch(session, "https://x.origin.test/allow")
        assert code == 200 or ("left alone" in body["message"] and len(hasty.frames()) == asked), body
    assert hasty.decider()["pauses"] >= 1
    assert base.eventually(lambda: not hasty.decider()["paused"], 30)
    assert base.eventually(lambda: hasty.fetch(session, "https://x.origin.test/release")[1] == 200, 60)


@pytest.mark.parametrize("start", ["PUBLIC", "INTERNAL"])
@pytest.mark.parametrize("remember", ["host", "session"])
def test_a_level_that_comes_with_an_adopted_cgroup_voids_what_is_remembered(net, remember, start):
    """The kernel knows the cgroup at a higher level than the session that adopts it, at the generation that the session has itself, or another."""
    net.settled()
    higher, session = net.fresh("PUBLIC"), net.fresh(start)
    if start == "PUBLIC":
        net.api.escalate(session, "INTERNAL")
    assert net.fetch(session, f"https://rises.origin.test/allow?remember={remember}")[1] == 200
    assert net.fetch(session, "https://rises.origin.test/deny")[1] == 200, "the control: at its level it is not asked again"
    with net.risen_by_adoption(session, higher):
        body, code = net.fetch(session, "https://rises.origin.test/deny")
        assert code == 403 and body["reason"] == "decider_denies", body
        assert net.frames(session=session, level="CONFIDENTIAL")
