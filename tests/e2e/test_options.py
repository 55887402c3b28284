# SPDX-License-Identifier: MIT
"""netpawld's command line: what is wrong in it is told by its option's name, before anything is done."""
import subprocess

import pytest
from lib import base
from lib.daemon import NotReady


def refused(d, *words, code=2, **kw):
    """Directories are the test's: what is not refused would act on them."""
    p = base.sh(*d.argv(*words), check=False, env=base.env(), timeout=60, **kw)
    assert p.returncode == code and not p.stdout, p
    assert not d.slice.exists() and not d.pins.exists()
    return p.stderr


@pytest.mark.parametrize("words,told", [(["--probe", "--uninstall"], "--uninstall"), (["--uninstall", "--probe"], "--probe"),
                                        (["--force"], "--uninstall"), (["--unin"], "--uninstall"), (["--prob"], "--probe"),
                                        (["--verb", "--uninstall"], "--verbose"), (["--polic=/nope"], "--policy")], ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_what_is_not_clearly_said_is_not_done(make_daemon, words, told):
    assert told in refused(make_daemon(), *words)


@pytest.mark.parametrize("words", ["foo", "192.0.2.53,foo", "1.2.3.4:99999", ""])
def test_a_word_that_is_no_name_server_is_named(make_daemon, words):
    told = refused(make_daemon(inspectors=1), "--resolvers", words)
    assert "--resolvers" in told and f"'{words.split(',')[-1]}'" in told


@pytest.mark.parametrize("text,told", [(None, "no certificate"), ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be read"),
                                       ("-----BEGIN PRIVATE KEY-----\n", "no certificate")])
def test_a_file_of_roots_that_has_none_is_named(make_daemon, tmp_path, text, told):
    roots = tmp_path / "roots"
    roots.write_text(text or open("/etc/passwd").read())
    said = refused(make_daemon(inspectors=1), "--roots", roots, code=1)
    assert f"--roots {roots}: " in said and told in said


@pytest.mark.parametrize("words", [["--inspector-uid", "65532"], ["--decider-uid", "9", "--exporter-uid", "9"]], ids=" ".join)
def test_users_of_helpers_are_apart(make_daemon, words):
    """A decider that were the inspector's user would read the keys of CAs and the values of credentials."""
    told = refused(make_daemon(inspectors=1), *words)
    assert "--decider-uid" in told and words[1] in told and "of its own" in told


@pytest.mark.parametrize("word,meant", [("--read", "--read-only"), ("--approve", "--approver"), ("--list=127.0.0.1:0", "--listen")])
def test_the_consoles_options_are_written_out_too(word, meant):
    p = base.sh(base.BUILD / "netpawl-console", word, check=False, timeout=60)
    assert p.returncode == 2 and meant in p.stderr and not p.stdout, p


@pytest.mark.parametrize("option", ["--policy", "--roots", "--run-dir", "--state-dir", "--data-dir", "--pin-dir", "--cgroup"])
def test_an_empty_path_is_told_by_its_option(make_daemon, option):
    d = make_daemon()
    d.policy = None
    assert f"netpawld: {option}" in refused(d, option, "")


@pytest.mark.parametrize("word", ["--help", "--version", "--probe"])
def test_what_cannot_be_written_was_not_said(world, word):
    with open("/dev/full", "w") as full:
        p = subprocess.run([*world.enter(), str(base.NETPAWLD), word], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert p.returncode == 1 and "cannot write to standard output" in p.stderr, p
    p = subprocess.run([*world.enter(), "sh", "-c", f"{base.NETPAWLD} {word} >&-"], stderr=subprocess.PIPE, text=True, timeout=60)
    assert p.returncode == 1 and "cannot write to standard output" in p.stderr, p
    assert base.sh(*world.enter(), base.NETPAWLD, word).stdout


@pytest.mark.parametrize("limit", [24, 48])
def test_a_limit_on_open_files_is_told_as_one(make_daemon, limit):
    d = make_daemon()
    argv = d.argv
    d.argv = lambda *more, binary=None: ["prlimit", f"--nofile={limit}", *argv(*more, binary=binary)]
    try:
        with pytest.raises(NotReady) as e:
            d.start()
    finally:
        d.argv = argv
    assert e.value.code == 1 and "LimitNOFILE=" in e.value.text and "verifier" not in e.value.text
    assert not list(d.pin_mount.glob("netpawl/v*")) and not d.slice.exists()
    assert d.start().running()
