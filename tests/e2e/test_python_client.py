# SPDX-License-Identifier: MIT
"""clients/python/netpawl.py against a real daemon. The client runs as a program would: in a process of its own, in HOST."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from lib import base
from lib.box import new_session
from lib.world import FAR

ROOT = base.ROOT
REACH = f"import socket; socket.create_connection(('{FAR[4]}', 9000), 60); print('through')"
PRELUDE = "import json, sys, threading, time\nimport netpawl\nfrom netpawl import Client, Error, Rejected, Session\n" \
          "user, name = sys.argv[1].split('/')\nsession = Session(user, name)\n"


def env(daemon):
    return base.env(NETPAWL_SOCKET=str(daemon.socket), PYTHONPATH=str(ROOT / "clients" / "python"),
                    PATH=f"{base.NETPAWL.parent}:{os.environ['PATH']}")


def client(daemon, code, session=None, prelude=PRELUDE):
    """Runs the code; what it printed as JSON."""
    got = subprocess.run([*daemon.world.enter(), sys.executable, "-c", prelude + code, session or new_session("py")],
                         capture_output=True, text=True, timeout=600, env=env(daemon), cwd="/")
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def test_session_and_dataset(daemon, api):
    name = new_session("py")
    got = client(daemon, """
a = session.show()
b = session.add_private_dataset("customers.csv", "SECRET", "ticket 4711")
print(json.dumps([a["mode"], b["mode"], b["raised"], session.level, session.mode, session.show()["datasets"][0]["name"]]))
""", name)
    assert got == ["FULL", "NONE", True, "SECRET", "NONE", "customers.csv"]
    assert api.show(name)["datasets"][0]["reason"] == "ticket 4711"


def test_run(daemon):
    got = client(daemon, """
box = session.sandbox(timeout="30s", memory="512MiB", best_effort=True)
r = box.run(["sh", "-c", "cat; echo err >&2; echo kept > /workspace/f; exit 3"], input="hello")
s = box.run(["cat", "/workspace/f"], chdir="/workspace")
t = box.run(["sleep", "100"], timeout="1s")
print(json.dumps([r.exit_code, r.ok, r.stdout, r.stderr, s.stdout, s.ok, t.timed_out, t.killed_by, t.exit_code]))
""")
    assert got == [3, False, "hello", "err\n", "kept\n", True, True, "timeout", 124]


def test_private_data_closes_the_network(daemon):
    got = client(daemon, f"""
box = session.sandbox()
before = box.run(["python3", "-c", {REACH!r}])
none = box.run(["python3", "-c", {REACH!r}], egress="none")
session.add_private_dataset("d", "SECRET")
after = box.run(["python3", "-c", {REACH!r}])
print(json.dumps([before.stdout, none.stdout, none.refused > 0, after.stdout, after.ok]))
""")
    assert got == ["through\n", "", True, "", False]


def test_approvals(daemon):
    got = client(daemon, """
client, out = Client(), []
def decide(fn):
    while not client.runs(session.name, "pending"):
        time.sleep(0.05)
    out.append(fn(client.runs(session.name, "pending")[0]["run"])["run"])
for fn in (lambda i: client.approve(i, "fine"), lambda i: client.reject(i, "not today")):
    person = threading.Thread(target=decide, args=(fn,))
    person.start()
    try:
        out.append(session.sandbox().run(["echo", "ran"], egress="write").stdout)
    except Rejected as e:
        out.append([e.error, e.detail, e.run["state"]])
    person.join()
rows = session.runs()
out += [[r["state"], r["command"], r["approved"]] for r in rows]
out.append(client.run(rows[0]["run"], wait=True)["reason"])
print(json.dumps([o for o in out if not isinstance(o, int)]))
""")
    assert got == ["ran\n", ["run_rejected", "not today", "rejected"], ["rejected", ["echo", "ran"], False],
                   ["completed", ["echo", "ran"], True], "not today"]


def test_launch(daemon):
    got = client(daemon, """
run = session.launch(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout="30s")
parts = sorted(run.output())
r = run.wait()
waits = session.launch(["echo", "ran"], egress="write")
states = [waits.state]
Client().reject(waits.id, "not today")
try:
    waits.wait()
except Rejected as e:
    states.append(e.detail)
waits = session.launch(["echo", "ran"], egress="write")
Client().approve(waits.id)
w = waits.wait()
print(json.dumps([parts, r.exit_code, r.stdout, r.stderr, r.raw["run"] == run.id, states, w.stdout]))
""")
    assert got == [[["stderr", "err\n"], ["stdout", "out\n"]], 3, "out\n", "err\n", True, ["pending", "not today"], "ran\n"]


def test_errors_are_errors(daemon):
    got = client(daemon, """
out = []
for fn in (lambda: Session("a", "../b"), lambda: session.add_private_dataset("d", "HIGH"),
           lambda: Client().approve(999999), lambda: session.sandbox(memory="lots").run(["true"]),
           lambda: session.sandbox().run(["/no/such/program"]), lambda: session.sandbox().run(["true"], egress="all"),
           lambda: Session(*session.name.split("/"), program="/no/netpawl").sandbox().run(["true"])):
    try:
        fn()
        out.append("no error")
    except Error as e:
        out.append(e.error)
for fn in (lambda: session.sandbox(memry="1GiB"), lambda: session.sandbox().run("ls -l"), lambda: session.launch("ls -l")):
    try:
        fn()
        out.append("no error")
    except TypeError:
        out.append("TypeError")
try:
    Client("/no/such/socket").sessions()
except OSError:
    out.append("OSError")
print(json.dumps(out))
""")
    assert got == ["bad_name", "bad_level", "no_such_run", "failed", "failed", "failed", "failed", "TypeError", "TypeError", "TypeError", "OSError"]


def test_events(daemon):
    got = client(daemon, """
session.add_private_dataset("d", "CONFIDENTIAL", "why not")
first = next(e for e in session.events(follow=True, after=0) if e["reason"] == "raised")
print(json.dumps([first["dataset"], [e["reason"] for e in session.events(limit=2)]]))
""")
    assert got == ["d", ["session_created", "raised"]]


def test_metrics(daemon):
    got = client(daemon, """
print(json.dumps([line for line in session.client.metrics().splitlines() if line.startswith("netpawl_build_info")]))
""")
    assert len(got) == 1 and got[0].endswith("} 1")


def test_debug(daemon):
    got = client(daemon, """
sandbox = session.client.call("POST", "/v1/sandboxes", {"session": session.name})
one, all_ = session.client.debug(session.name, after=0), session.client.debug()
print(json.dumps([one["session"]["session"] == session.name, [s["agree"] for s in one["sandboxes"]],
                  sandbox["sandbox"] in [s["sandbox"] for s in all_["sandboxes"]]]))
""")
    assert got[0] is True and len(got[1]) == 1 and got[2] is True


def test_notices_and_why(daemon, api):
    if api.ask("GET", f"/v1/sessions/{new_session('py')}/why")[1]["error"] == "no_such_path":
        pytest.skip("this daemon tells no notices")
    got = client(daemon, f"""
box = session.sandbox()
session.add_private_dataset("d", "SECRET", "ticket")
box.run(["python3", "-c", {REACH!r}])
first = session.notices("me")
session.acknowledge("me", first[-1]["notice"])
print(json.dumps([len(first), session.notices("me"), len(session.notices()), session.why()["mode"],
                  bool(session.why(5)["refused"])]))
""")
    assert got == [1, [], 1, "NONE", True]


def test_the_example(daemon):
    name = new_session("loop")
    got = subprocess.run([*daemon.world.enter(), sys.executable, str(ROOT / "examples" / "agent_loop.py"), *name.split("/")],
                         capture_output=True, text=True, timeout=120, env=env(daemon), cwd="/")
    assert got.returncode == 0, got.stderr
    lines = [line.strip() for line in got.stdout.splitlines()]
    assert lines[0] == "none: made numbers.txt" and lines[1] == "none: 55"
    assert lines[3] == "write: published" and "we keep our things" in lines[4] and "deleted everything" not in got.stdout
    assert "mode NONE" in lines[5] and "could not reach" in lines[6], got.stdout
    assert daemon.api.show(name)["ended"]


def test_keep(daemon):
    got = client(daemon, """
box = session.sandbox(keep=True, pids=50)
box.run(["sh", "-c", "echo one > /tmp/f; sleep 1000 & until pgrep sleep; do :; done"])
r = box.run(["sh", "-c", "cat /tmp/f; pgrep -c sleep"])
s = session.launch(["cat", "/tmp/f"], keep=True).wait()
n = [b["kept"] for b in session.show()["sandboxes"]]
box.remove()
t = box.run(["ls", "/tmp"])
box.remove()
print(json.dumps([r.stdout, s.stdout, n, t.stdout, session.show()["sandboxes"]]))
""")
    assert got == ["one\n1\n", "one\n", [True], "", []]


def test_output_that_was_cut_is_told(daemon):
    got = client(daemon, """
flood = session.launch(["sh", "-c", "yes | head -c 3000000"]).wait()
binary = session.launch(["sh", "-c", "yes | tr y '\\\\001' | head -c 900000"]).wait()      # within the limit, but not as JSON
box = session.sandbox(output_limit="10B").run(["echo", "a long line indeed"])
small = session.launch(["echo", "x"]).wait()
print(json.dumps([(r.truncated, len(r.stdout) > 0, r.exit_code) for r in (flood, binary, box, small)]))
""")
    assert got == [[True, True, 0], [True, True, 0], [True, True, 0], [False, True, 0]]


def test_output_that_was_cut_is_told_as_it_comes(daemon):
    """output() has no Result that could say so."""
    code = """
import warnings
got = []
for command in ("yes | head -c 3000000", "echo x"):
    run = session.launch(["sh", "-c", command], output_limit="20MiB")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        n = sum(len(text) for stream, text in run.output())
    got.append([n > 1, run.truncated, [str(w.message) for w in said]])
print(json.dumps(got))
"""
    cut, small = client(daemon, code)
    assert cut[:2] == [True, True] and len(cut[2]) == 1 and "the rest of it is lost" in cut[2][0], cut
    assert small == [True, False, []]


def test_output_outlives_the_daemon(make_daemon):
    """The result is on record, and what it printed is there for the next daemon."""
    d = make_daemon()
    d.start()
    name = new_session("py")
    ident = d.api.ok("POST", "/v1/runs", {"session": name, "command": ["sh", "-c", "echo kept; exit 4"], "launch": {}})["run"]
    assert base.eventually(lambda: d.api.ok("GET", f"/v1/runs/{ident}")["state"] == "completed")
    d.restart("kill")
    got = client(d, f"""
r = netpawl.Run(session.client, {{"run": {ident}}}).wait()
print(json.dumps([r.exit_code, r.stdout, r.truncated]))
""", name)
    assert got == [4, "kept\n", False]


def test_options_are_no_options_of_others(daemon):
    """A value is a value, whatever it looks like."""
    got = client(daemon, """
try:
    session.sandbox(chdir="--isolation=none").run(["true"])
except Error as e:
    print(json.dumps(str(e)))
""")
    assert "--isolation=none" in got and "only the network" not in got


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\"",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{\"\r\n0\r\n\r\n", b"nonsense\r\n\r\n", b"",
    b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n[]"])
def test_a_daemon_that_dies_in_a_word(tmp_path, answer):
    """Every failure is an Error or an OSError."""
    path = tmp_path / "s"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(8)

    def serve():
        for _ in range(2):
            c, _ = server.accept()
            c.recv(65536)
            c.sendall(answer)
            c.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    sys.path.insert(0, str(ROOT / "clients" / "python"))
    try:
        import netpawl
    finally:
        sys.path.pop(0)
    one = netpawl.Client(path, 10)
    for call in (one.sessions, lambda: list(one.lines("/v1/runs/1/output", follow=True))):
        with pytest.raises((netpawl.Error, OSError)):
            call()
    thread.join(120)
    server.close()


def test_input_and_cancel(daemon):
    got = client(daemon, """
a = session.launch(["sh", "-c", "read x; echo got $x; cat | wc -c"], input="word\\n" + "x" * 100000)
b = session.launch(["sh", "-c", "echo $A; cat"], env={"A": "b"}, input=True)
b.write("one ")
b.write("two", end=True)
c = session.launch(["sleep", "1000"])
d = session.launch(["sh", "-c", "test -t 0; echo $?"], terminal="80x24")
e = session.launch(["printf", r"\\377\\n"], attach=True)
while c.state != "running": time.sleep(0.05)
c.cancel("enough")
try: c.wait()
except netpawl.Error as error: said = str(error)
print(json.dumps([a.wait().stdout, b.wait().stdout, said, d.wait().stdout, [[s, t.hex()] for s, t in e.output()]]))
""")
    assert got[0] == "got word\n100000\n" and got[1] == "b\none two" and got[3] == "0\r\n"
    assert "cancelled by uid" in got[2] and "enough" in got[2] and got[4] == [["stdout", "ff0a"]]


def test_input_that_cannot_be_sent(daemon):
    """Nothing is started that would wait for it for ever."""
    got = client(daemon, """
said = []
for wrong in (b"abc", 7, False, "\\ud800"):
    try: session.launch(["cat"], input=wrong)
    except (TypeError, ValueError) as error: said.append(type(error).__name__)
print(json.dumps([said, len(session.runs())]))
""")
    assert got == [["TypeError", "TypeError", "TypeError", "UnicodeEncodeError"], 0]


def test_a_daemon_that_is_busy_is_no_blocking_error(tmp_path, daemon):
    """More callers than Linux lets wait: the client waits for its turn, and says what is the matter when that does not come."""
    path = tmp_path / "control.sock"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen(0)
        while True:
            c = stack.enter_context(socket.socket(socket.AF_UNIX))
            c.setblocking(False)
            try:
                c.connect(str(path))
            except BlockingIOError:
                break
        got = client(daemon, f"""
try: print(json.dumps(netpawl.Client({str(path)!r}, timeout=0.5).sessions()))
except netpawl.Error as e: print(json.dumps([e.error, str(e)]))
""", prelude="import json, netpawl\n")
    assert got[0] == "too_many" and "taking calls" in got[1]
