"""Load public names of a package on first use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package (PEP 562) whose names are loaded on first use.

    The ``__init__`` of the package lists each name once, under ``if TYPE_CHECKING:`` as ``from MODULE import NAME as
    NAME``. A name is imported when it is requested. Names from folders that were deleted are left out.

    Parameters
    ----------
    package : str
        Name of the package.

    Returns
    -------
    load : callable
        Returns the object of a name, or a module that holds such objects; of ``__all__``, the names that the package
        imports. Raises an AttributeError for any other name.
    names : callable
        Returns all names of the package, sorted.
    """

    @cache
    def homes() -> dict[str, str]:
        source = sys.modules[package].__loader__.get_source(package)  # type: ignore[union-attr]
        found = {}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(package.partition(".")[0]):
                for each in (each for each in node.names if each.asname):
                    found[each.name] = f"{package}.{each.name}" if node.module == package else str(node.module)
        return {name: home for name, home in found.items() if find_spec(".".join(home.split(".")[:2]))}

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        itself = f"{package}.{name}"
        home = itself if itself in homes().values() else homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home)
        return module if home == itself else getattr(module, name)

    return load, lambda: sorted({*vars(sys.modules[package]), *homes()})
