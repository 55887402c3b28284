# SPDX-License-Identifier: MIT
"""netpawl-cni, called as a runtime calls it: variables in the environment, the configuration on standard input. The pod is a cgroup with the
name that kubelet gives it and a network namespace with a device, and nobody is in either when ADD comes; its containers are
processes in cgroups below. tests/containers has it with an engine."""
import contextlib
import json
import subprocess
import uuid

import pytest

from lib import base
from lib.box import Wired, new_session
from lib.runtimes import Net
from lib.world import FAR

PLUGIN = base.BUILD / "netpawl-cni"
RESULT = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "/x"}], "ips": [{"address": "10.1.2.3/24", "interface": 0}],
          "dns": {}}
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


class Pod:
    def __init__(self, net, systemd=False):
        self.net, self.uid, self.id = net, str(uuid.uuid4()), uuid.uuid4().hex
        self.top, self.wired, self.processes = base.cgroup_make("cni"), Wired(net.world), []
        name = f"kubepods-besteffort-pod{self.uid.replace('-', '_')}.slice" if systemd else f"pod{self.uid}"
        self.cgroup = self.top / "kubepods" / name
        self.cgroup.mkdir(parents=True)

    def call(self, command, annotations=None, config=None, version="1.0.0", result=True, netns=None, args=None, socket=None, **env):
        conf = {"cniVersion": version, "name": "pods", "type": "netpawl-cni", "capabilities": {ANNOTATIONS: True}}
        conf["netpawl"] = {"socket": str(socket or self.net.daemon.socket), **(config or {})}
        if annotations is not None:
            conf["runtimeConfig"] = {ANNOTATIONS: annotations}
        if result:
            conf["prevResult"] = {**RESULT, "cniVersion": version}
        args = args or f"IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=agent-0;K8S_POD_INFRA_CONTAINER_ID={self.id};K8S_POD_UID={self.uid}"
        env = base.env(CNI_COMMAND=command, CNI_CONTAINERID=self.id, CNI_NETNS=netns or f"/run/netns/{self.wired.name}", CNI_IFNAME="eth0",
                       CNI_PATH="/opt/cni/bin", CNI_ARGS=args, **env)
        p = subprocess.run([*self.net.world.enter(), PLUGIN], input=json.dumps(conf), capture_output=True, text=True, timeout=60, env=env)
        assert not p.stderr, p
        return p.returncode, json.loads(p.stdout) if p.stdout else None

    def add(self, session, level=None, **kw):
        annotations = {"netpawl.dev/session": session, **({"netpawl.dev/level": level} if level else {})}
        assert self.call("ADD", annotations, **kw) == (0, RESULT)
        return self.sandbox()

    def sandbox(self):
        return self.net.sandbox_of(self.cgroup)

    def start(self, *argv, wired=None):
        """A container of it: a cgroup below, and in its network."""
        cgroup = self.cgroup / uuid.uuid4().hex
        cgroup.mkdir()
        shell = f'echo $$ > {cgroup}/cgroup.procs && exec "$@"'
        p = base.popen([*self.net.world.enter((wired or self.wired).name), "sh", "-c", shell, "sh", *argv], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=base.env())
        self.processes.append(p)
        return p

    def run(self, *argv):
        return self.start(*argv).communicate(timeout=120)[0].decode()

    def stop(self):
        for p in self.processes:
            base.reap(p)
        assert base.eventually(lambda: not subprocess.run(["find", self.cgroup, "-name", "cgroup.procs", "-exec", "cat", "{}", "+"],
                                                          capture_output=True).stdout)

    def close(self):
        self.stop()
        self.call("DEL")
        self.wired.close()
        subprocess.run(["find", self.top, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"], capture_output=True)
        base.cgroup_destroy(self.top)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture
def pods(net):
    with contextlib.ExitStack() as stack:
        yield lambda **kw: stack.enter_context(contextlib.closing(Pod(net, **kw)))


CURL = ["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", "http://origin.test/"]
DIAL = ["/usr/bin/python3", "-c", f"import socket\ntry:\n s = socket.create_connection(('{FAR[4]}', 9000), 5); s.send(b'x'); print(s.recv(1))\n"
        "except OSError as e: print(type(e).__name__)"]


@pytest.mark.parametrize("systemd", [False, True], ids=["cgroupfs", "systemd"])
@pytest.mark.parametrize("level, mode, code, dialled", [("PUBLIC", "FULL", "200", "b'x'"),
                                                        ("CONFIDENTIAL", "PROXIED", "200", "ConnectionRefusedError"),
                                                        ("SECRET", "NONE", "000", "ConnectionRefusedError")])
def test_a_pod_is_a_sandbox_before_anybody_is_in_it(net, pods, systemd, level, mode, code, dialled):
    control, pod, session = pods(), pods(systemd=systemd), new_session("pod")
    assert control.run(*DIAL).strip() == "b'x'", "the control: the same without the plugin"
    info = pod.add(session, level)
    assert (info["session"], info["mode"], info["network"]) == (session, mode, "container"), info
    if level != "PUBLIC":  # FULL has the pod's own resolver, which this one lacks
        assert pod.run(*CURL) == code
    assert pod.run(*DIAL).strip() == dialled
    assert pod.call("CHECK", {"netpawl.dev/session": session}) == (0, None)


def test_versions(net, pods):
    pod, session = pods(), new_session("pod")
    status, got = pod.call("VERSION")
    assert status == 0 and {"0.4.0", "1.0.0"} <= set(got["supportedVersions"]) and got["cniVersion"] == "1.0.0"
    annotations = {"netpawl.dev/session": session}
    assert pod.call("ADD", annotations, version="0.4.0") == (0, {**RESULT, "cniVersion": "0.4.0"})
    status, got = pod.call("ADD", annotations, version="0.1.0")
    assert status == 1 and got["code"] == 1, got


def test_add_again_and_del_twice(net, pods):
    pod, session = pods(), new_session("pod")
    first = pod.add(session)
    assert pod.add(session)["sandbox"] == first["sandbox"]
    for _ in range(2):
        assert pod.call("DEL", result=False) == (0, None) and not pod.sandbox()
    status, got = pod.call("CHECK", {"netpawl.dev/session": session})
    assert status == 1 and got["code"] == 100 and "no_such_sandbox" in got["details"], got


def test_a_pod_whose_network_is_made_anew(net, pods):
    """kubelet makes another pod sandbox of the same pod, in the same cgroup; with DEL between, or (lost) without."""
    pod, session = pods(), new_session("pod")
    for gone in (True, False):
        pod.add(session, "CONFIDENTIAL")
        assert pod.run(*CURL) == "200"
        pod.stop()
        if gone:
            pod.call("DEL")
        pod.wired.close()
        pod.wired = Wired(net.world)
        pod.add(session, "CONFIDENTIAL")
        assert pod.run(*CURL) == "200"


def test_who_runs_elsewhere_is_not_moved(net, pods):
    pod, other, session = pods(), pods(), new_session("pod")
    pod.add(session, "CONFIDENTIAL")
    p = pod.start("cat")
    assert base.eventually(lambda: p.pid in base.cgroup_pids(next(d for d in pod.cgroup.iterdir() if d.is_dir())))
    status, got = pod.call("ADD", {"netpawl.dev/session": session}, netns=f"/run/netns/{other.wired.name}")
    assert status == 1 and "foreign_netns" in got["details"], got
    assert pod.call("DEL") == (0, None) and pod.sandbox(), "somebody is in it: it stays"


@pytest.mark.parametrize("netns", ["/proc/self/ns/net", "/etc/passwd", "/nowhere", "/dev/tty", "/proc/self/ns/mnt"])
def test_no_network_namespace(net, pods, netns):
    pod = pods()
    status, got = pod.call("ADD", {"netpawl.dev/session": new_session("pod")}, netns=netns)
    assert status == 1 and got["code"] == 100 and "foreign_netns" in got["details"] and not pod.sandbox(), got


@pytest.mark.parametrize("unknown, fails", [("ignore", False), ("refuse", True), ("pods/default", False)])
def test_no_annotation(net, pods, unknown, fails):
    pod = pods()
    net.unknown(unknown)
    status, got = pod.call("ADD")
    assert (status, got) == (0, RESULT) if not fails else status == 1 and got["code"] == 100, got
    assert (pod.sandbox() or {}).get("session") == (unknown if "/" in unknown else None)
    net.unknown("ignore")


def test_the_configuration_stands_in(net, pods):
    """Runtimes that pass no annotations: the session by the pod's name, and a level that no session is below."""
    pod = pods()
    assert pod.call("ADD", config={"session": "{namespace}/{pod}", "level": "CONFIDENTIAL"}) == (0, RESULT)
    assert (pod.sandbox()["session"], pod.sandbox()["mode"]) == ("team/agent-0", "PROXIED")
    net.api.end("team/agent-0")


def test_no_daemon_no_pod(net, pods, tmp_path):
    pod = pods()
    for annotations in ({"netpawl.dev/session": "a/b"}, {}):
        status, got = pod.call("ADD", annotations, socket=tmp_path / "nobody.sock")
        assert status == 1 and got["code"] == 11 and "no_daemon" in got["details"], got
    assert pod.call("DEL", socket=tmp_path / "nobody.sock") == (0, None), "and it can go"


def test_no_cgroup_no_pod(net, pods):
    pod = pods()
    args = f"IgnoreUnknown=1;K8S_POD_NAME=x;K8S_POD_UID={uuid.uuid4()}"
    status, got = pod.call("ADD", {"netpawl.dev/session": "a/b"}, args=args)
    assert status == 1 and "bad_cgroup" in got["details"], got
    status, got = pod.call("ADD", {"netpawl.dev/session": "a/b"}, args="IgnoreUnknown=1")
    assert status == 1 and "K8S_POD_UID" in got["details"], got


def test_a_cgroup_of_a_container_is_no_pods(net, pods):
    """Whoever runs in a container names cgroups below its own as he likes."""
    pod, other = pods(), pods()
    (pod.cgroup / uuid.uuid4().hex).mkdir()
    container = pod.cgroup / (uuid.uuid4().hex + uuid.uuid4().hex)
    (container / f"pod{other.uid}").mkdir(parents=True)
    assert other.add(new_session("pod"))["cgroup"] == str(other.cgroup)


def test_a_cgroup_that_the_configuration_names(net, pods):
    """Engines without pods: it is made before the engine does, and a sandbox by then."""
    pod, session = pods(), new_session("pod")
    pod.cgroup = pod.top / f"libpod-{pod.id}"
    below = str(pod.top).removeprefix(str(base.cgroup_mount()))
    config = {"session": session, "cgroup": f"{below}/libpod-{{id}}"}
    assert pod.call("ADD", config=config, args="IgnoreUnknown=1") == (0, RESULT)
    assert pod.sandbox()["network"] == "container"
    assert pod.call("DEL", config=config, args="IgnoreUnknown=1") == (0, None)
    assert not pod.cgroup.exists()


def test_a_daemon_that_starts_between(net, pods):
    """The pod's first process comes after a restart: its network is found all the same."""
    pod, session = pods(), new_session("pod")
    pod.add(session, "CONFIDENTIAL")
    net.daemon.restart()
    assert base.eventually(lambda: pod.sandbox(), 20)
    assert pod.run(*DIAL).strip() == "ConnectionRefusedError"
    assert base.eventually(lambda: pod.run(*CURL) == "200", 30), "steered once somebody shows where it lives"
