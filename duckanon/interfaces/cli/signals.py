"""Signals: SIGTERM ends the work in the same orderly way as Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

from duckanon.errors import Terminated

INTERRUPTED = 130
TERMINATED = 143

_state = {"terminated": False, "left behind": False, "all closed": False}


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


def leave_behind() -> None:
    """Note that a thread of cancelled work still runs: the process must not wait for it when it ends."""
    _state["left behind"] = True


def all_closed() -> None:
    """Note that the command has closed whatever it opened: ending the process at once loses nothing."""
    _state["all closed"] = True


def end(code: int) -> NoReturn:
    """End the process; at once, private folders removed, where a thread was left behind."""
    if not _state["left behind"]:
        if _state["all closed"] and all(t.daemon or t is threading.main_thread() for t in threading.enumerate()):
            _end_at_once(code)
        sys.exit(code)
    from duckanon.engine.process import remove_private_folders

    remove_private_folders()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_at_once(code: int) -> None:
    """End as usual, but let the system take back the memory: object by object that takes as long as many imports."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        # Whoever reads along has gone: the usual end says so.
        return
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _state["terminated"] = True
    raise Terminated
