# SPDX-License-Identifier: MIT
"""What of the host a sandbox comes to see by mounts: directories that are to be hidden, under another name; mounts that the host
makes later; names of a --bind that are exchanged while it is looked at."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from lib import base
from lib.box import new_session
from lib.daemon import Daemon


@pytest.mark.parametrize("way", ["real", "link"])
def test_the_data_directory_is_hidden_by_whatever_name_it_was_given(world, way):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=base.PREFIX + "-hidden-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    daemon = Daemon(world, more=["--data-dir", str(folder / way / "data")])
    daemon.policy.write_text(f"version: 1\nsandbox:\n  binds: [{folder}/real]\n")
    try:
        daemon.start()
        victim = new_session("victim")
        daemon.cli("run", "--session", victim, "--", "sh", "-c", "umask 022; echo hunter2 > /workspace/secret", check=0)
        assert (folder / "real/data" / victim / "secret").exists()
        (folder / "real/plain").mkdir()
        p = daemon.cli("run", "--session", new_session("other"), "--bind", f"{folder}/real/plain:/x", "--", "ls", "/x")
        assert p.returncode == 0, f"the control: {p.stderr}"
        p = daemon.cli("run", "--session", new_session("other"), "--bind", f"{folder}/real/data/{victim}:/x", "--", "cat", "/x/secret")
        assert p.returncode == 125 and "hunter2" not in p.stdout and "never to be seen" in p.stderr, (p.stdout, p.stderr)
    finally:
        daemon.close()
        shutil.rmtree(folder)


# A /opt of its own, as shared as systemd has it, and mounts of the host below it: $1 says when, before or after the start.
LATE = r'''
set -e
mount -t tmpfs tmpfs /opt
mount --make-shared /opt
mkdir /opt/data /opt/proc
late() { mount -t tmpfs -o mode=1777 tmpfs /opt/data; echo host > /opt/data/file; mount -t proc proc /opt/proc; }
[ "$1" = after ] || late
mkfifo "$3/in"
"$NP" run --session "$2" -- sh -c 'echo up; read x; cat /opt/data/file; echo x > /opt/data/new && echo wrote
    ls /opt/proc/self && echo window; echo end' <"$3/in" >"$3/out" 2>&1 &
exec 5>"$3/in"
for i in $(seq 200); do grep -q up "$3/out" 2>/dev/null && break; sleep 0.1; done
[ "$1" = before ] || late
echo go >&5
exec 5>&-
wait
cat "$3/out"
'''


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_the_host_mounts_is_neither_written_nor_a_window(daemon, tmp_path, when):
    p = subprocess.run([*daemon.world.enter(), "unshare", "-m", "--propagation", "private", "bash", "-c", LATE, "x", when,
                        new_session("late"), tmp_path], capture_output=True, text=True, timeout=180,
                       env=base.env(NETPAWL_SOCKET=str(daemon.socket), NP=str(base.NETPAWL)))
    lines = p.stdout.splitlines()
    assert "up" in lines and "end" in lines, (p.stdout, p.stderr)
    assert ("host" in lines) == (when == "before"), "what was there is shown; what came later is not"
    assert "wrote" not in lines and "window" not in lines, p.stdout


EXCHANGE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
end = time.monotonic() + 20
print("up", flush=True)
while time.monotonic() < end and not os.path.exists("stop"):
    libc.renameat2(-100, b"x", -100, b"y", 2)
"""


def test_a_name_that_is_exchanged_while_it_is_looked_at(world, make_daemon, tmp_path):
    """x is a directory that the policy permits, or a link to one that it does not: whoever may write around it may exchange
    them between any two looks."""
    shared, secret = tmp_path / "shared", tmp_path / "secret"
    for folder in (shared, secret, shared / "x"):
        folder.mkdir()
    (secret / "file").write_text("hunter2")
    (shared / "y").symlink_to(secret)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    d = make_daemon()
    d.policy.write_text(f"version: 1\nsandbox:\n  binds: [{shared}]\n")
    d.start()
    look = ["run", "--session", new_session("swap"), "--bind", f"{shared}/x:/mnt:ro", "--", "cat", "/mnt/file"]
    p = subprocess.Popen([base.PYTHON, "-c", EXCHANGE], cwd=shared, stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        got = [d.cli(*look) for _ in range(60)]
    finally:
        (shared / "stop").touch()
        base.reap(p)
    assert not [g for g in got if "hunter2" in g.stdout]
    assert [g for g in got if g.returncode == 1], "some of them saw the directory that is permitted, which has no such file"
    assert "does not permit" in "".join(g.stderr for g in got), "and some met the link"
