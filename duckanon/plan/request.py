"""What is asked for: the parameters of ``anonymize``, once for Python, SQL, job files and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.models.base import Model

Kind = Literal["text", "texts", "models", "integer", "number", "boolean", "mapping", "text or mapping"]
"""What a value of a parameter is in SQL and in job files."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request: what its values are, in general and in words."""

    name: str
    kind: Kind
    about: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()


def _about(kind: Kind, about: str, *choices: str) -> dict[str, Any]:
    return {"kind": kind, "about": about, "choices": choices}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for, as it was given: nothing is checked or looked up yet, see ``Plan.resolve``.

    ``duckanon.anonymize`` documents the parameters at length.

    Examples
    --------
    >>> Request(data="visits.parquet", quasi_identifiers=["age", "zip"], k=5).suppression_limit
    0.0
    """

    data: object = field(metadata=_about("text", "The table to anonymize."))
    quasi_identifiers: Sequence[str] = field(
        metadata=_about("texts", "Columns that could link a row to a person. They are generalized.")
    )
    sensitive: Sequence[str] = field(
        default=(), metadata=_about("texts", "Columns that must not be linked to a person. Published as they are.")
    )
    identifiers: Sequence[str] = field(
        default=(), metadata=_about("texts", "Columns that name a person. Never published.")
    )
    insensitive: Sequence[str] = field(
        default=(), metadata=_about("texts", "Columns that say nothing about a person. Published as they are.")
    )
    unlisted: str = field(
        default="drop", metadata=_about("text", "What happens to columns without a role.", "drop", "error")
    )
    entity_key: str | None = field(
        default=None, metadata=_about("text", "The column that identifies persons: k counts them instead of rows.")
    )
    hierarchies: Mapping[str, Any] | str | None = field(
        default=None,
        metadata=_about(
            "text or mapping",
            "How each quasi-identifier is generalized; 'auto' takes the ready-made hierarchy that fits.",
        ),
    )
    k: int | None = field(
        default=None, metadata=_about("integer", "k-anonymity: the smallest size of an equivalence class.")
    )
    l: int | None = field(  # noqa: E741 - the field's own name
        default=None, metadata=_about("integer", "l-diversity: distinct sensitive values in each class, at least.")
    )
    t: float | None = field(
        default=None, metadata=_about("number", "t-closeness: distance of a class from the whole table, at most.")
    )
    models: Sequence[Model | str | Mapping[str, Any]] = field(
        default=(), metadata=_about("models", "Further privacy models, such as 'entropy_l_diversity(l=2)'.")
    )
    population: object = field(
        default=None, metadata=_about("text", "The people from whom the data were drawn, for models that need them.")
    )
    algorithm: str | Algorithm | None = field(
        default=None, metadata=_about("text", "How the recoding is found. By default: mondrian, where it can be used.")
    )
    levels: Mapping[str, int] | None = field(
        default=None, metadata=_about("mapping", "The level of each quasi-identifier: nothing is searched.")
    )
    min_levels: Mapping[str, int] | None = field(
        default=None, metadata=_about("mapping", "The lowest level of a quasi-identifier to try.")
    )
    max_levels: Mapping[str, int] | None = field(
        default=None, metadata=_about("mapping", "The highest level of a quasi-identifier to try.")
    )
    weights: Mapping[str, float] | None = field(
        default=None, metadata=_about("mapping", "How much a quasi-identifier counts in metrics. Default 1.")
    )
    iterative: bool = field(
        default=False, metadata=_about("boolean", "Recode suppressed rows again, at levels of their own.")
    )
    bounds: str = field(
        default="grid",
        metadata=_about("text", "Where the published bounds of regions come from.", "grid", "cut", "tight"),
    )
    output: str | Mapping[str, str] = field(
        default="interval",
        metadata=_about(
            "text or mapping",
            "What is written of a region, for all quasi-identifiers or for each.",
            "interval",
            "bounds",
            "struct",
            "midpoint",
            "mean",
            "median",
            "geometric_mean",
            "mode",
            "medoid",
            "lca",
            "set",
            "proportional",
        ),
    )
    within: Sequence[str] = field(
        default=(),
        metadata=_about("texts", "Quasi-identifiers published as they are: each value is anonymized by itself."),
    )
    suppression_limit: float = field(
        default=0.0, metadata=_about("number", "The share of rows that may be left out, between 0 and 1.")
    )
    on_unknown: str = field(
        default="error", metadata=_about("text", "What to do with values that a hierarchy lacks.", "error", "top")
    )
    seed: int | None = field(
        default=None, metadata=_about("integer", "For tests: fixes everything random. Not for publication.")
    )


def _parameters() -> dict[str, Parameter]:
    parameters = {}
    for one in fields(Request):
        required = one.default is MISSING
        default = None if required else one.default
        parameters[one.name] = Parameter(one.name, default=default, required=required, **one.metadata)
    return parameters


PARAMETERS = _parameters()
"""The parameters by name, in the order of ``anonymize``."""


__all__ = ["PARAMETERS", "Kind", "Parameter", "Request"]
