"""Mondrian: rows are reordered in place until every class is a run of rows.

Rows are compact integer places, row by row, so that a small partition stays in the cache. A partition is split by one
axis into two groups (lines) or one for each child (trees); groups are runs of rows, in the order of their smallest
place, so the classes of a depth-first walk come out in their own order whatever is done side by side. There is no
recursion: open partitions wait on a stack of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.cuts import boundary, cut
from duckanon.kernels.jit import call_hook, hook, inlined, kernel, lean
from duckanon.kernels.keys import ancestor, clear, is_line, key_level, keys_at, tally, weight, width_of
from duckanon.kernels.layout import (
    AFTER,
    AT,
    BOUNDED,
    BOUNDS,
    BY,
    COUNTS,
    DISTINCT_VALUES,
    EXACT,
    GAIN,
    HIGH,
    INNER,
    LEVEL,
    LOW,
    NULL,
    ON,
    PIECE,
    PIECE_END,
    RANGE,
    ROUND_ROBIN,
    SEEN,
    SPAN,
    SQUARES,
    STATE,
    TOP,
    TREE,
    TRIED,
    WHOLE,
    WHOLE_END,
)
from duckanon.kernels.rows import TWO, bits_of, place_of

_LOOK = 64
"""Rows that are looked at before the bounds are asked again."""


@inlined
def _between(words: Any, start: int, end: int, bits: Any, least: int, most: int) -> Any:  # pragma: no cover
    """Return the smallest and largest place of rows, which are at least and at most what is known."""
    low = high = place_of(words, start, bits)
    i = start + 1
    # Once both bounds are reached, no more rows need be read: with few places, a few rows are enough.
    while i < end and (low > least or high < most):
        stop = min(i + _LOOK, end)
        for k in range(i, stop):
            place = place_of(words, k, bits)
            low = min(low, place)
            high = max(high, place)
        i = stop
    return low, high


@inlined
def _extent(data: Any, axes: Any, start: int, end: int, j: int, marks: Any) -> None:  # pragma: no cover
    """Find the smallest and largest place on an axis, between those that are known to bound it."""
    bits = bits_of(data, axes, j)
    low, high = marks[LOW, j], marks[HIGH, j]
    if bits[0] == TWO:
        low, high = _between(data.words, start, end, (TWO, bits[1], bits[2], bits[3]), low, high)
    else:
        low, high = _between(data.words, start, end, bits, low, high)
    marks[LOW, j], marks[HIGH, j], marks[STATE, j] = low, high, EXACT


@inlined
def _extents(data: Any, axes: Any, start: int, end: int, marks: Any) -> None:  # pragma: no cover
    """Find the smallest and largest place on every axis where they are not known."""
    for j in range(marks.shape[1]):
        if marks[STATE, j] == BOUNDED:
            _extent(data, axes, start, end, j, marks)


@lean
def _spread(sums: Any, at: int, config: Any) -> float:  # pragma: no cover
    """Return what a group's targets still vary: n times their entropy, or the sum of squared deviations."""
    total = 0.0
    for t in range(len(config.slots) - 1):
        begin, stop = at + config.slots[t], at + config.slots[t + 1]
        rows = 0.0
        if config.choose == SQUARES:
            if sums[begin] > 0:
                total += max(0.0, sums[begin + 2] - sums[begin + 1] * sums[begin + 1] / sums[begin])
            continue
        for c in range(begin, stop):
            if sums[c] > 0:
                rows += sums[c]
                total -= sums[c] * np.log(sums[c])
        if rows > 0:
            total += rows * np.log(rows)
    return total


@hook
def gain(  # pragma: no cover
    data: Any, axes: Any, _rules: Any, config: Any, scratch: Any, start: int, end: int, j: int
) -> int:
    """Find what the best cut of axis j gains of the targets; AFTER gets the key after which it comes, of a line."""
    buffer, sums, bits = scratch.buffer, scratch.sums, bits_of(data, axes, j)
    scratch.marks[AFTER, j] = -1
    level = key_level(axes, j, scratch.marks[LOW, j], scratch.marks[HIGH, j])
    found = tally(data, axes, config, start, end, j, level, scratch, False)
    base = keys_at(axes, j, level)
    first = axes.keys[base + scratch.marks[LOW, j]]
    targets = len(config.slots) - 1
    width = config.slots[targets]
    # The first sums are those right of a cut, then those left of it, then those of each key.
    for s in range(2 * width):
        sums[s] = 0.0
    total = 0
    for c in range(found):
        total += buffer[COUNTS, buffer[SEEN, c]]
        for s in range(width):
            sums[(buffer[SEEN, c] + 2) * width + s] = 0.0
    for i in range(start, end):
        n = weight(data, config, i)
        at = (axes.keys[base + place_of(data.words, i, bits)] - first + 2) * width
        for t in range(targets):
            y = data.floats[i, config.target + t]
            slot = at + config.slots[t]
            if config.choose == SQUARES:
                sums[slot] += n
                sums[slot + 1] += n * y
                sums[slot + 2] += n * y * y
            else:
                sums[slot + np.int64(y)] += n
    for c in range(found):
        for s in range(width):
            sums[s] += sums[(buffer[SEEN, c] + 2) * width + s]
    whole = _spread(sums, 0, config)
    best, nearest, left = -1.0, total + 1, 0
    if is_line(axes, j, level):
        for c in range(found - 1):
            left += buffer[COUNTS, buffer[SEEN, c]]
            for s in range(width):
                moved = sums[(buffer[SEEN, c] + 2) * width + s]
                sums[width + s] += moved
                sums[s] -= moved
            if left < config.least or total - left < config.least:
                continue
            gained = max(0.0, whole - _spread(sums, 0, config) - _spread(sums, width, config))
            slack, near = 1e-9 * max(1.0, best), abs(2 * left - total)
            if gained > best + slack or (gained > best - slack and near < nearest):
                best, nearest, scratch.marks[AFTER, j] = gained, near, buffer[SEEN, c]
    else:
        best = whole
        for c in range(found):
            best -= _spread(sums, (buffer[SEEN, c] + 2) * width, config)
        best = max(best, 0.0)
    clear(found, buffer)
    scratch.gained[j] = best * axes.weights[j]
    return 0


@lean
def _places(data: Any, axes: Any, start: int, end: int, j: int, buffer: Any) -> int:  # pragma: no cover
    """Count the distinct places on an axis."""
    found, bits = 0, bits_of(data, axes, j)
    for i in range(start, end):
        place = place_of(data.words, i, bits)
        if buffer[COUNTS, place] == 0:
            buffer[COUNTS, place] = 1
            found += 1
    for i in range(start, end):
        buffer[COUNTS, place_of(data.words, i, bits)] = 0
    return found


@inlined
def _score(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, start: int, end: int, parent: int, scratch: Any
) -> None:
    """Say how good each axis is for a cut; widths that were only bounded stay so."""
    marks, scores = scratch.marks, scratch.scores
    width = marks.shape[1]
    if config.choose != RANGE:
        _extents(data, axes, start, end, marks)
    for j in range(width):
        marks[AFTER, j] = -1
        scores[j] = width_of(axes, j, marks[LOW, j], marks[HIGH, j])
        if config.choose == DISTINCT_VALUES:
            scores[j] = _places(data, axes, start, end, j, scratch.buffer) * axes.weights[j]
        elif config.choose == ROUND_ROBIN:
            scores[j] = -float((j - parent - 1 + 2 * width) % width)
    if config.gain != 0:
        for j in range(width):
            if key_level(axes, j, marks[LOW, j], marks[HIGH, j]) != -2:
                call_hook(config.gain, data, axes, rules, config, scratch, start, end, j)


@inlined
def _next_axis(data: Any, axes: Any, config: Any, start: int, end: int, scratch: Any) -> int:  # pragma: no cover
    """Return the best axis that was not tried, the first of equals, -1 if none is left; what matters is made exact.

    A width that is only bounded can but shrink: the axis is measured when nothing else is better, which spares most of
    them. By gain, equals are told apart by their widths.
    """
    marks, scores, gained = scratch.marks, scratch.scores, scratch.gained
    while True:
        best = -1
        for j in range(marks.shape[1]):
            if marks[STATE, j] != TRIED and marks[LOW, j] != marks[HIGH, j]:
                better = best < 0 or scores[j] > scores[best]
                if config.gain != 0:
                    if best >= 0:
                        slack = 1e-9 * max(1.0, gained[best])
                        close = abs(gained[j] - gained[best]) <= slack
                        better = gained[j] > gained[best] if not close else better
                if better:
                    best = j
        if best < 0 or marks[STATE, best] == EXACT:
            return best
        _extent(data, axes, start, end, best, marks)
        scores[best] = width_of(axes, best, marks[LOW, best], marks[HIGH, best])


@lean
def _split(  # pragma: no cover
    data: Any,
    axes: Any,
    rules: Any,
    config: Any,
    start: int,
    end: int,
    parent: int,
    scratch: Any,
) -> tuple[int, int]:
    """Split the rows of one partition; return the number of groups (0: none is allowed) and the axis.

    BOUNDS then has the groups' rows, ``scratch.regions`` their regions; of a partition that stays whole LOW and HIGH
    have the places that occur.
    """
    marks = scratch.marks
    for j in range(marks.shape[1]):
        marks[STATE, j] = BOUNDED if marks[LOW, j] != marks[HIGH, j] else EXACT
    rows = end - start
    if config.many >= 0:
        rows = 0
        for i in range(start, end):
            rows += weight(data, config, i)
    last = rows < 2 * config.least
    if not last:
        _score(data, axes, rules, config, start, end, parent, scratch)
    while not last:
        j, after = _next_axis(data, axes, config, start, end, scratch), -1
        if j < 0:
            # The last resort, after all axes: a line is cut away from its median.
            last = True
            if rules.judge != 0 and config.deal == 0:
                j, after = _elsewhere(data, axes, rules, config, start, end, scratch)
            if after < 0:
                break
        else:
            marks[STATE, j] = TRIED
            after = marks[AFTER, j]
        level = key_level(axes, j, marks[LOW, j], marks[HIGH, j])
        groups = 0 if level == -2 else -1
        if config.deal != 0 and is_line(axes, j, level):
            groups = call_hook(config.deal, data, axes, rules, config, scratch, start, end, j)
        if groups < 0:
            groups = cut(data, axes, rules, config, start, end, j, after, scratch)
        if groups > 1:
            return groups, j
    _extents(data, axes, start, end, marks)
    return 0, -1


@lean
def _elsewhere(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, start: int, end: int, scratch: Any
) -> tuple[int, int]:
    """Return a line and the key after which the rules allow a cut of it, the widest line first; -1 if there is none."""
    marks, scores = scratch.marks, scratch.scores
    for j in range(marks.shape[1]):
        level = key_level(axes, j, marks[LOW, j], marks[HIGH, j])
        # Where NULL could not be cut off, it goes with the last values.
        line = is_line(axes, j, 1 if level == -1 else level)
        if config.choose >= GAIN:
            scores[j] = width_of(axes, j, marks[LOW, j], marks[HIGH, j])
        if not line:
            scores[j] = -np.inf
    while True:
        best = 0
        for j in range(marks.shape[1]):
            best = j if scores[j] > scores[best] else best
        if scores[best] == -np.inf:
            return 0, -1
        after = boundary(data, axes, rules, config, start, end, best, scratch)
        if after >= 0:
            return best, after
        scores[best] = -np.inf


@inlined
def _publish(axes: Any, config: Any, scratch: Any, found: Any, at: int) -> None:  # pragma: no cover
    """Write the region of a class on every axis, and its level: -1 for a run of places."""
    marks, regions = scratch.marks, scratch.own
    for j in range(marks.shape[1]):
        low, high = marks[LOW, j], marks[HIGH, j]
        level = -1
        if high == axes.table[NULL, j]:
            level = 0 if low == high else axes.table[TOP, j]
        elif axes.table[TREE, j]:
            level = ancestor(axes, j, low, high)
        elif low == high and axes.table[INNER, j]:
            level = 0
        elif not config.tight:
            low, high = regions[j, 0], regions[j, 1]
        found.regions[at, j, 0], found.regions[at, j, 1], found.levels[at, j] = low, high, level


@lean
def _note(  # pragma: no cover
    axes: Any, start: int, end: int, axis: int, groups: int, scratch: Any, log: Any, noted: int
) -> int:
    """Add the groups of a cut to the log, and return how many lines it has."""
    level = scratch.marks[LEVEL, axis]
    for g in range(groups):
        line = log[noted + g]
        line[WHOLE], line[WHOLE_END] = start, end
        line[PIECE], line[PIECE_END] = scratch.buffer[BOUNDS, g], scratch.buffer[BOUNDS, g + 1]
        line[ON], line[BY], line[AT] = axis, level, -1
        if level == -1 or is_line(axes, axis, level):
            line[AT] = scratch.spans[1, 0]
    return noted + groups


@kernel
def grow(  # pragma: no cover
    data: Any,
    axes: Any,
    rules: Any,
    config: Any,
    scratch: Any,
    found: Any,
    start: int,
    end: int,
    parent: int,
    once: bool,
) -> tuple[int, int, int]:
    """Split a partition until no cut is allowed; return the number of classes, in the order of their rows.

    ``scratch.own`` has its region. With ``once`` a partition is split a single time; then the second number is that of
    its groups, of which BOUNDS and ``scratch.regions`` tell, and the first is the axis. The third number is that of the
    lines of the log.
    """
    marks, own, regions, buffer, log = scratch.marks, scratch.own, scratch.regions, scratch.buffer, found.log
    width = marks.shape[1]
    # Of each partition that waits: its rows, the axis of the cut that made it, and by axis its region and the places
    # that its rows are known to lie between.
    waiting = np.empty((64, 3 + 4 * width), dtype=np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = start, end, parent
    for j in range(width):
        waiting[0, 4 * j + 3], waiting[0, 4 * j + 4] = own[j, 0], own[j, 1]
        waiting[0, 4 * j + 5], waiting[0, 4 * j + 6] = 0, axes.table[SPAN, j] - 1
    top, classes, noted = 1, 0, 0
    while top > 0:
        top -= 1
        low, high, last = waiting[top, 0], waiting[top, 1], waiting[top, 2]
        for j in range(width):
            own[j, 0], own[j, 1] = waiting[top, 4 * j + 3], waiting[top, 4 * j + 4]
            marks[LOW, j], marks[HIGH, j] = waiting[top, 4 * j + 5], waiting[top, 4 * j + 6]
        groups, axis = _split(data, axes, rules, config, low, high, last, scratch)
        if groups > 0 and len(log) > 0:
            noted = _note(axes, low, high, axis, groups, scratch, log, noted)
        if once and groups > 0:
            return axis, groups, noted
        if groups == 0:
            _publish(axes, config, scratch, found, classes)
            found.ends[classes] = high
            classes += 1
            continue
        if top + groups > len(waiting):
            wider = np.empty((2 * (top + groups), 3 + 4 * width), dtype=np.int64)
            for i in range(top):
                for w in range(3 + 4 * width):
                    wider[i, w] = waiting[i, w]
            waiting = wider
        for g in range(groups - 1, -1, -1):
            waiting[top, 0], waiting[top, 1], waiting[top, 2] = buffer[BOUNDS, g], buffer[BOUNDS, g + 1], axis
            for j in range(width):
                waiting[top, 4 * j + 3], waiting[top, 4 * j + 4] = regions[g, j, 0], regions[g, j, 1]
                waiting[top, 4 * j + 5], waiting[top, 4 * j + 6] = marks[LOW, j], marks[HIGH, j]
            waiting[top, 4 * axis + 5], waiting[top, 4 * axis + 6] = scratch.spans[g, 0], scratch.spans[g, 1]
            top += 1
    return classes, 0, noted
