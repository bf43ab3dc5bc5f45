"""Detects refusals: weighs signs that a text steps out of its role against signs of a person's own words."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from opinionsim.messages import ReplyStatus

#: Flag of a text that still counts: a note to the person who runs the model, or words that may be a refusal.
Flag = Literal["", "note", "suspected"]


class Answered(NamedTuple):
    """Whether a text contains an answer in its role.

    Attributes
    ----------
    status : str
        ``answered``; ``refused`` if it declines; ``off_role`` if it neither answers nor declines.
    flag : str
        ``note`` if the model also addresses the person who runs it; ``suspected`` if the text may be a refusal, or a
        person who declines; empty otherwise.
    """

    status: ReplyStatus
    flag: Flag = ""


#: Tables of patterns by language, and weights of the signs.
_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))


def _pattern(written: str) -> str:
    """A regular expression of the data file, with what it is made of in its place."""
    for name, part in reversed(_DATA["within"].items()):
        written = written.replace(f"<{name}>", part)
    return f"(?:{written})".replace("\n", "")


_WEIGHTS: dict[str, float] = _DATA["weights"]
_LANGUAGES: dict[str, dict[str, str]] = _DATA["languages"]
_SCRIPTS = {name: re.compile(table["script"]) for name, table in _LANGUAGES.items() if "script" in table}
_COMMON = {
    name: re.compile(r"(?<!\w)" + _pattern(table["common"])) for name, table in _LANGUAGES.items() if "common" in table
}
#: Words that occur only in English, and letters that never occur in English.
_ENGLISH = re.compile(r"(?<!\w)i'(?:m|d|ll|ve)(?!\w)|n't(?!\w)")
_FOREIGN = re.compile("[\u00bf\u00c0-\u024f\u0400-\u1fff\u3040-\u9fff\uac00-\ud7a3]")
#: Signs that a sentence declines, that it is about the task, and that it is the author's own.
_DECLINES = frozenset(("cannot do", "cannot say", "cannot talk", "is a model", "has no view", "in a word"))
_REFUSES = _DECLINES - {"is a model"}
_SPOKEN = _DECLINES | {"about", "offer", "task"}
_OWN = frozenset(("life", "stance"))
#: What the tables hold besides unwilling words and their objects, and what is counted.
_COLUMNS: tuple[str, ...] = tuple(_DATA["columns"])
_COUNTED = (*_COLUMNS, "cannot do", "cannot say", "cannot talk")
_GATE = {
    name: frozenset([*words.split(), *words.replace("'", "\u2019").split()]) for name, words in _DATA["gate"].items()
}
#: Pattern of a text that is only a notice of refusal, and its maximum length.
_FORM, _SHORT = re.compile(r"\W*" + _pattern(_DATA["form"]) + r"\W*"), 160
#: Pattern of a text that consists only of questions about the task, and its maximum length.
_ASKS, _ASKED = re.compile(_pattern(_DATA["asks"])), 600
#: A line that presents the answer.
_PRESENTS = re.compile(r"\bhere(?:'s| is)\b|in character|response as|voice of")
#: The beginning that prompts of reports ask for, or the name of the author.
_OPENING = re.compile(r"(?:[^.!?\n]{0,80}step by step through what i believe|\w{1,40}(?: \w{1,40})?:)\W{0,9}")
_MARKUP = re.compile(r"</?[a-z]{1,20}>|[*`]+|(?<!\w)_+|_+(?!\w)|^[ \t]{0,9}(?:#{1,6} |>)", re.IGNORECASE | re.MULTILINE)
#: Words of others, in a sentence or before more words of the author; a text quoted as a whole does not count.
_QUOTED = re.compile(
    r"(?<=[\w,] )\"[^\"\n]{1,300}\"|(?:\"[^\"\n]{1,300}\"|\u00ab[^\u00bb\n]{1,300}\u00bb|\u201e[^\"\n]{1,300}\""
    r"|\u300c[^\u300d\n]{1,150}\u300d)(?!\W{0,9}$)"
)
#: Words that stand for others, as in ``{task}``, ``${task}``, ``{{ task }}`` and ``{% if task %}``: not the author's.
_PLACEHOLDER = re.compile(r"\$?\{\s{0,9}[\w.-]{0,40}\s{0,9}\}|\{(?:\{[^{}\n]{0,40}\}|%[^{}\n]{0,40}%)\}")
_PARAGRAPHS = re.compile(r"\n\s{0,9}(?:-{3,9}\s{0,9})?\n|\n(?=\s{0,9}(?:\(|\[|note:))", re.IGNORECASE)
_ASIDE = re.compile(r"[\s-]{0,9}(?:[(\[]|(?:\w{1,20} )?note\b|disclaimer\b|ooc\b)")
_PARTS = re.compile(
    "[.!?\u2026:;\u3002\uff01\uff1f\u0964\n]+|\\s[\u2013\u2014-]+\\s|\uff0c(?=\u4f46)"
    "|,\\s(?=(?:but|yet|so|aber|maar|mais|pero|ma|mas|ale|ama|\u043d\u043e|\u0644\u0643\u0646|\u092a\u0930)\\b)"
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
#: Characters to read at either end of a text, because no refusal is in the middle of a long one.
_ENDS = 3000


def read_answer(text: str, known: frozenset[str] | None = None) -> Answered:
    """Determine whether a text contains an answer in its role.

    Parameters
    ----------
    text : str
        The text of a model without reasoning.
    known : frozenset of str, optional
        The words of the text in lower case, if the caller has them already.

    Returns
    -------
    Answered
        ``refused`` or ``off_role`` if signs that the model declines, leaves its role or mentions its task outweigh
        signs of a person. Every other text is an answer, whatever position it takes on the question.

    Notes
    -----
    The score is linear in the signs that the table of the text's language finds in its sentences. The weights come from
    a logistic regression (``python benchmarks/replies.py --fit``). A person may also "not write another word on this",
    so details of a life and a stance outweigh such words. A first or last paragraph that addresses the person who runs
    the model is a note, which the score ignores.
    """
    if len(text) < _ASKED and _ASKS.fullmatch(text.lower().replace("\u2019", "'")):
        return Answered("off_role")
    if text.isascii() or not _FOREIGN.search(text):
        words = frozenset(_WORD.findall(text.lower())) if known is None else known
        if _GATE["alone"].isdisjoint(words) and (
            _GATE["unwilling"].isdisjoint(words) or _GATE["object"].isdisjoint(words)
        ):
            return Answered("answered")
    if is_notice(text):
        return Answered("refused")
    found, noted = signs(text)
    score = _WEIGHTS["bias"] + sum(weight * found[name] for name, weight in _WEIGHTS.items() if name != "bias")
    declines = any(found[name] for name in (*_DECLINES, "task beside"))
    if score > (0 if declines else _DATA["off_role"]):
        return Answered("refused" if declines else "off_role")
    return Answered("answered", "note" if noted else "suspected" if found["cannot do"] or found["is a model"] else "")


def is_notice(text: str) -> bool:
    """Whether a text consists only of a notice of refusal."""
    return len(text) < _SHORT and _FORM.fullmatch(text.lower()) is not None


def signs(text: str) -> tuple[dict[str, float], bool]:
    """Counts or amounts of signs in a text without its notes, by name, and whether there are notes."""
    plain = _plain(text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}")
    language = _language(plain)
    plain, noted = _without_notes(plain, language)
    return _values(plain, language), noted


def _values(plain: str, language: str) -> dict[str, float]:
    """Signs in a text without markup and notes."""
    # Sentences of a few letters ("I'm sorry") say nothing, unless they decline.
    least = 3 if language in _DATA["joined"] else 15
    parts = [(part, _found(part, language)) for part in _PARTS.split(plain) if part.strip()]
    found = [names for part, names in parts if len(part) > least or not names.isdisjoint(_DECLINES)]
    # A life and a stance in what one will not do are told apart: they may be somebody else's.
    counts = Counter(name for names in found for name in (names if names.isdisjoint(_DECLINES) else names - _OWN))
    values: dict[str, float] = {name: min(2, counts[name]) for name in _COUNTED}
    values["life beside"] = any(not names.isdisjoint(_DECLINES) and "life" in names for names in found)
    free = [names for names in found if names.isdisjoint(_SPOKEN)]
    values["free"] = len(free) / max(1, len(found))
    values["own"] = sum(not names.isdisjoint(_OWN) for names in free) / max(1, len(found))
    values["own at once"] = bool(found) and found[0].isdisjoint(_DECLINES) and not found[0].isdisjoint(_OWN)
    declines = [not names.isdisjoint(_DECLINES) for names in found]
    if values["own at once"] and not any(values[name] for name in _REFUSES):
        # What a person says comes first, and the model adds what it is.
        values["is a model"] = 0.0
    values["unwilling"] = any("unwilling" in names and names.isdisjoint(_DECLINES) for names in found)
    values["task"] = min(2, sum("task" in names and "cannot do" not in names for names in found))
    values["task beside"] = any({"task", "unwilling"} <= names and names.isdisjoint(_DECLINES) for names in found)
    values["at once"] = bool(declines) and declines[0]
    values["at last"] = bool(declines) and declines[-1]
    own = values["life"] or values["stance"] or values["life beside"]
    for name in ("cannot do", "cannot say", "cannot talk", "is a model", "about"):
        values[f"{name}, a person"] = bool(values[name] and own)
    for name in ("cannot do", "cannot say", "cannot talk"):
        values[f"{name}, alone"] = bool(values[name]) and len(found) < 2 and not own and not values["others"]
    values["task, alone"] = bool(values["task"]) and not (free or own or values["others"])
    values["at once, alone"] = values["at once"] and not own
    values["bare"] = len(plain) < 60 and not own and any("unwilling" in names for _, names in parts)
    values["courteous"] = any(declines) and bool(values["offer"]) and not own
    values["hashtag"] = "#" in plain
    values["bracketed"] = plain[:1] in ("(", "[") and plain[-1:] in (")", "]")
    values["asks at last"] = bool(found) and plain[-1:] == "?" and not found[-1].isdisjoint({"about", "offer"})
    return values


@lru_cache(maxsize=1 << 12)
def _found(sentence: str, language: str) -> frozenset[str]:
    """Names of the signs in a sentence; cached, since sentences recur."""
    return frozenset([name for name, sign in _tables(language).items() if sign.search(sentence)])


@lru_cache
def _tables(language: str) -> dict[str, re.Pattern[str]]:
    """The signs of a language."""
    table = _LANGUAGES[language]
    joined = language in _DATA["joined"]
    # Words are set apart by spaces, and have no endings that are marks, in Latin and Cyrillic letters.
    start, end, within = ("", "", 24) if joined else (r"(?<!\w)", r"(?!\w)", 60)
    between = f"[^.!?\u3002\uff01\uff1f]{{0,{within}}}?"
    part = {column: _pattern(table[column]) for column in table if column not in ("script", "common")}
    signs = {"unwilling": part["unwilling"], "task": part["task"]}
    for name, said in (("cannot do", "task"), ("cannot say", "view"), ("cannot talk", "talk")):
        if said not in part:
            continue
        if "turned" in part:
            ahead = rf"{part['unwilling']}{end}(?:\W{{1,3}}{_pattern('<gap>')})?{start}{part[said]}{end}"
        else:
            ahead = f"{part['unwilling']}{between}{start}{part[said]}{end}"
        behind = f"|{part[said]}{between}{start}{part.get('turned', part['unwilling'])}" if said != "talk" else ""
        signs[name] = f"(?:{ahead}{behind})"
    signs |= {column: part[column] for column in _COLUMNS if column in part}
    return {name: re.compile(start + written) for name, written in signs.items()}


def _language(plain: str) -> str:
    """The language of a text: by its script, and in Latin letters by the words that are common in it."""
    if _FOREIGN.search(plain):
        for name, script in _SCRIPTS.items():
            if len(script.findall(plain)) > len(plain) / 4:
                return name
    if _ENGLISH.search(plain) or len(_COMMON["en"].findall(plain)) * 16 > len(plain):
        return "en"
    common = {name: len(words.findall(plain)) for name, words in _COMMON.items()}
    near = [name for name, number in common.items() if number >= max(common.values()) - 1]
    likely = sorted(near, key=lambda name: -common[name])
    # Where languages are about as likely, the one in which the text would decline is taken.
    return next((name for name in likely if not _found(plain[:200], name).isdisjoint(_DECLINES)), likely[0])


def _plain(text: str) -> str:
    """A text without markup and placeholders, with straight quotes, and without what it quotes in its sentences."""
    for curly, straight in (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(curly, straight)
    plain = text.lower()
    # Looking for a character takes a tenth of looking for a pattern.
    for pattern, instead, needed in (
        (_PLACEHOLDER, '""', "{"),
        (_MARKUP, "", "<>#*`_"),
        (_QUOTED, '""', '"\u00ab\u201e\u300c'),
    ):
        if any(each in plain for each in needed):
            plain = pattern.sub(instead, plain)
    plain = plain.strip()
    opening = _OPENING.match(plain)
    return plain[opening.end() :] if opening else plain


def _without_notes(plain: str, language: str) -> tuple[str, bool]:
    """A text without first and last paragraphs that are notes, and whether there were any."""
    paragraphs = _PARAGRAPHS.split(plain)
    kept = paragraphs
    for end in (-1, 0):
        while len(kept) > 1:
            rest = "\n\n".join(kept[:-1] if end else kept[1:])
            aside = _ASIDE.match(kept[end])
            presented = not end and len(kept[0]) < 120 and bool(_PRESENTS.search(kept[0]))
            said = _values(kept[end], language)
            spoken = any(said[name] for name in ("is a model", "about", "offer")) and not any(map(said.get, _REFUSES))
            others = _values(rest, language)
            if any(others[name] for name in _DECLINES) or len(_WORD.findall(rest)) < 5:
                break
            own = others["stance"] or others["life"] or len(_WORD.findall(rest)) > 11
            if not (aside or presented or (spoken and own)):
                break
            kept = kept[:-1] if end else kept[1:]
    return "\n\n".join(kept), len(kept) < len(paragraphs)
