# SPDX-License-Identifier: MIT
"""A world whose origins are threads of the test: they say whatever it likes, byte by byte."""
import contextlib
import itertools
import json
import socket
import ssl
import struct
import subprocess
import threading

from lib import base
from lib.box import new_session
from lib.inspected import Inspected
from lib.world import FAR, GATE4

DNS_PORT = 5301

# What runs in a sandbox: connects, says, listens, prints what it got.
RAW = r"""
import json, socket, ssl, sys, time
a = json.load(sys.stdin)
if "cases" in a:
    out = []
    for text in a["cases"]:
        s, got = socket.create_connection((a["to"], a["port"]), timeout=a["wait"]), b""
        try:
            s.sendall(text.encode("latin-1"))
            while not any(u.encode() in got for u in a.get("until", [])) and (d := s.recv(65536)):
                got += d
        except OSError as e:
            got += b"<" + type(e).__name__.encode() + b">"
        s.close()
        out.append(got.decode("latin-1"))
    print(json.dumps(out))
    sys.exit()
s = socket.create_connection((a["to"], a["port"]), timeout=a["wait"])
got = b""
def read(until=None):
    global got
    until = [until] if until else [u.encode() for u in a.get("until", [])]
    try:
        while not any(u in got for u in until):
            d = s.recv(65536)
            if not d:
                break
            got += d
    except OSError as e:
        got += b"<" + type(e).__name__.encode() + b">"
if a.get("connect"):
    s.sendall(f"CONNECT {a['connect']} HTTP/1.1\r\nHost: {a['connect']}\r\n\r\n".encode())
    read(b"\r\n\r\n")
try:
    if a.get("sni"):
        c = ssl._create_unverified_context()
        c.set_alpn_protocols(a.get("alpn", ["http/1.1"]))
        s = c.wrap_socket(s, server_hostname=a["sni"])
    for part in a["parts"]:
        s.sendall(part.encode("latin-1"))
        time.sleep(a.get("pause", 0))
    read()
except (OSError, ssl.SSLError) as e:
    got += b"<" + type(e).__name__.encode() + b">"
sys.stdout.buffer.write(got)
"""


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def read_head(c):
    got = b""
    while b"\r\n\r\n" not in got:
        piece = c.recv(65536)
        if not piece:
            raise EOFError
        got += piece
    return got


def says(body):
    def handler(c):
        while True:
            read_head(c)
            c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    return handler


class Rogues(Inspected):
    """Origins that are as bad as we like: threads of this process, with sockets of the far namespace."""

    def __init__(self, stack, policy, inspectors=2, in_memory=False):
        self.names, self.fresh, self.sockets = {}, itertools.count(20), []
        stack.callback(lambda: [s.close() for s in self.sockets])
        super().__init__(stack, policy=policy, inspectors=inspectors, in_memory=in_memory, more=["--resolvers", f"{GATE4}:{DNS_PORT}"])
        self.names.update({"origin.test": [FAR[4]], "bad.test": [FAR[4]], "get.origin.test": [FAR[4]], "dead.test": ["198.51.100.99"],
                           "slow.test": ["198.51.100.99"]})
        self.listen(self.world.far, GATE4, DNS_PORT, None, kind=socket.SOCK_DGRAM)

    def listen(self, ns, addr, port, handler, tls=None, kind=socket.SOCK_STREAM, rcvbuf=0):
        def make():
            s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if rcvbuf:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            s.bind((addr, port))
            if kind == socket.SOCK_STREAM:
                s.listen(4096)
            return s

        s = base.setns_call(ns, make)
        self.sockets.append(s)
        threading.Thread(target=self.serve if handler else self.serve_dns, args=(s, handler, tls), daemon=True).start()
        return s

    def serve(self, s, handler, tls):
        def one(c):
            with contextlib.suppress(OSError, EOFError), c:
                handler(tls.wrap_socket(c, server_side=True) if tls else c)

        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()

    def serve_dns(self, s, *_):
        with contextlib.suppress(OSError):
            while True:
                query, peer = s.recvfrom(2048)
                at, labels = 12, []
                while query[at]:
                    labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1").lower())
                    at += 1 + query[at]
                kind, = struct.unpack("!H", query[at + 1 : at + 3])
                found = self.names.get(".".join(labels), [])
                answers = b""
                for addr in found:
                    if kind == (28 if ":" in addr else 1):
                        raw = socket.inet_pton(socket.AF_INET6 if ":" in addr else socket.AF_INET, addr)
                        answers += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 1, len(raw)) + raw
                n = len(answers) // (28 if kind == 28 else 16)
                s.sendto(query[:2] + struct.pack("!5H", 0x8180 if found else 0x8183, 1, n, 0, 0) + query[12 : at + 5] + answers, peer)

    def host(self, name, addr=None):
        """An address of its own for the name."""
        addr = addr or f"198.51.100.{next(self.fresh)}"
        base.sh("ip", "-n", self.world.far, "addr", "replace", f"{addr}/32", "dev", "lo")
        self.names[name] = [addr]
        return addr

    def origin(self, name, handler, port=80, addr=None, alpn=None, **kw):
        """A host of that name with an address of its own, and a thread for each of its connections."""
        addr = self.host(name, addr)
        tls = None
        if port == 443:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*self.origins.authority.leaf(name))
            tls.set_alpn_protocols(alpn or ["http/1.1"])
        self.listen(self.world.far, addr, port, handler, tls, **kw)
        return addr

    def raw(self, *parts, port=80, session=None, wait=30, control=None, **more):
        """Bytes to an inspected port, and what came back until it was closed, or silent for so long; until: or until one of these words
        was in it. control: an address, dialled from the host without a gate."""
        ask = json.dumps(dict(to=control or FAR[4], port=port, parts=parts, wait=wait, **more))
        argv = [*self.world.enter()] if control else self.argv(session=session)
        p = subprocess.run([*argv, base.PYTHON, "-c", RAW], input=ask.encode(), capture_output=True, timeout=300, env=self.env())
        assert p.returncode == 0, p.stderr.decode()
        return p.stdout

    def get(self, url, *words, session=None):
        p = subprocess.run([*self.argv(session=session), "curl", "-sSk", "-m", "90", "--connect-to", f"::{FAR[4]}:", *words, url],
                           capture_output=True, timeout=300, env=self.env())
        print(url, p.returncode, p.stderr)  # shown when the test fails
        return p.stdout

    def plain(self, url):
        """The control: curl on the host, in no sandbox."""
        host = url.split("/")[2]
        addr = self.names[host][0]
        return self.bare("curl", "-sSk", "-m", "30", "--connect-to", f"::[{addr}]:" if ":" in addr else f"::{addr}:", url)

    def bare(self, *argv, input=None):
        """On the host, in no sandbox: the gate is not asked."""
        return subprocess.run([*self.world.enter(), *map(str, argv)], input=input, capture_output=True, timeout=300, env=base.env()).stdout

    def python(self, code, session=None, **kw):
        return self.spawn(base.PYTHON, "-c", code, session=session, stdout=subprocess.PIPE, **kw)

    def new_session(self, level="CONFIDENTIAL", word="other"):
        name = new_session(word)
        self.api.create(name, level)
        return name

    def raise_to(self, session, level):
        status, got = self.api.ask("POST", f"/v1/sessions/{session}/datasets", {"level": level, "dataset": "d", "reason": "r"})
        assert status == 200, got
        return got
