# SPDX-License-Identifier: MIT
"""A client that asks for little, one request after another. Arguments: the address to dial, a host, the status that is
right, how many requests on one connection, how many on connections of their own, and how many of the first are sent at
once. Says "begin" before the first one, and at the end what went wrong, as a JSON list."""
import http.client
import json
import socket
import ssl
import sys

address, host, right, kept, fresh, ahead = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


class Connection(http.client.HTTPSConnection):
    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection((address, 443), 30), server_hostname=self.host)


def ask(c, wrong):
    try:
        c.request("GET", "/")
        answer = c.getresponse()
        answer.read()
        if answer.status != right:
            wrong.append(f"{answer.status} {answer.headers.get('x-netpawl-reason')}")
    except (OSError, http.client.HTTPException) as e:
        wrong.append(repr(e))
        c.close()


def ask_ahead(s, wrong):
    """So many at once, by hand."""
    s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * ahead)
    got = b""
    while got.count(b"HTTP/1.1 ") < ahead or not got.endswith(b"}\n"):
        block = s.recv(65536)
        if not block:
            break
        got += block
    if got.count(b"HTTP/1.1 %d" % right) != ahead:
        wrong.append(got[:500].decode("latin-1"))


wrong, context = [], ssl.create_default_context()
c = Connection(host, context=context)
c.connect()
print("begin", flush=True)
for _ in range(kept // ahead):
    ask(c, wrong) if ahead == 1 else ask_ahead(c.sock, wrong)
print("kept", flush=True)
for _ in range(fresh):
    c = Connection(host, context=context)
    ask(c, wrong)
    c.close()
print(json.dumps(wrong), flush=True)
