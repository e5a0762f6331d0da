"""How kernels are compiled: the only place that knows numba."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def _cache_folder() -> None:
    """Keep compiled kernels in a folder that only the user can write: a cache is as trusted as code."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        # Kernels call each other across files, and numba looks only at the file of the outermost: a change of any of
        # them begins a new folder.
        sources = sorted((p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in Path(__file__).parent.glob("*.py"))
        folder = base / "duckanon" / "kernels" / hashlib.sha256(repr(sources).encode()).hexdigest()[:16]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o077:
            os.environ["NUMBA_CACHE_DIR"] = str(folder)
    except (OSError, RuntimeError, AttributeError):
        # Without a folder of its own numba decides, or compiles anew.
        return


_cache_folder()

import numba  # noqa: E402 - reads its folder when it is imported
from numba.cpython.unsafe import numbers  # noqa: E402


def _trailing_zeros(bits: Any) -> int:
    """Return the place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


# An instruction, which cannot be called where nothing is compiled.
trailing_zeros: Any = _trailing_zeros if os.environ.get("NUMBA_DISABLE_JIT") == "1" else numbers.trailing_zeros


def kernel(function: F) -> F:
    """Compile a serial kernel: without the interpreter's lock, results kept on disk, arithmetic as written."""
    compiled: Any = numba.njit(nogil=True, cache=True, fastmath=False)(function)
    return cast("F", compiled)


def part(function: F) -> F:
    """Compile what only kernels call: nothing is made for Python's sake, which halves the time to compile."""
    return cast("F", _inside(function))


def lean(function: F) -> F:
    """Compile a part that makes no arrays, nor calls what does: those it is given are not counted.

    Counting who holds an array takes a locked step each time it is handed on, which small partitions feel.
    """
    return cast("F", _inside(function, _nrt=False))


def inlined(function: F) -> F:
    """Compile a lean part into whoever calls it, which takes longer to compile where many do.

    Else every call hands over dozens of arrays, which takes longer than what is done with a small partition.
    """
    return cast("F", _inside(function, _nrt=False, forceinline=True))


def _inside(function: Callable[..., Any], **options: Any) -> Any:
    """Compile for each combination of types, but not again for each number that is written out where it is called."""
    options |= {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, fastmath=False, **options)(function)
    found = getattr(compiled, "get_call_template", None)
    if found is not None:  # else nothing is compiled
        compiled.get_call_template = lambda args, kws: found(tuple(map(numba.types.unliteral, args)), kws)
    return compiled


__all__ = ["inlined", "kernel", "lean", "part", "trailing_zeros"]
