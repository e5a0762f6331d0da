"""What the nodes of a lattice look like: on a terminal, and as plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duckanon.interfaces.cli.screen import Screen, count, figure, share, whole
from duckanon.interfaces.cli.show import headed, sections

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

Row = Mapping[str, Any]
_RIGHT = {"justify": "right", "no_wrap": True}


def best_first(found: pa.Table, metric: str, pareto: bool) -> list[dict[str, Any]]:
    """Return the anonymous nodes, the best by a metric first, or the front of risk and metric.

    Where no node is anonymous, all come, those that suppress least first.
    """
    from duckanon.algorithms.full_domain.listing import front
    from duckanon.metrics.base import metrics

    rows: list[dict[str, Any]] = found.to_pylist()
    sign = 1 if metrics.get(metric).direction == "lower" else -1
    scores = [sign * row[metric] if row[metric] is not None else float("inf") for row in rows]
    if pareto:
        return [rows[i] for i in front(rows, scores)]
    good = [i for i, row in enumerate(rows) if row["anonymous"]]
    if good:
        return [rows[i] for i in sorted(good, key=lambda i: (scores[i], i))]
    return [rows[i] for i in sorted(range(len(rows)), key=lambda i: (rows[i]["suppressed"], scores[i], i))]


def show_nodes(screen: Screen, about: Row, metrics: Sequence[str], rows: Sequence[Row], total: int) -> None:
    """Show the first of ``total`` nodes: what they lose, risk and suppress, and the levels that make them."""
    text = f"{count(about['nodes'], 'nodes')}, {whole(about['anonymous'])} of them anonymous"
    if not screen.rich:
        screen.line(f"{about['source']}: {text}")
        for row in rows:
            values = [f"{name} {figure(row[name])}" for name in metrics]
            risk = f"risk {'-' if row['risk'] is None else share(row['risk'])}"
            rest = f"{count(row['suppressed'], 'rows')} suppressed, {count(row['classes_published'], 'classes')}"
            screen.line(f"{row['node']} ({_levels(row)}): {', '.join([*values, risk, rest])}")
        return
    from rich.text import Text

    parts: list[tuple[str, RenderableType]] = [(str(about["source"]), Text(text))]
    table = headed(
        *((name.replace("_", " "), _RIGHT) for name in metrics),
        ("risk", _RIGHT),
        ("suppressed", _RIGHT),
        ("classes", _RIGHT),
        ("levels", {"overflow": "fold"}),
    )
    for row in rows:
        lost = f"{whole(row['suppressed'])} ({share(row['suppressed_share'])})" if row["suppressed"] else "0"
        risk = "-" if row["risk"] is None else share(row["risk"])
        classes = whole(row["classes_published"])
        levels = Text(_levels(row), style="" if row["anonymous"] else "dim")
        table.add_row(*(figure(row[name]) for name in metrics), risk, lost, classes, levels)
    if total > len(rows):
        more = f"... {count(total - len(rows), 'nodes')} more (--top 0 shows all)"
        table.add_row(*[""] * (len(metrics) + 3), Text(more, style="dim"))
    best = f"Best first by {metrics[0].replace('_', ' ')}"
    title = best if about["anonymous"] else "None is anonymous: those that suppress least"
    if rows:
        parts.append((f"The front of risk and {metrics[0]}" if about["pareto"] else title, table))
    sections(screen, parts)


def _levels(row: Row) -> str:
    """Return the levels of the columns that are generalized.

    Examples
    --------
    >>> _levels({"levels": {"age": 3, "sex": 0, "zip": 1}}), _levels({"levels": {"age": 0}})
    ('age=3, zip=1', 'all as they are')
    """
    return ", ".join(f"{name}={level}" for name, level in row["levels"].items() if level) or "all as they are"
