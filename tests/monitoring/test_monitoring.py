# SPDX-License-Identifier: MIT
"""What docs/monitoring/ has for other systems, in the hands of these systems: Debian's prometheus."""
import json
import pathlib
import re
import subprocess

import pytest

from lib import base
from lib.box import Box, new_session
from lib.inspected import inspected

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/monitoring"


def promtool(*words, **kw):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=60, **kw)


def metrics(daemon):
    return daemon.api.raw("GET", "/v1/metrics")[2].decode()


def test_promtool_finds_no_fault_with_the_metrics(daemon):
    session = new_session()
    with Box(daemon, session=session):
        daemon.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
        text = metrics(daemon)
    got = promtool("check", "metrics", input=text)
    assert got.returncode == 0, got.stdout + got.stderr
    bad = promtool("check", "metrics", input=text + "netpawl_requests_total{verdict=} 1\n")
    assert bad.returncode != 0, "it would say so"


def test_promtool_finds_no_fault_with_the_rules():
    got = promtool("check", "rules", DOCS / "alerts.yaml")
    assert got.returncode == 0 and "SUCCESS" in got.stdout, got.stdout + got.stderr


def test_alerts_and_dashboard_speak_of_metrics_that_exist(daemon):
    families = set(re.findall(r"^# TYPE (\w+) ", metrics(daemon), re.M))
    families |= {f + suffix for f in families for suffix in ("_bucket", "_sum", "_count")}
    for file in ("alerts.yaml", "dashboard.json"):
        named = set(re.findall(r"\bnetpawl_[a-z_]+", (DOCS / file).read_text()))
        assert len(named) > 5 and named <= families, named - families


def test_the_dashboard_has_what_grafana_wants():
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    ids = [p["id"] for p in dashboard["panels"]]
    assert len(set(ids)) == len(ids) > 10
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["targets"] and panel["datasource"]["uid"] == "${datasource}"
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


@pytest.fixture(scope="module")
def validator():
    """npm's har-validator, with the schema of HAR 1.2."""
    folder = base.tempdir("npm")
    base.sh("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, "har-validator@5.1.5")
    yield lambda text: subprocess.run(["node", "-e", VALIDATE], input=text, capture_output=True, text=True, timeout=60, cwd=folder)
    base.drop_tempdir(folder)


VALIDATE = """
require("har-validator/lib/promise").har(JSON.parse(require("fs").readFileSync(0)))
  .catch(e => { console.log(JSON.stringify(e.errors || String(e))); process.exit(1); });
"""


def test_archives_pass_the_schema(validator):
    with inspected() as net:
        assert net.curl("https://captured.origin.test/a?b=c", "-d", "who=me").returncode == 0
        net.curl("https://get-only.origin.test/<x>", "-d", "x")
        net.events(lambda e: e["kind"] == "refuse")
        text = subprocess.run([str(base.NETPAWL), "har", "--socket", str(net.daemon.socket)], capture_output=True, text=True, timeout=60).stdout
    assert len(json.loads(text)["log"]["entries"]) >= 2
    got = validator(text)
    assert got.returncode == 0, got.stdout + got.stderr
    bad = validator(text.replace('"startedDateTime"', '"started"'))
    assert bad.returncode == 1, "it would say so"
