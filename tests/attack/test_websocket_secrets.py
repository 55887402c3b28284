# SPDX-License-Identifier: MIT
"""Credentials and websockets: a placeholder becomes the value in text messages of the host that it is for, and nowhere else; a value does
not leave in a message, and does not come back in one. The origin sends back each message as it came, and keeps it."""
import base64
import contextlib
import json
import struct
import subprocess

import pytest

from lib import base, websocket
from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head

VALUE = "".join(["sk-R3al", "-\"S3cret\\Value-0123456789"])  # in no file: sandboxes of tests see this one
FOURTH = "".join(["sk-F0urth", "-S3cretValue-1122334455"])
FIFTH = "".join(["sk-F1fth", "-S3cretValue-6677889900"])
THIRD = "".join(["sk-Th1rd", "-S3cretValue-5544332211"])
OTHER = "".join(["sk-Oth3r", "-S3cretValue-9876543210"])
POLICY = """version: 1
credentials:
  talks: {{source: {{file: {value}}}, for: talks.origin.test, as: [websocket, bearer], placeholder: {{env: TALKS, like: "sk-{{40}}"}}}}
  strict: {{source: {{file: {other}}}, for: strict.origin.test, as: websocket, echo: refuse, placeholder: {{env: STRICT}}, on_leak: raise SECRET}}
  low: {{source: {{file: {fourth}}}, for: talks.origin.test, as: websocket, levels: [INTERNAL], placeholder: {{env: LOW}}}}
  high: {{source: {{file: {fifth}}}, for: high.origin.test, as: websocket, levels: [CONFIDENTIAL], placeholder: {{env: HIGH}}}}
  header: {{source: {{file: {third}}}, for: header.origin.test, placeholder: {{env: HEADER}}}}
levels: {{INTERNAL: proxied}}
rules:
  - allow: "**.origin.test"
    websocket: true
"""

# argv: host, then JSON of [header lines, frames in hex, how many bytes go at a time, is a line awaited before]; prints what came of messages, as JSON.
CLIENT = r"""
import json, socket, ssl, struct, sys
host, head, frames, each, wait = sys.argv[1], *json.loads(sys.argv[2])
s = ssl.create_default_context().wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
s.settimeout(60)
s.sendall(head.encode())
got, out = b"", []
def more():
    global got
    try:
        piece = s.recv(65536)
    except OSError as e:
        out.append("error")
        piece = b""
    got += piece
    return piece
while b"\r\n\r\n" not in got and more():
    pass
answer, _, got = got.partition(b"\r\n\r\n")
print(answer.decode("latin-1").split("\r\n")[0], flush=True)
if wait:
    sys.stdin.readline()
if b" 101 " in answer:
    data = bytes.fromhex(frames)
    try:
        for i in range(0, len(data), each):
            s.sendall(data[i:i + each])
    except OSError:
        out.append("error")
    message = b""
    while True:
        if len(got) >= 2:
            n, skip = got[1] & 127, 2
            if n == 126 and len(got) >= 4:
                n, skip = struct.unpack("!H", got[2:4])[0], 4
            if len(got) >= skip + n and not (got[1] & 127 == 126 and skip == 2):
                first, body, got = got[0], got[skip:skip + n], got[skip + n:]
                if first & 8:
                    out.append(["control", first & 15, body.decode("latin-1")])
                else:
                    message += body
                    if first & 0x80:
                        out.append(["message", message.decode("latin-1")])
                        message = b""
                if first & 15 == 8:
                    break
                continue
        if not more():
            break
print(json.dumps(out))
"""


def frames_of(c, rest=b""):
    """(first byte, payload) of a client's frames."""
    got = rest
    while True:
        need = 2
        while len(got) < need or len(got) < (need := 2 + {126: 2, 127: 8}.get(got[1] & 127, 0) + 4):
            piece = c.recv(65536)
            if not piece:
                return
            got += piece
        n = got[1] & 127
        if n == 126:
            n = struct.unpack("!H", got[2:4])[0]
        mask = got[need - 4:need]
        while len(got) < need + n:
            piece = c.recv(65536)
            if not piece:
                return
            got += piece
        body, first, got = got[need:need + n], got[0], got[need + n:]
        yield first, bytes(b ^ mask[i % 4] for i, b in enumerate(body))


class Net(Rogues):
    def __init__(self, stack, policy):
        super().__init__(stack, policy, inspectors=1)
        self.heads, self.messages, self.says = [], [], None
        for name in ("talks", "strict", "header", "high", "elsewhere"):
            self.origin(f"{name}.origin.test", self.echoes, 443)

    def echoes(self, c):
        self.heads.append(read_head(c))
        c.sendall(websocket.response())
        message = b""
        for first, body in frames_of(c):
            if first & 15 == 8:
                c.sendall(websocket.frame(body, 0x88))
                c.recv(1)
                return
            if first & 8:
                c.sendall(websocket.frame(body, 0x8a))
                continue
            message += body
            if first & 0x80:
                self.messages.append(message)
                message = self.says(self.heads[-1]) if self.says else message
                half = len(message) // 2
                c.sendall(websocket.frame(message[:half], 0x01) + websocket.frame(b"between", 0x89))
                c.sendall(websocket.frame(message[half:], 0x80))
                message = b""

    def placeholder(self, name, session=None):
        status, got = self.api.ask("GET", f"/v1/sessions/{session or self.session}/placeholders")
        assert status == 200
        return {p["name"]: p["placeholder"] for p in got["placeholders"]}[name]

    def talk(self, host, frames, each=65536, session=None, between=None, **fields):
        what = json.dumps([websocket.request(host, **fields), (frames + websocket.masked(b"\x03\xe8", 0x88)).hex(), each, between is not None])
        with subprocess.Popen(self.argv(base.PYTHON, "-c", CLIENT, host, what, session=session), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.env(), text=True) as p:
            status = p.stdout.readline()
            if between:
                between()
            with contextlib.suppress(BrokenPipeError):
                p.stdin.write("\n")
                p.stdin.close()
            rest = p.stdout.read()
            assert p.wait(timeout=240) == 0, p.stderr.read()
        return status, json.loads(rest)

    def refused(self, reason, host="", **fields):
        found = lambda got: [e for e in got if e["reason"] == reason and host in e.get("url", "") and all(e.get(k) == v for k, v in fields.items())]
        return found(self.api.wait_events(found))


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        files = {n: stack.enter_context(secret_file(v.encode())) for n, v in (("value", VALUE), ("other", OTHER), ("third", THIRD), ("fourth", FOURTH), ("fifth", FIFTH))}
        n = Net(stack, POLICY.format(**files))
        n.files = files
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]


@pytest.fixture(autouse=True)
def fresh(net):
    net.messages.clear()
    net.heads.clear()


def fragments(text, sizes):
    """A message in frames, with a ping in the middle."""
    parts, at = [], 0
    for n in sizes:
        parts.append(text[at:at + n])
        at += n
    parts.append(text[at:])
    out = b""
    for i, part in enumerate(parts):
        out += websocket.masked(part, (0x80 if i == len(parts) - 1 else 0) | (0x01 if i == 0 else 0x00))
        if i == 0:
            out += websocket.masked(b"ping", 0x89)
    return out


@pytest.mark.parametrize("each", [65536, 1])
@pytest.mark.parametrize("sizes", [[], [1, 2, 3], [20, 30]])
def test_a_placeholder_becomes_the_value(net, sizes, each):
    word = net.placeholder("talks").encode()
    status, out = net.talk("talks.origin.test", fragments(b"auth " + word + b" and more", sizes), each)
    assert " 101 " in status
    assert net.messages == [b"auth " + VALUE.encode() + b" and more"]
    assert [o for o in out if o[0] == "message"] == [["message", "auth " + word.decode() + " and more"]]  # the value came back, and did not arrive
    assert VALUE not in json.dumps(out) and ["control", 9, "between"] in out
    events = net.api.wait_events(lambda got: [e for e in got if e.get("credential") == "talks"])
    assert VALUE not in json.dumps(events)


def test_json_keeps_its_form(net):
    word = net.placeholder("talks")
    net.talk("talks.origin.test", websocket.masked(json.dumps({"type": "auth", "token": word}).encode()))
    assert [json.loads(m) for m in net.messages] == [{"type": "auth", "token": VALUE}]


def test_long_messages(net):
    word = net.placeholder("talks").encode()
    text = b"x" * 60000 + word + b"y" * 5000
    status, out = net.talk("talks.origin.test", websocket.masked(text))
    assert net.messages == [text.replace(word, VALUE.encode())]
    assert [len(o[1]) for o in out if o[0] == "message"] == [len(text)]


def test_compression_is_not_agreed_on(net):
    net.talk("elsewhere.origin.test", b"", Sec_WebSocket_Extensions="permessage-deflate")
    assert len(net.heads) == 1 and b"extensions" not in net.heads[0].lower()


@pytest.mark.parametrize("host, first", [("elsewhere", 0x81), ("header", 0x81), ("talks", 0x82), ("talks", 0x89)])
def test_elsewhere_it_is_refused(net, host, first):
    """Another host, one of a credential that is for headers, a binary message, a control frame."""
    word = net.placeholder("header" if host == "header" else "talks").encode()
    status, out = net.talk(f"{host}.origin.test", websocket.masked(b"to " + word, first))
    assert " 101 " in status and net.messages == [] and not any(o[0] == "message" for o in out)
    assert net.refused("credential_elsewhere", host=f"{host}.origin.test")
    net.talk(f"{host}.origin.test", websocket.masked(b"to nobody", first))  # the control
    assert net.messages == ([b"to nobody"] if first < 0x88 else [])


FORMS = {"plain": OTHER, "base64": base64.b64encode(b"user:" + OTHER.encode()).decode(), "hex": OTHER.encode().hex(),
         "percent": "".join(f"%{ord(c):02x}" for c in OTHER), "JSON": "".join(f"\\u{ord(c):04x}" for c in OTHER)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", [0x81, 0x82])
def test_a_value_does_not_leave(net, form, first):
    text = ("it is " + FORMS[form] + " indeed").encode()
    cut = len(text) // 2
    frames = websocket.masked(text[:cut], first & 0x7f) + websocket.masked(text[cut:], 0x80)
    session = net.new_session("CONFIDENTIAL")
    status, out = net.talk("elsewhere.origin.test", frames, 7, session=session)
    assert " 101 " in status and net.messages == []
    assert net.refused("secret_leaving", host="elsewhere.origin.test", session=session)
    assert base.eventually(lambda: net.api.show(session)["level"] == "SECRET")  # on_leak


def test_nor_in_a_ping(net):
    net.talk("elsewhere.origin.test", websocket.masked(VALUE.encode(), 0x89))
    assert [e for e in net.refused("secret_leaving") if "message" in e.get("text", "")]


def test_refuse_ends_it(net):
    word = net.placeholder("strict").encode()
    status, out = net.talk("strict.origin.test", websocket.masked(b"say " + word))
    assert net.messages == [b"say " + OTHER.encode()] and not any(o[0] == "message" for o in out)
    assert net.refused("secret_returned", host="strict.origin.test")


def test_a_credential_of_the_handshake_does_not_come_back(net):
    """The origin puts what it got in the head into each message."""
    word = net.placeholder("header")
    net.says = lambda head: base64.b64encode(b"it was " + head)
    status, out = net.talk("header.origin.test", websocket.masked(b"hello"), authorization=f"Bearer {word}")
    net.says = None
    assert " 101 " in status and THIRD.encode() in net.heads[0]
    said = base64.b64decode([o[1] for o in out if o[0] == "message"][0])
    assert THIRD.encode() not in said and f"Bearer {word}".encode() in said


def test_a_rise_takes_it_away(net):
    session = net.new_session("INTERNAL")
    word = net.placeholder("low", session).encode()
    net.talk("talks.origin.test", websocket.masked(b"say " + word), session=session)
    assert net.messages == [b"say " + FOURTH.encode()]
    net.raise_to(session, "CONFIDENTIAL")
    net.messages.clear()
    net.talk("talks.origin.test", websocket.masked(b"say " + word), session=session)
    assert net.messages == [] and net.refused("credential_elsewhere", credential="low")


def test_nor_does_a_rise_bring_it_where_nobody_searches(net):
    """What comes back on this websocket was not to be searched when it began: the value does not go there. On one that begins now it does."""
    session = net.new_session("INTERNAL")
    word = net.placeholder("high", session).encode()
    say = websocket.masked(b"say " + word)
    status, out = net.talk("high.origin.test", say, session=session, between=lambda: net.raise_to(session, "CONFIDENTIAL"))
    assert " 101 " in status and net.messages == [] and FIFTH not in json.dumps(out)
    assert [e for e in net.refused("credential_elsewhere", credential="high") if "began" in e["text"]]
    status, out = net.talk("high.origin.test", say, session=session)  # the controls: a new one, and an old one without the word
    assert net.messages == [b"say " + FIFTH.encode()] and ["message", "say " + word.decode()] in out
    other = net.new_session("INTERNAL")
    status, out = net.talk("high.origin.test", websocket.masked(b"nothing"), session=other, between=lambda: net.raise_to(other, "CONFIDENTIAL"))
    assert net.messages[1:] == [b"nothing"] and ["message", "nothing"] in out
