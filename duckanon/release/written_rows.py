"""The rows of a release, as they are published and as the gate counts persons on them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import ENTITY
from duckanon.encoding.enumerations import ENUM_LIMIT
from duckanon.engine.sql.relations import call, cast, col, named, param, subquery, table
from duckanon.errors import PrivacyViolation
from duckanon.hierarchy.rules import ColumnType
from duckanon.plan.roles import Role
from duckanon.recoding.recoders import Recoder

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan

_ORDER = "duckanon order"


def write_rows(plan: Plan, recoder: Recoder, path: Path, expected: int) -> None:
    """Write the published rows, shuffled; where ``expected`` rows are many for the memory, in two steps."""
    inner = dict(recoder.shown)
    passed = [a for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]
    inner |= {a.name: f"p_{i}" for i, a in enumerate(passed)}
    columns = [(name, inner[name]) for name in plan.published_names]
    engine, keys = recoder.engine, shuffle_keys(plan.seed)
    kept = [(a.name, plan.expression(a)) for a in passed]
    stored = engine.fresh("recoded")

    def from_file(rows: exp.Select) -> exp.Select:
        return _stored_rows(engine, stored, rows, keys)

    crowded = engine.is_crowded_by(expected * 24 * len(columns))
    if recoder.write(kept, columns, path, keys, expected, from_file if crowded else None):
        engine.drop(stored)
        return
    rows, params = recoder.rows(kept), keys
    if crowded and rows.args.get("order") is not None:
        rows, params = from_file(rows), {}
    engine.write_parquet(recoder.released(rows, columns), path, params)
    engine.drop(stored)


def _stored_rows(engine: Engine, name: str, rows: exp.Select, keys: dict[str, int]) -> exp.Select:
    """Return the rows from a private file, still to be sorted: to look up and to sort at a time takes more memory.

    They are sorted with short codes in place of texts.
    """
    (key,) = rows.args["order"].expressions
    plain = rows.copy()
    plain.set("order", None)
    found = engine.columns(plain)
    # Enumerations are written as texts, see ``Regions.released``.
    words = [c.name for c in found if c.type.startswith(("ENUM", "VARCHAR")) and not c.type.endswith("]")]
    written = [named(cast(col(c.name), "VARCHAR"), c.name) if c.name in words else col(c.name) for c in found]
    plain = plain.select(named(key.this if isinstance(key, exp.Ordered) else key, _ORDER))
    engine.create_file(name, exp.select(*written, col(_ORDER)).from_(subquery(plain, "r")), keys)
    short = _enumerated(engine, name, words)
    inner, outer = [], []
    for column in found:
        own: exp.Expr = col(column.name)
        if column.name in short:
            kind = exp.DataType.build(short[column.name], udt=True)
            inner.append(named(exp.Cast(this=own, to=kind), column.name))
            outer.append(named(cast(col(column.name), "VARCHAR"), column.name))
        else:
            inner.append(own)
            outer.append(own.copy())
    ordered = exp.select(*inner).from_(table(name)).order_by(col(_ORDER))
    return exp.select(*outer).from_(subquery(ordered, "o"))


def _enumerated(engine: Engine, rows: str, columns: Sequence[str]) -> dict[str, str]:
    """Return enumerations of those columns that have few texts."""
    if not columns:
        return {}
    several = [call("approx_count_distinct", col(c)) for c in columns]
    found = {}
    for column, size in zip(columns, engine.row(exp.select(*several).from_(table(rows))), strict=True):
        if 0 < size <= ENUM_LIMIT // 2:
            present = exp.Not(this=exp.Is(this=col(column), expression=exp.null()))
            texts = exp.select(col(column)).distinct().from_(table(rows)).where(present).order_by(col(column))
            found[column] = engine.fresh("enum")
            engine.create_enum(found[column], texts)
    return found


def write_proof(plan: Plan, recoder: Recoder, path: Path) -> None:
    """Write the published quasi-identifiers with the entity key, for the gate alone."""
    masked = hidden_person(plan.entity, param("key0"), param("key1"))
    if masked is None:
        return
    rows = recoder.rows([(ENTITY, masked)])
    # Nobody sees it, so it is left in the order in which it comes.
    rows.set("order", None)
    columns = [*recoder.shown, (ENTITY, "p_0")]
    recoder.engine.write_parquet(recoder.released(rows, columns), path, shuffle_keys(plan.seed))


def require_types(plan: Plan, engine: Engine, written: exp.Query) -> dict[str, str]:
    """Return the types of a written file by column; raise a PrivacyViolation where they are not the declared ones."""
    found = {c.name: c.type for c in engine.columns(written)}
    if list(found) != plan.published_names:
        raise PrivacyViolation("The gate refused the release: its columns are not the declared ones.")
    own = exp.select(*(named(plan.expression(a), a.name) for a in plan.roles.published))
    # What types are called once they were in a file.
    empty = engine.fresh("types")
    engine.create_file(empty, own.from_(subquery(plan.relation.query.copy(), "s")).limit(0))
    declared = {c.name: c.type for c in engine.columns(exp.select("*").from_(table(empty)))}
    engine.drop(empty)
    for attribute in plan.roles.published:
        names, kind = plan.published_as.get(attribute.name, (attribute.name,)), declared[attribute.name]
        allowed = {kind}
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.name not in plan.within:
            allowed = _allowed(plan.output[attribute.name], kind)
        wrong = [name for name in names if found[name] not in allowed]
        if wrong:
            raise PrivacyViolation(f"The gate refused the release: the type of {wrong[0]!r} is not the declared one.")
    return found


def _allowed(output: str, kind: str) -> set[str]:
    """Return the types in which a quasi-identifier may be published."""
    if output in ("mean", "geometric_mean", "midpoint"):
        return {"DOUBLE", "VARCHAR"} if ColumnType.parse(kind).kind == "number" else {kind, "VARCHAR"}
    if output == "struct":
        return {f"STRUCT(lo {kind}, hi {kind})"}
    if output == "proportional":
        return {"MAP(VARCHAR, DOUBLE)", kind}
    return {kind} if output in ("bounds", "median", "mode", "medoid") else {kind, "VARCHAR"}


def hidden_person(entity: exp.Expr | None, *keys: exp.Expr) -> exp.Expr | None:
    """Return a hash in place of an entity key: a collision could only make two persons one, never one person two."""
    if entity is None:
        return None
    hidden = call("hash", *keys, entity)
    return exp.case().when(exp.Is(this=entity.copy(), expression=exp.null()), exp.null()).else_(hidden)


def shuffle_keys(seed: int | None) -> dict[str, int]:
    """Return two secret words from the operating system, or words derived from a seed."""
    if seed is None:
        raw = secrets.token_bytes(16)
    else:
        raw = hashlib.sha256(b"duckanon-shuffle" + str(seed).encode()).digest()[:16]
    return {f"key{i}": int.from_bytes(raw[8 * i : 8 * i + 8], "big") for i in range(2)}


__all__ = ["hidden_person", "shuffle_keys", "write_proof", "write_rows"]
