"""Turns agents made in Python into a specification, carries out its run, and fills their histories."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel

from opinionsim.assembly import LoadedParts
from opinionsim.deliberation._speaker import NoAnswer, Speaker, only_here
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation import background
from opinionsim.foundation.progress import attended, shown
from opinionsim.llm import CallName
from opinionsim.planning import Forecast, counts_by_run, plan
from opinionsim.running import Invocation, Runner, Summary, default_store, under_way
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results, load, open_store

if TYPE_CHECKING:
    from opinionsim.deliberation._moderator import Moderator

#: Seeds of runs that are given none: the same script has the same, and no two runs of a process are copies.
_SEEDS = itertools.count()


@dataclass(frozen=True)
class Deliberation:
    """An experiment with one run of some agents.

    Attributes
    ----------
    name : str
        Name of the experiment unless another is given.
    interaction : mapping
        The interaction of its specification.
    task : str
        Task of the experiment; empty if all agents have their own.
    members : sequence of Speaker
        The agents, in order.
    names : sequence of str or None
        Their names.
    moderator : Moderator or None
        The moderator.
    no_answer : {"fail", "skip"}
        What follows a last reply that is refused or empty.
    """

    name: str
    interaction: Mapping[str, Any]
    task: str
    members: Sequence[Speaker]
    names: Sequence[str | None]
    moderator: Moderator | None = None
    no_answer: NoAnswer = "fail"

    @property
    def _speakers(self) -> list[Speaker]:
        return [*self.members, *([] if self.moderator is None else [self.moderator])]

    def _model_names(self) -> tuple[list[str], dict[str, BaseChatModel]]:
        """The name of each one's chat model, and the models given as objects, by name; two objects have two names."""
        taken: dict[str, str | BaseChatModel] = {}
        names = []
        for speaker in self._speakers:
            # An object is itself; a model that is only named is its name.
            model = speaker.model if isinstance(speaker.model, BaseChatModel) else speaker.model_name
            for number in itertools.count(1):
                name = speaker.model_name if number == 1 else f"{speaker.model_name}#{number}"
                if taken.setdefault(name, model) is model or taken[name] == model:
                    names.append(name)
                    break
        return names, {name: model for name, model in taken.items() if isinstance(model, BaseChatModel)}

    def specification(
        self, name: str | None = None, seed: int = 0, execution: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The specification as in a YAML file."""
        models, _ = self._model_names()
        cast = [
            each.member(given, self.task or None, model, self.no_answer)
            for each, given, model in zip(self.members, self.names, models, strict=False)
        ]
        spec = {"name": name or self.name, "seed": seed, "cast": cast, "interaction": dict(self.interaction)}
        if self.task:
            spec["task"] = self.task
        if self.moderator is not None:
            spec["roles"] = {"moderator": self.moderator.field(models[-1], self.no_answer)}
        return {**spec, "execution": dict(execution or {})}

    def experiment(
        self, name: str | None = None, seed: int = 0, execution: Mapping[str, Any] | None = None
    ) -> Experiment:
        """The experiment. Raises a SpecError that names the field of the specification if something is not valid."""
        return load_experiment(self.specification(name, seed, execution))

    def forecast(self, execution: Mapping[str, Any] | None = None) -> Forecast:
        """The forecast of a run; makes no call."""
        experiment = self.experiment(execution=execution)
        loaded = LoadedParts(experiment, chat_models=self._model_names()[1], to_plan=True)
        return plan(experiment, loaded=loaded)

    def carry_out(
        self,
        *,
        store: str | None = None,
        run: str | None = None,
        seed: int | None = None,
        execution: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> Results:
        """Carry out the run, in a store or in memory, and add its turns to the histories of its members.

        Raises
        ------
        OpinionSimError
            If the run cannot finish. The message names the agent and turn, and says how to continue.
        """
        kept = store is not None or run is not None
        if kept:
            self._check_kept(run)
        seed = (0 if kept else next(_SEEDS)) if seed is None else seed
        experiment = self.experiment(run, seed, execution)
        loaded = LoadedParts(experiment, chat_models=self._model_names()[1])
        with ExitStack() as closing:
            url = str(store or default_store(experiment))
            if not kept:
                temporary = tempfile.TemporaryDirectory(prefix="opinionsim-", ignore_cleanup_errors=True)
                url = f"sqlite:///{closing.enter_context(temporary)}/run.sqlite"
            summary = _executed(experiment, url, loaded, verbose)
            if summary.complete < summary.total:
                raise self._failure(experiment, summary, kept)
            results = load(url, experiment.spec.name)
            self._tell(results)
            # Frames are read when they are asked for: the store stays as long as its results.
            weakref.finalize(results, closing.pop_all().close)
        return results

    def _check_kept(self, run: str | None) -> None:
        """Refuse a run in a store that nobody could resume: without a name, or with a function nobody else has."""
        if not run:
            raise SpecError("a run in a store needs a name: give run=NAME, so that process() can resume it later")
        for agent, each in enumerate(self.members):
            name = getattr(each, "selector_name", None)
            if name is not None and only_here(name):
                raise SpecError(
                    f"the response_selector of agent {agent} is a function that other processes cannot load to resume "
                    "the stored run; mark it with @opinionsim.part('selector'), which explains how"
                )

    def _failure(self, experiment: Experiment, summary: Summary, kept: bool) -> OpinionSimError:
        """The error that ended the run, with the name of its agent and how to go on."""
        cause = summary.exceeded or next(iter(summary.causes.values()))
        advice = "This run was in memory. To keep replies and resume after errors, call process(store=..., run=NAME)"
        if kept:
            advice = (
                f"To continue with the stored replies, call process() with this store and run={experiment.spec.name!r}"
            )
        agent = cause.fields.get("agent")
        failure = cause.at("" if agent is None else [*self.names, "the moderator"][agent] or "", advice)
        failure.__cause__ = cause
        return failure

    def _tell(self, results: Results) -> None:
        """Add the turns of a run to the histories of its members."""
        speakers, run_id = self._speakers, results.run_ids[0]
        calls = results.calls[results.calls["acceptance"] == "accepted"]
        drawn = calls[calls["call"].map(lambda call: CallName.of(call).role == "reply").astype(bool)]
        replies: dict[Any, list[str]] = {turn: list(rows["reply"]) for turn, rows in drawn.groupby("turn")}
        with open_store(results.url, write=False) as store:
            prompts = store.prompts(run_id)
        for row in results.turns.to_dict("records"):
            if row["turn"] not in replies:
                continue  # nobody was asked: there was nothing left to read
            told = {message.role: message.content for message in prompts[row["turn"]]}
            entry: dict[str, Any] = {
                "prompts": {"system": told.get("system"), "user": told["user"]},
                "response": row["message"],
                "model": speakers[row["agent"]].model_name,
            }
            if len(replies[row["turn"]]) > 1:
                entry["all_responses"] = replies[row["turn"]]
            if row["status"] != "answered":
                entry["status"] = row["status"]
            speakers[row["agent"]].remember((results.url, run_id, row["turn"]), entry)


def check(speaker: Speaker, moderator: Moderator | None = None) -> None:
    """Check the fields of a single speaker."""
    Deliberation("one", {"kind": "ensemble"}, "a task", [speaker], (None,), moderator).experiment()


def _executed(experiment: Experiment, url: str, loaded: LoadedParts, verbose: bool) -> Summary:
    """Carry out an experiment; an interrupt lets calls in flight end and go on record."""
    with under_way(Invocation(experiment, url, loaded=loaded)) as (runner, future):
        try:
            if verbose:
                _show(runner, future, sum(each.calls for each in counts_by_run(experiment, loaded).values()))
            return future.result()
        except KeyboardInterrupt:
            background.call_soon(runner.stop)
            future.result()
            raise


def _show(runner: Runner, future: Future[Summary], calls: int) -> None:
    """Show on standard error how many calls are answered, until the run is over."""
    with shown(keep=True) as show:

        def look() -> None:
            progress = runner.progress()
            done = min(progress.made + progress.answered, calls)
            show(done, calls, f"{done}/{calls} calls")

        attended(future, look)
