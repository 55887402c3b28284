# SPDX-License-Identifier: MIT
"""The policy in the page: completion, the form, and saving. Its daemon is its own: what is saved is live."""
import pytest

from lib import base
from pages import eventually, picture, settle

OK = "return /it can be used/.test(await pages.a.innerText('#policy-findings'))"


@pytest.fixture
def settings(page):
    page("await pages.a.evaluate(() => { localStorage.removeItem('netpawl.policy.view'); location.hash = '#settings'; }); await pages.a.waitForSelector('.files')")
    eventually(page, OK)
    return page


def text(page):
    return page("return await pages.a.inputValue('#policy-text')")


def write(page, value):
    page("await pages.a.fill('#policy-text', value)", value=value)


def save(page):
    page("await pages.a.waitForSelector('#policy-save:not([disabled])'); await pages.a.click('#policy-save'); await pages.a.click('#confirm-yes')")


def test_completion_as_you_type(settings):
    write(settings, "version: 1\napproval: {ho")
    settings("await pages.a.focus('#policy-text'); await pages.a.keyboard.press('Control+End'); await pages.a.keyboard.type('l')")
    settings("await pages.a.waitForSelector('#policy-complete li')")
    assert settings("return await pages.a.locator('#policy-complete li b').allInnerTexts()") == ["hold"]
    picture(settings, "settings-complete")
    settings("await pages.a.keyboard.press('Tab')")
    assert text(settings) == "version: 1\napproval: {hold: "
    settings("await pages.a.keyboard.type('10s, '); await pages.a.keyboard.press('Control+Space'); await pages.a.waitForSelector('#policy-complete li')")
    words = settings("return await pages.a.locator('#policy-complete li b').allInnerTexts()")
    assert "timeout" in words and "hold" not in words
    settings("await pages.a.keyboard.press('ArrowDown'); await pages.a.keyboard.press('Escape')")
    assert settings("return await pages.a.locator('#policy-complete').isHidden()")
    settings("await pages.a.keyboard.press('Control+Space'); await pages.a.waitForSelector('#policy-complete li'); await pages.a.locator('#policy-complete li', { hasText: 'remember' }).click()")
    assert text(settings).endswith("{hold: 10s, remember: ")


def test_a_text_is_saved_and_live(rig, settings):
    before = rig.daemon.policy.read_text()
    write(settings, before.replace("- deny: bad.origin.test", "# by hand\n  - deny: [bad.origin.test, worse.origin.test]"))
    save(settings)
    eventually(settings, "return /policy.yaml is live/.test(await pages.a.textContent('#toast'))")
    assert "# by hand\n  - deny: [bad.origin.test, worse.origin.test]" in rig.daemon.policy.read_text()
    assert rig.api.events()[-1]["reason"] == "policy_saved"
    eventually(settings, "return await pages.a.locator('#policy-save').count()", 0)


def test_not_with_errors(rig, settings):
    before = rig.daemon.policy.read_text()
    write(settings, before.replace("- deny:", "- dny:", 1))
    settings("await pages.a.waitForSelector('#policy-save[disabled]')")
    assert rig.daemon.policy.read_text() == before


def test_what_somebody_else_has_saved_is_not_lost(rig, settings):
    before = rig.daemon.policy.read_text()
    write(settings, before + "# mine\n")
    rig.api.ok("PUT", "/v1/policy/file", {"file": "policy.yaml", "old": next(f["sha256"] for f in rig.api.ok("GET", "/v1/policy/source")["files"] if f["name"] == "policy.yaml"), "text": before + "# theirs\n"})
    save(settings)
    settings("await pages.a.waitForSelector('#policy-again')")
    assert rig.daemon.policy.read_text() == before + "# theirs\n"
    picture(settings, "settings-conflict")
    settings("await pages.a.click('#policy-again')")
    eventually(settings, OK)
    assert text(settings) == before + "# mine\n", "what was written here is still there, against what is live now"


def test_the_form_writes_the_same_text(rig, settings):
    before = rig.daemon.policy.read_text()
    settings("await pages.a.click('#view-form'); await pages.a.waitForSelector('#form-approval-hold')")
    picture(settings, "settings-form")
    said = settings("return await pages.a.innerText('#policy-form')")
    for word in ("LLM providers", "@llm", "Added by hand", "open.origin.test", "defeats the purpose", "Memory of a run"):
        assert word.lower() in said.lower(), word

    def done(code):
        """Each change is looked at before the next: the form shows what the reader has read."""
        was = text(settings)
        settings(code)
        eventually(settings, "return (await pages.a.inputValue('#policy-text')) !== was", was=was)
        eventually(settings, OK)

    done("await pages.a.fill('#form-approval-hold', '25s'); await pages.a.press('#form-approval-hold', 'Tab')")
    eventually(settings, "return await pages.a.inputValue('#form-approval-hold')", "25s")
    done("await pages.a.fill('#form-sandbox-memory', '2G'); await pages.a.press('#form-sandbox-memory', 'Tab')")
    eventually(settings, "return await pages.a.inputValue('#form-sandbox-memory')", "2G")
    done("await pages.a.click('[name=form-default][value=ask]')")
    eventually(settings, "return await pages.a.isChecked('[name=form-default][value=ask]')")
    done("await pages.a.click('[data-host=\"files.origin.test\"]')")
    eventually(settings, "return await pages.a.locator('[data-host=\"files.origin.test\"]').count()", 0)
    done("await pages.a.fill('#form-host', 'new.origin.test'); await pages.a.press('#form-host', 'Enter')")
    eventually(settings, "return await pages.a.locator('[data-host=\"new.origin.test\"]').count()", 1)
    eventually(settings, "return /would/.test(await pages.a.innerText('#policy-diff').catch(() => '')) || /Nothing/.test(await pages.a.innerText('#policy-diff').catch(() => ''))")
    picture(settings, "settings-form-changed")
    save(settings)
    eventually(settings, "return /policy.yaml is live/.test(await pages.a.textContent('#toast'))")
    after = rig.daemon.policy.read_text()
    was, now = before.splitlines(), after.splitlines()
    # the lines that were touched, and no others: comments and the form of the rest are as they were
    assert [line for line in was if line not in now] == [line for line in was if "hold: 20s" in line or "files.origin.test" in line]
    fresh = [line for line in now if line not in was]
    assert sorted(line.strip() for line in fresh if "hold: 25s" not in line and line.strip() != "sandbox:") == sorted(["default: ask", "- allow: [open.origin.test]", "- allow: new.origin.test", "memory: 2G"]), fresh
    assert now.index("  - allow: new.origin.test") + 1 == next(i for i, line in enumerate(now) if line.startswith("  - ask:"))
    assert rig.api.ok("GET", "/v1/policy")["default"] == "ask"


def test_the_form_warns_of_letting_everything_pass(settings):
    settings("await pages.a.click('#view-form'); await pages.a.waitForSelector('[name=form-default]'); await pages.a.click('[name=form-default][value=allow]')")
    settings("await pages.a.waitForSelector('#policy-form .warnings')")
    assert "defeats the purpose" in settings("return await pages.a.innerText('#policy-form .warnings')")


def test_grants_are_taken_back_by_the_form(rig, settings):
    session = rig.fresh()
    p = rig.curl(session, "https://granted.origin.test/")
    assert base.eventually(lambda: rig.questions(session))
    rig.answer(rig.questions(session)[0], "always")
    assert p.wait(60) == 0 and base.eventually(lambda: "granted.origin.test" in (rig.daemon.policy.parent / "grants.yaml").read_text())
    p = rig.curl(session, "https://also.origin.test/")
    assert base.eventually(lambda: rig.questions(session))
    rig.answer(rig.questions(session)[0], "always")
    assert p.wait(60) == 0
    settings("await pages.a.evaluate(() => { location.hash = '#traffic'; }); await pages.a.waitForSelector('#rows'); await pages.a.evaluate(() => { location.hash = '#settings'; })")
    settings("await pages.a.locator('.files button', { hasText: 'grants.yaml' }).click(); await pages.a.click('#view-form'); await pages.a.waitForSelector('[data-host*=\"granted\"]')")
    assert "granted" in settings("return await pages.a.innerText('#policy-form')").lower()
    picture(settings, "settings-grants")
    settings("await pages.a.locator('[data-host*=\"granted\"]').click()")
    eventually(settings, "return await pages.a.locator('[data-host*=\"granted\"]').count()", 0)
    eventually(settings, OK)
    save(settings)
    assert base.eventually(lambda: "granted.origin.test" not in (rig.daemon.policy.parent / "grants.yaml").read_text())
    assert "also.origin.test" in (rig.daemon.policy.parent / "grants.yaml").read_text() and len(rig.api.ok("GET", "/v1/policy")["grants"]) == 1
    settle(rig, session)


def test_read_only_saves_nothing(rig, chromium):
    console = rig.console("--read-only")
    chromium("await open('r', link); await pages.r.waitForSelector('#tabs a'); await pages.r.evaluate(() => { location.hash = '#settings'; }); await pages.r.waitForSelector('.files')", link=console.link)
    chromium("await pages.r.fill('#policy-text', (await pages.r.inputValue('#policy-text')) + '# x\\n'); await pages.r.waitForSelector('text=Undo')")
    assert chromium("return await pages.r.locator('#policy-save').count()") == 0
    chromium("await pages.r.context().close()")
