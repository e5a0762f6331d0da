"""Publish a table every night with Dagster. Put duckanon_cli.py beside this file.

dagster dev -f dagster_job.py

DUCKANON       the command, if it is not on the path: /opt/duckanon/bin/duckanon
DUCKANON_JOB   the job file: /etc/duckanon/hospital.toml
"""

import os

import dagster as dg
from duckanon_cli import JobFailed, figures, run_job

JOB = os.environ.get("DUCKANON_JOB", "/etc/duckanon/hospital.toml")
RETRIES, WAIT = 3, float(os.environ.get("DUCKANON_WAIT", "600"))


@dg.asset(group_name="releases", kinds={"parquet"})
def hospital_release() -> dg.MaterializeResult:
    """The anonymous release of the hospital's stays."""
    try:
        return dg.MaterializeResult(metadata=figures(run_job(JOB)))
    except JobFailed as failed:
        if failed.try_again:
            raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=WAIT) from failed
        # Drift, a promise that cannot be kept, a gate that refused: trying again would not change it.
        raise dg.Failure(str(failed), metadata={"exit_code": failed.code}, allow_retries=False) from None


publish = dg.define_asset_job("publish", selection=[hospital_release])
nightly = dg.ScheduleDefinition(job=publish, cron_schedule="0 2 * * *", execution_timezone="UTC")
defs = dg.Definitions(assets=[hospital_release], jobs=[publish], schedules=[nightly])
