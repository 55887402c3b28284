# SPDX-License-Identifier: MIT
"""A systemd for a test: the first process of a PID namespace, with nothing to start, in a cgroup namespace whose root is a cgroup of the
test's, so that engines which leave cgroups to systemd can be tried on a host that runs none. It has the host's files, and what it writes
is gone with it; a netpawld beside it sees the same cgroups."""
import os
import pathlib
import signal
import subprocess

from lib import base
from lib.api import Api
from lib.daemon import Daemon

BOOT = r"""set -e
top="$1/top"; shift
mkdir "$top"; mount -t tmpfs tmpfs "$top"; mkdir "$top/upper" "$top/work" "$top/root"
root="$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
for path; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
rm -rf "$root"/etc/systemd/system/*
printf '[Unit]\nDefaultDependencies=no\n' > "$root/etc/systemd/system/netpawl-test.target"
exec chroot "$root" env -i container=netpawl-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=netpawl-test.target --log-target=console
"""


PASS_ON = """import socket, sys, threading
def carry(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
l = socket.socket(socket.AF_UNIX)
l.bind(sys.argv[1])
l.listen(16)
while True:
    near, far = l.accept()[0], socket.socket(socket.AF_UNIX)
    far.connect(sys.argv[2])
    for pair in ((near, far), (far, near)):
        threading.Thread(target=carry, args=pair, daemon=True).start()
"""


class Systemd:
    """It stands in for the world where programs of the host start."""

    def __init__(self, world):
        self.world, self.dir, self.process = world, base.tempdir("systemd"), None
        self.cgroup = base.cgroup_make("systemd")
        (self.cgroup / "host").mkdir()
        self.pid = None

    def __getattr__(self, name):
        return getattr(self.world, name)

    def start(self, *shown):
        """shown: directories of the host that are the same in there; /tmp is one."""
        script = f'echo $$ > {self.cgroup}/cgroup.procs && exec unshare --mount --pid --fork --kill-child --cgroup --ipc sh -c "$0" boot "$@"'
        argv = [*self.world.enter(), "sh", "-c", script, BOOT, self.dir, "/tmp", *shown]
        with open(self.dir / "log", "wb") as log:
            self.process = base.popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=base.env())
        runs = lambda: self.first() and base.sh(*self.enter(), "systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")
        assert base.eventually(runs, 30, 0.2), (self.dir / "log").read_text()[-2000:]
        return self

    def first(self):
        """Its pid outside. Until the namespaces are made, there is somebody else."""
        children = lambda pid: pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children(self.process.pid):
            if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                self.pid = int(child)
        return self.pid

    def enter(self, ns=None):
        """As a process of its own, in a cgroup beside those of its units."""
        if ns:
            return self.world.enter(ns)
        script = f'echo $$ > {self.cgroup}/host/cgroup.procs && exec nsenter -t {self.pid} --mount --pid --cgroup --ipc --net --root --wd "$@"'
        return ["sh", "-c", script, "sh"]

    def close(self):
        if self.process:
            base.reap(self.process)
        base.eventually(lambda: not base.sh("find", self.cgroup, "-name", "cgroup.procs", "-size", "+0", check=False).stdout, 5)
        base.sh("find", self.cgroup, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";", check=False)
        base.cgroup_destroy(self.cgroup)
        base.drop_tempdir(self.dir)


class SystemdDaemon(Daemon):
    """With the slice that systemd would look for, and a process in front of it that enters the namespaces."""

    def __init__(self, systemd, **kw):
        super().__init__(systemd, **kw)
        self.cgroup = "netpawl.slice"

    @property
    def slice(self):
        return self.world.cgroup / self.cgroup

    def start(self, **kw):
        """It answers whom it sees: somebody in its namespaces passes on what we ask."""
        super().start(**kw)
        near = self.run_dir / "near.sock"
        near.unlink(missing_ok=True)
        self.passing = base.popen([*self.world.enter(), base.PYTHON, "-c", PASS_ON, str(near), str(self.socket)])
        assert base.eventually(near.exists)
        self.api = Api(near)
        return self

    def end(self, number):
        base.reap(self.passing)
        for child in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            os.kill(int(child), number)
        code = self.process.wait(120)
        base.reap(self.process)
        self.reader.join(60)
        return code

    def kill(self):
        return self.end(signal.SIGKILL)

    def stop(self):
        return self.end(signal.SIGTERM)
