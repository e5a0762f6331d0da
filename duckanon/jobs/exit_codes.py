"""Exit codes: how a run ended, for schedulers."""

from __future__ import annotations

from duckanon import errors

PUBLISHED, FAILED, CONFIGURATION, DATA, INFEASIBLE, VIOLATION, ENVIRONMENT = 0, 1, 2, 3, 4, 5, 6
INTERRUPTED, TERMINATED = 130, 143

# The first line that fits decides.
_EXITS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], int], ...] = (
    ((errors.DataError, errors.UnlistedColumnError, errors.UnknownValueError), DATA),
    ((errors.ConfigError, errors.HierarchyError, errors.UnsupportedError), CONFIGURATION),
    (errors.InfeasibleError, INFEASIBLE),
    (errors.PrivacyViolation, VIOLATION),
    ((errors.EngineError, OSError, MemoryError), ENVIRONMENT),
    (errors.Terminated, TERMINATED),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_code(error: BaseException | None) -> int:
    """Return the exit code that tells a scheduler what happened.

    0 published; 2 configuration; 3 data or schema drift; 4 the privacy requirements cannot be met; 5 the gate refused;
    6 environment; 130 interrupted; 143 terminated; 1 an unexpected error.

    Examples
    --------
    >>> exit_code(None), exit_code(errors.JobError("")), exit_code(errors.DataError(""))
    (0, 2, 3)
    """
    if error is None:
        return PUBLISHED
    return next((code for kind, code in _EXITS if isinstance(error, kind)), FAILED)
