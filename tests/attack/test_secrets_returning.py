# SPDX-License-Identifier: MIT
"""An origin that sends back the credential it was given, in every part and form of a response that a client could read it from. The
control is the same origin with `echo: pass`, where the value arrives in the sandbox."""
import base64
import contextlib
import gzip
import json
import subprocess
import urllib.parse
import zlib

import pytest

from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head

VALUE = "".join(["ghp_", "R3alS3cretValue", "+of/0123456789abcde"])  # in no file: sandboxes of tests see this one
POLICY = """version: 1
credentials:
  scrubbed: {{source: {{file: {file}}}, for: scrub.origin.test, inject: always, placeholder: {{env: SCRUBBED, like: "ghp_{{34}}"}}}}
  refused: {{source: {{file: {other}}}, for: refuse.origin.test, inject: always, echo: refuse, placeholder: {{env: REFUSED, like: "ghp_{{34}}"}}}}
  passed: {{source: {{file: {third}}}, for: pass.origin.test, inject: always, echo: pass, placeholder: {{env: PASSED, like: "ghp_{{34}}"}}}}
rules:
  - allow: "**.origin.test"
    websocket: true
    capture: 4096
"""
VALUES = {"scrub": VALUE, "refuse": VALUE.replace("R3al", "R3fu"), "pass": VALUE.replace("R3al", "Pa55")}


def percent(text):
    return "".join(c if c.isalnum() or c in "_-.~" else f"%{ord(c):02X}" for c in text)


FORMS = {
    "plain": lambda v: v,
    "percent": percent,
    "percent-full": lambda v: "".join(f"%{ord(c):02x}" for c in v),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "basic": lambda v: "Basic " + base64.b64encode(b"user:" + v.encode()).decode(),
    "base64url": lambda v: base64.urlsafe_b64encode(b"ab" + v.encode()).decode().rstrip("="),
    "base64-lines": lambda v: "\r\n".join(base64.b64encode(b"x" * 40 + v.encode()).decode()[i:i + 60] for i in range(0, 180, 60)),
    "hex": lambda v: v.encode().hex(),
    "HEX": lambda v: v.encode().hex().upper(),
    "json": lambda v: json.dumps({"token": v}).replace("/", "\\/"),
    "json-u": lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
    "json-in-json": lambda v: json.dumps(json.dumps(json.dumps({"t": v}).replace("/", "\\/"))),
    "html": lambda v: v.replace("+", "&#43;").replace("/", "&#x2F;"),
}


def reply(body, *fields, status="200 OK"):
    head = "".join(f"{f}\r\n" for f in fields)
    return f"HTTP/1.1 {status}\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


def chunked(pieces, trailers=""):
    return [b"%x\r\n%s\r\n" % (len(p), p) for p in pieces] + [b"0\r\n" + trailers.encode() + b"\r\n"]


def coded(coding, text):
    if coding in ("br", "zstd"):
        argv = ["brotli", "-c"] if coding == "br" else ["zstd", "-q", "-c"]
        return subprocess.run(argv, input=text, capture_output=True, check=True).stdout
    return gzip.compress(text) if coding == "gzip" else zlib.compress(text)


def answers(path, value):
    """What the origin says to a request for this path: pieces, each written by itself."""
    kind, _, word = path.strip("/").partition("/")
    v, head = value.encode(), b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
    if kind == "form":
        return [reply(b"before " + FORMS[word](value).encode() + b" after")]
    if kind == "bytes":
        return [head + b"\r\n"] + chunked([b"a "] + [bytes([c]) for c in v] + [b" z"])
    if kind == "length":  # byte by byte, of a known length
        whole = reply(b"<" + v + b">")
        return [whole[i:i + 1] for i in range(len(whole))]
    if kind == "coded":
        text = b"x" * 70000 + v + b"y" * 70000 + base64.b64encode(b"u:" + v)
        body = coded(word, text)
        return [head + f"content-encoding: {word}\r\netag: \"strong\"\r\n\r\n".encode()] + chunked([body[i:i + 7] for i in range(0, len(body), 7)])
    if kind == "twice":
        return [reply(coded("gzip", zlib.compress(b"x " + v)), "content-encoding: deflate, gzip")]
    if kind == "unknown":
        return [reply(v[::-1], "content-encoding: x-reversed")]
    if kind == "lies":
        return [reply(b"no gzip " + v, "content-encoding: gzip")]
    if kind == "trailer":
        return [head + b"trailer: x-echo\r\n\r\n"] + chunked([b"body"], f"x-echo: {value}\r\n")
    if kind == "header":
        return [reply(b"body", f"x-echo: {value}", f"set-cookie: a={percent(value)}; path=/")]
    if kind == "location":
        return [reply(b"", f"location: https://elsewhere.origin.test/?t={percent(value)}", status="302 Found")]
    if kind == "early":
        return [f"HTTP/1.1 103 Early Hints\r\nlink: <https://x.test/{value}>\r\n\r\n".encode(), reply(b"body")]
    if kind == "error":
        return [reply(f"bad token {value}".encode(), status="401 Unauthorized")]
    if kind == "clean":
        return [reply(b"nothing of it")]
    raise AssertionError(path)


class Net(Rogues):
    def __init__(self, stack, policy):
        super().__init__(stack, policy)
        self.asked = []
        for name in VALUES:
            self.origin(f"{name}.origin.test", self.echoes(VALUES[name]), 443)

    def echoes(self, value):
        def handler(c):
            while True:
                head = read_head(c).decode("latin-1")
                assert value in head, "the origin has not got it"
                self.asked.append(head)
                for piece in answers(head.split(" ")[1], value):
                    c.sendall(piece)

        return handler

    def fetch(self, name, path, *words):
        """All that a client in the sandbox gets, heads and trailers included; curl decodes nothing that it was not asked to."""
        p = subprocess.run([*self.argv(), "curl", "-sS", "-i", "-m", "60", *words, f"https://{name}.origin.test/{path}"],
                           capture_output=True, timeout=240, env=self.env())
        return p.stdout.decode("latin-1"), p.returncode

    def placeholder(self, name):
        status, got = self.api.ask("GET", f"/v1/sessions/{self.session}/placeholders")
        assert status == 200
        return {p["name"]: p["placeholder"] for p in got["placeholders"]}[{"scrub": "scrubbed", "refuse": "refused"}[name]]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(secret_file(VALUES[n].encode())) for n in ("scrub", "refuse", "pass")]
        n = Net(stack, POLICY.format(file=files[0], other=files[1], third=files[2]))
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]


@pytest.mark.parametrize("form", FORMS)
def test_forms(net, form):
    """In the value's place is the placeholder, in the same form."""
    assert FORMS[form](VALUES["pass"]) in net.fetch("pass", f"form/{form}")[0], "the control"
    got, _ = net.fetch("scrub", f"form/{form}")
    mine = net.placeholder("scrub")
    assert FORMS[form](VALUE) not in got
    if form not in ("json", "json-in-json", "html", "percent", "base64-lines"):  # where single bytes are escaped by what they are
        exact = form in ("plain", "base64", "basic", "base64url", "hex", "HEX")  # digits of escapes may be in either case
        assert "before " + FORMS[form](mine) + " after" in got if exact else FORMS[form](mine).lower() in got.lower()
    assert "before " in got and " after" in got


WHERE = ["bytes", "length", "trailer", "header", "location", "early", "error"]


@pytest.mark.parametrize("where", WHERE)
def test_everywhere(net, where):
    there = lambda text, v: v in urllib.parse.unquote(text)
    assert there(net.fetch("pass", where)[0], VALUES["pass"]), "the control"
    got, code = net.fetch("scrub", where)
    assert code == 0 and not there(got, VALUE) and there(got, net.placeholder("scrub")), got


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_coded(net, coding):
    """What the client asked to be coded comes as it is, without the value. HTTP/1.1: chunks of seven bytes."""
    got, code = net.fetch("scrub", f"coded/{coding}", "-H", f"accept-encoding: {coding}")
    mine = net.placeholder("scrub")
    assert code == 0 and VALUE not in got and "x" * 70000 + mine + "y" * 70000 in got
    assert base64.b64encode(b"u:" + mine.encode()).decode() in got
    assert "content-encoding" not in got and 'etag: W/"strong"' in got
    assert f"accept-encoding: {coding}\r\n" in net.asked[-1].lower()


def test_one_coding_upon_the_other(net):
    got, code = net.fetch("scrub", "twice")
    assert code == 0 and got.endswith("x " + net.placeholder("scrub"))


def test_only_what_can_be_searched_is_asked_for(net):
    net.fetch("scrub", "clean", "-H", "accept-encoding: dcb, sdch, gzip;q=0.5, *")
    assert "accept-encoding: gzip;q=0.5\r\n" in net.asked[-1].lower()
    net.fetch("scrub", "clean")
    assert "accept-encoding: identity\r\n" in net.asked[-1].lower()
    net.fetch("pass", "clean", "-H", "accept-encoding: dcb")
    assert "accept-encoding: dcb\r\n" in net.asked[-1].lower()


@pytest.mark.parametrize("path", ["unknown", "lies"])
def test_what_cannot_be_searched_is_refused(net, path):
    got, _ = net.fetch("scrub", path)
    assert VALUE not in got and VALUE[::-1] not in got
    assert "unsearchable" in got or not got.endswith(VALUE)
    assert net.events(lambda e: e["reason"] == "unsearchable" and e["url"].endswith(path))
    assert VALUES["pass"] in net.fetch("pass", path)[0] or VALUES["pass"][::-1] in net.fetch("pass", path)[0], "the control"


@pytest.mark.parametrize("path", ["form/plain", "header", "bytes", "coded/gzip"])
def test_refuse(net, path):
    after = net.last()
    got, _ = net.fetch("refuse", path, "-H", "accept-encoding: gzip")
    assert VALUES["refuse"] not in got
    assert net.events(lambda e: e["reason"] == "secret_returned" and "refused" in e["text"], after=after)
    assert net.fetch("refuse", "clean")[0].endswith("nothing of it")


def test_over_http2(net):
    got, code = net.fetch("scrub", "header", "--http2")
    assert code == 0 and got.startswith("HTTP/2 200") and VALUE not in got and net.placeholder("scrub") in got
    got, code = net.fetch("scrub", "bytes", "--http2")
    assert code == 0 and VALUE not in got and f"a {net.placeholder('scrub')} z" in got


def test_no_record_has_it(net):
    """Events with captured bodies and headers, journal and log."""
    for path in ("form/plain", "form/json", "header", "trailer", "coded/gzip"):
        net.fetch("scrub", path)
    text = json.dumps(net.api.events())
    assert net.placeholder("scrub") in text, "the control: bodies are captured"
    assert VALUE not in text and VALUE not in net.daemon.text()
