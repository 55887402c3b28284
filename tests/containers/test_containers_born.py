# SPDX-License-Identifier: MIT
"""Containers of real engines that are born in a sandbox: netpawl parent, netpawl docker, netpawl podman."""
import contextlib

import pytest

from engines import dial
from lib import base
from lib.inspected import Inspected

POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""


class Net(Inspected):
    def __init__(self, stack):
        super().__init__(stack, policy=POLICY, bridged=True)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


def test_first_request(net, engine, sessions):
    """With nothing between the start and the request, and nothing in the image but Debian's packages: by name, with TLS."""
    session = sessions("PROXIED")
    for client in (["curl", "-sS", "-m", "20"], ["wget", "-q", "-T", "20", "-t", "1", "-O", "-"],
                   ["python3", "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"]):
        p = engine.netpawl("run", "--rm", "--network", "none", *engine.image(), *client, "https://origin.test/open/x",
                           session=session)
        assert "origin" in p.stdout, p
    p = engine.netpawl("run", "--rm", "--network", "none", *engine.image(), "curl", "-sS", "-m", "20", "-o", "/dev/null", "-w",
                       "%{http_code}", "https://origin.test/shut", session=session)
    assert p.stdout == "403"


def test_every_first_request(net, engine, sessions):
    """Without the hook nobody waits for the listeners: they are there in time all the same."""
    session = sessions("PROXIED")
    for i in range(5):
        p = engine.netpawl("run", "--rm", "--network", "none", *engine.image(), "curl", "-sS", "-m", "20",
                           f"http://origin.test/open/{i}", session=session)
        assert "origin" in p.stdout, p


@pytest.mark.parametrize("mode", ["NONE", "PROXIED"])
def test_nothing_else_gets_out(net, engine, sessions, mode):
    session = sessions(mode)
    parent = net.daemon.cli("parent", session, check=0).stdout.strip()
    more = ["--cgroups", "no-conmon"] if engine.name == "podman" else []
    words = ["run", "--rm", "--network", "host"]
    # the control: the same container in no parent
    assert engine.call(*words, *engine.image(), *dial()).stdout.strip() == "b'x'"
    p = engine.call(*words, "--cgroup-parent", parent, *more, *engine.image(), *dial(), check=False)
    assert p.returncode != 0 and "ConnectionRefusedError" in p.stderr, p


def test_an_escalation_cuts_it(net, engine, sessions):
    session, name = sessions("FULL"), base.unique("c")
    engine.started.append(name)
    engine.netpawl("run", "-d", "--name", name, "--network", "host", *engine.image(), "sleep", "300", session=session)
    assert engine.call("exec", name, *dial()).stdout.strip() == "b'x'"
    born, = [s for s in net.api.sandboxes(session) if s["born"]]
    assert born["mode"] == "FULL" and born["container"]["id"], born
    assert net.api.escalate(session, "SECRET")["mode"] == "NONE"
    p = engine.call("exec", name, *dial(), check=False)
    assert p.returncode != 0 and "ConnectionRefusedError" in p.stderr, p
    engine.remove(name)
    gone = lambda: not [s for s in net.api.sandboxes(session) if s["born"]]
    assert base.eventually(gone, 30) and [s for s in net.api.sandboxes(session) if s["parent"]]


def test_the_hook(net, engine, sessions, tmp_path):
    if engine.name != "podman":
        return  # Docker has no directory of hooks
    session = sessions("PROXIED")
    curl = ["curl", "-sS", "-m", "20", "http://origin.test/open/x"]
    words = ["run", "--rm", "--network", "none", "--annotation", f"netpawl.dev/session={session}"]
    with engine.hook("netpawl-hook.json"):
        assert "origin" in engine.call(*words, *engine.image(), *curl).stdout
        p = engine.call("run", "--rm", "--network", "none", *engine.image(), *curl, check=False)
        assert p.returncode == 6, "the control: without the annotation it is nobody's, and has no network"
    with engine.hook("netpawl-hook.json", tmp_path / "nobody.sock"):
        p = engine.call(*words, *engine.image(), "true", check=False)
        assert p.returncode != 0, "no daemon, no start"
