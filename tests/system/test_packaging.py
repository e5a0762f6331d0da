"""What is said of the package outside its code agrees with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckanon

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_has_the_version_and_licence_of_the_package() -> None:
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.M) == [duckanon.__version__]
    assert re.findall(r"^license: (.+)$", citation, re.M) == [PROJECT["license"]]


def test_the_changelog_names_the_version() -> None:
    titles = re.findall(r"^## (\S+)", (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert duckanon.__version__ in titles


def test_files_that_the_package_names_are_there() -> None:
    for name in [PROJECT["readme"], *PROJECT["license-files"]]:
        assert (CHECKOUT / name).stat().st_size > 0
    assert (Path(duckanon.__file__).parent / "py.typed").exists()


def test_extras_that_extras_name_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    named = {one for needs in extras.values() for need in needs for one in re.findall(r"^duckanon\[(.+)\]$", need)}
    assert {one for names in named for one in names.split(",")} <= set(extras)
