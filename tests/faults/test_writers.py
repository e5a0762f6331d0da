"""Many processes write to one target: each result is complete, and a late writer is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from duckanon.release.verify import verify_export
from tests.faults.site import ROOT
from tests.jobs.jobs import fill

PROGRAM = textwrap.dedent("""
    import json, sys
    from pathlib import Path
    import duckanon
    from duckanon.errors import EngineError
    from tests.faults.driver import make_sink
    folder, kind, me = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    release = duckanon.anonymize(
        folder / "people.parquet", quasi_identifiers=["age", "town"], sensitive=["ill"], k=4, algorithm="datafly",
    )
    sink, won, lost = make_sink(kind, folder), [], []
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(2):
        run = f"{me}-{turn}"
        try:
            sink.publish(release, reports={"md": run}, run={"run": run})
            won.append(run)
        except EngineError as error:
            lost.append(str(error))
    release.close()
    print(json.dumps([won, lost]))
""")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("parquet", marks=pytest.mark.slow),
        pytest.param("folder", marks=pytest.mark.slow),
        pytest.param("table", marks=pytest.mark.slow),
    ],
)
def test_eight_at_once(tmp_path: Path, kind: str) -> None:
    fill(tmp_path)
    (tmp_path / "out").mkdir()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path), kind, str(i)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(8)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    won = [run for one, _ in told for run in one]
    lost = [message for _, one in told for message in one]
    assert len(won) + len(lost) == 16
    assert won
    assert all("Another run is writing" in message for message in lost), set(lost)
    place = tmp_path / "out" / {"folder": "people", "table": "reports"}.get(kind, "")
    found = verify_export(place)
    assert found.intact, found.problems
    run = found.exports[0].run
    assert run in won
    assert (place / ("_report.md" if kind == "folder" else "people.report.md")).read_text() == run
    assert not list((tmp_path / "out").rglob(".*"))
