"""Interviews whose answers form a persona."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opinionsim.deliberation._agent import Agent
from opinionsim.deliberation._interview_turns import read_answers
from opinionsim.deliberation._running import Deliberation
from opinionsim.deliberation._speaker import texts
from opinionsim.errors import SpecError
from opinionsim.prompts import fill, placeholders

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from opinionsim.store import Results

#: The interview that Plurals has.
_DEFAULT = "american_voices"


class Interview:
    """An interview in one call. Its questions and answers can serve as the persona of an agent (Plurals; B6).

    Parameters
    ----------
    seed : str
        Description of the interviewed person; also the persona of an agent.
    model : str or BaseChatModel
        As for :class:`Agent`.
    questions : str or sequence of str
        ``"default"`` for nine questions about a person's life, the name of another interview in the prompt pack, or a
        list of questions.
    voice : str, optional
        The system message, in which ${seed} stands for the interviewed person; default that of the named interview.
    words : int, optional
        Number of words that each answer should have; default that of the named interview, and no number for your own
        questions.
    **kwargs
        Settings of the model, such as ``temperature``.

    Attributes
    ----------
    seed : str
        As given.
    questions : list of str
        The questions.
    responses : list of str or None
        The answers; None before :meth:`process`.
    combined_response : str or None
        Questions and answers as one text; None before :meth:`process`.
    results : Results or None
        Frames of the run; None before :meth:`process`.

    Raises
    ------
    SpecError
        If an argument is not valid.
    """

    def __init__(
        self,
        seed: str,
        model: str | BaseChatModel = "scripted",
        questions: str | Sequence[str] = "default",
        *,
        voice: str | None = None,
        words: int | None = None,
        **kwargs: Any,
    ) -> None:
        if seed is None:
            raise SpecError("seed must describe the interviewed person; it is missing")
        named = texts().interview(_DEFAULT if not isinstance(questions, str) or questions == "default" else questions)
        own = not isinstance(questions, str)
        if voice is not None and "seed" not in placeholders(voice):
            raise SpecError(f"voice must contain ${{seed}}, which stands for the person; got {voice!r:.80}")
        self.seed = seed
        self.questions = list(questions if own else named.questions)
        self.voice = named.voice if voice is None else voice
        self.words = (None if own else named.words) if words is None else words
        # The person stands where templates put personas, so that nothing in its words is taken for a placeholder.
        template = fill(self.voice, {"seed": "${persona}"})
        self._agent = Agent(persona=seed, persona_template=template, model=model, kwargs=kwargs or None)
        self.responses: list[str] | None = None
        self.combined_response: str | None = None
        self.results: Results | None = None
        self._deliberation().experiment()

    def _deliberation(self) -> Deliberation:
        interaction = {"kind": "interview", "questions": self.questions, "words": self.words}
        return Deliberation("interview", interaction, "", [self._agent], (None,))

    @property
    def info(self) -> dict[str, Any]:
        """The interview, its questions and its answers."""
        if self.responses is None:
            warnings.warn("the interview has not been held yet; call process() first", stacklevel=2)
        return {
            "seed": self.seed,
            "model": self._agent.model_name,
            "questions": list(self.questions),
            "responses": self.responses,
            "combined_response": self.combined_response,
            "kwargs": self._agent.kwargs,
        }

    @property
    def history(self) -> list[dict[str, Any]] | None:
        """The calls, as :attr:`Agent.history` has them."""
        return self._agent.history

    def process(
        self,
        *,
        store: str | None = None,
        run: str | None = None,
        random_seed: int | None = None,
        execution: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Hold the interview. If a reply has the wrong number of answers, ask again, up to three times in total.

        Parameters
        ----------
        store, run, execution
            As for :meth:`AbstractStructure.process`.
        random_seed : int, optional
            Seed of the run.

        Returns
        -------
        list of str
            The answers.

        Raises
        ------
        ModelCallError
            If the model fails, or no reply has one answer per question.
        """
        self.results = self._deliberation().carry_out(store=store, run=run, seed=random_seed, execution=execution)
        answers = list(read_answers(str(self.results.turns["message"].iloc[0]), len(self.questions)))
        pairs = [f"Q: {question}\nA: {answer}" for question, answer in zip(self.questions, answers, strict=True)]
        self.responses, self.combined_response = answers, "\n\n".join(pairs)
        return answers

    def run_interview(self) -> None:
        """Hold the interview, in memory."""
        self.process()
