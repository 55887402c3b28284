# SPDX-License-Identifier: MIT
"""An origin, and the proxies that are measured in front of it: each in the namespaces of one Net."""
import os
import pathlib
import secrets
import shutil
import socket
import struct
import subprocess
import threading

from lib import base
from lib.daemon import Daemon
from lib.origins import Authority

from nets import BENCH, FAR, GATE, HOST, Program, install

NAME, H2_NAME, FULL_NAME, RAW_NAME = "origin.test", "h2.origin.test", "full.origin.test", "raw.origin.test"
# one address for each way that the origin talks
PLACE = {NAME: FAR[4], RAW_NAME: FAR[4], H2_NAME: "198.51.100.11", FULL_NAME: "198.51.100.12"}
DNS_PORT, HOLD_PORT = 5300, 9999
SMALL, LARGE = "/1k", "/100m"
LARGE_BYTES = 100 << 20

POLICY = f"""version: 1
rules:
  - allow: {RAW_NAME}
    inspect: false
  - deny: [bad.example, "**.worse.example"]
  - allow: api.example
    methods: [GET, HEAD]
    paths: ["/repos/**"]
  - allow: [{NAME}, "**.{NAME}"]
"""

TLS = """
  ssl_certificate {cert};
  ssl_certificate_key {key};
  ssl_protocols TLSv1.3;
"""

NGINX = """
user root;
daemon off;
pid {dir}/{word}.pid;
error_log {dir}/{word}.log warn;
worker_processes 1;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {dir}/{word}-b; proxy_temp_path {dir}/{word}-p; fastcgi_temp_path {dir}/{word}-f;
  uwsgi_temp_path {dir}/{word}-u; scgi_temp_path {dir}/{word}-s;
  keepalive_requests 100000000;
  keepalive_timeout 600s;
  proxy_read_timeout 600s;
  {tls}
  {servers}
}}
"""

ORIGIN = """
  root {dir}/www;
  server {{
    listen {plain}:443 ssl;
    location /once {{ alias {dir}/www/1k; keepalive_timeout 0; }}
    location /hold {{ proxy_pass http://127.0.0.1:{hold}; }}
  }}
  server {{ listen {h2}:443 ssl http2; http2_max_concurrent_streams 256; http2_recv_timeout 600s; }}
  server {{
    listen {full}:443 ssl;
    ssl_session_tickets off;
    ssl_session_cache off;
    keepalive_timeout 0;
  }}
"""

PROXY_PORTS = {"keep": 4431, "resumed": 4432, "full": 4433, "h2": 4434}

# It verifies the origin, as netpawl does; it keeps no log, as netpawl does by its daemon.
PROXY = """
  proxy_http_version 1.1;
  proxy_set_header Host $host;
  proxy_set_header Connection "";
  proxy_max_temp_file_size 0;
  proxy_ssl_verify on;
  proxy_ssl_trusted_certificate {root};
  proxy_ssl_server_name on;
  proxy_ssl_name {name};
  proxy_ssl_protocols TLSv1.3;
  upstream kept {{ server {plain}:443; keepalive 600; keepalive_requests 100000000; keepalive_timeout 600s; }}
  server {{ listen {host}:{keep} ssl; location / {{ proxy_pass https://kept; }} }}
  server {{ listen {host}:{h2} ssl http2; http2_max_concurrent_streams 256; location / {{ proxy_pass https://kept; }} }}
  server {{
    listen {host}:{resumed} ssl;
    location / {{ proxy_set_header Host $host; proxy_set_header Connection close; proxy_pass https://{plain}:443; }}
  }}
  server {{
    listen {host}:{full} ssl;
    proxy_ssl_session_reuse off;
    location / {{ proxy_set_header Host $host; proxy_set_header Connection close; proxy_pass https://{full_at}:443; }}
  }}
"""

SQUID = """
http_port {host}:{port} ssl-bump tls-cert={ca} tls-key={ca_key} generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program /usr/lib/squid/security_file_certgen -s {dir}/squid-db -M 4MB
sslcrtd_children 2 startup=1 idle=1
tls_outgoing_options cafile={root} min-version=1.3
ssl_bump bump all
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {dir}/squid.log
cache_store_log none
pid_filename {dir}/squid.pid
coredump_dir {dir}
hosts_file {dir}/hosts
dns_nameservers {gate}
shutdown_lifetime 0 seconds
client_persistent_connections on
server_persistent_connections on
pconn_timeout 600 seconds
client_idle_pconn_timeout 600 seconds
visible_hostname bench.test
cache_effective_user proxy
"""
SQUID_PORT, MITM_PORT, NGHTTPX_PORT = 4440, 4441, 4442


def tree(pid):
    """A process and all that it started."""
    out, left = [], [pid]
    while left:
        at = left.pop()
        out.append(at)
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                left += map(int, pathlib.Path(f"/proc/{at}/task/{task}/children").read_text().split())
        except OSError:
            pass
    return out


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except OSError:
            pass
    return total


def rss_kib(pids):
    """Of memory that is nobody else's."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            total += next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))
    return total


class Names(threading.Thread):
    """DNS in the far namespace."""

    def __init__(self, net):
        super().__init__(daemon=True)

        def make():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((GATE[4], DNS_PORT))
            return s

        self.socket = base.setns_call(net.far, make)
        self.start()

    def run(self):
        while True:
            try:
                query, peer = self.socket.recvfrom(2048)
            except OSError:
                return
            at, labels = 12, []
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            addr = PLACE.get(".".join(labels).lower())
            answer = b""
            if addr and query[at + 1:at + 3] == b"\0\1":
                answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 3600, 4) + socket.inet_aton(addr)
            flags = 0x8180 if addr else 0x8183
            self.socket.sendto(query[:2] + struct.pack("!5H", flags, 1, 1 if answer else 0, 0, 0) +
                               query[12:at + 5] + answer, peer)

    def close(self):
        self.socket.close()


class Peer:
    """Something between a client and the origin. `ways` says where to go for what: (address, port, name)."""

    def __init__(self, word, title, ways, ca, process=None, connect=False):
        self.word, self.title, self.ways, self.ca, self.process, self.connect = word, title, ways, ca, process, connect
        self.clients = {}

    def enter(self):
        return []

    def pids(self):
        return tree(self.process.pid) if self.process else []

    def extra_pids(self):
        return []

    def client(self, net, way):
        """A load generator for that way."""
        if way not in self.clients:
            address, port, name = self.ways[way]
            self.clients[way] = Program(*net.enter(), *self.enter(), BENCH / "https", address, port, name, self.ca,
                                        *(["connect"] if self.connect else []))
        return self.clients[way]

    def close(self):
        for client in self.clients.values():
            client.close()
        if self.process:
            base.reap(self.process)


class Netpawl(Peer):
    def __init__(self, stack, net, folder, root):
        self.root = root
        policy = folder / "policy.yaml"
        policy.write_text(POLICY + base.PERMITS)
        self.daemon = Daemon(net, policy=policy, inspectors=1,
                             more=["--resolvers", f"{GATE[4]}:{DNS_PORT}", "--roots", root])
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.api, self.session = self.daemon.api, "bench/inspected"
        base.eventually(lambda: self.api.health()["inspectors"] == 1, 10)
        self.api.create(self.session, "CONFIDENTIAL")
        super().__init__("netpawl", "netpawl", {
            "keep": (PLACE[NAME], 443, NAME), "resumed": (PLACE[NAME], 443, NAME),
            "full": (PLACE[FULL_NAME], 443, FULL_NAME), "raw": (PLACE[RAW_NAME], 443, RAW_NAME),
            "h2": (PLACE[H2_NAME], 443, H2_NAME), "h2 to h1": (PLACE[NAME], 443, NAME)}, folder / "session-ca.pem")
        keeper = base.popen([*net.enter(), *self.enter(), "sleep", "1000"], stdin=subprocess.DEVNULL)
        stack.callback(base.reap, keeper)
        if not base.eventually(self.fetch_ca, 10):
            raise RuntimeError("the session has no authority")

    def fetch_ca(self):
        status, _, pem = self.api.raw("GET", f"/v1/sessions/{self.session}/ca")
        if status == 200:
            self.ca.write_bytes(pem + self.root.read_bytes())  # the root, for what passes unseen
        return status == 200

    def enter(self, session=None):
        return [str(base.NETPAWL), "run", "--socket", str(self.daemon.socket), "--session", session or self.session,
                *base.shown(), "--"]

    def pids(self):
        """The inspector; the daemon, which takes its reports, is counted by itself."""
        return tree(self.api.health()["pid"])[1:]

    def extra_pids(self):
        return [self.api.health()["pid"]]


class Scene:
    """The origin, and every peer that this machine can have."""

    def __init__(self, stack, net, slow_peers=True):
        self.stack, self.net, self.dir = stack, net, base.tempdir("inspect")
        stack.callback(base.drop_tempdir, self.dir)
        self.skipped = []
        net._ip(net.far, *[f"addr add {a}/32 dev lo" for a in sorted({*PLACE.values()} - {FAR[4]})])
        for ns in (net.host, net.far):
            base.sh("nsenter", f"--net=/run/netns/{ns}", "sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1",
                    "net.core.somaxconn=4096")
        self.authority = Authority(self.dir)
        self.cert, self.key = self.authority.leaf(NAME, names=f"DNS:{NAME},DNS:*.{NAME}," + ",".join(
            f"IP:{a}" for a in sorted({*PLACE.values(), HOST[4]})))
        (self.dir / "www").mkdir()
        (self.dir / "www/1k").write_bytes(b"x" * 1024)
        with open(self.dir / "www/100m", "wb") as f:
            for _ in range(LARGE_BYTES >> 20):
                f.write(os.urandom(1 << 20))
        (self.dir / "hosts").write_text("".join(f"{a} {n}\n" for n, a in PLACE.items()))
        for path in (self.dir, *self.dir.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        names = Names(net)
        stack.callback(names.close)
        self.hold()
        self.nginx("origin", ORIGIN.format(dir=self.dir, plain=PLACE[NAME], h2=PLACE[H2_NAME], full=PLACE[FULL_NAME],
                                           hold=HOLD_PORT), net.far, (PLACE[NAME], 443))
        self.peers = {}
        self.make_peers(slow_peers)

    def hold(self):
        """A listener that never accepts: who asks there waits."""
        def make():
            s = socket.socket()
            s.bind(("127.0.0.1", HOLD_PORT))
            s.listen(4000)
            return s

        s = base.setns_call(self.net.far, make)
        self.stack.callback(s.close)

    def spawn(self, ns, argv, log, place=None, **kw):
        p = base.popen([*self.net.enter(ns), *argv], stdin=subprocess.DEVNULL, stdout=open(self.dir / log, "ab"),
                       stderr=subprocess.STDOUT, env=base.env(), **kw)

        def listens():
            def probe():
                with socket.create_connection(place, 1):
                    return True
            try:
                return base.setns_call(ns, probe)
            except OSError:
                return p.poll() is not None

        if place:
            base.eventually(listens, 20, 0.1)
        if p.poll() is not None:
            raise RuntimeError(f"{argv[0]}: {(self.dir / log).read_text()[-800:]}")
        return p

    def nginx(self, word, servers, ns, place):
        conf = self.dir / f"{word}.conf"
        conf.write_text(NGINX.format(dir=self.dir, word=word, servers=servers,
                                     tls=TLS.format(cert=self.cert, key=self.key)))
        p = self.spawn(ns, ["nginx", "-e", self.dir / f"{word}.log", "-c", conf], f"{word}.out", place)
        self.stack.callback(base.reap, p)
        return p

    def make_peers(self, slow_peers):
        root = self.authority.pem
        self.add(Peer("direct", "direct", {"keep": (PLACE[NAME], 443, NAME), "resumed": (PLACE[NAME], 443, NAME),
                                           "full": (PLACE[FULL_NAME], 443, FULL_NAME),
                                           "h2": (PLACE[H2_NAME], 443, H2_NAME)}, root))
        makers = [("netpawl", None, lambda: Netpawl(self.stack, self.net, self.dir, root)),
                  ("nginx", None, self.make_nginx), ("nghttpx", "nghttp2-proxy", self.make_nghttpx)]
        if slow_peers:
            makers += [("squid", "squid-openssl", self.make_squid), ("mitmproxy", "mitmproxy", self.make_mitm)]
        for word, package, make in makers:
            if package and install([package]):
                self.skipped.append(f"{word}: {package} cannot be installed")
                continue
            try:
                self.add(make())
            except (RuntimeError, OSError) as e:
                if word == "netpawl":
                    raise
                self.skipped.append(f"{word}: {e}")

    def add(self, peer):
        self.peers[peer.word] = peer
        self.stack.callback(peer.close)

    def make_nginx(self):
        host, root = HOST[4], self.authority.pem
        p = self.nginx("proxy", PROXY.format(root=root, name=NAME, plain=PLACE[NAME], full_at=PLACE[FULL_NAME],
                                             host=host, **PROXY_PORTS), self.net.host, (host, PROXY_PORTS["keep"]))
        ways = {way: (host, port, FULL_NAME if way == "full" else NAME) for way, port in PROXY_PORTS.items()}
        ways["h2 to h1"] = ways.pop("h2")
        return Peer("nginx", "nginx TLS to TLS", ways, root, p)

    def make_nghttpx(self):
        host = HOST[4]
        p = self.spawn(self.net.host, [
            "nghttpx", "--conf=/dev/null", f"--frontend={host},{NGHTTPX_PORT}", "--workers=1", "--no-ocsp",
            f"--backend={PLACE[H2_NAME]},443;;tls;proto=h2;sni={H2_NAME}", f"--cacert={self.authority.pem}",
            "--accesslog-file=/dev/null", f"--errorlog-file={self.dir}/nghttpx.log", self.key, self.cert],
            "nghttpx.out", (host, NGHTTPX_PORT))
        return Peer("nghttpx", "nghttpx", {"h2": (host, NGHTTPX_PORT, H2_NAME)}, self.authority.pem, p)

    def make_squid(self):
        folder = self.dir / "squid"  # squid insists on not being root
        folder.mkdir()
        base.sh("/usr/lib/squid/security_file_certgen", "-c", "-s", folder / "squid-db", "-M", "4MB")
        shutil.copy(self.dir / "hosts", folder)
        base.sh("chown", "-R", "proxy:", folder)
        conf = self.dir / "squid.conf"
        conf.write_text(SQUID.format(dir=folder, host=HOST[4], gate=GATE[4], port=SQUID_PORT, root=self.authority.pem,
                                     ca=self.authority.pem, ca_key=self.authority.key))
        # A name of its own: shared memory is called after it, and the host may run a squid.
        service = "npbench" + secrets.token_hex(3)
        self.stack.callback(lambda: [path.unlink() for path in pathlib.Path("/dev/shm").glob(service + "-*")])
        p = self.spawn(self.net.host, ["squid", "-N", "-n", service, "-f", conf], "squid.out", (HOST[4], SQUID_PORT), cwd=folder)
        ways = {way: (HOST[4], SQUID_PORT, name) for way, name in {"keep": NAME, "full": FULL_NAME}.items()}
        return Peer("squid", "squid ssl-bump", ways, self.authority.pem, p, connect=True)

    def make_mitm(self):
        confdir = self.dir / "mitm"
        p = self.spawn(self.net.host, [
            "mitmdump", "-q", "--mode", f"reverse:https://{PLACE[NAME]}", "--listen-host", HOST[4], "--listen-port",
            str(MITM_PORT), "--set", f"confdir={confdir}", "--set", "keep_host_header=true", "--set",
            "stream_large_bodies=1m", "--set", f"ssl_verify_upstream_trusted_ca={self.authority.pem}"], "mitm.out", (HOST[4], MITM_PORT))
        ca = confdir / "mitmproxy-ca-cert.pem"
        base.eventually(ca.exists, 10)
        return Peer("mitmproxy", "mitmproxy", {"keep": (HOST[4], MITM_PORT, NAME)}, ca, p)
