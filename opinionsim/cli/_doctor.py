"""Whether this installation can do its work, and what is switched on around it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

import opinionsim
from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson
from opinionsim.errors import OpinionSimError

__all__ = ["doctor"]

_PACKAGES = (
    "filelock",
    "jinja2",
    "langchain-core",
    "matplotlib",
    "mesa",
    "networkx",
    "numpy",
    "pandas",
    "pydantic",
    "pyyaml",
    "rich",
    "scipy",
    "sqlalchemy",
    "typer",
)
#: Packages of each extra; what needs them is said where it is missed.
_EXTRAS = {"llm": ("langchain", "langchain-openai")}
_DATA = ("experiments", "personas", "topics")
#: Variables that make LangChain send every prompt to a tracing service.
_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
#: Variables that hold keys or addresses: only whether they are set is told.
_SECRET = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
_STORES = Path("results")


def doctor(as_json: AsJson = False) -> None:
    """Check the installation: versions, extras, data, tracing, keys, and where results go."""
    found = {
        "opinionsim": opinionsim.__version__,
        "python": platform.python_version(),
        "packages": {name: _installed(name) for name in _PACKAGES},
        "extras": {extra: {name: _installed(name) for name in names} for extra, names in _EXTRAS.items()},
        "data": {kind: _data(kind) for kind in _DATA},
        "tracing": {name: _is_on(os.environ.get(name, "")) for name in _TRACING},
        "set": {name: name in os.environ for name in _SECRET},
        "stores": {"folder": str(_STORES.absolute()), "writable": _writable(_STORES)},
    }
    problems = _problems(found)
    if as_json:
        say_json({**found, "problems": problems})
    else:
        say(_spelled(found))
        say("\n" + ("\n".join(f"PROBLEM: {problem}" for problem in problems) or "No problem found."))
    if problems:
        raise typer.Exit(OpinionSimError.exit_code)


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _data(kind: str) -> str | None:
    """Where a kind of data lies; None when it is missing."""
    from opinionsim.data import data_folder

    try:
        return str(data_folder(kind))
    except OpinionSimError:
        return None


def _is_on(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on")


def _writable(folder: Path) -> bool:
    """Whether a folder, or the nearest one above it that exists, takes new files."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _problems(found: dict[str, Any]) -> list[str]:
    """What keeps the package from working."""
    return [
        *(f"the package {name} is not installed" for name, version in found["packages"].items() if version is None),
        *(f"the {kind} of the package are missing; install it again" for kind, at in found["data"].items() if not at),
        *([] if found["stores"]["writable"] else [f"{found['stores']['folder']} cannot be written; use --store"]),
    ]


def _spelled(found: dict[str, Any]) -> str:
    extras = {
        f"extra {extra}": ", ".join(f"{name} {version or '(not installed)'}" for name, version in packages.items())
        for extra, packages in found["extras"].items()
    }
    packages = ", ".join(f"{name} {version or '(not installed)'}" for name, version in found["packages"].items())
    tracing = [name for name, on in found["tracing"].items() if on]
    rows = {
        "opinionsim": found["opinionsim"],
        "python": found["python"],
        "packages": packages,
        **extras,
        **{kind: at or "missing" for kind, at in found["data"].items()},
        "tracing": f"ON: {', '.join(tracing)} (prompts leave this machine)" if tracing else "off",
        "keys": ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in found["set"].items()),
        "results": f"{found['stores']['folder']} ({'writable' if found['stores']['writable'] else 'not writable'})",
    }
    return aligned(list(rows.items()))
