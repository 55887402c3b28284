# SPDX-License-Identifier: MIT
"""netpawl top, as somebody at a terminal meets it: a tmux of 80x24."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from lib import base, terminal
from lib.asked import Asked
from lib.deceived import Deceived, WORDS
from lib.world import FAR

RULES = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 2m, timeout: 15m}
rules:
  - allow: open.origin.test
  - allow: get-only.origin.test
    methods: GET
  - ask: asked.origin.test
credentials:
  spare-key:
    source: {file: /nonexistent/netpawl-key}
    for: api.origin.test
  token:
    source: {file: TOKEN}
    for: open.origin.test
    inject: always
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        folder = base.tempdir("top")
        stack.callback(base.drop_tempdir, folder)
        token = folder / "token"
        token.write_text("hunter2-and-more\n")
        token.chmod(0o600)
        yield Asked(stack, policy=RULES.replace("TOKEN", str(token)))


# A program with a name that clears screens, at an address that nobody may reach.
NAMED = f"""import socket
open("/proc/self/comm", "wb").write(b"\\x1b[2J\\x1b]0;x\\x07")
socket.socket().connect_ex(("{FAR[4]}", 9999))
"""


def Terminal(net, *words, **kw):
    return terminal.Terminal(["top", "--socket", str(net.daemon.socket), *words], **kw)


def curl(net, session, *words):
    return net.spawn("curl", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_traffic_filters_detail_and_a_clean_end(net):
    session = net.fresh()
    with Terminal(net, "--session", session) as t:
        t.shows(r"netpawl traffic .*0 pending", "1-4 views")
        for _ in range(3):
            assert curl(net, session, "http://open.origin.test/a").communicate(timeout=100)[0] == "200"
        assert curl(net, session, "http://get-only.origin.test/b", "-d", "x").communicate(timeout=100)[0] == "403"
        t.shows(r"allowed x3 GET http://open.origin.test/a 200", r"REFUSED POST http://get-only.origin.test/b 403 +\S+", r"3 allowed, 1 refused")
        t.type("r")
        t.shows("REFUSED POST", "verdict:refused", but=["GET http://open"])
        t.type("r")
        t.shows("GET http://open")
        t.type("/", "host:open", "Enter")
        t.shows(r"host:open \|", but=["POST http", "GET http"])  # no such host: names below it, not in it
        t.type("/", "C-u", "host:origin.test -url:/b", "Enter")
        t.shows("GET http://open", but=["POST http"])
        t.type("/", "C-u", "hots:x", "Enter")
        t.shows('there is no key "hots"', "GET http://open")
        t.type("Escape")
        t.type("/", "C-u", "Enter")
        t.shows("POST http", "GET http")
        t.type("r", "Enter")
        t.shows(r"reason +not_in_policy|reason +\w+", r"url +http://get-only.origin.test/b", f"session +{session}")
        t.type("Escape", "2")
        t.shows(r"SESSION +LEVEL +MODE", re.escape(session))
        t.type("?")
        t.shows("the selected question", "q +quit")
        t.type("q")
        t.shows("left with 0", but=["1-4 views"])


def test_a_question_is_answered_with_a_key(net):
    session = net.fresh()
    with Terminal(net) as t:
        t.shows("netpawl traffic")
        p = curl(net, session, "https://asked.origin.test/d")
        t.shows(rf"3: \d+ {session} wants GET https://asked.origin.test/d +\(\d+s left\)", "1 pending")
        t.type("3")
        t.shows(rf"{session} wants GET", "rule policy.yaml:|rule \\S+:\\d+", "d deny  o once")
        t.type("o")
        assert p.communicate(timeout=100)[0] == "200"
        t.shows("question \\d+: allowed", "Nothing waits for a person", "0 pending")
        p = curl(net, session, "https://asked.origin.test/e")
        t.shows(rf"{session} wants GET https://asked.origin.test/e")
        answer(t, "d", "question \\d+: denied")
        assert p.communicate(timeout=100)[0] == "403"


def answer(t, key, came):
    """A key that comes as the question does is not meant for it: pressed until it counts."""
    def pressed():
        t.type(key)
        return base.for_a_while(lambda: re.search(came, t.text()), 1)

    assert base.eventually(pressed, 10), t.text()


def test_a_run_that_waits_is_answered_too(net):
    session = net.fresh()
    first, second = net.write_run(session, "sh", "-c", "echo one"), net.write_run(session, "echo", "two")
    with Terminal(net) as t:
        t.shows("netpawl traffic")
        t.type("3")
        text = t.shows(rf"run-{first} {session} wants to run sh -c echo one", rf"run-{second} {session} wants to run echo two", "2 pending")
        assert text.index(f"run-{first}") < text.index(f"run-{second}"), "in the order that they came"
        answer(t, "h", "a run is started with o, or denied with d")
        answer(t, "d", f"run {first}: denied")
        t.shows("1 pending", rf"run-{second} ", but=[f"run-{first} "])
        assert [net.api.ok("GET", f"/v1/runs/{run}")["state"] for run in (first, second)] == ["rejected", "pending"]
        answer(t, "d", f"run {second}: denied")
        t.shows("Nothing waits for a person")


def test_a_key_is_for_the_question_that_was_looked_at(net):
    """Others come and go in the list: the selected one stays selected, and none that takes its place is answered by a key that was meant for it."""
    session = net.fresh()
    runs = [net.write_run(session, "echo", str(i)) for i in range(3)]
    with Terminal(net) as t:
        t.shows("netpawl traffic")
        t.type("3")
        t.shows(*(f"run-{run} " for run in runs))
        t.type("j", "Enter")
        t.shows(rf"run +{runs[1]}\b")
        net.api.ok("POST", f"/v1/questions/run-{runs[0]}/answer", {"answer": "deny"})
        t.shows("2 pending")
        answer(t, "d", f"run {runs[1]}: denied")
        # The one that is looked at is answered elsewhere, and a key is pressed at once.
        left = runs[2]
        t.shows("1 pending", rf"run-{left} .*echo 2")
        other = net.write_run(session, "echo", "other")
        t.shows("2 pending", f"run-{other}")
        net.api.ok("POST", f"/v1/questions/run-{left}/answer", {"answer": "deny"})
        for _ in range(200):
            t.type("d")
            if "NOT SENT" in t.text() or f"run-{left}" not in t.text():
                break
        t.shows(f"NOT SENT: run {other} has only just come|run {left} is NOT answered")
        assert net.api.ok("GET", f"/v1/runs/{other}")["state"] == "pending"
    net.api.ok("POST", f"/v1/questions/run-{other}/answer", {"answer": "deny"})


def test_since(net):
    session = net.fresh()
    p = net.spawn("curl", "-sS", "-m", "100", "-o", "/dev/null", "http://open.origin.test/[1-260]", session=session)
    assert p.wait(100) == 0
    assert base.eventually(lambda: len([e for e in net.api.events(session=session, limit=1000) if e.get("url")]) == 260)
    with Terminal(net, "--session", session) as t:
        t.shows(r"netpawl traffic +(1\d\d|200) allowed")
    with Terminal(net, "--session", session, "--since", "1h") as t:
        t.shows(r"netpawl traffic +260 allowed", "GET http://open.origin.test/260")
        assert curl(net, session, "http://open.origin.test/after").communicate(timeout=100)[0] == "200"
        t.shows(r"netpawl traffic +261 allowed", "GET http://open.origin.test/after")
    p = subprocess.run([str(base.NETPAWL), "top", "--since", "soon"], capture_output=True, text=True, timeout=60)
    assert p.returncode == 2 and "--since takes" in p.stderr


@pytest.mark.parametrize("word", WORDS)
def test_hostile_words_in_every_field(net, deceived, word):
    """Of events, sessions, questions, runs and credentials, in each view and in the detail of each row."""
    deceived.say(word)
    with Terminal(deceived, size=(100, 30)) as t:
        for view, (name, member) in enumerate({"traffic": "seq", "sessions": "session", "questions": "id", "credentials": "name"}.items(), 1):
            t.type(str(view))
            t.shows(f"netpawl {name}", r"\n(?!Nothing waits|\n).*\n.*\n", but=["NO DAEMON", r" 0 sessions"])
            for keys in (["g", "Enter"], ["Escape"], ["j", "Enter"], ["Escape"]):
                t.type(*keys)
                detail = rf"\n{member} +[^ ]"
                text = t.shows(*([detail] if "Enter" in keys else []), rf"\Anetpawl {name}", but=["NO DAEMON"] + ([] if "Enter" in keys else [detail]))
                lines = text.rstrip("\n").splitlines()
                assert len(lines) == 30 and all(len(line) <= 100 for line in lines), text
                assert re.search("1-4 views|d deny  o once", lines[-1]), text
                assert all(" " <= c <= "~" for line in lines for c in line), "nothing but printable ASCII"
        t.type("q")
        t.shows("left with 0")


@pytest.fixture(scope="module")
def deceived(net):
    session = net.fresh()
    curl(net, session, "http://open.origin.test/a").communicate(timeout=100)
    curl(net, session, "http://get-only.origin.test/b", "-d", "x").communicate(timeout=100)
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "customers.csv"})
    run, p = net.write_run(session, "echo", "one"), curl(net, session, "https://asked.origin.test/d")
    assert base.eventually(lambda: len(net.questions(session)) == 2)
    with Deceived(net.daemon) as d:
        class Net:
            daemon, say = d, d.say
        yield Net
    for q in net.questions(session):
        net.api.ok("POST", f"/v1/questions/{q['id']}/answer", {"answer": "deny"})
    p.communicate(timeout=100)


def test_credentials_by_name_with_their_last_use(net):
    session = net.fresh()
    with Terminal(net) as t:
        t.shows("netpawl traffic")
        t.type("4")
        t.shows("netpawl credentials", r"CREDENTIAL +STATE", r"spare-key +missing +file +0 +- +never", r"token +ready +file +0 +- +never")
        assert curl(net, session, "https://open.origin.test/with").communicate(timeout=100)[0] == "200"
        text = t.shows(r"token +ready +file +1 +- +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")
        assert "hunter2" not in text
        t.type("j", "Enter")
        assert "hunter2" not in t.shows(r"name +token", r"uses +1")
        t.type("q")
        t.shows("left with 0")


def test_what_comes_while_it_is_paused_comes_later(net):
    session = net.fresh()
    with Terminal(net, "--session", session) as t:
        t.shows("netpawl traffic", "session_created|a session was created")
        t.type("Space")
        t.shows("PAUSED")
        curl(net, session, "http://open.origin.test/paused").communicate(timeout=100)
        t.shows("1 allowed", but=["GET http://open.origin.test/paused"])
        t.type("Space")
        t.shows("GET http://open.origin.test/paused", but=["PAUSED"])


def test_it_is_resized_and_small(net):
    session = net.fresh()
    with Terminal(net, "--session", session) as t:
        t.shows("q quit")
        t.tmux("resize-window", "-t", "t", "-x", "40", "-y", "10")
        t.shows("netpawl traffic", "1-4 views")
        assert len(t.text().rstrip("\n").splitlines()) == 10 and all(len(line) <= 40 for line in t.text().splitlines())
        t.tmux("resize-window", "-t", "t", "-x", "20", "-y", "2")
        t.tmux("resize-window", "-t", "t", "-x", "120", "-y", "40")
        t.shows("q quit", "a session was created")
        assert len(t.text().rstrip("\n").splitlines()) == 40
        t.type("q")
        t.shows("left with 0")


@pytest.mark.parametrize("how", [{"term": "vt100"}, {"term": "xterm", "env": ["NO_COLOR=1"]}], ids=["vt100", "no-color"])
def test_without_colour(net, how):
    session = net.fresh()
    with Terminal(net, "--session", session, **how) as t:
        t.shows("netpawl traffic", "a session was created")
        assert not re.search(r"\x1b\[[0-9;]*3[1-6]", t.tmux("capture-pane", "-p", "-e", "-t", "t"))
        t.type("q")
        t.shows("left with 0")


@pytest.mark.parametrize("term, why", [("dumb", "cannot be drawn on"), ("no-such-terminal", "not known")])
def test_a_terminal_that_cannot_be_drawn_on(net, term, why):
    with Terminal(net, term=term) as t:
        t.shows(why, "left with 1")


def test_no_terminal_at_all(net):
    p = subprocess.run([str(base.NETPAWL), "top", "--socket", str(net.daemon.socket)], capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    assert p.returncode == 1 and "needs a terminal" in p.stderr
    p = subprocess.run([str(base.NETPAWL), "top", "--filter", "x:y"], capture_output=True, text=True, timeout=60)
    assert p.returncode == 2 and "there is no key" in p.stderr


def test_a_signal_leaves_the_terminal_as_it_was(net):
    with Terminal(net) as t:
        t.shows("netpawl traffic")
        os.kill(t.pid(), 15)
        t.shows("left with 0", but=["1-4 views"])
        t.type("stty -a", "Enter")
        t.shows(r"(^|\s)icanon", r"(^|\s)echo(\s|;)")
        # Nobody of it is left.
        assert base.eventually(lambda: not subprocess.run(["pgrep", "-f", f"netpawl top --socket {net.daemon.socket}"],
                                                          capture_output=True, text=True).stdout, 10)


def test_a_line_that_is_slow(net):
    """A terminal that takes a few hundred bytes a second: keys are heard all the same, and what is drawn last is whole."""
    session, (main, side) = net.fresh(), pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    p = base.popen([str(base.NETPAWL), "top", "--session", session, "--socket", str(net.daemon.socket)], stdin=side, stdout=side, stderr=side,
                   env={**os.environ, "TERM": "xterm"})
    os.close(side)
    got = b""
    try:
        for i in range(3):
            curl(net, session, f"http://open.origin.test/{i}").communicate(timeout=100)
        for _ in range(40):  # 40 bytes at a time, ten times a second; what is drawn may be less than that
            got += os.read(main, 40) if select.select([main], [], [], 0)[0] else b""
            time.sleep(0.1)
        os.write(main, b"q")
        with contextlib.suppress(OSError):  # EIO: it is gone
            while chunk := os.read(main, 40):
                got += chunk
        assert p.wait(20) == 0 and b"netpawl traffic" in got and got.rstrip().endswith((b"\x1b[?1l\x1b>", b"\x1b[?1049l\x1b[23;0;0t\r\x1b[?1l\x1b>"))
    finally:
        base.reap(p)
        os.close(main)


def test_strange_words_cannot_draw(net):
    session = net.fresh()
    with Terminal(net, "--session", session) as t:
        t.shows("netpawl traffic")
        curl(net, session, "-X", "GET", "--path-as-is", "-g", "http://get-only.origin.test/" + "\u202e\U0001f600%1b[2J" + "z" * 3000, "-d", "x").communicate(timeout=100)
        text = t.shows("REFUSED|refused")
        assert text.splitlines()[0].startswith("netpawl traffic") and "1-4 views" in text
        p = net.spawn(base.PYTHON, "-I", "-c", NAMED, session=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.communicate(timeout=100)
        t.type("/", f"address:{FAR[4]}", "Enter")
        t.shows(rf"REFUSED .*{re.escape(FAR[4])}")
        t.type("Enter")
        text = t.shows(r"comm +\?\[2J\?\]0;x\?", "netpawl traffic", "1-4 views")
        assert "\u202e" not in text and "\x1b" not in text


def test_the_daemon_goes_and_comes(world, make_daemon):
    d = make_daemon()
    d.start()
    d.api.create("top/before")

    class Net:
        daemon = d

    with Terminal(Net) as t:
        t.shows("netpawl traffic", "top/before")
        assert d.stop() == 0
        t.shows("NO DAEMON")
        d.start()
        t.shows("netpawl is ready|netpawld is ready", but=["NO DAEMON"])
        d.api.create("top/after")
        t.shows("top/after", "top/before")
        t.type("q")
        t.shows("left with 0")
