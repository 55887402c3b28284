# SPDX-License-Identifier: MIT
"""netpawl-oci-hook, fed with what a runtime says. The container is a process in a cgroup and a network namespace of its own, which
holds a socket of its runtime's, as one does that waits for its hooks. tests/containers has it with engines."""
import contextlib
import json
import socket
import subprocess

import pytest

from lib import base
from lib.box import Wired, new_session
from lib.runtimes import Net

HOOK = base.BUILD / "netpawl-oci-hook"


class Container:
    def __init__(self, net, cgroup=None, handed=()):
        self.net, self.own = net, not cgroup
        self.cgroup = cgroup or base.cgroup_make("hook")
        self.wired = Wired(net.world)
        self.near, far = socket.socketpair()
        argv = [*net.world.enter(self.wired.name), "sh", "-c", f"echo $$ > {self.cgroup}/cgroup.procs && exec cat"]
        self.process = base.popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[far.fileno(), *(s.fileno() for s in handed)])
        far.close()
        assert base.eventually(lambda: self.process.pid in base.cgroup_pids(self.cgroup))

    def hook(self, annotations=None, **more):
        state = {"ociVersion": "1.0.2", "id": "c0ffee", "status": "creating", "pid": self.process.pid, "bundle": "/b",
                 "annotations": annotations or {}, **more}
        return run(self.net, json.dumps(state))

    def sandbox(self):
        return self.net.sandbox_of(self.cgroup)

    def close(self):
        base.reap(self.process)
        self.near.close()
        self.wired.close()
        if self.own:
            base.eventually(lambda: not base.cgroup_pids(self.cgroup))
            if self.sandbox():
                self.net.api.remove(self.sandbox()["sandbox"])
            base.cgroup_destroy(self.cgroup)


def run(net, text, socket_path=None):
    return subprocess.run([*net.world.enter(), HOOK, str(socket_path or net.daemon.socket)], input=text, capture_output=True,
                          text=True, timeout=60, env=base.env())


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture
def containers(net):
    with contextlib.ExitStack() as stack:
        yield lambda **kw: stack.enter_context(contextlib.closing(Container(net, **kw)))


def test_it_is_confined_before_it_starts(net, containers):
    session, c = new_session("hook"), containers()
    # the control: what the runtime holds is a reason to refuse for who adopts it otherwise
    status, answer = net.api.ask("POST", "/v1/sandboxes", {"session": session, "cgroup": str(c.cgroup)})
    assert (status, answer["error"]) == (409, "held_sockets"), answer
    p = c.hook({"netpawl.dev/session": session, "netpawl.dev/level": "CONFIDENTIAL"})
    assert p.returncode == 0 and not p.stderr, p
    info = c.sandbox()
    assert (info["session"], info["mode"], info["network"]) == (session, "PROXIED", "container"), info
    assert net.api.show(session)["level"] == "CONFIDENTIAL"


def test_a_process_beside_it_counts(net, containers):
    """starting: is for the one that starts, and for nobody else."""
    session, c = new_session("hook"), containers()
    p = c.hook({"netpawl.dev/session": session}, pid=base.os.getpid())
    assert p.returncode != 0
    status, answer = net.api.ask("POST", "/v1/sandboxes",
                                 {"session": session, "cgroup": str(c.cgroup), "starting": base.os.getpid()})
    assert (status, answer["error"]) == (409, "held_sockets") and not c.sandbox(), answer


@pytest.mark.parametrize("kind", ["udp", "tcp", "listener", "datagrams", "in flight", "a runtime's"])
def test_what_its_runtime_was_handed(net, containers, kind):
    """--preserve-fds: a socket of the host's would send in every mode. The last one is the control: it does start with what a runtime
    holds itself."""
    family = socket.AF_INET if kind in ("udp", "tcp") else socket.AF_UNIX
    if kind in ("udp", "tcp"):
        handed, other = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM), None
    elif kind == "listener":
        handed, other = socket.socket(family), None
        handed.bind("\0" + base.unique("l"))
        handed.listen()
    else:
        handed, other = socket.socketpair(family, socket.SOCK_DGRAM if kind == "datagrams" else socket.SOCK_SEQPACKET)
    if kind == "in flight":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hidden:
            socket.send_fds(other, [b"x"], [hidden.fileno()])
    with handed, other or contextlib.nullcontext():
        c = containers(handed=[handed])
        p = c.hook({"netpawl.dev/session": new_session("hook")})
        assert p.returncode == (kind != "a runtime's"), p
        assert bool(p.stderr) == bool(p.returncode) and ("held_sockets" in p.stderr) == bool(p.returncode), p


@pytest.mark.parametrize("handed", [True, False])
def test_what_it_was_handed_in_a_cgroup_that_was_attached_before(net, containers, handed):
    """To attach once more is no error, and no way around the look either. The control was handed nothing."""
    session, cgroup = new_session("hook"), base.cgroup_make("hook")
    net.api.adopt(session, str(cgroup))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        c = containers(cgroup=cgroup, handed=[s] if handed else [])
    try:
        p = c.hook({"netpawl.dev/session": session})
        assert (p.returncode != 0, "held_sockets" in p.stderr) == (handed, handed), p
    finally:
        base.reap(c.process)
        base.eventually(lambda: not base.cgroup_pids(cgroup))
        for sandbox in net.api.sandboxes(session):
            net.api.remove(sandbox["sandbox"])
        base.cgroup_destroy(cgroup)


@pytest.mark.parametrize("unknown, code", [("ignore", 0), ("refuse", 1), ("pods/default", 0)])
def test_no_annotation(net, containers, unknown, code):
    c = containers()
    net.unknown(unknown)
    p = c.hook({"io.container.manager": "libpod"})
    assert p.returncode == code, p
    assert (c.sandbox() or {}).get("session") == (unknown if "/" in unknown else None)
    assert bool(p.stderr) == bool(code)


@pytest.mark.parametrize("text", ["", "{}", '{"id":"a","pid":1,"annotations":{"netpawl.dev/session":"../x"}}',
                                  '{"id":"a","pid":1,"annotations":{"netpawl.dev/level":"SECRET"}}', "x" * (2 << 20)],
                         ids=["nothing", "empty", "name", "level", "long"])
def test_what_is_no_state_fails_the_start(net, text):
    p = run(net, text)
    assert p.returncode == 1 and p.stderr.count("\n") == 1, p


def test_no_daemon_no_container(net, containers, tmp_path):
    c = containers()
    state = json.dumps({"id": "c", "pid": c.process.pid, "annotations": {"netpawl.dev/session": "a/b"}})
    assert run(net, state, tmp_path / "nobody.sock").returncode == 3
    assert run(net, state.replace("netpawl.dev/session", "x"), tmp_path / "nobody.sock").returncode == 3


def test_one_that_was_born_in_a_parent(net, containers):
    session = new_session("hook")
    net.api.create(session, "CONFIDENTIAL")
    parent = net.daemon.cli("parent", session, check=0).stdout.strip()
    cgroup = base.cgroup_mount() / parent.lstrip("/") / "c0ffee"
    cgroup.mkdir()
    c = containers(cgroup=cgroup)
    assert c.hook({"netpawl.dev/session": "else/where"}).returncode == 1
    assert c.hook({"netpawl.dev/session": session}).returncode == 0
    info = c.sandbox()
    assert info["born"] and info["network"] == "container" and info["mode"] == "PROXIED", info
    net.api.end(session)


@pytest.mark.parametrize("family, first", [("-4", ""), ("-6", ""), ("", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ")],
                         ids=["IPv4", "IPv6", "no IPv6"])
def test_a_born_one_whose_loopback_comes_up_late(net, family, first):
    """Runtimes bring it up after netpawld has found the namespace, and ::1 cannot be bound before, as 127.0.0.1 can."""
    session = new_session("late")
    net.api.create(session, "CONFIDENTIAL")
    cgroup = base.cgroup_mount() / net.daemon.cli("parent", session, check=0).stdout.strip().lstrip("/") / "c0ffee"
    cgroup.mkdir()
    shell = (f"{first}echo $$ > {cgroup}/cgroup.procs && read go && ip link set lo up && "
             f"exec curl {family} -s -m 20 -o /dev/null -w '%{{http_code}}' http://origin.test/")
    p = base.popen([*net.world.enter(), "unshare", "--net", "sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=base.env())
    try:
        of = lambda: [s for s in net.api.sandboxes(session) if s["born"] and s["network"] == "container"]
        assert base.eventually(of, 20), net.api.sandboxes(session)
        assert p.communicate(b"go\n", timeout=180)[0].decode() == "200"
    finally:
        base.reap(p)
        net.api.end(session)


@pytest.mark.parametrize("mode, code", [("CONFIDENTIAL", "200"), ("SECRET", "000")])
def test_a_born_one_gets_its_network_without_the_hook(net, mode, code):
    """The inspector listens in the network namespace that its processes turn out to be in."""
    session, wired = new_session("born"), Wired(net.world)
    net.api.create(session, mode)
    parent = net.daemon.cli("parent", session, check=0).stdout.strip()
    cgroup = base.cgroup_mount() / parent.lstrip("/") / "c0ffee"
    cgroup.mkdir()
    shell = f"echo $$ > {cgroup}/cgroup.procs && read go && exec curl -s -m 20 -o /dev/null -w '%{{http_code}}' http://origin.test/"
    p = base.popen([*net.world.enter(wired.name), "sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=base.env())
    try:
        of = lambda: [s for s in net.api.sandboxes(session) if s["born"] and s["network"] == "container"]
        assert base.eventually(of, 20), net.api.sandboxes(session)
        assert p.communicate(b"go\n", timeout=180)[0].decode() == code
    finally:
        base.reap(p)
        net.api.end(session)
        wired.close()


def test_the_file_for_engines(tmp_path):
    text = (base.ROOT / "netpawl-hook.json.in").read_text().replace("@PREFIX@", "/usr")
    hook = json.loads(text)
    assert hook["hook"]["path"] == "/usr/sbin/netpawl-oci-hook" and hook["stages"] == ["createRuntime"]
    assert list(hook["when"]["annotations"]) == [r"^netpawl\.dev/session$"]
