# SPDX-License-Identifier: MIT
"""Ways to get out of the cgroup, or to have somebody outside do the talking."""
import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWNS, CLONE_NEWUSER = 0x40000000, 0x02000000, 0x00020000, 0x10000000


def err(e):
    return errno.errorcode.get(e.errno, str(e))


def result(n):
    return "ok" if n >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def reach(addr, port, mark):
    """What any escape is for."""
    try:
        s = socket.create_connection((addr, port), 1)
        s.send(mark.encode())
        return "ok"
    except OSError as e:
        return err(e)


def where():
    with open("/proc/self/cgroup") as f:
        return [l.strip()[3:] for l in f if l.startswith("0::")][0]


def attempt(calls):
    out = {}
    for name, call in calls.items():
        try:
            out[name] = call() or "ok"
        except OSError as e:
            out[name] = err(e)
        except Exception as e:
            out[name] = repr(e)
    return out


def put(path, text="0"):
    with open(path, "w") as f:
        f.write(text)


def move(mount, others, own, addr, port, mark):
    """By the cgroup file system: the root, every parent, other sandboxes, a cgroup of our own making."""
    before = where()
    calls = {}
    parts = before.strip("/").split("/")
    parents = ["/".join(parts[:i]) for i in range(len(parts))]
    for target in [*(os.path.join(mount, p) for p in parents), *others]:
        for name in ("cgroup.procs", "cgroup.threads"):
            calls[f"{target}/{name}"] = lambda t=target, n=name: put(os.path.join(t, n))

    def make_own():  # the test removes it, when we are no longer in it
        os.mkdir(os.path.join(mount, own))
        put(os.path.join(mount, own, "cgroup.procs"))

    calls["own"] = make_own
    calls["thread"] = lambda: put(os.path.join(mount, before.strip("/"), "cgroup.type"), "threaded")
    tried = attempt(calls)
    after = where()
    return {"tried": tried, "before": before, "after": after, "reach": reach(addr, port, mark)}


def mounts(addr, port, mark, scratch):
    """By a view of the cgroup file system of our own: a new mount, a cgroup namespace, a bind mount."""
    before = where()

    def fresh():
        if libc.mount(b"none", scratch.encode(), b"cgroup2", 0, None):
            raise OSError(ctypes.get_errno(), "mount")
        try:
            put(os.path.join(scratch, "cgroup.procs"))
        finally:
            libc.umount2(scratch.encode(), 2)

    def unshare(flags):
        if libc.unshare(flags):
            raise OSError(ctypes.get_errno(), "unshare")

    def in_namespaces(flags):
        unshare(flags)
        libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None)  # MS_REC|MS_PRIVATE
        fresh()

    def user_ns():
        uid = os.getuid()
        unshare(CLONE_NEWUSER | CLONE_NEWCGROUP | CLONE_NEWNS)
        try:
            put("/proc/self/setgroups", "deny")
            put("/proc/self/uid_map", f"0 {uid} 1")
        except OSError:
            pass
        fresh()

    out = {}
    for name, call in (("mount", fresh), ("cgroup namespace", lambda: in_namespaces(CLONE_NEWCGROUP | CLONE_NEWNS)),
                       ("user namespace", user_ns)):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            got = attempt({name: call})[name]
            os.write(w, f"{got}|{where()}|{reach(addr, port, mark)}".encode())
            os._exit(0)
        os.close(w)
        os.waitpid(pid, 0)
        out[name] = os.read(r, 1000).decode()
        os.close(r)
    return {"tried": out, "before": before, "after": where()}


def clone_into(mount, addr, port, mark):
    """A child that is born in the root cgroup (clone3 with CLONE_INTO_CGROUP)."""
    try:
        fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as e:
        return {"clone": err(e)}
    args = struct.pack("QQQQQQQQQQQ", 0x200000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, fd)
    pid = libc.syscall(435, args, len(args))
    if pid == 0:
        reach(addr, port, mark)
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return {"clone": result(pid)}


def deputies(pid, fd, address):
    """By another process: memory and registers, its descriptors, its namespaces."""
    def ptrace():
        return result(libc.ptrace(0x4206, pid, None, None))  # PTRACE_SEIZE: does not stop it; our exit lets it go

    def getfd():
        pidfd = libc.syscall(434, pid, 0)
        if pidfd < 0:
            return "pidfd: " + errno.errorcode.get(ctypes.get_errno())
        return result(libc.syscall(438, pidfd, fd, 0))

    def setns():
        pidfd = libc.syscall(434, pid, 0)
        if pidfd < 0:
            return "pidfd: " + errno.errorcode.get(ctypes.get_errno())
        return result(libc.setns(pidfd, CLONE_NEWCGROUP))

    def vm_read():
        data = ctypes.create_string_buffer(8)
        near = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 8))
        far = ctypes.create_string_buffer(struct.pack("QQ", address, 8))
        return result(libc.process_vm_readv(pid, near, 1, far, 1, 0))

    def memory():
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))

    return attempt({"ptrace": ptrace, "pidfd_getfd": getfd, "setns": setns, "process_vm_readv": vm_read, "mem": memory})


def netns(path, addr, port, mark):
    """Into a namespace where the address is local, past every device of this one."""
    def enter():
        fd = os.open(path, os.O_RDONLY)
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    entered = attempt({"setns": enter})["setns"]
    return {"setns": entered, "reach": reach(addr, port, mark),
            "proc1": attempt({"x": lambda: os.close(os.open("/proc/1/ns/net", os.O_RDONLY))})["x"]}


def bpf_calls(pins):
    """At the gate itself: its pins, and the bpf() call."""
    pins = pins.encode()
    path = ctypes.create_string_buffer(pins + b"/maps/np_sandboxes")
    attr = struct.pack("QII", ctypes.addressof(path), 0, 0)

    def get():
        fd = libc.syscall(321, 7, attr, len(attr))  # BPF_OBJ_GET
        return result(fd)

    def create():
        attr = struct.pack("IIIII", 1, 4, 4, 1, 0)
        return result(libc.syscall(321, 0, attr, len(attr)))

    def unlink():
        removed = 0
        for folder, _, files in os.walk(pins.decode()):
            for name in files:
                os.unlink(os.path.join(folder, name))
                removed += 1
        if not removed:
            raise OSError(errno.ENOENT, "nothing to remove")

    def unmount():
        if libc.umount2(os.path.dirname(os.path.dirname(pins)), 2):
            raise OSError(ctypes.get_errno(), "umount")

    return attempt({"get": get, "create": create, "umount": unmount, "unlink": unlink})


def tun(addr, port, mark):
    """A device of our own: packets written to it come from no socket, and a forwarding host sends them on."""
    import fcntl
    try:
        fd = os.open("/dev/net/tun", os.O_RDWR)
    except OSError as e:
        return {"open": err(e)}
    name = b"nptun%d" % (os.getpid() % 1000)
    try:
        fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name, 0x0001 | 0x1000))  # TUNSETIFF: IFF_TUN, no header
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", name, 0x1 | 0x40))  # SIOCSIFFLAGS: up
    except OSError as e:
        return {"ioctl": err(e)}
    udp = struct.pack("!HHHH", 4000, port, 8 + len(mark), 0) + mark.encode()
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("198.18.0.5"),
                       socket.inet_aton(addr))
    total = sum(struct.unpack("!10H", head))
    total = (total >> 16) + (total & 0xFFFF)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    try:
        for _ in range(3):
            os.write(fd, head + udp)
    except OSError as e:
        return {"write": err(e)}
    return {"write": "ok"}


def setuid(program, mount, addr, port, mark):
    """A set-user-id program (a deputy that every host has some of) that would move us and go on."""
    p = subprocess.run([program, mount, addr, str(port), mark], capture_output=True, text=True, timeout=10)
    return {"code": p.returncode, "out": p.stdout.strip()}
