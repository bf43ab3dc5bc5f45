"""The package with the lowest versions of libraries that it allows, and with the newest: ``python tests/versions.py``.

Each is an environment of its own below ``build/versions``, without the extra `local`, whose weights cost gigabytes. In
it run the demo, the table and the report of quickstart, a study of one condition with every figure that it has, and the
tests of the core, each with the first of its cases: another version of a library breaks what a line does, whatever the
values. Both go on side by side, each on a processor of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "versions"
#: How the resolver chooses the versions of what the package names itself.
CHOICES = {"lowest": "lowest-direct", "newest": "highest"}
ROOMS = ("analysis", "engine", "foundation", "metrics", "networks", "planning", "plots", "prompts", "schedules")
ROOMS += ("specification", "test_memory.py", "test_messages.py", "test_opinions.py", "test_personas.py")
#: What the tests need beside what they test.
TOOLS = ("axe-playwright-python", "httpx", "hypothesis", "playwright", "pytest", "pytest-timeout", "pytest-xdist")
#: Runs commands of the package one after another, each given as JSON, in a process that has loaded libraries once.
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from opinionsim.cli import app
for words in map(json.loads, sys.argv[1:]):
    found = CliRunner().invoke(app, words)
    if found.exit_code:
        sys.exit(f"{' '.join(words)} ended with {found.exit_code}: {found.output} {found.exception!r}")
"""
#: Figures of another kind of study, which the tests of figures draw.
ELSEWHERE = {"before-after", "consensus", "panels", "phase", "specification-curve"} | {
    *("divisiveness", "kappas", "pairwise-accuracy", "ratings", "wins"),
}


class Failed(Exception):
    """A command has failed, with all that it printed."""


def call(*command: Any, at: Path = PLACE) -> str:
    """What a command prints."""
    # Each environment keeps what it compiles: another version of numba does not take it.
    kept = PLACE / f"compiled-{Path(command[0]).parent.parent.name}"
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(kept), "MPLBACKEND": "agg"}
    done = subprocess.run([*map(str, command)], cwd=at, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
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


def studies(programs: Path, folder: Path) -> None:
    """A demo, and quickstart whole and with one condition: tables, figures, reports."""
    folder.mkdir()
    program = programs / "opinionsim"
    call(program, "doctor", at=folder)
    call(program, "demo", at=folder)
    single = folder / "single.yaml"
    quickstart = (ROOT / "experiments" / "quickstart.yaml").read_text(encoding="utf-8")
    single.write_text(quickstart.partition("\nsweep:")[0] + "\n", encoding="utf-8")
    figures = [each["name"] for each in json.loads(call(program, "list", "figures", "--json", at=folder))]
    for spec in ("quickstart", str(single)):
        store = folder / f"{Path(spec).stem}.sqlite"
        commands = [("run", spec, "--store", store), ("table", store)]
        commands += [("report", store, "--out", store.with_suffix(".html"))]
        for name in figures:
            if name not in ELSEWHERE:
                commands += [("plot", name, store, "--out", store.with_suffix(f".{name}.png"))]
        call(programs / "python", "-c", COMMANDS, *(json.dumps([*map(str, words)]) for words in commands), at=folder)


def tried(name: str) -> str:
    """What is said of the versions that are chosen by this name, once all has been run with them."""
    began = time.monotonic()
    programs = environment(name, PLACE / "uv" / "bin" / "uv")
    studies(programs, PLACE / f"studies-{name}")
    tests = [ROOT / "tests" / each for each in ROOMS]
    # Warnings of libraries that are as old as this one are theirs.
    flags = ("-q", "-n", "0", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--disable-warnings")
    selected = ("--hypothesis-profile", "brief", "-m", "not long and not whole", "-p", "tests.support.first_cases")
    told = call(programs / "python", "-m", "pytest", *flags, *selected, *tests, at=ROOT)
    return f"{name}: {told.splitlines()[-1].strip('= ')}; {time.monotonic() - began:.0f} s in all"


def main() -> None:
    """Both environments, side by side."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    try:
        call(sys.executable, "-m", "venv", PLACE / "uv")
        call(PLACE / "uv" / "bin" / "pip", "install", "--quiet", "uv")
        with ThreadPoolExecutor(len(CHOICES)) as pool:
            for said in pool.map(tried, CHOICES):
                print(said, flush=True)
    except Failed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
