"""Results show themselves: as text, as cards in notebooks, and as tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import duckanon
from duckanon.errors import ConfigError
from duckanon.release.results import Checks
from duckanon.report.model import Histogram, Scatter, Spot
from duckanon.report.pictures import histogram, scatter
from tests.report.test_report_html import ALLOWED, Read

CANARY = "Zaphodville"
NASTY = '<img src=x onerror="alert(1)">'
PEOPLE = pa.table(
    {
        NASTY: [20 + i % 40 for i in range(240)],
        "zip": [str(10000 + 7 * (i % 30)) for i in range(240)],
        "ill": [CANARY if i % 5 else "Trillianburg" for i in range(240)],
    }
)
QUASI: dict[str, Any] = {"quasi_identifiers": [NASTY, "zip"]}
BOTH: dict[str, Any] = {**QUASI, "sensitive": ["ill"]}


@pytest.fixture(scope="module")
def release() -> Iterator[duckanon.Release]:
    with duckanon.anonymize(PEOPLE, **BOTH, k=4, algorithm="optimal") as made:
        yield made


@pytest.fixture(scope="module")
def results(release: duckanon.Release) -> dict[str, Any]:
    with duckanon.anonymize(PEOPLE, **BOTH, k=40, algorithm="optimal") as other:
        compared = duckanon.compare([release, other])
    return {
        "Checks": duckanon.check(PEOPLE, **BOTH, k=2, l=2),
        "Privacy": duckanon.privacy(PEOPLE, **BOTH, k=2),
        "Risk": duckanon.risk(PEOPLE, **BOTH, sampling_fraction=0.1),
        "Measures": release.measure(),
        "Lattice": duckanon.lattice(PEOPLE, **QUASI, k=4),
        "Suggestion": duckanon.suggest(PEOPLE),
        "Comparison": compared,
        "Attack": duckanon.attack(PEOPLE, release, attacks=["homogeneity", "linkage", "inference"]),
    }


NAMES = ("Checks", "Privacy", "Risk", "Measures", "Lattice", "Suggestion", "Comparison", "Attack")


@pytest.mark.parametrize("name", NAMES)
class TestEveryResult:
    def test_is_a_table(self, results: dict[str, Any], name: str) -> None:
        result = results[name]
        table = result.to_arrow()
        assert type(result).__name__ == name
        assert table.num_rows > 0
        assert list(result.to_pandas().columns) == result.to_polars().columns == table.column_names
        assert result.to_polars().to_arrow().num_rows == table.num_rows
        assert pa.RecordBatchReader.from_stream(result).read_all().equals(table)
        assert result.to_pylist() == table.to_pylist()

    def test_shows_itself_as_text(self, results: dict[str, Any], name: str) -> None:
        text = repr(results[name])
        assert text.count("\n") > 3
        assert all(line == line.rstrip() and "\x1b" not in line for line in text.split("\n"))
        assert CANARY not in text

    def test_shows_itself_as_cards_whose_names_are_escaped(self, results: dict[str, Any], name: str) -> None:
        text = results[name]._repr_html_()
        read = Read(text)
        assert read.open == []
        # No page, and no heading that would stand among those of a notebook.
        assert {tag for tag, _ in read.tags} <= ALLOWED - {"html", "head", "meta", "body", "main", "h1", "h2"}
        assert read.tags[0] == ("div", {"class": "duckanon"})
        assert "<img" not in text
        assert CANARY not in text
        # Nothing of the style reaches the notebook around it.
        style = text[text.index("<style>") + 7 : text.index("</style>")]
        assert "\nbody {" not in style
        assert "\n:root" not in style


def test_a_release_shows_itself(release: duckanon.Release) -> None:
    text = release._repr_html_()
    assert Read(text).open == []
    assert "All privacy requirements hold" in text
    assert "What was lost" in text
    assert "How to verify" not in text
    assert CANARY not in text
    assert "<img" not in text


def test_a_closed_release_shows_what_it_knows() -> None:
    with duckanon.anonymize(PEOPLE, **BOTH, k=4) as made:
        pass
    text = made._repr_html_()
    assert "All privacy requirements hold" in text
    assert "240" in text
    assert repr(made).startswith("<Release of 240 rows")


class TestChecks:
    def test_are_true_if_all_hold(self) -> None:
        good = duckanon.check(PEOPLE, **BOTH, k=2)
        assert good
        assert good.violated == ()
        bad = duckanon.check(PEOPLE, **BOTH, k=2, l=3)
        assert not bad
        assert [c.model for c in bad.violated] == ["l_diversity"]
        assert [bool(c) for c in bad] == [True, False]
        (only,) = good
        assert only.holds

    def test_of_nothing_do_not_hold(self) -> None:
        assert not Checks()

    def test_of_a_release_are_true(self, release: duckanon.Release) -> None:
        assert release.checks
        assert isinstance(release.checks, Checks)


def test_privacy_has_its_figures() -> None:
    people = pa.table(
        {
            "age": [1, 1, 1, 2, 2, 2],
            "ill": ["a", "b", "c", "a", "a", "b"],
            "pay": [1, 2, 3, 4, 5, 6],
        }
    )
    found = duckanon.privacy(people, quasi_identifiers=["age"], sensitive=["ill", "pay"])
    assert (found.k, found.l) == (3, 2)
    # Of pay the ordered distance decides: half of the values lie on each side.
    values = {(r["model"], r["attribute"]): r["value"] for r in found}
    assert found.t == pytest.approx(max(values["t_closeness", "ill"], values["ordered_t_closeness", "pay"]))
    plain = duckanon.privacy(people, quasi_identifiers=["age"])
    assert (plain.k, plain.l, plain.t) == (3, None, None)


def test_risk_says_what_classes_tell_of_sensitive_columns() -> None:
    people = pa.table({"age": [1, 1, 2, 2, 2], "ill": ["a", "a", "a", "b", "b"], "pay": [1, 2, 3, 3, 3]})
    found = duckanon.risk(people, quasi_identifiers=["age"], sensitive=["ill", "pay"])
    told = {d.attribute: (d.classes, d.rows, d.share) for d in found.disclosure}
    assert told == {"ill": (1, 2, 0.4), "pay": (1, 3, 0.6)}
    assert ("disclosed_pay", 0.6) in [(name, value) for name, value, _ in found.figures()]
    assert duckanon.risk(people, quasi_identifiers=["age"]).disclosure == ()


class TestSignatures:
    """A parameter that several verbs have means the same in all of them, and looks the same."""

    VERBS: tuple[str, ...] = (
        *("anonymize", "check", "privacy", "risk", "with_risk"),
        *("measure", "attack", "suggest", "lattice", "compare"),
    )
    # What a table is needs to be said; a release knows.
    REQUIRED = ("anonymize", "lattice")

    @staticmethod
    def parameters(verb: str) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(getattr(duckanon, verb)).parameters)

    def test_shared_parameters_are_the_same(self) -> None:
        for name in ("sensitive", "entity_key", "hierarchies", "population", "k", "l", "t", "models", "connection"):
            seen = {
                verb: (p.annotation, p.default, p.kind)
                for verb in self.VERBS
                # "auto" makes hierarchies, which only a release does.
                if (verb, name) != ("anonymize", "hierarchies")
                if (p := self.parameters(verb).get(name)) is not None
            }
            assert len(set(map(str, seen.values()))) == 1, (name, seen)

    def test_the_table_comes_first_and_the_rest_by_name(self) -> None:
        for verb in self.VERBS:
            given = list(self.parameters(verb).values())
            tables = 2 if verb in ("measure", "attack") else 1
            kinds = {p.kind for p in given[tables:]}
            assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}, verb

    def test_quasi_identifiers(self) -> None:
        for verb in set(self.VERBS) - {"suggest", "compare"}:
            p = self.parameters(verb)["quasi_identifiers"]
            assert (p.default is inspect.Parameter.empty) == (verb in self.REQUIRED), verb

    def test_verbs_that_look_at_persons_or_values_can_be_told(self) -> None:
        for verb in ("anonymize", "check", "privacy", "risk", "attack"):
            assert {"quasi_identifiers", "sensitive", "entity_key", "hierarchies", "connection"} <= set(
                self.parameters(verb)
            ), verb

    def test_every_verb_returns_what_shows_itself(self) -> None:
        for verb in set(self.VERBS) - {"with_risk"}:
            made: Any = getattr(duckanon, verb)
            module = inspect.getmodule(made)
            returned = str(inspect.signature(made).return_annotation)
            kind = getattr(module, returned)
            assert callable(kind._repr_html_), verb
            assert callable(kind.to_arrow), verb
            assert callable(kind.to_pandas), verb
            assert callable(kind.to_polars), verb


class TestReport:
    """What a reader works with: the worst column, what cells stand for, how many classes of each size."""

    def test_the_worst_column_comes_first_with_advice(self) -> None:
        people = pa.table({"sex": list("fm") * 60, "stay": [i * i for i in range(120)], "zip": ["1"] * 120})
        roles = {"quasi_identifiers": ["sex", "zip", "stay"]}
        with duckanon.anonymize(people, **roles, k=5) as made:
            text, cells = made.report("md"), made.summary()["cells"]
            figures = [m for m in made.summary()["loss"] if m["metric"] == "loss" and m["attribute"] is not None]
        worst = max(figures, key=lambda m: m["value"])["attribute"]
        assert worst == "stay"
        assert "stay carries most of the loss: give it a hierarchy, or make it insensitive" in text
        lost = text[text.index("## What was lost") : text.index("## What was done")]
        assert lost.index("| stay |") < lost.index("| sex |")
        assert [c["attribute"] for c in cells] == ["sex", "zip", "stay"]
        assert {c["attribute"]: c["values"] for c in cells} == {"sex": 2, "zip": 1, "stay": 120}
        assert cells[0]["exact"] == 1
        assert cells[2]["exact"] < 1 < cells[2]["median"]

    def test_no_column_is_named_where_none_stands_out(self) -> None:
        people = pa.table({"a": list(range(100)), "b": [(i * 37) % 100 for i in range(100)]})
        with duckanon.anonymize(people, quasi_identifiers=["a", "b"], k=5) as made:
            assert "carries" not in made.report("md")

    def test_classes_are_counted_by_size(self) -> None:
        with duckanon.anonymize(PEOPLE, **QUASI, k=3) as made:
            sizes = made.classes().column("n").to_pylist()
            bars = made.summary()["class_sizes"]
            page = made.report("html")
        assert sum(bar["classes"] for bar in bars) == len(sizes)
        for bar in bars:
            assert bar["classes"] == sum(bar["from"] <= n <= bar["to"] for n in sizes)
        assert [b["from"] for b in bars[1:]] == [b["to"] + 1 for b in bars[:-1]]
        assert (bars[0]["from"], bars[-1]["to"]) == (min(sizes), max(sizes))
        assert "rows in a class" in page

    def test_metrics_are_explained_where_somebody_points_at_them(self, release: duckanon.Release) -> None:
        about = {a["title"] for tag, a in Read(release.report("html")).tags if tag == "abbr"}
        assert duckanon.metrics.metrics.get("gcp").summary in about

    def test_a_release_with_these_figures_can_be_verified(self, release: duckanon.Release, tmp_path: Path) -> None:
        from duckanon.release.verify import verify_export

        release.write(tmp_path / "people.parquet")
        assert verify_export(tmp_path / "people.manifest.json").ok


class TestWrite:
    def test_csv(self, release: duckanon.Release, tmp_path: Path) -> None:
        written = release.write(tmp_path / "people.csv")
        assert written["release"] == tmp_path / "people.csv"
        rows = pa.csv.read_csv(written["release"])
        assert rows.num_rows == release.rows_published
        assert duckanon.check(written["release"], **QUASI, k=4)

    def test_a_csv_file_that_would_lose_nulls_is_refused_as_in_jobs(self, tmp_path: Path) -> None:
        people = pa.table({"age": [1, 1, 2, 2], "ill": ["", None, "", None]})
        with duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=2, l=2) as made:
            with pytest.raises(duckanon.errors.DuckanonError):
                made.write(tmp_path / "x.csv")
            assert list(tmp_path.iterdir()) == []
            made.write(tmp_path / "x.parquet")

    def test_other_suffixes_are_refused(self, release: duckanon.Release, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"must end in \.parquet or \.csv"):
            release.write(tmp_path / "people.xlsx")


class TestPictures:
    def test_names_beside_points_never_touch(self) -> None:
        spots = [Spot(x, 1 / x, f"release {x}", best=True) for x in (1, 1.01, 1.02, 5, 5.05, 9, 9.9, 10)]
        drawn = scatter(Scatter(spots, "risk (%)", "loss"))
        assert drawn is not None
        boxes = []
        for spot in drawn["spots"]:
            if spot["name"]:
                x = float(spot["x"].rstrip("%")) / 100 * 330
                wide = 6.6 * len(spot["name"])
                left = x - 9 - wide if spot["left"] else x + 9
                assert left >= 0
                assert left + wide <= 330
                boxes.append((left, spot["label_y"] - 11, left + wide, spot["label_y"] + 4))
        assert len(boxes) > 3
        for i, a in enumerate(boxes):
            for b in boxes[i + 1 :]:
                assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])

    def test_labels_of_bars_have_room_on_a_small_screen(self) -> None:
        bars = [(f"{10**i}–{10 ** (i + 1) - 1}", i + 1.0) for i in range(8)]
        drawn = histogram(Histogram(bars, "rows in a class", "classes"))
        assert drawn is not None
        shown = [i for i, bar in enumerate(drawn["bars"]) if bar["label"]]
        wide = 330 * 0.89 / len(bars)
        assert all((b - a) * wide >= 6.5 * max(len(label) for label, _ in bars) for a, b in pairwise(shown))

    def test_nothing_is_drawn_of_nothing(self) -> None:
        assert histogram(Histogram([], "a", "b")) is None
        assert histogram(Histogram([("1", 0)], "a", "b")) is None
        assert scatter(Scatter([Spot(float("nan"), 1, "x")], "a", "b")) is None
