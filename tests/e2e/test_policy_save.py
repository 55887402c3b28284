# SPDX-License-Identifier: MIT
"""Files of the policy that the API writes: whole or not at all, never over what somebody else has written, and by whom it is for."""
import contextlib
import hashlib
import json
import os
import subprocess

import pytest

from lib import base
from lib.daemon import Daemon
from lib.fixtures import daemon_whole

EDITOR = 65534  # nobody
HEAD = f"""# kept as it is
include: [more/lists.yaml]   # and so is this
access: {{editor: 'user:{EDITOR}', reader: 'user:65533'}}
approval: {{hold: 20s, timeout: 15m}}
rules:
  - allow: "@ours"
  - deny: a.example   # a remark
"""
LISTS = "version: 1\nlists:\n  ours: [one.example]\n"


@pytest.fixture(scope="module")
def d(world):
    d = Daemon(world)
    (d.dir / "more").mkdir()
    (d.dir / "more/lists.yaml").write_text(LISTS)
    d.policy.write_text("version: 1\n" + HEAD + base.PERMITS)
    with daemon_whole(d):
        d.run_dir.chmod(0o755)
        d.dir.chmod(0o755)
        yield d


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def ask(d, text, file="policy.yaml", old=None):
    """(status, answer)"""
    path = d.dir / file
    return d.api.ask("PUT", "/v1/policy/file", {"file": file, "old": old or digest(path.read_text()), "text": text})


def as_user(d, uid, *words, input=None):
    return subprocess.run([*d.world.enter(), "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--", str(base.NETPAWL), *map(str, words),
                           "--socket", str(d.socket)], capture_output=True, text=True, timeout=60, env=base.env(), input=input)


def leftovers(d):
    return sorted(p.name for p in d.dir.iterdir() if p.name.endswith(".new"))


def test_the_source_names_what_was_seen(d):
    files = d.api.ok("GET", "/v1/policy/source")["files"]
    assert {f["name"]: f["sha256"] for f in files} == {"policy.yaml": digest(d.policy.read_text()), "more/lists.yaml": digest(LISTS)}


def test_it_is_on_the_disk_and_live(d):
    before, text = d.policy.read_text(), d.policy.read_text().replace("a.example", "b.example")
    os.chown(d.policy, 7, 8)
    d.policy.chmod(0o640)
    last = d.api.events()[-1]["seq"]
    status, done = ask(d, text)
    assert status == 200 and done["changed"] and done["file"] == "policy.yaml" and done["sha256"] == digest(text)
    assert d.policy.read_text() == text and "# kept as it is" in text
    st = d.policy.stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (7, 8, 0o640) and not leftovers(d)
    live = d.api.ok("GET", "/v1/policy")
    assert live["hash"] == done["hash"] and any("b.example" in rule["text"] for rule in live["listing"])
    events = [e for e in d.api.events() if e["seq"] > last]
    assert [e["reason"] for e in events] == ["policy_loaded", "policy_saved"]
    assert events[1]["who"].startswith("uid 0 pid ") and events[1]["policy"] == done["hash"]
    assert events[1]["text"] == f"policy.yaml: sha256 {digest(before)} became {digest(text)}"


def test_one_that_is_included(d):
    assert ask(d, LISTS.replace("one", "two"), "more/lists.yaml")[0] == 200
    assert "two.example" in (d.dir / "more/lists.yaml").read_text()


def test_not_over_what_somebody_else_has_written(d):
    seen = d.policy.read_text()
    other = seen + "# by hand\n"
    d.policy.write_text(other)
    try:
        status, answer = ask(d, seen.replace("b.example", "c.example"), old=digest(seen))
        assert (status, answer["error"]) == (409, "file_changed") and d.policy.read_text() == other
        # who has seen the file, but not that it is not live, would make live what nobody has shown them
        status, answer = ask(d, other.replace("b.example", "c.example"))
        assert (status, answer["error"]) == (409, "file_changed") and "reload" in answer["detail"] and d.policy.read_text() == other
        (d.dir / "more/lists.yaml").write_text(LISTS)
        d.policy.write_text(seen)
        status, answer = ask(d, seen.replace("b.example", "c.example"))
        assert (status, answer["error"]) == (409, "file_changed") and d.policy.read_text() == seen, "another file of it has changed"
    finally:
        d.policy.write_text(seen)
        d.api.ok("POST", "/v1/policy/reload")


@pytest.mark.parametrize("text, word", [("rules: [", "policy.yaml:"), ("", "policy.yaml"), ("version: 1\nrules:\n  - allw: x.example\n", "allw"),
                                         ("version: 1\ninclude: [../../etc/passwd]\n", "policy.yaml:2"), ("version: 1\nrules:\n  - allow: '@ours'\n", "ours")])
def test_errors_are_told_by_their_place_and_nothing_is_written(d, text, word):
    before, live = d.policy.read_text(), d.api.ok("GET", "/v1/policy")["hash"]
    status, answer = ask(d, text)
    assert (status, answer["error"]) == (422, "bad_policy") and word in answer["detail"]
    assert d.policy.read_text() == before and d.api.ok("GET", "/v1/policy")["hash"] == live and not leftovers(d)


def test_what_cannot_be_loaded_is_taken_back(d):
    """It reads well, and the daemon cannot use it: the login of a proxy is not there."""
    before, live = d.policy.read_text(), d.api.ok("GET", "/v1/policy")["hash"]
    last = d.api.events()[-1]["seq"]
    status, answer = ask(d, before + "upstream_proxy:\n  - url: http://192.0.2.9:3128\n    credentials: {file: /nowhere/at/all}\n")
    assert status >= 400 and "/nowhere/at/all" in answer["detail"], answer
    assert d.policy.read_text() == before and d.api.ok("GET", "/v1/policy")["hash"] == live
    assert [e["reason"] for e in d.api.events() if e["seq"] > last] == ["policy_refused"]


def test_what_cannot_be_put_back_is_said(world):
    """The file system is full meanwhile: somebody holds the old file open, so that its blocks are not free."""
    d = Daemon(world)
    small = d.dir / "small"
    small.mkdir()
    base.sh("mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "tmpfs", small)
    d.policy, old = small / "policy.yaml", "version: 1\n" + "# long ago\n" * 2500
    d.policy.write_text(old)
    new = "version: 1\nupstream_proxy:\n  - url: http://192.0.2.9:3128\n    credentials: {file: /nowhere/at/all}\n"
    with daemon_whole(d), contextlib.ExitStack() as stack:
        stack.callback(base.sh, "umount", small)
        with open(d.policy) as held:
            with contextlib.suppress(OSError), open(small / "filler", "wb", buffering=0) as f:
                while f.write(b"x" * 4096):
                    pass
            os.truncate(small / "filler", (small / "filler").stat().st_size - 8192)
            live, last = d.api.ok("GET", "/v1/policy")["hash"], d.api.events()[-1]["seq"]
            status, answer = d.api.ask("PUT", "/v1/policy/file", {"file": "policy.yaml", "old": digest(old), "text": new})
            assert status >= 400 and "/nowhere/at/all" in answer["detail"], answer
            assert "policy.yaml could not be put back (No space left on device)" in answer["detail"], answer
            assert held.read() == old and d.policy.read_text() == new and d.api.ok("GET", "/v1/policy")["hash"] == live
            told = [e for e in d.api.events() if e["seq"] > last]
            assert {e["reason"] for e in told} == {"policy_refused"} and any("could not be put back" in e["text"] for e in told)


@pytest.mark.parametrize("place, written", [("save_noted", False), ("save_written", True), ("save_live", True), ("save_told", True)])
def test_a_crash_in_the_middle_is_told_at_the_next_start(d, place, written):
    """Every save is an event with the old and the new hash, once, whenever the daemon dies; and what is not there is not told."""
    old = d.policy.read_text()
    new = old + f"# {place}\n"
    d.stop()
    d.start(failpoint=place)
    last = d.api.events()[-1]["seq"]
    d.arm(place)
    with pytest.raises(OSError):
        ask(d, new)
    d.process.wait(60)
    d.start()
    assert d.policy.read_text() == (new if written else old)
    saved = lambda: [e for e in d.api.events() if e["seq"] > last and e["reason"] == "policy_saved"]
    assert [e["text"] for e in saved()] == ([f"policy.yaml: sha256 {digest(old)} became {digest(new)}"] if written else [])
    assert all(e["who"].startswith("uid 0 ") and (", before this start" in e["who"]) == (place != "save_told") for e in saved())
    assert d.api.ok("GET", "/v1/policy")["hash"] and not (d.state_dir / "policy-save").exists()
    d.restart()
    assert len(saved()) == int(written), "once"


def test_a_crash_while_a_save_is_undone_is_told(d):
    """What the last save was from is what this one leads to, and then to what had been saved before: each is one of its own."""
    old = d.policy.read_text()
    new = old + "# for a while\n"
    last = d.api.events()[-1]["seq"]
    assert ask(d, new)[0] == 200
    for text in (old, new):
        d.stop()
        d.start(failpoint="save_written")
        if text == new:  # by hand, without a save
            d.policy.write_text(old + "# by hand\n")
            d.api.ok("POST", "/v1/policy/reload")
        d.arm("save_written")
        before = d.policy.read_text()
        with pytest.raises(OSError):
            ask(d, text)
        d.process.wait(60)
        d.start()
        told = [e["text"] for e in d.api.events() if e["seq"] > last and e["reason"] == "policy_saved"]
        assert told[-1] == f"policy.yaml: sha256 {digest(before)} became {digest(text)}"
    assert len(told) == 3


@pytest.mark.parametrize("name", ["other.yaml", "../policy.yaml", "/etc/passwd", "", "more", "./policy.yaml", "more/../policy.yaml", "policy.yaml\n"])
def test_no_file_that_the_policy_has_not(d, name):
    (d.dir / "other.yaml").write_text("version: 1\n")
    status, answer = d.api.ask("PUT", "/v1/policy/file", {"file": name, "old": digest("version: 1\n"), "text": "version: 1\n"})
    assert (status, answer["error"]) == (404, "no_such_file")
    assert (d.dir / "other.yaml").read_text() == "version: 1\n"


def test_no_link_is_followed(d):
    """Neither the file nor a directory on the way to it. The control is the same call a line later."""
    text, lists = d.policy.read_text(), (d.dir / "more/lists.yaml").read_text()
    real = d.dir / "real.yaml"
    d.policy.rename(real)
    d.policy.symlink_to("real.yaml")
    try:
        status, answer = ask(d, text + "# x\n")
        assert (status, answer["error"]) == (409, "file_changed") and "link" in answer["detail"] and real.read_text() == text
    finally:
        d.policy.unlink()
        real.rename(d.policy)
    (d.dir / "more").rename(d.dir / "elsewhere")
    (d.dir / "more").symlink_to("elsewhere")
    try:
        status, answer = ask(d, lists + "# x\n", "more/lists.yaml")
        assert (status, answer["error"]) == (409, "file_changed") and "link" in answer["detail"]
    finally:
        (d.dir / "more").unlink()
        (d.dir / "elsewhere").rename(d.dir / "more")
    assert ask(d, lists + "# x\n", "more/lists.yaml")[0] == 200


def test_a_file_in_the_way_of_the_new_one_is_no_way_out(d):
    """policy.yaml.new that leads elsewhere: what is written is a file of our own."""
    victim = d.dir / "victim"
    victim.write_text("untouched")
    (d.dir / "policy.yaml.new").symlink_to(victim)
    assert ask(d, d.policy.read_text() + "# y\n")[0] == 200
    assert victim.read_text() == "untouched" and not leftovers(d)


def test_a_large_one(d):
    """More than other calls may send."""
    text = d.policy.read_text()
    big = text + "# " + "x" * 300_000 + "\n"
    assert ask(d, big)[0] == 200 and ask(d, text)[0] == 200


@pytest.mark.parametrize("body", [{}, {"file": "policy.yaml"}, {"file": "policy.yaml", "old": "x", "text": 7}, {"file": "policy.yaml", "old": "x", "text": "a\0b"},
                                  {"file": "policy.yaml", "old": "x", "text": "", "more": 1}])
def test_a_body_that_is_none(d, body):
    assert d.api.ask("PUT", "/v1/policy/file", body)[0] == 400


# -- who ---------------------------------------------------------------------------

def test_an_editor_says_what_may_be_reached(d, tmp_path):
    text = d.policy.read_text().replace("- deny: b.example", "- deny: e.example").replace("hold: 20s", "hold: 10s")
    p = as_user(d, EDITOR, "policy", "save", "-", input=text)
    assert p.returncode == 0 and "is live" in p.stdout, p
    assert d.policy.read_text() == text
    assert d.api.events()[-1]["who"].startswith(f"uid {EDITOR} pid ")


@pytest.mark.parametrize("old, new, key", [
    ("editor: 'user:", "operator: 'user:%d', editor: 'user:" % EDITOR, "access"), ("version: 1\n", "version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\n", "levels"),
    ("hold: 10s", "hold: 10s, group: nogroup", "group"), ("rules:\n", "deciders: {d: {command: [/bin/sh]}}\nrules:\n  - decide: q.example\n    by: d\n", "deciders"),
    ("rules:\n", "credentials: {c: {source: {file: /etc/shadow}, for: evil.example, inject: always}}\nrules:\n  - allow: evil.example\n", "credentials"),
    ("include: [more/lists.yaml]", "include: [more/lists.yaml, other.yaml]", "include"), ("version: 1\n", "version: 1\nhost_loopback: [22]\n", "host_loopback")])
def test_and_nothing_that_makes_more_of_an_editor(d, old, new, key):
    (d.dir / "other.yaml").write_text("version: 1\n")
    before = d.policy.read_text()
    assert old in before
    text = before.replace(old, new, 1)
    p = as_user(d, EDITOR, "policy", "save", "-", "--json", input=text)
    assert p.returncode == 1 and f'only operators change "{key}"' in p.stderr, p
    assert d.policy.read_text() == before
    assert ask(d, text)[0] == 200 and ask(d, before)[0] == 200, "an operator does"


@pytest.mark.parametrize("more, key", [
    ("credentials: {c: {source: {env: HOME}, for: '@ours'}}\n", "credentials"),
    ("credentials: {c: {source: {env: HOME}}}\nrules:\n  - allow: '@ours'\n    credential: c\n", "credential"),
    ("lists: {all: ['@ours']}\ncredentials: {c: {source: {env: HOME}, for: '@all'}}\n", "credentials"),
    ("upstream_proxy: [{url: direct, hosts: '@ours'}]\n", "upstream_proxy")])
def test_nor_by_a_list_that_operators_name(d, more, key):
    """Where a credential goes is in the list, which is in another file. The controls: the same change where only rules name it, and an operator's."""
    before, lists = d.policy.read_text(), (d.dir / "more/lists.yaml").read_text()
    text = before.replace("rules:\n", more if "rules:" in more else more + "rules:\n", 1)
    other = lists + "  # an editor's\n" + "  own: [three.example]\n"
    assert ask(d, text)[0] == 200
    try:
        changed = other.replace("ours: [", "ours: [evil.example, ")
        p = as_user(d, EDITOR, "policy", "save", "-", "--name", "more/lists.yaml", input=changed)
        assert p.returncode == 1 and f'only operators change lists that lead somewhere else in "{key}"' in p.stderr, p
        assert (d.dir / "more/lists.yaml").read_text() == lists
        assert as_user(d, EDITOR, "policy", "save", "-", "--name", "more/lists.yaml", input=other).returncode == 0, "a list that they do not name"
        assert ask(d, changed, "more/lists.yaml")[0] == 200, "an operator does"
    finally:
        assert ask(d, before)[0] == 200
    assert as_user(d, EDITOR, "policy", "save", "-", "--name", "more/lists.yaml", input=lists).returncode == 0, "only rules name it now"


@pytest.mark.parametrize("uid", [65533, 65532], ids=["reader", "nobody"])
def test_others_do_not(d, uid):
    before = d.policy.read_text()
    p = as_user(d, uid, "policy", "save", "-", "--old", digest(before), "--name", "policy.yaml", input=before + "# z\n")
    assert p.returncode == 1 and "no role" in p.stderr and d.policy.read_text() == before, p


def test_an_editor_sends_no_more_than_may_be(d):
    """A large body is for those who may save, and is not read of others."""
    assert as_user(d, EDITOR, "policy", "save", "-", input=d.policy.read_text() + "# " + "x" * 200_000 + "\n").returncode == 0
    p = as_user(d, 65533, "policy", "save", "-", input="# " + "x" * 200_000 + "\n")
    assert p.returncode == 1 and ("larger" in p.stderr or "no role" in p.stderr), p
    assert ask(d, d.policy.read_text().split("# xxx")[0])[0] == 200


# -- the command ---------------------------------------------------------------------

def test_the_command(d, tmp_path):
    p = d.cli("policy", "save", "--list", "--json")
    assert {f["name"]: f["sha256"] for f in json.loads(p.stdout)["files"]}["policy.yaml"] == digest(d.policy.read_text())
    assert "more/lists.yaml" in d.cli("policy", "save", "--list").stdout
    mine = tmp_path / "policy.yaml"
    mine.write_text(d.policy.read_text().replace("e.example", "f.example"))
    p = d.cli("policy", "save", mine, "--json")
    assert p.returncode == 0 and json.loads(p.stdout)["sha256"] == digest(mine.read_text()) and "f.example" in d.policy.read_text()
    odd = tmp_path / "draft.yaml"
    odd.write_text((d.dir / "more/lists.yaml").read_text() + "# by the command\n")
    p = d.cli("policy", "save", odd)
    assert p.returncode == 1 and "no_such_file" in p.stderr
    assert d.cli("policy", "save", odd, "--name", "more/lists.yaml").returncode == 0
    p = d.cli("policy", "save", odd, "--name", "more/lists.yaml", "--old", "0" * 64)
    assert p.returncode == 1 and "take over what is there, reload, save again" in p.stderr
    assert d.cli("policy", "save").returncode == 2
    p = d.cli("policy", "save", tmp_path / "none")
    assert p.returncode == 1 and p.stderr == f"netpawl: {tmp_path}/none: No such file or directory\n"
    odd.write_bytes(b"version: 1\0\n")
    assert "NUL" in d.cli("policy", "save", odd, "--name", "policy.yaml").stderr


def test_without_a_file_there_is_none_to_save(world):
    with daemon_whole(Daemon(world, policy=False)) as d:
        first = d.api.ok("GET", "/v1/policy/source")["files"][0]
        assert d.api.ask("PUT", "/v1/policy/file", {"file": first["name"], "old": first["sha256"], "text": "version: 1\n"})[0] == 404
