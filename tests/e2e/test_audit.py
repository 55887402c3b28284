# SPDX-License-Identifier: MIT
"""The record cannot be washed away: a flood of refusals pushes out nothing but its own session's older refusals, and what
it pushes out is counted."""
import json
import re
import sqlite3
import subprocess

import pytest

from lib import base
from lib.box import Box, new_session
from lib.daemon import NotReady
from lib.inspected import inspected
from lib.world import FAR

KIB = 1024
SESSION, TOTAL, CHANGES, JOURNAL = 256 * KIB, 640 * KIB, 256 * KIB, 256 * KIB
POLICY = "version: 1\nrules:\n  - deny: bad.origin.test\n  - allow: origin.test\n"
FLOOD = 420  # refused requests of one sandbox: more than 500 KiB of events


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY, more=["--events-session", "256KiB", "--events-total", "640KiB", "--changes-total", "256KiB",
                                        "--journal-size", "256KiB"]) as i:
        yield i
        assert i.daemon.running()


def why(net, session):
    return net.api.ok("GET", f"/v1/sessions/{session}/why?last=50")


def flood(net, session, host="bad.origin.test", count=FLOOD):
    """That many requests from a sandbox of its own, with paths as long as an event shows them."""
    url = f"http://{host}/[1-{count}]/" + "x" * 900
    return net.spawn("curl", "-s", "-m", "60", "-o", "/dev/null", "--connect-to", f"::{FAR[4]}:", url, session=session,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def journal(net, name):
    """Every line of a journal, oldest first."""
    files = sorted((net.daemon.state_dir / "events").glob(name + "*.ndjson"),
                   key=lambda p: -int((re.findall(r"\.(\d+)\.", p.name) or [0])[0]))
    return [json.loads(line) for f in files for line in f.read_text().splitlines()]


def test_floods_take_only_from_themselves(net):
    api, quiet = net.api, new_session("quiet")
    with Box(net.daemon, "FULL", session=quiet, level="PUBLIC") as box:
        api.escalate(quiet, "CONFIDENTIAL", "customers.csv", "ticket 4711")
        assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        api.escalate(quiet, "SECRET", "keys.txt")
        assert box.try_("dial", family=4, addr=FAR[4], port=443) == "ECONNREFUSED"
        before = base.eventually(lambda: (got := box.events()) and sum(e["kind"] == "refuse" for e in got) == 2 and got)
    loud = [new_session("loud") for _ in range(3)]
    for session in loud:
        api.create(session, "CONFIDENTIAL")
    running = [flood(net, s) for s in loud]
    try:
        assert [p.wait(600) for p in running] == [0, 0, 0]
    finally:
        for p in running:
            base.reap(p)

    # each flood lost its own, and says how many and since when: with what is left it is all that there was
    for session in loud:
        def counted(session=session):
            answer = why(net, session)
            kept = sum(r["count"] for r in answer["refused"]) + answer["others"]
            gone = answer["not_kept"]
            return gone and kept + gone["refusals"] + answer["suppressed"] == FLOOD and answer
        answer = base.eventually(counted)
        assert answer, why(net, session)
        gone = answer["not_kept"]
        assert gone["refusals"] > 150 and gone["since"] <= gone["until"] <= answer["refused"][-1]["last"]
        assert f"{gone['refusals']:,} older refusals were not kept, from {gone['since'][:19]}Z to " in answer["text"]
        assert answer["text"] == net.daemon.cli("why", session, "--last", "50", check=0).stdout

        # the gap is told where a client pages over it, and only there
        got = api.events(session=session, limit=1000)
        assert got[0]["reason"] == "not_kept" and "seq" not in got[0] and got[0]["dropped"] == gone["refusals"]
        rest = got[1:]
        assert [e["seq"] for e in rest] == sorted(e["seq"] for e in rest)
        assert [e["reason"] for e in rest if e["kind"] == "change"][0] == "session_created"
        first = next(e for e in rest if e["kind"] == "refuse")
        assert first["seq"] > got[0]["until_seq"] and first["time"] > got[0]["time"] >= got[0]["since"]
        assert api.events(session=session, limit=1000, after=got[0]["until_seq"])[0]["seq"] == first["seq"]
        assert api.events(session=session, limit=5)[0]["seq"] == rest[-5]["seq"]
        assert "not_kept" in net.daemon.cli("events", "--session", session, "--limit", 1000, check=0).stdout

    # the other session has all it had: refusals, rises, its sandbox
    after = [e for e in api.events(session=quiet, limit=1000) if e["seq"] <= before[-1]["seq"]]
    assert after == before
    assert [e["level"] for e in after if e["reason"] == "raised"] == ["CONFIDENTIAL", "SECRET"]
    answer = why(net, quiet)
    assert answer["not_kept"] is None and len(answer["refused"]) == 2 and "not kept" not in answer["text"]

    # the journal of everything has moved on; that of changes has every change
    assert min(e["seq"] for e in journal(net, "events")) > before[-1]["seq"]
    changes = [e for e in before if e["kind"] == "change"]
    assert len(changes) >= 4 and changes == [e for e in journal(net, "changes") if e in changes]

    # the bounds hold on the disk, and survive a restart
    net.daemon.restart()
    db = sqlite3.connect(f"file:{net.daemon.state_dir}/events/events.db?mode=ro", uri=True)
    per = db.execute("SELECT session, class, sum(length(json)) FROM event GROUP BY 1, 2").fetchall()
    db.close()
    assert all(size <= SESSION for _, cls, size in per if cls != 0)
    assert sum(size for _, cls, size in per if cls != 0) <= TOTAL
    assert why(net, loud[0])["not_kept"]["refusals"] > 150
    assert [e for e in api.events(session=quiet, limit=1000) if e["seq"] <= before[-1]["seq"]] == before


VERSION_1 = """
CREATE TABLE event (seq INTEGER PRIMARY KEY, wall_us INTEGER NOT NULL, session TEXT, reason INTEGER NOT NULL, json TEXT NOT NULL);
CREATE INDEX event_session ON event (session, seq, reason);
CREATE INDEX event_reason ON event (reason);
PRAGMA application_id = 1852859766;
PRAGMA user_version = 1;
"""
ROWS = 200000  # as many as that version kept


def test_a_full_history_of_an_older_version(make_daemon):
    """It is taken over, and no longer a place where any session's refusal costs another's."""
    d = make_daemon()
    events, quiet, loud = d.state_dir / "events", new_session("quiet"), new_session("loud")
    events.mkdir(mode=0o750)
    db = sqlite3.connect(events / "events.db")
    db.executescript(VERSION_1)

    def row(seq, session, reason, token, kind):
        line = json.dumps({"seq": seq, "time": "2026-01-01T00:00:00.000000Z", "kind": kind, "reason": token,
                           "session": session, "mode": "NONE"}, separators=(",", ":")) + "\n"
        return seq, 1767225600000000 + seq, session, reason, line

    db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row(1, quiet, 128, "raised", "change"))
    db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row(2, quiet, 32, "mode_none", "refuse"))
    db.execute("WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
               "INSERT INTO event SELECT i, ?, ?, ?, ? FROM n", (ROWS, *row(3, loud, 32, "mode_none", "refuse")[1:]))
    db.commit()
    db.close()
    d.start()
    with Box(d, "NONE", session=loud) as box:
        for _ in range(20):
            assert box.try_("dial", family=4, addr=FAR[4], port=443) == "ECONNREFUSED"
        assert base.eventually(lambda: len([e for e in box.events(after=ROWS) if e["kind"] == "refuse"]) == 20)
        d.api.create(quiet, "SECRET")
        assert [e["reason"] for e in d.api.events(session=quiet, limit=1000)][:2] == ["raised", "mode_none"]
        assert len(d.api.events(session=quiet, reason="mode_none")) == 1
        assert d.api.ok("GET", f"/v1/sessions/{quiet}/why")["refused"] == [], "they are of an older session of that name"
        gone = base.eventually(lambda: [e for e in d.api.events(session=loud, limit=1000) if e["reason"] == "not_kept"])
        assert gone[0]["dropped"] > 1000
    assert not (events / "events.db.bad").exists()


@pytest.mark.parametrize("words,text", [
    (["--events-session", "10KiB"], "--events-session takes a size from 256KiB to 1024GiB"),
    (["--events-total", "much"], "--events-total takes a size"),
    (["--changes-total", "9999999GiB"], "--changes-total takes a size"),
    (["--journal-size", ""], "--journal-size takes a size"),
    (["--events-days", "-1"], "--events-days takes a number of days up to 36500"),
    (["--changes-days", "40000"], "--changes-days takes a number of days"),
])
def test_bad_settings_are_refused(words, text):
    p = subprocess.run([str(base.NETPAWLD), *words], capture_output=True, text=True, timeout=180)
    assert p.returncode == 2 and text in p.stderr


def test_a_database_that_is_locked_or_corrupt_is_called_that(make_daemon):
    """The person who reads the error has to know what to repair: "Input/output error" says nothing."""
    d = make_daemon().start()
    session, store = new_session("words"), d.state_dir / "sessions.db"
    d.api.create(session, "PUBLIC")
    db = sqlite3.connect(store, timeout=5, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    status, answer = d.api.ask("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
    assert status == 507 and answer["error"] == "not_recorded", answer
    assert "the database is locked by another process" in answer["detail"], answer
    db.execute("ROLLBACK")
    assert d.api.escalate(session, "SECRET")["mode"] == "NONE"
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    d.stop()
    whole = store.read_bytes()
    store.write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))
    with pytest.raises(NotReady, match="the database is corrupt"):
        d.start()
    store.write_bytes(whole)
    d.start()
    assert d.api.show(session)["level"] == "SECRET"
