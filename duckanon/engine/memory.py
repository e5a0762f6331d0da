"""How the memory of a process is shared out."""

from __future__ import annotations

import ctypes
import os
import re
import sys

from duckanon.errors import ParameterError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z%]+)", re.IGNORECASE)
_UNITS = {"b": 1, "bytes": 1, "byte": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_LIBRARIES = 450 * 10**6
"""What is there besides data: the interpreter, libraries and kernels that were just compiled (measured)."""
_LEAST = 300 * 10**6
"""As much as the database needs to sort and count many rows."""
_AMPLE = 2 * 10**9
"""Processes that may use so much need not save on what allocators keep."""


def size_in_bytes(size: str) -> int:
    """Return a size such as "2GB", "512 MiB" or "50%" (of the machine's memory) as a number.

    Examples
    --------
    >>> size_in_bytes("1.5GB"), size_in_bytes("512 MiB")
    (1500000000, 536870912)
    """
    found = _SIZE.fullmatch(size.strip())
    number, unit = (found[1], found[2].lower()) if found is not None else ("", "")
    if unit == "%":
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * float(number) / 100)
    if unit not in _UNITS:
        raise ParameterError(f"A size of memory is a number and a unit, such as '2GB'. Got {size!r}.")
    return int(float(number) * _UNITS[unit])


def share_of_database(whole: int) -> int:
    """Return how much of a process's memory its database gets: what arrays and libraries leave.

    Where the whole is little, that is the half of it, up to 300 MB.

    Examples
    --------
    >>> share_of_database(200_000_000), share_of_database(1_000_000_000), share_of_database(8_000_000_000)
    (100000000, 300000000, 5550000000)
    """
    return max(min(whole // 2, _LEAST), whole - whole // 4 - _LIBRARIES)


def keep_little(whole: int) -> None:
    """Let Arrow ask the C library for memory where a process may use little; it looks here when it is loaded.

    Its own allocator is faster and keeps what was freed, some 50 MB of it while a file is written.
    """
    if whole < _AMPLE:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def give_back() -> None:
    """Return memory that was freed to the operating system.

    The C library keeps it for later otherwise, and the database, which asks for memory by itself, cannot use it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


__all__ = ["give_back", "keep_little", "share_of_database", "size_in_bytes"]
