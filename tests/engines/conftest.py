"""The engines that all tests of this folder run on. A line in ``ENGINES`` adds one."""

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
    """A new engine."""
    opened = opener(threads=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_engine(opener: Opener) -> Iterator[Engine]:
    """One engine for all examples of a module's tests, which drop what they create."""
    opened = opener(threads=1)
    yield opened
    opened.close()
