"""In the kernel of a notebook: long work draws a bar, and DuckDB's missing progress bar is no error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from duckanon.progress import Event, watched

KERNEL = """
import importlib.util
import sys
import types


class Shown:
    def __init__(self, html):
        self.html = [html.data]

    def update(self, html):
        self.html.append(html.data)


bars = []


def display(html, display_id=False):
    bars.append(Shown(html))
    return bars[-1]


# IPython with a kernel, and without ipywidgets.
shell = types.SimpleNamespace(kernel=object(), config={"IPKernelApp": {}})
sys.modules["IPython"] = types.SimpleNamespace(
    get_ipython=lambda: shell, __name__="IPython", __spec__=importlib.util.spec_from_loader("IPython", None)
)
html = lambda data: types.SimpleNamespace(data=data)
sys.modules["IPython.display"] = types.SimpleNamespace(HTML=html, display=display)
sys.modules["ipywidgets"] = None

import duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = true")
    print("a bar of DuckDB")
except duckdb.Error:
    print("no bar of DuckDB")

import duckanon
import duckanon.progress
import pyarrow as pa

duckanon.progress.DELAY = duckanon.progress._PAUSE = 0.0
people = pa.table({"age": list(range(200))})
with duckanon.anonymize(people, quasi_identifiers=["age"], k=5) as release:
    print(release.rows_published, len(bars), bars[0].html[-1] == "", all("<progress" in h for h in bars[0].html[:-1]))
    release.measure()
    print(len(bars), bars[0].html[-1] == "")
duckanon.anonymize(people, quasi_identifiers=["age"], k=5, progress=lambda event: None).close()
print(len(bars))
"""


def test_a_kernel_anonymizes_and_shows_a_bar_that_goes_away() -> None:
    done = subprocess.run([sys.executable, "-c", KERNEL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["no bar of DuckDB", "200 1 True True", "1 True", "1"]


def test_outside_of_a_notebook_nothing_is_drawn() -> None:
    with watched(None) as listener:
        assert listener is None
    seen: list[Event] = []
    with watched(seen.append) as listener:
        assert listener is not None
        listener(Event("search"))
    assert len(seen) == 1


@pytest.mark.parametrize("share", [-1.0, 0.5, 9.0])
def test_a_bar_is_never_wider_than_its_box(share: float) -> None:
    from duckanon.progress import _bar

    text = _bar(Event("<b>", done=share * 10, total=10), 1.0)
    value = float(text.split('value="')[1].split('"')[0])
    assert 0 <= value <= 1
    assert "<b>" not in text
