# SPDX-License-Identifier: MIT
"""netpawl cp: files into a workspace and out of it, while a sandbox there does what it likes."""
import json
import os
import signal
import socket
import stat
import subprocess

import pytest

from lib import base
from lib.box import new_session


@pytest.fixture
def folder():
    path = base.tempdir("cp")
    yield path
    base.drop_tempdir(path)


@pytest.fixture
def session(daemon):
    name = new_session("cp")
    daemon.cli("run", "--session", name, "--", "true", check=0)
    return name


def home(daemon, session):
    return daemon.state_dir / "data" / session


def inside(daemon, session, script, check=0):
    return daemon.cli("run", "--session", session, "--", "sh", "-c", script, check=check).stdout


def test_a_file_in_and_out(daemon, session, folder):
    (folder / "agent.py").write_text("print(1)\n")
    (folder / "agent.py").chmod(0o750)
    daemon.cli("cp", folder / "agent.py", f"{session}:", check=0)
    made = home(daemon, session) / "agent.py"
    owner = home(daemon, session).stat()
    assert (made.stat().st_uid, made.stat().st_gid, made.stat().st_mode & 0o7777) == (owner.st_uid, owner.st_gid, 0o750)
    assert inside(daemon, session, "./agent.py 2>/dev/null || python3 agent.py; echo 2 >> agent.py; echo x > /workspace/report") == "1\n"
    daemon.cli("cp", f"{session}:/workspace/report", folder / "here", check=0)
    daemon.cli("cp", f"{session}:report", folder, check=0)
    for name in ("here", "report"):
        assert (folder / name).read_text() == "x\n" and (folder / name).stat().st_uid == 0
    daemon.cli("cp", folder / "here", f"{session}:/workspace/agent.py", check=0)
    assert made.read_text() == "x\n"
    assert {p.name for p in home(daemon, session).iterdir()} == {"agent.py", "report"}, "nothing is left behind"


def test_streams(daemon, session):
    daemon.cli("cp", "-", f"{session}:a", input="by a pipe", check=0)
    assert daemon.cli("cp", f"{session}:a", "-", check=0).stdout == "by a pipe"
    assert daemon.cli("cp", "-", f"{session}:", input="", check=1).stderr, "a stream has no name"


def test_directories(daemon, session, folder):
    (folder / "in/sub/deep").mkdir(parents=True)
    (folder / "in/a").write_text("a")
    (folder / "in/sub/deep/b").write_text("b")
    got = json.loads(daemon.cli("cp", f"{folder}/in/", f"{session}:", "--json", check=0).stdout)
    assert got == {"files": 2, "bytes": 2, "left_out": 0}
    assert inside(daemon, session, "cat in/a in/sub/deep/b && stat -c %u in in/sub | sort -u | wc -l && touch in/c") == "ab1\n"
    inside(daemon, session, "ln -s /etc/passwd in/link; mkfifo in/pipe; python3 -c \"import socket; "
                            "socket.socket(socket.AF_UNIX).bind('in/sock')\"")
    p = daemon.cli("cp", f"{session}:in", folder / "out", check=1)
    assert p.stderr.count("left out") == 3, p
    assert sorted(str(f.relative_to(folder / "out")) for f in (folder / "out").rglob("*")) == \
        ["a", "c", "sub", "sub/deep", "sub/deep/b"]


def test_wrong_usage(daemon, session, folder):
    for words in ([], [folder], [folder, folder], [f"{session}:a", f"{session}:b"], [folder, "./a/b:c"],
                  ["--json", f"{session}:a", "-"], ["", f"{session}:a"], ["", f"{session}:"], [f"{session}:a", ""]):
        assert daemon.cli("cp", *words, check=2).stderr
    (folder / "x").write_text("x")
    for target in (f"{new_session('none')}:x", f"{session}:/etc/x", f"{session}:../x", f"{session}:/workspace/../x",
                   f"{session}:no/such/x"):
        assert daemon.cli("cp", folder / "x", target, check=1).stderr
    assert daemon.cli("cp", f"{session}:nothing", folder, check=1).stderr
    p = daemon.cli("cp", folder / "missing", f"{session}:", check=1)
    assert "No such file" in p.stderr and "internal error" not in p.stderr
    assert daemon.cli("cp", "/dev/zero", f"{session}:z", check=1).stderr, "a device has no end"


def test_it_acts_as_the_sessions_user(daemon, session, folder):
    """Root's power over files is not lent to the paths of a sandbox."""
    (folder / "x").write_text("x")
    inside(daemon, session, "mkdir closed; chmod 0 closed; touch locked; chmod 0 locked")
    assert "ermission" in daemon.cli("cp", folder / "x", f"{session}:closed/x", check=1).stderr
    assert "ermission" in daemon.cli("cp", f"{session}:locked", folder / "y", check=1).stderr
    assert not (folder / "y").exists()


@pytest.mark.parametrize("link", ["{out}", "../../../../../../../../..{out}", "/proc/self/root{out}"])
def test_links_lead_nowhere(daemon, session, folder, link):
    """The control: plain cp to the path that the host sees follows the link."""
    (folder / "new").write_text("from the caller")
    (folder / "secret").write_text("the host's")
    (folder / "secret").chmod(0o666)
    folder.chmod(0o777)
    link = link.format(out=folder)
    inside(daemon, session, f"ln -s {link}/secret file; ln -s {link} dir")
    base.sh("cp", folder / "new", home(daemon, session) / "file")
    assert (folder / "secret").read_text() == "from the caller"
    (folder / "secret").write_text("the host's")
    for target in ("file", "dir", "dir/", "dir/secret"):
        assert "outside_workspace" in daemon.cli("cp", folder / "new", f"{session}:{target}", check=1).stderr
    assert (folder / "secret").read_text() == "the host's" and len(list(folder.iterdir())) == 2
    for source in ("file", "dir/secret", "dir"):
        assert daemon.cli("cp", f"{session}:{source}", folder / "got", check=1).stderr
        assert not (folder / "got").exists()


SWAP = """
import os, sys, time
end = time.monotonic() + 60
os.mkdir('real')
while time.monotonic() < end and not os.path.exists('stop'):
    try:
        os.rename('real', 'spot'); os.rename('spot', 'real'); os.symlink(sys.argv[1], 'spot'); os.unlink('spot')
    except OSError:
        pass
"""


def test_links_that_come_and_go(daemon, session, folder):
    """A sandbox that exchanges a directory for a link to the host's all the time."""
    (folder / "new").write_text("from the caller")
    (folder / "host").mkdir()
    (folder / "host").chmod(0o777)
    p = base.popen([*daemon.world.enter(), base.NETPAWL, "run", "--session", session, "--", base.PYTHON, "-I", "-c", SWAP,
                    str(folder / "host")], env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
    try:
        place = home(daemon, session)
        assert base.eventually(lambda: any((place / name).is_dir() for name in ("real", "spot")), 30), "the sandbox has begun"
        worked = tried = 0
        while tried < 150 or (not worked and tried < 1500):
            worked += daemon.cli("cp", folder / "new", f"{session}:spot/x").returncode == 0
            tried += 1
        (place / "stop").touch()
        p.wait(60)
        assert worked and not list((folder / "host").iterdir())
    finally:
        base.reap(p)


def test_errors_name_the_place(daemon, session, folder):
    def said(*words):
        text = daemon.cli("cp", *words, check=1).stderr
        assert "internal error" not in text, text
        return text
    assert said(folder / "nope", f"{session}:") == f"netpawl: cp: {folder}/nope: No such file or directory\n"
    assert said(f"{session}:nope", folder) == f"netpawl: cp: {session}:nope: No such file or directory\n"
    assert f"{session}:: the copy needs a name" in said("-", f"{session}:")
    assert "/dev/zero: neither a file nor a directory" in said("/dev/zero", f"{session}:z")
    assert f"{session}:no/x: No such file" in said(folder.parent / folder.name, f"{session}:no/x")
    inside(daemon, session, "mkfifo pipe; ln -s /etc/passwd link")
    assert f"{session}:pipe: neither" in said(f"{session}:pipe", folder)
    assert f"{session}:pipe: neither" in said(f"{session}:pipe", "-")
    assert "outside_workspace" in said(f"{session}:link", folder)


def test_what_comes_out_is_bounded(daemon, session, folder):
    """A sandbox decides how much lies in its workspace."""
    inside(daemon, session, "truncate -s 2T sparse; mkdir many; for i in 1 2 3 4 5 6; do head -c 1000 /dev/zero > many/$i; done")
    for target in (folder, "-"):
        assert f"{session}:sparse: with it there are more bytes" in daemon.cli("cp", f"{session}:sparse", target, check=1).stderr
    assert list(folder.iterdir()) == []
    assert "more bytes" in daemon.cli("cp", "--max-bytes", "5999", f"{session}:many", folder / "less", check=1).stderr
    assert "more files" in daemon.cli("cp", "--max-files", "6", f"{session}:many", folder / "fewer", check=1).stderr
    assert sum(p.stat().st_size for p in (folder / "less").iterdir()) == 5000
    daemon.cli("cp", "--max-bytes", "6kB", "--max-files", "7", f"{session}:many", folder / "all", check=0)
    assert len(list((folder / "all").iterdir())) == 6
    inside(daemon, session, "mkdir links; for i in 1 2 3 4 5 6 7 8 9; do ln -s x links/$i; done")  # what is left out counts, too
    p = daemon.cli("cp", "--max-files", "4", f"{session}:links", folder / "links", check=1)
    assert "more files" in p.stderr and p.stderr.count("left out") == 3
    for wrong in (["--max-bytes", "much"], ["--max-bytes", "0"], ["--max-files", "0"]):
        assert daemon.cli("cp", *wrong, f"{session}:many", folder, check=2).stderr


@pytest.fixture
def report(daemon, session):
    inside(daemon, session, "echo new > report")
    return f"{session}:report"


def kind(path):
    return stat.S_IFMT(path.lstat().st_mode)


def test_a_node_of_the_host_stays_one(daemon, report, folder):
    """What cp(1) writes to is written to; what it would make a mess of is refused. Nodes of our own: never the machine's."""
    os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(folder / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
    os.mknod(folder / "block", stat.S_IFBLK | 0o600, os.makedev(240, 250))
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(folder / "socket"))
    before = {p.name: kind(p) for p in folder.iterdir()}
    daemon.cli("cp", report, folder / "null", check=0)
    assert daemon.cli("cp", report, folder / "full", check=1).stderr == f"netpawl: cp: {folder}/full: No space left on device\n"
    for name in ("block", "socket"):
        assert daemon.cli("cp", report, folder / name, check=1).stderr == \
            f"netpawl: cp: {folder}/{name}: neither a file nor a directory\n"
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        daemon.cli("cp", report, folder / "fifo", check=0)
        assert os.read(reader, 100) == b"new\n"
    finally:
        os.close(reader)
    assert daemon.cli("cp", report, "/proc/self/fd/1", check=0).stdout == "new\n"
    assert {p.name: kind(p) for p in folder.iterdir()} == before


def test_a_file_of_the_host_stays_what_it_was(daemon, report, folder):
    """Its mode, its owner, and links to it; the control: without a file a copy has the mode of its source."""
    (folder / "far").mkdir()
    secret = folder / "far/secret"
    secret.write_text("old")
    secret.chmod(0o600)
    os.chown(secret, 12345, 12346)
    (folder / "link").symlink_to("far/secret")
    (folder / "dangling").symlink_to("far/nothing")
    daemon.cli("cp", report, folder / "link", check=0)
    assert secret.read_text() == "new\n" and os.readlink(folder / "link") == "far/secret"
    secret.write_text("old")
    daemon.cli("cp", report, secret, check=0)
    st = secret.stat()
    assert secret.read_text() == "new\n" and (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (0o600, 12345, 12346)
    assert "No such file" in daemon.cli("cp", report, folder / "dangling", check=1).stderr
    daemon.cli("cp", report, folder / "plain", check=0)
    assert (folder / "plain").stat().st_mode & 0o7777 == 0o644
    assert sorted(p.name for p in folder.rglob("*")) == ["dangling", "far", "link", "plain", "secret"]


def test_names_of_a_tree_lead_nowhere_on_the_host(daemon, session, folder):
    """They are the sandbox's: it could choose one that is a link or a device at the target."""
    inside(daemon, session, "mkdir tree; for name in link null file; do echo new > tree/$name; done")
    (folder / "tree").mkdir()
    (folder / "secret").write_text("the host's")
    (folder / "tree/link").symlink_to("../secret")
    (folder / "tree/file").write_text("old")
    (folder / "tree/file").chmod(0o600)
    os.mknod(folder / "tree/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    p = daemon.cli("cp", f"{session}:tree", folder, check=1)
    assert p.stderr == "netpawl: null: neither a file nor a directory, left out\n"
    assert (folder / "secret").read_text() == "the host's" and kind(folder / "tree/null") == stat.S_IFCHR
    assert (folder / "tree/link").read_text() == "new\n" and not (folder / "tree/link").is_symlink()
    assert (folder / "tree/file").read_text() == "new\n" and (folder / "tree/file").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_copy_leaves_nothing_behind(daemon, session, number):
    """The control: while it writes there is half a file, under a name of its own."""
    place = home(daemon, session)
    p = base.popen([*daemon.world.enter(), base.NETPAWL, "cp", "-", f"{session}:x"], stdin=subprocess.PIPE,
                   env=base.env(NETPAWL_SOCKET=str(daemon.socket)), preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    try:
        p.stdin.write(b"half")
        p.stdin.flush()
        assert base.eventually(lambda: [f.name[:4] for f in place.iterdir() if f.stat().st_size == 4] == [".np-"], 30)
        p.send_signal(number)
        assert p.wait(60) == -number and list(place.iterdir()) == []
    finally:
        p.stdin.close()
        base.reap(p)
