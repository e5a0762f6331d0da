from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.site import Driver
from tests.postgres.conftest import cluster

__all__ = ["cluster"]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()
