"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import duckanon

MODULES = sorted(m.name for m in pkgutil.walk_packages(duckanon.__path__, "duckanon.") if "__main__" not in m.name)


def has_examples(name: str) -> bool:
    return bool([t for t in doctest.DocTestFinder().find(importlib.import_module(name)) if t.examples])


@pytest.mark.parametrize("name", [n for n in MODULES if has_examples(n)])
def test_examples_in_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0
