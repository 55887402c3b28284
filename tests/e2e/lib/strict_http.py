# SPDX-License-Identifier: MIT
"""HTTP/1.1 as RFC 9110 and 9112 have it and not one byte otherwise: what a stream of bytes says, by a second reader.

Written for tests alone, and unlike the inspector's parsers on purpose: whole texts and regular expressions. Where the RFCs leave
a choice (a recipient MAY accept) the message is bad here.
"""
import collections
import re

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9]) ?[\t -~\x80-\xff]*")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?)[ \t]*")
EXTENSIONS = re.compile(rb"(?:[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN +
                        rb"|\"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*\"))?)*")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(.*)", re.S)

Message = collections.namedtuple("Message", "start fields body")


class Bad(Exception):
    pass


class Short(Exception):
    """The bytes end before the message does."""


def line(data, at):
    """A line that ends in CRLF, and where the next one begins. No CR or LF is anywhere else."""
    end = data.find(b"\n", at)
    if end < 0:
        if b"\r" in data[at:-1]:
            raise Bad("CR")
        raise Short
    text = data[at:end]
    if text[-1:] != b"\r" or b"\r" in text[:-1] or b"\0" in text:
        raise Bad("the end of a line")
    return text[:-1], end + 1


def fields(data, at):
    found = []
    while True:
        text, at = line(data, at)
        if not text:
            return found, at
        m = FIELD.fullmatch(text)
        if not m:
            raise Bad(f"field {text!r}")
        found.append((m[1].lower(), m[2]))


def values(found, name):
    return [v for n, v in found if n == name]


def chunked(data, at):
    body = b""
    while True:
        text, at = line(data, at)
        m = CHUNK.fullmatch(text)
        if not m or not EXTENSIONS.fullmatch(m[2]):
            raise Bad(f"chunk {text!r}")
        size = int(m[1], 16)
        if not size:
            _, at = fields(data, at)
            return body, at
        if len(data) < at + size + 2:
            rest = data[at + size:]
            if rest and rest != b"\r":
                raise Bad("no CRLF behind a chunk")
            raise Short
        if data[at + size : at + size + 2] != b"\r\n":
            raise Bad("no CRLF behind a chunk")
        body += data[at : at + size]
        at += size + 2


def length_of(found, minor):
    """How the body is framed: None (nothing says so), "chunked" or a number."""
    te, cl = values(found, b"transfer-encoding"), values(found, b"content-length")
    if te:
        if cl or minor == b"0" or len(te) != 1 or te[0].lower() != b"chunked":
            raise Bad("transfer-encoding")
        return "chunked"
    # RFC 9110, 8.6: a list of the same number may be taken for that number.
    numbers = {v.strip(b" \t") for text in cl for v in text.split(b",")}
    if len(numbers) > 1 or any(not re.fullmatch(rb"[0-9]{1,18}", v) for v in numbers):
        raise Bad("content-length")
    return int(numbers.pop()) if numbers else None


def body_of(data, at, framing, until_close):
    """The body, and where the next message begins."""
    if framing == "chunked":
        return chunked(data, at)
    if framing is None:
        return (data[at:], len(data)) if until_close else (b"", at)
    if len(data) < at + framing:
        raise Short
    return data[at : at + framing], at + framing


def requests(data):
    """The requests of a stream, how it ends ("end", "short" or "bad"), and where the last of them does."""
    found, at, done = [], 0, 0
    try:
        while True:
            while data.startswith(b"\r\n", at):  # RFC 9112, 2.2
                at += 2
            if at == len(data):
                return found, "end", done
            text, at = line(data, at)
            m = REQUEST_LINE.fullmatch(text)
            if not m:
                raise Bad(f"request line {text!r}")
            head, at = fields(data, at)
            if len(values(head, b"host")) != 1:
                raise Bad("host")
            body, at = body_of(data, at, length_of(head, m[3]), False)
            found.append(Message((m[1], m[2]), head, body))
            done = at
    except Bad:
        return found, "bad", done
    except Short:
        return found, "short", done


def responses(data, methods):
    """The final responses of a stream that was closed at its end, to requests with these methods."""
    found, at = [], 0
    try:
        for method in methods:
            status = 100
            while status < 200:
                if at == len(data):
                    return found, "end"
                text, at = line(data, at)
                m = STATUS_LINE.fullmatch(text)
                if not m:
                    raise Bad(f"status line {text!r}")
                head, at = fields(data, at)
                status = int(m[2])
            framing = length_of(head, m[1])
            if method == b"HEAD" or status in (204, 304):
                body = b""
            else:
                body, at = body_of(data, at, framing, True)
            found.append(Message((status,), head, body))
        return found, "end" if at == len(data) else "more"
    except Bad:
        return found, "bad"
    except Short:
        return found, "short"
