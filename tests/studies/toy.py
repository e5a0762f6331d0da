"""A study without content, to test how studies run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from duckanon.errors import InfeasibleError
from duckanon.report.model import Lines
from duckanon.studies.base import Chapter, Record, Study, Task


class Toy(Study):
    """Twelve numbers."""

    name = "toy"
    title = "A toy"
    paper = "nobody's"
    keys = {"seconds": float, "broken": list, "deadly": list}  # noqa: RUF012

    @classmethod
    def shipped(cls) -> Path:
        return Path(__file__).with_name("toy.toml")

    def tasks(self, settings) -> list[Task]:
        return [Task({"number": i}, dict(settings.values)) for i in range(12)]

    def run(self, task: Task) -> list[Record]:
        number = task.labels["number"]
        time.sleep(task.given["seconds"])
        if number in task.given["deadly"]:
            os._exit(9)
        if number in task.given["broken"] and number < 3:
            raise InfeasibleError(f"number {number} cannot be done.")
        if number in task.given["broken"]:
            raise ValueError("zebra-canary")
        return [{"value": float(np.random.default_rng(task.seed()).random())}]

    def page(self, records: list[Record], settings) -> list[Chapter]:
        return [Chapter("Numbers", [Lines([f"{len(records)} numbers."])])]
