"""How long the import and a small release take, in a fresh process and warm.

python -m tests.bench.start
"""

from __future__ import annotations

import subprocess
import sys
import time

import duckanon
from duckanon.testing.hospital import hospital
from tests.bench.datafly import PARAMETERS

_IMPORT = "import time; start = time.perf_counter(); import duckanon; print(time.perf_counter() - start)"


def main() -> None:
    """Print the fastest of five for each."""
    imports = [
        float(subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    print(f"import duckanon                              {min(imports):.3f} s")
    table = hospital(30_000)
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        duckanon.anonymize(table, **PARAMETERS).close()
        seconds.append(time.perf_counter() - start)
    print(f"anonymize, 30,000 rows, 8 columns, first     {seconds[0]:.3f} s")
    print(f"anonymize, 30,000 rows, 8 columns, warm      {min(seconds[1:]):.3f} s")


if __name__ == "__main__":
    main()
