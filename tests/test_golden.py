"""The experiments that come with the package, small and scripted, give what they gave before, to the byte.

``tests/golden.json`` holds a hash of each experiment's run ids, prompts, frames, tables and figures. Columns that tell
time, versions or the state of git are left out. ``python tests/test_golden.py`` writes the file anew; do so only when a
decision record says what changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import yaml
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.errors import OpinionSimError
from opinionsim.llm import Question

FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")
ROOT = Path(__file__).parent.parent
HASHES = ROOT / "tests" / "golden.json"

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
    "classic_quickstart": {"interaction/exposures": 1},
    "compare_quickstart": {"interaction/steps": 6},
    "demo": {"interaction/steps": 6},
    "quickstart": {"interaction/steps": 6, "replicates": 2},
    "real_model": {"interaction/steps": 4, "model/name": "scripted", "measurement/classifier": "lexicon"},
    "selective_refusal": {
        "interaction/steps": 6,
        "sweep": [
            {"model.options": [{"label": "refuse", "refusal_rate": 0.45, "refusal_side": "positive"}, {"label": "no"}]},
            {"interaction": [{**DYADIC, "steps": 6, "skips": {"cell": "model.options=refuse"}, "label": "same turns"}]},
        ],
    },
}
NAMES = sorted(path.relative_to(ROOT / "experiments").with_suffix("").as_posix()
               for path in (ROOT / "experiments").rglob("*.yaml"))  # fmt: skip

FIGURES: dict[str, Callable[[osim.Results], Any]] = {
    "panels": lambda results: osim.plots.panels(results),
    "trajectories": lambda results: osim.plots.trajectories(results, run=0),
    "ribbons": lambda results: osim.plots.ribbons(results),
    "density": lambda results: osim.plots.density(results),
    "network": lambda results: osim.plots.network_snapshots(results, run=0),
    "before-after": lambda results: osim.plots.before_after(results),
}

#: One experiment of each way to carry out and to report; verification takes the others too.
OFTEN = ("classic_quickstart", "consensus_quickstart", "demo", "events",
         "plurals/charter_school", "room_quickstart", "structures")  # fmt: skip


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _columns(frame: Any) -> Any:
    return frame[[name for name in frame.columns if not str(name).endswith(("_at", "_s"))]]


def _svg(draw: Callable[[osim.Results], Any], results: osim.Results) -> str:
    """A figure as SVG; the message where there is none to draw."""
    with mpl.rc_context({"svg.hashsalt": "golden", "svg.fonttype": "none"}):
        try:
            drawn = draw(results)
        except OpinionSimError as error:
            return str(error)
        figure = drawn if hasattr(drawn, "savefig") else drawn.figure
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
        # Matplotlib names what clips a line after its place in memory; here it has a number in order of appearance.
        numbers: dict[str, str] = {}
        return re.sub(
            r"\bp[0-9a-f]{10}\b", lambda found: numbers.setdefault(found[0], str(len(numbers))), target.getvalue()
        )


def _prompts(results: osim.Results) -> Iterator[str]:
    """The literal prompts of the first and last call of each act of a run."""
    calls = results.calls
    for _, rows in calls.groupby(["run_id", "act", "call"], sort=True):
        for row in (rows.iloc[0], rows.iloc[-1]):
            key = (str(row["run_id"]), int(row["turn"]), str(row["call"]), int(row["attempt"]))
            yield "\n".join(f"{message.role}: {message.content}" for message in results.prompt(*key))


def _small(name: str) -> dict[str, Any]:
    """A packaged specification with its changes of :data:`SMALL`, whose keys are paths."""
    spec = yaml.safe_load((ROOT / "experiments" / f"{name}.yaml").read_text(encoding="utf-8"))
    for path, value in {"replicates": 1, **SMALL.get(name, {})}.items():
        folder, _, last = path.rpartition("/")
        (spec[folder] if folder else spec)[last] = value
    return {key: value for key, value in spec.items() if key != "description"}


def _commanded(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.output


class _Guest:
    """Answers at every seat, always the same."""

    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        form = question.form
        if form.kind == "ratings":
            return form.written({item: str(form.points[0]) for item in form.items})
        return form.items[0] if form.items else "" if form.optional else "I say so."


def taken(name: str) -> dict[str, str]:
    """Hashes of one experiment, carried out in the current folder."""
    spec = Path("spec.yaml")
    spec.write_text(json.dumps(_small(name)), encoding="utf-8")
    store = "golden.sqlite"
    Path(store).unlink(missing_ok=True)
    results = osim.run(osim.load_experiment(spec), store=f"sqlite:///{store}", people=_Guest())
    found = {f"frame {each}": _hash(_columns(getattr(results, each)).to_csv(index=False)) for each in FRAMES}
    found["run ids"] = _hash(*results.run_ids)
    found["prompts"] = _hash(*_prompts(results))
    found["preview"] = _hash(_commanded("preview", spec))
    found["table"] = _hash(_commanded("table", store))
    found["table as data"] = _hash(_commanded("table", store, "--json"))
    found |= {f"figure {each}": _hash(_svg(draw, results)) for each, draw in FIGURES.items()}
    return found


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_an_experiment_gives_what_it_gave(name: str) -> None:
    assert taken(name) == json.loads(HASHES.read_text(encoding="utf-8"))[name]


def main() -> None:
    """Write the hashes anew."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = {name: taken(name) for name in sys.argv[1:] or NAMES}
    HASHES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
