"""Jobs as ways to anonymize any table: what a job promises, of rows that somebody else holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from duckanon.io.source import Source
from duckanon.release import pipeline

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.jobs import Job, JobTable
    from duckanon.progress import Listener
    from duckanon.release.release import Release


def anonymizer(job: Job, table: JobTable, progress: Listener | None = None) -> Callable[[pa.Table], Release]:
    """Return a function that makes the release of a table as a job would; nothing is published.

    Its source and target are left alone: rows come from the table that is given.
    """

    def anonymize(rows: pa.Table) -> Release:
        engine = job.open_engine(progress)
        try:
            return pipeline.run(replace(table, source=Source.arrow(rows)).plan(engine), engine)
        except BaseException:
            engine.close()
            raise

    return anonymize
