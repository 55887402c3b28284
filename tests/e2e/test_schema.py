# SPDX-License-Identifier: MIT
"""netpawl policy schema against the reader: what the reader takes the schema takes, and wrong keys and shapes neither."""
import copy
import json
import pathlib
import re

import jsonschema
import pytest
import yaml

from lib import base, inspected

ROOT = pathlib.Path(base.ROOT)
SCHEMA = json.loads(base.sh(base.NETPAWL, "policy", "schema").stdout)
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)

# Every key of the language, each with a value of its right shape.
WHOLE = {
    "version": 1,
    "lists": {"models": ["api.example", "b.example"], "noise": {"hosts": ["noise.example"], "quiet": True}},
    "rules": [
        {"allow": ["@models"], "methods": ["GET"], "paths": ["/v1/**"], "headers": ["x-key"], "max_body": "10MiB", "capture": 64,
         "timeouts": {"idle": "2m", "first_byte": "5m", "connect": "5s"}, "websocket": True, "for": ["INTERNAL", "CONFIDENTIAL"],
         "sessions": ["alice/*"]},
        {"deny": "10.0.0.0/8"},
        {"deny": ["@noise"], "quiet": True},
        {"allow": "pinned.example", "inspect": False},
        {"allow": "mail.example", "dns": ["MX"]},
        {"allow": "10.20.0.0/16:5432/tcp"},
        {"ask": "ask.example"},
        {"decide": "decide.example", "by": "guard"},
        {"allow": "api.example", "credential": "github"},
    ],
    "credentials": {
        "github": {"source": {"file": "/etc/netpawl/github"}, "for": ["api.example"], "paths": ["/v1/**"], "methods": ["GET"],
                   "as": ["bearer", {"basic": "x-access-token"}], "placeholder": {"env": "GITHUB_TOKEN", "like": "ghp_{36}", "file": "git"},
                   "inject": "always", "levels": ["PUBLIC"], "scope": ["alice/*", "read_only"], "echo": "refuse", "on_leak": "raise SECRET"},
        "aws": {"source": {"command": ["/bin/echo", "x"], "ttl": "30m"}, "for": ".aws.example", "as": {"sigv4": {"service": "s3", "region": "eu"}}},
        "other": {"source": {"systemd": "other"}, "as": {"header": "X-Key"}},
        "third": {"source": {"env": "THIRD"}, "as": {"query": "key"}, "capture": {"cookies": "session"}},
        "oauth": {"source": {"env": "REFRESH"}, "for": "auth.example", "as": "form",
                  "capture": {"json": ["access_token", "refresh_token"], "cookies": ["__Host-id"], "paths": ["/token"], "for": ["api.example"],
                              "as": ["bearer", {"header": "X-Token"}]}},
    },
    "full": [{"deny": ["192.0.2.0/24"]}, {"allow": "192.0.2.7"}],
    "deciders": {"guard": {"command": ["/bin/true", "x"], "timeout": "2s"}, "other": {"socket": "/run/other.sock"}},
    "levels": {"PUBLIC": "full", "INTERNAL": "FULL", "CONFIDENTIAL": "proxied", "SECRET": "none"},
    "default": "deny",
    "inspect_ports": [80, 443],
    "host_loopback": [11434],
    "inbound": [8080],
    "approval": {"timeout": "5m", "remember": "session", "grants": "grants.yaml", "group": "approvers", "four_eyes": True,
                 "notify": {"command": ["/usr/local/bin/notify", "chat"], "network": True}},
    "grants": [{"allow": "https://a.example:443", "kind": "read", "for": ["PUBLIC"], "sessions": ["alice/*"]}],
    "upstream_proxy": [{"url": "direct", "hosts": [".corp.example"]},
                       {"url": "http://proxy.example:3128", "except": "a.example:22", "credentials": {"file": "/etc/netpawl/proxy"}}],
    "dns": {"refused": "synthetic"},
    "containers": {"unknown": "pods/default"},
    "access": {"operator": ["group:a"], "platform": [{"callers": ["user:a"], "sessions": ["alice/*"]}], "approver": ["user:1"], "reader": ["user:b"]},
    "notices": {"proxied": "{cause}.", "none": "over"},
    "sessions": {"keep": "90d", "count": 1000, "remember": "forever"},
    "metrics": {"listen": "127.0.0.1:9464"}, "events": {"otlp": "http://127.0.0.1:4318", "journald": "/run/systemd/journal/socket"},
    "workspaces": {"at_end": "archive", "archive_max": "1GiB"},
    "sandbox": {"binds": ["/srv/models:ro"], "devices": ["/dev/nvidia*"], "memory": "2GiB", "cpus": 1.5, "pids": 512, "timeout": "30m", "output_limit": "10MiB",
                "disk": "1GiB", "idle": "30m", "read_only": ["10.20.7.0/24:5432/tcp"]},
}
FILES = {"include", "extra_roots"}  # name files: their shapes are tried by themselves


def schema_takes(document):
    return VALIDATOR.is_valid(document)


def reader_says(directory, documents):
    """For each document whether the reader takes it: one process each, as a user has it."""
    path = directory / "policy.yaml"
    said = []
    for document in documents:
        path.write_text(document if isinstance(document, str) else json.dumps(document))  # JSON is YAML
        p = base.sh(base.NETPAWL, "policy", "check", path, check=False)
        assert p.returncode in (0, 1), p
        said.append(p.returncode == 0)
    return said


def places(node, path=()):
    """Paths to every value of a document."""
    if path:
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(value, path + (key,))


def changed(path, value):
    document = copy.deepcopy(WHOLE)
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return document


def mappings():
    return [()] + [p for p in places(WHOLE) if isinstance(resolve(p), dict)]


def resolve(path):
    at = WHOLE
    for step in path:
        at = at[step]
    return at


def test_the_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_the_whole_language_is_taken_by_both(tmp_path):
    assert reader_says(tmp_path, [WHOLE]) == [True] and schema_takes(WHOLE)


def test_the_whole_language_is_tried():
    """Every key that the manual describes is in WHOLE; what is added to the language is added here."""
    manual = (ROOT / "man/netpawl-policy.5.scd").read_text()
    described = set(re.findall(r"^\*(\w+)\*", manual.split("# KEYS OF A FILE")[1].split("# DESTINATIONS")[0], re.M))
    tried = {str(p[-1]) for p in places(WHOLE)} | FILES
    assert described <= tried, described - tried


SHAPES = {"a text": "word", "a list": ["word"], "nothing": None, "an empty list": [], "a mapping": {"x": "word"}, "lists": [["word"]],
          "an empty entry": [None], "mappings": [{"x": "word"}]}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s)
def test_other_shapes(tmp_path, shape):
    """Each value in turn is replaced by one of another shape. The schema may take what the reader refuses for its
    meaning, never the other way round; and it refuses whatever is not the shape that the value had."""
    value = SHAPES[shape]
    paths = [p for p in places(WHOLE) if resolve(p) != value]
    documents = [changed(p, value) for p in paths]
    for path, document, taken in zip(paths, documents, reader_says(tmp_path, documents)):
        if taken:
            assert schema_takes(document), f"the reader takes {shape} at {path}, the schema does not"
        elif shape != "a text" and not (shape == "a list" and is_text_or_list(path)):
            assert not schema_takes(document), f"the reader refuses {shape} at {path}, the schema does not"


def is_text_or_list(path):
    """Where a list of texts has the right shape, whatever the texts mean."""
    value, key = resolve(path), path[-1]
    return isinstance(value, list) and value and not isinstance(value[0], dict) or key in ("allow", "deny", "ask", "decide")


def test_unknown_keys(tmp_path):
    documents = []
    for path in mappings():
        if path in (("lists",), ("deciders",)):  # names are the author's
            continue
        document = copy.deepcopy(WHOLE)
        at = document
        for step in path:
            at = at[step]
        at["surprise"] = "x"
        documents.append(document)
    assert len(documents) > 10
    assert not any(reader_says(tmp_path, documents)) and not any(map(schema_takes, documents))


def test_structures_that_are_wrong(tmp_path):
    documents = [
        {k: v for k, v in WHOLE.items() if k != "version"},
        {**WHOLE, "version": 2},
        [],
        {"version": 1, "rules": [{"methods": "GET"}]},
        {"version": 1, "rules": [{"allow": "a.example", "deny": "b.example"}]},
        {"version": 1, "rules": ["allow"]},
        {"version": 1, "full": [{"ask": "192.0.2.1"}]},
        {"version": 1, "full": [{"allow": "192.0.2.1", "methods": "GET"}]},
        {"version": 1, "full": [{}]},
        {"version": 1, "deciders": {"a": {}}},
        {"version": 1, "deciders": {"a": {"command": ["/x"], "socket": "/y"}}},
        {"version": 1, "deciders": {"a": {"command": "/x"}}},
        {"version": 1, "deciders": {"Upper": {"command": ["/x"]}}},
        {"version": 1, "lists": {"Upper": ["a.example"]}},
        {"version": 1, "lists": {"a": "a.example"}},
        {"version": 1, "levels": {"SECRET": "open"}},
        {"version": 1, "default": "decide"},
        {"version": 1, "default": {"CONFIDENTIAL": "maybe"}},
        {"version": 1, "default": {"HIGH": "ask"}},
        {"version": 1, "default": ["ask"]},
        {"version": 1, "lists": {"a": {"quiet": True}}},
        {"version": 1, "lists": {"a": {"hosts": ["a.example"], "loud": True}}},
        {"version": 1, "rules": [{"deny": "a.example", "quiet": "very"}]},
        {"version": 1, "inspect_ports": 80},
        {"version": 1, "inspect_ports": [0]},
        {"version": 1, "inspect_ports": [65536]},
        {"version": 1, "inspect_ports": [80, 80]},
        {"version": 1, "approval": {"remember": "always"}},
        {"version": 1, "approval": {"timeout": 5}},
        {"version": 1, "sandbox": {"memory": "much"}},
        {"version": 1, "sandbox": {"pids": 0}},
        {"version": 1, "sessions": {"keep": "90"}},
        {"version": 1, "sessions": {"keep": "5ms"}},
        {"version": 1, "sessions": {"remember": "never"}},
        {"version": 1, "sessions": {"count": 0}},
        {"version": 1, "workspaces": {"at_end": "burn"}},
        {"version": 1, "workspaces": {"archive_max": "much"}},
        {"version": 1, "sandbox": {"cpus": "two"}},
        {"version": 1, "rules": [{"allow": "a.example", "inspect": "no"}]},
        {"version": 1, "rules": [{"allow": "a.example", "for": "HIGH"}]},
        {"version": 1, "rules": [{"allow": "a.example", "dns": "A"}]},
        {"version": 1, "rules": [{"allow": "a.example", "max_body": "10 MB"}]},
        {"version": 1, "include": {"a": "b"}},
        {"version": 1, "extra_roots": []},
    ]
    for document, taken in zip(documents, reader_says(tmp_path, documents)):
        assert not taken, document
        assert not schema_takes(document), document


def policies():
    yield from ((str(p.relative_to(ROOT)), p.read_text()) for p in sorted(ROOT.glob("policies/*.yaml")))
    yield "inspected.py", inspected.POLICY + base.PERMITS
    for path in sorted(ROOT.glob("tests/e2e/test_*.py")):
        for i, text in enumerate(re.findall(r'"""(version: 1\n.*?)"""', path.read_text(), re.S)):
            if not re.search(r"[{]\w+[}]", text):  # to be filled in
                yield f"{path.name}.{i}", text
    for path in sorted(ROOT.glob("tests/policy/*.case")):
        inline = re.search(r"^policy:\n((?:[ \t]+.*\n|\n)+)", path.read_text(), re.M)
        if inline:
            yield path.name, re.sub(r"^    ", "", inline[1], flags=re.M)
    for i, text in enumerate(re.findall(r"^```\n(version: 1\n.*?)^```", (ROOT / "man/netpawl-policy.5.scd").read_text(), re.S | re.M)):
        yield f"manual.{i}", text


def test_policies_that_are_used(tmp_path):
    """Shipped ones, those of the tests, and the manual's: whatever of them the reader takes."""
    taken = []
    for name, text in policies():
        if reader_says(tmp_path, [text])[0]:
            taken.append(name)
            errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in VALIDATOR.iter_errors(yaml.safe_load(text))]
            assert not errors, (name, errors)
    assert len(taken) > 20, taken
    assert {"policies/default.yaml", "policies/coding-agent.yaml", "inspected.py"} <= set(taken)
