"""The page of a run: the same content as the Markdown report, with pictures, and names are escaped."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.interfaces.cli.run import show_release
from duckanon.interfaces.cli.screen import Screen, console
from duckanon.report import page, render
from duckanon.report.history import entry, risk, trends
from duckanon.report.html import block_html
from duckanon.report.model import Bar, Bullets, Cell, Command, Grid, Lines, Point, Section, Sizes, Trend, Trends
from duckanon.report.release import SECTIONS, Run, sections
from duckanon.report.verifying import commands
from tests.report.test_report import NAMES, SUMMARY, changed

RECORD: dict[str, Any] = {
    "run": "r-7",
    "job": "hospital",
    "table": "stays",
    "started": "2026-03-02T02:00:07+00:00",
    "ended": "2026-03-02T02:00:20+00:00",
    "seconds": 13.4,
    "outcome": "published",
    "exit_code": 0,
    "error": None,
    "warnings": ["The source has 3.1 % fewer rows."],
    "summary": SUMMARY,
    "written": {"release": "/out/stays.parquet", "manifest": "/out/stays.manifest.json", "reports": []},
    "peak_memory": 700 * 2**20,
    "recoding": "frozen",
    "held_back": 37,
    "intersection": {"persons_in_both": 18211, "smallest": 3, "persons_below": 12},
    "columns": [{"name": "age", "type": "INTEGER"}],
}
VOID = {"meta"}
ALLOWED = {"html", "head", "meta", "title", "style", "body", "main", "p", "h1", "h2", "ul", "li", "div", "span", "b"}
ALLOWED |= {"abbr", "strong", "section", "table", "tr", "th", "td", "pre", "footer"}
ALLOWED |= {"svg", "rect", "line", "text", "polyline", "circle", "path"}


class Read(HTMLParser):
    """The page as a browser reads it: its elements, what they hold, and whether each is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    def count(self, tag: str, kind: str | None = None) -> int:
        return sum(t == tag and (kind is None or kind in str(a.get("class")).split()) for t, a in self.tags)


class Written(Screen):
    """A screen whose output a test reads."""

    def __init__(self, rich: bool) -> None:
        super().__init__()
        self.drawn, self.written = rich, io.StringIO()

    @property
    def rich(self) -> bool:
        return self.drawn

    @property
    def out(self) -> Any:
        return console(file=self.written, width=120)

    def line(self, text: str = "") -> None:
        self.written.write(text + "\n")


def on_terminal(summary: dict[str, Any], rich: bool) -> str:
    """Return what the command line shows of a release."""
    screen = Written(rich)
    show_release(screen, summary, {})
    return screen.written.getvalue()


def runs(n: int = 4, failed: int | None = None) -> list[dict[str, Any]]:
    keys = ("rows_in", "rows_published", "suppressed_share", "loss", "class_size_min", "class_size_median")
    return [
        {
            "run": str(i),
            "started": f"2026-02-{i + 1:02}T02:00:00+00:00",
            "outcome": "failed" if i == failed else "published",
            **{k: None if i == failed else v + i for k, v in zip(keys, (900, 890, 0.01, 0.1, 5, 9), strict=True)},
        }
        for i in range(n)
    ]


def texts_of(block: Any) -> list[str]:
    """Return the texts of a block that every form of a report must have."""
    if isinstance(block, Lines):
        return list(block.lines)
    if isinstance(block, Bullets):
        return list(block.items)
    if isinstance(block, Command):
        return [block.text]
    return (
        [str(cell) for row in (block.header, *block.rows) for cell in row if str(cell)]
        if isinstance(block, Grid)
        else []
    )


def picture(block: Any) -> str:
    """Return a picture as it stands on a page, without the line breaks of its template."""
    return re.sub(r"\s*\n\s*", "", block_html(block))


def bar(value: Any) -> str:
    return picture(Grid(["", ""], [["", Cell("", bar=Bar(value, ""))]]))


def line(points: list[Point]) -> str:
    return picture(Trends([Trend("", "", "", points)], "", ""))


def sizes(figures: Any, least: int | None = None) -> str:
    return picture(Sizes(figures, least))


class TestForms:
    @pytest.fixture
    def invented(self, monkeypatch: pytest.MonkeyPatch) -> Section:
        """Return a section that is declared in the test alone."""
        rows = [["first", Cell("17", aside="below it", bar=Bar(0.5, "half"))], ["second", Cell("NO", mark="bad")]]
        blocks = [Lines(["A sentence."]), Bullets(["A point."]), Grid(["Name", "Figure"], rows, right=(1,))]
        section = Section("An invented section", blocks)
        monkeypatch.setattr("duckanon.report.release.SECTIONS", [*SECTIONS, lambda run: section])
        return section

    def test_a_new_section_appears_in_html(self, invented: Section) -> None:
        texts = Read(render(SUMMARY, "html")).texts
        for text in (invented.title, *(t for block in invented.blocks for t in texts_of(block)), "below it"):
            assert text in texts

    def test_a_new_section_appears_in_markdown(self, invented: Section) -> None:
        text = render(SUMMARY, "md")
        assert (
            "## An invented section\n\nA sentence.\n\n- A point.\n\n"
            "| Name | Figure |\n| --- | ---: |\n| first | 17 (below it) |\n| second | **NO** |\n"
        ) in text

    @pytest.mark.parametrize("rich", [True, False])
    def test_a_new_section_appears_on_the_terminal(self, invented: Section, rich: bool) -> None:
        text = on_terminal(changed(algorithm={"name": "datafly"}), rich)
        for part in (invented.title, *(t for block in invented.blocks for t in texts_of(block))):
            assert part in text or (part in ("Name", "Figure") and not rich)

    def test_a_section_that_only_explains_is_left_to_the_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        section = Section("Explained at length", [Lines(["A sentence."])], brief=False)
        monkeypatch.setattr("duckanon.report.release.SECTIONS", [lambda run: section])
        assert section.title in render(SUMMARY, "html")
        assert section.title in render(SUMMARY, "md")
        assert section.title not in on_terminal(SUMMARY, True)

    def test_control_characters_reach_no_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        section = Section("Names", [Lines(["\x1b[31mred"]), Grid(["\x07"], [["\x1b]0;x\x07"]])])
        monkeypatch.setattr("duckanon.report.release.SECTIONS", [lambda run: section])
        for rich in (True, False):
            assert "\x07" not in on_terminal(SUMMARY, rich)
            assert "\\x1b[31mred" in on_terminal(SUMMARY, rich)


class TestPage:
    def test_says_all_that_the_markdown_report_says(self) -> None:
        for summary in (SUMMARY, changed(output={"age": "mean", "zip": "set"}, bounds="tight", steering={"x_y": 1})):
            read = Read(render(summary, "html"))
            for section in sections(Run(summary)):
                assert section.title in read.texts
                for block in section.blocks:
                    assert [text for text in texts_of(block) if text not in read.texts] == []

    def test_is_whole_and_alone(self) -> None:
        text = page(SUMMARY, record=RECORD, history=runs())
        read = Read(text)
        assert read.open == []
        assert {tag for tag, _ in read.tags} <= ALLOWED
        assert text.startswith("<!doctype html>")
        assert not re.search(r"https?://|url\(|@import|@font-face|src=|href=|<script|javascript:| on\w+=", text)
        policy = next(a["content"] for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
        assert policy == "default-src 'none'; style-src 'unsafe-inline'"

    def test_is_dark_where_asked_and_light_on_paper(self) -> None:
        text = page(SUMMARY)
        style = text[text.index("<style>") : text.index("</style>")]
        assert "color-scheme: light dark;" in style
        assert re.search(r"@media print \{\s*\.duckanon \{ color-scheme: light; \}", style)
        used = set(re.findall(r"var\(--([a-z0-9-]+)\)", style))
        # Every colour is given for light and for dark.
        both = dict(re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}, #[0-9a-f]{6})\);", style))
        assert used <= set(both)
        assert set(re.findall(r"--([a-z0-9-]+):", style)) == set(both)

    def test_stamps_a_seeded_release_loudly(self) -> None:
        read = Read(page(changed(seeded=True)))
        assert read.count("div", "seeded") == 1
        assert read.texts.index("seeded: for tests, not for release") < read.texts.index("What is promised")
        assert Read(page(SUMMARY)).count("div", "seeded") == 0

    @pytest.mark.parametrize(
        ("record", "said", "kind"),
        [
            (None, "All privacy requirements hold", "good"),
            ({"outcome": "published"}, "Published: all privacy requirements hold", "good"),
            ({"outcome": "dry_run"}, "Dry run: all privacy requirements hold, nothing was written", "warn"),
        ],
    )
    def test_verdict(self, record: Any, said: str, kind: str) -> None:
        read = Read(page(SUMMARY, record=record))
        assert said in read.texts
        assert read.count("div", kind) == 1

    def test_verdict_of_a_broken_promise(self) -> None:
        broken = {**SUMMARY["checks"][0], "holds": False, "violating_classes": 2, "violating_rows": 3}
        read = Read(page(changed(checks=[broken]), record=RECORD))
        assert "A privacy requirement is violated" in read.texts
        assert read.count("td", "bad") == 1
        assert read.count("div", "bad") == 1

    def test_verdict_without_a_proof(self) -> None:
        assert "Nothing was checked" in Read(page({"found": {}})).texts
        assert "Nothing was checked" in Read(page({})).texts

    def test_of_a_failed_run(self) -> None:
        error = {"type": "DataError", "message": "The source is empty."}
        record = {**RECORD, "outcome": "failed", "exit_code": 3, "error": error, "summary": None, "written": None}
        read = Read(page(None, record=record, history=runs()))
        assert "Failed: nothing was published" in read.texts
        assert (
            "Exit code 3: data or schema drift. DataError: The source is empty. The last good export is as it was."
            in (read.texts)
        )
        assert "What is promised" not in read.texts
        assert read.count("path", "failed") == 5
        alone = page(None, record={"outcome": "failed", "exit_code": 99, "error": None})
        assert "Exit code 99." in alone

    def test_shows_the_run(self) -> None:
        text = "\n".join(Read(page(SUMMARY, record=RECORD, history=runs(2))).texts)
        for said in ("hospital: stays", "2026-03-02 02:00 UTC", "took 13.4 s", "recoding frozen", "run r-7"):
            assert said in text
        for said in ("The source has 3.1 % fewer rows.", "Peak memory: 700 MiB.", "37"):
            assert said in text
        assert "/out/" not in text

    def test_of_nothing_is_not_an_error(self) -> None:
        empty = {"rows_in": 0, "rows_published": 0, "rows_suppressed": 0, "suppressed_share": 0.0, "classes": 0}
        none = dict.fromkeys(("min", "q25", "median", "mean", "q75", "max"))
        for summary in ({}, {"found": empty}, {"found": {**empty, "class_size": none}}, changed(loss=[], seconds={})):
            for record in (None, {}, RECORD):
                assert Read(page(summary, record=record, history=[{}])).open == []

    def test_takes_the_summary_of_the_record(self) -> None:
        assert page(None, record=RECORD) == page(SUMMARY, record=RECORD)


@pytest.mark.parametrize("name", [*NAMES, "</style><script>", '"><img src=x onerror=alert(1)>', "\u202eevil", "a,b"])
def test_names_cannot_break_the_page(name: str) -> None:
    summary = changed(
        roles={**SUMMARY["roles"], "quasi_identifiers": [name], "sensitive": [name], "identifiers": [name]},
        hierarchies=[{**SUMMARY["hierarchies"][0], "attribute": name, "origin": name}],
        loss=[{"metric": "loss", "value": 0.5, "direction": "lower", "attribute": name}],
        notes=[name],
        source={"kind": "table", "name": name},
        seconds={name: 0.5},
    )
    record = {**RECORD, "job": name, "table": name, "run": name, "warnings": [name], "recoding": name}
    record["written"] = {"release": f"{name}.parquet", "manifest": f"{name}.json"}
    record["error"] = {"type": name, "message": name}
    for given in (record, {**record, "outcome": "failed"}):
        read = Read(page(summary, record=given, history=[{"started": name, "loss": 1}, {"started": name, "loss": 2}]))
        assert read.open == []
        assert {tag for tag, _ in read.tags} <= ALLOWED
        assert all(not key.startswith("on") and key not in ("src", "href") for _, a in read.tags for key in a)
        assert all(text.isprintable() for text in read.texts if text.strip())


class TestFigures:
    def test_risk_follows_from_the_sizes(self) -> None:
        found = risk(SUMMARY)
        assert found is not None
        assert found.highest == 1 / 5
        assert found.average == pytest.approx(1 / 60.747)
        assert risk({}) is None
        texts = Read(page(SUMMARY)).texts
        assert "20.00%" in texts
        assert "1.65%" in texts

    def test_average_risk_is_classes_by_rows(self) -> None:
        people = pa.table({"age": [1, 1, 1, 2, 2, 2, 2], "ill": ["x"] * 7})
        with duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=3) as release:
            found, summary = risk(release.summary()), release.summary()["found"]
        assert found is not None
        assert found.average == pytest.approx(summary["classes"] / summary["rows_published"])

    def test_entry_is_a_line_of_history(self) -> None:
        row = entry(SUMMARY, RECORD)
        assert row == {
            "run": "r-7",
            "started": "2026-03-02T02:00:07+00:00",
            "outcome": "published",
            "exit_code": 0,
            "rows_in": 20000,
            "rows_published": 19500,
            "suppressed_share": 0.025,
            "held_back": 37,
            "classes": 321,
            "homogeneous": None,
            "class_size_min": 5,
            "class_size_median": 19,
            "class_size_mean": 60.747,
            "loss": 0.1534,
            "ncp": None,
            "seconds": 13.4,
            "peak_memory": 700 * 2**20,
        }
        assert set(entry({}, None).values()) == {None}

    def test_trends_need_two_values_and_show_the_latest_runs(self) -> None:
        assert trends(runs(1), "rows") == []
        assert len(trends(runs(2), "rows")) == 5
        many = [{**run, "run": str(i)} for i in range(20) for run in runs(5)]
        assert {len(t.points) for t in trends(many, "rows")} == {60}
        assert "There are no earlier runs to compare with yet." in Read(page(SUMMARY, record=RECORD)).texts


class TestPictures:
    def test_bars_are_as_long_as_their_figures(self) -> None:
        widths = [re.findall(r'class="fill" width="([^"]*)"', bar(v)) for v in (0.25, 1, 7, -1, 0, None, "x")]
        assert widths == [["25%"], ["100%"], ["100%"], [], [], [], []]
        assert re.findall(r'class="fill"', bar(float("nan"))) == []

    def test_a_line_breaks_where_a_run_failed(self) -> None:
        points = [Point(v, "", failed=v is None) for v in (1.0, 2.0, None, 2.0, 3.0, None, 4.0)]
        text = line(points)
        assert text.count("<polyline") == 2
        assert text.count("trend-alone") == 1
        assert text.count('class="failed"') == 2
        assert text.count('class="now"') == 1

    def test_a_line_stays_in_its_field_and_begins_at_zero(self) -> None:
        text = line([Point(v, "") for v in (0.0, 50.0, 100.0)])
        heights = [float(y) for y in re.findall(r"[\d.]+,([\d.]+)", text)]
        assert heights == sorted(heights, reverse=True)
        assert 0 < heights[2] < heights[1] < heights[0] < 84
        assert heights[1] == pytest.approx((heights[0] + heights[2]) / 2)
        assert "<svg" not in line([Point(None, "")])
        assert line([Point(5.0, ""), Point(5.0, "")]).count("<polyline") == 1
        assert line([Point(0.0, "")] * 3).count("<polyline") == 1

    @pytest.mark.parametrize("figures", [(5, 6, 7, 9, 31), (5, 11, 19, 39, 1860), (3, 3, 3, 3, 3), (1, 1, 2, 2, 10**9)])
    def test_sizes_stand_in_order_on_their_axis(self, figures: tuple[int, ...]) -> None:
        text = sizes(figures, 3)
        left = [float(x) for x in re.findall(r'class="(?:tick|whisker|box|median|least)" x1?="([\d.]+)%', text)]
        assert left
        assert all(0 <= x <= 100 for x in left)
        low, high = re.findall(r'class="whisker" x1="([\d.]+)%" x2="([\d.]+)%" y1="32"', text)[0]
        (middle,) = re.findall(r'class="median" x1="([\d.]+)%', text)
        assert float(low) <= float(middle) <= float(high)
        assert 1 <= len(re.findall(r'class="tick"', text)) <= 11

    def test_sizes_of_no_class(self) -> None:
        assert sizes([None] * 5) == ""
        assert sizes([0] * 5) == ""


class TestCommands:
    def test_names_the_files_of_the_run(self) -> None:
        assert [c for _, c in commands(SUMMARY, RECORD)] == [
            "duckanon verify stays.manifest.json --accept persons",
            "duckanon check stays.parquet -q age,zip,sex -k 5",
            "sha256sum < stays.parquet | cut -c1-64 | grep -F -f - stays.manifest.json",
        ]

    @pytest.mark.parametrize(
        ("release", "option"),
        [
            ("postgres: public.stays", ' --database "$DUCKANON_DATABASE"'),
            ("d b.duckdb: stays", " --database 'd b.duckdb'"),
        ],
    )
    def test_a_table_is_verified_where_its_database_is(self, release: str, option: str) -> None:
        written = {"release": release, "manifest": "stays.manifest.json"}
        (about, command), *_ = commands(SUMMARY, {"written": written})
        assert command == f"duckanon verify stays.manifest.json --accept persons{option}"
        assert "DUCKANON_DATABASE is the address" in about or "--database is the DuckDB file" in about

    def test_odd_names_reach_the_command_whole(self) -> None:
        summary = changed(
            roles={**SUMMARY["roles"], "quasi_identifiers": ["a,b", "it's", 'say "x"', "$HOME"]},
            output={"it's": "bounds"},
            promise=[{"model": "l_diversity", "parameters": {"l": 3, "attribute": None}, "text": ""}],
        )
        (_, (_, check), _) = commands(summary, RECORD)
        words = shlex.split(check)
        assert words[3:5] == ["-q", '"a,b",it\'s_lo,it\'s_hi,"say ""x""",$HOME']
        assert words[5:] == ["-s", "diagnosis", "--model", "l_diversity(l=3)"]

    def test_leaves_out_what_the_file_alone_cannot_show(self) -> None:
        def checked(model: str, suppressed: int, release: str = "a.parquet") -> bool:
            promise = [{"model": model, "parameters": {"t": 0.2}, "text": ""}]
            summary = changed(promise=promise, found={**SUMMARY["found"], "rows_suppressed": suppressed})
            return any(" check " in c for _, c in commands(summary, {"written": {"release": release}}))

        assert checked("t_closeness", 0)
        assert not checked("t_closeness", 3)
        assert not checked("k_map", 0)
        assert not checked("t_closeness", 0, "postgresql table")

    def test_the_commands_work(self, tmp_path: Path) -> None:
        rows = {"age": [30, 31, 32, 60, 61, 62] * 2, "it's, ok": ["a", "b"] * 6, "ill": ["x", "y", "z"] * 4}
        with duckanon.anonymize(
            pa.table(rows), quasi_identifiers=["age", "it's, ok"], sensitive=["ill"], k=3, l=2
        ) as release:
            written = release.write(tmp_path / "the release.parquet", report=["html"])
            given = commands(release.summary(), {"written": written})
        assert len(given) == 3
        for _, command in given:
            real = command.replace("duckanon ", f"{shlex.quote(sys.executable)} -m duckanon ", 1)
            done = subprocess.run(real, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        (tmp_path / "the release.parquet").write_bytes(b"changed")
        done = subprocess.run(given[2][1], shell=True, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 1


def test_of_a_real_release_has_no_cell_of_the_data() -> None:
    people = pa.table(
        {
            "<b>age": [341, 342, 343, 612, 613, 614],
            "town": ["Zaphodville", "Trillianburg", "Marvintown"] * 2,
            "ill": ["Beeblebrox disease"] * 6,
        }
    )
    with duckanon.anonymize(people, quasi_identifiers=["<b>age", "town"], sensitive=["ill"], k=3) as release:
        text = release.report("html")
        assert json.loads(release.report("json"))["found"]["rows_in"] == 6
    for cell in ("341", "614", "Zaphodville", "Marvintown", "Beeblebrox"):
        assert cell not in text
    assert "<b>age" not in text
    assert "&lt;b&gt;age" in text
