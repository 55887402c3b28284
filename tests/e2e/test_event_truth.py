# SPDX-License-Identifier: MIT
"""An event says what happened: the rule that decided, where it was meant to go, and who ended it."""
import contextlib
import os
import signal
import subprocess

import pytest

from lib import base
from lib.box import Box, new_session
from lib.inspected import inspected
from lib.world import FAR, FAR_OTHER

POLICY = f"""version: 1
rules:
  - deny: {FAR[4]}:443
  - deny: {FAR[4]}:8080
  - deny: [bad.test, "**.bad.test"]
  - deny: db.test:9000
  - allow: [db.test, "tcp.test:8080"]
  - allow: {FAR_OTHER}:8080
  - allow: origin.test
    for: [CONFIDENTIAL]
  - allow: open.test:9000
  - deny: text.test
  - allow: part.test
    methods: POST
"""
LINE = {text: n + 1 for n, text in enumerate(POLICY.splitlines())}


def place(part):
    """The place of the rule whose line has these words, as events cite it."""
    return f"policy.yaml:{next(n for text, n in LINE.items() if part in text)}"


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY) as i:
        yield i
        assert i.daemon.running()


@pytest.fixture
def session(net):
    """With a sandbox that stays, so that its CA does."""
    with Box(net.daemon, "PROXIED") as box:
        yield box.session


def curl(net, session, *words):
    argv = net.argv("curl", "-sS", "-m", "90", *words, session=session)
    return subprocess.run(argv, env=net.env(), capture_output=True, text=True, timeout=240)


def told(net, session, want, count=1):
    """The events of requests (and of connections that were none) that are wanted: exactly so many."""
    pick = lambda got: [e for e in got if e["kind"] in ("allow", "refuse") and want(e)]
    got = pick(net.api.wait_events(lambda got: len(pick(got)) >= count, 10, session=session, limit=1000))
    assert len(got) == count, [e for e in net.api.events(session=session, limit=1000)]
    return got[0] if count == 1 else got


def why(net, session):
    return net.api.ok("GET", f"/v1/sessions/{session}/why?last=50")


def why_of(net, session, want):
    got = [r for r in why(net, session)["refused"] if want(r)]
    assert len(got) == 1, why(net, session)["refused"]
    return got[0]


# -- which rule -------------------------------------------------------------------------

def test_a_denied_address_names_the_rule_that_denies_it(net, session):
    """The name is allowed, by a rule that is not to blame."""
    p = curl(net, session, "https://db.test/secret")
    assert '"reason":"address_refused"' in p.stdout and place(f"{FAR[4]}:443") in p.stdout, p
    e = told(net, session, lambda e: "db.test" in e.get("url", ""))
    assert e["reason"] == "address_refused" and e["rule"].endswith(place(f"{FAR[4]}:443")), e
    assert e["address"] == FAR[4] and e["port"] == 443, e
    # what passes unseen: TCP by name
    assert "000" in curl(net, session, "-4", "-w", "%{http_code}", "http://tcp.test:8080/").stdout
    e = told(net, session, lambda e: e.get("port") == 8080)
    assert e["reason"] == "address_refused" and e["rule"].endswith(place(f"{FAR[4]}:8080")), e
    assert e["address"] == FAR[4] and e["url"] == "tcp.test:8080", e
    # control: the same names, where no address is denied, and the rule that allows is named
    assert curl(net, session, "-o", "/dev/null", "-w", "%{http_code}", "http://db.test/").stdout == "200"
    e = told(net, session, lambda e: e.get("url") == "http://db.test/")
    assert e["reason"] == "rule_allows" and e["rule"].endswith(place("[db.test, ")), e


def test_refused_tcp_by_name_has_its_rule_and_port(net, session):
    assert curl(net, session, "-4", "telnet://db.test:9000").returncode != 0
    e = told(net, session, lambda e: e.get("port") == 9000)
    assert e["reason"] == "rule_denies" and e["rule"].endswith(place("db.test:9000")) and e["url"] == "db.test:9000", e
    r = why_of(net, session, lambda r: "db.test" in r["where"])
    assert (r["what"], r["where"], r["port"]) == ("connection", "db.test:9000", 9000), r
    assert r["rule"] == e["rule"] and f"connection to db.test:9000, at " in why(net, session)["text"]


def test_a_refused_lookup_names_the_rule(net, session):
    for name, rule in (("bad.test", '"**.bad.test"'), ("deep.bad.test", '"**.bad.test"'), ("text.test", "deny: text.test")):
        assert curl(net, session, f"http://{name}/").returncode == 6
        e = told(net, session, lambda e: e.get("lookup") == name and e["text"] == "A")
        assert e["reason"] == "rule_denies" and e["rule"].endswith(place(rule)), e
    # control: what no rule speaks of has none
    assert curl(net, session, "http://nobody.example/").returncode == 6
    e = told(net, session, lambda e: e.get("lookup") == "nobody.example" and e["text"] == "A")
    assert e["reason"] == "not_in_policy" and "rule" not in e, e


# -- where to ---------------------------------------------------------------------------

PROXY = ["-p", "-x", f"http://{FAR[4]}:80"]


def test_a_granted_connect_by_address(net, session):
    curl(net, session, *PROXY, "-d", "hello", f"http://{FAR_OTHER}:8080/")
    e = told(net, session, lambda e: e.get("method") == "CONNECT")
    assert e["reason"] == "rule_allows" and e["rule"].endswith(place(f"{FAR_OTHER}:8080")), e
    assert (e["url"], e["address"], e["port"]) == (f"{FAR_OTHER}:8080", FAR_OTHER, 8080), e
    assert e["sent"] > 0, e


@pytest.mark.parametrize("target", ["elsewhere.test:443", "192.0.2.77:8443", "db.test:9000"])
def test_a_refused_connect_carries_its_target(net, session, target):
    host, port = target.rsplit(":", 1)
    p = curl(net, session, *PROXY, f"http://{target}/")
    assert p.returncode != 0
    e = told(net, session, lambda e: e.get("method") == "CONNECT")
    assert (e["url"], e["port"]) == (target, int(port)), e
    assert e.get("address") == (host if host[0].isdigit() else None), e
    assert e.get("rule", "").endswith(place("db.test:9000") if "db.test" in target else ""), e
    r = why_of(net, session, lambda r: "CONNECT" in r["where"])
    assert r["where"] == f"CONNECT {target}" and FAR[4] not in why(net, session)["text"], r


# -- TLS with the program -----------------------------------------------------------------

PYTHON_TLS = """
import socket, ssl, sys
s = socket.create_connection(("origin.test", 443))
ssl.create_default_context(cafile=sys.argv[1]).wrap_socket(s, server_hostname="origin.test")
"""

# Closes without a word when it has the server's first flight, with the certificate in it.
CLOSES = """
import socket, ssl, sys
s = socket.create_connection(("origin.test", 443))
near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = ssl.create_default_context().wrap_bio(near, far, server_hostname="origin.test")
try:
    tls.do_handshake()
except ssl.SSLWantReadError:
    s.sendall(far.read())
s.recv(65536)
s.close()
"""


def distrusting(net):
    other = net.origins.authority.pem  # a CA, and not the session's
    return {"curl": ["curl", "-sS", "--cacert", other, "https://origin.test/"],
            "curl, TLS 1.2": ["curl", "-sS", "--tls-max", "1.2", "--cacert", other, "https://origin.test/"],
            "python": [base.PYTHON, "-c", PYTHON_TLS, other], "closes": [base.PYTHON, "-c", CLOSES]}


@pytest.mark.parametrize("how", ["curl", "curl, TLS 1.2", "python", "closes"])
def test_a_program_that_does_not_trust_the_ca(net, session, how):
    p = subprocess.run(net.argv(*distrusting(net)[how], session=session), env=net.env(), capture_output=True, text=True,
                       timeout=60)
    assert p.returncode == 0 if how == "closes" else "certificate" in p.stderr, p
    e = told(net, session, lambda e: e.get("port") == 443)
    assert (e["reason"], e["url"]) == ("ca_untrusted", "origin.test:443"), e
    assert "ended during" in e["text"] if how == "closes" else "alert unknown ca" in e["text"], e
    r = why_of(net, session, lambda r: r["where"] == "origin.test:443")
    assert (r["reason"], r["what"]) == ("ca_untrusted", "connection") and "$SSL_CERT_FILE" in r["hint"], r
    assert "$SSL_CERT_FILE" in why(net, session)["text"]


def test_other_ends_of_a_handshake_are_not_about_the_ca(net, session):
    p = curl(net, session, "--tls-max", "1.2", "--ciphers", "AES128-SHA", "https://origin.test/")
    assert p.returncode == 35, p
    e = told(net, session, lambda e: e.get("port") == 443)
    assert (e["reason"], e["url"]) == ("client_tls", "origin.test:443"), e
    # control: the same program, with what netpawl run gives it, has an answer (the address is denied)
    assert '"reason":"address_refused"' in curl(net, session, "https://origin.test/").stdout
    assert told(net, session, lambda e: e.get("method") == "GET")["reason"] == "address_refused"


# -- who ended it -------------------------------------------------------------------------

@contextlib.contextmanager
def in_flight(net, session, path, *words):
    """A request that is open: it has no answer yet (/hold), or is taking its time (/bytes)."""
    p = net.spawn("curl", "-sS", "-m", "600", "-o", "/dev/null", *words, f"http://origin.test{path}", session=session,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert base.eventually(lambda: port_is_used(net, 80))
        yield p
    finally:
        base.reap(p)


def port_is_used(net, port):
    out = base.sh(*net.world.enter(net.world.far), "ss", "-tn", "state", "established", "sport", "=", f":{port}").stdout
    return len(out.splitlines()) > 1


def tunnel_carries(net):
    """The byte that the tunnel's client sends is at the origin: before that the tunnel is there, and has sent nothing."""
    out = base.sh(*net.world.enter(net.world.far), "ss", "-tin", "state", "established", "sport", "=", ":9000").stdout
    return "bytes_received:1" in out


def settled(net):
    """No connection is open at the origin any more, of an earlier test."""
    assert base.eventually(lambda: not port_is_used(net, 80), 20)


SLOW = ["--limit-rate", "20k"]


H2 = ["--http2-prior-knowledge"]


@pytest.mark.parametrize("path,words", [("/hold", []), ("/hold", H2), ("/bytes/20000000", SLOW), ("/bytes/20000000", SLOW + H2)])
def test_a_request_that_a_raise_cut(net, path, words):
    settled(net)
    with Box(net.daemon, "PROXIED") as box, in_flight(net, box.session, path, *words):
        net.api.escalate(box.session, "SECRET")
        record = net.api.events(session=box.session, limit=1000)
        e = told(net, box.session, lambda e: path in e.get("url", ""))
        # in the record when the raise is acknowledged, and handled after it, not in the middle of it
        raised = [r["seq"] for r in record if r["reason"] == "raised" and r["level"] == "SECRET"]
        assert e in record and len(raised) == 1 and e["seq"] > raised[0], (e, record)
        assert e["reason"] == "ended_by_raise" and (e["mode"], e["level"]) == ("NONE", "SECRET"), e
        assert "went away" not in e.get("text", ""), e
        # nobody tried anything since: there is nothing else to tell of
        net.api.ok("GET", "/v1/health")
        refused = why(net, box.session)["refused"]
        assert [r["reason"] for r in refused] == ["ended_by_raise"], refused


def tunnel(net, session):
    """A connection that passes unseen, and stays."""
    code = "import socket,time\ns=socket.create_connection(('open.test',9000))\ns.send(b'x')\ntime.sleep(600)"
    return net.spawn(base.PYTHON, "-c", code, session=session, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def reloaded(net, text):
    """With a policy that has these lines in front of the rules."""
    before = net.policy.read_text()
    net.policy.write_text(before.replace("rules:\n", "rules:\n" + text, 1))
    try:
        net.daemon.cli("policy", "reload", check=0)
        yield
    finally:
        net.policy.write_text(before)
        net.daemon.cli("policy", "reload", check=0)


@pytest.mark.parametrize("path,words", [("/hold", []), ("/hold", H2), ("/bytes/20000000", SLOW)])
def test_a_request_that_a_reload_ended(net, session, path, words):
    settled(net)
    with in_flight(net, session, path, *words):
        with reloaded(net, "  - deny: origin.test\n"):
            e = told(net, session, lambda e: path in e.get("url", ""))
            assert e["reason"] == "ended_by_reload" and e["rule"].endswith("policy.yaml:3"), e
            assert e["policy"] == net.api.health()["policy"] and e["mode"] == "PROXIED", e
            assert e["text"].endswith(place("allow: origin.test")) and "allowed until then by " in e["text"], e
            r = why_of(net, session, lambda r: path in r["where"])
            assert r["reason"] == "ended_by_reload" and r["rule"] == e["rule"], r


def test_a_tunnel_that_was_ended(net):
    for how in ("reload", "raise"):
        with Box(net.daemon, "PROXIED") as box, contextlib.ExitStack() as stack:
            assert base.eventually(lambda: not port_is_used(net, 9000)), "of an earlier one"
            stack.callback(base.reap, tunnel(net, box.session))
            assert base.eventually(lambda: tunnel_carries(net))
            if how == "reload":
                stack.enter_context(reloaded(net, "  - deny: open.test\n"))
            else:
                net.api.escalate(box.session, "SECRET")
            e = told(net, box.session, lambda e: e.get("method") == "CONNECT")
            assert e["reason"] == f"ended_by_{how}" and (e["url"], e["address"]) == ("open.test:9000", FAR[4]), e
            assert e.get("rule", "").endswith("policy.yaml:3" if how == "reload" else ""), e
            assert e["text"].endswith(place("open.test:9000")) and e["sent"] == 1, e
            assert [r["reason"] for r in why(net, box.session)["refused"]] == [f"ended_by_{how}"]


def test_what_a_client_ends_is_its_own(net, session):
    """The control: nobody but the client ended it, and it stays allowed."""
    code = (f"import socket;s=socket.create_connection(('{FAR[4]}',80));"
            "s.send(b'POST /own HTTP/1.1\\r\\nHost: origin.test\\r\\nContent-Length: 10\\r\\n\\r\\nhalf')")
    p = net.spawn("sh", "-c", f'{base.PYTHON} -c "{code}"; sleep 600', session=session)
    try:
        e = told(net, session, lambda e: "/own" in e.get("url", ""))
        assert (e["reason"], e["text"]) == ("rule_allows", "the client went away"), e
    finally:
        base.reap(p)


@pytest.mark.parametrize("path,words", [("/hold", []), ("/hold", H2), ("/bytes/20000000", SLOW), ("/bytes/20000000", SLOW + H2)])
def test_a_request_whose_sandbox_was_removed(net, session, path, words):
    """Its processes are killed, which is not a client that went away by itself."""
    settled(net)
    before = {s["sandbox"] for s in net.api.sandboxes(session)}
    with in_flight(net, session, path, *words):
        new = [s["sandbox"] for s in net.api.sandboxes(session) if s["sandbox"] not in before]
        net.api.remove(new[0])
        e = told(net, session, lambda e: path in e.get("url", ""))
        assert e["reason"] == "ended_by_removal" and e["sandbox"] == new[0], e
        assert "went away" not in e["text"] and e["text"].endswith(place("allow: origin.test")), e


def test_a_tunnel_whose_sandbox_was_removed(net, session):
    before = {s["sandbox"] for s in net.api.sandboxes(session)}
    assert base.eventually(lambda: not port_is_used(net, 9000)), "of an earlier one"
    p = tunnel(net, session)
    try:
        assert base.eventually(lambda: tunnel_carries(net))
        new = [s["sandbox"] for s in net.api.sandboxes(session) if s["sandbox"] not in before]
        net.api.remove(new[0])
        e = told(net, session, lambda e: e.get("method") == "CONNECT")
        assert e["reason"] == "ended_by_removal" and e["sandbox"] == new[0] and e["sent"] == 1, e
    finally:
        base.reap(p)


@pytest.mark.parametrize("port", [80, 9000])
def test_a_connection_that_a_raise_cut_leaves_no_refusal(net, port):
    """FULL to PROXIED: what was open goes, and its last packets are nobody's attempt."""
    with Box(net.daemon, "FULL") as box:
        for i in range(8):
            box.call("dial", family=4, addr=FAR[4], port=port, keep=f"c{i}")
        net.api.escalate(box.session, "CONFIDENTIAL")
        cut = net.api.wait_events(lambda got: any(e["reason"] == "cut" for e in got), 10, session=box.session)
        assert [e["cut"] for e in cut if e["reason"] == "cut"] == [8]
        for i in range(8):
            box.try_("close", keep=f"c{i}")
        # control: an attempt that is one is told, behind all that the cut left
        assert box.try_("dial", family=4, addr=FAR[4], port=9001) == "ECONNREFUSED"
        net.api.wait_events(lambda got: any(e.get("port") == 9001 for e in got), 10, session=box.session)
        assert [(r["reason"], r["where"]) for r in why(net, box.session)["refused"]] == [("not_in_policy", f"{FAR[4]}:9001")]
