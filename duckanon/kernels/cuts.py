"""How a partition is cut by one axis: keys are counted and grouped, and the rows follow their groups."""

from __future__ import annotations

from typing import Any

from duckanon.kernels.arranging import arrange, halves
from duckanon.kernels.jit import call_hook, hook, inlined, lean
from duckanon.kernels.keys import ancestor, clear, halve, is_line, key_level, keys_at, tally, weight
from duckanon.kernels.layout import (
    BOUNDS,
    COUNTS,
    ENTRIES,
    FIRST,
    GROUP,
    HEADS,
    HIGH,
    HISTOGRAM,
    LEVEL,
    LOW,
    MEMBER,
    NULL,
    OTHER,
    SEEN,
    SPAN,
    TREE,
)
from duckanon.kernels.rows import bits_of, copy_regions, place_of, select_ties, sort_run
from duckanon.kernels.rules import holds


@lean
def _allowed(  # pragma: no cover
    data: Any, rules: Any, config: Any, scratch: Any, children: int, wanted: int
) -> bool:
    """Ask every rule about the rows of the children whose MEMBER is ``wanted``; BOUNDS has the rows of each."""
    buffer, values, people = scratch.buffer, scratch.values, scratch.people
    columns = rules.columns.shape[1] - 1
    rows, size = 0, 0
    for c in range(children):
        if buffer[MEMBER, c] == wanted:
            for i in range(buffer[BOUNDS, c], buffer[BOUNDS, c + 1]):
                rows += weight(data, config, i)
                if config.persons:
                    person = data.numbers[i, config.extra + columns]
                    size += 1 if people[0, person] == 0 else 0
                    people[0, person] += 1
    if not config.persons:
        size = rows
    fine = rows >= config.least
    for column in range(-1, columns):
        at = rules.columns[0, column] if column >= 0 else 0
        found = 0
        for c in range(children if column >= 0 and fine else 0):
            if buffer[MEMBER, c] == wanted:
                for i in range(buffer[BOUNDS, c], buffer[BOUNDS, c + 1]):
                    code = data.numbers[i, config.extra + column]
                    if values[HISTOGRAM, at + code] == 0:
                        values[ENTRIES, at + found] = code
                        found += 1
                    values[HISTOGRAM, at + code] += weight(data, config, i)
        sort_run(values[ENTRIES], at, found)
        for r in range(rules.table.shape[1]):
            if fine and rules.table[1, r] == column:
                fine = holds(rules, r, size, rows, values, HISTOGRAM, found, scratch.mass)
        for i in range(at, at + found):
            values[HISTOGRAM, at + values[ENTRIES, i]] = 0
    for c in range(children if config.persons else 0):
        if buffer[MEMBER, c] == wanted:
            for i in range(buffer[BOUNDS, c], buffer[BOUNDS, c + 1]):
                people[0, data.numbers[i, config.extra + columns]] = 0
    return fine


@lean
def _stands(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, scratch: Any, children: int, wanted: int
) -> bool:
    """Ask the rules, if there are any, about the rows of some children."""
    if rules.judge == 0:
        return True
    return call_hook(rules.judge, data, axes, rules, config, scratch, children, wanted, 0) != 0


@lean
def both_allowed(data: Any, axes: Any, rules: Any, config: Any, scratch: Any) -> bool:  # pragma: no cover
    """Ask the rules about the two sides of a cut."""
    fine = True
    for side in range(2):
        scratch.buffer[MEMBER, 0] = 0
        scratch.buffer[MEMBER, 1] = 1
        fine = fine and _stands(data, axes, rules, config, scratch, 2, side)
    return fine


@inlined
def _pooled(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, scratch: Any, children: int
) -> int:
    """Put children that cannot stand alone together; return how many groups there are, MEMBER says whose is whose.

    The pool takes in the smallest of the others, the earlier of equals, until it can stand. BOUNDS has the rows of
    each child where rules are asked.
    """
    buffer = scratch.buffer
    pool, rows = -1, 0
    for c in range(children):
        buffer[MEMBER, c] = c
    # First every child is asked, then the pool, again and again: in one loop, so that rules are compiled in once.
    c = 0
    while c < children or pool >= 0:
        asked = c if c < children else pool
        n = buffer[COUNTS, buffer[SEEN, c]] if c < children else rows
        if n >= config.least and _stands(data, axes, rules, config, scratch, children, asked):
            if c >= children:
                break
        elif c < children:
            pool = c if pool < 0 else pool
            buffer[MEMBER, c] = pool
            rows += n
        else:
            smallest = -1
            for other in range(children):
                if buffer[MEMBER, other] != pool and (
                    smallest < 0 or buffer[COUNTS, buffer[SEEN, other]] < buffer[COUNTS, buffer[SEEN, smallest]]
                ):
                    smallest = other
            if smallest < 0:
                break
            joined = min(pool, smallest)
            for other in range(children):
                if buffer[MEMBER, other] == pool or other == smallest:
                    buffer[MEMBER, other] = joined
            pool = joined
            rows += buffer[COUNTS, buffer[SEEN, smallest]]
        c += 1
    groups = 0
    for c in range(children):
        if buffer[MEMBER, c] == c:
            buffer[HEADS, c] = groups
            groups += 1
        buffer[MEMBER, c] = buffer[HEADS, buffer[MEMBER, c]]
    return groups


@inlined
def cut(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, start: int, end: int, j: int, after: int, scratch: Any
) -> int:
    """Cut a partition by axis j and return the number of groups, 0 if it cannot be cut so.

    BOUNDS then has their rows and ``scratch.regions`` their regions. ``after`` is the key after which a line is cut,
    counted from the smallest; -1 leaves that to the median.
    """
    level = key_level(axes, j, scratch.marks[LOW, j], scratch.marks[HIGH, j]) if after < 0 else 1
    groups = 0
    while True:
        groups = _cut_on(data, axes, rules, config, start, end, j, level, after, scratch)
        if groups or level != -1:
            return groups
        # NULL cannot stand alone: it goes with the last values, or with children that are pooled.
        level = 1
        if axes.table[TREE, j]:
            level = ancestor(axes, j, scratch.marks[LOW, j], scratch.marks[HIGH, j]) - 1


@inlined
def _cut_on(  # pragma: no cover
    data: Any,
    axes: Any,
    rules: Any,
    config: Any,
    start: int,
    end: int,
    j: int,
    level: int,
    after: int,
    scratch: Any,
) -> int:
    """Cut a partition by the keys of one level, see ``cut``; level -1 tells NULL apart."""
    buffer = scratch.buffer
    line = is_line(axes, j, level)
    found = tally(data, axes, config, start, end, j, level, scratch, False)
    total = 0
    for i in range(found):
        total += buffer[COUNTS, buffer[SEEN, i]]
    groups, place = 0, 0
    if line or level == -1:
        last = after if after >= 0 else halve(found, total, config.least, buffer)
        groups = 2 if last >= 0 else 0
        if groups:
            place = axes.table[NULL, j]
            if line:
                first = axes.keys[keys_at(axes, j, level) + scratch.marks[LOW, j]]
                place = axes.firsts[axes.table[FIRST, j] + first + last + 1]
            halves(data, axes, start, end, j, place, scratch)
            if not both_allowed(data, axes, rules, config, scratch):
                groups = 0
    else:
        if rules.judge != 0:
            # Children become runs of rows first, so that rules can be asked about each.
            for c in range(found):
                buffer[GROUP, buffer[SEEN, c]] = c
            arrange(data, axes, config, start, end, j, level, found, found, scratch)
            if config.many >= 0:
                clear(found, buffer)
                tally(data, axes, config, start, end, j, level, scratch, False)
        groups = _pooled(data, axes, rules, config, scratch, found)
        groups = groups if groups > 1 else 0
        for c in range(found):
            buffer[GROUP, buffer[SEEN, c]] = buffer[MEMBER, c]
        if groups:
            arrange(data, axes, config, start, end, j, level, found, groups, scratch)
    if groups:
        scratch.marks[LEVEL, j] = level
        _bound(axes, end - start, j, level, place if line or level == -1 else -1, groups, scratch)
    clear(found, buffer)
    for g in range(groups):
        copy_regions(scratch.own, scratch.regions, g)
    if groups and line:
        scratch.regions[0, j, 1] = place - 1
        scratch.regions[1, j, 0] = place
    return groups


@inlined
def _bound(  # pragma: no cover
    axes: Any, rows: int, j: int, level: int, place: int, groups: int, scratch: Any
) -> None:
    """Say between which places the groups of a cut lie on its axis: on both sides of a place, or where keys tell."""
    buffer, spans = scratch.buffer, scratch.spans
    low, high = scratch.marks[LOW, j], scratch.marks[HIGH, j]
    for g in range(groups):
        spans[g, 0], spans[g, 1] = low, high
    if place >= 0:
        spans[0, 1], spans[1, 0] = place - 1, place
    elif high - low < rows:
        at = keys_at(axes, j, level)
        first = axes.keys[at + low]
        for g in range(groups):
            spans[g, 0], spans[g, 1] = high, low
        for p in range(low, high + 1):
            own = axes.keys[at + p] - first
            if buffer[COUNTS, own] > 0:
                g = buffer[GROUP, own]
                spans[g, 0], spans[g, 1] = min(spans[g, 0], p), max(spans[g, 1], p)


@hook
def deal(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, scratch: Any, start: int, end: int, j: int
) -> int:
    """Cut a line at the median row, rows of the median place to both sides; see ``cut``."""
    middle = start + (end - start + 1) // 2
    if middle - start < config.least or end - middle < config.least:
        return 0
    buffer = scratch.buffer
    select_ties(data, axes, config, start, end, middle, j, scratch.marks.shape[1], buffer[MEMBER])
    buffer[BOUNDS, 0], buffer[BOUNDS, 1], buffer[BOUNDS, 2] = start, middle, end
    if not both_allowed(data, axes, rules, config, scratch):
        return 0
    left, right, bits = 0, axes.table[SPAN, j], bits_of(data, axes, j)
    for i in range(start, middle):
        left = max(left, place_of(data.words, i, bits))
    for i in range(middle, end):
        right = min(right, place_of(data.words, i, bits))
    scratch.spans[0, 0], scratch.spans[0, 1] = scratch.marks[LOW, j], left
    scratch.spans[1, 0], scratch.spans[1, 1] = right, scratch.marks[HIGH, j]
    atoms = keys_at(axes, j, 1)
    low, high = axes.keys[atoms + left], axes.keys[atoms + right]
    ends = axes.table[FIRST, j]
    copy_regions(scratch.own, scratch.regions, 0)
    copy_regions(scratch.own, scratch.regions, 1)
    scratch.regions[0, j, 1] = axes.firsts[ends + low + 1] - 1
    scratch.regions[1, j, 0] = axes.firsts[ends + high] if low == high else axes.firsts[ends + low + 1]
    return 2


@lean
def _shift(data: Any, rules: Any, config: Any, scratch: Any, i: int, sign: int) -> int:  # pragma: no cover
    """Move a row from the right side to the left (or, with ``sign`` 0, put it on the right); return its rows."""
    n = weight(data, config, i)
    for c in range(rules.columns.shape[1] - 1):
        at = rules.columns[0, c] + data.numbers[i, config.extra + c]
        scratch.values[HISTOGRAM, at] += n if sign == 0 else -n
        scratch.values[OTHER, at] += n * sign
    return n


@lean
def boundary(  # pragma: no cover
    data: Any, axes: Any, rules: Any, config: Any, start: int, end: int, j: int, scratch: Any
) -> int:
    """Return the key after which a line can be cut, nearest to the half, by asking the rules about every boundary."""
    buffer = scratch.buffer
    found = tally(data, axes, config, start, end, j, 1, scratch, False)
    for c in range(found):
        buffer[GROUP, buffer[SEEN, c]] = c
    arrange(data, axes, config, start, end, j, 1, found, found, scratch)
    best = call_hook(rules.judge, data, axes, rules, config, scratch, start, end, found)
    clear(found, buffer)
    return best


@lean
def _sweep(  # pragma: no cover
    data: Any, rules: Any, config: Any, scratch: Any, start: int, end: int, found: int
) -> int:
    """Do the work of ``boundary`` on rows that are in the order of their keys.

    Rows move from the right to the left, key by key, and the histograms of both sides with them.
    """
    buffer, values, people = scratch.buffer, scratch.values, scratch.people
    columns = rules.columns.shape[1] - 1
    rows, persons, came = 0, 0, 0
    for c in range(columns):
        filled = 0
        at = rules.columns[0, c]
        for i in range(start, end):
            code = data.numbers[i, config.extra + c]
            if values[HISTOGRAM, at + code] == 0:
                values[ENTRIES, at + filled] = code
                values[HISTOGRAM, at + code] = 1
                filled += 1
        sort_run(values[ENTRIES], at, filled)
        for i in range(at, at + filled):
            values[HISTOGRAM, at + values[ENTRIES, i]] = 0
        # HEADS is free from here on, and holds how many values each column has.
        buffer[HEADS, c] = filled
    for i in range(start, end):
        rows += _shift(data, rules, config, scratch, i, 0)
        if config.persons:
            person = data.numbers[i, config.extra + columns]
            persons += 1 if people[0, person] == 0 else 0
            people[0, person] += 1
    best, nearest, left, whole = -1, rows + 1, 0, rows
    for c in range(found - 1):
        for i in range(buffer[BOUNDS, c], buffer[BOUNDS, c + 1]):
            left += _shift(data, rules, config, scratch, i, 1)
            if config.persons:
                person = data.numbers[i, config.extra + columns]
                people[0, person] -= 1
                persons -= 1 if people[0, person] == 0 else 0
                came += 1 if people[1, person] == 0 else 0
                people[1, person] += 1
        near = abs(2 * left - whole)
        if left < config.least or whole - left < config.least or near >= nearest:
            continue
        fine = True
        for r in range(rules.table.shape[1]):
            a = rules.table[1, r]
            filled = buffer[HEADS, a] if a >= 0 else 0
            for side in range(2):
                n = whole - left if side == HISTOGRAM else left
                members = n if not config.persons else persons if side == HISTOGRAM else came
                fine = fine and holds(rules, r, members, n, values, side, filled, scratch.mass)
        if fine:
            best, nearest = buffer[SEEN, c], near
    for i in range(start, end):
        for c in range(columns):
            at = rules.columns[0, c] + data.numbers[i, config.extra + c]
            values[HISTOGRAM, at] = 0
            values[OTHER, at] = 0
        if config.persons:
            people[0, data.numbers[i, config.extra + columns]] = 0
            people[1, data.numbers[i, config.extra + columns]] = 0
    return best


@hook
def judge(  # pragma: no cover
    data: Any, _axes: Any, rules: Any, config: Any, scratch: Any, first: int, second: int, keys: int
) -> int:
    """Ask the rules about some children, or look for the boundary between keys that the rules allow.

    The numbers are how many children there are and which MEMBER is asked for; where there are keys, where rows begin
    and end. Both are one hook, so that rules are compiled once.
    """
    if keys > 0:
        return _sweep(data, rules, config, scratch, first, second, keys)
    return 1 if _allowed(data, rules, config, scratch, first, second) else 0
