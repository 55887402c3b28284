# SPDX-License-Identifier: MIT
"""The node agent of deploy/kubernetes: its image, made of the packages that the Dockerfile names and `make install`, and a netpawld that runs
in it under Podman with the capabilities and mounts that the manifest has, and no others."""
import json
import os
import re

import yaml

from engines import LIMITS
from lib import base
from lib.daemon import Daemon
from roots import debootstrap

DEPLOY = base.ROOT / "deploy" / "kubernetes"


def documents():
    return list(yaml.safe_load_all((DEPLOY / "netpawl.yaml").read_text()))


def pod():
    return next(d for d in documents() if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]


def dockerfile():
    """(packages, entry point)"""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    packages = re.search(r"--no-install-recommends (.*?)&&", text).group(1).split()
    return packages, json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.M).group(1))


def entry():
    """Where process 1 may not be looked at, whatever one's capabilities, somebody else of the host's cgroup namespace stands in."""
    words = dockerfile()[1]
    try:
        os.readlink("/proc/1/ns/cgroup")
    except PermissionError:
        words[words.index("--target") + 1] = str(os.getpid())
    return words


def image(where):
    """The root file system that the Dockerfile makes."""
    root = debootstrap("node-root", dockerfile()[0])
    base.sh("cp", "-al", root, where, timeout=120)
    out = where.with_name("image")
    base.sh("make", "-C", base.ROOT, f"BUILD={base.BUILD}", "install", "PREFIX=/usr", f"DESTDIR={out}", timeout=600)
    base.sh("cp", "-a", "--remove-destination", f"{out}/.", where, timeout=120)
    return where


class NodeDaemon(Daemon):
    """more: names of files in etc, which is /etc/netpawl in there."""

    def __init__(self, world, engine, etc, more=(), **kw):
        self.engine, self.etc = engine, etc
        super().__init__(world, policy=etc / "policy.yaml", more=more, **kw)
        self.root = image(self.dir / "root")

    def mounts(self):
        spec, container = pod(), pod()["containers"][0]
        here = {"run": self.run_dir, "state": self.state_dir, "bpf": self.pin_mount, "policy": self.etc}
        for mount in container["volumeMounts"]:
            volume = next(v for v in spec["volumes"] if v["name"] == mount["name"])
            if "emptyDir" in volume:
                yield from ("--tmpfs", mount["mountPath"])
                continue
            source = here.get(mount["name"]) or volume["hostPath"]["path"]
            yield from ("-v", f"{source}:{mount['mountPath']}" + ":ro" * bool(mount.get("readOnly")))

    def argv(self, *more, binary=None):
        if more:  # --uninstall, by the same build outside
            return super().argv(*more)
        spec, container = pod(), pod()["containers"][0]
        security = container["securityContext"]
        assert not security["privileged"] and security["readOnlyRootFilesystem"] and security["capabilities"]["drop"] == ["ALL"]
        words = ["run", "--rm", "--name", self.name, *LIMITS[2:], "--ulimit", "nofile=4096:4096", "--cap-drop", "ALL", "--read-only", "--read-only-tmpfs=false"]
        words += [w for cap in security["capabilities"]["add"] for w in ("--cap-add", cap)]
        words += ["--pid", "host"] * bool(spec["hostPID"]) + ["--network", "host"] * bool(spec["hostNetwork"])
        args = [*container["args"], "--cgroup", self.cgroup, "--inspectors", str(self.inspectors), *map(str, self.more)]
        return self.engine.argv(*words, *self.mounts(), "--rootfs", self.root, *entry(), *args)

    def start(self, **kw):
        self.name = base.unique("node")  # the last one may still be being removed
        return super().start(**kw, **{k: v for k, v in self.engine.env.items() if k.startswith("CONTAINERS_")})

    def stop(self):
        self.engine("stop", "-t", "10", self.name, check=False)
        return super().stop()
