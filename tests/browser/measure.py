#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How the console's page does under much: by itself, for it takes minutes (make test-browser-soak).

    NETPAWL_BUILD=build tests/browser/measure.py paint [EVENTS]    first paint with so long a history (100,000), and scrolling through as many rows
    NETPAWL_BUILD=build tests/browser/measure.py soak [SECONDS]    50 events a second (for 600), and what the page holds in memory meanwhile

Prints numbers, writes them to BUILD/bench/console-*.json; soak fails when the page has grown.
"""
import contextlib
import json
import os
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from rig import Rig  # noqa: E402
from lib import base  # noqa: E402
from pages import Chromium  # noqa: E402

CLIENT = """
import http.client, time, sys
c, n, begin = None, 0, time.monotonic()
while time.monotonic() - begin < float(sys.argv[1]):
    try:
        c = c or http.client.HTTPConnection("files.origin.test", timeout=20)
        c.request("GET", f"/list?n={n % 60}")
        c.getresponse().read()
    except OSError:
        c = None
    n += 1
    time.sleep(max(0, begin + n / 50 - time.monotonic()))
print(n)
"""
HEAP = """const s = await pages.a.context().newCDPSession(pages.a); await s.send('HeapProfiler.collectGarbage'); const h = await s.send('Runtime.getHeapUsage'); await s.detach();
const m = await pages.a.evaluate(() => document.querySelectorAll('*').length); return { heap: h.usedSize, elements: m };"""


def history(rig, count):
    """So many events, by a call that changes nothing and is on record."""
    rig.api.create("many/events", "INTERNAL")
    body = b'{"level":"INTERNAL","reason":"one of many"}'
    request = b"POST /v1/sessions/many/events/datasets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(rig.daemon.socket))
        for _ in range(0, count, 50):
            s.sendall(request * 50)
            got, seen = b"", 0
            while seen < 50:
                got += s.recv(1 << 16)
                seen = got.count(b"HTTP/1.1 200")
                assert b"HTTP/1.1 4" not in got and b"HTTP/1.1 5" not in got, got
    return rig.api.events()[-1]["seq"]


def paint(rig, chromium, count):
    last = history(rig, count)
    console = rig.console()
    out = []
    for _ in range(5):
        out.append(chromium("""await open('a', link); await pages.a.waitForSelector('#rows .row:not([hidden])');
            return await pages.a.evaluate(() => ({ first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime, rows: performance.now() }))""", link=console.another()))
        chromium("await pages.a.context().close()")
    chromium("await open('a', link); await pages.a.waitForSelector('#state[data-state=live]')", link=console.another())
    scrolled = chromium("""return await pages.a.evaluate(async () => {
        const { Rows } = await import("/rows.js"), { Table } = await import("/table.js");
        const rows = new Rows(), events = Array.from({ length: 100000 }, (_, i) => ({ seq: i + 1, time: new Date(1.7e12 + i).toISOString(), kind: "allow", reason: "rule_allows", method: "GET", url: "https://h" + i + ".test/" }));
        rows.add(events);
        const box = document.createElement("div");
        box.className = "rows"; box.style.height = "600px"; box.style.flex = "none";
        document.querySelector(".left").append(box);
        const table = new Table(box, { height: 30, label: "many", pick() {}, draw(element, row) { element.textContent = row.what; } });
        table.set(rows.all);
        const times = [], frame = () => new Promise((r) => requestAnimationFrame(r));
        let before = await frame();
        for (let i = 0; i < 240; i++) { box.scrollTop += 700; const now = await frame(); times.push(now - before); before = now; }
        box.remove();
        times.sort((a, b) => a - b);
        return { median_ms: times[120], p95_ms: times[228], worst_ms: times[239] };
    })""")
    return {"events": last, "first_paint_ms": sorted(round(o["first"]) for o in out), "first_rows_ms": sorted(round(o["rows"]) for o in out), "scroll": scrolled, "load": os.getloadavg()[0]}


def soak(rig, chromium, seconds):
    session = rig.fresh()
    console = rig.console()
    chromium("await open('a', link); await pages.a.waitForSelector('#state[data-state=live]')", link=console.another())
    p = rig.spawn("python3", "-I", "-c", CLIENT, str(seconds), session=session, stdout=-1, text=True)
    first, looks, begin = rig.api.events()[-1]["seq"], [], time.monotonic()
    while p.poll() is None and time.monotonic() - begin < seconds + 120:
        time.sleep(min(60, max(5, seconds / 10)))
        looks.append({"s": round(time.monotonic() - begin), **chromium(HEAP), "events": rig.api.events()[-1]["seq"] - first})
        print(looks[-1], flush=True)
    base.reap(p)
    # Of the first looks one is left out: code is compiled, tables get their size.
    settled, last = looks[1 if len(looks) > 2 else 0], looks[-1]
    shown = chromium("return Number((await pages.a.textContent('#count-requests')).replace(/[^0-9]/g, ''))")
    out = {"looks": looks, "events_per_s": round(last["events"] / last["s"], 1), "grown_bytes": last["heap"] - settled["heap"], "requests_shown": shown, "load": os.getloadavg()[0]}
    assert last["heap"] < settled["heap"] * 1.25 + (4 << 20), ("the page has grown", out)
    assert last["elements"] <= settled["elements"] + 200, ("elements were left behind", out)
    assert chromium("return await pages.a.locator('.row.type-gap').count()") == 0, "events were missed"
    return out


def main():
    what, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else {"paint": 100000, "soak": 600}[sys.argv[1]]
    with contextlib.ExitStack() as stack:
        rig = Rig(stack)
        chromium = stack.enter_context(contextlib.closing(Chromium(rig.world)))
        out = {"paint": paint, "soak": soak}[what](rig, chromium, number)
    (base.BUILD / "bench").mkdir(exist_ok=True)
    (base.BUILD / "bench" / f"console-{what}.json").write_text(json.dumps(out, indent=1))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
