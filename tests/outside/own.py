"""Parts of a study of one's own, one of each kind, in a file that is installed nowhere."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from langchain_core.language_models import SimpleChatModel

import opinionsim as osim
from opinionsim.analysis import Table
from opinionsim.classic import ClassicModel, Parameter, pairwise_kernel
from opinionsim.foundation.compilation import inlined
from opinionsim.memory import KeptMessages
from opinionsim.networks import NetworkKind
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.prompts import Frame
from opinionsim.schedules import ActSpec, SteppedInteraction, Turn, named

LETTER = ActSpec(
    "letter",
    "letter",
    "letter",
    text="{% for each in received %}{{ each.block }}\n{% endfor %}Write a letter on your view of {{ claim }}.",
    scripted="own:letter",
)
DIARY = ActSpec(
    "diary", "diary", "entry", text="{{ name }}, what do you keep to yourself?", opinion="may", audience="nobody"
)


@osim.part("interaction")
class Letters(SteppedInteraction):
    """In each step an agent writes to the one `shift` seats further on, who reads it in turn, and then a diary."""

    acts = named(LETTER, DIARY)
    tables = ("own:texts_by_kind",)
    figures = ("own:lengths",)
    shift: int = 1
    """How far the one who is written to sits from the author."""

    def turns(self, setting):
        sent = {}
        for t in range(self.steps_for(setting.size)):
            author = t % setting.size
            yield Turn(2 * t, t + 1, author, "letter", sent.pop(author, ()))
            yield Turn(2 * t + 1, t + 1, author, "diary")
            sent[(author + self.shift) % setting.size] = (2 * t,)


@osim.part("scripted")
def letter(scene, draws):
    """What the scripted model writes in a letter: where it stands, and a greeting."""
    return f"Dear neighbour, {scene.stance(draws)}"


@osim.part("network")
class Cliques(NetworkKind):
    """Cliques of equal size, each joined to the next by one edge."""

    cliques: int = 2
    """How many there are."""

    def problem(self, size):
        return f"{size} agents do not make {self.cliques} equal cliques" if size % self.cliques else ""

    def pairs(self, size, rng):
        return nx.connected_caveman_graph(self.cliques, size // self.cliques)


@osim.part("memory")
@dataclass(frozen=True, slots=True)
class Gist(KeptMessages):
    """Only the newest text of one's own is remembered."""

    calls_per_event = 0
    templates = (Frame("gist", "<memory>\nYou last wrote: {{ text }}\n</memory>", ("text",)),)

    async def remember(self, act, received, reply, ask):
        past = self.past.advance(act, received, reply.status)
        return replace(self, past=past, kept=self.start.then(self.prompts.framed("gist", text=reply.text)))


@osim.part("selector")
def most_words(texts, least=1):
    """The reply with the most words of at least `least` letters."""
    counts = [sum(len(word) >= least for word in text.split()) for text in texts]
    return counts.index(max(counts))


@osim.part("chat_model")
class Repeating(SimpleChatModel):
    """Says the same each time."""

    words: str = "I believe it."

    @property
    def _llm_type(self):
        return "repeating"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        return f"{self.words} I have read {len(messages)} messages."


@osim.part("classifier")
class Length:
    """Texts of more than `middle` characters are at the high end of the scale, others at the low end."""

    name, needs_claim, reads_context, reads_about = "length", False, False, False

    def __init__(self, scale=None, middle=100):
        self.scale, self.options = scale or OpinionScale(), {"middle": middle}

    def classify(self, items):
        chosen = [-1 if len(item.text) > self.options["middle"] else 0 for item in items]
        return OpinionEstimates.from_probabilities(self.scale, np.eye(len(self.scale))[chosen])


@osim.part("metric")
def share_above(opinions, threshold=0.0):
    """Share of agents whose opinion is above a threshold."""
    return np.mean(np.asarray(opinions) > threshold, axis=-1)


@osim.part("table")
def texts_by_kind(turns):
    """How many texts of each kind there are."""
    counts = turns.groupby(["kind", "evidence"]).size().rename("texts").reset_index()
    return Table.of("Texts by kind", counts, labels=["kind"], name="texts")


def mean_lengths(results, kind="letter"):
    """Mean number of characters of texts of a kind at each step."""
    texts = results.turns[results.turns["kind"] == kind]
    return texts.assign(length=texts["message"].str.len()).groupby("step")["length"].mean().reset_index()


@osim.part("figure", numbers=mean_lengths)
def lengths(results, kind="letter", ax=None):
    """Mean length of texts over time."""
    return mean_lengths(results, kind).plot("step", "length", ax=ax, title=f"{results.name}: length of each {kind}")


class Parameters(NamedTuple):
    r"""A pull towards the other.

    A listener goes a part of the way to the one it meets.

    - Equation: x_i \leftarrow x_i + \mu (x_j - x_i)
    - Behaviour: A connected network ends in consensus.
    - Source: Own (2026). A model that nobody has published. Nowhere.
    """

    mu: Any = Parameter(0.3, "part of the way that is gone", r"\mu", "(0, 1]", per_agent=False)


@inlined
def meet(i, j, own, other, start, p, word, spare):
    return own + p.mu * (other - own)


Pull = ClassicModel(
    name="Pull",
    family="assimilative",
    parameters=Parameters,
    kernel=pairwise_kernel(meet),
    update=meet,
    transition=lambda received, p: received.own + p.mu * (received.said[:, 0] - received.own),
    orders=("random", "permutation"),
    picks=("listener", "edge"),
)
