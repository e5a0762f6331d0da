"""The examples run, say the same every time, and leave nothing behind."""

from __future__ import annotations

import gc
import runpy
from pathlib import Path

import pytest

from duckanon.jobs import load_job

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("[0-9]*.py"))
SAID = {
    "01_sql": ["columns: birth_date, sex, zip, diagnosis", "smallest class has at least 5 rows: True"],
    "02_python": ["the file is 5-anonymous: True", "'stays.manifest.json'"],
    "03_hierarchies": ["'Western Europe', 'n': 4", "does not know 1 of 3 values", "['*', 'Cardiology', 'Oncology']"],
    "04_job": ["of 20000 rows in", "exit code 3: No role is given for 'insurance'"],
    "05_compare": ["keeps: every combination", "'diagnosis'", "uneven by a Gini of"],
    "06_groups": ["stays with a class: 5000 of 5000", "smallest class has at least 10 stays: True"],
    "07_clusters": ["birth_date date32[day]", "variance is lost: True", "promises kept: True", "loses least: mondrian"],
    "08_nights": ["the same levels every night: True", "somebody had to wait: True", "published: [(4,)]"],
    "09_utility": ["AUROC", "more than the most frequent class: True", "in-sample: True", "written: best.toml"],
    "10_probabilistic": ["the same values as before: 5 of 5", "linked at most 1 in 5: True", "not visible by design"],
    "11_encodings": ["value_set: the same columns: True", "rows scored: 1000", "are 1: True", "report: True"],
    "12_attacks": [
        "attacks found a leak",
        "on controls",
        "forgotten column found: True",
        "report: # Attacks on a release",
    ],
}


def test_every_script_is_numbered_and_known() -> None:
    assert [s.stem for s in SCRIPTS] == list(SAID)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
@pytest.mark.thinned(2)
def test_a_script_runs_and_leaves_nothing_behind(
    script: Path,
    tmp_path: Path,
    temp_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    gc.collect()
    out, err = capfd.readouterr()
    assert err == ""
    for said in SAID[script.stem]:
        assert said in out
    assert list(temp_folder.iterdir()) == []
    assert [p.name for p in tmp_path.iterdir()] == ["tmp"]


@pytest.mark.parametrize("job", sorted(EXAMPLES.glob("*.toml")), ids=lambda j: j.stem)
def test_job_files_are_valid(job: Path) -> None:
    for table in load_job(job).tables:
        assert table.target.sink.paths[0].parent.name == "release"
        assert table.request.unlisted == "error"
