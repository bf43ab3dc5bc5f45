"""Elections of recorded sessions, from the frames of a store."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from opinionsim.consensus._consensus import ConsensusInteraction
from opinionsim.consensus._session_acts import DRAFT, PREDICTED, PUT, RANK, RATE, RATE_POSITION, STATE
from opinionsim.errors import ScheduleError
from opinionsim.llm import REPLY, CallName
from opinionsim.messages import SPOKEN
from opinionsim.store import Results

#: Columns of the frame, with their types.
SELECTIONS: Mapping[str, Any] = {
    "run_id": "str", "cell": "str", "replicate": "int64", "round": "int64", "ballots": "str", "elects": "bool",
    "rule": "str", "asked": "int64", "counted": "int64", "standing": "object", "ranks": "object", "winner": "Int64",
    "tied": "object", "evidence": "str",
}  # fmt: skip


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as mappings."""
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    return rows


def sessions_of(results: Results) -> Iterator[tuple[dict[str, Any], Recorded]]:
    """Consensus sessions, each with its row of ``runs``."""
    fields = {cell: each.get("fields", {}) for cell, each in results.declared.items()}
    runs, turns, opinions, entries = results.read("runs", "turns", "opinions", "entries")
    by_run = {name: dict(list(frame.groupby("run_id"))) for name, frame in (("turns", turns), ("entries", entries))}
    said = dict(list(opinions[opinions["about"].notna()].groupby(["run_id", "cell"])))
    for run in rows_of(runs.drop_duplicates(["run_id", "cell", "replicate"])):
        stated, own = fields.get(run["cell"], {}), by_run["turns"].get(run["run_id"])
        if stated.get("kind") == ConsensusInteraction.kind_name() and own is not None:
            interaction = ConsensusInteraction.model_validate_json(json.dumps(stated))
            numbers = said.get((run["run_id"], run["cell"]), opinions.iloc[:0])
            yield run, Recorded(interaction, own, numbers, by_run["entries"].get(run["run_id"], entries.iloc[:0]))


def selections(results: Results) -> pd.DataFrame:
    """One row per election of a consensus session; key ``cell, run_id, round, ballots``.

    The election is repeated with the recorded ballots.

    Returns
    -------
    DataFrame
        Columns: run_id, cell, replicate, round (0: the opinion round), ballots (stated by citizens, or predicted from
        their opinions), elects (whether these ballots chose the winner of the round), rule, asked (voters), counted
        (ballots; the others are missing or incomplete), standing (turns of the statements that stood for election, in
        order), ranks (their social ranking, 0 for the best, equal for ties), winner (turn; missing if no ballot
        counts), tied (turns that the rule left tied for the first place before breaking the tie), evidence.
    """
    records = []
    for run, session in sessions_of(results):
        told = {name: run[name] for name in ("run_id", "cell", "replicate", "evidence")}
        # A run that has not ended lacks ballots that it may have counted, or will.
        if run["status"] == "complete":
            records += [{**told, **each} for each in session.elections(str(run["block"]))]
    return pd.DataFrame(records, columns=list(SELECTIONS)).astype(dict(SELECTIONS))


class Recorded:
    """A session on record.

    Parameters
    ----------
    interaction : ConsensusInteraction
        Its fields.
    turns, opinions, entries : DataFrame
        Rows of its run; for opinions, rows of one cell that concern a second turn.
    """

    def __init__(
        self, interaction: ConsensusInteraction, turns: pd.DataFrame, opinions: pd.DataFrame, entries: pd.DataFrame
    ) -> None:
        self.interaction = interaction
        self.turns = {int(row["turn"]): row for row in rows_of(turns)}
        # What turns say of a statement, or of an opinion, by variable and what they speak of.
        self._said: dict[tuple[str, int], dict[int, float]] = {}
        for variable, turn, about, value in opinions[["variable", "turn", "about", "value"]].to_numpy(object):
            self._said.setdefault((variable, int(about)), {})[int(turn)] = float(value)
        # Opinions that the session awaited count, also beside texts that the author of the statement was not shown.
        for text, turn, value in entries[["call", "turn", "reply"]].to_numpy(object):
            call = CallName.of(text)
            if call.role == "rating" and call.about is not None:
                self._said.setdefault((PREDICTED, call.about), {})[int(turn)] = float(value)
        replies = entries[entries["call"] == REPLY].sort_values("attempt").drop_duplicates("turn", keep="last")
        self._acceptance: dict[int, str] = dict(zip(replies["turn"].astype(int), replies["acceptance"], strict=True))

    def statements(self, step: int) -> list[int]:
        """Usable statements of a round, including those that do not stand for election."""
        said = (turn for turn, row in self.turns.items() if row["step"] == step and row["kind"] == DRAFT.kind)
        return [turn for turn in said if self._usable(turn)]

    def stands(self, statement: int) -> bool:
        """Whether a statement stands for election in its round."""
        row, reads = self.turns[statement], self.turns[statement]["reads"]
        if row["act"] == "put":
            return "position" in self.interaction.standing if reads == ("position",) else isinstance(reads[0], int)
        return row["step"] > 1 or len([each for each in reads if isinstance(each, int)]) == len(self.opinions)

    @cached_property
    def opinions(self) -> dict[int, int]:
        """Turn of each citizen's opinion, if others received it."""
        said = (turn for turn, row in self.turns.items() if row["kind"] == STATE.kind)
        return {int(self.turns[turn]["agent"]): turn for turn in said if self._usable(turn)}

    def number(self, variable: str, turn: int, about: int) -> float:
        """Number that a turn gives to an earlier one; NaN without one."""
        return self._said.get((variable, about), {}).get(turn, math.nan)

    def _voter(self, turn: int) -> int:
        """Whom a number counts for: its author, or that of the one opinion that a prediction reads first."""
        row = self.turns[turn]
        return int((self.turns[row["reads"][0]] if row["kind"] == "prediction" else row)["agent"])

    def mean(self, variable: str, statement: int, citizen: int | None = None, among: Container[int] = ()) -> float:
        """Mean of the numbers for a statement, in all or some turns of all citizens or one; NaN without any."""
        said = self._said.get((variable, statement), {}).items()
        of_citizen = [each for each in said if citizen in (None, self._voter(each[0]))]
        known = [value for turn, value in of_citizen if not math.isnan(value) and (not among or turn in among)]
        return float(np.mean(known)) if known else math.nan

    def of_step(self, step: int) -> list[int]:
        """Turns of a round."""
        return [turn for turn, row in self.turns.items() if row["step"] == step]

    def means(self, statement: int, step: int) -> dict[str, float]:
        """Means of a round's ratings and of predictions for a statement, by variable; NaN without any."""
        known = [each for author in self.opinions if not math.isnan(each := self.predicted(statement, author))]
        rated = {name: self.mean(name, statement, None, self.of_step(step)) for name in ("agreement", "quality")}
        return {**rated, "predicted agreement": sum(known) / len(known) if known else math.nan}

    def predicted(self, statement: int, citizen: int) -> float:
        """Predicted agreement of a citizen with a statement, from an instrument or else a role; NaN without one."""
        own = self.opinions.get(citizen)
        found = math.nan if own is None else self.number(PREDICTED, statement, own)
        return self.mean(PREDICTED, statement, citizen) if math.isnan(found) else found

    def _usable(self, turn: int) -> bool:
        row = self.turns[turn]
        if row["kind"] != DRAFT.kind or row["act"] == PUT.name:
            return row["status"] in SPOKEN
        # A draft that was cut off was never read.
        return bool(row["status"] == "answered") and self._acceptance.get(turn) == "accepted"

    def _after(self, step: int, statements: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Turns of a round after its statements, before which the position statement may have been rated."""
        last = max(statements, default=0)
        return {turn: row for turn, row in self.turns.items() if row["step"] == step and turn > last}

    def ballots(self, step: int, kind: Literal["stated", "predicted"], standing: Sequence[int]) -> np.ndarray:
        """Ballots on statements, one for each citizen or author of an opinion; NaN if missing."""
        fields = self.interaction
        if kind == "predicted" and fields.predictor == "instrument":
            said = [[self.predicted(each, author) for each in standing] for author in self.opinions]
        else:
            if kind == "predicted":
                wanted, variable = "prediction", PREDICTED if fields.ballot == "rating" else "predicted_rank"
            else:
                wanted, variable = ("rating", "agreement") if fields.ballot == "rating" else ("ballot", "rank")
            own = self._after(step, standing)
            votes = [turn for turn, row in own.items() if row["kind"] == wanted and {*standing} & {*row["reads"]}]
            voters = dict.fromkeys(map(self._voter, votes))
            said = [[self.mean(variable, each, voter, own) for each in standing] for voter in voters]
        ballots = np.reshape(np.array(said, dtype=float), (-1, len(standing)))
        ballots[np.isnan(ballots).any(axis=1)] = np.nan
        return ballots

    def elections(self, block: str) -> Iterator[dict[str, Any]]:
        """The elections of a complete run; `block` is the run's block."""
        winner: int | None = None
        for number in range(self.interaction.rounds + 1):
            step = number + 1
            standing = [each for each in self.statements(step) if self.stands(each)]
            if self.interaction.incumbent and winner is not None:
                standing.insert(0, winner)
            found = (self._election(step, kind, standing, block) for kind in sorted(self.interaction.ballots))
            held = [each for each in found if each is not None]
            yield from held
            winner = next((each["winner"] for each in held if each["elects"]), None)

    def _election(
        self, step: int, kind: Literal["stated", "predicted"], standing: list[int], block: str
    ) -> dict[str, Any] | None:
        """One election; None where too few statements stand or nobody voted."""
        fields = self.interaction
        if kind == "stated" and fields.shortlist is not None:
            votes = [
                row
                for row in self._after(step, standing).values()
                if row["act"] in (RANK.name, RATE.name, RATE_POSITION.name)
            ]
            shown = {each for row in votes for each in row["reads"]}
            standing = [each for each in standing if each in shown]
        if len(standing) < 2:
            return None
        ballots = self.ballots(step, kind, standing)
        counted = int((~np.isnan(ballots).any(axis=1)).sum())
        told: dict[str, Any] = {"round": step - 1, "ballots": kind, "elects": kind == fields.elects}
        told |= {"rule": fields.rule_label, "asked": len(ballots), "counted": counted, "standing": tuple(standing)}
        try:
            election = fields.elect(ballots, block, step - 1, scores=fields.scores(kind)) if counted else None
        except ScheduleError:
            election = None
        if election is None:
            return {**told, "ranks": (), "winner": None, "tied": ()}
        tied = tuple(each for each, is_tied in zip(standing, election.tied, strict=True) if is_tied)
        chosen = standing[int(election.order.argmin())]
        return {**told, "ranks": tuple(election.ranks.tolist()), "winner": chosen, "tied": tied}
