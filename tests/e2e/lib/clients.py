# SPDX-License-Identifier: MIT
"""The world of test_clients.py: real servers on addresses of their own, names for them in /etc/hosts and in DNS, good
and bad certificates, and client programs that are built while the rest starts."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time

from lib import base
from lib.box import new_session
from lib.daemon import Daemon
from lib.inspected import Inspected
from lib.origins import DNS_PORT, Authority, openssl
from lib.world import FAR, GATE4, World

PROBES = base.TESTS / "e2e/lib/probes"
PROXY = f"http://{FAR[4]}:80"  # any steered port is a proxy, for who asks for one
BIG, UPLOAD = 100 << 20, 20 << 20

NET = "198.51.100."
NOBODY = NET + "99"  # reachable, and nothing listens
PY, NGINX, NODE, NGHTTPD, S_SERVER, RAW, NGINX_H1, WS, GOAWAY, NARROW, CERTS, WEAK, OLD, TLS12 = (
    FAR[4], *(NET + str(n) for n in (20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 32, 33)))

NAMES = {
    "py.test": PY, "get-only.test": PY, "denied.test": PY, "small.test": PY, "paths.test": PY, "nowhere.example": PY,
    "nginx.test": NGINX, "git.test": NGINX, "apt.test": NGINX, "node.test": NODE, "npm.test": NODE,
    "nghttpd.test": NGHTTPD, "sserver.test": S_SERVER, "raw.test": RAW, "rawws.test": RAW, "h1.nginx.test": NGINX_H1,
    "short.nginx.test": NGINX_H1, "ws.test": WS, "nows.test": WS, "goaway.test": GOAWAY, "narrow.test": NARROW,
    "tls12.test": TLS12, "ports.nginx.test": NGINX,
    "v6.nginx.test": FAR[6], "pinned.test": NGINX, "slow-pinned.test": NGINX,
    "pinned-dead.test": NOBODY, "dead.test": NOBODY,
}

# Names whose resolution takes a while: a client is ahead of its origin. Each is used once, for they are remembered.
SLOW = [f"slow-{i}.test" for i in range(8)]
NAMES.update({n: PY if i % 2 else NODE for i, n in enumerate(SLOW)})

POLICY = """version: 1
inspect_ports: [80, 443, 8443]
rules:
  - deny: denied.test
  - allow: get-only.test
    methods: [GET, HEAD]
  - deny: get-only.test
  - allow: small.test
    max_body: 1000
  - allow: [ws.test, rawws.test]
    websocket: true
  - allow: [pinned.test, slow-pinned.test, pinned-dead.test]
    inspect: false
  - allow: git.test
    methods: [GET, POST]
    paths: ["/*.git/info/refs", "/*.git/HEAD", "/*.git/objects/**", "/*.git/git-upload-pack"]
  - deny: git.test
  - allow: 198.51.100.10:9000
  - allow: "**.test"
"""


# -- certificates -------------------------------------------------------------------------

CA_CONF = """
[ca]
default_ca = d
[d]
database = {dir}/index.txt
new_certs_dir = {dir}
serial = {dir}/serial
default_md = sha256
policy = p
unique_subject = no
copy_extensions = none
[p]
commonName = supplied
"""


class Pki(Authority):
    """An authority that can also make what nobody should accept."""

    def __init__(self, folder):
        folder.mkdir()
        super().__init__(folder)
        (folder / "index.txt").write_text("")
        (folder / "serial").write_text("1000")
        (folder / "ca.cnf").write_text(CA_CONF.format(dir=folder))
        self.n = 0

    def key_pair(self, kind="ec"):
        self.n += 1
        key = self.dir / f"{self.n}.key"
        words = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else \
            ["-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{kind}"]
        openssl("genpkey", *words, "-out", key)
        return key

    def issue(self, name, ext=None, days=(-1, 30), kind="ec", ca=None, md="sha256"):
        """(certificate, key); days: from and to, counted from now."""
        key = self.key_pair(kind)
        csr, pem, extf = (self.dir / f"{self.n}.{s}" for s in ("csr", "pem", "ext"))
        extf.write_text(ext if ext is not None else f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n")
        openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", csr)
        ca_pem, ca_key = ca or (self.pem, self.key)
        start, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + d * 86400)) for d in days)
        openssl("ca", "-batch", "-notext", "-config", self.dir / "ca.cnf", "-cert", ca_pem, "-keyfile", ca_key, "-in", csr,
                "-out", pem, "-startdate", start, "-enddate", end, "-extfile", extf, "-md", md)
        return pem, key

    def intermediate(self, **kw):
        return self.issue("intermediate", "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign\n", **kw)

    def staple(self, pem, revoked=False):
        """An OCSP response of the root about a leaf."""
        out, index = pem.with_suffix(".revoked" if revoked else ".ocsp"), pem.with_suffix(".index")
        serial = openssl("x509", "-in", pem, "-noout", "-serial").stdout.decode().strip().split("=")[1]
        end = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + 86400 * 20))
        since = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() - 86400))
        index.write_text(f"{'R' if revoked else 'V'}\t{end}\t{since if revoked else ''}\t{serial}\tunknown\t/CN=x\n")
        openssl("ocsp", "-index", index, "-rsigner", self.pem, "-rkey", self.key, "-CA", self.pem, "-issuer", self.pem,
                "-cert", pem, "-respout", out, "-ndays", "5")
        return out


def san(name):
    return f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n"


def chain(*pems):
    out = pems[0].with_suffix(".chain.pem")
    out.write_bytes(b"".join(p.read_bytes() for p in pems))
    return out


def bad_certificates(pki, stranger):
    """name -> (certificate, key, OCSP staple or None). None of them proves its name, for one reason each."""
    out = {}

    def put(name, pair, staple=None):
        out[name] = (*pair, staple)

    put("expired.test", pki.issue("expired.test", days=(-20, -1)))
    put("future.test", pki.issue("future.test", days=(2, 20)))
    put("wrong-name.test", pki.issue("right-name.test"))
    put("common-name.test", pki.issue("common-name.test", "extendedKeyUsage=serverAuth\n"))
    put("a.b.wild.test", pki.issue("wild.test", san("*.wild.test")))
    put("partial-wild.test", pki.issue("partial-wild.test", san("partial-*.test")))
    key = pki.key_pair()
    pem = key.with_suffix(".pem")
    openssl("req", "-x509", "-key", key, "-days", "9", "-subj", "/CN=self-signed.test", "-out", pem, "-addext",
            "subjectAltName=DNS:self-signed.test")
    put("self-signed.test", (pem, key))
    put("unknown-root.test", stranger.issue("unknown-root.test"))
    # it brings its root along, which does not make it one of ours
    pem, key = stranger.issue("brought-root.test")
    put("brought-root.test", (chain(pem, stranger.pem), key))
    middle = pki.intermediate()
    put("missing-link.test", pki.issue("missing-link.test", ca=middle))
    late = pki.intermediate(days=(-20, -1))
    pem, key = pki.issue("expired-link.test", ca=late)
    put("expired-link.test", (chain(pem, late[0]), key))
    leaf = pki.issue("leaf.test")
    pem, key = pki.issue("signed-by-leaf.test", ca=leaf)
    put("signed-by-leaf.test", (chain(pem, leaf[0]), key))
    put("client-purpose.test", pki.issue("client-purpose.test", san("client-purpose.test").replace("server", "client")))
    put("sha1.test", pki.issue("sha1.test", md="sha1"))
    must = san("must-staple.test") + "tlsfeature=status_request\n"
    put("must-staple.test", pki.issue("must-staple.test", must))
    pair = pki.issue("revoked.test")
    put("revoked.test", pair, pki.staple(pair[0], revoked=True))
    pair = pki.issue("must-staple-revoked.test", must.replace("must-staple", "must-staple-revoked"))
    put("must-staple-revoked.test", pair, pki.staple(pair[0], revoked=True))
    # another leaf's staple says nothing about this one
    other = pki.issue("other.test")
    pair = pki.issue("must-staple-other.test", must.replace("must-staple", "must-staple-other"))
    put("must-staple-other.test", pair, pki.staple(other[0]))
    return out


def good_certificates(pki):
    """What differs from the bad ones in the one thing that counts."""
    out = {}
    middle = pki.intermediate()
    pem, key = pki.issue("whole-chain.test", ca=middle)
    out["whole-chain.test"] = (chain(pem, middle[0]), key, None)
    pair = pki.issue("stapled.test", san("stapled.test") + "tlsfeature=status_request\n")
    out["stapled.test"] = (*pair, pki.staple(pair[0]))
    out["x.wild.test"] = (*pki.issue("wild.test", san("*.wild.test")), None)
    out["rsa.test"] = (*pki.issue("rsa.test", kind="2048"), None)
    return out


BAD = ["expired.test", "future.test", "wrong-name.test", "common-name.test", "a.b.wild.test", "partial-wild.test",
       "self-signed.test", "unknown-root.test", "brought-root.test", "missing-link.test", "expired-link.test",
       "signed-by-leaf.test", "client-purpose.test", "sha1.test", "must-staple.test", "revoked.test",
       "must-staple-revoked.test", "must-staple-other.test"]
GOOD = ["whole-chain.test", "stapled.test", "x.wild.test", "rsa.test"]


# -- servers ------------------------------------------------------------------------------

NGINX_CONF = """
daemon off;
user root;
worker_processes 2;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log info;
events {{ worker_connections 1024; }}
http {{
  log_format np '$server_name $request_method $request_uri $status $server_protocol reused=$ssl_session_reused';
  access_log {dir}/nginx.log np;
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
  uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  client_max_body_size 0;
  sendfile on;
  ssl_certificate {cert}; ssl_certificate_key {key};
  ssl_session_tickets on; ssl_protocols TLSv1.2 TLSv1.3;
  root {www};
  server {{ listen {nginx}:80; listen {nginx}:443 ssl http2; server_name nginx.test apt.test pinned.test slow-pinned.test;
    location /gz/ {{ gzip on; gzip_min_length 1; gzip_types text/plain; alias {www}/; }}
  }}
  server {{ listen {nginx}:80; listen {nginx}:443 ssl http2; server_name git.test;
    location / {{
      fastcgi_pass unix:{dir}/fcgi.sock; include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend; fastcgi_param PATH_INFO $uri;
      fastcgi_param GIT_PROJECT_ROOT {git}; fastcgi_param GIT_HTTP_EXPORT_ALL ""; fastcgi_param REMOTE_USER tester;
    }}
  }}
  server {{ listen [{v6}]:443 ssl http2; listen {nginx}:8443 ssl http2; listen {nginx}:9443 ssl;
    server_name v6.nginx.test ports.nginx.test; }}
  server {{ listen {nginx_h1}:80; listen {nginx_h1}:443 ssl; server_name h1.nginx.test; }}
  server {{ listen {nginx_h1}:443 ssl; server_name short.nginx.test; keepalive_timeout 0; }}
  server {{ listen {goaway}:443 ssl http2; server_name goaway.test; keepalive_requests 10; }}
  server {{ listen {tls12}:443 ssl; server_name tls12.test; ssl_protocols TLSv1.2; keepalive_timeout 0; }}
  server {{ listen {narrow}:443 ssl http2; server_name narrow.test; http2_max_concurrent_streams 2; }}
{certs}
}}
"""


class FarServers:
    """Everything that runs in the far namespace. Has what Inspected needs of an Origins."""

    def __init__(self, world):
        self.world, self.dir = world, base.tempdir("clients")
        self.processes = []
        try:
            self._certificates()
            self._files()
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def resolvers(self):
        return f"{GATE4}:{DNS_PORT}"

    def _certificates(self):
        self.authority = pki = Pki(self.dir / "pki")
        stranger = Pki(self.dir / "stranger")
        names = ",".join(f"DNS:{n}" for n in NAMES)
        self.cert, self.key = pki.issue("py.test", f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
        self.certificates = {**bad_certificates(pki, stranger), **good_certificates(pki)}
        self.weak = pki.issue("weak.test", kind="1024")
        self.old = pki.issue("old.test")
        self.names = {**NAMES, **{n: CERTS for n in self.certificates}, "weak.test": WEAK, "old.test": OLD}

    def _files(self):
        self.www, self.git = self.dir / "www", self.dir / "git"
        self.www.mkdir(), self.git.mkdir()
        big = os.urandom(BIG)
        (self.www / "big").write_bytes(big)
        self.big_sha = hashlib.sha256(big).hexdigest()
        self.upload = self.dir / "upload"
        self.upload.write_bytes(big[:UPLOAD])
        self.upload_sha = hashlib.sha256(big[:UPLOAD]).hexdigest()
        (self.www / "small.txt").write_text("small words\n" * 100)
        self._git_repository()
        self._apt_repository()
        self._npm_package()
        self.hosts, self.refused = self._hosts("hosts", self.names), self._hosts("refused", ["denied.test", "nowhere.example"])

    def _hosts(self, name, names):
        path = self.dir / name
        path.write_text("127.0.0.1 localhost\n" + "".join(f"{self.names[n]} {n}\n" for n in names))
        return path

    def _git_repository(self):
        work, env = self.dir / "work", base.env(HOME=str(self.dir), GIT_CONFIG_NOSYSTEM="1")
        (self.dir / ".gitconfig").write_text("[user]\nname = t\nemail = t@t\n[init]\ndefaultBranch = main\n"
                                             "[safe]\ndirectory = *\n")
        run = lambda *w, **kw: subprocess.run(["git", *map(str, w)], check=True, capture_output=True, env=env, **kw)
        run("init", work)
        (work / "README").write_text("a repository\n")
        (work / "blob").write_bytes(os.urandom(3 << 20))
        run("-C", work, "add", ".")
        run("-C", work, "commit", "-m", "first")
        run("clone", "--bare", work, self.git / "repo.git")
        run("-C", self.git / "repo.git", "config", "http.receivepack", "true")

    def _apt_repository(self):
        root = self.www / "debian"
        pool, dist = root / "pool", root / "dists/np"
        index = dist / "main/binary-all"
        pool.mkdir(parents=True), index.mkdir(parents=True)
        tree = self.dir / "deb/DEBIAN"
        tree.mkdir(parents=True)
        control = "Package: np-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t>\nDescription: hello\n"
        (tree / "control").write_text(control)
        deb = pool / "np-hello_1.0_all.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree.parent, deb], check=True, capture_output=True)
        data = deb.read_bytes()
        text = control + f"Filename: pool/{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
        files = {"main/binary-all/Packages": text.encode(), "main/binary-all/Packages.gz": gzip.compress(text.encode())}
        lines = []
        for name, content in files.items():
            (dist / name).write_bytes(content)
            lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}")
        (dist / "Release").write_text("Origin: np\nSuite: np\nCodename: np\nArchitectures: all\nComponents: main\n"
                                      f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S UTC', time.gmtime())}\nSHA256:\n"
                                      + "\n".join(lines) + "\n")

    def _npm_package(self):
        self.tarball = self.dir / "np-left-pad.tgz"
        with tarfile.open(self.tarball, "w:gz") as tar:
            for name, text in (("package.json", json.dumps({"name": "np-left-pad", "version": "1.0.0", "main": "index.js"})),
                               ("index.js", "module.exports = 'padded';\n")):
                info = tarfile.TarInfo("package/" + name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))

    def start(self, *argv, ready=True, cwd=None, env=None):
        p = base.popen([*self.world.enter(self.world.far), *map(str, argv)], stdin=subprocess.DEVNULL, cwd=cwd,
                       stdout=subprocess.PIPE if ready else open(self.dir / "log", "ab"),
                       stderr=open(self.dir / "log", "ab"), env=env or base.env())
        self.processes.append(p)
        p.ready = ready
        return p

    def _certificate_servers(self):
        text = ""
        for name, (pem, key, staple) in self.certificates.items():
            stapling = f"ssl_stapling on; ssl_stapling_file {staple}; " if staple else ""
            text += (f"  server {{ listen {CERTS}:443 ssl http2; server_name {name}; ssl_certificate {pem}; "
                     f"ssl_certificate_key {key}; {stapling}ssl_session_tickets off; }}\n")
        return text

    def _start(self):
        self.world._ip(self.world.far, *[f"addr add {a}/32 dev lo" for a in
                                         sorted({*self.names.values()} - {PY, FAR[6]})])
        conf = {"dns": GATE4, "dns_port": DNS_PORT, "names": self.names, "py": PY, "raw": RAW, "ws": WS,
                "cert": str(self.cert), "key": str(self.key)}
        (self.dir / "far.json").write_text(json.dumps(conf))
        self.start(base.PYTHON, PROBES / "far.py", self.dir / "far.json")
        self.start("node", PROBES / "far.js", NODE, self.cert, self.key, self.tarball)
        self.start("fcgiwrap", "-s", f"unix:{self.dir}/fcgi.sock", ready=False,
                   env=base.env(HOME=str(self.dir)))
        # nginx with certificates that OpenSSL's default level would not even load
        cnf = self.dir / "openssl.cnf"
        cnf.write_text("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nCipherString = DEFAULT:@SECLEVEL=0\n")
        (self.dir / "nginx.conf").write_text(NGINX_CONF.format(
            dir=self.dir, cert=self.cert, key=self.key, www=self.www, git=self.git, nginx=NGINX, nginx_h1=NGINX_H1, v6=FAR[6],
            goaway=GOAWAY, narrow=NARROW, tls12=TLS12, certs=self._certificate_servers()))
        self.start("nginx", "-c", self.dir / "nginx.conf", "-e", self.dir / "nginx-error.log", ready=False,
                   env=base.env(OPENSSL_CONF=str(cnf)))
        self.start("nghttpd", "-a", NGHTTPD, "-d", self.www, "-v", 443, self.key, self.cert, ready=False)
        s_server = ["openssl", "s_server", "-www", "-quiet", "-cipher", "DEFAULT:@SECLEVEL=0"]
        self.start(*s_server, "-accept", f"{S_SERVER}:443", "-cert", self.cert, "-key", self.key, ready=False)
        self.start(*s_server, "-accept", f"{WEAK}:443", "-cert", self.weak[0], "-key", self.weak[1], ready=False)
        self.start(*s_server, "-accept", f"{OLD}:443", "-cert", self.old[0], "-key", self.old[1], "-tls1_1", ready=False)

    def wait_ready(self):
        for p in self.processes:
            if p.ready:
                line = p.stdout.readline()
                assert b"ready" in line, (self.dir / "log").read_text()[-3000:]
        def listening():
            got = subprocess.run([*self.world.enter(self.world.far), "ss", "-Hltn"], capture_output=True, text=True).stdout
            return all(f"{a}:443 " in got for a in (NGINX, NGHTTPD, S_SERVER, WEAK, OLD))

        assert base.eventually(listening, 10), (self.dir / "log").read_text()[-3000:] + \
            (self.dir / "nginx-error.log").read_text()[-2000:]

    def log(self, name="log"):
        path = self.dir / name
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self):
        for p in self.processes:
            base.reap(p)
        base.drop_tempdir(self.dir)


# -- the near side --------------------------------------------------------------------------

class Programs:
    """Clients that have to be built, in the background."""

    def __init__(self):
        self.dir = base.tempdir("programs")
        for path in PROBES.glob("[pPr]*"):
            shutil.copy(path, self.dir)
        self.builds = {}
        self.build("go", ["go", "build", "-o", self.dir / "probe", self.dir / "probe.go"])
        self.build("java", ["javac", "-d", self.dir, self.dir / "Probe.java"])

    def build(self, name, argv):
        env = base.env(GO111MODULE="off", GOCACHE=str(self.dir / "gocache"), CGO_ENABLED="0", GOFLAGS="",
                       GOPATH=str(self.dir / "gopath"), HOME=str(self.dir), JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1")
        if shutil.which(argv[0]):
            self.builds[name] = base.popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait(self, *names):
        """False: it cannot be built here."""
        for name in names:
            p = self.builds.get(name)
            if not p:
                return False
            if p.returncode is None:
                text = p.stdout.read().decode(errors="replace")
                assert p.wait(120) == 0, text
        return True

    def close(self):
        for p in self.builds.values():
            base.reap(p)
        base.drop_tempdir(self.dir)


class Clients(Inspected):
    """Inspected, with these servers, and names that every client finds."""

    USER = ["--user", "root"]  # root inside, the session's user outside: it writes where everybody may

    def __init__(self, stack):
        self.programs = Programs()
        stack.callback(self.programs.close)
        self.world = World(tcp_ports=(53, 8080, 9000))
        stack.callback(self.world.close)
        self.origins = FarServers(self.world)
        stack.callback(self.origins.close)
        self.policy = self.origins.dir / "policy.yaml"
        self.policy.write_text(POLICY + base.PERMITS)
        self.daemon = Daemon(self.world, policy=self.policy, inspectors=2,
                             more=["--resolvers", self.origins.resolvers, "--roots", self.origins.authority.pem])
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api = self.daemon.api
        base.eventually(lambda: self.api.health()["inspectors"] == 2, 10)
        self.session = new_session("clients")
        self.api.create(self.session, "CONFIDENTIAL")
        self.keeper = self.spawn("sleep", "infinity")
        stack.callback(base.reap, self.keeper)
        base.eventually(lambda: self.api.sandboxes(self.session), 10)
        self.ca = self.world.dir / "session-ca.pem"
        assert base.eventually(self.fetch_ca, 10)
        self.dir = self.world.dir
        self.dir = self.writable("work")
        self.trust = self._trust(self.origins.authority.pem)
        self.origins.wait_ready()

    def writable(self, name):
        """A directory that a sandbox's user may write into."""
        path = self.dir / name
        path.mkdir(parents=True)
        path.chmod(0o777)
        return path

    def _trust(self, ca):
        """For the controls, which run outside: trust in the origins' authority, in the ways of clients."""
        text, stem = str(ca), self.dir / f"trust-{ca.stem}"
        names = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
                 "npm_config_cafile")
        words = dict.fromkeys(names, text)
        words["WGETRC"] = str(stem.with_suffix(".wgetrc"))
        pathlib.Path(words["WGETRC"]).write_text(f"ca_certificate = {ca}\n")
        words["APT_CONFIG"] = str(stem.with_suffix(".apt"))
        pathlib.Path(words["APT_CONFIG"]).write_text(f'Acquire::https::CaInfo "{ca}";\n')
        store = stem.with_suffix(".p12")
        words["JAVA_TOOL_OPTIONS"] = (f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword=changeit "
                                      "-XX:TieredStopAtLevel=1")
        self.programs.build(f"trust-{ca.stem}", ["keytool", "-importcert", "-noprompt", "-alias", "np", "-file", ca, "-keystore",
                                                 store, "-storepass", "changeit", "-storetype", "PKCS12"])
        return words

    def env(self, trust=None, **more):
        """In a sandbox netpawl run sees to the certificates: not one variable here is about them."""
        env = base.env(NETPAWL_SOCKET=str(self.daemon.socket), HOME=str(self.dir),
                       **(trust or {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}))
        for name in [n for n in env if n.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "git_dir")]:
            del env[name]
        for name, value in more.items():
            env[name] = f"{env[name]} {value}" if name == "JAVA_TOOL_OPTIONS" else value
        return env

    def proxy_env(self):
        java = " ".join(f"-D{s}.proxyHost={FAR[4]} -D{s}.proxyPort=80" for s in ("http", "https"))
        return {"HTTPS_PROXY": PROXY, "https_proxy": PROXY, "http_proxy": PROXY, "JAVA_TOOL_OPTIONS": java}

    @staticmethod
    def _with_hosts(hosts, argv):
        """With an /etc/hosts that only this command sees."""
        return ["unshare", "-m", "--propagation", "private", "sh", "-c",
                f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh", *map(str, argv)]

    def argv(self, *cmd, session=None):
        """Names come from the DNS gate, but for those of which it knows nothing: a request to them is to be refused, too."""
        return self._with_hosts(self.origins.refused, super().argv(*cmd, session=session))

    def run(self, *cmd, timeout=40, input=None, env=None, cwd=None):
        return subprocess.run(self.argv(*cmd), capture_output=True, text=True, timeout=timeout, input=input,
                              env=self.env(**(env or {})), cwd=cwd or self.dir,
                              stdin=subprocess.DEVNULL if input is None else None)

    def curl(self, *words, timeout=40, **kw):
        return self.run("curl", "-sS", "-m", "30", *words, timeout=timeout, **kw)

    def control(self, *cmd, timeout=40, env=None, cwd=None):
        """The same on the host, in no sandbox: straight to the origin."""
        return subprocess.run(self._with_hosts(self.origins.hosts, [*self.world.enter(), *cmd]), capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL, cwd=cwd or self.dir,
                              env=self.env(trust=self.trust, **(env or {})))

    def start(self, *cmd, env=None, **kw):
        return base.popen(self.argv(*cmd), env=self.env(**(env or {})), stdin=subprocess.DEVNULL, cwd=self.dir, **kw)

    def raw(self, url, *steps, control=False, **more):
        """Steps on a socket in a sandbox; the list of what came. See probes/raw.py."""
        scheme, _, host = url.partition("://")
        job = {"host": host, "port": 443 if scheme == "https" else 80, "tls": scheme == "https", "steps": list(steps), **more}
        run = self.control if control else self.run
        p = run(base.PYTHON, "-I", self.programs.dir / "raw.py", json.dumps(job))
        assert p.returncode == 0, p.stderr
        return json.loads(p.stdout)

    def world_sysctl(self, name):
        """A setting of the near side's namespace."""
        return base.sh(*self.world.enter(), "sysctl", "-n", name).stdout.strip()

    def inspectors(self):
        """Processes of the inspector, by number."""
        found = []
        for pid in self.daemon.workers():
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("netpawl-inspec"):
                    found.append(pid)
            except OSError:
                pass
        return sorted(found)

    def rss(self):
        """Resident bytes of all inspectors together."""
        total = 0
        for pid in self.inspectors():
            fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
            total += int(fields[1]) * 4096
        return total
