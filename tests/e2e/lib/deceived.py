# SPDX-License-Identifier: MIT
"""A daemon that was itself deceived: it stands in front of a real one, and what that answers has hostile words in every field that
a stranger could fill. For tests of what shows it: nothing of it may draw, run, or take room that is not its own."""
import http.client
import http.server
import json
import re
import socket
import socketserver
import threading
import urllib.parse

from lib import base

# Markup, scripts, what turns text around or hides it, escapes of terminals, and what is very long.
WORDS = {
    "markup": "<img src=x onerror=\"window.owned=1\"><script>window.owned=2</script><b>bold</b></td></table></dialog>",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200bz\u00ad\ufeff \u0007",
    "escapes": "\x1b[2J\x1b[H\x1b]0;owned\x07\x9b31m\r\x08 'quoted' \"twice\" `${window.owned=3}` javascript:window.owned=4",
    "long": "https://x.test/" + "a<i>/" * 13000,
    "unbroken": "W" * 65536,
}

# What a program, and no person, reads: words of a small set, times, numbers in texts. All else is replaced.
LOGIC = {"kind", "state", "time", "created", "expires", "held_until", "id", "error", "level", "mode", "status", "sha256", "hash", "first",
         "version", "class", "after", "cursor"}
LARGE = {"url", "command", "text", "message"}  # the others are bounded where they come in
TIME = re.compile(r"^\d{4}-\d\d-\d\dT")


def deceive(value, word, logic=LOGIC, name=""):
    if isinstance(value, dict):
        return {key: deceive(one, word, logic, key) for key, one in value.items()}
    if isinstance(value, list):
        return [deceive(one, word, logic, name) for one in value]
    if not isinstance(value, str) or name in logic or TIME.match(value) or (name == "reason" and value in ("raised", "session_created")):
        return value
    return word if name in LARGE else word[:2000]


class Upstream(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("np", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = address_string = lambda self, *_: ""

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
        up = Upstream(self.server.daemon_socket)
        try:
            up.request(self.command, self.path, body, {"Content-Type": "application/json"} if body else {})
            answer = up.getresponse()
            if "ndjson" in (answer.getheader("content-type") or ""):
                self.lines(answer)
            else:
                self.whole(answer)
        except OSError:
            self.close_connection = True
        finally:
            up.close()

    def turned(self, text):
        # The page asks for a session by the name that the list has.
        logic = LOGIC | {"session"} if self.path.startswith("/v1/sessions") else LOGIC
        try:
            return json.dumps(deceive(json.loads(text), self.server.word, logic), separators=(",", ":")).encode()
        except ValueError:
            return text

    def whole(self, answer):
        text = self.turned(answer.read())
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("content-type") or "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def lines(self, answer):
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Connection", "close")  # as the daemon does: they go on until it ends
        self.end_headers()
        while line := answer.readline():
            text = self.turned(line.rstrip(b"\n")) + b"\n" if line.strip() else line
            self.wfile.write(text)
            self.wfile.flush()

    do_GET = do_POST = do_PUT = do_DELETE = pass_on


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


class StandInHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = address_string = lambda self, *_: ""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        got = self.server.answer(url.path, query)
        lines = isinstance(got, (list, tuple))
        text = ("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in got) if lines else json.dumps(got)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson" if lines else "application/json")
        self.send_header(*(("Connection", "close") if lines else ("Content-Length", str(len(text)))))
        self.end_headers()
        self.wfile.write(text)
        if query.get("follow") == ["1"] and not isinstance(got, tuple):
            self.server.over.wait(60)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()


class StandIn:
    """In a daemon's place, for what does not mind that nothing happens: answer(path, query) gives a list (events), a tuple (lines
    that end) or an object. As a context."""

    def __init__(self, answer):
        self.dir = base.tempdir("stand-in")
        self.socket = self.dir / "control.sock"
        self.server = Server(str(self.socket), StandInHandler)
        self.server.answer, self.server.over = answer, threading.Event()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()
        base.drop_tempdir(self.dir)

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: self.close()


class Deceived:
    """As a context. It has what consoles and Terminal ask of a daemon: its socket, and the world that it is in."""

    def __init__(self, daemon, word="markup"):
        self.dir = base.tempdir("deceived")
        self.world, self.socket = daemon.world, self.dir / "control.sock"
        self.server = Server(str(self.socket), Handler)
        self.server.daemon_socket = daemon.socket
        self.say(word)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def say(self, word):
        self.server.word = WORDS[word]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        base.drop_tempdir(self.dir)

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: self.close()
