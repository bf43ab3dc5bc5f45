"""What to do with replies that are no answers: refused, empty and cut-off ones are asked for again or left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from opinionsim.messages import ReplyStatus


class Treatment(NamedTuple):
    """Treatment of the replies to a question that are no answers, of one status."""

    reask: int = 0
    """How often the question is asked again at most, each time with another seed; refused and empty replies to it are
    counted together, those that were cut off apart."""
    then: Literal["take", "fail"] = "take"
    """Whether the last reply is taken as what it is, or ends the run."""


#: Treatment of replies by their status: refused, empty, truncated.
ReplyPolicy = Mapping[ReplyStatus, Treatment]

#: The default: asked again, those that were cut off with double the length; then taken as what they are.
ASKED_AGAIN: ReplyPolicy = MappingProxyType({"refused": Treatment(2), "empty": Treatment(2), "truncated": Treatment(1)})
