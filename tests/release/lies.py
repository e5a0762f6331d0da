"""Wrong recodings: in the file alone, or in the file and in everything that the recoding says of its rows."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

import duckanon
from duckanon.algorithms import Datafly
from duckanon.algorithms.base import Problem
from duckanon.algorithms.full_domain.nodes import Node, evaluate
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import cast, col, number, table, text
from duckanon.plan.plan import Plan
from duckanon.plan.request import Request
from duckanon.recoding.full_domain import FullDomain, Local
from duckanon.recoding.regions import Regions
from duckanon.release.pipeline import Tampering, run

ROWS = 150


def people(rows: int = ROWS, seed: int = 3) -> pa.Table:
    """A table with a column of each kind; every row is another one."""
    draw = random.Random(seed)
    return pa.table(
        {
            "id": pa.array([10_000 + 7 * i for i in range(rows)], pa.int64()),
            "age": pa.array([draw.randrange(18, 90) for _ in range(rows)], pa.int32()),
            "born": pa.array([draw.randrange(0, 15_000) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "zip": [f"{draw.choice([10, 23, 57])}{draw.randrange(100, 130)}" for _ in range(rows)],
            "sex": [draw.choice(["f", "m", "m", None]) for _ in range(rows)],
            "score": [round(draw.random() * 100 + 1, 2) for _ in range(rows)],
            "ill": [f"i{draw.randrange(12)}" for _ in range(rows)],
            "cost": [draw.random() * 1000 for _ in range(rows)],
            "days": pa.array([draw.randrange(40) for _ in range(rows)], pa.int64()),
        }
    )


BASE: dict[str, Any] = {
    "quasi_identifiers": ["age", "born", "zip", "sex"],
    "sensitive": ["ill"],
    "insensitive": ["cost", "days"],
    "identifiers": ["id"],
    "k": 4,
}
CASES: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "cut": {"bounds": "cut"},
    "tight": {"bounds": "tight"},
    "relaxed": {"algorithm": "mondrian(relaxed=true)"},
    **{
        kind: {"output": kind}
        for kind in ("bounds", "struct", "midpoint", "mean", "geometric_mean", "median", "mode", "medoid", "lca", "set")
    },
    "tight sets": {"output": "set", "bounds": "tight"},
    "proportional": {"output": "proportional"},
    "within": {"within": ["sex"], "suppression_limit": 0.5},
    "persons": {"entity_key": "id", "identifiers": []},
    "mdav": {"algorithm": "mdav", "output": "mean"},
    "tdg": {"algorithm": "tdg"},
    "k_member": {"algorithm": "k_member"},
    "greedy": {"algorithm": "greedy"},
    "datafly": {"algorithm": "datafly", "suppression_limit": 0.3},
    "optimal": {"algorithm": "optimal", "suppression_limit": 0.1},
    "shares": {"algorithm": "datafly", "output": "proportional", "suppression_limit": 0.3},
    "iterative": {"algorithm": "datafly", "iterative": True, "suppression_limit": 0.1},
    "dealt": {"algorithm": "datafly_shuffled", "suppression_limit": 0.3},
    "persons on levels": {"algorithm": "datafly", "entity_key": "id", "identifiers": [], "suppression_limit": 0.3},
    "population": {"algorithm": "datafly", "models": ["k_map(4)"], "population": people(400, 5), "k": None},
    "probabilistic": {
        "algorithm": "probabilistic",
        "quasi_identifiers": ["age", "zip", "sex", "days"],
        "insensitive": ["cost"],
    },
}


def released(
    case: str, tampering: Tampering | None = None, data: pa.Table | None = None, **more: Any
) -> duckanon.Release:
    """Return the release of a case; where it is refused, the engine is closed."""
    given = BASE | CASES[case] | more
    engine = open_engine(threads=1)
    try:
        return run(
            Plan.resolve(Request(data=people() if data is None else data, **given), engine), engine, tampering=tampering
        )
    except BaseException:
        engine.close()
        raise


# In the file


def _rewritten(change: Callable[[pa.Table, random.Random], pa.Table], **how: Any) -> Tampering:
    def written(path: Path) -> None:
        changed = change(pq.read_table(path), random.Random(5))
        pq.write_table(changed, path, **{"store_schema": False, **how})

    return Tampering(file=written)


def _shown(table: pa.Table) -> list[str]:
    """The columns that are no passed-through ones."""
    return [c for c in table.column_names if c not in ("ill", "cost", "days")]


def _set(table: pa.Table, name: str, values: Any) -> pa.Table:
    own = values if isinstance(values, pa.Array) else pa.array(values, table.schema.field(name).type)
    return table.set_column(table.column_names.index(name), name, own)


def _varied(table: pa.Table) -> str:
    """A published quasi-identifier with several cells."""
    return max(_shown(table), key=lambda c: len({str(v) for v in table.column(c).to_pylist()}))


def _exchanged(table: pa.Table, name: str) -> pa.Table:
    values = table.column(name).to_pylist()
    other = next(i for i, v in enumerate(values) if str(v) != str(values[0]))
    values[0], values[other] = values[other], values[0]
    return _set(table, name, values)


def cells_exchanged(table: pa.Table, draw: random.Random) -> pa.Table:
    return _exchanged(table, _varied(table))


def cells_shuffled(table: pa.Table, draw: random.Random) -> pa.Table:
    values = table.column(_varied(table)).to_pylist()
    draw.shuffle(values)
    return _set(table, _varied(table), values)


def cells_rotated(table: pa.Table, draw: random.Random) -> pa.Table:
    values = table.column(_varied(table)).to_pylist()
    return _set(table, _varied(table), values[1:] + values[:1])


def cells_invented(table: pa.Table, draw: random.Random) -> pa.Table:
    name = _varied(table)
    kinds = {str(v): v for v in table.column(name).to_pylist()}
    first = next(iter(kinds))
    new = "[0, 5000]" if isinstance(kinds[first], str) else next(v for k, v in kinds.items() if k != first)
    return _set(table, name, [new if str(v) == first else v for v in table.column(name).to_pylist()])


def cells_missing(table: pa.Table, draw: random.Random) -> pa.Table:
    name = _varied(table)
    first = next(str(v) for v in table.column(name).to_pylist() if v is not None)
    return _set(table, name, [None if str(v) == first else v for v in table.column(name).to_pylist()])


def sensitive_exchanged(table: pa.Table, draw: random.Random) -> pa.Table:
    return _exchanged(table, "ill")


def sensitive_shuffled(table: pa.Table, draw: random.Random) -> pa.Table:
    values = table.column("ill").to_pylist()
    draw.shuffle(values)
    return _set(table, "ill", values)


def sensitive_invented(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "ill", ["i99", *table.column("ill").to_pylist()[1:]])


def sensitive_missing(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "ill", [None, *table.column("ill").to_pylist()[1:]])


def sensitive_with_a_space(table: pa.Table, draw: random.Random) -> pa.Table:
    first, *rest = table.column("ill").to_pylist()
    return _set(table, "ill", [f"{first} ", *rest])


def identifier_passed_through(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "cost", [float(10_000 + 7 * i) for i in range(table.num_rows)])


def identifier_in_the_last_digits(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "cost", [v + i * 1e-10 for i, v in enumerate(table.column("cost").to_pylist())])


def numbers_rounded(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "cost", [round(v, 3) for v in table.column("cost").to_pylist()])


def rows_dropped_and_doubled(table: pa.Table, draw: random.Random) -> pa.Table:
    keep = list(range(5, table.num_rows)) + list(range(5, 10))
    return table.take(keep)


def a_row_dropped_and_one_of_its_class_doubled(table: pa.Table, draw: random.Random) -> pa.Table:
    names = _shown(table)
    rows = [tuple(str(table.column(n)[i].as_py()) for n in names) for i in range(table.num_rows)]
    second = next((i for i, r in enumerate(rows) if i and r == rows[0]), 1)
    return table.take([second, *range(1, table.num_rows)])


def rows_doubled(table: pa.Table, draw: random.Random) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


def a_type_widened(table: pa.Table, draw: random.Random) -> pa.Table:
    name = "days" if "days" in table.column_names else "cost"
    return _set(table, name, table.column(name).cast(pa.int32() if name == "days" else pa.float32()).combine_chunks())


def a_number_as_text(table: pa.Table, draw: random.Random) -> pa.Table:
    return _set(table, "cost", pa.array([repr(v) for v in table.column("cost").to_pylist()]))


def sorted_by_a_column(table: pa.Table, draw: random.Random) -> pa.Table:
    return table.sort_by("cost")


def in_the_order_of_arrival(table: pa.Table, draw: random.Random) -> pa.Table:
    return table.sort_by([("ill", "descending")])


def sorted_class_by_class(table: pa.Table, draw: random.Random) -> pa.Table:
    name = _varied(table)
    keys = [str(v) for v in table.column(name).to_pylist()]
    return table.take(sorted(range(len(keys)), key=keys.__getitem__))


def metadata_added(table: pa.Table, draw: random.Random) -> pa.Table:
    return table.replace_schema_metadata({"source": "/home/jane/people.csv"})


def a_column_added(table: pa.Table, draw: random.Random) -> pa.Table:
    return table.append_column("id", pa.array(range(table.num_rows)))


def a_column_renamed(table: pa.Table, draw: random.Random) -> pa.Table:
    return table.rename_columns([*table.column_names[:-1], "other"])


def columns_exchanged(table: pa.Table, draw: random.Random) -> pa.Table:
    names = table.column_names
    names[-1], names[-2] = names[-2], names[-1]
    return table.rename_columns(names)


def texts_that_no_row_has(table: pa.Table, draw: random.Random) -> pa.Table:
    found = table.column("ill").combine_chunks().dictionary_encode()
    wider = pa.concat_arrays([found.dictionary, pa.array(["i98", "i99"])])
    return table.set_column(
        table.column_names.index("ill"), "ill", pa.DictionaryArray.from_arrays(found.indices, wider)
    )


IN_FILE = [
    cells_exchanged,
    cells_shuffled,
    cells_rotated,
    cells_invented,
    cells_missing,
    sensitive_exchanged,
    sensitive_shuffled,
    sensitive_invented,
    sensitive_missing,
    sensitive_with_a_space,
    identifier_passed_through,
    identifier_in_the_last_digits,
    numbers_rounded,
    rows_dropped_and_doubled,
    a_row_dropped_and_one_of_its_class_doubled,
    rows_doubled,
    a_type_widened,
    a_number_as_text,
    sorted_by_a_column,
    sorted_class_by_class,
    in_the_order_of_arrival,
    metadata_added,
    a_column_added,
    a_column_renamed,
    columns_exchanged,
    texts_that_no_row_has,
]


def in_file(lie: Callable[[pa.Table, random.Random], pa.Table]) -> Tampering:
    """Return what changes a file."""
    how = {"store_schema": True} if lie is metadata_added else {}
    return _rewritten(lie, **how)


# In all that is said: file and rows side by side agree


def recoder_replaced(change: Callable[[Any], Any]) -> Tampering:
    return Tampering(recoded=lambda recoded: dataclasses.replace(recoded, recoder=change(recoded.recoder)))


def liar(recoder: Any, **methods: Any) -> Any:
    """Return a recoder that does all as another one does, but for some methods."""
    lying = object.__new__(type("Lying", (type(recoder),), methods))
    lying.__dict__.update(recoder.__dict__)
    return lying


def passing(change: Callable[[str, exp.Expr], exp.Expr]) -> Tampering:
    """Pass other values through than those of the source, and say that they are the source's."""

    def recoder(honest: Any) -> Any:
        kind = type(honest)

        def changed(kept: Any) -> Any:
            return [(name, change(name, e)) for name, e in kept]

        def write(self: Any, kept: Any, *further: Any) -> bool:
            return False

        return liar(
            honest,
            rows=lambda self, kept, keyed=False: kind.rows(self, changed(kept), keyed),
            beside=lambda self, kept, person: kind.beside(self, changed(kept), person),
            write=write,
        )

    return recoder_replaced(recoder)


def texts_by_number(change: Callable[[exp.Query], exp.Query]) -> Tampering:
    """Say that other texts stand under the numbers of texts that are stored as enumerations."""

    def recoder(honest: Any) -> Any:
        kind = type(honest)

        def beside(self: Any, kept: Any, person: Any) -> Any:
            own = kind.beside(self, kept, person)
            lookups = [
                dataclasses.replace(one, query=change(one.query)) if one.key.startswith("u_") else one
                for one in own.lookups
            ]
            assert any(one.key.startswith("u_") for one in lookups), "no text is stored as an enumeration"
            return dataclasses.replace(own, lookups=tuple(lookups))

        return liar(honest, beside=beside)

    return recoder_replaced(recoder)


def only(name: str, change: Callable[[exp.Expr], exp.Expr]) -> Callable[[str, exp.Expr], exp.Expr]:
    return lambda own, e: change(e) if own == name else e


PASSED: dict[str, Callable[[str, exp.Expr], exp.Expr]] = {
    "another column": only("cost", lambda e: cast(col("days"), "DOUBLE")),
    "a constant": only("ill", lambda e: text("i1")),
    "one value for another": only(
        "ill", lambda e: exp.case().when(exp.EQ(this=e.copy(), expression=text("i3")), text("i4")).else_(e)
    ),
    "nothing": only("ill", lambda e: exp.func("NULLIF", e, text("i3"))),
    "a little more": only("cost", lambda e: exp.Add(this=e, expression=number(1e-7))),
    "capitals": only("ill", lambda e: exp.Upper(this=e)),
}


def changed_table(honest: Any, name: str, change: str) -> str:
    """Create a table like another one with one column changed: with its values of other rows, or with one value."""
    engine = honest.engine
    created = engine.fresh("lie")
    engine.run(
        exp.maybe_parse(f"CREATE TEMP TABLE {created} AS SELECT * REPLACE ({change}) FROM {name}", dialect="duckdb")
    )
    return created


def published(change: str) -> Tampering:
    """Publish other cells of classes than are right, in the file and side by side; ``{q}`` is the column."""

    def recoder(honest: Any) -> Any:
        engine = honest.engine
        if isinstance(honest, Regions):
            name, column = honest.published.table, _widest(engine, honest.published.table)
            lie = changed_table(honest, name, change.format(q=column) + f" AS {column}")
            return liar_with(honest, published=dataclasses.replace(honest.published, table=lie))
        if isinstance(honest, Local):
            name = honest.relations.table("published")
            column = _widest(engine, name)
            lie = changed_table(honest, name, change.format(q=column) + f" AS {column}")
            found = liar(honest)
            found.cells = [dataclasses.replace(c, enum=None) for c in honest.cells]
            found.relations.add("published", lie)
            return found
        assert isinstance(honest, FullDomain)
        cells = []
        for cell in honest.cells:
            if cell.shares is not None:
                cells.append(
                    dataclasses.replace(cell, shares=changed_table(honest, cell.shares, change.format(q="q") + " AS q"))
                )
            elif not cell.constant and not cell.typed:
                lie = changed_table(honest, cell.labels, change.format(q="label") + " AS label")
                cells.append(dataclasses.replace(cell, labels=lie, enum=None))
            else:
                cells.append(cell)
        return liar_with(honest, cells=cells)

    return recoder_replaced(recoder)


def liar_with(honest: Any, **values: Any) -> Any:
    found = liar(honest)
    found.__dict__.update(values)
    return found


def _widest(engine: Any, name: str) -> str:
    """The column of classes that has most values."""
    found = engine.arrow(exp.select("*").from_(table(name)))
    names = [n for n in found.column_names if n.startswith("q_")]
    return max(names, key=lambda n: len({str(v) for v in found.column(n).to_pylist()}))


CELLS = {
    "of the next class": "coalesce(lead({q}) OVER (ORDER BY rowid), first({q}) OVER (ORDER BY rowid))",
    "of the class before": "coalesce(lag({q}) OVER (ORDER BY rowid), {q})",
    # The largest text or value: the label of a whole column, which is true of all rows, comes before it.
    "of one class for all": "max({q}) OVER ()",
    "of a class at random": "last_value({q}) OVER (ORDER BY hash(rowid) ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "nothing": "CASE WHEN rowid % 2 = 0 THEN {q} END",
}


def classes_exchanged() -> Tampering:
    """Say of the rows of two classes that each is in the other one."""

    def recoder(honest: Any) -> Any:
        division = honest.division
        lie = changed_table(
            honest, division.ids, "CASE class_id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE class_id END AS class_id"
        )
        return liar_with(honest, division=dataclasses.replace(division, ids=lie))

    return recoder_replaced(recoder)


def values_exchanged() -> Tampering:
    """Say that the source has other values than it has, so that cells seem to stand for them."""

    def recoder(honest: Any) -> Any:
        cells = []
        for cell in honest.cells:
            change = f"coalesce(lead(value) OVER (ORDER BY code), (SELECT min(value) FROM {cell.values})) AS value"
            lie = changed_table(honest, cell.values, change)
            cells.append(dataclasses.replace(cell, values=lie))
        return liar_with(honest, cells=cells)

    return recoder_replaced(recoder)


# Of a search by levels, and on the way from its classes to the file


@dataclasses.dataclass(frozen=True)
class Lie:
    """What differs from the truth: the node of the search, the recoding, or the file."""

    node: Callable[[Node], dict[str, Any]] = lambda node: {}
    levels: tuple[int, ...] | None = None
    recoder: Callable[[Any], Any] = lambda honest: honest
    written: Callable[[pa.Table], pa.Table] | None = None


def release_with(lie: Lie, data: pa.Table, **options: Any) -> duckanon.Release:
    """Return a release by Datafly with a lie in it; where it is refused, the engine is closed."""

    class Telling(Datafly):
        def search(self, problem: Problem) -> Node:
            node = super().search(problem) if lie.levels is None else evaluate(problem, lie.levels)
            return dataclasses.replace(node, **lie.node(node))

    def written(path: Path) -> None:
        if lie.written is not None:
            pq.write_table(lie.written(pq.read_table(path)), path)

    request = Request(data=data, algorithm=Telling(), **options)
    engine = open_engine(threads=1)
    try:
        tampering = dataclasses.replace(recoder_replaced(lie.recoder), file=written)
        return run(Plan.resolve(request, engine), engine, tampering=tampering)
    except BaseException:
        engine.close()
        raise


def kept_where(condition: str) -> Callable[[Any], Any]:
    """Keep other classes than those that are large enough."""

    def recoder(honest: Any) -> Any:
        own = honest.relations.table("class_map")
        honest.relations.add("class_map", changed_table(honest, own, f"{condition} AS kept"))
        return honest

    return recoder


def rows_of_all_classes(honest: Any) -> Any:
    """Publish the rows of all classes, and say of the others that they are suppressed."""

    def rows(self: Any, kept: Any, keyed: bool = False) -> exp.Select:
        query = type(honest).rows(self, kept, keyed)
        return query.transform(lambda n: exp.true() if isinstance(n, exp.Column) and n.name == "kept" else n)

    return liar(honest, rows=rows)


def publishing(change: Callable[..., exp.Select]) -> Callable[[Any], Any]:
    """Change the statement of the file: ``change`` gets the honest way to write it, the rows and the columns."""

    def recoder(honest: Any) -> Any:
        def released(self: Any, rows: exp.Query, columns: Any) -> exp.Select:
            return change(lambda *given: type(honest).released(self, *given), rows, columns)

        return liar(honest, released=released)

    return recoder


def exchanged(names: dict[str, str]) -> Callable[[Any], Any]:
    """Publish other columns of the rows than those that are meant."""
    return publishing(lambda honest, rows, columns: honest(rows, [(n, names.get(i, i)) for n, i in columns]))


def dictionary(change: str) -> Callable[[Any], Any]:
    """Look up rows in a dictionary other than the one that was counted with; ``{table}`` is that one."""

    def recoder(honest: Any) -> Any:
        cells = []
        for cell in honest.cells:
            name = honest.engine.fresh("lie")
            query = change.format(table=cell.values, size=cell.size)
            honest.engine.create(name, exp.maybe_parse(query, dialect="duckdb"))
            cells.append(dataclasses.replace(cell, values=name))
        return liar_with(honest, cells=cells)

    return recoder


__all__ = [
    "CASES",
    "CELLS",
    "IN_FILE",
    "PASSED",
    "ROWS",
    "Lie",
    "changed_table",
    "classes_exchanged",
    "dictionary",
    "exchanged",
    "in_file",
    "kept_where",
    "liar",
    "liar_with",
    "passing",
    "people",
    "published",
    "publishing",
    "recoder_replaced",
    "release_with",
    "released",
    "rows_of_all_classes",
    "texts_by_number",
    "values_exchanged",
]
