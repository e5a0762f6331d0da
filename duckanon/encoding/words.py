"""Words of 64 bits: codes packed into them, and rows as keyed hashes of their values, which can be added up."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, hash_of, named, number, param, subquery
from duckanon.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine


WORD = 64
"""Bits of a word."""


class Bits(NamedTuple):
    """The position of a code: its word, its shift within the word, and the mask of its bits after the shift."""

    word: int
    shift: int
    mask: int


def bits_for(size: int) -> int:
    """Return how many bits are needed for the codes ``0 .. size - 1``.

    Examples
    --------
    >>> bits_for(1), bits_for(4), bits_for(1000)
    (1, 2, 10)
    """
    return max(1, (size - 1).bit_length())


@dataclass
class WordLayout:
    """The layout of a row of words: ``used`` is how many bits of each word are taken, from the lowest on.

    At most ``limit`` bits of a word are taken. With ``in_order``, codes are only added to the last word or a new one.

    Examples
    --------
    >>> layout = WordLayout()
    >>> tuple(layout.bits(1000)), tuple(layout.bits(4)), layout.number(), layout.used
    ((0, 0, 1023), (0, 10, 3), 1, [64])
    """

    limit: int = WORD
    in_order: bool = False
    used: list[int] = field(default_factory=list)

    def bits(self, size: int) -> Bits:
        """Reserve bits for one of ``size`` codes, in the first word with enough free bits."""
        needed = bits_for(size)
        first = max(0, len(self.used) - 1) if self.in_order else 0
        fitting = (w for w in range(first, len(self.used)) if self.used[w] + needed <= self.limit)
        word = next(fitting, len(self.used))
        self.used += [0] * (word == len(self.used))
        self.used[word] += needed
        return Bits(word, self.used[word] - needed, 2**needed - 1)

    def number(self) -> int:
        """Reserve a number of 32 bits, in the second half of a word or in a new word; return its index among these."""
        word = next((w for w, used in enumerate(self.used) if used <= WORD // 2), None)
        if word is None:
            return self.numbers(1)
        self.used[word] = WORD
        return 2 * word + 1

    def numbers(self, count: int) -> int:
        """Reserve adjacent numbers of 32 bits; return the index of the first."""
        return 2 * self.words((count + 1) // 2, WORD - WORD // 2 * (count % 2))

    def words(self, count: int = 1, last: int = WORD) -> int:
        """Reserve whole words, of which the last has ``last`` bits taken; return the first."""
        self.used += ([WORD] * count)[: count - 1] + [last] * (count > 0)
        return len(self.used) - count


def moved_up(code: exp.Expr, shift: int) -> exp.Expr:
    """Return a code shifted to its position in a word."""
    wide = cast(code, "UBIGINT")
    return exp.Mul(this=wide, expression=cast(number(1 << shift), "UBIGINT")) if shift else wide


def word_of_codes(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the word of several codes, each shifted to its position."""
    word = parts[0] if parts else cast(number(0), "UBIGINT")
    for part in parts[1:]:
        word = exp.BitwiseOr(this=word, expression=part)
    return word


def unpacked(word: exp.Expr, bits: Bits) -> exp.Expr:
    """Return the code at a position of a word."""
    moved = exp.paren(exp.BitwiseRightShift(this=word, expression=number(bits.shift)))
    return exp.paren(exp.BitwiseAnd(this=moved, expression=cast(number(bits.mask), "UBIGINT")))


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


WORDS = 2**64
"""How many words there are."""
_PROBE = 0x0123456789ABCDEF


def mixes_alike(engine: Engine) -> bool:
    """Say whether the database's hash of a word is that of the kernels: it is no promise of the database."""
    import numpy as np

    from duckanon.kernels.beside import add_words

    probe, sums = cast(number(_PROBE), "UBIGINT"), np.zeros(1, dtype=np.uint64)
    add_words(np.array([_PROBE], dtype=np.uint64), sums)
    (mixed,) = engine.row(exp.select(hash_of(probe)))
    return int(mixed) == int(sums[0])


def sum_of_rows(
    engine: Engine, relation: exp.Query, words: Sequence[exp.Expr], params: Mapping[str, Any]
) -> tuple[int, int]:
    """Return the number of rows of a relation, and the sum of their words, mixed."""
    import numpy as np

    from duckanon.kernels.beside import add_words

    query = exp.select(named(joined(words), "word")).from_(subquery(relation.copy(), "s"))
    if mixes_alike(engine):
        mixed = exp.func("COALESCE", exp.Sum(this=hash_of(exp.column("word"))), number(0))
        query = exp.select(exp.Count(this=exp.Star()), mixed).from_(subquery(query, "w"))
        rows, total = engine.row(query, named_in(query, params))
        return int(rows), int(total) % WORDS
    rows, sums = 0, np.zeros(1, dtype=np.uint64)
    for batch in batches(engine, query, params):
        rows += batch.num_rows
        add_words(batch.column(0).to_numpy(), sums)
    return rows, int(sums[0])


__all__ = [
    "WORD",
    "WORDS",
    "Bits",
    "WordLayout",
    "batches",
    "bits_for",
    "joined",
    "mixes_alike",
    "moved_up",
    "named_in",
    "secret_words",
    "sum_of_rows",
    "unpacked",
    "word_of",
    "word_of_codes",
    "words_of",
]
