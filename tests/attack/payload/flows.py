# SPDX-License-Identifier: MIT
"""Many flows of one sandbox."""
import socket


def flows(addr, port, first, count):
    """A datagram from each of so many ports."""
    for source in range(first, first + count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("0.0.0.0", source))
            s.sendto(b"%d" % source, (addr, port))
    return {}
