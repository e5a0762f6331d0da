"""An encoding of labels."""

from __future__ import annotations

import pyarrow as pa
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from duckanon.assess.utility.raw_features import _Category


class Labels(TransformerMixin, BaseEstimator):
    """Every label of a column is a category of its own."""

    def fit(self, table: pa.Table, y: object = None) -> Labels:
        self.columns_ = {name: _Category.fit(table.column(name)) for name in table.column_names}
        return self

    def transform(self, table: pa.Table) -> sparse.csr_matrix:
        parts = [column.transform(table.column(name)) for name, column in self.columns_.items()]
        return sparse.hstack(parts, format="csr")
