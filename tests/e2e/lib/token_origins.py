# SPDX-License-Identifier: MIT
"""Origins that let in who has the value of a credential, and a look into sandboxes for values that should not be there."""
import base64
import contextlib
import gzip
import hashlib
import io
import json
import pathlib
import re
import secrets
import subprocess
import tarfile
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler

from lib import base
from lib.rogues import Rogues

# of each credential: the places it may stand in, the file that tools read
KINDS = {
    "api": ("[bearer, {basic: agent}, {header: X-Api-Key}, form, json]", "netrc"),
    "git": ("{basic: agent}", "git"),
    "pypi": ("{basic: agent}", "pip"),
    "npm": ("bearer", "npmrc"),
    "grpc": ("bearer", None),
    "registry": ("{basic: agent}", "docker"),
}
VALUES = {name: f"real-{name}-" + secrets.token_hex(12) for name in KINDS}


def policy(files):
    text = "version: 1\ncredentials:\n"
    for name, (places, file) in KINDS.items():
        text += f"  {name}:\n    source: {{file: {files[name]}}}\n    for: {name}.origin.test\n    as: {places}\n"
        text += f"    placeholder: {{env: {name.upper()}_TOKEN, like: \"np_{{40}}\"" + (f", file: {file}" if file else "") + "}\n"
    return text + "rules:\n  - allow: \"**.origin.test\"\n"


class Origin(BaseHTTPRequestHandler):
    """One that lets in who has the value, by any of the usual fields."""

    protocol_version = "HTTP/1.1"
    net, name = None, None

    def __init__(self, c, net, name):
        self.net, self.name = net, name
        super().__init__(c, ("sandbox", 0), None)

    def log_message(self, *_):
        pass

    def allowed(self):
        value = VALUES[self.name]
        given = [f"Bearer {value}", "Basic " + base64.b64encode(f"agent:{value}".encode()).decode()]
        return self.headers.get("authorization") in given or self.headers.get("x-api-key") == value

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            out = b""
            while n := int(self.rfile.readline().split(b";")[0], 16):
                out += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        else:
            out = self.rfile.read(int(self.headers.get("content-length", 0)))
        return gzip.decompress(out) if self.headers.get("content-encoding") == "gzip" else out

    def reply(self, status, body=b"", kind="application/json", **fields):
        self.send_response(status)
        for k, v in {"content-type": kind, "content-length": str(len(body)), **fields}.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        body = self.body()
        if not self.allowed():
            return self.reply(401, b"no\n", www_authenticate='Basic realm="x"')
        self.net.look()
        self.net.served.append((self.name, self.command, self.path))
        getattr(self, "serve_" + self.name)(body)

    do_POST = do_PUT = do_GET

    def serve_api(self, body):
        if self.path.endswith("/stream"):
            return self.reply(200, b"".join(b"data: {\"n\": %d}\n\n" % i for i in range(3)), "text/event-stream")
        self.reply(200, json.dumps({"method": self.command, "length": len(body)}).encode())

    def serve_git(self, body):
        path, _, query = self.path.partition("?")
        env = base.env(GIT_PROJECT_ROOT=str(self.net.repos), GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                       REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("content-type", ""), REMOTE_USER="agent",
                       CONTENT_LENGTH=str(len(body)), GIT_PROTOCOL=self.headers.get("git-protocol", ""),
                       GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        got = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, timeout=60).stdout
        head, _, out = got.partition(b"\r\n\r\n")
        fields = dict(l.split(": ", 1) for l in head.decode().split("\r\n"))
        self.reply(int(fields.pop("Status", "200").split()[0]), out, fields.pop("Content-Type"), **fields)

    def serve_pypi(self, _):
        if self.path == "/simple/np-private/":
            return self.reply(200, b'<a href="/f/np_private-1.0-py3-none-any.whl">np_private-1.0-py3-none-any.whl</a>', "text/html")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            z.writestr("np_private.py", "WORD = 'private'\n")
            info = "np_private-1.0.dist-info/"
            z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: np-private\nVersion: 1.0\n")
            z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            z.writestr(info + "RECORD", f"np_private.py,,\n{info}METADATA,,\n{info}WHEEL,,\n{info}RECORD,,\n")
        self.reply(200, out.getvalue(), "application/zip")

    def serve_npm(self, body):
        if self.command == "PUT":
            self.net.published = json.loads(body)["name"]
            return self.reply(201, b"{}")
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as t:
            for name, text in (("package.json", '{"name":"np-private","version":"1.0.0"}'), ("index.js", "module.exports = 1;\n")):
                info = tarfile.TarInfo("package/" + name)
                info.size = len(text)
                t.addfile(info, io.BytesIO(text.encode()))
        if self.path.endswith(".tgz"):
            return self.reply(200, self.net.tarball, "application/octet-stream")
        self.net.tarball = out.getvalue()
        sha = base64.b64encode(hashlib.sha512(self.net.tarball).digest()).decode()
        self.reply(200, json.dumps({"name": "np-private", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "np-private", "version": "1.0.0", "dist": {"tarball": "https://npm.origin.test/np-private/-/np-private-1.0.0.tgz",
                                                               "integrity": "sha512-" + sha}}}}).encode())


class Net(Rogues):
    def __init__(self, stack, text):
        super().__init__(stack, text, in_memory=True)
        self.served, self.found, self.looks, self.evil, self.home = [], set(), 0, [], None
        self.dir = base.tempdir("tools")
        stack.callback(base.drop_tempdir, self.dir)
        self.dir.chmod(0o755)
        self.repos = self.dir / "repos"
        base.sh("git", "init", "-q", "--bare", "-b", "main", str(self.repos / "repo.git"))
        base.sh("git", "-C", str(self.repos / "repo.git"), "config", "http.receivepack", "true")
        for name in ("api", "git", "pypi", "npm"):
            self.origin(name + ".origin.test", lambda c, name=name: Origin(c, self, name), 443)
        self.origin("evil.origin.test", self.keep, 443)

    def keep(self, c):
        while piece := c.recv(65536):
            self.evil.append(piece)
            c.sendall(b"HTTP/1.1 401 no\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\n\r\n")

    def look(self):
        """Looks for the values in what the processes of this session's sandboxes have: memory (with it environment and arguments), files."""
        words = [v.encode() for v in VALUES.values()]
        self.found.update(look(self, words + [base64.b64encode(b"agent:" + w) for w in words], self.home))
        self.looks += 1

    def tool(self, script, token=None):
        """A shell in a sandbox, in a directory of its own; while it runs it is looked at. token: this placeholder is $P, evil is $HOST."""
        more = f"P=${token}_TOKEN; HOST=evil.origin.test; " if token else ""
        self.home = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        self.home.chmod(0o777)
        p = self.spawn("sh", "-c", f"export HOME={self.home}; cd; {more}{script}", stdout=-1, stderr=-1)
        done = threading.Event()

        def watch():
            while not done.wait(0.3):
                self.look()

        t = threading.Thread(target=watch)
        t.start()
        try:
            out, err = p.communicate(timeout=240)
        finally:
            done.set()
            t.join()
        print(script, p.returncode, out.decode(), err.decode())
        return p.returncode, out.decode(), err.decode()


def look(net, words, home):
    """Which of the words the processes of the session's sandboxes have, in memory or in files, and where."""
    found = set()
    for sandbox in net.api.sandboxes(net.session):
        for pid in base.cgroup_pids(sandbox["cgroup"]):
            with contextlib.suppress(OSError):
                for where, data in (*memory(pid), *files(pid, home)):
                    found.update((where, w) for w in words if w in data)
    return found


def memory(pid):
    with open(f"/proc/{pid}/smaps") as f:
        maps = re.findall(r"^(\w+)-(\w+) rw.. [^\n]*\n(?:[^\n]*\n)??Size:[^\n]*\n(?:[^\n]*\n)*?Rss: +(\d+) kB", f.read(), re.M)
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for begin, end, rss in maps:
            at, end = int(begin, 16), int(end, 16)
            while int(rss) and at < end:
                piece = b""
                with contextlib.suppress(OSError):
                    mem.seek(at)
                    piece = mem.read(min(end - at, 1 << 24))
                yield "memory", piece
                at += max(len(piece) - 256, 1 << 20) if piece else 1 << 24


def files(pid, home):
    root = pathlib.Path(f"/proc/{pid}/root")
    for top in (home, "/run/netpawl"):
        for path in root.joinpath(str(top)[1:]).rglob("*"):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 22:
                    yield f"file {path.relative_to(root)}", path.read_bytes()


def image():
    """A docker archive of one layer."""
    def pack(entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t:
            for name, data in entries:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))
        return out.getvalue()

    layer = pack([("hello", b"words of a layer\n")])
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": ["np/app:1"], "Layers": ["layer.tar"]}]).encode()
    return pack([("config.json", config), ("layer.tar", layer), ("manifest.json", manifest)])
