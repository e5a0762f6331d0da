"""Compile kernels before they are needed: small releases of each kind are made, and what they compile is stored."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.progress import Listener

_L = {"sensitive": ["ill"], "l": 2}
USUAL: tuple[Mapping[str, Any], ...] = (
    {"algorithm": "mondrian"},
    {"algorithm": "mondrian", "quasi_identifiers": ["sex", "number"], "rows": 70_000},
    {"algorithm": "mondrian", **_L},
    {"algorithm": "mondrian", "entity_key": "person"},
    {"algorithm": "optimal", "suppression_limit": 0.1},
    {"algorithm": "optimal", "suppression_limit": 0.1, **_L},
)
"""What most releases need."""
OTHERS: tuple[Mapping[str, Any], ...] = (
    {"algorithm": "mondrian(relaxed=true)", **_L},
    {"algorithm": "mondrian(target='ill')", **_L},
    {"algorithm": "datafly", "suppression_limit": 0.1, "attacks": True},
    {"algorithm": "mdav"},
    {"algorithm": "mdav", "sensitive": ["ill"], "t": 0.4},
    {"algorithm": "mdav", "sensitive": ["number"], "t": 0.05},
    {"algorithm": "v_mdav"},
    {"algorithm": "knn_clustering(stable_seeds=true)"},
    {"algorithm": "knn_clustering", "sensitive": ["ill"], "t": 0.4},
    {"algorithm": "k_member", "output": "medoid"},
    {"algorithm": "greedy"},
    {"algorithm": "kaca", **_L},
    {"algorithm": "tdg", "quasi_identifiers": ["age", "number"], "rows": 20_500},
    {"descend": True},
)
"""What the other algorithms, and attacks, need."""
_ATTACKS = ("distance_linkage", "inference", "linkability", "probabilistic_linkage", "singling_out")


def warm_up(everything: bool = False, progress: Listener | None = None) -> tuple[Path, int, int]:
    """Compile what most releases need, or everything; return the folder, the kernels in it, and how many are new.

    Where ``DUCKANON_KERNELS`` names a folder, what is compiled is copied there for all users of the machine.
    """
    from duckanon.kernels import jit
    from duckanon.progress import Progress

    before, cases = jit.stored(), (*USUAL, *(OTHERS if everything else ()))
    watch = Progress(progress)
    with watch.step("compile kernels", len(cases), unit="kinds of work"):
        for i, case in enumerate(cases):
            make(case)
            watch.advance(i + 1)
    after = jit.stored()
    return jit.share(), len(after), len(after - before)


def make(case: Mapping[str, Any]) -> None:
    """Make a release of people who were drawn, and attack it where that is asked for."""
    from duckanon.api import anonymize
    from duckanon.assess.attacks.attack import attack

    wanted = dict(case)
    if wanted.pop("descend", False):
        _descend()
        return
    rows, attacks = wanted.pop("rows", 301), wanted.pop("attacks", False)  # some are left when clusters are made
    people = _people(rows)
    # What fails here fails again, with its message, where it is asked for.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        given = {"quasi_identifiers": ["sex", "age"], "k": 3, **wanted}
        with anonymize(people, **given) as release:
            if attacks:
                attack(people, release, attacks=list(_ATTACKS))


def _people(rows: int) -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(3)
    return pa.table(
        {
            "sex": rng.choice(list("fmx"), rows).tolist(),
            "age": rng.integers(0, 91, rows),
            "number": list(range(rows)),
            "person": [i // 2 for i in range(rows)],
            "ill": rng.choice(list("abcd"), rows).tolist(),
        }
    )


def _descend() -> None:
    """Compile what recodes rows by cuts that were remembered."""
    import numpy as np

    from duckanon.kernels import descending

    descend: Any = descending.descend
    corners, ways = np.zeros((2, 2), dtype=np.int32), np.zeros(2, dtype=np.int64)
    descend(corners, ways[:1], ways[:1] - 1, ways, *[ways[:1]] * 2, ways[:1] - 1, corners, corners, ways.copy())


__all__ = ["OTHERS", "USUAL", "make", "warm_up"]
