"""Settings that define how to handle a reply with a given status and given signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import isawaitable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from opinionsim.conduct._look import Looked, look
from opinionsim.conduct._signs import RULES, Sign
from opinionsim.foundation.documents import DocumentModel
from opinionsim.messages import SPOKEN, ReplyStatus, Speech
from opinionsim.registry import Part, find

#: Signs that have a place in a text, and can be taken out of it.
_TAKEN = ("preamble", "names", "lines", "markup")
#: Statuses that a judge gives.
_JUDGED = ("answered", "refused", "off_role", "empty")


def _inside(span: tuple[int, ...], text: str) -> bool:
    return 0 <= span[0] <= span[1] <= len(text)


class NoAnswer(DocumentModel):
    """How to handle refused, empty and other replies that contain no answer in role."""

    reask: int = Field(2, ge=0, le=100)
    """Maximum number of times to ask again, each with another seed and an explanation of what was wrong."""
    then: Literal["skip", "fail"] = "skip"
    """`skip` does not pass the last reply on to others and counts it as missing. `fail` ends the run."""


class CutOff(DocumentModel):
    """How to handle replies that were cut off at `max_tokens`."""

    reask: int = Field(1, ge=0, le=10)
    """Maximum number of times to ask again, each time with double the length. If `max_tokens` is null, the model is
    never asked again."""
    then: Literal["missing", "measure", "fail"] = "missing"
    """The last reply is passed on unchanged and coded. `missing` leaves it out of tables and figures, and `measure`
    counts it; neither changes a run. `fail` ends the run."""


class Unreadable(DocumentModel):
    """How to handle answers to closed questions, such as ratings and choices, that cannot be read."""

    reask: int = Field(2, ge=0, le=100)
    """Maximum number of times to ask again, each with another seed and an explanation of what was wrong."""
    then: Literal["missing", "fail"] = "missing"
    """`missing` treats the last reply as an answer that decides nothing. `fail` ends the run."""


class Again(DocumentModel):
    """How to handle answers with a sign: ask again."""

    reask: int = Field(2, ge=0, le=100)
    """Maximum number of times to ask again, each with another seed and an explanation of what was wrong."""
    then: Literal["keep", "strip", "skip", "missing", "fail"] = "keep"
    """`keep` uses the last reply as it is. `strip` removes what is certainly not part of the text. `skip` does not pass
    it on to others and counts it as missing. `missing` passes it on but leaves it out of tables and figures. `fail`
    ends the run."""


def _kept(given: Literal["keep", "strip"] | Again) -> Literal["keep", "strip"] | Again:
    if given == "strip" or (isinstance(given, Again) and given.then == "strip"):
        raise ValueError(f"strip works only for signs with a place: {', '.join(_TAKEN)}; give keep or reask")
    return given


#: Treatment of a sign that can be taken out, and of any other.
Taken = Literal["keep", "strip"] | Again
Kept = Annotated[Literal["keep", "strip"] | Again, AfterValidator(_kept)]


class ReplyPolicy(DocumentModel):
    """How to handle replies, by their status and by the signs that they show."""

    refused: NoAnswer = Field(default_factory=NoAnswer)
    """The model declined, or a provider filter withheld the text."""
    off_role: NoAnswer = Field(default_factory=NoAnswer)
    """The text neither answers in role nor declines."""
    empty: NoAnswer = Field(default_factory=NoAnswer)
    """No text arrived, or only a word for nothing, such as N/A."""
    truncated: CutOff = Field(default_factory=CutOff)
    """The reply was cut off at `max_tokens`."""
    unreadable: Unreadable = Field(default_factory=Unreadable)
    """The answer to a closed question, such as a self-report, a rating or a choice, could not be read."""
    preamble: Taken = "strip"
    """The model's own words before or after the text."""
    names: Taken = "strip"
    """A name or a label before the text."""
    markup: Taken = "strip"
    """Markdown, HTML, JSON or stage directions, quotation marks around the whole text, and word counts."""
    lines: Taken = "keep"
    """Lines written on behalf of others."""
    language: Kept = "keep"
    """A different language from the one requested."""
    length: Kept = "keep"
    """More words than requested."""
    echo: Kept = "keep"
    """More than half of its six-word passages are copied from what the agent read."""
    echo_task: Kept = "keep"
    """More than half of its six-word passages are copied from the task or the system message."""
    loop: Kept = "keep"
    """More than half of its six-word passages occur several times."""
    role: Kept = "keep"
    """Words about the role, or outside it."""
    own: dict[str, Taken] = Field(default_factory=dict)
    """Your own signs, each with its import path, package.module:Name, and how to handle it."""
    judge: str = ""
    """Import path of the code that checks replies instead of the package's rules. Leave it empty to use the rules."""

    def _each(self) -> Iterator[tuple[str, Any]]:
        """What follows from each status and sign."""
        yield from ((name, each) for name, each in self if name not in ("own", "judge"))
        yield from self.own.items()

    def identity(self) -> dict[str, Any]:
        """The part of the settings that enters the identity of a run: all except how truncated texts count."""
        default, plain = ReplyPolicy(), self.model_dump(mode="json")
        found = {name: plain[name] for name, each in self if each != getattr(default, name)}
        if "truncated" in found:
            del found["truncated"]["then"]
            found = {name: each for name, each in found.items() if each != {"reask": default.truncated.reask}}
        if self.own:
            found["own"] = {find("sign", name).identity: each for name, each in plain["own"].items()}
        return found | {part.kind: part.identity for part in self.parts if part.kind == "judge"}

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Statuses and signs of texts that tables and figures leave out, including those that end a run."""
        left_out = ("missing", "fail")
        return tuple(name for name, each in self._each() if isinstance(each, CutOff | Again) and each.then in left_out)

    @property
    def ends(self) -> list[str]:
        """Statuses and signs of replies that end their run."""
        return [name for name, each in self._each() if getattr(each, "then", "") == "fail"]

    @property
    def parts(self) -> list[Part]:
        """The judge, if there is one, and the signs that you wrote."""
        return [*([find("judge", self.judge)] if self.judge else []), *(find("sign", name) for name in self.own)]

    @property
    def rules(self) -> str:
        """Names and versions of the code that checks replies."""
        if not self.judge and not self.own:
            return RULES
        own = [f"{part.kind} {part.identity}" for part in self.parts]
        return " + ".join(own if self.judge else [RULES, *own])

    @property
    def taken(self) -> frozenset[str]:
        """The signs that are removed from texts before others read them, if they are sure."""
        return frozenset(name for name, each in self._each() if "strip" in (each, getattr(each, "then", "")))

    async def look(self, text: str, status: ReplyStatus, *, speech: Speech | None, **shown: Any) -> Looked:
        """Status and signs of a reply, from the rules or the judge, with your own signs if it has a speaker.

        Raises
        ------
        SpecError
            If a judge or sign that you wrote fails or returns an invalid value; the error names it.
        """
        if not self.judge:
            looked = look(text, status, speech=speech, **shown)
        else:
            judge = find("judge", self.judge)
            given = judge.build(text, status, options={}, speech=speech, **shown)
            looked = await given if isawaitable(given) else given
            fits = isinstance(looked, Looked) and looked.status in (status, *_JUDGED)
            fits = fits and all(isinstance(each, Sign) and _inside(each[1:3], text) for each in looked.signs)
            judge.expect(fits, f"must return a Looked with {', '.join(_JUDGED)}, and signs inside the text", looked)
        if speech is None or looked.status not in SPOKEN:
            return looked
        found = list(looked.signs)
        for name in self.own:
            sign = find("sign", name)
            spans = list(sign.build(text, options={}, speech=speech, **shown))
            inside = all(isinstance(each, tuple) and _inside(each, text) for each in spans)
            sign.expect(inside, "must return pairs of start and end inside the text", spans)
            found += [Sign(name, start, end, sure=True) for start, end in spans]
        return looked._replace(signs=tuple(found))

    def follows(
        self, status: ReplyStatus, signs: Sequence[str], asked: Mapping[str, int], *, doubles: bool = True
    ) -> tuple[str, str]:
        """How to handle a reply with this status and these signs, except for signs that are removed.

        Parameters
        ----------
        status : str
            Its status.
        signs : sequence of str
            Its signs.
        asked : mapping of str to int
            How often the same call has already asked again because of each status and sign.
        doubles : bool
            Whether the call can ask for a truncated reply again with double the length.

        Returns
        -------
        cause, then : str
            The status or sign that counts, and ``again``, ``skip``, ``missing`` or ``fail``; both are empty if none
            counts. Signs of a truncated text are never a reason to ask again.
        """
        if status == "answered" and not signs:
            return "", ""
        known = dict(self._each())
        known["filtered"] = known["refused"]
        rules = {name: known[name] for name in (status, *signs) if not isinstance(known.get(name, ""), str)}
        able = () if status == "truncated" and not doubles else rules if status == "answered" else (status,)
        for name in able:
            if asked.get(name, 0) < rules[name].reask:
                return name, "again"
        ends = {each.then: name for name, each in reversed(rules.items())}
        return next(((ends[then], then) for then in ("fail", "skip", "missing") if then in ends), ("", ""))
