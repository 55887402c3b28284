# SPDX-License-Identifier: MIT
"""Runs that the API starts, with nothing but the API: their output as it comes, their bounds, their approvals."""
import http.client
import json
import threading

import pytest

from lib import base
from lib.api import Connection
from lib.box import new_session
from lib.world import FAR

REACH = f"import socket; socket.create_connection(('{FAR[4]}', 9000), 5); print('through')"


@pytest.fixture
def session(api):
    name = new_session("launch")
    api.create(name)
    return name


def launch(api, session, *command, cls=None, **options):
    body = {"session": session, "command": list(command), "launch": options}
    return api.ok("POST", "/v1/runs", {**body, **({"class": cls} if cls else {})})["run"]


def output(api, ident, follow=1):
    """(stdout, stderr, other lines), to the end when it is followed."""
    c = Connection(api.path, 60)
    try:
        c.request("GET", f"/v1/runs/{ident}/output?follow={follow}")
        r = c.getresponse()
        assert r.status == 200, r.read()
        lines = [json.loads(line) for line in r.read().splitlines() if line]
    finally:
        c.close()
    join = lambda name: "".join(line["data"] for line in lines if line.get("stream") == name)
    return join("stdout"), join("stderr"), [line for line in lines if "stream" not in line]


def ended(api, ident):
    return base.eventually(lambda: (row := api.ok("GET", f"/v1/runs/{ident}"))["state"] not in ("pending", "running") and row, 30)


def test_launch(api, session):
    ident = launch(api, session, "sh", "-c", "echo out; echo err >&2; pwd; cat; exit 3")
    assert output(api, ident) == ("out\n/workspace\n", "err\n", [])
    row = ended(api, ident)
    assert row["state"] == "completed" and row["result"]["exit_code"] == 3 and row["class"] is None
    assert row["command"][:2] == ["sh", "-c"] and row["started"] <= row["ended"]
    assert output(api, ident, follow=0)[0] == "out\n/workspace\n"  # it is kept
    assert not api.sandboxes(session)


def test_output_comes_while_it_runs(api, session):
    ident = launch(api, session, "sh", "-c", "echo first; while ! test -e /workspace/go; do sleep 0.1; done; echo second")
    c = Connection(api.path, 60)
    try:
        c.request("GET", f"/v1/runs/{ident}/output?follow=1")
        r = c.getresponse()
        assert json.loads(r.readline()) == {"stream": "stdout", "data": "first\n"}
        assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "running"
        other = launch(api, session, "touch", "/workspace/go")
        assert json.loads(r.readline()) == {"stream": "stdout", "data": "second\n"}
        assert r.readline() == b""
    finally:
        c.close()
    assert ended(api, ident)["result"]["exit_code"] == 0 and ended(api, other)["state"] == "completed"


def test_limits(api, session):
    ident = launch(api, session, "sleep", "1000", timeout="1s")
    assert "time was over" in output(api, ident)[1]
    assert ended(api, ident)["result"]["timed_out"] is True
    ident = launch(api, session, "sh", "-c", "yes | head -c 30000000")
    out, _, other = output(api, ident)
    assert 0 < len(out) <= 1 << 20 and ended(api, ident)["state"] == "completed"
    ident = launch(api, session, "sh", "-c", "yes | head -c 30000000", output_limit="20MiB")
    out, _, other = output(api, ident)
    assert 0 < len(out) <= 2 << 20 and other == [{"truncated": True}]
    ident = launch(api, session, "true", memory="lots")
    assert "not a size" in output(api, ident)[1]
    row = ended(api, ident)
    assert row["state"] == "rejected" and row["reason"] == "it could not be started"


def test_output_that_is_no_text(api, session):
    ident = launch(api, session, "python3", "-c", "import sys, time\nw = sys.stdout.buffer\n"
                   "for b in (b'a\\xff\\x00\"\\\\', b'\\xe2\\x82', b'\\xac|', b'\\xe2\\x82'):\n"
                   "    w.write(b); w.flush(); time.sleep(0.2)")
    assert output(api, ident)[0] == "a\ufffd\0\"\\\u20ac|\ufffd\ufffd"


def test_classes(api, session):
    assert output(api, launch(api, session, "python3", "-c", REACH))[0] == "through\n"
    ident = launch(api, session, "python3", "-c", REACH, cls="none")
    out, err, _ = output(api, ident)
    assert out == "" and "refused" in err and api.show(session)["mode"] == "FULL"


def test_write_waits(api, session):
    ident = launch(api, session, "sh", "-c", "touch /workspace/ran; echo ran", cls="write")
    other = launch(api, session, "sh", "-c", "touch /workspace/other", cls="write")
    got = []
    reader = threading.Thread(target=lambda: got.append(output(api, ident)))
    reader.start()
    assert output(api, launch(api, session, "ls", "/workspace"))[0] == ""  # neither has begun
    assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "pending"
    api.ok("POST", f"/v1/runs/{ident}/approve")
    reader.join(30)
    assert got and got[0][0] == "ran\n"
    api.ok("POST", f"/v1/runs/{other}/reject", {"reason": "no"})
    assert "rejected" in output(api, other)[1]
    assert output(api, launch(api, session, "ls", "/workspace"))[0] == "ran\n"


def test_command_words_are_words(api, session):
    ident = launch(api, session, "printf", "%s\n", "--json", "--session", "-x", "$HOME", "a b")
    assert output(api, ident)[0] == "--json\n--session\n-x\n$HOME\na b\n"
    ident = launch(api, session, "--isolation", "none")  # no option of ours
    assert ended(api, ident)["state"] in ("failed", "completed") and "only the network" not in output(api, ident)[1]
    ident = launch(api, session, "true", chdir="--isolation=none")
    assert "only the network" not in output(api, ident)[1]


def test_the_launcher_runs_what_is_on_record(daemon, api, session):
    """An approval of one command cannot be spent on another."""
    ident = api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["echo", "approved"]})["run"]
    api.ok("POST", f"/v1/runs/{ident}/approve")
    assert daemon.cli("run", "--session", session, "--record", ident, "--", "echo", "other").returncode == 2
    got = daemon.cli("run", "--session", session, "--record", ident, check=0)
    assert got.stdout == "approved\n"
    assert daemon.cli("run", "--session", session, "--record", ident).returncode == 125  # once


def test_no_output_of_others(api, session):
    ident = api.ok("POST", "/v1/runs", {"session": session, "command": ["true"]})["run"]  # on record only
    for wrong in (ident, 0, 10**12, "x"):
        assert api.ask("GET", f"/v1/runs/{wrong}/output")[0] == 404
    assert api.ok("GET", f"/v1/runs/{ident}")["state"] == "pending"


def test_readers_that_go_away(api, session):
    ident = launch(api, session, "sleep", "3")
    for _ in range(40):  # more than NP_FOLLOWERS_MAX, but never at once
        c = Connection(api.path, 10)
        c.request("GET", f"/v1/runs/{ident}/output?follow=1")
        try:
            c.getresponse()
        except http.client.HTTPException:
            pass
        c.close()
        base.eventually(lambda: api.health(), 5)
    assert ended(api, ident)["state"] == "completed"


def test_restart(make_daemon):
    """Whoever was launched asks the next daemon like anybody; what waits for approval goes on waiting."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    waits = launch(d.api, name, "sh", "-c", "touch /workspace/ran", cls="write")
    d.restart("kill")
    row = d.api.ok("GET", f"/v1/runs/{waits}")
    assert row["state"] in ("pending", "rejected") and row["started"] is None and not d.api.sandboxes(name)
    assert output(d.api, launch(d.api, name, "ls", "/workspace"))[0] == ""
    if row["state"] == "pending":
        d.api.ok("POST", f"/v1/runs/{waits}/reject", {"reason": "no"})
    assert d.api.ask("GET", f"/v1/runs/{waits}/output")[0] == 404


def test_stop_with_readers(make_daemon):
    """Neither a reader of output nor one who waits keeps the daemon from its end."""
    d = make_daemon()
    d.start()
    name = new_session("launch")
    ident = launch(d.api, name, "true", cls="write")
    readers = []
    for path in ("output?follow=1", "?wait=1", "?wait=1"):
        c = Connection(d.api.path, 20)
        c.request("GET", f"/v1/runs/{ident}" + ("" if path[0] == "?" else "/") + path)
        readers.append(c)
    d.api.health()
    assert d.stop() == 0
    for c in readers:
        c.close()
    d.start()
    d.api.ok("POST", f"/v1/runs/{ident}/reject", {"reason": "no"})
