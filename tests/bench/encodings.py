"""Encodings of a release of a million rows, beside a plain copy of the released file.

python -m tests.bench.encodings --rows 1000000

The hospital's rows are released by Mondrian and written; each encoding then reads the file twice in batches, once to
learn its cells and once to encode them, and keeps no batch. ``matrix`` is the size of what it would keep. The last line
is the owner's: the exact shares of all classes, with the release in the same process. Seconds of the steps are of CPU.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS
from tests.bench.harness import measure, show, work

QUASI = list(PARAMETERS["quasi_identifiers"])


@work
def encoded(source: str, method: str) -> dict[str, Any]:
    """Encode a released file, batch by batch."""
    from duckanon.assess.utility import AnonymousEncoder

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    encoder = AnonymousEncoder(method, PARAMETERS["hierarchies"], QUASI).fit(source)
    fitted = time.process_time()
    rows = entries = 0
    for batch in encoder.transform_batches(source):
        rows, entries = rows + batch.shape[0], entries + batch.nnz
    done = time.process_time()
    return {
        "seconds": {"fit": fitted - start, "transform": done - fitted},
        "rows": rows,
        "features": len(encoder.get_feature_names_out()),
        "matrix_mb": entries * 12 / 2**20,
        "imports_mb": before,
    }


@work
def owned(source: str, **parameters: Any) -> dict[str, Any]:
    """Release a file, and encode the release with the exact shares of its classes."""
    import duckanon
    from duckanon.assess.utility import AnonymousEncoder

    marks = [time.process_time()]
    with duckanon.anonymize(source, **parameters) as release:
        marks.append(time.process_time())
        encoder = AnonymousEncoder("proportional").fit(release)
        marks.append(time.process_time())
        rows = sum(batch.shape[0] for batch in encoder.transform_batches(release))
        marks.append(time.process_time())
    steps = ("anonymize", "fit", "transform")
    return {"seconds": {s: b - a for s, a, b in zip(steps, marks[:-1], marks[1:], strict=True)}, "rows": rows}


def main() -> None:
    """Measure, in files of a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    from duckanon.assess.utility.codebook import METHODS

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source, released = folder / "hospital.parquet", folder / "released.parquet"
        write_hospital(source, options.rows)
        given = {**PARAMETERS, "k": options.k, "algorithm": "mondrian", "seed": 1}
        given.pop("suppression_limit", None)
        measure("release", "anonymize", source=str(source), target=str(released), **given)
        figures = [measure("copy", "copy", source=str(released), target=str(folder / "copy.parquet"))]
        figures += [measure(method, "encodings.encoded", source=str(released), method=method) for method in METHODS]
        figures.append(measure("proportional, of the owner", "encodings.owned", source=str(source), **given))
        print(f"{options.rows:,} rows, k = {options.k}")
        show(figures, base="copy")
        for figure in figures[1:-1]:
            found = figure.detail
            print(f"{figure.name}: {found['features']} features, matrix {found['matrix_mb']:.0f} MB")


if __name__ == "__main__":
    main()
