# SPDX-License-Identifier: MIT
"""Real container engines, each with directories of its own, below the host of a world."""
import os
import pathlib
import shutil
import signal
import subprocess

from lib import base
from lib.box import LEVEL, Adopted, new_session
from lib.world import Agent

SHOWN = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/alternatives", "/etc/ld.so.cache"]  # of the host, for the agent to run


def root_make(where):
    """A root directory with nothing in it but places to mount the host's programs at."""
    for name in ("usr", "lib", "lib64", "bin", "sbin", "etc/alternatives", "proc", "sys", "dev", "tmp", "run"):
        (where / name).mkdir(parents=True)
    (where / "etc/ld.so.cache").touch()
    (where / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
    (where / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    return where


class Podman:
    name = "podman"

    def __init__(self, world, driver="vfs"):
        self.world, self.dir = world, base.tempdir("podman")
        self.root = root_make(self.dir / "root")
        (self.dir / "containers.conf").write_text(
            '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "none"\n'
            f'tmp_dir = "{self.dir}/tmp"\nstatic_dir = "{self.dir}/libpod"\nvolume_path = "{self.dir}/volumes"\n'
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\nlog_driver = "none"\nno_hosts = true\n')
        (self.dir / "storage.conf").write_text(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{self.dir}/graph"\nrunroot = "{self.dir}/run"\n')
        self.env = base.env(CONTAINERS_CONF=str(self.dir / "containers.conf"), CONTAINERS_STORAGE_CONF=str(self.dir / "storage.conf"))

    def argv(self, *words):
        return [*self.world.enter(), "podman", *map(str, words)]

    def __call__(self, *words, check=True, timeout=60):
        return base.sh(*self.argv(*words), check=check, timeout=timeout, env=self.env).stdout.strip()

    def run_argv(self, name, *options, cmd):
        mounts = [w for path in [*SHOWN, self.world.dir] if os.path.exists(path) for w in ("-v", f"{path}:{path}:ro")]
        (self.root / str(self.world.dir).lstrip("/")).mkdir(parents=True, exist_ok=True)
        return self.argv("run", "--name", name, *mounts, *options, *self.image(), *cmd)

    def image(self):
        return ["--rootfs", str(self.root)]

    def inspect(self, name, what):
        return self("container", "inspect", "--format", "{{%s}}" % what, name)

    def end(self):
        """Its containers."""
        for line in self("ps", "-aq", check=False).split():
            self("rm", "-f", line, check=False)

    def close(self):
        self.end()
        self.clean()

    def clean(self):
        for mount in sorted((l.split()[1] for l in open("/proc/self/mounts") if str(self.dir) in l), reverse=True):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)
        base.drop_tempdir(self.dir)


class Contained(Adopted):
    """A container of an engine, with an agent as its command, attached by its name. network: none has no way out but the device
    that we give it, as a CNI plugin would."""

    def __init__(self, daemon, engine, mode="FULL", session=None, level=None, before=None, options=(), wired=True):
        self.daemon, self.world, self.engine = daemon, daemon.world, engine
        self.session, self.name, self.drops = session or new_session(engine.name), base.unique("c"), []
        argv = engine.run_argv(self.name, "-i", *options, cmd=self.world.agent_argv())
        self.agent = Agent(argv, self.world.dir / "agents.log", env=engine.env)
        self.world.agents.append(self.agent)
        try:
            self.agent.call("hello", 60)
            self.pid = int(engine.inspect(self.name, ".State.Pid"))
            if wired:
                self.addr = self.world.wire(f"/proc/{self.pid}/ns/net")
            if before:
                before(self.agent)
            daemon.api.create(self.session, level or LEVEL[mode])
            daemon.cli("attach", self.session, "--container", self.name, check=0,
                       env={k: v for k, v in engine.env.items() if k.startswith(("CONTAINERS_", "DOCKER_"))})
            self.info = daemon.api.sandboxes(self.session)[-1]
        except BaseException:
            self.world.drop(self.agent)
            engine("rm", "-f", self.name, check=False)
            raise
        self.id, self.cgroup = self.info["sandbox"], pathlib.Path(self.info["cgroup"])
        daemon.boxes.append(self)

    def enter(self):
        return ["nsenter", "-t", str(self.pid), "-n"]

    def close(self):
        self.forget()
        self.world.drop(self.agent)
        self.engine("rm", "-f", self.name, check=False)


class Docker(Podman):
    name = "docker"

    def __init__(self, world):
        self.world, self.dir = world, base.tempdir("docker")
        self.root = root_make(self.dir / "root")
        host = f"unix://{self.dir}/docker.sock"
        self.env = base.env(DOCKER_HOST=host, DOCKER_CONFIG=str(self.dir))
        self.log = open(self.dir / "log", "wb")
        self.server = [*world.enter(), "dockerd", "--data-root", self.dir / "data", "--exec-root", self.dir / "exec", "-p", self.dir / "pid", "-H",
                       host, "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none", "--storage-driver", "vfs",
                       "--default-ulimit", "nofile=1024:1024"]
        try:
            self.serve()
            base.sh("tar", "-C", self.root, "-cf", self.dir / "root.tar", ".")
            self("import", self.dir / "root.tar", "np-test")
        except BaseException:
            self.close()
            raise

    def serve(self):
        self.process = base.popen(self.server, env=base.env(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        assert base.eventually(lambda: self("version", "--format", "{{.Server.Version}}", check=False), 60, 0.2), \
            (self.dir / "log").read_text()[-2000:]

    def restart(self):
        """The engine itself, as an update of its package does."""
        base.reap(self.process, signal.SIGTERM, timeout=60)
        self.serve()

    def argv(self, *words):
        return [*self.world.enter(), "docker", *map(str, words)]

    def image(self):
        return ["np-test"]

    def close(self):
        if self.process.poll() is None:
            self.end()
        base.reap(self.process, timeout=20)
        self.log.close()
        self.clean()
