# SPDX-License-Identifier: MIT
"""Who events are sent on to: a receiver of OTLP logs in the host's namespace, and a socket as journald's."""
import json
import socket
import struct
import subprocess
import threading

from lib import base

SERVER = """import http.server, json, sys, threading, time
# What becomes of the next requests is told by lines of stdin: a status, "503 2" with Retry-After, hang, close, slow, nonsense;
# "poison WORD": what has that word in it is answered with 400, always.
plan, poison, lock = [], [], threading.Lock()
def listen():
    for line in sys.stdin:
        with lock:
            words = line.split()
            poison.append(words[1].encode()) if words[0] == "poison" else plan.append(words)
threading.Thread(target=listen, daemon=True).start()
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with lock:
            how = ["400"] if any(w in body for w in poison) else plan.pop(0) if plan else ["200"]
        print(json.dumps({"path": self.path, "headers": dict(self.headers), "how": how, "at": time.monotonic(), "body": json.loads(body)}), flush=True)
        if how[0] == "hang":
            time.sleep(60)
        if how[0] == "slow":
            for c in b"HTTP/1.1 2":
                self.wfile.write(bytes([c])); self.wfile.flush(); time.sleep(2)
        if how[0] == "nonsense":
            self.wfile.write(b"SSH-2.0-OpenSSH\\r\\n\\r\\n" + b"A" * 100000)
        if not how[0].isdigit():
            self.close_connection = True
            return
        self.send_response(int(how[0]))
        if len(how) > 1:
            self.send_header("Retry-After", how[1])
        out = b"{}" if how[0] == "200" else b'{"code":14,"message":"no"}'
        self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(out)))
        self.end_headers(); self.wfile.write(out)
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    daemon_threads = True
    def handle_error(self, *a): pass
s = S(("127.0.0.1", int(sys.argv[1])), H)
print("ready", flush=True)
s.serve_forever()
"""


class OtlpReceiver:
    def __init__(self, world, port=4318):
        self.port, self.requests = port, []
        self.process = base.popen([*world.enter(), base.PYTHON, "-I", "-c", SERVER, str(port)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.requests.append(json.loads(line))

    def plan(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()

    def taken(self):
        """Attributes of the records that it has taken, as it got them."""
        return [attributes(r) for q in list(self.requests) if q["how"][0] == "200" for r in records(q["body"])]

    def seqs(self):
        return [int(a["netpawl.seq"]) for a in self.taken() if "netpawl.seq" in a]

    def close(self):
        base.reap(self.process)
        self.reader.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def records(body):
    [logs] = body["resourceLogs"]
    [scope] = logs["scopeLogs"]
    return scope["logRecords"]


def value(v):
    [(kind, got)] = v.items()
    assert kind in ("stringValue", "intValue", "boolValue"), v
    return int(got) if kind == "intValue" else got


def attributes(record):
    got = {a["key"]: value(a["value"]) for a in record["attributes"]}
    assert len(got) == len(record["attributes"]), "a key is there twice"
    return got


class Journal:
    """journald's socket, and entries as it would read them: name=value, or a name, a length of 8 bytes and so many bytes."""

    def __init__(self, path):
        self.path, self.entries = path, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o666)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while True:
            data = self.socket.recv(1 << 20)
            if data == b"end":
                return
            self.entries.append(parse(data))

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", str(self.path))
        self.thread.join(10)
        self.socket.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def parse(data):
    entry = []
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, text = line.partition(b"=")
        if equals:
            entry.append((name.decode("ascii"), text))
            data = rest
            continue
        [n] = struct.unpack("<Q", rest[:8])
        assert rest[8 + n : 9 + n] == b"\n", data
        entry.append((name.decode("ascii"), rest[8 : 8 + n]))
        data = rest[9 + n :]
    return entry
