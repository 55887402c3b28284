# SPDX-License-Identifier: MIT
"""$NETPAWL_WHY: what `netpawl why` says, for the code inside of a sandbox, which may not call the API."""
import pytest

from lib import base
from lib.box import Box, new_session
from lib.inspected import inspected
from lib.world import FAR


@pytest.fixture(scope="module")
def net():
    with inspected() as i:
        yield i
        assert i.daemon.running()


@pytest.fixture
def box(net):
    with Box(net.daemon, "PROXIED") as b:
        yield b


def cat(box):
    return box.call("execute", argv=["sh", "-c", 'cat "$NETPAWL_WHY"'])["out"]


def says(box, *words):
    """The text, when it has all of them: it is written after the fact."""
    got = base.eventually(lambda: (lambda text: text if all(w in text for w in words) else None)(cat(box)), 15)
    assert got, cat(box)
    return got


def without_moment(text):
    return [line for line in text.splitlines() if not line.startswith("As of ")]


def test_it_is_what_why_says(net, box):
    box.call("execute", argv=["curl", "-sS", "-m", "60", "http://paste.example/x"])
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) != "ok"
    text = says(box, "DNS query for paste.example", "9000")
    told = lambda: net.api.ok("GET", f"/v1/sessions/{box.session}/why")["text"]
    assert text.startswith(f"Session {box.session} is at level CONFIDENTIAL, network mode PROXIED") and "It may reach" in text
    # A name is asked for twice, A and AAAA: the second refusal may come later.
    assert base.eventually(lambda: without_moment(cat(box)) == told().splitlines()), (cat(box), told())
    assert "As of 20" in text


def test_it_is_there_in_none(net, box):
    net.api.ok("POST", f"/v1/sessions/{box.session}/datasets", {"level": "SECRET", "dataset": "s.csv"})
    says(box, "network mode NONE", '"s.csv"')
    box.try_("dial", family=4, addr=FAR[4], port=80)
    says(box, f"{FAR[4]}:80")


def test_a_reload_says_what_may_be_reached_now(net, box):
    box.call("execute", argv=["curl", "-sS", "-m", "60", "http://paste.example/x"])
    assert "late.test" not in says(box, "paste.example")
    text = net.policy.read_text()
    try:
        net.policy.write_text(text.replace("rules:\n", "rules:\n  - allow: late.test\n"))
        assert net.daemon.cli("policy", "reload").returncode == 0
        says(box, "late.test")
    finally:
        net.policy.write_text(text)
        assert net.daemon.cli("policy", "reload").returncode == 0


def test_others_do_not_see_it_and_nobody_inside_writes_it(net, box):
    with Box(net.daemon, "PROXIED") as other:
        box.call("execute", argv=["curl", "-sS", "-m", "60", "http://mine.example/x"])
        says(box, "mine.example")
        other.call("execute", argv=["curl", "-sS", "-m", "60", "http://theirs.example/x"])
        assert "mine.example" not in says(other, "theirs.example")
        for what in ('echo x >> "$NETPAWL_WHY"', 'rm -f "$NETPAWL_WHY"', 'ln -sf /etc/passwd "$NETPAWL_WHY"', ': > "$NETPAWL_WHY"'):
            assert box.call("execute", argv=["sh", "-c", what])["code"] != 0, what
    # control: the daemon's end of it is a file that it can write
    assert base.eventually(lambda: (net.daemon.run_dir / "notices" / box.session / "why.txt").read_text() == cat(box))


def test_it_goes_with_the_session(net):
    session = new_session("why")
    with Box(net.daemon, "PROXIED", session=session) as b:
        b.call("execute", argv=["curl", "-sS", "-m", "60", "http://paste.example/x"])
        says(b, "paste.example")
    folder = net.daemon.run_dir / "notices" / session
    assert (folder / "why.txt").exists()
    net.api.ok("DELETE", f"/v1/sessions/{session}")
    assert not folder.exists()
    # The event of its end does not bring it back.
    with Box(net.daemon, "PROXIED") as b:
        b.call("execute", argv=["curl", "-sS", "-m", "60", "http://paste.example/x"])
        says(b, "paste.example")
    assert not folder.exists()


def test_a_flood_of_refusals_leaves_the_file_whole(net, box):
    """It is replaced in one step: whoever reads it meanwhile reads one or the other."""
    loop = "import socket\nfor i in range(3000):\n  try: socket.getaddrinfo(f'flood{i}.example', 80)\n  except OSError: pass"
    box.call("execute", argv=["sh", "-c", f'python3 -c "{loop}" & for i in $(seq 100); do tail -n 1 "$NETPAWL_WHY" 2>/dev/null; done > /tmp/seen; wait'], timeout=600, _timeout=660)
    seen = box.call("execute", argv=["cat", "/tmp/seen"])["out"].splitlines()
    assert seen and all(line.startswith("As of 20") and line.endswith("Z.") for line in seen), seen[:3]
    says(box, "flood")
