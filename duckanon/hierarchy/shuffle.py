"""A hierarchy of the same shape with randomly exchanged values, to measure what the order is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, named, number, same, table, text
from duckanon.hierarchy.table import Levels

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


def shuffled(engine: Engine, levels: Levels, seed: int) -> Levels:
    """Return bound levels in which every value has the place of another one.

    Groups keep their sizes. They are numbered, because their old labels would be wrong for their new members.
    """
    import numpy as np
    import pyarrow as pa

    # Values that the hierarchy does not know stay where they are, at the top.
    rows = engine.arrow(exp.select(col("code"), col("known")).from_(table(levels.tree)).order_by(col("code")))
    codes = rows.column("code").to_numpy()
    listed = rows.column("known").to_numpy()
    other = codes.copy()
    seeds = [seed, *levels.attribute.encode()]
    other[listed] = np.random.default_rng(seeds).permutation(codes[listed])
    deal = engine.fresh("deal")
    engine.register(deal, pa.table({"code": codes, "other": other}))
    groups, tree, leaves = (engine.fresh(stem) for stem in ("groups", "tree", "leaves"))
    rank = exp.Window(
        this=exp.RowNumber(),
        partition_by=[col("level")],
        order=exp.Order(expressions=[exp.Ordered(this=col("label"), desc=False, nulls_first=False)]),
    )
    word = call("concat", text("group "), cast(col("level"), "VARCHAR"), text("."), cast(rank, "VARCHAR"))
    top = exp.EQ(this=col("level"), expression=number(levels.height))
    renamed = exp.case().when(top, col("label")).else_(word)
    columns = [col("level"), col("label"), named(renamed, "word"), col("leaves")]
    engine.create(groups, exp.select(*columns).from_(table(levels.leaves)))
    query = exp.select(col("code", "d"), col("known", "t")).from_(table(deal, "d"))
    query = query.join(table(levels.tree, "t"), on=exp.EQ(this=col("code", "t"), expression=col("other", "d")))
    for level in range(1, levels.height + 1):
        alias = f"g{level}"
        on_level = exp.EQ(this=col("level", alias), expression=number(level))
        on = exp.and_(on_level, same(col("label", alias), col(f"l{level}", "t")))
        query = query.join(table(groups, alias), on=on, join_type="left")
        query = query.select(named(exp.func("COALESCE", col("word", alias), col(f"l{level}", "t")), f"l{level}"))
    engine.create(tree, query)
    engine.create(leaves, exp.select(col("level"), named(col("word"), "label"), col("leaves")).from_(table(groups)))
    engine.unregister(deal)
    engine.drop(groups)
    origin = f"{levels.origin}, values dealt at random"
    return replace(levels, tree=tree, leaves=leaves, origin=origin, arrays=None)
