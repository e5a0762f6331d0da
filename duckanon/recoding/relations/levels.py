"""The classes of a release, full-domain or in several passes, and everything that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.algorithms.full_domain.nodes import persons
from duckanon.encoding.counting import count_domain
from duckanon.engine.sql.classes import class_labels, class_members, class_rows, class_values, level_cells, level_covers
from duckanon.engine.sql.recode import Cell, class_table, coded_rows, pack, rows_in_classes
from duckanon.engine.sql.relations import call, cast, col, ident, named, number, qualified, subquery, table, union_all
from duckanon.plan.roles import Role
from duckanon.recoding.relations.pair_counts import Passed, pair_counts, source_rows
from duckanon.recoding.relations.relations import Described, Relations, describe

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.algorithms.full_domain.local import Pass
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan


def class_relations(
    engine: Engine,
    counted: Frequency,
    node: Node,
    cells: Sequence[Cell],
    plan: Plan,
    path: Path | None = None,
) -> Relations:
    """Return the relations of a full-domain release, whose rows are to be written to ``path``, if they are."""
    names = {key: engine.fresh(key) for key in ("class_map", "classes")}
    engine.create(names["class_map"], class_table(node.grouped.copy(), cells))
    engine.create(names["classes"], _classes(names["class_map"]))
    node.drop(engine)
    relations = Relations(engine, {**names, "frequency": counted.table})
    attributes = [_described(plan, counted, j, [cell]) for j, cell in enumerate(cells)]
    describe(
        relations,
        attributes,
        lambda: class_labels(names["class_map"], cells),
        lambda: class_members(counted.table, names["class_map"], cells),
    )
    if path is not None:
        _describe_sensitive(relations, attributes, plan, cells, path)
    else:
        _describe_unwritten(relations, attributes, plan, cells)
    return relations


def local_relations(
    engine: Engine,
    counted: Frequency,
    passes: Sequence[Pass],
    by_pass: Sequence[Sequence[Cell]],
    cells: Sequence[Cell],
    plan: Plan,
    path: Path,
) -> Relations:
    """Return the relations of a release in several passes; classes of two passes that look alike are one.

    Besides those of every release: ``label_map(pass, part, class_id, n, l_0, ..., g_0, ...)`` has the parts that each
    pass gives to a class, ``tuple_map(w_0, ..., class_id, kept)`` the class of every combination of values.
    """
    width = len(cells)
    labels, members = [], []
    names = {key: engine.fresh(key) for key in ("label_map", "members", "class_map", "classes", "tuple_map")}
    for number_of, (one, own) in enumerate(zip(passes, by_pass, strict=True)):
        part = engine.fresh("class_map")
        engine.create(part, class_table(one.node.grouped.copy(), own))
        one.node.drop(engine)
        tag = named(cast(number(number_of), "INTEGER"), "pass")
        codes = [named(col(f"g_{j}", "c"), f"g_{j}") for j in range(width)]
        labels.append(exp.select(tag, "*").from_(subquery(class_labels(part, own).select(*codes), "l")))
        inside = class_members(one.problem.frequency.table, part, own)
        chosen = exp.select(tag.copy(), exp.Column(this=exp.Star(), table=ident("m")), col("kept", "k"))
        on = exp.EQ(this=col("class_id", "k"), expression=col("class_id", "m"))
        chosen = chosen.from_(subquery(inside, "m")).join(table(part, "k"), on=on)
        # What a pass does not keep is in the next one; of the last it is suppressed.
        members.append(chosen if number_of == len(passes) - 1 else chosen.where(col("kept", "k")))
    texts = [col(f"l_{j}") for j in range(width)]
    order = exp.Order(expressions=[exp.Ordered(this=t, desc=False, nulls_first=False) for t in texts])
    alike = exp.Window(this=call("dense_rank"), order=order)
    columns = [col("pass"), named(col("class_id"), "part"), named(cast(alike, "BIGINT"), "class_id"), col("n")]
    rest = [*(t.copy() for t in texts), *(col(f"g_{j}") for j in range(width))]
    engine.create(names["label_map"], exp.select(*columns, *rest).from_(subquery(union_all(labels), "u")))
    engine.create(names["members"], _numbered_members(names["label_map"], members, width))
    engine.create(names["class_map"], _class_map(engine, names["members"], passes, width))
    engine.create(names["classes"], _classes(names["class_map"]))
    words = pack([col(f"c_{j}") for j in range(width)], [c.dictionary.size for c in counted.coded])
    packed = [named(word, f"w_{i}") for i, word in enumerate(words)]
    engine.create(
        names["tuple_map"], exp.select(*packed, col("class_id"), col("kept")).distinct().from_(table(names["members"]))
    )
    relations = Relations(engine, {**names, "frequency": counted.table})
    known = exp.select(col("class_id"), named(cast(exp.Sum(this=col("n")), "BIGINT"), "n"), *(t.copy() for t in texts))
    inside = exp.select(col("class_id"), *(col(f"c_{j}") for j in range(width)), col("n")).from_(
        table(names["members"])
    )
    attributes = [_described(plan, counted, j, [own[j] for own in by_pass]) for j in range(width)]
    describe(
        relations,
        attributes,
        lambda: known.from_(table(names["label_map"])).group_by(col("class_id"), *(t.copy() for t in texts)),
        lambda: inside,
    )
    _describe_sensitive(relations, attributes, plan, cells, path)
    return relations


def _classes(class_map: str) -> exp.Query:
    suppressed = named(exp.Not(this=col("kept")), "suppressed")
    return exp.select(col("class_id"), col("n"), suppressed).from_(table(class_map))


def _numbered_members(label_map: str, members: Sequence[exp.Query], width: int) -> exp.Query:
    """Return ``(class_id, c_0, ..., n, kept)``; suppressed classes get ids above all others."""
    top = exp.select(exp.func("COALESCE", exp.Max(this=col("class_id")), number(0))).from_(table(label_map))
    suppressed = exp.Add(this=exp.paren(top.subquery()), expression=col("class_id", "m"))
    on = exp.and_(
        exp.EQ(this=col("pass", "l"), expression=col("pass", "m")),
        exp.EQ(this=col("part", "l"), expression=col("class_id", "m")),
        col("kept", "m"),
    )
    found = exp.func("COALESCE", col("class_id", "l"), suppressed)
    codes = [col(f"c_{j}", "m") for j in range(width)]
    query = exp.select(named(cast(found, "BIGINT"), "class_id"), *codes, col("n", "m"), col("kept", "m"))
    return query.from_(subquery(union_all(list(members)), "m")).join(table(label_map, "l"), on=on, join_type="left")


def _class_map(engine: Engine, members: str, passes: Sequence[Pass], width: int) -> exp.Query:
    """Return ``(class_id, n, units, kept)``; persons are counted over all passes that a class comes from."""
    total = named(cast(exp.Sum(this=col("n")), "BIGINT"), "n")
    kept = named(call("bool_or", col("kept")), "kept")
    rows = exp.select(col("class_id"), total, kept).from_(table(members)).group_by(col("class_id"))
    if not passes[0].problem.frequency.entity:
        columns = [col("class_id"), col("n"), named(col("n"), "units"), col("kept")]
        return exp.select(*columns).from_(subquery(rows, "r"))
    # Tuples of later passes are among those of the first, each person beside them.
    base = passes[0].problem.frequency.table
    on = exp.and_(*(exp.EQ(this=col(f"c_{j}", "m"), expression=col(f"c_{j}", "f")) for j in range(width)))
    people = exp.select(col("class_id", "m"), named(persons(col("entity", "f")), "units"))
    people = people.from_(table(members, "m")).join(table(base, "f"), on=on).group_by(col("class_id", "m"))
    same_class = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "r"))
    columns = [col("class_id", "r"), col("n", "r"), col("units", "p"), col("kept", "r")]
    return exp.select(*columns).from_(subquery(rows, "r")).join(subquery(people, "p"), on=same_class)


def _described(plan: Plan, counted: Frequency, column: int, own: Sequence[Cell]) -> Described:
    """Describe a quasi-identifier that is published on the levels of some cells."""
    attribute, coded = plan.roles.quasi_identifiers[column], counted.coded[column]
    levels = {c.level: c for c in own}
    cells: exp.Query = level_cells(own[0])
    covers = level_covers(own[0], coded.domain_size)
    if len(levels) > 1:
        # A text that two levels share stands on the lower.
        every = union_all([level_cells(c) for c in levels.values()])
        lowest = [named(exp.Min(this=col("level")), "level")]
        lowest += [named(call("arg_min", col(c), col("level")), c) for c in ("leaves", "lo", "hi")]
        cells = exp.select(col("cell"), *lowest).from_(subquery(every, "e")).group_by(col("cell"))
        under = union_all([level_covers(c, coded.domain_size) for c in levels.values()])
        covers = exp.select(col("cell"), col("code")).distinct().from_(subquery(under, "u"))
    weight = plan.search_options.weights.get(attribute.name, 1.0)
    values = coded.dictionary.table
    described = (attribute.name, attribute.type, values, coded.height, coded.domain_size, cells, covers, weight)
    return Described(*described, labels=True)


def _describe_sensitive(
    relations: Relations, attributes: Sequence[Described], plan: Plan, cells: Sequence[Cell], path: Path
) -> None:
    sensitive = [a for a in plan.roles.published if a.role is Role.SENSITIVE]
    engine, found, passed = relations.engine, [a.name for a in sensitive], None
    if sensitive:

        def written() -> exp.Query:
            return engine.parquet([path])

        relations.recipes["class_values"] = lambda: class_values(relations["labelled"], written(), cells, found)
        original = {a.name: plan.expression(a) for a in sensitive}
        relations.recipes["domain_values"] = lambda: count_domain(engine, plan.relation.query, original)
        rows_of = lambda: class_rows(relations["labelled"], written(), cells, found)  # noqa: E731
        passed = Passed([(a.name, a.type) for a in sensitive], partial(source_rows, plan, sensitive), rows_of)
    if len(attributes) + len(sensitive) > 1:
        relations.recipes["pairs"] = lambda: pair_counts(relations, attributes, passed)


def _describe_unwritten(
    relations: Relations, attributes: Sequence[Described], plan: Plan, cells: Sequence[Cell]
) -> None:
    """Describe the sensitive values of rows that were not written, for whoever compares nodes."""
    sensitive = [a for a in plan.roles.published if a.role is Role.SENSITIVE]

    def rows() -> exp.Query:
        through = [named(qualified(plan.expression(a), "s"), f"p_{i}") for i, a in enumerate(sensitive)]
        codes = [number(0) if c.constant else col(f"g_{j}", "i") for j, c in enumerate(cells)]
        coded = coded_rows(plan.relation.query, cells, True, through)
        words = pack(codes, [c.size for c in cells])
        placed = rows_in_classes(coded, words, relations["class_map"], len(cells), through)
        columns = [col("class_id"), *(col(t.alias) for t in through)]
        query = exp.select(*columns, named(exp.Count(this=exp.Star()), "n")).from_(subquery(placed, "r"))
        return query.where(col("kept")).group_by(*(c.copy() for c in columns))

    passed = None
    if sensitive:
        passed = Passed([(a.name, a.type) for a in sensitive], partial(source_rows, plan, sensitive), rows)
    if len(attributes) + len(sensitive) > 1:
        relations.recipes["pairs"] = lambda: pair_counts(relations, attributes, passed)
