# SPDX-License-Identifier: MIT
"""The answer "always": a grant in a file beside the policy, which is read with it, and taken back."""
import contextlib
import json
import subprocess

import pytest

from lib import base
from lib.api import Failure
from lib.asked import Asked
from lib.proxies import credentials

POLICY = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 2m, timeout: 15m, grants: grants.yaml}
rules:
  - deny: always.origin.test
    paths: ["/secret/**"]
  - ask: tcp.origin.test:9000
  - ask: "**.origin.test"
"""
TALK = "import socket; s = socket.create_connection(('tcp.origin.test', 9000), 15); s.sendall(b'word'); print(s.recv(9))"


class Net(Asked):
    def get(self, session, *words):
        return self.spawn("curl", "-sS", "-m", "110", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def asked(self, session, **is_):
        """The question that waits and is so."""
        got = base.eventually(lambda: next((q for q in self.questions(session) if all(q[k] == v for k, v in is_.items())), None), 10)
        assert got, self.api.ok("GET", f"/v1/questions?session={session}")
        return got

    def denied(self, session, *words):
        """It is asked about, and denied."""
        p = self.get(session, *words)
        self.answer(self.asked(session), "deny", **{"for": "1s"})
        return code(p) == "403"


def code(p):
    return p.communicate(timeout=180)[0]


@pytest.fixture
def net():
    with contextlib.ExitStack() as stack:
        n = Net(stack, policy=POLICY)
        n.grants = n.policy.parent / "grants.yaml"
        yield n
        assert n.daemon.running() and n.api.health()["inspectors"] == 2


def test_always_is_written_beside_the_policy_and_holds_for_the_user(net):
    session, before = net.fresh(), net.policy.read_bytes()
    p = net.get(session, "https://always.origin.test/a")
    q = net.asked(session)
    got = net.daemon.cli("answer", q["question"], "always", "--reason", "the build: {needs} it \u2028 - deny: x", check=0)
    assert "answered always by uid 0 pid " in got.stdout
    assert code(p) == "200"
    assert net.policy.read_bytes() == before, "the reviewed file is as it was"
    comment, rule = net.grants.read_text().splitlines()[-2:]
    assert comment.startswith(f"  # question {q['question']}, always: uid 0 pid ") and "the build: {needs} it ??? - deny: x" in comment
    user = session.split("/")[0]
    assert rule == f'  - {{allow: "https://always.origin.test:443", kind: read, for: [PUBLIC, INTERNAL], sessions: "{user}/*"}}'
    # another session of the user; another level, kind, user and a deny
    other = net.fresh()
    assert code(net.get(other, "https://always.origin.test/b")) == "200" and not net.questions(other)
    event = base.eventually(lambda: next((e for e in net.api.events(session=other) if e["reason"] == "approved"), None), 10)
    assert event["rule"].endswith("/grants.yaml:6"), event
    assert code(net.get(other, "https://always.origin.test/secret/x")) == "403" and not net.questions(other), "a deny is a deny"
    assert net.denied(other, "https://always.origin.test/b", "-d", "x")
    net.api.escalate(other, "CONFIDENTIAL")
    assert net.denied(other, "https://always.origin.test/b")
    net.api.create("stranger/" + session.split("/")[1], "INTERNAL")
    assert net.denied("stranger/" + session.split("/")[1], "https://always.origin.test/b")
    # it outlives the daemon, and the policy shows it
    net.daemon.restart("stop")
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
    assert code(net.get(session, "https://always.origin.test/c")) == "200"
    assert net.api.ok("GET", "/v1/policy")["grants"][0]["text"] == "https://always.origin.test:443"
    explained = net.daemon.cli("policy", "explain", str(net.policy), "--url", "https://always.origin.test/", "--level", "INTERNAL",
                               "--session", session)
    assert "grants.yaml:6" in explained.stdout and "a person has answered always" in explained.stdout, explained
    live = json.loads(net.daemon.cli("--json", "policy", "explain", "--live", session, "--url", "https://always.origin.test/", check=0).stdout)
    assert (live["action"], live["reason"], live["asks"]) == ("allow", "approved", None) and live["rule"]["line"] == 6
    # and is taken back
    assert "taken back by uid 0" in net.daemon.cli("answer", q["question"], "--revoke", check=0).stdout
    assert not net.grants.exists(), "it was the only one"
    assert net.api.ok("GET", f"/v1/questions/{q['question']}")["revoked_by"].startswith("uid 0 pid "), "and that stays on record"
    assert net.denied(session, "https://always.origin.test/d")
    assert net.daemon.cli("answer", q["question"], "--revoke").returncode == 1


def test_always_for_connections_is_cut_when_it_is_taken_back(net):
    session = net.fresh()
    talk = lambda text=TALK: net.spawn(base.PYTHON, "-c", text, session=session, stdout=subprocess.PIPE, text=True)
    p = talk()
    q = net.asked(session)
    net.answer(q, "always")
    assert "word" in p.communicate(timeout=180)[0]
    assert 'allow: "tcp://tcp.origin.test:9000", for' in net.grants.read_text()
    p = talk(TALK + "; print('open', flush=True); print(s.recv(9))")
    assert "word" in p.stdout.readline() and p.stdout.readline() == "open\n"
    net.api.ok("POST", f"/v1/questions/{q['question']}/revoke", {})
    p.communicate(timeout=180)
    assert p.returncode != 0, "it was reset"


def test_what_cannot_be_written_is_told_and_holds_for_the_session(net):
    session = net.fresh()
    p = net.get(session, "https://broken.origin.test/")
    net.grants.write_text("version: 1\ngrants: []\nrules: [{allow: 'evil.origin.test'}]\n")
    with pytest.raises(Failure) as e:
        net.answer(net.asked(session), "always")
    assert e.value.body["error"] == "bad_policy" and "holds for this session alone" in e.value.body["detail"], e.value.body
    assert code(p) == "200" and "broken" not in net.grants.read_text()
    with pytest.raises(Failure) as e:  # nothing but grants is read from there
        net.api.ok("POST", "/v1/policy/reload", {})
    assert "nothing else" in json.dumps(e.value.body)
    net.grants.unlink()
    # What was edited and not reloaded is not made live by an answer.
    net.policy.write_text(net.policy.read_text().replace("rules:\n", "rules:\n  - allow: edited.origin.test\n"))
    p = net.get(session, "https://second.origin.test/")
    with pytest.raises(Failure) as e:
        net.answer(net.asked(session), "always")
    assert "reload it first" in e.value.body["detail"] and not net.grants.exists()
    assert code(p) == "200"
    assert net.denied(session, "https://edited.origin.test/")


def test_a_link_is_not_replaced_and_nobody_else_may_write_the_file(net):
    """A link has the mode 0777, which the file in its place would get; and where it leads is not ours to choose."""
    session, real = net.fresh(), net.policy.parent / "real.yaml"

    def always(host):
        p = net.get(session, f"https://{host}/")
        q = net.asked(session)
        try:
            net.answer(q, "always")
        finally:
            assert code(p) == "200"
        return q

    always("first.origin.test")
    net.grants.chmod(0o666)
    always("second.origin.test")
    assert net.grants.lstat().st_mode == 0o100644, oct(net.grants.lstat().st_mode)
    net.grants.chmod(0o640)
    q = always("third.origin.test")
    assert net.grants.lstat().st_mode == 0o100640, "what its owner chose stays"
    net.grants.rename(real)
    net.grants.symlink_to("real.yaml")
    text = real.read_text()
    with pytest.raises(Failure) as e:
        always("fourth.origin.test")
    assert "it is a link: write the file that it leads to" in e.value.body["detail"], e.value.body
    assert "holds for this session alone" in e.value.body["detail"], e.value.body
    with pytest.raises(Failure) as e:  # nor when one is taken back
        net.api.ok("POST", f"/v1/questions/{q['question']}/revoke", {})
    assert "it is a link" in json.dumps(e.value.body), e.value.body
    assert net.grants.is_symlink() and real.read_text() == text


def test_what_is_not_live_is_not_left_behind(net):
    """The reload that follows fails: the file is as it was, so that the next one brings nothing that nobody was told of."""
    session = net.fresh()
    with credentials() as path:
        net.policy.write_text(net.policy.read_text().replace("rules:\n", "upstream_proxy:\n  - url: http://198.51.100.99:3128\n    hosts: proxied.origin.test\n"
                                                             f"    credentials: {{file: {path}}}\nrules:\n", 1))
        net.api.ok("POST", "/v1/policy/reload", {})
        path.chmod(0o644)  # it is not taken any more
        p = net.get(session, "https://late.origin.test/")
        q = net.asked(session)
        with pytest.raises(Failure) as e:
            net.answer(q, "always")
        assert "holds for this session alone" in e.value.body["detail"], e.value.body
        assert code(p) == "200" and not net.grants.exists()
        path.chmod(0o600)
        net.api.ok("POST", f"/v1/questions/{q['question']}/revoke", {})
        net.api.ok("POST", "/v1/policy/reload", {})
        assert net.denied(session, "https://late.origin.test/") and net.denied(net.fresh(), "https://late.origin.test/")
