# SPDX-License-Identifier: MIT
"""Unix sockets of the host are deputies with the host's network: a sandbox reaches its own and no other."""
import os
import pathlib
import secrets
import shutil
import socket
import tempfile

import pytest

from lib import base
from lib.box import Adopted, Box

MODES = ["FULL", "PROXIED", "NONE"]
TRANSPORTS = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET}
TRICKS = ["symlink", "relative", "dotted", "own_name_then_symlink", "own_name_elsewhere", "own_directory_renamed",
          "proc_fd", "link_repointed", "proc_cwd", "proc_dir_fd"]
# With a link to the host's file, or a root directory or mounts of its own: a process that nothing but the gate confines.
STRONG = ["linked_over_own", "chrooted", "mounted_over", "mounted_over_file"]


@pytest.fixture(scope="module")
def places(world):
    """Host sockets: in /tmp, elsewhere, and abstract ones."""
    made = {}
    folders = {"tmp": base.tempdir("unix"), "elsewhere": pathlib.Path("/var/lib") / base.unique("unix")}
    folders["elsewhere"].mkdir(mode=0o755)
    tag = secrets.token_hex(4)
    for transport in TRANSPORTS:
        for where in ("tmp", "elsewhere", "abstract"):
            name = f"@np-test-{transport}-{tag}" if where == "abstract" else str(folders[where] / transport)
            keep = f"unix-{where}-{transport}"
            world.outside.call("listen", keep=keep, family="unix", addr=name, kind=transport)
            made[where, transport] = (keep, name)
    yield made
    for keep, _ in made.values():
        world.outside.call("close", keep=keep)
    for folder in folders.values():
        shutil.rmtree(folder)
    base.drop_tempdir(folders["tmp"])


@pytest.fixture(scope="module")
def scratch():
    """A directory that everybody may write to, as /tmp is."""
    path = base.tempdir("scratch")
    path.chmod(0o1777)
    yield str(path)
    base.drop_tempdir(path)


def seen(world, keep):
    return len(world.outside.call("records", keep=keep)["records"])


WHERE = [(w, t) for w in ("tmp", "elsewhere", "abstract") for t in TRANSPORTS]


@pytest.mark.parametrize("where,transport", WHERE)
def test_control(world, places, where, transport):
    keep, name = places[where, transport]
    before = seen(world, keep)
    for near in (world.outside, world.outside_user):
        assert near.try_("dial", family="unix", addr=name, kind=transport, data="x") == "ok"
    if transport == "dgram":
        assert world.outside.try_("sendto", family="unix", addr=name, data="x") == "ok"
    assert base.eventually(lambda: seen(world, keep) > before)


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", MODES)
def test_host_sockets_are_closed(world, pool, places, mode, user, kind):
    box = pool(mode, user, kind)
    for (where, transport), (keep, name) in places.items():
        before = seen(world, keep)
        assert box.try_("dial", family="unix", addr=name, kind=transport, data="x") != "ok", (where, transport)
        if transport == "dgram":
            assert box.try_("sendto", family="unix", addr=name, data="x") != "ok"
        assert seen(world, keep) == before, (where, transport)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("trick", TRICKS)
def test_control_of_the_tricks(world, places, scratch, trick, transport):
    keep, name = places["tmp", transport]
    before = seen(world, keep)
    _, answer = world.outside.payload("unixs", trick, target=name, scratch=scratch, kind=int(TRANSPORTS[transport]), mark="x")
    assert answer == {"talk": "ok"}
    assert base.eventually(lambda: seen(world, keep) > before)


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_with_names(world, pool, places, scratch, trick, transport, kind):
    for where in ("tmp", "elsewhere"):
        keep, name = places[where, transport]
        before = seen(world, keep)
        status, answer = pool("NONE", kind=kind).payload("unixs", trick, target=name, scratch=scratch,
                                                         kind=int(TRANSPORTS[transport]), mark="x")
        assert answer is not None and answer.get("talk") != "ok", (where, answer)
        assert seen(world, keep) == before, where


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", MODES)
def test_a_link_that_is_repointed(world, pool, places, scratch, mode, user, kind):
    """`elsewhere` is a read-only --bind in what netpawl run makes."""
    for where in ("tmp", "elsewhere"):
        for transport in TRANSPORTS:
            keep, name = places[where, transport]
            before = seen(world, keep)
            for trick in ["link_repointed"] + ["link_repointed_dgram"] * (transport == "dgram"):
                _, answer = pool(mode, user, kind).payload("unixs", trick, target=name, scratch=scratch,
                                                           kind=int(TRANSPORTS[transport]), mark="x")
                assert answer is not None and answer["talk"] == "ECONNREFUSED", (where, transport, answer)
            assert seen(world, keep) == before, (where, transport)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("trick", STRONG)
def test_tricks_with_roots_and_mounts(world, pool, places, scratch, trick, transport):
    keep, name = places["tmp", transport]
    args = dict(target=name, scratch=scratch, kind=int(TRANSPORTS[transport]))
    came = lambda mark: world.outside.call("records", keep=keep, mark=mark)["records"]
    assert world.outside.payload("unixs", trick, mark=f"outside-{trick}", **args)[1] == {"talk": "ok"}
    assert base.eventually(lambda: came(f"outside-{trick}"))
    word = "ECONNREFUSED" if trick == "linked_over_own" else "refused"
    words = [word] + ["cannot mount"] * (base.ADOPTED in ("podman", "docker"))  # an engine takes that away
    for mode in MODES:
        assert pool(mode, kind=Adopted).payload("unixs", trick, mark=f"inside-{trick}", **args)[1]["talk"] in words
    assert not came(f"inside-{trick}")


HELD = [("backlog", "stream"), ("backlog", "seqpacket"), ("buffer", "dgram"), ("queue", "dgram")]


@pytest.mark.parametrize("trick,transport", HELD)
def test_a_call_that_waits_while_its_name_is_repointed(world, pool, places, scratch, trick, transport):
    """`elsewhere` is a read-only --bind in what netpawl run makes. The kernel looks the name up again after the wait."""
    args = dict(scratch=scratch, kind=int(TRANSPORTS[transport]))
    keep, name = places["elsewhere", transport]
    came = lambda mark: world.outside.call("records", keep=keep, mark=mark)["records"]
    control = world.outside.payload("unixheld", trick, target=name, mark=f"outside-{trick}", **args)[1]
    assert control == {"talk": "ok", "waited": True}
    assert base.eventually(lambda: came(f"outside-{trick}"))
    for kind in (Box, Adopted):
        for mode in MODES:
            box = pool(mode, "nobody", kind)
            answer = box.payload("unixheld", trick, target=name, mark=f"inside-{trick}", **args)[1]
            assert answer is not None and answer["talk"] in ("EAGAIN", "ECONNREFUSED"), (kind, mode, answer)
            if not answer["waited"]:  # else BPF LSM has judged the peer
                assert [e for e in box.refusals("unix_would_wait") if e["hook"].startswith("unix_")]
    assert not came(f"inside-{trick}")


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
def test_own_sockets_that_are_full(pool, scratch, kind):
    _, answer = pool("NONE", kind=kind).payload("unixheld", "own_use", scratch=scratch)
    assert answer == {"first": "ok", "full, not blocking": "EAGAIN", "accepted": "ok", "room again": "ok",
                      "a connected one waits": {"talk": "ok", "waited": True}}


@pytest.mark.parametrize("transport", ["stream", "seqpacket"])
@pytest.mark.parametrize("name", ["path", "abstract"])
def test_a_connection_from_before_the_adoption(world, boxes, scratch, name, transport):
    """The server's end of it is of the cgroup that is adopted, and has the name of the host's listener."""
    addr = f"{scratch}/early{secrets.token_hex(4)}" if name == "path" else f"\0early{secrets.token_hex(4)}"
    listener = base.setns_call(world.host, lambda: socket.socket(socket.AF_UNIX, TRANSPORTS[transport]))
    with listener:
        listener.bind(addr)
        listener.listen(8)
        args = dict(family="unix", addr=addr.replace("\0", "@"), kind=transport)
        control = []
        box = boxes("FULL", kind=Adopted, before=lambda agent: control.append(agent.try_("dial", **args)))
        assert control == ["ECONNREFUSED" if box.apart and name == "abstract" else "ok"]
        assert box.try_("dial", **args) == "ECONNREFUSED"
        if box.apart and name == "abstract":
            return  # the host's names are not there
        listener.settimeout(5)
        listener.accept()[0].close()
        assert box.try_("dial", **args) == "ECONNREFUSED"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_no_descriptor_is_passed_out(world, pool, places, scratch):
    keep, name = places["tmp", "dgram"]
    before = seen(world, keep)
    args = dict(target=name, scratch=scratch, kind=2, mark="x")
    assert world.outside.payload("unixs", "passed_descriptor", **args)[1]["talk"] == "ok"
    assert base.eventually(lambda: seen(world, keep) == before + 1)
    for mode in MODES:
        assert pool(mode).payload("unixs", "passed_descriptor", **args)[1]["talk"] != "ok"
    assert seen(world, keep) == before + 1


@pytest.mark.parametrize("other", MODES)
def test_other_sandboxes_sockets_are_closed(pool, boxes, scratch, other):
    target = boxes(other)
    tag = secrets.token_hex(4)
    names = {t: (os.path.join(scratch, f"{t}{tag}"), f"@np-test-{t}-{tag}") for t in TRANSPORTS}
    for transport, (path, abstract) in names.items():
        target.call("listen", keep=path, family="unix", addr=path, kind=transport)
        target.call("listen", keep=abstract, family="unix", addr=abstract, kind=transport)
    for mode in MODES:
        for transport, pair in names.items():
            for name in pair:
                assert pool(mode).try_("dial", family="unix", addr=name, kind=transport, data="x") != "ok"
    assert target.call("records")["records"] == []
    for path, _ in names.values():
        os.unlink(path)


@pytest.mark.parametrize("kind", [Box, Adopted], ids=["run", "adopted"])
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("mode", MODES)
def test_own_sockets_work(pool, scratch, mode, user, kind):
    status, answer = pool(mode, user, kind).payload("unixs", "own_use", scratch=scratch, tag=secrets.token_hex(4))
    assert status == 0 and set(answer.values()) == {"ok"}, answer


def test_own_socket_with_many_neighbours(world, pool, scratch):
    """The table of unix sockets has a bounded walk: a crowd of the host's sockets must not hide one's own,
    nor let a foreign one through."""
    code = ("import socket,sys\n"
            "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n"
            "keep = []\n"
            "for i in range(3000):\n"
            "    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind('\\0np-test-crowd-%d-' % i + sys.argv[1]); keep.append(s)\n"
            "print('up', flush=True); sys.stdin.read()\n")
    import subprocess
    crowd = base.popen([*world.enter(), base.PYTHON, "-c", code, secrets.token_hex(4)], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
    try:
        assert crowd.stdout.readline() == b"up\n"
        _, answer = pool("NONE").payload("unixs", "own_use", scratch=scratch, tag=secrets.token_hex(4))
        assert set(answer.values()) == {"ok"}, answer
    finally:
        crowd.stdin.close()
        base.reap(crowd)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("where", ["path", "abstract"])
def test_a_name_that_was_ours_before(world, pool, scratch, where, transport):
    """Where the search for a name begins is where it was found the last time: by now the name is the host's."""
    tag = secrets.token_hex(4)
    name = f"@np-test-again-{tag}" if where == "abstract" else os.path.join(scratch, tag)
    box = pool("NONE")
    reach = dict(family="unix", addr=name, kind=transport, data="x")
    box.call("listen", keep=name, family="unix", addr=name, kind=transport)
    for _ in range(2):
        assert box.try_("dial", **reach) == "ok"
    box.call("close", keep=name)
    if where == "path":
        os.unlink(name)
    # a thread of the agent that still waits for callers holds the name for a moment
    assert base.eventually(lambda: world.outside.try_("listen", keep=name, family="unix", addr=name, kind=transport) == "ok")
    try:
        assert box.try_("dial", **reach) == "ECONNREFUSED"
        assert seen(world, name) == 0
        assert world.outside.try_("dial", **reach) == "ok"
        assert base.eventually(lambda: seen(world, name) > 0)
    finally:
        world.outside.call("close", keep=name)
        if where == "path":
            os.unlink(name)


def test_where_the_search_begins_decides_nothing(world, daemon, boxes, places, scratch):
    """Whatever is noted there, also what nobody can have noted."""
    hints = daemon.pins / "maps/np_unix_hints"
    for bucket in (0, 511, 0xffffffff):
        lines = "".join(f"map update pinned {hints} key {' '.join(str(b) for b in at.to_bytes(4, 'little'))} value "
                        f"{' '.join(str(b) for b in bucket.to_bytes(4, 'little'))}\n" for at in range(4096))
        with tempfile.NamedTemporaryFile("w") as batch:
            batch.write(lines)
            batch.flush()
            base.sh("/usr/sbin/bpftool", "batch", "file", batch.name)
        _, answer = boxes("NONE").payload("unixs", "own_use", scratch=scratch, tag=secrets.token_hex(4))
        assert set(answer.values()) == {"ok"}, answer
        for transport in TRANSPORTS:
            for where in ("tmp", "abstract"):
                keep, name = places[where, transport]
                before = seen(world, keep)
                assert boxes("NONE").try_("dial", family="unix", addr=name, kind=transport, data="x") == "ECONNREFUSED"
                assert seen(world, keep) == before


def test_refusal_is_an_event(daemon, boxes, places):
    box = boxes("FULL")
    keep, name = places["tmp", "stream"]
    _, abstract = places["abstract", "stream"]
    assert box.try_("dial", family="unix", addr=name) != "ok"
    event = box.refusals("foreign_unix")[0]
    assert event["hook"] == "unix_connect" and name.startswith(event["address"].rstrip(".…")[:30])
    keep, name = places["tmp", "dgram"]
    assert box.try_("sendto", family="unix", addr=name, data="x") != "ok"
    assert base.eventually(lambda: [e for e in box.events() if e.get("hook") == "unix_sendmsg"])
