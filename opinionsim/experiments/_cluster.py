"""Carrying out a sweep on several machines: chunks of runs on the workers of a Dask cluster, through joblib."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

import opinionsim
from opinionsim import background
from opinionsim.errors import BudgetExceeded, OpinionSimError, SpecError
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._runner import STOPPED, Progress, Summary, Sweep
from opinionsim.experiments._sweep import Experiment, PlannedRun, load_experiment
from opinionsim.llm import Limits, Usage
from opinionsim.store import Store, open_store, shown

__all__ = ["Chunk", "Cluster", "ClusterSweep", "LostError", "Outcome", "carry_out_chunk", "check_cluster"]

#: Chunks for each worker: enough that all end at about the same time, few enough that each keeps its slots filled.
_CHUNKS_EACH = 4
#: How long to wait for the scheduler, and for a first worker, seconds.
_PATIENCE_S = 10.0
#: How often a worker says how far it is, and how often workers are told to stop, seconds.
_TELL_EVERY_S = 1.0
#: What a client raises whose scheduler is gone.
_GONE = (OSError, TimeoutError, RuntimeError, ValueError)
_NOTHING = Progress(total=0, complete=0, incomplete=0, open=0, made=0, answered=0, in_flight=0)


@dataclass(frozen=True)
class Chunk:
    """Some runs of a sweep, as they are sent to a worker.

    Attributes
    ----------
    sweep : str
        Tells one invocation from another.
    number : int
        Tells its chunks apart.
    version : str
        Of opinionsim, where the chunk was made.
    manifest : str
        The experiment by content, as JSON.
    prices : str or None
        The text of its price table, where it names one.
    store : str
        Address of the store, without a password.
    run_ids : tuple of str
        What to carry out.
    slots : int
        Calls in flight at most.
    limits : Limits
        What these runs may have cost at most when they are over, whatever they cost before.
    fresh : bool
        Whether runs that no longer agree with their stored calls start anew.
    """

    sweep: str
    number: int
    version: str
    manifest: str
    prices: str | None
    store: str
    run_ids: tuple[str, ...]
    slots: int
    limits: Limits
    fresh: bool

    def __repr__(self) -> str:
        return f"Chunk({self.sweep}, {self.number}, {len(self.run_ids)} runs)"


@dataclass(frozen=True)
class Outcome:
    """How a chunk ended.

    Attributes
    ----------
    chunk : int
        Its number.
    errors : dict of str to str
        Why those of its runs that are not complete are in that state.
    exceeded : bool
        Whether its limits stopped it.
    made, answered, repeated : int
        As in :class:`opinionsim.experiments.Summary`.
    """

    chunk: int
    errors: dict[str, str]
    exceeded: bool
    made: int
    answered: int
    repeated: int


# -- in a worker -------------------------------------------------------------------------------------------


class _Worker:
    """What a worker process keeps from one chunk to the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, list[Sweep]] = {}
        self._stopped: set[str] = set()
        #: A model is loaded once; each thread has its own, for models need not be safe to share.
        self._loaded = threading.local()

    def load(self, chunk: Chunk) -> tuple[Experiment, LoadedParts]:
        """The experiment of a chunk and its instruments, kept for the next chunk of the sweep."""
        key = (chunk.sweep, chunk.manifest, chunk.prices)
        if getattr(self._loaded, "key", None) != key:
            self._loaded.key = None  # nothing is kept of what could not be loaded
            self._loaded.value = None
            self._loaded.value = _load(chunk)
            self._loaded.key = key
        found: tuple[Experiment, LoadedParts] = self._loaded.value
        return found

    @contextmanager
    def stoppable(self, name: str, sweep: Sweep) -> Iterator[None]:
        """Let a sweep be stopped by name while the block lasts."""
        with self._lock:
            self._under_way.setdefault(name, []).append(sweep)
            if name in self._stopped:
                background.call_soon(sweep.stop)
        try:
            yield
        finally:
            with self._lock:
                self._under_way[name].remove(sweep)

    def stop(self, name: str) -> None:
        """Stop what is under way under a name, and whatever is begun under it later."""
        with self._lock:
            self._stopped.add(name)
            for sweep in self._under_way.get(name, ()):
                background.call_soon(sweep.stop)


_WORKER = _Worker()


def _load(chunk: Chunk) -> tuple[Experiment, LoadedParts]:
    with tempfile.TemporaryDirectory(prefix="opinionsim-") as folder:
        overrides = {}
        if chunk.prices is not None:
            path = Path(folder, "prices.yaml")
            path.write_text(chunk.prices, encoding="utf-8")
            overrides["execution.prices"] = str(path)
        experiment = load_experiment(json.loads(chunk.manifest), overrides)
        return experiment, LoadedParts(experiment)


def carry_out_chunk(chunk: Chunk) -> Outcome:
    """Carry out the runs of a chunk; what a worker of the cluster is asked to do.

    Parameters
    ----------
    chunk : Chunk
        Its runs are on record.

    Returns
    -------
    Outcome
        Also when runs failed.

    Raises
    ------
    OpinionSimError
        If the worker cannot work on the chunk at all; names the worker and says why.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        if chunk.version != opinionsim.__version__:
            raise SpecError(
                f"it has opinionsim {opinionsim.__version__}, but the sweep was started with {chunk.version}; "
                "install the same version on every machine"
            )
        experiment, instruments = _WORKER.load(chunk)
        if not set(chunk.run_ids) <= {planned.run_id for planned in experiment.runs}:
            raise SpecError("it reads the experiment differently; install the same opinionsim on every machine")
        tell: Callable[[Progress], None] = partial(_tell, worker, chunk)
        with open_store(chunk.store) as store:
            sweep = Sweep(
                experiment,
                store,
                instruments,
                max_concurrency=chunk.slots,
                fresh=chunk.fresh,
                only=frozenset(chunk.run_ids),
                limits=chunk.limits,
                part=True,
            )
            with _WORKER.stoppable(chunk.sweep, sweep):
                summary = _wait(background.submit(sweep.execute()), lambda: tell(sweep.progress()))
    except OpinionSimError as error:
        raise type(error)(f"worker {worker.address}: {error}") from error
    return Outcome(
        chunk.number,
        errors=summary.errors,
        exceeded=bool(summary.exceeded),
        made=summary.made,
        answered=summary.answered,
        repeated=summary.repeated,
    )


def _wait(future: Future[Summary], tell: Callable[[], None]) -> Summary:
    while not wait([future], timeout=_TELL_EVERY_S).done:
        tell()
    return future.result()


def _tell(worker: Any, chunk: Chunk, progress: Progress) -> None:
    worker.log_event(chunk.sweep, {"chunk": chunk.number, "progress": asdict(progress)})


def _stop(name: str) -> None:
    """Stop a sweep in this process."""
    _WORKER.stop(name)


# -- where the sweep was started ---------------------------------------------------------------------------


def check_cluster(url: str, chat_model: object) -> None:
    """Refuse what cannot be spread over machines.

    Raises
    ------
    SpecError
        If the store is a file, or a model was handed over as an object.
    """
    if not shown(url).startswith("postgres"):
        raise SpecError(
            f"--cluster: workers on several machines cannot write the store {shown(url)}, for a SQLite file has one "
            "writer at a time; give a PostgreSQL database as in --store postgresql+psycopg://USER@HOST/DATABASE"
        )
    if chat_model is not None:
        raise SpecError("cluster: chat_model is an object of this process; name the model in the specification instead")


class Cluster:
    """A Dask cluster, reached through its scheduler; a context manager.

    Parameters
    ----------
    address : str
        Of the scheduler, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.

    Attributes
    ----------
    n_tasks : int
        Threads that its workers have together.

    Raises
    ------
    SpecError
        If the extra ``cluster`` is not installed, no scheduler answers, there is no worker, or a worker has no
        opinionsim or another version of it.
    """

    def __init__(self, address: str) -> None:
        try:
            import joblib  # noqa: F401
            from distributed import Client
        except ImportError as error:
            raise SpecError(
                f"--cluster needs the packages of the extra 'cluster' ({error}); "
                "install with pip install 'opinionsim[cluster]'"
            ) from None
        # Its methods have no types.
        connect: Any = Client
        try:
            self._client = connect(address, timeout=_PATIENCE_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise SpecError(
                f"--cluster: no Dask scheduler answers at {address!r} ({error}); valid is the address that "
                "`dask scheduler` prints, as in tcp://HOST:8786"
            ) from error
        try:
            self._require_workers()
        except BaseException:
            self._client.close()
            raise
        self._backend: Any = None
        self.n_tasks: int = sum(self._client.nthreads().values())

    def _require_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            raise SpecError(
                "--cluster: the scheduler has no workers; start some with `dask worker ADDRESS --nthreads 1`"
            ) from None
        # A lambda travels by value, so that a worker without the package can say so.
        versions = self._client.run(lambda: __import__("opinionsim").__version__, on_error="return")
        for worker, version in versions.items():
            if isinstance(version, BaseException):
                raise SpecError(f"worker {worker} cannot use opinionsim: {version}; install it there")
            if version != opinionsim.__version__:
                raise SpecError(
                    f"worker {worker} has opinionsim {version}, but this is {opinionsim.__version__}; "
                    "install the same version on every machine"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def map(self, chunks: Iterable[Chunk], n_at_once: int) -> Iterator[Outcome]:
        """Carry out chunks, at most so many at a time; outcomes as they arrive, in any order.

        Raises
        ------
        LostError
            If the scheduler has given a chunk up, or is gone.
        OpinionSimError
            If a worker could not work on a chunk.
        """
        from distributed import CancelledError, KilledWorker
        from joblib import Parallel, delayed, parallel_config

        self._backend = _backend(self._client)
        try:
            with parallel_config(backend=self._backend):
                parallel = Parallel(return_as="generator_unordered", pre_dispatch=n_at_once, batch_size=1)
            yield from parallel(delayed(carry_out_chunk)(chunk) for chunk in chunks)
        except KilledWorker as error:
            raise LostError(
                f"the scheduler gave a chunk of runs up because {error.allowed_failures + 1} workers died over it, "
                f"the last one {error.last_worker.address}; its log says why, and often it is a lack of memory"
            ) from None
        except (CancelledError, OSError) as error:
            raise LostError(f"the Dask scheduler is gone ({error}); workers may have finished more runs") from None

    @contextmanager
    def listening(self, topic: str, handler: Callable[[tuple[float, dict[str, Any]]], None]) -> Iterator[None]:
        """Hand over what workers say under a topic while the block lasts."""
        self._client.subscribe_topic(topic, handler)
        try:
            yield
        finally:
            # A scheduler that is gone has no topics.
            with suppress(*_GONE):
                self._client.unsubscribe_topic(topic)

    def stop(self, name: str) -> None:
        """Tell all workers to begin nothing more of a sweep; its chunks are given up where nobody hears it."""
        try:
            heard = self._client.run(_stop, name, on_error="ignore")
        except _GONE:
            heard = {}
        if not heard:
            self.give_up("no worker is left; the runs they had begun go on from their last stored reply")

    def give_up(self, reason: str) -> None:
        """Wait for nothing more."""
        if self._backend is not None:
            self._backend.give_up(LostError(reason))


class LostError(OpinionSimError):
    """Chunks were lost with their workers, or with the scheduler."""

    exit_code = 1


def _backend(client: Any) -> Any:
    """Joblib's backend for Dask, made to report as well what its scheduler gives up.

    By itself it calls back for tasks that end, and joblib waits for ever for the others.
    """
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(client=client)
            self._callbacks_by_task: dict[Future[Any], Callable[[Any], None]] = {}

        def submit(self, func: Any, callback: Any = None) -> Any:
            task: Future[Any] = super().submit(func, callback)
            self._callbacks_by_task[task] = callback
            task.add_done_callback(self._ended)
            return task

        def _ended(self, task: Future[Any]) -> None:
            callback = self._callbacks_by_task.pop(task, None)
            if callback is not None and task.exception() is not None:
                callback(task.exception())

        def give_up(self, error: Exception) -> None:
            for task in list(self._callbacks_by_task):
                callback = self._callbacks_by_task.pop(task, None)
                if callback is not None:
                    callback(error)

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    return Backend()


class ClusterSweep(Sweep):
    """All runs of an experiment on the workers of a cluster, which share a store.

    Registration, finished runs, canary questions and the manifest are the business of this process, as in any
    sweep; runs are that of the workers.

    Parameters
    ----------
    cluster : Cluster
        Where the runs are carried out.
    experiment, store, instruments, max_concurrency, fresh, only
        As for :class:`opinionsim.experiments.Sweep`; the store is a shared one.

    Notes
    -----
    Calls in flight are shared out evenly over the chunks under way at a time, of which there are as many as
    workers had threads at the start: whoever joins later raises no limit. What is left of a budget is shared out
    evenly over the chunks. Runs that met the end of their chunk's share go on in a later round, in half as many
    chunks, with what other chunks have left, so that in the end it is spent as one process would spend it.
    """

    def __init__(
        self,
        cluster: Cluster,
        experiment: Experiment,
        store: Store,
        instruments: LoadedParts,
        *,
        max_concurrency: int | None = None,
        fresh: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        super().__init__(experiment, store, instruments, max_concurrency=max_concurrency, fresh=fresh, only=only)
        slots = max_concurrency or experiment.spec.execution.max_concurrency
        self._cluster = cluster
        self._n_at_once = min(cluster.n_tasks, slots)
        self._slots_each = slots // self._n_at_once
        self._name = f"opinionsim-{secrets.token_hex(8)}"
        self._numbers = count()
        self._live: dict[int, Progress] = {}
        self._content = ""
        self._prices: str | None = None
        self.warnings = [
            f"{self._n_at_once} chunks of runs at a time on the cluster, each with {self._slots_each} calls in flight",
            *self.warnings,
        ]

    def progress(self) -> Progress:
        """How far the sweep is, as far as workers have told."""
        live = list(self._live.values())
        return Progress(
            total=len(self._planned),
            complete=len(self._complete) + sum(each.complete for each in live),
            incomplete=len(self._counts.errors) + sum(each.incomplete for each in live),
            open=sum(each.open for each in live),
            made=self._counts.made + sum(each.made for each in live),
            answered=self._counts.answered + sum(each.answered for each in live),
            in_flight=sum(each.in_flight for each in live),
        )

    async def _carry_out(self, pending: list[PlannedRun]) -> None:
        """Carry out runs that are not done yet, chunk by chunk."""
        # Ids are hashes: in their order, chunks take alike of every condition.
        left = sorted(planned.run_id for planned in pending)
        if left:
            await self._in_store(self._describe)
        n_chunks = _CHUNKS_EACH * self._n_at_once
        while left and not self._stopped:
            made = self._counts.made
            n_chunks = min(n_chunks, len(left))
            try:
                left = await self._round(left, n_chunks)
            except LostError as error:
                return await self._lost(left, str(error))
            except BudgetExceeded:
                return await self._in_store(self._end_budget, left)
            if left and n_chunks == 1 and not self._stopped:
                return await self._in_store(self._end_budget, left)
            n_chunks = n_chunks // 2 if self._counts.made > made else 1
        self._counts.errors.update(dict.fromkeys(left, STOPPED))

    def _describe(self) -> None:
        """Write down what workers need of the experiment."""
        self._content = json.dumps(manifest(self.experiment), allow_nan=False)
        prices = self.experiment.resources.path(self.experiment.spec.execution.prices)
        self._prices = None if prices is None else Path(prices).read_text(encoding="utf-8")

    async def _round(self, run_ids: list[str], n_chunks: int) -> list[str]:
        """Carry out runs; returns those that their share of the budget did not suffice for, or that were not begun."""
        # Nothing is set aside beforehand: workers keep to shares of what is left.
        reservation = None if self._budget is None else await self._budget.reserve(Usage())
        before = await self._in_store(self._paid)
        chunks = {chunk.number: chunk for chunk in await self._in_store(self._chunks, run_ids, n_chunks)}
        left = set(run_ids)

        def take(outcome: Outcome) -> None:
            self._live.pop(outcome.chunk, None)
            chunk = chunks.pop(outcome.chunk)
            self._counts.made += outcome.made
            self._counts.answered += outcome.answered
            self._counts.repeated += outcome.repeated
            done = set(chunk.run_ids) - set(outcome.errors)
            self._complete |= done
            left.difference_update(done)
            if not outcome.exceeded:
                self._counts.errors |= outcome.errors
                left.difference_update(outcome.errors)

        try:
            await self._collect(list(chunks.values()), take)
        finally:
            self._live.clear()
            if reservation is not None:
                reservation.settle(await self._in_store(self._paid) - before)
        return sorted(left)

    async def _collect(self, chunks: list[Chunk], take: Callable[[Outcome], None]) -> None:
        """Have chunks carried out, and take their outcomes one by one."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Queue[Outcome | Exception | None] = asyncio.Queue()
        given_up = threading.Event()

        def unless_stopped() -> Iterator[Chunk]:
            for chunk in chunks:
                if self._stopped or given_up.is_set():
                    return
                yield chunk

        def hear(event: tuple[float, dict[str, Any]]) -> None:
            loop.call_soon_threadsafe(self._hear, event[1])

        def work() -> None:
            last: Exception | None = None
            try:
                with self._cluster.listening(self._name, hear):
                    for outcome in self._cluster.map(unless_stopped(), self._n_at_once):
                        loop.call_soon_threadsafe(ended.put_nowait, outcome)
            except Exception as error:
                last = error
            loop.call_soon_threadsafe(ended.put_nowait, last)

        self._live.update({chunk.number: _NOTHING for chunk in chunks})
        # Joblib waits by blocking; a daemon, so that it holds nobody up who wants to end at once.
        threading.Thread(target=work, name="opinionsim-cluster", daemon=True).start()
        stopping = asyncio.create_task(self._stop_workers())
        last: Outcome | Exception | None = None
        over = False
        try:
            while isinstance(last := await ended.get(), Outcome):
                take(last)
            over = last is None
        finally:
            stopping.cancel()
            given_up.set()
            if not over:
                await asyncio.to_thread(self._cluster.stop, self._name)
                self._cluster.give_up("the sweep was ended")
        if isinstance(last, Exception):
            raise last

    def _hear(self, told: dict[str, Any]) -> None:
        """Note how far a chunk is, unless it is over."""
        if told["chunk"] in self._live:
            self._live[told["chunk"]] = Progress(**told["progress"])

    async def _stop_workers(self) -> None:
        """Once the sweep is to stop, say so to all workers, those included that take a dead one's chunk over."""
        await self._stopping.wait()
        while True:
            await asyncio.to_thread(self._cluster.stop, self._name)
            await asyncio.sleep(_TELL_EVERY_S)

    async def _lost(self, run_ids: list[str], reason: str) -> None:
        """Put down as incomplete what nobody finished."""
        states = await self._in_store(self._store.states, run_ids)
        done = {run_id for run_id in run_ids if states[run_id].status == "complete"}
        self._complete |= done
        known = self._counts.errors
        known.update({run_id: reason for run_id in run_ids if run_id not in done and run_id not in known})

    # -- shares of the budget ------------------------------------------------------------------------------

    def _chunks(self, run_ids: list[str], n: int) -> list[Chunk]:
        """Runs in `n` chunks, or fewer where not that many calls may be made."""
        left = Limits() if self._budget is None else self._budget.remaining()
        if left.calls is not None:
            n = max(1, min(n, left.calls))
        parts = [tuple(run_ids[i::n]) for i in range(n)]
        return [
            Chunk(
                sweep=self._name,
                number=next(self._numbers),
                version=opinionsim.__version__,
                manifest=self._content,
                prices=self._prices,
                store=str.__str__(self._store.url),
                run_ids=part,
                slots=self._slots_each,
                limits=Limits() if self._budget is None else _raised(share, self._paid(part)),
                fresh=self._fresh,
            )
            for part, share in zip(parts, left.share(n), strict=True)
        ]

    def _paid(self, run_ids: Iterable[str] | None = None) -> Usage:
        """What runs, by default the experiment, have paid on record, where anything is limited."""
        if self._budget is None:
            return Usage()
        return self._spent() if run_ids is None else self._used(list(run_ids))

    def _end_budget(self, run_ids: list[str]) -> None:
        """Stop for the budget: what is left of it is too little for any call."""
        limits, paid = self._limits, Usage() if self._budget is None else self._budget.paid
        spent = [
            f"{getattr(paid, name):,.6g} of {limit:,.6g} {name}"
            for name in ("calls", "tokens", "money")
            if (limit := getattr(limits, name)) is not None
        ]
        self._exceeded = (
            f"the budget is used up: {', '.join(spent)} paid, and no other call is sure to fit; "
            "raise execution.budget to go on. What was paid for is kept"
        )
        self._stopped = True
        for run_id, state in self._store.states(run_ids).items():
            self._counts.errors[run_id] = self._exceeded
            if state.error:
                # A worker knows no more than its own share.
                self._store.save_error(run_id, self._exceeded)


def _raised(limits: Limits, paid: Usage) -> Limits:
    """Limits that count what was paid before."""
    return Limits(
        None if limits.calls is None else limits.calls + paid.calls,
        None if limits.tokens is None else limits.tokens + paid.tokens,
        None if limits.money is None else limits.money + paid.money,
    )
