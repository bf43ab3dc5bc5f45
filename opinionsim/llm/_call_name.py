"""Names of calls inside a turn; no other module spells them."""

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

    The name is part of the keys of journal entries, from which seeds are derived. It is ``reply``, ``reply.2`` for a
    second draw, ``reflect``, ``select``, ``judge.ID`` or ``judge.ID.ABOUT`` for the model of an instrument,
    ``rating.ID`` or ``rating.VARIABLE`` for an opinion, ``source``, or any other word that a user chooses.
    """

    role: Role
    """What the call is for."""
    draw: int = 1
    """Number among similar calls, from 1; for a judge, the number of the question."""
    instrument: str = ""
    """Beginning of the instrument's id, or the variable that a person rated; empty for none."""
    about: int | None = None
    """Index of the turn that the coded text is about."""
    word: str = ""
    """A word that a user chose: the whole name for the role ``own``, otherwise its end."""

    @classmethod
    @lru_cache(maxsize=1 << 12)
    def of(cls, text: str) -> CallName:
        """Parse the text of a name.

        A judge's second question about a single text has the same text as its first about that text and turn 2.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            return cls("own", word=text)
        role, _, instrument, about, draw, word = found.groups("")
        return cls(role, int(draw or 1), instrument, int(about) if about else None, word)  # type: ignore[arg-type]

    @classmethod
    def coding(cls, role: Role, instrument_id: str, about: int | None, asked: str = "judge") -> CallName:
        """The name of an instrument's reading of a text or, with `asked`, of the question to its judge."""
        own = cls.of(asked)
        draw, word = (own.draw, own.word) if own.role == "judge" and not own.instrument else (1, asked)
        return cls(role, draw, instrument_id[:_PREFIX], about, word)

    def __str__(self) -> str:
        role, draw = self.role if self.role != "own" else "", self.draw if self.draw > 1 else ""
        pieces = (role, self.instrument, self.about, draw, self.word)
        return ".".join(str(each) for each in pieces if each not in ("", None))

    @property
    def judge(self) -> str:
        """The name of the model behind an instrument, ``judge.ID``; empty if the turn's agent answers."""
        return f"judge.{self.instrument}" if self.role == "judge" and self.instrument else ""

    def priced_as(self, act: str) -> str:
        """The kind of a call in forecasts: the act of its turn for replies and judgements, otherwise its name."""
        return act if self.role in ("reply", "judge") else str(self)


#: An agent's reply.
REPLY = str(CallName("reply"))
#: The reflection of an agent's memory.
REFLECT = str(CallName("reflect"))
#: The choice among several replies.
SELECT = str(CallName("select"))
