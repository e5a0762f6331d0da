"""Checks that stop a job before it publishes something unexpected: schema, rows and loss."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from duckanon.errors import DataError, InfeasibleError, did_you_mean
from duckanon.plan.roles import Role

if TYPE_CHECKING:
    from duckanon.engine.sql.relations import Column
    from duckanon.jobs.keys import Expect
    from duckanon.release.release import Release

_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:,\s*)?)*\)", re.IGNORECASE)
_HINT = "Run with --accept-drift if that is intended."


def check_schema(
    columns: Sequence[Column], expect: Expect, last: Mapping[str, Any] | None, named: Sequence[str]
) -> None:
    """Raise where a column changed its type, or where one that the job names is missing since the last published run.

    A new column is not checked here: it has no role, which stops a job with ``unlisted = "error"``.
    """
    types = {c.name: c.type for c in columns}
    for name, wanted in ({} if expect.types is UNSET else expect.types).items():
        if name not in types:
            raise DataError(
                f"[expect] types names the column {name!r}, which the source does not have.{did_you_mean(name, types)}"
            )
        if not _same(types[name], wanted):
            raise DataError(f"The column {name!r} is {plain_type(types[name])}, expected {plain_type(wanted)}.")
    if last is None or expect.schema != "same":
        return
    before: Mapping[str, str] = last["columns"]
    lowered = {name.lower() for name in named}
    gone = [name for name in before if name not in types and name.lower() in lowered]
    if gone:
        listed, verb = ", ".join(repr(name) for name in gone), "is" if len(gone) == 1 else "are"
        raise DataError(f"The source changed since the last published run: {listed} {verb} missing.")
    changed = [name for name, kind in types.items() if name in before and not _same(before[name], kind)]
    if changed:
        changes = ", ".join(
            f"{name!r} was {plain_type(before[name])} and is {plain_type(types[name])}" for name in changed
        )
        raise DataError(f"The source changed since the last published run: {changes}. {_HINT}")


def check_rows(rows: int, expect: Expect, last: Mapping[str, Any] | None) -> None:
    """Raise where the source has too few or too many rows, by [expect] or compared with the last run."""
    if expect.min_rows is not UNSET and rows < expect.min_rows:
        raise DataError(f"The source has {rows} rows, expected at least {expect.min_rows}.")
    if expect.max_rows is not UNSET and rows > expect.max_rows:
        raise DataError(f"The source has {rows} rows, expected at most {expect.max_rows}.")
    before = last["rows_in"] if last is not None else None
    if not before:
        return
    if rows < before * (1 - expect.rows_may_fall):
        raise DataError(
            f"The source has {rows} rows and had {before} in the last published run: more than "
            f"{expect.rows_may_fall:.0%} are missing. {_HINT}"
        )
    if expect.rows_may_grow is not UNSET and rows > before * (1 + expect.rows_may_grow):
        raise DataError(
            f"The source has {rows} rows and had {before} in the last published run: it grew by more than "
            f"{expect.rows_may_grow:.0%}. {_HINT}"
        )


def check_use(release: Release, expect: Expect) -> None:
    """Raise where the release loses more than it may by [expect]."""
    left_out = release.rows_suppressed
    share = left_out / release.rows_in if release.rows_in else 0.0
    if expect.max_suppressed is not UNSET and share > expect.max_suppressed:
        raise InfeasibleError(
            f"{left_out} of {release.rows_in} rows ({share:.2%}) would be suppressed: more than the "
            f"{expect.max_suppressed:.2%} of [expect] max_suppressed."
        )
    _check_homogeneity(release, expect)
    if expect.max_loss is UNSET or not expect.max_loss:
        return
    measured = {m.metric: m for m in release.measure(list(expect.max_loss)) if m.attribute is None}
    for metric, bound in expect.max_loss.items():
        measure = measured.get(metric)
        if measure is None or measure.value is None:
            raise InfeasibleError(
                f"{metric} has no value for this release: the bound of [expect] max_loss is not verified."
            )
        lower = measure.direction == "lower"
        if measure.value > bound if lower else measure.value < bound:
            word = "more" if lower else "less"
            raise InfeasibleError(f"{metric} is {measure.value:.4g}: {word} than the {bound:.4g} of [expect] max_loss.")


def _check_homogeneity(release: Release, expect: Expect) -> None:
    """Raise where more classes than expected have one value of a sensitive column."""
    if expect.max_homogeneous is UNSET:
        return
    bounds, counts = expect.max_homogeneous, {h.attribute.lower(): h for h in release.homogeneity}
    if not isinstance(bounds, Mapping):
        bounds = dict.fromkeys(release.plan.roles.named(Role.SENSITIVE), bounds)
    for name, bound in bounds.items():
        counted = counts.get(name.lower())
        if counted is None:
            raise InfeasibleError(
                f"The classes of this release are not visible, so that those with one value of {name!r} are not "
                "counted: the bound of [expect] max_homogeneous is not verified."
            )
        # A whole number is one of classes: 1 is one class, 1.0 all of them.
        above = counted.homogeneous > bound if isinstance(bound, int) else counted.share > bound
        if above:
            most = f"{bound:,}" if isinstance(bound, int) else f"{bound:.2%}"
            raise InfeasibleError(
                f"{counted.text} ({counted.share:.2%}): more than the {most} of [expect] max_homogeneous. Require l or "
                "t in [privacy], so that classes tell less."
            )


def plain_type(type_name: str) -> str:
    """Return a type without the values of enumerations, which are values of the data.

    Examples
    --------
    >>> plain_type("ENUM('a', 'it''s')"), plain_type("DECIMAL(10,2)"), plain_type("ENUM('a)')[]")
    ('ENUM', 'DECIMAL(10,2)', 'ENUM[]')
    """
    return _ENUM.sub("ENUM", type_name)


def _same(one: str, other: str) -> bool:
    first, second = ("".join(plain_type(kind).upper().split()) for kind in (one, other))
    return first == second
