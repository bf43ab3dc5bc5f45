"""The prompts of one agent, and the past they refer to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jinja2 import Template

from opinionsim.errors import NothingSaid, SpecError
from opinionsim.messages import SPOKEN, ChatMessage, Message, Parse, Reply, ReplyStatus, Speech, printable
from opinionsim.prompts._act import Act
from opinionsim.prompts._marks import Marks
from opinionsim.prompts._prompt_settings import TASK_VARIABLES
from opinionsim.prompts._templates import SUFFIX, render

#: Kind of act in memories: wrote a post; read messages and stated a belief; stated a belief without reading; or
#: answered something else.
Case = Literal["write", "review", "report", "response"]


class Frame(NamedTuple):
    """A template that a memory provides; used if the prompt pack has none of that name."""

    name: str
    """Name of the template."""
    text: str
    """The template itself."""
    variables: tuple[str, ...] = ()
    """Names of the values that it is given, beside the agent's ``name``."""


def _case(act: Act, received: Sequence[Message]) -> Case:
    if act.heard:
        return "response" if act.answers else "write"
    return "review" if received else "report"


@dataclass(frozen=True, slots=True)
class Past:
    """What an agent has done so far, as far as prompts mention it (Chuang et al. 2023; A6, A7).

    Attributes
    ----------
    previous : {"", "write", "review", "report", "response"}
        The previous act. A text that others hear is a response, or a write if it answers nothing. A text that no one
        hears is a review if the agent read something, and otherwise a report. Empty before the first act. Refused and
        empty replies count only for reviews, because the agent has seen the messages.
    previous_reads : int
        Number of messages that the agent read in the previous act.
    posts_written, posts_seen, reports_given : int
        Counts, >= 0. An answer to a post (a review) is not counted as a report, and a refused or empty reply is
        neither post nor report.
    """

    previous: Case | Literal[""] = ""
    previous_reads: int = 0
    posts_written: int = 0
    posts_seen: int = 0
    reports_given: int = 0

    def advance(self, act: Act, received: Sequence[Message], status: ReplyStatus = "answered") -> Past:
        """The past after one more act.

        Parameters
        ----------
        act : Act
            The act.
        received : sequence of Message
            The messages that the agent read for it.
        status : ReplyStatus
            Whether the agent said anything.
        """
        case = _case(act, received)
        if status not in SPOKEN and case != "review":
            return replace(self, posts_seen=self.posts_seen + len(received))
        return Past(
            case,
            len(received),
            self.posts_written + (case == "write"),
            self.posts_seen + len(received),
            self.reports_given + (case == "report"),
        )


@dataclass(frozen=True, slots=True)
class Wording:
    """The templates that agents are addressed with, and what makes values safe to insert.

    Attributes
    ----------
    place : str
        Name of the pack in errors.
    frames : mapping of str to Template
        Templates of the system message and of memories, by name.
    tasks : mapping of str to Template
        Task templates of the pack, by name.
    marks : Marks
        Delimiters and cues.
    defang : callable
        Makes a text safe to insert.
    language : str
        ISO 639-1 code of the language that the templates are in.
    own : mapping of (str, str) to Template
        Texts that acts bring themselves, by name of the act and text.
    stated : mapping of str to collection of str
        Variables of each task template.
    """

    place: str
    frames: Mapping[str, Template]
    tasks: Mapping[str, Template]
    marks: Marks
    defang: Callable[[str], str]
    language: str = "en"
    own: Mapping[tuple[str, str], Template] = field(default_factory=lambda: MappingProxyType({}))
    stated: Mapping[str, Collection[str]] = field(default_factory=lambda: MappingProxyType({}))

    def frame(self, name: str) -> Template:
        """The template of a frame.

        Raises
        ------
        SpecError
            If the pack has none.
        """
        if name not in self.frames:
            raise SpecError(f"{self.place} has no template {name}{SUFFIX}, which the memory of this run needs")
        return self.frames[name]

    def task(self, act: Act) -> Template:
        """The template of an act: the pack's, otherwise the act's own text after the pack is bound to it.

        Raises
        ------
        SpecError
            If there is neither.
        """
        found = self.tasks.get(act.template)
        if found is None and act.text is not None:
            found = self.own.get((act.name, act.text))
        if found is not None:
            return found
        lack = "the act brings no text of its own" if act.text is None else "the pack is not bound to the act"
        raise SpecError(
            f"{self.place}: no task template {act.template!r}, which act {act.name!r} needs; "
            f"it has {', '.join(sorted(self.tasks)) or 'none'}, and {lack}"
        )


@dataclass(frozen=True, slots=True)
class AgentPrompts:
    """All prompts of one agent in one run; an immutable value, built by :meth:`PromptPack.for_agent`.

    Attributes
    ----------
    name : str
        How prompts address the agent; empty when its name is not shown.
    agent : int or None
        Its number in the cast, which marks its own messages; None if it has none.
    author : str
        The name that others see with its messages; empty for a stranger.
    """

    name: str
    agent: int | None
    author: str
    _wording: Wording
    _shared: Mapping[str, Any]
    _system: ChatMessage | None

    def system(self) -> ChatMessage | None:
        """The system message: persona, role, closed world and disposition.

        Returns
        -------
        ChatMessage or None
            None if there is nothing to say: no role-play, no role but that of a participant, open world, no bias.
        """
        return self._system

    def task(self, act: Act, received: Sequence[Message], past: Past) -> ChatMessage:
        """The request of an act to the agent (A6).

        Parameters
        ----------
        act : Act
            Chooses the template, the variables it gets, and how messages are labelled.
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
            If there is no template for the act.
        """
        scene = self._scene(act, received, past)
        names = TASK_VARIABLES if act.variables is None else act.variables
        declared = {name: scene[name] for name in names if name in scene}
        values = {name: self._wording.defang(text) for name, text in act.values.items()}
        return self._user(self._wording.task(act), {**declared, **values})

    def speech(self, act: Act | None = None) -> Speech:
        """In whose name, and how, the agent says its replies to an act; without an act, a reflection."""
        words = None if act is None else self.words(act)
        system, again = "" if self._system is None else self._system.content, partial(self._again, words)
        author, language = self.name or self.author, self._wording.language
        return Speech(author, language, words, system, "own" if act is None else "all", again)

    def words(self, act: Act) -> int | None:
        """Maximum number of words that an act asks for; None if it states no number or only the limit of replies."""
        told, stated = act.values.get("words", ""), self._wording.stated.get(act.template, ())
        if told.isdecimal():
            return int(told)
        posts = "post_words" in stated and (not act.answers or self._shared["claim"])
        found = "post_words" if posts else "report_words" if "report_words" in stated else ""
        words: int | None = self._shared.get(found)
        return words

    def _again(self, words: int | None, cause: str, reason: str) -> str:
        """What is added to a task that is asked again, saying what was wrong."""
        template = self._wording.frames.get("again")
        if template is None:
            return f"Your last answer could not be used: {reason}. Please answer again."
        told = {"cause": cause, "reason": self._wording.defang(reason), "words": words}
        return render(self._wording.place, template, {"name": self.name, "language": self._wording.language, **told})

    def said(self, reply: Reply) -> Reply:
        """The form of a reply that is published and remembered.

        Its text is :func:`~opinionsim.messages.printable`, without the pack's labels that it begins with, and without
        the one pair of the pack's delimiters that encloses all of it, if any does. If nothing is left, the text is
        empty.
        """
        marks = self._wording.marks
        text = marks.unwrapped(marks.unlabelled(printable(reply.text), self.author))
        nothing = reply.status in SPOKEN and not text.strip()
        return reply._replace(text=text, status="empty" if nothing else reply.status)

    def parse(self, act_parse: Parse | None) -> Parse | None:
        """The `parse` of an act: its own, or one that treats a reply with nothing but labels as empty."""
        if act_parse is not None or not self._wording.marks.labels:
            return act_parse

        def parse(call: str, text: str, received: tuple[Message, ...]) -> None:
            if text.strip() and self.said(Reply(text)).status == "empty":
                raise NothingSaid("it contains only the label of a message")

        return parse

    def event(self, act: Act, received: Sequence[Message], reply: Reply, past: Past) -> ChatMessage:
        """The message that an act leaves in memory (A7, A12).

        After a refused or empty reply, or a decision without words, it states that the agent did not post, or did not
        say what it believes. No memory contains the words of a refusal.

        Parameters
        ----------
        act : Act
            The act.
        received : sequence of Message
            Messages shown for it, in order.
        reply : Reply
            The agent's reply, as :meth:`said` gives it.
        past : Past
            Before this act.

        Returns
        -------
        ChatMessage
            Role ``user``, between the history delimiters.

        Raises
        ------
        SpecError
            If the pack has no such template, as of :meth:`reflection` and :meth:`recollection`.
        """
        scene = self._scene(act, received, past)
        text = reply.text if reply.status in SPOKEN else ""
        # Packs know answers, refusals, and texts that were cut off; whatever else was said, nobody heard it.
        known = {"unreadable": "answered", "filtered": "refused"}
        status = known.get(reply.status, reply.status if reply.status in (*SPOKEN, "refused") else "empty")
        return self._user(
            self._wording.frame("event"),
            {**scene, "case": _case(act, received), "condition": status, "text": self._wording.defang(text)},
        )

    def reflection(self, experience: Sequence[ChatMessage], past: ChatMessage | None) -> ChatMessage:
        """The request to reflect (A8).

        Parameters
        ----------
        experience : sequence of ChatMessage
            The events to reflect on, as :meth:`event` made them, oldest first; none where the slot stays empty (A11).
        past : ChatMessage or None
            Content of the slot for the past reflection: a recollection, an event (A11), or None for a first reflection.

        Returns
        -------
        ChatMessage
            Role ``user``.
        """
        return self._user(
            self._wording.frame("reflect"),
            {
                "name": self.name,
                "experience": "\n\n".join(event.content for event in experience),
                "past": "" if past is None else past.content,
            },
        )

    def recollection(self, reply: Reply) -> ChatMessage:
        """The message that shows a reflection in later prompts.

        Parameters
        ----------
        reply : Reply
            The reflection that the agent wrote.

        Returns
        -------
        ChatMessage
            Role ``user``, between the history delimiters.
        """
        context = {"name": self.name, "text": self._wording.defang(self.said(reply).text)}
        return self._user(self._wording.frame("recollection"), context)

    def framed(self, template: str, **values: str | ChatMessage | Sequence[ChatMessage]) -> ChatMessage:
        """A message by a template that the memory brings along (:class:`Frame`).

        Parameters
        ----------
        template : str
            Its name.
        **values
            Values for the template. Texts are made safe to insert. Messages, such as events, are inserted unchanged;
            several follow one below the other.

        Returns
        -------
        ChatMessage
            Role ``user``.

        Raises
        ------
        SpecError
            If neither the pack nor the memory has such a template, or it cannot be rendered.
        """
        told = {
            name: self._wording.defang(value)
            if isinstance(value, str)
            else "\n\n".join(each.content for each in ([value] if isinstance(value, ChatMessage) else value))
            for name, value in values.items()
        }
        return self._user(self._wording.frame(template), {"name": self.name, **told})

    def _scene(self, act: Act, received: Sequence[Message], past: Past) -> dict[str, Any]:
        """Variables that tasks and events share."""
        return {
            **self._shared,
            "act": self._wording.defang(act.name),
            "received": [self._entry(message) for message in received],
            "labelling": act.labelling,
            "previous": past.previous,
            "previous_reads": past.previous_reads,
            "posts_written": past.posts_written,
            "posts_seen": past.posts_seen,
            "reports_given": past.reports_given,
        }

    def _entry(self, message: Message) -> dict[str, Any]:
        """A received message as templates see it."""
        defang, (opening, closing) = self._wording.defang, self._wording.marks.post
        text = defang(message.text)
        return {
            "text": text,
            "author": defang(message.author),
            "role": defang(message.role),
            "act": defang(message.act),
            "own": message.agent is not None and message.agent == self.agent,
            "turn": message.turn,
            "block": f"{opening}\n{text}\n{closing}",
        }

    def _user(self, template: Template, context: Mapping[str, Any]) -> ChatMessage:
        return ChatMessage("user", render(self._wording.place, template, context))
