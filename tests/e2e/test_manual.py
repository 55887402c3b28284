# SPDX-License-Identifier: MIT
"""The manual pages say what --help says: the same commands, and of each the same options."""
import pathlib
import re
import subprocess

import pytest

from lib import base

MAN = pathlib.Path(base.ROOT) / "man"
COMMON = {"--socket", "--json", "--help"}
TABLE = r"^  (\w+) +\w"


def help_of(*words, program=base.NETPAWL):
    return base.sh(program, *words, "--help").stdout


def commands():
    names = re.findall(TABLE, help_of().split("Commands:")[1].split("Options:")[0], re.M)
    policy = re.findall(TABLE, help_of("policy").split("Commands:")[1].split("Options:")[0], re.M)
    return [n for n in names if n != "policy"] + [f"policy {p}" for p in policy]


def options_of_help(text):
    return {o for line in re.findall(r"^  (--.*)", text, re.M) for o in re.findall(r"--[a-z-]+", line.split("  ")[0])}


def options_of_page(text):
    """Those that stand at the beginning of a line, as entries do."""
    return {o for line in re.findall(r"^(\*--.*)", text, re.M) for o in re.findall(r"\*(--[a-z-]+)\*", line)}


def sections():
    page = (MAN / "netpawl.1.scd").read_text().split("# COMMANDS")[1].split("\n# ENVIRONMENT")[0]
    return dict(re.findall(r"^## netpawl ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))


def test_the_commands():
    assert len(commands()) > 20 and sorted(sections()) == sorted(commands())


@pytest.mark.parametrize("command", commands())
def test_the_options_of_each(command):
    text = help_of(*command.split())
    assert options_of_page(sections()[command]) == options_of_help(text.split("Options:")[1]) - COMMON


@pytest.mark.parametrize("command", commands())
def test_the_usage_and_the_exit_codes_of_each(command):
    """Words may differ, not what is promised: the line of usage, and the numbers of the exit codes."""
    def promised(text):
        codes = re.search(r"Exit codes:(.*)", text, re.S)
        return set(re.findall(r"(?:^|[;:]) *(\d+)\b", " ".join(codes[1].split()))) if codes else set()

    text, section = help_of(*command.split()), sections()[command].replace("\\", "")
    usage = [line.strip() for line in text.split("\n\n")[0].removeprefix("Usage: ").splitlines()]
    assert all(f"*{line}*" in section for line in usage), usage
    assert promised(text) == promised(section)


def test_the_options_of_all():
    page = (MAN / "netpawl.1.scd").read_text()
    assert options_of_page(page.split("# OPTIONS")[1].split("# COMMANDS")[0]) == COMMON | {"--version"}


def test_the_daemon():
    page = (MAN / "netpawld.8.scd").read_text()
    assert options_of_page(page) == options_of_help(help_of(program=base.NETPAWLD)) and "--policy" in options_of_page(page)


@pytest.mark.parametrize("page", sorted(MAN.glob("*.scd")), ids=lambda p: p.name)
def test_they_are_pages(page, tmp_path):
    roff = tmp_path / page.stem
    roff.write_text(subprocess.run(["scdoc"], stdin=page.open(), capture_output=True, text=True, check=True, timeout=180).stdout)
    assert "SH NAME" in roff.read_text()
    # A line of text that begins with a dot is a macro to troff, and would not be shown.
    assert not re.findall(r"^\.[a-z]{3,}.*", roff.read_text(), re.M)
