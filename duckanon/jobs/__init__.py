"""Jobs: a TOML file with source, roles, privacy and output, from which a release is made every night."""

from duckanon.jobs.exit_codes import (
    CONFIGURATION,
    DATA,
    ENVIRONMENT,
    FAILED,
    INFEASIBLE,
    INTERRUPTED,
    PUBLISHED,
    VIOLATION,
    exit_code,
)
from duckanon.jobs.job import Job, JobTable
from duckanon.jobs.keys import Expect
from duckanon.jobs.read import load_job
from duckanon.jobs.run import JobResult, TableResult, job_statements, plan_job, run_job

__all__ = [
    "CONFIGURATION",
    "DATA",
    "ENVIRONMENT",
    "FAILED",
    "INFEASIBLE",
    "INTERRUPTED",
    "PUBLISHED",
    "VIOLATION",
    "Expect",
    "Job",
    "JobResult",
    "JobTable",
    "TableResult",
    "exit_code",
    "job_statements",
    "load_job",
    "plan_job",
    "run_job",
]
