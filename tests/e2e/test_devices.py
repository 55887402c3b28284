# SPDX-License-Identifier: MIT
"""sandbox: devices: what a sandbox has of the host's, and what it never has."""
import os
import pathlib
import stat

import pytest

from lib import base

NULL, MEM, KMSG = os.makedev(1, 3), os.makedev(1, 1), os.makedev(1, 11)


@pytest.fixture
def folder():
    """In /dev, for nothing else is looked at; its nodes are of devices that do no harm, or that nobody opens."""
    path = pathlib.Path("/dev", base.PREFIX + base.token())
    path.mkdir()
    yield path
    for node in path.rglob("*"):
        if not node.is_dir() or node.is_symlink():
            node.unlink()
    for node in sorted(path.rglob("*"), reverse=True):
        node.rmdir()
    path.rmdir()


def node(path, device=NULL, kind=stat.S_IFCHR, mode=0o666, gid=0):
    os.mknod(path, kind | 0o600, device)
    os.chown(path, 0, gid)
    path.chmod(mode)


@pytest.fixture
def run(make_daemon):
    daemon = make_daemon()
    daemon.start()

    def run(devices, script, *options, check=0):
        daemon.policy.write_text("version: 1\n" + f"sandbox:\n  devices: [{', '.join(map(str, devices))}]\n")
        assert daemon.cli("policy", "reload").returncode == 0
        return daemon.cli("run", *options, "--", "sh", "-c", script, check=check)

    return run


def test_devices_that_the_policy_names(run, folder):
    for name in ("card0", "card1", "other"):
        node(folder / name)
    (folder / "below").mkdir()
    node(folder / "below/deep")
    (folder / "text").write_text("no device")
    look = f"cd {folder} 2>/dev/null && find . ! -name . | sort && echo x > card0 && head -c 1 card0 | wc -c"
    assert run([f"{folder}/card*"], look).stdout.split() == ["./card0", "./card1", "0"]
    assert run([folder], look).stdout.split() == ["./card0", "./card1", "./other", "0"], "of a directory what is in it, but no deeper"
    assert run([folder / "card0", folder / "card0", "/dev/np-not-there*"], look, "--user", "root").stdout.split() == ["./card0", "0"]
    assert run(["/dev/np-not-there"], look, check=None).stdout == "", "the control"


def test_the_group_that_a_device_opens_for(run, folder):
    gid = 31337
    node(folder / "open", mode=0o660, gid=gid)
    node(folder / "roots", mode=0o660)
    node(folder / "owners", mode=0o600, gid=gid + 1)
    got = run([folder], f"id -G; cd {folder}; for f in *; do echo x 2>/dev/null > $f && echo wrote $f; done; true").stdout.splitlines()
    assert str(gid) in got[0].split() and not {"0", str(gid + 1)} & set(got[0].split()) and got[1:] == ["wrote open"]


BAD = {"mem": (MEM, stat.S_IFCHR), "kmsg": (KMSG, stat.S_IFCHR), "tun": (os.makedev(10, 200), stat.S_IFCHR),
       "fuse": (os.makedev(10, 229), stat.S_IFCHR), "tty": (os.makedev(4, 1), stat.S_IFCHR), "loop": (os.makedev(7, 0), stat.S_IFBLK),
       "nobody's": (os.makedev(4000, 1), stat.S_IFCHR)}


def test_devices_that_no_sandbox_has(run, folder):
    """By what they are: names say nothing. Nothing runs, and the message names it."""
    mark = base.token()
    node(folder / "fit")
    for name, (device, kind) in BAD.items():
        bad = folder / "nvidia0"
        node(bad, device, kind)
        for pattern in (bad, folder, f"{folder}/*"):
            p = run([pattern], f"echo {mark}", check=125)
            assert mark not in p.stdout and str(bad) in p.stderr and "devices" in p.stderr, (name, p)
        bad.unlink()
    assert mark in run([folder], f"echo {mark}").stdout, "the control"


def test_links_lead_out_of_dev_to_nothing(run, folder):
    outside = base.tempdir("node")
    try:
        node(outside / "null")
        (folder / "out").symlink_to(outside / "null")
        (folder / "all").symlink_to(outside)
        (folder / "within").symlink_to("../null")
        assert run([f"{folder}/*"], f"ls {folder} {outside} 2>/dev/null; test -w /dev/null && echo there").stdout == "there\n"
    finally:
        base.drop_tempdir(outside)


@pytest.mark.parametrize("word", ["/tmp/x", "/dev", "dev/kvm", "/dev/../etc", "/dev//kvm", "/dev/kvm/"])
def test_what_is_no_device_is_an_error_of_the_policy(word):
    folder = base.tempdir("policy")
    try:
        (folder / "p.yaml").write_text(f"version: 1\nsandbox:\n  devices: [{word}]\n")
        p = base.sh(base.NETPAWL, "policy", "check", folder / "p.yaml", check=False)
        assert p.returncode == 1 and "is no device" in p.stdout + p.stderr, p
    finally:
        base.drop_tempdir(folder)
