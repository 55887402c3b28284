# SPDX-License-Identifier: MIT
"""netpawl har: requests as an HTTP archive, and the filter that it shares with netpawl events."""
import contextlib
import json
import re
import subprocess

import pytest

from lib import base
from lib.asked import Asked

RULES = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 2m, timeout: 15m}
rules:
  - allow: captured.origin.test
    capture: 4096
  - allow: open.origin.test
  - ask: asked.origin.test
  - allow: get-only.origin.test
    methods: GET
"""


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Asked(stack, policy=RULES)


def cli(net, *words, code=0):
    p = subprocess.run([str(base.NETPAWL), *words, "--socket", str(net.daemon.socket)], capture_output=True, text=True, timeout=120)
    assert p.returncode == code, (p.returncode, p.stderr)
    return p


def curl(net, session, *words):
    p = net.spawn("curl", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return p.communicate(timeout=120)[0]


def settled(net, session, n):
    """So many requests of the session have their events."""
    assert base.eventually(lambda: len([e for e in net.api.events(session=session) if e.get("url") and e["kind"] in ("allow", "refuse")]) >= n, 20)


TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")


def check(har):
    """What HAR 1.2 wants of a log; the schema itself is asked in tests/monitoring."""
    log = har["log"]
    assert log["version"] == "1.2" and log["creator"]["name"] == "netpawl" and log["creator"]["version"]
    for e in log["entries"]:
        assert TIME.match(e["startedDateTime"]) and e["time"] >= 0 and e["cache"] == {}
        t = e["timings"]
        assert {"send", "wait", "receive", "dns", "connect", "ssl", "blocked"} == set(t)
        assert abs(sum(v for k, v in t.items() if v > 0 and k != "ssl") - e["time"]) < 0.01 and t["ssl"] <= t["connect"]
        for side in ("request", "response"):
            m = e[side]
            assert m["httpVersion"] and m["cookies"] == [] and m["headersSize"] == -1 and m["bodySize"] >= 0
            assert all(set(h) == {"name", "value"} for h in m["headers"])
        assert re.match(r"^[a-z]+://[!-~]+$", e["request"]["url"]) and e["request"]["method"]
        assert isinstance(e["request"]["queryString"], list)
        assert isinstance(e["response"]["status"], int) and e["response"]["content"]["mimeType"] and e["response"]["redirectURL"] == ""
        assert e["_netpawl"]["verdict"] in ("allowed", "refused") and e["_netpawl"]["reason"]
    return log["entries"]


def har(net, *words):
    return check(json.loads(cli(net, "har", *words).stdout))


@pytest.fixture(scope="module")
def seen(net):
    """A session with one request of each kind."""
    session = net.fresh()
    assert curl(net, session, "https://captured.origin.test/a?x=1&y=%C3%A9+z", "-d", "who=me", "-H", "Authorization: Bearer hunter2",
                "-H", "X-Plain: seen", "-H", "Cookie: id=hunter2") == "200"
    assert curl(net, session, "http://open.origin.test/b") == "200"
    assert curl(net, session, "https://get-only.origin.test/c", "-d", "x") == "403"
    p = net.spawn("curl", "-sS", "-m", "100", "-o", "/dev/null", "https://asked.origin.test/d", session=session,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    q = base.eventually(lambda: net.questions(session), 20)[0]
    net.api.ok("POST", f"/v1/questions/{q['question']}/answer", {"answer": "deny", "reason": "no"})
    p.communicate(timeout=100)
    settled(net, session, 4)
    return session, int(q["question"])


def test_every_request_is_an_entry(net, seen):
    session, question = seen
    entries = har(net, "--session", session)
    by_path = {re.sub(r"\?.*", "", e["request"]["url"]): e for e in entries}
    a = by_path["https://captured.origin.test/a"]
    assert a["response"]["status"] == 200 and a["request"]["method"] == "POST" and a["_netpawl"]["verdict"] == "allowed"
    assert {"name": "x", "value": "1"} in a["request"]["queryString"] and {"name": "y", "value": "é z"} in a["request"]["queryString"]
    assert a["request"]["postData"]["text"] == "who=me" and a["request"]["postData"]["mimeType"] == "application/x-www-form-urlencoded"
    assert {"name": "x-plain", "value": "seen"} in [{**h, "name": h["name"].lower()} for h in a["request"]["headers"]]
    assert a["response"]["content"]["text"] and a["timings"]["connect"] > 0 and a["timings"]["ssl"] > 0
    assert a["_netpawl"]["rung"] == {"mode": "PROXIED", "level": a["_netpawl"]["rung"]["level"], "generation": a["_netpawl"]["rung"]["generation"]}
    b = by_path["http://open.origin.test/b"]
    assert "text" not in b["response"]["content"] and "postData" not in b["request"] and b["request"]["headers"] == []
    c = by_path["https://get-only.origin.test/c"]
    assert c["response"]["status"] == 403 and c["_netpawl"]["verdict"] == "refused" and c["_netpawl"]["reason"] == "not_in_policy"
    d = by_path["https://asked.origin.test/d"]
    assert d["response"]["status"] == 403 and d["_netpawl"]["question"] == question and d["_netpawl"]["rule"]


def test_versions_are_what_the_client_spoke(net):
    """Of what was refused, too: whoever is told so spoke HTTP."""
    session = net.fresh()
    for word, host in (("http1.0", "open"), ("http1.1", "open"), ("http2", "open"), ("http2", "get-only")):
        curl(net, session, f"--{word}", f"https://{host}.origin.test/{word}", *(["-d", "x"] if host == "get-only" else []))
    settled(net, session, 4)
    got = {(e["request"]["url"].partition("://")[2], e["response"]["status"]): {e[side]["httpVersion"] for side in ("request", "response")} for e in har(net, "--session", session)}
    assert got == {("open.origin.test/http1.0", 200): {"HTTP/1.0"}, ("open.origin.test/http1.1", 200): {"HTTP/1.1"}, ("open.origin.test/http2", 200): {"HTTP/2"},
                   ("get-only.origin.test/http2", 403): {"HTTP/2"}}


def test_no_secret_is_in_it(net, seen):
    text = cli(net, "har", "--session", seen[0]).stdout
    assert "hunter2" not in text and "X-Plain" in text or "x-plain" in text


def test_filters_and_times(net, seen):
    session = seen[0]
    refused = har(net, "--session", session, "--filter", "verdict:refused")
    assert refused and all(e["_netpawl"]["verdict"] == "refused" for e in refused)
    assert {e["request"]["url"] for e in har(net, "--filter", f"session:{session} host:open.origin.test")} == {"http://open.origin.test/b"}
    assert har(net, "--session", session, "--filter", "host:origin.test method:post status:2xx")
    assert har(net, "--session", session, "--since", "2030-01-01") == []
    assert len(har(net, "--session", session, "--since", "1h")) == len(har(net, "--session", session))
    p = cli(net, "har", "--filter", "hots:x", code=2)
    assert "character 1: there is no key" in p.stderr and p.stdout == ""


def test_events_take_the_same_filter(net, seen):
    session = seen[0]
    lines = cli(net, "events", "--session", session, "--filter", "verdict:refused host:get-only.origin.test", "--json").stdout.splitlines()
    assert lines and all("get-only.origin.test" in line and json.loads(line)["kind"] == "refuse" for line in lines)
    text = cli(net, "events", "--session", session, "--filter", "-verdict:refused -verdict:allowed").stdout
    assert "session_created" in text and "get-only" not in text
    cli(net, "events", "--filter", "verdict:maybe", code=2)


def test_hostile_urls_and_methods_stay_what_they_are(net):
    session = net.fresh()
    url = "http://get-only.origin.test/%1b[31m<script>{a}|^`\"%zz"
    assert curl(net, session, "-g", "-d", "x", "--path-as-is", "--request-target", "/\\u202e<b>%zz%1b\"", url) in ("403", "400")
    settled(net, session, 1)
    [e] = har(net, "--session", session)
    assert "<" not in e["request"]["url"] and '"' not in e["request"]["url"] and "%25zz" in e["request"]["url"] or e["response"]["status"] == 400


def test_more_than_a_page(net):
    """Page by page, and each request once."""
    from lib.loads import Load
    with Load(net, url="http://open.origin.test/many", threads=4, count=400, body=10, stay=True) as load:
        seen = load.seen()
        assert seen["answered"] == {"200": 1600}
        settled(net, load.session, 100)
        assert base.eventually(lambda: len(har(net, "--session", load.session)) == 1600, 20)
        entries = har(net, "--session", load.session)
        assert len({e["_netpawl"]["seq"] for e in entries}) == 1600


def test_events_for_a_siem(net, seen):
    """OCSF: every event is an object of a class, and says what the event said."""
    session, question = seen
    net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "CONFIDENTIAL", "dataset": "d"})
    plain = [json.loads(line) for line in cli(net, "events", "--session", session, "--since", "1h", "--json").stdout.splitlines()]
    text = cli(net, "events", "--session", session, "--since", "1h", "--format", "ocsf").stdout
    got = [json.loads(line) for line in text.splitlines()]
    assert len(got) == len(plain) and "hunter2" not in text and "who=me" not in text
    for event, o in zip(plain, got):
        assert o["metadata"]["version"] == "1.6.0" and o["metadata"]["uid"] == str(event["seq"]) and o["metadata"]["product"]["name"] == "netpawl"
        assert o["category_uid"] == o["class_uid"] // 1000 and o["type_uid"] == o["class_uid"] * 100 + o["activity_id"]
        assert o["severity_id"] in (1, 2, 3, 4) and o["status_code"] == event["reason"] and o["time"] > 1.7e12
        assert o["metadata"]["correlation_uid"] == session
        if o["category_uid"] == 4:
            assert o["action_id"] == (2 if event["kind"] == "refuse" else 1)
    classes = {o["status_code"]: o["class_uid"] for o in got}
    assert classes["raised"] == 5019 and classes["session_created"] == 6003 and classes["question_answered"] == 6003
    [refused] = [o for o in got if o["status_code"] == "answer_denies"]
    assert refused["class_uid"] == 4002 and refused["http_request"]["url"]["url_string"] == "https://asked.origin.test/d"
    assert refused["http_response"]["code"] == 403 and refused["activity_id"] == 3 and refused["dst_endpoint"]["hostname"] == "asked.origin.test"
    assert refused["unmapped"]["question"] == question and refused["unmapped"]["level"] == "INTERNAL"
    assert json.loads(cli(net, "events", "--session", session, "--limit", "1", "--format", "json").stdout)["seq"] == plain[-1]["seq"]
    assert "text, json or ocsf" in cli(net, "events", "--format", "xml", code=2).stderr
