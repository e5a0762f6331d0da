"""Imports without looking for garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import modules in here: nothing is looked through for garbage until they are there.

    Nearly all that modules make stays until the process ends. While some hundred of them are imported, Python would
    look through all of it again and again, which takes longer than most of the imports.

    Examples
    --------
    >>> import gc
    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        # By whoever calls, or around us.
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
