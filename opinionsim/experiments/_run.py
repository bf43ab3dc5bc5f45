"""Carrying out an experiment from start to end: in this process, or by the workers of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from opinionsim import background
from opinionsim.errors import SpecError
from opinionsim.experiments._cluster import Cluster, ClusterSweep, check_cluster
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.experiments._runner import Summary, Sweep
from opinionsim.experiments._sweep import Experiment
from opinionsim.store import Results, load, open_store

__all__ = ["default_store", "run", "under_way"]

#: How long to wait for a sweep that was ended at once, seconds; a blocked database should not hold it for ever.
_ABORT_S = 10.0


def default_store(experiment: Experiment) -> str:
    """Where an experiment is stored unless told otherwise: ``sqlite:///results/NAME.sqlite``."""
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
) -> Iterator[tuple[Sweep, Future[Summary]]]:
    """An experiment being carried out while the block lasts; parameters and errors are those of :func:`run`.

    Yields
    ------
    (Sweep, concurrent.futures.Future)
        The sweep, to watch or to stop by ``background.call_soon(sweep.stop)``, and its summary to come. When
        the block raises, the sweep is ended at once; either way nothing of it is left when the block is over.
    """
    if not isinstance(experiment, Experiment):
        raise SpecError(f"an experiment from load_experiment is expected; got {type(experiment).__name__}")
    if max_concurrency is not None and not (isinstance(max_concurrency, int) and max_concurrency >= 1):
        raise SpecError(f"max_concurrency must be a whole number of at least 1; got {max_concurrency!r}")
    url = str(store or default_store(experiment))
    if cluster is not None:
        check_cluster(url, chat_model)
    instruments = LoadedParts(experiment, chat_model)
    ended = threading.Event()

    async def execute(sweep: Sweep) -> Summary:
        try:
            return await sweep.execute()
        finally:
            ended.set()

    with ExitStack() as closing:
        kind = Sweep if cluster is None else partial(ClusterSweep, closing.enter_context(Cluster(cluster)))
        opened = closing.enter_context(open_store(url))
        sweep = kind(experiment, opened, instruments, max_concurrency=max_concurrency, fresh=fresh, only=only)
        future = background.submit(execute(sweep))
        try:
            yield sweep, future
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
    only: Collection[str] | None = None,
    cluster: str | None = None,
) -> Results:
    """Carry out an experiment and read its results; running again finishes what is missing.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    store : str or Path, optional
        Where results are kept; default ``sqlite:///results/NAME.sqlite``.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    fresh : bool
        Start a run anew when its stored calls answer other questions than those now asked, as after an
        edit of a template. Other runs stay as they are.
    chat_model : BaseChatModel, optional
        A LangChain chat model to use instead of the one the experiment names.
    only : collection of str, optional
        Ids of the runs to carry out, for instance ``experiment.pilot``; the others stay as they are. Default all.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers carry the runs out; needs a store in
        PostgreSQL and the extra ``cluster``. Default: this process does.

    Returns
    -------
    Results
        Tidy frames; runs that failed are there with status ``incomplete`` and their error. A finished run
        whose stored calls answer other questions than those now asked stays ``complete``, with an error.

    Raises
    ------
    SpecError
        If a model or classifier cannot be loaded, or the cluster cannot be used; nothing has been written then,
        unless it is a worker that cannot.
    StoreError
        If the store cannot be opened, or is in use by another run.
    KeyboardInterrupt
        After calls in flight have ended and everything is on record.
    """
    with under_way(
        experiment,
        store,
        max_concurrency=max_concurrency,
        fresh=fresh,
        chat_model=chat_model,
        only=only,
        cluster=cluster,
    ) as (sweep, future):
        try:
            future.result()
        except KeyboardInterrupt:
            background.call_soon(sweep.stop)
            future.result()
            raise
    return load(str(store or default_store(experiment)), experiment.spec.name)
