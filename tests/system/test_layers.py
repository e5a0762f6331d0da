"""Which modules may import what."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "duckanon"
MODULES = sorted(PACKAGE.rglob("*.py"))
_HEAVY = ("duckdb", "pyarrow", "sqlglot", "numpy", "pandas", "polars", "typer", "rich", "numba")


def imported(path: Path) -> set[str]:
    """Return the top names that a module imports, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_imports_go_down_only() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_leaves_duckdb_to_the_engine() -> None:
    wrong = []
    for path in MODULES:
        inside, found = path.relative_to(PACKAGE).parts, imported(path)
        foreign = {"duckdb"} if inside[:2] != ("engine", "duckdb") else set()
        if inside[0] == "kernels":
            foreign |= {"sqlglot", "pyarrow"}
        if inside[0] not in ("assess", "jobs", "studies"):
            foreign.add("sklearn")
        wrong += ["/".join(inside)] if foreign & found else []
    assert not wrong


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "reference").glob("*.py")), ids=lambda p: p.stem)
def test_a_reference_knows_nothing_of_the_package(path: Path) -> None:
    assert not imported(path) & {"duckanon", "duckdb"}


def test_no_statement_is_pasted_together() -> None:
    """Ruff's S608 guards f-strings; no module may switch it off."""
    assert not [path for path in MODULES if "S608" in path.read_text(encoding="utf-8")]


def test_importing_the_package_is_cheap() -> None:
    code = f"import sys, duckanon; print(sorted(set(sys.modules) & set({_HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
