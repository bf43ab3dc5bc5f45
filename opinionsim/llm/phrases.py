"""Reads the sentences of the scripted chat model, which are in ``phrases.toml``.

A stance sentence states one of five intensities, -2 to 2, towards the subject ``{x}``: strongly negative,
slightly negative, neutral, slightly positive, strongly positive. All other sentences carry no stance.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

#: What the subject is called where the prompt masks the claim, where it was just named, and elsewhere.
MASKED, MASKED_AGAIN, PLAIN = "Theory XYZ", "this theory", "the claim"

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _said(kind: str) -> tuple[str, ...]:
    return tuple(_DATA[kind])


def _stances(kind: str) -> Mapping[int, tuple[str, ...]]:
    return MappingProxyType({int(level): tuple(said) for level, said in _DATA[kind].items()})


#: Stance sentences of posts, and of reports, probes and reflections, by level.
POSTS, REPORTS = _stances("posts"), _stances("reports")
#: First and last sentences of posts.
OPENERS, CLOSERS = _said("openers"), _said("closers")
#: Lead-ins of reports; ``{me}`` is "I, NAME," or "I".
LEADS = _said("leads")
#: First steps of reports, and second steps: on a post, where ``{posts}`` is "post" or "posts", and on none.
FIRST, READ, ALONE = _said("first"), _said("read"), _said("alone")
#: Sentences that lead to the stance of a report.
CONCLUSIONS = _said("conclusions")
#: First and second sentences of reflections.
REMEMBERED, REFLECTIONS = _said("remembered"), _said("reflections")
#: What the model says when it declines.
REFUSALS = _said("refusals")
#: What is said to a task without a claim. They fit any task, and say nothing of it.
ANSWERS = _said("answers")
#: What a moderator says of the responses, with their number as {n}, and instructions that it writes for itself.
MODERATION, INSTRUCTIONS = _said("moderation"), _said("instructions")


def pick_one(n: int) -> str:
    """The request to name one of n numbered texts, at the end of a judge's question."""
    return f"Answer with one number from 1 to {n} and nothing else."


#: Sentence ends, and the marks that set a quoted or introduced sentence off from what introduces it.
_BREAKS = re.compile('[.!?:\n"\u201c\u201d\u00ab\u00bb]+')
_SUBJECT = re.compile(r"\b(?:theory xyz|(?:this|that|the) (?:theory(?! xyz)|claim))\b")
_WORD = re.compile(r"[a-z]+(?:['\u2019]t)?")
_SUPPORT, _REJECT, _UNDECIDED, _NEGATORS, _INTENSIFIERS = (
    frozenset(_DATA["words"][kind].split()) for kind in ("support", "reject", "undecided", "negators", "intensifiers")
)


def capitalised(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]


def _sentence(part: str) -> str:
    """One part of a split lower-case text, the subject replaced by ``{x}``, spaces made single."""
    return _SUBJECT.sub("{x}", " ".join(part.split()))


def sentences(text: str) -> list[str]:
    """The sentences of a text, lower case, the subject replaced by ``{x}``, spaces made single."""
    return [sentence for sentence in map(_sentence, _BREAKS.split(text.lower())) if sentence]


_LEVELS = {
    sentences(sentence)[0]: level
    for bank in (POSTS, REPORTS)
    for level, stances in bank.items()
    for sentence in stances
}


def _polarity(sentence: str) -> int | None:
    """Rough level of a sentence that is not one of the model's own, None when it takes no side."""
    words = _WORD.findall(sentence)
    rejects = not _REJECT.isdisjoint(words)
    takes_side = rejects or not _SUPPORT.isdisjoint(words)
    if "{x}" not in sentence or not takes_side or not _UNDECIDED.isdisjoint(words):
        return None
    negations = sum(word in _NEGATORS or word.endswith(("n't", "n\u2019t")) for word in words)
    side = 1 if rejects == bool(negations % 2) else -1
    return side * 2 if negations == 0 and not _INTENSIFIERS.isdisjoint(words) else side


def stated(text: str) -> int | None:
    """The level of the last stance sentence of the scripted model in a text.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    int or None
        -2 to 2 by exact lookup of each sentence; None if no sentence is known.
    """
    for line in reversed(text.split("\n")):
        level = _stated_in(line)
        if level is not None:
            return level
    return None


# Cached, since prompts repeat the lines of a template and several agents read the same post.
@lru_cache(maxsize=1 << 14)
def _stated_in(line: str) -> int | None:
    """The level of the last stance sentence in a line."""
    # Backwards, since the stance mostly is the last sentence or the one before it.
    for part in reversed(_BREAKS.split(line.lower())):
        level = _LEVELS.get(_sentence(part))
        if level is not None:
            return level
    return None


def n_words(text: str) -> int:
    """Number of words in a text, split at white space."""
    return sum(map(_n_words_in, text.split("\n")))


@lru_cache(maxsize=1 << 14)
def _n_words_in(line: str) -> int:
    """Number of words in a line; cached for the same reason as `_stated_in`."""
    return len(line.split())


@lru_cache(maxsize=1 << 16)
def stance(text: str) -> int | None:
    """The level that a reader takes from somebody's post.

    The function reads posts by the scripted model exactly (:func:`stated`) and others roughly. For these, it uses only
    sentences with "Theory XYZ", or with "this", "that" or "the" before "theory" or "claim". Such a sentence is negative
    if it contains a word of rejection ("false", "doubt"), and otherwise positive if it contains a word of support
    ("true", "agree"). An odd number of negations reverses the side, and words such as "whether" and "undecided" cancel
    it. The last sentence that takes a side gives the level: 2 if it contains a word such as "completely" and no
    negation, else 1.

    Parameters
    ----------
    text : str
        A post.

    Returns
    -------
    int or None
        -2 to 2, or None for a post that names no subject or takes no side. Such a post influences nobody.
    """
    level = stated(text)
    if level is not None:
        return level
    levels = [_polarity(sentence) for sentence in sentences(text)]
    return next((level for level in reversed(levels) if level is not None), None)
