"""The file itself: what it discloses beyond its rows."""

from __future__ import annotations

from glob import glob
from pathlib import Path
from typing import ClassVar

from duckanon.assess.attacks.base import LITTLE, MUCH, NOTHING, Attacker, Case, Finding, attackers
from duckanon.engine.process import is_remote
from duckanon.io.leaks import KINDS, file_leaks
from duckanon.io.paths import is_file, is_folder

_MINOR = {"metadata", "leftovers"}
_READ = (".parquet", ".pq", ".csv", ".tsv")


@attackers.register("file")
class File(Attacker):
    """Reads the released file as bytes: dictionary pages, footer, metadata, order of the rows, and its folder.

    Whatever is found is a leak, since nothing of it has to be there: success is the share of values, names or rows
    concerned, and the base rate 0. ``duckanon.disclosure.file_leaks`` does the same without an original.
    """

    summary: ClassVar[str] = "dictionaries, statistics, metadata, index, order and leftovers of the released file"

    def needs(self, case: Case) -> str | None:
        return None if _paths(case) else "a Parquet or CSV file, or a folder of them"

    def run(self, case: Case) -> list[Finding]:
        findings = []
        for path in _paths(case):
            # A release has other files beside its private file.
            for leak in file_leaks(path, siblings=case.release is None):
                share = min(leak.count / leak.of, 1.0) if leak.of else 1.0
                level = LITTLE if leak.kind in _MINOR else MUCH
                findings.append(
                    Finding(
                        attack=self.name,
                        success=share,
                        base_rate=0.0,
                        rows=leak.of or leak.count,
                        text=f"{leak.kind.replace('_', ' ')}: {KINDS[leak.kind]}",
                        attribute=leak.column,
                        level=level,
                        remark=leak.text,
                    )
                )
        if findings:
            return findings
        text = "what the file discloses beyond its rows: dictionaries, statistics, metadata, index, order, leftovers"
        return [Finding(self.name, 0.0, 0.0, max(case.released.rows(), 1), text, level=NOTHING)]


def _paths(case: Case) -> list[Path]:
    paths: list[Path] = []
    for given in case.files:
        if is_remote(given):
            continue
        path = Path(given)
        if is_folder(path) and any(p.suffix.lower() in _READ[:2] for p in path.rglob("*")):
            paths.append(path)
        else:
            named = [path] if is_file(path) else [Path(p) for p in sorted(glob(given, recursive=True))]
            paths += [p for p in named if p.is_file() and {s.lower() for s in p.suffixes[-2:]} & set(_READ)]
    return paths
