# SPDX-License-Identifier: MIT
"""The page of a daemon that was itself deceived: hostile words in every field of every panel."""
import pytest

from lib import base
from lib.console import Console
from lib.deceived import WORDS, Deceived
from pages import picture, settle

# What is ours: elements of a page that shows nothing but text of strangers. Whatever else is there, somebody's markup has made.
FOREIGN = """return await pages.d.evaluate(() => {
    const ours = new Set("HTML HEAD META TITLE LINK SCRIPT BODY HEADER NAV MAIN DIV SPAN A B BUTTON INPUT SELECT OPTION TEXTAREA LABEL P PRE H2 H3 DL DT DD UL LI TABLE THEAD TBODY TR TH TD SMALL I ASIDE SECTION DIALOG NOSCRIPT IMG svg line text rect path circle polyline polygon g title".split(" "));
    const out = [];
    for (const e of document.querySelectorAll("*")) {
        if (!ours.has(e.tagName)) out.push(e.outerHTML.slice(0, 200));
        if (e.tagName === "IMG" && e.getAttribute("src") !== "/icon.svg") out.push(e.outerHTML.slice(0, 200));
        if (e.tagName === "SCRIPT" && e.getAttribute("src") !== "/app.js") out.push(e.outerHTML.slice(0, 200));
        for (const a of e.attributes) {
            if (/^on/.test(a.name) || /^javascript:/i.test(a.value.trim())) out.push(e.outerHTML.slice(0, 200));
            if (/[\\u0000-\\u0008\\u001b\\u0080-\\u009f\\u200b\\u202a-\\u202e\\u2066-\\u2069\\ufeff]/.test(a.value)) out.push(a.name + " of " + e.tagName + " turns text around");
        }
    }
    const walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (/[\\u0000-\\u0008\\u001b\\u0080-\\u009f\\u200b\\u202a-\\u202e\\u2066-\\u2069\\ufeff]/.test(walk.currentNode.data)) out.push("text turns around: " + walk.currentNode.data.slice(0, 80));
    if (window.owned !== undefined) out.push("it ran: " + window.owned);
    if (document.documentElement.scrollWidth > innerWidth) out.push("wider than the window: " + document.documentElement.scrollWidth);
    if (document.body.scrollHeight > innerHeight) out.push("higher than the window: " + document.body.scrollHeight);
    const dialog = document.querySelector("dialog[open]")?.getBoundingClientRect();
    if (dialog && (dialog.right > innerWidth + 1 || dialog.bottom > innerHeight + 1 || dialog.left < -1 || dialog.top < -1)) out.push("a dialog beyond the window");
    return [...new Set(out)].slice(0, 10);
})"""


@pytest.fixture(scope="module")
def deceived(rig):
    """Something of everything that is shown, told by a daemon that was itself deceived."""
    token = rig.world.dir / "token"
    token.write_text("hunter2-and-more\n")
    token.chmod(0o600)
    before = rig.daemon.policy.read_text()
    rig.daemon.policy.write_text(before + f"credentials:\n  token: {{source: {{file: {token}}}, for: open.origin.test}}\n  spare: {{source: {{file: /nonexistent/key}}, for: api.origin.test}}\n")
    rig.api.ok("POST", "/v1/policy/reload", {})
    session = rig.fresh()
    rig.traffic(session, 1)
    settle(rig, session)
    rig.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "customers.csv", "reason": "ticket"})
    kept = rig.spawn("sleep", "600", session=session)
    assert base.eventually(lambda: rig.api.sandboxes(session), 60)
    rig.write_run(session, "echo", "hello")
    p = rig.curl(session, "https://deceived.origin.test/x", "-d", "body", seconds=600)
    assert base.eventually(lambda: len(rig.questions(session)) == 2)
    with Deceived(rig.daemon) as d:
        yield d, session
    for q in rig.questions(session):
        rig.api.ok("POST", f"/v1/questions/{q['id']}/answer", {"answer": "deny"})
    base.reap(kept)
    p.wait(60)
    rig.daemon.policy.write_text(before)
    rig.api.ok("POST", "/v1/policy/reload", {})


@pytest.mark.parametrize("size", [{"width": 1360, "height": 820}, {"width": 390, "height": 780}], ids=["wide", "phone"])
@pytest.mark.parametrize("word", WORDS)
def test_hostile_words_in_every_field_of_every_panel(rig, chromium, deceived, word, size):
    """Events, sessions with their sandboxes, runs, datasets and notices, questions and runs that wait, the policy with its files, grants and form,
    completion, the node with its maps, processes and credentials: nothing runs, nothing turns text around, nothing breaks the layout."""
    d, session = deceived
    d.say(word)
    console = rig.stack.enter_context(Console(d))
    chromium("seen.length = 0; await open('d', link, { viewport: size }); await pages.d.waitForSelector('#ask')", link=console.link, size=size)

    def fine(what):
        assert chromium(FOREIGN) == [], what
        picture(chromium, f"deceived-{word}-{what}" + ("" if size["width"] > 400 else "-phone"), "d")

    strip = lambda: chromium("return await pages.d.evaluate(() => document.querySelector('#ask .strip span')?.textContent ?? '')")
    kinds = set()
    while name := strip():  # each that waits; later, later
        kinds.add(name.split()[0])
        fine(name.split()[0].lower())
        chromium("await pages.d.waitForSelector('#ask [data-answer=deny]:not([disabled])'); await pages.d.keyboard.press('n')")
        assert base.eventually(lambda: strip() != name)
    assert kinds == {"Question", "Run"}
    chromium("await pages.d.waitForSelector('#rows .row:not([hidden])')")
    fine("traffic")
    rows = chromium("return await pages.d.locator('#rows .row:not([hidden])').count()")
    for i in range(min(rows, 6)):
        chromium("await pages.d.locator('#rows .row:not([hidden])').nth(i).click({ position: { x: 20, y: 8 } }); await pages.d.waitForSelector('.detail:not([hidden]) h3'); if (await pages.d.locator('#make-rule').count()) await pages.d.click('#make-rule')", i=i)
        fine("detail")
        chromium("await pages.d.click('.detail .close')")
    # What waits is put off, and comes up no more by itself.
    for panel, ready in (("sessions", "#session-page .timeline"), ("questions", ".qrow"), ("settings", ".files"), ("node", "#doctor")):
        chromium("await pages.d.evaluate((n) => { location.hash = '#' + n; }, panel); await pages.d.waitForSelector(ready)", panel=panel, ready=ready)
        if panel == "settings":
            chromium("await pages.d.waitForSelector('#policy-findings p')")
        fine(panel)
    assert chromium("return [await pages.d.locator('#credentials tbody tr').count(), await pages.d.locator('#maps tbody tr').count() > 0, await pages.d.locator('#workers tbody tr').count() > 0]") == [2, True, True]
    chromium("await pages.d.evaluate(() => { location.hash = '#settings'; }); await pages.d.waitForSelector('.files'); await pages.d.click('#view-form'); await pages.d.waitForSelector('#policy-form p')")
    fine("form")
    chromium("await pages.d.click('#view-text'); await pages.d.fill('#policy-text', 'version: 1\\napproval: {ho'); await pages.d.focus('#policy-text'); await pages.d.keyboard.press('Control+End'); await pages.d.keyboard.type('l'); await pages.d.waitForSelector('#policy-complete li')")
    fine("completion")
    said = chromium("const s = seen.filter((line) => !/status of (403|404|409|422|503)|ERR_/.test(line)); await pages.d.context().close(); return s;")
    console.close()
    assert said == []


@pytest.mark.parametrize("word", WORDS)
def test_the_form_of_a_policy_with_hostile_hosts(page, word):
    """As the reader would have read them: hosts that rules allow, the file's name, and the names of other files."""
    got = page("""return await pages.a.evaluate(async (word) => {
        const { form } = await import("/form.js"), { call } = await import("/api.js");
        const text = 'version: 1\\ndefault: {INTERNAL: ask, CONFIDENTIAL: deny}\\nrules:\\n  - allow: [h0.test, "@llm"]\\n  - allow: h1.test\\n    methods: [GET]\\n';
        const { outline } = await call("POST", "/console/policy", { name: "policy.yaml", text, outline: true });
        const turned = JSON.parse(JSON.stringify(outline), (key, value) => (typeof value === "string" && /^h[01]\\.test$/.test(value) ? word : value));
        const box = document.createElement("div");
        box.className = "form";
        document.querySelector("#panel").append(box);
        form(box, { text, outline: turned, first: true, name: word, files: ["policy.yaml", word], read: true, change() {}, go() {} });
        const out = { foreign: box.querySelectorAll("img, script, td, dialog").length, entries: box.querySelectorAll("[data-host]").length, owned: window.owned ?? null,
            odd: /[\\u0000-\\u0008\\u001b\\u0080-\\u009f\\u200b\\u202a-\\u202e\\u2066-\\u2069\\ufeff]/.test(box.innerHTML), wide: document.documentElement.scrollWidth > innerWidth };
        box.remove();
        return out;
    }, word)""", word=WORDS[word])
    assert got == {"foreign": 0, "entries": 3, "owned": None, "odd": False, "wide": False}
