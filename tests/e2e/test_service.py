# SPDX-License-Identifier: MIT
"""The systemd unit, without systemd: the daemon works under what the unit takes away, and the reload has an exit code."""
import json
import re
import shutil
import subprocess
import sys

import pytest
from lib import base
from lib.box import new_session
from lib.daemon import NotReady
from lib.unit import settings

UNIT = base.ROOT / "netpawld.service.in"
CONFINE = [sys.executable, str(base.TESTS / "e2e/lib/unit.py"), str(UNIT)]




def status_of(pid):
    return dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)


def test_the_daemon_works_under_the_unit(make_daemon, tmp_path):
    d = make_daemon(inspectors=1)
    argv = d.argv
    d.argv = lambda *more, binary=None: [*d.world.enter(), *CONFINE, *argv(*more, binary=binary)[len(d.world.enter()):]]
    d.start()
    status = status_of(d.process.pid)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) and not int(status["CapEff"], 16) & 1 << 16  # SYS_MODULE
    name = new_session()
    assert json.loads(d.cli("run", "--session", name, "--memory", "64MiB", "--json", "--", "id", check=0).stdout)["exit_code"] == 0
    assert d.api.escalate(name, "CONFIDENTIAL")["mode"] == "PROXIED"
    run = d.api.ok("POST", "/v1/runs", {"session": name, "command": ["sh", "-c", "hostname; id -u; unshare -r true; echo done"],
                                        "launch": {"memory": "64MiB"}})
    ended = base.eventually(lambda: (r := d.api.ok("GET", f"/v1/runs/{run['run']}?wait=1"))["state"] not in ("pending", "running") and r, 60)
    assert ended and ended["state"] == "completed" and ended["result"]["exit_code"] == 0, (ended["result"], d.api.raw("GET", f"/v1/runs/{run['run']}/output")[2])
    assert base.eventually(lambda: d.api.health()["inspectors"] == 1, 30)
    kept = d.cli("run", "--keep", "--session", name, "--", "true", check=0)
    assert kept.returncode == 0
    d.api.end(name)
    d.restart()
    assert d.api.health()["status"] == "ok"


def test_the_score_does_not_rise(tmp_path):
    """systemd's own number, 10 is the worst; 9.6 was a unit without any of it."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "netpawld.service"
    unit.write_text(UNIT.read_text().replace("@PREFIX@", "/usr/local"))
    p = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True)
    assert float(re.search(r"exposure level for \S+: ([\d.]+)", p.stdout)[1]) <= 6.7, p.stdout


def test_the_reload_waits_and_fails_with_the_policy(make_daemon):
    """ExecReload of the unit."""
    words = settings(UNIT)["ExecReload"]
    assert words == ["@PREFIX@/bin/netpawl", "policy", "reload"]
    d = make_daemon().start()
    assert d.cli(*words[1:]).returncode == 0
    d.policy.write_text("version: 1\nrules: [{allow: }]\n")
    p = d.cli(*words[1:])
    assert p.returncode == 1 and "bad_policy" in p.stderr
    assert d.running()


@pytest.mark.parametrize("wrong", ["pins", "socket"])
def test_a_failed_start_leaves_no_cgroup(make_daemon, wrong):
    """Neither one that fails before the gate is there, nor one that fails when all of it is."""
    d = make_daemon()
    pins = d.pin_dir
    if wrong == "pins":
        d.pin_dir = d.dir / "no-bpffs"
    else:
        (d.run_dir / "control.sock").mkdir()
        (d.run_dir / "control.sock/x").mkdir()
    with pytest.raises(NotReady):
        d.start()
    assert not d.slice.exists() and not d.inspector_cgroup.exists()
    assert not list(d.pin_mount.glob("netpawl/v*"))
    d.pin_dir = pins
    if wrong == "socket":
        (d.run_dir / "control.sock/x").rmdir()
        (d.run_dir / "control.sock").rmdir()
    # the control: it starts, and a start that fails later takes nothing of that away
    d.start()
    assert d.slice.exists()
    d.stop()
    (d.run_dir / "control.sock").unlink(missing_ok=True)
    (d.run_dir / "control.sock").mkdir()
    (d.run_dir / "control.sock/x").mkdir()
    with pytest.raises(NotReady):
        d.start()
    assert d.slice.exists() and list(d.pin_mount.glob("netpawl/v*"))
    (d.run_dir / "control.sock/x").rmdir()
    (d.run_dir / "control.sock").rmdir()
    d.start()
