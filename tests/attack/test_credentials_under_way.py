# SPDX-License-Identifier: MIT
"""A credential that changes while a request of a hostile sandbox is under way, and one value that two credentials have. The origin sends
back whatever it gets."""
import contextlib
import json
import subprocess
import threading

import pytest

from lib import base, websocket
from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head

VALUE = "".join(["sk-R3al", "-S3cretValue-0123456789"])  # in no file: sandboxes of tests see this one
NEXT = "".join(["sk-N3xt", "-S3cretValue-9876543210"])
SHARED = "".join(["sk-Shar3d", "-S3cretValue-0011223344"])
TWICE = ["".join(["sk-Tw1ce", f"-S3cretValue-55667788-{n}"]) for n in range(3)]
POLICY = """version: 1
credentials:
  rotates: {{source: {{file: {rotates}}}, for: rotates.origin.test, as: json, placeholder: {{env: ROTATES}}}}
  scrubbed: {{source: {{file: {shared}}}, for: [scrub.origin.test, returns.origin.test], inject: always, on_leak: raise SECRET}}
  passed: {{source: {{file: {shared}}}, for: pass.origin.test, inject: always, echo: pass}}
  low: {{source: {{file: {rotates}}}, for: ws.origin.test, levels: [INTERNAL], echo: pass, placeholder: {{env: LOW}}}}
  signs: {{source: {{file: {short}}}, for: s3.origin.test, as: {{sigv4: {{service: s3, region: eu-test-1}}}}}}
  a0: {{source: {{file: {twice0}}}, for: other.origin.test, echo: refuse}}
  b0: {{source: {{file: {twice0}}}, for: other.origin.test}}
  a1: {{source: {{file: {twice1}}}, for: other.origin.test}}
  b1: {{source: {{file: {twice1}}}, for: other.origin.test, echo: refuse}}
  a2: {{source: {{file: {twice2}}}, for: other.origin.test, echo: pass}}
  b2: {{source: {{file: {twice2}}}, for: other.origin.test}}
levels: {{INTERNAL: proxied}}
rules:
  - allow: "**.origin.test"
    websocket: true
"""


BEGUN = threading.Event()  # the origin has the head of BODY


def echoes(c):
    """Head and body of each request, as the body of its response."""
    while True:
        got = read_head(c)
        if got.startswith(b"POST /body "):
            BEGUN.set()
        while b"transfer-encoding: chunked" in got.lower() and not got.endswith(b"0\r\n\r\n"):
            got += c.recv(65536)
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(got), got))


def returns(c):
    """A value that the request does not carry."""
    while True:
        c.sendall(b"HTTP/1.1 200 OK\r\nx-back: %s\r\ncontent-length: 2\r\n\r\nok" % TWICE[int(read_head(c).split()[1][1:])].encode())


class Net(Rogues):
    def __init__(self, stack, policy):
        super().__init__(stack, policy, inspectors=1)
        self.heads = []
        for name in ("rotates", "scrub", "pass"):
            self.origin(f"{name}.origin.test", echoes, 443)
        self.origin("ws.origin.test", self.switches, 443)
        self.origin("returns.origin.test", returns, 443)

    def switches(self, c):
        self.heads.append(read_head(c))
        c.sendall(websocket.response())
        c.recv(1)

    def fetch(self, url, *words, session=None):
        p = subprocess.run([*self.argv(session=session), "curl", "-sS", "-m", "60", *words, url], capture_output=True, timeout=240, env=self.env())
        return p.stdout.decode("latin-1")

    def placeholder(self, name, session=None):
        status, got = self.api.ask("GET", f"/v1/sessions/{session or self.session}/placeholders")
        assert status == 200
        return {p["name"]: p["placeholder"] for p in got["placeholders"]}[name]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        files = {n: stack.enter_context(secret_file(v.encode())) for n, v in (("rotates", VALUE), ("shared", SHARED), ("short", "AKIDREAL0123:short"),
                                                                                   *((f"twice{i}", t) for i, t in enumerate(TWICE)))}
        n = Net(stack, POLICY.format(**files))
        n.files = files
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]


BODY = r"""
import os, socket, ssl, sys
s = ssl.create_default_context().wrap_socket(socket.create_connection(("rotates.origin.test", 443)), server_hostname="rotates.origin.test")
s.settimeout(60)
chunk = lambda text: s.sendall(b"%x\r\n%s\r\n" % (len(text), text))
s.sendall(b"POST /body HTTP/1.1\r\nhost: rotates.origin.test\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
chunk(b'{"first": "')
print("begun", flush=True)
sys.stdin.readline()
got = b""
try:
    chunk(os.environ["ROTATES"].encode() + b'"}')
    s.sendall(b"0\r\n\r\n")
    while piece := s.recv(65536):
        got += piece
except OSError as e:
    got += str(e).encode()
print(got.decode("latin-1"))
"""


def test_a_value_that_comes_while_a_body_does(net):
    """The response is searched for the values that there were when the request began: one that came later must not go with it."""
    p = base.popen(net.argv(base.PYTHON, "-c", BODY), env=net.env(), stdin=-1, stdout=-1, text=True)
    try:
        assert p.stdout.readline() == "begun\n" and BEGUN.wait(60)
        net.files["rotates"].write_text(NEXT)
        assert net.api.ask("POST", "/v1/credentials/rotates/refresh")[1]["state"] == "ready"
        word = net.placeholder("rotates")
        fresh = net.fetch("https://rotates.origin.test/", "-H", "content-type: application/json", "-H", "transfer-encoding: chunked",
                          "-d", json.dumps({"k": word}))
        assert word in fresh and NEXT not in fresh  # the inspector has it, and what began since is searched for it
        got = p.communicate("\n", timeout=120)[0]
        assert NEXT not in got and VALUE not in got, got
        assert "credential_missing" in got, got
    finally:
        base.reap(p)
        net.files["rotates"].write_text(VALUE)
        assert net.api.ask("POST", "/v1/credentials/rotates/refresh")[1]["state"] == "ready"


def test_one_value_of_two_credentials_is_not_let_pass_by_the_other(net):
    assert SHARED in net.fetch("https://pass.origin.test/"), "the control"
    assert SHARED not in net.fetch("https://scrub.origin.test/")


@pytest.mark.parametrize("number,by", [(0, "a0"), (1, "b1"), (2, None)])
def test_of_two_credentials_with_one_value_the_stricter_decides(net, number, by):
    """Neither goes with the request: whichever is found, and in whatever order they stand."""
    got = net.fetch(f"https://returns.origin.test/{number}", "-i")
    assert TWICE[number] not in got
    if by:
        assert '"reason":"secret_returned"' in got and f"the value of the credential {by} came back" in got, got
    else:  # the control: one that passes is not stricter than one that is replaced
        assert " 200 " in got.split("\n")[0] and "x-back: " in got and got.endswith("ok"), got


def test_a_leak_of_one_value_raises_by_whichever_credential_says_so(net):
    session = net.new_session("CONFIDENTIAL")
    net.fetch("https://pass.origin.test/", "-d", SHARED, session=session)
    assert base.eventually(lambda: net.api.show(session)["level"] == "SECRET")


SOCKET = r"""
import socket, ssl, sys
s = ssl.create_default_context().wrap_socket(socket.create_connection(("ws.origin.test", 443)), server_hostname="ws.origin.test")
s.settimeout(60)
s.sendall(sys.argv[1].encode())
assert b" 101 " in s.recv(65536)
print("open", flush=True)
try:
    s.recv(65536)
except OSError:
    pass
print("ended")
"""


def test_a_rise_ends_a_websocket_that_carries_a_credential(net):
    session = net.new_session("INTERNAL")
    with_it = {"authorization": "Bearer " + net.placeholder("low", session)}
    both = [base.popen(net.argv(base.PYTHON, "-c", SOCKET, websocket.request("ws.origin.test", **f), session=session), env=net.env(),
                       stdout=-1, text=True) for f in (with_it, {})]
    try:
        assert [p.stdout.readline() for p in both] == ["open\n", "open\n"]
        assert any(VALUE.encode() in h for h in net.heads)
        net.raise_to(session, "CONFIDENTIAL")
        assert both[0].communicate(timeout=30)[0] == "ended\n"
        assert both[1].poll() is None  # the control: what carries nothing goes on
        ended = lambda got: [e for e in got if e["reason"] == "ended_by_raise" and e.get("credential") == "low"]
        assert ended(net.api.wait_events(ended, session=session))
    finally:
        for p in both:
            base.reap(p)


def test_a_key_that_could_not_be_searched_for_is_no_value(net):
    state = lambda: {c["name"]: c for c in net.api.ask("GET", "/v1/credentials")[1]["credentials"]}["signs"]
    assert state()["state"] == "missing" and "too short" in state()["problem"]
    net.files["short"].write_text("AKIDREAL0123:longEnoughToBeFound")
    assert net.api.ask("POST", "/v1/credentials/signs/refresh")[1]["state"] == "ready"  # the control
    net.files["short"].write_text("longEnoughToBeFound")
    assert net.api.ask("POST", "/v1/credentials/signs/refresh")[1]["problem"] == "it is not KEY_ID:SECRET or KEY_ID:SECRET:TOKEN"


def test_the_placeholder_key_touches_no_disk(net):
    """The run directory of this daemon is on one: placeholders are new with each daemon, and the key is in no file. The control, with
    a directory in memory, is test_a_restart_keeps_the_placeholders of test_credentials.py."""
    before, path = net.placeholder("rotates"), net.daemon.run_dir / "placeholder-key"
    assert not path.exists() and "the placeholder key is not kept" in net.daemon.text()
    net.daemon.stop()
    path.write_bytes(b"k" * 32)  # of a version that kept it
    path.chmod(0o600)
    net.daemon.start()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 1)
    assert net.placeholder("rotates") != before and not path.exists()
