# SPDX-License-Identifier: MIT
"""What the page of the console knows of policies: changes that its form makes of a text, by the places that the reader of policies names, and
the completion of its editor, by the schema. Its modules run in Node, and are told what the console answers."""
import json
import pathlib
import subprocess

import pytest

from lib import base
from lib.console import Browser, Console
from lib.fixtures import daemon_with

PAGE = pathlib.Path(__file__).resolve().parents[2] / "user/console/page"
CALLS = """
import * as edit from "%s/yaml_edit.js";
import { completions } from "%s/complete.js";
const { calls, schema } = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"));
const entry = (c, host) => edit.allowed(c.text, c.outline).find((e) => e.host === host);
const does = {
  set: (c, ...words) => edit.set(c.text, c.outline, ...words),
  unset: (c, ...words) => edit.unset(c.text, c.outline, ...words),
  allow: (c, host) => edit.allow(c.text, c.outline, host),
  drop: (c, host) => edit.drop(c.text, c.outline, entry(c, host)),
  allowed: (c) => edit.allowed(c.text, c.outline).map((e) => [e.host, e.source, e.conditions]),
  complete: (c) => completions(schema, c.text.replace("|", ""), c.text.indexOf("|")).words.map((w) => w.word),
};
console.log(JSON.stringify(calls.map((c) => { try { return does[c.call](c, ...(c.words ?? [])); } catch (e) { return { error: e.message }; } })));
""" % (PAGE, PAGE)


@pytest.fixture(scope="module")
def browser(world):
    with daemon_with(world, "rules:\n  - allow: a.example\n") as d, Console(d) as c:
        b = Browser(c)
        b.login()
        yield b


def outline(browser, text):
    status, found, _ = browser.call("POST", "/console/policy", {"name": "policy.yaml", "text": text, "outline": True})
    assert status == 200
    return found["outline"], found


def node(calls, schema=None):
    p = subprocess.run(["node", "--input-type=module", "-e", CALLS], input=json.dumps({"calls": calls, "schema": schema}), capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def plain(tree):
    """An outline without its places."""
    if tree is None or "text" in tree:
        return tree and tree["text"]
    if "list" in tree:
        return [plain(t) for t in tree["list"]]
    return {key["text"]: plain(value) for key, value in zip(tree["map"][::2], tree["map"][1::2])}


TEXT = """# of the platform team
version: 1   # the language
approval: {hold: 20s, 'timeout': "15m"}  # people
sandbox:
    # a build needs it
    memory: 2G     # é before and after: é
    binds: [/srv]
default: deny  # unless asked

rules:
  # .npmrc:1
  - allow: "npm.corp.example:443"
    methods: [GET, HEAD]

  # models
  - allow: "@llm"
  - allow: [one.example, 'two.example', "three.example"]   # three
    methods: [GET]
  - deny: bad.example
  - allow:
      - four.example   # fourth
      - five.example
  # people decide
  - ask: "**"
"""

CHANGES = [
    ("set", ["approval", "hold", "30s"], "hold: 20s", "hold: 30s"),
    ("set", ["approval", "timeout", "1h"], '"15m"', "1h"),
    ("set", ["approval", "remember", "once"], "{hold", "{remember: once, hold"),
    ("set", ["sandbox", "memory", "4G"], "memory: 2G     # é", "memory: 4G     # é"),
    ("set", ["sandbox", "cpus", "1.5"], "    memory: 2G", "    cpus: 1.5\n    memory: 2G"),
    ("set", ["default", None, "ask"], "default: deny  # unless", "default: ask  # unless"),
    ("set", ["dns", "refused", "synthetic"], '  - ask: "**"\n', '  - ask: "**"\ndns:\n  refused: synthetic\n'),
    ("unset", ["sandbox", "memory"], "    memory: 2G     # é before and after: é\n", ""),
    ("unset", ["approval", "hold"], "hold: 20s, ", ""),
    ("unset", ["approval", "timeout"], ", 'timeout': \"15m\"", ""),
    ("unset", ["approval", "group"], "", ""),
    ("drop", ["@llm"], '  - allow: "@llm"\n', ""),
    ("drop", ["one.example"], "one.example, ", ""),
    ("drop", ["three.example"], ', "three.example"', ""),
    ("drop", ["two.example"], "'two.example', ", ""),
    ("drop", ["four.example"], "      - four.example   # fourth\n", ""),
    ("drop", ["five.example"], "      - five.example\n", ""),
    ("drop", ["npm.corp.example:443"], '  # .npmrc:1\n  - allow: "npm.corp.example:443"\n    methods: [GET, HEAD]\n', ""),
    ("allow", ["new.example"], "  # people decide\n", "  - allow: new.example\n  # people decide\n"),
    ("allow", ["*.new.example:8443"], "  # people decide\n", '  - allow: "*.new.example:8443"\n  # people decide\n'),
]


def test_a_change_of_the_form_changes_nothing_else(browser):
    """The text is another at that one place, and what the reader reads of it is another in that one value."""
    was, found = outline(browser, TEXT)
    assert found["ok"], found
    results = node([{"call": call, "words": words, "text": TEXT, "outline": was} for call, words, *_ in CHANGES])
    for (call, words, old, new), text in zip(CHANGES, results):
        assert text == (TEXT.replace(old, new, 1) if old else TEXT), (call, words)
        now, found = outline(browser, text)
        assert found["ok"] or call in ("drop",), (words, found["errors"])
        before, after = plain(was), plain(now)
        for tree in (before, after):
            tree.pop("dns", None) if call == "set" and words[0] == "dns" else None
        if call in ("set", "unset"):
            section, key = words[0], words[1]
            expected = words[2] if call == "set" else None
            assert (after.get(section) if key is None else (plain(now).get(section) or {}).get(key)) == expected
            for tree in (before, after):
                tree.pop(section, None) if key is None else (tree.get(section) or {}).pop(key, None)
            assert before == after, (call, words)


def test_one_after_the_other(browser):
    """Each by the outline of the text that the one before it has left."""
    text = "version: 1\n"
    for call, words in (("allow", ["a.example"]), ("allow", ["b.example"]), ("set", ["approval", "hold", "5s"]), ("set", ["approval", "timeout", "5m"]), ("set", ["default", None, "ask"]),
                        ("drop", ["a.example"]), ("unset", ["approval", "hold"]), ("unset", ["approval", "timeout"])):
        was, _ = outline(browser, text)
        text = node([{"call": call, "words": words, "text": text, "outline": was}])[0]
        assert outline(browser, text)[1]["ok"], text
    assert text == "version: 1\nrules:\n  - allow: b.example\ndefault: ask\n"


def test_who_has_allowed_it(browser):
    was, _ = outline(browser, TEXT)
    grants = "version: 1\ngrants:\n  # by uid 0\n  - allow: https://g.example:443\n    kind: read\n  - allow: tcp://h.example:22\n"
    of_grants, _ = outline(browser, grants)
    got = node([{"call": "allowed", "text": TEXT, "outline": was}, {"call": "allowed", "text": grants, "outline": of_grants}, {"call": "drop", "words": ["https://g.example:443"], "text": grants, "outline": of_grants}])
    assert got[0] == [["npm.corp.example:443", "project", 1], ["@llm", "llm", 0], ["one.example", "hand", 1], ["two.example", "hand", 1], ["three.example", "hand", 1],
                      ["four.example", "hand", 0], ["five.example", "hand", 0]]
    assert got[1] == [["https://g.example:443", "granted", 1], ["tcp://h.example:22", "granted", 0]]
    assert got[2] == "version: 1\ngrants:\n  - allow: tcp://h.example:22\n"


ODD = [("version: 1\ndefault: {PUBLIC: deny}\n", "set", ["default", None, "ask"]), ("version: 1\napproval: text\n", "set", ["approval", "hold", "1s"]),
       ("version: 1\napproval:\n  hold: >\n    20s\n", "set", ["approval", "hold", "1s"]), ("version: 1\napproval: {hold: \"2\\u0030s\"}\n", "set", ["approval", "hold", "1s"]),
       ("version: 1\nrules: [{allow: a.example}]\n", "allow", ["b.example"]), ("version: 1\nrules:\n- allow: a.example\n", "drop", ["a.example"]),
       ("version: 1\n", "set", ["default", None, 'a"b']), ("version: 1\n", "allow", ["a\nrules: []"])]


def test_what_it_does_not_understand_it_leaves_alone(browser):
    results = node([{"call": call, "words": words, "text": text, "outline": outline(browser, text)[0]} for text, call, words in ODD])
    for (text, *_), got in zip(ODD, results):
        assert isinstance(got, dict) and ("write it in the text" in got["error"] or "cannot be written" in got["error"]), (text, got)


@pytest.mark.parametrize("text", ["a: &x [*x]", "\x01", "", "- " * 500, "[" * 200], ids=range(5))
def test_no_outline_of_what_is_no_policy(browser, text):
    assert outline(browser, text)[0] is None


def test_no_outline_of_a_very_long_one(browser):
    assert outline(browser, "version: 1\nrules:\n" + "  - allow: x.example\n" * 10000)[0] is None
    assert outline(browser, "version: 1\nrules:\n" + "  - allow: x.example\n" * 1000)[0] is not None


COMPLETED = [
    ("ver|", {"version"}, {"rules"}), ("version: 1\nap|", {"approval"}, set()), ("version: 1\nrules:\n  - |", {"allow", "deny", "ask", "methods"}, {"rules"}),
    ("version: 1\nrules:\n  - allow: a.example\n    me|", {"methods"}, {"allow"}), ("version: 1\nrules:\n  - allow: a.example\n    |", {"paths", "methods", "for"}, {"allow"}),
    ("version: 1\nrules:\n- allow: a.example\n  pa|", {"paths"}, set()),
    ("version: 1\nrules:\n  - allow: a.example\n    for: |", {"PUBLIC", "SECRET"}, {"methods"}), ("version: 1\nrules:\n  - allow: a.example\n    for: [PUBLIC, C|", {"CONFIDENTIAL"}, {"SECRET"}),
    ("version: 1\napproval: {ho|", {"hold"}, {"timeout"}), ("version: 1\napproval: {hold: 10s, |", {"timeout", "group"}, {"hold"}), ("version: 1\napproval: {remember: |", {"once", "session"}, {"hold"}),
    ("version: 1\napproval:\n  hold: 10s\n  |", {"timeout"}, {"hold", "rules"}), ("version: 1\ndefault: a|", {"ask", "allow"}, {"deny"}), ("version: 1\ndefault:\n  |", {"PUBLIC"}, {"ask2"}),
    ("version: 1\ndeciders:\n  mine:\n    com|", {"command"}, set()), ("version: 1\ncredentials:\n  key:\n    source: {f|", {"file"}, {"env"}),
    ("version: 1\nsandbox:\n  mem|\n  cpus: 2\n", {"memory"}, set()), ("version: 1\nsandbox:\n  |\n  cpus: 2\n", {"memory"}, {"cpus"}), ("version: 1 # ru|", set(), {"rules"}),
    ("version: 1\nrules:\n  - allow: a.example\nlev|", {"levels"}, {"methods"}), ("version: 1\nlevels:\n  SECRET: n|", {"none"}, {"full"}),
]


def test_completion(browser):
    schema = browser.call("GET", "/console/schema")[1]
    got = node([{"call": "complete", "text": text} for text, *_ in COMPLETED], schema)
    for (text, there, missing), words in zip(COMPLETED, got):
        assert there <= set(words) and not missing & set(words), (text, words)
        assert there or not words


def test_a_save_goes_through_and_who_may_not_is_told(browser):
    """By the daemon, which judges; and a console that only shows passes nothing on."""
    d = browser.console.daemon
    source = browser.call("GET", "/v1/policy/source")[1]
    first = source["files"][0]
    text = first["text"] + "# saved by the console\n" + "# " + "x" * 100_000 + "\n"
    body = {"file": first["name"], "old": first["sha256"], "text": text}
    with Console(d, "--read-only") as c:
        b = Browser(c)
        b.login()
        assert b.call("PUT", "/v1/policy/file", body)[0] == 403
    assert d.policy.read_text() == first["text"]
    assert browser.call("PUT", "/v1/policy/file", body, Origin="http://evil.example")[0] == 403
    assert browser.call("PUT", "/v1/policy/file", body)[0] == 200 and d.policy.read_text() == text
    status, answer, _ = browser.call("PUT", "/v1/policy/file", body)
    assert (status, answer["error"]) == (409, "file_changed")


def test_approvers_see_and_save_no_policy(world):
    with daemon_with(world, "approval: {group: root}\nrules:\n  - ask: x.example\n") as d, Console(d, "--approver") as c:
        b = Browser(c)
        b.login()
        for method, path in (("PUT", "/v1/policy/file"), ("GET", "/v1/policy/source"), ("GET", "/v1/credentials")):
            assert b.call(method, path, {} if method == "PUT" else None)[0] == 403
        assert b.call("POST", "/console/policy", {"name": "policy.yaml", "text": ""})[0] == 404
