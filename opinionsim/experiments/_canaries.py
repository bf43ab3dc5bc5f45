"""Whether the models behind a network stayed the same while a sweep lasted."""

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
    Usage,
    ask_canary,
    canary_prompts,
    compare_canaries,
)
from opinionsim.store import CanaryRow


class Canaries:
    """Asks every model behind a network the same few questions, first and last.

    Parameters
    ----------
    experiment_id : str
        The experiment whose record the answers join.
    instruments : LoadedParts
        The models.
    budget : Budget or None
        The budget that the questions count towards; where they do not fit, they are not asked.
    timeout_s : float
        How long one model's answers are waited for, seconds.
    stopping : asyncio.Event
        Set when nothing is to be waited for any longer.

    Attributes
    ----------
    notes : list of str
        What was found, and what could not be found out, in whole sentences.
    """

    def __init__(
        self,
        experiment_id: str,
        instruments: LoadedParts,
        budget: Budget | None,
        *,
        timeout_s: float,
        stopping: asyncio.Event,
    ) -> None:
        self._experiment_id = experiment_id
        self._clients = instruments.networked()
        self._labels = _numbered([client.name for client, _ in self._clients])
        self._budget = budget
        self._timeout_s = timeout_s
        self._stopping = stopping
        self._before: dict[str, tuple[CanaryReply, ...]] = {}
        self.notes: list[str] = []

    async def ask(self, moment: Literal["start", "end"]) -> list[CanaryRow]:
        """Ask all of them; returns what to put on record."""
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
        """One model's replies, as far as they can be had: a sweep does not depend on them."""
        arrived: list[CanaryReply] = []
        questions = f"{label}: the canary questions at the {moment}"
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                await together(self._within_budget(client, endpoint, arrived), meanwhile=self._until_stopped())
        except BudgetExceeded:
            self.notes.append(f"{questions} were left out to keep the budget")
        except Stopped:
            self.notes.append(f"{questions} were not answered (the sweep was stopped)")
        except Exception as error:  # whatever a provider's client raises: the runs will meet it again
            why = f"no reply within {self._timeout_s:g} s" if limit.expired() else type(error).__name__
            self.notes.append(f"{questions} were not answered ({why})")
        return tuple(sorted(arrived))

    async def _until_stopped(self) -> None:
        await self._stopping.wait()
        raise Stopped

    async def _within_budget(self, client: ModelClient, endpoint: Endpoint, arrived: list[CanaryReply]) -> None:
        """Ask, and count what arrived, whatever became of the rest."""
        if self._budget is None:
            await ask_canary(client, arrived)
            return
        bounds = [endpoint.worst(prompt) for prompt in canary_prompts()]
        reservation = await self._budget.reserve(sum(bounds, Usage()))
        try:
            await ask_canary(client, arrived)
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
    """What a question used; the most it could have where the provider does not say."""
    if reply.input_tokens is None or reply.output_tokens is None:
        return worst
    money = endpoint.cost(reply.input_tokens, reply.output_tokens)
    return Usage(1, reply.input_tokens + reply.output_tokens, money or 0.0)


def _numbered(names: list[str]) -> list[str]:
    """Names told apart: two models may have one name, at two addresses for one."""
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name} ({n + 1})" if n else name for name, n in zip(names, before, strict=True)]
