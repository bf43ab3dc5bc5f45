"""The engine carries out the turns of a schedule; of those that are ready, the longest remaining path goes first."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from opinionsim.engine._contracts import Actor, Rate, TurnCalls, Witness
from opinionsim.engine._outcomes import TurnOutcomes
from opinionsim.engine._turn_graph import Node, TurnGraph
from opinionsim.errors import ScheduleError
from opinionsim.foundation.forms import TEXT
from opinionsim.messages import ChatMessage, Message, Parse, Parsing, Reply, Speech
from opinionsim.registry import RAISED, ordinary
from opinionsim.schedules import PARTICIPANT, AdaptiveSchedule, AnySchedule, Turn, check_schedule, n_members


def relayed(turn: Turn, received: Sequence[Message], role: str) -> Message:
    """The message of a turn that passes on the only message that it reads.

    Raises
    ------
    ScheduleError
        If the turn received no message or several.
    """
    if len(received) != 1:
        raise ScheduleError(f"turn {turn.index} ({turn.act}) passes on one message, but received {len(received)}")
    return received[0]._replace(agent=turn.agent, role=role, act=turn.act)


class Engine:
    """Carries out one schedule with the given actors.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        Yields the turns; a static schedule has a method `turns`.
    actors : sequence of Actor
        By agent number: participants, then the schedule's others.
    calls : TurnCalls
        Answers the actors' questions.
    rate : callable, optional
        ``await rate(turn, message, instrument, about)`` returns the measured opinion for an adaptive schedule.
    seats : collection of int
        Agents played by people. Their turns may wait for long; they follow each other and do not count towards
        `most`.
    horizon : int or None
        The last step whose turns may start; :meth:`allow` changes it. None lets all turns start.
    most : int or None
        Maximum number of turns under way, >= 1, because each keeps its prompt in memory; None sets no limit.
    witness : Witness or None
        Records each published message, and when an adaptive schedule moves on.

    Attributes
    ----------
    graph : TurnGraph
        The turns so far, and the messages that they have published.
    error : BaseException or None
        The error that stopped the run; None if there is none.
    completed : int
        The last complete step: every turn up to it is done, except background turns. -1 before the first.

    Notes
    -----
    :meth:`start` starts turns. :meth:`wait_step` and :meth:`wait` wait for results and raise the error that stopped
    the run. :meth:`stop` starts no further turns and lets calls in flight finish; :meth:`cancel` ends everything at
    once.
    """

    def __init__(
        self,
        schedule: AnySchedule,
        actors: Sequence[Actor],
        calls: TurnCalls,
        *,
        rate: Rate | None = None,
        seats: Collection[int] = (),
        horizon: int | None = None,
        most: int | None = None,
        witness: Witness | None = None,
    ) -> None:
        self.schedule = check_schedule(schedule)
        if len(actors) != n_members(schedule):
            others = f" and others ({', '.join(schedule.others)})" if schedule.others else ""
            raise ScheduleError(
                f"the schedule needs {schedule.n_agents} participants{others}; got {len(actors)} actors"
            )
        self.actors = actors
        self.error: BaseException | None = None
        self.completed = -1
        self._roles = (*(PARTICIPANT,) * schedule.n_agents, *schedule.others)
        #: Readings of acts without a `parse`: the same in all their turns.
        self._plain = {
            name: Parsing(None, (), act.attempts, act.after) for name, act in schedule.acts.items() if act.parse is None
        }
        self._calls = calls
        self._seats = frozenset(seats)
        self._horizon = horizon
        self.graph = TurnGraph(schedule, actors, self._seats)
        self._nodes = self.graph.nodes
        self._outcomes = TurnOutcomes(schedule, self._nodes, rate)
        self._open: dict[int, int] = {}
        self._held: list[tuple[int, Node]] = []
        self._ready_turns: list[tuple[float, int, Node]] = []
        self._under_way = 0
        self._most = most
        self._witness = witness
        self._tasks: set[asyncio.Task[None]] = set()
        self._exhausted = False
        self._stopping = False
        self._step_waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._moved = asyncio.Event()

    # -- life cycle ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the schedule and start every ready turn; needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        if isinstance(self.schedule, AdaptiveSchedule):
            self._spawn(self._pull(self.schedule.decide(self._outcomes)))
            return
        try:
            for turn in self.schedule.turns():
                self._take(turn)
        except RAISED as error:
            self.stop(ordinary(error))
            raise ordinary(error) from error.__cause__
        self._exhausted = True
        self.graph.set_priorities()
        self._ready(node for node in self._nodes if node.waiting == 0)
        self._advance()

    def allow(self, horizon: int | None) -> None:
        """Let turns up to step `horizon` start; None lets all turns start."""
        self._horizon = horizon
        allowed = []
        while self._held and (horizon is None or self._held[0][1].turn.step <= horizon):
            allowed.append(heapq.heappop(self._held)[1])
        self._launch(allowed)
        self._moved.set()

    async def wait_step(self, step: int) -> None:
        """Wait until every turn up to `step` is done.

        Raises
        ------
        OpinionSimError
            The error that stopped the run before the step was complete.
        """
        if self.error is None and not self._complete(step):
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._step_waiters.append((step, waiter))
            await waiter
        if not self._complete(step) and self.error is not None:
            raise self.error

    async def wait(self) -> None:
        """Wait until every turn is done and no task is left; raises the error that stopped the run."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.error is not None:
            raise self.error

    def stop(self, error: BaseException) -> None:
        """Start no further turn; calls in flight finish. If called repeatedly, the engine keeps the first error."""
        if self.error is None:
            self.error = error
        self._stopping = True
        self._calls.stop()
        self._moved.set()
        self._outcomes.stop()
        self._wake()

    async def cancel(self) -> None:
        """End everything at once and wait until it has ended."""
        self.stop(asyncio.CancelledError())
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def let_go(self) -> None:
        """Forget witness and rate after the run; both refer to the engine, and the cycle would keep it in memory."""
        self._witness = self._outcomes.rate = None

    # -- taking turns in ---------------------------------------------------------------------------------

    async def _pull(self, turns: AsyncIterator[Turn]) -> None:
        """Take turns from an adaptive schedule as it decides them, one step past the horizon at most."""
        try:
            async for turn in turns:
                if self._witness is not None:
                    self._witness.moved()
                node = self._take(turn)
                # The longest remaining path is not known; the number of remaining steps stands in for it.
                node.priority = node.rest = float(self.schedule.steps - turn.step + 1)
                if node.waiting == 0:
                    self._ready([node])
                self._advance()
                while self._horizon is not None and turn.step > self._horizon and not self._stopping:
                    self._moved.clear()
                    await self._moved.wait()
                if self._stopping:
                    return
        finally:
            if isinstance(turns, AsyncGenerator):
                await turns.aclose()
        if self._witness is not None:
            self._witness.moved()
        self._exhausted = True
        self._advance()

    def _take(self, turn: Turn) -> Node:
        """Take a turn in, and count it towards its step."""
        node = self.graph.take(turn)
        if not node.spec.background:
            self._open[turn.step] = self._open.get(turn.step, 0) + 1
        return node

    # -- carrying turns out ------------------------------------------------------------------------------

    def _ready(self, nodes: Iterable[Node]) -> None:
        """Start turns whose dependencies are complete; keep back those beyond the horizon."""
        allowed = []
        for node in nodes:
            if self._horizon is not None and node.turn.step > self._horizon:
                heapq.heappush(self._held, (node.turn.index, node))
            else:
                allowed.append(node)
        self._launch(allowed)

    def _launch(self, nodes: list[Node]) -> None:
        """Queue turns that may start; turns at seats start at once."""
        for node in nodes:
            if node.turn.agent not in self._seats:
                heapq.heappush(self._ready_turns, (-node.priority, node.turn.index, node))
            elif not self._stopping:
                self._spawn(self._perform(node))
        self._fill()

    def _fill(self) -> None:
        """Start queued turns, the longest remaining path first: the first to ask gets the free slot."""
        while self._ready_turns and not self._stopping and (self._most is None or self._under_way < self._most):
            self._under_way += 1
            self._spawn(self._perform(heapq.heappop(self._ready_turns)[2]))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Forget a task that has ended; its error, if any, stops the run."""
        self._tasks.discard(task)
        if task.cancelled():
            if not self._stopping:
                self.stop(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.stop(ordinary(error))

    async def _perform(self, node: Node) -> None:
        turn, witness = node.turn, self._witness
        try:
            if witness is not None and witness.full:
                await witness.room()
            received = self.graph.received(turn)
            if turn.reads and not received and node.spec.unread == "skip":
                self._publish(node, Message("", "", turn.agent, "skipped", self._roles[turn.agent], turn.act))
            elif not node.spec.draws:
                self._publish(node, relayed(turn, received, self._roles[turn.agent]))
            else:
                spec = node.spec
                seated = turn.agent in self._seats
                reading = None if seated else self._plain.get(spec.name)
                if reading is None:
                    shown, form = tuple(received), TEXT
                    if seated:
                        shown = tuple(each._replace(author="") for each in shown) if spec.blind else shown
                        form = spec.form_for(shown)
                    reading = Parsing(spec.parse, shown, spec.attempts, spec.after, spec.formal, spec.closed, form)
                await node.actor.act(turn, received, partial(self._ask, node, reading), partial(self._publish, node))
        finally:
            self._under_way -= turn.agent not in self._seats
            if self._ready_turns:
                self._fill()
        if node.message is None:
            raise ScheduleError(f"turn {turn.index} ({turn.act}) ended without publishing a message")
        node.done = True
        for follower in node.followers:
            if follower.spec.memory == "fork":
                follower.actor = follower.actor.fork()
        self._release(node.followers)
        if node.spec.background:
            return
        self._open[turn.step] -= 1
        if not self._open[turn.step]:
            self._advance()

    def _ask(
        self,
        node: Node,
        reading: Parsing,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        parse: Parse | None = None,
        dropped: int = 0,
        speech: Speech | None = None,
    ) -> Awaitable[Reply]:
        """Ask on behalf of a turn; once it has published, only its agent's next turns wait for its calls."""
        priority = node.priority if node.message is None else node.rest
        if parse is not None or speech is not None:
            received = reading.received or tuple(self.graph.received(node.turn))
            reading = reading._replace(parse=parse or reading.parse, received=received, speech=speech)
        return self._calls.ask(node.turn, call, messages, reading=reading, priority=priority, dropped=dropped)

    def _publish(self, node: Node, message: Message) -> None:
        if node.message is not None:
            raise ScheduleError(f"turn {node.turn.index} ({node.turn.act}) published twice")
        node.message = message = message._replace(turn=node.turn.index)
        if self._witness is not None:
            self._witness.published(node.turn, message)
        if node.published is not None and not node.published.done():
            node.published.set_result(message)
        self._release(node.readers)

    def _release(self, dependents: list[Node]) -> None:
        ready = []
        for node in dependents:
            node.waiting -= 1
            if node.waiting == 0:
                ready.append(node)
        if ready:
            self._ready(ready)

    # -- steps -------------------------------------------------------------------------------------------

    def _complete(self, step: int) -> bool:
        return self.completed >= step or (self._exhausted and self.completed >= self.schedule.steps)

    def _advance(self) -> None:
        """Move `completed` as far as it goes, and wake the callers that wait for a step."""
        last = self.schedule.steps if self._exhausted else (self._nodes[-1].turn.step - 1 if self._nodes else -1)
        before = self.completed
        while self.completed < last and not self._open.get(self.completed + 1, 0):
            self.completed += 1
            self._open.pop(self.completed, None)
        if self.completed != before:
            self._wake()

    def _wake(self) -> None:
        waiting = []
        for step, waiter in self._step_waiters:
            if self.error is not None or self._complete(step):
                if not waiter.done():
                    waiter.set_result(None)
            else:
                waiting.append((step, waiter))
        self._step_waiters = waiting
