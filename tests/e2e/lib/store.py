# SPDX-License-Identifier: MIT
"""The store of an older build."""
import ast
import re
import sqlite3

from lib import base

DUMP = base.ROOT / "tests/unit/session/store_v3.h"


def old_store(daemon, less=""):
    """Gives a daemon that never ran the record that the build of schema version 3 left; less: SQL that takes away what even
    older ones did not have."""
    sql = "".join(ast.literal_eval(text) for text in re.findall(r'^\t("(?:.*)")', DUMP.read_text(), re.M))
    db = sqlite3.connect(daemon.state_dir / "sessions.db")
    db.executescript(sql + less)
    db.close()
