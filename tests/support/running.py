"""Small experiments, chat models that watch what they are asked, and frames compared to the byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from langchain_core.language_models import BaseChatModel
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.classifiers import Item, load_classifier
from opinionsim.errors import SpecError
from opinionsim.llm import ScriptedChatModel
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.running import Invocation, Summary, under_way
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results, load, open_store
from opinionsim.watching import beyond_turns

_FRAMES = ("runs", "turns", "opinions", "calls", "agents", "edges", "metrics")

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 5,
    "population": {"size": 4},
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 6},
}


def changed(spec: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A specification with some values replaced; ``a__b`` stands for the path a.b."""
    found = {key: dict(value) if isinstance(value, dict) else value for key, value in spec.items()}
    for path, value in values.items():
        *folders, last = path.split("__")
        node = found
        for folder in folders:
            node = node.setdefault(folder, {})
        node[last] = value
    return found


@dataclass
class Watch:
    """What a chat model was asked, by seed, and how it behaves.

    ``latency`` gives seconds from the seed, ``fails`` says whether the n-th call (from 1) fails.
    """

    latency: Callable[[int], float] = lambda seed: 0.0
    fails: Callable[[int], bool] = lambda number: False
    asked: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    noticed: Callable[[int], object] = lambda number: None


class WatchedModel(ScriptedChatModel):
    """The scripted model under observation."""

    _watch: Watch = PrivateAttr()

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        watch, seed = self._watch, kwargs["seed"]
        watch.asked.append(seed)
        number = len(watch.asked)
        watch.noticed(number)
        await asyncio.sleep(watch.latency(seed))
        if watch.fails(number):
            raise PermissionError("the provider is gone")
        reply = await super()._agenerate(messages, stop, run_manager, **kwargs)
        watch.answered.append(seed)
        return reply


def watched(**behaviour: Any) -> tuple[WatchedModel, Watch]:
    """A chat model and what it sees; a latency of up to 3 ms that differs from call to call by default."""
    watch = Watch(**{"latency": lambda seed: seed % 7 * 5e-4, **behaviour})
    model = WatchedModel()
    model._watch = watch
    return model, watch


@osim.part("classifier")
class BluntClassifier:
    """A second instrument: the lexicon's sign at full strength. Counts the texts it codes."""

    name = "blunt"
    needs_claim, reads_context, reads_about = True, False, False
    coded = 0

    def __init__(self, scale: OpinionScale | None = None, gain: int = 2) -> None:
        self.scale = scale or OpinionScale()
        self.gain = gain
        self._lexicon = load_classifier("lexicon", self.scale)

    @property
    def options(self) -> dict[str, Any]:
        return {"gain": self.gain}

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        BluntClassifier.coded += len(items)
        found = self._lexicon.classify(items)
        probabilities = found.probabilities.copy()
        for row, value in enumerate(found.value):
            if value == value:
                probabilities[row] = 0.0
                probabilities[row, self.scale.index(self.scale.nearest(value * self.gain))] = 1.0
        return OpinionEstimates.from_probabilities(self.scale, probabilities, found.off_scale)


def ended(
    spec: dict[str, Any] | Path | Experiment,
    store: str,
    model: BaseChatModel | None = None,
    *,
    slots: int | None = None,
    **options: Any,
) -> Summary:
    """Run an experiment; how it ended."""
    experiment = spec if isinstance(spec, Experiment) else load_experiment(spec)
    with under_way(Invocation(experiment, store, max_concurrency=slots, chat_model=model, **options)) as (_, future):
        return future.result()


def carry_out(
    spec: dict[str, Any] | Path | Experiment,
    store: str,
    model: BaseChatModel | None = None,
    **options: Any,
) -> tuple[Summary, Results]:
    """Run an experiment with the options of :func:`ended`; how it ended, and its results."""
    experiment = spec if isinstance(spec, Experiment) else load_experiment(spec)
    summary = ended(experiment, store, model, **options)
    return summary, loaded(store, experiment.spec.name)


def finished(
    spec: dict[str, Any], store: str = "s.sqlite", model: BaseChatModel | None = None, **options: Any
) -> Results:
    """The results of an experiment, all of whose runs must become complete; options of :func:`ended`."""
    summary, results = carry_out(spec, store, model, **options)
    assert (summary.errors, summary.complete) == ({}, summary.total)
    return results


def loaded(store: str, name: str | None = None) -> Results:
    """Results as they are now: frames are otherwise read when first asked for. Metrics are taken from these."""
    results = load(store, name)
    results.counted()
    for frame in _FRAMES:
        if frame != "metrics":
            getattr(results, frame)
    return results


def refused(folder: Path, spec: dict[str, Any]) -> str:
    """The error of a file with a specification, without the folder before its name; it leaves out what is ``...``."""
    stated = {name: value for name, value in spec.items() if value is not ...}
    (folder / "spec.yaml").write_text(yaml.safe_dump(stated, sort_keys=False))
    with pytest.raises(SpecError) as raised:
        osim.plan(load_experiment(folder / "spec.yaml"))
    return str(raised.value).replace(f"{folder}/", "")


def beyond(results: Results) -> dict[str, Any]:
    """What the page of the first run shows beyond its turns."""
    with open_store(results.url, write=False) as reader:
        return beyond_turns(reader, results.runs["run_id"].iloc[0])


def content(frame: pd.DataFrame) -> bytes:
    """A frame to the byte, without what may depend on timing."""
    timed = [column for column in frame.columns if column.endswith(("_s", "_at"))]
    text = frame.drop(columns=timed).to_csv(index=False, float_format=lambda value: repr(float(value)))
    return text.encode("utf-8", "surrogatepass")


def assert_same(found: Results, expected: Results, *, but_for: Collection[str] = ()) -> None:
    """Turns, opinions, calls and metrics are equal to the byte, some columns aside."""
    for name in _FRAMES[1:]:
        here, there = (getattr(each, name).drop(columns=list(but_for), errors="ignore") for each in (found, expected))
        assert content(here) == content(there), f"{name} differ"
    assert len(expected.turns), "nothing happened"
