# SPDX-License-Identifier: MIT
"""netpawl completion: what shells offer is what the command takes, asked of the shells themselves."""
import os
import pty
import re
import select
import signal
import subprocess

import pytest

from lib import base

COMMANDS = re.findall(r"^  (\w+) +\w", base.sh(base.NETPAWL, "--help").stdout.split("Commands:")[1].split("Options:")[0], re.M)
POLICY = re.findall(r"^  (\w+) +\w", base.sh(base.NETPAWL, "policy", "--help").stdout.split("Commands:")[1].split("Options:")[0], re.M)
ALL = [[c] for c in COMMANDS if c != "policy"] + [["policy", c] for c in POLICY]


def options_of(words):
    """The options that --help names at the beginning of a line."""
    text = base.sh(base.NETPAWL, *words, "--help").stdout.split("Options:")[1]
    return {o for line in re.findall(r"^  (--.*)", text, re.M) for o in re.findall(r"--[a-z-]+", line.split("  ")[0])}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    where = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (where / shell).write_text(base.sh(base.NETPAWL, "completion", shell).stdout)
    return where


def environment():
    return {**os.environ, "PATH": f"{base.NETPAWL.parent}:{os.environ['PATH']}", "NETPAWL_SOCKET": "/nonexistent/s", "HOME": "/nonexistent"}


def in_bash(scripts, *words):
    """What bash offers for the last word."""
    program = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _netpawl; printf "%s\\n" "${COMPREPLY[@]}"')
    p = subprocess.run(["bash", "--norc", "-c", program, "bash", str(scripts / "bash"), "netpawl", *words], capture_output=True,
                       text=True, env=environment(), timeout=180, cwd=base.ROOT)
    assert p.returncode == 0 and not p.stderr, p
    return set(p.stdout.split())


def in_fish(scripts, line):
    p = subprocess.run(["fish", "-N", "-c", f"source {scripts / 'fish'}; complete -C '{line}'"], capture_output=True, text=True,
                       env=environment(), timeout=180, cwd=base.ROOT)
    assert p.returncode == 0 and not p.stderr, p
    return {line.split("\t")[0] for line in p.stdout.splitlines()}


def test_the_commands(scripts):
    assert len(COMMANDS) > 15 and len(POLICY) > 4
    assert in_bash(scripts, "") == set(COMMANDS) == in_fish(scripts, "netpawl ")
    assert in_bash(scripts, "policy", "") == set(POLICY)
    assert set(POLICY) <= in_fish(scripts, "netpawl policy ")
    assert in_bash(scripts, "esc") == {"escalate"} == in_fish(scripts, "netpawl esc")


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_options_are_those_of_help(scripts, words):
    """In the table that parses, in --help and in what bash offers: the same options."""
    assert in_bash(scripts, *words, "--") == options_of(words)


@pytest.mark.parametrize("words", [["run"], ["events"], ["policy", "explain"]], ids=" ".join)
def test_fish_has_the_options(scripts, words):
    assert in_fish(scripts, " ".join(["netpawl", *words, "--"])) == options_of(words)


def test_values(scripts):
    assert in_bash(scripts, "run", "--level", "") == {"PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"}
    assert in_bash(scripts, "run", "--class", "re") == {"read_only"}
    assert in_bash(scripts, "runs", "--state", "p") == {"pending"}
    assert in_bash(scripts, "completion", "") == {"bash", "zsh", "fish"}
    assert in_bash(scripts, "policy", "check", "READ") == {"README.md"}
    assert in_bash(scripts, "--socket", "READ") == {"README.md"}
    assert in_bash(scripts, "sessions", "") == set()
    assert "bash" in in_bash(scripts, "run", "--", "bas")
    assert in_fish(scripts, "netpawl run --level S") == {"SECRET"}


def test_nobody_is_offered_what_only_the_daemon_types(scripts):
    assert not any("--record" in (scripts / shell).read_text() for shell in ("bash", "zsh", "fish"))


def test_names_of_sessions(scripts, daemon):
    daemon.api.create("tester/completion", "PUBLIC")
    env = {**environment(), "NETPAWL_SOCKET": str(daemon.socket)}
    p = subprocess.run(["bash", "--norc", "-c", f'. {scripts / "bash"}; COMP_WORDS=(netpawl escalate te); COMP_CWORD=2; _netpawl; echo "${{COMPREPLY[@]}}"'],
                       capture_output=True, text=True, env=env, timeout=180)
    assert p.stdout.strip() == "tester/completion", p


def at_a_terminal(argv, first, typed, wanted):
    """Types into a shell as a person has it, until what is wanted is on the screen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, {**environment(), "PS1": "$ ", "TERM": "dumb"})
    try:
        os.write(fd, f"{first}; echo rea''dy\n".encode())
        wait_for(fd, b"ready")
        os.write(fd, typed)
        wait_for(fd, wanted)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def wait_for(fd, wanted):
    seen = b""
    while wanted not in seen:
        assert select.select([fd], [], [], 20)[0], seen
        seen += os.read(fd, 4096)


def test_a_tab_in_bash(scripts):
    at_a_terminal(["bash", "--norc", "--noprofile", "-i"], f". {scripts / 'bash'}", b"netpawl esca\t", b"netpawl escalate ")


def test_a_tab_in_zsh(scripts):
    at_a_terminal(["zsh", "-f", "-i"], f"autoload -U compinit && compinit -D -u && . {scripts / 'zsh'}",
                  b"netpawl run --output\t", b"-limit")


def test_zsh_takes_it(scripts):
    p = subprocess.run(["zsh", "-f", "-c", f"autoload -U compinit && compinit -D -u && . {scripts / 'zsh'} && print $_comps[netpawl]"],
                       capture_output=True, text=True, env=environment(), timeout=180)
    assert p.returncode == 0 and p.stdout.strip() == "_netpawl" and not p.stderr, p


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"]])
def test_wrong_shells(words):
    p = base.sh(base.NETPAWL, "completion", *words, check=False)
    assert p.returncode == 2 and not p.stdout
