# SPDX-License-Identifier: MIT
"""Podman and Docker for a test: storage, runtime directories and a daemon of its own, in the host's network namespace of a world."""
import contextlib
import json
import signal
import subprocess

import roots
from lib import base
from lib.world import FAR

LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]  # the engines' own are more than may be set everywhere


def dial(port=9000):
    """In a container: a connection to the far end, one byte there and back."""
    return ["python3", "-c", f"import socket; s = socket.create_connection(('{FAR[4]}', {port}), 5); s.send(b'x'); print(s.recv(1))"]


class Engine:
    def __init__(self, net):
        self.net, self.world = net, net.world
        self.dir = base.tempdir("engine")
        self.started = []

    def argv(self, *words):
        return [*self.world.enter(), *self.command(), *map(str, words)]

    def call(self, *words, check=True, timeout=120):
        p = subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=timeout, env=self.env(),
                           stdin=subprocess.DEVNULL)
        assert not check or p.returncode == 0, f"{words}: {p.returncode}: {p.stderr[-2000:]}"
        return p

    def env(self):
        return base.env(NETPAWL_SOCKET=str(self.net.daemon.socket))

    def netpawl(self, *words, session, check=True, timeout=120, ours=()):
        """netpawl docker or netpawl podman; ours: options of that."""
        argv = [*self.world.enter(), str(base.NETPAWL), self.name, "--session", session, *ours, "--", *self.command()[1:],
                *map(str, words)]
        p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=self.env(), stdin=subprocess.DEVNULL)
        assert not check or p.returncode == 0, f"{words}: {p.returncode}: {p.stderr[-2000:]}"
        return p

    def image(self, kind=roots.debian):
        """Words of run: an image with a root file system of that kind, made at its first use."""
        root = self.dir / f"root-{kind.__name__}"
        if not root.exists():
            kind(root)
            self.take(root)
        return [*LIMITS, *self.words(root)]

    def remove(self, name):
        self.call("rm", "-f", name, check=False)

    def close(self):
        for name in self.started:
            self.remove(name)
        self.end()
        # beside the slice, in the hierarchies of a hybrid host: what runtimes leave there of a parent
        for group in base.cgroup_mount().parent.glob(f"*/{self.net.daemon.cgroup}"):
            if group != self.net.daemon.slice:
                base.sh("find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+", check=False)
        subprocess.run(f"grep -o ' {self.dir}[^ ]*' /proc/self/mounts | sort -r | xargs -r umount -l", shell=True, capture_output=True)
        base.drop_tempdir(self.dir)


class Podman(Engine):
    name = "podman"

    def __init__(self, net):
        super().__init__(net)
        self.hooks = self.dir / "hooks.d"
        self.hooks.mkdir()

    def command(self):
        return ["podman", "--root", str(self.dir / "storage"), "--runroot", str(self.dir / "run"), "--cgroup-manager=cgroupfs",
                "--runtime", "runc", "--storage-driver", "vfs", "--events-backend", "file", "--hooks-dir", str(self.hooks)]

    @contextlib.contextmanager
    def hook(self, file, socket=None):
        """With a file of hooks of ours, which calls the hook of this build."""
        hook = json.loads((base.ROOT / f"{file}.in").read_text())
        hook["hook"]["path"] = str(base.BUILD / "netpawl-oci-hook")
        hook["hook"]["args"] = [*hook["hook"].get("args", ["netpawl-oci-hook"]), str(socket or self.net.daemon.socket)]
        (self.hooks / file).write_text(json.dumps(hook))
        try:
            yield
        finally:
            (self.hooks / file).unlink()

    def take(self, root):
        pass

    def words(self, root):
        return ["--rootfs", str(root)]

    def end(self):
        pass


class Docker(Engine):
    name = "docker"

    def __init__(self, net):
        super().__init__(net)
        self.socket = self.dir / "docker.sock"
        argv = [*self.world.enter(), "dockerd", "--data-root", self.dir / "data", "--exec-root", self.dir / "exec", "-p", self.dir / "pid",
                "-H", f"unix://{self.socket}", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none",
                "--containerd-namespace", base.unique("d"), *self.more()]
        self.log = open(self.dir / "dockerd.log", "wb")
        self.process = base.popen([str(a) for a in argv], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        up = lambda: self.call("version", check=False).returncode == 0
        assert base.eventually(up, 90, 0.3), (self.dir / "dockerd.log").read_text()[-3000:]

    def more(self):
        return []

    def command(self):
        return ["docker", "-H", f"unix://{self.socket}"]

    def take(self, root):
        tar = root.with_suffix(".tar")
        roots.pack(root, tar)
        self.call("import", tar, root.name, timeout=600)
        tar.unlink()

    def words(self, root):
        return [root.name]

    def end(self):
        base.reap(self.process, signal.SIGTERM, timeout=60)
        self.log.close()


def inspect(engine, name):
    return json.loads(engine.call("inspect", name).stdout)[0]
