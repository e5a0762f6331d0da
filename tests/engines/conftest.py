"""The engines that every test of this folder runs on: one is added by a line in ``ENGINES``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from duckanon.engine.base import Engine
from duckanon.engine.duckdb.engine import DuckDBEngine

Opener = Callable[..., Engine]
ENGINES: dict[str, Opener] = {"duckdb": DuckDBEngine}


@pytest.fixture(scope="module", params=ENGINES)
def opener(request: pytest.FixtureRequest) -> Opener:
    """Open an engine with a private database, with settings such as ``memory_limit`` if need be."""
    return ENGINES[request.param]


@pytest.fixture
def engine(opener: Opener) -> Iterator[Engine]:
    """An engine that nothing was done with."""
    opened = opener(threads=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_engine(opener: Opener) -> Iterator[Engine]:
    """An engine for tests that clear away what they make, and try many examples."""
    opened = opener(threads=1)
    yield opened
    opened.close()
