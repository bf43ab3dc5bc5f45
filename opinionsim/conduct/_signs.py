"""Signs of conduct in a reply: what a model writes in addition to an answer in its role, and where."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from opinionsim.messages import Message, Speech

#: The signs: words of the model's own around the text; a name or label in front; lines written for others; marks of
#: Markdown, HTML, JSON and the stage; another language than asked; more words than asked; whole passages of what was
#: read, or of the task; the same words over and over; words about the role, or out of it.
SIGNS = ("preamble", "names", "lines", "markup", "language", "length", "echo", "echo_task", "loop", "role")

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))
#: Name and version of the rules.
RULES = f"rules {_DATA['version']}"

#: Words of a passage that is compared with what was read, and with the text itself; the share of copied passages above
#: which a text is an echo, and that of different ones below which it is a loop; words in a row that an echo copies.
_GRAM, _SHORT, _ECHO, _LOOP, _ROW = 6, 3, 0.5, 0.6, 20
#: Fewest words of a text that is an echo, that is a loop, and of which the language is told; most that are compared.
_COMPARED, _REPEATED, _TOLD, _MOST = 24, 12, 8, 2000
#: Characters of the pieces that show whether a text copies anything.
_PIECE = 20
#: Characters at either end that may contain the model's own words, and those of a first line or last paragraph.
_END, _LINE = 2000, 400
#: Maximum number of times to look for the model's own words, names and marks within each other.
_ROUNDS = 6
#: Share of common words of the language asked for above which a text is in it, and difference of log-probabilities
#: above which it is in a language rather than in another.
_KNOWN, _DOUBT = 0.1, 10.0
_COMMON, _WORDS = (
    {name: frozenset(words.split()) for name, words in _DATA[kind].items()} for kind in ("common", "words")
)
_BLANKS = {**dict.fromkeys(map(ord, _DATA["blanks"]), " "), 0x2019: "'"}
_PART, _COLON, _JOINED = re.compile(r"[^\W_]+"), re.compile("[:\uff1a]"), re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_EACH, _NAMES = re.compile(f"{_JOINED.pattern}|[^\\W_]+"), re.compile("\x01(?:[ -]\x01)+")
#: What a text has with words of the model's own in front; marks around a first line; pairs of quotes; marks without one
#: of which a text has none; ends of sentences and of brackets; marks of a label.
_HEADED, _AROUND = (":", "\uff1a", "]", ">", " - ", "\u2013", "\u2014"), ' \t*_#>"\u201c\u201d\xab\xbb[]~'
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "'": "'"}
_MARKED, _ENDS = tuple("*<~[`>|\n"), '.!?\u2026\u3002\uff01\uff1f"\u201d\xbb*'
#: Words behind a text: about it; offers of another one; and what may be either.
_CLOSING = ("sure", "offers", "perhaps")
_CLOSED, _MARKS = frozenset(')]\uff09\u3011*_"\u201d'), frozenset("#[<*_")


class Sign(NamedTuple):
    """A sign, and the characters of the reply that show it."""

    name: str
    start: int
    end: int
    sure: bool = False
    """Whether no person would write this in the role, so a study can remove it."""


@lru_cache(maxsize=32)
def _pattern(kind: str, name: str) -> re.Pattern[str]:
    """A pattern of the data file."""
    written = _DATA[kind][name]
    for piece, meant in _DATA["pieces"].items():
        written = written.replace(f"<{piece}>", meant)
    return re.compile(written.replace("\n", ""), re.MULTILINE)


@lru_cache(maxsize=1 << 10)
def _forms(name: str) -> frozenset[str]:
    """The words of a name in lower case, in any case; none for a name in small letters."""
    parts = [part.lower() for part in _PART.findall(name) if part[0].upper() == part[0] and len(part) > 2]
    stems = {*parts, *(part[:-1] for part in parts if len(part) > 4 and part[-1] in "a\u0430o\u0435\u044f")}
    return frozenset([*parts, *(stem + case for stem in stems if len(stem) > 3 for case in _WORDS["cases"])])


@lru_cache(maxsize=1 << 10)
def _called(name: str) -> frozenset[str]:
    """Forms of a person's name in lower case: the whole name, its first and last part, and either with an initial."""
    parts = (low := name.lower()).split()
    if len(parts) < 2:
        return frozenset(filter(None, (low,)))
    short = [f"{parts[0]} {parts[-1][0]}.", f"{parts[0][0]}. {parts[-1]}", low.replace(" ", "")]
    return frozenset([low, *short, *(part for part in (parts[0], parts[-1]) if len(part) > 2)])


def _masked(text: str, author: str) -> str:
    """A text in lower case with a mark in place of the author's name, which is no word in small letters."""
    forms = _forms(author)
    if _JOINED.search(author):
        # Nothing sets a name apart from other words.
        text = text.replace(author, "\x01").replace("".join(author.split()), "\x01")
    elif forms:
        text = _PART.sub(lambda word: "\x01" if word[0].lower() in forms and not word[0].islower() else word[0], text)
    return _NAMES.sub("\x01", text.lower())


def _joined(text: str) -> bool:
    """Whether words of a text are not set apart by blanks."""
    return not text.isascii() and _JOINED.search(text) is not None


def words_in(low: str) -> list[str]:
    """The words of a text in lower case; in scripts without spaces, its characters."""
    # To split takes a third of looking for words by a pattern.
    if _joined(low):
        return _EACH.findall(low)
    return f" {low.translate(_BLANKS)} ".replace(" '", " ").replace("' ", " ").split()


def wordless(text: str) -> bool:
    """Whether a whole reply is only a word for nothing, such as N/A."""
    text = text.strip()
    return len(text) < 80 and _pattern("empty", "wordless").fullmatch(text.lower()) is not None


def signs_in(
    text: str,
    words: Sequence[str],
    known: frozenset[str],
    speech: Speech,
    received: Sequence[Message] = (),
    task: Sequence[str] | None = None,
) -> list[Sign]:
    """Find the signs in a reply, in order of their place.

    Parameters
    ----------
    text : str
        The reply.
    words, known
        Its words in lower case, as a sequence and as a set.
    speech : Speech
        In whose name and how the text was requested.
    received : sequence of Message
        The messages that the agent was shown.
    task : sequence of str, optional
        The other texts of the prompt; by default, the reply may repeat what the agent was shown.
    """
    lined = "\n" in text
    found = list(_lines(text, speech.author, received)) if lined else []
    spoken_for = bool(found)
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    for _ in range(_ROUNDS):
        before = start, end
        start, end = _unwrapped(text, start, end, found)
        if start < end and (lined or any(each in text for each in _HEADED)):
            # Where it speaks for several, a label in front is one of theirs.
            start = _led(text, start, end, speech.author, found) or (
                start if spoken_for else _named(text, start, end, speech.author, received, found)
            )
        if start < end and (lined or text[end - 1] in _CLOSED or not known.isdisjoint(_WORDS["closes"])):
            end = _behind(text, start, end, speech.author, found)
        # Behind what a person may have said, marks and names belong to the text.
        if before == (start, end) or start >= end or not all(sign.sure for sign in found):
            break
    body = text[start:end]
    if found:
        words = words_in(body.lower())
    found += _marks(body, start)
    found += [Sign(name, start, end) for name in _whole(body, words, known, speech, received, task)]
    return sorted(set(found), key=lambda sign: (sign.start, -sign.end, sign.name))


def names_of(signs: Iterable[Sign]) -> tuple[str, ...]:
    """The signs that occur, each once, in the order of :data:`SIGNS`, followed by signs that you wrote."""
    occur = {sign.name for sign in signs}
    return tuple(name for name in SIGNS if name in occur) + tuple(sorted(occur.difference(SIGNS)))


def stripped(text: str, signs: Iterable[Sign], taken: Collection[str]) -> str:
    """A reply without the characters of its sure signs, if they are to be removed."""
    return _without(text, [sign for sign in signs if sign.sure and sign.name in taken])


def remains(text: str, signs: Iterable[Sign]) -> str:
    """A reply without the model's own words, names and marks, whether they are sure or not."""
    return _without(text, [sign for sign in signs if sign.sure or sign.name in ("preamble", "names")])


def _without(text: str, signs: Sequence[Sign]) -> str:
    left, place = [], 0
    for sign in sorted(signs, key=lambda sign: sign.start):
        left.append(text[place : sign.start])
        place = max(place, sign.end)
    return re.sub(r"\n{3,}", "\n\n", "".join([*left, text[place:]])).strip() if signs else text


def _begins(text: str, place: int, end: int) -> bool:
    """Whether a sentence begins at a place, that is, without a lower-case letter."""
    while place < end and text[place] in " *_\"“„«'(¿¡":
        place += 1
    return place < end and not text[place].islower()


def _led(text: str, start: int, end: int, author: str, found: list[Sign]) -> int:
    """Start of the text after the model's own words; 0 if there are none."""
    stop = min(end, start + _LINE)
    newline, colon = text.find("\n", start, stop), _COLON.search(text, start, stop)
    line = newline if newline >= 0 else end if end == stop else 0
    for place in dict.fromkeys((line, colon.end() if colon else 0)):
        raw = text[start:place]
        masked, whole = _masked(raw.strip(_AROUND), author), place == line
        if not place or not (whole or _begins(text, place, end)):
            continue
        sure = _pattern("preamble", "line" if whole else "goes_on").fullmatch(masked) or (
            raw.startswith(("#", "[", "**", "__")) and _pattern("preamble", "headed").fullmatch(masked)
        )
        if sure or _pattern("preamble", "perhaps").fullmatch(masked):
            place = end - len(text[place:end].lstrip("*_]").lstrip())
            found.append(Sign("preamble", start, place, bool(sure)))
            return place
    return 0


def _named(text: str, start: int, end: int, author: str, received: Sequence[Message], found: list[Sign]) -> int:
    """Start of the text after a name, if a name precedes it."""
    match = _pattern("shape", "label").match(text, start, min(end, start + _LINE))
    if not match or not (match.end() == end or _begins(text, match.end(), end)):
        return start
    label, own, labels = match[2].lower(), author.lower(), _pattern("names", "labels")
    colon, marked = bool(_COLON.search(match[0])), not _MARKS.isdisjoint(match[0])
    alone, behind = not colon and match[0][-1:] == "\n", text[match.end() : match.end() + 60]
    if own and label == own:
        called = not author[0].islower() and (marked or " " in own or bool(labels.fullmatch(own)))
        sure = called and not match[1] and (colon or (alone and marked))
        shown = colon or not alone or " " in own
    elif label in _called(author):
        sure = colon and (marked or any(sign.name == "preamble" for sign in found))
        shown = not alone and not behind[:1].isdigit()
    else:
        others = {message.author for message in received}
        theirs = labels.fullmatch(label) or (" " in label and label in map(str.lower, others))
        speaks = any(label in _called(other) for other in others) and _pattern("shape", "spoken").match(behind)
        shown = colon and bool(speaks or theirs) and not _pattern("shape", "spoken_to").match(behind)
        sure = False
    if shown:
        found.append(Sign("names", start, match.end(), sure))
    return match.end() if shown else start


def _behind(text: str, start: int, end: int, author: str, found: list[Sign]) -> int:
    """End of the text before the model's own words, or a word count, that follow it."""
    tail = max(start, end - _LINE)
    newline, bracketed = text.rfind("\n", tail, end) + 1, text[end - 1] in _CLOSED
    if (count := _pattern("shape", "count").search(text, tail, end)) and count.start() > start:
        number, words = int(count[1] or count[2] or count[3]), len(words_in(text[start : count.start()].lower()))
        found.append(Sign("markup", count.start(), end, number > 9 and abs(number - words) <= number / 3))
        return len(text[: count.start()].rstrip())
    group = _pattern("shape", "brackets").search(text, tail, end) if bracketed else None
    closed = group and text[tail : group.start()].rstrip()[-1:] in _ENDS
    places = (newline, text.rfind("\n\n", tail, end) + 2, group.start() if group and closed else 0)
    for place in dict.fromkeys(each for each in places if each > max(start, 2)):
        masked = _masked(text[place:end], author)
        told = [sort for sort in ("sure", "offers") if _pattern("closing", sort).search(masked)]
        if told or _pattern("closing", "perhaps").match(masked):
            cut = start + len(text[start:place].rstrip())
            if text[cut - 4 : cut] in ("\n---", "\n***", "\n___"):
                cut = start + len(text[start : cut - 3].rstrip())
            # A person, too, offers another version; and says something of its own beside what a model adds.
            parts = filter(str.strip, _pattern("shape", "sentence").split(masked))
            alone = all(any(_pattern("closing", sort).search(part) for sort in _CLOSING) for part in parts)
            presented = any(sign.name == "preamble" and sign.sure for sign in found)
            found.append(Sign("preamble", cut, end, alone and ("sure" in told or (presented and bool(told)))))
            return cut
    last = max((match.end() for match in _pattern("shape", "sentence").finditer(text, tail, end)), default=end)
    if start < last < end and any(
        _pattern("closing", each).search(_masked(text[last:end], author)) for each in _CLOSING[:2]
    ):
        found.append(Sign("preamble", last, end))
    return end


def _unwrapped(text: str, start: int, end: int, found: list[Sign]) -> tuple[int, int]:
    """The part of a reply within a fence, a tag, JSON or quotes around all of it."""
    first, inner = text[start], (0, 0)
    if first == "{" and text[end - 1] == "}":
        match = _pattern("shape", "json").fullmatch(text, start, end)
        inner = match.span(1) if match else inner
        if not match and _pattern("shape", "object").match(text, start):
            found.append(Sign("markup", start, end))
    elif first in "`<" and (match := _pattern("shape", "opens").match(text, start, end)):
        closes = f"</{match[1]}>" if match[1] else "```"
        last = end - len(closes)
        if last >= match.end() and text.find(closes, match.end(), end) == last:
            inner = match.end(), last
    elif text[end - 1] == _QUOTES.get(first) and end - start > 2:
        body = text[start + 1 : end - 1]
        inside = first in body or _QUOTES[first] in body
        if first == "'":
            inside = body[-1] not in ".!?" or bool(_pattern("shape", "apostrophe").search(body))
        inner = inner if inside else (start + 1, end - 1)
    if not inner[1]:
        return start, end
    found += [Sign("markup", start, inner[0], True), Sign("markup", inner[1], end, True)]
    body = text[inner[0] : inner[1]]
    return inner[1] - len(body.lstrip()), inner[0] + len(body.rstrip()) if body.strip() else inner[1]


def _marks(body: str, start: int) -> Iterator[Sign]:
    """Marks around words and in front of lines; otherwise, possible marks."""
    spans = [match.span() for match in _pattern("shape", "heading").finditer(body)] if "#" in body else []
    for match in _pattern("shape", "bold").finditer(body) if "**" in body or "__" in body else ():
        mark = len(match[1] or match[2])
        spans += [(match.start(), match.start() + mark), (match.end() - mark, match.end())]
    yield from (Sign("markup", start + first, start + last, True) for first, last in spans)
    if (
        not spans
        and any(each in body for each in _MARKED)
        and (perhaps := _pattern("shape", "maybe").search(body, 0, _END))
    ):
        yield Sign("markup", start + perhaps.start(), start + perhaps.end())


def _lines(text: str, author: str, received: Sequence[Message]) -> Iterator[Sign]:
    """Lines written for others: several with labels of speakers, or a single one after other words."""
    spoken = [(match, match[1].lower().strip()) for match in _pattern("shape", "speaker").finditer(text)]
    labels = Counter(label for _, label in spoken)
    if len(spoken) < 2 or (len(labels) < 2 and spoken[0][0].start() == 0):
        return
    others = {message.author for message in received}.difference((author,))
    full, named = set(map(str.lower, others)), frozenset().union(*map(_called, others))
    own = _called(author) | _WORDS["me"]
    theirs = any(label in named or _pattern("names", "labels").fullmatch(label) for label in labels.keys() - own)
    several = max(labels.values()) > 1 and (set(labels) in ({"q", "a"}, {"a", "b"}) or not own.isdisjoint(labels))
    # Who speaks to the author is somebody else, though nobody knows the name.
    several |= own.isdisjoint(labels) and bool(_pattern("shape", "addressed").search(_masked(text[:_END], author)))
    for match, label in spoken if theirs or several else ():
        if label not in own:
            stop = text.find("\n", match.end())
            yield Sign("lines", match.start(), stop if stop > 0 else len(text), label in full and len(labels) > 1)


def _whole(
    text: str,
    words: Sequence[str],
    known: frozenset[str],
    speech: Speech,
    received: Sequence[Message],
    task: Sequence[str] | None,
) -> Iterator[str]:
    """Signs of a text as a whole."""
    number, joined = len(words), _joined(text)
    if number >= _TOLD and _foreign(text, words, known, speech.language):
        yield "language"
    # A sign of a script without blanks is about half a word.
    if speech.words and number > speech.words * (2 if joined else 1):
        yield "length"
    if number >= _COMPARED and task is not None:
        ends = range(_PIECE, min(len(text), 10 * _MOST), _PIECE if joined else 4 * _PIECE)
        pieces = [text[end - _PIECE : end] for end in ends]
        read = [message.text for message in received if any(piece in message.text for piece in pieces)]
        asked = [each for each in task if any(piece in each for piece in pieces)]
        if read or asked:
            # A model copies what tags surround without them.
            plain = (re.sub(r"</?\w+>", " ", " | ".join(each).lower()) for each in (read, asked))
            yield from _echoes(words[:_MOST], *(" ".join(words_in(each)) for each in plain))
    if number >= _REPEATED and len(known) < _LOOP * number:
        short = _grams(words[:_MOST], _SHORT)
        if len(set(short)) < _LOOP * len(short):
            yield "loop"
    plays = joined or not known.isdisjoint(_WORDS["out"])
    tells = known.isdisjoint(_WORDS["first"]) and not known.isdisjoint(_forms(speech.author))
    masked = _masked(text[:_END], speech.author) if plays or tells else ""
    if (plays and _pattern("role", "plays").search(masked)) or (tells and _pattern("role", "tells").search(masked)):
        yield "role"


def _echoes(words: Sequence[str], read: str, task: str) -> Iterator[str]:
    """What a text copies most of its passages and many words in a row from: messages read, or the rest of the task."""
    grams, rows = _grams(words, _GRAM), _grams(words, _ROW)
    from_read = [gram in read for gram in grams]
    from_task = [gram in task and not there for gram, there in zip(grams, from_read, strict=True)]
    for name, copied, text in (("echo", from_read, read), ("echo_task", from_task, task)):
        if sum(copied) > _ECHO * len(grams) and any(row in text for row in rows):
            yield name


def _grams(words: Sequence[str], n: int) -> list[str]:
    """Passages of n words."""
    return [" ".join(words[place : place + n]) for place in range(len(words) - n + 1)]


def _foreign(text: str, words: Sequence[str], known: frozenset[str], language: str) -> bool:
    """Whether a text, given in lower-case words, is in a different language from the requested one."""
    common, least = _COMMON.get(language, frozenset()), _KNOWN * len(words)
    if not language or len(known & common) > least or sum(map(common.__contains__, words)) > least:
        return False
    # Its model takes half a second to load, and most texts need none.
    from py3langid import rank

    scores = dict(rank(text[:_END]))
    return language in scores and max(scores.values()) - scores[language] > _DOUBT
