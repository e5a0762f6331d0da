"""Carry out a plan: encode, search, recode, materialise, and let the gate decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import POPULATION, Problem, Tally
from duckanon.algorithms.full_domain.local import Pass, search_passes
from duckanon.encoding.counting import count_domain, count_rows
from duckanon.encoding.dictionaries import (
    Coded,
    Dictionary,
    Frequency,
    code_levels,
    dictionaries,
    dictionary,
    frequency,
    published_type,
)
from duckanon.engine.private_files import PrivateFolder, file_digest, sweep
from duckanon.engine.sql.recode import Cell, recoded_counts
from duckanon.engine.sql.relations import (
    DIALECT,
    LazyTable,
    cast,
    col,
    left,
    named,
    number,
    param,
    registered,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.engine.threads import workers
from duckanon.errors import DataError, InfeasibleError, ParameterError, PrivacyViolation
from duckanon.hierarchy import Hierarchy, Levels, auto
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.dates import Dates
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles
from duckanon.hierarchy.masks import Suppress
from duckanon.hierarchy.shuffle import shuffled
from duckanon.io.disk import sync
from duckanon.models.base import sensitive_of
from duckanon.plan.publication import has_distance
from duckanon.plan.roles import Attribute, Role
from duckanon.recoding.coded_rows import RowCoder
from duckanon.recoding.evidence import Evidence
from duckanon.recoding.partition_axes import place_column
from duckanon.recoding.permutation import Looker, PermutedRows, secret_of
from duckanon.recoding.recoders import FullDomain, Local, Recoder, Regions
from duckanon.release.cell_meaning import Shown
from duckanon.release.gate import Reference, check_release
from duckanon.release.node_measure import NodeMeasure
from duckanon.release.permutation_gate import require_source
from duckanon.release.release import Release, require_no_leaks
from duckanon.release.stages.partition import Divider
from duckanon.release.truth import Claim, require_truth
from duckanon.release.written_rows import hidden_person, require_types, shuffle_keys, write_proof, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.algorithms.full_domain.listing import Seen
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan


@dataclass(frozen=True)
class Seam:
    """What may be put between the recoding and the gate: by tests, which make sure that the gate finds every lie.

    ``recoder`` is given what recodes rows and returns what is used in its place; ``written`` is given the file of the
    release before anything of it is checked.
    """

    recoder: Callable[[Any], Any] = lambda recoder: recoder
    written: Callable[[Path], None] = lambda path: None


def make(plan: Plan, engine: Engine, stage: Path | None = None, seam: Seam | None = None) -> Release:
    """Carry out a plan: encode, search, recode, materialise, and let the gate decide.

    ``stage`` is a folder on the file system of the later target, so that publishing is a rename. All passes over a
    table read one snapshot of it.
    """
    with engine.snapshot():
        return _carry_out(plan, engine, stage, seam or Seam())


@dataclass(frozen=True)
class Prepared:
    """A plan whose source was read: the problem to be solved, and what the recoding needs to know besides."""

    problem: Problem
    bound: tuple[Levels, ...]
    nodes: str | None
    """The hierarchies of sensitive columns, for the gate."""
    used: tuple[Hierarchy, ...] = ()
    """The hierarchies of the quasi-identifiers, those that were made among them."""


def prepare(plan: Plan, engine: Engine) -> Prepared:
    """Read the source once: dictionaries, hierarchies, and the counts that searches work on."""
    source = plan.relation.query
    rows = count_rows(engine, source)
    _require_rows(plan, rows)
    with engine.progress.step("encode", rows):
        coded, bound, used = _encode(plan, engine, source)
        counted = frequency(engine, source, coded, hidden_person(plan.entity), expected=rows)
        known, nodes = _sensitive(plan, engine, source)
        tallies = _tallies(plan, engine, source, coded, known, rows)
    if counted.rows != rows:
        raise DataError("The source changed while it was read: its number of rows differs between two passes.")
    problem = _problem(plan, engine, counted, tallies)
    return Prepared(replace(problem, measure=NodeMeasure(plan, engine, counted, bound)), bound, nodes, used)


def _problem(plan: Plan, engine: Engine, counted: Frequency, tallies: dict[str, Tally]) -> Problem:
    names = [a.name for a in plan.roles.quasi_identifiers]
    return Problem(
        engine,
        counted,
        plan.models,
        plan.algorithm.allowed_rows(counted.rows, plan.suppression_limit, plan.models),
        plan.unit,
        tallies,
        plan.search_options.spans(names, [c.height for c in counted.coded]),
        tuple(plan.search_options.weights.get(name, 1.0) for name in names),
    )


@dataclass(frozen=True)
class _Solved:
    """What a search found: how rows are recoded, and how many are not published."""

    prepared: Prepared
    recoder: Recoder
    suppressed: int
    searched: dict[str, Any]
    seen: Seen | None = None


def _carry_out(plan: Plan, engine: Engine, stage: Path | None, seam: Seam) -> Release:
    solve = _divide if plan.algorithm.partitions else _search
    if stage is not None:
        sweep(stage)
    folder = PrivateFolder(stage)
    try:
        path = folder.path / "release.parquet"
        return _materialise(plan, solve(plan, engine, path), folder, path, stage is not None, seam)
    except BaseException:
        folder.close()
        raise


def _search(plan: Plan, engine: Engine, path: Path) -> _Solved:
    """Find a node of the lattice, or several, one after the other for what is left."""
    prepared = prepare(plan, engine)
    problem = prepared.problem
    rows = problem.frequency.rows
    with engine.progress.step("search", unit="nodes"):
        if plan.search_options.iterative:
            passes = search_passes(plan.algorithm, problem)
        else:
            passes = [Pass(problem, plan.algorithm.search(problem))]
    if passes[0].node.outlier_rows == rows:
        raise InfeasibleError(
            f"All {rows} rows would be suppressed: no class has {problem.min_size} {plan.unit}. Lower the suppression "
            "limit so that values are generalized instead."
        )
    # Those of the first pass are the problem's own, which the release keeps: its lattice may be asked for.
    for one in passes[1:]:
        engine.drop(*(tally.frequency.table for tally in one.problem.tallies.values()))
    if len(passes) == 1:
        recoder: Recoder = FullDomain(plan, engine, problem.frequency, prepared.bound, passes[0], path)
    else:
        recoder = Local(plan, engine, problem.frequency, prepared.bound, passes, path)
    first = passes[0].node
    return _Solved(prepared, recoder, passes[-1].node.outlier_rows, first.searched, first.seen)


def _divide(plan: Plan, engine: Engine, path: Path) -> _Solved:
    """Divide the rows into regions."""
    source = plan.relation.query
    rows = count_rows(engine, source)
    _require_rows(plan, rows)
    with engine.progress.step("encode", rows):
        coded, bound, hierarchies = _encode(plan, engine, source)
        known, nodes = _sensitive(plan, engine, source)
        quasi = zip(plan.roles.quasi_identifiers, coded, hierarchies, strict=True)
        placed = [place_column(plan, engine, *column) for column in quasi]
        # A division that was made before is found again on the axes of today.
        plan = replace(plan, algorithm=plan.algorithm.on_axes(engine, coded, placed))
    counted = Frequency(engine.fresh("frequency"), tuple(coded), rows)
    problem = _problem(plan, engine, counted, {})
    totals = {name: (values.totals, values.ancestors) for name, values in known.items()}
    dictionaries = {name: values.dictionary for name, values in known.items()}
    coder = RowCoder(plan, engine, coded, placed, dictionaries, shuffle_keys(plan.seed))
    if plan.algorithm.permutes:
        division = Divider(coder, totals, problem.allowed, Looker(secret_of(plan.seed))).divide(rows)
        recoder: Recoder = PermutedRows(plan, engine, counted, division)
        # No value is generalized: hierarchies at most said what is near what.
        prepared = Prepared(problem, (), nodes)
        return _Solved(prepared, recoder, division.suppressed, division.searched)
    division = Divider(coder, totals, problem.allowed).divide(rows)
    recoder = Regions(plan, engine, counted, bound, division)
    prepared = Prepared(problem, bound, nodes, hierarchies)
    return _Solved(prepared, recoder, division.suppressed, division.searched)


def _materialise(plan: Plan, solved: _Solved, folder: PrivateFolder, path: Path, staged: bool, seam: Seam) -> Release:
    prepared, recoder, suppressed = solved.prepared, seam.recoder(solved.recoder), solved.suppressed
    engine, counted, relations = prepared.problem.engine, prepared.problem.frequency, recoder.relations
    with engine.progress.step("recode", counted.rows):
        write_rows(plan, recoder, path, counted.rows)
    seam.written(path)
    written = engine.parquet([path])
    published = count_rows(engine, written)
    # What is read here is what the gate reads; a file that changes after that has another digest, and is checked again.
    with engine.progress.step("gate", published), workers(min(2, engine.threads())) as pool:
        digest = pool.submit(_settled, path, staged)
        leaks = pool.submit(require_no_leaks, path)
        types = require_types(plan, engine, written)
        reference = _reference(plan, engine, recoder.cells, prepared.nodes)
        evidence = _evidence(plan, engine, recoder, shuffle_keys(plan.seed))
        reference, proof = replace(reference, evidence=evidence), None
        if evidence is None and plan.entity is not None:
            proof = folder.path / "proof.parquet"
            write_proof(plan, recoder, proof)
        if suppressed > prepared.problem.allowed:
            raise PrivacyViolation("The gate refused the release: more rows are suppressed than allowed.")
        if published + suppressed != counted.rows:
            raise PrivacyViolation("The gate refused the release: rows in are not rows published plus suppressed.")
        told = recoder.beside(_passed(plan), _person(plan))
        if told is not None:
            told = replace(told, params=shuffle_keys(None))
            published_rows = require_truth(engine, told, _claim(plan, engine, prepared, types), suppressed)
            reference = replace(reference, published=published_rows)
        elif evidence is None:
            raise PrivacyViolation("The gate refused the release: nothing says which of its rows is whose.")
        checks = check_release(
            engine,
            written,
            plan.roles,
            plan.models,
            plan.unit,
            published,
            proof,
            reference,
            plan.published_as,
        )
        leaks.result()
    return Release(
        plan=plan,
        engine=engine,
        path=path,
        columns=tuple(engine.columns(written)),
        rows_in=counted.rows,
        rows_published=published,
        rows_suppressed=suppressed,
        checks=checks,
        recoding=recoder.recoding(),
        levels=prepared.bound,
        relations=relations,
        folder=folder,
        reference=reference,
        problem=prepared.problem,
        searched=solved.searched,
        seen=solved.seen,
        digest=digest.result(),
        recoder=recoder,
        proof=proof,
        used=prepared.used,
    )


def _evidence(plan: Plan, engine: Engine, recoder: Recoder, keys: Mapping[str, int]) -> Evidence | None:
    """Return what ties permuted rows to those of the source, and make sure that it has no others."""
    passed, person = _passed(plan), _person(plan)
    evidence = recoder.evidence(passed, person, keys)
    if evidence is None:
        return None
    source = [plan.expression(a) for a in plan.roles.quasi_identifiers] + [e for _, e in passed]
    if person is not None:
        source.append(person)
    require_source(engine, evidence, plan.relation.query, source, keys if evidence.persons else {})
    return evidence


def _passed(plan: Plan) -> list[tuple[str, exp.Expr]]:
    """Return the columns that are published as they are."""
    return [(a.name, plan.expression(a)) for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]


def _person(plan: Plan) -> exp.Expr | None:
    """Return a keyed hash of the entity key."""
    return hidden_person(plan.entity, param("key0"), param("key1"))


_READ = (Intervals, Cuts, Quantiles, Dates, Suppress, Auto)
"""Rules whose labels say themselves what they stand for."""


def _claim(plan: Plan, engine: Engine, prepared: Prepared, types: Mapping[str, str]) -> Claim:
    """Return what rows side by side are compared with: nothing in it comes from a recoding."""
    quasi, passed = plan.roles.quasi_identifiers, _passed(plan)
    coded = prepared.problem.frequency.coded
    shown = []
    for attribute, own, levels, hierarchy in zip(quasi, coded, prepared.bound, prepared.used, strict=True):
        given = plan.hierarchies[attribute.name]
        listed = None
        if not has_distance(attribute.type) and given is not None and given.levels is not None:
            listed = _listed_leaves(engine, given.levels)
        values = partial(_labelled_values, own.dictionary.table, levels, listed)
        plain = hierarchy.levels is None and isinstance(hierarchy.rule, _READ) and plan.algorithm.dealt is None
        kind = published_type(attribute.type)
        output = plan.output[attribute.name] if attribute.name not in plan.within else "interval"
        shown.append(Shown(attribute.name, kind, output, values, levels.height, levels.top, not plain))
    return Claim(
        plan.relation.query,
        [plan.expression(a) for a in quasi],
        [e for _, e in passed],
        _person(plan),
        shown,
        [plan.published_as[a.name] for a in quasi],
        [name for name, _ in passed],
        types,
    )


def _settled(path: Path, staged: bool) -> str:
    """Return the digest of a file; one that is to be published is on its way to the disk then."""
    if staged:
        # Whoever publishes it syncs it again, and says what is wrong.
        with suppress(OSError):
            sync(path)
    return file_digest(path)


def _require_rows(plan: Plan, rows: int) -> None:
    if rows == 0:
        raise DataError(f"The source {plan.relation.name!r} has no rows.")
    least = max(m.traits.min_class_size for m in plan.models)
    if rows < least:
        raise InfeasibleError(f"The source has {rows} rows: fewer than the {least} that every class must have.")


def _listed_leaves(engine: Engine, levels: pa.Table) -> LazyTable:
    """Return ``(leaf, at)``: where a hierarchy lists its leaves."""
    import numpy as np
    import pyarrow as pa

    leaves = {"leaf": levels.column(0), "at": np.arange(len(levels), dtype=np.int64)}
    return registered(engine, "leaves", pa.table(leaves))


def _labelled_values(values: str, levels: Levels, listed: LazyTable | None) -> exp.Select:
    """Return ``(value, text, known, l1, ..., place)`` of the values of a column, with their labels.

    ``place`` is their own order, or that in which a hierarchy lists its leaves; values that it does not list come after
    all others there, and NULL comes last.
    """
    labels = [col(name, "t") for name in ("known", *(f"l{i}" for i in range(1, levels.height + 1)))]
    query = exp.select(col("value", "v"), col("text", "v"), *labels).from_(table(values, "v"))
    query = query.join(table(levels.tree, "t"), on=exp.EQ(this=col("code", "t"), expression=col("code", "v")))
    if listed is None:
        return query.select(named(col("code", "v"), "place"))
    on = exp.EQ(this=col("leaf", "l"), expression=col("text", "v"))
    ends = [exp.Is(this=col("value", "v"), expression=exp.null()), col("at", "l"), col("code", "v")]
    order = exp.Order(expressions=[exp.Ordered(this=end, desc=False, nulls_first=False) for end in ends])
    rank = exp.Window(this=exp.RowNumber(), order=order)
    return query.join(left(table(listed, "l"), on)).select(named(rank, "place"))


def _encode(
    plan: Plan, engine: Engine, source: exp.Query
) -> tuple[list[Coded], tuple[Levels, ...], tuple[Hierarchy, ...]]:
    """Return the quasi-identifiers with the codes of their values and levels, and the hierarchies that were used."""
    coded, bound, used, columns = [], [], [], []
    for attribute in plan.roles.quasi_identifiers:
        further = _known_values(plan, engine, attribute)
        if plan.population is not None:
            value = named(plan.population_value(attribute), "value")
            people: exp.Query = exp.select(value).distinct().from_(subquery(plan.population.query, "p"))
            further = people if further is None else union_all([further, people])
        columns.append((attribute.name, plan.expression(attribute), further))
    every = dictionaries(engine, source, columns)
    for attribute, values in zip(plan.roles.quasi_identifiers, every, strict=True):
        hierarchy = plan.hierarchies[attribute.name]
        if hierarchy is None or isinstance(hierarchy.rule, Auto):
            hierarchy = auto(engine, values.table, attribute.name, attribute.type, pairs=plan.algorithm.partitions)
        levels = hierarchy.bind(engine, values.table, attribute.name, attribute.type, plan.on_unknown, values.texts)
        if plan.algorithm.dealt is not None:
            levels = shuffled(engine, levels, plan.algorithm.dealt)
        used.append(hierarchy)
        bound.append(levels)
        coded.append(code_hierarchy(engine, values, levels))
    return coded, tuple(bound), tuple(used)


def _known_values(plan: Plan, engine: Engine, attribute: Attribute) -> exp.Query | None:
    """Return ``(value, [first])`` that must have codes; what is published as text has the order of ``first``."""
    known = plan.algorithm.known_values(engine, attribute.name)
    if known is None:
        return None
    kind = published_type(attribute.type)
    query = exp.select(named(cast(col("value", "k"), kind), "value")).from_(subquery(known, "k"))
    if kind != attribute.type and not attribute.type.upper().startswith(("JSON", '"NULL"')):
        own = exp.DataType.build(attribute.type, dialect=DIALECT)
        query = query.select(named(exp.TryCast(this=col("value", "k"), to=own), "first"))
    return query


@dataclass(frozen=True)
class _Values:
    """The values of a sensitive column, how often each occurs, and the nodes over them where a model climbs."""

    dictionary: Dictionary
    totals: Any
    ancestors: tuple[Any, ...] = ()


def _sensitive(plan: Plan, engine: Engine, source: exp.Query) -> tuple[dict[str, _Values], str | None]:
    """Number the values of the sensitive columns that models look at.

    The second result is ``domain_nodes``, the hierarchies of sensitive columns, where a model measures along them.
    """
    types = {a.name: a for a in plan.roles.attributes}
    climbing = {getattr(m, "sensitive", None) for m in plan.models if m.needs_hierarchy}
    found: dict[str, _Values] = {}
    nodes: list[exp.Query] = []
    every = plan.roles.named(Role.SENSITIVE) if plan.algorithm.counts_values else []
    for name in dict.fromkeys([*sensitive_of(plan.models), *every]):
        attribute = types[name]
        values = dictionary(engine, source, name, plan.expression(attribute))
        ancestors: tuple[Any, ...] = ()
        if name in climbing:
            levels = plan.sensitive_hierarchies[name].bind(engine, values.table, name, attribute.type, plan.on_unknown)
            own = code_hierarchy(engine, values, levels)
            codes = [col("code"), *(col(f"c{level}") for level in range(1, own.height + 1))]
            climbed = engine.arrow(exp.select(*codes).from_(table(own.levels)).order_by(col("code")))
            ancestors = tuple(column.to_numpy() for column in climbed.columns)
            nodes += node_queries(own)
        counts = engine.arrow(exp.select(col("n")).from_(table(values.table)).order_by(col("code")))
        found[name] = _Values(values, counts.column("n").to_numpy(), ancestors)
    domain_nodes = None
    if nodes:
        domain_nodes = engine.fresh("domain_nodes")
        engine.create(domain_nodes, union_all(nodes))
    return found, domain_nodes


def _tallies(
    plan: Plan, engine: Engine, source: exp.Query, coded: Sequence[Coded], known: dict[str, _Values], rows: int
) -> dict[str, Tally]:
    """Count sensitive values and the population by the codes of the quasi-identifiers, as far as models need them."""
    tallies = {
        name: Tally(frequency(engine, source, coded, value=own.dictionary, expected=rows), own.totals, own.ancestors)
        for name, own in known.items()
    }
    if plan.population is not None:
        tallies[POPULATION] = Tally(_population_frequency(plan, engine, coded))
    return tallies


def code_hierarchy(engine: Engine, values: Dictionary, levels: Levels) -> Coded:
    """Give the labels of a bound hierarchy their codes."""
    tables = (levels.tree, levels.leaves, levels.height, levels.size, levels.top)
    return code_levels(engine, values, *tables, levels.unknown > 0, levels.arrays)


def node_queries(coded: Coded) -> list[exp.Query]:
    """Return, level by level, ``(attribute, value, level, node)``: the node over each value of a column."""
    found: list[exp.Query] = []
    for level in range(coded.height + 1):
        node = col("code", "v") if level == 0 else col(f"c{level}", "k")
        columns = [
            named(text(coded.dictionary.attribute), "attribute"),
            named(col("text", "v"), "value"),
            named(cast(number(level), "BIGINT"), "level"),
            named(cast(node, "BIGINT"), "node"),
        ]
        on = exp.EQ(this=col("code", "v"), expression=col("code", "k"))
        found.append(
            exp.select(*columns).from_(table(coded.dictionary.table, "v")).join(table(coded.levels, "k"), on=on)
        )
    return found


def _population_frequency(plan: Plan, engine: Engine, coded: Sequence[Coded]) -> Frequency:
    """Count the population by the codes of the quasi-identifiers."""
    people = [
        replace(c, dictionary=replace(c.dictionary, expression=plan.population_value(a)))
        for c, a in zip(coded, plan.roles.quasi_identifiers, strict=True)
    ]
    if plan.population is None:
        raise ParameterError("The plan has no population.")
    return replace(frequency(engine, plan.population.query, people), coded=tuple(coded))


def _reference(plan: Plan, engine: Engine, cells: Sequence[Cell], nodes: str | None) -> Reference:
    """Return what the gate compares the release with: the source's sensitive values, and the population recoded."""
    types = {a.name: a for a in plan.roles.attributes}
    sensitive = {name: plan.expression(types[name]) for name in sensitive_of(plan.models)}
    values = count_domain(engine, plan.relation.query, sensitive) if sensitive else None
    population = None
    if plan.population is not None:
        expressions = [plan.population_value(a) for a in plan.roles.quasi_identifiers]
        population = engine.fresh("population")
        engine.create(population, recoded_counts(plan.population.query, cells, expressions))
    return Reference(values, nodes, population)
