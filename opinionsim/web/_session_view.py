"""What a page of a room shows of its session; it is read from the store each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from opinionsim.messages import SPOKEN, numbers_in, spelled_out
from opinionsim.metrics import evidence_statement
from opinionsim.schedules import PARTICIPANT
from opinionsim.store import TurnRow
from opinionsim.web._rights import Visitor

if TYPE_CHECKING:
    from opinionsim.specification import PlannedRun
    from opinionsim.store import AgentRow, StoreReader, WaitRow

#: States in which a session is over for good.
CLOSED = ("complete", "withdrawn")
#: Kinds of text that a page does not name, for they are what its dialogue is made of.
_USUAL = ("speech", "moderation", "post", "response")
#: Statuses of turns as a page words them; others have a text.
_WORDLESS = {"empty": "said nothing", "skipped": "was not asked"}


@dataclass(frozen=True)
class Line:
    """One message of a session on a page.

    Attributes
    ----------
    turn : int or str
        The turn, or the place in the order shown if the visitor must not know the author.
    name, role, model : str
        Name, role and model of the author; the model is empty for a person.
    kind, label, text : str
        Kind of text, its name where the page says it, and the text.
    wordless : str
        What became of a turn without a text; otherwise empty.
    cut_off : bool
        Whether the text was cut off.
    own : bool
        Whether the visitor is the author.
    blind : bool
        Whether the author is hidden from the visitor.
    """

    turn: int | str
    name: str
    role: str
    model: str
    kind: str
    label: str
    text: str
    wordless: str
    cut_off: bool
    own: bool
    blind: bool


def name_of(row: WaitRow | None) -> str:
    """Name that distinguishes a question from all others, even if it is asked again after a stop; empty for none."""
    return "" if row is None else f"{row.turn}.{row.call}.{row.attempt}.{row.asked_at}"


class Sight:
    """What a visitor sees of the messages of a session.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    agents : sequence of AgentRow
        Its cast.
    visitor : Visitor
        The visitor.
    """

    def __init__(self, planned: PlannedRun, agents: Sequence[AgentRow], visitor: Visitor) -> None:
        self.seat = visitor.seats.get(planned.run_id)
        self._all = visitor.owner
        self._looks_on = planned.run_id in visitor.watches
        interaction = planned.spec.interaction
        self._public, self._private, self._acts = interaction.public, interaction.private, interaction.acts
        self._owners = {act.kind for act in self._acts.values() if act.audience == "owner"}
        self._worded, self.beside = interaction.worded, interaction.beside
        #: Of messages that the seat was shown the turn that showed them first, and their place among all; and those of
        #: which it was told who they are from. The order in which they were written could tell as much.
        self._shown: dict[int, tuple[int, int]] = {}
        self._signed: set[int] = set()
        self.know(agents)

    def know(self, agents: Sequence[AgentRow]) -> None:
        """Read the cast, which is recorded once the run has begun."""
        self.agents = {row.agent: row for row in agents}

    def heed(self, turns: Iterable[TurnRow]) -> None:
        """Note what the seat was shown."""
        for row in turns:
            if row.agent == self.seat:
                self.show(row.turn, row.act, row.reads)

    def show(self, turn: int, act: str, reads: Iterable[int | str]) -> None:
        """Note what a turn of the seat shows."""
        refs = [ref for ref in reads if isinstance(ref, int)]
        for ref in refs:
            self._shown.setdefault(ref, (turn, len(self._shown)))
        if act in self._acts and not self._acts[act].blind:
            self._signed.update(refs)

    def first_shown(self, row: TurnRow) -> list[int]:
        """The messages that a turn of the seat was the first to show."""
        return [ref for ref, (turn, _) in self._shown.items() if turn == row.turn] if row.agent == self.seat else []

    def sees(self, row: TurnRow) -> bool:
        """Whether the visitor sees a message."""
        return self.hears(row) or (row.turn in self._shown and self._is_told(row))

    def hears(self, row: TurnRow) -> bool:
        """Whether the visitor sees a message without having been shown it by a turn of its own."""
        everything = self._all or (self._looks_on and not self._public)
        # Its own numbers of messages would name these by their turns, and tell it how it rated them before.
        own = row.agent == self.seat and not numbers_in(row.text)
        return self._is_told(row) and (everything or row.kind in self._public or own)

    def _is_told(self, row: TurnRow) -> bool:
        """Whether a message stands in a dialogue at all."""
        # A moderator without a remark says nothing that a dialogue shows.
        return self._all if row.kind in self._owners else row.kind not in self._private and row.status != "silent"

    def line(self, row: TurnRow) -> Line:
        """A message as a page shows it."""
        who = self.agents.get(row.agent)
        unheard = "" if row.status in SPOKEN else _WORDLESS.get(row.status, "gave no answer")
        worded = self._worded.get(row.kind)
        wordless = unheard if worded is None else worded.get(row.text, "")
        name, role, model = ("", "", "") if who is None else map(spelled_out, (who.name, who.role, who.model))
        index: int | str = row.turn
        blind = not self.hears(row) and row.turn in self._shown and row.turn not in self._signed
        if blind:
            name, role, model = row.kind.capitalize(), "", ""
            turn, place = self._shown[row.turn]
            index = f"{turn - 1}.{place:05d}"
        elif not wordless and row.act in self._acts and not self._acts[row.act].draws and role != PARTICIPANT:
            # Nobody has written what a member other than its author puts before the others.
            name, role, model = "Given text", "", ""
        return Line(
            turn=index,
            name=name or f"Agent {row.agent}",
            role="" if role in (PARTICIPANT, name.casefold()) else role,
            model=model if who is None or who.evidence != "human" else "",
            kind=row.kind,
            label="" if worded or row.kind in _USUAL else row.kind,
            text="" if wordless else row.text,
            wordless=wordless,
            cut_off=row.status == "truncated",
            own=row.agent == self.seat,
            blind=blind,
        )

    def lines(self, turns: Sequence[TurnRow]) -> list[Line]:
        """The messages that the visitor sees, in order; those without a name before the turn that showed them."""
        self.heed(turns)
        return sorted((self.line(row) for row in turns if self.sees(row)), key=lambda line: float(line.turn))


def standing(reader: StoreReader, run_id: str) -> tuple[str, str]:
    """Status of a run, and the kind of evidence it is; both empty before the run is registered."""
    row = reader.registered([run_id]).get(run_id)
    return ("", "") if row is None else (row.status, row.evidence)


def given_up(own: Sequence[TurnRow]) -> bool:
    """Whether a seat gets no more questions, because two in a row had no answer in time."""
    return [row.status for row in own if row.kind != "signal"][-2:] == ["empty", "empty"]


def stamp(evidence: str) -> str:
    """What a title says about the evidence; empty before there is any."""
    return evidence_statement([evidence]) if evidence else ""


def export(planned: PlannedRun, agents: Sequence[AgentRow], turns: Sequence[TurnRow], evidence: str) -> dict[str, Any]:
    """A session as JSON values: the run, its cast, and all messages."""
    return {
        "run_id": planned.run_id,
        "replicate": planned.replicate,
        "conditions": planned.cell.label,
        "evidence": evidence,
        "agents": [asdict(row) for row in agents],
        "turns": [asdict(row) for row in turns],
    }


def as_csv(session: Mapping[str, Any]) -> str:
    """The messages of a session as CSV. Texts that a spreadsheet would run are marked as texts."""
    import pandas as pd

    from opinionsim.foundation.spreadsheets import write_csv

    who = pd.DataFrame(session["agents"], columns=["agent", "name", "role", "model", "evidence"])
    turns = pd.DataFrame(session["turns"], columns=[each.name for each in fields(TurnRow)])
    turns["reads"] = [" ".join(map(str, reads)) for reads in turns["reads"]]
    return str(write_csv(turns.merge(who, on="agent", how="left").assign(run_id=session["run_id"])))
