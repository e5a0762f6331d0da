"""Frozen recodings: the recoding of one run is stored and applied to the data of later runs.

Levels are stored with the hierarchies, regions with the cuts that lead to them. Labels that were made from the data are
stored, too, so that they do not move when later data has another range. A value that a stored hierarchy does not have
follows ``on_unknown``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from sqlglot import exp

from duckanon._version import __version__
from duckanon.engine.process import file_digest
from duckanon.engine.sql.axes import RUN
from duckanon.engine.sql.relations import col, named, subquery, table
from duckanon.errors import ConfigError, DataError, ParameterError, UnsupportedError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.build import from_rule
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles
from duckanon.hierarchy.rules import Age, ColumnType, Dates, Field, Mask, Prefix, Suppress
from duckanon.jobs.expectations import plain_type
from duckanon.jobs.keys import Recoding
from duckanon.jobs.nights.stored_algorithms import (
    CUT_COLUMNS,
    CUTS,
    REFRESH,
    REGIONS,
    CutTree,
    StoredLevels,
    StoredRegions,
    values_file,
)
from duckanon.recoding.coded_rows import CODE
from duckanon.recoding.regions import Regions

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute
    from duckanon.release.release import Release

RECODINGS: tuple[str, ...] = get_args(Recoding)
"""Search anew in each run; apply the stored recoding, if there is one; search anew, and store the result."""
META = "recoding.json"
FORMAT = 2
"""Recodings of another format are refused."""
_REGION = ("a", "b", "v", "first", "last")
_OUTPUTS = ("interval", "bounds", "struct", "lca")
"""Outputs of a stored region: all others change with the rows of a class."""


def require_recoding(recoding: object) -> str:
    """Return the name of a way to recode, or raise a ParameterError."""
    if recoding not in RECODINGS:
        hint = did_you_mean(str(recoding), RECODINGS)
        raise ParameterError(f"recoding must be one of {', '.join(RECODINGS)}.{hint}")
    return str(recoding)


def require_freezable(plan: Plan) -> None:
    """Raise an UnsupportedError unless what the plan makes can be applied to other data."""
    algorithm, others = plan.algorithm, "levels (datafly, optimal and the others) and strict mondrian can be frozen"
    if algorithm.hierarchy_shuffle_seed is not None:
        raise UnsupportedError(f"{algorithm.name} permutes values at random and cannot be frozen: {others}.")
    if plan.search_options.iterative:
        raise UnsupportedError(f"iterative=True recodes in several passes, which cannot be frozen: {others}.")
    if not algorithm.partitions:
        _require_outputs(plan)
        return
    if algorithm.name != "mondrian" or getattr(algorithm, "by_rows", False):
        which = "relaxed mondrian" if algorithm.name == "mondrian" else algorithm.name
        raise UnsupportedError(
            f"The classes of {which} are rows near each other, not regions that other rows could be in, and cannot "
            f"be frozen: {others}."
        )
    if plan.bounds == "tight":
        raise UnsupportedError(
            "bounds='tight' changes with the rows of a class and cannot be frozen: use 'grid' or 'cut'."
        )
    _require_outputs(plan)


def remembering(plan: Plan) -> Plan:
    """Return the plan whose release can be frozen: its partition keeps the cuts between classes."""
    require_freezable(plan)
    return replace(plan, remember=plan.algorithm.partitions)


def _require_outputs(plan: Plan) -> None:
    for name, kind in plan.output.items():
        if kind not in _OUTPUTS or (kind == "lca" and plan.bounds != "grid"):
            raise UnsupportedError(
                f"output={kind!r} of {name!r} changes with the rows of a class and cannot be frozen: use interval, "
                "bounds or struct, or lca with bounds='grid'."
            )


def freeze(release: Release, folder: Path) -> None:
    """Store the recoding of a release in a private folder (that of a run, see ``State.run_folder``).

    ``recoding.json`` has names, types, levels and the SHA-256 of the other files; the values and labels that a
    recoding needs are in Parquet files. Only their owner can read the files.
    """
    plan, engine = release.plan, release.engine
    require_freezable(plan)
    quasi = plan.roles.quasi_identifiers
    columns = zip(quasi, release.recoding.cells, release.used, release.levels, strict=True)
    hierarchies = [
        StoredHierarchy.of(engine, attribute, cell.values, plan.hierarchies[attribute.name], used, bound)
        for attribute, cell, used, bound in columns
    ]
    names = _write_hierarchies(hierarchies, folder)
    attributes: list[dict[str, Any]] = [
        {"name": a.name, "type": plain_type(a.type), "height": bound.height}
        for a, bound in zip(quasi, release.levels, strict=True)
    ]
    if isinstance(release.recoder, Regions):
        names += _divided(release, release.recoder, folder)
        for own, kind in zip(attributes, release.recoder.division.boxes.kinds, strict=True):
            own["axis"] = kind
    else:
        for own in attributes:
            own["level"] = release.recoding.levels[own["name"]]
    meta = {
        "format": FORMAT,
        "duckanon": __version__,
        "algorithm": plan.algorithm.name,
        "outputs": plan.publication.to_dict(),
        "attributes": attributes,
        "files": {name: file_digest(folder / name) for name in names},
    }
    for name in names:
        (folder / name).chmod(0o600)
    descriptor = os.open(folder / META, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(meta, file, sort_keys=True)


def _divided(release: Release, recoder: Regions, folder: Path) -> list[str]:
    """Write all classes, also those that are not published, the cuts between them, and the values of both.

    A region is ``(a_0, b_0, v_0, first_0, last_0, ...)``: the places of its first and last value, the level of the node
    over them, or -1 for a run, and whether a run begins or ends where the axis does. ``values-j`` says what values were
    at these places, see ``nights.stored_algorithms`` for the cuts.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    division, engine = recoder.division, release.engine
    if division.cuts is None:
        raise ParameterError("The cuts were not kept: make the release of remembering(plan) to freeze it.")
    regions: dict[str, Any] = {}
    regions_table = engine.arrow(exp.select("*").from_(table(division.boxes.table)).order_by(col("class_id")))

    def members(axis: int) -> tuple[Any, Any]:
        query = exp.select(col("class_id"), col("code"))
        inner = subquery(division.classed([named(col(f"{CODE}{axis}", "s"), "code")]), "m")
        codes = engine.arrow(query.distinct().from_(inner).order_by(col("class_id"), col("code")))
        own, code = (codes.column(c).to_numpy().astype(np.int64) for c in ("class_id", "code"))
        return own - 1, code

    tree = CutTree.of(division.cuts, len(regions_table), members)
    names = []
    for j, (axis, own) in enumerate(zip(recoder.published.regions, division.cuts.placed, strict=True)):
        a, b, v = (regions_table.column(f"{c}_{j}").to_numpy().astype(np.int64) for c in "abv")
        a, b, last = own.place[a], own.place[b], axis.column.last
        # A run never covers NULL, although the axis includes it.
        b = np.where((v == RUN) & (b > last), last, b)
        columns = (a, b, v, (v == RUN) & (a == axis.column.first), (v == RUN) & (b == last))
        regions |= {f"{name}_{j}": column for name, column in zip(_REGION, columns, strict=True)}
        places = np.unique(np.concatenate([a, b, tree.place[tree.axis == j]]))
        incoming = engine.fresh("incoming")
        engine.register(incoming, pa.table({"place": places, "code": own.code[places]}))
        query = exp.select(col("place", "i"), col("value", "v")).from_(table(incoming, "i"))
        on = exp.EQ(this=col("code", "v"), expression=col("code", "i"))
        query = query.join(table(axis.column.values, "v"), on=on).order_by(col("place", "i"))
        names.append(values_file(j))
        engine.write_parquet(query, folder / names[-1])
        engine.unregister(incoming)
    pq.write_table(pa.table(regions), folder / REGIONS)
    pq.write_table(pa.table({c: getattr(tree, c) for c in CUT_COLUMNS}), folder / CUTS)
    return [*names, REGIONS, CUTS]


@dataclass(frozen=True)
class Stored:
    """A stored recoding, read and complete."""

    folder: Path
    meta: dict[str, Any]
    hierarchies: tuple[StoredHierarchy, ...]

    @classmethod
    def load(cls, folder: Path) -> Stored:
        """Read what ``freeze`` wrote; a DataError where something is missing or changed."""
        current = True
        try:
            meta = json.loads((folder / META).read_text(encoding="utf-8"))
            current = meta["format"] == FORMAT
            whole = current and all(
                Path(name).name == name and file_digest(folder / name) == digest
                for name, digest in meta["files"].items()
            )
            hierarchies = tuple(_read_hierarchies(folder)) if whole else ()
            whole = whole and len(hierarchies) == len(meta["attributes"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            whole = False
        if not current:
            raise DataError(f"The recoding was stored by another version of duckanon, in another format. {REFRESH}")
        if not whole:
            raise DataError(f"The stored recoding is damaged. {REFRESH}")
        return cls(folder, meta, hierarchies)


def frozen_plan(plan: Plan, stored: Stored) -> Plan:
    """Return the plan that applies a stored recoding in place of a search.

    Raises a ConfigError where something else is asked for than was stored, a DataError where a column has another
    type now.
    """
    require_freezable(plan)
    plan = replace(plan, remember=False)
    meta = stored.meta
    quasi = plan.roles.quasi_identifiers
    before = {own["name"]: own for own in meta["attributes"]}
    if list(before) != [a.name for a in quasi]:
        raise ConfigError(f"The quasi-identifiers are not those of the stored recoding. {REFRESH}")
    for attribute in quasi:
        if plain_type(attribute.type) != before[attribute.name]["type"]:
            raise DataError(f"The column {attribute.name!r} has another type than in the stored recoding. {REFRESH}")
    if (plan.algorithm.name, plan.publication.to_dict()) != (meta["algorithm"], meta["outputs"]):
        raise ConfigError(f"Algorithm, bounds or output are not those of the stored recoding. {REFRESH}")
    hierarchies: dict[str, Hierarchy | None] = {}
    for attribute, kept in zip(quasi, stored.hierarchies, strict=True):
        given = plan.hierarchies[attribute.name]
        hierarchies[attribute.name] = kept.hierarchy(attribute.name, given)
        made = _given_as(given) is None and not kept.chosen
        if made and before[attribute.name].get("axis") == "line":
            # It is cut between its values and needs no hierarchy, but for metrics.
            hierarchies[attribute.name] = None
    heights = tuple(own["height"] for own in meta["attributes"])
    if "level" in meta["attributes"][0]:
        levels = tuple(own["level"] for own in meta["attributes"])
        return replace(plan, algorithm=StoredLevels(plan.algorithm, levels, heights), hierarchies=hierarchies)
    kinds = tuple(own["axis"] for own in meta["attributes"])
    outputs = tuple(plan.output[name] for name in before)
    fixed = StoredRegions(plan.algorithm, stored.folder, tuple(before), kinds, heights, outputs)  # type: ignore[arg-type]
    return replace(plan, algorithm=fixed, hierarchies=hierarchies)


_TOTAL = (Suppress, Intervals, Cuts, Dates, Age)
"""Rules whose labels of a value do not depend on other values."""
RULES = "hierarchies.parquet"


@dataclass(frozen=True)
class StoredHierarchy:
    """The hierarchy of one quasi-identifier when the recoding was stored, and how it was given.

    ``given`` is "table", the JSON of a rule, or None where one was made or ``chosen``; ``rule`` is the JSON of a rule
    that does not look at the data, or None where ``levels`` has every value with its labels.
    """

    given: str | None
    rule: str | None
    source: str
    top: str
    levels: pa.Table | None = None
    chosen: bool = False

    @classmethod
    def of(
        cls,
        engine: Engine,
        attribute: Attribute,
        values: str,
        given: Hierarchy | None,
        used: Hierarchy,
        bound: Levels,
    ) -> StoredHierarchy:
        """Return what is to be stored of a hierarchy; ``values`` is the dictionary of the column."""
        given_as = _given_as(given)
        if used.levels is not None:
            return cls(given_as, None, used.origin, bound.top, used.levels, used.chosen)
        rule: Any = used.rule
        if isinstance(rule, Quantiles):
            cuts = rule.cuts(Field(engine, values, attribute.name, ColumnType.parse(attribute.type)))
            rule = Suppress() if cuts is None else cuts
        if isinstance(rule, Mask) and rule.depth() is None:
            depth = bound.height - 1
            rule = Mask(rule.side, None, rule.character, depth) if depth else Suppress()
        if (given_as is not None or used.chosen) and isinstance(rule, Prefix) and _steady(rule, engine):
            written = given_as or json.dumps(used.to_rule(), sort_keys=True)
            return cls(given_as, written, used.origin, used.top, chosen=used.chosen)
        if isinstance(rule, _TOTAL) or (isinstance(rule, Mask | Prefix) and rule.depth() is not None):
            fixed = Hierarchy(None, rule, used.origin, used.top)
            return cls(given_as, json.dumps(fixed.to_rule(), sort_keys=True), used.origin, used.top)
        return cls(given_as, None, used.origin, bound.top, _listed(engine, values, bound))

    def hierarchy(self, name: str, given: Hierarchy | None) -> Hierarchy:
        """Return the hierarchy for this run; a ConfigError where another one is given than before."""
        if _given_as(given) != self.given:
            raise ConfigError(f"The hierarchy of {name!r} is not that of the stored recoding. {REFRESH}")
        if given is not None and given.levels is not None:
            self._require_grown(name, given.levels)
            return given
        if given is not None and self.given is not None and self.rule == self.given:
            return given
        if self.rule is not None:
            made = from_rule(json.loads(self.rule), None).named(self.source)
            return replace(made, chosen=self.chosen)
        return Hierarchy(self.levels, None, self.source, self.top, self.chosen)

    def _require_grown(self, name: str, levels: pa.Table) -> None:
        """Raise unless a table has all leaves that it had, with their labels; it may have more."""
        import pyarrow.compute as pc

        before = self.levels
        fine = before is not None and before.num_columns == levels.num_columns
        if before is not None and fine:
            at = pc.index_in(before.column(0).combine_chunks(), value_set=levels.column(0).combine_chunks())
            fine = at.null_count == 0 and all(
                levels.column(i).combine_chunks().take(at).equals(before.column(i).combine_chunks())
                for i in range(levels.num_columns)
            )
        if not fine:
            raise ConfigError(
                f"The hierarchy of {name!r} has changed since the recoding was stored: leaves may be added, but those "
                f"that were there must keep their labels. {REFRESH}"
            )


def _given_as(given: Hierarchy | None) -> str | None:
    if given is None or given.chosen or isinstance(given.rule, Auto):
        return None
    return "table" if given.levels is not None else json.dumps(given.to_rule(), sort_keys=True)


def _steady(rule: Prefix, engine: Engine) -> bool:
    """Return whether prefixes continue in a hierarchy that does not depend on the data either."""
    follow = rule.then
    while follow is not None:
        next_one = resolve(follow, engine, rule.base)
        if next_one.levels is not None or isinstance(next_one.rule, _TOTAL):
            return True
        if not isinstance(next_one.rule, Prefix):
            return False
        rule, follow = next_one.rule, next_one.rule.then
    return True


def _listed(engine: Engine, values: str, bound: Levels) -> pa.Table:
    """Return the labels of all values that a hierarchy has, in the order of the values."""
    import pyarrow as pa

    labels = [col(f"l{i}", "t") for i in range(1, bound.height + 1)]
    query = exp.select(named(col("text", "v"), "l0"), *labels).from_(table(bound.tree, "t"))
    query = query.join(table(values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")))
    listed = engine.arrow(query.where(col("known", "t")).order_by(col("code", "v")))
    return listed.cast(pa.schema([(name, pa.string()) for name in listed.column_names])).combine_chunks()


def levels_file(position: int) -> str:
    """Return the name of the file with the labels of a quasi-identifier's values."""
    return f"levels-{position}.parquet"


def _write_hierarchies(hierarchies: list[StoredHierarchy], folder: Path) -> list[str]:
    """Write hierarchies to Parquet files; return their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(one, name) for one in hierarchies] for name in ("given", "rule", "source", "top")}
    written = {name: pa.array(texts, pa.string()) for name, texts in columns.items()}
    pq.write_table(pa.table({**written, "chosen": [one.chosen for one in hierarchies]}), folder / RULES)
    names = [RULES]
    for j, one in enumerate(hierarchies):
        if one.levels is not None:
            pq.write_table(one.levels, folder / levels_file(j))
            names.append(levels_file(j))
    return names


def _read_hierarchies(folder: Path) -> list[StoredHierarchy]:
    """Return the hierarchies that ``store`` wrote."""
    import pyarrow.parquet as pq

    # One row for each quasi-identifier.
    rows = pq.read_table(folder / RULES).to_pylist()
    return [
        StoredHierarchy(**row, levels=None if row["rule"] is not None else pq.read_table(folder / levels_file(j)))
        for j, row in enumerate(rows)
    ]
