# SPDX-License-Identifier: MIT
"""deploy/kubernetes: the node agent with exactly the capabilities and mounts of its manifest adopts a container beside it and a pod that
comes by the CNI plugin; when it is down, running ones keep the gate and new ones do not start."""
import contextlib
import json
import shutil
import subprocess
import uuid

import pytest

import node
from lib import base
from lib.box import Wired, new_session
from lib.engines import Contained, Podman
from lib.origins import Origins
from lib.world import FAR, World
from roots import CACHE

POLICY = """version: 1
rules:
  - allow: origin.test
"""


class Node:
    def __init__(self, stack):
        self.world = World(tcp_ports=(53, 8080, 9000), bridged=True)
        stack.callback(self.world.close)
        self.origins = Origins(self.world)
        stack.callback(self.origins.close)
        self.engine = Podman(self.world, driver="overlay")  # it builds images
        stack.callback(self.engine.close)
        etc = base.tempdir("etc")
        stack.callback(base.drop_tempdir, etc)
        (etc / "policy.yaml").write_text(POLICY)
        (etc / "roots.pem").write_bytes(self.origins.authority.pem.read_bytes())
        more = ["--resolvers", self.origins.resolvers, "--roots", "/etc/netpawl/roots.pem"]
        self.daemon = node.NodeDaemon(self.world, self.engine, etc, more=more, inspectors=2, in_memory=True)
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api = self.daemon.api
        assert base.eventually(lambda: self.api.health()["inspectors"] == 2, 60), self.daemon.text()[-2000:]


@pytest.fixture(scope="module")
def agent():
    with contextlib.ExitStack() as stack:
        yield Node(stack)


def reach(box):
    return box.try_("dial", family=4, addr=FAR[4], port=9000, kind="stream", data="x", recv=10, timeout=2)


def ask(box):
    return box.payload("channels", "ask", addr=FAR[4], port=80, local=20001, host="origin.test", paths=["/x"])


@pytest.mark.parametrize("mode", ["FULL", "PROXIED", "NONE"])
def test_a_sibling_is_adopted(agent, mode):
    before = []
    box = Contained(agent.daemon, mode, engine=agent.engine, options=("--network", "none"), before=lambda a: before.append(reach(a)))
    with contextlib.closing(box):
        assert before == ["ok"] and box.info["network"] == "container", "the control"
        assert reach(box.agent) == ("ok" if mode == "FULL" else "ECONNREFUSED")
        if mode == "PROXIED":
            assert ask(box) == (0, {"statuses": [200]})
        if mode != "NONE":
            assert agent.api.escalate(box.session, "SECRET")["mode"] == "NONE" and reach(box.agent) == "ECONNREFUSED"


def plugin(agent, wired, uid, session):
    conf = {"cniVersion": "1.0.0", "name": "n", "type": "netpawl-cni", "prevResult": {}, "netpawl": {"socket": str(agent.daemon.socket), "session": session}}
    env = base.env(CNI_COMMAND="ADD", CNI_CONTAINERID=uuid.uuid4().hex, CNI_NETNS=f"/run/netns/{wired.name}", CNI_IFNAME="eth0",
                   CNI_ARGS=f"K8S_POD_UID={uid}")
    return subprocess.run([base.BUILD / "netpawl-cni"], input=json.dumps(conf), capture_output=True, text=True, timeout=60, env=env)


def test_a_pod_by_the_plugin_and_an_agent_that_is_down(agent):
    session, uid, top, wired = new_session("pod"), str(uuid.uuid4()), base.cgroup_make("node"), Wired(agent.world)
    pod = top / f"pod{uid}"
    pod.mkdir()
    agent.api.create(session, "CONFIDENTIAL")
    # by the far address: the inspector goes by the Host
    curl = ["sh", "-c", f"echo $$ > {pod}/cgroup.procs && exec curl -s -m 20 -o /dev/null -w '%{{http_code}}' -H 'Host: origin.test' http://{FAR[4]}/"]
    run = lambda: subprocess.run([*agent.world.enter(wired.name), *curl], capture_output=True, text=True, timeout=60).stdout
    try:
        assert plugin(agent, wired, uid, session).returncode == 0
        assert run() == "200"
        agent.daemon.stop()
        assert run() == "000", "the gate stays, and nobody inspects"
        p = plugin(agent, wired, uid, session)
        assert p.returncode == 1 and json.loads(p.stdout)["code"] == 11, "no agent, no pod"
        agent.daemon.start()
        assert base.eventually(lambda: agent.api.health()["inspectors"] == 2, 60)
        assert plugin(agent, wired, uid, session).returncode == 0 and run() == "200"
    finally:
        base.eventually(lambda: not base.cgroup_pids(pod))
        for sandbox in agent.api.sandboxes(session):
            agent.api.remove(sandbox["sandbox"])
        agent.api.end(session)
        wired.close()
        pod.rmdir()
        base.cgroup_destroy(top)


POD = {"hostPID", "hostNetwork", "automountServiceAccountToken", "priorityClassName", "nodeSelector", "tolerations",
       "terminationGracePeriodSeconds", "initContainers", "containers", "volumes"}
CONTAINER = {"name", "image", "command", "args", "securityContext", "readinessProbe", "resources", "volumeMounts"}
SECURITY = {"privileged", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "seccompProfile", "appArmorProfile", "capabilities"}
SCHEMA = """
const models = {}
for (const m of ["kubernetes-models/v1", "kubernetes-models/apps/v1"]) Object.assign(models, require(m))
const objects = JSON.parse(require("fs").readFileSync(0))
for (const o of objects) new models[o.kind](o).validate()
console.log(objects.length)
"""


def test_the_manifest_is_one_of_kubernetes():
    """By the schemas of Kubernetes' own API; and what they do not tell: a field that is not known, names that do not meet."""
    where = CACHE / "kubernetes-models"
    if not shutil.which("npm"):
        pytest.skip("npm is not there to fetch the schemas")
    if not (where / "node_modules").exists():
        where.mkdir(parents=True, exist_ok=True)
        base.sh("npm", "install", "--no-audit", "--no-fund", "--prefix", where, "kubernetes-models", timeout=600)
    check = lambda objects: subprocess.run(["node", "-e", SCHEMA], input=json.dumps(objects), capture_output=True, text=True, cwd=where, timeout=120)
    documents = node.documents()
    p = check(documents)
    assert p.returncode == 0 and p.stdout.strip() == str(len(documents)), p.stderr[-2000:]
    wrong = json.loads(json.dumps(documents))
    wrong[-1]["spec"]["template"]["spec"]["hostPID"] = "yes"
    assert check(wrong).returncode != 0, "the control"
    spec = node.pod()
    assert set(spec) <= POD
    for container in spec["containers"] + spec["initContainers"]:
        assert set(container) <= CONTAINER and set(container["securityContext"]) <= SECURITY
    labels = documents[-1]["spec"]["template"]["metadata"]["labels"]
    assert documents[-1]["spec"]["selector"]["matchLabels"] == labels
    volumes = {v["name"] for v in spec["volumes"]}
    assert {m["name"] for c in spec["containers"] + spec["initContainers"] for m in c["volumeMounts"]} == volumes
    assert spec["automountServiceAccountToken"] is False and not [d for d in documents if "Role" in d["kind"]]


def test_its_policy(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(next(d for d in node.documents() if d["kind"] == "ConfigMap")["data"]["policy.yaml"])
    p = subprocess.run([base.NETPAWL, "policy", "check", file], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p
