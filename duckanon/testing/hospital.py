"""A synthetic hospital table to try things on.

Every row is drawn from a random generator: no real person, stay or hospital stands behind any of them. What the table
does share with real ones is its shape: skewed and correlated columns, places with many and with few people, patients
with several stays, and missing values.

The table comes in blocks of a fixed size, each with its own child of the seed, so that a large one can be written to a
file piece by piece and is still the very table that :func:`hospital` returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duckanon.testing import hospital_words as words

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SEED = 20_260_101
BLOCK = 250_000

_FIRST_DAY = int(np.datetime64("2024-01-01", "D").astype(np.int64))
_DAYS = 731
_STAYS = (0.80, 0.115, 0.045, 0.02, 0.01, 0.006, 0.004)
_AT_SEX = {"F": 0, "M": 1, "X": 2}
_CHILD, _OLD = 3, 8  # the first age band that is no longer a child, and the one of the very old


def hospital(rows: int = 20_000, *, seed: int = SEED) -> pa.Table:
    """Return a synthetic table of hospital stays; no real person is in it.

    Parameters
    ----------
    rows : int
        Number of stays, one row each.
    seed : int
        The same rows and seed always give the same table.

    Returns
    -------
    pyarrow.Table
        The columns ``patient_id``, ``name``, ``birth_date``, ``sex``, ``zip``, ``marital_status``, ``education``,
        ``country``, ``admission_date``, ``ward``, ``diagnosis``, ``length_of_stay`` and ``cost``.
    """
    import pyarrow as pa

    return pa.concat_tables(list(_blocks(rows, seed)))


def write_hospital(path: str | Path, rows: int, seed: int = SEED, chunk: int = 1_000_000) -> None:
    """Write the table that :func:`hospital` would return to a Parquet file, with little memory.

    Parameters
    ----------
    path : str or pathlib.Path
        File to write; an existing one is replaced.
    rows : int
        Number of stays.
    seed : int
        Seed of the table.
    chunk : int
        Rows to hold in memory and to put into one row group, rounded to whole blocks; the rows do not depend on it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, not {chunk}")
    blocks = _blocks(rows, seed)
    held = [next(blocks)]
    with pq.ParquetWriter(str(path), held[0].schema, compression="zstd") as writer:
        for block in blocks:
            if (len(held) + 1) * BLOCK > chunk:
                writer.write_table(pa.concat_tables(held))
                held = []
            held.append(block)
        writer.write_table(pa.concat_tables(held))


def _blocks(rows: int, seed: int) -> Iterator[pa.Table]:
    """Yield the table block by block; an empty table is one empty block."""
    if rows < 0:
        raise ValueError(f"rows must not be negative, but is {rows}")
    starts = range(0, max(rows, 1), BLOCK)
    for start, child in zip(starts, np.random.SeedSequence(seed).spawn(len(starts)), strict=True):
        yield _block(np.random.Generator(np.random.PCG64(child)), start, min(BLOCK, rows - start))


def _cumulative(weights: ArrayLike) -> Floats:
    """Return the running shares of each row of weights, ending in one."""
    table = np.atleast_2d(np.asarray(weights, dtype=np.float64)).cumsum(axis=1)
    shares: Floats = table / table[:, -1:]
    shares[:, -1] = 1.0
    return shares


def _ranks(size: int, steepness: float) -> Floats:
    """Return weights that fall with the rank."""
    weights: Floats = 1.0 / np.arange(2, size + 2, dtype=np.float64) ** steepness
    return weights


def _pick(rng: np.random.Generator, weights: ArrayLike, rows: Ints | int) -> Ints:
    """Draw one column per entry of ``rows``, by the weights of that row (of the only row, when a number is given)."""
    shares = _cumulative(weights)
    line = np.zeros(rows, dtype=np.int64) if isinstance(rows, int) else rows
    # Rows are laid end to end, each one unit long, so that a single sorted search serves all of them; the factor keeps
    # the sum from being rounded up into the next row.
    ends = (shares + np.arange(len(shares))[:, None]).ravel()
    spot = np.searchsorted(ends, line + rng.random(len(line)) * (1 - 2.0**-40), side="right")
    column: Ints = spot.astype(np.int64) - line * shares.shape[1]
    return column


def _groups() -> tuple[list[str], Ints, Floats]:
    """Return the diagnosis codes, the group of each, and their weights by winter, sex and age band."""
    codes: list[str] = []
    group: list[int] = []
    weights: list[Floats] = []
    for number, (_, (female, male, winter), bands, listed) in enumerate(words.DIAGNOSES.values()):
        members = listed.split()
        ranks = _ranks(len(members), 1.4)
        season = np.array([1.0, winter])[:, None, None] * np.array([female, male])[None, :, None] * np.array(bands)
        weights.append(season.reshape(-1, 1) * (ranks / ranks.sum())[None, :])
        codes += members
        group += [number] * len(members)
    return codes, np.array(group), np.hstack(weights)


def _ward_weights() -> Floats:
    """Return the weights of the wards by diagnosis group and by child, adult or very old patient."""
    names = list(words.WARDS)
    weights = np.zeros((len(words.DIAGNOSES), 3, len(names)))
    for number, (home, *_) in enumerate(words.DIAGNOSES.values()):
        own = names.index(home)
        weights[number, :, own] = 80
        if home == "Obstetrics":
            weights[number, :, names.index("Intensive Care")] = 0.6
            continue
        for name, shares in {
            "Intensive Care": (5, 7, 5),
            "Emergency": (8, 8, 6),
            "Internal Medicine": (0, 5, 3),
            "Pediatrics": (400, 0, 0),
            "Geriatrics": (0, 0, 70),
        }.items():
            weights[number, :, names.index(name)] += shares
    return weights.reshape(-1, len(names))


def _zips() -> tuple[list[str], Floats]:
    """Return the ZIP codes and their weights."""
    codes: list[str] = []
    weights: list[Floats] = []
    for prefix, (size, share, steepness) in words.ZIP_AREAS.items():
        ranks = _ranks(size, steepness)
        codes += [f"{prefix}{1 + 2 * number:02d}" for number in range(size)]
        weights.append(share * ranks / ranks.sum())
    return codes, np.concatenate(weights)


def _calendar() -> tuple[Floats, Mask]:
    """Return the weight of each day and whether it lies in winter."""
    day = np.arange(_DAYS)
    weekly = np.array([1.16, 1.12, 1.08, 1.06, 1.02, 0.80, 0.76])[day % 7]  # the first day is a Monday
    seasonal = 1.0 + 0.12 * np.cos(2 * np.pi * (day - 20) / 365.25)
    return weekly * seasonal, np.cos(2 * np.pi * (day - 20) / 365.25) > 0.4


def _block(rng: np.random.Generator, start: int, rows: int) -> pa.Table:
    """Return one block of stays; its patients occur in no other block, and its row ``start`` numbers them."""
    import pyarrow as pa

    # Patients, in the order of their number, and the stays of each.
    stays = 1 + _pick(rng, _STAYS, rows)
    stays = stays[: int(np.searchsorted(np.cumsum(stays), rows)) + 1]
    person = np.repeat(np.arange(len(stays)), stays)[:rows]
    people = int(person[-1]) + 1 if rows else 0
    first_row = np.searchsorted(person, np.arange(people))

    day_weights, winter = _calendar()
    admitted = _pick(rng, day_weights, rows)
    first_day = np.minimum.reduceat(admitted, first_row) if people else admitted

    sex = (rng.random(people) < 0.47).astype(np.int64)
    pyramid = np.array([np.interp(np.arange(101), words.AGE_KNOTS, shape) for shape in (words.AGE_F, words.AGE_M)])
    years = _pick(rng, pyramid, sex)
    within = rng.random(people)
    within = np.where(years == 0, within**6, within)  # most of the youngest are newborns
    age_days = ((years + within) * 365.25).astype(np.int64)
    birth = first_day - age_days

    band = np.searchsorted(words.STATUS_EDGES, years, side="right")
    marital = _pick(rng, np.transpose(list(words.MARITAL.values())), band)
    schooling = _pick(rng, np.transpose(list(words.EDUCATION.values())), band)
    elsewhere = words.COUNTRIES.split("|")
    abroad = _ranks(len(elsewhere), 1.25)
    born = _pick(rng, np.append(words.HOME_SHARE, (1 - words.HOME_SHARE) * abroad / abroad.sum()), people)
    born[years == 0] = 0
    zips, zip_weights = _zips()
    home = _pick(rng, zip_weights, people)
    name = _names(rng, sex)
    luck = rng.random(people)
    listed = np.where(luck < 0.004, _AT_SEX["X"], sex)
    unlisted: Mask = luck > 0.992

    # Stays.
    codes, group, code_weights = _groups()
    at_age = admitted - birth[person]
    age_band = np.searchsorted(words.BAND_EDGES, at_age, side="right")
    male = sex[person]
    bands = len(words.BAND_EDGES) + 1
    diagnosis = _pick(rng, code_weights, (winter[admitted] * 2 + male) * bands + age_band)
    stage = (age_band >= _CHILD).astype(np.int64) + (age_band >= _OLD)
    ward = _pick(rng, _ward_weights(), group[diagnosis] * 3 + stage)

    median, per_stay, per_day = np.array(list(words.WARDS.values())).T
    longer = 1.0 + 0.006 * np.maximum(at_age / 365.25 - 50, 0)
    length = np.minimum(median[ward] * longer * np.exp(0.75 * rng.standard_normal(rows)), 180).astype(np.int64)
    cost = (per_stay[ward] + per_day[ward] * length) * np.exp(0.4 * rng.standard_normal(rows))
    moved = rng.random(rows) < 0.04
    lives = np.where(moved, _pick(rng, zip_weights, rows), home[person])

    order = np.argsort(rng.random(rows), kind="stable")
    person, admitted, ward, diagnosis = person[order], admitted[order], ward[order], diagnosis[order]

    def dates(days: Ints) -> pa.Array:
        return pa.array((days + _FIRST_DAY).astype("datetime64[D]"), type=pa.date32())

    def missing(share: float) -> Mask:
        return np.asarray(rng.random(rows) < share)

    return pa.table(
        {
            "patient_id": pa.array(10_000_000 + start + person, type=pa.int64()),
            "name": name.take(pa.array(person)),
            "birth_date": dates(birth[person]),
            "sex": _words(list(_AT_SEX), listed[person], unlisted[person]),
            "zip": _words(zips, lives[order], missing(0.015)),
            "marital_status": _words(list(words.MARITAL), marital[person], missing(0.03)),
            "education": _words(list(words.EDUCATION), schooling[person], missing(0.06)),
            "country": _words([words.HOME, *elsewhere], born[person]),
            "admission_date": dates(admitted),
            "ward": _words(list(words.WARDS), ward),
            "diagnosis": _words(codes, diagnosis),
            "length_of_stay": pa.array(length[order], type=pa.int32()),
            "cost": pa.array(np.round(cost[order], 2), mask=missing(0.02)),
        }
    )


def _names(rng: np.random.Generator, sex: Ints) -> pa.Array:
    """Return a given and a family name for each person, common ones more often than rare ones."""
    import pyarrow.compute as pc

    women, men, families = words.GIVEN_F.split(), words.GIVEN_M.split(), words.FAMILY.split()
    female = _pick(rng, _ranks(len(women), 0.8), len(sex))
    male = _pick(rng, _ranks(len(men), 0.8), len(sex))
    given = _words([*women, *men], np.where(sex == 1, male + len(women), female))
    family = _words(families, _pick(rng, _ranks(len(families), 0.75), len(sex)))
    return pc.binary_join_element_wise(given, family, " ")


def _words(labels: Sequence[str], index: Ints, missing: Mask | None = None) -> pa.Array:
    """Return the labels that the index points at, NULL where missing."""
    import pyarrow as pa

    return pa.array(labels, type=pa.string()).take(pa.array(index, mask=missing))
