"""Classic models as Mesa models, with agents, steps and data collectors on the same kernels."""

from __future__ import annotations

from typing import Any

import mesa
import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._registry import find_model
from opinionsim.classic._simulate import find_network, starts_of
from opinionsim.classic._simulated import plain
from opinionsim.classic.kernels._process import Process, set_up
from opinionsim.errors import whole_number


class OpinionAgent(mesa.Agent):
    """An agent with an opinion.

    Attributes
    ----------
    index : int
        Number of the agent, from 0.
    """

    def __init__(self, model: ClassicOpinionModel, index: int) -> None:
        super().__init__(model)
        self.index = index

    @property
    def opinion(self) -> float | np.ndarray:
        """Opinion after the last step; an array (D,) if opinions have several dimensions."""
        own = self.model.opinions[self.index]
        return float(own) if np.ndim(own) == 0 else own


class ClassicOpinionModel(mesa.Model):
    """A classic opinion model that Mesa can step, collect data from and display.

    Parameters
    ----------
    model : str or ClassicModel
        The model or its name.
    network, initial, seed, n, range, isolates, **settings
        As in :func:`opinionsim.classic.simulate`.

    Attributes
    ----------
    network : Network
        Who hears whom.
    datacollector : mesa.DataCollector
        Bias and diversity of the model, for each dimension if opinions have several, and the opinion of every agent,
        collected at the start and after each step.

    Notes
    -----
    A step is one elementary update per agent. T steps give the same opinions as T steps of
    :func:`opinionsim.classic.simulate` with the same seed. Changes to Mesa's agents do not affect the kernel.
    """

    def __init__(
        self,
        model: str | ClassicModel,
        network: Any = None,
        initial: ArrayLike | str = "uniform",
        seed: int = 0,
        *,
        n: int | None = None,
        range: tuple[float, float] | None = None,
        isolates: str = "error",
        **settings: Any,
    ) -> None:
        seed = whole_number("seed", seed, 0)
        super().__init__(seed=seed)
        found = find_model(model)
        self.network, _ = find_network(network, initial, n, seed)
        setup = set_up(found, self.network, span=range, settings=settings, isolates=isolates)
        self._process = Process(setup, starts_of(setup, initial, seed, [0])[0], seed)
        self._opinions = self._process.opinions
        for index in np.arange(self.network.n).tolist():
            OpinionAgent(self, index)
        self.datacollector = mesa.DataCollector(
            model_reporters={
                "bias": lambda own: plain(own.opinions.mean(axis=0)),
                "diversity": lambda own: plain(own.opinions.std(axis=0)),
            },
            agent_reporters={"opinion": "opinion"},
        )
        self.datacollector.collect(self)

    @property
    def opinions(self) -> np.ndarray:
        """Opinions after the last step, (N,) or (N, D); read-only."""
        view = self._opinions.view()
        view.flags.writeable = False
        return view

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter, including those with default values."""
        return dict(self._process.setup.parameters)

    @property
    def scheme(self) -> dict[str, Any]:
        """Every scheme option, including those with default values."""
        return dict(self._process.setup.scheme)

    def step(self) -> None:
        """Advance opinions by one step and collect data."""
        self._process.advance(1)
        self._opinions = self._process.opinions
        self.datacollector.collect(self)
