"""The peak memory of the process."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.MULTILINE)


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes.

    It includes data, the interpreter and the used pages of libraries (the latter two take about 350 MB). Spilled files
    are written and read, not mapped, and are not included.

    Examples
    --------
    >>> peak_memory() > 1_000_000
    True
    """
    # On Linux the figure of getrusage is inherited from the parent process; this one is not.
    try:
        found = _PEAK.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return in_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sys.platform)


def in_bytes(largest: int, platform: str) -> int:
    """Return the figure of getrusage in bytes: macOS counts bytes, every other system kibibytes.

    Examples
    --------
    >>> in_bytes(2048, "linux"), in_bytes(2048, "darwin")
    (2097152, 2048)
    """
    return largest if platform == "darwin" else largest * 1024
