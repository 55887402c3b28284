# SPDX-License-Identifier: MIT
"""Containers of real engines that are born in a sandbox: netpawl parent, netpawl docker, netpawl podman."""
import contextlib

import pytest

from engines import Docker, Podman
from lib import base
from lib.box import new_session
from lib.inspected import Inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: origin.test
    paths: ["/open/**"]
"""
LEVEL = {"FULL": "PUBLIC", "PROXIED": "CONFIDENTIAL", "NONE": "SECRET"}


class Net(Inspected):
    def __init__(self, stack):
        super().__init__(stack, policy=POLICY, bridged=True)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@pytest.fixture(scope="module", params=[Podman, Docker], ids=["podman", "docker"])
def engine(net, request):
    with contextlib.closing(request.param(net)) as engine:
        yield engine


@pytest.fixture
def sessions(net):
    made = []

    def make(mode):
        made.append(new_session("born"))
        net.api.create(made[-1], LEVEL[mode])
        return made[-1]

    yield make
    for session in made:
        net.api.end(session)


def dial(port=9000):
    return ["python3", "-c", f"import socket; s = socket.create_connection(('{FAR[4]}', {port}), 5); s.send(b'x'); print(s.recv(1))"]


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
