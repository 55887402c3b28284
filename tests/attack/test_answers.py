# SPDX-License-Identifier: MIT
"""What a person allowed, against a sandbox that wants more of it: another level or session, another kind, another port, more time."""
import concurrent.futures
import subprocess

import pytest

from lib import base
from lib.asked import Asked
from lib.box import new_session
from lib.inspected import unharmed

POLICY = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 2m, timeout: 5m}
rules:
  - allow: team.origin.test
    sessions: ["*/team-*"]
  - ask: pinned.origin.test
    inspect: false
  - ask: tcp.origin.test:9000
  - ask: short.origin.test
    for: [CONFIDENTIAL]
    max_body: 10
  - ask: "**.origin.test"
"""

# What is said in the clear, whatever the port is for.
RAW = """import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 110)
s.settimeout(110)
for part in sys.argv[3:]:
    s.sendall(part.encode().decode('unicode_escape').encode())
    try:
        print(s.recv(4096).split(b'\\r\\n')[0].decode(), flush=True)
    except OSError as e:
        print(e, flush=True)
"""

STAYS = """import socket
s = socket.create_connection(('tcp.origin.test', 9000), 110)
s.sendall(b'word')
assert s.recv(9)
print('open', flush=True)
s.settimeout(110)
try:
    print(s.recv(9))
except OSError as e:
    print(e)
"""


class Net(Asked):
    def get(self, session, *words):
        return self.spawn("curl", "-sS", "-k", "-m", "110", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def raw(self, session, *words):
        return self.spawn(base.PYTHON, "-c", RAW, *words, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def asked(self, session, **is_):
        """The question that waits and is so."""
        def look():
            return next((q for q in self.questions(session) if all(q[k] == v for k, v in is_.items())), None)

        got = base.eventually(look, 10)
        assert got, self.api.ok("GET", f"/v1/questions?session={session}")
        return got


def code(p):
    return p.communicate(timeout=180)[0]


@pytest.fixture(scope="module")
def net():
    with unharmed(Net, policy=POLICY) as n:
        yield n
        assert n.api.health()["inspectors"] == 2


@pytest.mark.parametrize("another", [["/secret?d=1"], ["/shown", "-H", "x-d: secret"], ["/shown", "-I"]], ids=["url", "header", "method"])
@pytest.mark.parametrize("waits", [True, False])
def test_once_is_for_what_was_shown(net, waits, another):
    """A sandbox asks for something harmless, and hangs up; another request to the same host waits in its place when a person answers
    once, or comes then. It is asked about anew. The control: what was shown comes again, and goes on."""
    session, at = net.fresh(), "https://bait.origin.test"
    bait = net.get(session, at + "/shown")
    shown = net.asked(session, waiting=1)
    bait.terminate()
    bait.communicate(timeout=60)
    net.asked(session, waiting=0)
    switched = [net.get(session, at + another[0], *another[1:])] if waits else []
    if waits:
        net.asked(session, waiting=1)
    net.answer(shown, "once")
    switched = switched or [net.get(session, at + another[0], *another[1:])]
    anew = net.asked(session, waiting=1)
    assert anew["question"] > shown["question"] and anew["url"] == at + another[0]
    assert code(net.get(session, at + "/shown")) == "200", "the control"
    net.answer(anew, "deny")
    assert code(switched[0]) == "403"


def test_what_was_denied_later_is(net):
    """An answer for once that nobody has used does not outlive a later deny of the same host."""
    session, at = net.fresh(), "https://later.origin.test"
    for path, answer in (("/shown", "once"), ("/other", "deny")):
        p = net.get(session, at + path)
        q = net.asked(session, waiting=1)
        p.terminate()
        p.communicate(timeout=60)
        net.asked(session, waiting=0)
        net.answer(q, answer)
    assert code(net.get(session, at + "/shown")) == "403"


@pytest.mark.parametrize("start", ["PUBLIC", "INTERNAL"])
def test_a_level_that_comes_with_an_adopted_cgroup_voids_answers(net, start):
    """The kernel knows the cgroup at a higher level than the session that adopts it, at a generation of its own."""
    higher, session = net.fresh("PUBLIC"), net.fresh(start)
    if start == "PUBLIC":
        net.api.escalate(session, "INTERNAL")
    p = net.get(session, "https://rises.origin.test/")
    net.answer(net.asked(session, host="rises.origin.test"), "host")
    assert code(p) == "200"
    assert code(net.get(session, "https://rises.origin.test/")) == "200", "the control: at its level the answer holds"
    with net.risen_by_adoption(session, higher):
        p = net.get(session, "https://rises.origin.test/")
        anew = net.asked(session, host="rises.origin.test")
        assert anew["level"] == "CONFIDENTIAL"
        net.answer(anew, "deny")
        assert code(p) == "403"


def test_an_adopted_cgroup_is_its_sessions_at_the_inspector(net):
    """It was another's, whose rules allow more; the session that has it now has a sandbox already, which stays."""
    team, session = new_session("team"), net.fresh()
    net.api.create(team, "INTERNAL")
    assert code(net.get(team, "https://team.origin.test/")) == "200", "the control: what the other session may"
    cgroup, stays = base.cgroup_make("answers"), net.spawn("sleep", "600", session=session)
    inside = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup), base.PYTHON, "-c", RAW, "198.51.100.10", "80",
              r"GET / HTTP/1.1\r\nHost: team.origin.test\r\n\r\n"]
    run = lambda: base.popen([*net.world.enter(), *inside], env=base.env(), stdout=subprocess.PIPE, text=True)
    try:
        net.api.adopt(team, str(cgroup))
        assert "200" in run().communicate(timeout=180)[0], "the control: by the cgroup, too"
        base.eventually(lambda: not base.cgroup_pids(cgroup), 3)
        net.api.end(team)
        net.api.adopt(session, str(cgroup))
        p = run()
        net.answer(net.asked(session, host="team.origin.test"), "deny")
        assert "403" in p.communicate(timeout=180)[0]
    finally:
        base.reap(stays)
        base.eventually(lambda: not base.cgroup_pids(cgroup), 3)
        base.cgroup_destroy(cgroup)


def test_a_request_that_was_seen_does_not_open_a_connection_that_is_not(net):
    session = net.fresh()
    seen = net.raw(session, "pinned.origin.test", "443", r"POST / HTTP/1.1\r\nHost: pinned.origin.test:443\r\nContent-Length: 0\r\n\r\n")
    q = net.asked(session)
    assert (q["kind"], q["method"]) == ("write", "POST")
    net.answer(q, "host")
    assert seen.communicate(timeout=180)[0]
    p = net.get(session, "https://pinned.origin.test/")
    net.answer(net.asked(session, kind="connect"), "deny")
    assert code(p) == "000"
    p = net.get(session, "https://pinned.origin.test/")
    assert code(p) == "000", "the deny is the connection's"


def test_the_url_that_is_shown_says_what_is_dialled(net):
    """Its port and whether it is in the clear, whatever the request says of itself."""
    session = net.fresh()
    plain = net.raw(session, "shown.origin.test", "443", r"GET /a HTTP/1.1\r\nHost: shown.origin.test\r\n\r\n")
    q = net.asked(session)
    assert (q["url"], q["port"]) == ("http://shown.origin.test:443/a", 443)
    net.answer(q, "deny")
    plain.communicate(timeout=180)
    lies = net.raw(session, "lies.origin.test", "80", r"CONNECT lies.origin.test:80 HTTP/1.1\r\nHost: lies.origin.test:80\r\n\r\n",
                   r"GET https://lies.origin.test:80/a HTTP/1.1\r\nHost: lies.origin.test:80\r\n\r\n")
    q = net.asked(session, host="lies.origin.test")
    assert (q["url"], q["port"]) == ("http://lies.origin.test/a", 80)
    net.answer(q, "deny")
    assert "403" in lies.communicate(timeout=180)[0]


def test_what_was_allowed_in_tls_does_not_go_in_the_clear(net):
    session = net.fresh()
    p = net.get(session, "https://clear.origin.test/")
    net.answer(net.asked(session), "host")
    assert code(p) == "200"
    plain = net.raw(session, "clear.origin.test", "443", r"GET / HTTP/1.1\r\nHost: clear.origin.test:443\r\n\r\n")
    net.answer(net.asked(session, url="http://clear.origin.test:443/"), "deny")
    assert "403" in plain.communicate(timeout=180)[0]
    assert code(net.get(session, "https://clear.origin.test/")) == "200"


def test_once_for_a_time_is_cut_when_that_is_over(net):
    session = net.fresh()
    p = net.spawn(base.PYTHON, "-c", STAYS, session=session, stdout=subprocess.PIPE, text=True)
    net.answer(net.asked(session), "once", **{"for": "8s"})
    assert p.stdout.readline() == "open\n"
    assert "reset" in p.communicate(timeout=120)[0]


def test_of_two_approvers_at_once_one_has_answered(net):
    """Each round eight of them, half of whom deny: one is heard, and what waits does as that one said."""
    for _ in range(3):
        session = net.fresh()
        p = net.get(session, "https://race.origin.test/")
        q, words = net.asked(session), ["host", "deny"] * 4
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(lambda word: net.api.ask("POST", f"/v1/questions/{q['question']}/answer", {"answer": word}), words))
        heard = [word for word, (status, _) in zip(words, got) if status == 200]
        assert len(heard) == 1 and all(status == 409 for status, _ in got if status != 200), got
        assert net.api.ok("GET", f"/v1/questions/{q['question']}")["answer"] == heard[0]
        assert code(p) == ("200" if heard == ["host"] else "403")


FLOOD = """import concurrent.futures, socket, sys
def ask(i):
    try:
        s = socket.create_connection(('198.51.100.10', 80), 30)
        s.sendall(f'GET / HTTP/1.1\\r\\nHost: flood{i}.origin.test\\r\\nConnection: close\\r\\n\\r\\n'.encode())
        s.settimeout(30)
        return s.recv(4096)
    except OSError as e:
        return str(e).encode()
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    list(pool.map(ask, range(int(sys.argv[1]))))
"""


def test_a_flood_of_unknown_hosts_hides_nobodys_question(net):
    """One sandbox asks for 2,000 hosts: 32 of them are questions, and another session's is there and is answered."""
    flooder, other = net.fresh(), net.fresh()
    flood = net.spawn(base.PYTHON, "-c", FLOOD, "2000", session=flooder, stdout=subprocess.PIPE, text=True)
    try:
        assert base.eventually(lambda: len(net.questions(flooder)) == 32, 60)
        p = net.get(other, "https://heard.origin.test/")
        net.answer(net.asked(other), "once")
        assert code(p) == "200"
        assert len(net.questions(flooder)) <= 32
        listed = net.api.ok("GET", "/v1/questions?state=pending")["questions"]
        assert sum(q["session"] == flooder for q in listed) <= 32
    finally:
        net.api.end(flooder)
        base.reap(flood)
    assert not net.questions(flooder)


# The length of its body is not announced, and it comes late.
LATE = """import socket, sys
s = socket.create_connection(('short.origin.test', 80), 110)
s.settimeout(110)
s.sendall(b'POST / HTTP/1.1\\r\\nHost: short.origin.test\\r\\nTransfer-Encoding: chunked\\r\\nConnection: close\\r\\n\\r\\n')
sys.stdin.readline()
try:
    s.sendall(b'1000\\r\\n' + b'x' * 4096 + b'\\r\\n0\\r\\n\\r\\n')
    print(s.recv(4096).split(b' ')[1].decode())
except OSError as e:
    print(e)
"""


@pytest.mark.parametrize("start,end,expected", [("INTERNAL", "INTERNAL", "200"), ("CONFIDENTIAL", "CONFIDENTIAL", "413"), ("INTERNAL", "CONFIDENTIAL", "413")])
def test_what_is_asked_anew_after_a_rise_goes_by_the_bounds_of_that_rule(net, start, end, expected):
    """The first two are the controls: one level has a bound, the other has none."""
    session = net.fresh(start)
    p = base.popen(net.argv(base.PYTHON, "-c", LATE, session=session), env=base.env(NETPAWL_SOCKET=str(net.daemon.socket)),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    net.asked(session, level=start)
    if start != end:
        net.api.escalate(session, end)
    net.answer(net.asked(session, level=end), "once")
    out, err = p.communicate("go\n", timeout=180)
    assert out.strip() == expected, (out, err)
    if expected == "413":
        assert net.api.wait_events(lambda got: got, session=session, reason="body_too_large")
