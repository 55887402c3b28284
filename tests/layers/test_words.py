"""One word per thing: words that were retired do not come back as identifiers. docs/architecture.md has the glossary."""
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
RETIRED = {  # a part of an identifier: the word instead
    **dict.fromkeys(("box", "boxes"), "sandbox"),
    **dict.fromkeys(("live", "lives", "site", "sites", "tenant", "tenants"), "session (or workspace)"),
    **dict.fromkeys(("authority", "authorities"), "ca; authority is HTTP's host:port"),
    **dict.fromkeys(("door", "doors"), "listener"),
    **dict.fromkeys(("tell", "told", "say", "said", "hear", "heard"), "report, send, receive"),
    **dict.fromkeys(("asker", "lookup", "lookups"), "query (of a sandbox), resolution (our own)"),
}
# The whole of a name, in C, in the API and on the console's page.
RETIRED_NAMES = {"bytes_out": "sent", "bytes_in": "received"}
# Whose word it is: HTTP's authority, and what libraries call things.
ALLOWED = re.compile(r"AUTHORITY_KEYID\w*|NID_authority_\w+|\w*bpf_\w*lookup\w*|\w*SK_LOOKUP|NP_AT_SOCK_LOOKUP|np_lookup_far|MHD_lookup_\w+|ARES_OPT_LOOKUPS")
HTTP = ("user/http/", "user/wire/", "user/inspect/")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#include[^\n]*', re.S)


def retired(path, text):
    for word in set(re.findall(r"[A-Za-z_]\w*", NOISE.sub(" ", text))):
        if ALLOWED.fullmatch(word):
            continue
        if word in RETIRED_NAMES:
            yield f"{path}: {word} ({RETIRED_NAMES[word]})"
        for part in word.lower().split("_"):
            if (part == "authority" and path.startswith(HTTP)) or (path, word) == ("user/resolver/nameservers.c", "lookups"):
                continue  # HTTP's word; a member of c-ares
            if part in RETIRED:
                yield f"{path}: {word} ({RETIRED[part]})"


def sources():
    for folder in ("user", "bpf", "include"):
        yield from sorted((ROOT / folder).rglob("*.[ch]"))


def test_retired_words_are_no_identifiers():
    wrong = [w for path in sources() for w in sorted(retired(str(path.relative_to(ROOT)), path.read_text()))]
    assert wrong == []


def test_a_retired_word_is_seen():
    assert list(retired("user/session/x.c", "int n; struct box *np; /* a door */")) == ["user/session/x.c: box (sandbox)"]
    assert list(retired("user/session/x.c", "int bytes_in;")) == ["user/session/x.c: bytes_in (received)"]
    assert list(retired("user/session/x.c", "int ca_authority;")) and not list(retired("user/http/x.c", "int authority_len;"))


def api_members(text):
    """Of the schemas: (schema, member)."""
    schemas = yaml.safe_load(text)["components"]["schemas"]

    def members(name, node):
        for key, value in node.items() if isinstance(node, dict) else ():
            if key == "properties":
                yield from ((name, member, set(value)) for member in value)
            yield from members(name, value)
    for name, schema in schemas.items():
        yield from members(name, schema)


def test_the_api_has_no_retired_words():
    """`denied` is what a person or a decider said, and then stands beside `allowed`; what happens is `refused`."""
    wrong = [f"{schema}.{member}" for schema, member, beside in api_members((ROOT / "docs/openapi.yaml").read_text())
             if member in RETIRED_NAMES or set(member.split("_")) & {"box", "boxes", "tenant", "tenants", "site", "door", "blocked"}
             or (member == "denied" and "allowed" not in beside)]
    assert wrong == []
    assert ("Sandbox", "refused") in {m[:2] for m in api_members((ROOT / "docs/openapi.yaml").read_text())}


def test_the_page_has_no_retired_words():
    pages = sorted((ROOT / "user/console/page").glob("*.js"))
    wrong = [f"{page.name}: {word}" for page in pages for word in RETIRED_NAMES if re.search(rf"\b{word}\b", page.read_text())]
    assert pages and wrong == []


def test_functions_have_names_that_say_something():
    """A word alone says nothing in a stack trace."""
    found = []
    for path in sorted((ROOT / "user").rglob("*.c")):
        for name in re.findall(r"^static (?:inline )?[a-z][\w \*]*?[ \*]([a-z]+)\(", path.read_text(), re.M):
            found.append(f"{path.relative_to(ROOT)}: {name}")
    assert found == []


# The same thing seen from several sides, and what each program has.
SHARED_NAMES = {"main", "questions", "cut", "event", "ports", "rules", "policy", "runs", "tables", "launch", "kept", "exchange", "notices", "sessions", "sandboxes", "events", "why", "forwards", "forward", "judge", "debug", "credentials", "deciders"}


def test_a_file_name_means_one_thing():
    seen = {}
    for path in sources():
        if path.stem not in SHARED_NAMES:
            seen.setdefault(path.name, []).append(str(path.relative_to(ROOT)))
    assert {k: v for k, v in seen.items() if len(v) > 1} == {}
