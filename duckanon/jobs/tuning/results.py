"""The result of tuning: all candidates, the front of utility and risk, the best one, its job file and the picture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from duckanon.algorithms.base import algorithms
from duckanon.errors import ConfigError, InfeasibleError
from duckanon.io.disk import replacing
from duckanon.jobs.tuning.candidates import Candidate
from duckanon.plan.plan import partitions
from duckanon.report.plots import COLOURS, INK, annotate, bare, escape, new_figure, picture_path, save
from duckanon.report.text import in_words

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.results import Evaluation

TRIED, FAILED = "tried", "failed"
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def front(lines: Sequence[Mapping[str, Any]], risk: str = "average_risk") -> list[int]:
    """Return the positions of the Pareto front: of the lines for which no other has a better score at no more risk.

    They are ordered by risk; of equal lines the first is returned.

    Examples
    --------
    >>> front([{"score": 0.9, "r": 0.2}, {"score": 0.8, "r": 0.1}, {"score": 0.7, "r": 0.15}], risk="r")
    [1, 0]
    """
    positions: list[int] = []
    best = float("-inf")
    for i in sorted(range(len(lines)), key=lambda i: (lines[i][risk], -lines[i]["score"], i)):
        if lines[i]["score"] > best:
            best = lines[i]["score"]
            positions.append(i)
    return positions


@dataclass(frozen=True)
class Tuning:
    """The result of tuning.

    Attributes
    ----------
    lines : list of dict
        A candidate each: ``label``, ``k``, ``setting``, ``state`` ("tried" or "failed", then with a ``reason``),
        ``score`` and ``deviation`` over seeds on the validation rows, ``average_risk`` (1 / mean size of a class),
        ``maximum_risk`` (1 / the smallest), ``classes``, ``suppressed`` (a share), ``seconds``.
    raw, zero_rule : float
        The scores of training on raw rows and of the most frequent class, on the same validation rows.
    final : Evaluation or None
        The best candidate, trained on training and validation rows and tested on rows not used for the choice.
    left : int
        Candidates not tried for lack of time.
    """

    lines: list[dict[str, Any]] = field(repr=False)
    job: Path
    target: str
    learner: str
    score: str
    encoding: str
    raw: float
    zero_rule: float
    final: Evaluation | None = field(default=None, repr=False)
    left: int = 0

    @property
    def tried(self) -> list[dict[str, Any]]:
        """The candidates whose release was made and learned from."""
        return [line for line in self.lines if line["state"] == TRIED]

    @property
    def front(self) -> list[dict[str, Any]]:
        """The Pareto front of score and average risk, in the order of risk."""
        tried = self.tried
        return [tried[i] for i in front(tried)]

    @property
    def best(self) -> dict[str, Any]:
        """The candidate with the best score; of equal ones that with less risk."""
        if not self.tried:
            reasons = "; ".join(dict.fromkeys(str(line["reason"]) for line in self.lines))
            raise InfeasibleError(f"No candidate meets the privacy requirements. {reasons}".strip())
        return self.front[-1]

    def write(self, path: str | Path) -> Path:
        """Write the job file of the best candidate, beside the job itself."""
        best = self.best
        remark = [
            f"{best['label']}, k = {best['k']}: chosen by `duckanon tune {self.job.name} --target {self.target}`.",
            f"{self.score} of {self.learner} on validation rows: {best['score']:.4f} (raw rows: {self.raw:.4f}, most "
            f"frequent class: {self.zero_rule:.4f}).",
        ]
        if self.final is not None:
            remark.append(f"On rows not used for the choice: {self.final.score(self.score, learner=self.learner):.4f}.")
        return write_job(self.job, Path(path), Candidate(**best["setting"]), "\n".join(remark))

    def plot(self, path: str | Path) -> Path:
        """Draw candidates and front into a file, PNG, SVG or PDF; needs ``pip install duckanon[plots]``."""
        return draw(self, path)

    def to_arrow(self) -> pa.Table:
        """Return the candidates as a table; ``on_front`` marks the Pareto front."""
        import pyarrow as pa

        chosen = [line["key"] for line in self.front]
        hidden = ("setting", "key")
        return pa.Table.from_pylist(
            [
                {k: v for k, v in line.items() if k not in hidden} | {"on_front": line["key"] in chosen}
                for line in self.lines
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        names = ("target", "learner", "score", "encoding", "raw", "zero_rule", "left")
        return {
            "job": str(self.job.name),
            **{name: getattr(self, name) for name in names},
            "best": self.best,
            "front": self.front,
            "candidates": self.lines,
            "final": self.final.to_dict() if self.final is not None else None,
        }


def write_job(source: Path, target: Path, candidate: Candidate, remark: str) -> Path:
    """Write the job of a candidate, the user's file with other settings, and check that it can be read."""
    import tomlkit

    from duckanon.jobs import load_job

    require_beside(source, target)
    document = tomlkit.parse(source.read_text(encoding="utf-8"))
    shared: Any = document
    # A candidate is for a job of one table.
    table = shared["tables"][0] if "tables" in shared else shared
    privacy = table.setdefault("privacy", {})
    if candidate.k is not None:
        privacy["k"] = candidate.k
    if candidate.suppression_limit or "suppression_limit" in {**shared.get("privacy", {}), **privacy}:
        privacy["suppression_limit"] = candidate.suppression_limit
    table["algorithm"] = {"name": candidate.algorithm, **candidate.parameters}
    if candidate.weights:
        table.setdefault("steering", {})["weights"] = candidate.weights
    if not partitions(algorithms.get(candidate.algorithm)(**candidate.parameters)):
        # How regions are published means nothing where columns are on levels.
        for one in (shared, table):
            one.get("output", {}).pop("form", None)
    for one in (shared,) if table is shared else (shared, table):
        _apart(one.get("output", {}), target.stem)
    _apart(shared.get("nights", {}), target.stem)
    text = "\n".join(f"# {line}" for line in remark.splitlines()) + "\n\n" + tomlkit.dumps(document)
    with replacing(target) as staged:
        staged.write_text(text, encoding="utf-8")
        load_job(staged)
    return target


def _apart(keys: Any, name: str) -> None:
    """Let what a job writes have the name of the new job in it, so that neither replaces what the other published."""
    for key in ("path", "table", "reports_in", "state"):
        if key not in keys or str(keys[key]).endswith("}"):
            # What a variable or a date ends with is not known here.
            continue
        place = PurePath(str(keys[key]))
        if key == "table":
            keys[key] = f"{place}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
        else:
            suffix = place.suffix if place.suffix.lower() in (".parquet", ".csv") else ""
            keys[key] = str(place).removesuffix(suffix) + f"-{name}{suffix}"


def require_beside(source: Path, target: Path) -> None:
    """Raise where a job file would not be in the folder that its paths start from."""
    if target.absolute().parent.resolve() != source.absolute().parent.resolve():
        raise ConfigError(f"{target.name!r} must be beside {source.name!r}: its paths start from that folder.")
    if target.exists() and target.resolve() == source.resolve():
        raise ConfigError(f"{target.name!r} is the job itself: choose another name.")


def draw(found: Tuning, path: str | Path) -> Path:
    """Draw the candidates, the front, and the scores of raw rows and of the most frequent class."""
    target, figure = picture_path(path), new_figure(10, 6)
    axes = figure.subplots()
    _points(axes, found)
    _front(axes, found)
    _scale(axes, found)
    axes.axhline(found.raw, color=INK, linewidth=1, linestyle="--")
    axes.axhline(found.zero_rule, color=INK, linewidth=1, linestyle=":")
    right = axes.get_xlim()[1]
    for height, words in ((found.raw, "raw rows"), (found.zero_rule, "most frequent class")):
        # At the end with the highest risk: the front starts at the other.
        place: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 8, "color": INK}
        axes.annotate(words, (right, height), (-4, 3), **place)
    axes.set_xlabel("average risk of reidentification (1 / mean size of a class; logarithmic)")
    score = {"f1": "F1", "auroc": "AUROC"}.get(found.score, found.score)
    axes.set_ylabel(f"{score} of {escape(in_words(found.learner))}, taught by the release")
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    bare(axes)
    best = found.best
    title = f"Predicting {escape(found.target)}: best by {escape(_way(best))}"
    axes.set_title(title, fontsize=12, color=INK, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    annotate(axes, [(line["average_risk"], line["score"], escape(_way(line))) for line in found.front], size=8)
    return save(figure, target)


def _way(line: Mapping[str, Any]) -> str:
    """Return the algorithm and the k of a candidate, in words."""
    label = in_words(str(line["label"]))
    return label if line["k"] is None else f"{label}, k = {line['k']}"


def _scale(axes: Any, found: Tuning) -> None:
    """Show risks as shares, over a range that does not blow up small differences."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    risks = [line["average_risk"] for line in found.tried]
    axes.set_xlim(min(risks) / 1.4, max(risks) * 1.4)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _points(axes: Any, found: Tuning) -> None:
    axes.set_xscale("log")
    labels = list(dict.fromkeys(line["label"] for line in found.tried))
    for i, label in enumerate(labels):
        lines = [line for line in found.tried if line["label"] == label]
        colour, mark = COLOURS[i % len(COLOURS)], _MARKS[(i + i // len(COLOURS)) % len(_MARKS)]
        spread = [line["deviation"] or 0.0 for line in lines]
        x, y = [line["average_risk"] for line in lines], [line["score"] for line in lines]
        axes.errorbar(
            x, y, yerr=spread, fmt=mark, color=colour, markersize=5, elinewidth=0.8, label=escape(in_words(label))
        )


def _front(axes: Any, found: Tuning) -> None:
    front = found.front
    x, y = [line["average_risk"] for line in front], [line["score"] for line in front]
    axes.step(x, y, where="post", color="#56B4E9", linewidth=6, alpha=0.35, zorder=0, label="front")
    best = found.best
    axes.plot(best["average_risk"], best["score"], "o", markersize=14, fillstyle="none", color=INK, label="best")
