# SPDX-License-Identifier: MIT
"""capture: tokens that an origin issues. The sandbox gets placeholders of them, and works with these as with the tokens."""
import contextlib
import json
import re
import secrets
import sys
import urllib.parse

import pytest

from lib import base, terminal
from lib.h2_origin import requests
from lib.issuing_origins import IssuingNet, bearer, tokens
from lib.proxies import credentials as secret_file

POLICY = """version: 1
credentials:
  oauth:
    source: {{file: {refresh}}}
    for: [auth.origin.test, two.origin.test]
    as: [form, json]
    capture:
      json: [access_token, refresh_token]
      paths: [/token]
      for: api.origin.test
      as: bearer
    placeholder: {{env: REFRESH}}
  login:
    source: {{file: {password}}}
    for: web.origin.test
    as: form
    capture: {{cookies: session}}
    placeholder: {{env: PASSWORD}}
rules:
  - allow: "**.origin.test"
    capture: 4096
"""
URL = "https://auth.origin.test/token"


@pytest.fixture(scope="module")
def net():
    refresh, password = "first-refresh-" + secrets.token_hex(12), "pass+word/" + secrets.token_hex(12)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(secret_file(v.encode())) for v in (refresh, password)]
        n = IssuingNet(stack, POLICY.format(refresh=files[0], password=files[1]), refresh, password)
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]
        assert n.issued and n.holds_none(n.daemon.text()) and n.holds_none(json.dumps(n.api.events()))



def test_the_refresh_flow(net):
    """As a client of OAuth does it: each refresh gives the tokens for what comes next, by form and by JSON."""
    got = json.loads(tokens(net))
    for round in range(3):
        assert got["access_token"].startswith("nptoken_") and got["refresh_token"].startswith("nptoken_") and net.holds_none(json.dumps(got))
        assert got["nested"]["list"][1] == {"access_token": got["access_token"], "note": "access_token"}
        assert got["expires_in"] == 3600 and got["scope"] == "a b" and got["other"] is None
        assert bearer(net, got["access_token"]) == '{"me":"agent"}'
        assert net.at("api")[2]["authorization"].removeprefix("Bearer ") in net.access
        used = got["refresh_token"]
        if round % 2:
            got = json.loads(net.sh(f'curl -sS -m 60 -d "refresh_token={used}" {URL}'))
        else:
            got = json.loads(net.sh(f"""curl -sS -m 60 -H "content-type: application/json" -d '{{"refresh_token": "{used}"}}' {URL}"""))
        assert json.loads(net.sh(f'curl -sS -m 60 -d "refresh_token={used}" {URL}')) == {"error": "invalid_grant"}, "it was good once"


def test_the_event_counts_them_and_has_none(net):
    after = net.last()
    tokens(net)
    got = net.events(lambda e: e.get("tokens"), after=after)[-1]
    assert (got["tokens"], got["captured"], got["credential"], got["reason"]) == (3, "oauth", "oauth", "rule_allows")
    assert "nptoken_" in got["response_body"] and net.holds_none(json.dumps(got))
    listed = {c["name"]: c for c in net.api.ask("GET", "/v1/credentials")[1]["credentials"]}
    assert listed["oauth"]["captures"] and listed["oauth"]["tokens"] >= 3
    assert re.search(rf"^oauth +ready .* {listed['oauth']['tokens']} +-$", net.daemon.cli("credentials").stdout, re.M)
    sys.path.insert(0, str(base.ROOT / "clients/python"))
    import netpawl

    session = netpawl.Session(*net.session.split("/"), path=str(net.daemon.socket))
    assert {c["name"]: c["tokens"] for c in session.credentials()}["oauth"] == listed["oauth"]["tokens"]


def test_top_counts_them(net):
    count = {c["name"]: c["tokens"] for c in net.api.ask("GET", "/v1/credentials")[1]["credentials"]}["oauth"]
    with terminal.Terminal(["top", "--socket", str(net.daemon.socket)]) as t:
        t.shows("netpawl traffic")
        t.type("4")
        t.shows("netpawl credentials", rf"oauth +ready +file +\d+ +{count} +\S")
        tokens(net)
        assert net.holds_none(t.shows(rf"oauth +ready +file +\d+ +{count + 3} +20\d\d-"))
        t.type("q")
        t.shows("left with 0")


@pytest.mark.parametrize("how", ["piece=1", "piece=7", "piece=100", "coding=gzip", "coding=deflate", "coding=br", "coding=zstd", "coding=gzip&piece=3",
                                 "as=escaped", "size=2000", "size=2000&piece=50"])
def test_however_it_comes(net, how):
    """Chunks that cut tokens in two, codings, escapes, lengths."""
    coding = how.partition("coding=")[2].partition("&")[0]
    got = tokens(net, how, f'-i -H "accept-encoding: {coding}"' if coding else "-i")
    head, _, body = got.partition("\r\n\r\n")
    assert "content-encoding" not in head.lower() and "content-length" not in head.lower() and "etag" not in head.lower()
    assert net.holds_none(got)
    assert bearer(net, json.loads(body)["access_token"]) == '{"me":"agent"}'


def test_over_http2(net):
    got = tokens(net, "piece=9", "--http2 -i")
    assert got.startswith("HTTP/2 200") and net.holds_none(got)
    token = json.loads(got.partition("\r\n\r\n")[2])["access_token"]
    assert bearer(net, token, words="--http2") == '{"me":"agent"}'


def in_two(net):
    """An origin of HTTP/2, which issues tokens for a refresh token, in frames of a few bytes and with a trailer, and lets in who has one."""
    def handler(c):
        for fields, body, stream, http in requests(c):
            given = urllib.parse.parse_qs(body.decode()).get("refresh_token", [""])[0]
            net.two.append((fields, given))
            if fields[":path"] == "/token" and given == net.first:
                token = "real-access-" + secrets.token_urlsafe(24)
                net.issued.append(token)
                net.access.add(token)
                text = json.dumps({"access_token": token, "nested": [{"refresh_token": token}], "n": 1}).encode()
            else:
                text = b"in" if fields.get("authorization", "").removeprefix("Bearer ") in net.access else b"out"
            http.send_headers(stream, [(":status", "200"), ("content-type", "application/json")])
            for i in range(0, len(text), 5):
                http.send_data(stream, text[i:i + 5])
            http.send_headers(stream, [("x-end", "whole")], end_stream=True)

    net.two = []
    net.origin("two.origin.test", handler, 443, alpn=["h2"])


@pytest.mark.parametrize("client", ["--http1.1", "--http2"])
def test_an_origin_that_speaks_http2(net, client):
    if not hasattr(net, "two"):
        in_two(net)
    after = net.last()
    got = json.loads(net.sh(f'curl -sS -m 60 {client} -d "refresh_token=$REFRESH" https://two.origin.test/token'))
    token = got["access_token"]
    assert token.startswith("nptoken_") and got == {"access_token": token, "nested": [{"refresh_token": token}], "n": 1}
    assert net.holds_none(json.dumps(got)) and net.two[-1][1] == net.first and net.two[-1][0][":authority"] == "two.origin.test"
    (e,) = net.events(lambda e: e.get("tokens"), after=after)
    assert (e["tokens"], e["captured"], e["credential"]) == (2, "oauth", "oauth")
    assert net.sh(f'curl -sS -m 60 {client} -H "Authorization: Bearer {token}" https://two.origin.test/in') == "in"
    assert net.two[-1][0]["authorization"].removeprefix("Bearer ") in net.access
    assert net.sh(f'curl -sS -m 60 {client} https://two.origin.test/in') == "out", "the control"
    assert json.loads(net.sh(f'curl -sS -m 60 {client} -H "Authorization: Bearer {token}" https://evil.origin.test/'))["reason"] == "credential_elsewhere"


def test_a_login_and_its_cookie(net):
    jar = 'curl -sS -m 60 -c $jar -b $jar'
    out = net.sh(f"""jar=$(mktemp); {jar} -d user=me --data-urlencode "password=$PASSWORD" https://web.origin.test/login && {jar} https://web.origin.test/home; cat $jar; rm $jar""")
    assert "<p>in</p><p>home dark</p>" in out and "nptoken_" in out and net.holds_none(out)
    assert net.at("web")[2]["cookie"].split("session=")[1].split(";")[0] in net.cookies
    got = {c["name"]: c for c in net.api.ask("GET", "/v1/credentials")[1]["credentials"]}
    assert got["login"]["tokens"] == 1


def test_what_comes_back_is_replaced(net):
    """An API that sends the access token back: the placeholder stands where it was, in the same form."""
    token = json.loads(tokens(net))["access_token"]
    got = bearer(net, token, "echo", words="-i")
    assert net.holds_none(got) and f"x-echo: {token}" in got.lower().replace(token.lower(), token) and json.loads(got.partition("\r\n\r\n")[2])["you"] == token
    got = bearer(net, token, "echo?coding=gzip&piece=5", words='-H "accept-encoding: gzip"')
    assert net.holds_none(got) and json.loads(got)["you"] == token


@pytest.mark.parametrize("how", ["as=form", "as=object", "as=broken", "as=part", "as=unknown", "as=long"])
def test_what_cannot_be_read_is_refused(net, how):
    after, had = net.last(), len(net.issued)
    got = tokens(net, how, "-i")
    assert len(net.issued) > had and net.holds_none(got)
    assert net.events(lambda e: e["reason"] == "unsearchable" and how in e["url"], after=after)


def test_other_paths_are_as_they_are(net):
    assert net.sh("curl -sS -m 60 https://auth.origin.test/page") == "<p>words</p>"
    assert json.loads(net.sh(f"curl -sS -m 60 -d refresh_token=wrong {URL}")) == {"error": "invalid_grant"}


def test_a_restart_keeps_what_sandboxes_hold(net):
    token = json.loads(tokens(net))["access_token"]
    net.daemon.stop()
    net.daemon.start()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
    assert base.eventually(lambda: bearer(net, token) == '{"me":"agent"}', 60)
