# SPDX-License-Identifier: MIT
"""Real container engines, each with directories of its own, below the host of a world."""
import functools
import os
import pathlib
import shutil
import signal
import subprocess

from lib import base
from lib.box import LEVEL, SETTINGS, Adopted, attach_pid, new_session
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


class Contained(Adopted):
    """A container of an engine, with an agent as its command, attached by its name. wired: with a device that we give it, as a CNI plugin
    would, or (a Joined) in the network namespace of another container, as those of a pod are. below: its agent lives in that
    cgroup of its own, nested. engine: the world's of the kind that NETPAWL_TEST_ADOPTED names, for which all of the tests' files are mounted."""

    def __init__(self, daemon, mode="FULL", user=None, session=None, level=None, below=None, before=None, above=None, wired=True,
                 engine=None, options=None, adopt=True):
        self.daemon, self.world, self.user = daemon, daemon.world, user
        self.engine = engine = engine or self.world.engine({"podman": Podman, "docker": Docker}[base.ADOPTED])
        self.session, self.name, self.drops, self.wired = session or new_session(engine.name), base.unique("c"), [], None
        whole = options is None
        if whole:
            options = [*suite_options(engine, user), "--network", "none" if wired is True else wired.network]
        argv = engine.run_argv(self.name, "-i", *options, cmd=self.world.agent_argv())
        self.agent = Agent(argv, self.world.dir / "agents.log", env=engine.env)
        self.world.agents.append(self.agent)
        try:
            self.hello = self.agent.call("hello", 60)
            self.pid = int(engine.inspect(self.name, ".State.Pid"))
            self.agent.gone = lambda: not os.path.exists(f"/proc/{self.pid}")
            if whole:  # Docker's have no IPv6 where they have no network
                base.sh(*self.enter(), "sysctl", "-qw", *(f"{k}={v}" for k, v in (*SETTINGS.items(), ("net.ipv6.conf.all.disable_ipv6", 0),
                                                                                 ("net.ipv6.conf.lo.disable_ipv6", 0))))
            if wired:
                self.wired = wired = Joined(self, wired)
                self.drops.append(wired.close)
                self.addr, self.at, self.apart = wired.addr, wired.addr, True
            if below:
                self.nest(below)
            if before:
                before(self.agent)
            if adopt:
                self.adopt(level or LEVEL[mode])
        except BaseException:
            self.end()
            raise

    def adopt(self, level, check=0):
        self.daemon.api.create(self.session, level)
        env = {k: v for k, v in self.engine.env.items() if k.startswith(("CONTAINERS_", "DOCKER_"))}
        p = self.daemon.cli("attach", self.session, "--container", self.name, env=env, check=check)
        if p.returncode == 0:
            self.info = self.daemon.api.sandboxes(self.session)[-1]
            self.id, self.cgroup = self.info["sandbox"], pathlib.Path(self.info["cgroup"])
            self.daemon.boxes.append(self)
        return p

    def nest(self, below):
        with open(f"/proc/{self.pid}/cgroup") as f:
            own = next(line.strip().split("::")[1] for line in f if line.startswith("0::"))
        where = base.cgroup_mount() / own.lstrip("/") / below
        where.mkdir(parents=True)
        attach_pid(where, self.pid)

    def enter(self):
        return ["nsenter", "-t", str(self.pid), "-n"]

    def end(self):
        self.world.drop(self.agent)
        for drop in self.drops:
            drop()
        self.engine("rm", "-f", self.name, check=False)

    def close(self):
        self.forget()
        self.end()


class Joined:
    """The network namespace of a container, with a device on the bridge as a Wired has, or another's that it is in. It gets a name of its
    own, which would keep it, when somebody asks for that."""

    def __init__(self, box, other):
        self.pid, self.network, self.drop = box.pid, f"container:{box.name}", lambda: None
        self.addr = box.world.wire(f"/proc/{self.pid}/ns/net") if other is True else other.addr

    @functools.cached_property
    def name(self):
        name = base.unique("c")
        base.sh("ip", "netns", "attach", name, self.pid)
        self.drop = lambda: base.sh("ip", "netns", "del", name, check=False)
        return name

    def close(self):
        self.drop()


def suite_options(engine, user=None):
    """A container in which the suites find their files where they are on the host, and what most engines give: NET_RAW."""
    words = ["--cap-add", "NET_RAW"]
    for path in ("/tmp", "/var/lib"):
        (engine.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        words += ["--mount", f"type=bind,source={path},target={path},bind-nonrecursive=true"]
    return words + (["--user", "65534:65534"] if user not in (None, "root") else [])
