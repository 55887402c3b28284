# SPDX-License-Identifier: MIT
"""dns: in a rule: records of a whole name are looked up for a sandbox, these types and no others, and nothing else of what
the resolver says comes in."""
import pytest

from lib import base
from lib.box import Box
from lib.inspected import inspected
from lib.world import FAR

NAMES = "[records.test, _svc._tcp.records.test, alias.records.test, big.records.test, huge.records.test, slow.records.test, " \
        "fail.records.test, none.records.test, " + ", ".join(f"late{i}.records.test" for i in range(5)) + "]"
POLICY = f"""version: 1
rules:
  - deny: shut.records.test
  - allow: {NAMES}
    dns: [MX, SRV, TXT]
  - allow: [elsewhere.test, shut.records.test]
    dns: MX
  - allow: "**.records.test"
"""


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY) as i:
        yield i
        assert i.daemon.running()
        assert i.api.health()["inspectors"] == 2, i.daemon.text()[-2000:]


@pytest.fixture(scope="module")
def box(net):
    with Box(net.daemon, "PROXIED") as b:
        yield b


def dig(box, name, kind, *words, ends=("NOERROR", "NXDOMAIN"), says=""):
    """(status, records, the whole text); again while it is not what it should be: a busy machine may be late"""
    argv = ["dig", "+tries=1", "+timeout=20", f"@{FAR[4]}", *words, name, kind]
    got = {}

    def once():
        got.update(box.call("execute", argv=argv))
        return any(f"status: {end}," in got["out"] for end in ends) and says in got["out"]

    base.eventually(once, 20, 0.5)  # the caller looks at it
    assert got["code"] == 0, got
    lines = [line for line in got["out"].splitlines() if line and not line.startswith(";")]
    status = got["out"].partition("status: ")[2].partition(",")[0]
    return status, sorted(" ".join(line.split()[3:]) for line in lines), got["out"]


def asked(net):
    """(name, type) of what the far name server was asked for, as it was spelled."""
    lines = [line.split() for line in (net.origins.dir / "log").read_text().splitlines() if line.startswith("dns ")]
    return [(words[1], int(words[2])) for words in lines]


@pytest.mark.parametrize("words", [[], ["+noedns"], ["+tcp"], ["+bufsize=512"], ["+dnssec"]], ids=" ".join)
def test_dig(net, box, words):
    status, got, text = dig(box, "records.test", "MX", *words)
    # names are whole and in lower case; the record whose name is none is gone, and so is the address beside them
    assert (status, got) == ("NOERROR", ["MX 10 mx1.records.test.", "MX 20 mx2.elsewhere.example."]), text
    assert FAR[4] not in text.partition("ANSWER SECTION")[2].partition(";; Query time")[0], text
    status, got, text = dig(box, "records.test", "TXT", *words)
    assert (status, got) == ("NOERROR", ['TXT "two" "strings"', 'TXT "v=spf1 -all"']), text
    status, got, text = dig(box, "_svc._tcp.records.test", "SRV", *words)
    assert (status, got) == ("NOERROR", ["SRV 1 2 443 srv.records.test."]), text


def test_aliases_are_not_shown(box):
    status, got, text = dig(box, "alias.records.test", "MX")
    assert (status, got) == ("NOERROR", ["MX 1 mx.elsewhere.test."]) and "CNAME" not in text, text


def test_long_answers(box):
    """By TCP on both sides; what is longer than anybody needs is not passed on."""
    status, got, text = dig(box, "big.records.test", "TXT")
    assert status == "NOERROR" and len(got) == 20 and "(TCP)" in text, text
    status, got, text = dig(box, "huge.records.test", "TXT", "+tcp", ends=["SERVFAIL"], says="more than is passed on")
    assert status == "SERVFAIL" and not got and "more than is passed on" in text, text


@pytest.mark.parametrize("name, words", [("slow.records.test", "did not answer in time"), ("fail.records.test", "no usable answer")])
@pytest.mark.parametrize("how", [[], ["+tcp"]], ids=["udp", "tcp"])
def test_no_answer_is_servfail(box, name, words, how):
    status, got, text = dig(box, name, "TXT", *how, ends=["SERVFAIL"], says=words)
    assert status == "SERVFAIL" and not got and words in text, text


def resident(net):
    """KiB of all inspectors."""
    pids = net.daemon.workers()
    return sum(int(line.split()[1]) for pid in pids for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))


def test_answers_that_nobody_reads_are_bounded(net, box):
    """Many queries wait for one answer, of which each would get 16 kB."""
    for i in range(5):
        before = resident(net)
        status, got = box.payload("names", "pipeline", 60, name=f"late{i}.records.test", kind="TXT", sockets=4, each=240)
        assert status == 0 and got.get("NOERROR", 0) + got.get("SERVFAIL", 0) == 960, got
        grown = resident(net) - before
        assert base.SAN or grown < 8 << 10, f"{grown} KiB"
        # some have the records, and those that waited beyond the bound are told that it was too much
        if got.get("NOERROR", 0) >= 4:
            break
    else:
        assert False, f"the far name server was too slow each time: {got}"


def test_what_no_rule_names(net, box):
    """NODATA where the name has an address, NXDOMAIN where it has none; and nobody is asked."""
    before = len(asked(net))
    for name, kind in (("a.records.test", "MX"), ("mx1.records.test", "TXT"), ("elsewhere.test", "TXT"), ("records.test", "CAA"),
                       ("records.test", "HTTPS"), ("records.test", "NS"), ("records.test", "ANY")):
        status, got, text = dig(box, name, kind)
        assert status == "NOERROR" and all(line.startswith("SOA") for line in got), (name, kind, text)
    for name in ("shut.records.test", "other.test", "x.elsewhere.test"):
        status, got, text = dig(box, name, "MX")
        assert status == "NXDOMAIN" and "EDE: 15" in text, (name, text)
    status, got, text = dig(box, "none.records.test", "MX")
    assert status == "NOERROR" and all(line.startswith("SOA") for line in got), text
    assert set(asked(net)[before:]) <= {("none.records.test", 15)}


def test_what_leaves_is_the_name_in_one_spelling(net, box):
    dig(box, "ReCoRdS.tEsT", "MX", "+subnet=198.51.100.0/24")
    assert {name for name, kind in asked(net) if kind == 15 and name.lower() == "records.test"} == {"records.test"}


def test_events(net, box):
    """Each lookup that may ask is one event, by its rule."""
    dig(box, "elsewhere.test", "MX")
    pick = lambda got: [e for e in got if e.get("lookup") == "elsewhere.test" and e["kind"] == "allow"]
    got = pick(net.api.wait_events(pick, 10, session=box.session))
    assert got and got[0]["reason"] == "rule_allows" and got[0]["rule"].endswith("policy.yaml:6") and got[0]["text"] == "MX", got


def test_a_reload_takes_it_back(net, box):
    assert dig(box, "records.test", "TXT")[1]
    text = net.policy.read_text()
    try:
        net.policy.write_text(text.replace("dns: [MX, SRV, TXT]", "dns: MX"))
        net.daemon.cli("policy", "reload", check=0)
        status, got, _ = dig(box, "records.test", "TXT")
        assert status == "NOERROR" and not [line for line in got if line.startswith("TXT")]
    finally:
        net.policy.write_text(text)
        net.daemon.cli("policy", "reload", check=0)
    assert base.eventually(lambda: dig(box, "records.test", "TXT")[1])


def test_none(net):
    """In NONE nobody is asked."""
    with Box(net.daemon, "NONE") as none:
        got = none.call("execute", argv=["dig", "+tries=1", "+timeout=2", f"@{FAR[4]}", "records.test", "MX"], timeout=20)
        assert got["code"] != 0, got
