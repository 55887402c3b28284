# SPDX-License-Identifier: MIT
"""What make install puts there, make uninstall takes away."""
import subprocess

from lib import base
from lib.box import new_session


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
        assert {"opt/np/sbin/netpawld", "opt/np/sbin/netpawl-run", "opt/np/bin/netpawl", "opt/np/bin/netpawl-console", "opt/np/share/netpawl/policies/default.yaml"} <= set(files(folder))
        mine = folder / "opt/np/share/netpawl/policies/mine.yaml"
        mine.write_text("version: 1\n")
        make("uninstall", *where)
        assert files(folder) == ["opt/np/share/netpawl/policies/mine.yaml"]
        mine.unlink()
        make("uninstall", *where)  # of nothing, too
        assert not (folder / "opt/np/share/netpawl").exists()
    finally:
        base.drop_tempdir(folder)


def test_what_is_installed_launches(make_daemon, monkeypatch):
    """The programs find each other where they are installed: netpawld its launcher, that one the first process of a sandbox."""
    folder = base.tempdir("install")
    try:
        make("install", f"DESTDIR={folder}", "PREFIX=/opt/np")
        with monkeypatch.context() as m:
            m.setattr(base, "NETPAWLD", folder / "opt/np/sbin/netpawld")
            api = make_daemon().start().api
        run = api.ok("POST", "/v1/runs", {"session": new_session("install"), "command": ["echo", "ran"], "launch": {}})["run"]
        row = base.eventually(lambda: (r := api.ok("GET", f"/v1/runs/{run}"))["state"] not in ("pending", "running") and r, 20)
        assert row["state"] == "completed" and row["result"]["exit_code"] == 0, row
        status, lines = api.ask("GET", f"/v1/runs/{run}/output")
        assert status == 200 and "ran" in str(lines), lines
    finally:
        base.drop_tempdir(folder)
