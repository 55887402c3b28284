#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""FULL, PROXIED, NONE on a little internet of its own.

    make run                  the three modes, step by step
    make run AGENT="cmd ..."  your command in a sandbox on that little internet

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
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("NETPAWL_BUILD", HERE.parent / "build"))
PYTHON = "/usr/bin/python3"

SERVERS = r"""
import socketserver, socket, sys, threading
class Http(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.0 200 Hello from " + sys.argv[1].encode() + b"\r\n\r\n")
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data[:16])
class Datagram(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(b"thank you", self.client_address)
class V4(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
class V6(V4):
    address_family = socket.AF_INET6
socketserver.ThreadingUDPServer.daemon_threads = True
servers = []
for spec in sys.argv[2:]:
    kind, address, port = spec.split(",")
    server = {"http": V6 if ":" in address else V4, "echo": V4, "udp": socketserver.ThreadingUDPServer}[kind]
    handler = {"http": Http, "echo": Echo, "udp": Datagram}[kind]
    servers.append(server((address, int(port)), handler))
for s in servers:
    threading.Thread(target=s.serve_forever, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""


def sh(line):
    subprocess.run(shlex.split(line), check=True, stdin=subprocess.DEVNULL, timeout=20)


class Demo:
    def __init__(self):
        self.name = f"npdemo{os.getpid()}"
        self.dir = Path(tempfile.mkdtemp(prefix="netpawl-demo-"))
        self.children = []
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
            f"-n {n}-host -6 addr add 2001:db8:1::2/64 dev np0 nodad",
            f"-n {n}-world addr add 192.0.2.1/24 dev np1",
            f"-n {n}-world -6 addr add 2001:db8:1::1/64 dev np1 nodad",
            f"-n {n}-host link set np0 up",
            f"-n {n}-world link set np1 up",
            f"-n {n}-world addr add 198.51.100.10/32 dev lo",
            f"-n {n}-world addr add 169.254.169.254/32 dev lo",
            f"-n {n}-world -6 addr add 2001:db8:2::10/128 dev lo nodad",
            f"-n {n}-host route add default via 192.0.2.1",
            f"-n {n}-host -6 route add default via 2001:db8:1::1",
        ):
            sh("ip " + line)
        self.serve("world", "the internet", "http,198.51.100.10,80", "http,2001:db8:2::10,80", "http,169.254.169.254,80",
                   "echo,198.51.100.10,7", "udp,198.51.100.10,9")
        self.serve("host", "the host", "http,127.0.0.1,8500")

    def serve(self, where, name, *specs):
        argv = self.inside(where, [PYTHON, "-c", SERVERS, name, *specs])
        assert self.start(argv, stdout=subprocess.PIPE).stdout.readline() == "up\n"

    def daemon(self):
        (self.dir / "bpf").mkdir()
        sh(f"mount -t bpf bpf {self.dir}/bpf")
        # A sandbox sees the system and its workspace; the directory that make run was called in is shown as well.
        (self.dir / "policy.yaml").write_text(f"version: 1\nsandbox:\n  binds: [{json.dumps(os.getcwd())}]\n")
        argv = self.inside("host", [f"{BUILD}/netpawld", "--policy", f"{self.dir}/policy.yaml", *self.directories.split()])
        child = self.start(argv, stderr=subprocess.PIPE)
        line = child.stderr.readline()
        if "ready" not in line:
            sys.exit(line + child.stderr.read())

    def netpawl(self, *argv, **more):
        return self.start(self.inside("host", [f"{BUILD}/netpawl", "--socket", self.socket, *argv]), **more)

    def stop(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(5)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([f"{BUILD}/netpawld", "--uninstall", *self.directories.split()], **quiet)
        subprocess.run(["umount", f"{self.dir}/bpf"], **quiet)
        for where in ("host", "world"):
            subprocess.run(["ip", "netns", "del", f"{self.name}-{where}"], **quiet)
        shutil.rmtree(self.dir, ignore_errors=True)


def look(agent):
    agent.stdin.write("look\n")
    agent.stdin.flush()
    for line in agent.stdout:
        if line == "done\n":
            return
        print(line, end="", flush=True)


def three_modes(demo):
    agent = demo.netpawl("run", "--session", "demo/agent", "--bind", f"{HERE}:/agent:ro", "--", PYTHON, "/agent/agent.py",
                         stdout=subprocess.PIPE)
    print("\n1. The session demo/agent is PUBLIC: its mode is FULL. What the agent sees:")
    look(agent)
    for number, level, dataset in ((2, "CONFIDENTIAL", "customers.csv"), (3, "SECRET", "keys.pem")):
        began = time.monotonic()
        argv = ["escalate", "demo/agent", level, "--dataset", dataset, "--reason", "read by the agent", "--json"]
        answer = json.loads(demo.netpawl(*argv, stdout=subprocess.PIPE).communicate()[0])
        took = (time.monotonic() - began) * 1000
        print(f"\n{number}. {dataset} enters the session, which is {answer['level']} now: its mode is {answer['mode']}.")
        print(f"   The kernel was tightened {answer['applied_us']} us after the request; {answer['cut']} open "
              f"connection(s) cut; on disk and acknowledged after {took:.1f} ms, CLI start included.")
        look(agent)
    print("\nLowering does not exist. Asking for PUBLIC now answers what stands:")
    lower = demo.netpawl("escalate", "demo/agent", "PUBLIC", stdout=subprocess.PIPE).communicate()[0]
    print("    " + lower.strip())
    print("\nThe last refusals, as an operator sees them (netpawl events):")
    events = demo.netpawl("events", "--session", "demo/agent", "--limit", "4", stdout=subprocess.PIPE).communicate()[0]
    print("".join("    " + line + "\n" for line in events.splitlines()), end="")
    agent.stdin.close()
    agent.wait(10)
    return 0


def own_command(demo, argv):
    print(f"Running in a sandbox (session demo/agent, FULL): {shlex.join(argv)}")
    print(f"From another terminal:  {BUILD}/netpawl --socket {demo.socket} escalate demo/agent SECRET", flush=True)
    inside = demo.inside("host", [f"{BUILD}/netpawl", "--socket", demo.socket, "run", "--session", "demo/agent", "--bind",
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
        demo.daemon()
        return own_command(demo, sys.argv[1:]) if sys.argv[1:] else three_modes(demo)
    finally:
        demo.stop()


if __name__ == "__main__":
    sys.exit(main())
