# SPDX-License-Identifier: MIT
"""The inspector: requests of a PROXIED sandbox, judged one by one."""
import base64
import json

import pytest

from lib import base
from lib.inspected import inspected
from lib.origins import Authority
from lib.world import FAR


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        yield i
        assert i.daemon.running()
        assert i.api.health()["inspectors"] == 2, i.daemon.text()[-2000:]


VERSIONS = pytest.mark.parametrize("version", ["--http1.1", "--http2"])


@pytest.mark.smoke
@VERSIONS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_allowed_request_goes_and_comes_back(net, scheme, version):
    got = net.curl(version, f"{scheme}://origin.test/a?b=c", "-d", "hello")
    assert got.returncode == 0, got.stderr
    seen = json.loads(got.stdout)
    assert (seen["method"], seen["path"], seen["host"], seen["text"]) == ("POST", "/a?b=c", "origin.test", "hello")


@pytest.mark.smoke
@VERSIONS
def test_a_refusal_explains_itself_and_the_connection_lives_on(net, version):
    after = net.last()
    got = net.curl(version, "-w", "\n%{http_code} %{num_connects}\n", "https://get-only.origin.test/x",
                   "--next", "-sS", version, "-w", "\n%{http_code} %{num_connects}\n", "-d", "x",
                   "https://get-only.origin.test/x",
                   "--next", "-sS", version, "-w", "\n%{http_code} %{num_connects}\n",
                   "https://get-only.origin.test/y")
    lines = got.stdout.splitlines()
    codes = [l for l in lines if l.startswith(("200 ", "403 "))]
    assert codes == ["200 1", "403 0", "200 0"], got
    refusal = json.loads(next(l for l in lines if "refused" in l))
    assert refusal["reason"] == "rule_denies" and refusal["host"] == "get-only.origin.test"
    assert refusal["mode"] == "PROXIED" and refusal["level"] == "CONFIDENTIAL" and refusal["message"] and refusal["hint"]
    events = net.events(lambda e: "get-only" in e["url"], after, count=3)
    assert [(e["method"], e["status"], e["reason"]) for e in events] == [
        ("GET", 200, "rule_allows"), ("POST", 403, "rule_denies"), ("GET", 200, "rule_allows")]
    line = next(l for l in net.daemon.cli("events", "--session", net.session).stdout.splitlines() if "rule_denies" in l)
    assert "POST https://get-only.origin.test/x 403" in line


def test_a_refusal_of_the_request_does_not_blame_the_host(net):
    for host, told in (("head-only.test", True), ("unlisted.test", False)):
        got = json.loads(net.curl("--resolve", f"{host}:443:{FAR[4]}", f"https://{host}/").stdout)
        assert got["reason"] == "not_in_policy" and ("there are rules for this host" in got["message"]) == told, got


@VERSIONS
def test_a_rule_captures_bodies_and_headers_without_secrets(net, version):
    after = net.last()
    got = net.curl(version, "https://captured.origin.test/a", "-d", "who=me&" + "x" * 100, "-H", "X-Plain: seen",
                   "-H", "Authorization: Bearer s3cret", "-H", "Cookie: a=s3cret", "-H", "X-Api-Key: s3cret")
    assert json.loads(got.stdout)["text"].startswith("who=me"), got
    got = net.curl(version, "https://captured.origin.test/b", "--data-binary", "@" + str(net.binary()))
    assert got.returncode == 0, got
    text, binary = net.events(lambda e: "captured" in e["url"], after, count=2)
    assert text["request_body"] == ("who=me&" + "x" * 100)[:64] and "request_base64" not in text
    headers = dict(l.split(": ", 1) for l in text["request_headers"].splitlines())
    assert headers["x-plain"] == "seen"
    assert headers["authorization"] == headers["cookie"] == headers["x-api-key"] == "(redacted)"
    assert "s3cret" not in json.dumps(text)
    assert "content-type: " in text["response_headers"] and len(text["response_body"]) <= 64
    assert base64.b64decode(binary["request_base64"]) == net.binary().read_bytes()[:64] and "request_body" not in binary
    got = net.curl(version, "https://origin.test/uncaptured", "-d", "secret")
    [plain] = net.events(lambda e: "uncaptured" in e["url"], after)
    assert not [k for k in plain if k.startswith(("request_", "response_"))]


def test_extra_roots_come_and_go_with_the_policy():
    folder = base.tempdir("otherroot")
    try:
        other = Authority(folder)
        with inspected(more=["--roots", other.pem]) as net:
            ask = lambda: net.curl("-w", "\n%{http_code}", "https://origin.test/").stdout.splitlines()[-1]
            assert ask() == "502"
            [untrusted] = net.events(lambda e: e["reason"] == "origin_untrusted")
            plain = net.policy.read_text()
            net.policy.write_text(plain + "extra_roots: root.pem\n")  # of the origins, beside the policy
            assert net.api.ask("POST", "/v1/policy/reload")[0] == 200
            assert ask() == "200"
            net.policy.write_text(plain)
            assert net.api.ask("POST", "/v1/policy/reload")[0] == 200
            assert ask() == "502"
            (net.origins.dir / "key.pem").write_text(net.origins.authority.key.read_text())
            net.policy.write_text(plain + "extra_roots: [root.pem, key.pem, none.pem, ../x]\n")
            status, answer = net.api.ask("POST", "/v1/policy/reload")[:2]
            assert status == 422 and "key.pem" in str(answer) and "no certificate" in str(answer)
            assert ask() == "502"
    finally:
        base.drop_tempdir(folder)


@pytest.mark.parametrize("what", ["empty", "missing"])
def test_without_roots_no_origin_is_trusted_and_all_else_goes_on(what, tmp_path):
    roots = tmp_path / "roots.pem"
    if what == "empty":
        roots.write_text("")
    with inspected(more=["--roots", roots]) as net:
        got = net.curl("-w", "\n%{http_code}", "http://origin.test/a")
        assert got.stdout.splitlines()[-1] == "200", (got, net.daemon.text()[-1000:])
        assert net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://origin.test/").stdout == "502"
        assert net.events(lambda e: e["reason"] == "origin_untrusted")
        assert str(roots) in net.daemon.text() and "no origin will be trusted" in net.daemon.text()


@pytest.mark.parametrize("url,code,reason", [
    ("https://paths.origin.test/closed", 403, "rule_denies"), ("https://paths.origin.test/open/a", 200, None),
    ("https://paths.origin.test/open/../closed", 403, "bad_path"),
    ("https://paths.origin.test/open/%2e%2e/closed", 403, "bad_path"),
    ("https://paths.origin.test/open/..%2fclosed", 403, "bad_path"),
    ("https://loop.test/", 403, "address_refused"), ("https://meta.test/", 403, "address_refused"),
    ("https://host.test/", 403, "address_refused"), ("https://dead.test/", 502, "origin_unreachable"),
    ("https://nx.test/", 502, "origin_unreachable"), (f"https://{FAR[4]}/", 200, None)])
def test_verdicts(net, url, code, reason):
    check_verdict(net, url, code, reason)


@pytest.mark.parametrize("url,words", [("https://dead.test/", "dead.test could not be reached: timed out."),
                                       ("https://nx.test/", "nx.test could not be reached: the name does not exist.")])
def test_an_origin_that_is_not_there(net, url, words):
    """The agent reads which host, what failed, and that no rule is the reason."""
    got = json.loads(net.curl(url).stdout)
    assert got["error"] == "origin_failed" and got["reason"] == "origin_unreachable" and got["host"] in url
    assert got["message"] == "The policy allows this request, but " + words
    assert "try again later" in got["hint"] and "refused this request" not in got["message"]


@pytest.mark.parametrize("url,reason", [("https://bad.origin.test/", "rule_denies"), ("https://nowhere.example/", "not_in_policy")])
def test_names_without_an_address(net, url, reason):
    """The DNS gate answers for none of these; a client that has an address from elsewhere is told why."""
    assert net.curl(url).returncode == 6  # could not resolve host
    check_verdict(net, url, 403, reason, "--connect-to", f"::{FAR[4]}:")


def check_verdict(net, url, code, reason, *words):
    got = net.curl(*words, "--path-as-is", "-D", "-", "-w", "\n%{http_code}", url)
    assert got.stdout.splitlines()[-1] == str(code), got
    if reason:
        assert f"x-netpawl-reason: {reason}" in got.stdout.lower(), got.stdout
    else:
        assert "x-netpawl" not in got.stdout


def test_bodies(net):
    got = net.curl("-w", "\n%{http_code}", "-d", "x" * 2000, "https://small.origin.test/")
    assert got.stdout.endswith("413"), got
    got = net.curl("-w", "\n%{http_code}", "-H", "transfer-encoding: chunked", "--http1.1", "-d", "x" * 2000,
                   "https://small.origin.test/")
    assert got.stdout.endswith("413"), got
    got = net.curl("-d", "x" * 900, "https://small.origin.test/")
    assert json.loads(got.stdout)["body"] == 900
    got = net.curl("-o", "/dev/null", "-w", "%{size_download}", "https://origin.test/bytes/30000000")
    assert got.stdout == "30000000", got


SLEEPER = """
import socket, ssl, sys, time
host, kept = sys.argv[1], []
for size in map(int, sys.argv[2:]):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, 443))
    s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
    s.sendall(f"GET /bytes/{size} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    kept.append(s)
time.sleep(7)
for s in kept:
    got = b""
    try:
        while block := s.recv(65536):
            got += block
    except OSError as e:
        print(e)
    print(len(got.split(b"\\r\\n\\r\\n", 1)[1]))
"""


def test_a_client_that_reads_late_gets_the_end(net):
    """The origin is done at once, and the rest waits in the inspector for longer than a connection that has nothing
    left to say is kept. In the kernel there is no room for it."""
    def room(words):
        base.sh(*net.world.enter(), "sysctl", "-qw", f"net.ipv4.tcp_wmem={words}")

    before = base.sh(*net.world.enter(), "sysctl", "-n", "net.ipv4.tcp_wmem").stdout.strip()
    sizes = [str(n << 10) for n in (150, 200, 250, 300)]
    room("4096 16384 16384")
    try:
        got = net.run(base.PYTHON, "-c", SLEEPER, "origin.test", *sizes)
    finally:
        room(before)
    assert got.stdout.split() == sizes, got
