"""Consensus finding: citizens state opinions, a mediator drafts statements, a rule picks one, citizens criticise it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field

from opinionsim import schedules
from opinionsim.consensus import _session_acts as acts
from opinionsim.consensus._session import POSITION, Heard, OpenSession, examples_by_size
from opinionsim.consensus.voting import RULES, Election, Rule, elect
from opinionsim.errors import MeasurementError, ScheduleError, SpecError
from opinionsim.foundation.documents import DocumentModel
from opinionsim.foundation.streams import canonical_json, digest, stream
from opinionsim.foundation.templates import sentences
from opinionsim.messages import Message
from opinionsim.registry import part

#: Candidate statements of a round where nothing says how many (Habermas Machine; D8).
_CANDIDATES = 16


def _known_rule(given: str | dict[str, Any]) -> str | dict[str, Any]:
    """Refuse rules that do not exist, and options that they do not take."""
    try:
        Rule.of(given)
    except SpecError as error:
        raise ValueError(str(error)) from error
    return given


def _texts(setting: schedules.Setting, field: str, given: str | tuple[str, ...]) -> tuple[str, ...]:
    """The texts of a field, or of the file that it names."""
    try:
        found = setting.messages(given) if given else ()
    except SpecError as error:
        raise SpecError(str(error), f"interaction.{field}") from error
    if not all(text.strip() for text in found):
        raise SpecError("contains a blank text", f"interaction.{field}")
    return found


class DrafterSpec(DocumentModel):
    """One way of drafting, for a number of the candidate statements."""

    count: int = Field(ge=1, le=1000)
    """Number of candidate statements to draft in this way."""
    style: Literal["zero-shot", "few-shot", "reasoned", "completion"] = "zero-shot"
    """`zero-shot` asks for a statement. `few-shot` first shows statements from other sessions. `reasoned` asks for an
    analysis of the opinions before the statement. `completion` is for models without a chat format, such as fine-tuned
    ones, and uses the first line of the reply."""
    label: str | None = Field(None, pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)
    """Name of the drafter in tables. Null uses the style."""
    role: str = Field(acts.MEDIATOR, pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)
    """Role that drafts the statements. To draft with several models, give each its own role."""
    examples: str | tuple[str, ...] = ()
    """For few-shot drafters: examples from other sessions, or the path of a file with them, as written by
    `opinionsim.consensus.examples`. Three are shown, with 3, 4 and 5 opinions if available."""

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.label or self.style


class RatingsSpec(DocumentModel):
    """Ratings of statements by citizens, for agreement and quality, from 1 to 7."""

    position: Literal["before", "after"] | None = None
    """When citizens rate the position statement: `before` they write their opinions, or `after`, together with the
    candidates. With null, they do not rate it."""
    passes: int = Field(1, ge=0, le=10)
    """How often each citizen rates every statement, in a new order each time. Two passes show how reliable the ratings
    are. Citizens rate the position statement only once before they write their opinions, whatever the number of passes.
"""
    winner: bool = False
    """Whether each citizen also rates the winner of the last round. These ratings do not count towards any pass or
    ballot."""


@part("interaction", name="consensus")
class ConsensusInteraction(schedules.Interaction):
    """Citizens state opinions, a mediator drafts statements, and citizens rank them and criticise the winner.

    After Bakker et al. 2022 and the Habermas Machine (Tessler et al. 2024; D1-D8). After an opinion round, any number
    of critique rounds follow, in which the mediator revises the winner. The mediator sees only texts, no personas.
    """

    played_by = ("chat models",)
    length_field = "rounds"
    prompts = "deliberation"
    smallest = 2
    member_name = "Citizen {number}"
    tables = ("winners", "elections", "rated-statements")
    frames = ("entries",)
    figures = ("consensus", "kappas", "wins", "ratings", "divisiveness", "pairwise-accuracy")
    record = "consensus"
    takes_texts = True
    # Each act shows what it needs.
    remembers = False

    candidates: int | None = Field(None, ge=1, le=1000)
    """Number of candidate statements per round, unless you list `drafters`. Null means 16."""
    drafters: tuple[DrafterSpec, ...] = ()
    """Ways of drafting statements, which compete in one run."""
    rounds: int = Field(1, ge=0, le=100)
    """Number of critique rounds after the opinion round. The run ends after a round without any usable critique."""
    incumbent: bool = False
    """Whether the winner of a round is a candidate again in the next round."""
    standing: tuple[Literal["opinions", "position"], ...] = ()
    """Further candidates in the opinion round, in addition to the drafts: each citizen's own opinion, or the position
    statement."""
    leave_one_out: int = Field(0, ge=0, le=100)
    """Number of further drafts for each citizen, made without that citizen's opinion. Citizens and predictors rate
    them, but they are not candidates."""
    controls: str | tuple[str, ...] = ()
    """Statements of other groups, or the path of a file with them. Citizens and predictors rate them, but they are not
    candidates."""
    ballot: Literal["ranking", "rating"] = "ranking"
    """Whether a ballot ranks all statements in one turn, or rates one statement per turn."""
    ballots: tuple[Literal["stated", "predicted"], ...] = Field(("stated",), min_length=1)
    """Which ballots to collect: `stated` ballots from citizens, who see their own opinions, and `predicted` ballots,
    which are made from the text of one opinion and never from a persona."""
    predictor: Literal["role", "instrument"] = "role"
    """What makes the predictions: the role `predictor`, or the instrument of the variable `predicted_agreement`, such
    as a trained reward model or a baseline."""
    choose_by: Literal["stated", "predicted"] | None = None
    """Which ballots decide the election. Null uses the first of `ballots`."""
    shortlist: int | None = Field(None, ge=2, le=1000)
    """Number of statements that citizens rank, chosen as the best by predicted ballots. With null, they rank all
    statements."""
    rule: Annotated[str | dict[str, Any], AfterValidator(_known_rule)] = "schulze"
    """Voting rule: a name, such as `schulze`, `borda`, `copeland`, `plurality`, `utilitarian`, `nash` or `egalitarian`,
    or a mapping with `kind` and its options, such as `{kind: power-mean, alpha: 2}`."""
    ties: Literal["allowed", "random", "ballots"] = "ballots"
    """How ties are broken: `allowed` keeps them and uses the first statement, `random` breaks them at random, and
    `ballots` breaks them by ballots in random order and then at random."""
    ratings: RatingsSpec = Field(default_factory=lambda: RatingsSpec(passes=0))
    """Ratings in addition to the ballots."""
    between: Literal["probe", "self-report"] | None = None
    """Off-record question to citizens after each round except the last. Null asks none."""
    position: str | None = Field(None, pattern=r"\S")
    """The position statement. Null uses the claim of the topic."""

    # What follows from the fields

    @property
    def ways(self) -> tuple[DrafterSpec, ...]:
        """The ways of drafting."""
        return self.drafters or (DrafterSpec(count=self.candidates or _CANDIDATES),)

    @property
    def others(self) -> Sequence[str]:  # type: ignore[override]
        """The mediators, and the predictor if a role predicts."""
        predicts = self.predictor == "role" and "predicted" in self.ballots
        return tuple(dict.fromkeys([*(way.role for way in self.ways), *([acts.PREDICTOR] if predicts else [])]))

    @property
    def elects(self) -> Literal["stated", "predicted"]:
        """The ballots that elect."""
        return self.choose_by or self.ballots[0]

    @property
    def texts(self) -> list[str]:
        """Kinds of text that can be coded; opinions are written before the session, and questions can follow it."""
        return list(dict.fromkeys([schedules.PROBE.kind, schedules.SELF_REPORT.kind, *super().texts]))

    @property
    def kept(self) -> dict[str, Any]:
        """All fields, because the winner is recomputed from the recorded ballots."""
        return {"kind": self.kind, **self.model_dump(mode="json", exclude_defaults=True)}

    @property
    def rule_label(self) -> str:
        """The rule in tables."""
        return Rule.of(self.rule).label

    @property
    def untied(self) -> str:
        """How the winner is found if the rule leaves the first place tied."""
        found = {"allowed": "the order of the statements", "random": "chance"}
        return found.get(self.ties, "ballots in random order, then by chance")

    @property
    def methods(self) -> Sequence[str]:  # type: ignore[override]
        """How a session works, and what its means cover."""
        return sentences("opinionsim.consensus", "methods.txt", f=self)

    @property
    def needs(self) -> Sequence[str]:
        """Predicted agreement, if an instrument predicts."""
        return (acts.PREDICTED,) if self.predictor == "instrument" and "predicted" in self.ballots else ()

    @property
    def decided(self) -> Mapping[str, tuple[tuple[int, ...], frozenset[str]]]:
        """Ranks, agreement and quality of statements, as far as the session has them."""
        # With room for the opinions of any group that can pay for them.
        most = tuple(range(1, max(self.incumbent + self._standing(100), 2) + 1))
        rated = self.passes or self.ratings.position or self.ratings.winner
        by_role = self.predictor == "role" and "predicted" in self.ballots
        found = {
            "rank": (most, "ballot", "stated" in self.ballots and self.ballot == "ranking"),
            "agreement": (acts.LIKERT, "rating", rated),
            "quality": (acts.LIKERT, "rating", rated),
            "predicted_rank": (most, "prediction", by_role and self.ballot == "ranking"),
            acts.PREDICTED: (acts.LIKERT, "prediction", by_role and self.ballot == "rating"),
        }
        return {variable: (points, frozenset({kind})) for variable, (points, kind, there) in found.items() if there}

    def _standing(self, size: int) -> int:
        """Most statements that stand in the opinion round of a group of `size` citizens."""
        drafts = sum(way.count for way in self.ways)
        return drafts + ("position" in self.standing) + size * ("opinions" in self.standing)

    @property
    def passes(self) -> int:
        """How often each citizen rates every statement of a round."""
        return max(self.ratings.passes, int(self.ballot == "rating" and "stated" in self.ballots))

    def scores(self, ballots: Literal["stated", "predicted"]) -> bool:
        """Whether such ballots contain scores (larger is better) instead of ranks."""
        return self.ballot == "rating" or (ballots == "predicted" and self.predictor == "instrument")

    @property
    def acts(self) -> Mapping[str, schedules.ActSpec]:  # type: ignore[override]
        """The acts of its turns."""
        found = [acts.STATE, acts.SUBMIT, acts.PUT, acts.RANK, acts.CRITICISE, acts.PREDICT, acts.PREDICT_RATING]
        found += [acts.RATE] if self.ballot == "rating" or self.ratings.passes or self.ratings.position else []
        if self.ratings.position or (acts.RATE in found and "position" in self.standing):
            found.append(acts.RATE_POSITION)
        own = (acts.RANK, acts.RATE) if "opinions" in self.standing else ()
        found = [replace(each, person=f"{each.person} {acts.OWN_STAND}") if each in own else each for each in found]
        found += [acts.RATE_WINNER] if self.ratings.winner else []
        for way in self.ways:
            parse = acts.read_completion if way.style == "completion" else acts.DRAFT.parse
            for act in (acts.DRAFT, acts.REVISE):
                values = {"style": way.style}
                found.append(replace(act, name=self.act_of(act, way), parse=parse, values=values))
        if self.between:
            asked = schedules.PROBE if self.between == schedules.PROBE.name else schedules.SELF_REPORT
            found.append(replace(asked, labelling="you-other"))
        return schedules.named(*found)

    def act_of(self, act: schedules.ActSpec, way: DrafterSpec) -> str:
        """Name of the act that drafts or revises in this way."""
        return act.name if len(self.ways) == 1 and way.label is None else f"{act.name}.{way.name}"

    def steps_for(self, size: int) -> int:
        """Steps T: the opinion round, the critique rounds, and the step that rates the winner."""
        return 1 + self.rounds + self.ratings.winner

    def turns_a_step(self, size: int) -> int:
        """Most turns of a round."""
        drafts = sum(way.count for way in self.ways) + size * self.leave_one_out
        listed = 0 if isinstance(self.controls, str) else len(self.controls)
        stand = drafts + listed + 2 + size * ("opinions" in self.standing)
        ballots = size * (stand if self.ballot == "rating" else 1) * len(self.ballots)
        return 3 * size + stand + ballots + size * stand * self.ratings.passes

    def conflicts(self, size: int) -> Iterator[schedules.Conflict]:
        """Conflicts between fields, or problems for a group of `size` citizens."""
        yield from self._drafting_conflicts(size)
        if self.choose_by is not None and self.choose_by not in self.ballots:
            yield ("choose_by",), f"{self.choose_by!r} elects, and ballots has only {', '.join(self.ballots) or 'none'}"
        if len(set(self.ballots)) < len(self.ballots):
            yield ("ballots",), "must list `stated`, `predicted` or both, each once"
        if self.shortlist is not None and set(self.ballots) != {"stated", "predicted"}:
            yield ("shortlist",), "needs ballots [stated, predicted]: predicted ballots choose what citizens vote on"
        if self.shortlist is not None and self.elects == "predicted":
            yield ("shortlist",), "has no effect if predicted ballots elect"
        most = self._standing(size) + (self.incumbent and self.rounds > 0)
        if self.shortlist is not None and self.shortlist > most:
            yield ("shortlist",), f"is more than the {most} candidate statements"
        if self.predictor == "instrument" and "predicted" not in self.ballots:
            yield ("predictor",), "has no effect without predicted ballots"
        if Rule.of(self.rule).needs_scores and not self.scores(self.elects):
            yield ("rule",), f"{self.rule!r} needs ratings; give ballot: rating, or a rule for rankings"
        rule, predicted = Rule.of(self.rule), self.predictor == "instrument" and self.elects == "predicted"
        if predicted and "transform" in RULES[rule.kind].options and rule.transform is None:
            problem = f"{rule.kind!r} needs positive scores, but those of an instrument may be 0 or less"
            yield ("rule",), f"{problem}; give {{kind: {rule.kind}, transform: exp}}, or shift"
        if self.ratings.position == "after" and not self.passes:
            yield ("ratings", "passes"), "must be 1 or more if citizens rate the position statement with the candidates"
        rated = self.passes or ("predicted" in self.ballots and self.scores("predicted"))
        for field in ("leave_one_out", "controls"):
            if getattr(self, field) and not rated:
                yield (
                    (field,),
                    "needs rated statements: give ratings: {passes: 1} or more, or predicted ratings",
                )
        if self.incumbent and not self.rounds:
            yield ("incumbent",), "has no effect without critique rounds"
        if self.between and not self.rounds:
            yield ("between",), "has no effect without critique rounds; ask with measurement.probe after the last step"
        yield from super().conflicts(size)

    def _drafting_conflicts(self, size: int) -> Iterator[schedules.Conflict]:
        """Problems of the drafters, and of the number of statements for a group of `size` citizens."""
        field, stand = "drafters" if self.drafters else "candidates", self._standing(size)
        if stand < 2:
            yield (field,), f"{stand} candidate leaves no choice; give at least 2"
        if self.ballot == "ranking" and stand + self.incumbent > acts.MOST_LABELS:
            problem = f"a ranking has at most {acts.MOST_LABELS} candidates; got {stand}: give ballot: rating"
            yield (field,), problem
        if self.drafters and self.candidates is not None:
            yield ("candidates",), "cannot be combined with drafters, which give the counts"
        names = [way.name for way in self.drafters]
        for place, way in enumerate(self.drafters):
            if names.index(way.name) != place:
                yield ("drafters", place, "label"), f"{way.name!r} is the name of two drafters; give different labels"
            if way.label in ("position", "control"):
                yield ("drafters", place, "label"), f"{way.label!r} names statements without a drafter; give another"
            if way.role in (schedules.PARTICIPANT, acts.PREDICTOR):
                yield ("drafters", place, "role"), f"{way.role!r} does not draft; name another role"
            if (way.style == "few-shot") != bool(way.examples):
                problem = "is needed by few-shot drafters" if not way.examples else f"has no effect on {way.style!r}"
                yield ("drafters", place, "examples"), problem

    def check(self, setting: schedules.Setting) -> None:
        """Refuse a missing position statement, examples that all reveal too much, and citizens who cannot answer."""
        self.externals(setting)
        for number, way in enumerate(self.ways):
            if way.examples:
                examples_by_size(setting, number, way)
        wanted = self.ratings.position or "position" in self.standing
        if wanted and not (self.position or setting.position):
            raise SpecError("is missing; give a sentence, or a topic with a claim", "interaction.position")
        if len(setting.given) == setting.size and self.elects == "stated":
            raise SpecError("citizens that are texts cannot vote; give ballots: [predicted]", "interaction.ballots")
        if len(setting.given) == setting.size and self.rounds:
            raise SpecError("citizens that are texts cannot criticise; give rounds: 0", "interaction.rounds")

    def identity(self, setting: schedules.Setting) -> dict[str, Any]:
        """Identity that includes the content of files, and the way to choose a winner only if a turn depends on it."""
        fields = super().identity(setting)
        if self.controls:
            fields["controls"] = digest(canonical_json(setting.messages(self.controls)))
        for way, stated in zip(self.drafters, fields.get("drafters", ()), strict=False):
            if way.examples:
                stated["examples"] = digest(canonical_json(setting.messages(way.examples)))
        if not self.rounds and not setting.questioned and not self.ratings.winner and self.shortlist is None:
            for field in ("rule", "ties", "choose_by"):
                fields.pop(field, None)
        return fields

    def externals(self, setting: schedules.Setting) -> Mapping[str, Message | str]:
        """Texts written beforehand: opinions, the position statement, controls and examples."""
        names = setting.names or [self.unnamed(agent) for agent in range(setting.size)]
        found = {schedules.GIVEN.format(agent): Message(text, names[agent]) for agent, text in setting.given.items()}
        if position := self.position or setting.position:
            found[POSITION] = Message(position)
        controls = _texts(setting, "controls", self.controls)
        found |= {f"control-{place}": Message(text) for place, text in enumerate(controls)}
        for number, way in enumerate(self.ways):
            for place, text in enumerate(_texts(setting, "drafters", way.examples)):
                found[f"example-{number}-{place}"] = Message(text)
        return found

    # Turns

    async def decide(
        self, setting: schedules.Setting, outcomes: schedules.Outcomes
    ) -> AsyncIterator[schedules.Turn | schedules.Closing]:
        """Turns of a session; each stage starts at once when the previous stage is complete."""
        flow, answer = OpenSession(self, setting).flow(), None
        while not isinstance(each := flow.send(answer), schedules.Closing):
            if isinstance(each, schedules.Turn):
                yield each
            else:
                answer = await each.outcome(outcomes)
        yield each

    def outline(self, setting: schedules.Setting) -> Iterator[schedules.Turn]:
        """The turns of a session if every reply is usable."""
        flow, answer = OpenSession(self, setting).flow(), None
        while not isinstance(each := flow.send(answer), schedules.Closing):
            if isinstance(each, schedules.Turn):
                yield each
            else:
                answer = [*each.turns] if isinstance(each, Heard) else np.ones((len(each[0]), len(each.statements)))

    def closing(self, setting: schedules.Setting) -> Mapping[int, tuple[schedules.Ref, ...]]:
        """What citizens see after the last round, before its result is known: their own opinion and a statement."""
        turns = list(self.outline(setting))
        opinions = {turn.agent: turn.index for turn in turns if self.acts[turn.act].kind == acts.STATE.kind}
        winner = next(turn.index for turn in reversed(turns) if self.acts[turn.act].kind == acts.DRAFT.kind)
        return {agent: (index, winner) for agent, index in opinions.items() if agent not in setting.given}

    def elect(self, ballots: np.ndarray, block: str, number: int, *, scores: bool) -> Election:
        """Hold the election of a round.

        Parameters
        ----------
        ballots : ndarray, shape (ballots, candidates)
            Ranks from 1, or scores. A ballot without a value for some statement (NaN) counts as missing.
        block : str
            Name of the set of runs that share random draws; these break ties.
        number : int
            Number of the round, from 0.
        scores : bool
            Whether larger numbers are better.

        Raises
        ------
        ScheduleError
            If there is no ballot, or the rule cannot count them.
        """
        missing = np.isnan(ballots).any(axis=1, keepdims=True)
        ballots = np.where(missing, np.nan, ballots)
        if missing.all():
            raise ScheduleError(f"round {number}: no citizen voted on all candidates, so there is no winner")
        try:
            return elect(ballots, self.rule, scores=scores, ties=self.ties, rng=stream(0, "ties", number, block))
        except MeasurementError as error:
            raise ScheduleError(f"round {number}: {error}") from error
