"""The data files of the scripted model's sentences: complete, and well-formed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import opinionsim
from opinionsim.llm import phrases

_FOLDER = Path(opinionsim.__file__).parent


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


SENTENCES = _read("llm/phrases.toml")
#: What each sentence of a kind names, and what it may name; the others name nothing.
NAMES = {
    "posts": ({"x"}, set()),
    "reports": ({"x"}, set()),
    "openers": (set(), {"x"}),
    "leads": ({"me"}, {"x"}),
    "read": ({"posts"}, set()),
    "remembered": (set(), {"x"}),
    "moderation": ({"n"}, set()),
}
#: Kinds with a list for each stance.
BY_STANCE = ("posts", "reports")
LISTS = {
    **{(kind,): said for kind, said in SENTENCES.items() if isinstance(said, list)},
    **{(kind, level): said for kind in BY_STANCE for level, said in SENTENCES[kind].items()},
}


def test_every_list_of_sentences_is_served_in_its_order() -> None:
    banks = {
        name.lower(): getattr(phrases, name) for name in vars(phrases) if name.isupper() and not name.startswith("_")
    }
    words = {"masked", "masked_again", "plain"}
    assert banks.keys() - words == SENTENCES.keys() - {"words"}
    for kind in banks.keys() - words - set(BY_STANCE):
        assert banks[kind] == tuple(SENTENCES[kind])
    for kind in BY_STANCE:
        assert banks[kind] == {int(level): tuple(said) for level, said in SENTENCES[kind].items()}


@pytest.mark.parametrize("place", LISTS, ids=" ".join)
def test_every_sentence_has_its_variables(place: tuple[str, ...]) -> None:
    said, (needed, further) = LISTS[place], NAMES.get(place[0], (set(), set()))
    assert len(said) == len(set(said)) >= 3
    for sentence in said:
        assert re.fullmatch(r"[A-Z{].*[^\s.?][.?]", sentence)
        found = [name for _, name, _, _ in Formatter().parse(sentence) if name is not None]
        assert needed <= set(found) <= needed | further
        assert len(found) == len(set(found))


def test_the_words_of_two_sides_differ() -> None:
    sides = {side: words.split() for side, words in SENTENCES["words"].items()}
    assert sides.keys() == {"support", "reject", "undecided", "negators", "intensifiers"}
    every = [word for words in sides.values() for word in words]
    assert len(every) == len(set(every)) > 60
