"""The command line: argument parsing and terminal output only."""

from __future__ import annotations

from duckanon.imports import uncollected

with uncollected():
    from duckanon.interfaces.cli.app import app, main

__all__ = ["app", "main"]
