# SPDX-License-Identifier: MIT
"""netpawl policy suggest DIR: rules for the hosts that a project's files name. The files are a stranger's."""
import json
import os
import re
import subprocess

import pytest

from lib import base

SECRET = "s3cr3tTOKEN"
FILES = {
    ".mcp.json": json.dumps({"$schema": "https://schema.example/mcp.json", "mcpServers": {
        "tracker": {"type": "http", "url": f"https://user:{SECRET}@mcp.tracker.example/mcp?key={SECRET}"},
        "remote": {"command": "npx", "args": ["mcp-remote", "https://mcp.remote.example:8443/sse", "--header", SECRET]},
        "live": {"url": "wss://live.example/ws"}, "local": {"url": "http://localhost:8080/"}}}),
    ".cursor/mcp.json": json.dumps({"mcpServers": {"again": {"url": "https://mcp.tracker.example/other"}}}),
    "litellm_config.yaml": f"model_list:\n  - model_name: x\n    litellm_params: {{api_base: 'https://models.example/v1', api_key: {SECRET}}}\n",
    ".env": f"# https://comment.example\nOPENAI_BASE_URL=https://llm.example/v1\nOPENAI_API_KEY={SECRET}\n"
            f"DATABASE_URL='postgres://app:{SECRET}@db.corp.example/app'\n",
    ".npmrc": f"registry=https://packages.example/npm/\n//other.example/npm/:_authToken={SECRET}\n",
    "pip.conf": f"[global]\nindex-url = https://bot:{SECRET}@python.example/simple\nextra-index-url =\n    https://more.example/simple\n",
    ".git/config": f'[remote "origin"]\n\turl = git@git.example:team/project.git\n[remote "web"]\n\turl = https://{SECRET}@github.com/a/b.git\n',
    "docker-compose.yml": "services:\n  web:\n    image: images.example/team/web:1\n    environment:\n      - API=http://api.corp.example:9000/\n"
                          "      - CACHE=redis://cache:6379/0\n  plain: {image: postgres}\n",
}
WANTED = {
    "mcp.tracker.example:443", "mcp.remote.example:8443", "live.example:443", "models.example:443", "llm.example:443",
    "db.corp.example:5432", "packages.example:443", "other.example:443", "python.example:443", "more.example:443", "git.example:22",
    "github.com:443", "images.example:443", "api.corp.example:9000"}


def suggest(folder, *more):
    return subprocess.run([str(base.NETPAWL), "policy", "suggest", str(folder), *more], capture_output=True, text=True, timeout=60)


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def dests(text):
    return set(re.findall(r'^  - allow: "(.*)"$', text, re.M))


def checked(tmp_path, text):
    """It is a policy, whatever the files said: what check and explain have of it."""
    policy = tmp_path / "suggested.yaml"
    policy.write_text("version: 1\n" + text)
    got = subprocess.run([str(base.NETPAWL), "policy", "check", str(policy), "--json"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, (text, got.stdout)
    return policy


def test_the_hosts_of_a_project(tmp_path):
    got = suggest(write(tmp_path / "p", FILES))
    assert got.returncode == 0 and dests(got.stdout) == WANTED, (dests(got.stdout) ^ WANTED, got.stdout)
    assert SECRET not in got.stdout + got.stderr and "comment.example" not in got.stdout and "schema.example" not in got.stdout
    for comment in (".mcp.json, mcpServers.tracker.url", ".npmrc:2", "litellm_config.yaml:3", ".git/config:2", "docker-compose.yml:3"):
        assert f"  # {comment}\n" in got.stdout, (comment, got.stdout)
    assert "# 2 are left out" in got.stdout, got.stdout  # localhost, the container
    policy = checked(tmp_path, got.stdout)
    for method, url, verdict in (("GET", "https://packages.example/npm/a", "allow"), ("PUT", "https://packages.example/npm/a", "deny"),
                                 ("GET", "https://github.com/a/b.git/info/refs", "allow"),
                                 ("POST", "https://github.com/a/b.git/git-upload-pack", "allow"),
                                 ("POST", "https://github.com/a/b.git/git-receive-pack", "deny"),
                                 ("POST", "https://mcp.tracker.example/mcp", "allow")):
        told = subprocess.run([str(base.NETPAWL), "policy", "explain", str(policy), "--url", url, "--method", method, "--json"],
                              capture_output=True, text=True, timeout=60)
        assert json.loads(told.stdout)["action"] == verdict, (method, url, told.stdout)
    again = json.loads(suggest(tmp_path / "p", "--json").stdout)
    assert dests(again["yaml"]) == WANTED and again["rules"] == len(WANTED) and again["left_out"] == 2


def test_nothing_and_no_directory(tmp_path):
    assert suggest(tmp_path).stdout == "# No file here names a host.\n"
    assert suggest(tmp_path / "none").returncode == 1
    (tmp_path / "file").write_text("")
    assert suggest(tmp_path / "file").returncode == 1


@pytest.mark.parametrize("kind", ["file", "folder", "pipe", "device", "deep"])
def test_no_link_leads_out(tmp_path, kind):
    """The control: the same as a file is read."""
    outside, inside = tmp_path / "outside", tmp_path / "p"
    write(outside, {".npmrc": "registry=https://outside.example/\n", "mcp.json": '{"url": "https://outside.example/"}'})
    inside.mkdir()
    if kind == "file":
        (inside / ".npmrc").symlink_to(outside / ".npmrc")
    elif kind == "folder":
        (inside / ".cursor").symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(inside / ".npmrc")  # nobody writes to it: opening it must not wait
    elif kind == "device":
        (inside / ".npmrc").mkdir()
    else:
        (inside / "q").mkdir()
        (inside / ".npmrc").symlink_to("q/../../outside/.npmrc")
    got = suggest(inside)
    assert got.returncode == 0 and "outside.example" not in got.stdout and "No file here" in got.stdout, got.stdout
    assert "is left out" in got.stdout, got.stdout
    for path in (".npmrc", ".cursor"):
        if (inside / path).is_symlink() or (inside / path).exists():
            (inside / path).unlink() if not (inside / path).is_dir() or (inside / path).is_symlink() else (inside / path).rmdir()
    write(inside, {".npmrc": "registry=https://outside.example/\n"})
    assert dests(suggest(inside).stdout) == {"outside.example:443"}


HOSTILE = {
    "words that break out": {".npmrc": 'registry=https://a.example"\n  - allow: "**"\n', ".env": "X=https://b.example\n- allow: evil\n"},
    "names with quotes": {"mcp.json": json.dumps({"a": 'https://x"]}.example/', "b": "https://a.example\\n- allow: y/", "c": "https://**/"})},
    "keys with escapes": {"mcp.json": json.dumps({"k\n  - allow: \"**\"\n#\u202e\x1b[31m": "https://keyed.example/"})},
    "stars": {".env": "A=https://*.example/\nB=https://**/\nC=https://.example/\nD=https://[::]/\nE=https://0.0.0.0/\n"},
    "not text": {".npmrc": b"registry=https://\x00.example/\n\xff\xfehttps://\xc3\x28.example/\n", "mcp.json": b"\x00\x01", "compose.yml": b"\xff"},
    "anchors": {"compose.yml": "a: &a [https://anchored.example/]\nb: *a\n"},
    "a deep tree": {"mcp.json": "[" * 1500 + '"https://deep.example/"' + "]" * 1500, "compose.yml": "[" * 5000},
    "too large": {".npmrc": b"#" * (1 << 20) + b"\nregistry=https://late.example/\n"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_mean_no_good(tmp_path, name):
    got = suggest(write(tmp_path / "p", HOSTILE[name]))
    assert got.returncode == 0, got.stderr
    assert all(" " <= c < "\x7f" or c == "\n" for c in got.stdout), got.stdout
    assert not {"**", "evil", "y", "*.example"} & dests(got.stdout), got.stdout
    for line in got.stdout.splitlines():
        assert re.fullmatch(r'#.*|rules:|  #.*|  - allow: "[a-z0-9.:\[\]-]+"|    (methods|paths|max_body|websocket): .*', line), line
    if dests(got.stdout):
        checked(tmp_path, got.stdout)


def test_as_many_as_anybody_reads(tmp_path):
    lines = "".join(f"r{i}=https://h{i}.example/\n" for i in range(5000))
    got = suggest(write(tmp_path / "p", {".env": lines}))
    assert len(dests(got.stdout)) == 256 and "# 4744 are left out" in got.stdout
    checked(tmp_path, got.stdout)
