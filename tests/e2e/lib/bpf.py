# SPDX-License-Identifier: MIT
"""bpf() by hand: what root could do to the gate with a few lines of his own."""
import ctypes
import json
import os
import struct

from lib import base

_libc = ctypes.CDLL(None, use_errno=True)
OBJ_GET, PROG_TEST_RUN, PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, ENABLE_STATS = 7, 10, 13, 15, 32
NR_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]


def call(command, attr):
    buf = ctypes.create_string_buffer(attr, len(attr))
    r = _libc.syscall(NR_BPF, command, buf, len(attr))
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r, buf.raw


class Stats:
    """The kernel counts runs and their time of BPF programs while this is open; the host's sysctl stays as it is, and it ends with us."""

    def __enter__(self):
        self.fd = call(ENABLE_STATS, bytes(128))[0]  # type 0: BPF_STATS_RUN_TIME
        return self

    def __exit__(self, *exc):
        os.close(self.fd)


def obj_get(path):
    name = ctypes.create_string_buffer(str(path).encode())
    return call(OBJ_GET, struct.pack("QII", ctypes.addressof(name), 0, 0))[0]


def dump(daemon, name):
    """The entries of a map of a daemon: dictionaries with key and value, as bpftool shows them."""
    text = base.sh("/usr/sbin/bpftool", "-j", "map", "dump", "pinned", daemon.pins / "maps" / name).stdout
    return [e["formatted"] for e in json.loads(text)]


def lookup(daemon, name, key):
    return next((e["value"] for e in dump(daemon, name) if e["key"] == key), None)


class Ratchet:
    """The np_raise program of a daemon, run with arguments of our choice (struct np_raise in include/sandbox.h)."""

    def __init__(self, daemon):
        path, = [p for p in (daemon.pins / "progs").rglob("*") if p.name.endswith("np_raise")]
        self.fd = obj_get(path)
        self.version = int(daemon.pins.name[1:])  # NP_ABI_VERSION names the directory

    def __call__(self, cgroup_id, mode, depth, session=b"by/hand", generation=1, level=0, flags=0):
        """What the program returned: 0 or a negative errno."""
        ctx = ctypes.create_string_buffer(struct.pack("=IIQBBBBI136s", self.version, depth, cgroup_id, mode, level, flags, 0, generation, session))
        # prog_fd retval data_size_in data_size_out data_in data_out repeat duration ctx_size_in ctx_size_out ctx_in ctx_out ...
        attr = struct.pack("IIIIQQIIIIQQIIII", self.fd, 0, 0, 0, 0, 0, 0, 0, 160, 0, ctypes.addressof(ctx), 0, 0, 0, 0, 0)
        _, out = call(PROG_TEST_RUN, attr)
        return struct.unpack_from("i", out, 4)[0]

    def close(self):
        os.close(self.fd)


def verified(ident):
    """(name, instructions that the verifier walked) of a program: fields of struct bpf_prog_info."""
    fd = call(PROG_GET_FD_BY_ID, struct.pack("III", ident, 0, 0))[0]
    try:
        info = ctypes.create_string_buffer(224)
        call(OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, len(info), ctypes.addressof(info)))
        return info.raw[64:80].rstrip(b"\0").decode(), struct.unpack_from("I", info.raw, 216)[0]
    finally:
        os.close(fd)
