"""A clinic's job over many nights, counted again in plain Python from what it published.

Patients come, go and move; some have several stays. What the job reads is made anew each night by a test, what it wrote
is read back as rows.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from duckanon.errors import InfeasibleError
from duckanon.jobs import run_job

K = 4
KEEP = 3
"""How many releases a new one is compared with."""
Label = tuple[str, ...]
JOB = """
[source]
{source}

[roles]
{who}
quasi_identifiers = ["age", "zip"]
sensitive = ["ill"]
insensitive = ["stay"]

[hierarchies]
zip = "zip.csv"

[privacy]
k = 4

[algorithm]
name = "{algorithm}"
{further}

[nights]
recoding = "{recoding}"
{policy}

[output]
{output}

[expect]
rows_may_fall = 0.9
"""


@dataclass
class Clinic:
    """The stays of tonight: (stay, patient, age, zip, ill)."""

    random: random.Random
    stays: list[tuple[str, int, int | None, str | None, str]] = field(default_factory=list)
    patients: int = 0
    made: int = 0
    nowhere: float = 0.0
    """The share of stays without a zip code."""

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.patients += 1
            age = self.random.randint(18, 79) if self.random.random() > 0.04 else None
            self._stay(self.patients, age, self._zip())
            if self.random.random() < 0.2:
                self._stay(self.patients, age, self._zip())

    def _zip(self) -> str | None:
        if self.nowhere and self.random.random() < self.nowhere:
            return None
        # Most live in few places; leaves that are rare end under their parent's label.
        return f"{self.random.choice('1112')}{min(int(self.random.expovariate(0.4)), 9)}"

    def _stay(self, patient: int, age: int | None, place: str | None) -> None:
        self.made += 1
        self.stays.append((f"stay {self.made}", patient, age, place, self.random.choice("abcde")))

    def depart(self, count: int) -> None:
        gone = set(self.random.sample(sorted({s[1] for s in self.stays}), count))
        self.stays = [s for s in self.stays if s[1] not in gone]

    def move(self, count: int) -> None:
        for at in self.random.sample(range(len(self.stays)), count):
            stay, patient, age, _, ill = self.stays[at]
            self.stays[at] = (stay, patient, age, self._zip(), ill)

    def table(self) -> pa.Table:
        types = {"stay": pa.string(), "patient": pa.int64(), "age": pa.int32(), "zip": pa.string(), "ill": pa.string()}
        columns = zip(*self.stays, strict=True)
        return pa.table({name: pa.array(c, t) for (name, t), c in zip(types.items(), columns, strict=True)})


def write_job(
    folder: Path,
    source: str,
    output: str,
    *,
    policy: str,
    algorithm: str = "mondrian",
    keyed: bool = True,
    recoding: str = "frozen",
    further: str = "",
) -> Path:
    """Write the job and its hierarchy; ``source``, ``output`` and ``further`` are lines of these sections."""
    leaves = [(f"{a}{b}", f"{a}{'low' if b < 5 else 'high'}", a) for a in "12" for b in range(10)]
    (folder / "zip.csv").write_text("".join(f"{';'.join(leaf)};*\n" for leaf in leaves))
    path = folder / "clinic.toml"
    who = 'entity_key = "patient"' if keyed else 'identifiers = ["patient"]'
    told = f'intersection = "{policy}"' if keyed else ""
    given = {"source": source, "output": output, "algorithm": algorithm, "recoding": recoding, "further": further}
    path.write_text(JOB.format(**given, policy=told, who=who))
    return path


def labels(rows: list[dict[str, Any]]) -> dict[str, Label]:
    """Return what was published of each stay."""
    return {row["stay"]: (str(row["age"]), str(row["zip"])) for row in rows}


def groups(before: dict[int, set[Label]], after: dict[int, set[Label]]) -> dict[str, Counter[tuple[Any, Any]]]:
    """Return, for patients by their classes on two nights, how many are in every group that both nights tell.

    A group are those who stayed in one class, those who left one and came to one, and those who only left or came.
    """
    found: dict[str, Counter[tuple[Any, Any]]] = {"both": Counter(), "new": Counter(), "departed": Counter()}
    for patient in before.keys() | after.keys():
        old, new = before.get(patient, set()), after.get(patient, set())
        for label in old & new:
            found["both"][label, label] += 1
        left, came = old - new, new - old
        for a in left or {None}:
            for b in came or {None}:
                if a is not None or b is not None:
                    found["departed" if b is None else "new" if a is None else "both"][a, b] += 1
    return found


def classes(stays: list[Any], found: dict[str, Label]) -> dict[int, set[Label]]:
    """Return the classes of every patient."""
    of: dict[int, set[Label]] = defaultdict(set)
    for stay, patient, *_ in stays:
        if stay in found:
            of[patient].add(found[stay])
    return dict(of)


def live(
    path: Path,
    clinic: Clinic,
    store: Callable[[pa.Table], None],
    read: Callable[[], list[dict[str, Any]]],
    *,
    nights: int,
    daily: int,
    policy: str,
    moving: bool = False,
    keyed: bool = True,
    frozen: bool = True,
    again: int = 0,
) -> tuple[int, int]:
    """Let nights pass; return how many were published, and how many stopped for a good reason.

    On every night of which ``again`` is a divisor the release is made twice, and must have the same rows.
    """
    before: list[dict[int, set[Label]]] = []
    where: dict[tuple[str, str], Label] = {}
    stopped = 0
    for night in range(nights):
        if night:
            clinic.depart(clinic.random.randint(0, daily))
            clinic.arrive(clinic.random.randint(0, daily))
            if moving:
                clinic.move(clinic.random.randint(0, daily))
        store(clinic.table())
        twice = again and night % again == 0
        try:
            dry = _digest(path, dry_run=True) if twice else None
            if _digest(path) != dry and twice:
                raise AssertionError("the same data gave another release")
        except InfeasibleError:
            assert keyed
            # Nothing else may stop it than persons in both who could be told apart.
            stopped += 1
            found = _unstopped(path, policy, read)
            now = classes(clinic.stays, found)
            worst = [min(groups(other, now)["both"].values(), default=K) for other in before[-KEEP:]]
            assert min(worst, default=K) < K, "a false alarm"
            continue
        found = labels(read())
        assert found.keys() <= {stay for stay, *_ in clinic.stays}
        now = classes(clinic.stays, found)
        members: dict[Label, set[Any]] = defaultdict(set)
        for stay, patient, *_ in clinic.stays:
            if stay in found:
                members[found[stay]].add(patient if keyed else stay)
        assert min(len(m) for m in members.values()) >= K
        for other in before[-KEEP:]:
            seen = groups(other, now)
            if keyed and policy in ("stop", "hold"):
                assert min(seen["both"].values(), default=K) >= K
            if keyed and policy == "hold":
                assert min([*seen["new"].values(), *seen["departed"].values()], default=K) >= K
        # Whoever stays has the labels of before.
        for stay, _, age, place, _ in clinic.stays:
            if frozen and stay in found:
                assert where.setdefault((stay, f"{age} {place}"), found[stay]) == found[stay]
        before.append(now)
    return len(before), stopped


def _digest(path: Path, **how: Any) -> str:
    """Run the job; return the digest of the rows that passed the gate, in whatever order they lie."""
    import duckanon.jobs.table_run as table_run

    seen: list[str] = []
    made = table_run.make_night

    def looking(*given: Any, **options: Any) -> Any:
        night = made(*given, **options)
        rows = sorted(str(row) for row in night.release.to_arrow().to_pylist())
        seen.append(hashlib.sha256("\n".join(rows).encode()).hexdigest())
        return night

    table_run.make_night = looking
    try:
        run_job(path, **how)
    finally:
        table_run.make_night = made
    (digest,) = seen
    return digest


def _unstopped(path: Path, policy: str, read: Callable[[], list[dict[str, Any]]]) -> dict[str, Label]:
    """Return what would have been published, and leave everything as it was."""
    import duckanon.jobs.table_run as table_run

    text = path.read_text()
    path.write_text(text.replace(f'intersection = "{policy}"', 'intersection = "warn"'))
    seen: list[dict[str, Any]] = []
    made = table_run.make_night

    def looking(*given: Any, **options: Any) -> Any:
        night = made(*given, **options)
        seen.extend(night.release.to_arrow().to_pylist())
        return night

    table_run.make_night = looking
    try:
        run_job(path, dry_run=True)
    finally:
        table_run.make_night = made
        path.write_text(text)
    return labels(seen)
