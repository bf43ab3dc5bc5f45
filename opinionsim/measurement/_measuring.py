"""Applies the instruments of a run to its texts; every estimate is made here."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, takewhile
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from opinionsim.classifiers import DECIDED, RECORDED, AskingClassifier, Context, Item, asks, parse_closed
from opinionsim.errors import MeasurementError, ModelCallError, OpinionSimError, StoreError
from opinionsim.llm import CallName, Endpoint, Entry, EntryKey, Journal, RunCalls
from opinionsim.measurement._instruments import STANCE, Author, Instrument, OpinionKey, Reading, Text, check_instruments
from opinionsim.measurement._queues import Queues, estimates_of, failed
from opinionsim.messages import ChatMessage, Parse, Parsing, Reply, numbers_in, text_id
from opinionsim.metrics import SELF_REPORT
from opinionsim.opinions import OpinionScale
from opinionsim.registry import RAISED
from opinionsim.topics import Claim

#: Questions of judges under way at a time for each call slot.
_ASKED_PER_SLOT = 4

_T = TypeVar("_T")


class _Shared:
    """Work that several callers may wait for: it is cancelled when the last of them has given up, and not before."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(work)
        # Retrieve its error, since all callers that would have raised it may have been cancelled.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._waiting = 0

    @property
    def over(self) -> bool:
        """Whether it is too late to wait for it."""
        return self._task.done() or self._task.cancelling() > 0

    async def wait(self) -> None:
        """Wait until the work has ended; raises its error."""
        self._waiting += 1
        try:
            await asyncio.shield(self._task)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._task.cancel()
                await asyncio.wait([self._task])


class Measuring:
    """Applies the instruments of one run to its texts.

    Parameters
    ----------
    instruments : sequence of Instrument
        The instruments of the run.
    queues : Queues
        Queues shared with other runs.
    calls : RunCalls
        The calls of the run. Judges ask through it, and its journal keeps the opinions that a schedule awaited.
    claim : Claim or None
        What the texts are about.
    authors : sequence of Author
        The author for each agent, for instruments with context.

    Attributes
    ----------
    estimates : dict of OpinionKey to Reading
        The estimates made so far.
    portion : int
        Number of opinions of a finished run that are coded between two writes.

    Raises
    ------
    SpecError
        As :func:`check_instruments`.
    """

    portion: ClassVar[int] = 500

    def __init__(
        self,
        instruments: Sequence[Instrument],
        queues: Queues,
        calls: RunCalls,
        claim: Claim | None,
        authors: Sequence[Author] = (),
    ) -> None:
        check_instruments(instruments, claim)
        self.instruments = tuple(instruments)
        self.estimates: dict[OpinionKey, Reading] = {}
        self._queues = queues
        self._calls = calls
        if calls.prompts is None and any(each.asks_author for each in self.instruments):
            calls.prompts = {}
        self._claim = claim
        self._authors = authors
        #: Estimates being made, for as long as anybody waits for them.
        self._under_way: WeakValueDictionary[OpinionKey, _Shared] = WeakValueDictionary()

    def instrument(self, variable: str, *, pairs: bool = False) -> Instrument | None:
        """The first instrument of a variable that judges single texts, or pairs of them; None if there is none."""
        own = (each for each in self.instruments if each.variable == variable and bool(each.about) == pairs)
        return next(own, None)

    def stance(self, turn: int) -> Reading | None:
        """Estimate of a turn by the first instrument of stance; None if it has not coded the turn."""
        instrument = self.instrument(STANCE)
        return None if instrument is None else self.estimates.get(OpinionKey(instrument.instrument_id, turn))

    async def code_all(self, texts: Iterable[Text], text_of: Callable[[int], Text], *, urgent: bool = False) -> None:
        """Code some texts with all instruments that read them."""
        some = list(texts)
        for instrument in self.instruments:
            keys = [key for text in some for key in instrument.keys(text)]
            await self.code(instrument, keys, text_of, urgent=urgent)

    async def code(
        self,
        instrument: Instrument,
        keys: Iterable[tuple[int, int | None]],
        text_of: Callable[[int], Text],
        *,
        urgent: bool = False,
        priority: float = 0.0,
    ) -> list[tuple[int, int | None, Reading]]:
        """Estimates of an instrument; this object makes each estimate once.

        Parameters
        ----------
        instrument : Instrument
            The instrument.
        keys : iterable of (int, int or None)
            Turns, each with the turn whose text is judged together with it.
        text_of : callable
            The text of a turn.
        urgent : bool
            Whether to code at once, without waiting for a batch to fill.
        priority : float
            Priority of a judge's questions; larger ones go first. By default, they come after every turn.

        Returns
        -------
        list of (int, int or None, Estimate)
            In the order of the keys.

        Raises
        ------
        MeasurementError, ModelCallError, BudgetExceeded, JournalMismatch
            The error of the first text that could not be coded; the estimates of the others are kept.
        """
        wanted = [OpinionKey(instrument.instrument_id, *key) for key in keys]
        for key in wanted:
            if (
                key not in self.estimates
                and (known := self._told(instrument, text_of(key.turn), key.about)) is not None
            ):
                self.estimates[key] = known
        left = [key for key in wanted if key not in self.estimates]
        if asks(instrument.classifier):
            # Each by itself, equal texts too: a reply is a draw.
            await _each(left, partial(self._settle, instrument, text_of, urgent, priority), self._most_questions)
        elif own := [key for key in left if self._pending(key) is None]:
            await self._share(own, self._computed(instrument, own, text_of, urgent)).wait()
        for key in left:
            await self._settle(instrument, text_of, urgent, priority, key)
        return [(key.turn, key.about, self.estimates[key]) for key in wanted]

    def _told(self, instrument: Instrument, text: Text, about: int | None) -> Reading | None:
        """Estimate of a text that came with a rating, is no answer, or a closed one; None where it must be read."""
        if instrument.asks_author:
            # Its author is asked anew, so that it does not matter what became of the text.
            asked = text.site.index in (self._calls.prompts or ()) and self._tokens_of(text.site.agent)
            return None if asked else _unread(instrument.scale)
        if instrument.classifier.name != RECORDED:
            return _told(instrument, text, about)
        entry = self._calls.journal.lookup(imported_rating(text.site.index, instrument.variable))
        if entry is None:
            return _unread(instrument.scale)
        return _estimate(instrument.scale, float(entry.text))

    async def _settle(
        self, instrument: Instrument, text_of: Callable[[int], Text], urgent: bool, priority: float, key: OpinionKey
    ) -> None:
        """Wait until an estimate is there; if nobody is making it, make it."""
        if key in self.estimates:
            return
        pending = self._pending(key)
        if pending is None and asks(instrument.classifier):
            pending = self._share([key], self._judged(instrument.classifier, instrument, key, text_of, priority))
        elif pending is None:
            pending = self._share([key], self._computed(instrument, [key], text_of, urgent))
        await pending.wait()

    def _pending(self, key: OpinionKey) -> _Shared | None:
        """The work on an estimate that can still be waited for; None where there is none."""
        shared = self._under_way.get(key)
        return None if shared is None or shared.over else shared

    def _share(self, keys: Sequence[OpinionKey], work: Coroutine[Any, Any, None]) -> _Shared:
        """Begin to make estimates."""
        shared = _Shared(work)
        self._under_way.update((key, shared) for key in keys)
        return shared

    @property
    def _most_questions(self) -> int:
        """Questions of a judge that are under way at a time."""
        return _ASKED_PER_SLOT * self._calls.limit

    async def _computed(
        self, instrument: Instrument, keys: Sequence[OpinionKey], text_of: Callable[[int], Text], urgent: bool
    ) -> None:
        items = [self._item(instrument, text_of(key.turn), key.about, text_of) for key in keys]
        found = await self._queues.of(instrument).code(items, urgent=urgent)
        self.estimates.update(zip(keys, found, strict=True))

    async def rating(
        self, text: Text, variable: str, text_of: Callable[[int], Text], priority: float = 0.0, about: int | None = None
    ) -> float:
        """The opinion of a text, or of a pair of texts, that a schedule acts on.

        The journal keeps it, so a resumed run acts in the same way.

        Raises
        ------
        StoreError
            If the rating in the journal belongs to another text.
        """
        instrument, journal = self.instrument(variable, pairs=about is not None), self._calls.journal
        if instrument is None:
            what = "no instrument" if about is None else "no instrument of pairs"
            raise MeasurementError(f"the schedule acts on {variable!r}, but {what} of the run measures it")
        known = recorded_rating(journal, text.site.index, instrument.instrument_id, text.text, about)
        if known is not None:
            return known
        ((_, _, estimate),) = await self.code(
            instrument, [(text.site.index, about)], text_of, urgent=True, priority=priority
        )
        # Another caller that waited for the same text may have recorded it; the first entry under a key stays.
        site = text.site
        key = _rating_key(site.index, instrument.instrument_id, about)
        if journal.lookup(key) is None:
            journal.append(
                Entry(
                    key,
                    site.step,
                    site.agent,
                    site.act,
                    text_id(text.text),
                    repr(estimate.value),
                    source="instrument",
                    arrived_at=time.time(),
                )
            )
        return estimate.value

    def _item(self, instrument: Instrument, text: Text, about: int | None, text_of: Callable[[int], Text]) -> Item:
        context = None
        if instrument.context:
            author = self._authors[text.site.agent] if text.site.agent < len(self._authors) else Author()
            context = Context(text.received, author.persona, author.assigned_opinion)
        prompt = (self._calls.prompts or {}).get(text.site.index)
        fork = None if prompt is None else instrument.fork(text.kind, text.text, prompt, shown=bool(text.received))
        second = None if about is None else self._words(instrument, text_of(about))
        return Item(self._words(instrument, text), self._claim, second, context, fork)

    def _words(self, instrument: Instrument, text: Text) -> str:
        """What an instrument reads of a text: what readers got, or the whole reply of which that was left."""
        for draw in count(1) if instrument.whole else ():
            call = str(CallName("reply", draw))
            tried = (self._calls.journal.lookup(EntryKey(text.site.index, call, attempt)) for attempt in count())
            entries = list(takewhile(lambda entry: entry is not None, tried))
            if not entries:
                break
            for entry in entries:
                if entry is not None and entry.taken and text.text in entry.left:
                    return entry.text
        return text.text

    def _tokens_of(self, agent: int) -> Endpoint | None:
        """Where an agent's model is asked for the probabilities of first tokens; None where no model answers."""
        everybody = self._calls.answering
        asked = everybody if isinstance(everybody, Endpoint) else everybody[agent]
        if not isinstance(asked, Endpoint) or not hasattr(asked.client, "tokens"):
            return None
        return replace(asked, client=asked.client.tokens, max_tokens=1)

    async def _judged(
        self,
        classifier: AskingClassifier,
        instrument: Instrument,
        key: OpinionKey,
        text_of: Callable[[int], Text],
        priority: float,
    ) -> None:
        text = text_of(key.turn)
        item, site = self._item(instrument, text, key.about, text_of), text.site

        def ask(
            call: str, messages: Iterable[ChatMessage], *, parse: Parse | None = None, dropped: int = 0, **_: Any
        ) -> Awaitable[Reply]:
            named = str(CallName.coding("judge", key.instrument_id, key.about, call))
            # Token probabilities have a form that no refusal has.
            reading, endpoint = Parsing(parse, formal=instrument.asks_author), classifier.endpoint
            endpoint = endpoint or self._tokens_of(site.agent)
            return self._calls.ask(
                site, named, messages, reading=reading, priority=priority, dropped=dropped, endpoint=endpoint
            )

        try:
            found = await classifier.rate(ask, item)
            (self.estimates[key],) = estimates_of(found)
        except ModelCallError as error:
            # The error names the place of the text, but the judge failed and not the author.
            raise ModelCallError(
                f"the judge of {instrument.variable!r} (classifier {classifier.name!r}) failed on the text of {error}"
            ) from error
        except OpinionSimError:
            raise
        except RAISED as error:  # a classifier of the user's own may raise anything
            raise failed(classifier, error) from error


def _told(instrument: Instrument, text: Text, about: int | None) -> Reading | None:
    """Estimate of a text that is no answer or a closed one; None where a classifier must read it.

    A text that was cut off is read as it stands; tables decide whether it counts.
    """
    scale = instrument.scale
    if text.status in ("answered", "truncated") and instrument.classifier.name == DECIDED:
        said = numbers_in(text.text).get(-1 if about is None else about, {}).get(instrument.variable, math.nan)
        return _estimate(scale, said)
    if text.status not in ("answered", "truncated"):
        return _unread(scale)
    if text.kind != SELF_REPORT:
        return None
    point = parse_closed(text.text, scale)
    if point is None:
        return Reading(math.nan, (math.nan,) * len(scale), 1.0)
    return _estimate(scale, float(point))


def _unread(scale: OpinionScale) -> Reading:
    """What is said of a text that nobody reads."""
    return Reading(math.nan, (math.nan,) * len(scale), math.nan)


def _estimate(scale: OpinionScale, number: float) -> Reading:
    """The estimate of a text of which a number is known; NaN where it has none, and for a number between points."""
    known = math.isnan(number) or number in scale.points
    return Reading(number, tuple(float(each == number) if known else math.nan for each in scale.points), 0.0)


def imported_rating(turn: int, variable: str) -> EntryKey:
    """Key of the journal entry for a person's own rating of a variable, which came with the text of a turn."""
    return EntryKey(turn, str(CallName("rating", instrument=variable)), 0)


def _rating_key(turn: int, identity: str, about: int | None) -> EntryKey:
    return EntryKey(turn, str(CallName.coding("rating", identity, about)), 0)


def recorded_rating(journal: Journal, turn: int, identity: str, text: str, about: int | None = None) -> float | None:
    """The recorded opinion that a schedule acted on; None if there is none.

    Parameters
    ----------
    journal : Journal
        The journal of the run.
    turn : int
        The turn whose text was rated.
    identity : str
        Identity of the instrument.
    text : str
        That text, as it is now.
    about : int, optional
        The turn whose text was judged together with it.

    Raises
    ------
    StoreError
        If the rating belongs to another text.
    """
    entry = journal.lookup(_rating_key(turn, identity, about))
    if entry is None:
        return None
    if entry.prompt_hash != text_id(text):
        raise StoreError(f"turn {turn}: the stored rating belongs to another text")
    return float(entry.text)


async def _each(items: Sequence[_T], one: Callable[[_T], Awaitable[None]], most: int) -> None:
    """Await `one` for each item, at most `most` at a time; raises the first error when those under way have ended."""
    queue = iter(items)
    errors: list[BaseException] = []

    async def work() -> None:
        for item in queue:
            if errors:
                return
            try:
                await one(item)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                errors.append(error)

    await asyncio.gather(*(work() for _ in range(min(len(items), most))))
    if errors:
        raise errors[0]
