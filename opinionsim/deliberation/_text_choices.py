"""Judges who choose between texts of two conditions, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from opinionsim.deliberation._structure_acts import CHOOSE
from opinionsim.messages import SPOKEN
from opinionsim.registry import part
from opinionsim.schedules import PROBE, SELF_REPORT, AskedOnce, Conflict, External, Setting, SourceCell, Turn, named

if TYPE_CHECKING:
    from opinionsim.measurement import Text

#: The fields that name cells.
_SIDES = ("text", "other")


class Written(SourceCell):
    """Texts of a cell of the experiment, one per run."""

    agent: int | None = Field(None, ge=0)
    """Number of the participant, from 0, whose last text is used. Null uses the last text of the run, which is the
    moderator's if there is one."""

    def unfit(self, size: int) -> str:
        """Explain that there is no such participant."""
        known = self.agent is None or self.agent < size
        return "" if known else f"the cell {self.cell!r} has no agent {self.agent}; valid: 0 to {size - 1}"

    def text(self, run: Mapping[int, Text]) -> tuple[int, str]:
        """The turn and the text of a run; the text is empty if its author refused or wrote nothing."""
        own = [(turn, each) for turn, each in sorted(run.items()) if each.kind not in (PROBE.kind, SELF_REPORT.kind)]
        own = [(turn, each) for turn, each in own if self.agent in (None, each.site.agent)]
        return (own[-1][0], own[-1][1].text if own[-1][1].status in SPOKEN else "") if own else (-1, "")


@part("interaction", name="choices")
class ChoicesInteraction(AskedOnce):
    """Each judge chooses between texts of two cells, pair by pair (Plurals, Ashkinaze et al. 2025; B8).

    A pair consists of the texts of one replicate in both cells, whose runs come first. One run shows all pairs, in a
    different order for each judge. Which text of a pair comes first is drawn for each judge and pair. Pairs are left
    out if a text is missing because its author refused, or if both texts are the same one.
    """

    acts = named(CHOOSE)
    prompts = "deliberation"
    tables = ("choices",)

    text: Written
    """The texts whose share of choices is reported, as in `{cell: "cast=focus group"}`."""
    other: Written
    """The texts to compare them with. In the same cell, these must be from another participant."""

    def replicates(self, n: int) -> Sequence[int]:
        """One replicate, which shows all pairs."""
        return (0,)

    def counterparts(self, replicate: int, n: int) -> Sequence[int]:
        """All replicates of the two cells."""
        return range(n)

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including pairs of a text with itself."""
        if self.text == self.other:
            yield ("other",), "selects the same texts as text; give another cell, or another agent in the same cell"
        yield from super().conflicts(size)

    def takes(self, size: int, runs: Sequence[Mapping[int, Text]]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """The number of each pair, from 0, and its two texts."""
        half = len(runs) // 2
        for pair, (own, beside) in enumerate(zip(runs[:half], runs[half:], strict=True)):
            (turn, text), (second, other) = self.text.text(own), self.other.text(beside)
            if text and other and (turn, self.text.cell) != (second, self.other.cell):
                yield pair, 0, (text, other)

    def externals(self, setting: Setting) -> Mapping[str, str]:
        """The texts, by the field that names their cell and the number of their pair."""
        return {
            f"{side}-{pair}": each for pair, _, both in setting.read for side, each in zip(_SIDES, both, strict=True)
        }

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``choose`` turn for each judge and pair."""
        for judge in range(setting.size):
            order = setting.draws("pairs", judge).permutation(len(setting.read)).tolist()
            for index, place in enumerate(order, judge * len(order)):
                pair, *_ = setting.read[place]
                first = int(setting.draws("position", judge, pair).integers(2))
                shown = (_SIDES[first], _SIDES[1 - first])
                yield Turn(index, 1, judge, CHOOSE.name, tuple(External(f"{side}-{pair}") for side in shown))
