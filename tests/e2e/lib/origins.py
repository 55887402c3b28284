# SPDX-License-Identifier: MIT
"""Origins in the far world: names, certificates of a root of our own, and servers that say what they got."""
import pathlib
import subprocess

from lib import base
from lib.world import FAR, GATE4

DNS_PORT = 5300


def openssl(*words, **kw):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **kw)


class Authority:
    """A root, and leaves of it."""

    def __init__(self, folder):
        self.dir = pathlib.Path(folder)
        self.key, self.pem = self.dir / "root.key", self.dir / "root.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
                "/CN=world root", "-keyout", self.key, "-out", self.pem, "-addext", "basicConstraints=critical,CA:TRUE")

    def leaf(self, name, *, names=None, days=10, key="ec", bits=2048, start=None, signer=None):
        """(certificate, key) files for a name; names are the subject alternative names, DNS:name when not given."""
        stem = self.dir / (name.replace("*", "star") + f"-{days}-{key}{bits}")
        keyf, csr, pem, ext = (stem.with_suffix(s) for s in (".key", ".csr", ".pem", ".ext"))
        kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if key == "ec" else [f"rsa:{bits}"]
        openssl("req", "-newkey", *kind, "-nodes", "-subj", f"/CN={name}", "-keyout", keyf, "-out", csr)
        ext.write_text(f"subjectAltName={names or 'DNS:' + name}\nextendedKeyUsage=serverAuth\n")
        words = ["x509", "-req", "-in", csr, "-CA", self.pem, "-CAkey", self.key, "-CAcreateserial", "-days", str(days),
                 "-extfile", ext, "-out", pem]
        openssl(*words)
        return pem, keyf


class Origins:
    """A name server, and an HTTP(S) echo server, in the far namespace."""

    def __init__(self, world):
        self.world, self.dir = world, base.tempdir("origins")
        self.authority = Authority(self.dir)
        self.processes = []
        try:
            self.cert, self.key = self.authority.leaf(
                "origin.test", names="DNS:origin.test,DNS:*.origin.test,DNS:other.test,IP:" + FAR[4])
            self.start(base.PYTHON, base.TESTS / "e2e/lib/origin_server.py", GATE4, DNS_PORT, FAR[4], self.cert, self.key)
        except BaseException:
            self.close()
            raise

    @property
    def resolvers(self):
        return f"{GATE4}:{DNS_PORT}"

    def start(self, *argv, ready=True):
        p = base.popen([*self.world.enter(self.world.far), *map(str, argv)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=open(self.dir / "log", "ab"), env=base.env())
        self.processes.append(p)
        if ready:
            line = p.stdout.readline()
            assert b"ready" in line, (self.dir / "log").read_text()
        return p

    def close(self):
        for p in self.processes:
            base.reap(p)
        base.drop_tempdir(self.dir)
