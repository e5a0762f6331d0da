"""Rows as words of 64 bits: keyed hashes of their values, and the sum over all rows of a relation."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.dialect import hash_of
from duckanon.engine.sql.relations import call, cast, named, number, param, subquery
from duckanon.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

_FIXED = re.compile(
    r"BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE|DATE|TIME|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?"
)
BATCH = 122_880
"""Rows whose words stay in the cache while one column after the other is looked up."""


def words_of(value: exp.Expr, kind: str, slot: int) -> list[exp.Expr]:
    """Return keyed hashes of a value; texts have two, because texts that differ in few places may share one."""
    plain = cast(value, kind)
    if _FIXED.fullmatch(kind):
        return [word_of(plain, slot)]
    own = plain if kind == "VARCHAR" else cast(plain, "VARCHAR")
    return [word_of(plain, slot), word_of(exp.DPipe(this=param("text"), expression=own.copy()), slot)]


def word_of(value: exp.Expr, slot: int) -> exp.Expr:
    """Return a hash of a value under the key of a column."""
    # A function of one column is evaluated once for each dictionary entry of a file.
    return hash_of(call("xor", cast(param(f"slot{slot}"), "UBIGINT"), hash_of(value)))


def joined(words: Sequence[exp.Expr]) -> exp.Expr:
    """Return one word of several."""
    return reduce(lambda a, b: call("xor", a, b), words) if words else cast(number(0), "UBIGINT")


def secret_words(slots: int) -> dict[str, Any]:
    """Return secret words, and a secret text that is put before texts, so that they are hashed at other offsets."""
    found: dict[str, Any] = {f"slot{i}": secrets.randbits(64) for i in range(slots)}
    return found | {"text": secrets.token_hex(5) + "-" * (1 + secrets.randbelow(5))}


def shuffle_keys(seed: int | None) -> dict[str, int]:
    """Return two secret words from the operating system, or words derived from a seed."""
    if seed is None:
        raw = secrets.token_bytes(16)
    else:
        raw = hashlib.sha256(b"duckanon-shuffle" + str(seed).encode()).digest()[:16]
    return {f"key{i}": int.from_bytes(raw[8 * i : 8 * i + 8], "big") for i in range(2)}


def named_in(query: exp.Expr, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a statement uses: the database refuses others."""
    wanted = {placeholder.name for placeholder in query.find_all(exp.Placeholder)}
    return {name: value for name, value in values.items() if name in wanted}


def batches(
    engine: Engine, query: exp.Query, params: Mapping[str, Any], private: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query; run no other statement until all have been read."""
    import pyarrow as pa

    reader = engine.reader(query, named_in(query, params), batch=BATCH, private=private)
    while True:
        batch, failed = None, False
        try:
            batch = next(reader, None)
        except pa.ArrowException:
            failed = True
        if failed:
            # Raised here, so that the original, which may quote data, is not left as its context.
            raise EngineError("DuckDB could not read the rows again (its message is withheld: it may quote data).")
        if batch is None:
            return
        yield batch


def sum_of_rows(
    engine: Engine, relation: exp.Query, words: Sequence[exp.Expr], params: Mapping[str, Any]
) -> tuple[int, int]:
    """Return the number of rows of a relation, and the sum of their words, mixed."""
    import numpy as np

    from duckanon.kernels.beside import add_words

    query = exp.select(named(joined(words), "word")).from_(subquery(relation.copy(), "s"))
    rows, sums = 0, np.zeros(1, dtype=np.uint64)
    for batch in batches(engine, query, params):
        rows += batch.num_rows
        add_words(batch.column(0).to_numpy(), sums)
    return rows, int(sums[0])


__all__ = ["batches", "joined", "named_in", "secret_words", "sum_of_rows", "word_of", "words_of"]
