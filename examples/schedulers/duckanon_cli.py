"""Run a duckanon job from a scheduler: call the command, and tell what may be tried again from what may not.

Needs nothing but the standard library and the command `duckanon`, which can live in an environment of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any

MEANING = {
    0: "published",
    1: "unexpected error",
    2: "configuration: the job file is wrong",
    3: "data or schema drift: the source is not what the job expects",
    4: "the promise cannot be kept within the job's limits",
    5: "the gate refused: the result broke its promise",
    6: "environment: disk, memory, database or another run in the way",
    130: "interrupted",
    143: "terminated",
}
TRY_AGAIN = frozenset({6, 130, 143})
"""Only these may go away by themselves. All others end the same way until a person has looked."""


class JobFailed(Exception):  # noqa: N818 - what happened
    """The job published nothing; the last good export is as it was."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"exit code {code}, {MEANING.get(code, 'unknown')}: {message}")
        self.code = code

    @property
    def try_again(self) -> bool:
        """Whether the same job may end well a little later."""
        return self.code in TRY_AGAIN


def run_job(job: str, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Run a job and return what the command says; a JobFailed says why nothing was published.

    The command is `duckanon`, or what the environment variable DUCKANON says. Its log goes to this task's own.
    """
    words = list(command) if command else shlex.split(os.environ.get("DUCKANON", "duckanon"))
    try:
        # The words are the operator's own, and no shell reads them.
        process = subprocess.Popen([*words, "run", job, "--json"], stdout=subprocess.PIPE, text=True, encoding="utf-8")  # noqa: S603
    except OSError as error:
        raise JobFailed(6, f"the command {words[0]!r} cannot be started: {error.strerror}") from None
    with process:
        try:
            said, _ = process.communicate()
        except BaseException:
            # The task was cancelled or ran out of time: the job is asked to end, and cleans up after itself.
            process.terminate()
            process.wait()
            raise
    try:
        document = json.loads(said)
    except ValueError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    if process.returncode:
        # A process that was killed has no code of its own: shells count from 128.
        code = process.returncode if process.returncode > 0 else 128 - process.returncode
        raise JobFailed(code, (document.get("error") or {}).get("message", "no reason was given"))
    return document


def figures(document: dict[str, Any]) -> dict[str, Any]:
    """Return what is worth keeping of a run: counts and names, never values."""
    found = document.get("summary", {}).get("found", {})
    kept = {key: found.get(key) for key in ("rows_in", "rows_published", "rows_suppressed", "classes")}
    kept["smallest_class"] = (found.get("class_size") or {}).get("min")
    kept["release"] = (document.get("written") or {}).get("release")
    return {key: value for key, value in kept.items() if value is not None}
