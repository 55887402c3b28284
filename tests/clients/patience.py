#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
How long common clients wait for an answer, as they come: what `approval: hold` has to stay below. A server on loopback reads each
request and says nothing; all clients wait at the same time, SECONDS (150) at most. Needs no netpawl.

    tests/clients/patience.py [SECONDS]
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

JAVA = """import java.net.*; import java.net.http.*;
public class Wait { public static void main(String[] a) throws Exception {
  HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()); } }
"""


def clients(url, folder):
    """Name: command. No option says how long."""
    python = "/usr/bin/python3"
    wheel = f"{url}/simple"
    (folder / "Wait.java").write_text(JAVA)
    return {
        "curl": ["curl", "-s", url],
        "wget": ["wget", "-q", "-t", "1", "-O", "/dev/null", url],
        "git clone": ["git", "clone", "-q", f"{url}/a.git", str(folder / "clone")],
        "npm view": ["npm", "view", "left-pad", "--registry", url, "--cache", str(folder / "npm"), "--fetch-retries", "0"],
        "pip download": [python, "-m", "pip", "download", "-q", "--no-cache-dir", "--retries", "0", "--index-url", wheel, "-d", str(folder), "x"],
        "Python requests": [python, "-c", f"import requests; requests.get({url!r})"],
        "Python urllib": [python, "-c", f"import urllib.request; urllib.request.urlopen({url!r})"],
        "Node fetch": ["node", "-e", f"fetch({url!r}).catch(e => {{ console.error(e); process.exit(1) }})"],
        "Java HttpClient": ["java", str(folder / "Wait.java"), url],
        "apt": ["apt-get", "-o", "Acquire::Retries=0", "-o", f"Dir::Etc::SourceList={folder}/sources", "-o", "Dir::Etc::SourceParts=-", "-o",
                f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache", "update"],
    }


def listen(conn, lasted):
    """Reads, says nothing, and notes how long the other end stays after it has asked."""
    try:
        if not conn.recv(65536):
            return
        began = time.monotonic()
        lasted.append(None)
        place = len(lasted) - 1
        while conn.recv(65536):
            pass
        lasted[place] = time.monotonic() - began
    except OSError:
        pass


def silent(server, lasted):
    while True:
        try:
            conn, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=listen, args=(conn, lasted), daemon=True).start()


def wait(name, command, folder, seconds, found):
    server, lasted = socket.create_server(("127.0.0.1", 0), backlog=16), []
    threading.Thread(target=silent, args=(server, lasted), daemon=True).start()
    words = [w.replace("http://127.0.0.1:0", f"http://127.0.0.1:{server.getsockname()[1]}") for w in command]
    env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.lower().startswith(("pip_", "npm_"))} | {"HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"}
    if name == "apt":
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "sources").write_text(f"deb [trusted=yes] http://127.0.0.1:{server.getsockname()[1]} stable main\n")
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=folder)
    end = time.monotonic() + seconds
    while time.monotonic() < end and p.poll() is None and not (lasted and lasted[0]):
        time.sleep(0.2)
    found[name] = "it did not ask" if not lasted else f"{lasted[0]:.0f} s" if lasted[0] else f"more than {seconds} s"
    if p.poll() is None:
        p.kill()
    p.wait()
    server.close()


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    found, threads = {}, []
    with tempfile.TemporaryDirectory(prefix="np-patience-") as top:
        for name in clients("", pathlib.Path(top)):
            folder = pathlib.Path(top) / name.replace(" ", "-")
            folder.mkdir()
            command = clients("http://127.0.0.1:0", folder)[name]
            if not shutil.which(command[0]):
                found[name] = "not installed"
                continue
            threads.append(threading.Thread(target=wait, args=(name, command, folder, seconds, found)))
            threads[-1].start()
        for t in threads:
            t.join()
    for name in sorted(found, key=str.lower):
        print(f"| {name} | {found[name]} |")


if __name__ == "__main__":
    main()
