"""Makes every `.test` file a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqllogic import Skip, SqlLogicError, run


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".test":
        return SqlLogicFile.from_parent(parent, path=file_path)
    return None


class SqlLogicFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield SqlLogicItem.from_parent(self, name=self.path.stem)


class SqlLogicItem(pytest.Item):
    def runtest(self) -> None:
        try:
            directives = run(self.path, self.path.read_text(encoding="utf-8"))
        except Skip as reason:
            pytest.skip(str(reason))
        if not directives:
            raise SqlLogicError(self.path, 1, "the file holds no directive")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> object:
        if isinstance(excinfo.value, SqlLogicError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.parent.name}/{self.path.name}"
