# SPDX-License-Identifier: MIT
"""Where values of credentials come from: a command whose value has an end, systemd's directory, a variable of the daemon. What a source
that fails has said is nowhere, and neither is a value in a core dump."""
import base64
import contextlib
import json
import os
import pathlib
import resource
import signal

import pytest

from lib import base
from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head

# in no file: sandboxes of tests see this one
TURNS = ["".join([word, "-of-a-command-0123456789"]) for word in ("first", "second", "third")]
SYSTEMD = ["".join([word, "-of-systemd-0123456789"]) for word in ("first", "second")]
VARIABLE, LOADED = "".join(["value-of-a", "-variable-0123456789"]), "".join(["value-of-a", "-file-0123456789"])
SAID = "".join(["what-a-source", "-that-fails-has-said"])

POLICY = """version: 1
credentials:
  turns: {{source: {{command: [/bin/cat, {turns}], ttl: 2s}}, for: turns.origin.test, placeholder: {{env: TURNS}}}}
  stays: {{source: {{command: [/bin/cat, {turns}], ttl: 1h}}, for: stays.origin.test, placeholder: {{env: STAYS}}}}
  forever: {{source: {{command: [/bin/cat, {turns}]}}, for: forever.origin.test, placeholder: {{env: FOREVER}}}}
  unit: {{source: {{systemd: np-unit-token}}, for: unit.origin.test, placeholder: {{env: UNIT}}}}
  variable: {{source: {{env: NP_TEST_VARIABLE}}, for: variable.origin.test, placeholder: {{env: VARIABLE}}}}
  file: {{source: {{file: {file}}}, for: file.origin.test, as: [bearer, json], placeholder: {{env: FILE}}}}
  says1: {{source: {{command: [/bin/sh, -c, "echo {said}; echo {said} >&2; exit 3"]}}, for: says.origin.test}}
  says2: {{source: {{command: [/bin/sh, -c, "echo {said}; echo {said}"]}}, for: says.origin.test}}
  says3: {{source: {{command: [/bin/sh, -c, "for i in $(seq 500); do echo {said}; done"]}}, for: says.origin.test}}
  says4: {{source: {{command: [/bin/sh, -c, "echo {said}; exec /nonexistent/{said}"]}}, for: says.origin.test}}
  says5: {{source: {{file: {said_wide}}}, for: says.origin.test}}
  says6: {{source: {{file: {said_lines}}}, for: says.origin.test}}
  says7: {{source: {{file: {said_key}}}, for: says.origin.test, as: {{sigv4: {{service: s3, region: eu-test-1}}}}}}
rules:
  - allow: "**.origin.test"
    capture: 4096
"""
FAILING = {"says1": "ended with status 3", "says2": "more than one line", "says3": "prints too much", "says4": "ended with status 12",
           "says5": "chmod 600", "says6": "more than one line", "says7": "KEY_ID:SECRET"}


class Net(Rogues):
    def __init__(self, stack, policy):
        self.got = {}
        super().__init__(stack, policy, inspectors=1, in_memory=True)
        for name in ("turns", "stays", "forever", "unit", "variable", "file"):
            self.origin(f"{name}.origin.test", lambda c, name=name: self.keeps(c, name), 443)

    def keeps(self, c, name):
        while True:
            head = read_head(c)
            self.got[name] = head.decode("latin-1").lower()
            c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nserved")

    def asks(self, name):
        """A request with this placeholder: what came back."""
        p = self.spawn("sh", "-c", f'curl -sS -m 60 -H "Authorization: Bearer ${name.upper()}" https://{name}.origin.test/', stdout=-1)
        return p.communicate(timeout=240)[0].decode()

    def sends(self, name, value):
        return self.asks(name) == "served" and f"bearer {value}\r\n".lower() in self.got[name]

    def listed(self, name):
        status, got = self.api.ask("GET", "/v1/credentials")
        assert status == 200
        return {c["name"]: c for c in got["credentials"]}[name]

    def refreshed(self, name):
        assert self.api.ask("POST", f"/v1/credentials/{name}/refresh")[0] in (200, 202)
        assert base.eventually(lambda: not self.listed(name)["fetching"])
        return self.listed(name)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        folder = base.tempdir("sources")
        stack.callback(base.drop_tempdir, folder)
        turns, unit = folder / "turns", folder / "credentials" / "np-unit-token"
        unit.parent.mkdir(mode=0o700)
        write(turns, TURNS[0])
        write(unit, SYSTEMD[0], 0o400)
        said = {"said_wide": (SAID, 0o644), "said_lines": (f"{SAID}\n{SAID}", 0o600), "said_key": (SAID, 0o600)}
        files = {n: stack.enter_context(secret_file(text.encode(), mode)) for n, (text, mode) in said.items()}
        files["file"] = stack.enter_context(secret_file(LOADED.encode()))
        Net.DAEMON_ENV = {"NP_TEST_VARIABLE": VARIABLE, "CREDENTIALS_DIRECTORY": str(unit.parent)}
        n = Net(stack, POLICY.format(turns=turns, said=SAID, **files))
        n.turns, n.unit, n.ended = turns, unit, 0
        assert base.eventually(lambda: all(n.listed(c)["state"] == "ready" for c in ("turns", "stays", "forever", "unit", "variable", "file")))
        yield n
        assert n.daemon.running() and n.daemon.text().count(" ended: ") == n.ended, n.daemon.text()[-3000:]


def write(path, text, mode=0o644):
    """At once, for a command may be reading it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text + "\n")
    fresh.chmod(mode)
    fresh.replace(path)


# -- a command whose value has an end ---------------------------------------------------------------------

def test_a_value_is_fetched_again_before_its_ttl_is_over(net):
    """Nobody asks for it."""
    assert net.sends("turns", TURNS[0])
    write(net.turns, TURNS[1])
    try:
        assert base.eventually(lambda: net.sends("turns", TURNS[1]), 30)
        assert net.sends("stays", TURNS[0]), "the control: one whose ttl is long has the value from before"
    finally:
        write(net.turns, TURNS[0])
    assert base.eventually(lambda: net.sends("turns", TURNS[0]), 30)


def test_when_its_source_fails_it_is_used_until_its_ttl_is_over_and_not_beyond(net):
    net.turns.unlink()
    try:
        for name, state in (("stays", "ready"), ("forever", "missing")):  # with a ttl it is good until then; without, what the source says counts
            got = net.refreshed(name)
            assert got["state"] == state and "ended with status 1" in got["problem"], got
        assert net.sends("stays", TURNS[0])
        assert json.loads(net.asks("forever"))["reason"] == "credential_missing"
        assert base.eventually(lambda: net.listed("turns")["state"] == "missing", 30), net.listed("turns")
        before = net.got.pop("turns")
        got = json.loads(net.asks("turns"))
        assert got["reason"] == "credential_missing" and "turns" not in net.got and before
        assert "ended with status 1" in net.listed("turns")["problem"] and net.listed("turns")["expires"] is None
    finally:
        write(net.turns, TURNS[2])
    assert base.eventually(lambda: net.listed("turns")["state"] == "ready", 30)  # it is asked again, by itself
    assert net.sends("turns", TURNS[2])
    assert net.refreshed("stays")["problem"] is None and net.refreshed("forever")["state"] == "ready"


# argv: how often; until it is refused
ASKS = """
import os, sys, time, urllib.error, urllib.request
ask = urllib.request.Request("https://turns.origin.test/", headers={"Authorization": "Bearer " + os.environ["TURNS"]})
print("begun", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[1])):
    try:
        urllib.request.urlopen(ask, timeout=60).read()
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())
        break
    time.sleep(0.2)
"""


def test_an_inspector_does_not_use_one_that_is_over_though_nobody_tells_it(net):
    """The daemon is stopped: it fetches nothing, and takes nothing away."""
    p = base.popen(net.argv(base.PYTHON, "-c", ASKS, "600"), env=net.env(), stdin=-1, stdout=-1, text=True)
    try:
        assert p.stdout.readline() == "begun\n"
        assert base.eventually(lambda: net.listed("turns")["state"] == "ready", 30)
        os.kill(net.daemon.process.pid, signal.SIGSTOP)
        try:
            got = p.stdout.readline() if p.stdin.write("\n") and not p.stdin.flush() else ""
        finally:
            os.kill(net.daemon.process.pid, signal.SIGCONT)
        assert got.startswith("503 ") and "credential_missing" in got, got
    finally:
        base.reap(p)
    assert base.eventually(lambda: net.listed("turns")["state"] == "ready", 30)
    assert net.sends("turns", TURNS[2]), "the control"


# -- the other sources ------------------------------------------------------------------------------------

def test_systemd(net):
    """A file of $CREDENTIALS_DIRECTORY, read again at SIGHUP."""
    assert net.sends("unit", SYSTEMD[0])
    write(net.unit, SYSTEMD[1], 0o400)
    assert net.sends("unit", SYSTEMD[0])
    fetched = net.listed("unit")["fetched"]
    os.kill(net.daemon.process.pid, signal.SIGHUP)
    assert base.eventually(lambda: net.listed("unit")["fetched"] != fetched, 30)
    assert base.eventually(lambda: net.sends("unit", SYSTEMD[1]), 30)
    net.unit.chmod(0o444)
    try:
        got = net.refreshed("unit")
        assert got["state"] == "missing" and "chmod 600" in got["problem"]
        assert json.loads(net.asks("unit"))["reason"] == "credential_missing"
    finally:
        net.unit.chmod(0o400)
    assert net.refreshed("unit")["state"] == "ready"


def test_a_variable_of_the_daemon(net):
    """It is taken out of its environment, and stays known over reloads."""
    assert net.sends("variable", VARIABLE)
    assert net.daemon.cli("credentials", "refresh", "variable").returncode == 0
    assert net.daemon.cli("policy", "reload").returncode == 0
    assert base.eventually(lambda: net.sends("variable", VARIABLE), 30)
    for pid in (net.daemon.process.pid, *net.daemon.workers()):
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert VARIABLE.encode() not in environment, pid
    assert b"CREDENTIALS_DIRECTORY=" in pathlib.Path(f"/proc/{net.daemon.process.pid}/environ").read_bytes(), "the control"
    p = net.spawn("sh", "-c", "env; tr '\\0' '\\n' < /proc/1/environ", stdout=-1)
    assert VARIABLE.encode() not in p.communicate(timeout=240)[0]


@pytest.mark.parametrize("name", FAILING)
def test_what_a_source_that_fails_has_said_is_told_to_nobody(net, name):
    got = net.daemon.cli("credentials", "test", name)
    assert got.returncode == 1 and FAILING[name] in got.stdout and SAID not in got.stdout + got.stderr, got.stdout
    assert FAILING[name] in net.listed(name)["problem"]
    assert base.eventually(lambda: f"the credential {name}: " in net.daemon.text())
    for path in ("/v1/credentials", "/v1/health", "/v1/events", "/v1/metrics"):
        assert SAID.encode() not in net.api.raw("GET", path)[2], path
    assert SAID not in net.daemon.text()
    for folder in (net.daemon.state_dir, net.daemon.run_dir):
        assert not [p for p in folder.rglob("*") if p.is_file() and SAID.encode() in p.read_bytes() and p.name != "policy.yaml" and b"credentials:" not in p.read_bytes()]


def test_control_a_command_that_does_not_fail_says_its_value(net):
    """The same command, with the right end."""
    text = net.policy.read_text()
    net.policy.write_text(text.replace(f'echo {SAID} >&2; exit 3"', f'echo {SAID} >&2; exit 0"'))
    try:
        assert net.daemon.cli("policy", "reload").returncode == 0
        assert net.daemon.cli("credentials", "test", "says1").returncode == 0
    finally:
        net.policy.write_text(text)
        assert net.daemon.cli("policy", "reload").returncode == 0


# -- core dumps -------------------------------------------------------------------------------------------

def values():
    words = [*TURNS, *SYSTEMD, VARIABLE, LOADED]
    return [w.encode() for w in words] + [base64.b64encode(w.encode())[:-4] for w in words]


def test_core_dumps_have_no_value(net):
    """The kernel's own, of a daemon that is aborted with the values in its memory. Inspectors write none, whatever their limit is."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip("core dumps of this machine go elsewhere")
    for name, value in (("file", LOADED), ("variable", VARIABLE), ("unit", net.unit.read_text().strip())):
        assert net.sends(name, value)
    daemon, worker = net.daemon.process.pid, net.daemon.workers()[0]
    where = [pathlib.Path(os.readlink(f"/proc/{pid}/cwd")) for pid in (daemon, worker)]
    known = {w: set(w.glob("core*")) for w in where}
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(daemon, resource.RLIMIT_CORE, unlimited)
    with contextlib.suppress(PermissionError):  # it has given this up for good, but for who may raise limits
        resource.prlimit(worker, resource.RLIMIT_CORE, unlimited)
    made = lambda: [p for w in where for p in set(w.glob("core*")) - known[w]]
    os.kill(worker, signal.SIGABRT)
    assert base.eventually(lambda: net.daemon.workers() and worker not in net.daemon.workers(), 60)
    net.ended = 1
    assert made() == []
    assert base.eventually(lambda: net.api.health()["inspectors"] == 1)
    assert base.eventually(lambda: net.sends("file", LOADED), 30), "the one that follows has the values"
    os.kill(daemon, signal.SIGABRT)
    net.daemon.wait_death()
    try:
        (core,) = made()
        text = core.read_bytes()
        assert text.startswith(b"\x7fELF") and b"variable.origin.test" in text, "the control: what it knows of credentials is there"
        assert not [w for w in values() if w in text]
    finally:
        for path in made():
            path.unlink()
        net.daemon.start(**net.DAEMON_ENV)
        assert base.eventually(lambda: net.api.health()["inspectors"] == 1)
