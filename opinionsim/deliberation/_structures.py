"""Structures made of agents in Python: chains, debates, ensembles, graphs, rounds, and your own structures."""

from __future__ import annotations

import json
import pprint
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.deliberation._agent import Agent
from opinionsim.deliberation._moderator import Moderator
from opinionsim.deliberation._running import Deliberation
from opinionsim.deliberation._speaker import NoAnswer
from opinionsim.errors import SpecError
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.registry import name_of

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.planning import Forecast
    from opinionsim.specification import Experiment
    from opinionsim.store import Results

#: Kinds of text that are responses.
_RESPONSES = ("response", "moderation")
#: End of an edge of a graph: the position of an agent, or its name.
End = int | str


class AbstractStructure(ABC):
    """Base of structures (Plurals; B4). :class:`Custom` runs one of your own.

    Parameters
    ----------
    agents : list of Agent, or dict of str to Agent
        The agents; a mapping by name if the structure shows names.
    task : str, optional
        Task of all agents without their own task.
    shuffle : bool
        Whether each cycle draws a new order of speaking; otherwise, the order is that of `agents`.
    cycles : int
        How often every agent answers, >= 1.
    last_n : int, optional
        Maximum number of latest responses that an agent sees; default all.
    combination_instructions : str, optional
        Instructions for agents that see responses and have no instructions of their own: a name in the prompt pack, or
        a text that contains ${previous_responses}. Default ``"default"``, or ``"debate"`` in a debate.
    moderator : Moderator, optional
        Reads all responses and then responds last.
    verbose : bool
        Whether to show progress on standard error.
    seed : int, optional
        Root of all randomness, >= 0. By default, each run in memory has a different seed, and running the script again
        gives the same seeds; a run in a store has seed 0.
    no_answer : {"fail", "skip"}
        What to do if a reply is still refused or empty after asking again: raise an error, or hide it from other agents
        and leave it out of `responses`.

    Attributes
    ----------
    agents, task, shuffle, cycles, last_n, combination_instructions, verbose, seed
        As given.
    moderated : bool
        Whether there is a moderator.
    responses : list of str
        Responses in the order of turns, the moderator's last; empty before :meth:`process`.
    final_response : str or None
        The last response; None before :meth:`process`.
    results : Results or None
        Frames of the run; None before :meth:`process`.

    Raises
    ------
    SpecError
        If an argument is not valid, or two do not go together.

    Warns
    -----
    UserWarning
        If an agent has its own task, which replaces the task of the structure.
    """

    responses: list[str]
    final_response: str | None
    results: Results | None
    _takes_names: ClassVar[bool] = False
    _own_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[str, Agent],
        task: str | None = None,
        shuffle: bool = False,
        cycles: int = 1,
        last_n: int | None = None,
        combination_instructions: str | None = None,
        moderator: Moderator | None = None,
        verbose: bool = False,
        *,
        seed: int | None = None,
        no_answer: NoAnswer = "fail",
    ) -> None:
        self.agents = agents
        self._members, self._names = _checked_agents(agents, self._takes_names)
        self._called = [name or f"agent {place}" for place, name in enumerate(self._names)]
        self.task = task
        for name, given in (("shuffle", shuffle), ("verbose", verbose)):
            if not isinstance(given, bool):
                raise SpecError(f"{name} must be True or False; got {given!r:.80}")
        self.shuffle = shuffle
        self.cycles = cycles
        self.last_n = last_n
        self.combination_instructions = combination_instructions
        if moderator is not None and not isinstance(moderator, Moderator):
            raise SpecError(f"moderator must be a Moderator; got {type(moderator).__name__}")
        self._moderator = self._shown_moderator = moderator
        self.verbose = verbose
        self.seed = seed
        if no_answer not in ("fail", "skip"):
            raise SpecError(f"no_answer must be 'fail' or 'skip'; got {no_answer!r:.80}")
        self.no_answer = no_answer
        self._forget()
        self._deliberation().experiment(seed=0 if seed is None else seed)
        self._warn_of_tasks()

    @property
    @abstractmethod
    def _kind(self) -> str:
        """Kind of the interaction of the specification."""

    def _interaction(self) -> dict[str, Any]:
        """The interaction of the specification, which refuses fields that its kind does not have."""
        fields = {
            "kind": self._kind,
            "cycles": self.cycles,
            "order": "shuffled" if self.shuffle else "cast",
            "instructions": self.combination_instructions,
            "last_n": self.last_n,
        }
        stated = {name: value for name, value in fields.items() if value is not None}
        return stated | {name: getattr(self, name) for name in self._own_fields}

    def _labelled(self, response: str, agent: int) -> str:
        """A response as `responses` has it."""
        return response

    def _deliberation(self) -> Deliberation:
        for agent, called in zip(self._members, self._called, strict=True):
            if not self.task and agent.task is None:
                raise SpecError(f"{called} has no task; set a task for it or for the structure")
        return Deliberation(
            type(self).__name__.lower(),
            self._interaction(),
            self.task or "",
            self._members,
            self._names,
            self._moderator,
            self.no_answer,
        )

    def _warn_of_tasks(self) -> None:
        named = zip(self._members, self._called, strict=True)
        if own := [called for agent, called in named if self.task and agent.task not in (None, self.task)]:
            whose = "has its own task" if len(own) == 1 else "have their own tasks"
            deeper = type(self).__init__ is not AbstractStructure.__init__
            warnings.warn(
                f"{', '.join(own)} {whose}, which the structure's task does not replace", stacklevel=4 if deeper else 3
            )

    @property
    def moderated(self) -> bool:
        """Whether there is a moderator."""
        return self._moderator is not None

    @property
    def moderator(self) -> Moderator | None:
        """The moderator. After a run in which it wrote its own instructions, this is a copy that has them."""
        return self._shown_moderator

    @property
    def specification(self) -> dict[str, Any]:
        """The specification of the run, as in a YAML file."""
        return self._deliberation().specification()

    @property
    def experiment(self) -> Experiment:
        """The experiment, for :func:`opinionsim.plan`, preview and manifest."""
        return self._deliberation().experiment()

    def plan(self, execution: Mapping[str, Any] | None = None) -> Forecast:
        """The forecast of calls, tokens, money and time; makes no call."""
        return self._deliberation().forecast(execution)

    def process(
        self,
        *,
        store: str | Path | None = None,
        run: str | None = None,
        seed: int | None = None,
        execution: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Carry out the deliberation, replacing the results of an earlier run in this structure.

        Parameters
        ----------
        store : str or Path, optional
            Store that keeps the run; default ``results/RUN.sqlite`` if `run` is given, else memory.
        run : str, optional
            Name of the run in the store. If a run with this name has begun, it continues and does not repeat answered
            calls.
        seed : int, optional
            Seed of this run; default that of the structure.
        execution : mapping, optional
            Fields of the specification's ``execution``, such as ``{"budget": {"calls": 100}}`` or
            ``{"max_concurrency": 4}``.

        Returns
        -------
        str or None
            The last response.

        Raises
        ------
        ModelCallError
            If a model fails permanently, or a last reply is refused or empty. The message names the agent and turn, and
            says how to continue.
        BudgetExceeded
            If the next call could exceed the budget.
        SpecError, StoreError
            If a model cannot be loaded, or the store cannot be opened.
        """
        self._forget()
        place = None if store is None else str(store)
        self.results = results = self._deliberation().carry_out(
            store=place,
            run=run,
            seed=self.seed if seed is None else seed,
            execution=execution,
            verbose=self.verbose,
        )
        turns = results.turns
        answered = turns[turns["kind"].isin(_RESPONSES) & turns["status"].isin(("answered", "truncated"))]
        self.responses = [
            self._labelled(message, agent) if agent < len(self._members) else message
            for message, agent in zip(answered["message"], answered["agent"], strict=True)
        ]
        self.final_response = self.responses[-1] if self.responses else None
        if self._moderator is not None and self._moderator.automatic:
            written = str(turns["message"][turns["act"] == "instruct"].iloc[0])
            self._shown_moderator = self._moderator.with_instructions(written)
        return self.final_response

    def _forget(self) -> None:
        self.responses = []
        self.final_response = None
        self.results = None
        self._shown_moderator = self._moderator

    @property
    def info(self) -> dict[str, Any]:
        """The structure, its agents and its responses."""
        moderator = self.moderator
        own = ("task", "shuffle", "cycles", "last_n", "combination_instructions", "moderated")
        return {
            "structure": type(self).__name__,
            **{name: getattr(self, name) for name in own},
            "moderator": None if moderator is None else moderator.info,
            "agents": [agent.info for agent in self._members],
            "responses": list(self.responses),
            "final_response": self.final_response,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({pprint.pformat(self.info, sort_dicts=False, width=110)})"

    def to_json(self, filename: str | Path) -> None:
        """Write :attr:`info` to a file, as JSON."""
        self._done()
        text = json.dumps(self.info, ensure_ascii=False, indent=2, default=str)
        Path(filename).write_text(text + "\n", encoding="utf-8")

    def to_dataframe(self, filename: str | Path | None = None) -> pd.DataFrame:
        """The turns as a frame.

        Parameters
        ----------
        filename : str or Path, optional
            CSV file to write as well.

        Returns
        -------
        DataFrame
            One row per turn, in order: turn, cycle, agent, name, role, response, status, reads, model, evidence.
        """
        results = self._done()
        who = results.agents[["agent", "name", "role", "model"]]
        turns = results.turns[results.turns["kind"].isin(_RESPONSES)]
        found = turns.rename(columns={"step": "cycle", "message": "response"}).merge(who, on="agent", how="left")
        columns = ["turn", "cycle", "agent", "name", "role", "response", "status", "reads", "model", "evidence"]
        found = found.sort_values("turn", ignore_index=True)[columns]
        if filename is not None:
            write_csv(found, filename)
        return found

    def print_responses(self) -> None:
        """Print the responses, each below the name of its author."""
        frame = self.to_dataframe()
        spoken = frame[frame["status"].isin(("answered", "truncated"))]
        for name, response in zip(spoken["name"], spoken["response"], strict=True):
            sys.stdout.write(f"{name}:\n{response}\n\n")

    def _done(self) -> Results:
        if self.results is None:
            raise SpecError(f"the {type(self).__name__} has not been processed; call process() first")
        return self.results


class Chain(AbstractStructure):
    """Agents answer one after another; each sees the last responses of all, including its own."""

    _kind = "chain"


class Debate(AbstractStructure):
    """Two agents answer in turn, and each sees the last statements, with its own marked as its own.

    `responses` begin with ``[Debater 1]`` or ``[Debater 2]``, by the order of `agents`.
    """

    _kind = "debate"

    def _labelled(self, response: str, agent: int) -> str:
        return f"[Debater {agent + 1}] {response}"


class Ensemble(AbstractStructure):
    """All agents answer at once without seeing other responses; it has no `last_n`."""

    _kind = "ensemble"


class Graph(AbstractStructure):
    """Agents answer along a directed acyclic graph; each sees the responses of its direct predecessors, by name.

    Parameters
    ----------
    agents : list of Agent, or dict of str to Agent
        The agents; agents in a list get the names ``Agent 0``, ``Agent 1``, ...
    edges : list of tuple
        Pairs (from, to), by position in `agents` or by name.
    task, combination_instructions, **settings
        As for :class:`AbstractStructure`; there is one cycle, and no `last_n`.

    Raises
    ------
    SpecError
        Also if an edge has an unknown agent, is given twice, leads from an agent to itself, or closes a cycle, which
        the message names.
    """

    _kind = "graph"
    _takes_names = True
    _own_fields = ("edges",)

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[str, Agent],
        edges: Sequence[tuple[End, End]],
        task: str | None = None,
        combination_instructions: str | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(edges, Sequence):
            raise SpecError(
                f"edges must be a list of pairs (from, to) in the order of responses; got {type(edges).__name__}"
            )
        self.edges = edges
        super().__init__(agents, task, combination_instructions=combination_instructions, **settings)


class Rounds(AbstractStructure):
    """In each cycle, all agents answer; each sees its neighbours' responses from the previous cycle.

    Parameters
    ----------
    agents : list of Agent, or dict of str to Agent
        At least two.
    task : str, optional
        As for :class:`AbstractStructure`.
    network : str or mapping
        Who sees whose responses: a network as in a specification, such as ``"ring"`` or
        ``{"kind": "watts-strogatz", "k": 2, "p": 0.1}``; by default, all see all.
    cycles : int
        How often every agent answers; default 2.
    **settings
        Further arguments of :class:`AbstractStructure` except `last_n`.
    """

    _kind = "rounds"
    _takes_names = True
    _own_fields = ("network",)

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[str, Agent],
        task: str | None = None,
        network: str | Mapping[str, Any] = "complete",
        cycles: int = 2,
        **settings: Any,
    ) -> None:
        self.network = network
        super().__init__(agents, task, cycles=cycles, **settings)


class Custom(AbstractStructure):
    """Your own structure: a class that inherits :class:`opinionsim.schedules.Structure` and yields turns.

    Parameters
    ----------
    agents : list of Agent, or dict of str to Agent
        The agents.
    structure : type or str
        The class, marked with ``@opinionsim.part("interaction")``, its import path, or the name of any structure.
    task : str, optional
        As for :class:`AbstractStructure`.
    fields : mapping, optional
        Fields of the class.
    **settings
        Further arguments of :class:`AbstractStructure`; arguments without a field in the class are refused.
    """

    _takes_names = True

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[str, Agent],
        structure: type | str,
        task: str | None = None,
        fields: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.structure = structure
        self.fields = dict(fields or {})
        super().__init__(agents, task, **settings)

    @property
    def _kind(self) -> str:
        return str(name_of(self.structure))

    def _interaction(self) -> dict[str, Any]:
        return {**super()._interaction(), **self.fields}


def _checked_agents(agents: Any, takes_names: bool) -> tuple[tuple[Agent, ...], tuple[str | None, ...]]:
    """Agents and their names."""
    if isinstance(agents, Mapping) and takes_names:
        members, names = tuple(agents.values()), tuple(agents)
    elif isinstance(agents, Sequence) and not isinstance(agents, str):
        members, names = tuple(agents), (None,) * len(agents)
    else:
        valid = "a list of agents, or a dict of agents by name" if takes_names else "a list of agents"
        raise SpecError(f"agents must be {valid}; got {type(agents).__name__}")
    if not members:
        raise SpecError("agents must contain at least one agent")
    for place, agent in enumerate(members):
        if not isinstance(agent, Agent):
            called = place if names[place] is None else repr(names[place])
            raise SpecError(f"agents[{called}] must be an Agent; got {type(agent).__name__}")
    return members, names
