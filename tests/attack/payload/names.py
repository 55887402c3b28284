# SPDX-License-Identifier: MIT
"""Names looked up message by message, with what a library would hide."""
import errno
import select
import socket
import struct
import time

import dns.edns
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype

SERVER = "198.51.100.53"  # whoever that is: nobody is asked


def _told(answer):
    errors = [o for o in answer.options if o.otype == dns.edns.OptionType.EDE]
    return {"rcode": dns.rcode.to_text(answer.rcode()), "question": answer.question[0].name.to_text() if answer.question else None,
            "answers": [rr.to_text() for rrset in answer.answer for rr in rrset], "ttl": [r.ttl for r in answer.answer],
            "authority": [dns.rdatatype.to_text(r.rdtype) for r in answer.authority],
            "cut": bool(answer.flags & dns.flags.TC), "recursion": bool(answer.flags & dns.flags.RA), "edns": answer.edns,
            "ede": [[int(o.code), o.text] for o in errors]}


def ask(name, kind="A", tcp=False, edns=True, size=1232, server=SERVER):
    q = dns.message.make_query(name, kind, use_edns=0 if edns else False, payload=size)
    answer = (dns.query.tcp if tcp else dns.query.udp)(q, server, timeout=30)
    return {**_told(answer), "bytes": len(answer.to_wire())}


def ask_all(names, **how):
    return [ask(name, **how) for name in names]


def raw(packets, server=SERVER, wait=30):
    """The RCODE of what comes for each packet (latin-1 text), or None."""
    s, out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
    s.connect((server, 53))
    for packet in packets:
        s.send(packet.encode("latin-1"))
        out.append(s.recv(4096)[3] & 15 if select.select([s], [], [], wait)[0] else None)
    return out


def _answers(got):
    n = 0
    while len(got) >= 2 and len(got) >= 2 + struct.unpack("!H", got[:2])[0]:
        got, n = got[2 + struct.unpack("!H", got[:2])[0]:], n + 1
    return n


def stream(chunks, server=SERVER, wait=30, want=None):
    """What a TCP server says to these bytes (latin-1 text), until it closes, is silent or has answered as often as is wanted: how
    many answers, and the end."""
    with socket.create_connection((server, 53), timeout=wait) as s:
        got, end = b"", None
        try:
            for chunk in chunks:
                s.sendall(chunk.encode("latin-1"))
            while piece := s.recv(65536):
                got += piece
                if want and _answers(got) >= want:
                    break
            else:
                end = "closed"
        except OSError as e:
            end = errno.errorcode.get(e.errno, "TIMEOUT")
    return {"answers": _answers(got), "end": end}


def pipeline(name, kind, sockets, each, server=SERVER):
    """All queries at once, over TCP, before anything is read: {rcode: count}"""
    wire, out = dns.message.make_query(name, kind).to_wire(), {}
    opened = [socket.create_connection((server, 53), timeout=120) for _ in range(sockets)]
    for s in opened:
        s.sendall((struct.pack("!H", len(wire)) + wire) * each)
    time.sleep(2.5)  # the answers come meanwhile
    for s in opened:
        with s, s.makefile("rb") as f:
            for _ in range(each):
                size, = struct.unpack("!H", f.read(2))
                word = dns.rcode.to_text(f.read(size)[3] & 15)
                out[word] = out.get(word, 0) + 1
    return out


def many(pattern, first, last, window=100, limit_s=240, server=SERVER):
    """A lookup of pattern % number for each, some at a time, again when one got lost: {rcode: count}, and the addresses that
    were told to more than one name."""
    s, out, seen, twice = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), {}, {}, 0
    s.connect((server, 53))
    left, waiting, end = list(range(last, first - 1, -1)), {}, time.monotonic() + limit_s
    while (left or waiting) and time.monotonic() < end:
        while left and len(waiting) < window:
            number = left.pop()
            labels = b"".join(bytes([len(l)]) + l for l in (pattern % number).encode().split(b"."))
            try:
                s.send(struct.pack("!6H", number & 0xFFFF, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1")
                waiting[number & 0xFFFF] = (number, time.monotonic())
            except OSError as e:
                if e.errno not in (errno.EPERM, errno.ECONNREFUSED):
                    raise
                left.append(number)
                time.sleep(0.02)
                break
        if select.select([s], [], [], 0.05)[0]:
            data = s.recv(4096)
            ident, flags, _, count = struct.unpack("!4H", data[:8])
            if ident in waiting:
                number, _ = waiting.pop(ident)
                word = dns.rcode.to_text(flags & 15)
                out[word] = out.get(word, 0) + 1
                if count:
                    twice += seen.setdefault(data[-4:], number) != number
        for ident, (number, since) in list(waiting.items()):
            if time.monotonic() - since > 3:
                del waiting[ident]
                left.append(number)
    return {"rcodes": out, "left": len(left) + len(waiting), "twice": twice}
