"""The package with the lowest versions of libraries that it allows, and with the newest: ``python tests/versions.py``.

Each is an environment of its own below ``build/versions``, without the extra `local`, whose weights cost gigabytes. In
it run the demo, the table and the report of quickstart, a study of one condition with every figure that it has, and the
tests of the core.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "versions"
#: How the resolver chooses the versions of what the package names itself.
CHOICES = {"lowest": "lowest-direct", "newest": "highest"}
ROOMS = ("analysis", "engine", "foundation", "metrics", "networks", "planning", "plots", "prompts", "schedules")
ROOMS += ("specification", "test_memory.py", "test_messages.py", "test_opinions.py", "test_personas.py")
#: What the tests need beside what they test.
TOOLS = ("axe-playwright-python", "httpx", "hypothesis", "playwright", "pytest", "pytest-timeout", "pytest-xdist")
#: Figures of another kind of study, which the tests of figures draw.
ELSEWHERE = {"before-after", "consensus", "panels", "phase", "specification-curve"} | {
    *("divisiveness", "kappas", "pairwise-accuracy", "ratings", "wins"),
}


def call(*command: Any, at: Path = PLACE) -> str:
    """What a command prints; if it fails, the script ends with all that it printed."""
    done = subprocess.run([*map(str, command)], cwd=at, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def environment(name: str, uv: Path) -> Path:
    """The folder of programs of an environment with the versions that are chosen by this name."""
    at = PLACE / name
    call(sys.executable, "-m", "venv", at)
    install = (uv, "pip", "install", "--quiet", "--python", at / "bin" / "python")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = ",".join(sorted(set(extras) - {"all", "local"}))
    call(*install, "--resolution", CHOICES[name], "--editable", f"{ROOT}[{wanted}]")
    # Those of the project, as newer ones may want more of a library than the package does.
    call(*install, "--constraint", ROOT / "constraints" / "py311.txt", *TOOLS)
    return at / "bin"


def studies(program: Path, folder: Path) -> None:
    """A demo, and quickstart whole and with one condition: tables, figures, reports."""
    folder.mkdir()
    call(program, "doctor", at=folder)
    call(program, "demo", at=folder)
    single = folder / "single.yaml"
    quickstart = (ROOT / "experiments" / "quickstart.yaml").read_text(encoding="utf-8")
    single.write_text(quickstart.partition("\nsweep:")[0] + "\n", encoding="utf-8")
    for spec in ("quickstart", single):
        store = folder / f"{Path(spec).stem}.sqlite"
        call(program, "run", spec, "--store", store, at=folder)
        call(program, "table", store, at=folder)
        call(program, "report", store, "--out", store.with_suffix(".html"), at=folder)
        for figure in json.loads(call(program, "list", "figures", "--json", at=folder)):
            if (what := figure["name"]) not in ELSEWHERE:
                file = store.with_suffix(f".{what}.png")
                call(program, "plot", what, store, "--out", file, at=folder)


def main() -> None:
    """Both environments, one after the other."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    call(sys.executable, "-m", "venv", PLACE / "uv")
    call(PLACE / "uv" / "bin" / "pip", "install", "--quiet", "uv")
    for name in CHOICES:
        began = time.monotonic()
        programs = environment(name, PLACE / "uv" / "bin" / "uv")
        studies(programs / "opinionsim", PLACE / f"studies-{name}")
        tests = [ROOT / "tests" / each for each in ROOMS]
        # Warnings of libraries that are as old as this one are theirs.
        flags = ("-q", "-n", "auto", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--disable-warnings")
        selected = ("--hypothesis-profile", "brief", "-m", "not long and not whole")
        told = call(programs / "python", "-m", "pytest", *flags, *selected, *tests, at=ROOT)
        print(f"{name}: {told.splitlines()[-1].strip('= ')}; {time.monotonic() - began:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
