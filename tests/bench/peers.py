"""Other programs beside ours in one run: the same table, the same promise, what it took and what it lost.

python -m tests.bench.peers --data ../shared/data --arx "arx/*" --repeat 7

- ARX, where ``--arx`` gives a Java class path that has it: the optimal full-domain generalization of ADULT, from file
  to file. ``ArxDriver.java``, compiled on the spot, does the work again in one warm Java process; ours and theirs take
  turns, so that both meet the same machine.
- anonypy, where installed: its Mondrian beside ours. It publishes the smallest and largest number of a class and the
  set of its values; ours does so with tight bounds and sets.
- pyCANON, where installed: what it says of our releases, beside ``duckanon.check``.

What is missing is skipped, and the reason is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.bench.lattice import ADULT, hierarchies
from tests.bench.mondrian import COLUMNS, mean_ncp
from tests.datasets import data_folder

K = 5
NAMES = ADULT[:8]
SENSITIVE = "occupation"
PROMISES: dict[str, dict[str, float]] = {
    "limit 0": {"limit": 0.0},
    "limit 0.05": {"limit": 0.05},
    "limit 0.05, t = 0.2": {"limit": 0.05, "t": 0.2},
    "limit 0.05, l = 5": {"limit": 0.05, "l": 5},
}
DRIVER = Path(__file__).with_name("ArxDriver.java")
Turn = Callable[[], dict[str, Any]]


class Skipped(Exception):
    """Something that a comparison needs is missing; the message says what."""


def compiled(class_path: str | None, folder: Path) -> str:
    """Compile the driver of ARX and return the class path to run it with."""
    if class_path is None:
        raise Skipped("no class path of ARX was given (--arx)")
    compiler = shutil.which("javac")
    if compiler is None or shutil.which("java") is None:
        raise Skipped("there is no Java compiler (javac) on the path")
    command = [compiler, "-d", str(folder), "-cp", class_path, str(DRIVER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = done.stderr.strip().splitlines()[0].partition("error: ")[2]
        raise Skipped(f"the driver does not compile with this class path ({problem})")
    return f"{folder}:{class_path}"


@contextmanager
def theirs_full_domain(class_path: str, data: Path, source: Path, target: Path, **promise: float) -> Iterator[Turn]:
    """A Java process that does the job of ARX once a turn."""
    command = ["java", "-cp", class_path, "ArxDriver", "--data", str(source), "--out", str(target)]
    for name, file in hierarchies(data, NAMES).items():
        command += ["--qi", f"{name}={file}"]
    command += ["--sensitive", SENSITIVE, "--k", str(K)]
    for name, value in promise.items():
        command += [f"--{name}", str(value)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def turn() -> dict[str, Any]:
            process.stdin.write("again\n")
            process.stdin.flush()
            found: dict[str, Any] = json.loads(process.stdout.readline())
            return {**found, "call": found["load"] + found["search"]}

        yield turn
        process.stdin.close()


def ours_full_domain(data: Path, source: Path, target: Path, **promise: float) -> Turn:
    """Return our optimal search from file to file: load, search, gate, write, and check what was written."""
    import duckanon
    from duckanon.io.sinks import CsvFile, ParquetFile

    sink = CsvFile(target) if target.suffix == ".csv" else ParquetFile(target)
    models = {name: value for name, value in promise.items() if name != "limit"}
    role = "sensitive" if models else "insensitive"

    def turn() -> dict[str, Any]:
        cpu, start = time.process_time(), time.perf_counter()
        with duckanon.anonymize(
            source,
            quasi_identifiers=NAMES,
            hierarchies=hierarchies(data, NAMES),
            k=K,
            suppression_limit=promise["limit"],
            algorithm="optimal",
            **{role: [SENSITIVE]},
            **models,
        ) as release:
            call = time.perf_counter() - start
            sink.publish(release, reports={kind: release.report(kind) for kind in ("json", "md")}, run={})
            whole, used = time.perf_counter() - start, time.process_time() - cpu
            return {
                "call": call,
                "whole": whole,
                "cpu": used,
                "search": release.engine.progress.seconds["search"],
                "loss": release.searched["value"],
                "levels": [release.recoding.levels[name] for name in NAMES],
                "suppressed": release.rows_suppressed,
            }

    return turn


def full_domain(data: Path, class_path: str | None, repeat: int, scratch: Path) -> None:
    """The optimal node of ADULT for four promises, both programs in turns, after turns that nobody times."""
    from pyarrow import csv, parquet

    table = parquet.read_table(data / "data.parquet").select([*NAMES, SENSITIVE])
    text, binary = scratch / "adult.csv", scratch / "adult.parquet"
    # Neither program has to parse quotes.
    csv.write_csv(table, text, csv.WriteOptions(delimiter=";", quoting_style="none"))
    parquet.write_table(table, binary)
    print(f"Optimal full-domain generalization: ADULT, {table.num_rows:,} rows, 8 quasi-identifiers, k = {K}, loss")
    print(
        f"Warm, in turns, seconds: median of {repeat}, the least in brackets; 'call' is all but the writing (ours: with"
    )
    print("the gate), 'whole' is from file to file, 'processor' is the whole's time of all threads")
    try:
        java = compiled(class_path, scratch)
    except Skipped as reason:
        print(f"ARX is skipped: {reason}")
        java = None
    columns = f"{'search':>7} {'call':>7} {'whole':>15} {'processor':>15} {'loss':>12} {'suppr.':>6}  levels"
    print(f"{'promise':<20} {'program':<18} {columns}")
    for name, promise in PROMISES.items():
        with ExitStack() as stack:
            turns: dict[str, Turn] = {
                "duckanon, CSV": ours_full_domain(data, text, scratch / "ours_text.csv", **promise),
                "duckanon, Parquet": ours_full_domain(data, binary, scratch / "ours_binary.parquet", **promise),
            }
            if java is not None:
                arx = theirs_full_domain(java, data, text, scratch / "theirs.csv", **promise)
                turns["ARX, CSV"] = stack.enter_context(arx)
            runs = in_turns(turns, repeat)
        medians = {}
        for program, found in runs.items():
            middle = {key: statistics.median(f[key] for f in found) for key in ("search", "call", "whole", "cpu")}
            least = {key: min(f[key] for f in found) for key in ("whole", "cpu")}
            medians[program] = middle
            last = found[-1]
            print(
                f"{name:<20} {program:<18} {middle['search']:>7.3f} {middle['call']:>7.3f} "
                f"{middle['whole']:>7.3f} ({least['whole']:.3f}) {middle['cpu']:>7.3f} ({least['cpu']:.3f}) "
                f"{last['loss']:>12.10f} {last['suppressed']:>6}  {','.join(map(str, last['levels']))}"
            )
        if java is not None:
            theirs, mine = runs["ARX, CSV"][-1], runs["duckanon, CSV"][-1]
            assert abs(theirs["loss"] - mine["loss"]) < 1e-9, "the optima differ"
            for program in ("duckanon, CSV", "duckanon, Parquet"):
                ratio = {key: medians[program][key] / value for key, value in medians["ARX, CSV"].items()}
                print(
                    f"{'':<20} {program.split()[1] + ' / ARX':<18} {ratio['search']:>7.2f} {ratio['call']:>7.2f} "
                    f"{ratio['whole']:>7.2f} {'':>7} {ratio['cpu']:>7.2f}"
                )


def in_turns(turns: dict[str, Turn], repeat: int, warm: int = 3) -> dict[str, list[dict[str, Any]]]:
    """Return what each turn measured, ``repeat`` rounds of all after ``warm`` rounds that do not count."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in turns}
    for round_ in range(warm + repeat):
        for name, turn in turns.items():
            found = turn()
            if round_ >= warm:
                runs[name].append(found)
    return runs


def theirs(rows: Any, data: Path, k: int) -> tuple[float, float, float, int]:
    """Return the seconds and processor time of anonypy's partitioning, the mean NCP over cells, and the classes."""
    from anonypy.mondrian import Mondrian

    frame = rows.to_pandas()
    words = [c for c in COLUMNS if c != "age"]
    frame = frame.astype(dict.fromkeys(words, "category"))
    cpu, start = time.process_time(), time.perf_counter()
    classes = Mondrian(frame, COLUMNS).partition(k)
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    assert sum(map(len, classes)) == len(frame)
    assert min(map(len, classes)) >= k
    total = 0.0
    for column in COLUMNS:
        own = frame[column]
        # As of ours: all values that the hierarchy lists, though some of them do not occur.
        listed = len((data / "hierarchies" / f"{column}.csv").read_text().splitlines())
        domain = listed if column in words else own.max() - own.min()
        for members in classes:
            found = own[members]
            distinct = found.nunique() if column in words else 0
            wide = (distinct if distinct > 1 else 0) if column in words else found.max() - found.min()
            total += len(members) * wide / domain
    return seconds, used, total / (len(frame) * len(COLUMNS)), len(classes)


def ours(rows: Any, data: Path, k: int, repeat: int = 2) -> tuple[float, float, float, float, int]:
    """Return the seconds of our search and call, its processor time, the mean NCP, and the classes; all warm."""
    import duckanon

    found = []
    for _ in range(repeat):
        cpu, start = time.process_time(), time.perf_counter()
        with duckanon.anonymize(
            rows,
            quasi_identifiers=COLUMNS,
            hierarchies=hierarchies(data, COLUMNS),
            k=k,
            bounds="tight",
            output="set",
        ) as release:
            whole, used = time.perf_counter() - start, time.process_time() - cpu
            search = release.engine.progress.seconds["search"]
            found.append((search, whole, used, mean_ncp(release, True), release.classes().num_rows))
    return min(found)


def mondrian(data: Path, counts: list[int], sizes: list[int]) -> None:
    """Mondrian of some rows of ADULT, by anonypy and by us."""
    import pyarrow.parquet as pq

    print("\nMondrian: ADULT, 8 quasi-identifiers")
    if importlib.util.find_spec("anonypy") is None:
        print("anonypy is skipped: it is not installed (pip install anonypy pandas)")
        return
    table = pq.read_table(data / "data.parquet")
    columns = f"{'search':>8} {'call':>7} {'processor':>10} {'mean NCP':>9} {'classes':>8}"
    print(f"{'rows':>7} {'k':>4} {'program':<10} {columns}")
    for count in counts:
        rows = table.slice(0, count)
        for k in sizes:
            search, call, used, loss, classes = ours(rows, data, k)
            line = f"{search:>8.3f} {call:>7.2f} {used:>10.2f} {loss:>9.3f} {classes:>8}"
            print(f"{count:>7} {k:>4} {'duckanon':<10} {line}")
            seconds, theirs_used, loss, classes = theirs(rows, data, k)
            line = f"{seconds:>8.3f} {'':>7} {theirs_used:>10.2f} {loss:>9.3f} {classes:>8}"
            print(f"{count:>7} {k:>4} {'anonypy':<10} {line}")
            print(f"{'':>13}{'ratio':<10} {seconds / search:>8.0f} {seconds / call:>7.0f} {theirs_used / used:>10.0f}")


def checks(data: Path, scratch: Path) -> None:
    """What pyCANON measures of our releases, and what ours says of the same files."""
    import duckanon

    print("\nThe level that a published file reaches: ADULT, 8 quasi-identifiers, occupation sensitive, k = 5")
    if importlib.util.find_spec("pycanon") is None:
        print("pyCANON is skipped: it is not installed (pip install pycanon)")
        return
    import pandas as pd
    from pycanon import anonymity

    print(f"{'promise':<20} {'program':<10} {'k':>4} {'l':>4} {'t':>9} {'seconds':>9} {'processor':>10}")
    for name, promise in PROMISES.items():
        file = scratch / "checked.csv"
        ours_full_domain(data, data / "data.parquet", file, **promise)()

        def mine(file: Path = file) -> tuple[float, float, float]:
            levels = duckanon.privacy(file, quasi_identifiers=NAMES, sensitive=[SENSITIVE]).to_pylist()
            reached = {row["model"]: row["value"] for row in levels}
            return reached["k_anonymity"], reached["l_diversity"], reached["t_closeness"]

        def pycanon(file: Path = file) -> tuple[float, float, float]:
            frame = pd.read_csv(file, dtype=str)
            return (
                anonymity.k_anonymity(frame, NAMES),
                anonymity.l_diversity(frame, NAMES, [SENSITIVE]),
                anonymity.t_closeness(frame, NAMES, [SENSITIVE]),
            )

        for program, look in (("duckanon", mine), ("pyCANON", pycanon)):
            look()
            cpu, start = time.process_time(), time.perf_counter()
            k, l, t = look()  # noqa: E741 - the field's own name
            seconds, used = time.perf_counter() - start, time.process_time() - cpu
            print(f"{name:<20} {program:<10} {k:>4g} {l:>4g} {t:>9.6f} {seconds:>9.3f} {used:>10.3f}")


def main() -> None:
    """Compare with whatever there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--arx", metavar="CLASSPATH", help="a Java class path with ARX and what it needs")
    parser.add_argument("--repeat", type=int, default=7, help="turns that count, beside ARX")
    parser.add_argument("--rows", type=int, nargs="+", default=[3_000, 30_162], help="rows of ADULT, beside anonypy")
    parser.add_argument("-k", type=int, nargs="+", default=[10], help="sizes of classes, beside anonypy")
    parser.add_argument("--only", choices=["arx", "anonypy", "pycanon"])
    options = parser.parse_args()
    adult = options.data / "adult"
    with tempfile.TemporaryDirectory() as scratch:
        if options.only in (None, "arx"):
            full_domain(adult, options.arx, options.repeat, Path(scratch))
        if options.only in (None, "anonypy"):
            mondrian(adult, options.rows, options.k)
        if options.only in (None, "pycanon"):
            checks(adult, Path(scratch))


if __name__ == "__main__":
    main()
