"""The prompt and the position of the scripted model, for its answers to tasks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opinionsim.llm.scripted._words import Draws, say
from opinionsim.opinions import OpinionScale


def level_of(centre: float, spread: float, rounds: bool, scale: OpinionScale, draws: Draws) -> int:
    """The intensity that a reply expresses, -2 to 2.

    The function adds noise of standard deviation `spread` and clips the sum to the scale. It then draws one of the two
    intensities around the sum with probabilities that preserve the expectation, so small moves add up over replies.
    With `rounds`, it takes the nearer intensity instead (of two equally near, the one closer to neutral).
    """
    noisy = centre + spread * draws.normal()
    highest, neutral = scale.highest, scale.neutral
    place = (min(max(noisy, scale.lowest), highest) - neutral) / (highest - neutral) * 2
    if rounds:
        return int(math.copysign(math.ceil(abs(place) - 0.5), place))
    below = math.floor(place)
    return below + (draws.uniform() < place - below)


@dataclass(frozen=True, slots=True)
class Scene:
    """A prompt, and the position for the answer.

    Attributes
    ----------
    act : str
        Name of the template that states the task, or of the part that answers it.
    name : str
        The agent's name; empty if the prompt gives none.
    received : sequence of int or None
        Levels of the posts now shown, -2 to 2; None for a post without a readable level.
    masked : bool
        Whether the prompt calls the claim by its masked name.
    claim : bool
        Whether a message states a claim.
    told : str
        The system message and the task, without memory and posts.
    task : str
        The whole text of the last message.
    position : float
        The agent's position on the scale after reading the prompt.
    spread : float
        Standard deviation of the expressed opinion around the position, in scale units.
    greedy : bool
        Whether to express the nearest level without a draw.
    scale : OpinionScale
        The scale.
    delimiters : (str, str)
        The opening and closing delimiter of a received message.
    """

    act: str
    name: str
    received: Sequence[int | None]
    masked: bool
    claim: bool
    told: str
    task: str
    position: float
    spread: float
    greedy: bool
    scale: OpinionScale
    delimiters: tuple[str, str]

    def level(self, draws: Draws) -> int:
        """An intensity around the position, -2 to 2; each call draws anew."""
        return level_of(self.position, self.spread, self.greedy, self.scale, draws)

    def stance(self, draws: Draws, task: str = "report") -> str:
        """Sentences that express such an intensity, as for the task `write`, `report`, `probe` or `reflect`."""
        return say(replace(self, act=task), self.level(draws), draws)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The line before each message that the task shows, without its colon, and its text."""
        opening, closing = map(re.escape, self.delimiters)
        shown = re.compile(rf"^([^\n]*):\n{opening}\n(.*?)\n{closing}", re.MULTILINE | re.DOTALL)
        return shown.findall(self.task)
