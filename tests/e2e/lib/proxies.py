# SPDX-License-Identifier: MIT
"""A world whose only way out is an HTTP proxy: the name server knows the proxy and nothing else, and what origins there are,
only the proxy knows. It is a thread of the test, and as bad as the test wants it: the first label of a host says how."""
import base64
import contextlib
import os
import select
import socket
import threading
import time

from lib import base
from lib.rogues import Rogues, read_head
from lib.world import FAR_OTHER

PORT, OTHER_PORT = 3128, 3129
USER = b"agent:sesame-4711"
OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"

ANSWERS = {  # what the proxy says, and then hangs up
    "p407": b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 4\r\n\r\nno!\n",
    "p403": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "p502": b"HTTP/1.0 502 Bad Gateway\r\n\r\n<html>a page for people</html>",
    "p302": b"HTTP/1.1 302 Found\r\nLocation: http://login.test/\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"\x16\3\1\0\5hello\r\n\r\n",
    "long": b"HTTP/1.1 200 OK\r\n" + b"x-filler: " + b"y" * 1000 + b"\r\n" + (b"x-filler: " + b"y" * 1000 + b"\r\n") * 40 + b"\r\n",
    "endless": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
    "more": OPEN + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nforge",
    "closes": b"",
    "half": b"HTTP/1.1 200 Connection est",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}


class Names(dict):
    """Of the name server: remembers what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)


class Proxied(Rogues):
    def __init__(self, stack, policy, inspectors=2):
        super().__init__(stack, policy, inspectors)
        self.names = Names()
        self.names["proxy.test"] = [FAR_OTHER]
        self.behind = {}  # host -> address, as the proxy knows it
        self.seen = []    # (port of the proxy, authority, head)
        self.tunnels = []
        for port in (PORT, OTHER_PORT):
            self.listen(self.world.far, FAR_OTHER, port, lambda c, port=port: self.proxy(c, port))

    def origin(self, name, handler, port=80, addr=None, **kw):
        addr = super().origin(name, handler, port, addr or self.behind.get(name), **kw)
        self.names.pop(name)
        self.behind[name] = addr
        return addr

    def connects(self, authority, port=None):
        return [s for s in self.seen if s[1] == authority and port in (None, s[0])]

    def proxy(self, c, port):
        head = read_head(c)
        method, authority, _ = head.split(b"\r\n")[0].decode().split(" ")
        assert method == "CONNECT", head
        self.seen.append((port, authority, head))
        host, _, to = authority.rpartition(":")
        how = host.split(".")[0]
        if how == "silent":
            c.recv(1)  # until it is given up
            return
        if how in ANSWERS:
            c.sendall(ANSWERS[how])
            time.sleep(0.05)
            return
        far = base.setns_call(self.world.far, lambda: socket.create_connection((self.behind.get(host, host), int(to)), 30))
        with far:
            self.tunnels.append(c)
            if how == "banner":  # in one piece with what the origin says first
                c.sendall(OPEN + far.recv(4096))
            else:
                c.sendall(OPEN)
            self.relay(c, far)

    @staticmethod
    def relay(c, far):
        while True:
            for s in select.select([c, far], [], [], 60)[0]:
                data = s.recv(65536)
                if not data:
                    return
                (far if s is c else c).sendall(data)

    def fetch(self, url, *words, session=None):
        """curl in a sandbox, by name: what it got, head and body."""
        p = self.spawn("curl", "-sS", "-m", "90", "-D", "-", *words, url, session=session, stdout=-1, stderr=-1)
        out, err = p.communicate(timeout=240)
        print(url, p.returncode, err)
        return out

    def reload(self, text):
        self.policy.write_text(text + base.PERMITS)
        return self.api.ask("POST", "/v1/policy/reload")


def basic(user=USER):
    return b"Basic " + base64.b64encode(user)


@contextlib.contextmanager
def credentials(text=USER + b"\n", mode=0o600, owner=0):
    path = base.tempdir("secret") / "proxy"
    path.write_bytes(text)
    path.chmod(mode)
    os.chown(path, owner, owner)
    try:
        yield path
    finally:
        base.drop_tempdir(path.parent)
