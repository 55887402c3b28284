# SPDX-License-Identifier: MIT
"""What a process can hold without a descriptor that shows it, or with one that looks harmless. First outside of any
sandbox ("made PID"), then in the cgroup that is about to be adopted ("moved"), then it sends the line that it reads.
Arguments: what, address, port, a directory with a stream and a datagram socket of the host."""
import array
import os
import socket
import sys

what, addr, port, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


def say(*words):
    print(*words, flush=True)


def tcp():
    s = socket.create_connection((addr, port), timeout=5)
    return s


def received(s):
    message, control, _, _ = s.recvmsg(1, socket.CMSG_SPACE(4))
    fds = array.array("i", control[0][2])
    return socket.socket(fileno=fds[0])


def wait():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return line.strip().encode()


outside = {"stream": lambda: socket.socket(socket.AF_UNIX), "dgram": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
           "in flight": tcp, "in flight twice": tcp}.get(what, lambda: None)()
say("made", os.getpid())
wait()
if what.startswith("in flight"):
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM if what.endswith("twice") else socket.SOCK_STREAM)
    near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [outside.fileno()]))])
    outside.close()
    if what.endswith("twice"):  # the socket that it waits in waits itself
        a, b = socket.socketpair()
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [far.fileno()]))])
        far.close()
elif what == "not accepted":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/inside")
    listener.listen()
elif what == "repair":
    repaired = socket.socket()
    repaired.setsockopt(socket.IPPROTO_TCP, 19, 1)
elif what == "innocent":  # all of it made inside: what programs have
    pair, listener, stream = socket.socketpair(), socket.socket(socket.AF_UNIX), socket.socket()
    pair[0].send(b"unread")
    listener.bind(f"{folder}/innocent")
    listener.listen()
    dgram, web, client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(), socket.socket(socket.AF_UNIX)
    web.bind(("127.0.0.1", 0))
    web.listen()
    client.connect(f"{folder}/innocent")
    accepted, _ = listener.accept()
say("moved")
mark = wait()
try:
    if what == "stream":
        outside.connect(f"{folder}/stream")
        outside.send(mark)
    elif what == "dgram":
        outside.sendto(mark, f"{folder}/dgram")
    elif what == "in flight":
        received(far).send(mark)
    elif what == "in flight twice":
        received(received(b)).send(mark)
    elif what == "not accepted":
        received(listener.accept()[0]).send(mark)
    say("sent", len(mark))
except OSError as e:
    say("sent", -e.errno)
wait()
