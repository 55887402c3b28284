# SPDX-License-Identifier: MIT
"""netpawl doctor: what this kernel can keep, and what it cannot, in words."""
import json


def test_table(daemon):
    p = daemon.cli("doctor")
    assert p.returncode in (0, 4), "0: nothing is missing; 4: something is"
    assert (p.returncode == 4) == ("missing" in p.stdout.lower() and " no " in p.stdout.lower()), p.stdout
    lines = [l for l in p.stdout.splitlines() if l.strip()]
    assert len(lines) > 5, p
    text = p.stdout.lower()
    for word in ("cgroup", "tcx", "bpf_sock_destroy", "unix"):
        assert word in text, f"doctor says nothing of {word}: {p.stdout}"


def test_json(daemon):
    p = daemon.cli("doctor", "--json")
    answer = json.loads(p.stdout)
    rows = answer if isinstance(answer, list) else answer.get("features")
    assert rows and all({"present"} <= set(r) or {"ok"} <= set(r) for r in rows), rows[:2]
    assert all(any(isinstance(v, str) and " " in v for v in r.values()) for r in rows), "each row says what it means"


def test_says_what_cannot_be_closed(daemon):
    """On a kernel where BPF LSM programs do not load, adopted cgroups keep exotic families: doctor must say so."""
    text = daemon.cli("doctor").stdout.lower()
    assert "lsm" in text


def test_without_a_daemon(world, daemon):
    p = daemon.cli("--socket", daemon.dir / "nobody.sock", "doctor")
    assert p.returncode in (0, 3, 4) and (p.stdout or p.stderr)
