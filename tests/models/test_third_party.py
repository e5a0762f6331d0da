"""Models of another package, found by their entry points, run under every algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import algorithms
from duckanon.errors import PrivacyViolation
from duckanon.models import LDiversity, models
from duckanon.testing import check_model
from tests.models.third_party.spread import Spread
from tests.models.third_party.twin_diversity import TwinDiversity

ENTRY_POINTS = """[duckanon.models]
twin_diversity = tests.models.third_party.twin_diversity:TwinDiversity
spread = tests.models.third_party.spread:Spread
table_only = tests.models.third_party.table_only:TableOnly
not_a_number = tests.models.third_party.not_a_number:NotANumber
"""
RECODING = [name for name in algorithms if not algorithms.get(name).permutes]


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install a distribution that offers the two models, and read the entry points again."""
    folder: Path = tmp_path_factory.mktemp("site")
    metadata = folder / "other_models-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-models\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(models, "_members", dict(models._members))
        patch.setattr(models, "_loaded", False)
        yield


def people(rows: int = 240) -> pa.Table:
    random = np.random.default_rng(20)
    ages = random.integers(20, 60, rows)
    regions = random.integers(0, 4, rows)
    ill = np.where(random.random(rows) < 0.6, regions, random.integers(0, 5, rows))
    return pa.table(
        {
            "age": pa.array(ages),
            "region": [f"r{region}" for region in regions],
            "ill": [None if value == 4 else f"i{value}" for value in ill],
        }
    )


def release(algorithm: str, *promised: Any, **more: Any) -> duckanon.Release:
    return duckanon.anonymize(
        people(),
        quasi_identifiers=["age", "region"],
        sensitive=["ill"],
        hierarchies={"age": {"rule": "intervals", "width": 5}},
        k=3,
        models=list(promised),
        algorithm=algorithm,
        suppression_limit=0.2,
        seed=7,
        **more,
    )


@pytest.mark.parametrize("algorithm", RECODING)
def test_a_copy_of_a_builtin_gives_the_very_same_release(algorithm: str) -> None:
    with release(algorithm, "twin_diversity(l=3)") as copied, release(algorithm, LDiversity(3)) as builtin:
        assert copied.to_arrow().equals(builtin.to_arrow())
        assert [c.holds for c in copied.checks] == [True, True]
        assert copied.checks[1].model == "twin_diversity"


@pytest.mark.parametrize("algorithm", RECODING)
def test_a_model_of_the_distribution_of_values_runs(algorithm: str) -> None:
    with release(algorithm, "spread(most=0.5)") as made:
        (check,) = (c for c in made.checks if c.model == "spread")
        assert check.holds
        rows = made.to_arrow()
    whole = people()["ill"].to_pylist()
    classes: dict[Any, list[Any]] = {}
    for age, region, ill in zip(*(rows[name].to_pylist() for name in ("age", "region", "ill")), strict=True):
        classes.setdefault((age, region), []).append(ill)
    for own in classes.values():
        assert max(own.count(v) / len(own) - whole.count(v) / len(whole) for v in own) <= 0.5 + 1e-9


@pytest.mark.parametrize("model", [TwinDiversity(2), Spread(0.3)])
def test_they_pass_the_common_checks(model: Any) -> None:
    check_model(model)


def test_what_a_table_satisfies_is_told_of_them_too() -> None:
    rows = duckanon.privacy(people(), quasi_identifiers=["region"], sensitive=["ill"]).to_pylist()
    values = {row["model"]: row["value"] for row in rows}
    assert values["twin_diversity"] == values["l_diversity"]
    assert 0 < values["spread"] < 1


def test_an_error_in_a_model_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, groups: Any) -> Any:
        raise ZeroDivisionError("a mistake in the model")

    monkeypatch.setattr(TwinDiversity, "values", broken)
    with pytest.raises(ZeroDivisionError, match="a mistake in the model"):
        release("mondrian", "twin_diversity(l=2)")


def test_a_value_that_is_not_a_number_violates_the_model() -> None:
    # The search trusts the arrays of the model, the gate its statement.
    with pytest.raises(PrivacyViolation, match="The gate refused the release"):
        release("datafly", "not_a_number(least=1)")


def test_a_table_out_of_bounds_violates_the_model_even_if_no_class_does() -> None:
    release("datafly", "table_only(most=240)").close()
    with pytest.raises(PrivacyViolation, match="The gate refused the release"):
        release("datafly", "table_only(most=1)")


def test_no_parameter_holds_where_a_value_is_not_a_number() -> None:
    table = duckanon.privacy(people(), quasi_identifiers=["region"], sensitive=["ill"]).to_pylist()
    assert [row["value"] for row in table if row["model"] == "not_a_number"] == [None]
