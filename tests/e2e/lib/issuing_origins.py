# SPDX-License-Identifier: MIT
"""Origins that issue tokens: one of OAuth's kind with refresh tokens that are good once, an API that lets in who has an access token, a
page with a login and a cookie. All they issue is kept, so that a test can look for it elsewhere."""
import base64
import gzip
import json
import secrets
import subprocess
import threading
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler

from lib.rogues import Rogues


def coded(coding, text):
    if coding in ("br", "zstd"):
        argv = ["brotli", "-c"] if coding == "br" else ["zstd", "-q", "-c"]
        return subprocess.run(argv, input=text, capture_output=True, check=True).stdout
    return {"gzip": gzip.compress, "deflate": zlib.compress}.get(coding, lambda t: t)(text)


class Issuer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, c, net, name):
        self.net, self.name = net, name
        super().__init__(c, ("sandbox", 0), None)

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            out = b""
            while line := self.rfile.readline():
                n = int(line.split(b";")[0], 16)
                if not n:
                    break
                out += self.rfile.read(n)
                self.rfile.readline()
            if not line:
                raise EOFError
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def do_GET(self):
        body = self.body()
        path, _, query = self.path.partition("?")
        with self.net.lock:
            self.net.got.append((self.name, self.command, self.path, dict(self.headers.items()), body))
        getattr(self, "serve_" + self.name)(path, dict(urllib.parse.parse_qsl(query)), body)

    do_POST = do_GET

    def reply(self, status, body, fields=(), kind="application/json", how=None):
        how = how or {}
        coding = how.get("coding")
        if coding:
            body = coded(coding, body)
        self.send_response(status)
        for k, v in [("content-type", kind), *([("content-encoding", coding)] if coding else []), *fields]:
            self.send_header(k, v)
        piece = int(how.get("piece", 0))
        self.send_header(*(("transfer-encoding", "chunked") if piece else ("content-length", str(len(body)))))
        self.end_headers()
        for i in range(0, len(body) if piece else 0, piece or 1):
            part = body[i:i + piece]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n" if piece else body)

    def issue(self, kind, size=24):
        token = f"real-{kind}-" + secrets.token_urlsafe(size) + "/+=~"
        with self.net.lock:
            self.net.issued.append(token)
        return token

    def serve_auth(self, path, how, body):
        """The refresh token is good once; the next one comes with the access token."""
        if path == "/page":
            return self.reply(200, b"<p>words</p>", kind="text/html")
        if self.headers.get("content-type", "").startswith("application/json"):
            given = json.loads(body).get("refresh_token")
        else:
            given = dict(urllib.parse.parse_qsl(body.decode())).get("refresh_token")
        if given not in self.net.refresh:
            return self.reply(400, json.dumps({"error": "invalid_grant"}).encode())
        access, fresh = how.get("says") or self.issue("access", int(how.get("size", 24))), self.issue("refresh")
        self.net.access.add(access)
        if not how.get("keep"):
            self.net.refresh.discard(given)
        self.net.refresh.add(fresh)
        answer = {"token_type": "Bearer", "access_token": access, "expires_in": 3600, "refresh_token": fresh, "scope": "a b",
                  "nested": {"list": [1, {"access_token": access, "note": "access_token"}]}, "other": None}
        text = json.dumps(answer).encode()
        if how.get("as") == "many":
            text = json.dumps([{"access_token": self.issue("access")} for _ in range(60)]).encode()
        if how.get("as") == "form":
            return self.reply(200, urllib.parse.urlencode({"access_token": access}).encode(), kind="application/x-www-form-urlencoded")
        if how.get("as") == "object":
            text = json.dumps({"access_token": {"value": access}}).encode()
        if how.get("as") == "broken":
            text = text[:-30]
        if how.get("as") == "escaped":
            text = ('{"access\\u005ftoken":"' + "".join(f"\\u{ord(c):04x}" for c in access) + '","x":"\\"}"}').encode()
        if how.get("as") == "part":
            return self.reply(206, text[20:60], [("content-range", f"bytes 20-59/{len(text)}")])
        if how.get("as") == "unknown":
            return self.reply(200, text[::-1], [("content-encoding", "x-reversed")])
        if how.get("as") == "long":
            text = json.dumps({"access_token": "x" * 5000}).encode()
        self.reply(200, text, [("cache-control", "no-store"), ("etag", '"v1"')], how=how)

    serve_open = serve_auth

    def serve_api(self, path, how, body):
        given = self.headers.get("authorization", "").removeprefix("Bearer ")
        if given not in self.net.access:
            return self.reply(401, b'{"error":"no"}')
        if path == "/echo":
            text = json.dumps({"you": given, "b64": base64.b64encode(b"x:" + given.encode()).decode()}).encode()
            return self.reply(200, text, [("x-echo", given)], how=how)
        self.reply(200, json.dumps(self.net.shown).encode() if path == "/shown" else b'{"me":"agent"}')

    def serve_web(self, path, how, body):
        if path == "/login":
            if dict(urllib.parse.parse_qsl(body.decode())).get("password") != self.net.password:
                return self.reply(403, b"no", kind="text/html")
            cookie = how.get("user", "") + self.issue("cookie")
            self.net.cookies.add(cookie)
            return self.reply(200, b"<p>in</p>", [("set-cookie", f"session={cookie}; Path=/; HttpOnly; Secure"),
                                                   ("set-cookie", "theme=dark; Path=/")], "text/html")
        crumbs = dict(c.strip().split("=", 1) for c in self.headers.get("cookie", "").split(";") if "=" in c)
        if crumbs.get("session") not in self.net.cookies:
            return self.reply(401, b"no", kind="text/html")
        self.reply(200, b"<p>home " + crumbs.get("theme", "").encode() + b"</p>", kind="text/html")

    def serve_app(self, path, how, body):
        """It gets the cookie of web, and renews it."""
        if self.headers.get("cookie", "").removeprefix("session=") not in self.net.cookies:
            return self.reply(401, b"no", kind="text/html")
        cookie = self.issue("cookie")
        self.net.cookies.add(cookie)
        self.reply(200, b"<p>app</p>", [("set-cookie", f"session={cookie}; Path=/")], "text/html")

    def serve_evil(self, path, how, body):
        self.reply(200, b"{}")


class IssuingNet(Rogues):
    """refresh, password: the values that the credentials' sources have."""

    def __init__(self, stack, policy, refresh, password, inspectors=2):
        self.got, self.issued, self.lock = [], [], threading.Lock()
        self.refresh, self.access, self.cookies, self.password = {refresh}, set(), set(), password
        self.first, self.shown = refresh, []
        super().__init__(stack, policy, inspectors, in_memory=True)
        for name in ("auth", "open", "api", "web", "app", "evil"):
            addr = self.origin(f"{name}.origin.test", lambda c, name=name: Issuer(c, self, name), 443)
            self.origin(f"{name}.origin.test", lambda c, name=name: Issuer(c, self, name), 80, addr)

    def sh(self, script, session=None):
        p = self.spawn("sh", "-c", script, session=session, stdout=-1, stderr=-1)
        out, err = p.communicate(timeout=240)
        print(script, p.returncode, out, err)
        return out.decode()

    def at(self, name):
        """What this origin was asked last: method, path, headers, body."""
        return [g[1:] for g in self.got if g[0] == name][-1]

    def holds_none(self, text):
        """None of what was issued is in it, nor are the sources' values."""
        return not any(form in text for t in [*self.issued, self.first, self.password]
                       for form in (t, urllib.parse.quote(t, safe=""), base64.b64encode(t.encode()).decode(), json.dumps(t)[1:-1]))


def tokens(net, how="", words="", session=None, host="auth"):
    """What a client gets for its refresh placeholder; the origin keeps the refresh token good that it was given."""
    data = f'"grant_type=refresh_token&refresh_token=${"REFRESH" if host == "auth" else "OPEN"}"'
    return net.sh(f'curl -sS -m 60 {words} -d {data} "https://{host}.origin.test/token?keep=1&{how}"', session)


def bearer(net, token, path="me", host="api", words="", session=None):
    return net.sh(f'curl -sS -m 60 {words} -H "Authorization: Bearer {token}" "https://{host}.origin.test/{path}"', session)
