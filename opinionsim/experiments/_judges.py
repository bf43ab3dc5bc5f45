"""What a chat model is asked that codes texts, known without loading it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from opinionsim import background
from opinionsim.classifiers import AskingClassifier, Item, asks, load_classifier
from opinionsim.errors import SpecError
from opinionsim.experiments._measurement_spec import WantedInstrument
from opinionsim.experiments._model_spec import ModelSpec
from opinionsim.experiments._sweep import PlannedRun
from opinionsim.llm import ScriptedChatModel
from opinionsim.messages import ChatMessage, Parse, Reply
from opinionsim.streams import canonical_json
from opinionsim.topics import Claim

__all__ = ["JUDGE", "Judge", "Judged", "Judges"]

#: The kind of call by which a judge codes a text, and what the names of its parts begin with.
JUDGE = "judge"

#: The classifier that asks a chat model.
_ASKING = "chat"


class Judged(NamedTuple):
    """What coding one text takes."""

    calls: int
    """If each question is answered at once."""
    characters: int
    """Of the prompts."""


class Judge:
    """A classifier that asks a chat model, with nobody behind it.

    Parameters
    ----------
    model : ModelSpec
        Who would answer.
    classifier : AskingClassifier
        Who makes the prompts; its own model is never asked.

    Attributes
    ----------
    key : str
        Tells its model from others, and from the same one in the part of an agent.
    """

    def __init__(self, model: ModelSpec, classifier: AskingClassifier) -> None:
        self.model = model
        self.key = f"{JUDGE} {canonical_json([model.name, model.max_tokens, model.options])}"
        self._classifier = classifier
        self._known: dict[tuple[str, int], Judged] = {}

    def judged(self, claim: Claim, length: int) -> Judged:
        """What coding a text of a length, in characters, takes."""
        key = claim.text, length
        if key not in self._known:
            self._known[key] = background.run(self._act_out(Item("x" * length, claim)))
        return self._known[key]

    async def _act_out(self, item: Item) -> Judged:
        """Count what is asked; the answer is a point of the scale, so that nothing is asked again."""
        answer = Reply(str(self._classifier.scale.points[0]))
        asked: list[int] = []

        async def ask(
            part: str, messages: Iterable[ChatMessage], *, parse: Parse | None = None, dropped: int = 0
        ) -> Reply:
            asked.append(sum(len(message.content) for message in messages))
            return answer

        await self._classifier.rate(ask, item)
        return Judged(len(asked), sum(asked))


class Judges:
    """The judges of an experiment, by the identity of their instrument.

    Parameters
    ----------
    runs : collection of PlannedRun
        Whose instruments they are.

    Raises
    ------
    SpecError
        If the options of a judge cannot be used.
    """

    def __init__(self, runs: Collection[PlannedRun]) -> None:
        cells = {id(run.cell): run.cell for run in runs}.values()
        found = {each.instrument_id: each for cell in cells for each in cell.instruments}
        judges = {identity: _judge(wanted) for identity, wanted in found.items()}
        self._judges = {identity: judge for identity, judge in judges.items() if judge is not None}

    def of(self, instrument_id: str) -> Judge | None:
        """The judge of an instrument; None where no chat model codes."""
        return self._judges.get(instrument_id)

    def asked_in(self, part: str) -> Judge | None:
        """The judge that a call of this part went to; None for one of another experiment."""
        named = part.removeprefix(f"{JUDGE}.")[:8]
        return next((judge for identity, judge in self._judges.items() if identity.startswith(named)), None)

    def all(self) -> list[Judge]:
        """Each of them."""
        return list(self._judges.values())


def _judge(wanted: WantedInstrument) -> Judge | None:
    """The judge of an instrument."""
    named = wanted.classifier
    if named.name != _ASKING:
        return None
    name, options = named.options.get("model"), named.options.get("options")
    if not isinstance(name, str) or not name:
        raise SpecError(
            f"measurement.classifier: classifier {named.name!r} needs a model, for instance model: openai:gpt-4o-mini "
            "among its options"
        )
    try:
        # The model is replaced, so neither key nor network is needed.
        classifier = load_classifier(named.name, wanted.scale, **{**named.options, "model": ScriptedChatModel()})
    except SpecError as error:
        raise SpecError(f"measurement.classifier: {error}") from error.__cause__
    if not asks(classifier):
        return None
    model = ModelSpec(name=name, max_tokens=classifier.endpoint.max_tokens, options=dict(options or {}))
    return Judge(model, classifier)
