# SPDX-License-Identifier: MIT
"""Runs in a sandbox: many requests at once over kept connections, and an account of what came of them.

Arguments: a JSON object with url (http://HOST/PATH), threads, count (of each thread; 0: until a connection breaks),
body (bytes of each request's), pause (seconds between requests). Writes "begun" when every thread had an answer, and at
the end one JSON object: how many were answered by status, bytes of bodies that were sent with an answer and received, and
how many broke off.
"""
import http.client
import json
import sys
import threading
import time
from urllib.parse import urlsplit

task = json.loads(sys.argv[1])
url = urlsplit(task["url"])
result = {"answered": {}, "sent": 0, "received": 0, "broken": 0}
lock = threading.Lock()
begun = threading.Barrier(task["threads"] + 1)


def work():
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=20)
    body = b"x" * task.get("body", 0)
    n = 0
    while not task["count"] or n < task["count"]:
        try:
            connection.request("POST" if body else "GET", url.path or "/", body or None)
            answer = connection.getresponse()
            got = answer.read()
        except (OSError, http.client.HTTPException):
            with lock:
                result["broken"] += 1
            break
        n += 1
        with lock:
            status = str(answer.status)
            result["answered"][status] = result["answered"].get(status, 0) + 1
            result["sent"] += len(body)
            result["received"] += len(got)
        if n == 1:
            begun.wait(20)
        time.sleep(task.get("pause", 0))
    connection.close()


threads = [threading.Thread(target=work) for _ in range(task["threads"])]
for t in threads:
    t.start()
begun.wait(20)
print("begun", flush=True)
for t in threads:
    t.join()
print(json.dumps(result), flush=True)
