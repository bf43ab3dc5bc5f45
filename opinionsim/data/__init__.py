"""Finds the data that comes with the package: topics, personas, experiments and studies to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from opinionsim.errors import SpecError

DataKind = Literal["experiments", "personas", "studies", "topics"]

_HERE = Path(__file__).resolve().parent


def data_folder(kind: DataKind | str) -> Path:
    """The folder that holds one kind of data.

    Parameters
    ----------
    kind : {"experiments", "personas", "studies", "topics"}
        Kind of data.

    Returns
    -------
    Path
        Absolute path of an existing folder: inside the package where it was installed from a wheel, at
        the top of the checkout otherwise.

    Raises
    ------
    SpecError
        If `kind` is not one of these, or the installation lacks the folder.
    """
    if kind not in get_args(DataKind):
        raise SpecError(f"no data folder is called {kind!r}; valid: {', '.join(get_args(DataKind))}")
    for folder in (_HERE / kind, _HERE.parents[1] / kind):
        if folder.is_dir():
            return folder
    raise SpecError(f"this installation of opinionsim lacks its {kind} folder; install the package again")
