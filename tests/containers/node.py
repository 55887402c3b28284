# SPDX-License-Identifier: MIT
"""The node agent of deploy/kubernetes: its image, built of its Dockerfile, and a netpawld that runs in it under Podman
with the capabilities and mounts that the manifest has, and no others."""
import json
import os
import re
import shutil

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


def packages_offer(where):
    """A repository of the packages that the Dockerfile names, with what they need: nothing is fetched while the image is built."""
    offered = debootstrap("node-packages", dockerfile()[0], "--download-only") / "var/cache/apt/archives"
    where.mkdir()
    for package in offered.glob("*.deb"):
        os.link(package, where / package.name)
    (where / "Packages").write_text(base.sh("dpkg-scanpackages", "-m", ".", cwd=where, timeout=300).stdout)


def image_build(engine, where):
    """The Dockerfile's image, built by Podman as the document says, but for the base, which is Debian's by debootstrap. Its name."""
    root, context = where / "base", where / "context"
    base.sh("cp", "-a", debootstrap("base-root", []), root, timeout=300)
    for path in root.glob("etc/apt/sources.list*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/packages ./\n")
    packages_offer(where / "packages")
    base.sh("make", "-C", base.ROOT, f"BUILD={base.BUILD}", "install", "PREFIX=/usr", f"DESTDIR={context}/build/image", timeout=600)
    base.sh("tar", "-C", root, "-cf", where / "base.tar", ".", timeout=300)
    engine("import", where / "base.tar", "localhost/np-base", timeout=600)
    engine("build", "--network", "none", "--build-arg", "BASE=localhost/np-base", "-v", f"{where}/packages:/packages:ro", "-f", DEPLOY / "Dockerfile",
           "-t", "localhost/np-node", context, timeout=1800)
    for path in (root, context, where / "packages"):
        shutil.rmtree(path)
    (where / "base.tar").unlink()
    return "localhost/np-node"


class NodeDaemon(Daemon):
    """more: names of files in etc, which is /etc/netpawl in there."""

    def __init__(self, world, engine, etc, more=(), **kw):
        self.engine, self.etc = engine, etc
        super().__init__(world, policy=etc / "policy.yaml", more=more, **kw)
        (self.dir / "build").mkdir()
        self.image = image_build(engine, self.dir / "build")

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
        return self.engine.argv(*words, *self.mounts(), "--entrypoint", json.dumps(entry()), self.image, *args)

    def start(self, **kw):
        self.name = base.unique("node")  # the last one may still be being removed
        return super().start(**kw, **{k: v for k, v in self.engine.env.items() if k.startswith("CONTAINERS_")})

    def stop(self):
        self.engine("stop", "-t", "10", self.name, check=False)
        return super().stop()
