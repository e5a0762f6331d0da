"""Which columns could link a row with a person: a first look, to be confirmed by somebody who knows the data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.disclosure.subject import opened
from duckanon.encode import canonical
from duckanon.errors import DataError
from duckanon.hierarchy.rules import ColumnType
from duckanon.models.base import require_int
from duckanon.roles import Role
from duckanon.source import Source
from duckanon.sqlgen.relations import call, cast, col, named, number, subquery, table, union_all

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.source import Relation

LIMIT = 1_000_000
"""Rows that are looked at exactly; of a larger table a random sample of this many is."""

_WORDS = {
    "identifier": """
        name names surname firstname lastname forename fullname username email mail phone telephone tel mobile fax ssn
        passport iban account street address url ip mrn insurance licence license plate""",
    "key": "id ids uuid guid key no nr number code num identifier",
    "quasi": """
        age birth birthdate dob born sex gender zip zipcode postcode postal plz city town county state region country
        nationality citizenship race ethnicity marital education occupation job profession workclass admission discharge
        admitted discharged date household children height weight""",
    "sensitive": """
        diagnosis diagnoses disease illness condition icd drug drugs medication treatment therapy result salary income
        wage pay cost costs charge debt credit religion belief orientation party union crime conviction hiv
        disability""",
}
_IDENTIFIER, _KEY, _QUASI, _SENSITIVE = (frozenset(words.split()) for words in _WORDS.values())
_NEARLY_UNIQUE = 0.95
_MANY_VALUES = 0.5
_HARDLY_SEPARATES = 0.05


def suggest(data: object, *, connection: Any = None, limit: int = LIMIT) -> pa.Table:
    """Suggest a role for each column, with figures and a reason in words. No value of the data is in it.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
    connection : duckdb.DuckDBPyConnection, optional
    limit : int
        Of a table with more rows, a random sample of this many is looked at: ``approximate`` is then true, ``distinct``
        is an estimate over all rows (it can be off by a third), and the other shares are those of the sample.

    Returns
    -------
    pyarrow.Table
        ``column``, ``type``, ``rows``, ``distinct`` (NULL counts as a value), ``null_share``, ``distinction``
        (distinct values / rows), ``separation`` (share of pairs of rows with different values), ``role`` (identifier,
        quasi_identifier, sensitive or insensitive), ``reason``, ``approximate``.

    Notes
    -----
    Roles follow the column's name where it says something (in English), else the figures. Columns that single out
    nobody alone can do so together: nothing here replaces a decision.

    References
    ----------
    R. Motwani and Y. Xu, Efficient algorithms for masking and finding quasi-identifiers, 2007 (distinction and
    separation).

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"email": list("abcd"), "sex": list("ffmm"), "diagnosis": list("xxxy")})
    >>> for row in duckanon.suggest(people).to_pylist():
    ...     print(row["column"], row["role"], round(row["separation"], 3))
    email identifier 1.0
    sex quasi_identifier 0.667
    diagnosis sensitive 0.5
    """
    import pyarrow as pa

    require_int("suggest", "limit", limit, 2)
    with opened(connection) as engine:
        relation = Source.of(data).open(engine)
        (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(relation.query, "s")))
        if not rows:
            raise DataError(f"The source {relation.name!r} has no rows: there is nothing to suggest.")
        figures = _figures(engine, relation, int(rows), limit)
    found = []
    for column, (distinct, nulls, alike, seen, all_distinct) in zip(relation.columns, figures, strict=True):
        pairs = seen * (seen - 1)
        kind = ColumnType.parse(column.type)
        figure = {
            "distinction": all_distinct / rows,
            "separation": 1 - alike / pairs if pairs else 0.0,
            "null_share": nulls / seen,
        }
        role, reason = _role(column.name, kind, distinct, seen - nulls, nulls > 0, figure["separation"])
        found.append(
            {
                "column": column.name,
                "type": kind.name,
                "rows": int(rows),
                "distinct": all_distinct,
                **figure,
                "role": role.value,
                "reason": reason,
                "approximate": rows > limit,
            }
        )
    shares = [(name, pa.float64()) for name in ("null_share", "distinction", "separation")]
    texts = [(name, pa.string()) for name in ("column", "type")]
    counts = [(name, pa.int64()) for name in ("rows", "distinct")]
    rest = [("role", pa.string()), ("reason", pa.string()), ("approximate", pa.bool_())]
    return pa.Table.from_pylist(found, schema=pa.schema([*texts, *counts, *shares, *rest]))


def _figures(engine: Engine, relation: Relation, rows: int, limit: int) -> list[tuple[int, int, int, int, int]]:
    """Return (distinct, nulls, ordered pairs of rows alike, rows seen, distinct in all rows) of each column.

    The source is read once (and once more for the estimates where it is sampled), whatever the number of columns.
    """
    values = [_value(c.name, c.type, relation.collated) for c in relation.columns]
    seen = engine.fresh("sample")
    sampled = exp.select(*(named(v, f"c_{j}") for j, v in enumerate(values))).from_(subquery(relation.query, "s"))
    if rows > limit:
        sampled.set("sample", exp.TableSample(method=exp.var("reservoir"), size=number(limit)))
    engine.create(seen, sampled)
    parts: list[exp.Query] = []
    for j in range(len(values)):
        count = named(exp.Count(this=exp.Star()), "n")
        grouped = exp.select(named(col(f"c_{j}"), "value"), count).from_(table(seen)).group_by(col(f"c_{j}"))
        missing = exp.Is(this=col("value"), expression=exp.null())
        n = cast(col("n"), "HUGEINT")
        alike = exp.Mul(this=n, expression=exp.paren(exp.Sub(this=n.copy(), expression=number(1))))
        parts.append(
            exp.select(
                named(number(j), "j"),
                named(exp.Count(this=exp.Star()), "distinct_values"),
                named(exp.Sum(this=exp.case().when(missing, col("n")).else_(number(0))), "nulls"),
                named(exp.Sum(this=alike), "alike"),
                named(exp.Sum(this=col("n")), "seen"),
            ).from_(subquery(grouped, "g"))
        )
    found = [tuple(int(v) for v in row[1:]) for row in sorted(engine.rows(union_all(parts)))]
    engine.drop(seen)
    estimates = [distinct for distinct, *_ in found]
    if rows > limit:
        query = exp.select(*(call("approx_count_distinct", v.copy()) for v in values))
        whole = engine.row(query.from_(subquery(relation.query, "s")))
        estimates = [min(max(int(e), known), rows) for e, known in zip(whole, estimates, strict=True)]
    return [(d, nulls, alike, n, e) for (d, nulls, alike, n), e in zip(found, estimates, strict=True)]


def _value(name: str, type_name: str, collated: bool) -> exp.Expr:
    nested = ColumnType.parse(type_name).name in {"list", "STRUCT", "MAP", "UNION", "VARIANT"}
    return cast(col(name), "VARCHAR") if nested else canonical(col(name), type_name, collated)


def _words(name: str) -> set[str]:
    """Return the words of a column's name.

    Examples
    --------
    >>> sorted(_words("patientBirthDate")), sorted(_words("ZIP_code2"))
    (['birth', 'date', 'patient'], ['code', 'zip'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {word.lower() for word in re.findall(r"[^\W\d_]+", spaced)}


def _role(name: str, kind: ColumnType, distinct: int, present: int, nulls: bool, separation: float) -> tuple[Role, str]:
    words = _words(name)
    values = distinct - nulls
    share = values / present if present else 0.0
    if values <= 1:
        return Role.INSENSITIVE, "one value at most: it tells nobody apart"
    if words & _IDENTIFIER and not words & _QUASI:
        return Role.IDENTIFIER, "the name of the column says that it names a person"
    if words & _KEY and share > _MANY_VALUES and not words & (_QUASI | _SENSITIVE):
        return Role.IDENTIFIER, f"called like a key, and {share:.0%} of its values differ"
    if words & _SENSITIVE:
        return (
            Role.SENSITIVE,
            "the name of the column speaks of health, money or belief",
        )
    if words & _QUASI:
        return Role.QUASI_IDENTIFIER, "the name of the column is one that registers have, too"
    measured = kind.family in {"float", "decimal", "date", "timestamp"}
    if share >= _NEARLY_UNIQUE and not measured:
        return Role.IDENTIFIER, f"{share:.0%} of its values differ: it tells nearly all rows apart"
    if separation >= _HARDLY_SEPARATES:
        return Role.QUASI_IDENTIFIER, f"it tells {separation:.0%} of the pairs of rows apart"
    return Role.INSENSITIVE, f"it tells only {separation:.1%} of the pairs of rows apart"


__all__ = ["LIMIT", "suggest"]
