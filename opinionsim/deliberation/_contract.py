"""The contract of a structure as an inheritable test suite, and transcripts of what each agent saw."""

from __future__ import annotations

import re
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from opinionsim.assembly import assemble
from opinionsim.deliberation import Structure
from opinionsim.llm import phrases
from opinionsim.messages import ChatMessage
from opinionsim.prompts import load_pack
from opinionsim.running import replay, run
from opinionsim.schedules import StaticSchedule, with_moderator, with_probes
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results
from opinionsim.testing import ScheduleContract

#: Acts whose texts are called by the number of the turn alone: Ada 1, Ada 2.
_PLAIN = ("respond", "write")


class NumberedReplies(BaseChatModel):
    """A chat model whose replies all differ, so tests can find each reply in the prompts that show it.

    Each reply is ``Answer N.``, where N is the seed of its call. A judge asked for a number names the first reply. A
    moderator begins its instructions with the required words and decides nothing.
    """

    seed: int | None = None
    """Declared so that each call gets a seed."""

    @property
    def _llm_type(self) -> str:
        return "numbered"

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        reply = self.reply(str(messages[-1].content), options["seed"])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return self._generate(messages, **options)

    @staticmethod
    def reply(asked: str, seed: int) -> str:
        """The reply to a prompt whose last message is `asked`."""
        marker, instruct, moderate = _cues()
        answer = f"Answer {seed}."
        if any(phrases.pick_one(n) in asked for n in range(2, 10)):
            return "1"
        if instruct in asked:
            return f"{marker} {answer}"
        return f"{answer}\nVerdict: undecided" if moderate in asked else answer


@cache
def _cues() -> tuple[str, str, str]:
    """Words with which a moderator's own instructions begin, and the cues of asking for them and of moderating."""
    pack = load_pack("deliberation")
    marker = "" if pack.named is None else pack.named.file.automatic.marker
    return marker, pack.marks.cues["instruct"], pack.marks.cues["moderate"]


def played(interaction: Structure | Mapping[str, Any], names: Sequence[str], **fields: Any) -> Experiment:
    """The experiment of :func:`play`, before it is carried out."""
    cast = [{"name": name} for name in names]
    spec = {"name": "play", "task": "Say something.", "cast": cast, "interaction": interaction}
    return load_experiment({**spec, "model": {"name": "numbered"}, **fields})


def play(
    interaction: Structure | Mapping[str, Any],
    names: Sequence[str],
    store: str,
    *,
    chat_model: BaseChatModel | None = None,
    **fields: Any,
) -> Results:
    """Carry out a structure among named agents.

    Parameters
    ----------
    interaction : Structure or mapping
        The mapping under ``interaction:`` in a specification.
    names : sequence of str
        Names of the agents.
    store : str
        Path or address of the store.
    chat_model : BaseChatModel, optional
        Plays all agents; default :class:`NumberedReplies`.
    **fields
        Further fields of the specification, such as ``moderator``.
    """
    return run(played(interaction, names, **fields), store, chat_model=chat_model or NumberedReplies())


def who_saw_what(results: Results, replicate: int = 0) -> str:
    """Transcribe what the prompt of each turn showed, read from the prompts.

    Parameters
    ----------
    results : Results
        Results of :func:`play`, in which all texts differ.
    replicate : int
        The replicate, from 0.

    Returns
    -------
    str
        A line for each turn, in order, such as ``Ben 1 sees Response 0: Ada 1; Response 1: Cleo 1``. Ada 1 is Ada's
        first answer; texts from other acts have the act in brackets. The words before a colon introduce the text in the
        prompt. ``remembers`` marks texts from earlier messages of the prompt.
    """
    run_id = results.runs.loc[results.runs["replicate"] == replicate, "run_id"].item()
    turns = results.turns[results.turns["run_id"] == run_id]
    agents = results.agents[results.agents["run_id"] == run_id]
    names = dict(zip(agents["agent"], agents["name"], strict=True))
    called, so_far = dict[str, str](), Counter[tuple[int, str]]()
    lines = []
    for turn in turns.sort_values("turn").itertuples():
        so_far[turn.agent, turn.act] += 1
        number = so_far[turn.agent, turn.act]
        if turn.act in _PLAIN:
            name = f"{names[turn.agent]} {number}"
        else:
            name = f"{names[turn.agent]} ({turn.act}{f' {number}' if number > 1 else ''})"
        if turn.status == "skipped":
            lines.append(f"{name} is skipped")
            continue
        prompt = results.prompt(run_id, turn.turn)
        lines.append(f"{name} {_sees(prompt, called)}")
        if turn.message.strip():
            called[turn.message] = name
    return "\n".join(lines)


def _sees(prompt: Sequence[ChatMessage], called: Mapping[str, str]) -> str:
    """What a prompt shows, in words."""
    *earlier, last = prompt
    remembered = [name for message in earlier for _, name in _shown(message.content, called)]
    seen = [f"{label} {name}".strip() for label, name in _shown(last.content, called)]
    shown = "sees " + ("; ".join(seen) or "nothing")
    return f"remembers {'; '.join(remembered)}, {shown}" if remembered else shown


def _shown(text: str, called: Mapping[str, str]) -> list[tuple[str, str]]:
    """The texts that a message shows, in order: what introduces each, and its name."""
    places = [(found.start(), name) for said, name in called.items() for found in re.finditer(re.escape(said), text)]
    return [(_label(text[:place]), name) for place, name in sorted(places)]


def _label(before: str) -> str:
    """The line right above a text, the line of its opening delimiter aside; empty where that is blank."""
    lines = before.split("\n")[:-1]
    if lines and re.fullmatch(r"<\w+>", lines[-1]):
        lines.pop()
    return lines[-1].strip() if lines else ""


class StructureContract(ScheduleContract):
    """Tests that every structure passes.

    To run them with pytest, inherit this class and define a structure and its transcript. The suite includes the
    contract of schedules. Its runs need no network and cost nothing.
    """

    names: Sequence[str] = ("Ada", "Ben", "Cleo")
    """The agents."""

    @abstractmethod
    def structure(self) -> Structure | Mapping[str, Any]:
        """The structure under test, or the mapping under ``interaction:`` in a specification."""

    @abstractmethod
    def transcript(self) -> str:
        """What every agent sees in the first replicate, in the format of :func:`who_saw_what`, with any indentation."""

    def fields(self) -> dict[str, Any]:
        """Further fields of the specification, such as a moderator; by default none."""
        return {}

    def schedule(self) -> StaticSchedule:
        """The turns of the first replicate, including those of a moderator and of questions."""
        return self._planned(**self.fields())

    def _planned(self, **fields: Any) -> StaticSchedule:
        """The turns of the first replicate, with further fields of the specification."""
        experiment = played(self.structure(), self.names, **fields)
        schedule = assemble(experiment.runs[0], experiment.resources).schedule
        assert isinstance(schedule, StaticSchedule), "the turns of a structure are known before its first call"
        return schedule

    def test_what_every_agent_sees(self) -> None:
        """The prompts show what the transcript says, exactly and in order."""
        with _folder() as store:
            results = play(self.structure(), self.names, store, **self.fields())
            assert who_saw_what(results) == dedent(self.transcript()).strip()

    def test_the_journal_alone_gives_the_run_again(self) -> None:
        """A replay has the same turns to the byte, and no answer is empty."""
        with _folder() as store:
            results = play(self.structure(), self.names, store, **self.fields())
            assert [each.difference for each in replay(results)] == [""] * len(results.runs)
            assert results.turns["message"].str.strip().astype(bool).all()

    def test_a_moderator_reads_every_answer_once_and_last(self) -> None:
        """All answers of participants, in the order in which they were given."""
        schedule = self._planned()
        *before, last = with_moderator(schedule).turns()  # type: ignore[union-attr]
        assert last.agent == schedule.n_agents
        assert before == list(schedule.turns())
        assert last.reads == tuple(turn.index for turn in before if turn.act == "respond")

    def test_a_later_question_shows_the_own_last_answer(self) -> None:
        """When an agent without memory is asked for its opinion after the deliberation, it sees its last answer."""
        schedule = self._planned()
        own = {turn.agent: turn.index for turn in schedule.turns() if turn.act == "respond"}
        asked = [turn for turn in with_probes(schedule, 0, 1).turns() if turn.act == "probe"]  # type: ignore[union-attr]
        assert [turn.agent for turn in asked] == list(range(schedule.n_agents))
        for turn in asked:
            numbers = [ref for ref in turn.reads if isinstance(ref, int)]
            assert all(one < other for one, other in pairwise(numbers)), "shown in the order in which they were said"
            if schedule.acts["respond"].memory == "none" and turn.agent in own:
                assert own[turn.agent] in numbers


@contextmanager
def _folder() -> Iterator[str]:
    """A store that is gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield str(Path(folder) / "play.sqlite")
