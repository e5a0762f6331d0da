"""Common checks of algorithms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import col, table
from duckanon.errors import DataError, DuckanonError, InfeasibleError
from duckanon.models.k_anonymity import KAnonymity
from duckanon.plan.plan import Plan
from duckanon.plan.request import Request
from duckanon.release import pipeline
from duckanon.release.release import Release
from duckanon.testing.common import require, require_documented, require_frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.release.release import Release

_SEED = 20020


@dataclass(frozen=True)
class Case:
    """A small table with text quasi-identifiers that begin with ``q``, an entity key and a sensitive column."""

    name: str
    rows: tuple[tuple[Any, ...], ...]
    k: int
    limit: float = 0.0
    persons: bool = False

    def table(self, backwards: bool = False) -> pa.Table:
        import pyarrow as pa

        rows = self.rows[::-1] if backwards else self.rows
        width = len(self.rows[0]) - 1
        columns: dict[str, Any] = {f"q{j}": pa.array([r[j] for r in rows], pa.string()) for j in range(width)}
        columns["person"] = pa.array([r[width] for r in rows], pa.int64())
        columns["ill"] = pa.array([f"s{i % 3}" for i in range(len(rows))])
        if backwards:
            columns["ill"] = columns["ill"][::-1]
        return pa.table(columns)

    @property
    def quasi(self) -> list[str]:
        return [f"q{j}" for j in range(len(self.rows[0]) - 1)]


def _cases() -> list[Case]:
    grid = tuple((f"a{i % 4}", f"b{i % 3}", i) for i in range(36))
    skewed = tuple((f"a{min(i % 7, i % 3)}", None if i % 5 == 0 else f"b{i % 2}", i) for i in range(40))
    alone = (*grid, ("a9", "b9", 99))
    visits = tuple((f"a{i % 3}", f"b{i % 2}", i // 4) for i in range(48))
    return [
        Case("nothing to do", grid, 2),
        Case("k = 1", skewed, 1),
        Case("a grid", grid, 5),
        Case("NULL and skew", skewed, 4),
        Case("one outlier", alone, 3),
        Case("one outlier, suppression allowed", alone, 3, limit=0.05),
        Case("half may go", skewed, 7, limit=0.5),
        Case("one class only", grid, 36),
        Case("one person, many rows", visits, 5, persons=True),
        Case("one column", tuple((f"a{i % 5}", i) for i in range(23)), 4),
    ]


def check_algorithm(algorithm: Algorithm | type[Algorithm]) -> None:
    """Raise an AssertionError unless an algorithm does what every algorithm must do.

    What it publishes is counted in Python: every class has at least k members, every row is published or suppressed, no
    more are suppressed than allowed, and every published cell is what the recoding makes of an original. Of an
    algorithm that divides the rows into regions, every published row must stand for an original row of its own; of one
    that permutes values, every column must have the values that it had. The
    same seed gives the same rows for one and two threads, and the order of the source does not matter.

    Parameters
    ----------
    algorithm : Algorithm or subclass
        An instance is made of a class without parameters.

    Examples
    --------
    >>> from duckanon.algorithms import Datafly
    >>> check_algorithm(Datafly)
    """
    instance = algorithm() if isinstance(algorithm, type) else algorithm
    kind = type(instance)
    require(isinstance(instance, Algorithm), f"{kind.__name__} must derive from duckanon.algorithms.Algorithm.")
    require(
        algorithms.get(instance.name) is kind, f"{kind.__name__} is not the algorithm registered as {instance.name!r}."
    )
    require_documented(kind)
    require_frozen(instance)
    require(instance.supports(KAnonymity(2)) in (True, False), f"{kind.__name__}.supports must say True or False.")
    _check_allowed(instance)
    for case in _cases():
        # Where all rows may go an algorithm is free to drop them all, and there is no release to look at.
        if instance.allowed_rows(len(case.rows), case.limit, (KAnonymity(case.k),)) < len(case.rows):
            _check_case(instance, case)
    _check_errors(instance)


def _check_allowed(algorithm: Algorithm) -> None:
    allowed = algorithm.allowed_rows(100, 0.07, (KAnonymity(3),))
    require(isinstance(allowed, int) and allowed >= 0, f"{algorithm.name}: allowed_rows must be an int >= 0.")


def _solve(algorithm: Algorithm, case: Case, threads: int = 2, backwards: bool = False) -> Release:
    engine = open_engine(threads=threads)
    try:
        request = Request(
            data=case.table(backwards),
            quasi_identifiers=case.quasi,
            sensitive=["ill"],
            entity_key="person" if case.persons else None,
            k=case.k,
            algorithm=algorithm,
            suppression_limit=case.limit,
            seed=_SEED,
        )
        return pipeline.run(Plan.resolve(request, engine), engine)
    except BaseException:
        engine.close()
        raise


def _check_case(algorithm: Algorithm, case: Case) -> None:
    where = f"{algorithm.name}, case {case.name!r}"
    with _solve(algorithm, case) as release:
        published = _published(release)
        _check_classes(where, algorithm, case, release, published)
        if algorithm.permutes:
            _check_permuted(where, case, published)
        else:
            (_check_regions if algorithm.partitions else _check_cover)(where, case, release, published)
    with _solve(algorithm, case, threads=1, backwards=True) as other:
        same = _published(other) == published
        require(same, f"{where}: other rows, or another order, when run again, backwards and with one thread.")


def _published(release: Release) -> list[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    table = pq.read_table(release.path)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _check_classes(
    where: str, algorithm: Algorithm, case: Case, release: Release, published: Sequence[tuple[Any, ...]]
) -> None:
    width = len(case.quasi)
    require(len(published) == release.rows_published, f"{where}: the file does not hold the rows it claims.")
    total = len(published) + release.rows_suppressed
    require(total == len(case.rows), f"{where}: {total} of {len(case.rows)} rows are accounted for.")
    allowed = algorithm.allowed_rows(len(case.rows), case.limit, (KAnonymity(case.k),))
    require(release.rows_suppressed <= allowed, f"{where}: more rows are suppressed than allowed.")
    if algorithm.permutes:
        return
    if not case.persons:
        sizes = Counter(row[:width] for row in published)
        require(min(sizes.values()) >= case.k, f"{where}: a class has fewer than k rows.")
        return
    if algorithm.partitions:
        covered = _covered(where, case, release)
        for cells in {r[:width] for r in published}:
            people = {o[-1] for o in case.rows if all(v in c[s] for c, s, v in zip(covered, cells, o, strict=False))}
            require(len(people) >= case.k, f"{where}: a class covers fewer than k persons.")
        return
    mapped = _mapped(case, release)
    members: dict[tuple[Any, ...], set[Any]] = {}
    for row, original in zip(mapped, case.rows, strict=True):
        members.setdefault(row, set()).add(original[-1])
    small = [row for row in {r[:width] for r in published} if len(members[row]) < case.k]
    require(not small, f"{where}: a class has fewer than k persons.")


def _check_cover(where: str, case: Case, release: Release, published: Sequence[tuple[Any, ...]]) -> None:
    ill = case.table().column("ill").to_pylist()
    possible = Counter((*row, s) for row, s in zip(_mapped(case, release), ill, strict=True))
    require(not Counter(published) - possible, f"{where}: a published row is not the recoding of an original row.")


def _check_permuted(where: str, case: Case, published: Sequence[tuple[Any, ...]]) -> None:
    """Every column has the values that it had, as often; single rows cannot be checked."""
    columns = [*zip(*(row[:-1] for row in case.rows), strict=True), case.table().column("ill").to_pylist()]
    for j, values in enumerate(columns):
        lost = Counter(row[j] for row in published) - Counter(values)
        require(not lost, f"{where}: a column has a value more often than the source.")


def _check_regions(where: str, case: Case, release: Release, published: Sequence[tuple[Any, ...]]) -> None:
    """Find an original row of its own for every published row: a matching, grown by augmenting paths."""
    covered = _covered(where, case, release)
    width = len(case.quasi)
    originals = [(*row[:-1], ill) for row, ill in zip(case.rows, case.table().column("ill").to_pylist(), strict=True)]
    fitting = {
        row: [
            i
            for i, original in enumerate(originals)
            if original[width] == row[width] and all(original[j] in covered[j].get(row[j], ()) for j in range(width))
        ]
        for row in set(published)
    }
    owner: dict[int, int] = {}

    def placed(number: int, tried: set[int]) -> bool:
        for i in fitting[published[number]]:
            if i not in tried:
                tried.add(i)
                if i not in owner or placed(owner[i], tried):
                    owner[i] = number
                    return True
        return False

    matched = all(placed(number, set()) for number in range(len(published)))
    require(matched, f"{where}: a published row covers no original row that is not taken by another.")


def _covered(where: str, case: Case, release: Release) -> list[dict[Any, set[Any]]]:
    """Return, column by column, the original values that each cell stands for."""
    on = exp.and_(*(exp.EQ(this=col(c, "v"), expression=col(c, "o")) for c in ("j", "code")))
    query = exp.select(col("j", "o"), col("cell", "o"), col("value", "v"))
    query = query.from_(table(release.relations.table("covers"), "o"))
    covered_by: list[dict[Any, set[Any]]] = [{} for _ in case.quasi]
    for j, cell, value in release.engine.rows(query.join(table(release.relations.table("column_values"), "v"), on=on)):
        covered_by[j].setdefault(cell, set()).add(value)
    for j, cells in enumerate(covered_by):
        values = {row[j] for row in case.rows}
        for cell, covered in cells.items():
            named = {cell} if cell in values else values if cell == "*" else covered
            require(covered == named, f"{where}: a cell does not stand for the values that its label names.")
    return covered_by


def _mapped(case: Case, release: Release) -> list[tuple[Any, ...]]:
    """Return every original row as the recoding would publish it."""
    maps = []
    for name in case.quasi:
        pairs = release.recoding.mapping(name)
        maps.append(dict(zip(pairs.column(0).to_pylist(), pairs.column(1).to_pylist(), strict=True)))
    return [tuple(m[v] for m, v in zip(maps, row[:-1], strict=True)) for row in case.rows]


def _check_errors(algorithm: Algorithm) -> None:
    few = Case("fewer rows than k", tuple((f"a{i}", "b", i) for i in range(4)), 5)
    person = Case("one person only", tuple((f"a{i}", "b", 1) for i in range(20)), 5, persons=True)
    for case in (few, person):
        try:
            _solve(algorithm, case).close()
        except InfeasibleError:
            continue
        except DuckanonError as error:
            raise AssertionError(f"{algorithm.name}, case {case.name!r}: {type(error).__name__} is raised.") from None
        raise AssertionError(f"{algorithm.name}, case {case.name!r}: an InfeasibleError must be raised.")
    engine = open_engine()
    try:
        empty = Case("no rows", (("a", "b", 1),), 2).table().slice(0, 0)
        request = Request(data=empty, quasi_identifiers=["q0", "q1"], k=2, algorithm=algorithm)
        pipeline.run(Plan.resolve(request, engine), engine).close()
    except DataError:
        return
    finally:
        engine.close()
    raise AssertionError(f"{algorithm.name}: a table without rows must raise a DataError.")
