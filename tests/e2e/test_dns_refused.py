# SPDX-License-Identifier: MIT
"""dns: refused: synthetic. A name that no rule allows has an address, so that whoever connects to it reads why it is refused."""
import json

import pytest

from lib.inspected import POLICY, Inspected, unharmed

MOST = 256  # NP_REFUSED_NAMES


@pytest.fixture(scope="module")
def net():
    with unharmed(Inspected, policy=POLICY + "dns:\n  refused: synthetic\n") as i:
        yield i


def asked_upstream(net):
    return (net.origins.dir / "log").read_text()


def refusals(net, after, want, count=1):
    pick = lambda got: [e for e in got if e["kind"] == "refuse" and want(e)]
    return pick(net.api.wait_events(lambda got: len(pick(got)) >= count, 10, session=net.session, after=after))


def check_body(text, host, reason="not_in_policy"):
    body = json.loads(text)
    assert (body["error"], body["reason"], body["host"]) == ("refused", reason, host) and body["hint"], body


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_connection_reads_why(net, scheme, version):
    host, after = f"{scheme}{version[-3]}.elsewhere.test", net.last()
    got = net.curl(version, "-w", "\n%{http_code}", f"{scheme}://{host}/secret")
    body, code = got.stdout.rsplit("\n", 1)
    assert code == "403", got
    check_body(body, host)
    # The query was refused for the same reason, and says so; and nothing of it left.
    (query, *_) = refusals(net, after, lambda e: e.get("lookup") == host)
    assert query["reason"] == "not_in_policy" and query["text"] in ("A", "AAAA") and "rule" not in query, query
    (request, *_) = refusals(net, after, lambda e: host in e.get("url", ""))
    assert request["reason"] == "not_in_policy" and request["status"] == 403
    assert host not in asked_upstream(net)


def test_control_an_allowed_name_is_resolved_when_it_is_used(net):
    assert net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://seen.origin.test/").stdout == "200"
    assert "dns seen.origin.test 1" in asked_upstream(net)


def test_a_denied_name_names_its_rule(net):
    after = net.last()
    check_body(net.curl("https://bad.origin.test/").stdout, "bad.origin.test", "rule_denies")
    (query, *_) = refusals(net, after, lambda e: e.get("lookup") == "bad.origin.test")
    assert query["reason"] == "rule_denies" and query["rule"].endswith("policy.yaml:3"), query
    assert "bad.origin.test" not in asked_upstream(net)


@pytest.mark.parametrize("port", [22, 5432, 25])
def test_what_is_not_http_is_refused_at_once_with_the_host(net, port):
    after, host = net.last(), f"db{port}.elsewhere.test"
    got = net.run("python3", "-c", "import socket, sys\n"
                  "try: print('read', socket.create_connection((sys.argv[1], int(sys.argv[2])), 60).recv(10))\n"
                  "except OSError as e: print(type(e).__name__)", host, port)
    assert got.stdout == "ConnectionResetError\n", got
    (event, *_) = refusals(net, after, lambda e: e.get("port") == port)
    assert event["url"] == f"{host}:{port}" and event["reason"] == "not_in_policy", event
    assert host not in asked_upstream(net)


PYTHON = """
import requests, sys
r = requests.get(sys.argv[1], timeout=90)
print(r.status_code, r.json()["reason"], r.json()["host"])
"""
NODE = """
fetch(process.argv[1]).then(async r => { const b = await r.json(); console.log(r.status, b.reason, b.host) })
"""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_python_requests(net, scheme):
    got = net.run("/usr/bin/python3", "-c", PYTHON, f"{scheme}://py.elsewhere.test/x")
    assert got.stdout.split() == ["403", "not_in_policy", "py.elsewhere.test"], got


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_node(net, scheme):
    got = net.run("node", "-e", NODE, f"{scheme}://node.elsewhere.test/x", timeout=240)
    assert got.stdout.split() == ["403", "not_in_policy", "node.elsewhere.test"], got


def test_git(net):
    got = net.run("git", "ls-remote", "https://git.elsewhere.test/x.git", timeout=240)
    assert got.returncode != 0 and "403" in got.stderr and "resolve" not in got.stderr, got


def dig(net, *words):
    return net.run("dig", "+tries=1", "+time=60", *words).stdout


def test_search_lists_go_on(net):
    """What looks like an allowed name with a domain of a search list behind it does not resolve, nor does a single label: the
    resolver has to come to the name that was meant."""
    for name in ("origin.test.default.svc.cluster.example", "www.origin.test.corp.lan", "wpad", "printer.local"):
        assert "NXDOMAIN" in dig(net, name, "A"), name
    got = dig(net, "other.elsewhere.test", "AAAA")
    assert "NOERROR" in got and "fd6e:6574:7061:776c::" in got and "EDE: 15" in got, got
    got = dig(net, "other.elsewhere.test", "MX")
    assert "NOERROR" in got and "ANSWER: 0" in got, got


def test_a_reload_decides_anew(net):
    """A name that is allowed from now on has another address, and the old one leads there as well."""
    address = dig(net, "+short", "late.test", "A").strip()
    assert address.startswith("198.18.32."), "one of the refused: behind 8192"
    text = net.policy.read_text()
    try:
        net.policy.write_text(text.replace("  - allow: 198.51.100.10\n", "  - allow: 198.51.100.10\n  - allow: late.test\n"))
        assert net.daemon.cli("policy", "reload").returncode == 0
        assert net.curl("-o", "/dev/null", "-w", "%{http_code}", "http://late.test/").stdout == "200"
        assert dig(net, "+short", "late.test", "A").strip() not in ("", address)
        assert net.curl("-o", "/dev/null", "-w", "%{http_code}", "--resolve", f"late.test:80:{address}", "http://late.test/").stdout == "200"
    finally:
        net.policy.write_text(text)
        assert net.daemon.cli("policy", "reload").returncode == 0
    check_body(net.curl("http://late.test/").stdout, "late.test")


FLOOD = """
import socket, sys
got = {"addresses": 0, "none": 0}
for i in range(int(sys.argv[1])):
    try:
        socket.getaddrinfo(f"flood{i}.elsewhere.test", 80, socket.AF_INET, socket.SOCK_STREAM)
        got["addresses"] += 1
    except socket.gaierror:
        got["none"] += 1
print(got["addresses"], got["none"])
"""


def test_a_flood_of_refused_names_takes_nothing_from_the_others(net):
    """The last of this file: it uses up what refused names have."""
    got = net.run("/usr/bin/python3", "-c", FLOOD, MOST + 100, timeout=600)
    addresses, none = map(int, got.stdout.split())
    assert 0 < addresses <= MOST and none >= 100 and addresses + none == MOST + 100, got
    debug = net.api.ok("GET", f"/v1/debug?session={net.session}")["session"]
    assert debug["refused_names"] == MOST and debug["names"] < 100, debug
    # Allowed names that nobody has asked for before have their addresses, and lead on.
    for i in range(3):
        assert net.curl("-o", "/dev/null", "-w", "%{http_code}", f"http://fresh{i}.origin.test/").stdout == "200"
    assert "flood" not in asked_upstream(net)
    got = net.curl("http://one-more.elsewhere.test/")
    assert got.returncode == 6, got  # could not resolve
