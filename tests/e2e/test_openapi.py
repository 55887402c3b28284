# SPDX-License-Identifier: MIT
"""docs/openapi.yaml and docs/api.md are the API's: every route of the daemon's table, no other, and what it answers."""
import json
import pathlib
import re
import urllib.parse

import jsonschema
import pytest
import yaml

from lib.box import new_session

TOP = pathlib.Path(__file__).resolve().parents[2]
OPENAPI = yaml.safe_load((TOP / "docs/openapi.yaml").read_text())


def routes():
    """{(method, path with stars): query parameters} of the daemon's table."""
    (source,) = TOP.glob("user/*/routes.c")
    return {(method, path): set(re.findall(r'"(\w+)"', query)) for method, path, _, _, query in TABLE.findall(source.read_text())}


TABLE = re.compile(r'\{\s*"([A-Z]+)",\s*"(/v1[^"]*)",\s*\w+,\s*([^,]*),\s*SCOPE_(\w+),\s*\{([^}]*)\}\s*\}')


def test_the_roles_of_every_route_are_described():
    """Those of the table; that the daemon keeps to it is tests/attack/test_access.py's."""
    (source,) = TOP.glob("user/*/routes.c")
    for method, path, roles, scope, _ in TABLE.findall(source.read_text()):
        want = {"operator"} | ({"platform"} if scope != "NONE" else set()) | {r.lower() for r in re.findall(r"ROLE_(\w+)", roles)}
        assert set(operations()[method, path]["x-roles"]) == want, (method, path)


def operations():
    return {(method.upper(), re.sub(r"{\w+}", "*", path)): operation
            for path, item in OPENAPI["paths"].items() for method, operation in item.items()}


def test_the_table_is_found():
    assert len(routes()) > 20 and ("GET", "/v1/health") in routes()


def test_every_route_is_described_and_no_other():
    assert operations().keys() == routes().keys()


def test_every_query_parameter_is_described_and_no_other():
    for route, query in routes().items():
        described = {p["name"] for p in operations()[route].get("parameters", []) if p["in"] == "query"}
        assert described == query, route


def test_every_route_has_its_words():
    headings = re.findall(r"^### ([A-Z]+) (/v1\S*)$", (TOP / "docs/api.md").read_text(), re.M)
    assert {(m, re.sub(r"USER|SESSION|ID", "*", p)) for m, p in headings} == routes().keys()


def resolved(schema):
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": OPENAPI["components"], **schema}


def check(schema, value):
    jsonschema.Draft202012Validator(resolved(schema)).validate(value)


def test_the_schemas_are_schemas():
    for name, schema in OPENAPI["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(resolved(schema)), name


class Caller:
    """Calls operations, and holds each request and answer against what is written about it."""

    def __init__(self, api):
        self.api, self.called = api, set()

    def __call__(self, method, pattern, *args, query="", body=None, status=200):
        operation = operations()[method, pattern]
        path = pattern
        for arg in args:
            path = path.replace("*", urllib.parse.quote(str(arg)), 1)
        if body is not None:
            check(operation["requestBody"]["content"]["application/json"]["schema"], body)
        text = json.dumps(body).encode() if body is not None else None
        got, headers, data = self.api.raw(method, path + query, text)
        assert got == status, data
        described = operation["responses"].get(str(status))
        if described is None or "$ref" in described:
            assert status >= 400
            described = OPENAPI["components"]["responses"]["Error"]
        kind = headers["Content-Type"]
        schema = described["content"][kind]["schema"]
        if kind == "application/json":
            answer = json.loads(data)
            check(schema, answer)
        elif kind == "application/x-ndjson":
            answer = [json.loads(line) for line in data.splitlines() if line]
            for line in answer:
                check(schema, line)
        else:
            answer = data.decode()
        if status < 400:
            self.called.add((method, pattern))
        return answer


@pytest.fixture(scope="module")
def called(world):
    """One life of a session, with every call of the API in it."""
    from lib.daemon import Daemon

    daemon = Daemon(world, inspectors=1)
    with open(daemon.policy, "a") as policy:
        policy.write("credentials:\n  a: {source: {command: [/bin/echo, a-value-of-it]}, for: a.example}\n"
                     "  b: {source: {file: /nonexistent}, for: [b.example, .c.example], scope: [\"*/*\"], as: {basic: me}, placeholder: {env: B, file: git}}\n")
    try:
        daemon.start()
        yield life(daemon)
    finally:
        daemon.close()


def life(daemon):
    call, name = Caller(daemon.api), new_session("openapi")
    at = name.split("/")
    s = "/v1/sessions/*/*"
    call("GET", "/v1/health")
    call("GET", "/v1/node")
    assert "# TYPE netpawl_sessions gauge" in call("GET", "/v1/metrics")
    call("POST", "/v1/sessions", body={"session": name}, status=201)
    call("POST", "/v1/sessions", body={"session": name, "level": "INTERNAL"})
    call("GET", "/v1/sessions", query="?ended=1")
    call("GET", s, "no", "such", status=404)
    call("GET", "/v1/launch")
    call("GET", "/v1/policy")
    source = call("GET", "/v1/policy/source")
    first = next(f for f in source["files"] if f["name"] == source["first"])
    call("PUT", "/v1/policy/file", body={"file": first["name"], "old": first["sha256"], "text": first["text"] + "# saved\n"})
    call("PUT", "/v1/policy/file", body={"file": first["name"], "old": first["sha256"], "text": first["text"]}, status=409)
    call("PUT", "/v1/policy/file", body={"file": "other.yaml", "old": first["sha256"], "text": first["text"]}, status=404)
    call("POST", "/v1/policy/reload", body={})
    assert [c["name"] for c in call("GET", "/v1/credentials")["credentials"]] == ["a", "b"]
    call("POST", "/v1/credentials/*/refresh", "a", status=202)
    call("POST", "/v1/credentials/*/refresh", "b")
    call("POST", "/v1/credentials/*/refresh", "c", status=404)
    assert len(call("GET", s + "/placeholders", *at)["placeholders"]) == 2
    kept = call("POST", "/v1/sandboxes", body={"session": name, "keep": True}, status=201)
    made = call("POST", "/v1/sandboxes", body={"session": name, "workspace": "none", "clean": True}, status=201)
    call("GET", "/v1/sandboxes")
    call("GET", "/v1/sandboxes/*", made["sandbox"], query="?settled=1")
    assert "BEGIN CERTIFICATE" in call("GET", s + "/ca", *at)
    assert call("GET", "/v1/debug")["sandboxes"] and call("GET", "/v1/debug", query=f"?session={name}&after=1")["session"]["ca_sha256"]
    call("GET", "/v1/debug", query="?session=no/such", status=404)
    call("DELETE", "/v1/sandboxes/*", kept["sandbox"])
    forward(call, daemon, name)
    runs(call, name)
    raised = call("POST", s + "/datasets", *at, body={"level": "CONFIDENTIAL", "dataset": "a.csv", "reason": "a test"})
    assert raised["raised"]
    daemon.cli("run", "--session", name, "--", "python3", "-c",
               "import socket\ntry: socket.create_connection(('198.51.100.10', 9000), 2)\nexcept OSError: pass", check=0)
    assert call("GET", s + "/why", *at, query="?last=3")["refused"]
    assert call("POST", s + "/explain", *at, body={"url": "https://a.example/"})["whom"] is None
    call("POST", s + "/explain", *at, body={"url": "https://a.example/", "connect": "a.example:1"}, status=400)
    questions(call, daemon, name)
    assert call("POST", s + "/explain", *at, body={"method": "PUT", "body": 3, "url": "http://198.51.100.10/"})["whom"]
    assert call("GET", s + "/notices", *at, query="?reader=agent")["notices"]
    call("POST", s + "/notices/ack", *at, body={"reader": "agent", "upto": 1})
    call("PUT", s + "/context", *at, body={"purpose": "a test", "context": {"a": [1]}})
    assert call("GET", s + "/context", *at)["purpose"] == "a test"
    assert call("GET", s, *at)["datasets"]
    assert call("GET", "/v1/events", query=f"?session={name}&limit=1000")
    call("DELETE", s, *at)
    call("POST", s + "/forget", *at, body={"level_too": False})
    call("GET", "/v1/events", query="?reason=nonsense", status=400)
    return call


def questions(call, daemon, name):
    daemon.policy.write_text(daemon.policy.read_text().replace("version: 1\n", "version: 1\ndefault: ask\napproval: {hold: 100ms}\n"))
    call("POST", "/v1/policy/reload", body={})
    daemon.cli("run", "--session", name, "--", "curl", "-s", "-m", "5", "http://198.51.100.10/", check=0)
    waits = call("GET", "/v1/questions", query=f"?session={name}&state=pending&wait=1&after=0")["questions"][0]
    call("GET", "/v1/questions/*", waits["question"])
    call("POST", "/v1/questions/*/answer", waits["question"], body={"answer": "once", "for": "1m", "reason": "a test",
                                                                   "policy": "another"}, status=409)
    call("POST", "/v1/questions/*/answer", waits["question"], body={"answer": "once", "for": "1m", "policy": waits["policy"],
                                                                   "generation": waits["generation"]})
    call("POST", "/v1/questions/*/answer", waits["question"], body={"answer": "deny"}, status=409)
    call("POST", "/v1/questions/*/revoke", waits["question"], body={"reason": "a test"})
    call("POST", "/v1/questions/*/revoke", waits["question"], status=409)
    call("GET", "/v1/questions/*", 4711, status=404)


def forward(call, daemon, name):
    """A listener in a kept sandbox, and a way to it."""
    daemon.cli("run", "--keep", "--session", name, "--", "python3", "-c",
               "import os, socket\ns = socket.create_server(('127.0.0.1', 8000))\n"
               "if os.fork() == 0:\n os.setsid()\n [os.close(fd) for fd in (0, 1, 2)]\n import time\n time.sleep(600)", check=0)
    made = call("POST", "/v1/forwards", body={"session": name, "port": 8000}, status=201)
    call("POST", "/v1/forwards/*", made["forward"], body={"cookie": 4711})
    call("POST", "/v1/forwards/*", made["forward"], body={"gone": 4711})
    call("DELETE", "/v1/forwards/*", made["forward"])
    call("POST", "/v1/forwards", body={"session": name, "port": 9}, status=409)


def runs(call, name):
    launched = call("POST", "/v1/runs", body={"session": name, "command": ["echo", "hello"], "launch": {"timeout": "1m"}}, status=201)
    while call("GET", "/v1/runs/*", launched["run"], query="?wait=1")["state"] in ("pending", "running"):
        pass
    assert call("GET", "/v1/runs/*/output", launched["run"]) == [{"stream": "stdout", "data": "hello\n"}]
    waits = call("POST", "/v1/runs", body={"session": name, "class": "write", "command": ["true"], "options": {"memory": "1GiB"}}, status=201)
    assert call("GET", "/v1/runs", query="?state=pending")["runs"]
    asked = call("GET", "/v1/questions", query="?state=pending")["questions"][0]
    assert asked["kind"] == "run" and call("GET", "/v1/questions/*", asked["id"])["run"] == waits["run"]
    call("POST", "/v1/questions/*/answer", asked["id"], body={"answer": "host"}, status=400)
    denied = call("POST", "/v1/runs", body={"session": name, "class": "write", "command": ["true"], "options": {}}, status=201)
    call("POST", "/v1/questions/*/answer", f"run-{denied['run']}", body={"answer": "deny", "reason": "a test"})
    call("POST", "/v1/runs/*/approve", waits["run"], body={"reason": "a test"})
    call("POST", "/v1/runs/*/reject", waits["run"], body={"reason": "too late"}, status=409)
    call("POST", "/v1/sandboxes", body={"session": name, "run": str(waits["run"])}, status=201)
    call("POST", "/v1/runs/*/end", waits["run"], body={"state": "completed", "result": {"exit_code": 0}})
    reads = call("POST", "/v1/runs", body={"session": name, "command": ["cat"], "launch": {"input": True}}, status=201)
    call("POST", "/v1/runs/*/input", reads["run"], body={"data": "hello\n"})
    call("POST", "/v1/runs/*/cancel", reads["run"], body={"reason": "a test"})
    other = call("POST", "/v1/runs", body={"session": name, "class": "write", "command": ["true"]}, status=201)
    call("POST", "/v1/runs/*/reject", other["run"], body={"reason": "a test"})


def test_what_the_daemon_answers_is_what_is_described(called):
    assert called.called == routes().keys(), "calls that this life does not make"
