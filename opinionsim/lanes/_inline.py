"""Batches whose requests go with the submission, and that have no names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from opinionsim.lanes._openai import CLOCKS_S
from opinionsim.lanes._protocol import BadLine, BatchLane, Look, Result, Sought


class InlineBatches(BatchLane):
    """Base of batches without names, which are found by their number of calls, their time and what they answer."""

    cancels: ClassVar[bool] = False

    async def page(self, after: str) -> tuple[list[dict[str, Any]], bool]:
        """A page of batches, newest first, that follow one; and whether more follow."""
        raise NotImplementedError

    def facts(self, batch: Mapping[str, Any]) -> tuple[int, float, bool]:
        """Number of calls of a listed batch, the Unix time at which it was created, and whether it has ended."""
        raise NotImplementedError

    async def fetch(self, batch_id: str, look: Look | None) -> Sequence[Result | BadLine]:
        """The results of a batch that has ended."""
        raise NotImplementedError

    async def find(self, sought: Sought) -> str | None:
        """The id of the batch that answers the calls; empty while one that may be it has not ended."""
        after, more, perhaps = "", True, None
        while more:
            page, more = await self.page(after)
            for each in page:
                n_calls, created_at, ended = self.facts(each)
                if created_at < sought.created_at - CLOCKS_S:
                    return perhaps
                if n_calls != len(sought.custom_ids) or each["id"] in sought.others:
                    continue
                if not ended:
                    perhaps = ""
                else:
                    found = {one.custom_id for one in await self.fetch(each["id"], None) if isinstance(one, Result)}
                    if found and found.issubset(sought.custom_ids):
                        return str(each["id"])
            after, more = str(page[-1]["id"]) if page else "", more and bool(page)
        return perhaps
