"""Simulations of a classic model for every combination of parameter values, and metrics of their final opinions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._contacts import Contacts
from opinionsim.classic._model import ClassicModel
from opinionsim.classic._process import Batch, Setup, set_up
from opinionsim.classic._registry import find_model
from opinionsim.classic._simulate import each_of, find_network, starts_of, whole
from opinionsim.classic._trajectories import metrics_of_runs, plain
from opinionsim.errors import SpecError
from opinionsim.streams import canonical_json

if TYPE_CHECKING:
    import pandas as pd

_MOST_RUNS = 10_000_000


def sweep(
    model: str | ClassicModel,
    over: Mapping[str, Sequence[Any]],
    network: Any = None,
    initial: ArrayLike | str = "uniform",
    steps: int = 100,
    seed: int = 0,
    *,
    n: int | None = None,
    replicates: int = 1,
    metrics: Sequence[str] | Mapping[str, Callable[[np.ndarray], float]] = ("bias", "diversity"),
    range: tuple[float, float] | None = None,
    isolates: str = "error",
    threads: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Simulate a model for every combination of parameter values, and compute metrics of its final opinions.

    Parameters
    ----------
    model : str or ClassicModel
        Its name.
    over : mapping of str to sequence
        Values of each parameter or scheme option that varies.
    network, initial, steps, seed, n, replicates, range, isolates, threads
        As in :func:`opinionsim.classic.simulate`. Replicate r starts from the same opinions and has the same random
        stream in every combination, so that contrasts between combinations are paired.
    metrics : sequence of str, or mapping of str to callable
        Names in :data:`opinionsim.metrics.METRICS`, or functions of final opinions (N,) or (N, D).
    **settings
        Parameters and scheme options that do not vary.

    Returns
    -------
    DataFrame
        One row a run: ``model``, a column for each name in `over`, ``replicate``, a column a metric (``bias[0]``,
        ``bias[1]``, ... where opinions have several dimensions), and ``evidence``. Its ``attrs`` hold what does not
        vary: model, parameters, scheme, range, n, steps, seed and replicates.

    Raises
    ------
    SpecError
        If anything is unknown or out of range; every combination is checked before the first run.
    """
    import pandas as pd

    found = find_model(model)
    steps, seed, replicates = whole("steps", steps, 0), whole("seed", seed, 0), whole("replicates", replicates, 1)
    joined = find_network(network, initial, n, seed, replicates)
    setups = _setups(found, over, joined, range, settings, isolates)
    if len(setups) * replicates > _MOST_RUNS:
        raise SpecError(f"{len(setups)} combinations make {len(setups) * replicates} runs; at most {_MOST_RUNS} do")
    starts = starts_of(setups[0][1], initial, seed, list(np.arange(replicates)))
    begun, span = np.stack(starts), setups[0][1].range
    if not isinstance(metrics, Mapping):
        # A metric that fails on initial opinions would fail on final ones: find out before the runs.
        metrics_of_runs(begun[:1], begun[:1], metrics, span, joined)
    finals = np.empty((len(setups) * replicates, *starts[0].shape))

    def one(run: int) -> None:
        combination, replicate = divmod(run, replicates)
        batch = Batch(setups[combination][1], starts[replicate : replicate + 1], seed, [replicate])
        batch.advance(steps)
        finals[run] = batch.opinions[0]

    each_of(len(finals), one, threads)
    columns: dict[str, Any] = {"model": found.name}
    for name in over:
        columns[name] = [_cell(values[name]) for values, _ in setups for _ in np.arange(replicates)]
    columns["replicate"] = np.tile(np.arange(replicates), len(setups))
    columns |= metrics_of_runs(finals, np.concatenate([begun] * len(setups)), metrics, span, joined)
    table = pd.DataFrame(columns).assign(evidence="equation")
    table.attrs.update(_constant(setups[0][1], over, steps=steps, seed=seed, replicates=replicates))
    return table


def _cell(value: Any) -> Any:
    """A value as a table holds it: a list, of one value an agent, as its text."""
    return value if np.ndim(value) == 0 else canonical_json(np.asarray(value).tolist())


def _constant(setup: Setup, over: Mapping[str, Any], **run: int) -> dict[str, Any]:
    """The settings that all runs have in common."""
    return {
        "model": setup.model.name,
        "parameters": {name: plain(value) for name, value in setup.parameters.items() if name not in over},
        "scheme": {name: value for name, value in setup.scheme.items() if name not in over},
        "range": setup.range,
        "n": setup.network.n,
        **run,
    }


def _setups(
    model: ClassicModel,
    over: Mapping[str, Sequence[Any]],
    network: Any,
    span: tuple[float, float] | None,
    settings: Mapping[str, Any],
    isolates: str,
) -> list[tuple[dict[str, Any], Setup]]:
    """Every combination of values with its setup, checked."""
    both = sorted(set(over) & set(settings))
    if both:
        raise SpecError(f"{both[0]} is given twice: as a value, and as one that varies")
    for name, values in over.items():
        if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
            raise SpecError(f"over: {name} must be a list of at least one value; got {values!r:.60}")
        if len({canonical_json(np.asarray(value).tolist()) for value in values}) < len(list(values)):
            raise SpecError(f"over: {name} repeats a value; replicates are given by replicates; got {values!r:.60}")
    plain = [[value.item() if isinstance(value, np.generic) else value for value in values] for values in over.values()]
    combinations = [dict(zip(over, values, strict=True)) for values in itertools.product(*plain)]
    known: dict[tuple[int, bool], Contacts] = {}
    return [
        (values, set_up(model, network, span=span, settings={**settings, **values}, isolates=isolates, known=known))
        for values in combinations
    ]
