"""Names of calls inside a turn: the only place that spells them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

#: What a call is for: a reply of the turn's agent, a reflection of its memory, the choice among several replies; a
#: question to the model of an instrument; an opinion that an instrument or a person gave; what was taken in at the
#: start of a run; or something else that code of a user's own asks for.
Role = Literal["reply", "reflect", "select", "judge", "rating", "source", "own"]

#: Characters of an instrument's id in the name of a call.
_PREFIX = 8
#: A number in the place of an instrument is the draw of a judge that is asked outside any run.
_TEXT = re.compile(
    r"(?P<role>(?P<coding>judge|rating)|reply|reflect|select|source)"
    rf"(?(coding)(?:\.(?P<instrument>(?!\d{{1,{_PREFIX - 1}}}(?:\.|\Z))[^.]+)(?:\.(?P<about>0|[1-9]\d*))?)?)"
    r"(?:\.(?P<draw>[2-9]|[1-9]\d+))?(?:\.(?P<word>.+))?",
    re.ASCII | re.DOTALL,
)


class CallName(NamedTuple):
    """The name of a call inside its turn.

    Its text stands in the keys of journal entries, from which seeds are made: ``reply``, ``reply.2`` of a second draw,
    ``reflect``, ``select``, ``judge.ID`` and ``judge.ID.ABOUT`` of the model of an instrument, ``rating.ID`` and
    ``rating.VARIABLE`` of an opinion, ``source``; or a word of a user's own.
    """

    role: Role
    """What the call is for."""
    draw: int = 1
    """Which of several like it, from 1; of a judge, how often it has asked."""
    instrument: str = ""
    """Beginning of the instrument's id, or the variable that a person rated; empty for none."""
    about: int | None = None
    """Index of the turn that the coded text is about."""
    word: str = ""
    """A word of a user's own: the whole text of the role ``own``, else its end."""

    @classmethod
    @lru_cache(maxsize=1 << 12)
    def of(cls, text: str) -> CallName:
        """The name that a text spells.

        A judge's second question about a text alone reads like its first about that text and turn 2.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            return cls("own", word=text)
        role, _, instrument, about, draw, word = found.groups("")
        return cls(role, int(draw or 1), instrument, int(about) if about else None, word)  # type: ignore[arg-type]

    @classmethod
    def coding(cls, role: Role, instrument_id: str, about: int | None, asked: str = "judge") -> CallName:
        """The name of what an instrument says of a text, or of what its judge is asked, which itself says `asked`."""
        own = cls.of(asked)
        draw, word = (own.draw, own.word) if own.role == "judge" and not own.instrument else (1, asked)
        return cls(role, draw, instrument_id[:_PREFIX], about, word)

    def __str__(self) -> str:
        role, draw = self.role if self.role != "own" else "", self.draw if self.draw > 1 else ""
        pieces = (role, self.instrument, self.about, draw, self.word)
        return ".".join(str(each) for each in pieces if each not in ("", None))

    @property
    def judge(self) -> str:
        """The name of the model behind an instrument, ``judge.ID``; empty where the turn's own agent is asked."""
        return f"judge.{self.instrument}" if self.role == "judge" and self.instrument else ""

    def priced_as(self, act: str) -> str:
        """The kind of a call in forecasts: the act of its turn for replies and judgements, else the name itself."""
        return act if self.role in ("reply", "judge") else str(self)


#: An agent's reply.
REPLY = str(CallName("reply"))
#: The reflection of an agent's memory.
REFLECT = str(CallName("reflect"))
#: The choice among several replies.
SELECT = str(CallName("select"))
