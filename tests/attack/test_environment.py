# SPDX-License-Identifier: MIT
"""A secret in the environment of whoever starts a sandbox is nowhere in it, unless it was named. The control: --env-all."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from lib import base
from lib.box import new_session

SECRET = "sk-0123456789-do-not-leak"
HOLD = "echo up; read line"  # with a second process, which is not the command itself


def processes(daemon, sandbox):
    """Every process of the sandbox's cgroup, as the host sees them: process 1 among them."""
    pids = base.cgroup_pids(daemon.slice / sandbox)
    return {int(pid): pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}


def environ(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")


def start(daemon, *options, way=(), command=("sh", "-c", f"sh -c '{HOLD}'; true")):
    session = new_session("env")
    p = subprocess.Popen([*daemon.world.enter(), str(base.NETPAWL), "run", "--session", session, *way, *options, "--", *command],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=base.env(NETPAWL_SOCKET=str(daemon.socket), PLATFORM_API_KEY=SECRET))
    assert p.stdout.readline() == "up\n"
    return p, daemon.api.sandboxes(session)[0]["sandbox"]


WAYS = {"isolated": (), "kept": ("--keep",), "not isolated": ("--isolation", "none")}


@pytest.mark.parametrize("way", WAYS)
def test_no_process_of_the_sandbox_has_it(daemon, way):
    p, sandbox = start(daemon, way=WAYS[way])
    try:
        comms = processes(daemon, sandbox)
        assert len(comms) == 3, comms  # process 1, and two shells
        for pid, comm in comms.items():
            assert SECRET not in "\0".join(environ(pid)), comm
    finally:
        p.communicate("\n", timeout=120)
    p, sandbox = start(daemon, "--env-all", way=WAYS[way])
    try:
        assert [pid for pid in processes(daemon, sandbox) if f"PLATFORM_API_KEY={SECRET}" in environ(pid)], "the control"
    finally:
        p.communicate("\n", timeout=120)


def test_nothing_inside_finds_it(daemon):
    """All that its own /proc and its own memory show, as root of the sandbox."""
    look = ("import glob, os, sys\nneedle = sys.stdin.readline().strip().encode()[::-1]\nfound = []\n"
            "for name in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/fd/*'):\n"
            " try:\n  if name.split('/')[3] == 'fd' and name.rsplit('/', 1)[1] in ('0', '1', '2'): continue\n"
            "  if needle in open(name, 'rb').read(1 << 20): found.append(name)\n except OSError: pass\n"
            "print(found)")
    for options, wanted in (((), False), (("--env-all",), True)):
        p = subprocess.run([*daemon.world.enter(), str(base.NETPAWL), "run", "--user", "root", *options, "--", base.PYTHON, "-c", look],
                           input=SECRET[::-1] + "\n", capture_output=True, text=True, timeout=180,
                           env=base.env(NETPAWL_SOCKET=str(daemon.socket), PLATFORM_API_KEY=SECRET))
        assert p.returncode == 0, p.stderr
        assert ("environ" in p.stdout) == wanted, p.stdout


def test_the_python_client_keeps_it(daemon):
    """Neither the default nor env={...} hands it over, and what env names is on nobody's command line and not root's."""
    code = """
import json, sys, netpawl
box = netpawl.Session(*sys.argv[1].split("/")).sandbox()
plain = box.run(["env"]).stdout
added = box.run(["env"], env={"AGENT_KEY": "a b\\nc", "LD_PRELOAD": "/no/such.so"})
whole = box.run(["env"], env_all=True).stdout
print(json.dumps([plain, added.stdout, added.stderr, whole]))
"""
    env = base.env(NETPAWL_SOCKET=str(daemon.socket), PYTHONPATH=str(base.ROOT / "clients" / "python"), PLATFORM_API_KEY=SECRET,
                   PATH=f"{base.NETPAWL.parent}:{os.environ['PATH']}")
    p = subprocess.run([*daemon.world.enter(), sys.executable, "-c", code, new_session("env")], capture_output=True, text=True,
                       timeout=180, env=env, cwd="/")
    assert p.returncode == 0, p.stderr
    plain, added, words, whole = json.loads(p.stdout)
    assert SECRET not in plain + added and SECRET in whole
    assert "AGENT_KEY=a b\nc\n" in added
    # the preload is the command's alone: netpawl itself, which is root, would have complained of it on its own stderr
    assert "LD_PRELOAD=/no/such.so" in added and words.count("/no/such.so") == 1
