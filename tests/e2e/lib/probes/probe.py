# SPDX-License-Identifier: MIT
"""One client, several requests: probe.py CLIENT JSON. The requests are a list of {m, u, b}; each answer is one line of
JSON: {status, reason, text} or {error}. The clients are as they come: addresses, proxies and certificates are theirs
to find."""
import json
import re
import subprocess
import sys


def answer(status, headers, body):
    if isinstance(body, str):
        body = body.encode()
    print(json.dumps({"status": status, "reason": headers.get("x-netpawl-reason"),
                      "text": body[:4000].decode("latin-1"), "len": len(body)}), flush=True)


def failed(e):
    print(json.dumps({"error": f"{type(e).__name__}: {e}"}), flush=True)


def by_urllib(todo):
    import urllib.error
    import urllib.request

    for r in todo:
        request = urllib.request.Request(r["u"], method=r["m"], data=r["b"].encode() if r.get("b") is not None else None)
        try:
            with urllib.request.urlopen(request, timeout=15) as got:
                answer(got.status, got.headers, got.read())
        except urllib.error.HTTPError as e:
            answer(e.code, e.headers, e.read())
        except OSError as e:
            failed(e)


def by_requests(todo):
    import requests

    with requests.Session() as session:
        for r in todo:
            try:
                got = session.request(r["m"], r["u"], data=r.get("b"), timeout=15)
                answer(got.status_code, got.headers, got.content)
            except requests.RequestException as e:
                failed(e)


def by_aiohttp(todo):
    import asyncio

    import aiohttp

    async def run():
        async with aiohttp.ClientSession(trust_env=True, timeout=aiohttp.ClientTimeout(total=15)) as session:
            for r in todo:
                try:
                    async with session.request(r["m"], r["u"], data=r.get("b")) as got:
                        answer(got.status, got.headers, await got.read())
                except (aiohttp.ClientError, asyncio.TimeoutError) as e:
                    failed(e)

    asyncio.run(run())


def by_httpx(todo, http2=False):
    import httpx

    with httpx.Client(http2=http2, timeout=15) as session:
        for r in todo:
            try:
                got = session.request(r["m"], r["u"], content=r.get("b"))
                if http2 and r["u"].startswith("https"):
                    assert got.http_version == "HTTP/2", got.http_version
                answer(got.status_code, got.headers, got.content)
            except httpx.HTTPError as e:
                failed(e)


def by_httpx_h2(todo):
    by_httpx(todo, True)


def by_curl(todo, *more):
    for r in todo:
        body = ["--data-binary", r["b"]] if r.get("b") is not None else []
        p = subprocess.run(["curl", "-sS", "-m", "15", "-D", "/dev/stderr", *more, "-X", r["m"], *body, r["u"]],
                           capture_output=True, text=True)
        heads = re.split(r"\r?\n\r?\n", p.stderr.strip() + "\n\n")
        head = [h for h in heads if h.startswith("HTTP/")][-1:]
        if p.returncode or not head:
            print(json.dumps({"error": f"curl {p.returncode}: {p.stderr}"}), flush=True)
            continue
        lines = head[0].splitlines()
        fields = {l.split(":", 1)[0].lower(): l.split(":", 1)[1].strip() for l in lines[1:] if ":" in l}
        answer(int(lines[0].split()[1]), fields, p.stdout)


def by_curl_h1(todo):
    by_curl(todo, "--http1.1")


def by_curl_h2(todo):
    by_curl(todo, "--http2")


def by_wget(todo):
    for r in todo:
        body = [f"--body-data={r['b']}"] if r.get("b") is not None else []
        p = subprocess.run(["wget", "-S", "-q", "-O", "-", "--tries=1", "--timeout=15", "--content-on-error",
                            f"--method={r['m']}", *body, r["u"]], capture_output=True, text=True)
        heads = re.findall(r"HTTP/1\.[01] (\d{3}).*((?:\n  .*)*)", p.stderr)
        if not heads:
            print(json.dumps({"error": f"wget {p.returncode}: {p.stderr}"}), flush=True)
            continue
        status, rest = heads[-1]
        fields = {l.split(":", 1)[0].strip().lower(): l.split(":", 1)[1].strip() for l in rest.splitlines() if ":" in l}
        answer(int(status), fields, p.stdout)


if __name__ == "__main__":
    globals()["by_" + sys.argv[1].replace("-", "_")](json.loads(sys.argv[2]))
