"""The check of an installation and its environment."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import opinionsim
from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson
from opinionsim.errors import OpinionSimError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: Packages and variables of the environment by what they are to the check.
_KNOWN: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("doctor.toml").read_text(encoding="utf-8"))
_DATA = ("experiments", "personas", "topics")
_STORES = Path("results")


def doctor(
    as_json: AsJson = False,
    full: bool = False,
) -> None:
    """Check the installation: versions, extras, data, tracing, keys, hardware and the results folder.

    Parameters
    ----------
    full
        Load torch to see which devices it can use. This takes seconds.
    """
    packages: dict[str, dict[str, str | None]] = {}
    for extra, requirement in _required():
        packages.setdefault(extra, {})[requirement.name] = _installed(requirement.name)
    nvidia = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None
    found = {
        "opinionsim": opinionsim.__version__,
        "python": platform.python_version(),
        "packages": packages.pop("", {}),
        "extras": packages,
        "providers": {name: _installed(name) for name in _KNOWN["providers"]},
        "data": {kind: _data(kind) for kind in _DATA},
        "tracing": {name: _is_on(os.environ.get(name, "")) for name in _KNOWN["tracing"]},
        "tracing_allowed": _is_on(os.environ.get("OPINIONSIM_TRACING", "")),
        # The package sets HF_HUB_DISABLE_TELEMETRY where the user has not.
        "hub_telemetry": "HF_HUB_DISABLE_TELEMETRY" in os.environ
        and not any(_is_on(os.environ.get(name, "")) for name in _KNOWN["no_telemetry"]),
        "set": {name: name in os.environ for name in _KNOWN["secret"]},
        "hardware": {"bf16": _cpu_bf16(), "nvidia": nvidia, "torch": _torch() if full else None},
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


def _required() -> Iterator[tuple[str, Requirement]]:
    """What the package requires, under no name, and what each of its extras does, under the name of the extra."""
    from packaging.requirements import Requirement

    extras = [extra for extra in metadata.metadata("opinionsim").get_all("Provides-Extra") or () if extra != "all"]
    for line in metadata.requires("opinionsim") or ():
        requirement = Requirement(line)
        for extra in extras if requirement.marker else [""]:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                yield extra, requirement


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _data(kind: str) -> str | None:
    """Folder of a kind of data; None when it is missing."""
    from opinionsim.foundation.data import data_folder

    try:
        return str(data_folder(kind))
    except OpinionSimError:
        return None


def _is_on(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on")


def _cpu_bf16(about: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Whether the processor computes in bfloat16, which makes local models fast; None if that is not known."""
    try:
        flags = about.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return None
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(flags))


def _torch() -> dict[str, Any]:
    """Devices and threads that torch can use, or why it cannot be loaded."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return {"error": str(error).partition("\n")[0]}
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {
        "cuda": [torch.cuda.get_device_name(index) for index in range(count)],
        "mps": bool(torch.backends.mps.is_available()),
        "threads": torch.get_num_threads(),
    }


def _writable(folder: Path) -> bool:
    """Whether a folder, or its nearest existing parent, takes new files."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _problems(found: dict[str, Any]) -> list[str]:
    """Problems that keep the package from working."""
    return [
        *(f"the package {name} is not installed" for name, version in found["packages"].items() if version is None),
        *(
            f"{each.name} {version} is installed, but opinionsim needs {each.specifier}; "
            f'pip install "{each.name}{each.specifier}"'
            for each in {each.name: each for _, each in _required()}.values()
            if (version := _installed(each.name)) and not each.specifier.contains(version, prereleases=True)
        ),
        *(f"the package's {kind} are missing; reinstall it" for kind, at in found["data"].items() if not at),
        *(
            f"{name} makes LangChain refuse every call; unset it"
            for name in ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER")
            if os.environ.get(name, "").lower() not in ("", "0", "false")
        ),
        *([] if found["stores"]["writable"] else [f"{found['stores']['folder']} is not writable; use --store"]),
    ]


def _spelled(found: dict[str, Any]) -> str:
    extras = {f"extra {extra}": _versions(packages) for extra, packages in found["extras"].items()}
    hardware = found["hardware"]
    rows = {
        "opinionsim": found["opinionsim"],
        "python": found["python"],
        "packages": _versions(found["packages"]),
        **extras,
        "providers": _versions(found["providers"]),
        **{kind: at or "missing" for kind, at in found["data"].items()},
        "tracing": _tracing(found),
        "telemetry": "none from this package; "
        + (
            "the Hugging Face libraries report downloads to the hub (set HF_HUB_DISABLE_TELEMETRY=1 to stop)"
            if found["hub_telemetry"]
            else "the Hugging Face libraries report nothing beyond downloads"
        ),
        "keys": ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in found["set"].items()),
        "hardware": f"bfloat16 on the processor: {_ANSWERS[hardware['bf16']]}; "
        f"NVIDIA driver: {_ANSWERS[hardware['nvidia']]}",
        **({"torch": _seen_by_torch(hardware["torch"])} if hardware["torch"] else {}),
        "results": f"{found['stores']['folder']} ({'writable' if found['stores']['writable'] else 'not writable'})",
    }
    return aligned(list(rows.items()))


_ANSWERS = {True: "yes", False: "no", None: "unknown"}


def _versions(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or '(not installed)'}" for name, version in packages.items())


def _tracing(found: dict[str, Any]) -> str:
    """Whether LangChain's tracing sends prompts to its service, and why."""
    asked = ", ".join(name for name, on in found["tracing"].items() if on)
    if found["tracing_allowed"]:
        return f"ON: {asked} (prompts leave this machine)" if asked else "off (OPINIONSIM_TRACING would allow it)"
    return f"off ({asked} ignored without OPINIONSIM_TRACING=1)" if asked else "off"


def _seen_by_torch(seen: dict[str, Any]) -> str:
    if "error" in seen:
        return f"cannot be loaded: {seen['error']}"
    devices = ", ".join(seen["cuda"]) or "none"
    return f"CUDA devices {devices}, MPS {_ANSWERS[seen['mps']]}, {seen['threads']} threads"
