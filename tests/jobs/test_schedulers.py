"""The examples for schedulers: what is tried again and what is not. Airflow and Dagster are replaced by stubs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckanon.report.phrases import EXITS

FOLDER = Path(__file__).parents[2] / "examples" / "schedulers"
CODES = [0, 1, 2, 3, 4, 5, 6, 130, 143]
AGAIN = (6, 130, 143)


def load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = load("duckanon_cli")
    monkeypatch.setitem(sys.modules, "duckanon_cli", module)
    return module


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make a command that says what it was called with, and ends as told."""

    def make(code: int, said: str | None = None) -> Path:
        document = {
            "summary": {"found": {"rows_in": 9, "rows_published": 8, "class_size": {"min": 5}}},
            "written": {"release": "out/a.parquet"},
        }
        wrong = {"error": {"type": "X", "message": "made up", "exit_code": code}}
        text = json.dumps(wrong if code else document) if said is None else said
        script = tmp_path / "fake duckanon.py"
        called = tmp_path / "called"
        script.write_text(
            textwrap.dedent(f"""\
            import pathlib, sys
            pathlib.Path({str(called)!r}).write_text(repr(sys.argv[1:]))
            print({text!r})
            sys.exit({code})
            """)
        )
        monkeypatch.setenv("DUCKANON", f"'{sys.executable}' '{script}'")
        return called

    return make


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_scripts_compile_and_know_nothing_of_the_package(path: Path) -> None:
    compile(path.read_text(encoding="utf-8"), path.name, "exec")
    assert not re.search(r"^\s*(import|from) duckanon\b(?!_)", path.read_text(encoding="utf-8"), re.M)


class TestCommand:
    def test_the_codes_are_those_of_the_command(self, cli: types.ModuleType) -> None:
        assert set(cli.MEANING) == set(EXITS) == set(CODES)
        assert set(cli.TRY_AGAIN) == set(AGAIN)

    def test_a_published_job(self, cli: types.ModuleType, fake: Callable[..., Path]) -> None:
        called = fake(0)
        found = cli.figures(cli.run_job("a job.toml"))
        assert found == {"rows_in": 9, "rows_published": 8, "smallest_class": 5, "release": "out/a.parquet"}
        assert called.read_text() == "['run', 'a job.toml', '--json']"

    @pytest.mark.parametrize("code", CODES[1:])
    def test_a_failed_job(self, cli: types.ModuleType, fake: Callable[..., Path], code: int) -> None:
        fake(code)
        with pytest.raises(cli.JobFailed, match=f"exit code {code}, .*made up") as caught:
            cli.run_job("job.toml")
        assert caught.value.code == code
        assert caught.value.try_again is (code in AGAIN)

    @pytest.mark.parametrize("said", ["", "Traceback", "[]", '{"error": null}'])
    def test_a_command_that_says_nothing_useful(
        self, cli: types.ModuleType, fake: Callable[..., Path], said: str
    ) -> None:
        fake(5, said)
        with pytest.raises(cli.JobFailed, match=r"exit code 5, .*no reason was given"):
            cli.run_job("job.toml")

    def test_a_command_that_was_killed_is_not_tried_again(self, cli: types.ModuleType) -> None:
        kill = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
        with pytest.raises(cli.JobFailed, match="exit code 137, unknown") as caught:
            cli.run_job("job.toml", kill)
        assert not caught.value.try_again

    def test_a_command_that_is_not_there(self, cli: types.ModuleType) -> None:
        with pytest.raises(cli.JobFailed, match="cannot be started: No such file") as caught:
            cli.run_job("job.toml", ["/nowhere/duckanon"])
        assert caught.value.code == 6

    def test_a_cancelled_task_ends_the_command(self, cli: types.ModuleType, tmp_path: Path) -> None:
        code = (
            "import os, pathlib, signal, time\n"
            # A shell starts what runs in the background deaf to Ctrl-C.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
            "time.sleep(20)\n"
        )

        def cancel() -> None:
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                time.sleep(0.02)
            # To the thread that waits, once it does: another one, or a signal too early, would leave it waiting.
            time.sleep(0.5)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        # Libraries that other tests have loaded let a read go on after a signal.
        signal.siginterrupt(signal.SIGINT, True)
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            cli.run_job("job.toml", [sys.executable, "-c", code])
        thread.join()
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_the_real_command(self, cli: types.ModuleType, tmp_path: Path) -> None:
        with pytest.raises(cli.JobFailed, match=r"exit code 2, configuration.*no such job file"):
            cli.run_job(str(tmp_path / "none.toml"), [sys.executable, "-m", "duckanon"])


class TestAirflow:
    @pytest.fixture
    def publish(self, cli: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[], Any], type]:
        """Return the task's own function and the exception that forbids a retry."""
        tasks: list[Callable[[], Any]] = []
        sdk, errors = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.sdk.exceptions")

        class AirflowFailException(Exception):
            pass

        def task(**options: Any) -> Any:
            assert options["retries"] > 0
            return lambda function: tasks.append(function) or (lambda: None)

        def dag(**options: Any) -> Any:
            assert options["catchup"] is False
            assert options["max_active_runs"] == 1
            return lambda function: function

        vars(sdk).update(dag=dag, task=task)
        vars(errors).update(AirflowFailException=AirflowFailException)
        for name, module in (("airflow", types.ModuleType("airflow")), ("airflow.sdk", sdk)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, "airflow.sdk.exceptions", errors)
        load("airflow_dag")
        (one,) = tasks
        return one, AirflowFailException

    @pytest.mark.parametrize("code", CODES)
    def test_mapping(self, publish: Any, cli: types.ModuleType, fake: Callable[..., Path], code: int) -> None:
        function, final = publish
        fake(code)
        if code == 0:
            assert function()["rows_published"] == 8
            return
        with pytest.raises(cli.JobFailed if code in AGAIN else final, match=f"exit code {code}"):
            function()


class TestDagster:
    @pytest.fixture
    def dagster(self, cli: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
        module = types.ModuleType("dagster")

        class Failure(Exception):
            def __init__(self, description: str, metadata: Any, allow_retries: bool) -> None:
                super().__init__(description)
                self.metadata, self.allow_retries = metadata, allow_retries

        class RetryRequested(Exception):
            def __init__(self, max_retries: int, seconds_to_wait: float) -> None:
                super().__init__()
                self.max_retries, self.seconds_to_wait = max_retries, seconds_to_wait

        def kept(**given: Any) -> Any:
            return types.SimpleNamespace(**given)

        vars(module).update(
            Failure=Failure,
            RetryRequested=RetryRequested,
            MaterializeResult=kept,
            ScheduleDefinition=kept,
            Definitions=kept,
            asset=lambda **_: lambda function: function,
            define_asset_job=lambda name, **given: kept(name=name, **given),
        )
        monkeypatch.setitem(sys.modules, "dagster", module)
        return module

    @pytest.mark.parametrize("code", CODES)
    def test_mapping(self, dagster: types.ModuleType, fake: Callable[..., Path], code: int) -> None:
        publish = load("dagster_job").hospital_release
        fake(code)
        if code == 0:
            assert publish().metadata["rows_published"] == 8
        elif code in AGAIN:
            with pytest.raises(dagster.RetryRequested) as again:
                publish()
            assert again.value.max_retries == 3
            assert again.value.seconds_to_wait == 600
        else:
            with pytest.raises(dagster.Failure, match=f"exit code {code}") as final:
                publish()
            assert final.value.allow_retries is False
            assert final.value.metadata == {"exit_code": code}


class TestSystemd:
    SERVICE = (FOLDER / "duckanon@.service").read_text(encoding="utf-8")

    def test_only_codes_that_may_go_away_are_tried_again(self) -> None:
        (never,) = re.findall(r"^RestartPreventExitStatus=(.*)$", self.SERVICE, re.M)
        assert {int(code) for code in never.split()} == set(CODES) - {0, *AGAIN}
        assert "Restart=on-failure" in self.SERVICE

    @pytest.mark.parametrize(
        "line",
        [
            "ProtectSystem=strict",
            "PrivateTmp=yes",
            "UMask=0077",
            "LimitCORE=0",
            "MemorySwapMax=0",
            "NoNewPrivileges=yes",
            "CapabilityBoundingSet=",
        ],
    )
    def test_is_hardened(self, line: str) -> None:
        assert line in self.SERVICE.splitlines()
        assert re.search(r"^MemoryMax=\d+G$", self.SERVICE, re.M)

    def test_systemd_accepts_the_units(self, tmp_path: Path) -> None:
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("systemd-analyze is not here")
        # The command need not be installed here.
        service = self.SERVICE.replace("/opt/duckanon/bin/duckanon", sys.executable)
        (tmp_path / "duckanon@night.service").write_text(service)
        shutil.copy(FOLDER / "duckanon@.timer", tmp_path / "duckanon@night.timer")
        units = ["./duckanon@night.service", "./duckanon@night.timer"]
        done = subprocess.run(
            [analyze, "verify", *units], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_table_of_the_page_is_that_of_the_code(cli: types.ModuleType) -> None:
    rows = re.findall(r"^\| (\d+) \| (.*?) \| (.*?)\|$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M)
    assert [int(code) for code, _, _ in rows] == CODES
    assert {int(code) for code, _, again in rows if "yes" in again} == set(cli.TRY_AGAIN)
