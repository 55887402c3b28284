# SPDX-License-Identifier: MIT
"""netpawl policy check, test and explain on real files; the shipped policies; the manual page."""
import json
import re
import shutil
import subprocess

import pytest

from lib import base

POLICIES = sorted((base.ROOT / "policies").glob("*.yaml"))
SHIPPED_CASES = sorted((base.ROOT / "policies").glob("*.case"))
LANGUAGE_CASES = sorted((base.TESTS / "policy").glob("*.case"))
PAGE = base.ROOT / "man" / "netpawl-policy.5.scd"


def policy(*words, code=0, cwd=None):
    """netpawl policy WORDS, without a daemon."""
    p = subprocess.run([str(base.NETPAWL), "policy", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=180,
                       env=base.env(NETPAWL_SOCKET="/nonexistent/control.sock"))
    assert p.returncode == code, p
    return p


def policy_json(*words, code=0):
    return json.loads(policy("--json", *words, code=code).stdout)


@pytest.fixture
def folder():
    path = base.tempdir("policycli")
    yield path
    base.drop_tempdir(path)


@pytest.fixture
def write(folder):
    def f(text, name="p.yaml"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return f


def ids(path):
    return path.name


# -- what is shipped -------------------------------------------------------------------

def test_every_policy_has_cases():
    names = [p.stem for p in POLICIES]
    assert set(names) >= {"default", "coding-agent", "data-analysis", "locked-down"}
    assert names == [p.stem for p in SHIPPED_CASES]
    assert len(LANGUAGE_CASES) > 10


@pytest.mark.parametrize("path", POLICIES, ids=ids)
def test_shipped_policies_are_clean(path):
    p = policy("check", "--strict", path)
    assert p.stderr == "" and re.fullmatch(rf"{re.escape(str(path))}: ok, \d+ rules?, hash [0-9a-f]{{12}}\n", p.stdout)


@pytest.mark.smoke
@pytest.mark.parametrize("path", SHIPPED_CASES + LANGUAGE_CASES, ids=ids)
def test_cases_hold(path):
    written = len(re.findall(r"^[^#\n]*\s->\s", path.read_text(), re.M))
    p = policy("test", path)
    assert written and p.stdout == f"{written} case{'' if written == 1 else 's'}, 0 failed\n" and p.stderr == ""


def test_near_misses(write):
    path = write('version: 1\nrules:\n  - allow: ["*.pkg.example", api.example]\n')
    got = policy_json("explain", path, "--url", "https://pkg.example/")
    assert got["reason"] == "not_in_policy"
    assert [(n["line"], n["why"]) for n in got["near_misses"]] == [
        (3, '"*.pkg.example" does not cover "pkg.example" itself; ".pkg.example" does')]
    assert "Near misses:\n" in policy("explain", path, "--url", "https://apj.example/").stdout
    assert "Near" not in policy("explain", path, "--url", "https://far-away.test/").stdout
    assert policy_json("explain", path, "--url", "https://api.example/")["near_misses"] == []
    assert '"*.pkg.example" does not cover "pkg.example" itself' in policy("check", path).stderr


@pytest.mark.parametrize("name", ["coding-agent", "data-analysis"])
def test_package_managers_reach_their_indexes(name, write):
    """On the domain itself, where some indexes live, and below it; for reading. And no name that only ends like it."""
    path = base.ROOT / f"policies/{name}.yaml"
    domains = re.findall(r"^    - \.([a-z0-9.-]+)", path.read_text().split("  packages:\n")[1].split("\nrules:")[0], re.M)
    assert {d.split(".")[-2] for d in domains} >= {"pypi", "pythonhosted", "npmjs", "crates", "golang", "maven", "apache", "rubygems"}
    lines = [f"{method} https://{host}/x -> {verdict}" for domain in domains for host, method, verdict in (
        (domain, "GET", "allow"), (f"a.{domain}", "GET", "allow"), (f"a.b.{domain}", "HEAD", "allow"),
        (domain, "PUT", "deny not_in_policy"), (f"a.{domain}", "POST", "deny not_in_policy"),
        (f"not{domain}", "GET", "deny not_in_policy"))]
    p = policy("test", path, write("\n".join(lines) + "\n", "packages.case"))
    assert p.stdout == f"{len(lines)} cases, 0 failed\n", p


UPLOADS = ["https://github.com/a/b", "https://github.com/a/b.git/git-receive-pack", "https://gist.github.com/",
           "https://storage.googleapis.com/b/o", "https://a.blob.core.windows.net/b/o", "https://b.s3.amazonaws.com/o",
           "https://api.github.com/gists", "https://uploads.github.com/repos/a/b/releases/1/assets"]


@pytest.mark.parametrize("path", POLICIES, ids=ids)
def test_no_preset_opens_uploads_to_strangers(path, write):
    """Hosts that take things from anyone are closed to every method that carries a body, as soon as data is confidential."""
    lines = [f"{method} {url} -> deny" for url in UPLOADS for method in ("POST", "PUT", "PATCH", "DELETE")]
    assert "0 failed" in policy("test", path, write("at CONFIDENTIAL\n" + "\n".join(lines), "uploads.case")).stdout


# -- check -----------------------------------------------------------------------------

GOOD = "version: 1\nrules:\n  - allow: a.example\n  - deny: b.example\n"


def test_check(write):
    path = write(GOOD)
    got = policy_json("check", path)
    assert (got["file"], got["ok"], got["rules"], got["errors"], got["warnings"]) == (str(path), True, 2, [], [])
    assert re.fullmatch("[0-9a-f]{64}", got["hash"])
    assert got["hash"][:12] in policy("check", path).stdout
    write(GOOD + "# changed\n")
    assert policy_json("check", path)["hash"] != got["hash"]


def test_errors_are_told_like_a_compiler(write):
    path = write("version: 1\nrules:\n  - allow: a.example\n    method: GET\n  - deny: 10.0.0.1/8\n")
    p = policy("check", path, code=1)
    lines = p.stderr.splitlines()
    assert p.stdout == "" and len(lines) == 2
    assert lines[0].startswith(f"{path}:4:5: error: ") and "methods" in lines[0]
    assert lines[1].startswith(f"{path}:5:11: error: ") and "10.0.0.0/8" in lines[1]
    got = policy_json("check", path, code=1)
    assert got["ok"] is False and got["hash"] is None
    assert [(e["file"], e["line"], e["column"]) for e in got["errors"]] == [(str(path), 4, 5), (str(path), 5, 11)]
    assert all(e["message"] and "error:" not in e["message"] for e in got["errors"])


def test_warnings_pass_unless_strict(write):
    path = write("version: 1\nrules:\n  - deny: \"**.a.example\"\n  - allow: x.a.example\n")
    p = policy("check", path)
    assert f"{path}:4:" in p.stderr and "warning: " in p.stderr and ": ok, 2 rules" in p.stdout
    got = policy_json("check", path)
    assert got["ok"] and got["warnings"][0]["line"] == 4 and got["warnings"][0]["other"] == {"file": str(path), "line": 3}
    p = policy("check", "--strict", path, code=1)
    assert "warning: " in p.stderr and p.stdout == ""
    assert policy_json("check", "--strict", path, code=1)["ok"] is False


def test_credentials_that_go_too_far_or_nowhere_are_warned_of(write):
    path = write("""version: 1
credentials:
  wide: {source: {env: A}, for: "*.example.com"}
  nowhere: {source: {env: A}, for: other.example.net}
  plain: {source: {env: A}, for: "www.example.com:80"}
  uploads: {source: {env: A}, for: gist.github.com}
  named: {source: {env: A}}
  good: {source: {env: A}, for: www.example.com}
rules:
  - allow: [www.example.com, gist.github.com]
  - allow: .example.org
    credential: named
""")
    said = policy("check", path).stderr
    for name, line, words in (("wide", 3, "whoever runs a host of such a name"), ("nowhere", 4, "allowed by a rule"), ("plain", 5, "without TLS"),
                              ("uploads", 6, "takes uploads from anyone"), ("named", 11, "whoever runs a host of such a name")):
        assert re.search(rf':{line}:\d+: warning: credential "{name}" for "[^"]+": [^\n]*{words}', said), (name, said)
    assert '"good"' not in said and said.count("warning: credential") == 5
    policy("check", "--strict", path, code=1)


def test_errors_in_an_included_file_name_it(write, folder):
    write("version: 1\nrules:\n  - allow: 'api-*.example'\n", "sub/more.yaml")
    path = write("version: 1\ninclude: sub/more.yaml\n")
    assert f"{folder}/sub/more.yaml:3:12: error: " in policy("check", path, code=1).stderr


def test_missing_file():
    p = policy("check", "/nonexistent/p.yaml", code=1)
    assert p.stderr.startswith("/nonexistent/p.yaml: error: ") and "no such file" in p.stderr.lower()
    assert policy_json("check", "/nonexistent/p.yaml", code=1)["errors"]


HOSTILE = {"key": b'version: 1\n"\\e[2Jx\\u202ey": 1\n', "bytes": b"version: 1\nz: \xff\x1b[2J\n", "raw": b"\x1b]0;title\x07: 1\n",
           "value": b'version: 1\nrules: [{allow: "a\\e[2Jb\\u2028.example"}]\n', "duplicate": b'version: 1\n"\\b": 1\n"\\b": 2\n'}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("command", [["check"], ["explain", "--url", "https://a.example/"], ["test"]], ids=lambda c: c[0])
def test_nothing_of_a_file_reaches_the_terminal_unclean(write, command, text):
    path = write(text, "p\x1b[31m\u202e.yaml")
    cases = [write(b"GET https://a.example/\x1b[2J\xe2\x80\xae\xff -> deny\nat \x1b[2J\n", "c\x1b[31m.case")] if command == ["test"] else []
    for words in ([*command, path, *cases], [*command, *cases]) if cases else ([*command, path],):
        p = policy(*words, code=1)
        assert p.stderr and not re.search("[\x00-\x09\x0b-\x1f\x7f\u2028\u202e]", p.stderr + p.stdout), p
        p = policy("--json", *words, code=1)
        assert json.loads(p.stdout) and not re.search("[\x00-\x09\x0b-\x1f\x7f\u2028\u202e]", p.stderr + p.stdout), p


def test_hostile_text_in_a_case_that_does_not_hold(write):
    path = write(b"policy:\n    version: 1\nGET https://a.example/\xe2\x80\xae\xff -> allow\n", "w.case")
    assert "FAILS: GET https://a.example/?? (at" in policy("test", path, code=1).stdout
    assert policy_json("test", path, code=1)["files"][0]["results"][0]["case"] == "GET https://a.example/??"


# -- test ------------------------------------------------------------------------------

def test_what_does_not_hold_fails(write):
    policy_path = write(GOOD)
    path = write("policy: p.yaml\nGET https://a.example/ -> allow\nGET https://b.example/ -> allow line 3\n", "w.case")
    p = policy("test", path, code=1)
    assert p.stdout.splitlines()[0] == f"{path}:3: FAILS: GET https://b.example/ (at CONFIDENTIAL)"
    assert re.search(r"^ +expected  allow line 3$", p.stdout, re.M)
    assert re.search(rf"^ +actual    deny rule_denies, {re.escape(str(policy_path))}:4$", p.stdout, re.M)
    assert p.stdout.endswith("2 cases, 1 failed\n") and "a.example" not in p.stdout
    p = policy("test", "--verbose", path, code=1)
    assert f"{path}:2: holds: GET https://a.example/ (at CONFIDENTIAL)\n" in p.stdout
    got = policy_json("test", path, code=1)
    assert (got["ok"], got["cases"], got["failed"]) == (False, 2, 1)
    (one,) = got["files"][0]["results"]
    assert (one["line"], one["case"], one["level"], one["holds"]) == (3, "GET https://b.example/", "CONFIDENTIAL", False)
    assert one["expected"] == "allow line 3" and one["actual"].startswith("deny rule_denies") and one["message"]
    assert len(policy_json("test", "--verbose", path, code=1)["files"][0]["results"]) == 2


@pytest.mark.parametrize("line", ["GET https://a.example/ -> deny", "GET https://a.example/ -> allow open_mode",
                                  "GET https://a.example/ -> allow line 4", "GET https://a.example/ -> allow q.yaml:3",
                                  "GET https://c.example/ -> deny line 4", "connect 192.0.2.7:22 -> ask",
                                  "at SECRET\nGET https://a.example/ -> allow", "at PUBLIC\nconnect 192.0.2.7:22 -> deny"])
def test_each_wrong_expectation_is_seen(write, line):
    write(GOOD)
    assert policy("test", write(f"policy: p.yaml\n{line}\n", "w.case"), code=1).stdout.endswith("1 case, 1 failed\n")


def test_given_policy_wins(write):
    cases = write("policy: not-there.yaml\nGET https://a.example/ -> allow\n", "w.case")
    other = write("version: 1\n", "other.yaml")
    assert policy("test", write(GOOD), cases).stdout == "1 case, 0 failed\n"
    assert policy("test", other, cases, code=1).stdout.endswith("1 case, 1 failed\n")
    p = policy("test", cases, code=1)
    assert "not-there.yaml" in p.stderr and p.stdout.endswith("1 file with errors\n")


def test_policy_is_relative_to_the_case_file(write, folder):
    write(GOOD)
    path = write("policy: ../p.yaml\nGET https://a.example/ -> allow p.yaml:3\n", "sub/w.case")
    policy("test", path, cwd="/")
    policy("test", "w.case", cwd=folder / "sub")


def test_errors_of_case_files(write):
    path = write("policy: p.yaml\n\nGET https://a.example/ -> maybe\n", "w.case")
    p = policy("test", path, code=1)
    assert p.stderr.startswith(f"{path}:3:27: error: ") and "maybe" in p.stderr and "0 cases" in p.stdout
    got = policy_json("test", path, code=1)
    assert (got["broken"], got["files"][0]["errors"][0]["line"]) == (1, 3)
    # an inline policy's errors are at the lines of the case file
    path = write("# one\npolicy:\n    version: 1\n    rulez: []\nGET https://a.example/ -> allow\n", "w.case")
    assert policy("test", path, code=1).stderr.startswith(f"{path}:4:5: error: ")
    assert "names no policy" in policy("test", write("GET https://a.example/ -> allow\n", "w.case"), code=1).stderr
    assert "No such file" in policy("test", "/nonexistent/w.case", code=1).stderr
    # nobody hides cases behind a NUL
    assert "NUL" in policy("test", write(b"policy: p.yaml\nGET https://a.example/ -> allow\n\0junk", "w.case"), code=1).stderr
    # one broken file does not hide the others
    good = write(f"policy:\n    version: 1\nGET https://a.example/ -> deny\n", "g.case")
    assert policy("test", path, good, code=1).stdout.startswith("1 case, 0 failed, 1 file with errors")


def test_a_broken_policy_is_told_once(write):
    p = policy("test", write("version: 2\n"), write("GET https://a.example/ -> allow\n", "w.case"), code=1)
    assert p.stderr.count("error:") == 1 and p.stdout == ""


# -- explain ---------------------------------------------------------------------------

EXPLAINED = """version: 1
lists:
  api: [api.example]
rules:
  - deny: other.example
  - allow: "@api"
    for: PUBLIC
  - allow: api.example
    methods: GET
  - deny: 10.0.0.0/8
  - allow: "@api"
    methods: POST
    headers: [x-api-key]
    max_body: 1MiB
  - allow: api.example:5432
"""


def test_explain(write):
    path = write(EXPLAINED)
    p = policy("explain", path, "--method", "POST", "--url", "https://api.example/a", "--header", "X-Api-Key,accept")
    first, *rest = p.stdout.splitlines()
    assert first == "allow  POST https://api.example/a, at CONFIDENTIAL (mode PROXIED)"
    assert re.fullmatch(rf"  rule    {re.escape(str(path))}:11  .*@api.*", rest[0])
    assert "rule_allows" in rest[1] and rest[2].startswith("  why     ")
    passed = p.stdout.split("Rules passed over: 4\n")[1]
    assert f"{path}:6 " in passed and f"{path}:8 " in passed and f"{path}:5 " not in passed and "--all" in passed
    passed = policy("explain", path, "--all", "--method", "POST", "--url", "https://api.example/a", "--header",
                    "x-api-key").stdout
    assert all(f"{path}:{n} " in passed for n in (5, 6, 8, 10, 11))


def test_explain_says_who_is_asked(write):
    """Without a daemon: of whom, about what, for how long, and whether a retry makes sense."""
    path = write("version: 1\ndefault: ask\napproval: {hold: 9s, timeout: 5m, group: '4242'}\n"
                 "deciders:\n  guard: {command: [/bin/guard], timeout: 3s}\nrules:\n  - decide: api.example\n    by: guard\n")
    out = policy("explain", path, "--url", "https://new.example/", "--method", "POST").stdout
    assert out.startswith("ask  POST https://new.example/, at CONFIDENTIAL (mode PROXIED)\n")
    for line in ("asked   a person: root, group 4242 at approve.sock", "about   writing to new.example:443, in TLS",
                 "waits   for 9 s, then 403 needs_approval with retry_after; people have 5 min", "retry   it joins the question, or meets its answer"):
        assert f"  {line}\n" in out, (line, out)
    assert "  now " not in out
    got = policy_json("explain", path, "--url", "https://api.example/")
    assert got["action"] == "decide" and got["asks"]["decider"] == "guard" and got["asks"]["timeout_ms"] == 3000, got
    assert "needs_decider" in got["asks"]["retry"] and "/bin/guard" in got["asks"]["whom"] and "now" not in got["asks"]
    assert policy_json("explain", path, "--url", "https://wiki/")["asks"] is None, "nobody is asked about what nobody meant"


CARRIED = """version: 1
credentials:
  github:
    source: {{file: {file}}}
    for: api.example
    as: [bearer, {{header: X-Api-Key}}]
    levels: [CONFIDENTIAL]
    methods: GET
    paths: ["/v1/**"]
  theirs: {{source: {{file: {file}}}, for: theirs.example, scope: alice/*}}
  named: {{source: {{file: {file}}}}}
  login:
    source: {{file: {file}}}
    for: login.example
    as: form
    capture: {{json: token, for: data.example, as: {{query: key}}}}
levels: {{INTERNAL: proxied, PUBLIC: full}}
rules:
  - {{allow: named.example, credential: named}}
  - allow: [api.example, theirs.example, login.example, data.example, other.example]
    for: [PUBLIC, INTERNAL, CONFIDENTIAL, SECRET]
"""
VALUE_OF_ALL = "ghp_value-that-no-output-may-have"


@pytest.mark.parametrize("words,names,line", [
    (["https://api.example/v1/a"], {"github": None}, "github: as bearer, header x-api-key"),
    (["https://named.example/"], {"named": None}, "named: as bearer"),
    (["https://theirs.example/", "--session", "alice/x"], {"theirs": None}, "theirs: as bearer"),
    (["https://data.example/"], {"login": None}, "tokens of login: as form, query key"),
    (["https://api.example/v1/a", "--level", "INTERNAL"], {"github": "it is not for this level"}, None),
    (["https://api.example/v1/a", "--level", "SECRET"], {"github": "the request is refused"}, None),
    (["https://api.example/v1/a", "--level", "PUBLIC"], {"github": "requests are inspected in PROXIED alone"}, None),
    (["https://theirs.example/", "--session", "bob/x"], {"theirs": "it is for other sessions or classes of runs"}, None),
    (["https://theirs.example/"], {"theirs": "it is for other sessions or classes of runs"}, None),
    (["https://api.example/v1/a", "--method", "POST"], {"github": "it is for other methods or paths"}, None),
    (["https://api.example/v2/a"], {"github": "it is for other methods or paths"}, None),
    (["http://api.example/v1/a"], {"github": "the request goes without TLS"}, None),
    (["https://login.example/", "--method", "TRACE"], {"login": "an answer to TRACE would show it"}, None),
    (["https://other.example/"], {}, "none: no credential is for this host"),
    (["https://nowhere.example/"], {}, "none: no credential is for this host"),
], ids=lambda w: " ".join(w) if isinstance(w, list) else "")
def test_explain_says_which_credential_goes_with_it(write, words, names, line):
    path = write(CARRIED.format(file=write(VALUE_OF_ALL, "value")))
    got = policy_json("explain", path, "--url", *words)
    assert {c["name"]: c["why"] for c in got["credentials"]} == names
    assert all(c["goes"] is (c["why"] is None) and c["as"] for c in got["credentials"])
    text = policy("explain", path, "--url", *words).stdout
    line = line or "{} does not go with it: {}".format(*next(iter(names.items())))
    assert f"  secret  {line}\n" in text and text.count("  secret  ") == 1
    assert VALUE_OF_ALL not in text + json.dumps(got)


def test_explain_is_silent_without_credentials(write):
    path = write(EXPLAINED)
    assert "secret" not in policy("explain", path, "--url", "https://api.example/").stdout
    assert policy_json("explain", path, "--url", "https://api.example/")["credentials"] == []
    path = write(CARRIED.format(file="/nonexistent"))
    assert "  secret" not in policy("explain", path, "--connect", "api.example:443").stdout, "it is of requests"


def test_cases_of_credentials(write):
    """They hold, and the contrary of each fails with its line, what came and what did not."""
    lines = ["GET https://api.example/v1/a -> allow credential github", "POST https://api.example/v1/a -> allow no credential",
             "GET https://named.example/ -> allow rule_allows line 19 credential named", "GET https://nowhere.example/ -> deny no credential",
             "GET https://other.example/ -> allow no credential", "at INTERNAL", "GET https://api.example/v1/a -> allow rule_allows no credential"]
    write(CARRIED.format(file=write(VALUE_OF_ALL, "value")))
    assert "6 " in policy("test", write("policy: p.yaml\n" + "\n".join(lines) + "\n", "good.case")).stdout
    wrong = [l.replace("no credential", "credential github") if "no credential" in l else l[:l.index(" credential")] + " no credential" if "at " != l[:3]
             else l for l in lines]
    bad = write("policy: p.yaml\n" + "\n".join(wrong) + "\n", "bad.case")
    out = policy("test", bad, code=1).stdout
    for n, l in enumerate(wrong, 2):
        assert (f"{bad}:{n}" in out) is (" -> " in l), (n, out)
    assert out.count(", no credential") == 4 and ", credential github" in out and ", credential named" in out, out
    assert out.count("credential github") == 5 and VALUE_OF_ALL not in out, out
    for end, words in (("credential", "credential NAME"), ("credential a b", "nothing comes behind the credential"), ("no", "neither a reason")):
        p = policy("test", write(f"policy: p.yaml\n\nGET https://api.example/ -> allow {end}\n", "odd.case"), code=1)
        assert "odd.case:3:" in p.stdout + p.stderr and words in p.stdout + p.stderr, p


def test_explain_json(write):
    path = write(EXPLAINED)
    got = policy_json("explain", path, "--method", "POST", "--url", "https://api.example/a")
    assert (got["action"], got["reason"], got["rule"], got["mode"], got["level"]) == \
        ("deny", "not_in_policy", None, "PROXIED", "CONFIDENTIAL")
    assert got["message"] and got["passed_over_count"] == 6
    why = {r["line"]: r["why"] for r in got["passed_over"]}
    assert set(why) == {6, 8, 11, 15} and len(set(why.values())) == 4 and all(why.values())
    assert len(policy_json("explain", path, "--all", "--method", "POST", "--url", "https://api.example/a")["passed_over"]) == 6
    got = policy_json("explain", path, "--url", "https://api.example/a")
    assert got["rule"]["line"] == 8 and got["rule"]["file"] == str(path) and "api.example" in got["rule"]["text"]


@pytest.mark.parametrize("words,verdict,line", [
    (["--url", "https://api.example/"], "allow rule_allows", 8),
    (["--url", "https://api.example/", "--websocket"], "deny no_upgrade", 8),
    (["--url", "https://api.example/", "--method", "POST", "--header", "x-api-key", "--body", "2MiB"], "deny body_too_large", 11),
    (["--url", "https://api.example/", "--method", "POST", "--header", "x-api-key", "--resolving", "10.0.0.7"],
     "deny rule_denies", 10),
    (["--connect", "api.example:5432"], "allow rule_allows", 15),
    (["--connect", "api.example:5432/udp"], "deny not_in_policy", None),
    (["--connect", "10.0.0.7:53/udp"], "deny rule_denies", 10),
    (["--connect", "169.254.169.254:80"], "deny metadata", None),
    (["--connect", "api.example:5432", "--level", "SECRET"], "deny mode_none", None),
    (["--url", "https://api.example/", "--level", "public"], "allow open_mode", None),
])
def test_explain_verdicts(write, words, verdict, line):
    got = policy_json("explain", write(EXPLAINED), *words)
    assert f"{got['action']} {got['reason']}" == verdict
    assert (got["rule"]["line"] if got["rule"] else None) == line
    if line is None and got["mode"] != "PROXIED":
        assert got["passed_over_count"] == 0


def test_explain_a_wide_rule_and_metadata(write):
    got = policy_json("explain", write("version: 1\nrules:\n  - allow: 0.0.0.0/0\n"), "--connect", "169.254.169.254:80")
    assert got["reason"] == "metadata" and "metadata" in got["passed_over"][0]["why"]


def test_explain_needs_a_sound_policy(write):
    p = policy("explain", write("version: 3\n"), "--url", "https://a.example/", code=1)
    assert "error:" in p.stderr and p.stdout == ""
    assert policy_json("explain", write("version: 3\n"), "--url", "https://a.example/", code=1)["errors"]


# -- usage -----------------------------------------------------------------------------

@pytest.mark.parametrize("words", [
    [], ["nonsense"], ["--nonsense"], ["check"], ["check", "a", "b"], ["test"], ["test", "a.yaml"], ["explain"],
    ["explain", "a"], ["explain", "--url", "https://a.example/"], ["explain", "a", "--url", "a.example"],
    ["explain", "a", "--url", "https://a.example/", "--connect", "a.example:1"],
    ["explain", "a", "--connect", "a.example"], ["explain", "a", "--connect", "a.example:1", "--method", "GET"],
    ["explain", "a", "--connect", "a.example:1", "--header", "x"], ["explain", "a", "--connect", "a.example:1", "--body", "1"],
    ["explain", "a", "--connect", "a.example:1", "--websocket"],
    ["explain", "a", "--url", "https://a.example/", "--level", "TOP"],
    ["explain", "a", "--url", "https://a.example/", "--body", "big"],
    ["explain", "a", "--url", "https://a.example/", "--resolving", "b.example"],
    ["explain", "a", "--url", "https://a.example/", "--method", "G T"],
    ["explain", "a", "--url", "https://a.example/", "--header", "x", "--header", "y"],
    ["show", "stray"], ["reload", "stray"]])
def test_wrong_usage_is_2(words):
    p = policy(*words, code=2)
    assert p.stderr.strip() and not p.stdout


@pytest.mark.parametrize("words", [["show"], ["reload"]])
def test_no_daemon_is_3(words):
    assert "no_daemon" in policy(*words, code=3).stderr


@pytest.mark.parametrize("sub", [[], ["check"], ["test"], ["explain"], ["show"], ["reload"]], ids=lambda s: "-".join(s) or "policy")
def test_help(sub):
    p = policy(*sub, "--help")
    assert "Usage: netpawl policy" in p.stdout and "xample" in p.stdout and "--json" in p.stdout


# -- the live policy ---------------------------------------------------------------------

def test_show_and_reload(make_daemon, write):
    path = write(GOOD)
    d = make_daemon(policy=path).start()
    shown = json.loads(d.cli("policy", "show", "--json", check=0).stdout)
    assert shown["hash"] == policy_json("check", path)["hash"] and shown["rules"] == 2
    text = d.cli("policy", "show", check=0).stdout
    for word in (str(path), shown["hash"], "PROXIED", "allow: a.example", f"{path}:4"):
        assert word in text
    assert "is live, as before: 2 rules" in d.cli("policy", "reload", check=0).stdout
    write(GOOD + "  - allow: c.example\n")
    new = policy_json("check", path)["hash"]
    p = d.cli("policy", "reload", check=0)
    assert p.stdout == f"policy {new[:12]}… is live: 3 rules, 0 connections cut, 0 sessions raised\n" and p.stderr == ""
    # errors leave what is live alone
    write("version: 1\nrulez: []\n")
    p = d.cli("policy", "reload", check=1)
    assert "(bad_policy)" in p.stderr and f"{path}:2:1: " in p.stderr and p.stdout == ""
    assert json.loads(d.cli("policy", "show", "--json", check=0).stdout)["hash"] == new


def test_show_has_the_conditions(make_daemon, write):
    d = make_daemon(policy=write("""version: 1
rules:
  - deny: a.example
    methods: [POST, PUT]
    paths: ["/x/**"]
  - {allow: b.example, headers: x-key, max_body: 2kB, websocket: true, for: [CONFIDENTIAL]}
  - {allow: "c.example:443", inspect: false}
  - {allow: d.example, dns: [MX, TXT], capture: 1kB}
  - allow: e.example
""")).start()
    rows = [r.get("conditions") for r in json.loads(d.cli("policy", "show", "--json", check=0).stdout)["listing"]]
    assert rows == ["methods: POST, PUT; paths: /x/**", "headers: x-key; for: CONFIDENTIAL; websocket: true; max_body: 2000B",
                    "inspect: false", "capture: 1000B; dns: MX, TXT", None]
    text = d.cli("policy", "show", check=0).stdout
    for row in filter(None, rows):
        assert f"  {row}\n" in text


def test_check_warns_of_a_deny_below_its_allow(write):
    rules = "version: 1\nrules:\n  - allow: b.example\n  - {deny: 'b.example:443', methods: POST}\n"
    [warning] = policy_json("check", write(rules))["warnings"]
    assert warning["line"] == 4 and "never used" in warning["message"] and warning["other"]["line"] == 3
    upside_down = "version: 1\nrules:\n  - {deny: 'b.example:443', methods: POST}\n  - allow: b.example\n"
    assert policy_json("check", write(upside_down))["warnings"] == []


def test_check_warns_of_users_and_groups_that_the_host_does_not_have(write):
    rules = "version: 1\napproval: {group: %s}\naccess:\n  approver: [group:%s, user:%s]\nrules:\n  - ask: b.example\n"
    said = [w["message"] for w in policy_json("check", write(rules % ("no-such-group", "no-such-group", "no-such-user")))["warnings"]]
    assert len(said) == 3 and "no group no-such-group, so that approve.sock is root's alone" in said[0], said
    assert "no group no-such-group" in said[1] and "no user no-such-user" in said[2]
    assert policy_json("check", write(rules % ("root", "61000", "root")))["warnings"] == [], "the control: names of this host, and numbers"


def test_warnings_say_what_to_write_instead(write):
    rules = "version: 1\nrules:\n  - {deny: b.example, methods: POST}\n  - allow: 'b.example:8443'\n  - {allow: b.example, inspect: false}\n"
    refused, inspected = [w["message"] for w in policy_json("check", write(rules))["warnings"]]
    assert "are refused, for that deny depends on requests" in refused and "put this rule above it" in refused
    assert 'are inspected in spite of "inspect: false"' in inspected and "narrow the deny" in inspected


def test_show_without_a_file(make_daemon):
    d = make_daemon(policy=False).start()
    shown = json.loads(d.cli("policy", "show", "--json", check=0).stdout)
    assert shown["file"] is None and shown["rules"] == 0
    assert "PROXIED" in d.cli("policy", "show", check=0).stdout


# -- the manual page ---------------------------------------------------------------------

def reader_keys():
    """Every key of the reader's table, but for old names of others."""
    found = re.findall(r'KEY\(\s*"([^"]+)", *\w+,\s*"([^"]*)"', (base.ROOT / "user" / "policy" / "keys.c").read_text())
    return {key for key, about in found if "as it was called before" not in about}


def blocks():
    return re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.S | re.M)


def test_page_names_every_key():
    keys = reader_keys()
    assert keys >= {"version", "rules", "allow", "methods", "inspect_ports", "timeout", "remember"}, keys
    text = PAGE.read_text()
    missing = [k for k in keys if f"*{k}*" not in text and k not in ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET")]
    assert missing == []
    examples = "\n".join(blocks())
    assert [k for k in keys if not re.search(rf"\b{k}:", examples)] == []


def test_examples_of_the_page_are_sound(write):
    whole = [b for b in blocks() if b.startswith("version: 1\n")]
    assert len(whole) >= 6
    for text in whole:
        policy("check", "--strict", write(text))
    cases = [b for b in blocks() if "\ncases:\n" in b]
    assert len(cases) == 2
    for text in cases:
        assert re.fullmatch(r"\d+ cases, 0 failed\n", policy("test", write(text, "page.case")).stdout)


FRAMES = {"- ": "version: 1\ndeciders: {{guard: {{socket: /run/g.sock}}}}\nrules:\n{}", "": "version: 1\n{}"}


def test_parts_of_policies_in_the_page_are_sound(write):
    """What is no whole policy becomes one by what has to stand around it."""
    write("version: 1\n", "lists.yaml")
    write("version: 1\n", "team/rules.yaml")
    write("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "corp-root.pem")
    parts = [b for b in blocks() if not b.startswith("version: 1\n") and "\ncases:\n" not in b]
    assert len(parts) >= 12
    for text in parts:
        policy("check", "--strict", write(FRAMES["- " if text.startswith("- ") else ""].format(text)))


def test_page_names_every_option():
    text = PAGE.read_text()
    for sub in ("check", "test", "explain", "show", "reload"):
        assert f"netpawl policy {sub}" in text
        for option in re.findall(r"^  (--\w+)", policy(sub, "--help").stdout, re.M):
            assert option in ("--socket", "--help") or f"*{option}*" in text, (sub, option)


def test_page_builds(folder):
    if not shutil.which("scdoc"):
        pytest.skip("scdoc is not installed")
    with open(PAGE) as source:
        p = subprocess.run(["scdoc"], stdin=source, capture_output=True, text=True, timeout=180)
    assert p.returncode == 0 and ".SH NAME" in p.stdout, p.stderr
