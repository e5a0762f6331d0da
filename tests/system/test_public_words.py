"""Texts for users contain the words of the glossary, and none that a practitioner would not say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import duckanon
from duckanon.plan.request import PARAMETERS

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = Path(duckanon.__file__).parent
GLOSSARY = CHECKOUT / "docs" / "glossary.md"
ODD = {
    r"\bfore(saw|seen)\b": "unexpected error",
    r"\bexpected are\b": "expected at least ...",
    r"\b(dis)?proved\b": "verified, checked",
    r"\bnobody's\b": "say what is meant",
    r"\bwhoever knows\b": "an adversary who knows",
    r"\bequivalence group\b": "equivalence class",
    r"\bquasi identifiers?\b": "quasi-identifier",
    r"\b(anonymis|generalis|suppressi?b)": "American spelling, as in the names of functions",
}
SHOWN = {"help", "about", "summary", "message", "why", "reason"}
"""Keywords and class attributes whose texts users read."""


def texts(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def public(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what a module says to users: errors, help, summaries."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found: list[ast.AST] = []
        if isinstance(node, ast.Raise) and node.exc is not None:
            found.append(node.exc)
        elif isinstance(node, ast.keyword) and node.arg in SHOWN:
            found.append(node.value)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id in SHOWN for t in targets) and node.value is not None:
                found.append(node.value)
        for one in found:
            for text in texts(one):
                yield node.lineno if hasattr(node, "lineno") else 0, text


@cache
def messages() -> list[tuple[str, str]]:
    """Return all that users read, each text with where it stands."""
    found = [
        (f"{path.relative_to(PACKAGE)}:{line}", text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in public(path)
    ]
    return found + [(f"parameter {p.name}", p.about) for p in PARAMETERS.values()]


def headwords() -> list[str]:
    return re.findall(r"^\*\*(.+?)\*\*", GLOSSARY.read_text(encoding="utf-8"), re.M)


def test_messages_are_found() -> None:
    assert len(messages()) > 500
    assert any("is no quasi-identifier" in text for _, text in messages())


def test_no_message_has_an_odd_word() -> None:
    found = [(where, ODD[odd]) for odd in ODD for where, text in messages() if re.search(odd, text, re.I)]
    assert found == [], "each with what to say instead"


def pages() -> list[Path]:
    """Return the pages of the manual, the README and those of examples."""
    folders = [CHECKOUT / "docs", CHECKOUT / "examples", CHECKOUT / "hierarchies"]
    return [CHECKOUT / "README.md", *sorted(p for folder in folders for p in folder.rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_no_page_has_an_odd_word(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [odd for odd in ODD if re.search(odd, text, re.I)] == []


def test_the_glossary_is_sorted_and_defines_each_word_once() -> None:
    words = headwords()
    assert words == sorted(set(words), key=str.lower)


def test_each_word_of_the_glossary_is_in_use() -> None:
    shown = [page.read_text(encoding="utf-8") for page in pages() if page != GLOSSARY]
    said = " ".join([*(text for _, text in messages()), *shown]).lower().replace("\n", " ")
    assert [word for word in headwords() if word.lower() not in said] == []
