# SPDX-License-Identifier: MIT
"""A value of a credential that a sandbox has got from elsewhere, on its way out: in any form, in any part of a request. The control is
another value of the same shape, which arrives."""
import base64
import gzip
import json
import subprocess
import zlib

import pytest

from lib import base
from lib.box import new_session
from lib.inspected import Inspected, unharmed

VALUE = "ghp_R3alS3cretValue+of/GitHub0123456789ab"
OTHER = "ghp_N0SecretValueAt+All/GitHub0123456789a"
RAISING = "sk-raising-R3alS3cretValue-0123456789"
POLICY = """version: 1
credentials:
  github:
    source: {file: %(dir)s/value-github}
    for: api.origin.test
  raising:
    source: {file: %(dir)s/value-raising}
    for: api.origin.test
    on_leak: raise SECRET
rules:
  - allow: [origin.test, "**.origin.test"]
    capture: 64
"""


class Net(Inspected):
    def __init__(self, stack, folder):
        for name, value in (("github", VALUE), ("raising", RAISING)):
            path = folder / f"value-{name}"
            path.write_text(value + "\n")
            path.chmod(0o600)
        super().__init__(stack, policy=POLICY % {"dir": folder})


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    with unharmed(Net, tmp_path_factory.mktemp("values")) as made:
        yield made


def percent(text, full=False):
    return "".join(f"%{ord(c):02X}" if full or not c.isalnum() else c for c in text)


FORMS = {
    "plain": lambda v: v,
    "percent": percent,
    "percent-full": lambda v: percent(v, True),
    "percent-lower": lambda v: percent(v, True).lower(),
    "percent-twice": lambda v: percent(v).replace("%", "%25"),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64-1": lambda v: base64.b64encode(b"u" + v.encode()).decode(),
    "base64-2": lambda v: base64.b64encode(b"u:" + v.encode() + b"!").decode().rstrip("="),
    "base64url": lambda v: base64.urlsafe_b64encode(b"user:" + v.encode()).decode(),
    "base64-percent": lambda v: percent(base64.b64encode(v.encode()).decode()),
    "hex": lambda v: v.encode().hex(),
    "HEX": lambda v: v.encode().hex().upper(),
    "json-u": lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
    "json-slash": lambda v: json.dumps(v).replace("/", "\\/"),
}


def leaves(net, *words):
    """Whether it reached the origin; what came back."""
    done = net.curl("-w", "\n%{http_code}", *words)
    assert done.returncode == 0, done.stderr
    text, status = done.stdout.rsplit("\n", 1)
    if status == "403":
        assert json.loads(text)["reason"] == "secret_leaving", text
        return False, text
    assert status == "200", done.stdout
    return True, text


def both(net, make):
    """The secret does not leave, the other does."""
    after = net.last()
    left, text = leaves(net, *make(VALUE))
    assert not left and VALUE not in text
    events = net.events(lambda e: e["reason"] == "secret_leaving", after=after)
    assert len(events) == 1 and "github" in events[0]["text"] and events[0]["credential"] == "github"
    assert VALUE not in json.dumps(events), "the event has it"
    assert leaves(net, *make(OTHER))[0]


@pytest.mark.parametrize("form", FORMS)
def test_in_a_body(net, form):
    both(net, lambda v: ("--data-binary", "before " + FORMS[form](v) + " after", "https://origin.test/"))


@pytest.mark.parametrize("form", ["plain", "percent", "percent-full", "base64url", "hex"])
def test_in_a_url(net, form):
    both(net, lambda v: ["https://origin.test/a?q=" + FORMS[form](v)])


def test_in_the_path_of_a_host_that_no_rule_allows(net):
    """What is refused anyway is reported with its URL, which must not have it."""
    after = net.last()
    done = net.curl("https://no-rule.test/" + VALUE)
    assert VALUE not in done.stdout
    net.curl("https://no-rule.test/done")
    assert VALUE not in json.dumps(net.api.events(after=after))
    assert VALUE not in json.dumps(net.api.events())


@pytest.mark.parametrize("header", ["authorization: Bearer %s", "cookie: a=b; c=%s", "x-anything: %s"])
def test_in_a_header(net, header):
    both(net, lambda v: ("-H", header % v, "https://origin.test/"))


def test_as_basic(net):
    both(net, lambda v: ("-u", "someone:" + v, "https://origin.test/"))


def test_over_plain_http(net):
    both(net, lambda v: ("-d", v, "http://origin.test/"))


def test_to_where_it_belongs(net):
    """Not even there: who has it has it from somewhere."""
    both(net, lambda v: ("-H", "authorization: Bearer " + v, "https://api.origin.test/"))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw"])
def test_in_a_coded_body(net, coding, tmp_path):
    def make(value):
        text = b"x" * 100000 + value.encode() + b"y" * 100000
        body = gzip.compress(text) if coding == "gzip" else zlib.compress(text)
        body = body[2:-4] if coding == "raw" else body
        path = net.world.dir / "coded"
        path.write_bytes(body)
        path.chmod(0o644)
        return "-H", f"content-encoding: {'gzip' if coding == 'gzip' else 'deflate'}", "--data-binary", f"@{path}", "https://origin.test/"

    both(net, make)


def coded(net, text):
    path = net.world.dir / "coded"
    path.write_bytes(gzip.compress(text))
    path.chmod(0o644)
    return "--data-binary", f"@{path}", "https://origin.test/"


def test_with_two_lines_of_codings(net):
    """The second counts as well."""
    both(net, lambda v: ("-H", "content-encoding: identity", "-H", "content-encoding: gzip", *coded(net, b"it is " + v.encode())))


def test_a_placeholder_in_a_coded_body(net):
    """It is worth nothing there, and is found all the same."""
    status, got = net.api.ask("GET", f"/v1/sessions/{net.session}/placeholders")
    word = {p["name"]: p["placeholder"] for p in got["placeholders"]}["github"].encode()
    done = net.curl("-H", "content-encoding: gzip", *coded(net, b"x" * 70000 + word + b"y"))
    assert json.loads(done.stdout)["reason"] == "credential_elsewhere" and "compressed" in done.stdout
    assert leaves(net, "-H", "content-encoding: gzip", *coded(net, b"x" * 70000 + word[:-1] + b"y"))[0]  # the control


SPLIT = r"""
import socket, ssl, sys
value, where = sys.argv[1].encode(), sys.argv[2]
s = ssl.create_default_context().wrap_socket(socket.create_connection(("origin.test", 443)), server_hostname="origin.test")
s.settimeout(60)
head = b"POST / HTTP/1.1\r\nhost: origin.test\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
try:
    s.sendall(head + (b"trailer: x-sum\r\n\r\n" if where == "trailer" else b"\r\n"))
    if where == "trailer":
        s.sendall(b"2\r\nhi\r\n0\r\nx-sum: " + value + b"\r\n\r\n")
    else:
        for c in value:
            s.sendall(b"1\r\n%c\r\n" % c)
        s.sendall(b"0\r\n\r\n")
except OSError:
    pass
print(s.recv(65536).decode("latin-1"))
"""


@pytest.mark.parametrize("where", ["chunks", "trailer"])
def test_byte_by_byte_and_in_trailers(net, where):
    refused = net.run("/usr/bin/python3", "-c", SPLIT, VALUE, where)
    assert "secret_leaving" in refused.stdout, refused
    control = net.run("/usr/bin/python3", "-c", SPLIT, OTHER, where)
    assert "HTTP/1.1 200" in control.stdout, control


def test_what_is_not_coded_as_it_says_is_not_passed(net):
    done = net.curl("-H", "content-encoding: gzip", "-d", "no gzip at all " + VALUE, "https://origin.test/")
    assert json.loads(done.stdout)["reason"] == "bad_http"


def test_over_http2(net):
    both(net, lambda v: ("--http2", "-H", "x-anything: " + v, "https://origin.test/"))
    both(net, lambda v: ("--http2", "-d", "a=" + v, "https://origin.test/"))


def test_the_session_is_raised(net):
    """on_leak: the raise comes by itself, and closes what the level closes."""
    session = new_session("leaks")
    net.api.create(session, "CONFIDENTIAL")
    done = base.popen(net.argv("curl", "-sS", "-d", RAISING, "https://origin.test/", session=session), env=net.env(),
                      stdout=subprocess.PIPE, text=True)
    done.communicate(timeout=120)  # the answer, or the end of the connection by the raise
    assert [e for e in net.api.wait_events(lambda got: any(e["reason"] == "secret_leaving" for e in got), session=session)]
    assert base.eventually(lambda: net.api.show(session)["level"] == "SECRET")
    raised = [e for e in net.api.events(session=session) if e["reason"] == "raised"]
    assert "raising" in raised[-1]["text"] and raised[-1]["who"] == "inspector"
