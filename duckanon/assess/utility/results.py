"""What learners reached, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.learners import ZERO_RULE
from duckanon.assess.utility.scores import SCORES
from duckanon.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.fitting import Fitted

RAW, RELEASE = "raw", "release"
_KEYS = ("learner", "encoding", "trained_on", "tested_on")


@dataclass(frozen=True)
class Evaluation:
    """What learners reached.

    Attributes
    ----------
    rows : pyarrow.Table
        A line for each learner, seed, what it was trained on and what it was tested on: ``learner``, ``encoding``,
        ``seed``, ``trained_on`` and ``tested_on`` ("raw" or "release"), ``accuracy``, ``precision``, ``recall``,
        ``f1``, ``auroc``, and ``warnings``, how often the learner warned, for example that it did not converge.
    target : str
    classes : int
        How many values the target has.
    in_sample : bool
        Whether rows that were tested had been in the release: figures are then too good.
    train_rows, release_rows, test_rows : int
        How many rows were learned from, before and after, and how many were tested.
    notes : tuple of str
        What a reader of the figures must know.
    """

    rows: pa.Table = field(repr=False)
    target: str
    classes: int
    average: str
    in_sample: bool
    train_rows: int
    release_rows: int
    test_rows: int
    features: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return the single results."""
        return self.rows

    def to_pandas(self) -> Any:
        """Return the single results as a pandas frame."""
        return self.rows.to_pandas()

    def summary(self) -> pa.Table:
        """Return mean and deviation over the seeds: a line for each learner, training table and tested table.

        The columns are ``learner``, ``encoding``, ``trained_on``, ``tested_on``, ``runs``, ``warnings``, and for every
        score its mean under its name and ``<score>_deviation``, which is NULL of a single run.
        """
        import pyarrow as pa

        groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for line in self.rows.to_pylist():
            groups.setdefault(tuple(line[key] for key in _KEYS), []).append(line)
        summaries = []
        for group, lines in groups.items():
            summed: dict[str, Any] = dict(zip(_KEYS, group, strict=True))
            summed |= {"runs": len(lines), "warnings": sum(line["warnings"] for line in lines)}
            for score in SCORES:
                values = np.array([line[score] for line in lines], dtype=np.float64)
                summed[score] = float(values.mean())
                summed[f"{score}_deviation"] = float(values.std(ddof=1)) if len(values) > 1 else None
            summaries.append(summed)
        names = [*((k, pa.string()) for k in _KEYS), ("runs", pa.int64()), ("warnings", pa.int64())]
        names += [(n, pa.float64()) for score in SCORES for n in (score, f"{score}_deviation")]
        return pa.Table.from_pylist(summaries, schema=pa.schema(names))

    def score(
        self, score: str = "f1", *, learner: str | None = None, trained_on: str = RELEASE, tested_on: str = RAW
    ) -> float:
        """Return one mean: of the learner named, or of the only one."""
        if score not in SCORES:
            raise ParameterError(f"There is no score {score!r}. There are: {', '.join(SCORES)}.")
        scores = {
            line["learner"]: line[score]
            for line in self.summary().to_pylist()
            if (line["trained_on"], line["tested_on"]) == (trained_on, tested_on)
        }
        if learner is None:
            scores.pop(ZERO_RULE, None)
            learner = next(iter(scores), None) if len(scores) == 1 else None
        if learner not in scores:
            raise ParameterError(f"Name one learner: {', '.join(scores) or 'none was tested so'}.")
        return float(scores[learner])

    def kept(self, score: str = "auroc") -> dict[str, float | None]:
        """Return, by learner, the share of its gain from raw rows beyond the zero rule that it has from the release.

        1 where the release is as good as raw rows, 0 where it is no better than always predicting the most frequent
        class, None where learners gain nothing from raw rows, or these were not tried.
        """
        shares: dict[str, float | None] = {}
        means = {(line["learner"], line["trained_on"]): line[score] for line in self._on_raw()}
        zero = means[ZERO_RULE, RAW]
        for learner, trained_on in means:
            if trained_on == RELEASE:
                gain = means.get((learner, RAW), float("nan")) - zero
                shares[learner] = float((means[learner, RELEASE] - zero) / gain) if gain > 0 else None
        return shares

    def _on_raw(self) -> list[dict[str, Any]]:
        return [line for line in self.summary().to_pylist() if line["tested_on"] == RAW]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        facts = {name: getattr(self, name) for name in ("target", "classes", "average", "in_sample")}
        counts = {name: getattr(self, name) for name in ("train_rows", "release_rows", "test_rows")}
        return {
            **facts,
            **counts,
            "features": list(self.features),
            "summary": self.summary().to_pylist(),
            "kept": {score: self.kept(score) for score in ("accuracy", "f1", "auroc")},
            "rows": self.rows.to_pylist(),
            "notes": list(self.notes),
        }


def lines_of(fitted: Sequence[Fitted], encoding: str, pca: float | None) -> pa.Table:
    """Return the single results as a table."""
    import pyarrow as pa

    suffix = f"+pca({pca:g})" if pca is not None else ""
    names = {RAW: f"raw{suffix}", RELEASE: f"{encoding}{suffix}"}
    lines = [
        {
            "learner": f.learner,
            "encoding": names[f.trained_on] if f.learner != ZERO_RULE else RAW,
            "seed": f.seed,
            "trained_on": f.trained_on,
            "tested_on": f.tested_on,
            **f.scores,
            "warnings": f.warnings,
        }
        for f in fitted
    ]
    texts = [(n, pa.string()) for n in ("learner", "encoding")]
    where = [(n, pa.string()) for n in ("trained_on", "tested_on")]
    numbers = [(n, pa.float64()) for n in SCORES]
    schema = pa.schema([*texts, ("seed", pa.int64()), *where, *numbers, ("warnings", pa.int64())])
    return pa.Table.from_pylist(lines, schema=schema)
