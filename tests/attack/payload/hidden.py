# SPDX-License-Identifier: MIT
"""IPv6 headers in front of TCP and UDP, and two who call each other at once."""
import socket
import time

from cuts import apart

IPV6_DSTOPTS, OPTIONS = 59, bytes([0, 0, 1, 4, 0, 0, 0, 0])  # padding


def made(udp, options):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    if options:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_DSTOPTS, OPTIONS)
    return s


def call(addr, port, data, udp, options):
    s = made(udp, options)
    s.settimeout(2)
    s.connect((addr, port))
    s.send(data.encode())
    return {"got": s.recv(100).decode()}


def goes_on(addr, port, mark, options):
    """A connected UDP socket that goes on sending."""
    def work(say):
        s = made(True, options)
        s.connect((addr, port))
        s.send(mark.encode())
        say("sends")
        end = time.monotonic() + 3
        while time.monotonic() < end:
            try:
                s.send(mark.encode())
            except OSError:
                pass
            time.sleep(0.05)
    return apart(work)


def meet(near, far, port, seconds=6):
    """Neither listens: a connection comes about when both call at the same moment."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.settimeout(0.5)
        try:
            s.bind((near, port))
            s.connect((far, port))
            s.send(b"hello")
            return {"got": s.recv(100).decode()}
        except OSError:
            pass
        finally:
            s.close()
    return {"got": ""}
