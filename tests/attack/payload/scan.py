# SPDX-License-Identifier: MIT
"""A port scan with raw sockets, from the far side: what answers does a port give, in every field? And the listener that
comes and goes while it is scanned."""
import select
import socket
import struct
import time

FLAGS = {"syn": 0x02, "ack": 0x10, "fin": 0x01, "null": 0x00, "xmas": 0x29, "syn+data": 0x02}
SEQ, ACK = 0x11223344, 0x55667788


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def segment(family, src, dst, sport, dport, probe):
    data = b"data" if probe == "syn+data" else b""
    ack = ACK if FLAGS[probe] & 0x10 else 0
    tcp = struct.pack("!HHIIBBHHH", sport, dport, SEQ, ack, 5 << 4, FLAGS[probe], 1024, 0, 0) + data
    if family == 6:
        return tcp  # the kernel fills the checksum in
    pseudo = socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack("!BBH", 0, 6, len(tcp))
    return tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]


def opened(family, protocol):
    s = socket.socket({4: socket.AF_INET, 6: socket.AF_INET6}[family], socket.SOCK_RAW, protocol)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    return s


def tcp_answer(family, packet, sport, dport):
    """All that the far side could compare, but the IP identification and what is computed of the ports."""
    ip = []
    if family == 4:
        length = (packet[0] & 15) * 4
        ip, packet = [packet[:length][:4].hex(), packet[6:10].hex()], packet[length:]
    got = struct.unpack("!HHIIBBHHH", packet[:20])
    if got[:2] != (dport, sport):
        return None
    return ["tcp", *ip, got[2], got[3], got[4], got[5], got[6], got[8], packet[20:].hex()]


def icmp_answer(family, packet, dport):
    """Port unreachable, with what it quotes."""
    ip = []
    if family == 4:
        length = (packet[0] & 15) * 4
        ip, packet = [packet[1], packet[8], len(packet)], packet[length:]
    quoted = packet[8 + (20 if family == 4 else 40):]
    if len(quoted) < 4 or struct.unpack("!HH", quoted[:4])[1] != dport:
        return None
    return ["icmp", *ip, packet[0], packet[1], len(quoted)]


def probe(family, src, dst, dport, kind, sport=None, wait=5):
    """One probe, and every answer that comes to it."""
    sport = sport or 40000 + dport % 20000
    tcp, icmp = opened(family, socket.IPPROTO_TCP), opened(family, socket.IPPROTO_ICMP if family == 4 else socket.IPPROTO_ICMPV6)
    udp = None
    answers = []
    try:
        if kind == "udp":
            udp = socket.socket({4: socket.AF_INET, 6: socket.AF_INET6}[family], socket.SOCK_DGRAM)
            udp.bind((src, sport))
            udp.sendto(b"probe", (dst, dport))
        else:
            if family == 6:
                tcp.setsockopt(socket.IPPROTO_IPV6, 7, 16)  # IPV6_CHECKSUM
            tcp.bind((src, 0))
            tcp.sendto(segment(family, src, dst, sport, dport, kind), (dst, 0))
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            for s in select.select([x for x in (tcp, icmp, udp) if x], [], [], left)[0]:
                if s is udp:
                    try:
                        answers.append(["udp", s.recv(100).hex()])
                    except OSError:
                        pass
                    continue
                packet, peer = s.recvfrom(4096)
                if peer[0] != dst:
                    continue
                got = tcp_answer(family, packet, sport, dport) if s is tcp else icmp_answer(family, packet, dport)
                if got:
                    answers.append(got)
            if answers:
                end = min(end, time.monotonic() + (0.3 if kind == "udp" else 0.03))
        return answers
    finally:
        for s in (tcp, icmp, udp):
            if s:
                s.close()


def scan(family, src, dst, ports, kinds, wait=5):
    return {str(port): {kind: probe(family, src, dst, port, kind, wait=wait) for kind in kinds} for port in ports}


def storm(family, src, dst, dport, count):
    """count SYNs from as many ports: how many of them are answered, and with which flags?"""
    s = opened(family, socket.IPPROTO_TCP)
    answered = {}

    def drain(wait):
        while len(answered) < count and select.select([s], [], [], wait)[0]:
            packet, peer = s.recvfrom(4096)
            if family == 4:
                packet = packet[(packet[0] & 15) * 4:]
            got = struct.unpack("!HHIIBB", packet[:14])
            if peer[0] == dst and got[0] == dport and got[5] & 0x14:
                answered[got[1]] = got[5]

    try:
        s.bind((src, 0))
        for i in range(count):
            s.sendto(segment(family, src, dst, 20000 + i, dport, "syn"), (dst, 0))
            drain(0)
        drain(5)
    finally:
        s.close()
    return {"answered": len(answered), "flags": sorted(set(answered.values()))}


def churn(port, seconds, family=4, kind="stream"):
    """A listener at one port that comes and goes as fast as it can."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", port))
            if kind == "stream":
                s.listen()
            n += 1
    return {"times": n}

