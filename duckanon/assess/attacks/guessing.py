"""What linked rows disclose: whose they are, and how well sensitive values can be guessed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from duckanon.assess.attacks.base import Case, Finding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.linkage_space import Links, People, Projection, SecretColumn

    Link = Callable[[Projection, People], Links]

ADVERSARIES = {
    "part": "half of the quasi-identifiers",
    "full": "all quasi-identifiers",
    "all": "every other column",
}
"""What each adversary knows of a person, in words."""


def linked(name: str, case: Case, adversary: str, view: Projection, link: Link, most: int) -> list[Finding]:
    """Link people and controls, and return what the links disclose of each sensitive column, and of identities."""
    space = case.space
    people = space.targets.first(most)
    controls = space.controls.first(most) if space.controls is not None else None
    links = link(view, people)
    others = link(view, controls) if controls is not None else None
    findings = []
    for secret in secrets(case):
        guesses = links.guessed(secret, people)
        theirs = others.guessed(secret, controls) if others is not None and controls is not None else None
        findings.append(guessed(name, case, adversary, secret, guesses, theirs, people))
    if people.own is not None:
        identified = links.identified(people.own)
        findings.append(
            Finding(
                attack=name,
                adversary=adversary,
                success=float(identified.mean()),
                base_rate=1 / space.published,
                rows=len(people),
                sampled_from=people.sampled_from,
                text="the row picked is the person's own",
                # Only people of the release have a row of their own: there is nothing to compare with.
                allowed=case.allowed,
            )
        )
    return findings


def secrets(case: Case) -> list[SecretColumn]:
    """Return the sensitive columns that are published as they are."""
    return [case.space.secret(name) for name in case.released.sensitive if name.lower() in _places(case)]


def _places(case: Case) -> set[str]:
    return {axis.name.lower() for axis in case.space.axes[case.space.quasi :]}


def guessed(
    name: str,
    case: Case,
    adversary: str,
    secret: SecretColumn,
    hits: NDArray[np.float64],
    controls: NDArray[np.float64] | None,
    people: People,
    text: str = "",
) -> Finding:
    """Return the finding of guesses of a secret, right or wrong person by person."""
    near = f"within {100 * secret.tolerance:g} %" if secret.measured else "right"
    return Finding(
        attack=name,
        attribute=secret.name,
        adversary=adversary,
        success=float(hits.mean()),
        base_rate=secret.constant(people),
        rows=len(people),
        sampled_from=people.sampled_from,
        control=None if controls is None else float(controls.mean()),
        controls=0 if controls is None else len(controls),
        general=True,
        text=text or f"the guess of {secret.name} is {near}",
    )


def needs_secret(case: Case) -> str | None:
    """Return what attacks on sensitive values or identities miss, or None."""
    carried = {name.lower() for name in case.carried}
    if case.settings.key is not None:
        return None
    secret = {name.lower() for name in case.released.sensitive} & carried
    if not secret:
        return "a sensitive column that both tables have, or a key"
    theirs = secret if case.control is None else {name.lower() for name in case.control.types}
    return None if secret & theirs else "a sensitive column that the controls have, too, or a key"
