"""Carry out an experiment from start to end, in this process or on the workers of a cluster."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import ParamSpec

from opinionsim.foundation import background
from opinionsim.running._cluster import Cluster, ClusterExecutor, check_cluster
from opinionsim.running._context import Shared, Summary
from opinionsim.running._executors import LocalExecutor
from opinionsim.running._invocation import Invocation
from opinionsim.running._runner import Runner
from opinionsim.store import Results, load, open_store

_P = ParamSpec("_P")

#: Longest wait for a cancelled sweep to end, seconds: a blocked database must not hold it for ever.
_ABORT_S = 10.0


@contextmanager
def under_way(invocation: Invocation) -> Iterator[tuple[Runner, Future[Summary]]]:
    """Carry out the runs of an experiment in the background of a ``with`` block.

    Yields
    ------
    (Runner, concurrent.futures.Future)
        The runner and the future of its summary. To stop the runner, call ``background.call_soon(runner.stop)``. If
        the block raises an error, the sweep is cancelled; otherwise the end of the block waits for the sweep.

    Raises
    ------
    SpecError, StoreError
        As :func:`run` does.
    """
    if invocation.cluster is not None:
        check_cluster(invocation.experiment, invocation.url)
    invocation.parts.require_people(invocation.experiment)
    ended = threading.Event()

    async def execute(runner: Runner) -> Summary:
        try:
            return await runner.execute()
        finally:
            ended.set()

    with ExitStack() as closing:
        workers = None if invocation.cluster is None else closing.enter_context(Cluster(invocation.cluster))
        context = Shared(invocation, closing.enter_context(open_store(invocation.url)))
        runner = Runner(context, LocalExecutor(context) if workers is None else ClusterExecutor(context, workers))
        future = background.submit(execute(runner))
        try:
            yield runner, future
            future.result()
        except BaseException:
            future.cancel()
            ended.wait(_ABORT_S)
            raise


def _with_fields(
    invocation: Callable[_P, Invocation],
) -> Callable[[Callable[[Invocation], Results]], Callable[_P, Results]]:
    """Have a function of an invocation called with the fields of one."""

    def decorate(function: Callable[[Invocation], Results]) -> Callable[_P, Results]:
        @wraps(function)
        def call(*fields: _P.args, **named: _P.kwargs) -> Results:
            return function(invocation(*fields, **named))

        vars(call)["__signature__"] = inspect.signature(invocation).replace(return_annotation="Results")
        return call

    return decorate


@_with_fields(Invocation)
def run(invocation: Invocation) -> Results:
    """Carry out an experiment and read its results. If you run it again, it completes what is missing.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    store : str or Path, optional
        Path or address of the store; default ``sqlite:///results/NAME.sqlite``.
    max_concurrency : int, optional
        Maximum number of calls in flight; default that of the specification.
    fresh : bool
        Whether to restart a run if its stored replies answer prompts that have changed since, for example because you
        edited a template, or if its record is damaged. Other runs stay unchanged.
    chat_model : BaseChatModel, optional
        A LangChain chat model to use instead of the one the experiment names.
    seats : mapping of int or str to Seat, optional
        People at seats of the specification, in this process: participants by number, other members by role.
    people : Person, optional
        Answers at every other seat of the specification, in this process; one person may take several seats.
    only : collection of str, optional
        Ids of the runs to carry out, for instance ``experiment.pilot``; the others stay as they are. Default all.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers carry the runs out; needs a store in
        PostgreSQL and the extra ``cluster``. Default this process.
    records : mapping of str to sequence of Entry, optional
        Entries of records of people by run id, made from a table that is imported.
    leave : bool
        Whether to end once all calls that can be made wait for batches; the next run goes on.
    resubmit : bool
        Whether to buy calls again whose batch cannot be found or read any more.
    loaded, ready, pace : optional
        See :class:`opinionsim.running.Invocation`, for programs that load models or seat people themselves.

    Returns
    -------
    Results
        Tidy frames; failed runs have the status ``incomplete`` and their error. A finished run whose stored replies
        answer prompts that have changed since stays ``complete``, with an error.

    Raises
    ------
    SpecError
        If a model or classifier cannot be loaded, no one answers at a seat, or the cluster cannot be used. In these
        cases nothing has been written, unless the error comes from a worker.
    StoreError
        If the store cannot be opened, or is in use by another run.
    KeyboardInterrupt
        After an interrupt, once calls in flight have ended and everything is stored.
    """
    with under_way(invocation) as (runner, future):
        try:
            future.result()
        except KeyboardInterrupt:
            background.call_soon(runner.stop)
            future.result()
            raise
    return load(invocation.url, invocation.experiment.spec.name)
