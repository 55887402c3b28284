# SPDX-License-Identifier: MIT
"""A netpawld of our own: its directories, a private bpffs, its start and its many ways to end."""
import contextlib
import os
import pathlib
import signal
import subprocess
import threading

from lib import base
from lib.api import Api


class NotReady(Exception):
    def __init__(self, code, text):
        super().__init__(f"netpawld ended with {code}: {text}")
        self.code, self.text = code, text


class Daemon:
    def __init__(self, world, policy=None, state_dir=None, inspectors=0, more=(), in_memory=False):
        """policy: a file; None for one that only permits base.SHOWN; False for none.
        inspectors: how many; 0 for tests of the gate alone, where what the inspector should see is refused.
        in_memory: the run directory is a tmpfs, as /run is."""
        self.world, self.inspectors, self.more = world, inspectors, list(more)
        self.dir = base.tempdir("daemon")
        self.run_dir = self.dir / "run"
        # Not in /tmp, which sandboxes of the tests that run side by side are shown: netpawl run refuses what is mounted there on the way.
        self.pin_home = base.tempdir("pins", "/run")
        self.pin_mount = self.pin_home / "bpf"
        self.state_dir = pathlib.Path(state_dir) if state_dir else self.dir / "state"
        self.cgroup = base.unique("slice")
        self.policy = policy
        if policy is None:
            self.policy = self.dir / "policy.yaml"
            self.policy.write_text("version: 1\n" + base.PERMITS)
        self.run_dir.mkdir()
        self.state_dir.mkdir(exist_ok=True)
        self.pin_mount.mkdir()
        base.sh("mount", "-t", "bpf", "bpf", self.pin_mount)
        if in_memory:
            base.sh("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", self.run_dir)
        self.pin_dir = self.pin_mount / "netpawl"
        self.socket = self.run_dir / "control.sock"
        self.log = self.dir / "daemon.log"
        self.api = Api(self.socket)
        self.process = None
        self.boxes = []  # the open ones

    @property
    def slice(self):
        return base.cgroup_mount() / self.cgroup

    @property
    def inspector_cgroup(self):
        return self.slice.with_name(self.slice.name + "-inspector")

    def workers(self):
        """The pids of its inspectors. Channels to deciders live beside them, and come and go."""
        return sorted(p for p in base.cgroup_pids(self.inspector_cgroup) if comm(p) == "netpawl-inspect")

    @property
    def pins(self):
        return next(self.pin_dir.glob("v*"), self.pin_dir / "v0")

    def argv(self, *more, binary=None):
        argv = [*self.world.enter(), binary or base.NETPAWLD, "--run-dir", self.run_dir, "--state-dir", self.state_dir,
                "--pin-dir", self.pin_dir, "--cgroup", self.cgroup, "--inspectors", self.inspectors, *self.more, *more]
        if self.policy:
            argv += ["--policy", self.policy]
        return [str(a) for a in argv]

    def start(self, failpoint=None, timeout=240, **more_env):
        """Returns when the ready line came; raises NotReady with what was said otherwise. failpoint: the test build,
        which dies there once arm() was called."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        env = base.env(**more_env)
        env["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=0:verify_asan_link_order=0"
        if failpoint:
            env["NETPAWL_FAILPOINT"] = "x" * len(failpoint)
        binary = base.NETPAWLD_FAIL if failpoint else None
        self.process = p = base.popen(self.argv(binary=binary), env=env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        ready, said = threading.Event(), []

        def read(p=p):
            with open(self.log, "a") as log:
                for line in p.stderr:
                    text = line.decode(errors="replace")
                    log.write(text)
                    log.flush()
                    said.append(text)
                    if "ready" in text:
                        ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        ready.wait(timeout)
        if not any("ready" in line for line in said):
            code = base.reap(p, signal.SIGKILL)
            raise NotReady(code, "".join(said))
        return self

    def arm(self, failpoint):
        """Names the fail point in the running daemon's environment. Not at its start: every raise passes these points,
        those of the preparation too."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        start, end = int(fields[47]), int(fields[48])  # env_start, env_end: fields 50 and 51 of proc(5)
        with open(f"/proc/{self.process.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(start)
            text = mem.read(end - start)
            at = text.index(b"NETPAWL_FAILPOINT=") + len(b"NETPAWL_FAILPOINT=")
            assert text[at : at + len(failpoint) + 1] == b"x" * len(failpoint) + b"\0"
            mem.seek(start + at)
            mem.write(failpoint.encode())

    def kill(self):
        """SIGKILL: no good bye, no clean-up."""
        code = base.reap(self.process, signal.SIGKILL)
        self.reader.join(60)
        return code

    def stop(self):
        code = base.reap(self.process, signal.SIGTERM, timeout=120)
        self.reader.join(60)
        return code

    def wait_death(self, timeout=60):
        self.process.wait(timeout)
        return base.reap(self.process)

    def restart(self, how="stop"):
        getattr(self, how)()
        return self.start()

    @contextlib.contextmanager
    def without(self, *hooks, place="slice"):
        """These programs of the slice, or of an adopted cgroup, are detached meanwhile. The daemon is stopped, for it would put them back."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            for hook in hooks:
                base.sh(*self.world.enter(), "bpftool", "link", "detach", "pinned", self.pins / "links" / place / f"np_{hook}")
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def uninstall(self, *more, check=True):
        return base.sh(*self.argv("--uninstall", *more), check=check, env=base.env(), timeout=180)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def sanitizer_reports(self):
        """Lines of ASan, UBSan or LSan in the log: none of them is ever fine."""
        return [line for line in self.text().splitlines()
                if "Sanitizer" in line or "runtime error:" in line]

    def cli(self, *words, timeout=180, check=None, input=None, env=None):
        """netpawl WORDS in HOST, with our socket in the environment."""
        e = base.env(**{"NETPAWL_SOCKET": str(self.socket), **(env or {})})
        p = subprocess.run([*self.world.enter(), str(base.NETPAWL), *map(str, words)], capture_output=True, text=True,
                           timeout=timeout, input=input, env=e, stdin=subprocess.DEVNULL if input is None else None)
        if check is not None and p.returncode != check:
            raise AssertionError(f"netpawl {words}: {p.returncode}, not {check}: {p.stderr or p.stdout}")
        return p

    def launcher(self, run, *words, check=None):
        """netpawl-run in HOST, as the daemon would start it for a run on record."""
        p = subprocess.run([*self.world.enter(), str(base.NETPAWL_RUN), str(self.socket), str(run), *map(str, words)],
                           capture_output=True, text=True, timeout=180, env=base.env(), stdin=subprocess.DEVNULL)
        assert check is None or p.returncode == check, p
        return p

    def launcher_of(self, run):
        """The process that the daemon started for a run; None: there is none."""
        for children in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            for pid in children.read_text().split():
                words = base.command_line(pid).split("\0")
                if words[0].endswith("/netpawl-run") and words[2] == str(run):
                    return int(pid)
        return None

    def close(self):
        for box in reversed(list(self.boxes)):  # those of a test that failed before it closed them
            box.close()
        if self.process is not None and self.process.poll() is None:
            self.stop()
        if base.NETPAWLD.exists():
            subprocess.run(self.argv("--uninstall"), capture_output=True, timeout=180, env=base.env())
        for path in (self.slice, self.inspector_cgroup):
            base.cgroup_destroy(path)
        for path in (self.pin_mount, self.run_dir):
            subprocess.run(["umount", "-l", str(path)], capture_output=True)
        reports = self.sanitizer_reports()
        base.drop_tempdir(self.pin_home)
        base.drop_tempdir(self.dir)
        assert not reports, f"the daemon's sanitizer spoke: {reports}"


def pids_of(path):
    return base.cgroup_pids(path)


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid):
    return os.path.exists(f"/proc/{pid}")
