"""Being stopped from outside: SIGTERM ends the work as orderly as Ctrl-C does."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType

INTERRUPTED = 130
TERMINATED = 143

_state = {"terminated": False}


def listen() -> None:
    """From now on let SIGTERM raise a KeyboardInterrupt, once: a second one must not disturb the cleaning up."""
    _state["terminated"] = False
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, _terminate)


def deafen() -> None:
    """Ignore what comes too late to stop anything: the process ends by itself, with its exit code."""
    with contextlib.suppress(ValueError):
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)


def terminated() -> bool:
    """Say whether SIGTERM has come."""
    return _state["terminated"]


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _state["terminated"] = True
    raise KeyboardInterrupt
