"""Common checks of privacy models."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from duckanon.engine.base import open_engine
from duckanon.models.base import Groups, Histograms, Model, Traits, models, violations
from duckanon.release.gate import check_models
from duckanon.testing.common import make_relations, require, require_documented, require_frozen, require_statement

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.models.base import Booleans, Integers

_SAMPLES: dict[Any, Any] = {"l": 2, "int": 2, int: 2, "float": 0.5, float: 0.5}
_COLUMN = "sensitive"
_STATEMENTS, _SEARCHES = 4, 40
"""How many random tables the statement, and the arrays alone, are tried on."""


def check_model(model: Model | type[Model]) -> None:
    """Raise an AssertionError unless a model does what every model must do.

    Parameters
    ----------
    model : Model or subclass
        Of a class, an instance is made with 2 for int and l and 0.5 for float parameters; pass an instance where that
        is not allowed.

    Notes
    -----
    On small random tables the statement and ``satisfied`` must name the same classes, and never a suppressed one. The
    traits must hold: what a search assumes is tested on merged classes.

    Examples
    --------
    >>> from duckanon.models import KAnonymity
    >>> check_model(KAnonymity)
    """
    instance = _instance(model) if isinstance(model, type) else model
    kind = type(instance)
    require(isinstance(instance, Model), f"{kind.__name__} must derive from duckanon.models.Model.")
    # A model of another package has its name from its entry point.
    name = instance.name if list(models) and hasattr(instance, "name") else ""
    require(name, f"{kind.__name__} is not registered, nor an entry point of duckanon.models.")
    require(models.get(name) is kind, f"{kind.__name__} is not the model registered as {name!r}.")
    require_documented(kind)
    require_frozen(instance)
    _check_words(instance)
    _check_traits(instance)
    file = require_statement("models", kind)
    columns = ("class_id", "n", "value", *(["table_value"] if instance.traits.whole_table else []))
    require(file.returns == columns, f"sql/models/{instance.name}.sql must return {', '.join(columns)}.")
    bounded = {b.parameter for b in instance.bounds}
    require(bounded and bounded <= set(instance.parameters()), f"{kind.__name__}.bounds must name parameters.")
    unknown = set(file.params) - set(instance.parameters())
    require(not unknown, f"sql/models/{instance.name}.sql has parameters that the model lacks: {sorted(unknown)}.")
    bound = replace(instance, sensitive=_COLUMN) if _of_column(instance) else instance  # type: ignore[type-var]
    for seed in range(_SEARCHES):
        _check_searches(bound, seed)
    engine = open_engine()
    try:
        _check_statement(engine, bound)
    finally:
        engine.close()


def _instance(kind: type[Model]) -> Model:
    require(issubclass(kind, Model), f"{kind.__name__} must derive from duckanon.models.Model.")
    needed = [f for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]  # type: ignore[arg-type]
    samples = {f.name: _SAMPLES.get(f.name, _SAMPLES.get(f.type)) for f in needed}
    unknown = [name for name, value in samples.items() if value is None]
    require(not unknown, f"Pass an instance of {kind.__name__}: no sample is known for {', '.join(unknown)}.")
    return kind(**samples)


def _of_column(model: Model) -> bool:
    return "sensitive" in {f.name for f in fields(model)}  # type: ignore[arg-type]


def _check_words(model: Model) -> None:
    for unit in ("rows", "persons"):
        sentence = model.describe(unit)
        name = type(model).__name__
        require(isinstance(sentence, str) and sentence, f"{name}.describe({unit!r}) must be a sentence.")
        require("\n" not in sentence, f"{name}.describe({unit!r}) must be one line.")
        other = "persons" if unit == "rows" else "rows"
        require(other not in sentence, f"{name}.describe({unit!r}) speaks of {other}.")


def _check_traits(model: Model) -> None:
    traits, name = model.traits, type(model).__name__
    require(isinstance(traits, Traits), f"{name}.traits must be a Traits.")
    require(
        isinstance(traits.min_class_size, int) and traits.min_class_size >= 1,
        f"{name}.traits.min_class_size must be an int >= 1.",
    )
    require(
        traits.monotone or not traits.size_only,
        f"{name} holds for every large enough class, so merging keeps it: size_only needs monotone.",
    )


@dataclass(frozen=True)
class _Table:
    """Classes at random: how often each has each of a few values (one row per class), and their population.

    ``merged`` are the first and second class as one, the third and fourth, and so on; the whole table has none of them.
    """

    counts: Integers
    sizes: Integers
    population: Integers
    pairs: int

    @classmethod
    def random(cls, seed: int) -> _Table:
        import numpy as np

        random = np.random.default_rng(seed)
        values, pairs = int(random.integers(1, 6)), int(random.integers(1, 12))
        shape = (2 * pairs, values)
        counts = random.integers(0, 4, shape) * random.integers(0, 2, shape)
        counts[np.arange(2 * pairs), random.integers(0, values, 2 * pairs)] += 1
        # Half of the tables count rows, the others persons, of whom there are no more than rows.
        rows = counts.sum(axis=1)
        sizes = rows if seed % 2 else random.integers(1, rows + 1)
        population = sizes * random.integers(1, 4, 2 * pairs) + random.integers(0, 2, 2 * pairs)
        return cls(counts, sizes, population, pairs)

    @property
    def codes(self) -> Integers:
        """The values that occur: the domain has no others."""
        import numpy as np

        return np.flatnonzero(self.counts.sum(axis=0))

    def groups(self, merged: bool = False) -> Groups:
        """Return the classes as arrays, behind them the merged ones where asked for."""
        import numpy as np

        def stacked(array: Integers) -> Integers:
            return np.concatenate([array, array[0::2] + array[1::2]]) if merged else array

        present = self.counts[:, self.codes]
        counts = stacked(present)
        owner, code = np.nonzero(counts)
        nodes = np.arange(len(self.codes))
        return Groups(
            sizes=stacked(self.sizes),
            rows=counts.sum(axis=1),
            histograms=Histograms(
                starts=np.searchsorted(owner, np.arange(len(counts) + 1)),
                codes=code,
                counts=counts[owner, code],
                totals=present.sum(axis=0),
                ancestors=(nodes, nodes // 2, np.zeros_like(nodes)),
            ),
            population=stacked(self.population),
        )

    def relations(self, suppressed: Booleans) -> dict[str, list[tuple[Any, ...]]]:
        """Return the same as rows of the relations that statements read; the last value is NULL."""
        names = [None if i == len(self.codes) - 1 else f"v{i}" for i in range(len(self.codes))]
        h = self.groups().histograms
        assert h is not None
        entries = [(i, int(e)) for i in range(2 * self.pairs) for e in range(h.starts[i], h.starts[i + 1])]
        return {
            "classes": [(i, int(n), bool(suppressed[i])) for i, n in enumerate(self.sizes)],
            "permuted_blocks": [(i, 0, int(n), bool(suppressed[i]), 0, False, 1 / n) for i, n in enumerate(self.sizes)],
            "class_values": [(i, _COLUMN, names[h.codes[e]], int(h.counts[e])) for i, e in entries],
            "domain_values": [(_COLUMN, names[i], i, int(n)) for i, n in enumerate(h.totals)],
            "domain_nodes": [
                (_COLUMN, name, level, int(over[i]))
                for level, over in enumerate(h.ancestors)
                for i, name in enumerate(names)
            ],
            "population_classes": [(i, int(n)) for i, n in enumerate(self.population)],
        }


def _check_searches(model: Model, seed: int) -> None:
    """Check what searches read: ``satisfied``, and what the traits say of it."""
    table = _Table.random(seed)
    name, traits, groups = type(model).__name__, model.traits, table.groups(merged=True)
    if traits.whole_table:
        _check_whole_table(model, table)
        return
    satisfied = model.satisfied(groups)
    require(
        str(satisfied.dtype) == "bool" and satisfied.shape == groups.sizes.shape,
        f"{name}.satisfied must return a bool for each class.",
    )
    first, second, merged = (
        satisfied[: 2 * table.pairs : 2],
        satisfied[1 : 2 * table.pairs : 2],
        satisfied[2 * table.pairs :],
    )
    if traits.monotone:
        require((merged | ~(first & second)).all(), f"{name} is not monotone: it broke when two good classes merged.")
    if traits.absorbing:
        require(
            (merged | ~(first | second)).all(), f"{name} is not absorbing: a good class broke when rows were added."
        )
    require(
        (groups.rows[satisfied] >= traits.min_class_size).all(), f"{name} accepts a class smaller than min_class_size."
    )
    if traits.size_only:
        require(
            (satisfied == (groups.sizes >= traits.min_class_size)).all(),
            f"{name} is not size_only: it does not hold exactly for the classes of at least min_class_size.",
        )


def _check_whole_table(model: Model, table: _Table) -> None:
    """Check that a requirement on the table leaves out small classes first, and no more rows once classes merge."""
    import numpy as np

    name, groups = type(model).__name__, table.groups()
    stays = model.satisfied(groups)
    out = groups.sizes[~stays]
    require(
        not len(out) or not stays.any() or out.max() <= groups.sizes[stays].min(),
        f"{name}.satisfied leaves out a class that is larger than one that stays.",
    )
    rest = Groups(groups.sizes[stays], groups.rows[stays])
    require(model.satisfied(rest).all(), f"{name} is broken by the classes that {name}.satisfied lets stay.")
    if model.traits.monotone:
        joined = np.concatenate([groups.sizes[:1] + groups.sizes[1:2], groups.sizes[2:]])
        after = joined[~model.satisfied(Groups(joined, joined))]
        require(after.sum() <= out.sum(), f"{name} is not monotone: more must be left out once two classes merged.")


def _check_statement(engine: Engine, model: Model) -> None:
    """Check that the statement names the classes that ``satisfied`` does not let stay."""
    import numpy as np

    name = type(model).__name__
    require(_violating(engine, model, {}) == set(), f"{name} is violated by a table without classes.")
    for seed in range(_STATEMENTS):
        table = _Table.random(seed)
        count = 2 * table.pairs
        everything = _violating(engine, model, table.relations(np.ones(count, dtype=np.bool_)))
        require(not everything, f"{name} counts a suppressed class, which is not published.")
        for out in (np.zeros(count, dtype=np.bool_), np.arange(count) % 3 == 1):
            violating = _violating(engine, model, table.relations(out))
            require(
                not violating & set(np.flatnonzero(out)), f"{name} counts a suppressed class, which is not published."
            )
            wanted = set(np.flatnonzero(~out)[~model.satisfied(_published(table.groups(), ~out))])
            same = bool(violating) == bool(wanted) if model.traits.whole_table else violating == wanted
            require(same, f"sql/models/{model.name}.sql and {name}.satisfied do not name the same classes.")


def _published(groups: Groups, published: Booleans) -> Groups:
    """Return the classes that stay; the whole table stays the same."""
    import numpy as np

    h = groups.histograms
    assert h is not None
    owner = np.repeat(np.arange(len(published)), np.diff(h.starts))
    starts = np.concatenate([[0], np.cumsum(np.diff(h.starts)[published])])
    histograms = replace(h, starts=starts, codes=h.codes[published[owner]], counts=h.counts[published[owner]])
    population = groups.population[published] if groups.population is not None else None
    return Groups(groups.sizes[published], groups.rows[published], histograms, population)


def _violating(engine: Engine, model: Model, rows: dict[str, list[tuple[Any, ...]]]) -> set[int]:
    made = make_relations(engine, rows)
    relations = made.tables(*made.made())
    (result,) = check_models(engine, relations, [model], "rows")
    violating = list(engine.rows(*violations(model, relations)))
    for relation in relations.values():
        engine.unregister(relation)
    name = type(model).__name__
    require(result.holds == (not violating), f"The check of {name} contradicts its statement.")
    require(result.violating_classes == len({row[0] for row in violating}), f"{name} names a class twice.")
    return {int(row[0]) for row in violating}
