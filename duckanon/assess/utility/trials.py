"""The honest way: divide first, anonymize the training part alone, and test on rows that were in no release."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duckanon.assess.utility.evaluation import evaluate
from duckanon.assess.utility.parts import Split
from duckanon.errors import InfeasibleError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.results import Evaluation
    from duckanon.release.release import Release


def trial(
    parts: Split,
    anonymize: Callable[[pa.Table], Release],
    *,
    released_test: bool = True,
    look: Callable[[Release], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Anonymize the training part of a split, teach learners by it, and test them on the held-out part.

    Parameters
    ----------
    parts : Split
        What ``duckanon.utility.split`` returned.
    anonymize : callable
        Makes a release of a table, such as ``lambda t: duckanon.anonymize(t, quasi_identifiers=["age"], k=5)``.
    released_test : bool
        Whether the held-out part is anonymized by itself, too, and tested besides. Where it has too few rows for the
        promise it is not, and a note says so.
    look : callable, optional
        Called with the release of the training part, while it is there.
    **options
        Further arguments of ``duckanon.utility.evaluate``.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> ages = [20 + i % 50 for i in range(400)]
    >>> people = pa.table({"age": ages, "ill": ["yes" if age > 44 else "no" for age in ages]})
    >>> parts = duckanon.utility.split(people, target="ill")
    >>> columns = {"quasi_identifiers": ["age"], "insensitive": ["ill"]}
    >>> found = duckanon.utility.trial(
    ...     parts,
    ...     lambda table: duckanon.anonymize(table, k=5, output="midpoint", **columns),
    ...     learners=["decision_tree"],
    ...     seeds=1,
    ... )
    >>> found.in_sample, found.score("accuracy") > 0.9, found.score("accuracy", tested_on="release") > 0.9
    (False, True, True)
    """
    if not isinstance(parts, Split):
        raise ParameterError(f"A trial takes what split() returned. Got a {type(parts).__name__}.")
    notes: tuple[str, ...] = ()
    with ExitStack() as stack:
        release = stack.enter_context(anonymize(parts.train))
        if look is not None:
            look(release)
        held = None
        if released_test:
            try:
                held = stack.enter_context(anonymize(parts.test))
            except InfeasibleError:
                notes = ("The held-out rows are too few for the promise: they were tested as they are only.",)
        found = evaluate(parts.train, release, target=parts.target, test=parts.test, released_test=held, **options)
    return replace(found, notes=(*found.notes, *notes))
