"""Tables that teach something, an encoding of labels, and releases of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from duckanon.assess.utility.plain import _Category


class Labels(TransformerMixin, BaseEstimator):
    """Every label of a column is a category of its own."""

    def fit(self, table: pa.Table, y: object = None) -> Labels:
        self.columns_ = {name: _Category.fit(table.column(name)) for name in table.column_names}
        return self

    def transform(self, table: pa.Table) -> sparse.csr_matrix:
        parts = [column.transform(table.column(name)) for name, column in self.columns_.items()]
        return sparse.hstack(parts, format="csr")


def people(rows: int = 600, seed: int = 3, classes: int = 2) -> pa.Table:
    """People whose age and trade tell much of what they earn."""
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
