"""The prompts of one agent, and the past they refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, Literal, Protocol

from jinja2 import Template

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage, Message

__all__ = ["Act", "AgentPrompts", "Case", "ConfirmationBias", "Past", "PersonaShown", "World", "render"]

#: How much of its persona an agent is told: name, attributes and background; attributes; name; no role-play.
PersonaShown = Literal["full", "demographics", "name", "none"]
#: Which instruction on confirmation bias an agent gets (A6).
ConfirmationBias = Literal["none", "weak", "strong"]
#: Whether prompts shut out all other sources of information (A6).
World = Literal["closed", "open"]

#: What an act was, as memory tells it: wrote a post, read something and answered, or answered unprompted.
Case = Literal["write", "review", "report"]


class Act(Protocol):
    """What prompts need to know of an act; :class:`opinionsim.schedules.ActSpec` is one."""

    @property
    def name(self) -> str:
        """What turns call it."""
        ...

    @property
    def template(self) -> str:
        """Name of the task template, without ``.j2``."""
        ...

    @property
    def kind(self) -> str:
        """Kind of text it produces; ``post`` counts as writing."""
        ...

    @property
    def labelling(self) -> str:
        """How received messages are introduced: ``anonymous``, ``numbered`` or ``named``."""
        ...


def _case(act: Act, received: Sequence[Message]) -> Case:
    if act.kind == "post":
        return "write"
    return "review" if received else "report"


@dataclass(frozen=True, slots=True)
class Past:
    """What an agent has done so far, as far as prompts mention it (Chuang et al. 2023; A6, A7).

    Attributes
    ----------
    previous : {"", "write", "review", "report"}
        The previous act: a text of kind ``post`` is a write; any other is a review when it read
        something, else a report. Empty before the first.
    previous_reads : int
        Messages shown in the previous act.
    posts_written, posts_seen, reports_given : int
        Counts, >= 0. An answer to a post (a review) is not counted as a report.
    """

    previous: Case | Literal[""] = ""
    previous_reads: int = 0
    posts_written: int = 0
    posts_seen: int = 0
    reports_given: int = 0

    def advance(self, act: Act, received: Sequence[Message]) -> Past:
        """The past after one more act.

        Parameters
        ----------
        act : Act
            What was done.
        received : sequence of Message
            What was shown for it.
        """
        case = _case(act, received)
        return Past(
            case,
            len(received),
            self.posts_written + (case == "write"),
            self.posts_seen + len(received),
            self.reports_given + (case == "report"),
        )


def render(place: str, template: Template, context: Mapping[str, Any]) -> str:
    """Render a template; whatever goes wrong inside it is the template's fault and told so.

    Raises
    ------
    SpecError
        Naming pack, file and line.
    """
    try:
        return template.render(context).strip()
    except Exception as error:  # a template is a user's program: any exception may come out of it
        files = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
        name, line = next((f for f in reversed(files) if PurePath(f[0]).suffix == ".j2"), (str(template.name), None))
        where = f"{place}/{name}" + (f":{line}" if line else "")
        raise SpecError(f"{where}: the template cannot be rendered: {error or type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class AgentPrompts:
    """All prompts of one agent in one run; an immutable value, built by :meth:`PromptPack.for_agent`.

    Attributes
    ----------
    name : str
        How prompts address the agent; empty when its name is not shown.
    """

    name: str
    _place: str
    _templates: Mapping[str, Template]
    _tasks: frozenset[str]
    _defang: Callable[[str], str]
    _shared: Mapping[str, Any]
    _system: ChatMessage | None

    def system(self) -> ChatMessage | None:
        """The system message: persona, closed world and bias.

        Returns
        -------
        ChatMessage or None
            None when there is nothing to say: no role-play, open world, no bias.
        """
        return self._system

    def task(self, act: Act, received: Sequence[Message], past: Past) -> ChatMessage:
        """What an act asks of the agent (A6).

        Parameters
        ----------
        act : Act
            Chooses the template and how messages are labelled.
        received : sequence of Message
            Messages shown, in order.
        past : Past
            Before this act.

        Returns
        -------
        ChatMessage
            Role ``user``.

        Raises
        ------
        SpecError
            If the pack has no task template of that name.
        """
        if act.template not in self._tasks:
            raise SpecError(
                f"{self._place}: no task template {act.template!r}, which act {act.name!r} asks for; "
                f"it has {', '.join(sorted(self._tasks))}"
            )
        return self._user(act.template, self._scene(act, received, past))

    def event(self, act: Act, received: Sequence[Message], text: str, past: Past) -> ChatMessage:
        """What an act leaves in memory: one narrated message (A7, A12).

        Parameters
        ----------
        act : Act
            What was done.
        received : sequence of Message
            What was shown for it, in order.
        text : str
            What the agent answered.
        past : Past
            Before this act.

        Returns
        -------
        ChatMessage
            Role ``user``, between the history delimiters.
        """
        scene = self._scene(act, received, past)
        return self._user("event", {**scene, "case": _case(act, received), "text": self._defang(text)})

    def reflection(self, experience: ChatMessage | None, past: ChatMessage | str | None) -> ChatMessage:
        """The request to reflect (A8).

        Parameters
        ----------
        experience : ChatMessage or None
            The event to reflect on, as :meth:`event` made it; None when the slot stays empty (A11).
        past : ChatMessage, str or None
            What stands in the slot for the past reflection: the text of one, an event (A11), or None
            for a first reflection.

        Returns
        -------
        ChatMessage
            Role ``user``.
        """
        earlier = self.recollection(past) if isinstance(past, str) else past
        return self._user(
            "reflect",
            {
                "name": self.name,
                "experience": experience.content if experience is not None else "",
                "past": earlier.content if earlier is not None else "",
            },
        )

    def recollection(self, text: str) -> ChatMessage:
        """How a reflection is shown in later prompts.

        Parameters
        ----------
        text : str
            What the agent wrote when it reflected.

        Returns
        -------
        ChatMessage
            Role ``user``, between the history delimiters.
        """
        return self._user("recollection", {"name": self.name, "text": self._defang(text)})

    def _scene(self, act: Act, received: Sequence[Message], past: Past) -> dict[str, Any]:
        """Variables that tasks and events share."""
        defang = self._defang
        return {
            **self._shared,
            "act": defang(act.name),
            "received": [{"text": defang(m.shown), "author": defang(m.author)} for m in received],
            "labelling": act.labelling,
            "previous": past.previous,
            "previous_reads": past.previous_reads,
            "posts_written": past.posts_written,
            "posts_seen": past.posts_seen,
            "reports_given": past.reports_given,
        }

    def _user(self, template: str, context: Mapping[str, Any]) -> ChatMessage:
        return ChatMessage("user", render(self._place, self._templates[template], context))
