# SPDX-License-Identifier: MIT
"""How far long work is: on a terminal a last line that is written anew every second, in a pipe plain lines and nothing else."""
import sys
import threading
import time


class Counter:
    """counter.line() prints a line above it; counter.done() counts. Used as a context: the line is gone at its end."""

    def __init__(self, total, what, out=None):
        self.total, self.what, self.out = total, what, out or sys.stdout
        self.terminal = self.out.isatty()
        self.count, self.failed, self.started, self.note = 0, 0, time.monotonic(), ""
        self.lock, self.over = threading.RLock(), threading.Event()

    def text(self):
        seconds = int(time.monotonic() - self.started)
        width = 20 * self.count // max(self.total, 1)
        return (f"[{'#' * width}{'.' * (20 - width)}] {self.count}/{self.total} {self.what}"
                + (f", {self.failed} failed" if self.failed else "") + f", {seconds // 60}:{seconds % 60:02}" + self.note)

    def draw(self):
        if self.terminal:
            self.out.write("\r\x1b[K" + self.text()[:100])
            self.out.flush()

    def line(self, text):
        with self.lock:
            self.out.write(("\r\x1b[K" if self.terminal else "") + text + "\n")
            self.out.flush()
            self.draw()

    def done(self, failed=False, note=""):
        with self.lock:
            self.count += 1
            self.failed += bool(failed)
            self.note = note
            self.draw()

    def __enter__(self):
        def tick():
            while not self.over.wait(1):
                with self.lock:
                    if not self.over.is_set():
                        self.draw()

        if self.terminal:
            self.draw()
            threading.Thread(target=tick, daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.over.set()
            if self.terminal:
                self.out.write("\r\x1b[K")
                self.out.flush()
