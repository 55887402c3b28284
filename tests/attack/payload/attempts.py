# SPDX-License-Identifier: MIT
"""Attempts of a real client, many at once: what comes of each. For tests/e2e/test_differential.py."""
import concurrent.futures
import hashlib
import socket
import ssl
import struct

SERVER = ("198.51.100.53", 53)  # nobody is there: the DNS gate answers
TYPES = {"A": 1, "MX": 15}
PROXY = ("203.0.113.7", 443)  # an inspected port of anybody: what is no TLS there is for a proxy
TIMEOUT = 120


def _name_end(data, at):
    while data[at]:
        if data[at] >= 0xc0:
            return at + 2
        at += 1 + data[at]
    return at + 1


def _ask(name, kind):
    """(rcode, data of the records of that type)"""
    query = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    query += b"\0" + struct.pack("!HH", TYPES[kind], 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(TIMEOUT)
        s.connect(SERVER)
        s.send(query)
        data = s.recv(4096)
    _, flags, _, count, _, _ = struct.unpack("!6H", data[:12])
    at, found = _name_end(data, 12) + 4, []
    for _ in range(count):
        at = _name_end(data, at)
        got, _, _, size = struct.unpack("!HHIH", data[at:at + 10])
        if got == TYPES[kind]:
            found.append(data[at + 10:at + 10 + size])
        at += 10 + size
    return flags & 15, found


def _address(a):
    if a.get("addr"):
        return a["addr"]
    rcode, found = _ask(a["name"], "A")
    if rcode or not found:
        raise OSError(f"rcode {rcode}, {len(found)} addresses")
    return socket.inet_ntoa(found[0])


def _host(a):
    return a.get("name") or (f"[{a['addr']}]" if ":" in a["addr"] else a["addr"])


def _request(a):
    host = _host(a)
    if a["port"] != (443 if a["tls"] else 80):
        host += f":{a['port']}"
    target = f"http://{host}{a['path']}" if a["proxy"] == "absolute" else a["path"]
    lines = [f"{a['method']} {target} HTTP/1.1", f"Host: {host}", f"X-Mark: {a['mark']}"]
    lines += [f"{h}: 1" for h in a["headers"]]
    if a["websocket"]:
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    else:
        lines += ["Connection: close"]
    if a["body"]:
        lines += [f"Content-Length: {a['body']}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + "b" * a["body"]).encode()


def _head(s):
    """Up to the end of a response's head: the mark comes back in a field of it."""
    data = b""
    while b"\r\n\r\n" not in data and (got := s.recv(65536)):
        data += got
    return data


def _tcp(a):
    out = {}
    mark = a["mark"].encode()
    s = socket.create_connection(PROXY if a["proxy"] else (_address(a), a["port"]), TIMEOUT)
    try:
        if a["proxy"] == "connect":
            s.sendall(f"CONNECT {_host(a)}:{a['port']} HTTP/1.1\r\nHost: {_host(a)}:{a['port']}\r\n\r\n".encode())
            data = _head(s)
            if not data.startswith(b"HTTP/1.1 200 "):
                return {"reached": False, "data": data[:300].decode("latin-1")}
        if a["tls"]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            s = context.wrap_socket(s, server_hostname=a.get("name"))
            out["cert"] = hashlib.sha256(s.getpeercert(binary_form=True)).hexdigest()
        s.sendall(_request(a))
        data = _head(s)
        out.update(reached=mark in data, data=data[:300].decode("latin-1"))
    finally:
        s.close()
    return out


def _udp(a):
    addr = _address(a)
    with socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        for _ in range(20):  # what is allowed comes back at once, but the machine may be busy
            s.sendto(a["mark"].encode(), (addr, a["port"]))
            try:
                return {"reached": a["mark"].encode() in s.recv(4096)}
            except TimeoutError:
                pass
    return {"reached": False, "error": "silence"}


def _lookup(a):
    rcode, found = _ask(a["name"], a["type"])
    return {"reached": bool(found), "rcode": rcode}


def _one(a):
    try:
        return {"tcp": _tcp, "udp": _udp, "lookup": _lookup}[a["kind"]](a)
    except OSError as e:
        return {"reached": False, "error": f"{type(e).__name__}: {e}"}


def run(attempts):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(_one, attempts))
