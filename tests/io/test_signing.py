"""Signed manifests: who has the public key alone notices whatever was changed, and other tools read the envelope."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from duckanon.engine.process import file_digest
from duckanon.errors import ConfigError, EngineError, JobError
from duckanon.io.sinks import CsvFile, DuckDBTable, ParquetFile, ParquetFolder, PublicKey, Signer, new_keys, prune
from duckanon.io.sinks.manifest import read_manifest, sealed
from duckanon.io.sinks.signing import envelope_path
from duckanon.jobs import load_job, run_job
from duckanon.release.release import Release
from duckanon.release.verify import VerifiedExport, verify_export
from tests.interfaces.cli.tools import call
from tests.io.sink_cases import KINDS, made, put, rows_of
from tests.jobs.jobs import fill, write

pytest.importorskip("cryptography", reason="the extra 'signing' is not installed")


@pytest.fixture(scope="module")
def release() -> Release:
    return made()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return new_keys(tmp_path_factory.mktemp("keys") / "night.key")


def signing(kind: str, folder: Path, key: Path) -> Any:
    signer = Signer(key)
    return {
        "parquet": lambda: ParquetFile(folder / "people.parquet", signer=signer),
        "csv": lambda: CsvFile(folder / "people.csv", signer=signer),
        "folder": lambda: ParquetFolder(folder / "people", ["sex"], signer=signer),
        "table": lambda: DuckDBTable(folder / "p.duckdb", "people", folder / "reports", signer=signer),
    }[kind]()


def verified(manifest: Path, public: Path) -> VerifiedExport:
    (found,) = verify_export(manifest, key=PublicKey.read(public)).exports
    return found


@pytest.fixture
def manifest(release: Release, keys: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(put(signing("parquet", tmp_path, keys[0]), release)["manifest"])


def changed(manifest: Path, change: Any) -> dict[str, Any]:
    """Change an envelope and return it as it was."""
    path = envelope_path(manifest)
    before = json.loads(path.read_text())
    content = copy.deepcopy(before)
    change(content)
    path.write_text(json.dumps(content))
    return before


class TestEverySink:
    @pytest.mark.parametrize("kind", KINDS)
    def test_signs_and_replaces_what_it_signed(
        self, release: Release, keys: tuple[Path, Path], tmp_path: Path, kind: str
    ) -> None:
        for run in ("r1", "r2"):
            written = put(signing(kind, tmp_path, keys[0]), release, run)
            found = verified(Path(written["manifest"]), keys[1])
            assert (found.state, found.signed, found.run) == ("ok", True, run), found.problems
        from tests.io.sink_cases import make_sink

        plain = make_sink(kind, tmp_path) if kind != "folder" else ParquetFolder(tmp_path / "people", ["sex"])
        manifest = Path(put(plain, release, "r3")["manifest"])
        assert verify_export(manifest).ok  # nothing of the signed release is left beside it
        assert not envelope_path(manifest).exists()
        assert "not signed" in verified(manifest, keys[1]).problems[0]


class TestTampering:
    def test_the_table_and_everything_that_is_derived_from_it(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        data = manifest.with_name("people.parquet")
        table = pq.read_table(data)
        other = table.set_column(table.column_names.index("cost"), "cost", table["cost"].combine_chunks()[::-1])
        assert rows_of(other) != rows_of(table)
        pq.write_table(other, data)
        content = read_manifest(manifest)
        content["files"][0] |= {"bytes": data.stat().st_size, "sha256": file_digest(data)}
        manifest.write_text(sealed(content))
        found = verified(manifest, keys[1])
        assert found.problems == ("people.manifest.dsse.json: it is not of this manifest",)
        assert found.signed is False
        # Without a key the signed form gives it away as long as it is there; without both the seal alone is believed.
        assert not verify_export(manifest).ok
        envelope_path(manifest).unlink()
        assert verify_export(manifest).ok
        assert not verify_export(manifest, key=PublicKey.read(keys[1])).ok

    def test_each_field_of_the_manifest(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        good = manifest.read_text()
        content = read_manifest(manifest)
        for name in content:
            for other in ({k: v for k, v in content.items() if k != name}, {**content, name: "other"}):
                manifest.write_text(sealed(other))
                assert verified(manifest, keys[1]).state == "broken", name
        manifest.write_text(good)
        assert verified(manifest, keys[1]).state == "ok"

    def test_each_part_of_the_envelope(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        def payload(edit: Any) -> Any:
            def change(content: dict[str, Any]) -> None:
                statement = json.loads(base64.b64decode(content["payload"]))
                edit(statement)
                content["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

            return change

        changes = [
            lambda c: c.update(payloadType="application/json"),
            lambda c: c.update(signatures=[]),
            lambda c: c["signatures"][0].update(sig=base64.b64encode(bytes(64)).decode()),
            lambda c: c["signatures"][0].update(sig="?"),
            lambda c: c["signatures"][0].pop("sig"),
            lambda c: c.update(signatures=None),
            lambda c: c.pop("payload"),
            lambda c: c.update(more=1),
            payload(lambda s: s.update(predicateType="other")),
            payload(lambda s: s.update(_type="other")),
            payload(lambda s: s["subject"].pop()),
            payload(lambda s: s["subject"][0]["digest"].update(sha256="0" * 64)),
            payload(lambda s: s["predicate"]["promise"][0]["parameters"].update(k=1)),
        ]
        for change in changes:
            before = changed(manifest, change)
            assert verified(manifest, keys[1]).state == "broken", change
            envelope_path(manifest).write_text(json.dumps(before))
        envelope_path(manifest).write_text("[" * 100_000)
        assert verified(manifest, keys[1]).state == "broken"
        envelope_path(manifest).write_text(json.dumps(before))
        assert verified(manifest, keys[1]).state == "ok"

    def test_the_files(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        (manifest.parent / "people.report.md").write_text("other")
        assert verified(manifest, keys[1]).state == "broken"

    def test_another_key(self, manifest: Path, tmp_path: Path) -> None:
        _, public = new_keys(tmp_path / "other.key")
        assert verified(manifest, public).problems == ("people.manifest.dsse.json: no signature of this key",)

    def test_signed_with_another_key(self, manifest: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
        private, _ = new_keys(tmp_path / "other.key")
        envelope_path(manifest).write_text(Signer(private).envelope(manifest.read_text(), manifest.name))
        assert verify_export(manifest).ok
        assert verified(manifest, keys[1]).state == "broken"

    def test_a_signed_manifest_of_another_night(
        self, release: Release, manifest: Path, keys: tuple[Path, Path], tmp_path: Path
    ) -> None:
        shutil.copy(envelope_path(manifest), tmp_path / "kept")
        put(signing("parquet", tmp_path, keys[0]), release, "r2")
        shutil.copy(tmp_path / "kept", envelope_path(manifest))
        assert verified(manifest, keys[1]).state == "broken"


class TestOtherTools:
    """What is verified here without a line of the package."""

    def test_cryptography_and_an_encoding_by_hand(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = json.loads(envelope_path(manifest).read_text())
        payload = base64.b64decode(content["payload"])
        kind = content["payloadType"]
        encoded = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
        key: Any = load_pem_public_key(keys[1].read_bytes())
        key.verify(base64.b64decode(content["signatures"][0]["sig"]), encoded)
        statement = json.loads(payload)
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["predicate"]["promise"][0]["model"] == "k_anonymity"
        for subject in statement["subject"]:
            raw = (manifest.parent / subject["name"]).read_bytes()
            assert subject["digest"] == {"sha256": hashlib.sha256(raw).hexdigest()}
        assert {"people.parquet", manifest.name} <= {s["name"] for s in statement["subject"]}

    def test_openssl(self, manifest: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
        program = shutil.which("openssl")
        if program is None:
            pytest.skip("openssl is not installed")
        content = json.loads(envelope_path(manifest).read_text())
        payload, kind = base64.b64decode(content["payload"]), content["payloadType"]
        (tmp_path / "signed").write_bytes(f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload)
        (tmp_path / "sig").write_bytes(base64.b64decode(content["signatures"][0]["sig"]))
        words = [program, "pkeyutl", "-verify", "-pubin", "-inkey", keys[1], "-rawin", "-in", tmp_path / "signed"]
        done = subprocess.run([*words, "-sigfile", tmp_path / "sig"], capture_output=True, text=True, check=False)
        assert "Signature Verified Successfully" in done.stdout, done.stderr
        (tmp_path / "signed").write_bytes(b"DSSEv1")
        assert subprocess.run([*words, "-sigfile", tmp_path / "sig"], capture_output=True, check=False).returncode

    def test_securesystemslib(self, manifest: Path, keys: tuple[Path, Path]) -> None:
        dsse = pytest.importorskip("securesystemslib.dsse")
        signer = pytest.importorskip("securesystemslib.signer")
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = json.loads(envelope_path(manifest).read_text())
        key = signer.SSlibKey.from_crypto(load_pem_public_key(keys[1].read_bytes()), content["signatures"][0]["keyid"])
        envelope = dsse.Envelope.from_dict(content)
        assert envelope.verify([key], 1)


class TestKeys:
    def test_a_new_key_is_private_and_replaces_nothing(self, tmp_path: Path) -> None:
        private, public = new_keys(tmp_path / "a.key")
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
        before = private.read_bytes(), public.read_bytes()
        for gone in (None, private):
            if gone is not None:
                gone.unlink()
            with pytest.raises(ConfigError, match="exists already"):
                new_keys(private)
        assert before[1] == public.read_bytes()

    def test_keys_that_are_not_usable(self, keys: tuple[Path, Path], tmp_path: Path) -> None:
        (tmp_path / "open").write_bytes(keys[0].read_bytes())
        (tmp_path / "open").chmod(0o640)
        (tmp_path / "empty").touch(mode=0o600)
        (tmp_path / "public").write_bytes(keys[1].read_bytes())
        (tmp_path / "public").chmod(0o600)
        for name, message in {
            "open": "chmod 600",
            "empty": "not an Ed25519 private key",
            "public": "not an Ed25519 private key",
            "missing": "no signing key",
            ".": "not a file|cannot be read",
        }.items():
            with pytest.raises(ConfigError, match=message):
                Signer(tmp_path / name).require_usable()
        for path in (keys[0], tmp_path / "missing", tmp_path / "empty"):
            with pytest.raises(ConfigError, match="public key"):
                PublicKey.read(path)

    def test_without_the_package(self, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives", None)
        with pytest.raises(EngineError, match=r"duckanon\[signing\]"):
            Signer(keys[0]).require_usable()


class TestJobs:
    def signed(self, folder: Path, key: str) -> Path:
        fill(folder)
        return write(folder, text=(folder / "job.toml").read_text() if (folder / "job.toml").exists() else _job(key))

    def test_signs_and_verifies(self, tmp_path: Path) -> None:
        new_keys(tmp_path / "night.key")
        job = self.signed(tmp_path, "night.key")
        manifest = Path(run_job(job).written["manifest"])
        assert verify_export(manifest, key=PublicKey.read(tmp_path / "night.key.pub")).intact
        words = ["verify", str(manifest.parent), "--accept", "persons", "--job", str(job)]
        assert call(*words).exit_code == 2
        done = call(*words, "--key", str(tmp_path / "night.key.pub"))
        assert (done.exit_code, "signed with this key" in done.stdout) == (0, True), done.output
        envelope_path(manifest).unlink()
        assert call(*words, "--key", str(tmp_path / "night.key.pub")).exit_code == 1

    def test_by_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        new_keys(tmp_path / "night.key")
        monkeypatch.setenv("DUCKANON_SIGNING_KEY", str(tmp_path / "night.key"))
        manifest = Path(run_job(write(fill(tmp_path))).written["manifest"])
        assert verify_export(manifest, key=PublicKey.read(tmp_path / "night.key.pub")).intact

    @pytest.mark.parametrize("key", ["out/night.key", "out/keys/night.key", "linked/night.key"])
    def test_a_key_where_exports_go_is_refused(self, tmp_path: Path, key: str) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "linked").symlink_to(tmp_path / "out")
        with pytest.raises(JobError, match="where exports go"):
            load_job(self.signed(tmp_path, key))

    def test_a_key_that_others_can_read_publishes_nothing(self, tmp_path: Path) -> None:
        new_keys(tmp_path / "night.key")
        (tmp_path / "night.key").chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            run_job(self.signed(tmp_path, "night.key"))
        assert not (tmp_path / "out").exists()

    def test_retention_takes_the_signature_along(
        self, release: Release, keys: tuple[Path, Path], tmp_path: Path
    ) -> None:
        for day in (1, 2):
            put(ParquetFile(tmp_path / f"p-{day}.parquet", signer=Signer(keys[0])), release)
        prune(tmp_path / "p-*.parquet", keep=1, day_of=lambda path: path.stem)
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith("p-1")] == []

    def test_the_command_that_makes_keys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert call("keys", "new").exit_code == 0
        assert sorted(p.name for p in tmp_path.iterdir()) == ["duckanon.key", "duckanon.key.pub"]
        assert call("keys", "new").exit_code == 2
        assert json.loads(call("keys", "new", "b.key", "--json").stdout)["public"] == "b.key.pub"


def _job(key: str) -> str:
    from tests.jobs.jobs import JOB

    return f'{JOB}\n[operations]\nsigning_key = "{key}"\n'
