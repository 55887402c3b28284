# SPDX-License-Identifier: MIT
"""The far side of test_clients.py, as far as it is Python: DNS from a table, an HTTP/1.1 server that says what it got,
one that answers with the bytes that a path asks for, and one for websockets. Argument: a JSON file."""
import asyncio
import hashlib
import json
import logging
import pathlib
import select
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import origin_server  # noqa: E402
import websocket  # noqa: E402

WAIT = 10  # a bound against hangs


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


# -- DNS --------------------------------------------------------------------------------

def dns_answer(query, table):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1").lower())
        at += 1 + query[at]
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    address = table.get(".".join(labels))
    rdata = b""
    family = socket.AF_INET6 if address and ":" in address else socket.AF_INET
    if address and kind == (28 if family == socket.AF_INET6 else 1):
        data = socket.inet_pton(family, address)
        rdata = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 5, len(data)) + data
    flags = 0x8180 | (0 if address else 3)
    return query[:2] + struct.pack("!5H", flags, 1, 1 if rdata else 0, 0, 0) + query[12 : at + 5] + rdata


def serve_dns(address, port, table):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, port))
    while True:
        query, peer = s.recvfrom(2048)
        try:
            text = dns_answer(query, table)
        except (IndexError, struct.error):
            continue
        if query[13:17].lower() == b"slow":  # a name that takes its time
            threading.Timer(0.4, s.sendto, (text, peer)).start()
        else:
            s.sendto(text, peer)


# -- HTTP/1.1 by the book ---------------------------------------------------------------

class Acks:
    """What clients have confirmed; a stream goes on only after that."""

    def __init__(self):
        self.changed, self.seen = threading.Condition(), set()

    def give(self, what):
        with self.changed:
            self.seen.add(what)
            self.changed.notify_all()

    def wait(self, what):
        with self.changed:
            return self.changed.wait_for(lambda: what in self.seen, WAIT)


acks = Acks()


class Handler(origin_server.Handler):
    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        words = url.path.strip("/").split("/")
        method = getattr(self, "get_" + words[0].replace("-", "_"), None)
        if method:
            return method(*words[1:])
        return super().answer()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = answer

    def plain(self, status=200, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status not in (204, 304):
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def get_sha(self):
        """The body's hash, read as it comes."""
        digest, total, chunked = hashlib.sha256(), 0, "transfer-encoding" in self.headers
        left = 0 if chunked else int(self.headers.get("content-length", 0))
        while chunked and (size := int(self.rfile.readline(), 16)):
            digest.update(self.rfile.read(size))
            self.rfile.readline()
            total += size
        if chunked:
            self.rfile.readline()
        while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
            digest.update(block)
            left -= len(block)
            total += len(block)
        self.plain(body=json.dumps({"sha": digest.hexdigest(), "len": total}).encode())

    def get_sse(self, ident):
        """Each event waits until the client has confirmed the one before: what is held back anywhere ends in a cut."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for i in range(3):
            line = b"data: %d\n\n" % i
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            if not acks.wait((ident, i)):
                log(f"sse {ident}: event {i} was not confirmed")
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def get_ack(self, ident, n):
        self.body()
        acks.give((ident, int(n)))
        self.plain(204)

    def get_status(self, code):
        self.body()
        self.plain(int(code), b"", etag='"v1"')

    def get_cache(self):
        if self.headers.get("if-none-match") == '"v1"':
            return self.plain(304, etag='"v1"')
        return self.plain(200, b"cached", etag='"v1"')

    def get_cookies(self):
        self.send_response(200)
        for i in range(3):
            self.send_header("Set-Cookie", f"c{i}=v{i}; Path=/")
        self.send_header("content-length", "0")
        self.end_headers()

    def get_stall(self):
        """Takes nothing of a body until it is told to."""
        acks.wait((urllib.parse.urlsplit(self.path).query, "go"))
        self.close_connection = True

    def get_hold(self, ident):
        """Answers when somebody else asked for it."""
        log(f"hold {ident}")
        self.plain(200, b"held" if acks.wait((ident, 0)) else b"nobody came")


# -- HTTP/1.1 byte by byte ----------------------------------------------------------------

requests_seen = {}  # mark -> how many requests
seen_lock = threading.Lock()


class Raw(socketserver.BaseRequestHandler):
    """Each path is a behaviour. What a request looked like on the wire is in the answer of /echo."""

    def handle(self):
        self.buffer, self.n = bytearray(), 0
        self.request.settimeout(30)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self.one():
                self.n += 1
        except (OSError, ConnectionError):
            pass

    def more(self):
        block = self.request.recv(1 << 20)
        if not block:
            raise ConnectionError
        self.buffer += block

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        return self.take(self.buffer.index(mark) + len(mark))

    def take(self, n):
        part = bytes(self.buffer[:n])
        del self.buffer[:n]
        return part

    def exactly(self, n):
        while len(self.buffer) < n:
            self.more()
        return self.take(n)

    def read_body(self, head):
        """(raw, decoded, trailers)"""
        fields = {}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            fields[name.strip().lower()] = value.strip()
        if fields.get(b"transfer-encoding", b"").lower() != b"chunked":
            body = self.exactly(int(fields.get(b"content-length", 0)))
            return body, body, b""
        raw, decoded = bytearray(), bytearray()
        while True:
            line = self.until(b"\r\n")
            raw += line
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            part = self.exactly(size + 2)
            raw += part
            decoded += part[:-2]
        trailers = b""
        while (line := self.until(b"\r\n")) != b"\r\n":
            trailers += line
        return bytes(raw + trailers + b"\r\n"), bytes(decoded), trailers

    def one(self):
        head = self.until(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ")
        url = urllib.parse.urlsplit(target)
        mark = dict(urllib.parse.parse_qsl(url.query)).get("mark", "")
        with seen_lock:
            requests_seen[mark] = requests_seen.get(mark, 0) + 1
        log(f"raw {method} {target} #{self.n}")
        self.head, self.method, self.mark = head, method, mark
        return getattr(self, "do_" + url.path.strip("/").replace("-", "_"))()

    def send(self, *parts):
        self.request.sendall(b"".join(p if isinstance(p, bytes) else p.encode() for p in parts))

    def reply(self, body, more=""):
        if isinstance(body, str):
            body = body.encode()
        self.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{more}\r\n", b"" if self.method == "HEAD" else body)
        return True

    def do_echo(self):
        raw, decoded, trailers = self.read_body(self.head)
        return self.reply(json.dumps({
            "head": self.head.decode("latin-1"), "raw": raw[:4000].decode("latin-1"), "len": len(decoded),
            "body": decoded[:4000].decode("latin-1"), "trailers": trailers.decode("latin-1"), "n": self.n}))

    def do_count(self):
        """How many requests came with this mark, this one not counted."""
        with seen_lock:
            return self.reply(str(requests_seen[self.mark] - 1))

    def do_hints(self):
        self.read_body(self.head)
        self.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        if not acks.wait((self.mark, "hints")):  # the client has it before there is a response
            return False
        return self.reply("after the hints", "X-Final: yes\r\n")

    def do_hints_ack(self):
        acks.give((self.mark, "hints"))
        return self.reply("")

    def do_two_hints(self):
        self.read_body(self.head)
        self.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
        return True

    def do_trailers(self):
        self.read_body(self.head)
        self.send("HTTP/1.1 200 OK\r\nTrailer: X-Checksum\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5;ext=1\r\nhello\r\n", "6\r\n world\r\n0\r\nX-Checksum: abc\r\nX-Other: d\r\n\r\n")
        return True

    def do_continue(self):
        """100 goes out only when no byte of the body came before it."""
        early = bool(self.buffer) or bool(select.select([self.request], [], [], 0.2)[0])
        self.send("HTTP/1.1 100 Continue\r\n\r\n")
        _, decoded, _ = self.read_body(self.head)
        return self.reply(json.dumps({"early": early, "sha": hashlib.sha256(decoded).hexdigest(), "len": len(decoded),
                                      "expect": b"expect: 100-continue" in self.head.lower()}))

    def do_no_continue(self):
        """A final answer to somebody who asks before sending."""
        self.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\nConnection: close\r\n\r\nno!!\n")
        early = bool(self.buffer)
        log(f"no-continue {self.mark} early={early}")
        return False

    def do_early(self):
        """Answers before it has read the body, and never reads it."""
        self.send("HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
        self.request.shutdown(socket.SHUT_WR)
        end = time.monotonic() + 2
        while time.monotonic() < end and select.select([self.request], [], [], 0.5)[0]:
            if not self.request.recv(65536):
                break
        return False

    def do_switch(self):
        """101 and the first frame in one write; then a short frame's words go back, in a frame of their own."""
        self.send(websocket.response(), websocket.frame(b"first words"))
        while True:
            while len(self.buffer) < 6 or len(self.buffer) < 6 + self.buffer[1] % 128:
                self.more()
            head = self.take(6)
            words = bytes(b ^ head[2 + i % 4] for i, b in enumerate(self.take(head[1] % 128)))
            self.send(websocket.frame(b"<" + words + b">"))

    def do_once(self):
        """One answer on each connection; the next request is read, and the connection closed."""
        self.read_body(self.head)
        return self.reply(f"{self.n}") if self.n == 0 else False

    def do_idle_close(self):
        """Answers as if the connection stayed, and closes it."""
        self.read_body(self.head)
        self.reply(f"{self.n}")
        return False

    def do_until_close(self):
        self.read_body(self.head)
        self.send("HTTP/1.1 200 OK\r\n\r\n", "x" * 90000, "the end")
        if isinstance(self.request, ssl.SSLSocket):
            self.request.unwrap()
        return False

    def do_old(self):
        self.read_body(self.head)
        self.send("HTTP/1.0 200 OK\r\nServer: old\r\n\r\n", "old words")
        if isinstance(self.request, ssl.SSLSocket):
            self.request.unwrap()
        return False

    def do_cut(self):
        self.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "x" * 500)
        return False

    def do_cut_chunked(self):
        self.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n", "x" * 1000, "\r\n")
        return False

    def do_cut_old(self):
        """Until the close, which TLS does not confirm: nobody knows that it is all."""
        self.send("HTTP/1.1 200 OK\r\n\r\n", "x" * 500)
        if isinstance(self.request, ssl.SSLSocket):
            self.request = socket.socket(fileno=self.request.detach())
        self.request.shutdown(socket.SHUT_RDWR)
        return False

    def do_surplus(self):
        """A second response that nobody asked for, in the same write."""
        self.read_body(self.head)
        self.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
                  "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned")
        return True

    def do_broken(self):
        """Not HTTP."""
        self.send("SSH-2.0-OpenSSH_9.2\r\n\r\n")
        return False

    def do_both_lengths(self):
        self.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        return False

    def do_large_head(self):
        self.read_body(self.head)
        return self.reply("large", "".join(f"X-F{i}: {'v' * 300}\r\n" for i in range(100)))

    def do_odd_fields(self):
        """What is unusual, and allowed."""
        self.read_body(self.head)
        return self.reply("odd", "X-Empty:\r\nx_under_score: 1\r\nX-Twice: a\r\nX-Twice: b\r\n"
                          "Content-Disposition: attachment; filename=\"gr\u00fc\u00dfe.txt\"\r\n")

    def do_slow(self):
        """A response in many small pieces, each with a push of its own."""
        self.read_body(self.head)
        chunks = "".join(f"1\r\n{c}\r\n" for c in "piecemeal")
        for c in f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n":
            self.send(c)
        return True


class RawServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True
    context = None

    def handle_error(self, request, client_address):
        log(f"raw: {sys.exc_info()[1]!r}")

    def finish_request(self, request, client_address):
        if self.context:
            try:
                request = self.context.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError):
                return
        self.RequestHandlerClass(request, client_address, self)
        try:
            request.close()
        except OSError:
            pass


# -- websockets -------------------------------------------------------------------------

async def echo(ws, path=None):
    await ws.send("welcome")
    async for message in ws:
        await ws.send(message)


async def websocket_main(address, context):
    import websockets

    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    async with websockets.serve(echo, address, 80, max_size=None), \
            websockets.serve(echo, address, 443, ssl=context, max_size=None):
        await asyncio.Future()


def main():
    conf = json.loads(pathlib.Path(sys.argv[1]).read_text())
    threading.Thread(target=serve_dns, args=(conf["dns"], conf["dns_port"], conf["names"]), daemon=True).start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(conf["cert"], conf["key"])
    servers = [origin_server.Server((conf["py"], 80), Handler), origin_server.Server((conf["py"], 443), Handler),
               RawServer((conf["raw"], 80), Raw), RawServer((conf["raw"], 443), Raw)]
    servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True, do_handshake_on_connect=False)
    servers[3].context = context
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=lambda: asyncio.run(websocket_main(conf["ws"], context)), daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
