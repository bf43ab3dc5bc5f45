"""Whether the models behind a network stayed the same while a sweep lasted."""

from __future__ import annotations

import time
from typing import Literal

from opinionsim.errors import BudgetExceeded
from opinionsim.experiments._instruments import Instruments
from opinionsim.llm import (
    Budget,
    CanaryReply,
    Endpoint,
    ModelClient,
    Usage,
    ask_canary,
    canary_prompts,
    compare_canaries,
)
from opinionsim.store import CanaryRow

__all__ = ["Canaries"]


class Canaries:
    """Asks every model behind a network the same few questions, first and last.

    Parameters
    ----------
    experiment_id : str
        Whose record they join.
    instruments : Instruments
        The models.
    budget : Budget or None
        Which the questions count towards; where they do not fit, they are not asked.

    Attributes
    ----------
    notes : list of str
        What was found, and what could not be found out, in whole sentences.
    """

    def __init__(self, experiment_id: str, instruments: Instruments, budget: Budget | None) -> None:
        self._experiment_id = experiment_id
        self._clients = instruments.networked()
        self._budget = budget
        self._before: dict[str, tuple[CanaryReply, ...]] = {}
        self.notes: list[str] = []

    async def ask(self, moment: Literal["start", "end"]) -> list[CanaryRow]:
        """Ask all of them; returns what to put on record."""
        rows = []
        for client, endpoint in self._clients:
            replies = await self._asked(client, endpoint, moment)
            rows += [self._row(client.name, moment, reply) for reply in replies]
            before = self._before.setdefault(client.name, replies)
            found = compare_canaries(before, replies) if before is not replies else ""
            self.notes += [f"{client.name}: {found}"] if found else []
        return rows

    async def _asked(self, client: ModelClient, endpoint: Endpoint, moment: str) -> tuple[CanaryReply, ...]:
        """One model's replies; none where they cannot be had: a sweep does not depend on them."""
        try:
            return await self._within_budget(client, endpoint)
        except BudgetExceeded:
            self.notes.append(f"{client.name}: the canary questions at the {moment} were left out to keep the budget")
        except Exception as error:  # whatever a provider's client raises; the runs will meet it again
            kind = type(error).__name__
            self.notes.append(f"{client.name}: the canary questions at the {moment} were not answered ({kind})")
        return ()

    async def _within_budget(self, client: ModelClient, endpoint: Endpoint) -> tuple[CanaryReply, ...]:
        if self._budget is None:
            return await ask_canary(client)
        worst = sum((endpoint.worst(prompt) for prompt in canary_prompts()), Usage())
        reservation = await self._budget.reserve(worst)
        try:
            replies = await ask_canary(client)
        except BaseException:
            reservation.cancel()
            raise
        told = all(reply.input_tokens is not None and reply.output_tokens is not None for reply in replies)
        tokens = [(reply.input_tokens or 0, reply.output_tokens or 0) for reply in replies]
        money = sum(endpoint.cost(*each) or 0.0 for each in tokens)
        reservation.settle(Usage(len(replies), sum(map(sum, tokens)), money) if told else worst)
        return replies

    def _row(self, model: str, moment: Literal["start", "end"], reply: CanaryReply) -> CanaryRow:
        return CanaryRow(
            self._experiment_id, model, moment, reply.position, time.time(), reply.text, reply.model, reply.fingerprint
        )
