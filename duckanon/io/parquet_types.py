"""Types in Parquet: what it would change is published as text, also if nested, or refused."""

from __future__ import annotations

import re
from functools import lru_cache

# Types that a Parquet file would change (HUGEINT becomes DOUBLE), or whose values can be equal with different texts.
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
# Types that Parquet does not have, and whose text loses information.
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
    published, _ = _walked(type_name)
    return published


@lru_cache(256)
def lost_type(type_name: str) -> str | None:
    """Return the name of a type, at any depth, whose values cannot be stored in a file; None if there is none.

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
    published = walk.type()
    # A type that cannot be parsed stays as it is: the database will report what is wrong with it.
    return (published, walk.lost) if walk.at == len(tokens) else (type_name, walk.lost)


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
                published = f"{name}({', '.join(self._fields())})"
            elif base in ("MAP", "TUPLE"):
                published = f"{name}({', '.join(self._types())})"
            else:
                published = f"{name}({self._rest()})"
        else:
            published = name
        if base.startswith(_AS_TEXT):
            published = "VARCHAR"
        ends = ""
        while self._next().startswith("["):
            ends += self._take()
        return published + ends

    def _types(self) -> list[str]:
        types = [self.type()]
        while self._next() == ",":
            self._take()
            types.append(self.type())
        self._close()
        return types

    def _fields(self) -> list[str]:
        fields = []
        while True:
            name = self._take() if self.at < len(self.tokens) else ""
            if self._next() in (",", ")", "", "(") or self._next().startswith("["):
                # A field without a name.
                self.lost = self.lost or "STRUCT without names"
                self.at -= 1
                fields.append(self.type())
            else:
                fields.append(f"{name} {self.type()}")
            if self._next() != ",":
                break
            self._take()
        self._close()
        return fields

    def _rest(self) -> str:
        words = []
        while self._next() not in (")", ""):
            words.append(self._take())
        self._close()
        return " ".join(words).replace(" , ", ",")

    def _close(self) -> None:
        if self._next() == ")":
            self._take()


__all__ = ["kept_type", "lost_type"]
