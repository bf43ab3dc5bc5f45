"""Export one run as a file that opens without a server: the viewer's page, modules and styles, and the run."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opinionsim import watching
from opinionsim.errors import SpecError, packages
from opinionsim.foundation.templates import filled
from opinionsim.report import put_page
from opinionsim.store import StoreReader

#: Most bytes of a file before something is left out.
MOST_BYTES = 20_000_000
_STATIC = Path(__file__).parent / "static"
#: The module that draws the page; it loads the others.
_ENTRY = "view.js"
#: What the file may load: nothing from anywhere.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:"


def export(reader: StoreReader, run_id: str, path: Path, row: int | None = None, *, force: bool = False) -> list[str]:
    """Write a run as one HTML file that opens without a server.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run_id : str
        The run.
    path : Path
        The file, which is written completely or not written. It replaces an earlier page of that name.
    row : int, optional
        Row of the design, if several cells share the run; default the first.
    force : bool
        Whether to also replace any other file of that name, except a store, which is never replaced.

    Returns
    -------
    list of str
        A sentence for each part that was left out because of its size.

    Raises
    ------
    AbsentError
        If there is no such run.
    SpecError
        If the file cannot be written or exists but is not such a page, or the extra ``web`` is missing.
    """
    packages("opinionsim view --export", "web", "starlette", kind=SpecError)
    record: dict[str, Any] = {}

    def page() -> str:
        at = datetime.now(UTC).isoformat()
        record.update(watching.whole_run(reader, run_id, MOST_BYTES, row), exported_at=at)
        return _page(record)

    put_page(path, page, force=force)
    return list(record["left_out"])


def _page(record: dict[str, Any]) -> str:
    """The viewer's page with all it needs inside."""
    about = record["run"]["about"]
    shell = filled("opinionsim.web", "view.html", title=f"{about['experiment']}, run {about['run']}", store="", own="")
    shell = re.sub(r'href="/static/([\w.]+\.svg)"', lambda found: f'href="{_data(found[1], "image/svg+xml")}"', shell)
    shell = re.sub(
        r'<link rel="stylesheet" href="/static/([\w.]+)">', lambda found: f"<style>\n{_text(found[1])}</style>", shell
    )
    shell = shell.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">', 1)
    return shell.replace(f'<script type="module" src="/static/{_ENTRY}"></script>', "").replace(
        "</body>", f"{_scripts(record)}</body>"
    )


def _scripts(record: dict[str, Any]) -> str:
    """The record, and the modules by names that a map resolves: a module inside a file has no folder to look in."""
    modules = {module.name for module in _STATIC.glob("*.js")} - {_ENTRY, "room.js"}
    # What is looked up by a plain name is found from every module.
    named = {_named(name): _data(name, "text/javascript") for name in sorted(modules)}
    # A text with "<" could end the script.
    content = json.dumps(record, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<script type="application/json" id="record">{content}</script>\n'
        f'<script type="importmap">{json.dumps({"imports": named})}</script>\n'
        f'<script type="module">\n{_module(_ENTRY)}</script>\n'
    )


def _named(module: str) -> str:
    return f"opinionsim/{module}"


def _module(name: str) -> str:
    """The text of a module that loads others by plain names."""
    return re.sub(r'from "\./([\w.]+)";', lambda found: f'from "{_named(found[1])}";', _text(name))


def _text(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


def _data(name: str, kind: str) -> str:
    """A file as an address that holds it."""
    content = _module(name) if name.endswith(".js") else _text(name)
    return f"data:{kind};base64,{base64.b64encode(content.encode()).decode()}"
