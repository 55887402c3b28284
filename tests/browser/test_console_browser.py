# SPDX-License-Identifier: MIT
"""The console's page in a real browser (make test-browser). Pictures of every panel are left in build/browser/."""
import json
import pathlib

import pytest

from lib import base
from lib.proxies import credentials as secret_file
from pages import eventually, picture, settle

ROWS = "return await pages.a.locator('#rows .row:not([hidden])').allInnerTexts();"


def test_a_link_that_was_used_opens_nothing(chromium, console):
    link = console.another()
    chromium("await open('one', link); await pages.one.waitForSelector('#rows')", link=link)
    chromium("await open('two', link); await pages.two.waitForSelector('#logged-out')", link=link)
    assert chromium("return pages.one.url()") == console.origin + "/", "the token is not in the address any more"
    chromium("await pages.one.reload(); await pages.one.waitForSelector('#rows')")
    chromium("await pages.one.context().close(); await pages.two.context().close()")


def test_live_traffic(rig, page):
    session = rig.fresh()
    page("await pages.a.fill('#filter', f)", f=f"session:{session}")
    rig.traffic(session, 2)
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).some((t) => t.includes('open.origin.test/repos') && t.includes('allowed'))")
    rows = "\n".join(page(ROWS))
    for word in ("query", "bad.origin.test", "rule_denies", "198.51.100.10:7", "×2", "LLM", "169.254.169.254"):
        assert word in rows, (word, rows)
    picture(page, "traffic")
    # the language of filters
    page("await pages.a.fill('#filter', f)", f=f"session:{session} verdict:allowed -llm")
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).every((t) => t.includes('allowed') && !t.includes('LLM'))")
    page("await pages.a.fill('#filter', 'hots:x')")
    assert 'there is no key "hots"' in page("return await pages.a.textContent('.bar .problem')")
    # why, the rule's lines, times, curl, a rule
    page("await pages.a.fill('#filter', f)", f=f"session:{session} host:open.origin.test kind:request")
    eventually(page, "const rows = await pages.a.locator('#rows .row:not([hidden])').allInnerTexts(); return rows.length && rows.every((t) => t.includes('open.origin.test'))")
    page("await pages.a.locator('#rows .row:not([hidden])').first().click(); await pages.a.waitForSelector('.detail .source')")
    text = page("return await pages.a.innerText('.detail')")
    for word in ("rule_allows", "open.origin.test, files.origin.test", "capture: 2000", "user-agent: curl", "wait", "receive"):
        assert word in text, (word, text)
    page("await pages.a.context().grantPermissions(['clipboard-read', 'clipboard-write']); await pages.a.click('#as-curl')")
    eventually(page, "return await pages.a.evaluate(() => navigator.clipboard.readText())", "curl -g -H 'user-agent: curl/" + text.split("user-agent: curl/")[1].split()[0] + "' -H 'accept: */*' 'https://open.origin.test/repos/a/b?page=2'")
    page("await pages.a.click('#make-rule')")
    assert page("return await pages.a.textContent('#rule-yaml')") == '  - allow: open.origin.test\n    methods: [GET]\n    paths: ["/repos/a/b"]\n'
    assert "GET https://open.origin.test/repos/a/b?page=2 -> allow" in page("return await pages.a.textContent('#rule-case')")
    picture(page, "traffic-detail")
    settle(rig, session)


def test_pause_and_go_on(rig, page):
    session = rig.fresh()
    page("await pages.a.fill('#filter', f); await pages.a.click('#pause')", f=f"session:{session}")
    rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "while paused"})
    eventually(page, "return /\\d+ new/.test(await pages.a.textContent('#pause'))")
    assert not any("while paused" in row for row in page(ROWS))
    page("await pages.a.click('#pause')")
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).some((t) => t.includes('while paused') && t.includes('raised to'))")


def test_what_sandboxes_use_and_run(rig, page):
    session = rig.fresh()
    p = rig.spawn("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 60", session=session)
    assert base.eventually(lambda: rig.api.sandboxes(session), 60)
    page("await pages.a.evaluate((s) => { location.hash = '#sessions/' + s; }, s); await pages.a.waitForSelector('#sandboxes table')", s=session)
    eventually(page, """const heads = await pages.a.locator('#sandboxes table').locator('th').allInnerTexts(), cells = await pages.a.locator('#sandboxes table').locator('tbody tr').first().locator('td').allInnerTexts();
        const of = (name) => cells[heads.indexOf(name)]; return /[1-9]/.test(of('CPU')) && /[0-9] [kM]i?B/.test(of('memory')) && Number(of('processes')) >= 1""")
    picture(page, "sessions-usage")
    base.reap(p)


def test_a_hundred_thousand_rows(page):
    """Made in the page; only what can be seen are elements, and scrolling goes anywhere at once."""
    got = page("""return await pages.a.evaluate(async () => {
        const { app } = await import("/app.js").catch(() => ({}));
        const { Rows } = await import("/rows.js");
        const { Table } = await import("/table.js");
        const rows = new Rows();
        const events = Array.from({ length: 100000 }, (_, i) => ({ seq: i + 1, time: new Date(1.7e12 + i).toISOString(), kind: "allow", reason: "rule_allows", method: "GET", url: "https://h" + i + ".test/" }));
        const begin = performance.now();
        rows.add(events);
        const box = document.createElement("div");
        box.className = "rows"; box.style.height = "600px"; box.style.flex = "none";
        document.querySelector(".left").append(box);
        const table = new Table(box, { height: 30, label: "many", pick() {}, draw(element, row) { element.textContent = row.what; } });
        table.set(rows.all);
        await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
        const made = performance.now() - begin;
        const seen = [];
        for (const at of [0, 1e6, 2e6, 100000 * 30]) {
            box.scrollTop = at;
            await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
            const top = box.getBoundingClientRect().top;
            seen.push([...box.querySelectorAll(".row")].filter((e) => !e.hidden && e.getBoundingClientRect().top >= top).sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0].textContent);
        }
        const count = box.querySelectorAll(".row").length;
        box.remove();
        return { count, seen, made, length: rows.all.length };
    })""")
    print("100,000 rows:", got["made"], "ms")
    assert got["length"] == 100000 and got["count"] < 60
    assert got["seen"][0] == "https://h99999.test/" and got["seen"][3].startswith("https://h1"), got["seen"]


def test_sessions_and_the_time_line(rig, page):
    session = rig.fresh()
    rig.traffic(session, 1)
    settle(rig, session)
    rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "customers.csv", "reason": "ticket 4711"})
    rig.traffic(session, 1)
    settle(rig, session)
    page("await pages.a.evaluate((s) => { location.hash = '#sessions/' + s; }, s); await pages.a.waitForSelector('.timeline')", s=session)
    text = page("return await pages.a.innerText('#session-page')")
    for word in ("customers.csv", "ticket 4711", "uid 0", "CONFIDENTIAL", "Notice from netpawl"):
        assert word in text, word
    for lane in ("allowed", "refused", "dns", "socket"):
        assert page("return await pages.a.locator('.mark-' + lane).count()", lane=lane) > 0, lane
    assert page("return await pages.a.locator('.rise-mark').count()") == 1
    picture(page, "sessions")
    # a raise says that it cannot be undone, and can be left
    page("await pages.a.click('#raise'); await pages.a.waitForSelector('dialog.confirm')")
    assert "cannot be undone" in page("return await pages.a.innerText('dialog.confirm')")
    picture(page, "raise")
    page("await pages.a.click('dialog.confirm >> text=Cancel')")
    assert rig.api.show(session)["level"] == "CONFIDENTIAL"
    page("await pages.a.click('#raise'); await pages.a.selectOption('#raise-level', 'SECRET'); await pages.a.fill('#raise-dataset', 'keys.pem'); await pages.a.click('#confirm-yes')")
    assert base.eventually(lambda: rig.api.show(session)["level"] == "SECRET")
    eventually(page, "return await pages.a.locator('.rise-mark').count()", 2)
    page("await pages.a.click('#end-session'); await pages.a.click('#confirm-yes')")
    assert base.eventually(lambda: rig.api.show(session)["ended"])


ASK = "return await pages.a.locator('#ask').count()"


def test_a_question_comes_up_and_is_answered(rig, page):
    session = rig.fresh()
    p = rig.curl(session, "https://api.origin.test/v1/data", "-d", "hello world")
    page("await pages.a.waitForSelector('#ask')")
    text = page("return await pages.a.innerText('#ask')")
    for word in (session, "wants to POST", "https://api.origin.test/v1/data", "it may send data", "11 B", "(curl)", "user-agent: curl", "INTERNAL", "Deny", "Once", "Host", "Domain", "Always"):
        assert word in text, (word, text)
    assert page("return await pages.a.locator('#count-timeout').getAttribute('aria-valuenow')") in ("99", "100")
    assert "the client waits" in text and "you have" in text
    # the client's bar runs out before the person's does
    left = int(page("return await pages.a.locator('#count-hold').getAttribute('aria-valuenow')"))
    eventually(page, "return Number(await pages.a.locator('#count-hold').getAttribute('aria-valuenow')) < left", left=left)
    assert page("return await pages.a.evaluate(() => document.documentElement.dataset.sounds)") == "1"
    assert page("return await pages.a.textContent('#bell-count')") == "1"
    picture(page, "question")
    page("await pages.a.fill('#ask-reason', 'for the test'); await pages.a.click('#ask [data-answer=once]')")
    assert p.wait(60) == 0
    eventually(page, ASK, 0)
    q = rig.api.ok("GET", f"/v1/questions?session={session}")["questions"][0]
    assert (q["state"], q["answer"], q["reason"]) == ("allowed", "once", "for the test")
    page("await pages.a.evaluate(() => { location.hash = '#questions'; }); await pages.a.waitForSelector('.qrow')")
    picture(page, "questions")


def test_keys_answer_but_not_in_the_first_moment(rig, page):
    session = rig.fresh()
    p = rig.curl(session, "https://keys.origin.test/")
    page("await pages.a.waitForSelector('#ask'); await pages.a.keyboard.press('d')")
    assert rig.questions(session), "what was typed as it came up answered nothing"
    page("await pages.a.waitForSelector('#ask [data-answer=deny]:not([disabled])'); await pages.a.keyboard.press('n')")
    eventually(page, ASK, 0)
    assert rig.questions(session), "later is no answer"
    page("await pages.a.click('#bell'); await pages.a.waitForSelector('#ask [data-answer=deny]:not([disabled])'); await pages.a.keyboard.press('d')")
    p.wait(60)
    assert base.eventually(lambda: not rig.questions(session))
    assert rig.api.ok("GET", f"/v1/questions?session={session}")["questions"][0]["state"] == "denied"


def test_the_sound_can_be_switched_off_and_stays_off(rig, page):
    page("await pages.a.click('#menu'); await pages.a.uncheck('#pref-sound'); await pages.a.click('text=Done'); await pages.a.reload(); await pages.a.waitForSelector('#state[data-state=live]')")
    session = rig.fresh()
    rig.curl(session, "https://quiet.origin.test/")
    page("await pages.a.waitForSelector('#ask')")
    assert page("return await pages.a.evaluate(() => document.documentElement.dataset.sounds ?? '0')") == "0"
    settle(rig, session)
    eventually(page, ASK, 0)


def test_when_the_client_has_left_the_question_stays(rig, page):
    """The hold is over, the question is not: its bar says so, and the answer is for whoever tries again."""
    session = rig.fresh()
    p = rig.curl(session, "https://patience.origin.test/")
    page("await pages.a.waitForSelector('#ask')")
    p.wait(60)
    eventually(page, "return (await pages.a.locator('#count-hold').count()) === 0 || Number(await pages.a.locator('#count-hold').getAttribute('aria-valuenow')) === 0", timeout=60)
    assert int(page("return await pages.a.locator('#count-timeout').getAttribute('aria-valuenow')")) > 90
    picture(page, "question-left")
    page("await pages.a.waitForSelector('#ask [data-answer=host]:not([disabled])'); await pages.a.click('#ask [data-answer=host]')")
    eventually(page, ASK, 0)
    assert rig.curl(session, "https://patience.origin.test/").wait(60) == 0


def test_the_notification_is_a_choice_that_is_kept(page):
    page("await pages.a.context().grantPermissions(['notifications']); await pages.a.click('#menu'); await pages.a.check('#pref-notify'); await pages.a.click('text=Done'); await pages.a.reload(); await pages.a.waitForSelector('#state[data-state=live]'); await pages.a.click('#menu')")
    assert page("return await pages.a.isChecked('#pref-notify')")
    page("await pages.a.uncheck('#pref-notify'); await pages.a.click('text=Done'); await pages.a.reload(); await pages.a.waitForSelector('#state[data-state=live]'); await pages.a.click('#menu')")
    assert not page("return await pages.a.isChecked('#pref-notify')")
    page("await pages.a.click('text=Done')")


NOTED = """await pages.a.addInitScript(() => {
    window.notes = [];
    window.Notification = class { static permission = 'granted'; static async requestPermission() { return 'granted'; } constructor(title, options) { window.notes.push([title, options.body]); } close() {} };
    Object.defineProperty(document, 'hidden', { get: () => window.away === true });
}); await pages.a.reload(); await pages.a.waitForSelector('#state[data-state=live]')"""


@pytest.mark.parametrize("wanted", [True, False])
def test_a_notification_when_nobody_looks_at_the_page(rig, page, wanted):
    """The browser's own is replaced, for a headless one shows none: what it is given, when, and that it is given nothing where it is off."""
    page(NOTED)
    page(f"await pages.a.click('#menu'); await pages.a.{'check' if wanted else 'uncheck'}('#pref-notify'); await pages.a.click('text=Done'); await pages.a.reload(); await pages.a.waitForSelector('#state[data-state=live]')")
    session = rig.fresh()
    page("await pages.a.evaluate(() => { window.away = true; })")
    p = rig.curl(session, "https://noted.origin.test/secret-path", "-d", "x")
    page("await pages.a.waitForSelector('#ask')")
    assert page("return await pages.a.evaluate(() => window.notes)") == ([["netpawl: a question waits", f"{session}: POST noted.origin.test"]] if wanted else [])
    settle(rig, session)
    p.wait(60)
    eventually(page, ASK, 0)


def test_the_queue_of_several(rig, page):
    """One dialog at a time, the others are counted, and each gets its turn."""
    session = rig.fresh()
    clients = [rig.curl(session, f"https://queue{i}.origin.test/") for i in range(3)]
    eventually(page, "return await pages.a.textContent('#ask-others').catch(() => '')", "2 more waiting")
    hosts = []
    for _ in clients:
        page("await pages.a.waitForSelector('#ask [data-answer=deny]:not([disabled])')")
        hosts.append(page("return await pages.a.textContent('#ask-what')"))
        page("await pages.a.click('#ask [data-answer=deny]')")
        eventually(page, "return (await pages.a.textContent('#ask-what').catch(() => '')) !== before", before=hosts[-1])
    assert len(set(hosts)) == 3 and not rig.questions(session)
    for p in clients:
        p.wait(60)


def test_an_archive_of_what_the_filter_shows(rig, page):
    session = rig.fresh()
    rig.traffic(session, 2)
    settle(rig, session)
    page("await pages.a.fill('#filter', f)", f=f"session:{session} verdict:refused kind:request")
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').count()) > 0")
    file = page("const [d] = await Promise.all([pages.a.waitForEvent('download'), pages.a.click('#har')]); return [d.suggestedFilename(), await d.path()]")
    har = json.loads(pathlib.Path(file[1]).read_text())["log"]
    assert file[0].endswith(".har") and har["version"] == "1.2" and har["entries"]
    refused = [e for e in rig.api.events(session=session) if e["kind"] == "refuse" and e.get("url") and e.get("method")]
    assert sorted(e["request"]["url"] for e in har["entries"]) == sorted(e["url"] for e in refused), "each of the repeats, and nothing else"
    assert all(e["_netpawl"]["verdict"] in ("refused", "refuse", "deny") or e["_netpawl"]["reason"] for e in har["entries"])


def test_two_browsers_see_one_truth(rig, page, console):
    page("await open('b', link); await pages.b.waitForSelector('#state[data-state=live]')", link=console.another())
    session = rig.fresh()
    p = rig.curl(session, "https://both.origin.test/")
    page("await Promise.all([pages.a.waitForSelector('#ask'), pages.b.waitForSelector('#ask [data-answer=host]:not([disabled])')])")
    page("await pages.b.click('#ask [data-answer=host]')")
    assert p.wait(60) == 0
    eventually(page, ASK, 0)
    eventually(page, "return /answered \"host\" by/.test(await pages.a.textContent('#toast'))")
    page("await pages.b.context().close()")


def test_who_is_late_is_told_so(rig, page):
    session = rig.fresh()
    p = rig.curl(session, "https://late.origin.test/")
    page("await pages.a.waitForSelector('#ask [data-answer=once]:not([disabled])'); await pages.a.route((u) => u.pathname === '/v1/questions', (r) => r.abort())")
    rig.answer(rig.questions(session)[0], "deny", reason="first")
    p.wait(60)
    page("await pages.a.click('#ask [data-answer=once]')")
    eventually(page, "return /Too late: answered \"deny\" by .*: first/.test(await pages.a.textContent('#toast'))")
    page("await pages.a.unrouteAll()")


def test_a_run_that_waits_is_in_the_same_list(rig, page):
    session = rig.fresh()
    run = rig.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": ["sh", "-c", "echo <b>hi</b>"], "launch": {"memory": "64MiB"}})
    page("await pages.a.waitForSelector('#ask')")
    text = page("return await pages.a.innerText('#ask')")
    assert "wants to run" in text and "echo <b>hi</b>" in text and "64MiB" in text
    page("await pages.a.waitForSelector('#ask [data-answer=deny]:not([disabled])'); await pages.a.click('#ask [data-answer=deny]')")
    assert base.eventually(lambda: rig.api.ok("GET", f"/v1/runs/{run['run']}")["state"] == "rejected")
    eventually(page, ASK, 0)


HOSTILE = ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "\u202egnp.exe\u202c", "\x1b[2J\x1b]0;owned\x07", "'\"`${alert(1)}", "javascript:alert(1)", "&lt;b&gt;", "A" * 500]


def test_hostile_strings_in_every_field(rig, page):
    """Nothing executes, nothing breaks the layout; what turns text around is shown as a mark."""
    session = rig.fresh()
    for text in HOSTILE:
        rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "INTERNAL", "dataset": text.replace("\x1b", "").replace("\x07", "")[:120], "reason": text[:400]}) if text.isprintable() else None
    for path in ("%3Cimg%20src=x%20onerror=alert(1)%3E", "<img/src=x/onerror=alert(1)>", "a" * 60000):
        rig.curl(session, "-g", "-A", "<script>alert(2)</script>", f"https://open.origin.test/{path}").wait(60)
    p = rig.curl(session, "-g", "https://ask.origin.test/<img/src=x/onerror=alert(1)>?" + "q" * 3000)
    page("await pages.a.waitForSelector('#ask')")
    picture(page, "hostile-question")
    assert page("return await pages.a.locator('#ask img, #ask script').count()") == 0
    assert page("const b = await pages.a.locator('#ask').boundingBox(); return b.width <= 760 && b.height <= 820")
    settle(rig, session)
    p.wait(60)
    eventually(page, ASK, 0)
    page("await pages.a.fill('#filter', f)", f=f"session:{session}")
    # what an event may hold, said by a daemon that was itself deceived
    events = [{"seq": 10**9 + i, "time": "2026-01-01T00:00:00Z", "kind": "refuse", **{k: text for k in ("reason", "message", "session", "sandbox", "comm", "method", "url", "rule", "text", "dataset", "who", "request_headers", "request_body")}}
              for i, text in enumerate([*HOSTILE, "https://x.test/" + "é\u202e<b>" * 16000])]
    page("""await pages.a.evaluate(async (events) => {
        const { Rows } = await import("/rows.js"); const { detail } = await import("/detail.js");
        const rows = new Rows();
        for (const row of rows.add(events).fresh) {
            const box = document.createElement("aside");
            document.body.append(box);
            detail({}, box, row, { close() {}, filter() {} });
            if (box.querySelector("img, script, b > b, iframe")) throw new Error("markup of a stranger: " + box.innerHTML.slice(0, 500));
            if (/[\\u202e\\u001b]/.test(box.textContent)) throw new Error("it turns text around");
            box.remove();
        }
    }, events)""", events=events)
    for name in (f"sessions/{session}", "questions", "traffic", "node"):
        page("await pages.a.evaluate((n) => { location.hash = '#' + n; }, name); await pages.a.waitForTimeout(700)", name=name)
        assert page("return await pages.a.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight)"), name
        assert page("return await pages.a.locator('main img, main script').count()") == 0
    picture(page, "hostile")


def test_the_page_outlives_the_daemon(rig, page):
    session = rig.fresh()
    page("await pages.a.fill('#filter', f)", f=f"session:{session}")
    rig.daemon.stop()
    page("await pages.a.waitForSelector('#state[data-state=lost]')")
    rig.daemon.start()
    rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "after the restart"})
    page("await pages.a.waitForSelector('#state[data-state=live]')")
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).filter((t) => t.includes('after the restart')).length", 1)
    assert page("return await pages.a.locator('.row.type-gap').count()") == 0
    assert base.eventually(lambda: rig.api.health()["inspectors"] == 2)


def test_what_is_not_to_be_had_any_more_is_a_row_of_its_own(rig, page):
    """The stream breaks, and what came meanwhile is gone from the record: the page says so, at its place, and goes on in order behind it."""
    session = rig.fresh()
    page("await pages.a.fill('#filter', '')")
    last = rig.api.events()[-1]["seq"]
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).length > 0")
    # Answers from now on lack three events, as those of a record lack them that has not kept them.
    page("""await pages.a.route((u) => u.pathname === '/v1/events', async (route) => {
        const url = route.request().url().replace(/follow=1/, 'follow=0');
        const answer = await route.fetch({ url }).catch(() => null);
        if (!answer) return route.abort();
        const lines = (await answer.text()).split('\\n').filter((line) => line && !(JSON.parse(line).seq > last && JSON.parse(line).seq <= last + 3));
        await route.fulfill({ response: answer, body: lines.map((line) => line + '\\n').join('') });
    })""", last=last)
    rig.daemon.stop()
    page("await pages.a.waitForSelector('#state[data-state=lost]')")
    rig.daemon.start()
    for i in range(6):
        rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "INTERNAL", "dataset": f"data {i}"})
    newest = rig.api.events()[-1]["seq"]
    assert newest > last + 4
    page("await pages.a.waitForSelector('.row.type-gap:not([hidden])')")
    text = page("return (await pages.a.locator('.row.type-gap:not([hidden])').allInnerTexts()).join('|')")
    assert f"3 events are missing here ({last + 1} to {last + 3})" in text, text
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').allInnerTexts()).some((t) => t.includes('data 5'))")
    picture(page, "gap")
    page("await pages.a.unrouteAll({ behavior: 'ignoreErrors' })")
    assert base.eventually(lambda: rig.api.health()["inspectors"] == 2)


def test_the_node(page):
    page("await pages.a.evaluate(() => { location.hash = '#node'; }); await pages.a.waitForSelector('#doctor')")
    text = page("return await pages.a.innerText('#node-page')")
    for word in ("inspectors ready", "cgroup v2", "Refusals by reason", "Requests a minute", "Wait for an answer", "Rises a minute", "Processes", "Disk and record", "Maps of the gate", "Programs of the gate"):
        assert word in text, word
    workers = page("return await pages.a.locator('#workers tbody tr').allInnerTexts()")
    assert sum("netpawl-inspect" in w for w in workers) == 2 and any("netpawld" in w for w in workers), workers
    assert any("np_sandboxes" in m for m in page("return await pages.a.locator('#maps tbody tr').allInnerTexts()"))
    assert page("return await pages.a.locator('#disks tbody tr').count()") >= 2
    page("await pages.a.locator('#maps').scrollIntoViewIfNeeded()")
    picture(page, "node-machine")
    page("await pages.a.evaluate(() => { document.querySelector('#node-page').scrollTop = 0; })")
    picture(page, "node")


CREDENTIALS = """credentials:
  token: {{source: {{file: {file}}}, for: ["files.origin.test", "other.origin.test:8443"], inject: always, capture: {{json: text}}}}
  spare: {{source: {{file: /nonexistent/netpawl-key}}, for: api.origin.test}}
  by-rule: {{source: {{file: {file}}}}}
"""


def test_credentials_by_name_with_their_last_use(rig, page):
    before, session = rig.policy.read_text(), rig.fresh()
    row = "const row = async (name) => (await pages.a.locator('#credentials tbody tr').filter({ has: pages.a.locator('td:first-child', { hasText: name }) }).locator('td').allInnerTexts()).join('|');"
    with secret_file(b"hunter2-and-more\n") as file:
        try:
            rig.policy.write_text(before.replace("\nrules:\n", "\n" + CREDENTIALS.format(file=file) + "rules:\n", 1))
            rig.api.ok("POST", "/v1/policy/reload")
            page("await pages.a.evaluate(() => { location.hash = '#node'; }); await pages.a.waitForSelector('#credentials')")
            assert page(row + "return await row('token')") == "token|ready|files.origin.test, other.origin.test:8443|0|0|not yet"
            assert page(row + "return await row('spare')") == "spare|missing|api.origin.test|0|-|not yet"
            assert page(row + "return await row('by-rule')") == "by-rule|ready|rules that name it|0|-|not yet"
            assert "No such file" in page("return await pages.a.locator('#credentials .chip.bad').getAttribute('title')")
            assert rig.curl(session, "-f", "-o", "/dev/null", "-d", "issued-token-0123456789", "https://files.origin.test/list").wait(120) == 0
            eventually(page, row + "return /^token\\|ready\\|.*\\|1\\|1\\|.*(ago|now)/.test(await row('token'))")
            assert not any(w in page("return await pages.a.content()") for w in ("hunter2", "issued-token-0123456789"))
            page("await pages.a.locator('#credentials').scrollIntoViewIfNeeded()")
            picture(page, "node-credentials")
        finally:
            rig.policy.write_text(before)
            rig.api.ok("POST", "/v1/policy/reload")


def test_the_policy(page):
    page("await pages.a.evaluate(() => { location.hash = '#settings'; }); await pages.a.waitForSelector('.files')")
    assert "policy.yaml" in page("return await pages.a.innerText('.files')")
    eventually(page, "return /it can be used/.test(await pages.a.innerText('#policy-findings'))")
    # an error at its line, as it is typed
    page("await pages.a.fill('#policy-text', (await pages.a.inputValue('#policy-text')).replace('- deny: bad.origin.test', '- dny: bad.origin.test'))")
    eventually(page, "return /line 7:.*dny/s.test(await pages.a.innerText('#policy-findings')) && await pages.a.locator('.gutter .bad').innerText() === '7'")
    picture(page, "settings-error")
    # what it would have meant for what has passed
    page("await pages.a.fill('#policy-text', (await pages.a.inputValue('#policy-text')).replace('- dny: bad.origin.test', '- deny: [bad.origin.test, open.origin.test]'))")
    page("await pages.a.fill('#policy-cases', 'at CONFIDENTIAL\\nGET https://open.origin.test/ -> allow')")
    eventually(page, "return /\\d+ that passed would be refused/.test(await pages.a.innerText('#policy-diff').catch(() => ''))")
    eventually(page, "return /expected allow, got deny/.test(await pages.a.innerText('#policy-findings'))")
    picture(page, "settings")


@pytest.mark.parametrize("name, options", [("dark", {"colorScheme": "dark"}), ("phone", {"viewport": {"width": 390, "height": 780}, "colorScheme": "light"})])
def test_dark_and_on_a_phone(rig, chromium, console, name, options):
    session = rig.fresh()
    rig.traffic(session, 1)
    settle(rig, session)
    chromium("await open('c', link, options); await pages.c.waitForSelector('#rows .row')", link=console.another(), options=options)
    for panel in ("traffic", f"sessions/{session}", "questions", "settings", "node"):
        chromium("await pages.c.evaluate((n) => { location.hash = '#' + n; }, panel); await pages.c.waitForTimeout(900)", panel=panel)
        assert chromium("return await pages.c.evaluate(() => document.documentElement.scrollWidth <= innerWidth)"), panel
        picture(chromium, f"{name}-{panel.split('/')[0]}", "c")
    chromium("await pages.c.context().close()")


# As assistive software meets them: Chromium's own tree, with the names that it computes.
NAMELESS = """const s = await pages.a.context().newCDPSession(pages.a);
    const { nodes } = await s.send('Accessibility.getFullAXTree');
    await s.detach();
    const named = new Set(['button', 'link', 'textbox', 'searchbox', 'checkbox', 'radio', 'combobox', 'listbox', 'option', 'grid', 'progressbar', 'dialog', 'image', 'img', 'group', 'list', 'navigation', 'complementary', 'table']);
    const found = nodes.filter((n) => !n.ignored && named.has(n.role?.value));
    return { seen: [...new Set(found.map((n) => n.role.value))], nameless: found.filter((n) => !n.name?.value?.trim() && !['group', 'table', 'list'].includes(n.role.value)).map((n) => n.role.value + ' ' + JSON.stringify(n.properties)) };"""


def test_every_control_has_a_name(rig, page):
    """Walks all panels, the form, the completion, the detail, and each dialog."""
    session, seen = rig.fresh(), set()
    rig.traffic(session, 1)
    settle(rig, session)

    def walk(where):
        got = page(NAMELESS)
        assert got["nameless"] == [], (where, got["nameless"])
        seen.update(got["seen"])

    for panel, ready in (("traffic", "#rows .row"), ("questions", ".qrow"), ("settings", "#policy-findings p"), ("node", "#doctor"), (f"sessions/{session}", ".timeline")):
        page("await pages.a.evaluate((n) => { location.hash = '#' + n; }, panel); await pages.a.waitForSelector(ready)", panel=panel, ready=ready)
        walk(panel)
    page("await pages.a.click('#raise'); await pages.a.waitForSelector('dialog.confirm')")
    walk("raise")
    page("await pages.a.click('dialog.confirm >> text=Cancel'); await pages.a.click('#end-session'); await pages.a.waitForSelector('#confirm-yes')")
    walk("end")
    page("await pages.a.click('dialog.confirm >> text=Cancel'); await pages.a.click('#menu'); await pages.a.waitForSelector('#pref-theme')")
    walk("preferences")
    page("await pages.a.click('text=Done'); await pages.a.evaluate(() => { location.hash = '#settings'; }); await pages.a.waitForSelector('#view-form'); await pages.a.click('#view-form'); await pages.a.waitForSelector('#form-approval-hold')")
    walk("form")
    page("await pages.a.click('#view-text'); await pages.a.fill('#policy-text', 'version: 1\\napproval: {ho'); await pages.a.focus('#policy-text'); await pages.a.keyboard.press('Control+End'); await pages.a.keyboard.type('l'); await pages.a.waitForSelector('#policy-complete li')")
    walk("completion")
    page("await pages.a.evaluate(() => { location.hash = '#traffic'; }); await pages.a.fill('#filter', f)", f=f"session:{session} kind:request")
    eventually(page, "return (await pages.a.locator('#rows .row:not([hidden])').count()) > 0")
    page("await pages.a.locator('#rows .row:not([hidden])').first().click(); await pages.a.waitForSelector('#make-rule'); await pages.a.click('#make-rule')")
    walk("detail")
    rig.write_run(session, "echo", "hello")
    p = rig.curl(session, "https://named.origin.test/")
    eventually(page, "return await pages.a.textContent('#ask-others').catch(() => '')", "1 more waiting")
    walk("question")
    page("await pages.a.waitForSelector('#ask [data-answer=deny]:not([disabled])'); await pages.a.keyboard.press('n')")
    walk("the other")
    for q in rig.questions(session):
        rig.api.ok("POST", f"/v1/questions/{q['id']}/answer", {"answer": "deny"})
    p.wait(60)
    eventually(page, ASK, 0)
    assert {"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "grid", "progressbar", "dialog", "option"} <= seen, seen


def test_read_only_offers_nothing_that_changes(rig, chromium):
    console = rig.console("--read-only")
    session = rig.fresh()
    p = rig.curl(session, "https://ro.origin.test/")
    chromium("await open('r', link); await pages.r.waitForSelector('#bell-count:not([hidden])')", link=console.link)
    assert chromium("return await pages.r.locator('#ask').count()") == 0
    chromium("await pages.r.evaluate((s) => { location.hash = '#sessions/' + s; }, s); await pages.r.waitForSelector('.timeline')", s=session)
    assert chromium("return await pages.r.locator('#raise, #end-session').count()") == 0
    chromium("await pages.r.context().close()")
    settle(rig, session)
    p.wait(60)


def test_approver_has_questions_alone(rig, chromium):
    console = rig.console("--approver")
    session = rig.fresh()
    chromium("await open('q', link); await pages.q.waitForSelector('#tabs a')", link=console.link)
    assert chromium("return await pages.q.locator('#tabs a').allInnerTexts()") == ["Questions"]
    p = rig.curl(session, "https://approver.origin.test/")
    chromium("await pages.q.waitForSelector('#ask [data-answer=once]:not([disabled])'); await pages.q.click('#ask [data-answer=once]')")
    assert p.wait(60) == 0
    chromium("await pages.q.context().close()")
