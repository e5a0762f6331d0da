"""From a plan to a release: the stages in their order, and what each hands to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.process import PrivateFolder, sweep
from duckanon.release.release import Release
from duckanon.release.stages.check import check
from duckanon.release.stages.encode import encode, with_hierarchies
from duckanon.release.stages.partition import partition
from duckanon.release.stages.recode import Recoded, recode
from duckanon.release.stages.search import search
from duckanon.release.stages.write import write

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan


@dataclass(frozen=True)
class Tampering:
    """Changes between the stages, with which tests verify that the gate finds every lie; by default none.

    ``recoded`` returns what is used in place of a recoding, ``file`` changes the written file before it is checked.
    """

    recoded: Callable[[Recoded], Recoded] = lambda recoded: recoded
    file: Callable[[Path], Any] = lambda path: None


def run(plan: Plan, engine: Engine, stage: Path | None = None, tampering: Tampering | None = None) -> Release:
    """Carry out a plan: encode, search or partition, recode, write, check.

    ``stage`` is a folder on the file system of the later target, so that publishing is a rename. All passes over a
    table read one snapshot of it.
    """
    tampering = tampering or Tampering()
    if stage is not None:
        sweep(stage)
    folder = PrivateFolder(stage)
    path = folder.path / "release.parquet"
    try:
        with engine.snapshot():
            plan = with_hierarchies(plan, engine)
            encoded = encode(plan, engine)
            choose = partition if plan.algorithm.partitions else search
            found = choose(plan, engine, encoded)
            recoded = tampering.recoded(recode(plan, engine, encoded, found, path))
            written = write(plan, engine, recoded, path, encoded.rows)
            tampering.file(path)
            checked = check(plan, engine, encoded, found, recoded, written, staged=stage is not None)
    except BaseException:
        folder.close()
        raise
    return Release.of(plan, engine, folder, encoded, found, recoded, written, checked)


__all__ = ["Tampering", "run"]
