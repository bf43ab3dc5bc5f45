"""Sweeps on several machines: the workers of a Dask cluster share a store and carry out chunks of runs."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Self

import opinionsim
from opinionsim import llm
from opinionsim.errors import OpinionSimError, SpecError, packages
from opinionsim.foundation import background
from opinionsim.running._context import Advance, Shared, Stopped, Summary, together
from opinionsim.running._sorting import Pending
from opinionsim.running._worker import Chunk, carry_out_chunk, stop_sweep
from opinionsim.specification import Experiment, manifest, own_parts_manifest, require_importable
from opinionsim.store import shown

#: Chunks for each worker: enough that all workers end at about the same time, few enough that each chunk fills its
#: slots.
_CHUNKS_EACH = 4
#: Seconds to wait for the scheduler, and for a first worker.
_PATIENCE_S = 10.0
#: Seconds between repeated requests to workers to stop.
_TELL_EVERY_S = 1.0


class LostError(OpinionSimError):
    """Chunks were lost with their workers, or with the scheduler."""

    exit_code = 1


def check_cluster(experiment: Experiment, url: str) -> None:
    """Refuse an experiment that cannot be carried out on several machines.

    Raises
    ------
    SpecError
        If the store is a file, or only this process has one of the parts.
    """
    if not shown(url).startswith("postgres"):
        raise SpecError(
            f"--cluster: workers on several machines cannot write the store {shown(url)}, because a SQLite file has "
            "one writer at a time; use a PostgreSQL database, as in --store postgresql+psycopg://USER@HOST/DATABASE"
        )
    experiment.spec.execution.require_alone(True)
    require_importable(own_parts_manifest(cell.spec for cell in experiment.cells))


class Cluster:
    """A Dask cluster, reached through its scheduler; a context manager.

    Parameters
    ----------
    address : str
        Address of the scheduler, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.

    Attributes
    ----------
    n_tasks : int
        Threads of all workers together.

    Raises
    ------
    SpecError
        If the extra ``cluster`` is not installed, no scheduler answers, there is no worker, or a worker lacks
        opinionsim or has another version of it.

    Notes
    -----
    The coroutines and the client of the scheduler run on the package's event loop.
    """

    def __init__(self, address: str) -> None:
        (self._distributed,) = packages("--cluster", "cluster", "distributed", kind=SpecError)
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
                f"--cluster: no Dask scheduler answers at {address!r} ({error}); give the address that "
                "`dask scheduler` prints, for example tcp://HOST:8786"
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
        if allowed := os.environ.get(llm.ALLOWED):
            await self._client.run(llm.allow_keys, [allowed])
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
        """Pass workers' events under a topic to ``handler((time, event))``, until the cluster is closed."""
        self._client.subscribe_topic(topic, handler)

    async def carry_out(self, chunk: Chunk) -> Summary:
        """Have a worker carry out a chunk; raises as :meth:`call`."""
        summary: Summary = await self.call(carry_out_chunk, chunk)
        return summary

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have a worker call a function, and return its result.

        Raises
        ------
        LostError
            If the scheduler gave up the call or no longer answers.
        OpinionSimError
            If a worker could not carry it out.
        """
        try:
            return await self._client.submit(function, *arguments, pure=False)
        except self._distributed.KilledWorker as error:
            raise LostError(
                f"the scheduler gave up a chunk of runs after {error.allowed_failures + 1} workers died on it, the "
                f"last one at {error.last_worker.address}; its log shows the cause, often a lack of memory"
            ) from None
        except (self._distributed.CancelledError, self._distributed.client.ClosedClientError, OSError) as error:
            raise LostError(f"the Dask scheduler was lost ({error}); workers may have finished more runs") from None

    async def stop(self, name: str) -> bool:
        """Tell all workers to begin no further runs of a sweep; return whether any worker answered."""
        try:
            return bool(await self._client.run(stop_sweep, name, on_error="ignore"))
        except Exception:  # a client whose scheduler is gone raises various errors
            return False


class ClusterExecutor:
    """Carries out runs on the workers of a cluster, which share a store.

    Parameters
    ----------
    context : Shared
        Shared with the runner; its store is a shared one.
    cluster : Cluster
        The workers.

    Notes
    -----
    The number of chunks under way is the number of threads that workers had at the start, at most one per slot. Slots
    are shared evenly among chunks. Workers that join later do not raise this limit. All workers share one budget.
    """

    def __init__(self, context: Shared, cluster: Cluster) -> None:
        slots = context.slots.limit
        self._cluster = cluster
        self._context = context
        self._n_at_once = min(cluster.n_tasks, slots)
        self._slots_each = slots // self._n_at_once
        self._name = f"opinionsim-{secrets.token_hex(8)}"
        self._numbers = count()
        self._live: dict[int, Advance] = {}
        self._content: tuple[str, str | None] = ("", None)
        self.warnings = [
            f"{self._n_at_once} chunks of runs at a time on the cluster, each with {self._slots_each} calls in flight"
        ]

    def progress(self) -> Advance:
        """Progress of the sweep, as reported by workers."""
        return sum(list(self._live.values()), start=self._context.progress())

    async def carry_out(self, pending: list[Pending]) -> None:
        """Carry out runs in chunks."""
        context = self._context
        # Ids are hashes: in their order, every chunk has runs of all conditions.
        left = sorted(each.run_id for each in pending)
        if not left or context.stopped:
            context.errors.update(dict.fromkeys(left, Stopped()))
            return
        self._content = await context.in_store(self._described)
        self._cluster.listen(self._name, self._hear)
        chunks = self._chunks(left)
        queue, undone = iter(chunks), set(left)
        self._live.update((chunk.number, Advance()) for chunk in chunks)
        try:
            works = (self._work(queue, undone) for _ in range(self._n_at_once))
            await together(*works, meanwhile=self._stop_workers())
        except LostError as error:
            await self._cluster.stop(self._name)
            await self._lost(left, error)
        except BaseException:
            await self._cluster.stop(self._name)
            raise
        else:
            context.errors.update(dict.fromkeys(undone, context.exceeded or Stopped()))
        finally:
            self._live.clear()

    def _described(self) -> tuple[str, str | None]:
        """The manifest and the price table of the experiment, for workers."""
        experiment = self._context.experiment
        prices = experiment.resources.path(experiment.spec.execution.prices)
        content = json.dumps(manifest(experiment), allow_nan=False)
        return content, None if prices is None else Path(prices).read_text(encoding="utf-8")

    async def _work(self, chunks: Iterator[Chunk], undone: set[str]) -> None:
        """Have one chunk after another carried out, and remove runs that have ended from `undone`."""
        context = self._context
        for chunk in chunks:
            if context.stopped:
                return
            summary = await self._cluster.carry_out(chunk)
            del self._live[chunk.number]
            context.count(summary)
            context.complete |= set(chunk.run_ids) - set(summary.causes)
            context.errors |= summary.causes
            undone -= set(chunk.run_ids)
            context.heed(summary.exceeded)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Note the progress of a chunk, unless it is over."""
        told = event[1]
        if told["chunk"] in self._live:
            self._live[told["chunk"]] = Advance(**told["progress"])

    async def _stop_workers(self) -> None:
        """Once the sweep is to stop, tell all workers repeatedly: some may take over a dead worker's chunk later.

        Raises
        ------
        LostError
            If no worker answers.
        """
        await self._context.stopping.wait()
        while await self._cluster.stop(self._name):
            await asyncio.sleep(_TELL_EVERY_S)
        raise LostError("no worker is left; repeat the command to resume the runs after their last stored reply")

    async def _lost(self, run_ids: list[str], error: LostError) -> None:
        """Settle runs after a loss: those that are not complete get the error."""
        context = self._context
        states = await context.in_store(context.store.states, run_ids)
        context.complete |= {run_id for run_id in run_ids if states[run_id].status == "complete"}
        for run_id in run_ids:
            if run_id not in context.complete:
                context.errors.setdefault(run_id, error)

    def _chunks(self, run_ids: list[str]) -> list[Chunk]:
        """Runs in chunks, a few for each worker."""
        context = self._context
        n = min(_CHUNKS_EACH * self._n_at_once, len(run_ids))
        return [
            Chunk(
                self._name,
                next(self._numbers),
                opinionsim.__version__,
                *self._content,
                str.__str__(context.store.url),
                tuple(run_ids[i::n]),
                self._slots_each,
                context.fresh,
            )
            for i in range(n)
        ]
