# SPDX-License-Identifier: MIT
"""The inspector: requests of a PROXIED sandbox, judged one by one."""
import json

import pytest

from lib.inspected import inspected
from lib.world import FAR


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        yield i
        assert i.daemon.running()
        assert i.api.health()["inspectors"] == 2, i.daemon.text()[-2000:]


VERSIONS = pytest.mark.parametrize("version", ["--http1.1", "--http2"])


@VERSIONS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_allowed_request_goes_and_comes_back(net, scheme, version):
    got = net.curl(version, f"{scheme}://origin.test/a?b=c", "-d", "hello")
    assert got.returncode == 0, got.stderr
    seen = json.loads(got.stdout)
    assert (seen["method"], seen["path"], seen["host"], seen["text"]) == ("POST", "/a?b=c", "origin.test", "hello")


@VERSIONS
def test_a_refusal_explains_itself_and_the_connection_lives_on(net, version):
    after = net.last()
    got = net.curl(version, "-w", "\n%{http_code} %{num_connects}\n", "https://get-only.origin.test/x",
                   "--next", "-sS", "--connect-to", f"::{FAR[4]}:", version, "-w", "\n%{http_code} %{num_connects}\n", "-d", "x",
                   "https://get-only.origin.test/x",
                   "--next", "-sS", "--connect-to", f"::{FAR[4]}:", version, "-w", "\n%{http_code} %{num_connects}\n",
                   "https://get-only.origin.test/y")
    lines = got.stdout.splitlines()
    codes = [l for l in lines if l.startswith(("200 ", "403 "))]
    assert codes == ["200 1", "403 0", "200 0"], got
    refusal = json.loads(next(l for l in lines if "blocked" in l))
    assert refusal["reason"] == "rule_denies" and refusal["host"] == "get-only.origin.test"
    assert refusal["mode"] == "PROXIED" and refusal["level"] == "CONFIDENTIAL" and refusal["message"] and refusal["hint"]
    events = net.events(lambda e: "get-only" in e["url"], after, count=3)
    assert [(e["method"], e["status"], e["reason"]) for e in events] == [
        ("GET", 200, "rule_allows"), ("POST", 403, "rule_denies"), ("GET", 200, "rule_allows")]


@pytest.mark.parametrize("url,code,reason", [
    ("https://bad.origin.test/", 403, "rule_denies"), ("https://nowhere.example/", 403, "not_in_policy"),
    ("https://paths.origin.test/closed", 403, "rule_denies"), ("https://paths.origin.test/open/a", 200, None),
    ("https://paths.origin.test/open/../closed", 403, "bad_path"),
    ("https://paths.origin.test/open/%2e%2e/closed", 403, "bad_path"),
    ("https://paths.origin.test/open/..%2fclosed", 403, "bad_path"),
    ("https://loop.test/", 403, "address_refused"), ("https://meta.test/", 403, "address_refused"),
    ("https://host.test/", 403, "address_refused"), ("https://dead.test/", 502, "origin_unreachable"),
    ("https://nx.test/", 502, "origin_unreachable"), (f"https://{FAR[4]}/", 200, None)])
def test_verdicts(net, url, code, reason):
    got = net.curl("--path-as-is", "-D", "-", "-w", "\n%{http_code}", url)
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
