"""Names for models, algorithms and metrics, and the common checks of everything registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from duckanon.algorithms import Datafly, algorithms
from duckanon.errors import ParameterError
from duckanon.metrics import Metric, metrics
from duckanon.models import KAnonymity, Model, Traits, models
from duckanon.models.base import Groups
from duckanon.registry import Registry
from duckanon.testing import check_algorithm, check_metric, check_model


@pytest.mark.parametrize("name", list(models))
@pytest.mark.thinned(2)
def test_every_model_keeps_the_rules(name: str) -> None:
    check_model(models.get(name))


@pytest.mark.parametrize("name", list(metrics))
@pytest.mark.thinned(2)
def test_every_metric_keeps_the_rules(name: str) -> None:
    check_metric(metrics.get(name))


# One of each kind; the others have the same doors, and are run on demand. The example of check_algorithm has Datafly.
_EACH = ("mondrian", "optimal")


@pytest.mark.parametrize("name", [n if n in _EACH else pytest.param(n, marks=pytest.mark.slow) for n in algorithms])
def test_every_algorithm_keeps_the_rules(name: str) -> None:
    check_algorithm(algorithms.get(name))


@pytest.mark.slow
def test_datafly_keeps_the_rules_with_the_papers_stop() -> None:
    check_algorithm(Datafly(stop="k"))


def test_a_registry_is_sorted_and_finds_its_members_by_name() -> None:
    assert "k_anonymity" in models
    assert "nothing" not in models
    assert list(models) == sorted(models)
    assert models.get("k_anonymity") is KAnonymity
    assert KAnonymity.name == "k_anonymity"


def test_an_unknown_name_gets_a_hint_and_the_list() -> None:
    with pytest.raises(ParameterError, match=r"Unknown model 'k_anonimity'\. Did you mean 'k_anonymity'\? Known: .*k_"):
        models.get("k_anonimity")


def test_a_name_is_registered_once() -> None:
    registry: Registry[object] = Registry("thing", "duckanon.models")
    registry.register("x")(type("First", (), {}))
    with pytest.raises(ParameterError, match="registered twice"):
        registry.register("x")(type("Second", (), {}))


def test_registering_the_same_class_again_is_fine() -> None:
    registry: Registry[object] = Registry("thing", "duckanon.models")
    first = type("First", (), {})
    assert registry.register("x")(first) is registry.register("x")(first)


@dataclass(frozen=True)
class Wrong(Model):
    """A model that is not what it says."""

    k: int
    name: ClassVar[str] = "k_anonymity"
    summary: ClassVar[str] = "wrong"

    @property
    def traits(self) -> Traits:
        return Traits(monotone=False, min_class_size=self.k, size_only=True)

    def describe(self, unit: str = "rows") -> str:
        return "rows"

    def satisfied(self, groups: Groups) -> Any:
        return groups.sizes >= self.k


def test_the_check_of_models_finds_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="not the model registered"):
        check_model(Wrong(2))
    monkeypatch.setitem(models._members, "k_anonymity", Wrong)
    with pytest.raises(AssertionError, match="cites no reference"):
        check_model(Wrong(2))
    monkeypatch.setattr(Wrong, "__doc__", "A model.\n\nReferences\n----------\nNobody, 2000.\n")
    with pytest.raises(AssertionError, match="speaks of rows"):
        check_model(Wrong(2))
    monkeypatch.setattr(Wrong, "describe", lambda self, unit="rows": unit)
    with pytest.raises(AssertionError, match="size_only needs monotone"):
        check_model(Wrong(2))


def test_the_check_of_metrics_finds_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loss: type[Metric] = metrics.get("loss")
    monkeypatch.setattr(loss, "direction", "higher")
    with pytest.raises(AssertionError, match="untouched"):
        check_metric(loss)
    monkeypatch.setattr(loss, "direction", "lower")
    monkeypatch.setattr(loss, "bounds", (0.0, 0.5))
    with pytest.raises(AssertionError, match="outside its bounds"):
        check_metric(loss)
    monkeypatch.setattr(loss, "bounds", (-1.0, 1.0))
    with pytest.raises(AssertionError, match="its bounds say"):
        check_metric(loss)


def test_the_check_of_algorithms_finds_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Datafly, "allowed_rows", lambda *_: -1)
    with pytest.raises(AssertionError, match="allowed_rows"):
        check_algorithm(Datafly)
