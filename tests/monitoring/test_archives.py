# SPDX-License-Identifier: MIT
"""A long history as an archive: nobody holds it in memory. NETPAWL_HISTORY_MB (200) says how long."""
import contextlib
import json
import os
import pty
import re
import sqlite3
import subprocess
import time

import pytest

from lib import base
from lib.daemon import Daemon

MB = int(os.environ.get("NETPAWL_HISTORY_MB", "200"))
ROW = 2000  # bytes of an event, about


def fill(path, megabytes):
    """Requests, as the daemon would have written them, behind the events that are there."""
    db = sqlite3.connect(path)
    last = db.execute("select coalesce(max(seq), 0) from event").fetchone()[0]
    reason, code = "rule_allows", db.execute("select count(*) from event").fetchone()[0]
    code = int(re.search(r"X\(RULE_ALLOWS, (\d+),", (base.TESTS.parent / "include/reason.h").read_text())[1])
    now, n = int(time.time() * 1e6), megabytes * 1000000 // ROW
    body = "x" * (ROW - 420)

    def rows():
        for i in range(n):
            seq, us = last + 1 + i, now + i
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(us // 1000000)) + ".%06dZ" % (us % 1000000)
            line = json.dumps({"seq": seq, "time": at, "kind": "allow", "reason": reason, "session": "many/requests", "sandbox": "s1", "mode": "PROXIED",
                               "level": "INTERNAL", "generation": 3, "method": "GET", "url": f"https://origin.test/{i}?q={i % 97}", "status": 200, "sent": 0,
                               "received": len(body), "wait_us": 1000, "receive_us": 10, "response_headers": "content-type: text/plain\r\n",
                               "response_body": body, "message": "a rule of the policy allows it"}, separators=(",", ":")) + "\n"
            yield seq, us, "many/requests", code, 2, 1, len(line), line

    with db:
        db.executemany("insert into event values (?, ?, ?, ?, ?, ?, ?, ?)", rows())
        db.execute("insert or replace into account (session, class, bytes) values ('many/requests', 2, ?)", (n * ROW,))
    db.close()
    return n


def har(daemon, **kw):
    """(exit code, entries, bytes, KiB of its memory at the most)"""
    p = base.popen([str(base.NETPAWL), "har", "--socket", str(daemon.socket)], stdout=subprocess.PIPE, **kw)
    entries = size = 0
    for line in p.stdout:
        entries += line.count(b'"startedDateTime"')
        size += len(line)
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    base.reap(p)
    return p.returncode, entries, size, used.ru_maxrss


@pytest.fixture
def made(world):
    d = Daemon(world, more=["--events-session", "64GiB", "--events-total", "64GiB"])
    with contextlib.closing(d):
        d.start()
        yield d


def test_a_long_archive_is_not_held_in_memory(made):
    memory = lambda: int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{made.process.pid}/status").read())[1])
    peaks = {}
    total = 0
    for megabytes in (20, MB):
        made.stop()
        total += fill(made.state_dir / "events/events.db", megabytes)
        made.start()
        code, entries, size, peak = har(made, stderr=subprocess.DEVNULL)
        assert code == 0 and entries == total and size > total * ROW
        peaks[megabytes] = peak, memory()
        print(f"{size / 1e6:.0f} MB of archive: netpawl har had {peak / 1024:.0f} MiB at the most, netpawld {memory() / 1024:.0f}")
    small, large = peaks[20], peaks[MB]
    assert large[0] < small[0] + 4096 and large[1] < small[1] + 65536, peaks


def test_it_shows_that_it_goes_on(made):
    """On a terminal a line that is written anew; in a pipe no sign of it."""
    made.stop()
    n = fill(made.state_dir / "events/events.db", 40)
    made.start()
    main, side = pty.openpty()
    code, entries, _, _ = har(made, stderr=side)
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(main, 65536):
            shown += chunk
    os.close(main)
    counts = [int(c) for c in re.findall(rb"events read (\d+)", shown)]
    assert code == 0 and entries == n and counts and counts == sorted(counts) and b"\r" in shown, shown[-500:]
    piped = subprocess.run([str(base.NETPAWL), "har", "--socket", str(made.socket)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    assert b"\r" not in piped.stderr and b"\x1b" not in piped.stderr
