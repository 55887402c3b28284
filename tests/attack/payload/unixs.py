# SPDX-License-Identifier: MIT
"""Names of unix sockets that are not what they were: the gate sees a name, the kernel follows it."""
import contextlib
import ctypes
import errno
import os
import socket

SHM = "/dev/shm"  # the root of a mount in which everybody may write
libc = ctypes.CDLL(None, use_errno=True)


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


@contextlib.contextmanager
def bound(name, kind):
    """A socket of our own. The file that it makes goes away with it, wherever it is by then."""
    own = socket.socket(socket.AF_UNIX, kind)
    own.bind(name)
    real = os.path.realpath(name)
    if kind != socket.SOCK_DGRAM:
        own.listen()
    try:
        yield own
    finally:
        own.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(real)


def link_repointed(target, scratch, kind, mark):
    """A link leads to the root of a mount when the name is bound, and to the host's directory when it is called."""
    link, leaf = os.path.join(scratch, f"l{os.getpid()}"), os.path.basename(target)
    os.symlink(SHM, link)
    try:
        with bound(f"{link}/{leaf}", kind):
            os.unlink(link)
            os.symlink(os.path.dirname(target), link)
            return {"talk": talk(f"{link}/{leaf}", kind, mark)}
    finally:
        os.unlink(link)


def link_repointed_dgram(target, scratch, kind, mark):
    """The same, without connect()."""
    link, leaf = os.path.join(scratch, f"l{os.getpid()}"), os.path.basename(target)
    os.symlink(SHM, link)
    try:
        with bound(f"{link}/{leaf}", socket.SOCK_DGRAM):
            os.unlink(link)
            os.symlink(os.path.dirname(target), link)
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(mark.encode(), f"{link}/{leaf}")
            return {"talk": "ok"}
    except OSError as e:
        return {"talk": errno.errorcode.get(e.errno, str(e))}
    finally:
        os.unlink(link)


def proc_cwd(target, scratch, kind, mark):
    """/proc/self/cwd is a link that follows the process."""
    name = f"/proc/self/cwd/{os.path.basename(target)}"
    os.chdir(SHM)
    with bound(name, kind):
        os.chdir(os.path.dirname(target))
        return {"talk": talk(name, kind, mark)}


def proc_dir_fd(target, scratch, kind, mark):
    """/proc/self/fd/N, and N becomes another directory."""
    fd = os.open(SHM, os.O_PATH)
    name = f"/proc/self/fd/{fd}/{os.path.basename(target)}"
    with bound(name, kind):
        os.dup2(os.open(os.path.dirname(target), os.O_PATH), fd)
        return {"talk": talk(name, kind, mark)}


def linked_over_own(target, scratch, kind, mark):
    """Another link to the host's socket takes the place of our own file."""
    name = os.path.join(os.path.dirname(target), f"own{os.getpid()}")
    with bound(name, kind):
        os.link(target, name + ".l")
        os.rename(name + ".l", name)
        return {"talk": talk(name, kind, mark)}


def chrooted(target, scratch, kind, mark):
    """In another root directory the name of our own socket is the host's."""
    folder = os.path.join(os.path.dirname(target), f"root{os.getpid()}")
    leaf = os.path.basename(target)
    os.makedirs(folder + SHM)
    os.link(target, f"{folder}{SHM}/{leaf}")
    try:
        with bound(f"{SHM}/{leaf}", kind):
            pid = os.fork()
            if pid == 0:
                os.chroot(folder)
                os._exit(0 if talk(f"{SHM}/{leaf}", kind, mark) == "ok" else 1)
            return {"talk": "ok" if os.waitpid(pid, 0)[1] == 0 else "refused"}
    finally:
        os.unlink(f"{folder}{SHM}/{leaf}")
        os.removedirs(folder + SHM)


def mounted_over(target, scratch, kind, mark, what="directory"):
    """In mounts of our own the host's directory, or file, comes to lie over ours."""
    folder = os.path.join(scratch, f"over{os.getpid()}")
    name = os.path.join(folder, os.path.basename(target))
    os.mkdir(folder)
    try:
        with bound(name, kind):
            pid = os.fork()
            if pid == 0:
                flags = 0x00020000 | (0x10000000 if os.getuid() else 0)  # CLONE_NEWNS, CLONE_NEWUSER
                over = (os.path.dirname(target), folder) if what == "directory" else (target, name)
                r = libc.unshare(flags) or libc.mount(None, b"/", None, 0x4000 | 0x40000, None)  # MS_REC | MS_PRIVATE
                r = r or libc.mount(over[0].encode(), over[1].encode(), None, 0x1000, None)  # MS_BIND
                os._exit(2 if r else 0 if talk(name, kind, mark) == "ok" else 1)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return {"talk": {0: "ok", 1: "refused"}.get(code, "cannot mount")}
    finally:
        os.rmdir(folder)


def mounted_over_file(target, scratch, kind, mark):
    return mounted_over(target, scratch, kind, mark, "file")


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

    def other_name(bind, call, kind=socket.SOCK_STREAM):
        l = socket.socket(socket.AF_UNIX, kind)
        l.bind(bind)
        if kind != socket.SOCK_DGRAM:
            l.listen()
        if call is None:
            os.rename(bind, bind + "-moved")
            call = bind + "-moved"
        c = socket.socket(socket.AF_UNIX, kind)
        c.settimeout(2)
        try:
            c.connect(call)
            c.send(b"x")
        finally:
            os.unlink(call)

    def from_above():
        os.mkdir(path("sub"))
        try:
            os.chdir(scratch)
            other_name(path("sub") + "/s", f"sub{tag}/s")
        finally:
            os.rmdir(path("sub"))

    def in_own_mounts():
        pid = os.fork()
        if pid == 0:
            r = libc.unshare(0x00020000) or libc.mount(None, b"/", None, 0x4000 | 0x40000, None)
            r = r or libc.mount(b"none", scratch.encode(), b"tmpfs", 0, None)
            if r == 0:
                with contextlib.suppress(OSError):
                    other_name(f"{scratch}/m", f"{scratch}/m")
                    os._exit(0)
            os._exit(2 if r else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == 1:  # 2: nothing can be mounted, as in what netpawl run makes
            raise OSError(errno.EIO, "")

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
    attempt("bound relative, called absolute", lambda: (os.chdir(scratch), other_name("ra" + tag, path("ra"))))
    attempt("bound absolute, called relative", lambda: (os.chdir(scratch), other_name(path("ar"), "./ar" + tag)))
    attempt("two slashes", lambda: other_name(path("ss"), f"{scratch}//.//ss{tag}"))
    attempt("renamed", lambda: other_name(path("mv"), None))
    attempt("renamed dgram", lambda: other_name(path("md"), None, socket.SOCK_DGRAM))
    attempt("below the working directory", from_above)
    attempt("at the root of a mount", lambda: other_name(f"{SHM}/np{tag}", f"{SHM}/np{tag}"))
    attempt("in mounts of its own", in_own_mounts)
    for n in ("s", "q", "d", "c", "rel"):
        try:
            os.unlink(path(n))
        except OSError:
            pass
    for n in os.listdir(scratch):
        if n.startswith("l" + tag):
            os.unlink(os.path.join(scratch, n))
    return out
