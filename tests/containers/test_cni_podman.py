# SPDX-License-Identifier: MIT
"""netpawl-cni behind the bridge plugin of Debian's, called by Podman's CNI backend. Podman has no pods' cgroups: the configuration names
the container's, and the session."""
import contextlib
import json
import os

import pytest

from lib import base
from lib.box import new_session
from lib.engines import Podman
from lib.inspected import Inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: origin.test
"""
SUBNET = "10.88.77.0/24"


class CniPodman(Podman):
    def __init__(self, net):
        super().__init__(net.world)
        self.net, self.bridge = net, f"np{os.getpid() % 100000}"
        (self.dir / "cni").mkdir()
        (self.dir / "bin").mkdir()
        for plugin in ("bridge", "host-local", "loopback"):
            (self.dir / "bin" / plugin).symlink_to(f"/usr/lib/cni/{plugin}")
        (self.dir / "bin" / "netpawl-cni").symlink_to(base.BUILD / "netpawl-cni")
        conf = self.dir / "containers.conf"
        conf.write_text(conf.read_text() + f'[network]\nnetwork_backend = "cni"\ncni_plugin_dirs = ["{self.dir}/bin"]\n'
                        f'network_config_dir = "{self.dir}/cni"\n')

    def network(self, name, **ours):
        """One bridge and, if asked, our plugin behind it."""
        bridge = {"type": "bridge", "bridge": self.bridge, "isGateway": False,
                  "ipam": {"type": "host-local", "dataDir": str(self.dir / "ipam"), "ranges": [[{"subnet": SUBNET}]]}}
        last = {"type": "netpawl-cni", "netpawl": {"socket": str(self.net.daemon.socket), **ours}}
        (self.dir / "cni" / f"{name}.conflist").write_text(
            json.dumps({"cniVersion": "0.4.0", "name": name, "plugins": [bridge] + [last] * bool(ours)}))

    def close(self):
        super().close()
        base.sh(*self.world.enter(), "ip", "link", "del", self.bridge, check=False)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY, bridged=True)


@pytest.fixture(scope="module")
def podman(net):
    if not os.path.exists("/usr/lib/cni/bridge"):
        pytest.fail("containernetworking-plugins is not installed")
    with contextlib.closing(CniPodman(net)) as podman:
        yield podman


def run(podman, network, *cmd, check=True):
    argv = podman.run_argv(base.unique("c"), "--rm", "--network", network, cmd=cmd)
    return base.sh(*argv, check=check, timeout=120, env=podman.env)


def listens():
    """Something of the container's own on its bridge: what is refused to others."""
    return ["/usr/bin/python3", "-c", "import socket, json; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "try: s.connect(('10.88.77.254', 9)); s.send(b'x'); print('sent')\nexcept OSError as e: print(type(e).__name__)"]


CURL = ["/usr/bin/python3", "-c", "import urllib.request as u; print(u.urlopen('http://origin.test/', timeout=20).status)"]


def test_three_modes(net, podman):
    podman.network("plain")
    assert run(podman, "plain", *listens()).stdout.strip() == "sent", "the control"
    for level, sent in (("PUBLIC", "sent"), ("CONFIDENTIAL", "ConnectionRefusedError"), ("SECRET", "ConnectionRefusedError")):
        session = new_session("cni")
        podman.network("ours", session=session, level=level, cgroup="/libpod_parent/libpod-{id}")
        assert run(podman, "ours", *listens()).stdout.strip() == sent, level
        if level == "CONFIDENTIAL":
            assert run(podman, "ours", *CURL).stdout.strip() == "200"
        assert base.eventually(lambda: not net.api.sandboxes(session), 20), "and nothing is left of it"
        net.api.end(session)


def test_no_daemon_no_container(net, podman, tmp_path):
    podman.network("nobody", session="a/b", cgroup="/libpod_parent/libpod-{id}", socket=str(tmp_path / "nobody.sock"))
    p = run(podman, "nobody", "true", check=False)
    assert p.returncode != 0 and "no_daemon" in p.stderr, p
