# SPDX-License-Identifier: MIT
"""A daemon that finds the gate of its own build takes it as it is; one that finds anything else loads its own. Either way the
gate is whole when it is ready."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

from lib import base
from lib.box import Adopted
from lib.daemon import Daemon
from lib.world import FAR


@pytest.fixture(scope="module")
def daemon(world):
    with contextlib.closing(Daemon(world)) as d:
        yield d.start()


def bpftool(daemon, *words):
    return json.loads(base.sh(*daemon.world.enter(), "bpftool", "-j", *words).stdout or "null")


def programs(daemon):
    """{name: the kernel's number} of what is pinned."""
    return {p.name: bpftool(daemon, "prog", "show", "pinned", p)["id"] for p in sorted((daemon.pins / "progs").iterdir())}


def links(daemon):
    """{folder/name: the number of the program that the link runs, or None when it is attached nowhere}"""
    def one(path):
        info = bpftool(daemon, "link", "show", "pinned", path)
        info = info[0] if isinstance(info, list) else info
        return info["prog_id"] if info.get("cgroup_id", 1) else None
    return {str(p.relative_to(daemon.pins)): one(p) for p in sorted((daemon.pins / "links").glob("*/*"))}


def is_whole(daemon):
    """Every link runs the program of its name, and is attached."""
    progs = programs(daemon)
    wrong = {name: (got, progs[os.path.basename(name)]) for name, got in links(daemon).items()
             if got != progs[os.path.basename(name)]}
    return not wrong, wrong


def governs(made):
    got = {mode: box.try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) for mode, box in made.items()}
    return got == {"FULL": "ok", "NONE": "ECONNREFUSED"}, got


@pytest.fixture
def made(boxes):
    return {"FULL": boxes("FULL"), "NONE": boxes("NONE", kind=Adopted)}


def check(daemon, made, folders):
    for ok, why in (is_whole(daemon), governs(made)):
        assert ok, why
    assert {os.path.dirname(name) for name in links(daemon)} == folders


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_same_build_is_taken(daemon, made, how):
    before, folders = programs(daemon), {os.path.dirname(name) for name in links(daemon)}
    daemon.restart(how)
    assert programs(daemon) == before, "nothing was loaded"
    check(daemon, made, folders)
    assert daemon.api.escalate(made["FULL"].session, "SECRET")["mode"] == "NONE"
    assert made["FULL"].try_("dial", family=4, addr=FAR[4], port=9000, data="x", recv=1) == "ECONNREFUSED"


def rewrite(daemon, change):
    path = daemon.pins / "build"
    words = os.readlink(path).split("/")
    change(words)
    path.unlink()
    path.symlink_to("/".join(words))


def no_note(daemon):
    (daemon.pins / "build").unlink()


def another_hash(daemon):
    rewrite(daemon, lambda w: w.__setitem__(0, ("0" if w[0][0] != "0" else "1") + w[0][1:]))


def other_features(daemon):
    rewrite(daemon, lambda w: w.__setitem__(1, f"{int(w[1], 16) ^ 2:x}"))


def other_settings(daemon):
    rewrite(daemon, lambda w: w.__setitem__(2, ("0" if w[2][0] != "0" else "1") + w[2][1:]))


def a_number_more(daemon):
    rewrite(daemon, lambda w: w.append("1"))


def a_program_unpinned(daemon):
    (daemon.pins / "progs/np_raise").unlink()


def programs_swapped(daemon):
    a, b, c = (daemon.pins / "progs" / n for n in ("np_connect4", "np_connect6", "np_swap"))
    a.rename(c), b.rename(a), c.rename(b)


def a_scratch_map_unpinned(daemon):
    (daemon.pins / "scratch/np_cut").unlink()


def fewer_ports(daemon):
    """A setting of the host that is a setting of the programs."""
    base.sh(*daemon.world.enter(), "sysctl", "-qw", "net.ipv4.ip_local_port_range=20000 50000")


@pytest.mark.parametrize("harm", [no_note, another_hash, other_features, other_settings, a_number_more, a_program_unpinned,
                                  programs_swapped, a_scratch_map_unpinned, fewer_ports])
def test_anything_else_is_loaded_anew(daemon, made, harm):
    before, folders = programs(daemon), {os.path.dirname(name) for name in links(daemon)}
    daemon.kill()
    harm(daemon)
    daemon.start()
    after = programs(daemon)
    assert set(after) == set(before) and not set(after.values()) & set(before.values()), "all of it is new"
    check(daemon, made, folders)
    daemon.restart("kill")
    assert programs(daemon) == after, "and taken by the next"


def unpinned(daemon, path):
    path.unlink()


def detached(daemon, path):
    base.sh(*daemon.world.enter(), "bpftool", "link", "detach", "pinned", path)


@pytest.mark.parametrize("harm", [unpinned, detached])
@pytest.mark.parametrize("which", ["slice/np_connect4", "net/np_inbound", "inspector/np_worker_made"])
def test_a_link_that_is_gone_is_made_again(daemon, made, harm, which):
    path = daemon.pins / "links" / which
    path = path if path.exists() else next(path.parent.iterdir())
    before, folders = programs(daemon), {os.path.dirname(name) for name in links(daemon)}
    daemon.kill()
    harm(daemon, path)
    daemon.start()
    assert programs(daemon) == before
    assert path.exists()
    check(daemon, made, folders)


@pytest.mark.parametrize("point", ["gate_loaded", "gate_attached"])
def test_a_crash_while_loading_leaves_no_note(daemon, made, point):
    """Half of a gate is not taken for a whole one."""
    folders = {os.path.dirname(name) for name in links(daemon)}
    daemon.kill()
    another_hash(daemon)
    p = subprocess.run(daemon.argv(binary=base.NETPAWLD_FAIL), env=base.env(NETPAWL_FAILPOINT=point), stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=180)
    assert p.returncode == -signal.SIGKILL, p
    assert not os.path.lexists(daemon.pins / "build")
    before = programs(daemon)
    daemon.start()
    assert not set(programs(daemon).values()) & set(before.values())
    check(daemon, made, folders)
