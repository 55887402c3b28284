# SPDX-License-Identifier: MIT
"""A netpawl console in HOST, and somebody who talks to it as a browser would."""
import http.client
import json
import signal
import socket
import subprocess

from lib import base


class Console:
    """As a context: it ends with it. user: words in front of the command, to run it as somebody else."""

    def __init__(self, daemon, *options, user=()):
        self.daemon = daemon
        self.process = base.popen([*daemon.world.enter(), *user, str(base.NETPAWL), "console", "--socket", str(daemon.socket),
                                   *map(str, options)], env=base.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            out, err = self.process.communicate(timeout=60)
            raise AssertionError(f"no link: {self.process.returncode} {out} {err}")
        self.process.stdout.readline()
        self.origin = self.link.split("/#")[0]
        self.host = self.origin.split("://")[1]
        self.port = int(self.host.rpartition(":")[2]) if ":" in self.host else None

    def token(self):
        return self.link.partition("#token=")[2]

    def another(self):
        """Another link, as somebody gets it who presses Enter."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.link = self.process.stdout.readline().strip()
        return self.link

    def close(self):
        return base.reap(self.process, signal.SIGTERM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Browser:
    """HTTP to a console from HOST: dial() gives a connected socket there."""

    def __init__(self, console, dial=None):
        self.console, self.cookie, self.key = console, None, None
        self.dial = dial or (lambda: base.setns_call(console.daemon.world.host, self._connect))

    def _connect(self):
        return socket.create_connection(("127.0.0.1", self.console.port), timeout=60)

    def open(self, method, path, body=None, timeout=60, **headers):
        """The answer, unread. A header that is None is left out."""
        conn = http.client.HTTPConnection("x", timeout=timeout)
        conn.sock = self.dial()
        conn.sock.settimeout(timeout)
        send = {"Host": self.console.host}
        if self.cookie:
            send["Cookie"] = self.cookie
        if self.key:
            send["X-Netpawl-Key"] = self.key
        if method != "GET":
            send["Origin"] = self.console.origin
            send["Content-Type"] = "application/json"
        send.update({name.replace("_", "-"): value for name, value in headers.items()})
        conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        body = body.encode() if isinstance(body, str) else body
        if body is not None or method != "GET":
            send.setdefault("Content-Length", str(len(body or b"")))
        for name, value in send.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    conn.putheader(name, one)
        conn.endheaders(body)
        return conn.getresponse()

    def call(self, method, path, body=None, **headers):
        """(status, JSON or text, headers)"""
        answer = self.open(method, path, body, **headers)
        text = answer.read().decode()
        try:
            return answer.status, json.loads(text), answer.headers
        except ValueError:
            return answer.status, text, answer.headers

    def login(self, token=None, **headers):
        status, answer, got = self.call("POST", "/console/login", {"token": token or self.console.token()}, **headers)
        if status == 200:
            self.cookie, self.key = got["Set-Cookie"].split(";")[0], answer["key"]
        return status, answer, got


def unix_dial(path):
    def dial():
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(path))
        return s
    return dial
