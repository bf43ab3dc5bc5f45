"""Moderators of a deliberation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opinionsim.deliberation._running import Deliberation, check
from opinionsim.deliberation._speaker import NoAnswer, Speaker, texts
from opinionsim.errors import SpecError
from opinionsim.prompts import fill

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: System instructions that the moderator is to write itself.
_AUTO = "auto"


class Moderator(Speaker):
    """A moderator, who reads all responses of a structure and then responds last (Plurals; B5).

    A moderator is a description that no run changes. It makes no calls until you process its structure. Give at most
    one of `persona`, `system_instructions` and `values` to say who it is; without any of them, it has no system
    message.

    Parameters
    ----------
    persona : str, optional
        Its system message: a name in the prompt pack, or a text in which ${task} stands for the task.
    system_instructions : str, optional
        The complete system message, in which ${task} stands for the task. With ``"auto"``, the moderator writes its
        instructions from the task in a separate turn.
    combination_instructions : str, optional
        Instructions for using the responses: a name in the prompt pack, or a text that contains ${previous_responses}.
        Default ``"default"``, and ``"verdict"`` with `values`.
    model, kwargs
        As for :class:`Agent`.
    task : str, optional
        Its task; default the task of the structure.
    values : str, optional
        The only values by which it accepts, rejects or leaves undecided what the task asks for.

    Attributes
    ----------
    persona, combination_instructions, task, values, model
        As given.

    Raises
    ------
    SpecError
        If an argument is not valid, or two do not go together.
    """

    def __init__(
        self,
        persona: str | None = None,
        system_instructions: str | None = None,
        combination_instructions: str | None = None,
        model: str | BaseChatModel = "scripted",
        task: str | None = None,
        kwargs: Mapping[str, Any] | None = None,
        values: str | None = None,
    ) -> None:
        super().__init__(task, combination_instructions, model, kwargs)
        self.persona, self.values, self._system = persona, values, system_instructions
        check(self, self)

    @property
    def automatic(self) -> bool:
        """Whether it writes its own instructions."""
        return self._system == _AUTO

    @property
    def system_instructions(self) -> str | None:
        """Its system message, in which ${task} may stand for the task; ``"auto"`` before it has written its own."""
        if self._system is not None:
            return self._system
        if self.values is not None:
            return fill(texts().file.values, {"values": self.values})
        return None if self.persona is None else texts().moderator(self.persona)

    @system_instructions.setter
    def system_instructions(self, instructions: str) -> None:
        another = self.with_instructions(instructions)
        check(another, another)
        vars(self)["_system"] = instructions

    @property
    def info(self) -> dict[str, Any]:
        """Its description and its calls."""
        return {**super().info, "persona": self.persona, "values": self.values}

    def generate_system_instructions(self, task: str | None = None, max_tries: int = 10) -> str:
        """Let the model write instructions for a moderator of a task. The moderator itself does not change.

        Parameters
        ----------
        task : str, optional
            The task; default the moderator's task.
        max_tries : int
            Number of replies after which it gives up.

        Returns
        -------
        str
            The instructions, at most 50 words.

        Raises
        ------
        SpecError
            If there is no task.
        ModelCallError
            If the model fails, or no reply begins with the requested marker.
        """
        asked = task or self.task
        if asked is None:
            raise SpecError("the moderator has no task to write instructions for; set its task, or pass task here")
        interaction = {"kind": "instruct", "marker": texts().file.automatic.marker, "attempts": max_tries}
        results = Deliberation("moderator", interaction, asked, [self], (None,)).carry_out()
        return str(results.turns["message"].iloc[0])

    def with_instructions(self, instructions: str) -> Moderator:
        """Return a copy of this moderator with another system message."""
        return self._like(_system=instructions, _history=dict(self._history))

    def member(self, name: str | None, task: str | None, model: str, no_answer: NoAnswer) -> dict[str, Any]:
        """Only its chat model, for turns with nothing to moderate."""
        return self._stated(model, no_answer)

    def field(self, model: str, no_answer: NoAnswer) -> dict[str, Any]:
        """The moderator as a field of a specification.

        Parameters
        ----------
        model : str
            Name of its chat model in the specification.
        no_answer : {"fail", "skip"}
            What to do if the last reply is refused or empty.
        """
        return self._stated(
            model,
            no_answer,
            persona=self.persona,
            system=None if self.automatic else self._system,
            automatic=self.automatic or None,
            values=self.values,
            instructions=self.combination_instructions,
            task=self.task,
        )
