# SPDX-License-Identifier: MIT
"""The documents speak of what is there: their links lead somewhere, and the files that they name exist."""
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*TOP.glob("*.md"), *TOP.glob("docs/*.md")])


def named(document):
    text = document.read_text()
    links = [document.parent / link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)]
    paths = re.findall(r"`((?:user|bpf|include|tests|man|docs|examples|clients|policies)/[\w./-]*)`", text)
    return links, [TOP / path for path in paths]


def test_there_are_documents():
    names = {d.name for d in DOCUMENTS}
    assert {"README.md", "SECURITY.md", "CONTRIBUTING.md", "architecture.md", "api.md", "sandbox.md", "agents.md",
            "inspector.md", "dns.md", "operations.md"} <= names
    assert sum(len(named(d)[1]) for d in DOCUMENTS) > 100


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_and_paths_lead_somewhere(document):
    links, paths = named(document)
    assert not [str(p) for p in links + paths if not p.exists()]


def test_readme_is_short():
    assert len((TOP / "README.md").read_text().splitlines()) <= 150


def test_every_document_is_found_from_the_readme():
    seen, todo = set(), [TOP / "README.md"]
    while todo:
        document = todo.pop().resolve()
        if document in seen or document.suffix != ".md":
            continue
        seen.add(document)
        todo += named(document)[0]
    assert not set(DOCUMENTS) - seen - {TOP / "CHANGELOG.md"}
