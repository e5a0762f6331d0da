"""A scikit-learn transformer that reads anonymous tables, and raw rows beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from duckanon.errors import ParameterError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.release import Release
from duckanon.utility.cells import BATCH, Layout, Mixtures, Texts, batches, type_of
from duckanon.utility.codebook import METHODS, Codebook
from duckanon.utility.learn_domain import Seen, learn
from duckanon.utility.shares import ClassShares, owned_hierarchies

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse as sp


class AnonymousEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns the cells of an anonymous table, and raw values of other rows, into the same columns for learners.

    A release has intervals, labels of hierarchies, sets and ``*`` where the rows to be scored have plain values. The
    encoder learns from the release what its cells can stand for, and gives a value that was never published the
    features of the published cells that it lies under: a model that was trained on a release scores raw rows as they
    are.

    Parameters
    ----------
    method : {"one_class", "fill_parent", "fill_child", "proportional", "value_set", "midpoint"}
        - "one_class": every label is a category of its own. A raw value that was not published by itself has the
          category of the smallest published cell that it lies in.
        - "fill_parent": a label has its own feature and those of all labels above it.
        - "fill_child": a label has its own feature and those of all labels and values below it.
        - "proportional": for every node of the hierarchy, the share of the row's class whose original value is under
          it. Exact when fitted on a ``Release``, whose owner has the originals, or on a table published with
          ``output="proportional"``; from other tables the share of a cell is spread evenly over its values.
        - "value_set": for every value, 1 where the cell can stand for it.
        - "midpoint": the mean of a number's or date's bounds, in one column (days since 1970 for dates, seconds for
          timestamps); instead of an open bound, the outermost bound known. Other columns as "one_class".
    hierarchies : mapping, optional
        Column to hierarchy, as for ``anonymize``. A ``Release`` has its own. Without one, values are those that cells
        mention: words, the members of sets; numbers share a feature where no published cell tells them apart.
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
    nothing published can stand for has no feature set. A number outside of everything published takes the nearest.
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
    >>> from duckanon.utility import AnonymousEncoder
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
        """Learn from a release what its cells stand for.

        Parameters
        ----------
        X : Release, pandas or polars frame, Arrow table or stream, array
        y : ignored
        """
        self._require_parameters()
        columns = self.columns
        if columns is None and isinstance(X, Release):
            columns = list(X.recoding.columns)
        seen: dict[str, Seen] = {}
        layout = None
        for rows in batches(self._validated(X, reset=True)):
            if layout is None:
                layout = Layout.of(rows.column_names, columns)
                known = self.types or {}
                seen = {name: Seen(name, known.get(name) or _type(X, rows, name, layout)) for name in layout.attributes}
            for own in seen.values():
                _count(own, layout, rows)
        assert layout is not None
        given = self._resolved(list(seen))
        if isinstance(X, Release):
            given = {**owned_hierarchies(X), **given}
        self._layout = layout
        self.domains_ = {
            name: learn(own, given.get(name), self.max_features, owned=isinstance(X, Release))
            for name, own in seen.items()
        }
        self._books = {
            name: Codebook(domain, self.method, seen[name], self.max_features) for name, domain in self.domains_.items()
        }
        self._shares = None
        if isinstance(X, Release) and self.method == "proportional" and not _is_mixed(X, layout):
            self._shares = ClassShares(X, self._books)
        if not _is_array(X):
            names = [part for parts in layout.attributes.values() for part in parts]
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's names
        """Return the rows of a release, or raw rows, in the columns of ``get_feature_names_out``."""
        import scipy.sparse as sp

        check_is_fitted(self, "domains_")
        found = list(self._encoded(self._validated(X, reset=False)))
        matrix = sp.vstack(found, format="csr") if len(found) > 1 else found[0]
        return self._wrapped(matrix, X)

    def transform_batches(self, X: Any, size: int = BATCH) -> Iterator[sp.csr_matrix]:  # noqa: N803
        """Yield the encoded rows as sparse matrices of at most ``size`` rows, so that memory stays bounded.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from duckanon.utility import AnonymousEncoder
        >>> rows = pa.table({"sex": ["m", "f", "*"]})
        >>> [part.shape for part in AnonymousEncoder().fit(rows).transform_batches(rows, size=2)]
        [(2, 2), (1, 2)]
        """
        check_is_fitted(self, "domains_")
        yield from self._encoded(self._validated(X, reset=False), size)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, ``<column>_<label>`` each."""
        check_is_fitted(self, "domains_")
        return np.array([name for book in self._books.values() for name in book.names], dtype=object)

    # What is asked for

    def _require_parameters(self) -> None:
        if self.method not in METHODS:
            hint = did_you_mean(str(self.method), METHODS)
            raise ParameterError(
                f"The 'method' parameter of AnonymousEncoder must be one of {', '.join(METHODS)}. "
                f"Got {self.method!r}.{hint}"
            )
        most = self.max_features
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2:
            raise ParameterError("The 'max_features' parameter of AnonymousEncoder must be an integer >= 2.")

    def _resolved(self, names: Sequence[str]) -> dict[str, Hierarchy]:
        from duckanon.hierarchy.store import workspace

        lowered = {name.lower(): name for name in names}
        found = {}
        for key, spec in (self.hierarchies or {}).items():
            if key.lower() not in lowered:
                # Hierarchies are often those of a whole table, of which only some columns are encoded.
                continue
            if isinstance(spec, Hierarchy):
                found[lowered[key.lower()]] = spec
                continue
            with workspace(None) as engine:
                found[lowered[key.lower()]] = resolve(spec, engine, None)
        return found

    def _validated(self, data: Any, reset: bool) -> Any:
        """Check arrays as scikit-learn does; tables are read column by column."""
        if _is_array(data):
            return validate_data(self, data, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return data

    # How rows become matrices

    def _encoded(self, data: Any, size: int = BATCH) -> Iterator[sp.csr_matrix]:
        import scipy.sparse as sp

        for rows in batches(data, size):
            blocks = [book.encode(self._layout.cells(rows, name)) for name, book in self._books.items()]
            found = sp.hstack(blocks, format="csr") if blocks else sp.csr_matrix((rows.num_rows, 0))
            if self._shares is not None:
                found = _by_class(self._shares, rows, found)
            yield found

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
    data : Release, pandas or polars frame, Arrow table
    method, hierarchies, columns, max_features
        As for ``AnonymousEncoder``, which also encodes raw rows in the same columns.

    Returns
    -------
    tuple of scipy.sparse.csr_matrix and list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon.utility import encode
    >>> matrix, names = encode(pa.table({"age": ["{0, 1}", "{1, 3}"]}), "value_set")
    >>> names, matrix.toarray().astype(int).tolist()
    (['age_0', 'age_1', 'age_3'], [[1, 1, 0], [0, 1, 1]])
    """
    encoder = AnonymousEncoder(method, hierarchies, columns, max_features=max_features)
    return encoder.fit(data).transform(data), encoder.get_feature_names_out().tolist()


def _is_array(data: Any) -> bool:
    """Whether rows come without names of columns."""
    return isinstance(data, np.ndarray | list | tuple) or hasattr(data, "tocsr")


def _type(data: Any, rows: pa.Table, name: str, layout: Layout) -> str | None:
    """Return the type of a column: the original one of a release, else its own where that is a number or date."""
    if isinstance(data, Release):
        known = {a.name: a.type for a in data.plan.roles.published}
        if name in known:
            return known[name]
    kind = rows.schema.field(layout.attributes[name][0]).type
    kind = kind.field(0).type if str(kind).startswith("struct<lo") else kind
    found = type_of(kind)
    return None if found == "VARCHAR" else found


def _count(seen: Seen, layout: Layout, rows: pa.Table) -> None:
    cells = layout.cells(rows, seen.name)
    if isinstance(cells, Texts):
        counts = np.bincount(cells.codes + 1, minlength=len(cells.labels) + 1)
        seen.missing += int(counts[0])
        seen.add_labels(cells.labels, counts[1:].tolist())
    elif isinstance(cells, Mixtures):
        shares = np.bincount(cells.codes, weights=cells.shares, minlength=len(cells.labels))
        seen.add_labels(cells.labels, np.maximum(shares.round().astype(int), 1).tolist())
    else:
        blank = np.isnan(cells.numbers)
        seen.missing += int(blank.sum())
        values, counts = np.unique(cells.numbers[~blank], return_counts=True)
        seen.add_values(values, counts)


def _is_mixed(release: Release, layout: Layout) -> bool:
    """Whether cells are published as shares already."""
    types = {column.name: column.type for column in release.columns}
    return any(types.get(part, "").startswith("MAP") for parts in layout.attributes.values() for part in parts)


def _by_class(shares: ClassShares, rows: pa.Table, found: sp.csr_matrix) -> sp.csr_matrix:
    """Put the shares of their classes in the place of rows that are rows of the release."""
    import scipy.sparse as sp

    at = shares.find(rows)
    if not (at >= 0).any():
        return found
    if (at >= 0).all():
        return shares.matrix[at]
    both = sp.vstack([shares.matrix, found], format="csr")
    return both[np.where(at >= 0, at, shares.size + np.arange(len(at)))]


__all__ = ["AnonymousEncoder", "encode"]
