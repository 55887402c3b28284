# SPDX-License-Identifier: MIT
"""What the API says of the node and of what sandboxes use, and the archive of what the page's filter shows."""
import json
import pathlib
import signal
import subprocess

import pytest

from lib import base
from lib.console import Browser, Console

PAGE = pathlib.Path(__file__).resolve().parents[2] / "user/console/page"


@pytest.fixture(scope="module")
def browser(daemon):
    with Console(daemon) as c:
        b = Browser(c)
        b.login()
        yield b


def test_what_a_sandbox_uses(daemon, api):
    """What its processes have and had, looked up when somebody asks for it, and at no other time."""
    code = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); while :; do :; done"
    p = base.popen([*daemon.world.enter(), str(base.NETPAWL), "run", "--socket", str(daemon.socket), "--session", "usage/one", "--", "sh", "-c", code], env=base.env(),
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        box = base.eventually(lambda: next(iter(api.sandboxes("usage/one")), None), 60)["sandbox"]

        def used():
            now = api.ok("GET", f"/v1/sandboxes/{box}")["usage"]
            return now if now["cpu_us"] > 300_000 and now["memory"] > 38 << 20 and now["processes"] >= 2 else None
        assert base.eventually(used, 120), api.ok("GET", f"/v1/sandboxes/{box}")["usage"]
        first = used()
        assert base.eventually(lambda: api.ok("GET", f"/v1/sandboxes/{box}")["usage"]["cpu_us"] > first["cpu_us"], 60), "it goes on"
        assert api.show("usage/one")["sandboxes"][0]["usage"]["processes"] >= 2 and all("usage" not in s for s in api.ok("GET", "/v1/sandboxes")["sandboxes"])
        shown = daemon.cli("show", "usage/one")
        assert "CPU" in shown.stdout and "MEMORY" in shown.stdout, shown
    finally:
        base.reap(p, signal.SIGTERM)


def test_the_node(daemon, api, pool):
    pool("PROXIED")
    node = api.ok("GET", "/v1/node")
    assert {d["name"] for d in node["disks"]} >= {"state", "run"} and all(0 <= d["free"] <= d["bytes"] for d in node["disks"])
    assert node["processes"][0]["program"] == "netpawld" and node["processes"][0]["pid"] == api.health()["pid"] and node["processes"][0]["memory"] > 1 << 20
    assert node["record"]["journal_bytes"] > 0 and node["record"]["history_bytes"] > 0
    maps = {m["map"]: m for m in node["maps"]}
    assert maps["np_sandboxes"]["entries"] >= 1 and not maps["np_sandboxes"]["more"], maps
    assert any(p["program"].startswith("np_") for p in node["programs"])


def test_an_archive_of_what_the_filter_shows(browser, api, tmp_path):
    """The page's module in Node, by pages of the console's own: more events than one page has."""
    for i in range(230):
        api.create(f"har/{i}", "PUBLIC")
    first = browser.call("GET", "/console/har?after=0")[1].splitlines()
    assert len(first) == 200 and all("event" in json.loads(line) for line in first)
    last = api.events()[-1]["seq"]
    # requests as a daemon with inspectors reports them; the rest is what this one has written
    request = {"seq": last + 1, "time": "2026-01-01T00:00:00Z", "kind": "refuse", "reason": "rule_denies", "session": "har/1", "mode": "PROXIED", "level": "PUBLIC",
               "method": "GET", "url": "https://a.example/x", "status": 403, "rule": "policy.yaml:3"}
    code = """
        import { harOf } from "%s/har.js"; import { parseFilter } from "%s/filter.js";
        const pages = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"));
        const get = async (path) => pages[path] ?? "";
        const { blob, entries } = await harOf({ first: 1, last: %d, match: parseFilter("verdict:refused"), version: "1", get });
        console.log(JSON.stringify({ entries, har: JSON.parse(await blob.text()) }));
    """ % (PAGE, PAGE, last + 2)
    pages, after = {}, 0
    while True:
        text = browser.call("GET", f"/console/har?after={after}")[1]
        text = text if isinstance(text, str) else json.dumps(text) + "\n"
        seqs = [json.loads(line)["event"].get("seq", 0) for line in text.splitlines()]
        if not text.strip():
            break
        pages[f"/console/har?after={after}"] = text
        after = max(seqs)
    pages[f"/console/har?after={after}"] = "".join(json.dumps({"event": {**request, "seq": after + i, "kind": kind}, "entry": {"request": {"url": url}}}) + "\n"
                                                   for i, (kind, url) in enumerate([("refuse", "https://a.example/x"), ("allow", "https://b.example/")], 1))
    p = subprocess.run(["node", "--input-type=module", "-e", code], input=json.dumps(pages), capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    got = json.loads(p.stdout)
    assert got["entries"] == 1 and [e["request"]["url"] for e in got["har"]["log"]["entries"]] == ["https://a.example/x"] and len(pages) >= 3


@pytest.mark.parametrize("query", ["", "?after=", "?after=-1", "?after=1&session=x", "?after=9999999999999999999999", "?after=1%20HTTP", "?limit=1"])
def test_an_archive_takes_a_number(browser, query):
    assert browser.call("GET", "/console/har" + query)[0] == 400


def test_not_for_who_is_not_logged_in(browser):
    stranger = Browser(browser.console)
    for path in ("/console/har?after=0", "/console/schema", "/v1/node", "/v1/credentials"):
        assert stranger.call("GET", path)[0] == 401
