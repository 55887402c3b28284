# SPDX-License-Identifier: MIT
"""netpawld --verbose; and names that have to be quoted in what the daemon says about itself."""
from lib import base
from lib.box import Box


def test_verbose_and_a_quote_in_a_name(make_daemon):
    d = make_daemon(inspectors=1, more=["--verbose"])
    d.cgroup += '"y\\'
    d.start()
    health = d.api.health()
    assert health["cgroup"].endswith(d.cgroup) and health["pins"].startswith(str(d.pin_dir)), health
    assert base.eventually(lambda: d.api.health()["inspectors"] == 1, 20)
    with Box(d, "FULL") as box:
        d.api.escalate(box.session, "SECRET")
        d.cli("policy", "reload", check=0)
    assert d.stop() == 0
    said = [line for line in d.text().splitlines() if "debug: " in line]
    for words in ("was started", "was briefed", "takes connections", '"reason":"sandbox_made"', '"reason":"raised"',
                  '"applied_us":', "the reload by uid 0", "has finished"):
        assert [line for line in said if words in line], (words, said)


def test_without_it_nothing_is_added(daemon):
    with Box(daemon, "FULL") as box:
        daemon.api.escalate(box.session, "SECRET")
    assert "debug: " not in daemon.text()
