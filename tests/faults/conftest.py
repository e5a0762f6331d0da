from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.site import Driver


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()
