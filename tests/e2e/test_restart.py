# SPDX-License-Identifier: MIT
"""What a running sandbox notices of a daemon that ends and comes back: as little as can be. That the gate never opens meanwhile
is in test_takeover.py."""
import contextlib
import json
import os
import pathlib

import pytest

from lib import base
from lib.box import new_session
from lib.crowd import Crowd
from lib.inspected import Inspected

# A program that reads whom it trusts once, and then asks again and again.
CLIENT = """
import http.client, socket, ssl, sys, time
context = ssl.create_default_context()
end = time.monotonic() + 1200
while time.monotonic() < end:
    try:
        c = http.client.HTTPSConnection("origin.test", timeout=20, context=context)
        c.request("GET", "/x")
        said = str(c.getresponse().status)
        c.close()
    except ssl.SSLCertVerificationError as e:
        said = "untrusted"
    except OSError as e:
        said = "none"
    except http.client.HTTPException:
        said = "none"
    print(said, flush=True)
    time.sleep(0.02)
"""


class Client:
    """It runs in a sandbox; what it said since mark()."""

    def __init__(self, net, session=None):
        self.path = base.tempdir("client") / "said"
        with open(self.path, "w") as out:
            self.process = net.spawn(base.PYTHON, "-c", CLIENT, session=session, stdout=out)
        self.at = 0

    def mark(self):
        self.at = self.path.stat().st_size

    def said(self):
        return self.path.read_text()[self.at:].split("\n")[:-1]

    def wait(self, word, count=3):
        assert base.eventually(lambda: self.said().count(word) >= count, 30), (self.said()[-20:], self.process.poll())

    def close(self):
        base.reap(self.process)
        base.drop_tempdir(self.path.parent)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack, in_memory=True)


@pytest.fixture
def client(net):
    c = Client(net)
    try:
        c.wait("200")
        yield c
    finally:
        c.close()


def ca_files(net):
    return sorted((net.daemon.run_dir / "cas").iterdir())


def ca_file(net, session=None):
    return net.daemon.run_dir / "cas" / (session or net.session).replace("/", ",")


def pem_of(net, session=None):
    def get():
        status, _, pem = net.api.raw("GET", f"/v1/sessions/{session or net.session}/ca")
        return pem if status == 200 else None
    pem = base.eventually(get, 10)
    assert pem
    return pem


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_trust_outlives_the_daemon(net, client, how):
    """A program that has read the CA goes on without being started again."""
    before = pem_of(net)
    getattr(net.daemon, how)()
    client.mark()
    net.daemon.start()
    client.wait("200", 5)
    assert "untrusted" not in client.said()
    assert pem_of(net) == before
    assert "the CAs of sessions outlive the daemon" in net.daemon.cli("doctor").stdout


def test_control_without_memory():
    """On a disk no key is kept: the program does not trust what comes after a restart, and the daemon says so."""
    with contextlib.ExitStack() as stack:
        net = Inspected(stack)
        client = Client(net)
        stack.callback(client.close)
        client.wait("200")
        before = pem_of(net)
        assert not ca_files(net)
        net.daemon.restart("kill")
        client.mark()
        client.wait("untrusted")
        assert pem_of(net) != before
        assert "is not in memory" in net.daemon.text()
        assert "programs that run in PROXIED" in net.daemon.cli("doctor").stdout
        assert not ca_files(net)


def test_ca_file_is_roots_alone(net):
    path = ca_file(net)
    st = path.stat()
    assert (st.st_mode & 0o7777, st.st_uid, st.st_nlink) == (0o600, 0, 1)
    assert path.parent.stat().st_mode & 0o7777 == 0o700
    # the next sandbox of the session does not make another
    before = path.read_bytes()
    assert net.run("true").returncode == 0
    assert path.read_bytes() == before


def test_ca_file_goes_with_the_last_sandbox(net):
    """And its bytes with it: who had opened it finds zeroes."""
    session = new_session("short")
    net.api.create(session, "CONFIDENTIAL")
    first = net.spawn("sleep", "infinity", session=session)
    second = net.spawn("sleep", "infinity", session=session)
    try:
        assert base.eventually(lambda: len(net.api.sandboxes(session)) == 2, 10)
        pem_of(net, session)
        with open(ca_file(net, session), "rb") as held:
            assert any(held.read())
            base.reap(first)
            assert base.eventually(lambda: len(net.api.sandboxes(session)) == 1, 10)
            assert ca_file(net, session).exists()
            base.reap(second)
            assert base.eventually(lambda: not ca_file(net, session).exists(), 10)
            held.seek(0)
            assert not any(held.read())
    finally:
        base.reap(first)
        base.reap(second)


def break_byte(path):
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)


def cut_short(path):
    os.truncate(path, path.stat().st_size - 1)


def open_to_others(path):
    path.chmod(0o640)


def link_hard(path):
    os.link(path, path.parent.parent / "second-name")


def link_soft(path):
    target = path.parent.parent / "moved"
    path.rename(target)
    path.symlink_to(target)


def give_away(path):
    os.chown(path, 65534, 0)


def empty(path):
    path.write_bytes(b"")


def no_file(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("harm", [break_byte, cut_short, open_to_others, link_hard, link_soft, give_away, empty, no_file])
def test_a_ca_file_that_is_not_whole_is_not_trusted(net, harm):
    before = pem_of(net)
    net.daemon.kill()
    harm(ca_file(net))
    net.daemon.start()
    after = pem_of(net)
    assert after != before
    assert "it gets a new one" in net.daemon.text()
    net.daemon.restart("kill")
    assert pem_of(net) == after, "and the new one is kept"
    for name in ("second-name", "moved"):
        (net.daemon.run_dir / name).unlink(missing_ok=True)


def test_another_sessions_ca_is_not_trusted(net):
    """Its file is whole, but it is not this session's."""
    other = new_session("other")
    net.api.create(other, "CONFIDENTIAL")
    keeper = net.spawn("sleep", "infinity", session=other)
    try:
        assert base.eventually(lambda: net.api.sandboxes(other), 10)
        before, others = pem_of(net), pem_of(net, other)
        net.daemon.kill()
        ca_file(net).write_bytes(ca_file(net, other).read_bytes())
        net.daemon.start()
        assert pem_of(net, other) == others, "the control: where it belongs it is taken"
        assert pem_of(net) not in (before, others)
    finally:
        base.reap(keeper)


def test_many_sessions_kill_no_inspector():
    """A restart hands every session and its CA to every inspector: none of them is taken for hung because of that."""
    with contextlib.ExitStack() as stack:
        net = Inspected(stack, in_memory=True)
        crowd = Crowd(net.daemon)
        stack.callback(crowd.close)
        crowd.grow(300)
        before = {i: pem_of(net, f"crowd/s{i}") for i in (0, 150, 299)}
        for how in ("kill", "kill", "stop"):
            net.daemon.restart(how)
            workers = net.daemon.workers()
            # every session has its CA again, also the one that was asked for last
            assert {i: pem_of(net, f"crowd/s{i}") for i in before} == before
            assert base.eventually(lambda: len(ca_files(net)) == 301, 20)
            net.api.escalate(f"crowd/s{len(crowd.processes) // 2}", "CONFIDENTIAL")
            assert base.eventually(lambda: net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/x").stdout == "200", 30)
            assert net.daemon.workers() == workers and len(workers) == 2
        assert " ended: " not in net.daemon.text()


def test_what_a_crash_left_is_swept(net):
    cas = net.daemon.run_dir / "cas"
    net.daemon.kill()
    (cas / "nobody,here").write_bytes(b"secret" * 100)
    (cas / "nobody,here,new").write_bytes(b"secret" * 100)
    with open(cas / "nobody,here", "rb") as held:
        net.daemon.start()
        assert ca_files(net) == [ca_file(net)]
        assert not any(held.read())


def test_uninstall_leaves_no_key():
    with contextlib.ExitStack() as stack:
        net = Inspected(stack, in_memory=True)
        assert ca_files(net)
        net.daemon.stop()
        assert ca_files(net), "an end that is not for good keeps them"
        net.daemon.uninstall()
        assert not ca_files(net)


# -- launched runs ----------------------------------------------------------------------------

def launch(net, script):
    """A run that prints, waits for a file, prints again, and ends with 3."""
    session = new_session("launch")
    net.api.create(session)
    ident = net.api.ok("POST", "/v1/runs", {"session": session, "command": ["sh", "-c", script], "launch": {}})["run"]
    return session, ident


def said(net, ident, name="stdout"):
    status, _, text = net.api.raw("GET", f"/v1/runs/{ident}/output?follow=0")
    assert status == 200, text
    return "".join(line["data"] for line in map(json.loads, text.splitlines()) if line.get("stream") == name)


def go_file(net, session):
    """What the run waits for."""
    return pathlib.Path(net.daemon.cli("path", session, "/workspace/go", check=0).stdout.strip())


WAITS = "while [ ! -e go ]; do sleep 0.05; done; "


def ended(net, ident):
    return base.eventually(lambda: (row := net.api.ok("GET", f"/v1/runs/{ident}"))["state"] not in ("pending", "running") and row, 30)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_output_of_a_launched_run_outlives_the_daemon(net, how):
    session, ident = launch(net, f"echo one; echo err >&2; {WAITS} echo two; exit 3")
    assert base.eventually(lambda: said(net, ident) == "one\n" and said(net, ident, "stderr") == "err\n", 20)
    net.daemon.restart(how)
    assert (said(net, ident), said(net, ident, "stderr")) == ("one\n", "err\n")
    go_file(net, session).write_text("")
    row = ended(net, ident)
    assert row["state"] == "completed" and row["result"]["exit_code"] == 3, row
    assert base.eventually(lambda: said(net, ident) == "one\ntwo\n", 10), said(net, ident)
    net.daemon.restart(how)
    assert said(net, ident) == "one\ntwo\n", "one that has ended is kept as well"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_launched_run_that_ends_without_a_daemon(net, how):
    """Its launcher tries until it is heard; what it printed meanwhile is there."""
    runs = [launch(net, f"echo one; {WAITS} echo two; exit {i}") for i in range(4)]
    for _, ident in runs:
        assert base.eventually(lambda: said(net, ident) == "one\n", 20)
    files = [go_file(net, session) for session, _ in runs]
    cgroups = [pathlib.Path(net.api.sandboxes(session)[0]["cgroup"]) for session, _ in runs]
    getattr(net.daemon, how)()
    for path in files:
        path.write_text("")
    for cgroup in cgroups:
        assert base.eventually(lambda: not base.cgroup_pids(cgroup), 20), "they have ended"
    net.daemon.start()
    for i, (_, ident) in enumerate(runs):
        row = ended(net, ident)
        assert row["state"] == "completed" and row["result"]["exit_code"] == i, row
        assert base.eventually(lambda: said(net, ident) == "one\ntwo\n", 10), said(net, ident)


def test_a_stranger_is_not_taken_for_a_launcher(net):
    """A file that names a process that is not who it was: there is output, and no more than that."""
    session, ident = launch(net, "echo one")
    assert ended(net, ident)
    path = next(p for p in (net.daemon.run_dir / "launches").iterdir() if p.name.startswith(f"{ident}."))
    net.daemon.kill()
    number, _, start, user = path.name.split(".")
    path.rename(path.with_name(f"{number}.{os.getpid()}.{start}.{user}"))
    (path.parent / "nonsense").write_text("x")
    (path.parent / f"{number}9.1.1.0").write_text("x")
    net.daemon.start()
    assert said(net, ident) == "one\n"
    assert [p.name for p in path.parent.iterdir() if p.name == "nonsense" or p.name.startswith(f"{number}9.")] == []
