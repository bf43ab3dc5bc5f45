"""The prompt pack of a specification, with its wording."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from pydantic import Field

from opinionsim.foundation.documents import DocumentModel
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.prompts import USUAL, Frame, worded
from opinionsim.registry import find

if TYPE_CHECKING:
    from opinionsim.specification._fields import ExperimentSpec
    from opinionsim.specification._resources import Resources

#: Characters of a wording's digest that are shown.
_SHOWN = 12


class PromptsSpec(DocumentModel):
    """A prompt pack, and which of its wordings."""

    pack: str | None = Field(None, min_length=1)
    """The pack, as in the short form of `prompts`."""
    variant: str = Field(USUAL, pattern=r"^[a-z0-9_-]+$")
    """Wording of the pack: `usual`, or the name of another wording. The pack `default` also has `second`, `third`,
    `fourth` and `fifth`, with the same content."""


def pack_of(prompts: str | PromptsSpec | None, usual: str) -> str:
    """The name of a pack with its wording; `usual` is the pack if none is named."""
    given = prompts if isinstance(prompts, PromptsSpec) else PromptsSpec(pack=prompts)
    return worded(given.pack or usual, given.variant)


def wording_of(spec: ExperimentSpec, resources: Resources) -> tuple[str, str | None]:
    """Digest of the texts that prompts of a run are made of, and the name of its wording.

    Returns
    -------
    (str, str or None)
        The name consists of the pack's folder and the texts that acts supply, ``@``, and the beginning of the digest.
        It is None if no prompt asks the agents.
    """
    pack = resources.pack(spec.pack)
    unworded = [act for act in spec.acts if act.template not in pack.tasks]
    own = {act.name: act.text for act in unworded if act.text is not None}
    asked = (act for act in spec.acts_of_persons if act.draws and act.template not in pack.tasks)
    own |= {act.template: act.text for act in asked if act.text is not None}
    used = find("memory", spec.cognition.memory.name).target.templates if spec.interaction.remembers else ()
    own |= {each.name: each.text for each in used if isinstance(each, Frame) and each.name not in pack.tasks}
    # People on record are shown no prompt, whatever pack words those of their twins.
    content = digest(canonical_json([{} if spec.interaction.recorded else dict(pack.contents), own]))
    name = "+".join([PurePath(spec.pack).name, *sorted(own)])
    return content, f"{name}@{content[:_SHOWN]}" if spec.prompted else None
