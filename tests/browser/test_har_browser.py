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
