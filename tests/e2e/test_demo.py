# SPDX-License-Identifier: MIT
"""make run: what a newcomer sees first is what is promised, and nothing is left of it."""
import pathlib
import re
import subprocess

from lib import base

SEEN = [
    r"an upload that was running +still sending",
    r"cloud metadata, \S+ +refused",
    r"1\s+open\s+connection\(s\)\s+cut",
    r"an upload that was running +refused",
    r"TCP to \S+ +got 'HTTP/1.1 403 Forbidden'",
    r"GET https://api.example.org/v1 +200 hello from the internet",
    r"POST https://api.example.org/v1 +403, and its body says:\n +netpawl refused this request",
    r"secret.evil.example +no such name",
    r"db.corp.example:5432 +got '1 row, from the warehouse'",
    r"GET https://api.example.org/v1 200 [^$]*? rule=\S+policy.yaml:3",
    r"\$ netpawl why demo/agent\n +Session demo/agent is at level CONFIDENTIAL",
    r"\$ netpawl notices demo/agent\n.*Notice from netpawl",
    r"3. The gate outlives the daemon.*\n +TCP to \S+ +refused",
    r"4. NONE(.|\n)*GET https://api.example.org/v1 +(refused|no such name)",
    r"stands at SECRET, mode NONE",
    r"names asked for: api.example.org, db.corp.example\n",
    r"6. All of this can be looked at in a browser: make run CONSOLE=1",
]


def test_the_demo():
    before = {p.name for p in base.cgroup_mount().iterdir()}
    p = subprocess.run([base.PYTHON, str(base.ROOT / "examples/demo.py")], capture_output=True, text=True, timeout=600,
                       env=base.env(NETPAWL_BUILD=str(base.BUILD)), cwd=base.ROOT, stdin=subprocess.DEVNULL)
    assert p.returncode == 0 and not p.stderr, p.stderr + p.stdout
    at = 0
    for pattern in SEEN:
        found = re.compile(pattern).search(p.stdout, at)
        assert found, f"{pattern!r} is not in, behind what came before:\n{p.stdout[at:]}"
        at = found.start() + 1
    assert len(p.stdout.splitlines()) < 80
    left = {p.name for p in base.cgroup_mount().iterdir() if p.name.startswith("npdemo")} - before
    assert not left and not [n for n in pathlib.Path("/run/netns").glob("npdemo*") if n.name in left]


def test_a_command_of_ones_own_reaches_the_little_internet_by_name():
    code = "import urllib.request as u; print(u.urlopen('http://api.example.org/', timeout=10).read().decode())"
    p = subprocess.run([base.PYTHON, str(base.ROOT / "examples/demo.py"), base.PYTHON, "-c", code], capture_output=True, text=True,
                       timeout=600, env=base.env(NETPAWL_BUILD=str(base.BUILD)), cwd=base.ROOT, stdin=subprocess.DEVNULL)
    assert p.returncode == 0 and "hello from the internet" in p.stdout, p.stdout + p.stderr
