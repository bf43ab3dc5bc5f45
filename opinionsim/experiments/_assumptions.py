"""What model calls are taken to be like before they are made: assumed, stated by the user, or seen in a store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.experiments._assembly import assemble
from opinionsim.experiments._judges import JUDGE, Judges
from opinionsim.experiments._model_spec import ModelSpec, model_label
from opinionsim.experiments._sweep import Experiment, PlannedRun
from opinionsim.llm import Entry
from opinionsim.store import Store, open_store

__all__ = [
    "LATENCY_S",
    "REPLY_TOKENS",
    "TOKENS_PER_CHARACTER",
    "Assumptions",
    "Observed",
    "Rates",
    "ReplySize",
    "call_kind",
    "observe",
]

#: What is assumed where nothing is known: a few sentences, a quarter of a token a character (English), a second a call.
REPLY_TOKENS = 200.0
TOKENS_PER_CHARACTER = 0.25
LATENCY_S = 1.0

#: Stored calls looked at for each combination of models, and prompts among them that are read.
_CALLS_READ = 2000
_PROMPTS_READ = 200


class ReplySize(NamedTuple):
    """How long replies are."""

    tokens: float
    """As the provider counts them; reasoning included where it was seen."""
    characters: int
    """What other prompts will hold of one."""


@dataclass(frozen=True)
class Rates:
    """What calls to one model are taken to be like.

    Attributes
    ----------
    tokens_per_character : float
        Of prompts.
    reply : ReplySize
        Of kinds of call that are not in `replies`.
    replies : dict of str to ReplySize
        By kind of call: the name of the act, ``reflect`` or ``judge``.
    latency_s : float
        Seconds a call takes.
    calls : int
        Stored calls these figures rest on; 0 where they are assumed.
    """

    tokens_per_character: float
    reply: ReplySize
    replies: Mapping[str, ReplySize]
    latency_s: float
    calls: int

    def of(self, kind: str) -> ReplySize:
        """Size of replies of a kind."""
        return self.replies.get(kind, self.reply)


@dataclass
class Observed:
    """What a store shows of the calls to one model.

    Attributes
    ----------
    calls : int
        How many were looked at.
    input_tokens, prompt_characters : int
        Of the calls whose prompts were read.
    latencies : list of float
        Seconds.
    replies : dict of str to list of (int or None, int)
        Tokens, as far as counted, and characters of each reply, by kind of call.
    """

    calls: int = 0
    input_tokens: int = 0
    prompt_characters: int = 0
    latencies: list[float] = field(default_factory=list)
    replies: dict[str, list[tuple[int | None, int]]] = field(default_factory=dict)

    def sizes(self) -> dict[str, ReplySize]:
        """Mean size of replies by kind; tokens that no provider counted follow from the characters."""
        found = {}
        for kind, replies in self.replies.items():
            characters = float(np.mean([length for _, length in replies]))
            counted = [tokens for tokens, _ in replies if tokens is not None]
            tokens = float(np.mean(counted)) if counted else characters * TOKENS_PER_CHARACTER
            found[kind] = ReplySize(tokens, round(characters))
        return found


class Assumptions:
    """What calls to any model are taken to be like.

    Parameters
    ----------
    reply_tokens : float, optional
        Length of every reply of an agent, >= 1. Default what `observed` shows, else 200; never more than the model's
        limit. Of a judge's short answers nothing can be stated: the limit stands in for what is not observed.
    latency : float, optional
        Seconds every call takes, >= 0. Default what `observed` shows, else 1.
    observed : dict of (str, bool) to Observed
        By name of model and whether it judges.

    Raises
    ------
    SpecError
        If a number is out of range.
    """

    def __init__(
        self,
        reply_tokens: float | None = None,
        latency: float | None = None,
        observed: Mapping[tuple[str, bool], Observed] | None = None,
    ) -> None:
        if reply_tokens is not None and not 1 <= reply_tokens < math.inf:
            raise SpecError(f"reply_tokens must be a number of tokens of at least 1; got {reply_tokens}")
        if latency is not None and not 0 <= latency < math.inf:
            raise SpecError(f"latency must be a finite number of seconds of at least 0; got {latency}")
        self._reply_tokens = reply_tokens
        self._latency = latency
        self._observed = dict(observed or {})

    def rates(self, model: ModelSpec, *, judges: bool = False) -> Rates:
        """What calls to a model are taken to be like that plays agents, or judges what they say."""
        seen = self._observed.get((model.name, judges), Observed())
        stated = None if judges else self._reply_tokens
        ratio = TOKENS_PER_CHARACTER
        if seen.input_tokens and seen.prompt_characters:
            ratio = seen.input_tokens / seen.prompt_characters
        tokens = stated or REPLY_TOKENS
        if model.max_tokens is not None:
            tokens = min(tokens, float(model.max_tokens))
        latency = float(np.mean(seen.latencies)) if seen.latencies else LATENCY_S
        return Rates(
            tokens_per_character=ratio,
            reply=ReplySize(tokens, round(tokens / TOKENS_PER_CHARACTER)),
            replies=seen.sizes() if stated is None else {},
            latency_s=latency if self._latency is None else self._latency,
            calls=seen.calls,
        )


def observe(experiment: Experiment, url: str) -> dict[tuple[str, bool], Observed]:
    """What a store shows of the calls an experiment has made so far.

    Parameters
    ----------
    experiment : Experiment
        Whose runs are looked for.
    url : str
        The store; opened for reading only.

    Returns
    -------
    dict of (str, bool) to Observed
        By name of model and whether it judges; empty where the store holds no call of the experiment. Of many calls,
        some are read: those of runs in the order of their identities, which is as good as a draw.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    found: dict[tuple[str, bool], Observed] = {}
    judges = Judges(experiment.runs)
    with open_store(url, write=False) as store:
        planned = {run.run_id: run for run in experiment.runs}
        begun = [run_id for run_id, state in store.states(list(planned)).items() if state.status != "pending"]
        read: dict[str, int] = {}
        for run_id in sorted(begun):
            label = model_label(planned[run_id].spec.model)
            if read.get(label, 0) < _CALLS_READ:
                records = store.calls(run_id)
                _look_at(found, store, experiment, judges, planned[run_id], records)
                read[label] = read.get(label, 0) + len(records)
    return found


def call_kind(act: str, part: str) -> str:
    """What a call is for: the act of its turn, what its part is called if that is no reply, or to judge."""
    if part.startswith(JUDGE):
        return JUDGE
    return act if part.startswith("reply") else part


def _look_at(
    found: dict[tuple[str, bool], Observed],
    store: Store,
    experiment: Experiment,
    judges: Judges,
    planned: PlannedRun,
    records: list[Entry],
) -> None:
    """Add the calls of one run to what is observed."""
    models = assemble(planned, experiment.resources).models
    every = max(_CALLS_READ, len(records)) // _PROMPTS_READ
    for position, record in enumerate(records):
        kind = call_kind(record.act, record.key.part)
        judge = judges.asked_in(record.key.part) if kind == JUDGE else None
        if kind == JUDGE and judge is None:
            continue  # asked for an experiment that codes the same runs otherwise
        model = models[record.agent] if judge is None else judge.model
        seen = found.setdefault((model.name, judge is not None), Observed())
        seen.calls += 1
        seen.replies.setdefault(kind, []).append((record.output_tokens, len(record.text)))
        if record.latency_s is not None:
            seen.latencies.append(record.latency_s)
        if position % every == 0 and record.input_tokens is not None:
            prompt = store.prompt(planned.run_id, *record.key)
            seen.input_tokens += record.input_tokens
            seen.prompt_characters += sum(len(message.content) for message in prompt)
