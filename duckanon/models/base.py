"""The form of a privacy model: a frozen, validated object, and a statement that returns a value for each class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sqlglot import exp

from duckanon.engine.sql.axes import choose, is_null
from duckanon.engine.sql.files import SqlFile, load_of
from duckanon.engine.sql.relations import cast, col, number, param, subquery
from duckanon.errors import ParameterError
from duckanon.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]
    Floats = NDArray[np.float64]


ROUNDING = 1e-12
"""What rounding may add to a computed number; some statements in ``sql/models`` allow the same."""


@dataclass(frozen=True)
class Bound:
    """What the value of every class is compared with: it must be at least, at most or below a parameter."""

    parameter: str
    comparison: Literal["at least", "at most", "below"]


@dataclass(frozen=True)
class Extremes:
    """The values of the classes of a table: how many classes there are, how many have a value, and the two extremes.

    Of a model of the whole table both extremes are the value of the table.
    """

    classes: int
    valued: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Traits:
    """What a search may assume of a model.

    Parameters
    ----------
    monotone : bool
        A class made by merging classes that satisfy the model satisfies it.
    min_class_size : int
        No smaller class can satisfy the model.
    size_only : bool
        The model holds exactly for the classes of at least ``min_class_size``.
    absorbing : bool
        A class that satisfies the model satisfies it whatever rows are added: merging it with any other class, too,
        gives one that does. Rows in violating classes then only become fewer as values are generalized.
    whole_table : bool
        The requirement is on the table, not on each class: which classes may stay depends on the others.
    """

    monotone: bool
    min_class_size: int
    size_only: bool = False
    absorbing: bool = False
    whole_table: bool = False


@dataclass(frozen=True)
class Histograms:
    """How often each class of a candidate has each value of one sensitive column.

    Class i has ``counts[starts[i]:starts[i + 1]]`` rows of the values ``codes[starts[i]:starts[i + 1]]``, which ascend;
    codes number the values of the whole table in their order, and ``totals`` counts those there. ``ancestors[level]``
    is the node over each code on a level of the column's hierarchy, level 0 being the codes themselves.
    """

    starts: Integers
    codes: Integers
    counts: Integers
    totals: Integers
    ancestors: tuple[Integers, ...] = ()


@dataclass(frozen=True)
class Groups:
    """The classes of a candidate as arrays: what a search gives a model.

    ``sizes`` counts members (rows, or persons where there is an entity key), ``rows`` rows. ``histograms`` is there for
    models of a sensitive column, ``population`` (members of each class in the population) for models that need one;
    ``population_only`` counts the classes of the population without a row in the table.
    """

    sizes: Integers
    rows: Integers
    histograms: Histograms | None = None
    population: Integers | None = None
    population_only: int = 0


@dataclass(frozen=True)
class CheckResult:
    """What a check of one model found: true if it holds. Classes and the violating ones are counted, never named."""

    model: str
    parameters: dict[str, Any]
    holds: bool
    classes: int
    violating_classes: int
    violating_rows: int
    text: str

    def __bool__(self) -> bool:
        return self.holds

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)


class Model(ABC):
    """A privacy requirement, in most cases on every equivalence class.

    A subclass is a frozen dataclass registered under a name. ``sql/models/<name>.sql`` (for a model of another package
    ``<name>.sql`` beside its module) returns class_id, n and a value for each published class, from the five relations.
    A class satisfies the model if its value is within ``bounds``; a class without a value violates it. The check of the
    gate and the levels that ``privacy`` reports come from that statement. ``values`` is the same on arrays, for
    searches.

    A model of one sensitive column has a field ``sensitive``: its name, or None for every sensitive column there is.

    The statement of a requirement on the whole table (``Traits.whole_table``) has a fourth column, ``table_value``. If
    that is out of bounds, the classes whose own value is out of bounds violate the model.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    bounds: ClassVar[tuple[Bound, ...]]
    level_parameters: ClassVar[tuple[tuple[str, float | str], ...]] = ()
    """The parameters of the statement when the strongest value of the bounded one is asked for: a number, or the name
    of the model whose strongest value it is."""
    kernel_rule: ClassVar[tuple[str, ...]] = ("CALLBACK",)
    """The rule in ``kernels.rules`` that decides like this model, and the attributes that it takes. Without one kernels
    call ``satisfied`` for one class at a time, which is slower. Subclasses do not inherit it."""
    needs_population: ClassVar[bool] = False
    """Whether the classes are compared with those of a population table."""
    needs_hierarchy: ClassVar[bool] = False
    """Whether the sensitive column needs a hierarchy."""
    needs_order: ClassVar[bool] = False
    """Whether the order of the sensitive values counts."""
    counts_members: ClassVar[bool] = True
    """Whether the members of a class count, be they rows or persons; else only rows with sensitive values do."""
    hidden: ClassVar[bool] = False
    """Whether the requirement is on groups that cannot be seen in the release."""

    def __init_subclass__(cls) -> None:
        if "kernel_rule" not in vars(cls):
            cls.kernel_rule = ("CALLBACK",)

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What a search may assume."""

    @abstractmethod
    def describe(self, unit: str = "rows") -> str:
        """Return the requirement as a sentence; ``unit`` is what is counted, rows or persons."""

    def limit(self, parameter: str) -> float:
        """Return what values are compared with: the parameter, with an allowance for rounding unless it is whole."""
        given: float = getattr(self, parameter)
        if isinstance(given, int):
            return given
        (comparison,) = (b.comparison for b in self.bounds if b.parameter == parameter)
        return given * (1 + ROUNDING if comparison == "at most" else 1 - ROUNDING)

    def values(self, groups: Groups) -> Floats:
        """Return the value of each class as the statement does; NaN for none."""
        raise NotImplementedError(f"{type(self).__name__} must define values.")

    def satisfied(self, groups: Groups) -> Booleans:
        """Return for each class whether it may be published.

        For a requirement on the whole table these are the classes that stay when the fewest rows are left out: smallest
        classes first, and of equal ones the earlier first.
        """
        import numpy as np

        values = self.values(groups)
        holds = np.ones(len(values), dtype=np.bool_)
        for bound in self.bounds:
            limit = self.limit(bound.parameter)
            if bound.comparison == "at least":
                holds &= values >= limit
            else:
                holds &= values <= limit if bound.comparison == "at most" else values < limit
        return holds

    @classmethod
    def strongest(cls, bound: Bound, extremes: Extremes) -> float | None:
        """Return the strongest parameter that classes with these values satisfy; None where none does."""
        if extremes.low is None or extremes.high is None or extremes.valued < extremes.classes:
            return None
        if bound.comparison == "at least":
            return extremes.low
        # A strict comparison allows for rounding: the parameter must be larger than the value.
        return extremes.high * (1 + 2 * ROUNDING) if bound.comparison == "below" else extremes.high

    def rule(self) -> tuple[int, float, float]:
        """Return kind and numbers of the model's rule in ``kernels.rules``."""
        from duckanon.kernels import layout

        if self.traits.size_only:
            return layout.SIZE, float(self.traits.min_class_size), 0.0
        kind, *numbers = self.kernel_rule
        first, second, *_ = (*(float(getattr(self, name)) for name in numbers), 0.0, 0.0)
        return getattr(layout, kind), first, second

    def persisting(self, groups: Groups) -> Floats:
        """Return for each class the least share of its rows that lie in violating classes, however it is split.

        A search can then skip all finer recodings. The default, 0, skips nothing.
        """
        import numpy as np

        return np.zeros(len(groups.sizes))

    def indispensable(self, groups: Groups) -> Booleans | None:
        """Return the classes whose suppression violates the model, whatever else is published; None if there are none.

        Only models that count what is not published have such classes.
        """
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


models: Registry[Model] = Registry("model", "duckanon.models")

_LARGEST = 2**63 - 1
"""No table has more rows, and statements take no larger whole number."""


def require_int(owner: str, name: str, value: object, minimum: int) -> int:
    """Return ``value`` as an int; raise a ParameterError unless it is a whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        shown = value if isinstance(value, int | float) else type(value).__name__
        raise ParameterError(f"The {name!r} parameter of {owner} must be an int >= {minimum}. Got {shown}.")
    if int(value) > _LARGEST:
        raise ParameterError(f"The {name!r} parameter of {owner} must be an int of at most {_LARGEST}.")
    return int(value)


def require_number(
    owner: str, name: str, value: object, low: float, high: float | None = None, above: bool = False
) -> float:
    """Return ``value`` as a float; raise a ParameterError unless it is a number from ``low`` to ``high``.

    With ``above`` it must be larger than ``low``.
    """
    number = isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    fits = number and (value > low if above else value >= low) and (high is None or value <= high)  # type: ignore[operator]
    if not fits:
        shown = value if isinstance(value, int | float) else type(value).__name__
        bounds = f"{'>' if above else '>='} {low:g}" + (f" and <= {high:g}" if high is not None else "")
        raise ParameterError(f"The {name!r} parameter of {owner} must be a number {bounds}. Got {shown}.")
    return float(value)  # type: ignore[arg-type]


def require_column(owner: str, value: object) -> str | None:
    """Return the name of a sensitive column or None; raise a ParameterError for anything else."""
    if value is None or (isinstance(value, str) and value):
        return value
    raise ParameterError(f"The 'sensitive' parameter of {owner} must be the name of a column.")


def sensitive_of(models: Sequence[Model]) -> list[str]:
    """Return the sensitive columns of models, each once."""
    columns = [getattr(m, "sensitive", None) for m in models]
    return list(dict.fromkeys(name for name in columns if name is not None))


_OUT_OF_BOUNDS: dict[str, type[exp.Binary]] = {"at least": exp.LT, "at most": exp.GT, "below": exp.GTE}


def _is_nan(value: exp.Expr) -> exp.Expr:
    """Return whether a value is not a number: databases sort NaN above all numbers, so that it would be "at least"."""
    return exp.IsNan(this=cast(value, "DOUBLE"))


def statement_of(model: type[Model]) -> SqlFile:
    """Return the statement of a model: from ``sql/models``, or beside the module of another package."""
    return load_of("models", model)


def violations(model: Model, relations: Mapping[str, str] | None = None) -> tuple[exp.Query, dict[str, Any]]:
    """Return the query for the ``class_id`` and ``n`` of the classes that violate a model, and its parameters.

    ``relations`` are the tables that hold the relations; by default they have the same names.
    """
    file = statement_of(type(model))
    parameters = {name: getattr(model, name) for name in file.params}
    columns = ["value", "table_value"] if model.traits.whole_table else ["value"]
    broken = []
    for column in columns:
        out: list[exp.Expr] = [is_null(col(column)), _is_nan(col(column))]
        for bound in model.bounds:
            name = f"{bound.parameter}_limit"
            parameters[name] = model.limit(bound.parameter)
            out.append(_OUT_OF_BOUNDS[bound.comparison](this=col(column), expression=param(name)))
        broken.append(exp.or_(*out))
    values = subquery(file.bind({name: relations[name] if relations else name for name in file.reads}), "v")
    query = exp.select(col("class_id"), col("n")).from_(values)
    if not model.traits.whole_table:
        return query.where(*broken), parameters
    # If the table as a whole is out of bounds, but no class is, all classes violate the model.
    of_class, of_table = broken
    classes = exp.Window(this=exp.Sum(this=choose((of_class.copy(), number(1)), otherwise=number(0))))
    none = exp.EQ(this=classes, expression=number(0))
    return query.qualify(exp.and_(of_table, exp.or_(of_class, none))), parameters


def levels(
    engine: Engine, relations: Mapping[str, str], model: type[Model], sensitive: str | None = None
) -> dict[str, float | None] | None:
    """Return the strongest value of each bounded parameter that all classes satisfy; None where there are no classes.

    Other parameters of the statement are the ``level_parameters`` of the model.
    """
    file = statement_of(model)
    parameters: dict[str, Any] = {"sensitive": sensitive} if "sensitive" in file.params else {}
    for name, given in model.level_parameters:
        parameters[name] = given
        if isinstance(given, str):
            other = models.get(given)
            strongest = levels(engine, relations, other, sensitive) or {}
            parameters[name] = strongest.get(other.bounds[0].parameter)
    given_value = col("table_value" if "table_value" in file.returns else "value")
    value = choose((exp.not_(_is_nan(given_value)), given_value.copy()))
    values = subquery(file.bind({name: relations[name] for name in file.reads}), "v")
    counts = [exp.Count(this=exp.Star()), exp.Count(this=value)]
    query = exp.select(*counts, exp.Min(this=value.copy()), exp.Max(this=value.copy())).from_(values)
    extremes = Extremes(*engine.row(query, parameters))
    if not extremes.classes:
        return None
    return {bound.parameter: model.strongest(bound, extremes) for bound in model.bounds}
