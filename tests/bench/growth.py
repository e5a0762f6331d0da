"""Time, processor time and peak memory as the rows grow, for Mondrian, Datafly and the optimal search.

python -m tests.bench.growth --rows 100000 1000000 10000000 --folder growth --out docs/_static
python -m tests.bench.growth --rows 100000000 --folder growth --out docs/_static

The hospital table, from Parquet to Parquet, each run in a process of its own with its kernels compiled before. Sizes of
100 million rows and more run with ``--memory``. The optimal search holds the distinct combinations in memory, so it has
six quasi-identifiers instead of eight: no dates. ``--out`` names the folder of ``growth.csv`` and ``growth.svg``; what
the file already has of other sizes stays.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
from math import log
from pathlib import Path
from typing import Any

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS, QUASI_IDENTIFIERS
from tests.bench.harness import measure

MEASURES = {"seconds": "seconds", "cpu": "processor seconds", "peak_mb": "peak memory, MB"}
FIELDS = ("algorithm", "quasi_identifiers", "rows", "memory", *MEASURES)
MARKS = {"copy": "x", "mondrian": "o", "datafly": "s", "optimal": "^"}
_DATES = ("birth_date", "admission_date")
_LARGE, _MANY = 100_000_000, 3_000_000
Row = dict[str, Any]


def parameters(algorithm: str) -> dict[str, Any]:
    """Return what ``anonymize`` is asked for."""
    names = [n for n in QUASI_IDENTIFIERS if algorithm != "optimal" or n not in _DATES]
    rules = {n: rule for n, rule in PARAMETERS["hierarchies"].items() if n in names}
    given = {**PARAMETERS, "quasi_identifiers": names, "hierarchies": rules, "algorithm": algorithm}
    return {**given, "suppression_limit": 0.0} if algorithm == "mondrian" else given


def run(algorithm: str, source: Path, rows: int, memory: str | None, repeat: int) -> Row | None:
    """Return the fastest of some runs; None, and the reason is printed, where there is no release."""
    target = str(source.parent / f"release_{algorithm}.parquet")
    given: dict[str, Any] = {"source": str(source), "target": target}
    if algorithm != "copy":
        given |= {"memory": memory, **parameters(algorithm)}
    try:
        tries = [measure(algorithm, "copy" if algorithm == "copy" else "anonymize", **given) for _ in range(repeat)]
    except subprocess.CalledProcessError as error:
        print(f"{algorithm}, {rows:,} rows: {(error.stderr or 'ended').strip().splitlines()[-1]}")
        return None
    best = min(tries, key=lambda f: f.cpu)
    columns = len(given.get("quasi_identifiers", ()))
    costs = {name: round(float(getattr(best, name)), 3) for name in MEASURES}
    limit = (memory or "") if algorithm != "copy" else ""
    return {"algorithm": algorithm, "quasi_identifiers": columns, "rows": rows, "memory": limit, **costs}


def exponent(lines: list[Row], name: str) -> float:
    """Return the slope of a cost over the rows, both as logarithms, by least squares."""
    x = [log(line["rows"]) for line in lines]
    y = [log(line[name]) for line in lines]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def of(lines: list[Row], algorithm: str) -> list[Row]:
    """Return the lines of an algorithm, by their rows."""
    return sorted((line for line in lines if line["algorithm"] == algorithm), key=lambda line: line["rows"])


def show(lines: list[Row]) -> None:
    """Print the table, and the exponents from the first size and from a million rows on."""
    print(
        f"\n{'algorithm':<10} {'columns':>7} {'rows':>12} {'memory':>7} {'seconds':>9} {'processor':>10} {'peak MB':>8}"
    )
    for algorithm in MARKS:
        own = of(lines, algorithm)
        for line in own:
            print(
                f"{algorithm:<10} {line['quasi_identifiers'] or '':>7} {line['rows']:>12,} {line['memory'] or '-':>7} "
                f"{line['seconds']:>9.2f} {line['cpu']:>10.2f} {line['peak_mb']:>8.0f}"
            )
        for name, part in (("all", own), ("1 M and more", [line for line in own if line["rows"] >= 1_000_000])):
            if len(part) > 1:
                powers = [f"{exponent(part, measured):.2f}" for measured in MEASURES]
                print(f"{'':<10} {f'exponent, {name}':<28} {powers[0]:>9} {powers[1]:>10} {powers[2]:>8}")


def draw(lines: list[Row], target: Path) -> None:
    """Draw processor time and peak memory over the rows, both logarithmic."""
    from matplotlib import rc_context
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    from duckanon.report.plots import COLOURS, INK, bare, new_figure, save

    figure = new_figure(9, 3.9)
    panels = figure.subplots(1, 2)
    shown = [("cpu", "processor time, s", 1.0), ("peak_mb", "peak memory, GB", 1 / 1024)]
    for axes, (name, label, scale) in zip(panels, shown, strict=True):
        for i, (algorithm, mark) in enumerate(MARKS.items()):
            own = of(lines, algorithm)
            # The copy is what the others are compared with: grey, and under them.
            style = {"color": "#777777", "zorder": 1} if algorithm == "copy" else {"color": COLOURS[i - 1], "zorder": 2}
            values = [line[name] * scale for line in own]
            title = "plain copy" if algorithm == "copy" else f"{algorithm}, {own[0]['quasi_identifiers']} columns"
            above = [line for line in own if line["rows"] >= 1_000_000]
            power = f" (rows$^{{{exponent(above, name):.2f}}}$)" if len(above) > 1 else ""
            axes.plot([line["rows"] for line in own], values, marker=mark, label=title + power, linewidth=1.4, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rows")
        axes.set_ylabel(label)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda rows, _: f"{rows / 1e6:g} M"))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
        axes.grid(color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(colors=INK)
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        bare(axes)
    largest = {line["memory"] for line in lines if line["memory"]}
    limit = f'; {_LARGE // 10**6} M rows at memory = "{", ".join(sorted(largest))}"' if largest else ""
    figure.suptitle(
        f"Hospital table, from Parquet to Parquet, two cores; powers from 1 M rows on{limit}", fontsize=10, color=INK
    )
    # Texts as texts and names that do not change: a small file, and the same one from the same figures.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth"}):
        save(figure, target)


def read(path: Path) -> list[Row]:
    """Return the lines of a table that was written before."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines: list[Row] = list(csv.DictReader(file))
    for line in lines:
        line |= {"rows": int(line["rows"]), "quasi_identifiers": int(line["quasi_identifiers"])}
        line |= {name: float(line[name]) for name in MEASURES}
    return lines


def main() -> None:
    """Measure the sizes asked for, and show them with those that were measured before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--algorithms", nargs="+", choices=list(MARKS), default=list(MARKS))
    parser.add_argument("--memory", default="4GB", help=f"the memory limit from {_LARGE:,} rows on")
    parser.add_argument("--repeat", type=int, default=3, help="runs below three million rows; the fastest counts")
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    parser.add_argument("--out", type=Path, help="the folder of growth.csv and growth.svg")
    options = parser.parse_args()
    lines = read(options.out / "growth.csv") if options.out else []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        first = folder / "hospital_first.parquet"
        write_hospital(first, 20_000)
        for algorithm in options.algorithms:
            # Compiles the kernels.
            run(algorithm, first, 20_000, None, 1)
        for rows in options.rows:
            source = folder / f"hospital_{rows}.parquet"
            if not source.exists():
                write_hospital(source, rows)
            memory = options.memory if rows >= _LARGE else None
            for algorithm in options.algorithms:
                line = run(algorithm, source, rows, memory, options.repeat if rows < _MANY else 1)
                if line is None:
                    continue
                print(", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
                lines = [old for old in lines if (old["algorithm"], old["rows"]) != (algorithm, rows)] + [line]
    show(lines)
    if options.out:
        with (options.out / "growth.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(line for algorithm in MARKS for line in of(lines, algorithm))
        draw(lines, options.out / "growth.svg")


if __name__ == "__main__":
    main()
