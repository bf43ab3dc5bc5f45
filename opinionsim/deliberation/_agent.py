"""Agents of a deliberation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from opinionsim.deliberation._running import Deliberation
from opinionsim.deliberation._speaker import Speaker, checked_text, selector_name, texts, whole_number
from opinionsim.deliberation._survey import drawn_persona, used_survey
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts import Brief, load_pack
from opinionsim.surveys import Survey, SurveyMapping

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Persona that stands for a person drawn from the whole survey.
_RANDOM = "random"


class Agent(Speaker):
    """An agent, by itself or in structures (Plurals; B1).

    It is a description: nothing is asked before :meth:`process`, its own or that of a structure, and no run changes it.
    At most one of `ideology`, `query_str`, `persona` and `system_instructions` says who it is; with none of them it
    has no system message.

    Parameters
    ----------
    task : str, optional
        Its own task; default that of its structure.
    combination_instructions : str, optional
        What it is told about responses that it is shown: a name of the prompt pack, or a text that holds
        ${previous_responses}. Default those of its structure.
    ideology : str, optional
        A person drawn from the survey among one group of its mapping: with that of the ANES 2024 pilot study
        ``liberal``, ``conservative``, ``moderate``, ``very liberal`` or ``very conservative``.
    query_str : str, optional
        A person drawn from the survey among those of whom the query is true.
    persona : str, optional
        The person it plays, in words; ``"random"`` draws one from the survey.
    system_instructions : str, optional
        Its whole system message, in which ${task} stands for its task.
    persona_template : str, optional
        A name of the prompt pack, or a text that holds ${persona}. Default ``"anes"`` for a person of the survey, else
        ``"default"``.
    model : str or BaseChatModel
        ``"scripted"`` (default), a name with its provider such as ``"openai:gpt-4o"``, or a LangChain chat model.
    kwargs : mapping, optional
        Settings of a model given by name: ``temperature``, ``max_tokens``, and others by their names at the provider.
    num_responses : int
        Replies drawn for each of its answers, 1 to 100.
    response_selector : callable or str, optional
        Picks one of several replies: a function of the list of texts that returns one of them, or its position; or the
        name of a selector, such as ``"shortest"`` or ``"judge"``. Needed with more than one reply.

    Attributes
    ----------
    persona : str or None
        The person it plays, in words.
    ideology, query_str, persona_template, num_responses, response_selector
        As given.

    Raises
    ------
    SpecError
        If an argument is not valid, or two do not go together.
    SurveyError
        If a person is to be drawn and :func:`use_survey` has named no survey, or nobody matches.
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
        if combination_instructions is not None:
            texts().instructions(combination_instructions)
        super().__init__(task, combination_instructions, model, kwargs)
        who = {
            "ideology": ideology,
            "query_str": query_str,
            "persona": persona,
            "system_instructions": system_instructions,
        }
        given = [name for name, value in who.items() if checked_text(name, value) is not None]
        if len(given) > 1:
            raise SpecError(f"{given[0]} and {given[1]} both say who the agent is; give one of {', '.join(who)}")
        if persona_template is not None:
            if not given or system_instructions is not None:
                raise SpecError("persona_template has no effect without a persona, ideology or query_str")
            texts().persona(persona_template)
        self._num_responses = _checked_draws(num_responses, response_selector)
        self._selector = response_selector
        self._selector_name = selector_name(response_selector)
        self._ideology, self._query_str, self._system = ideology, query_str, system_instructions
        self._drawn: Persona | None = None
        if ideology is not None or query_str is not None or persona == _RANDOM:
            argument = f"{given[0]}={who[given[0]]!r}"
            self._drawn = drawn_persona(argument, ideology, query_str)
        self._persona = persona if self._drawn is None else self._drawn.background
        self._template = persona_template or ("default" if self._drawn is None else "anes") if self._persona else None

    @property
    def ideology(self) -> str | None:
        """Group of the survey that it was drawn from."""
        return self._ideology

    @property
    def query_str(self) -> str | None:
        """Query of the survey that it was drawn by."""
        return self._query_str

    @property
    def persona(self) -> str | None:
        """The person it plays, in words."""
        return self._persona

    @property
    def persona_template(self) -> str | None:
        """Its persona template, as given or by default; None without a persona."""
        return self._template

    @property
    def num_responses(self) -> int:
        """Replies drawn for each of its answers."""
        return self._num_responses

    @property
    def response_selector(self) -> Callable[[Sequence[str]], Any] | str | None:
        """What picks one of several replies, as given."""
        return self._selector

    @property
    def selector_name(self) -> str | None:
        """The name under which a specification holds its selector."""
        return self._selector_name

    @property
    def data(self) -> Survey | None:
        """The survey in use; None where none is named."""
        return used_survey()

    @property
    def persona_mapping(self) -> SurveyMapping | None:
        """The mapping of the survey in use; None where none is named."""
        return None if self.data is None else self.data.mapping

    def is_anes_persona(self) -> bool:
        """Whether it plays a person of the survey."""
        return self._drawn is not None

    @property
    def system_instructions(self) -> str | None:
        """Its system message; ${task} stands in it where it has no task of its own."""
        if self._system is not None and self._task is None:
            return self._system
        message = (
            load_pack("deliberation")
            .for_agent(
                scale=OpinionScale(),
                world="open",
                persona=None if self._persona is None else Persona("", background=self._persona),
                task=self._task or "",
                brief=Brief(system=self._system, template=self._template),
            )
            .system()
        )
        return None if message is None else message.content

    @property
    def info(self) -> dict[str, Any]:
        """Its description, and the calls made of it."""
        own = {
            "persona": self._persona,
            "ideology": self._ideology,
            "query_str": self._query_str,
            "persona_template": self._template,
            "num_responses": self._num_responses,
        }
        return {**super().info, **own}

    def set_task(self, task: str | None) -> None:
        """Give it another task, or with None that of its structure; runs that are over stay as they are."""
        self._task = checked_text("task", task)

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
        """Answer a task: one call, or `num_responses` and what the selector asks.

        Parameters
        ----------
        task : str, optional
            Replaces its own task in this call; the agent keeps its own.
        previous_responses : str or sequence of str
            Responses that it is shown with its combination instructions.
        store, run, seed, execution
            As for :meth:`AbstractStructure.process`.

        Returns
        -------
        str
            The answer.

        Raises
        ------
        SpecError
            If there is no task, or there are previous responses and no combination instructions.
        ModelCallError
            If the model fails, or its last reply is refused or empty.
        """
        asked = checked_text("task", task) or self._task
        if asked is None:
            raise SpecError("the agent has no task; give it one, or process(task=...)")
        shown = [previous_responses] if isinstance(previous_responses, str) else list(previous_responses)
        shown = [text for text in shown if text]
        if shown and self._instructions is None:
            raise SpecError(
                "previous_responses are shown with combination_instructions, and the agent has none; give it some"
            )
        # The same agent with this task; both have one history.
        asking = copy.copy(self)
        asking._task = asked
        deliberation = Deliberation("agent", {"kind": "ensemble", "messages": shown}, asked, [asking], (None,))
        results = deliberation.carry_out(store=store, run=run, seed=seed, execution=execution)
        return str(results.turns["message"].iloc[0])

    def member(
        self, name: str | None, task: str | None, model: str, no_answer: Literal["fail", "skip"]
    ) -> dict[str, Any]:
        """The agent as an entry of a specification's cast.

        Parameters
        ----------
        name : str or None
            Name under which others are shown its answers.
        task : str or None
            Task of the experiment; its own is stated where it differs.
        model : str
            Name of its chat model there.
        no_answer : {"fail", "skip"}
            What follows a last reply that is refused or empty.
        """
        fields = {
            "name": name,
            "system": self._system,
            "persona": self._persona,
            "template": self._template,
            "task": None if self._task == task else self._task,
            "instructions": self._instructions,
            "draws": self._num_responses if self._num_responses > 1 else None,
            "selector": self._selector_name,
        }
        stated = {key: value for key, value in fields.items() if value is not None}
        return {**stated, "model": self.model_spec(model, no_answer)}


def _checked_draws(number: object, selector: object) -> int:
    draws = whole_number("num_responses", number)
    if draws > 100:
        raise SpecError(f"num_responses must be at most 100; got {draws}")
    if draws > 1 and selector is None:
        raise SpecError(f"{draws} responses need a response_selector, which picks one of them; 'first' takes the first")
    if draws == 1 and selector is not None:
        raise SpecError("response_selector has no effect with one response; give num_responses as well")
    return draws
