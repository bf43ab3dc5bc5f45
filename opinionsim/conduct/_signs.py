"""Signs of conduct in a reply: what a model shows beside an answer in its role, and where."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

#: The signs: words of the model's own around the text; a name or label in front; lines written for others; marks of
#: Markdown, HTML, JSON and the stage; another language than asked; more words than asked; whole passages of what was
#: read, or of the task; the same words over and over; words about the role, or out of it.
SIGNS = ("preamble", "names", "lines", "markup", "language", "length", "echo", "echo_task", "loop", "role")

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))
#: Name and version of the rules.
RULES = f"rules {_DATA['version']}"

#: Words of a passage that is compared with what was read, and with the text itself; the share of copied passages
#: above which a text is an echo, and that of different ones below which it is a loop.
_GRAM, _SHORT, _ECHO, _LOOP = 6, 3, 0.5, 0.6
#: Characters of the pieces by which it is told whether a text copies anything.
_PIECE = 20
#: Fewest words of a text that is compared with what was read, or of which the language is told.
_COMPARED, _TOLD = 12, 8
#: Characters at the end of a text in which words of the model's own begin.
_TAIL = 240
#: Share of common words of the language asked for above which a text is in it.
_KNOWN = 0.1
#: Difference of log-probabilities above which a text is in a language rather than in another.
_DOUBT = 10.0
#: Common words by language: a text with many of those asked for needs no closer look.
_COMMON = {
    "en": "the and of to is that it for you not are my we this with have they what would about from by more your how "
    "there can but if or people think who i'm it's don't i",
    "de": "der die das und ist nicht ich ein eine mit es sich auf wir aber für dass sie auch wenn was den dem zu im",
    "fr": "le les des et est pas je une que qui pour ce nous mais dans ne plus sur au du c'est j'ai il elle",
    "es": "el los las y una por para con lo yo se pero más como si mi su del que es está hay",
}
_MARKS = {name: pattern for name, pattern in _DATA["markup"].items() if name not in ("bullet", "count")}
#: Keys under which a reply in JSON holds its text.
_KEYS = ("post", "tweet", "text", "message", "response", "reply", "content", "answer", "report", "statement")
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_EACH = re.compile(rf"[\u3040-\u30ff\u3400-\u9fff]|{_WORD.pattern}")
_LINE = re.compile(r"^[^\S\n]*[*_]*([^\W\d][\w.' -]{0,30}?)[*_]*[:\uff1a][*_]*[^\S\n]+\S", re.MULTILINE)
#: What every text with words in front of it has near its beginning, marks that can stand there, and ends of sentences.
_HEADED = re.compile(r"[:\uff1a\n\]]|\s[\u2013\u2014-]\s")
_HEAD, _GAP, _STOP = re.compile(r"[\s*_#>\"“¡¿(\[@-]*"), re.compile(r"[*_]*\s*"), re.compile(r"[.!?][\"')\]]*\s+")
_QUOTES = ('""', "“”", "„“", "«»", "「」", "''")


class Sign(NamedTuple):
    """A sign, and the characters of the reply that show it."""

    name: str
    start: int
    end: int
    sure: bool = False
    """Whether no person would say this in the role, so that a study may take it out."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """For what a reply was asked, as far as signs depend on it.

    Attributes
    ----------
    author : str
        Name of the agent that is to speak; empty where it has none.
    others : tuple of str
        Names of others whose messages it was shown.
    language : str
        ISO 639-1 code of the language that was asked for; empty for any.
    words : int or None
        Most words that were asked for.
    read : tuple of str
        The messages that it was shown.
    task : tuple of str
        The other texts of the prompt.
    """

    author: str = ""
    others: tuple[str, ...] = ()
    language: str = "en"
    words: int | None = None
    read: tuple[str, ...] = ()
    task: tuple[str, ...] = ()


def _compiled(written: str, flags: int = 0) -> re.Pattern[str]:
    for name, piece in _DATA["pieces"].items():
        written = written.replace(f"<{name}>", piece)
    return re.compile(written.replace("\n", ""), re.IGNORECASE | re.MULTILINE | flags)


@lru_cache(maxsize=64)
def _pattern(kind: str, name: str) -> re.Pattern[str]:
    return _compiled(_DATA[kind][name])


@lru_cache(maxsize=512)
def _any(kind: str, author: str = "") -> re.Pattern[str]:
    """Any pattern of a kind, about the author."""
    named = "|".join(map(re.escape, _called(author))) or "(?!)"
    written = "|".join(f"(?:{each})" for each in _DATA[kind].values())
    return _compiled(written.replace("<name>", f"(?:{named})"))


@lru_cache(maxsize=1 << 10)
def _called(name: str) -> list[str]:
    """What somebody is called: the whole name, its first and last part, and the first with an initial."""
    parts = name.split()
    short = [parts[0], parts[-1], f"{parts[0]} {parts[-1][0]}."] if len(parts) > 1 else []
    return sorted({*filter(None, [name]), *(each for each in short if len(each) > 2)}, key=len, reverse=True)


def _near(kind: str, text: str, author: str = "") -> bool:
    """Whether anything stands in a text without which it shows no sign of a kind."""
    low = text.lower()
    return any(each in low for each in _DATA["near"][kind]) or any(each.lower() in low for each in _called(author))


def wordless(text: str) -> bool:
    """Whether a whole reply is a word for nothing, such as N/A."""
    return len(text) < 80 and _pattern("empty", "wordless").fullmatch(text) is not None


def signs_in(text: str, shown: Occasion) -> list[Sign]:
    """The signs in a reply, by place."""
    found: list[Sign] = []
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    start, end = _json(text, start, end, found)
    lines = [Sign("lines", start + a, start + b, True) for a, b in _lines(text[start:end], shown)]
    # Where it speaks for several, a label in front is one of theirs.
    while not lines and (moved := _front(text, start, end, shown, found)):
        start = moved
    while moved := _behind(text, start, end, found):
        end = moved
    _marks(text, start, end, found)
    body = text[start:end]
    found += [*lines, *(Sign(name, start, end) for name in _whole(body, shown))]
    if _near("role", text, shown.author) and (match := _any("role", shown.author).search(text, start, end)):
        found.append(Sign("role", *match.span()))
    return sorted(found, key=lambda sign: (sign.start, -sign.end))


def names_of(signs: Iterable[Sign]) -> tuple[str, ...]:
    """The signs that occur, each once, in the order of :data:`SIGNS`, those of one's own behind."""
    occur = {sign.name for sign in signs}
    return tuple(name for name in SIGNS if name in occur) + tuple(sorted(occur.difference(SIGNS)))


def stripped(text: str, signs: Iterable[Sign], taken: Collection[str]) -> str:
    """A reply without the characters of its sure signs that are taken out; never without all its words."""
    left, place = [], 0
    for sign in sorted((sign for sign in signs if sign.sure and sign.name in taken), key=lambda sign: sign.start):
        left.append(text[place : sign.start])
        place = max(place, sign.end)
    if not left:
        return text
    rest = re.sub(r"\n{3,}", "\n\n", "".join([*left, text[place:]])).strip()
    return rest if _WORD.search(rest) else text


def _front(text: str, start: int, end: int, shown: Occasion, found: list[Sign]) -> int:
    """Where the text begins behind words of the model's own, or a name, in front of it; 0 where there are none."""
    if not _HEADED.search(text, start, min(end, start + 400)):
        return 0
    head = _HEAD.match(text, start, end)
    at = head.end() if head else start
    for kind, pattern in (("preamble", _any("preamble", shown.author)), ("names", _names(shown.author, shown.others))):
        match = pattern.match(text, at, end) or pattern.match(text, start, end)
        if match and (stop := _next_word(text, match.end(), end)):
            found.append(Sign(kind, start, stop, True))
            return stop
    return 0


def _next_word(text: str, place: int, end: int) -> int:
    """Where the text goes on after a label and the marks and blanks behind it; 0 where nothing follows."""
    behind = _GAP.match(text, place, end)
    place = behind.end() if behind else place
    return place if _WORD.search(text, place, end) else 0


@lru_cache(maxsize=256)
def _names(author: str, others: tuple[str, ...]) -> re.Pattern[str]:
    """The author's name, a label of somebody, or the name of another who goes on in the first person."""
    own = "|".join([*map(re.escape, _called(author)), _DATA["names"]["labels"].replace("\n", "")])
    full = "|".join(re.escape(other) for other in others if " " in other) or "(?!)"
    theirs = "|".join(re.escape(each) for other in others for each in _called(other)) or "(?!)"
    around, colon = r"[\s*_\"”)\]]*(?:\([^)\n]{0,40}\))?[*_]*", r"[:\uff1a](?!\d)"
    whole = (
        rf"(?:{re.escape(author)}(?:\s+[\u2013\u2014-]\s|\s*\n)|from:\s*{re.escape(author)}\s*\n)" if author else "(?!)"
    )
    spoken = r"(?=[*_]*\s*(?:I\b|I['\u2019]|My\b|We\b|Ich\b|Je\b|J['\u2019]|Yo\b|Io\b|Ik\b))"
    # Whoever says "you" behind a label speaks to whom it names.
    spoken_to = r"(?![*_]*\s*(?:you|your|you're|du|sie|tu|vous|usted)\b)"
    return re.compile(
        rf"(?:{own}|{full}){around}{colon}{spoken_to}|{whole}|(?:{theirs}){around}{colon}{spoken}", re.IGNORECASE
    )


def _behind(text: str, start: int, end: int, found: list[Sign]) -> int:
    """Where the text ends in front of words of the model's own behind it; 0 where there are none."""
    # A last paragraph, or the last sentence of it.
    tail = max(text.rfind("\n", start, end) + 1, start)
    near = _near("closing", text[max(tail, end - _TAIL) : end])
    for place in dict.fromkeys([tail, *_sentences(text, tail, end)]) if near else ():
        head = _HEAD.match(text, place, end)
        for at in dict.fromkeys([place, head.end() if head else place]):
            match = _any("closing").match(text, at, end)
            if match and text[match.end() : end].strip(" \t)]*_\"'.!?") == "" and _WORD.search(text, start, place):
                cut = len(text[start:place].rstrip().rstrip("-*_ \n"))
                found.append(Sign("preamble", start + cut, end, True))
                return start + cut
    counted = text[end - 1 : end] in ")]*_s." and "word" in text[end - 20 : end].lower()
    count = _pattern("markup", "count").search(text, max(start, end - 60), end) if counted else None
    if count and count.end() == end and count.start() > start and re.search(r"[(\[*:]", count[0]):
        found.append(Sign("markup", count.start(), end, True))
        return count.start()
    return 0


def _sentences(text: str, start: int, end: int) -> list[int]:
    """Where the last sentences of a paragraph begin, the last first."""
    begins = [match.end() for match in _STOP.finditer(text, start, end)]
    return begins[:-3:-1]


def _json(text: str, start: int, end: int, found: list[Sign]) -> tuple[int, int]:
    """The part of a reply in JSON that is its text."""
    if text[start : start + 1] != "{" or text[end - 1] != "}":
        return start, end
    try:
        value = json.loads(text[start:end])
    except ValueError:
        return start, end
    said = [value[key] for key in _KEYS if isinstance(value.get(key), str)] if isinstance(value, dict) else []
    place = text.find(said[0], start, end) if len(said) == 1 and said[0] else -1
    if place < 0:
        found.append(Sign("markup", start, start, True))
        return start, end
    stop = place + len(said[0])
    found += [Sign("markup", start, place, True), Sign("markup", stop, end, True)]
    return place, stop


def _marks(text: str, start: int, end: int, found: list[Sign]) -> None:
    """Marks of Markdown, HTML and the stage, and quotes around the whole."""
    body = text[start:end]
    for quotes in _QUOTES:
        if len(body) > 2 and body[0] + body[-1] == quotes and quotes[0] not in body[1:-1].replace("n't", ""):
            found += [Sign("markup", start, start + 1, True), Sign("markup", end - 1, end, True)]
            break
    if any(each in body for each in "*_#`<[(-"):
        for name in _MARKS:
            found += [
                Sign("markup", start + match.start(), start + match.end(), True)
                for match in _pattern("markup", name).finditer(body)
            ]
    bullets = list(_pattern("markup", "bullet").finditer(body))
    if len(bullets) > 1:
        found += [Sign("markup", start + match.start(), start + match.end(), True) for match in bullets]


def _lines(body: str, shown: Occasion) -> Iterator[tuple[int, int]]:
    """Lines that are written for others: several, with the labels of at least two speakers."""
    if "\n" not in body:
        return
    spoken = list(_LINE.finditer(body))
    labels = Counter(match[1].casefold().strip() for match in spoken)
    known = _names(shown.author, ())
    named = {called.casefold() for other in shown.others for called in _called(other)}
    some = any(label in named or known.fullmatch(f"{label}:") for label in labels)
    if len(labels) > 1 and (some or max(labels.values()) > 1):
        own = {*map(str.casefold, _called(shown.author)), "me"}
        for match in spoken:
            if match[1].casefold().strip() not in own:
                stop = body.find("\n", match.end())
                yield match.start(), len(body) if stop < 0 else stop


def _whole(body: str, shown: Occasion) -> Iterator[str]:
    """Signs of a text as a whole."""
    words = _EACH.findall(body.casefold())
    if shown.language and foreign(body, words, shown.language):
        yield "language"
    if shown.words is not None and len(words) > shown.words and len(_WORD.findall(body)) > shown.words:
        yield "length"
    if len(words) < _COMPARED:
        return
    pieces = [body[place : place + _PIECE] for place in range(0, len(body) - _PIECE, 2 * _PIECE)]
    for name, texts in (("echo", shown.read), ("echo_task", shown.task)):
        # Most texts copy nothing, which a few pieces of them tell.
        near = [_plain(text) for text in texts if any(piece in text for piece in pieces)]
        grams = _grams(words, _GRAM) if near else []
        if sum(any(gram in text for text in near) for gram in grams) > _ECHO * max(len(grams), 1):
            yield name
    if len(set(words)) < _LOOP * len(words) and len(set(short := _grams(words, _SHORT))) < _LOOP * len(short):
        yield "loop"


def _grams(words: Sequence[str], n: int) -> list[str]:
    """Passages of n words."""
    return [" ".join(words[place : place + n]) for place in range(len(words) - n + 1)]


@lru_cache(maxsize=1 << 12)
def _plain(text: str) -> str:
    """The words of a text, one blank apart, and so the signs of scripts without blanks."""
    return " ".join(_EACH.findall(text.casefold()))


def foreign(text: str, words: Sequence[str], language: str) -> bool:
    """Whether a text, whose words are in lower case, is in another language than asked."""
    if len(words) < _TOLD:
        return False
    common = _common(language)
    if common and sum(map(common.__contains__, words)) > _KNOWN * len(words):
        return False
    # Its model takes half a second to load, and most texts need none.
    from py3langid import rank

    scores = dict(rank(text))
    best = max(scores, key=scores.__getitem__)
    return bool(best != language and scores[best] - scores.get(language, float("-inf")) > _DOUBT)


@lru_cache(maxsize=32)
def _common(language: str) -> frozenset[str]:
    return frozenset(_COMMON.get(language, "").split())
