"""Delimiters and cues, which locate the parts of a rendered prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from opinionsim.messages import printable

if TYPE_CHECKING:
    from opinionsim.prompts._act import Act

#: Marks of a template, and ends of its lines.
_BETWEEN = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|\n", re.DOTALL)
#: Kinds of content that stand between delimiters.
Block = Literal["persona", "history", "post", "claim", "disposition"]

BLOCKS: tuple[Block, ...] = get_args(Block)


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks that locate the parts of a rendered prompt.

    Attributes
    ----------
    persona : (str, str)
        Opening and closing delimiter of the person an agent plays.
    history : (str, str)
        Delimiters of each remembered event or reflection.
    post : (str, str)
        Delimiters of each received message.
    claim : (str, str)
        Delimiters of the claim in full.
    disposition : (str, str)
        Delimiters of the instruction on confirmation bias.
    cues : mapping of str to str
        By template name, a phrase that all prompts of that task contain, and no other text of the pack.
    labels : mapping of str to str
        Lines that introduce received messages, as far as the pack declares them: ``numbered``, with {number} in it;
        ``named``, with {author}; ``own``, ``other`` and ``outside``; and ``marker``, the words that begin the
        instructions of a moderator to itself. A published text does not begin with one.
    """

    persona: tuple[str, str]
    history: tuple[str, str]
    post: tuple[str, str]
    claim: tuple[str, str]
    disposition: tuple[str, str]
    cues: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def answering(self, acts: Iterable[Act]) -> Marks:
        """The same for a run of these acts: those that name a scripted answer have their cue under its name.

        That is the cue of the act's template, or else the longest text that a template of its own has between marks.
        """
        cues = dict(self.cues)
        for act in acts:
            if act.scripted and act.scripted not in cues:
                longest = max((each.strip() for each in _BETWEEN.split(act.text or "")), key=len)
                cues[act.scripted] = cues.pop(act.template, longest)
        return replace(self, cues=MappingProxyType(cues))

    def pair(self, kind: Block) -> tuple[str, str]:
        """Opening and closing delimiter of one kind of block."""
        found: tuple[str, str] = getattr(self, kind)
        return found

    def blocks(self, kind: Block, text: str) -> tuple[str, ...]:
        """The content of each block of one kind, in order, without the delimiters.

        Parameters
        ----------
        kind : {"persona", "history", "post", "claim", "disposition"}
            Which blocks.
        text : str
            A rendered prompt; an unclosed block reaches to its end.
        """
        return self.parted(kind, text)[0]

    def without(self, kind: Block, text: str) -> str:
        """The text with every block of one kind cut out, delimiters included."""
        return self.parted(kind, text)[1]

    def parted(self, kind: Block, text: str) -> tuple[tuple[str, ...], str]:
        """The results of :meth:`blocks` and :meth:`without`, found in one pass."""
        opening, closing = self.pair(kind)
        if opening not in text:
            return (), text
        first, *rest = text.split(opening)
        pieces = [part.partition(closing) for part in rest]
        return tuple([inside for inside, _, _ in pieces]), first + "".join([after for _, _, after in pieces])

    def unwrapped(self, text: str) -> str:
        """The text without the one pair of delimiters that encloses all of it, if any does."""
        bare = text.strip()
        for kind in BLOCKS:
            opening, closing = self.pair(kind)
            if bare.startswith(opening) and bare.endswith(closing) and bare.count(opening) == bare.count(closing) == 1:
                return bare[len(opening) : len(bare) - len(closing)].strip()
        return text

    def unlabelled(self, text: str, author: str) -> str:
        """The text without labels at its beginning: models repeat those of the messages that they were shown.

        A label that names an author is removed only if it names the text's own author.
        """
        if not self.labels:
            return text
        opening = _opening(tuple(self.labels.values()))
        # An author's name is compared and not compiled: there may be as many authors as agents.
        named = [label.replace("{author}", author) for label in self.labels.values() if author and "{author}" in label]
        rest, taken = text.lstrip(), False
        while True:
            found = opening.match(rest)
            ends = [len(own) for own in named if rest[: len(own)].casefold() == own.casefold()]
            end = max([found.end() if found else 0, *ends])
            if not end:
                return rest if taken else text
            rest, taken = rest[end:].lstrip(), True

    def delimiters(self) -> Iterator[tuple[Block, str]]:
        """Every delimiter with its kind."""
        for kind in BLOCKS:
            for delimiter in self.pair(kind):
                yield kind, delimiter

    def problem(self) -> str | None:
        """Return why the delimiters are not valid, or None.

        They must be distinct, contain no whitespace, have at least three characters, not contain one
        another, and none may begin the way one ends: under these rules no inserted text, once passed
        through :meth:`defanger`, can complete a delimiter, not even together with a neighbouring one.
        """
        listed = list(self.delimiters())
        for kind, delimiter in listed:
            if len(delimiter) < 3 or re.search(r"\s", delimiter):
                return f"delimiters.{kind}: {delimiter!r} must have three or more characters and no whitespace"
        for (i, (kind, one)), (j, (other, two)) in product(enumerate(listed), repeat=2):
            if i < j and one == two:
                return f"delimiters.{other}: {two!r} is used twice; the ten delimiters must differ"
            if i != j and one in two:
                return f"delimiters.{other}: {two!r} contains {one!r}, a delimiter of {kind}"
            overlap = next((n for n in range(1, min(len(one), len(two))) if one.endswith(two[:n])), 0)
            if overlap:
                return (
                    f"delimiters.{other}: {two!r} begins as {one!r} ends ({two[:overlap]!r}), so that text between "
                    f"them could complete one; use forms such as '<post>' and '</post>'"
                )
        return None

    def defanger(self) -> Callable[[str], str]:
        """Build the function that makes a text safe to insert between delimiters.

        It puts a space after the first character of every delimiter in the text (``</post>`` becomes
        ``< /post>``), makes the rest :func:`~opinionsim.messages.printable`, and otherwise leaves it unchanged.
        """
        spelled = "|".join(re.escape(delimiter) for _, delimiter in self.delimiters())
        found = re.compile(spelled)
        # The look-ahead consumes one character, so that overlapping delimiters are all found.
        first = re.compile(f"(?=(?:{spelled}))(.)", re.DOTALL)

        def defang(text: str) -> str:
            safe = printable(text)
            return first.sub(r"\1 ", safe) if found.search(safe) else safe

        return defang


@cache
def _opening(labels: tuple[str, ...]) -> re.Pattern[str]:
    """The labels that a text can begin with, whoever its author is."""
    spelled = [_spaced(label).replace(re.escape("{number}"), r"\d+") for label in labels if "{author}" not in label]
    return re.compile("|".join(spelled) or "(?!)", re.IGNORECASE)


def _spaced(label: str) -> str:
    """The pattern of a label, with any white space between its signs, and set in bold or in italics or not."""
    signs = re.findall(r"\{number\}|\w+|[^\w\s]", label)
    between = r"[\s*_]*"
    return f"{between}{between.join(map(re.escape, signs))}[*_]*"
