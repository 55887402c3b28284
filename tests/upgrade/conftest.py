# SPDX-License-Identifier: MIT
import os
import pathlib
import sys

os.environ.setdefault("NETPAWL_TEST_NETWORK", "")  # a key that older builds do not know

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = True

from lib.fixtures import *  # noqa: E402,F401,F403
