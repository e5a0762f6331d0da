"""What tuning found: every candidate, the front of utility and risk, the best one, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import InfeasibleError
from duckanon.jobs.tuning.candidates import Candidate

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.results import Evaluation

TRIED, FAILED = "tried", "failed"


def front(lines: Sequence[Mapping[str, Any]], risk: str = "average_risk") -> list[int]:
    """Return the positions of the lines that no other beats: none has a better score and no more risk.

    In the order of their risk; of equal ones the first.

    Examples
    --------
    >>> front([{"score": 0.9, "r": 0.2}, {"score": 0.8, "r": 0.1}, {"score": 0.7, "r": 0.15}], risk="r")
    [1, 0]
    """
    found: list[int] = []
    best = float("-inf")
    for i in sorted(range(len(lines)), key=lambda i: (lines[i][risk], -lines[i]["score"], i)):
        if lines[i]["score"] > best:
            best = lines[i]["score"]
            found.append(i)
    return found


@dataclass(frozen=True)
class Tuning:
    """What was tried.

    Attributes
    ----------
    lines : list of dict
        A candidate each: ``label``, ``k``, ``setting``, ``state`` ("tried" or "failed", then with a ``reason``),
        ``score`` and ``deviation`` over seeds on the validation rows, ``average_risk`` (1 / mean size of a class),
        ``maximum_risk`` (1 / the smallest), ``classes``, ``suppressed`` (a share), ``seconds``.
    raw, zero_rule : float
        The scores of raw training rows and of the most frequent class, on the same validation rows.
    final : Evaluation or None
        The best candidate once more, with validation rows among the training rows, on rows that nothing was chosen by.
    left : int
        Candidates that there was no time for.
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
        """The candidates that were made and taught."""
        return [line for line in self.lines if line["state"] == TRIED]

    @property
    def front(self) -> list[dict[str, Any]]:
        """The candidates that no other beats in score and average risk, from little risk to much."""
        tried = self.tried
        return [tried[i] for i in front(tried)]

    @property
    def best(self) -> dict[str, Any]:
        """The candidate with the best score; of equal ones that with less risk."""
        if not self.tried:
            reasons = "; ".join(dict.fromkeys(str(line["reason"]) for line in self.lines))
            raise InfeasibleError(f"No candidate keeps the promise. {reasons}".strip())
        return self.front[-1]

    def write(self, path: str | Path) -> Path:
        """Write the job file of the best candidate, beside the job that it comes from."""
        from duckanon.jobs.tuning.jobfile import write_job

        best = self.best
        told = [
            f"{best['label']}, k = {best['k']}: chosen by `duckanon tune {self.job.name} --target {self.target}`.",
            f"{self.score} of {self.learner} on validation rows: {best['score']:.4f} (raw rows: {self.raw:.4f}, most "
            f"frequent class: {self.zero_rule:.4f}).",
        ]
        if self.final is not None:
            told.append(
                f"On rows that nothing was chosen by: {self.final.score(self.score, learner=self.learner):.4f}."
            )
        return write_job(self.job, Path(path), Candidate(**best["setting"]), "\n".join(told))

    def plot(self, path: str | Path) -> Path:
        """Draw candidates and front into a file, PNG, SVG or PDF; needs ``pip install duckanon[plots]``."""
        from duckanon.jobs.tuning.picture import draw

        return draw(self, path)

    def to_arrow(self) -> pa.Table:
        """Return the candidates as a table; ``on_front`` says which no other beats."""
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
        """Return all of it as plain values."""
        names = ("target", "learner", "score", "encoding", "raw", "zero_rule", "left")
        return {
            "job": str(self.job.name),
            **{name: getattr(self, name) for name in names},
            "best": self.best,
            "front": self.front,
            "candidates": self.lines,
            "final": self.final.to_dict() if self.final is not None else None,
        }
