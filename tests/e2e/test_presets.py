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
approval: {hold: 20s, timeout: 5m}
default: {PUBLIC: allow, CONFIDENTIAL: ask}
rules:
  - deny: bad.origin.test
  - allow: known.origin.test
"""


class Net(Asked):
    def curl(self, session, *words, seconds=15):
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
    out, err = p.communicate(timeout=30)
    body, _, code = out.rpartition("\n")
    return body, int(code or 0), err


def test_a_default_by_level(net):
    """One session, raised step by step: what no rule speaks of passes, is asked about, is refused. Rules hold at each of them."""
    session = net.fresh("PUBLIC")
    url, known = "https://unheard.origin.test/", "https://known.origin.test/"
    assert done(net.curl(session, url))[1] == 200
    got = net.events_of(session, lambda e: e.get("url") == url)[0]
    assert (got["reason"], got["status"], got.get("rule")) == ("default_allows", 200, None), got
    assert done(net.curl(session, "https://bad.origin.test/"))[1] == 0
    assert not net.questions(session)

    net.api.escalate(session, "CONFIDENTIAL")
    p = net.curl(session, url)
    asked = base.eventually(lambda: net.questions(session), 10)
    assert [q["host"] for q in asked] == ["unheard.origin.test"] and asked[0]["rule"].endswith("policy.yaml:4"), asked
    net.answer(asked[0], "host")
    assert done(p)[1] == 200 and done(net.curl(session, known))[1] == 200

    net.api.escalate(session, "SECRET")
    assert done(net.curl(session, url))[1] == 0 and done(net.curl(session, known))[1] == 200
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
    p = net.curl(session, "http://meant.origin.test/", seconds=25)
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
