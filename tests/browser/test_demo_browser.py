# SPDX-License-Identifier: MIT
"""make run CONSOLE=1: the link that it prints opens the console on the little internet."""
import contextlib
import os
import queue
import signal
import subprocess
import threading

from lib import base
from pages import Chromium, picture


class Here:
    """Where the demo's console listens: the machine's own loopback."""

    @staticmethod
    def enter():
        return []


def test_the_demo_with_its_console():
    p = base.popen([base.PYTHON, str(base.ROOT / "examples/demo.py")], env=base.env(NETPAWL_BUILD=str(base.BUILD), CONSOLE="1"), cwd=base.ROOT,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in p.stdout] + [lines.put("")], daemon=True).start()
    try:
        link, line = "", "x"
        while not link and line:
            line = lines.get(timeout=300)
            link = line.strip() if "/#token=" in line else ""
        assert link.startswith("http://127.0.0.1:"), "it prints a link"
        with contextlib.closing(Chromium(Here)) as chromium:
            chromium("await open('a', link); await pages.a.waitForSelector('#state[data-state=live]'); await pages.a.evaluate(() => { location.hash = '#sessions/demo/agent'; }); await pages.a.waitForSelector('.timeline')", link=link)
            text = chromium("return await pages.a.innerText('#session-page')")
            for word in ("demo/agent", "SECRET", "customers.csv", "keys.pem"):
                assert word in text, (word, text)
            assert chromium("return await pages.a.locator('.rise-mark').count()") == 2
            picture(chromium, "demo")
        os.killpg(p.pid, signal.SIGINT)  # as Ctrl-C does
        assert p.wait(60) == 0, p.stderr.read()
    finally:
        base.reap(p)
