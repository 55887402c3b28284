# SPDX-License-Identifier: MIT
"""upstream_proxy: a network whose only way out is an HTTP proxy."""
import contextlib
import json

import pytest

from lib import base
from lib.proxies import ANSWERS, OTHER_PORT, PORT, Proxied, basic, credentials
from lib.rogues import frame, says
from lib.world import FAR, FAR_OTHER

RULES = """
inspect_ports: [80, 443]
rules:
  - allow: silent.test
    timeouts: {connect: 1s}
  - allow: pinned.test
    inspect: false
  - allow: [banner.test:2222, late.test:2222, cut.test:2222, dead.test:2222]
  - allow: ws.test
    websocket: true
  - allow: ["**", 198.51.100.0/24]
"""


def policy(proxies, rules=RULES):
    return "version: 1\nupstream_proxy:\n" + proxies + rules


DIRECT = "  - {url: direct, hosts: [direct.test, \".corp.test\", 198.51.100.10]}\n"
DEAD = f"  - {{url: \"http://{FAR_OTHER}:9\", hosts: dead.test}}\n  - {{url: \"http://nowhere.test:3128\", hosts: lost.test}}\n"


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(credentials())
        n = Proxied(stack, policy(DIRECT + DEAD + f"  - url: http://proxy.test:{PORT}\n    credentials: {{file: {path}}}\n"))
        n.secret = path
        n.standard = n.policy.read_text()
        for name in ("origin.test", "other.test"):
            n.origin(name, says(b"from " + name.encode()), 443)
            n.origin(name, says(b"plain " + name.encode()), 80)
        workers = n.daemon.workers()
        yield n
        assert n.daemon.running() and n.daemon.workers() == workers, n.daemon.text()[-3000:]


@pytest.fixture
def restored(net):
    yield
    net.policy.write_text(net.standard)
    status, got = net.api.ask("POST", "/v1/policy/reload")
    assert status == 200, got


def event(net, url, after):
    return net.events(lambda e: e["url"].startswith(url), after=after)[-1]


# -- the way ------------------------------------------------------------------------------------

def test_https_goes_by_the_proxy_which_alone_knows_the_name(net):
    after = net.last()
    assert b"from origin.test" in net.fetch("https://origin.test/")
    (port, _, head), *_ = net.connects("origin.test:443")
    assert port == PORT and b"\r\nHost: origin.test:443\r\n" in head
    assert b"proxy-authorization: " + basic() + b"\r\n" in head
    assert "origin.test" not in net.names.asked and "proxy.test" in net.names.asked
    got = event(net, "https://origin.test/", after)
    assert got["proxy"] == f"http://proxy.test:{PORT}" and got["status"] == 200 and "address" not in got


def test_plain_http_is_a_tunnel_as_well(net):
    assert b"plain origin.test" in net.fetch("http://origin.test/")
    assert net.connects("origin.test:80")


def test_http2_to_the_origin(net):
    """Its ALPN is agreed on inside of the tunnel."""
    spoken = []

    def handler(c):
        spoken.append(c.selected_alpn_protocol())
        c.sendall(frame(4, 0, 0))
        got = b""
        while b"\x01\x05" not in got[24:] and b"\x01\x25" not in got[24:]:
            got += c.recv(65536)
        c.sendall(frame(1, 4, 1, b"\x88") + frame(0, 1, 1, b"in two"))
        c.recv(65536)

    net.origin("two.test", handler, 443, alpn=["h2"])
    assert b"in two" in net.fetch("https://two.test/")
    assert spoken == ["h2"]


@pytest.mark.parametrize("name", ["banner.test", "late.test"])
def test_tcp_by_name_to_a_host_that_speaks_first(net, name):
    """What it says may come in one piece with the proxy's answer."""
    def handler(c):
        c.sendall(b"220 welcome\r\n")
        c.sendall(b"you said " + c.recv(100))

    net.origin(name, handler, 2222)
    code = ("import socket; s = socket.create_connection(('%s', 2222), 60); a = s.recv(100); s.sendall(b'hello')\n"
            "while d := s.recv(100): a += d\nprint(a)" % name)
    after = net.last()
    out, _ = net.python(code).communicate(timeout=120)
    assert out.decode().strip() == repr(b"220 welcome\r\nyou said hello")
    got = event(net, name, after)
    assert got["proxy"] == f"http://proxy.test:{PORT}" and got["method"] == "CONNECT" and got["reason"] == "rule_allows"


def test_bytes_that_pass_unseen(net):
    net.origin("pinned.test", says(b"pinned"), 443)
    got = net.fetch("https://pinned.test/", "-k", "-v")
    assert b"pinned" in got and net.connects("pinned.test:443")


def test_connections_are_kept_for_their_host_and_session(net):
    for name in ("kept.test", "too.kept.test"):
        net.origin(name, says(b"from " + name.encode()), 443)
    assert net.fetch("https://kept.test/a", "https://kept.test/b", "https://kept.test/c").count(b"from kept.test") == 3
    assert len(net.connects("kept.test:443")) == 1
    assert b"from kept.test" in net.fetch("https://kept.test/", session=net.new_session())
    assert len(net.connects("kept.test:443")) == 2
    assert b"from too.kept.test" in net.fetch("https://too.kept.test/") and len(net.connects("too.kept.test:443")) == 1


def test_direct_entries(net):
    net.origin("direct.test", says(b"straight"), 80)
    net.names["direct.test"] = [net.behind["direct.test"]]
    after = net.last()
    assert b"straight" in net.fetch("http://direct.test/")
    assert not net.connects("direct.test:80") and "direct.test" in net.names.asked
    assert "proxy" not in event(net, "http://direct.test/", after)


def test_a_real_proxy(net, restored):
    conf = net.origins.dir / "tinyproxy.conf"
    conf.write_text(f"Port 8888\nListen {FAR_OTHER}\nTimeout 30\nMaxClients 20\nConnectPort 443\nConnectPort 80\nUser nobody\nGroup nogroup\n"
                    f"BasicAuth agent sesame-4711\nLogLevel Info\nLogFile \"{net.origins.dir}/tinyproxy.log\"\n")
    (net.origins.dir / "tinyproxy.log").touch(mode=0o666)
    (net.origins.dir / "tinyproxy.log").chmod(0o666)
    net.origins.start("tinyproxy", "-d", "-c", conf, ready=False)
    listens = lambda: ":8888" in base.sh(*net.world.enter(net.world.far), "ss", "-Hltn").stdout
    assert base.eventually(listens, 10)
    assert net.reload(policy(f"  - url: http://{FAR_OTHER}:8888\n    credentials: {{file: {net.secret}}}\n"))[0] == 200
    # It looks names up in no file of ours; addresses are names enough, and the name in SNI is another matter.
    got = net.fetch(f"https://{FAR[4]}/", "-k")
    assert got.startswith(b"HTTP/1.1 200") or got.startswith(b"HTTP/2 200"), got
    assert net.reload(policy(f"  - url: http://{FAR_OTHER}:8888\n"))[0] == 200
    got = net.fetch(f"https://{FAR[4]}/", "-k")
    assert b"502" in got.split(b"\r\n")[0] and b"x-netpawl-reason: proxy_failed" in got.lower() and b"answered 40" in got, got


# -- a proxy that fails ---------------------------------------------------------------------------

WORDS = {"p407": "407", "p403": "403", "p502": "502", "p302": "302", "garbage": "not understood", "long": "too large",
         "endless": "", "more": "more behind", "closes": "closed", "half": "closed", "switch": "not understood"}


@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_an_answer_that_opens_no_tunnel(net, how, scheme):
    after = net.last()
    url = f"{scheme}://{how}.{scheme}.test/"
    got = net.fetch(url)
    assert b" 502" in got.split(b"\r\n")[0] and b"x-netpawl-reason: proxy_failed" in got.lower() and b"forge" not in got, got
    seen = event(net, url, after)
    assert seen["reason"] == "proxy_failed" and seen["proxy"] == f"http://proxy.test:{PORT}" and seen["status"] == 502
    assert WORDS[how] in seen["text"] and "sesame" not in json.dumps(seen)


@pytest.mark.parametrize("name,words", [("dead.test", "refused"), ("lost.test", "name")])
def test_a_proxy_that_is_not_there(net, name, words):
    after = net.last()
    got = net.fetch(f"https://{name}/")
    assert b" 502" in got.split(b"\r\n")[0] and b"proxy_failed" in got, got
    assert words in event(net, f"https://{name}/", after)["text"]


def test_a_proxy_that_says_nothing(net):
    after = net.last()
    got = net.fetch("https://silent.test/")
    assert b" 504" in got.split(b"\r\n")[0] and b"proxy_timed_out" in got, got
    assert event(net, "https://silent.test/", after)["reason"] == "proxy_timed_out"


def test_the_origin_still_has_to_prove_who_it_is(net):
    """The proxy leads to another host than it was asked for, and to one whose certificate nobody vouches for."""
    net.behind["wrong.test"] = net.behind["origin.test"]
    got = net.fetch("https://wrong.test/")
    assert b"x-netpawl-reason: origin_untrusted" in got.lower() and b"from origin" not in got, got
    assert net.connects("wrong.test:443")


# -- reload ---------------------------------------------------------------------------------------

def test_a_reload_that_changes_the_proxy(net, restored):
    ends = []

    def handler(c):
        c.sendall(b"ready")
        ends.append(c.recv(100))

    net.origin("cut.test", handler, 2222)
    p = net.python("import socket; s = socket.create_connection(('cut.test', 2222), 60); print(s.recv(9), flush=True)\n"
                   "try: print(s.recv(9))\nexcept OSError as e: print(type(e).__name__)")
    assert p.stdout.readline() == b"b'ready'\n"
    assert b"from origin.test" in net.fetch("https://origin.test/")
    status, got = net.reload(policy(f"  - url: http://proxy.test:{OTHER_PORT}\n"))
    assert status == 200, got
    # Its tunnel went the old way: it is cut. Kept connections serve nobody any more.
    assert p.communicate(timeout=120)[0] in (b"ConnectionResetError\n", b"b''\n")
    assert [e for e in net.events(lambda e: "cut.test" in e["url"] and e["reason"] == "ended_by_reload")]
    before = len(net.seen)
    assert b"from origin.test" in net.fetch("https://origin.test/")
    port, authority, head = net.seen[before]
    assert (port, authority) == (OTHER_PORT, "origin.test:443") and b"authorization" not in head.lower()
    assert net.reload("version: 1\n" + RULES)[0] == 200
    before = len(net.seen)
    net.names["origin.test"] = [net.behind["origin.test"]]
    try:
        assert b"from origin.test" in net.fetch("https://origin.test/") and len(net.seen) == before
    finally:
        net.names.pop("origin.test")


@pytest.mark.parametrize("what,words", [
    (dict(mode=0o640), "chmod 600"), (dict(owner=65534), "belong to root"), (dict(text=b"no colon"), "user:password"),
    (dict(text=b"a:b\nc:d\n"), "more than one line"), (dict(text=b"a:" + b"b" * 600), "too long"), (None, "No such file")],
    ids=["mode", "owner", "text", "lines", "length", "absent"])
def test_credentials_that_are_not_taken(net, what, words):
    with credentials(**(what or {})) as path:
        if what is None:
            path.unlink()
        text = policy(f"  - url: http://proxy.test:{OTHER_PORT}\n    credentials: {{file: {path}}}\n")
        try:
            status, got = net.reload(text)
        finally:
            net.policy.write_text(net.standard)
        assert status == 422 and words in got["detail"] and f"{net.policy}:4" in got["detail"], got
        assert "sesame" not in got["detail"] and "colon" not in got["detail"]
    assert b"from origin.test" in net.fetch("https://origin.test/")  # what was live still is


def test_credentials_are_nowhere(net):
    """Neither in what the daemon shows nor in what it writes."""
    assert b"from origin.test" in net.fetch("https://origin.test/")
    shown = [json.dumps(net.api.ask("GET", path)[1]) for path in ("/v1/policy", "/v1/health", "/v1/debug", f"/v1/sessions/{net.session}/why")]
    shown += [json.dumps(net.api.events()), net.daemon.text()]
    written = [f.read_bytes() for f in net.daemon.dir.rglob("*") if f.is_file()]
    assert [1 for w in written if b"https://origin.test/" in w]  # it is where such things would be
    for secret in ("sesame", basic().split()[1].decode()):
        assert not [s[:200] for s in shown if secret in s] and not [1 for w in written if secret.encode() in w]


# -- what is judged all the same --------------------------------------------------------------------

@pytest.mark.parametrize("host", ["169.254.169.254", "127.0.0.1", "metadata.google.internal", "x.localhost"])
def test_special_hosts_are_not_asked_of_the_proxy(net, host):
    before = len(net.seen)
    got = net.raw(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert b" 403" in got.split(b"\r\n")[0], got
    assert len(net.seen) == before


# -- what people see -----------------------------------------------------------------------------------

def test_why_names_the_proxy(net):
    net.fetch("https://p403.why.test/")
    event(net, "https://p403.why.test/", 0)
    got = net.api.ask("GET", f"/v1/sessions/{net.session}/why")[1]
    assert f"https://p403.why.test/ by way of http://proxy.test:{PORT}, at " in got["text"], got["text"]
    assert [r["proxy"] for r in got["refused"] if "p403.why" in r["where"]] == [f"http://proxy.test:{PORT}"]


def explain(net, *words):
    return base.sh(base.NETPAWL, "policy", "explain", net.policy, *words).stdout


def test_explain_names_the_proxy(net):
    assert f"by way of http://proxy.test:{PORT}" in explain(net, "--url", "https://origin.test/")
    assert "by way of" not in explain(net, "--url", "https://direct.test/")
    assert "by way of" not in explain(net, "--url", "https://origin.test/", "--level", "PUBLIC")
    assert json.loads(explain(net, "--url", "https://origin.test/", "--json"))["proxy"] == f"http://proxy.test:{PORT}"


def test_tcp_by_name_that_the_proxy_fails_names_proxy_and_rule(net):
    after = net.last()
    code = "import socket\ntry: print(socket.create_connection(('dead.test', 2222), 10).recv(10))\nexcept OSError as e: print(type(e).__name__)"
    out, _ = net.python(code).communicate(timeout=30)
    assert b"ConnectionResetError" in out, out
    got = event(net, "dead.test", after)
    assert (got["reason"], got["proxy"]) == ("proxy_failed", f"http://{FAR_OTHER}:9") and "/policy.yaml:" in got["rule"], got
    line = int(got["rule"].rsplit(":", 1)[1])
    assert "dead.test:2222" in net.policy.read_text().splitlines()[line - 1]


def test_what_is_shown_of_proxies(net):
    """URLs and hosts; of credentials that there are some."""
    shown = net.api.ok("GET", "/v1/policy")["upstream_proxies"]
    assert [p["url"] for p in shown] == ["direct", f"http://{FAR_OTHER}:9", "http://nowhere.test:3128", f"http://proxy.test:{PORT}"]
    assert [p["credentials"] for p in shown] == [False, False, False, True] and "hosts" not in shown[3]
    assert shown[0]["hosts"] == ["direct.test:*", ".corp.test:*", "198.51.100.10:*"], shown
    assert net.api.health()["upstream_proxies"] == [p["url"] for p in shown]
    told = [net.daemon.cli("policy", "show", check=0).stdout, net.daemon.cli("doctor").stdout, json.dumps(shown)]
    assert f"http://proxy.test:{PORT}, with credentials" in told[0] and f"upstream proxy: http://proxy.test:{PORT}" in told[1], told
    assert not any(s in t for t in told for s in ("sesame-4711", str(net.secret)))
