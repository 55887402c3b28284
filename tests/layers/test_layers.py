"""The architecture, enforced: a forbidden #include fails here."""
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LIBRARIES = ("bpf/", "yaml.h", "idn2.h", "nettle/", "sqlite3.h", "seccomp.h", "microhttpd.h", "jansson.h", "openssl/", "nghttp2/", "llhttp.h", "ares.h")


def table():
    rows = {}
    for line in (Path(__file__).parent / "layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        left, _, right = line.partition("|")
        folder, *uses = left.split()
        rows[folder] = (uses, right.split())
    return rows


def violations(rows, folder, text):
    uses, libraries = rows[folder]
    for mark, name in INCLUDE.findall(text):
        if mark == "<":
            known = next((lib for lib in LIBRARIES if name.startswith(lib)), None)
            if known and known not in libraries:
                yield name
            continue
        top = name.split("/")[0]
        if "/" not in name or top == folder:
            continue  # include/, or a neighbour
        if top not in uses and name not in uses:
            yield name


def test_every_folder_is_in_the_table():
    assert {p.name for p in (ROOT / "user").iterdir() if p.is_dir()} <= set(table())


def test_includes_keep_to_the_table():
    rows = table()
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "user").rglob("*.[ch]"))
        for name in violations(rows, path.parent.name, path.read_text())
    ]
    assert wrong == []


def test_the_decisions_of_the_gate_are_pure():
    text = (ROOT / "bpf" / "gate.bpf.h").read_text()
    assert "bpf_map_" not in text and "ctx" not in re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def test_the_abi_is_alone():
    """include/ holds what the gate and user space share, and needs nothing of either."""
    own = {p.name for p in (ROOT / "include").glob("*.h")}
    for path in sorted((ROOT / "include").glob("*.h")):
        for mark, name in INCLUDE.findall(path.read_text()):
            assert name in own if mark == '"' else name.startswith(("linux/", "std", "string.h", "bpf/")), f"{path.name}: {name}"


def test_the_gate_knows_nothing_of_user_space():
    own = {p.name for folder in ("include", "bpf", "vmlinux") for p in (ROOT / folder).glob("*.h")}
    for path in sorted((ROOT / "bpf").glob("*.bpf.[ch]")):
        for mark, name in INCLUDE.findall(path.read_text()):
            assert name in own if mark == '"' else name.startswith(("bpf/", "linux/", "asm/", "std")), f"{path.name}: {name}"


def programs():
    """What the Makefile links into which program: folders, and single files of others."""
    text = (ROOT / "Makefile").read_text()
    shared = re.search(r"^SHARED_DIRS = (.*)$", text, re.M).group(1).split()
    for name in ("DAEMON", "CLI", "RUN", "INSPECT", "CONSOLE"):
        folders = re.search(rf"^{name}_DIRS = (.*)$", text, re.M).group(1).replace("$(SHARED_DIRS)", " ".join(shared)).split()
        single = re.findall(r"obj/(\w+/\w+)\.o", re.search(rf"^{name}_OBJS = (.*)$", text, re.M).group(1))
        yield name, folders, single


def test_what_is_linked_is_in_the_table():
    """A folder that is linked into a program is used by another one there, and brings what it may use."""
    rows = table()
    for name, folders, single in programs():
        heads = {"DAEMON": "daemon", "CLI": "cli", "RUN": "launcher", "INSPECT": "inspect", "CONSOLE": "console"}
        reach, todo = set(), [heads[name]]
        while todo:
            folder = todo.pop()
            if folder not in reach:
                reach.add(folder)
                todo += [u.split("/")[0] for u in rows[folder][0]]
        assert set(folders) <= reach, f"{name} links {set(folders) - reach}, which nothing there may use"
        for file in single:
            allowed = {u for f in folders for u in rows[f][0]}
            assert f"{file}.h" in allowed or file.split("/")[0] in allowed, f"{name} links {file}"


def test_a_forbidden_include_is_seen():
    rows = table()
    assert list(violations(rows, "base", '#include "kernel/kernel.h"\n')) == ["kernel/kernel.h"]
    assert list(violations(rows, "cli", "#include <bpf/libbpf.h>\n")) == ["bpf/libbpf.h"]
    assert list(violations(rows, "kernel", '#include "session/service.h"\n')) == ["session/service.h"]
