"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import duckanon

FOLDER = Path(duckanon.__file__).parent
SOURCES = sorted(p for p in FOLDER.rglob("*.py") if ">>> " in p.read_text(encoding="utf-8"))
PATHS = [p.relative_to(FOLDER.parent).with_suffix("") for p in SOURCES]
MODULES = [".".join(p.parts).removesuffix(".__init__") for p in PATHS]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0
