# SPDX-License-Identifier: MIT
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from lib.fixtures import *  # noqa: E402,F401,F403
from pages import chromium, console, page, rig  # noqa: E402,F401
