"""Inside the inspector: who writes whose members, and who asks the policy."""
import re

import pytest

from test_layers import INCLUDE, ROOT

pytestmark = pytest.mark.smoke

# -- a struct's members are written by the file that owns it ---------------------------------------------------

# A variable is called by what it is; files are known by how their names begin.
OWNERS = {
    "worker": "worker", "client": "client", "ex": "exchange stage", "exchange": "exchange stage", "up": "upstream pool", "upstream": "upstream pool",
    "handshake": "upstream pool", "sandbox": "sandboxes", "session": "sandboxes", "tunnel": "tunnel", "leg": "leg", "turn": "leg", "capture": "capture", "hold": "hold",
}
# What one file keeps in another's struct: lists of its own things, and small structs of its own.
LODGERS = {
    "worker": {"policy": "daemon_link", "system": "daemon_link", "roots": "daemon_link", "dialer": "daemon_link",
               "proxy_logins": "daemon_link", "next_proxy_logins": "daemon_link", "origin_dials": "origin_dial", "proxy_urls": "origin_dial",
               "sandboxes": "sandboxes", "sessions": "sandboxes", "rejudging": "sandboxes", "n_clients": "client", "dirty": "leg", "spare": "leg worker",
               "holds": "hold", "listeners": "listeners", "has_dead_listeners": "listeners", "pooling": "pool", "talking": "client", "reporter": "report", "stopping": "stop", "secret_watch": "secret_watch", "memory": "memory",
               "sealer": "daemon_link", "tokens": "token_watch"},
    "session": {"pool": "pool upstream", "memory": "memory", "tokens": "token_watch"},
    "sandbox": {"clients": "client", "n_clients": "client", "n_exchanges": "client", "n_held": "hold", "rate": "report", "memory": "memory"},
    "ex": {"at_client": "client", "at_origin": "upstream pool"},
}
ASSIGNED = r"(?:\[[^]]*\])?\s*(?:(?:[-+|&^*/%]|<<|>>)?=(?!=)|\+\+|--)"
WRITES = (
    re.compile(r"\b(\w+)->([\w.]+)" + ASSIGNED),
    re.compile(r"(?:\+\+|--)(?:\w+->)*(\w+)->([\w.]+)"),
    re.compile(r"\b(?:buf_(?!error)\w+|(?:LIST|TAILQ)_(?:INSERT_\w+|REMOVE|INIT))\((?:\w+, )?&(?:\w+->)*(\w+)->([\w.]+)"),
)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def foreign_writes(file, text):
    text = without_comments(text)
    for pattern in WRITES:
        for variable, member in pattern.findall(text):
            owners = LODGERS.get(variable, {}).get(member.split(".")[0], OWNERS.get(variable))
            if member.startswith("leg.memory."):
                owners = "memory"
            if owners and not file.startswith(tuple(owners.split())):
                yield f"{file}: {variable}->{member}"


def test_members_are_written_by_their_owner():
    wrong = [w for path in sorted((ROOT / "user" / "inspect").glob("*.c")) for w in foreign_writes(path.name, path.read_text())]
    assert wrong == []


def test_a_foreign_write_is_seen():
    for line in ("ex->report.tls_us = 1;", "x = --ex->client->port;", "up->exchange->tries++;", "buf_append(&ex->client->out, a, 1);", "ex->client->busy |= a;"):
        assert list(foreign_writes("upstream_io.c", line)), line
    for line in ("ex->at_origin.dial = NULL;", "up->dead = true;", "if (ex->port == 1)", "up->session->pool.n_idle--;"):
        assert not list(foreign_writes("upstream_io.c", line)), line


# -- and only one of its files asks the policy ---------------------------------------------------------------------------------

ASKS = re.compile(r'\b(policy_(?:decide|inspects|may_name|outcome|proxy)|dns_judge|facts_mode)\s*\(|#include "(policy/(?:decide|name_reachable|outcome)\.h)"')


def test_only_judge_asks_the_policy():
    asking = {path.name for path in (ROOT / "user" / "inspect").glob("*.[ch]") if ASKS.search(without_comments(path.read_text()))}
    assert asking == {"judge.c"}
    # Nor does a header that others include bring it along.
    todo, seen = [p for p in (ROOT / "user" / "inspect").glob("*.[ch]") if p.name != "judge.c"], set()
    while todo:
        path = todo.pop()
        for mark, name in INCLUDE.findall(path.read_text()):
            header = ROOT / "user" / name
            if mark == '"' and header.is_file() and header not in seen:
                seen.add(header)
                todo.append(header)
    assert ROOT / "user/policy/decide.h" not in seen and ROOT / "user/policy/policy.h" in seen


# -- and an exchange sees two turns, whatever they are on ------------------------------------------------------------------------

BENEATH = re.compile(r'\b(?:h1|h2|channel)_\w+\s*\(|#include "(?:http/h1|http/h2|net/channel)\.h"|\bturn\.stream\b|->leg\.')


def test_an_exchange_does_not_see_what_is_spoken():
    files = sorted((ROOT / "user" / "inspect").glob("exchange*.[ch]")) + sorted((ROOT / "user" / "inspect").glob("stage*.[ch]"))
    assert len(files) >= 4
    assert [f"{p.name}: {m.group(0)}" for p in files for m in BENEATH.finditer(without_comments(p.read_text()))] == []
    todo, seen = list(files), set()
    while todo:
        for mark, name in INCLUDE.findall(todo.pop().read_text()):
            header = ROOT / "user" / name
            if mark == '"' and header.is_file() and header not in seen:
                seen.add(header)
                todo.append(header)
    assert not {"http/h1.h", "http/h2.h", "net/channel.h"} & {str(p.relative_to(ROOT / "user")) for p in seen}
