"""Recoding by permutation: rows with permuted codes become published rows, with evidence for the gate."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.algorithms.permutation.ahmad_dey import Apart, Beside, apart, require_few
from duckanon.algorithms.permutation.permuting import Draw, blocks_of
from duckanon.algorithms.permutation.probabilistic import Preparation
from duckanon.engine.sql.recode import ORDER
from duckanon.engine.sql.relations import (
    RelationTables,
    cast,
    col,
    named,
    positional,
    qualified,
    relation,
    shuffle_key,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import UnsupportedError
from duckanon.recoding.associations import (
    Counted,
    count_pairs,
    counted_columns,
    information,
    mean_information,
    with_sensitive,
)
from duckanon.recoding.base import GROUP, PERSON, Evidence, Recoder, Recoding
from duckanon.recoding.coded_rows import CODE, RELEASED, Associations, Division, RowCoder

if TYPE_CHECKING:
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.recode import Cell
    from duckanon.plan.plan import Plan


def secret_of(seed: int | None) -> bytes:
    """Return 256 secret bits from the operating system, or bits derived from a seed."""
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.sha256(b"duckanon-permutation" + str(seed).encode()).digest()


@dataclass(frozen=True)
class AssociationAnalysis:
    """Measures how columns depend on each other before rows are divided, and chooses the blocks of columns."""

    secret: bytes

    def __call__(self, coder: RowCoder, rows: str) -> Associations:
        algorithm: Any = coder.algorithm
        engine = coder.engine
        columns = counted_columns(coder, algorithm.intervals)
        pairs, bits_of_pairs = engine.fresh("pairs"), []
        if len(columns) > 1:
            plain = exp.select().from_(table(rows, "s"))
            engine.create(pairs, count_pairs(engine, columns, lambda c: col(c.code, "s"), plain))
            bits_of_pairs = information(engine, pairs)
        blocks = blocks_of(with_sensitive(columns, bits_of_pairs))
        k = max(m.traits.min_class_size for m in coder.plan.models)
        far = self._apart(coder, columns, pairs) if algorithm.dissimilarity == "ahmad_dey" else None
        prepared = algorithm.prepared_with(Preparation(blocks, Draw(self.secret), k, far))
        return Associations(replace(coder, algorithm=prepared), columns, pairs)

    def _apart(self, coder: RowCoder, columns: Sequence[Counted], pairs: str) -> Apart:
        """Return Ahmad-Dey's distances from the counts of pairs, matrices by place."""
        quasi = [c for c in columns if c.quasi]
        lines = [p.axis.atoms is not None for p in coder.placed]
        missing = [c.bins is not None or coded.dictionary.null for c, coded in zip(quasi, coder.coded, strict=True)]
        columns_beside = [
            Beside(c.name, c.size, line, c.size - 1 if null else None)
            for c, line, null in zip(quasi, lines, missing, strict=True)
        ]
        require_few(columns_beside)
        counts = {}
        for i, j in combinations(range(len(quasi)), 2):
            these = [exp.EQ(this=col(s), expression=text(quasi[a].name)) for s, a in (("first", i), ("second", j))]
            both = [cast(col(c), "BIGINT") for c in ("x", "y", "n")]
            counted = coder.engine.arrow(exp.select(*both).from_(table(pairs)).where(*these))
            x, y, n = (column.to_numpy() for column in counted.columns)
            counts[i, j] = np.zeros((quasi[i].size, quasi[j].size))
            counts[i, j][x, y] = n
        distances = apart(columns_beside, counts)
        by_place = {
            j: matrix[np.ix_(coder.placed[j].code, coder.placed[j].code)] for j, matrix in distances.matrices.items()
        }
        return replace(distances, matrices=by_place)


@dataclass(frozen=True)
class PermutedRecoding(Recoding):
    """Values are published as they are, in other rows: there are no levels, and nothing that maps a value."""

    names: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def groups(self, attribute: str) -> Any:
        """Refuse: no label stands for several values."""
        raise UnsupportedError(f"Values of {attribute!r} are published as they are: no label stands for several.")

    def mapping(self, attribute: str) -> Any:
        """Refuse: every value stays what it is."""
        self._refuse()

    def to_sql(self, dialect: str = "duckdb") -> str:
        """Refuse: the permutation is secret."""
        self._refuse()
        return ""

    def _refuse(self) -> None:
        raise UnsupportedError("Values were permuted with secret random numbers: there is no recoding to write down.")


class _PermutedRelations(RelationTables):
    """The relations of a release of permuted rows, of which classes are not visible."""

    def __init__(self, recoder: PermutedRows, tables: Mapping[str, str]) -> None:
        super().__init__(recoder.engine, tables)
        self._recoder = recoder

    def lacks(self, name: str) -> bool:
        return name == "pairs" and len(self._recoder.associations.columns) < 2

    @relation
    def pairs(self) -> exp.Query:
        """``(released, first, second, x, y, n)``: how often values of two columns occur together."""
        return self._recoder.pairs()


class PermutedRows(Recoder):
    """Every row is published with values of other rows of its group."""

    def __init__(self, plan: Plan, engine: Engine, counted: Frequency, division: Division) -> None:
        if division.associations is None:
            raise UnsupportedError("Nothing was permuted.")
        self.plan, self.engine, self.division, self.associations = plan, engine, division, division.associations
        algorithm: Any = division.associations.coder.algorithm
        self.preparation: Preparation = algorithm.preparation
        self.cells: list[Cell] = []
        self.dictionaries = [c.dictionary for c in counted.coded]
        self.names = tuple(a.name for a in plan.roles.quasi_identifiers)
        class_map = engine.fresh("class_map")
        columns = [col(c) for c in ("class_id", "n", "units", "kept")]
        engine.create(class_map, exp.select(*columns).from_(table(division.boxes.table)))
        self.relations = _PermutedRelations(self, {"class_map": class_map})

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The quasi-identifiers that were permuted together."""
        return tuple(tuple(self.names[j] for j in block) for block in self.preparation.blocks)

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return [(name, f"{RELEASED}{j}") for j, name in enumerate(self.names)]

    def _kept(self, *columns: exp.Expr) -> exp.Select:
        """Return columns of the coded rows ``s`` and of their groups ``k`` that are published."""
        query = positional(exp.select(*columns).from_(table(self.division.rows, "s")), str(self.division.ids), "k")
        if not self.division.suppressed:
            return query
        on = exp.EQ(this=col("class_id", "m"), expression=col("class_id", "k"))
        return query.join(table(self.relations.table("class_map"), "m"), on=on).where(col("kept", "m"))

    def _valued(self, inner: exp.Select, codes: Mapping[str, int], more: Sequence[str]) -> exp.Select:
        """Return ``inner`` with values in place of codes: ``codes`` has the quasi-identifier of each such column."""
        query = exp.select().from_(subquery(inner, "i"))
        for position, (name, j) in enumerate(codes.items()):
            alias = f"v{position}"
            on = exp.EQ(this=col("code", alias), expression=col(name, "i"))
            query = query.select(named(col("value", alias), name)).join(table(self.dictionaries[j].table, alias), on=on)
        return query.select(*(col(name, "i") for name in more))

    def rows(self, extra: Sequence[tuple[str, exp.Expr]], keyed: bool = False) -> exp.Select:
        codes = {f"{RELEASED}{j}": j for j in range(len(self.names))}
        passed = [f"p_{i}" for i in range(len(extra))]
        beside = [named(qualified(expression, "s"), p) for p, (_, expression) in zip(passed, extra, strict=True)]
        inner = self._kept(*(col(name, "k") for name in codes), *beside)
        query = self._valued(inner, codes, passed)
        if keyed:
            # Equal rows have the same hash, whatever group they come from.
            query = query.select(named(shuffle_key(*(col(name, "i") for name in (*codes, *passed))), ORDER))
        return query

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        return exp.select(*(named(col(inner), name) for name, inner in columns)).from_(subquery(rows, "r"))

    def recoding(self) -> Recoding:
        return PermutedRecoding({}, self.plan, self.cells, self.engine, names=self.names)

    def evidence(
        self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, keys: Mapping[str, int]
    ) -> Evidence:
        """Create the table that ties the rows of the source to those of the release."""
        codes = {f"s_{j}": j for j in range(len(self.names))} | {f"{RELEASED}{j}": j for j in range(len(self.names))}
        of_source = [named(col(f"{CODE}{j}", "s"), f"s_{j}") for j in range(len(self.names))]
        of_release = [col(f"{RELEASED}{j}", "k") for j in range(len(self.names))]
        beside = [named(qualified(e, "s"), f"p_{i}") for i, (_, e) in enumerate(extra)]
        if person is not None:
            beside.append(named(qualified(person, "s"), PERSON))
        more = [GROUP, *(b.alias for b in beside)]
        inner = self._kept(*of_source, *of_release, *beside, named(col("class_id", "k"), GROUP))
        name = self.engine.fresh("evidence")
        self.engine.create(name, self._valued(inner, codes, more), keys if person is not None else None)
        others = tuple(name for name, _ in extra)
        redraws = bool(getattr(self.plan.algorithm, "redraw", False))
        k = max(m.traits.min_class_size for m in self.plan.models)
        return Evidence(name, self.names, others, self.blocks, k, redraws, person is not None)

    # For the report

    def described(self) -> dict[str, Any]:
        """Return the blocks of columns and the mutual information between columns, before and after."""
        return {
            "blocks": [list(block) for block in self.blocks],
            "drawn_again": int(self.division.searched.get("redrawn", 0)),
            "mutual_information": self.mutual_information(),
        }

    def pairs(self) -> exp.Query:
        """Return how often values of two columns occur together, before and after, numbers counted in intervals."""
        columns = self.associations.columns
        plain = exp.select().from_(table(self.division.rows, "s"))
        before = count_pairs(self.engine, columns, lambda c: col(c.code, "s"), plain)
        return union_all([before, count_pairs(self.engine, columns, self._code, self._kept(), released=True)])

    def _code(self, column: Counted) -> exp.Expr:
        if not column.quasi:
            return col(column.code, "s")
        return col(f"{RELEASED}{column.code.removeprefix(CODE)}", "k")

    def mutual_information(self) -> dict[str, Any]:
        """Return the mutual information between columns in bits, before and after; nothing for a single column."""
        columns, before = self.associations.columns, self.associations.pairs
        if len(columns) < 2:
            return {}
        after = count_pairs(self.engine, columns, self._code, self._kept(), released=True)
        pairs = self.engine.fresh("pairs")
        self.engine.create(pairs, union_all([exp.select("*").from_(table(before)), after]))
        return mean_information(columns, information(self.engine, pairs))


__all__ = ["AssociationAnalysis", "PermutedRecoding", "PermutedRows", "secret_of"]
