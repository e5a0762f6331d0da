"""Try candidates within a budget of time, and store what a learner achieves with each."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.utility.evaluation import evaluate, trial
from duckanon.assess.utility.held_out import Split, split
from duckanon.assess.utility.learners import ZERO_RULE, resolve
from duckanon.assess.utility.results import RAW, RELEASE
from duckanon.assess.utility.scores import SCORES
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import col, table, text
from duckanon.errors import (
    ConfigError,
    DataError,
    DuckanonError,
    EngineError,
    InfeasibleError,
    JobError,
    ParameterError,
    UnsupportedError,
)
from duckanon.jobs import Job, JobTable, load_job
from duckanon.jobs.keys import seconds_of
from duckanon.jobs.run import anonymizer
from duckanon.jobs.tuning.candidates import Candidate, candidates
from duckanon.jobs.tuning.results import FAILED, TRIED, Tuning
from duckanon.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.results import Evaluation
    from duckanon.engine.base import Engine
    from duckanon.progress import Listener
    from duckanon.release.release import Release

_FINE = (InfeasibleError, UnsupportedError, ConfigError)
"""A candidate may fail: it cannot meet the requirements, or does not fit the job."""


def tune(
    job: str | Path,
    *,
    target: str,
    learner: Any = "random_forest",
    score: str = "f1",
    encoding: str = "midpoint",
    budget: float | str | None = "5min",
    k: Sequence[int] | None = None,
    algorithms: Sequence[str] | None = None,
    suppression_limits: Sequence[float] | None = None,
    test_size: float = 0.2,
    seed: int = 0,
    seeds: int = 3,
    max_rows: int | None = 50_000,
    results: str | Path | None = None,
    workers: int | None = None,
    progress: Listener | None = None,
) -> Tuning:
    """Choose algorithm and parameters of a job by how well a learner does with its release.

    Parameters
    ----------
    job : path
        A job file of one table. Every candidate meets its privacy requirements.
    target : str
        The column to be predicted; sensitive or insensitive.
    learner : str or classifier
    score : {"f1", "accuracy", "precision", "recall", "auroc"}
        What is maximised.
    encoding : str
        How learners read cells: a method of ``AnonymousEncoder``.
    budget : float or str, optional
        Seconds, or a text such as "5min": no candidate is started later. None tries all.
    k : sequence of int, optional
        Sizes of classes to try, none smaller than the job's; its own, twice, five and ten times that without.
    algorithms : sequence of str, optional
        Such as ``["mondrian", "optimal(metric=precision)"]``; a dozen ways without: Mondrian with and without the
        target, optimal by several metrics with and without weights by the target, OLA, Datafly, clusters.
    suppression_limits : sequence of float, optional
        For full-domain algorithms; by default the job's own, or 0 and 0.05 where it has none.
    test_size, seed
        As for ``duckanon.utility.split``, by the job's entity key.
    seeds : int
        How often a learner that depends on chance is trained.
    max_rows : int, optional
        Larger tables are sampled for learning; all rows are anonymized.
    results : path, optional
        A DuckDB file for results. Candidates in it are not tried again: a stopped search continues.
    workers : int, optional
    progress : callable, optional

    Returns
    -------
    Tuning
        With ``best``, ``front``, ``write(path)`` for the job file and ``plot(path)`` for the picture.

    Notes
    -----
    Before anything is anonymized, rows are split into test rows, validation rows and training rows. Each candidate
    anonymizes the training rows, and candidates are compared on the validation rows. The best of many looks better than
    it is on the rows that it was chosen by; the figure to report is that of ``final``, on the test rows.

    References
    ----------
    D. Slijepčević et al., k-Anonymity in practice: how generalisation and suppression affect machine learning
    classifiers, 2021, section 5.8.

    Examples
    --------
    >>> import duckanon, pathlib, tempfile
    >>> from duckanon.testing.hospital import write_hospital
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_hospital(folder / "stays.parquet", 1500)
    >>> _ = (folder / "stays.toml").write_text('''
    ... [source]
    ... path = "stays.parquet"
    ... [roles]
    ... quasi_identifiers = ["birth_date", "zip"]
    ... insensitive = ["ward"]
    ... unlisted = "drop"
    ... [privacy]
    ... k = 5
    ... [output]
    ... path = "release/stays.parquet"
    ... ''')
    >>> found = duckanon.tuning.tune(
    ...     folder / "stays.toml", target="ward", learner="decision_tree", algorithms=["datafly"], seeds=1
    ... )
    >>> len(found.tried) > 2, found.best["k"] >= 5, found.write(folder / "best.toml").name
    (True, True, 'best.toml')
    >>> __import__("shutil").rmtree(folder)
    """
    if score not in SCORES:
        raise ParameterError(f"There is no score {score!r}. There are: {', '.join(SCORES)}.")
    (chosen,) = resolve([learner])
    seconds = _seconds(budget)
    loaded = load_job(job)
    table = loaded.table()
    outer, inner = _divided(loaded, table, target, test_size, seed)
    common: dict[str, Any] = {"learners": [learner], "encoding": encoding, "seeds": seeds}
    common |= {"max_rows": max_rows, "workers": workers}
    wanted = candidates(table, inner.train, inner.target, ks=k, wanted=algorithms, limits=suppression_limits)
    settings = (_text_of(loaded), target, repr(learner), score, encoding, seeds, seed, test_size, max_rows)
    stamp = hashlib.sha256(json.dumps(settings, default=str).encode() + _digest(outer.train)).hexdigest()
    store = Store(Path(results) if results is not None else None)
    watch, begun, lines = Progress(progress), time.monotonic(), []
    raw = _raw(table, inner, common)
    with watch.step("try", len(wanted), unit="candidates"):
        for number, candidate in enumerate(wanted):
            key = f"{stamp[:16]}:{json.dumps(candidate.to_dict(), sort_keys=True)}"
            line = store.get(key)
            if line is None:
                if seconds is not None and number and time.monotonic() - begun > seconds:
                    continue
                line = _tried(loaded, table, inner, candidate, score, chosen.name, common)
                store.add(line := {"key": key, **line})
            lines.append(line)
            watch.advance(number + 1)
    means = {row["learner"]: row[score] for row in raw.summary().to_pylist() if row["trained_on"] == RAW}
    found = Tuning(
        lines=lines,
        job=loaded.path,
        target=inner.target,
        learner=chosen.name,
        score=score,
        encoding=encoding,
        raw=float(means[chosen.name]),
        zero_rule=float(means[ZERO_RULE]),
        left=len(wanted) - len(lines),
    )
    best = Candidate(**found.best["setting"]).applied(table)
    final = trial(outer, anonymizer(loaded, best), released_test=False, progress=progress, **common)
    return Tuning(**{**vars(found), "final": final})


def _seconds(budget: float | str | None) -> float | None:
    if isinstance(budget, str):
        try:
            return float(seconds_of(budget))
        except JobError:
            raise ParameterError(f"budget must be seconds or a time such as '5min'. Got {budget!r}.") from None
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or budget <= 0):
        raise ParameterError(f"budget must be seconds or a time such as '5min'. Got {budget!r}.")
    return budget


def _divided(job: Job, table: JobTable, target: str, test_size: float, seed: int) -> tuple[Split, Split]:
    """Return the split into test rows and others, and that of the others into validation and training rows."""
    engine = job.open_engine()
    try:
        rows = engine.arrow(table.source.open(engine).query)
    finally:
        engine.close()
    how: dict[str, Any] = {"test_size": test_size, "entity_key": table.request.entity_key}
    outer = split(rows, target=target, seed=seed, **how)
    published = [*table.request.sensitive, *table.request.insensitive]
    if outer.target.lower() not in {name.lower() for name in published}:
        raise ParameterError(f"The target {target!r} must be sensitive or insensitive in the job: published unchanged.")
    return outer, split(outer.train, target=target, seed=seed + 1, **how)


def _raw(table: JobTable, parts: Split, common: dict[str, Any]) -> Evaluation:
    """Return what learners achieve with the raw rows, by the columns that the job publishes."""
    request = table.request
    listed = (*request.quasi_identifiers, *request.within, *request.sensitive, *request.insensitive)
    named = {name.lower() for name in listed} - {parts.target.lower()}
    features = [c for c in parts.train.column_names if c.lower() in named]
    return evaluate(
        parts.train,
        parts.train,
        target=parts.target,
        test=parts.test,
        features=features,
        quasi_identifiers=[],
        **common,
    )


def _text_of(job: Job) -> str:
    """Return the text of the job: any change in it may change the results."""
    return job.path.read_text(encoding="utf-8")


def _digest(rows: pa.Table) -> bytes:
    """Return a fingerprint of all rows in their order."""
    found = hashlib.sha256()
    for batch in rows.combine_chunks().to_batches(max_chunksize=100_000):
        found.update(batch.serialize())
    return found.digest()


def _tried(
    job: Job, table: JobTable, parts: Split, candidate: Candidate, score: str, learner: str, common: dict[str, Any]
) -> dict[str, Any]:
    """Make a candidate's release of the training rows, and return its score and risk."""
    begun = time.monotonic()
    line: dict[str, Any] = {"label": candidate.label, "k": candidate.k, "setting": candidate.to_dict()}
    about: dict[str, Any] = {}

    def look(release: Release) -> None:
        found = release.summary()["found"]
        sizes = found["class_size"]
        about.update(
            classes=found["classes"],
            rows=found["rows_published"],
            suppressed=found["suppressed_share"],
            average_risk=1 / float(sizes["mean"]),
            maximum_risk=1 / float(sizes["min"]),
        )

    try:
        made = anonymizer(job, candidate.applied(table))
        found = trial(parts, made, released_test=False, look=look, baseline=False, **common)
    except _FINE as error:
        words = str(error) if isinstance(error, DuckanonError) else type(error).__name__
        return {**line, "state": FAILED, "reason": words, "seconds": time.monotonic() - begun}
    (row,) = [r for r in found.summary().to_pylist() if (r["learner"], r["trained_on"]) == (learner, RELEASE)]
    figures = {"score": row[score], "deviation": row[f"{score}_deviation"]}
    return {**line, "state": TRIED, "reason": None, **figures, **about, "seconds": time.monotonic() - begun}


TABLE = "candidates"
_ALIAS = "results"
_NUMBERS = ("score", "deviation", "average_risk", "maximum_risk", "suppressed", "seconds")
_TEXTS = ("key", "label", "setting", "state", "reason")


def _schema() -> pa.Schema:
    import pyarrow as pa

    counts = [(name, pa.int64()) for name in ("k", "classes", "rows")]
    return pa.schema([*((n, pa.string()) for n in _TEXTS), *counts, *((n, pa.float64()) for n in _NUMBERS)])


class Store:
    """Results by their keys, in memory and, if a path is given, in a DuckDB file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            with self._opened() as engine:
                query = exp.select("*").from_(self._place())
                for line in engine.arrow(query).to_pylist() if self._has_table(engine) else ():
                    self._found[line["key"]] = {**line, "setting": json.loads(line["setting"])}

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the result with a key."""
        return self._found.get(key)

    def add(self, line: dict[str, Any]) -> None:
        """Store a result; the file is written and closed at once, so that nothing is lost if the process ends."""
        import pyarrow as pa

        self._found[line["key"]] = line
        if self.path is None:
            return
        row = pa.Table.from_pylist([{**line, "setting": json.dumps(line["setting"])}], schema=_schema())
        with self._opened() as engine:
            engine.register("incoming", row)
            incoming = exp.select("*").from_(table("incoming"))
            if self._has_table(engine):
                same = exp.EQ(this=col("key"), expression=text(line["key"]))
                engine.run(exp.Delete(this=self._place(), where=exp.Where(this=same)))
                engine.run(exp.Insert(this=self._place(), expression=incoming))
            else:
                engine.run(exp.Create(this=self._place(), kind="TABLE", expression=incoming))
            engine.unregister("incoming")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Engine]:
        assert self.path is not None
        engine = open_engine()
        try:
            try:
                engine.catalog.attach(self.path, _ALIAS, writable=True)
            except EngineError:
                raise DataError(
                    f"{self.path.name!r} is not a DuckDB database, or is in use by another process."
                ) from None
            yield engine
        finally:
            engine.close()

    def _place(self) -> exp.Table:
        return table(TABLE, schema="main", catalog=_ALIAS)

    def _has_table(self, engine: Engine) -> bool:
        return (_ALIAS, "main", TABLE) in engine.catalog.tables()
