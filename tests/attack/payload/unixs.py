# SPDX-License-Identifier: MIT
"""Names of unix sockets that are not what they were: the gate sees a name, the kernel follows it."""
import errno
import os
import socket


def talk(path, kind, mark):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(2)
    try:
        s.connect(path)
        s.send(mark.encode())
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))


def symlink(target, scratch, kind, mark):
    """Straight: a link of our own to the host's socket."""
    link = os.path.join(scratch, f"link{os.getpid()}")
    os.symlink(target, link)
    try:
        return {"talk": talk(link, kind, mark)}
    finally:
        os.unlink(link)


def relative(target, scratch, kind, mark):
    os.chdir(os.path.dirname(target))
    return {"talk": talk(os.path.basename(target), kind, mark)}


def dotted(target, scratch, kind, mark):
    return {"talk": talk(os.path.dirname(target) + "/../" + os.path.basename(os.path.dirname(target)) + "//./" +
                         os.path.basename(target), kind, mark)}


def own_name_then_symlink(target, scratch, kind, mark):
    """Bind a name, which makes it our own; then let the name lead to the host's socket."""
    name = os.path.join(scratch, f"own{os.getpid()}")
    own = socket.socket(socket.AF_UNIX, kind)
    own.bind(name)
    if kind != socket.SOCK_DGRAM:
        own.listen()
    os.unlink(name)
    os.symlink(target, name)
    try:
        return {"talk": talk(name, kind, mark)}
    finally:
        os.unlink(name)


def own_name_elsewhere(target, scratch, kind, mark):
    """The same relative name, bound in one directory and called in another."""
    os.chdir(scratch)
    name = os.path.basename(target)
    own = socket.socket(socket.AF_UNIX, kind)
    own.bind(name)
    if kind != socket.SOCK_DGRAM:
        own.listen()
    os.chdir(os.path.dirname(target))
    try:
        return {"talk": talk(name, kind, mark)}
    finally:
        os.unlink(os.path.join(scratch, name))


def own_directory_renamed(target, scratch, kind, mark):
    """The name stays; the directory above it becomes a link."""
    folder = os.path.join(scratch, f"dir{os.getpid()}")
    os.mkdir(folder)
    name = os.path.join(folder, os.path.basename(target))
    own = socket.socket(socket.AF_UNIX, kind)
    own.bind(name)
    if kind != socket.SOCK_DGRAM:
        own.listen()
    os.rename(folder, folder + ".old")
    os.symlink(os.path.dirname(target), folder)
    try:
        return {"talk": talk(name, kind, mark)}
    finally:
        os.unlink(folder)
        os.unlink(os.path.join(folder + ".old", os.path.basename(target)))
        os.rmdir(folder + ".old")


def proc_fd(target, scratch, kind, mark):
    """By an O_PATH descriptor and its name in /proc."""
    fd = os.open(target, os.O_PATH)
    return {"talk": talk(f"/proc/self/fd/{fd}", kind, mark)}


def passed_descriptor(target, scratch, kind, mark):
    """sendmsg() with SCM_RIGHTS on a datagram socket that was never connected."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.settimeout(2)
    try:
        s.sendmsg([mark.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, (0).to_bytes(4, "little"))], 0, target)
        return {"talk": "ok"}
    except OSError as e:
        return {"talk": errno.errorcode.get(e.errno, str(e))}


def own_use(scratch, tag):
    """All that a program may expect of its own unix sockets."""
    out = {}

    def attempt(name, f):
        try:
            f()
            out[name] = "ok"
        except OSError as e:
            out[name] = errno.errorcode.get(e.errno, str(e))

    def stream(name, kind=socket.SOCK_STREAM):
        l = socket.socket(socket.AF_UNIX, kind)
        l.bind(name)
        l.listen()
        c = socket.socket(socket.AF_UNIX, kind)
        c.settimeout(2)
        c.connect(name)
        a, _ = l.accept()
        a.settimeout(2)
        c.send(b"x")
        if a.recv(1) != b"x":
            raise OSError(errno.EIO, "")

    def dgram(name, connected):
        l = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        l.bind(name)
        l.settimeout(2)
        c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if connected:
            c.connect(name)
            c.send(b"x")
        else:
            c.sendto(b"x", name)
        if l.recv(1) != b"x":
            raise OSError(errno.EIO, "")

    def autobind():
        l = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        l.bind("")
        l.settimeout(2)
        c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        c.sendto(b"x", l.getsockname())
        l.recv(1)

    def pair():
        a, b = socket.socketpair()
        a.send(b"x")
        b.recv(1)

    def relative():
        os.chdir(scratch)
        stream(f"rel{tag}")

    def long():
        stream(os.path.join(scratch, f"l{tag}").ljust(107, "p"))

    path = lambda n: os.path.join(scratch, n + tag)
    attempt("path stream", lambda: stream(path("s")))
    attempt("path seqpacket", lambda: stream(path("q"), socket.SOCK_SEQPACKET))
    attempt("path dgram", lambda: dgram(path("d"), False))
    attempt("path dgram connected", lambda: dgram(path("c"), True))
    attempt("abstract stream", lambda: stream("\0own-s" + tag))
    attempt("abstract seqpacket", lambda: stream("\0own-q" + tag, socket.SOCK_SEQPACKET))
    attempt("abstract dgram", lambda: dgram("\0own-d" + tag, False))
    attempt("abstract with a NUL", lambda: stream("\0own\0n" + tag))
    attempt("autobind", autobind)
    attempt("socketpair", pair)
    attempt("long path", long)
    attempt("relative", relative)
    for n in ("s", "q", "d", "c", "rel"):
        try:
            os.unlink(path(n))
        except OSError:
            pass
    for n in os.listdir(scratch):
        if n.startswith("l" + tag):
            os.unlink(os.path.join(scratch, n))
    return out
