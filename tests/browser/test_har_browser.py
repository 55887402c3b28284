# SPDX-License-Identifier: MIT
"""netpawl har in the hands of a browser: Playwright's reader of archives serves a page's requests from it."""
import json
import subprocess

import pytest

from lib import base


@pytest.fixture(scope="module")
def archive(rig):
    session = rig.fresh()
    rig.traffic(session, rounds=1)
    path = rig.world.dir / "traffic.har"

    def written():
        with open(path, "w") as f:
            subprocess.run([str(base.NETPAWL), "har", "--session", session, "--socket", str(rig.daemon.socket)], stdout=f, check=True, timeout=60)
        urls = [e["request"]["url"] for e in json.loads(path.read_text())["log"]["entries"]]
        return all(any(name in url for url in urls) for name in ("open.origin.test", "get-only.origin.test"))

    assert base.eventually(written, 20, 0.5)
    return path


def test_its_entries_are_served_to_a_page(chromium, archive):
    """What a rule captured is shown, what was refused is a 403, and what the archive has not is not there."""
    entries = json.loads(archive.read_text())["log"]["entries"]
    captured = next(e for e in entries if e["request"]["url"].startswith("https://open.origin.test/"))
    refused = next(e for e in entries if e["request"]["url"].startswith("https://get-only.origin.test/"))
    got = chromium("""
        const context = await browser.newContext();
        try {
          await context.routeFromHAR(file, { notFound: "abort" });
          const page = await context.newPage(), out = {};
          for (const [name, url] of Object.entries(urls)) {
            const answer = await page.goto(url).catch((e) => null);
            out[name] = answer && { status: answer.status(), text: await answer.text() };
          }
          const fresh = await context.newPage();
          await fresh.setContent(`<form id="f" method="post" action="${posted}"></form>`);
          const [answer] = await Promise.all([fresh.waitForResponse(posted), fresh.evaluate(() => document.getElementById("f").submit())]);
          out.refused = { status: answer.status(), text: answer.statusText() };
          return out;
        } finally { await context.close(); }
    """, file=str(archive), posted=refused["request"]["url"],
        urls={"captured": captured["request"]["url"], "other": "https://open.origin.test/never-asked"})
    assert got["captured"]["status"] == 200 and got["captured"]["text"] == captured["response"]["content"]["text"] != ""
    assert got["refused"]["status"] == 403 and refused["_netpawl"]["verdict"] == "refused" and refused["request"]["method"] == "POST"
    assert got["other"] is None


def test_developer_tools_open_it(chromium, archive):
    """The importer behind "Import HAR file" of Chromium's network panel makes a request of each entry."""
    har = json.loads(archive.read_text())
    got = chromium("""
        const page = await (await browser.newContext()).newPage();
        try {
          await page.goto("devtools://devtools/bundled/inspector.html");
          return await page.evaluate(async (har) => {
            const { HARFormat, Importer } = await import("./models/har/har.js");
            const requests = Importer.Importer.requestsFromHARLog(new HARFormat.HARRoot(har).log);
            return requests.map((r) => ({ url: r.url(), method: r.requestMethod, status: r.statusCode, ended: r.endTime >= r.startTime,
                                          fields: r.responseHeaders.length, blocked: r.timing?.requestTime >= 0 }));
          }, har);
        } finally { await page.context().close(); }
    """, har=har)
    entries = har["log"]["entries"]
    assert len(got) == len(entries) > 2
    for request, entry in zip(got, entries):
        assert (request["url"], request["method"], request["status"]) == (
            entry["request"]["url"], entry["request"]["method"], entry["response"]["status"]), (request, entry)
        assert request["ended"] and request["fields"] == len(entry["response"]["headers"]), (request, entry)
    assert 403 in [r["status"] for r in got]


def test_developer_tools_refuse_what_is_no_archive(chromium):
    """The control: the importer does look at what it is given."""
    got = chromium("""
        const page = await (await browser.newContext()).newPage();
        try {
          await page.goto("devtools://devtools/bundled/inspector.html");
          return await page.evaluate(async () => {
            const { HARFormat } = await import("./models/har/har.js");
            try { new HARFormat.HARRoot({ log: { version: "1.2", creator: {}, entries: [{}] } }); return null; } catch (e) { return String(e); }
          });
        } finally { await page.context().close(); }
    """)
    assert got and got.startswith("Error"), got
