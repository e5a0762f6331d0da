"""The log: sparse, one line for each thing, with names and counts and never a value or a statement nobody asked for."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import ParameterError
from duckanon.jobs.monitoring import JsonFormatter, LoggedProgress, about, configure, log_run
from duckanon.progress import Event, Progress
from tests.jobs.runs import failed, run


class Log:
    """What was written, and how to begin."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.undo = lambda: None

    def begin(self, kind: Any = "json", **options: Any) -> Log:
        self.undo = configure(kind, self.stream, **options)
        return self

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    found = Log()
    yield found
    found.undo()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestJson:
    def test_a_line_is_an_object_with_time_level_logger_and_event(self, log: Log) -> None:
        log.begin()
        logging.getLogger("duckanon.x").warning("%d of %s", 3, "it")
        (line,) = log.lines
        assert list(line) == ["ts", "level", "logger", "event"]
        assert line["ts"].endswith("Z")
        assert len(line["ts"]) == len("2026-03-02T02:00:07.123Z")
        assert (line["level"], line["logger"], line["event"]) == ("warning", "duckanon.x", "3 of it")

    def test_says_what_it_is_about(self, log: Log) -> None:
        log.begin()
        with about(run="r", job="j"), about(table="t"):
            logging.getLogger("duckanon").info("in")
        logging.getLogger("duckanon").info("out")
        inside, outside = log.lines
        assert {k: inside.get(k) for k in ("run", "job", "table")} == {"run": "r", "job": "j", "table": "t"}
        assert "run" not in outside

    def test_other_attributes_of_a_record_stay_out(self, log: Log) -> None:
        log.begin()
        logging.getLogger("duckanon").info("x", extra={"value": "Zaphod", "rows": "Zaphod"})
        assert "Zaphod" not in log.text

    def test_an_exception_tells_its_type_alone(self, log: Log) -> None:
        for kind in ("json", "human"):
            log.begin(kind)
            try:
                raise ValueError("Could not convert 'Zaphod'")
            except ValueError:
                logging.getLogger("duckanon").exception("it broke")
            log.undo()
        assert log.text.count("ValueError") == 2
        assert "Zaphod" not in log.text
        assert "Traceback" not in log.text

    @pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\u2028", '"', "ü", "\udc80"])
    def test_a_name_cannot_begin_a_line(self, name: str) -> None:
        record = logging.makeLogRecord({"msg": "of %s", "args": (name,), "duckanon_job": name})
        text = JsonFormatter().format(record)
        assert "\n" not in text
        assert text.isascii()
        line = json.loads(text)
        assert (line["job"], line["event"]) == (name, f"of {name}")

    def test_numbers_that_json_has_not(self) -> None:
        record = logging.makeLogRecord({"msg": "x", "duckanon_seconds": float("nan")})
        assert json.loads(JsonFormatter().format(record))["seconds"] is None


class TestHuman:
    def test_a_line(self, log: Log) -> None:
        log.begin("human")
        with about(job="hospital", table="stays"):
            logging.getLogger("duckanon").info("hello")
        with about(job="same", table="same"):
            logging.getLogger("duckanon").error("bad\nthing")
        first, second = log.text.splitlines()
        assert first[4] == "-"
        assert first[20:] == " INFO    [hospital/stays] hello"[0:]
        assert second.endswith("ERROR   [same] bad\\nthing")


class TestConfigure:
    def test_again_replaces_and_undo_takes_back(self) -> None:
        logger = logging.getLogger("duckanon")
        before, level = list(logger.handlers), logger.level
        one, two = io.StringIO(), io.StringIO()
        configure("json", one)
        undo = configure("human", two)
        logger.info("x")
        assert one.getvalue() == ""
        assert two.getvalue() != ""
        undo()
        undo()
        assert logger.handlers == before
        logger.setLevel(level)

    def test_an_unknown_kind(self) -> None:
        with pytest.raises(ParameterError, match="'human' or 'json'"):
            configure("xml", io.StringIO())  # type: ignore[arg-type]

    @pytest.mark.parametrize("asked", [False, True])
    def test_statements_only_where_asked(self, log: Log, asked: bool) -> None:
        log.begin(sql=asked)
        # Somebody else may have turned on everything, as -v does.
        logging.getLogger("duckanon").setLevel(logging.DEBUG)
        people = pa.table({"age": [1, 1, 2, 2], "ill": ["x"] * 4})
        with duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=2):
            pass
        assert ("SELECT" in log.text) is asked
        assert any(line["logger"] == "duckanon.sql" for line in log.lines) is asked

    def test_nothing_below_the_level(self, log: Log) -> None:
        log.begin(level=logging.WARNING)
        logging.getLogger("duckanon").info("x")
        logging.getLogger("duckanon").warning("y")
        assert [line["event"] for line in log.lines] == ["y"]


class TestProgress:
    def test_begin_and_end_of_each_step(self, log: Log) -> None:
        log.begin()
        progress = Progress(LoggedProgress(run="r", job="j", table="t"))
        with progress.step("encode", 2000):
            for i in range(100):
                progress.advance(i)
        with progress.step("gate"):
            pass
        lines = log.lines
        assert [(line["step"], line["phase"]) for line in lines] == [
            ("encode", "begin"),
            ("encode", "end"),
            ("gate", "begin"),
            ("gate", "end"),
        ]
        assert lines[0]["event"] == "encode: started, 2,000 rows"
        assert lines[1]["rows"] == 2000
        assert lines[1]["seconds"] >= 0
        assert all((line["run"], line["job"], line["table"]) == ("r", "j", "t") for line in lines)

    def test_between_two_steps_there_is_none(self, log: Log) -> None:
        log.begin()
        progress = Progress(LoggedProgress())
        with progress.step("gate", 2000):
            progress.fraction(0.5)
        progress.fraction(0.1)
        assert [line["phase"] for line in log.lines] == ["begin", "end"]

    def test_at_most_one_line_every_thirty_seconds_in_between(self, log: Log) -> None:
        log.begin()
        clock = Clock()
        listener = LoggedProgress(clock=clock)
        for second in range(0, 100):
            clock.now = float(second)
            listener(Event("search", second, 100, "nodes", second))
        listener(Event("search", 100, 100, "nodes", 100.0, finished=True))
        going = [line for line in log.lines if line["phase"] == "going"]
        assert [line["done"] for line in going] == [30, 60, 90]
        assert going[0]["event"] == "search: 30 of 100 nodes in 30 s"
        assert "rows" not in going[0]
        assert len(log.lines) == 5

    def test_a_total_that_nobody_knows(self, log: Log) -> None:
        log.begin()
        clock = Clock()
        listener = LoggedProgress(clock=clock)
        listener(Event("read"))
        clock.now = 31.0
        listener(Event("read", 5000, None, "rows", 31.0))
        listener(Event("read", 0, None, "rows", 31.5, finished=True))
        assert [line["event"] for line in log.lines] == [
            "read: started",
            "read: 5,000 rows in 31 s",
            "read: done in 31.5 s",
        ]
        assert "total" not in log.lines[1]

    def test_hands_on_every_event_and_takes_them_from_threads(self, log: Log) -> None:
        log.begin()
        seen: list[Event] = []
        with about(job="j"):
            listener = LoggedProgress(seen.append)
        work = [threading.Thread(target=lambda: [listener(Event("x", i)) for i in range(50)]) for _ in range(8)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert len(seen) == 400
        assert [line["job"] for line in log.lines] == ["j"]


class TestRun:
    def test_a_published_run(self, log: Log) -> None:
        log.begin()
        log_run(run())
        warned, done = log.lines
        assert (warned["level"], warned["event"], warned["job"]) == (
            "warning",
            "The source has 3.1 % fewer rows.",
            "hospital",
        )
        assert done["event"] == "published: 19,500 of 20,000 rows in 13.5 s"
        for key, value in {
            "rows_in": 20000,
            "rows_suppressed": 500,
            "held_back": 37,
            "exit_code": 0,
            "loss": 0.1534,
        }.items():
            assert done[key] == value

    def test_a_dry_run_and_a_failed_one(self, log: Log) -> None:
        log.begin()
        log_run(run(outcome="dry_run", warnings=[]))
        log_run(failed())
        log_run({"outcome": "failed", "exit_code": 130})
        dry, bad, bare = log.lines
        assert dry["event"].startswith("dry run, nothing written: 19,500")
        assert bad["level"] == "error"
        assert bad["event"] == "failed with exit code 3 in 13.5 s. DataError: The source is empty."
        assert bad["error"] == "DataError"
        assert bare["exit_code"] == 130


def test_the_log_of_a_real_release_has_no_cell_of_the_data(log: Log) -> None:
    log.begin(sql=False)
    people = pa.table(
        {"age": [341, 342, 343] * 2, "town": ["Zaphodville", "Marvintown"] * 3, "ill": ["Beeblebrox"] * 6}
    )
    listener = LoggedProgress(run="r")
    with duckanon.anonymize(people, quasi_identifiers=["age", "town"], sensitive=["ill"], k=3, progress=listener):
        pass
    steps = [line["step"] for line in log.lines if line.get("phase") == "end"]
    assert "gate" in steps
    for cell in ("341", "343", "Zaphodville", "Marvintown", "Beeblebrox"):
        assert cell not in log.text
