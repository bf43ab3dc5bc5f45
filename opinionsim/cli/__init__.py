"""The command line: ``opinionsim COMMAND``."""

from __future__ import annotations

from opinionsim.cli._app import app, main

__all__ = ["app", "main"]
