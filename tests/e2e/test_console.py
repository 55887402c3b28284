# SPDX-License-Identifier: MIT
"""netpawl console: who gets in, what it passes on, and what it keeps to. What its page shows is in tests/browser."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

import pytest

from lib import base
from lib.console import Browser, Console, unix_dial

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def console(daemon):
    with Console(daemon) as c:
        yield c


@pytest.fixture
def browser(console):
    console.another()
    b = Browser(console)
    assert b.login()[0] == 200
    return b


def test_a_link_is_good_once(console):
    link = console.another()
    assert link.startswith(f"http://127.0.0.1:{console.port}/#token=")
    first, second = Browser(console), Browser(console)
    assert first.login()[0] == 200
    assert second.login()[0] == 401
    assert first.call("GET", "/v1/health")[0] == 200, "the first one stays"


@pytest.mark.parametrize("token", ["", "0" * 32, "x", 7, None, "0" * 100000], ids=range(6))
def test_no_other_token_is(console, token):
    assert Browser(console).call("POST", "/console/login", {"token": token})[0] == 401
    assert Browser(console).call("POST", "/console/login", b"[]")[0] == 401
    assert Browser(console).call("POST", "/console/login", b"\xff{")[0] == 401


def test_nine_links_are_too_many_and_the_oldest_goes(console):
    first = console.another().partition("=")[2]
    for _ in range(8):
        console.another()
    assert Browser(console).login(first)[0] == 401
    assert Browser(console).login()[0] == 200


def test_the_cookie_is_for_this_page_alone(console):
    console.another()
    _, _, headers = Browser(console).login()
    words = [w.strip() for w in headers["Set-Cookie"].split(";")]
    assert words[0].startswith(f"netpawl_{console.port}=") and set(words[1:]) == {"HttpOnly", "SameSite=Strict", "Path=/"}


def test_cookie_and_key_are_both_needed(console, browser):
    assert browser.call("GET", "/v1/health")[0] == 200
    assert browser.call("GET", "/v1/health", X_Netpawl_Key=None)[0] == 401, "a server at another port of this host has the cookie"
    assert browser.call("GET", "/v1/health", Cookie=None)[0] == 401
    assert browser.call("GET", "/v1/health", X_Netpawl_Key="0" * 32)[0] == 401
    console.another()
    other = Browser(console)
    other.login()
    assert browser.call("GET", "/v1/health", X_Netpawl_Key=other.key)[0] == 401, "of another browser"
    assert browser.call("GET", "/v1/health", Cookie=browser.cookie + "; " + browser.cookie)[0] == 401


def test_without_a_login_there_are_the_files_of_the_page_and_nothing_else(console):
    stranger = Browser(console)
    assert stranger.call("GET", "/")[0] == stranger.call("GET", "/app.js")[0] == 200
    for path in ("/v1/health", "/v1/events?follow=1", "/console/info", "/nothing", "/../etc/passwd", "/page/app.js"):
        assert stranger.call("GET", path)[0] == 401 or stranger.call("GET", path)[0] == 404, path
    assert stranger.call("GET", "/v1/health")[0] == 401
    assert stranger.call("POST", "/console/link", {})[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "", None,
                                  ["127.0.0.1:{port}", "evil.example"]])
@pytest.mark.parametrize("path", ["/", "/v1/health"])
def test_a_name_of_somebody_else_leads_nowhere(console, browser, host, path):
    """DNS rebinding: a page of evil.example, whose name leads here, asks with that name."""
    host = [h.format(port=console.port) for h in host] if isinstance(host, list) else host.format(port=console.port) if host else host
    status, answer, _ = browser.call("GET", path, Host=host)
    assert status in (400, 403), answer
    assert "netpawl" not in str(answer).lower() or status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_its_own_names_do(console, browser, host):
    assert browser.call("GET", "/v1/health", Host=host.format(port=console.port))[0] == 200


FOREIGN = ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://127.0.0.1", "http://localhost:{port}", ""]


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_page_changes_nothing(console, browser, api, origin):
    api.create("csrf/one", "PUBLIC")
    origin = origin.format(port=console.port)
    for headers in ({"Origin": origin}, {"Origin": None}, {"Origin": console.origin, "Sec_Fetch_Site": "cross-site"},
                    {"Origin": console.origin, "Sec_Fetch_Site": "same-site"}, {"Origin": [console.origin, origin]}):
        assert browser.call("POST", "/v1/sessions/csrf/one/datasets", {"level": "SECRET"}, **headers)[0] == 403, headers
        assert browser.call("DELETE", "/v1/sessions/csrf/one", **headers)[0] == 403, headers
    assert browser.call("GET", "/v1/health", Origin=origin)[0] == 403, "nor does it read"
    assert api.show("csrf/one")["level"] == "PUBLIC"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None])
def test_nor_does_a_form(console, browser, api, kind):
    api.create("csrf/form", "PUBLIC")
    assert browser.call("POST", "/v1/sessions/csrf/form/datasets", {"level": "SECRET"}, Content_Type=kind)[0] == 403
    assert api.show("csrf/form")["level"] == "PUBLIC"


def test_its_own_page_does(browser, api):
    """The control."""
    api.create("csrf/own", "PUBLIC")
    status, answer, _ = browser.call("POST", "/v1/sessions/csrf/own/datasets", {"level": "CONFIDENTIAL", "dataset": "d"})
    assert status == 200 and answer["raised"] and api.show("csrf/own")["level"] == "CONFIDENTIAL"
    assert browser.call("DELETE", "/v1/sessions/csrf/own")[0] == 200


@pytest.mark.parametrize("path", ["/", "/app.js", "/v1/health", "/nothing"])
def test_every_answer_says_what_a_browser_may_do_with_it(browser, path):
    headers = browser.call("GET", path)[2]
    csp = headers["Content-Security-Policy"]
    assert csp.startswith("default-src 'none';") and "unsafe" not in csp and "frame-ancestors 'none'" in csp and "script-src 'self'" in csp
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


def test_the_page_loads_nothing_from_elsewhere_and_has_no_script_in_it(browser):
    page = browser.call("GET", "/")[1]
    assert "://" not in page and "<style" not in page and " style=" not in page and " onload" not in page
    assert page.count("<script") == 1 and 'type="module" src="/app.js"' in page
    for name in sorted(p.name for p in (ROOT / "user/console/page").iterdir()):
        status, text, _ = browser.call("GET", "/" + name)
        assert status == 200
        assert not any(word in text for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")), name


PASSED_ON = [("GET", "/v1/health"), ("GET", "/v1/sessions"), ("GET", "/v1/runs"), ("GET", "/v1/questions?state=pending"), ("GET", "/v1/policy"),
             ("GET", "/v1/policy/source"), ("GET", "/v1/sandboxes"), ("GET", "/v1/events?limit=3")]
NOT_PASSED_ON = [("GET", "/v1/debug"), ("GET", "/v1/launch"), ("POST", "/v1/runs"), ("POST", "/v1/sandboxes"), ("POST", "/v1/sessions"), ("POST", "/v1/forwards"),
                 ("GET", "/v1/sessions/a/b/ca"), ("PUT", "/v1/sessions/a/b/context"), ("POST", "/v1/runs/1/input"), ("GET", "/v1/runs/1/output"),
                 ("GET", "/v1/runs/1%2foutput"), ("GET", "/v1/runs/1%2Foutput"), ("POST", "/v1/runs/1%2finput"), ("GET", "/v1/sessions/a%2fb%2fca/x"),
                 ("GET", "/v1/sessions/../debug"), ("GET", "/v1/sessions/%2e%2e/debug"), ("GET", "/v1//health"), ("GET", "/v1/health/"), ("GET", "//v1/debug"),
                 ("DELETE", "/v1/questions/1"), ("OPTIONS", "/v1/health"), ("PATCH", "/v1/sessions/a/b"), ("GET", "http://x/v1/debug")]


@pytest.mark.parametrize("method, path", PASSED_ON)
def test_these_calls_are_passed_on(browser, api, method, path):
    status, answer, _ = browser.call(method, path)
    assert status == 200
    if path == "/v1/policy":
        assert answer == api.ok(method, path)


@pytest.mark.parametrize("method, path", NOT_PASSED_ON)
def test_no_others_are(browser, method, path):
    status, answer, _ = browser.call(method, path, {} if method != "GET" else None)
    assert status == 404 and "does not pass that on" in answer["detail"], answer


@pytest.mark.parametrize("query", ["a=%00\\", "a=<b>", 'a="', "a=é"])
def test_a_query_that_is_none(browser, query):
    with pytest.raises(UnicodeEncodeError) if not query.isascii() else pytest.MonkeyPatch.context():
        assert browser.call("GET", "/v1/sessions?" + query)[0] == 400


def test_what_the_daemon_says_comes_through_as_it_is(browser):
    assert browser.call("GET", "/v1/sessions/no/body")[1]["error"] == "no_such_session"
    assert browser.call("GET", "/v1/sessions?unknown=1")[1]["error"] == "bad_request"
    assert browser.call("POST", "/v1/questions/1/answer", {"answer": "once"})[1]["error"] == "no_such_question"


def test_bounds(console, browser):
    assert browser.call("GET", "/v1/sessions?after=" + "a" * 5000)[0] == 414
    assert browser.call("POST", "/v1/sessions/a/b/datasets", b"x" * (65 << 10))[0] == 413
    assert browser.call("POST", "/console/link", b"", Content_Length=str(11 << 20))[0] == 413
    try:
        assert browser.open("GET", "/v1/health", None, X_Long="y" * 200000).status >= 400
    except OSError:
        pass  # it was ended before it had said all of it
    assert browser.call("GET", "/v1/health")[0] == 200


def test_streams_are_counted_and_given_back(browser):
    streams = [browser.open("GET", "/v1/events?follow=1") for _ in range(48)]
    try:
        assert {s.status for s in streams} == {200}
        assert browser.call("GET", "/v1/events?follow=1")[0] == 429
        assert browser.call("GET", "/v1/health")[0] == 200, "what is no stream goes on"
    finally:
        for s in streams:
            s.close()

    def again():
        s = browser.open("GET", "/v1/events?follow=1")
        s.close()
        return s.status == 200

    assert base.eventually(again, 60)


def test_events_come_as_they_happen(browser, api):
    last = api.events()[-1]["seq"]
    stream = browser.open("GET", f"/v1/events?follow=1&after={last}")
    assert stream.headers["Content-Type"] == "application/x-ndjson"
    api.create("stream/one", "INTERNAL")
    line = b"\n"
    while not line.strip():
        line = stream.readline()
    assert json.loads(line)["session"] == "stream/one"
    stream.close()


def test_read_only_changes_nothing(daemon, api):
    api.create("reads/only", "PUBLIC")
    with Console(daemon, "--read-only") as c:
        b = Browser(c)
        b.login()
        assert b.call("GET", "/console/info")[1]["read_only"] and b.call("GET", "/v1/sessions")[0] == 200
        for method, path in (("POST", "/v1/sessions/reads/only/datasets"), ("DELETE", "/v1/sessions/reads/only"), ("POST", "/v1/questions/1/answer"),
                             ("POST", "/v1/runs/1/approve"), ("POST", "/v1/policy/reload"), ("DELETE", "/v1/sandboxes/x")):
            status, answer, _ = b.call(method, path, {"level": "SECRET"})
            assert (status, answer["detail"]) == (403, "this console only shows"), path
    assert api.show("reads/only")["level"] == "PUBLIC"


def test_approver_speaks_to_the_other_socket(world):
    from lib.fixtures import daemon_with
    with daemon_with(world, "approval: {group: root}\nrules:\n  - ask: x.example\n") as d, Console(d, "--approver") as c:
        b = Browser(c)
        b.login()
        info = b.call("GET", "/console/info")[1]
        assert info["approver"] and info["socket"].endswith("/approve.sock")
        assert b.call("GET", "/v1/questions")[0] == b.call("GET", "/v1/runs")[0] == 200
        for method, path in (("GET", "/v1/events"), ("GET", "/v1/sessions"), ("GET", "/v1/health"), ("GET", "/v1/policy"), ("POST", "/v1/policy/reload")):
            assert b.call(method, path, {} if method == "POST" else None)[0] == 403
        assert b.call("POST", "/v1/questions/1/answer", {"answer": "deny"})[1]["error"] == "no_such_question"


def test_it_speaks_as_whoever_has_started_it(world):
    """A reader sees, and the daemon, not the console, says what he may not."""
    from lib.fixtures import daemon_with
    with daemon_with(world, "access: {reader: 'user:65534'}\n") as d:
        d.api.create("role/reader", "PUBLIC")
        d.run_dir.chmod(0o755)
        d.dir.chmod(0o755)
        with Console(d, user=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")) as c:
            b = Browser(c)
            b.login()
            assert b.call("GET", "/v1/sessions")[0] == 200
            assert b.call("POST", "/v1/sessions/role/reader/datasets", {"level": "SECRET"})[1]["error"] == "no_role"
        nobody = subprocess.run([*d.world.enter(), "setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", "--", str(base.NETPAWL), "console",
                                 "--socket", str(d.socket)], capture_output=True, text=True, timeout=60, env=base.env(), stdin=subprocess.DEVNULL)
        assert nobody.returncode != 0 and "token" not in nobody.stdout, "who has no role gets no link"


def test_a_unix_socket_for_a_reverse_proxy(daemon, tmp_path):
    path = tmp_path / "console.sock"
    with Console(daemon, "--listen", f"unix:{path}", "--url", "https://console.example") as c:
        assert c.link.startswith("https://console.example/#token=") and path.stat().st_mode & 0o777 == 0o660
        b = Browser(c, unix_dial(path))
        _, _, headers = b.login()
        assert "Secure" in headers["Set-Cookie"] and b.call("GET", "/v1/health")[0] == 200
        assert b.call("GET", "/v1/health", Host="localhost")[0] == 403
    assert not path.exists()


@pytest.mark.parametrize("words, code, said", [
    (["--listen", "0.0.0.0:0"], 2, "loopback only"), (["--listen", "192.0.2.2:0"], 2, "loopback only"), (["--listen", "[::]:0"], 2, "loopback only"),
    (["--listen", "nonsense"], 2, "ADDRESS:PORT"), (["--listen", "127.0.0.1:99999"], 2, "ADDRESS:PORT"), (["--listen", "unix:/x"], 2, "--url"),
    (["--url", "ftp://x"], 2, "--url"), (["--url", "http://x/path"], 2, "--url"), (["word"], 2, "word"), (["--nothing"], 2, "")])
def test_wrong_usage(daemon, words, code, said):
    p = daemon.cli("console", *words, input="")
    assert p.returncode == code and said in p.stderr and "token" not in p.stdout, p


def test_no_daemon(tmp_path, daemon):
    p = daemon.cli("--socket", tmp_path / "none.sock", "console", input="")
    assert p.returncode == 3 and "token" not in p.stdout


def test_it_is_not_at_a_port_that_the_policy_gives_to_sandboxes(world):
    from lib.fixtures import daemon_with
    with daemon_with(world, "host_loopback: [18080]\n") as d:
        p = d.cli("console", "--listen", "127.0.0.1:18080", input="")
        assert p.returncode == 1 and "host_loopback" in p.stderr
        with Console(d, "--listen", "127.0.0.1:18081") as c:
            assert c.port == 18081


def test_it_has_no_privilege(console):
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{server_pid(console)}/status").read().splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def server_pid(console):
    """nsenter becomes netpawl, which becomes netpawl-console."""
    assert "netpawl-console" in base.command_line(console.process.pid)
    return console.process.pid


def test_a_daemon_that_is_away_is_said_so_and_comes_back(make_daemon):
    d = make_daemon().start()
    with Console(d) as c:
        b = Browser(c)
        b.login()
        d.stop()
        status, answer, _ = b.call("GET", "/v1/health")
        assert status == 503 and answer["error"] == "no_daemon"
        d.start()
        assert b.call("GET", "/v1/health")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_when_it_is_told_to_also_with_open_streams(daemon, number):
    with Console(daemon) as c:
        b = Browser(c)
        b.login()
        stream = b.open("GET", "/v1/events?follow=1")
        assert base.reap(c.process, number) == 0
        stream.close()


def test_what_is_no_http_ends_nothing_but_itself(console, browser):
    for junk in (b"\0" * 4096, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20000, b"POST /console/login HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                 b"GET /" + b"%" * 3000 + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % console.port):
        with base.setns_call(console.daemon.world.host, lambda: socket.create_connection(("127.0.0.1", console.port), 60)) as s:
            s.settimeout(60)
            try:
                s.sendall(junk)
                s.shutdown(socket.SHUT_WR)
                assert b"200 OK" not in s.recv(65536)
            except OSError:
                pass
    assert browser.call("GET", "/v1/health")[0] == 200


def test_many_at_once(console, browser):
    got = []
    threads = [threading.Thread(target=lambda: got.append(browser.call("GET", "/v1/sessions")[0])) for _ in range(60)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert got == [200] * 60


def test_the_modules_of_the_page():
    """The filter's language, coalescing, gaps and the rest that needs no browser."""
    p = subprocess.run(["node", "--test", str(ROOT / "tests/unit/console")], capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"})
    assert p.returncode == 0 and "# pass 0" not in p.stdout, p.stdout[-4000:]


# -- a policy that somebody is writing ------------------------------------------------

@pytest.fixture(scope="module")
def policied(world):
    from lib.fixtures import daemon_with
    with daemon_with(world, "rules:\n  - allow: a.example\n") as d, Console(d) as c:
        b = Browser(c)
        b.login()
        yield d, b


def tried(policied, text, **more):
    return policied[1].call("POST", "/console/policy", {"name": "policy.yaml", "text": text, **more})


def test_a_text_is_checked_and_nothing_changes(policied):
    d, browser = policied
    before = d.api.ok("GET", "/v1/policy")["hash"]
    status, found, _ = tried(policied, "version: 1\nrules:\n  - allow: b.example\n  - allw: c.example\n")
    assert status == 200 and not found["ok"] and found["errors"][0]["line"] == 4 and "allw" in found["errors"][0]["message"]
    status, found, _ = tried(policied, "version: 1\nrules:\n  - allow: b.example\n")
    assert found["ok"] and found["rules"] == 1 and found["hash"] != before
    assert d.api.ok("GET", "/v1/policy")["hash"] == before and "b.example" not in d.policy.read_text()
    live = browser.call("GET", "/v1/policy/source")[1]["files"][0]["text"]
    assert tried(policied, live)[1]["hash"] == before, "the same text is the same policy"


def test_cases_are_run_beside_it(policied):
    text = "version: 1\nrules:\n  - allow: b.example\n"
    lines = "at CONFIDENTIAL\nGET https://b.example/ -> allow\nGET https://c.example/ -> allow\n"
    found = tried(policied, text, cases=lines)[1]
    assert [(c["line"], c["expected"]) for c in found["failed"]] == [(3, "allow")] and "not_in_policy" in found["failed"][0]["actual"]
    assert tried(policied, text, cases="at CONFIDENTIAL\nGET https://b.example/ -> allow\n")[1]["failed"] == []
    assert tried(policied, text, cases="nonsense\n")[1]["failed"][0]["line"] == 1


@pytest.mark.parametrize("body", [{}, {"name": "policy.yaml"}, {"name": 7, "text": ""}, {"name": "policy.yaml", "text": "a\0b"}, []])
def test_a_body_that_is_none(policied, body):
    assert policied[1].call("POST", "/console/policy", body)[0] == 400


def test_a_file_that_the_policy_does_not_have_changes_nothing_in_it(policied):
    live = policied[0].api.ok("GET", "/v1/policy")["hash"]
    assert policied[1].call("POST", "/console/policy", {"name": "/etc/shadow", "text": "x"})[1]["hash"] == live


@pytest.mark.parametrize("text", ["\x01\x02", "a: " * 3000, "- " * 20000, "&a [*a, *a]", "rules: [" * 500, "\ufeffversion: 1", "%", "version: 1\nrules:\n" + "  - allow: x.example\n" * 20000], ids=range(8))
def test_hostile_texts(policied, text):
    status, found, _ = tried(policied, text)
    assert status == 200 and isinstance(found["ok"], bool)
    assert policied[1].call("GET", "/v1/health")[0] == 200
