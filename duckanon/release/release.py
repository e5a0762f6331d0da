"""The release: the recoded rows in a private, checked Parquet file, with the results of the gate, loss and recoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon._version import __version__
from duckanon.engine.process import PrivateFolder, file_digest
from duckanon.engine.sql.classes import sizes_of_classes
from duckanon.engine.sql.relations import Column, call, col, named, number, subquery, table
from duckanon.errors import ConfigError, ParameterError, UnsupportedError
from duckanon.hierarchy import Levels
from duckanon.metrics.base import headlines, measure, metric_parameters
from duckanon.models.base import sensitive_of
from duckanon.plan.plan import has_distance
from duckanon.recoding.base import Recoding
from duckanon.release.gate import Homogeneity, Reference, check_release, require_no_leaks
from duckanon.release.permutation_gate import highest_linkage
from duckanon.release.results import Checks, Lattice, Measures

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.listing import Seen
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import RelationTables
    from duckanon.hierarchy import Hierarchy
    from duckanon.hierarchy.match import Match
    from duckanon.plan.plan import Plan
    from duckanon.recoding.base import Recoder
    from duckanon.release.stages.check import Checked
    from duckanon.release.stages.encode import Encoded
    from duckanon.release.stages.recode import Recoded
    from duckanon.release.stages.search import Found
    from duckanon.release.stages.write import Written

SEEDED = "seeded: for tests, not for release"


_MOST_BARS = 10


def size_edges(smallest: int, largest: int) -> list[int]:
    """Return where ranges of sizes begin: of equal width where sizes differ little, else 1, 2, 5, 10, 20, ...

    Examples
    --------
    >>> size_edges(5, 9), size_edges(5, 24), size_edges(5, 400), size_edges(7, 7)
    ([5, 6, 7, 8, 9], [5, 7, 9, 11, 13, 15, 17, 19, 21, 23], [5, 10, 20, 50, 100, 200], [7])
    """
    if largest < 5 * smallest or largest - smallest < _MOST_BARS:
        width = -(-(largest - smallest + 1) // _MOST_BARS)
        return list(range(smallest, largest + 1, width))
    edges, power = [], 1
    while power <= largest:
        edges += [power * m for m in (1, 2, 5) if power * m <= largest]
        power *= 10
    return [smallest, *(edge for edge in edges if edge > smallest)]


def _spread(pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return of how many values cells stand for, by rows: the median, and the share of cells that stand for one.

    Examples
    --------
    >>> _spread([(1, 10), (5, 20), (9, 10)])
    {'median': 5, 'exact': 0.25}
    """
    ordered = sorted(pairs)
    total, seen = sum(n for _, n in ordered), list(accumulate(n for _, n in ordered))
    median = next(leaves for (leaves, _), so_far in zip(ordered, seen, strict=True) if 2 * so_far >= total)
    return {"median": median, "exact": sum(n for leaves, n in ordered if leaves <= 1) / total if total else 0.0}


@dataclass(repr=False)
class Release:
    """A recoding of the quasi-identifiers, and the checks of the file that it made.

    The rows are in ``path``, a Parquet file in a private folder that ``close`` removes; ``write`` publishes it.
    """

    plan: Plan
    engine: Engine = field(repr=False)
    path: Path
    columns: tuple[Column, ...]
    rows_in: int
    rows_published: int
    rows_suppressed: int
    checks: Checks
    recoding: Recoding
    levels: tuple[Levels, ...] = field(repr=False)
    relations: RelationTables = field(repr=False)
    folder: PrivateFolder = field(repr=False)
    reference: Reference = field(default_factory=Reference, repr=False)
    problem: Problem | None = field(default=None, repr=False)
    searched: dict[str, Any] = field(default_factory=dict, repr=False)
    """Statistics of the search, as far as the algorithm has them: nodes, visits, value, bound and gap."""
    seen: Seen | None = field(default=None, repr=False)
    digest: str | None = field(default=None, repr=False)
    """The SHA-256 of the file that was checked."""
    recoder: Recoder | None = field(default=None, repr=False)
    """How rows of the source are published, for stored recodings and for attacks."""
    used: tuple[Hierarchy, ...] = field(default=(), repr=False)
    """The hierarchies of the quasi-identifiers, given or made."""

    persons: Path | None = field(default=None, repr=False)
    """The published quasi-identifiers with the hashed entity keys of their rows, where persons are counted."""
    homogeneity: tuple[Homogeneity, ...] = ()
    """How many published classes have one value of each sensitive column; none where classes cannot be seen."""
    proposals: tuple[tuple[str, Match], ...] = ()
    """Quasi-identifiers without a hierarchy, and the ready-made one that fits."""
    remarks: tuple[str, ...] = ()
    """Further notes for the reports."""
    _closed: bool = field(default=False, init=False, repr=False)

    @classmethod
    def of(
        cls,
        plan: Plan,
        engine: Engine,
        folder: PrivateFolder,
        encoded: Encoded,
        found: Found,
        recoded: Recoded,
        written: Written,
        checked: Checked,
    ) -> Release:
        """Return the release that the stages of the pipeline made."""
        recoder = recoded.recoder
        return cls(
            plan=plan,
            engine=engine,
            path=written.path,
            columns=checked.columns,
            rows_in=encoded.rows,
            rows_published=checked.rows,
            rows_suppressed=found.suppressed,
            checks=Checks(checked.checks),
            recoding=recoder.recoding(),
            levels=recoded.levels,
            relations=recoder.relations,
            folder=folder,
            reference=checked.reference,
            problem=encoded.problem,
            searched=found.search_stats,
            seen=found.seen,
            digest=checked.digest,
            recoder=recoder,
            used=recoded.hierarchies,
            persons=written.persons,
            homogeneity=checked.homogeneity,
            proposals=encoded.proposals,
        )

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

    @property
    def hidden(self) -> bool:
        """Whether the models are about groups that cannot be seen in the rows."""
        return self.reference.evidence is not None

    def require_visible(self, what: str) -> None:
        """Raise an UnsupportedError where classes cannot be seen, so that nothing can count them."""
        if self.hidden:
            raise UnsupportedError(
                f"{what} looks at classes, and those of this release are not visible by design: "
                f"{self.plan.algorithm.name} permutes values within groups, so that equal rows are no class. Its "
                "promise was checked by the gate (release.checks); duckanon.attack measures what it keeps from others."
            )

    def classes(self) -> pa.Table:
        """Return the equivalence classes of the release: their published values and number of rows.

        The number is the column ``n``, or ``n_`` where a published column has that name.
        """
        self.require_visible("classes()")
        query, size = sizes_of_classes(self.query(), self.recoding.columns)
        order = exp.Ordered(this=col(size), desc=True)
        return self.engine.arrow(query.order_by(order, *(col(name) for name in self.recoding.columns)))

    def measure(self, metrics: Sequence[str] | None = None) -> Measures:
        """Return what the release lost, by the metrics named or by all that can be computed."""
        return Measures(measure(self.engine, self.relations, metrics, metric_parameters(self.plan.models)))

    def lattice(self, metrics: Sequence[str] | None = None, pareto: bool = False) -> Lattice:
        """Return the nodes that the search visited or inferred, with the metrics named.

        The columns are those of ``duckanon.lattice``. Inferred nodes have ``anonymous`` only; the Pareto front is that
        of the visited nodes. The default metric is the one that was minimised, or "loss". Of a lattice with more than
        200,000 nodes only visited ones are listed. Of an iterative release the nodes are those of the first pass, which
        may leave half of the rows to the next.
        """
        from duckanon.algorithms.full_domain.listing import tabulate

        if self.problem is None or self.seen is None:
            raise UnsupportedError(f"The algorithm {self.plan.algorithm.name} does not say which nodes it visited.")
        problem = replace(self.problem, allowed=self.seen.allowed)
        wanted = [self.searched.get("metric", "loss")] if metrics is None else metrics
        return Lattice(tabulate(problem, wanted, pareto=pareto, seen=self.seen), wanted)

    def summary(self) -> dict[str, Any]:
        """Return what reports show, as plain values: promise, checks and loss. It has no cell value."""
        plan = self.plan.described()
        hierarchies = [
            {
                "attribute": level.attribute,
                "origin": level.origin,
                "height": level.height,
                # Regions have no level.
                "level": self.recoding.levels.get(level.attribute),
                "leaves": level.size,
            }
            for level in self.levels
        ]
        share = self.rows_suppressed / self.rows_in if self.rows_in else 0.0
        return {
            "duckanon": __version__,
            "engine": {"name": self.engine.name, "version": self.engine.version},
            **{k: plan[k] for k in ("source", "roles", "unit", "promise", "algorithm")},
            **{k: plan[k] for k in ("suppression_limit", "steering")},
            "hierarchies": hierarchies,
            "found": {
                "rows_in": self.rows_in,
                "rows_published": self.rows_published,
                "rows_suppressed": self.rows_suppressed,
                "suppressed_share": share,
                **self._class_sizes,
            },
            **({"homogeneity": [h.to_dict() for h in self.homogeneity]} if self.homogeneity else {}),
            "search": {**({"pass": 1} if self.plan.search_options.iterative else {}), **self.searched},
            "checks": [c.to_dict() for c in self.checks],
            "class_sizes": self._size_counts,
            "loss": self._loss,
            **({} if self.hidden else {"cells": self._cells}),
            **({"permutation": self._permutation} if self.hidden else {"bounds": self.plan.bounds}),
            **{k: plan[k] for k in ("output", "within") if k in plan},
            "seeded": self.plan.seed is not None,
            "notes": self._notes(),
            "seconds": {step: round(s, 3) for step, s in self.engine.progress.seconds.items()},
        }

    # Classes do not change: what several reports show is counted once.

    @cached_property
    def _loss(self) -> list[dict[str, Any]]:
        if self.hidden:
            return []
        more = getattr(self.plan.algorithm, "reported", ())
        if not any(has_distance(a.type) for a in self.plan.roles.quasi_identifiers):
            more = ()
        with self.engine.progress.step("measure", self.rows_published):
            return [m.to_dict() for m in self.measure([*headlines(), *more])]

    @cached_property
    def _permutation(self) -> dict[str, Any]:
        """Return which columns were permuted, and their mutual information before and after."""
        return {} if self.recoder is None else {**self.recoder.described(), "linkage": self._linkage()}

    def _linkage(self) -> float | None:
        """Return the highest probability of a link, for an adversary who knows all quasi-identifiers and the rule."""
        if self.reference.evidence is None:
            return None
        return highest_linkage(self.engine, self.reference.evidence)

    @cached_property
    def _class_sizes(self) -> dict[str, Any]:
        """Return how many classes are published, and their sizes in rows or persons, whichever k counts."""
        quantiles = [call("quantile_disc", col("units"), number(q)) for q in (0.25, 0.5, 0.75)]
        row = self.engine.row(
            exp.select(
                exp.Count(this=exp.Star()),
                exp.Min(this=col("units")),
                quantiles[0],
                quantiles[1],
                exp.Avg(this=col("units")),
                quantiles[2],
                exp.Max(this=col("units")),
            )
            .from_(table(self.relations.table("class_map")))
            .where(col("kept"))
        )
        names = ("min", "q25", "median", "mean", "q75", "max")
        return {"classes": int(row[0]), "class_size": dict(zip(names, row[1:], strict=True))}

    @cached_property
    def _size_counts(self) -> list[dict[str, int]]:
        """Return how many classes have sizes within a few ranges, none of which says more than the release does."""
        if not self._class_sizes["classes"]:
            return []
        smallest, largest = (int(self._class_sizes["class_size"][key]) for key in ("min", "max"))
        edges = size_edges(smallest, largest)
        unit = col("units")
        # The first condition that holds decides; the last one always does.
        place = exp.case()
        for i, edge in enumerate([*edges[1:], largest + 1]):
            place = place.when(exp.LT(this=unit.copy(), expression=number(edge)), number(i))
        binned = exp.select(named(place, "place")).where(col("kept"))
        query = exp.select(col("place"), exp.Count(this=exp.Star()))
        binned = binned.from_(table(self.relations.table("class_map")))
        query = query.from_(subquery(binned, "b")).group_by(col("place"))
        counts = {int(i): int(n) for i, n in self.engine.rows(query)}
        lasts = [*(edge - 1 for edge in edges[1:]), largest]
        ranges = enumerate(zip(edges, lasts, strict=True))
        return [{"from": first, "to": last, "classes": counts.get(i, 0)} for i, (first, last) in ranges]

    @cached_property
    def _cells(self) -> list[dict[str, Any]]:
        """Return for each quasi-identifier how many values it had, and how many of them a published cell stands for."""
        query = exp.select(col("attribute"), col("leaves"), exp.Sum(this=col("n"))).from_(
            table(self.relations.table("cell_rows"))
        )
        counts: dict[str, list[tuple[int, int]]] = {}
        for attribute, leaves, n in self.engine.rows(query.group_by(col("attribute"), col("leaves"))):
            if leaves is not None:
                counts.setdefault(attribute, []).append((int(leaves), int(n)))
        domain = exp.select(col("attribute"), col("leaves")).from_(table(self.relations.table("domain")))
        values = {attribute: int(leaves) for attribute, leaves in self.engine.rows(domain)}
        names = [a.name for a in self.plan.roles.quasi_identifiers if a.name in counts]
        return [{"attribute": name, "values": values[name], **_spread(counts[name])} for name in names]

    def _notes(self) -> list[str]:
        notes = []
        if self.plan.seed is not None:
            notes.append(SEEDED)
        if self.hidden and self.plan.seed is not None:
            notes.append("The permutation follows from the seed: who guesses it undoes the release.")
        if self.plan.unit == "rows":
            full = "group" if self.hidden else "class"
            notes.append(f"k counts rows: without an entity key one person's rows may fill a {full}.")
        if self.plan.algorithm.partitions and self.plan.suppression_limit and not self.plan.within and not self.hidden:
            notes.append("Rows were divided until each class kept the promise: no row had to be suppressed.")
        squares = {m["metric"]: m for m in self._loss if m["attribute"] is None}
        if "sse" in squares and squares["sse_ratio"]["value"]:
            sse, ratio = squares["sse"]["value"], squares["sse_ratio"]["value"]
            notes.append(
                f"Squared distances of numbers to the means of their classes (SSE) are {sse:.6g}, to the means of the "
                f"table (SST) {sse / ratio:.6g}, in variances of the columns: SSE/SST is {ratio:.4f}."
            )
        passes = len(getattr(self.recoding, "passes", ()))
        if passes:
            notes.append(
                f"Recoded in {passes} passes: rows that one suppressed have levels of their own, so that values of one "
                "column are published on several levels. The levels shown are those of the first pass."
            )
        if self.rows_suppressed and sensitive_of(self.plan.models):
            notes.append("Frequencies in the whole table are those of the source, suppressed rows included.")
        if sensitive_of(self.plan.models) and self.plan.algorithm.minimal:
            notes.append(
                "The algorithm publishes as much detail as the promise about sensitive values allows: who knows that "
                "can ask why no finer classes were published (minimality), and duckanon attack says what it tells."
            )
        if self.plan.unit == "persons" and sensitive_of(self.plan.models):
            notes.append("Sizes of classes count persons; shares of sensitive values count rows.")
        notes += [
            f"hierarchy of {level.attribute}: {level.origin}"
            for level in self.levels
            if level.origin.startswith("made")
        ]
        notes += [
            f"{match.text} of {name!r}: hierarchies={{{name!r}: 'auto'}} publishes its labels."
            for name, match in self.proposals
        ]
        notes += self.remarks
        if self.plan.roles.dropped:
            notes.append(f"{len(self.plan.roles.dropped)} columns have no role and are not published.")
        return notes

    def report(self, format: str = "md") -> str:  # noqa: A002 - the field's word
        """Return the report as Markdown ("md"), JSON ("json") or a page of HTML ("html")."""
        from duckanon.report import render

        return render(self.summary(), format)

    def write(self, path: str | Path, *, report: Sequence[str] = ("json", "md")) -> dict[str, Any]:
        """Publish the release as a Parquet or CSV file, by its suffix, with reports and a manifest beside it.

        The file is written beside its target, synced, read again and compared with the one that passed the gate, and
        only then renamed. If anything fails, what was there before is still there. ``duckanon.io.sinks.CsvFile`` says
        how CSV is written.

        Examples
        --------
        >>> import duckanon, pyarrow as pa, tempfile
        >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     duckanon.anonymize(people, quasi_identifiers=["age"], k=3) as release,
        ... ):
        ...     written = release.write(f"{folder}/people.csv", report=["html"])
        ...     written["release"].name, [path.name for path in written["reports"]]
        ('people.csv', ['people.report.html'])
        """
        from duckanon.io.sinks import CsvFile, ParquetFile

        if not isinstance(path, str | Path):
            raise ParameterError(f"A release is written to a path. Got a {type(path).__name__}.")
        target = Path(path)
        kinds: dict[str, type[ParquetFile | CsvFile]] = {".parquet": ParquetFile, ".csv": CsvFile}
        try:
            sink = kinds[target.suffix.lower()](target)
        except KeyError:
            raise ConfigError(
                f"A release is written as Parquet or CSV: the name {target.name!r} must end in .parquet or .csv."
            ) from None
        return sink.publish(self, reports={kind: self.report(kind) for kind in report}, run={})

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths and patterns of the files that the release was made from."""
        return self.plan.relation.files

    def described(self) -> dict[str, Any]:
        """Return the summary with the published columns: what a manifest needs for verifying the files alone."""
        roles = {a.name: a for a in self.plan.roles.published}
        named_as = self.plan.published_as
        of = {column: name for name in roles for column in named_as.get(name, (name,))}
        columns = [
            {"name": c.name, "type": c.type, "role": str(roles[of[c.name]].role), "of": of[c.name]}
            for c in self.columns
        ]
        return {**self.summary(), "columns": columns}

    def verify(self, path: Path) -> None:
        """Verify a file: byte for byte the one that was checked, or one that keeps every promise.

        Raises a PrivacyViolation otherwise.
        """
        if self.digest is not None and file_digest(path) == self.digest:
            return
        self.inspect(path)
        self.verify_rows(self.engine.parquet([path]))

    def inspect(self, path: Path) -> None:
        """Raise a PrivacyViolation where a file reveals more than its rows."""
        require_no_leaks(path)

    def verify_rows(self, relation: exp.Query) -> None:
        """Check every promise on rows read again from their target; raise a PrivacyViolation if one is broken."""
        checks = check_release(
            self.engine,
            relation,
            self.plan.roles,
            self.plan.models,
            self.plan.unit,
            self.rows_published,
            self.persons,
            self.reference,
            self.plan.published_as,
        ).checks
        self.checks = Checks(checks)

    def close(self) -> None:
        """Remove the private file and everything else that the release holds."""
        self._closed = True
        self.folder.close()
        self.engine.close()

    def _repr_html_(self) -> str:
        from duckanon.report import card

        if self._closed:
            plan = self.plan.described()
            known = {k: plan[k] for k in ("source", "roles", "unit", "promise", "algorithm")}
            share = self.rows_suppressed / self.rows_in if self.rows_in else 0.0
            counts = {"rows_in": self.rows_in, "rows_published": self.rows_published, "suppressed_share": share}
            counts["rows_suppressed"] = self.rows_suppressed
            return card({**known, "found": counts, "checks": [c.to_dict() for c in self.checks]})
        return card(self.summary())

    def __repr__(self) -> str:
        held = ", ".join(c.text for c in self.checks)
        warned = "".join(f"; warning: {h.text}" for h in self.homogeneity if h.homogeneous)
        return f"<Release of {self.rows_published} rows, {self.rows_suppressed} suppressed: {held}{warned}>"

    def __enter__(self) -> Release:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
