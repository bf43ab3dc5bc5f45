"""Sweeps through a stub provider, and what its log and the store say of each other."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pandas as pd
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from opinionsim.messages import ChatMessage
from opinionsim.store import Results, open_store
from tests.support.provider import StubProvider
from tests.support.provider_answers import REFUSAL
from tests.support.provider_faults import Exchange, Faults, evenly
from tests.support.provider_replies import request_identity
from tests.support.running import SMALL, changed

#: Kind of fault: the status it is stored under.
STATUSES = {
    "empty": "empty",
    "truncated": "truncated",
    "endless-thought": "truncated",
    "refused": "refused",
    "declined": "refused",
    "filtered": "refused",
    "blocked": "refused",
}
#: Columns that tell of reasoning, which differs from try to try where a stub reasons in some only.
THOUGHTS = ("reasoning", "reasoning_tokens", "output_tokens", "cost")

SPEC = changed(
    SMALL,
    name="provided",
    seed=11,
    model={"name": "openai:stub"},
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
    execution={
        "timeout_s": 60.0,
        "retry": {"transient": 20, "rate_limited": 40, "first_wait_s": 0.01, "longest_wait_s": 0.1},
    },
)


def all_at_once(transport: float, content_: float = 0.0, lasting: float = 0.0) -> Faults:
    """Every kind of fault there is but those that any request meets, each of a sort equally likely."""
    return Faults(
        tries=evenly(transport, (*Faults.TRANSPORT, *Faults.HARMLESS)),
        requests={**evenly(content_, Faults.CONTENT), **evenly(lasting, Faults.THIS_REQUEST)},
        trickle_s=0.02,
    )


class WithinTheProcess(BaseChatModel):
    """What a stub would say to the same request, with nothing between."""

    seed: int | None = None
    _stub: StubProvider = PrivateAttr()

    @classmethod
    def of(cls, stub: StubProvider) -> WithinTheProcess:
        """The model that says what a stub says."""
        model = cls()
        model._stub = stub
        return model

    @property
    def _llm_type(self) -> str:
        return "within the process"

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        roles: dict[str, Any] = {"system": "system", "human": "user", "ai": "assistant"}
        asked = tuple(ChatMessage(roles[each.type], each.text) for each in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._stub.reply(asked, options["seed"])))])


def said(stub: StubProvider, exchange: Exchange) -> str:
    """The text of a reply as the stub wrote it, reasoning aside."""
    text = stub.reply(exchange.request.messages, exchange.request.seed)
    match exchange.fault:
        case "empty" | "filtered" | "blocked" | "endless-thought":
            return ""
        case "truncated":
            return text[: len(text) // 2]
        case "refused" | "declined":
            return REFUSAL
    return text


def answers(exchange: Exchange) -> bool:
    """Whether an exchange settles a call: by a whole reply, or by a refusal of its prompt."""
    return exchange.served or exchange.fault == "blocked"


def assert_nothing_imputed(stub: StubProvider, log: Iterable[Exchange], store: str, results: Results) -> None:
    """Every stored call holds what the stub wrote to just its prompt and seed, and every turn one of these texts."""
    by_identity = defaultdict(list)
    for exchange in log:
        if answers(exchange):
            by_identity[exchange.request.identity].append(exchange)
    calls = results.calls
    assert len(calls)
    with open_store(store, write=False) as opened:
        for call in calls.itertuples():
            prompt = opened.prompt(call.run_id, call.turn, call.call, call.attempt)
            found = by_identity[request_identity(prompt, int(call.seed))]
            assert found, f"the stub never answered {call}"
            # Tries of one request may differ in their reasoning, never in their text.
            assert {said(stub, exchange) for exchange in found} == {call.reply}
            assert call.status == STATUSES.get(found[-1].fault or "", "answered")
            assert ("I shall keep it short" in call.reasoning) or found[-1].fault != "endless-thought"
            assert "<think>" not in call.reply
    accepted = calls[(calls["call"] == "reply") & (calls["acceptance"] == "accepted")]
    keys = ["run_id", "turn"]
    skipped = results.turns["status"] == "skipped"
    both = results.turns.merge(accepted, on=keys, suffixes=("", "_call"))
    assert len(both) == len(results.turns) - skipped.sum()
    assert set(results.turns.loc[skipped, "message"]) <= {""}
    _assert_skipped_where_nothing_was_left(results.turns)
    assert list(both["message"]) == list(both["reply"])
    # A reply that was cut off before its first word is an empty turn.
    wordless = (both["status_call"] == "truncated") & (both["reply"].str.strip() == "")
    assert list(both["status"]) == list(both["status_call"].mask(wordless, "empty"))
    statuses = results.turns.set_index(keys)["status"].rename("of_the_turn")
    measured = results.opinions.join(statuses, on=keys)
    assert measured.loc[measured["of_the_turn"] != "answered", "value"].isna().all()


def _assert_skipped_where_nothing_was_left(turns: pd.DataFrame) -> None:
    """A review is skipped if, and only if, all it reads is refused, empty or skipped."""
    status = turns.set_index(["run_id", "turn"])["status"]
    reviews = turns[turns["act"] == "review"]
    for review in reviews.itertuples():
        left = [ref for ref in review.reads if status[review.run_id, ref] in ("answered", "truncated")]
        assert (review.status == "skipped") == (not left)


def assert_paid_once(log: Iterable[Exchange], calls: pd.DataFrame) -> None:
    """No request began after its reply was on record; replies nobody has were given up by the client."""
    offset_s = time.time() - time.monotonic()
    arrived = {int(call.seed): call.arrived_at - offset_s for call in calls.itertuples()}
    assert len(arrived) == len(calls), "seeds tell calls apart"
    for exchange in log:
        seed = exchange.request.seed
        if seed in arrived:
            assert exchange.began_s <= arrived[seed], f"asked again: {exchange}"


def seeds_of(log: Iterable[Exchange]) -> set[int | None]:
    """The calls that were asked."""
    return {exchange.request.seed for exchange in log}
