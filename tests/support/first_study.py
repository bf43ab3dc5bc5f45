"""The commands of a new study's README, which tests carry out in order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

#: Kinds of study that `opinionsim new` makes, each with what its table must name.
KINDS = {
    "dyads": ("none", "weak", "strong", "bias divides"),
    "structure": ("chain", "rounds on a ring", "each alone", "hearing others"),
    "classic": ("agents", "bounded confidence", "voter", "agents against bounded confidence"),
    "people": ("people", "twins", "against", "for"),
    "quickstart": ("none", "weak", "strong"),
}


def commands(folder: Path) -> list[list[str]]:
    """Arguments of the `opinionsim` commands of a study's README, in order."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert all(words[0] == "opinionsim" for words in lines)
    return [words[1:] for words in lines]
