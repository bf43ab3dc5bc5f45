"""The command new, which creates a folder for your own study."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from opinionsim.cli._console import say
from opinionsim.errors import SpecError, meant

#: What stands for the name of the study in the files that are copied, and for the experiment that one comes from.
_NAME, _ORIGIN = "my-study", "ORIGIN"
#: Names of files that Windows keeps for devices.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def new(name: str, origin: Annotated[str, typer.Option("--from")] = "dyads") -> None:
    """Create a folder for your own study. It runs unchanged, and comments say what to change first.

    Parameters
    ----------
    name : NAME
        Name of the study and of its new folder.
    origin : KIND
        What to start from: a kind of study, or the name of an experiment in the package; an unknown name is answered
        with all there are. Default: dyads.
    """
    _check_name(name)
    files = _files(name, origin)
    place = Path(name)
    if os.path.lexists(place):
        raise SpecError(f"{name} already exists here; give another name or move it")
    # Beside its place and moved there once it is whole.
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=place.parent) as scratch:
        folder = Path(scratch) / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        folder.rename(place)
    say("Made:")
    for file in files:
        say(f"  {place / file}")
    say("\nNext:")
    commands = re.findall(r"^(opinionsim .+?)(?: +#.*)?$", files["README.md"], re.MULTILINE)
    run = next(at for at, command in enumerate(commands) if command.startswith("opinionsim run "))
    for command in (f"cd {name}", *commands[: run + 1]):
        say(f"  {command}")


def _check_name(name: str) -> None:
    """Check that a name can be that of a folder, of an experiment and of its store."""
    from opinionsim.foundation.documents import parse_value

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,79}", name):
        raise SpecError(
            f"{name!r} cannot name a study; a name is not a path, starts with a letter, and has at most 80 letters, "
            "digits, dots, hyphens and underscores, as in town-square"
        )
    if _DEVICES.fullmatch(name) or name.endswith(".") or not isinstance(parse_value(name, "NAME"), str):
        raise SpecError(f"{name!r} cannot name a study because it means something else in YAML or Windows")


def _files(name: str, origin: str) -> Mapping[str, str]:
    """The files of a study of that name: their text, the README first."""
    from opinionsim.foundation.data import PACKAGED, data_folder, origins

    known = origins()
    if origin not in known:
        raise SpecError(f"--from {origin}: no study or experiment{meant(origin, known)}; valid: {', '.join(known)}")
    place = known[origin]
    if place.is_dir():
        paths = sorted(place.iterdir())
        texts = {path.name: path.read_text(encoding="utf-8") for path in paths if path.is_file()}
    else:
        readme = (data_folder("studies") / PACKAGED / "README.md").read_text(encoding="utf-8")
        spec = re.sub("(?m)^name: .*$", f"name: {_NAME}", place.read_text(encoding="utf-8"), count=1)
        texts = {"README.md": readme.replace(_ORIGIN, origin), "study.yaml": spec}
    return {file: text.replace(_NAME, name) for file, text in texts.items()}
