"""Put what examples say today into the pages: ``python -m tests.docs.write docs/guides/risk.md``. Read the diff."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import Reader, prepare


def main() -> None:
    """Run the examples of each page and replace the outputs that differ."""
    here = Path.cwd()
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    for name in sys.argv[1:]:
        page = here / name
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.environ["XDG_STATE_HOME"] = folder
            prepare(Path(folder))
            reader = Reader(Path(folder), repairs=[])
            try:
                reader.read(text)
            finally:
                os.chdir(here)
        lines = text.split("\n")
        for start, end, came in sorted(reader.repairs or [], reverse=True):
            lines[start:end] = came
        page.write_text("\n".join(lines), encoding="utf-8")
        print(f"{name}: {len(reader.repairs or [])} outputs written")


if __name__ == "__main__":
    main()
