"""A file of parts outside the package, one of each kind (tests/outside/own.py): named, run, killed, edited, refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from distributed import LocalCluster
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.llm import ScriptedChatModel
from opinionsim.registry import built_in, find
from opinionsim.report import verify
from opinionsim.running import Invocation, under_way
from opinionsim.schedules import REVIEW, WRITE, SteppedInteraction, Turn, named
from opinionsim.specification import manifest
from opinionsim.store import open_store
from tests.support.editing import reword
from tests.support.postgres import Server
from tests.support.processes import in_process, said
from tests.support.running import SMALL, changed, ended


class Said(NamedTuple):
    """What a command of the command line came to."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def folder(tmp_path: Path, checkout: Path) -> Path:
    """A folder with specifications, and the file whose parts they name."""
    target = tmp_path / "study"
    shutil.copytree(checkout / "tests" / "outside", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def _commands(folder: Path, *commands: str) -> list[Said]:
    """What commands say that are given in a folder, in a process of their own."""
    found, code = in_process(said, *commands, folder=folder)
    assert code == 0
    return [Said(*each) for each in found]


def _done(folder: Path, *commands: str) -> list[Said]:
    """What commands say that must succeed."""
    found = _commands(folder, *commands)
    assert [each.stderr for each in found if each.exit_code] == []
    return found


def _edit(folder: Path, before: str, after: str) -> None:
    reword(folder / "own.py", before, after)


def _killed(command: str, calls: int) -> Any:
    """Give a command, and kill the process at a call of the scripted model."""
    number, reply = count(), ScriptedChatModel._reply

    def dying(model: Any, *arguments: Any) -> Any:
        if next(number) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return reply(model, *arguments)

    ScriptedChatModel._reply = dying  # type: ignore[method-assign]
    return said(command)


@pytest.mark.whole
def test_all_that_one_file_brings_along_is_shown_wherever_its_like_is(folder: Path) -> None:
    assert in_process(_killed, "run own.yaml --store o.sqlite", 60, folder=folder) == (None, -signal.SIGKILL)
    found = dict(
        zip(
            commands := (
                "plan own.yaml --json",
                "preview own.yaml",
                "run own.yaml --store o.sqlite",
                "replay o.sqlite",
                "show o.sqlite --turn 1 --prompt",
                "table o.sqlite",
                "table o.sqlite --allow-parts",
                "table o.sqlite --kind letter --json",
                "table own:texts_by_kind o.sqlite",
                "table own:texts_by_kind o.sqlite --allow-parts",
                "plot own:lengths o.sqlite --csv drawn.csv",
                "plot own:lengths o.sqlite --csv drawn.csv --allow-parts",
                "plot own:lengths o.sqlite --set kind=entry --allow-parts",
                "plot ribbons o.sqlite --metric own:share_above --allow-parts",
                "report o.sqlite --out without.html",
                "report o.sqlite --out with.html --allow-parts",
                "export o.sqlite with --archive --allow-parts",
                "verify with",
                "abm own:Pull --set mu=0.5",
                "abm own:Pull --describe",
                "abm own:Pull --over mu=[0.1,0.5] --steps 9 --agents 9 --metric own:share_above --store s.sqlite",
                "table s.sqlite",
                "plot phase s.sqlite --x mu --metric own:share_above --allow-parts",
                "list interactions own:Letters",
                "list memories own:Gist",
                "list metrics own:share_above",
                "list tables own:texts_by_kind",
                "list figures own:lengths",
                "list abm own:Pull",
            ),
            _commands(folder, *commands),
            strict=True,
        )
    )
    refused = ("table own:texts_by_kind o.sqlite", "plot own:lengths o.sqlite --csv drawn.csv")
    for command, each in found.items():
        assert each.exit_code == (2 if command in refused else 0), f"{command}: {each.stderr}"
    assert all("add --allow-parts to import it" in found[each].stderr for each in refused)

    # Letters are coded although the specification names no kinds of text, and the diary, which nobody reads, is not.
    assert json.loads(found["plan own.yaml --json"].stdout)["texts"] == 6 * 12
    preview = found["preview own.yaml"].stdout
    assert "write a letter to a neighbour" in preview  # as the pack beside the file words it
    assert "You last wrote: Dear neighbour" in found["show o.sqlite --turn 1 --prompt"].stdout
    assert "6 of 6 runs complete" in (run := found["run own.yaml --store o.sqlite"].stderr)
    assert " 0 answered by the store" not in run
    assert "6 of 6 complete runs are equal after replay" in found["replay o.sqlite"].stdout
    results = osim.load(str(folder / "o.sqlite"))
    letters = results.turns[results.turns["kind"] == "letter"]
    assert letters["message"].str.startswith("Dear neighbour, ").all()
    assert (letters["reads"].str.len() > 0).any()
    assert set(results.opinions["kind"]) == {"letter"}

    named = ("own:share_above", "own:texts_by_kind", "own:lengths")
    without, with_own = found["table o.sqlite"], found["table o.sqlite --allow-parts"]
    assert f"add --allow-parts to include them: {', '.join(named)}" in without.stderr
    assert "convinced" not in without.stdout
    assert "mean " in without.stdout
    assert "convinced: own:share_above" in with_own.stdout
    for heading in ("Texts by kind", "Opinions by condition", "Further metrics by condition"):
        assert heading in with_own.stdout
    assert (folder / "drawn.csv").read_text("utf-8").startswith("step,length")
    assert all(each in (folder / "without.html").read_text("utf-8") for each in named)
    assert "Mean length of texts over time" in (folder / "with.html").read_text("utf-8")
    assert {each.name for each in (folder / "with" / "tables").glob("*.csv")} == {
        *("1-texts.csv", "2-opinions.csv", "3-contrasts.csv", "4-doubtful.csv", "5-metrics.csv")
    }
    assert (folder / "with" / "figures" / "own.lengths.pdf").is_file()
    rests = [each.rpartition("not run: ")[2] for each in verify(folder / "with").not_rebuilt if "not run: " in each]
    assert rests == ["own:texts_by_kind", "own:share_above", "own:share_above"]
    assert "A pull towards the other (own:Pull): mu=0.5" in found["abm own:Pull --set mu=0.5"].stdout
    assert "own:share_above" in found["table s.sqlite"].stdout
    assert "left out" not in found["table s.sqlite"].stderr
    assert "Mean length of texts over time." in found["list figures own:lengths"].stdout
    assert "share_above  threshold" in found["list metrics own:share_above"].stdout


_RUN = "run spec.yaml --store o.sqlite"


@pytest.mark.long
def test_one_part_of_each_kind_is_run_swept_resumed_replayed_and_exported(folder: Path) -> None:
    plan, pilot, rest, again, replayed, _ = _done(
        folder,
        "plan spec.yaml --json",
        f"{_RUN} --pilot",
        _RUN,
        _RUN,
        "replay o.sqlite",
        "export o.sqlite exported",
    )
    calls = json.loads(plan.stdout)["calls"]
    # Two draws a turn, two turns a step.
    assert calls == 6 * 8 * 2 * 2
    assert f"{calls // 2} calls made" in pilot.stderr
    assert f"{calls // 2} calls made" in rest.stderr
    assert "all 6 runs were complete already; no call was made" in again.stderr
    assert "6 of 6 complete runs are equal after replay" in replayed.stdout
    told = json.loads((folder / "exported" / "manifest.json").read_text(encoding="utf-8"))["environment"]["parts"]
    assert {each["kind"] for each in told.values()} == {
        *("interaction", "network", "memory", "classifier", "chat_model", "selector", "metric")
    }
    assert all("sha256:" in each["code"] for each in told.values())
    _done(folder, "run exported/manifest.json --store again.sqlite", "replay again.sqlite")
    with open_store(str(folder / "o.sqlite"), write=False) as one, open_store(str(folder / "again.sqlite")) as other:
        assert [one.turns(run_id) for run_id in one.states()] == [other.turns(run_id) for run_id in other.states()]


#: What may be edited of parts that reach runs, by kind.
_EDITS = {
    "interaction": ("t % setting.size", "(t + 1) % setting.size"),
    "network": ("nx.connected_caveman_graph", "nx.caveman_graph"),
    "memory": ('"<memory>\\nYou last wrote', '"<memory>\\nThe last you wrote'),
    "selector": ("counts.index(max(counts))", "counts.index(min(counts))"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", _EDITS)
def test_edited_words_are_accepted_by_replay_and_edited_behaviour_is_refused(folder: Path, kind: str) -> None:
    # What is coded is no matter here: the classifier is in the same file.
    scripted = f"{_RUN} --set model.name=scripted --set model.options={{}} --set measurement.classifier=lexicon"
    _done(folder, scripted)
    path = folder / "own.py"
    path.write_text("# A remark.\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    (accepted,) = _done(folder, scripted)
    assert "all 6 runs were complete already; no call was made" in accepted.stderr
    _edit(folder, *_EDITS[kind])
    refused, status = _commands(folder, scripted, "status o.sqlite")
    assert refused.exit_code == 1
    assert "0 calls made" in refused.stderr
    assert "The code of own:" in refused.stderr
    assert "--fresh" in refused.stderr
    assert "in @opinionsim.part, which starts new runs" in refused.stderr
    assert "has changed since" in status.stdout
    for each in ("interaction", "network", "memory", "selector"):
        _edit(folder, f'@osim.part("{each}")', f'@osim.part("{each}", version=1)')
    (others,) = _done(folder, scripted)
    assert ", 0 answered by the store" in others.stderr


@pytest.mark.long
def test_a_chat_model_may_change_while_what_it_said_stays(folder: Path) -> None:
    run = f"{_RUN} --set measurement.classifier=lexicon"
    _done(folder, run)
    _edit(folder, "I have read", "I know")
    (again,) = _commands(folder, run)
    assert "all 6 runs were complete already; no call was made" in again.stderr


@pytest.mark.long
def test_a_changed_classifier_is_refused_until_its_version_is_raised(folder: Path) -> None:
    _done(folder, _RUN)
    _edit(folder, '"""Texts of more', '"""The texts of more')
    (refused,) = _commands(folder, _RUN)
    assert refused.exit_code == 2
    assert "the code of the classifier 'own:Length' differs from the code that read" in refused.stderr
    assert "Raise its version" in refused.stderr
    _edit(folder, '@osim.part("classifier")', '@osim.part("classifier", version="b")')
    (coded,) = _done(folder, _RUN)
    assert "no call was made" in coded.stderr
    with open_store(str(folder / "o.sqlite"), write=False) as store:
        names = [each.classifier for each in store.instruments()]
        assert sorted(names) == ["own:Length", "own:Length@b"]


_BAD_MODULE = """
import opinionsim as osim
from opinionsim.schedules import SteppedInteraction

@osim.part("memory")
class Lacking:
    prompt = remember = None

@osim.part("selector")
def picks(texts):
    return 0

class Unmarked(SteppedInteraction):
    pass
"""


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("interaction.kind", "subprocess:check_output", "is not marked as a part"),
        ("interaction.kind", "nowhere.at_all:Thing", "cannot import 'nowhere.at_all': ModuleNotFoundError"),
        ("interaction.kind", "breaks:Thing", r"cannot import 'breaks': ZeroDivisionError: .* \(in .*breaks\.py:1\)"),
        ("interaction.kind", "bad:Unmarked", "is not marked as a part"),
        ("interaction.kind", "bad:picks", "is a part of kind 'selector'; expected one of kind 'interaction'"),
        ("interaction.kind", "bad:Missing", "the module 'bad' has no Missing"),
        ("interaction.kind", "dyadik", r"unknown interaction 'dyadik' \(did you mean dyadic\?\)"),
        ("interaction.shift", "far", "must be a whole number"),
        ("interaction.shfit", 1, r"unknown field \(did you mean shift\?\)"),
        ("interaction.network", {"kind": "subprocess:check_output"}, "is not marked as a part"),
        ("cognition.memory", "bad:Lacking", "has no templates"),
        ("cognition.memory", {"name": "own:Gist", "options": {"depth": 1}}, "unknown option 'depth'"),
        ("cognition.selector", {"name": "bad:picks", "options": {"best": 1}}, "unknown option 'best'"),
        ("measurement.classifier", "subprocess:check_output", "is not marked as a part"),
        ("measurement.classifier", {"name": "own:Length", "options": {"m": 1}}, "unknown option 'm'"),
        ("measurement.metrics", ["subprocess:check_output"], "is not marked as a part"),
        ("model.name", "os.path:join", "is not marked as a part"),
    ],
)
def test_what_is_no_part_is_refused_with_its_place_before_any_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: Any, problem: str
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "bad.py").write_text(_BAD_MODULE, encoding="utf-8")
    (folder / "breaks.py").write_text("1 / 0", encoding="utf-8")
    text = (folder / "spec.yaml").read_text(encoding="utf-8").split("sweep:")[0]
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    kind = {"interaction.network": "dyadic"}.get(field)
    overrides = {field: value, **({"interaction": {"kind": kind, "steps": 2, "network": value}} if kind else {})}
    if kind:
        del overrides[field]

    def load_and_run() -> None:
        osim.run(osim.load_experiment(folder / "spec.yaml", overrides), folder / "never.sqlite")

    with pytest.raises(SpecError, match=problem) as caught:
        load_and_run()
    assert field.split(".")[0] in str(caught.value)
    assert not (folder / "never.sqlite").exists()
    for module in [name for name in sys.modules if name.partition(".")[0] in ("bad", "breaks", "own")]:
        del sys.modules[module]


def test_an_error_names_file_line_and_field(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    path = folder / "wrong.yaml"
    path.write_text(
        "name: wrong\ntopic: {name: global-warming}\ninteraction:\n  steps: 2\n  kind: 'subprocess:check_output'\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError, match=r"wrong\.yaml:5: interaction\.kind: subprocess:check_output is not marked"):
        osim.load_experiment(path)


_FAULTY = """
import opinionsim as osim
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.memory import CumulativeMemory
from opinionsim.schedules import REVIEW, WRITE, ActSpec, Interaction, SteppedInteraction, Turn, named

@osim.part("interaction")
class NoAgent(SteppedInteraction):
    acts = named(WRITE)

    def turns(self, setting):
        yield Turn(0, 1, 99, "write")

@osim.part("interaction")
class Ahead(SteppedInteraction):
    acts = named(REVIEW)

    def turns(self, setting):
        yield Turn(0, 1, 0, "review", (1,))

@osim.part("interaction")
class Raising(SteppedInteraction):
    acts = named(WRITE)

    def turns(self, setting):
        yield Turn(0, 1, 0, "write")
        1 / 0

@osim.part("interaction")
class NoTurns(SteppedInteraction):
    acts = named(WRITE)

    def turns(self, setting):
        yield (0, 1, 0, "write")

@osim.part("network")
class Far(__import__("opinionsim.networks").networks.NetworkKind):
    def pairs(self, size, rng):
        return [(0, size)]

@osim.part("memory")
class Silent(CumulativeMemory):
    def prompt(self, *arguments):
        return None

@osim.part("memory")
class Asking(CumulativeMemory):
    async def remember(self, act, received, reply, ask):
        await ask("reflect", ())
        return self

@osim.part("classifier")
class Wide:
    name, needs_claim, reads_context, reads_about, options = "wide", False, False, False, {}

    def __init__(self, scale):
        self.scale = OpinionScale((1, 2, 3, 4, 5, 6, 7))

    def classify(self, items):
        return OpinionEstimates.from_probabilities(self.scale, [[1, 0, 0, 0, 0, 0, 0]] * len(items))

@osim.part("metric")
def on_network(opinions, network):
    return 0.0

@osim.part("metric")
def words(opinions):
    return "many"

@osim.part("scripted")
def number(scene, draws):
    return 3

def way(name, *acts, **declared):
    def turns(self, setting):
        yield from (Turn(i, 1, i, act.name, tuple(range(i))) for i, act in enumerate(acts))
    own = {"__module__": "faulty", "__qualname__": name, "turns": turns, "acts": named(*acts), **declared}
    globals()[name] = osim.part("interaction")(type(SteppedInteraction)(name, (SteppedInteraction,), own))

def saying(name, **declared):
    return ActSpec(name, name, **{"kind": "chat", "text": "Speak.", **declared})

way("Tuple", acts=(saying("say"),))
way("NoComma", saying("say"), tables=("faulty:words"))
way("NoTable", saying("say"), tables=("faulty:nowhere",))
way("NoFigure", saying("say"), figures=("faulty:words",))
way("NoRecord", saying("say"), record="norecord")
way("NoAnswer", saying("say", scripted="noanswer"))
way("Opposite", saying("say"), saying("add", opinion="none"))
way("Overheard", saying("say", audience="nobody"), saying("add", kind="other"))
way("Unset", saying("say", text="{{ nosuch }}"))
way("Numbers", saying("say", scripted="faulty:number"))
way("Chatting", saying("say", opinion="may"), saying("add", kind="order", opinion="none"))
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A module of parts that break their contracts, ready to be imported."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty.py").write_text(_FAULTY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("interaction", {"kind": "faulty:NoAgent"}, "faulty:NoAgent: turn 0 names act 'write' and agent 99"),
        ("interaction", {"kind": "faulty:Ahead"}, "faulty:Ahead: turn 0 reads turn 1, which is not an earlier turn"),
        ("interaction", {"kind": "faulty:NoTurns"}, "faulty:NoTurns: .* must yield objects of the class Turn"),
        ("interaction", {"kind": "faulty:Raising"}, r"faulty:Raising failed in .*faulty\.py:\d+ with ZeroDivision"),
        ("interaction", {"kind": "faulty:Tuple"}, r"Tuple\.acts must be a mapping by name, as named\(ACT, \.\.\.\)"),
        ("interaction", {"kind": "faulty:NoComma"}, r"NoComma\.tables must be .* such as \('faulty:words',\)"),
        ("interaction", {"kind": "faulty:NoTable"}, r"NoTable\.tables: faulty:nowhere: the module 'faulty' has no"),
        ("interaction", {"kind": "faulty:NoFigure"}, r"NoFigure\.figures: faulty:words is a part of kind 'metric'"),
        ("interaction", {"kind": "faulty:NoRecord"}, r"NoRecord\.record: unknown record of a run 'norecord'"),
        ("interaction", {"kind": "faulty:NoAnswer"}, r"NoAnswer\.acts: 'say': unknown scripted answer 'noanswer'"),
        ("interaction", {"kind": "faulty:Opposite"}, r"'say' and 'add' make texts of kind 'chat', and declare opinion"),
        ("interaction", {"kind": "faulty:Overheard"}, "turn 1 shows agent 1 what agent 0 said in turn 0, .*'nobody'"),
        ("interaction", {"kind": "faulty:Unset"}, r"interaction\.kind: act say:1: undefined variable 'nosuch'"),
        ("interaction", {"kind": "dyadic", "network": "faulty:Far"}, r"interaction\.network: "),
        ("cognition", {"memory": "faulty:Silent"}, "your own parts in it: faulty:Silent"),
        ("cognition", {"memory": "faulty:Asking"}, "faulty:Asking asks 1 times .* its calls_per_event is 0"),
        ("measurement", {"classifier": "faulty:Wide"}, "faulty:Wide codes on the points"),
        ("measurement", {"metrics": ["faulty:on_network"]}, "faulty:on_network needs network"),
        ("measurement", {"metrics": ["faulty:words"]}, "faulty:words failed with ValueError"),
        ("measurement", {"metrics": ["bias", "bias"]}, "the metric bias is named twice"),
    ],
)
def test_a_faulty_part_is_named_before_any_call(field: str, value: Any, problem: str) -> None:
    spec = changed(SMALL, **{field: {**value, "steps": 2} if field == "interaction" else value})
    with pytest.raises(OpinionSimError, match=problem):
        osim.plan(osim.load_experiment(spec))


@pytest.mark.usefixtures("faulty")
def test_a_scripted_answer_that_is_no_text_is_named(tmp_path: Path) -> None:
    spec = changed(SMALL, interaction={"kind": "faulty:Numbers", "steps": 1})
    results = osim.run(osim.load_experiment(spec), tmp_path / "numbers.sqlite")
    (error,) = set(results.runs["error"].str.partition("): ")[2])
    assert error == "SpecError: scripted answer faulty:number must return a text; got 3"


@pytest.mark.usefixtures("faulty")
def test_texts_that_only_may_state_an_opinion_are_coded_where_they_are_named() -> None:
    def planned(**measurement: Any) -> Any:
        spec = changed(SMALL, interaction={"kind": "faulty:Chatting", "steps": 1}, measurement=measurement)
        return osim.plan(osim.load_experiment(spec))

    assert "No act of 'faulty:Chatting' states an opinion, so no opinion is coded; " in str(planned())
    assert planned(texts=["chat"]).texts > 0
    with pytest.raises(
        SpecError, match=r"measurement\.texts: the instrument .* has no text to read.* set texts, valid: chat"
    ):
        planned(classifier="lexicon")
    with pytest.raises(SpecError, match=r"measurement\.texts\[0\]: names a kind without an opinion; valid: chat"):
        planned(texts=["order"])
    with pytest.raises(SpecError, match=r"measurement\.texts\[0\]: unknown value 'report'; valid: chat"):
        planned(texts=["report"])


def test_a_part_that_fails_in_a_run_stops_that_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "late.py").write_text(
        """
import opinionsim as osim
from opinionsim.schedules import WRITE, Interaction, Schedule, Turn, named

class Raises(Schedule):
    acts, n_agents, steps = named(WRITE), 4, 2

    def outline(self):
        yield Turn(0, 1, 0, "write")

    async def decide(self, outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.reply(0)
        raise ValueError("half way")

@osim.part("interaction")
class Late(Interaction):
    steps: int = 2

    def steps_for(self, size):
        return self.steps

    def schedule(self, setting):
        return Raises()
""",
        encoding="utf-8",
    )
    dyadic = {"kind": "dyadic", "steps": 4}
    spec = changed(SMALL, replicates=2, sweep={"interaction": [{"kind": "late:Late"}, dyadic]})
    summary = ended(spec, "late.sqlite")
    assert summary.complete == 2
    assert len(summary.errors) == 2
    assert all("late:Late failed in" in error and "ValueError: half way" in error for error in summary.errors.values())
    del sys.modules["late"]


_ASTRAY = """
import matplotlib.pyplot as plt
import opinionsim as osim
from opinionsim.analysis import Table
from opinionsim.plots import Shown
from opinionsim.schedules import WRITE, SteppedInteraction, Turn, named

@osim.part("metric")
def late(opinions):
    if len(opinions) != 3:
        raise RuntimeError("too late")
    return 0.0

@osim.part("metric")
def most(opinions):
    return max(opinions)

@osim.part("table")
def raising(turns):
    yield from 1 / 0

@osim.part("table")
def five(turns):
    return 5

@osim.part("table")
def unsourced(turns):
    return Table.of("Steps", turns[["step"]])

@osim.part("table")
def opinions(turns):
    return Table.of("Opinions by condition", turns[["step", "evidence"]].head(1), name="twin")

@osim.part("table")
def crossed(turns):
    counts = turns.groupby(["evidence", "step"]).size().unstack().reset_index()
    return Table.of("Crossed", counts, name="twin")

@osim.part("figure")
def nothing(results):
    return None

@osim.part("figure")
def bare():
    return None

@osim.part("figure")
def unreadable(results):
    return plt.figure().subplots().set_title("$\\\\frac$").axes

@osim.part("figure", shown=lambda results: 1 / 0)
def hidden(results):
    return plt.figure()

@osim.part("figure", numbers=lambda results: 3, shown=lambda results: [Shown("last", "The last.")])
def drawn(results):
    return plt.figure().subplots()

@osim.part("interaction")
class Astray(SteppedInteraction):
    acts = named(WRITE)
    tables = tuple(f"astray:{name}" for name in ("raising", "five", "unsourced", "opinions", "crossed"))
    figures = tuple(f"astray:{name}" for name in ("nothing", "bare", "unreadable", "hidden", "drawn"))

    def turns(self, setting):
        for t in range(self.steps_for(setting.size)):
            yield Turn(t, t + 1, t % setting.size, "write")
"""

#: What is said of each part that fails.
_LEFT_OUT = {
    "metric astray:late failed with RuntimeError: too late (in astray:late, ",
    "table astray:raising failed with ZeroDivisionError: division by zero (in astray:raising, ",
    "table astray:five must return a Table, several tables or None, each named by a word; got 5",
    "table astray:unsourced: the frame of the table 'Steps' has no column 'evidence'",
    "figure astray:nothing must return a figure of matplotlib, or axes that lie on one; got None",
    "figure astray:bare failed with TypeError: bare() takes 0 positional arguments",
    "figure astray:unreadable failed with ValueError: ",
    "figure astray:hidden failed with ZeroDivisionError: division by zero (in ",
}


@pytest.fixture(scope="module")
def astray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The store of a run whose way of interacting brings tables and figures that fail, beside some that do not."""
    folder = tmp_path_factory.mktemp("astray")
    (folder / "astray.py").write_text(_ASTRAY, encoding="utf-8")
    measurement = {"metrics": ["astray:late", "astray:most"], "classifier": "lexicon", "texts": ["post"]}
    spec = changed(SMALL, interaction={"kind": "astray:Astray", "steps": 8}, measurement=measurement)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        osim.run(osim.load_experiment(spec), str(folder / "a.sqlite"))
        yield str(folder / "a.sqlite")


def _invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments, "--allow-parts"])


def test_of_many_what_fails_is_left_out_by_name_and_the_rest_is_there(astray: str) -> None:
    tables, figures = ({each for each in _LEFT_OUT if ("figure" in each) == wanted} for wanted in (False, True))
    for command, left in (
        (f"table {astray} --csv t.csv", tables),
        (f"report {astray} --out r.html", tables | figures),
        (f"export {astray} ar --archive", tables | figures),
    ):
        found = _invoke(*command.split())
        assert found.exit_code == 0, found.output
        lines = [each for each in found.stderr.splitlines() if each.startswith("left out because it failed: ")]
        assert len(lines) == len(left)
        assert [each for each in left if not any(each in line for line in lines)] == []
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.count("Failed, and left out: ") == len(_LEFT_OUT)
    assert "The last." in page
    # Two tables of one name are two files; so are two of one title.
    assert {each.name for each in Path().glob("*.csv")} >= {"t-twin-1.csv", "t-twin-2.csv", "t.csv"}
    names = ("1-twin.csv", "2-twin.csv", "3-opinions.csv", "4-metrics.csv")
    assert {each.name for each in Path("ar", "tables").glob("*.csv")} == {*names}
    assert (Path("ar", "figures", "last.pdf")).is_file()
    assert "astray:most" in Path("ar", "tables", "4-metrics.csv").read_text(encoding="utf-8")
    archived = verify("ar")
    assert archived.problems == ()
    assert [each.endswith("Opinions by condition") for each in archived.rebuilt] == [True]
    rests = [each.rpartition("not run: ")[2] for each in archived.not_rebuilt if "not run: " in each]
    assert rests == ["astray:opinions", "astray:crossed", "astray:most"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("table astray:five STORE", "error: table astray:five must return a Table"),
        ("table astray:unsourced STORE", "has no column 'evidence'"),
        ("plot astray:nothing STORE", "error: figure astray:nothing must return a figure"),
        ("plot astray:bare STORE", "error: figure astray:bare failed with TypeError"),
        (
            "plot astray:drawn STORE --csv n.csv",
            "astray:drawn must have `numbers` that return a frame; got 3",
        ),
        ("plot astray:nothing STORE --csv n.csv", "and your own figures with `numb"),
    ],
)
def test_the_one_that_is_asked_for_is_refused_with_a_sentence(astray: str, command: str, problem: str) -> None:
    found = _invoke(*command.replace("STORE", astray).split())
    assert found.exit_code == 2
    assert problem in found.stderr


def test_what_is_left_out_is_named_only_where_it_is_missing(astray: str) -> None:
    for command, lacks in (("table metrics", True), ("table opinions", False), ("plot panels", False)):
        name, *options = command.split()
        said = CliRunner().invoke(app, [name, *options, astray]).stderr
        assert ("left out your own parts; add --allow-parts to include them: astray:late, astray:most" in said) == lacks


@pytest.fixture
def contrasted(tmp_path: Path) -> Path:
    """A file with a metric, beside the store `m.sqlite` of a study whose first contrast is of it."""
    module = tmp_path / f"{tmp_path.name}.py"
    text = 'import opinionsim as osim\n\n@osim.part("metric")\ndef most(opinions):\n    return max(opinions)\n'
    module.write_text(text, encoding="utf-8")
    axis, name = "cognition.confirmation_bias", f"{tmp_path.name}:most"
    contrast = {"of": "strong - none", "measure": name}
    spec = changed(
        SMALL,
        replicates=2,
        sweep={axis: ["none", "strong"]},
        measurement={"metrics": [name, "bimodality"]},
        analysis={"primary": "most", "contrasts": {"most": contrast, "mean": {**contrast, "measure": "bias"}}},
    )
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    _done(tmp_path, "run m.yaml --store m.sqlite")
    return module


def test_a_contrast_of_a_metric_of_ones_own_is_there_where_that_is_allowed_and_missed_in_archives(
    contrasted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(contrasted.parent))
    store, name = str(contrasted.with_name("m.sqlite")), f"{contrasted.stem}:most"
    for options, there in (([], False), (["--allow-parts"], True)):
        said = CliRunner().invoke(app, ["table", store, *options])
        assert said.exit_code == 0, said.output
        assert ("Contrasts" in said.stdout, name in said.stdout) == (True, there)
        assert "bimodality" in said.stdout
    refused = CliRunner().invoke(app, ["export", store, "without", "--archive"])
    assert refused.exit_code == 2
    assert f"analysis.contrasts, and an archive would lack most (left out: {name})" in refused.stderr
    assert not Path("without").exists()
    assert _invoke("export", store, "with", "--archive").exit_code == 0
    assert verify("with").problems == ()
    about = json.loads(Path("with", "archive.json").read_text(encoding="utf-8"))
    about["tables"] = [each for each in about["tables"] if "contrasts" not in each["file"]]
    Path("with", "archive.json").write_text(json.dumps(about), encoding="utf-8")
    assert "analysis.contrasts: the study declares most, which no table of the archive has" in verify("with").problems


def test_a_metric_that_is_not_there_any_more_takes_nothing_else_along(contrasted: Path) -> None:
    contrasted.unlink()
    for command in ("table {} --csv t.csv", "report {} --out r.html"):
        found = _invoke(*command.format(contrasted.with_name("m.sqlite")).split())
        assert found.exit_code == 0, found.output
        assert f"left out because it failed: {contrasted.stem}:most: cannot import" in found.stderr
    assert "bimodality" in Path("t-metrics.csv").read_text(encoding="utf-8")
    assert "bimodality" in Path("r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "declared"),
    [("figure", {"numbers": 3}), ("figure", {"shown": True}), ("table", {"studies": "scan"}), ("table", {"fits": 1})],
)
def test_what_a_part_declares_is_checked_where_it_is_marked(kind: str, declared: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=f"'{next(iter(declared))}' of a {kind} must be (a function|a tuple of names)"):
        osim.part(kind, **declared)


class TestObjects:
    """Parts given as objects in Python."""

    def test_a_class_stands_where_its_path_would(self) -> None:
        spec = changed(SMALL, interaction={"kind": Turnwise, "steps": 3, "shift": 2})
        experiment = osim.load_experiment(spec)
        assert experiment.spec.interaction.kind == find("interaction", experiment.spec.interaction.kind).name
        assert [turn.agent for turn in _schedule(experiment).turns()][:4] == [0, 2, 1, 3]

    def test_what_cannot_be_imported_needs_a_name_and_a_version(self) -> None:
        with pytest.raises(SpecError, match="is not importable by other processes; give it a name and a version"):
            osim.part("selector")(lambda texts: 0)
        last = osim.part("selector", name="last-one", version=1)(lambda texts: len(texts) - 1)
        spec = changed(SMALL, cognition={"draws": 2, "selector": last})
        experiment = osim.load_experiment(spec)
        assert experiment.spec.cognition.selector.name == "last-one"
        results = osim.run(experiment, "sqlite:///here.sqlite")
        assert set(results.runs["status"]) == {"complete"}
        with pytest.raises(SpecError, match="last-one exists only in the process that made it"):
            manifest(experiment)
        with (
            pytest.raises(SpecError, match="last-one exists only in the process that made it"),
            under_way(
                Invocation(experiment, "postgresql+psycopg://nobody@localhost/none", cluster="tcp://127.0.0.1:1")
            ),
        ):
            pass

    def test_a_name_that_hides_a_built_in_part_is_refused(self) -> None:
        class Mine(SteppedInteraction):
            pass

        with pytest.raises(SpecError, match="'dyadic' is the name of a built-in interaction"):
            osim.part("interaction", name="dyadic", version=1)(Mine)

    def test_what_can_be_imported_is_named_by_its_path(self) -> None:
        with pytest.raises(SpecError, match="test_outside:_schedule takes its name from its import path"):
            osim.part("selector", name="mine")(_schedule)

    @pytest.mark.parametrize(
        ("kind", "given", "problem"),
        [
            ("selector", {"name": "scripted:one", "version": 1}, "must be a word"),
            ("selector", {"name": 5, "version": 1}, "must be a word"),
            ("chat_model", {"name": "scripted", "version": 1}, "is the name of a built-in chat model"),
            ("chat_model", {"name": "openai:gpt-4o", "version": 1}, "must be a word"),
        ],
    )
    def test_names_that_mean_something_else_are_refused(self, kind: str, given: dict[str, Any], problem: str) -> None:
        with pytest.raises(SpecError, match=problem):
            osim.part(kind, **given)(lambda texts: 0)

    def test_only_classes_and_functions_are_marked_and_of_one_kind(self) -> None:
        with pytest.raises(SpecError, match="only a class or a function can be a part"):
            osim.part("chat_model", name="mine", version=1)(object())
        with pytest.raises(SpecError, match="is already marked as a part of kind 'interaction'"):
            osim.part("network")(Turnwise)

    def test_an_object_whose_name_another_took_is_refused(self) -> None:
        first, second = (osim.part("selector", name="nth", version=1)(lambda texts, n=n: n) for n in (0, 1))
        spec = changed(SMALL, cognition={"draws": 2, "selector": second})
        assert osim.load_experiment(spec).spec.cognition.selector.name == "nth"
        with pytest.raises(SpecError, match="nth is now the name of another part"):
            osim.load_experiment(changed(SMALL, cognition={"draws": 2, "selector": first}))

    def test_an_object_that_is_not_marked_is_refused(self) -> None:
        with pytest.raises(SpecError, match=r"is not marked as a part; mark it with @opinionsim\.part"):
            osim.load_experiment(changed(SMALL, interaction={"kind": SteppedInteraction, "steps": 3}))

    @pytest.mark.parametrize("kind", ["interaction", "network", "memory", "classifier", "selector", "metric"])
    def test_built_in_parts_stand_in_the_same_registry(self, kind: str) -> None:
        parts = built_in(kind)
        assert parts
        for name, each in parts.items():
            assert find(kind, name) is each
            assert not each.outside


@osim.part("interaction")
class Turnwise(SteppedInteraction):
    """Each agent in turn writes for the one `shift` seats on."""

    acts = named(WRITE, REVIEW)
    shift: int = 1

    def turns(self, setting: Any) -> Any:
        for t in range(self.steps_for(setting.size)):
            yield Turn(2 * t, t + 1, t % setting.size, "write")
            yield Turn(2 * t + 1, t + 1, (t + self.shift) % setting.size, "review", (2 * t,))


def _schedule(experiment: Any) -> Any:
    from opinionsim.assembly import assemble

    return assemble(experiment.runs[0], experiment.resources).schedule


def test_a_cluster_runs_them_and_refuses_workers_with_other_code(
    folder: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(folder)
    experiment = osim.load_experiment(folder / "spec.yaml")
    url = postgres.database(str(tmp_path))
    options = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as workers:
        results = osim.run(experiment, url, cluster=workers.scheduler_address)
        assert set(results.runs["status"]) == {"complete"}
        assert len(results.turns) == 6 * 8 * 2
    _edit(folder, '"""Only the newest', '"""Just the newest')
    with (
        LocalCluster(**options) as workers,
        pytest.raises(SpecError, match=r"worker tcp://.*: the code of own:\w+ is sha256:"),
    ):
        osim.run(experiment, postgres.database(f"{tmp_path}2"), cluster=workers.scheduler_address)
    for module in [name for name in sys.modules if name == "own"]:
        del sys.modules[module]


def test_the_file_stands_in_the_documentation(checkout: Path) -> None:
    page = (checkout / "docs" / "parts.md").read_text(encoding="utf-8")
    outside = checkout / "tests" / "outside"
    for path in (outside / "own.py", outside / "own.yaml", *(outside / "own_pack").iterdir()):
        name, text = path.name, path.read_text(encoding="utf-8")
        for piece in text.split("\n\n\n") if name == "own.py" else [text]:
            assert piece.strip() in page, f"{name} is not shown in docs/parts.md as it is: {piece}"
