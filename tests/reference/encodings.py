"""Encodings of anonymous tables, written from the papers: one dictionary of features for each row, nothing clever.

A hierarchy is a list of rows ``(leaf, label on level 1, ..., top)``. Features are pairs (attribute, node); a node is
(level, label), level 0 for leaves. F. Viton et al., Proportional representation to increase data utility in k-anonymous
tables, 2021, sections II-C and III-A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Node = tuple[int, str]
Tree = Sequence[Sequence[str]]


def nodes(tree: Tree) -> list[Node]:
    """All nodes, level by level, in the order of the leaves."""
    found: list[Node] = []
    for level in range(len(tree[0])):
        for row in tree:
            if (level, row[level]) not in found:
                found.append((level, row[level]))
    return found


def leaves(tree: Tree, node: Node) -> set[str]:
    """The leaves under a node."""
    level, label = node
    return {row[0] for row in tree if row[level] == label}


def node_of(tree: Tree, label: str) -> Node:
    """The lowest node with a label."""
    return next(node for node in nodes(tree) if node[1] == label)


def path(tree: Tree, node: Node) -> list[Node]:
    """A node and all nodes above it."""
    level, label = node
    row = next(row for row in tree if row[level] == label)
    return [(above, row[above]) for above in range(level, len(row))]


def one_class(tree: Tree, label: str) -> dict[Node, float]:
    """Each label is a category of its own."""
    return {node_of(tree, label): 1.0}


def fill_parent(tree: Tree, label: str) -> dict[Node, float]:
    """A label has the features of all its parents, too."""
    return dict.fromkeys(path(tree, node_of(tree, label)), 1.0)


def fill_child(tree: Tree, label: str) -> dict[Node, float]:
    """A label has the features of all nodes below it, too."""
    own = node_of(tree, label)
    return {node: 1.0 for node in nodes(tree) if own in path(tree, node)}


def value_set(tree: Tree, label: str) -> dict[Node, float]:
    """The binary tuple of the leaves that a label can stand for."""
    under = leaves(tree, node_of(tree, label))
    return {(0, leaf): 1.0 for leaf in under}


def even(tree: Tree, label: str) -> dict[Node, float]:
    """The share of every node, where nothing but the label is known: its leaves are equally likely."""
    under = leaves(tree, node_of(tree, label))
    shares = {node: len(under & leaves(tree, node)) / len(under) for node in nodes(tree)}
    return {node: share for node, share in shares.items() if share}


def proportional(tree: Tree, members: Sequence[str]) -> dict[Node, float]:
    """Equation (1): the share of the class whose original value equals a node or is generalized in it."""
    found = {}
    for node in nodes(tree):
        share = sum(value in leaves(tree, node) for value in members) / len(members)
        if share:
            found[node] = share
    return found


def lifted(tree: Tree, released: Mapping[str, int], value: str) -> str:
    """The label by which ``one_class`` knows a raw value: itself, else the lowest published label above it."""
    above = [label for _, label in path(tree, (0, value))]
    return next((label for label in above if label in released), value)


def values_of(cell: str) -> set[int]:
    """The whole numbers from 0 to 99 that an interval, a set or a number stands for."""
    if cell == "*":
        return set(range(100))
    if cell.startswith("{"):
        return {int(part) for part in cell[1:-1].split(",")}
    if cell[0] in "[(":
        low, high = (int(part) for part in cell[1:-1].split(","))
        return {x for x in range(100) if low - (cell[0] == "[") < x < high + (cell[-1] == "]")}
    for sign, holds in {"<=": int.__le__, ">=": int.__ge__, "<": int.__lt__, ">": int.__gt__}.items():
        if cell.startswith(sign):
            bound = int(cell[len(sign) :])
            return {x for x in range(100) if holds(x, bound)}
    return {int(cell)}
