# SPDX-License-Identifier: MIT
"""Websockets by hand: the handshake's fields, its answer, and frames, right and wrong ones."""
import base64
import hashlib
import struct

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
FIELDS = {"Connection": "upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}
CURL = [word for name, value in FIELDS.items() for word in ("-H", f"{name}: {value}")]


def request(host, path="/ws", method="GET", version="HTTP/1.1", body="", **fields):
    """fields replace those of FIELDS, with _ for -; None leaves one out."""
    all_fields = {**FIELDS, **{k.replace("_", "-"): v for k, v in fields.items()}}
    lines = "".join(f"{k}: {v}\r\n" for k, v in all_fields.items() if v is not None)
    return f"{method} {path} {version}\r\nHost: {host}\r\n{lines}\r\n{body}"


def accept(key=KEY):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def response(key=KEY, **fields):
    more = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in fields.items())
    return f"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept(key)}\r\n{more}\r\n".encode()


def frame(data=b"", first=0x81, mask=None, length=None):
    """first: FIN, reserved bits and opcode. mask: four bytes. length: how it is written, when that is not the shortest form."""
    n = len(data)
    bit = 0x80 if mask else 0
    if length is None:
        length = bytes([bit | n]) if n < 126 else struct.pack("!BH", bit | 126, n) if n < 65536 else struct.pack("!BQ", bit | 127, n)
    if mask:
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
    return bytes([first]) + length + (mask or b"") + data


def masked(data=b"", first=0x81, **kw):
    return frame(data, first, mask=b"\x11\x22\x33\x44", **kw)
