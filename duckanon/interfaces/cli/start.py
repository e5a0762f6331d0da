"""What the command line leaves out when it starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


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


__all__ = ["arrow_without_pandas"]
