"""Code that runs in a worker of a cluster: it carries out a chunk, and stops."""

from __future__ import annotations

import json
import tempfile
import threading
from concurrent.futures import wait
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import opinionsim
from opinionsim.assembly import LoadedParts
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation import background
from opinionsim.running._context import Shared, Summary
from opinionsim.running._executors import LocalExecutor
from opinionsim.running._invocation import Invocation
from opinionsim.running._runner import Runner
from opinionsim.specification import Experiment, load_experiment, require_same_code
from opinionsim.store import open_store

#: Seconds between progress reports of a worker.
_TELL_EVERY_S = 1.0


@dataclass(frozen=True)
class Chunk:
    """Runs of a sweep that are sent to a worker.

    Attributes
    ----------
    sweep : str
        A name that is unique to each invocation.
    number : int
        The number of the chunk within the invocation.
    version : str
        Version of opinionsim in the process that made the chunk.
    manifest : str
        The content of the experiment, as JSON.
    prices : str or None
        Text of the price table that the experiment names, if any.
    store : str
        Address of the store, without a password.
    run_ids : tuple of str
        The runs to carry out.
    slots : int
        Maximum number of calls in flight.
    fresh : bool
        Whether to start runs anew if they no longer agree with their stored calls.
    """

    sweep: str
    number: int
    version: str
    manifest: str
    prices: str | None
    store: str
    run_ids: tuple[str, ...]
    slots: int
    fresh: bool

    def __repr__(self) -> str:
        return f"Chunk({self.sweep}, {self.number}, {len(self.run_ids)} runs)"


#: Experiment and models of the last chunk, by thread: models are loaded once, and need not be thread-safe.
_kept = threading.local()
#: Runners under way by the name of their sweep, and sweeps that are to stop; used only on the event loop.
_under_way: dict[str, set[Runner]] = {}
_stopped: set[str] = set()


def carry_out_chunk(chunk: Chunk) -> Summary:
    """Carry out the runs of a chunk in a cluster's worker, and report progress.

    Parameters
    ----------
    chunk : Chunk
        The chunk, whose runs are registered in the store.

    Returns
    -------
    Summary
        Returned also when runs failed.

    Raises
    ------
    OpinionSimError
        If the worker cannot work on the chunk; names the worker and the reason.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        if chunk.version != opinionsim.__version__:
            raise SpecError(
                f"it has opinionsim {opinionsim.__version__}, but the sweep was started with {chunk.version}; "
                "install the same version on every machine"
            )
        experiment, loaded = _loaded(chunk)
        if not set(chunk.run_ids) <= {planned.run_id for planned in experiment.runs}:
            raise SpecError("it reads the experiment differently; install the same opinionsim on every machine")
        with open_store(chunk.store) as store:
            slots, fresh, only = chunk.slots, chunk.fresh, frozenset(chunk.run_ids)
            invocation = Invocation(experiment, max_concurrency=slots, fresh=fresh, only=only, loaded=loaded)
            context = Shared(invocation, store, registers=False)
            runner = Runner(context, LocalExecutor(context))
            future = background.submit(_executed(chunk.sweep, runner))
            while not wait([future], timeout=_TELL_EVERY_S).done:
                # The total is counted by the process that made the chunks.
                progress = replace(runner.progress(), total=0)
                worker.log_event(chunk.sweep, {"chunk": chunk.number, "progress": asdict(progress)})
            return future.result()
    except OpinionSimError as error:
        raise error.at(f"worker {worker.address}") from error


def stop_sweep(name: str) -> None:
    """Stop the runners of a sweep in this process, including those that begin later."""
    background.call_soon(partial(_stop, name))


def _loaded(chunk: Chunk) -> tuple[Experiment, LoadedParts]:
    """The experiment of a chunk and its models, kept for the next chunk of the sweep in this thread."""
    key = (chunk.sweep, chunk.manifest, chunk.prices)
    if getattr(_kept, "key", None) != key:
        vars(_kept).clear()  # if loading fails, no half of it is kept
        with tempfile.TemporaryDirectory(prefix="opinionsim-") as folder:
            overrides = {}
            if chunk.prices is not None:
                path = Path(folder, "prices.yaml")
                path.write_text(chunk.prices, encoding="utf-8")
                overrides["execution.prices"] = str(path)
            content = json.loads(chunk.manifest)
            require_same_code(content["environment"]["parts"])
            experiment = load_experiment(content, overrides)
            _kept.value = (experiment, LoadedParts(experiment))
        _kept.key = key
    found: tuple[Experiment, LoadedParts] = _kept.value
    return found


async def _executed(name: str, runner: Runner) -> Summary:
    """Execute a runner that can be stopped by the name of its sweep."""
    runners = _under_way.setdefault(name, set())
    runners.add(runner)
    if name in _stopped:
        runner.stop()
    try:
        return await runner.execute()
    finally:
        runners.discard(runner)


def _stop(name: str) -> None:
    _stopped.add(name)
    for runner in _under_way.get(name, ()):
        runner.stop()
