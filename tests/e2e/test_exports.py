# SPDX-License-Identifier: MIT
"""metrics: and events: what netpawl-export brings to other systems of the host, and what it does when they do not want it."""
import contextlib
import os
import re
import signal
import subprocess

import pytest

from lib import base
from lib.box import Box, new_session
from lib.receivers import Journal, OtlpReceiver, attributes, records

METRICS = "127.0.0.1:9464"


class Exported:
    """A daemon whose policy is written anew for each test: what it exports."""

    def __init__(self, daemon):
        self.daemon, self.api, self.world = daemon, daemon.api, daemon.world
        self.n = 0

    def use(self, text="", code=None):
        new = self.daemon.policy.with_suffix(".new")
        new.write_text("version: 1\n" + text + base.PERMITS)
        os.replace(new, self.daemon.policy)
        if code is None:
            self.api.ok("POST", "/v1/policy/reload", {})

    def state(self, name):
        return next((e for e in self.api.health()["exports"] if e["export"] == name), None)

    def ready(self, name):
        assert base.eventually(lambda: (self.state(name) or {}).get("ready"), 10), (self.state(name), self.daemon.text()[-2000:])

    def happen(self, n=1):
        """So many events, and the seq of the last one."""
        for _ in range(n):
            self.n += 1
            self.api.create(new_session("exported"))
        return self.api.events()[-1]["seq"]

    def pid(self, name):
        for p in base.sh("ps", "-eo", "pid=,args=").stdout.splitlines():
            pid, _, args = p.strip().partition(" ")
            if "netpawl-export" in args and f" {name} " in args + " " and f"{self.daemon.run_dir}/empty" in args:
                return int(pid)
        return None

    def curl(self, *words):
        got = subprocess.run([*self.world.enter(), "curl", "-sS", "-m", "30", *words], capture_output=True, text=True, timeout=60,
                             env=base.env(no_proxy="*"))
        return got


@pytest.fixture(scope="module")
def net(daemon):
    yield Exported(daemon)


@contextlib.contextmanager
def otlp(net, port, *plan, path=""):
    with OtlpReceiver(net.world, port) as r:
        r.plan(*plan)
        net.use(f"events: {{otlp: \"http://127.0.0.1:{port}{path}\"}}\n")
        net.ready("otlp")
        try:
            yield r
        finally:
            net.use()


# -- metrics ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metrics(net):
    net.use(f"metrics: {{listen: \"{METRICS}\"}}\n")
    net.ready("metrics")
    return f"http://{METRICS}/metrics"


def test_metrics_are_those_of_the_api(net, metrics):
    got = net.curl("-i", metrics)
    head, _, body = got.stdout.replace("\r\n", "\n").partition("\n\n")
    assert head.startswith("HTTP/1.1 200") and "Content-Type: text/plain; version=0.0.4" in head, got
    families = lambda text: re.findall(r"^# TYPE (\S+ \S+)$", text, re.M)
    assert families(body) == families(net.api.raw("GET", "/v1/metrics")[2].decode()) and len(families(body)) > 25
    assert 'netpawl_export_up{export="metrics"} 1\n' in body


def test_openmetrics_for_who_asks(net, metrics):
    asked = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    got = net.curl("-i", "-H", f"Accept: {asked}", metrics).stdout.replace("\r\n", "\n")
    assert "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" in got
    assert got.endswith("# EOF\n") and got.count("# EOF") == 1
    assert "# TYPE netpawl_requests counter\n" in got and "# TYPE netpawl_bytes counter\n# UNIT netpawl_bytes bytes\n" in got
    assert "# TYPE netpawl_raise_apply_seconds histogram\n# UNIT netpawl_raise_apply_seconds seconds\n" in got
    assert not re.search(r"^# TYPE \S+_total ", got, re.M) and re.search(r"^netpawl_bytes_total\{", got, re.M)
    for bound in re.findall(r'(?<=[{,])le="([^"]*)"', got):
        assert bound == "+Inf" or re.fullmatch(r"\d+\.\d+", bound)
    plain = net.curl("-i", "-H", "Accept: application/openmetrics-text;q=0, text/plain", metrics).stdout
    assert "# EOF" not in plain and "version=0.0.4" in plain
    assert "# EOF" in net.api.raw("GET", "/v1/metrics", headers={"Accept": "application/openmetrics-text"})[2].decode()


def test_only_loopback_is_called_and_only_for_metrics(net, metrics):
    status = lambda *words: net.curl("-o", "/dev/null", "-w", "%{http_code}", *words).stdout
    assert status(metrics) == "200" and status("-I", metrics) == "200"
    assert status("-H", "Host: evil.example:9464", metrics) == "403" and status("-H", "Host: 10.0.0.1", metrics) == "403"
    assert status("-H", "Host: localhost", metrics) == "200" and status("-H", "Host: [::1]:9464", metrics) == "200"
    assert status("-H", "Host:", metrics) in ("400", "403")
    assert status(f"http://{METRICS}/") == "404" and status(f"http://{METRICS}/v1/sessions") == "404"
    assert status("-X", "POST", metrics) == "405" and status("-d", "x", metrics) in ("000", "405")


def test_an_exporter_that_is_killed_is_started_again(net, metrics):
    before = net.pid("metrics")
    os.kill(before, signal.SIGKILL)
    assert base.eventually(lambda: net.pid("metrics") not in (None, before) and net.state("metrics")["ready"], 10)
    assert net.curl(metrics).returncode == 0


def test_it_has_nothing(net, metrics):
    """A user of its own, no capability, an empty root, a filter, and no more descriptors than its work needs."""
    pid = net.pid("metrics")
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65531"] * 4 and status["Gid"].split() == ["65531"] * 4 and status["Groups"].strip() == ""
    assert all(int(status[c], 16) == 0 for c in ("CapEff", "CapPrm", "CapInh", "CapAmb")) and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert os.listdir(f"/proc/{pid}/root/") == []
    fds = {os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
    assert not [f for f in fds if f.startswith("/") and f != "/dev/null" and not f.startswith("/dev/pts")], fds


def test_a_policy_without_it_ends_it(net, metrics):
    pid = net.pid("metrics")
    net.use()
    assert not os.path.exists(f"/proc/{pid}") and net.state("metrics") is None
    assert net.curl(metrics).returncode == 7
    net.use(f"metrics: {{listen: \"{METRICS}\"}}\n")
    net.ready("metrics")
    assert net.curl(metrics).returncode == 0


# -- OTLP --------------------------------------------------------------------------------------------


def test_events_are_otlp_logs(net):
    """ExportLogsServiceRequest, as the JSON form of protobuf has it."""
    with otlp(net, 4318) as r:
        session = new_session("exported")
        net.api.create(session)
        net.api.escalate(session, "SECRET", dataset="d")
        with Box(net.daemon, mode="NONE") as box:
            box.try_("dial", family=4, addr="198.51.100.10", port=80)
        last = net.api.events()[-1]["seq"]
        assert base.eventually(lambda: last in r.seqs(), 10), (r.seqs(), net.daemon.text()[-2000:])
        q = r.requests[0]
        assert q["path"] == "/v1/logs" and q["headers"]["Content-Type"] == "application/json" and q["headers"]["Host"] == "127.0.0.1:4318"
        assert set(q["body"]) == {"resourceLogs"}
        [logs] = q["body"]["resourceLogs"]
        resource = attributes(logs["resource"])
        assert resource["service.name"] == "netpawl" and resource["service.version"] and resource["host.name"]
        assert logs["scopeLogs"][0]["scope"]["name"] == "netpawl.events"
        for request in r.requests:
            for record in records(request["body"]):
                assert set(record) == {"timeUnixNano", "observedTimeUnixNano", "severityNumber", "severityText", "body", "attributes"}
                assert re.fullmatch(r"\d{19}", record["timeUnixNano"]) and isinstance(record["body"]["stringValue"], str)
                assert (record["severityNumber"], record["severityText"]) in ((9, "INFO"), (13, "WARN"), (17, "ERROR"))
                for a in record["attributes"]:  # 64-bit integers are text there
                    assert "intValue" not in a["value"] or isinstance(a["value"]["intValue"], str)
        by_seq = {a["netpawl.seq"]: a for a in r.taken()}
        raised = next(a for a in by_seq.values() if a["netpawl.reason"] == "raised")
        assert raised["netpawl.session"] == session and raised["netpawl.level"] == "SECRET" and raised["netpawl.dataset"] == "d"
        refused = next(a for a in by_seq.values() if a["netpawl.kind"] == "refuse")
        assert refused["network.peer.address"] == "198.51.100.10" and refused["network.peer.port"] == 80 and refused["process.pid"] > 0
        # Each event once, in order, and as the API has it.
        assert r.seqs() == sorted(set(r.seqs()))
        plain = {e["seq"]: e for e in net.api.events(limit=1000) if e["seq"] in by_seq}
        for seq, e in plain.items():
            assert by_seq[seq]["netpawl.reason"] == e["reason"] and by_seq[seq].get("netpawl.session") == e.get("session")


def test_a_path_of_the_receivers_own(net):
    with otlp(net, 4319, path="/custom/ingest?x=1") as r:
        net.happen()
        assert base.eventually(lambda: r.requests, 10) and r.requests[0]["path"] == "/custom/ingest?x=1"


def test_nothing_is_lost_while_a_receiver_does_not_want_it(net):
    """404, 429 with Retry-After, bytes that are no answer: all of it comes later, in order, and less often each time."""
    with otlp(net, 4320, "404", "429 1", "nonsense") as r:
        first = net.api.events()[-1]["seq"]
        last = net.happen(5)
        assert base.eventually(lambda: last in r.seqs(), 10), (r.requests, net.daemon.text()[-2000:])
        seqs = r.seqs()
        assert seqs == sorted(set(seqs)) and set(range(first + 1, last + 1)) <= set(seqs)
        waited = [b["at"] - a["at"] for a, b in zip(r.requests, r.requests[1:])]
        assert [q["how"][0] for q in r.requests[:3]] == ["404", "429", "nonsense"]
        assert waited[0] >= 1 and waited[1] >= 1 and waited[2] >= 4, waited
        assert base.eventually(lambda: net.state("otlp")["failures"] >= 3, 10) and net.state("otlp")["rejected"] == 0
        assert base.eventually(lambda: net.state("otlp")["acked"] >= last, 10)
        s, said = net.state("otlp"), net.daemon.cli("status").stdout
        assert re.search(r"^export\.otlp +ready, http://127\.0\.0\.1:4320: "
                         f"{s['sent']} events taken, {s['failures']} attempts failed, 0 not wanted, {s['gaps']} missed$", said, re.M), said
    assert "export." not in net.daemon.cli("status").stdout


def test_retry_after_is_kept(net):
    with otlp(net, 4321, "503 3", "close") as r:
        last = net.happen()
        assert base.eventually(lambda: last in r.seqs(), 10)
        assert r.requests[1]["at"] - r.requests[0]["at"] >= 3 and r.requests[2]["at"] - r.requests[1]["at"] >= 2


@pytest.mark.parametrize("how", ["hang", "slow"])
def test_a_receiver_that_does_not_answer_is_left(net, how):
    """Not a byte, or one now and then: the time is for the whole of it. Meanwhile nobody else waits."""
    with otlp(net, 4322 if how == "hang" else 4323, how) as r:
        last = net.happen()
        assert base.eventually(lambda: r.requests, 10)
        assert net.api.health()["status"] == "ok"
        assert base.eventually(lambda: last in r.seqs(), 10), r.requests
        assert 9.5 < r.requests[1]["at"] - r.requests[0]["at"] < 60


def test_what_is_refused_for_good_is_left_out_and_counted(net):
    """400: which of them it is, is found; the others are taken."""
    with otlp(net, 4324, "poison exported-poison") as r:
        before = net.state("otlp")["rejected"]
        r.plan("503 2")  # so that they come together
        first = net.happen(4)
        net.api.create("exported-poison/s")
        bad = net.api.events()[-1]["seq"]
        last = net.happen(4)
        assert base.eventually(lambda: last in r.seqs(), 10), r.requests
        seqs = r.seqs()
        assert bad not in seqs and set(range(first - 3, last + 1)) - set(seqs) == {bad} and seqs == sorted(set(seqs))
        assert base.eventually(lambda: net.state("otlp")["rejected"] == before + 1, 10)
        assert f"does not want event {bad}: the answer is 400" in net.daemon.text()
        assert max(len(records(q["body"])) for q in r.requests if q["how"][0] == "400") > 1


def test_it_goes_on_where_it_was_after_kills(net):
    """The exporter, then the daemon: at least once, by the ids of events."""
    with otlp(net, 4325) as r:
        last = net.happen(3)
        assert base.eventually(lambda: last in r.seqs(), 10)
        pid = net.pid("otlp")
        os.kill(pid, signal.SIGKILL)
        last = net.happen(3)
        assert base.eventually(lambda: last in r.seqs(), 10)
        r.plan(*["503"] * 3)
        last = net.happen(3)
        net.daemon.kill()
        net.daemon.start()
        last = net.happen(3)
        assert base.eventually(lambda: last in r.seqs(), 10)
        seqs = sorted(set(r.seqs()))
        assert seqs == list(range(seqs[0], seqs[-1] + 1)), "none is missing"


def test_a_damaged_place_sends_all_of_the_record(net):
    net.happen(2)
    net.use()
    place = net.daemon.state_dir / "exports/otlp"
    assert place.exists()
    place.write_bytes(b"x" * 128)
    with otlp(net, 4326) as r:
        assert base.eventually(lambda: 1 in r.seqs(), 10), r.seqs()[:5]
        assert "is damaged" in net.daemon.text()


def test_what_the_record_has_no_more_is_told(net):
    """A place before the oldest event: the record says what it has not kept, once, and it is passed on."""
    net.happen(1)
    net.use()
    net.daemon.stop()
    import sqlite3
    db = sqlite3.connect(net.daemon.state_dir / "events/events.db")
    newest = db.execute("select max(seq) from event").fetchone()[0]
    db.execute("delete from event where seq between ? and ?", (newest - 3, newest - 1))
    db.commit()
    db.close()
    place = net.daemon.state_dir / "exports/otlp"
    place.write_bytes(b"")  # nothing was written yet: it would begin with what comes, so it is given a place below
    net.daemon.start()
    place.write_bytes(slot(newest - 10))
    with otlp(net, 4327) as r:
        assert base.eventually(lambda: newest in r.seqs(), 10), r.seqs()
        gap = [a for a in r.taken() if a["netpawl.reason"] in ("lost", "not_kept")]
        assert gap and gap[0]["netpawl.reason"] == "lost" and gap[0]["netpawl.suppressed"] == 3, gap
        assert base.eventually(lambda: net.state("otlp")["gaps"] >= 3, 10)


def slot(seq):
    """As user/link/cursor.c writes it, in the first of the two."""
    text = b"%020d %020d " % (seq, 2)
    words = [0x9e3779b97f4a7c15, 0xd1b54a32d192ed03]
    mix = lambda a, b: (a * b & (2**64 - 1)) ^ (a * b >> 64)
    h, at = words[0] ^ len(text), 0
    while len(text) - at >= 8:
        h = mix(h ^ int.from_bytes(text[at:at + 8], "little"), words[1])
        at += 8
    h = mix(h ^ int.from_bytes(text[at:], "little"), words[1])
    return (text + b"%016x" % h + b"    \n\n").ljust(64, b"\n")[:64]


# -- journald ------------------------------------------------------------------------------------------


def test_events_are_fields_of_the_journal(net):
    path = net.daemon.dir / "journal.socket"
    with Journal(path) as j:
        net.use(f"events: {{journald: \"{path}\"}}\n")
        net.ready("journald")
        session = new_session("exported")
        net.api.create(session)
        # A sandbox's word with what looks like fields in it: the path of a unix socket.
        hostile = "/tmp/x\nNETPAWL_SESSION=evil/forged\nMESSAGE=forged\x1b[31m"
        with Box(net.daemon, mode="NONE") as box:
            assert box.try_("dial", family="unix", addr=hostile) != "ok"
        net.api.escalate(session, "INTERNAL", reason="a person's words")
        last = net.api.events()[-1]["seq"]
        seqs = lambda: [int(dict(e)["NETPAWL_SEQ"]) for e in list(j.entries) if "NETPAWL_SEQ" in dict(e)]
        assert base.eventually(lambda: last in seqs(), 10), (j.entries, net.daemon.text()[-1000:])
        got = next(dict(e) for e in j.entries if dict(e).get("NETPAWL_REASON") == b"raised" and dict(e)["NETPAWL_SESSION"].decode() == session)
        assert got["NETPAWL_LEVEL"] == b"INTERNAL" and got["NETPAWL_TEXT"] == b"a person's words"
        assert got["SYSLOG_IDENTIFIER"] == b"netpawl" and got["PRIORITY"] == b"6"
        hostile = next(e for e in j.entries if b"evil/forged" in dict(e).get("NETPAWL_ADDRESS", b""))
        got = dict(hostile)
        assert len(got) == len(hostile), "no field is there twice"
        assert b"forged" not in got["NETPAWL_SESSION"] and got["PRIORITY"] == b"5" and got["MESSAGE"].startswith(b"refuse ")
        assert b"\x1b" not in got["MESSAGE"] and b"\n" not in got["MESSAGE"]
        assert seqs() == sorted(set(seqs()))
    net.use()


def test_a_journal_that_comes_later_gets_what_it_missed(net):
    path = net.daemon.dir / "later.socket"
    net.use(f"events: {{journald: \"{path}\"}}\n")
    assert base.eventually(lambda: net.state("journald")["starts"] > 1, 10) and not net.state("journald")["ready"]
    assert "later.socket" in net.daemon.text()
    seqs = lambda j: [int(dict(e)["NETPAWL_SEQ"]) for e in list(j.entries) if "NETPAWL_SEQ" in dict(e)]
    with Journal(path) as j:
        net.ready("journald")
        last = net.happen()
        assert base.eventually(lambda: last in seqs(j), 10)
    missed = net.happen(3)
    with Journal(path) as j:
        assert base.eventually(lambda: missed in seqs(j), 10) and set(range(missed - 2, missed + 1)) <= set(seqs(j))
    net.use()


# -- the policy ---------------------------------------------------------------------------------------


def test_who_begins_to_export_begins_with_the_reload(net):
    """However long it takes until the exporter is ready: what happens meanwhile comes as well, and what was before does not."""
    path = net.daemon.dir / "begins.socket"
    net.use()
    assert base.eventually(lambda: not net.pid("journald"))
    (net.daemon.state_dir / "exports/journald").unlink(missing_ok=True)
    before = net.happen(2)
    net.use(f"events: {{journald: \"{path}\"}}\n")
    last = net.happen(3)
    assert not net.state("journald")["ready"], "nobody listens there yet"
    net.daemon.kill()
    net.daemon.start()
    with Journal(path) as j:
        seqs = lambda: [int(dict(e)["NETPAWL_SEQ"]) for e in list(j.entries) if "NETPAWL_SEQ" in dict(e)]
        assert base.eventually(lambda: last in seqs(), 20), (j.entries, net.daemon.text()[-1000:])
        assert seqs()[:last - before] == list(range(before + 1, last + 1)), "none is left out, and none is from before"
    net.use()


# Its standard error is the journal's, as systemd tells services; what stands for journald listens where it does.
UNDER = """mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/journal && touch /run/systemd/journal/socket &&
mount --bind "$0" /run/systemd/journal/socket && export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && exec "$@" """


def test_under_systemd_it_is_on_by_itself(make_daemon):
    d = make_daemon()
    path, argv = d.dir / "systemd.socket", d.argv
    n, enter = Exported(d), len(d.world.enter())
    with Journal(path) as j:
        d.argv = lambda *more, **kw: [*argv(*more, **kw)[:enter], "unshare", "--mount", "--propagation", "slave", "sh", "-c", UNDER, str(path), *argv(*more, **kw)[enter:]]
        d.start()
        n.ready("journald")
        assert n.state("journald")["to"] == "/run/systemd/journal/socket"
        last = n.happen()
        assert base.eventually(lambda: any(dict(e).get("NETPAWL_SEQ") == b"%d" % last for e in list(j.entries)), 10), j.entries
        assert any(dict(e).get("NETPAWL_SEQ") == b"1" for e in j.entries), "from the first event of the first start on"
        n.use("events: {journald: none}\n")
        assert n.state("journald") is None and base.eventually(lambda: not n.pid("journald"))
        n.use(f"events: {{journald: {path}}}\n")
        n.ready("journald")
        assert n.state("journald")["to"] == str(path)
    d.stop()
    # Without the journal behind it, the word alone is somebody else's: it is inherited by all that a service starts.
    d.argv = argv
    n.use(code=0)
    d.start(JOURNAL_STREAM="1:2")
    assert n.state("journald") is None


@pytest.mark.parametrize("text, says", [
    ("metrics: {listen: \"0.0.0.0:9464\"}\n", '"listen" is a loopback address and a port'),
    ("metrics: {listen: \"127.0.0.1\"}\n", '"listen" is a loopback address and a port'),
    ("metrics: {listen: \"127.0.0.1:0\"}\n", '"listen" is a loopback address and a port'),
    ("metrics: {listen: \"127.0.0.1:9464\"}\nhost_loopback: [9464]\n", 'port 9464 is in "host_loopback": sandboxes reach it'),
    ("events: {otlp: \"http://127.0.0.1:4318\"}\nhost_loopback: [4318]\n", 'port 4318 is in "host_loopback"'),
    ("events: {otlp: \"http://127.0.0.1:4318\"}\ninbound: [4318]\n", 'port 4318 is in "inbound": a sandbox may listen there'),
    ("events: {otlp: \"http://192.0.2.1:4318\"}\n", '"otlp" is http:// with a loopback address'),
    ("events: {otlp: \"https://127.0.0.1:4318\"}\n", '"otlp" is http:// with a loopback address'),
    ("events: {journald: run/systemd}\n", "needs its whole path"),
    ("events: {syslog: x}\n", "syslog"),
])
def test_what_a_policy_cannot_say(net, text, says):
    file = net.daemon.dir / "bad.yaml"
    file.write_text("version: 1\n" + text)
    got = subprocess.run([str(base.NETPAWL), "policy", "check", str(file)], capture_output=True, text=True, timeout=60)
    assert got.returncode != 0 and says in got.stdout + got.stderr, got
