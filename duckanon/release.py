"""The release: the recoded rows in a private, checked Parquet file, with the proof, the loss and the recoding."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon._version import __version__
from duckanon.algorithms.base import Problem
from duckanon.algorithms.nodes import Node, by_class
from duckanon.encode import Coded, Frequency, code_levels, dictionary, frequency
from duckanon.errors import DataError, InfeasibleError, PrivacyViolation
from duckanon.gate import check_models, count_classes, require, require_same_classes
from duckanon.hierarchy import Levels, auto
from duckanon.metrics.base import measure
from duckanon.models.base import CheckResult
from duckanon.recoding import ENTITY, Recoding
from duckanon.resources import PrivateFolder, sweep
from duckanon.roles import Role
from duckanon.sqlgen.recode import Cell, class_cells, class_labels, class_table, labelled_rows, shuffled_rows
from duckanon.sqlgen.relations import Column, call, cast, col, named, number, subquery, table, text, union_all

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.metrics.base import Measure
    from duckanon.plan import Plan

SEEDED = "seeded: for tests, not for release"


@dataclass
class Release:
    """A recoding of the quasi-identifiers plus a proof.

    The rows lie in ``path``, a Parquet file in a private folder that goes with the object; ``write`` publishes it.
    """

    plan: Plan
    engine: Engine = field(repr=False)
    path: Path
    columns: tuple[Column, ...]
    rows_in: int
    rows_published: int
    rows_suppressed: int
    checks: tuple[CheckResult, ...]
    recoding: Recoding
    levels: tuple[Levels, ...] = field(repr=False)
    relations: dict[str, str] = field(repr=False)
    folder: PrivateFolder = field(repr=False)

    def query(self) -> exp.Query:
        """Return a query over the released rows."""
        return self.engine.parquet([self.path])

    def to_arrow(self) -> pa.Table:
        """Return the released rows as an Arrow table."""
        return self.engine.arrow(self.query())

    def reader(self, batch: int = 100_000) -> pa.RecordBatchReader:
        """Return the released rows as a stream of Arrow batches."""
        return self.engine.reader(self.query(), batch=batch)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the released rows as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the released rows as a polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def classes(self) -> pa.Table:
        """Return the equivalence classes of the release: their published values and number of rows."""
        keys = [col(c.name) for c in self.recoding.cells]
        count = named(exp.Count(this=exp.Star()), "n")
        query = exp.select(*keys, count).from_(subquery(self.query(), "r")).group_by(*(k.copy() for k in keys))
        return self.engine.arrow(query.order_by(exp.Ordered(this=col("n"), desc=True), *(k.copy() for k in keys)))

    def measure(self, metrics: Sequence[str] | None = None) -> list[Measure]:
        """Return what the release lost, by the metrics named or by all."""
        return measure(self.engine, self.relations, metrics)

    def summary(self) -> dict[str, Any]:
        """Return promise, proof and loss as plain values: what reports and terminals show. No cell value is in it."""
        plan = self.plan.to_dict()
        hierarchies = [
            {
                "attribute": level.attribute,
                "origin": level.origin,
                "height": level.height,
                "level": self.recoding.levels[level.attribute],
                "leaves": level.size,
            }
            for level in self.levels
        ]
        share = self.rows_suppressed / self.rows_in if self.rows_in else 0.0
        return {
            "duckanon": __version__,
            "engine": {"name": self.engine.name, "version": self.engine.version},
            **{k: plan[k] for k in ("source", "roles", "unit", "promise", "algorithm", "suppression_limit")},
            "hierarchies": hierarchies,
            "found": {
                "rows_in": self.rows_in,
                "rows_published": self.rows_published,
                "rows_suppressed": self.rows_suppressed,
                "suppressed_share": share,
                **self._class_sizes(),
            },
            "checks": [c.to_dict() for c in self.checks],
            "loss": [m.to_dict() for m in self.measure()],
            "bounds": "grid",
            "seeded": self.plan.seed is not None,
            "notes": self._notes(),
            "seconds": {step: round(s, 3) for step, s in self.engine.progress.seconds.items()},
        }

    def _class_sizes(self) -> dict[str, Any]:
        quantiles = [call("quantile_disc", col("n"), number(q)) for q in (0.25, 0.5, 0.75)]
        kept = exp.Not(this=col("suppressed"))
        row = self.engine.row(
            exp.select(
                exp.Count(this=exp.Star()),
                exp.Min(this=col("n")),
                quantiles[0],
                quantiles[1],
                exp.Avg(this=col("n")),
                quantiles[2],
                exp.Max(this=col("n")),
            )
            .from_(table(self.relations["classes"]))
            .where(kept)
        )
        names = ("min", "q25", "median", "mean", "q75", "max")
        return {"classes": int(row[0]), "class_size": dict(zip(names, row[1:], strict=True))}

    def _notes(self) -> list[str]:
        notes = []
        if self.plan.seed is not None:
            notes.append(SEEDED)
        if self.plan.unit == "rows":
            notes.append("k counts rows: without an entity key one person's rows may fill a class.")
        notes += [
            f"hierarchy of {level.attribute}: {level.origin}"
            for level in self.levels
            if level.origin.startswith("made")
        ]
        if self.plan.roles.dropped:
            notes.append(f"{len(self.plan.roles.dropped)} columns have no role and are not published.")
        return notes

    def report(self, format: str = "md") -> str:  # noqa: A002 - the field's word
        """Return the report as Markdown ("md") or JSON ("json")."""
        from duckanon.report import render

        return render(self.summary(), format)

    def write(self, path: str | Path, *, report: Sequence[str] = ("json", "md")) -> dict[str, Any]:
        """Publish the release as a Parquet file, with reports and a manifest beside it.

        The file is written beside its target, synced, read again and checked again, and only then renamed. Whatever
        fails, what was there before is still there.
        """
        from duckanon.sink import publish

        summary = self.summary()
        reports = {kind: self.report(kind) for kind in report}
        return publish(self.path, Path(path), summary=summary, reports=reports, verify=self.verify)

    def verify(self, path: Path) -> None:
        """Check every promise again on a file; a PrivacyViolation says what is broken."""
        written = self.engine.parquet([path])
        self.checks = _gate(self.plan, self.engine, written, self.rows_published, self.relations.get("proof"))

    def close(self) -> None:
        """Remove the private file and everything else that the release holds."""
        self.folder.close()
        self.engine.close()

    def __enter__(self) -> Release:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def make(plan: Plan, engine: Engine, stage: Path | None = None) -> Release:
    """Carry out a plan: encode, search, recode, materialise, and let the gate decide.

    ``stage`` is a folder on the file system of the later target, so that publishing is a rename.
    """
    progress = engine.progress
    source = plan.relation.query
    rows = _row_count(engine, source)
    _require_rows(plan, rows)
    with progress.step("encode", rows):
        coded, bound = _encode(plan, engine, source)
        counted = frequency(engine, source, coded, plan.entity)
    if counted.rows != rows:
        raise DataError("The source changed while it was read: its number of rows differs between two passes.")
    allowed = plan.algorithm.allowed_rows(rows, plan.suppression_limit, plan.models)
    problem = Problem(engine, counted, plan.models, allowed, plan.unit)
    with progress.step("search", unit="nodes"):
        node = plan.algorithm.search(problem)
    if node.outlier_rows == rows:
        raise InfeasibleError(
            f"All {rows} rows would be suppressed: no class has {problem.min_size} {plan.unit}. Lower the suppression "
            "limit so that values are generalized instead."
        )
    return _materialise(plan, engine, counted, bound, node, problem.min_size, stage)


def _materialise(
    plan: Plan,
    engine: Engine,
    counted: Frequency,
    bound: tuple[Levels, ...],
    node: Node,
    min_size: int,
    stage: Path | None,
) -> Release:
    if stage is not None:
        sweep(stage)
    folder = PrivateFolder(stage)
    try:
        cells = [_cell(c, level) for c, level in zip(counted.coded, node.levels, strict=True)]
        relations = _class_relations(engine, counted, node, cells, min_size)
        path = folder.path / "release.parquet"
        with engine.progress.step("recode", counted.rows):
            _write_rows(plan, engine, cells, relations, path)
        written = engine.parquet([path])
        published = _row_count(engine, written)
        with engine.progress.step("gate", published):
            if plan.entity is not None:
                relations["proof"] = str(folder.path / "proof.parquet")
                _write_proof(plan, engine, cells, relations)
            if published + node.outlier_rows != counted.rows:
                raise PrivacyViolation("The gate refused the release: rows in are not rows published plus suppressed.")
            checks = _gate(plan, engine, written, published, relations.get("proof"))
    except BaseException:
        folder.close()
        raise
    levels = {c.name: c.level for c in cells}
    recoding = Recoding(levels, plan, cells, engine, min_size)
    columns = tuple(engine.columns(written))
    return Release(
        plan=plan,
        engine=engine,
        path=path,
        columns=columns,
        rows_in=counted.rows,
        rows_published=published,
        rows_suppressed=node.outlier_rows,
        checks=checks,
        recoding=recoding,
        levels=bound,
        relations=relations,
        folder=folder,
    )


def _gate(plan: Plan, engine: Engine, written: exp.Query, rows: int, proof: str | None) -> tuple[CheckResult, ...]:
    names = [a.name for a in plan.roles.quasi_identifiers]
    columns = [c.name for c in engine.columns(written)]
    if columns != [a.name for a in plan.roles.published]:
        raise PrivacyViolation("The gate refused the release: its columns are not the declared ones.")
    if _row_count(engine, written) != rows:
        raise PrivacyViolation("The gate refused the release: the file does not hold the rows that were checked.")
    counted, entity = written, None
    if proof is not None:
        counted, entity = engine.parquet([Path(proof)]), col(ENTITY)
        require_same_classes(engine, written, counted, names)
    classes = count_classes(engine, counted, [col(n) for n in names], entity)
    checks = check_models(engine, classes, plan.models, plan.unit)
    engine.drop(classes)
    require(checks)
    return checks


def _row_count(engine: Engine, query: exp.Query) -> int:
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(query, "s")))
    return int(rows)


def _require_rows(plan: Plan, rows: int) -> None:
    if rows == 0:
        raise DataError(f"The source {plan.relation.name!r} has no rows.")
    least = max(m.traits.min_class_size for m in plan.models)
    if rows < least:
        raise InfeasibleError(f"The source has {rows} rows: fewer than the {least} that every class must have.")


def _encode(plan: Plan, engine: Engine, source: exp.Query) -> tuple[list[Coded], tuple[Levels, ...]]:
    coded, bound = [], []
    for attribute in plan.roles.quasi_identifiers:
        values = dictionary(engine, source, attribute.name, plan.expression(attribute))
        hierarchy = plan.hierarchies[attribute.name]
        if hierarchy is None:
            hierarchy = auto(engine, values.table, attribute.name, attribute.type)
        levels = hierarchy.bind(engine, values.table, attribute.name, attribute.type, plan.on_unknown)
        bound.append(levels)
        coded.append(
            code_levels(
                engine, values, levels.tree, levels.leaves, levels.height, levels.size, levels.top, levels.unknown > 0
            )
        )
    return coded, tuple(bound)


def _cell(coded: Coded, level: int) -> Cell:
    values = coded.dictionary
    return Cell(
        name=values.attribute,
        expression=values.expression,
        values=values.table,
        levels=coded.levels,
        labels=coded.labels,
        level=level,
        size=coded.sizes[level],
        constant=level == coded.height,
        typed=level == 0 and not coded.masked,
    )


def _class_relations(
    engine: Engine, counted: Frequency, node: Node, cells: Sequence[Cell], min_size: int
) -> dict[str, str]:
    """Create the tables that describe the classes: the seam that models, metrics and the recoding read."""
    names = {key: engine.fresh(key) for key in ("class_map", "labels", "classes", "class_cells", "domain")}
    engine.create(names["class_map"], class_table(by_class(node.table, len(cells), counted.entity), cells, min_size))
    engine.create(names["labels"], class_labels(names["class_map"], cells))
    suppressed = named(exp.Not(this=col("kept")), "suppressed")
    engine.create(names["classes"], exp.select(col("class_id"), col("n"), suppressed).from_(table(names["class_map"])))
    engine.create(names["class_cells"], class_cells(names["class_map"], cells))
    rows = [
        exp.select(
            named(text(c.dictionary.attribute), "attribute"),
            named(text("full_domain"), "kind"),
            named(number(c.height), "height"),
            named(number(c.domain_size), "leaves"),
            named(cast(exp.null(), "DOUBLE"), "lo"),
            named(cast(exp.null(), "DOUBLE"), "hi"),
            named(cast(number(1), "DOUBLE"), "weight"),
        )
        for c in counted.coded
    ]
    engine.create(names["domain"], union_all(rows))
    engine.drop(node.table, counted.table)
    return names


def _write_rows(plan: Plan, engine: Engine, cells: Sequence[Cell], relations: dict[str, str], path: Path) -> None:
    quasi = {c.name: f"q_{j}" for j, c in enumerate(cells)}
    passed = [a for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]
    kept_columns = [(a.name, plan.expression(a)) for a in passed]
    inner = {a.name: f"p_{i}" for i, a in enumerate(passed)}
    rows = engine.fresh("rows")
    select = shuffled_rows(plan.relation.query, cells, relations["class_map"], kept_columns)
    # Sorted first and labelled second: the sort then moves a class number instead of all labels.
    engine.create(rows, select, _shuffle_keys(plan.seed))
    columns = [(a.name, quasi.get(a.name) or inner[a.name]) for a in plan.roles.published]
    engine.write_parquet(labelled_rows(rows, relations["labels"], columns), path)
    engine.drop(rows)


def _write_proof(plan: Plan, engine: Engine, cells: Sequence[Cell], relations: dict[str, str]) -> None:
    """Write the published quasi-identifiers with the entity key, for the gate alone."""
    entity = plan.entity
    if entity is None:
        return
    rows = engine.fresh("rows")
    select = shuffled_rows(plan.relation.query, cells, relations["class_map"], [(ENTITY, entity)])
    engine.create(rows, select, _shuffle_keys(plan.seed))
    columns = [(c.name, f"q_{j}") for j, c in enumerate(cells)]
    query = labelled_rows(rows, relations["labels"], [*columns, (ENTITY, "p_0")])
    engine.write_parquet(query, Path(relations["proof"]))
    engine.drop(rows)


def _shuffle_keys(seed: int | None) -> dict[str, int]:
    """Return two secret words from the operating system, or words derived from a seed."""
    if seed is None:
        raw = secrets.token_bytes(16)
    else:
        raw = hashlib.sha256(b"duckanon-shuffle" + str(seed).encode()).digest()[:16]
    return {f"key{i}": int.from_bytes(raw[8 * i : 8 * i + 8], "big") for i in range(2)}
