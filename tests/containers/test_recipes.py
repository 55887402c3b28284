# SPDX-License-Identifier: MIT
"""What docs/containers.md has its readers paste, pasted. Other are the name of the session, the directory of what is trusted, and the image,
which has the name of the field's and is made of Debian's packages."""
import contextlib
import re
import subprocess

import pytest

import roots
from lib import base
from lib.box import new_session
from lib.engines import Docker, Podman
from lib.inspected import Inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: origin.test
"""
CURL = ["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/x"]
DIAL = ["python3", "-c", f"import socket; print(socket.socket().connect_ex(('{FAR[4]}', 9000)))"]


def blocks(section):
    """The lines to paste of a section, and its block of YAML."""
    text = (base.ROOT / "docs/containers.md").read_text()
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    yaml = re.search(r"^```yaml\n(.*?)^```", part, re.M | re.S)
    lines = [line[4:] for line in part.splitlines() if line.startswith("    ") and not (yaml and line in yaml.group(1))]
    assert 3 <= len(lines) <= 10, lines
    return lines, yaml and yaml.group(1)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, policy=POLICY, bridged=True, in_memory=True)


def engine_of(net, kind, **kw):
    engine = kind(net.world, **kw)
    root = engine.dir / "debian"
    roots.debian(root)
    roots.pack(root, engine.dir / "debian.tar")
    engine("import", engine.dir / "debian.tar", "debian", timeout=600)
    return engine


@pytest.fixture(scope="module")
def docker(net):
    with contextlib.closing(engine_of(net, Docker)) as engine:
        yield engine


@pytest.fixture(scope="module")
def podman(net):
    with contextlib.closing(engine_of(net, Podman, driver="overlay")) as engine:
        yield engine


@pytest.fixture
def session(net):
    """A level stays with its name, whatever becomes of the session: each test has one of its own."""
    name = new_session("recipe")
    yield name
    net.api.end(name)


@pytest.fixture
def paste(net, session, tmp_path):
    def run(engine, lines, **more):
        env = {**engine.env, "NETPAWL_SOCKET": str(net.daemon.socket), "PATH": f"{base.BUILD}:{engine.env['PATH']}", **more}
        text = "\n".join(lines).replace("/srv/", f"{tmp_path}/").replace("alice/demo", session)
        p = subprocess.run([*net.world.enter(), "bash", "-e"], input=text, capture_output=True, text=True, timeout=300, env=env, cwd=tmp_path)
        assert p.returncode == 0, f"{text}\n{p.stdout}{p.stderr}"
        return p.stdout

    return run


def until(lines, word):
    """Those before the first with that word, and the others."""
    at = next(i for i, line in enumerate(lines) if word in line)
    return lines[:at], lines[at:]


def level(net, session):
    return next(s["level"] for s in net.api.ok("GET", "/v1/sessions")["sessions"] if s["session"] == session)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_first_container(net, name, session, paste, request):
    engine = request.getfixturevalue(name)
    before, after = until(blocks(name.capitalize())[0], "rm -f")
    out = paste(engine, before)
    assert "uid=0" in out and session in out
    assert base.eventually(lambda: [s for s in net.api.sandboxes(session) if s["born"]], 20)
    if name == "docker":
        assert level(net, session) == "CONFIDENTIAL" and engine("exec", "agent", *CURL) == "200"
    else:
        assert level(net, session) == "SECRET"
    assert engine("exec", "agent", *DIAL) == "111"
    paste(engine, after)
    assert base.eventually(lambda: not [s for s in net.api.sandboxes(session) if s["born"]], 20)


def test_one_that_runs_already(net, docker, session, paste, tmp_path):
    net.api.create(session, "CONFIDENTIAL")
    lines, _ = blocks("A container that runs already")
    before, after = until(lines, "mkdir")
    paste(docker, before)
    try:
        assert docker("exec", "running", *CURL, check=False) == "000", "the control: nothing tells it whom to trust"
        assert "uid=0" in paste(docker, after)
        assert docker("exec", "--env-file", tmp_path / "trust.env", "running", *CURL) == "200"
        assert docker("exec", "running", *CURL) == "200", "by the bundle alone"
        assert docker("exec", "running", *DIAL) == "111"
    finally:
        docker("rm", "-f", "running", check=False)


def test_compose(net, docker, session, paste, tmp_path):
    net.api.create(session, "CONFIDENTIAL")
    lines, yaml = blocks("Compose")
    (tmp_path / "docker-compose.yml").write_text(yaml.replace("/srv/", f"{tmp_path}/"))
    paste(docker, lines, COMPOSE_PROJECT_NAME="nptest")
    try:
        container, = docker("ps", "-q", "--filter", "label=com.docker.compose.service=agent").split()
        assert docker("exec", container, *CURL) == "200" and docker("exec", container, *DIAL) == "111"
        assert base.eventually(lambda: [s for s in net.api.sandboxes(session) if s["born"]], 20)
    finally:
        paste(docker, ["docker-compose down -t 0"], COMPOSE_PROJECT_NAME="nptest", PARENT="/")
