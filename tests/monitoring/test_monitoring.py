# SPDX-License-Identifier: MIT
"""What docs/monitoring/ has for other systems, in the hands of these systems: Debian's prometheus."""
import json
import pathlib
import re
import subprocess

from lib.box import Box, new_session

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
