"""Expected size and latency of calls: assumed, stated by the user, or observed in a store."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from opinionsim import store as stores
from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.llm import REFLECT, CallName, Entry, Price
from opinionsim.specification import Experiment

#: Assumptions: a reply of a few sentences, or of as many words as are asked for; a number, a letter or a word where a
#: question is closed; tokens of an English word, with its space, and of a character; a second a call.
_REPLY_TOKENS, _CLOSED_TOKENS = 200.0, 6.0
TOKENS_PER_WORD = 1.4
_TOKENS_PER_CHARACTER = 0.25
_LATENCY_S = 1.0
#: Mean tokens of the scripted model's replies by kind of call: its sentences are known. Other kinds are one sentence.
_SCRIPTED: Mapping[str, float] = {"write": 22.0, "review": 70.0, "probe": 13.0, REFLECT: 40.0}
_SCRIPTED_SENTENCE = 22.0

#: Stored calls read for each combination of models, and prompts read among them.
_CALLS_READ = 2000
_PROMPTS_READ = 200


class Model(NamedTuple):
    """A chat model, with the properties that a forecast needs. A model with `judges` plays no agents."""

    name: str
    judges: bool
    max_tokens: int | None
    price: Price | None
    lane: str


class ReplySize(NamedTuple):
    """Mean size of replies: tokens as the provider counts them, including reasoning, and characters of the text."""

    tokens: float
    characters: int


@dataclass
class SeenCalls:
    """Stored calls to one model, by kind, and the tokens and characters of their prompts."""

    calls: defaultdict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    prompts: list[tuple[int, int]] = field(default_factory=list)


def check_assumptions(reply_tokens: float | None, latency: float | None, calls_per_reply: float | None) -> None:
    """Refuse impossible lengths, latencies and numbers of calls.

    Raises
    ------
    SpecError
        If one is out of range.
    """
    told = (("reply_tokens", reply_tokens, 1), ("latency", latency, 0), ("calls_per_reply", calls_per_reply, 1))
    for name, value, least in told:
        if value is not None and not least <= value < math.inf:
            raise SpecError(f"{name} must be a finite number of at least {least}; got {value}")


class Rates:
    """Expected size and latency of calls to one model.

    Parameters
    ----------
    model : Model
        The model. Its limit caps the assumed and given lengths of replies.
    seen : SeenCalls
        Stored calls to the model.
    reply_tokens : float or None
        Length of every reply of an agent. None uses the stored mean (for the scripted model, its own), otherwise what
        prompts ask for, otherwise 200. For replies of a judge: the stored mean, otherwise 200 or the model's limit.
    latency : float or None
        Seconds per call. None uses the stored mean, otherwise 1.
    calls_per_reply : float or None
        Calls of an agent for each reply that is kept. None uses the stored mean, otherwise 1.

    Attributes
    ----------
    calls : int
        Number of stored calls.
    tokens_per_character : float
        Tokens for each character of a prompt.
    latency_s : float
        Seconds of a call.
    calls_per_reply : float
        Calls for each reply that is kept.
    """

    def __init__(
        self,
        model: Model,
        seen: SeenCalls,
        reply_tokens: float | None,
        latency: float | None,
        calls_per_reply: float | None = None,
    ) -> None:
        entries = [entry for each in seen.calls.values() for entry in each]
        latencies = [entry.latency_s for entry in entries if entry.latency_s is not None]
        tokens, characters = (sum(each) for each in zip(*(seen.prompts or [(0, 0)]), strict=True))
        self.calls = len(entries)
        kept = sum(not entry.key.attempt for entry in entries)
        given = None if model.judges else calls_per_reply
        self.calls_per_reply = given or (len(entries) / kept if kept else 1.0)
        self.latency_s = latency if latency is not None else fmean(latencies) if latencies else _LATENCY_S
        self.tokens_per_character = tokens / characters if tokens and characters else _TOKENS_PER_CHARACTER
        stated = None if model.judges else reply_tokens
        known = _SCRIPTED if model.name == "scripted" and stated is None else {}
        limit = float(model.max_tokens or math.inf)
        self._limit = None if stated or known else limit
        self._any = _size(stated or (_SCRIPTED_SENTENCE if known else _REPLY_TOKENS), limit)
        self._replies = {kind: _size(tokens, limit) for kind, tokens in known.items()}
        if stated is None:
            self._replies |= {kind: _mean_size(each) for kind, each in seen.calls.items()}

    def reply(self, kind: str, words: int | None = None) -> ReplySize:
        """Size of replies of a kind: the name of the act, or ``reflect``.

        `words` is the number that its prompt asks for: 0 for a closed question, None if the prompt states no number.
        """
        if self._limit is None or words is None or kind in self._replies:
            return self._replies.get(kind, self._any)
        return _size(TOKENS_PER_WORD * words or _CLOSED_TOKENS, self._limit)


def _size(tokens: float, limit: float) -> ReplySize:
    """The size of a reply of so many tokens, or of as many as the model may give."""
    return ReplySize(min(tokens, limit), round(min(tokens, limit) / _TOKENS_PER_CHARACTER))


def _mean_size(entries: Collection[Entry]) -> ReplySize:
    """Mean size of replies; if no provider counted tokens, they are estimated from characters."""
    characters = fmean(len(entry.text) for entry in entries)
    counted = [entry.output_tokens for entry in entries if entry.output_tokens is not None]
    return ReplySize(fmean(counted) if counted else characters * _TOKENS_PER_CHARACTER, round(characters))


def observe(
    experiment: Experiment, store: stores.Store, begun: Collection[str], judges: Mapping[str, Model]
) -> Mapping[tuple[str, bool], SeenCalls]:
    """Read the stored calls of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    store : stores.Store
        The store.
    begun : collection of str
        Ids of the runs that have calls in the store.
    judges : dict of str to Model
        The model of each instrument that uses one, by the identity of the instrument.

    Returns
    -------
    dict of (str, bool) to Seen
        Calls by name of model and whether it is a judge. If there are many calls, only some runs are read, in order of
        their ids. Ids are hashes, so this is as good as a random draw.
    """
    found: defaultdict[tuple[str, bool], SeenCalls] = defaultdict(SeenCalls)
    read = Counter[tuple[str, ...]]()
    planned = {run.run_id: run for run in experiment.runs}
    for run_id in sorted(begun):
        names = tuple(model.name for model in planned[run_id].spec.chat_models)
        if read[names] >= _CALLS_READ:
            continue
        entries, models = store.calls(run_id), assemble(planned[run_id], experiment.resources).models
        read[names] += len(entries)
        every = max(1, min(len(begun) * len(entries), max(_CALLS_READ, len(entries))) // _PROMPTS_READ)
        for position, entry in enumerate(entries):
            who = [(models[entry.agent].name, False)]
            call = CallName.of(entry.key.call)
            if call.judge:
                # Judges of other experiments that code the same runs are left out.
                who = [(model.name, True) for identity, model in judges.items() if identity.startswith(call.instrument)]
            for seen in (found[each] for each in who):
                seen.calls[call.priced_as(entry.act)].append(entry)
                if position % every == 0 and entry.input_tokens is not None:
                    prompt = store.prompt(run_id, *entry.key)
                    seen.prompts.append((entry.input_tokens, sum(len(message.content) for message in prompt)))
    return found
