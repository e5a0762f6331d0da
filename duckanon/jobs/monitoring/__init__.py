"""Monitoring: log lines, Prometheus metrics and OpenLineage events of a run.

All are made from the record of a run, a plain mapping with an entry for each table, also after a failure. No value of
the data and no secret is in any of them.
"""

from __future__ import annotations

from duckanon.jobs.monitoring.lineage import events, write_events
from duckanon.jobs.monitoring.logs import JsonFormatter, LoggedProgress, about, configure, log_run
from duckanon.jobs.monitoring.memory import peak_memory
from duckanon.jobs.monitoring.prometheus import textfile, write_textfile

__all__ = [
    "JsonFormatter",
    "LoggedProgress",
    "about",
    "configure",
    "events",
    "log_run",
    "peak_memory",
    "textfile",
    "write_events",
    "write_textfile",
]
