# SPDX-License-Identifier: MIT
"""What netpawl run takes away beyond the network: system calls, the host's files, other sessions' files. Each with a control
outside, where it works."""
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from lib import base
from lib.box import new_session

USERS = pytest.mark.parametrize("user", ["root", "nobody"])
NEWUSER, NEWNET, NEWNS, NEWCGROUP, NEWPID = 0x10000000, 0x40000000, 0x00020000, 0x02000000, 0x20000000
CALLS = {
    "keyring": ("keyring", {}), "userfaultfd": ("faults", {}), "perf": ("perf", {}),
    "mount": ("mount_tmpfs", {"where": "/tmp"}), "fsopen": ("mount_new", {}), "open_tree": ("mount_clone", {}),
    "chroot": ("root_change", {"where": "/"}), "handle": ("handle", {"path": "/usr"}),
    "user namespace": ("namespaces", {"flag": NEWUSER}), "net namespace": ("namespaces", {"flag": NEWNET}),
    "mount namespace": ("namespaces", {"flag": NEWNS}), "cgroup namespace": ("namespaces", {"flag": NEWCGROUP}),
    "pid namespace": ("namespaces", {"flag": NEWPID}),
}


def outside(world, function, args):
    """In mount and uts namespaces of its own, for what a call does there stays there."""
    code = (f"import sys, json; sys.path.insert(0, {str(world.dir / 'payload')!r}); import calls; "
            f"print(calls.{function}(**json.loads(sys.argv[1]))['call'])")
    import json
    p = base.sh("unshare", "--mount", "--uts", base.PYTHON, "-c", code, json.dumps(args))
    return p.stdout.strip()


@USERS
@pytest.mark.parametrize("name", CALLS)
def test_calls(world, pool, name, user):
    function, args = CALLS[name]
    assert outside(world, function, args) == "ok", "the control"
    status, answer = pool("NONE", user).payload("calls", function, **args)
    assert status == 0 and answer["call"] != "ok", answer


@USERS
def test_devices(world, pool, user):
    where = f"/tmp/np-test-dev-{base.token()}"
    assert outside(world, "device", {"where": where}) == "ok"
    os.unlink(where)
    _, answer = pool("NONE", user).payload("calls", "device", where=where + "x")
    assert answer["call"] != "ok" and not os.path.exists(where + "x")


@USERS
def test_the_hosts_name_is_the_hosts(world, pool, user):
    name = os.uname().nodename
    assert outside(world, "host_name", {}) == "ok"
    _, answer = pool("NONE", user).payload("calls", "host_name")
    assert answer["call"] != "ok" and os.uname().nodename == name


# -- files -------------------------------------------------------------------------------

def run(daemon, session, script, *options, check=0):
    return daemon.cli("run", "--session", session, *options, "--", "sh", "-c", script, check=check)


def test_root_inside_is_not_the_hosts_root(daemon):
    """Root's own files (keys, password hashes) are read by whoever has root's number, capabilities or not."""
    reads = "for f in $(find {0} -xdev -type f ! -perm -o=r 2>/dev/null); do head -c1 $f >/dev/null 2>&1 && echo $f; done; true"
    assert base.sh("sh", "-c", reads.format("/etc")).stdout, "the control: on the host there are some"
    folder = base.tempdir("secrets")
    try:
        folder.chmod(0o755)
        for name, mode in (("owner", 0o600), ("group", 0o640)):
            (folder / name).write_text("secret")
            (folder / name).chmod(mode)
        for user in ("root", "0:0", "4242:0", "0:4242"):
            got = daemon.cli("run", "--isolation", "none", "--user", user, "--", "cat", folder / "group", check=0).stdout
            assert got == "secret", "the control: without isolation it is the number that counts"
            script = f"id -u; id -g; cat {folder}/owner {folder}/group; {reads.format('/etc')}; {reads.format('/usr')}"
            p = daemon.cli("run", "--user", user, *base.shown(), "--", "sh", "-c", script, check=0)
            ids = {"root": "0 0"}.get(user, user.replace(":", " ")).split()
            assert p.stdout.split() == ids and p.stderr.count("Permission denied") == 2, (user, p)
    finally:
        base.drop_tempdir(folder)


def test_root_inside_works_in_its_own_places(daemon):
    """What it makes is its own: the session's user outside, whoever it was inside."""
    session = new_session("root")
    run(daemon, session, "touch /run/x /tmp/x /dev/shm/x && echo 1 > a && chmod 600 a", "--user", "root")
    made = daemon.state_dir / "data" / session / "a"
    assert made.stat().st_uid == made.parent.stat().st_uid == made.stat().st_gid
    assert run(daemon, session, "cat a && stat -c %u a", "--user", "root").stdout == "1\n0\n"
    assert run(daemon, session, "cat a").stdout == "1\n"


def test_set_user_id_programs_in_the_workspace(world, daemon):
    """One sandbox runs as root and leaves such a program for the next, and for the host."""
    session = new_session("suid")
    run(daemon, session, "cp /usr/bin/id x && chmod 4755 x && ls -ln x", "--user", "root")
    program = daemon.state_dir / "data" / session / "x"
    assert program.stat().st_mode & stat.S_ISUID and program.stat().st_uid >= 2100000000, "root inside is nobody outside"
    os.chown(program, 0, 0)  # as if it were, after all
    os.chmod(program, 0o4755)
    folder = base.tempdir("suid")
    try:
        shutil.copy(program, folder / "x")
        os.chmod(folder / "x", 0o4755)
        # env: setpriv still has root's capabilities when it looks for its program
        user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "env"]
        assert "euid=0" in base.sh(*user, folder / "x").stdout, "the control"
        assert "euid=0" not in run(daemon, session, "./x").stdout
        # and an ordinary user of the host does not even get there
        assert base.sh(*user, program, check=False).returncode != 0
    finally:
        base.drop_tempdir(folder)


def test_links_in_the_workspace_lead_nowhere_else(daemon):
    """A link that a sandbox leaves is a link in the sandbox's own world. The control reads it on the host."""
    session, secret = new_session("links"), base.token()
    host = pathlib.Path("/var/lib") / base.unique("secret")
    host.write_text(secret)
    try:
        run(daemon, session, f"ln -s {host} s; ln -s ../../../../../../../..{host} r; ln -s /proc/1/root{host} p")
        folder = daemon.state_dir / "data" / session
        assert (folder / "s").read_text() == secret, "the control"
        for name in ("s", "r", "p"):
            got = run(daemon, session, f"cat {name}; echo > {name}", "--user", "root", check=None)
            assert secret not in got.stdout and host.read_text() == secret, name
            assert daemon.cli("path", session, f"/workspace/{name}").returncode == 1
    finally:
        host.unlink()


def test_a_workspace_does_not_move_while_it_is_mounted(daemon):
    """A sandbox owns its workspace, but not its name: it cannot put a link in its place for the next run."""
    session = new_session("moved")
    got = run(daemon, session, "mv /workspace /workspace2 2>&1; rmdir /workspace 2>&1; ln -sfn /etc /workspace 2>&1; ls -ld /workspace; "
              "chmod 0000 /workspace 2>&1; true")
    folder = daemon.state_dir / "data" / session
    assert folder.is_dir() and not folder.is_symlink()
    folder.chmod(0o777)
    assert run(daemon, session, "stat -c %F /workspace").stdout == "directory\n", got


@pytest.mark.parametrize("user", [None, "root", "nobody"])
def test_no_way_to_other_workspaces(daemon, user):
    """By the host's path, by /proc of process 1, by an upward path, with the host's files in sight."""
    mine, other, mark = new_session("mine"), new_session("other"), base.token()
    run(daemon, other, f"echo {mark} > secret; chmod 644 secret")
    path = daemon.state_dir / "data" / other / "secret"
    assert path.read_text().strip() == mark, "the control"
    options = ["--user", user] if user else []
    script = f"""for p in {path} /proc/1/root{path} /workspace/../..{path} /workspace/../../{other}/secret /proc/self/cwd/..{path}; do
                 cat $p 2>/dev/null; done; find / -xdev -name secret 2>/dev/null; mount 2>/dev/null | grep -c {other}; true"""
    assert run(daemon, mine, script, *options).stdout.strip() in ("", "0")
    assert run(daemon, mine, script, *options, *base.shown()).stdout.strip() in ("", "0")


def test_process_1_gives_nothing(daemon):
    """Neither its memory, its files nor its root, and it does not die from the inside."""
    got = daemon.cli("run", "--", "sh", "-c", "ls /proc/1/fd /proc/1/root/ 2>/dev/null; cat /proc/1/environ /proc/1/mem 2>/dev/null; "
                     "kill -9 1; kill -TERM 1; kill -STOP 1; sleep 0.2; echo alive", check=0)
    assert got.stdout == "alive\n"


def test_nothing_of_the_launcher_comes_along(daemon):
    """netpawl-init has files open that are not the command's."""
    got = daemon.cli("run", "--", base.PYTHON, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))", check=0)
    assert got.stdout == "['0', '1', '2', '3']\n"  # 3 is the directory itself


def test_abstract_sockets_and_signals_end_at_the_sandbox(world, daemon):
    """The host's processes have numbers that mean nothing inside."""
    pid = world.outside.process.pid
    got = daemon.cli("run", "--user", "root", "--", "sh", "-c", f"kill -0 {pid} 2>&1; ls -d /proc/{pid} 2>&1; true")
    assert "No such process" in got.stdout and "No such file" in got.stdout
    assert subprocess.run(["kill", "-0", str(pid)]).returncode == 0, "the control"
