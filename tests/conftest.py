"""Shared by all tests: hypothesis profiles, cases that run on demand, connections, data sets, a watched temp folder."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from tests.datasets import PublicData

# Tests import `reference` from this folder in any import mode.
sys.path.insert(0, str(Path(__file__).parent))

_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)

# The default run tries the same examples each time; DUCKANON_HYPOTHESIS=explore tries many new ones, quick a few.
settings.register_profile("default", max_examples=16, deadline=None, derandomize=True, suppress_health_check=_CHECKS)
settings.register_profile("explore", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=_CHECKS)
settings.register_profile("quick", max_examples=8, deadline=None, derandomize=True, suppress_health_check=_CHECKS)
settings.load_profile(os.environ.get("DUCKANON_HYPOTHESIS", "default"))

_COMPILED = pytest.StashKey[tuple[set[str], set[str]]]()
_ON_DEMAND = ("slow", "bench", "peers", "postgres", "dbt")
_LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    """Restore Ctrl-C: a shell lets background jobs ignore SIGINT, and tests of Ctrl-C would never end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        _one_thread_each()


def _one_thread_each() -> None:
    """Give databases in memory one thread unless a test asks for more: the workers use all cores already."""
    connect = duckdb.connect

    def connected(database: Any = ":memory:", *args: Any, **more: Any) -> duckdb.DuckDBPyConnection:
        if database == ":memory:" and not args:
            more["config"] = {"threads": 1, **(more.get("config") or {})}
        return connect(database, *args, **more)

    duckdb.connect = connected


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels before several workers run the whole suite."""
    config = session.config
    workers = getattr(config.option, "numprocesses", None)
    if workers and not hasattr(config, "workerinput") and config.args == config.getini("testpaths"):
        from tests.warm import compiled_kernels, warm

        before = compiled_kernels()
        warm(int(workers))
        config.stash[_COMPILED] = (before, compiled_kernels())


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report which cases were left out, how many kernels were compiled, and which of them only during a test."""
    left_out = config.stash.get(_LEFT_OUT, {})
    if left_out:
        each = ", ".join(f"{count} {marker}" for marker, count in left_out.items())
        terminalreporter.write_line(f"cases on demand that were left out: {sum(left_out.values())} ({each})")
    stages = config.stash.get(_COMPILED, None)
    if stages is not None:
        from tests.warm import compiled_kernels

        before, warmed = stages
        late = sorted(compiled_kernels() - warmed)
        early = len(warmed - before)
        text = f"kernels: {len(before)} in the cache, {early} compiled before the tests, {len(late)} by tests"
        terminalreporter.write_line(": ".join(filter(None, [text, ", ".join(late)])))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the number of cases left out from a worker to the main process; all workers collect the same."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(_LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive the number of cases left out from a worker."""
    left_out = getattr(node, "workeroutput", {}).get("left out")
    if left_out:
        node.config.stash[_LEFT_OUT] = left_out


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect cases that run on demand, unless -m selects markers."""
    _thin(items)
    if config.option.markexpr:
        return
    left_out = {item: next((m for m in _ON_DEMAND if item.get_closest_marker(m)), None) for item in items}
    counted = Counter(marker for marker in left_out.values() if marker is not None)
    if counted:
        config.stash[_LEFT_OUT] = dict(counted)
        config.hook.pytest_deselected(items=[item for item in items if left_out[item]])
        items[:] = [item for item in items if left_out[item] is None]


def _thin(items: list[pytest.Item]) -> None:
    """Mark the surplus cases of tests marked thinned as slow."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thinned"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("thinned")
        kept = cases[:: marker.args[0]] if marker and marker.args else _few(cases)
        for item in set(cases).difference(kept):
            item.add_marker(pytest.mark.slow)


def _few(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return few cases that cover each value of each parameter: always next the one that adds most values."""
    params = {item: item.callspec.params for item in cases}  # type: ignore[attr-defined]
    values = {item: {(name, id(value)) for name, value in own.items()} for item, own in params.items()}
    left = set().union(*values.values())
    kept = []
    while left:
        kept.append(max(cases, key=lambda item: len(values[item] & left)))
        left -= values[kept[-1]]
    return kept


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with one thread: on a few rows, starting more takes longer than the work."""
    with duckdb.connect(config={"threads": 1}) as opened:
        yield opened


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine on a private database, for tests that clear away what they make."""
    from duckanon.engine.base import open_engine

    opened = open_engine()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the public data sets; a test that asks for it is skipped where there is none."""
    from tests.datasets import MISSING, data_folder

    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(MISSING)
    return folder


@pytest.fixture(scope="session")
def adult(data: Path) -> PublicData:
    """The public data set ADULT."""
    from tests.datasets import PublicData

    found = PublicData(data / "adult")
    if not found.path.is_file():
        pytest.skip("the public data set adult is not here")
    return found


@pytest.fixture
def temp_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of one test, which shows everything that the package leaves behind."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
