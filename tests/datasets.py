"""Tables that tests of several rooms read: the public data sets, and tables that are made here."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

VARIABLE = "DUCKANON_DATA"
MISSING = f"the public data sets are not here: set {VARIABLE} to their folder"

PATIENTS = """
    CREATE TABLE patients AS
    SELECT i AS id, 20 + i * 7 % 60 AS age, lpad((10000 + i * 37 % 400)::VARCHAR, 5, '0') AS zip,
           ['f', 'm'][1 + i % 2] AS sex, ['flu', 'cold', 'gout'][1 + i % 3] AS diagnosis
    FROM range(600) AS r(i)
"""


def data_folder() -> Path:
    """Return the folder of the public data sets, which need not exist."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True)
class PublicData:
    """One public data set: a Parquet file, and a hierarchy for each quasi-identifier."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "data.parquet"

    def table(self, columns: Iterable[str] | None = None) -> pa.Table:
        return pq.read_table(self.path, columns=None if columns is None else list(columns))

    def hierarchies(self, columns: Iterable[str]) -> dict[str, Path]:
        return {name: self.folder / "hierarchies" / f"{name}.csv" for name in columns}

    def tree(self, column: str) -> dict[str, list[str]]:
        """Return the labels of each value of a column, the value itself first."""
        (path,) = self.hierarchies([column]).values()
        with path.open(newline="", encoding="utf-8") as file:
            return {row[0]: row for row in csv.reader(file, delimiter=";")}


def earners(rows: int = 600, seed: int = 3, classes: int = 2) -> pa.Table:
    """Return people whose age and trade tell much of what they earn."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 70, rows)
    trade = rng.integers(0, 4, rows)
    earned = (age - 18) / 52 + 0.5 * trade + rng.normal(0, 0.25, rows)
    cuts = np.quantile(earned, np.linspace(0, 1, classes + 1)[1:-1])
    words = np.array(["low", "middle", "high"] if classes == 3 else ["low", "high"])
    return pa.table(
        {
            "id": np.arange(rows),
            "age": age,
            "trade": np.array(["baker", "smith", "clerk", "doctor"])[trade],
            "hours": rng.normal(38, 5, rows).round(1),
            "pay": words[np.searchsorted(cuts, earned)],
        }
    )
