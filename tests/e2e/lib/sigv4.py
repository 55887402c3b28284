# SPDX-License-Identifier: MIT
"""AWS Signature Version 4 as its documents have it, for origins that check what they get. Written apart from user/secrets/sigv4.c."""
import hashlib
import hmac
import re
import urllib.parse

GIVEN = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/([^/]+)/aws4_request, *SignedHeaders=([^,]+), *Signature=(\w+)")


def quote(text, safe=""):
    return urllib.parse.quote(urllib.parse.unquote(text), safe=safe + "-_.~")


class Given:
    """What a request says of its signature. fields: names in lower case, host among them."""

    def __init__(self, fields):
        found = GIVEN.fullmatch(fields["authorization"])
        assert found, fields["authorization"]
        self.id, self.date, self.region, self.service, names, self.signature = found.groups()
        self.names, self.fields = names.split(";"), fields
        assert {"host", "x-amz-date"} <= set(self.names), names

    def is_right(self, secret, method, target, body):
        """body: its bytes, of S3 as they are; what the client claims of them has to be so."""
        path, _, query = target.partition("?")
        pairs = sorted((quote(n), quote(v)) for n, _, v in (p.partition("=") for p in query.split("&") if p))
        is_, claimed = hashlib.sha256(body).hexdigest(), self.fields.get("x-amz-content-sha256")
        if claimed not in (None, is_, "UNSIGNED-PAYLOAD"):
            return False
        lines = [method, quote(path, "/"), "&".join(f"{n}={v}" for n, v in pairs)]
        lines += [f"{n}:{' '.join(self.fields[n].split())}" for n in self.names] + ["", ";".join(self.names), claimed or is_]
        scope = f"{self.date}/{self.region}/{self.service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", self.fields["x-amz-date"], scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
        key = ("AWS4" + secret).encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == self.signature
