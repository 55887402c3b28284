# SPDX-License-Identifier: MIT
"""Requests of all kinds, in turns, also those that end badly. Arguments: the address to dial, how many. Prints, as JSON,
how many of each kind there were and what went wrong."""
import collections
import http.client
import json
import socket
import ssl
import struct
import sys

ADDRESS, COUNT = sys.argv[1], int(sys.argv[2])
context = ssl.create_default_context()


def dial(port=80):
    s = socket.create_connection((ADDRESS, port), 20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class Connection(http.client.HTTPSConnection):
    def connect(self):
        self.sock = self._context.wrap_socket(dial(443), server_hostname=self.host)


def ask(c, right, *words, **kw):
    c.request(*words, **kw)
    answer = c.getresponse()
    answer.read()
    assert answer.status == right, f"{words}: {answer.status} {answer.headers.get('x-netpawl-reason')}"


kept = {}


def keep(host):
    return kept.setdefault(host, Connection(host, context=context))


def until(s, mark):
    got = b""
    while mark not in got:
        block = s.recv(65536)
        assert block, f"the end, before {mark!r}, after {got!r}"
        got += block
    return got


def on_kept(n):
    ask(keep("origin.test"), 200, "GET", f"/{n}")


def with_body(n):
    ask(keep("origin.test"), 200, "POST", f"/{n}", body=iter([b"x" * 5000] * 4), encode_chunked=True,
        headers={"transfer-encoding": "chunked"})


def on_new(n):
    c = Connection("other.test", context=context)
    ask(c, 200, "GET", f"/{n}")
    c.close()


def refused(n):
    ask(keep("bad.origin.test"), 403, "GET", f"/{n}")


def too_large(n):
    ask(keep("small.origin.test"), 413, "POST", f"/{n}", body=b"x" * 2000)


def no_such_name(n):
    ask(keep("nx.test"), 502, "GET", f"/{n}")


def aborted_download(n):
    s = dial()
    s.sendall(b"GET /bytes/2000000 HTTP/1.1\r\nHost: origin.test\r\n\r\n")
    s.recv(10000)
    reset(s)


def aborted_upload(n):
    s = dial()
    s.sendall(b"POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50000)
    s.close()


def half_a_head(n):
    s = dial()
    s.sendall(b"GET / HTTP/1.1\r\nHost: ori")
    reset(s)


def half_a_hello(n):
    s = dial(443)
    s.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50))
    s.close()


def nonsense(n):
    s = dial()
    s.sendall(b"GET  / HTTP/1.1\r\nHost : origin.test\r\n\r\n")
    assert b" 400 " in until(s, b"\r\n\r\n")
    s.close()


def websocket(n):
    s = dial()
    s.sendall(b"GET /echo HTTP/1.1\r\nHost: ws.origin.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    assert b" 101 " in until(s, b"\r\n\r\n")
    s.sendall(b"\x81\x8e\0\0\0\0there and back")  # a frame with a mask of zeros
    until(s, b"there and back")
    s.close() if n % 2 else reset(s)


def proxied(n):
    s = dial()
    s.sendall(b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
    until(s, b"\r\n\r\n")
    s = context.wrap_socket(s, server_hostname="origin.test")
    s.sendall(b"GET /head HTTP/1.1\r\nHost: origin.test\r\n\r\n")
    until(s, b"}")
    s.close()


KINDS = [on_kept, on_kept, on_kept, with_body, on_new, refused, refused, too_large, no_such_name, aborted_download,
         aborted_upload, half_a_head, half_a_hello, nonsense, websocket, proxied]
done, wrong = collections.Counter(), []
for n in range(COUNT):
    kind = KINDS[n % len(KINDS)]
    try:
        kind(n)
        done[kind.__name__] += 1
    except (OSError, AssertionError, http.client.HTTPException) as e:
        wrong.append(f"{kind.__name__}: {e!r}")
        for c in kept.values():
            c.close()
print(json.dumps({"done": done, "wrong": wrong}))
