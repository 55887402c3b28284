# SPDX-License-Identifier: MIT
"""Thousands of requests and responses that are nearly right, through a real sandbox: what an origin understood is what the inspector
judged, and what the bytes say to a reader who follows the RFCs to the letter (lib/strict_http.py); or it did not get there.

make test sends some hundreds that stay the same; make mutate sends MUTANTS of them, with another seed each time.
"""
import collections
import contextlib
import json
import os
import shutil
import subprocess
import threading

import pytest

from lib import base, mutants, strict_http
from lib.rogues import Rogues
from lib.world import FAR

COUNT = int(os.environ.get("NETPAWL_MUTANTS", "500"))
SEED = os.environ.get("NETPAWL_MUTANTS_SEED", "1")
BATCH = 500
POLICY = """version: 1
rules:
  - allow: "**.mutant.test"
    methods: [GET, HEAD, POST]
    paths: ["/m/**", "/r/**"]
"""
# In the sandbox: each text on a connection of its own, and what came back.
CLIENT = r"""
import concurrent.futures, json, socket, sys
a = json.load(sys.stdin)
def one(text):
    got = b""
    try:
        with socket.create_connection((a["to"], 80), timeout=120) as s:
            s.settimeout(a["wait"])
            s.sendall(bytes.fromhex(text))
            s.shutdown(socket.SHUT_WR)
            while (d := s.recv(65536)):
                got += d
    except OSError as e:
        return got.hex(), type(e).__name__
    return got.hex(), ""
with concurrent.futures.ThreadPoolExecutor(12) as pool:
    json.dump(list(pool.map(one, a["texts"])), sys.stdout)
"""
NODE = """
const http = require('http'), fs = require('fs');
const say = (x) => fs.writeSync(1, JSON.stringify(x) + '\\n');
http.createServer((q, s) => {
  const parts = [];
  q.on('data', (d) => parts.push(d));
  q.on('end', () => { say([q.method, q.url, Buffer.concat(parts).toString('hex')]); s.end('ok'); });
}).on('clientError', (e, s) => { if (/^HPE_(?!INVALID_EOF)/.test(e.code)) say([e.code, String(e.rawPacket), '']); s.destroy(); })
  .listen(80, process.argv[1], () => say(['ready', '', '']));
"""
NGINX = """
daemon off; master_process off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.error; events {{ worker_connections 512; }}
http {{
  log_format seen escape=json '["$request_method","$request_uri",$status]';
  access_log {dir}/nginx.seen seen;
  client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
  server {{ listen {addr}:80; location / {{ return 200 ok; }} }}
}}
"""


class Strict:
    """An origin that reads with lib/strict_http: what it understood, and what it could not."""

    def __init__(self):
        self.seen, self.bad = [], []

    def take(self):
        seen, self.seen = self.seen, []
        return seen

    def __call__(self, c):
        data, how = b"", "end"
        try:
            while piece := c.recv(65536):
                data += piece
                found, how, done = strict_http.requests(data)
                self.seen += [(m.start[0], m.start[1], m.body) for m in found]
                if found:
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" * len(found))
                if how == "bad":
                    return
                data = data[done:]
        finally:
            if how == "bad":
                self.bad.append(data)


class Lines:
    """An origin that is a program, and writes a line of JSON for each request."""

    def __init__(self, path):
        self.path, self.at = path, 0

    def take(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            text = f.read()
            self.at = f.tell()
        return [json.loads(line) for line in text.splitlines()]


class Node(Lines):
    def take(self):
        return [(m.encode(), u.encode(), bytes.fromhex(b)) for m, u, b in super().take() if m != "ready"]


class Nginx(Lines):
    """It answers before it has the body, and says nothing of that."""

    def take(self):
        return [(m.encode() if status != 400 else b"400", u.encode(), None) for m, u, status in super().take()]


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Rogues(stack, POLICY, inspectors=1)
        n.kinds = {"strict": Strict()}
        n.origin("strict.mutant.test", n.kinds["strict"])
        folder = base.tempdir("mutants")
        stack.callback(base.drop_tempdir, folder)
        folder.chmod(0o755)

        def program(name, argv):
            addr = n.host(f"{name}.mutant.test")
            with open(folder / f"{name}.out", "wb") as out:
                p = base.popen([*n.world.enter(n.world.far), *argv(addr)], stdin=subprocess.DEVNULL, stdout=out)
            stack.callback(base.reap, p)
            code = f"import socket; socket.create_connection(('{addr}', 80), 1)"
            assert base.eventually(lambda: not base.sh(*n.world.enter(n.world.far), base.PYTHON, "-c", code, check=False).returncode, 20)

        if shutil.which("node"):
            program("node", lambda addr: ["node", "-e", NODE, addr])
            n.kinds["node"] = Node(folder / "node.out")
        if nginx := shutil.which("nginx", path="/usr/sbin:/usr/bin"):
            (folder / "nginx.seen").touch()

            def argv(addr):
                (folder / "nginx.conf").write_text("user root;" + NGINX.format(dir=folder, addr=addr))
                return [nginx, "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.error")]

            program("nginx", argv)
            n.kinds["nginx"] = Nginx(folder / "nginx.seen")
        yield n


class Journal:
    """The events of requests, as far as they have not been read; also when the file is rotated meanwhile."""

    def __init__(self, net):
        self.path, self.rest = net.daemon.state_dir / "events/events.ndjson", b""
        self.file = open(self.path, "rb")
        self.file.seek(0, os.SEEK_END)

    def read(self):
        self.rest += self.file.read()
        if os.stat(self.path).st_ino != os.fstat(self.file.fileno()).st_ino:
            self.rest += self.file.read()
            self.file.close()
            self.file = open(self.path, "rb")
            self.rest += self.file.read()
        *lines, self.rest = self.rest.split(b"\n")
        return [e for e in map(json.loads, lines) if e.get("url") and e.get("method")]

    def until(self, url):
        """All up to the one of this URL, which is the last: the worker is one, and reports in order."""
        found = []

        def there():
            found.extend(self.read())
            return any(e["url"] == url for e in found)

        assert base.eventually(there, 20), f"no event of {url}; the newest: {found[-3:]}"
        return found


def send(net, texts, wait=4, control=None):
    argv = [*net.world.enter()] if control else net.argv()
    p = subprocess.run([*argv, base.PYTHON, "-c", CLIENT], env=net.env(), capture_output=True, timeout=600,
                       input=json.dumps({"to": control or FAR[4], "texts": [t.hex() for t in texts], "wait": wait}).encode())
    assert p.returncode == 0, p.stderr.decode()[-2000:]
    return [(bytes.fromhex(got), error) for got, error in json.loads(p.stdout)]


def path_of(target):
    """Without scheme and host, as it goes to an origin."""
    return b"/" + target.split(b"/", 3)[3] if target.startswith(b"http://") and target.count(b"/") > 2 else target


def batches(count):
    return [range(at, min(at + BATCH, count)) for at in range(0, count, BATCH)]


def check_requests(net, kind, numbers, journal, counts):
    host = f"{kind}.mutant.test"
    texts = {n: mutants.request(SEED, n, host) for n in numbers}
    last = f"/m/last-{numbers[0]}"
    send(net, [*texts.values()])
    (got, error), = send(net, [f"GET {last} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()], wait=20)
    assert got.startswith(b"HTTP/1.1 200 "), (last, got, error)
    events = journal.until(f"http://{host}{last}")
    seen = net.kinds[kind].take()
    judged = collections.Counter((e["method"], e["url"].removeprefix(f"http://{host}")) for e in events if e["kind"] == "allow")
    sent = collections.defaultdict(list)
    for e in events:
        sent[e["method"], e["url"].removeprefix(f"http://{host}")].append(e.get("sent", 0))
    read = {n: strict_http.requests(text) for n, text in texts.items()}
    words = {(m.start[0], path_of(m.start[1]), m.body) for found, *_ in read.values() for m in found}
    wrong = []
    for method, target, body in seen:
        if target == last.encode():
            continue
        key = method.decode("latin-1"), target.decode("latin-1")
        if not target.startswith(b"/m/"):
            wrong.append(("smuggled", method, target, body))
        elif judged[key] <= 0:
            wrong.append(("not judged", method, target, body))
        elif body is not None and (method, target, body) not in words:
            wrong.append(("understood otherwise", method, target, body))
        elif body is not None and len(body) not in sent[key]:
            wrong.append(("counted otherwise", method, target, len(body), sent[key]))
        judged[key] -= 1
        counts["reached"] += 1
    # What is in order, and no rule forbids, gets there: a gate that refuses everything would pass the rest.
    plain = {n for n, (found, how, _) in read.items() if how == "end" and found}
    got = {t for _, t, _ in seen}
    counts["in order"] += len(plain)
    counts["in order and reached"] += sum(path_of(read[n][0][0].start[1]) in got for n in plain)
    counts["sent"] += len(texts)
    for w in wrong:
        print(w, [text for n, text in texts.items() if b"/%d" % n in w[2]])
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("kind", ["strict", "node", "nginx"])
def test_what_an_origin_understood_was_judged(net, kind):
    if kind not in net.kinds:
        pytest.skip(f"{kind} is not installed")
    journal, counts = Journal(net), collections.Counter()
    for numbers in batches(COUNT):
        check_requests(net, kind, numbers, journal, counts)
    print(kind, dict(counts))
    assert not getattr(net.kinds[kind], "bad", []), net.kinds[kind].bad[:3]
    assert counts["in order and reached"] > counts["sent"] / 20, counts


def test_control_without_the_inspector(net):
    """Straight to a lenient origin they do smuggle: the strict reader of the test sees /s/ in what netpawl keeps away."""
    addr = net.names["strict.mutant.test"][0]
    send(net, [mutants.request(SEED, n, "strict.mutant.test") for n in range(200)], control=addr, wait=2)
    assert base.eventually(lambda: any(t.startswith(b"/s/") for _, t, _ in net.kinds["strict"].seen))
    assert any(t.startswith(b"/s/") for _, t, _ in net.kinds["strict"].take())
    net.kinds["strict"].bad.clear()


def test_what_a_client_understood_was_sent(net):
    """Responses: each is what the origin said, or an error; and the one behind it is the next request's own."""
    said, lock = {}, threading.Lock()

    def answer(c):
        data = b""
        c.settimeout(20)
        while piece := c.recv(65536):
            data += piece
            found, _, done = strict_http.requests(data)
            data = data[done:]
            for m in found:
                _, _, number, which = m.start[1].split(b"/")
                if which == b"b":
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nown-%s" % (4 + len(number), number))
                    continue
                text = mutants.response(SEED, int(number))
                with lock:
                    said[int(number)] = text
                c.sendall(text)
                if int(number) % 2 or strict_http.responses(text, [b"GET"])[1] != "end" or b"content-length" not in text.lower():
                    return

    host = "response.mutant.test"
    net.origin(host, answer)
    counts, wrong = collections.Counter(), []
    for numbers in batches(COUNT):
        texts = [b"".join(b"GET /r/%d/%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (n, which, host.encode()) for which in (b"a", b"b"))
                 for n in numbers]
        for n, (got, error) in zip(numbers, send(net, texts)):
            counts["sent"] += 1
            counts[error] += 1
            there, how = strict_http.responses(got, [b"GET", b"GET"])
            if how in ("bad", "more"):
                wrong.append((n, how, said.get(n), got))
                continue
            own = lambda m: bool(strict_http.values(m.fields, b"x-netpawl-reason"))
            for which, m in zip("ab", there):
                if own(m):
                    counts[f"{which} refused"] += 1
                elif which == "b":
                    counts["b"] += 1
                    if m.body != b"own-%d" % n:
                        wrong.append((n, "not its own", said.get(n), got))
                else:
                    counts["a"] += 1
                    origin, _ = strict_http.responses(said[n], [b"GET"])
                    if not origin or (origin[0].start, origin[0].body) != (m.start, m.body):
                        wrong.append((n, "another", said[n], got))
    print(dict(counts))
    for w in wrong:
        print(w)
    assert not wrong, wrong[:5]
    assert counts["a"] > counts["sent"] / 5 and counts["b"] > counts["sent"] / 5 and counts["a refused"], counts
