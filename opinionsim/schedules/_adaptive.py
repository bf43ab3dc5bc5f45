"""Schedules in which measured opinions decide who reads whom: meetings, filters, rewiring, feeds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import Network
from opinionsim.schedules._acts import REVIEW, WRITE
from opinionsim.schedules._dyadic import _neighbours
from opinionsim.schedules._turns import AnySchedule, Outcomes, Schedule, Turn, named

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["BoundedConfidenceDyads", "Feed", "RewiringDyads", "SimilarityDyads", "TieChange", "tie_changes"]


class _Opinions:
    """What agents are known to think: the last measured opinion of each, the assigned one until then.

    A measurement is awaited when it is first needed, and not before, so that turns of agents that have nothing to
    do with each other run side by side.
    """

    def __init__(self, assigned: np.ndarray, outcomes: Outcomes) -> None:
        self._last = assigned.copy()
        self._outcomes = outcomes
        self._unread: dict[int, list[int]] = {}

    def expect(self, agent: int, review: int) -> None:
        """A turn is going to say what the agent thinks."""
        self._unread.setdefault(agent, []).append(review)

    async def _update(self, agents: Sequence[int]) -> None:
        for agent in agents:
            for review in self._unread.pop(agent, ()):
                measured = await self._outcomes.opinion(review)
                if not np.isnan(measured):
                    self._last[agent] = measured

    async def distances(self, agent: int, others: np.ndarray) -> np.ndarray:
        """Of `others`, shape (m,), from `agent`; one that is not known is the mean of those that are, or 0."""
        await self._update((agent, *others.tolist()))
        found = np.abs(self._last[others] - self._last[agent])
        known = ~np.isnan(found)
        found[~known] = found[known].mean() if known.any() else 0.0
        return np.asarray(found)

    async def distance(self, agent: int, other: int, among: np.ndarray) -> float:
        """Of `other` from `agent`, as :meth:`distances` of `among`; awaits no third agent unless it has to."""
        await self._update((agent, other))
        if not np.isnan(self._last[[agent, other]]).any():
            return float(abs(self._last[other] - self._last[agent]))
        if np.isnan(self._last[agent]):
            return 0.0
        return float((await self.distances(agent, among))[among == other][0])


def _assigned(opinions: Sequence[float], n_agents: int) -> np.ndarray:
    """Where agents start, one number each."""
    found = np.asarray(opinions, dtype=float)
    if found.shape != (n_agents,):
        raise SpecError(f"opinions must give one number for each of the {n_agents} agents; got {opinions!r:.80}")
    return found


def _require(field: str, value: float, *, most: float = np.inf, above: bool = False) -> None:
    """Raise a SpecError unless a parameter is a finite number in its range."""
    if not (np.isfinite(value) and 0 <= value <= most and (value > 0 or not above)):
        wanted = "above 0" if above else "of at least 0" if most == np.inf else f"from 0 to {most:g}"
        raise SpecError(f"interaction.{field} must be a number {wanted}; got {value}")


def _require_name(field: str, value: str, valid: Sequence[str]) -> None:
    if value not in valid:
        raise SpecError(f"interaction.{field}: unknown {value!r}; valid: {', '.join(valid)}")


def _dyad(index: int, step: int, speaker: int, listener: int) -> tuple[Turn, Turn]:
    """A post and its review."""
    return Turn(index, step, speaker, "write"), Turn(index + 1, step, listener, "review", (index,))


def _dyads(pairs: Sequence[tuple[int, int]]) -> Iterator[Turn]:
    """One dyad a step, of (speaker, listener)."""
    for t, (speaker, listener) in enumerate(pairs):
        yield from _dyad(2 * t, t + 1, speaker, listener)


class _Adaptive(Schedule):
    """What all have in common: a network, a length, assigned opinions, a seed."""

    acts = named(WRITE, REVIEW)
    needs: Sequence[str] = ("stance",)
    #: Whether steps may go by without a turn.
    skips: ClassVar[bool] = False

    def __init__(self, network: Network | nx.Graph | int, steps: int, opinions: Sequence[float], seed: int) -> None:
        self._neighbours = _neighbours(network, steps)
        self.n_agents = self._neighbours.n
        self.steps = steps
        self._opinions = _assigned(opinions, self.n_agents)
        self._seed = seed


class SimilarityDyads(_Adaptive):
    """Dyads whose speaker is chosen by similarity of opinion: an adaptive schedule.

    In each step a listener i is drawn uniformly among the agents that hear somebody, and a speaker j among
    those it hears with probability proportional to exp(-strength * d_ij), or to max(d_ij, floor)^-strength with
    ``form="power"``, the algorithmic bias of Sirbu et al. 2019 (doi:10.1371/journal.pone.0213246). d_ij is
    |o_i - o_j|, where o is an agent's last measured opinion, the assigned one until then. The draw for a step
    awaits only the opinions it needs.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    strength : float
        >= 0, per scale unit, or the exponent of the power law; 0 chooses uniformly.
    opinions : sequence of float, length N
        Where agents start; NaN for an agent assigned none, who counts as far away as the others do on average.
    seed : int
        Of the draws; the same draws at every call.
    form : {"exponential", "power"}
        How probability falls with distance.
    floor : float
        Least distance the power law tells apart, in scale units, above 0; without effect on the exponential form.

    Raises
    ------
    SpecError
        If a parameter is out of its range or the network is not as described.
    """

    FORMS: ClassVar[tuple[str, ...]] = ("exponential", "power")

    def __init__(
        self,
        network: Network | nx.Graph | int,
        steps: int,
        *,
        strength: float,
        opinions: Sequence[float],
        seed: int,
        form: str = "exponential",
        floor: float = 0.5,
    ) -> None:
        _require("strength", strength)
        _require("floor", floor, above=True)
        _require_name("form", form, self.FORMS)
        super().__init__(network, steps, opinions, seed)
        self.strength = strength
        self.form = form
        self.floor = floor

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Turns as for :class:`Dyads`, each pair drawn once the opinions it rests on are measured."""
        rng = np.random.default_rng(self._seed)
        listeners = rng.choice(self._neighbours.can_hear, self.steps).tolist()
        uniforms = rng.random(self.steps)
        opinions = _Opinions(self._opinions, outcomes)
        for t, listener in enumerate(listeners):
            sources = self._neighbours.sources(listener)
            far = await opinions.distances(listener, sources)
            if self.form == "power":
                far = np.log(np.maximum(far, self.floor))
            cumulative = np.cumsum(np.exp(-self.strength * (far - far.min())))
            speaker = int(sources[np.searchsorted(cumulative, uniforms[t] * cumulative[-1], side="right")])
            for turn in _dyad(2 * t, t + 1, speaker, listener):
                yield turn
            opinions.expect(listener, 2 * t + 1)

    def outline(self) -> Iterator[Turn]:
        """As many dyads, dealt out to the agents one after another."""
        n = self.n_agents
        return _dyads([(t % n, (t + 1) % n) for t in range(self.steps)])


class BoundedConfidenceDyads(_Adaptive):
    """Dyads in which nobody reads what is too far from its own opinion: an adaptive schedule.

    Each step draws an ordered pair (speaker, listener) as :class:`Dyads` does. With ``choose="drawn"`` they meet if
    their opinions are no further apart than `confidence`; otherwise the step passes without a turn. With
    ``choose="near"`` the listener reads one of those it hears whose opinions are that near, drawn uniformly; where
    there are none, the step passes. An opinion is the last measured one, the assigned one until then. The filter
    is that of Deffuant et al. 2000 (doi:10.1142/S0219525900000078); what a listener makes of a post is its own.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    confidence : float
        Largest distance at which agents meet, >= 0, in scale units.
    opinions : sequence of float, length N
        Where agents start; NaN for an agent assigned none, who counts as far away as the others that the listener
        hears do on average, and for whom, as a listener, everybody is near.
    seed : int
        Of the draws; the same draws at every call.
    choose : {"drawn", "near"}
        Whether the step keeps the pair it drew, or looks for a speaker who is near.
    strict : bool
        Whether a distance of exactly `confidence` is too far.

    Raises
    ------
    SpecError
        If a parameter is out of its range or the network is not as described.
    """

    skips: ClassVar[bool] = True
    CHOICES: ClassVar[tuple[str, ...]] = ("drawn", "near")

    def __init__(
        self,
        network: Network | nx.Graph | int,
        steps: int,
        *,
        confidence: float,
        opinions: Sequence[float],
        seed: int,
        choose: str = "drawn",
        strict: bool = False,
    ) -> None:
        _require("confidence", confidence)
        _require_name("choose", choose, self.CHOICES)
        super().__init__(network, steps, opinions, seed)
        self.confidence = confidence
        self.choose = choose
        self.strict = strict

    def _pairs(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = self._neighbours.draw_pairs(self.steps, rng).tolist()
        return pairs

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Two turns for a pair that meets, none for one that does not."""
        rng = np.random.default_rng(self._seed)
        pairs, uniforms = self._pairs(rng), rng.random(self.steps).tolist()
        opinions = _Opinions(self._opinions, outcomes)
        index = 0
        for step, ((drawn, listener), uniform) in enumerate(zip(pairs, uniforms, strict=True), 1):
            speaker = await self._speaker(opinions, drawn, listener, uniform)
            if speaker is not None:
                for turn in _dyad(index, step, speaker, listener):
                    yield turn
                opinions.expect(listener, index + 1)
                index += 2

    async def _speaker(self, opinions: _Opinions, drawn: int, listener: int, uniform: float) -> int | None:
        """Whom the listener reads; None for nobody."""
        heard = self._neighbours.sources(listener)
        if self.choose == "drawn":
            return drawn if self._near(await opinions.distance(listener, drawn, heard)) else None
        near = heard[self._near(await opinions.distances(listener, heard))]
        return int(near[int(uniform * len(near))]) if len(near) else None

    def _near(self, distance: np.ndarray | float) -> np.ndarray:
        return np.asarray(distance < self.confidence if self.strict else distance <= self.confidence)

    def outline(self) -> Iterator[Turn]:
        """The pairs as they are drawn, all of which meet: as many turns as there can be."""
        return _dyads(self._pairs(np.random.default_rng(self._seed)))


class TieChange(NamedTuple):
    """A listener has stopped following one agent and follows another from then on."""

    step: int
    """In which it happened, from 1; the next step is the first with the other tie."""
    listener: int
    """Whose tie it is."""
    dropped: int
    """Whom it followed."""
    followed: int
    """Whom it follows instead."""


class RewiringDyads(_Adaptive):
    """Dyads on a network whose ties move away from disagreement: an adaptive schedule.

    Each step draws a tie uniformly, and with it a listener and a speaker it follows, as :class:`Dyads` does. If
    their opinions are further apart than `tolerance`, then with probability `rewire` the listener unfollows the
    speaker and follows another agent instead, and nobody writes; otherwise, and where there is no other agent to
    follow, they meet. An opinion is the last measured one, the assigned one until then. Rewiring to a random
    agent is as in Kozma & Barrat 2008 (doi:10.1103/PhysRevE.77.016102), to a like-minded one as in Holme & Newman 2006
    (doi:10.1103/PhysRevE.74.056108); what a listener makes of a post is its own.

    Parameters
    ----------
    network : Network or networkx graph
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it. A directed one keeps how many agents each
        agent follows. In an undirected one the tie moves as a whole, and with it who hears the listener.
    steps : int
        T >= 0.
    tolerance : float
        Largest distance that is put up with, >= 0, in scale units.
    opinions : sequence of float, length N
        Where agents start; NaN for an agent assigned none, who counts as far away as the others looked at do on
        average, and for whom everybody is near.
    seed : int
        Of the draws; the same draws at every call.
    rewire : float
        Probability in [0, 1] that a listener which may unfollow does so.
    target : {"random", "similar", "friend-of-friend"}
        Whom it may follow instead, drawn uniformly: anybody it does not follow yet; those of them within
        `tolerance`; or those of them that are followed by whom it still follows.

    Raises
    ------
    SpecError
        If a parameter is out of its range, or the network is not as described or complete, so that nobody is left
        to follow.

    Attributes
    ----------
    changes : list of TieChange
        What has moved so far, in order of steps, in the call of :meth:`decide` begun last.

    Notes
    -----
    The number of ties never changes; nobody is ever tied to itself, or twice to the same agent.
    """

    skips: ClassVar[bool] = True
    TARGETS: ClassVar[tuple[str, ...]] = ("random", "similar", "friend-of-friend")

    def __init__(
        self,
        network: Network | nx.Graph,
        steps: int,
        *,
        tolerance: float,
        opinions: Sequence[float],
        seed: int,
        rewire: float = 1.0,
        target: str = "random",
    ) -> None:
        _require("tolerance", tolerance)
        _require("rewire", rewire, most=1.0)
        _require_name("target", target, self.TARGETS)
        super().__init__(network, steps, opinions, seed)
        self.tolerance = tolerance
        self.rewire = rewire
        self.target = target
        self.changes: list[TieChange] = []
        joined = self._neighbours.network
        if joined.complete or len(joined.speakers) == self.n_agents * (self.n_agents - 1):
            raise SpecError("network: a complete network leaves nobody else to follow; give another one")

    def _ties(self) -> list[tuple[int, int]]:
        """(speaker, listener) of every tie before the first step; an undirected one stands once."""
        ties: list[tuple[int, int]] = [
            (speaker, listener) for speaker, listener in self._neighbours.network.edges[0].tolist()
        ]
        return ties

    def _drawn(self, rng: np.random.Generator, n_ties: int) -> list[tuple[int, bool]]:
        """Of each step, the number of a tie, and whether its second agent is the one to speak."""
        ways = 1 if self._neighbours.network.directed else 2
        return [
            (number // ways, number % ways == 1) for number in rng.integers(ways * n_ties, size=self.steps).tolist()
        ]

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Two turns for a pair that meets, none for a tie that moves."""
        rng = np.random.default_rng(self._seed)
        ties = self._ties()
        drawn = self._drawn(rng, len(ties))
        choosy, uniforms = (rng.random(self.steps) < self.rewire).tolist(), rng.random(self.steps).tolist()
        directed = self._neighbours.network.directed
        heard = {agent: set(self._neighbours.sources(agent).tolist()) for agent in range(self.n_agents)}
        opinions = _Opinions(self._opinions, outcomes)
        changes: list[TieChange] = []
        self.changes = changes
        index = 0
        for t, (tie, turned) in enumerate(drawn):
            speaker, listener = ties[tie][::-1] if turned else ties[tie]
            other = None
            if choosy[t] and await self._too_far(opinions, listener, speaker, heard):
                other = await self._other(opinions, listener, speaker, heard, uniforms[t])
            if other is None:
                for turn in _dyad(index, t + 1, speaker, listener):
                    yield turn
                opinions.expect(listener, index + 1)
                index += 2
                continue
            ties[tie] = (listener, other) if turned else (other, listener)
            heard[listener].remove(speaker)
            heard[listener].add(other)
            if not directed:
                heard[speaker].remove(listener)
                heard[other].add(listener)
            changes.append(TieChange(t + 1, listener, speaker, other))

    async def _too_far(self, opinions: _Opinions, listener: int, speaker: int, heard: dict[int, set[int]]) -> bool:
        return await opinions.distance(listener, speaker, np.array(sorted(heard[listener]))) > self.tolerance

    async def _other(
        self, opinions: _Opinions, listener: int, speaker: int, heard: dict[int, set[int]], uniform: float
    ) -> int | None:
        """Whom the listener follows instead of the speaker; None where nobody will do."""
        taken = heard[listener] | {listener}
        if self.target == "friend-of-friend":
            friends = heard[listener] - {speaker}
            fitting = np.array(sorted(set().union(*(heard[friend] for friend in friends)) - taken), dtype=np.int64)
        else:
            fitting = np.setdiff1d(np.arange(self.n_agents), list(taken))
        if self.target == "similar" and len(fitting):
            fitting = fitting[await opinions.distances(listener, fitting) <= self.tolerance]
        return int(fitting[int(uniform * len(fitting))]) if len(fitting) else None

    def outline(self) -> Iterator[Turn]:
        """The ties as they are drawn, none of which moves: as many turns as there can be."""
        ties = self._ties()
        drawn = self._drawn(np.random.default_rng(self._seed), len(ties))
        return _dyads([ties[tie][::-1] if turned else ties[tie] for tie, turned in drawn])


def tie_changes(schedule: AnySchedule) -> Sequence[TieChange]:
    """How the network of a schedule has changed so far, in order of steps; none for one whose ties stay.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        One that is or has been carried out; probes around it make no difference.
    """
    changes: Sequence[TieChange] = getattr(schedule, "changes", ())
    return changes


class Feed(_Adaptive):
    """A feed of posts, ranked for whoever reads it: an adaptive schedule.

    Before the first step (step 0) every agent writes a post. In each step a reader i is drawn uniformly among the
    agents that hear somebody. It is shown the latest post of up to `posts` of the agents it hears, the highest ranked
    first, in one ``review``, and then writes a post of its own, which takes the place of its last one. With
    ``ranking="similarity"`` the authors come in the order of successive draws without replacement, each with
    probability proportional to exp(-strength * |o_i - o_j|) among the authors j that are left (Plackett-Luce; drawn
    as Gumbel maxima), where o is an agent's last measured opinion from a step before, the assigned one until then.
    A post that is still its author's latest may be shown to a reader again.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    posts : int
        Posts shown at a time at most, >= 1.
    opinions : sequence of float, length N
        Where agents start; NaN for an agent assigned none, who counts as far away as the others do on average.
    seed : int
        Of the draws; the same draws at every call.
    ranking : {"similarity", "recency", "random"}
        What puts an author first: a near opinion; a late post, those of step 0 in random order; or chance. The last
        two await no opinion.
    strength : float
        Of the ranking by similarity, >= 0, per scale unit; 0 ranks at random.

    Raises
    ------
    SpecError
        If a parameter is out of its range or the network is not as described.
    """

    RANKINGS: ClassVar[tuple[str, ...]] = ("similarity", "recency", "random")

    def __init__(
        self,
        network: Network | nx.Graph | int,
        steps: int,
        *,
        posts: int,
        opinions: Sequence[float],
        seed: int,
        ranking: str = "similarity",
        strength: float = 1.0,
    ) -> None:
        if posts < 1:
            raise SpecError(f"interaction.posts must be at least 1; got {posts}")
        _require("strength", strength)
        _require_name("ranking", ranking, self.RANKINGS)
        super().__init__(network, steps, opinions, seed)
        self.posts = posts
        self.ranking = ranking
        self.strength = strength
        if ranking != "similarity":
            self.needs = ()

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """A post of every agent; then a ``review`` of several posts and a ``write`` of the same agent a step."""
        rng = np.random.default_rng(self._seed)
        readers = self._readers(rng)
        opinions = _Opinions(self._opinions, outcomes)
        latest = np.arange(self.n_agents)
        for turn in self._first_posts():
            yield turn
        for step, reader in enumerate(readers, 1):
            authors = self._neighbours.sources(reader)
            noise = rng.gumbel(size=len(authors))
            if self.ranking == "similarity":
                order = np.argsort(self.strength * await opinions.distances(reader, authors) - noise, kind="stable")
            elif self.ranking == "recency":
                # Posts of step 0 are of one age.
                order = np.lexsort((-noise, -np.maximum(latest[authors], self.n_agents - 1)))
            else:
                order = np.argsort(-noise, kind="stable")
            review, post = self._reading(step, reader, latest[authors[order[: self.posts]]])
            yield review
            yield post
            opinions.expect(reader, review.index)
            latest[reader] = post.index

    def _readers(self, rng: np.random.Generator) -> list[int]:
        readers: list[int] = rng.choice(self._neighbours.can_hear, self.steps).tolist()
        return readers

    def _first_posts(self) -> Iterator[Turn]:
        return (Turn(agent, 0, agent, "write") for agent in range(self.n_agents))

    def _reading(self, step: int, reader: int, shown: np.ndarray) -> tuple[Turn, Turn]:
        """What the reader does in a step."""
        index = self.n_agents + 2 * (step - 1)
        reads = tuple(shown.tolist())
        return Turn(index, step, reader, "review", reads), Turn(index + 1, step, reader, "write")

    def outline(self) -> Iterator[Turn]:
        """The readers as they are drawn, with the posts of the first of those they hear."""
        yield from self._first_posts()
        latest = np.arange(self.n_agents)
        for step, reader in enumerate(self._readers(np.random.default_rng(self._seed)), 1):
            review, post = self._reading(step, reader, latest[self._neighbours.sources(reader)[: self.posts]])
            yield review
            yield post
            latest[reader] = post.index
