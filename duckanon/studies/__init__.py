"""Studies: papers about anonymization as commands that anyone can rerun, on the papers' tables or their own.

Examples
--------
>>> from duckanon import studies
>>> len(studies.names())
5
"""

from __future__ import annotations

from duckanon.studies.base import Study, Task, get_study, names
from duckanon.studies.run import Outcome, run_study

__all__ = ["Outcome", "Study", "Task", "get_study", "names", "run_study"]
