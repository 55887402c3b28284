# SPDX-License-Identifier: MIT
"""netpawl run as a sandbox: what is seen in it, its workspace, its limits, its result. What it takes from the network is
in other files; streams, signals and exit codes are in test_cli.py."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib import base
from lib.box import new_session

HYBRID = "memory" not in (base.cgroup_mount() / "cgroup.controllers").read_text().split()


def run(daemon, *words, check=0, **kw):
    return daemon.cli("run", *words, check=check, **kw)


def result(daemon, *words, code=0, **kw):
    return json.loads(run(daemon, "--json", *words, check=code, **kw).stdout)


def inside(daemon, script, *options, **kw):
    return run(daemon, *options, "--", "sh", "-c", script, **kw).stdout


def python(code):
    return ["--", base.PYTHON, "-I", "-c", code]


# -- what is seen -------------------------------------------------------------------------

def test_only_the_system_and_the_workspace(daemon):
    got = inside(daemon, "ls -A / /tmp /var/tmp /run /dev/shm /workspace; echo; ls -A /home /root /srv 2>&1 || true")
    roots = set(got.split("\n\n")[0].split()[1:])
    assert {"usr", "etc", "proc", "dev", "tmp", "run", "workspace"} <= roots
    assert not roots & {"home", "root", "srv", "boot", "mnt", "media"}
    assert got.count("No such file") == 3, got
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/workspace"):
        assert f"{folder}:\n" in got and not got.split(f"{folder}:\n")[1].split("\n")[0], folder
    assert "/run:\nnetpawl\n\n" in got  # the notices


def test_of_var_what_programs_read(daemon):
    """What is installed and what packages made, and nothing of services or caches."""
    got = inside(daemon, "cd /var && find . -maxdepth 2 | sort; touch lib/x lib/dpkg/x 2>/dev/null && echo wrote; test -r lib/dpkg/status && echo status")
    want = {f"./lib/{name}" for name in ("dpkg", "texmf", "ghc", "aspell") if pathlib.Path("/var/lib", name).is_dir()}
    assert {line for line in got.split() if line.startswith("./lib/")} == want and "wrote" not in got
    assert ("status" in got.split()) == pathlib.Path("/var/lib/dpkg/status").exists()
    assert {line for line in got.split() if line.count("/") == 1} <= {"./lib", "./run", "./tmp"}


def test_the_system_is_read_only(daemon):
    for user in ("root", "nobody"):
        got = run(daemon, "--user", user, "--", "sh", "-c", "for d in / /usr /etc /usr/local/bin /sys /proc/sys; do "
                  "touch $d/np-test-x 2>/dev/null && echo wrote $d; done; true").stdout
        assert got == ""


def test_private_places_are_private(daemon):
    """/tmp of one sandbox is not that of another, nor the host's; they can be written by who runs there."""
    name = "np-test-" + base.token()
    inside(daemon, f"for d in /tmp /var/tmp /dev/shm /workspace; do echo x > $d/{name} || exit 1; done")
    assert not pathlib.Path("/tmp", name).exists()
    assert inside(daemon, f"ls /tmp/{name} /workspace/{name} 2>/dev/null || true") == ""


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_no_sandbox_in_a_sandbox(daemon, user):
    """As docs/sandbox.md says; a process of its own is traced all the same."""
    for words in (["-U"], ["-n"], ["-m"], ["-p", "-f"], ["-C"]):
        assert "Operation not permitted" in run(daemon, "--user", user, "--", "unshare", *words, "true", check=1).stderr
    assert run(daemon, "--user", user, *python("import ctypes, os, signal, sys\nlibc = ctypes.CDLL(None)\npid = os.fork()\n"
               "if not pid: libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP); os._exit(7)\n"
               "print(os.WIFSTOPPED(os.waitpid(pid, 0)[1])); libc.ptrace(17, pid, 0, 0)")).stdout == "True\n"


def test_no_host_sockets_in_sight(daemon):
    """Sockets of the host's services are files: there is none. The control sees the daemon's own."""
    script = "find / -xdev -type s 2>/dev/null; find /run /tmp /var -type s 2>/dev/null; true"
    assert inside(daemon, script) == ""
    assert str(daemon.socket) in base.sh("find", "/tmp", "-maxdepth", "3", "-type", "s", check=False).stdout


def test_namespaces(daemon):
    """All of its own but the net, which is the gate's."""
    kinds = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"]
    got = inside(daemon, "for n in " + " ".join(kinds) + "; do readlink /proc/self/ns/$n; done").split()
    ours = [base.sh(*daemon.world.enter(), "readlink", f"/proc/self/ns/{k}").stdout.strip() for k in kinds]
    assert [a == b for a, b in zip(got, ours)] == [False] * 6 + [True]
    assert inside(daemon, "hostname") == "localhost\n"
    assert set(inside(daemon, "ps -eo pid=").split()) <= {"1", "2", "3"}


@pytest.mark.parametrize("user", [None, "root", "nobody"])
def test_no_capability(daemon, user):
    options = ["--user", user] if user else []
    got = inside(daemon, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status /proc/1/status", *options)
    caps = [line.split()[1] for line in got.splitlines() if ":Cap" in line]
    assert len(caps) == 10 and set(caps) == {"0" * 16}
    assert got.count("NoNewPrivs:\t1") == 2 and got.count("Seccomp:\t2") == 2


def test_a_user_of_its_own(daemon):
    """One for each session, the same for all of its sandboxes, never an ordinary one."""
    one, two = new_session("uid"), new_session("uid")
    uids = [inside(daemon, "id -u; id -g; id -G", "--session", s).split() for s in (one, one, two)]
    assert all(len(set(u)) == 1 and 2100000000 <= int(u[0]) < 2100000000 + (1 << 20) for u in uids)
    assert uids[0] == uids[1] != uids[2]
    alone = [inside(daemon, "id -u").strip() for _ in range(2)]
    assert not {*alone} & {uids[0][0], uids[2][0]}


def test_the_user_has_a_name(daemon):
    """And only inside."""
    got = inside(daemon, "whoami; id -gn; echo $USER $HOME; getent passwd sandbox; grep -c . /etc/passwd", "--session", new_session("name"))
    name, group, env, entry, lines = got.splitlines()
    assert (name, group, env) == ("sandbox", "sandbox", "sandbox /workspace") and entry.endswith(":/workspace:/bin/sh")
    here = pathlib.Path("/etc/passwd").read_text()
    assert int(lines) == len(here.splitlines()) + 1 and "2100000" not in here


def test_two_without_a_session_are_two_users(daemon):
    ps = [base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--", "sh", "-c", "id -u; cat"], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(daemon.socket))) for _ in range(4)]
    try:
        assert len({p.stdout.readline() for p in ps}) == 4
    finally:
        for p in ps:
            p.stdin.close()
            base.reap(p)


def test_users_survive_a_restart(make_daemon):
    """A sandbox lives on without the daemon; the next one gives its user to nobody else."""
    d = make_daemon().start()
    p = base.popen([*d.world.enter(), base.NETPAWL, "run", "--", "sh", "-c", "id -u; cat"], stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(d.socket)))
    try:
        uid = p.stdout.readline().strip().decode()
        d.restart("kill")
        cgroup = d.api.sandboxes()[0]["cgroup"]
        assert os.getxattr(cgroup, "trusted.netpawl.uid").decode() == uid
        assert uid not in {inside(d, "id -u").strip() for _ in range(3)}
    finally:
        p.stdin.close()
        base.reap(p)


# -- binds ----------------------------------------------------------------------------------

@pytest.fixture
def shared():
    folder = base.tempdir("shared")
    folder.chmod(0o777)
    (folder / "file").write_text("words\n")
    yield folder
    base.drop_tempdir(folder)


def test_bind(daemon, shared):
    assert inside(daemon, "cat /data/file; echo more > /data/new", "--bind", f"{shared}:/data") == "words\n"
    assert (shared / "new").read_text() == "more\n"
    p = run(daemon, "--bind", f"{shared}:/data:ro", "--", "sh", "-c", "cat /data/file; echo x > /data/file", check=None)
    assert p.returncode != 0 and p.stdout == "words\n" and "Read-only" in p.stderr
    assert inside(daemon, "ls -d /data 2>/dev/null || echo none") == "none\n"


@pytest.mark.parametrize("bind", ["/etc:/data", "/root:/data:ro", "/:/data:ro", "/var/lib:/data", "/tmp/../etc:/data:ro"])
def test_bind_needs_a_permit(daemon, bind):
    """The policy permits /tmp, and /var/lib for reading."""
    p = run(daemon, "--bind", bind, "--", "true", check=125)
    assert "--bind" in p.stderr and ("permit" in p.stderr or "dots" in p.stderr)


def test_bind_judges_where_links_lead(daemon, shared):
    (shared / "link").symlink_to("/etc")
    p = run(daemon, "--bind", f"{shared}/link:/data:ro", "--", "true", check=125)
    assert f"does not permit {shared}/link" in p.stderr and "/etc" not in p.stderr
    (shared / "good").symlink_to(shared)
    assert inside(daemon, "cat /data/file", "--bind", f"{shared}/good:/data:ro") == "words\n"


@pytest.mark.parametrize("what", ["run_dir", "state_dir", "pin_dir"])
def test_the_daemons_own_is_never_shown(make_daemon, what):
    """Its directories are below others here, which the policy permits."""
    d = make_daemon()
    d.policy.write_text(f"version: 1\nsandbox:\n  binds: [/tmp, {d.pin_home}]\n")
    d.start()
    path, top = getattr(d, what), d.pin_home if what == "pin_dir" else "/tmp"
    assert list(path.iterdir()), "the control: it has files"
    assert run(d, "--user", "root", "--bind", f"{top}:/host", "--", "sh", "-c",
               f"ls -A /host/{path.relative_to(top)} 2>/dev/null || true").stdout == ""
    assert "never to be seen" in run(d, "--bind", f"{path}:/data", "--", "true", check=125).stderr


def test_what_is_mounted_later_is_not_seen(daemon, shared):
    """On most hosts mounts are shared: one that comes later, below what a sandbox was shown, would come in as well."""
    (shared / "window").mkdir()
    wait = "touch /data/in; for i in $(seq 500); do [ -e /data/go ] && break; sleep 0.02; done; ls /data/window"
    script = ["mount --make-rshared /", f"(for i in $(seq 500); do [ -e {shared}/in ] && break; sleep 0.02; done",
              f"mount --bind /proc {shared}/window", f"touch {shared}/go) &",
              f"{base.NETPAWL} run --bind {shared}:/data -- sh -c '{wait}'", f"echo outside: $(ls {shared}/window)"]
    p = base.sh("unshare", "--mount", *daemon.world.enter(), "sh", "-ec", "\n".join(script), timeout=60,
                env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    inside_it, outside = p.stdout.split("outside:")
    assert "cmdline" in outside.split(), "the control"
    assert inside_it == "", inside_it


@pytest.mark.parametrize("bind", ["x", "/tmp", "/tmp:", "tmp:/data", "/tmp:data", "/tmp:/data:rw", "/tmp:/data:ro:x"])
def test_bad_binds_are_wrong_usage(daemon, bind):
    assert "bind" in run(daemon, "--bind", bind, "--", "true", check=2).stderr


@pytest.mark.parametrize("dest", ["/", "/proc/x", "/dev", "/workspace/x", "/run/netpawl", "/a/../b"])
def test_places_that_are_taken(daemon, shared, dest):
    assert dest in run(daemon, "--bind", f"{shared}:{dest}", "--", "true", check=125).stderr


# -- a host that changes while a sandbox is made ------------------------------------------------

class Between:
    """A control socket in front of the daemon's. It says that there are inspectors; so netpawl asks it for a CA, after its look at
    the host's mounts and before it makes the sandbox. That is when change(n) is called, with n from 1 on."""

    def __init__(self, daemon, change):
        self.daemon, self.change, self.asked = daemon, change, 0
        self.folder = base.tempdir("between")
        self.path = self.folder / "control.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(120)
        self.listener.close()
        base.drop_tempdir(self.folder)

    def serve(self):
        with contextlib.suppress(OSError):  # the listener's end
            while True:
                with self.listener.accept()[0] as client:
                    client.sendall(self.answer(self.read(client)))

    @staticmethod
    def read(client):
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(65536)
        head, body = request.split(b"\r\n\r\n", 1)
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        while len(body) < length:
            body += client.recv(65536)
        return head + b"\r\n\r\n" + body

    def answer(self, request):
        if b"/ca HTTP" in request.split(b"\r\n")[0]:
            self.asked += 1
            self.change(self.asked)
            return b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
        got = b""
        with socket.socket(socket.AF_UNIX) as real:
            real.connect(str(self.daemon.socket))
            real.sendall(request)
            while more := real.recv(65536):
                got += more
        head, body = got.split(b"\r\n\r\n", 1)
        body = body.replace(b'"inspectors":0', b'"inspectors":1')  # as long as before
        return head + b"\r\n\r\n" + body

    def run(self, *words, check=0, **kw):
        return run(self.daemon, *words, check=check, env={"NETPAWL_SOCKET": str(self.path)}, **kw)


def test_a_mount_that_goes_while_a_sandbox_is_made(daemon, shared):
    """It was to be covered, and is gone: another plan without it is as good, and what was to be read is not lost."""
    window = shared / "window"
    window.mkdir()
    base.sh("mount", "-t", "mqueue", "none", window)

    def change(n):
        if n == 1:
            base.sh("umount", window)
            window.rmdir()

    with Between(daemon, change) as between:
        p = between.run("--bind", f"{shared}:/data:ro", "--", "cat", "/data/file", "-", input="more\n")
        assert p.stdout == "words\nmore\n" and between.asked == 2


@pytest.mark.parametrize("source", ["/proc", "/sys", "cgroup", "/dev/pts"])
def test_a_window_that_nobody_covered(daemon, shared, source):
    """It is mounted after our look at the host, each time that we look. The command does not start; with a harmless mount it does, and
    with one that is there once another try covers it."""
    source, mark, mounted = base.cgroup_mount() if source == "cgroup" else source, base.token(), []

    def mount(n, what, times):
        if n <= times:
            at = shared / f"w{len(mounted)}"
            at.mkdir()
            base.sh("mount", "--bind", what, at)
            mounted.append(at)

    try:
        for what, times, tries, code in (("/usr", 9, 1, 0), (source, 1, 2, 0), (source, 9, 5, 125)):
            with Between(daemon, lambda n, what=what, times=times: mount(n, what, times)) as between:
                p = between.run("--bind", f"{shared}:/data:ro", "--", "echo", mark, check=None)
                assert (p.returncode, mark in p.stdout, between.asked) == (code, code == 0, tries), (what, times, p)
        assert f"/data/{mounted[-1].name}" in p.stderr
    finally:
        for at in mounted:
            base.sh("umount", at)


def test_what_cannot_be_made_is_said_once(daemon, shared):
    mark = base.token()
    for words, want in ((["--bind", f"{shared}:/opt/np-new"], "--bind: /opt/np-new is not there in the sandbox"),
                        (["--chdir", "/np-nowhere"], "cannot start in /np-nowhere: No such file or directory")):
        p = run(daemon, *words, "--", "/bin/echo", mark, check=125)
        assert p.stderr.startswith(f"netpawl: run: {want}") and p.stderr.count(want) == 1 and mark not in p.stdout
        assert result(daemon, *words, "--", "true", code=125)["problem"].startswith(want)
    assert run(daemon, "--bind", f"{shared}:/np-new", "--", "cat", "/np-new/file").stdout == "words\n", "the control"


def test_isolation_none_is_loud(daemon):
    p = run(daemon, "--isolation", "none", "--", "sh", "-c", "id -u; readlink /proc/self/ns/mnt; ls -d /root")
    uid, mnt, home = p.stdout.split()
    assert uid == "0" and mnt == os.readlink("/proc/self/ns/mnt") and home == "/root"
    assert "--isolation none" in p.stderr and "only the network is confined" in p.stderr
    assert run(daemon, "--isolation", "some", "--", "true", check=2).stderr


def test_isolation_none_still_takes_the_network(daemon):
    from lib.world import FAR
    code = f"import socket; socket.create_connection(('{FAR[4]}', 9000), 2)"
    p = run(daemon, "--isolation", "none", "--level", "SECRET", *python(code), check=1)
    assert "ConnectionRefusedError" in p.stderr
    run(daemon, "--isolation", "none", *python(code))


# -- the plan -----------------------------------------------------------------------------------

def test_dry_run(daemon, api):
    before = api.sessions(ended=True)
    plan = json.loads(run(daemon, "--dry-run", "--json", "--session", "tester/dry", "--memory", "1GiB", "--bind", "/tmp:/data:ro",
                          "--", "echo", "x").stdout)
    assert api.sessions(ended=True) == before and not (daemon.state_dir / "data/tester/dry").exists()
    steps = {s["destination"]: s for s in plan["steps"]}
    assert steps["/workspace"]["source"] == str(daemon.state_dir / "data/tester/dry")
    assert steps["/data"] == {"step": "ro-bind", "source": "/tmp", "destination": "/data"}
    assert steps["/usr"]["step"] == "ro-bind" and steps["/tmp"]["step"] == "tmpfs"
    assert plan["argv"] == ["echo", "x"] and plan["limits"]["memory"] == "1GiB" and plan["isolation"] == "full"
    assert plan["environment"]["HOME"] == "/workspace" and "net" not in plan["namespaces"]


def test_the_policy_bounds_what_options_ask(make_daemon):
    folder = base.tempdir("policy")
    try:
        policy = folder / "p.yaml"
        policy.write_text("version: 1\nsandbox:\n  memory: 64MiB\n  timeout: 5m\n  pids: 50\n  cpus: 0.5\n  output_limit: 1k\n")
        d = make_daemon(policy=policy).start()
        limits = lambda *w: json.loads(run(d, "--dry-run", "--json", *w, "--", "true").stdout)["limits"]
        assert limits() == {"memory": "64MiB", "cpus": "0.5", "pids": "50", "timeout": "5m", "output_limit": "1000", "disk": None,
                            "best_effort": False}
        got = limits("--memory", "1GiB", "--pids", "10", "--timeout", "1s", "--cpus", "4", "--output-limit", "1")
        assert (got["memory"], got["pids"], got["timeout"], got["cpus"], got["output_limit"]) == ("64MiB", "10", "1s", "0.5", "1")
        got = result(d, "--", "sh", "-c", "head -c 5000 /dev/zero")
        assert len(got["stdout"]) == 1000 and got["stdout_truncated"]
    finally:
        base.drop_tempdir(folder)


# -- the workspace ----------------------------------------------------------------------------

def workspace(daemon, session):
    return daemon.state_dir / "data" / session


def test_workspace_is_kept(daemon, api):
    session = new_session("ws")
    assert inside(daemon, "pwd; echo one > a; mkdir d; echo $HOME", "--session", session) == "/workspace\n/workspace\n"
    assert inside(daemon, "cat a; echo two >> a; ls -A", "--session", session) == "one\na\nd\n"
    assert (workspace(daemon, session) / "a").read_text() == "one\ntwo\n"
    assert api.show(session)["workspace"] == str(workspace(daemon, session))


def test_other_sessions_do_not_see_it(daemon):
    one, two = new_session("ws"), new_session("ws")
    mark = base.token()
    inside(daemon, f"echo {mark} > {mark}", "--session", one)
    path = workspace(daemon, one)
    got = inside(daemon, f"ls -A /workspace; ls {path} 2>&1; ls /workspace/../data 2>&1; grep -r {mark} /tmp /workspace "
                 "/var /run 2>/dev/null; true", "--session", two)
    assert mark not in got.replace(str(path), "")
    # and with the host's files in sight neither, root or not: the data directory is covered
    for user in ("root", "nobody"):
        assert run(daemon, *base.shown(), "--user", user, "--session", two, "--", "sh", "-c",
                   f"ls -lA {path} {path.parent}; cat {path}/{mark}; true").stdout == ""


def test_no_session_no_files(daemon):
    data = daemon.state_dir / "data"
    count = lambda: sum(1 for _ in data.rglob("*"))
    before = count()
    inside(daemon, "echo x > /workspace/x")
    assert count() == before


def test_any_user_can_use_it(daemon):
    session = new_session("ws")
    for user in ("root", "nobody"):
        inside(daemon, f"echo {user} > {user}", "--session", session, "--user", user)
    assert set(inside(daemon, "ls", "--session", session).split()) == {"root", "nobody"}


@pytest.mark.parametrize("level", ["user", "session"])
def test_a_link_in_place_of_a_workspace(daemon, level):
    """Whoever could write there is root, but a link is not followed all the same."""
    target = base.tempdir("target")
    user, name = f"linked{base.token()}", "s"
    link = daemon.state_dir / "data" / user / (name if level == "session" else "")
    try:
        if level == "session":
            link.parent.mkdir(mode=0o700)
        os.symlink(target, str(link).rstrip("/"))
        p = run(daemon, "--session", f"{user}/{name}", "--", "true", check=125)
        assert "workspace" in p.stderr
        assert not list(target.iterdir())
    finally:
        base.drop_tempdir(target)


def test_path(daemon):
    session = new_session("ws")
    inside(daemon, "mkdir d; echo x > d/f; ln -s d/f good; ln -s /etc/passwd bad; ln -s ../.. up; ln -s nowhere dangling;"
           "ln -s /workspace/d abs", "--session", session)
    home = workspace(daemon, session)
    path = lambda *w, code=0: daemon.cli("path", session, *w, check=code)
    assert path("/workspace/d/f").stdout == f"{home}/d/f\n"
    assert path(f"{home}/d/f").stdout == "/workspace/d/f\n"
    assert path("/workspace").stdout == f"{home}\n" and path(str(home)).stdout == "/workspace\n"
    assert path("/workspace/good").stdout == f"{home}/d/f\n"
    assert path("/workspace/d/new.csv").stdout == f"{home}/d/new.csv\n"
    assert json.loads(path("/workspace/d/../d/f", "--json").stdout) == {"path": f"{home}/d/f"}
    for out in ("/workspace/bad", "/workspace/up", "/workspace/up/x", "/workspace/../x", "/workspace/d/../../x", "/etc/passwd",
                "/workspacex", "/workspace/dangling", "/workspace/abs/f", f"{home}/../x", f"{home}x", str(home.parent),
                f"{home}/up/x"):
        p = path(out, code=1)
        assert "outside_workspace" in p.stderr and not p.stdout, out
    assert path("/workspace/no/such", code=1).stderr
    path("relative", code=2)
    assert daemon.cli("path", new_session("none"), "/workspace/x", check=1).stderr


def test_data_dir_option(make_daemon):
    folder = base.tempdir("data")
    try:
        d = make_daemon(more=["--data-dir", folder / "deep"]).start()
        inside(d, "echo x > x", "--session", "tester/data")
        assert (folder / "deep/tester/data/x").exists()
        assert (folder / "deep").stat().st_mode & 0o777 == 0o700
    finally:
        base.drop_tempdir(folder)


# -- limits --------------------------------------------------------------------------------------

FORKS = """import os, time
n = 0
for i in range({}):
    try:
        if os.fork() == 0:
            time.sleep(200); os._exit(0)
    except OSError as e:
        print('refused', e.errno); break
    n += 1
print(n)
"""


def test_fork_bomb(daemon):
    """Bounded to 120 forks, which all succeed without the limit."""
    assert run(daemon, *python(FORKS.format(120))).stdout == "120\n"
    refused, n = run(daemon, "--pids", "40", *python(FORKS.format(120))).stdout.splitlines()
    assert refused == "refused 11" and int(n) < 40


HOG = "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint(len(b))"


def test_memory_hog(daemon):
    assert run(daemon, *python(HOG)).stdout.strip() == str(200 << 20)
    got = result(daemon, "--memory", "64MiB", *python(HOG), code=137)
    assert got["exit_code"] == 137 and got["killed_by"] == "memory" and got["stdout"] == ""
    assert (32 << 20) < got["memory_peak"] <= (64 << 20)
    assert "limit of its memory" in run(daemon, "--memory", "64MiB", *python(HOG), check=137).stderr


def test_busy_loop(daemon):
    """All of the sandbox dies, what left its session and process group, too."""
    mark = base.token()
    got = result(daemon, "--timeout", "1500ms", "--cpus", "0.2", "--", "sh", "-c",
                 f"setsid sh -c 'while :; do : {mark}; done' & while :; do :; done", code=124)
    assert got["timed_out"] and got["killed_by"] == "timeout" and got["exit_code"] == 124
    assert got["cpu_us"] > 0
    assert not [c for c in base.sh("ps", "-eo", "args").stdout.splitlines() if mark in c]
    p = run(daemon, "--timeout", "300ms", "--", "sleep", "30", check=124)
    assert "time was over" in p.stderr


def throttled(daemon, box):
    """How often the kernel held the sandbox back; 0 when nothing bounds it."""
    groups = [pathlib.Path(p) for p in v1_groups(daemon) if "/cpu/" in p or "/cpu,cpuacct/" in p] if HYBRID else [pathlib.Path(box["cgroup"])]
    words = " ".join((g / "cpu.stat").read_text() for g in groups).split()
    return int(words[words.index("nr_throttled") + 1]) if "nr_throttled" in words else 0


@pytest.mark.parametrize("cpus", ["0.1", None])
def test_cpus(daemon, api, cpus):
    """A loop that would take a whole CPU is held back; without the limit it is not."""
    session = new_session("cpus")
    options = ["--cpus", cpus] if cpus else []
    p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", *options, "--session", session, "--", "sh", "-c",
                    "echo up; while :; do :; done"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                   env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert p.stdout.readline() == b"up\n"
        box = api.sandboxes(session)[0]
        seen = base.for_a_while(lambda: throttled(daemon, box), 60 if cpus else 1)
        assert bool(seen) == bool(cpus)
    finally:
        base.reap(p)


def test_output_flood(daemon):
    words = ["--output-limit", "100k", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' a; echo b >&2; exit 3"]
    p = run(daemon, *words, check=3)
    assert len(p.stdout) + len(p.stderr.replace(p.stderr[p.stderr.find("netpawl:"):], "")) <= 100000 and "cut" in p.stderr
    assert p.stdout.startswith("aaaa")
    got = result(daemon, *words, code=3)
    assert len(got["stdout"]) + len(got["stderr"]) == 100000 and got["stdout_truncated"]
    got = result(daemon, "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' a")
    assert len(got["stdout"]) == 1 << 20 and got["stdout_truncated"] and not got["stderr_truncated"]


def test_disk(daemon):
    """What is in memory is bounded anywhere; the workspace where the file system counts."""
    fill = "head -c 5000000 /dev/zero > $1/x 2>/dev/null; stat -c %s $1/x"
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/workspace"):
        script = fill.replace("$1", folder)
        assert inside(daemon, script).strip() == "5000000"
        assert int(inside(daemon, script, "--disk", "1MiB")) <= 1 << 20, folder
    session = new_session("disk")
    p = run(daemon, "--session", session, "--disk", "1MiB", "--", "sh", "-c", fill.replace("$1", "/workspace"), check=None)
    if p.returncode == 125:
        assert "--disk cannot be set" in p.stderr and "project quotas" in p.stderr
        p = run(daemon, "--session", session, "--disk", "1MiB", "--best-effort", "--", "echo", "went on")
        assert p.stdout == "went on\n" and "--disk (of the workspace)" in p.stderr
    else:
        assert int(p.stdout) <= 1 << 20


@pytest.mark.parametrize("words", [["--memory", "x"], ["--memory", "10"], ["--pids", "0"], ["--pids", "1k"], ["--cpus", "0"],
                                   ["--cpus", "-1"], ["--cpus", "1.2345"], ["--cpus", "0.001"], ["--timeout", "5"], ["--timeout", "0s"],
                                   ["--output-limit", "0"], ["--disk", ""]])
def test_limits_that_are_none(daemon, words):
    assert words[0] in run(daemon, *words, "--", "true", check=2).stderr


def test_the_least_of_a_cpu_is_one_that_the_kernel_takes(daemon):
    run(daemon, "--cpus", "0.01", "--", "true", check=0)


def v1_groups(daemon):
    return [str(p) for p in base.v1_groups(daemon.cgroup + ".")]


LIMITED = ["--memory", "100MiB", "--pids", "50", "--cpus", "1"]


def test_limits_leave_nothing_behind(daemon, api):
    session = new_session("left")
    run(daemon, "--session", session, *LIMITED, "--", "true")
    assert v1_groups(daemon) == []
    assert base.eventually(lambda: not api.sandboxes(session), 10)


def test_groups_of_a_killed_run_are_removed_by_the_next(daemon, api):
    session = new_session("orphan")
    p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", *LIMITED, "--session", session, "--", "sleep", "60"],
                   stdin=subprocess.DEVNULL, env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        assert base.eventually(lambda: [b for b in api.sandboxes(session) if len(base.cgroup_pids(b["cgroup"])) >= 2])
        assert len(v1_groups(daemon)) == (3 if HYBRID else 0)
    finally:
        base.reap(p, signal.SIGKILL)
    assert base.eventually(lambda: not api.sandboxes(session), 10), "the sandbox goes with netpawl"
    assert len(v1_groups(daemon)) == (3 if HYBRID else 0), "nobody was there to remove them"
    run(daemon, *LIMITED, "--", "true")
    assert v1_groups(daemon) == []


# -- the result ------------------------------------------------------------------------------------

FIELDS = {"exit_code", "timed_out", "killed_by", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "started_at",
          "completed_at", "cpu_us", "memory_peak", "sent", "received", "requests", "queries", "refused", "session", "sandbox"}


def test_result(daemon):
    got = result(daemon, "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert set(got) == FIELDS
    assert (got["exit_code"], got["stdout"], got["stderr"], got["killed_by"], got["timed_out"]) == (7, "out\n", "err\n", None, False)
    assert got["started_at"] <= got["completed_at"] and got["memory_peak"] > 0


def test_result_counts_refusals(daemon):
    code = "import socket\nfor i in range(5):\n  try: socket.create_connection(('198.51.100.10', 9000), 2)\n  except OSError: pass"
    assert result(daemon, "--level", "SECRET", *python(code))["refused"] >= 5
    # glibc looks for nscd's socket, which is nobody's fault
    nscd = "import socket\ntry: socket.socket(socket.AF_UNIX).connect('%s')\nexcept OSError: pass"
    assert result(daemon, "--level", "SECRET", *python(nscd % "/var/run/nscd/socket"))["refused"] == 0
    assert result(daemon, "--level", "SECRET", *python(nscd % "/var/run/nscd/socket2"))["refused"] == 1


@pytest.mark.parametrize("sig", ["KILL", "TERM", "SEGV"])
def test_result_of_a_signal(daemon, sig):
    number = getattr(signal, "SIG" + sig)
    got = result(daemon, "--", "sh", "-c", f"kill -{sig} $$", code=128 + number)
    assert got["killed_by"] == "SIG" + sig and got["exit_code"] == 128 + number and not got["timed_out"]


def test_result_that_is_no_text(daemon):
    got = result(daemon, "--", "printf", r"a\377\000\303\251b")
    assert got["stdout"] == "a\ufffd\0\u00e9b"


def test_result_of_what_did_not_start(daemon):
    got = result(daemon, "--", "no-such-program-here", code=127)
    assert got["exit_code"] == 127 and "not found" in got["problem"] and got["stdout"] == ""


def test_killed_from_outside(daemon, api):
    session = new_session("killed")
    p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--json", "--session", session, "--", "sleep", "60"],
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        box = base.eventually(lambda: [b for b in api.sandboxes(session) if len(base.cgroup_pids(b["cgroup"])) >= 2])[0]
        api.ask("DELETE", f"/v1/sandboxes/{box['sandbox']}")
        got = json.loads(p.communicate(timeout=120)[0])
        assert p.returncode == 137 and got["exit_code"] == 137 and got["killed_by"] == "SIGKILL"
    finally:
        base.reap(p)


def test_many_in_a_row_leave_nothing(daemon, api):
    """Twenty here; make bench runs 200."""
    ours = lambda: [l for l in pathlib.Path("/proc/self/mounts").read_text().splitlines() if base.PREFIX in l or "oldroot" in l]
    mounts = ours()
    for _ in range(20):
        run(daemon, "--", "true")
    assert base.eventually(lambda: not list(daemon.slice.glob("*.temporary-*")), 10)
    assert base.eventually(lambda: api.health()["sandboxes"] == 0, 10)
    assert ours() == mounts
