"""A process that publishes and is killed: it forks for each order that it reads, and the child kills itself.

Everything is imported once, before the first fork, and no database is opened here: so a kill costs as little as the run
that it ends. An order is a line of JSON, and so is what is answered.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckanon
import duckanon.io.disk
import duckanon.io.sinks.commit
import duckanon.release.gate
import duckanon.release.release
import duckanon.release.stages.check
import duckanon.release.verify
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import DuckanonError
from duckanon.io.postgres.session import Address, Session
from duckanon.io.sinks import CsvFile, DuckDBTable, ParquetFile, ParquetFolder
from duckanon.jobs import run_job
from tests.jobs.jobs import fill, write

# Every place where a run may be killed: the call, and where it is looked up.
POINTS: dict[str, list[tuple[Any, str]]] = {
    "replace": [(os, "replace")],
    "rename": [(os, "rename")],
    "link": [(os, "link")],
    "fsync": [(os, "fsync")],
    "unlink": [(os, "unlink")],
    "rmdir": [(os, "rmdir")],
    "mkdir": [(os, "mkdir")],
    "write_text": [(Path, "write_text")],
    "write_parquet": [(DuckDBEngine, "write_parquet")],
    "run": [(DuckDBEngine, "run")],
    "statement": [(DuckDBEngine, "_execute")],
    "gate": [(duckanon.release.release, "check_release"), (duckanon.release.stages.check, "check_release")],
    "exchange": [(duckanon.io.disk, "exchange"), (duckanon.io.sinks.commit, "exchange")],
    "propose": [(duckanon.io.sinks.commit, "propose")],
    "carry_out": [(duckanon.io.sinks.commit, "carry_out")],
    "discard": [(duckanon.io.sinks.commit, "discard")],
    "commit": [(Session, "commit")],
    "session": [(Session, "run")],
}


def make_sink(kind: str, folder: Path, uri: str | None = None) -> Any:
    out = folder / "out"
    if kind == "postgres":
        from duckanon.io.sinks.postgres import PostgresTable

        return PostgresTable(Address(str(uri)), "people", out / "reports")
    return {
        "parquet": lambda: ParquetFile(out / "people.parquet"),
        "csv": lambda: CsvFile(out / "people.csv"),
        "folder": lambda: ParquetFolder(out / "people", ["town"]),
        "table": lambda: DuckDBTable(out / "people.duckdb", "people", out / "reports"),
    }[kind]()


def publish(order: dict[str, Any]) -> None:
    folder, kind = Path(order["folder"]), order["kind"]
    if kind == "job":
        run_job(folder / "job.toml")
        return
    with duckanon.anonymize(
        folder / order.get("source", "people.parquet"),
        quasi_identifiers=["age", "town"],
        sensitive=["ill"],
        identifiers=["name", "id"],
        hierarchies={"town": folder / "town.csv"},
        k=4,
        algorithm="datafly",
        suppression_limit=0.1,
        stage=folder / "out",
    ) as release:
        if kind == "write":
            release.write(folder / "out" / "people.parquet")
            return
        sink = make_sink(kind, folder, order.get("uri"))
        sink.require_writable()
        reports = {"md": release.report("md"), "json": release.report("json")}
        sink.publish(release, reports=reports, run={"run": order["run"], "job": "people"})


def watch(kill: dict[str, Any] | None, calls: Counter[str]) -> None:
    """Count the calls of every point, and die at the one that is named."""

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            here = kill is not None and kill.get("call") == name and kill["n"] == calls[name]
            if here and kill is not None and kill["when"] == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **options)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called

    for name, places in POINTS.items():
        for owner, attribute in places:
            setattr(owner, attribute, wrapped(name, getattr(owner, attribute)))


def child(order: dict[str, Any], answer: int) -> None:
    calls: Counter[str] = Counter()
    tempfile.tempdir = str(Path(order["folder"]) / "tmp")
    watch(order.get("kill"), calls)
    told: dict[str, Any] = {}
    began = time.monotonic()
    try:
        publish(order)
    except DuckanonError as error:
        told = {"error": type(error).__name__, "message": str(error)}
    told |= {"calls": calls, "seconds": time.monotonic() - began}
    os.write(answer, json.dumps(told).encode())
    os.close(answer)
    # The ends of pytest's and the parent's own business are not ours to carry out.
    os._exit(0)


def obey(order: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            child(order, writing)
        finally:
            os._exit(70)
    os.close(writing)
    kill = order.get("kill") or {}
    if "seconds" in kill:
        time.sleep(kill["seconds"])
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    found: dict[str, Any] = json.loads(told) if told else {}
    return {**found, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "exit": status}


def warm() -> None:
    """Do everything once, so that no child imports or parses anything; every database is closed when it returns."""
    with tempfile.TemporaryDirectory() as name:
        folder = fill(Path(name))
        (folder / "out").mkdir()
        write(folder)
        for kind in ("job", "csv", "folder", "table"):
            publish({"kind": kind, "folder": name, "run": "0"})
            shutil.rmtree(folder / "out")
            (folder / "out").mkdir()


def main() -> None:
    warm()
    for line in sys.stdin:
        print(json.dumps(obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
