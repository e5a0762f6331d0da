"""Utility for learners: train them on a release, and test them on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.fitting import Fitted, Lesson, Rows, fit_all
from duckanon.assess.utility.held_out import Split, codes_of, column_of, drawn, split, table_of
from duckanon.assess.utility.learners import USUAL, ZERO_RULE, resolve
from duckanon.assess.utility.raw_features import PlainEncoder, is_number, texts_of
from duckanon.assess.utility.released_features import ReleasedEncoder, encoder_of, generalized, released_table
from duckanon.assess.utility.results import RAW, RELEASE, Evaluation, lines_of
from duckanon.assess.utility.scores import scores
from duckanon.errors import DataError, InfeasibleError, ParameterError, RoleError
from duckanon.progress import Progress
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.utility.results import Evaluation
    from duckanon.progress import Listener
    from duckanon.release.release import Release


_MOST_CLASSES = 100


@dataclass(frozen=True)
class Target:
    """The column to be predicted: its values in their order, and which of two is the positive one."""

    name: str
    values: pa.Array
    positive: int | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], name: str, average: str, positive: Any) -> Target:
        """Return the target of tables of which ``raw`` is learned from."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if average not in ("auto", "macro", "binary"):
            raise ParameterError(f"average must be 'auto', 'macro' or 'binary'. Got {average!r}.")
        columns = {key: texts_of(table.column(name)) for key, table in tables.items()}
        chunks = [chunk for column in columns.values() for chunk in column.chunks]
        values = pc.drop_null(pc.unique(pa.chunked_array(chunks, pa.string())))
        values = values.take(pc.sort_indices(values))
        if len(values) > _MOST_CLASSES:
            raise DataError(f"The target {name!r} has {len(values)} values: put them into at most {_MOST_CLASSES}.")
        if len(values) < 2:
            raise DataError(f"The target {name!r} has {len(values)} values: there is nothing to predict.")
        missing = sum(column.null_count for column in columns.values())
        notes = (f"{missing} rows whose target is missing are left out.",) if missing else ()
        if average == "macro" or (average == "auto" and len(values) != 2):
            return cls(name, values, None, notes)
        codes = pc.drop_null(pc.index_in(columns["raw"], value_set=values)).to_numpy()
        rarer = int(np.argmin(np.bincount(codes, minlength=len(values))))
        if positive is not None:
            place = pc.index(values, str(positive)).as_py()
            if place < 0:
                raise ParameterError("The positive class is not a value of the target.")
            rarer = place
        elif len(values) != 2:
            raise ParameterError(f"The target has {len(values)} values: name the positive one, or use 'macro'.")
        return cls(name, values, rarer, notes)

    def known(self, table: pa.Table) -> pa.Table:
        """Return the rows whose target is known."""
        import pyarrow.compute as pc

        column = table.column(self.name)
        rows = table.filter(pc.is_valid(column)) if column.null_count else table
        if not rows.num_rows:
            raise DataError("A table has no row whose target is known.")
        return rows

    def codes(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the class of every row by its number."""
        import pyarrow.compute as pc

        codes = pc.index_in(texts_of(table.column(self.name)), value_set=self.values).to_numpy()
        return np.asarray(codes, dtype=np.int64)


MOST_ROWS = 100_000


def evaluate(
    original: object,
    release: object,
    *,
    target: str,
    test: object = None,
    released_test: object = None,
    learners: Sequence[Any] | Mapping[str, Any] | str = USUAL,
    encoding: Any = "midpoint",
    quasi_identifiers: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 10,
    pca: float | None = None,
    average: str = "auto",
    positive: Any = None,
    baseline: bool = True,
    max_rows: int | None = MOST_ROWS,
    workers: int | None = None,
    progress: Listener | None = None,
    connection: Any = None,
) -> Evaluation:
    """Train learners on a release and test them on held-out original rows, beside learners trained on raw rows.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        The rows that the release was made from: the training part of ``duckanon.utility.split``.
    release : Release, or anything that ``original`` may be
        What was published of them.
    target : str
        The column to be predicted: one that is published as it is.
    test : table, optional
        The original rows that were held out. Without, a fifth of ``original`` is tested although its rows were in the
        release: figures are then too good, and ``in_sample`` is true.
    released_test : Release or table, optional
        The held-out rows as they would be published, to be tested besides.
    learners : sequence of str or classifier, mapping of name to either
        "logistic_regression", "random_forest", "knn", "linear_svm", "decision_tree", "mlp", "gradient_boosting",
        "xgboost" (where it is installed), or any classifier of scikit-learn's kind.
    encoding : str or transformer
        How generalized cells become numbers: the method of ``AnonymousEncoder``, or your own encoder. All but
        "proportional" know no more than who gets the release; that one knows the values in every class, which only
        ``output="proportional"`` publishes.
    quasi_identifiers : sequence of str, optional
        The generalized columns. A ``Release`` knows its own; of other tables they are those whose types or values
        are not the original's.
    features : sequence of str, optional
        What is learned from; all that is published besides the target.
    hierarchies : mapping, optional
        How columns were generalized, for the encoding. A ``Release`` knows its own.
    seeds : int or sequence of int
        How often a random learner is trained, or with which seeds.
    pca : float, optional
        Learn from the principal components that explain this share of the variance, such as 0.95.
    average : {"auto", "macro", "binary"}
        Precision, recall and F1 of the positive class where there are two ("binary"), or of all, each counting the
        same ("macro"). "auto" takes "binary" where the target has two values.
    positive : optional
        The positive class; by default the rarer one of the training rows.
    baseline : bool
        Whether learners are trained on the raw training rows, too.
    max_rows : int, optional
        Of more training rows a sample is taken, the same share of each class; None takes all.
    workers : int, optional
        How many learners are trained side by side; by default as many as there are cores.
    progress : callable, optional
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    Held-out rows touch neither the release nor anything that is learned: means, categories, components and learners
    come from the training rows alone, and a category that these do not have is nothing. Rows whose target is missing
    are left out. "zero_rule" always predicts the most frequent class: a learner no better than it learned nothing.

    Figures do not depend on the order of the released rows (of tables up to ``max_rows``): rows are put into an order
    that depends on their values alone before anything is learned, and of "knn" all neighbours that are as far as the
    tenth vote, sharing what is left of the ten votes.

    References
    ----------
    D. Slijepčević et al., k-Anonymity in practice: how generalisation and suppression affect machine learning
    classifiers, 2021, section 4.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> ages = [20 + i % 50 for i in range(400)]
    >>> people = pa.table({"age": ages, "ill": ["yes" if age > 44 else "no" for age in ages]})
    >>> parts = duckanon.utility.split(people, target="ill")
    >>> columns = {"quasi_identifiers": ["age"], "insensitive": ["ill"]}
    >>> with duckanon.anonymize(parts.train, k=5, output="midpoint", **columns) as release:
    ...     found = duckanon.utility.evaluate(
    ...         parts.train, release, target="ill", test=parts.test, learners=["decision_tree"], seeds=2
    ...     )
    >>> found.score("accuracy") > 0.9 > found.score("accuracy", learner="zero_rule", trained_on="raw")
    True
    """
    chosen = resolve(learners)
    numbers = _seeds(seeds)
    if pca is not None and (isinstance(pca, bool) or not isinstance(pca, float) or not 0 < pca < 1):
        raise ParameterError(f"pca is a share of the variance, between 0 and 1. Got {pca!r}.")
    before = table_of(original, connection)
    name = column_of(before, target, "target")
    in_sample, notes = False, []
    if test is None:
        parts = split(before, target=name)
        raw, held, in_sample = parts.train, parts.test, True
        notes.append("in-sample: rows that were tested had been in the release, so its figures are too good.")
    else:
        raw, held = before, table_of(test, connection)
    after = released_table(release, connection)
    if name not in after.column_names:
        raise RoleError(f"The release has no column {name!r}: the target must be published as it is.")
    made_from = release.rows_in if isinstance(release, Release) else after.num_rows
    if test is not None and made_from > raw.num_rows:
        in_sample = True
        notes.append(
            f"in-sample: the release was made from {made_from} rows, and the training part has {raw.num_rows}: rows "
            "that were tested may have been in it, so its figures are too good."
        )
    tables = {"raw": raw, "release": after, "test": held}
    if released_test is not None:
        tables["released_test"] = released_table(released_test, connection)
    columns = _features(tables, name, features)
    quasi = _quasi(release, tables, columns, quasi_identifiers)
    target_of = Target.of(tables, name, average, positive)
    notes += target_of.notes
    tables = {key: target_of.known(table) for key, table in tables.items()}
    tables |= _sampled(tables, name, max_rows, notes)
    encoder = encoder_of(encoding, release, quasi, hierarchies or {}, tables[RAW])
    lessons = _lessons(tables, columns, quasi, encoder, target_of, baseline)
    if pca is not None:
        lessons = [lesson.reduced(pca) for lesson in lessons]
    watch = Progress(progress)
    fits = sum(len(numbers) if learner.random else 1 for learner in chosen) * len(lessons)
    with watch.step("learn", fits, unit="models"):
        fitted = fit_all(
            lessons,
            chosen,
            numbers,
            classes=len(target_of.values),
            positive=target_of.positive,
            workers=workers,
            advance=watch.advance,
        )
    zero = _zero_rule(tables, target_of, numbers[0])
    label = encoding if isinstance(encoding, str) else type(encoding).__name__
    return Evaluation(
        lines_of([zero, *fitted], label, pca),
        name,
        len(target_of.values),
        "macro" if target_of.positive is None else "binary",
        in_sample,
        tables["raw"].num_rows,
        tables["release"].num_rows,
        tables["test"].num_rows,
        tuple(columns),
        tuple(notes),
    )


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    numbers = list(range(seeds)) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    if not isinstance(numbers, Sequence) or not numbers or not all(isinstance(s, int) and s >= 0 for s in numbers):
        raise ParameterError("seeds must be how many, at least 1, or a list of ints >= 0.")
    return list(numbers)


def _features(tables: Mapping[str, pa.Table], target: str, wanted: Sequence[str] | None) -> list[str]:
    """Return the columns that all tables have, as the release orders them."""
    shared = [c for c in tables["release"].column_names if all(c in t.column_names for t in tables.values())]
    features = [c for c in shared if c != target]
    if wanted is not None:
        features = [column_of(tables["release"].select(shared), c, "features") for c in wanted]
        if target in features:
            raise RoleError(f"{target!r} is the target and cannot be a feature.")
    if not features:
        raise RoleError("The release and the original have no column in common besides the target.")
    return features


def _quasi(
    release: object, tables: Mapping[str, pa.Table], columns: Sequence[str], given: Sequence[str] | None
) -> list[str]:
    """Return the columns that are read by an encoding: generalized ones, unless all tables have numbers there."""
    if given is not None:
        lowered = {name.lower() for name in given}
    elif isinstance(release, Release):
        lowered = {a.name.lower() for a in release.plan.roles.quasi_identifiers}
    else:
        released = [t for key, t in tables.items() if key.startswith("release")]
        lowered = {c.lower() for table in released for c in generalized(tables["raw"], table, columns)}
    typed = [c for c in columns if all(is_number(t.column(c).type) for t in tables.values())]
    return [c for c in columns if c.lower() in lowered and c not in typed]


def _sampled(tables: Mapping[str, pa.Table], target: str, most: int | None, notes: list[str]) -> dict[str, pa.Table]:
    """Return smaller tables to learn from, and to be tested, in place of those that are too large."""
    import pyarrow as pa

    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ParameterError(f"max_rows must be an int >= 1, or None. Got {most!r}.")
    sampled = {}
    for key, table in tables.items():
        if most is None or table.num_rows <= most:
            continue
        chosen = drawn(codes_of(table.column(target)), most / table.num_rows, 0)
        sampled[key] = table.filter(pa.array(chosen))
        notes.append(
            f"a sample of {sampled[key].num_rows} of {table.num_rows} rows ({key.replace('_', ' ')}) was used."
        )
    return sampled


def _lessons(
    tables: Mapping[str, pa.Table],
    columns: Sequence[str],
    quasi: Sequence[str],
    encoder: Any,
    target: Target,
    baseline: bool,
) -> list[Lesson]:
    lessons = []
    if baseline:
        plain = PlainEncoder(columns).fit(tables["raw"])
        tests = {RAW: _rows(plain, tables["test"], target)}
        lessons.append(Lesson(RAW, _rows(plain, tables["raw"], target).mixed(), tests))
    rest = [c for c in columns if c not in quasi]
    encoder_of_release = ReleasedEncoder(quasi, rest, encoder).fit(tables["release"])
    tests = {RAW: _rows(encoder_of_release, tables["test"], target)}
    if "released_test" in tables:
        tests[RELEASE] = _rows(encoder_of_release, tables["released_test"], target)
    lessons.append(Lesson(RELEASE, _rows(encoder_of_release, tables["release"], target).mixed(), tests))
    return lessons


def _rows(encoder: Any, table: pa.Table, target: Target) -> Rows:
    return Rows(encoder.transform(table), target.codes(table))


def _zero_rule(tables: Mapping[str, pa.Table], target: Target, seed: int) -> Fitted:
    """Return the scores of always predicting the most frequent class of the training rows."""
    train, test = target.codes(tables["raw"]), target.codes(tables["test"])
    shares = np.bincount(train, minlength=len(target.values)) / len(train)
    predicted = np.full(len(test), int(np.argmax(shares)), dtype=np.int64)
    confidence = np.tile(shares, (len(test), 1))
    return Fitted(ZERO_RULE, seed, RAW, RAW, scores(test, predicted, confidence, target.positive), 0)


def trial(
    parts: Split,
    anonymize: Callable[[pa.Table], Release],
    *,
    released_test: bool = True,
    look: Callable[[Release], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Anonymize the training part of a split, train learners on it, and test them on the held-out part.

    Parameters
    ----------
    parts : Split
        What ``duckanon.utility.split`` returned.
    anonymize : callable
        Makes a release of a table, such as ``lambda t: duckanon.anonymize(t, quasi_identifiers=["age"], k=5)``.
    released_test : bool
        Whether the held-out part is anonymized separately, and tested, too. Where it has too few rows for the
        privacy requirements it is not, which a note reports.
    look : callable, optional
        Called with the release of the training part, while it is there.
    **options
        Further arguments of ``duckanon.utility.evaluate``.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> ages = [20 + i % 50 for i in range(400)]
    >>> people = pa.table({"age": ages, "ill": ["yes" if age > 44 else "no" for age in ages]})
    >>> parts = duckanon.utility.split(people, target="ill")
    >>> columns = {"quasi_identifiers": ["age"], "insensitive": ["ill"]}
    >>> found = duckanon.utility.trial(
    ...     parts,
    ...     lambda table: duckanon.anonymize(table, k=5, output="midpoint", **columns),
    ...     learners=["decision_tree"],
    ...     seeds=1,
    ... )
    >>> found.in_sample, found.score("accuracy") > 0.9, found.score("accuracy", tested_on="release") > 0.9
    (False, True, True)
    """
    if not isinstance(parts, Split):
        raise ParameterError(f"A trial takes what split() returned. Got a {type(parts).__name__}.")
    notes: tuple[str, ...] = ()
    with ExitStack() as stack:
        release = stack.enter_context(anonymize(parts.train))
        if look is not None:
            look(release)
        held = None
        if released_test:
            try:
                held = stack.enter_context(anonymize(parts.test))
            except InfeasibleError:
                notes = ("The held-out rows are too few to anonymize: they were tested as they are only.",)
        evaluation = evaluate(parts.train, release, target=parts.target, test=parts.test, released_test=held, **options)
    return replace(evaluation, notes=(*evaluation.notes, *notes))


__all__ = ["MOST_ROWS", "evaluate"]
