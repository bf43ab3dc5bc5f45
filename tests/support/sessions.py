"""Sessions that look for a consensus: small ones, and a model that notes its prompts and says what a test gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from opinionsim.llm import ScriptedChatModel
from opinionsim.prompts import load_pack

REFUSED = AIMessage("", additional_kwargs={"refusal": "I will not."})
#: Tasks by the phrase that stands in the prompts of each and in no other.
_CUES = {phrase: task for task, phrase in load_pack("deliberation").marks.cues.items()}

TOPIC: dict[str, Any] = {
    "definition": {
        "name": "cars",
        "title": "Cars",
        "category": "policy",
        "question": "Should the town centre be closed to cars?",
        "claims": {"for": "The town centre should be closed to cars.", "against": "It should stay open to cars."},
    },
    "framing": "for",
}


def session(size: int = 3, **fields: Any) -> dict[str, Any]:
    """A specification of a small session; keys with ``__`` stand for paths, others for fields of the interaction."""
    spec: dict[str, Any] = {
        "name": "session",
        "seed": 1,
        "topic": TOPIC,
        "population": {"size": size},
        "interaction": {"kind": "consensus", "candidates": 2, "rounds": 0},
        "roles": {"mediator": {}},
        "measurement": {},
        "model": {"name": "scripted"},
    }
    for path, value in fields.items():
        *folders, last = path.split("__") if "__" in path else ("interaction", path)
        node = spec
        for folder in folders:
            node[folder] = dict(node.get(folder, {}))
            node = node[folder]
        node[last] = value
    predicts = "predicted" in spec["interaction"].get("ballots", ()) and "predictor" not in spec["interaction"]
    return {**spec, "roles": {**spec["roles"], **({"predictor": {}} if predicts else {})}}


class Asked(NamedTuple):
    """One call of a model."""

    task: str
    system: str
    prompt: str
    seed: int


class NotingModel(ScriptedChatModel):
    """The scripted model, but for what a test gives it to say; it notes what it was asked."""

    _says: Callable[[Asked], str | AIMessage | None] = PrivateAttr()
    _asked: list[Asked] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[Asked]:
        """Its calls so far."""
        return self._asked

    def of(self, task: str) -> list[Asked]:
        """Its calls for a task."""
        return [each for each in self._asked if each.task == task]

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        *before, last = [each.content for each in messages]
        task = next(name for phrase, name in _CUES.items() if phrase in last)
        asked = Asked(task, "\n".join(before), last, kwargs["seed"])
        self._asked.append(asked)
        said = self._says(asked)
        if said is None:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said) if isinstance(said, str) else said)])


def noting(says: Callable[[Asked], str | AIMessage | None] = lambda asked: None) -> NotingModel:
    """A model that says what `says` gives, and what the scripted model says where that is None."""
    model = NotingModel()
    model._says = says
    return model
