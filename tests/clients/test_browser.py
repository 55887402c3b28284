# SPDX-License-Identifier: MIT
"""A browser in a PROXIED sandbox. It has roots of its own and reads no bundle and no variable: it trusts the session's authority by
the database of NSS in its HOME."""
import contextlib
import shutil

import pytest

from lib.inspected import Inspected

# What Chromium isolates itself with (namespaces, setuid root) is what a sandbox takes away.
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-component-update", "--disable-background-networking", "--dump-dom"]


@pytest.fixture(scope="module")
def net():
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    with contextlib.ExitStack() as stack:
        yield Inspected(stack)


def page(net, script="", url="https://origin.test/x"):
    return net.run("sh", "-c", f'{script}\nexec "$@"', "sh", *CHROMIUM, url, timeout=120).stdout


def test_chromium_trusts_the_authority(net):
    for _ in range(2):  # the second finds what the first has left in the workspace
        assert '"method": "GET"' in page(net)
    assert '"method": "GET"' not in page(net, "rm $HOME/.pki/nssdb/*.db"), "the control: this is how it came to trust it"
    assert '"method": "GET"' in page(net, url="https://get-only.origin.test/"), "the control: nothing was lost"


def test_certutil_agrees(net):
    """NSS itself reads what netpawl wrote, believes it, and can change it."""
    if not shutil.which("certutil"):
        pytest.skip("certutil is not installed")
    got = net.run("sh", "-ec", "cd; d=sql:$HOME/.pki/nssdb; certutil -d $d -L -n netpawl -a | openssl x509 -noout -fingerprint -sha256; "
                  "openssl x509 -in /run/netpawl/ca.pem -noout -fingerprint -sha256; certutil -d $d -V -u L -n netpawl; "
                  "certutil -d $d -L | grep '^netpawl'; certutil -d $d -M -n netpawl -t CT,,; certutil -d $d -L | grep '^netpawl'")
    assert got.returncode == 0, got
    ours, theirs, valid, before, after = got.stdout.splitlines()
    assert ours == theirs and "valid" in valid and before.split() == ["netpawl", "C,,"] and after.split() == ["netpawl", "CT,,"]


def test_firefox_trusts_it_by_a_profile_with_the_database(net):
    """As docs/sandbox.md has it."""
    if not shutil.which("firefox-esr"):
        pytest.skip("firefox-esr is not installed")

    def visit(word, profile):
        after = net.last()
        firefox = f"timeout 60 firefox-esr --headless --no-remote --profile $HOME/{word} --screenshot $HOME/{word}.png"
        net.run("sh", "-c", f"cd; mkdir {word}; {profile}; {firefox} https://origin.test/{word}", timeout=150)
        return {e["reason"] for e in net.events(lambda e: "origin.test" in e["url"], after=after)}

    assert visit("trusting", "cp ~/.pki/nssdb/*.db trusting") == {"rule_allows"}
    assert visit("doubting", "true") == {"ca_untrusted"}, "the control: this is how it came to trust it"
