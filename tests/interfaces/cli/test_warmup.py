"""The command that compiles kernels ahead of their first use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duckanon.interfaces.cli.app import app
from duckanon.jobs import warmup
from duckanon.kernels import jit

LATTICE = ({"algorithm": "optimal", "suppression_limit": 0.1},)


def test_warmup_says_where_kernels_are_and_fills_the_shared_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "USUAL", LATTICE)
    done = CliRunner().invoke(app, ["warmup", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert Path(told["folder"]) == jit._FOLDER
    assert told["kernels"] == len(list(jit._FOLDER.glob("*.nbc"))) > 0
    monkeypatch.setenv("DUCKANON_KERNELS", str(tmp_path / "shared"))
    done = CliRunner().invoke(app, ["warmup"])
    assert done.exit_code == 0, done.output
    assert "0 of them compiled now" in done.stdout
    copied = {path.name for path in (tmp_path / "shared" / jit._FOLDER.name).iterdir()}
    assert copied == {path.name for path in jit._FOLDER.iterdir() if path.suffix in (".nbc", ".nbi")}


def test_warmup_does_not_fill_a_folder_that_everybody_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "USUAL", LATTICE)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("DUCKANON_KERNELS", str(tmp_path / "shared"))
    done = CliRunner().invoke(app, ["warmup"])
    assert done.exit_code != 0
    assert not list((tmp_path / "shared").iterdir())
