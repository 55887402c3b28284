# SPDX-License-Identifier: MIT
"""What an agent's code might do. Reads a word a line and answers with what happened, until end of input.

It keeps one connection open from the beginning: that is the one an escalation has to cut.
"""
import errno
import socket
import sys

FAR4, FAR6, METADATA = "198.51.100.10", "2001:db8:2::10", "169.254.169.254"


def outcome(action):
    try:
        return action()
    except OSError as e:
        return "refused, " + errno.errorcode.get(e.errno, str(e))


def tcp(address, port):
    with socket.create_connection((address, port), timeout=2) as s:
        host = f"[{address}]" if ":" in address else address
        s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return "got " + repr(s.recv(64).split(b"\r\n")[0].decode())


def udp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.sendto(b"the customer list", (address, port))
        return "answered " + repr(s.recv(64).decode())


def own_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=2):
            return "works"


def upload(held):
    held.sendall(b"x" * 1000)
    return "still sending" if held.recv(16) else "closed by the far side"


def main():
    held = socket.create_connection((FAR4, 7), timeout=2)
    for line in sys.stdin:
        if line.strip() != "look":
            continue
        for name, action in (
            ("upload that was already running", lambda: upload(held)),
            ("https-like request to " + FAR4 + ":80", lambda: tcp(FAR4, 80)),
            ("the same over IPv6", lambda: tcp(FAR6, 80)),
            ("one UDP datagram to " + FAR4 + ":9", lambda: udp(FAR4, 9)),
            ("cloud metadata at " + METADATA, lambda: tcp(METADATA, 80)),
            ("the host's own service on 127.0.0.1:8500", lambda: tcp("127.0.0.1", 8500)),
            ("a server of the agent's own on loopback", own_server),
        ):
            print(f"    {name:44} {outcome(action)}")
        print("done", flush=True)


main()
