"""A scikit-learn transformer that reads anonymous tables, and raw rows beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from duckanon.assess.utility.batches import BATCH
from duckanon.assess.utility.fitted import Fitted, require, resolved

if TYPE_CHECKING:
    import scipy.sparse as sp


class AnonymousEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns the cells of an anonymous table, and raw values of other rows, into the same columns for learners.

    A release has intervals, labels of hierarchies, sets and ``*`` where the rows to be scored have plain values. The
    encoder learns from the release which values its cells cover, and gives a value that was never published the
    features of the published cells that cover it: a model that was trained on a release scores raw rows as they
    are.

    Parameters
    ----------
    method : {"one_class", "fill_parent", "fill_child", "proportional", "value_set", "midpoint"}
        - "one_class": every label is a category of its own. A raw value that was not published alone has the
          category of the smallest published cell that covers it.
        - "fill_parent": a label has its own feature and those of all labels above it. A raw value has, of these, the
          features that some row of the release has.
        - "fill_child": a label has its own feature and those of all labels and values below it.
        - "proportional": for every node of the hierarchy, the share of the row's class whose original value is under
          it. Exact when fitted on a ``Release``, whose owner has the originals, or on a table published with
          ``output="proportional"``; from other tables the share of a cell is spread evenly over its values.
        - "value_set": for every value, 1 where the cell covers it.
        - "midpoint": the mean of a number's or date's bounds, in one column (days since 1970 for dates, seconds for
          timestamps); instead of an open bound, the outermost bound known. Other columns as "one_class".
    hierarchies : mapping, optional
        Column to hierarchy, as for ``anonymize``. A ``Release`` has its own. Without one, values are those that cells
        mention: words, the members of sets; numbers share a feature where no published cell distinguishes them.
    columns : sequence of str, optional
        The columns to encode; those of a table by default, of a ``Release`` its quasi-identifiers. Bounds that were
        published as ``age_lo`` and ``age_hi`` are one column ``age``.
    sparse_output : bool
        Whether ``transform`` returns a sparse matrix (CSR), else an array.
    max_features : int
        Most values of a column that have a feature of their own. Where there are more, numbers are binned, with about
        equally many rows in each bin; words take the lowest level of their hierarchy that is small enough, or share one
        feature "other" but for the most frequent. It also limits published intervals and sets that become categories.
    types : mapping, optional
        Column to the database's name of the type that it had before it was generalized, where that is known: bounds
        of intervals that are written as texts are then read as what they are. A ``Release`` knows its own.

    Attributes
    ----------
    feature_names_in_ : array of str
    n_features_in_ : int
    domains_ : dict
        What was learnt of each column.

    Notes
    -----
    NULL is a value like any other: where the release has it, it has a feature, ``<column>_missing``. A word that
    no published cell covers has no feature set. A number outside of everything published takes the nearest.
    Features are named after values. Fitted on a ``Release``, the encoder knows original values of its source: it is the
    owner's, like the release.

    References
    ----------
    F. Viton, C. Mauger, G. Dequen, J.-L. Guérin and G. Le Mahec, Proportional representation to increase data utility
    in k-anonymous tables, ISCC 2021: sections II-C and III-A. A. Inan, M. Kantarcioglu and E. Bertino, Using anonymized
    data for classification, ICDE 2009.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon.assess.utility import AnonymousEncoder
    >>> released = pa.table({"age": ["[15, 34]", "[35, 49]", "*"], "sex": ["m", "f", "f"]})
    >>> encoder = AnonymousEncoder(method="value_set").fit(released)
    >>> encoder.get_feature_names_out().tolist()
    ['age_[15, 34]', 'age_[35, 49]', 'sex_f', 'sex_m']
    >>> encoder.transform(released).toarray().astype(int).tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 0]]
    >>> encoder.transform(pa.table({"age": [17, 40], "sex": ["f", "m"]})).toarray().astype(int).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 1]]
    """

    def __init__(
        self,
        method: str = "value_set",
        hierarchies: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        sparse_output: bool = True,
        max_features: int = 256,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self.method = method
        self.hierarchies = hierarchies
        self.columns = columns
        self.sparse_output = sparse_output
        self.max_features = max_features
        self.types = types

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 - scikit-learn's names
        """Learn from a release which values its cells cover.

        Parameters
        ----------
        X : Release, path of a Parquet file, pandas or polars frame, Arrow table or stream, array
        y : ignored
        """
        require(self.method, self.max_features)
        given = resolved(self.hierarchies)
        rows = self._validated(X, reset=True)
        self._fitted = Fitted.of(rows, self.method, given, self.columns, self.max_features, self.types)
        self.domains_ = {name: book.domain for name, book in self._fitted.books.items()}
        if not _is_array(X):
            names = [part for parts in self._fitted.layout.attributes.values() for part in parts]
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's names
        """Return the rows of a release, or raw rows, in the columns of ``get_feature_names_out``."""
        import scipy.sparse as sp

        check_is_fitted(self, "domains_")
        blocks = list(self._fitted.encoded(self._validated(X, reset=False)))
        blocks = blocks or [sp.csr_matrix((0, len(self._fitted.names)))]
        matrix = sp.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
        return self._wrapped(matrix, X)

    def transform_batches(self, X: Any, size: int = BATCH) -> Iterator[sp.csr_matrix]:  # noqa: N803
        """Yield the encoded rows as sparse matrices of at most ``size`` rows, so that memory stays bounded.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from duckanon.assess.utility import AnonymousEncoder
        >>> rows = pa.table({"sex": ["m", "f", "*"]})
        >>> [part.shape for part in AnonymousEncoder().fit(rows).transform_batches(rows, size=2)]
        [(2, 2), (1, 2)]
        """
        check_is_fitted(self, "domains_")
        yield from self._fitted.encoded(self._validated(X, reset=False), size)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, ``<column>_<label>`` each."""
        check_is_fitted(self, "domains_")
        return np.array(self._fitted.names, dtype=object)

    # What scikit-learn requires

    def _validated(self, data: Any, reset: bool) -> Any:
        """Check arrays as scikit-learn does; tables are read column by column."""
        if _is_array(data):
            return validate_data(self, data, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return data

    def _wrapped(self, matrix: sp.csr_matrix, data: Any) -> Any:
        from sklearn.utils._set_output import _get_output_config

        if not self.sparse_output:
            return matrix.toarray()
        wanted = _get_output_config("transform", self)["dense"]
        if wanted == "pandas":
            import pandas

            # scikit-learn refuses sparse matrices here; columns of a frame can be sparse, too.
            index = data.index if hasattr(data, "iloc") else None
            return pandas.DataFrame.sparse.from_spmatrix(matrix, index=index, columns=self.get_feature_names_out())
        return matrix if wanted == "default" else matrix.toarray()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def encode(
    data: Any,
    method: str = "value_set",
    *,
    hierarchies: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    max_features: int = 256,
) -> tuple[sp.csr_matrix, list[str]]:
    """Return a release or table as a sparse matrix, and the names of its columns.

    The rows are read in batches, twice: once for the cells, once to encode them.

    Parameters
    ----------
    data : Release, path of a Parquet file, pandas or polars frame, Arrow table
    method, hierarchies, columns, max_features
        As for ``AnonymousEncoder``, which also encodes raw rows in the same columns.

    Returns
    -------
    tuple of scipy.sparse.csr_matrix and list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon.assess.utility import encode
    >>> matrix, names = encode(pa.table({"age": ["{0, 1}", "{1, 3}"]}), "value_set")
    >>> names, matrix.toarray().astype(int).tolist()
    (['age_0', 'age_1', 'age_3'], [[1, 1, 0], [0, 1, 1]])
    """
    encoder = AnonymousEncoder(method, hierarchies, columns, max_features=max_features)
    return encoder.fit(data).transform(data), encoder.get_feature_names_out().tolist()


def _is_array(data: Any) -> bool:
    """Whether rows come without names of columns."""
    return isinstance(data, np.ndarray | list | tuple) or hasattr(data, "tocsr")


__all__ = ["AnonymousEncoder", "encode"]
