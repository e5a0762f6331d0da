"""A CSV file as others read it: pandas, DuckDB and Arrow, with their defaults, read some different values as equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.axes import is_null, present
from duckanon.engine.sql.relations import call, cast, col, named, subquery, table, text
from duckanon.errors import ConfigError, PrivacyViolation

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import Column

# What pandas reads as a missing value, quoted or not; DuckDB reads only the empty text so.
_MISSING = (
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
)
_LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0"


def require_names(name: str, columns: Sequence[str]) -> None:
    """Raise a ConfigError if readers of a CSV file would see a column under another name, or not at all."""
    for column in columns:
        if any(c in column for c in _LINE_BREAKS):
            wrong = "has a line break"
        elif column != column.strip() or column.startswith("\ufeff"):
            wrong = "begins or ends with white space, which readers leave out"
        else:
            continue
        raise ConfigError(
            f"{name!r} cannot be CSV: the name of the column {column!r} {wrong}. Rename the column, or publish Parquet."
        )


def require_told_apart(
    engine: Engine, rows: exp.Query, columns: Sequence[Column], described: Mapping[str, Any]
) -> None:
    """Raise if readers of CSV would count fewer values of a sensitive column in a class than the gate did."""
    for name in taken_for_one(engine, rows, [c.name for c in columns], described):
        raise PrivacyViolation(
            f"The gate refused the release: readers of CSV take different values of {name!r} for one (NULL, "
            "an empty text and words such as NA; numbers with leading zeros), so that a class would have fewer "
            "values than was promised. Publish Parquet, or make them one value in the source."
        )


def taken_for_one(
    engine: Engine, rows: exp.Query, columns: Sequence[str], described: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the sensitive columns of which a class has several values that readers of CSV read as one."""
    parameters = [p.get("parameters", {}) for p in described.get("promise", [])]
    sensitive = {p["sensitive"] for p in parameters if p.get("sensitive")}
    hidden = "permutation" in described
    roles = {c["name"]: c["role"] for c in described.get("columns", [])}
    keys = [] if hidden else [c for c, role in roles.items() if role == "quasi_identifier"]
    return (name for name in columns if name in sensitive and _merges(engine, rows, name, keys))


def _merges(engine: Engine, rows: exp.Query, column: str, keys: Sequence[str]) -> bool:
    """Say whether a class has several values that are read as one."""
    classes = [named(col(key), f"k_{j}") for j, key in enumerate(keys)]
    value = cast(col(column), "VARCHAR")
    name = engine.fresh("read")
    engine.create(name, exp.select(*classes, named(value, "v")).distinct().from_(subquery(rows.copy(), "r")))
    counts = [
        named(call("count", exp.Distinct(expressions=[_marked(one)])), alias)
        for one, alias in ((col("v"), "written"), (_as_read(engine, name), "seen"))
    ]
    several = exp.select(*counts).from_(table(name))
    if keys:
        several = several.group_by(*(col(f"k_{j}") for j in range(len(keys))))
    fewer = exp.LT(this=col("seen"), expression=col("written"))
    (merged,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(several, "c")).where(fewer))
    engine.drop(name)
    return bool(merged)


def _marked(value: exp.Expr) -> exp.Expr:
    """Return a text that distinguishes NULL from all texts."""
    return exp.func("COALESCE", exp.DPipe(this=text("v"), expression=value), text("-"))


def _as_read(engine: Engine, values: str) -> exp.Expr:
    """Return what readers make of ``v``: NULL if it means missing, a number or a date if all values are such."""
    missing = exp.In(this=col("v"), expressions=[text(m) for m in _MISSING])
    value = exp.case().when(missing, exp.null()).else_(col("v"))
    plain = call("trim", value)
    digits = call("regexp_full_match", plain, text("[-+]?[0-9]+"))
    typed = [exp.TryCast(this=plain.copy(), to=exp.DataType.build(t)) for t in ("DOUBLE", "BOOLEAN", "TIMESTAMP")]
    odd = [exp.Not(this=digits), *map(is_null, typed)]
    counts = [call("count_if", exp.and_(present(value.copy()), one, copy=False)) for one in odd]
    whole, *others = engine.row(exp.select(*counts).from_(table(values)))
    if not whole:
        return call("regexp_replace", plain.copy(), text("^[+]?(-?)0*([0-9])"), text(r"\1\2"))
    for count, one in zip(others, typed, strict=True):
        if not count:
            return cast(one.copy(), "VARCHAR")
    return value.copy()


__all__ = ["require_names", "require_told_apart", "taken_for_one"]
