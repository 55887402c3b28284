# SPDX-License-Identifier: MIT
"""Where things are, what this run calls its things, and the list of what it must not leave behind."""
import atexit
import ctypes
import itertools
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[2]
ROOT = TESTS.parent
BUILD = (ROOT / os.environ.get("NETPAWL_BUILD", "build")).resolve()
PYTHON = "/usr/bin/python3"
NETPAWLD = BUILD / "netpawld"
NETPAWL = BUILD / "netpawl"
NETPAWL_RUN = BUILD / "netpawl-run"
SAN = "san" in BUILD.name  # made with sanitizers: memory is not what it is
NETPAWLD_FAIL = BUILD / "test" / "netpawld"  # the build with fail points

# Tests of the gate and of what `netpawl run` takes away look for the host's files: they are shown to the sandbox, where
# they are on the host, as the policy of the daemons under test permits. tests/e2e/test_run.py is about what is not shown.
SHOWN = ["/tmp", "/var/lib:ro"] + ([] if ROOT.is_relative_to("/tmp") else [f"{ROOT}:ro"])
# private, shared: the suites as they are, with sandboxes in PROXIED and NONE of the one kind and of the other; empty: as the policy has it
# that does not say. Shared, unless the run says otherwise: there the gate stands alone, where a network of its own would hold back
# what it lets slip.
NETWORK = os.environ.get("NETPAWL_TEST_NETWORK", "shared")
# The suites as they are, with containers for sandboxes: each is adopted while it runs, in a network namespace of its own, on a bridge of
# the host's. container: a cgroup and a namespace that the test made; podman, docker: one of that engine.
ADOPTED = os.environ.get("NETPAWL_TEST_ADOPTED")


def permits(network=NETWORK):
    """The policy's sandbox: section."""
    return f"sandbox:\n  binds: [{', '.join(SHOWN)}]\n" + (f"  network: {network}\n" if network else "")


PERMITS = permits()


def shown():
    """Options of netpawl run."""
    words = []
    for entry in SHOWN:
        path, _, mode = entry.partition(":")
        words += ["--bind", f"{path}:{path}" + (f":{mode}" if mode else "")]
    return words


# Everything that a run makes (namespace, cgroup, directory) starts with this.
PREFIX = "np-test-" + secrets.token_hex(3)
COUNT = itertools.count(1)


def unique(word):
    return f"{PREFIX}-{word}-{next(COUNT):x}"


def token():
    """A mark that is found again in captured frames and in a server's records."""
    return "mark" + secrets.token_hex(6)


def cgroup_mount():
    """The cgroup v2 mount, from the mount table: a hybrid host has it in a subfolder."""
    with open("/proc/self/mounts") as f:
        for line in f:
            _, where, kind = line.split()[:3]
            if kind == "cgroup2":
                return pathlib.Path(where)
    raise RuntimeError("no cgroup v2 mount")


def env(**more):
    """What programs under test start with. The leak check needs ptrace and a clean exit: not in a sandbox."""
    base = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8", USER="tester")
    base.pop("NETPAWL_SOCKET", None)
    base["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:verify_asan_link_order=0"
    base["UBSAN_OPTIONS"] = "print_stacktrace=1"
    base.update(more)
    return base


# Bounds of waits are said as for a machine that has nothing else to do; on one that is loaded everything takes so many times as long.
PATIENCE = 6


def sh(*argv, check=True, timeout=20 * PATIENCE, **kw):
    argv = [str(a) for a in argv]
    p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, **kw)
    if check and p.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {p.returncode}: {p.stderr.strip() or p.stdout.strip()}")
    return p


def eventually(probe, timeout=10, pause=0.02):
    """probe() until it is true; its last answer. A bound against hangs, not a measurement: what must not come is for_a_while()'s."""
    return for_a_while(probe, timeout * PATIENCE, pause)


def for_a_while(probe, seconds, pause=0.02):
    """probe() until it is true, or until the time is over: a look for what must not come."""
    end = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(pause)


_temps = []


def tempdir(word, where=os.environ.get("NETPAWL_TEST_DIR", "/tmp")):
    """World-readable: ordinary users inside sandboxes run what is in it. NETPAWL_TEST_DIR: for benchmarks of another file system."""
    path = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{word}-", dir=where))
    path.chmod(0o755)
    _temps.append(path)
    return path


def drop_tempdir(path):
    # what was killed may still be on its way out of it
    eventually(lambda: shutil.rmtree(path, ignore_errors=True) or not os.path.lexists(path), 5)
    if path in _temps:
        _temps.remove(path)


def netns_cookie():
    """The kernel's number of the network namespace that the calling thread is in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        return int.from_bytes(s.getsockopt(socket.SOL_SOCKET, 71, 8), sys.byteorder)  # SO_NETNS_COOKIE


def setns_call(netns, f):
    """f() on a thread that is in that network namespace; the sockets it makes stay there."""
    out = {}

    def body():
        fd = os.open(f"/run/netns/{netns}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")
            out["value"] = f()
        except BaseException as e:
            out["error"] = e
        finally:
            os.close(fd)

    t = threading.Thread(target=body)
    t.start()
    t.join()
    if "error" in out:
        raise out["error"]
    return out["value"]


# -- processes: ended by pid, by whoever started them -----------------------------

_running = set()


def popen(argv, **kw):
    p = subprocess.Popen([str(a) for a in argv], **kw)
    _running.add(p)
    return p


def reap(p, sig=signal.SIGTERM, timeout=20):
    """Ends a process of ours, if it still runs, and takes its exit code."""
    if p.poll() is None:
        p.send_signal(sig)
        try:
            p.wait(timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait(60)
    for f in (p.stdin, p.stdout, p.stderr):
        if f:
            try:
                f.close()
            except OSError:
                pass
    _running.discard(p)
    return p.returncode


# -- cgroups ------------------------------------------------------------------------

def cgroup_make(word):
    path = cgroup_mount() / unique(word)
    path.mkdir()
    return path


def cgroup_pids(path):
    """Every process in the cgroup or below it."""
    pids = []
    for folder, _, _ in os.walk(path):
        try:
            with open(os.path.join(folder, "cgroup.procs")) as f:
                pids += [int(line) for line in f]
        except OSError:
            pass
    return pids


def cgroups_below(path, prefix):
    """Cgroups below it whose names begin so; it does not mind what is removed meanwhile."""
    return [pathlib.Path(top, d) for top, dirs, _ in os.walk(path) for d in dirs if d.startswith(prefix)]


def cgroup_destroy(path, timeout=30):
    """Kills what is in it and removes it with all that is nested."""
    end = time.monotonic() + timeout
    while path.exists() and time.monotonic() < end:
        try:
            (path / "cgroup.kill").write_text("1")
        except OSError:
            pass
        for folder, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        if path.exists():
            time.sleep(0.05)


# -- what is left over ---------------------------------------------------------------

def command_line(pid):
    """Words that end with a zero each; nothing of a process that is gone."""
    try:
        return pathlib.Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _our_processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = command_line(pid).replace("\0", " ")
        if PREFIX in line and int(pid) != os.getpid():
            found.append((int(pid), line))
    return found


def v1_groups(prefix=PREFIX):
    """Groups that netpawl run makes for limits on a hybrid host, for daemons whose slice begins so."""
    if cgroup_mount().parent.name != "cgroup":
        return []
    name = f"netpawl.{prefix}"
    # os.walk, which does not mind what others remove meanwhile
    return [pathlib.Path(top) / d for top, dirs, _ in os.walk("/sys/fs/cgroup") for d in dirs if d.startswith(name)]


def _left_folders():
    return [path for top in ("/tmp", "/run") for path in pathlib.Path(top).glob(PREFIX + "*")]


def leftovers():
    """Names of everything with our prefix that still exists."""
    eventually(lambda: not _our_processes(), 20)  # netpawl run gives a daemon ten seconds to come back, and then ends
    for path in _left_folders():
        if path not in _temps:
            drop_tempdir(path)  # it was dropped, and something that was on its way out has made a file there since
    out = [f"process {pid}: {line}" for pid, line in _our_processes()]
    out += [f"cgroup {p}" for p in cgroup_mount().glob(PREFIX + "*")]
    out += [f"cgroup {p}" for p in v1_groups()]
    netns = pathlib.Path("/run/netns")
    out += [f"netns {p.name}" for p in netns.glob(PREFIX + "*")] if netns.exists() else []
    with open("/proc/self/mounts") as f:
        out += [f"mount {line.split()[1]}" for line in f if PREFIX in line and "/run/netns" not in line]
    out += [f"directory {p}: {sorted(str(f) for f in p.rglob('*'))[:5]}" for p in _left_folders()]
    return out


def sweep():
    """Removes everything of this run: the last resort, after a failure on the way."""
    for p in list(_running):
        reap(p, signal.SIGKILL)
    for pid, _ in _our_processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    for path in cgroup_mount().glob(PREFIX + "*"):
        cgroup_destroy(path)
    for path in v1_groups():
        cgroup_destroy(path)
    with open("/proc/self/mounts") as f:
        mounts = [line.split()[1] for line in f if PREFIX in line and "/run/netns" not in line]
    for where in reversed(mounts):
        subprocess.run(["umount", "-l", where], capture_output=True)
    netns = pathlib.Path("/run/netns")
    for path in netns.glob(PREFIX + "*") if netns.exists() else []:
        subprocess.run(["ip", "netns", "del", path.name], capture_output=True)
    for path in _left_folders():
        shutil.rmtree(path, ignore_errors=True)


atexit.register(sweep)
