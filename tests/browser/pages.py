# SPDX-License-Identifier: MIT
"""A browser on a console: what the tests of the page share."""
import contextlib
import json
import os
import pathlib
import queue
import subprocess
import threading

import pytest

from lib import base
from rig import Rig

HERE = pathlib.Path(__file__).resolve().parent
OUT = base.BUILD / "browser"


class Chromium:
    """In HOST, where the console is. Each call is the body of an async function; see driver.mjs."""

    def __init__(self, world):
        self.process = base.popen([*world.enter(), "node", str(HERE / "driver.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "NETPAWL_BUILD": str(base.BUILD)})
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()
        assert json.loads(self.lines.get(timeout=120))["ready"]

    def __call__(self, code, timeout=120, **values):
        given = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
        self.process.stdin.write(json.dumps({"id": 1, "code": given + code}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.lines.get(timeout=timeout))
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        base.reap(self.process)


@pytest.fixture(scope="module")
def rig():
    with contextlib.ExitStack() as stack:
        yield Rig(stack)


@pytest.fixture(scope="module")
def chromium(rig):
    with contextlib.closing(Chromium(rig.world)) as c:
        yield c


@pytest.fixture(scope="module")
def console(rig):
    return rig.console()


@pytest.fixture
def page(chromium, console):
    """A fresh browser, logged in, on the live traffic. Nothing may go wrong in it on the way."""
    chromium("seen.length = 0; await open('a', link); await pages.a.waitForSelector('#state[data-state=live]');", link=console.another())
    yield chromium
    said = chromium("const s = seen.filter((line) => !/status of (403|404|409|503)|ERR_/.test(line)); await pages.a.context().close(); return s;")
    assert said == []


def picture(chromium, name, who="a"):
    OUT.mkdir(exist_ok=True)
    chromium(f"await pages.{who}.screenshot({{ path: file }})", file=str(OUT / f"{name}.png"))


def eventually(chromium, code, want=True, timeout=30, **values):
    assert base.eventually(lambda: chromium(code, **values) == want, timeout), (chromium(code, **values), want)


def settle(rig, session):
    for q in rig.questions(session):
        rig.answer(q, "deny")
