#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""FULL, PROXIED, NONE on a little internet of its own.

    make run                  the three modes, step by step, and a daemon that is killed on the way
    make run AGENT="cmd ..."  your command in a sandbox on that little internet
    make run CONSOLE=1        the same, and then the console on it, until you interrupt it

Two network namespaces are made: HOST, where netpawld and the sandbox live, and WORLD, which plays the
internet with addresses from the documentation ranges. Nothing can leave the machine, and nothing is left
behind.
"""
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("NETPAWL_BUILD", HERE.parent / "build"))
PYTHON = "/usr/bin/python3"

SERVERS = r"""
import os, signal, socketserver, socket, ssl, sys, threading
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the demo, which ends this
NAMES = {"api.example.org": "198.51.100.10", "db.corp.example": "198.51.100.20"}
class Http(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
        body = b"hello from " + sys.argv[1].encode()
        self.request.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
class Https(Http):
    def handle(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2])
        try:
            self.request = context.wrap_socket(self.request, server_side=True)
            super().handle()
        except OSError:
            pass
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data[:16])
        except OSError:
            pass
class Database(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
        self.request.sendall(b"1 row, from the warehouse\r\n")
class Datagram(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(b"thank you", self.client_address)
class Names(socketserver.BaseRequestHandler):
    def handle(self):
        query, at, labels = self.request[0], 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, kind = ".".join(labels).lower(), query[at + 1 : at + 3]
        os.write(1, f"query {name}\n".encode())  # whole, whichever threads write
        answers = NAMES.get(name) if kind == b"\0\1" else None
        head = query[:2] + (b"\x81\x80" if name in NAMES else b"\x81\x83") + b"\0\1" + (b"\0\1" if answers else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4" + socket.inet_aton(answers) if answers else b""
        self.request[1].sendto(head + query[12 : at + 5] + record, self.client_address)
class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
socketserver.ThreadingUDPServer.daemon_threads = True
KINDS = {"http": (Tcp, Http), "https": (Tcp, Https), "echo": (Tcp, Echo), "database": (Tcp, Database),
         "udp": (socketserver.ThreadingUDPServer, Datagram), "dns": (socketserver.ThreadingUDPServer, Names)}
servers = []
for spec in sys.argv[3:]:
    kind, address, port = spec.split(",")
    servers.append(KINDS[kind][0]((address, int(port)), KINDS[kind][1]))
for s in servers:
    threading.Thread(target=s.serve_forever, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""

POLICY = """version: 1
rules:
  - allow: api.example.org
    methods: [GET, HEAD]
  - allow: db.corp.example:5432
sandbox:
  binds: [{binds}]
"""


def sh(line):
    subprocess.run(shlex.split(line), check=True, stdin=subprocess.DEVNULL, timeout=20)


class Demo:
    def __init__(self):
        self.name = f"npdemo{os.getpid()}"
        self.dir = Path(tempfile.mkdtemp(prefix="netpawl-demo-", dir="/run"))  # not where sandboxes of others may be shown it
        self.children = []
        self.world = None
        self.directories = (
            f"--run-dir {self.dir}/run --state-dir {self.dir}/state --pin-dir {self.dir}/bpf/netpawl"
            f" --cgroup {self.name}.slice"
        )
        self.socket = f"{self.dir}/run/control.sock"

    def inside(self, where, argv):
        return ["nsenter", f"--net=/run/netns/{self.name}-{where}", *argv]

    def start(self, argv, **more):
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, **more)
        self.children.append(child)
        return child

    def internet(self):
        n = self.name
        for where in ("host", "world"):
            sh(f"ip netns add {n}-{where}")
            sh(f"ip -n {n}-{where} link set lo up")
        sh(f"ip -n {n}-host link add np0 type veth peer name np1 netns {n}-world")
        for line in (
            f"-n {n}-host addr add 192.0.2.2/24 dev np0",
            f"-n {n}-world addr add 192.0.2.1/24 dev np1",
            f"-n {n}-host link set np0 up",
            f"-n {n}-world link set np1 up",
            f"-n {n}-world addr add 198.51.100.10/32 dev lo",
            f"-n {n}-world addr add 198.51.100.20/32 dev lo",
            f"-n {n}-world addr add 169.254.169.254/32 dev lo",
            f"-n {n}-host route add default via 192.0.2.1",
        ):
            sh("ip " + line)
        for command in (f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=demo-root -keyout {self.dir}/ca.key"
                        f" -out {self.dir}/ca.pem",
                        f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=api.example.org -keyout {self.dir}/api.key"
                        f" -out {self.dir}/api.csr"):
            subprocess.run(["openssl", *command.split()], check=True, stderr=subprocess.DEVNULL, timeout=20)
        (self.dir / "san").write_text("subjectAltName=DNS:api.example.org\n")
        subprocess.run(["openssl", "x509", "-req", "-days", "2", "-in", self.dir / "api.csr", "-CA", self.dir / "ca.pem", "-CAkey",
                        self.dir / "ca.key", "-CAcreateserial", "-extfile", self.dir / "san", "-out", self.dir / "api.pem"],
                       check=True, stderr=subprocess.DEVNULL, timeout=20)
        with open(self.dir / "api.pem", "a") as chain:
            chain.write((self.dir / "api.key").read_text())
        self.world = self.serve("world", "the internet", "http,198.51.100.10,80", "https,198.51.100.10,443", "http,169.254.169.254,80",
                                "echo,198.51.100.10,7", "udp,198.51.100.10,9", "database,198.51.100.20,5432", "dns,192.0.2.1,53")
        self.serve("host", "the host", "http,127.0.0.1,8500")

    def serve(self, where, name, *specs):
        child = self.start(self.inside(where, [PYTHON, "-c", SERVERS, name, f"{self.dir}/api.pem", *specs]), stdout=subprocess.PIPE)
        assert child.stdout.readline() == "up\n"
        return child

    def seen(self):
        """Names that the world's name server was asked for so far. Ends the world."""
        out = self.world.communicate(timeout=60)[0]
        return sorted({line.split()[1] for line in out.splitlines()})

    def daemon(self):
        if not (self.dir / "bpf").exists():
            (self.dir / "bpf").mkdir()
            sh(f"mount -t bpf bpf {self.dir}/bpf")
            # A sandbox sees the system and its workspace; the directory that make run was called in is shown as well.
            (self.dir / "policy.yaml").write_text(POLICY.format(binds=json.dumps(os.getcwd())))
        argv = self.inside("host", [f"{BUILD}/netpawld", "--policy", f"{self.dir}/policy.yaml", "--resolvers", "192.0.2.1",
                                    "--roots", f"{self.dir}/ca.pem", *self.directories.split()])
        child = self.start(argv, stderr=subprocess.PIPE)
        said = ""
        for line in child.stderr:
            said += line
            if "ready" in line:
                return child
        sys.exit(said)

    def netpawl(self, *argv, **more):
        return self.start(self.inside("host", [f"{BUILD}/netpawl", "--socket", self.socket, *argv]), **more)

    def stop(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(30)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([f"{BUILD}/netpawld", "--uninstall", *self.directories.split()], **quiet)
        subprocess.run(["umount", f"{self.dir}/bpf"], **quiet)
        for where in ("host", "world"):
            subprocess.run(["ip", "netns", "del", f"{self.name}-{where}"], **quiet)
        shutil.rmtree(self.dir, ignore_errors=True)


def look(agent, scene):
    agent.stdin.write(scene + "\n")
    agent.stdin.flush()
    for line in agent.stdout:
        if line == "done\n":
            return
        print(line, end="", flush=True)


def say(text):
    print("\n" + textwrap.fill(text, 116, subsequent_indent="   "), flush=True)


def show(demo, *argv, lines=None, only="", width=None):
    """$ netpawl ARGV, and what it prints, or the beginning of it, indented."""
    out = [line for line in demo.netpawl(*argv, stdout=subprocess.PIPE).communicate()[0].splitlines() if only in line]
    print(f"    $ netpawl {shlex.join(argv)}" + (f" | grep '{only}'" if only else ""))
    for line in out[:lines]:
        line = textwrap.shorten(line, width, placeholder=" ...") if width else line
        print(textwrap.fill(line, 116, initial_indent=" " * 6, subsequent_indent=" " * 8))
    if lines and len(out) > lines:
        print("      ...")
    sys.stdout.flush()


def raised(demo, level, dataset):
    argv = ["escalate", "demo/agent", level, "--dataset", dataset, "--json"]
    answer = json.loads(demo.netpawl(*argv, stdout=subprocess.PIPE).communicate()[0])
    return (f"{dataset} enters the session, which is {level} now. The kernel was tight {answer['applied_us']} us after the call, "
            f"{answer['cut']} open connection(s) cut; then it was on disk and acknowledged.")


def three_modes(demo, daemon):
    say("The policy of this demo:")
    print(textwrap.indent(POLICY.split("sandbox:")[0].rstrip(), "    "))
    agent = demo.netpawl("run", "--session", "demo/agent", "--bind", f"{HERE}:/agent:ro", "--", PYTHON, "/agent/agent.py",
                         stdout=subprocess.PIPE)
    say("1. FULL. The session demo/agent is PUBLIC. Its agent reaches the internet, but neither the host nor the cloud's metadata:")
    look(agent, "full")
    say("2. PROXIED. " + raised(demo, "CONFIDENTIAL", "customers.csv"))
    look(agent, "proxied")
    say("   What was allowed is on record with its rule. The agent reads why the rest was not, and was told of the change:")
    show(demo, "events", "--session", "demo/agent", only="GET https", lines=1)
    show(demo, "why", "demo/agent", lines=5)
    show(demo, "notices", "demo/agent", lines=1, width=330)
    say("3. The gate outlives the daemon, which is killed now (kill -9). The agent tries again:")
    daemon.kill()
    daemon.wait()
    look(agent, "orphan")
    demo.daemon()
    say("4. NONE. The next daemon has taken over. " + raised(demo, "SECRET", "keys.pem"))
    look(agent, "none")
    say("5. Lowering does not exist; and this is all that the internet's name server was ever asked for:")
    show(demo, "escalate", "demo/agent", "PUBLIC")
    agent.stdin.close()
    agent.wait(10)
    print("    names asked for: " + ", ".join(demo.seen()))
    if os.environ.get("CONSOLE"):
        return console(demo)
    say("6. All of this can be looked at in a browser: make run CONSOLE=1 opens the console on it (netpawl console).")
    return 0


def console(demo):
    """On the machine's own loopback, where the browser is; the daemon is found by the path of its socket."""
    say("6. The console, with all of this in it. Open the link; interrupt (Ctrl-C) ends the demo.")
    try:
        return subprocess.run([f"{BUILD}/netpawl", "--socket", demo.socket, "console"]).returncode
    except KeyboardInterrupt:
        return 0


def own_command(demo, argv):
    print(f"Running in a sandbox (session demo/agent, FULL): {shlex.join(argv)}")
    print("It reaches http://api.example.org and db.corp.example:5432. From another terminal, CONFIDENTIAL (PROXIED) or SECRET (NONE):")
    print(f"    {BUILD}/netpawl --socket {demo.socket} escalate demo/agent SECRET", flush=True)
    # In FULL a sandbox asks the name server of its resolv.conf: here that of the little internet.
    (demo.dir / "resolv.conf").write_text("nameserver 192.0.2.1\n")
    named = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', f"{demo.dir}/resolv.conf"]
    inside = demo.inside("host", [*named, f"{BUILD}/netpawl", "--socket", demo.socket, "run", "--session", "demo/agent", "--bind",
                                  f"{os.getcwd()}:{os.getcwd()}", "--", *argv])
    return subprocess.run(inside).returncode


def main():
    if os.geteuid() != 0:
        sys.exit("make run needs root: it makes network namespaces and loads BPF programs")
    demo = Demo()
    # An interrupted demo cleans up as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        demo.internet()
        daemon = demo.daemon()
        return own_command(demo, sys.argv[1:]) if sys.argv[1:] else three_modes(demo, daemon)
    finally:
        demo.stop()


if __name__ == "__main__":
    sys.exit(main())
