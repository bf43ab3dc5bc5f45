"""The part of an act that prompts use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: Ways in which received messages are introduced to their reader.
Labelling = Literal["anonymous", "numbered", "named", "you-other"]


@dataclass(frozen=True, slots=True)
class Act:
    """An act as far as prompts are concerned; :class:`opinionsim.schedules.ActSpec` adds the rest.

    Attributes
    ----------
    name : str
        Name that turns use.
    template : str
        Template of the prompt pack that states the task; empty for an act without a call.
    kind : str
        Kind of text it produces, in lower case: one of the package's, such as ``post``, or a new one.
    text : str or None
        The template itself, used if the prompt pack has none of that name; None if the pack must have it.
    variables : tuple of str or None
        Names that the template may use; any other is an error when the template is loaded. None means all task
        variables.
    values : mapping of str to str
        Further variables of this act, with their texts.
    labelling : str
        How received messages are introduced: ``anonymous``, ``numbered``, ``named`` by author, or ``you-other``,
        which distinguishes the reader's own messages from those of others.
    audience : str
        Who hears its texts: ``readers``, the turns that read them; ``room``, everyone present; ``nobody``; or
        ``owner``, the owner of the experiment alone, on its pages.
    answers : bool
        Whether its texts respond to what the author read; a post does not, because its author writes it unprompted.
    scripted : str
        The part of kind ``scripted`` with which the scripted model answers: a name or an import path. If empty, the
        part with the template's name is used or, if there is none, a report.
    """

    name: str
    template: str
    kind: str
    text: str | None = None
    variables: tuple[str, ...] | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    labelling: Labelling = "anonymous"
    audience: Literal["readers", "room", "nobody", "owner"] = "readers"
    answers: bool = True
    scripted: str = ""

    def __hash__(self) -> int:
        return hash((self.name, self.template, self.text))

    @property
    def blind(self) -> bool:
        """Whether readers know of a message's author only whether it is themselves."""
        return self.labelling in ("anonymous", "you-other")

    @property
    def heard(self) -> bool:
        """Whether others hear its texts."""
        return self.audience in ("readers", "room")
