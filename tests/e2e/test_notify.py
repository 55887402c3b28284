# SPDX-License-Identifier: MIT
"""approval: notify: somebody is told that a question waits, and nothing else happens because of it."""
import contextlib
import json
import os
import socket
import subprocess

import pytest

from lib import base
from lib.asked import Asked

POLICY = """version: 1
levels: {PUBLIC: FULL, INTERNAL: PROXIED, CONFIDENTIAL: PROXIED, SECRET: NONE}
approval: {hold: 100ms, timeout: 15m%s}
rules:
  - ask: ["**.origin.test", origin.test]
"""
# Who it runs as, what it was given and what it has.
WITNESS = """#!/usr/bin/python3 -I
import json, os, sys
fds = {n: os.readlink(f"/proc/self/fd/{n}") for n in sorted(os.listdir("/proc/self/fd"), key=int) if os.path.exists(f"/proc/self/fd/{n}")}
with open("%s", "a") as f:
    f.write(json.dumps({"argv": sys.argv[1:], "uid": os.getuid(), "groups": os.getgroups(), "env": dict(os.environ), "fds": fds,
                        "network": open("/proc/net/dev").read().count(":"), "stdin": sys.stdin.read()}) + "\\n")
"""
SERVER = """import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.path, self.rfile.read(int(self.headers["content-length"])).decode().strip(), flush=True)
        self.send_response(int(sys.argv[1])); self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()
"""


class Net(Asked):
    def use(self, notify):
        new = self.policy.with_suffix(".new")
        new.write_text(POLICY % (f", notify: {notify}" if notify else "") + base.PERMITS)
        os.replace(new, self.policy)
        self.api.ok("POST", "/v1/policy/reload", {})

    def ask(self, session, *words):
        got = subprocess.run(self.argv("curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session), env=self.env(),
                             capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        assert got.stdout == "403", got
        return self.questions(session)[0]

    def counts(self):
        return self.api.health()["notify"]

    @contextlib.contextmanager
    def webhook(self, status=200):
        p = base.popen([*self.world.enter(), base.PYTHON, "-I", "-c", SERVER, str(status)], stdout=subprocess.PIPE, text=True)
        try:
            yield int(p.stdout.readline()), p.stdout
        finally:
            base.reap(p)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        n = Net(stack, policy=POLICY % "")
        os.chmod(n.daemon.dir, 0o755)
        n.shared = n.daemon.dir / "notify"
        n.shared.mkdir()
        n.shared.chmod(0o777)
        yield n


def script(net, name, text):
    path = net.shared / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_command_gets_the_id_and_a_line_and_nothing_else(net):
    out = net.shared / "told"
    witness = script(net, "witness", WITNESS % out)
    net.use(f'{{command: ["{witness}", "own"]}}')
    session = net.fresh()
    before = net.counts()
    q = net.ask(session, "https://told.origin.test/secret-path?token=secret-query", "-H", "Authorization: Bearer secret-header", "-d", "secret-body")
    run = net.write_run(session, "/bin/echo", "secret-argument")
    assert base.eventually(lambda: out.exists() and len(out.read_text().splitlines()) == 2, 60), net.daemon.text()[-2000:]
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(t["argv"] for t in told) == sorted([["own", str(q["question"]), f"{session} asks to write to told.origin.test:443"],
                                                      ["own", f"run-{run}", f"{session} asks to run echo with class write"]])
    assert "secret" not in out.read_text()
    for t in told:
        assert t["uid"] not in (0, os.getuid()) and t["groups"] in ([], [t["uid"]]) and t["stdin"] == "" and t["network"] == 1
        assert set(t["env"]) <= {"PATH", "LANG", "HOME", "LC_CTYPE"}
        # its own directory and file, beside the three that it was started with
        assert {n for n, to in t["fds"].items() if "/proc/" not in to and "/witness" not in to and "/told" not in to} <= {"0", "1", "2"}, t["fds"]
    assert base.eventually(lambda: net.counts()["sent"] == before["sent"] + 2)
    assert net.counts()["failed"] == before["failed"]
    assert "notify.sent" in net.daemon.cli("status", check=0).stdout


def test_a_loopback_url_is_posted_to(net):
    with net.webhook() as (port, out):
        net.use(f"{{url: 'http://127.0.0.1:{port}/hook?x=1'}}")
        session = net.fresh()
        run = net.write_run(session, "x" * 300 + "\x1b[2J")
        path, _, body = out.readline().partition(" ")
        got = json.loads(body)
        assert path == "/hook?x=1" and set(got) == {"id", "summary"} and got["id"] == f"run-{run}"
        assert got["summary"].startswith(f"{session} asks to run xxx") and len(got["summary"]) < 256 and got["summary"].isprintable()
    before = net.counts()["failed"]
    net.write_run(session, "true")  # nobody listens any more
    assert base.eventually(lambda: net.counts()["failed"] == before + 1, 30)
    with net.webhook(500) as (port, out):
        net.use(f"{{url: 'http://127.0.0.1:{port}/'}}")
        net.write_run(session, "true")
        assert out.readline()
        assert base.eventually(lambda: net.counts()["failed"] == before + 2, 30)
    assert "notify: question run-" in net.daemon.text()


def test_a_unix_socket_gets_a_line(net):
    path = net.shared / "sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(60)
    listener.bind(str(path))
    listener.listen()
    try:
        net.use(f"{{socket: {path}}}")
        session = net.fresh()
        run = net.write_run(session, "true")
        c, _ = listener.accept()
        with c, c.makefile() as lines:
            assert json.loads(lines.readline()) == {"id": f"run-{run}", "summary": f"{session} asks to run true with class write"}
            assert lines.readline() == ""
    finally:
        listener.close()


def test_a_socket_of_a_sandbox_is_told_nothing(net):
    """The control is the test above."""
    path = net.shared / "inside"
    cgroup = base.cgroup_make("listens")
    session = net.fresh("PUBLIC")
    code = ("import socket, sys\ns = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up', flush=True)\n"
            "while True: print(repr(s.accept()[0].recv(4096)), flush=True)")
    p = None
    try:
        net.api.adopt(session, str(cgroup))
        p = base.popen([*net.world.enter(), "sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup), base.PYTHON, "-I", "-c", code,
                        str(path)], stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "up\n"
        before = net.counts()["failed"]
        net.use(f"{{socket: {path}}}")
        net.write_run(net.fresh(), "true")
        assert base.eventually(lambda: net.counts()["failed"] == before + 1, 30)
        p.kill()
        assert "summary" not in p.communicate(timeout=60)[0]
    finally:
        if p and p.poll() is None:
            base.reap(p)
        net.api.end(session)
        base.cgroup_destroy(cgroup)


def test_one_that_hangs_or_fails_changes_nothing(net):
    """Its process ends after its time; questions are asked and answered meanwhile."""
    pids = net.shared / "pids"
    net.use(f'{{command: ["{script(net, "hangs", f"#!/bin/sh{chr(10)}echo x >> {pids}{chr(10)}exec sleep 1000{chr(10)}")}"]}}')
    before = net.counts()
    session = net.fresh()
    for i in range(6):
        net.write_run(session, "true", str(i))
    q = net.ask(session, "https://hangs.origin.test/")
    net.answer(q, "host")
    got = subprocess.run(net.argv("curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "https://hangs.origin.test/", session=session),
                         env=net.env(), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert got.stdout == "200"
    assert base.eventually(lambda: net.counts()["failed"] >= before["failed"] + 4, 60), net.counts()
    assert "it took too long" in net.daemon.text()
    net.use(f'{{command: ["{script(net, "fails", "#!/bin/sh%secho no chat here >&2%sexit 3%s" % (3 * (chr(10),)))}"]}}')
    failed = net.counts()["failed"]
    net.write_run(net.fresh(), "true")
    assert base.eventually(lambda: "exit code 3: no chat here" in net.daemon.text() or net.counts()["failed"] > failed + 3, 60)
    net.use('{command: ["/no/such/program"]}')
    failed = net.counts()["failed"]
    net.write_run(net.fresh(), "true")
    assert base.eventually(lambda: net.counts()["failed"] > failed, 60)
    net.use(None)
    sent = net.counts()
    net.write_run(net.fresh(), "true")
    assert net.counts()["waiting"] == 0 and net.counts()["sent"] == sent["sent"]


def test_a_flood_of_one_session_keeps_nobody_elses_news_out(net):
    out = net.shared / "flood"
    ready = net.shared / "ready"  # until then the command waits: more is to be told than there is room for
    text = f"#!/bin/sh\ni=0; while [ ! -e {ready} ] && [ $((i += 1)) -lt 600 ]; do sleep 0.1; done\necho $1 $2 >> {out}\n"
    net.use(f'{{command: ["{script(net, "slow", text)}"]}}')
    busy, quiet = net.fresh(), net.fresh()
    before = net.counts()
    since = lambda what: net.counts()[what] - before[what]
    for i in range(60):
        net.write_run(busy, "true", str(i))
    run = net.write_run(quiet, "true")
    ready.touch()
    assert base.eventually(lambda: out.exists() and f"run-{run} " in out.read_text(), 60), net.counts()
    assert base.eventually(lambda: since("sent") + since("failed") + since("dropped") == 61, 60), net.counts()
    assert since("dropped") and since("sent") <= len(out.read_text().splitlines()) <= since("sent") + since("failed"), net.counts()
    net.api.end(busy)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_still_waits_is_told_once_more_after_a_restart(net, how):
    out = net.shared / f"again-{how}"
    tells = f'{{command: ["{script(net, f"again-{how}.sh", f"#!/bin/sh{chr(10)}echo $1 $2 >> {out}{chr(10)}")}"]}}'
    lines = lambda: out.read_text().splitlines() if out.exists() else []
    net.use(None)
    session = net.fresh()
    q = net.ask(session, "https://again.origin.test/")
    over = net.ask(session, "https://over.origin.test/")
    net.answer(over, "deny")
    run, rejected = (net.api.ok("POST", "/v1/runs", {"session": session, "class": "write", "command": [f"/bin/{c}"]})["run"] for c in ("true", "false"))
    net.api.ok("POST", f"/v1/runs/{rejected}/reject", {"reason": "a test"})
    net.use(tells)
    net.daemon.restart(how)
    mine = lambda: sorted(line for line in lines() if session in line)
    want = sorted([f"{q['question']} {session} asks to read from again.origin.test:443", f"run-{run} {session} asks to run true with class write"])
    assert base.eventually(lambda: len(mine()) >= 2 and not net.counts()["waiting"], 60), (lines(), net.daemon.text()[-2000:])
    assert mine() == want, "each once, and nothing that is over"
    net.api.end(session)
    net.use(None)


def test_the_example_posts_to_a_webhook(net):
    example = script(net, "notify.py", (base.ROOT / "examples/notify.py").read_text())
    with net.webhook() as (port, out):
        net.use(f'{{command: ["{example}", "http://127.0.0.1:{port}/hooks/abc"], network: true}}')
        session, before = net.fresh(), net.counts()["sent"]
        run = net.write_run(session, "true")
        path, _, body = out.readline().partition(" ")
        text = json.loads(body)["text"]
        assert base.eventually(lambda: net.counts()["sent"] > before, 60), "the webhook goes when it has answered"
        assert path == "/hooks/abc" and f"{session} asks to run true" in text and f"netpawl answer run-{run} " in text
    sent = net.counts()["failed"]
    net.write_run(session, "true")
    assert base.eventually(lambda: net.counts()["failed"] == sent + 1, 60) and "Connection refused" in net.daemon.text()


@pytest.mark.parametrize("notify, told", [
    ("true", "takes a mapping"), ("{}", "one of"), ("{command: [true]}", "whole path"), ("{socket: sock}", "whole path"),
    ("{url: 'http://192.0.2.1/'}", "loopback"), ("{url: 'https://127.0.0.1/'}", "http://"), ("{url: 'http://localhost/'}", "loopback"),
    ("{url: \"http://127.0.0.1/a b\"}", "character"), ("{url: 'http://127.0.0.1/', socket: /a}", "one of"),
    ("{url: 'http://127.0.0.1/', network: true}", "for a command"), ("{comand: [/x]}", "command")])
def test_what_is_wrong_is_said(tmp_path, notify, told):
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\napproval: {{notify: {notify}}}\n")
    got = subprocess.run([str(base.NETPAWL), "policy", "check", str(path)], capture_output=True, text=True, timeout=60)
    assert got.returncode == 1 and told in got.stdout + got.stderr and "policy.yaml:2:" in got.stdout + got.stderr, got


def test_health_counts_questions(net):
    net.use(None)
    session = net.fresh()
    before = net.api.health()["questions"]
    q = net.ask(session, "https://counts.origin.test/")
    now = net.api.health()["questions"]
    assert (now["pending"], now["asked"]) == (before["pending"] + 1, before["asked"] + 1) and now["waiting"] == 0
    net.answer(q, "deny")
    run = net.write_run(session, "true")
    now = net.api.health()["questions"]
    assert (now["pending"], now["denied"], now["runs_pending"]) == (before["pending"], before["denied"] + 1, before["runs_pending"] + 1)
    net.api.ok("POST", f"/v1/runs/{run}/reject", {"reason": "a test"})
    assert net.api.health()["questions"]["runs_pending"] == before["runs_pending"]
    assert "questions.pending" in net.daemon.cli("status", check=0).stdout
