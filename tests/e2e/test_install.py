# SPDX-License-Identifier: MIT
"""What make install puts there, make uninstall takes away."""
import subprocess

from lib import base


def make(*words):
    p = subprocess.run(["make", "--no-print-directory", "-s", *words, f"BUILD={base.BUILD}"], cwd=base.ROOT, capture_output=True,
                       text=True, timeout=250, env=base.env(MAKEFLAGS="", MAKELEVEL=""))
    assert p.returncode == 0, p


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def test_uninstall_takes_away_what_install_put_there():
    folder = base.tempdir("install")
    try:
        where = [f"DESTDIR={folder}", "PREFIX=/opt/np"]
        make("install", *where)
        assert {"opt/np/sbin/netpawld", "opt/np/bin/netpawl", "opt/np/share/netpawl/policies/default.yaml"} <= set(files(folder))
        mine = folder / "opt/np/share/netpawl/policies/mine.yaml"
        mine.write_text("version: 1\n")
        make("uninstall", *where)
        assert files(folder) == ["opt/np/share/netpawl/policies/mine.yaml"]
        mine.unlink()
        make("uninstall", *where)  # of nothing, too
        assert not (folder / "opt/np/share/netpawl").exists()
    finally:
        base.drop_tempdir(folder)
