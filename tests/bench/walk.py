"""The way of a release through the package: the modules that Mondrian enters from Parquet to Parquet, and their calls.

python -m tests.bench.walk [--list] [--algorithm mondrian]

A first run loads every module and compiles; the second one is looked at. A call is counted once for each pair of
functions that lie in different modules.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import duckanon
from duckanon.testing.hospital import write_hospital

COLUMNS = ["birth_date", "sex", "zip", "education", "country"]
PACKAGE = str(Path(duckanon.__file__).parent)


@dataclass
class Walk:
    """The functions that were entered, and who called them from another module."""

    entered: set[tuple[str, str]] = field(default_factory=set)
    calls: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call, as a profile function."""
        if event != "call" or not (own := _module(frame)):
            return
        name = frame.f_code.co_qualname
        self.entered.add((own, name))
        above = frame.f_back
        if above is not None and (other := _module(above)) and other != own:
            self.calls[other, above.f_code.co_qualname, own, name] += 1

    @property
    def modules(self) -> list[str]:
        """The modules whose functions were entered."""
        return sorted({module for module, _ in self.entered})


def _module(frame: FrameType) -> str | None:
    """Return the module of a frame in the package; None elsewhere, and while a module is imported."""
    file = frame.f_code.co_filename
    if not file.startswith(PACKAGE) or frame.f_code.co_name == "<module>":
        return None
    return Path(file).relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")


def walked(source: Path, target: Path, algorithm: str = "mondrian") -> Walk:
    """Anonymize a file twice, and return the way of the second run."""

    def run() -> None:
        with duckanon.anonymize(
            source, quasi_identifiers=COLUMNS, sensitive=["diagnosis"], identifiers=["name"], k=10, algorithm=algorithm
        ) as release:
            release.write(target)

    run()
    walk = Walk()
    sys.setprofile(walk)
    threading.setprofile(walk)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


def main() -> None:
    """Print the number of modules, and of calls between them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", default="mondrian")
    parser.add_argument("--list", action="store_true", help="list the modules, and how many functions of each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "hospital.parquet"
        write_hospital(source, 10_000)
        walk = walked(source, Path(folder) / "release.parquet", given.algorithm)
    rooms = Counter(module.split(".")[0] for module in walk.modules)
    print(f"{given.algorithm}: {len(walk.modules)} modules in {len(rooms)} rooms, {len(walk.entered)} functions")
    between = {(caller, callee) for caller, _, callee, _ in walk.calls}
    print(f"{len(walk.calls)} calls between functions of different modules, of {len(between)} pairs of modules")
    if given.list:
        for module in walk.modules:
            print(f"{sum(own == module for own, _ in walk.entered):5d}  {module}")


if __name__ == "__main__":
    main()
