"""Privacy models as rules of a split: one class's histogram in, yes or no out.

The same definitions as the array forms in ``models``, which property tests compare them with, and with the same
allowance for rounding. They judge one class at a time, inside other kernels. A model says itself which rule is its own
(``Model.kernel_rule``); one without a rule is asked through a callback.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.callback import ask
from duckanon.kernels.jit import lean
from duckanon.kernels.layout import (
    ALPHA,
    BASIC_BETA,
    CALLBACK,
    DISTINCT,
    ENHANCED_BETA,
    ENTRIES,
    ENTROPY,
    EQUAL,
    FALLING,
    HIERARCHICAL,
    ORDERED,
    RECURSIVE,
    SIZE,
)
from duckanon.kernels.rows import sort_run

_ROUNDING = 1e-12


@lean
def _recursive(  # pragma: no cover
    values: Any, side: int, at: int, filled: int, c: float, least: int
) -> bool:
    present = 0
    for i in range(at, at + filled):
        n = values[side, at + values[ENTRIES, i]]
        if n > 0:
            values[FALLING, present] = n
            present += 1
    sort_run(values[FALLING], 0, present)
    tail = 0.0
    for i in range(present - least + 1):
        tail += values[FALLING, i]
    return present > 0 and values[FALLING, present - 1] < c * tail * (1 - _ROUNDING)


@lean
def _ordered(  # pragma: no cover
    values: Any, side: int, at: int, filled: int, rows: int, shares: Any, size: int, column: int
) -> float:
    """Return the ordered distance in time linear in the entries, as ``models.ordered_t_closeness`` does."""
    if size < 2:
        return 0.0
    area = at + column
    total, reached, here = 0.0, 0, -1
    for i in range(filled + 1):
        after = size
        if i < filled:
            after = values[ENTRIES, at + i]
            if values[side, at + after] == 0:
                continue
        if here < 0:
            total += shares[2, area + after]
        else:
            q = reached / rows
            low, high = here, after
            while low < high:
                middle = (low + high) // 2
                if shares[1, at + middle] < q:
                    low = middle + 1
                else:
                    high = middle
            total += (2 * low - here - after) * q - 2 * shares[2, area + low]
            total += shares[2, area + here] + shares[2, area + after]
        if i < filled:
            here = after
            reached += values[side, at + after]
    return total / (size - 1)


@lean
def _hierarchical(  # pragma: no cover
    values: Any, side: int, at: int, filled: int, rows: int, rules: Any, column: int, mass: Any
) -> float:
    """Return the mean of the equal distances on all levels below the top."""
    total, depth, stride = 0.0, rules.columns[1, column], rules.columns[0, rules.columns.shape[1] - 1]
    for level in range(depth):
        shift = level * stride + at
        distance = 1.0
        for i in range(at, at + filled):
            mass[rules.over[shift + values[ENTRIES, i]]] = 0.0
        for i in range(at, at + filled):
            code = values[ENTRIES, i]
            mass[rules.over[shift + code]] += values[side, at + code] / rows
        for i in range(at, at + filled):
            node = rules.over[shift + values[ENTRIES, i]]
            if mass[node] > 0:
                p = rules.masses[shift + values[ENTRIES, i]]
                distance += abs(mass[node] - p) - p
                mass[node] = 0.0
        total += distance / 2
    return total / depth


@lean
def _entry(kind: int, q: float, p: float, first: float) -> bool:  # pragma: no cover
    """Say whether one value's frequency is allowed beside that in the whole table."""
    if kind == BASIC_BETA:
        return q <= p * (1 + first) * (1 + _ROUNDING)
    if kind == ENHANCED_BETA:
        return q <= p * (1 + min(first, -np.log(p) if p > 0 else 0.0)) * (1 + _ROUNDING)
    return p > 0 and abs(np.log(q / p)) < first * (1 - _ROUNDING)


@lean
def holds(  # pragma: no cover
    rules: Any, r: int, size: int, rows: int, values: Any, side: int, filled: int, mass: Any
) -> bool:
    """Say whether rule r allows a class of ``size`` members and ``rows`` rows.

    The rows of value v of column c are ``values[side, o + v]``, o being where c begins; the values that may not be 0
    are ``values[ENTRIES, o : o + found]``, ascending.
    """
    kind, column = rules.table[0, r], rules.table[1, r]
    first, second = rules.numbers[0, r], rules.numbers[1, r]
    if kind == SIZE:
        return size >= first
    at = rules.columns[0, column]
    if kind == CALLBACK:
        entries, counts = np.int64(values[ENTRIES].ctypes.data), np.int64(values[side].ctypes.data)
        return ask(rules.callback, r, size, rows, entries + 8 * at, counts + 8 * at, filled)
    present, most, logs, distance, fine = 0, 0, 0.0, 1.0, True
    for i in range(at, at + filled):
        n = values[side, at + values[ENTRIES, i]]
        if n > 0:
            present += 1
            most = max(most, n)
            p, q = rules.shares[0, at + values[ENTRIES, i]], n / rows
            if kind == ENTROPY:
                logs += n * np.log(n)
            elif kind == EQUAL:
                distance += abs(q - p) - p
            elif kind >= BASIC_BETA:
                fine = fine and _entry(kind, q, p, first)
    if present == 0:
        return False
    if kind == DISTINCT:
        return present >= first and size >= second
    if kind == ENTROPY:
        return np.log(rows) - logs / rows >= np.log(first) - _ROUNDING
    if kind == RECURSIVE:
        return _recursive(values, side, at, filled, first, int(second))
    if kind == ALPHA:
        return size >= second and most <= first * rows * (1 + _ROUNDING)
    if kind == EQUAL:
        return distance / 2 <= first + _ROUNDING
    if kind == ORDERED:
        width = rules.columns[0, column + 1] - at
        return _ordered(values, side, at, filled, rows, rules.shares, width, column) <= first + _ROUNDING
    if kind == HIERARCHICAL:
        return _hierarchical(values, side, at, filled, rows, rules, column, mass) <= first + _ROUNDING
    return fine
