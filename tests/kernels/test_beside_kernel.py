"""The kernel that reads rows side by side, against the same in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from duckanon.kernels import beside as at

_ALL = 2**64 - 1


def mixed(word: int) -> int:
    for _ in range(2):
        word = ((word ^ (word >> 32)) * 0xD6E8FEB86659FD93) & _ALL
    return word ^ (word >> 32)


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_counted_and_added_up_as_in_plain_python(seed: int) -> None:
    rng = random.Random(seed)
    rows, base = rng.choice([0, 1, 511, 512, 513, 1300]), rng.choice([0, 0, 3])
    classes, passed = rng.randint(1, 9), rng.randint(0, 2)
    # Columns whose cells go by class, and columns whose cells go by their own code.
    by_class, own = rng.randint(0, 3), rng.randint(0, 2)
    count = by_class + own
    sizes = [rng.randint(1, 6) for _ in range(count + passed)]
    odd = rng.random() < 0.5
    keys = [[rng.randint(-1 if odd else 0, n if odd else n - 1) for _ in range(rows)] for n in sizes]
    keys.append([rng.randint(base - 1, base + classes - 1 + odd) for _ in range(rows)])
    values, cells, shows, where = [], [], [], []
    for j, n in enumerate(sizes):
        codes = [c for c in range(n) if not odd or rng.random() < 0.9]
        places = {c: rng.randint(0, 5) for c in codes}
        values.append({c: (rng.getrandbits(64), places[c]) for c in codes})
        if j >= count:
            continue
        cells.append(
            [(rng.getrandbits(64), rng.randint(0, 3), rng.randint(2, 6), rng.random() < 0.5) for _ in range(4)]
        )
        known, first = (classes, base) if j < by_class else (n, 0)
        shows.append({first + k: rng.randrange(4) for k in range(known) if rng.random() < 0.95})
        where.append(len(sizes) if j < by_class else j)

    # As the kernel reads it
    columns = np.zeros((len(sizes), 9), dtype=np.int64)
    packed = [np.zeros((0, 2), dtype=np.uint64)]
    flat = [np.zeros(0, dtype=np.int32)]
    packed_cells = [np.zeros((0, 2), dtype=np.uint64)]
    for j, known_values in enumerate(values):
        codes = np.array(sorted(known_values), dtype=np.int32)
        words = np.array([known_values[c][0] for c in sorted(known_values)], dtype=np.uint64)
        places = np.array([known_values[c][1] for c in sorted(known_values)], dtype=np.int32)
        own_values = at.packed_values(codes, places, words)
        columns[j, [at.OF, at.CODES, at.VALUES]] = j, len(own_values), sum(map(len, packed))
        packed.append(own_values)
        if j >= count:
            columns[j, at.BY] = -1
            continue
        first = base if j < by_class else 0
        numbers = np.full(max(shows[j], default=first - 1) + 1 - first, -1, dtype=np.int32)
        for key, cell in shows[j].items():
            numbers[key - first] = cell
        columns[j, [at.BY, at.BASE, at.KEYS]] = where[j], first, len(numbers)
        columns[j, [at.SHOWS, at.STRIDE, at.CELLS]] = sum(map(len, flat)), 1, sum(map(len, packed_cells))
        flat.append(numbers)
        word = np.array([cell[0] for cell in cells[j]], dtype=np.uint64)
        low, high, null = (np.array([int(cell[i]) for cell in cells[j]], dtype=np.int32) for i in (1, 2, 3))
        packed_cells.append(at.packed_cells(np.arange(4), low, high, null, word))
    through = np.array([rng.getrandbits(64) for _ in range(rows)], dtype=np.uint64)
    owner = np.array([rng.getrandbits(64) for _ in range(rows if seed % 2 else 0)], dtype=np.uint64)
    marked = [rng.random() < 0.9 for _ in range(rows)]
    counts, sums = np.zeros((len(sizes), 2), dtype=np.int64), np.zeros(3, dtype=np.uint64)
    lines = np.array(keys, dtype=np.int32).reshape(len(keys), rows)
    kept = np.array(marked, dtype=np.uint8)
    at.read_rows(
        lines, columns, *(np.concatenate(x) for x in (packed, flat, packed_cells)), through, owner, kept, counts, sums
    )

    # In plain Python
    total = published = several = 0
    lost, wrong = [0] * len(sizes), [0] * len(sizes)
    for i in range(rows):
        is_kept = marked[i] and all(keys[where[j]][i] in shows[j] for j in range(count))
        shown = int(through[i])
        was = shown ^ int(owner[i]) if len(owner) else shown
        for j, known_values in enumerate(values):
            found = known_values.get(keys[j][i])
            lost[j] += found is None
            if found is not None:
                was ^= found[0]
                shown ^= found[0] if j >= count else 0
            if j < count and is_kept:
                word, low, high, null = cells[j][shows[j][keys[where[j]][i]]]
                shown ^= word
                if found is not None:
                    wrong[j] += not null if found[1] == 0 else not low <= found[1] <= high
        total += mixed(was)
        published += mixed(shown) if is_kept else 0
        several += is_kept
    assert [bool(x) for x in counts[:, 0]] == [bool(x) for x in lost]
    assert sums.tolist() == [total & _ALL, published & _ALL, several]
    if not any(lost):
        assert counts[:, 1].tolist() == wrong
