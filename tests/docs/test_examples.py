"""Every example of the README and of the manual runs and says what the page shows."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest

from duckanon.interfaces.cli import options
from tests.docs.pages import CHECKOUT, DOCS, RUN, SHOWN, Block, Difference, Reader, blocks, pages, prepare


def runs(block: Block) -> bool:
    return block.language in RUN and block.left_out is None


PAGES = [page for page in pages() if any(runs(b) for b in blocks(page.read_text(encoding="utf-8")))]


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stays")
    prepare(folder)
    return folder / "hospital.parquet"


@pytest.fixture
def reader(tmp_path: Path, stays: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    shutil.copy(stays, tmp_path / "hospital.parquet")
    yield Reader(tmp_path)
    options.quiet()
    gc.collect()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(CHECKOUT)))
@pytest.mark.filterwarnings("default")
def test_the_examples_of_a_page_run(page: Path, reader: Reader) -> None:
    assert reader.read(page.read_text(encoding="utf-8")) > 0


def test_every_block_is_run_or_meant_to_be_read() -> None:
    """A language nobody runs would be an example that nobody tests."""
    for page in pages():
        for block in blocks(page.read_text(encoding="utf-8")):
            known = block.language in (*RUN, *SHOWN) or block.language.startswith("{")
            assert known, f"{page.relative_to(DOCS.parent)}, line {block.start}: {block.language!r}"


EXAMPLE = """
```python
shown = 1 + 1
shown
```

```text
{output}
```

```console
$ echo one && exit {code}
{line}
```
"""


@pytest.mark.parametrize(
    ("output", "code", "line", "holds"),
    [
        ("2", 0, "one", True),
        ("3", 0, "one", False),
        ("2", 1, "one", False),
        ("2", 0, "two", False),
        ("...", 0, "o...", True),
    ],
)
def test_a_wrong_output_and_a_failing_command_are_found(
    reader: Reader, output: str, code: int, line: str, holds: bool
) -> None:
    text = EXAMPLE.format(output=output, code=code, line=line)
    if holds:
        assert reader.read(text) == 2
    else:
        with pytest.raises(Difference):
            reader.read(text)


def test_a_part_of_a_job_file_with_an_unknown_key_is_found(reader: Reader) -> None:
    import jsonschema

    assert reader.read("```toml\n[privacy]\nk = 5\n```\n") == 1
    with pytest.raises(jsonschema.ValidationError):
        reader.read("```toml\n[privacy]\nkk = 5\n```\n")
