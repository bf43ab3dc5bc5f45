"""All that a study brings along, in one file that is installed nowhere."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import opinionsim as osim
from opinionsim.analysis import Table
from opinionsim.classic import ClassicModel, Parameter, pairwise_kernel
from opinionsim.foundation.compilation import inlined
from opinionsim.memory import KeptMessages
from opinionsim.prompts import Frame
from opinionsim.schedules import ActSpec, SteppedInteraction, Turn, named


@osim.part("scripted")
def letter(scene, draws):
    """What the scripted model writes in a letter: a stance, and whom it answers."""
    return f"Dear neighbour, {scene.stance(draws)}"


#: A letter is of a kind of its own; the pack beside this file words it. Whoever is sent it reads it.
LETTER = ActSpec("letter", "letter", "letter", opinion="states", scripted="own:letter")
#: What is written into a diary is coded where a specification names its kind, and nobody reads it.
DIARY = ActSpec("diary", "diary", "entry", text="{{ name }}, what will you not tell them?", opinion="may")


@osim.part("interaction")
class Letters(SteppedInteraction):
    """In each step an agent writes a letter to the one `shift` seats further on, and then into its diary."""

    acts = named(LETTER, DIARY)
    tables = ("own:letters",)
    figures = ("own:lengths",)
    shift: int = 1
    """How far the one who is written to sits from the author."""

    def turns(self, setting):
        last = {}
        for t in range(self.steps_for(setting.size)):
            author = t % setting.size
            yield Turn(2 * t, t + 1, author, "letter", last.get(author, ()))
            yield Turn(2 * t + 1, t + 1, author, "diary")
            last[(author + self.shift) % setting.size] = (2 * t,)


@osim.part("memory")
@dataclass(frozen=True, slots=True)
class Gist(KeptMessages):
    """Only the newest text of one's own is remembered, in a wording of its own."""

    calls_per_event = 0
    templates = (Frame("gist", "<memory>\nYou last wrote: {{ text }}\n</memory>", ("text",)),)

    async def remember(self, act, received, reply, ask):
        past = self.past.advance(act, received, reply.condition)
        return replace(self, past=past, kept=self.start.then(self.prompts.framed("gist", text=reply.text)))


@osim.part("metric")
def share_above(opinions, threshold=0.0):
    """Share of agents whose opinion is above a threshold."""
    return np.mean(np.asarray(opinions) > threshold, axis=-1)


def mean_lengths(results, kind="letter"):
    """Mean number of characters of texts of a kind at each step."""
    texts = results.turns[results.turns["kind"] == kind]
    return texts.assign(length=texts["message"].str.len()).groupby("step")["length"].mean().reset_index()


@osim.part("figure", numbers=mean_lengths)
def lengths(results, kind="letter", ax=None):
    """Mean length of texts over time."""
    return mean_lengths(results, kind).plot("step", "length", ax=ax, title=f"{results.name}: length of each {kind}")


@osim.part("table")
def letters(results, turns):
    """The number of texts of each kind."""
    counts = turns.groupby(["kind", "evidence"]).size().rename("texts").reset_index()
    return Table.of("Texts by kind", counts, labels=["kind"], name="letters")


class Parameters(NamedTuple):
    r"""A pull towards the other.

    A listener moves a part of the way to the one it meets.

    - Equation: x_i \leftarrow x_i + \mu (x_j - x_i)
    - Behaviour: A connected network ends in consensus.
    - Source: Nobody (2026). A model that nobody has published.
    """

    mu: Any = Parameter(0.3, "part of the way that is gone", r"\mu", "(0, 1]", per_agent=False)


@inlined
def meet(i, j, own, other, start, p, word, spare):
    return own + p.mu * (other - own)


Pull = osim.part("classic_model")(
    ClassicModel(
        name="Pull",
        family="assimilative",
        parameters=Parameters,
        kernel=pairwise_kernel(meet),
        update=meet,
        transition=lambda received, p: received.own + p.mu * (received.said[:, 0] - received.own),
        orders=("random", "permutation"),
        picks=("listener", "edge"),
    )
)
