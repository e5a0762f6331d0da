"""Names of the package in tests resolve: in tests on demand, in strings and in code for other processes, too."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).parents[1]
_PATH = re.compile(r"duckanon(\.[A-Za-z_]\w*){2,}")
_IMPORT = re.compile(r"from (duckanon[\w.]*) import (\w+(?:, \w+)*)")
_FILES = (".json", ".pub")
# Made by the test that names it.
_MADE = {"duckanon.kernels.scratch"}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield the full names that a file imports from the package, or gives as text."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "duckanon":
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if _PATH.fullmatch(text) and not text.endswith(_FILES):
                yield text
            case ast.Constant(value=str(text)):
                for module, listed in _IMPORT.findall(text):
                    yield from (f"{module}.{name}" for name in listed.split(", "))


@cache
def resolves(name: str) -> bool:
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            if not hasattr(found, part):
                # A test may hide a builtin function from one module.
                return part == parts[-1] and isinstance(found, ModuleType) and hasattr(builtins, part)
            found = getattr(found, part)
        return True
    return False


def test_every_name_of_the_package_resolves() -> None:
    gone = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in names_in(ast.parse(path.read_text(encoding="utf-8")))
        if name not in _MADE and not resolves(name)
    ]
    assert not gone


def test_a_name_that_is_gone_is_noticed() -> None:
    gone = ["duckanon.release." + name for name in ("nothing", "release.nothing")]
    tree = ast.parse("patch({!r})\nfrom {} import {}".format(gone[0], *gone[1].rsplit(".", 1)))
    assert sorted(names_in(tree)) == gone
    assert not any(map(resolves, gone))
    assert resolves("duckanon.release.release.Release.verify")
