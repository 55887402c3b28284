# SPDX-License-Identifier: MIT
"""Requests and responses that are nearly right: framings of HTTP/1.1, with bytes, words and lines put in, taken out and doubled.

The same seed and number give the same bytes. What must not be understood as a request is in the bodies: POST /s/...
"""
import random

WORDS = [b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\0", b"\t", b" ", b"\x0b", b"\x0c", b"\x7f", b"\x85", b"\xa0", b"\xff", b"0", b"1", b"a",
         b"F", b"00", b"0x", b"+", b"-", b";", b",", b":", b"=", b'"', b"\\", b"_", b";a=b", b';a="\r\n"', b";\n", b"0\r\n\r\n",
         b"chunked", b"identity", b"gzip", b", chunked", b"chunked, ", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n",
         b"Content-Length: 300\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding\r\n: chunked\r\n",
         b"transfer-encoding:chunked\r\n", b"Transfer-Encoding : chunked\r\n", b" Transfer-Encoding: chunked\r\n",
         b"Content_Length: 4\r\n", b"Host: bad.test\r\n", b"Connection: close\r\n", b"Connection: Transfer-Encoding\r\n",
         b"Connection: content-length\r\n", b"Trailer: Content-Length\r\n", b"TE: trailers\r\n", b"Expect: 100-continue\r\n",
         b"Upgrade: h2c\r\n", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"ffffffffffffffff", b"10000000000000000", b"7fffffff", b"80000000",
         b"18446744073709551616", b"4294967296", b"/../", b"%0d%0a", b"#", b"http://bad.test/"]
SWAPS = [(b"\r\n", b"\n"), (b"\r\n", b"\r"), (b"\n", b"\r"), (b": ", b":"), (b": ", b" : "), (b": ", b":\t"), (b": ", b":\x0b"), (b"chunked", b"CHUNKED"),
         (b"chunked", b"chunked\x0b"), (b"chunked", b'"chunked"'), (b"chunked", b"chunke\xc4"), (b"HTTP/1.1", b"HTTP/1.0"), (b"0\r\n", b"0"),
         (b"0\r\n", b"-0\r\n"), (b"0\r\n", b"0 \r\n"), (b"0\r\n", b"0;\r\n"), (b"Length", b"length"), (b"Length: ", b"Length: +"),
         (b"Length: ", b"Length: 0"), (b"\r\n\r\n", b"\r\n \r\n"), (b"\r\n\r\n", b"\n\n"), (b"\r\n\r\n", b"\r\n\r"), (b"POST", b"GET"),
         (b"POST", b"HEAD"), (b"POST", b"post"), (b" /", b"  /"), (b" /", b"\t/"), (b"Host", b"Host\0")]


def lines_changed(r, text):
    lines = text.split(b"\r\n")
    a, b = r.randrange(len(lines)), r.randrange(len(lines))
    how = r.randrange(4)
    if how == 0:
        lines.insert(b, lines[a])
    elif how == 1:
        lines[a], lines[b] = lines[b], lines[a]
    elif how == 2:
        del lines[a]
    else:
        lines[a] = b" " + lines[a]
    return b"\r\n".join(lines)


def mutated(r, text):
    for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3))):
        at, how = r.randrange(len(text) + 1), r.randrange(7)
        if how == 0:
            text = text[:at] + r.choice(WORDS) + text[at:]
        elif how == 1:
            text = text[:at] + text[at + r.choice((1, 1, 2, 5)):]
        elif how == 2:
            text = text[:at] + bytes([r.randrange(256)]) + text[at + 1:]
        elif how == 3:
            text = lines_changed(r, text)
        elif how == 4:  # a word at the beginning of a line, where it means most
            starts = [i + 2 for i in range(len(text)) if text.startswith(b"\r\n", i)] or [0]
            at = r.choice(starts)
            text = text[:at] + r.choice(WORDS) + text[at:]
        else:
            old, new = r.choice(SWAPS)
            places = [i for i in range(len(text)) if text.startswith(old, i)]
            if places:
                at = r.choice(places)
                text = text[:at] + new + text[at + len(old):]
    return text


def chunks(r, body, last=b"0\r\n\r\n"):
    out, at = b"", 0
    while at < len(body):
        n = min(r.choice((1, 7, 16, 100)), len(body) - at)
        ext = r.choice((b"", b"", b"", b";a", b";a=b", b';a="b;\\" c"', b" ;a = b"))
        out += r.choice((b"%x", b"%X", b"0%x", b"0000%x")) % n + ext + b"\r\n" + body[at : at + n] + b"\r\n"
        at += n
    return out + last


def request(seed, number, host):
    """The bytes of a connection. Every path that may be reached begins with /m/, and holds the number."""
    r = random.Random(f"{seed}/{number}")
    name, tag = host.encode(), b"%d" % number
    inner = b"POST /s/" + tag + b" HTTP/1.1\r\nHost: " + name + b"\r\nContent-Length: 0\r\n\r\n"
    head = b"POST /m/" + tag + b" HTTP/1.1\r\nHost: " + name + b"\r\n"
    end = r.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX-Trailer: a\r\n\r\n", b"0;x=y\r\n\r\n", b"000\r\nContent-Length: 9\r\n\r\n"))
    body = r.choice((inner, b"x" * 5 + inner, b"0\r\n\r\n" + inner, b"hello"))
    texts = [head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
             head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(r, body, end),
             head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(r, body, end),
             head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % r.choice((0, 4, 5, len(body))) + chunks(r, body, end),
             head + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
             b"GET /m/" + tag + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n" + inner]
    text = r.choice(texts)
    if r.random() < .4:
        text += b"GET /m/" + tag + b"/next HTTP/1.1\r\nHost: " + name + b"\r\n\r\n"
    return mutated(r, text)


def response(seed, number):
    r = random.Random(f"response {seed}/{number}")
    body = r.choice((b"", b"hello", b"x" * 100, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"))
    end = r.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX-Trailer: a\r\n\r\n", b"0;x=y\r\n\r\n"))
    status = r.choice((b"200 OK",) * 5 + (b"204 No Content", b"304 Not Modified", b"404 Not Found", b"200", b"500 "))
    first = r.choice((b"",) * 6 + (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"))
    head = b"HTTP/1.1 " + status + b"\r\nX-A: b\r\n"
    texts = [head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
             head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(r, body, end),
             head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(r, body, end),
             head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % r.choice((0, 5, len(body))) + chunks(r, body, end),
             head + b"\r\n" + body]
    return mutated(r, first + r.choice(texts))
