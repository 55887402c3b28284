# SPDX-License-Identifier: MIT
"""The same filter selects the same events in netpawl events, netpawl har, netpawl top and the console's page. The events come from a stand-in of
the daemon, so that each of them says what one of the filter's keys asks for, and no more than that."""
import json
import re
import subprocess

import pytest

from lib import base
from lib.deceived import StandIn
from lib.terminal import Terminal

PAGE = base.ROOT / "user/console/page"


def event(session, kind="allow", reason="rule_allows", **members):
    return {"time": "2026-01-01T00:00:00.000000Z", "kind": kind, "reason": reason, "session": session, **members}


EVENTS = {e["session"].partition("/")[2]: e for e in [
    event("alice/github", method="GET", url="https://api.GitHub.com/repos/a/b?page=2", status=200, sent=10, received=2000, rule="/etc/policy.yaml:14",
          level="INTERNAL", mode="PROXIED", sandbox="s1", dns_us=1000, wait_us=4500),
    event("alice/model", method="POST", url="https://api.anthropic.com/v1/messages", status=429, list="@llm", sent=5000, received=70000, level="CONFIDENTIAL"),
    event("alice/other-list", method="POST", url="https://registry.example:8443/", status=201, list="@registries", rule="policy.yaml:140"),
    event("bob/refused", "refuse", "not_in_policy", method="GET", url="https://evil.example/?q=hello world", status=403, question=7, comm="curl"),
    event("bob/six", "refuse", "not_in_policy", method="PUT", url="http://[2001:db8::1]:8080/x", status=403, wait_us=900),
    event("bob/lookup", "refuse", "name_not_in_policy", lookup="nowhere.test", port=53, text="A"),
    event("bob/raw", "refuse", "mode_none", hook="connect4", address="198.51.100.10", port=7, protocol="tcp", comm="Python3", pid=12, mode="NONE"),
    event("bob/unix", "refuse", "unix_socket", hook="unix_connect", address="/run/x.sock", protocol="unix", comm="git"),
    event("carol/tunnel", url="db.example:5432", sent=1500, received=1000000),
    event("carol/connect", method="CONNECT", url="https://tunnel.example:443", status=200),
    event("carol/rise", "change", "raised", level="SECRET", mode="NONE", dataset="github.com keys.pem", cut=2),
    event("carol/made", "change", "session_created", level="PUBLIC", mode="FULL"),
    event("carol/wrong", "error", "proxy_failed", method="GET", url="https://behind.example/", status=502),
    event("carol/zoo", "refuse", "rule_denies", method="GET", url="https://x.test/É", status=403),
]}
EVENTS = {name: {"seq": i, **e} for i, (name, e) in enumerate(EVENTS.items(), 1)}
ALL = " ".join(EVENTS)

SELECTS = {
    "": ALL, "  \t ": ALL,
    "host:github.com": "github", "host:api.github.com": "github", "HOST:API.GITHUB.COM": "github", "host:ithub.com": "", "host:api": "",
    "host:*.com": "github model", "host:198.51.100.10": "raw", "host:nowhere.test,db.example": "lookup tunnel", "host:2001:db8::1": "six",
    "host:registry.example": "other-list", "host:tunnel.example": "connect", "host:*": ALL,
    "url:repos": "github", "url:repos*": "", "url:*page=2": "github", 'url:"hello world"': "refused", "url:É": "zoo", "url:é": "",
    "method:get": "github refused wrong zoo", "-method:get,post": " ".join(n for n in EVENTS if n not in "github refused wrong zoo model other-list".split()),
    "status:200": "github connect", "status:4xx": "model refused six zoo", "status:>=400": "model refused six wrong zoo", "status:<300": "github other-list connect",
    "status:2*": "github other-list connect", "-status:403 status:4xx": "model", "status:>403": "model wrong",
    "verdict:refused": "refused six lookup raw unix zoo", "verdict:change,error": "rise made wrong", "-verdict:*ed": "rise made wrong",
    "kind:request": "github model other-list refused six zoo", "kind:connection": "tunnel connect", "kind:dns": "lookup", "kind:socket": "raw unix",
    "kind:change": "rise made wrong", "kind:rise": "rise", "kind:change -kind:rise": "made wrong", "kind:r*": "github model other-list refused six rise zoo",
    "reason:not_*": "refused six", "reason:raised": "rise", "session:alice/*": "github model other-list", "session:alice": "", "session:alice/*,bob/raw": "github model other-list raw",
    "sandbox:s1": "github", "program:python*": "raw", "program:curl,git": "refused unix", "level:secret": "rise", "mode:none": "raw rise", "rule:policy.yaml:14": "github other-list",
    "rule:*:14": "github", "list:llm": "model", "list:@llm": "model", "list:*s": "other-list", "llm": "model", "LLM": "model", "-llm": " ".join(n for n in EVENTS if n != "model"),
    "address:198.51.100.10": "raw", "address:/run/*": "unix", "port:53": "lookup", "port:>7": "lookup", "port:5*": "lookup", "question:7": "refused", "-question:7 verdict:refused": "six lookup raw unix zoo",
    "sent:>1k": "model tunnel", "sent:>=1.5k": "model tunnel", "sent:10": "github", "received:<=2K": "github", "received:1M": "tunnel", "ms:>4": "github", "ms:5.5": "github", "ms:<1": "six",
    "github": "github", "GITHUB -status:200": "", '"hello world"': "refused", '-"hello world" session:bob/*': "six lookup raw unix", "https://evil.example/": "refused", "db8": "six", "python": "raw",
    "policy.yaml": "", "POST": "", "keys.pem": "", "x.sock": "unix", "host:github.com verdict:refused -llm session:alice/*": "",
    'kind:"request"': "github model other-list refused six zoo", "-host:*": "",
}
WRONG = {
    "hots:github.com": 'character 1: there is no key "hots"', "llm -hots:x": "character 6: there is no key", "host:": "character 6: a value is missing",
    "host:a,": "character 8: a value is missing", "-": "character 2: a value is missing", "verdict:denied": "character 1: a verdict is allowed, refused, change or error",
    "llm kind:http": "character 5: a kind is", '"open': "character 1: the quote is not closed", '"a"b': "character 4: a blank is missing", "a\x1b[31m": "character 2: a control character",
    "status:many": "character 1: a number is", "port:4xx": "character 1: a number is", "sent:>": "a number is", "ms:1.2345": "a number is", "sent:1q": "a number is", "status:1234567890123": "a number is",
    "port:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17": "too many values", "a" * 1025: "character 1025: the filter is too long", "a " * 33: "character 65: too many words",
}


@pytest.fixture(scope="module")
def stand_in():
    def answer(path, query):
        if path != "/v1/events":
            return {"sessions": [], "questions": [], "credentials": []}
        after = int(query.get("after", ["0"])[0])
        return [e for e in EVENTS.values() if e["seq"] > after]

    with StandIn(answer) as s:
        yield s


def cli(stand_in, *words):
    return subprocess.run([str(base.NETPAWL), *words, "--socket", str(stand_in.socket)], capture_output=True, text=True, timeout=60)


def names(sessions):
    return " ".join(sorted(s.partition("/")[2] for s in sessions))


def test_netpawl_events(stand_in):
    for text, want in SELECTS.items():
        p = cli(stand_in, "events", "--json", "--filter", text)
        assert p.returncode == 0, p.stderr
        assert names(json.loads(line)["session"] for line in p.stdout.splitlines()) == " ".join(sorted(want.split())), text


def test_limit_counts_what_passes(stand_in):
    """However many others are newer (or with --since older): "nothing" means that there is none."""
    refused = [n for n in EVENTS if n in SELECTS["verdict:refused"].split()]
    for words, want in ((("--limit", "2"), refused[-2:]), (("--limit", "1", "--since", "1d"), refused[:1]), (("--limit", "100"), refused),
                        (("--limit", "100", "--since", "1d"), refused), (("--limit", "0"), []), ((), refused)):
        p = cli(stand_in, "events", "--json", "--filter", "verdict:refused", *words)
        assert p.returncode == 0, p.stderr
        assert [json.loads(line)["session"].partition("/")[2] for line in p.stdout.splitlines()] == want, words


def test_netpawl_har(stand_in):
    entries = {n for n, e in EVENTS.items() if e["kind"] in ("allow", "refuse") and "url" in e}
    for text, want in SELECTS.items():
        p = cli(stand_in, "har", "--filter", text)
        assert names(e["_netpawl"]["session"] for e in json.loads(p.stdout)["log"]["entries"]) == " ".join(sorted(set(want.split()) & entries)), text


SELECT = """import { parseFilter } from "%s/filter.js"; import { describe } from "%s/words.js";
let text = ""; for await (const part of process.stdin) text += part;
const { events, filters } = JSON.parse(text), rows = events.map(describe), out = {};
for (const f of filters) try { out[f] = rows.filter(parseFilter(f)).map((r) => r.session); } catch (e) { out[f] = e.message; }
console.log(JSON.stringify(out));""" % (PAGE, PAGE)


def test_the_page_of_the_console():
    p = subprocess.run(["node", "--input-type=module", "-e", SELECT], input=json.dumps({"events": list(EVENTS.values()), "filters": [*SELECTS, *WRONG]}),
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    got = json.loads(p.stdout)
    for text, want in SELECTS.items():
        assert not isinstance(got[text], str), (text, got[text])
        assert names(got[text]) == " ".join(sorted(want.split())), text
    for text, says in WRONG.items():
        assert isinstance(got[text], str) and says in got[text], (text, got[text])


def test_what_is_wrong_is_told_in_the_same_words(stand_in):
    for text, says in WRONG.items():
        for command in ("events", "har", "top"):
            p = cli(stand_in, command, "--filter", text)
            assert p.returncode == 2 and says in p.stderr.replace("?", "\x1b"), (command, text, p.stderr)


def test_netpawl_top(stand_in):
    def shown(t):
        return sorted(re.findall(r"^\d\d:\d\d:\d\d \w+/(\S+)", t.text(), re.M))

    with Terminal(["top", "--socket", str(stand_in.socket)], size=(100, 30)) as t:
        t.shows("netpawl traffic", "alice/github")
        for text, want in SELECTS.items():
            if not text.isascii() or not text.strip():
                continue  # keys of a terminal are ASCII here
            t.type("/", "C-u")
            t.type("-l", "--", text)
            t.type("Enter")
            assert base.eventually(lambda: shown(t) == sorted(want.split()), 5), (text, want, t.text())
        t.type("q")
        t.shows("left with 0")
