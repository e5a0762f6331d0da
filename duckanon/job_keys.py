"""Every table and key that a job file may have, and what each must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from duckanon.errors import JobError, did_you_mean

Check = Callable[[Any], str | None]
"""Returns what a value must be, or None if it is that."""

REPORTS = ("json", "md")
_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B|%)", re.IGNORECASE)


def _must(be: str, test: Callable[[Any], bool]) -> Check:
    return lambda value: None if test(value) else be


def is_text(value: Any) -> bool:
    """Say whether a value is a text with something in it."""
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(is_text(v) for v in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(*allowed: str) -> Check:
    return _must(" or ".join(repr(a) for a in allowed), lambda value: value in allowed)


_text = _must("a text", is_text)
_texts = _must("a list of texts", _are_texts)
_paths = _must("a path or a list of paths", lambda v: is_text(v) or (_are_texts(v) and len(v) > 0))
_flag = _must("true or false", lambda v: isinstance(v, bool))
_number = _must("a number", _is_number)
_whole = _must("a whole number of at least 1", lambda v: _is_number(v) and isinstance(v, int) and v >= 1)
_memory = _must("a size such as '2GB'", lambda v: isinstance(v, str) and bool(_MEMORY.fullmatch(v.strip())))
RULE = _must("a name, a file or a table with a rule", lambda v: is_text(v) or isinstance(v, dict))
_models = _must(
    "a list of texts such as 'l_diversity(l=3)' or tables such as {model = 'l_diversity', l = 3}",
    lambda v: isinstance(v, list) and all(is_text(m) or isinstance(m, dict) for m in v),
)
_table = _must("a table of quasi-identifiers and numbers", lambda v: isinstance(v, dict))
_form = _must(
    "a text such as 'bounds' or a table such as {age = 'bounds'}",
    lambda v: is_text(v) or (isinstance(v, dict) and all(is_text(kind) for kind in v.values())),
)
_reports = _must("a list of 'json' and 'md'", lambda v: _are_texts(v) and set(v) <= set(REPORTS))

_KEYS: dict[str, dict[str, Check]] = {
    "source": {"path": _paths, "format": _one_of("parquet", "csv", "json"), "hive": _flag}
    | {"database": _text, "table": _text, "query": _text},
    "roles": {"quasi_identifiers": _texts, "sensitive": _texts, "insensitive": _texts, "identifiers": _texts}
    | {"within": _texts, "entity_key": _text, "unlisted": _one_of("error", "drop")},
    "hierarchies": {},
    "privacy": {"k": _whole, "l": _whole, "t": _number, "models": _models, "population": _paths}
    | {"suppression_limit": _number, "on_unknown": _one_of("error", "top"), "bounds": _one_of("grid", "cut", "tight")},
    "algorithm": {},
    "steering": {"levels": _table, "min_levels": _table, "max_levels": _table, "weights": _table, "iterative": _flag},
    "output": {"path": _text, "form": _form, "report": _reports, "overwrite": _flag},
    "limits": {"memory": _memory, "threads": _whole, "temp_directory": _text},
}
"""Every table and key of a job file. The keys of hierarchies and algorithm depend on other tables."""


class Tables:
    """The tables of a job file, each handed out only after its keys and types were checked."""

    def __init__(self, content: dict[str, Any]) -> None:
        for name, table in content.items():
            if name not in _KEYS:
                raise JobError(f"unknown table [{name}].{did_you_mean(name, _KEYS)} Tables: {', '.join(_KEYS)}.")
            if not isinstance(table, dict):
                raise JobError(f"[{name}] must be a table. Got {kind_of(table)}.")
        self._content = content

    def get(self, name: str, keys: Mapping[str, Check] | None = None) -> dict[str, Any]:
        """Return a table whose keys are all known and of the right type."""
        table: dict[str, Any] = self._content.get(name, {})
        known = _KEYS[name] if keys is None else keys
        for key, value in table.items():
            if key not in known:
                raise JobError(f"[{name}] has no key {key!r}.{did_you_mean(key, known)} Keys: {', '.join(known)}.")
            wanted = known[key](value)
            if wanted is not None:
                raise JobError(f"[{name}] {key} must be {wanted}. Got {kind_of(value)}.")
        return table

    def raw(self, name: str) -> dict[str, Any]:
        """Return a table as it stands."""
        return dict(self._content.get(name, {}))


def kind_of(value: Any) -> str:
    """Return a value for a message; what a table or list holds is not shown."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return repr(value)
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


__all__ = ["REPORTS", "RULE", "Check", "Tables", "is_text", "kind_of"]
