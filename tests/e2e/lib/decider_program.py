# SPDX-License-Identifier: MIT
"""
A decider that does what the path of a request says, good or bad.

    decider_program.py FRAMES           speaks on stdin and stdout
    decider_program.py FRAMES SOCKET    listens there, for one connection after the other

Each line that it gets is appended to the file FRAMES.
"""
import base64
import json
import os
import socket
import sys
import threading
from urllib.parse import parse_qs, urlsplit


class Gone(Exception):
    pass


class Talk:
    def __init__(self, read, write, frames):
        self.read, self.write_, self.frames = read, write, frames
        self.lock = threading.Lock()
        self.hung = []  # ids that wait for /release
        self.shown = {}  # id: what is done when its body is shown

    def raw(self, data):
        with self.lock:
            self.write_(data)

    def send(self, **frame):
        self.raw(json.dumps(frame).encode() + b"\n")

    def answer(self, id_, answer, **more):
        self.send(type="answer", id=id_, answer=answer, **more)

    def serve(self):
        self.send(type="hello", version=1)
        for line in self.read:
            with open(self.frames, "ab") as f:
                f.write(line)
            frame = json.loads(line)
            if frame["type"] == "body":
                self.shown.pop(frame["id"])(base64.b64decode(frame["base64"], validate=True))
            if frame["type"] == "decide":
                url = urlsplit(frame["url"])
                self.decide(frame, url.path.split("/")[1] if "://" in frame["url"] else "body" if frame["host"].startswith("body.") else "allow",
                            {k: v[0] for k, v in parse_qs(url.query).items()})

    def need_body(self, id_, max_, then):
        self.shown[id_] = then
        self.answer(id_, "need_body", max=max_)

    def judge_body(self, id_, data):
        self.answer(id_, "deny" if b"secret" in data else "allow", **({"reason": "a secret"} if b"secret" in data else {}))

    def decide(self, frame, what, query):
        id_ = frame["id"]
        if what == "body":
            self.need_body(id_, int(query.get("max", 4096)), lambda data: self.judge_body(id_, data))
        elif what == "body-hang":
            self.need_body(id_, 64, lambda data: self.hung.append(id_))
        elif what == "body-twice":
            self.need_body(id_, 64, lambda data: self.answer(id_, "need_body", max=64))
        elif what == "body-twice-at-once":
            for _ in range(2):
                self.answer(id_, "need_body", max=64)
            self.answer(id_, "allow")
        elif what == "body-then-twice":  # the one answer that counts, and another
            self.need_body(id_, 64, lambda data: (self.answer(id_, "deny"), self.answer(id_, "allow")))
        elif what == "body-other":
            self.answer(id_ + 1000, "need_body", max=64)
        elif what == "body-large":
            self.answer(id_, "need_body", max=4097)
        elif what == "body-none":
            self.answer(id_, "need_body")
        elif what == "body-reason":
            self.answer(id_, "need_body", max=64, reason="because")
        elif what == "body-after":
            self.answer(id_, "deny")
            self.answer(id_, "need_body", max=64)
        elif what == "body-unseen":  # it does not wait for what it asked for
            self.need_body(id_, 64, lambda data: None)
            self.answer(id_, "deny", reason="unseen")
        elif what in ("allow", "deny", "ask", "raise"):
            more = {k: int(v) if k == "ttl" else v for k, v in query.items()}
            self.answer(id_, what, **more)
        elif what == "fetches":  # something that a sandbox would have to ask it about
            try:
                with socket.create_connection((query["at"], 80), 20) as s:
                    s.sendall(b"GET / HTTP/1.1\r\nHost: itself.origin.test\r\nConnection: close\r\n\r\n")
                    got = s.makefile("rb").read().split(b"\r\n")[0].decode()
            except OSError as e:
                got = type(e).__name__ + " " + str(e)
            self.answer(id_, "deny", reason=got)
        elif what == "hang":
            self.hung.append(id_)
        elif what == "release":  # answers what hung, then itself
            for hung in self.hung:
                self.answer(hung, "allow")
            self.hung = []
            self.answer(id_, "allow")
        elif what == "twice":
            self.answer(id_, "allow")
            self.answer(id_, "allow")
        elif what == "wrong":
            self.answer(id_ + 1000, "allow")
        elif what == "other":  # another one's, too
            for hung in self.hung:
                self.answer(hung, "deny")
            self.answer(id_, "allow")
        elif what == "unknown":
            self.answer(id_, "allow", surprise=1)
        elif what == "null":
            self.answer(id_, None)
        elif what == "garbage":
            self.raw(b"allow\n")
        elif what == "bytes":
            self.raw(bytes(range(256)) + b"\n")
        elif what == "duplicate":
            self.raw(b'{"type":"answer","id":%d,"answer":"deny","answer":"allow"}\n' % id_)
        elif what == "huge":
            for _ in range(100):
                self.raw(b"x" * (1 << 20))
        elif what == "long":  # an answer that is one byte longer than a frame may be
            head = b'{"type":"answer","id":%d,"answer":"allow","reason":"' % id_
            self.raw(head + b"x" * (65537 - len(head) - 2) + b'"}\n')
        elif what == "flood":
            for _ in range(200000):
                self.answer(id_, "allow")
        elif what == "half":
            self.raw(b'{"type":"answer","id":%d,"answer":"al' % id_)
            raise Gone
        elif what == "die":
            raise Gone
        elif what == "words":
            self.answer(id_, "deny", reason="no\x1b[2J\u202eevil\u0000\r\nX: y".replace("\u0000", "\u200b") + "w" * 500)
        elif what == "hello":
            self.send(type="hello", version=1)
        elif what == "deaf":
            threading.Event().wait()


def main():
    frames = sys.argv[1]
    if len(sys.argv) < 3:
        print("decider\x1b[31m starts", file=sys.stderr, flush=True)
        out = sys.stdout.buffer

        def write(data):
            out.write(data)
            out.flush()

        try:
            Talk(sys.stdin.buffer, write, frames).serve()
        except (Gone, BrokenPipeError):
            os._exit(1)
        return
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    os.chmod(sys.argv[2], 0o777)
    listener.listen()
    print("listening", flush=True)
    while True:
        peer, _ = listener.accept()
        with peer:
            try:
                Talk(peer.makefile("rb"), peer.sendall, frames).serve()
            except (Gone, OSError):
                pass


if __name__ == "__main__":
    main()
