"""What a better writing of anonymous tables is worth: four encodings, trained on raw and on anonymous rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.report.model import Lines
from duckanon.report.plots import INK, logarithmic
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, mean, where
from duckanon.studies.figures import Figure, label, legend, line, panels
from duckanon.studies.tables import ROW, hierarchies, numbered, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.hierarchy import Hierarchy
    from duckanon.studies.config import Settings

    Matrix = NDArray[np.float32]


class Proportional(Study):
    """The study of the paper's section IV: Figures 3 to 5."""

    name = "proportional-representation"
    title = "What proportional representation is worth to learners"
    paper = (
        "F. Viton, C. Mauger, G. Dequen, J.-L. Guérin, G. Le Mahec, Proportional representation to increase data "
        "utility in k-anonymous tables, 2021"
    )
    keys: ClassVar[Mapping[str, type]] = {
        "encodings": list,
        "ks": list,
        "trained": list,
        "seeds": int,
        "rows": int,
        "test_size": float,
        "layers": list,
        "epochs": int,
        "algorithm": str,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        names = ("encodings", "ks", "rows", "test_size", "layers", "epochs", "algorithm", "seed")
        given = {n: settings[n] for n in names}
        tasks = []
        for name, table in settings.tables.items():
            for trained in settings["trained"]:
                # Of raw rows the proportional encoding and that of parents are the same.
                for encoding in settings["encodings"] if trained > 1 else settings["encodings"][:1]:
                    labels = {"table": name, "trained": trained, "encoding": encoding}
                    task_given = {**given, "table": dict(table)}
                    tasks += [Task({**labels, "draw": draw}, task_given) for draw in range(settings["seeds"])]
        return tasks

    def run(self, task: Task) -> list[Record]:
        given, labels = task.given, task.labels
        content = json.dumps({n: given[n] for n in ("table", "rows", "test_size", "algorithm", "seed")}, sort_keys=True)
        made = _Made.of(content)
        learner = _network(given, given["seed"] + labels["draw"])
        cells, classes, columns = made.train(labels["trained"], labels["encoding"])
        with warnings.catch_warnings():
            # A network that has not converged after all epochs is a result like any other.
            warnings.simplefilter("ignore")
            learner.fit(cells, classes)
        records = []
        for k in [1, *given["ks"]]:
            if k > made.rows:
                continue
            for encoding in given["encodings"]:
                tested, truth = made.test(k, encoding, columns)
                records.append({"k": k, "tested": encoding, **_scores(learner, tested, truth, len(made.values))})
        return records

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        return [_answer(records), *(_curves(records, t) for t in distinct(records, "table"))]


def _network(given: Mapping[str, Any], seed: int) -> Any:
    """Return the network of the paper's section IV-C."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=tuple(given["layers"]),
        activation="relu",
        solver="adam",
        learning_rate_init=1e-3,
        batch_size=200,
        max_iter=given["epochs"],
        n_iter_no_change=10,
        random_state=seed,
    )


def _scores(learner: Any, cells: Matrix, truth: NDArray[np.int64], classes: int) -> Record:
    from duckanon.assess.utility.scores import confidence_of, scores

    figures = scores(truth, learner.predict(cells), confidence_of(learner, cells, classes), 1 if classes == 2 else None)
    return {"classes": classes, **{name: figures[name] for name in ("accuracy", "auroc", "f1")}}


class _Made:
    """A table, its split, and its releases, made on demand; cached by the process for its next tasks."""

    def __init__(self, content: str) -> None:
        from duckanon.assess import utility

        given = json.loads(content)
        self.spec, self.algorithm, self.seed = given["table"], given["algorithm"], given["seed"]
        self.target, self.quasi = self.spec["target"], list(self.spec["quasi_identifiers"])
        self.table = numbered(read(self.spec, given["rows"]))
        self.rows = self.table.num_rows
        parts = utility.split(self.table, target=self.target, test_size=given["test_size"], seed=given["seed"])
        self.values, self.classes = _coded(self.table.column(self.target))
        self.tested = np.zeros(self.rows, dtype=bool)
        self.tested[parts.test.column(ROW).to_numpy()] = True
        self.hierarchies = _listed(self.table, self.spec)
        self._releases: dict[int, tuple[NDArray[np.int64], dict[str, tuple[Any, list[str]]]]] = {}

    @staticmethod
    @lru_cache(maxsize=2)
    def of(content: str) -> _Made:
        """Return what was made of these settings before, or make it."""
        return _Made(content)

    def train(self, k: int, encoding: str) -> tuple[Matrix, NDArray[np.int64], list[str]]:
        """Return training rows as numbers, their classes, and the names of the columns."""
        rows, encoded = self._encoded(k)
        matrix, names = encoded[encoding]
        training = ~self.tested[rows]
        return matrix[training].toarray().astype(np.float32), self.classes[rows[training]], names

    def test(self, k: int, encoding: str, columns: list[str]) -> tuple[Matrix, NDArray[np.int64]]:
        """Return held-out rows in the columns that a model knows; one that this release lacks is nowhere set."""
        rows, encoded = self._encoded(k)
        matrix, names = encoded[encoding]
        tested = self.tested[rows]
        place = {name: at for at, name in enumerate(names)}
        cells = np.zeros((int(tested.sum()), len(columns)), dtype=np.float32)
        places = [(i, place[name]) for i, name in enumerate(columns) if name in place]
        cells[:, [i for i, _ in places]] = matrix[tested][:, [j for _, j in places]].toarray()
        return cells, self.classes[rows[tested]]

    def _encoded(self, k: int) -> tuple[NDArray[np.int64], dict[str, tuple[Any, list[str]]]]:
        """Return the rows of a release, by their number, and every encoding of them."""
        if k in self._releases:
            return self._releases[k]
        from duckanon.assess.utility import AnonymousEncoder

        methods = ("proportional", "fill_parent", "one_class", "fill_child")
        most = max(256, *(h.levels.num_rows for h in self.hierarchies.values() if h.levels is not None))
        encoders = {m: AnonymousEncoder(m, self.hierarchies, self.quasi, max_features=most) for m in methods}
        if k == 1:
            rows, released = np.arange(self.rows), self.table.select(self.quasi)
            # Of raw rows an encoding is known before any are seen: that of a value is itself and what is above it.
            encoded = {m: _named(encoder.fit(released), released) for m, encoder in encoders.items()}
        else:
            with self._release(k) as release:
                whole = release.to_arrow()
                rows, released = whole.column(ROW).to_numpy(), whole.select(self.quasi)
                encoded = {m: _named(encoder.fit(release), released) for m, encoder in encoders.items()}
        self._releases[k] = (rows, encoded)
        return self._releases[k]

    def _release(self, k: int) -> Any:
        from duckanon.api import anonymize

        return anonymize(
            self.table,
            quasi_identifiers=self.quasi,
            sensitive=[self.target],
            insensitive=[ROW],
            hierarchies=self.hierarchies,
            algorithm=self.algorithm,
            output="lca",
            k=k,
            seed=self.seed,
        )


def _named(encoder: Any, table: pa.Table) -> tuple[Any, list[str]]:
    return encoder.transform(table), [str(n) for n in encoder.get_feature_names_out()]


def _coded(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    values = pc.unique(texts).sort()
    codes: NDArray[np.int64] = pc.index_in(texts, value_set=values).to_numpy().astype(np.int64)
    return values.to_pylist(), codes


def _listed(table: pa.Table, spec: Mapping[str, Any]) -> dict[str, Hierarchy]:
    """Return the hierarchies as lists of the column's values with all their labels, those that are rules among them."""
    from duckanon.engine.base import open_engine
    from duckanon.hierarchy import Hierarchy, resolve

    given = hierarchies(spec)
    hierarchies_of = {}
    engine = open_engine()
    try:
        for name in spec["quasi_identifiers"]:
            hierarchy = given.get(name, Hierarchy.auto())
            made = hierarchy if isinstance(hierarchy, Hierarchy) else resolve(hierarchy, engine)
            if made.levels is None:
                made = made.materialise(table.column(name).drop_null())
            hierarchies_of[name] = made
    finally:
        engine.close()
    return hierarchies_of


def _answer(records: list[Record]) -> Chapter:
    parts: list[Any] = []
    for table in distinct(records, "table"):
        encodings = distinct(records, "tested")
        rows = []
        for trained in distinct(records, "trained"):
            for encoding in distinct(where(records, trained=trained), "encoding"):
                some = where(records, table=table, trained=trained, encoding=encoding)
                for score in ("auroc", "accuracy"):
                    means = [mean([r[score] for r in where(some, tested=t) if r["k"] > 1]) for t in encodings]
                    rows.append([_from(trained), encoding, score, *means])
        header = ["trained on", "trained by", f"{table}: score", *(f"tested by {e}" for e in encodings)]
        parts.append(grid(header, rows, words=3))
    about = (
        "Mean score over all anonymous tables and seeds, by the encoding of the rows that are tested. Of the four, "
        "proportional is for the owner of the data: it uses how often each original value is in a class."
    )
    return Chapter("Which encoding", [Lines([about]), *parts])


def _from(trained: int) -> str:
    return "raw rows" if trained == 1 else f"k = {trained}"


def _curves(records: list[Record], table: Any) -> Chapter:
    lines = where(records, table=table)
    # As in the paper: the area under the curve of two classes, else accuracy.
    score = "auroc" if lines[0]["classes"] == 2 else "accuracy"
    pairs = [(t, e) for t in distinct(lines, "trained") for e in distinct(where(lines, trained=t), "encoding")]
    tested = distinct(lines, "tested")
    wide = -(-len(pairs) // 2)
    figure, axes = panels(2, wide, (3.1, 2.4), sharex=True, sharey=True)
    flat = [one for row in axes for one in row]
    for at, (one, (trained, encoding)) in enumerate(zip(flat, pairs, strict=False)):
        for place, name in enumerate(tested):
            some = where(lines, trained=trained, encoding=encoding, tested=name)
            ks = sorted(k for k in distinct(some, "k") if k > 1)
            by_k = [[r[score] for r in where(some, k=k) if r[score] is not None] for k in ks]
            middle = np.array([np.mean(v) if v else np.nan for v in by_k])
            line(one, ks, middle.tolist(), place)
            if place == 0:
                reach = np.array([np.std(v) if v else 0.0 for v in by_k])
                one.fill_between(ks, middle - reach, middle + reach, color=INK, alpha=0.12, linewidth=0)
        logarithmic(one.xaxis)
        lowest = at + wide >= len(pairs)
        one.tick_params(labelbottom=lowest)
        title = f"trained on {_from(trained)}, {encoding}"
        label(one, title=title, x="k" if lowest else "", y=score if at % wide == 0 else "")
    for one in flat[len(pairs) :]:
        one.set_visible(False)
    legend(figure, [str(t) for t in tested])
    about = (
        f"{table}: {score} by k and encoding of the tested rows (Figures 3 to 5); the band is a deviation over seeds."
    )
    return Chapter(f"{table}", [Figure(f"curves-{table}", about, figure)])
