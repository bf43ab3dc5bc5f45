"""The code and docstring of a class or function for manifests, and the files and device of a model."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
import textwrap
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

from opinionsim.errors import SpecError

#: Suffixes of the files of a folder that decide a model's answers.
_DECISIVE = (".json", ".safetensors", ".bin", ".model", ".txt")
#: Names of the files beside trained weights that say how they come about: before the first step, and at the end.
PLAN, CARD = "training.json", "card.json"


def code_of(target: Any) -> str:
    """The version of the code of a class, function or declaration of the user's own; empty where it has no file.

    A module of an installed distribution is ``distribution==version``, any other ``sha256:`` and the digest of its file
    with line ends normalised. The modules of base classes are included, except those of this package and of the
    standard library. Imports of these modules are not included.
    """
    if inspect.isclass(target):
        names = [each.__module__ for each in inspect.getmro(target)]
    else:
        names = [getattr(target, "home", None) or target.__module__]
    top = {name: name.partition(".")[0] for name in dict.fromkeys(names)}
    skipped = {__name__.partition(".")[0], "__main__", "builtins"}
    return " ".join(dict.fromkeys(filter(None, (_code(name) for name in top if top[name] not in skipped))))


def _code(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file:
        return ""
    folders = set(Path(file).resolve().parents)
    if folders & {Path(sysconfig.get_path(scheme)).resolve() for scheme in ("purelib", "platlib")}:
        return _distribution(module.partition(".")[0])
    if module.partition(".")[0] in sys.stdlib_module_names and Path(sysconfig.get_path("stdlib")).resolve() in folders:
        return ""
    text = Path(file).read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


@cache
def _distribution(package: str) -> str:
    """The installed distribution of a package, as ``distribution==version``."""
    try:
        return f"{metadata.distribution(package).name}=={metadata.version(package)}"
    except metadata.PackageNotFoundError:
        owner = metadata.packages_distributions().get(package, [""])[0]
        return f"{owner}=={metadata.version(owner)}" if owner else package


def docstring(target: Any) -> str:
    """The docstring of a class or function itself. Under ``python -OO``, which drops it, it is read from the source."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(target.__doc__ or "")
    return ast.get_docstring(_definition(target)) or ""


@cache
def field_docstrings(model: type) -> dict[str, str]:
    """Docstrings of the fields that a class itself defines, if its source is available. Reading sources is slow."""
    found: dict[str, str] = {}
    for field, text in pairwise(_definition(model).body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(told))):
                found[name] = inspect.cleandoc(told)
    return found


def _definition(target: Any) -> ast.ClassDef | ast.FunctionDef | ast.Module:
    """The source of a class or function as a tree; an empty one where there is none."""
    with suppress(OSError, TypeError, SyntaxError):
        defined = ast.parse(textwrap.dedent(inspect.getsource(target))).body[0]
        if isinstance(defined, ast.ClassDef | ast.FunctionDef):
            return defined
    return ast.Module([], [])


def digest_of_weights(folder: Path) -> str:
    """Digest of a model in one file, or of names and contents of the files of a folder that decide its answers.

    Parameters
    ----------
    folder : Path
        File of a model, or folder of a model or an adapter. Of a folder, its JSON, safetensors, bin, model and txt
        files count, except for those that say how it was trained.

    Returns
    -------
    str
        ``sha256:`` and 64 hexadecimal characters.
    """
    if folder.is_file():
        with folder.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    parts = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.suffix in _DECISIVE and file.is_file()):
        if file.name not in (PLAN, CARD):
            with file.open("rb") as stream:
                parts.update(f"{file.name}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return f"sha256:{parts.hexdigest()}"


def device_named(torch: Any, device: str) -> Any:
    """The torch device of that name, which must exist."""
    available = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if available else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise SpecError(f"device: unknown device {device!r}; valid: auto, cpu, cuda, cuda:N")
    there = ["auto", "cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if found.type == "cuda" and not (available and (found.index or 0) < torch.cuda.device_count()):
        raise SpecError(f"device: {device!r} is not on this machine; valid here: {', '.join(there)}")
    return found
