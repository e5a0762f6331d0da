"""Every row of the source with its class: what ties the property vectors of two releases together.

A release has classes, not rows. The owner's source has the rows: it is read again in the owner's engine, in its own
order or by a key of its own, and every row finds its class by the recoding. Nothing of it is ever published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.dictionaries import canonical
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    hash_of,
    named,
    number,
    pack,
    qualified,
    same,
    subquery,
    table,
)
from duckanon.errors import DataError, ParameterError, UnsupportedError, did_you_mean
from duckanon.recoding.coded_rows import kept_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from duckanon.engine.sql.recode import Cell
    from duckanon.release.release import Release

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a release's source, numbered from 0, with their classes.

    Attributes
    ----------
    release : Release
    key : str or None
        The column that numbers the rows (in its order); None for the order in which the source is read. DuckDB numbers
        the rows of tables, files, lists of files and Arrow data in their own order, whatever the number of threads.
    table : str
        ``row_classes(row_id, class_id)``, or ``(row_id, class_id, key)``, a private table of the release's engine.
    """

    release: Release
    key: str | None
    table: str

    @classmethod
    def of(cls, release: Release, row_id: str | None = None) -> Rows:
        """Return the rows of a release; they are numbered once, and the table lasts as long as the release."""
        key = _column(release, row_id) if row_id is not None else None
        relation = "row_classes" if key is None else f"row_classes by {key}"
        if not release.relations.has(relation):
            if key is not None:
                _require_unique(release, key)
            name = release.engine.fresh("row_classes")
            release.engine.create(name, numbered(release, key, with_key=key is not None))
            release.relations.add(relation, name)
        return cls(release, key, release.relations.table(relation))

    def __len__(self) -> int:
        return int(self.release.rows_in)

    @cached_property
    def class_ids(self) -> NDArray[np.int64]:
        """The ids of all classes, suppressed ones included, in ascending order."""
        import numpy as np

        query = (
            exp.select(col("class_id")).from_(table(self.release.relations.table("classes"))).order_by(col("class_id"))
        )
        ids: NDArray[np.int64] = self.release.engine.arrow(query).column(0).to_numpy().astype(np.int64)
        return ids

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """For each row the position of its class in ``class_ids``."""
        import numpy as np

        placed = self._placed(self.table)
        counts = exp.select(col("class_id"), col("n")).from_(table(self.release.relations.table("class_map")))
        sizes = self.release.engine.arrow(counts.order_by(col("class_id"))).column(1).to_numpy()
        if (placed < 0).any() or (np.bincount(placed, minlength=len(self.class_ids)) != sizes).any():
            raise DataError(
                "The source changed since the release was made: its rows are no longer those of the classes."
            )
        return placed

    def scattered(self, row_ids: Any, values: Any) -> NDArray[np.float64]:
        """Return values in the order of the rows."""
        import numpy as np

        placed = np.full(len(self), np.nan)
        placed[row_ids] = values
        return placed

    def keys(self) -> Any:
        """Return the row ids as an Arrow array: the key's values, else 0, 1, 2, ..."""
        import numpy as np
        import pyarrow as pa

        if self.key is None:
            return pa.array(np.arange(len(self), dtype=np.int64))
        query = exp.select(col("key")).from_(table(self.table)).order_by(col("row_id"))
        return self.release.engine.arrow(query).column(0)

    def with_values(self, column: str) -> str:
        """Create ``row_values(row_id, class_id, value)`` with a column of the source, and return its name."""
        name = self.release.engine.fresh("row_values")
        self.release.engine.create(name, numbered(self.release, self.key, value=_column(self.release, column)))
        if (self._placed(name) != self.positions).any():
            self.release.engine.drop(name)
            raise DataError(
                "The source lists its rows in another order each time it is read: give a unique column as row_id."
            )
        return name

    def _placed(self, name: str) -> NDArray[np.int64]:
        """Return for each row the position of its class, -1 for a row that has none."""
        import numpy as np

        table_of_rows = self.release.engine.arrow(exp.select(col("row_id"), col("class_id")).from_(table(name)))
        placed = np.full(len(self), -1, dtype=np.int64)
        if table_of_rows.num_rows == len(self):
            placed[table_of_rows.column(0).to_numpy()] = np.searchsorted(
                self.class_ids, table_of_rows.column(1).to_numpy()
            )
        return placed


def numbered(release: Release, key: str | None, *, with_key: bool = False, value: str | None = None) -> exp.Select:
    """Return (row_id, class_id[, key][, value]) of every row of the source.

    The rows are numbered before anything is joined to them, because a join keeps no order.
    """
    cells = release.recoding.cells
    local = release.relations.has("tuple_map")
    if release.relations.has("row_map"):
        return _by_rows(release, key, with_key, value)
    if not local and not release.recoding.levels:
        raise UnsupportedError("This release has no record of which row is in which class.")
    extra = {name: column for name, column in (("key", key if with_key else None), ("value", value)) if column}
    inner = exp.select(
        named(_row_id(release, key), "row_id"),
        *(named(cell.expression.copy(), f"v_{j}") for j, cell in enumerate(cells) if local or not cell.constant),
        *(named(_expression(release, column), name) for name, column in extra.items()),
    ).from_(subquery(release.plan.relation.query.copy(), "s"))
    query = exp.select(col("row_id", "r"), col("class_id", "c"), *(col(name, "r") for name in extra))
    query = query.from_(subquery(inner, "r"))
    codes: list[exp.Expr] = []
    for j, cell in enumerate(cells):
        if cell.constant and not local:
            codes.append(number(0))
            continue
        alias = f"m_{j}"
        # Where the recoding is local, a row's class depends on its values, else on their codes at the chosen levels.
        codes_of_values = (
            exp.select(col("value"), named(col("code"), "g")).from_(table(cell.values)) if local else _codes(cell)
        )
        query = query.join(subquery(codes_of_values, alias), on=same(col(f"v_{j}", "r"), col("value", alias)))
        codes.append(col("g", alias))
    coded = release.problem.frequency.coded if local and release.problem is not None else ()
    words = pack(codes, [c.dictionary.size for c in coded] if local else [c.size for c in cells])
    on = [exp.EQ(this=exp.paren(word), expression=col(f"w_{i}", "c")) for i, word in enumerate(words)]
    return query.join(table(release.relations.table("tuple_map" if local else "class_map"), "c"), on=conjunction(on))


def _by_rows(release: Release, key: str | None, with_key: bool, value: str | None) -> exp.Select:
    """Return what ``numbered`` does where rows with the same quasi-identifiers may be in several classes.

    Rows are found by all that is published of them and by whom they belong to. Rows that are alike in that are dealt to
    their classes in their order: whichever of them is in which class, the release is the same.
    """
    names, cells = kept_columns(release.plan), release.recoding.cells
    extra = {name: column for name, column in (("key", key if with_key else None), ("value", value)) if column}
    inner = exp.select(
        named(_row_id(release, key), "row_id"),
        *(named(cell.expression.copy(), f"v_{j}") for j, cell in enumerate(cells)),
        *(named(col(name, "s"), f"u_{i}") for i, name in enumerate(names)),
        *(named(_expression(release, column), name) for name, column in extra.items()),
    ).from_(subquery(release.plan.relation.query.copy(), "s"))
    codes = [col("code", f"m_{j}") for j in range(len(cells))]
    passed = [col(f"u_{i}", "r") for i in range(len(names))]
    order = exp.Order(expressions=[col("row_id", "r")])
    place = exp.Window(this=exp.RowNumber(), partition_by=[c.copy() for c in (*codes, *passed)], order=order)
    coded = exp.select(col("row_id", "r"), named(place, "place"), *(col(name, "r") for name in extra), *passed)
    coded = coded.select(*(named(code, f"c_{j}") for j, code in enumerate(codes))).from_(subquery(inner, "r"))
    for j, cell in enumerate(cells):
        coded = coded.join(table(cell.values, f"m_{j}"), on=same(col(f"v_{j}", "r"), col("value", f"m_{j}")))
    alike = [*(f"c_{j}" for j in range(len(cells))), *(f"u_{i}" for i in range(len(names))), "place"]
    on = conjunction([same(col(name, "r"), col(name, "c")) for name in alike])
    query = exp.select(col("row_id", "r"), col("class_id", "c"), *(col(name, "r") for name in extra))
    return query.from_(subquery(coded, "r")).join(table(release.relations.table("row_map"), "c"), on=on)


def require_same_rows(all_rows: Iterable[Rows]) -> None:
    """Raise unless the releases were made from the same rows, numbered alike.

    A fingerprint of each column ties the number (or key) of every row to the row's value. The quasi-identifiers of all
    releases are compared where the sources have them.
    """
    rows = list(all_rows)
    first = rows[0]
    if len({r.key.lower() if r.key is not None else None for r in rows}) > 1:
        raise ParameterError("The rows of the releases are numbered in different ways: give the same row_id for all.")
    for other in rows[1:]:
        if len(other) != len(first):
            counts = ", ".join(str(n) for n in sorted({len(r) for r in rows}))
            raise ParameterError(f"The releases were made from different rows: {counts} rows.")
        wanted = {c.name.lower() for r in (first, other) for c in r.release.recoding.cells}
        shared = wanted & _names(first) & _names(other)
        if not shared and first.key is None:
            raise ParameterError(
                "The sources of the releases share no quasi-identifier, so nothing ties their rows together: give the "
                "name of a unique column of both as row_id."
            )
        ours, theirs = (_fingerprints(r, sorted(shared)) for r in (first, other))
        differing = [name for name in ours if ours[name] != theirs[name]]
        if differing:
            hint = "" if first.key is not None else " If only the order differs, give a unique column as row_id."
            listed = ", ".join(repr(name) for name in differing)
            raise ParameterError(
                f"The releases were made from different rows, or from the same rows in another order: the values of "
                f"{listed} differ.{hint}"
            )


def _fingerprints(rows: Rows, columns: list[str]) -> dict[str, int]:
    """Return for each column a number that depends on which row has which value, not on the order of reading."""
    release = rows.release
    fingerprinted = [_column(release, name) for name in columns] + ([rows.key] if rows.key is not None else [])
    who = _fixed(release, rows.key) if rows.key is not None else exp.Window(this=exp.RowNumber())
    inner = exp.select(
        named(who, "row_id"), *(named(_fixed(release, c), f"v_{i}") for i, c in enumerate(fingerprinted))
    )
    inner = inner.from_(subquery(release.plan.relation.query.copy(), "s"))
    # Hashed twice: a hash of two values is the exclusive or of both hashes, which would not depend on which row has
    # which value.
    mixed = [hash_of(hash_of(col("row_id"), col(f"v_{i}"))) for i in range(len(fingerprinted))]
    hashes = [call("bit_xor", one) for one in mixed]
    values = release.engine.row(exp.select(*hashes).from_(subquery(inner, "r")))
    return {name.lower(): int(value) for name, value in zip(fingerprinted, values, strict=True)}


def _fixed(release: Release, column: str) -> exp.Expr:
    """Return a column's value in the widest type of its kind: equal numbers of two sources must have equal hashes."""
    value = _expression(release, column)
    kind = release.plan.relation.type_of(column).upper()
    if kind in _WHOLE:
        return cast(value, "BIGINT")
    return cast(value, "DOUBLE") if kind in ("FLOAT", "REAL") else value


def _names(rows: Rows) -> set[str]:
    return {name.lower() for name in rows.release.plan.relation.names}


def _row_id(release: Release, key: str | None) -> exp.Expr:
    window = exp.Window(this=exp.RowNumber())
    if key is not None:
        window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[_expression(release, key)]))
    return cast(exp.Sub(this=window, expression=number(1)), "BIGINT")


def _codes(cell: Cell) -> exp.Select:
    """Return (value, g): every value of a column with its code on the chosen level."""
    on = exp.EQ(this=col("code", "k"), expression=col("code", "v"))
    query = exp.select(col("value", "v"), named(col(f"c{cell.level}", "k"), "g")).from_(table(cell.values, "v"))
    return query.join(table(cell.levels, "k"), on=on)


def _expression(release: Release, column: str) -> exp.Expr:
    relation = release.plan.relation
    return qualified(canonical(col(column), relation.type_of(column), relation.collated), "s")


def _column(release: Release, name: str) -> str:
    names = release.plan.relation.names
    for candidate in names:
        if candidate.lower() == str(name).lower():
            return candidate
    raise ParameterError(f"The source has no column {name!r}.{did_you_mean(str(name), names)}")


def _require_unique(release: Release, key: str) -> None:
    value = _expression(release, key)
    distinct = call("count", exp.Distinct(expressions=[value]))
    query = exp.select(exp.Count(this=exp.Star()), distinct).from_(subquery(release.plan.relation.query.copy(), "s"))
    rows, distinct_values = (int(n) for n in release.engine.row(query))
    if rows != distinct_values:
        raise ParameterError(
            f"row_id must name a column with another value in every row. "
            f"{key!r} has {distinct_values} values in {rows} rows."
        )


__all__ = ["Rows", "numbered", "require_same_rows"]
