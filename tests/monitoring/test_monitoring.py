# SPDX-License-Identifier: MIT
"""What docs/monitoring/ has for other systems, in the hands of these systems: Debian's prometheus."""
import contextlib
import json
import pathlib
import re
import subprocess
import urllib.parse

import pytest

from lib import base
from lib.box import Box, new_session
from lib.fixtures import daemon_with
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
def prometheus(world):
    """Debian's, beside a daemon that serves metrics on a port, with our rules: what its API answers to a path."""
    folder = base.tempdir("prometheus")
    (folder / "prometheus.yml").write_text(f"""global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{DOCS}/alerts.yaml"]
scrape_configs:
  - job_name: netpawl
    static_configs: [{{targets: ["127.0.0.1:9464"]}}]
""")
    with contextlib.ExitStack() as stack:
        stack.callback(base.drop_tempdir, folder)
        d = stack.enter_context(daemon_with(world, 'metrics: {listen: "127.0.0.1:9464"}\n'))
        p = base.popen([*world.enter(), "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                        "--web.listen-address=127.0.0.1:9090"], stdout=subprocess.DEVNULL, stderr=open(folder / "log", "w"))
        stack.callback(base.reap, p)

        def ask(path):
            got = subprocess.run([*world.enter(), "curl", "-sS", "-m", "20", f"http://127.0.0.1:9090/api/v1/{path}"], capture_output=True, text=True,
                                 env=base.env(no_proxy="*"), timeout=60)
            return json.loads(got.stdout) if got.stdout.startswith("{") else {"status": got.stderr + got.stdout}

        ask.daemon = d
        assert base.eventually(lambda: ask("targets")["status"] == "success", 20), (folder / "log").read_text()[-2000:]
        yield ask


def test_prometheus_reads_the_port(prometheus):
    """It asks for OpenMetrics, and its reader of that takes no liberties."""
    session = new_session()
    with Box(prometheus.daemon, session=session) as box:
        prometheus.daemon.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
        box.try_("dial", family=4, addr="198.51.100.10", port=80)
        scraped = lambda: [t for t in prometheus("targets")["data"]["activeTargets"] if t["health"] == "up" and not t["lastError"]]
        assert base.eventually(scraped, 20), prometheus("targets")
        value = lambda q: [r["value"][1] for r in prometheus("query?query=" + urllib.parse.quote(q))["data"]["result"]]
        assert base.eventually(lambda: value('netpawl_raises_total{level="SECRET"}') == ["1"], 20)
        assert value('sum(netpawl_refusals_total{layer="gate"})') >= ["1"] and value("netpawl_raise_apply_seconds_count") == ["1"]
    meta = prometheus("targets/metadata?metric=netpawl_raise_apply_seconds")["data"]
    assert meta and meta[0]["type"] == "histogram" and meta[0]["unit"] == "seconds"


def test_prometheus_takes_the_rules_and_the_dashboards_questions(prometheus):
    rules = lambda: [r for g in prometheus("rules")["data"]["groups"] for r in g["rules"]]
    written = re.findall(r"^\s*- alert: (\w+)", (DOCS / "alerts.yaml").read_text(), re.M)
    assert base.eventually(lambda: rules() and all(r["health"] == "ok" for r in rules()), 20), rules()
    assert sorted(r["name"] for r in rules()) == sorted(written) and len(written) > 5
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    asked = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    for expr in asked:
        expr = expr.replace("$__rate_interval", "1m").replace("$__interval", "1m")
        got = prometheus("query?query=" + urllib.parse.quote(expr))
        assert got["status"] == "success", (expr, got)
    assert prometheus("query?query=" + urllib.parse.quote("rate(netpawl_requests_total[1m)"))["status"] == "error", "it would say so"


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
