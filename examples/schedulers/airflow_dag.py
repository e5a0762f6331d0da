"""Publish a table every night with Airflow 3. Put this file and duckanon_cli.py into the folder of your DAGs.

DUCKANON       the command, if it is not on the path: /opt/duckanon/bin/duckanon
DUCKANON_JOB   the job file: /etc/duckanon/hospital.toml
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException
from duckanon_cli import JobFailed, figures, run_job

JOB = os.environ.get("DUCKANON_JOB", "/etc/duckanon/hospital.toml")


@dag(
    dag_id="duckanon_hospital",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 - as Airflow's own documents write it
    catchup=False,  # a night that was missed cannot be made up for: the source has moved on
    max_active_runs=1,  # a second run would wait for nothing: duckanon refuses two writers of one target
    tags=["duckanon"],
)
def nightly() -> None:
    """Anonymize, prove, publish."""

    @task(retries=3, retry_delay=timedelta(minutes=10), execution_timeout=timedelta(hours=4))
    def publish() -> dict[str, Any]:
        try:
            return figures(run_job(JOB))
        except JobFailed as failed:
            if failed.try_again:
                raise
            # Drift, a promise that cannot be kept, a gate that refused: trying again would not change it.
            raise AirflowFailException(str(failed)) from None

    publish()


nightly()
