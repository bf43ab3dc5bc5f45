"""The classifier that reads an author's opinion from the probabilities of the first token of a closed answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from string import ascii_uppercase
from typing import Literal

import numpy as np

from opinionsim.classifiers._base import Item, PlainClassifier, check_items
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.templates import filled
from opinionsim.llm import CallName, first_token_shares
from opinionsim.messages import Ask, ChatMessage, Prompt, printable, take_as_is
from opinionsim.metrics import BELIEF
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Version of the wording; raise it with every change, so that results record it.
WORDING = 1
#: A begun answer whose next word is plain to any model that goes on with it, that word, and the first one.
_BEGUN = (ChatMessage("user", "Say: one two three four five six"), ChatMessage("assistant", "one two three"))
_NEXT = ("four", "one")


@part("classifier", name=BELIEF)
class BeliefClassifier(PlainClassifier):
    """Asks the author of a text, off the record, and reads the probabilities of all answers at once.

    The model that wrote the text gets the question together with everything that it saw in that turn and its own text.
    If the text answers a question off the record, the new question replaces that question. The reply is one token. The
    value is the expectation over the scale.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2 to 2.
    labels : {"letters", "numbers"}
        The labels of the points in the question: A, B, C, ... in the order listed, or the points themselves. Labels
        must begin differently, except for signs. Signs need two more calls: one continues after the sign, and one
        tests whether the model continues a started answer.
    orders : {"one", "both"}
        Whether to list the points only from the lowest, or also, in a separate call, from the highest. With "both",
        the value is the mean of the two readings.
    before : bool
        Whether to ask before the turn, when the model has seen nothing of it.
    question : str
        The question, to be answered with a label of the scale. Default: the author's honest opinion of the claim; only
        this question needs a claim.

    Raises
    ------
    SpecError
        If labels begin with the same token, or an option is not valid.

    Notes
    -----
    Probabilities are those of answers on the scale, at the temperature of the model in its run (1 if the provider
    chooses it). The off-scale mass is the probability, at temperature 1, of all other tokens, including all tokens
    beyond the 20 most likely. A value is missing only if no label is among these 20. The classifier reads only the
    first token, although "A" can also begin a sentence.
    """

    name = BELIEF
    #: The author of the text answers, from a fork of its context.
    endpoint = None

    def __init__(
        self,
        scale: OpinionScale | None = None,
        labels: Literal["letters", "numbers"] = "letters",
        orders: Literal["one", "both"] = "one",
        before: bool = False,
        question: str = "",
    ) -> None:
        super().__init__(scale)
        if labels not in ("letters", "numbers") or orders not in ("one", "both"):
            raise SpecError("classifier 'belief': labels must be letters or numbers, and orders one or both")
        if not isinstance(before, bool) or not isinstance(question, str):
            raise SpecError("classifier 'belief': before must be true or false, and question a text")
        self._labels = ascii_uppercase[: len(self.scale)] if labels == "letters" else [*map(str, self.scale.points)]
        begun = {label[:1] + label[1:2] * label.startswith("-") for label in self._labels}
        if len(begun) < len(self.scale):
            raise SpecError(
                f"classifier 'belief': labels of {len(self.scale)} points must all begin differently, because it reads "
                f"only the first token: {labels} do not; letters do on scales of up to 26 points"
            )
        self.before, self._question, self.needs_claim = before, question.strip(), not question.strip()
        self._options = {"labels": labels, "orders": orders, "before": before, "wording": WORDING}
        self._options |= {"question": self._question} if self._question else {}

    @property
    def longest(self) -> str:
        """A reply that leads to the maximum number of calls, for forecasts."""
        return json.dumps({"temperature": 1, "top": [[each, -1] for each in (self._labels[-1], "-", _NEXT[0])]})

    async def rate(self, ask: Ask, item: Item) -> OpinionEstimates:
        """Read the opinion of an item's author.

        Raises
        ------
        MeasurementError
            If the item has no fork of its author's context, or the model does not continue after a sign.
        """
        check_items([item], self)
        numbers = count(1)

        async def tokens(prompt: Prompt) -> str:
            """The most likely first tokens; empty if a filter withheld the reply."""
            reply = await ask(str(CallName("judge", next(numbers))), prompt, parse=take_as_is)
            return reply.text if reply.status == "answered" else ""

        orders = (1, -1) if self._options["orders"] == "both" else (1,)
        read = np.mean([[await self._read(tokens, item, order)] for order in orders], axis=0)
        return OpinionEstimates(self.scale, read[:, :-1], read[:, -1], read[:, :-1] @ self.scale.values)

    async def _read(self, tokens: Callable[[Prompt], Awaitable[str]], item: Item, order: int) -> np.ndarray:
        """Probabilities of the points, lowest first, then the off-scale mass, with the points listed in an order."""
        lettered, claim = self._options["labels"] == "letters", item.claim
        labels = self._labels if lettered else self._labels[::order]
        told = {"question": self._question, "claim": claim, "lettered": lettered}
        choices = list(zip(labels, self.scale.labels[::order], strict=True))
        asked = filled("opinionsim.classifiers", "belief_question.txt", choices=choices, **told)
        prompt = _with(item, printable(asked.strip()))
        first, negative = await tokens(prompt), [label[1:] if label[0] == "-" else "" for label in labels]
        if not first:
            return np.full(len(labels) + 1, np.nan)
        found = [first_token_shares(first, labels, plain=plain) for plain in (False, True)]
        if any(negative) and first_token_shares(first, "-", plain=True)[0]:
            tested = await tokens(Prompt.of(_BEGUN))
            after = await tokens(prompt.then(ChatMessage("assistant", "-")))
            if not tested or not after or np.diff(first_token_shares(tested, _NEXT))[0] >= 0:
                raise MeasurementError(
                    "the model does not continue a started answer, which numbers with a sign require; set labels: "
                    "letters for belief"
                )
            for plain in (False, True):
                sign = first_token_shares(first, "-", plain=plain)
                found[plain] += sign * first_token_shares(after, negative, plain=plain)
        on, plainly = found
        with np.errstate(invalid="ignore"):
            return np.append((on / on.sum())[::order], max(0.0, 1 - plainly.sum()))

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Raise an error, because a text alone does not contain its author's context.

        Raises
        ------
        MeasurementError
            If there is any item.
        """
        if items:
            raise MeasurementError("classifier 'belief' asks the authors of texts, so it codes only texts of runs")
        return OpinionEstimates.from_points(self.scale, [])


def _with(item: Item, asked: str) -> Prompt:
    """The author's context with the question: a message of its own, or the end of one without an answer."""
    if item.fork is None:
        raise MeasurementError("classifier 'belief' needs the context of an author, so it codes only texts of runs")
    if item.fork.before is not None and item.fork.message is not None and item.fork.message.role == "user":
        return item.fork.before.then(ChatMessage("user", f"{item.fork.message.content}\n\n{asked}"))
    return item.fork.then(ChatMessage("user", asked))
