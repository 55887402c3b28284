# SPDX-License-Identifier: MIT
"""The far side of test_differential.py: DNS for its names, and on every port a server that gives the mark of a request back.
Arguments: DNS address and port, the names as JSON, certificate, key, plain ports, TLS ports."""
import base64
import hashlib
import json
import re
import socket
import ssl
import struct
import sys
import threading

A, CNAME, MX, AAAA = 1, 5, 15, 28


def wire(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(owner, kind, data):
    return wire(owner) + struct.pack("!HHIH", kind, 1, 60, len(data)) + data


def dns_answer(query, names):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    kind, = struct.unpack("!H", query[at + 1:at + 3])
    name = ".".join(labels).lower()
    found = names.get(name)
    answers = []
    if found:
        aliases, address = found
        owner = name
        for alias in aliases:
            answers.append(record(owner, CNAME, wire(alias)))
            owner = alias
        if kind == (AAAA if ":" in address else A):
            answers.append(record(owner, kind, socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, address)))
        if kind == MX:
            answers.append(record(owner, MX, b"\0\1" + wire("mx.test")))
    return (query[:2] + struct.pack("!5H", 0x8180 if found else 0x8183, 1, len(answers), 0, 0) + query[12:at + 5] +
            b"".join(answers))


def serve_dns(address, names):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(address)
    while True:
        query, peer = s.recvfrom(2048)
        try:
            s.sendto(dns_answer(query, names), peer)
        except (IndexError, struct.error):
            pass


def answer(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        got = conn.recv(65536)
        if not got:
            return
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while len(body) < int(length.group(1) if length else 0):
        got = conn.recv(65536)
        if not got:
            return
        body += got
    mark = re.search(rb"(?i)\r\nx-mark: *(\w+)", head)
    key = re.search(rb"(?i)\r\nsec-websocket-key: *(\S+)", head)
    lines = [b"x-mark-back: " + (mark.group(1) if mark else b"none")]
    if key:
        digest = hashlib.sha1(key.group(1) + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        lines = [b"HTTP/1.1 101 Switching Protocols", b"connection: upgrade", b"upgrade: websocket",
                 b"sec-websocket-accept: " + base64.b64encode(digest), *lines]
    else:
        lines = [b"HTTP/1.1 200 OK", b"content-length: 0", b"connection: close", *lines]
    conn.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
    if key:
        conn.recv(65536)  # until the client goes


def serve(port, context):
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    s.listen(256)

    def one(conn):
        try:
            conn.settimeout(30)
            if context:
                conn = context.wrap_socket(conn, server_side=True)
            answer(conn)
        except OSError:
            pass
        finally:
            conn.close()

    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()


def main():
    dns, port, names, cert, key, plain, tls = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    jobs = [(serve_dns, (dns, int(port)), json.loads(names))]
    jobs += [(serve, int(p), None) for p in plain.split(",")] + [(serve, int(p), context) for p in tls.split(",")]
    threads = [threading.Thread(target=f, args=args, daemon=True) for f, *args in jobs]
    for t in threads:
        t.start()
    print("ready", flush=True)
    threads[0].join()


if __name__ == "__main__":
    main()
