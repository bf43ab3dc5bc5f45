"""The command line: ``opinionsim COMMAND``."""

from __future__ import annotations

from opinionsim.cli._app import app as app, main as main
