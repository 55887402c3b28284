# SPDX-License-Identifier: MIT
"""Options of a run are in one table, user/vocab/run_options.h: what cannot read it (documents, the Python client) agrees with it."""
import importlib.util
import json
import re

import pytest
import yaml

from lib import base

HEADER = (base.ROOT / "user/vocab/run_options.h").read_text()


def rows(macro):
    """[name, word, ...] of each line of a list."""
    text = re.search(rf"#define {macro}\(X\)(.*?)\n\n", HEADER, re.S).group(1)
    return [re.split(r",\s*", m) for m in re.findall(r"X\((\w+, [^\"]*)", text)]


LIMITS = [row[0] for row in rows("RUN_LIMITS")]
PLACES = {row[0]: set(re.findall(r"RUN_\w+", row[2])) for row in rows("RUN_WORDS")} | {
    name: {"RUN_CLI", "RUN_RECORD", "RUN_LAUNCH"} for name in LIMITS}


def of(place):
    return {name for name, places in PLACES.items() if place in places}


def dashed(names):
    return {"--" + name.replace("_", "-") for name in names}


def test_the_table_was_read():
    assert {"memory", "cpus", "pids", "timeout", "output_limit", "disk"} <= set(LIMITS)
    assert {"session", "bind", "keep", "dry_run"} <= of("RUN_CLI") and "cwd" not in of("RUN_CLI") and "user" not in of("RUN_LAUNCH")


def test_help_and_manual():
    text = base.sh(base.NETPAWL, "run", "--help").stdout
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.M)) == dashed(of("RUN_CLI")) | {"--socket", "--json", "--help"}
    page = (base.ROOT / "man/netpawl.1.scd").read_text().split("## netpawl run\n")[1].split("\n## ")[0]
    assert set(re.findall(r"\*(--[a-z-]+)\*", page)) >= dashed(of("RUN_CLI"))


@pytest.mark.parametrize("schema, place", [("LaunchOptions", "RUN_LAUNCH"), ("RunOptions", "RUN_RECORD")])
def test_the_api(schema, place):
    document = yaml.safe_load((base.ROOT / "docs/openapi.yaml").read_text())
    assert set(document["components"]["schemas"][schema]["properties"]) == of(place)
    text = (base.ROOT / "docs/api.md").read_text().split("### POST /v1/runs\n")[1].split("\n### ")[0]
    assert of(place) <= set(re.findall(r'[`"](\w+)[`"]', text))


def test_the_policy():
    schema = json.loads(base.sh(base.NETPAWL, "policy", "schema").stdout)
    keys = schema["allOf"][0]["properties"]["sandbox"]["allOf"][0]["properties"]
    assert set(LIMITS) <= set(keys)
    page = (base.ROOT / "man/netpawl-policy.5.scd").read_text().split("\n*sandbox*\n")[1]
    assert set(LIMITS) <= set(re.findall(r"\*(\w+)\*", page.replace("\\", "").split("```")[0]))


def test_the_python_client():
    spec = importlib.util.spec_from_file_location("netpawl_client", base.ROOT / "clients/python/netpawl.py")
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    # the session is its own, the class is an argument, and the rest is for people at a terminal
    assert set(client.Sandbox.OPTIONS) == of("RUN_CLI") - {"session", "class", "level", "isolation", "dry_run"}
    assert set(re.findall(r"\b(\w+)=", client.Sandbox.__doc__)) >= set(client.Sandbox.OPTIONS)
    assert of("RUN_LAUNCH") <= set(re.findall(r"\w+", client.Session.launch.__doc__))
