# SPDX-License-Identifier: MIT
"""The DNS gate as programs meet it: names that a rule could allow have addresses, others have not; nothing of a lookup leaves
this host; and an address leads to its name alone."""
import ipaddress
import os
import signal
import struct

import pytest

from lib import base
from lib.box import Adopted, Box
from lib.inspected import inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - deny: bad.origin.test
  - allow: [origin.test, "**.origin.test"]
  - allow: [db.test:9000, "*.db.test:9000"]
  - allow: clock.test:9000/udp
  - allow: git.test:22
  - allow: 198.51.100.10:8080
  - allow: [loop.test:9000, nx.test:9000, dead.test:9000]
"""
MOST = 8192  # NP_NAMES_PER_SESSION
NET4, NET6 = ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("fd6e:6574:7061:776c::/96")


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY) as i:
        yield i
        assert i.daemon.running()
        assert i.api.health()["inspectors"] == 2, i.daemon.text()[-2000:]


@pytest.fixture
def own():
    """A net that the test may harm."""
    with inspected(policy=POLICY) as i:
        yield i


@pytest.fixture(scope="module")
def box(net):
    with Box(net.daemon, "PROXIED") as b:
        yield b


def ask(box, name, kind="A", **how):
    status, got = box.payload("names", "ask", name=name, kind=kind, **how)
    assert status == 0, got
    return got


def index(addr):
    """What a synthetic address stands for."""
    addr = ipaddress.ip_address(addr)
    net = NET4 if addr.version == 4 else NET6
    assert addr in net, addr
    return int(addr) - int(net.network_address)


def address(box, name, kind="A"):
    got = ask(box, name, kind)
    assert got["rcode"] == "NOERROR" and len(got["answers"]) == 1, got
    return got["answers"][0]


def addresses(box, *names):
    """{name: its IPv4 address}"""
    status, got = box.payload("names", "ask_all", names=names)
    assert status == 0 and all(len(g["answers"]) == 1 for g in got), got
    return {name: g["answers"][0] for name, g in zip(names, got)}


def execute(box, *argv, **kw):
    got = box.call("execute", argv=list(argv), **kw)
    return got["code"], got["out"] + got["err"]


def echo(box, addr, port):
    """What becomes of bytes that are sent there: "ok" when they come back."""
    try:
        got = box.call("dial", family=6 if ":" in addr else 4, addr=addr, port=port, data="hello", recv=5)
    except Exception as e:  # noqa: BLE001
        return getattr(e, "error", str(e))
    return "ok" if got.get("data") == "hello" else f"got {got.get('data')!r}"


def lookups(box, name, reason="not_in_policy", count=1):
    """Events of refused lookups of a name, waited for."""
    pick = lambda got: [e for e in got if e.get("lookup") == name and e["reason"] == reason]
    return pick(box.daemon.api.wait_events(lambda got: len(pick(got)) >= count, 10, session=box.session))


def tunnels(box, name):
    """Events of connections to a name, waited for."""
    pick = lambda got: [e for e in got if e.get("url", "").startswith(name)]
    return pick(box.daemon.api.wait_events(pick, 20, session=box.session))


def asked(net):
    """The names that the far name server was asked for."""
    return [line.split()[1] for line in (net.origins.dir / "log").read_text().splitlines() if line.startswith("dns ")]


def workers(net):
    return net.daemon.workers()


# -- clients --------------------------------------------------------------------------------

PYTHON = "import socket,sys; print(*sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], 443)}))"


def test_c_libraries(net, box):
    """glibc by getent and Python, and musl: one IPv4 and one IPv6 address, the same for all, of one name; not a frame."""
    probe = net.world.dir / "lookup"
    base.sh("musl-gcc", "-static", "-O1", "-Wall", "-o", probe, base.TESTS / "e2e/lib/probes/lookup.c")
    before = len(asked(net))
    with net.world.watch() as watch:
        for name in ("origin.test", "api.origin.test", "db.test"):
            code, out = execute(box, "getent", "ahosts", name)
            addrs = {line.split()[0] for line in out.splitlines()}
            assert code == 0 and len(addrs) == 2 and len({index(a) for a in addrs}) == 1, out
            assert set(execute(box, base.PYTHON, "-c", PYTHON, name)[1].split()) == addrs
            assert set(execute(box, str(probe), name)[1].split()) == addrs
            assert {address(box, name), address(box, name, "AAAA")} == addrs
        for name in ("bad.origin.test", "evil.example", "clock.test", "test"):
            code, out = execute(box, "getent", "ahosts", name)
            assert code == 2 and not out, out
            assert "Name or service not known" in execute(box, base.PYTHON, "-c", PYTHON, name)[1]
            assert execute(box, str(probe), name) == (1, "Name does not resolve\n")
    watch.nothing()
    assert len(asked(net)) == before


@pytest.mark.parametrize("words", [[], ["+noedns"], ["+tcp"], ["+bufsize=512"], ["+bufsize=4096"], ["+dnssec"], ["+cookie"],
                                   ["+nord"], ["+tcp", "+noedns"], ["+keepopen", "+tcp"], ["+padding=128"], ["+subnet=192.0.2.0/24"]],
                         ids=" ".join)
def test_dig(net, box, words):
    dig = ["dig", "+tries=1", "+timeout=60", f"@{FAR[4]}", *words]
    want = address(box, "api.origin.test")
    with net.world.watch() as watch:
        code, out = execute(box, *dig, "api.origin.test")
        assert code == 0 and "status: NOERROR" in out and want in out and "WARNING" not in out.replace("recursion requested", ""), out
        code, out = execute(box, *dig, "evil.example", "AAAA")
        assert code == 0 and "status: NXDOMAIN" in out, out
        assert ("EDE: 15 (Blocked): (no rule of the policy allows this name" in out) == ("+noedns" not in words), out
    watch.nothing()


def test_cases_dots_and_search_domains(box):
    want = address(box, "api.origin.test")
    for name in ("API.Origin.TEST", "aPi.oRiGiN.tEsT.", "api.origin.test."):
        got = ask(box, name)
        assert got["answers"] == [want] and got["question"] == name.rstrip(".") + ".", got
    assert execute(box, "getent", "ahostsv4", "api.origin.test.")[1].startswith(want)
    search = ["env", "LOCALDOMAIN=corp.example origin.test", "getent", "ahostsv4"]
    assert execute(box, *search, "api")[1].startswith(want)  # the first domain is refused, and the next is tried
    assert execute(box, *search, "api.origin.test")[1].startswith(want)
    assert execute(box, "env", "LOCALDOMAIN=corp.example", "getent", "ahostsv4", "api")[0] == 2


def test_long_names(box):
    """253 characters are a name, and fit a message of 512 bytes, by UDP and TCP."""
    tail = ".origin.test"
    name = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * (253 - 192 - len(tail))]) + tail
    assert len(name) == 253
    got = {tcp: ask(box, name, tcp=tcp, edns=False) for tcp in (False, True)}
    assert got[False]["answers"] == got[True]["answers"] and not got[False]["cut"], got
    assert ask(box, ".".join(["x" * 63] * 3 + ["y" * 61]))["rcode"] == "NXDOMAIN"
    assert "label empty or too long" in execute(box, base.PYTHON, "-c", PYTHON, "a" * 64 + tail)[1]


def test_stable_and_short_lived(box):
    first = ask(box, "stable.origin.test")
    assert 0 < first["ttl"][0] <= 60 and first["recursion"]
    others = addresses(box, *[f"other{i}.origin.test" for i in range(50)])
    assert len({*others.values(), *first["answers"]}) == 51
    assert ask(box, "stable.origin.test")["answers"] == first["answers"]
    assert index(address(box, "stable.origin.test", "AAAA")) == index(first["answers"][0])


def test_reverse(box):
    for kind in ("A", "AAAA"):
        addr = address(box, "api.origin.test", kind)
        assert execute(box, "getent", "hosts", addr)[1].split() == [addr, "api.origin.test"]
        assert ask(box, ipaddress.ip_address(addr).reverse_pointer, "PTR")["answers"] == ["api.origin.test."]
    for addr in ("198.18.0.0", "198.19.255.255", "fd6e:6574:7061:776c::ffff:1", FAR[4], "127.0.0.1"):
        assert ask(box, ipaddress.ip_address(addr).reverse_pointer, "PTR")["rcode"] == "NXDOMAIN"


@pytest.mark.parametrize("kind", ["HTTPS", "SVCB", "TXT", "MX", "NS", "SRV", "CAA", "NULL", "DNSKEY", "ANY", "TYPE4711"])
def test_other_types(box, kind):
    """No records, so no keys (ech) and no QUIC (h3); the name is there."""
    got = ask(box, "api.origin.test", kind)
    assert (got["rcode"], got["answers"], got["authority"]) == ("NOERROR", [], ["SOA"])
    assert ask(box, "evil.example", kind)["rcode"] == "NXDOMAIN"


def test_localhost(box):
    assert address(box, "localhost") == "127.0.0.1" and address(box, "x.localhost", "AAAA") == "::1"


HEAD = "\x00\x07\x01\x00\x00\x01" + "\x00" * 6
HOSTILE = {
    "compression loop": HEAD + "\xc0\x0c\x00\x01\x00\x01", "pointer ahead": HEAD + "\x03www\xc0\xff\x00\x01\x00\x01",
    "label that lies": HEAD + "\x3fwww\x00\x00\x01\x00\x01", "no question": HEAD, "no end": HEAD + "\x03www",
    "two questions": HEAD.replace("\x00\x01\x00", "\x00\x02\x00", 1) + "\x03www\x00\x00\x01\x00\x01" * 2,
    "chaos": HEAD + "\x03www\x00\x00\x01\x00\x03", "long label": HEAD + "\x40" + "a" * 64 + "\x00\x00\x01\x00\x01",
    "long name": HEAD + ("\x3f" + "a" * 63) * 4 + "\x00\x00\x01\x00\x01",
}


def test_hostile_packets(net, box):
    """Refused, each with an answer; responses and scraps have none. The gate lives on."""
    pids = workers(net)
    status, got = box.payload("names", "raw", packets=list(HOSTILE.values()))
    assert status == 0 and all(rcode in (1, 4, 5) for rcode in got), dict(zip(HOSTILE, got))
    assert box.payload("names", "raw", packets=["", "x", HEAD[:11], HEAD.replace("\x01", "\x81", 1)], wait=0.2)[1] == [None] * 4
    assert box.refusals("bad_dns")
    query = HEAD + "\x03api\x06origin\x04test\x00\x00\x01\x00\x01"
    framed = struct.pack("!H", len(query)).decode("latin-1") + query
    stream = lambda *chunks, **how: box.payload("names", "stream", chunks=list(chunks), **how)[1]
    assert stream(framed * 50, want=50)["answers"] == 50  # pipelined
    assert stream(*framed, want=1)["answers"] == 1  # byte by byte
    assert stream(framed + "\xff\xff")["end"] in ("ECONNRESET", "closed")  # a length that no query has
    assert stream("\x00\x10" + HEAD, wait=0.5)["answers"] == 0  # the rest never comes
    assert workers(net) == pids
    assert address(box, "api.origin.test")


def test_it_is_told(net, box):
    name = f"{base.token()}.evil.example"
    ask(box, name, "TXT")
    event = lookups(box, name)[0]
    assert (event["kind"], event["text"], event["port"], event["session"], event["sandbox"]) == ("refuse", "TXT", 53, box.session, box.id)
    ask(box, "Clock.test")
    assert lookups(box, "Clock.test") or lookups(box, "clock.test")
    text = net.daemon.cli("why", box.session, "--last", "50", check=0).stdout
    assert f"DNS query for {name}" in text and "origin.test" in text, text
    # what was answered is no news
    ask(box, "quiet.origin.test")
    ask(box, f"{name}.last")
    lookups(box, f"{name}.last")
    assert not [e for e in box.events() if e.get("lookup") == "quiet.origin.test"]


# -- where an address leads -----------------------------------------------------------------

@pytest.mark.parametrize("kind", ["A", "AAAA"])
def test_http_by_name(net, box, kind):
    version = "-4" if kind == "A" else "-6"
    for url in ("http://api.origin.test/x", "https://api.origin.test/x"):
        p = net.run("curl", "-sS", version, "-m", "90", url)
        assert p.returncode == 0 and '"path": "/x"' in p.stdout, p
    p = net.run("curl", "-sS", version, "-m", "90", "https://bad.origin.test/")
    assert p.returncode == 6, p  # could not resolve host


@pytest.mark.parametrize("kind", ["A", "AAAA"])
def test_other_protocols_by_name_and_port(net, box, kind):
    """The rule's port, and no other; the name is resolved only then."""
    name = f"{base.token()}.db.test"
    addr = address(box, name, kind)
    assert echo(net.world.outside, FAR[4], 8080) == "ok"  # the control: there is a server at the other port, too
    net.world.settle()
    with net.world.watch() as watch:
        for port in (22, 8080, 9101):
            assert echo(box, addr, port) == "ECONNRESET", port
    watch.nothing()
    assert name not in asked(net)
    assert echo(box, addr, 9000) == "ok" and echo(box, addr, 9000) == "ok"
    assert name in asked(net)  # by each worker that has dialled, and again if the answer was late
    pick = lambda got, what: [e for e in got if e.get("url", "").startswith(name) and e["kind"] == what]
    got = net.api.wait_events(lambda got: pick(got, "allow") and len(pick(got, "refuse")) >= 3, 10, session=box.session)
    assert {e["port"] for e in pick(got, "refuse")} >= {22, 8080, 9101} and {e["port"] for e in pick(got, "allow")} == {9000}
    # http to a port that is not inspected is bytes as any other
    assert echo(box, address(box, "origin.test", kind), 9000) == "ECONNRESET"


@pytest.fixture(scope="module")
def ssh(net):
    """An SSH server in the far world at ports 22 and 2222, and the words of a client that may log in there."""
    folder = net.world.dir
    for key in ("host", "user"):
        base.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
    host = (folder / "host.pub").read_text()
    (folder / "known").write_text("".join(f"{n} {host}" for n in ("git.test", "[git.test]:2222")))
    net.origins.start(base.PYTHON, base.TESTS / "e2e/lib/ssh_server.py", FAR[4], folder / "host", folder / "user.pub")
    (folder / "copy").write_bytes((folder / "user").read_bytes())
    (folder / "copy").chmod(0o644)
    return ["ssh", "-F", "/dev/null", "-i", folder / "user", "-o", f"UserKnownHostsFile={folder}/known", "-o", "BatchMode=yes",
            "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=60", "-o", "IdentitiesOnly=yes"]


def test_ssh(net, ssh):
    """OpenSSH by name, at the rule's port alone, with more than one window of bytes."""
    # its key belongs to the sandbox's user, or it would not take it
    inside = ["sh", "-c", 'umask 077; cp "$0" /workspace/key && exec "$@"', net.world.dir / "copy",
              *["/workspace/key" if word == net.world.dir / "user" else word for word in ssh]]
    p = net.run(*inside, "git@git.test", "echo", input="in and out\n" * 100000)
    assert p.returncode == 0 and p.stdout == "in and out\n" * 100000, (p.returncode, p.stderr, len(p.stdout))
    p = net.run(*inside, "-p", "2222", "git@git.test", "echo", input="x")
    assert p.returncode == 255 and "Connection reset" in p.stderr, p
    # the control: on the host both ports are there
    for port in ("22", "2222"):
        p = net.control(*ssh, "-p", port, "-o", "HostKeyAlias=git.test", f"git@{FAR[4]}", "true")
        assert p.returncode == 0, p


def test_udp_by_name_is_refused(net, box):
    """UDP is allowed by address alone: a name has none for it."""
    assert ask(box, "clock.test")["rcode"] == "NXDOMAIN"
    assert "UDP is allowed by address only" in ask(box, "clock.test")["ede"][0][1]
    for kind, family in (("A", 4), ("AAAA", 6)):
        with net.world.watch() as watch:
            assert box.try_("sendto", family=family, addr=address(box, "db.test", kind), port=9000) == "ECONNREFUSED"
        watch.nothing()


@pytest.mark.parametrize("name", ["loop.test", "nx.test", "dead.test"])
def test_names_that_lead_nowhere_good(net, box, name):
    """This host's loopback, no address at all, nobody there: the connection ends, and is told of."""
    assert echo(box, address(box, name), 9000) != "ok"
    event = tunnels(box, name)[0]
    # who dials may have given up first
    assert event["kind"] == "refuse" or event["text"] == "it ended before the origin was reached", event


def test_addresses_are_the_sessions_own(net):
    """A number in one session is another name in another, and none where it was never given out."""
    with Box(net.daemon, "PROXIED") as a, Box(net.daemon, "PROXIED") as b, Box(net.daemon, "PROXIED") as c:
        assert index(address(a, "db.test")) == index(address(b, "x.origin.test")) == 1
        addr = address(a, "db.test")
        assert echo(a, addr, 9000) == "ok"
        assert echo(b, addr, 9000) == "ECONNRESET"  # x.origin.test, which has no such port
        assert echo(c, addr, 9000) == "ECONNRESET"
        assert c.refusals("name_forgotten") and not [e for e in b.events() if e["reason"] == "name_forgotten"]
        assert ask(b, "1.0.18.198.in-addr.arpa", "PTR")["answers"] == ["x.origin.test."]
        assert ask(c, "1.0.18.198.in-addr.arpa", "PTR")["rcode"] == "NXDOMAIN"
        # sandboxes of one session share
        with Box(net.daemon, "PROXIED", session=a.session) as again:
            assert address(again, "db.test") == addr and echo(again, addr, 9000) == "ok"


# -- changes on the way -----------------------------------------------------------------------

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_addresses_survive_the_daemon(own, how):
    box = Adopted(own.daemon, "PROXIED")
    try:
        told = addresses(box, "a.origin.test", "db.test", "b.origin.test")
        own.daemon.restart(how)
        assert base.eventually(lambda: own.api.health()["inspectors"] == 2)
        # before anybody asks: the address is all that a program with a cache has
        assert base.eventually(lambda: echo(box, told["db.test"], 9000) == "ok", 10)
        fresh = address(box, "c.origin.test")
        assert fresh not in told.values()
        assert addresses(box, *told) == told
        # the last line is half, as after a crash of the host: it was never told to anybody
        path = own.daemon.run_dir / "names" / box.session.replace("/", ",")
        assert "2 db.test\n" in path.read_text()
        own.daemon.kill()
        with open(path, "a") as f:
            f.write("5 evil.example\n0 zero.example\n99999 far.example\nx y\n7 Not.Canonical\n8 half")
        own.daemon.start()
        assert base.eventually(lambda: own.api.health()["inspectors"] == 2)
        assert addresses(box, *told) == told and address(box, "c.origin.test") == fresh
        # a line that says what no rule allows leads nowhere all the same
        assert echo(box, "198.18.0.5", 9000) == "ECONNRESET" and echo(box, "198.18.0.8", 9000) == "ECONNRESET"
    finally:
        box.close()


def test_workers_die(own):
    with Box(own.daemon, "PROXIED") as box:
        told = addresses(box, "a.origin.test", "db.test")
        old = workers(own)
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        assert base.eventually(lambda: len(workers(own)) == 2 and not set(workers(own)) & set(old) and
                               own.api.health()["inspectors"] == 2, 15)
        # before anybody asks: those that start are told
        assert echo(box, told["db.test"], 9000) == "ok"
        assert addresses(box, *told, "new.origin.test") == {**told, "new.origin.test": "198.18.0.3"}


@pytest.mark.parametrize("which", [0, 1])
def test_a_worker_that_hangs_takes_no_other_with_it(own, which):
    """A raise waits for it, and then ends it: the other has answered meanwhile, and what it serves goes on."""
    with Box(own.daemon, "PROXIED") as box:
        hung, other = workers(own)[which], workers(own)[1 - which]
        os.kill(hung, signal.SIGSTOP)
        assert own.api.escalate(box.session, "SECRET")["mode"] == "NONE"
        assert base.eventually(lambda: hung not in workers(own)), "it was to be ended"
        assert other in workers(own), own.daemon.text()[-2000:]


def test_policy_reload(own):
    """What is denied now is no name any more, and what was open to it is cut; what is allowed now works."""
    with Box(own.daemon, "PROXIED") as box:
        addr = address(box, "db.test")
        box.call("dial", family=4, addr=addr, port=9000, data="one", recv=3, keep="open")
        assert ask(box, "new.test")["rcode"] == "NXDOMAIN"
        own.policy.write_text("version: 1\nrules:\n  - deny: db.test\n  - allow: new.test:9000\n  - allow: db.test:9000\n")
        own.daemon.cli("policy", "reload", check=0)
        assert base.eventually(lambda: ask(box, "db.test")["rcode"] == "NXDOMAIN", 5)
        assert base.eventually(lambda: box.try_("send", keep="open", data="two") != "ok" or
                               box.try_("recv", keep="open", timeout=0.2) not in ("ok", "TIMEOUT"), 5)
        assert not own.world.world.call("records", keep="tcp9000", mark="two")["records"]
        cut = tunnels(box, "db.test")[0]
        assert (cut["reason"], cut["port"], cut["sent"], cut["received"]) == ("ended_by_reload", 9000, 3, 3), cut
        assert cut["rule"].endswith("policy.yaml:3"), cut
        assert echo(box, addr, 9000) == "ECONNRESET"
        fresh = address(box, "new.test")
        assert fresh != addr and echo(box, fresh, 9000) == "ok"
        own.policy.write_text(POLICY)
        own.daemon.cli("policy", "reload", check=0)
        assert base.eventually(lambda: ask(box, "db.test")["answers"] == [addr], 5)
        assert echo(box, addr, 9000) == "ok" and echo(box, fresh, 9000) == "ECONNRESET"


def test_through_the_modes(net):
    """FULL asks whom it names, and nobody else; PROXIED the gate; NONE nobody. What was open ends with the mode."""
    box = Box(net.daemon, "FULL")
    query = "\x00\x07\x01\x00\x00\x01" + "\x00" * 6 + "\x02db\x04test\x00\x00\x01\x00\x01"
    asks = lambda: box.call("sendto", family=4, addr=FAR[4], port=53, data=query, recv=512)["data"]
    try:
        assert asks() == query  # the far side echoes
        net.api.escalate(box.session, "CONFIDENTIAL")
        with net.world.watch() as watch:
            assert asks()[2] != query[2]  # an answer
            addr = address(box, "db.test")
        watch.nothing()
        box.call("dial", family=4, addr=addr, port=9000, data="one", recv=3, keep="open")
        net.api.escalate(box.session, "SECRET")
        with net.world.watch() as watch:
            assert box.try_("sendto", family=4, addr=FAR[4], port=53, data=query) == "ECONNREFUSED"
            assert box.try_("recv", keep="open") not in ("ok", "TIMEOUT")
            assert (tunnels(box, "db.test")[0]["sent"], tunnels(box, "db.test")[0]["received"]) == (3, 3)
            for to in (addr, "fd6e:6574:7061:776c::1"):
                assert echo(box, to, 9000) == "ECONNREFUSED"
            assert execute(box, "getent", "ahosts", "db.test")[0] == 2
        watch.nothing()
    finally:
        box.close()


# -- too many -------------------------------------------------------------------------------

def test_a_burst_of_names(net):
    """As many new names at once as a sandbox may ask for: each gets its address."""
    with Box(net.daemon, "PROXIED") as box:
        status, got = box.payload("names", "many", 60, pattern="n%d.origin.test", first=1, last=900, window=900)
        assert (status, got) == (0, {"rcodes": {"NOERROR": 900}, "left": 0, "twice": 0})


def test_too_many_names(net):
    """A session has so many and no more; other sessions do not notice, and what has an address keeps it."""
    with Box(net.daemon, "PROXIED") as a, Box(net.daemon, "PROXIED") as b:
        first = address(a, "db.test")
        status, got = a.payload("names", "many", 60, pattern="n%d.origin.test", first=1, last=MOST - 1)
        assert (status, got) == (0, {"rcodes": {"NOERROR": MOST - 1}, "left": 0, "twice": 0})
        refused = ask(a, "one-more.origin.test")
        assert refused["rcode"] == "SERVFAIL" and "too many names" in refused["ede"][0][1]
        assert lookups(a, "one-more.origin.test", "too_many_names")
        assert address(a, "db.test") == first and echo(a, first, 9000) == "ok"
        assert index(address(a, f"n{MOST - 1}.origin.test")) <= MOST
        assert echo(b, address(b, "db.test"), 9000) == "ok" and index(address(b, "db.test")) == 1


FLOOD = """
import socket, struct, time
s, end, n = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic() + 600, 0
s.connect(("198.51.100.53", 53))
while time.monotonic() < end:
    n += 1
    try:
        s.send(struct.pack("!6H", n & 65535, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in (b"f%d" % n, b"origin", b"test")) + b"\\0\\0\\1\\0\\1")
    except OSError:
        pass
"""


def test_a_flood_of_names_is_ones_own_harm(net):
    """While one sandbox asks for one name after the other, another gets every answer, first time."""
    with Box(net.daemon, "PROXIED") as a, Box(net.daemon, "PROXIED") as b:
        flood = base.popen(net.argv(base.PYTHON, "-c", FLOOD, session=a.session), env=net.env())
        try:
            assert base.eventually(lambda: ask(a, "f1.origin.test")["answers"], 5)
            status, got = b.payload("names", "many", 60, pattern="quiet%d.origin.test", first=1, last=300, window=1)
            assert (status, got) == (0, {"rcodes": {"NOERROR": 300}, "left": 0, "twice": 0})
            assert flood.poll() is None, "the flood ended too early: this proves nothing"
        finally:
            base.reap(flood)
        assert a.refusals("too_many_queries")
