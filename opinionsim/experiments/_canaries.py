"""Canary questions, which show whether networked models changed during a sweep."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from opinionsim.errors import BudgetExceeded
from opinionsim.experiments._context import Stopped, together
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.llm import (
    Budget,
    CanaryReply,
    Endpoint,
    ModelClient,
    RetryPolicy,
    Usage,
    ask_canary,
    canary_prompts,
    compare_canaries,
)
from opinionsim.store import CanaryRow


class Canaries:
    """Asks every networked model the same few questions, at the start and at the end.

    Parameters
    ----------
    experiment_id : str
        The experiment whose record the answers join.
    instruments : LoadedParts
        The models.
    budget : Budget or None
        The budget that the questions count towards; questions that do not fit are not asked.
    retry : RetryPolicy
        How often questions are repeated; its time-out is also the longest wait for all replies of one model.
    stopping : asyncio.Event
        Set when the sweep is to stop.

    Attributes
    ----------
    notes : list of str
        Changes that were found, and questions without replies, in words.
    """

    def __init__(
        self,
        experiment_id: str,
        instruments: LoadedParts,
        budget: Budget | None,
        *,
        retry: RetryPolicy,
        stopping: asyncio.Event,
    ) -> None:
        self._experiment_id = experiment_id
        self._clients = instruments.networked()
        self._labels = _numbered([client.name for client, _ in self._clients])
        self._budget = budget
        self._retry = retry
        self._stopping = stopping
        self._before: dict[str, tuple[CanaryReply, ...]] = {}
        self.notes: list[str] = []

    async def ask(self, moment: Literal["start", "end"]) -> list[CanaryRow]:
        """Ask all models; return the rows to put on record."""
        rows = []
        for label, (client, endpoint) in zip(self._labels, self._clients, strict=True):
            if self._stopping.is_set():
                break
            replies = await self._asked(label, client, endpoint, moment)
            rows += [self._row(label, moment, reply, endpoint) for reply in replies]
            before = self._before.setdefault(label, replies)
            found = compare_canaries(before, replies) if before is not replies else ""
            self.notes += [f"{label}: {found}"] if found else []
        return rows

    async def _asked(self, label: str, client: ModelClient, endpoint: Endpoint, moment: str) -> tuple[CanaryReply, ...]:
        """One model's replies; a failure becomes a note, since the sweep does not depend on them."""
        arrived: list[CanaryReply] = []
        questions = f"{label}: the canary questions at the {moment}"
        try:
            async with asyncio.timeout(self._retry.timeout_s) as limit:
                await together(self._within_budget(client, endpoint, arrived), meanwhile=self._until_stopped())
        except BudgetExceeded:
            self.notes.append(f"{questions} were left out to keep the budget")
        except Stopped:
            self.notes.append(f"{questions} were not answered (the sweep was stopped)")
        except Exception as error:  # any error of a provider's client: the runs will meet it again
            why = f"no reply within {self._retry.timeout_s:g} s" if limit.expired() else type(error).__name__
            self.notes.append(f"{questions} were not answered ({why})")
        return tuple(sorted(arrived))

    async def _until_stopped(self) -> None:
        await self._stopping.wait()
        raise Stopped

    async def _within_budget(self, client: ModelClient, endpoint: Endpoint, arrived: list[CanaryReply]) -> None:
        """Ask, and count the replies that arrived, even if others fail."""
        if self._budget is None:
            await ask_canary(client, arrived, retry=self._retry)
            return
        bounds = [endpoint.worst(prompt) for prompt in canary_prompts()]
        reservation = await self._budget.reserve(sum(bounds, Usage()))
        try:
            await ask_canary(client, arrived, retry=self._retry)
        finally:
            reservation.settle(sum((_used(endpoint, reply, bounds[reply.position]) for reply in arrived), Usage()))

    def _row(self, label: str, moment: Literal["start", "end"], reply: CanaryReply, endpoint: Endpoint) -> CanaryRow:
        return CanaryRow(
            self._experiment_id,
            label,
            moment,
            reply.position,
            time.time(),
            *reply[1:],
            endpoint.cost(reply.input_tokens, reply.output_tokens),
        )


def _used(endpoint: Endpoint, reply: CanaryReply, worst: Usage) -> Usage:
    """Usage of a question; its upper bound where the provider reports none."""
    if reply.input_tokens is None or reply.output_tokens is None:
        return worst
    money = endpoint.cost(reply.input_tokens, reply.output_tokens)
    return Usage(1, reply.input_tokens + reply.output_tokens, money or 0.0)


def _numbered(names: list[str]) -> list[str]:
    """Distinct labels: two models may have one name, for example at two addresses."""
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name} ({n + 1})" if n else name for name, n in zip(names, before, strict=True)]
