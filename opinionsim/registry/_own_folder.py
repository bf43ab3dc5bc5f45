"""The folder in which the user's modules are found once a part is named by its path."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from types import ModuleType

#: Modules of dependencies that are called otherwise than their distributions.
_CALLED_OTHERWISE = frozenset(("multipart", "sklearn", "yaml"))


@cache
def _dependencies() -> frozenset[str]:
    """Modules of the package's dependencies and extras, whether they are installed or not."""
    named: list[str] = []
    with suppress(PackageNotFoundError):
        named = requires("opinionsim") or []
    return _CALLED_OTHERWISE | {re.split(r"[^\w.-]", each)[0].replace("-", "_").lower() for each in named}


class _OwnFolder(MetaPathFinder):
    """Finds modules in one folder that are found nowhere else, except under the names of dependencies."""

    folder = ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is."""
        if not self.folder or path is not None or fullname.lower() in _dependencies():
            return None
        return PathFinder.find_spec(fullname, [self.folder])


_own_folder = _OwnFolder()


def search_folder(folder: str) -> None:
    """Also search a folder for parts that are named by their paths, and for their imports.

    Nothing is imported from there until such a part is requested, because the folder may contain any files.

    Parameters
    ----------
    folder : str
        The folder.
    """
    _own_folder.folder = folder


def prepare_import(module: str) -> None:
    """Search the folder from now on, if a module is found nowhere else."""
    package = module.partition(".")[0]
    if _own_folder not in sys.meta_path and package not in sys.modules and find_spec(package) is None:
        sys.meta_path.append(_own_folder)
