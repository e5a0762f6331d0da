"""Which columns could link a row to a person: a suggestion, to be confirmed by someone who knows the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess import identifiers
from duckanon.assess.identifying_sets import SAMPLE, THRESHOLD, IdentifyingSet, countable, sample_of, sampled, search
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import approx_distinct, call, cast, col, named, number, subquery, table
from duckanon.errors import DataError
from duckanon.hierarchy.match import MOST, match
from duckanon.hierarchy.rules import ColumnType
from duckanon.io.source import Source
from duckanon.models.base import require_int
from duckanon.plan.roles import Role
from duckanon.report.assessments import suggestion_report
from duckanon.report.results import TableResult

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.source import Relation
    from duckanon.report.model import Report

LIMIT = 1_000_000
"""Rows that are all read; of a larger table a random sample of this size is."""

_READ = 2_000
"""Rows whose values are compared with patterns."""
_NEARLY_UNIQUE = 0.95
_MANY_VALUES = 0.5
_HARDLY_SEPARATES = 0.05
_FEWEST_PERSONS, _MOST_ROWS = 20, 500
"""An entity key has at least so many values, and on average no more than so many rows of each."""
FEW = 5
"""So many quasi-identifiers are proposed: each further one costs detail in all others."""


class Suggestion(TableResult):
    """Roles of columns, a row for each; see ``duckanon.suggest``.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"email": list("abcd"), "sex": list("ffmm"), "diagnosis": list("xxxy")})
    >>> duckanon.suggest(people).columns("quasi_identifier")
    ['sex']
    """

    def columns(self, role: str) -> list[str]:
        """Return the columns for which a role is suggested."""
        return [str(row["column"]) for row in self if row["role"] == Role(role).value]

    def _shown(self) -> Report:
        return suggestion_report(self.to_pylist())


def suggest(
    data: object,
    *,
    connection: Any = None,
    sample_size: int = LIMIT,
    max_size: int = 3,
    by: str = "uniqueness",
    threshold: float = THRESHOLD,
) -> Suggestion:
    """Suggest a role for each column, with figures and a reason in words. No value of the data is in it.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
    connection : duckdb.DuckDBPyConnection, optional
    sample_size : int
        Of a table with more rows, a random sample of this many (always the same one) is read: ``approximate`` is
        then true, ``distinct`` is an estimate over all rows (it can be off by a third), and the other shares are those
        of the sample.
    max_size, by, threshold
        The minimal identifying sets that are searched, as in ``identifying_sets``; a size of 0 searches none.

    Returns
    -------
    Suggestion
        A table (``to_arrow``, ``to_pandas``, ``to_polars``) that shows itself. Its columns:
        ``column``, ``role`` (identifier, entity_key, quasi_identifier, sensitive or insensitive), ``rank`` (of
        quasi-identifiers, 1 for the one to generalize first; else NULL), ``reason``, ``type``, ``rows``, ``distinct``
        (NULL counts as a value), ``null_share``, ``distinction`` (distinct values / rows), ``separation`` (share of
        pairs of rows with different values), ``approximate``, ``content`` (what the values look like: a mail address, a
        credit card, ..., or NULL) and ``content_share`` of those that do, ``minimal_sets`` (the minimal sets of
        columns, identifiers left out, that single out and have this column in them), ``hierarchy`` (the ready-made one
        that fits a quasi-identifier, and how many of its values it has; or NULL).

    Notes
    -----
    The form of the values decides first, then the column's name where it is recognized (in a dozen languages), then
    membership in an identifying set, then the figures. Patterns are compared with 2,000 random rows; card numbers and
    IBANs must have the right check digits, and names of persons are recognized by frequent given names. At most one
    column is an entity key: one that is called like the key of a person and has values that repeat. Quasi-identifiers
    are ranked: birth, sex and place first, which are known of everybody, then what else registers hold, then columns of
    which only the figures tell; each by its separation. Nothing here replaces a decision.

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

    require_int("suggest", "sample_size", sample_size, 2)
    require_int("suggest", "max_size", max_size, 0)
    with workspace(connection) as engine:
        relation = Source.of(data).open(engine)
        (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(relation.query, "s")))
        if not rows:
            raise DataError(f"The source {relation.name!r} has no rows: there is nothing to suggest.")
        seen = sampled(engine, relation, relation.names, int(rows), sample_size)
        figures = _figures(engine, relation, seen, int(rows), sample_size)
        contents = _contents(engine, relation, seen)
        lines = [
            _described(column.name, column.type, int(rows), figure, contents.get(j))
            | {"approximate": rows > sample_size}
            for j, (column, figure) in enumerate(zip(relation.columns, figures, strict=True))
        ]
        for j, row in enumerate(lines):
            row["hierarchy"] = _hierarchy(engine, seen, j, relation.columns[j].type, row)
        engine.drop(seen)
        sets: tuple[IdentifyingSet, ...] = ()
        combined = [f["column"] for f in lines if f["role"] != "identifier" and f["distinct"] > 1]
        if max_size and combined:
            few = min(sample_size, SAMPLE)
            sets = search(
                engine, relation, combined, by=by, threshold=threshold, max_size=max_size, sample_size=few
            ).sets
    for row in lines:
        mine = [list(s.columns) for s in sets if row["column"] in s.columns]
        row["minimal_sets"] = mine
        if mine and row["role"] == Role.INSENSITIVE.value:
            row["role"] = Role.QUASI_IDENTIFIER.value
            row["reason"] = "one of a set that singles people out"
    _choose_key(lines)
    _rank(lines)
    shares = [(name, pa.float64()) for name in ("null_share", "distinction", "separation")]
    first = [("column", pa.string()), ("role", pa.string()), ("rank", pa.int64()), ("reason", pa.string())]
    first.append(("hierarchy", pa.string()))
    counts = [("type", pa.string()), ("rows", pa.int64()), ("distinct", pa.int64())]
    more = [
        ("approximate", pa.bool_()),
        ("content", pa.string()),
        ("content_share", pa.float64()),
        ("minimal_sets", pa.list_(pa.list_(pa.string()))),
    ]
    return Suggestion(pa.Table.from_pylist(lines, schema=pa.schema([*first, *counts, *shares, *more])))


def _choose_key(lines: list[dict[str, Any]]) -> None:
    """Make one column the entity key: called like the key of a person, and with values in several rows."""

    def repeats(row: dict[str, Any]) -> bool:
        words = identifiers.words(row["column"])
        named = words & identifiers.KEY and (words & identifiers.PERSON or words <= identifiers.KEY)
        values = row["distinct"] - (row["null_share"] > 0)
        several = values < round(row["rows"] * (1 - row["null_share"]))
        known = row["content"] is None or row["content"] == "UUID"
        undecided = not words & (identifiers.QUASI | identifiers.SENSITIVE)
        many = values >= max(_FEWEST_PERSONS, row["rows"] / _MOST_ROWS)
        return bool(named) and several and known and undecided and many

    keys = [row for row in lines if repeats(row)]
    if not keys:
        return
    key = max(keys, key=lambda row: (bool(identifiers.words(row["column"]) & identifiers.PERSON), row["distinct"]))
    key["role"] = Role.ENTITY_KEY.value
    key["reason"] = f"called like the key of a person, who may have several rows: {_figure(key)}"


def _figure(row: Mapping[str, Any]) -> str:
    about = "about " if row["approximate"] else ""
    return f"{about}{row['distinct']:,} values in {row['rows']:,} rows"


def _rank(lines: list[dict[str, Any]]) -> None:
    """Number the quasi-identifiers, the one to generalize first with 1."""

    def order(row: dict[str, Any]) -> tuple[int, float]:
        words = identifiers.words(row["column"])
        known = 0 if words & identifiers.CORE else 1 if words & identifiers.QUASI else 2
        return known, -row["separation"]

    for row in lines:
        row["rank"] = None
    candidates = [row for row in lines if row["role"] == Role.QUASI_IDENTIFIER.value]
    for rank, row in enumerate(sorted(candidates, key=order), 1):
        row["rank"] = rank


_ROLE_OF = {
    "quasi_identifiers": Role.QUASI_IDENTIFIER,
    "within": Role.QUASI_IDENTIFIER,
    "sensitive": Role.SENSITIVE,
    "identifiers": Role.IDENTIFIER,
    "insensitive": Role.INSENSITIVE,
}


def propose(
    data: object,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    entity_key: str | None = None,
    connection: Any = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the roles of a request from those that are given and those that are suggested, and why.

    Quasi-identifiers are suggested only where none is given: the first few by their rank. Nothing is published that is
    neither given nor suggested as quasi-identifier or sensitive.

    Returns
    -------
    tuple
        The parameters of a request (``quasi_identifiers``, ``sensitive``, ``identifiers``, ``insensitive``,
        ``within``, ``entity_key``), and the rows of ``suggest`` in which ``role`` is what a column becomes: that of a
        column that is left out is ``unlisted``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"sex": list("ffmm"), "diagnosis": list("xxxy"), "room": [1, 2, 3, 3]})
    >>> roles, rows = propose(people, given={"quasi_identifiers": ["room"]})
    >>> roles
    {'quasi_identifiers': ['room'], 'sensitive': ['diagnosis']}
    >>> [(row["column"], row["role"]) for row in rows]
    [('sex', 'unlisted'), ('diagnosis', 'sensitive'), ('room', 'quasi_identifier')]
    """
    asked = {role: list(columns) for role, columns in (given or {}).items() if columns}
    rows = suggest(data, connection=connection, max_size=2).to_pylist()
    roles: dict[str, Any] = {**asked, **({"entity_key": entity_key} if entity_key is not None else {})}
    taken = {name.lower(): _ROLE_OF[role] for role, columns in asked.items() for name in columns}
    if entity_key is not None:
        taken[entity_key.lower()] = Role.ENTITY_KEY
    some = {_ROLE_OF[role] for role in asked}
    for row in sorted(rows, key=lambda row: row["rank"] or 0):
        role, name = Role(row["role"]), row["column"]
        if name.lower() in taken:
            row["role"], row["reason"] = taken[name.lower()].value, "given"
        elif role is Role.ENTITY_KEY and entity_key is None:
            roles["entity_key"] = name
        elif role is Role.SENSITIVE and role not in some:
            roles.setdefault("sensitive", []).append(name)
        elif role is Role.QUASI_IDENTIFIER and role not in some and row["rank"] <= FEW:
            roles.setdefault("quasi_identifiers", []).append(name)
        elif role not in (Role.IDENTIFIER, Role.ENTITY_KEY):
            row["role"] = Role.UNLISTED.value
    return roles, rows


def _described(
    name: str, type_name: str, rows: int, figure: tuple[int, int, int, int, int], content: tuple[str, float] | None
) -> dict[str, Any]:
    distinct, nulls, alike, seen, all_distinct = figure
    pairs, kind = seen * (seen - 1), ColumnType.parse(type_name)
    separation = 1 - alike / pairs if pairs else 0.0
    role, reason = _role(name, kind, distinct, seen - nulls, nulls > 0, separation, content)
    return {
        "column": name,
        "type": kind.name,
        "rows": rows,
        "distinct": all_distinct,
        "distinction": all_distinct / rows,
        "separation": separation,
        "null_share": nulls / seen,
        "role": role.value,
        "reason": reason,
        "content": content[0] if content else None,
        "content_share": content[1] if content else None,
    }


def _hierarchy(engine: Engine, seen: str, place: int, type_name: str, row: Mapping[str, Any]) -> str | None:
    """Return which ready-made hierarchy fits a quasi-identifier, in words."""
    if row["role"] != Role.QUASI_IDENTIFIER.value or row["distinct"] > MOST:
        return None
    values = exp.select(cast(col(f"c_{place}"), "VARCHAR")).distinct().from_(table(seen)).limit(MOST)
    best = match(row["column"], type_name, [value for (value,) in engine.rows(values)])
    return None if best is None else best.text


def _contents(engine: Engine, relation: Relation, seen: str) -> Mapping[int, tuple[str, float]]:
    """Return the form of the values of columns, by the number of the column; only shares leave the database."""
    types = [ColumnType.parse(c.type) for c in relation.columns]
    # Of the patterns, numbers can only match that of card numbers.
    read = [j for j, t in enumerate(types) if t.family in {"text", "integer"} or t.name == "ENUM"]
    if not read:
        return {}
    few = sample_of(exp.select(*(col(f"c_{j}") for j in read)).from_(table(seen)), _READ)
    places = call("unnest", exp.Array(expressions=[number(j) for j in read]))
    values = call("unnest", exp.Array(expressions=[cast(col(f"c_{j}"), "VARCHAR") for j in read]))
    cells = exp.select(named(places, "j"), named(values, "value")).from_(subquery(few, "f"))
    kinds = identifiers.matches(col("value"))
    shares = [
        named(call("avg", exp.case().when(condition, number(1)).else_(number(0))), f"k_{i}")
        for i, condition in enumerate(kinds.values())
    ]
    present = exp.Not(this=exp.Is(this=col("value"), expression=exp.null()))
    query = exp.select(col("j"), *shares).from_(subquery(cells, "v")).where(present).group_by(col("j"))
    contents = {}
    for j, *row in engine.rows(query):
        fitting = dict(zip(kinds, row, strict=True))
        if types[j].family == "integer":
            fitting = {"credit card": fitting["credit card"]}
        recognized = identifiers.recognized(fitting)
        if recognized is not None:
            contents[int(j)] = recognized
    return contents


def _figures(
    engine: Engine, relation: Relation, seen: str, rows: int, sample_size: int
) -> list[tuple[int, int, int, int, int]]:
    """Return (distinct, nulls, ordered pairs of rows alike, rows seen, distinct in all rows) of each column.

    The source is read once (and once more for the estimates where it is sampled), whatever the number of columns.
    """
    figures = []
    for j in range(len(relation.columns)):
        count = named(exp.Count(this=exp.Star()), "n")
        grouped = exp.select(named(col(f"c_{j}"), "value"), count).from_(table(seen)).group_by(col(f"c_{j}"))
        missing = exp.Is(this=col("value"), expression=exp.null())
        n = cast(col("n"), "HUGEINT")
        alike = exp.Mul(this=n, expression=exp.paren(exp.Sub(this=n.copy(), expression=number(1))))
        counted = exp.select(
            named(exp.Count(this=exp.Star()), "distinct_values"),
            named(exp.Sum(this=exp.case().when(missing, col("n")).else_(number(0))), "nulls"),
            named(exp.Sum(this=alike), "alike"),
            named(exp.Sum(this=col("n")), "seen"),
        ).from_(subquery(grouped, "g"))
        figures.append(tuple(int(v) for v in engine.row(counted)))
    estimates = [distinct for distinct, *_ in figures]
    if rows > sample_size:
        values = [countable(c.name, c.type, relation.collated) for c in relation.columns]
        query = exp.select(*(approx_distinct(v) for v in values))
        whole = engine.row(query.from_(subquery(relation.query, "s")))
        estimates = [min(max(int(e), lower), rows) for e, lower in zip(whole, estimates, strict=True)]
    return [(d, nulls, alike, n, e) for (d, nulls, alike, n), e in zip(figures, estimates, strict=True)]


def _role(
    name: str,
    kind: ColumnType,
    distinct: int,
    present: int,
    nulls: bool,
    separation: float,
    content: tuple[str, float] | None,
) -> tuple[Role, str]:
    words = identifiers.words(name)
    quasi, sensitive = words & identifiers.QUASI, words & identifiers.SENSITIVE
    values = distinct - nulls
    share = values / present if present else 0.0
    # A city may be called like a person.
    if content is not None and not (content[0] == "person name" and quasi):
        return Role.IDENTIFIER, f"{content[1]:.0%} look like a {content[0]}"
    if values <= 1:
        return Role.INSENSITIVE, "one value at most"
    if words & identifiers.IDENTIFIER and not quasi:
        return Role.IDENTIFIER, "called like what names a person"
    if words & identifiers.KEY and share > _MANY_VALUES and not quasi | sensitive:
        return Role.IDENTIFIER, f"called like a key, {share:.0%} distinct"
    if sensitive:
        return Role.SENSITIVE, "called like health, money or belief"
    if words & identifiers.CORE:
        return Role.QUASI_IDENTIFIER, "birth, sex or place: known of everybody"
    if quasi:
        return Role.QUASI_IDENTIFIER, "called like what registers hold, too"
    measured = kind.family in {"float", "decimal", "date", "timestamp"}
    if share >= _NEARLY_UNIQUE and not measured:
        return Role.IDENTIFIER, f"{share:.0%} distinct"
    if separation >= _HARDLY_SEPARATES:
        return Role.QUASI_IDENTIFIER, f"{separation:.0%} of the pairs of rows differ"
    return Role.INSENSITIVE, f"only {separation:.1%} of the pairs of rows differ"


__all__ = ["FEW", "LIMIT", "propose", "suggest"]
