# SPDX-License-Identifier: MIT
"""Credentials on HTTP/2, at the client and at the origin, which is dialled by name or reached through an upstream proxy: values and
signatures arrive, a proxy sees none, and a rise takes one away from the stream that it is on and from no other."""
import base64
import contextlib
import hashlib
import json
import threading

import h2.events
import pytest

from lib import base
from lib.h2_origin import requests, streams
from lib.proxies import PORT, Proxied
from lib.proxies import credentials as secret_file
from lib.rogues import read_head
from lib.sigv4 import Given

VALUE = "".join(["sk-R3al", "-S3cretValue-0123456789"])  # in no file: sandboxes of tests see this one
ID, SECRET = "AKIDREALKEY0001", "".join(["wJalrXUtnFEMI/", "K7MDENG+bPxRfi"])
POLICY = f"""version: 1
upstream_proxy:
  - {{{{url: direct, hosts: [near.test, slow.test, calm.test]}}}}
  - {{{{url: "http://proxy.test:{PORT}"}}}}
credentials:
  token: {{{{source: {{{{file: {{token}}}}}}, for: [near.test, far.test, old.test], as: [bearer, {{{{basic: me}}}}, json], placeholder: {{{{env: TOKEN}}}}}}}}
  aws: {{{{source: {{{{file: {{aws}}}}}}, for: [near.test, far.test, old.test], as: {{{{sigv4: {{{{service: s3, region: eu-test-1}}}}}}}}, placeholder: {{{{env: KEY_ID, like: "AKIA{{{{24}}}}"}}}}}}}}
  low: {{{{source: {{{{file: {{token}}}}}}, for: slow.test, levels: [INTERNAL], placeholder: {{{{env: LOW}}}}}}}}
levels: {{{{INTERNAL: proxied}}}}
rules:
  - allow: "*.test"
"""
HOSTS = {"near.test": "h2", "far.test": "h2", "old.test": "http/1.1"}


class Net(Proxied):
    def __init__(self, stack, policy):
        self.got, self.cut, self.go_on = [], [], threading.Event()
        super().__init__(stack, policy, inspectors=1)
        for name, alpn in HOSTS.items():
            self.origin(name, self.serves if alpn == "h2" else self.serves_old, 443, alpn=[alpn])
        for name in ("slow.test", "calm.test"):
            self.origin(name, lambda c, name=name: self.hangs(c, name), 443, alpn=["h2"])
        for name in ("near.test", "slow.test", "calm.test"):
            self.names[name] = [self.behind[name]]

    def serves(self, c):
        for fields, body, stream, http in requests(c):
            self.got.append((2, fields, body))
            http.send_headers(stream, [(":status", "200"), ("x-got", fields.get("authorization", "nothing"))])
            http.send_data(stream, body + b" in two", end_stream=True)

    def serves_old(self, c):
        while True:
            head, _, body = read_head(c).partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            fields = {k.lower(): v for k, v in (l.split(": ", 1) for l in lines[1:])}
            fields[":method"], fields[":path"], _ = lines[0].split(" ")
            fields[":authority"] = fields.pop("host")
            while len(body) < int(fields.get("content-length", 0)):
                body += c.recv(65536)
            if "transfer-encoding" in fields:
                body = self.chunks(c, body)
            self.got.append((1, fields, body))
            c.sendall(b"HTTP/1.1 200 OK\r\nx-got: %s\r\ncontent-length: %d\r\n\r\n%s in one" %
                      (fields.get("authorization", "nothing").encode(), len(body) + 7, body))

    @staticmethod
    def chunks(c, got):
        while not got.endswith(b"0\r\n\r\n"):
            got += c.recv(65536)
        out = b""
        while got:
            size, _, got = got.partition(b"\r\n")
            out, got = out + got[:int(size, 16)], got[int(size, 16) + 2:]
        return out

    def hangs(self, c, name):
        """Begins to answer, and goes on when it is told to."""
        open_ = []
        try:
            for e, http in streams(c):
                if isinstance(e, h2.events.RequestReceived):
                    self.got.append((2, dict(e.headers), b""))
                    http.send_headers(e.stream_id, [(":status", "200")])
                    http.send_data(e.stream_id, b"begun ")
                    open_.append(e.stream_id)
                elif e is None and self.go_on.is_set():
                    while open_:
                        http.send_data(open_.pop(), b"and done", end_stream=True)
        finally:
            self.cut.append(name)

    def sh(self, script, session=None):
        p = self.spawn("sh", "-c", script, session=session, stdout=-1, stderr=-1)
        out, err = p.communicate(timeout=240)
        print(script, p.returncode, out, err)
        return out.decode()

    def last_got(self, host):
        version, fields, body = self.got[-1]
        assert version == (2 if HOSTS[host] == "h2" else 1) and fields[":authority"] == host
        assert bool(self.connects(f"{host}:443")) == (host != "near.test"), self.seen
        assert not [s for s in self.seen if any(w.encode() in s[2] for w in (VALUE, ID, SECRET))]
        return fields, body


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        token = stack.enter_context(secret_file(VALUE.encode()))
        aws = stack.enter_context(secret_file(f"{ID}:{SECRET}".encode()))
        n = Net(stack, POLICY.format(token=token, aws=aws))
        workers = n.daemon.workers()
        yield n
        assert n.daemon.running() and n.daemon.workers() == workers, n.daemon.text()[-3000:]


@pytest.mark.parametrize("client", ["--http1.1", "--http2"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_value_arrives_and_does_not_come_back(net, host, client):
    placeholder = net.sh('printf %s "$TOKEN"')
    out = net.sh(f'curl -sS -m 60 {client} -D - -H "Authorization: Bearer $TOKEN" https://{host}/a')
    assert net.last_got(host)[0]["authorization"] == f"Bearer {VALUE}"
    assert VALUE not in out and f"x-got: Bearer {placeholder}" in out
    out = net.sh(f'curl -sS -m 60 {client} -H "content-type: application/json" -H "transfer-encoding: chunked" -d "[\\"$TOKEN\\"]" https://{host}/a')
    assert net.last_got(host)[1] == json.dumps([VALUE]).encode() and out.startswith(json.dumps([placeholder]))
    net.sh(f'curl -sS -m 60 {client} -u "me:$TOKEN" https://{host}/b')
    assert net.last_got(host)[0]["authorization"] == "Basic " + base64.b64encode(f"me:{VALUE}".encode()).decode()


SIGN = '--aws-sigv4 aws:amz:us-east-1:s3 -u "$KEY_ID:not-a-secret"'
BODY = b"b" * 5000
REQUESTS = {
    "a query": ("", "/bucket/a%20key?list-type=2&prefix=b", b"", hashlib.sha256(b"").hexdigest()),
    "a body": ("-d @-", "/bucket/key", BODY, hashlib.sha256(BODY).hexdigest()),
    "a body that is not signed": ("-d @-", "/bucket/key", BODY, "UNSIGNED-PAYLOAD"),
    "a body whose hash nobody says": ("-d @-", "/", BODY, None),
}
BY_HAND = ('-H "authorization: AWS4-HMAC-SHA256 Credential=$KEY_ID/20261118/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, '
           'Signature=00" -H "x-amz-date: 20261118T000000Z"')


@pytest.mark.parametrize("what", REQUESTS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_signature_is_right(net, host, what):
    """:authority is what is signed as host."""
    words, target, body, digest = REQUESTS[what]
    sign = f'{SIGN} -H "x-amz-content-sha256: {digest}"' if digest else BY_HAND
    out = net.sh(f"head -c {len(body)} /dev/zero | tr '\\0' b | curl -sS -m 60 --http2 {sign} {words} 'https://{host}{target}'")
    assert out.endswith("in two" if HOSTS[host] == "h2" else "in one"), out
    fields, got = net.last_got(host)
    given = Given({**fields, "host": fields[":authority"]})
    assert got == body and (given.id, given.region) == (ID, "eu-test-1")
    assert given.is_right(SECRET, fields[":method"], fields[":path"], body) and not given.is_right(SECRET[::-1], fields[":method"], fields[":path"], body)


# argv: host, placeholders ("": none). A stream for each of them, on one connection; says what became of each.
STREAMS = r"""
import h2.config, h2.connection, h2.events, socket, ssl, sys
host, words = sys.argv[1], sys.argv[2:]
tls = ssl.create_default_context()
tls.set_alpn_protocols(["h2"])
s = tls.wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
s.settimeout(60)
http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
http.initiate_connection()
said, ended = {}, {}
for i, word in enumerate(words):
    head = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", "/")]
    http.send_headers(2 * i + 1, head + [("authorization", "Bearer " + word)] * bool(word), end_stream=True)
    said[2 * i + 1] = b""
s.sendall(http.data_to_send())
while len(ended) < len(words):
    data = s.recv(65536)
    if not data:
        break
    for e in http.receive_data(data):
        if isinstance(e, h2.events.DataReceived):
            said[e.stream_id] += e.data
            if set(said.values()) == {b"begun "}:
                print("begun", flush=True)
        elif isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset)):
            ended[e.stream_id] = type(e).__name__
    s.sendall(http.data_to_send())
print([(ended.get(n), text.decode()) for n, text in said.items()])
"""


def test_a_rise_takes_it_from_a_stream_at_once(net):
    """The connection to the origin is reset, so that nothing that waits in it leaves: another stream of it ends, too, and nothing else."""
    session = net.new_session("INTERNAL")
    status, got = net.api.ask("GET", f"/v1/sessions/{session}/placeholders")
    (word,) = [p["placeholder"] for p in got["placeholders"] if p["name"] == "low"]
    after = net.last()
    both = [base.popen(net.argv(base.PYTHON, "-c", STREAMS, *words, session=session), env=net.env(), stdout=-1, text=True)
            for words in (("slow.test", word, ""), ("calm.test", ""))]
    try:
        assert [p.stdout.readline() for p in both] == ["begun\n", "begun\n"]
        assert [f["authorization"] for _, f, _ in net.got[-3:] if "authorization" in f] == [f"Bearer {VALUE}"]
        net.raise_to(session, "CONFIDENTIAL")
        assert both[0].communicate(timeout=60)[0] == "[('StreamReset', 'begun '), ('StreamReset', 'begun ')]\n"
        assert base.eventually(lambda: net.cut == ["slow.test"]), net.cut
        net.go_on.set()
        assert both[1].communicate(timeout=60)[0] == "[('StreamEnded', 'begun and done')]\n"  # the control
        reasons = lambda got: sorted((e["reason"], e.get("credential", "")) for e in got if e.get("url", "").startswith("https://slow.test"))
        want = [("ended_by_raise", "low"), ("response_broken", "")]
        assert reasons(net.api.wait_events(lambda got: reasons(got) == want, session=session, after=after)) == want
    finally:
        for p in both:
            base.reap(p)
    out = net.sh(f'curl -sS -m 60 -H "Authorization: Bearer {word}" https://slow.test/', session=session)
    assert json.loads(out)["reason"] == "credential_elsewhere"
