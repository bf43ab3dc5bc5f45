"""Carrying out a sweep on several machines: chunks of runs on the workers of a Dask cluster, which share a store."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from dataclasses import astuple
from itertools import count
from pathlib import Path
from typing import Any, Self

import opinionsim
from opinionsim import background
from opinionsim.errors import BudgetExceeded, OpinionSimError, SpecError
from opinionsim.experiments._cells import Experiment
from opinionsim.experiments._context import STOPPED, Context, Progress, Summary, together
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._outside import described_parts, require_importable
from opinionsim.experiments._sorting import Pending
from opinionsim.experiments._worker import Chunk, carry_out_chunk, stop_sweep
from opinionsim.llm import Limits, Usage
from opinionsim.store import shown

#: Chunks for each worker: enough that all end at about the same time, few enough that each keeps its slots filled.
_CHUNKS_EACH = 4
#: How long to wait for the scheduler, and for a first worker, seconds.
_PATIENCE_S = 10.0
#: How often workers are told to stop, seconds.
_TELL_EVERY_S = 1.0


class LostError(OpinionSimError):
    """Chunks were lost with their workers, or with the scheduler."""

    exit_code = 1


def check_cluster(experiment: Experiment, url: str, chat_model: object) -> None:
    """Refuse what cannot be spread over machines.

    Raises
    ------
    SpecError
        If the store is a file, a model was handed over as an object, or a part is one that only this process has.
    """
    if not shown(url).startswith("postgres"):
        raise SpecError(
            f"--cluster: workers on several machines cannot write the store {shown(url)}, for a SQLite file has one "
            "writer at a time; give a PostgreSQL database as in --store postgresql+psycopg://USER@HOST/DATABASE"
        )
    if chat_model is not None:
        raise SpecError("cluster: chat_model is an object of this process; name the model in the specification instead")
    require_importable(described_parts(cell.spec for cell in experiment.cells))


class Cluster:
    """A Dask cluster, reached through its scheduler; a context manager.

    Parameters
    ----------
    address : str
        Address of the scheduler, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.

    Attributes
    ----------
    n_tasks : int
        Threads that its workers have together.

    Raises
    ------
    SpecError
        If the extra ``cluster`` is not installed, no scheduler answers, there is no worker, or a worker has no
        opinionsim or another version of it.

    Notes
    -----
    Its coroutines run on the package's event loop, and so does the client of the scheduler.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise SpecError(
                f"--cluster needs the packages of the extra 'cluster' ({error}); "
                "install with pip install 'opinionsim[cluster]'"
            ) from None
        # Its methods have no types.
        self._distributed: Any = distributed
        self._client: Any = None
        self.n_tasks = 0
        try:
            background.run(self._connect(address))
        except BaseException:
            self.close()
            raise

    async def _connect(self, address: str) -> None:
        try:
            self._client = self._distributed.Client(
                address, timeout=_PATIENCE_S, set_as_default=False, asynchronous=True
            )
            await self._client
        except (OSError, ValueError, TypeError) as error:
            raise SpecError(
                f"--cluster: no Dask scheduler answers at {address!r} ({error}); valid is the address that "
                "`dask scheduler` prints, as in tcp://HOST:8786"
            ) from error
        try:
            await self._client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            raise SpecError(
                "--cluster: the scheduler has no workers; start some with `dask worker ADDRESS --nthreads 1`"
            ) from None
        # A lambda travels by value, so that a worker without the package can say so.
        versions = await self._client.run(lambda: __import__("opinionsim").__version__, on_error="return")
        for worker, version in versions.items():
            if isinstance(version, BaseException):
                raise SpecError(f"worker {worker} cannot use opinionsim: {version}; install it there")
            if version != opinionsim.__version__:
                raise SpecError(
                    f"worker {worker} has opinionsim {version}, but this is {opinionsim.__version__}; "
                    "install the same version on every machine"
                )
        self.n_tasks = sum((await self._client.nthreads()).values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster."""

        async def close() -> None:
            if self._client is not None:
                await self._client.close()

        background.run(close())

    def listen(self, topic: str, handler: Any) -> None:
        """Have workers' events under a topic handed to ``handler((time, event))``, until the cluster is left."""
        self._client.subscribe_topic(topic, handler)

    async def carry_out(self, chunk: Chunk) -> Summary:
        """Have a worker carry out a chunk.

        Raises
        ------
        LostError
            If the scheduler has given the chunk up, or is gone.
        OpinionSimError
            If a worker could not work on it.
        """
        try:
            summary: Summary = await self._client.submit(carry_out_chunk, chunk, pure=False)
        except self._distributed.KilledWorker as error:
            raise LostError(
                f"the scheduler gave a chunk of runs up because {error.allowed_failures + 1} workers died over it, "
                f"the last one {error.last_worker.address}; its log says why, and often it is a lack of memory"
            ) from None
        except (self._distributed.CancelledError, self._distributed.client.ClosedClientError, OSError) as error:
            raise LostError(f"the Dask scheduler is gone ({error}); workers may have finished more runs") from None
        return summary

    async def stop(self, name: str) -> bool:
        """Tell all workers to begin nothing more of a sweep; returns whether any has heard it."""
        try:
            return bool(await self._client.run(stop_sweep, name, on_error="ignore"))
        except Exception:  # a client whose scheduler is gone raises one thing or another
            return False


class ClusterExecutor:
    """Carries out runs on the workers of a cluster, which share a store.

    Parameters
    ----------
    context : Context
        Shared with the runner; its store is a shared one.
    cluster : Cluster
        Where the runs are carried out.

    Notes
    -----
    Calls in flight are shared out evenly over the chunks under way at a time, of which there are as many as
    workers had threads at the start: workers that join later raise no limit. What is left of a budget is shared out
    evenly over the chunks. Runs that met the end of their chunk's share go on in a later round, in half as many
    chunks, with what other chunks have left, so that in the end it is spent as one process would spend it.
    """

    def __init__(self, context: Context, cluster: Cluster) -> None:
        slots = context.slots.limit
        self._cluster = cluster
        self._context = context
        self._n_at_once = min(cluster.n_tasks, slots)
        self._slots_each = slots // self._n_at_once
        self._name = f"opinionsim-{secrets.token_hex(8)}"
        self._numbers = count()
        self._live: dict[int, Progress] = {}
        self._content: tuple[str, str | None] = ("", None)
        self.warnings = [
            f"{self._n_at_once} chunks of runs at a time on the cluster, each with {self._slots_each} calls in flight"
        ]

    def progress(self) -> Progress:
        """How far the sweep is, as far as workers have told."""
        return sum(list(self._live.values()), start=self._context.progress())

    async def carry_out(self, pending: list[Pending]) -> None:
        """Carry out runs chunk by chunk, in rounds as long as shares of the budget end before the budget does."""
        context = self._context
        # Ids are hashes: in their order, chunks take alike of every condition.
        left = sorted(each.run_id for each in pending)
        if left:
            self._content = await context.in_store(self._described)
            self._cluster.listen(self._name, self._hear)
        n_chunks = _CHUNKS_EACH * self._n_at_once
        while left and not context.stopped:
            made = context.made
            n_chunks = min(n_chunks, len(left))
            try:
                left = await self._round(left, n_chunks)
            except LostError as error:
                return await self._lost(left, error)
            except BudgetExceeded:
                return await self._end_budget(left)
            if left and n_chunks == 1 and not context.stopped:
                return await self._end_budget(left)
            n_chunks = n_chunks // 2 if context.made > made else 1
        context.errors.update(dict.fromkeys(left, STOPPED))

    def _described(self) -> tuple[str, str | None]:
        """What workers need of the experiment: its manifest, and its price table."""
        experiment = self._context.experiment
        prices = experiment.resources.path(experiment.spec.execution.prices)
        content = json.dumps(manifest(experiment), allow_nan=False)
        return content, None if prices is None else Path(prices).read_text(encoding="utf-8")

    async def _round(self, run_ids: list[str], n_chunks: int) -> list[str]:
        """Carry out runs; returns those that their share of the budget did not suffice for, or that were not begun."""
        context, spending = self._context, self._context.spending
        # Nothing is set aside beforehand: workers keep to shares of what is left.
        reservation = None if spending.budget is None else await spending.budget.reserve(Usage())
        before = await context.in_store(spending.paid)
        chunks = await context.in_store(self._chunks, run_ids, n_chunks)
        queue, left = iter(chunks), set(run_ids)
        self._live.update((chunk.number, Progress()) for chunk in chunks)
        try:
            works = (self._work(queue, left) for _ in range(self._n_at_once))
            await together(*works, meanwhile=self._stop_workers())
        except BaseException:
            await self._cluster.stop(self._name)
            raise
        finally:
            self._live.clear()
            if reservation is not None:
                reservation.settle(await context.in_store(spending.paid) - before)
        return sorted(left)

    async def _work(self, chunks: Iterator[Chunk], left: set[str]) -> None:
        """Have one chunk after another carried out, and take what has ended from the runs that are left."""
        context = self._context
        for chunk in chunks:
            if context.stopped:
                return
            summary = await self._cluster.carry_out(chunk)
            del self._live[chunk.number]
            context.count(summary)
            done = set(chunk.run_ids) - set(summary.errors)
            context.complete |= done
            left -= done
            if not summary.exceeded:
                context.errors |= summary.errors
                left -= set(summary.errors)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Note how far a chunk is, unless it is over."""
        told = event[1]
        if told["chunk"] in self._live:
            self._live[told["chunk"]] = Progress(**told["progress"])

    async def _stop_workers(self) -> None:
        """Once the sweep is to stop, say so to all workers, those included that take a dead one's chunk over.

        Raises
        ------
        LostError
            If nobody hears it.
        """
        await self._context.stopping.wait()
        while await self._cluster.stop(self._name):
            await asyncio.sleep(_TELL_EVERY_S)
        raise LostError("no worker is left; the runs they had begun go on from their last stored reply")

    async def _lost(self, run_ids: list[str], error: LostError) -> None:
        """Put down as incomplete what nobody finished."""
        context = self._context
        states = await context.in_store(context.store.states, run_ids)
        context.complete |= {run_id for run_id in run_ids if states[run_id].status == "complete"}
        for run_id in run_ids:
            if run_id not in context.complete:
                context.errors.setdefault(run_id, str(error))

    # -- shares of the budget ------------------------------------------------------------------------------

    def _chunks(self, run_ids: list[str], n: int) -> list[Chunk]:
        """Runs in `n` chunks, or fewer where not that many calls may be made."""
        context = self._context
        left = context.spending.left()
        if left.calls is not None:
            n = max(1, min(n, left.calls))
        parts = [tuple(run_ids[i::n]) for i in range(n)]
        return [
            Chunk(
                self._name,
                next(self._numbers),
                opinionsim.__version__,
                *self._content,
                str.__str__(context.store.url),
                part,
                self._slots_each,
                _raised(share, context.spending.paid(part)),
                context.fresh,
            )
            for part, share in zip(parts, left.share(n), strict=True)
        ]

    async def _end_budget(self, run_ids: list[str]) -> None:
        """Stop for the budget: what is left of it is too little for any call."""
        context, spending = self._context, self._context.spending
        paid = Usage() if spending.budget is None else spending.budget.paid
        spent = [
            f"{getattr(paid, name):,.6g} of {limit:,.6g} {name}"
            for name in ("calls", "tokens", "money")
            if (limit := getattr(spending.limits, name)) is not None
        ]
        reason = (
            f"the budget is used up: {', '.join(spent)} paid, and no other call is sure to fit; "
            "raise execution.budget to go on. What was paid for is kept"
        )
        context.heed(BudgetExceeded(reason))
        for run_id, state in (await context.in_store(context.store.states, run_ids)).items():
            context.settle(run_id, reason)
            if state.error:
                # A worker knows no more than its own share.
                await context.in_store(context.store.save_error, run_id, reason)


def _raised(limits: Limits, paid: Usage) -> Limits:
    """Limits that count what was paid before."""
    pairs = zip(astuple(limits), astuple(paid), strict=True)
    return Limits(*(None if limit is None else limit + amount for limit, amount in pairs))
