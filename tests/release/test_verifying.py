"""Verify: what the files alone can show of a requirement, and what they cannot."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.process import file_digest
from duckanon.errors import DataError, EngineError, ParameterError
from duckanon.io.sinks import locked, manifest_path, publish, read_manifest
from duckanon.io.sinks.commit import pending_path
from duckanon.io.sinks.manifest import sealed
from duckanon.release.verify import BROKEN, HOLDS, NOT_CHECKABLE, OK, UNCHECKABLE, verify_export

N = 80
PEOPLE = pa.table(
    {
        "id": list(range(N)),
        "age": [20 + i % 40 for i in range(N)],
        "town": [["Bonn", "Lyon", None, "o'Hara"][i % 4] for i in range(N)],
        "ill": [["flu", "gout", None, "mumps", "flu"][i // 4 % 5] for i in range(N)],
    }
)


def write(folder: Path, name: str = "people", **options: Any) -> Path:
    given = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], **options}
    with duckanon.anonymize(PEOPLE, **given) as release:
        return Path(release.write(folder / f"{name}.parquet", report=["md"])["manifest"])


def states(path: Path) -> dict[str, str]:
    (export,) = verify_export(path).exports
    return {p.model: p.state for p in export.promises}


def tamper(manifest: Path, table: pa.Table, **changes: Any) -> None:
    """Replace the data and let the manifest agree with the bytes: only the promise can still tell."""
    data = manifest.with_name("people.parquet")
    pq.write_table(table, data)
    content = read_manifest(manifest)
    content["files"][0] |= {"bytes": data.stat().st_size, "sha256": file_digest(data)}
    manifest.write_text(sealed({**content, **changes}))


class TestPromises:
    def test_of_rows(self, tmp_path: Path) -> None:
        models = ["k_anonymity(4)", "l_diversity(2)", "entropy_l_diversity(1.2)", "recursive_c_l_diversity(4, 2)"]
        models += ["alpha_k_anonymity(0.9, 3)", "p_sensitive_k_anonymity(2, 3)", "maximum_reidentification_risk(0.3)"]
        found = states(write(tmp_path, models=models))
        assert set(found.values()) == {HOLDS}
        assert len(found) == 7

    def test_of_the_whole_table(self, tmp_path: Path) -> None:
        models = ["sample_uniqueness(0.1)", "average_reidentification_risk(0.3)"]
        assert set(states(write(tmp_path, models=models)).values()) == {HOLDS}

    def test_of_persons(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, models=["k_anonymity(4)", "l_diversity(2)"], entity_key="id")
        assert states(manifest) == {"k_anonymity": NOT_CHECKABLE, "l_diversity": HOLDS}
        assert verify_export(manifest).intact
        assert "persons" in verify_export(manifest).exports[0].promises[0].reason

    def test_that_are_not_checkable_are_not_ok_unless_accepted(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, models=["k_anonymity(4)", "t_closeness(0.6)"], entity_key="id")
        for accept, state in ([[], NOT_CHECKABLE], [["persons"], NOT_CHECKABLE], [["persons", "source"], OK]):
            found = verify_export(manifest, accept=accept)
            assert (found.state, found.ok, found.intact) == (state, state == OK, True)
        (export,) = verify_export(manifest, accept=["source"]).exports
        assert [p.accepted for p in export.promises] == [False, True]
        with pytest.raises(ParameterError, match="none of persons, source"):
            verify_export(manifest, accept=["everything"])

    def test_that_compare_with_the_source(self, tmp_path: Path) -> None:
        models = ["k_anonymity(4)", "t_closeness(0.6)", "basic_beta_likeness(4)", "delta_disclosure(3)"]
        found = states(write(tmp_path, models=models))
        assert found.pop("k_anonymity") == HOLDS
        assert set(found.values()) == {NOT_CHECKABLE}
        assert len(found) == 3

    def test_that_compare_with_a_population(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, models=["k_map(2)"], population=PEOPLE)
        assert states(manifest) == {"k_map": NOT_CHECKABLE}
        assert "population" in verify_export(manifest).exports[0].promises[0].reason

    @pytest.mark.parametrize("output", ["bounds", "struct", "midpoint", "set"])
    def test_of_quasi_identifiers_in_other_forms(self, tmp_path: Path, output: str) -> None:
        assert states(write(tmp_path, k=4, output={"age": output})) == {"k_anonymity": HOLDS}

    def test_a_model_that_is_not_installed(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        content = read_manifest(manifest)
        content["promise"].append({"model": "of_others", "parameters": {"z": 1}, "text": "theirs"})
        manifest.write_text(sealed(content))
        found = verify_export(manifest, accept=list(UNCHECKABLE))
        assert found.state == BROKEN
        assert "'of_others' is not known here" in " ".join(found.problems)


class TestBroken:
    """Files that agree with their manifest and do not keep its promise."""

    def test_a_class_below_k(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        table = pq.read_table(tmp_path / "people.parquet")
        alone = table.set_column(0, "age", pa.array(["99", *table["age"].to_pylist()[1:]]))
        tamper(manifest, alone)
        assert states(manifest) == {"k_anonymity": BROKEN}
        found = verify_export(manifest)
        assert not found.intact
        assert "classes" in found.problems[0]
        assert "99" not in str(found.to_dict()).replace(str(tmp_path), "")

    def test_of_persons_where_even_rows_do_not_do(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4, entity_key="id")
        table = pq.read_table(tmp_path / "people.parquet")
        tamper(manifest, table.set_column(0, "age", pa.array(["99", *table["age"].to_pylist()[1:]])))
        assert states(manifest) == {"k_anonymity": BROKEN}

    def test_a_class_of_one_sensitive_value(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4, l=2)
        table = pq.read_table(tmp_path / "people.parquet")
        tamper(manifest, table.set_column(2, "ill", pa.array(["flu"] * table.num_rows)))
        assert states(manifest) == {"k_anonymity": HOLDS, "l_diversity": BROKEN}

    def test_rows_that_are_missing_or_too_many(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        table = pq.read_table(tmp_path / "people.parquet")
        tamper(manifest, pa.concat_tables([table, table]))
        assert verify_export(manifest).problems == [f"{2 * N} rows instead of {N}"]

    def test_a_column_too_many(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        tamper(manifest, pq.read_table(tmp_path / "people.parquet").append_column("ssn", pa.array(range(N))))
        assert verify_export(manifest).problems == ["the columns are not those that the manifest lists"]


class TestListed:
    """What is asked about must be listed by the manifest beside it."""

    def test_a_raw_table_beside_a_copied_manifest(self, tmp_path: Path) -> None:
        write(tmp_path, k=4)
        (tmp_path / "other").mkdir()
        for name in ("people.parquet", "people.report.md"):
            shutil.copy(tmp_path / name, tmp_path / "other" / name)
        raw = tmp_path / "other" / "raw.parquet"
        pq.write_table(PEOPLE, raw)
        shutil.copy(tmp_path / "people.manifest.json", manifest_path(raw))
        for place in (raw, manifest_path(raw), tmp_path / "other"):
            assert verify_export(place).state == BROKEN, place
        assert "raw.parquet: the manifest beside it does not list it" in verify_export(raw).problems

    def test_a_file_in_a_folder_of_exports(self, tmp_path: Path) -> None:
        write(tmp_path, k=4)
        assert verify_export(tmp_path).ok
        pq.write_table(PEOPLE, tmp_path / "raw.parquet")
        assert verify_export(tmp_path).problems == ["raw.parquet: the manifest beside it does not list it"]
        assert verify_export(tmp_path / "people.parquet").ok

    def test_the_manifest_of_a_file_with_another_suffix(self, tmp_path: Path) -> None:
        write(tmp_path, k=4)
        (tmp_path / "people.csv").write_text("age\n1\n")
        assert not verify_export(tmp_path / "people.csv").ok


class TestPlaces:
    def test_a_folder_a_manifest_or_a_file(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        write(tmp_path, "others", k=4)
        assert len(verify_export(tmp_path).exports) == 2
        for path in (manifest, tmp_path / "people.parquet", str(manifest)):
            assert [e.manifest for e in verify_export(path).exports] == [manifest]
        (tmp_path / "others.parquet").unlink()
        assert verify_export(tmp_path).problems == ["others.manifest.json: others.parquet: missing"]

    def test_where_there_is_nothing(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "people.parquet"):
            with pytest.raises(DataError, match="There is no"):
                verify_export(path)
        (tmp_path / "people.parquet").touch()
        assert verify_export(tmp_path / "people.parquet").problems == ["There is no manifest 'people.manifest.json'."]

    def test_plain_values(self, tmp_path: Path) -> None:
        found = verify_export(write(tmp_path, k=4)).to_dict()
        assert found["intact"]
        assert found["exports"][0]["promises"][0]["state"] == HOLDS

    def test_an_older_manifest(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        content = read_manifest(manifest)
        del content["columns"]
        manifest.write_text(sealed(content))
        assert verify_export(manifest).problems == ["the manifest does not say: columns"]

    def test_a_manifest_that_says_little(self, tmp_path: Path) -> None:
        (tmp_path / "staged").write_bytes(b"rows")
        written = publish(tmp_path / "staged", tmp_path / "p.parquet", summary={}, reports={}, verify=lambda p: None)
        found = verify_export(written["manifest"])
        assert found.state == BROKEN
        assert "does not say" in found.problems[0]

    def test_while_a_run_publishes(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        with locked(tmp_path / "people.parquet"):
            assert verify_export(manifest).intact  # nothing is half done
            pending_path(tmp_path / "people.parquet").mkdir()
            with pytest.raises(EngineError, match="Another run"):
                verify_export(manifest)

    def test_writes_nothing(self, tmp_path: Path) -> None:
        manifest = write(tmp_path, k=4)
        before = {p.name: p.stat().st_mtime_ns for p in (tmp_path, *tmp_path.iterdir())}
        verify_export(manifest)
        assert {p.name: p.stat().st_mtime_ns for p in (tmp_path, *tmp_path.iterdir())} == before


def flip(folder: Path, flips: int, rng: random.Random) -> int:
    """Flip single bits of the release and its manifest, one at a time; return how many were not noticed."""
    files = [folder / "people.parquet", manifest_path(folder / "people.parquet")]
    contents = {file: file.read_bytes() for file in files}
    missed = 0
    for i in range(flips):
        file = files[i % 2]
        changed = bytearray(contents[file])
        bit = rng.randrange(len(changed) * 8)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        missed += verify_export(file).intact
        file.write_bytes(contents[file])
    assert verify_export(folder).intact
    return missed


def test_bit_flips_are_found(tmp_path: Path) -> None:
    write(tmp_path, k=4)
    assert flip(tmp_path, 300, random.Random(7)) == 0


@pytest.mark.slow
def test_many_bit_flips_are_found(tmp_path: Path) -> None:
    write(tmp_path, k=4)
    assert flip(tmp_path, 10_000, random.Random(8)) == 0
