# SPDX-License-Identifier: MIT
"""The control API, as a client sees it: HTTP over a unix socket, nothing else."""
import http.client
import json
import queue
import socket
import threading
import time
import urllib.parse

from lib.base import PATIENCE


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Failure(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body
        self.error = body.get("error") if isinstance(body, dict) else None


class Api:
    def __init__(self, path, timeout=20 * PATIENCE):
        self.path, self.timeout = path, timeout

    def raw(self, method, path, body=None, headers=None):
        """(status, headers, bytes) of one request on a connection of its own."""
        c = Connection(self.path, self.timeout)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def ask(self, method, path, body=None):
        """(status, parsed answer); body is made JSON unless it is bytes."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        status, headers, text = self.raw(method, path, body)
        if headers.get("Content-Type", "").startswith("application/json"):
            return status, json.loads(text)
        return status, text

    def ok(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        if status not in (200, 201):
            raise Failure(status, answer)
        return answer

    def health(self):
        return self.ok("GET", "/v1/health")

    def create(self, session, level=None):
        return self.ok("POST", "/v1/sessions", {"session": session, **({"level": level} if level else {})})

    def show(self, session):
        return self.ok("GET", f"/v1/sessions/{session}")

    def end(self, session):
        return self.ok("DELETE", f"/v1/sessions/{session}")

    def sessions(self, ended=False):
        return self.ok("GET", "/v1/sessions" + ("?ended=1" if ended else ""))["sessions"]

    def escalate(self, session, level, dataset=None, reason=None):
        body = {"level": level}
        if dataset is not None:
            body["dataset"] = dataset
        if reason is not None:
            body["reason"] = reason
        return self.ok("POST", f"/v1/sessions/{session}/datasets", body)

    def make(self, session):
        return self.ok("POST", "/v1/sandboxes", {"session": session})

    def adopt(self, session, cgroup):
        return self.ok("POST", "/v1/sandboxes", {"session": session, "cgroup": str(cgroup)})

    def sandboxes(self, session=None):
        every = self.ok("GET", "/v1/sandboxes")["sandboxes"]
        return [s for s in every if session is None or s["session"] == session]

    def sandbox(self, ident):
        return self.ok("GET", f"/v1/sandboxes/{ident}")

    def remove(self, ident):
        return self.ok("DELETE", f"/v1/sandboxes/{ident}")

    def events(self, **params):
        params.setdefault("limit", 1000)
        status, headers, text = self.raw("GET", "/v1/events?" + urllib.parse.urlencode(params, safe="/"))
        if status != 200:
            raise Failure(status, json.loads(text))
        assert headers["Content-Type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def wait_events(self, want, timeout=10, **params):
        """Events until want(list) is true; the last list. Events are asynchronous: the caller asserts."""
        end = time.monotonic() + timeout * PATIENCE
        while True:
            got = self.events(**params)
            if want(got) or time.monotonic() > end:
                return got
            time.sleep(0.05)

    def follow(self, **params):
        return Feed(self.path, params)

    def inbox(self, path=None, **params):
        """A feed of questions."""
        return Feed(path or self.path, params, "/v1/questions")


class Feed:
    """An open event feed; next() gives one event, or None when none came in time."""

    def __init__(self, path, params, of="/v1/events"):
        self.c = Connection(path, 600)
        self.c.request("GET", of + "?" + urllib.parse.urlencode(dict(params, follow=1), safe="/"))
        self.r = self.c.getresponse()
        self.status = self.r.status
        self.q = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while line := self.r.readline():
                if line.strip():
                    self.q.put(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def next(self, timeout=10):
        try:
            return self.q.get(timeout=timeout)
        except queue.Empty:
            return None

    def until(self, want, timeout=10):
        """The first event for which want() is true; None when it does not come."""
        end = time.monotonic() + timeout * PATIENCE
        while (left := end - time.monotonic()) > 0:
            event = self.next(left)
            if event is not None and want(event):
                return event
        return None

    def close(self):
        try:
            self.c.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
