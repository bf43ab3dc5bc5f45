"""Agents of a deliberation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opinionsim.deliberation._running import Deliberation, check
from opinionsim.deliberation._speaker import NoAnswer, Speaker, selector_name
from opinionsim.deliberation._survey import drawn_persona
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts import Addressee, Brief, Conditions, load_pack

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Persona that stands for a person drawn from the whole survey.
_RANDOM = "random"


class Agent(Speaker):
    """An agent, by itself or in structures (Plurals; B1).

    An agent is a description that no run changes. It makes no calls until you call :meth:`process` on the agent or its
    structure. Give at most one of `ideology`, `query_str`, `persona` and `system_instructions` to say who it is;
    without any of them, it has no system message.

    Parameters
    ----------
    task : str, optional
        The agent's task; default the task of its structure.
    combination_instructions : str, optional
        Instructions for using the responses that it sees: a name in the prompt pack, or a text that contains
        ${previous_responses}. Default those of its structure.
    ideology : str, optional
        Draws a person from one group of the survey's mapping. The mapping of the ANES 2024 pilot study has ``liberal``,
        ``conservative``, ``moderate``, ``very liberal`` or ``very conservative``.
    query_str : str, optional
        Draws a person from the respondents who match the query.
    persona : str, optional
        Description of the person that it plays; ``"random"`` draws one from the survey.
    system_instructions : str, optional
        The complete system message; ${task} is replaced by its task.
    persona_template : str, optional
        A name in the prompt pack, or a text that contains ${persona}. Default ``"anes"`` for a person from the survey,
        else ``"default"``.
    model : str or BaseChatModel
        ``"scripted"`` (default), a name with its provider such as ``"openai:gpt-4o"``, or a LangChain chat model.
    kwargs : mapping, optional
        Settings of a model given by name: ``temperature``, ``max_tokens``, and others under the provider's names.
    num_responses : int
        Number of replies to draw for each answer, 1 to 100.
    response_selector : callable or str, optional
        Picks one of several replies. Pass a function that takes the list of texts and returns one of them or its
        position, or the name of a selector such as ``"shortest"`` or ``"judge"``. Required with more than one reply.

    Attributes
    ----------
    persona : str or None
        Description of the person that it plays.
    task, combination_instructions, ideology, query_str, num_responses, response_selector, model
        As given.
    persona_template : str or None
        As given; by default ``"anes"`` for a person from the survey.
    selector_name : str or None
        Name of its selector in a specification.

    Raises
    ------
    SpecError
        If an argument is not valid, or two do not go together.
    SurveyError
        If the agent needs a person from a survey and :func:`use_survey` has not named one, or no respondent matches.
    """

    def __init__(
        self,
        task: str | None = None,
        combination_instructions: str | None = None,
        ideology: str | None = None,
        query_str: str | None = None,
        persona: str | None = None,
        system_instructions: str | None = None,
        persona_template: str | None = None,
        model: str | BaseChatModel = "scripted",
        kwargs: Mapping[str, Any] | None = None,
        num_responses: int = 1,
        response_selector: Callable[[Sequence[str]], Any] | str | None = None,
    ) -> None:
        who = {
            "ideology": ideology,
            "query_str": query_str,
            "persona": persona,
            "system_instructions": system_instructions,
        }
        given = [name for name, value in who.items() if value is not None]
        if len(given) > 1:
            raise SpecError(f"{given[0]} and {given[1]} both describe the agent; give one of {', '.join(who)}")
        super().__init__(task, combination_instructions, model, kwargs)
        self.ideology, self.query_str, self._system = ideology, query_str, system_instructions
        self.num_responses, self.response_selector = num_responses, response_selector
        self.selector_name = selector_name(response_selector)
        if drawn := ideology is not None or query_str is not None or persona == _RANDOM:
            persona = drawn_persona(f"{given[0]}={who[given[0]]!r}", ideology, query_str).background
        self.persona = persona
        self.persona_template = "anes" if drawn and persona_template is None else persona_template
        check(self)

    @property
    def system_instructions(self) -> str | None:
        """Its system message, which contains ${task} if the agent has no task."""
        if self._system is not None and self.task is None:
            return self._system
        person = None if self.persona is None else Persona("", background=self.persona)
        brief = Brief(system=self._system, template=self.persona_template)
        told = Addressee(OpinionScale(), Conditions(world="open"), person, task=self.task or "", brief=brief)
        message = load_pack("deliberation").for_agent(told).system()
        return None if message is None else message.content

    @property
    def info(self) -> dict[str, Any]:
        """Its description and its calls."""
        own = ("persona", "ideology", "query_str", "persona_template", "num_responses")
        return {**super().info, **{name: getattr(self, name) for name in own}}

    def set_task(self, task: str | None) -> None:
        """Set another task, or with None the task of its structure; finished runs do not change."""
        check(self._like(task=task))
        vars(self)["task"] = task

    def process(
        self,
        task: str | None = None,
        previous_responses: str | Sequence[str] = "",
        *,
        store: str | None = None,
        run: str | None = None,
        seed: int | None = None,
        execution: Mapping[str, Any] | None = None,
    ) -> str:
        """Answer a task with one call, or with `num_responses` calls and those of the selector.

        Parameters
        ----------
        task : str, optional
            Replaces the agent's task for this call only.
        previous_responses : str or sequence of str
            Responses that the agent sees, with its combination instructions.
        store, run, seed, execution
            As for :meth:`AbstractStructure.process`.

        Returns
        -------
        str
            The answer.

        Raises
        ------
        SpecError
            If there is no task, or there are previous responses but no combination instructions.
        ModelCallError
            If the model fails, or its last reply is refused or empty.
        """
        asked = task or self.task
        if asked is None:
            raise SpecError("the agent has no task; set one, or call process(task=...)")
        shown = [previous_responses] if isinstance(previous_responses, str) else list(previous_responses)
        shown = [text for text in shown if text]
        if shown and self.combination_instructions is None:
            raise SpecError("previous_responses need combination_instructions, but the agent has none; set them")
        # Both have one history.
        asking = self._like(task=asked)
        deliberation = Deliberation("agent", {"kind": "ensemble", "messages": shown}, asked, [asking], (None,))
        results = deliberation.carry_out(store=store, run=run, seed=seed, execution=execution)
        return str(results.turns["message"].iloc[0])

    def member(self, name: str | None, task: str | None, model: str, no_answer: NoAnswer) -> dict[str, Any]:
        """Its fields that have a value, and its chat model."""
        return self._stated(
            model,
            no_answer,
            name=name,
            system=self._system,
            persona=self.persona,
            template=self.persona_template,
            task=None if self.task == task else self.task,
            instructions=self.combination_instructions,
            draws=self.num_responses,
            selector=self.selector_name,
        )
