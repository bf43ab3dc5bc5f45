"""Whether a reply is a refusal: signs that a text steps out of its role are weighed against those of a stance."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from opinionsim.messages import ReplyStatus

#: What is odd about a text that stands all the same: a note to whoever runs the model, or words that may be a refusal.
Flag = Literal["", "note", "suspected"]


class Answered(NamedTuple):
    """Whether a text holds an answer in its role.

    Attributes
    ----------
    status : str
        ``answered``; ``refused`` where it declines; ``off_role`` where it holds no answer and declines nothing.
    flag : str
        ``note``: beside the answer, the model speaks to whoever runs it; ``suspected``: it may be a refusal, or a
        person who declines; empty otherwise.
    """

    status: ReplyStatus
    flag: Flag = ""


#: Classes of words, signs made of them, and weights.
_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))


def _pattern(written: str) -> str:
    """A regular expression of the data file, with what it is made of in its place."""
    for name, part in _DATA["within"].items():
        written = written.replace(f"<{name}>", part)
    return written.replace("\n", "")


def _forms(word: str) -> list[str]:
    """The forms of a word of the data file: of a stem, one for each ending."""
    return [word[:-1] + ending for ending in _DATA["endings"]] if word[-1] == "-" else [word]


#: The class of each form of a word.
_CLASS = {form: kind for kind, words in _DATA["words"].items() for word in words.split() for form in _forms(word)}
#: Words of English that say nothing of a life or a claim.
_EMPTY = {word for word, kind in _CLASS.items() if kind not in _DATA["of_a_life"]}.union(_DATA["function"].split())
_SIGNS = {name: re.compile(_pattern(written)) for name, written in _DATA["signs"].items()}
_WEIGHTS: dict[str, float] = _DATA["weights"]
#: Signs of a stance.
_STANCE = frozenset(("believes", "verdict"))
#: Signs that the model steps out.
_OUT = frozenset(("model", "leaves", "declines", "offers"))
#: Signs that the model declines, and those that it does where it is unwilling as well.
_DECLINES = ("cannot do", "is a model", "has no view", "in a word")
_PERHAPS = ("cannot say", "leaves", "declines")
#: Signs that a sentence is about the task, so that a stance in it is not the author's own.
_ABOUT = frozenset(("model", "leaves", "role", "request", "asked", "writing", "asks"))
#: Signs of a paragraph beside an answer, and of one in brackets.
_OFFERED, _SPOKEN = frozenset(("model", "offers", "asks")), _OUT | _ABOUT
#: Classes of words that negate.
_NEGATED = frozenset("cNd")
#: Signs without one of which no text is refused.
_NEEDED = _SPOKEN | {"ethics"}
#: Tables of words by language, with frequent words of those in Latin letters, and with the letters of the others.
_LANGUAGES: dict[str, dict[str, str]] = _DATA["languages"]
_SCRIPTS = {name: re.compile(table["script"]) for name, table in _LANGUAGES.items() if "script" in table}
_COMMON = {
    name: re.compile(r"(?<!\w)" + _pattern(table["common"])) for name, table in _LANGUAGES.items() if "common" in table
}
_OTHER_SCRIPT = re.compile("[\u0400-\u9fff\uac00-\ud7a3]")
#: Letters of a short text, of which each is given a score.
_SHORT = 160
#: A text that is nothing but a notice of refusal.
_FORM = re.compile(_pattern(_DATA["form"]))
#: A line that presents the answer.
_PRESENTS = re.compile(r"\bhere(?:'s| is)\b|in character|response as|voice of")
#: What the prompts of reports ask to begin with, or the name of the author.
_OPENING = re.compile(r"(?:[^.!?\n]{0,80}step by step through what i believe|\w+(?: \w+)?:)\W*")
_MARKUP = re.compile(r"</?[a-z]+>|[*`]+|(?<!\w)_+|_+(?!\w)|^[ \t]*(?:#{1,6} |>)", re.IGNORECASE | re.MULTILINE)
#: What others say: in a sentence, or before more words of the author; a text that is one quotation is no quotation.
_QUOTED = re.compile(
    r"(?<=[\w,] )\"[^\"\n]{1,300}\"|(?:\"[^\"\n]{1,300}\"|\u00ab[^\u00bb\n]{1,300}\u00bb|\u201e[^\"\n]{1,300}\""
    r"|\u300c[^\u300d\n]{1,150}\u300d)(?!\W*$)"
)
#: Words that stand for others, as in ``{task}``, ``${task}``, ``{{ task }}`` and ``{% if task %}``: not the author's.
_PLACEHOLDER = re.compile(r"\$?\{\s*[\w.-]*\s*\}|\{(?:\{[^{}\n]{0,40}\}|%[^{}\n]{0,40}%)\}")
_ENDS = re.compile(r"[.!?\u2026:;][\"')\]]*\s+|\s[\u2013\u2014-]+\s+|,\s+(?=(?:but|yet|so|still)\b)|\n+")
_PARAGRAPHS = re.compile(r"\n\s*(?:-{3,}\s*)?\n|\n(?=\s*(?:\(|\[|note:))", re.IGNORECASE)
_ASIDE = re.compile(r"[\s-]*(?:[(\[]|(?:\w+ )?note\b|disclaimer\b|ooc\b)")
_PARTS = re.compile("[^.!?\u2026:;\u3002\uff01\uff1f\n]+")
_WORD = re.compile(r"[^\W_]+(?:['-]\w+)*")


def read_answer(text: str) -> Answered:
    """Tell whether a text holds an answer in its role.

    Parameters
    ----------
    text : str
        What a model wrote, reasoning split off.

    Returns
    -------
    Answered
        ``refused`` or ``off_role`` where signs that the model declines, leaves its role or speaks of its task outweigh
        those of a stance; every other text is an answer, on whichever side of the question, or between them.

    Notes
    -----
    The score is linear in the signs; the weights come from a logistic regression (``python benchmarks/replies.py
    --fit``). Signs by classes of words are for English; those by the columns of a table, for English and fourteen
    other languages. A person, too, may "not write another word on this": a stance outweighs such words. A first or last
    paragraph that speaks to whoever runs the model is a note, and is left out of the score.
    """
    if len(text) < _SHORT and _FORM.fullmatch(text.lower()):
        return Answered("refused")
    plain, noted = _without_notes(_plain(text))
    sentences = _letters(plain)
    # Most texts have none of these: no score of the other signs could make them refused or suspected.
    if all(map(_NEEDED.isdisjoint, map(_found, sentences))):
        declines = not _NEGATED.isdisjoint("".join(sentences))
        if (len(plain) > _SHORT or not declines) and not _declined(plain, sentences, declines):
            return Answered("answered", "note" if noted else "")
    found = _values(plain, sentences)
    score = _DATA["bias"] + sum(weight * found[name] for name, weight in _WEIGHTS.items())
    declines = any(found[name] for name in (_DECLINES + _PERHAPS if found["unwilling"] else _DECLINES))
    if score > (0 if declines else _DATA["off_role"]):
        return Answered("refused" if declines else "off_role")
    if noted:
        return Answered("answered", "note")
    suspected = any(found[name] for name in ("leaves", "model", "is a model"))
    suspected = suspected or (bool(found["out"]) and score > _DATA["suspected"])
    return Answered("answered", "suspected" if suspected else "")


def signs(text: str) -> tuple[dict[str, float], bool]:
    """Signs in a text without its notes: how often or how much, by name in `_WEIGHTS`; whether there are notes."""
    plain, noted = _without_notes(_plain(text))
    return _values(plain, _letters(plain)), noted


def _language(plain: str, sentences: list[str]) -> str:
    """The language of a text: by its script, and in Latin letters by the words that are common in it."""
    if not plain.isascii() and _OTHER_SCRIPT.search(plain):
        for name, script in _SCRIPTS.items():
            if len(script.findall(plain)) > len(plain) / 4:
                return name
    opening, english = "".join(sentences)[:12], _COMMON["en"]
    if english.search(plain) and (
        opening.count(".") <= 8 * len(opening) / 12 or len(english.findall(plain)) * 40 > len(plain)
    ):
        return "en"
    common = {name: len(words.findall(plain)) for name, words in _COMMON.items()}
    likely = [name for name, number in common.items() if number == max(common.values())]
    # Of languages that are as likely, the one in which the text would decline.
    return next((name for name in likely[1:] if _tables(name)["any"].search(plain)), likely[0])


@lru_cache
def _tables(language: str) -> dict[str, re.Pattern[str]]:
    """The signs of a language, and ``any``, without which no text in it is refused."""
    table = _LANGUAGES[language]
    # Words are set apart by spaces, and have no endings that are marks, in Latin and Cyrillic letters.
    start, gap = ("", 18) if language in _DATA["joined"] else (r"(?<!\w)", 45)
    part = {column: f"(?:{_pattern(table[column])})" for column in table if column not in ("script", "common")}
    between = f"[^.!?\u3002\uff01\uff1f]{{0,{gap}}}?{start}"
    for sign, said in (
        ("cannot do", part["task"]),
        ("cannot say", part["view"]),
        ("any", f"(?:{part['task']}|{part['view']})"),
    ):
        last = "" if language == "en" else f"|{said}{between}{part['unwilling']}"
        part[sign] = f"(?:{part['unwilling']}{between}{said}{last})"
    part["any"] = "(?:" + "|".join(part[sign] for sign in ("any", "is a model", "has no view", "in a word")) + ")"
    return {sign: re.compile(start + pattern) for sign, pattern in part.items()}


def _declined(plain: str, sentences: list[str], negated: bool) -> bool:
    """Whether a text is in brackets, or declines in any language, if perhaps as a person; in English, with negation."""
    if _bracketed(plain):
        return True
    language = _language(plain, sentences)
    # No long text in English declines without a word of negation.
    if language == "en" and not negated and len(plain) > _SHORT:
        return False
    return bool(_tables(language)["any"].search(plain))


def _bracketed(plain: str) -> bool:
    return plain[:1] in ("(", "[") and plain[-1:] in (")", "]")


def _values(plain: str, sentences: list[str]) -> dict[str, float]:
    """Signs in a text without markup and notes, and in its sentences as classes."""
    found = [_found(sentence) for sentence in sentences]
    out = [not names.isdisjoint(_OUT) for names in found]
    together = "".join(sentences)
    counts = Counter(name for names in found for name in names)
    values: dict[str, float] = {name: min(2, counts[name]) for name in _SIGNS}
    values["task words"] = min(3.0, 5 * sum(map(together.count, _DATA["of_a_task"])) / max(8, len(together)))
    values["out"] = any(out)
    values["out at last"] = bool(out) and out[-1]
    values["short"] = any(out) and len(together) < 14
    values["very short"] = any(out) and len(together) < 6
    values["hashtag"] = "#" in plain
    values["bracketed"] = _bracketed(plain)
    asks = plain.rstrip("\"')]_ ").endswith("?") and not _SPOKEN.isdisjoint(counts)
    values["asks at last"] = asks and not {"y", "I"}.isdisjoint(sentences[-1])
    others = sum(word not in _EMPTY for word in _WORD.findall(plain))
    declined = not {"c", "N", "d"}.isdisjoint(together)
    values["nothing else"], values["a word else"] = declined and others == 0, declined and others == 1
    language = _language(plain, sentences)
    if language != "en":
        # Words of English that are words of another language, too, are no signs.
        values = dict.fromkeys(values, 0.0)
    told = _told(plain, _tables(language), 3 if language in _DATA["joined"] else 15)
    if told["says at once"] or (len(sentences) < 2 and any(told[sign] for sign in _DECLINES)):
        # A stance that one declines to take is none.
        values["believes"] = 0.0
    return values | told


def _told(plain: str, table: dict[str, re.Pattern[str]], least: int) -> dict[str, float]:
    """Signs in a text by the table of its language. Sentences of at most `least` letters ("I'm sorry") say nothing."""
    starts = {sign: [found.start() for found in table[sign].finditer(plain)] for sign in _DATA["columns"]}
    told: dict[str, float] = {sign: min(2, len(found)) for sign, found in starts.items()}
    told["unwilling"] = bool(told["unwilling"])
    signed = [start for sign, found in starts.items() if sign != "person" for start in found]
    parts = [part.span() for part in _PARTS.finditer(plain) if len(part[0]) > least]
    free = [start for start, end in parts if not any(start <= each < end for each in signed)]
    unable = told["cannot do"] or told["cannot say"]
    told["free"] = len(free) / max(1, len(parts))
    at_once = bool(unable) and len(parts) < 2 and not told["person"]
    told["does at once"] = at_once and bool(told["cannot do"])
    told["says at once"] = at_once and not told["cannot do"]
    told["courteous"] = bool(unable or told["has no view"]) and bool(told["offer"] or told["is a model"])
    told["cannot do, a person"] = bool(told["cannot do"] and told["person"])
    told["cannot say, a person"] = bool(told["cannot say"] and told["person"])
    return told


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


def _letters(text: str) -> list[str]:
    """The sentences of a text as strings of classes."""
    said = (_WORD.findall(sentence) for sentence in _ENDS.split(text))
    return ["".join([_CLASS.get(word, ".") for word in found]) for found in said if found]


@lru_cache(maxsize=1 << 14)
def _found(sentence: str) -> frozenset[str]:
    """Names of the signs in a sentence; a stance beside a word out of the role is none. Cached, since forms repeat."""
    found = frozenset([name for name, sign in _SIGNS.items() if sign.search(sentence)])
    return found if found.isdisjoint(_ABOUT) else found - _STANCE


def _without_notes(plain: str) -> tuple[str, bool]:
    """A text without first and last paragraphs that are notes, and whether there were any."""
    paragraphs = _PARAGRAPHS.split(plain)
    kept = paragraphs
    for end in (-1, 0):
        while len(kept) > 1:
            found = set().union(*map(_found, _letters(kept[end])))
            rest = kept[:-1] if end else kept[1:]
            others = [_found(sentence) for sentence in _letters("\n\n".join(rest))]
            aside = _ASIDE.match(kept[end])
            spoken = found & (_SPOKEN if aside else _OFFERED)
            presented = not end and len(kept[0]) < 120 and bool(_PRESENTS.search(kept[0]))
            if not (spoken or presented) or any(found & _OUT for found in others):
                break
            least = 5 if aside or presented or any(names & _STANCE for names in others) else 12
            if len(_WORD.findall("\n\n".join(rest))) < least:
                break
            kept = rest
    return "\n\n".join(kept), len(kept) < len(paragraphs)
