# SPDX-License-Identifier: MIT
"""GET /v1/metrics: what monitoring reads, compared with what happened."""
import contextlib
import re
import subprocess

import pytest

from lib import base, bpf
from lib.asked import Asked
from lib.box import Box, new_session
from lib.world import FAR

RULES = """version: 1
levels: {PUBLIC: full, INTERNAL: proxied, CONFIDENTIAL: proxied, SECRET: none}
approval: {hold: 2m, timeout: 15m}
rules:
  - allow: open.origin.test
  - ask: "**.origin.test"
"""
LINE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)+)\})? ([0-9.]+)$')


@pytest.fixture(scope="module")
def net():
    with contextlib.ExitStack() as stack:
        yield Asked(stack, policy=RULES)


def text(net):
    status, headers, body = net.api.raw("GET", "/v1/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return body.decode()


def numbers(net):
    """{(name, {labels}): number}, and every line is one or a comment."""
    got = {}
    for line in text(net).splitlines():
        if line.startswith("# "):
            continue
        m = LINE.match(line)
        assert m, line
        key = m[1] + ("{" + m[2] + "}" if m[2] else "")
        assert key not in got, key
        got[key] = float(m[3])
    return got


def grows(before, after):
    return {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)}


def get(net, session, *words):
    return net.spawn("curl", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}", *words, session=session,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_every_family_is_named_once_and_before_its_numbers(net):
    seen, family = set(), None
    for line in text(net).splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen, family
            seen.add(family)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family
            kind = line.split()[3]
        else:
            name = re.match(r"[a-z_]+", line)[0]
            assert name == family or (kind == "histogram" and name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == family), line
    assert {"netpawl_requests_total", "netpawl_refusals_total", "netpawl_raises_total", "netpawl_raise_apply_seconds",
            "netpawl_connections_cut_total", "netpawl_questions_pending", "netpawl_question_wait_seconds",
            "netpawl_decider_seconds", "netpawl_sessions", "netpawl_sandboxes", "netpawl_bytes_total",
            "netpawl_events_suppressed_total", "netpawl_bpf_runs_total", "netpawl_build_info"} <= seen


def test_requests_and_their_bytes(net):
    session, before = net.fresh(), numbers(net)
    p = get(net, session, "-d", "x" * 1000, "https://open.origin.test/echo")
    assert p.communicate(timeout=100)[0] == "200"
    p = get(net, session, "https://elsewhere.test/")
    p.communicate(timeout=100)

    def arrived():
        d = grows(before, numbers(net))
        return d if d.get('netpawl_bytes_total{direction="out"}') == 1000 and any("refus" in k for k in d) and any(
            k.startswith("netpawl_requests_total") for k in d) else None

    d = base.eventually(arrived, 10)
    assert d, grows(before, numbers(net))
    assert d['netpawl_requests_total{verdict="allow",reason="rule_allows"}'] == 1
    assert d['netpawl_request_duration_seconds_count'] == 1
    refused = {k: v for k, v in d.items() if k.startswith("netpawl_refusals_total")}
    assert refused and all('layer="' in k and 'reason="' in k for k in refused)


def test_a_sandbox_that_ends_takes_nothing_out_of_the_counters(net):
    session, before = net.fresh(), numbers(net)
    p = get(net, session, "-d", "y" * 500, "https://open.origin.test/")
    assert p.communicate(timeout=100)[0] == "200"
    assert base.eventually(lambda: numbers(net)['netpawl_bytes_total{direction="out"}'] ==
                           before['netpawl_bytes_total{direction="out"}'] + 500, 10)
    made = [s["sandbox"] for s in net.api.sandboxes(session)]
    assert base.eventually(lambda: not [s for s in net.api.sandboxes(session)], 20), made
    after = numbers(net)
    assert after['netpawl_bytes_total{direction="out"}'] == before['netpawl_bytes_total{direction="out"}'] + 500
    assert all(v >= 0 for k, v in grows(before, after).items() if k.split("{")[0].endswith("_total"))


def test_questions_wait_and_end(net):
    session, before = net.fresh(), numbers(net)
    p = get(net, session, "https://asked.origin.test/")
    q = base.eventually(lambda: net.questions(session), 20)[0]
    assert numbers(net)["netpawl_questions_pending"] == 1
    net.api.ok("POST", f"/v1/questions/{q['question']}/answer", {"answer": "deny"})
    assert p.communicate(timeout=100)[0] == "403"
    d = grows(before, numbers(net))
    assert d["netpawl_questions_asked_total"] == 1 and d['netpawl_questions_total{outcome="denied"}'] == 1
    assert d["netpawl_question_wait_seconds_count"] == 1 and d["netpawl_question_wait_seconds_sum"] > 0
    assert numbers(net)["netpawl_questions_pending"] == 0
    # The events name it: the question's own, and the request's.
    [answered] = [e for e in net.api.events(session=session) if e["reason"] == "question_answered"]
    assert (answered["question"], answered["answer"]) == (int(q["question"]), "deny") and answered["waited_us"] > 0
    [refused] = base.eventually(lambda: [e for e in net.api.events(session=session) if e["reason"] == "answer_denies"], 10)
    assert refused["question"] == int(q["question"])


def test_raises_sessions_and_sandboxes(net):
    before = numbers(net)
    session = new_session()
    net.api.create(session)
    with Box(net.daemon, session=session):
        d = grows(before, numbers(net))
        assert d['netpawl_sessions{level="PUBLIC"}'] == 1 and d['netpawl_sandboxes{mode="FULL"}'] == 1
        net.api.ok("POST", f"/v1/sessions/{session}/datasets", {"level": "SECRET"})
        d = grows(before, numbers(net))
        assert d['netpawl_sessions{level="SECRET"}'] == 1 and 'netpawl_sessions{level="PUBLIC"}' not in d
        assert d['netpawl_sandboxes{mode="NONE"}'] == 1
        assert d['netpawl_raises_total{level="SECRET"}'] == 1 and d["netpawl_raise_apply_seconds_count"] == 1
    net.api.end(session)
    d = grows(before, numbers(net))
    assert 'netpawl_sessions{level="SECRET"}' not in d and d["netpawl_sessions_ended"] == 1
    net.api.create(session)  # revived, with its level
    assert grows(before, numbers(net))['netpawl_sessions{level="SECRET"}'] == 1


def test_what_the_gate_refuses_is_counted_in_its_layer(net):
    before = numbers(net)
    with Box(net.daemon, mode="NONE") as box:
        box.try_("dial", family=4, addr=FAR[4], port=80)
    d = grows(before, numbers(net))
    gate = {k: v for k, v in d.items() if k.startswith('netpawl_refusals_total{layer="gate"')}
    assert gate and sum(gate.values()) >= 1, d


def test_runs_of_the_gates_programs_and_their_time(net):
    """While the kernel counts them: /v1/metrics and /v1/node agree with what the kernel itself says of the program."""
    with bpf.Stats():
        before = numbers(net)
        with Box(net.daemon, mode="NONE") as box:
            for _ in range(20):
                assert box.try_("dial", family=4, addr=FAR[4], port=9) != "ok"
        after = numbers(net)  # each series once, whatever programs' names are cut at
        programs = {p["program"]: p for p in net.api.ok("GET", "/v1/node")["programs"]}
    grown = grows(before, after)
    runs, seconds = (grown[f'netpawl_bpf_{what}_total{{program="np_connect4"}}'] for what in ("runs", "run_seconds"))
    assert runs >= 20 and 0 < seconds / runs < 0.001, (runs, seconds)
    assert programs["np_connect4"]["runs"] >= runs and 0 < programs["np_connect4"]["ns_per_run"] < 1_000_000
    assert len(programs) == len(net.api.ok("GET", "/v1/node")["programs"]), "no two of one name"


def test_no_label_is_a_sandboxs_word(net):
    """A host, a path, a session or a program's name would be a series each: none is there."""
    session = net.fresh()
    word = "chosen7by7the7sandbox"
    get(net, session, f"https://{word}.test/").communicate(timeout=100)
    p = get(net, session, "-X", word.upper(), f"https://open.origin.test/{word}")
    p.communicate(timeout=100)
    assert base.eventually(lambda: [e for e in net.api.events(session=session) if word in e.get("url", "")], 10)
    got = text(net)
    assert word not in got.lower() and session not in got and session.split("/")[0] + "/" not in got


def test_only_readers_and_up_may_look(net):
    """Nobody without a role; approve.sock is for the inbox alone."""
    status, answer = type(net.api)(net.daemon.run_dir / "approve.sock").ask("GET", "/v1/metrics")
    assert status == 403 and answer["error"] == "no_role"
