# SPDX-License-Identifier: MIT
"""Clients of the control API that take places and give none back. Run by itself: crowd.py SOCKET STYLE COUNT PROCESSES PATH

Makes its sockets, says "made" and waits for a line; then connects them, says how many got through, and holds on until
another line, or the end of its standard input. A single process then says how many connections were answered with 403.
"""
import os
import resource
import select
import socket
import sys

HALVES = {
    "silent": b"",
    "half": b"GET /v1/health HTTP/1.1\r\nHost: x\r\n",
    "body": b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{",
    "asks": b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n",
    "pipelines": b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" * 400,
}


def call(s, path, text):
    s.settimeout(5)
    try:
        s.connect(path)
        s.setblocking(False)
        s.send(text)
        return True
    except OSError:
        return False


def crowd(path, text, sockets, say):
    up = [s for s in sockets if call(s, path, text)]
    say(len(up))
    trickles = text.endswith(b"{")
    for _ in range(600):
        if select.select([sys.stdin], [], [], 0.1)[0]:
            break
        for s in up if trickles else ():
            try:
                s.send(b" ")
            except OSError:
                pass


def main():
    path, style, count, processes, url = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 200,) * 2)
    text = HALVES[style].replace(b"%s", url.encode())
    sockets = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    print("made", flush=True)
    sys.stdin.readline()
    if processes == 1:
        crowd(path, text, sockets, lambda n: print(n, flush=True))
        refused = 0
        for s in sockets:
            try:
                refused += s.recv(64)[9:12] == b"403"
            except OSError:
                pass
        print(refused, flush=True)
        return
    share, r, w = count // processes, *os.pipe()
    for i in range(processes):
        if os.fork() == 0:
            crowd(path, text, sockets[i * share:(i + 1) * share], lambda n: os.write(w, bytes([n])))
            os._exit(0)
    print(sum(os.read(r, 1)[0] for _ in range(processes)), flush=True)
    for _ in range(processes):
        os.wait()


main()
