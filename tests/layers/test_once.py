"""What is done in one place stays in one place."""
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).resolve().parents[2]
# In C's spelling: a member's value between quotes, or a name, that printf puts there unescaped; or a member by hand.
# A sentence that quotes a word has a space around it: "\\"%s\\": %s".
BY_HAND = (
    re.compile(r'[{,:\[]\\"%[-.*0-9]*s'),
    re.compile(r'\\"%[-.*0-9]*s\\":(?! )'),
    re.compile(r'\\"[a-z_]+\\":%'),
)


def sources():
    for path in sorted((ROOT / "user").rglob("*.[ch]")):
        yield str(path.relative_to(ROOT)), path.read_text()


def json_by_hand(text):
    return [line.strip() for line in text.splitlines() if any(shape.search(line) for shape in BY_HAND)]


def test_json_is_written_by_base_json():
    """No printf of text that nothing escaped: `--cgroup 'x"y'` broke /v1/health that way."""
    assert [(path, line) for path, text in sources() for line in json_by_hand(text)] == []


def test_json_by_hand_is_seen():
    assert json_by_hand(r'''buf_printf(out, "\"netns\":\"%s\",", known.netns);''')
    assert json_by_hand(r'''buf_printf(out, "%s\"%s\":%llu", comma, reason_token(reason), sum);''')
    assert json_by_hand(r'''buf_printf(out, ",\"devices\":%u,", kernel->devices);''')
    assert not json_by_hand(r'''failure_put(f, -EINVAL, NP_R_BAD_FIELD, "\"%s\": %s", name, wrong);''')


# FNV, the golden ratio, MurmurHash: constants of hash functions that have no key.
HASH = re.compile(r"0x9e3779b9|0x811c9dc5|0xcbf29ce4|16777619|2166136261|0x100000001b3|0xff51afd7", re.I)
BUCKETS = re.compile(r"\*\s*\w*buckets\b(?!\[i\])|\bbuckets\[\w*BUCKETS\]")
# The names of a policy: an operator's, in a table that is made once and must be quick to ask.
OWN_HASH = {"user/base/hash.h", "user/policy/name_table_internal.h"}

OWN_TABLE = {"user/base/table.c", "user/base/table.h", "user/dns/synthetic_names.c"}


def test_one_hash_function_and_one_hash_table():
    assert [path for path, text in sources() if HASH.search(text) and path not in OWN_HASH] == []
    assert [path for path, text in sources() if BUCKETS.search(text) and path not in OWN_TABLE] == []


def test_headers_are_included_once_by_pragma():
    headers = [p for folder in ("user", "include", "bpf") for p in (ROOT / folder).rglob("*.h")]
    assert [str(p.relative_to(ROOT)) for p in headers if not re.search(r"^#pragma once$", p.read_text(), re.M)] == []


def test_socket_addresses_and_http2_codes():
    """Both families in one union, and its conversions: base/sockaddr.h. Codes of HTTP/2: the enum of http/h2.h."""
    assert [path for path, text in sources() if re.search(r"struct sockaddr_in6 v6;", text)] == ["user/base/sockaddr.h"]
    assert [path for path, text in sources() if re.search(r"h2_reset\([^;]*,\s*\d", text)] == []


PROTOTYPE = re.compile(r"^(?!typedef)[a-z][\w \t*]*?[ *](\w+)\([^;{}#]*\)[^;{}()#]*(?:\(\([^;]*\)\))?;", re.M)


def called_nowhere_else(files):
    """Functions that a header declares and at most one .c file knows: the one that has them."""
    texts = {path: re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", text, flags=re.S) for path, text in files}
    known = {}
    for path, text in texts.items():
        if path.endswith(".c"):
            for word in set(re.findall(r"\w+", text)):
                known[word] = known.get(word, 0) + 1
    in_headers = " ".join(text for path, text in texts.items() if path.endswith(".h"))
    return {name for path, text in texts.items() if path.endswith(".h") for name in PROTOTYPE.findall(text)
            if known.get(name, 0) < 2 and len(re.findall(rf"\b{name}\b", in_headers)) == 1}


def test_what_a_header_declares_is_called_elsewhere():
    """What only its own file calls is static there, and what nobody calls is deleted. Tests may try a step by itself."""
    tests = {word for path in (ROOT / "tests").rglob("*.[ch]") for word in re.findall(r"\w+", path.read_text())}
    assert called_nowhere_else(sources()) - tests == set()


def test_a_declaration_for_nobody_is_seen():
    header = "int dead(void);\nvoid alive(const char *text, ...)\n\t__attribute__((format(printf, 1, 2)));\n"
    one, two = ("user/a.c", "int dead(void)\n{\n\talive();\n}\n"), ("user/b.c", "void alive(void)\n{\n}\n")
    assert called_nowhere_else([("user/a.h", header), one, two]) == {"dead"}
