# SPDX-License-Identifier: MIT
"""What is counted of a sandbox is exact: compared with what its client and its origin saw, however many of the events were
only counted, and whatever is still open."""
import json
import pathlib
import subprocess
import time

import pytest

from lib import base
from lib.box import Box, new_session
from lib.inspected import inspected
from lib.loads import Load
from lib.world import FAR


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        [i.keeper_id] = [s["sandbox"] for s in i.api.sandboxes(i.session)]
        yield i
        assert i.daemon.running()
        assert i.api.health()["inspectors"] == 2, i.daemon.text()[-2000:]


MANY, BURST, RATE = 40000, 5000, 500  # requests of one connection; NP_REQUEST_BURST, NP_REQUEST_RATE of a worker


def counts_of(answer):
    return {k: answer[k] for k in ("requests", "refused", "sent", "received")}


def result(net, *words, timeout=240):
    """netpawl run --json."""
    argv = net.argv(*words)
    argv.insert(argv.index("run") + 1, "--json")
    got = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=net.env())
    return json.loads(got.stdout)


def test_allowed_requests_and_their_bodies(net):
    with Load(net, url="http://origin.test/counted", threads=8, count=60, body=3001, stay=True) as load:
        seen = load.seen()
        counts = load.counts()
        assert seen["answered"] == {"200": 480} and seen["broken"] == 0
        log = (net.origins.dir / "log").read_text()
        assert log.count('"POST /counted HTTP/1.1" 200') == 480
        assert counts_of(counts) == {"requests": 480, "refused": 0, "sent": 480 * 3001, "received": seen["received"]}
        got, counted = load.events()
        assert (len(got), counted) == (480, {})
        assert sum(e["sent"] for e in got) == 480 * 3001 and sum(e["received"] for e in got) == seen["received"]


def test_refused_requests_beyond_the_rate_of_events(net):
    """More than are told one by one: the rest is in a number, and counted as well."""
    began = time.monotonic()
    with Load(net, url="http://get-only.origin.test/x", threads=1, count=MANY, ahead=1000, body=10, stay=True) as load:
        seen = load.seen()
        rate = BURST + RATE * (time.monotonic() - began)
        counts = load.counts()
        assert seen["answered"] == {"403": MANY}, seen
        # No origin had any of the bodies, and the answers are ours.
        assert counts_of(counts) == {"requests": MANY, "refused": MANY, "sent": 0, "received": 0}
        assert base.eventually(lambda: sum(told_of(net, load.session)) == MANY), told_of(net, load.session)
        # On a machine that took more than a minute for it no more of them came than are told.
        assert told_of(net, load.session)[1] or MANY < rate, "nothing was suppressed: this shows nothing"


def told_of(net, session):
    """Refusals in the journal: how many are events, and how many events only count."""
    text = (net.daemon.state_dir / "events/events.ndjson").read_text()
    events = [e for e in map(json.loads, text.splitlines()) if e.get("session") == session]
    return sum(e["kind"] == "refuse" for e in events), sum(e.get("suppressed", 0) for e in events)


def test_refusals_of_the_gate_beyond_the_rate_of_events(net):
    with Box(net.daemon, "NONE") as box:
        before = net.api.sandbox(box.id)["refused"]
        got = box.call("flood", family=4, addr=FAR[4], port=80, count=3000, _timeout=60)
        assert got["outcomes"] == {"ECONNREFUSED": 3000}
        assert net.api.sandbox(box.id)["refused"] - before == 3000


def test_what_never_left_is_not_counted_as_sent(net):
    """An origin that cannot be reached has had nothing."""
    got = result(net, "curl", "-s", "-o", "/dev/null", "--data-binary", "@" + str(net.binary()), "http://dead.test/")
    assert (got["requests"], got["refused"], got["sent"]) == (1, 1, 0), got
    got = result(net, "curl", "-s", "-o", "/dev/null", "--data-binary", "@" + str(net.binary()), "http://origin.test/")
    assert (got["requests"], got["refused"], got["sent"]) == (1, 0, 256), got


QUERIES = """
import socket, struct, sys
def ask(kind, name):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    wire = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + labels + bytes(1) + struct.pack("!HH", 1, 1)
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(60)
        s.connect(("192.0.2.53", 53))
        s.sendall(wire if kind == socket.SOCK_DGRAM else struct.pack("!H", len(wire)) + wire)
        assert s.recv(512)
for name, n in (("origin.test", 7), ("nobody.example", 5)):
    for i in range(n):
        ask(socket.SOCK_DGRAM if i % 2 else socket.SOCK_STREAM, name)
with socket.create_connection(("FAR", 80)) as s:
    s.sendall(b"GET / HTTP/1.0\\r\\nHost: origin.test\\r\\n\\r\\n")
    assert b" 200 " in s.recv(4096)
""".replace("FAR", FAR[4])


def test_queries_are_no_requests(net):
    """Answered and refused ones are counted apart; those that were refused are among `refused`."""
    got = result(net, base.PYTHON, "-c", QUERIES)
    assert got["exit_code"] == 0, got
    assert (got["requests"], got["queries"], got["refused"]) == (1, 12, 5), got


def test_a_request_that_is_open_is_counted(net):
    others = {s["sandbox"] for s in net.api.sandboxes(net.session)}  # the keeper's, and perhaps one that is being removed
    p = net.spawn("curl", "-s", "http://origin.test/hold/open")
    try:
        [box] = base.eventually(lambda: [s for s in net.api.sandboxes(net.session) if s["sandbox"] not in others], 10)
        settled = lambda: net.api.ok("GET", f"/v1/sandboxes/{box['sandbox']}?settled=1")
        want = {"requests": 1, "refused": 0, "sent": 0, "received": 0}
        assert base.eventually(lambda: counts_of(settled()) == want, 10), counts_of(settled())
        assert p.poll() is None, "it was answered: this shows nothing"
    finally:
        base.reap(p)


ENDED = """
set -e
for i in 1 2 3; do curl -s -o /dev/null --data-binary 12345 http://origin.test/ended; done
for i in 1 2; do curl -s -o /dev/null --data-binary 1234567 http://get-only.origin.test/ended; done
echo ready
exec curl -s -o /dev/null http://origin.test/hold/ended-$1
"""


@pytest.mark.parametrize("how, keep, open_request", [("end", False, True), ("end", False, False), ("end", True, True),
                                                     ("remove", False, True), ("remove", True, False), ("kill", False, True)])
def test_a_run_that_was_ended_has_its_counts(net, how, keep, open_request):
    """By the end of its session, of its sandbox, or of all that runs there: what it did before is counted all the same."""
    session = new_session("ended")
    net.api.ok("POST", "/v1/sessions", {"session": session, "level": "CONFIDENTIAL"})
    script = ENDED if open_request else ENDED.replace("exec curl", "exec sleep 100; exec curl")
    words = net.argv("sh", "-c", script, "sh", base.token())
    at = words.index("run") + 1
    words[words.index(net.session)] = session
    p = base.popen([*words[:at], "--json", *(["--keep"] if keep else []), *words[at:]], env=net.env(), stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE)
    try:
        requests = 6 if open_request else 5
        find = lambda: [s for s in net.api.sandboxes(session) if s["requests"] == requests]
        [box] = base.eventually(find, 20)
        if how == "end":
            net.api.ok("DELETE", f"/v1/sessions/{session}")
        elif how == "remove":
            net.api.ok("DELETE", f"/v1/sandboxes/{box['sandbox']}")
        else:
            pathlib.Path(box["cgroup"], "cgroup.kill").write_text("1")
        got = json.loads(p.communicate(timeout=240)[0])
        assert got["killed_by"] == "SIGKILL" and got["exit_code"] == 137, got
        assert (got["requests"], got["refused"], got["sent"]) == (requests, 2, 15) and got["received"] > 0, got
        ended = net.api.ok("GET", f"/v1/sandboxes/{box['sandbox']}?ended=1")
        assert counts_of(ended) == counts_of(got) and ended["queries"] == got["queries"]
    finally:
        base.reap(p)


TUNNEL = """
import socket, ssl, sys, time
s = socket.create_connection(("pinned.origin.test", 443))
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
t = context.wrap_socket(s, server_hostname="pinned.origin.test")
t.sendall(b"POST /hold HTTP/1.1\\r\\nhost: pinned.origin.test\\r\\ncontent-length: 30000\\r\\n\\r\\n" + b"x" * 20000)
print("sent", flush=True)
time.sleep(600)
"""


def test_a_tunnel_that_is_open_at_the_timeout_is_counted(net):
    words = net.argv(base.PYTHON, "-c", TUNNEL)
    at = words.index("run") + 1
    for seconds in (2, 10, 50):  # as a busy machine may need to get there
        got = subprocess.run([*words[:at], "--json", "--timeout", f"{seconds}s", *words[at:]], capture_output=True, text=True, timeout=240,
                             env=net.env())
        got = json.loads(got.stdout)
        if got["stdout"]:
            break
    assert got["timed_out"] and got["stdout"] == "sent\n", got
    assert got["requests"] == 1 and 20000 < got["sent"] < 23000, got


def test_a_reload_counts_tunnels_and_requests_among_what_it_cut(net):
    words = net.argv(base.PYTHON, "-c", TUNNEL)
    hold = net.argv("curl", "-s", "http://origin.test/hold/reload")
    plain = net.policy.read_text()
    processes = [base.popen(argv, env=net.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                 for argv in (words, hold)]
    try:
        every = lambda what: sum(s[what] for s in net.api.sandboxes(net.session))
        assert base.eventually(lambda: every("requests") == 2 and every("sent") > 20000, 10)
        net.policy.write_text(plain.replace("rules:\n", "rules:\n  - deny: [origin.test, pinned.origin.test]\n", 1))
        done = net.api.ok("POST", "/v1/policy/reload")
        assert done["cut"] == 2, done
    finally:
        net.policy.write_text(plain)
        net.api.ok("POST", "/v1/policy/reload")
        for p in processes:
            base.reap(p)


def test_the_daemon_counts_what_inspectors_refused(net):
    """By reason, in the status; what they allow is not among it."""
    count = lambda: net.api.health()["requests_refused"].get("rule_denies", 0)
    before = count()
    for _ in range(3):
        assert net.curl("-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x", "http://get-only.origin.test/").stdout == "403"
    assert net.curl("-s", "-o", "/dev/null", "-w", "%{http_code}", "http://origin.test/").stdout == "200"
    assert base.eventually(lambda: count() >= before + 3)
    assert count() == before + 3
    assert "requests_refused." in net.daemon.cli("status", check=0).stdout
