"""What a table satisfies: the strongest parameter of every model, beside the results for the models asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duckanon.assess.assessed_table import AssessedTable, assessed
from duckanon.engine.sql.files import load
from duckanon.models.base import CheckResult, Model, levels, statement_of
from duckanon.models.base import models as registry
from duckanon.plan.plan import Requirements, is_ordered, require_visible
from duckanon.release.gate import check_models
from duckanon.report.assessments import privacy_report
from duckanon.report.results import TableResult

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.report.model import Report

_FIRST = "k_anonymity"


class Privacy(TableResult):
    """What a table satisfies, a row for each model and sensitive column; see ``duckanon.privacy``."""

    @property
    def k(self) -> int:
        """The size of the smallest class: the table is k-anonymous for all k up to here."""
        return int(self._values(_FIRST)[0])

    @property
    def l(self) -> int | None:  # noqa: E743 - the field's own name
        """The distinct l-diversity of the sensitive column that has least; None without one."""
        return min((int(v) for v in self._values("l_diversity")), default=None)

    @property
    def t(self) -> float | None:
        """The t-closeness of the sensitive column that is least close; None without one.

        As in ``anonymize(t=...)`` the distance is ordered for numbers, dates and times, and equal for everything else.
        """
        ordered = {r["attribute"]: r["value"] for r in self if r["model"] == "ordered_t_closeness"}
        equal = {r["attribute"]: r["value"] for r in self if r["model"] == "t_closeness"}
        return max((v for v in {**equal, **ordered}.values() if v is not None), default=None)

    def _values(self, model: str) -> list[float]:
        return [r["value"] for r in self if r["model"] == model and r["value"] is not None]

    def _shown(self) -> Report:
        return privacy_report(self.to_pylist())


def privacy(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741 - the field's own name
    t: float | None = None,
    models: Sequence[Model | str | Mapping[str, Any]] = (),
    connection: Any = None,
) -> Privacy:
    """Return which models a release or any other table satisfies, one row for each model and sensitive column.

    Parameters
    ----------
    data : str, Path, Source, Arrow object, data frame or Release
    quasi_identifiers : sequence of str
        A release knows its own.
    sensitive : sequence of str
    entity_key : str, optional
        The column that identifies persons: members of a class are then persons instead of rows.
    hierarchies : mapping, optional
        Hierarchies of sensitive columns, for ``hierarchical_t_closeness``.
    population : table, optional
        The people from whom the data were drawn, with the quasi-identifiers written as in ``data``, for ``k_map`` and
        ``delta_presence``. One row is one member.
    k, l, t, models : optional
        Requirements as ``anonymize`` takes them; the result says of each whether it holds.
    connection : duckdb.DuckDBPyConnection, optional

    Returns
    -------
    Privacy
        A table (``to_arrow``, ``to_pandas``, ``to_polars``) that shows itself, with ``k``, ``l`` and ``t``. Its
        columns: ``model``, ``attribute`` (the sensitive column, or NULL), ``parameter`` and its ``value`` (a
        DOUBLE: the largest k that holds, the smallest t, ...; NULL where none does), ``unit`` (rows or
        persons), ``classes``, ``smallest`` and ``largest`` class, ``singletons`` (how many members are alone in
        their class). For models that were asked for, and else NULL: ``threshold`` (of that parameter), ``text``
        (the requirement), ``holds``, ``violating_classes`` and ``violating_rows``.

    Notes
    -----
    Of models with two parameters one is reported: of alpha_k_anonymity alpha and of p_sensitive_k_anonymity p, at the k
    of k_anonymity; of recursive_c_l_diversity c, at the l of l_diversity; delta is to base 2. The table satisfies the
    model with the reported value: where the comparison is strict (c and delta) it is a little larger than the number
    that has to be exceeded, and where a parameter must be above 0 it is at least 1e-12. Frequencies in the whole table
    are those of ``data``, and for a release those of the table that it was made from.

    Every registered model is reported, those of other packages too. A model that reads sensitive values, a hierarchy or
    a population is left out where there is none.

    References
    ----------
    L. Sweeney, k-anonymity: a model for protecting privacy, 2002; A. Machanavajjhala et al., l-diversity: privacy
    beyond k-anonymity, 2006; N. Li et al., t-closeness: privacy beyond k-anonymity and l-diversity, 2007; J.
    Sainz-Pardo Diaz and A. Lopez Garcia, pyCANON: a Python library to check the level of anonymity of a dataset, 2022.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 30, 40, 40], "ill": ["flu", "flu", "gout", "flu", "gout"]})
    >>> found = duckanon.privacy(people, quasi_identifiers=["age"], sensitive=["ill"], l=3)
    >>> found.k, found.l, round(found.t, 3)
    (2, 2, 0.1)
    >>> rows = found.to_pylist()
    >>> [(r["parameter"], r["value"], r["holds"]) for r in rows if r["model"] in ("k_anonymity", "l_diversity")]
    [('k', 2.0, None), ('l', 2.0, False)]
    """
    asked = any(p is not None for p in (k, l, t)) or models != ()
    requirements = Requirements.of(k=k, l=l, t=t, models=models) if asked else Requirements(())
    require_visible(requirements.models)
    if population is None:
        requirements.require_population(False)
    with assessed(
        data,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        entity_key=entity_key,
        connection=connection,
        hierarchies=hierarchies,
        population=population,
    ) as subject:
        bound = requirements.bound(subject.roles, subject.hierarchies)
        kinds = [kind for kind in map(registry.get, registry) if not kind.hidden]
        relations = subject.relations({r for kind in kinds for r in statement_of(kind).reads}, shared=True)
        satisfied = [row for kind in kinds for row in _levels(subject, relations, kind)]
        checks = check_models(subject.engine, relations, bound, subject.unit)
        row = subject.engine.row(load("risk/sizes").bind({"classes": relations["classes"]}))
        sizes = dict(zip(("classes", "members", "smallest", "largest", "singletons"), row, strict=True))
        subject.drop(relations)
    del sizes["members"]
    rows = [{**level, "unit": subject.unit, **sizes} for level in _joined(satisfied, checks, list(subject.sensitive))]
    return Privacy(_table(rows))


def _levels(
    subject: AssessedTable, relations: Mapping[str, str], model: type[Model]
) -> list[tuple[str, str | None, str, float | None]]:
    """Return model, attribute, parameter and value, for each sensitive column that the model applies to."""
    file = statement_of(model)
    given = {"sensitive", *(name for name, _ in model.level_parameters)}
    if not set(file.reads) <= set(relations) or not set(file.params) <= given:
        return []
    if "sensitive" not in file.params:
        strongest = levels(subject.engine, relations, model) or dict.fromkeys(b.parameter for b in model.bounds)
        return [(model.name, None, *level) for level in strongest.items()]
    rows: list[tuple[str, str | None, str, float | None]] = []
    for column in subject.sensitive:
        # The order of texts is that of the alphabet: their ranks say nothing.
        unordered = model.needs_order and not is_ordered(subject.type_of(column))
        if not unordered and not (model.needs_hierarchy and column not in subject.hierarchies):
            strongest = levels(subject.engine, relations, model, column) or {}
            rows += [(model.name, column, *level) for level in strongest.items()]
    return rows


def _joined(
    satisfied: Iterable[tuple[str, str | None, str, float | None]],
    checks: Sequence[CheckResult],
    sensitive: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the levels with the checks of the same model and column beside them, k-anonymity first."""
    rows: list[dict[str, Any]] = []
    left = list(checks)
    for model, attribute, parameter, value in satisfied:
        row = {"model": model, "attribute": attribute, "parameter": parameter, "value": value}
        same = [c for c in checks if (c.model, c.parameters.get("sensitive")) == (model, attribute)]
        left = [c for c in left if c not in same]
        rows += [{**row, **_checked(c, parameter)} for c in same] or [row]
    for check in left:
        # A model whose distance is not shown for such a column.
        parameter = next(iter(check.parameters))
        row = {"model": check.model, "attribute": check.parameters.get("sensitive"), "parameter": parameter}
        rows.append({**row, **_checked(check, parameter)})
    place = {name: i for i, name in enumerate((None, *sensitive))}
    return sorted(rows, key=lambda r: (r["model"] != _FIRST, r["model"], place[r["attribute"]]))


def _checked(check: CheckResult, parameter: str) -> dict[str, Any]:
    # Levels of delta are to base 2, whatever was asked for.
    factor = math.log2(check.parameters["base"]) if parameter == "delta" and "base" in check.parameters else 1
    return {
        "threshold": float(factor * check.parameters[parameter]),
        "text": check.text,
        "holds": check.holds,
        "violating_classes": check.violating_classes,
        "violating_rows": check.violating_rows,
    }


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    schema = pa.schema(
        [
            *((name, text) for name in ("model", "attribute", "parameter")),
            ("value", real),
            ("unit", text),
            *((name, whole) for name in ("classes", "smallest", "largest", "singletons")),
            ("threshold", real),
            ("text", text),
            ("holds", pa.bool_()),
            *((name, whole) for name in ("violating_classes", "violating_rows")),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)
