# SPDX-License-Identifier: MIT
"""Sessions and the ratchet, through the API."""
import pytest

from lib.api import Failure
from lib.box import new_session

BAD_NAMES = ["", "/", "alice", "alice/", "/demo", "alice/demo/x", "../demo", "alice/..", "./demo", "alice/.", ".a/b",
             "-a/b", "a/-b", "_a/b", "a b/c", "a/b c", "a/b\n", "a/b\t", "a/b\u0000c", "ä/b", "a/b%2e", "a\\b/c", "a/b;c",
             "a/b'c", "a/$b", "a" * 65 + "/b", "a/" + "b" * 65, "a//b", "a/b?c", "a/b#c", "*/b",
             "@a/b", "+a/b", "a/b@c", "a/b+c", "a@b", "a,b/c", "a:b@c/d", "a@b c/d", "a@b%2f/c"]
GOOD_NAMES = ["a/b", "A/B", "0/0", "a.b-c_d/e.f-g_h", "a" * 64 + "/" + "b" * 64, "alice/2024-01-01", "a/b..c",
              "alice@example.org/demo", "a.b+c@mail.example.org/x", "a@" + "b" * 62 + "/c"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names(api, name):
    for body, path in (({"session": name}, "/v1/sessions"), ({"session": name}, "/v1/sandboxes")):
        status, answer = api.ask("POST", path, body)
        assert status == 400, (path, status, answer)
        assert answer["error"] in (("bad_name", "bad_json", "bad_field") if "\0" in name else ("bad_name",)), answer
        assert answer["message"] and set(answer) <= {"error", "message", "detail"}


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names(api, name):
    assert api.create(name)["session"] == name
    assert api.show(name)["session"] == name
    assert api.end(name) == {"session": name, "ended": True}


@pytest.mark.parametrize("path,want", [
    ("..%2f..%2fetc/passwd", (400, 404)), ("alice/%2e%2e", (400, 404)), ("alice/a%00b", (400, 404)),
    ("alice/" + "b" * 65, (400, 404)), ("alice/nothing-here", (404,))])
def test_names_in_the_path(api, path, want):
    status, answer = api.ask("GET", f"/v1/sessions/{path}")
    assert status in want and answer["error"] in ("bad_name", "no_such_session", "no_such_path", "bad_request")


def test_life_of_a_session(api):
    name = new_session()
    status, made = api.ask("POST", "/v1/sessions", {"session": name})
    assert status == 201
    assert set(made) == {"session", "level", "mode", "generation", "created", "ended", "datasets"}
    assert (made["level"], made["mode"], made["ended"], made["datasets"]) == ("PUBLIC", "FULL", None, 0)
    assert made["created"].endswith("Z") and "T" in made["created"]
    status, again = api.ask("POST", "/v1/sessions", {"session": name})
    assert status == 200 and again["created"] == made["created"]
    assert name in [s["session"] for s in api.sessions()]
    assert api.end(name)["ended"] is True
    assert name not in [s["session"] for s in api.sessions()]
    ended = [s for s in api.sessions(ended=True) if s["session"] == name]
    assert ended and ended[0]["ended"] is not None


def test_create_with_a_level(api):
    name = new_session()
    assert api.create(name, "CONFIDENTIAL")["mode"] == "PROXIED"
    assert api.create(name, "PUBLIC")["mode"] == "PROXIED", "a lower level does not lower"
    assert api.create(name, "SECRET")["mode"] == "NONE"
    assert api.create(name)["level"] == "SECRET"


def test_ending_keeps_the_level(api):
    name = new_session()
    api.escalate(name, "SECRET", dataset="d")
    api.end(name)
    status, again = api.ask("POST", "/v1/sessions", {"session": name, "level": "PUBLIC"})
    assert status in (200, 201) and (again["level"], again["mode"], again["ended"]) == ("SECRET", "NONE", None)
    assert api.make(name)["mode"] == "NONE"
    assert [d["name"] for d in api.show(name)["datasets"]] == ["d"]


def test_lower_level_answers_what_stands(api):
    name = new_session()
    first = api.escalate(name, "SECRET")
    assert first["raised"] is True
    for level in ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"):
        got = api.escalate(name, level)
        assert (got["level"], got["mode"], got["raised"], got["cut"]) == ("SECRET", "NONE", False, 0)
        assert got["generation"] >= first["generation"]


def test_same_dataset_twice_is_one(api):
    name = new_session()
    api.escalate(name, "CONFIDENTIAL", dataset="customers.csv", reason="first")
    api.escalate(name, "CONFIDENTIAL", dataset="customers.csv", reason="second")
    api.escalate(name, "PUBLIC", dataset="customers.csv")
    api.escalate(name, "INTERNAL", dataset="other.csv")
    sets = {d["name"]: d for d in api.show(name)["datasets"]}
    assert set(sets) == {"customers.csv", "other.csv"}
    assert sets["customers.csv"]["level"] == "CONFIDENTIAL" and sets["customers.csv"]["reason"] == "first"
    assert sets["other.csv"]["level"] == "INTERNAL" and sets["other.csv"]["added"].endswith("Z")
    api.escalate(name, "SECRET", dataset="customers.csv")
    sets = {d["name"]: d for d in api.show(name)["datasets"]}
    assert len(sets) == 2 and sets["customers.csv"]["level"] == "SECRET"


def test_escalation_creates_the_session(api):
    name = new_session()
    assert api.escalate(name, "CONFIDENTIAL")["raised"] is True
    assert api.show(name)["level"] == "CONFIDENTIAL"


@pytest.mark.parametrize("level", ["", "TOP", "3", "SECRETT", "NONE"])
def test_bad_levels(api, level):
    name = new_session()
    for path, body in ((f"/v1/sessions/{name}/datasets", {"level": level}), ("/v1/sessions", {"session": name, "level": level})):
        status, answer = api.ask("POST", path, body)
        assert (status, answer["error"]) == (400, "bad_level"), answer
    with pytest.raises(Failure) as e:
        api.show(name)
    assert e.value.error == "no_such_session"


@pytest.mark.parametrize("field,value,error", [
    ("dataset", "d" * 129, "bad_name"), ("dataset", "a\nb", "bad_name"), ("dataset", "\u001b[31m", "bad_name"),
    ("dataset", "", "bad_name"), ("reason", "r" * 513, "bad_field"), ("reason", "a\u0007", "bad_field")])
def test_bad_texts(api, field, value, error):
    name = new_session()
    status, answer = api.ask("POST", f"/v1/sessions/{name}/datasets", {"level": "SECRET", field: value})
    assert status == 400 and answer["error"] in ("bad_name", "bad_field"), answer
    assert field in answer.get("detail", "") + answer["message"]


def test_texts_are_text(api):
    """Quotes, markup and UTF-8 come back as they went in."""
    name = new_session()
    text = "Kundendaten \"2024\" <b>'; DROP TABLE sessions; -- ✓"
    api.escalate(name, "SECRET", dataset=text, reason=text)
    shown = api.show(name)["datasets"][0]
    assert (shown["name"], shown["reason"]) == (text, text)


def test_sandboxes_of_a_session(api):
    name = new_session()
    box = api.make(name)
    assert set(box) >= {"sandbox", "session", "cgroup", "cgroup_id", "mode", "generation", "adopted", "created"}
    assert isinstance(box["cgroup_id"], str) and box["cgroup_id"].isdigit() and box["adopted"] is False
    assert api.sandbox(box["sandbox"])["cgroup"] == box["cgroup"]
    assert [b["sandbox"] for b in api.show(name)["sandboxes"]] == [box["sandbox"]]
    assert api.remove(box["sandbox"]) == {"sandbox": box["sandbox"], "removed": True}
    status, answer = api.ask("GET", f"/v1/sandboxes/{box['sandbox']}")
    assert (status, answer["error"]) == (404, "no_such_sandbox")


def test_ending_a_session_removes_its_sandboxes(api, daemon):
    name = new_session()
    import os
    box = api.make(name)
    api.end(name)
    assert api.sandboxes(name) == [] and not os.path.exists(box["cgroup"])


def test_unknown_things(api):
    for method, path in (("GET", "/v1/sessions/no/body"), ("DELETE", "/v1/sessions/no/body")):
        status, answer = api.ask(method, path)
        assert (status, answer["error"]) == (404, "no_such_session")
    for method in ("GET", "DELETE"):
        status, answer = api.ask(method, "/v1/sandboxes/nobody.nothing.12345678")
        assert (status, answer["error"]) == (404, "no_such_sandbox")


@pytest.mark.parametrize("cgroup", ["relative", "", "/", "/etc", "/nonexistent/cgroup", "/sys/fs/cgroup/../../etc"])
def test_cgroups_that_cannot_be_adopted(api, cgroup):
    status, answer = api.ask("POST", "/v1/sandboxes", {"session": new_session(), "cgroup": cgroup})
    assert status in (400, 409) and answer["error"] in ("bad_cgroup", "bad_field"), answer


def test_more_cgroups_that_cannot_be_adopted(api, daemon):
    """The root, netpawl's own slice, a made sandbox, what is below or above one that is adopted already."""
    from lib import base
    name = new_session()
    made = api.make(name)
    folder = base.cgroup_make("twice")
    (folder / "below").mkdir()
    other = new_session()
    try:
        for path in (base.cgroup_mount(), daemon.slice, made["cgroup"]):
            status, answer = api.ask("POST", "/v1/sandboxes", {"session": name, "cgroup": str(path)})
            assert (status, answer["error"]) == (409, "bad_cgroup"), (path, answer)
        api.adopt(name, folder)
        status, answer = api.ask("POST", "/v1/sandboxes", {"session": other, "cgroup": str(folder)})
        assert status == 409, f"a cgroup has one owner: {answer}"
        status, answer = api.ask("POST", "/v1/sandboxes", {"session": other, "cgroup": str(folder / "below")})
        assert status == 409, f"nested in another's: {answer}"
    finally:
        for session in (name, other):
            api.ask("DELETE", f"/v1/sessions/{session}")
        base.cgroup_destroy(folder)


def test_an_adopted_cgroup_with_processes_is_not_let_go(api, adopted):
    """Removing it would give its processes the network back."""
    box = adopted("NONE")
    status, answer = api.ask("DELETE", f"/v1/sandboxes/{box.id}")
    assert (status, answer["error"]) == (409, "sandbox_busy")
    status, answer = api.ask("DELETE", f"/v1/sessions/{box.session}")
    assert (status, answer["error"]) == (409, "sandbox_busy")
    from lib.world import FAR
    assert box.try_("dial", family=4, addr=FAR[4], port=9000) == "ECONNREFUSED"
