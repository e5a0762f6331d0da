"""After a kill at any point an export is the old one or the new one, never half, and no raw data is left behind."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.faults.site import KINDS, Driver, Site

# The calls of a publication itself: at each of them a run is killed in the default run.
ON_A_SERVER = pytest.param("postgres", marks=pytest.mark.postgres)
CORE = ("replace", "rename", "exchange", "propose", "carry_out", "discard", "gate", "write_parquet", "commit")
MORE = ("fsync", "link", "write_text")
REST = ("unlink", "rmdir", "mkdir", "run", "statement", "session")


def kills(site: Site, calls: tuple[str, ...], after: bool = True) -> list[dict[str, object]]:
    """Return every place where a whole run makes one of these calls."""
    whens = ("before", "after") if after else ("before",)
    return [{"call": c, "n": n, "when": w} for c in calls for n in range(1, site.calls.get(c, 0) + 1) for w in whens]


@pytest.fixture
def site(driver: Driver, tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    server = request.getfixturevalue("cluster") if request.param == "postgres" else None
    return Site(driver, tmp_path, request.param, server)


@pytest.mark.parametrize(
    "site",
    ["job", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("table", "folder")), ON_A_SERVER],
    indirect=True,
)
def test_at_every_named_point(site: Site) -> None:
    places = [*kills(site, CORE, after=False), *kills(site, ("fsync",), after=False)]
    assert len(places) > 15
    # Every third of a job, and all on demand.
    places = places[::3] if site.kind == "job" else places
    # Most of the next runs are killed, too: what is left adds up until one ends well.
    decided = {site.kill_and_recover(kill, follow=i % 4 == 0 or kill == places[-1]) for i, kill in enumerate(places)}
    assert decided == {True, False}


@pytest.mark.parametrize("site", ["write", "csv"], indirect=True)
@pytest.mark.thinned(2)
def test_between_the_renames(site: Site) -> None:
    places = [*kills(site, ("replace",), after=False), *kills(site, ("propose", "discard"))]
    decided = [site.kill_and_recover(kill, follow=kill == places[-1]) for kill in places]
    # Once the commit is proposed the new export is the one, whatever has its name already.
    assert decided.count(False) == 1


@pytest.mark.parametrize("site", ["job", "folder", "csv", "table", ON_A_SERVER], indirect=True)
@pytest.mark.thinned(4)
def test_after_a_random_time(site: Site) -> None:
    rng = random.Random(site.kind)
    for i in range(5):
        site.kill_and_recover({"seconds": rng.uniform(0, site.seconds)}, follow=i == 4)


@pytest.mark.slow
@pytest.mark.parametrize("site", KINDS, indirect=True)
def test_at_every_call(site: Site) -> None:
    for kill in [*kills(site, CORE), *kills(site, MORE), *kills(site, REST, after=False)]:
        site.kill_and_recover(kill)


@pytest.mark.slow
@pytest.mark.parametrize("site", [*KINDS, ON_A_SERVER], indirect=True)
def test_after_many_random_times(site: Site) -> None:
    """50 for each sink, 10 on a server; DUCKANON_KILLS says how many instead."""
    rng = random.Random()
    for _ in range(int(os.environ.get("DUCKANON_KILLS", "50" if site.server is None else "10"))):
        site.kill_and_recover({"seconds": rng.uniform(0, site.seconds * 1.1)})
