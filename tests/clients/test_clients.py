# SPDX-License-Identifier: MIT
"""Real clients, untouched, in a PROXIED sandbox, and real servers on the other side of the inspector. They find the
session's authority through the usual variables and names by the DNS gate. Each
request that is refused is also sent on the host, without the gate, where it gets through."""
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from lib import base, websocket
from lib.clients import BAD, GOOD, SLOW, UPLOAD, Clients
from lib.world import FAR


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def need_module(name):
    if subprocess.run([base.PYTHON, "-c", f"import {name}"], capture_output=True).returncode:
        pytest.skip(f"python3-{name} is not installed")


@pytest.fixture(scope="module")
def world_up():
    need("openssl", "nginx", "node", "nghttpd", "fcgiwrap", "git", "dpkg-deb")
    need_module("websockets")
    with contextlib.ExitStack() as stack:
        yield Clients(stack)


@pytest.fixture
def net(world_up):
    """Two inspectors, the same before and after: none died on the way."""
    base.eventually(lambda: len(world_up.inspectors()) == 2, 10)
    before = world_up.inspectors()
    yield world_up
    assert world_up.daemon.running()
    after = world_up.inspectors()
    assert after == before, f"an inspector died: {world_up.daemon.text()[-2000:]}"


def head_of(text):
    """(status, {field: value}) of the last head in what `curl -D -` printed in front of a body."""
    heads = re.findall(r"HTTP/[0-9.]+ (\d{3})[^\n]*\n((?:[^\r\n]+\r?\n)*)\r?\n", text)
    status, lines = heads[-1]
    return int(status), {l.split(":", 1)[0].lower(): l.split(":", 1)[1].strip() for l in lines.splitlines() if ":" in l}


# -- the clients: one list of requests for all of them ------------------------------------------

TRANSPARENT = ["curl-h1", "curl-h2", "wget", "urllib", "requests", "aiohttp", "httpx", "httpx-h2", "node-fetch", "node-https",
               "go", "java"]
EXPLICIT = ["curl-h1", "curl-h2", "wget", "urllib", "requests", "aiohttp", "httpx", "httpx-h2", "node-connect", "go", "java"]


def client_argv(net, client, todo):
    if client in ("wget", "curl-h1", "curl-h2"):
        need(client.split("-")[0])
    if client.startswith("node-"):
        need("node")
        return ["node", net.programs.dir / "probe.js", client[5:], json.dumps(todo)]
    if client == "go":
        if not net.programs.wait("go"):
            pytest.skip("go is not installed")
        return [net.programs.dir / "probe", json.dumps(todo)]
    if client == "java":
        if not net.programs.wait("java", f"trust-{net.origins.authority.pem.stem}"):
            pytest.skip("java is not installed")
        words = [w for r in todo for w in (r["m"], r["u"], r.get("b", ""))]
        return ["java", "-XX:+UseSerialGC", "-cp", net.programs.dir, "Probe", *words]
    if client in ("requests", "aiohttp", "httpx"):
        need_module(client)
    if client == "httpx-h2":
        need_module("httpx"), need_module("h2")
    return [base.PYTHON, net.programs.dir / "probe.py", client, json.dumps(todo)]


def talk(net, client, todo, control=False, **kw):
    p = (net.control if control else net.run)(*client_argv(net, client, todo), timeout=60, **kw)
    got = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(got) == len(todo), (p.stdout, p.stderr)
    return got


def requests_of(mark):
    """Each with the status that it has to get, and the reason of a refusal."""
    q = f"?mark={mark}"
    return [
        ({"m": "GET", "u": f"https://py.test/a{q}"}, 200, None),
        ({"m": "POST", "u": f"https://py.test/post{q}", "b": "hello words"}, 200, None),
        ({"m": "GET", "u": "https://nginx.test/small.txt"}, 200, None),
        ({"m": "POST", "u": f"https://node.test/echo{q}", "b": "hello node"}, 200, None),
        ({"m": "GET", "u": f"http://py.test/plain{q}"}, 200, None),
        ({"m": "POST", "u": f"https://get-only.test/x{q}-no", "b": "secret"}, 403, "rule_denies"),
        ({"m": "GET", "u": f"http://denied.test/x{q}-no"}, 403, "rule_denies"),
        ({"m": "GET", "u": f"https://denied.test/x{q}-no"}, 403, "rule_denies"),
        ({"m": "GET", "u": f"https://nowhere.example/x{q}-no"}, 403, "not_in_policy"),
        ({"m": "GET", "u": f"https://py.test/again{q}"}, 200, None),
    ]


def check_answers(mark, expected, got, explicit):
    for (request, status, reason), answer in zip(expected, got):
        if explicit and reason and request["u"].startswith("https://") and "get-only" not in request["u"]:
            # refused at CONNECT: what a client makes of that is its own
            assert "error" in answer or answer["status"] == 403, (request, answer)
            continue
        assert (answer.get("status"), answer.get("reason")) == (status, reason), (request, answer)
        if reason:
            assert json.loads(answer["text"])["reason"] == reason, answer
        if "proto" in answer and request["u"].startswith("https"):
            assert answer["proto"] in ("HTTP/2.0", "HTTP_2"), answer
    seen = [json.loads(got[i]["text"]) for i in (0, 1, 3, 4, 9)]
    assert [(s["method"], s["path"], s["host"], s["text"]) for s in seen] == [
        ("GET", f"/a?mark={mark}", "py.test", ""), ("POST", f"/post?mark={mark}", "py.test", "hello words"),
        ("POST", f"/echo?mark={mark}", "node.test", "hello node"), ("GET", f"/plain?mark={mark}", "py.test", ""),
        ("GET", f"/again?mark={mark}", "py.test", "")]
    assert got[2]["text"] == "small words\n" * 100


def check_events(net, mark, expected, after, explicit):
    """One event for each request, or for the CONNECT that would have led to it."""
    least = sum(1 for r, _, _ in expected if mark in r["u"]) - 2 * explicit
    base.eventually(lambda: len([e for e in net.events(after=after) if mark in e["url"]]) >= least, 5)
    events = net.events(after=after)
    for request, status, reason in expected:
        url = request["u"]
        told = [e for e in events if e["url"] == url]
        if not told and explicit:
            told = [e for e in events if url.split("/")[2] in e["url"] and e["method"] == "CONNECT"]
        assert told and told[-1]["status"] == status and told[-1]["reason"] == (reason or "rule_allows"), (url, told)


def check_client(net, client, explicit):
    mark, after = base.token(), net.last()
    expected = requests_of(mark)
    todo = [r for r, _, _ in expected]
    got = talk(net, client, todo, env=net.proxy_env() if explicit else None)
    check_answers(mark, expected, got, explicit)
    assert f"{mark}-no" not in net.origins.log(), "a refused request reached an origin"
    check_events(net, mark, expected, after, explicit)


@pytest.mark.parametrize("client", TRANSPARENT)
def test_client(net, client):
    check_client(net, client, explicit=False)


@pytest.mark.parametrize("client", EXPLICIT)
def test_client_through_the_explicit_proxy(net, client):
    check_client(net, client, explicit=True)


@pytest.mark.parametrize("client", ["curl-h1", "curl-h2", "wget", "requests", "node-https", "go"])
def test_control_what_is_refused_gets_through_without_the_gate(net, client):
    mark = base.token()
    todo = [r for r, _, reason in requests_of(mark) if reason]
    assert [a.get("status") for a in talk(net, client, todo, control=True)] == [200] * 4
    assert net.origins.log().count(f"{mark}-no") >= 4


# -- programs with a job of their own -------------------------------------------------------------

@pytest.mark.parametrize("way", ["transparent", "explicit"])
def test_git(net, way):
    need("git", "fcgiwrap", "nginx")
    env = {**(net.proxy_env() if way == "explicit" else {}), "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    where = net.dir / f"clone-{way}"
    got = net.run("git", "clone", "-q", "https://git.test/repo.git", where, env=env)
    assert got.returncode == 0, got.stderr
    assert (where / "README").read_text() == "a repository\n"
    assert net.run("git", "-C", where, "fsck", "--full", env=env).returncode == 0
    got = net.run("git", "-C", where, "fetch", "-q", env=env)
    assert got.returncode == 0, got.stderr
    # the rule is for reading; a push carries data out
    (where / "new").write_text("data that leaves\n")
    ident = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "safe.directory=*"]
    base.sh("git", "-C", where, *ident, "add", ".", env=net.env())
    base.sh("git", "-C", where, *ident, "commit", "-qm", "more", env=net.env())
    head = base.sh("git", "-C", net.origins.git / "repo.git", *ident, "rev-parse", "main").stdout
    got = net.run("git", "-C", where, "push", "-q", "origin", "HEAD:main", env=env)
    assert got.returncode != 0 and "403" in got.stderr, got
    assert base.sh("git", "-C", net.origins.git / "repo.git", *ident, "rev-parse", "main").stdout == head
    if way == "transparent":
        got = net.control("git", *ident, "-C", where, "push", "-q", "origin", "HEAD:refs/heads/control")
        assert got.returncode == 0, got.stderr


@pytest.mark.parametrize("way", ["transparent", "explicit"])
def test_npm_install(net, way):
    need("npm")
    where = net.writable(f"npm-{way}")
    (where / "package.json").write_text('{"name":"x","version":"1.0.0"}')
    (where / "package.json").chmod(0o666)
    got = net.run("npm", "install", "--registry", "https://npm.test/", "--no-audit", "--no-fund", "--no-update-notifier",
                  "--cache", where / "cache", "np-left-pad", env=net.proxy_env() if way == "explicit" else None, cwd=where)
    assert got.returncode == 0, got.stderr
    assert (where / "node_modules/np-left-pad/index.js").read_text() == "module.exports = 'padded';\n"


@pytest.mark.parametrize("way", ["transparent", "explicit"])
def test_apt(net, way):
    need("apt-get")
    root = net.dir / f"apt-{way}"
    for sub in (".", "state", "state/lists", "state/lists/partial", "cache", "cache/archives", "cache/archives/partial", "here"):
        net.writable(f"apt-{way}/{sub}")
    (root / "sources.list").write_text("deb [trusted=yes arch=all] https://apt.test/debian np main\n")
    options = [w for o in (f"Dir::Etc::sourcelist={root}/sources.list", "Dir::Etc::sourceparts=-", "Dir::Etc::parts=-",
                           f"Dir::State={root}/state", f"Dir::Cache={root}/cache", "APT::Sandbox::User=root",
                           "Dir::State::status=/var/lib/dpkg/status", "Acquire::Languages=none", "Acquire::Retries=0")
               for w in ("-o", o)]
    env = net.proxy_env() if way == "explicit" else None
    got = net.run("apt-get", *options, "update", env=env)
    assert got.returncode == 0 and "Err" not in got.stdout + got.stderr, got
    got = net.run("apt-get", *options, "download", "np-hello", env=env, cwd=root / "here")
    assert got.returncode == 0, got
    deb = "np-hello_1.0_all.deb"
    assert (root / "here" / deb).read_bytes() == (net.origins.www / "debian/pool" / deb).read_bytes()


@pytest.mark.parametrize("origin", ["nginx.test", "nghttpd.test", "h1.nginx.test"])
def test_nghttp(net, origin):
    need("nghttp")
    got = net.run("nghttp", "-nv", "--no-dep", f"https://{origin}/small.txt?1", f"https://{origin}/small.txt?2")
    assert got.returncode == 0 and len(re.findall(r":status: 200", got.stdout)) == 2, got


@pytest.mark.parametrize("origin", ["nginx.test/small.txt", "h1.nginx.test/small.txt", "nghttpd.test/small.txt",
                                    "sserver.test/", "node.test/echo", "py.test/x"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_either_protocol_to_every_server(net, origin, version):
    got = net.curl(version, "-o", "/dev/null", "-w", "%{http_code} %{http_version} %{num_connects}", f"https://{origin}")
    assert got.stdout == f"200 {'2' if version == '--http2' else '1.1'} 1", got


# -- calls with trailers, websockets ------------------------------------------------------------------

@pytest.fixture(scope="module")
def grpc(world_up):
    need("node")
    p = world_up.run("node", world_up.programs.dir / "probe.js", "grpc", "https://node.test")
    assert p.returncode == 0, p
    return json.loads(p.stdout)


def test_grpc_like_calls_end_with_trailers(net, grpc):
    assert grpc["unary"]["got"] == ["hello"] and grpc["unary"]["trailers"] == {"grpc-status": "0", "grpc-message": "fine"}
    assert grpc["unary"]["headers"]["content-type"] == "application/grpc"


def test_grpc_like_calls_go_both_ways_at_once(net, grpc):
    assert grpc["bidi"]["got"] == ["re:a", "re:b", "re:c", "re:d"] and grpc["bidi"]["trailers"] == {"grpc-status": "0"}


def test_grpc_like_calls_fail_and_are_cut_as_the_origin_does_it(net, grpc):
    assert grpc["fail"]["headers"]["grpc-status"] == "7" and grpc["fail"]["got"] == []
    assert grpc["reset"]["got"] == ["some"] and grpc["reset"]["code"] == 2, "a cut stream looks cut"


def test_grpc_like_calls_are_cancelled_at_the_origin_too(net, grpc):
    assert grpc["watch"]["got"] == ["watching"]
    assert base.eventually(lambda: int(net.control("curl", "-sS", "https://node.test/cancelled").stdout) >= 1, 5)


def test_grpc_like_calls_many_at_once(net, grpc):
    assert grpc["many"] == [[f"m{i}", "0"] for i in range(50)]


def test_request_trailers_over_h2(net, grpc):
    assert grpc["trailers"]["headers"]["x-got"] == "17"


WEBSOCKET = """
import asyncio, hashlib, json, os, ssl, sys, websockets

async def main(url):
    kw = {"ssl": ssl.create_default_context()} if url.startswith("wss") else {}
    async with websockets.connect(url, max_size=None, **kw) as ws:
        out = [await ws.recv()]
        await ws.send("words")
        out.append(await ws.recv())
        data = os.urandom(1 << 20)
        await ws.send(data)
        out.append(await ws.recv() == data)
        await asyncio.wait_for(await ws.ping(), 10)
        out.append("pong")
        for i in range(200):
            await ws.send(str(i))
        out.append([await ws.recv() for _ in range(200)] == [str(i) for i in range(200)])
    out.append(ws.close_code)
    print(json.dumps(out))

try:
    asyncio.run(main(sys.argv[1]))
except websockets.InvalidStatusCode as e:
    print(json.dumps([e.status_code, e.headers.get("x-netpawl-reason")]))
"""


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_websocket(net, scheme):
    need_module("websockets")
    after = net.last()
    got = net.run(base.PYTHON, "-c", WEBSOCKET, f"{scheme}://ws.test/chat")
    assert got.returncode == 0 and json.loads(got.stdout) == ["welcome", "words", True, "pong", True, 1000], got
    assert net.events(lambda e: e["status"] == 101 and "ws.test/chat" in e["url"], after)


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_websocket_where_no_rule_grants_one(net, scheme):
    need_module("websockets")
    got = net.run(base.PYTHON, "-c", WEBSOCKET, f"{scheme}://nows.test/chat")
    assert got.returncode == 0 and json.loads(got.stdout) == [403, "no_upgrade"], got
    got = net.control(base.PYTHON, "-c", WEBSOCKET, f"{scheme}://nows.test/chat")
    assert got.returncode == 0 and json.loads(got.stdout)[0] == "welcome", got


UPGRADE = websocket.request("rawws.test", "/switch")


def latin(data):
    return data.decode("latin-1")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_first_bytes_behind_a_101_are_not_lost(net, scheme):
    """The origin sends its 101 and its first words in one write, as servers that greet do."""
    steps = [{"send": UPGRADE}, {"read": 1}, {"bytes": 13}, {"send": latin(websocket.masked(b"ping"))}, {"bytes": 8}]
    for control in (True, False):
        got = net.raw(f"{scheme}://rawws.test", *steps, control=control)
        assert got[0]["status"] == 101, (control, got)
        assert got[1:] == [latin(websocket.frame(b"first words")), latin(websocket.frame(b"<ping>"))], (control, got)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bytes_that_a_client_sends_ahead_of_the_101_are_not_lost(net, scheme):
    got = net.raw(f"{scheme}://rawws.test", {"send": UPGRADE + latin(websocket.masked(b"ahead"))}, {"read": 1}, {"bytes": 13}, {"bytes": 9})
    assert got[0]["status"] == 101 and "<ahead>" in "".join(got[1:]), got


# -- HTTP/1.1 on a socket -------------------------------------------------------------------------------

SCHEMES = pytest.mark.parametrize("scheme", ["http", "https"])


def get(path, host="raw.test", method="GET", more="", body=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n{body}"


def bodies(got):
    return [json.loads(g["body"]) for g in got]


@SCHEMES
def test_one_connection_carries_many_requests(net, scheme):
    steps = []
    for i in range(5):
        steps += [{"send": get(f"/echo?{i}")}, {"read": 1}]
    got = net.raw(f"{scheme}://raw.test", *steps)
    assert [b["head"].split()[1] for b in bodies(got)] == [f"/echo?{i}" for i in range(5)]
    assert bodies(got)[-1]["n"] == 4, "the origin's connection is kept, too"


@SCHEMES
def test_pipelined_requests_are_answered_in_order(net, scheme):
    parts = [get("/echo?0"), get("/echo?1", method="POST", more="Content-Length: 5\r\n", body="hello"),
             get("/echo?2", method="POST", more="Transfer-Encoding: chunked\r\n", body="3\r\nabc\r\n0\r\n\r\n"),
             get("/echo?3", method="HEAD"), get("/echo?4")]
    got = net.raw(f"{scheme}://raw.test", {"send": "".join(parts)}, {"read": 3}, {"read": 1, "head_only": True}, {"read": 1})
    assert [g.get("status") for g in got] == [200] * 5, got
    assert [json.loads(got[i]["body"])["head"].split()[1] for i in (0, 1, 2, 4)] == [f"/echo?{i}" for i in (0, 1, 2, 4)]
    assert [json.loads(got[i]["body"])["body"] for i in (0, 1, 2, 4)] == ["", "hello", "abc", ""]


def test_each_pipelined_request_is_judged(net):
    mark = base.token()
    parts = [get("/x?0", "py.test"), get(f"/x?{mark}", "denied.test"),
             get(f"/x?{mark}", "get-only.test", "POST", "Content-Length: 3\r\n", "abc"), get("/x?3", "py.test")]
    got = net.raw("http://py.test", {"send": "".join(parts)}, {"read": 4})
    assert [g["status"] for g in got] == [200, 403, 403, 200], got
    assert mark not in net.origins.log()
    got = net.raw("http://py.test", {"send": "".join(parts)}, {"read": 4}, control=True)
    assert [g["status"] for g in got] == [200] * 4
    assert mark in net.origins.log()


@SCHEMES
def test_chunked_bodies_both_ways(net, scheme):
    chunks = "".join(f"{n:x}\r\n{'c' * n}\r\n" for n in (1, 2, 4095, 16385, 70000)) + "0\r\n\r\n"
    put = get("/echo", method="PUT", more="Transfer-Encoding: chunked\r\n", body=chunks)
    got = net.raw(f"{scheme}://raw.test", {"send": put}, {"read": 1},
                  {"send": get("/slow")}, {"read": 1}, {"send": get("/trailers")}, {"read": 1})
    assert json.loads(got[0]["body"])["len"] == 1 + 2 + 4095 + 16385 + 70000
    assert "transfer-encoding: chunked" in json.loads(got[0]["body"])["head"].lower()
    assert [g["body"] for g in got[1:]] == ["piecemeal", "hello world"]


@SCHEMES
def test_response_trailers(net, scheme):
    got = net.raw(f"{scheme}://raw.test", {"send": get("/trailers", more="TE: trailers\r\nConnection: te\r\n")}, {"read": 1})
    assert dict(got[0]["trailers"]) == {"x-checksum": "abc", "x-other": "d"}, got


CHUNKED_WITH_TRAILER = get("/echo", method="POST", more="Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n",
                           body="5\r\nhello\r\n0\r\nX-Sum: 17\r\n\r\n")


def test_request_trailers_on_a_kept_origin_connection(net):
    got = net.raw("http://raw.test", {"send": get("/echo")}, {"read": 1}, {"send": CHUNKED_WITH_TRAILER}, {"read": 1})
    assert json.loads(got[1]["body"])["trailers"].lower() == "x-sum: 17\r\n", got


def test_request_trailers_on_a_new_origin_connection(net):
    """Short enough to be complete before the origin is dialled."""
    got = net.raw("https://raw.test", {"send": get("/idle-close")}, {"read": 1}, {"pause": 0.2},
                  {"send": CHUNKED_WITH_TRAILER}, {"read": 1})
    seen = json.loads(got[1]["body"])
    assert seen["n"] == 0, "the origin's connection is new"
    assert seen["body"] == "hello" and seen["trailers"].lower() == "x-sum: 17\r\n", seen


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@SCHEMES
def test_expect_100_continue(net, scheme, version):
    if scheme == "http" and version == "--http2":
        version = "--http2-prior-knowledge"
    got = net.curl(version, "-H", "Expect: 100-continue", "--expect100-timeout", "20", "--data-binary",
                   f"@{net.origins.upload}", f"{scheme}://raw.test/continue", "-H", "content-type: application/octet-stream")
    seen = json.loads(got.stdout)
    assert seen["expect"] and not seen["early"] and (seen["len"], seen["sha"]) == (UPLOAD, net.origins.upload_sha), seen


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_expect_100_continue_at_an_h2_origin(net, version):
    got = net.curl(version, "-D", "/dev/stderr", "-H", "Expect: 100-continue", "--expect100-timeout", "20", "--data-binary",
                   f"@{net.origins.upload}", "https://node.test/sha")
    assert json.loads(got.stdout) == {"sha": net.origins.upload_sha, "len": UPLOAD}, got
    assert re.findall(r"^HTTP/[0-9.]+ (\d+)", got.stderr, re.M) == ["100", "200"], got


@SCHEMES
def test_expect_100_continue_and_a_final_answer(net, scheme):
    """401 instead of 100: nothing of the body goes anywhere."""
    mark = base.token()
    got = net.raw(f"{scheme}://raw.test", {"send": get(f"/no-continue?mark={mark}", method="POST",
                                                      more="Content-Length: 1000000\r\nExpect: 100-continue\r\n")}, {"read": 1})
    assert got[0]["status"] == 401 and got[0]["body"] == "no!!\n", got
    assert f"no-continue {mark} early=False" in net.origins.log()


def test_expect_100_continue_at_a_host_that_is_refused(net):
    got = net.curl("--http1.1", "-D", "-", "-H", "Expect: 100-continue", "--data-binary", f"@{net.origins.upload}",
                   "https://denied.test/x")
    assert head_of(got.stdout)[0] == 403 and "HTTP/1.1 100" not in got.stdout, got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("origin", ["py.test", "node.test"])
def test_head_and_responses_without_a_body(net, origin, version):
    w = ["-w", "%{http_code} %{size_download} %{num_connects}\n", "-o", "/dev/null", version]
    words = [[*w, "-I", f"https://{origin}/x"], [*w, f"https://{origin}/status/204"], [*w, f"https://{origin}/status/304"],
             [*w, f"https://{origin}/x"]]
    argv = []
    for i, some in enumerate(words):
        argv += (["--next", "-sS", "-m", "20"] if i else []) + some
    got = net.curl(*argv)
    lines = [l.split() for l in got.stdout.splitlines()]
    assert [(l[0], l[2]) for l in lines] == [("200", "1"), ("204", "0"), ("304", "0"), ("200", "0")], got
    assert [int(l[1]) > 0 for l in lines] == [False, False, False, True]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_head_says_how_long_a_get_would_be(net, version):
    got = net.curl(version, "-I", "https://nginx.test/small.txt")
    assert head_of(got.stdout)[1]["content-length"] == "1200", got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_caches_ranges_codings_and_cookies(net, version):
    got = net.curl(version, "-H", 'If-None-Match: "v1"', "-D", "-", "https://py.test/cache")
    assert head_of(got.stdout)[0] == 304 and head_of(got.stdout)[1]["etag"] == '"v1"'
    got = net.curl(version, "-r", "6-10", "-D", "-", "https://nginx.test/small.txt")
    status, fields = head_of(got.stdout)
    assert status == 206 and fields["content-range"] == "bytes 6-10/1200" and got.stdout.endswith("words")
    got = net.curl(version, "--compressed", "-D", "-", "https://nginx.test/gz/small.txt")
    assert head_of(got.stdout)[1]["content-encoding"] == "gzip" and got.stdout.endswith("small words\n" * 100)
    got = net.curl(version, "-D", "-", "https://py.test/cookies")
    assert [l.split(": ")[1] for l in got.stdout.splitlines() if l.lower().startswith("set-cookie")] == [
        f"c{i}=v{i}; Path=/" for i in range(3)]
    got = net.curl(version, "-H", "Cookie: a=1; b=2", "https://node.test/echo")
    assert json.loads(got.stdout)["headers"]["cookie"] == "a=1; b=2"


@SCHEMES
def test_103_arrives_before_the_response_is_made(net, scheme):
    mark = base.token()
    got = net.raw(f"{scheme}://raw.test", {"send": get(f"/hints?mark={mark}")}, {"read": 1},
                  {"other": {"host": "raw.test", "port": 80, "send": get(f"/hints-ack?mark={mark}")}}, {"read": 1})
    assert [g.get("status") for g in got] == [103, 200, 200], got
    assert dict(got[0]["headers"])["link"] == "</style.css>; rel=preload"
    assert got[2]["body"] == "after the hints" and dict(got[2]["headers"])["x-final"] == "yes"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("origin", ["node.test/hints", "raw.test/two-hints"])
def test_103_between_all_protocols(net, version, origin):
    got = net.curl(version, "-D", "-", f"https://{origin}")
    heads = re.findall(r"^HTTP/[0-9.]+ (\d+)", got.stdout, re.M)
    assert heads == ["103"] * (2 if "two" in origin else 1) + ["200"], got


def test_an_http_1_0_client_gets_no_103_and_a_closed_end(net):
    got = net.raw("http://raw.test", {"send": "GET /two-hints HTTP/1.0\r\nHost: raw.test\r\n\r\n"}, {"rest": 1})
    assert got[0].startswith("HTTP/1.1 200") and got[0].endswith("\r\n\r\nbody"), got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_server_sent_events_do_not_wait_for_each_other(net, version):
    """Each event is sent only after the one before was seen by the client: what is held back anywhere is a deadlock."""
    ident, seen = base.token(), []
    p = net.start("curl", "-sSN", "-m", "25", version, f"https://py.test/sse/{ident}", stdout=subprocess.PIPE)
    try:
        for line in p.stdout:
            if line.startswith(b"data: "):
                seen.append(int(line[6:]))
                assert net.control("curl", "-sS", "-X", "POST", f"https://py.test/ack/{ident}/{seen[-1]}").returncode == 0
        assert p.wait(10) == 0 and seen == [0, 1, 2], seen
    finally:
        base.reap(p)


# -- origins that behave as some do ------------------------------------------------------------------

@SCHEMES
@pytest.mark.parametrize("path,text", [("/until-close", "the end"), ("/old", "old words"), ("/large-head", "large")])
def test_origins_of_all_ages(net, scheme, path, text):
    got = net.raw(f"{scheme}://raw.test", {"send": get(path)}, {"read": 1}, {"send": get("/echo?next")}, {"read": 1})
    assert got[0]["body"].endswith(text) and json.loads(got[1]["body"])["head"].startswith("GET /echo?next"), got
    assert net.curl("--http2", f"{scheme}://raw.test{path}").stdout.endswith(text)


@SCHEMES
@pytest.mark.parametrize("path", ["/cut", "/cut-chunked"])
def test_what_the_origin_cut_looks_cut(net, scheme, path):
    for version in ("--http1.1", "--http2"):
        got = net.curl(version, "-w", "%{http_code}", "-o", "/dev/null", f"{scheme}://raw.test{path}")
        assert got.returncode in (18, 56, 92), got


def test_an_end_that_tls_does_not_confirm_is_said_in_the_event(net):
    """Origins that end a body so are many: the client gets it, and the record says what it may be."""
    after = net.last()
    got = net.curl("--http1.1", "-o", "/dev/null", "https://raw.test/cut-old")
    assert got.returncode == 0, got
    told = net.events(lambda e: e["url"] == "https://raw.test/cut-old", after)
    assert "truncated-possible" in told[0]["text"], told


@SCHEMES
@pytest.mark.parametrize("path", ["/broken", "/both-lengths"])
def test_what_is_not_http_is_a_bad_gateway(net, scheme, path):
    got = net.curl("-D", "-", f"{scheme}://raw.test{path}")
    status, fields = head_of(got.stdout)
    assert (status, fields["x-netpawl-reason"]) == (502, "origin_unreachable"), got


@SCHEMES
def test_a_response_that_nobody_asked_for_answers_nobody(net, scheme):
    steps = [s for path in ("/surplus", "/echo?a", "/echo?b") for s in ({"send": get(path)}, {"read": 1})]
    got = net.raw(f"{scheme}://raw.test", *steps)
    assert got[0]["body"] == "first" and "poisoned" not in json.dumps(got[1:]), got
    assert [json.loads(g["body"])["head"].split()[1] for g in got[1:]] == ["/echo?a", "/echo?b"]
    got = net.raw(f"{scheme}://raw.test", *steps[:4], control=True)
    assert got[1]["body"] == "poisoned", "the control: a client alone takes it"


@SCHEMES
def test_a_kept_connection_that_the_origin_closed_is_not_the_client_s_problem(net, scheme):
    got = net.raw(f"{scheme}://raw.test", {"send": get("/idle-close")}, {"read": 1}, {"pause": 0.3},
                  {"send": get("/echo", method="POST", more="Content-Length: 3\r\n", body="abc")}, {"read": 1},
                  {"send": get("/idle-close")}, {"read": 1}, {"pause": 0.3}, {"send": get("/echo")}, {"read": 1})
    assert [g.get("status") for g in got] == [200] * 4, got


def count(net, mark):
    return int(net.control("curl", "-sS", f"http://raw.test/count?mark={mark}").stdout)


@SCHEMES
def test_a_lost_get_is_sent_again(net, scheme):
    mark = base.token()
    got = net.raw(f"{scheme}://raw.test", {"send": get("/once")}, {"read": 1}, {"send": get(f"/once?mark={mark}")}, {"read": 1})
    assert [g.get("status") for g in got] == [200, 200] and count(net, mark) == 2, got


@SCHEMES
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_lost_post_is_not_sent_again(net, scheme, method):
    """RFC 9110, 9.2.2: the origin may have done what it was asked before it closed."""
    mark = base.token()
    got = net.raw(f"{scheme}://raw.test", {"send": get("/once")}, {"read": 1},
                  {"send": get(f"/once?mark={mark}", method=method, more="Content-Length: 0\r\n")}, {"read": 1})
    assert (got[1].get("status"), count(net, mark)) == (502, 1), got


def test_a_client_that_half_closes_gets_its_answer(net):
    steps = [{"send": get("/bytes/3000000", "py.test")}, {"shut": 1}, {"read": 1}]
    got = net.raw("http://py.test", *steps)
    assert got[0].get("len") == 3000000, got


def test_a_client_that_half_closes_late_gets_its_answer(net):
    """The whole response is in the inspector, on its way to a slow reader, when that says that it has no more to ask."""
    steps = [{"send": get("/bytes/200000", "py.test")}, {"pause": 0.5}, {"shut": 1}, {"pause": 0.3}, {"read": 1}]
    old = net.world_sysctl("net.ipv4.tcp_wmem")
    net.world.sysctl(net.world.host, {"net.ipv4.tcp_wmem": "4096 8192 8192"})  # or the kernel would hold it all
    try:
        for control in (True, False):
            got = net.raw("http://py.test", *steps, small=2048, control=control)
            assert got[0].get("len") == 200000, (control, got)
    finally:
        net.world.sysctl(net.world.host, {"net.ipv4.tcp_wmem": old})


def test_an_answer_before_the_body_was_read(net):
    for version in ("--http1.1", "--http2"):
        got = net.curl(version, "-w", "%{http_code}", "--data-binary", f"@{net.origins.upload}", "-H", "Expect:",
                       "https://raw.test/early")
        assert "too large413" in got.stdout, got


SEND_FIRST = """
import json, requests, sys
for host in ("denied.test", "small.test"):
    try:
        got = requests.post(f"https://{host}/x", data=open(sys.argv[1], "rb").read(int(sys.argv[2])), timeout=20)
        print(json.dumps([got.status_code, got.headers.get("x-netpawl-reason")]))
    except requests.RequestException as e:
        print(json.dumps(str(e)))
"""


@pytest.mark.parametrize("size", [500_000, 5_000_000])
def test_a_client_that_sends_its_whole_body_first_reads_the_refusal(net, size):
    """As requests, urllib and many more do: they look for an answer when everything is sent, and not before."""
    need_module("requests")
    got = net.control(base.PYTHON, "-c", SEND_FIRST, net.origins.upload, size)
    assert [json.loads(l) for l in got.stdout.splitlines()] == [[200, None]] * 2, got
    got = net.run(base.PYTHON, "-c", SEND_FIRST, net.origins.upload, size)
    assert [json.loads(l) for l in got.stdout.splitlines()] == [[403, "rule_denies"], [413, "body_too_large"]], got


# -- what a request and a response may look like ------------------------------------------------------

@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("target", ["/a%20b//c/../d?x=%2F&y=?&", "/?", "/%e2%82%ac/~u/(x)/@:!$&'*+,;=", "/" + "long/" * 1500])
def test_targets_arrive_as_they_were_written(net, version, target):
    got = net.curl(version, "--path-as-is", "-g", f"https://py.test{target}")
    assert json.loads(got.stdout)["path"] == target, got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods(net, version, method):
    got = net.curl(version, "-X", method, "-d", "words", "https://py.test/x")
    assert (json.loads(got.stdout)["method"], json.loads(got.stdout)["text"]) == (method, "words"), got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("origin", ["py.test", "node.test"])
def test_bodies_where_they_are_rare(net, version, origin):
    got = net.curl(version, "-X", "GET", "-d", '{"query": 1}', f"https://{origin}/_search")
    assert (json.loads(got.stdout)["method"], json.loads(got.stdout)["text"]) == ("GET", '{"query": 1}'), got
    got = net.curl(version, "-X", "POST", "-d", "", f"https://{origin}/x")
    assert (json.loads(got.stdout)["method"], json.loads(got.stdout)["body"]) == ("POST", 0), got


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("origin", ["py.test", "node.test"])
def test_large_heads(net, version, origin):
    fields = [w for i in range(60) for w in ("-H", f"x-large-{i}: {'v' * 200}")]
    got = net.curl(version, *fields, "-H", "x_under: 1", f"https://{origin}/x")
    seen = json.loads(got.stdout)["headers"]
    assert [seen[f"x-large-{i}"] for i in range(60)] == ["v" * 200] * 60 and seen["x_under"] == "1"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_odd_fields_of_a_response(net, version):
    got = net.run("curl", "-sS", version, "-D", "-", "https://raw.test/odd-fields")
    lines = [l.strip() for l in got.stdout.splitlines()]
    assert "x_under_score: 1" in lines and lines.count("x-twice: a") == 1 and lines.count("x-twice: b") == 1, got
    assert [l for l in lines if l.startswith("x-empty:")], got
    assert 'content-disposition: attachment; filename="gr\u00fc\u00dfe.txt"' in lines, got


def test_a_client_that_closes(net):
    got = net.raw("https://py.test", {"send": get("/x", "py.test", more="Connection: close\r\n")}, {"read": 1}, {"rest": 1})
    assert got[0]["status"] == 200 and got[1] == "" and dict(got[0]["headers"])["connection"] == "close", got
    got = net.raw("http://py.test", {"send": "GET /x HTTP/1.0\r\nHost: py.test\r\n\r\n"}, {"read": 1}, {"rest": 1})
    assert got[0]["status"] == 200 and got[1] == "", got


def test_ports_and_families(net):
    for version in ("--http1.1", "--http2"):
        got = net.curl(version, "-o", "/dev/null", "-w", "%{http_code}", "https://ports.nginx.test:8443/small.txt")
        assert got.stdout == "200", got
        # the DNS gate gives out addresses of both families, whatever those of the origin are
        for family, prefix in (("-4", "198.18."), ("-6", "fd6e:")):
            got = net.curl(version, family, "-o", "/dev/null", "-w", "%{http_code} %{remote_ip}", "https://v6.nginx.test/small.txt")
            assert got.stdout.startswith(f"200 {prefix}"), got
    got = net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://ports.nginx.test:9443/small.txt")
    # The inspector ends it once it knows the name and the port: before curl has seen that it is connected, or after its first bytes.
    assert got.returncode in (7, 35) and got.stdout == "000", ("no rule leads to a port that is not inspected: it is refused", got)
    assert net.api.wait_events(lambda es: any("ports.nginx.test:9443" in e.get("url", "") for e in es), session=net.session, reason="not_in_policy")
    got = net.control("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "https://ports.nginx.test:9443/small.txt")
    assert got.stdout == "200", got


def test_sessions_share_no_connection_to_an_origin(net):
    net.api.create(net.session + "-other", "CONFIDENTIAL")
    # several, for there are two inspectors that they may meet
    some = "for i in 1 2 3 4 5 6; do curl -sS --http1.1 http://py.test/x?1 http://py.test/x?2; done"
    script = f"{some}; echo; touch first; until [ -e second ]; do sleep 0.05; done; {some}"
    first = net.start("sh", "-c", script, stdout=subprocess.PIPE)
    try:
        assert base.eventually(lambda: (net.dir / "first").exists(), 20)
        other = subprocess.run(net.argv("sh", "-c", some, session=net.session + "-other"), capture_output=True, text=True,
                               env=net.env(), timeout=30).stdout
        (net.dir / "second").touch()
        one, two = first.stdout.read().decode().split("\n")[:2]
    finally:
        base.reap(first)
    one, two, other = (set(re.findall(r'"peer": (\d+)', text)) for text in (one, two, other))
    assert other and not other & (one | two), (one, two, other)
    assert one & two, "the control: one session does share"


# -- much, slow, and many ----------------------------------------------------------------------------------

@pytest.mark.parametrize("origin", ["nginx.test", "h1.nginx.test"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_large_download_is_intact(net, origin, version):
    got = net.run("sh", "-c", f"curl -sS -m 60 {version} https://{origin}/big | sha256sum", timeout=70)
    assert got.stdout.split()[0] == net.origins.big_sha, got


@pytest.mark.parametrize("origin", ["node.test", "py.test"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_large_upload_is_intact(net, origin, version, framing):
    more = ["-H", "Transfer-Encoding: chunked"] if framing == "chunked" and version == "--http1.1" else []
    source = ["-T", "-"] if framing == "chunked" else ["-T", str(net.origins.upload)]
    words = " ".join(f"'{w}'" for w in [version, *more, *source])
    got = net.run("sh", "-c", f"curl -sS -m 20 -X POST {words} https://{origin}/sha < {net.origins.upload}", timeout=70)
    assert json.loads(got.stdout) == {"sha": net.origins.upload_sha, "len": UPLOAD}, got


@pytest.mark.parametrize("i,version,size", [(i, v, s) for i, (v, s) in enumerate(
    (v, s) for s in (1000, UPLOAD) for v in ("--http1.1", "--http2") for _ in range(2))])
def test_an_upload_that_is_ahead_of_its_origin(net, i, version, size):
    """The name resolves late: the client has sent what it may send before there is an origin."""
    curl = f"curl -sS -m 8 {version} -X POST -H Expect: -T - https://{SLOW[i]}/sha"
    got = net.run("sh", "-c", f"head -c {size} {net.origins.upload} | {curl}")
    sha = hashlib.sha256(net.origins.upload.read_bytes()[:size]).hexdigest()
    assert got.stdout and json.loads(got.stdout) == {"sha": sha, "len": size}, got


def peak_rss(net, processes, seconds=1.5):
    """The most that the inspectors took while the processes were at it, less what they had before."""
    before, peak, end = net.rss(), 0, time.monotonic() + seconds
    started = [start() for start in processes]
    try:
        while time.monotonic() < end:
            peak = max(peak, net.rss())
            time.sleep(0.02)
        assert all(p.poll() is None for p in started), "they were to be slow"
    finally:
        for p in started:
            base.reap(p)
    return peak - before


# AddressSanitizer keeps what was freed for a while, in each of two processes.
ASAN = b"__asan_init" in base.NETPAWLD.read_bytes() if base.NETPAWLD.exists() else False
# Eight connections with a backlog on each leg, and TLS; without a bound it would be hundreds.
BOUND = (24 << 20) + (600 << 20 if ASAN else 0)


@pytest.mark.parametrize("origin", ["nginx.test", "h1.nginx.test"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_slow_readers_do_not_fill_the_inspector(net, origin, version):
    slow = lambda: net.start("curl", "-sS", version, "--limit-rate", "100k", "-o", "/dev/null", f"https://{origin}/big")
    grown = peak_rss(net, [slow] * 8)
    assert grown < BOUND, f"{grown >> 20} MiB"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_slow_origins_do_not_fill_the_inspector(net, version):
    mark = base.token()
    sender = lambda: net.start("curl", "-sS", version, "-H", "Expect:", "-T", net.origins.www / "big",
                               f"https://py.test/stall?{mark}")
    grown = peak_rss(net, [sender] * 8)
    assert grown < BOUND, f"{grown >> 20} MiB"
    net.control("curl", "-sS", "-X", "POST", f"https://py.test/ack/{mark}/0")


NO_READERS = """
import socket, ssl, sys, time
host, context, kept = sys.argv[1], ssl.create_default_context(), []

def ask(path, size=0):
    s = socket.socket()
    s.settimeout(5)
    if size:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    s.connect((host, 443))
    s = context.wrap_socket(s, server_hostname=host)
    s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    return s

for i in range(16):
    kept.append(ask("/big", 4096))
time.sleep(1)
for i in range(4):  # whichever inspector they meet
    s, got = ask(f"/small.txt?{i}"), b""
    while block := s.recv(65536):
        got += block
    print(got.count(b"small words"), flush=True)
"""


@pytest.mark.parametrize("origin", ["h1.nginx.test", "nginx.test"])
def test_connections_that_are_not_read_do_not_stop_others(net, origin):
    """Sixteen downloads that nobody takes, and then a small file. With nginx.test they would all be on one HTTP/2
    connection of an inspector, whose window the sixteen can use up."""
    for run in (net.control, net.run):
        got = run(base.PYTHON, "-c", NO_READERS, origin)
        assert got.stdout.split() == ["100"] * 4, got


def test_clients_that_go_away_leave_nothing_behind(net):
    def fds():
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in net.inspectors())

    def goers():
        for version in ("--http1.1", "--http2"):
            for words in (["https://nginx.test/big"], ["https://h1.nginx.test/big"], ["https://node.test/grpc.Echo/Watch"],
                          ["-T", net.origins.upload, "https://py.test/stall?none"], ["https://py.test/hold/none"],
                          ["https://raw.test/hints"]):
                yield net.start("curl", "-sS", version, "-m", "0.3", "-o", "/dev/null", *words, stderr=subprocess.DEVNULL)

    before = fds()
    for _ in range(3):
        for p in list(goers()):
            p.wait(20)
            base.reap(p)
    # kept connections to origins stay, a few for each host; those of clients do not
    assert base.eventually(lambda: fds() <= before + 12, 10), (before, fds())


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_fifty_connections_at_once(net, version):
    """Fifty requests that all wait for each other's connection to be there."""
    ident = base.token()
    urls = [f"https://py.test/hold/{ident}?{i}" for i in range(50)]
    p = net.start("curl", "-sS", "-m", "25", version, "--no-progress-meter", "-Z", "--parallel-immediate", "--parallel-max",
                  "50", "-w", "%{http_code}\\n", *[w for u in urls for w in ("-o", "/dev/null", u)], stdout=subprocess.PIPE)
    try:
        # all fifty are at the origin before one is answered
        assert base.eventually(lambda: net.origins.log().count(f"hold {ident}") == 50, 10)
        assert net.control("curl", "-sS", "-X", "POST", f"https://py.test/ack/{ident}/0").returncode == 0
        out = p.stdout.read().decode().split()
        assert p.wait(20) == 0 and out == ["200"] * 50, out
    finally:
        base.reap(p)


def h2load(net, *words):
    need("h2load")
    got = net.run("h2load", *words, timeout=60)
    assert got.returncode == 0, got
    done = re.search(r"(\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", got.stdout)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", got.stdout)
    return [int(n) for n in done.groups()], [int(n) for n in codes.groups()]


@pytest.mark.parametrize("origin", ["nginx.test/small.txt", "h1.nginx.test/small.txt", "node.test/echo"])
def test_fifty_streams_at_once(net, origin):
    assert h2load(net, "-n", "1000", "-c", "2", "-m", "50", f"https://{origin}") == ([1000, 1000, 1000, 0, 0], [1000, 0, 0, 0])


def test_streams_that_an_origin_turns_away_are_sent_again(net):
    """nginx says GOAWAY after each ten requests of a connection."""
    got = h2load(net, "-n", "300", "-c", "1", "-m", "30", "https://goaway.test/small.txt")
    assert got == ([300, 300, 300, 0, 0], [300, 0, 0, 0])


@pytest.mark.parametrize("words", [[], ["-d", "some words"]])
def test_an_origin_that_takes_few_streams_at_once(net, words):
    """Two, of which it tells in its SETTINGS: those may come after the first requests are there."""
    urls = [w for i in range(30) for w in ("-o", "/dev/null", f"https://narrow.test/small.txt?{i}")]
    got = net.curl("--http2", "-Z", "--parallel-max", "30", "--no-progress-meter", *words, "-w", "%{http_code}\n", *urls)
    assert got.stdout.split() == (["405"] if words else ["200"]) * 30, got


def test_each_of_many_streams_is_judged(net):
    mark = base.token()
    total, codes = h2load(net, "-n", "100", "-c", "1", "-m", "50", f"https://denied.test/x?{mark}")
    assert codes == [0, 0, 100, 0] and mark not in net.origins.log()
    got = net.control("curl", "-sS", "-w", "%{http_code}", "-o", "/dev/null", f"https://denied.test/x?{mark}")
    assert got.stdout == "200" and mark in net.origins.log()


# -- TLS ------------------------------------------------------------------------------------------------------

def test_clients_of_tls_1_2(net):
    for version in ("--http1.1", "--http2"):
        got = net.curl("-v", "--tls-max", "1.2", version, "-o", "/dev/null", "-w", "%{http_code}", "https://nginx.test/small.txt")
        assert got.stdout == "200" and "TLSv1.2" in got.stderr, got


def test_clients_of_tls_1_1_are_turned_away(net):
    got = net.curl("--tls-max", "1.1", "--ciphers", "DEFAULT:@SECLEVEL=0", "https://nginx.test/small.txt")
    assert got.returncode == 35, got


RESUME = """
import json, socket, ssl, sys
out = []
for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    context = ssl.create_default_context()
    context.minimum_version = context.maximum_version = version
    session, reused = None, []
    for i in range(6):
        name = "nginx.test" if i < 5 else "h1.nginx.test"  # the last: a ticket of another host
        with context.wrap_socket(socket.create_connection((name, 443)), server_hostname=name, session=session) as s:
            s.sendall(f"GET /small.txt HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n".encode())
            text = b""
            while block := s.recv(65536):
                text += block
            assert text.startswith(b"HTTP/1.1 200"), text[:300]
            reused.append(s.session_reused)
            session = s.session
    out.append(reused)
print(json.dumps(out))
"""


def test_clients_resume(net):
    """Whichever inspector they meet, for tickets are the session's; and for the same host only."""
    got = net.run(base.PYTHON, "-c", RESUME)
    assert got.returncode == 0 and json.loads(got.stdout) == [[False, True, True, True, True, False]] * 2, got


@pytest.mark.parametrize("origin", ["short.nginx.test", "tls12.test"])
def test_connections_to_origins_resume(net, origin):
    urls = [w for i in range(5) for w in ("-o", "/dev/null", f"https://{origin}/small.txt?{i}")]
    before = len(net.origins.log("nginx.log").splitlines())
    got = net.curl("--http1.1", "-w", "%{http_code} %{num_connects}\n", *urls)
    assert [l.split()[0] for l in got.stdout.splitlines()] == ["200"] * 5, got
    lines = [l for l in net.origins.log("nginx.log").splitlines()[before:] if l.startswith(origin)]
    assert [l.rsplit(" ", 1)[1] for l in lines[1:]] == ["reused=r"] * 4, lines


def no_server_saw(net, name, before):
    lines = net.origins.log("nginx.log").splitlines()[before:]
    return not [l for l in lines if l.startswith(name + " ")]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_certificate_is_refused(net, name):
    before, after = len(net.origins.log("nginx.log").splitlines()), net.last()
    for version in ("--http2", "--http1.1"):  # the client's own carelessness does not count
        got = net.curl("-k", "-D", "-", version, "-d", "secret", f"https://{name}/small.txt")
        assert got.returncode == 0, got
        status, fields = head_of(got.stdout)
        assert (status, fields["x-netpawl-reason"]) == (502, "origin_untrusted"), got.stdout
    assert no_server_saw(net, name, before), "a request reached an origin that did not prove itself"
    told = net.events(lambda e: e["reason"] == "origin_untrusted" and name in e["url"], after)
    assert told and told[0]["status"] == 502, told
    got = net.control("curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}", f"https://{name}/small.txt",
                      env={"OPENSSL_CONF": str(net.origins.dir / "openssl.cnf")})
    assert got.stdout == "200", got


@pytest.mark.parametrize("name,reason", [("weak.test", "origin_untrusted"), ("old.test", "origin_tls")])
def test_weak_keys_and_old_protocols_are_refused(net, name, reason):
    """RSA of 1024 bits, TLS 1.1: openssl s_server."""
    got = net.curl("-k", "-D", "-", f"https://{name}/")
    status, fields = head_of(got.stdout)
    assert (status, fields["x-netpawl-reason"]) == (502, reason), got
    got = net.control("curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}", "--ciphers", "DEFAULT:@SECLEVEL=0",
                      f"https://{name}/", env={"OPENSSL_CONF": str(net.origins.dir / "openssl.cnf")})
    assert got.stdout == "200", got


@pytest.mark.parametrize("name", GOOD)
def test_a_good_certificate_is_taken(net, name):
    got = net.curl("-o", "/dev/null", "-w", "%{http_code}", f"https://{name}/small.txt")
    assert got.stdout == "200", got


@pytest.mark.parametrize("name", ["expired.test", "must-staple.test"])
def test_a_bad_certificate_is_refused_through_the_explicit_proxy(net, name):
    got = net.curl("-k", "-D", "-", f"https://{name}/small.txt", env=net.proxy_env())
    status, fields = head_of(got.stdout)
    assert (status, fields["x-netpawl-reason"]) == (502, "origin_untrusted"), got


def test_an_inspector_that_died_is_replaced(world_up):
    """Whatever ends it: a new one takes over its work."""
    net = world_up
    before = base.eventually(lambda: len(net.inspectors()) == 2 and net.inspectors(), 10)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert base.eventually(lambda: len(net.inspectors()) == 2 and not set(net.inspectors()) & set(before)
                           and net.api.health()["inspectors"] == 2, 10), net.daemon.text()[-2000:]
    got = net.curl("-o", "/dev/null", "-w", "%{http_code}", "https://py.test/x")
    assert got.stdout == "200", got


# -- the explicit proxy, byte by byte --------------------------------------------------------------------------

def test_connect_to_a_refused_host_says_why(net):
    got = net.raw(f"http://{FAR[4]}", {"send": "CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"}, {"read": 1})
    assert got[0]["status"] == 403 and json.loads(got[0]["body"])["reason"] == "rule_denies", got


@pytest.mark.parametrize("target", ["127.0.0.1:80", "169.254.169.254:80", "[::1]:443", "192.0.2.2:443", "py.test:22",
                                    "py.test:9000", "localhost:443"])
def test_connect_to_where_no_rule_leads(net, target):
    got = net.raw(f"http://{FAR[4]}", {"send": f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"}, {"read": 1})
    assert got[0]["status"] == 403, got


def test_connect_to_a_port_that_nobody_inspects(net):
    """A rule allows the address: what a sandbox may dial by itself it may reach through CONNECT."""
    target = f"{FAR[4]}:9000"
    got = net.raw(f"http://{FAR[4]}", {"send": f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"},
                  {"read": 1, "head_only": True}, {"send": "not http at all\n"}, {"bytes": 16})
    assert got[0]["status"] == 200 and got[1] == "not http at all\n", got


def test_connect_to_such_a_port_and_bytes_in_one_write(net):
    target = f"{FAR[4]}:9000"
    got = net.raw(f"http://{FAR[4]}", {"send": f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nnot http at all\n"},
                  {"read": 1, "head_only": True}, {"bytes": 16})
    assert got[0].get("status") == 200 and got[1] == "not http at all\n", got


@pytest.mark.parametrize("way", ["transparent", "explicit"])
def test_a_host_whose_bytes_pass_unseen(net, way):
    """inspect: false. The certificate is the origin's own, which the session's authority knows nothing of."""
    env = net.proxy_env() if way == "explicit" else None
    got = net.curl("-o", "/dev/null", "https://pinned.test/small.txt", env=env)
    assert got.returncode == 60, got
    got = net.curl("--cacert", net.origins.authority.pem, "-o", "/dev/null", "-w", "%{http_code}",
                   "https://pinned.test/small.txt", env=env)
    assert got.stdout == "200", got


def test_a_client_hello_ahead_of_the_tunnel(net):
    """CONNECT is granted at once, and the name resolves late: TLS begins before there is an origin."""
    got = net.curl("--cacert", net.origins.authority.pem, "-o", "/dev/null", "-w", "%{http_code}",
                   "https://slow-pinned.test/small.txt", env=net.proxy_env())
    assert got.stdout == "200", got


def test_plain_http_inside_of_connect_is_judged(net):
    mark = base.token()
    got = net.raw(f"http://{FAR[4]}", {"send": "CONNECT get-only.test:80 HTTP/1.1\r\nHost: get-only.test:80\r\n\r\n"},
                  {"read": 1, "head_only": True}, {"send": get("/x", "get-only.test")}, {"read": 1},
                  {"send": get(f"/x?{mark}", "get-only.test", "DELETE")}, {"read": 1},
                  {"send": get(f"/x?{mark}", "py.test")}, {"read": 1})
    assert [g.get("status") for g in got] == [200, 200, 403, 421] and mark not in net.origins.log(), got


def test_a_connect_inside_of_connect_is_refused(net):
    got = net.raw(f"http://{FAR[4]}", {"send": "CONNECT py.test:80 HTTP/1.1\r\nHost: py.test:80\r\n\r\n"},
                  {"read": 1, "head_only": True}, {"send": "CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"},
                  {"read": 1})
    assert got[1]["status"] == 403, got


def test_connect_and_hello_in_one_write(net):
    """A client that does not wait for the 200."""
    both = "CONNECT py.test:80 HTTP/1.1\r\nHost: py.test:80\r\n\r\n" + get("/x?early", "py.test")
    got = net.raw(f"http://{FAR[4]}", {"send": both}, {"read": 1, "head_only": True}, {"read": 1})
    assert got[1].get("status") == 200 and json.loads(got[1]["body"])["path"] == "/x?early", got


def test_absolute_targets(net):
    mark = base.token()
    parts = [get("http://py.test/x?1", "py.test"), get(f"http://denied.test/x?{mark}", "denied.test"),
             get("https://nginx.test/small.txt", "nginx.test")]
    got = net.raw(f"http://{FAR[4]}", {"send": "".join(parts)}, {"read": 3})
    assert [g["status"] for g in got] == [200, 403, 200] and mark not in net.origins.log(), got
