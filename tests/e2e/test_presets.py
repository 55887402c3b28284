# SPDX-License-Identifier: MIT
"""What becomes of hosts that no rule speaks of."""
import contextlib
import json
import subprocess

import pytest

from lib import base
from lib.asked import Asked

POLICY = """version: 1
levels: {PUBLIC: proxied, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: proxied}
approval: {hold: 2m, timeout: 15m}
default: {PUBLIC: allow, CONFIDENTIAL: ask}
dns: {refused: synthetic}
lists:
  telemetry: {hosts: [stats.origin.test, 198.51.100.77], quiet: true}
  models: [model.origin.test]
rules:
  - deny: bad.origin.test
  - deny: hush.origin.test
    quiet: true
  - deny: "@telemetry"
  - allow: [known.origin.test, "@models"]
"""


class Net(Asked):
    def curl(self, session, *words, seconds=100):
        return self.spawn("curl", "-sS", "-m", str(seconds), "-w", "\n%{http_code}", *words, session=session,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def events_of(self, session, want, count=1):
        pick = lambda got: [e for e in got if want(e)]
        return pick(self.api.wait_events(lambda got: len(pick(got)) >= count, session=session))


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Net(stack, policy=POLICY)


def done(p):
    out, err = p.communicate(timeout=180)
    body, _, code = out.rpartition("\n")
    return body, int(code or 0), err


def test_a_default_by_level(net):
    """One session, raised step by step: what no rule speaks of passes, is asked about, is refused. Rules hold at each of them."""
    session = net.fresh("PUBLIC")
    url, known = "https://unheard.origin.test/", "https://known.origin.test/"
    assert done(net.curl(session, url))[1] == 200
    got = net.events_of(session, lambda e: e.get("url") == url)[0]
    assert (got["reason"], got["status"], got.get("rule")) == ("default_allows", 200, None), got
    assert done(net.curl(session, "https://bad.origin.test/"))[1] == 403
    assert not net.questions(session)

    net.api.escalate(session, "CONFIDENTIAL")
    p = net.curl(session, url)
    asked = base.eventually(lambda: net.questions(session), 10)
    assert [q["host"] for q in asked] == ["unheard.origin.test"] and asked[0]["rule"].endswith("policy.yaml:4"), asked
    net.answer(asked[0], "host")
    assert done(p)[1] == 200 and done(net.curl(session, known))[1] == 200

    net.api.escalate(session, "SECRET")
    assert done(net.curl(session, url))[1] == 403 and done(net.curl(session, known))[1] == 200
    assert not net.questions(session)


def test_nobody_is_asked_about_names_that_nobody_meant(net):
    session = net.fresh("CONFIDENTIAL")
    for name in ("intranet", "printer.local", "known.origin.test.corp.test"):
        body, code, err = done(net.curl(session, f"http://{name}/"))
        assert code == 0 and "resolve host" in err, (name, body, code, err)
    # nor by a name that only the request has
    body, code, _ = done(net.curl(session, "--resolve", "printer.local:80:198.51.100.10", "http://printer.local/"))
    assert code == 403 and json.loads(body)["reason"] == "not_in_policy", body
    # the control: another name is asked about
    p = net.curl(session, "http://meant.origin.test/", seconds=100)
    asked = base.eventually(lambda: net.questions(session), 10)
    assert [q["host"] for q in asked] == ["meant.origin.test"], asked
    net.answer(asked[0], "deny")
    assert done(p)[1] == 403


def test_the_policy_is_shown_with_its_defaults(net):
    live = net.api.ok("GET", "/v1/policy")
    assert live["default"] == "by_level"
    assert live["defaults"] == {"PUBLIC": "allow", "INTERNAL": "ask", "CONFIDENTIAL": "ask", "SECRET": "deny"}
    shown = net.daemon.cli("policy", "show", check=0).stdout
    assert "PROXIED, default: allow" in shown and "PROXIED, default: deny" in shown, shown


def test_what_is_quiet_is_on_record_and_nobody_is_told(net):
    session = net.fresh("CONFIDENTIAL")
    for name in ("hush", "stats"):  # its names do not exist, although those of other denies have an address
        _, code, err = done(net.curl(session, f"https://{name}.origin.test/"))
        assert code == 0 and "resolve host" in err, (name, err)
        body, code, _ = done(net.curl(session, "--resolve", f"{name}.origin.test:80:198.51.100.10", f"http://{name}.origin.test/"))
        assert code == 403 and json.loads(body)["reason"] == "rule_denies", body
    done(net.curl(session, "http://198.51.100.77:9000/"))
    assert done(net.curl(session, "http://bad.origin.test/"))[1] == 403  # the control
    keys = lambda got: {(e.get("lookup"), e.get("url"), e.get("address") if e.get("hook") else None): e.get("list") for e in got if e.get("quiet")}
    wanted = {("stats.origin.test", None, None), (None, "http://stats.origin.test/", None), (None, None, "198.51.100.77"),
              ("hush.origin.test", None, None)}
    net.api.wait_events(lambda got: wanted <= keys(got).keys(), session=session)
    quiet = net.events_of(session, lambda e: e.get("quiet"), 5)
    assert {e["reason"] for e in quiet} == {"rule_denies"} and not net.questions(session)
    told = keys(quiet)
    assert told[("stats.origin.test", None, None)] == told[(None, "http://stats.origin.test/", None)] == "@telemetry", told
    assert told[(None, None, "198.51.100.77")] == "@telemetry" and told[("hush.origin.test", None, None)] is None, told
    loud = net.events_of(session, lambda e: e.get("url") == "http://bad.origin.test/")
    assert loud and "quiet" not in loud[0]

    why = net.api.ok("GET", f"/v1/sessions/{session}/why")
    assert why["quiet"] >= 5 and {r["where"] for r in why["refused"]} <= {"GET http://bad.origin.test/", "bad.origin.test"}, why
    shown = net.daemon.cli("events", "--session", session, check=0).stdout
    assert "bad.origin.test" in shown and "hush" not in shown and "stats" not in shown, shown
    shown = net.daemon.cli("events", "--session", session, "--quiet", check=0).stdout
    assert "hush.origin.test" in shown and "list=@telemetry" in shown, shown


def test_an_event_names_the_list(net):
    session = net.fresh("CONFIDENTIAL")
    assert done(net.curl(session, "https://model.origin.test/"))[1] == 200 and done(net.curl(session, "https://known.origin.test/"))[1] == 200
    lists = {e["url"]: e.get("list") for e in net.events_of(session, lambda e: e.get("url"), 2)}
    assert lists == {"https://model.origin.test/": "@models", "https://known.origin.test/": None}


def test_lists_that_come_with_netpawl(tmp_path):
    run = lambda *words: subprocess.run([str(base.NETPAWL), "policy", *map(str, words)], capture_output=True, text=True, timeout=60)
    shipped = tmp_path / "lists.yaml"
    shipped.write_text(run("lists").stdout)
    assert "api.anthropic.com" in shipped.read_text() and run("check", shipped).returncode == 0
    policy = tmp_path / "policy.yaml"
    policy.write_text('version: 1\nlists: {mine: [db.example:5432]}\nrules:\n  - allow: ["@llm", "@mine", other.example]\n')
    got = json.loads(run("lists", policy, "--json").stdout)["entries"]
    mine = [e for e in got if e["list"] == "@mine"]
    assert [(e["destination"], e["shipped"], e["at"].rsplit(":")[-1], e["used"].rsplit(":")[-1]) for e in mine] == \
        [("db.example:5432/tcp", False, "2", "4")], mine
    assert all(e["shipped"] for e in got if e["list"] == "@llm") and "other.example" not in str(got)
    told = run("explain", policy, "--url", "https://api.openai.com/v1").stdout
    assert "allow" in told and "@llm" in told, told
    policy.write_text("version: 1\nrules: [{allow: a.example}]\n")
    assert run("lists", policy).stdout == "No rule of it uses a list.\n"
