"""The pages hang together: links lead somewhere, the reference leaves nothing out, commands are examples that run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import CHECKOUT, DOCS, pages

ON_GITHUB = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
MARK = re.compile(r"^<!-- reference: (\w+) -->$", re.M)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    pytest.importorskip("pygments")
    spec = importlib.util.spec_from_file_location("reference", DOCS / "_ext" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ON_GITHUB, ids=lambda p: p.name)
def test_links_of_pages_outside_the_manual_lead_to_files(page: Path) -> None:
    """Sphinx checks those of the manual."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_readme_is_short_and_has_the_two_commands() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 8192
    for marker in ("command one", "command two"):
        assert re.search(rf"^<!-- {marker} -->\n\n    \S", text, re.M)


def test_each_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.M))
    there = {str(page.relative_to(DOCS).with_suffix("")) for page in pages() if DOCS in page.parents}
    assert there - listed == {"index"}


def test_commands_stand_in_console_blocks() -> None:
    """In an indented block nothing would run them."""
    shown = [page for page in pages() if DOCS in page.parents]
    found = [page.name for page in shown if re.search(r"^    duckanon ", page.read_text(encoding="utf-8"), re.M)]
    assert found == []


def test_each_part_of_the_reference_has_a_page(reference: ModuleType) -> None:
    used = [name for page in pages() for name in MARK.findall(page.read_text(encoding="utf-8"))]
    assert sorted(used) == sorted(reference.PARTS)


def test_the_reference_has_all_that_is_registered(reference: ModuleType) -> None:
    from duckanon.algorithms.base import algorithms
    from duckanon.interfaces.cli import app
    from duckanon.interfaces.sql.door import FUNCTIONS
    from duckanon.metrics.base import metrics
    from duckanon.models.base import models
    from duckanon.plan.request import PARAMETERS

    assert [name for name in models if f"## `{name}`" not in reference.models()] == []
    assert [name for name in algorithms if f"## `{name}`" not in reference.algorithms()] == []
    assert [name for name in metrics if f"## `{name}`" not in reference.metrics()] == []
    assert [name for name in FUNCTIONS if f"## `{name}`" not in reference.sql_functions()] == []
    assert [name for name in PARAMETERS if f"`{name}`" not in reference.parameters()] == []
    named = [c.name or (c.callback.__name__ if c.callback else "") for c in app.registered_commands if not c.hidden]
    assert len(named) > 15
    assert [name for name in named if f"`duckanon {name}`" not in reference.commands()] == []


def test_the_reference_of_jobs_has_each_key(reference: ModuleType) -> None:
    import msgspec

    from duckanon.jobs.keys import Output, Roles

    text = reference.job_keys()
    keys = [*(f.name for f in msgspec.structs.fields(Output)), *(f.name for f in msgspec.structs.fields(Roles))]
    assert [key for key in keys if f"| `{key}` |" not in text] == []
