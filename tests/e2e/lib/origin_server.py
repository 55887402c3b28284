# SPDX-License-Identifier: MIT
"""DNS for *.test and an HTTP(S) server that says what it got. Arguments: DNS address and port, address of the names,
certificate, key. Serves 80 and 443 of that address."""
import http.server
import json
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time

import websocket  # beside this file

ADDRESS = None


def wire(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


MX, TXT, SRV = 15, 16, 33
RECORDS = {
    ("records.test", MX): [b"\0\x0a\3mx1\xc0\x0c", b"\0\x14" + wire("Mx2.elsewhere.example"), b"\0\x1e\3bad\1 \0"],
    ("records.test", TXT): [b"\x0bv=spf1 -all", b"\3two\7strings"],
    ("_svc._tcp.records.test", SRV): [struct.pack("!3H", 1, 2, 443) + wire("srv.records.test")],
    ("big.records.test", TXT): [bytes([200]) + bytes([65 + i]) * 200 for i in range(20)],
    ("huge.records.test", TXT): [bytes([255]) + b"x" * 255] * 100,
    **{(f"late{i}.records.test", TXT): [bytes([255]) + b"x" * 255] * 60 for i in range(5)},
    ("elsewhere.test", MX): [b"\0\1" + wire("mx.elsewhere.test")],
}


def record(kind, data, owner=b"\xc0\x0c"):
    return owner + struct.pack("!HHIH", kind, 1, 5, len(data)) + data


def records_answer(name, kind, head, question, tcp):
    """As a resolver says it, with more than was asked for: an alias, and the addresses of what is named."""
    if name == "slow.records.test":
        return None
    if name.startswith("late") and tcp:
        time.sleep(0.3)
    answers = [record(kind, data) for data in RECORDS.get((name, kind), [])]
    if name == "alias.records.test":
        owner = wire("elsewhere.test")
        answers = [record(5, owner), *[record(kind, data, owner) for data in RECORDS.get(("elsewhere.test", kind), [])]]
    flags = 0x8182 if name == "fail.records.test" else 0x8380 if not tcp and sum(map(len, answers)) > 1000 else 0x8180
    if flags != 0x8180:
        answers = []
    more = record(1, socket.inet_aton(ADDRESS), wire("mx1.records.test"))
    return struct.pack("!6H", head, flags, 1, len(answers), 0, 1) + question + b"".join(answers) + more


def dns_answer(query, tcp=False):
    ident, flags, qd, _, _, _ = struct.unpack("!6H", query[:12])
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    question = query[12 : at + 5]
    spelled = ".".join(labels)
    name = spelled.lower()
    addresses = {"loop.test": "127.0.0.1", "meta.test": "169.254.169.254", "host.test": "192.0.2.2",
                 "dead.test": "198.51.100.99"}
    found = name.endswith(".test") and not name.startswith("nx.")
    rdata = b""
    if found and kind == 1:
        rdata = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 5, 4) + socket.inet_aton(addresses.get(name, ADDRESS))
    sys.stderr.write(f"dns {spelled} {kind}\n")
    sys.stderr.flush()
    if kind in (MX, TXT, SRV):
        return records_answer(name, kind, ident, question, tcp)
    return struct.pack("!6H", ident, 0x8180 | (0 if found else 3), 1, 1 if rdata else 0, 0, 0) + question + rdata


def serve_dns(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, port))
    while True:
        query, peer = s.recvfrom(2048)
        try:
            answer = dns_answer(query)
            if answer:
                s.sendto(answer, peer)
        except (IndexError, struct.error):
            pass


class DnsStream(socketserver.StreamRequestHandler):
    def handle(self):
        while len(head := self.rfile.read(2)) == 2:
            answer = dns_answer(self.rfile.read(struct.unpack("!H", head)[0]), tcp=True) or b""
            self.wfile.write(struct.pack("!H", len(answer)) + answer)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are written one after the other

    def body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            got = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                got += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                pass
            return got
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def websocket(self):
        """A websocket, as far as bytes go: what comes is read and forgotten. At /echo the first message, a short one with a
        mask of zeros, is sent back."""
        self.send_response(101)
        self.send_header("connection", "upgrade")
        self.send_header("upgrade", "websocket")
        self.send_header("sec-websocket-accept", websocket.accept(self.headers.get("sec-websocket-key", "")))
        self.end_headers()
        if self.path == "/echo":
            head = self.rfile.read(6)
            self.wfile.write(bytes([head[0], head[1] & 0x7f]) + self.rfile.read(head[1] & 0x7f))
        while self.rfile.read1(65536):
            pass
        self.close_connection = True

    def answer(self):
        if self.headers.get("upgrade") == "websocket":
            return self.websocket()
        if self.path.startswith("/stream"):
            return self.stream()
        if self.path.startswith("/hold"):
            self.rfile.read(1)  # until the client goes
            self.close_connection = True
            return None
        if self.path.startswith("/bytes/"):
            return self.bytes(int(self.path.split("/")[2]))
        if self.path.startswith("/status/"):
            self.send_response(int(self.path.split("/")[2]))
            self.send_header("content-length", "0")
            self.end_headers()
            return None
        got = self.body()
        text = json.dumps({"method": self.command, "path": self.path, "host": self.headers.get("host"),
                           "headers": {k.lower(): v for k, v in self.headers.items()}, "body": len(got),
                           "text": got[:200].decode("latin-1"), "port": self.server.server_port,
                           "peer": self.client_address[1]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
        return None

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for i in range(5):
            line = f"data: {i}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(0.2)
        self.wfile.write(b"0\r\n\r\n")

    def bytes(self, n):
        self.send_response(200)
        self.send_header("content-length", str(n))
        self.end_headers()
        block = b"x" * 65536
        while n > 0:
            self.wfile.write(block[: min(n, len(block))])
            n -= len(block)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = answer

    def log_message(self, fmt, *args):
        sys.stderr.write(f"{self.server.server_port} {fmt % args}\n")
        sys.stderr.flush()


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True


def main():
    global ADDRESS
    dns, port, ADDRESS, cert, key = sys.argv[1:]
    threading.Thread(target=serve_dns, args=(dns, int(port)), daemon=True).start()
    socketserver.ThreadingTCPServer.allow_reuse_address = socketserver.ThreadingTCPServer.daemon_threads = True
    stream = socketserver.ThreadingTCPServer((dns, int(port)), DnsStream)
    threading.Thread(target=stream.serve_forever, daemon=True).start()
    plain = Server((ADDRESS, 80), Handler)
    tls = Server((ADDRESS, 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
    for server in (plain, tls):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
