# SPDX-License-Identifier: MIT
"""TLS through the inspector from containers whose root file systems are laid out as those of the field: their programs trust the session's
authority, and nothing in the image was changed. Told: by the variables. Bare: without any, by the files alone. The control is the
same container in the same sandbox with nothing of netpawl's mounted: it does not trust."""
import contextlib

import pytest

import roots
from lib import base
from lib.box import new_session
from lib.inspected import Inspected
from lib.java import JAVA

POLICY = """version: 1
rules:
  - allow: origin.test
"""
URL = "https://origin.test/x"
CURL = ["/usr/bin/curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", URL]
WGET = ["/usr/bin/wget", "-q", "-T", "60", "-t", "1", "-O", "-", URL]
BUSYBOX = ["wget", "-q", "-O", "-", URL]  # its -T ends it with a signal where TLS is openssl's
PYTHON = ["/usr/bin/python3", "-c", f"import urllib.request as u; print(u.urlopen('{URL}', timeout=60).status)"]
BARE = ["/usr/bin/python3", "-c", "import os, sys; os.execve(sys.argv[1], sys.argv[1:], {})"]
JAVA_BARE = ["env", "-u", "JAVA_TOOL_OPTIONS", "sh", "-c", JAVA]
KINDS = {
    "debian": (roots.debian, {"curl": CURL, "wget": WGET, "python": PYTHON, "curl-bare": [*BARE, *CURL], "python-bare": [*BARE, *PYTHON]}),
    "busybox": (roots.busybox, {"wget": BUSYBOX}),
    "alpine": (roots.alpine, {"curl": CURL, "python": PYTHON, "curl-bare": [*BARE, *CURL], "python-bare": [*BARE, *PYTHON]}),
    "rhel": (roots.rhel, {"wget": WGET, "python": PYTHON, "python-bare": [*BARE, *PYTHON]}),
    "distroless": (roots.distroless, {"curl": CURL}),
    "java": (roots.java, {"java": ["sh", "-c", JAVA], "java-bare": JAVA_BARE}),
    "java-rhel": (roots.java_rhel, {"java": ["sh", "-c", JAVA], "java-bare": JAVA_BARE}),
    "java-own": (roots.java_own, {"java": ["sh", "-c", JAVA]}),
}
NONE = ["--network", "none"]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY, bridged=True)


@pytest.fixture
def session(net):
    name = new_session("roots")
    net.api.create(name, "CONFIDENTIAL")
    yield name
    net.api.end(name)


def trusted(p):
    return p.returncode == 0 and ("200" in p.stdout or "origin" in p.stdout)


def distrusted(name, p):
    """It came to the handshake, and ended it. wget and busybox say little more than that."""
    if name == "wget":
        return p.returncode == 5 or "error getting response" in p.stderr
    return any(words in p.stderr for words in ("unable to get local issuer certificate", "PKIX path building failed"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_of_the_wrapper(net, engine, session, kind):
    root, clients = KINDS[kind]
    parent = net.daemon.cli("parent", session, check=0).stdout.strip()
    more = ["--cgroups", "no-conmon"] if engine.name == "podman" else []
    for name, words in clients.items():  # before anything has been mounted: an engine leaves the places of its mounts behind
        p = engine.call("run", "--rm", *NONE, "--cgroup-parent", parent, *more, *engine.image(root), *words, check=False)
        assert distrusted(name, p), f"the control: {name}: {p}"
    for name, words in clients.items():
        p = engine.netpawl("run", "--rm", *NONE, *engine.image(root), *words, session=session, check=False)
        assert trusted(p), (name, p)


def test_a_container_that_runs_already(net, engine, session, tmp_path):
    """It was started with nothing of ours: the files are copied to it, and what is started in it is given the variables. What reads the
    image's own bundle finds it replaced."""
    name, trust, variables = base.unique("c"), tmp_path / "trust", tmp_path / "env"
    trust.mkdir()
    engine.started.append(name)
    engine.call("run", "-d", "--name", name, *NONE, *engine.image(roots.alpine), "/usr/bin/python3", "-c", "import time; time.sleep(3600)")
    pid = engine.call("inspect", "--format", "{{.State.Pid}}", name).stdout.strip()
    net.daemon.cli("attach", session, "--pid", pid, check=0)
    fetch = lambda *words: engine.call("exec", *words, check=False)
    assert distrusted("curl", fetch(name, *CURL)), "the control"
    text = net.daemon.cli("env", session, "--dir", trust, "--at", "/run/netpawl", check=0).stdout
    variables.write_text(text.replace("export ", "").replace("'", ""))
    engine.call("cp", f"{trust}/.", f"{name}:/run/netpawl")
    for client in (CURL, PYTHON):
        p = fetch("--env-file", variables, name, *client)
        assert trusted(p), p
        p = fetch(name, *client)
        assert distrusted("curl", p), f"the control: what nobody told: {p}"
    engine.call("cp", trust / "bundle.pem", f"{name}:/etc/ssl/certs/ca-certificates.crt")
    for client in (CURL, PYTHON):
        p = fetch(name, *client)
        assert trusted(p), p
    engine.remove(name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_of_the_hooks(net, engine, session, kind, tmp_path):
    """Podman's stage precreate: the container's configuration gets mounts and variables before there is a container."""
    if engine.name != "podman":
        return  # Docker has no hooks
    root, clients = KINDS[kind]
    run = lambda words, *more: engine.call("run", "--rm", *NONE, "--annotation", f"netpawl.dev/session={session}", *more,
                                           *engine.image(root), *words, check=False)
    with engine.hook("netpawl-hook.json"):
        with engine.hook("netpawl-trust.json"):
            for name, words in clients.items():
                p = run(words, "--ulimit", "core=-1")
                assert trusted(p), (name, p)
        with engine.hook("netpawl-trust.json", tmp_path / "nobody.sock"):
            assert run(["true"]).returncode != 0, "no daemon, no start"


def test_what_is_said_to_the_engine_wins(net, engine, session, tmp_path):
    if engine.name != "podman":
        return
    own = tmp_path / "own.pem"
    own.write_text("nothing\n")
    show = ["/usr/bin/python3", "-c", "import os; print(open('/etc/ssl/ca-bundle.pem').read()[:7], os.environ['PIP_CERT'], os.environ['SSL_CERT_FILE'])"]
    with engine.hook("netpawl-hook.json"), engine.hook("netpawl-trust.json"):
        p = engine.call("run", "--rm", *NONE, "--annotation", f"netpawl.dev/session={session}", "-e", "PIP_CERT=mine",
                        "-v", f"{own}:/etc/ssl/ca-bundle.pem:ro", *engine.image(roots.alpine), *show)
    assert p.stdout.split() == ["nothing", "mine", "/run/netpawl/bundle.pem"]


def test_a_bundle_is_made_anew(net, engine, session):
    """As the package ca-certificates does when it is installed: it cannot replace what is mounted. Where bundles are kept it can, and
    takes the session's authority up."""
    update = lambda *ours: engine.netpawl("run", "--rm", *NONE, *engine.image(), "sh", "-c", f"update-ca-certificates && env -i {' '.join(CURL)}",
                                          session=session, check=False, ours=ours)
    p = update()
    assert p.returncode != 0 and "busy" in p.stderr, p
    p = update("--keep-bundles")
    assert trusted(p), p
