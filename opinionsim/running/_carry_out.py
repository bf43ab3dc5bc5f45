"""Carrying out an experiment from start to end, in this process or by the workers of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from opinionsim.assembly import LoadedParts
from opinionsim.errors import SpecError, whole_number
from opinionsim.foundation import background
from opinionsim.llm import Entry, Person, Seat
from opinionsim.running._cluster import Cluster, ClusterExecutor, check_cluster
from opinionsim.running._context import Context, Summary
from opinionsim.running._executors import LocalExecutor
from opinionsim.running._runner import Runner
from opinionsim.specification import Experiment
from opinionsim.store import Results, load, open_store

#: Longest wait for a cancelled sweep to end, seconds: a blocked database must not hold it for ever.
_ABORT_S = 10.0


def default_store(experiment: Experiment) -> str:
    """Address of the default store of an experiment: ``sqlite:///results/NAME.sqlite``."""
    return f"sqlite:///results/{experiment.spec.name}.sqlite"


@contextmanager
def under_way(
    experiment: Experiment,
    store: str | Path | None = None,
    *,
    max_concurrency: int | None = None,
    fresh: bool = False,
    chat_model: BaseChatModel | None = None,
    only: Collection[str] | None = None,
    cluster: str | None = None,
    loaded: LoadedParts | None = None,
    people: Person | None = None,
    ready: Callable[[str], Awaitable[None]] | None = None,
    records: Mapping[str, Sequence[Entry]] | None = None,
) -> Iterator[tuple[Runner, Future[Summary]]]:
    """Carry out an experiment while the block lasts; parameters and errors are those of :func:`run`.

    `loaded` gives models, seats and classifiers that are loaded already, instead of `chat_model` and `people`; a run
    with seats stays pending until ``await ready(run_id)`` returns. `records` has the entries of records of people,
    :data:`SOURCE` last, by run id.

    Yields
    ------
    (Runner, concurrent.futures.Future)
        The runner, to watch or to stop by ``background.call_soon(runner.stop)``, and the future of its summary. If
        the block raises, the sweep is cancelled; otherwise the block's end waits for the sweep.
    """
    if not isinstance(experiment, Experiment):
        raise SpecError(f"an experiment from load_experiment is expected; got {type(experiment).__name__}")
    if max_concurrency is not None:
        whole_number("max_concurrency", max_concurrency, 1)
    url = str(store or default_store(experiment))
    if cluster is not None:
        check_cluster(experiment, url)
    loaded = loaded or LoadedParts(experiment, chat_model, people=people)
    loaded.require_people(experiment)
    ended = threading.Event()

    async def execute(runner: Runner) -> Summary:
        try:
            return await runner.execute()
        finally:
            ended.set()

    with ExitStack() as closing:
        workers = None if cluster is None else closing.enter_context(Cluster(cluster))
        opened = closing.enter_context(open_store(url))
        context = Context(
            experiment,
            opened,
            loaded,
            max_concurrency=max_concurrency,
            fresh=fresh,
            only=only,
            ready=ready,
            records=records,
        )
        runner = Runner(context, LocalExecutor(context) if workers is None else ClusterExecutor(context, workers))
        future = background.submit(execute(runner))
        try:
            yield runner, future
            future.result()
        except BaseException:
            future.cancel()
            ended.wait(_ABORT_S)
            raise


def run(
    experiment: Experiment,
    store: str | Path | None = None,
    *,
    max_concurrency: int | None = None,
    fresh: bool = False,
    chat_model: BaseChatModel | None = None,
    seats: Mapping[int | str, Seat] | None = None,
    people: Person | None = None,
    only: Collection[str] | None = None,
    cluster: str | None = None,
    records: Mapping[str, Sequence[Entry]] | None = None,
) -> Results:
    """Carry out an experiment and read its results; running again finishes what is missing.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    store : str or Path, optional
        Path or address of the store; default ``sqlite:///results/NAME.sqlite``.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    fresh : bool
        Whether to start a run anew when its stored replies answer other prompts than today's, as after an edit of a
        template, or its record is damaged. Other runs stay as they are.
    chat_model : BaseChatModel, optional
        A LangChain chat model to use instead of the one the experiment names.
    seats : mapping of int or str to Seat, optional
        Persons at seats of the specification, in this process: participants by number, other members by role.
    people : Person, optional
        Answers at every other seat of the specification, in this process; one person may also be several.
    only : collection of str, optional
        Ids of the runs to carry out, for instance ``experiment.pilot``; the others stay as they are. Default all.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers carry the runs out; needs a store in
        PostgreSQL and the extra ``cluster``. Default this process.
    records : mapping of str to sequence of Entry, optional
        Entries of records of people by run id, as :func:`opinionsim.import_panel` gives them.

    Returns
    -------
    Results
        Tidy frames; failed runs have the status ``incomplete`` and their error. A finished run whose stored replies
        answer other prompts than today's stays ``complete``, with an error.

    Raises
    ------
    SpecError
        If a model or classifier cannot be loaded, nobody answers at a seat, or the cluster cannot be used. Nothing has
        been written then, unless the error is a worker's.
    StoreError
        If the store cannot be opened, or is in use by another run.
    KeyboardInterrupt
        After an interrupt, once calls in flight have ended and all is on record.
    """
    if cluster is not None and (chat_model is not None or seats or people is not None):
        given = "seats are objects" if seats or people is not None else "chat_model is an object"
        raise SpecError(f"cluster: {given} of this process; name the model in the specification instead")
    with under_way(
        experiment,
        store,
        max_concurrency=max_concurrency,
        fresh=fresh,
        only=only,
        cluster=cluster,
        loaded=LoadedParts(experiment, chat_model, seats=seats, people=people),
        records=records,
    ) as (runner, future):
        try:
            future.result()
        except KeyboardInterrupt:
            background.call_soon(runner.stop)
            future.result()
            raise
    return load(str(store or default_store(experiment)), experiment.spec.name)
