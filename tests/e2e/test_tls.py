# SPDX-License-Identifier: MIT
"""What goes wrong in TLS is told by its name: to a client by an alert, of an origin by the reason."""
import contextlib
import json
import socket
import ssl
import struct

import pytest

from lib import base
from lib.rogues import Rogues, says
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: ["**.test"]
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Rogues(stack, POLICY)


# -- clients ----------------------------------------------------------------------------------

def vector(width, data):
    return struct.pack("!I", len(data))[4 - width:] + data


def extension(number, data):
    return struct.pack("!H", number) + vector(2, data)


def sni(name):
    return extension(0, vector(2, b"\0" + vector(2, name)))


def hello(extensions=sni(b"origin.test"), version=b"\3\3", ciphers=b"\x13\1", compression=b"\0", more=b"", kind=1):
    body = version + bytes(32) + vector(1, b"") + vector(2, ciphers) + vector(1, compression) + vector(2, extensions) + more
    return bytes([kind]) + vector(3, body)


def record(payload, kind=22, version=b"\3\1"):
    return bytes([kind]) + version + vector(2, payload)


MALFORMED = {
    "bytes behind the extensions": (record(hello(more=b"x")), 50),
    "an extension cut short": (record(hello(b"\0\0\0\x09\0")), 50),
    "the name twice": (record(hello(sni(b"origin.test") * 2)), 47),
    "a name that is none": (record(hello(sni(b"origin test"))), 112),
    "no cipher": (record(hello(ciphers=b"")), 47),
    "half a cipher": (record(hello(ciphers=b"\x13\1\x13")), 50),
    "no compression": (record(hello(compression=b"\1")), 47),
    "another message": (record(hello(kind=2)), 10),
    "another version": (record(hello(version=b"\4\0")), 70),
    "a record that is too long": (b"\x16\3\1\x41\0", 22),
    "an empty record": (record(b""), 10),
    "something in between": (record(hello()[:20]) + record(b"x", kind=23), 10),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_hello_gets_an_alert(net, what):
    data, alert = MALFORMED[what]
    got = net.raw(data.decode("latin-1"), port=443)
    assert got == bytes([21, 3, 3, 0, 2, 2, alert]), got  # and then the end, not a reset


def test_a_good_hello_gets_an_answer(net):
    """The control: the same bytes with nothing wrong."""
    keys = extension(51, vector(2, b"\0\x1d" + vector(2, bytes([9]) + bytes(31))))
    more = (extension(43, vector(1, b"\3\4")) + extension(10, vector(2, b"\0\x1d")) + extension(13, vector(2, b"\4\3")) + keys)
    got = net.raw(record(hello(sni(b"origin.test") + more)).decode("latin-1"), port=443, wait=1)
    assert got[:1] == b"\x16", got


# -- origins ----------------------------------------------------------------------------------

def old(c):
    """TLS 1.0 and nothing newer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    context.load_cert_chain(*old.files)
    context.wrap_socket(c, server_side=True)


def plain(c):
    c.recv(100)
    c.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    c.recv(1)


def alert(c):
    c.recv(65536)
    c.sendall(b"\x15\3\3\0\2\2\x28")  # handshake_failure
    c.recv(1)


def reason_of(net, name):
    got = net.get(f"https://{name}/", "-i").decode()
    assert "HTTP/1.1 502" in got or "HTTP/2 502" in got, got
    [event] = net.events(lambda e: name in e["url"])
    told = json.loads(got[got.index("{"):])
    assert told["reason"] == event["reason"]
    return event["reason"], event.get("text", "") + event.get("message", "") + json.dumps(event)


@pytest.mark.parametrize("name, handler, words", [("old.test", old, "version"), ("plain.test", plain, "version"),
                                                  ("alert.test", alert, "handshake failure")])
def test_no_common_tls_is_not_a_bad_certificate(net, name, handler, words):
    old.files = net.origins.authority.leaf("old.test")
    net.listen(net.world.far, net.host(name), 443, handler)
    reason, event = reason_of(net, name)
    assert reason == "origin_tls" and (words in event or "protocol" in event), event


def test_a_bad_certificate_is_one(net):
    """The control: the other reason is still told where it is due."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*net.origins.authority.leaf("somebody-else.test"))
    net.listen(net.world.far, net.host("wrong.test"), 443, says(b"x"), tls)
    reason, event = reason_of(net, "wrong.test")
    assert reason == "origin_untrusted" and "mismatch" in event, event
