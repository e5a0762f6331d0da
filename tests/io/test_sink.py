"""Publishing: all or nothing, one writer at a time, and a manifest that reveals every change."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from duckanon.errors import ConfigError, DataError, EngineError, PrivacyViolation
from duckanon.io.sinks import locked, made_folder, manifest_path, publish, read_manifest, require_writable, verify_files
from duckanon.io.sinks.manifest import sealed

CANARY = "Zaphod Beeblebrox"
SUMMARY = {
    "duckanon": "0.1.0",
    "engine": {"name": "duckdb", "version": "2.0.0"},
    "source": {"kind": "file", "name": "people.parquet"},
    "roles": {"quasi_identifiers": ["age"], "sensitive": ["ill"], "identifiers": [], "entity_key": None, "dropped": []},
    "unit": "rows",
    "promise": [{"model": "k_anonymity", "parameters": {"k": 5}, "text": "at least 5"}],
    "algorithm": {"name": "datafly", "parameters": {"stop": "limit", "seed": 4711, "key": "geheim"}},
    "suppression_limit": 0.05,
    "hierarchies": [{"attribute": "age", "origin": "given: file age.csv", "height": 4, "level": 2, "leaves": 90}],
    "found": {"rows_in": 10, "rows_published": 10, "rows_suppressed": 0, "suppressed_share": 0.0, "classes": 2},
    "checks": [{"model": "k_anonymity", "parameters": {"k": 5}, "holds": True, "classes": 2}],
    "loss": [{"metric": "loss", "value": float("nan"), "direction": "lower", "attribute": None}],
    "bounds": "grid",
    "seeded": False,
    "notes": [],
    "seconds": {"encode": 0.1},
    "surprise": CANARY,
}
REPORTS = {"json": "{}\n", "md": "# Report\n"}


def accept(path: Path) -> None:
    assert path.is_file()


def put(
    target: Path, content: bytes = b"PAR1 rows PAR1", verify: Callable[[Path], None] = accept, **options: object
) -> dict:
    folder = target.parent.parent if not target.parent.exists() else target.parent
    staged = folder / f"staged-{os.urandom(4).hex()}"
    staged.write_bytes(content)
    try:
        return publish(staged, target, **{"summary": SUMMARY, "reports": REPORTS, "verify": verify, **options})
    finally:
        staged.unlink()


def state(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class TestPublish:
    def test_writes_release_reports_and_manifest_and_nothing_else(self, tmp_path: Path) -> None:
        written = put(tmp_path / "out" / "people.parquet")
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            "people.manifest.json",
            "people.parquet",
            "people.report.json",
            "people.report.md",
        ]
        assert written["release"].read_bytes() == b"PAR1 rows PAR1"
        assert written["manifest"] == tmp_path / "out" / "people.manifest.json"
        assert [p.name for p in written["reports"]] == ["people.report.json", "people.report.md"]
        assert verify_files(written["manifest"]) == []

    def test_replaces_what_was_there(self, tmp_path: Path) -> None:
        put(tmp_path / "p.parquet", b"old")
        put(tmp_path / "p.parquet", b"new")
        assert (tmp_path / "p.parquet").read_bytes() == b"new"
        assert verify_files(tmp_path / "p.manifest.json") == []

    def test_a_report_of_the_replaced_release_does_not_stay(self, tmp_path: Path) -> None:
        put(tmp_path / "p.parquet", b"old")
        (tmp_path / "p.report.html").write_text("not ours: the manifest does not list it")
        put(tmp_path / "p.parquet", b"new", reports={"json": "{}"})
        assert not (tmp_path / "p.report.md").exists()
        assert (tmp_path / "p.report.html").exists()

    @pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
    def test_modes_follow_the_umask(self, tmp_path: Path, mask: int) -> None:
        before = os.umask(mask)
        try:
            put(tmp_path / "p.parquet")
        finally:
            os.umask(before)
        modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert modes == {0o666 & ~mask}

    def test_two_targets_do_not_share_their_bytes(self, tmp_path: Path) -> None:
        staged = tmp_path / "staged"
        staged.write_bytes(b"rows")
        for name in ("a", "b"):
            publish(staged, tmp_path / f"{name}.parquet", summary=SUMMARY, reports={}, verify=accept)
        assert not (tmp_path / "a.parquet").samefile(tmp_path / "b.parquet")
        assert staged.read_bytes() == b"rows"

    def test_copies_where_links_are_not_possible(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EXDEV, "another file system")

        monkeypatch.setattr(os, "link", refuse)
        put(tmp_path / "p.parquet", b"old")
        put(tmp_path / "p.parquet", b"new")
        assert (tmp_path / "p.parquet").read_bytes() == b"new"

    def test_verifies_the_synced_file_before_it_has_its_name(self, tmp_path: Path) -> None:
        seen = []

        def look(path: Path) -> None:
            seen.append((path.read_bytes(), (tmp_path / "p.parquet").exists()))
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

        put(tmp_path / "p.parquet", b"rows", look)
        assert seen == [(b"rows", False)]

    def test_sweeps_what_a_dead_process_left(self, tmp_path: Path) -> None:
        program = "import os, sys; from pathlib import Path; from duckanon.engine.process import PrivateFolder\n"
        program += "p = PrivateFolder(Path(sys.argv[1])); print(p.path, flush=True); os.kill(os.getpid(), 9)"
        dead = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
        )
        left = Path(dead.stdout.strip())
        (left / "release.parquet").write_text(CANARY)
        put(tmp_path / "p.parquet")
        assert not left.exists()

    @pytest.mark.parametrize("name", ["p.csv", "p", "parquet", ".parquet", "p.parquet.gz"])
    def test_other_suffixes_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match=r"must end in \.parquet"):
            put(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["p.parquet", "p.report.md", "p.manifest.json"])
    def test_a_folder_under_one_of_the_names_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).mkdir()
        with pytest.raises(ConfigError, match="is a folder"):
            put(tmp_path / "p.parquet")
        assert [p.name for p in tmp_path.iterdir()] == [name]

    def test_a_relative_target(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        put(Path("p.parquet"))
        assert verify_files("p.manifest.json") == []

    def test_strange_names(self, tmp_path: Path) -> None:
        name = "a'; DROP TABLE x; -- \N{SNOWMAN} 100%.parquet"
        put(tmp_path / name)
        assert verify_files(manifest_path(tmp_path / name)) == []


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# Where it breaks, and what is broken there.
PLACES = {
    "fsync": (os, "fsync"),
    "hash": (hashlib, "file_digest"),
    "write": (Path, "write_text"),
    "chmod": (Path, "chmod"),
    "keep": (os, "link"),
}


@pytest.mark.parametrize("earlier", [True, False], ids=["replacing", "new"])
class TestFailures:
    """Whatever fails, what was there is there byte for byte, and there is nothing else."""

    @pytest.fixture
    def target(self, tmp_path: Path, earlier: bool) -> Path:
        target = tmp_path / "deep" / "out" / "p.parquet"
        if earlier:
            target.parent.mkdir(parents=True)
            put(target, b"old")
        return target

    def check(self, target: Path, error: type[BaseException], match: str, **options: object) -> None:
        root = target.parent.parent.parent
        (root / "staged").write_bytes(b"new")
        arguments = {"summary": SUMMARY, "reports": REPORTS, "verify": accept, **options}
        before, folders = state(root), sorted(p for p in root.rglob("*") if p.is_dir())
        with pytest.raises(error, match=match or None):
            publish(root / "staged", target, **arguments)
        assert state(root) == before
        assert sorted(p for p in root.rglob("*") if p.is_dir()) == folders

    def test_verification(self, target: Path) -> None:
        def refuse(path: Path) -> None:
            raise PrivacyViolation("refused")

        self.check(target, PrivacyViolation, "refused", verify=refuse)

    def test_interrupt_while_verifying(self, target: Path) -> None:
        self.check(target, KeyboardInterrupt, "", verify=interrupted)

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    def test_full_disk(self, target: Path, place: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(*PLACES[place], failing(number))
        self.check(target, EngineError, "No space left on device while writing 'p.parquet'")

    def test_full_disk_while_copying(self, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "link", failing(errno.EXDEV))
        monkeypatch.setattr(shutil, "copyfile", failing(errno.ENOSPC))
        self.check(target, EngineError, "No space left on device")

    @pytest.mark.parametrize("place", PLACES)
    def test_interrupt(self, target: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(*PLACES[place], interrupted)
        self.check(target, KeyboardInterrupt, "")

    @pytest.mark.parametrize("error", [failing(errno.EIO), interrupted], ids=["io", "ctrl-c"])
    @pytest.mark.parametrize("after", range(4))
    def test_between_the_renames(
        self, target: Path, after: int, error: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, done = Path.replace, []

        def replace(self: Path, to: Path) -> Path:
            if len(done) == after:
                done.append("broken")
                error()
            done.append(str(to))
            return real(self, to)

        monkeypatch.setattr(Path, "replace", replace)
        self.check(target, (EngineError, KeyboardInterrupt), "")  # type: ignore[arg-type]

    def test_folder_not_writable(self, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "open", failing(errno.EACCES))
        self.check(target, EngineError, "is not writable")

    def test_read_only_file_system(self, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("duckanon.io.sinks.files.PrivateFolder", failing(errno.EROFS))
        self.check(target, EngineError, "is not writable")


def test_a_target_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "staged").write_text("y")
    with pytest.raises(EngineError, match="not a folder"):
        publish(tmp_path / "staged", tmp_path / "file" / "p.parquet", summary=SUMMARY, reports={}, verify=accept)
    with pytest.raises(EngineError, match="not a folder"):
        require_writable(tmp_path / "file" / "p.parquet")


def test_folders_made_in_vain_are_removed_but_not_those_with_something_in_them(tmp_path: Path) -> None:
    def work() -> None:
        with made_folder(tmp_path / "a" / "b"):
            (tmp_path / "a" / "other").touch()
            raise ValueError("vain")

    with pytest.raises(ValueError, match="vain"):
        work()
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["other"]


@pytest.mark.parametrize("after", range(1, 4))
def test_killed_between_the_renames_is_seen_and_repaired(tmp_path: Path, after: int) -> None:
    target = tmp_path / "p.parquet"
    put(target, b"old")
    program = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from duckanon.io.sinks import publish
        real, left = Path.replace, int(sys.argv[2])
        def replace(self, to):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return real(self, to)
        Path.replace = replace
        target = Path(sys.argv[1])
        staged = target.with_name("staged")
        staged.write_bytes(b"new")
        publish(staged, target, summary={}, reports={"json": "[]", "md": "new"}, verify=lambda path: None)
    """)
    killed = subprocess.run([sys.executable, "-c", program, str(target), str(after)], check=False)
    assert killed.returncode == -9
    assert any("p.parquet" in p for p in verify_files(tmp_path / "p.manifest.json"))
    (tmp_path / "staged").unlink()
    put(target, b"newer")
    assert verify_files(tmp_path / "p.manifest.json") == []
    assert len(list(tmp_path.iterdir())) == 4


class TestLock:
    def test_a_second_process_is_refused_and_a_third_is_not(self, tmp_path: Path) -> None:
        target = tmp_path / "p.parquet"
        program = "import sys; from pathlib import Path; from duckanon.io.sinks import locked\n"
        program += "with locked(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", program, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(EngineError, match=r"Another run is writing 'p\.parquet'"):
                put(target)
            put(tmp_path / "q.parquet")  # another target is nobody's business
            assert not target.exists()
            other.communicate()
        put(target)
        assert not [p for p in tmp_path.iterdir() if p.name.endswith(".lock")]

    def test_a_lock_file_left_by_a_killed_run_does_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / ".p.parquet.lock").touch()
        put(tmp_path / "p.parquet")
        assert not (tmp_path / ".p.parquet.lock").exists()

    def test_a_lock_that_was_removed_while_it_was_opened_is_not_trusted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, real, calls = tmp_path / ".p.parquet.lock", fcntl.flock, []

        def flock(handle: int, how: int) -> None:
            calls.append(handle)
            if len(calls) == 1:  # the holder before us ends, and another run makes a lock file of its own
                path.unlink()
                path.touch()
            real(handle, how)

        monkeypatch.setattr(fcntl, "flock", flock)
        with locked(tmp_path / "p.parquet"):
            assert len(calls) == 2
            with path.open() as other, pytest.raises(BlockingIOError):
                real(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_link_in_place_of_the_lock_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / ".p.parquet.lock").symlink_to(tmp_path / "victim")
        with pytest.raises(EngineError):
            put(tmp_path / "p.parquet")
        assert not (tmp_path / "victim").exists()

    def test_writers_at_once_leave_one_whole_release(self, tmp_path: Path) -> None:
        program = textwrap.dedent("""
            import sys
            from pathlib import Path
            from duckanon.errors import EngineError
            from duckanon.io.sinks import publish
            target, me = Path(sys.argv[1]), sys.argv[2]
            staged = target.with_name("staged" + me)
            for turn in range(10):
                staged.write_bytes(me.encode() * 1000)
                try:
                    publish(staged, target, summary={}, reports={"md": me}, verify=lambda path: None)
                except EngineError as error:
                    assert "Another run" in str(error), error
            staged.unlink()
        """)
        target = tmp_path / "p.parquet"
        running = [subprocess.Popen([sys.executable, "-c", program, str(target), str(i)]) for i in range(6)]
        assert [p.wait() for p in running] == [0] * 6
        assert verify_files(tmp_path / "p.manifest.json") == []
        assert target.read_bytes() == (tmp_path / "p.report.md").read_bytes() * 1000
        assert sorted(p.name for p in tmp_path.iterdir()) == ["p.manifest.json", "p.parquet", "p.report.md"]


class TestManifest:
    @pytest.fixture
    def manifest(self, tmp_path: Path) -> Path:
        return put(tmp_path / "p.parquet")["manifest"]

    def test_says_what_was_promised_and_how(self, manifest: Path) -> None:
        content = read_manifest(manifest)
        for key in ("unit", "promise", "checks", "roles", "hierarchies", "found", "suppression_limit", "seeded"):
            assert content[key] == SUMMARY[key]
        assert content["duckanon"] == "0.1.0"
        assert content["engine"] == {"name": "duckdb", "version": "2.0.0"}
        assert content["python"].count(".") == 2
        assert content["created"].endswith("+00:00")
        release = content["files"][0]
        assert release == {
            "name": "p.parquet",
            "role": "release",
            "bytes": 14,
            "sha256": hashlib.sha256(b"PAR1 rows PAR1").hexdigest(),
        }

    def test_has_no_seed_no_key_no_path_and_nothing_that_nobody_listed(self, manifest: Path, tmp_path: Path) -> None:
        text = manifest.read_text()
        assert json.loads(text)["algorithm"]["parameters"] == {"stop": "limit"}
        for secret in ("4711", "geheim", CANARY, str(tmp_path)):
            assert secret not in text

    @pytest.mark.parametrize("name", ["p.parquet", "p.report.md", "p.report.json"])
    def test_a_missing_or_longer_file_is_named(self, manifest: Path, name: str) -> None:
        file = manifest.with_name(name)
        file.write_bytes(file.read_bytes() + b" ")
        assert [p.split(":")[0] for p in verify_files(manifest)] == [name]
        file.unlink()
        assert verify_files(manifest) == [f"{name}: missing"]

    def test_every_single_bit_flip_is_found(self, manifest: Path) -> None:
        rng = random.Random(1)
        for file in sorted(manifest.parent.iterdir()):
            content = file.read_bytes()
            bits = rng.sample(range(len(content) * 8), min(300, len(content) * 8))
            for bit in bits:
                changed = bytearray(content)
                changed[bit // 8] ^= 1 << bit % 8
                file.write_bytes(changed)
                assert verify_files(manifest), (file.name, bit)
            file.write_bytes(content)
        assert verify_files(manifest) == []

    @pytest.mark.parametrize(
        "raw", [b"", b"[]", b"{}", b"\xff", b"null", b'{"sha256": 1, "files": [{}]}', b"[" * 100_000]
    )
    def test_what_is_no_manifest(self, tmp_path: Path, raw: bytes) -> None:
        (tmp_path / "m.json").write_bytes(raw)
        with pytest.raises(DataError, match=r"m\.json"):
            read_manifest(tmp_path / "m.json")
        assert len(verify_files(tmp_path / "m.json")) == 1

    def test_no_manifest(self, tmp_path: Path) -> None:
        assert verify_files(tmp_path / "m.json") == ["There is no manifest 'm.json'."]
        assert len(verify_files(tmp_path)) == 1

    @pytest.mark.parametrize("name", ["../p.parquet", "/etc/passwd", "..", "", "a\\b"])
    def test_a_manifest_cannot_point_outside_of_its_folder(self, manifest: Path, name: str) -> None:
        content = read_manifest(manifest)
        content["files"][0]["name"] = name
        manifest.write_text(sealed(content))
        assert "outside" in verify_files(manifest)[0]


def test_a_full_disk_leaves_no_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckanon.engine.process._locked", failing(errno.ENOSPC))
    with pytest.raises(EngineError, match="No space left"):
        require_writable(tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []
