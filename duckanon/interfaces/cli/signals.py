"""Signals: SIGTERM ends the work in the same orderly way as Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType

from duckanon.errors import Terminated

INTERRUPTED = 130
TERMINATED = 143

_state = {"terminated": False}


def listen() -> None:
    """Let SIGTERM raise a KeyboardInterrupt, once: a second one must not disturb the cleanup."""
    _state["terminated"] = False
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, _terminate)


def deafen() -> None:
    """Ignore signals that come too late: the process is about to end with its exit code."""
    with contextlib.suppress(ValueError):
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)


def terminated() -> bool:
    """Return whether SIGTERM was received."""
    return _state["terminated"]


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _state["terminated"] = True
    raise Terminated
