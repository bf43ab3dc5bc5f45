"""Sessions defined in Python, which the runner of experiments carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim.consensus._report import session_text
from opinionsim.consensus._sessions import ratings, statements
from opinionsim.errors import SpecError
from opinionsim.llm import ModelClient, Seat
from opinionsim.running import run
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: A citizen: the text of an opinion, fields of a member of a cast, or a person at a seat.
Citizen = str | Mapping[str, Any] | Seat


class Session:
    """The outcome of a session.

    Parameters
    ----------
    results : Results
        Results of the experiment; if it has several sessions, this object shows the first.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def statements(self) -> pd.DataFrame:
        """Its statements, in the format of :func:`opinionsim.consensus.statements`."""
        return statements(self.results)

    @property
    def ratings(self) -> pd.DataFrame:
        """Its ratings, in the format of :func:`opinionsim.consensus.ratings`."""
        return ratings(self.results)

    @property
    def winner(self) -> str | None:
        """The statement that won the last round; None if there was no winner."""
        won = self.statements[self.statements["winner"]]
        return None if won.empty else str(won.sort_values("round")["statement"].iloc[-1])

    def __str__(self) -> str:
        return session_text(self.results)


class Mediation:
    """A group of citizens and a mediator who look for a statement that all can agree with.

    Parameters
    ----------
    citizens : sequence of str, mapping or Seat
        Each citizen is the text of an opinion written beforehand, the fields of a member of a cast
        (``{"persona": ...}``, ``{"query": ...}``), or a person at a seat.
    question : str
        The question for the citizens.
    model : str
        Chat model of all members; default the scripted model.
    mediator, predictor : mapping, optional
        Fields of these roles, such as ``{"model": {"name": "openai:gpt-4o"}}``; by default they have none. A predictor
        takes part if a role predicts ballots.
    seed : int
        Root of all randomness.
    fields : mapping, optional
        Further fields of the specification, such as ``{"survey": ..., "measurement": ...}``.
    **interaction
        Fields of the interaction ``consensus``: ``candidates``, ``rounds``, ``rule``, ``ballots``, ...

    Raises
    ------
    SpecError
        If a field is not valid.

    Examples
    --------
    >>> from opinionsim.consensus import Mediation
    >>> texts = ["Yes, and soon.", "Only if the buses get better.", "No, shops would suffer."]
    >>> mediation = Mediation(texts, "Should the centre be closed to cars?", rounds=0, ballots=["predicted"])
    >>> session = mediation.run("results/centre.sqlite")  # doctest: +SKIP
    >>> print(session.winner)  # doctest: +SKIP
    """

    def __init__(
        self,
        citizens: Sequence[Citizen],
        question: str,
        *,
        model: str = "scripted",
        mediator: Mapping[str, Any] | None = None,
        predictor: Mapping[str, Any] | None = None,
        seed: int = 0,
        fields: Mapping[str, Any] | None = None,
        **interaction: Any,
    ) -> None:
        if isinstance(citizens, str) or not all(isinstance(each, str | Mapping | Seat) for each in citizens):
            raise SpecError(f"citizens: must be a list of texts, fields and seats; got {citizens!r:.80}")
        self._seats: dict[int | str, Seat] = {
            agent: each for agent, each in enumerate(citizens) if isinstance(each, Seat)
        }
        roles = {"mediator": dict(mediator or {})}
        if "predicted" in interaction.get("ballots", ()) and interaction.get("predictor", "role") == "role":
            roles["predictor"] = dict(predictor or {})
        elif predictor is not None:
            raise SpecError("predictor: no ballots are predicted; give ballots=['predicted'], or leave it out")
        self.specification: dict[str, Any] = {
            "name": "mediation",
            "seed": seed,
            "task": question,
            "cast": [_member(each) for each in citizens],
            "roles": roles,
            "interaction": {"kind": "consensus", **interaction},
            "model": {"name": model},
            **(fields or {}),
        }
        self.experiment: Experiment = load_experiment(self.specification)

    def run(self, store: str | None = None, *, chat_model: BaseChatModel | None = None) -> Session:
        """Carry out the session, or finish it if the store contains a part of it.

        Parameters
        ----------
        store : str, optional
            Path or address of the store; default ``results/NAME.sqlite``.
        chat_model : BaseChatModel, optional
            A LangChain chat model that replaces all named models; its name replaces ``scripted``.

        Raises
        ------
        OpinionSimError
            If the store or a model cannot be used.
        """
        experiment = self.experiment
        if chat_model is not None and self.specification["model"] == {"name": "scripted"}:
            experiment = load_experiment(self.specification, {"model.name": ModelClient(chat_model).name})
        return Session(run(experiment, store, chat_model=chat_model, seats=self._seats))


def _member(citizen: Citizen) -> dict[str, Any]:
    """A citizen as a member of a cast."""
    if isinstance(citizen, str):
        return {"text": citizen}
    if isinstance(citizen, Seat):
        return {"seat": {name: getattr(citizen, name) for name in ("timeout_s", "words", "min_words")}}
    return dict(citizen)
