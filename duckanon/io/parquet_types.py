"""Types as Parquet keeps them: what it would change is published as text, also where it is nested, or refused."""

from __future__ import annotations

import re
from functools import lru_cache

# Types that a Parquet file would change (HUGEINT becomes DOUBLE), or whose equality is not the equality of their text.
_AS_TEXT = (
    "HUGEINT",
    "UHUGEINT",
    "BIGNUM",
    "VARINT",
    "INTERVAL",
    "BIT",
    "TIME WITH TIME ZONE",
    "TIMETZ",
    "ENUM",
    "JSON",
    '"NULL"',
)
# Types that Parquet does not have, and of which a text would not tell everything.
_REFUSED = {"UNION", "TUPLE", "VARIANT", "TYPE", "GEOMETRY", "LAMBDA", "AGGREGATE_STATE"}
_TOKEN = re.compile(r"""\s*("(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]|\[\d*\]|[^\s"'(),\[\]]+)""")


@lru_cache(256)
def kept_type(type_name: str) -> str:
    """Return the type in which values of a type are counted and published.

    Examples
    --------
    >>> kept_type("BIGINT"), kept_type("HUGEINT"), kept_type("ENUM('a', 'b')[]")
    ('BIGINT', 'VARCHAR', 'VARCHAR[]')
    >>> kept_type('STRUCT(a HUGEINT, "b c" MAP(INTEGER, INTERVAL))')
    'STRUCT(a VARCHAR, "b c" MAP(INTEGER, VARCHAR))'
    """
    kept, _ = _walked(type_name)
    return kept


@lru_cache(256)
def lost_type(type_name: str) -> str | None:
    """Return the name of a type, at any depth, whose values no file would hold as they are; None where there is none.

    Examples
    --------
    >>> lost_type("STRUCT(a UNION(num INTEGER, str VARCHAR)[])"), lost_type("STRUCT(a INTEGER[])")
    ('UNION', None)
    """
    _, lost = _walked(type_name)
    return lost


def _walked(type_name: str) -> tuple[str, str | None]:
    tokens = [m.group(1) for m in _TOKEN.finditer(type_name)]
    walk = _Walk(tokens)
    kept = walk.type()
    # A type that is written as none that is known stays as it is: what reads it says what is wrong with it.
    return (kept, walk.lost) if walk.at == len(tokens) else (type_name, walk.lost)


class _Walk:
    """Reads the tokens of a type's name."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0
        self.lost: str | None = None

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def type(self) -> str:
        words = []
        while self._next() not in ("", "(", ")", ",") and not self._next().startswith("["):
            words.append(self._take())
        name = " ".join(words)
        base = name.upper()
        if base in _REFUSED:
            self.lost = self.lost or base
        if self._next() == "(":
            self._take()
            if base in ("STRUCT", "UNION"):
                kept = f"{name}({', '.join(self._fields())})"
            elif base in ("MAP", "TUPLE"):
                kept = f"{name}({', '.join(self._types())})"
            else:
                kept = f"{name}({self._rest()})"
        else:
            kept = name
        if base.startswith(_AS_TEXT):
            kept = "VARCHAR"
        ends = ""
        while self._next().startswith("["):
            ends += self._take()
        return kept + ends

    def _types(self) -> list[str]:
        found = [self.type()]
        while self._next() == ",":
            self._take()
            found.append(self.type())
        self._close()
        return found

    def _fields(self) -> list[str]:
        found = []
        while True:
            name = self._take() if self.at < len(self.tokens) else ""
            if self._next() in (",", ")", "", "(") or self._next().startswith("["):
                # A field without a name.
                self.lost = self.lost or "STRUCT without names"
                self.at -= 1
                found.append(self.type())
            else:
                found.append(f"{name} {self.type()}")
            if self._next() != ",":
                break
            self._take()
        self._close()
        return found

    def _rest(self) -> str:
        found = []
        while self._next() not in (")", ""):
            found.append(self._take())
        self._close()
        return " ".join(found).replace(" , ", ",")

    def _close(self) -> None:
        if self._next() == ")":
            self._take()


__all__ = ["kept_type", "lost_type"]
