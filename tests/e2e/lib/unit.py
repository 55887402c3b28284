#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""UNIT COMMAND...: runs the command as systemd would, as far as that goes without it: with the unit's capabilities, system call
filter, address families, umask and no new privileges. Namespaces and devices are systemd's alone."""
import ctypes
import os
import re
import subprocess
import sys

CAPS = ("chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service net_broadcast "
        "net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin sys_boot sys_nice "
        "sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override mac_admin syslog "
        "wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore").split()
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
ALLOW, EPERM, EAFNOSUPPORT = 0x7fff0000, 0x00050001, 0x00050061


def settings(path):
    """Directive -> its values, as lists of words."""
    found = {}
    for line in open(path):
        if m := re.match(r"(\w+)=(.*)", line.strip()):
            found.setdefault(m[1], []).extend(m[2].split())
    return found


def calls(words):
    """The system calls of groups, which systemd knows."""
    names = set()
    for word in words:
        if not word.startswith("@"):
            names.add(word)
            continue
        text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], capture_output=True, text=True, check=True).stdout
        members = [line.split()[0] for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
        names |= calls(members)
    return names


def filter_load(unit):
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_init.argtypes = [ctypes.c_uint32]
    lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]

    class Cmp(ctypes.Structure):
        _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]

    ctx = lib.seccomp_init(ALLOW)
    deny = unit["SystemCallFilter"]
    assert deny[0].startswith("~")
    added = 0
    for name in sorted(calls([deny[0][1:], *deny[1:]])):
        nr = lib.seccomp_syscall_resolve_name(name.encode())
        added += nr >= 0 and lib.seccomp_rule_add_array(ctx, EPERM, nr, 0, None) == 0
    assert added > 20, added
    allowed = {FAMILIES[f] for f in unit["RestrictAddressFamilies"]}
    socket = lib.seccomp_syscall_resolve_name(b"socket")
    for family in set(range(46)) - allowed:
        assert lib.seccomp_rule_add_array(ctx, EAFNOSUPPORT, socket, 1, ctypes.byref(Cmp(0, 4, family, 0))) == 0
    assert lib.seccomp_load(ctx) == 0


def main(path, *command):
    unit = settings(path)
    libc = ctypes.CDLL(None, use_errno=True)
    keep = {c.removeprefix("CAP_").lower() for c in unit["CapabilityBoundingSet"]}
    assert keep <= set(CAPS), keep - set(CAPS)
    os.umask(int(unit["UMask"][0], 8))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and unit["NoNewPrivileges"] == ["yes"]
    filter_load(unit)
    for number, name in enumerate(CAPS):
        if name not in keep and libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            assert ctypes.get_errno() == 22, name  # a kernel that does not know it
    os.execv(command[0], command)  # as root without these: execve() takes them from the other sets


if __name__ == "__main__":
    main(*sys.argv[1:])
