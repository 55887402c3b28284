# SPDX-License-Identifier: MIT
"""Rules that ask a person, against a sandbox that wants the answer without one."""
import json
import subprocess

import pytest

from lib import base
from lib.asked import FLOOD, Asked
from lib.inspected import unharmed

POLICY = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 50ms, timeout: 5m}
rules:
  - allow: open.origin.test
  - ask: ["**.origin.test", "**.flood.test"]
"""
BOUND = 32

ANSWER = """import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
try:
    c = Unix("np")
    c.request("POST", f"/v1/questions/{sys.argv[2]}/answer", json.dumps({"answer": "host"}))
    r = c.getresponse()
    print(r.status, r.read().decode())
except OSError as e:
    print("OSError", e)
"""


class Net(Asked):
    def python(self, session, text, *words):
        return subprocess.run(self.argv(base.PYTHON, "-c", text, *words, session=session), capture_output=True, text=True,
                              timeout=300, env=self.env(), stdin=subprocess.DEVNULL)

    def get(self, session, url):
        got = subprocess.run(self.argv("curl", "-sS", "-m", "90", "-w", "\n%{http_code}", url, session=session),
                             capture_output=True, text=True, timeout=180, env=self.env(), stdin=subprocess.DEVNULL)
        body, _, code = got.stdout.rpartition("\n")
        return body, int(code or 0)


@pytest.fixture(scope="module")
def net():
    with unharmed(Net, policy=POLICY) as n:
        yield n
        assert n.api.health()["inspectors"] == 2


def test_a_flood_of_unknown_hosts_is_bounded_and_hides_nobody_elses_question(net):
    """The control: the same request to a host that is allowed passes."""
    flooder, other = net.fresh(), net.fresh()
    assert net.get(flooder, "http://open.origin.test/")[1] == 200
    got = net.python(flooder, FLOOD, "400")
    seen = json.loads(got.stdout)
    # One that the daemon had not answered when its time to wait was over needs approval as well, and is no question.
    assert sum(seen.values()) == 400 and BOUND <= seen["needs_approval"] < 400 - BOUND, (got, net.daemon.text()[-1000:])
    assert set(seen) == {"needs_approval", "too_many_questions"} and base.eventually(lambda: len(net.questions(flooder)) == BOUND)
    body, code = net.get(other, "https://quiet.origin.test/")
    assert code == 403 and json.loads(body)["reason"] == "needs_approval"
    mine = base.eventually(lambda: net.questions(other))
    assert len(mine) == 1 and mine[0]["host"] == "quiet.origin.test"
    net.api.ok("POST", f"/v1/questions/{mine[0]['question']}/answer", {"answer": "once"})
    assert net.get(other, "https://quiet.origin.test/")[1] == 200
    told = net.api.wait_events(lambda got: any(e["reason"] == "too_many_questions" for e in got), session=flooder)
    assert any(e["reason"] == "too_many_questions" for e in told)
    # who answers makes room
    first = net.questions(flooder)[-1]
    net.api.ok("POST", f"/v1/questions/{first['question']}/answer", {"answer": "deny"})
    assert json.loads(net.get(flooder, "https://later.origin.test/")[0])["reason"] == "needs_approval"


def test_a_sandbox_does_not_answer_its_own_question(net):
    session = net.fresh()
    assert net.get(session, "https://own.origin.test/")[1] == 403
    question = base.eventually(lambda: net.questions(session))[0]["question"]
    got = net.python(session, ANSWER, str(net.daemon.socket), str(question))
    assert "200" not in got.stdout.split()[:1], got
    # an adopted cgroup sees the host's files, and is a sandbox all the same
    cgroup = base.cgroup_make("answers")
    try:
        net.api.adopt(session, str(cgroup))
        shell = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        got = subprocess.run([*net.world.enter(), "sh", "-c", shell, str(cgroup), base.PYTHON, "-c", ANSWER, str(net.daemon.socket),
                              str(question)], capture_output=True, text=True, timeout=120, env=base.env())
        assert "200" not in got.stdout.split()[:1] and got.stdout, got
    finally:
        base.cgroup_destroy(cgroup)
    assert net.questions(session)[0]["state"] == "pending"
    assert net.get(session, "https://own.origin.test/")[1] == 403
    # the control: the very same program, in no sandbox
    got = net.control(base.PYTHON, "-c", ANSWER, str(net.daemon.socket), str(question))
    assert got.stdout.startswith("200 "), got
    assert net.get(session, "https://own.origin.test/")[1] == 200


def test_nobody_but_an_approver_answers(net):
    session = net.fresh()
    assert net.get(session, "https://role.origin.test/")[1] == 403
    question = base.eventually(lambda: net.questions(session))[0]["question"]
    got = net.control("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", base.PYTHON, "-c", ANSWER,
                      str(net.daemon.socket), str(question))
    assert not got.stdout.startswith("200"), got
    assert net.questions(session)[0]["state"] == "pending"


def test_what_a_request_says_does_not_reach_a_terminal(net):
    """A path and a method of a sandbox's choosing, as a person sees them."""
    session = net.fresh()
    raw = ("import socket; s = socket.create_connection(('198.51.100.10', 80), 60);"
           "s.sendall(b'GET /%1b]0;x%07\\xc2\\x9b2J<b>\\xe2\\x80\\xae HTTP/1.1\\r\\nHost: esc.origin.test\\r\\n\\r\\n'); print(s.recv(99))")
    net.python(session, raw)
    net.get(session, "http://esc.origin.test/plain")
    listed = net.daemon.cli("questions", session, check=0).stdout
    assert "esc.origin.test" in listed
    assert all(0x20 <= ord(c) < 0x7f or c == "\n" for c in listed), repr(listed)
