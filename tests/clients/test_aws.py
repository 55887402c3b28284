# SPDX-License-Identifier: MIT
"""Debian's awscli, which holds a placeholder, against an S3 of the test's making that checks every signature by itself."""
import contextlib
import subprocess
import urllib.parse

import pytest

from lib import base
from lib.proxies import credentials as secret_file
from lib.rogues import Rogues, read_head
from lib.sigv4 import Given
from lib.token_origins import look

ID, SECRET, TOKEN = "AKIDREALKEY0001", "".join(["wJalrXUtnFEMI/", "K7MDENG+bPxRfi"]), "session-token/of+the=test"
POLICY = """version: 1
credentials:
  aws:
    source: {{file: {file}}}
    for: s3.origin.test
    as: {{sigv4: {{service: s3, region: eu-test-1}}}}
    placeholder: {{like: "AKIA{{24}}", file: aws}}
rules:
  - allow: "**.origin.test"
"""


def is_signed(method, target, fields, body):
    given = Given(fields)
    assert (given.id, given.region, given.service, fields["x-amz-security-token"]) == (ID, "eu-test-1", "s3", TOKEN), fields
    return given.is_right(SECRET, method, target, body)


class Net(Rogues):
    def __init__(self, stack, policy):
        super().__init__(stack, policy)
        self.objects, self.verdicts, self.found, self.evil = {}, [], set(), []
        self.origin("s3.origin.test", self.s3, 443)
        self.origin("evil.origin.test", lambda c: self.evil.append(read_head(c)), 443)

    def s3(self, c):
        while True:
            head, _, body = read_head(c).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            method, target, _ = lines[0].split(" ")
            fields = {k.lower(): v for k, v in (l.split(": ", 1) for l in lines[1:])}
            if fields.get("expect"):
                c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            while len(body) < int(fields.get("content-length", 0)):
                body += c.recv(65536)
            good = is_signed(method, target, fields, body)
            self.found |= look(self, [SECRET.encode(), TOKEN.encode()], "/nonexistent")
            self.verdicts.append((method, target, good))
            path = urllib.parse.unquote(target.partition("?")[0])
            if not good:
                self.reply(c, "403 Forbidden", b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            elif method == "PUT":
                self.objects[path] = body
                self.reply(c, "200 OK", b"", 'etag: "x"\r\n')
            else:
                self.reply(c, "200 OK", self.objects[path], "content-type: binary/octet-stream\r\n")

    @staticmethod
    def reply(c, status, body, more=""):
        c.sendall(f"HTTP/1.1 {status}\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body)

    def aws(self, *words, host="s3.origin.test"):
        p = subprocess.run([*self.argv(), "aws", "--endpoint-url", f"https://{host}", "--region", "eu-test-1", *words],
                           capture_output=True, text=True, timeout=300, env=self.env(AWS_EC2_METADATA_DISABLED="true", AWS_MAX_ATTEMPTS="1"))
        print(words, p.returncode, p.stdout, p.stderr)
        return p


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(secret_file(f"{ID}:{SECRET}:{TOKEN}".encode()))
        yield Net(stack, POLICY.format(file=file))


def test_an_object_goes_and_comes(net):
    source = net.world.dir / "object"
    source.write_text("an object of the test\n" * 1000)
    source.chmod(0o644)
    assert net.aws("s3api", "put-object", "--bucket", "b", "--key", "a key (1)/x+y", "--body", str(source)).returncode == 0
    assert net.objects["/b/a key (1)/x+y"] == source.read_bytes()
    got = net.aws("s3api", "get-object", "--bucket", "b", "--key", "a key (1)/x+y", "/dev/stderr")
    assert got.returncode == 0 and source.read_text() in got.stderr
    assert [v[2] for v in net.verdicts] == [True, True], net.verdicts
    assert net.found == set(), "neither memory nor files of the sandbox have the key while it works"
    with open(net.world.dir / "placeholder", "w+") as f:  # the control: of what is there it is found
        subprocess.run([*net.argv(), "sh", "-c", "cat $AWS_SHARED_CREDENTIALS_FILE"], stdout=f, env=net.env(), timeout=120)
        f.seek(0)
        word = f.read().split("aws_access_key_id")[1].split("=")[1].split()[0]
    p = net.spawn("sh", "-c", 'K=$(cat "$AWS_SHARED_CREDENTIALS_FILE"); export K; sleep 60')
    try:
        assert base.eventually(lambda: look(net, [word.encode()], "/nonexistent"))
    finally:
        base.reap(p)


def test_another_host_gets_nothing(net):
    p = net.aws("s3api", "list-buckets", host="evil.origin.test")
    assert p.returncode != 0 and net.evil == []
    assert net.events(lambda e: e["reason"] == "credential_elsewhere" and e["url"].startswith("https://evil.origin.test"))[-1]["credential"] == "aws"
    assert net.run("curl", "-sS", "-m", "30", "https://evil.origin.test/") and net.evil, "the control"


def test_presigned_urls_are_refused(net):
    before = len(net.verdicts)
    p = net.aws("s3", "presign", "s3://b/k")
    assert p.returncode == 0
    got = net.run("curl", "-sS", p.stdout.strip())
    assert "credential_elsewhere" in got.stdout and len(net.verdicts) == before
