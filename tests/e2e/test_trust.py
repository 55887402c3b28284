# SPDX-License-Identifier: MIT
"""TLS through the inspector with programs as they are: in a sandbox of netpawl run they trust the session's authority, each
in its own way, and nothing was said to them. More of them are in tests/clients."""
import contextlib
import hashlib
import json
import struct
import subprocess

import pytest

from lib import base
from lib.box import Adopted, new_session
from lib.inspected import Inspected
from lib.java import JAVA
from lib.world import FAR

URL = "https://origin.test/x"
PROXY = f"http://{FAR[4]}:80"  # any address at an inspected port, for clients that look names up by themselves


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Inspected(stack)


def fetch(net, *argv, **env):
    return net.run(*argv, env={"HTTPS_PROXY": PROXY, "https_proxy": PROXY, **env})


URLLIB = f"import urllib.request as u; print(u.urlopen('{URL}', timeout=60).status)"
REQUESTS = f"import requests; print(requests.get('{URL}', timeout=60).status_code)"
SSL = (f"import socket, ssl\ns = ssl.create_default_context().wrap_socket(socket.create_connection(('{FAR[4]}', 443), 10), "
       "server_hostname='origin.test')\nprint('200' if s.getpeercert() else '')")
NODE = ("const tls = require('tls'); const s = tls.connect({host: '%s', port: 443, servername: 'origin.test'}, "
        "() => { console.log(s.authorized ? 200 : s.authorizationError); s.destroy(); });"
        "s.on('error', e => console.log(String(e)));" % FAR[4])
OPENSSL = f"openssl s_client -connect {FAR[4]}:443 -servername origin.test -verify_return_error </dev/null 2>&1 | grep -q 'Verification: OK' && echo 200"
RUNTIMES = {
    "curl": ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", URL],
    # by the system's bundle alone, with no variable
    "curl-bundle": ["env", "-u", "CURL_CA_BUNDLE", "-u", "SSL_CERT_FILE", "-u", "SSL_CERT_DIR", "curl", "-sS", "-o", "/dev/null", "-w",
                    "%{http_code}", URL],
    "urllib": [base.PYTHON, "-c", URLLIB],
    "ssl": [base.PYTHON, "-c", SSL],
    "requests": [base.PYTHON, "-c", REQUESTS],
    "openssl": ["sh", "-c", OPENSSL],
    "node": ["node", "-e", NODE],
    "java": ["sh", "-c", JAVA],
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_runtime(net, name):
    got = fetch(net, *RUNTIMES[name])
    assert got.stdout.strip() == "200", got


@pytest.mark.parametrize("name", RUNTIMES)
def test_control_without_trust(net, name):
    """The same with none of it: they refuse the inspector's certificate. So what let them in above is what netpawl did."""
    unset = [w for v in (*net_variables(), "JAVA_TOOL_OPTIONS") for w in ("-u", v)]
    hosts = net.run("sh", "-c", "cat /run/netpawl/bundle.pem").stdout
    assert "BEGIN CERTIFICATE" in hosts
    p = subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--isolation", "none", "--session", net.session, "--",
                        "env", *unset, *RUNTIMES[name]], capture_output=True, text=True, timeout=180,
                       env=net.env(HTTPS_PROXY=PROXY, https_proxy=PROXY))
    assert p.stdout.strip() != "200", p


def net_variables():
    return ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"]


def test_result_counts_requests(net):
    """Those that the inspector saw, with the bytes of their bodies, and those that it refused."""
    script = ("curl -sS -o /dev/null https://origin.test/x; curl -sS -o /dev/null -X POST -d 0123456789 https://origin.test/y; "
              "curl -sS -o /dev/null https://get-only.origin.test/ -X POST -d x; true")
    p = subprocess.run([*net.world.enter(), str(base.NETPAWL), "run", "--json", "--session", net.session, "--", "sh", "-c",
                        script.replace("curl", f"curl --connect-to ::{FAR[4]}:")], capture_output=True, text=True, timeout=60,
                       env=net.env())
    got = json.loads(p.stdout)
    assert got["requests"] == 3 and got["refused"] >= 1 and got["sent"] == 10 and got["received"] > 0, json.dumps([got, net.api.events(limit=12)])


def test_what_is_there(net):
    """The system's roots, too, in every file; nobody in the sandbox can change them."""
    got = net.run("sh", "-c", "cd /run/netpawl; grep -c BEGIN ca.pem authority.pem bundle.pem; ls -l; grep -c BEGIN $SSL_CERT_FILE; "
                  "cmp bundle.pem /etc/ssl/certs/ca-certificates.crt && echo same; touch x bundle.pem 2>&1; env")
    with open("/etc/ssl/certs/ca-certificates.crt") as f:
        roots = f.read().count("BEGIN CERTIFICATE")
    assert roots > 50 and f"bundle.pem:{roots + 1}\n" in got.stdout and "\nauthority.pem:1\n" in "\n" + got.stdout and "same" in got.stdout
    for name in ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "CURL_CA_BUNDLE",
                 "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT", "JAVA_TOOL_OPTIONS"):
        assert f"\n{name}=" in got.stdout, name


def jks_read(data):
    """A reader of Java's format, written for this test alone: the certificates, with the checksum looked at."""
    magic, version, count = struct.unpack(">III", data[:12])
    assert (magic, version) == (0xFEEDFEED, 2)
    digest = hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + data[:-20]).digest()
    assert digest == data[-20:]
    at, found = 12, []

    def take(n):
        nonlocal at
        at += n
        return data[at - n : at]

    for _ in range(count):
        assert struct.unpack(">I", take(4))[0] == 2
        take(struct.unpack(">H", take(2))[0])
        take(8)
        assert take(struct.unpack(">H", take(2))[0]) == b"X.509"
        found.append(take(struct.unpack(">I", take(4))[0]))
    assert at == len(data) - 20
    return found


def test_the_store_of_java(net):
    import ssl
    got = net.run("base64", "/run/netpawl/bundle.jks")
    import base64
    found = jks_read(base64.b64decode(got.stdout))
    pem = net.run("cat", "/run/netpawl/bundle.pem").stdout
    blocks = ["-----BEGIN CERTIFICATE-----" + b for b in pem.split("-----BEGIN CERTIFICATE-----")[1:]]
    wanted = [ssl.PEM_cert_to_DER_cert(b.split("-----END")[0].strip() + "\n-----END CERTIFICATE-----\n") for b in blocks]
    assert found == wanted and len(found) > 50


def test_no_inspector_no_authority(daemon):
    """Then nothing is overlaid, and no variable is set."""
    got = daemon.cli("run", "--", "sh", "-c", "ls /run/netpawl; env | grep -c =/run/netpawl", check=0).stdout
    assert got.split() == ["notices", "2"]  # NETPAWL_NOTICES, NETPAWL_WHY


def test_env_for_adopters(net):
    box = Adopted(net.daemon, "PROXIED")
    folder = base.tempdir("trust")
    try:
        assert base.eventually(lambda: net.api.raw("GET", f"/v1/sessions/{box.session}/ca")[0] == 200, 10)
        p = net.daemon.cli("env", box.session, "--dir", folder, check=0)
        lines = dict(l.removeprefix("export ").split("=", 1) for l in p.stdout.splitlines())
        assert lines["SSL_CERT_FILE"] == f"'{folder}/bundle.pem'" and "trustStore" in lines["JAVA_TOOL_OPTIONS"]
        words = ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", "--connect-to", f"::{FAR[4]}:", URL]
        assert box.call("execute", argv=words)["code"] == 60, "the control: it is not trusted without"
        got = box.call("execute", argv=["sh", "-c", p.stdout + 'exec "$@"', "sh", *words])
        assert got["code"] == 0, got
        assert str((folder / "authority.pem").readlink()) == "ca.pem" and "BEGIN" in (folder / "ca.pem").read_text()
        named = json.loads(net.daemon.cli("env", box.session, "--dir", folder, "--at", "/certs", "--json", check=0).stdout)
        assert named["CURL_CA_BUNDLE"] == "/certs/bundle.pem"
    finally:
        box.close()
        base.drop_tempdir(folder)


def test_env_needs_a_sandbox(net, daemon):
    folder = base.tempdir("trust")
    try:
        session = new_session("none")
        assert "no_such_session" in net.daemon.cli("env", session, "--dir", folder, check=1).stderr
        net.api.create(session, "CONFIDENTIAL")
        assert "no_inspector" in net.daemon.cli("env", session, "--dir", folder, check=1).stderr
        assert not list(folder.iterdir())
        net.daemon.cli("env", net.session, check=2)
        net.daemon.cli("env", net.session, "--dir", "relative", check=2)
        assert net.daemon.cli("env", net.session, "--dir", folder / "no", check=1).stderr
    finally:
        base.drop_tempdir(folder)


def test_the_ca_outlives_the_session(net):
    """Programs read what they trust once: the CA must not end while they run. The leaves do, and are renewed."""
    leaf = net.run("sh", "-c", f"openssl s_client -connect {FAR[4]}:443 -servername origin.test </dev/null 2>/dev/null | "
                   "openssl x509 -noout -enddate -checkend 777600; true").stdout  # nine days
    assert "notAfter" in leaf and "will expire" in leaf, leaf
    year = 365 * 86400
    assert base.sh("openssl", "x509", "-in", net.ca, "-noout", "-checkend", 15 * year).returncode == 0
    assert base.sh("openssl", "x509", "-in", net.ca, "-noout", "-checkend", 25 * year, check=False).returncode == 1, "the control"


def test_a_database_for_browsers(net):
    """In memory, the command's own; one that the session made itself is left alone, and so is what is no directory."""
    look = ("cd; stat -c '%u %a %F' .pki .pki/nssdb .pki/nssdb/*; stat -f -c %T .pki; id -u; "
            "python3 -c \"import sqlite3; print(sqlite3.connect('.pki/nssdb/cert9.db').execute("
            "'select count(*) from nssPublic').fetchone()[0])\"; touch .pki/nssdb/mine && echo written")
    session = new_session("nssdb")
    net.api.create(session, "CONFIDENTIAL")

    def run(script):
        got = subprocess.run(net.argv("sh", "-c", script, session=session), capture_output=True, text=True, timeout=180, env=net.env())
        assert got.returncode == 0, got
        return got.stdout.splitlines()

    for _ in range(2):
        *files, kind, uid, rows, written = run(look)
        assert files == [f"{uid} 700 directory", f"{uid} 700 directory", f"{uid} 600 regular file", f"{uid} 600 regular file"]
        assert (kind, rows, written) == ("tmpfs", "2", "written") and uid != "0"
    workspace = net.daemon.state_dir / "data" / session
    assert [p.name for p in workspace.iterdir()] == [".pki"] and not any((workspace / ".pki").iterdir())
    assert (workspace / ".pki").stat().st_uid == int(uid), "the session's to remove"
    (workspace / ".pki" / "nssdb").mkdir()
    assert run("ls -A $HOME/.pki/nssdb; stat -f -c %T $HOME/.pki")[-1] != "tmpfs"
    (workspace / ".pki" / "nssdb").rmdir()
    (workspace / ".pki").rmdir()
    for target in ("/etc", "../usr", "nowhere"):
        (workspace / ".pki").symlink_to(target)
        assert run("readlink $HOME/.pki; cat /etc/passwd | wc -l")[0] == target
        (workspace / ".pki").unlink()
