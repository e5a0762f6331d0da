"""Full-domain recoding, in one pass or several: the cells on the levels of hierarchies, and the relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.algorithms.full_domain.nodes import persons
from duckanon.encoding.counting import count_domain
from duckanon.encoding.dictionaries import ENUM_LIMIT, enumeration, published_type
from duckanon.engine.sql.classes import (
    class_labels,
    class_members,
    class_rows,
    class_shares,
    class_values,
    level_cells,
    level_covers,
    published_labels,
)
from duckanon.engine.sql.recode import (
    Cell,
    class_table,
    code_labels,
    coded_rows,
    local_rows,
    published_texts,
    recoded_rows,
    released_rows,
    rows_in_classes,
)
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    ident,
    named,
    number,
    pack,
    relation,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import UnsupportedError
from duckanon.plan.plan import has_distance
from duckanon.plan.roles import Role
from duckanon.recoding.base import LocalRecoding, Lookup, Recoder, Recoding, SideBySide, originals, through
from duckanon.recoding.relations import QuasiIdentifierDomain, ReleaseRelations, source_rows

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.local import Pass
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan


class _LevelRelations(ReleaseRelations):
    """Relations of a release whose cells stand on levels of hierarchies.

    ``by_pass`` has the cells of each pass, ``cells`` those that are published. Sensitive values are counted in
    ``path``, the file of the release, which is written before they are asked for.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        counted: Frequency,
        by_pass: Sequence[Sequence[Cell]],
        cells: Sequence[Cell],
        path: Path | None = None,
    ) -> None:
        self.plan, self.counted, self.published, self.path = plan, counted, cells, path
        self.sensitive = [a for a in plan.roles.published if a.role is Role.SENSITIVE]
        super().__init__(engine, {"frequency": counted.table}, [(a.name, a.type) for a in self.sensitive])
        self.domains = [_column_domain(plan, counted, j, [own[j] for own in by_pass]) for j in range(len(cells))]

    @relation
    def class_values(self) -> exp.Query:
        """``(class_id, attribute, value, n)``: the sensitive values of the published classes."""
        return class_values(self.table("labelled"), self._written(), self.published, [name for name, _ in self.passed])

    @relation
    def domain_values(self) -> str:
        """``(attribute, value, n)``: the sensitive values of the source."""
        values = {a.name: self.plan.expression(a) for a in self.sensitive}
        return count_domain(self.engine, self.plan.relation.query, values)

    def source_rows(self) -> exp.Query:
        return source_rows(self.plan, self.sensitive)

    def class_rows(self) -> exp.Query:
        return class_rows(self.table("labelled"), self._written(), self.published, [name for name, _ in self.passed])

    def _written(self) -> exp.Query:
        assert self.path is not None
        return self.engine.parquet([self.path])


class FullDomainRelations(_LevelRelations):
    """The relations of a full-domain release."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        counted: Frequency,
        node: Node,
        cells: Sequence[Cell],
        path: Path | None = None,
    ) -> None:
        super().__init__(plan, engine, counted, [cells], cells, path)
        class_map = engine.fresh("class_map")
        engine.create(class_map, class_table(node.grouped.copy(), cells))
        node.drop(engine)
        self.add("class_map", class_map)

    @relation
    def classes(self) -> exp.Query:
        """``(class_id, n, suppressed)``."""
        return _classes(self.table("class_map"))

    @relation
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""
        return class_labels(self.table("class_map"), self.published)

    def member_rows(self) -> exp.Query:
        return class_members(self.counted.table, self.table("class_map"), self.published)


class LocalRelations(_LevelRelations):
    """The relations of a release in several passes; classes of two passes that look alike are one.

    ``label_map(pass, part, class_id, n, l_0, ..., g_0, ...)`` has the parts that each pass gives to a class.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        counted: Frequency,
        passes: Sequence[Pass],
        by_pass: Sequence[Sequence[Cell]],
        cells: Sequence[Cell],
        path: Path,
    ) -> None:
        super().__init__(plan, engine, counted, by_pass, cells, path)
        width = len(cells)
        labels, members = [], []
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
            # Rows that a pass does not keep go to the next pass; those of the last pass are suppressed.
            members.append(chosen if number_of == len(passes) - 1 else chosen.where(col("kept", "k")))
        self._create("label_map", _label_map(labels, width))
        self._create("members", _numbered_members(self.table("label_map"), members, width))
        self._create("class_map", _class_map(self.table("members"), passes, width))

    def _create(self, name: str, query: exp.Query) -> None:
        self.add(name, self.engine.fresh(name))
        self.engine.create(self.table(name), query)

    @relation
    def classes(self) -> exp.Query:
        """``(class_id, n, suppressed)``."""
        return _classes(self.table("class_map"))

    @relation
    def tuple_map(self) -> exp.Query:
        """``(w_0, ..., class_id, kept)``: the class of every combination of values."""
        sizes = [c.dictionary.size for c in self.counted.coded]
        words = pack([col(f"c_{j}") for j in range(len(sizes))], sizes)
        packed = [named(word, f"w_{i}") for i, word in enumerate(words)]
        return exp.select(*packed, col("class_id"), col("kept")).distinct().from_(table(self.table("members")))

    @relation
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""
        texts = [col(f"l_{j}") for j in range(len(self.published))]
        query = exp.select(col("class_id"), named(cast(exp.Sum(this=col("n")), "BIGINT"), "n"), *texts)
        return query.from_(table(self.table("label_map"))).group_by(col("class_id"), *(t.copy() for t in texts))

    def member_rows(self) -> exp.Query:
        columns = [col("class_id"), *(col(f"c_{j}") for j in range(len(self.published))), col("n")]
        return exp.select(*columns).from_(table(self.table("members")))


def _label_map(labels: Sequence[exp.Query], width: int) -> exp.Query:
    texts = [col(f"l_{j}") for j in range(width)]
    order = exp.Order(expressions=[exp.Ordered(this=t, desc=False, nulls_first=False) for t in texts])
    alike = exp.Window(this=call("dense_rank"), order=order)
    columns = [col("pass"), named(col("class_id"), "part"), named(cast(alike, "BIGINT"), "class_id"), col("n")]
    codes = [col(f"g_{j}") for j in range(width)]
    return exp.select(*columns, *(t.copy() for t in texts), *codes).from_(subquery(union_all(list(labels)), "u"))


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
    class_id = exp.func("COALESCE", col("class_id", "l"), suppressed)
    codes = [col(f"c_{j}", "m") for j in range(width)]
    query = exp.select(named(cast(class_id, "BIGINT"), "class_id"), *codes, col("n", "m"), col("kept", "m"))
    return query.from_(subquery(union_all(list(members)), "m")).join(table(label_map, "l"), on=on, join_type="left")


def _class_map(members: str, passes: Sequence[Pass], width: int) -> exp.Query:
    """Return ``(class_id, n, units, kept)``; persons are counted over all passes that a class comes from."""
    total = named(cast(exp.Sum(this=col("n")), "BIGINT"), "n")
    any_kept = named(call("bool_or", col("kept")), "kept")
    rows = exp.select(col("class_id"), total, any_kept).from_(table(members)).group_by(col("class_id"))
    if not passes[0].problem.frequency.entity:
        columns = [col("class_id"), col("n"), named(col("n"), "units"), col("kept")]
        return exp.select(*columns).from_(subquery(rows, "r"))
    # The tuples of later passes are among those of the first, where each has its persons.
    base = passes[0].problem.frequency.table
    on = exp.and_(*(exp.EQ(this=col(f"c_{j}", "m"), expression=col(f"c_{j}", "f")) for j in range(width)))
    people = exp.select(col("class_id", "m"), named(persons(col("entity", "f")), "units"))
    people = people.from_(table(members, "m")).join(table(base, "f"), on=on).group_by(col("class_id", "m"))
    same_class = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "r"))
    columns = [col("class_id", "r"), col("n", "r"), col("units", "p"), col("kept", "r")]
    return exp.select(*columns).from_(subquery(rows, "r")).join(subquery(people, "p"), on=same_class)


def _column_domain(plan: Plan, counted: Frequency, column: int, by_pass: Sequence[Cell]) -> QuasiIdentifierDomain:
    """Describe a quasi-identifier that is published on the levels of some cells."""
    attribute, coded = plan.roles.quasi_identifiers[column], counted.coded[column]
    levels = {c.level: c for c in by_pass}
    cells: exp.Query = level_cells(by_pass[0])
    covers = level_covers(by_pass[0], coded.domain_size)
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
    return QuasiIdentifierDomain(*described, labels=True)


def cells_at(plan: Plan, counted: Frequency, bound: Sequence[Levels], levels: Sequence[int]) -> list[Cell]:
    """Return how each quasi-identifier is recoded at the levels of a node."""
    return [
        Cell(
            name=attribute.name,
            expression=coded.dictionary.expression,
            values=coded.dictionary.table,
            levels=coded.levels,
            labels=coded.labels,
            level=level,
            size=coded.sizes[level],
            constant=level == coded.height,
            typed=level == 0 and not coded.masked,
            top=over.top,
        )
        for attribute, coded, over, level in zip(
            plan.roles.quasi_identifiers, counted.coded, bound, levels, strict=True
        )
    ]


def is_text(plan: Plan, cell: Cell) -> bool:
    kind = next(a.type for a in plan.roles.quasi_identifiers if a.name == cell.name)
    return not cell.constant and (not cell.typed or published_type(kind) == "VARCHAR")


class OnLevels(Recoder):
    """What recoders that put values on levels have in common."""

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return [(c.name, f"q_{j}") for j, c in enumerate(self.cells)]

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        return released_rows(rows, self.cells, columns)


class FullDomain(OnLevels):
    """Every value of a column on one level."""

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], done: Pass, path: Path
    ) -> None:
        self.plan, self.engine, self.problem = plan, engine, done.problem
        self.cells = [self._with_table(c) for c in cells_at(plan, counted, bound, done.node.levels)]
        self.relations = FullDomainRelations(plan, engine, counted, done.node, self.cells, path)
        shared = [j for j, cell in enumerate(self.cells) if cell.shares is not None]
        for j in shared:
            self._share(j, counted)
        if shared:
            self._require_apart(shared)

    def _share(self, position: int, counted: Frequency) -> None:
        """Create the distributions of a column in all classes that are kept."""
        coded, kind = counted.coded[position], self.plan.roles.quasi_identifiers[position].type
        given = {"masked": coded.masked, "ordered": has_distance(kind)}
        classes = self.relations.table("class_map")
        query = class_shares(counted.table, classes, self.cells, position, coded.domain_size, **given)
        self.engine.create(str(self.cells[position].shares), query)

    def _require_apart(self, shared: Sequence[int]) -> None:
        """Raise if two classes would be published alike: counts by class would then not be those of the file."""
        classes = exp.select().from_(table(self.relations.table("class_map"), "c")).where(col("kept", "c"))
        for j in range(len(self.cells)):
            if j not in shared:
                classes = classes.select(col(f"g_{j}", "c"))
                continue
            on = exp.EQ(this=col("class_id", f"h_{j}"), expression=col("class_id", "c"))
            classes = classes.select(named(col("q", f"h_{j}"), f"q_{j}"))
            classes = classes.join(table(str(self.cells[j].shares), f"h_{j}"), on=on)
        count = exp.select(exp.Count(this=exp.Star()))
        every, different = (
            self.engine.row(count.copy().from_(subquery(query, "d"))) for query in (classes, classes.copy().distinct())
        )
        if every != different:
            raise UnsupportedError(
                "output='proportional' would publish two classes alike, because NULL and values that a hierarchy does "
                "not know all count as its top label. Fill one of them in, or publish labels (output='interval')."
            )

    def _with_table(self, cell: Cell) -> Cell:
        if self.plan.output.get(cell.name) == "proportional":
            return replace(cell, shares=self.engine.fresh("shares"))
        if not is_text(self.plan, cell) or cell.size > ENUM_LIMIT:
            return cell
        return replace(cell, enum=enumeration(self.engine, published_texts(cell)))

    def rows(self, extra: Sequence[tuple[str, exp.Expr]], keyed: bool = False) -> exp.Select:
        return recoded_rows(self.plan.relation.query, self.cells, self.relations.table("class_map"), extra, keyed)

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        passed, lookups = through(extra, person, "s"), originals(self.cells)
        rows = coded_rows(self.plan.relation.query, self.cells, True, passed)
        codes = [number(0) if c.constant else col(f"g_{j}", "i") for j, c in enumerate(self.cells)]
        words = pack(codes, [c.size for c in self.cells])
        for j, cell in enumerate(self.cells):
            if cell.shares is not None:
                query = exp.select(named(col("class_id"), "code"), named(col("q"), f"r_{j}")).from_(table(cell.shares))
                lookups.append(Lookup("class_id", query))
            else:
                lookups.append(Lookup(f"k_{j}", code_labels(cell, f"r_{j}")))
        rows = rows_in_classes(rows, words, self.relations.table("class_map"), len(self.cells), passed)
        return SideBySide(rows, tuple(lookups), marked=True)

    def recoding(self) -> Recoding:
        levels = {c.name: c.level for c in self.cells}
        more = None if self.problem.size_only else self.relations.table("class_map")
        return Recoding(levels, self.plan, self.cells, self.engine, self.problem.min_size, more)


class Local(OnLevels):
    """Several passes: what one suppresses, the next recodes at levels of its own."""

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], done: Sequence[Pass], path: Path
    ) -> None:
        self.plan, self.engine = plan, engine
        self.sizes = [c.dictionary.size for c in counted.coded]
        by_pass = [cells_at(plan, counted, bound, one.node.levels) for one in done]
        self.levels = [{c.name: c.level for c in cells} for cells in by_pass]
        # A column is constant, or keeps its type, only where every pass says so.
        self.cells = [
            replace(same[0], constant=all(c.constant for c in same), typed=all(c.typed for c in same))
            for same in zip(*by_pass, strict=True)
        ]
        self.relations = LocalRelations(plan, engine, counted, done, by_pass, self.cells, path)
        self.cells = [self._with_enum(j, cell) for j, cell in enumerate(self.cells)]
        published = engine.fresh("published")
        engine.create(published, published_labels(self.relations.table("label_map"), self.cells))
        self.relations.add("published", published)

    def _with_enum(self, column: int, cell: Cell) -> Cell:
        if not is_text(self.plan, cell):
            return cell
        labels = table(self.relations.table("label_map"))
        different = call("count", exp.Distinct(expressions=[col(f"l_{column}")]))
        (size,) = self.engine.row(exp.select(different).from_(labels))
        if size > ENUM_LIMIT or not size:
            return cell
        texts = exp.select(named(col(f"l_{column}"), "label")).from_(labels.copy())
        return replace(cell, enum=enumeration(self.engine, texts))

    def rows(self, extra: Sequence[tuple[str, exp.Expr]], keyed: bool = False) -> exp.Select:
        relations = self.relations.tables("tuple_map", "published")
        return local_rows(self.plan.relation.query, self.cells, self.sizes, relations, extra, keyed)

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        passed = through(extra, person, "s")
        rows = coded_rows(self.plan.relation.query, self.cells, False, passed)
        words = pack([col(f"k_{j}", "i") for j in range(len(self.cells))], self.sizes)
        labels = [named(text(c.top) if c.constant else col(f"q_{j}"), f"r_{j}") for j, c in enumerate(self.cells)]
        published = exp.select(named(col("class_id"), "code"), *labels).from_(table(self.relations.table("published")))
        lookups = (*originals(self.cells), Lookup("class_id", published))
        rows = rows_in_classes(rows, words, self.relations.table("tuple_map"), len(self.cells), passed)
        return SideBySide(rows, lookups, marked=True)

    def recoding(self) -> Recoding:
        return LocalRecoding(self.levels[0], self.plan, self.cells, self.engine, passes=tuple(self.levels))


__all__ = ["FullDomain", "FullDomainRelations", "Local", "LocalRelations", "OnLevels", "cells_at", "is_text"]
