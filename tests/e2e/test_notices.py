# SPDX-License-Identifier: MIT
"""Notices: what the agent in a session is told when its network tightens. Once per reader, never lost."""
import contextlib
import json
import os
import subprocess
import threading

import pytest

from lib import base
from lib.api import Connection, Failure
from lib.box import Adopted, Box, new_session
from lib.daemon import Daemon
from lib.store import old_store
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: api.models.test
  - allow: 203.0.113.7:9000
"""


def notices(api, session, **params):
    query = "&".join(f"{k}={v}" for k, v in params.items())
    return api.ok("GET", f"/v1/sessions/{session}/notices" + ("?" + query if query else ""))


def numbers(answer):
    return [n["notice"] for n in answer["notices"]]


def ack(api, session, reader, upto):
    return api.ok("POST", f"/v1/sessions/{session}/notices/ack", {"reader": reader, "upto": upto})


def seen(box):
    """What the sandbox reads in its file."""
    got = box.call("execute", argv=["sh", "-c", 'cat "$NETPAWL_NOTICES"'])
    assert got["code"] == 0, got
    return [json.loads(line) for line in got["out"].splitlines()]


@pytest.fixture(scope="module")
def policy_file():
    d = base.tempdir("policy")
    path = d / "policy.yaml"
    path.write_text(POLICY)
    yield path
    base.drop_tempdir(d)


@pytest.fixture(scope="module")
def shared(world, policy_file):
    policy_file.write_text(POLICY + base.PERMITS)
    with contextlib.closing(Daemon(world, policy=policy_file)) as daemon:
        yield daemon.start()


@pytest.fixture
def d(shared, policy_file):
    """The module's daemon with the policy above, whatever the test before made of it: sessions are each test's own."""
    policy_file.write_text(POLICY + base.PERMITS)
    if shared.running():
        shared.cli("policy", "reload", check=0)
    else:
        shared.start()
    return shared


# -- what is told -----------------------------------------------------------------

def test_every_change_of_mode_is_one_notice(d):
    box = Box(d, "FULL")
    try:
        assert notices(d.api, box.session)["notices"] == []
        d.api.escalate(box.session, "INTERNAL", "a.csv")  # no new mode
        assert notices(d.api, box.session)["notices"] == []
        d.api.escalate(box.session, "CONFIDENTIAL", "customers.csv", "ticket 4711")
        d.api.escalate(box.session, "CONFIDENTIAL", "more.csv")
        d.api.escalate(box.session, "PUBLIC")
        d.api.escalate(box.session, "SECRET")
        d.api.escalate(box.session, "SECRET", "again.csv")
        one, two = notices(d.api, box.session)["notices"]
        assert (one["notice"], one["level"], one["mode"], one["dataset"], one["reason"], one["session"]) == (
            1, "CONFIDENTIAL", "PROXIED", "customers.csv", "ticket 4711", box.session)
        for words in ('the dataset "customers.csv" came in (ticket 4711)', "PROXIED", "api.models.test",
                      "203.0.113.7:9000/tcp", "will not help", "files and work so far are kept"):
            assert words in one["text"]
        assert (two["notice"], two["level"], two["mode"]) == (2, "SECRET", "NONE") and "dataset" not in two
        for words in ("its level was raised", "closed", "nothing but itself", "will not help", "are kept"):
            assert words in two["text"]
        assert "api.models.test" not in two["text"]
    finally:
        box.close()


def test_a_reload_that_tightens(d, policy_file):
    box = Box(d, "FULL", level="INTERNAL")
    try:
        policy_file.write_text("version: 1\nlevels: {INTERNAL: proxied}\nrules: [{allow: new.models.test}]\n" + base.PERMITS)
        d.cli("policy", "reload", check=0)
        (one,) = notices(d.api, box.session)["notices"]
        assert (one["level"], one["mode"]) == ("INTERNAL", "PROXIED")
        assert "policy became stricter" in one["text"] and "new.models.test" in one["text"]  # of the policy that holds now
        assert seen(box) == [one]
        # a higher level that is PROXIED too has rules of its own: it is told
        d.api.escalate(box.session, "CONFIDENTIAL", "c.csv")
        assert numbers(notices(d.api, box.session)) == [1, 2]
    finally:
        box.close()


def test_wording_of_the_policy(d, policy_file):
    policy_file.write_text(POLICY + 'notices:\n  proxied: "{{{session}}} {cause} | {dataset} | {reason} | {level} {mode} | {allowed}"\n' + base.PERMITS)
    d.cli("policy", "reload", check=0)
    session = new_session()
    d.api.escalate(session, "CONFIDENTIAL", "x {level} y", "why not")
    d.api.escalate(session, "SECRET")
    one, two = notices(d.api, session)["notices"]
    assert one["text"] == (f'{{{session}}} the dataset "x {{level}} y" came in (why not) | x {{level}} y | why not | CONFIDENTIAL'
                           ' PROXIED | only api.models.test, 203.0.113.7:9000/tcp (those without a port: HTTP and HTTPS on'
                           ' port 80 or 443), and itself')
    assert two["text"].startswith("Notice from netpawl")  # not in the policy: the words that come with it
    # a wrong one changes nothing, and its place is told
    policy_file.write_text(POLICY + "notices:\n  none: go away {whom}\n")
    p = d.cli("policy", "reload", check=1)
    assert f"{policy_file}:6:9: " in p.stderr and '"whom"' in p.stderr and "{allowed}" in p.stderr


# -- the file in the sandbox --------------------------------------------------------

@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_file_is_there_at_once_and_read_only(d, user):
    box = Box(d, "FULL", user=user)
    try:
        assert seen(box) == []
        # a reader that has it open sees what is added
        tail = "import os, sys, time\nf = open(os.environ['NETPAWL_NOTICES'])\nfor i in range(3000):\n line = f.readline()\n" \
               " if line.endswith(chr(10)): sys.stdout.write(line); break\n time.sleep(0.01)\n"
        out = {}
        reader = threading.Thread(target=lambda: out.update(box.call("execute", 60, argv=["/usr/bin/python3", "-c", tail])))
        reader.start()
        d.api.escalate(box.session, "CONFIDENTIAL", "customers.csv")
        reader.join(60)
        assert json.loads(out["out"])["dataset"] == "customers.csv", out
        d.api.escalate(box.session, "SECRET", "payroll.db")
        assert seen(box) == notices(d.api, box.session)["notices"] and len(seen(box)) == 2
        before = seen(box)
        for what in ('echo x >> "$NETPAWL_NOTICES"', 'rm -f "$NETPAWL_NOTICES"', ': > "$NETPAWL_NOTICES"',
                     'mv /run/netpawl/notices /run/other', 'ln -sf /etc/passwd "$NETPAWL_NOTICES"',
                     'chmod 777 "$NETPAWL_NOTICES"', "mkdir /run/netpawl/notices/x", "umount /run/netpawl/notices",
                     "mount -o remount,rw /run/netpawl/notices"):
            got = box.call("execute", argv=["sh", "-c", what])
            assert got["code"] != 0, what
        assert seen(box) == before
        # nothing else of the daemon's is in there
        assert set(box.call("execute", argv=["ls", "-A", "/run/netpawl/notices"])["out"].split()) - {"why.txt", "why.txt.new"} == {"notices.ndjson"}
    finally:
        box.close()


def test_other_sessions_are_not_seen(d):
    a, b = Box(d, "FULL"), Box(d, "FULL", user="nobody")
    try:
        d.api.escalate(a.session, "SECRET", "payroll.db")
        assert seen(b) == []
        path = notices(d.api, a.session)["file"]
        for box in (a, b):
            assert box.call("execute", argv=["cat", path])["code"] != 0
        assert oct((d.run_dir / "notices").stat().st_mode & 0o777) == "0o700"
    finally:
        a.close()
        b.close()


def test_adopted_cgroups_are_told_the_path(d, world):
    box = Adopted(d, "FULL")
    try:
        path = box.info["notices"]
        assert notices(d.api, box.session)["file"] == path
        d.api.escalate(box.session, "SECRET", "payroll.db")
        with open(path) as f:
            assert [json.loads(line)["dataset"] for line in f] == ["payroll.db"]
    finally:
        box.close()
    d.api.end(box.session)
    assert not os.path.exists(path) and not os.path.exists(os.path.dirname(path))
    # the record stays, and with it comes the file again
    assert numbers(notices(d.api, box.session)) == [1]
    made = d.api.make(box.session)
    with open(made["notices"]) as f:
        assert json.loads(f.read())["dataset"] == "payroll.db"
    d.api.remove(made["sandbox"])
    d.api.end(box.session)


def test_a_file_that_cannot_be_written_stops_nothing(d):
    box = Box(d, "FULL")
    try:
        folder = os.path.dirname(notices(d.api, box.session)["file"])
        victim = d.dir / "victim"
        victim.write_text("untouched")
        os.rename(folder, folder + ".away")
        os.symlink(victim.parent, folder)
        answer = d.api.escalate(box.session, "SECRET", "payroll.db")
        assert answer["mode"] == "NONE" and box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
        assert numbers(notices(d.api, box.session)) == [1]
        assert victim.read_text() == "untouched" and not (victim.parent / "notices.ndjson").exists()
        failed = [e for e in d.api.events(session=box.session) if e["reason"] == "failed"]
        assert failed and "notices" in failed[0]["text"]
        # what was missed is there when it can be written again
        os.unlink(folder)
        os.rename(folder + ".away", folder)
        d.restart("kill")
        assert [n["dataset"] for n in seen(box)] == ["payroll.db"]
    finally:
        box.close()


def test_a_sandbox_starts_without_the_file(make_daemon):
    """The directory cannot be made: the session is told by the API alone, and the command runs."""
    d = make_daemon().start()
    (d.run_dir / "notices").write_text("in the way")
    box = Box(d, "FULL")
    try:
        got = box.call("execute", argv=["sh", "-c", 'echo "${NETPAWL_NOTICES-none}"; ls -A /run/netpawl/notices'])
        assert got["out"] == "none\n"
        d.api.escalate(box.session, "SECRET", "s.csv")
        assert numbers(notices(d.api, box.session)) == [1]
    finally:
        box.close()
        (d.run_dir / "notices").unlink()


# -- readers ------------------------------------------------------------------------

def test_once_per_reader(d):
    session = new_session()
    d.api.escalate(session, "CONFIDENTIAL", "c.csv")
    assert numbers(notices(d.api, session, reader="a")) == [1]
    assert numbers(notices(d.api, session, reader="a")) == [1]  # not acknowledged: an answer may have been lost
    assert ack(d.api, session, "a", 1) == {"session": session, "reader": "a", "upto": 1}
    assert numbers(notices(d.api, session, reader="a")) == [] and numbers(notices(d.api, session, reader="b")) == [1]
    d.api.escalate(session, "SECRET", "s.csv")
    assert numbers(notices(d.api, session, reader="a")) == [2] and numbers(notices(d.api, session, reader="b")) == [1, 2]
    assert numbers(notices(d.api, session)) == [1, 2] and numbers(notices(d.api, session, after=1)) == [2]
    # what is not there yet cannot be acknowledged, and nobody goes back
    with pytest.raises(Failure) as e:
        ack(d.api, session, "a", 3)
    assert (e.value.status, e.value.error) == (400, "bad_field")
    assert ack(d.api, session, "a", 0)["upto"] == 1


@pytest.mark.parametrize("body", [{"reader": "a"}, {"upto": 1}, {"reader": "a", "upto": "1"}, {"reader": "a", "upto": -1},
                                  {"reader": "a", "upto": 1.5}, {"reader": "a/b", "upto": 1}, {"reader": "", "upto": 1},
                                  {"reader": "a" * 65, "upto": 1}, {"reader": "a", "upto": 1 << 40},
                                  {"reader": "a", "upto": 1, "more": "x"}])
def test_bad_acknowledgements(daemon, body):
    session = new_session()
    daemon.api.escalate(session, "SECRET")
    status, answer = daemon.api.ask("POST", f"/v1/sessions/{session}/notices/ack", body)
    assert status == 400, answer
    assert numbers(notices(daemon.api, session, reader="a")) == [1]


def test_bounds_and_unknowns(daemon):
    session = new_session()
    daemon.api.escalate(session, "SECRET")
    for i in range(16):
        ack(daemon.api, session, f"r{i}", 1)
    with pytest.raises(Failure) as e:
        ack(daemon.api, session, "one-more", 1)
    assert (e.value.status, e.value.error) == (429, "too_many")
    ack(daemon.api, session, "r3", 1)
    assert numbers(notices(daemon.api, session, reader="one-more")) == [1]  # it may read all the same
    for path in ("after=x", "follow=2", "reader=a%20b", "readr=a"):
        assert daemon.api.ask("GET", f"/v1/sessions/{session}/notices?{path}")[0] == 400
    assert daemon.api.ask("GET", "/v1/sessions/tester/nobody/notices")[0] == 404
    assert daemon.api.ask("POST", "/v1/sessions/tester/nobody/notices/ack", {"reader": "a", "upto": 1})[0] == 404
    # the texts have bounds too, and what is cut is still one line of JSON
    long = new_session()
    daemon.api.escalate(long, "SECRET", "d" * 128, "r" * 512)
    assert len(notices(daemon.api, long)["notices"][0]["text"]) < 8192


def test_the_command(d):
    session = new_session()
    d.api.escalate(session, "CONFIDENTIAL", "c.csv")
    p = d.cli("notices", session, check=0)
    assert len(p.stdout.splitlines()) == 1 and 'the dataset "c.csv" came in' in p.stdout
    assert d.cli("notices", session, check=0).stdout == ""
    assert len(d.cli("notices", session, "--all", check=0).stdout.splitlines()) == 1
    got = json.loads(d.cli("notices", session, "--reader", "mine", "--json", check=0).stdout)
    assert numbers(got) == [1] and got["reader"] == "mine"
    assert numbers(json.loads(d.cli("notices", session, "--reader", "mine", "--json", check=0).stdout)) == []
    assert d.cli("notices", "tester/nobody").returncode == 1
    assert d.cli("notices", session, "--reader", "a/b").returncode == 1


def test_printed_to_nobody_is_not_delivered(d):
    session = new_session()
    d.api.escalate(session, "SECRET", "s.csv")
    with open("/dev/full", "w") as full:
        p = subprocess.run([*d.world.enter(), str(base.NETPAWL), "notices", session], stdout=full, stderr=subprocess.PIPE,
                           env=base.env(NETPAWL_SOCKET=str(d.socket)), timeout=180)
    assert p.returncode == 1
    assert numbers(notices(d.api, session, reader="cli")) == [1]


@pytest.mark.parametrize("words", [[], ["--json"], ["--follow"]])
def test_a_closed_output_is_told_nothing(d, words):
    session = new_session()
    d.api.escalate(session, "SECRET", "s.csv")
    p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *d.world.enter(), str(base.NETPAWL), "notices", session, *words],
                       stderr=subprocess.PIPE, env=base.env(NETPAWL_SOCKET=str(d.socket)), timeout=180, text=True)
    assert p.returncode == 1 and "cannot write to standard output" in p.stderr
    assert numbers(notices(d.api, session, reader="cli")) == [1]


def test_follow(d):
    session = new_session()
    d.api.escalate(session, "CONFIDENTIAL", "c.csv")
    p = base.popen([*d.world.enter(), str(base.NETPAWL), "notices", session, "--follow", "--json"], stdout=subprocess.PIPE,
                   env=base.env(NETPAWL_SOCKET=str(d.socket)), text=True)
    try:
        assert json.loads(p.stdout.readline())["notice"] == 1
        d.api.escalate(new_session(), "SECRET", "other.csv")  # of another session: nothing comes
        d.api.escalate(session, "SECRET", "s.csv")
        two = json.loads(p.stdout.readline())
        assert (two["notice"], two["session"], two["dataset"]) == (2, session, "s.csv")
        assert base.eventually(lambda: numbers(notices(d.api, session, reader="cli")) == [])
    finally:
        base.reap(p)
    assert d.cli("notices", session, check=0).stdout == ""


def test_follow_by_the_api(d):
    session = new_session()
    d.api.create(session)
    c = Connection(d.socket, 30)
    try:
        c.request("GET", f"/v1/sessions/{session}/notices?reader=r&follow=1")
        r = c.getresponse()
        assert r.status == 200 and r.headers["Content-Type"] == "application/x-ndjson"
        d.api.escalate(session, "CONFIDENTIAL", "c.csv")
        lines = [json.loads(r.readline())]
        d.api.escalate(session, "SECRET", "s.csv")
        lines.append(json.loads(r.readline()))
        assert lines == notices(d.api, session)["notices"]
        # reading a stream acknowledges nothing
        assert numbers(notices(d.api, session, reader="r")) == [1, 2]
    finally:
        c.close()


# -- what was acknowledged is on disk ---------------------------------------------------

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_survives_the_daemon(d, how):
    box = Box(d, "FULL")
    try:
        d.api.escalate(box.session, "CONFIDENTIAL", "c.csv")
        ack(d.api, box.session, "a", 1)
        d.api.escalate(box.session, "SECRET", "s.csv", "the last word")
        d.restart(how)
        assert [n["dataset"] for n in notices(d.api, box.session)["notices"]] == ["c.csv", "s.csv"]
        assert numbers(notices(d.api, box.session, reader="a")) == [2]
        # the sandbox runs on and still sees them, and new files are not made beside its own
        assert [n["dataset"] for n in seen(box)] == ["c.csv", "s.csv"]
    finally:
        box.close()


@pytest.mark.parametrize("point", ["after_raise", "after_cut", "before_record", "after_record"])
def test_a_crash_on_the_way_loses_no_notice(make_daemon, policy_file, point):
    policy_file.write_text(POLICY + base.PERMITS)
    d = make_daemon(policy=policy_file).start(failpoint=point)
    box = Box(d, "FULL")
    try:
        d.arm(point)
        with pytest.raises(Exception):
            d.api.escalate(box.session, "SECRET", "s.csv")
        d.wait_death()
        d.start()
        (one,) = notices(d.api, box.session)["notices"]
        assert one["mode"] == "NONE" and seen(box) == [one]
        # before the record nobody knew of the dataset: asked again, it is recorded, and the mode is no news
        assert one.get("dataset") == ("s.csv" if point == "after_record" else None)
        d.api.escalate(box.session, "SECRET", "s.csv")
        assert numbers(notices(d.api, box.session)) == [1]
    finally:
        box.close()


def test_the_store_of_an_older_version(make_daemon, policy_file):
    """A record without notices is taken as it is, and gets them from here on."""
    d = make_daemon(policy=policy_file)
    old_store(d, "DROP TABLE approvals; DROP TABLE runs; ALTER TABLE sandboxes DROP COLUMN class;"
                 "DROP TABLE notices; DROP TABLE notice_readers; UPDATE meta SET value = 1 WHERE key = 'schema';")
    d.start()
    session = "alice/open"
    assert d.api.show(session)["level"] == "CONFIDENTIAL" and notices(d.api, session)["notices"] == []
    assert d.api.ok("GET", f"/v1/sessions/{session}/why")["since"] is None
    d.api.escalate(session, "SECRET", "s.csv")
    assert numbers(notices(d.api, session)) == [1]
