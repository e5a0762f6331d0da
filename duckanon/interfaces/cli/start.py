"""What the command line leaves out when it starts."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

from duckanon.imports import uncollected


class _Refused:
    """A finder of modules for which pandas is not there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
        return None


def arrow_without_pandas() -> None:
    """Let pyarrow make its first array as if there were no pandas: it would import that, which no command here needs.

    That import takes a quarter of a second. Whoever imports pandas later, or asks pyarrow for a frame, still gets it.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    refused = _Refused()
    sys.meta_path.insert(0, refused)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(refused)


@contextmanager
def modules_kept() -> Iterator[None]:
    """Import in here what a command needs, in a process that does nothing else and ends after it.

    What is there afterwards is looked through for garbage when the process ends, and not before. Memory that the
    command itself lets go of is found as ever.
    """
    with uncollected():
        arrow_without_pandas()
        yield
        gc.freeze()
        # What an extension module still has when the process ends, it may report as leaked.
        atexit.register(gc.unfreeze)


__all__ = ["arrow_without_pandas", "modules_kept"]
