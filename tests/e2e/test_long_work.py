# SPDX-License-Identifier: MIT
"""Long work shows how far it is: on a terminal a line that is written anew, in a pipe plain lines."""
import contextlib
import os
import pty
import re
import subprocess

import pytest

from lib import base


def on_terminal(argv, **kw):
    """(exit code, what a terminal got)"""
    main, side = pty.openpty()
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=side, stderr=side, **kw)
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(main, 65536):
            shown += chunk
    os.close(main)
    return p.wait(120), shown.decode()


@pytest.fixture
def programs(tmp_path):
    """Four of them, as cmocka's are: one fails."""
    for i in range(4):
        path = tmp_path / f"program{i}"
        path.write_text(f"#!/bin/sh\necho '[  {'FAILED' if i == 2 else 'PASSED'}  ] 1 test(s).'\nexit {int(i == 2)}\n")
        path.chmod(0o755)
    return [str(tmp_path / f"program{i}") for i in range(4)], {**os.environ, "NETPAWL_BUILD": str(tmp_path)}


def test_tests_are_counted_on_a_terminal(programs):
    argv, env = programs
    code, shown = on_terminal([base.PYTHON, str(base.TESTS / "run.py"), "--", *argv], env=env)
    assert code == 1 and "[####################] 4/4 files, 1 failed, 0:0" in shown and "[....................] 0/4 files" in shown
    last = shown.replace("\r\n", "\n").rstrip("\n").split("\n")[-1]
    assert re.search(r"3 passed|1 failed", last) and "files" not in last.split("\x1b[K")[-1], "the counter is gone at the end"


def test_and_are_plain_lines_in_a_pipe(programs):
    argv, env = programs
    p = subprocess.run([base.PYTHON, str(base.TESTS / "run.py"), "--", *argv], capture_output=True, text=True, env=env, timeout=120)
    assert p.returncode == 1 and "\r" not in p.stdout and "\x1b" not in p.stdout and "4/4" not in p.stdout
    assert len(re.findall(r"^  (?:ok  |FAIL)  ", p.stdout, re.M)) == 4


def test_thousands_of_cases(tmp_path):
    """netpawl policy test: a bar on a terminal that goes to its end and away, nothing of it in a pipe."""
    rules = "".join(f"      - allow: '*.h{i}.example.com'\n" for i in range(500))
    lines = "".join(f"GET https://x{i}.example.org/ -> deny\n" for i in range(15000))
    (tmp_path / "many.case").write_text(f"policy:\n    version: 1\n    rules:\n{rules}\n{lines}")
    (tmp_path / "fails.case").write_text("policy:\n    version: 1\nGET https://a.example.org/ -> allow\n")
    argv = [str(base.NETPAWL), "policy", "test", *[str(tmp_path / "many.case")] * 39, str(tmp_path / "fails.case"), str(tmp_path / "many.case")]
    piped = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert "\r" not in piped.stdout + piped.stderr and "\x1b" not in piped.stdout + piped.stderr, piped.stderr[:500]
    code, shown = on_terminal(argv, env={**os.environ, "TERM": "xterm"})
    assert code == piped.returncode == 1, (shown[-500:], piped.stdout[-500:])
    counts = [int(n) for n in re.findall(r"\r\x1b\[Kcases (\d+)/\d+ \d+% \[[#.]{20}\]", shown)]
    assert counts and counts == sorted(counts), "one count over all of the files"
    # What else is written has a line of its own, and the bar is gone at the end.
    lines = [line.split("\r\x1b[K")[-1] for line in shown.replace("\r\n", "\n").rstrip("\n").split("\n")]
    assert any(re.match(r"\S+fails.case:3: FAILS: GET", line) for line in lines) and lines[-1] == "600001 cases, 1 failed", lines[-6:]
    assert [line for line in lines if line] == piped.stdout.splitlines()
