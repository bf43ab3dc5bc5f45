"""A way of interacting of the tests' own: words that are not the whole reply, silence, relays, and numbers decided."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from functools import partial
from typing import Any

import opinionsim as osim
from opinionsim.errors import Rejected
from opinionsim.messages import ChatMessage, Message, Said
from opinionsim.schedules import ActSpec, Closing, External, Interaction, Setting, Turn, named

#: Members of the jury.
NAMES = ("Ada", "Ben", "Cleo", "Dan")
#: What a reply says to others, and the whole of it.
_SAID = re.compile(r"<say>(.*)</say>")


def words(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """The words that others hear, and their number; none of a reply that says nothing to others."""
    if (found := _SAID.search(text)) is None:
        raise Rejected("nothing between <say> and </say>")
    return Said(found[1], len(found[1].split()))


def marks(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """A mark for each message received, in their order."""
    given = text.split()
    if len(given) != len(received) or not all(each.isdigit() for each in given):
        raise Rejected(f"{len(received)} marks are needed")
    marked = {message.turn: {"mark": int(each)} for message, each in zip(received, given, strict=True)}
    return Said.numbers(marked)  # type: ignore[arg-type]


_SHOWN = "{% for each in received %} {{ each.block }}{% endfor %}"
_act = partial(ActSpec, memory="none", attempts=1, after="none")
SPEAK = _act("speak", "speak", kind="opinion", parse=words, text="You may speak:" + _SHOWN, variables=("received",))
SUBMIT = _act("submit", "", kind="opinion", draws=0)
READ_OUT = _act("read-out", "", kind="statement", draws=0)
JUDGE = _act("judge", "judge", kind="rating", parse=marks, text="Now judge:" + _SHOWN, variables=("received",))

#: Turns, what questions show in the end, and questions for the turns that were heard and the marks that were given.
_Flow = Generator[Turn | Closing | tuple[str, list[int]], Any, None]


@osim.part("interaction")
class Jury(Interaction):
    """All speak, a clerk reads out what the first one has said, and all mark what they have heard; so in each round."""

    acts = named(SPEAK, SUBMIT, READ_OUT, JUDGE)
    others = ("clerk",)
    takes_texts = True
    prompts = "deliberation"

    rounds: int = 2
    """Number of rounds."""
    asks_for_fit: bool = False
    """Whether an instrument of pairs says which message wins, in the place of marks."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("fit",) if self.asks_for_fit else ()

    @property
    def decided(self) -> Mapping[str, tuple[tuple[int, ...], frozenset[str]]]:
        return {"mark": (tuple(range(10)), frozenset({"rating"}))}

    def steps_for(self, size: int) -> int:
        return self.rounds

    def externals(self, setting: Setting) -> Mapping[str, str]:
        return {f"text-{agent}": text for agent, text in setting.given.items()}

    def _flow(self, setting: Setting) -> _Flow:
        index, best = 0, tuple[int, ...]()
        for step in range(1, self.rounds + 1):
            spoken: dict[int, int] = {}
            for agent in range(setting.size):
                given = agent in setting.given
                yield Turn(
                    index, step, agent, *(("submit", (External(f"text-{agent}"),)) if given else ("speak", best))
                )
                spoken[agent], index = index, index + 1
            heard = yield "heard", list(spoken.values())
            out, index = index, index + 1
            yield Turn(out, step, setting.size, "read-out", (heard[0],))
            ballots = []
            for agent in sorted(spoken.keys() - setting.given.keys()):
                order = setting.stream("order of marks", step, agent).permutation(len(heard))
                yield Turn(index, step, agent, "judge", (out, *(heard[place] for place in order.tolist())))
                ballots.append(index)
                index += 1
            told = yield ("fit", [out, *heard]) if self.asks_for_fit else ("marks", ballots)
            best = (max(heard, key=lambda turn: (told.get(turn, 0), turn)),)
        yield Closing({agent: (own, *best) for agent, own in spoken.items()})

    async def decide(self, setting: Setting, outcomes: Any) -> AsyncIterator[Turn | Closing]:
        flow, answer = self._flow(setting), None
        while True:
            try:
                each = flow.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(each, Turn | Closing):
                yield each
            elif each[0] == "heard":
                answer = [turn for turn in each[1] if (await outcomes.reply(turn)).passed_on]
            elif each[0] == "fit":
                out, *heard = each[1]
                answer = {turn: await outcomes.opinion(turn, "fit", about=out) for turn in heard}
            else:
                decided = [await outcomes.decision(turn) for turn in each[1]]
                answer = {}
                for turn, said in ((turn, said) for one in decided if one for turn, said in one.items()):
                    answer[turn] = answer.get(turn, 0) + said["mark"]

    def outline(self, setting: Setting) -> Iterator[Turn]:
        flow, answer = self._flow(setting), None
        while True:
            try:
                each = flow.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(each, Turn):
                yield each
            elif not isinstance(each, Closing):
                answer = each[1] if each[0] == "heard" else {}

    def closing(self, setting: Setting) -> Mapping[int, tuple[int, ...]]:
        return {agent: (agent, 0) for agent in range(setting.size)}


def reply(prompt: list[ChatMessage]) -> str:
    """What members of a jury say: Cleo keeps silent in the first round, and Dan's marks cannot be read.

    What stands around the words says the opposite of them.
    """
    asked = prompt[-1].content
    name = next(each for each in NAMES if f"You are {each}." in prompt[0].content)
    drawn = hashlib.sha256((name + asked).encode()).digest()
    if "You may speak:" in asked:
        first = "<response>" not in asked
        believes = ("I strongly believe Theory XYZ is true", "I am sure that Theory XYZ is true")[drawn[0] % 2]
        told = "" if name == "Cleo" and first else f"{believes}. I have {drawn[1]} reasons"
        return f"I strongly believe that Theory XYZ is false, but who cares. <say>{told}</say>"
    if "Now judge:" in asked:
        marked = asked.count("<response>")
        return "all the same" if name == "Dan" else " ".join(str(each % 10) for each in drawn[:marked])
    return "I doubt that Theory XYZ is true."


#: A jury of four.
SPEC: dict[str, Any] = {
    "name": "jury",
    "topic": {"name": "flat-earth"},
    "cast": [{"name": name, "persona": f"You are {name}."} for name in NAMES],
    "roles": {"clerk": {}},
    "model": {"name": "given"},
    "interaction": {"kind": "tests.support.deciding:Jury"},
    "measurement": {"classifier": "lexicon", "probe": {"before": 1, "after": 1}},
}
