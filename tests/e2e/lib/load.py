# SPDX-License-Identifier: MIT
"""Runs in a sandbox: many requests at once over kept connections, and an account of what came of them.

Arguments: a JSON object with url (http://HOST/PATH), threads, count (of each thread; 0: until a connection breaks),
body (bytes of each request's), ahead (requests that are sent before the first answer is read; 1), stay (true: when all is
over the process waits to be killed). Writes "begun" when every thread had an answer, and at the end one JSON object: how many
were answered by status, bytes of bodies that were sent with an answer and received, and how many broke off.
"""
import http.client
import json
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

task = json.loads(sys.argv[1])
url = urlsplit(task["url"])
result = {"answered": {}, "sent": 0, "received": 0, "broken": 0}
lock = threading.Lock()
body = b"x" * task.get("body", 0)
begun = threading.Barrier(task["threads"] + 1)


def tally(status, got):
    with lock:
        result["answered"][str(status)] = result["answered"].get(str(status), 0) + 1
        result["sent"] += len(body)
        result["received"] += len(got)


def answer_read(connection):
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    tally(answer.status, answer.read())


def work():
    head = f"{'POST' if body else 'GET'} {url.path or '/'} HTTP/1.1\r\nhost: {url.hostname}\r\n"
    request = (head + (f"content-length: {len(body)}\r\n" if body else "") + "\r\n").encode() + body
    n, ahead = 0, task.get("ahead", 1)
    try:
        s = socket.create_connection((url.hostname, url.port or 80), timeout=120)
        while not task["count"] or n < task["count"]:
            s.sendall(request * ahead)
            reader = Shared(s)
            for _ in range(ahead):
                answer_read(reader)
            n += ahead
            if n == ahead:
                begun.wait(120)
    except (OSError, http.client.HTTPException):
        with lock:
            result["broken"] += 1
        if n < ahead:
            begun.wait(120)


class Shared:
    """One buffer for answers that come behind one another; HTTPResponse would take a new one each."""

    def __init__(self, s):
        self.file = s.makefile("rb")

    def makefile(self, mode):
        return self

    def __getattr__(self, name):
        return getattr(self.file, name)

    def close(self):
        pass

    def flush(self):
        pass


threads = [threading.Thread(target=work) for _ in range(task["threads"])]
for t in threads:
    t.start()
begun.wait(120)
print("begun", flush=True)
for t in threads:
    t.join()
print(json.dumps(result), flush=True)
if task.get("stay"):
    time.sleep(1200)
