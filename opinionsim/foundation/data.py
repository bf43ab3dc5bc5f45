"""Data that comes with the package: topics, personas, experiments and example studies."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from opinionsim.errors import SpecError

DataKind = Literal["experiments", "personas", "studies", "topics"]

#: Folder of the README of studies that come from an experiment of the package.
PACKAGED = "packaged"
_PACKAGE = Path(__file__).resolve().parents[1]


def data_folder(kind: DataKind | str) -> Path:
    """The folder with one kind of data.

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
        raise SpecError(f"there is no data folder {kind!r}; valid: {', '.join(get_args(DataKind))}")
    for folder in (_PACKAGE / "data" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise SpecError(f"this installation of opinionsim lacks its {kind} folder; reinstall the package")


def data_file(kind: DataKind, name: str) -> Path:
    """Path of a YAML file of one kind of data, by its name without suffix.

    Raises
    ------
    SpecError
        If there is no such file; the error lists the valid names.
    """
    folder = data_folder(kind)
    path = folder / f"{name}.yaml"
    if not path.is_file():
        valid = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
        raise SpecError(f"{kind}: unknown {name!r}; valid: {valid}")
    return path


def origins() -> dict[str, Path]:
    """The folders of studies and the files of experiments that a study of one's own can begin from, by name."""
    studies, experiments = data_folder("studies"), data_folder("experiments")
    kinds = sorted(path.parent for path in studies.glob("*/README.md") if path.parent.name != PACKAGED)
    files = sorted(experiments.rglob("*.yaml"))
    named = {path.relative_to(experiments).with_suffix("").as_posix(): path for path in files}
    return {**{path.name: path for path in kinds}, **named}
