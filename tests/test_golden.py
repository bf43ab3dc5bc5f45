"""The experiments and studies that come with the package, small and scripted, give what they gave before, to the byte.

``tests/golden.json`` holds hashes of each one's run ids, prompts, frames column by column, tables, texts and figures.
What tells time, versions or the state of git is left out. As a script, with names of experiments or for all of them::

    python tests/test_golden.py --texts FOLDER    # print what differs; write what is hashed, to compare with diff -r
    python tests/test_golden.py --write           # write the hashes anew: only when a decision record says what changed
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import yaml
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.llm import Question

ROOT = Path(__file__).parent.parent
HASHES = ROOT / "tests" / "golden.json"
STORE = "golden.sqlite"
FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics", "entries")
SESSIONS = ("selections", "statements", "ratings", "other_rules")

#: Figures, and whether they have numbers to save.
FIGURES = {"panels": False, "trajectories": False, "distribution": False, "ribbons": True, "density": True,
           "network": True, "transitions": True, "phase": True, "before-after": True, "consensus": True,
           "specification-curve": False}  # fmt: skip
#: What is printed of a store, once.
PRINTED = ("table", "table --json", "table --form csv", "table --as-published", "status --json", "status --runs",
           "show --agent 0", "show --turn 1 --prompt", "show --shifts 3", "replay")  # fmt: skip
#: A classic sweep, and a simulation of one model.
SWEEP = "deffuant --agents 20 --steps 20 --over epsilon=[0.2,0.4] --replicates 2"
SIMULATION = "--agents 20 --network ring --steps 10 --json"

#: What makes an experiment small; the structures are small as they are.
DYADIC = {"kind": "dyadic", "network": "complete"}
ALONE = [{"kind": kind, "reports": 3, "label": kind} for kind in ("independent", "no-role-play")]
TREATMENTS = [
    {"topic.framing": ["falsehood", "truth"], "cognition.confirmation_bias": ["none", "strong"]},
    {"interaction": ALONE},
]
SMALL: dict[str, dict[str, Any]] = {
    "chuang2024/controls": {
        "sweep/interaction": [
            {**DYADIC, "steps": 6, "label": "interaction"},
            *ALONE,
            {"kind": "remembered", "steps": 6, "label": "remembered"},
        ]
    },
    # Nobody has a counterpart in a single replicate.
    "controls": {"population": {"size": 4}, "replicates": 2},
    "chuang2024/figure4": {"interaction/steps": 6, "sweep": TREATMENTS},
    "chuang2024/figure5": {"interaction/steps": 6},
    "chuang2024/figure6": {"interaction/steps": 6, "sweep": TREATMENTS},
    "chuang2024/tables": {"interaction/steps": 2, "sweep/topic.name": ["flat-earth"]},
    "chuang2024/worlds": {"interaction/steps": 6, "replicates": 1},
    "classic_quickstart": {"interaction/exposures": 1, "population/size": 10},
    "compare_quickstart": {"interaction/steps": 6},
    "demo": {"interaction/steps": 6},
    "quickstart": {"interaction/steps": 6, "replicates": 2},
    "real_model": {"interaction/steps": 4, "model/name": "scripted", "measurement/classifier": "lexicon"},
    "real_small": {"model/name": "scripted"},
    "selective_refusal": {
        "replicates": 2,
        "interaction/steps": 6,
        "sweep": [
            {"model.options": [{"label": "refuse", "refusal_rate": 0.45, "refusal_side": "positive"}, {"label": "no"}]},
            {"interaction": [{"kind": "yoked", "steps": 6, "source": {"cell": "model.options=refuse"}}]},
        ],
    },
}
PEOPLE, CLASSIC = "studies/people", "classic models"
NAMES = [*sorted(path.relative_to(ROOT / "experiments").with_suffix("").as_posix()
                 for path in (ROOT / "experiments").rglob("*.yaml")),
         *sorted(f"studies/{path.parent.name}" for path in (ROOT / "studies").glob("*/study.yaml")),
         PEOPLE, CLASSIC]  # fmt: skip
#: One experiment of each way to carry out; verification takes the others too.
OFTEN = ("classic_quickstart", "consensus_quickstart", "plurals/charter_school", "room_quickstart")


class Guest:
    """Answers at every seat, always the same."""

    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        form = question.form
        if form.kind == "ratings":
            return form.written({item: str(form.points[0]) for item in form.items})
        said = " ".join(["I say so."] * (form.min_words or 1))
        return form.items[0] if form.items else "" if form.optional else said


def _commanded(arguments: str, *more: object) -> str:
    """What a command prints; if that is nothing, what it says on its way, as where it refuses."""
    done = CliRunner().invoke(app, [*arguments.split(" "), *map(str, more)])
    return done.stdout or done.output


def _timeless(name: str) -> bool:
    return not name.endswith(("_at", "_s", "version", "versions", "git"))


def _printed(command: str, *more: object) -> str:
    """What a command prints of the store; data without what tells time and versions."""
    name, *options = command.split(" ")
    text = _commanded(" ".join([name, STORE, *options]), *more)
    if "--json" not in options or not text.startswith(("{", "[")):
        return text
    data = json.loads(text, object_hook=lambda found: {key: found[key] for key in found if _timeless(key)})
    return json.dumps(data, indent=1, ensure_ascii=False)


def _figure(what: str, *more: object) -> str:
    """A figure as SVG; what is said where there is none to draw."""
    target = Path(f"{what}.svg")
    with mpl.rc_context({"svg.fonttype": "none"}):
        said = _commanded(f"plot {what} {STORE} --out {target}", *more)
    if not target.exists():
        return said
    # Matplotlib names what clips a line after its place in memory; here it has a number in order of appearance.
    numbers: dict[str, str] = {}
    return re.sub(
        r"\bp[0-9a-f]{10}\b",
        lambda found: numbers.setdefault(found[0], str(len(numbers))),
        target.read_text(encoding="utf-8"),
    )


def _prompts(results: osim.Results) -> dict[str, str]:
    """The literal prompts of all calls, by the name of the call."""
    links = {prompt: (before, f"{role}: {text}\n") for prompt, before, role, text in results.prompts()}

    def whole(prompt: str) -> str:
        before, last = links[prompt]
        return whole(before) + last if before else last

    return {
        f"prompts {call}": "\n".join(map(whole, rows["prompt_hash"]))
        for call, rows in results.calls.groupby("call", sort=True)
    }


def _frames(results: osim.Results) -> Iterator[tuple[str, Any]]:
    for name in FRAMES:
        yield name, getattr(results, name)
    if not results.run_ids:
        yield "points", results.units
    if (results.runs["interaction"] == "consensus").any():
        from opinionsim import consensus

        for name in SESSIONS:
            yield name, getattr(consensus, name)(results)


def _shown(results: osim.Results) -> Iterator[tuple[str, str]]:
    """Frames, tables, texts and figures of a store, by name; a column of a frame after a colon."""
    for name, frame in _frames(results):
        yield f"frame {name}: columns", " ".join(map(str, frame.columns))
        for column in filter(_timeless, map(str, frame.columns)):
            yield f"frame {name}: {column}", f"{frame[column].dtype}\n{frame[column].to_csv(index=False, header=False)}"
    for command in PRINTED:
        # Only runs are replayed.
        if command != "replay" or results.run_ids:
            yield command, _printed(command)
    for kind in sorted(results.metrics["kind"].unique()):
        yield f"table --json --kind {kind}", _printed("table --json", "--kind", kind)
    firsts = [f"{run.cell}/{run.replicate}" for run in results.runs.drop_duplicates("cell").itertuples()]
    for command in ("show --run", "show --json --run"):
        yield command, "\n".join(_printed(command, run) for run in firsts)
    for what, counted in FIGURES.items():
        more = ("--x", "cell" if results.run_ids else "epsilon") if what == "phase" else ()
        yield f"figure {what}", _figure(what, *more, *(("--csv", f"{what}.csv") if counted else ()))
        if (numbers := Path(f"{what}.csv")).exists():
            yield f"numbers {what}", numbers.read_text(encoding="utf-8")


def specified(name: str) -> Path:
    """A specification that comes with the package, with its changes of :data:`SMALL`, in the current folder."""
    source = ROOT / "experiments" / f"{name}.yaml"
    if name.startswith("studies/"):
        shutil.copytree(ROOT / name, ".", dirs_exist_ok=True)
        source = ROOT / name / "study.yaml"
    if name == PEOPLE:
        _commanded(f"import people.csv mapping.yaml --twins agents.yaml --store {STORE}")
        source = Path("my-study.yaml")
    spec = yaml.safe_load(source.read_text(encoding="utf-8"))
    # People have a replicate each.
    for path, value in () if name == PEOPLE else {"replicates": 1, **SMALL.get(name, {})}.items():
        folder, _, last = path.rpartition("/")
        (spec[folder] if folder else spec)[last] = value
    target = Path("spec.yaml")
    target.write_text(json.dumps({key: value for key, value in spec.items() if key != "description"}), encoding="utf-8")
    return target


def taken(name: str) -> dict[str, str]:
    """What one experiment gives, as texts by name; it is carried out in the current folder, which is empty."""
    if name == CLASSIC:
        found = {f"abm {model}": _commanded(f"abm {model} {SIMULATION}") for model in osim.classic.MODELS}
        found |= {f"abm {model} --describe": _commanded(f"abm {model} --describe") for model in osim.classic.MODELS}
        _commanded(f"abm {SWEEP} --store {STORE}")
        return found | dict(_shown(osim.load(f"sqlite:///{STORE}")))
    spec = specified(name)
    found = {"plan": _commanded(f"plan {spec}"), "preview": _commanded(f"preview {spec}")}
    results = osim.run(osim.load_experiment(spec), store=f"sqlite:///{STORE}", people=Guest())
    found |= {"run ids": "\n".join(results.run_ids), **_prompts(results), **dict(_shown(results))}
    return found | {"consensus run": _commanded(f"consensus run {spec} --store {STORE}")}


def _differing(name: str, texts: Mapping[str, str], hashes: Mapping[str, str]) -> list[str]:
    """Names of all that is not as it was, is there no more, or is new."""
    found = _hashes(texts)
    return [f"{name}: {each}" for each in sorted({*found, *hashes}) if found.get(each) != hashes.get(each)]


def _hashes(texts: Mapping[str, str]) -> dict[str, str]:
    return {each: hashlib.sha256(text.encode()).hexdigest()[:10] for each, text in texts.items()}


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_an_experiment_gives_what_it_gave(name: str) -> None:
    assert _differing(name, taken(name), json.loads(HASHES.read_text(encoding="utf-8"))[name]) == []


def _write(texts: Mapping[str, str], folder: Path) -> None:
    """Write texts into files of a folder; those of the columns of a frame into one."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[str]] = {}
    for each, text in texts.items():
        item, _, column = each.partition(": ")
        files.setdefault(item, []).append(f"== {column}\n{text}" if column else text)
    for item, found in files.items():
        suffix = "svg" if item.startswith("figure") else "txt"
        (folder / f"{item.replace('/', ' ')}.{suffix}").write_text("\n".join(found), encoding="utf-8")


def main() -> None:
    """Print what differs, and write texts or hashes where that is asked for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--texts", type=lambda path: Path(path).absolute())
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    kept = json.loads(HASHES.read_text(encoding="utf-8"))
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            texts = taken(name)
            os.chdir(ROOT)
        for each in _differing(name, texts, kept.get(name, {})):
            print(each)
        if given.texts:
            _write(texts, given.texts / name)
        kept[name] = _hashes(texts)
    if given.write:
        kept = {name: kept[name] for name in NAMES}
        HASHES.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
